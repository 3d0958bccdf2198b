"""Races with missing rewards, a control, blocks and scales: told, reopened, replayed and forged."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracles import Rewards, lossy_race, sharp_schedule

import ebr
from ebr.live.journal import Journal

ARMS = ["A", "B", "C"]
SHARP = ebr.SharpElasticBatchRacing
LOST = "at random"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trial.jsonl"


def forged(path, number, **changes):
    """The journal with a line that says something else, sealed as if it had always said so."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.unlink()
    with_changes = Journal(path)
    for place, line in enumerate(lines, start=1):
        line = line | changes if place == number else line
        with_changes.append({k: v for k, v in line.items() if k not in ("time", "checksum") and v is not ...})
    with_changes.close()


# Missing rewards.


def test_a_race_with_losses_is_the_plain_loop_though_it_is_reopened_before_every_line(path):
    # Nothing is lost in the first round, all of one arm in the second, and then a third. Two arms tie.
    table = np.array([[0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0], [0, 0, 1, 0, 0, 1]])

    def keep(number, arm, owed):
        return owed if number == 0 else 0 if (number, arm) == (1, 0) else owed - owed // 3

    used = [0, 0, 0]

    def pay(arm):
        used[arm] += 1
        return int(table[arm, (used[arm] - 1) % 6])

    asked, arm, within = lossy_race(pay, keep, 3, 5, 0.05, 0.05, 0.5, "bounded")
    ebr.Race(SHARP(5, 0.05, 0.05), ARMS, path).close()
    paid, mine = Rewards(table[None]), []
    while True:
        with ebr.Race.open(path) as race:
            if race.finished:
                break
            mine.append([race.ask().get(name, 0) for name in ARMS])
        kept = np.array([[keep(len(mine) - 1, place, n) for place, n in enumerate(mine[-1])]])
        sums = paid.pay(kept)
        told = {a: (int(kept[0, i]), int(sums[0, i])) for i, a in enumerate(ARMS) if mine[-1][i]}
        with ebr.Race.open(path) as race:
            race.tell(told, missing=LOST)
    assert mine == asked
    assert race.recommendation == ARMS[arm]
    assert race.within == pytest.approx(within)
    assert 0.05 < race.within < 0.1
    shown = re.fullmatch(
        r"It recommends (.): within (.*) of the best, not 0.05, as rewards are missing.", race.verdict
    )
    assert shown[1] == race.recommendation
    assert race.within <= float(shown[2]) < race.within * 1.01  # rounded up
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("missing") for line in lines if line["event"] == "tell"] == [None] + [LOST] * (
        len(mine) - 1
    )


