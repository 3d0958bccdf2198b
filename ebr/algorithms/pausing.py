"""Pausing Elastic Batch Racing: arms stop where they need not go on, and every arm has its own pace."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from ebr.algorithms.game import Differences, Game, Known, Rng
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.pairs import Pairs, binomial_refuted, bounded_refuted, log_terms, normal_refuted
from ebr.theory.selection import last_count
from ebr.validation import count, scale, whole

MOST_STAGES = 1_000  # every stage is tested against every other: the table has this many squared
FALL = 1 / 3  # how fast the shares of δ fall with the lag between two arms


@dataclass(frozen=True)
class PausingElasticBatchRacing(Differences):
    """Sharp EBR that pauses an arm as soon as it is certified not to be better than the leader by ε.

    An arm's count of pulls lies on a grid b_1 < … < b_T, but where on it is decided as the race goes. In
    round t the leader is pulled up to b_{t+a}, and so is every arm that will be needed as long; an arm that
    is nearly certified only as far as that takes. A new leader must be certified against all who pause, or
    they are resumed. Two arms at b_u and b_s are compared by a test of level δ_{u,s}/(n−1), Σ δ_{u,s} ≤ δ.

    Parameters
    ----------
    deadline, epsilon, delta, sigma, rewards, start
        As in `SharpElasticBatchRacing`, but "Bernoulli" rewards, 0 and 1, are compared by a binomial test.
    lead
        How far beyond the round's own count b_t an arm may be pulled: a is about the largest number of stages
        with b_{t+a} ≤ lead · b_t.
    """

    lead: float = 3.0
    resumes: ClassVar[bool] = True
    most_rounds: ClassVar[int] = MOST_STAGES

    def __post_init__(self) -> None:
        self._check(deadline=partial(whole, at_least=1, at_most=MOST_STAGES), lead=scale)

    @property
    def ahead(self) -> int:
        """a, how many stages an arm may be ahead of the round's number."""
        ratio = max(self.start, self.epsilon) / self.epsilon
        if ratio == 1 or self.lead <= 1:
            return 0
        return int(min(self.deadline, self.deadline * math.log(self.lead) / (2 * math.log(ratio))))

    def shares(self) -> FloatArray:
        """δ_{u,s}: how much of δ is spent on comparing a leader at stage u with an arm at stage s ≤ u.

        δ_u ∝ w_u^{−1/2}, shared among the lags u − s in proportion to 3^{−(u−s)}. With two rounds all arms
        are at one stage.
        """
        weights = self.widths() ** -0.5
        lags = np.subtract.outer(np.arange(self.deadline), np.arange(self.deadline))
        falling = np.where(lags >= 0, FALL ** np.abs(lags), 0) if self.deadline > 2 else np.eye(self.deadline)
        by_lag = falling / falling.sum(axis=1, keepdims=True)
        return np.asarray(self.delta * by_lag * (weights / weights.sum())[:, None])

    def log_terms(self, miss: FloatArray, rewards: str | None = None) -> FloatArray:
        """L: a test of level α refutes once the likelihood ratio, or its counterpart, exceeds about L."""
        return log_terms(miss, self.model(rewards))

    def pulls_by_stage(self, n_arms: int, rewards: str | None = None) -> IntArray:
        """b_t = ⌊4σ² L_t / w_t²⌋ + 1, at most b_T, where the sign of a difference decides."""
        shares, model = self.shares(), self.model(rewards)
        miss = shares.sum(axis=1) / (n_arms - 1)
        pulls = np.floor(4 * self.sigma**2 * self.log_terms(miss, rewards) / self.widths() ** 2) + 1
        count(pulls.max(), n_arms)
        # All arms that are worse than the best by ε or more are behind it at b_T, with 1 − δ_{T,T}.
        pulls[-1] = last_count(model, n_arms, self.epsilon, float(shares[-1, -1]), self.sigma)
        return np.asarray(np.minimum(np.maximum.accumulate(pulls), pulls[-1]), dtype=np.int64)

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """The leader's pulls after each round, which no other arm exceeds: the count of its highest stage."""
        grid = np.unique(self.pulls_by_stage(n_arms, rewards))
        stages = np.arange(1, self.deadline + 1) + self.ahead
        stages[0], stages[-1] = 1, len(grid)  # of a single round, the last
        return np.asarray(grid[np.minimum(stages, len(grid)) - 1])

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Race."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        tests = _Tests(self, n_arms, self.model(rewards))
        arms = Paces(n_arms, replicates)
        stage = 1
        for now in range(1, self.deadline + 1):
            arms.sums += yield tests.counts[arms.aim] - tests.counts[arms.stage]
            arms.rested, arms.stage = arms.stage == arms.aim, arms.aim
            arms.lead(stage)
            if now == self.deadline:
                break
            tests.compare(arms, stage)
            if not arms.alive.any():
                break
            if now + 1 == self.deadline:
                stage = tests.top
                tests.aim_last(arms)
            else:
                stage = min(now + 1 + self.ahead, tests.top)
                tests.aim(arms, now + 1, stage)
        return arms.leader


