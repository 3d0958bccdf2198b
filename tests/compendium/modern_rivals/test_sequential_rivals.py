"""The sequential rivals against plain loops, their thresholds against sums, integrals and exact chances."""

import math
from unittest.mock import patch

import numpy as np
import pytest
from compendium.modern_rivals import comparison
from compendium.modern_rivals import sequential_races as races
from compendium.modern_rivals import sequential_rivals as rivals
from compendium.shared.characteristic_time import characteristic
from oracles import kl
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import xlogy
from scipy.stats import beta, binomtest

from ebr.theory.problems import Bernoulli, setup_1

PRIORS = [(0.5, 0.5), (1.0, 1.0), (5.0, 1.0)]
PUBLISHED = [("LUCB", None), ("T&S", None), ("T&S, forced", None), ("EB-TC", None)]
EVERY = PUBLISHED + [(name, prior) for name in rivals.RULES for prior in (PRIORS[0], PRIORS[2])]
SMALL = [(0.8, 0.6, 0.55, 0.2), (0.5, 0.5, 0.3), (0.97, 0.99), (0.02, 0.01, 0.1)]


class Watched(list):
    """Means that record in which order arms are pulled."""

    def __init__(self, means):
        super().__init__(means)
        self.pulled = []

    def __getitem__(self, arm):
        self.pulled.append(int(arm))
        return super().__getitem__(arm)


def upper(p, level):
    """The q above p where kl(p, q) reaches the level, or 1 if q would round to 1."""
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


def plain_evidence(a, b, epsilon):
    """inf_x N_a kl(p, x) + N_b kl(q, x + ε), by the zero of its derivative, and the first term there."""
    (s, n), (u, m) = a, b
    p, q = s / n, u / m
    if q >= p + epsilon:
        return 0.0, 0.0
    low, high = max(q - epsilon, 0), min(p, 1 - epsilon)

    def slope(x):
        return n * (x - p) * (x + epsilon) * (1 - x - epsilon) + m * (x + epsilon - q) * x * (1 - x)

    x = (
        brentq(slope, low + 1e-15, high - 1e-15, xtol=1e-15)
        if slope(low + 1e-15) < 0 < slope(high - 1e-15)
        else high
    )
    return n * kl(p, x) + m * kl(q, x + epsilon), n * kl(p, x)


def plain_charge(successes, count, stopping, clock=1):
    """What the threshold charges. A mixture predicts that the next reward is 1 with (S + u)/(N + u + v)."""
    if stopping.kind == races.CLOCK:
        return stopping.first * math.log(clock)
    if stopping.kind == races.DEVIATION:
        return 3 * math.log(1 + math.log(count))
    first, second = stopping.first, stopping.second
    predicted = [(i + first) / (i + first + second) for i in range(successes)]
    predicted += [(i + second) / (successes + i + first + second) for i in range(count - successes)]
    p = successes / count
    return xlogy(successes, p) + xlogy(count - successes, 1 - p) - sum(map(math.log, predicted))


def proportions(means, epsilon, start=math.inf, places=None):
    """w* by the compiled search, from given starting values if there are any."""
    places = np.full(len(means), -1.0) if places is None else places
    weights = np.empty(len(means))
    races.proportions(np.array(means), epsilon, start, places, weights)
    return weights


def plain_tracked(weights, counts, forced):
    t = sum(counts)
    if forced and min(counts) < math.sqrt(t) - len(counts) / 2:
        return counts.index(min(counts))
    if forced:
        return first_largest([t * w - c for w, c in zip(weights, counts, strict=True)])
    return first_largest([-c / w for w, c in zip(weights, counts, strict=True)])


