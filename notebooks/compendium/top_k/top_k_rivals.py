"""Who races for the k best (notebook 14): Algorithm 1, sharp EBR, kδER, one round, a sequential oracle."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ebr.algorithms.arms import Survivors
from ebr.algorithms.baselines import DeltaElimination
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm, Game, Known, Rng, check_places
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.confidence import sequential_deviation
from ebr.validation import check_fields, whole

ROUNDING = 1e-6  # sweeps: far above the rounding error of the look-ahead, which asks for one fewer near it


class _Undecided(Survivors):
    """Survivors whose largest sum is asked for, too."""

    def best(self) -> FloatArray:
        """The largest sum of an undecided arm; −∞ where there is none."""
        return np.asarray(np.where(self._alive, self._sums, -np.inf).max(axis=0))


@dataclass(frozen=True)
class SequentialTopK(Algorithm):
    """The paper's sequential oracle with accept and reject, T = ∞.

    Undecided arms are pulled in turn. With k′ places open, an arm is rejected if its upper bound is below the
    k′-th best lower bound + η and accepted if its lower bound is above the (k′+1)-th best upper bound − η,
    η = ε/n; the race ends when the k′-th lower bound is at least the (k′+1)-th upper bound less ε. The
    intervals of Jun et al. (AISTATS 2016) cover at all times with 1 − δ. Then at most n − k rounds lose η
    each, and the end ε: what is proved is 2ε, as for k = 1. It is a yardstick of pulls.

    The sweeps that are certain to decide nothing are asked for at once, as in `ebr.SequentialRacing`: in h
    more sweeps every sum grows by 0 to h, so its distance from the k′-th and from the (k′+1)-th by h at most.
    It decides only when the sweeps have grown by `patience`. That costs at most this share of pulls and saves
    nearly all of the time. With k = 1 and no patience it is `ebr.SequentialRacing`.
    """

    epsilon: float
    delta: float
    k: int = 1
    sigma: float = 0.5
    patience: float = 0.005
    deadline = None
    one_pull_a_round: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, k=partial(whole, at_least=1))

    def deviation(self, pulls: IntArray | FloatArray | int, n_arms: int) -> FloatArray:
        """The half-width D of the confidence interval around the mean of so many rewards."""
        return sequential_deviation(pulls, n_arms, self.delta, self.sigma)

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Race sweep by sweep, asking ahead if rewards lie in [0, 1]."""
        check_places(self.k, n_arms)
        slack = self.epsilon / n_arms
        survivors = _Undecided(n_arms, replicates, self.k)
        sweeps, ahead = np.zeros(replicates), np.ones(replicates, dtype=np.int64)
        while survivors.running.any():
            survivors.add((yield survivors.pulls(ahead)))
            sweeps += ahead * survivors.running
            width = 2 * sweeps * self.deviation(sweeps, n_arms)  # W
            reach = np.maximum(width - slack * sweeps, 0)
            first, second = survivors.first, survivors.second()
            survivors.drop(reach)
            if self.k > 1:
                survivors.accept(reach)
            survivors.end(first - second >= width - self.epsilon * sweeps)
            if rewards in IN_UNIT:
                running = survivors.running
                widest = np.maximum(first - survivors.last(), survivors.best() - second)
                gaps = np.where(running, (widest, first - second), 0)
                undecided = np.minimum(
                    _certain_sweeps(sweeps, width, gaps[0], slack),
                    _certain_sweeps(sweeps, width, gaps[1], self.epsilon),
                )
                undecided = np.maximum(undecided - ROUNDING, self.patience * sweeps - 1)
                ahead = 1 + np.maximum(undecided, 0).astype(np.int64)
        return survivors.leader


def _certain_sweeps(sweeps: FloatArray, width: FloatArray, gap: FloatArray, slack: float) -> FloatArray:
    """How many more sweeps leave gap + h below W(s+h) − slack·(s+h): Notes of `ebr.SequentialRacing`."""
    square = sweeps * (1 + slack)
    growth = (width + np.sqrt(width**2 + 4 * square * (sweeps - gap))) / (2 * square)
    return np.asarray(sweeps * (growth**2 - 1))


TopMaker = Callable[[int, float, float, int], Algorithm]
# How each is made from T, ε, δ and k; "passive" is Algorithm 1 with T = 1, "one round" sharp EBR with T = 1.
RACERS: dict[str, TopMaker] = {
    "EBR": lambda t, e, d, k: ElasticBatchRacing(t, e, d, k=k),
    "kδER": lambda t, e, d, k: DeltaElimination(t, e, d, k=k),
    "sequential": lambda t, e, d, k: SequentialTopK(e, d, k),
    "passive": lambda t, e, d, k: ElasticBatchRacing(1, e, d, k=k),
    "sharp": lambda t, e, d, k: SharpElasticBatchRacing(t, e, d, rewards="sub-Gaussian", k=k),
    "sharp, [0, 1]": lambda t, e, d, k: SharpElasticBatchRacing(t, e, d, k=k),
    "sharp, T = 1": lambda t, e, d, k: SharpElasticBatchRacing(1, e, d, rewards="sub-Gaussian", k=k),
}
