"""The cost theorem of pausing EBR (notebook A1): which arms may lead, and which may be pulled on."""

import numpy as np
from scipy.special import ndtri

from compendium.sharp_racing.pausing_adversary import Grid
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.pairs import OWN, Pairs, normal_refuted
from ebr.theory.problems import Problem

LOSS = 6  # a leader may be behind by ε and this many d_{t−2}
HALVED = 2e-5  # an upper bound on the length of a range of the leader's means after all halvings
JUST_MORE = 1 + 1e-9


class Costs:
    """The theorem's numbers for a grid: d_s, w_{u,s}, and the gaps that a round allows."""

    def __init__(self, grid: Grid, n_arms: int) -> None:
        self.grid, self.race = grid, grid.race
        counts = np.maximum(grid.counts, 1)
        log_term = np.log(2 * n_arms * grid.top / self.race.delta)
        self.near: FloatArray = np.asarray(self.race.sigma * np.sqrt(2 * log_term / counts))

    def highest(self, round_: int) -> int:
        """u_t, the leader's stage in a round before the last."""
        return 1 if round_ == 1 else min(round_ + self.race.ahead, self.grid.top)

    def _at(self, round_: int) -> float:
        """d_{t−2}, d_1 for the first rounds and d_m for the last."""
        return float(self.near[min(max(round_ - 2, 1), self.grid.top)])

    def leads(self, round_: int) -> float:
        """The leader of round t has a smaller gap than this, ε + 6 d_{t−2}."""
        return self.race.epsilon + LOSS * self._at(round_)

    def width(self, high: int, low: IntArray | int) -> FloatArray:
        """w_{u,s}: the test with shift s refutes once μ̂_1̂ − μ̂_i + s exceeds it."""
        pulls, other_pulls, miss = self.grid.counts[high], self.grid.counts[low], self.grid.miss[high, low]
        if self.grid.model == "Bernoulli":
            own = -ndtri(OWN / 2 * miss) / 2 * (1 / np.sqrt(pulls) + 1 / np.sqrt(other_pulls))
            return np.asarray(np.maximum(own + 1 / pulls + 1 / other_pulls + HALVED, self.race.epsilon))
        log_term = self.race.log_terms(miss, self.grid.model)
        return np.asarray(self.race.sigma * np.sqrt(2 * log_term * (1 / pulls + 1 / other_pulls)))

    def pulled(self, round_: int, stage: IntArray | int) -> FloatArray:
        """An arm at this stage after round t that does not lead is pulled on only if its gap is smaller."""
        high = self.highest(round_)
        near = LOSS * self._at(round_) + self.near[high] + self.near[stage]
        return np.asarray(near + self.width(high, stage))

    def last_stages(self, gaps: FloatArray) -> IntArray:
        """The highest stage of an arm before the last round, if it never rests before it pauses for good."""
        last = np.full(len(gaps), max(self.race.deadline - 1, 1))
        for t in range(self.race.deadline - 2, 0, -1):
            enough = max(self.leads(t), float(self.pulled(t, min(t, self.grid.top))))
            last = np.where((last == t + 1) & (gaps >= enough), t, last)
        return np.array([self.highest(t) for t in last])


def left_open(costs: Costs) -> int:
    """The number of rounds and stages at which an arm whose gap `pulled` excludes is still open.

    The leader has its largest gap and its lowest mean inside 𝒞, the arm its highest mean. For the normal
    tests only: there sums can be at these limits.
    """
    grid, race, found = costs.grid, costs.race, 0
    if grid.model in IN_UNIT:
        return 0
    for t in range(1, race.deadline - 1):
        high = costs.highest(t)
        stage = np.array([s for u, s in grid.pairs if u == high])
        counts = np.full(len(stage), grid.counts[high]), grid.counts[stage]
        leader = np.full(len(stage), -costs.leads(t) - costs.near[high])
        other = costs.near[stage] - costs.pulled(t, stage) * JUST_MORE
        pairs = Pairs(leader * counts[0], counts[0], other * counts[1], counts[1])
        log_term = race.log_terms(grid.miss[high, stage], grid.model)
        found += int((~normal_refuted(pairs, race.epsilon, log_term, race.sigma)).sum())
    return found


class Follower:
    """Watches races round by round; `broken` marks those that contradict the cost theorem."""

    def __init__(self, costs: Costs, problem: Problem, races: int) -> None:
        self.costs, self.gaps = costs, problem.means.max() - problem.means
        self.allowed = costs.last_stages(self.gaps)
        shape = (races, problem.n_arms)
        self.pulls, self.sums = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        self.straight, self.broken = np.ones(shape, dtype=bool), np.zeros(races, dtype=bool)
        self.rounds = np.zeros(races, dtype=np.int64)
        self.round = 0

    def watch(self, pulls: IntArray, sums: FloatArray) -> None:
        """Take in a round. Before the last, its pulls are checked against the state a round ago."""
        early = self.round < self.costs.race.deadline - 1
        if early and self.round:
            self._check(pulls > 0)
        self.pulls, self.sums = self.pulls + pulls, self.sums + sums
        self.rounds += pulls.any(axis=1)
        self.round += 1
        self.straight &= pulls > 0
        beyond = self.straight & (self._stage() > self.allowed)
        self.broken |= early & beyond.any(axis=1)

    def _stage(self) -> IntArray:
        return np.asarray(np.searchsorted(self.costs.grid.counts, self.pulls))

    def _check(self, pulled: BoolArray) -> None:
        stage, costs = self._stage(), self.costs
        highest = stage == costs.highest(self.round)
        leader = np.where(highest, self.sums, -np.inf).argmax(axis=1)
        leads = np.arange(self.gaps.size) == leader[:, None]
        too_bad = pulled.any(axis=1) & (self.gaps[leader] >= costs.leads(self.round))
        needless = pulled & ~leads & (self.gaps >= costs.pulled(self.round, stage))
        self.broken |= too_bad | needless.any(axis=1)
