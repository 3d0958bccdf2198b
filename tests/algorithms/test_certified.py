"""Certified EBR: races on every path, at hostile truths and with a control, and designs."""

import itertools
import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from compendium.clinical_trial.exact_selection import binomial_count
from oracles import CertifiedPairs, Rewards, all_paths, certified_race, play

import ebr
from ebr.algorithms.certified import _Reading
from ebr.algorithms.game import advance
from ebr.simulation.designs import expected_truths
from ebr.theory.checker import largest_failure

SMALL = ebr.CertifiedElasticBatchRacing(3, (2, 3, 4), (0.8, 0.7), 0.3, 0.2, pruning=0.9, floor=0.7)
DESIGN = ebr.certified_design(3, 4, 0.25, 0.1, runs=400)


class Order:
    """A generator whose lots put the arms in a given order."""

    def __init__(self, order):
        self.order = np.array(order)

    def random(self, shape):
        return np.broadcast_to(self.order / (1 + len(self.order)), shape)


def every_table(n_arms, pulls):
    """Every table of 0/1 rewards (replicates × arms × pulls), and the number of ones of each arm."""
    paths, ones = all_paths(pulls)
    which = np.array(list(itertools.product(range(len(paths)), repeat=n_arms)))
    return paths[which], ones[which]


@pytest.mark.parametrize(
    "race", [SMALL, replace(SMALL, pruning=1.2), replace(SMALL, control=1), replace(SMALL, looks=(1, 2, 4))]
)
def test_on_every_path_it_is_the_plain_loop(race):
    tables, _ = every_table(3, 4)
    for order in ((0, 1, 2), (2, 0, 1)):
        _, arms = play(race, Rewards(tables), generator=Order(order))
        assert arms.tolist() == [certified_race(table, race, order) for table in tables]


@pytest.mark.parametrize("pruning", [0.9, 0.3])
@pytest.mark.parametrize("gaps", [(0.3, 0.3), (0.0, 0.3), (0.1, 0.3), (0.3, 0.5), (0.31, 0.2)])
def test_on_every_path_it_fails_no_more_often_than_its_bound(gaps, pruning):
    tables, ones = every_table(3, 4)
    orders, race = list(itertools.permutations(range(3))), replace(SMALL, pruning=pruning)
    arms = np.array([play(race, Rewards(tables), generator=Order(order))[1] for order in orders])
    oracle = CertifiedPairs(race.looks, race.boundaries, 0.3, pruning, 0.7)
    for best in np.linspace(max(gaps), 1, 9):
        rates = np.array([best, *(best - gap for gap in gaps)])
        masses = (rates**ones * (1 - rates) ** (4 - ones)).prod(axis=1)
        wrong = ((best - rates)[arms] >= 0.3 - 1e-12).mean(axis=0)
        assert masses @ wrong <= oracle.failure(3, best, best, 3) + 1e-12


def test_a_design_is_certified_twice_and_is_data():
    race, found = DESIGN.race, DESIGN.certificate
    assert found.holds
    assert race.deadline <= 4
    assert largest_failure(asdict(race), 3) <= 0.1
    read = json.loads(json.dumps(asdict(DESIGN)))
    assert ebr.CertifiedElasticBatchRacing(**read["race"]) == race
    assert len(read["certificate"]["cells"]) == len(found.cells)
    assert len(repr(DESIGN)) < 1000  # without thousands of cells
    assert DESIGN.truths == expected_truths(3, 0.25)
    assert race.certificate() == found
    assert not replace(race, n_arms=6).certificate().holds
    assert not replace(race, boundaries=[0.8 * each for each in race.boundaries]).certificate().holds


def hostile_truths(epsilon, n_arms, number):
    """Rates near 0 and 1, with rivals that tie with the best or are about ε worse."""
    generator = np.random.default_rng(27)
    for _ in range(number):
        best = generator.choice(
            [epsilon, 1.0, generator.uniform(epsilon, 1), 1 - generator.exponential(0.02)]
        )
        best = max(best, epsilon)
        gaps = generator.choice([0.0, epsilon, epsilon, 0.98 * epsilon, 1.2 * epsilon], size=n_arms - 1)
        yield np.array([best, *np.maximum(best - gaps, 0)])


