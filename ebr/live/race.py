"""A real experiment raced round by round: ask how often to pull each arm, tell what came of it."""

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray
from ebr.live.control import with_control
from ebr.live.journal import Journal, JournalError, Line
from ebr.live.progress import Progress
from ebr.live.rewards import Support
from ebr.live.rules import algorithm_of, another_version, check_same, first_line, named
from ebr.live.scale import checked_scale
from ebr.validation import whole

if TYPE_CHECKING:  # slow to import, and a race is asked and told without them
    import pandas as pd

    from ebr.live.report import Report


class Race(Progress):
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
    scale
        The worst reward and the best, in units of your own: (0, 50) for a yield in grams, (300, 0) for a
        latency in ms. To the algorithm they are 0 and 1, its ε and σ are parts of the scale's width, and
        everything told and shown is in your units. The support is the scale, or None.
    blocks
        Whether all arms of a round are observed in the same blocks (on the same split, on the same day): what
        is told may then be a table of blocks × arms, and σ is the noise within a block; see below.
    control, margin
        The arm that others must be better than, and by how much, in your units (ε if left out). The race
        ends early, and recommends the control, when no arm can be; see `SharpElasticBatchRacing`.

    Attributes
    ----------
    algorithm, arms, control
        What was passed in, or read from the journal.
    round
        The number of the current round, from 1; of the last one, once the race has ended.
    finished, recommendation
        Whether the race has ended, and the arm that it then recommends (None before); of an algorithm that
        looks for the k > 1 best, the tuple of them.
    within, verdict
        At the end, how far from the best that may be, in your units, and all of it in a sentence; None and ""
        before.

    Notes
    -----
    *No more rewards than asked are accepted.* The guarantee is for numbers of pulls that are fixed before the
    rewards are seen. Whoever may add some can do so until an arm looks good, and the mean is then biased. If
    there are more, pass the first ones, in the order in which they were observed.

    *Fewer are accepted with* `missing="at random"`: which are missing, and that they were not waited for,
    must have nothing to do with any reward, neither their own nor an earlier one, and so not with which arms
    are out. `SharpElasticBatchRacing` asks for them again in the next round; `ebr.algorithms.lossy` has the
    proof. A race that is short at its end says within what of the best its arm is.

    *Blocks.* Sharp EBR compares survivors by differences of their means, which have the same blocks: what is
    common to a block cancels. It needs independent blocks, and differences that are √2σ-sub-Gaussian. Rewards
    in an interval of width w have σ ≤ w/√2. "Gaussian" ones are N(·, σ²) within a block, independently from
    arm to arm; with looks="union" differences N(·, 2σ²) are enough. Arms alone have no intervals.

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
        scale: tuple[float, float] | None = None,
        blocks: bool = False,
        control: str | None = None,
        margin: float | None = None,
    ) -> None:
        # Before any file is touched: this refuses what cannot be raced.
        algorithm = with_control(algorithm, arms, control, margin, checked_scale(scale))
        first = first_line(algorithm, arms, support, rewards, rounding, scale, blocks)
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

    def ask(self) -> dict[str, int]:
        """How often to pull each arm in this round, those left out not at all; asking again changes nothing.

        Raises ValueError once the race has ended.
        """
        with self._lock:
            self._check_going_on()
            if not self._asked:
                self._record(self._rounds.asked(self.round, self._coming))
            return dict(self._coming)

    def tell(
        self,
        rewards: "Mapping[str, Any] | pd.DataFrame | FloatArray",
        round: int | None = None,
        missing: str | None = None,
    ) -> None:
        """Take in a round's rewards: for each arm asked for a list or array of them, or a tuple (count, sum).

        They are on the disk when this returns. Raises ValueError, and takes in nothing, if they are not
        exactly what was asked for; or if they are said to be another round's, so that whoever names the
        `round` may tell it again, not knowing whether it was told, and it counts once.

        With `missing="at random"` there may be fewer; [] says that all of an arm are missing. Rewards in
        blocks may be a table: a DataFrame with the arms as columns, or an array with a column for each arm
        asked for, in that order.
        """
        with self._lock:
            self._check_going_on()
            if round is not None and (told := whole("round", round, 1)) != self.round:
                why = "has been told already, and counts once" if told < self.round else "has not come yet"
                raise ValueError(f"round must be {self.round}, got {told}, which {why}")
            if not self._asked:
                raise ValueError(f"round {self.round} has not been asked for yet: ask first, then tell")
            self._record(self._rounds.told(self.round, self._coming, rewards, missing))

    def _check_going_on(self) -> None:
        self._journal.check_writable()
        if self.finished:
            raise ValueError(f"the race has ended: it recommends {named(self.recommendation)}")

    def _record(self, line: Line) -> None:
        """Follow a line once it is on the disk; whatever comes between closes the race."""
        with self._journal.closed_on_error():
            self._journal.append(line)
            self._follow(line)

    def report(self) -> "Report":
        """Sum up the race as it stands, fit for a protocol or a paper: print it, or take its HTML."""
        from ebr.live.report import report_of

        usual = f"It recommends {named(self.recommendation)}."
        more = "" if self.verdict == usual else self.verdict
        return report_of(self, self._journal, self._simultaneous(), self._rounds.scale.width, more)

    def close(self) -> None:
        """Let go of the journal; what was told is in it."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
