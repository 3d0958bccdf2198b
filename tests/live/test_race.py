"""Races of real experiments: crashes, kills, concurrent use, and what can be seen of a race."""

import copy
import importlib
import math
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from live.races import ARMS, Coin, lines_of, play, refuses, reward, rewards, rewrite
from oracles import Bare, kl

import ebr
from ebr.algorithms.game import drive
from ebr.live.journal import Journal, JournalError
from ebr.live.race import Race

ALGORITHM = ebr.ElasticBatchRacing(deadline=3, epsilon=0.4, delta=0.4)
FIRST = 115  # pulls in the first round


def test_lots_are_drawn_once_and_for_all(path, unflushed):
    algorithm = ebr.DeltaElimination(4, 0.9, 0.3, "released")
    means = {f"arm {number}": 0.5 + number / 2000 for number in range(600)}  # many arms, so that lots matter
    arms = list(means)
    asides = set()
    for number in range(6):
        journal = path.with_name(f"{number}.jsonl")
        asked = []
        while True:
            with Race(algorithm, arms, journal) as race:
                if race.finished:
                    break
                asked.append(race.ask())
                race.tell({arm: (pulls, pulls * means[arm]) for arm, pulls in asked[-1].items()})
        lots, again = np.random.default_rng(Journal(journal, readonly=True).lines[0]["seed"]), []

        def respond(pulls, again=again):
            again.append({arms[arm]: pulls[0, arm] for arm in np.flatnonzero(pulls)})
            return pulls * np.array([list(means.values())])

        drive(algorithm.play(600, generator=lots), respond)
        assert again == asked
        asides.add(tuple(asked[-1]))
    assert len(asides) > 1  # the first lot is one of 23: six equal ones have 1.6e-7


# Crashes and kills.


@pytest.mark.slow
def test_cut_at_every_byte_the_race_goes_on_to_the_same_end(path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        whole, history, end = play(race), race.history, race.recommendation
    assert len(whole) == 3
    content, said = path.read_bytes(), lines_of(path)
    told = {
        line["round"]: {arm: tuple(pair) for arm, pair in line["rewards"].items()}
        for line in said
        if line["event"] == "tell"
    }
    for length in range(len(content)):
        rewrite(path, content[:length])
        rounds = max(0, content[:length].count(b"\n") - 1) // 2  # with all their lines
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            race = Race(ALGORITHM, ARMS, path)
        assert len(warned) == (not content[:length].endswith(b"\n") and length > 0)
        assert all(warning.filename == __file__ for warning in warned)  # the place where the race was opened
        asked = play(race, told)
        race.close()
        assert asked == whole[rounds:]
        assert race.recommendation == end
        assert length % 5 or race.history.equals(history)  # making the table is slow
        assert lines_of(path) == said


def a_byte_at_a_time(descriptor, content, write=os.write):
    """Write slowly, so that kills hit the middle of a line."""
    for byte in content:
        write(descriptor, bytes([byte]))
        time.sleep(2e-5)
    return len(content)


def play_until_killed(path):
    os.write = a_byte_at_a_time
    warnings.simplefilter("ignore")
    try:
        with Race(ALGORITHM, ARMS, path) as race:
            play(race)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def kill_until_finished(path):
    """Start the race repeatedly, in processes that are killed a moment later; print the number of kills."""
    importlib.import_module("pandas")  # a child that had to load it would always be killed
    moments = random.Random(5)
    for kills in range(10_000):
        child = os.fork()
        if child == 0:
            play_until_killed(path)
        time.sleep(moments.expovariate(1 / 0.03))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            print(kills, os.WEXITSTATUS(status))
            return


@pytest.mark.slow
def test_killed_again_and_again_the_race_ends_as_if_undisturbed(path):
    """The processes are forked by one that does nothing else, as this one may have threads."""
    places = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-c", "import sys, test_race; test_race.kill_until_finished(sys.argv[1])", path],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        check=True,
    )
    kills, status = result.stdout.split()
    assert (status, result.stderr) == ("0", "")
    undisturbed = path.with_name("undisturbed.jsonl")
    with Race(ALGORITHM, ARMS, undisturbed) as race:
        play(race)
    assert lines_of(path) == lines_of(undisturbed)
    # Most kills hit a line being written. That none does has probability below 1e-6.
    assert int(kills) >= 5
    assert path.with_name("trial.jsonl.torn").stat().st_size > 0


