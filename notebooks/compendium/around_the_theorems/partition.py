"""Definition 1: the P_γ partition the problems in order of difficulty, more finely as T grows."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from operator import le, lt

import numpy as np

from compendium.shared.cost_bounds import hardest_complexity, partition
from compendium.shared.findings import Evidence, Finding
from compendium.shared.problem_sets import nonempty_partitions
from ebr.arrays import IntArray
from ebr.theory.problems import Gaussian, Problem

Partition = Callable[[Problem, float, int], IntArray]
Complexity = Callable[[Sequence[int], float, int], float]  # of γ, ε and T: an end of H over P_γ
SHAPES = tuple(product((2, 3, 4), (2, 3)))  # n and T for which every γ is checked
EPSILON = 0.05  # ε for these shapes
DEADLINES = (10, 10**6)  # towards T = ∞
FINE = 0.01  # ε for these deadlines


def definition_1(partition: Partition = partition, supremum: Complexity = hardest_complexity) -> Finding:
    """Check C11: the P_γ partition the problems, and a harder γ means a larger H."""
    places = [_place(partition, *place) for place in product((0.3, 0.05, 0.001), range(1, 13))]
    gaps, doubtful, misplaced, twice = np.sum(places, axis=0).tolist()
    orders = [_order(supremum, *shape) for shape in SHAPES]
    empty, pairs, disordered, strictly_disordered = np.sum(orders, axis=0).tolist()
    ends, full = f"of {gaps} at the bins' ends", f"both non-empty, {pairs} pairs"
    evidence = (
        Evidence("gaps with no index or two", doubtful, ends, allowed="0"),
        Evidence("gaps with a wrong index", misplaced, ends, allowed="0"),
        Evidence("gaps in two printed bins of the same index", twice, f"all at T = 1, {ends}"),
        Evidence("pairs γ ≤ γ′ with sup H > sup H′", empty, "P_γ′ is empty", allowed="0"),
        Evidence("pairs γ ≤ γ′ with sup H > sup H′", disordered, full, allowed="0"),
        Evidence("pairs γ < γ′ with sup H > inf H′", strictly_disordered, full, allowed="0"),
    )
    ordered = misplaced == disordered == strictly_disordered == 0
    return Finding("C11", ordered and doubtful == empty == 0, evidence, "proved", ordered)


def _place(partition: Partition, epsilon: float, deadline: int) -> tuple[int, int, int, int]:
    """Counts of gaps near the ends of bins: all, with no index or two, with a wrong index, in two bins."""
    edges = epsilon ** (np.arange(deadline + 1) / deadline)
    gaps = np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, 1), [0.0, 1.0]])
    gaps = gaps[gaps <= 1]
    doubtful = misplaced = twice = 0
    for gap in gaps:
        found = _bins(gap, epsilon, deadline)
        twice += len(found) > 1
        doubtful += len(set(found)) != 1
        index = partition(Gaussian(1 - np.array([0, gap]), 1.0), epsilon, deadline)[0]
        exact = 1.0 - (1.0 - gap) == gap  # otherwise rounding gives the problem another gap
        misplaced += bool(exact and index not in found)
    return len(gaps), doubtful, misplaced, twice


def _bins(gap: float, epsilon: float, deadline: int) -> list[int]:
    """The bins of Definition 1 as printed that hold a gap."""
    power = epsilon ** (np.arange(deadline + 1) / deadline)
    middle = [k for k in range(2, deadline) if power[k] <= gap < power[k - 1]]
    return [1] * int(power[1] <= gap <= 1) + middle + [deadline] * int(0 <= gap < power[deadline - 1])


def _order(supremum: Complexity, n_arms: int, deadline: int) -> tuple[int, int, int, int]:
    """Counts of pairs γ ≤ γ′: P_γ′ empty; both non-empty; of the latter, out of order; γ < γ′ out of order.

    The supremum over an empty P_γ′ is −∞, below every other one. Neighbours, γ′ = γ + 1, share an end: sup H
    is inf H′.
    """
    full = nonempty_partitions(n_arms, deadline)
    every = product(range(1, deadline + 1), repeat=n_arms)
    empty = sum(all(map(le, lower, upper)) for upper in set(every) - set(full) for lower in full)
    below = [pair for pair in product(full, full) if all(map(le, *pair))]
    strictly = [pair for pair in below if all(map(lt, *pair))]
    largest = {gamma: supremum(gamma, EPSILON, deadline) for gamma in full}
    # The upper ends of bins are open, so H(ν′) exceeds the infimum.
    least = {gamma: easiest_complexity(gamma, EPSILON, deadline) * (1 + 1e-12) for gamma in full}
    disordered = sum(largest[lower] > largest[upper] for lower, upper in below)
    apart = sum(largest[lower] > least[upper] for lower, upper in strictly)
    for lower, upper in strictly:
        if all(after == before + 1 for before, after in zip(lower, upper, strict=True)):
            apart += not math.isclose(largest[lower], least[upper], rel_tol=1e-9)
    return empty, len(below), disordered, apart


def easiest_complexity(gamma: Sequence[int], epsilon: float, deadline: int) -> float:
    """The infimum of H over P_γ: every gap at its bin's upper end."""
    return float(sum((epsilon ** ((index - 1) / deadline) + epsilon) ** -2 for index in gamma))


def shrinks(infimum: Complexity = easiest_complexity) -> Finding:
    """Check C33: as T → ∞ the P_γ shrink to single problems; sup H / inf H measures how far."""
    ratios, evidence = [], []
    for where, share in (("the middle bin", 2), ("the last bin, [0, ε^(1−1/T))", 1)):
        for deadline, allowed in zip(DEADLINES, ("", "→ 1"), strict=True):
            place = ((deadline // share,) * 2, FINE, deadline)
            ratios.append(hardest_complexity(*place) / infimum(*place))
            where_and_when = f"{where}, T = {deadline:,}, ε = {FINE}"
            evidence.append(Evidence("sup H / inf H", ratios[-1], where_and_when, allowed=allowed))
    _, middle, _, last = ratios
    return Finding("C33", last < 1.001, tuple(evidence), "proved", middle < 1.001 and last < 4.001)
