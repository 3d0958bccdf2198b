"""Tails of the mean of a fixed number of rewards: exact ones, and the KL bound."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom, norm

from ebr.divergence import bernoulli_kl
from ebr.parameters import FloatArray, IntArray
from ebr.problems import Gaussian, Problem

__all__ = ["binomial_deviation", "chernoff_deviation", "miss_probability"]


def chernoff_deviation(pulls: int, mean: float, miss: float) -> float:
    """The KL bound for Bernoulli(μ) rewards: the wider side of {x : τ kl(x, μ) ≤ log(2/p)}."""
    level = math.log(2 / miss) / pulls

    def side(end: float) -> float:
        if bernoulli_kl(end, mean) <= level:
            return abs(end - mean)
        root = brentq(lambda x: bernoulli_kl(x, mean) - level, mean, end, xtol=1e-15)
        return abs(float(root) - mean)

    return max(side(0.0), side(1.0))


def binomial_deviation(pulls: int, mean: float, miss: float) -> float:
    """The least w with P(|μ̂ − μ| > w) ≤ p for Bernoulli(μ) rewards: nothing narrower would do."""
    successes = np.arange(pulls + 1)
    distance = np.abs(successes / pulls - mean)
    order = np.argsort(distance)[::-1]  # the farthest first
    beyond = np.cumsum(binom.pmf(successes[order], pulls, mean))  # P(|μ̂ − μ| ≥ distance)
    return float(distance[order][np.argmax(beyond > miss)])


def miss_probability(problem: Problem, pulls: IntArray, width: FloatArray) -> FloatArray:
    """P(|μ̂_i − μ_i| > w) for the mean of τ rewards, exactly; an array of counts × arms."""
    pulls, width = np.asarray(pulls)[:, None], np.asarray(width)[:, None]
    if isinstance(problem, Gaussian):
        tail = 2 * norm.sf(width * np.sqrt(pulls) / problem.sigma)
        return np.asarray(np.broadcast_to(tail, (len(pulls), problem.n_arms)))
    # An outcome exactly at an end is inside: rounding must not push it out.
    below = np.ceil(pulls * (problem.means - width) - 1e-9) - 1
    above = np.floor(pulls * (problem.means + width) + 1e-9)
    return np.asarray(binom.cdf(below, pulls, problem.means) + binom.sf(above, pulls, problem.means))
