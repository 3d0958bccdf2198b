"""Elimination with limited rounds: the prior algorithms of section 5, from their own sources."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ebr.algorithms.game import Algorithm, Game, Known, Lots, check_places, entered, spelled
from ebr.arrays import FloatArray, IntArray
from ebr.theory.bounds import iterated_log
from ebr.validation import check_fields, count


@dataclass(frozen=True)
class AggressiveElimination(Algorithm):
    """AE, Algorithm 1 of Agarwal, Agarwal, Assadi and Khanna (COLT 2017), for the best arm (k = 1).

    With r rounds and m arms left, every arm is pulled (2/Δ²)(ilog^{(r)}(m) + log(8/δ)) times, afresh, and
    the best 1 + m/ilog^{(r−1)}(m) are kept for r − 1 rounds and δ/2; once two or fewer are left, one more
    round decides. The algorithm needs the gap Δ between the two best arms; as in the paper it is given ε.

    The source states neither how m/ilog is rounded nor that no more than m arms can be kept; `rounding`
    is "up" or "down".
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

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Eliminate; how many arms are kept does not depend on the rewards, only which ones."""
        n_arms, replicates = entered(n_arms, replicates, rewards)
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


class Constants(NamedTuple):
    """The constants in which the pseudo-code and the released code of kδER differ, β₁ aside.

    δ_{r+1} = δ/(later · 2^r), log(later · k 2^T/δ) in round T, log(again · |S′|/δ) for S′; and whether the
    race ends at once when nobody is left but k arms, set aside.
    """

    later: float
    again: float
    ends_at_once: bool


CONSTANTS = {"published": Constants(2, 4, False), "released": Constants(8, 2, True)}
DELTA_ELIMINATION_CONSTANT = 57  # the paper's appendix: Q = 57/ε² makes kδER (ε, δ)-PAC


@dataclass(frozen=True)
class DeltaElimination(Algorithm):
    """kδER, top-k δ-elimination with limited rounds (Jin, Shi, Xiao and Chen, NeurIPS 2019).

    Q = 57/ε², δ₁ = δ/4, β₁ = 1 + ilog^{(T)}_{k/δ}(n). In round r < T every arm of S_r is pulled
    β_r Q log(k/δ_r) times, afresh; with k′ = k ∧ |S_r| and x = (δ_r/k)^{β_r} |S_r|, k′ arms are drawn by lot
    from the best ⌈x/2⌉ + k′ − 1 and set aside in S′; the best ⌈2x⌉ + k′ − 1 without them are S_{r+1};
    β_{r+1} = β_r |S_r|/(2|S_{r+1}|), δ_{r+1} = δ/(2·2^r). In round T the arms of S_T are pulled
    β_T Q log(2k 2^T/δ) times, those of S′ Q log(4|S′|/δ) times, and the k best empirical means among them are
    returned. When S_{r+1} is empty the last round follows at once.

    `constants` is "published" (the above) or "released", the authors' code:
    β₁ = 1 + ilog^{(T)}(n)/log(k/δ) if that fraction is at least 1 and else 1, δ_{r+1} = δ/(8·2^r),
    log(8k 2^T/δ), log(2|S′|/δ), and the end at once when S_{r+1} is empty and k arms are set aside.

    ilog to the base b is read as ilog^{(0)}(a) = a, ilog^{(r)}(a) = max(log_b ilog^{(r−1)}(a), 1).
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
        check_fields(self, constants=tuple(CONSTANTS))

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """The proof is of the published constants."""
        return "the constants of the released code have no proof" if self.constants == "released" else None

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Eliminate; the lots are drawn from the generator. |S_r| does not depend on the rewards."""
        n_arms, replicates = entered(n_arms, replicates, rewards)
        check_places(self.k, n_arms)
        generator = generator or np.random.default_rng()
        constants = CONSTANTS[self.constants]
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
                break
            beta *= size / (2 * survivors.shape[1])
            delta = math.ldexp(self.delta / constants.later, -r)
            log_term = self._log_term(constants.later, r)
        if constants.ends_at_once and survivors.shape[1] == 0 and aside.shape[1] == self.k:
            return aside[:, 0] if self.k == 1 else np.sort(aside, axis=1)
        last = self._log_term(constants.later, self.deadline)
        pulls = _pulls_of(survivors, count(beta * per_arm * last, n_arms), n_arms)
        if aside.shape[1]:
            again = math.log(constants.again * aside.shape[1] / self.delta)
            np.put_along_axis(pulls, aside, count(per_arm * again, n_arms), axis=1)
        sums = yield pulls
        finalists = np.sort(np.hstack([survivors, aside]), axis=1)
        totals, counts = (np.take_along_axis(table, finalists, axis=1) for table in (sums, pulls))
        chosen = np.argsort(-totals / counts, axis=1, kind="stable")[:, : self.k]  # of equals, the first
        arms = np.take_along_axis(finalists, np.sort(chosen, axis=1), axis=1)
        return arms[:, 0] if self.k == 1 else arms

    def _log_term(self, factor: float, halvings: int) -> float:
        """log(c k 2^r/δ), also where 2^r itself is too large for a number."""
        return math.log(factor * self.k / self.delta) + halvings * math.log(2)

    def _first_factor(self, n_arms: int) -> float:
        """β₁."""
        if self.constants == "published":
            return 1 + iterated_log(self.deadline, n_arms, base=self.k / self.delta)
        fraction = iterated_log(self.deadline, n_arms) / math.log(self.k / self.delta)
        return 1 + fraction if fraction >= 1 else 1.0


def _pulls_of(arms: IntArray, pulls: int, n_arms: int) -> IntArray:
    """The same number of pulls for each listed arm (replicates × some), none for the others."""
    table = np.zeros((len(arms), n_arms), dtype=np.int64)
    if arms.shape[1] == n_arms:
        table[:] = pulls
    else:
        np.put_along_axis(table, arms, pulls, axis=1)
    return table


def _lots(generator: np.random.Generator, replicates: int, pool: int, drawn: int) -> IntArray:
    """Draw so many different places of the first `pool`, each subset as likely as every other."""
    if drawn == 1:
        return np.asarray(generator.integers(pool, size=(replicates, 1)))
    return np.asarray(generator.random((replicates, pool)).argsort(axis=1)[:, :drawn])


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
