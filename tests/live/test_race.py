"""Races of real experiments against a plain drive of the algorithm: crashes, kills, wrong input."""

import math
import os
import random
import re
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
import pandas as pd
import pytest
from oracles import Bare, kl
from rewriting import rewrite

import ebr
from ebr.algorithms.game import drive
from ebr.live.journal import Journal, JournalError
from ebr.live.race import Race

ALGORITHM = ebr.ElasticBatchRacing(deadline=3, epsilon=0.4, delta=0.4)
BOUNDED = ebr.SharpElasticBatchRacing(2, 0.1, 0.1, rewards="bounded")
ARMS = ["good", "fair", "poor"]
FIRST = 115  # pulls in the first round
MEANS = {"good": 0.8, "fair": 0.76, "poor": 0.1, "A": 0.7, "B": 0.4}


def reward(arm, number):
    """The arm's reward at its pull of this number: a fraction, always the same, near its mean."""
    return MEANS[arm] + 0.1 * math.sin(7.0 * number + MEANS[arm])


def rewards(race):
    """The rewards of this round, by how often each arm has been pulled before."""
    before = race.intervals["pulls"]
    return {
        arm: [reward(arm, number) for number in range(before[arm], before[arm] + pulls)]
        for arm, pulls in race.ask().items()
    }


def play(race, told=None):
    """Play a race to its end, with rewards known by round or made here; return what it asked for."""
    asked = []
    while not race.finished:
        asked.append(race.ask())
        race.tell(told[race.round] if told else rewards(race))
    return asked


def by_hand(algorithm, arms, known="bounded"):
    """The oracle: the same race without Race. What is asked for, and the arm, pulls and sums at the end."""
    pulled, sums, asked = dict.fromkeys(arms, 0), dict.fromkeys(arms, 0.0), []

    def respond(pulls):
        asked.append({arm: int(n) for arm, n in zip(arms, pulls[0], strict=True) if n})
        told = {
            arm: math.fsum(reward(arm, number) for number in range(pulled[arm], pulled[arm] + n))
            for arm, n in asked[-1].items()
        }
        for arm in told:
            pulled[arm] += asked[-1][arm]
            sums[arm] += told[arm]
        return np.array([[told.get(arm, 0.0) for arm in arms]])

    (best,) = drive(algorithm.play(len(arms), rewards=known), respond)
    return asked, arms[best], pulled, sums


def agrees(race, asked_now, oracle, asked_before=0):
    asked, arm, pulled, sums = oracle
    assert asked_now == asked[asked_before:]
    assert race.finished
    assert race.recommendation == arm
    assert race.survivors == [arm]
    assert race.intervals["pulls"].to_dict() == pulled
    assert race.history.groupby("arm")["pulls"].sum().to_dict() == pulled
    assert race.history.groupby("arm")["sum"].sum().to_dict() == pytest.approx(sums, rel=1e-12)
    return True


def lines_of(path):
    """What a journal says, but for when it was said."""
    lines = Journal(path, readonly=True).lines
    return [{key: line[key] for key in line if key not in ("time", "checksum", "seed")} for line in lines]


