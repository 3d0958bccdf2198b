"""Rewards in [0, 1] raced as zeros and ones, by lot: the lots, the journal, crashes, refusals, the cost."""

import json
import math
import os
import random
import re
import shutil
import warnings

import numpy as np
import pytest
from rewriting import rewrite
from scipy.stats import binomtest

import ebr
from ebr.algorithms.game import drive
from ebr.live.cli import main
from ebr.live.journal import Journal, JournalError
from ebr.live.race import Race

ALGORITHM = ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards="Bernoulli")
ARMS = ["good", "fair", "poor"]
MEANS = {"good": 0.8, "fair": 0.7, "poor": 0.2}
FIRST = int(ALGORITHM.pulls_by_stage(3)[0])


def reward(arm, number):
    """The arm's reward at its pull of this number: a fraction, always the same, near its mean."""
    return MEANS[arm] + 0.15 * math.sin(7.0 * number + MEANS[arm])


def rewards(race):
    """The rewards of this round, by how often each arm has been pulled before."""
    before = race.intervals["pulls"]
    return {
        arm: [reward(arm, number) for number in range(before[arm], before[arm] + pulls)]
        for arm, pulls in race.ask().items()
    }


def play(race):
    while not race.finished:
        race.tell(rewards(race))
    return race


def lines_of(path):
    """What a journal says, but for when it was said."""
    lines = Journal(path, readonly=True).lines
    return [{key: line[key] for key in line if key not in ("time", "checksum")} for line in lines]


@pytest.fixture
def begun(path, unflushed):
    """A race with rounding whose first line is written, so that its copies draw the same lots."""
    Race(ALGORITHM, ARMS, path, rounding=True).close()
    return path


def lot(seed, number, arm, told):
    """The oracle: how many rewards of an arm count as 1, one lot after the other."""
    lots = np.random.default_rng([seed, number, ARMS.index(arm)])
    return sum(1 for y in told if lots.random() < y)


def test_the_race_is_decided_by_what_is_counted_and_the_journal_has_both(begun):
    seed = lines_of(begun)[0]["seed"]
    with Race.open(begun) as race:
        end = play(race).recommendation
        history, intervals = race.history, race.intervals
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

    (best,) = drive(ALGORITHM.play(3, rewards="Bernoulli"), respond)
    assert ARMS[best] == end
    assert len(asked) == len(tells)
    assert intervals["pulls"].to_dict() == pulled
    counted = {arm: sum(line["counted"].get(arm, 0) for line in tells) for arm in ARMS}
    assert intervals["mean"].to_dict() == {arm: counted[arm] / pulled[arm] for arm in ARMS}


def test_a_reward_counts_as_1_with_its_own_probability_and_0_and_1_stay_what_they_are(path, unflushed):
    ones = dict.fromkeys((0.3, 0.5, 0.9), 0)
    number = 0
    for run in range(60):
        with Race(ALGORITHM, ARMS, path.with_name(f"{run}.jsonl"), rounding=True) as race:
            race.ask()
            race.tell({arm: [y] * FIRST for arm, y in zip(ARMS, ones, strict=True)})
            for y, counted in zip(ones, race.history["sum"], strict=True):
                ones[y] += counted
            number += FIRST
    for y, counted in ones.items():  # each fails by chance with probability 1e-7
        assert binomtest(int(counted), number, y).pvalue > 1e-7
        assert binomtest(int(counted), number, y * 0.6).pvalue < 1e-7  # planted: this would have been seen
    with Race(ALGORITHM, ARMS, path, rounding=True) as race:
        race.ask()
        race.tell({"good": [1] * FIRST, "fair": [0] * FIRST, "poor": [True, *[False] * (FIRST - 1)]})
        assert race.history["sum"].tolist() == [FIRST, 0, 1]


def test_lots_differ_from_arm_to_arm_round_to_round_and_race_to_race(path, unflushed):
    """Each pair is alike with probability below 0.15 (of 34 fair lots); so many are never all alike."""
    seen = []
    for run in range(12):
        with Race(ALGORITHM, ARMS, path.with_name(f"{run}.jsonl"), rounding=True) as race:
            race.ask()
            race.tell({arm: [0.5] * FIRST for arm in ARMS})
            seen.append(tuple(race.history["sum"]))
    assert len(set(seen)) > 1
    assert len({one[0] - one[1] for one in seen}) > 1
    assert lot(1, 1, "good", [0.5] * 500) != lot(1, 2, "good", [0.5] * 500)


