"""Selection at once: normal and binomial slippage errors against other formulas, tables and drawn sums."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import binom, multivariate_normal, norm

import ebr
from ebr.theory.pairs import sign_count
from ebr.theory.selection import (
    bechhofer_count,
    bechhofer_distance,
    binomial_count,
    normal_slippage_error,
    slippage_error,
)

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
    if n_arms == 2:
        assert expected == pytest.approx(norm.sf(distance / math.sqrt(2)), rel=1e-9)
    if n_arms == 3:
        both = multivariate_normal.cdf([distance / math.sqrt(2)] * 2, cov=[[1, 0.5], [0.5, 1]])
        assert normal_slippage_error(distance, 3) == pytest.approx(1 - both, abs=1e-7)


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


def plain_error(subjects, best, other, n_arms):
    """Σ over the best arm's count and the number of ties."""
    x = np.arange(subjects + 1)
    here, under = binom.pmf(x, subjects, other), binom.cdf(x - 1, subjects, other)
    wins = sum(
        math.comb(n_arms - 1, ties) * here**ties * under ** (n_arms - 1 - ties) / (ties + 1)
        for ties in range(n_arms)
    )
    return 1 - float(binom.pmf(x, subjects, best) @ wins)


@pytest.mark.parametrize(("subjects", "n_arms"), [(1, 2), (30, 5), (400, 3), (400, 30)])
@pytest.mark.parametrize(("best", "other"), [(0.1, 0.0), (1.0, 0.9), (0.5, 0.45), (0.02, 0.01), (0.7, 0.7)])
def test_the_binomial_error_is_the_sum_over_ties(subjects, n_arms, best, other):
    found = slippage_error(subjects, np.array([best]), np.array([other]), n_arms)
    assert found == pytest.approx(plain_error(subjects, best, other, n_arms), abs=1e-11)


def hundred_digits(subjects, best, other, n_arms):
    """The same sum, of losses and in an arithmetic of 100 digits: (Fⁿ − Gⁿ)/(F − G) = Σ F^{n−1−j} Gʲ."""
    with localcontext(prec=100):
        here, wins = (
            [math.comb(subjects, x) * p**x * (1 - p) ** (subjects - x) for x in range(subjects + 1)]
            for p in (Decimal(other), Decimal(best))
        )
        loss = at_most = Decimal(0)
        for x, mass in enumerate(wins):
            under, at_most = at_most, at_most + here[x]
            powers = (at_most ** (n_arms - 1 - j) * (under**j if j else 1) for j in range(n_arms))
            loss += mass * (1 - sum(powers) / n_arms)
        return loss


@pytest.mark.parametrize(
    ("n_arms", "epsilon", "delta"), [(5, 0.3, 1e-12), (30, 0.4, 1e-12), (2, 0.6, 1e-20), (3, 0.5, 1e-40)]
)
def test_a_small_delta_is_certified_to_its_last_digit(n_arms, epsilon, delta):
    # The worst means of all are about ½ ± ε/2. 1 − Σ wins had given 272, 153 and 67.
    subjects, middle = binomial_count(n_arms, epsilon, delta), (0.5 + epsilon / 2, 0.5 - epsilon / 2)
    assert hundred_digits(subjects, *middle, n_arms) <= delta < hundred_digits(subjects - 1, *middle, n_arms)
    exact = float(hundred_digits(subjects, *middle, n_arms))
    found = slippage_error(subjects, *np.array([middle]).T, n_arms, 1e-60)
    assert found == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(("n_arms", "epsilon", "delta"), CLINICAL)
def test_the_exact_count_is_nearly_the_least_and_below_a_union_over_pairs(n_arms, epsilon, delta):
    exact = binomial_count(n_arms, epsilon, delta)
    assert exact <= sign_count(epsilon, delta / (n_arms - 1))
    means = np.linspace(epsilon, 1, 400)
    assert max(plain_error(exact, p, p - epsilon, n_arms) for p in means) <= delta
    if exact > 1:
        assert max(plain_error(exact - 1, p, p - epsilon, n_arms) for p in means) > delta


@pytest.mark.parametrize(("n_arms", "epsilon", "delta"), [*CLINICAL, (100, 0.01, 0.01)])
def test_one_round_of_gaussian_rewards_is_bechhofers_design(n_arms, epsilon, delta):
    for sigma in (0.5, 2.0):
        exact = bechhofer_count(n_arms, epsilon, delta, sigma)
        assert normal_slippage_error(epsilon * math.sqrt(exact) / sigma, n_arms) <= delta
        assert normal_slippage_error(epsilon * math.sqrt(exact - 1) / sigma, n_arms) > delta
        pausing = ebr.PausingElasticBatchRacing(1, epsilon, delta, sigma)
        assert pausing.pulls_by_stage(n_arms, "Gaussian").tolist() == [exact]
