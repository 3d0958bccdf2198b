"""Divergences between reward distributions, and likelihood ratios of what a race has seen."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from ebr.parameters import FloatArray, IntArray
from ebr.problems import Gaussian

__all__ = ["bernoulli_kl", "binary_entropy", "gaussian_kl", "log_likelihood_ratio"]


def binary_entropy(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """The binary relative entropy d(x, y) = x log(x/y) + (1−x) log((1−x)/(1−y)), with d(0,0) = d(1,1) = 0."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return np.asarray(rel_entr(x, y) + rel_entr(1 - x, 1 - y))


def bernoulli_kl(x: float, y: float) -> float:
    """KL(Bernoulli(x), Bernoulli(y)) = d(x, y)."""
    return float(binary_entropy(x, y))


def gaussian_kl(problem: Gaussian, other: Gaussian) -> FloatArray:
    """KL(ν_i, ν′_i) = (μ_i − μ′_i)² / 2σ² of each arm."""
    _same_noise(problem, other)
    return np.asarray((problem.means - other.means) ** 2 / (2 * problem.sigma**2))


def log_likelihood_ratio(problem: Gaussian, other: Gaussian, pulls: IntArray, sums: FloatArray) -> FloatArray:
    """L = Σ_i Σ_k log f_i(X_{i,k}) / f′_i(X_{i,k}), from each arm's pulls and rewards' sum (runs × arms)."""
    _same_noise(problem, other)
    shift, middle = problem.means - other.means, (problem.means + other.means) / 2
    return np.asarray((shift * (sums - pulls * middle)).sum(axis=1) / problem.sigma**2)


def _same_noise(problem: Gaussian, other: Gaussian) -> None:
    if problem.sigma != other.sigma:
        raise ValueError(f"other must have the problem's sigma, {problem.sigma}, got {other.sigma}")
