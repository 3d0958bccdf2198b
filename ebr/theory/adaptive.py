"""Two arms, two rounds, the second as long as the first suggests: best policies, and bounds that they meet.

A policy pulls each of two Gaussian arms n₁ times, sees the difference x of the means, draws the number n₂ of
further pulls of each from a law P(n₂ | x), and recommends the arm with the larger pooled mean. Cost and error
are linear in P, so the least worst ratio E[Ñ_2]/H over the gaps, for given n₁, is a linear program. Its dual
is a prior over gaps with a price for errors: by weak duality the Bayes value of any such pair bounds the
worst ratio of *every* two-round policy from below. σ = 1; counts are real numbers.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize_scalar
from scipy.sparse import block_array, block_diag, coo_array, eye_array, hstack, vstack
from scipy.special import ndtr

from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.policies import complexity

__all__ = [
    "Adaptive",
    "Prior",
    "Program",
    "bayes_value",
    "best_adaptive",
    "best_prior",
    "floor",
    "second_sizes",
    "solve",
]

REACH = 6.0  # standard deviations of x: beyond, the program's policies stop
SAFETY = 1e-6  # of δ: the program's own tolerance must not break the guarantee
RUN = 16  # sizes that one lower bound is for
NODES, WEIGHTS = np.polynomial.legendre.leggauss(4)  # in each cell of x


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
        return 2 * self.first + 2 * _masses(self.edges, self.first, np.atleast_1d(gap)) @ self.second()

    def error(self, gap: float) -> float:
        """P(the worse arm is recommended), by quadrature in each cell; it falls as the gap grows."""
        errors = _errors(self.edges, self.first, self.sizes, gap)
        beyond = float(ndtr(-(self.edges[-1] + gap) * math.sqrt(self.first / 2)))
        return float((self.chances * errors).sum()) + beyond

    def worst_ratio(self, epsilon: float, widest: float = 0.5, fineness: int = 1000) -> float:
        """An upper bound on E[Ñ_2]/H over *all* Δ in [0, widest], the closer the finer the grid of gaps.

        For x ~ N(Δ, s²) and 0 ≤ g ≤ G, |d²/dΔ² E[g(x)]| ≤ 2φ(1) G/s²: between two gaps at distance h the cost
        exceeds the larger of the two there by at most h²/8 times that. Eight s beyond the last cell the cost
        falls with Δ, and H is least at the widest gap.
        """
        spread = math.sqrt(2 / self.first)
        last = min(float(self.edges[-1]) + 8 * spread, widest)
        gaps = np.union1d(np.arange(0, last, spread / fineness), [epsilon, last])
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


class Program(NamedTuple):
    """The linear program's solution: the ratio, the policy for each n₁ and its share, and the dual."""

    ratio: float
    policies: tuple[Adaptive, ...]
    shares: FloatArray
    prior: Prior


def _masses(edges: FloatArray, first: float, gaps: FloatArray) -> FloatArray:
    """P_Δ(|x| in each cell) for x ~ N(Δ, 2/n₁), a row a gap."""
    scale = math.sqrt(first / 2)
    ahead, behind = (ndtr((edges + sign * gaps[:, None]) * scale) for sign in (-1, 1))
    return np.asarray(np.diff(ahead, axis=1) + np.diff(behind, axis=1))


