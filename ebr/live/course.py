"""The course of a race: its algorithm's game and, once rewards are missing, the game that allows for that."""

import warnings

import numpy as np

from ebr.algorithms.game import Algorithm, LossyGame, Turn, advance
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import FloatArray, IntArray
from ebr.live.journal import Line
from ebr.live.rules import as_begun, game_of


class Course:
    """Where a race goes: it is told a round's counts and sums, inside the scale, and says what comes next.

    Attributes
    ----------
    within
        How far from the best what is recommended may be, inside the scale; None before the end.
    """

    def __init__(self, algorithm: Algorithm, first: Line) -> None:
        self.within: float | None = None
        self._algorithm, self._known = as_begun(algorithm, first)
        self._n_arms = len(first["arms"])
        self._game = game_of(algorithm, first)
        self._lossy: LossyGame | None = None
        self._rounds: list[tuple[IntArray, IntArray, FloatArray]] = []  # what was asked, what came, its sums
        self._asked: IntArray = np.zeros((1, self._n_arms), dtype=np.int64)

    def go_on(self, counts: IntArray | None = None, sums: FloatArray | None = None) -> Turn:
        """Begin, or go on with the counts and sums of the round that was asked for."""
        if counts is None or sums is None:
            return self._turned(advance(self._game))
        self._rounds.append((self._asked, counts, sums))
        if self._lossy is None and (counts == self._asked).all():
            return self._turned(advance(self._game, sums))
        if self._lossy is None:
            self._lossy = self._caught_up()
        try:
            return self._turned(Turn(self._lossy.send((counts, sums)), None))
        except StopIteration as end:
            self.within = float(end.value.within[0])
            return Turn(None, end.value.arms)

    def _turned(self, turn: Turn) -> Turn:
        if turn.pulls is not None:
            self._asked = turn.pulls
        elif turn.arms is not None and self.within is None:
            self.within = self._promised(turn.arms)
        return turn

    def _promised(self, arms: IntArray) -> float:
        """ε; the margin where the control is recommended."""
        algorithm = self._algorithm
        if isinstance(algorithm, SharpElasticBatchRacing) and algorithm.control == arms.flat[0]:
            return algorithm.margin or algorithm.epsilon
        return algorithm.epsilon

    def _caught_up(self) -> LossyGame:
        """The lossy game, told all rounds but this one; with nothing missing it asks as the other did."""
        assert isinstance(self._algorithm, SharpElasticBatchRacing)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the game before has warned
            game = self._algorithm.play_lossy(self._n_arms, rewards=self._known)
            pulls = next(game)
        for asked, counts, sums in self._rounds[:-1]:
            if not np.array_equal(pulls, asked):
                raise ValueError(f"with rewards missing {pulls[0].tolist()} would have been asked for")
            pulls = game.send((counts, sums))
        return game