@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_at_hostile_truths_it_fails_with_delta_at_most(delta):
    race = DESIGN.race if delta == 0.1 else ebr.certified_design(3, 3, 0.25, 0.5, runs=200).race
    runs, most = 4000, 0.0
    for means in hostile_truths(0.25, 3, 100):
        found = ebr.simulate(race, ebr.Bernoulli(means), runs=runs, seed=5)
        failed = (means.max() - means[found.arm] >= 0.25 - 1e-12).mean()
        # Six standard errors: a false alarm in a million tests, for all truths together.
        assert failed <= delta + 6 * math.sqrt(delta * (1 - delta) / runs)
        most = max(most, failed)
    assert most > 0.5 * delta  # and much of δ is used


def test_the_objectives_and_truths_are_heeded():
    hard = [(0.625, 0.375, 0.375)]
    for_hard = ebr.certified_design(3, 4, 0.25, 0.1, truths=hard, runs=4000)
    assert for_hard.subjects[0] <= 1.02 * DESIGN.subjects[0]
    least = ebr.certified_design(3, 4, 0.25, 0.1, objective="most", runs=200)
    assert least.race.looks[-1] <= DESIGN.race.looks[-1] + 1
    with pytest.raises(ValueError, match=r"^objective must be one of 'mean', 'worst', 'most', got 'best'$"):
        ebr.certified_design(3, 4, 0.25, 0.1, objective="best")


def test_with_one_round_it_is_the_exact_fixed_design_but_for_what_cells_need():
    design = ebr.certified_design(3, 1, 0.25, 0.1)
    assert design.race.boundaries == ()
    exact = binomial_count(3, 0.25, 0.1)
    assert exact <= design.race.looks[0] <= 1.1 * exact + 1


def test_too_many_rewards_are_refused_and_another_race_is_named():
    for make in (
        lambda: ebr.certified_design(5, 6, 0.01, 0.05),
        lambda: ebr.CertifiedElasticBatchRacing(5, (6000,), (), 0.01, 0.05),
    ):
        with pytest.raises(ValueError, match=r"5,000 .* use PausingElasticBatchRacing or Staked"):
            make()
    with pytest.raises(ValueError, match=r"^n_arms must be at most 3, as certified, got 4$"):
        next(SMALL.play(4))
    with pytest.raises(ValueError, match=r"^truths must have n_arms = 3 means each, got \(0\.5, 0\.4\)$"):
        ebr.certified_design(3, 4, 0.25, 0.1, truths=[[0.5, 0.4]])
    with pytest.raises(ValueError, match=r"^control must lie in 0 … 1, the arms' numbers, got 2$"):
        next(replace(SMALL, control=2).play(2))
    assert "permit rewards in blocks" in SMALL.objection("blocks")
    assert [SMALL.objection(each) for each in ("control", "missing", "stopping")] == [None] * 3


def test_a_control_is_recommended_only_if_no_arm_is_better_by_the_margin():
    race = ebr.certified_design(3, 4, 0.25, 0.1, shifts=(0.4,), runs=200).race
    race = replace(race, control=0, margin=0.4)
    assert largest_failure(asdict(race), 3) <= 0.1
    runs, chance = 20_000, 6 * math.sqrt(0.1 * 0.9 / 20_000)
    for control, best in ((0.1, 0.5), (0.5, 0.9), (0.3, 0.7), (0.0, 0.4), (0.6, 1.0)):
        found = ebr.simulate(race, ebr.Bernoulli([control, best, control]), runs=runs, seed=3)
        assert (found.arm != 1).mean() <= 0.1 + chance
    futile = ebr.simulate(race, ebr.Bernoulli([0.5, 0.5, 0.5]), runs=2000, seed=3)
    alone = ebr.simulate(replace(race, control=None, margin=None), ebr.Bernoulli([0.5] * 3), 2000, seed=3)
    assert futile.pulls.mean() < alone.pulls.mean()
    assert (futile.arm == 0).mean() > 0.5


