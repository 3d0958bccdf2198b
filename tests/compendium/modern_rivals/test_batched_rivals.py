"""Tri-BBAI and Opt-BBAI against plain loops, and the guarantee of their constants.

A test with simulated errors fails by chance at most once in a million times.
"""

import math

import numpy as np
import pytest
from compendium.modern_rivals import batched_rivals as rivals
from compendium.shared.characteristic_time import characteristic
from oracles import kl
from scipy.stats import binomtest

import ebr
from ebr.theory.problems import setup_1, setup_2

CERTAIN = 1 - 1e-6


def second_batch_by_hand(means, shift, delta, most):
    leader = means.index(max(means))
    moved = [mean - shift if arm == leader else mean + shift for arm, mean in enumerate(means)]
    if min(moved) <= 0 or max(moved) >= 1 or sorted(moved)[-2] >= moved[leader]:
        return [most] * len(means)
    time, proportions = characteristic(ebr.Bernoulli(moved), rivals.NEARLY_EXACT)
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


def sums_of(problem, generator, pulls):
    """Sums of rewards for these pulls (runs × arms), as lists."""
    return generator.binomial(np.array(pulls), problem.means).tolist()


def first_stages_by_hand(problem, generator, runs, delta, shift):
    nats, n_arms = math.log(1 / delta), problem.n_arms
    first, second = math.ceil(nats**0.5), math.ceil(nats * math.log(nats))
    pulls = [[first] * n_arms for _ in range(runs)]
    sums = sums_of(problem, generator, pulls)
    shift = 1 / math.log(nats) if shift is None else shift
    more = [second_batch_by_hand([s / first for s in row], shift, delta, second) for row in sums]
    extra = sums_of(problem, generator, more)
    for run in range(runs):
        for arm in range(n_arms):
            pulls[run][arm] += more[run][arm]
            sums[run][arm] += extra[run][arm]
    return pulls, sums, [stops_by_hand(pulls[run], sums[run], delta) for run in range(runs)]


HARD_AND_EASY = [([0.9, 0.15], 1e-4, 0.05), ([0.9, 0.1], 1e-6, None), ([0.7, 0.6, 0.2], 1e-3, 0.02)]


@pytest.mark.parametrize(("means", "delta", "shift"), HARD_AND_EASY)
def test_tri_bbai_is_a_plain_loop(means, delta, shift):
    problem, runs = ebr.Bernoulli(means), 6
    frame = rivals.tri_bbai(problem, delta, runs, 3, shift)
    generator = rivals.generator_of(f"Tri-BBAI {delta!r} {shift!r}", problem, 3)
    pulls, sums, stopped = first_stages_by_hand(problem, generator, runs, delta, shift)
    most = math.ceil(math.log(1 / delta) ** 2)
    missing = [[0 if stopped[run] else max(most - n, 0) for n in pulls[run]] for run in range(runs)]
    extra = sums_of(problem, generator, missing)
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


def phases_by_hand(problem, generator, runs, delta, share):
    """Stage IV of several runs: the pulls, the phases and the remaining arm of each."""
    n_arms = problem.n_arms
    alive = [list(range(n_arms)) for _ in range(runs)]
    pulls, phases, phase = [0] * runs, [0] * runs, 0
    while any(len(left) > 1 for left in alive):
        phase += 1
        epsilon = 2**-phase / 4
        level = delta / (40 * math.pi**2 * n_arms * phase**2)
        each = math.ceil(math.log(2 / level) / (2 * share**2 * epsilon**2))
        wanted = [[each if arm in left and len(left) > 1 else 0 for arm in range(n_arms)] for left in alive]
        sums = sums_of(problem, generator, wanted)
        for run in range(runs):
            if len(alive[run]) > 1:
                pulls[run] += each * len(alive[run])
                phases[run] += 1
                best = max(sums[run][arm] / each for arm in alive[run])
                alive[run] = [arm for arm in alive[run] if sums[run][arm] / each >= best - epsilon]
    return pulls, phases, [left[0] for left in alive]


@pytest.mark.parametrize(("means", "delta", "shift"), HARD_AND_EASY)
def test_opt_bbai_is_a_plain_loop(means, delta, shift):
    problem, runs, share = ebr.Bernoulli(means), 6, 0.125
    frame = rivals.opt_bbai(problem, delta, runs, 3, shift, share)
    generator = rivals.generator_of(f"Opt-BBAI {delta!r} {shift!r} {share!r}", problem, 3)
    pulls, _, stopped = first_stages_by_hand(problem, generator, runs, delta, shift)
    generator.random((runs, problem.n_arms))  # lots that break ties
    going = [run for run in range(runs) if not stopped[run]]
    more, phases, arms = phases_by_hand(problem, generator, len(going), delta, share)
    for place, run in enumerate(going):
        row = frame.iloc[run]
        assert row["pulls"] == sum(pulls[run]) + more[place]
        assert row["rounds"] == 2 + phases[place]
        assert row["arm"] == arms[place]
    assert (frame.loc[stopped, "rounds"] == 2).all()


def test_the_batches_at_a_hundredth_are_a_few_pulls():
    assert rivals.batch_sizes(0.01) == (3, 8, 22)


@pytest.mark.parametrize("n_arms", [2, 100])
@pytest.mark.parametrize("share", [0.5, 0.125])
def test_the_phases_spend_no_more_than_their_share_of_delta(n_arms, share):
    pulls = [rivals.phase_pulls(r, n_arms, 0.01, share) for r in range(1, 12)]
    # Hoeffding's bound on the probability that any mean of any phase is off by more than s ε_r.
    off = [math.exp(-2 * each * (share * 2**-r / 4) ** 2) for r, each in enumerate(pulls, 1)]
    spent = 2 * n_arms * sum(off)
    assert spent <= 0.01 / 240
    assert spent > 0.9 * sum(0.01 / (40 * math.pi**2 * r**2) for r in range(1, 12))  # but not much less


@pytest.mark.parametrize("problem", [setup_1(100), setup_2(100)])
def test_on_the_setups_no_run_stops_early(problem):
    frame = rivals.opt_bbai(problem, 0.01, 200, 0)
    assert (frame["rounds"] > 2).all()
    tri = rivals.tri_bbai(problem, 0.01, 200, 0)
    assert (tri["rounds"] == 3).all()
    assert (tri["pulls"] == 2200).all()
    assert binomtest(int((tri["arm"] != 0).sum()), 200).proportion_ci(CERTAIN).low > 0.01