def test_what_is_missing_is_asked_for_in_the_next_round(path):
    targets, _ = sharp_schedule(3, 4, 0.1, model="bounded")
    with ebr.Race(SHARP(4, 0.1, 0.05), ARMS, path) as race:
        first = race.ask()["A"]
        assert first == targets[0]
        race.tell({"A": [], "B": (first - 7, 30), "C": [1, 0] * (first // 2)}, missing=LOST)
        assert race.ask() == {
            "A": targets[1],
            "B": targets[1] - first + 7,
            "C": targets[1] - first + first % 2,
        }
        assert math.isnan(race.intervals.loc["A", "mean"])
        assert race.history["pulls"].tolist() == [0, first - 7, first // 2 * 2]


def test_an_arm_of_which_nothing_ever_came_in_leaves_no_guarantee(path):
    with ebr.Race(SHARP(2, 0.3, 0.2), ["A", "B"], path) as race:
        while not race.finished:
            pulls = race.ask()
            race.tell({arm: (pulls[arm] if arm == "A" else 0, 0) for arm in pulls}, missing=LOST)
        assert (race.recommendation, race.within) == ("A", math.inf)
        assert "guarantees nothing: of some arm no reward has come in" in race.verdict


def test_a_complete_round_is_not_noted_as_missing(path):
    with ebr.Race(SHARP(3, 0.3, 0.2), ["A", "B"], path) as race:
        pulls = race.ask()
        race.tell({arm: (count, count // 2) for arm, count in pulls.items()}, missing=LOST)
    assert "missing" not in path.read_text()


@pytest.mark.parametrize(
    ("told", "missing", "message"),
    [
        (
            {"A": [1], "B": [1]},
            None,
            "were asked for, got 1: tell the round when it is complete, or say missing=",
        ),
        ({"A": [1]}, LOST, r"rewards of B are missing: say \[\] for an arm of which all are"),
        ({"A": [1], "B": [1]}, "they were bad", "missing must be one of 'at random', got 'they were bad'"),
        ({"A": (99, 5), "B": [1]}, LOST, "were asked for, got 99: pass the first"),
        ({"A": (-1, 0), "B": [1]}, LOST, "got -1"),
        ({"A": (0, 1), "B": [1]}, LOST, "got 0 with the sum 1"),
        ({"A": [1.5], "B": [1]}, LOST, "must lie in"),
    ],
)
def test_bad_losses_are_refused_and_nothing_is_written(told, missing, message, path):
    with ebr.Race(SHARP(3, 0.3, 0.2), ["A", "B"], path) as race:
        race.ask()
        before = path.read_bytes()
        with pytest.raises(ValueError, match=message):
            race.tell(told, missing=missing)
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("algorithm", "known", "message"),
    [
        (
            ebr.PausingElasticBatchRacing(3, 0.3, 0.2),
            {},
            "must permit missing rewards.*PausingElasticBatchRacing.*: pull again in place",
        ),
        (SHARP(3, 0.3, 0.2, k=2), {}, "k = 2"),
        (SHARP(3, 0.3, 0.2), {"rewards": "Gaussian", "support": None}, "looks is 'union'"),
    ],
)
def test_losses_are_refused_where_they_are_not_proved_to_do_no_harm(algorithm, known, message, path):
    with ebr.Race(algorithm, ARMS, path, **known) as race:
        pulls = race.ask()
        before = path.read_bytes()
        with pytest.raises(ValueError, match=message):
            race.tell({arm: (count - 1, 0) for arm, count in pulls.items()}, missing=LOST)
        assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"missing": "why not"}, "line 3 .*missing must be one of 'at random', got 'why not'"),
        ({"missing": None}, "line 3 .*missing must be one of"),
        ({"missing": ...}, "line 3 .* is not what the algorithm does here"),
        ({"rewards": {"A": [99, 1.0], "B": [2, 1.0]}}, "line 3 .* got 99"),
        ({"rewards": {"A": [-1, 0.0], "B": [2, 1.0]}}, "line 3 .* got -1"),
        ({"rewards": {"A": [2, 1.0]}}, "line 3 .*rewards of B are missing"),
        ({"rewards": {"A": [2, 7.0], "B": [2, 1.0]}}, "line 3 .* with the sum 7.0"),
        ({"rewards": {"A": [2.0, 1.0], "B": [2, 1.0]}}, "line 3 "),
    ],
)
def test_forged_losses_are_refused_with_their_line(changes, says, path):
    with ebr.Race(SHARP(3, 0.3, 0.2), ["A", "B"], path) as race:
        race.ask()
        race.tell({"A": [1, 0], "B": [0, 1]}, missing=LOST)
    forged(path, 3, **changes)
    with pytest.raises(ebr.JournalError, match=says):
        ebr.Race.open(path)


def test_losses_forged_into_a_race_that_cannot_have_them_are_refused(path):
    with ebr.Race(ebr.PausingElasticBatchRacing(3, 0.3, 0.2), ["A", "B"], path) as race:
        race.tell({arm: (count, 0) for arm, count in race.ask().items()})
    forged(path, 3, rewards={"A": [2, 1.0], "B": [2, 1.0]}, missing=LOST)
    with pytest.raises(ebr.JournalError, match=r"line 3 .* permit missing .*PausingElastic"):
        ebr.Race.open(path)


def test_rounded_rewards_may_be_missing_too(path):
    with ebr.Race(SHARP(3, 0.3, 0.2), ["A", "B"], path, rewards="Bernoulli", rounding=True) as race:
        race.ask()
        race.tell({"A": [0.5, 0.25, 0.75], "B": []}, missing=LOST)
        history = race.history
    with ebr.Race.open(path) as race:
        assert race.history.equals(history)
        assert history["reported"].tolist() == [1.5, 0.0]
    forged(path, 3, counted={"A": 4, "B": 0})
    with pytest.raises(ebr.JournalError, match=r"line 3 .*counted must lie in 0 … 3 for 'A', got 4"):
        ebr.Race.open(path)


def test_a_race_of_before_with_a_support_beyond_0_and_1_goes_on_in_its_units(path):
    old = Path(__file__).parent / "unscaled.jsonl"
    path.write_bytes(old.read_bytes())
    recorded = [json.loads(line) for line in old.read_text().splitlines()]
    assert (recorded[0]["format"], recorded[0]["support"]) == (3, [0.0, 50.0])
    with ebr.Race.open(path) as race:
        assert race.ask() == recorded[-1]["pulls"]
        assert race.intervals["mean"].between(15, 30).all()
        race.tell({arm: (count - 1, 25.0 * (count - 1)) for arm, count in race.ask().items()}, missing=LOST)
        assert race.algorithm.epsilon == 0.5


# A control.


def test_a_race_in_which_nobody_can_be_better_ends_with_the_control(path):
    arms = ["new", "placebo", "other"]
    algorithm = SHARP(6, 0.05, 0.05)
    with ebr.Race(algorithm, arms, path, control="placebo", margin=0.2) as race:
        assert race.control == "placebo"
        while not race.finished:
            race.tell({arm: (count, count // 2) for arm, count in race.ask().items()})
        assert (race.recommendation, race.within) == ("placebo", 0.2)
        assert race.verdict == "It recommends placebo, the control: no arm is better than it by 0.2."
        assert race.round < 6
    with ebr.Race(algorithm, arms, path, control="placebo", margin=0.2) as again:
        assert again.control == "placebo"
    with pytest.raises(ebr.JournalError, match=r"margin is 0.2 there and 0.3 here"):
        ebr.Race(algorithm, arms, path, control="placebo", margin=0.3)
    with pytest.raises(ebr.JournalError, match="control is 1 there and None here"):
        ebr.Race(algorithm, arms, path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"control": "D"}, "control must be one of the arms, A, B, C, got 'D'"),
        ({"control": "A", "margin": 0.01}, "margin must be at least epsilon, 0.05, got 0.01"),
        ({"control": "A", "margin": -1}, "margin must be a finite number above 0, got -1"),
        ({"margin": 0.1}, "margin must be left out where there is no control"),
    ],
)
def test_a_control_that_cannot_be_is_refused_before_there_is_a_file(given, message, path):
    with pytest.raises(ValueError, match=message):
        ebr.Race(SHARP(6, 0.05, 0.05), ARMS, path, **given)
    with pytest.raises(ValueError, match="algorithm must be SharpElasticBatchRacing"):
        ebr.Race(ebr.Passive(0.1, 0.1), ARMS, path, control="A")
    assert not path.exists()


# Blocks.


def test_blocks_are_told_as_a_table(path):
    generator = np.random.default_rng(3)
    algorithm = SHARP(3, 0.1, 0.05, sigma=0.1)

    def rounds(race, as_told):
        while not race.finished:
            asked = race.ask()
            day = generator.normal(
                0, 50, (next(iter(asked.values())), 1)
            )  # which hides all that is to be seen
            means = np.array([ARMS.index(arm) for arm in asked]) / 10
            table = day + means + generator.normal(0, 0.1, (len(day), len(asked)))
            race.tell(as_told(table, list(asked)))

    for number, as_told in enumerate(
        (
            lambda table, _: table,
            lambda table, asked: pd.DataFrame(table, columns=asked)[asked[::-1]],
            lambda table, asked: dict(zip(asked, table.T.tolist(), strict=True)),
        )
    ):
        journal = path.with_name(f"{number}.jsonl")
        with ebr.Race(algorithm, ARMS, journal, support=None, blocks=True) as race:
            rounds(race, as_told)
            assert race.recommendation == "C"
            assert race.intervals[["lower", "upper"]].isna().all(axis=None)
        with ebr.Race.open(journal) as again:
            assert again.recommendation == "C"


def test_whole_blocks_may_be_missing(path):
    with ebr.Race(SHARP(3, 0.1, 0.05, sigma=0.1), ["A", "B"], path, support=None, blocks=True) as race:
        count = race.ask()["A"]
        with pytest.raises(ValueError, match="whole blocks may be missing, the same ones of every arm"):
            race.tell({"A": [1.0] * count, "B": [1.0] * (count - 1)}, missing=LOST)
        with pytest.raises(ValueError, match="must be finite got nan"):
            race.tell(np.full((count, 2), np.nan), missing=LOST)
        race.tell(np.ones((count - 2, 2)), missing=LOST)
        assert race.asked is None


@pytest.mark.parametrize(
    ("algorithm", "given", "message"),
    [
        (SHARP(3, 0.1, 0.05), {"rewards": "bounded"}, "needs independent arms, got 'bounded'"),
        (SHARP(3, 0.1, 0.05, rewards="bounded"), {}, "needs independent arms, got 'bounded'"),
        (
            ebr.PausingElasticBatchRacing(3, 0.1, 0.05),
            {},
            "must be SharpElasticBatchRacing for rewards in blocks",
        ),
    ],
)
def test_blocks_are_refused_where_arms_must_be_independent(algorithm, given, message, path):
    with pytest.raises(ValueError, match=message):
        ebr.Race(algorithm, ARMS, path, blocks=True, **given)
    assert not path.exists()


def test_differences_of_rewards_in_an_interval_may_need_more_than_single_ones(path):
    with pytest.warns(
        UserWarning, match=r"sigma, 0.5, is below 0.7071, which differences of rewards between 0 and 1"
    ):
        ebr.Race(SHARP(3, 0.1, 0.05), ARMS, path, blocks=True).close()
    ebr.Race(SHARP(3, 0.1, 0.05, sigma=0.7072), ARMS, path.with_name("2.jsonl"), blocks=True).close()


@pytest.mark.parametrize("table", [np.ones(3), np.ones((4, 2)), 7, "no"])
def test_what_is_no_table_of_blocks_is_refused(table, path):
    with ebr.Race(SHARP(3, 0.1, 0.05, sigma=1.0), ARMS, path, blocks=True) as race:
        race.ask()
        with pytest.raises(ValueError, match="a table of blocks × 3 arms"):
            race.tell(table)


# Any scale.


@pytest.mark.parametrize(("scale", "low", "high"), [((0, 50), 0, 50), ((300.0, 20.0), 20, 300)])
def test_a_race_on_a_scale_is_the_race_between_0_and_1(scale, low, high, path):
    worst, best = scale
    generator = np.random.default_rng(2)
    algorithm = SHARP(5, 0.05, 0.05)
    with (
        ebr.Race(algorithm, ARMS, path) as unit,
        ebr.Race(algorithm, ARMS, path.with_name("units.jsonl"), scale=scale) as race,
    ):
        while not unit.finished:
            asked = unit.ask()
            assert race.ask() == asked
            rewards = {arm: generator.beta(2, 2 - 0.3 * ARMS.index(arm), n) for arm, n in asked.items()}
            unit.tell(rewards)
            race.tell({arm: worst + (best - worst) * each for arm, each in rewards.items()})
        assert race.recommendation == unit.recommendation == "C"
        assert race.within == pytest.approx(0.05 * (high - low))
        ours, theirs = race.intervals, unit.intervals
        ends = sorted(("lower", "upper"), reverse=worst > best)
        for shown, inside in zip(("mean", "lower", "upper"), ("mean", *ends), strict=True):
            assert ours[shown].to_numpy() == pytest.approx(worst + (best - worst) * theirs[inside].to_numpy())
        assert (ours["lower"] <= ours["mean"]).all()
        history = race.history
    with ebr.Race.open(path.with_name("units.jsonl")) as again:
        assert again.history.equals(history)
        assert again.recommendation == "C"


def test_a_margin_is_in_the_units_of_the_scale(path):
    with ebr.Race(SHARP(5, 0.05, 0.05), ARMS, path, scale=(0, 50), control="A", margin=5) as race:
        assert race.algorithm.margin == 0.1
        while not race.finished:
            race.tell({arm: (count, 25 * count) for arm, count in race.ask().items()})
        assert race.verdict == "It recommends A, the control: no arm is better than it by 5."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scale": (5, 5)}, r"scale must be a pair of two finite numbers \(worst, best\), got \(5, 5\)"),
        ({"scale": (0, math.inf)}, "scale must be a pair"),
        ({"scale": 50}, "scale must be a pair"),
        ({"scale": (0, 50), "support": (0, 40)}, "support must be left out, or None, where there is a scale"),
        ({"scale": (0, 50), "rewards": "Bernoulli"}, "scale must be left out for Bernoulli rewards"),
    ],
)
def test_bad_scales_are_refused_before_there_is_a_file(given, message, path):
    with pytest.raises(ValueError, match=message):
        ebr.Race(SHARP(5, 0.05, 0.05), ARMS, path, **given)
    assert not path.exists()


