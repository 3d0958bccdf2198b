"""Section 5's baselines: elimination with limited rounds, from its own sources; T = 1; and T = ∞."""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from ebr.algorithms.arms import Survivors
from ebr.algorithms.elastic import SCHEDULE_CONSTANT
from ebr.algorithms.game import Algorithm, Game, Known, Rng, spelled
from ebr.arrays import FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.confidence import sequential_deviation
from ebr.validation import MOST_PULLS, MOST_TOTAL, check_fields, checked, count, positive, require, whole

DELTA_ELIMINATION_CONSTANT = 57  # the paper's appendix: Q = 57/ε² makes kδER (ε, δ)-PAC
MOST_TURNS = 10**6  # how often a race may ask for pulls: a minute of simulation
ROUNDING = 1e-6  # of a sweep: far above the rounding error of the number of sweeps to ask for


@checked(times=partial(whole, at_least=0), value=positive, base=positive)
def iterated_log(times: int, value: float, base: float = math.e) -> float:
    """ilog^{(r)}(a): ilog^{(0)}(a) = a and ilog^{(r)}(a) = max(log ilog^{(r−1)}(a), 1)."""
    require(base > 1, "base", "be above 1", base)
    for _ in range(times):
        before, value = value, max(math.log(value) / math.log(base), 1.0)
        if value == before:
            break
    return value


@dataclass(frozen=True)
class AggressiveElimination(Algorithm):
    """AE, Algorithm 1 of Agarwal, Agarwal, Assadi and Khanna (COLT 2017), for the best arm (k = 1).

    With r rounds and m arms left, every arm is pulled (2/Δ²)(ilog^{(r)}(m) + log(8/δ)) times, afresh. The
    best 1 + m/ilog^{(r−1)}(m) arms, at most m, go on with r − 1 rounds and δ/2; of two or fewer, one more
    round decides. ε stands for Δ, the gap between the two best arms, as in the paper. The source leaves open
    how m/ilog is rounded: `rounding` is "up" or "down".
    """

    deadline: int
    epsilon: float
    delta: float
    rounding: str = "up"
    sigma = 0.5  # its source is about rewards in [0, 1]
    fixed_counts: ClassVar[bool] = True
    needs_gap: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, rounding=("up", "down"))

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Play the rounds; how many arms are kept does not depend on the rewards."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        survivors = np.tile(np.arange(n_arms), (replicates, 1))
        rounds_left, log_term = self.deadline, math.log(8 / self.delta)
        rounded = math.ceil if self.rounding == "up" else math.floor
        while True:
            m = survivors.shape[1]
            pulls = count(2 / self.epsilon**2 * (iterated_log(rounds_left, m) + log_term), n_arms)
            sums = yield _pulls_of(survivors, pulls, n_arms)
            if rounds_left == 1:
                return _best(survivors, sums, 1)[:, 0]
            kept = min(m, 1 + rounded(m / iterated_log(rounds_left - 1, m)))
            if kept < m:
                survivors = _best(survivors, sums, kept)
            rounds_left = 1 if kept <= 2 else rounds_left - 1
            log_term += math.log(2)  # δ/2


