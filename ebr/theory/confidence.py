"""Deviation functions: how far an empirical mean of τ rewards may lie from its expectation."""

import math
from functools import partial

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.theory.divergence import bernoulli_kl
from ebr.theory.problems import Gaussian, Problem
from ebr.validation import LEAST, MOST_ARMS, MOST_PULLS, checked, in_unit_interval, probability, whole

# Lemma "confidence": the self-normalised bound of de la Peña, Klass and Lai (2004), Corollary 2.2.
SELF_NORMALISED = 4 + 2 * math.log(2)
MOST_OUTCOMES = 10**7  # of a binomial sum, that are gone through

NOTHING = 50  # a chance e^50 times smaller than another, beside it

# Of a formula: nothing is played.
_arms = partial(whole, at_least=1, at_most=MOST_ARMS)
_rounds = partial(whole, at_least=1, at_most=10**300)
_miss = partial(in_unit_interval, least=1e-300)


@checked(n_arms=_arms, deadline=_rounds)
def deviation(
    pulls: IntArray | int, n_arms: int, deadline: int, delta: float, sigma: float = 0.5
) -> FloatArray:
    """Equation (2), the paper's deviation: D(τ, δ) = σ √((4 + 2 log 2) log(nT/δ) / τ)."""
    variance = sigma**2 * SELF_NORMALISED * math.log(n_arms * deadline / delta)
    return np.sqrt(variance / np.asarray(pulls, dtype=np.float64))


@checked(n_arms=_arms)
def sequential_deviation(
    pulls: IntArray | FloatArray | int, n_arms: int, delta: float, sigma: float = 0.5
) -> FloatArray:
    """D(τ, ω) = 4σ √(log(log₂(2τ)/ω) / τ) with ω = √(δ/(6n)), valid for all τ at once.

    The bound of Jun, Jamieson, Nowak and Zhu, *Top Arm Identification in Multi-Armed Bandits with Batch
    Arm Pulls* (AISTATS 2016), which the paper uses for T = ∞; theirs is for rewards in [0, 1], σ = ½.
    """
    tau = np.asarray(pulls, dtype=np.float64)
    omega = math.sqrt(delta / (6 * n_arms))
    return np.sqrt(16 * sigma**2 * np.log(np.log2(2 * tau) / omega) / tau)


@checked(miss=_miss)
def fixed_count_deviation(pulls: IntArray | int, miss: float, sigma: float = 0.5) -> FloatArray:
    """Hoeffding's σ √(2 log(2/p) / τ): the mean of a *fixed* number τ of rewards is off by more with p.

    Of Algorithm 1's intervals it asks less than `deviation` does: see `fixed_count_ratio`.
    """
    return np.sqrt(2 * sigma**2 * math.log(2 / miss) / np.asarray(pulls, dtype=np.float64))


@checked(deadline=_rounds)
def fixed_count_ratio(n_arms: int, deadline: int, delta: float) -> float:
    """Hoeffding's deviation at p = δ/(nT) over the paper's: √((L + log 2) / ((2 + log 2) L)), L = log(nT/δ).

    At most 1/√2 where L ≥ 2, and below 1 for every n ≥ 2, T ≥ 1 and δ < 1.
    """
    log_term = math.log(n_arms * deadline / delta)
    return math.sqrt(2 * (log_term + math.log(2)) / (SELF_NORMALISED * log_term))


@checked(pulls=partial(whole, at_least=1, at_most=MOST_PULLS), mean=probability, miss=_miss)
def chernoff_deviation(pulls: int, mean: float, miss: float) -> float:
    """The KL bound for Bernoulli(μ) rewards: the wider side of {x : τ kl(x, μ) ≤ log(2/p)}."""
    from scipy.optimize import brentq

    level = math.log(2 / miss) / pulls

    def side(end: float) -> float:
        if bernoulli_kl(end, mean) <= level:
            return abs(end - mean)
        root = brentq(lambda x: bernoulli_kl(x, mean) - level, mean, end, xtol=1e-15)
        return abs(float(root) - mean)

    return max(side(0.0), side(1.0))


@checked(pulls=partial(whole, at_least=1, at_most=MOST_OUTCOMES), mean=probability, miss=_miss)
def binomial_deviation(pulls: int, mean: float, miss: float) -> float:
    """The least w with P(|μ̂ − μ| > w) ≤ p for Bernoulli(μ) rewards: nothing narrower would do."""
    from scipy.stats import binom

    mean = mean if mean >= LEAST else 0.0  # scipy's binomial law cannot tell them apart
    far = math.sqrt(pulls * (math.log(2 / miss) + NOTHING) / 2)  # Hoeffding's, in successes
    low, high = math.floor(pulls * mean - far), math.ceil(pulls * mean + far)
    successes = np.arange(max(low, 0), min(high, pulls) + 1)
    distance = np.abs(successes / pulls - mean)
    order = np.argsort(distance)[::-1]  # the farthest first
    beyond = np.cumsum(binom.pmf(successes[order], pulls, mean))  # P(|μ̂ − μ| ≥ distance)
    return float(distance[order][np.argmax(beyond > miss)])


def miss_probability(problem: Problem, pulls: IntArray, width: FloatArray) -> FloatArray:
    """P(|μ̂_i − μ_i| > w) for the mean of τ rewards, exactly; an array of counts × arms."""
    from scipy.stats import binom, norm

    pulls, width = np.asarray(pulls)[:, None], np.asarray(width)[:, None]
    if isinstance(problem, Gaussian):
        tail = 2 * norm.sf(width * np.sqrt(pulls) / problem.sigma)
        return np.asarray(np.broadcast_to(tail, (len(pulls), problem.n_arms)))
    # An outcome exactly at an end is inside: rounding must not push it out.
    below = np.ceil(pulls * (problem.means - width) - 1e-9) - 1
    above = np.floor(pulls * (problem.means + width) + 1e-9)
    return np.asarray(binom.cdf(below, pulls, problem.means) + binom.sf(above, pulls, problem.means))
