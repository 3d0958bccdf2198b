"""Tests of pairs of arms: levels by enumeration of all sums, decisions against separate scalar code.

Where a level is checked, planted errors show that it could have failed.
"""

import math
from functools import cache
from itertools import product

import numpy as np
import oracles
import pytest
from scipy.stats import binom, norm

from ebr.theory import pairs
from ebr.theory.pairs import Pairs, binomial_refuted, log_terms, normal_refuted

ROUNDING = 1 + 1e-9
SHIFTS = (0, 0.01, 0.1, 0.3)
LEVELS = (1e-6, 1e-3, 0.02, 0.1, 0.4, 0.9)
FEW = [(1, 1), (2, 2), (7, 7), (25, 25), (60, 60), (3, 1), (40, 5), (5, 40), (60, 13), (23, 59)]
EDGE = 10.0 ** -np.arange(1, 9)
MEANS = np.unique(np.concatenate([[0, 1], np.sin(np.linspace(0, np.pi / 2, 300)) ** 2, EDGE, 1 - EDGE]))


def every_sum(leader_pulls, other_pulls):
    """All sums that two arms can have."""
    leader, other = (
        part.ravel().astype(float) for part in np.indices((leader_pulls + 1, other_pulls + 1), dtype=float)
    )
    full = np.ones(len(leader), dtype=int)
    return Pairs(leader, leader_pulls * full, other, other_pulls * full)


def binomial_table(leader_pulls, other_pulls, shift, level, refuted=binomial_refuted):
    """Which pairs of sums are refuted: leader's sums × other's sums."""
    every = every_sum(leader_pulls, other_pulls)
    table = refuted(every, shift, np.full(len(every.leader), level))
    return table.reshape(leader_pulls + 1, other_pulls + 1)


def chances(table, shift):
    """The exact probability of the table's pairs, for many means of the leader, the other s better."""
    leader_pulls, other_pulls = (size - 1 for size in table.shape)
    p = MEANS * (1 - shift)
    leader = binom.pmf(np.arange(leader_pulls + 1), leader_pulls, p[:, None])
    other = binom.pmf(np.arange(other_pulls + 1), other_pulls, np.minimum(p + shift, 1)[:, None])
    return ((leader @ table) * other).sum(axis=1)


def most_spent(counts, shift, level, refuted=binomial_refuted):
    """The largest probability that a true hypothesis is refuted, over α."""
    return chances(binomial_table(*counts, shift, level, refuted), shift).max() / level


@pytest.mark.parametrize("counts", FEW)
def test_a_true_hypothesis_is_refuted_with_alpha_at_most(counts):
    for shift, level in product(SHIFTS, LEVELS):
        assert most_spent(counts, shift, level) <= ROUNDING


def largest_refuted(sums, counts, shift, level):
    """For each sum of the leader, the largest refuted sum of the other arm, by bisection; −1 if none is."""
    least, most = np.full(len(sums), -1.0), np.full(len(sums), float(counts[1]))  # all ones are never refuted
    pulls, miss = (np.full(len(sums), count) for count in counts), np.full(len(sums), level)
    leader_pulls, other_pulls = pulls
    while (most - least > 1).any():
        middle = np.maximum(np.floor((least + most) / 2), 0)
        there = pairs.binomial_refuted(Pairs(sums, leader_pulls, middle, other_pulls), shift, miss)
        least, most = np.where(there, middle, least), np.where(there, most, middle)
    return least


def by_limits(counts, shift, level):
    """`most_spent` for many pulls, from each sum's limit."""
    limits = largest_refuted(np.arange(counts[0] + 1.0), counts, shift, level)
    leader, at_most = laws(counts, shift)
    return (leader * at_most[:, limits.astype(int) + 1]).sum(axis=1).max() / level


@cache
def laws(counts, shift):
    """For each mean, the probability of each sum of the leader, and of at most −1, 0, 1, … of the other."""
    p = MEANS[:, None] * (1 - shift)
    other = binom.cdf(np.arange(-1, counts[1] + 1), counts[1], np.minimum(p + shift, 1))
    return binom.pmf(np.arange(counts[0] + 1), counts[0], p), other


@pytest.mark.parametrize("counts", [(500, 500), (2000, 700), (3000, 100)])
@pytest.mark.parametrize("shift", [0, 0.1])
def test_with_many_pulls_too_alpha_is_the_most_and_much_of_it_is_used(counts, shift):
    for level in (1e-5, 0.01, 0.3):
        assert 0.3 < by_limits(counts, shift, level) <= ROUNDING


