"""Check a certified race again, by plain steps: nothing here is shared with the search for its design.

The theorem is that of `ebr.theory.certificates`. For 0/1 rewards, P(an error | two arms' sums) depends on no
rate. It comes from matrix products at one rate of each arm, and is averaged over the sums at other rates. Of
Gaussian rewards densities are integrated by Simpson's rule, twice; the difference of the results is added.
"""

from collections.abc import Mapping
from itertools import pairwise
from math import ceil, inf, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import convolution_matrix
from scipy.special import ndtr
from scipy.stats import binom, hypergeom

from ebr.arrays import FloatArray, IntArray

PSEUDO, POWER = 2.0, 0.4  # of the pooled rate, and of 4p(1 − p) in the boundary
TINY = 1e-10  # what may be cut off at an end of a law
RARE = 1e-200  # of two sums that are less likely at middle rates, all count as errors: none underflows
SLACK = 1e-8  # of a bound, for rounding
BEST, GOOD, GAPS = 600, 50, 16  # cells in a length of ε: of the best arm's rate, of good arms' rates, of gaps
Table = list[list[int]]  # by look: the largest sum that each sum beats
Range = tuple[float, float]  # of rates


class Meeting(NamedTuple):
    """Likely sums of two arms at a look, and P(the second first errs there | both), whatever the rates."""

    total: int
    first: IntArray
    second: IntArray
    errs: FloatArray


def largest_failure(design: Mapping[str, Any], n_arms: int) -> float:
    """The largest bound on how often a race of a journal's parameters fails; ∞ if it is not certified."""
    if design["rewards"] == "Gaussian":
        fine, rough = normal_failure(design, n_arms, 400), normal_failure(design, n_arms, 200)
        near = any(b - a < b / 50_000 for a, b in pairwise(design["looks"]))  # the nodes are too far apart
        return inf if near else fine + abs(fine - rough)
    pairs = list(zip(design["looks"], design["boundaries"], strict=False))
    less, floor = design["pruning"], design["floor"]
    drops = [largest_beaten(b, less * c, less * floor, 0.0) for b, c in pairs]
    tables: dict[float, Table] = {0.0: drops}
    for shift in (design["epsilon"], *design["shifts"]):
        more, fewer = [largest_beaten(b, c, floor, shift) for b, c in pairs], list(tables.values())[-1]
        tables[shift] = [list(map(max, *both)) for both in zip(fewer, more, strict=True)]
    worst, low = 0.0, design["epsilon"]  # below ε no arm is bad
    while low < 1 and worst <= design["delta"]:
        high = min(low + design["epsilon"], 1.0)
        worst, low = max(failure(design["looks"], n_arms, tables, low, high), worst), high
    return worst if worst <= design["delta"] else inf


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
    drop, *shifts = tables
    epsilon, lost = shifts[0], 4 * len(looks) * TINY
    fine = np.linspace(low, high, max(ceil((high - low) / epsilon * BEST), 1) + 1)
    coarse = np.linspace(max(low - epsilon, 0.0), high, ceil((high - low + epsilon) / epsilon * GOOD) + 1)
    ends = float(coarse[0]), high
    met = meetings(looks, tables, drop, ends, ends)
    # By the cells of a good arm, and of who is dropped by it.
    drops, first = (weighed(met, rates[:-1], coarse[1:]).T + lost for rates in (coarse, fine))
    errors = []
    for shift in shifts:
        rivals = np.clip(fine[1:] - shift + 1e-15, 0.0, 1.0)
        met = meetings(looks, tables, shift, ends, (float(rivals[0]), float(rivals[-1])))
        errors.append(given_last(met, rivals) * (fine[1:] >= shift))
    right, some, found = 1 - np.clip(np.max(errors, axis=0), 0, 1), np.arange(1, n_arms)[:, None], []
    of_best, of_good = (laws(met[-1].first, looks[-1], rates[:-1]) for rates in (fine, coarse))
    for j, (start, end) in enumerate(pairwise(fine)):
        here = (coarse[1:] > start - epsilon) & (coarse[:-1] <= end)
        last = np.column_stack([of_best[:, j], of_good[:, here]])
        fails = (1 - right[:, j] ** some) @ last + (n_arms - 1) * lost
        found.append(chained(fails, np.column_stack([first[here, j], drops[np.ix_(here, here)]])))
    return float(np.max(found)) * (1 + n_arms * SLACK)  # NaN if one is


def chained(fails: FloatArray, drops: FloatArray) -> float:
    """The bound by all chains of drops: `fails` is by how many arms are bad, and against whom they err.

    That is the best arm, then good ones by cell. `drops` is by a good arm's cell, and whom it drops.
    """
    chain, found = fails, []
    for good in range(len(fails)):
        found.append(chain[-1 - good, 0])
        chain = fails + (good + 1) * (np.minimum(chain[:, 1:], 1)[:, :, None] * drops).max(axis=1)
    return float(np.max(found))


