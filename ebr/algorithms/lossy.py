"""Sharp EBR where rewards go missing for reasons that have nothing to do with any reward.

Let the losses be independent of all rewards, those of earlier rounds included. Given the losses, the number
N_i(t) of rewards that arm i has after round t, if it is still in, is then fixed, and they are rewards like
others. So a test of a pair of arms at fixed, unequal counts (`ebr.theory.pairs`) errs with its level at most,
and the event on which sharp EBR rests has probability 1 − δ as before: no test of "the best arm is better
than arm j by as much as it is" errs, whatever j and t, each at level δ_t/(n−1). A test that refutes a
difference refutes every larger one. Hence, on the event, the best arm is never dropped, as i is dropped only
if some j refutes that i is at least as good as j; and an arm that refutes of all survivors that they are
better by ε′ is within ε′ of the best, also if ε′ is chosen by what was seen: at T the race recommends the arm
for which the least such ε′ is smallest.

Each round asks for b_t − N_i rewards of a survivor: what the schedule says, and what is still owed. Where
nothing is lost all is decided as by `SharpElasticBatchRacing.play`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ebr.algorithms.futility import check_control_among
from ebr.algorithms.game import Algorithm, Ending, Known, LossyGame, check_known, entered
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.pairs import Pairs, bounded_refuted, normal_refuted


class Tested(Algorithm, Protocol):
    """What is asked of a race beside: how its tests share δ."""

    @property
    def deadline(self) -> int:
        """T."""

    @property
    def rewards(self) -> str | None:
        """What it is to take the rewards for."""

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """b_t."""

    def shares(self) -> FloatArray:
        """δ_t."""

    def log_terms(self, n_arms: int, rewards: Known = None) -> FloatArray:
        """L_t."""


Test = Callable[[Pairs, float], BoolArray]


def lossy_play(algorithm: Tested, n_arms: int, replicates: int = 1, *, rewards: Known = None) -> LossyGame:
    """Race with rewards that may be missing."""
    n_arms, replicates = entered(n_arms, replicates, rewards)
    if objection := algorithm.objection("missing", rewards):
        raise ValueError(objection)
    check_known(algorithm.rewards, rewards)
    check_control_among(algorithm.control, n_arms)
    standing = _Standing(n_arms, replicates)
    targets = algorithm.pulls_by_round(n_arms, rewards).tolist()
    for t, target in enumerate(targets):
        asked = standing.owed(target)
        if not asked.any():
            continue
        counts, sums = yield asked
        standing.counts += counts
        standing.sums += sums
        standing.decide(_Tests(algorithm, n_arms, rewards, t, targets[-1]), np.asarray(asked.any(axis=1)))
        if not standing.running.any():
            break
    standing.close(algorithm, float(algorithm.log_terms(n_arms, rewards)[-1]))
    return Ending(standing.arms, standing.within)


@dataclass(frozen=True)
class _Tests:
    """The tests of a round, t from 0, for pairs of arms that have n − 1 like them; b_T, the most rewards."""

    algorithm: Tested
    n_arms: int
    rewards: Known
    t: int
    most: int

    def refuted(self, pairs: Pairs, shift: float) -> BoolArray:
        """Whether it is refuted that the other arm is better than the leader by the shift or more."""
        algorithm = self.algorithm
        if algorithm.model(self.rewards) == "bounded" and self.t < algorithm.deadline - 1:
            miss = np.full(len(pairs.leader), algorithm.shares()[self.t] / (self.n_arms - 1))
            return bounded_refuted(pairs, shift, miss)
        return self._by_width(pairs, shift, self.t)

    def futile(self, pairs: Pairs, shift: float) -> BoolArray:
        """The same of the control; arms that have all their rewards have those of round T's test, too."""
        complete = (pairs.leader_pulls == self.most) & (pairs.other_pulls == self.most)
        return np.asarray(self.refuted(pairs, shift) | (complete & self._by_width(pairs, shift, -1)))

    def _by_width(self, pairs: Pairs, shift: float, t: int) -> BoolArray:
        log_term = self.algorithm.log_terms(self.n_arms, self.rewards)[t]
        return normal_refuted(pairs, shift, log_term, self.algorithm.sigma)


