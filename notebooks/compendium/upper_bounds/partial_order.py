"""The partial order of the P_γ, and what EBR pays on problems that are easier in it."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from compendium.shared.distributions import norm
from compendium.shared.findings import FALSE_ALARM, Evidence, Finding, counted, exceeds, measured
from compendium.shared.lineup import MakeElastic
from compendium.shared.problem_sets import DELTA, inside_partition
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import FloatArray, twelve_digits
from ebr.simulation.simulate import simulate
from ebr.theory import bounds
from ebr.theory.problems import Gaussian, Problem, hardest, nonempty_partitions

Index = tuple[int, ...]
Bound = Callable[[Problem, float, int, float], float]


class Cost(NamedTuple):
    """A problem of P_γ: Theorem 1's bound, EBR's mean pulls with their error, races above the bound."""

    gamma: Index
    bound: float
    mean: float
    error: float
    above: int


class Order(NamedTuple):
    """Pairs in the partial order, and the pulls on the easier less the harder, in standard errors."""

    pairs: int
    excess: FloatArray


def easier_is_cheaper(
    shapes: Iterable[tuple[int, int]],
    epsilons: Iterable[float],
    runs: int,
    seed: int,
    make: MakeElastic = ElasticBatchRacing,
    bound: Bound = bounds.partition_upper_bound,
) -> Finding:
    """Check C47: EBR needs fewer pulls on problems that are easier in the partial order of the P_γ.

    Proved of Theorem 1's bound; on single problems it is false, `overtaken` has the examples. Means are
    compared by normal tests at FALSE_ALARM over all pairs of a kind.
    """
    groups = [_costs(*place, epsilon, runs, seed, make, bound) for place in shapes for epsilon in epsilons]
    disorder, problems = (
        _disordered_bounds(groups),
        [cost for worst, inner in groups for cost in worst + inner],
    )
    hardest_pairs = _pairs(worst for worst, _ in groups)
    inner_pairs = _pairs(inner for _, inner in groups)
    strict = _pairs((inner for _, inner in groups), strictly=True)
    above = sum(cost.above for cost in problems)
    what = "pairs of problems with more pulls on the easier"
    evidence = [
        Evidence("pairs γ ≤ γ′ with Theorem 1's bounds out of order", disorder, allowed="0"),
        counted("P(a race is above its P_γ's bound)", above, runs * len(problems), "", f"≤ δ = {DELTA}"),
        _counted_pairs("the hardest of each P_γ", what, hardest_pairs, runs),
        _counted_pairs("any of P_γ, γ ≤ γ′", what, inner_pairs, runs),
        _counted_pairs("any of P_γ, γ < γ′ for every arm", what, strict, runs),
    ]
    beaten = []
    for where, (easy, hard), epsilon, deadline in overtaken():
        ratio, error = _ratio(make(deadline, epsilon, DELTA), easy, hard, runs, seed)
        evidence.append(measured("pulls on the easier over the harder", ratio, error, runs, where, "≤ 1"))
        beaten.append(ratio - 1 > norm.isf(FALSE_ALARM) * error)
    kept = not any(exceeds(cost.above, runs, DELTA, len(problems)) for cost in problems)
    repaired = disorder == 0 and kept and not _wrong(hardest_pairs)
    holds = repaired and not (_wrong(inner_pairs) or any(beaten))
    return Finding("C47", holds, tuple(evidence), "proved", repaired)


def overtaken() -> Iterator[tuple[str, tuple[Problem, Problem], float, int]]:
    """Pairs of an easier and a harder problem, with their ε and T, of which the harder costs EBR less.

    In the first the arms of the last bin tie on the easier side and lie at that bin's upper end on the harder
    one. In the second every index is smaller on the easier side; but a second best arm, as good as the best,
    makes a better leader of two, who drops the many others sooner.
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
    """EBR's cost on the hardest problem of every non-empty P_γ, and on some inside it."""
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


def _below(lower: Sequence[int], upper: Sequence[int], strictly: bool) -> bool:
    """γ ≤ γ′ and not equal; strictly, γ_i < γ′_i for every arm."""
    pairs = list(zip(lower, upper, strict=True))
    return all(a < b for a, b in pairs) if strictly else lower != upper and all(a <= b for a, b in pairs)


def _pairs(groups: Iterable[list[Cost]], strictly: bool = False) -> Order:
    """The easier problem's mean pulls less the harder's, in standard errors, of every ordered pair."""
    excess = [
        (a.mean - b.mean) / max(math.hypot(a.error, b.error), 1e-9 * b.mean)
        for costs in groups
        for a, b in product(costs, costs)
        if _below(a.gamma, b.gamma, strictly)
    ]
    return Order(len(excess), np.array(excess))


def _disordered_bounds(groups: list[tuple[list[Cost], list[Cost]]]) -> int:
    """Pairs γ ≤ γ′ in which the bound of P_γ is not below that of P_γ′."""
    return sum(
        a.bound >= b.bound
        for worst, _ in groups
        for a, b in product(worst, worst)
        if _below(a.gamma, b.gamma, strictly=False)
    )


def _wrong(order: Order) -> int:
    return int((order.excess > norm.isf(FALSE_ALARM / order.pairs)).sum())


def _counted_pairs(where: str, what: str, order: Order, runs: int) -> Evidence:
    return Evidence(what, _wrong(order), f"{where}, of {order.pairs:,} pairs", runs=runs, allowed="0")


def _ratio(
    algorithm: ElasticBatchRacing, easy: Problem, hard: Problem, runs: int, seed: int
) -> tuple[float, float]:
    """Mean pulls on the easier problem over those on the harder, with the standard error."""
    pulls = [simulate(algorithm, problem, runs, seed).pulls for problem in (easy, hard)]
    ratio = float(pulls[0].mean() / pulls[1].mean())
    return ratio, ratio * math.hypot(*(p.std(ddof=1) / p.mean() / math.sqrt(runs) for p in pulls))
