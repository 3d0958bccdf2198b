"""A budget B and a deadline T: plans of elimination, and the price of a deadline.

A plan says, before the first reward, how many arms are kept after each round and how often a survivor has
been pulled by then: n = m_1 > m_2 > … > m_{T+1} = 1 and c_1 < … < c_T, for Σ_t m_t (c_t − c_{t−1}) pulls.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ebr.arrays import twelve_digits
from ebr.validation import MOST_PULLS, MOST_ROUNDS, checked, numbers, rounds, whole

_budget = partial(whole, at_least=1, at_most=MOST_PULLS)
_formal = partial(whole, at_least=2, at_most=MOST_PULLS)  # arms in a formula: nothing is played
HALVINGS = 200  # of the interval in which the level of a plan's counts lies: all that a number can take


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
        """What it costs: Σ_t m_t (c_t − c_{t−1})."""
        return sum(arms * new for arms, new in zip(self.pulled, self.new, strict=True))

    @property
    def ranked_by(self) -> tuple[int, ...]:
        """How many rewards of each survivor a round's ranking is made of."""
        return self.new if self.fresh else self.counts


@checked(n_arms=_formal)
def geometric_sizes(n_arms: int, deadline: int) -> tuple[int, ...]:
    """m_{t+1} = ⌈n^{1−t/T}⌉: halving where n = 2^T. Where they are many, rounds may drop nobody."""
    shares = 1 - np.arange(1, deadline + 1) / deadline
    # Twelve digits, lest the last bits of a power make an arm more on some processors.
    sizes = twelve_digits(float(n_arms) ** shares)
    return tuple(math.ceil(size) for size in sizes)


@checked()
def balanced_sizes(n_arms: int, deadline: int) -> tuple[int, ...]:
    """m_{t+1} + 1 = 2((n+1)/2)^{1−t/T}, rounded; each round drops an arm or more, so there are n − 1 at most.

    Without rounding no other sizes have a smaller `price`.
    """
    rounds = min(deadline, n_arms - 1)
    ideal = twelve_digits(2 * ((n_arms + 1) / 2) ** (1 - np.arange(1, rounds + 1) / rounds) - 1)
    sizes, before = [], n_arms
    for left, size in zip(range(rounds, 0, -1), ideal, strict=True):
        before = min(before - 1, max(left, round(size)))
        sizes.append(before)
    return tuple(sizes)


def price(n_arms: int, kept: Sequence[int]) -> float:
    """Λ = Σ_t (m_t − m_{t+1}) / (m_{t+1} + 1), where in round T all of m_T/2 counts.

    With c_t = C/(m_{t+1} + 1) a plan costs CΛ pulls, and errs with about exp(−C / (4σ²H₂)).
    """
    before = np.array([n_arms, *kept[:-1]])
    left = np.array([*kept[:-1], 0])
    return float(((before - left) / (np.array(kept) + 1)).sum())


@checked(n_arms=_formal)
def least_price(n_arms: int, deadline: int) -> float:
    """T (((n+1)/2)^{1/T} − 1) + ½: no plan of T rounds has a smaller Λ."""
    growth = float(((n_arms + 1) / 2) ** (1 / deadline))
    return deadline * (growth - 1) + 0.5


@checked(n_arms=_formal)
def floor_price(n_arms: int, deadline: int) -> float:
    """T (n^{1/T} − 1) + 1: in every plan some c_t m_{t+1} is no larger than the budget over this.

    So on some Gaussian problem no plan's error is smaller, to first order, than exp(−B / (2σ²H₂ ·)) of it.
    """
    growth = float(n_arms ** (1 / deadline))
    return deadline * (growth - 1) + 1


@checked(rounds=rounds)
def best_sizes(weights: ArrayLike, rounds: int) -> tuple[int, ...]:
    """The m_2 > … > m_{T+1} = 1 that minimise Σ_t (m_t − m_{t+1}) w(m_{t+1}), with all of m_T in round T.

    `weights` are w(1), …, w(n−1): what a survivor's pulls are to be, in any unit, when so many are kept. A
    shortest path, in T n² steps. `price` has w(m) = 1/(m+1).
    """
    weight = numbers("weights", weights)
    n_arms = len(weight) + 1
    sizes = np.arange(1, n_arms + 1)
    # cost[m − 1]: the least that remains to be paid with m arms and so many rounds left.
    cost, steps = sizes * weight[0], []
    dropped = (sizes[:, None] - sizes).astype(np.float64)
    for _ in range(1, min(rounds, n_arms - 1)):
        through = np.where(dropped > 0, dropped * np.append(weight, 0.0) + cost, np.inf)
        through[:, 0] = np.inf  # whoever keeps one arm has ended
        steps.append(through.argmin(axis=1))
        cost = through.min(axis=1)
    path = [n_arms]
    for step in reversed(steps):
        path.append(int(step[path[-1] - 1]) + 1)
    return (*path[1:], 1)