@dataclass(frozen=True)
class DeltaElimination(Algorithm):
    """kδER, top-k δ-elimination with limited rounds (Jin, Shi, Xiao and Chen, NeurIPS 2019).

    Q = 57/ε², δ₁ = δ/4, β₁ = 1 + ilog^{(T)}_{k/δ}(n). In round r < T every arm of S_r is pulled
    β_r Q log(k/δ_r) times, afresh. Let k′ = min(k, |S_r|) and x = (δ_r/k)^{β_r} |S_r|. Of the best
    ⌈x/2⌉ + k′ − 1 arms, k′ are drawn at random and set aside in S′. The best ⌈2x⌉ + k′ − 1 without them are
    S_{r+1}; β_{r+1} = β_r |S_r|/(2|S_{r+1}|), δ_{r+1} = δ/(2·2^r). In round T, or at once when S_{r+1} is
    empty, the arms of S_T are pulled β_T Q log(2k 2^T/δ) times, those of S′ Q log(4|S′|/δ) times; the k best
    empirical means among them are returned.

    `constants` is "published" (the above) or "released", the authors' code: δ_{r+1} = δ/(8·2^r),
    log(8k 2^T/δ), log(2|S′|/δ); β₁ = 1 + ilog^{(T)}(n)/log(k/δ), or 1 where that fraction is below 1; and the
    race ends without round T when S_{r+1} is empty and k arms are set aside. `iterated_log` is our ilog.
    """

    deadline: int
    epsilon: float
    delta: float
    constants: str = "published"
    k: int = 1
    sigma = 0.5  # its source is about rewards in [0, 1]
    resumes: ClassVar[bool] = True  # in the last round, of arms that were set aside
    __repr__ = spelled

    def __post_init__(self) -> None:
        check_fields(self, constants=("published", "released"))

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """The proof is of the published constants."""
        return "the constants of the released code have no proof" if self.constants == "released" else None

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Play the rounds; random draws are the generator's. |S_r| does not depend on the rewards."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        generator = generator or np.random.default_rng()
        published = self.constants == "published"
        later, again = (2, 4) if published else (8, 2)  # in δ_{r+1} and round T; in what S′ is pulled
        log_later = math.log(later * self.k / self.delta)
        per_arm = DELTA_ELIMINATION_CONSTANT / self.epsilon**2  # Q
        survivors = np.tile(np.arange(n_arms), (replicates, 1))  # S_r
        aside = np.empty((replicates, 0), dtype=np.int64)  # S′
        beta, delta, log_term = self._first_factor(n_arms), self.delta / 4, math.log(4 * self.k / self.delta)
        for r in range(1, self.deadline):
            sums = yield _pulls_of(survivors, count(beta * per_arm * log_term, n_arms), n_arms)
            size = survivors.shape[1]
            share, drawn = (delta / self.k) ** beta * size, min(self.k, size)  # x and k′
            pool, kept = (min(size, max(1, math.ceil(x)) + drawn - 1) for x in (share / 2, 2 * share))
            best = _best(survivors, sums, kept)
            lots = _lots(generator, replicates, pool, drawn)
            aside = np.hstack([aside, np.take_along_axis(best, lots, axis=1)])
            left = (np.arange(kept) != lots[:, :, None]).all(axis=1)
            survivors = best[left].reshape(replicates, -1)
            if survivors.shape[1] == 0:
                if not published and aside.shape[1] == self.k:
                    return _recommended(aside)
                break
            beta *= size / (2 * survivors.shape[1])
            delta = math.ldexp(self.delta / later, -r)
            log_term = log_later + r * math.log(2)  # also where 2^r is too large for a number
        last = log_later + self.deadline * math.log(2)
        pulls = _pulls_of(survivors, count(beta * per_arm * last, n_arms), n_arms)
        if aside.shape[1]:
            log_again = math.log(again * aside.shape[1] / self.delta)
            np.put_along_axis(pulls, aside, count(per_arm * log_again, n_arms), axis=1)
        sums = yield pulls
        finalists = np.sort(np.hstack([survivors, aside]), axis=1)
        totals, counts = (np.take_along_axis(table, finalists, axis=1) for table in (sums, pulls))
        chosen = np.argsort(-totals / counts, axis=1, kind="stable")[:, : self.k]  # of equals, the first
        return _recommended(np.take_along_axis(finalists, chosen, axis=1))

    def _first_factor(self, n_arms: int) -> float:
        """β₁."""
        if self.constants == "published":
            return 1 + iterated_log(self.deadline, n_arms, base=self.k / self.delta)
        fraction = iterated_log(self.deadline, n_arms) / math.log(self.k / self.delta)
        return 1 + fraction if fraction >= 1 else 1.0


def _pulls_of(arms: IntArray, pulls: int, n_arms: int) -> IntArray:
    """The same number of pulls for each listed arm (replicates × some), none for the others."""
    table = np.zeros((len(arms), n_arms), dtype=np.int64)
    np.put_along_axis(table, arms, pulls, axis=1)
    return table


def _recommended(arms: IntArray) -> IntArray:
    """What a game returns: one arm for each replicate, or k > 1 in the order of their numbers."""
    return arms[:, 0] if arms.shape[1] == 1 else np.sort(arms, axis=1)


def _lots(generator: np.random.Generator, replicates: int, pool: int, drawn: int) -> IntArray:
    """Draw different places among the first `pool`, all sets of them equally likely."""
    if drawn == 1:
        return np.asarray(generator.integers(pool, size=(replicates, 1)))
    return np.asarray(generator.random((replicates, pool)).argsort(axis=1)[:, :drawn])


def _best(arms: IntArray, sums: FloatArray, kept: int) -> IntArray:
    """The `kept` best of the listed arms (replicates × some), all equally often pulled; the best first."""
    values = np.take_along_axis(sums, arms, axis=1)
    if kept == 1:
        order = values.argmax(axis=1)[:, None]
    else:
        order = np.argpartition(values, -kept, axis=1)[:, -kept:]
        ranks = np.argsort(-np.take_along_axis(values, order, axis=1), axis=1)
        order = np.take_along_axis(order, ranks, axis=1)
    return np.take_along_axis(arms, order, axis=1)


@checked()
def passive_pulls(n_arms: int, epsilon: float, delta: float, sigma: float = 0.5) -> float:
    """Section 5's N̄_ε(δ) = 80σ² log(n/δ) / ε²: pulls of each arm that suffice in a single round."""
    return SCHEDULE_CONSTANT * sigma**2 * math.log(n_arms / delta) / epsilon**2


@dataclass(frozen=True)
class Passive(Algorithm):
    """T = 1: pull every arm ⌈80σ² log(n/δ)/ε²⌉ times, then recommend the best empirical mean."""

    epsilon: float
    delta: float
    sigma: float = 0.5
    deadline = 1
    fixed_counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Pull every arm equally often, once."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        pulls = count(passive_pulls(n_arms, self.epsilon, self.delta, self.sigma), n_arms)
        sums = yield np.full((replicates, n_arms), pulls)
        return np.asarray(sums.argmax(axis=1))