@pytest.mark.parametrize("step", ["write", "fsync", "_follow"])
@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_race_whose_line_is_not_on_the_disk_is_not_played_on(step, problem, path, monkeypatch):
    """A line that is on the disk but was not followed is counted once."""

    def fail(*_):
        raise problem

    race = Race(ALGORITHM, ARMS, path)
    told = rewards(race)
    with monkeypatch.context() as patch:
        patch.setattr(race if step == "_follow" else os, step, fail)
        with pytest.raises((JournalError, OSError, KeyboardInterrupt)):
            race.tell(told)
    assert race.round == 1
    assert race.history.empty
    for use in (race.ask, lambda: race.tell(told)):
        with pytest.raises(JournalError, match="closed: open it again"):
            use()
    with Race.open(path) as again:
        assert again.round == (1 if step == "write" else 2)  # what is in the file counts, once
        play(again)
    with Race(ALGORITHM, ARMS, path.with_name("undisturbed.jsonl")) as undisturbed:
        play(undisturbed)
    assert lines_of(path) == lines_of(path.with_name("undisturbed.jsonl"))


# Who may ask and tell, and when.


def test_a_reader_changes_nothing(path):
    with Race(ALGORITHM, ARMS, path) as race:
        race.ask()
        reader = Race.open(path, readonly=True)
        assert reader.asked == race.asked == race.ask()
        for use in (reader.ask, lambda: reader.tell(rewards(race))):
            with pytest.raises(JournalError, match="reading only"):
                use()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_race_has_no_copy_that_could_tell_a_round_twice(path, duplicate):
    with Race(ALGORITHM, ARMS, path) as race, pytest.raises(TypeError, match="a race cannot be copied"):
        duplicate(race)


