"""An adversary inside the event of pausing EBR's proof (notebook 09): sums that just fail to refute."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ebr.algorithms.game import drive
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.pairs import Pairs, binomial_refuted, bounded_refuted, log_terms
from ebr.theory.problems import Problem

Watch = Callable[[IntArray, FloatArray], None]
ROUNDING = 1e-9  # what a sum keeps away from its limit
PARTS = 12  # of a range of sums, in a search


@dataclass(frozen=True, eq=False)
class Grid:
    """The counts of the stages, 0 = b_0 < b_1 < … < b_m, and the level α_{u,s} of each pair of stages."""

    race: PausingElasticBatchRacing
    model: str
    counts: IntArray
    miss: FloatArray

    @property
    def top(self) -> int:
        """m: at (m, m) the sign of the difference decides."""
        return len(self.counts) - 1

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs (u, s), s ≤ u, at which a test may decide: those that have a share of δ."""
        every = ((u, s) for u in range(1, self.top + 1) for s in range(1, u + 1))
        return [(u, s) for u, s in every if s < self.top and self.miss[u, s] > 0]

    def unrefuted(self, high: int, low: int, shift: float, other: FloatArray) -> FloatArray:
        """The largest sum of a leader that does not refute that arms with these sums are better by s."""
        pulls, other_pulls = self.counts[high], self.counts[low]
        if self.model == "Bernoulli":
            limits = np.maximum.accumulate(binomial_limits(self, high, low, shift))
            return np.asarray(np.searchsorted(limits, other) - 1.0)
        if self.model == "bounded":
            return self._unrefuted_whole(high, low, shift, other)
        log_term = self.race.log_terms(self.miss[high, low], self.model)
        width = self.race.sigma * np.sqrt(2 * log_term * (1 / pulls + 1 / other_pulls))
        return np.asarray(pulls * (other / other_pulls - shift + width) - ROUNDING)

    def _unrefuted_whole(self, high: int, low: int, shift: float, other: FloatArray) -> FloatArray:
        """The same for whole sums (rewards 0 and 1); trying several at once costs hardly more."""
        pulls, rows = self.counts[high], np.arange(len(other))
        log_term = log_terms(self.miss[high, low], "bounded")
        edges = np.tile([-1.0, pulls + 1.0], (len(other), 1))  # the leader's sums: not refuted, and refuted
        while (np.diff(edges) > 1).any():
            tried = np.floor(edges[:, :1] + np.diff(edges) * np.arange(1, PARTS) / PARTS)
            pairs = Pairs(tried, pulls, other[:, None], self.counts[low])
            refuted = bounded_refuted(pairs, shift, log_term) & (tried >= 0)
            tried, below = np.hstack([edges[:, :1], tried, edges[:, 1:]]), (~refuted).sum(axis=1)
            edges = np.stack([tried[rows, below], tried[rows, below + 1]], axis=1)
        return np.asarray(np.minimum(edges[:, 0], pulls))


@lru_cache(maxsize=4096)
def binomial_limits(grid: Grid, high: int, low: int, shift: float) -> FloatArray:
    """For every sum of the leader the largest sum of the other arm that is refuted; −1 if none is."""
    sums, miss = np.arange(grid.counts[high] + 1.0), grid.miss[high, low]
    least, most = (
        np.full(len(sums), -1.0),
        np.full(len(sums), float(grid.counts[low])),
    )  # all 1 is not refuted
    while len(chosen := np.flatnonzero(most - least > 1)):
        tried = np.floor((least[chosen] + most[chosen]) / 2)
        counts = (np.full(len(chosen), grid.counts[at]) for at in (high, low))
        pairs = Pairs(sums[chosen], next(counts), tried, next(counts))
        there = binomial_refuted(pairs, shift, np.full(len(chosen), miss))
        least[chosen[there]], most[chosen[~there]] = tried[there], tried[~there]
    return least


@lru_cache(maxsize=64)
def stages(race: PausingElasticBatchRacing, n_arms: int, told: str | None, own: bool = False) -> Grid:
    """The grid of a race: counts are the race's own; levels are the theorem's, or with `own` the race's."""
    pulls, model = race.pulls_by_stage(n_arms, told), race.model(told)
    kept = [
        t for t in range(race.deadline - 1) if pulls[t] < pulls[-1] and (t == 0 or pulls[t] > pulls[t - 1])
    ]
    kept.append(race.deadline - 1)
    theory = PausingElasticBatchRacing(race.deadline, race.epsilon, race.delta, race.sigma, start=race.start)
    miss = np.zeros((len(kept) + 1, len(kept) + 1))
    miss[1:, 1:] = (race if own else theory).shares()[np.ix_(kept, kept)] / (n_arms - 1)
    counts = np.array([0, *pulls[kept]])
    return Grid(race if own else theory, model, counts, miss)


