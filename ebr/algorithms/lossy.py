"""Sharp EBR's tests of pairs of arms: where rewards go missing, and against a control.

*Missing rewards.* Let the losses be independent of all rewards, those of earlier rounds included. Given the
losses, the number N_i(t) of rewards that arm i has after round t, if it is still in, is then fixed. So a test
of a pair of arms at fixed, unequal counts (`ebr.theory.pairs`) errs with its level at most, and the event on
which sharp EBR rests has probability 1 − δ as before: no test of "the best arm is better than arm j by as
much as it is" errs, whatever j and t, each at level δ_t/(n−1). A test that refutes a difference refutes all
larger ones. Hence, on the event, the best arm is never dropped, as i is dropped only if some j refutes that i
is at least as good as j; and an arm that refutes of all survivors that they are better by ε′ is within ε′ of
the best, also if ε′ is chosen by what was seen: at T the race recommends the arm for which the least such ε′
is smallest. Each round asks for b_t − N_i rewards of a survivor: what the schedule says, and what is still
owed.

*Futility.* Whether any arm can still be better than the control by a margin is such a test, with j the
control: it holds on the same event, and costs nothing of δ. As the best arm is never dropped, survivors alone
need be tested.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ebr.algorithms.game import Ending, LossyGame, Standing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.pairs import Pairs, bounded_refuted, normal_refuted

Test = Callable[[Pairs, float], BoolArray]


@dataclass(frozen=True)
class PairTests:
    """The tests of pairs of arms: numbers that are fixed before the first reward.

    Attributes
    ----------
    bounded, sigma
        Whether the rewards are taken to lie in [0, 1], and their σ.
    pulls, miss, log_terms
        b_t, δ_t/(n−1) and L_t of each round.
    epsilon, control, margin
        The algorithm's.
    """

    bounded: bool
    sigma: float
    pulls: IntArray
    miss: FloatArray
    log_terms: FloatArray
    epsilon: float
    control: int | None
    margin: float | None

    def refuted(self, t: int, pairs: Pairs, shift: float) -> BoolArray:
        """Whether it is refuted, in round t from 0, that the other is better than the leader by the shift."""
        if self.bounded and t < len(self.pulls) - 1:
            return bounded_refuted(pairs, shift, np.full(len(pairs.leader), self.miss[t]))
        return normal_refuted(pairs, shift, self.log_terms[t], self.sigma)

    def futile(self, t: int, pairs: Pairs, shift: float) -> BoolArray:
        """The same with the control as leader. Two arms with all b_T rewards also have round T's test."""
        most = self.pulls[-1]
        complete = (pairs.leader_pulls == most) & (pairs.other_pulls == most)
        last = normal_refuted(pairs, shift, self.log_terms[-1], self.sigma)
        return np.asarray(self.refuted(t, pairs, shift) | (complete & last))


def lossy_play(tests: PairTests, n_arms: int, replicates: int) -> LossyGame:
    """Race with rewards that may be missing."""
    standing, last = _Standing(n_arms, replicates), 0
    for t, target in enumerate(tests.pulls.tolist()):
        asked = standing.owed(target)
        if not asked.any():
            continue
        counts, sums = yield Standing(asked, *standing.now(tests, last))
        standing.counts += counts
        standing.sums += sums
        standing.decide(tests, t, np.asarray(asked.any(axis=1)))
        last = t
        if not standing.running.any():
            break
    return Ending(*standing.now(tests, -1))


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
        """How many rewards each survivor is short of the target."""
        return np.asarray(np.maximum(target - self.counts, 0) * (self.alive & self.running[:, None]))

    def decide(self, tests: PairTests, t: int, told: BoolArray) -> None:
        """Drop arms, and end the races in which an arm is certified, among those that played round t."""
        refuted, epsilon = partial(tests.refuted, t), tests.epsilon
        if tests.control is not None and tests.margin is not None:
            futile = self._certified(partial(tests.futile, t), told, tests.margin)[:, tests.control]
            self._end(futile, np.full(len(told), tests.control), tests.margin)
        self.alive &= ~self._refuted(refuted, told, 0.0).any(axis=1)
        certified = self._certified(refuted, told, epsilon)
        best = np.where(certified, self._means(), -np.inf).argmax(axis=1)
        self._end(np.asarray(certified.any(axis=1)), best, epsilon)

    def now(self, tests: PairTests, t: int) -> tuple[IntArray, FloatArray]:
        """The arms, and how far from the best each may be; for running races the least ε′, with L of round t.

        ε′ = max_j μ̂_j − μ̂_i + σ √(2L (1/N_i + 1/N_j)).
        """
        heard, means = self.alive & (self.counts > 0), self._means()
        inverse = 1 / np.maximum(self.counts, 1)
        width = tests.sigma * np.sqrt(2 * tests.log_terms[t] * (inverse[:, :, None] + inverse[:, None, :]))
        rivals = self._rivals(heard)
        behind = np.zeros(rivals.shape)
        np.subtract(means[:, None, :], means[:, :, None], out=behind, where=rivals)
        least = np.where(rivals, behind + width, -np.inf).max(axis=2)
        least = np.where(heard, least, np.inf)
        best = np.where(heard.any(axis=1), least.argmin(axis=1), -1)
        silent = (self.alive & ~heard).any(axis=1)
        within = np.maximum(least.min(axis=1), tests.epsilon)
        within = np.where(silent, np.inf, within)
        return np.where(self.running, best, self.arms), np.where(self.running, within, self.within)

    def _means(self) -> FloatArray:
        """The survivors' means; −∞ for other arms, and for arms without rewards."""
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
        """The pairs of two different arms among these: replicates × arms × arms."""
        return np.asarray(arms[:, :, None] & arms[:, None, :] & ~np.eye(arms.shape[1], dtype=bool))

    def _end(self, ended: BoolArray, arms: IntArray, within: FloatArray | float) -> None:
        ending = self.running & ended
        self.arms[ending] = arms[ending]
        self.within[ending] = np.broadcast_to(within, ending.shape)[ending]
        self.running[ending] = False
