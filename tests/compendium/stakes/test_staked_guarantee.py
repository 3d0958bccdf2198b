"""The parts of X15's check: every path, the final's sign, the supermartingale, the suite.

A test with simulated races fails by chance at most once in a million times.
"""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from compendium.shared.distributions import tail_of_count
from compendium.stakes import every_path, small_designs, staked_guarantee, suite, supermartingale

from ebr.algorithms.game import advance
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Bernoulli, Gaussian


@pytest.mark.parametrize(("model", "repeats"), [("bounded", 1), ("Bernoulli", 12)])
def test_all_paths_together_fail_as_often_as_simulated_races(model, repeats):
    race = StakedElasticBatchRacing(3, 0.35, 0.6, rewards=model, start=0.9)
    means = np.array([0.3, 0.66])
    paths = every_path.Paths(race, means, repeats, 1)
    assert paths.ended == pytest.approx(1)
    runs, error = 20_000, paths.failed.std() / math.sqrt(repeats)
    wrong = int((~simulate(race, Bernoulli(means), runs, 2).correct(0.35)).sum())
    low, high = paths.failed.mean() - 5 * error, paths.failed.mean() + 5 * error
    assert tail_of_count(wrong, runs, high) > 1e-7
    assert tail_of_count(runs - wrong, runs, 1 - low) > 1e-7


def test_a_sign_errs_as_a_plain_sum_says():
    law = [[math.comb(6, k) * p**k * (1 - p) ** (6 - k) for k in range(7)] for p in (0.35, 0.65)]
    by_hand = sum(law[0][a] * law[1][c] for a in range(7) for c in range(a + 1))
    assert staked_guarantee.wrong_sign("Bernoulli", 2, 6, 0.3) == pytest.approx(by_hand, rel=1e-3)
    by_hand = 0.5 * math.erfc(0.3 * math.sqrt(6) / 0.5 / 2)
    assert staked_guarantee.wrong_sign("Gaussian", 2, 6, 0.3) == pytest.approx(by_hand)


def test_what_is_watched_is_the_race_itself():
    race, problem = StakedElasticBatchRacing(5, 0.2, 0.3, rewards="Gaussian"), Gaussian([0.5, 0.3, 0.2], 0.5)
    generators = [np.random.default_rng(3) for _ in range(2)]
    wealth, watch = supermartingale._block(race, problem, 50, generators[0])
    game = race.play(3, 50, rewards="Gaussian", generator=generators[1])
    turn = advance(game)
    while turn.pulls is not None:
        # Noise as `simulate` draws it: arms × replicates, for arms that are pulled in any replicate.
        noise, pulled = np.zeros((50, 3)), turn.pulls.any(axis=0)
        noise[:, pulled] = generators[1].standard_normal((int(pulled.sum()), 50)).T
        turn = advance(game, turn.pulls * problem.means + 0.5 * np.sqrt(turn.pulls) * noise)
    assert turn.arms.tolist() == watch.table.arms.tolist()
    assert wealth.shape == (5, 50)


def test_a_first_rounds_wealth_is_what_the_purses_say():
    race, problem = StakedElasticBatchRacing(3, 0.2, 0.5, rewards="Gaussian"), Gaussian([0.5, 0.3], 0.5)
    game = race.play(2, 30, rewards="Gaussian", generator=np.random.default_rng(1))
    pulls = next(game)
    watch = supermartingale.Watch(supermartingale.table_of(game), problem)
    assert watch.wealth == pytest.approx(0.95 * (1 - 3**-0.5) * 0.5)
    game.send(pulls * 0.4)  # two equal arms, so no claim holds
    table = watch.table
    assert (table.left == 0).all()  # with T = 3 all money is given before the first round, half of it to each
    purse = np.exp(table.purses[0, np.arange(30), (table.claimant == 1).argmax(axis=1), 0])  # the bad arm's
    assert watch.wealth == pytest.approx(purse + 0.95 * (1 - 3**-0.5) * 0.5 / 2)
    assert not watch.reached.any() | watch.strayed.any()


def test_the_suite_is_as_wide_as_it_says_and_its_halves_have_no_problem_in_common():
    halves = [suite.instances(half) for half in suite.HALVES]
    assert [len(half) for half in halves] == [13, 14]
    every = halves[0] + halves[1]
    assert len({at.kind for at in every}) == len({at.problem.means.tobytes() for at in every}) == 27
    ranges = [[getattr(at, name) for at in every] for name in ("deadline", "epsilon")]
    assert [(min(values), max(values)) for values in ranges] == [(2, 50), (0.003, 0.3)]
    assert {2, 1000} <= {at.problem.n_arms for at in every}


def test_a_ratio_is_to_the_best_of_the_others():
    races = pd.DataFrame({"race": ["a", "b", "c"], "pulls": [2.0, 4.0, 8.0], "error": [0.0, 0.4, 0.0]})
    table = suite.relative(races.assign(rewards="r", half="h", problem="p"))
    assert table["ratio"].tolist() == [0.5, 2, 4]
    assert table["against"].tolist() == ["b", "a", "a"]
    assert table["spread"].tolist() == pytest.approx([0.05, 0.2, 0])


def test_designs_are_those_of_the_small_problems_for_their_arms_rounds_epsilon_and_delta():
    small = {
        at.kind: at for half in suite.HALVES for at in suite.instances(half) if small_designs.is_small(at)
    }
    designs = small_designs.designs()
    assert designs.keys() == set(product(("Bernoulli", "Gaussian"), small))
    for (rewards, kind), race in designs.items():
        at = small[kind]
        asked = (at.problem.n_arms, at.epsilon, at.delta, rewards)
        assert (race.n_arms, race.epsilon, race.delta, race.rewards) == asked
        assert len(race.looks) <= at.deadline


def test_designs_are_certified():
    for (_, kind), race in small_designs.designs().items():
        if kind in ("wide", "equal 5", "T = 2"):  # the others take up to 18 seconds each
            assert race.certificate().holds


@pytest.mark.parametrize(("rewards", "kind"), [("Gaussian", "two"), ("Bernoulli", "wide")])
def test_a_design_is_found_again(rewards, kind):
    (at,) = (at for half in suite.HALVES for at in suite.instances(half) if at.kind == kind)
    found, kept = small_designs.searched(rewards, at), small_designs.designs()[rewards, kind]
    assert (found["looks"], found["pruning"]) == (kept.looks, kept.pruning)
    assert found["boundaries"] == pytest.approx(kept.boundaries)


def test_a_race_leads_where_it_needs_a_twentieth_less_than_all_others():
    rows = [("p", "a", 0.9, 0.001), ("p", "b", 1.11, 0.001), ("q", "a", 0.94, 0.01), ("s", "b", 0.97, 0.001)]
    table = pd.DataFrame(rows, columns=["problem", "race", "ratio", "spread"]).assign(rewards="r")
    assert suite.leads(table)["r"].to_dict() == {"a": "p, q (?)", "b": "nowhere"}


def test_runs_are_shared_out_by_problem_and_staked_races_have_their_own_number():
    made = [point for point in suite.points("Bernoulli") if point.labels["problem"] in ("pair", "equal 100")]
    table = suite.played(made, 5, 10, 1)
    runs = table.groupby(["problem", "race"])["runs"].first()
    assert (runs["pair", suite.OURS], runs["equal 100", suite.OURS]) == (50, 1)
    assert (runs["pair", suite.CERTIFIED], runs["equal 100", "sharp EBR"]) == (100, 2)
    order = [(point.labels["problem"], point.labels["race"]) for point in made]
    assert list(table[["problem", "race"]].itertuples(index=False, name=None)) == order
