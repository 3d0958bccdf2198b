"""How far empirical means may lie from their expectations, singly and all at once through a whole race."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv, ndtri

from ebr.arrays import FloatArray, IntArray
from ebr.theory.divergence import bisected, relative_entropy
from ebr.validation import MOST_ARMS, check_fields, checked, require, whole

Interval = tuple[FloatArray, FloatArray]  # the lower ends, and the upper ones
# Lemma "confidence": the self-normalised bound of de la Peña, Klass and Lai (2004), Corollary 2.2.
SELF_NORMALISED = 4 + 2 * math.log(2)

_arms = partial(whole, at_least=1, at_most=MOST_ARMS)  # a single arm has a deviation, too


@checked(n_arms=_arms, deadline=partial(whole, at_least=1, at_most=10**300))  # a formula plays no rounds
def deviation(pulls: ArrayLike, n_arms: int, deadline: int, delta: float, sigma: float = 0.5) -> FloatArray:
    """Equation (2), the paper's deviation: D(τ, δ) = σ √((4 + 2 log 2) log(nT/δ) / τ)."""
    variance = sigma**2 * SELF_NORMALISED * math.log(n_arms * deadline / delta)
    return np.sqrt(variance / np.asarray(pulls, dtype=np.float64))


@checked(n_arms=_arms)
def sequential_deviation(pulls: ArrayLike, n_arms: int, delta: float, sigma: float = 0.5) -> FloatArray:
    """D(τ, ω) = 4σ √(log(log₂(2τ)/ω) / τ) with ω = √(δ/(6n)), valid for all τ at once.

    The bound of Jun, Jamieson, Nowak and Zhu, *Top Arm Identification in Multi-Armed Bandits with Batch
    Arm Pulls* (AISTATS 2016), which the paper uses for T = ∞; theirs is for rewards in [0, 1], σ = ½.
    """
    tau = np.asarray(pulls, dtype=np.float64)
    omega = math.sqrt(delta / (6 * n_arms))
    return np.sqrt(16 * sigma**2 * np.log(np.log2(2 * tau) / omega) / tau)


def exact_interval(means: FloatArray, pulls: IntArray, miss: FloatArray | float) -> Interval:
    """Clopper and Pearson's interval for a probability: every p whose two tails are above p_miss/2 each.

    With S = b μ̂ ones among b rewards, the quantiles of Beta(S, b − S + 1) and of Beta(S + 1, b − S).
    """
    ones = np.rint(np.asarray(means) * pulls)
    zeros, half = pulls - ones, np.asarray(miss) / 2
    # Beta laws need both parameters above 0; where one is not, the interval reaches to the end.
    lower = np.where(ones > 0, betaincinv(np.maximum(ones, 1), zeros + 1, half), 0.0)
    upper = np.where(zeros > 0, betainccinv(ones + 1, np.maximum(zeros, 1), half), 1.0)
    return lower, upper


def kl_interval(means: FloatArray, pulls: IntArray, miss: FloatArray | float) -> Interval:
    """Chernoff's interval for rewards in [0, 1]: {q : b kl(μ̂, q) ≤ log(2/p)}.

    As exp(λx) is convex in x, no reward in [0, 1] has larger exponential moments than a coin of its mean. By
    Pinsker's inequality, kl(x, q) ≥ 2(x − q)², it is never wider than Hoeffding's.
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
        "exact" for rewards 0 and 1; "KL" for rewards in a known interval, the support; "normal"; "Hoeffding"
        for σ-sub-Gaussian rewards.
    delta, n_arms
        The probability, at most, that any interval of n arms misses its mean.
    looks
        T, the number of pull counts that an arm may have after a round, if these are fixed before the first
        reward, as in Algorithm 1, sharp and pausing EBR; None if counts may depend on the rewards.
    support, sigma
        The closed interval in which every reward lies, or None; σ of normal and sub-Gaussian ones.

    Notes
    -----
    Think of each arm's rewards as a list written in advance, of which a race reads the first b. If b after
    any round is one of T numbers that are fixed before the race, the interval at each of them misses μ_i with
    δ/(nT) at most. So with 1 − δ none of the nT intervals misses, whichever arms a race drops, pauses or
    recommends, and whenever it ends. With `looks=None` the union is over all counts b = 1, 2, … at
    δ/(n b(b + 1)) each, δ/n an arm together, whatever the counts depend on.
    """

    method: str
    delta: float
    n_arms: int
    looks: int | None
    support: tuple[float, float] | None = (0.0, 1.0)
    sigma: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self, method=("exact", "KL", "normal", "Hoeffding"))
        known = self.method != "KL" or self.support is not None
        require(known, "support", "be an interval for method 'KL'", self.support)

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
        miss, (low, high) = self.miss(counts), self.support or (-math.inf, math.inf)
        if self.method == "exact":
            lower, upper = exact_interval(middle, counts, miss)
        elif self.method == "KL":
            ends = kl_interval((middle - low) / (high - low), counts, miss)
            lower, upper = (low + (high - low) * end for end in ends)
        else:
            width = half_width(self.method, counts, miss, self.sigma)
            lower, upper = middle - width, middle + width
        # The interval holds its mean, however a sum was rounded.
        lower = np.maximum(np.minimum(lower, middle), low)
        upper = np.minimum(np.maximum(upper, middle), high)
        return np.where(none, np.nan, lower), np.where(none, np.nan, upper)


def half_width(method: str, counts: ArrayLike, miss: FloatArray | float, sigma: float) -> FloatArray:
    """Around a mean of b rewards: z σ/√b, the normal quantile z at p/2; or Hoeffding's σ √(2 log(2/p)/b)."""
    if method == "normal":
        return np.asarray(-ndtri(miss / 2) * sigma / np.sqrt(counts))
    return np.asarray(sigma * np.sqrt(2 * np.log(2 / miss) / counts))