def test_reopened_after_every_line_it_ends_as_if_undisturbed(begun):
    whole = begun.with_name("whole.jsonl")
    shutil.copy(begun, whole)
    with Race.open(whole) as race:
        end = play(race).recommendation
        history = race.history
    while True:
        with Race(ALGORITHM, ARMS, begun, rounding=True) as race:
            if race.finished:
                break
            race.ask()
        with Race.open(begun) as race:
            race.tell(rewards(race))
    assert race.recommendation == end
    assert race.history.equals(history)
    assert lines_of(begun) == lines_of(whole)


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


@pytest.mark.parametrize("step", ["write", "fsync"])
def test_a_round_that_did_not_come_to_the_disk_is_told_again_with_the_same_lots(begun, step, monkeypatch):
    copy = begun.with_name("copy.jsonl")
    shutil.copy(begun, copy)
    with Race.open(copy) as race:
        play(race)

    def fail(*_):
        raise OSError(28, "No space left on device")

    race = Race.open(begun)
    told = rewards(race)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(JournalError, match="No space left"):
            race.tell(told)
    with Race.open(begun) as race:
        play(race)
    assert lines_of(begun) == lines_of(copy)


def test_every_changed_byte_of_a_round_is_found(begun):
    with Race.open(begun) as race:
        race.tell(rewards(race))
    content = begun.read_bytes()
    for place in range(content.index(b'{"event": "tell"'), len(content) - 1):
        rewrite(begun, content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(JournalError, match=r"line 3 of .* was changed"):
            Race.open(begun)


@pytest.mark.parametrize(
    "change",
    [
        lambda counted: None,
        lambda counted: counted | {"good": FIRST + 1},
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
    start, ask, tell = lines_of(begun)
    forged = begun.with_name("forged.jsonl")
    book = Journal(forged)
    counted = change(tell.pop("counted"))
    for line in (start, ask, tell | ({} if counted is None else {"counted": counted})):
        book.append(line)
    book.close()
    with pytest.raises(JournalError, match=r"line 3 of .* says what is never written \(counted must"):
        Race.open(forged)


def test_counts_where_nothing_is_rounded_are_refused(path):
    with Race(ALGORITHM, ARMS, path) as race:
        race.ask()
        race.tell(dict.fromkeys(ARMS, (FIRST, 1)))
    start, ask, tell = lines_of(path)
    assert start["rounding"] is False
    assert "counted" not in tell
    assert "reported" not in race.history
    forged = path.with_name("forged.jsonl")
    book = Journal(forged)
    for line in (start, ask, tell | {"counted": dict.fromkeys(ARMS, 2)}):
        book.append(line)
    book.close()
    with pytest.raises(JournalError, match="line 3 of"):
        Race.open(forged)


BERNOULLI = {
    "a fraction": (
        [1, 0.5, *[0] * (FIRST - 2)],
        "Bernoulli rewards of 'good' must be 0 or 1, got 0.5: start",
    ),
    "beyond 1": (
        [2, *[0] * (FIRST - 1)],
        "rewards of 'good' must lie in [0.0, 1.0], the race's support, got 2",
    ),
    "a sum": (
        (FIRST, 1.5),
        "the sum of the rewards of 'good' must be a whole number, got 1.5: each of them is",
    ),
}
ROUNDED = {
    "a sum": (
        (FIRST, 1.5),
        "of 'good' must be a whole number, got 1.5: pass the single rewards to have them",
    ),
    "beyond 1": ([1.5, *[0] * (FIRST - 1)], "lie in [0.0, 1.0], the race's support, got 1.5"),
    "too few": ([0.5] * (FIRST - 1), f"{FIRST} rewards of 'good' were asked for, got {FIRST - 1}"),
}


@pytest.mark.parametrize(
    ("rounding", "told", "says"),
    [(False, *case) for case in BERNOULLI.values()] + [(True, *case) for case in ROUNDED.values()],
)
def test_wrong_rewards_are_refused_before_they_are_written(rounding, told, says, path, unflushed):
    with Race(ALGORITHM, ARMS, path, rounding=rounding) as race:
        race.ask()
        content = path.read_bytes()
        with pytest.raises(ValueError, match=re.escape(says)):
            race.tell({"good": told, "fair": (FIRST, 0), "poor": (FIRST, 0)})
        assert path.read_bytes() == content
        race.tell(dict.fromkeys(ARMS, (FIRST, 1.0)))  # a whole sum is one of zeros and ones
        assert race.history["sum"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"rounding": 1}, "rounding must be True or False, got 1"),
        (
            {"algorithm": ebr.PausingElasticBatchRacing(4, 0.1, 0.1), "rounding": True},
            "rewards must be 'Bernoulli' for rounding=True, which makes them so, got 'bounded'",
        ),
        ({"support": None}, "support must lie in [0, 1] for Bernoulli rewards, got None"),
        (
            {"support": (0, 0.5, 1)},
            "support must be a pair of finite numbers (low, high), or None, got (0, 0.5, 1)",
        ),
        ({"support": (-0.5, 0.5)}, "support must lie in [0, 1] for Bernoulli rewards, got (-0.5, 0.5)"),
        ({"rewards": "bounded"}, "rewards must not be 'Bernoulli' for bounded rewards"),
        (
            {"rewards": "bernoulli"},
            "rewards must be one of 'Bernoulli', 'bounded', 'Gaussian', 'sub-Gaussian'",
        ),
    ],
)
def test_what_cannot_be_raced_is_named_and_leaves_no_file(arguments, says, path):
    with pytest.raises(ValueError, match=re.escape(says)):
        Race(**{"algorithm": ALGORITHM, "arms": ARMS, "journal": path} | arguments)
    assert not path.exists()


