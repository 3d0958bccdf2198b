"""Exact deviations and misses against sums over all outcomes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from compendium.confidence.exact_tails import binomial_deviation, chernoff_deviation, miss_probability
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

import ebr
from ebr.theory.confidence import half_width

COUNTS, MISSES = st.integers(1, 300), st.floats(1e-6, 0.9)


def outside(pulls, mean, width):
    """P(|μ̂ − μ| > w) for the mean of Bernoulli(μ) rewards, summed over all outcomes in exact fractions."""
    return sum(
        math.comb(pulls, k) * mean**k * (1 - mean) ** (pulls - k)
        for k in range(pulls + 1)
        if abs(Fraction(k, pulls) - mean) > width
    )


@given(COUNTS, st.floats(0.001, 0.999), MISSES)
def test_the_kl_deviation_leaves_log_2_over_p_on_its_wider_side(pulls, mean, miss):
    width, level = chernoff_deviation(pulls, mean, miss), math.log(2 / miss) / pulls

    def kl(x):
        return sum(a * math.log(a / b) for a, b in ((x, mean), (1 - x, 1 - mean)) if a > 0)

    inside = [kl(x) for x in (mean - 0.999 * width, mean + 0.999 * width) if 0 <= x <= 1]
    beyond = [kl(x) for x in (mean - 1.001 * width, mean + 1.001 * width) if 0 <= x <= 1]
    assert min(inside) <= level  # the wider side reaches this far
    assert all(value >= level for value in beyond)  # and neither side reaches further


@pytest.mark.parametrize("miss", [0.31, 0.05, 0.001])
@pytest.mark.parametrize("mean", [Fraction(1, 2), Fraction(3, 10), Fraction(6, 7), Fraction(1, 100)])
def test_nothing_narrower_than_the_binomial_deviation_would_do(mean, miss):
    for pulls in (1, 2, 5, 10, 21):
        distances = sorted({abs(Fraction(k, pulls) - mean) for k in range(pulls + 1)})
        least = next(width for width in distances if outside(pulls, mean, width) <= miss)
        assert binomial_deviation(pulls, float(mean), miss) == pytest.approx(float(least), abs=1e-12)


@given(COUNTS, st.floats(0.001, 0.999), MISSES)
def test_the_binomial_deviation_is_within_the_kl_one_and_that_within_hoeffdings(pulls, mean, miss):
    binomial, kl = binomial_deviation(pulls, mean, miss), chernoff_deviation(pulls, mean, miss)
    assert binomial <= kl + 1e-9
    assert kl <= half_width("Hoeffding", pulls, miss, 0.5) + 1e-9


@pytest.mark.parametrize("mean", [0.0, 0.01, 0.3, 1.0])
def test_the_binomial_deviation_goes_through_all_outcomes_that_matter(mean):
    pulls, miss = 50_000, 1e-4
    distances = np.abs(np.arange(pulls + 1) / pulls - mean)
    farthest = np.argsort(distances)[::-1]
    beyond = np.cumsum(binom.pmf(farthest, pulls, mean))
    assert binomial_deviation(pulls, mean, miss) == distances[farthest][np.argmax(beyond > miss)]


def test_miss_probabilities_of_coins_are_sums_over_all_outcomes():
    means, pulls, widths = [Fraction(1, 2), Fraction(3, 10), Fraction(1), Fraction(0)], [3, 20], [0.21, 0.13]
    found = miss_probability(ebr.Bernoulli([float(mean) for mean in means]), pulls, widths)
    expected = [
        [float(outside(n, mean, width)) for mean in means] for n, width in zip(pulls, widths, strict=True)
    ]
    assert found == pytest.approx(np.array(expected))


def test_miss_probabilities_of_gaussian_arms_are_two_tails():
    found = miss_probability(ebr.Gaussian([0.2, 0.9], 0.4), [1, 100, 10**4], [0.8, 0.08, 0.02])
    # The widths are 2, 2 and 5 standard errors.
    assert found == pytest.approx(np.array([[math.erfc(z / math.sqrt(2))] * 2 for z in (2, 2, 5)]))
    assert found[2, 0] == pytest.approx(2 * norm.cdf(-5))
