"""Rewards as people tell them: refused before they are written, rounded to 0 and 1, or missing at random."""

import math
import random
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from live.races import ARMS, forge, lines_of, play, reward, rewards, rewrite
from oracles import Rewards, lossy_race, sharp_schedule
from scipy.stats import binomtest

import ebr
from ebr.algorithms.game import drive
from ebr.live.journal import Journal, JournalError
from ebr.live.race import Race

ALGORITHM = ebr.ElasticBatchRacing(deadline=3, epsilon=0.4, delta=0.4)
FIRST = 115  # pulls in the first round
WRONG = {  # what is told of the good arm, or of all
    "missing arms": (lambda told: {"good": told["good"]}, "rewards of fair, poor are missing"),
    "unknown arm": (
        lambda told: told | {"great": []},
        "'great' is unknown: the arms asked for are good, fair,",
    ),
    "no dict": (lambda told: list(told.values()), "must be a dict by arm"),
    "too few": (
        lambda told: told["good"][1:],
        "115 rewards of 'good' were asked for, got 114: tell the round",
    ),
    "too many": (lambda told: [*told["good"], 1], "got 116: pass the first 115 in the order"),
    "NaN": (lambda told: [math.nan] * FIRST, "of 'good' must lie in [0.0, 1.0], the race's support, got nan"),
    "above": (lambda told: [1.5, *told["good"][1:]], "lie in [0.0, 1.0], the race's support, got 1.5"),
    "sum above": (lambda told: (FIRST, 115.1), "got 115 with the sum 115.1"),
    "sum below": (lambda told: (FIRST, -1), "got 115 with the sum -1"),
    "sum infinite": (lambda told: (FIRST, 10**400), "with the sum 1000000000"),
    "fraction": (lambda told: (115.0, 20.0), "must be (count, sum), got (115.0, 20.0)"),
    "words": (lambda told: ["0.5"] * FIRST, "list of numbers"),
    "masked": (lambda told: np.ma.masked_less(told["good"], 0.8), "list of numbers"),
    "table": (lambda told: [told["good"]], "list of numbers"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_input_is_refused_before_it_is_written(wrong, path, unflushed):
    change, says = WRONG[wrong]
    with Race(ALGORITHM, ARMS, path) as race:
        right = rewards(race)
        content = path.read_bytes()
        changed = change(right)
        with pytest.raises(ValueError, match=re.escape(says)):
            race.tell(changed if wrong in list(WRONG)[:3] else right | {"good": changed})
        assert path.read_bytes() == content
        race.tell(right)
        assert race.round == 2


@pytest.mark.parametrize(
    "kind",
    [list, np.array, pd.Series, lambda values: (len(values), math.fsum(values))],
    ids=["list", "array", "series", "count and sum"],
)
def test_rewards_come_as_lists_arrays_or_counts_and_sums(kind, path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        told = rewards(race)
        race.tell({arm: kind(values) for arm, values in told.items()})
    exact = [math.fsum(values) for values in told.values()]
    assert Race.open(path, readonly=True).history["sum"].tolist() == exact  # to the last bit


def test_truth_values_are_rewards_and_the_support_is_closed(path):
    with Race(ALGORITHM, ARMS, path) as race:
        race.ask()
        whole = (np.int64(FIRST), np.float32(FIRST))
        race.tell({"good": [True] * FIRST, "fair": [False] * FIRST, "poor": whole})
        assert race.intervals["mean"].tolist() == [1, 0, 1]


# Zeros and ones, and rewards that are rounded to them.

PAUSING = ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards="Bernoulli")
FEW = int(PAUSING.pulls_by_stage(3)[0])  # pulls in its first round


@pytest.fixture
def begun(path, unflushed):
    """A race with rounding whose first line is written, so that its copies draw the same lots."""
    Race(PAUSING, ARMS, path, rounding=True).close()
    return path


def lot(seed, number, arm, told):
    """The oracle: how many rewards of an arm count as 1, one lot after the other."""
    lots = np.random.default_rng([seed, number, ARMS.index(arm)])
    return sum(1 for y in told if lots.random() < y)


def test_the_race_is_decided_by_what_is_counted_and_the_journal_has_both(begun):
    seed = Journal(begun, readonly=True).lines[0]["seed"]
    with Race.open(begun) as race:
        play(race)
        end, history, intervals = race.recommendation, race.history, race.intervals
    assert lines_of(begun)[0]["rounding"] is True
    tells = [line for line in lines_of(begun) if line["event"] == "tell"]
    pulled, asked = dict.fromkeys(ARMS, 0), []

    def respond(pulls):
        asked.append({arm: int(n) for arm, n in zip(ARMS, pulls[0], strict=True) if n})
        number, sums = len(asked), dict.fromkeys(ARMS, 0)
        line = tells[number - 1]
        for arm, n in asked[-1].items():
            told = [reward(arm, k) for k in range(pulled[arm], pulled[arm] + n)]
            sums[arm] = lot(seed, number, arm, told)
            pulled[arm] += n
            assert line["rewards"][arm] == [n, math.fsum(told)]
            assert line["counted"][arm] == sums[arm]
            (row,) = history.query("round == @number and arm == @arm").to_dict("records")
            assert (row["pulls"], row["reported"], row["sum"]) == (n, math.fsum(told), sums[arm])
        return np.array([list(sums.values())])

    (best,) = drive(PAUSING.play(3, rewards="Bernoulli"), respond)
    assert ARMS[best] == end
    assert len(asked) == len(tells) > 1
    assert intervals["pulls"].to_dict() == pulled
    counted = {arm: sum(line["counted"].get(arm, 0) for line in tells) for arm in ARMS}
    assert intervals["mean"].to_dict() == {arm: counted[arm] / pulled[arm] for arm in ARMS}


def test_a_reward_counts_as_1_with_its_own_probability_and_0_and_1_stay_what_they_are(path, unflushed):
    ones, seen = dict.fromkeys((0.3, 0.5, 0.9), 0), set()
    for run in range(60):
        with Race(PAUSING, ARMS, path.with_name(f"{run}.jsonl"), rounding=True) as race:
            race.ask()
            race.tell({arm: [y] * FEW for arm, y in zip(ARMS, ones, strict=True)})
            seen.add(tuple(race.history["sum"]))
            for y, counted in zip(ones, race.history["sum"], strict=True):
                ones[y] += counted
    for y, counted in ones.items():  # each fails by chance with probability 1e-7
        assert binomtest(int(counted), 60 * FEW, y).pvalue > 1e-7
        assert binomtest(int(counted), 60 * FEW, y * 0.6).pvalue < 1e-7  # planted: it would have been seen
    assert len(seen) > 1  # lots differ from race to race, each time with probability above 0.85
    with Race(PAUSING, ARMS, path, rounding=True) as race:
        race.ask()
        race.tell({"good": [1] * FEW, "fair": [0] * FEW, "poor": [True, *[False] * (FEW - 1)]})
        assert race.history["sum"].tolist() == [FEW, 0, 1]


def test_cut_anywhere_and_told_again_it_counts_the_same(begun):
    with Race.open(begun) as race:
        play(race)
    content, said = begun.read_bytes(), lines_of(begun)
    start = content.index(b"\n") + 1  # the first line has the seed
    for length in sorted({start, *random.Random(1).sample(range(start, len(content)), 60), len(content)}):
        rewrite(begun, content[:length])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Race.open(begun) as race:
                play(race)
        assert lines_of(begun) == said


@pytest.mark.parametrize(
    "change",
    [
        lambda counted: ...,
        lambda counted: counted | {"good": FEW + 1},
        lambda counted: counted | {"good": -1},
        lambda counted: counted | {"good": 1.5},
        lambda counted: counted | {"great": 1},
        lambda counted: {"good": 1},
    ],
    ids=["none", "above", "below", "fraction", "unknown", "incomplete"],
)
def test_a_line_with_right_checksums_that_counts_what_cannot_be_is_refused(begun, change):
    with Race.open(begun) as race:
        race.tell(rewards(race))
    forge(begun, 3, counted=change(lines_of(begun)[2]["counted"]))
    with pytest.raises(JournalError, match=r"line 3 of .* says what is never written \(counted must"):
        Race.open(begun)


def test_counts_where_nothing_is_rounded_are_refused(path):
    with Race(PAUSING, ARMS, path) as race:
        race.ask()
        race.tell(dict.fromkeys(ARMS, (FEW, 1)))
    start, _, tell = lines_of(path)
    assert start["rounding"] is False
    assert "counted" not in tell
    assert "reported" not in race.history
    forge(path, 3, counted=dict.fromkeys(ARMS, 2))
    with pytest.raises(JournalError, match="line 3 of"):
        Race.open(path)


@pytest.mark.parametrize(
    ("rounding", "told", "says"),
    [
        (False, [1, 0.5, *[0] * (FEW - 2)], "Bernoulli rewards of 'good' must be 0 or 1, got 0.5: start"),
        (False, [2, *[0] * (FEW - 1)], "must lie in [0.0, 1.0], the race's support, got 2"),
        (False, (FEW, 1.5), "the rewards of 'good' must be a whole number, got 1.5: each of them is"),
        (True, (FEW, 1.5), "'good' must be a whole number, got 1.5: pass the single rewards to have them"),
        (True, [1.5, *[0] * (FEW - 1)], "lie in [0.0, 1.0], the race's support, got 1.5"),
        (True, [0.5] * (FEW - 1), f"{FEW} rewards of 'good' were asked for, got {FEW - 1}"),
    ],
)
def test_what_is_neither_0_nor_1_is_refused_before_it_is_written(rounding, told, says, path, unflushed):
    with Race(PAUSING, ARMS, path, rounding=rounding) as race:
        race.ask()
        content = path.read_bytes()
        with pytest.raises(ValueError, match=re.escape(says)):
            race.tell({"good": told, "fair": (FEW, 0), "poor": (FEW, 0)})
        assert path.read_bytes() == content
        race.tell(dict.fromkeys(ARMS, (FEW, 1.0)))  # a whole sum is one of zeros and ones
        assert race.history["sum"].tolist() == [1, 1, 1]


def test_zeros_and_ones_are_asked_for_by_the_race_too(path):
    """An algorithm that assumes less may still be fed by a race that knows more."""
    algorithm = ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards="bounded")
    with Race(algorithm, ARMS, path, rewards="Bernoulli") as race:
        told = {arm: [0.5] * pulls for arm, pulls in race.ask().items()}
        with pytest.raises(ValueError, match="must be 0 or 1"):
            race.tell(told)


# Rewards that are missing at random.

SHARP = ebr.SharpElasticBatchRacing
LETTERS = ["A", "B", "C"]
LOST = "at random"


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
    ebr.Race(SHARP(5, 0.05, 0.05), LETTERS, path).close()
    paid, mine = Rewards(table[None]), []
    while True:
        with ebr.Race.open(path) as race:
            if race.finished:
                break
            mine.append([race.ask().get(name, 0) for name in LETTERS])
        kept = np.array([[keep(len(mine) - 1, place, n) for place, n in enumerate(mine[-1])]])
        sums = paid.pay(kept)
        told = {a: (int(kept[0, i]), int(sums[0, i])) for i, a in enumerate(LETTERS) if mine[-1][i]}
        with ebr.Race.open(path) as race:
            race.tell(told, missing=LOST)
    assert mine == asked
    assert race.recommendation == LETTERS[arm]
    assert race.within == pytest.approx(within)
    assert 0.05 < race.within < 0.1
    words = r"It recommends (.): within (.*) of the best, not 0.05, as rewards are missing."
    shown = re.fullmatch(words, race.verdict)
    assert shown[1] == race.recommendation
    assert race.within <= float(shown[2]) < race.within * 1.01  # rounded up
    said = [line.get("missing") for line in lines_of(path) if line["event"] == "tell"]
    assert said == [None] + [LOST] * (len(mine) - 1)  # a complete round is not noted as missing


def test_what_is_missing_is_asked_for_in_the_next_round(path):
    targets, _ = sharp_schedule(3, 4, 0.1, model="bounded")
    with ebr.Race(SHARP(4, 0.1, 0.05), LETTERS, path) as race:
        first, second = race.ask()["A"], targets[1]
        assert first == targets[0]
        race.tell({"A": [], "B": (first - 7, 30), "C": [1, 0] * (first // 2)}, missing=LOST)
        assert race.ask() == {"A": second, "B": second - first + 7, "C": second - first + first % 2}
        assert math.isnan(race.intervals.loc["A", "mean"])
        assert race.history["pulls"].tolist() == [0, first - 7, first // 2 * 2]


def test_an_arm_of_which_nothing_ever_came_in_leaves_no_guarantee(path):
    with ebr.Race(SHARP(2, 0.3, 0.2), ["A", "B"], path) as race:
        while not race.finished:
            pulls = race.ask()
            race.tell({arm: (pulls[arm] if arm == "A" else 0, 0) for arm in pulls}, missing=LOST)
        assert (race.recommendation, race.within) == ("A", math.inf)
        assert "guarantees nothing: of some arm no reward has come in" in race.verdict


@pytest.mark.parametrize(
    ("told", "missing", "message"),
    [
        (
            {"A": [1], "B": [1]},
            None,
            "were asked for, got 1: tell the round when it is complete, or say miss",
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
            "must permit missing rewards.*: pull again in place",
        ),
        (SHARP(3, 0.3, 0.2, k=2), {}, "k = 2"),
        (SHARP(3, 0.3, 0.2), {"rewards": "Gaussian", "support": None}, "looks is 'union'"),
    ],
)
def test_losses_are_refused_where_they_are_not_proved_to_do_no_harm(algorithm, known, message, path):
    with ebr.Race(algorithm, LETTERS, path, **known) as race:
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
        ({"rewards": {"A": [2, 1.0]}}, "line 3 .*rewards of B are missing"),
        ({"rewards": {"A": [2.0, 1.0], "B": [2, 1.0]}}, "line 3 "),
    ],
)
def test_forged_losses_are_refused_with_their_line(changes, says, path):
    with ebr.Race(SHARP(3, 0.3, 0.2), ["A", "B"], path) as race:
        race.ask()
        race.tell({"A": [1, 0], "B": [0, 1]}, missing=LOST)
    forge(path, 3, **changes)
    with pytest.raises(ebr.JournalError, match=says):
        ebr.Race.open(path)


def test_losses_forged_into_a_race_that_cannot_have_them_are_refused(path):
    with ebr.Race(ebr.PausingElasticBatchRacing(3, 0.3, 0.2), ["A", "B"], path) as race:
        race.tell({arm: (count, 0) for arm, count in race.ask().items()})
    forge(path, 3, rewards={"A": [2, 1.0], "B": [2, 1.0]}, missing=LOST)
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
    forge(path, 3, counted={"A": 4, "B": 0})
    with pytest.raises(ebr.JournalError, match=r"line 3 .*counted must lie in 0 … 3 for 'A', got 4"):
        ebr.Race.open(path)


STAKED = ebr.StakedElasticBatchRacing(deadline=5, epsilon=0.1, delta=0.2)


def told_squares(path):
    return [line["rewards"] for line in lines_of(path) if line["event"] == "tell"]


def test_a_staked_race_has_the_squares_of_its_rewards_and_a_replay_believes_them(tmp_path):
    with Race(STAKED, ARMS, tmp_path / "race.jsonl") as race:
        assert race.algorithm.squares
        told = rewards(race)
        race.tell(told)
        asked = race.ask()
    (line,) = told_squares(tmp_path / "race.jsonl")
    for arm, values in told.items():
        assert line[arm] == [len(values), math.fsum(values), math.fsum(value**2 for value in values)]
    with Race.open(tmp_path / "race.jsonl") as again:
        assert again.ask() == asked
        play(again)
        assert again.recommendation == "good"
    assert Race(STAKED, ARMS, tmp_path / "race.jsonl").finished


def test_squares_are_taken_on_the_scale_where_less_is_better_and_from_sums_as_large_as_they_can_be(tmp_path):
    race = Race(
        ebr.StakedElasticBatchRacing(5, 0.1, 0.2, rewards="bounded"),
        ARMS,
        tmp_path / "race.jsonl",
        lower_is_better=True,
    )
    first = race.ask()["good"]
    race.tell(
        {"good": [0.2] * first, "fair": (first, 0.5 * first), "poor": (first, 0.5 * first, 0.26 * first)}
    )
    ((_, _, good), (_, _, fair), (_, _, poor)) = told_squares(tmp_path / "race.jsonl")[0].values()
    assert good == pytest.approx(0.64 * first)
    assert fair == pytest.approx(0.5 * first)
    assert poor == 0.26 * first
    race.close()
    with Race.open(tmp_path / "race.jsonl") as again:
        assert again.round == 2


@pytest.mark.parametrize("square", [0.2, 0.51, math.inf, "0.3"])
def test_squares_that_cannot_be_are_refused_told_or_forged(tmp_path, square):
    race = Race(STAKED, ["A", "B"], tmp_path / "race.jsonl")
    first = race.ask()["A"]
    wrong = square if isinstance(square, str) else square * first
    with pytest.raises(ValueError, match="the sum of squares of 'A' must lie in"):
        race.tell({"A": (first, 0.5 * first, wrong), "B": (first, 0.5 * first)})
    race.tell(dict.fromkeys("AB", (first, 0.5 * first, 0.3 * first)))
    race.close()
    if wrong == math.inf:  # JSON has no such number
        return
    forge(tmp_path / "race.jsonl", 3, rewards={arm: [first, 0.5 * first, wrong] for arm in "AB"})
    with pytest.raises(JournalError, match="sum of squares"):
        Race.open(tmp_path / "race.jsonl")


def test_a_race_that_was_begun_without_squares_goes_on_without(tmp_path):
    path = tmp_path / "race.jsonl"
    without = ebr.StakedElasticBatchRacing(5, 0.1, 0.2, squares=False)
    with Race(without, ARMS, path) as race:
        race.tell(rewards(race))
        asked = race.ask()
    assert {len(each) for each in told_squares(path)[0].values()} == {2}
    first = lines_of(path)[0]["parameters"]
    forge(path, 1, parameters={key: value for key, value in first.items() if key != "squares"})
    with Race(STAKED, ARMS, path) as race:
        assert not race.terms.squares
        assert race.ask() == asked
        with pytest.raises(ValueError, match=r"must be \(count, sum\), got \(3, 2, 1\)"):
            race.tell(dict.fromkeys(asked, (3, 2, 1)))