@pytest.mark.parametrize("rewards", ["Bernoulli", "Gaussian"])
def test_a_race_that_is_stopped_says_within_what_its_leader_is(rewards):
    race = ebr.CertifiedElasticBatchRacing(
        2, (50, 100, 200), (2.2, 2.1), 0.1, 0.1, rewards=rewards, shifts=(0.2, 0.3)
    )
    near, far, none = race.within(0, [25, 25]), race.within(0, [5, 40]), race.within(1, [50])
    assert race.within(1, [49, 50]) <= near
    assert (far, none) == (0.1, 0.1)
    if rewards == "Gaussian":  # ε′ = behind + c σ √(2/b)
        assert race.within(0, [25, 24.9]) == pytest.approx(0.3, abs=0.1)
        assert replace(race, shifts=()).within(0, [25, 24]) == pytest.approx(-0.02 + 2.2 * 0.5 * 0.2)
    else:
        assert near == 0.3
        assert replace(race, shifts=()).within(0, [25, 25]) == math.inf


def test_gaussian_designs_keep_delta():
    design = ebr.certified_design(4, 5, 0.2, 0.1, "Gaussian", 1.0, runs=500)
    assert design.certificate.holds
    runs = 20_000
    for others in ([0.0, 0.0, 0.0], [0.2, 0.0, 0.0], [0.01, 0.15, 0.0]):
        found = ebr.simulate(design.race, ebr.Gaussian([0.2, *others], 1.0), runs=runs, seed=2)
        assert 1 - found.correct(0.2).mean() <= 0.1 + 6 * math.sqrt(0.09 / runs)


def test_a_certified_race_that_is_stopped_is_within_what_it_says():
    race = ebr.CertifiedElasticBatchRacing(
        3, (20, 40, 80), (2.4, 2.2), 0.1, 0.1, rewards="Bernoulli", shifts=(0.3, 0.5)
    )
    means, generator = np.array([0.7, 0.45, 0.35]), np.random.default_rng(1)
    game = race.play_lossy(3, 2000, generator=generator)
    standing, false, said = next(game), np.zeros(2000, dtype=bool), 0
    assert (standing.arms == -1).all()
    while True:
        running = standing.pulls.any(axis=1)
        gap = means.max() - means[standing.arms]
        false |= running & (standing.arms >= 0) & (gap >= standing.within)
        said += int(np.isfinite(standing.within[running]).sum())
        sums = generator.binomial(standing.pulls, means).astype(float)
        turn = advance(game, (standing.pulls, sums))
        if turn.pulls is None:
            break
        standing = turn.pulls
    assert said > 500
    assert false.mean() <= 0.1


def lossy(race, means, keep, runs, seed):
    """Arms and `within` of races with normal rewards; keep(round, pulls, generator) of them come in."""
    generator = np.random.default_rng(seed)
    game = race.play_lossy(len(means), runs, generator=generator)
    standing, t = next(game), 0
    while True:
        counts = keep(t, standing.pulls, generator)
        noise = race.sigma * np.sqrt(counts) * generator.standard_normal(counts.shape)
        turn, t = advance(game, (counts, counts * np.array(means) + noise)), t + 1
        if turn.pulls is None:
            return turn.arms.arms, turn.arms.within
        standing = turn.pulls


