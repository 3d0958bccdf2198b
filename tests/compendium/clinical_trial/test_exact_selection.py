"""The exact fixed design: binomial slippage errors against plain sums, small ones in 100 digits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from compendium.clinical_trial.exact_selection import binomial_count, slippage_error
from scipy.stats import binom

from ebr.theory.pairs import sign_count

CLINICAL = [(2, 0.3, 0.2), (3, 0.2, 0.1), (5, 0.15, 0.05), (4, 0.1, 0.1), (10, 0.1, 0.05), (2, 0.05, 0.05)]


def plain_error(subjects, best, other, n_arms):
    """The error, as a sum over the best arm's count and the number of ties."""
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
    """The error as a sum of losses, with 100 digits: (Fⁿ − Gⁿ)/(F − G) = Σ F^{n−1−j} Gʲ."""
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
    # The worst means are about ½ ± ε/2. Computed as 1 − Σ wins, counts were wrong: 272, 153 and 67.
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
