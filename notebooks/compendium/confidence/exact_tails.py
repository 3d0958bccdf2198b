"""Empirical means of Bernoulli or Gaussian rewards: how wide an interval must be, how often it misses."""

import math

import numpy as np

from compendium.shared.distributions import bernoulli_kl
from ebr.arrays import FloatArray, IntArray
from ebr.theory.problems import Gaussian, Problem
from ebr.validation import LEAST

NOTHING = 50  # a probability e^50 times smaller than another one can be left out


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


def binomial_deviation(pulls: int, mean: float, miss: float) -> float:
    """The least w with P(|μ̂ − μ| > w) ≤ p for Bernoulli(μ) rewards: nothing narrower would do."""
    from scipy.stats import binom

    mean = mean if mean >= LEAST else 0.0  # scipy's binomial distribution cannot tell smaller means from 0
    far = math.sqrt(pulls * (math.log(2 / miss) + NOTHING) / 2)  # Hoeffding's, in successes
    low, high = math.floor(pulls * mean - far), math.ceil(pulls * mean + far)
    successes = np.arange(max(low, 0), min(high, pulls) + 1)
    distance = np.abs(successes / pulls - mean)
    order = np.argsort(distance)[::-1]  # farthest first
    beyond = np.cumsum(binom.pmf(successes[order], pulls, mean))  # P(|μ̂ − μ| ≥ distance)
    return float(distance[order][np.argmax(beyond > miss)])


def miss_probability(problem: Problem, pulls: IntArray, width: FloatArray) -> FloatArray:
    """P(|μ̂_i − μ_i| > w) for the mean of τ rewards, exactly; an array of counts × arms."""
    from scipy.stats import binom, norm

    pulls, width = np.asarray(pulls)[:, None], np.asarray(width)[:, None]
    if isinstance(problem, Gaussian):
        tail = 2 * norm.sf(width * np.sqrt(pulls) / problem.sigma)
        return np.asarray(np.broadcast_to(tail, (len(pulls), problem.n_arms)))
    # An outcome exactly at an end counts as inside; rounding must not push it out.
    below = np.ceil(pulls * (problem.means - width) - 1e-9) - 1
    above = np.floor(pulls * (problem.means + width) + 1e-9)
    return np.asarray(binom.cdf(below, pulls, problem.means) + binom.sf(above, pulls, problem.means))