def test_rewards_beyond_the_scale_are_refused_in_its_units(path):
    with ebr.Race(SHARP(5, 0.05, 0.05), ARMS, path, scale=(300, 20)) as race:
        pulls = race.ask()
        with pytest.raises(ValueError, match=r"must lie in \[20.0, 300.0\], the race's support, got 19.0"):
            race.tell({arm: [19.0] * count for arm, count in pulls.items()})


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": [0, 1, 2]},
        {"scale": "wide"},
        {"scale": [0.0, 40.0]},
        {"blocks": "yes"},
        {"blocks": True},
        {"scale": ...},
    ],
)
def test_forged_terms_are_refused(changes, path):
    with ebr.Race(SHARP(5, 0.05, 0.05), ARMS, path, scale=(0, 50)) as race:
        race.tell({arm: (count, count) for arm, count in race.ask().items()})
    forged(path, 1, **changes)
    with pytest.raises(ebr.JournalError, match="line 1 "):
        ebr.Race.open(path)


# Reports.


def test_a_report_says_what_is_missing_and_what_is_guaranteed(path):
    with ebr.Race(SHARP(2, 0.1, 0.05), ["A", "B"], path, scale=(0, 50)) as race:
        while not race.finished:
            pulls = race.ask()
            race.tell({arm: (count // 2, 25 * (count // 2)) for arm, count in pulls.items()}, missing=LOST)
        report = race.report()
        lost = [json.loads(line) for line in path.read_text().splitlines()]
        asked = sum(sum(line["pulls"].values()) for line in lost if line["event"] == "ask")
        assert (
            report.facts["Missing"]
            == f"{asked - race.intervals['pulls'].sum():,} rewards in 2 rounds, at random"
        )
        assert "within 5 of the best with probability at least 0.95" in report.facts["Guarantee"]
        assert race.verdict in report.sentences
        assert race.within > 5


def test_a_report_of_a_control_and_of_blocks(path):
    with ebr.Race(SHARP(3, 0.2, 0.1), ARMS, path, control="B", margin=0.3) as race:
        facts = race.report().facts
    assert "no arm is better than B, the control, by 0.3 if it is recommended" in facts["Guarantee"]
    assert "Missing" not in facts
    blocks = ebr.Race(SHARP(3, 0.2, 0.1, sigma=1.0), ARMS, path.with_name("2.jsonl"), blocks=True)
    report = blocks.report()
    assert report.facts["Rewards"] == (
        "in independent blocks; differences of arms within a block are 1.41421-sub-Gaussian"
    )
    assert "no intervals of single arms" in report.reading
