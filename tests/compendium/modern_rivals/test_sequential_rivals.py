"""The sequential rivals against plain loops, their thresholds against sums, integrals and exact chances."""

import math

import numpy as np
import pytest
from compendium.modern_rivals import sequential_races as races
from compendium.modern_rivals import sequential_rivals as rivals
from compendium.shared.characteristic_time import characteristic
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy
from scipy.stats import beta

from ebr.theory.problems import Bernoulli, Gaussian, setup_1

EVERY = [
    rivals.kl_lucb,
    rivals.kl_lucb_own_counts,
    rivals.track_and_stop,
    rivals.track_and_stop_proportional,
    rivals.track_and_stop_mixture,
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


def test_evidence_is_the_least_over_all_places():
    generator = np.random.default_rng(1)
    for _ in range(300):
        n, m = generator.integers(1, 200, 2)
        s, u = generator.integers(0, [n + 1, m + 1])
        epsilon = generator.choice([0.01, 0.1, 0.4])
        expected = plain_evidence((s, n), (u, m), epsilon)
        assert races.evidence(s / n, float(n), u / m, float(m), float(epsilon)) == pytest.approx(
            expected, rel=1e-6, abs=1e-5
        )


def halved_proportions(means, epsilon):
    """w* at the last level of plain halvings, each by the sum of the ratios there."""
    leader, others = means.max(), np.delete(means, means.argmax())
    high = math.log(min(races.largest_level(leader, q, epsilon) for q in others))

    def found(log_level):
        return [races.balance(leader, q, epsilon, math.exp(log_level), -1.0) for q in others]

    while sum(each[2] for each in found(high - 2)) > 1:
        high -= 2
    low = high - 2
    for _ in range(races.HALVINGS):
        tried = (low + high) / 2
        low, high = (low, tried) if sum(each[2] for each in found(tried)) > 1 else (tried, high)
    weights = np.insert([each[1] for each in found(tried)], means.argmax(), 1.0)
    return weights / weights.sum()


def test_proportions_are_at_the_level_that_plain_halvings_find():
    generator = np.random.default_rng(8)
    for n_arms, epsilon in ((2, 0.1), (3, 0.01), (10, 0.003), (10, 0.3), (40, 0.01)):
        means = generator.uniform(0.02, 0.98, n_arms)
        digits, powers = np.frexp(halved_proportions(means, epsilon))
        rounded = np.ldexp(np.rint(digits * races.DIGITS) / races.DIGITS, powers)
        assert proportions(means, epsilon).tolist() == rounded.tolist()
        # Wherever the search starts: at another problem's level and places, or at none that are possible.
        for start in (-30.0, -3.0, 5.0):
            places = generator.uniform(-0.2, 1.2, n_arms)
            assert proportions(means, epsilon, start, places).tolist() == rounded.tolist()


def test_proportions_are_those_of_the_characteristic_time():
    generator = np.random.default_rng(2)
    problems = [generator.uniform(0.01, 0.99, n) for n in (2, 3, 10, 50)]
    problems += [setup_1(100).means, np.array([0.995, 0.5, 0.3]), np.array([0.004, 0.002, 0.001])]
    for means in problems:
        for epsilon in (0.01, 0.1):
            expected = characteristic(Bernoulli(means), epsilon).proportions
            assert proportions(means, epsilon) == pytest.approx(expected, rel=2e-3, abs=1e-7)


def spent_by(rate, n_arms):
    """Σ over arms and counts of the exp(−β(s)) that the proof of KL-LUCB pays, the tail as an integral."""
    constant, exponent = rate
    last = 100_000
    counts = np.arange(1, last)
    tail = (last - 0.5) ** (1 - exponent) / (exponent - 1)
    return n_arms * math.exp(-constant) * float((counts**-exponent).sum() + tail)


def test_the_exploration_rate_spends_delta_and_no_more():
    assert spent_by(rivals.exploration_rate(100, 0.01), 100) == pytest.approx(0.01, rel=1e-6)
    assert spent_by(rivals.exploration_rate(7, 0.2, exponent=2.0), 7) == pytest.approx(0.2, rel=1e-6)
    # No union over arms; no sum over times.
    assert spent_by(rivals.exploration_rate(1, 0.01), 100) > 0.5
    assert spent_by((math.log(100 / 0.01), 1.1), 100) > 0.1


def brute_threshold(x):
    """C(x) with h⁻¹ by root finding and h̃ as the least over a grid of z."""

    def inverse(y):
        return brentq(lambda u: u - math.log(u) - y, 1, 10 + 2 * y, xtol=1e-14)

    z = 1 + np.geomspace(1e-6, 0.5, 2_000_001)
    inner = (inverse(1 + x) + math.log(math.pi**2 / 3)) / 2
    return 2 * float((z * (inner - np.log(np.log(z)))).min())


@pytest.mark.parametrize("x", [0.01, 0.3, 1.0, 2.3, 4.6, 10.0, 50.0])
def test_the_threshold_of_exponential_families_is_a_minimum_over_z(x):
    assert rivals.exponential_threshold(x) == pytest.approx(brute_threshold(x), rel=1e-9)
    if x >= 10:  # Kaufmann and Koolen's approximation, better as x grows
        assert rivals.exponential_threshold(x) == pytest.approx(
            x + 4 * math.log(1 + x + math.sqrt(2 * x)), rel=0.03
        )


def test_stopping_levels_have_the_union_over_wrong_answers():
    assert 99 * math.exp(-rivals.mixture_stopping(100, 0.01).level) == pytest.approx(0.01)
    assert rivals.deviation_stopping(100, 0.01).level == pytest.approx(
        2 * brute_threshold(math.log(99 / 0.01) / 2), rel=1e-9
    )


def test_a_mixtures_regret_is_at_most_half_a_logarithm_and_log_2():
    for count in (1, 2, 5, 50, 1000):
        for successes in {0, 1, count // 3, count // 2, count}:
            regret = races.charge(float(successes), float(count), True)
            assert regret == pytest.approx(plain_charge(successes, count, True), rel=1e-9, abs=1e-9)
            assert 0 < regret <= 0.5 * math.log(count) + math.log(2) + 1e-9


def chance_of_a_wrong_stop(best, epsilon, horizon, stops):
    """Exactly: how often `stops(S_a, S_b, N)` is for a, worse by ε, at some N ≤ horizon; pulls in turn."""
    law, wrong = np.ones((1, 1)), 0.0
    chances = (best - epsilon, best)
    for count in range(1, horizon + 1):
        grown = np.zeros((count + 1, count + 1))
        for i, p in enumerate((1 - chances[0], chances[0])):
            for j, q in enumerate((1 - chances[1], chances[1])):
                grown[i : i + count, j : j + count] += p * q * law
        for (s, u), _ in np.ndenumerate(grown):
            if stops(s, u, count):
                wrong += grown[s, u]
                grown[s, u] = 0.0
        law = grown
    return wrong


def stops_by(level, charges, epsilon):
    def stops(s, u, count):
        shown = races.evidence(s / count, float(count), u / count, float(count), epsilon)
        return shown > level + charges(s, count) + charges(u, count)

    return stops


@pytest.mark.parametrize("best", [0.2, 0.5, 0.99])
@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_a_pair_of_arms_errs_with_at_most_delta_exactly(best, delta):
    epsilon = 0.1
    for stopping in (rivals.mixture_stopping(2, delta), rivals.deviation_stopping(2, delta)):
        stops = stops_by(
            stopping.level, lambda s, c, m=stopping.mixture: races.charge(float(s), float(c), m), epsilon
        )
        assert chance_of_a_wrong_stop(best, epsilon, 60, stops) <= delta


def test_thresholds_without_the_charge_for_all_times_err_too_often():
    level = math.log(1 / 0.5)
    assert chance_of_a_wrong_stop(0.5, 0.1, 60, stops_by(level, lambda s, c: 0.0, 0.1)) > 0.5


def chance_of_a_low_bound(mean, rate, horizon):
    """Exactly: how often U falls to the arm's mean or below at some count up to the horizon."""
    law, missed = np.ones(1), 0.0
    for count in range(1, horizon + 1):
        law = np.append(law * (1 - mean), 0) + np.insert(law * mean, 0, 0)
        p = np.arange(count + 1) / count
        low = (p < mean) & (count * kl(p, mean) >= rate[0] + rate[1] * math.log(count))
        missed += law[low].sum()
        law = np.where(low, 0, law)
    return missed


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
def test_an_upper_bound_misses_with_at_most_its_share_of_delta_exactly(mean):
    assert chance_of_a_low_bound(mean, rivals.exploration_rate(3, 0.6), 1000) <= 0.2
    assert chance_of_a_low_bound(mean, (math.log(3 / 0.6), 0.0), 1000) > 0.2  # no sum over times


def at_least(failures, runs):
    """A lower bound on the chance of failure that is wrong once in a million."""
    return float(beta.ppf(1e-6, failures, runs - failures + 1)) if failures else 0.0


@pytest.mark.parametrize("rival", EVERY)
def test_failures_are_at_most_delta_where_all_others_are_just_bad(rival):
    problem, epsilon, delta, runs = Bernoulli([0.6, 0.4, 0.4, 0.4]), 0.2, 0.4, 500
    wrong = ~problem.is_good(rival(problem, epsilon, delta, runs, 3)["arm"], epsilon)
    assert at_least(int(wrong.sum()), runs) <= delta


def test_no_thresholds_at_all_fail_too_often():
    means, runs = fixed([0.6, 0.4, 0.4, 0.4]), 500
    generators = [np.random.default_rng(run) for run in range(runs)]
    lucb = [races.lucb_race(means, 0.2, (math.log(1 / 0.4), 0.0), False, each)[2] for each in generators]
    assert at_least(sum(arm != 0 for arm in lucb), runs) > 0.1
    tracking = [races.tracking_race(means, 0.2, (0.0, False), False, each)[2] for each in generators]
    assert len(set(tracking)) > 1


@pytest.mark.parametrize("rival", EVERY)
def test_results_are_a_function_of_seed_and_problem(rival):
    problem = Bernoulli([0.7, 0.5, 0.3])
    table = rival(problem, 0.2, 0.1, 5, 1)
    assert list(table.columns) == ["pulls", "rounds", "arm"]
    assert table.head(3).equals(rival(problem, 0.2, 0.1, 3, 1))
    assert not table.equals(rival(problem, 0.2, 0.1, 5, 2))
    with pytest.raises(ValueError, match="problem must have Bernoulli rewards, got Gaussian"):
        rival(Gaussian([0.7, 0.5], 0.5), 0.2, 0.1, 5, 1)


def test_a_smaller_threshold_ends_the_same_race_sooner():
    problem = setup_1(10)
    late = rivals.track_and_stop_proportional(problem, 0.05, 0.05, 20, 0)
    soon = rivals.track_and_stop_mixture(problem, 0.05, 0.05, 20, 0)
    assert (soon["pulls"] <= late["pulls"]).all()
    assert soon["pulls"].mean() < late["pulls"].mean()
    assert (soon["pulls"] == 10 + 32 * (soon["rounds"] - 1)).all()
    lucb = rivals.kl_lucb(problem, 0.05, 0.05, 20, 0)
    assert (lucb["pulls"] == 10 + 2 * (lucb["rounds"] - 1)).all()
