"""Tri-BBAI and Opt-BBAI: plain loops with a bisection of their own, and what their constants can promise.

Tests with simulated errors fail by chance at most once in a million times.
"""

import math
from functools import cache

import numpy as np
import pytest
from compendium.clinical_trial.exact_fixed_design import slippage_error
from compendium.modern_rivals import batched_rivals as rivals
from compendium.shared.characteristic_time import characteristic
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest

import ebr
from ebr.theory.problems import setup_1, setup_2

CERTAIN = 1 - 1e-6


def kl(p, q):
    terms = [(p, q), (1 - p, 1 - q)]
    return sum(x * math.log(x / y) for x, y in terms if x > 0)


def halved(low, high, too_low):
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return (low + high) / 2


@cache
def weights_by_hand(means):
    """Garivier and Kaufmann's Theorem 5: T* and w* by two nested bisections."""
    best = max(means)
    others = [mean for mean in means if mean < best]
    assert len(others) == len(means) - 1

    def middle(x, mean):
        return (best + x * mean) / (1 + x)

    def weight(y, mean):  # g(x) = kl(μ_1, m) + x kl(μ_a, m) = y
        return halved(0, 1e9, lambda x: kl(best, middle(x, mean)) + x * kl(mean, middle(x, mean)) < y)

    def ratios(y):  # F(y) = Σ kl(μ_1, m_a) / kl(μ_a, m_a), which is 1 at the optimum
        places = [(middle(weight(y, mean), mean), mean) for mean in others]
        return sum(kl(best, place) / kl(mean, place) for place, mean in places)

    y = halved(0, kl(best, max(others)) * (1 - 1e-9), lambda y: ratios(y) < 1)
    parts = [1.0 if mean == best else weight(y, mean) for mean in means]
    return sum(parts) / y, [part / sum(parts) for part in parts]


@pytest.mark.parametrize("means", [[0.5, 0.6, 0.4], [0.9, 0.85], [0.3, 0.21, 0.2, 0.19, 0.18]])
def test_the_characteristic_time_of_the_best_arm_is_garivier_and_kaufmanns(means):
    time, proportions = weights_by_hand(tuple(means))
    found = characteristic(ebr.Bernoulli(means), rivals.NEARLY_EXACT)
    assert found.time == pytest.approx(time, rel=1e-6)
    assert found.proportions == pytest.approx(proportions, abs=1e-5)


def second_batch_by_hand(means, shift, delta, most):
    leader = means.index(max(means))
    moved = [mean - shift if arm == leader else mean + shift for arm, mean in enumerate(means)]
    if min(moved) <= 0 or max(moved) >= 1 or sorted(moved)[-2] >= moved[leader]:
        return [most] * len(means)
    time, proportions = weights_by_hand(tuple(moved))
    return [min(math.ceil(1.001 * share * time * math.log(1 / delta)), most) for share in proportions]


def stops_by_hand(pulls, sums, delta):
    means = [total / count for total, count in zip(sums, pulls, strict=True)]
    leader, least = means.index(max(means)), math.inf
    for arm in range(len(means)):
        if arm != leader:
            pooled = (sums[arm] + sums[leader]) / (pulls[arm] + pulls[leader])
            ratio = pulls[arm] * kl(means[arm], pooled) + pulls[leader] * kl(means[leader], pooled)
            least = min(least, ratio)
    half, total = delta / 2, sum(pulls)
    return least >= math.log(math.log(1 / half) * total**1.001 / half)


class Rewards:
    """The rewards of one run among those of several: a row of each draw."""

    def __init__(self, problem, generator, runs):
        self.means, self.generator, self.runs = problem.means, generator, runs

    def sums(self, pulls):
        """Sums of pulls (runs × arms), as lists."""
        return self.generator.binomial(np.array(pulls), self.means).tolist()


def first_stages_by_hand(problem, rewards, delta, shift):
    nats, runs, n_arms = math.log(1 / delta), rewards.runs, problem.n_arms
    first, second = math.ceil(nats**0.5), math.ceil(nats * math.log(nats))
    pulls = [[first] * n_arms for _ in range(runs)]
    sums = rewards.sums(pulls)
    shift = 1 / math.log(nats) if shift is None else shift
    more = [second_batch_by_hand([s / first for s in row], shift, delta, second) for row in sums]
    extra = rewards.sums(more)
    for run in range(runs):
        for arm in range(n_arms):
            pulls[run][arm] += more[run][arm]
            sums[run][arm] += extra[run][arm]
    return pulls, sums, [stops_by_hand(pulls[run], sums[run], delta) for run in range(runs)]