@dataclass(frozen=True)
class SequentialRacing(Algorithm):
    """T = ∞: survivors are pulled in turn, one at a time, until one is known to be within ε of the best.

    EBR's elimination rule with η = ε/n (n∧∞) and the deviation of Jun et al. (AISTATS 2016), which holds for
    all counts at once, is applied after every sweep over the survivors. The race ends when the leader's lower
    bound is at least every other survivor's upper bound less ε or, with `end="lone survivor"`, when one arm
    is left; that ignores ε, and never happens if arms tie for ever.

    Notes
    -----
    *Asking ahead.* With rewards in [0, 1], the sweeps that are certain to decide nothing are asked for at
    once, which changes no race. Let every survivor have s pulls, X_(1) ≥ X_(2) be the two largest sums, X_min
    the smallest, and W(τ) = 2τD(τ). At sweep τ an arm is dropped if it is more than W(τ) − ητ behind, and the
    race ends if the second is at least W(τ) − ετ behind. In h more sweeps every sum grows by 0 to h. So

    - no arm is more than X_(1) − X_min + h behind: none is dropped while that is at most W(s+h) − η(s+h);
    - the two largest sums are at most X_(1) − X_(2) + h apart, also if the leader changes (it then passes one
      that has X_(1) or more): the race goes on while that is below W(s+h) − ε(s+h).

    Now W(τ)² = 64σ² τ log(log₂(2τ)/ω), whose last factor increases: W(s+h) ≥ W(s)u with u² = 1 + h/s. With G
    the gap, the first condition follows from s(1+η)u² − W(s)u − (s − G) ≤ 0, the second likewise with ε. As
    this is convex in u and not positive at 0, it holds up to the larger root: the sweeps s+1 … s+h decide
    nothing for the h of that root, and ⌊h⌋ + 1 sweeps may be asked for.
    """

    epsilon: float
    delta: float
    sigma: float = 0.5
    end: str = "certified"
    deadline = None
    one_pull_a_round: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, end=("certified", "lone survivor"))

    def deviation(self, pulls: IntArray | FloatArray | int, n_arms: int) -> FloatArray:
        """The half-width D of the confidence interval around the mean of so many rewards."""
        return sequential_deviation(pulls, n_arms, self.delta, self.sigma)

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Race one sweep at a time; with rewards in [0, 1], skip ahead over sweeps that decide nothing."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        self._check_end(n_arms)
        slack = self.epsilon / n_arms
        survivors = Survivors(n_arms, replicates)
        sweeps, ahead = np.zeros(replicates), np.ones(replicates, dtype=np.int64)
        for _ in range(MOST_TURNS):
            survivors.add((yield survivors.pulls(ahead)))
            sweeps += ahead * survivors.running
            width = 2 * sweeps * self.deviation(sweeps, n_arms)  # W
            reach = np.maximum(width - slack * sweeps, 0)
            lead = survivors.first - survivors.second()
            survivors.drop(reach)
            # A certified leader: L_1 ≥ U_i − ε. As ε > η, this is so too when all the others are dropped.
            ended = lead >= width - self.epsilon * sweeps if self.end == "certified" else lead > reach
            survivors.end(ended)
            if not survivors.running.any():
                return survivors.leader
            if rewards in IN_UNIT:
                undecided = _certain_sweeps(sweeps, width, survivors.first - survivors.last(), slack)
                if self.end == "certified":
                    until_end = _certain_sweeps(sweeps, width, np.minimum(lead, sweeps), self.epsilon)
                    undecided = np.minimum(undecided, until_end)
                ahead = 1 + np.maximum(undecided - ROUNDING, 0).astype(np.int64)
        raise ValueError(f"epsilon must be large enough to end in {MOST_TURNS:,} turns, got {self.epsilon}")

    def _check_end(self, n_arms: int) -> None:
        """Raise ValueError if tied arms would need more pulls than can be counted."""
        most = min(MOST_PULLS, MOST_TOTAL // n_arms)
        least = 2 * float(self.deviation(most, n_arms))
        spread = f"at sigma = {self.sigma:g} and delta = {self.delta:g}"
        must = f"be at least {least:.1e}, what {most:.1e} pulls of each arm resolve {spread}"
        require(self.end != "certified" or least <= self.epsilon, "epsilon", must, self.epsilon)


def _certain_sweeps(sweeps: FloatArray, width: FloatArray, gap: FloatArray, slack: float) -> FloatArray:
    """How many more sweeps are certain to leave the gap below W(τ) − slack·τ (SequentialRacing's Notes)."""
    square = sweeps * (1 + slack)
    growth = (width + np.sqrt(width**2 + 4 * square * (sweeps - gap))) / (2 * square)
    return np.asarray(sweeps * (growth**2 - 1))
