"""Looks at a Brownian motion: normal tails, double integrals, a known test, and drawn paths."""

import math

import numpy as np
import pytest
from compendium.shared.walks import Looks
from scipy.integrate import dblquad
from scipy.stats import norm


@pytest.mark.parametrize("drift", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("time", [2.0, 8000.0])
def test_one_look_is_a_normal_tail(drift, time):
    expected = norm.logsf(drift * math.sqrt(time))
    assert Looks(np.array([time]), np.zeros(0)).log_wrong(drift) == pytest.approx(expected, rel=1e-12)


def test_looks_that_never_end_it_do_not_count():
    looks = Looks(np.array([2.0, 4.0, 6.0, 80.0]), np.array([18.0, 36.0, 54.0]))
    assert looks.log_wrong(0.2) == pytest.approx(norm.logsf(0.2 * math.sqrt(80)), rel=1e-9)


def test_two_looks_by_hand():
    # Steps N(0.4, 2) and N(1.2, 6). Wrong if the first is below −2, or if it is below 2 and the sum below 0.
    looks, first = Looks(np.array([2.0, 8.0]), np.array([2.0])), norm(0.4, math.sqrt(2))

    def both(second, step):
        return first.pdf(step) * norm.pdf(second, 1.2, math.sqrt(6))

    later, _ = dblquad(both, -2, 2, -30, lambda step: -step, epsabs=1e-11)
    assert looks.wrong(0.2) == pytest.approx(first.cdf(-2) + later, rel=1e-7)
    assert looks.reached(0.2) == pytest.approx([1, first.cdf(2) - first.cdf(-2)])
    assert looks.mean_time(0.2) == pytest.approx(2 + 6 * looks.reached(0.2)[1])


def test_the_test_that_refutes_theorem_3_as_printed():
    # The test with looks at 0.649 and 1.247 that stops beyond 0.479 errs with probability 0.15.
    looks = Looks(np.array([0.649, 1.247]), np.array([0.479]))
    assert looks.wrong(1.0) == pytest.approx(0.15, abs=2e-5)
    assert 4 * looks.mean_time(0.0) == pytest.approx(3.667, abs=1e-3)


def test_four_looks_end_as_drawn_paths_do():
    looks = Looks(np.array([0.3, 1.0, 1.6, 4.0]), np.array([0.8, 1.2, 1.0]), np.array([-0.6, -1.0, -1.3]))
    steps, runs = np.diff(looks.times, prepend=0.0), 200_000
    draws = np.random.default_rng(4).standard_normal((runs, 4))
    for drift in (1.0, -0.5):
        path = (drift * steps + np.sqrt(steps) * draws).cumsum(axis=1)
        out = (path[:, :3] < looks.low) | (path[:, :3] > looks.high)
        end = np.column_stack([out, np.ones(runs, dtype=bool)]).argmax(axis=1)
        # Ten means of 200,000 zeros and ones; each is 0.006 off with probability below 1e-7.
        assert (path[np.arange(runs), end] < 0).mean() == pytest.approx(looks.wrong(drift), abs=0.006)
        found = [(end >= look).mean() for look in range(4)]
        assert found == pytest.approx(looks.reached(np.array([drift, 0.0]))[0], abs=0.006)