@pytest.mark.parametrize("pulls", [1, 2, 3, 10, 47, 300])
def test_the_inequality_of_zubkov_and_serov(pulls):
    for p in (1e-4, 0.01, 0.1, 0.3, 0.5, 0.77, 0.99, 1 - 1e-4):
        root = np.array([oracles.roots(k, pulls, np.array(p)) for k in range(pulls + 1)])
        k = np.arange(1, pulls + 1)
        assert (binom.sf(k - 1, pulls, p) <= norm.sf(root[k - 1]) * ROUNDING + 1e-300).all()
        assert (binom.cdf(k - 1, pulls, p) <= norm.cdf(root[k]) * ROUNDING + 1e-300).all()
        # The tested code has the same roots.
        own = pairs._root(np.arange(pulls + 1.0), np.full(pulls + 1, pulls), np.full(pulls + 1, p))
        assert own == pytest.approx(root, rel=1e-6, abs=1e-5)


@cache
def scalar_table(leader_pulls, other_pulls, shift, level):
    return np.array(
        [
            [
                oracles.least_margin(leader, leader_pulls, other, other_pulls, shift, level) > 0
                for other in range(other_pulls + 1)
            ]
            for leader in range(leader_pulls + 1)
        ]
    )


@pytest.mark.parametrize("counts", [(1, 1), (7, 7), (3, 12), (20, 6), (24, 24)])
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_pair_is_refuted_where_one_condition_holds_for_each_p_of_a_fine_grid(counts, shift):
    for level in LEVELS:
        assert (binomial_table(*counts, shift, level) == scalar_table(*counts, shift, level)).all()


def test_with_many_pulls_the_scalar_test_agrees_on_both_sides_of_the_limit():
    generator = np.random.default_rng(3)
    for _ in range(150):
        counts = np.sort(np.floor(10 ** generator.uniform(1, 4.5, 2))).astype(int)
        level, shift = 10 ** generator.uniform(-6, -0.05), generator.choice(SHIFTS)
        leader = float(generator.binomial(counts[1], generator.choice([0.02, 0.3, 0.6, 0.95, 0.999])))
        (limit,) = largest_refuted(np.array([leader]), counts[::-1], shift, level)
        seen = (leader, counts[1], limit, counts[0], shift, level)
        assert limit == -1 or oracles.least_margin(*seen) > 0
        assert oracles.least_margin(*seen[:2], limit + 1, *seen[3:]) <= 0


@pytest.mark.parametrize("counts", [(25, 25), (60, 13), (23, 59)])
def test_more_for_the_leader_or_less_for_the_other_refutes_no_less(counts):
    for shift, level in product(SHIFTS, LEVELS):
        table = binomial_table(*counts, shift, level)
        assert (table[1:] >= table[:-1]).all()
        assert (table[:, 1:] <= table[:, :-1]).all()
        if level < LEVELS[-1]:
            assert (table <= binomial_table(*counts, shift, LEVELS[-1])).all()


def test_at_level_zero_nothing_is_refuted():
    assert not binomial_table(30, 30, 0.1, 0.0).any()


def test_the_normal_test_has_level_alpha_for_gaussian_arms():
    for counts, sigma, level, shift in product([(1, 1), (40, 7), (9, 300)], (0.5, 2), (1e-6, 0.4), (0, 0.1)):
        # The least difference of means that is refuted, by bisection.
        low, high = -40.0, 40.0
        for _ in range(60):
            middle = (low + high) / 2
            pair = Pairs(*np.array([[(middle - shift) * counts[0]], [counts[0]], [0.0], [counts[1]]]))
            there = normal_refuted(pair, shift, np.array([norm.isf(level) ** 2 / 2]), sigma)[0]
            low, high = (low, middle) if there else (middle, high)
        spread = sigma * math.sqrt(1 / counts[0] + 1 / counts[1])
        assert norm.sf(high / spread) == pytest.approx(level, rel=1e-6)


def chernoff_refuted(every, shift, miss):
    return normal_refuted(every, shift, -np.log(miss), 0.5)


def test_two_exponential_variables_exceed_their_quantile_with_the_probability_that_is_asked():
    misses = np.concatenate([10.0 ** np.arange(-300, 0), np.linspace(0.01, 0.95, 95)])
    found = log_terms(misses, "bounded")
    assert (1 + found) * np.exp(-found) == pytest.approx(misses, rel=1e-12)
    assert log_terms(np.array(0.0), "bounded") == math.inf


def bounded_refuted(every, shift, miss):
    return pairs.bounded_refuted(every, shift, log_terms(miss, "bounded"))


@pytest.mark.parametrize("refuted", [chernoff_refuted, bounded_refuted])
@pytest.mark.parametrize("counts", FEW)
def test_chernoffs_and_the_bounded_test_keep_their_level_with_bernoulli_arms(refuted, counts):
    for shift, level in product(SHIFTS, LEVELS):
        assert most_spent(counts, shift, level, refuted) <= ROUNDING


