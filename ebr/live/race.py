"""A real experiment raced round by round: ask how often to pull each arm, tell what came of it."""

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ebr.algorithms.game import Algorithm, advance
from ebr.arrays import FloatArray
from ebr.live.journal import Journal, JournalError, Line
from ebr.live.plots import draw_race
from ebr.live.rewards import Support
from ebr.live.rounds import Rounds
from ebr.live.rules import (
    algorithm_of,
    another_version,
    check_same,
    first_line,
    game_of,
    named,
    word_for_left_out,
)
from ebr.live.tables import Row, bounded, history_table, intervals_table
from ebr.validation import whole

if TYPE_CHECKING:  # both are slow to import, and a race in a terminal needs neither table nor picture
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Race"]


class Race:
    """An experiment of several rounds, with a journal on disk that outlives the process.

    ::

        with ebr.Race(algorithm, arms=["A", "B", "C"], journal="trial.jsonl") as race:
            pulls = race.ask()  # for instance {"A": 120, "C": 120}: B has been dropped
            race.tell({"A": rewards_of_a, "C": (120, 67.0)})  # a list of rewards, or their number and sum

    Where the journal exists the race goes on from there, if it is the same race; `Race.open` needs no more
    than the journal.

    Parameters
    ----------
    algorithm
        For instance `ElasticBatchRacing(deadline=6, epsilon=0.05, delta=0.05)`.
    arms
        The names of the arms, two or more.
    journal
        The file, by custom *.jsonl. It is locked until the race is closed or the process ends.
    support
        The closed interval in which every reward lies, or None for any finite number.
    rewards
        What else is known of them: "Bernoulli" (each is 0 or 1, and nothing else is accepted), "bounded",
        "Gaussian" or "sub-Gaussian". By default "Bernoulli" where the algorithm assumes it, "bounded" where
        the support lies in [0, 1], and else "sub-Gaussian".
    rounding
        Take Bernoulli rewards that lie in [0, 1] without being 0 or 1, by randomised rounding; see below.

    Attributes
    ----------
    algorithm, arms
        What was passed in, or read from the journal.
    round
        The number of the current round, from 1; of the last one, once the race has ended.
    finished, recommendation
        Whether the race has ended, and the arm that it then recommends (None before); of an algorithm that
        looks for the k > 1 best, the tuple of them.

    Notes
    -----
    *Neither fewer nor more rewards than asked are accepted.* The guarantee is for numbers of pulls that are
    fixed before the rewards are seen. Whoever may add some can do so until an arm looks good, and the mean
    is then biased. If there are more, pass the first ones, in the order in which they were observed.

    *Randomised rounding* counts a reward y as 1 with probability y and else as 0: its mean stays, and tests
    that are made for rewards 0 and 1 hold. Use it with `PausingElasticBatchRacing`, which on beta and uniform
    rewards took a sixth to nearly half fewer pulls than with "bounded", for all its noise; an algorithm
    that treats both alike gets nothing but the noise. Lots are a function of the journal's seed, of round and
    the arm: rewards that are told again, after a crash, are rounded as before. The journal has the sums as
    reported and as counted. Single rewards are needed, but where a sum is a whole number: it is then taken
    to be that of zeros and ones.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        arms: Sequence[str],
        journal: str | os.PathLike[str],
        support: Support = (0.0, 1.0),
        rewards: str | None = None,
        rounding: bool = False,
    ) -> None:
        # Before any file is touched: this refuses what cannot be raced.
        first = first_line(algorithm, arms, support, rewards, rounding)
        self._enter(Journal(journal), algorithm, first)

    @classmethod
    def open(cls, journal: str | os.PathLike[str], readonly: bool = False) -> Self:
        """Continue the race of an existing journal, or with `readonly` look at it without locking it."""
        race = cls.__new__(cls)
        race._enter(Journal(journal, create=False, readonly=readonly))
        return race

    def _enter(self, journal: Journal, algorithm: Algorithm | None = None, new: Line | None = None) -> None:
        """Replay the journal through the algorithm's coroutine; write its first line if there is none."""
        self._journal = journal
        self._lock = threading.Lock()
        with journal.closed_on_error():
            first = journal.lines[0] if journal.lines else new
            if first is None:
                raise JournalError(f"{journal.path} is empty: no race was ever started in it")
            if new is not None:
                check_same(journal.path, first, new)
            if journal.lines:
                self._replay(algorithm_of(journal.path, first, algorithm), first)
            elif algorithm is not None:
                self._begin(algorithm, first)
                journal.append(first)

    def _replay(self, algorithm: Algorithm, first: Line) -> None:
        """Go where the journal leads, which is believed only as far as it says what would be written now."""
        journal = self._journal
        try:
            self._begin(algorithm, first)
        except ValueError as error:
            raise another_version(journal.path, error) from None
        for number, line in enumerate(journal.lines[1:], start=2):
            try:
                fits = not self.finished and self._rounds.fits(line, self.round, self._coming, self._asked)
            except ValueError as error:
                raise journal.defect(number, f"says what is never written ({error})") from None
            if not fits:
                raise JournalError(
                    f"line {number} of {journal.path} is not what the algorithm does here, so it was"
                    " written by another version of ebr: continue with that one"
                )
            self._follow(line)

    def _begin(self, algorithm: Algorithm, first: Line) -> None:
        """Start the coroutine, as the first line of the journal describes it."""
        self.algorithm = algorithm
        self.round = 0
        self._rounds = Rounds(first)
        self.arms = self._rounds.arms
        self._places = {arm: place for place, arm in enumerate(self.arms)}
        self._so_far = dict.fromkeys(self.arms, (0, 0.0))  # pulls, and the sum of their rewards
        self._rows: list[Row] = []  # of the history
        self._game = game_of(algorithm, first)
        self._advance(None)

    def ask(self) -> dict[str, int]:
        """How often to pull each arm in this round, those left out not at all; asking again changes nothing.

        Raises ValueError once the race has ended.
        """
        with self._lock:
            self._check_going_on()
            if not self._asked:
                self._record(self._rounds.asked(self.round, self._coming))
            return dict(self._coming)

    def tell(self, rewards: Mapping[str, Any], round: int | None = None) -> None:
        """Take in a round's rewards: for each arm asked for a list or array of them, or a tuple (count, sum).

        They are on the disk when this returns. Raises ValueError, and takes in nothing, if they are not
        exactly what was asked for; or if they are said to be another round's, so that whoever names the
        `round` may tell it again, not knowing whether it was told, and it counts once.
        """
        with self._lock:
            self._check_going_on()
            if round is not None and (told := whole("round", round, 1)) != self.round:
                why = "has been told already, and counts once" if told < self.round else "has not come yet"
                raise ValueError(f"round must be {self.round}, got {told}, which {why}")
            if not self._asked:
                raise ValueError(f"round {self.round} has not been asked for yet: ask first, then tell")
            self._record(self._rounds.told(self.round, self._coming, rewards))

    def _check_going_on(self) -> None:
        self._journal.check_writable()
        if self.finished:
            raise ValueError(f"the race has ended: it recommends {named(self.recommendation)}")

    def _record(self, line: Line) -> None:
        """Follow a line once it is on the disk; whatever comes between closes the race."""
        with self._journal.closed_on_error():
            self._journal.append(line)
            self._follow(line)

    def _follow(self, line: Line) -> None:
        """Go where a line of the journal leads: its round is asked for, or its rewards are told."""
        if line["event"] == "ask":
            self._asked = True
            return
        sums = np.zeros((1, len(self.arms)))
        for arm, (count, reported) in line["rewards"].items():
            total = float(line.get("counted", {}).get(arm, reported))
            sums[0, self._places[arm]] = total
            pulls, so_far = self._so_far[arm][0] + count, self._so_far[arm][1] + total
            self._so_far[arm] = pulls, so_far
            self._rows.append((self.round, arm, count, reported, total, pulls, so_far / pulls))
        self._advance(sums)

    def _advance(self, sums: FloatArray | None) -> None:
        """Let the coroutine go on to its next round, or to its end."""
        self._asked = False
        pulls, arms = advance(self._game, sums)
        if arms is not None:
            self.finished, self._coming = True, {}
            chosen = tuple(self.arms[arm] for arm in np.atleast_1d(arms[0]) if arm >= 0)
            self.recommendation: str | tuple[str, ...] | None = chosen
            if arms.ndim == 1:
                self.recommendation = chosen[0] if chosen else None
        elif pulls is not None:
            self.round += 1
            self.finished, self.recommendation = False, None
            self._coming = {arm: int(n) for arm, n in zip(self.arms, pulls[0], strict=True) if n}

    @property
    def asked(self) -> dict[str, int] | None:
        """The pulls that were asked for and whose rewards have not been told yet, if there are any."""
        return dict(self._coming) if self._asked else None

    @property
    def rounds_left(self) -> int | None:
        """How many rounds remain at most, this one included; None if the algorithm has no deadline."""
        deadline = self.algorithm.deadline
        return 0 if self.finished else deadline and deadline - self.round + 1

    @property
    def survivors(self) -> list[str]:
        """The arms of the coming round; once the race has ended, what is recommended alone.

        Of `PausingElasticBatchRacing` those left out may come back; where the k > 1 best are looked for, they
        may have been accepted.
        """
        end = self.recommendation or ()
        chosen = {end} if isinstance(end, str) else set(end)
        return [arm for arm in self.arms if arm in self._coming or arm in chosen]

    @property
    def history(self) -> "pd.DataFrame":
        """A row a round and arm: round, arm, its pulls and their sum; pulls so far (total), mean and bounds.

        The bounds are NaN for an algorithm without intervals. Where rewards are rounded, sum and mean are of
        what is counted, and a column more has the sum as it was reported.
        """
        return self._bounded(history_table(self._rows, self._rounds.seed is not None), "total")

    @property
    def intervals(self) -> "pd.DataFrame":
        """What is known of each arm now: pulls, mean, lower and upper bound, and whether it survives."""
        frame = self._bounded(intervals_table(self._so_far), "pulls")
        frame["survives"] = frame.index.isin(self.survivors)
        return frame

    def _bounded(self, frame: "pd.DataFrame", pulls: str) -> "pd.DataFrame":
        return bounded(frame, pulls, self.algorithm, self.arms, self._rounds.support)

    def plot(self, axis: "Axes | None" = None) -> "Figure":
        """Draw each arm's mean and interval, round below round, on `axis` or on a new figure."""
        left_out = word_for_left_out(self.algorithm)
        return draw_race(self.history, self.intervals["survives"], self.finished, axis, left_out)

    def close(self) -> None:
        """Let go of the journal; what was told is in it."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
