"""Certified Elastic Batch Racing: looks and boundaries whose failures are computed."""

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from ebr.algorithms.arms import Survivors
from ebr.algorithms.game import (
    Defaults,
    Ending,
    Game,
    Known,
    LossyGame,
    Lots,
    Standing,
    advance,
    check_known,
    checked_control,
    entered,
    spelled,
)
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.models import IN_UNIT, REWARDS
from ebr.theory.certificates import Boundaries, Certificate, certificate
from ebr.theory.confidence import fixed_count_deviation
from ebr.validation import MOST_PULLS, Rule, check_fields, in_unit_interval, positive, shown, whole

MOST_TOGETHER = 1_000  # arms: as many mixtures of near and far ones are bounded
LEAST_DELTA = 1e-9  # smaller ones need all of a law's tails
MOST_EXACT = 5_000  # 0/1 rewards of an arm: beyond it the law of a pair takes minutes


def _listed(rule: Rule, name: str, values: Any) -> tuple[Any, ...]:
    """Numbers by a rule, in a tuple."""
    if not isinstance(values, tuple | list):
        raise ValueError(f"{name} must be a tuple of numbers, got {shown(values)}")
    return tuple(rule(name, value) for value in values)


@dataclass(frozen=True)
class CertifiedElasticBatchRacing(Defaults):
    """Race with looks b_1 < … < b_T and boundaries for which a certificate was computed.

    All survivors have b_t rewards at look t. An arm is dropped if the leader is ahead of it by more than
    π c_t standard deviations of the difference of two arms. The race ends with the leader when ε more than
    its lead exceeds c_t of them against all other survivors, or at b_T, ties by lot.

    The looks and boundaries of `ebr.certified_design` are certified; of others `certificate` says whether
    they are. The theorem is in `ebr.theory.certificates`: with 1 − δ the recommended arm is within ε of the
    best.

    Parameters
    ----------
    n_arms
        How many arms there may be: the certificate is for so many, and holds for fewer.
    looks, boundaries
        b_1 … b_T and c_1 … c_{T−1}.
    epsilon, delta, sigma
        As in `ElasticBatchRacing`.
    rewards
        "Bernoulli": 0 and 1. "Gaussian": N(μ, σ²).
    pruning
        π, for dropping alone.
    shifts
        Of 0/1 rewards: margins, beside ε, for which the certificate holds, too.
    control, margin
        As in `SharpElasticBatchRacing`: a control is recommended if ε, or the margin, more than its lead
        exceeds c_t standard deviations. The margin must be one of the shifts, or ε.
    """

    n_arms: int
    looks: tuple[int, ...]
    boundaries: tuple[float, ...]
    epsilon: float
    delta: float
    sigma: float = 0.5
    rewards: str = "Bernoulli"
    pruning: float = 1.0
    shifts: tuple[float, ...] = ()
    control: int | None = None
    margin: float | None = None
    fixed_counts: ClassVar[bool] = True
    __repr__ = spelled

    def __post_init__(self) -> None:
        pulls = partial(whole, at_least=1, at_most=MOST_PULLS)
        rules: dict[str, Rule] = {"looks": pulls, "boundaries": positive, "shifts": in_unit_interval}
        tuples = {name: partial(_listed, rule) for name, rule in rules.items()}
        check_fields(self, rewards=REWARDS, pruning=positive, **tuples)
        control, margin = checked_control(self.control, self.margin, self.epsilon, 1)
        vars(self).update(control=control, margin=margin)
        if control is not None:
            whole("control", control, 0, self.n_arms - 1)
        if not self.looks or any(late <= early for early, late in pairwise(self.looks)):
            raise ValueError(f"looks must be counts, each above the one before, got {shown(self.looks)}")
        if len(self.boundaries) != len(self.looks) - 1:
            must = f"boundaries must be one fewer than the looks, {len(self.looks) - 1}"
            raise ValueError(f"{must}, got {len(self.boundaries)}")
        if any(larger <= shift for shift, larger in pairwise((self.epsilon, *self.shifts))):
            raise ValueError(f"shifts must rise, from above epsilon, {self.epsilon}, got {self.shifts}")
        if self.rewards in IN_UNIT and self.sigma < 0.5:
            raise ValueError(f"sigma must be at least 0.5 for {self.rewards} rewards, got {self.sigma}")
        if self.rewards not in ("Bernoulli", "Gaussian"):
            must = "rewards must be 'Bernoulli' or 'Gaussian', whose law can be computed"
            raise ValueError(f"{must}, got {self.rewards!r}")
        if self.rewards == "Gaussian":
            return
        whole("n_arms", self.n_arms, 2, MOST_TOGETHER)
        if self.delta < LEAST_DELTA:
            raise ValueError(f"delta must be at least {LEAST_DELTA:g} for 0/1 rewards, got {self.delta}")
        if self.looks[-1] > MOST_EXACT:
            raise ValueError(
                f"looks must be at most {MOST_EXACT:,} for 0/1 rewards, whose law is computed, got"
                f" {self.looks[-1]:,}: use PausingElasticBatchRacing or StakedElasticBatchRacing instead"
            )
        if margin is not None and margin not in (self.epsilon, *self.shifts):
            must = f"margin must be epsilon, {self.epsilon}, or one of the shifts, {self.shifts}"
            raise ValueError(f"{must}, for which the design is certified, got {margin}")

    @property
    def deadline(self) -> int:
        """T, the number of looks."""
        return len(self.looks)

    @property
    def rule(self) -> Boundaries:
        """What the race decides by."""
        return Boundaries(self.looks, self.boundaries, self.epsilon, self.pruning, self.shifts)

    def certificate(self) -> Certificate:
        """Compute how often the race fails at most, whatever the truth; seconds for 0/1 rewards."""
        return certificate(self.rule, self.n_arms, self.delta, self.rewards, self.sigma)

    def model(self, told: Known) -> str:
        """What it was made for."""
        return self.rewards

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """b_t."""
        return np.array(self.looks)

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """A control is permitted; the certificate is for independent arms, all with b_t rewards."""
        return None if feature in ("control", "stopping") else super().objection(feature, rewards)

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """What lies between two numbers is not normal."""
        normal = bounded and self.rewards == "Gaussian"
        return "the algorithm is made for normal rewards, which have no bounds" if normal else None

    def deviation(self, pulls: IntArray | int, n_arms: int) -> FloatArray:
        """Hoeffding's half-width for one mean, so that all n of all T looks are covered with 1 − δ."""
        return fixed_count_deviation(pulls, self.delta / (n_arms * self.deadline), self.sigma)

    def behind(self, look: int, leader: FloatArray, shift: float) -> FloatArray:
        """How large a sum may be and is refuted, by an arm with the leader's, to be better by the shift.

        Of 0/1 rewards: between the largest sum that is and the next. −∞ where none is.
        """
        if self.rewards == "Bernoulli":
            table = self.rule.refuted(look, shift) if shift else self.rule.dropped(look)
            place = np.clip(np.nan_to_num(leader, neginf=0), 0, self.looks[look]).astype(np.int64)
            return np.where(table[place] < 0, -np.inf, table[place] + 0.5)
        reach = self.boundaries[look] * self.sigma * math.sqrt(2 * self.looks[look])
        dropping = leader - self.pruning * reach
        return np.maximum(dropping, leader - reach + shift * self.looks[look]) if shift else dropping

    def within(self, look: int, sums: FloatArray) -> float:
        """The least shift, from ε on, that the leader of these survivors refutes at a look before T; else ∞.

        A race that is stopped there, for whatever reason, has a leader within this of the best with 1 − δ:
        all looks are covered at once.
        """
        first, *others = np.sort(np.asarray(sums, dtype=np.float64))[::-1]
        if not others:
            return self.epsilon
        if self.rewards == "Gaussian":
            reach = self.boundaries[look] * self.sigma * math.sqrt(2 * self.looks[look])
            return max(self.epsilon, float(others[0] - first + reach) / self.looks[look])
        known = (self.epsilon, *self.shifts)
        return next((s for s in known if others[0] < self.behind(look, np.array(first), s)), math.inf)

    def play_lossy(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> LossyGame:
        """Race that may be stopped at every look; no reward may be missing."""
        game, look = self.play(n_arms, replicates, rewards=rewards, generator=generator), -1
        pulls, total = next(game), np.zeros((replicates, n_arms))
        arms, within = np.full(replicates, -1), np.full(replicates, np.inf)
        while True:
            counts, sums = yield Standing(pulls, arms, within)
            if not np.array_equal(counts, pulls):
                raise ValueError(self.objection("missing", rewards))
            total, look, turn = total + sums, look + 1, advance(game, sums)
            if turn.pulls is None:
                arms = np.asarray(turn.arms)  # a control may be recommended for the margin alone
                return Ending(arms, np.where(arms == self.control, self.margin or 0.0, self.epsilon))
            pulls, seen = turn.pulls, np.where(turn.pulls > 0, total, -np.inf)
            arms = np.where(pulls.any(axis=1), seen.argmax(axis=1), arms)
            within = within.copy()  # what was said stays as it was
            for row in np.flatnonzero(pulls.any(axis=1)):
                within[row] = self.within(look, seen[row][np.isfinite(seen[row])])

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Race: yield the pulls of each round, receive the rewards' sums, return the recommended arms."""
        n_arms, replicates = entered(n_arms, replicates, rewards)
        check_known(self.rewards, rewards)
        if n_arms > self.n_arms:
            raise ValueError(f"n_arms must be at most {self.n_arms}, as certified, got {n_arms}")
        if self.control is not None and self.control >= n_arms:
            raise ValueError(f"control must lie in 0 … {n_arms - 1}, the arms' numbers, got {self.control}")
        survivors, pulled = Survivors(n_arms, replicates), 0
        for look, target in enumerate(self.looks):
            sums = yield survivors.pulls(target - pulled)
            pulled = target
            if look + 1 == self.deadline:
                if self.rewards == "Bernoulli":  # sums are whole: only those that tie change places
                    sums = sums + (generator or np.random.default_rng()).random(sums.shape) / 2
                survivors.add(sums)
                break
            survivors.add(sums)
            if self.control is not None and self.margin is not None:
                survivors.settle(self.control, self._futile(survivors, look))
            ended = survivors.second() < self.behind(look, survivors.first, self.epsilon)
            survivors.drop(survivors.first - self.behind(look, survivors.first, 0.0))
            survivors.end(ended | (survivors.size() == 1))
            if not survivors.running.any():
                break
        survivors.end(survivors.running)
        return survivors.leader

    def _futile(self, survivors: Survivors, look: int) -> BoolArray:
        """Whether no survivor can be better than the control, if it is one, by the margin."""
        assert self.control is not None
        assert self.margin is not None
        control, others = survivors.against(self.control)
        return np.isfinite(control) & (others < self.behind(look, control, self.margin))