def plain_race(means, epsilon, name, stopping, generator):
    """A race from its description. All but w*, which has a test of its own, is computed before every pull."""
    n, pulled, rounds, horizon, renewal, turns = len(means), [], 1, 1, 0, {}
    successes, counts = [0] * n, [0] * n
    for arm in range(n):
        pull(means, arm, successes, counts, generator, pulled)
    while True:
        horizon = rounds + rounds // 50 if rounds > horizon else horizon
        arms = list(zip(successes, counts, strict=True))
        charges = [plain_charge(s, c, stopping, horizon) for s, c in arms]
        levels = [(stopping.level + charge) / count for charge, count in zip(charges, counts, strict=True)]
        leader = first_largest([s / c for s, c in arms])
        others = [arm for arm in range(n) if arm != leader]
        shown = {b: plain_evidence(arms[leader], arms[b], epsilon)[0] for b in others}
        if name == "LUCB":
            highs = {b: upper(successes[b] / counts[b], levels[b]) for b in others}
            low = 1 - upper(1 - successes[leader] / counts[leader], levels[leader])
            rival = others[first_largest([highs[b] for b in others])]
            over = highs[rival] - low <= epsilon
        else:
            over = all(shown[b] > stopping.level + charges[leader] + charges[b] for b in others)
        if over:
            return pulled, (len(pulled), rounds, leader)
        if name == "LUCB":
            chosen = [leader, rival]
        elif name.startswith("T&S"):
            if len(pulled) >= renewal:
                weights = proportions((np.array(successes) + 0.5) / (np.array(counts) + 1), epsilon)
                renewal = len(pulled) + len(pulled) // 25
            chosen = [plain_tracked(weights, counts, "forced" in name)]
        else:
            deficit = [charges[b] * (name == "Top-Two") - shown[b] for b in others]
            rival = others[first_largest(deficit)]
            z, own = plain_evidence(arms[leader], arms[rival], epsilon)
            wanted, had = turns.get((leader, rival), (0.0, 0))
            wanted += 0.5 if "half" in name else 1 - round(own / z * 1024) / 1024
            chosen = [rival if had <= wanted else leader]  # N_C ≤ (1 − β̄) T, as printed
            turns[leader, rival] = (wanted, had + (chosen[0] == rival))
        for arm in chosen:
            pull(means, arm, successes, counts, generator, pulled)
        rounds += 1


@pytest.mark.parametrize(("name", "prior"), EVERY)
@pytest.mark.parametrize("means", SMALL)
def test_every_rule_makes_the_pulls_of_a_plain_loop(means, name, prior):
    rule, lucb = rivals.RULES[name], name == "LUCB"
    if prior is not None:
        stopping = rivals.mixture_stopping(len(means) + lucb, 0.1, prior)
    else:
        stopping = (rivals.clock_stopping if lucb else rivals.deviation_stopping)(len(means), 0.1)
    pulled, expected = plain_race(means, 0.2, name, stopping, np.random.default_rng(5))
    watched = Watched(means)
    found = races.race.py_func(watched, 0.2, rule, stopping, np.random.default_rng(5))
    assert watched.pulled == pulled
    assert tuple(found) == expected
    fixed = Bernoulli(means).means  # read-only: for a writable array numba would compile races again
    assert races.race(fixed, 0.2, rule, stopping, np.random.default_rng(5)) == expected


def two_arms(a, b, epsilon, place=0.3):
    """What a race knows of two arms with these successes and counts."""
    arms = np.zeros((races.ROWS, 2))
    for arm, (success, count) in enumerate((a, b)):
        arms[[races.COUNT, races.SUM, races.MEAN], arm] = count, success, success / count
        arms[races.LIKELIHOOD, arm] = races.log_likelihood(success, count)
        arms[races.PLACE, arm] = place
        races.settle(arms, arm, epsilon)
    return arms


def test_evidence_is_above_its_bound_from_any_place_and_at_it_from_its_own():
    generator = np.random.default_rng(8)
    for _ in range(300):
        (n, m), epsilon = generator.integers(1, 300, 2), generator.uniform(0.01, 0.3)
        a, b = (
            (float(generator.integers(0, n + 1)), float(n)),
            (float(generator.integers(0, m + 1)), float(m)),
        )
        arms = two_arms(a, b, epsilon, generator.uniform(0, 1 - epsilon))
        if b[0] / b[1] >= a[0] / a[1] + epsilon:
            continue
        races.bounded(arms, 0, False)
        before = -arms[races.BOUND, 1]
        z = races.evidence(arms, 0, 1, epsilon)
        assert z == pytest.approx(plain_evidence(a, b, epsilon)[0], abs=1e-9)
        assert before <= z + 1e-9
        races.bounded(arms, 0, False)
        if 1e-6 < arms[races.PLACE, 1] < 1 - epsilon - 1e-6:
            assert -arms[races.BOUND, 1] == pytest.approx(z, abs=1e-6)


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
            # The result does not depend on where the search starts, even at impossible places.
            elsewhere = generator.uniform(-0.2, 1.2, len(means))
            assert proportions(means, epsilon, -3.0, elsewhere).tolist() == found.tolist()


