"""Rewards as people tell them: refused before they are written, missing at random, or late."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from live.races import ARMS, body_of, forge, lines_of, play, refuses, rewards, sealed
from oracles import Bare, Rewards, lossy_race

import ebr
from ebr.live.journal import JournalError
from ebr.live.race import Race
from ebr.live.rewards import from_file

ALGORITHM = ebr.ElasticBatchRacing(deadline=3, epsilon=0.4, delta=0.4)
FIRST = 115  # pulls in the first round
WRONG = {  # wrong rewards of all arms, or of the good one
    "missing arms": (lambda told: {"good": told["good"]}, "rewards of fair, poor are missing"),
    "unknown arm": (
        lambda told: told | {"great": []},
        "'great' is unknown, or not pulled in this round: the arms",
    ),
    "no dict": (lambda told: list(told.values()), "must be a dict by arm"),
    "too few": (lambda told: told["good"][1:], "115 rewards of 'good' were asked for, got 114: tell the rou"),
    "too many": (lambda told: [*told["good"], 1], "got 116: pass the first 115 in the order"),
    "NaN": (lambda told: [math.nan] * FIRST, "of 'good' must lie in [0.0, 1.0], got nan"),
    "above": (lambda told: [1.5, *told["good"][1:]], "lie in [0.0, 1.0], got 1.5"),
    "sum above": (lambda told: (FIRST, 115.1), "got 115 with the sum 115.1"),
    "sum below": (lambda told: (FIRST, -1), "got 115 with the sum -1"),
    "sum infinite": (lambda told: (FIRST, 10**400), "with the sum 1000000000"),
    "fraction": (
        lambda told: (115.0, 20.0),
        "the count of 'good' must be an integer of at least 0, got 115.0",
    ),
    "words": (lambda told: ["0.5"] * FIRST, "list of numbers"),
    "masked": (lambda told: np.ma.masked_less(told["good"], 0.8), "list of numbers"),
    "table": (lambda told: [told["good"]], "list of numbers"),
    "series of nothing": (lambda told: pd.Series([None, None]), "list of numbers"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_input_is_refused_before_it_is_written(wrong, path, unflushed):
    change, says = WRONG[wrong]
    with Race(ALGORITHM, ARMS, path) as race:
        right = rewards(race)
        changed = change(right)
        refuses(race, re.escape(says), changed if wrong in list(WRONG)[:3] else right | {"good": changed})
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


# Zeros and ones. In old journals rewards may have been rounded to them at random.

ROUNDED = Path(__file__).parent / "format-3" / "pausing-rounded.jsonl"


@pytest.fixture
def rounded(path, unflushed):
    """An old journal whose first round counts as 30, 25 and 18 ones of 35."""
    path.write_bytes(ROUNDED.read_bytes())
    return path


def test_a_race_that_was_begun_with_rounding_goes_on_with_zeros_and_ones(rounded):
    with Race.open(rounded) as race:
        assert race.history["sum"].tolist() == [30, 25, 18]
        assert race.ask() == {"A": 110, "B": 36}
        with pytest.raises(ValueError, match=r"rewards of 'A' must be 0 or 1, got 0\.5"):
            race.tell({"A": [0.5] * 110, "B": (36, 9)})
        race.tell({"A": (110, 70), "B": [1, 0] * 18})
    assert lines_of(rounded)[-1]["rewards"] == {"A": [110, 70.0], "B": [36, 18.0]}
    with Race.open(rounded) as race:
        assert race.intervals["mean"].tolist() == [100 / 145, 43 / 71, 18 / 35]
    with pytest.raises(JournalError, match=r"rounding is True there and False here.*continue that one with"):
        Race(race.algorithm, ["A", "B", "C"], rounded)


@pytest.mark.parametrize("change", [{"A": 36}, {"A": -1}, {"A": 1.5}, {"great": 1}, None], ids=str)
def test_a_line_with_right_checksums_and_impossible_counts_is_refused(rounded, change):
    counted = lines_of(rounded)[2]["counted"]
    forge(rounded, 3, counted=... if change is None else counted | change)
    says = "it would be" if change and "great" in change else "rewards of 'A' must be 0 or 1"
    with pytest.raises(JournalError, match=rf"line 3 of .* was changed.* \({says}"):
        Race.open(rounded)


@pytest.mark.parametrize("assumed", ["Bernoulli", "bounded"])  # the race knows more than its algorithm
@pytest.mark.parametrize(
    ("told", "says"),
    [
        (lambda n: [1, 0.5, *[0] * (n - 2)], "rewards of 'good' must be 0 or 1, got 0.5"),
        (lambda n: [2, *[0] * (n - 1)], "rewards of 'good' must be 0 or 1, got 2.0"),
        (lambda n: (n, 1.5), r"rewards of 'good' must be 0 or 1, got \d+ with the sum 1.5"),
    ],
)
def test_what_is_neither_0_nor_1_is_refused_before_it_is_written(told, says, assumed, path, unflushed):
    algorithm = ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards=assumed)
    with Race(algorithm, ARMS, path, rewards="Bernoulli") as race:
        right = {arm: (n, 1.0) for arm, n in race.ask().items()}  # a whole sum is possible for zeros and ones
        refuses(race, says, right | {"good": told(right["good"][0])})
        race.tell(right)
        assert race.history["sum"].tolist() == [1, 1, 1]


# Rewards that are missing at random.

SHARP = ebr.SharpElasticBatchRacing
LETTERS = ["A", "B", "C"]
LOST = "at random"


def test_a_race_with_losses_is_the_plain_loop_though_it_is_reopened_before_every_line(path):
    # No loss in round 1, all of one arm in round 2, then a third of all rewards. Two arms tie.
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
    assert said == [None] + [LOST] * (len(mine) - 1)  # complete rounds are not marked


@pytest.mark.parametrize(
    ("told", "missing", "message"),
    [
        ({"A": [1], "B": [1]}, None, "got 1: tell the round when it is complete, or say missing='at random'"),
        ({"A": [1]}, LOST, r"rewards of B are missing: pass \[\] for an arm without any reward"),
        ({"A": [1], "B": [1]}, "they were bad", "missing must be one of 'at random', got 'they were bad'"),
        ({"A": (99, 5), "B": [1]}, LOST, "were asked for, got 99: pass the first"),
        ({"A": (-1, 0), "B": [1]}, LOST, "got -1"),
        ({"A": (0, 1), "B": [1]}, LOST, "got 0 with the sum 1"),
    ],
)
def test_bad_losses_are_refused_and_nothing_is_written(told, missing, message, path):
    with ebr.Race(SHARP(3, 0.3, 0.2), ["A", "B"], path) as race:
        race.ask()
        refuses(race, message, told, missing=missing)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (ebr.PausingElasticBatchRacing(3, 0.3, 0.2), "permit missing rewards.*: pull again in place"),
        (SHARP(3, 0.3, 0.2, k=2), "k = 2"),
    ],
)
def test_losses_are_refused_where_they_are_not_proved_to_do_no_harm(algorithm, message, path):
    with ebr.Race(algorithm, LETTERS, path) as race:
        fewer = {arm: (count - 1, 0) for arm, count in race.ask().items()}
        refuses(race, message, fewer, missing=LOST)


# Late rewards count in the round in which they are told.


def plain_sums(path):
    """The oracle: each arm's count and sum after each round, added up from the journal's lines."""
    count, total, rounds = {}, {}, []
    for line in lines_of(path):
        for part in ("rewards", "late") if line["event"] == "tell" else ():
            for arm, (n, x, *_) in line.get(part, {}).items():
                count[arm], total[arm] = count.get(arm, 0) + n, total.get(arm, 0) + x
        if line["event"] == "tell":
            rounds.append({arm: (count[arm], total[arm]) for arm in count})
    return rounds


@pytest.mark.parametrize(
    "algorithm", [SHARP(5, 0.1, 0.1), ebr.StakedElasticBatchRacing(5, 0.1, 0.1)], ids=str
)
def test_late_rewards_stand_in_for_as_many_of_a_later_round(algorithm, path):
    with ebr.Race(algorithm, LETTERS, path) as race:
        first = race.ask()
        told = {arm: [1, 0] * (n // 2) + [1] * (n % 2) for arm, n in first.items()}
        race.tell(told | {"A": told["A"][5:], "B": told["B"][1:]}, missing=LOST)
        second = race.ask()
        fresh = {arm: [1, 0] * (n // 2) + [0] * (n % 2) for arm, n in second.items()}
        race.tell(fresh | {"A": fresh["A"][3:]}, late={"A": told["A"][:3]})
        asked, owed = race.ask(), race._owed
        assert owed == {"A": 2, "B": 1, "C": 0}
    with ebr.Race.open(path) as race:  # replayed line by line
        assert (race.ask(), race._owed) == (asked, owed)
        known = race.intervals
        by_hand = plain_sums(path)[-1]
        assert known["pulls"].to_dict() == {arm: n for arm, (n, _) in by_hand.items()}
        assert known["mean"].to_dict() == pytest.approx({arm: x / n for arm, (n, x) in by_hand.items()})
    # The same race, told the same rewards as if none were late, asks for the same.
    other = path.with_name("other.jsonl")
    content = [json.loads(line) for line in path.read_text().splitlines()]
    late = content[4].pop("late")["A"]
    content[4]["rewards"]["A"] = [
        own + more for own, more in zip(content[4]["rewards"]["A"], late, strict=True)
    ]
    other.write_bytes(sealed(map(body_of, content)))
    with ebr.Race.open(other) as race:
        assert race.ask() == asked


@pytest.mark.parametrize(
    ("late", "message"),
    [
        ({"A": [1, 1, 1]}, "late rewards of 'A' must be at most 2, .*, got 3"),
        ({"B": [1]}, "late rewards of 'B' must be at most 0, .*, got 1"),
        ({"D": [1]}, "arm 'D' is unknown, .*: the arms asked for are A, B, C"),
        ({"A": [0.5]}, "rewards of 'A' must be 0 or 1, got 0.5"),
        ({"A": (2, 3)}, "rewards of 'A' must be 0 or 1, got 2 with the sum 3"),
        ([1], "late must be a dict by arm, .*, got"),
        ({"A": [1]}, "rewards of 'A' were asked for, got"),  # its own rewards must be complete
    ],
)
def test_wrong_late_rewards_are_refused_and_nothing_is_written(late, message, path):
    with ebr.Race(SHARP(4, 0.1, 0.1), LETTERS, path, rewards="Bernoulli") as race:
        first = race.ask()
        race.tell({arm: (n - 2 * (arm == "A"), 5) for arm, n in first.items()}, missing=LOST)
        pulls = race.ask()
        pulls |= {"A": pulls["A"] - 1} if late == {"A": [0.5]} else {}
        refuses(race, message, {arm: (n, 5) for arm, n in pulls.items()}, late=late)


@pytest.mark.parametrize(
    ("number", "changes", "says"),
    [
        (3, {"missing": "why not"}, "missing must be one of 'at random', got 'why not'"),
        (3, {"missing": ...}, "were asked for, got"),
        (3, {"rewards": {"A": [99, 1.0], "B": [2, 1.0]}}, "got 99"),
        (3, {"rewards": {"A": [2, 1.0]}}, "rewards of B are missing"),
        (3, {"rewards": {"A": [2.0, 1.0], "B": [2, 1.0]}}, "the count of 'A' must be an integer"),
        (5, {"late": {"A": [3, 1.0]}}, "late rewards of 'A' must be at most 2, .*, got 3"),
        (5, {"late": {"A": [2, 3.0]}}, "must lie in"),
        (5, {"late": {"A": 2}}, "'int' object is not iterable"),
        (5, {"late": {"A": []}}, r"a tuple for 'A' must be \(count, sum\)"),
        (5, {"late": {}}, "were asked for, got"),
        (5, {"late": ...}, "were asked for, got"),
    ],
)
def test_forged_losses_and_late_rewards_are_refused_with_their_line(number, changes, says, path):
    with ebr.Race(SHARP(4, 0.1, 0.1), ["A", "B"], path) as race:
        for more in ({"missing": LOST}, {"late": {"A": [1, 0]}}):
            race.tell({arm: (n - 2 * (arm == "A"), 5) for arm, n in race.ask().items()}, **more)
    ebr.Race.open(path).close()
    forge(path, number, **changes)
    with pytest.raises(ebr.JournalError, match=f"line {number} .*{says}"):
        ebr.Race.open(path)


def test_a_terminal_tells_late_rewards(path, run):
    with ebr.Race(SHARP(4, 0.1, 0.1), ["A", "B"], path) as race:
        first = race.ask()
        race.tell({"A": (first["A"] - 5, 20), "B": (first["B"], 20)}, missing=LOST)
        second = race.ask()
    words = [f"A={second['A'] - 5}:30", f"B={second['B']}:30"]
    assert run("tell", path, "--round", 2, *words, "--late", "A=5:3")[0] == 0
    assert lines_of(path)[-1]["late"] == {"A": [5, 3.0]}


def test_late_blocks_are_whole_blocks(path):
    with ebr.Race(SHARP(4, 0.3, 0.2, sigma=1.0), ["A", "B"], path, blocks=True) as race:
        n = race.ask()["A"]
        race.tell(np.full((n - 2, 2), 0.5), missing=LOST)
        n = race.ask()["A"]
        own = {"A": [0.5] * (n - 1), "B": [0.5] * n}
        refuses(race, "only whole blocks may be missing", own, late={"A": [0.5]})
        race.tell(np.full((n - 2, 2), 0.5), late=pd.DataFrame({"A": [0.1, 0.2], "B": [0.3, 0.4]}))
        assert race._owed == {"A": 0, "B": 0}
    assert ebr.Race.open(path, readonly=True).history["sum"].tail(2).tolist() == pytest.approx(
        [0.5 * (n - 2) + 0.3, 0.5 * (n - 2) + 0.7]
    )


STAKED = ebr.StakedElasticBatchRacing(deadline=5, epsilon=0.1, delta=0.2)


def told_squares(path):
    return [line["rewards"] for line in lines_of(path) if line["event"] == "tell"]


def test_a_staked_race_has_the_squares_of_its_rewards_and_a_replay_believes_them(path):
    with Race(STAKED, ARMS, path) as race:
        assert race.algorithm.squares
        told = rewards(race)
        race.tell(told)
        asked = race.ask()
    (line,) = told_squares(path)
    for arm, values in told.items():
        assert line[arm] == [len(values), math.fsum(values), math.fsum(value**2 for value in values)]
    with Race.open(path) as again:
        assert again.ask() == asked
        play(again)
        assert again.recommendation == "good"
    assert Race(STAKED, ARMS, path).finished


def test_squares_are_taken_on_the_scale_where_less_is_better_and_from_sums_as_large_as_they_can_be(path):
    bounded = ebr.StakedElasticBatchRacing(5, 0.1, 0.2, rewards="bounded")
    with Race(bounded, ARMS, path, lower_is_better=True) as race:
        n = race.ask()["good"]
        race.tell({"good": [0.2] * n, "fair": (n, 0.5 * n), "poor": (n, 0.5 * n, 0.26 * n)})
    squares = [told[2] / n for told in told_squares(path)[0].values()]
    assert squares == pytest.approx([0.64, 0.5, 0.26])
    assert Race.open(path, readonly=True).round == 2


@pytest.mark.parametrize(("low", "width", "part"), [(1e9, 1, 0.3), (1e9, 0.7, 1), (1e10 + 0.1, 0.7, 1)])
@pytest.mark.parametrize("singly", [True, False])
def test_where_the_support_is_far_from_0_a_replay_believes_the_squares(path, low, width, part, singly):
    """Rounding of such a sum may make it inconsistent with the squares of single rewards."""
    plan = ebr.plan(3, 4, 0.1, support=(low, low + width), algorithm="staked")
    with plan.start(path) as race:
        told = {arm: [low + part * width] * n for arm, n in race.ask().items()}
        race.tell(told if singly else {arm: (len(each), math.fsum(each)) for arm, each in told.items()})
        asked = race.ask()
    with Race.open(path) as again:
        assert again.ask() == asked


@pytest.mark.parametrize("square", [0.2, 0.51, math.inf, "0.3"])
def test_impossible_squares_are_refused_told_or_forged(path, square):
    race = Race(STAKED, ["A", "B"], path)
    first = race.ask()["A"]
    wrong = square if isinstance(square, str) else square * first
    told = {"A": (first, 0.5 * first, wrong), "B": (first, 0.5 * first)}
    refuses(race, "the sum of squares of 'A' must lie in", told)
    race.tell(dict.fromkeys("AB", (first, 0.5 * first, 0.3 * first)))
    race.close()
    if wrong == math.inf:  # not a JSON number
        return
    forge(path, 3, rewards={arm: [first, 0.5 * first, wrong] for arm in "AB"})
    with pytest.raises(JournalError, match="sum of squares"):
        Race.open(path)


def test_a_race_that_was_begun_without_squares_goes_on_without(path):
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


# Normal rewards with estimated σ: squares must be told, and may exceed sums.


@dataclass(frozen=True)
class Studentized(Bare):
    """A user's algorithm that estimates σ, as `sigma` is only a guess; it records what it is sent."""

    epsilon: float = 0.5
    delta: float = 0.1
    sigma: float = 1.0
    deadline: int = 2
    control: int | None = None
    margin: float | None = None
    sent: ClassVar[list] = []

    def wants_squares(self, rewards=None):
        return self.model(rewards) == "Gaussian"

    def objection(self, feature, rewards=None):
        return None if feature == "control" else super().objection(feature, rewards)

    def play(self, n_arms, replicates=1, **_):
        self.sent.clear()
        for _ in range(2):
            self.sent.append((yield np.full((replicates, n_arms), 3)))
        return self.sent[-1][0].argmax(axis=1)


