"""Notebook 16: the entrants, what their thresholds spend, and how two are compared."""

import math

import numpy as np
import pandas as pd
import pytest
from compendium.modern_rivals import comparison, rival_entrants, sequential_rivals
from compendium.modern_rivals.rival_entrants import CLOSEST, ENTRANTS, IN_UNIT, KNOWN_GAP, OURS, PAUSING, Runs
from compendium.shared.characteristic_time import characteristic_lower_bound

import ebr


@pytest.fixture(scope="module", autouse=True)
def here():
    """Races are run in this process, not on workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EBR_WORKERS", "1")
        patch.delenv("DASK", raising=False)
        yield


FEW = Runs(batched=20, staged=3, single=2, closest=4, near=2, mixed=2, staked=5)


def test_everybody_races_on_both_setups_for_the_rewards_of_their_guarantee():
    table = comparison.played(comparison.everybody(ENTRANTS, 4, 3, 0.3), 0.1, FEW, 1)
    assert len(table) == 2 * len(ENTRANTS)
    within = table["algorithm"].map(lambda name: ENTRANTS[name].deadline)
    assert (table["longest"][within == "T"] <= 3).all()
    assert (table["longest"][within == "1"] == 1).all()
    np.testing.assert_allclose(table["over"] * table["floor"], table["pulls"])
    runs = table.groupby("algorithm")["runs"].max()
    assert (runs[rival_entrants.CLOSEST], runs["KL-LUCB"], runs[OURS], runs[IN_UNIT]) == (4, 2, 5, 5)


def test_a_point_is_what_the_race_itself_gives():
    point = comparison.everybody([OURS], 5, 3, 0.2)[1]
    row = comparison.played([point], 0.1, FEW, 7).iloc[0]
    race = ebr.simulate(ebr.algorithms.staked.StakedElasticBatchRacing(3, 0.2, 0.1), ebr.setup_2(5), 5, 7)
    assert (row["setup"], row["pulls"], row["longest"]) == ("Setup 2", race.pulls.mean(), race.rounds.max())
    assert row["error"] == pytest.approx(race.pulls.std(ddof=1) / math.sqrt(5))
    assert row["floor"] == pytest.approx(characteristic_lower_bound(ebr.setup_2(5), 0.2, 0.1), rel=1e-6)


@pytest.mark.parametrize("name", KNOWN_GAP)
def test_an_algorithm_that_is_told_the_gap_must_find_the_best_arm(name):
    point = comparison.everybody([name], 4, 3, 0.9)[0]  # with ε = 0.9 no arm would be wrong
    row = comparison.played([point], 0.1, FEW, 1).iloc[0]
    assert row["floor"] == pytest.approx(characteristic_lower_bound(ebr.setup_1(4), 1e-9, 0.1), rel=1e-6)


def test_an_algorithm_without_a_deadline_races_once_for_all_deadlines():
    points = comparison.sweeps([1, 2, 3], [0.2, 0.3], 4, 3, 0.2)
    along = [point for point in points if point.labels["sweep"] == "T" and point.entrant == "KL-LUCB"]
    assert sorted({point.deadline for point in along}) == [1, 3]
    table = comparison.played(along, 0.1, FEW, 1)
    assert table.groupby("setup")["pulls"].nunique().eq(1).all()


@pytest.mark.parametrize(("n_arms", "delta"), [(2, 0.3), (100, 0.01), (7, 1e-4)])
def test_every_threshold_spends_delta_and_no_more(n_arms, delta):
    for share in comparison.spent(n_arms, 15, 0.01, delta).values():
        assert share == pytest.approx(delta, rel=1e-9)


def test_a_ratio_has_the_standard_errors_of_both():
    columns = ["setup", "algorithm", "pulls", "error", "runs"]
    rows = [("Setup 1", "rival", 300.0, 30.0, 5), ("Setup 1", "own", 100.0, 5.0, 9)]
    found = comparison.compared(pd.DataFrame(rows, columns=columns), [("rival", "own")]).iloc[0]
    assert (found["ratio"], found["runs"]) == (3, 5)
    assert found["error"] == pytest.approx(3 * math.hypot(0.1, 0.05))


@pytest.mark.parametrize(("weaker", "holds"), [(1.2, True), (0.9, False)])
def test_one_rival_of_several_that_needs_fewer_pulls_refutes_x12(weaker, holds):
    pulls = {
        OURS: 1,
        IN_UNIT: 1.3,
        PAUSING: 1.4,
        "KL-LUCB": 3,
        "LUCB, mixture": 1.5,
        "EB-TC, mixture": weaker,
    }
    rows = pd.Series(pulls | {CLOSEST: 1.1}, name="pulls").rename_axis("algorithm").reset_index()
    table = rows.assign(setup="Setup 1", error=1e-3, runs=100, longest=15, failures=0)
    assert comparison.standing(table, {}, 15, 0.01).holds is holds


def test_a_rival_is_raced_by_its_name():
    problem = ebr.setup_1(5)
    found = rival_entrants.raced(rival_entrants.CLOSEST, problem, 0.25, 0.3, 60, 3)
    prior = rival_entrants.MIXED["Top-Two"]
    again = sequential_rivals.sequential(problem, 0.25, 0.3, 60, 3, "Top-Two", prior)
    assert found.drop(columns="error").equals(again)
    assert found["error"].tolist() == [arm > 1 for arm in again["arm"]]  # means 0.9, 0.7, 0.5 …


def test_a_rules_best_prior_has_the_fewest_pulls_of_both_setups():
    table = comparison.pilot(["LUCB"], [(0.5, 0.5), (5, 1)], 4, 0.2, 0.1, 10, 3)
    pulls = [
        [
            sequential_rivals.sequential(setup(4), 0.2, 0.1, 10, 3, "LUCB", prior)["pulls"].mean()
            for setup in (ebr.setup_1, ebr.setup_2)
        ]
        for prior in ((0.5, 0.5), (5, 1))
    ]
    expected = np.sqrt(np.prod(pulls, axis=1))
    assert table.loc["LUCB"].to_numpy() == pytest.approx(expected / expected.min())
