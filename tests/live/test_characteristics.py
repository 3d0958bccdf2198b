"""Operating characteristics against enumeration and plain sums; and whether they can be read."""

import math
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from oracles import Bare
from scipy.stats import binom, binomtest

import ebr
from ebr.live.characteristics import default_truths

SHARP = ebr.SharpElasticBatchRacing(6, 0.05, 0.05)


@pytest.fixture(scope="module")
def usual():
    return ebr.operating_characteristics(SHARP, 3, runs=300)


def plausible(successes, runs, probability):
    """Whether so many successes may come of this probability, but for a chance of 1e-7."""
    return binomtest(successes, runs, probability).pvalue > 1e-7


def test_with_one_round_and_two_arms_the_choice_is_right_as_often_as_enumeration_says():
    race, means, runs = ebr.SharpElasticBatchRacing(1, 0.2, 0.3, rewards="bounded"), (0.4, 0.6), 40_000
    b = math.floor(math.log(1 / 0.3) / 0.2**2) + 1
    worse, better = (binom.pmf(np.arange(b + 1), b, p) for p in means)
    joint = np.outer(worse, better)
    exact = np.triu(joint, 1).sum()  # the first arm wins ties: here the worse one
    got = ebr.operating_characteristics(race, {"apart": means}, runs=runs).table.loc[0]
    right = round(got["right"] * runs)
    assert plausible(right, runs, exact)
    assert not plausible(right, runs, np.triu(joint).sum())  # planted: ties count as right
    assert not plausible(right, runs, exact - 0.02)  # planted: so many runs would find it
    assert (got["pulls"], got["error"], got["pulls_90"]) == (2 * b, 0, 2 * b)
    assert (got["rounds"], got["rounds_90"], got["runs"]) == (1, 1, runs)
    assert binom.sf(right - 1, runs, got["right_lower"]) == pytest.approx(0.005, rel=1e-6)
    assert binom.cdf(right, runs, got["right_upper"]) == pytest.approx(0.005, rel=1e-6)


def test_every_row_sums_up_its_races():
    race = ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards="bounded")
    truths = {"close": [0.5, 0.45, 0.4], "wide": ebr.Bernoulli([0.9, 0.1, 0.1])}
    table = ebr.operating_characteristics(race, truths, runs=157, seed=4).table.set_index("truth")
    assert list(table.index) == ["close", "wide"]
    for name, means in (("close", [0.5, 0.45, 0.4]), ("wide", [0.9, 0.1, 0.1])):
        races = ebr.simulate(race, ebr.Bernoulli(means), 157, seed=4)
        row, pulls, rounds = table.loc[name], sorted(races.pulls.tolist()), sorted(races.rounds.tolist())
        assert row["best"] == max(means)
        good = [arm for arm, mean in enumerate(means) if mean > max(means) - 0.1]
        assert row["right"] == pytest.approx(sum(arm in good for arm in races.arm.tolist()) / 157)
        assert row["pulls"] == pytest.approx(sum(pulls) / 157)
        spread = math.sqrt(sum((x - row["pulls"]) ** 2 for x in pulls) / 156 / 157)
        assert row["error"] == pytest.approx(spread)
        # The least number that 90 % of the races do not exceed, 142 of 157.
        assert (row["pulls_90"], row["rounds_90"]) == (pulls[141], rounds[141])


def test_a_plan_and_its_operating_characteristics_tell_of_the_same_races():
    plan = ebr.plan(3, 4, 0.1, algorithm="pausing")
    hard = {"hard": [0.75, 0.55, 0.55]}
    got = ebr.operating_characteristics(plan, hard, runs=200)
    assert got.algorithm.rewards == "bounded"  # as raced: that rewards are 0 or 1 is not known
    assert got.table["pulls"][0] == plan.races.loc[("pausing", "hard"), "pulls"]
    assert got.table["error"][0] == pytest.approx(plan.races.loc[("pausing", "hard"), "error"])
    assert got.worst_case == plan.costs.loc["pausing", "at_most"]
    usual = ebr.operating_characteristics(plan, runs=3)
    assert usual.n_arms == 3
    pd.testing.assert_frame_equal(usual.table, ebr.operating_characteristics(plan.algorithm, 3, runs=3).table)


