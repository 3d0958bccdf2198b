"""Two arms, two rounds, the second as long as the first suggests: policies, and bounds on all of them.

A policy pulls each of two Gaussian arms n₁ times, sees the difference x of the means, draws the number n₂ of
further pulls of each from a law P(n₂ | x), and recommends the arm with the larger pooled mean. The best law
is a linear program's solution (`adaptive_program`); its dual is a prior over gaps with a price for errors: by
weak duality the Bayes value of any such pair bounds the worst ratio E[Ñ_2]/H of *every* two-round policy from
below. σ = 1; counts are real numbers.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from compendium.shared.looks import quadrature
from compendium.two_rounds.policies import complexity
from ebr.arrays import FloatArray, IntArray

REACH = 6.0  # standard deviations of x: beyond, the program's policies stop
RUN = 16  # sizes that one lower bound is for
ORDER = 4  # nodes in each cell of x
TOLERANCE = 2e-3  # relative, of the floor


class Adaptive(NamedTuple):
    """n₁, the edges of cells of |x| beyond which it stops, the sizes of n₂, and P(n₂ | cell), a row each."""

    first: float
    edges: FloatArray
    sizes: FloatArray
    chances: FloatArray

    def second(self) -> FloatArray:
        """E[n₂ | cell]."""
        return np.asarray(self.chances @ self.sizes)

    def cost(self, gap: FloatArray | float) -> FloatArray:
        """E[Ñ_2] = 2n₁ + 2 Σ P_Δ(cell) E[n₂ | cell]."""
        return 2 * self.first + 2 * masses(self.edges, self.first, np.atleast_1d(gap)) @ self.second()

    def error(self, gap: float) -> float:
        """P(the worse arm is recommended), by quadrature in each cell; it falls as the gap grows."""
        errors = errors_by_cell(self.edges, self.first, self.sizes, gap)
        beyond = float(ndtr(-(self.edges[-1] + gap) * math.sqrt(self.first / 2)))
        return float((self.chances * errors).sum()) + beyond

    def worst_ratio(self, epsilon: float, widest: float = 0.5) -> float:
        """An upper bound on E[Ñ_2]/H over *all* Δ in [0, widest], closely.

        For x ~ N(Δ, s²) and 0 ≤ g ≤ G, |d²/dΔ² E[g(x)]| ≤ 2φ(1) G/s²: between two gaps at distance h the cost
        exceeds the larger of the two there by at most h²/8 times that. Eight s beyond the last cell the cost
        falls with Δ, and H is least at the widest gap.
        """
        spread = math.sqrt(2 / self.first)
        last = min(float(self.edges[-1]) + 8 * spread, widest)
        gaps = np.union1d(np.arange(0, last, spread / 1000), [epsilon, last])
        costs = np.concatenate([self.cost(part) for part in np.array_split(gaps, 20)])
        bend = 4 * math.exp(-0.5) / math.sqrt(2 * math.pi) * float(self.second().max()) / spread**2
        between = np.maximum(costs[1:], costs[:-1]) + bend * np.diff(gaps) ** 2 / 8
        hard = gaps[1:] <= epsilon  # H = 2/ε² below ε; at ε it is less, and the next interval has that
        ratios = between / np.where(hard, 2 / epsilon**2, 2 / (gaps[1:] + epsilon) ** 2)
        return max(float(ratios.max()), float(costs[-1] / complexity(widest, epsilon)))


class Prior(NamedTuple):
    """Gaps with their probabilities, either arm the better one with ½, and the price of an error at gap ε."""

    gaps: FloatArray
    chances: FloatArray
    price: float


def masses(edges: FloatArray, first: float, gaps: FloatArray) -> FloatArray:
    """P_Δ(|x| in each cell) for x ~ N(Δ, 2/n₁), a row a gap."""
    scale = math.sqrt(first / 2)
    ahead, behind = (ndtr((edges + sign * gaps[:, None]) * scale) for sign in (-1, 1))
    return np.asarray(np.diff(ahead, axis=1) + np.diff(behind, axis=1))


def _density(x: FloatArray, first: float, gap: FloatArray | float) -> FloatArray:
    scale = math.sqrt(first / 2)
    return np.asarray(np.exp(-(((x - gap) * scale) ** 2) / 2) * scale / math.sqrt(2 * math.pi))


def _wrong(x: FloatArray, first: float, sizes: FloatArray, gap: float) -> FloatArray:
    """Density at ±x (x ≥ 0) times the chance that n₂ more pulls leave the worse arm ahead.

    x and sizes are broadcast against one another. The second round's difference is N(Δ, 2/n₂), and the
    pooled one is below 0 if it is below −x n₁/n₂.
    """
    more = np.where(sizes > 0, sizes, 1.0)
    lead, scale = x * first / more, np.sqrt(more / 2)
    ahead, behind = _density(x, first, gap), _density(-x, first, gap)
    going_on = ahead * ndtr(-(gap + lead) * scale) + behind * ndtr(-(gap - lead) * scale)
    return np.where(sizes > 0, going_on, behind)


def errors_by_cell(edges: FloatArray, first: float, sizes: FloatArray, gap: float) -> FloatArray:
    """P_Δ(|x| in the cell and the worse arm is recommended) if n₂ pulls follow, cells × sizes."""
    x, weights = (part.reshape(-1, ORDER) for part in quadrature(edges, ORDER))
    return np.asarray(np.einsum("ckn,ck->cn", _wrong(x[..., None], first, sizes, gap), weights))


def second_sizes(epsilon: float, delta: float, step: float) -> FloatArray:
    """0, and a geometric grid of n₂ with this step, to beyond what a single round would need."""
    top = 5 * math.log(1 / delta) / epsilon**2
    return np.append(0.0, top * np.exp(-np.arange(0, math.log(400), math.log(step))[::-1]))


def bayes_value(prior: Prior, first: float, epsilon: float, delta: float, step: float = 1.004) -> float:
    """A lower bound, for this n₁, on Σ π(Δ) E[Ñ_2]/H + λ (error − δ) over every law of n₂, 0 to ∞.

    The sum is least where n₂ is, for each x, the best number for that x. More pulls never raise the error, so
    between two sizes the cost is at least the lower one's, the error at least the upper one's.
    """
    weights = prior.chances / complexity(prior.gaps, epsilon)
    x, volumes = quadrature(np.linspace(0, REACH * math.sqrt(2 / first), 41), ORDER)
    used, gaps = weights > 0, prior.gaps[weights > 0, None]
    pull = 2 * weights[used] @ (_density(x, first, gaps) + _density(-x, first, gaps))
    sizes = second_sizes(epsilon, delta, step)

    def blame(row: IntArray, size: IntArray) -> FloatArray:
        return prior.price * _wrong(x[row], first, sizes[size], epsilon)

    least = np.minimum(_least_sums(pull, sizes, blame), pull * sizes[-1])  # the last interval is open
    return float(2 * first * weights.sum() + volumes @ least - prior.price * delta)


def _least_sums(
    pull: FloatArray, sizes: FloatArray, blame: Callable[[IntArray, IntArray], FloatArray]
) -> FloatArray:
    """The least of pull · (the size before) + blame over the sizes, for each row; 0 has none before.

    The blame falls as sizes grow, so one number bounds a run of sizes from below: most runs are never looked
    into.
    """
    rows = np.arange(len(pull))[:, None]
    ends = np.append(np.arange(0, len(sizes) - 1, RUN), len(sizes) - 1)
    before = sizes[np.maximum(ends - 1, 0)]
    at_ends = blame(rows, ends[None])
    least = (pull[:, None] * before + at_ends).min(axis=1)
    bounds = pull[:, None] * sizes[ends[:-1]] + at_ends[:, 1:]
    row, run = np.nonzero(bounds < least[:, None])
    inside = np.minimum(ends[run][:, None] + np.arange(1, RUN + 1), ends[run + 1][:, None])
    found = pull[row][:, None] * sizes[inside - 1] + blame(row[:, None], inside)
    np.minimum.at(least, row, found.min(axis=1))
    return np.asarray(least)


def floor(prior: Prior, epsilon: float, delta: float, start: float) -> float:
    """A lower bound on the worst ratio of *every* two-round policy, n₁ fixed or drawn: inf over n₁ > 0.

    Whoever has n pulls of each arm may ignore some, so V(m) ≥ V(n) − 2(n − m) Σ π/H for m ≤ n: that bounds
    what lies between two values of n₁, and where it does not do, the interval is halved. Beyond the last
    n₁, the first round alone costs more than V(start).
    """
    slope = 2 * float((prior.chances / complexity(prior.gaps, epsilon)).sum())
    here = bayes_value(prior, start, epsilon, delta)
    last = (here + prior.price * delta) / slope
    edges = list(np.geomspace(start / 8, max(last, start), 9))
    values = [bayes_value(prior, edge, epsilon, delta) for edge in edges]
    parts = list(zip([0.0, *edges[:-1]], edges, values, strict=True))
    least = min(here, *values)
    bound, allowed = least, TOLERANCE * abs(here)
    while parts:
        low, high, value = parts.pop()
        between = value - slope * (high - low)
        if between >= least - allowed:
            bound = min(bound, between)
            continue
        middle = (low + high) / 2
        inner = bayes_value(prior, middle, epsilon, delta)
        least = min(least, inner)
        parts += [(low, middle, inner), (middle, high, value)]
    return bound
