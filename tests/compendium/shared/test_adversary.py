"""The adversary and the audit against plain loops over arms and rounds."""

import math
from itertools import product

import numpy as np
import pytest
from compendium.shared.adversary import audit, corners, play_inside
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from planted.algorithms import TooNarrow

import ebr
from ebr.simulation import simulate

C = 4 + 2 * math.log(2)  # the constant of the paper's deviation
UNIT = st.floats(0.05, 0.9)


def by_hand(means, places, deadline, epsilon, delta, sigma):
    """Algorithm 1 on one table of places: rounds (alive, kept, pulls, D), pulls, arm, narrowest margin."""
    n_arms, rounds, close = len(means), [], math.inf
    log_term = math.log(n_arms * deadline / delta)
    counts = [80 * sigma**2 * log_term * epsilon ** (-2 * t / deadline) for t in range(1, deadline + 1)]
    counts = sorted(set(map(math.ceil, counts)))  # a round without a new pull changes nothing
    alive, pulls = set(range(n_arms)), [0] * n_arms
    for count, place in zip(counts, places, strict=False):
        width = sigma * math.sqrt(C * log_term / count)
        mean = {arm: means[arm] + place[arm] * width for arm in alive}
        pulls = [count if arm in alive else before for arm, before in enumerate(pulls)]
        leader = max(alive, key=mean.get)
        threshold = mean[leader] - width + epsilon / min(n_arms, deadline)
        for arm in alive - {leader}:
            close = min(close, abs(mean[arm] + width - threshold), mean[leader] - mean[arm])
        kept = {leader} | {arm for arm in alive if mean[arm] + width >= threshold}
        rounds.append((alive, alive if count == counts[-1] else kept, count, width))
        alive = kept
        if len(alive) == 1:
            break
    return rounds, pulls, leader, close


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 5), st.integers(1, 5), UNIT, UNIT, st.floats(0.01, 2), UNIT, st.integers(0, 2**32))
def test_the_adversary_makes_the_plain_loops_decisions(n_arms, deadline, epsilon, delta, sigma, spread, seed):
    generator = np.random.default_rng(seed)
    means = 1 - spread * generator.random(n_arms)
    places = generator.choice([-1, 0, 1, 0.5], (6, deadline, n_arms)) * generator.random((6, 1, 1))
    hands = [by_hand(means, table, deadline, epsilon, delta, sigma) for table in places]
    assume(min(close for *_, close in hands) > 1e-9)  # rounding may decide closer calls
    race = ebr.ElasticBatchRacing(deadline, epsilon, delta, sigma)
    played = play_inside(race, ebr.Gaussian(means, sigma), places)
    for row, (rounds, pulls, arm, _) in enumerate(hands):
        assert (played.arm_pulls[row].tolist(), played.arm[row]) == (pulls, arm)
        for stage, place, (*expected, width) in zip(played.rounds, places[row], rounds, strict=False):
            alive, kept = (set(np.flatnonzero(table[row])) for table in (stage.alive, stage.kept))
            assert [alive, kept, stage.pulls] == expected
            assert stage.means[row] == pytest.approx(means + place * width)
        assert not any(stage.alive[row].any() for stage in played.rounds[len(rounds) :])


def test_the_corners_are_all_tables_of_low_middle_and_top():
    tables = corners(3, 2).round()
    assert tables.shape == (3**6, 2, 3)
    assert len(set(map(str, tables.tolist()))) == len(tables)
    assert set(tables.ravel()) == {-1, 0, 1}


@pytest.mark.parametrize(("means", "played"), [([0.6, 0.6, 0.6], 3), ([1.0, 0.0, 0.0], 1)])
def test_the_audit_sees_what_a_loop_over_the_same_draws_sees(means, played, monkeypatch):
    monkeypatch.setattr(simulate, "CELLS_PER_BLOCK", 3 * 40)
    race, problem = TooNarrow(3, 0.01, 0.5), ebr.Gaussian(means, 0.5)
    watched = audit(race, problem, 100, seed=3)
    blocks = []
    for replicates, generator in simulate.blocks(race, problem, 100, seed=3):
        rounds = []
        simulate.race(race, problem, replicates, generator, lambda *seen, rounds=rounds: rounds.append(seen))
        blocks.append(rounds)
    assert max(map(len, blocks)) == played  # a run in four reaches round 3; none does with 1e-12
    misses, covered = np.zeros((3, 3), dtype=int), []
    for rounds in blocks:
        for row in range(len(rounds[0][0])):
            before = misses.sum()
            for t, arm in product(range(3), range(3)):  # without new pulls an interval does not change
                count = sum(asked[row][arm] for asked, _ in rounds[: t + 1])
                mean = sum(sums[row][arm] for _, sums in rounds[: t + 1]) / count
                misses[t][arm] += abs(mean - means[arm]) > 0.1 * math.sqrt(C * math.log(9 / 0.5) / count)
            covered.append(misses.sum() == before)
    assert (watched.misses.tolist(), watched.covered.tolist()) == (misses.tolist(), covered)
    assert sum(covered) < 50  # E holds with probability 0.19 at most, so 50 times with 1e-11
    result = ebr.simulate(race, problem, 100, seed=3, per_arm=True)
    assert (watched.arm_pulls == result.arm_pulls).all()
    assert (watched.arm == result.arm).all()
