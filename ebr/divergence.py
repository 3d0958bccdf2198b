"""Divergences between reward distributions."""

from scipy.special import rel_entr

__all__ = ["bernoulli_kl"]


def bernoulli_kl(x: float, y: float) -> float:
    """The binary relative entropy d(x, y) = x log(x/y) + (1−x) log((1−x)/(1−y)), with d(0,0) = d(1,1) = 0."""
    return float(rel_entr(x, y) + rel_entr(1 - x, 1 - y))
