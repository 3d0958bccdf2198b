"""The normal law, a divergence and tests of frequencies; scipy.stats is slow to import and to call."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtrc, log_ndtr, ndtr, ndtri

from ebr.arrays import FloatArray
from ebr.theory.confidence import exact_interval
from ebr.theory.divergence import relative_entropy


class norm:  # noqa: N801, named as in scipy.stats
    """N(0, 1), by scipy.stats' names and to its bits."""

    cdf, logcdf, ppf = ndtr, log_ndtr, ndtri

    @staticmethod
    def pdf(x: ArrayLike) -> FloatArray:
        """The density."""
        return np.asarray(np.exp(-np.square(x) / 2) / math.sqrt(2 * math.pi))

    @staticmethod
    def sf(x: ArrayLike) -> FloatArray:
        """P(X > x)."""
        return np.asarray(ndtr(-np.asarray(x, dtype=np.float64)))

    @staticmethod
    def isf(q: ArrayLike) -> FloatArray:
        """The x with P(X > x) = q."""
        return np.asarray(-ndtri(np.asarray(q, dtype=np.float64)))


def bernoulli_kl(x: float, y: float) -> float:
    """KL(Bernoulli(x), Bernoulli(y)) = d(x, y)."""
    return float(relative_entropy(x, y))


def frequency_interval(events: int, trials: int, confidence: float) -> tuple[float, float]:
    """The exact (Clopper–Pearson) interval of a frequency."""
    low, high = exact_interval(np.asarray(events / trials), np.asarray(trials), 1 - confidence)
    return float(low), float(high)


def tail_of_count(events: int, trials: int, probability: float) -> float:
    """P(at least so many events), if each of the trials is one with this probability."""
    return float(bdtrc(events - 1, trials, probability))
