"""Looks planned in advance at a Brownian motion W: their boundaries, and the law of W between them.

Z_t = W/√b_t at count b_t is N(0, 1), and Z_s, Z_t correlate by √(b_s/b_t). W crosses at look t if Z_t > z_t,
and first crosses there if it has not before. First crossings exclude each other: their probabilities add up
to that of ever crossing, exactly, where a union over the looks counts a path at every look at which it is too
high. The density of W where nothing was crossed follows from that at the look before by one integral
(Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132, 1969). Boundaries that spend a given share at each look
are Lan and DeMets's (Biometrika 70, 1983).
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from ebr.arrays import FloatArray, IntArray
from ebr.theory.selection import bechhofer_distance

NODES = 96  # below a boundary
ABOVE = 32  # nodes above it
FARTHEST = 6.0  # beyond a boundary
STEP = 1 / 6  # of the trapezoidal rule for the best arm's mean, in standard deviations
BEST = np.arange(-7.5, 7.5, STEP)  # around where it is when another arm's difference is at its boundary
LOWEST = -7.5  # a path that was lower comes back to cross with less than 10⁻¹³ of the others' probability
NEAREST = 1.05  # the least ratio of two counts for which 96 nodes are enough: relative errors of 10⁻⁹
CERTAIN = 30.0  # a quantile that is exceeded with less than 10⁻¹⁹⁷
SLACK = 1e-9  # how much less than its share a look is planned to spend


class Walk(NamedTuple):
    """The law of W at its last look, on the paths that no look has ended: nodes and their masses."""

    time: float
    nodes: FloatArray
    masses: FloatArray

    def above(self, time: float, level: float) -> float:
        """P(W > level at a later time, and no look before has ended the path)."""
        return float(self.masses @ ndtr((self.nodes - level) / math.sqrt(time - self.time)))

    def density(self, time: float, places: FloatArray) -> FloatArray:
        """The density of W at a later time, on the same paths."""
        spread = math.sqrt(time - self.time)
        moves = (places - self.nodes[:, None]) / spread
        return _mixed(self.masses, np.exp(-(moves**2) / 2)) / (spread * math.sqrt(2 * math.pi))

    def within(self, time: float, edges: Sequence[float] | FloatArray, order: int) -> "Walk":
        """Go on to a look that ends the paths outside of the edges; so many nodes between two of them."""
        nodes, weights = quadrature(edges, order)
        return Walk(time, nodes, weights * self.density(time, nodes))


START = Walk(0.0, np.zeros(1), np.ones(1))


def quadrature(edges: Sequence[float] | FloatArray, order: int) -> tuple[FloatArray, FloatArray]:
    """Gauss and Legendre's nodes between each two edges, so many of them, and their weights."""
    places, weights = _legendre(order)
    edges = np.asarray(edges)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + places)).ravel(), (half * weights).ravel()


_legendre = lru_cache(np.polynomial.legendre.leggauss)


def _mixed(masses: FloatArray, rows: FloatArray) -> FloatArray:
    """The rows' weighted sum; for tables this small faster than a library that starts threads for it."""
    return np.asarray(np.einsum("i,ij->j", masses, rows))


def _root(
    falling: Callable[[float], float], value: float, low: float, high: float, near: float = 1e-12
) -> float:
    """Where a falling probability reaches `value`; solved on the scale of logarithms."""

    def above(x: float) -> float:
        return math.log(falling(x) / value)

    if (end := above(high)) >= 0:  # but for rounding
        return high
    closer = high + 2 * end / max(high, 1)  # as a normal tail falls
    if closer > low and above(closer) > 0:
        low = closer
    return float(brentq(above, low, high, xtol=near, rtol=1e-12))


