"""Certified Elastic Batch Racing: looks and boundaries whose failures are computed.

*Missing rewards.* Let the losses be independent of all rewards. The race takes look t as soon as all
survivors have b_t rewards, in whichever round, and reads b_t of each: those that were read before and, of the
others, as many as it needs, chosen at random. So the rewards, in the order in which they are read, have the
same law as if none were lost. A round asks for what is owed and, going by the share that came in so far, for
what will be lost of it. If the last look is short after round T, the race ends as at the last look taken.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ebr.algorithms.arms import Survivors
from ebr.algorithms.game import Game, Known, LossyGame, Rng, Standing, Tested, advance, spelled
from ebr.arrays import FloatArray, IntArray
from ebr.theory.certificates import Boundaries
from ebr.validation import MOST_PULLS, Rule, check_fields, in_unit_interval, positive, require, whole

MOST_TOGETHER = 200  # arms: with more a certificate takes minutes
LEAST_DELTA = 1e-6  # smaller ones are lost in what is added for rounding and cut tails
MOST_EXACT = 5_000  # 0/1 rewards of an arm: beyond it the law of a pair takes minutes
OTHERS = "PausingElasticBatchRacing or StakedElasticBatchRacing"  # which have no such limit
CUSHION = 2.0  # standard deviations of the losses, by which more is asked for than will be lost
MOST_AGAIN = 3.0  # pulls for each reward that is owed, before the cushion: no larger loss is expected


def _listed(rule: Rule, name: str, values: Any) -> tuple[Any, ...]:
    """A tuple of numbers, each checked by a rule."""
    require(isinstance(values, tuple | list), name, "be a tuple of numbers", values)
    return tuple(rule(name, value) for value in values)


@dataclass(frozen=True)
class CertifiedElasticBatchRacing(Boundaries, Tested):
    """Race with looks b_1 < … < b_T and boundaries for which a certificate was computed.

    Survivors have b_t rewards each at look t. An arm is dropped if the leader is ahead of it by more than
    π c_t standard deviations of their difference. The leader wins if its lead plus ε b_t exceeds c_t standard
    deviations against every other survivor. At b_T the largest sum wins; ties are broken by lot.

    `ebr.certified_design` makes certified looks and boundaries; of others `certificate` computes whether they
    are. Then the recommended arm is within ε of the best with probability 1 − δ (`ebr.theory.certificates`).

    Parameters
    ----------
    n_arms, looks, boundaries
        How many arms there may be: the certificate holds for fewer, too. b_1 … b_T, and c_1 … c_{T−1}.
    epsilon, delta, sigma, rewards
        As in `ElasticBatchRacing`. "Bernoulli": rewards are 0 and 1. "Gaussian": they are N(μ, σ²).
    pruning, floor
        π, the factor of the boundaries where an arm is dropped. Of 0/1 rewards: the least boundary where
        rates are near 0 or 1 (`ebr.theory.certificates.limits`).
    shifts
        Of 0/1 rewards: larger ε′ for which the certificate holds, too. A race that is stopped early says
        which of them its leader is within.
    control, margin
        As in `SharpElasticBatchRacing`. Of 0/1 rewards the margin must be ε or one of the shifts.
    """

    control: int | None = None
    margin: float | None = None
    fixed_counts: ClassVar[bool] = True
    __repr__ = spelled

    def __post_init__(self) -> None:
        pulls = partial(whole, at_least=1, at_most=MOST_PULLS)
        check_fields(
            self,
            rewards=("Bernoulli", "Gaussian"),
            n_arms=partial(whole, at_least=2, at_most=MOST_TOGETHER),
            looks=partial(_listed, pulls),
            boundaries=partial(_listed, positive),
            shifts=partial(_listed, in_unit_interval),
            pruning=positive,
            floor=positive,
        )
        self.set_control()
        self.check_control(self.n_arms)
        before, known = len(self.looks) - 1, (self.epsilon, *self.shifts)
        rising = before >= 0 and [*self.looks] == sorted(set(self.looks))
        require(rising, "looks", "be counts, each above the one before", self.looks)
        must = f"be {before}, one for each look but the last"
        require(len(self.boundaries) == before, "boundaries", must, self.boundaries)
        rising = [*known] == sorted(set(known))
        require(rising, "shifts", f"rise, from above epsilon, {self.epsilon}", self.shifts)
        require(self.delta >= LEAST_DELTA, "delta", f"be at least {LEAST_DELTA:g}", self.delta)
        if self.rewards == "Gaussian":
            return
        require(self.sigma >= 0.5, "sigma", "be at least 0.5 for Bernoulli rewards", self.sigma)
        must = f"be at most {MOST_EXACT:,} for 0/1 rewards (else use {OTHERS})"
        require(self.looks[-1] <= MOST_EXACT, "looks", must, self.looks[-1])
        must = f"be epsilon, {self.epsilon}, or one of the shifts, {self.shifts}, which are certified"
        require(self.margin in (None, *known), "margin", must, self.margin)

    @property
    def deadline(self) -> int:  # type: ignore[override]  # it is not a parameter
        """T, the number of looks."""
        return len(self.looks)

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """b_t."""
        return np.array(self.looks)

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """All features are permitted but rewards in blocks: the certificate is for independent arms."""
        return super().objection(feature, rewards) if feature == "blocks" else None

    def behind(self, look: int, leader: FloatArray, shift: float) -> FloatArray:
        """The limit below which an arm with the leader's sum refutes that others are better by the shift.

        For 0/1 rewards it lies halfway between the largest sum that is refuted and the next. −∞: none is.
        """
        if self.rewards == "Bernoulli":
            # Not np.clip, which takes longer for the few numbers of one live race.
            place = np.minimum(np.maximum(leader, 0), self.looks[look]).astype(np.int64)
            largest = self.refuted(look, shift)[place]
            return np.where(largest < 0, -np.inf, largest + 0.5)
        reach = self.boundaries[look] * self.sigma * math.sqrt(2 * self.looks[look])
        dropping = leader - self.pruning * reach
        return np.maximum(dropping, leader - reach + shift * self.looks[look]) if shift else dropping

    def within(self, look: int, sums: FloatArray) -> float:
        """The least shift, ε or more, that the leader of these survivors refutes at a look before T; else ∞.

        If a race is stopped there, for whatever reason, its leader is within this of the best with
        probability 1 − δ: the certificate covers all looks at once.
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
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None
    ) -> LossyGame:
        """Race that may be stopped at every look, and with rewards that may be missing at random."""
        races = [_Reading(self, n_arms, rewards, generator) for _ in range(replicates)]
        asked, came = np.zeros((2, replicates, n_arms), dtype=np.int64)
        for target in self.looks:
            wanted = np.stack([race.wanted for race in races])
            owed = np.maximum(target - came, 0) * (wanted > 0)
            again = np.minimum((asked + 1) / (came + 1), MOST_AGAIN)
            pulls = np.ceil(owed * again + CUSHION * np.sqrt(owed * again * (again - 1))).astype(np.int64)
            if not pulls.any():  # all have ended, or have these rewards already
                continue
            counts, sums = yield Standing(*_ends(races), pulls)
            asked, came = asked + pulls, came + counts
            for race, *new in zip(races, counts, sums, strict=True):
                race.take(*new)
        return Standing(*_ends(races))

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Race: yield the pulls of each round, receive the rewards' sums, return the recommended arms."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        require(n_arms <= self.n_arms, "n_arms", f"be at most {self.n_arms}, as certified", n_arms)
        survivors = Survivors(n_arms, replicates)
        for look, more in enumerate(np.diff(self.looks, prepend=0).tolist()):
            sums, last = (yield survivors.pulls(more)), look + 1 == self.deadline
            if last and self.rewards == "Bernoulli":  # sums are whole: only those that tie change places
                sums = sums + (generator or np.random.default_rng()).random(sums.shape) / 2
            survivors.add(sums)
            if last:
                break
            if self.control is not None and self.margin is not None:
                control, others = survivors.against(self.control)
                futile = others < self.behind(look, control, self.margin)
                survivors.end(np.isfinite(control) & futile, np.full(replicates, self.control))
            ended = survivors.second() < self.behind(look, survivors.first, self.epsilon)
            survivors.drop(survivors.first - self.behind(look, survivors.first, 0.0))
            survivors.end(ended | (survivors.size() == 1))
            if not survivors.running.any():
                break
        survivors.end(survivors.running)
        return survivors.leader


