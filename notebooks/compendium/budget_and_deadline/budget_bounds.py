"""Error of an elimination plan: upper bounds for all problems of a hardness H₂, a lower bound for some."""

import math
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from scipy.special import gammaln, log_ndtr

from compendium.budget_and_deadline.budgets import Plan, balanced_sizes
from compendium.budget_and_deadline.plan_prices import price
from ebr.arrays import FloatArray, IntArray


def hardness(gaps: ArrayLike) -> float:
    """H₂ = max_{i≥2} i Δ_(i)^{−2}, for the gaps Δ_(2) ≤ … ≤ Δ_(n) of all arms but the best."""
    behind = np.sort(np.asarray(gaps, dtype=np.float64))
    return float((np.arange(2, len(behind) + 2) / behind**2).max())


def error_bound(gaps: ArrayLike, plan: Plan, sigma: float = 0.5) -> float:
    """A bound on P(the arm returned is not the best), for σ-sub-Gaussian rewards: Σ_t of `round_bounds`.

    It falls in every gap: at Δ_(i)² = i/H₂ it holds for all problems of that H₂ (`hardest_gaps`).
    """
    return float(min(1.0, np.exp(round_bounds(gaps, plan, sigma)).sum()))


def round_bounds(gaps: ArrayLike, plan: Plan, sigma: float = 0.5) -> FloatArray:
    """The logarithms of bounds on P(the best arm is dropped in round t).

    If the best arm is dropped, m = m_{t+1} arms beat it, and at least m − k + 1 of them are not among the k
    best. For each k ≤ m and j ≤ m − k + 1, with Markov's inequality for the number of sets of j such arms and
    Chernoff's for each set's mean:

        P ≤ C(r, j)/C(m−k+1, j) · exp(−c_t Δ_(k+1)² j/(j+1) / 2σ²),

    r = n − k, or if less and the round's rewards are fresh, m_t − 1; and for j = 1 the sum of the r largest
    exp(−c_t Δ_(i)²/4σ²), i > k, over m − k + 1. The smallest of these bounds is returned.
    """
    behind = np.sort(np.asarray(gaps, dtype=np.float64))
    rounds = zip(plan.pulled, plan.kept, plan.ranked_by, strict=True)
    return np.array(
        [
            log_round_bound(behind, kept, count / (2 * sigma**2), pulled - 1 if plan.fresh else None)
            if kept < pulled
            else -np.inf
            for pulled, kept, count in rounds
        ]
    )


def log_round_bound(behind: FloatArray, kept: int, information: float, rivals: int | None = None) -> float:
    """The logarithm of `round_bounds`' least term for one round that keeps m arms.

    Parameters
    ----------
    behind
        Δ_(2) ≤ … ≤ Δ_(n).
    kept, information
        m, and c/2σ².
    rivals
        Most arms that can have survived beside the best; n − 1 if left out.
    """
    rivals = len(behind) if rivals is None else rivals
    squares = information * behind**2
    largest = -squares[:kept] / 2  # of the terms i > k, for each k
    terms = np.append(-squares / 2, np.full(rivals, -np.inf))
    sums = np.exp(sliding_window_view(terms, rivals)[:kept] - largest[:, None]).sum(axis=1)
    tails = largest + np.log(sums) - np.log(np.arange(kept, 0, -1))
    ways, share = _sets(len(behind), kept, rivals)
    wide = ways - squares[:kept, None] * share
    return float(min(tails.min(), wide.min(), 0.0))


@lru_cache(maxsize=4)
def _sets(others: int, kept: int, rivals: int) -> tuple[FloatArray, FloatArray]:
    """The logarithm of C(r, j)/C(m−k+1, j), and j/(j+1), for k (rows) and j (columns)."""
    best = np.arange(1, kept + 1)[:, None]  # k
    beaters = kept + 1 - best
    sets = np.minimum(np.arange(1, kept + 1), beaters)  # j
    among = np.minimum(others + 1 - best, rivals)
    return _log_choose(among, sets) - _log_choose(beaters, sets), sets / (sets + 1)


def hardest_gaps(n_arms: int, hardness: float) -> FloatArray:
    """Δ_(i) = √(i/H₂), i = 2 … n: no problem of this H₂ has a smaller gap anywhere."""
    return np.sqrt(np.arange(2, n_arms + 1) / hardness)


def error_floor(plan: Plan, hardness: float, sigma: float = 0.5) -> float:
    """Lower bound on the plan's error, for some problem of this H₂ with Gaussian arms.

    m = m_{t+1} rivals are behind by √((m+1)/H₂), all others far away; arm 1 is dropped in round t if it is
    below, and they all are above, the point that divides the gap as 1 : m.
    """
    kept, pulled = np.array(plan.kept), np.array(plan.pulled)
    reach = np.sqrt(np.array(plan.ranked_by) / ((kept + 1) * hardness)) / sigma
    logs = log_ndtr(-kept * reach) + kept * log_ndtr(-reach)
    return float(np.exp(logs[kept < pulled].max()))


def closed_form_bound(budget: int, n_arms: int, deadline: int, hardness: float, sigma: float = 0.5) -> float:
    """Σ_t (n − m_{t+1}) · exp(−(B − Σ_t m_t) / (4σ²ΛH₂)) for the balanced plan."""
    kept = balanced_sizes(n_arms, deadline)
    spent = n_arms + sum(kept[:-1])
    exponent = (budget - spent) / (4 * sigma**2 * price(n_arms, kept) * hardness)
    return min(1.0, sum(n_arms - m for m in kept) * math.exp(-max(exponent, 0.0)))


def _log_choose(of: IntArray, some: IntArray) -> FloatArray:
    factorials = gammaln(np.arange(1, np.max(of) + 2))
    return np.asarray(factorials[of] - factorials[some] - factorials[of - some])
