"""The sequential rivals against plain loops, their thresholds against sums, integrals and exact chances."""

import math
from functools import partial

import numpy as np
import pytest
from compendium.modern_rivals import comparison
from compendium.modern_rivals import sequential_races as races
from compendium.modern_rivals import sequential_rivals as rivals
from compendium.shared.characteristic_time import characteristic
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy
from scipy.stats import beta

from ebr.theory.problems import Bernoulli, Gaussian, setup_1

EVERY = [
    rivals.kl_lucb,
    partial(rivals.kl_lucb, own_counts=True),
    rivals.track_and_stop,
    partial(rivals.track_and_stop, forced=False),
    partial(rivals.track_and_stop, forced=False, mixture=True),
]
SMALL = [(0.8, 0.6, 0.55, 0.2), (0.5, 0.5, 0.3), (0.97, 0.99), (0.02, 0.01, 0.1)]


class Watched(list):
    """Means that remember in which order arms are pulled."""

    def __init__(self, means):
        super().__init__(means)
        self.pulled = []

    def __getitem__(self, arm):
        self.pulled.append(int(arm))
        return super().__getitem__(arm)


def fixed(means):
    """Means as a problem has them: for an array that may be written to, races would be compiled anew."""
    return Bernoulli(means).means


def kl(p, q):
    return xlogy(p, p / q) + xlogy(1 - p, (1 - p) / (1 - q))


def upper(p, level):
    """Where kl(p, ·) reaches the level above p, or 1 if that is within rounding of 1."""
    nearly = 1 - 1e-15
    if p == 1 or kl(p, nearly) < level:
        return 1.0
    return brentq(lambda q: kl(p, q) - level, max(p, 1e-300), nearly, xtol=1e-16)


def first_largest(values):
    return int(np.argmax(np.round(values, 11)))


def pull(means, arm, successes, counts, generator, pulled):
    counts[arm] += 1
    successes[arm] += generator.random() < means[arm]
    pulled.append(arm)


def plain_lucb(means, epsilon, delta, own_counts, generator):
    """KL-LUCB from its description: every bound anew in every round."""
    n, pulled = len(means), []
    successes, counts = [0] * n, [0] * n
    for arm in range(n):
        pull(means, arm, successes, counts, generator, pulled)
    exponent, rounds = 1.1, 1
    norm = sum(s**-exponent for s in range(1, 10_000)) + 9_999.5 ** (1 - exponent) / (exponent - 1)
    while True:
        estimates = [s / c for s, c in zip(successes, counts, strict=True)]
        times = counts if own_counts else [rounds] * n
        rates = [math.log(norm * n * t**exponent / delta) for t in times]
        highs = [upper(p, r / c) for p, r, c in zip(estimates, rates, counts, strict=True)]
        lows = [1 - upper(1 - p, r / c) for p, r, c in zip(estimates, rates, counts, strict=True)]
        leader = first_largest(estimates)
        rival = first_largest([high if arm != leader else -1 for arm, high in enumerate(highs)])
        if highs[rival] - lows[leader] <= epsilon:
            return pulled, (len(pulled), rounds, leader)
        for arm in (leader, rival):
            pull(means, arm, successes, counts, generator, pulled)
        rounds += 1