def test_a_race_with_and_one_without_rounding_are_not_the_same(begun):
    with pytest.raises(JournalError, match="rounding is True there and False here"):
        Race(ALGORITHM, ARMS, begun)
    with Race(ALGORITHM, ARMS, begun, rounding=True) as race:
        assert race.asked is None


@pytest.mark.parametrize("model", [None, "bounded"])
def test_zeros_and_ones_are_asked_for_by_the_race_too(model, path):
    """An algorithm that assumes less may still be fed by a race that knows more."""
    algorithm = ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards=model)
    with Race(algorithm, ARMS, path, rewards="Bernoulli") as race:
        told = {arm: [0.5] * pulls for arm, pulls in race.ask().items()}
        assert (told["good"] == [0.5] * FIRST) == (model is None)
        with pytest.raises(ValueError, match="must be 0 or 1"):
            race.tell(told)


def test_in_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rules = ["--deadline", "4", "--epsilon", "0.1", "--delta", "0.1", "--algorithm", "pausing"]
    start = ["start", "trial.jsonl", "--arms", *ARMS, *rules]
    assert main([*start, "--rounding"]) == 2
    assert capsys.readouterr().err.startswith("error: rewards must be 'Bernoulli' for rounding=True")
    assert main([*start, "--rewards", "Bernoulli", "--rounding"]) == 0
    assert main(["ask", "trial.jsonl"]) == 0
    rows = [f"{arm},{reward(arm, k)}" for arm in ARMS for k in range(FIRST)]
    (tmp_path / "rewards.csv").write_text("\n".join(["arm,reward", *rows]))
    assert main(["tell", "trial.jsonl", "--file", "rewards.csv"]) == 0
    said = capsys.readouterr().out
    assert "paused or out" in said  # the poor arm may come back, for all that is known here
    race = Race.open("trial.jsonl", readonly=True)
    assert race.algorithm == ALGORITHM
    assert (race.history["sum"] % 1 == 0).all()
    assert (race.history["reported"] % 1 > 0).all()
    legend = race.plot().axes[0].get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["in the race", "paused or out"]
    assert json.loads((tmp_path / "trial.jsonl").read_text().splitlines()[0])["format"] == 4


def mean_pulls(means, known, rounding, runs=200):
    """Totals of pausing races on Beta(10μ, 10(1−μ)) rewards, drawn one by one, and the standard error."""
    algorithm, lots = ebr.PausingElasticBatchRacing(6, 0.05, 0.05), np.random.default_rng(3)
    totals = np.zeros(runs)

    def respond(pulls):
        nonlocal totals
        totals += pulls.sum(axis=1)
        sums = np.zeros(pulls.shape)
        for run, arm in zip(*np.nonzero(pulls), strict=True):
            drawn = lots.beta(10 * means[arm], 10 * (1 - means[arm]), pulls[run, arm])
            sums[run, arm] = (lots.random(len(drawn)) < drawn).sum() if rounding else drawn.sum()
        return sums

    drive(algorithm.play(len(means), runs, rewards=known), respond)
    return totals.mean(), totals.std(ddof=1) / math.sqrt(runs)


def test_the_pausing_race_needs_fewer_pulls_with_rounding_than_of_bounded_rewards():
    """Rounding adds noise, and yet: the test for zeros and ones is that much the sharper one."""
    means = [0.8, 0.75, 0.7, 0.6, 0.5]
    (rounded, error), (bounded, other) = (
        mean_pulls(means, "Bernoulli", True),
        mean_pulls(means, "bounded", False),
    )
    assert rounded + 5 * math.hypot(error, other) < bounded