def _quadrature(edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes in each cell and their weights, cells × nodes."""
    half = np.diff(edges)[:, None] / 2
    return edges[:-1, None] + half * (1 + NODES), half * WEIGHTS


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


def _errors(edges: FloatArray, first: float, sizes: FloatArray, gap: float) -> FloatArray:
    """P_Δ(|x| in the cell and the worse arm is recommended) if n₂ pulls follow, cells × sizes."""
    x, weights = _quadrature(edges)
    return np.asarray(np.einsum("ckn,ck->cn", _wrong(x[..., None], first, sizes, gap), weights))


def second_sizes(epsilon: float, delta: float, step: float) -> FloatArray:
    """0, and a geometric grid of n₂ with this step, to beyond what a single round would need."""
    top = 5 * math.log(1 / delta) / epsilon**2
    return np.append(0.0, top * np.exp(-np.arange(0, math.log(400), math.log(step))[::-1]))


def solve(
    firsts: Sequence[float],
    epsilon: float,
    delta: float,
    sizes: FloatArray,
    widest: float = 0.5,
    cells: int = 100,
    gaps: int = 100,
) -> Program:
    """The least worst ratio over a grid of gaps up to `widest`, error ≤ δ, n₁ drawn among the `firsts`.

    Unknown are the share of each n₁, its joint law with n₂ (one of the `sizes`) in each cell of |x|, and the
    ratio, which is to be small. By symmetry x and −x share their law. It is an error if nothing is PAC.
    """
    grid = np.concatenate([[0.0, np.nextafter(epsilon, 0)], np.geomspace(epsilon, widest, gaps)])
    grid[-1] = widest
    blocks = [_block(first, grid, epsilon, delta, sizes, cells) for first in firsts]
    ends = np.cumsum([block.laws.shape[1] for block in blocks])  # the last unknown of each is its share
    laws: Any = block_diag([*(block.laws for block in blocks), coo_array((0, 1))])
    shares: Any = coo_array((np.ones(len(ends)), (np.zeros(len(ends), int), ends - 1)), (1, ends[-1] + 1))
    ratio: Any = coo_array(np.append(-np.ones(len(grid)), 0.0)[:, None])
    found: Any = linprog(
        np.eye(1, ends[-1] + 1, ends[-1])[0],
        A_ub=hstack([*(block.limits for block in blocks), ratio], format="csc"),
        b_ub=np.append(np.zeros(len(grid)), 1 - SAFETY),
        A_eq=vstack([laws, shares], format="csc"),
        b_eq=np.append(np.zeros(laws.shape[0]), 1.0),
        options={"presolve": False},  # which finds nothing to remove, in three times the solver's time
    )
    if not found.success:
        raise ValueError(f"no policy with first rounds of {firsts} pulls and these sizes is PAC")
    parts = np.split(found.x[:-1], ends[:-1])
    laws_found = (block.chances(part, cells, len(sizes)) for block, part in zip(blocks, parts, strict=True))
    policies = tuple(
        Adaptive(first, _edges(first, cells), sizes, law)
        for first, law in zip(firsts, laws_found, strict=True)
    )
    dual = np.maximum(-found.ineqlin.marginals, 0)
    prior = Prior(grid, dual[:-1] / dual[:-1].sum(), float(dual[-1] / (delta * epsilon)))
    return Program(float(found.fun) / epsilon, policies, found.x[ends - 1], prior)


class Block(NamedTuple):
    """What the program has of one n₁: its cells and sizes, and the rows ≤ and = of its unknowns.

    Unknown are the chance of each useful pair of cell and size, E[n₂] in each cell over the largest size, and
    the share of this n₁. With E[n₂] by itself few entries are not 0: costs depend on nothing else.
    """

    cell: IntArray
    size: IntArray
    limits: Any
    laws: Any

    def chances(self, part: FloatArray, cells: int, sizes: int) -> FloatArray:
        """P(n₂ | cell) by what is found; where the program gives this n₁ no share it stops at once."""
        chances = np.zeros((cells, sizes))
        chances[self.cell, self.size] = np.maximum(part[: len(self.cell)], 0)
        chances[chances.sum(axis=1) == 0, 0] = 1.0
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _block(
    first: float, grid: FloatArray, epsilon: float, delta: float, sizes: FloatArray, cells: int
) -> Block:
    """Limits: cost/H at each gap, in units of 1/ε, and error/δ. Laws: Σ chances = share, and E[n₂]."""
    edges, weights = _edges(first, cells), complexity(grid, epsilon) / epsilon
    errors = _errors(edges, first, sizes, epsilon) / delta
    beyond = float(ndtr(-(edges[-1] + epsilon) * math.sqrt(first / 2))) / delta
    costs = 2 * sizes[-1] * _masses(edges, first, grid) / weights[:, None]
    cell, size = np.nonzero([_useful(sizes, row) for row in errors])
    pairs = cell, np.arange(len(cell))
    limits: list[list[Any]] = [
        [None, coo_array(costs), coo_array(2 * first / weights[:, None])],
        [coo_array(errors[cell, size][None]), None, coo_array([[beyond]])],
    ]
    laws: list[list[Any]] = [
        [coo_array((np.ones(len(cell)), pairs)), None, coo_array(-np.ones((cells, 1)))],
        [coo_array((sizes[size] / sizes[-1], pairs)), -eye_array(cells), None],
    ]
    return Block(cell, size, block_array(limits), block_array(laws))


def _useful(sizes: FloatArray, errors: FloatArray) -> BoolArray:
    """Where the errors lie on their convex hull from below: else a lot between two sizes errs less."""
    kept: list[int] = []
    for new, size in enumerate(sizes):
        while len(kept) > 1:
            first, last = kept[-2:]
            slope = (errors[new] - errors[first]) / (size - sizes[first])
            if errors[last] < errors[first] + slope * (sizes[last] - sizes[first]):
                break
            kept.pop()
        kept.append(new)
    return np.isin(np.arange(len(sizes)), kept)


def _edges(first: float, cells: int) -> FloatArray:
    return np.linspace(0, REACH * math.sqrt(2 / first), cells + 1)


def best_adaptive(
    lowest: float, highest: float, epsilon: float, delta: float, widest: float = 0.5, step: float = 1.15
) -> tuple[float, Adaptive]:
    """The best n₁ between two bounds, by a scalar search: the program's ratio and its policy."""
    sizes = second_sizes(epsilon, delta, step)

    programs: dict[float, Program] = {}

    def ratio(log_first: float) -> float:
        programs[log_first] = solve([math.exp(log_first)], epsilon, delta, sizes, widest)
        return programs[log_first].ratio

    best: Any = minimize_scalar(ratio, bounds=(math.log(lowest), math.log(highest)), options={"xatol": 4e-3})
    program = programs[best.x]
    return program.ratio, program.policies[0]


def best_prior(first: float, epsilon: float, delta: float, widest: float = 0.5) -> Prior:
    """A prior whose Bayes value is large for every n₁: the dual of a coarse program that may draw n₁.

    `first` is the best n₁; much smaller ones are among the rest, as a prior on few gaps may be told by them.
    The program's grids being coarse, the share of the widest gap is then chosen anew.
    """
    firsts = (first * np.array([0.01, 0.1, 0.3, 0.6, 0.9, 1.0, 1.1, 1.5])).tolist()
    sizes = second_sizes(epsilon, delta, 1.3)
    coarse = solve(firsts, epsilon, delta, sizes, widest, cells=40, gaps=80).prior
    if coarse.chances[-1] in (0, 1):
        return coarse

    def mixed(share: float) -> Prior:
        others = np.append(coarse.chances[:-1], 0.0)
        rest = (1 - share) / others.sum()
        return Prior(coarse.gaps, rest * others + share * (coarse.gaps == widest), rest * coarse.price)

    def loss(share: float) -> float:
        return -min(bayes_value(mixed(share), n, epsilon, delta, step=1.03) for n in firsts)

    best: Any = minimize_scalar(loss, bounds=(0, 0.95), options={"xatol": 2e-3})
    return mixed(float(best.x))


def bayes_value(
    prior: Prior, first: float, epsilon: float, delta: float, step: float = 1.004, panels: int = 40
) -> float:
    """A lower bound, for this n₁, on Σ π(Δ) E[Ñ_2]/H + λ (error − δ) over every law of n₂, 0 to ∞.

    The sum is least where n₂ is, for each x, the best number for that x. More pulls never raise the error, so
    between two sizes the cost is at least the lower one's, the error at least the upper one's.
    """
    weights = prior.chances / complexity(prior.gaps, epsilon)
    x, volumes = _quadrature(np.linspace(0, REACH * math.sqrt(2 / first), panels + 1))
    x, volumes = x.ravel(), volumes.ravel()
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


def floor(prior: Prior, epsilon: float, delta: float, start: float, tolerance: float = 2e-3) -> float:
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
    bound, allowed = least, tolerance * abs(here)
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
