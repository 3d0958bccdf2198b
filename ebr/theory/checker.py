"""Check a certified race again, by plain steps: nothing here is shared with the search for its design.

The theorem is that of `ebr.theory.certificates`. For 0/1 rewards the law of two sums goes from look to look
by matrix products, what is cut off is added up, and cells cover the rates from 0 to 1. For Gaussian rewards
densities are integrated by Simpson's rule with two numbers of steps, and their difference is added.
"""

from collections.abc import Mapping
from math import ceil, inf, pi, sqrt
from typing import Any

import numpy as np
from scipy.linalg import convolution_matrix
from scipy.special import ndtr
from scipy.stats import binom

from ebr.arrays import FloatArray

PSEUDO, POWER = 2.0, 0.4  # of the pooled rate, and of 4p(1 − p) in the boundary
TINY = 1e-10  # what may be cut off at an end of a law
SLACK = 1e-8  # of a bound, for rounding
NARROW = 1e-6  # a cell that is given up
Table = list[list[int]]  # by look: the largest sum that each sum beats


def largest_failure(design: Mapping[str, Any], n_arms: int) -> float:
    """The largest bound on how often a race of a journal's parameters fails; ∞ if it is not certified."""
    if design["rewards"] == "Gaussian":
        fine, rough = normal_failure(design, n_arms, 400), normal_failure(design, n_arms, 200)
        return fine + abs(fine - rough)
    pairs = list(zip(design["looks"], design["boundaries"], strict=False))
    less, floor = design["pruning"], design["floor"]
    tables: dict[float, Table] = {0.0: [largest_beaten(b, less * c, less * floor, 0.0) for b, c in pairs]}
    for shift in (design["epsilon"], *design["shifts"]):
        more, fewer = [largest_beaten(b, c, floor, shift) for b, c in pairs], list(tables.values())[-1]
        tables[shift] = [list(map(max, *both)) for both in zip(fewer, more, strict=True)]
    low, width, worst = 0.0, design["epsilon"] / 8, 0.0
    while low < 1:
        high = min(low + width, 1.0)
        bound = failure(design["looks"], n_arms, tables, low, high)
        if bound <= design["delta"]:
            low, worst, width = high, max(worst, bound), 1.15 * width
        elif (width := 0.6 * width) < NARROW:
            return inf
    return worst


def largest_beaten(count: int, critical: float, floor: float, shift: float) -> list[int]:
    """For each sum y the largest sum x that it refutes to be better by the shift, or −1."""
    found, x = [0] * (count + 1), count
    for y in range(count, -1, -1):
        while x >= 0:
            rate = (y + x + PSEUDO) / (2 * count + 2 * PSEUDO)
            rate = min(max(rate, shift / 2), 1 - shift / 2)
            boundary = max(critical * (4 * rate * (1 - rate)) ** POWER, min(floor, critical))
            if y - x + shift * count > boundary * sqrt(count * (2 * rate * (1 - rate) - shift * shift / 2)):
                break
            x -= 1
        found[y] = x
    return found


def failure(looks: list[int], n_arms: int, tables: dict[float, Table], low: float, high: float) -> float:
    """A bound on how often the race fails, for each rate of the best arm between two."""
    rates = {shift: min(high - shift + 1e-15, 1.0) if shift else high for shift in tables if shift <= high}
    errors = [rival_errors(looks, tables[shift], shift > 0, low, rate) for shift, rate in rates.items()]
    last = binom.pmf(np.arange(looks[-1] + 1), looks[-1], low)
    return together(last, errors, n_arms - 1) * (1 + SLACK) + (n_arms - 1) * 8 * len(looks) * TINY