@pytest.mark.parametrize("control", [None, 1])
def test_with_rewards_missing_it_is_the_plain_loop_on_those_that_come_in(control, monkeypatch):
    race, generator = replace(SMALL, control=control), np.random.default_rng(3)
    seen = set()
    for table in generator.integers(0, 2, (400, 3, 12)):
        # Rewards are read in a known order instead of a random one; arms are read in turn.
        read, arms = np.zeros(3, dtype=int), itertools.cycle(range(3))

        def written(self, wanted, count, total, table=table, read=read, arms=arms):
            arm = next(arms)
            read[arm] += wanted
            return table[arm, read[arm] - wanted : read[arm]].sum()

        monkeypatch.setattr(_Reading, "_first", written)
        order = generator.permutation(3)
        game, came = race.play_lossy(3, generator=Order(order)), np.zeros(3, dtype=int)
        turn, t = advance(game), 0
        while turn.pulls is not None:
            pulls = turn.pulls.pulls[0]
            counts = pulls if t == 2 else generator.binomial(pulls, 0.7)  # in the last round all come in
            ends = zip(table, came, counts, strict=True)
            sums = [row[start : start + number].sum() for row, start, number in ends]
            came, t = came + counts, t + 1
            turn = advance(game, (counts[None], np.array([sums], dtype=float)))
        assert turn.arms.arms[0] == certified_race(table, race, order)
        assert turn.arms.within[0] == race.epsilon
        seen.add((turn.arms.arms[0], t))
    assert len(seen) > 3


@pytest.mark.parametrize("rewards", ["Bernoulli", "Gaussian"])
def test_rewards_that_came_are_read_in_a_random_order(rewards):
    # The first 5 of 12 independent rewards have the law of 5 rewards: mean and variance, six standard errors.
    race = ebr.CertifiedElasticBatchRacing(2, (5, 12), (2.0,), 0.3, 0.2, rewards=rewards)
    generator, runs = np.random.default_rng(8), 40_000
    reading = _Reading(race, 2, None, generator)
    normal = 12 * 0.3 + 0.5 * math.sqrt(12) * generator.standard_normal(runs)
    sums = generator.binomial(12, 0.3, runs) if rewards == "Bernoulli" else normal
    first = np.array([reading._first(5, 12, total) for total in sums])
    variance = 5 * (0.3 * 0.7 if rewards == "Bernoulli" else 0.25)
    assert first.mean() == pytest.approx(1.5, abs=6 * math.sqrt(variance / runs))
    assert first.var() == pytest.approx(variance, rel=6 * math.sqrt(2 / runs))


def test_losses_at_random_cost_normal_rewards_and_not_the_promise():
    race, means, runs = (
        ebr.certified_design(3, 3, 0.25, 0.1, "Gaussian", runs=200).race,
        [0.62, 0.37, 0.37],
        3000,
    )
    without = (ebr.simulate(race, ebr.Gaussian(means, 0.5), runs=20_000, seed=1).arm == 0).mean()
    for share in (0.7, [0.5, 1.0, 1.0]):  # 30 % are lost, or half of the best arm's
        arms, within = lossy(race, means, lambda t, pulls, lots, p=share: lots.binomial(pulls, p), runs, 1)
        whole = within == race.epsilon
        assert whole.mean() > 0.8
        # Right as often as the race without losses; errors have δ at most. Six standard errors.
        assert (arms[whole] == 0).mean() == pytest.approx(without, abs=0.06)
        assert (np.array(means).max() - np.array(means)[arms] >= within).mean() <= 0.1 + 0.033
    arms, within = lossy(race, means, lambda t, pulls, generator: pulls * (t < race.deadline - 1), runs, 1)
    assert (within >= race.epsilon).all()
    assert (within > race.epsilon).any()  # races that needed the lost last round say so
    arms, within = lossy(race, means, lambda t, pulls, generator: 0 * pulls, 2, 1)
    assert (arms.tolist(), within.tolist()) == ([-1, -1], [math.inf] * 2)


def test_an_arm_of_which_no_reward_came_is_not_recommended():
    race = ebr.CertifiedElasticBatchRacing(3, (50, 100), (2.5,), 0.3, 0.05, rewards="Gaussian")
    game = race.play_lossy(3)
    next(game)
    standing = game.send((np.array([[10, 0, 10]]), np.array([[-5.0, 0.0, -2.0]])))
    assert (standing.arms.tolist(), standing.within.tolist()) == ([2], [math.inf])
