"""Sequential racing against a plain loop over single pulls, also where it asks for many pulls at once."""

import math
from functools import cache

import numpy as np
import pytest
from oracles import Rewards, play, sequential_race

import ebr
from ebr.algorithms import baselines
from ebr.algorithms.game import drive
from ebr.models import REWARDS

PERIOD = 1024
KINDS = 12
TABLES = 2 * KINDS  # played together for each choice of n, ε, δ, σ


def hostile_tables(generator, n_arms, tie):
    """0/1 rewards: random ones, and some whose gaps change as fast as possible."""
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
            (time // block + (lucky == 0)) % 2,  # one arm against the others, in turn
            (time // block + lucky) % 2,  # half of the arms against the others, in turn
            np.where(time < block, 1, lucky == 0),  # a tie, then one arm runs away
            time % (lucky + 1) == 0,  # every pull pays, every second, every third …
            np.where(lucky < 2, time % 5 > 0, time % 9 < 6 - lucky),  # two tie, the others fall one by one
        ][k % KINDS]
        if not tie:  # the first rewards differ, so that no two arms tie for ever
            tables[k, :, :n_arms] = time[:n_arms] <= arms
    return tables


def sequential_problems(end, count=42):
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
    """1,008 problems and the plain loop's results: (algorithm, tables, pulls, arms), 24 tables each."""
    played = []
    for algorithm, tables in sequential_problems(end):
        parameters = (algorithm.epsilon, algorithm.delta, algorithm.sigma, end)
        outcomes = [sequential_race(table.tolist(), *parameters) for table in tables]
        played.append((algorithm, tables, *map(np.array, zip(*outcomes, strict=True))))
    return played


def disagreements(races, known):
    """The number of problems on which coroutine and plain loop differ in pulls or recommendation."""
    wrong = 0
    for algorithm, tables, pulls, arms in races:
        asked, arm = play(algorithm, Rewards(tables), rewards=known)
        wrong += np.count_nonzero((sum(asked) != pulls).any(axis=1) | (arm != arms))
    return wrong


both_ends = pytest.mark.parametrize("end", ["certified", "lone survivor"])


@pytest.mark.slow
@both_ends
def test_looking_ahead_changes_no_sequential_race(end):
    # An arm's pulls are the number of the sweep that dropped it, so equal pulls mean equal eliminations.
    assert sum(len(tables) for _, tables, _, _ in races(end)) == 1008
    assert disagreements(races(end), known="bounded") == 0


@pytest.mark.slow
@both_ends
def test_one_sweep_at_a_time_is_the_plain_sequential_race(end):
    assert disagreements(races(end), known=None) == 0


@both_ends
def test_the_plain_loop_catches_a_look_ahead_that_is_a_third_too_long(end, monkeypatch):
    certain = baselines._certain_sweeps
    monkeypatch.setattr(baselines, "_certain_sweeps", lambda *state: 1.3 * certain(*state) + 1)
    assert disagreements(races(end), known="bounded") >= 50


@pytest.mark.parametrize("forgotten", ["a drop", "the end"])
def test_the_plain_loop_catches_a_look_ahead_that_forgets_one_decision(forgotten, monkeypatch):
    certain = baselines._certain_sweeps
    wrong = 0
    for race in races("certified"):

        def forgetful(sweeps, width, gap, slack, epsilon=race[0].epsilon):
            decision = "the end" if slack == epsilon else "a drop"
            return np.full(gap.shape, 1e3) if decision == forgotten else certain(sweeps, width, gap, slack)

        monkeypatch.setattr(baselines, "_certain_sweeps", forgetful)
        wrong += disagreements([race], known="bounded")
    assert wrong >= 50


@both_ends
def test_the_problems_look_far_ahead_and_drop_arms_on_the_way(end):
    asks = sweeps = staggered = 0
    for algorithm, tables, pulls, _ in races(end):
        asked, _ = play(algorithm, Rewards(tables), rewards="bounded")
        asks += sum(np.count_nonzero(ask.any(axis=1)) for ask in asked)
        sweeps += pulls.max(axis=1).sum()
        staggered += sum(len(set(row)) > 2 for row in pulls.tolist())
    assert 2 * asks < sweeps
    assert staggered > 25  # races that drop arms at two or more sweeps


def test_only_bounded_rewards_are_asked_for_ahead_and_each_pull_is_a_round():
    algorithm, table = ebr.SequentialRacing(0.2, 0.1), np.random.default_rng(1).random((20, 3, 50))
    most = {
        known: max(ask.max() for ask in play(algorithm, Rewards(table), rewards=known)[0])
        for known in REWARDS
    }
    assert most["Bernoulli"] == most["bounded"] > 10
    assert most["Gaussian"] == most["sub-Gaussian"] == 1
    result = ebr.simulate(algorithm, ebr.Bernoulli([0.2, 0.9]), runs=20)
    assert (result.rounds == result.pulls).all()


def test_a_race_that_arms_which_tie_would_never_end_is_refused_at_once():
    with pytest.raises(ValueError, match=r"^epsilon must be at least 1\.1e-07, .* got 1e-07$"):
        next(ebr.SequentialRacing(1e-7, 0.05).play(2, rewards="bounded"))
    # A race begins if ε is just above 2D(τ), with τ the most pulls that can be counted.
    for n_arms, most in ((2, 2**53), (4096, (2**63 - 1) // 4096)):
        least = 8 * 0.5 * math.sqrt(math.log(math.log2(2 * most) / math.sqrt(0.05 / (6 * n_arms))) / most)
        assert next(ebr.SequentialRacing(least * 1.001, 0.05).play(n_arms)).tolist() == [[1] * n_arms]
        with pytest.raises(ValueError, match=r"^epsilon must be at least"):
            next(ebr.SequentialRacing(least * 0.999, 0.05).play(n_arms))


@both_ends
def test_a_race_of_too_many_turns_ends_with_their_number(end, monkeypatch):
    monkeypatch.setattr("ebr.algorithms.baselines.MOST_TURNS", 50)
    turns = 0

    def tie(pulls):
        nonlocal turns
        turns += 1
        return pulls / 2

    with pytest.raises(ValueError, match=r"^epsilon must be large .* 50 turns, got 0\.001$"):
        drive(ebr.SequentialRacing(0.001, 0.05, end=end).play(2, rewards="bounded"), tie)
    assert turns == 50