class Tables(NamedTuple):
    """Sums (tables × arms × stages), and which tables lie inside the event."""

    sums: FloatArray
    inside: BoolArray


def attack(grid: Grid, problem: Problem, number: int, seed: int, near: FloatArray | None = None) -> Tables:
    """Tables inside the event 𝒢, and inside 𝒞 as well if `near` says how far a mean may be from expectation.

    The best arm is mostly unlucky. Given its sums, every other arm has a largest sum at each stage with which
    it refutes nothing that the event protects, at any stage of the best arm up to its own: "better by ε" for
    an arm that is worse by ε, "better" for the others. The arm is at this limit or below; or at the limit
    until the last stage, where all good arms but the best have small sums.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 114]))
    counts, in_unit = grid.counts, grid.model in IN_UNIT
    shape = (number, problem.n_arms, len(counts))
    luck = generator.uniform(-3, 1, (number, 1)) + generator.uniform(-1, 1, (number, len(counts)))
    spread = problem.sigma * np.sqrt(counts)
    best = _within(counts * problem.means.max() + luck * spread, grid, problem.means.max(), near)
    highest = _highest(grid, best, problem, spread)
    eager = generator.choice([0.1, 0.6, 1.0], (number, 1, 1))  # how often an arm is at its limit
    lower = generator.random(shape) * np.where(generator.random(shape) < eager, 0, 1)
    good = problem.is_good(np.arange(problem.n_arms), grid.race.epsilon)
    turned = generator.random(number) < 0.3  # good arms, under which the best pauses, fall back at the end
    lower[turned] = np.where(good[:, None] & (np.arange(len(counts)) == grid.top), 1.0, 0.0)
    below = highest * (1 - lower) if in_unit else highest - lower * 4 * spread
    sums = _within(below, grid, problem.means[:, None], near)
    sums[:, problem.best] = best
    others = np.arange(problem.n_arms) != problem.best
    return Tables(sums, np.asarray((sums <= highest)[:, others, 1:].all(axis=(1, 2))))


def _within(sums: FloatArray, grid: Grid, means: FloatArray | float, near: FloatArray | None) -> FloatArray:
    """Sums that rewards can have: whole for rewards 0 and 1, and as near to their expectation as asked."""
    if near is not None:
        sums = np.clip(sums, grid.counts * (means - near), grid.counts * (means + near))
    if grid.model in IN_UNIT:
        sums = np.clip(sums, 0, grid.counts)
        low = 0 if near is None else np.ceil(np.clip(grid.counts * (means - near), 0, None) - ROUNDING)
        sums = np.maximum(np.floor(sums + ROUNDING), low)
    return np.asarray(sums)


def _highest(grid: Grid, best: FloatArray, problem: Problem, spread: FloatArray) -> FloatArray:
    """The largest sums that the event allows each arm, given the best arm's (tables × arms × stages)."""
    bad = ~problem.is_good(np.arange(problem.n_arms), grid.race.epsilon)
    most = grid.counts + (0 if grid.model in IN_UNIT else 10 * spread)
    highest = np.tile(most.astype(np.float64), (len(best), problem.n_arms, 1))
    for u, s in grid.pairs:
        for arms, shift in ((bad, grid.race.epsilon), (~bad, 0.0)):
            limit = grid.unrefuted(u, s, shift, best[:, s])
            highest[:, arms, u] = np.minimum(highest[:, arms, u], limit[:, None])
    just_less = 1 if grid.model in IN_UNIT else ROUNDING * (1 + abs(best[:, -1:]))
    highest[:, bad, -1] = np.minimum(highest[:, bad, -1], best[:, -1:] - just_less)
    return highest


def play(race: PausingElasticBatchRacing, grid: Grid, table: FloatArray, watch: Watch) -> IntArray:
    """Race on tables of sums; `watch` sees each round's pulls and sums. Return the recommended arms."""
    pulled, sums = np.zeros(table.shape[:2], dtype=np.int64), np.zeros(table.shape[:2])

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal pulled, sums
        pulled = pulled + pulls
        at = np.searchsorted(grid.counts, pulled)
        new = np.take_along_axis(table, at[..., None], axis=2)[..., 0] - sums
        sums = sums + new
        watch(pulls, new)
        return new

    return drive(race.play(table.shape[1], len(table), rewards=grid.model), respond)
