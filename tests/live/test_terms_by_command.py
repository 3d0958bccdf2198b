"""Missing rewards, controls, blocks and scales from a terminal, and in a plan."""

import numpy as np
import pytest

import ebr
from ebr.live.cli import main

START = ["--arms", "A", "B", "C", "--deadline", "3"]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in this process, in a folder of its own: its status, and what it says."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        status = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return status, out + err

    return run


def test_a_race_in_milliseconds_of_which_the_smallest_are_the_best(run):
    options = ["--epsilon", 30, "--support", 0, 300, "--lower-is-better", "--control", "C", "--margin", 60]
    assert run("start", "ms.jsonl", *START, *options)[0] == 0
    with ebr.Race.open("ms.jsonl") as race:
        expected = ebr.SharpElasticBatchRacing(3, 0.1, 0.05, control=2, margin=0.2)
        assert race.algorithm == expected
        pulls = race.ask()
    said = run("tell", "ms.jsonl", *(f"{arm}={count * 100}/{count}" for arm, count in pulls.items()))[1]
    assert " 100.0000 " in said
    while "has ended" not in said:
        run("ask", "ms.jsonl")
        with ebr.Race.open("ms.jsonl", readonly=True) as race:
            pulls = race.asked
        said = run("tell", "ms.jsonl", *(f"{arm}={count * 100}/{count}" for arm, count in pulls.items()))[1]
    assert "It recommends C, the control: no arm is better than it by 60." in said
    assert run("start", "ms.jsonl", *START, *options)[0] == 0  # the same race
    refused = run("start", "ms.jsonl", *START, "--epsilon", 30, "--support", 0, 300)[1]
    assert "scale is [300.0, 0.0] there and [0.0, 300.0] here" in refused


def test_missing_rewards_are_told_with_their_reason(run):
    run("start", "t.jsonl", *START, "--epsilon", 0.2)
    run("ask", "t.jsonl")
    status, said = run("tell", "t.jsonl", "A=5/10", "B=0/0", "C=4/9")
    assert status == 2
    assert "say missing='at random'" in said
    status, said = run("tell", "t.jsonl", "--missing", "at random", "A=5/10", "B=0/0", "C=4/9")
    assert status == 0
    assert "Round 2 of at most 3" in said
    assert run("tell", "t.jsonl", "--missing", "bad luck", "A=1/1")[0] == 2


def test_blocks_are_told_as_a_table(run, tmp_path):
    run("start", "b.jsonl", *START, "--epsilon", 0.2, "--blocks", "--sigma", 0.3, "--unbounded")
    run("ask", "b.jsonl")
    with ebr.Race.open("b.jsonl", readonly=True) as race:
        count = race.asked["A"]
    rows = [f"day {k},{k},{k + 1},{k}" for k in range(count)]
    (tmp_path / "days.csv").write_text("\n".join(["block,A,B,C", *rows]))
    status, said = run("tell", "b.jsonl", "--blocks", "days.csv")
    assert status == 0
    assert "It recommends B." in said
    with ebr.Race.open("b.jsonl", readonly=True) as race:
        assert np.diff(race.intervals["mean"]) == pytest.approx([1, -1])


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("A,B\n1,2", "must have the columns block and then one for each arm"),
        ("block,A,A\n1,2,3", "must have the columns block and then one for each arm, all different"),
        ("block,A,B\n1,2", "line 2: there must be 3 columns"),
        ("block,A,B\n1,2,x", "line 2: 'x' is not a number"),
        ("block,A,B\n1,2,3\n1,2,3", "line 3: there is a block 1 before"),
    ],
)
def test_tables_that_are_none_are_refused(run, table, says, tmp_path):
    run("start", "b.jsonl", *START, "--epsilon", 0.2, "--blocks")
    run("ask", "b.jsonl")
    (tmp_path / "days.csv").write_text(table)
    status, said = run("tell", "b.jsonl", "--blocks", "days.csv")
    assert status == 2
    assert says in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--epsilon", 60, "--support", 0, 50], "epsilon must lie in (0, 50), in the support, got 60.0"),
        (["--epsilon", 0.1, "--margin", 0.2], "margin must be left out where there is no control"),
        (["--epsilon", 0.1, "--control", "D"], "control must be one of the arms, A, B, C, got 'D'"),
        (["--epsilon", 0.1, "--control", "A", "--algorithm", "pausing"], "must be SharpElasticBatchRacing"),
        (["--epsilon", 0.1, "--blocks", "--rewards", "bounded"], "needs independent arms"),
    ],
)
def test_bad_terms_are_refused_before_there_is_a_file(run, options, says, tmp_path):
    status, said = run("start", "x.jsonl", *START, *options)
    assert status == 2
    assert says in said
    assert not (tmp_path / "x.jsonl").exists()


def test_a_plan_in_units_is_the_plan_between_0_and_1():
    unit = ebr.plan(3, 3, 0.1, control=True, margin=0.2)
    grams = ebr.plan(3, 3, 5, support=(10, 60), control=True, margin=10)
    assert (
        grams.algorithm == unit.algorithm == ebr.SharpElasticBatchRacing(3, 0.1, 0.05, control=2, margin=0.2)
    )
    assert grams.rounds["gone"].to_numpy() == pytest.approx(50 * unit.rounds["gone"].to_numpy())
    assert grams.deadlines.equals(unit.deadlines)
    assert "an arm within 5 of the best" in str(grams)
    assert "no arm can be better than the control by 10" in str(grams)
    budget = ebr.plan(3, 3, budget=600, support=(0, 50))
    assert f"buy epsilon = {50 * budget.algorithm.epsilon:g} at delta" in str(budget)


def test_a_plan_shows_what_a_control_saves_where_nobody_is_better():
    plan = ebr.plan(3, 6, 0.05, control=True, margin=0.15)
    # All arms tie: hardly a race would end early without a control.
    assert plan.totals.loc["none better", "typical"] < plan.totals.loc["worst case", "at_most"] / 2
    assert "none better" not in ebr.plan(3, 1, 0.3).totals.index


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"epsilon": 60, "support": (0, 50)}, r"epsilon must lie in \(0, 50\), in the support, got 60"),
        ({"epsilon": 0.1, "support": (1, 0)}, "support must be a pair"),
        ({"epsilon": 0.1, "support": None}, "support must be a pair"),
        ({"epsilon": 0.1, "margin": 0.2}, "margin must be left out where there is no control"),
        ({"epsilon": 0.1, "control": True, "margin": 0.05}, "margin must be at least epsilon"),
        ({"epsilon": 0.1, "control": True, "algorithm": "pausing"}, "algorithm must be 'sharp'"),
        ({"epsilon": 0.1, "control": True, "k": 2}, "k must be 1 where there is a control"),
    ],
)
def test_bad_plans_are_refused(given, says):
    with pytest.raises(ValueError, match=says):
        ebr.plan(3, 3, **given)
