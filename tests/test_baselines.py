"""The algorithms that EBR is compared with: each against a plain loop written from its source, and by hand.

Nothing here is left to chance but hypothesis's choice of examples, so that there are no false alarms: where
two arms must not tie, their rewards are continuous, and a tie has probability below 1e-10.
"""

import math
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ebr
from ebr import baselines


class Rewards:
    """A fixed table of rewards, replicates × arms × pulls, repeated for ever.

    The k-th pull of an arm pays the same whoever asks, and however many are asked for at once.
    """

    def __init__(self, table):
        replicates, arms, self.period = table.shape
        self.shape = (replicates, arms)
        self.sums = np.concatenate([np.zeros((*self.shape, 1)), table.cumsum(axis=2)], axis=2)
        self.used = np.zeros(self.shape, dtype=np.int64)

    def up_to(self, pulls):
        times, rest = np.divmod(pulls, self.period)
        return times * self.sums[:, :, -1] + np.take_along_axis(self.sums, rest[:, :, None], axis=2)[:, :, 0]

    def pay(self, pulls):
        before = self.up_to(self.used)
        self.used = self.used + pulls
        return self.up_to(self.used) - before


class Seasons:
    """Arms that pay another value in every round, each pull alike: only fresh samples can tell the best."""

    def __init__(self, values):
        self.values = values
        self.shape = (1, values.shape[1])
        self.round = 0

    def pay(self, pulls):
        self.round += 1
        return pulls * self.values[self.round - 1]


def play(algorithm, rewards, /, **context):
    """Drive the coroutine on a table; return the list of what it asked for and the recommended arms."""
    replicates, n_arms = rewards.shape
    game = algorithm.play(n_arms, replicates, **context)
    asked = [next(game)]
    while True:
        try:
            asked.append(game.send(rewards.pay(asked[-1])))
        except StopIteration as end:
            return asked, end.value


# ------------------------------------------------------------------------------------- sequential racing


def sequential_race(rewards, epsilon, delta, sigma, end):
    """One sweep over the survivors after another, one pull after another; return pulls per arm and arm."""
    n, period = len(rewards), len(rewards[0])
    omega = math.sqrt(delta / (6 * n))
    survivors = list(range(n))
    sums, pulls, sweeps = [0] * n, [0] * n, 0
    while True:
        for arm in survivors:
            sums[arm] += rewards[arm][pulls[arm] % period]
            pulls[arm] += 1
        sweeps += 1
        width = 4 * sigma * math.sqrt(math.log(math.log2(2 * sweeps) / omega) / sweeps)
        mean = {arm: sums[arm] / sweeps for arm in survivors}
        best = max(mean.values())
        survivors = [
            arm for arm in survivors if mean[arm] + width >= best - width + epsilon / n or mean[arm] == best
        ]
        leader = next(arm for arm in survivors if mean[arm] == best)
        if len(survivors) == 1:
            return pulls, leader
        others = [mean[arm] + width for arm in survivors if arm != leader]
        if end == "certified" and all(best - width >= upper - epsilon for upper in others):
            return pulls, leader


PERIOD = 1024
KINDS = 12
TABLES = 2 * KINDS  # for each choice of n, ε, δ, σ: played side by side


