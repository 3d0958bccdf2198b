"""How far a race has come: what its lines have told, what it asks for, what is known of its arms."""

import math
from typing import TYPE_CHECKING

import numpy as np

from ebr.algorithms.game import Algorithm, Turn
from ebr.live.arm_intervals import intervals_of
from ebr.live.control import control_of, verdict
from ebr.live.course import Course
from ebr.live.journal import Line
from ebr.live.plots import draw_race
from ebr.live.rounds import Rounds
from ebr.live.rules import word_for_left_out
from ebr.live.tables import Known, Row, bounded, history_table, known
from ebr.theory.intervals import Simultaneous

if TYPE_CHECKING:  # slow to import, and a race in a terminal needs no picture
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Progress:
    """What is to be seen of a race, line by line of its journal; see `Race`, which writes the lines."""

    round: int
    finished: bool

    def _begin(self, algorithm: Algorithm, first: Line) -> None:
        """Start the coroutine, as the first line of the journal describes it."""
        self.algorithm = algorithm
        self.round = 0
        self._losses = False  # whether rewards were ever missing
        self._rounds = Rounds(first, algorithm)
        self.arms = self._rounds.arms
        self._places = {arm: place for place, arm in enumerate(self.arms)}
        self._so_far = dict.fromkeys(self.arms, (0, 0.0))  # pulls, and the sum of their rewards
        self._rows: list[Row] = []  # of the history
        self._course = Course(algorithm, first)
        self._turn(self._course.go_on())  # which refuses a control that is none of the arms
        self.control = control_of(algorithm, self.arms)

    def _follow(self, line: Line) -> None:
        """Go where a line of the journal leads: its round is asked for, or its rewards are told."""
        if line["event"] == "ask":
            self._asked = True
            return
        self._losses |= "missing" in line
        counts, sums = np.zeros((1, len(self.arms)), dtype=np.int64), np.zeros((1, len(self.arms)))
        for arm, (count, reported) in line["rewards"].items():
            total, place = float(line.get("counted", {}).get(arm, reported)), self._places[arm]
            counts[0, place], sums[0, place] = count, self._rounds.scale.inside(total, count)
            pulls, so_far = self._so_far[arm][0] + count, self._so_far[arm][1] + total
            self._so_far[arm] = pulls, so_far
            mean = so_far / pulls if pulls else math.nan
            self._rows.append((self.round, arm, count, reported, total, pulls, mean))
        self._turn(self._course.go_on(counts, sums))

    def _turn(self, turn: Turn) -> None:
        """Go on to the next round, or to the end."""
        self._asked = False
        pulls, arms = turn
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
    def within(self) -> float | None:
        """How far from the best what is recommended may be, in the rewards' units; ∞ if that is unknown."""
        inside = self._course.within
        return None if inside is None else inside * self._rounds.scale.width

    @property
    def verdict(self) -> str:
        """What the race says at its end, in a sentence."""
        asked = self.algorithm.epsilon * self._rounds.scale.width
        return "" if self.within is None else verdict(self.recommendation, self.control, self.within, asked)

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

        The bounds of all arms and rounds hold at once with probability 1 − δ, as in `intervals`. Where
        rewards are rounded, sum and mean are of what is counted, and a column more has the reported sum.
        """
        table = history_table(self._rows, self._rounds.seed is not None)
        return bounded(table, "total", self._simultaneous())

    @property
    def intervals(self) -> "pd.DataFrame":
        """What is known of each arm now: pulls, mean, lower and upper bound, and whether it survives.

        The bounds of all arms hold at once, and with those of all rounds, with probability 1 − δ, also for
        the arm that is selected (`ebr.theory.intervals.Simultaneous`): exact ones for rewards 0 and 1, KL
        ones for rewards in the support, normal ones, or Hoeffding's. They are for single arms, to be
        reported; the race itself may compare arms more sharply. NaN where the algorithm has no δ, and where
        rewards come in blocks.
        """
        import pandas as pd

        frame = pd.DataFrame(self.known._asdict(), index=pd.Index(list(self._so_far), name="arm"))
        frame["survives"] = frame.index.isin(self.survivors)
        return frame

    @property
    def known(self) -> Known:
        """The numbers of `intervals` as arrays, in the order of the arms: a table takes long to load."""
        return known(self._so_far, self._simultaneous())

    def _simultaneous(self) -> Simultaneous | None:
        """The arms' intervals; none in blocks, where σ is of differences and says nothing of an arm alone."""
        rounds = self._rounds
        if rounds.blocks:
            return None
        width, told = rounds.scale.width, rounds.rewards
        return intervals_of(self.algorithm, len(self.arms), told, rounds.support, width, self._losses)

    def plot(self, axis: "Axes | None" = None) -> "Figure":
        """Draw each arm's mean and interval, round below round, on `axis` or on a new figure."""
        left_out = word_for_left_out(self.algorithm)
        return draw_race(self.history, self.intervals["survives"], self.finished, axis, left_out)