HARD_AND_EASY = [([0.9, 0.15], 1e-4, 0.05), ([0.9, 0.1], 1e-6, None), ([0.7, 0.6, 0.2], 1e-3, 0.02)]


@pytest.mark.parametrize(("means", "delta", "shift"), HARD_AND_EASY)
def test_tri_bbai_is_a_plain_loop(means, delta, shift):
    problem, runs = ebr.Bernoulli(means), 25
    frame = rivals.tri_bbai(problem, delta, runs, 3, shift)
    rewards = Rewards(problem, rivals.generator_of(f"Tri-BBAI {delta!r} {shift!r}", problem, 3), runs)
    pulls, sums, stopped = first_stages_by_hand(problem, rewards, delta, shift)
    most = math.ceil(math.log(1 / delta) ** 2)
    missing = [[0 if stopped[run] else max(most - n, 0) for n in pulls[run]] for run in range(runs)]
    extra = rewards.sums(missing)
    for run in range(runs):
        counts = [n + more for n, more in zip(pulls[run], missing[run], strict=True)]
        totals = [s + more for s, more in zip(sums[run], extra[run], strict=True)]
        means_seen = [s / n for s, n in zip(totals, counts, strict=True)]
        row = frame.iloc[run]
        assert row["pulls"] == sum(counts)
        assert row["rounds"] == (2 if stopped[run] else 3)
        assert means_seen[int(row["arm"])] == max(means_seen)
    if means[0] == 0.9:
        assert any(stopped)


def phases_by_hand(problem, rewards, delta, share):
    """Stage IV of several runs, arm by arm: the pulls and phases of each, and the arm that is left."""
    runs, n_arms = rewards.runs, problem.n_arms
    alive = [list(range(n_arms)) for _ in range(runs)]
    pulls, phases, phase = [0] * runs, [0] * runs, 0
    while any(len(left) > 1 for left in alive):
        phase += 1
        epsilon = 2**-phase / 4
        level = delta / (40 * math.pi**2 * n_arms * phase**2)
        each = math.ceil(math.log(2 / level) / (2 * share**2 * epsilon**2))
        wanted = [[each if arm in left and len(left) > 1 else 0 for arm in range(n_arms)] for left in alive]
        sums = rewards.sums(wanted)
        for run in range(runs):
            if len(alive[run]) > 1:
                pulls[run] += each * len(alive[run])
                phases[run] += 1
                best = max(sums[run][arm] / each for arm in alive[run])
                alive[run] = [arm for arm in alive[run] if sums[run][arm] / each >= best - epsilon]
    return pulls, phases, [left[0] for left in alive]


@pytest.mark.parametrize("share", [0.5, 0.125])
@pytest.mark.parametrize(("means", "delta", "shift"), HARD_AND_EASY)
def test_opt_bbai_is_a_plain_loop(means, delta, shift, share):
    problem, runs = ebr.Bernoulli(means), 25
    frame = rivals.opt_bbai(problem, delta, runs, 3, shift, share)
    generator = rivals.generator_of(f"Opt-BBAI {delta!r} {shift!r} {share!r}", problem, 3)
    rewards = Rewards(problem, generator, runs)
    pulls, _, stopped = first_stages_by_hand(problem, rewards, delta, shift)
    generator.random((runs, problem.n_arms))  # the lots of ties
    going = [run for run in range(runs) if not stopped[run]]
    rewards.runs = len(going)
    more, phases, arms = phases_by_hand(problem, rewards, delta, share)
    for place, run in enumerate(going):
        row = frame.iloc[run]
        assert row["pulls"] == sum(pulls[run]) + more[place]
        assert row["rounds"] == 2 + phases[place]
        assert row["arm"] == arms[place]
    assert (frame.loc[stopped, "rounds"] == 2).all()


def test_the_batches_at_a_hundredth_are_a_few_pulls():
    assert rivals.batch_sizes(0.01) == (3, 8, 22)
    with pytest.raises(ValueError, match="delta must lie below 1/e"):
        rivals.batch_sizes(0.5)


def union(pulls_of, n_arms, delta, share):
    """Hoeffding's chance that some mean of some phase is off by more than s ε_r."""
    return sum(
        n_arms * 2 * math.exp(-2 * pulls_of(r, n_arms, delta, share) * (share * 2**-r / 4) ** 2)
        for r in range(1, 12)
    )


@pytest.mark.parametrize("n_arms", [2, 10, 100])
@pytest.mark.parametrize("share", [0.5, 0.125])
def test_the_phases_spend_no_more_than_their_share_of_delta(n_arms, share):
    spent = union(rivals.phase_pulls, n_arms, 0.01, share)
    assert spent <= 0.01 / 240
    assert spent > 0.9 * sum(0.01 / (40 * math.pi**2 * r**2) for r in range(1, 12))  # nor much less


