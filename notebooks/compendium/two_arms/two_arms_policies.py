"""Two arms, T rounds whose sizes depend on what was seen: policies, their costs and their errors.

With means ½ ± Δ/2 every pull of either arm is, up to a sign, one draw of N(Δ/2, σ²). After N pulls in all,
τ = N ε²/4σ² is the *information*, and the signed sum, in units of 2σ²/ε, is X ~ N(rτ, τ) with r = Δ/ε. Then
E[Ñ_T]/H = 2σ² w(r) E_r[τ], with w = 1 below r = 1 and (1 + r)² from there to r = 1/ε, and a policy that
recommends by the sign of X is (ε, δ)-PAC if it errs with at most δ at r = 1. The looks lie on a geometric
grid of τ; z = |X|/√τ is cut into cells, in each of which a policy does the same. σ = 1; counts are real.

All is weighed against r = 0: there z is half-normal, and e^{−r²τ/2} cosh(r√τ z) is the likelihood ratio.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from compendium.two_arms.two_arms_grid import REACH, Grid, gap_grid, likelihood, weight
from compendium.two_rounds.adaptive import Prior
from ebr.arrays import FloatArray

EARLY = 12.0  # times ε^{2−2/T}: the candidates for a policy's first look
LEANING = 0.3  # the weight of each way to go on as the temperature rises; stopping has 1
NEGLIGIBLE = 1e-9  # a chance of a first look
TOLD = 20.0  # r√τ beyond which none goes on: for z below REACH the likelihood ratio is less than 1e-45


class Plan(NamedTuple):
    """P(first τ), and after each round but the last P(lag | τ_j, cell), [j, lag, cell]; lag 0 is to stop."""

    first: FloatArray
    rounds: tuple[FloatArray, ...]


class Profile(NamedTuple):
    """What a policy does: E[τ_1], how it goes on, and its error at r = 1, which falls as the gap grows.

    growth[j, z] is the expected growth of τ after a look at τ_j and z, times the probability of that place at
    r = 0: E_r[τ_T] = E[τ_1] + Σ growth · likelihood ratio.
    """

    grid: Grid
    start: float
    growth: FloatArray
    error: float

    def ratios(self, gaps: FloatArray) -> FloatArray:
        """E[Ñ_T]/H for gaps in units of ε."""
        return np.asarray(2 * weight(gaps) * self._decided(gaps).sum(axis=1))

    def worst_ratio(self, widest: float) -> float:
        """An upper bound on E[Ñ_T]/H over *all* gaps from 0 to `widest`, in units of ε.

        The part F_j of E_r[τ] that is decided at τ_j has log F_j + r²τ_j/2 convex in r, as the logarithm of a
        Laplace transform, and log w is concave, with second derivative −2/(1+r)². So between two gaps at
        distance h, w F_j is at most its geometric interpolation times exp(h²(τ_j/8 + 1/4(1+r)²)), r the
        lower one. Below r = 1, w is 1, and the same holds a fortiori.
        """
        steps = math.ceil(math.log(widest) / 0.01)
        hard, rest = np.linspace(0, 1, 101), np.geomspace(1, widest, steps + 1)
        return max(self._between(hard, np.ones(len(hard))), self._between(rest, weight(rest)))

    def _between(self, gaps: FloatArray, weights: FloatArray) -> float:
        """The bound of `worst_ratio` on one run of gaps, with w at each; the larger end bounds both."""
        decided = 2 * weights[:, None] * self._decided(gaps)
        curve = np.append(0.0, self.grid.information) / 8 + 0.25 / (1 + gaps[:-1, None]) ** 2
        excess = np.exp(np.diff(gaps)[:, None] ** 2 * curve)
        return float(max((part * excess).sum(axis=1).max() for part in (decided[:-1], decided[1:])))

    def _decided(self, gaps: FloatArray) -> FloatArray:
        """E[τ_1], and the parts of E_r[τ_T] that are decided at each τ_j: a row a gap."""
        decided = np.zeros((len(gaps), 1 + len(self.growth)))
        decided[:, 0] = self.start
        for j in np.flatnonzero(self.growth.any(axis=1)):
            information = self.grid.information[j]
            near = gaps * math.sqrt(information) < TOLD
            decided[near, 1 + j] = likelihood(gaps[near, None], information, self.grid.nodes) @ self.growth[j]
        return decided


def pace(grid: Grid, gaps: FloatArray, chances: FloatArray) -> FloatArray:
    """What a unit of τ costs by this prior, Σ 2πw · likelihood ratio, at each τ and z."""
    used = chances > 0
    return np.asarray(np.tensordot(2 * weight(gaps[used]) * chances[used], grid.tilts(gaps[used]), 1))


def _hopes(grid: Grid, later: FloatArray, stop: int) -> FloatArray:
    """The expectation of what comes `lag` steps on, [j, lag, z], from the first τ_j up to `stop`."""
    size = len(grid.information)
    hopes = np.zeros((stop, size, len(grid.nodes)))
    for lag in range(1, size):
        rows = min(stop, size - lag)
        hopes[:rows, lag] = later[lag : lag + rows] @ grid.move(lag).T
    return hopes


def _options(
    grid: Grid, paces: FloatArray, price: float, later: FloatArray | None, stop: int
) -> Iterator[FloatArray]:
    """For each τ_j up to `stop` what each lag costs from there on, lags × z; to stop is the first row."""
    size, risks = len(grid.information), grid.risks()
    reach = 0.0 if later is None else REACH
    hopes = None if later is None else _hopes(grid, later, stop)
    for j in range(stop):
        options = (grid.information[j:] - grid.information[j])[:, None] * paces[j]
        options[1:] += price * grid.errors(j, reach)
        if hopes is not None:
            options[1:] += hopes[j, 1 : size - j]
        options[0] = price * risks[j]
        yield options


def rate(prior: Prior) -> float:
    """What a unit of τ costs before anything is seen: Σ 2πw."""
    return 2 * float(weight(prior.gaps) @ prior.chances)


def plan(grid: Grid, deadline: int, prior: Prior, epsilon: float, temperature: float) -> tuple[Plan, float]:
    """A policy that is nearly the best against a prior: going on with P ∝ exp(−cost/scale), and its value.

    So it changes smoothly with the prior. The scale is the temperature times what doubling τ would cost by a
    prior that is the same for all; the value is the Bayes value with as much credit for randomness, before
    the refund λδ. The grid must have one node a cell.
    """
    gaps, size = gap_grid(epsilon), len(grid.information)
    common = np.append(np.full(len(gaps) - 1, 0.5 / len(gaps)), 0.5 + 0.5 / len(gaps))
    scales = temperature * grid.information[:, None] * pace(grid, gaps, common)
    paces, later = pace(grid, prior.gaps, prior.chances), None
    rounds: list[FloatArray] = []
    for number in range(deadline - 1, 0, -1):
        stop = grid.first_looks(EARLY) if number == 1 else size
        chances, values = np.zeros((stop, size, len(grid.nodes))), np.empty((stop, len(grid.nodes)))
        for j, costs in enumerate(_options(grid, paces, prior.price, later, stop)):
            chances[j, : len(costs)], values[j] = _soft_least(costs, scales[j])
        rounds.insert(0, chances)
        later = values
    assert later is not None, "one round needs no plan"
    looks = grid.information[: len(later)]
    ahead = later @ grid.start() + prior.price * ndtr(-REACH - np.sqrt(looks))
    costs = rate(prior) * looks + ahead
    scale = temperature * rate(Prior(gaps, common, 0.0)) * 2 * grid.unit
    first, value = _soft_least(costs[:, None], np.array([scale]), 1.0)
    first[first < NEGLIGIBLE] = 0
    return Plan(np.append(first / first.sum(), np.zeros(size - len(looks))), tuple(rounds)), float(value[0])


def _soft_least(
    costs: FloatArray, scale: FloatArray, leaning: float = LEANING
) -> tuple[FloatArray, FloatArray]:
    """P ∝ exp(−cost/scale) down the rows, and −scale log Σ exp(−cost/scale)."""
    least = costs.min(axis=0)
    chances = np.exp((least - costs) / scale)
    chances[1:] *= leaning
    total = chances.sum(axis=0)
    return chances / total, least - scale * np.log(total)


def profile(grid: Grid, policy: Plan) -> Profile:
    """What a policy does, round by round; the grid may have several nodes in each of the policy's cells."""
    size, risks = len(grid.information), grid.risks()
    growth = np.zeros_like(risks)
    arrived = policy.first[:, None] * grid.start()
    error = float(policy.first @ ndtr(-REACH - np.sqrt(grid.information)))
    inside = len(grid.nodes) // policy.rounds[0].shape[2]
    for number, chances in enumerate(policy.rounds, start=1):
        last = number == len(policy.rounds)
        reach, going = 0.0 if last else REACH, np.zeros_like(arrived)
        reached = np.flatnonzero(arrived.any(axis=1)).tolist()
        for j in reached:
            law = np.repeat(chances[j, : size - j], inside, axis=1) * arrived[j]
            growth[j] += (grid.information[j:] - grid.information[j]) @ law
            error += float(law[0] @ risks[j] + (law[1:] * grid.errors(j, reach)).sum())
        for lag in range(1, 1 if last else size - reached[0]):
            here = slice(reached[0], min(reached[-1] + 1, size - lag))
            law = np.repeat(chances[here, lag], inside, axis=1) * arrived[here]
            going[here.start + lag : here.stop + lag] += law @ grid.move(lag)
        arrived = going
    return Profile(grid, float(policy.first @ grid.information), growth, error)
