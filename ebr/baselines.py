"""The algorithms that the paper compares with (section 5 and its appendix), from their own sources."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebr.confidence import sequential_deviation
from ebr.parameters import FloatArray, IntArray, count, in_unit_interval, one_of, positive, whole
from ebr.racing import PULLS_CONSTANT, Game
from ebr.survivors import Survivors

__all__ = ["AggressiveElimination", "DeltaElimination", "Passive", "SequentialRacing", "iterated_log"]


@dataclass(frozen=True)
class Passive:
    """T = 1: every arm ⌈80σ² log(n/δ)/ε²⌉ times at once, then the best empirical mean."""

    epsilon: float
    delta: float
    sigma: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", in_unit_interval("epsilon", self.epsilon))
        object.__setattr__(self, "delta", in_unit_interval("delta", self.delta))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))

    def play(self, n_arms: int, replicates: int = 1) -> Game:
        """Pull every arm equally often, once."""
        pulls = count(PULLS_CONSTANT * self.sigma**2 * math.log(n_arms / self.delta) / self.epsilon**2)
        sums = yield np.full((replicates, n_arms), pulls)
        arm: IntArray = sums.argmax(axis=1)
        return arm


@dataclass(frozen=True)
class SequentialRacing:
    """T = ∞: survivors are pulled in turn, one at a time, until one is known to be within ε of the best.

    EBR's elimination rule with η = ε/n (n∧∞) and the deviation of Jun et al. (AISTATS 2016), which holds
    for all counts at once; the rule is applied at the end of every sweep over the survivors. The race ends
    when one arm is left or, by default, when the leader's lower bound is at least every other survivor's
    upper bound less ε. Waiting for one arm alone (`end="lone survivor"`) ignores ε (A4), and never ends if
    arms tie for ever.

    Notes
    -----
    *Asking ahead.* With rewards in [0, 1], the sweeps that are certain to decide nothing are asked for at
    once; the race is the one-pull-at-a-time race all the same. Let every survivor have s pulls and sum X_i,
    let X_(1) ≥ X_(2) be the two largest sums and X_min the smallest, and W(τ) = 2τD(τ), so that at sweep
    τ an arm is dropped if it is more than W(τ) − ητ behind, and the race ends if the second is at
    least W(τ) − ετ behind. After h more sweeps every sum has grown by between 0 and h. So, whatever the
    outcomes:

    - no arm is further behind than X_(1) − X_min + h, since nobody has more than X_(1) + h and nobody
      less than X_min; hence none is dropped while X_(1) − X_min + h ≤ W(s+h) − η(s+h);
    - the two largest sums are at most X_(1) − X_(2) + h apart: the leader then, j, has at most X_j + h, and
      somebody else at least the largest of the other X_i, which is X_(1) if j is not the leader now and
      X_(2) if it is; hence the race does not end while X_(1) − X_(2) + h < W(s+h) − ε(s+h).

    Now W(τ)² = 64σ² τ log(log₂(2τ)/ω), whose last factor increases: W(s+h) ≥ W(s) √(1 + h/s). With
    u² = 1 + h/s and G the gap, either condition follows from s(1+η)u² − W(s)u − (s − G) ≤ 0, that is from
    u ≤ (W + √(W² + 4s(1+η)(s − G))) / (2s(1+η)), and likewise for ε. As the quadratic is convex and not
    positive at u = 0, what holds for h holds for every smaller h ≥ 0: the sweeps s+1 … s+h decide
    nothing, and ⌊h⌋ + 1 sweeps may be asked for.
    """

    epsilon: float
    delta: float
    sigma: float = 0.5
    end: str = "certified"
    one_pull_a_round: ClassVar[bool] = True  # however many are asked for at once
    needs: ClassVar[tuple[str, ...]] = ("bounded",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", in_unit_interval("epsilon", self.epsilon))
        object.__setattr__(self, "delta", in_unit_interval("delta", self.delta))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))
        one_of("end", self.end, ("certified", "lone survivor"))

    def deviation(self, pulls: IntArray | FloatArray | int, n_arms: int) -> FloatArray:
        """The half-width D of the confidence interval around the mean of so many rewards."""
        return sequential_deviation(pulls, n_arms, self.delta, self.sigma)

    def play(self, n_arms: int, replicates: int = 1, bounded: bool = False) -> Game:
        """Race one sweep at a time, or as many as are certain to decide nothing if rewards lie in [0, 1]."""
        slack = self.epsilon / n_arms
        survivors = Survivors(n_arms, replicates)
        sweeps = np.zeros(replicates)
        ahead = np.ones(replicates, dtype=np.int64)
        while survivors.running.any():
            survivors.add((yield survivors.pulls(ahead)))
            sweeps += ahead * survivors.running
            width = 2 * sweeps * self.deviation(sweeps, n_arms)  # W
            reach = np.maximum(width - slack * sweeps, 0)
            lead = survivors.first - survivors.second()
            survivors.drop(reach)
            # A certified leader: L_1 ≥ U_i − ε. As ε > η, this is so too when all the others are dropped.
            ended = lead >= width - self.epsilon * sweeps if self.end == "certified" else lead > reach
            survivors.end(ended)
            if bounded:
                undecided = _certain_sweeps(sweeps, width, survivors.first - survivors.last(), slack)
                if self.end == "certified":
                    until_end = _certain_sweeps(sweeps, width, np.minimum(lead, sweeps), self.epsilon)
                    undecided = np.minimum(undecided, until_end)
                ahead = 1 + np.maximum(undecided - ROUNDING, 0).astype(np.int64)
        return survivors.leader


ROUNDING = 1e-6  # sweeps: far above the rounding error of the look-ahead, which asks for one fewer near it


def _certain_sweeps(sweeps: FloatArray, width: FloatArray, gap: FloatArray, slack: float) -> FloatArray:
    """How many more sweeps are certain to leave the gap below W(τ) − slack·τ (SequentialRacing's Notes)."""
    square = sweeps * (1 + slack)
    growth = (width + np.sqrt(width**2 + 4 * square * (sweeps - gap))) / (2 * square)
    certain: FloatArray = sweeps * (growth**2 - 1)
    return certain


@dataclass(frozen=True)
class AggressiveElimination:
    """AE, Algorithm 1 of Agarwal, Agarwal, Assadi and Khanna (COLT 2017), for the best arm (k = 1).

    With r rounds and m arms left, every arm is pulled (2/Δ²)(ilog^{(r)}(m) + log(8/δ)) times, afresh, and
    the best 1 + m/ilog^{(r−1)}(m) are kept for r − 1 rounds and δ/2; once two or fewer are left, one more
    round decides. The algorithm needs the gap Δ between the two best arms; as in the paper it is given ε.

    The source states neither how m/ilog is rounded nor that no more than m arms can be kept (A6); `rounding`
    is "up" or "down".
    """

    deadline: int
    epsilon: float
    delta: float
    rounding: str = "up"

    def __post_init__(self) -> None:
        object.__setattr__(self, "deadline", whole("deadline", self.deadline, 1))
        object.__setattr__(self, "epsilon", in_unit_interval("epsilon", self.epsilon))
        object.__setattr__(self, "delta", in_unit_interval("delta", self.delta))
        one_of("rounding", self.rounding, ("up", "down"))

    def play(self, n_arms: int, replicates: int = 1) -> Game:
        """Eliminate; how many arms are kept does not depend on the rewards, only which ones."""
        survivors = np.tile(np.arange(n_arms), (replicates, 1))
        rounds_left, log_term = self.deadline, math.log(8 / self.delta)
        rounded = math.ceil if self.rounding == "up" else math.floor
        while True:
            m = survivors.shape[1]
            pulls = count(2 / self.epsilon**2 * (iterated_log(rounds_left, m) + log_term))
            sums = yield _pulls_of(survivors, pulls, n_arms)
            if rounds_left == 1:
                return _best(survivors, sums, 1)[:, 0]
            kept = min(m, 1 + rounded(m / iterated_log(rounds_left - 1, m)))
            if kept < m:
                survivors = _best(survivors, sums, kept)
            rounds_left = 1 if kept <= 2 else rounds_left - 1
            log_term += math.log(2)  # δ/2


DELTA_ELIMINATION_CONSTANT = 57  # the paper's appendix: Q = 57/ε² makes kδER (ε, δ)-PAC


@dataclass(frozen=True)
class DeltaElimination:
    """kδER, top-k δ-elimination with limited rounds (Jin, Shi, Xiao and Chen, NeurIPS 2019), for k = 1.

    Q = 57/ε², δ₁ = δ/4, β₁ = 1 + ilog^{(T)}_{1/δ}(n). In round r < T every arm of S_r is pulled
    β_r Q log(1/δ_r) times, afresh; one arm is drawn by lot from the best ⌈x/2⌉, x = δ_r^{β_r} |S_r|, and set
    aside in S′; the best ⌈2x⌉ without it are S_{r+1}; β_{r+1} = β_r |S_r|/(2|S_{r+1}|), δ_{r+1} = δ/(2·2^r).
    In round T the arms of S_T are pulled β_T Q log(2·2^T/δ) times, those of S′ Q log(4|S′|/δ) times, and the
    best empirical mean among them is returned. When S_{r+1} is empty the last round follows at once.

    `constants` is "published" (the above) or "released", the authors' code (A5):
    β₁ = 1 + ilog^{(T)}(n)/log(1/δ) if that fraction is at least 1 and else 1, δ_{r+1} = δ/(8·2^r),
    log(8·2^T/δ), log(2|S′|/δ), and the end at once when S_{r+1} is empty and one arm is set aside.

    ilog to the base b is read as ilog^{(0)}(a) = a, ilog^{(r)}(a) = max(log_b ilog^{(r−1)}(a), 1).
    """

    deadline: int
    epsilon: float
    delta: float
    constants: str = "published"
    needs: ClassVar[tuple[str, ...]] = ("generator",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "deadline", whole("deadline", self.deadline, 1))
        object.__setattr__(self, "epsilon", in_unit_interval("epsilon", self.epsilon))
        object.__setattr__(self, "delta", in_unit_interval("delta", self.delta))
        one_of("constants", self.constants, ("published", "released"))

    def play(self, n_arms: int, replicates: int = 1, generator: np.random.Generator | None = None) -> Game:
        """Eliminate; the lots are drawn from the generator. |S_r| does not depend on the rewards."""
        generator = generator or np.random.default_rng()
        released = self.constants == "released"
        per_arm = DELTA_ELIMINATION_CONSTANT / self.epsilon**2  # Q
        survivors = np.tile(np.arange(n_arms), (replicates, 1))  # S_r
        aside = np.empty((replicates, 0), dtype=np.int64)  # S′
        beta, delta, log_term = self._first_factor(n_arms), self.delta / 4, math.log(4 / self.delta)
        for r in range(1, self.deadline):
            sums = yield _pulls_of(survivors, count(beta * per_arm * log_term), n_arms)
            size = survivors.shape[1]
            share = delta**beta * size  # x
            best = _best(survivors, sums, max(1, math.ceil(2 * share)))
            lot = generator.integers(max(1, math.ceil(share / 2)), size=(replicates, 1))
            aside = np.hstack([aside, np.take_along_axis(best, lot, axis=1)])
            survivors = best[np.arange(best.shape[1]) != lot].reshape(replicates, -1)
            if survivors.shape[1] == 0:
                break
            beta *= size / (2 * survivors.shape[1])
            delta = math.ldexp(self.delta / (8 if released else 2), -r)
            log_term = math.log((8 if released else 2) / self.delta) + r * math.log(
                2
            )  # log(1/δ), also of 2^-2000
        if released and survivors.shape[1] == 0 and aside.shape[1] == 1:
            return aside[:, 0]
        last = math.log((8 if released else 2) / self.delta) + self.deadline * math.log(2)
        pulls = _pulls_of(survivors, count(beta * per_arm * last), n_arms)
        if aside.shape[1]:
            again = math.log((2 if released else 4) * aside.shape[1] / self.delta)
            np.put_along_axis(pulls, aside, count(per_arm * again), axis=1)
        sums = yield pulls
        finalists = np.sort(np.hstack([survivors, aside]), axis=1)
        rewards, counts = (np.take_along_axis(table, finalists, axis=1) for table in (sums, pulls))
        return np.take_along_axis(finalists, (rewards / counts).argmax(axis=1)[:, None], axis=1)[:, 0]

    def _first_factor(self, n_arms: int) -> float:
        """β₁."""
        if self.constants == "published":
            return 1 + iterated_log(self.deadline, n_arms, base=1 / self.delta)
        fraction = iterated_log(self.deadline, n_arms) / math.log(1 / self.delta)
        return 1 + fraction if fraction >= 1 else 1.0


def iterated_log(times: int, value: float, base: float = math.e) -> float:
    """ilog^{(r)}(a): ilog^{(0)}(a) = a and ilog^{(r)}(a) = max(log ilog^{(r−1)}(a), 1)."""
    for _ in range(times):
        value = max(math.log(value) / math.log(base), 1.0)
    return value


def _pulls_of(arms: IntArray, pulls: int, n_arms: int) -> IntArray:
    """The same number of pulls for each listed arm (replicates × some), none for the others."""
    table = np.zeros((len(arms), n_arms), dtype=np.int64)
    if arms.shape[1] == n_arms:
        table[:] = pulls
    else:
        np.put_along_axis(table, arms, pulls, axis=1)
    return table


def _best(arms: IntArray, sums: FloatArray, kept: int) -> IntArray:
    """The `kept` best of the listed arms (replicates × some), all equally often pulled; the best first."""
    values = sums if arms.shape[1] == sums.shape[1] else np.take_along_axis(sums, arms, axis=1)
    if kept == 1:
        order = values.argmax(axis=1)[:, None]
    else:
        order = np.argpartition(values, -kept, axis=1)[:, -kept:]
        ranks = np.argsort(-np.take_along_axis(values, order, axis=1), axis=1)
        order = np.take_along_axis(order, ranks, axis=1)
    return np.take_along_axis(arms, order, axis=1)