def hostile_tables(generator, n_arms, tie):
    """0/1 rewards: by chance, and such that the gaps change as fast as they can."""
    time = np.arange(PERIOD)
    arms = np.arange(n_arms)[:, None]
    tables = np.empty((TABLES, n_arms, PERIOD), dtype=int)
    for k in range(TABLES):
        block = int(generator.integers(1, 120))
        lucky = generator.permutation(n_arms)[:, None]
        tables[k] = [
            generator.random((n_arms, PERIOD)) < generator.random((n_arms, 1)),  # any means
            generator.random((n_arms, PERIOD)) < generator.random(),  # equal means
            np.ones((n_arms, PERIOD)),  # all ones
            np.zeros((n_arms, PERIOD)),  # all zeros
            (time + lucky) % 2,  # alternating
            np.broadcast_to(lucky == 0, (n_arms, PERIOD)),  # one arm all ones, the others all zeros
            np.broadcast_to(lucky > 0, (n_arms, PERIOD)),  # one arm all zeros, the others all ones
            (time // block + (lucky == 0)) % 2,  # one arm against the others, by turns
            (time // block + lucky) % 2,  # half of the arms against the other half, by turns
            np.where(time < block, 1, lucky == 0),  # a tie, then one arm runs away
            time % (lucky + 1) == 0,  # every pull pays, every second, every third …
            np.where(lucky < 2, time % 5 > 0, time % 9 < 6 - lucky),  # two tie, the others fall one by one
        ][k % KINDS]
        if not tie:  # the first rewards tell all arms apart, so that no two are equal for ever
            tables[k, :, :n_arms] = time[:n_arms] <= arms
    return tables


def sequential_problems(end, count=84):
    """Some (algorithm, tables); the certified end needs 2D ≤ ε at most, the lone survivor's 2D ≤ ε/n."""
    generator = np.random.default_rng([count, end == "certified"])
    for _ in range(count):
        n_arms = int(generator.integers(2, 7))
        epsilon, delta = generator.uniform(0.15, 0.9), generator.uniform(0.05, 0.9)
        reach = epsilon if end == "certified" else 1.5 * epsilon / n_arms
        sigma = generator.uniform(0.05, np.clip(reach, 0.051, 0.5))
        algorithm = ebr.SequentialRacing(epsilon, delta, sigma, end)
        yield algorithm, hostile_tables(generator, n_arms, tie=end == "certified")


@cache
def races(end):
    """2,016 problems and what the plain loop does: (algorithm, tables, pulls, arms), 24 tables at a time."""
    played = []
    for algorithm, tables in sequential_problems(end):
        parameters = (algorithm.epsilon, algorithm.delta, algorithm.sigma, end)
        outcomes = [sequential_race(table.tolist(), *parameters) for table in tables]
        played.append((algorithm, tables, *map(np.array, zip(*outcomes, strict=True))))
    return played


def disagreements(races, bounded):
    """On how many problems the coroutine pulls some arm more or less often, or recommends another."""
    wrong = 0
    for algorithm, tables, pulls, arms in races:
        asked, arm = play(algorithm, Rewards(tables), bounded=bounded)
        wrong += np.count_nonzero((sum(asked) != pulls).any(axis=1) | (arm != arms))
    return wrong


both_ends = pytest.mark.parametrize("end", ["certified", "lone survivor"])


@both_ends
def test_looking_ahead_changes_no_sequential_race(end):
    # An arm's pulls are the sweep at which it fell: equal pulls are equal eliminations, at equal times.
    assert sum(len(tables) for _, tables, _, _ in races(end)) == 2016
    assert disagreements(races(end), bounded=True) == 0


@both_ends
def test_one_sweep_at_a_time_is_the_plain_sequential_race(end):
    assert disagreements(races(end), bounded=False) == 0


@both_ends
def test_the_plain_loop_catches_a_look_ahead_that_is_a_third_too_long(end, monkeypatch):
    certain = baselines._certain_sweeps
    monkeypatch.setattr(baselines, "_certain_sweeps", lambda *state: 1.3 * certain(*state) + 1)
    assert disagreements(races(end), bounded=True) >= 100


@pytest.mark.parametrize("forgotten", ["a drop", "the end"])
def test_the_plain_loop_catches_a_look_ahead_that_forgets_one_decision(forgotten, monkeypatch):
    certain = baselines._certain_sweeps
    wrong = 0
    for race in races("certified"):

        def forgetful(sweeps, width, gap, slack, epsilon=race[0].epsilon):
            decision = "the end" if slack == epsilon else "a drop"
            return np.full(gap.shape, 1e3) if decision == forgotten else certain(sweeps, width, gap, slack)

        monkeypatch.setattr(baselines, "_certain_sweeps", forgetful)
        wrong += disagreements([race], bounded=True)
    assert wrong >= 100


@both_ends
def test_the_problems_look_far_ahead_and_drop_arms_on_the_way(end):
    asks = sweeps = staggered = 0
    for algorithm, tables, pulls, _ in races(end):
        asked, _ = play(algorithm, Rewards(tables), bounded=True)
        asks += sum(np.count_nonzero(ask.any(axis=1)) for ask in asked)
        sweeps += pulls.max(axis=1).sum()
        staggered += sum(len(set(row)) > 2 for row in pulls.tolist())
    assert 2 * asks < sweeps
    assert staggered > 50  # races in which arms fell at two sweeps or more


@both_ends
def test_a_long_race_is_asked_for_in_few_rounds(end):
    tables = (np.random.default_rng(5).random((4, 3, PERIOD)) < [[[0.5], [0.45], [0.1]]]).astype(int)
    asked, arm = play(ebr.SequentialRacing(0.05, 0.1, end=end), Rewards(tables), bounded=True)
    pulls = sum(asked)
    for replicate, table in enumerate(tables):
        expected = sequential_race(table.tolist(), 0.05, 0.1, 0.5, end)
        assert (pulls[replicate].tolist(), arm[replicate]) == expected
    assert 50 * len(asked) < pulls.max()


@dataclass(frozen=True)
class Watched:
    """A sequential race that notes the largest number of pulls in each round it asks for."""

    algorithm: ebr.SequentialRacing
    asked: list = field(default_factory=list, repr=False)
    needs: ClassVar = ("bounded",)

    def play(self, n_arms, replicates=1, **context):
        game = self.algorithm.play(n_arms, replicates, **context)
        pulls = next(game)
        while True:
            self.asked.append(pulls.max())
            try:
                pulls = game.send((yield pulls))
            except StopIteration as end:
                return end.value


def test_only_bounded_rewards_are_asked_for_ahead():
    algorithm = ebr.SequentialRacing(0.2, 0.1, sigma=0.5)
    bounded, unbounded = Watched(algorithm), Watched(algorithm)
    ebr.simulate(bounded, ebr.Bernoulli([0.2, 0.6, 0.7]), runs=20)
    result = ebr.simulate(unbounded, ebr.Gaussian([0.2, 0.6, 0.7], 0.5), runs=20)
    assert max(bounded.asked) > 10
    assert set(unbounded.asked) == {1}
    assert len(unbounded.asked) >= result.pulls.max() / 3


def test_a_sequential_race_takes_as_many_rounds_as_pulls():
    result = ebr.simulate(ebr.SequentialRacing(0.3, 0.1), ebr.Bernoulli([0.2, 0.9]), runs=20)
    assert (result.rounds == result.pulls).all()


def test_replicates_that_have_ended_trouble_nobody():
    # The first replicate ends soon with arm 2 alone; the second goes on with arms 0 and 1 alone. (A warning
    # from the package is an error here.)
    tables = np.zeros((2, 3, PERIOD))
    tables[0, 2] = tables[1, 1] = 1
    tables[1, 0, 1::2] = 1
    tables[1, 2, 3::4] = 1
    algorithm = ebr.SequentialRacing(0.3, 0.5, 0.3, end="lone survivor")
    for bounded in (False, True):
        asked, arm = play(algorithm, Rewards(tables), bounded=bounded)
        assert arm.tolist() == [2, 1]
        pulls = sum(asked)
        for replicate, table in enumerate(tables):
            expected = sequential_race(table.tolist(), 0.3, 0.5, 0.3, "lone survivor")
            assert (pulls[replicate].tolist(), arm[replicate]) == expected
        assert pulls[0].max() < pulls[1, 2] < pulls[1, 0]


# ------------------------------------------------------------------------------------------------ passive


def test_passive_sampling_by_hand():
    # 80/4 · log(100/0.01) / 0.1² = 2000 · 9.21034 = 18420.7; with σ = 1, 73682.7.
    for sigma, pulls in ((0.5, 18421), (1.0, 73683)):
        values = np.random.default_rng(1).random((1, 100))
        asked, arm = play(ebr.Passive(0.1, 0.01, sigma), Seasons(values))
        assert [ask.tolist() for ask in asked] == [[[pulls] * 100]]
        assert arm.tolist() == [values.argmax()]


def test_passive_sampling_is_elastic_batch_racing_with_one_round():
    for seed in range(300):
        generator = np.random.default_rng(seed)
        epsilon, delta = generator.uniform(0.01, 0.9, size=2)
        sigma = generator.uniform(0.05, 2)
        table = generator.random((3, int(generator.integers(2, 9)), 50))
        (passive,), arm = play(ebr.Passive(epsilon, delta, sigma), Rewards(table))
        (racing,), same = play(ebr.ElasticBatchRacing(1, epsilon, delta, sigma), Rewards(table))
        assert (passive == racing).all()
        assert (arm == same).all()


# --------------------------------------------------------------------------------- aggressive elimination


def ilog(r, a, base=math.e):
    return a if r == 0 else max(math.log(ilog(r - 1, a, base)) / math.log(base), 1)


def aggressive_elimination(values, arms, r, delta, epsilon, rounded=math.ceil):
    """The recursion, with `values[0]` paid by each pull of this round; return [(arms, pulls), …] and arm."""
    m = len(arms)
    tosses = math.ceil(2 / epsilon**2 * (ilog(r, m) + math.log(8 / delta)))
    ranked = sorted(arms, key=lambda arm: -values[0][arm])
    if r == 1:
        return [(set(arms), tosses)], ranked[0]
    kept = min(1 + rounded(m / ilog(r - 1, m)), m)
    later, arm = aggressive_elimination(
        values[1:], ranked[:kept], 1 if kept <= 2 else r - 1, delta / 2, epsilon, rounded
    )
    return [(set(arms), tosses), *later], arm


def test_the_iterated_logarithm_by_hand():
    # log 100 = 4.60517, log 4.60517 = 1.52718, log 1.52718 < 1.
    assert baselines.iterated_log(0, 100) == 100
    assert baselines.iterated_log(1, 100) == pytest.approx(4.605170186)
    assert baselines.iterated_log(2, 100) == pytest.approx(1.527179626)
    assert [baselines.iterated_log(times, 100) for times in (3, 4, 15)] == [1, 1, 1]
    # To the base 2: 65536, 16, 4, 2, 1, 1.
    assert [baselines.iterated_log(times, 65536, base=2) for times in range(6)] == pytest.approx(
        [65536, 16, 4, 2, 1, 1]
    )
    assert baselines.iterated_log(1, 2) == 1


@pytest.mark.parametrize("rounding", ["up", "down"])
@pytest.mark.parametrize("n_arms", [2, 3, 4, 10, 100, 1000])
@pytest.mark.parametrize("deadline", [1, 2, 3, 5, 15])
def test_aggressive_elimination_is_its_recursion(n_arms, deadline, rounding):
    rounded = math.ceil if rounding == "up" else math.floor
    for seed, (epsilon, delta) in enumerate([(0.01, 0.01), (0.3, 0.5), (0.9, 0.05)]):
        values = np.random.default_rng([seed, n_arms, deadline]).random((deadline, n_arms))
        expected, best = aggressive_elimination(values, range(n_arms), deadline, delta, epsilon, rounded)
        algorithm = ebr.AggressiveElimination(deadline, epsilon, delta, rounding)
        asked, arm = play(algorithm, Seasons(values))
        assert [(set(np.flatnonzero(ask[0])), ask.max()) for ask in asked] == expected
        assert all(set(np.unique(ask)) <= {0, ask.max()} for ask in asked)
        assert arm.tolist() == [best]


@pytest.mark.parametrize("rounding", ["up", "down"])
@pytest.mark.parametrize("deadline", [1, 2, 3, 15])
def test_what_aggressive_elimination_costs_does_not_depend_on_the_rewards(deadline, rounding):
    rounded = math.ceil if rounding == "up" else math.floor
    rounds, _ = aggressive_elimination(np.ones((15, 100)), range(100), deadline, 0.01, 0.01, rounded)
    algorithm = ebr.AggressiveElimination(deadline, 0.01, 0.01, rounding)
    for problem in (ebr.setup_1(), ebr.setup_2(), ebr.Gaussian(np.linspace(0, 1, 100), 0.5)):
        result = ebr.simulate(algorithm, problem, runs=5)
        assert set(result.pulls) == {sum(len(arms) * tosses for arms, tosses in rounds)}
        assert set(result.rounds) == {len(rounds)}


def test_aggressive_elimination_by_hand():
    # T = 1: 2·10⁴ (log 100 + log 800) = 225795.6.
    # T = 2: 2·10⁴ (log log 100 + log 800) = 164235.8; 100/log 100 = 21.7, so 23 arms are kept, each for
    # 2·10⁴ (log 23 + log 1600) = 210265.1 pulls; rounded down 22, for 2·10⁴ (log 22 + log 1600) = 209376.03.
    problem = ebr.setup_1()
    for deadline, rounding, pulls in (
        (1, "up", 22_579_600),
        (2, "up", 100 * 164_236 + 23 * 210_266),
        (2, "down", 100 * 164_236 + 22 * 209_377),
    ):
        result = ebr.simulate(ebr.AggressiveElimination(deadline, 0.01, 0.01, rounding), problem, runs=2)
        assert set(result.pulls) == {pulls}


def test_aggressive_elimination_keeps_every_arm_until_the_last_rounds():
    # 100/ilog^{(r)}(100) is 100 for r ≥ 3, then 65.5 and, of 67 arms (66), 15.9 (15.8).
    for rounding, last in (("up", [67, 17]), ("down", [66, 16])):
        algorithm = ebr.AggressiveElimination(15, 0.01, 0.01, rounding)
        asked, _ = play(algorithm, Rewards(np.random.default_rng(0).random((2, 100, 50))))
        assert [set(np.count_nonzero(ask, axis=1)) for ask in asked] == [{size} for size in [100] * 13 + last]


# ------------------------------------------------------------------------------------------ δ-elimination


def delta_elimination(values, lot, rounds, epsilon, delta, released=False):
    """Algorithms 2 and 3 for k = 1; `values[r − 1]` is paid by each pull of round r, `lot(m)` draws from m.

    Return one {arm: pulls} a round, and the arm.
    """
    n, Q = len(values[0]), 57 / epsilon**2
    if released:
        ratio = ilog(rounds, n) / math.log(1 / delta)
        beta = 1 if ratio < 1 else 1 + ratio
    else:
        beta = 1 + ilog(rounds, n, base=1 / delta)
    remaining, aside, history, r = list(range(n)), [], [], 1
    delta_r = delta / 4
    while r < rounds and remaining:
        samples = math.ceil(beta * Q * math.log(1 / delta_r))
        history.append(dict.fromkeys(remaining, samples))
        ranked = sorted(remaining, key=lambda arm: -values[len(history) - 1][arm])
        share = max(delta_r**beta, 1e-300) * len(remaining)  # never zero: ⌈share⌉ is one at least
        drawn = ranked[lot(math.ceil(share / 2))]
        aside.append(drawn)
        top = [arm for arm in ranked[: math.ceil(2 * share)] if arm != drawn]
        if top:
            beta = beta * len(remaining) / (2 * len(top))
        elif released and len(aside) == 1:
            return history, drawn
        delta_r = delta / ((8 if released else 2) * 2**r)
        remaining = top
        r += 1
    last = {}
    for arm in remaining:
        last[arm] = math.ceil(beta * Q * math.log((8 if released else 2) * 2**rounds / delta))
    for arm in aside:
        last[arm] = math.ceil(Q * math.log((2 if released else 4) * len(aside) / delta))
    history.append(last)
    return history, max(last, key=lambda arm: values[len(history) - 1][arm])


class Lots:
    """One of so many, by lot; and the most there were."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.most = 0

    def draw(self, size):
        self.most = max(self.most, size)
        return int(self.generator.integers(size, size=(1, 1))[0, 0])


@pytest.mark.parametrize("constants", ["published", "released"])
def test_delta_elimination_is_its_plain_loop(constants):
    longest = most = 0
    sizes, deltas = (2, 3, 5, 17, 100, 640, 5000), (0.01, 0.1, 0.2, 0.3, 0.37, 0.5, 0.9)
    for n_arms, deadline, delta in [*product(sizes, range(1, 7), deltas), (300_000, 5, 0.36)]:
        epsilon = 0.1 + 0.05 * deadline
        values = np.random.default_rng([n_arms, deadline, int(100 * delta)]).random((deadline, n_arms))
        lot = Lots(7)
        expected, best = delta_elimination(
            values, lot.draw, deadline, epsilon, delta, constants == "released"
        )
        algorithm = ebr.DeltaElimination(deadline, epsilon, delta, constants)
        asked, arm = play(algorithm, Seasons(values), generator=np.random.default_rng(7))
        assert [{i: ask[0, i] for i in np.flatnonzero(ask[0])} for ask in asked] == expected
        assert arm.tolist() == [best]
        longest, most = max(longest, len(expected)), max(most, lot.most)
    assert longest == {"published": 3, "released": 4}[constants]
    assert most > 10


@pytest.mark.parametrize("constants", ["published", "released"])
def test_what_delta_elimination_costs_does_not_depend_on_the_rewards(constants):
    for deadline, delta in ((1, 0.5), (2, 0.3), (4, 0.5), (6, 0.37)):
        rounds, _ = delta_elimination(
            np.ones((7, 640)), lambda _: 0, deadline, 0.2, delta, constants == "released"
        )
        algorithm = ebr.DeltaElimination(deadline, 0.2, delta, constants)
        for problem in (ebr.setup_1(640), ebr.Gaussian(np.linspace(0, 1, 640), 0.5)):
            result = ebr.simulate(algorithm, problem, runs=5)
            assert set(result.pulls) == {sum(sum(pulls.values()) for pulls in rounds)}
            assert set(result.rounds) == {len(rounds)}


@pytest.mark.parametrize("deadline", [2, 3, 6, 15])
def test_delta_elimination_by_hand(deadline):
    # n = 100, δ = 0.01, so log(4/δ) = 5.991465. Published: β₁ = 1 + log₁₀₀ 100 = 2, and
    # 2 · 0.0025² · 100 < 1: the best arm is set aside, none is left, and that one is pulled again.
    # Released: ilog(100)/log(100) < 1 from T = 2 on, so β₁ = 1, 2 · 0.0025 · 100 < 1, and that is all.
    for epsilon in (0.1, 0.01):
        once = math.ceil(57 / epsilon**2 * math.log(400))
        twice = math.ceil(2 * 57 / epsilon**2 * math.log(400))
        published = ebr.DeltaElimination(deadline, epsilon, 0.01)
        result = ebr.simulate(published, ebr.setup_1(), runs=3)
        assert set(result.pulls) == {100 * twice + once}
        assert set(result.rounds) == {2}
        released = ebr.DeltaElimination(deadline, epsilon, 0.01, constants="released")
        result = ebr.simulate(released, ebr.setup_1(), runs=3)
        assert set(result.pulls) == {100 * once}
        assert set(result.rounds) == {1}
    assert (once, twice) == (3_415_135, 6_830_270)


@pytest.mark.parametrize(("constants", "delta", "deadline"), [("published", 0.5, 4), ("released", 0.3, 3)])
def test_lots_are_drawn_for_each_replicate_by_rank(constants, delta, deadline):
    # The generator is the only chance here: rewards are fixed. Ten of 640 arms may be set aside or more.
    table = np.tile(np.random.default_rng(3).random((1, 640, 8)), (6, 1, 1))
    order = np.random.default_rng(4).permutation(640)
    algorithm = ebr.DeltaElimination(deadline, 0.5, delta, constants)
    asked, arm = play(algorithm, Rewards(table), generator=np.random.default_rng(0))
    moved, moved_arm = play(algorithm, Rewards(table[:, order]), generator=np.random.default_rng(0))
    assert all((after == before[:, order]).all() for before, after in zip(asked, moved, strict=True))
    assert (order[moved_arm] == arm).all()
    pulls = sum(asked)
    assert len({tuple(row) for row in pulls.tolist()}) > 1
    assert (arm == arm[0]).all()  # whoever is set aside, the best mean wins when every sample is the same


# -------------------------------------------------------------------------------------- what all must keep

# By name: the algorithm, made from T, ε, δ and σ; CONTEXT has what it is told besides. T = ∞ is sequential.
FAMILY = {
    "elastic": lambda T, epsilon, delta, sigma: ebr.ElasticBatchRacing(T, epsilon, delta, sigma),
    "as printed": lambda T, epsilon, delta, sigma: ebr.ElasticBatchRacing(
        T, epsilon, delta, sigma, schedule="printed", lone_survivor="pulled again"
    ),
    "passive": lambda T, epsilon, delta, sigma: ebr.Passive(epsilon, delta, sigma),
    "aggressive": lambda T, epsilon, delta, sigma: ebr.AggressiveElimination(T, epsilon, delta),
    "rounding down": lambda T, epsilon, delta, sigma: ebr.AggressiveElimination(T, epsilon, delta, "down"),
    "published": lambda T, epsilon, delta, sigma: ebr.DeltaElimination(T, epsilon, delta),
    "released": lambda T, epsilon, delta, sigma: ebr.DeltaElimination(T, epsilon, delta, "released"),
    "ahead": lambda T, epsilon, delta, sigma: ebr.SequentialRacing(epsilon, delta, sigma),
    "sweeping": lambda T, epsilon, delta, sigma: ebr.SequentialRacing(epsilon, delta, sigma),
    "until alone": lambda T, epsilon, delta, sigma: ebr.SequentialRacing(
        epsilon, delta, min(sigma, 0.1), end="lone survivor"
    ),
    "sharp": ebr.SharpElasticBatchRacing,
    "sharp, Gaussian": lambda T, epsilon, delta, sigma: ebr.SharpElasticBatchRacing(
        T, epsilon, delta, sigma, "Gaussian", start=1, split="equal"
    ),
    "sharp, bounded": lambda T, epsilon, delta, sigma: ebr.SharpElasticBatchRacing(T, epsilon, delta),
}
CONTEXT = {
    "published": lambda: {"generator": np.random.default_rng(2)},
    "released": lambda: {"generator": np.random.default_rng(2)},
    "ahead": lambda: {"bounded": True},
    "sweeping": lambda: {"bounded": False},
    "until alone": lambda: {"bounded": True},
    "sharp, bounded": lambda: {"rewards": "bounded"},
}
ROUNDS = {"passive": lambda T: 1, "ahead": None, "sweeping": None, "until alone": None}
NOT_RACING = ("passive", "aggressive", "rounding down", "published", "released")

any_game = given(
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.3, 0.95),
    delta=st.floats(0.02, 0.9),
    sigma=st.floats(0.02, 0.5),
    n_arms=st.integers(2, 6),
    replicates=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)


def play_any(name, table, parameters):
    return play(FAMILY[name](*parameters), Rewards(table), **CONTEXT.get(name, dict)())


def continuous_table(replicates, n_arms, seed):
    """Rewards in [0, 1] of arms with other means: no two sums are ever equal."""
    generator = np.random.default_rng(seed)
    spread = generator.random((replicates, n_arms, 1))
    return generator.random((replicates, n_arms, 61)) * (1 - spread) + generator.random(spread.shape) * spread


@pytest.mark.parametrize("name", FAMILY)
@settings(max_examples=60, deadline=None)
@any_game
def test_every_game_keeps_the_rules(name, deadline, epsilon, delta, sigma, n_arms, replicates, seed):
    table = continuous_table(replicates, n_arms, seed)
    asked, arm = play_any(name, table, (deadline, epsilon, delta, sigma))
    most = ROUNDS.get(name, lambda T: T)
    assert most is None or 1 <= len(asked) <= most(deadline)
    for ask in asked:
        assert ask.shape == (replicates, n_arms)
        assert np.issubdtype(ask.dtype, np.integer)
        assert ask.min() >= 0
        assert ask.max() >= 1
    played = np.array([ask.any(axis=1) for ask in asked])
    assert played[0].all()
    assert (played[1:] <= played[:-1]).all()  # once out of the game, never in it again
    assert arm.shape == (replicates,)
    last = played.sum(axis=0) - 1
    for replicate in range(replicates):
        assert asked[last[replicate]][replicate, arm[replicate]] > 0
    if name not in NOT_RACING:  # an arm once dropped stays dropped
        pulled = np.array(asked) > 0
        assert (pulled[1:] <= pulled[:-1]).all()


@pytest.mark.parametrize("name", FAMILY)
@settings(max_examples=40, deadline=None)
@any_game
def test_neither_the_order_of_the_arms_nor_the_other_replicates_matter(
    name, deadline, epsilon, delta, sigma, n_arms, replicates, seed
):
    # (With six arms or fewer kδER draws its lots from one arm: δ₁n/2 < 1.)
    table = continuous_table(replicates, n_arms, seed)
    order = np.random.default_rng([seed, 1]).permutation(n_arms)
    asked, arm = play_any(name, table, (deadline, epsilon, delta, sigma))
    for replicate in range(replicates):
        alone, same = play_any(name, table[[replicate]][:, order], (deadline, epsilon, delta, sigma))
        together = [ask[[replicate]][:, order] for ask in asked if ask[replicate].any()]
        assert len(alone) == len(together)
        assert (np.array(alone) == together).all()
        assert order[same].tolist() == [arm[replicate]]


# ------------------------------------------------------------------------------------------ bad parameters

GOOD = {
    ebr.Passive: {"epsilon": 0.1, "delta": 0.1},
    ebr.SequentialRacing: {"epsilon": 0.1, "delta": 0.1},
    ebr.AggressiveElimination: {"deadline": 3, "epsilon": 0.1, "delta": 0.1},
    ebr.DeltaElimination: {"deadline": 3, "epsilon": 0.1, "delta": 0.1},
    ebr.SharpElasticBatchRacing: {"deadline": 3, "epsilon": 0.1, "delta": 0.1},
}
BAD = [
    ({"epsilon": 0}, r"^epsilon must lie in \(0, 1\), got 0$"),
    ({"epsilon": 1}, r"^epsilon must lie in \(0, 1\), got 1$"),
    ({"epsilon": float("nan")}, r"^epsilon must lie in \(0, 1\), got nan$"),
    ({"epsilon": "0.1"}, r"^epsilon must lie in \(0, 1\), got '0\.1'$"),
    ({"delta": 1.5}, r"^delta must lie in \(0, 1\), got 1\.5$"),
    ({"delta": -0.1}, r"^delta must lie in \(0, 1\), got -0\.1$"),
    ({"delta": None}, r"^delta must lie in \(0, 1\), got None$"),
    ({"sigma": 0}, r"^sigma must be a finite number above 0, got 0$"),
    ({"sigma": float("inf")}, r"^sigma must be a finite number above 0, got inf$"),
    ({"deadline": 0}, r"^deadline must be an integer of at least 1, got 0$"),
    ({"deadline": 2.5}, r"^deadline must be an integer of at least 1, got 2\.5$"),
    ({"deadline": True}, r"^deadline must be an integer of at least 1, got True$"),
    ({"end": "never"}, r"^end must be one of 'certified', 'lone survivor', got 'never'$"),
    ({"rounding": "even"}, r"^rounding must be one of 'up', 'down', got 'even'$"),
    ({"constants": "mine"}, r"^constants must be one of 'published', 'released', got 'mine'$"),
    ({"split": "early"}, r"^split must be one of 'late', 'equal', got 'early'$"),
    ({"start": 0}, r"^start must be a finite number above 0, got 0$"),
    ({"start": "1"}, r"^start must be a finite number above 0, got '1'$"),
    ({"rewards": "good"}, r"^rewards must be one of 'sub-Gaussian', 'Gaussian', 'bounded', got 'good'$"),
    (
        {"rewards": "bounded", "sigma": 0.4},
        r"^sigma must be at least 0\.5 for bounded rewards, got 0\.4$",
    ),
]


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        (algorithm, arguments, message)
        for algorithm in GOOD
        for arguments, message in BAD
        if set(arguments) <= set(algorithm.__dataclass_fields__)
    ],
)
def test_bad_parameters_are_named_with_their_value_and_range(algorithm, arguments, message):
    algorithm(**GOOD[algorithm])
    with pytest.raises(ValueError, match=message):
        algorithm(**GOOD[algorithm] | arguments)


@pytest.mark.parametrize("algorithm", [each for each in GOOD if each is not ebr.SequentialRacing])
def test_more_pulls_than_can_be_summed_exactly_are_refused(algorithm):
    with pytest.raises(ValueError, match=r"epsilon .* at most 2\^53 pulls of an arm, got \d"):
        ebr.simulate(algorithm(**GOOD[algorithm] | {"epsilon": 1e-9}), ebr.setup_1(), runs=1)