def plain_evidence(a, b, epsilon):
    (s, n), (u, m) = a, b
    if u / m >= s / n + epsilon:
        return 0.0
    found = minimize_scalar(
        lambda x: n * kl(s / n, x) + m * kl(u / m, x + epsilon),
        bounds=(0, 1 - epsilon),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return found.fun


def plain_charge(successes, count, mixture):
    """The mixture's predictions one by one: the next reward is 1 with probability (S + ½)/(N + 1)."""
    if not mixture:
        return 3 * math.log(1 + math.log(count))
    predicted = [(i + 0.5) / (i + 1) for i in range(successes)]
    predicted += [(i + 0.5) / (successes + i + 1) for i in range(count - successes)]
    p = successes / count
    return xlogy(successes, p) + xlogy(count - successes, 1 - p) - sum(map(math.log, predicted))


def proportions(means, epsilon, start=math.inf, places=None):
    """w* by the compiled search, from nowhere in particular unless told."""
    places = np.full(len(means), -1.0) if places is None else places
    weights = np.empty(len(means))
    races.proportions(np.array(means), epsilon, start, places, weights)
    return weights


def plain_tracking(means, epsilon, stopping, forced, generator):
    """Track-and-Stop from its description; only w* is the compiled one, which has its own test."""
    n, pulled, looks, renewal = len(means), [], 1, 0
    successes, counts = [0] * n, [0] * n
    for arm in range(n):
        pull(means, arm, successes, counts, generator, pulled)
    while True:
        charges = [plain_charge(s, c, stopping.mixture) for s, c in zip(successes, counts, strict=True)]
        arms = list(zip(successes, counts, strict=True))
        for a in range(n):
            if all(
                plain_evidence(arms[a], arms[b], epsilon) > stopping.level + charges[a] + charges[b]
                for b in range(n)
                if b != a
            ):
                return pulled, (len(pulled), looks, a)
        if len(pulled) >= renewal:
            weights = proportions((np.array(successes) + 0.5) / (np.array(counts) + 1), epsilon)
            renewal = len(pulled) + len(pulled) // 25
        for _ in range(32):
            t = len(pulled)
            if forced and min(counts) < math.sqrt(t) - n / 2:
                arm = counts.index(min(counts))
            elif forced:
                arm = first_largest([t * w - c for w, c in zip(weights, counts, strict=True)])
            else:
                arm = first_largest([-c / w for w, c in zip(weights, counts, strict=True)])
            pull(means, arm, successes, counts, generator, pulled)
        looks += 1


@pytest.mark.parametrize("own_counts", [False, True])
@pytest.mark.parametrize("means", SMALL)
def test_kl_lucb_makes_the_pulls_of_a_plain_loop(means, own_counts):
    rate = rivals.exploration_rate(len(means), 0.1)
    for seed in range(2):
        pulled, expected = plain_lucb(means, 0.2, 0.1, own_counts, np.random.default_rng(seed))
        watched = Watched(means)
        found = races.lucb_race.py_func(watched, 0.2, rate, own_counts, np.random.default_rng(seed))
        assert watched.pulled == pulled
        assert tuple(found) == expected
        assert races.lucb_race(fixed(means), 0.2, rate, own_counts, np.random.default_rng(seed)) == expected


@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("mixture", [False, True])
@pytest.mark.parametrize("means", SMALL)
def test_track_and_stop_makes_the_pulls_of_a_plain_loop(means, mixture, forced):
    stopping = (rivals.mixture_stopping if mixture else rivals.deviation_stopping)(len(means), 0.1)
    pulled, expected = plain_tracking(means, 0.2, stopping, forced, np.random.default_rng(5))
    watched = Watched(means)
    found = races.tracking_race.py_func(watched, 0.2, tuple(stopping), forced, np.random.default_rng(5))
    assert watched.pulled == pulled
    assert tuple(found) == expected
    again = races.tracking_race(fixed(means), 0.2, tuple(stopping), forced, np.random.default_rng(5))
    assert again == expected


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.3, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("level", [1e-5, 0.01, 0.5, 5.0])
def test_upper_bounds_are_where_the_divergence_reaches_the_level(p, level):
    assert races.upper_bound(p, level) == pytest.approx(upper(p, level), rel=1e-11)


def test_proportions_are_those_of_the_characteristic_time():
    generator = np.random.default_rng(2)
    problems = [generator.uniform(0.01, 0.99, n) for n in (2, 3, 10, 50)]
    problems += [setup_1(100).means, np.array([0.995, 0.5, 0.3]), np.array([0.004, 0.002, 0.001])]
    for means in problems:
        for epsilon in (0.01, 0.1):
            expected = characteristic(Bernoulli(means), epsilon).proportions
            found = proportions(means, epsilon)
            assert found == pytest.approx(expected, rel=2e-3, abs=1e-7)
            # Wherever the search starts: at another problem's level and places, or at none that are possible.
            elsewhere = generator.uniform(-0.2, 1.2, len(means))
            assert proportions(means, epsilon, -3.0, elsewhere).tolist() == found.tolist()


@pytest.mark.parametrize("x", [0.01, 0.3, 1.0, 4.6, 50.0])
def test_the_threshold_of_exponential_families_is_a_minimum_over_z(x):
    assert rivals.exponential_threshold(x) == pytest.approx(comparison._threshold(x), rel=1e-9)


def test_a_mixtures_regret_is_at_most_half_a_logarithm_and_log_2():
    for count in (1, 2, 5, 50, 1000):
        for successes in {0, 1, count // 3, count // 2, count}:
            regret = races.charge(float(successes), float(count), True)
            assert regret == pytest.approx(plain_charge(successes, count, True), rel=1e-9, abs=1e-9)
            assert 0 < regret <= 0.5 * math.log(count) + math.log(2) + 1e-9


def chance_of_a_wrong_stop(best, epsilon, horizon, stopping):
    """Exactly: how often a, worse than b by ε, is the answer after at most so many pulls of each in turn."""
    law, wrong = np.ones((1, 1)), 0.0
    chances = (best - epsilon, best)
    for count in range(1, horizon + 1):
        grown = np.zeros((count + 1, count + 1))
        for i, p in enumerate((1 - chances[0], chances[0])):
            for j, q in enumerate((1 - chances[1], chances[1])):
                grown[i : i + count, j : j + count] += p * q * law
        charges = [races.charge(float(s), float(count), stopping.mixture) for s in range(count + 1)]
        for s, u in np.ndindex(grown.shape):
            shown = races.evidence(s / count, float(count), u / count, float(count), epsilon)
            if shown > stopping.level + charges[s] + charges[u]:
                wrong += grown[s, u]
                grown[s, u] = 0.0
        law = grown
    return wrong


@pytest.mark.parametrize("best", [0.2, 0.99])
def test_a_pair_of_arms_errs_with_at_most_delta_exactly(best):
    for stopping in (rivals.mixture_stopping(2, 0.5), rivals.deviation_stopping(2, 0.5)):
        assert chance_of_a_wrong_stop(best, 0.1, 60, stopping) <= 0.5


def at_least(failures, runs):
    """A lower bound on the chance of failure that is wrong once in a million."""
    return float(beta.ppf(1e-6, failures, runs - failures + 1)) if failures else 0.0


@pytest.mark.parametrize("rival", EVERY)
def test_failures_are_at_most_delta_where_all_others_are_just_bad(rival):
    problem, epsilon, delta, runs = Bernoulli([0.6, 0.4, 0.4, 0.4]), 0.2, 0.4, 500
    wrong = ~problem.is_good(rival(problem, epsilon, delta, runs, 3)["arm"], epsilon)
    assert at_least(int(wrong.sum()), runs) <= delta


@pytest.mark.parametrize("rival", EVERY)
def test_results_are_a_function_of_seed_and_problem(rival):
    problem = Bernoulli([0.7, 0.5, 0.3])
    table = rival(problem, 0.2, 0.1, 5, 1)
    assert list(table.columns) == ["pulls", "rounds", "arm"]
    assert table.head(3).equals(rival(problem, 0.2, 0.1, 3, 1))
    assert not table.equals(rival(problem, 0.2, 0.1, 5, 2))
    with pytest.raises(ValueError, match="problem must have Bernoulli rewards, got Gaussian"):
        rival(Gaussian([0.7, 0.5], 0.5), 0.2, 0.1, 5, 1)
