"""A real experiment raced round by round: ask how often to pull each arm, tell what came of it."""

import math
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from ebr.algorithms.game import Algorithm, Standing
from ebr.arrays import FloatArray, IntArray
from ebr.live.journal import Journal, JournalError, Line
from ebr.live.report import Chosen, Report, drawn, intervals_of, named, report_of, verdict
from ebr.live.rewards import check_line, plain_line, told_line
from ebr.live.terms import FLIPPED, UNIT, USUAL, Support, Terms
from ebr.validation import true_or_false, whole

if TYPE_CHECKING:  # slow to import, and a race is asked and told without them
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Told = Mapping[str, Any] | pd.DataFrame | FloatArray
    Late = Told | None


class Race(AbstractContextManager["Race"]):
    """An experiment of several rounds, with a journal on disk that outlives the process.

    In each round `ask` returns pulls, for instance {"A": 120, "C": 120} after B is dropped, and `tell` takes
    in {"A": [1, 0, …], "C": (120, 67.0)}: a list of rewards, or their number and sum. If the journal exists,
    the same race goes on from there; `Race.open` needs only the journal.

    Parameters
    ----------
    algorithm
        For instance `ElasticBatchRacing(deadline=6, epsilon=0.05, delta=0.05)`, with ε and σ in the units of
        the rewards. For ε of 1 or more, use `ebr.plan(…).start(…)`, which makes an algorithm and runs it.
    arms, journal
        The names of the arms, and the file, which is locked until the race is closed.
    support, rewards
        The closed interval in which every reward lies, or None for any finite number; and "Bernoulli" (each
        is 0 or 1), "bounded", "Gaussian" or "sub-Gaussian". By default one implies the other; without both,
        rewards are "bounded" in [0, 1] ("Bernoulli" if the algorithm assumes it).
    blocks, control, margin, lower_is_better
        As in `ebr.plan`, but the control is named. In blocks σ is the noise within a block.

    Attributes
    ----------
    round
        The number of the current round, from 1; after the end, of the last round.
    finished, stopped, recommendation, within
        Whether the race has ended, and whether by `stop`. At the end, the arm that it recommends (a tuple if
        the k > 1 best are looked for), and how far from the best it may be, in your units; before, None.

    Notes
    -----
    Counts are fixed before rewards are seen: rewards added until an arm looks good would bias its mean. Which
    are missing or late, and the decision not to wait for them, must have nothing to do with any reward, so
    not with which arms are out either; no race can check that (proof: `ebr.algorithms.sharp`).

    *Blocks.* Differences of arms over the same blocks are compared, so what is common to a block cancels. The
    blocks must be independent, the differences √2σ-sub-Gaussian, or N(·, 2σ²) for "Gaussian" rewards. In an
    interval of width w, σ ≤ w/√2 will do. Single arms have no intervals.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        arms: Sequence[str],
        journal: str | os.PathLike[str],
        support: Support = USUAL,
        rewards: str | None = None,
        blocks: bool = False,
        control: str | None = None,
        margin: float | None = None,
        lower_is_better: bool = False,
    ) -> None:
        units = FLIPPED if true_or_false("lower_is_better", lower_is_better) else UNIT
        # Before any file is touched: this refuses what cannot be raced.
        new = Terms.agreed(algorithm, arms, support, rewards, units, blocks, control, margin)
        self._enter(Journal(journal), new)

    @classmethod
    def begin(cls, terms: Terms, journal: str | os.PathLike[str]) -> Self:
        """Begin, or continue, the race with these terms, as a plan has them."""
        return cls.__new__(cls)._enter(Journal(journal), terms)

    @classmethod
    def open(cls, journal: str | os.PathLike[str], readonly: bool = False) -> Self:
        """Continue the race of an existing journal, or with `readonly` look at it without locking it."""
        return cls.__new__(cls)._enter(Journal(journal, create=False, readonly=readonly))

    def _enter(self, journal: Journal, new: Terms | None = None) -> Self:
        """Replay the journal; write its first line if there is none."""
        self._journal, self._lock = journal, threading.Lock()
        with journal.closed_on_error():
            if journal.lines:
                self._replay(new)
            elif new is None:
                raise JournalError(f"{journal.path} is empty: no race was ever started in it")
            else:
                self._begin(new)
                journal.append(new.line())
        return self

    def _replay(self, new: Terms | None) -> None:
        """Follow the journal; a line is believed only if this race would write the same line now."""
        (first, *others), path, number = self._journal.lines, self._journal.path, 1
        try:
            there = Terms.read(first, None if new is None else new.algorithm)
            if new is not None and (said := new.differences(there, first)):
                advice = "give this race a journal of its own, or continue that one with Race.open"
                raise JournalError(f"{path} is the journal of another race ({said}): {advice}")
            self._begin(there)
            for number, line in enumerate(others, start=2):  # noqa: B007
                if self.finished:
                    raise ValueError("the race has ended")
                check_line(there, line, self.round, self._coming, self._owed, self._asked)
                self._follow(line)
        except JournalError:
            raise
        except (TypeError, ValueError) as error:
            why = f"line {number} of {path} was changed, or written by another version of ebr ({error})"
            raise JournalError(f"{why}: restore the file from a copy, or use that version") from None

    def _begin(self, terms: Terms) -> None:
        """Start the game."""
        self.terms, self.algorithm, self.arms, self._game = terms, terms.algorithm, terms.arms, terms.game()
        self.round, self.finished, self.stopped = 0, False, False
        self.recommendation: Chosen = None
        self.within: float | None = None
        self._places = {arm: place for place, arm in enumerate(self.arms)}
        self._pulls, self._totals = np.zeros(len(self.arms), dtype=np.int64), np.zeros(len(self.arms))
        self._owed = dict.fromkeys(self.arms, 0)  # rewards that were missing, and may come late
        self._rows: list[tuple[Any, ...]] = []  # of `history`, with the sum so far in place of the mean
        self._go_on()

    def _follow(self, line: Line) -> None:
        """Follow a line of the journal: a round is asked for, rewards are told, or the race is stopped."""
        if line["event"] == "ask":
            self._asked = True
            return
        if line["event"] == "stop":
            self.stopped = True
            self._end(self._standing)
            return
        counts, sums = np.zeros((1, len(self.arms)), dtype=np.int64), np.zeros((2, 1, len(self.arms)))
        for arm, (own, reported, *squares) in line["rewards"].items():
            late, sum_of_late, *late_squares = line.get("late", {}).get(arm, (0, 0.0, 0.0))
            # Late rewards are owed no longer, and as many new ones were not pulled.
            self._owed[arm] += self._coming[arm] - own - 2 * late
            count, place = own + late, self._places[arm]
            total = float(line.get("counted", {}).get(arm, reported)) + sum_of_late
            counts[0, place], sums[0, 0, place] = count, self.terms.scale.inside(total, count)
            sums[1, 0, place] = math.fsum([*squares, *late_squares])
            self._pulls[place] += count
            self._totals[place] += total
            self._rows.append((self.round, arm, count, total, self._pulls[place], self._totals[place]))
        self._go_on((counts, sums if self.terms.squares else sums[0]))

    def _go_on(self, told: tuple[IntArray, FloatArray] | None = None) -> None:
        """Begin, or go on with the counts and sums of the round that was asked for, inside the scale."""
        try:
            self._standing = next(self._game) if told is None else self._game.send(told)
        except StopIteration as end:
            self._end(end.value)
            return
        self.round, self._asked = self.round + 1, False
        pulls = zip(self.arms, self._standing.pulls[0], strict=True)
        self._coming = {arm: int(n) for arm, n in pulls if n}

    def _end(self, ending: Standing) -> None:
        chosen = tuple(self.arms[arm] for arm in np.atleast_1d(ending.arms[0]) if arm >= 0)
        self.recommendation = chosen if ending.arms.ndim > 1 else next(iter(chosen), None)
        self.finished, self._asked, self._coming = True, False, dict.fromkeys(chosen, 0)
        # What is void, or for gaps alone, says nothing of how far the arm is from the best.
        nothing = self.terms.void or self.algorithm.needs_gap
        self.within = math.inf if nothing else float(ending.within[0]) * self.terms.scale.width

    def ask(self) -> dict[str, int]:
        """How often to pull each arm in this round; arms that are out are left out. It may be asked again."""
        with self._lock:
            self._check_going_on()
            if not self._asked:
                self._record(plain_line(self.terms, "ask", self.round, self._coming))
            return dict(self._coming)

    def tell(
        self, rewards: "Told", round: int | None = None, missing: str | None = None, late: "Late" = None
    ) -> None:
        """Take in a round's rewards: for each arm asked for a list or array of them, or a tuple (count, sum).

        They are on the disk when this returns. Raises ValueError, and takes in nothing, if they are not
        exactly what was asked for, or if `round` is not the current one: so nothing counts twice.

        With `missing="at random"` there may be fewer, or none: []. `late` has rewards that earlier rounds
        lacked, all or the first that came, in place of as many of this round's. In blocks, rewards may be a
        DataFrame with the arms as columns, or an array with the columns in the order asked.

        A race that estimates how much rewards vary also takes in (count, sum, squares), the last on its scale
        (`race.terms.scale`). Without squares those of rewards in [0, 1] are taken to be as large as they can
        be; those of rewards without bounds must be told.
        """
        with self._lock:
            self._check_going_on()
            if round is not None and (told := whole("round", round, 1)) != self.round:
                why = "has been told already, and counts once" if told < self.round else "has not come yet"
                raise ValueError(f"round must be {self.round}, got {told}, which {why}")
            if not self._asked:
                raise ValueError(f"round {self.round} has not been asked for yet: ask first, then tell")
            self._record(told_line(self.terms, self.round, self._coming, self._owed, rewards, missing, late))

    def stop(self) -> None:
        """End the race with the result in `now`, if the algorithm permits it; untold rewards do not count."""
        with self._lock:
            self._check_going_on()
            self._record(plain_line(self.terms, "stop", self.round, self._coming))

    @property
    def now(self) -> tuple[str | None, float] | None:
        """Who would be recommended if the race were stopped now, and within how much of the best, in units.

        What is said after all rounds holds at once with probability 1 − δ. None where there is no stop.
        """
        if self.finished or self.algorithm.objection("stopping", self.terms.rewards):
            return None
        arm, within = int(self._standing.arms[0]), float(self._standing.within[0])
        known = math.inf if self.terms.void else within * self.terms.scale.width
        return self.arms[arm] if arm >= 0 else None, known

    def _check_going_on(self) -> None:
        self._journal.check_writable()
        if self.finished:
            raise ValueError(f"the race has ended: it recommends {named(self.recommendation)}")

    def _record(self, line: Line) -> None:
        """Write a line to the disk, then follow it; any error in between closes the race."""
        with self._journal.closed_on_error():
            self._journal.append(line)
            self._follow(line)

    @property
    def asked(self) -> dict[str, int] | None:
        """The pulls that were asked for and whose rewards have not been told yet, if there are any."""
        return dict(self._coming) if self._asked else None

    @property
    def verdict(self) -> str:
        """What the race says at its end, in a sentence; before, nothing."""
        end = self.within
        return "" if end is None else verdict(self.terms, self.recommendation, end, self.stopped)

    @property
    def survivors(self) -> list[str]:
        """The arms of the coming round (others are out, paused or accepted); at the end, the recommended."""
        return [arm for arm in self.arms if arm in self._coming]

    @property
    def history(self) -> "pd.DataFrame":
        """A row a round and arm: its pulls and their sum; pulls so far (total), mean, and bounds."""
        import pandas as pd

        kinds = {"round": int, "arm": str, "pulls": int, "sum": float, "total": int, "mean": float}
        frame = pd.DataFrame(self._rows, columns=list(kinds)).astype(kinds)  # also where there are no rows
        frame["mean"], lower, upper = self._estimates(frame["mean"].to_numpy(), frame["total"].to_numpy())
        return frame.assign(lower=lower, upper=upper)

    @property
    def intervals(self) -> "pd.DataFrame":
        """What is known of each arm now: pulls, mean, lower and upper bound, and whether it survives.

        All bounds hold at once with probability 1 − δ, also for the selected arm. NaN where there are none:
        without δ, in blocks, and where the rewards' spread is not known.
        """
        import pandas as pd

        columns = dict(zip(("pulls", "mean", "lower", "upper"), self.known, strict=True))
        frame = pd.DataFrame(columns, index=pd.Index(self.arms, name="arm"))
        return frame.assign(survives=frame.index.isin(self.survivors))

    @property
    def known(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """The numbers of `intervals` as arrays, in the order of the arms: a table takes long to load."""
        return self._pulls.copy(), *self._estimates(self._totals, self._pulls)

    def _estimates(self, totals: FloatArray, pulls: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The means of so many pulls and their bounds; NaN where there are none."""
        nothing = np.full(len(pulls), np.nan)
        mean = np.divide(totals, pulls, out=nothing.copy(), where=pulls > 0)
        intervals = intervals_of(self.terms, any("missing" in line for line in self._journal.lines))
        return mean, *((nothing, nothing) if intervals is None else intervals.around(mean, pulls))

    def plot(self, axis: "Axes | None" = None) -> "Figure":
        """Draw each arm's mean and interval, round below round, on `axis` or on a new figure."""
        from ebr.live.plots import draw_race

        return draw_race(*drawn(self), axis)

    def report(self, word: str = "pulls") -> Report:
        """Sum up the race as it stands, with your word for pulls, "subjects" for instance."""
        return report_of(self, self._journal, word)

    def close(self) -> None:
        """Let go of the journal; what was told is in it."""
        self._journal.close()

    def __reduce__(self) -> NoReturn:
        """A copy would tell the same round once more."""
        raise TypeError("a race cannot be copied or pickled: Race.open(journal, readonly=True) looks at it")

    def __exit__(self, *_: object) -> None:
        self.close()