class _Reading:
    """One race whose rewards may be missing: a game without losses, and the rewards that it has not read."""

    def __init__(self, race: CertifiedElasticBatchRacing, n_arms: int, rewards: Known, lots: Rng) -> None:
        self.race, self.lots = race, lots or np.random.default_rng()
        self.game = race.play(n_arms, rewards=rewards, generator=self.lots)
        self.wanted: IntArray = next(self.game)[0]  # for the next look; nothing once the game has ended
        self.counts, self.sums = 0 * self.wanted, 0.0 * self.wanted  # of rewards not read yet
        self.looks, self.read = 0, 0.0 * self.wanted  # looks taken, and the sums that were read
        self.arm, self.within = -1, math.inf  # how the race would end now

    def take(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in a round, and all looks for which the rewards are there."""
        self.counts, self.sums = self.counts + counts, self.sums + sums
        while self.wanted.any() and (self.counts >= self.wanted).all():
            read = np.array(list(map(self._first, self.wanted, self.counts, self.sums)))
            self.counts, self.sums, self.read = self.counts - self.wanted, self.sums - read, self.read + read
            turn = advance(self.game, read[None])
            if turn.pulls is not None:
                self.wanted = turn.pulls[0]
                still = np.flatnonzero(self.wanted)
                self.arm = int(still[self.read[still].argmax()])
                self.within = self.race.within(self.looks, self.read[still])
            else:  # a control may be recommended for the margin alone
                self.wanted, self.arm = 0 * self.wanted, int(turn.arms[0])
                control = self.arm == self.race.control
                self.within = (self.race.margin or 0.0) if control else self.race.epsilon
            self.looks += 1
        if not self.looks and self.counts.any():  # no promise yet
            means = np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1), -np.inf)
            self.arm = int(means.argmax())

    def _first(self, wanted: int, count: int, total: float) -> float:
        """The sum of so many of an arm's unread rewards, chosen at random; only their total is known."""
        if wanted in (0, count):
            return total if wanted else 0.0
        if self.race.rewards == "Bernoulli":
            return float(self.lots.hypergeometric(round(total), count - round(total), wanted))
        # of normal rewards: a Brownian bridge
        spread = self.race.sigma * math.sqrt(wanted * (count - wanted) / count)
        return float(self.lots.normal(total * wanted / count, spread))


def _ends(races: list[_Reading]) -> tuple[IntArray, FloatArray]:
    """How races would end now."""
    return np.array([race.arm for race in races]), np.array([race.within for race in races])