def rival_errors(looks: list[int], beaten: Table, sign: bool, best: float, rival: float) -> FloatArray:
    """P(the rival errs, and the best arm's last sum is x) by x; 8T TINY at most is left out."""
    law, x0, y0, erred, before = np.ones((1, 1)), 0, 0, np.zeros(1), 0
    for look, count in enumerate(looks):
        more, before = np.arange(count - before + 1), count
        one, other = (binom.pmf(more, more[-1], rate) for rate in (best, rival))
        erred = np.convolve(erred, one)
        (a, b), (c, d) = ends(one), ends(other)
        law = convolution_matrix(one[a:b], len(law)) @ law @ convolution_matrix(other[c:d], len(law.T)).T
        x0, y0 = x0 + a, y0 + c
        x, y = x0 + np.arange(law.shape[0])[:, None], y0 + np.arange(law.shape[1])
        ahead = ((y > x) + 0.5 * (y == x)) * sign  # which errs at the last look
        wrong = (x <= np.array(beaten[look])[y]) * 1.0 if look < len(beaten) else ahead
        erred[x0 : x0 + len(law)] += (wrong * law).sum(axis=1)
        law = (1 - wrong) * law
        (a, b), (c, d) = ends(law.sum(axis=1)), ends(law.sum(axis=0))
        law, x0, y0 = law[a:b, c:d], x0 + a, y0 + c
    return erred


def ends(law: FloatArray) -> tuple[int, int]:
    """Where a law begins and ends once at most TINY is cut off at each end."""
    inside = np.flatnonzero((np.cumsum(law) > TINY) & (np.cumsum(law[::-1])[::-1] > TINY))
    return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 1)


def together(last: FloatArray, errors: list[FloatArray], rivals: int) -> float:
    """Σ P(x) [1 − Π (1 − e(x)/P(x))], the largest over how many rivals are near (the first errors)."""
    right = [1 - np.minimum(each / np.where(last > 0, last, 1), 1) for each in errors]
    near, far = right[0], np.min(right[1:] or right, axis=0)
    return max(float(last @ (1 - near**m * far ** (rivals - m))) for m in range(rivals + 1))


def normal_failure(design: Mapping[str, Any], n_arms: int, steps: int) -> float:
    """A bound on how often a race of Gaussian rewards fails, by Simpson's rule with so many steps."""
    looks = np.array(design["looks"])
    times = looks / looks[-1]
    lead = design["epsilon"] * looks / (design["sigma"] * sqrt(2 * looks[-1]))
    stops = np.array(design["boundaries"]) * np.sqrt(times[:-1])
    drops = design["pruning"] * stops
    far = np.minimum(stops, drops + lead[:-1])
    cells, near = normal_errors(times, [*drops, inf], steps)
    return together(cells, [near, normal_errors(times, [*far, lead[-1]], steps)[1]], n_arms - 1)


def normal_errors(times: FloatArray, highest: list[float], steps: int) -> tuple[FloatArray, FloatArray]:
    """Cells of the best arm's last noise, by their probabilities, and P(the rival errs, and it lies there).

    Where a path of the difference's noise, in standard deviations at T, first errs at look t at w, the best
    arm's noise at T is N(−w/√2, 1 − b_t/(2b_T)).
    """
    edges = np.arange(-6, 6.1, 0.25)
    errors, nodes, mass, before = np.zeros(len(edges) + 1), np.zeros(1), np.ones(1), 0.0
    for time, level in zip(times, highest, strict=True):
        if level < inf:
            reach, step = 8 * sqrt(time), time - before
            inside, down = simpson(-reach, level, ceil(1.5 * steps))
            above, up = simpson(level, level + reach, steps)
            to = np.append(inside, above)
            density = mass @ np.exp(-((to - nodes[:, None]) ** 2) / (2 * step)) / sqrt(2 * pi * step)
            mass, first = down * density[: len(inside)], up * density[len(inside) :]
            below = ndtr((edges[:, None] + above / sqrt(2)) / sqrt(1 - time / 2)) @ first
            errors += np.diff([0.0, *below, first.sum()])
            nodes, before = inside, time
    return np.diff([0.0, *ndtr(edges), 1.0]), errors


def simpson(start: float, end: float, steps: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Simpson's rule."""
    weights = np.array([1, *[4, 2] * (steps - 1), 4, 1])
    return np.linspace(start, end, 2 * steps + 1), weights * (end - start) / (6 * steps)