class _Standing:
    """How the races stand: replicates × arms."""

    def __init__(self, n_arms: int, replicates: int) -> None:
        shape = (replicates, n_arms)
        self.counts: IntArray = np.zeros(shape, dtype=np.int64)
        self.sums: FloatArray = np.zeros(shape)
        self.alive: BoolArray = np.ones(shape, dtype=bool)
        self.running: BoolArray = np.ones(replicates, dtype=bool)
        self.arms: IntArray = np.full(replicates, -1)
        self.within: FloatArray = np.full(replicates, np.inf)

    def owed(self, target: int) -> IntArray:
        """What each survivor still lacks of so many rewards."""
        return np.asarray(np.maximum(target - self.counts, 0) * (self.alive & self.running[:, None]))

    def decide(self, tests: _Tests, told: BoolArray) -> None:
        """Drop, and end the races in which an arm is certified, among those that this round was of."""
        algorithm = tests.algorithm
        if algorithm.control is not None and algorithm.margin is not None:
            futile = self._certified(tests.futile, told, algorithm.margin)[:, algorithm.control]
            self._end(futile, np.full(len(told), algorithm.control), algorithm.margin)
        self.alive &= ~self._refuted(tests.refuted, told, 0.0).any(axis=1)
        certified = self._certified(tests.refuted, told, algorithm.epsilon)
        best = np.where(certified, self._means(), -np.inf).argmax(axis=1)
        self._end(np.asarray(certified.any(axis=1)), best, algorithm.epsilon)

    def close(self, algorithm: Tested, log_term: float) -> None:
        """End what still runs with the arm of the least ε′, of those that have a reward; T has this L.

        ε′ = max_j μ̂_j − μ̂_i + σ √(2L (1/N_i + 1/N_j)).
        """
        heard, means = self.alive & (self.counts > 0), self._means()
        inverse = 1 / np.maximum(self.counts, 1)
        width = algorithm.sigma * np.sqrt(2 * log_term * (inverse[:, :, None] + inverse[:, None, :]))
        rivals = self._rivals(heard)
        behind = np.zeros(rivals.shape)
        np.subtract(means[:, None, :], means[:, :, None], out=behind, where=rivals)
        least = np.where(rivals, behind + width, -np.inf).max(axis=2)
        least = np.where(heard, least, np.inf)
        best = np.where(heard.any(axis=1), least.argmin(axis=1), -1)
        silent = (self.alive & ~heard).any(axis=1)
        self._end(
            self.running, best, np.where(silent, np.inf, np.maximum(least.min(axis=1), algorithm.epsilon))
        )

    def _means(self) -> FloatArray:
        """The survivors'; −∞ for others, and where there is no reward."""
        heard = self.alive & (self.counts > 0)
        means: FloatArray = np.full(self.sums.shape, -np.inf)
        return np.asarray(np.divide(self.sums, self.counts, out=means, where=heard))

    def _certified(self, test: Test, told: BoolArray, shift: float) -> BoolArray:
        """Whether a survivor refutes of all others that they are better by the shift."""
        refuted = self._refuted(test, told, shift)
        alone = (refuted | ~self._rivals(self.alive)).all(axis=2)
        return np.asarray(alone & self.alive & (told & self.running)[:, None])

    def _refuted(self, test: Test, told: BoolArray, shift: float) -> BoolArray:
        """Which survivors (second axis) refute of which others (third) that they are better by the shift."""
        rivals = self._rivals(self.alive & (self.counts > 0)) & (told & self.running)[:, None, None]
        race, leader, other = np.nonzero(rivals)
        sums, counts = self.sums, self.counts
        pairs = Pairs(sums[race, leader], counts[race, leader], sums[race, other], counts[race, other])
        rivals[race, leader, other] = test(pairs, shift)
        return rivals

    @staticmethod
    def _rivals(arms: BoolArray) -> BoolArray:
        """Pairs of two different ones of these arms: replicates × arms × arms."""
        return np.asarray(arms[:, :, None] & arms[:, None, :] & ~np.eye(arms.shape[1], dtype=bool))

    def _end(self, ended: BoolArray, arms: IntArray, within: FloatArray | float) -> None:
        ending = self.running & ended
        self.arms[ending] = arms[ending]
        self.within[ending] = np.broadcast_to(within, ending.shape)[ending]
        self.running[ending] = False