def normal(path, **options):
    return Race(Studentized(), ["A", "B"], path, rewards="Gaussian", **options)


@pytest.mark.parametrize("lower", [False, True])
def test_normal_rewards_of_unknown_spread_are_told_with_their_squares(lower, path):
    told = {"A": [-9.0, 0.5, 4.0], "B": (3, -6.0, 30.0)}
    with normal(path, lower_is_better=lower) as race:
        race.ask()
        race.tell(told)
        (sent,) = race.algorithm.sent
        race.ask()
    seen = [1 - reward if lower else reward for reward in told["A"]]
    assert sent[:, 0].tolist() == [[sum(seen), 9.0 if lower else -6.0], [sum(x**2 for x in seen), 30.0]]
    with normal(path, lower_is_better=lower) as race:  # a replay accepts them
        assert race.asked == {"A": 3, "B": 3}
        assert race.algorithm.sent[0].tolist() == sent.tolist()
    forge(path, 3, rewards={"A": [3, -4.5], "B": [3, -6.0, 30.0]})
    with pytest.raises(JournalError, match=r"line 3 .*a tuple for 'A' must be \(count, sum, squares\)"):
        normal(path, lower_is_better=lower)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (
            (3, -6.0),
            r"a tuple for 'A' must be \(count, sum, squares\), or a list of rewards, got \(3, -6.0\)",
        ),
        ((3, -6.0, 11.9), r"the sum of squares of 'A' must lie in \[12, "),  # at least (Σx)²/n
        ((3, -6.0, math.inf), "the sum of squares of 'A' must lie in"),
        ((3, -6.0, math.nan), "the sum of squares of 'A' must lie in"),
    ],
)
def test_where_sums_cannot_stand_in_for_squares_they_are_refused(told, says, path):
    with normal(path) as race:
        race.ask()
        refuses(race, says, {"A": told, "B": [1.0, 2.0, 3.0]})
        race.tell({"A": (3, -6.0, 12.0), "B": [1.0, 2.0, 3.0]})


def test_with_an_unknown_spread_a_report_has_no_intervals_of_arms_or_differences(path):
    with normal(path, control="B", margin=0.8) as race:
        race.ask()
        race.tell({"A": [-9.0, 0.5, 4.0], "B": [1.0, 2.0, 3.0]})
        assert race.intervals[["lower", "upper"]].isna().all(axis=None)
        report = race.report()
    unknown = "normal with a common standard deviation that is not assumed to be known"
    assert report.facts["Rewards"] == f"taken to be independent; each is {unknown}"
    assert "no intervals of single arms" in report.reading
    assert report.tables.keys() == {"Arms", "Round by round"}
    assert "lower" not in str(report)


def test_a_row_with_too_many_cells_is_refused_by_name(path):
    path.write_text("arm,reward\nA,1\nA,1,7\n")
    with pytest.raises(ValueError, match="line 3 must have 2 columns, got"):
        from_file(str(path))