class Paces:
    """Tables of replicates × arms; every arm has its own pace."""

    def __init__(self, n_arms: int, replicates: int) -> None:
        shape = replicates, n_arms
        self.sums: FloatArray = np.zeros(shape)
        self.stage: IntArray = np.zeros(shape, dtype=np.int64)  # s, if the arm has been pulled b_s times
        self.aim: IntArray = np.ones(shape, dtype=np.int64)  # the stage that the coming round takes it to
        self.rested: BoolArray = np.zeros(shape, dtype=bool)  # whether it was not pulled in the last round
        self.alive: BoolArray = np.ones(shape, dtype=bool)  # whether it may be pulled again
        self.certifier: IntArray = np.full(shape, -1)  # the arm certified not to be worse than it by ε, or −1
        self.leader: IntArray = np.zeros(replicates, dtype=np.int64)  # the last one if the race has ended

    def lead(self, stage: int) -> None:
        """Find the leaders, and their sums, among the arms at the highest stage; ties to the first arm."""
        sums = np.where(self.alive & (self.stage == stage), self.sums, -np.inf)
        self.leader = np.where(self.alive.any(axis=1), sums.argmax(axis=1), self.leader)
        place = np.arange(len(self.leader)), self.leader
        self.best, self.certifier[place] = self.sums[place], self.leader
        self.open = self.alive & (self.certifier != self.leader[:, None])  # may be better than it by ε

    @property
    def leads(self) -> BoolArray:
        """Whether each arm is its replicate's leader, and its race goes on."""
        return np.asarray((np.arange(self.sums.shape[1]) == self.leader[:, None]) & self.alive)


