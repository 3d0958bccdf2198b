"""Check a certified race again, by plain steps: nothing here is shared with the search for its design.

The theorem is that of `ebr.theory.certificates`. For 0/1 rewards the law of two sums goes from look to look
by matrix products, what is cut off is added up, and cells cover the rates from 0 to 1. For Gaussian rewards
densities are integrated by Simpson's rule with two numbers of steps, and their difference is added.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil, erfc, inf, lgamma, log, pi, sqrt
from typing import Any

import numpy as np
from tqdm import tqdm

from ebr.arrays import FloatArray

PSEUDO, POWER = 2.0, 0.4  # of the pooled rate, and of 4p(1 − p) in the boundary
TINY = 1e-10  # what may be cut off at an end of a law
SLACK = 1e-8  # of a bound, for rounding
NARROW = 1e-6  # a cell that is given up
Looks = Sequence[int]
Tables = dict[float, list[list[int]]]  # by shift and look: the largest sum that each sum beats


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


@lru_cache(maxsize=64)
def log_ways(count: int) -> FloatArray:
    """Logarithms of the binomial coefficients."""
    return np.array([lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1) for k in range(count + 1)])


def masses(count: int, rate: float) -> FloatArray:
    """Binomial probabilities."""
    k = np.arange(count + 1)
    if rate in (0.0, 1.0):
        return np.where(k == count * rate, 1.0, 0.0)
    return np.asarray(np.exp(log_ways(count) + k * log(rate) + (count - k) * log(1 - rate)))


def ends(law: FloatArray) -> tuple[int, int]:
    """Where a law begins and ends once at most TINY is cut off at each end."""
    inside = np.flatnonzero((np.cumsum(law) > TINY) & (np.cumsum(law[::-1])[::-1] > TINY))
    return (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 1)


def spread(rows: int, step: FloatArray) -> FloatArray:
    """The matrix that adds a step to each of so many values."""
    moved = np.zeros((rows, rows + len(step) - 1))
    for row in range(rows):
        moved[row, row : row + len(step)] = step
    return moved


def rival_errors(looks: Looks, beaten: list[list[int]], sign: bool, best: float, rival: float) -> FloatArray:
    """P(the rival errs, and the best arm's last sum is x) by x; 8T TINY at most is left out."""
    law, x0, y0, erred, before = np.ones((1, 1)), 0, 0, np.zeros(1), 0
    for look, count in enumerate(looks):
        one, other = masses(count - before, best), masses(count - before, rival)
        erred, before = np.convolve(erred, one), count
        (a, b), (c, d) = ends(one), ends(other)
        law = spread(law.shape[0], one[a:b]).T @ law @ spread(law.shape[1], other[c:d])
        x0, y0 = x0 + a, y0 + c
        x, y = x0 + np.arange(law.shape[0])[:, None], y0 + np.arange(law.shape[1])
        if look < len(beaten):
            wrong = (x <= np.array(beaten[look])[y]) * 1.0
        else:
            wrong = ((y > x) + 0.5 * (y == x)) * sign
        erred[x0 : x0 + len(law)] += (wrong * law).sum(axis=1)
        law = (1 - wrong) * law
        (a, b), (c, d) = ends(law.sum(axis=1)), ends(law.sum(axis=0))
        law, x0, y0 = law[a:b, c:d], x0 + a, y0 + c
    return erred


def together(last: FloatArray, errors: list[FloatArray], rivals: int) -> float:
    """Σ P(x) [1 − Π (1 − e(x)/P(x))], the largest over how many rivals are near (the first errors)."""
    right = [1 - np.minimum(each / np.where(last > 0, last, 1), 1) for each in errors]
    near, far = right[0], np.min(right[1:] or right, axis=0)
    return max(float(last @ (1 - near**m * far ** (rivals - m))) for m in range(rivals + 1))


def failure(looks: Looks, n_arms: int, tables: Tables, low: float, high: float) -> float:
    """A bound on how often the race fails, for each rate of the best arm between two."""
    errors = []
    for shift, beaten in tables.items():
        if shift <= high:
            rate = min(high - shift + 1e-15, 1.0) if shift else high
            errors.append(rival_errors(looks, beaten, shift > 0, low, rate))
    found = together(masses(looks[-1], low), errors, n_arms - 1)
    return found * (1 + SLACK) + (n_arms - 1) * 8 * len(looks) * TINY


def largest_failure(design: Mapping[str, Any], n_arms: int) -> float:
    """The largest bound of all cells on how often a race fails; ∞ if one is not certified.

    The design is what a journal's first line says of it: looks, boundaries, pruning, epsilon and so on.
    """
    if design["rewards"] == "Gaussian":
        fine, rough = normal_failure(design, n_arms, 400), normal_failure(design, n_arms, 200)
        return fine + abs(fine - rough)
    pairs, floor = list(zip(design["looks"], design["boundaries"], strict=False)), design["floor"]
    less = design["pruning"]
    tables: Tables = {0.0: [largest_beaten(b, less * c, less * floor, 0.0) for b, c in pairs]}
    for shift in (design["epsilon"], *design["shifts"]):
        more, fewer = [largest_beaten(b, c, floor, shift) for b, c in pairs], list(tables.values())[-1]
        tables[shift] = [list(map(max, *both)) for both in zip(fewer, more, strict=True)]
    low, width, worst = 0.0, design["epsilon"] / 8, 0.0
    with tqdm(total=1.0, desc="checking", leave=False, disable=None, bar_format="{l_bar}{bar}") as bar:
        while low < 1:
            high = min(low + width, 1.0)
            bound = failure(design["looks"], n_arms, tables, low, high)
            if bound <= design["delta"]:
                bar.update(high - low)
                low, worst, width = high, max(worst, bound), 1.15 * width
            elif (width := 0.6 * width) < NARROW:
                return inf
    return worst


def simpson(start: float, end: float, steps: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Simpson's rule."""
    weights = np.ones(2 * steps + 1)
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return np.linspace(start, end, 2 * steps + 1), weights * (end - start) / (6 * steps)


def bell(x: FloatArray, variance: float) -> FloatArray:
    """The density of N(0, variance)."""
    return np.asarray(np.exp(-(x**2) / (2 * variance)) / sqrt(2 * pi * variance))


def normal_errors(
    times: Sequence[float], highest: Sequence[float], steps: int
) -> tuple[FloatArray, FloatArray]:
    """Cells of the best arm's last noise, by their probabilities, and P(the rival errs, and it lies there).

    W is the difference's noise, in standard deviations at T. Where a path first errs at look t with W = w,
    the best arm's noise at T is N(−w/√2, 1 − b_t/(2b_T)).
    """
    edges = np.arange(-6, 6.1, 0.25)
    below = np.vectorize(lambda x: erfc(-x / sqrt(2)) / 2)
    errors, nodes, mass, before = np.zeros(len(edges) + 1), np.zeros(1), np.ones(1), 0.0
    for time, level in zip(times, highest, strict=True):
        if level < inf:
            above, weights = simpson(level, level + 8 * sqrt(time), steps)
            first = weights * (mass @ bell(above - nodes[:, None], time - before))
            ends = below((edges[:, None] + above / sqrt(2)) / sqrt(1 - time / 2)) @ first
            errors += np.diff([0.0, *ends, first.sum()])
            inside, weights = simpson(-8 * sqrt(time), level, ceil(1.5 * steps))
            mass = weights * (mass @ bell(inside - nodes[:, None], time - before))
            nodes, before = inside, time
    return np.diff([0.0, *below(edges), 1.0]), errors


def normal_failure(design: Mapping[str, Any], n_arms: int, steps: int) -> float:
    """A bound on how often a race of Gaussian rewards fails, by Simpson's rule with so many steps."""
    looks, last = design["looks"], design["looks"][-1]
    times = [b / last for b in looks]
    lead = [design["epsilon"] * b / (design["sigma"] * sqrt(2 * last)) for b in looks]
    ends = [c * sqrt(time) for c, time in zip(design["boundaries"], times, strict=False)]
    drops = [design["pruning"] * end for end in ends]
    far = [min(end, drop + more) for end, drop, more in zip(ends, drops, lead, strict=False)]
    cells, near = normal_errors(times, [*drops, inf], steps)
    return together(cells, [near, normal_errors(times, [*far, lead[-1]], steps)[1]], n_arms - 1)