def test_the_usual_truths_by_hand():
    grid = default_truths(ebr.SharpElasticBatchRacing(2, 0.1, 0.1), 4, "bounded")
    gaps = {
        "all tie": [0, 0, 0],
        "one 0.1 worse, rest far": [0.5, 0.5, 0.1],
        "others 0.05 worse": [0.05] * 3,
        "others 0.1 worse": [0.1] * 3,
        "others 0.2 worse": [0.2] * 3,
        "others 0.4 worse": [0.4] * 3,
        "others 0.5 worse": [0.5] * 3,
    }
    below = ["all tie", "others 0.05 worse", "others 0.1 worse"]  # 0.1 there is room for no more
    wanted = [(0.1, name) for name in below] + [(best, name) for best in (0.5, 0.9) for name in gaps]
    assert [(truth.best, truth.name) for truth in grid] == wanted
    for truth in grid:
        means = [truth.best - gap for gap in (*gaps[truth.name], 0)]
        assert truth.problem.means.tolist() == pytest.approx(means, abs=1e-12)
    assert all(isinstance(truth.problem, ebr.Bernoulli) for truth in grid)


def test_an_arm_that_is_worse_by_epsilon_is_wrong_and_by_half_of_it_right():
    for epsilon in (0.3, 0.1, 0.07, 0.05, 0.01, 0.003):
        for truth in default_truths(ebr.SharpElasticBatchRacing(2, epsilon, 0.1), 3, "bounded"):
            good = truth.problem.is_good(np.arange(3), epsilon)
            gaps = truth.best - truth.problem.means
            assert good.tolist() == [gap < epsilon * (1 - 1e-9) for gap in gaps]


def test_of_normal_rewards_the_level_is_one_as_differences_are_all_that_counts():
    race = ebr.PausingElasticBatchRacing(3, 0.1, 0.1, 2.0, "Gaussian")
    got = ebr.operating_characteristics(race, 3, runs=5)
    assert set(got.table["best"]) == {0.5}
    grid = default_truths(got.algorithm, 3, "Gaussian")
    assert {(type(truth.problem), truth.problem.sigma) for truth in grid} == {(ebr.Gaussian, 2.0)}
    narrow = ebr.operating_characteristics(ebr.SharpElasticBatchRacing(3, 0.1, 0.1, 0.2), 3, runs=2)
    assert set(narrow.table["best"]) == {0.5}


def test_the_k_best_tie_and_the_others_are_worse():
    race = ebr.SharpElasticBatchRacing(2, 0.1, 0.1, k=2)
    grid = {truth.name: truth for truth in default_truths(race, 5, "bounded") if truth.best == 0.9}
    assert grid["others 0.1 worse"].problem.means.round(9).tolist() == [0.8, 0.8, 0.8, 0.9, 0.9]
    assert grid["one 0.1 worse, rest far"].problem.means.round(9).tolist() == [0.4, 0.4, 0.8, 0.9, 0.9]
    got = ebr.operating_characteristics(race, 5, runs=50)
    assert got.worst_case == 5 * race.pulls_by_round(5, "bounded")[-1]
    assert (got.table.loc[got.table["truth"] == "others 0.5 worse", "right"] == 1).all()


@dataclass(frozen=True)
class Conservative(Bare):
    """An algorithm of one's own that pulls each arm once and recommends the control."""

    control: int
    margin: float

    def play(self, n_arms, replicates=1, **_):
        yield np.ones((replicates, n_arms), dtype=int)
        return np.full(replicates, self.control)


