"""Statements about numbers alone: Definition 1, the Remark, and the bounds compared with one another."""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import product

import numpy as np

from ebr import bounds
from ebr.baselines import iterated_log
from ebr.findings import Finding
from ebr.parameters import IntArray
from ebr.problems import Gaussian, Problem, hardest_complexity, nonempty_partitions

__all__ = ["c10", "c11", "c33", "c34", "c38", "problems_at_the_ends"]

Partition = Callable[[Problem, float, int], IntArray]


def problems_at_the_ends() -> Iterator[tuple[Problem, float, int, float]]:
    """Many problems for the inequalities between bounds: two gaps, at and beside the ends of every bin."""
    for epsilon, deadline, delta in product((0.3, 0.05, 0.01), (1, 2, 3, 7, 20, 100), (0.3, 0.01)):
        edges = epsilon ** (np.arange(1, deadline + 1) / deadline)
        for gap in np.concatenate([edges * (1 - 1e-6), edges * (1 + 1e-6), [0.0, 0.9]]):
            for sigma in (0.5, 0.02):
                yield Gaussian(1 - np.array([0, gap, max(gap, 0.5)]), sigma), epsilon, deadline, delta


def c10(rounds_needed: float = 2.0) -> Finding:
    """Check C10, the Remark: T ≥ 2 log(1/ε) ⇒ ε^{−2/T} ≤ e, at the smallest such T, where it is largest."""
    epsilons = np.geomspace(1e-12, 0.999, 20001)
    deadlines = np.maximum(np.ceil(rounds_needed * np.log(1 / epsilons)), 1)
    factors = epsilons ** (-2 / deadlines)
    evidence = f"ε^(−2/T) at most {factors.max():.6f} at T = ⌈2 log(1/ε)⌉ for {len(epsilons)} values of ε"
    return Finding("C10", bool(factors.max() <= math.e * (1 + 1e-12)), evidence)


def _bins(gap: float, epsilon: float, deadline: int) -> list[int]:
    """The bins of Definition 1 as printed that hold a gap."""
    power = epsilon ** (np.arange(deadline + 1) / deadline)
    middle = [k for k in range(2, deadline) if power[k] <= gap < power[k - 1]]
    return [1] * int(power[1] <= gap <= 1) + middle + [deadline] * int(0 <= gap < power[deadline - 1])


def c11(partition: Partition = Problem.partition, sizes: Iterable[int] = (2, 3, 4)) -> Finding:
    """Check C11: the P_γ partition the problems, and harder γ means larger H; every bin's ends, every γ."""
    twice = doubtful = wrong = gaps = 0
    for epsilon, deadline in product((0.3, 0.05, 0.001), range(1, 13)):
        edges = epsilon ** (np.arange(deadline + 1) / deadline)
        inner = np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, 1), [0.0, 1.0]])
        for gap in inner[inner <= 1]:
            gaps += 1
            found = _bins(gap, epsilon, deadline)
            twice += len(found) > 1
            doubtful += len(set(found)) != 1
            index = partition(Gaussian(1 - np.array([0, gap]), 1.0), epsilon, deadline)[0]
            exact = 1.0 - (1.0 - gap) == gap  # else the problem's own gap is another number
            wrong += bool(exact and index not in found)
    strict = loose = empty = pairs = 0
    for n_arms, deadline in product(sizes, (2, 3)):
        full = nonempty_partitions(n_arms, deadline)
        every = list(product(range(1, deadline + 1), repeat=n_arms))
        empty += sum(  # sup over the empty set is −∞, below the supremum of a P_γ with γ ≤ γ′
            all(a <= b for a, b in zip(lower, upper, strict=True))
            for upper in set(every) - set(full)
            for lower in full
        )
        for lower, upper in product(full, full):
            low, high = (hardest_complexity(g, 0.05, deadline) for g in (lower, upper))
            if all(a <= b for a, b in zip(lower, upper, strict=True)):
                pairs += 1
                loose += low > high
            if all(a < b for a, b in zip(lower, upper, strict=True)):
                # The upper ends of bins are open: H(ν′) is above the infimum.
                strict += low > _easiest_complexity(upper, 0.05, deadline) * (1 + 1e-12)
    evidence = (
        f"of {gaps} gaps at the bins' ends {doubtful} have no index or two, {wrong} are misplaced "
        f"({twice}, all at T = 1, lie in two printed bins of the same index); "
        f"γ ≤ γ′ with an empty P_γ′: {empty} pairs; both non-empty: {loose} of {pairs} pairs out of order, "
        f"{strict} strict ones"
    )
    ordered = wrong == 0 and loose == 0 and strict == 0
    return Finding("C11", ordered and doubtful == 0 and empty == 0, evidence, ordered)


def _easiest_complexity(gamma: tuple[int, ...], epsilon: float, deadline: int) -> float:
    """The infimum of H over P_γ: every gap at its bin's upper end."""
    return float(sum((epsilon ** ((index - 1) / deadline) + epsilon) ** -2 for index in gamma))


def c33(deadlines: Iterable[int] = (10, 100, 1000, 10**6)) -> Finding:
    """Check C33: as T → ∞ the P_γ shrink to single problems; sup H / inf H of the bins tells how far."""
    epsilon = 0.01
    inner: list[float] = []
    last: list[float] = []
    for deadline in deadlines:
        easy, hard = (deadline // 2,) * 2, (deadline,) * 2
        for gamma, into in ((easy, inner), (hard, last)):
            widest = hardest_complexity(gamma, epsilon, deadline)
            into.append(widest / _easiest_complexity(gamma, epsilon, deadline))
    evidence = (
        f"sup H / inf H at T = 10 … 10⁶: {inner[0]:.3f} … {inner[-1]:.6f} in the middle bin, "
        f"{last[0]:.3f} … {last[-1]:.6f} in the last one, gaps in [0, ε^(1−1/T)) (ε = {epsilon})"
    )
    return Finding("C33", last[-1] < 1.001, evidence, inner[-1] < 1.001 and last[-1] < 4.001)


def c34(constant: float = 640) -> Finding:
    """Check C34: Theorem 1's bound is tighter than Theorem 2's."""
    first, second = [], []
    for place in problems_at_the_ends():
        printed = bounds.problem_upper_bound(*place, printed=True, constant=constant)
        first.append(bounds.partition_upper_bound(*place, printed=True) / printed)
        second.append(bounds.hardest_upper_bound(*place, printed=True) / printed)
    evidence = (
        f"Theorem 1 over Theorem 2 on {len(first)} problems at the bins' ends: first form at most "
        f"{max(first):.3f}, second form at most {max(second):.3f}"
    )
    return Finding("C34", max(second) <= 1, evidence, max(first) <= 0.5)


def _passive_factor(n_arms: float, delta: float) -> float:
    return math.log(n_arms / delta)


def c38(
    deadline: int = 15, delta: float = 0.01, passive: Callable[[float, float], float] = _passive_factor
) -> Finding:
    """Check C38: passive's factor log(n/δ) is kδER's, log(1/δ) + ilog^T(n), but for a lower-order term."""
    ratios = {}
    for exponent in (2, 10, 100, 300):
        n_arms = 10.0**exponent
        other = math.log(1 / delta) + iterated_log(deadline, n_arms)
        ratios[exponent] = passive(n_arms, delta) / other
    words = ", ".join(f"n = 10^{exponent}: {ratio:.1f}" for exponent, ratio in ratios.items())
    evidence = f"passive's factor over kδER's at T = {deadline}, δ = {delta:g}: {words}"
    return Finding("C38", max(ratios.values()) < 2, evidence)