def meetings(
    looks: list[int], tables: dict[float, Table], shift: float, rates: Range, others: Range
) -> list[Meeting]:
    """Two arms at each look, but for 4T TINY. Once the first has dropped the second, that errs no more."""
    law, x, y, before, found = np.ones((1, 1)), np.arange(1), np.arange(1), 0, []
    middles = [min(max(sum(each) / 2, 1e-6), 1 - 1e-6) for each in (rates, others)]
    for look, count in enumerate(looks):
        more = np.arange(count - before + 1)
        one, other = (binom.pmf(more, more[-1], rate) for rate in middles)
        law = convolution_matrix(one, len(law)) @ law @ convolution_matrix(other, len(law.T)).T
        a, b = (likely(count, *each) for each in (rates, others))
        law, x, y = law[a - x[0]][:, b - y[0]], a, b
        if look + 1 < len(looks):
            wrong = (x[:, None] <= np.array(tables[shift][look])[y]) * 1.0
            dropped = (y <= np.array(tables[0.0][look])[x][:, None]) * 1.0
        else:
            wrong = (shift > 0) * (0.5 * (y > x[:, None]) + 0.5 * (y >= x[:, None]))
            dropped = np.zeros_like(wrong)
        both = np.outer(*(binom.pmf(sums, count, rate) for sums, rate in zip((x, y), middles, strict=True)))
        share = np.divide(law, both, out=np.ones_like(law), where=both > RARE)
        found.append(Meeting(count, x, y, wrong * share))
        law, before = (1 - np.maximum(wrong, dropped)) * law, count
    return found


def likely(count: int, low: float, high: float) -> IntArray:
    """The sums of so many rewards that lie above or below all others but TINY, whatever the rate."""
    sums = np.arange(count + 1)
    return sums[(binom.cdf(sums, count, low) > TINY) & (binom.sf(sums - 1, count, high) > TINY)]


def laws(sums: IntArray, count: int, rates: FloatArray) -> FloatArray:
    """The probabilities of sums of so many rewards: a row a sum, a column a rate."""
    return np.asarray(binom.pmf(sums[:, None], count, rates))


def weighed(met: list[Meeting], rates: FloatArray, others: FloatArray) -> FloatArray:
    """P(the second arm errs), by the first arm's rate and the second's."""
    found = np.zeros((len(rates), len(others)))
    for one in met:
        found += laws(one.first, one.total, rates).T @ one.errs @ laws(one.second, one.total, others)
    return found


def given_last(met: list[Meeting], others: FloatArray) -> FloatArray:
    """The same given the first arm's last sum, by that sum and the second arm's rate.

    Given the last sum the earlier ones are hypergeometric, whatever the rate is.
    """
    last, total = met[-1].first[:, None], met[-1].total
    found = np.zeros((len(last), len(others)))
    for one in met:
        before = hypergeom.pmf(one.first, total, last, one.total)
        found += before @ (one.errs @ laws(one.second, one.total, others))
    return found


def normal_failure(design: Mapping[str, Any], n_arms: int, steps: int) -> float:
    """A bound on how often a race of Gaussian rewards fails, by Simpson's rule with so many steps."""
    looks = np.array(design["looks"])
    times = looks / looks[-1]
    lead = design["epsilon"] * looks / (design["sigma"] * sqrt(2 * looks[-1]))
    stops = np.array(design["boundaries"]) * np.sqrt(times[:-1])
    drops = np.append(design["pruning"] * stops, inf)
    far = np.append(np.minimum(stops, drops[:-1] + lead[:-1]), lead[-1])
    # A good arm's gap, in ε/GAPS, is j to j + 1. `dropped` is by the other's gap less this one's, at most.
    leads = {k: k / GAPS * lead for k in range(-GAPS, GAPS + 1)}
    dropped = {k: normal_errors(times, drops - x, -drops - x, steps)[1].sum() for k, x in leads.items()}
    links = np.array([[dropped[k - j] for k in range(GAPS + 1)] for j in range(GAPS)])
    erring = [normal_errors(times, far - leads[k], lead - leads[k] - drops, steps) for k in range(GAPS + 1)]
    law, right = erring[0][0], np.array([1 - np.minimum(errs / law, 1) for law, errs in erring])
    return chained((1 - right ** np.arange(1, n_arms)[:, None, None]) @ law, links)


def normal_errors(
    times: FloatArray, highest: FloatArray, lowest: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray]:
    """Cells of the first arm's last noise, by their probabilities, and P(the other errs, and it lies there).

    A path of the difference's noise, in standard deviations at T, errs where it is first above a level, and
    ends where it is below another. Where it errs at look t at w, the first arm's noise at T is
    N(−w/√2, 1 − b_t/(2b_T)).
    """
    edges = np.arange(-6, 6.1, 0.25)
    errors, nodes, mass, before = np.zeros(len(edges) + 1), np.zeros(1), np.ones(1), 0.0
    for time, level, end in zip(times, highest, lowest, strict=True):
        if level < inf:
            reach, step = 8 * sqrt(time), time - before
            inside, down = simpson(min(max(end, -reach), level), level, ceil(1.5 * steps))
            above, up = simpson(level, max(level, 0.0) + reach, steps)
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
