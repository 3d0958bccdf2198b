"""Races for the k best: asked, told, reopened and planned as races for one arm are."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import ebr
from ebr.__main__ import main
from ebr.algorithms.game import drive

ARMS = ["A", "B", "C", "D"]
MEANS = {"A": 0.1, "B": 0.9, "C": 0.2, "D": 0.8}
ALGORITHMS = [ebr.ElasticBatchRacing, ebr.SharpElasticBatchRacing, ebr.DeltaElimination]


def tell_means(race):
    pulls = race.ask()
    race.tell({arm: (count, math.floor(MEANS[arm] * count)) for arm, count in pulls.items()})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_race_recommends_the_k_best(algorithm, tmp_path):
    with ebr.Race(algorithm(3, 0.3, 0.1, k=2), ARMS, tmp_path / "trial.jsonl") as race:
        assert race.recommendation is None
        while not race.finished:
            tell_means(race)
        assert race.recommendation == ("B", "D")
        assert race.survivors == ["B", "D"]
        assert race.intervals["survives"].tolist() == [False, True, False, True]
        with pytest.raises(ValueError, match=r"^the race has ended: it recommends B, D$"):
            race.ask()
    with ebr.Race.open(tmp_path / "trial.jsonl") as again:
        assert again.algorithm == algorithm(3, 0.3, 0.1, k=2)
        assert again.recommendation == ("B", "D")


def test_a_race_asks_for_what_a_simulation_pulls(tmp_path):
    algorithm, means = ebr.SharpElasticBatchRacing(4, 0.05, 0.1, k=2), list(MEANS.values())
    with ebr.Race(algorithm, ARMS, tmp_path / "trial.jsonl") as race:

        def respond(pulls):
            asked = race.ask()
            assert [asked.get(arm, 0) for arm in ARMS] == pulls[0].tolist()
            tell_means(race)
            return np.floor(pulls * means)

        arms = drive(algorithm.play(4, rewards="bounded"), respond)
        assert race.recommendation == tuple(ARMS[arm] for arm in arms[0])


def test_an_arm_that_is_left_out_before_the_end_is_decided_not_out(tmp_path, capsys):
    journal = str(tmp_path / "trial.jsonl")
    options = ["--deadline", "6", "--epsilon", "0.05", "--k", "2"]
    assert main(["start", journal, "--arms", "A", "B", "C", "D", *options]) == 0
    with ebr.Race.open(journal) as race:
        count = race.ask()["A"]
        sums = {"A": 0.0, "B": 1.0, "C": 0.5, "D": 0.5}
        race.tell({arm: (count, round(mean * count)) for arm, mean in sums.items()})
        assert race.survivors == ["C", "D"]
    capsys.readouterr()
    assert main(["status", journal]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {line[0]: line[-1] for line in lines if line and line[0] in ARMS} == {
        "A": "decided",
        "B": "decided",
        "C": "in",
        "D": "in",
    }


def test_another_k_is_another_race_and_a_journal_without_k_has_one(tmp_path):
    journal = tmp_path / "trial.jsonl"
    with ebr.Race(ebr.SharpElasticBatchRacing(3, 0.3, 0.1), ARMS, journal):
        pass
    with pytest.raises(ValueError, match="k is 1 there and 2 here"):
        ebr.Race(ebr.SharpElasticBatchRacing(3, 0.3, 0.1, k=2), ARMS, journal)
    old = Path(__file__).parent / "format-1" / "sharp.jsonl"
    assert "k" not in json.loads(old.read_text().splitlines()[0])["parameters"]
    with ebr.Race.open(old, readonly=True) as race:
        assert race.algorithm.k == 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_as_many_places_as_arms_are_refused_before_a_file_is_touched(algorithm, tmp_path):
    with pytest.raises(ValueError, match=r"^k must lie in 1 … 3, below the number of arms, got 4$"):
        ebr.Race(algorithm(3, 0.3, 0.1, k=4), ARMS, tmp_path / "trial.jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"k": 0}, "^k must be an integer of at least 1, got 0$"),
        ({"k": 5}, r"^k must lie in 1 … 4, below the number of arms, got 5$"),
        ({"k": 2, "algorithm": "pausing"}, "^k must be 1 for algorithm 'pausing', got 2$"),
    ],
)
def test_a_plan_refuses_at_once(arguments, names):
    with pytest.raises(ValueError, match=names):
        ebr.plan(5, 3, 0.1, **arguments)


def test_a_plan_for_the_k_best():
    planned = ebr.plan(6, 3, 0.1, k=2)
    assert planned.algorithm == ebr.SharpElasticBatchRacing(3, 0.1, 0.05, k=2)
    assert "6 arms, at most 3 rounds, 2 arms within 0.1 of the k-th best with probability 0.95" in str(
        planned
    )
    assert planned.rounds["so_far"].tolist() == planned.algorithm.pulls_by_round(6, "bounded").tolist()
    assert (planned.totals["typical"] <= planned.totals["at_most"]).all()
    assert (ebr.plan(6, 3, 0.1, k=1).totals == ebr.plan(6, 3, 0.1).totals).all(axis=None)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--k", "0"], "error: k must be an integer of at least 1, got 0"),
        (["--k", "4"], "error: k must lie in 1 … 3, below the number of arms, got 4"),
        (["--k", "2", "--algorithm", "pausing"], "error: k must be 1 for --algorithm pausing, got 2"),
    ],
)
def test_the_command_line_refuses_in_one_line(arguments, names, tmp_path, capsys):
    journal = str(tmp_path / "trial.jsonl")
    start = ["start", journal, "--arms", *ARMS, "--deadline", "3", "--epsilon", "0.3", *arguments]
    assert main(start) == 2
    assert capsys.readouterr().err.strip() == names
    assert not list(tmp_path.iterdir())


def test_the_command_line_plans_for_the_k_best(capsys):
    assert main(["plan", "--arms", "6", "--deadline", "2", "--epsilon", "0.2", "--k", "3"]) == 0
    assert "3 arms within 0.2 of the k-th best" in capsys.readouterr().out
