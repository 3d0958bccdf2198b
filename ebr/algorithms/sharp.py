"""Sharp Elastic Batch Racing: Algorithm 1's race, decided by concentration of differences."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebr.algorithms.arms import Survivors
from ebr.algorithms.game import (
    FEATURES,
    Differences,
    Game,
    Known,
    LossyGame,
    Lots,
    check_known,
    check_places,
    entered,
    lossless,
    spelled,
)
from ebr.algorithms.lossy import PairTests, lossy_play
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.divergence import erlang_quantile, pair_divergence, pair_threshold
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
        w_0. The default, ½, is half the largest possible gap; 1 gives the paper's ε^{−2t/T}.
    split
        How δ is shared among the rounds: "late", δ_t ∝ 1/w_t, or "equal", δ/T each.
    k
        How many arms to find, as in `ElasticBatchRacing`. There are k(n−k) pairs of arms to tell apart.
    control, margin
        The number of the control arm, and how much better than it another arm must be to matter: at least ε,
        which is the default. The race ends early and recommends the control once no arm can be better by the
        margin. Only for k = 1.

    Notes
    -----
    *Futility* costs nothing of δ (`ebr.algorithms.lossy`). With probability 1 − δ: if the control is
    recommended, no arm is better than it by the margin; if another arm is, it is within ε of the best. Where
    the control is dropped, the race goes on without it.

    *The k best.* With k′ places still open, an arm is dropped if it is more than the width behind the k′-th
    of the undecided ones, and accepted if it is more than the width ahead of the next, the (k′+1)-th; the
    race ends when these two are more than the width less ε apart. An accepted arm is pulled no more.

    *Cost.* If w_0 ≥ ½ and no gap is above 1, at most 36σ² (max(w_0, ε)/ε)^{2/T} L H_k(ν) + n pulls with
    probability 1 − δ, on the event of the guarantee; L is the largest L_t.

    `start=1, split="equal"` has the paper's own schedule but for its constant: b_t ∝ ε^{−2t/T}.
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
        miss = self.shares() / (self.k * (n_arms - self.k))
        model = self.model(rewards)
        if model == "Gaussian":
            from scipy.special import ndtri

            return np.asarray(np.maximum(-ndtri(miss), 0) ** 2 / 2)
        if model == "bounded":  # (1+x) e^{−x} = δ_t/(n−1); at T the sign of the difference is all that counts
            return np.asarray([*erlang_quantile(miss[:-1]), -math.log(miss[-1])])
        return -np.log(miss)

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """b_t = ⌊4σ² L_t / w_t²⌋ + 1, at most b_T: a survivor's total pulls after each round."""
        pulls = np.floor(4 * self.sigma**2 * self.log_terms(n_arms, rewards) / self.widths() ** 2) + 1
        count(pulls.max(), n_arms)
        # As L_t may fall faster than w_t²: b_T pulls are enough to end the race, in whichever round.
        return np.asarray(np.minimum(np.maximum.accumulate(pulls), pulls[-1]), dtype=np.int64)

    def gone(self, n_arms: int, rewards: Known = None) -> FloatArray:
        """2w̄_t, twice the width of each round's test."""
        return 2 * self.width(self.pulls_by_round(n_arms, rewards), self.log_terms(n_arms, rewards))

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """Why a feature is not permitted; only what is proved is permitted."""
        if feature in ("missing", "stopping") and self.k > 1:
            return f"{FEATURES[feature]} is for k = 1, got k = {self.k}"
        if feature == "blocks" and (model := self.rewards or rewards) in IN_UNIT:
            return (
                "rewards must be 'sub-Gaussian' or 'Gaussian' in blocks, as the test for those in [0, 1]"
                f" needs independent arms, got {model!r}"
            )
        return None

    def width(self, pulls: IntArray | int, log_term: FloatArray | float) -> FloatArray:
        """2σ √(L/b): a difference of two means of b rewards exceeds its expectation by more with e^{−L}."""
        return np.asarray(2 * self.sigma * np.sqrt(log_term / pulls))

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Race: yield the pulls of each round, receive the rewards' sums, return the recommended arms."""
        if self.control is not None:
            return (yield from lossless(self.play_lossy(n_arms, replicates, rewards=rewards)))
        tests, n_arms, replicates = self._begun(n_arms, replicates, rewards)
        survivors = Survivors(n_arms, replicates, self.k)
        pulled = 0
        for target, log_term in zip(tests.pulls, tests.log_terms, strict=True):
            if target == pulled:  # nothing to ask for, and no new reward to decide anything
                continue
            survivors.add((yield survivors.pulls(target - pulled)))
            pulled = int(target)
            # The k-th of them, and the next.
            leader, runner_up = survivors.first / pulled, survivors.second() / pulled
            # A lone survivor, whose runner-up is −∞ behind, is certified too.
            ended = self.certified(leader, runner_up, pulled, log_term, rewards)
            survivors.drop(pulled * self.reach(leader, pulled, log_term, rewards))
            if self.k > 1:  # to be ahead of the next is to be behind it in failures
                failing = np.clip(1 - runner_up, 0, 1)
                survivors.accept(pulled * self.reach(failing, pulled, log_term, rewards))
            survivors.end(ended)
            if not survivors.running.any():
                break
        survivors.end(survivors.running)
        return survivors.leader

    def play_lossy(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> LossyGame:
        """Race that may be stopped, and with rewards that may be missing: `ebr.algorithms.lossy`."""
        if objection := self.objection("stopping", rewards):
            raise ValueError(objection)
        return lossy_play(*self._begun(n_arms, replicates, rewards))

    def _begun(self, n_arms: int, replicates: int, rewards: Known) -> tuple[PairTests, int, int]:
        """The tests, arms and replicates of a game; ValueError if it cannot be played."""
        n_arms, replicates = entered(n_arms, replicates, rewards)
        check_known(self.rewards, rewards)
        check_places(self.k, n_arms)
        self.check_control(n_arms)
        bounded, miss = self.model(rewards) == "bounded", self.shares() / (n_arms - 1)
        rounds = self.pulls_by_round(n_arms, rewards), miss, self.log_terms(n_arms, rewards)
        tests = PairTests(bounded, self.sigma, *rounds, self.epsilon, self.control, self.margin)
        return tests, n_arms, replicates

    def reach(self, leader: FloatArray, pulled: int, log_term: float, told: Known) -> FloatArray | float:
        """How far behind the leader's mean an arm may be and survive: w_t, or where the ratio reaches L_t."""
        if self.model(told) == "bounded":
            threshold = pair_threshold(leader, log_term / pulled)
            # Where even 0 is not told from the leader nobody is dropped, however leader − 0 is rounded.
            return np.where(threshold > 0, leader - threshold, np.inf)
        return float(self.width(pulled, log_term))

    def certified(
        self, leader: FloatArray, runner_up: FloatArray, pulled: int, log_term: float, told: Known
    ) -> BoolArray:
        """Whether no other survivor can be better than the leader by ε."""
        if self.model(told) == "bounded":
            behind = pair_divergence(leader, runner_up, self.epsilon) > log_term / pulled
            return np.isinf(runner_up) | behind
        return np.asarray(leader - runner_up > self.width(pulled, log_term) - self.epsilon)

    def model(self, told: Known) -> str:
        """As in `Differences`; rewards 0 and 1 are bounded ones."""
        known = super().model(told)
        return "bounded" if known == "Bernoulli" else known
