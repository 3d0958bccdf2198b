"""Definition 1: the P_γ partition the problems, in order of difficulty, ever more finely as T grows."""

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np

from compendium.findings import Finding
from ebr.arrays import IntArray
from ebr.theory.problems import Gaussian, Problem, hardest_complexity, nonempty_partitions

__all__ = ["c11", "c33"]

Partition = Callable[[Problem, float, int], IntArray]


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
