"""AE and kδER against their sources' pseudo-code, written as a plain recursion and a plain loop."""

import math
from itertools import product

import numpy as np
import pytest
from oracles import Rewards, Rng, Seasons, aggressive_elimination, delta_elimination, play

import ebr


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


def test_what_aggressive_elimination_costs_by_hand_whatever_the_rewards():
    # T = 1: 2·10⁴ (log 100 + log 800) = 225795.6.
    # T = 2: 2·10⁴ (log log 100 + log 800) = 164235.8. As 100/log 100 = 21.7, 23 arms are kept, and each gets
    # 2·10⁴ (log 23 + log 1600) = 210265.1 pulls. Rounded down, 22: 2·10⁴ (log 22 + log 1600) = 209376.03.
    for deadline, rounding, pulls in (
        (1, "up", 22_579_600),
        (2, "up", 100 * 164_236 + 23 * 210_266),
        (2, "down", 100 * 164_236 + 22 * 209_377),
    ):
        for problem in (ebr.setup_1(), ebr.Gaussian(np.linspace(0, 1, 100), 0.5)):
            result = ebr.simulate(ebr.AggressiveElimination(deadline, 0.01, 0.01, rounding), problem, runs=2)
            assert set(result.pulls) == {pulls}
            assert set(result.rounds) == {deadline}


@pytest.mark.parametrize("constants", ["published", "released"])
def test_delta_elimination_is_its_plain_loop(constants):
    # With many arms and a large δ lots have several arms to choose from, and more rounds follow.
    longest = most = 0
    sizes, deltas = (2, 3, 5, 17, 100, 640, 5000), (0.01, 0.1, 0.2, 0.3, 0.37, 0.5, 0.9)
    cases = [(1, *case) for case in product(sizes, range(1, 7), deltas)]
    cases += [(1, 300_000, 5, 0.36), *product((2, 3, 7), (40, 41), (1, 2, 3), (0.9, 0.3, 0.01))]
    for k, n_arms, deadline, delta in cases:
        epsilon = 0.1 + 0.05 * deadline
        values = np.random.default_rng([n_arms, deadline, int(100 * delta)]).random((deadline, n_arms))
        lots, released = Rng(7), constants == "released"
        expected, best = delta_elimination(values, lots.draw, deadline, epsilon, delta, released, k)
        algorithm = ebr.DeltaElimination(deadline, epsilon, delta, constants, k)
        asked, arms = play(algorithm, Seasons(values), generator=np.random.default_rng(7))
        assert [{i: ask[0, i] for i in np.flatnonzero(ask[0])} for ask in asked] == expected
        assert arms.ravel().tolist() == best
        longest, most = max(longest, len(expected)), max(most, lots.most)
    assert longest == {"published": 3, "released": 4}[constants]
    assert most > 10


@pytest.mark.parametrize("deadline", [2, 3, 6, 15])
def test_delta_elimination_by_hand(deadline):
    # n = 100, δ = 0.01, so log(4/δ) = 5.991465. Published: β₁ = 1 + log₁₀₀ 100 = 2, and
    # 2 · 0.0025² · 100 < 1. The best arm is set aside, no arm is left, and the best is pulled again.
    # Released: ilog(100)/log(100) < 1 from T = 2 on, so β₁ = 1, 2 · 0.0025 · 100 < 1, and the race ends.
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
    # Rewards are fixed, so the generator is the only source of chance. Ten or more arms may be set aside.
    table = np.tile(np.random.default_rng(3).random((1, 640, 8)), (6, 1, 1))
    order = np.random.default_rng(4).permutation(640)
    algorithm = ebr.DeltaElimination(deadline, 0.5, delta, constants)
    asked, arm = play(algorithm, Rewards(table), generator=np.random.default_rng(0))
    moved, moved_arm = play(algorithm, Rewards(table[:, order]), generator=np.random.default_rng(0))
    assert all((after == before[:, order]).all() for before, after in zip(asked, moved, strict=True))
    assert (order[moved_arm] == arm).all()
    pulls = sum(asked)
    assert len({tuple(row) for row in pulls.tolist()}) > 1
    assert (arm == arm[0]).all()  # with the same samples the best mean wins
