"""Sharp Elastic Batch Racing: Algorithm 1's race, decided by concentration of differences."""

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammainccinv, ndtri

from ebr.algorithms.game import REWARDS, Game, Known, Lots
from ebr.algorithms.survivors import Survivors
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.confidence import fixed_count_deviation
from ebr.theory.divergence import pair_divergence, pair_threshold
from ebr.validation import check_fields, count, one_of, positive

__all__ = ["SharpElasticBatchRacing"]


@dataclass(frozen=True)
class SharpElasticBatchRacing:
    """Sharp EBR: the deadline and the guarantee of Algorithm 1, for about a tenth of its pulls.

    A survivor's pull counts are fixed in advance, so in round t the *difference* of two means can be tested
    at a fixed count: an arm is dropped if it is more than a width behind the leader, and the race ends when
    the runner-up is more than the width less ε behind, or at T. The widths fall geometrically from `start` to
    ε: b_t = ⌊4σ² L_t / w_t²⌋ + 1 pulls make them narrower than w_t = w_0 (ε/w_0)^{t/T}.

    Parameters
    ----------
    deadline
        T, the number of rounds at most.
    epsilon, delta
        The recommended arm is within ε of the best with probability at least 1 − δ.
    sigma
        The rewards are σ-sub-Gaussian; ½ for rewards in [0, 1].
    rewards
        "sub-Gaussian": L_t = log((n−1)/δ_t), Chernoff's bound. "Gaussian": N(μ, σ²) rewards, L_t = z²/2
        with the normal quantile z at (n−1)/δ_t. "bounded": rewards in [0, 1], Bernoulli ones for instance;
        means are compared by a likelihood ratio, which pays where they are near 0 or 1. `None`: what
        the problem says, and "sub-Gaussian" if it says nothing.
    start
        w_0. The default, ½, is half the largest gap that there can be; 1 gives the paper's ε^{−2t/T}.
    split
        How δ is shared among the rounds: "late", δ_t ∝ 1/w_t, or "equal", δ/T each.

    Notes
    -----
    `start=1, split="equal"` has the paper's own schedule but for its constant: b_t ∝ ε^{−2t/T}.
    """

    deadline: int
    epsilon: float
    delta: float
    sigma: float = 0.5
    rewards: str | None = None
    start: float = 0.5
    split: str = "late"
    one_pull_a_round: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self, start=positive, split=("late", "equal"))
        if self.rewards is not None:
            one_of("rewards", self.rewards, REWARDS)
        if self.rewards == "bounded" and self.sigma < 0.5:
            raise ValueError(f"sigma must be at least 0.5 for bounded rewards, got {self.sigma}")

    def widths(self) -> FloatArray:
        """w_t = w_0 (ε/w_0)^{t/T}, from nearly w_0 down to ε; ε throughout where w_0 is no larger."""
        start = max(self.start, self.epsilon)
        return np.asarray(start * (self.epsilon / start) ** (np.arange(1, self.deadline + 1) / self.deadline))

    def shares(self) -> FloatArray:
        """δ_t: how much of δ each round may spend."""
        weights = 1 / self.widths() if self.split == "late" else np.ones(self.deadline)
        return np.asarray(self.delta * weights / weights.sum())

    def log_terms(self, n_arms: int, rewards: str | None = None) -> FloatArray:
        """L_t: a difference of two means exceeds its expectation by w_t with δ_t/(n−1) at most."""
        miss = self.shares() / (n_arms - 1)
        model = self.model(rewards)
        if model == "Gaussian":
            return np.asarray(np.maximum(-ndtri(miss), 0) ** 2 / 2)
        if model == "bounded":  # (1+x) e^{−x} = δ_t/(n−1); at T the sign of the difference is all that counts
            return np.asarray([*gammainccinv(2, miss[:-1]), -math.log(miss[-1])])
        return -np.log(miss)

    def pulls_by_round(self, n_arms: int, rewards: str | None = None) -> IntArray:
        """b_t = ⌊4σ² L_t / w_t²⌋ + 1, at most b_T: a survivor's pulls, all told, after each round."""
        pulls = np.floor(4 * self.sigma**2 * self.log_terms(n_arms, rewards) / self.widths() ** 2) + 1
        count(pulls.max())
        # As L_t may fall faster than w_t²: b_T pulls are enough to end the race, in whichever round.
        return np.asarray(np.minimum(np.maximum.accumulate(pulls), pulls[-1]), dtype=np.int64)

    def width(self, pulls: IntArray | int, log_term: FloatArray | float) -> FloatArray:
        """2σ √(L/b): a difference of two means of b rewards exceeds its expectation by more with e^{−L}."""
        return np.asarray(2 * self.sigma * np.sqrt(log_term / pulls))

    def deviation(self, pulls: IntArray | int, n_arms: int) -> FloatArray:
        """Hoeffding's half-width for one mean, so that all n of all T rounds are covered with 1 − δ.

        To show how well each arm is known; the race itself compares arms.
        """
        return fixed_count_deviation(pulls, self.delta / (n_arms * self.deadline), self.sigma)

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Race: yield the pulls of each round, receive the rewards' sums, return the recommended arms."""
        if self.rewards == "bounded" and rewards not in ("bounded", None):
            raise ValueError(f"rewards must not be 'bounded' for {rewards} rewards, which have no bounds")
        if rewards == "bounded" and self.rewards == "Gaussian":
            warnings.warn("the rewards are not Gaussian: the algorithm's guarantee is void", stacklevel=2)
        log_terms = self.log_terms(n_arms, rewards)
        survivors = Survivors(n_arms, replicates)
        pulled = 0
        for target, log_term in zip(self.pulls_by_round(n_arms, rewards), log_terms, strict=True):
            if target == pulled:  # nothing to ask for, and no new reward to decide anything
                continue
            survivors.add((yield survivors.pulls(target - pulled)))
            pulled = int(target)
            leader, runner_up = survivors.first / pulled, survivors.second() / pulled
            # A lone survivor, whose runner-up is −∞ behind, is certified too.
            ended = self.certified(leader, runner_up, pulled, log_term, rewards)
            survivors.drop(pulled * self.reach(leader, pulled, log_term, rewards))
            survivors.end(ended)
            if not survivors.running.any():
                break
        survivors.end(survivors.running)
        return survivors.leader

    def reach(self, leader: FloatArray, pulled: int, log_term: float, told: str | None) -> FloatArray | float:
        """How far behind the leader's mean an arm may be and survive: w_t, or where the ratio reaches L_t."""
        if self.model(told) == "bounded":
            threshold = pair_threshold(leader, log_term / pulled)
            # Where even 0 is not told from the leader nobody is dropped, however leader − 0 is rounded.
            return np.where(threshold > 0, leader - threshold, np.inf)
        return float(self.width(pulled, log_term))

    def certified(
        self, leader: FloatArray, runner_up: FloatArray, pulled: int, log_term: float, told: str | None
    ) -> BoolArray:
        """Whether no other survivor can be better than the leader by ε."""
        if self.model(told) == "bounded":
            behind = pair_divergence(leader, runner_up, self.epsilon) > log_term / pulled
            return np.isinf(runner_up) | behind
        return np.asarray(leader - runner_up > self.width(pulled, log_term) - self.epsilon)

    def model(self, told: str | None) -> str:
        """The rewards' model: the caller's, else the problem's, else the weakest.

        A σ below ½ says more of rewards than that they are bounded.
        """
        if self.rewards is None and told == "bounded" and self.sigma < 0.5:
            return "sub-Gaussian"
        return self.rewards or told or "sub-Gaussian"