class _Plan:
    """Looks at n arms, and how much of δ each spends.

    For every other arm i, Z_i = (μ̂_i − μ̂_1 + Δ_i) √b / (σ√2) is a process like Z; all of them share arm 1.
    """

    def __init__(self, n_arms: int, sigma: float) -> None:
        self.n_arms, self.scale, self.paths = n_arms, math.sqrt(2) * sigma, START

    @property
    def least(self) -> int:
        """The least count at which the next look may be."""
        last = int(self.paths.time)
        return max(last + 1, math.ceil(NEAREST * last))

    def spent(self, count: float, quantile: float) -> float:
        """P(some Z_i first exceeds z here), at most.

        Given arm 1's rewards the Z_i are independent and alike: if one of them first exceeds z here with
        probability p, one of all does with 1 − (1−p)^{n−1}, which is concave in p. So, by Jensen's
        inequality, p may be averaged over all of arm 1's rewards but their mean here, y in standard
        deviations. Given Z_i here its past does not depend on y, as the difference and the sum of two arms
        are independent: with f the density of Z_i here on the paths that have not crossed,
        p(y) = ∫_z^∞ f(x)/φ(x) exp(−(x + y/√2)²)/√π dx.
        """
        root = math.sqrt(count)
        if self.n_arms == 2 or quantile > CERTAIN:
            return self.paths.above(count, quantile * root)
        best = BEST - quantile / math.sqrt(2)
        nodes, weights = quadrature((quantile, quantile + FARTHEST), ABOVE)
        uncrossed = self.paths.density(count, nodes * root) * root * np.exp(nodes**2 / 2) * weights
        one = math.sqrt(2) * _mixed(uncrossed, np.exp(-((nodes[:, None] + best / math.sqrt(2)) ** 2)))
        some = -np.expm1((self.n_arms - 1) * np.log1p(-np.minimum(one, 1 - 2**-53)))
        return float(np.exp(-(best**2) / 2) @ some * STEP / math.sqrt(2 * math.pi))

    def look(self, count: float, quantile: float) -> None:
        """Go on to a look, and drop the paths that cross there."""
        root = math.sqrt(count)
        self.paths = self.paths.within(count, (LOWEST * root, quantile * root), NODES)

    def enough(self, count: float, width: float, share: float) -> bool:
        """Whether the share pays for a look at which some difference may exceed the width."""
        return self.spent(count, width * math.sqrt(count) / self.scale) <= share

    def count(self, width: float, share: float) -> int:
        """A count, from `least` on, at which the share is enough for a width: the least, or hardly more."""
        if self.enough(low := self.least, width, share):
            return low
        high = max(self.fixed(width, share), low)
        if self.paths.time == 0:
            return high
        near = 0.01 / high
        real = _root(
            lambda log: self.spent(math.exp(log), width * math.exp(log / 2) / self.scale),
            share,
            math.log(low),
            math.log(high),
            near,
        )
        return min(math.floor(math.exp(real + near)) + 1, high)

    def fixed(self, width: float, share: float) -> int:
        """A count at which the share is enough whatever was seen before: Bechhofer's, or one more."""
        distance = bechhofer_distance(self.n_arms, share) / math.sqrt(2)
        return math.floor((self.scale * distance / width) ** 2) + 1

    def last(self, width: float, share: float) -> int:
        """A count at which the looks may end; it may be nearer to the one before than other looks."""
        return min(self.count(width, share), max(self.fixed(width, share), int(self.paths.time) + 1))

    def quantile(self, count: int, width: float, share: float) -> float:
        """The z ≥ 0 of a look at this count, where the width is known to be enough."""
        high = bechhofer_distance(self.n_arms, share) / math.sqrt(2)
        if count < self.least:
            return high
        if self.spent(count, 0.0) <= share:
            return 0.0
        high = min(width * math.sqrt(count) / self.scale, high)
        return _root(lambda z: self.spent(count, z), share, 0.0, high)


@lru_cache(maxsize=512)
def planned_looks(
    widths: tuple[float, ...], shares: tuple[float, ...], n_arms: int, sigma: float
) -> tuple[IntArray, FloatArray]:
    """b_t and z_t: with probability 1 − Σδ_t no Z_i ever exceeds z_t, and σ z_t √(2/b_t) ≤ w_t.

    A look that would come before 1.05 times the last one's count is left out, and its share is kept for the
    next: b and z stay. The looks end, so that b and z stay, as soon as spending all that is left pays for the
    last width.

    Parameters
    ----------
    widths, shares
        w_1 ≥ … ≥ w_T and δ_1 … δ_T.
    n_arms, sigma
        n arms with rewards N(μ, σ²).
    """
    plan, counts, quantiles, kept = _Plan(n_arms, sigma), [0], [0.0], 0.0
    left = sum(shares) * (1 - SLACK)
    for place, width in enumerate(widths):
        kept += shares[place] * (1 - SLACK)
        count = plan.count(width, kept)
        last = place + 1 == len(widths) or plan.enough(count, widths[-1], left)
        if last:
            width, kept = widths[-1], left
            count = plan.last(width, left)
        elif count <= plan.least and counts[-1]:
            counts.append(counts[-1])
            quantiles.append(quantiles[-1])
            continue
        counts.append(count)
        quantiles.append(plan.quantile(count, width, kept))
        if last:
            break
        plan.look(count, quantiles[-1])
        left, kept = left - kept, 0.0
    rest = len(widths) + 1 - len(counts)
    return np.array(counts[1:] + counts[-1:] * rest), np.array(quantiles[1:] + quantiles[-1:] * rest)
