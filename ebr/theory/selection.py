"""Selection at once: every arm is pulled equally often, and the one with the largest sum is recommended.

An error, a choice that is worse than the best by ε or more, is likeliest where all others are worse by just ε
(the slippage configuration): an arm that is worse still wins less often, and one that is nearer to the best
is no error and only takes wins from those that are. (Bechhofer, Ann. Math. Stat. 25, 1954.)
"""

import math
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtri

from ebr.theory.pairs import sign_count
from ebr.validation import checked, count, rare

STEP = 1 / 16  # of the trapezoidal rule for the normal density, whose error is far below rounding
PLACES = np.arange(-10, 10 + STEP, STEP)  # around the best arm's place when another wins


def normal_slippage_error(distance: float, n_arms: int) -> float:
    """1 − ∫ Φ(y + h)^{n−1} φ(y) dy: how often one of n − 1 N(0, 1) variables exceeds one of N(h, 1).

    Sums of b rewards N(μ, σ²) each, with all others ε worse, are so with h = ε √b / σ. The error itself is
    computed, not 1 less it, so that small ones are as accurate as large.
    """
    best = PLACES - distance / 2
    some = -np.expm1((n_arms - 1) * log_ndtr(best + distance))
    return float(np.exp(-(best**2) / 2) @ some * STEP / math.sqrt(2 * math.pi))


@checked(delta=rare)
@lru_cache(maxsize=4096)
def bechhofer_distance(n_arms: int, delta: float) -> float:
    """The h ≥ 0 at which the normal slippage error is δ; 0 if a random choice errs no more often."""
    from scipy.optimize import brentq

    if normal_slippage_error(0.0, n_arms) <= delta:
        return 0.0
    # Between that of one other arm and the union bound over all.
    low, high = (math.sqrt(2) * max(-float(ndtri(miss)), 0.0) for miss in (delta, delta / (n_arms - 1)))

    def excess(distance: float) -> float:
        return math.log(normal_slippage_error(distance, n_arms) / delta)

    if n_arms == 2 or excess(high) >= 0:  # the second by rounding, where δ is tiny
        return high
    return float(brentq(excess, low, high, xtol=1e-13))


@checked(delta=rare)
def bechhofer_count(n_arms: int, epsilon: float, delta: float, sigma: float) -> int:
    """Bechhofer's ⌈(hσ/ε)²⌉: how many rewards N(μ, σ²) of each arm make an error's probability at most δ."""
    return max(count((bechhofer_distance(n_arms, delta) * sigma / epsilon) ** 2, n_arms), 1)


def last_count(model: str, n_arms: int, epsilon: float, delta: float, sigma: float) -> int:
    """How many rewards of each arm make an error's probability at most δ, by their model.

    Only for Gaussian rewards is the worst case known. For others it is a union over pairs of arms.
    """
    if model == "Gaussian":
        return bechhofer_count(n_arms, epsilon, delta, sigma)
    miss = delta / (n_arms - 1)
    if model == "Bernoulli":
        return sign_count(epsilon, miss)
    return count(-4 * sigma**2 * math.log(miss) / epsilon**2, n_arms)  # Chernoff's and Hoeffding's bound
