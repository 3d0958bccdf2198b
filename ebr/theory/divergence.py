"""Divergences between rewards in [0, 1], and likelihood ratios of a pair of arms."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from ebr.arrays import BoolArray, FloatArray

HALVINGS = 60  # of an interval in [0, 1]: to the last digit
NEAR = 1e-10  # Newton's method stops after a step this short: the next would be below rounding
Two = tuple[FloatArray, FloatArray]


def relative_entropy(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """The binary relative entropy d(x, y) = x log(x/y) + (1−x) log((1−x)/(1−y)), with d(0,0) = d(1,1) = 0."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return np.asarray(rel_entr(x, y) + rel_entr(1 - x, 1 - y))


def pair_divergence(
    leader: ArrayLike, other: ArrayLike, shift: float, pulls: tuple[ArrayLike, ArrayLike] = (1, 1)
) -> FloatArray:
    """The likelihood ratio of a pair: min_p N kl(μ̂_1̂, p) + M kl(μ̂_i, p + s), for μ̂_i − s ≤ μ̂_1̂ and s ≥ 0.

    How much two means of N and M rewards in [0, 1] speak against "i is better than the leader by s or more".
    """
    leader, other = np.broadcast_arrays(np.clip(leader, 0.0, 1.0), np.clip(other, 0.0, 1.0))
    first, second = map(np.asarray, pulls)

    def divergence(p: FloatArray, q: FloatArray) -> FloatArray:
        return np.asarray(first * relative_entropy(leader, p) + second * relative_entropy(other, q))

    if shift == 0:
        pooled = (first * leader + second * other) / (first + second)  # the mean of all rewards
        return divergence(pooled, pooled)
    low, high = np.maximum(other - shift, 0), np.minimum(leader, 1 - shift)
    place = _nearest(leader, other, shift, (first, second), low, high)
    found = divergence(place, np.minimum(place + shift, 1))
    if np.isfinite(found).all():
        return found
    # Near 0 and 1 rounding can take p or p + s to where a divergence is infinite; then an end is the minimum.
    ends = divergence(low, np.maximum(other, shift)), divergence(high, np.minimum(leader + shift, 1))
    return np.asarray(np.minimum(found, np.minimum(*ends)))


def _nearest(
    leader: FloatArray, other: FloatArray, shift: float, pulls: Two, low: FloatArray, high: FloatArray
) -> FloatArray:
    """The p at which the sum of divergences is least, by Newton's method from the middle of [low, high].

    The range is halved where a step would leave it. The derivative is multiplied by its denominators.
    """
    (first, second), place = pulls, (low + high) / 2
    with np.errstate(all="ignore"):  # a slope may be 0 or infinite
        for _ in range(HALVINGS):
            q = place + shift
            above, below = first * (place - leader), second * (q - other)
            spread, other_spread = place * (1 - place), q * (1 - q)
            value = above * other_spread + below * spread
            steeper = first * other_spread + second * spread + above * (1 - 2 * q) + below * (1 - 2 * place)
            low, high = np.where(value > 0, low, place), np.where(value > 0, place, high)
            nearer = place - value / steeper
            before, place = place, np.where((nearer >= low) & (nearer <= high), nearer, (low + high) / 2)
            if not (np.abs(place - before) > NEAR).any():
                break
    return place


def bisected(low: FloatArray, high: FloatArray, turned: Callable[[FloatArray], BoolArray]) -> Two:
    """The two neighbouring numbers between which `turned` becomes true on the way from low to high."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        there = turned(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return low, high
