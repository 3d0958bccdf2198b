"""The partial order of the P_γ, and what EBR pays on problems that are easier in it."""

import math
import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from compendium.shared import cost_bounds
from compendium.shared.distributions import norm
from compendium.shared.findings import FALSE_ALARM, Evidence, Finding, counted, exceeds, measured
from compendium.shared.lineup import MakeElastic
from compendium.shared.problem_sets import (
    DELTA,
    hardest,
    inside_partition,
    nonempty_partitions,
    twelve_digits,
)
from compendium.upper_bounds.lemmas import pulls_ratio
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Gaussian, Problem

Index = tuple[int, ...]
Bound = Callable[[Problem, float, int, float], float]


class Cost(NamedTuple):
    """A problem of P_γ: Theorem 1's bound, EBR's mean pulls with their error, and races above the bound."""

    gamma: Index
    bound: float
    mean: float
    error: float
    above: int


def easier_is_cheaper(
    shapes: Iterable[tuple[int, int]],
    epsilons: Iterable[float],
    runs: int,
    seed: int,
    make: MakeElastic = ElasticBatchRacing,
    bound: Bound = cost_bounds.partition_upper_bound,
) -> Finding:
    """Check C47: EBR needs fewer pulls on problems that are easier in the partial order of the P_γ.

    This is proved for Theorem 1's bound. For single problems it is false: `overtaken` has examples. Means are
    compared by normal tests, at FALSE_ALARM over all pairs of a kind.
    """
    groups = [_costs(*place, epsilon, runs, seed, make, bound) for place in shapes for epsilon in epsilons]
    worst, inner = ([group[kind] for group in groups] for kind in (0, 1))
    problems = [cost for costs in worst + inner for cost in costs]
    disorder = sum(a.bound >= b.bound for a, b in _pairs(worst))
    above = sum(cost.above for cost in problems)
    evidence = [
        Evidence("pairs γ ≤ γ′ with Theorem 1's bounds out of order", disorder, allowed="0"),
        counted("P(a race is above its P_γ's bound)", above, runs * len(problems), "", f"≤ δ = {DELTA}"),
        _dearer("the hardest of each P_γ", _pairs(worst), runs),
        _dearer("any of P_γ, γ ≤ γ′", _pairs(inner), runs),
        _dearer("any of P_γ, γ < γ′ for every arm", _pairs(inner, strictly=True), runs),
    ]
    hardest_wrong, inner_wrong = (row.value > 0 for row in evidence[2:4])
    beaten = []
    for where, (easy, hard), epsilon, deadline in overtaken():
        algorithm = make(deadline, epsilon, DELTA)
        ratio, error = pulls_ratio(*(simulate(algorithm, nu, runs, seed).pulls for nu in (easy, hard)))
        evidence.append(measured("pulls on the easier over the harder", ratio, error, runs, where, "≤ 1"))
        beaten.append(ratio - 1 > norm.isf(FALSE_ALARM) * error)
    kept = not any(exceeds(cost.above, runs, DELTA, len(problems)) for cost in problems)
    repaired = disorder == 0 and kept and not hardest_wrong
    holds = repaired and not (inner_wrong or any(beaten))
    return Finding("C47", holds, tuple(evidence), "proved", repaired)


def overtaken() -> Iterator[tuple[str, tuple[Problem, Problem], float, int]]:
    """Pairs of an easier and a harder problem, with their ε and T, where the harder one costs EBR less.

    First pair: the arms of the last bin tie in the easier problem, and lie at the upper end of that bin in
    the harder one. Second pair: every index is smaller in the easier problem. But the harder one has two best
    arms; the better of their two means is a better leader, which drops the many other arms sooner.
    """
    tie, apart = np.array([0, 0, 0.9]), np.array([0, 0.22, 0.22])  # √0.05 = 0.2236
    both = (Gaussian(1 - tie, 0.5), Gaussian(1 - apart, 0.5))
    yield "n = 3, T = 2, γ = (2,2,1) ≤ (2,2,2)", both, 0.05, 2
    edge = 0.1 ** (2 / 3)
    alone, helped = np.full(200, edge * (1 + 1e-9)), np.full(200, edge * (1 - 1e-9))
    alone[0] = helped[:2] = 0
    both = (Gaussian(twelve_digits(1 - alone), 0.5), Gaussian(twelve_digits(1 - helped), 0.5))
    yield "n = 200, T = 3, γ = (2,…,2) < (3,…,3)", both, 0.1, 3


def _costs(
    n_arms: int, deadline: int, epsilon: float, runs: int, seed: int, make: MakeElastic, bound: Bound
) -> tuple[list[Cost], list[Cost]]:
    """EBR's cost on the hardest problem of every non-empty P_γ, and on random problems inside it."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 47, n_arms, deadline]))
    algorithm = make(deadline, epsilon, DELTA)

    def cost(gamma: Index, problem: Problem) -> Cost:
        pulls = simulate(algorithm, problem, runs, seed).pulls
        most = bound(problem, epsilon, deadline, DELTA)
        mean, error = float(pulls.mean()), float(pulls.std(ddof=1) / math.sqrt(runs))
        return Cost(gamma, most, mean, error, int((pulls > most).sum()))

    full = nonempty_partitions(n_arms, deadline)
    inner = [
        (gamma, inside_partition(gamma, epsilon, deadline, generator)) for gamma in full for _ in range(3)
    ]
    worst = [(gamma, hardest(gamma, epsilon, deadline, shrink=0.999)) for gamma in full]
    return [cost(*place) for place in worst], [cost(*place) for place in inner]


def _pairs(groups: Iterable[list[Cost]], strictly: bool = False) -> list[tuple[Cost, Cost]]:
    """Every pair of a group with γ ≤ γ′ and not equal; strictly, γ_i < γ′_i for every arm."""
    order = operator.lt if strictly else operator.le
    return [
        (a, b)
        for costs in groups
        for a, b in product(costs, costs)
        if a.gamma != b.gamma and all(map(order, a.gamma, b.gamma))
    ]


def _dearer(where: str, pairs: list[tuple[Cost, Cost]], runs: int) -> Evidence:
    """Number of pairs with significantly more mean pulls on the easier problem than on the harder one."""
    limit = norm.isf(FALSE_ALARM / len(pairs))
    excess = [(a.mean - b.mean) / max(math.hypot(a.error, b.error), 1e-9 * b.mean) for a, b in pairs]
    what = "pairs of problems with more pulls on the easier"
    wrong = sum(bool(one > limit) for one in excess)
    return Evidence(what, wrong, f"{where}, of {len(pairs):,} pairs", runs=runs, allowed="0")
