"""The linear program behind `adaptive`: two arms, two rounds, and the best law of n₂ for given n₁.

Cost and error are linear in P(n₂ | cell of x), so the least worst ratio E[Ñ_2]/H over the gaps is a linear
program, and its dual is a prior over gaps with a price for errors. σ = 1; counts are real numbers.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize_scalar
from scipy.sparse import block_array, block_diag, coo_array, eye_array, hstack, vstack
from scipy.special import ndtr

from compendium.two_rounds import adaptive
from compendium.two_rounds.adaptive import Adaptive, Prior
from compendium.two_rounds.policies import complexity
from ebr.arrays import BoolArray, FloatArray, IntArray

SAFETY = 1e-6  # of δ: the program's own tolerance must not break the guarantee


class Program(NamedTuple):
    """The linear program's solution: the ratio, the policy for each n₁ and its share, and the dual."""

    ratio: float
    policies: tuple[Adaptive, ...]
    shares: FloatArray
    prior: Prior


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
    errors = adaptive.errors_by_cell(edges, first, sizes, epsilon) / delta
    beyond = float(ndtr(-(edges[-1] + epsilon) * math.sqrt(first / 2))) / delta
    costs = 2 * sizes[-1] * adaptive.masses(edges, first, grid) / weights[:, None]
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
    return np.linspace(0, adaptive.REACH * math.sqrt(2 / first), cells + 1)


def best_adaptive(
    lowest: float, highest: float, epsilon: float, delta: float, widest: float = 0.5, step: float = 1.15
) -> tuple[float, Adaptive]:
    """The best n₁ between two bounds, by a scalar search: the program's ratio and its policy."""
    sizes = adaptive.second_sizes(epsilon, delta, step)
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
    sizes = adaptive.second_sizes(epsilon, delta, 1.3)
    coarse = solve(firsts, epsilon, delta, sizes, widest, cells=40, gaps=80).prior
    if coarse.chances[-1] in (0, 1):
        return coarse

    def mixed(share: float) -> Prior:
        others = np.append(coarse.chances[:-1], 0.0)
        rest = (1 - share) / others.sum()
        return Prior(coarse.gaps, rest * others + share * (coarse.gaps == widest), rest * coarse.price)

    def loss(share: float) -> float:
        return -min(adaptive.bayes_value(mixed(share), n, epsilon, delta, step=1.03) for n in firsts)

    best: Any = minimize_scalar(loss, bounds=(0, 0.95), options={"xatol": 2e-3})
    return mixed(float(best.x))