def test_threads_that_tell_at_once_are_counted_once(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: time.sleep(0.05))  # a slow disk, so that threads meet
    with Race(ALGORITHM, ARMS, path) as race:
        told = rewards(race)
        refusals = []

        def tell():
            try:
                race.tell(told)
            except ValueError as error:
                refusals.append(str(error))

        threads = [threading.Thread(target=tell) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(refusals) == 7
        assert all("not been asked" in refusal for refusal in refusals)
    assert [line["event"] for line in lines_of(path)] == ["start", "ask", "tell"]


def test_telling_needs_asking_and_an_end_is_an_end(path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        once = dict.fromkeys(ARMS, (FIRST, 1.0))
        refuses(race, "round 1 has not been asked for yet: ask first, then tell", once)
        told = rewards(race)
        race.tell(told)
        refuses(race, "round 2 has not been asked for", told)  # told twice
        race.ask()
        refuses(race, r"'poor' is .*not pulled in this round: the arms .* good, fair", told)
        play(race)
        refuses(race, "the race has ended: it recommends good", told)
        with pytest.raises(ValueError, match="the race has ended: it recommends good"):
            race.ask()


@pytest.mark.parametrize("support", [None, (0, 2)])  # here sequential racing does not look ahead
def test_a_round_that_is_named_counts_once(support, path, unflushed):
    """Rounds may ask for the same counts, so only its number distinguishes a round from the last one."""
    told = {"A": [1], "B": [0]}
    with Race(ebr.SequentialRacing(0.5, 0.5, sigma=1), ["A", "B"], path, support) as race:
        assert race.ask() == {"A": 1, "B": 1}
        refuses(race, "round must be 1, got 2, which has not come yet", told, round=2)
        race.tell(told, round=1)
        assert race.ask() == {"A": 1, "B": 1}  # the same counts
        refuses(race, "must be 2, got 1, which has been told already, and counts", told, round=1)
        for wrong in (0, 1.0, True):
            refuses(race, "round must be an integer of at least 1", told, round=wrong)
        race.tell(told, round=np.int64(2))
        assert race.round == 3


def test_a_journal_of_other_decisions_is_refused(path, monkeypatch):
    """Another version of the algorithm must not be told rewards that this one asked for."""
    with Race(ALGORITHM, ARMS, path) as race:
        race.tell(rewards(race))
        race.ask()
    content = path.read_bytes()
    monkeypatch.setattr(ebr.ElasticBatchRacing, "slack", lambda self, n_arms: 3.0)
    with pytest.raises(JournalError, match=r"line 4 of .*another version of ebr .*or use that version"):
        Race.open(path)
    monkeypatch.undo()
    monkeypatch.setattr("ebr.algorithms.elastic.SCHEDULE_CONSTANT", 81)
    with pytest.raises(JournalError, match=r"line 2 of .*another version"):
        Race.open(path)
    assert path.read_bytes() == content


def test_a_journal_without_a_race_is_named(path):
    path.touch()
    with pytest.raises(JournalError, match="is empty: no race was ever started"):
        Race.open(path)


def test_an_algorithm_of_ones_own_races_too(path):
    for _ in range(2):  # its parameters must survive JSON
        with Race(Coin((1, "high")), ["A", "B"], path, support=None) as race:
            if not race.finished:
                race.ask()
                race.tell({"A": [-7], "B": (1, 1e9)})
            assert race.finished
            assert race.recommendation is None
            assert race.survivors == []
            assert race.intervals["lower"].isna().all()
    with pytest.raises(JournalError, match=r"how is \[1, 'high'\] there and \[1, 'low'\] here"):
        Race(Coin((1, "low")), ["A", "B"], path, support=None)
    with pytest.raises(
        JournalError, match="algorithm Coin is unknown: pass an algorithm of your own to Race"
    ):
        Race.open(path)


@dataclass(frozen=True)
class Backwards(Bare):
    """A user's algorithm, which recommends the last two arms, the last one first."""

    k = 2

    def play(self, n_arms, replicates=1, **_):
        yield np.ones((replicates, n_arms), dtype=int)
        return np.tile([n_arms - 1, n_arms - 2], (replicates, 1))


def test_survivors_are_in_the_order_of_the_arms_however_they_are_recommended(path):
    with Race(Backwards(), ["A", "B", "C"], path, support=None) as race:
        race.tell({arm: [0] for arm in race.ask()})
        assert race.recommendation == ("C", "B")
        assert race.survivors == ["B", "C"]


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def test_telling_takes_a_time_that_grows_with_the_arms_and_not_with_their_square(path, unflushed):
    compared = []
    for number in (100, 400):
        Counted.compared = 0
        algorithm = ebr.SharpElasticBatchRacing(2, 0.5, 0.3, k=number // 2)
        arms = [Counted(f"arm {arm}") for arm in range(number)]
        with Race(algorithm, arms, path.with_name(f"{number}.jsonl")) as race:
            while not race.finished:
                race.tell({arm: (pulls, pulls / 2) for arm, pulls in race.ask().items()})
            assert len(race.survivors) == number // 2
        compared.append(Counted.compared)
    assert compared[1] <= 5 * compared[0] + 1000  # quadratic time would be 16 times as many, 80,000 and more


# What can be seen of a race.


def test_the_intervals_and_the_rounds_are_the_algorithms(path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        assert race.survivors == ARMS
        assert race.intervals["pulls"].tolist() == [0, 0, 0]
        assert race.intervals[["mean", "lower", "upper"]].isna().all(axis=None)
        assert " ".join(race.history.columns) == "round arm pulls sum total mean lower upper"
        assert (race.round, race.recommendation) == (1, None)
        race.tell(rewards(race))
        assert race.survivors == ["good", "fair"]
        assert race.round == 2
        race.tell(rewards(race))
        intervals, history = race.intervals, race.history
    schedule = ALGORITHM.pulls_by_round(3)
    assert intervals["pulls"].tolist() == [schedule[1], schedule[1], schedule[0]]
    for arm in ARMS:
        pulls = intervals.loc[arm, "pulls"]
        mean = math.fsum(reward(arm, number) for number in range(pulls)) / pulls
        lower, upper = intervals.loc[arm, ["lower", "upper"]]
        assert intervals.loc[arm, "mean"] == pytest.approx(mean)
        # Chernoff's interval: all q with b kl(μ̂, q) ≤ log(2/p), with p = δ/(nT) for 3 arms and 3 rounds.
        assert lower < mean < upper
        for end in (lower, upper):
            assert pulls * kl(mean, end) == pytest.approx(math.log(2 * 9 / 0.4))
    assert intervals["survives"].tolist() == [True, True, False]
    assert history["round"].tolist() == [1, 1, 1, 2, 2]
    assert history["arm"].tolist() == [*ARMS, "good", "fair"]
    assert history["total"].tolist() == [schedule[0]] * 3 + [schedule[1]] * 2


@pytest.mark.parametrize(
    "algorithm", [ebr.ElasticBatchRacing, ebr.SharpElasticBatchRacing, ebr.DeltaElimination]
)
def test_a_race_recommends_the_k_best(algorithm, path):
    means = {"A": 0.1, "B": 0.9, "C": 0.2, "D": 0.8}
    with ebr.Race(algorithm(3, 0.3, 0.1, k=2), list(means), path) as race:
        assert race.recommendation is None
        while not race.finished:
            race.tell({arm: (count, math.floor(means[arm] * count)) for arm, count in race.ask().items()})
        assert race.recommendation == ("B", "D")
        assert race.survivors == ["B", "D"]
        assert race.intervals["survives"].tolist() == [False, True, False, True]
        with pytest.raises(ValueError, match=r"^the race has ended: it recommends B, D$"):
            race.ask()
    with ebr.Race.open(path) as again:
        assert again.algorithm == algorithm(3, 0.3, 0.1, k=2)
        assert again.recommendation == ("B", "D")


STAKED = ebr.StakedElasticBatchRacing(8, 0.02, 0.1, rewards="Bernoulli")


def play_rounds(race, rounds):
    """Play some rounds of two arms, of which the second is better by 0.1."""
    for _ in range(rounds):
        race.tell({arm: (n, n * (5 if arm == "A" else 6) // 10) for arm, n in race.ask().items()})


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("algorithm", [STAKED, ebr.SharpElasticBatchRacing(8, 0.02, 0.1)])
def test_a_race_that_is_stopped_says_what_could_be_said(algorithm, lower, path):
    with ebr.Race(algorithm, ["A", "B"], path, lower_is_better=lower) as race:
        assert race.now == (None, math.inf)  # no reward is known yet
        said = []
        while not race.finished and len(said) < 2:
            play_rounds(race, 1)
            said.append(race.now)
        assert all(arm == ("A" if lower else "B") for arm, _ in said)
        assert 0.02 < said[1][1] <= said[0][1] < 1
        race.ask()  # asked for but not told, so not counted
        race.stop()
        assert (race.finished, race.stopped, race.now) == (True, True, None)
        assert (race.recommendation, race.within) == said[1]
        assert "as it was stopped" in race.verdict
        report = race.report()  # it counts two rounds
        assert report.facts["Rounds"].startswith(
            f"2 of at most {algorithm.deadline}; the race was stopped in round 3"
        )
        with pytest.raises(ValueError, match="the race has ended"):
            race.stop()
    with ebr.Race.open(path) as again:
        assert (again.recommendation, again.within, again.stopped) == (*said[1], True)
    assert path.read_text("utf-8").splitlines()[-1].startswith('{"event": "stop", "round": 3')


def test_a_stop_that_is_not_permitted_is_refused_and_not_recorded(path):
    with ebr.Race(ebr.PausingElasticBatchRacing(8, 0.05, 0.1), ["A", "B"], path) as race:
        play_rounds(race, 1)
        assert race.now is None
        before = path.read_bytes()
        with pytest.raises(ValueError, match="algorithm must permit stopping early"):
            race.stop()
        assert path.read_bytes() == before


def test_a_forged_stop_is_refused(path):
    with ebr.Race(STAKED, ["A", "B"], path) as race:
        play_rounds(race, 1)
        race.stop()
    ended = path.read_bytes()
    going = b"".join(ended.splitlines(keepends=True)[:-1])
    for before, number in ((ended, 2), (ended, 3), (going, 1), (going, 3)):  # twice, or in another round
        path.write_bytes(before)
        journal = Journal(path, create=False)
        journal.append({"event": "stop", "round": number})
        journal.close()
        with pytest.raises(ebr.JournalError, match=r"line [45] of .* was changed"):
            ebr.Race.open(path)