def test_the_quoted_constant_is_that_of_an_eighth():
    level = 0.01 / (40 * math.pi**2 * 100 * 25)
    assert rivals.phase_pulls(5, 100, 0.01, 0.125) == math.ceil(32 * 128**2 * math.log(2 / level))


def test_opt_bbai_errs_no_more_than_delta_on_close_arms():
    frame = rivals.opt_bbai(ebr.Bernoulli([0.51, 0.5, 0.5]), 0.1, 3000, 1)
    assert binomtest(int((frame["arm"] != 0).sum()), 3000).proportion_ci(CERTAIN).low <= 0.1


def test_a_phase_without_its_union_over_the_arms_is_caught():
    def planted(phase, n_arms, delta, share):
        return rivals.phase_pulls(phase, 1, delta, share)

    assert union(planted, 100, 0.01, 0.5) > 0.01 / 240


def test_means_off_by_four_times_the_resolution_are_caught():
    frame = rivals.opt_bbai(ebr.Bernoulli([0.51, 0.5, 0.5]), 0.1, 3000, 1, share=4.0)
    assert binomtest(int((frame["arm"] != 0).sum()), 3000).proportion_ci(CERTAIN).low > 0.1


def test_a_planted_threshold_without_its_logarithm_stops_runs_that_the_loop_does_not(monkeypatch):
    problem = ebr.Bernoulli([0.9, 0.15])
    right = rivals.tri_bbai(problem, 1e-4, 8, 3, 0.05)["rounds"]  # of 40 runs 23 are stopped: of 8 some are
    monkeypatch.setattr(
        rivals, "stopping_threshold", lambda pulls, delta: np.full(len(pulls), -np.log(delta))
    )
    assert (rivals.tri_bbai(problem, 1e-4, 8, 3, 0.05)["rounds"] < right).any()


def test_tri_bbai_on_two_close_arms_errs_as_often_as_twenty_two_pulls_each():
    problem = ebr.Bernoulli([0.9, 0.9 - 0.8 / 99])
    frame = rivals.tri_bbai(problem, 0.01, 20000, 1)
    assert (frame["pulls"] == 44).all()
    exact = slippage_error(22, problem.means[:1], problem.means[1:], 2)[0]
    interval = binomtest(int((frame["arm"] != 0).sum()), 20000).proportion_ci(CERTAIN)
    assert interval.low <= exact <= interval.high
    assert exact > 0.4  # with δ = 0.01


@pytest.mark.parametrize("problem", [setup_1(100), setup_2(100)])
def test_on_the_setups_no_run_stops_early_and_no_check_is_due(problem):
    frame = rivals.opt_bbai(problem, 0.01, 200, 0)
    assert (frame["rounds"] > 2).all()
    assert frame["checks"].sum() == 0
    tri = rivals.tri_bbai(problem, 0.01, 200, 0)
    assert (tri["rounds"] == 3).all()
    assert (tri["pulls"] == 2200).all()
    assert binomtest(int((tri["arm"] != 0).sum()), 200).proportion_ci(CERTAIN).low > 0.01


def test_checks_become_due_after_many_phases():
    frame = rivals.opt_bbai(ebr.Bernoulli([0.5005, 0.5]), 0.3, 20, 0)
    assert (frame["checks"] > 0).all()


@pytest.mark.parametrize("problem", [setup_1(100), setup_2(100), ebr.Bernoulli([0.2, 0.7, 0.5])])
def test_the_chernoff_rate_is_the_nearest_common_mean(problem):
    second, best = np.sort(problem.means)[-2:]
    found = minimize_scalar(lambda p: kl(p, best) + kl(p, second), bounds=(second, best), method="bounded")
    assert rivals.chernoff_rate(problem) == pytest.approx(found.fun, rel=1e-6)


def test_results_are_those_of_seed_and_problem():
    problem = setup_1(20)
    for play in (rivals.tri_bbai, rivals.opt_bbai):
        first = play(problem, 0.01, 50, 5)
        assert list(first.columns[:3]) == ["pulls", "rounds", "arm"]
        assert first.equals(play(problem, 0.01, 50, 5))
        assert not first.equals(play(problem, 0.01, 50, 6))
    with pytest.raises(ValueError, match="problem must be Bernoulli"):
        rivals.tri_bbai(ebr.Gaussian([0.6, 0.5], 0.5), 0.1, 1, 0)