def test_a_control_is_right_where_no_arm_is_better_by_the_margin_and_is_not_the_best():
    race = Conservative(control=2, margin=0.3)
    grid = {(truth.name, truth.best): truth for truth in default_truths(race, 3, "bounded")}
    assert grid["others 0.2 worse", 0.9].problem.means.round(9).tolist() == [0.7, 0.9, 0.7]
    assert grid["one 0.1 worse, rest far", 0.9].problem.means.round(9).tolist() == [0.4, 0.9, 0.8]
    truths = {"tie": [0.5, 0.5, 0.5], "near": [0.7, 0.1, 0.5], "far": [0.8, 0.1, 0.5]}
    table = ebr.operating_characteristics(race, truths, runs=3).table
    assert table["right"].tolist() == [1, 1, 0]  # worse by 0.2, more than ε, and by 0.3


def test_a_planned_control_comes_last_and_its_choice_is_nearly_always_right():
    plan = ebr.plan(3, 3, 0.1, control=True, margin=0.2)
    got = ebr.operating_characteristics(plan, runs=400)
    # By the theorem wrong with δ = 0.05 at most: below 0.85 in one of 21 truths by chance with under 1e-12.
    assert (got.table["right"] > 0.85).all()
    with pytest.raises(ValueError, match="truth 'a' must have a mean for each of 3 arms, got 2"):
        ebr.operating_characteristics(plan, {"a": [0.5, 0.4]})


def test_truths_are_in_the_units_of_the_rewards():
    grams = ebr.plan(2, 1, 10, support=(20, 70), algorithm="sharp")
    usual = ebr.operating_characteristics(grams, runs=2).table
    assert {"others 10 worse", "one 10 worse, rest far"} & set(usual["truth"]) == {"others 10 worse"}
    assert usual["best"].unique().tolist() == [25, 45, 65]
    inside = ebr.operating_characteristics(grams.algorithm, [[0.5, 0.75]], runs=20).table
    own = ebr.operating_characteristics(grams, [[45, 57.5]], runs=20).table
    assert own.loc[0, "best"] == 57.5
    assert own.loc[0, "pulls"] == inside.loc[0, "pulls"]
    with pytest.raises(ValueError, match=re.escape("truth '45, 75': means must lie in [20, 70], got 75")):
        ebr.operating_characteristics(grams, [[45, 75]])


@pytest.mark.parametrize(
    "race",
    [
        ebr.ElasticBatchRacing(3, 0.2, 0.2),
        ebr.AggressiveElimination(2, 0.3, 0.1),
        ebr.DeltaElimination(2, 0.3, 0.1),
        ebr.Passive(0.3, 0.1),
        ebr.SequentialRacing(0.3, 0.1),
    ],
    ids=lambda race: type(race).__name__,
)
def test_every_algorithm_has_operating_characteristics(race):
    got = ebr.operating_characteristics(race, 2, runs=5)
    assert len(got.table) >= 5
    assert got.table[["right", "pulls", "rounds"]].notna().all(axis=None)
    assert (got.worst_case is not None) == isinstance(race, ebr.ElasticBatchRacing)
    assert "Worst case" in str(got)


def test_worst_case_and_hardest_are_told_apart(usual):
    table = usual.table
    assert usual.worst_case == 3 * 1891
    assert (table["pulls_90"] <= usual.worst_case).all()
    most, least = "most pulls", "least often right"
    assert usual.hardest.loc[most, "pulls"] == table["pulls"].max() < usual.worst_case
    assert usual.hardest.loc[least, "right"] == table["right"].min()
    assert usual.hardest.loc[most, ["truth", "best"]].tolist() == ["all tie", 0.5]
    said = str(usual)
    assert "Worst case: at most 5,673 pulls if no reward is missing, proved." in said
    assert f"most pulls: all tie, best 0.5: {table['pulls'].max():,.0f}" in said
    assert max(map(len, said.splitlines())) <= 120
    assert "300 simulated races" in said


def test_in_a_page_names_of_truths_are_names():
    page = ebr.operating_characteristics(SHARP, {"<b>bold</b>": [0.9, 0.1]}, runs=2)._repr_html_()
    assert page.count("&lt;b&gt;bold&lt;/b&gt;") == 3  # in the table, and twice the hardest
    assert "<b>" not in page


