"""Sharp Elastic Batch Racing: Algorithm 1's race, decided by concentration of differences.

*Missing rewards.* Let the losses be independent of all rewards, those of earlier rounds included. Given the
losses, the number N_i(t) of rewards that arm i has after round t, if it is still in, is then fixed. So each
test of a pair at fixed counts (`ebr.theory.pairs`) errs with its level, δ_t/(n−1), at most. With 1 − δ no
test of "the best arm is better than arm j by as much as it is" errs, whatever j and t. A test that refutes a
difference refutes all larger ones. Hence the best arm is never dropped, as i is dropped only if some j
refutes that i is at least as good as j. An arm that refutes of all survivors that they are better by ε′ is
within ε′ of the best, even if ε′ is chosen by what was seen: at T the arm with the least ε′ is recommended.

*Futility.* That no arm is better than the control by a margin is such a test, with j the control: it costs
nothing of δ, and need be made of survivors alone, as the best arm is one of them.

*Equal counts.* Where no reward is missing the leader refutes whatever any arm refutes, and what it refutes of
the runner-up it refutes of all others: these two are all that need be compared.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebr.algorithms.arms import Survivors
from ebr.algorithms.game import FEATURES, Differences, Game, Known, LossyGame, Rng, Standing, spelled
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.pairs import Pairs, bounded_refuted, log_terms, normal_refuted, normal_width
from ebr.validation import count


@dataclass(frozen=True)
class SharpElasticBatchRacing(Differences):
    """Sharp EBR: the deadline and the guarantee of Algorithm 1, for about a tenth of its pulls.

    A survivor's pull counts are fixed in advance, so in round t the *difference* of two means can be tested
    at a fixed count: an arm is dropped if it is more than a width behind the leader, and the race ends when
    the runner-up is more than the width less ε behind, or at T. The widths fall geometrically from `start` to
    ε: b_t = ⌊4σ² L_t / w_t²⌋ + 1 pulls make them narrower than w_t = w_0 (ε/w_0)^{t/T}.

    Parameters
    ----------
    deadline, epsilon, delta, sigma
        As in `ElasticBatchRacing`.
    rewards
        "sub-Gaussian": L_t = log((n−1)/δ_t), Chernoff's bound. "Gaussian": N(μ, σ²) rewards, L_t = z²/2 with
        the normal quantile z at δ_t/(n−1). "bounded" or "Bernoulli": rewards in [0, 1]; means are compared by
        a likelihood ratio, which saves most near 0 and 1. `None`: the model of the problem, or "sub-Gaussian"
        if it has none.
    start
        w_0. The default, ½, is half the largest possible gap.
    split
        How δ is shared among the rounds: "late", δ_t ∝ 1/w_t, or "equal", δ/T each: as
        in the paper. With `start=1` the schedule is then the paper's but for its constant, b_t ∝ ε^{−2t/T}.
    k
        How many arms to find, as in `ElasticBatchRacing`. There are k(n−k) pairs of arms to tell apart.
    control, margin
        The number of the control arm, and how much better than it another arm must be to matter: ε or more,
        by default ε. Once no arm can be better by the margin the race ends with the control. With 1 − δ, if
        the control is recommended, no arm is better than it by the margin; if another arm is, it is within ε
        of the best. Where the control is dropped, the race goes on without it. Only for k = 1.

    Notes
    -----
    *The k best.* With k′ places still open, an arm is dropped if it is more than the width behind the k′-th
    of the undecided ones, and accepted if it is more than the width ahead of the next, the (k′+1)-th; the
    race ends when these two are more than the width less ε apart. An accepted arm is pulled no more.

    *Cost.* If w_0 ≥ ½ and no gap is above 1, at most 36σ² (max(w_0, ε)/ε)^{2/T} L H_k(ν) + n pulls with
    probability 1 − δ, on the event of the guarantee; L is the largest L_t.
    """

    split: str = "late"
    k: int = 1
    control: int | None = None
    margin: float | None = None
    fixed_given_losses: ClassVar[bool] = True
    __repr__ = spelled

    def __post_init__(self) -> None:
        self._check(split=("late", "equal"))
        self.set_control()

    def shares(self) -> FloatArray:
        """δ_t: the share of δ that each round may spend."""
        weights = 1 / self.widths() if self.split == "late" else np.ones(self.deadline)
        return np.asarray(self.delta * weights / weights.sum())

    def log_terms(self, n_arms: int, rewards: Known = None) -> FloatArray:
        """L_t: a difference of two means exceeds its expectation by w_t with δ_t/(n−1) at most."""
        miss, model = self.shares() / (self.k * (n_arms - self.k)), self.model(rewards)
        found = log_terms(miss, model)
        if model == "bounded":  # at T the sign of the difference is all that counts
            found[-1] = -math.log(miss[-1])
        return found

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """b_t = ⌊4σ² L_t / w_t²⌋ + 1, at most b_T: a survivor's total pulls after each round."""
        pulls = np.floor(4 * self.sigma**2 * self.log_terms(n_arms, rewards) / self.widths() ** 2) + 1
        count(pulls.max(), n_arms)
        # As L_t may fall faster than w_t²: b_T pulls are enough to end the race, in whichever round.
        return np.asarray(np.minimum(np.maximum.accumulate(pulls), pulls[-1]), dtype=np.int64)

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """Why a feature is not permitted; only what is proved is permitted."""
        if feature in ("missing", "stopping") and self.k > 1:
            return f"{FEATURES[feature]} is for k = 1, got k = {self.k}"
        return self.independent(rewards) if feature == "blocks" else None

    def width(self, pulls: IntArray | int, log_term: FloatArray | float) -> FloatArray:
        """2σ √(L/b): a difference of two means of b rewards exceeds its expectation by more with e^{−L}."""
        return np.asarray(2 * self.sigma * np.sqrt(log_term / pulls))

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Race; no reward is missing."""
        races = _Races(self, n_arms, replicates, rewards)
        for t, pulls in races.rounds():
            races.take(t, pulls, pulls, (yield pulls))
        races.end(races.running)
        return races.leader

    def play_lossy(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None
    ) -> LossyGame:
        """Race that may be stopped, and with rewards that may be missing."""
        if objection := self.objection("stopping", rewards):
            raise ValueError(objection)
        races = _Races(self, n_arms, replicates, rewards)
        for t, pulls in races.rounds():
            races.take(t, pulls, *(yield Standing(*races.standing(races.t), pulls)))
        return Standing(*races.standing(-1))

    def refuted(self, pairs: Pairs, shift: float, log_term: float, told: Known) -> BoolArray:
        """Whether a round before T refutes that the other arm is better than the leader by the shift."""
        if self.model(told) == "bounded":
            return bounded_refuted(pairs, shift, log_term)
        return normal_refuted(pairs, shift, log_term, self.sigma)

    def model(self, told: Known) -> str:
        """As in `Differences`; rewards 0 and 1 are bounded ones."""
        known = super().model(told)
        return "bounded" if known == "Bernoulli" else known


class _Races(Survivors):
    """Replicates of a race, and the rules by which arms are dropped and races end."""

    def __init__(self, race: SharpElasticBatchRacing, n_arms: int, replicates: int, told: Known) -> None:
        n_arms, replicates = race.entered(n_arms, replicates, told)
        super().__init__(n_arms, replicates, race.k)
        self.race, self.told = race, told
        self.targets: list[int] = race.pulls_by_round(n_arms, told).tolist()  # b_t
        self.log_terms = race.log_terms(n_arms, told)
        self.t = self.pulled = 0  # the last round that was played, and its b_t
        self.missing: IntArray | None = None  # how far arms fall short of it, once a reward has been missing
        self.fresh = self.running  # the replicates that have new rewards
        self.within: FloatArray = np.full(replicates, np.inf)  # of the races that have ended

    @property
    def counts(self) -> IntArray:
        """How many rewards each survivor has; a single row while all in a replicate have equally many."""
        if self.missing is None:
            return np.full((1, len(self.running)), self.pulled)
        return np.asarray(self.pulled - self.missing[self._arms])

    def rounds(self) -> Iterator[tuple[int, IntArray]]:
        """Each round's number and its pulls; rounds in which there is nothing to ask for are left out."""
        for t, target in enumerate(self.targets):
            pulls = self.pulls(target - self.counts)
            if pulls.any():
                yield t, pulls

    def take(self, t: int, asked: IntArray, counts: IntArray, sums: FloatArray) -> None:
        """Take in the rewards of a round, and decide by them."""
        self.add(sums)
        self.t, self.pulled = t, self.targets[t]
        if self.missing is not None or (counts is not asked and (counts != asked).any()):
            self.missing, self.fresh = (asked - counts).T, np.asarray(asked.any(axis=1))
        if self.race.control is not None and self.race.margin is not None:
            self._stop_for_futility(self.race.control, self.race.margin)
        self._drop_worse()
        self._stop_if_certified()

    def _stop_for_futility(self, control: int, margin: float) -> None:
        """Recommend the control where no survivor can be better than it by the margin."""
        if self.missing is None:
            own, best = self.against(control)
            pair = Pairs(own, self.counts[0], np.where(np.isfinite(own), best, 0), self.counts[0])
            futile = self._useless(pair, margin)
        else:
            futile = self._winning(self._useless(self._pairs(), margin))[self._arms == control].any(axis=0)
        self._stop(futile, margin, np.full(len(futile), control))

    def _drop_worse(self) -> None:
        """Drop arms that cannot be as good as the k-th; accept those that cannot be worse than the next."""
        if self.missing is None:
            pulled = self.counts
            self.discard(self._refuted(Pairs(self.first, pulled, self._sums, pulled), 0.0) & self.running)
            if self.race.k > 1:
                with np.errstate(invalid="ignore"):  # ∞ − ∞ in races that have ended
                    ahead = self._refuted(Pairs(self._sums, pulled, self.second(), pulled), 0.0)
                np.putmask(self._sums, ahead & self.running, np.inf)
        else:
            self.discard(self._refuted(self._pairs(), 0.0).any(axis=0) & self.fresh)

    def _stop_if_certified(self) -> None:
        """Recommend an arm, the leader if counts are equal, where no other can be better than it by ε."""
        epsilon, winners = self.race.epsilon, None
        if self.missing is None:  # the k-th, and the next, if there is one
            second, pulled = self.second(), self.counts[0]
            ended = np.isinf(second) | self._refuted(Pairs(self.first, pulled, second, pulled), epsilon)
        else:
            winning = self._winning(self._refuted(self._pairs(), epsilon))
            means = np.where(winning, self._sums, -np.inf) / np.maximum(self.counts, 1)
            ended, winners = np.asarray(winning.any(axis=0)), self._arms[means.argmax(axis=0)]
        self._stop(ended, epsilon, winners)

    def _stop(self, ended: BoolArray, within: float, arms: IntArray | None = None) -> None:
        ending = self.running & ended & self.fresh
        self.within[ending] = within
        self.end(ending, arms)

    def standing(self, t: int) -> tuple[IntArray, FloatArray]:
        """The arms, and how far from the best each may be; for running races the least ε′, with L of round t.

        ε′ = max_j μ̂_j − μ̂_i + σ √(2L (1/N_i + 1/N_j)).
        """
        if not self.pulled:
            return np.full_like(self.leader, -1), self.within
        even = self.missing is None
        pairs = Pairs(self.first, self.counts[0], self.second(), self.counts[0]) if even else self._pairs()
        leader, other = pairs.means
        within = other - leader + normal_width(pairs, self.log_terms[t], self.race.sigma)
        if even:
            best = self._leading(self._sums)
        else:
            heard = self._alive & (self.counts > 0)
            within = np.where(heard, np.fmax.reduce(within, axis=1, initial=-np.inf), np.inf)
            best = np.where(heard.any(axis=0), self._arms[within.argmin(axis=0)], -1)
            within = np.where((self._alive & ~heard).any(axis=0), np.inf, within.min(axis=0))
        within = np.maximum(within, self.race.epsilon)
        return np.where(self.running, best, self.leader), np.where(self.running, within, self.within)

    def _refuted(self, pairs: Pairs, shift: float) -> BoolArray:
        """Whether it is refuted that the other is better than the leader by the shift."""
        if self.t < len(self.targets) - 1:
            return self.race.refuted(pairs, shift, self.log_terms[self.t], self.told)
        return normal_refuted(pairs, shift, self.log_terms[-1], self.race.sigma)  # the sign decides

    def _useless(self, pairs: Pairs, shift: float) -> BoolArray:
        """The same of a control. Two arms with all b_T rewards also have round T's test."""
        complete = np.minimum(pairs.leader_pulls, pairs.other_pulls) == self.targets[-1]
        sign = normal_refuted(pairs, shift, self.log_terms[-1], self.race.sigma)
        return np.asarray(self._refuted(pairs, shift) | (complete & sign))

    def _winning(self, refuted: BoolArray) -> BoolArray:
        """Which survivors refute of all others that they are better."""
        return np.asarray(self._alive & (refuted.sum(axis=1) == self.size() - 1))

    def _pairs(self) -> Pairs:
        """All pairs of survivors that have rewards: leaders × others × replicates, NaN for no pair."""
        sums = np.where(self._alive & self.running & (self.counts > 0), self._sums, np.nan)
        others = np.where(np.eye(len(sums), dtype=bool)[:, :, None], np.nan, sums)
        counts = np.maximum(self.counts, 1)
        return Pairs(sums[:, None], counts[:, None], others, counts)
