"""Prices of a deadline: the least cost of elimination plans."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def price(n_arms: int, kept: Sequence[int]) -> float:
    """Λ = Σ_t (m_t − m_{t+1}) / (m_{t+1} + 1), where in round T all of m_T/2 counts.

    With c_t = C/(m_{t+1} + 1) a plan costs CΛ pulls, and errs with about exp(−C / (4σ²H₂)).
    """
    before = np.array([n_arms, *kept[:-1]])
    left = np.array([*kept[:-1], 0])
    return float(((before - left) / (np.array(kept) + 1)).sum())


def least_price(n_arms: int, deadline: int) -> float:
    """T (((n+1)/2)^{1/T} − 1) + ½: no plan of T rounds has a smaller Λ."""
    growth = float(((n_arms + 1) / 2) ** (1 / deadline))
    return deadline * (growth - 1) + 0.5


def floor_price(n_arms: int, deadline: int) -> float:
    """T (n^{1/T} − 1) + 1: in every plan some c_t m_{t+1} is no larger than the budget over this.

    So on some Gaussian problem no plan's error is smaller, to first order, than exp(−B / (2σ²H₂ ·)) of it.
    """
    growth = float(n_arms ** (1 / deadline))
    return deadline * (growth - 1) + 1


def best_sizes(weights: ArrayLike, rounds: int) -> tuple[int, ...]:
    """The m_2 > … > m_{T+1} = 1 that minimise Σ_t (m_t − m_{t+1}) w(m_{t+1}), with all of m_T in round T.

    `weights` are w(1), …, w(n−1): what a survivor's pulls are to be, in any unit, when so many are kept. A
    shortest path, in T n² steps. `price` has w(m) = 1/(m+1).
    """
    weight = np.asarray(weights, dtype=np.float64)
    n_arms = len(weight) + 1
    sizes = np.arange(1, n_arms + 1)
    # cost[m − 1]: the least that remains to be paid with m arms and so many rounds left.
    cost, steps = sizes * weight[0], []
    dropped = (sizes[:, None] - sizes).astype(np.float64)
    for _ in range(1, min(rounds, n_arms - 1)):
        through = np.where(dropped > 0, dropped * np.append(weight, 0.0) + cost, np.inf)
        through[:, 0] = np.inf  # a plan that keeps one arm has ended
        steps.append(through.argmin(axis=1))
        cost = through.min(axis=1)
    path = [n_arms]
    for step in reversed(steps):
        path.append(int(step[path[-1] - 1]) + 1)
    return (*path[1:], 1)