def test_there_is_a_bar_on_a_terminal_alone(capsys, monkeypatch):
    ebr.operating_characteristics(SHARP, 2, runs=1)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ebr.operating_characteristics(SHARP, 2, runs=1)
    assert "truth/s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("truths", "says"),
    [
        ({"odd": [0.5, 1.2]}, "truth 'odd': means must lie in [0, 1], got 1.2 for arm 1"),
        ({"lone": [0.5]}, "truth 'lone': means must be a list of at least 2 numbers, got shape (1,)"),
        ([0.5, 0.4], "truth '0.5': means must be a list of at least 2 numbers, got shape ()"),
        ({"a": [0.5, 0.4], "b": [0.5, 0.4, 0.3]}, "truth 'b' must have a mean for each of 2 arms, got 3"),
        ([], "truths must be one or more lists of means, got none"),
        (1, "n_arms must be an integer of at least 2, got 1"),
        (None, "truths must be a number of arms or lists of means, got None"),
    ],
)
def test_a_wrong_truth_is_named(truths, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ebr.operating_characteristics(SHARP, truths, runs=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((SHARP, 2, None, 0), "runs must be an integer of at least 1, got 0"),
        ((SHARP, 2, "coins"), "rewards must be one of 'Bernoulli', .*, got 'coins'"),
        ((3, 2), "design must be a plan or an algorithm, got 3"),
        ((ebr.SharpElasticBatchRacing(2, 0.1, 0.1, k=4), 3), "k must lie in 1 … 2, below the number of arms"),
    ],
)
def test_other_wrong_arguments_are_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        ebr.operating_characteristics(*arguments)


WORDS = ["characteristics", "--arms", "3", "--deadline", "2", "--epsilon", "0.1"]


def test_a_terminal_prints_and_keeps_the_same(tmp_path, run):
    kept, drawn = tmp_path / "table.csv", tmp_path / "picture.svg"
    wanted = ebr.operating_characteristics(ebr.plan(3, 2, 0.1), runs=20, seed=3)
    words = [*WORDS, "--runs", "20", "--seed", "3", "--csv", kept, "--picture", drawn]
    assert run(*words) == (0, f"{wanted}\n")
    pd.testing.assert_frame_equal(pd.read_csv(kept), wanted.table)
    assert "pulls of all arms" in drawn.read_text()
    own = ["--truth", "0.9", "0.8", "0.3", "--truth", "0.5", "0.5", "0.5", "--rewards", "Bernoulli"]
    plan = ebr.plan(3, 2, 0.1, rewards="Bernoulli", algorithm="pausing")
    wanted = ebr.operating_characteristics(plan, [[0.9, 0.8, 0.3], [0.5, 0.5, 0.5]])
    assert run(*WORDS, "--algorithm", "pausing", *own) == (0, f"{wanted}\n")
    assert "0.9, 0.8, 0.3" in str(wanted)


def test_a_terminal_refuses_a_wrong_truth_in_a_line(run):
    says = "error: truth '0.9, 0.8, 1.3': means must lie in [0, 1], got 1.3"
    assert run(*WORDS, "--truth", "0.9", "0.8", "1.3")[1].startswith(says)


def test_truths_that_print_alike_are_told_apart():
    truths = [[0.5, 0.4], [0.5, 0.4 + 1e-9], ebr.Bernoulli([0.5, 0.4])]
    table = ebr.operating_characteristics(SHARP, truths, runs=1).table
    assert table["truth"].tolist() == ["0.5, 0.4", f"0.5, {0.4 + 1e-9}", "0.5, 0.4"]


def test_no_table_is_written_over_a_journal(run, path):
    with ebr.Race(SHARP, ["A", "B"], path):
        before = path.read_bytes()
    status, said = run(*WORDS, "--runs", "1", "--csv", path)
    assert (status, said) == (2, f"error: {path} is the journal of a race: name another file for the table\n")
    assert path.read_bytes() == before