@pytest.mark.parametrize(("rule", "paid"), [("LUCB", 3), ("Top-Two", 2)])
def test_lucb_pays_for_all_arms_and_top_two_for_wrong_answers_alone(rule, paid):
    with patch.object(rivals, "mixture_stopping", side_effect=rivals.mixture_stopping) as made:
        rivals.sequential(Bernoulli([0.9, 0.1, 0.1]), 0.3, 0.1, 1, 1, rule)
    assert made.call_args.args[0] - 1 == paid  # the threshold has the logarithm of this number over δ


@pytest.mark.parametrize("x", [0.01, 0.1, 0.3, 1.0, 4.6, 50.0])
def test_the_threshold_of_exponential_families_is_a_minimum_over_z(x):
    assert rivals.exponential_threshold(x) == pytest.approx(comparison._threshold(x), rel=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
def test_a_mixtures_regret_is_what_an_integral_says(prior):
    stopping = rivals.mixture_stopping(2, 0.1, prior)
    for count in (1, 2, 5, 50, 1000):
        for successes in {0, 1, count // 3, count // 2, count}:
            regret = races.charge(float(successes), float(count), stopping, 1)
            assert regret == pytest.approx(plain_charge(successes, count, stopping), rel=1e-9, abs=1e-9)
            if count <= 50:
                top = successes / count
                mixed = quad(
                    lambda p, s=successes, f=count - successes, m=top: (
                        math.exp(xlogy(s, p) + xlogy(f, 1 - p) - xlogy(s, m) - xlogy(f, 1 - m))
                        * beta.pdf(p, *prior)
                    ),
                    0,
                    1,
                )[0]
                assert math.exp(-regret) == pytest.approx(mixed, rel=1e-6)
            if prior == PRIORS[0]:
                assert 0 < regret <= 0.5 * math.log(count) + math.log(2) + 1e-9


@pytest.mark.parametrize("prior", [*PRIORS, (0.3, 7.0)])
def test_a_mixture_is_a_law_so_that_its_likelihood_ratio_has_mean_one(prior):
    stopping = rivals.mixture_stopping(2, 0.1, prior)
    assert comparison.mixture_mean(stopping, 60) == pytest.approx(1, abs=1e-9)


def chance_of_a_wrong_stop(best, epsilon, horizon, stopping):
    """The exact probability that the worse of two arms is returned within `horizon` pulls of each."""
    law, wrong = np.ones((1, 1)), 0.0
    chances = (best - epsilon, best)
    for count in range(1, horizon + 1):
        grown = np.zeros((count + 1, count + 1))
        for i, p in enumerate((1 - chances[0], chances[0])):
            for j, q in enumerate((1 - chances[1], chances[1])):
                grown[i : i + count, j : j + count] += p * q * law
        charges = [races.charge(float(s), float(count), stopping, 1) for s in range(count + 1)]
        for s, u in np.ndindex(grown.shape):
            shown = races.evidence(two_arms((s, count), (u, count), epsilon), 0, 1, epsilon)
            if shown > stopping.level + charges[s] + charges[u]:
                wrong += grown[s, u]
                grown[s, u] = 0.0
        law = grown
    return wrong


@pytest.mark.parametrize("best", [0.2, 0.99])
def test_a_pair_of_arms_errs_with_at_most_delta_exactly(best):
    proved = [rivals.mixture_stopping(2, 0.5, prior) for prior in PRIORS]
    for stopping in (*proved, rivals.deviation_stopping(2, 0.5)):
        assert chance_of_a_wrong_stop(best, 0.1, 25, stopping) <= 0.5
    # Planted error: the likelihood ratio without the regret.
    assert chance_of_a_wrong_stop(best, 0.1, 70, proved[0]._replace(first=0.0, kind=races.CLOCK)) > 0.5


@pytest.mark.parametrize(("name", "prior"), EVERY)
def test_failures_are_at_most_delta_where_all_others_are_just_bad(name, prior):
    problem, epsilon, delta, runs = Bernoulli([0.6, 0.4, 0.4, 0.4]), 0.2, 0.4, 200
    wrong = ~problem.is_good(rivals.sequential(problem, epsilon, delta, runs, 3, name, prior)["arm"], epsilon)
    assert binomtest(int(wrong.sum()), runs, delta, alternative="greater").pvalue > 1e-6
