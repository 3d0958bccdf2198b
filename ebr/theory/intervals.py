"""Confidence intervals for reports: for the means of all arms, simultaneously over all rounds of a race."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ebr.arrays import FloatArray, IntArray
from ebr.theory.divergence import bisected, relative_entropy
from ebr.validation import check_fields, one_of

Interval = tuple[FloatArray, FloatArray]  # the lower ends, and the upper ones
METHODS = ("exact", "KL", "normal", "Hoeffding")


def exact_interval(means: FloatArray, pulls: IntArray, miss: FloatArray | float) -> Interval:
    """Clopper and Pearson's interval for a probability: every p whose two tails are above p_miss/2 each.

    With S = b μ̂ ones among b rewards, the quantiles of Beta(S, b − S + 1) and of Beta(S + 1, b − S).
    """
    from scipy.special import betainccinv, betaincinv

    ones = np.rint(np.asarray(means) * pulls)
    zeros, half = pulls - ones, np.asarray(miss) / 2
    # Beta laws need both parameters above 0; where one is not, the interval reaches to the end.
    lower = np.where(ones > 0, betaincinv(np.maximum(ones, 1), zeros + 1, half), 0.0)
    upper = np.where(zeros > 0, betainccinv(ones + 1, np.maximum(zeros, 1), half), 1.0)
    return lower, upper


def kl_interval(means: FloatArray, pulls: IntArray, miss: FloatArray | float) -> Interval:
    """Chernoff's interval for rewards in [0, 1]: {q : b kl(μ̂, q) ≤ log(2/p)}.

    As exp(λx) is convex in x, no reward in [0, 1] has larger exponential moments than a coin of its mean, and
    P(μ̂ ≥ x) ≤ exp(−b kl(x, μ)) for x ≥ μ, likewise below. By Pinsker's inequality, kl(x, q) ≥ 2(x − q)²,
    it is never wider than Hoeffding's.
    """
    means = np.clip(np.asarray(means, dtype=np.float64), 0, 1)
    budget = np.broadcast_to(np.log(2 / np.asarray(miss)) / pulls, means.shape)
    # The outer one of the two numbers between which the divergence comes to its budget.
    lower = bisected(means, np.zeros_like(means), lambda q: relative_entropy(means, q) > budget)[1]
    upper = bisected(means, np.ones_like(means), lambda q: relative_entropy(means, q) > budget)[1]
    return lower, upper


@dataclass(frozen=True)
class Simultaneous:
    """Intervals for every arm after every round, which all hold together with probability 1 − δ.

    Parameters
    ----------
    method
        "exact", for rewards 0 and 1; "KL", for rewards in a known interval, the support; "normal"; or
        "Hoeffding", for σ-sub-Gaussian ones.
    delta, n_arms
        The probability that any interval of n arms misses its mean, at most.
    looks
        T, the number of pull counts that an arm may have after a round, if these are fixed before the first
        reward; None if counts may depend on the rewards.
    support, sigma
        The closed interval in which every reward lies, or None; σ of normal and sub-Gaussian ones.

    Notes
    -----
    *Why they hold after selection.* Think of each arm's rewards as a list written in advance, of which a race
    reads the first b. Let b after any round be one of T numbers that are fixed before the race. At each of
    them the interval misses μ_i with probability δ/(nT) at most, whether a race ever looks there or not. So
    with 1 − δ none of the nT intervals misses, and whatever a race shows is among them, whichever arms it
    drops, pauses or recommends, and whenever it ends.

    Counts are so fixed in Algorithm 1, in sharp and pausing EBR and in eliminations; and, given which rewards
    are lost for reasons that have nothing to do with them, if an arm's path to its count is (sharp EBR's is;
    a pausing arm's is not). Otherwise, `looks=None`: a union over all counts b = 1, 2, … at δ/(n b(b + 1))
    each, which add up to δ/n an arm, whatever the counts depend on.
    """

    method: str
    delta: float
    n_arms: int
    looks: int | None
    support: tuple[float, float] | None = (0.0, 1.0)
    sigma: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self)
        if one_of("method", self.method, METHODS) == "KL" and self.support is None:
            raise ValueError("support must be an interval for method 'KL', got None")

    def miss(self, pulls: IntArray | int) -> FloatArray:
        """The largest probability with which a single interval may miss."""
        counts = np.asarray(pulls, dtype=np.float64)
        if self.looks is None:
            return np.asarray(self.delta / (self.n_arms * counts * (counts + 1)))
        return np.full(counts.shape, self.delta / (self.n_arms * self.looks))

    def around(self, means: FloatArray, pulls: IntArray) -> Interval:
        """The lower and upper ends for means of `pulls` rewards, within the support; NaN without rewards."""
        none = np.asarray(pulls) < 1
        counts, middle = np.maximum(pulls, 1), np.where(none, 0.5, means)
        lower, upper = self._ends(middle, counts, self.miss(counts))
        low, high = self.support or (-math.inf, math.inf)
        # An end is never inside of its mean, however a sum was rounded.
        lower, upper = np.minimum(lower, middle), np.maximum(upper, middle)
        ends = np.maximum(lower, low), np.minimum(upper, high)
        return np.where(none, np.nan, ends[0]), np.where(none, np.nan, ends[1])

    def _ends(self, means: FloatArray, counts: IntArray, miss: FloatArray) -> Interval:
        if self.method == "exact":
            return exact_interval(means, counts, miss)
        if self.method == "KL" and self.support is not None:
            low, high = self.support
            lower, upper = kl_interval((means - low) / (high - low), counts, miss)
            return low + (high - low) * lower, low + (high - low) * upper
        width = half_width(self.method, counts, miss, self.sigma)
        return means - width, means + width


def half_width(method: str, counts: ArrayLike, miss: FloatArray | float, sigma: float) -> FloatArray:
    """Around a mean of b rewards: z σ/√b, the normal quantile z at p/2; or Hoeffding's σ √(2 log(2/p)/b)."""
    if method == "normal":
        from scipy.special import ndtri

        return np.asarray(-ndtri(miss / 2) * sigma / np.sqrt(counts))
    return np.asarray(sigma * np.sqrt(2 * np.log(2 / miss) / counts))
