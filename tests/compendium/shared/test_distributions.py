"""Distributions by scipy.special, against scipy.stats."""

import numpy as np
import pytest
from compendium.shared import distributions
from scipy import stats

PLACES = np.linspace(-40, 40, 8001)
SHARES = np.r_[0, np.geomspace(1e-300, 0.5, 500), 1 - np.geomspace(1e-16, 0.5, 500), 1]


@pytest.mark.parametrize("name", ["cdf", "logcdf", "pdf", "sf", "ppf", "isf"])
def test_the_normal_law_is_scipys(name):
    places = SHARES if name in ("ppf", "isf") else PLACES
    ours, expected = (getattr(law, name)(places) for law in (distributions.norm, stats.norm))
    np.testing.assert_allclose(ours, expected, rtol=1e-15, atol=0)


CASES = [(0, 1), (1, 1), (0, 20), (3, 20), (20, 20), (7, 100_000), (2, 1_000_000), (999_000, 1_000_000)]


@pytest.mark.parametrize(("events", "trials"), CASES)
@pytest.mark.parametrize("probability", [1e-9, 0.01, 0.5])
def test_the_tail_of_a_count_is_that_of_the_exact_test(events, trials, probability):
    expected = stats.binomtest(events, trials, probability, alternative="greater").pvalue
    tail = distributions.tail_of_count(events, trials, probability)
    assert tail == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("events", "trials"), CASES)
def test_the_ends_of_a_frequencys_interval_have_the_tails_that_were_asked_for(events, trials):
    low, high = distributions.frequency_interval(events, trials, 0.99)
    assert (low == 0) == (events == 0)
    assert (high == 1) == (events == trials)
    if events:
        assert stats.binom.sf(events - 1, trials, low) == pytest.approx(0.005, rel=1e-9)
    if events < trials:
        assert stats.binom.cdf(events, trials, high) == pytest.approx(0.005, rel=1e-9)
