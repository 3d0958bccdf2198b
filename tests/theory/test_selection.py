"""Selection in one round: normal slippage errors against other formulas and tables."""

import math

import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm

import ebr
from ebr.theory.selection import bechhofer_count, bechhofer_distance, normal_slippage_error

CLINICAL = [(2, 0.3, 0.2), (3, 0.2, 0.1), (5, 0.15, 0.05), (4, 0.1, 0.1), (10, 0.1, 0.05), (2, 0.05, 0.05)]


@pytest.mark.parametrize("n_arms", [2, 3, 10, 1000])
@pytest.mark.parametrize("distance", [0.0, 1.0, 4.0, 9.0])
def test_the_normal_error_is_bechhofers_integral(n_arms, distance):
    expected = quad(
        lambda y: norm.pdf(y) * -math.expm1((n_arms - 1) * log_ndtr(y + distance)),
        -20,
        20,
        epsabs=0,
        epsrel=1e-11,
        points=[-distance / 2, 0],
        limit=400,
    )[0]
    assert normal_slippage_error(distance, n_arms) == pytest.approx(expected, rel=1e-9)


def test_the_constants_of_bechhofers_table():
    # Ann. Math. Stat. 25 (1954), Table I: h for n = 2 … 5 and P = 0.95.
    found = [bechhofer_distance(n_arms, 0.05) for n_arms in (2, 3, 4, 5)]
    assert found == pytest.approx([2.3262, 2.7101, 2.9162, 3.0552], abs=1e-4)
    assert bechhofer_count(5, 0.05, 0.05, 0.5) == 934
    assert bechhofer_count(5, 0.05, 0.05, 1.0) == math.ceil((3.0551726 / 0.05) ** 2)


def test_lots_are_good_enough_for_a_large_delta_and_a_tiny_one_is_the_unions():
    assert bechhofer_distance(3, 0.67) == 0
    assert bechhofer_count(3, 0.1, 0.67, 0.5) == 1
    assert bechhofer_distance(20, 1e-80) == pytest.approx(-math.sqrt(2) * norm.ppf(1e-80 / 19), rel=1e-9)


@pytest.mark.parametrize(("n_arms", "epsilon", "delta"), [*CLINICAL, (100, 0.01, 0.01)])
def test_one_round_of_gaussian_rewards_is_bechhofers_design(n_arms, epsilon, delta):
    for sigma in (0.5, 2.0):
        exact = bechhofer_count(n_arms, epsilon, delta, sigma)
        assert normal_slippage_error(epsilon * math.sqrt(exact) / sigma, n_arms) <= delta
        assert normal_slippage_error(epsilon * math.sqrt(exact - 1) / sigma, n_arms) > delta
        pausing = ebr.PausingElasticBatchRacing(1, epsilon, delta, sigma)
        assert pausing.pulls_by_stage(n_arms, "Gaussian").tolist() == [exact]