@pytest.mark.parametrize(
    ("algorithm", "arms"),
    [
        (ALGORITHM, ARMS),
        (ebr.SharpElasticBatchRacing(4, 0.1, 0.1), ARMS),
        (ebr.SharpElasticBatchRacing(4, 0.1, 0.1, rewards="bounded"), ARMS),
        (ebr.PausingElasticBatchRacing(4, 0.1, 0.1), ARMS),
        (ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards="sub-Gaussian"), ARMS),
        (ebr.AggressiveElimination(2, 0.3, 0.1), ARMS),
        (ebr.Passive(0.3, 0.1), ARMS),
        (ebr.SequentialRacing(0.5, 0.5), ["A", "B"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "",
)
def test_every_algorithm_races_as_it_does_by_hand(algorithm, arms, path, unflushed):
    oracle = by_hand(algorithm, arms)
    with Race(algorithm, arms, path) as race:
        assert agrees(race, play(race), oracle)
    with Race.open(path) as again:
        assert again.algorithm == algorithm
        assert agrees(again, [], oracle, len(oracle[0]))


def test_lots_are_drawn_once_and_for_all(path, unflushed):
    algorithm = ebr.DeltaElimination(4, 0.9, 0.3, "released")
    means = {f"arm {number}": 0.5 + number / 2000 for number in range(600)}  # so many that lots matter
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
    assert len(asides) > 1  # the first lot alone is one of 23: the same six times with probability 1.6e-7


@pytest.mark.parametrize("support", [None, (0, 2), (-1, 1)])
def test_beyond_rewards_in_0_1_sequential_racing_does_not_look_ahead(support, path, unflushed):
    with Race(ebr.SequentialRacing(0.5, 0.5, sigma=1), ["A", "B"], path, support) as race:
        for _ in range(4):
            assert race.ask() == {"A": 1, "B": 1}
            race.tell({"A": [0.75], "B": [0.5]})


def test_reopening_after_every_line_changes_nothing(path, unflushed):
    whole = path.with_name("whole.jsonl")
    with Race(ALGORITHM, ARMS, whole) as race:
        play(race)
        history, intervals = race.history, race.intervals
    while True:
        with Race(ALGORITHM, ARMS, path) as race:
            if race.finished:
                break
            assert race.asked is None
            asked = race.ask()
        with Race.open(path) as race:
            assert race.ask() == race.asked == asked  # asked again, and not written again
            race.tell(rewards(race))
    assert lines_of(path) == lines_of(whole)
    with Race.open(path) as race:
        pd.testing.assert_frame_equal(race.history, history)
        pd.testing.assert_frame_equal(race.intervals, intervals)


@pytest.mark.slow
def test_cut_at_every_byte_the_race_goes_on_to_the_same_end(path, unflushed):
    oracle = by_hand(ALGORITHM, ARMS)
    assert len(oracle[0]) == 3
    with Race(ALGORITHM, ARMS, path) as race:
        play(race)
        history = race.history
    content, said = path.read_bytes(), lines_of(path)
    told = {
        line["round"]: {arm: tuple(pair) for arm, pair in line["rewards"].items()}
        for line in said
        if line["event"] == "tell"
    }
    for length in range(len(content)):
        rewrite(path, content[:length])
        rounds = max(0, content[:length].count(b"\n") - 1) // 2  # of which every line is there
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            race = Race(ALGORITHM, ARMS, path)
        assert len(warned) == (not content[:length].endswith(b"\n") and length > 0)
        assert all(warning.filename == __file__ for warning in warned)  # where the race was opened
        asked = play(race, told)
        race.close()
        assert asked == oracle[0][rounds:]
        assert race.recommendation == oracle[1]
        assert length % 5 or race.history.equals(history)  # a table takes longer than the race
        assert lines_of(path) == said
    assert agrees(race, asked, oracle, rounds)  # whose pulls and sums all the others have, too


def test_every_changed_byte_is_refused(path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        race.ask()
    content = path.read_bytes()
    for place in range(len(content) - 1):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        rewrite(path, changed)
        with pytest.raises(JournalError, match=rf"line {content[:place].count(10) + 1} of"):
            Race.open(path)
        assert path.read_bytes() == changed


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
    """Start the race again and again, in a process that is killed a moment later; print how often."""
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
    """They are forked by a process that does nothing else: this one may have threads."""
    result = subprocess.run(
        [sys.executable, "-c", "import sys, test_race; test_race.kill_until_finished(sys.argv[1])", path],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
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
    # A kill hits a line being written more often than not; none of them does with probability below 1e-6.
    assert int(kills) >= 5
    assert path.with_name("trial.jsonl.torn").stat().st_size > 0


def test_a_race_is_open_once(path):
    with Race(ALGORITHM, ARMS, path) as race:
        race.ask()
        for second in (lambda: Race(ALGORITHM, ARMS, path), lambda: Race.open(path)):
            with pytest.raises(JournalError, match="open for writing elsewhere"):
                second()
        reader = Race.open(path, readonly=True)
        assert reader.asked == race.asked == race.ask()
        for use in (reader.ask, lambda: reader.tell(rewards(race))):
            with pytest.raises(JournalError, match="reading only"):
                use()
        race.tell(rewards(race))
    with pytest.raises(JournalError, match="closed: open it again"):
        race.ask()
    assert Race.open(path).round == 2


def test_threads_that_tell_at_once_are_counted_once(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: time.sleep(0.05))  # a slow disk: all of them meet
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


@pytest.mark.parametrize(
    ("algorithm", "arms", "support", "says"),
    [
        (ebr.ElasticBatchRacing(3, 0.5, 0.4), ARMS, (0, 1), [r"epsilon is 0\.4 there and 0\.5 here"]),
        (
            ebr.ElasticBatchRacing(4, 0.4, 0.4, lone_survivor="pulled again"),
            ARMS,
            (0, 1),
            ["deadline is 3 there and 4 here", "lone_survivor is 'stops' there and 'pulled again' here"],
        ),
        (
            ebr.Passive(0.4, 0.4),
            ARMS,
            (0, 1),
            [
                "algorithm is 'ElasticBatchRacing' there and 'Passive' here",
                "deadline is 3 there and 'none' here",
            ],
        ),
        (ALGORITHM, [*ARMS, "D"], (0, 1), [r"arms is \['good', 'fair', 'poor'\] there and .*'D'\] here"]),
        (ALGORITHM, ARMS[::-1], (0, 1), [r"arms is \['good', .* there and \['poor', 'fair', 'good'\] here"]),
        (ALGORITHM, ARMS, None, [r"support is \[0\.0, 1\.0\] there and None here"]),
    ],
)
def test_a_journal_of_another_race_is_refused_naming_what_differs(path, algorithm, arms, support, says):
    Race(ALGORITHM, ARMS, path).close()
    content = path.read_bytes()
    with pytest.raises(
        JournalError, match=r"give this race a journal of its own, or continue that one"
    ) as error:
        Race(algorithm, arms, path, support)
    assert all(re.search(expected, str(error.value)) for expected in says)
    assert path.read_bytes() == content
    Race(ALGORITHM, ARMS, path, support=[0, 1]).close()  # the same one; and the refusal has let go of it


@pytest.mark.parametrize("algorithm", [ALGORITHM, ebr.SharpElasticBatchRacing(3, 0.4, 0.4)])
def test_a_journal_of_other_rewards_is_refused(path, algorithm):
    Race(algorithm, ARMS, path).close()
    says = "what is known of the rewards is 'bounded' there and 'sub-Gaussian' here"
    with pytest.raises(JournalError, match=says):
        Race(algorithm, ARMS, path, rewards="sub-Gaussian")
    Race(algorithm, ARMS, path, rewards="bounded").close()


WRONG = {
    "unknown arm": (lambda told: told | {"great": told["good"]}, r"'great' is unknown: .* good, fair, poor"),
    "missing arm": (lambda told: {"good": told["good"]}, r"rewards of fair, poor are missing"),
    "no dict": (lambda told: list(told.values()), "must be a dict by arm"),
    "too few": (
        lambda told: told | {"good": told["good"][1:]},
        r"115 rewards of 'good' .* got 114: .*complete",
    ),
    "too many": (
        lambda told: told | {"good": [*told["good"], 1]},
        r"got 116: pass the first 115 in the order",
    ),
    "count": (
        lambda told: told | {"good": (FIRST - 1, 20.0)},
        r"115 rewards of 'good' were asked for, got 114",
    ),
    "NaN": (lambda told: told | {"good": [math.nan] * FIRST}, r"'good' must lie in \[0\.0, 1\.0\].* got nan"),
    "infinite": (lambda told: told | {"good": [math.inf] * FIRST}, "got inf"),
    "above": (lambda told: told | {"good": [1.5, *told["good"][1:]]}, r"lie in \[0\.0, 1\.0\].* got 1\.5"),
    "below": (lambda told: told | {"good": [-1e-9, *told["good"][1:]]}, "got -1e-09"),
    "sum above": (lambda told: told | {"good": (FIRST, 115.1)}, r"got 115 with the sum 115\.1"),
    "sum below": (lambda told: told | {"good": (FIRST, -1)}, r"got 115 with the sum -1\.0"),
    "sum NaN": (lambda told: told | {"good": (FIRST, math.nan)}, "with the sum nan"),
    "sum infinite": (lambda told: told | {"good": (FIRST, 10**400)}, "with the sum inf"),
    "fraction": (
        lambda told: told | {"good": (115.0, 20.0)},
        r"must be \(count, sum\), got \(115\.0, 20\.0\)",
    ),
    "three": (lambda told: told | {"good": (FIRST, 20.0, 1)}, r"must be \(count, sum\)"),
    "word": (lambda told: told | {"good": (FIRST, "20")}, r"must be \(count, sum\)"),
    "words": (lambda told: told | {"good": ["0.5"] * FIRST}, "list of numbers"),
    "none": (lambda told: told | {"good": None}, "list of numbers"),
    "gaps": (lambda told: told | {"good": [None, *told["good"][1:]]}, "list of numbers"),
    "masked": (lambda told: told | {"good": np.ma.masked_less(told["good"], 0.8)}, "list of numbers"),
    "table": (lambda told: told | {"good": [told["good"]]}, "list of numbers"),
    "complex": (lambda told: told | {"good": np.array(told["good"]) + 1j}, "list of numbers"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_input_is_refused_before_it_is_written(wrong, path, unflushed):
    change, says = WRONG[wrong]
    with Race(ALGORITHM, ARMS, path) as race:
        right = rewards(race)
        content = path.read_bytes()
        with pytest.raises(ValueError, match=says):
            race.tell(change(right))
        assert path.read_bytes() == content
        assert agrees(race, play(race), by_hand(ALGORITHM, ARMS))


def test_telling_needs_asking_and_an_end_is_an_end(path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        content = path.read_bytes()
        with pytest.raises(ValueError, match="round 1 has not been asked for yet: ask first, then tell"):
            race.tell(dict.fromkeys(ARMS, (FIRST, 1.0)))
        assert path.read_bytes() == content
        told = rewards(race)
        race.tell(told)
        with pytest.raises(ValueError, match="round 2 has not been asked for"):  # the same again
            race.tell(told)
        race.ask()
        with pytest.raises(
            ValueError, match=r"'poor' is not pulled in this round: the arms .* are good, fair"
        ):
            race.tell(told)
        play(race)
        content = path.read_bytes()
        for use in (race.ask, lambda: race.tell(told)):
            with pytest.raises(ValueError, match="the race has ended: it recommends good"):
                use()
        assert path.read_bytes() == content


def test_a_round_that_is_named_counts_once(path, unflushed):
    """Rounds may ask for the same counts: nothing but its number tells a round from the one before."""
    with Race(ebr.SequentialRacing(0.5, 0.5, sigma=1), ["A", "B"], path, support=None) as race:
        assert race.ask() == {"A": 1, "B": 1}
        with pytest.raises(ValueError, match="round must be 1, got 2, which has not come yet"):
            race.tell({"A": [1], "B": [0]}, round=2)
        race.tell({"A": [1], "B": [0]}, round=1)
        told = path.read_bytes()
        says = "round must be 2, got 1, which has been told already, and counts once"
        with pytest.raises(ValueError, match=says):
            race.tell({"A": [1], "B": [0]}, round=1)
        assert path.read_bytes() == told
        assert race.ask() == {"A": 1, "B": 1}  # the same again
        with pytest.raises(ValueError, match=says):
            race.tell({"A": [1], "B": [0]}, round=1)
        for wrong in (0, -1, 1.0, "1", True):
            with pytest.raises(ValueError, match="round must be an integer of at least 1"):
                race.tell({"A": [1], "B": [0]}, round=wrong)
        race.tell({"A": [1], "B": [0]}, round=np.int64(2))
        assert race.round == 3


@pytest.mark.parametrize(
    "kind",
    [list, np.array, pd.Series, lambda values: (len(values), math.fsum(values))],
    ids=["list", "array", "series", "count and sum"],
)
def test_rewards_come_as_lists_arrays_or_counts_and_sums(kind, path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        while not race.finished:
            race.tell({arm: kind(values) for arm, values in rewards(race).items()})
        assert agrees(race, [], by_hand(ALGORITHM, ARMS), 3)


def test_truth_values_are_rewards_and_the_support_is_closed(path):
    with Race(ALGORITHM, ARMS, path) as race:
        race.ask()
        race.tell(
            {"good": [True] * FIRST, "fair": [False] * FIRST, "poor": (np.int64(FIRST), np.float32(FIRST))}
        )
        assert race.intervals["mean"].tolist() == [1, 0, 1]


def test_sums_are_read_back_to_the_last_bit(path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        told = rewards(race)
        race.tell(told)
    exact = [math.fsum(values) for values in told.values()]
    assert Race.open(path, readonly=True).history["sum"].tolist() == exact


@pytest.mark.parametrize("step", ["write", "fsync"])
@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_race_whose_line_is_not_on_the_disk_is_not_played_on(step, problem, path, monkeypatch):
    def fail(*_):
        raise problem

    race = Race(ALGORITHM, ARMS, path)
    told = rewards(race)
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        error = JournalError if isinstance(problem, OSError) else KeyboardInterrupt
        with pytest.raises(error, match=str(problem.args[-1]) if problem.args else "^$"):
            race.tell(told)
    assert race.round == 1
    assert race.history.empty
    for use in (race.ask, lambda: race.tell(told)):
        with pytest.raises(JournalError, match="closed: open it again"):
            use()
    with Race.open(path) as again:
        assert again.round == (2 if step == "fsync" else 1)  # what is in the file counts, and once only
        play(again)
        assert agrees(again, [], by_hand(ALGORITHM, ARMS), 3)


def test_an_interrupt_between_the_disk_and_the_coroutine_counts_nothing_twice(path, monkeypatch):
    race = Race(ALGORITHM, ARMS, path)
    told = rewards(race)

    def interrupted(line):
        raise SystemExit

    monkeypatch.setattr(race, "_follow", interrupted)
    with pytest.raises(SystemExit):
        race.tell(told)
    with pytest.raises(JournalError, match="closed: open it again"):
        race.tell(told)
    with Race.open(path) as again:
        assert again.round == 2
        assert again.history["pulls"].tolist() == [FIRST] * 3


def test_a_journal_of_other_decisions_is_refused(path, monkeypatch):
    """Another version of the algorithm must not be fed what was asked for by this one."""
    with Race(ALGORITHM, ARMS, path) as race:
        race.tell(rewards(race))
        race.ask()
    content = path.read_bytes()
    monkeypatch.setattr(ebr.ElasticBatchRacing, "slack", lambda self, n_arms: 3.0)
    with pytest.raises(JournalError, match=r"line 4 of .*another version of ebr: continue with that one"):
        Race.open(path)
    monkeypatch.undo()
    monkeypatch.setattr("ebr.algorithms.elastic.SCHEDULE_CONSTANT", 81)
    with pytest.raises(JournalError, match=r"line 2 of .*another version"):
        Race.open(path)
    assert path.read_bytes() == content


@dataclass(frozen=True)
class Coin(Bare):
    """An algorithm of one's own."""

    def play(self, n_arms, replicates=1, **_):
        yield np.ones((replicates, n_arms), dtype=int)
        return np.full(replicates, -1)


@dataclass(frozen=True)
class Tossed(Coin):
    """One with a parameter."""

    how: object = ()


def test_parameters_of_ones_own_are_the_same_again_once_they_were_json(path):
    for _ in range(2):
        Race(Tossed((1, "high")), ["A", "B"], path).close()
    with pytest.raises(JournalError, match=r"how is \[1, 'high'\] there and \[1, 'low'\] here"):
        Race(Tossed((1, "low")), ["A", "B"], path)


def test_an_algorithm_of_ones_own_races_too(path):
    for _ in range(2):
        with Race(Coin(), ["A", "B"], path, support=None) as race:
            if not race.finished:
                race.ask()
                race.tell({"A": [-7], "B": (1, 1e9)})
            assert race.finished
            assert race.recommendation is None
            assert race.survivors == []
            assert race.rounds_left == 0
            assert race.intervals["lower"].isna().all()
    with pytest.raises(JournalError, match=r"algorithm Coin\): an algorithm of your own is passed to Race"):
        Race.open(path)


@pytest.mark.parametrize(
    ("first", "says"),
    [
        ({"event": "ask", "round": 1, "pulls": {}}, "of a kind unknown here"),
        ({"event": "start", "format": 5, "algorithm": "Passive"}, "format 5, .* needs a newer ebr"),
        ({"event": "start", "format": 1, "algorithm": "os.system"}, "algorithm os.system"),
        (
            {"event": "start", "format": 1, "algorithm": "Passive", "parameters": {"luck": 1}},
            "another version",
        ),
        (
            {
                "event": "start",
                "format": 1,
                "algorithm": "Passive",
                "parameters": {"epsilon": 2, "delta": 0.1},
            },
            r"another version of ebr \(epsilon must lie in \(0, 1\), got 2\)",
        ),
    ],
)
def test_a_first_line_that_says_something_else_is_refused(first, says, path):
    book = Journal(path)
    book.append(first)
    book.close()
    with pytest.raises(JournalError, match=says):
        Race.open(path)
    with pytest.raises(JournalError, match="another race"):
        Race(ALGORITHM, ARMS, path)


def test_a_journal_without_a_race_is_named(path):
    with pytest.raises(JournalError, match=r"there is no journal .*: start a race"):
        Race.open(path)
    path.touch()
    with pytest.raises(JournalError, match="is empty: no race was ever started"):
        Race.open(path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"arms": "ABC"}, "arms must be a list of two or more distinct, printable names, got 'ABC'"),
        ({"arms": ["A"]}, "two or more"),
        ({"arms": ["A", "A"]}, "distinct"),
        ({"arms": ["A", ""]}, "printable names"),
        ({"arms": ["A", "B\n"]}, "printable names"),
        ({"arms": ["A", 2]}, "printable names"),
        (
            {"support": (1, 0)},
            r"support must be a pair of finite numbers \(low, high\), or None, got \(1, 0\)",
        ),
        ({"support": (0, math.inf)}, "finite"),
        ({"support": (0, 1, 2)}, "pair"),
        ({"support": 1}, "support must be a pair .* got 1"),
        ({"algorithm": "EBR"}, "algorithm must be a dataclass and have all of .*, got 'EBR'"),
        ({"algorithm": BOUNDED, "support": (-0.5, 0.5)}, "must not be 'bounded' for sub-Gaussian rewards"),
        ({"algorithm": BOUNDED, "support": None}, "must not be 'bounded' for sub-Gaussian rewards"),
        (
            {"rewards": "bounded", "support": (-0.5, 0.5)},
            r"support must lie in \[0, 1\] for bounded rewards, got \(-0\.5, 0\.5\)",
        ),
        ({"rewards": "good"}, "rewards must be one of 'Bernoulli', 'bounded', .*, got 'good'"),
        ({"arms": None}, "arms must be a list of two or more distinct, printable names, got None"),
        ({"arms": 3}, "arms must be a list .* got 3"),
        ({"arms": b"AB"}, "arms must be a list .* got b'AB'"),
        ({"arms": {"A", "B"}}, "arms must be a list .* got a set, whose order"),
        ({"arms": frozenset("AB")}, "got a set"),
        ({"arms": ["A", ["B"]]}, r"printable names, got \['B'\] among them"),
        ({"arms": ["A", "B", "A"]}, "printable names, got more than once: A$"),
        ({"support": 5}, "support must be a pair .* got 5"),
        ({"support": {0, 1}}, "support must be a pair"),
        ({"support": "01"}, "support must be a pair"),
        ({"support": np.array(1.0)}, "support must be a pair"),
        ({"support": [[0], [1, 2]]}, "support must be a pair"),
        ({"support": (0, 10**400)}, "support must be a pair of finite numbers"),
        ({"algorithm": ebr.ElasticBatchRacing}, "got the class ElasticBatchRacing itself: make one"),
        ({"algorithm": ebr.SequentialRacing}, "got the class SequentialRacing itself: make one"),
        ({"algorithm": Coin}, r"got the class Coin itself: make one, Coin\(\.\.\.\)"),
        ({"algorithm": Tossed(object())}, "its parameters numbers and words, got Tossed"),
        ({"algorithm": Tossed(math.nan)}, "its parameters numbers and words, got Tossed"),
    ],
)
def test_what_cannot_be_raced_is_named_and_leaves_no_file(arguments, says, path):
    good = {"algorithm": ALGORITHM, "arms": ARMS}
    with pytest.raises(ValueError, match=says):
        Race(**good | arguments, journal=path)
    assert not path.exists()


def test_a_sigma_that_is_too_small_for_the_support_is_warned_of(path):
    with pytest.warns(
        UserWarning, match=r"sigma, 0\.5, is below 1\.0, .* guarantee is void unless"
    ) as warned:
        Race(ALGORITHM, ARMS, path, support=(-1, 1)).close()
    assert [warning.filename for warning in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Race.open(path).close()  # said once, when it was decided
        Race(ebr.ElasticBatchRacing(3, 0.4, 0.4, sigma=1), ARMS, path.with_name("b"), support=(-1, 1)).close()


@pytest.mark.parametrize("assumed", [None, "Gaussian"])
def test_gaussian_rewards_within_0_and_1_are_warned_of(assumed, path):
    algorithm = ebr.SharpElasticBatchRacing(3, 0.2, 0.1, rewards=assumed)
    with pytest.warns(UserWarning, match=r"between 0\.0 and 1\.0 are not Gaussian: .* is void") as warned:
        Race(algorithm, ARMS, path, rewards="Gaussian").close()
    assert [warning.filename for warning in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Race.open(path).close()  # said once, when it was decided
        Race(algorithm, ARMS, path.with_name("b"), rewards="Gaussian", support=None).close()


MANY = [f"arm {number}" for number in range(10_001)]


def test_messages_are_short_however_many_arms_there_are(path, unflushed):
    def refusal(use):
        with pytest.raises(ValueError, match="arm") as error:
            use()
        assert len(str(error.value)) < 500
        return str(error.value)

    says = refusal(lambda: Race(ALGORITHM, [*MANY, "arm 77"], path))
    assert says.endswith("got more than once: arm 77")
    assert refusal(lambda: Race(ALGORITHM, MANY * 2, path)).endswith("arm 6, arm 7 and 9993 more")
    with Race(ebr.Passive(0.5, 0.3), MANY, path) as race:
        asked = race.ask()
        assert "'other' is unknown" in refusal(lambda: race.tell(dict.fromkeys(["other"], (1, 1))))
        assert "rewards of arm 1, arm 2" in refusal(lambda: race.tell({"arm 0": (asked["arm 0"], 1)}))
    says = refusal(lambda: Race(ebr.Passive(0.5, 0.3), [*MANY[:-1], "last"], path))
    assert "arms is (from place 10001 on) ['arm 10000'] there and ['last'] here" in says
    says = refusal(lambda: Race(ebr.Passive(0.5, 0.3), [*MANY, "last"], path))
    assert "arms is (from place 10002 on) [] there and ['last'] here" in says


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def comparisons(number, path, k):
    """How often names are compared while so many arms are raced to the end."""
    algorithm = ebr.SharpElasticBatchRacing(2, 0.5, 0.3, k=k)
    Counted.compared = 0
    with Race(algorithm, [Counted(f"arm {arm}") for arm in range(number)], path) as race:
        while not race.finished:
            race.tell({arm: (pulls, pulls / 2) for arm, pulls in race.ask().items()})
        assert len(race.survivors) == k
    return Counted.compared


def test_telling_takes_a_time_that_grows_with_the_arms_and_not_with_their_square(path, unflushed):
    few, many = (comparisons(number, path.with_name(f"{number}"), number // 2) for number in (100, 400))
    assert many <= 5 * few + 1000  # it was half a square: 16 times as many, 80,000 and more


def test_the_intervals_and_the_rounds_are_the_algorithms(path, unflushed):
    with Race(ALGORITHM, ARMS, path) as race:
        assert race.survivors == ARMS
        assert race.intervals["pulls"].tolist() == [0, 0, 0]
        assert race.intervals[["mean", "lower", "upper"]].isna().all(axis=None)
        assert list(race.history.columns) == [
            "round",
            "arm",
            "pulls",
            "sum",
            "total",
            "mean",
            "lower",
            "upper",
        ]
        assert (race.round, race.rounds_left, race.recommendation) == (1, 3, None)
        race.tell(rewards(race))
        assert race.survivors == ["good", "fair"]
        assert (race.round, race.rounds_left) == (2, 2)
        race.tell(rewards(race))
        intervals, history = race.intervals, race.history
    schedule = ALGORITHM.pulls_by_round(3)
    assert intervals["pulls"].tolist() == [schedule[1], schedule[1], schedule[0]]
    for arm in ARMS:
        pulls = intervals.loc[arm, "pulls"]
        mean = math.fsum(reward(arm, number) for number in range(pulls)) / pulls
        lower, upper = intervals.loc[arm, ["lower", "upper"]]
        assert intervals.loc[arm, "mean"] == pytest.approx(mean)
        # Chernoff's: all q with b kl(μ̂, q) ≤ log(2/p), at p = δ/(nT), as they hold for 3 arms and 3 rounds.
        assert lower < mean < upper
        for end in (lower, upper):
            assert pulls * kl(mean, end) == pytest.approx(math.log(2 * 9 / 0.4))
    assert intervals["survives"].tolist() == [True, True, False]
    assert history["round"].tolist() == [1, 1, 1, 2, 2]
    assert history["arm"].tolist() == [*ARMS, "good", "fair"]
    assert history["total"].tolist() == [schedule[0]] * 3 + [schedule[1]] * 2


def test_the_figure_shows_every_round_and_who_is_out(path, unflushed):
    from matplotlib import pyplot as plt  # slow to import, and of no use to the processes that are killed

    settings, figures = dict(plt.rcParams), plt.get_fignums()
    with Race(ALGORITHM, ARMS, path) as race:
        race.plot()  # before anything is known, too
        race.tell(rewards(race))
        race.tell(rewards(race))
        figure = race.plot()
        drawn = figure.axes[0].containers
        assert [len(bars.lines[0].get_xdata()) for bars in drawn] == [2, 2, 1]
        good = race.history.query("arm == 'good'")
        assert drawn[0].lines[0].get_xdata().tolist() == good["mean"].tolist()
        ends = np.array([bar[:, 0] for bar in drawn[0].lines[2][0].get_segments()])
        np.testing.assert_allclose(ends, good[["lower", "upper"]])
        assert [bars.lines[0].get_marker() for bars in drawn] == ["o", "o", "s"]
        assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["in the race", "out"]
        assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ARMS
        assert figure.get_size_inches()[0] == 3.4
        own, axis = plt.subplots()
        assert race.plot(axis) is own
        plt.close(own)
        play(race)
        axis = race.plot().axes[0]
        assert [text.get_text() for text in axis.get_legend().get_texts()] == ["recommended", "others"]
        assert [bars.lines[0].get_marker() for bars in axis.containers] == ["o", "s", "s"]
    assert plt.get_fignums() == figures
    assert dict(plt.rcParams) == settings
