"""Likelihood ratios of what a race has seen, and their expectations, between two problems of one kind."""

import numpy as np
from numpy.typing import ArrayLike

from ebr.arrays import FloatArray, IntArray
from ebr.theory.problems import Gaussian, Problem


def gaussian_kl(problem: Gaussian, other: Gaussian) -> FloatArray:
    """KL(ν_i, ν′_i) = (μ_i − μ′_i)² / 2σ² of each arm."""
    return np.asarray((problem.means - other.means) ** 2 / (2 * problem.sigma**2))


def log_likelihood_ratio(problem: Problem, other: Problem, pulls: IntArray, sums: FloatArray) -> FloatArray:
    """L = Σ_i Σ_k log f_i(X_{i,k}) / f′_i(X_{i,k}), from each arm's pulls and rewards' sum (runs × arms)."""
    return np.asarray(log_ratios(problem, problem.means, other.means, pulls, sums).sum(axis=1))


def log_ratios(
    problem: Problem, mean: ArrayLike, other: ArrayLike, pulls: IntArray, sums: FloatArray
) -> FloatArray:
    """Σ_k log f(X_k) / f′(X_k) of each arm, for arms of the problem's kind with one mean and another."""
    mean, other = np.asarray(mean, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if isinstance(problem, Gaussian):
        return np.asarray((mean - other) * (sums - pulls * ((mean + other) / 2)) / problem.sigma**2)
    missed = pulls - sums
    ratio = _times_log(sums, mean) - _times_log(sums, other)
    return np.asarray(ratio + _times_log(missed, 1 - mean) - _times_log(missed, 1 - other))


def _times_log(counts: FloatArray, chance: FloatArray) -> FloatArray:
    """Counts times log p, 0 where nothing is counted: a logarithm for each p, and not for each count."""
    if (chance > 0).all():
        return np.asarray(counts * np.log(chance))
    from scipy.special import xlogy

    return np.asarray(xlogy(counts, chance))
