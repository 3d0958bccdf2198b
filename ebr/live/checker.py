"""Check a certified race again, by plain loops: nothing here is shared with the search for its design.

The theorem is that of `ebr.theory.certificates`. Laws are convolved row by row, and what is cut off them is
summed up. Rates are gone through from 0 to 1 in cells.
"""

from collections.abc import Mapping, Sequence
from math import exp, inf, lgamma, log, sqrt
from typing import Any

import numpy as np
from tqdm import tqdm

from ebr.arrays import FloatArray

PSEUDO = 3.0  # successes and failures that a pooled rate is given
TINY = 1e-10  # what may be cut off at an end of a law
SLACK = 1e-8  # of a bound, for rounding
NARROW = 1e-6  # a cell that is given up
Looks = Sequence[int]
Tables = dict[float, list[list[int]]]  # by shift and look: the largest sum that each sum beats


def largest_beaten(count: int, critical: float, shift: float) -> list[int]:
    """For each sum y of b rewards the largest x with y − x + s b > c √(b (2p(1−p) − s²/2)), or −1."""
    found, x = [0] * (count + 1), count
    for y in range(count, -1, -1):
        while x >= 0:
            rate = (y + x + PSEUDO) / (2 * count + 2 * PSEUDO)
            rate = min(max(rate, shift / 2), 1 - shift / 2)
            if y - x + shift * count > critical * sqrt(count * (2 * rate * (1 - rate) - shift * shift / 2)):
                break
            x -= 1
        found[y] = x
    return found


def masses(count: int, rate: float) -> FloatArray:
    """Binomial probabilities."""
    if rate in (0.0, 1.0):
        return np.array([float(k == count * rate) for k in range(count + 1)])
    ways = [lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1) for k in range(count + 1)]
    return np.array([exp(w + k * log(rate) + (count - k) * log(1 - rate)) for k, w in enumerate(ways)])


def ends(law: FloatArray) -> tuple[int, int]:
    """Where a law begins and ends once at most TINY is cut off at each end."""
    first, last, low, high = 0, len(law), float(law[0]), float(law[-1])
    while low < TINY and first < last - 1:
        first += 1
        low += float(law[first])
    while high < TINY and last > first + 1:
        last -= 1
        high += float(law[last - 1])
    return first, last


def rival_errors(looks: Looks, beaten: list[list[int]], sign: bool, best: float, rival: float) -> FloatArray:
    """P(the rival errs, and the best arm's last sum is x) by x; 8T TINY at most is left out."""
    law, x0, y0, erred, before = np.ones((1, 1)), 0, 0, np.zeros(1), 0
    for look, count in enumerate(looks):
        one, other = masses(count - before, best), masses(count - before, rival)
        erred, before = np.convolve(erred, one), count
        (a, b), (c, d) = ends(one), ends(other)
        law = np.array([np.convolve(row, other[c:d]) for row in law])
        law = np.array([np.convolve(column, one[a:b]) for column in law.T]).T
        x0, y0 = x0 + a, y0 + c
        for i, row in enumerate(law):
            for j in range(len(row) - 1, -1, -1):  # from the rival's largest sums down
                x, y = x0 + i, y0 + j
                if look < len(beaten):
                    wrong = 1.0 if x <= beaten[look][y] else 0.0
                else:
                    wrong = (1.0 if y > x else 0.5 if y == x else 0.0) * sign
                if wrong == 0:
                    break
                erred[x] += wrong * row[j]
                row[j] -= wrong * row[j]
        (a, b), (c, d) = ends(law.sum(axis=1)), ends(law.sum(axis=0))
        law, x0, y0 = law[a:b, c:d], x0 + a, y0 + c
    return erred


def failure(looks: Looks, n_arms: int, tables: Tables, low: float, high: float) -> float:
    """A bound on how often the race fails, for each rate of the best arm between two."""
    last, rivals, unerring = masses(looks[-1], low), n_arms - 1, []
    for shift, beaten in tables.items():
        if shift <= high:
            rate = min(high - shift + 1e-15, 1.0) if shift else high
            erred = rival_errors(looks, beaten, shift > 0, low, rate)
            unerring.append([1 - min(e / p, 1.0) if p else 1.0 for e, p in zip(erred, last, strict=True)])
    near, far = unerring[0], [min(each) for each in zip(*(unerring[1:] or unerring), strict=True)]
    sums = [
        sum(p * (1 - v**m * u ** (rivals - m)) for p, v, u in zip(last, near, far, strict=True))
        for m in range(n_arms)  # so many rivals are near
    ]
    return float(max(sums)) * (1 + SLACK) + rivals * 8 * len(looks) * TINY


def largest_failure(design: Mapping[str, Any], n_arms: int) -> float:
    """The largest bound of all cells on how often a race of 0/1 rewards fails; ∞ if one is not certified.

    The design is what a journal's first line says of it: looks, boundaries, pruning, epsilon, delta, shifts.
    """
    pairs = list(zip(design["looks"], design["boundaries"], strict=False))
    tables: Tables = {0.0: [largest_beaten(b, design["pruning"] * c, 0.0) for b, c in pairs]}
    for shift in (design["epsilon"], *design["shifts"]):
        more, less = [largest_beaten(b, c, shift) for b, c in pairs], list(tables.values())[-1]
        tables[shift] = [list(map(max, *both)) for both in zip(less, more, strict=True)]
    low, width, worst = 0.0, design["epsilon"] / 8, 0.0
    with tqdm(total=1.0, desc="checking", leave=False, disable=None, bar_format="{l_bar}{bar}") as bar:
        while low < 1:
            high = min(low + width, 1.0)
            bound = failure(design["looks"], n_arms, tables, low, high)
            if bound <= design["delta"]:
                bar.update(high - low)
                low, worst, width = high, max(worst, bound), 1.3 * width
            elif (width := width / 2) < NARROW:
                return inf
    return worst