@pytest.mark.parametrize("counts", [(1, 1), (30, 30), (40, 5), (5, 40), (23, 59)])
def test_the_bounded_test_is_the_scalar_one(counts):
    every = every_sum(*counts)
    for shift, level in product(SHIFTS, LEVELS):
        found = bounded_refuted(every, shift, np.full(len(every.leader), level))
        for leader, other, refuted in zip(every.leader, every.other, found, strict=True):
            ratio = oracles.pair_ratio(leader, counts[0], other, counts[1], shift)
            excess = ratio - oracles.log_term("bounded", level)
            assert refuted == (excess > 0) or abs(excess) < 1e-9


def wrong_sign(pulls, epsilon):
    """The largest P(A ≥ C) over many means, where C's mean is ε larger."""
    p = np.append(MEANS[::9], 0.5)[:, None] * (1 - epsilon)
    sums = np.arange(pulls + 1)
    chance = binom.pmf(sums, pulls, p) * binom.cdf(sums, pulls, np.minimum(p + epsilon, 1))
    return chance.sum(axis=1).max()


def just_enough(epsilon, level, count):
    if wrong_sign(count, epsilon) > level * ROUNDING:
        return False
    return (count - 1) * epsilon < 1 or wrong_sign(count - 1, epsilon) > level


@pytest.mark.parametrize("epsilon", [0.04, 0.07, 0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("level", [1e-6, 1e-3, 0.05, 0.3, 0.9])
def test_the_sign_count_is_just_enough(epsilon, level):
    count = pairs.sign_count(epsilon, level)
    assert just_enough(epsilon, level, count)
    assert count == oracles.sign_count(epsilon, level)


REFUTED, BINOMIALS, SIGN_COUNT = pairs.binomial_refuted, pairs._Binomials, pairs.sign_count
ROOT, WEIGHTS = pairs._root, pairs._Binomials.weights


def without_a_count(every, *rest):
    return REFUTED(Pairs(every.leader + 1, every.leader_pulls, every.other - 1, every.other_pulls), *rest)


def at_the_pooled_mean_only(self):
    return np.ones(len(self.own), dtype=bool)


def not_normalised(self, piece):
    one, two = WEIGHTS(self, piece)
    return math.sqrt(2) * one, math.sqrt(2) * two


def shifted_twice(self, left, right):
    first = ROOT(self.pairs.leader, self.pairs.leader_pulls, right)
    return first, -ROOT(self.pairs.other, self.pairs.other_pulls, left + 2 * self.shift)


# Where an error is planted, the error, and the shift at which the level becomes too large (None: at none).
PLANTED = [
    (pairs, "binomial_refuted", without_a_count, 0),
    (BINOMIALS, "refuted", at_the_pooled_mean_only, None),
    (pairs, "OWN", 0.9, None),
    (BINOMIALS, "weights", not_normalised, 0),
    (BINOMIALS, "roots", shifted_twice, 0.1),
    (pairs, "_root", lambda *seen: ROOT(*seen) / math.sqrt(2), None),
]


@pytest.mark.parametrize(("where", "name", "planted", "shift"), PLANTED)
def test_an_error_in_the_binomial_test_is_caught(monkeypatch, where, name, planted, shift):
    monkeypatch.setattr(where, name, planted)
    assert shift is None or by_limits((500, 500), shift, 0.01) > ROUNDING
    for level in LEVELS:
        found = binomial_table(60, 31, 0.1, level, pairs.binomial_refuted)
        if (found != scalar_table(60, 31, 0.1, level)).any():
            return
    pytest.fail("the scalar test agrees")


@pytest.mark.parametrize(
    "planted",
    [
        lambda epsilon, level: SIGN_COUNT(epsilon, 2 * level),
        lambda epsilon, level: SIGN_COUNT(epsilon, level) - 1,
        lambda epsilon, level: math.ceil(-math.log(level) / epsilon**2),  # by Hoeffding (1963)
    ],
)
def test_an_error_in_the_sign_count_is_caught(planted):
    assert not just_enough(0.1, 0.05, planted(0.1, 0.05))


@pytest.mark.parametrize(
    ("refuted", "planted"),
    [
        (chernoff_refuted, lambda every, shift, miss: normal_refuted(every, shift, -np.log(miss), 0.25)),
        (chernoff_refuted, lambda every, shift, miss: normal_refuted(every, 2 * shift, -np.log(miss), 0.5)),
        (bounded_refuted, lambda every, shift, miss: bounded_refuted(every, shift, 30 * miss)),
        (bounded_refuted, lambda every, shift, miss: bounded_refuted(every, shift + 0.1, miss)),
    ],
)
def test_the_level_of_the_other_tests_could_have_been_too_large(refuted, planted):
    assert most_spent((60, 60), 0.1, 0.02, refuted) <= 1 < most_spent((60, 60), 0.1, 0.02, planted)