@checked(budget=_budget)
def balanced_plan(budget: int, n_arms: int, deadline: int) -> Plan:
    """`balanced_sizes`, with c_t ≥ C/(m_{t+1} + 1) for the largest C that the budget allows (`plan_for`).

    C is at least (B − Σ_t m_t)/Λ, since c_t ≤ C/(m_{t+1} + 1) + t.
    """
    kept = balanced_sizes(n_arms, deadline)
    return plan_for(budget, n_arms, kept, 1 / (np.array(kept) + 1))


@checked(budget=_budget)
def plan_for(budget: int, n_arms: int, kept: Sequence[int], weights: ArrayLike) -> Plan:
    """So many survivors, pulled in proportion to weights that do not fall.

    c_t = max(⌈C w_t⌉, c_{t−1} + 1), with the largest C that the budget allows: a pull or more in every round.
    """
    floor = Plan(n_arms, tuple(kept), tuple(range(1, len(kept) + 1)))
    _feeds(budget, floor.pulls, len(kept), n_arms)
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


@checked(budget=_budget)
def geometric_plan(budget: int, n_arms: int, deadline: int, fresh: bool = True) -> Plan:
    """`geometric_sizes`, with ⌊B/(T m_t)⌋ pulls of each survivor in each round: equal rounds."""
    return _equal_rounds(budget, n_arms, geometric_sizes(n_arms, deadline), fresh)


@checked(budget=_budget)
def halving_plan(budget: int, n_arms: int) -> Plan:
    """Sequential halving (Karnin, Koren and Somekh, ICML 2013): ⌈m/2⌉ are kept, in ⌈log₂ n⌉ equal rounds."""
    kept = [n_arms]
    while kept[-1] > 1:
        kept.append(-(-kept[-1] // 2))
    return _equal_rounds(budget, n_arms, tuple(kept[1:]), fresh=True)


@checked(budget=_budget)
def rejects_plan(budget: int, n_arms: int) -> Plan:
    """Successive rejects (Audibert, Bubeck and Munos, COLT 2010): one arm is dropped in each of n − 1 rounds.

    n_k = ⌈(B − n) / (l (n + 1 − k))⌉ with l = ½ + Σ_{i=2}^n 1/i; where n_k = n_{k−1} two rounds are one.
    """
    whole("n_arms", n_arms, 2, MOST_ROUNDS)  # each has its own round
    _feeds(budget, n_arms + 1, 1, n_arms)
    left = np.arange(n_arms, 1, -1)
    length = 0.5 + (1 / left).sum()
    counts = np.ceil((budget - n_arms) / (length * left)).astype(np.int64)
    return Plan(n_arms, tuple((left - 1).tolist()), tuple(counts.tolist()))


@checked(budget=_budget)
def affordable(most_pulls: Callable[[float], float], budget: int) -> float:
    """The smallest ε (or δ) in (0, 1) that a budget buys, to nine digits.

    `most_pulls` says what a value may cost, and falls in it without bound: n b_T for Sharp EBR with that ε.
    """
    high = 1 - 1e-9
    if most_pulls(high) > budget:
        raise ValueError(f"budget must be at least {most_pulls(high):.0f}, got {budget}")
    low = high / 2
    while most_pulls(low) <= budget:
        low, high = low / 2, low
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if most_pulls(middle) <= budget else (middle, high)
    return high


def _equal_rounds(budget: int, n_arms: int, kept: tuple[int, ...], fresh: bool) -> Plan:
    rounds = len(kept)
    _feeds(budget, n_arms * rounds, rounds, n_arms)
    counts = np.cumsum([budget // (rounds * arms) for arms in (n_arms, *kept[:-1])])
    return Plan(n_arms, kept, tuple(counts.tolist()), fresh)


def _feeds(budget: int, least: int, rounds: int, n_arms: int) -> None:
    """Raise ValueError unless every survivor can be pulled in every round."""
    if budget < least:
        words = f"{rounds} rounds" if rounds > 1 else "one round"
        raise ValueError(f"budget must be at least {least} for {words} on {n_arms} arms, got {budget}")