class _Tests:
    """What is fixed before a race: the counts of the grid and the levels of the tests."""

    def __init__(self, race: PausingElasticBatchRacing, n_arms: int, model: str) -> None:
        grid, kept = np.unique(race.pulls_by_stage(n_arms, model), return_index=True)
        kept[-1] = race.deadline - 1  # the sign's part of δ
        self.race, self.model, self.top = race, model, len(grid)
        self.counts: IntArray = np.append(0, grid)
        self.miss = np.pad(race.shares()[np.ix_(kept, kept)] / (n_arms - 1), (1, 0))  # stages begin at 1
        self.log_terms = race.log_terms(self.miss, model)

    def refuted(self, best: FloatArray, high: int, arms: Paces, which: BoolArray, shift: float) -> BoolArray:
        """Of which of these arms it is refuted that they are better, by s, than leaders of no lower stage."""
        places = np.flatnonzero(which)
        leader, other = best[places // which.shape[1]], arms.sums.take(places)
        low = arms.stage.take(places)
        pairs = Pairs(leader, np.full(len(low), self.counts[high]), other, self.counts[low])
        if self.model == "Bernoulli":  # many replicates share a pair of sums; an expected sum is not whole
            sums = leader + low * (self.counts[high] + 1) + 1j * np.ceil(other)
            _, first, again = np.unique(sums, return_index=True, return_inverse=True)
            tried = replace(pairs, other=sums.imag)[first]
            found = binomial_refuted(tried, shift, self.miss[high, low[first]])[again]
        elif self.model == "bounded":
            found = bounded_refuted(pairs, shift, self.log_terms[high, low])
        else:
            found = normal_refuted(pairs, shift, self.log_terms[high, low], self.race.sigma)
        refuted = np.zeros_like(which)
        refuted.put(places[found], True)
        return refuted

    def compare(self, arms: Paces, stage: int) -> None:
        """Certify leaders against arms where the tests allow it; drop arms that are no better; end races."""
        # Where both have b_T pulls the sign of the difference decides.
        behind = arms.open & (arms.stage == stage) & (stage == self.top)
        certified = self.refuted(arms.best, stage, arms, arms.open & ~behind, self.race.epsilon)
        dropped = self.refuted(arms.best, stage, arms, certified, 0.0)
        arms.certifier = np.where(behind | certified, arms.leader[:, None], arms.certifier)
        arms.open &= ~(behind | certified)
        arms.alive &= ~dropped & arms.open.any(axis=1, keepdims=True)

    def aim(self, arms: Paces, now: int, stage: int) -> None:
        """Set how far each arm is pulled in round `now`, in which the leader goes to `stage`."""
        # An arm that has just been pulled goes on with the others; one that has paused may lag behind.
        open_ = np.flatnonzero(arms.open)
        own = arms.stage.take(open_)
        least = np.maximum(own + 1, np.where(arms.rested.take(open_), 0, now))
        arms.aim = np.where(arms.leads, stage, arms.stage)
        arms.aim.put(open_, np.clip(self.needed(arms, open_, own, stage), least, stage))

    def needed(self, arms: Paces, chosen: IntArray, own: IntArray, stage: int) -> IntArray:
        """The stage at which an arm would be certified if the means stayed as they are, by the normal law."""
        mean = arms.sums.take(chosen) / self.counts[own]
        leader_mean = (arms.best / self.counts[arms.stage.max()])[chosen // arms.sums.shape[1]]
        variance: FloatArray | float = self.race.sigma**2
        if self.model in IN_UNIT:
            pooled = (mean + leader_mean) / 2
            variance = np.maximum(pooled * (1 - pooled), 1 / self.counts[1])
        gap = np.maximum(leader_mean - mean + self.race.epsilon, 0)
        stages = np.arange(1, stage + 1)
        enough = self.log_terms[stage, stages] * (1 / self.counts[stage] + 1 / self.counts[stages])
        return np.asarray(1 + np.searchsorted(-np.minimum.accumulate(enough), -(gap**2) / (2 * variance)))

    def aim_last(self, arms: Paces) -> None:
        """Pull to b_T every arm that may win, and every arm against which some of these is not certified."""
        final = arms.open | arms.leads | (arms.alive & (arms.stage == self.top))
        while (more := self.uncertified(arms, final)).any():
            final |= more
        arms.aim = np.where(final, self.top, arms.stage)

    def uncertified(self, arms: Paces, final: BoolArray) -> BoolArray:
        """The arms outside the final against which some finalist is not certified."""
        wanted = np.zeros_like(final)
        for high in np.unique(arms.stage[final]):  # of equal counts the smallest sum refutes the least
            weakest = np.where(final & (arms.stage == high), arms.sums, np.inf).min(axis=1)
            waiting = arms.alive & ~final & np.isfinite(weakest)[:, None]
            lower = waiting & (arms.stage <= high)
            wanted |= waiting & ~self.refuted(weakest, high, arms, lower, self.race.epsilon)
        return wanted
