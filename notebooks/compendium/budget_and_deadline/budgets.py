"""A budget B and a deadline T: plans of elimination.

A plan says, before the first reward, how many arms are kept after each round and how often a survivor has
been pulled by then: n = m_1 > m_2 > … > m_{T+1} = 1 and c_1 < … < c_T, for Σ_t m_t (c_t − c_{t−1}) pulls.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from compendium.shared.problem_sets import twelve_digits

HALVINGS = 200  # of the interval for the level of a plan's counts: more than a float can resolve


class Plan(NamedTuple):
    """How a budget is spent.

    Attributes
    ----------
    n_arms
        n.
    kept
        m_2, …, m_{T+1}: how many arms survive each round; the last is 1.
    counts
        c_1, …, c_T: how often a survivor has been pulled by the end of each round, all told.
    fresh
        Whether a round ranks the arms by its own rewards alone, and not by all so far.
    """

    n_arms: int
    kept: tuple[int, ...]
    counts: tuple[int, ...]
    fresh: bool = False

    @property
    def new(self) -> tuple[int, ...]:
        """c_t − c_{t−1}: the pulls of each survivor in each round."""
        return tuple(after - before for before, after in zip((0, *self.counts), self.counts, strict=False))

    @property
    def pulled(self) -> tuple[int, ...]:
        """m_1, …, m_T: how many arms are pulled in each round."""
        return (self.n_arms, *self.kept[:-1])

    @property
    def pulls(self) -> int:
        """Total pulls: Σ_t m_t (c_t − c_{t−1})."""
        return sum(arms * new for arms, new in zip(self.pulled, self.new, strict=True))

    @property
    def ranked_by(self) -> tuple[int, ...]:
        """Rewards of each survivor that a round's ranking uses."""
        return self.new if self.fresh else self.counts


def geometric_sizes(n_arms: int, deadline: int) -> tuple[int, ...]:
    """m_{t+1} = ⌈n^{1−t/T}⌉: halving where n = 2^T. With many rounds, some drop no arm."""
    shares = 1 - np.arange(1, deadline + 1) / deadline
    # Twelve digits, so that the last bits of a power do not add an arm on some processors.
    sizes = twelve_digits(float(n_arms) ** shares)
    return tuple(math.ceil(size) for size in sizes)


def balanced_sizes(n_arms: int, deadline: int) -> tuple[int, ...]:
    """m_{t+1} + 1 = 2((n+1)/2)^{1−t/T}, rounded; each round drops an arm or more, so there are n − 1 at most.

    Without rounding no other sizes have a smaller Λ = Σ_t (m_t − m_{t+1}) / (m_{t+1} + 1), with all of m_T in
    round T.
    """
    rounds = min(deadline, n_arms - 1)
    ideal = twelve_digits(2 * ((n_arms + 1) / 2) ** (1 - np.arange(1, rounds + 1) / rounds) - 1)
    sizes, before = [], n_arms
    for left, size in zip(range(rounds, 0, -1), ideal, strict=True):
        before = min(before - 1, max(left, round(size)))
        sizes.append(before)
    return tuple(sizes)


def balanced_plan(budget: int, n_arms: int, deadline: int) -> Plan:
    """`balanced_sizes`, with c_t ≥ C/(m_{t+1} + 1) for the largest C that the budget allows (`plan_for`).

    C is at least (B − Σ_t m_t)/Λ, since c_t ≤ C/(m_{t+1} + 1) + t.
    """
    kept = balanced_sizes(n_arms, deadline)
    return plan_for(budget, n_arms, kept, 1 / (np.array(kept) + 1))


def plan_for(budget: int, n_arms: int, kept: Sequence[int], weights: ArrayLike) -> Plan:
    """A plan with these survivors, whose counts are proportional to weights that do not fall.

    c_t = max(⌈C w_t⌉, c_{t−1} + 1), with the largest C that the budget allows: a pull or more in every round.
    """
    floor = Plan(n_arms, tuple(kept), tuple(range(1, len(kept) + 1)))
    weight = np.asarray(weights, dtype=np.float64)
    rounds = np.arange(len(kept))

    def at(level: float) -> Plan:
        counts = np.maximum(np.ceil(level * weight), rounds + 1).astype(np.int64)
        increasing = np.maximum.accumulate(counts - rounds) + rounds
        return floor._replace(counts=tuple(increasing.tolist()))

    low, high = 0.0, budget / float(weight.min())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if at(middle).pulls <= budget else (low, middle)
    return at(low)


def geometric_plan(budget: int, n_arms: int, deadline: int, fresh: bool = True) -> Plan:
    """`geometric_sizes`, with ⌊B/(T m_t)⌋ pulls of each survivor in each round: equal rounds."""
    return _equal_rounds(budget, n_arms, geometric_sizes(n_arms, deadline), fresh)


def halving_plan(budget: int, n_arms: int) -> Plan:
    """Sequential halving (Karnin, Koren and Somekh, ICML 2013): ⌈m/2⌉ are kept, in ⌈log₂ n⌉ equal rounds."""
    kept = [n_arms]
    while kept[-1] > 1:
        kept.append(-(-kept[-1] // 2))
    return _equal_rounds(budget, n_arms, tuple(kept[1:]), fresh=True)


def rejects_plan(budget: int, n_arms: int) -> Plan:
    """Successive rejects (Audibert, Bubeck and Munos, COLT 2010): one arm is dropped in each of n − 1 rounds.

    n_k = ⌈(B − n) / (l (n + 1 − k))⌉ with l = ½ + Σ_{i=2}^n 1/i; where n_k = n_{k−1} two rounds are one.
    """
    left = np.arange(n_arms, 1, -1)
    length = 0.5 + (1 / left).sum()
    counts = np.ceil((budget - n_arms) / (length * left)).astype(np.int64)
    return Plan(n_arms, tuple((left - 1).tolist()), tuple(counts.tolist()))


def _equal_rounds(budget: int, n_arms: int, kept: tuple[int, ...], fresh: bool) -> Plan:
    rounds = len(kept)
    counts = np.cumsum([budget // (rounds * arms) for arms in (n_arms, *kept[:-1])])
    return Plan(n_arms, kept, tuple(counts.tolist()), fresh)
