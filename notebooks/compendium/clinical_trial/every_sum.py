"""What a certificate bounds, by going through all sums of small races: X14's oracle, in plain steps.

Nothing here is used by the certificates: the rules are read off the notebook, and probabilities are sums over
all paths of increments.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom

from ebr.algorithms.certified import CertifiedElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.certificates import SMOOTHING, TAPER


def says(race: CertifiedElasticBatchRacing, look: int, shift: float) -> BoolArray:
    """Whether sum y (columns) refutes at a look that sum x (rows) is better by s, made monotone in both."""
    factor = race.pruning if shift == 0 else 1.0
    count, critical = race.looks[look], race.boundaries[look] * factor
    x, y = np.indices((count + 1, count + 1))
    floor = min(race.floor * factor, critical)
    pooled = np.clip((x + y + SMOOTHING) / (2 * count + 2 * SMOOTHING), shift / 2, 1 - shift / 2)
    boundary = np.maximum(critical * (4 * pooled * (1 - pooled)) ** TAPER, floor)
    plain = y - x + shift * count > boundary * np.sqrt(count * (2 * pooled * (1 - pooled) - shift**2 / 2))
    at_smaller = np.logical_and.accumulate(plain, axis=0)  # all x′ ≤ x
    return np.asarray(np.logical_and.accumulate(at_smaller[:, ::-1], axis=1)[:, ::-1])  # and all y′ ≥ y


def paths(looks: Sequence[int]) -> IntArray:
    """All sums at the looks that one arm can have, a row each."""
    steps = np.diff(looks, prepend=0)
    return np.array([np.cumsum(way) for way in product(*(range(step + 1) for step in steps))])


def chances(sums: IntArray, looks: Sequence[int], rate: float) -> FloatArray:
    """The probability of each path."""
    steps = np.diff(looks, prepend=0)
    return np.asarray(np.prod(binom.pmf(np.diff(sums, axis=1, prepend=0), steps, rate), axis=1))


def errs(race: CertifiedElasticBatchRacing, arm: IntArray, other: IntArray, bad: bool) -> FloatArray:
    """Whether the other arm drops the first or, if it is bad, errs against it; ½ where the lot decides."""
    wrong, gone = np.zeros((2, len(arm), len(other)), dtype=bool)
    for look in range(len(race.looks) - 1):
        x, y = arm[:, look][:, None], other[:, look]
        for shift in {0.0, race.epsilon * bad}:
            wrong |= says(race, look, shift)[x, y] & ~gone
        gone |= says(race, look, 0.0)[y, x]
    ends = np.sign(other[:, -1] - arm[:, -1][:, None]) / 2 + 0.5 if bad else np.zeros(wrong.shape)
    return np.where(wrong, 1.0, ends * ~gone)


@cache
def bound(race: CertifiedElasticBatchRacing, low: float, high: float, parts: int) -> float:
    """B(p, p′) of the theorem, by all paths."""
    own = paths(race.looks)
    drops, fails = (errs(race, own, own, bad) for bad in (False, True))
    even = chances(own, race.looks, 0.5)  # given the last sum, paths are as likely at any other rate

    def dropped(rate: float, other: float) -> float:
        return float(chances(own, race.looks, rate) @ drops @ chances(own, race.looks, other))

    def given(rate: float) -> FloatArray:
        joint = np.bincount(own[:, -1], even * (fails @ chances(own, race.looks, rate)))
        return joint / np.bincount(own[:, -1], even)

    return _through_chains(race, low, high, parts, dropped, lambda rate, other: given(other))


def _through_chains(
    race: CertifiedElasticBatchRacing,
    low: float,
    high: float,
    parts: int,
    dropped: Callable[[float, float], float],
    given: Callable[[float, float], FloatArray],
) -> float:
    """The theorem's bound, the largest over how many arms are bad.

    `dropped` is P(an arm of the second rate drops one of the first). `given` is P(a bad arm of the second
    rate errs against one of the first) by the last sum of the first.
    """
    start, size = max(low - race.epsilon, 0.0), race.epsilon / parts
    starts = [start + size * k for k in range(math.ceil((high - start) / size))]
    rates = [low, *starts]
    links = {
        (i, j): dropped(rates[i], min(rates[j] + size, high))
        for i in range(len(rates))
        for j in range(1, len(rates))
    }
    errors = [given(rate, high - race.epsilon) for rate in rates] if high >= race.epsilon else []

    def failure(arm: int, good: int, bad: int) -> float:
        law = binom.pmf(np.arange(race.looks[-1] + 1), race.looks[-1], rates[arm])
        found = math.fsum(law * (1 - (1 - np.minimum(errors[arm], 1)) ** bad))
        if good:
            further = (min(failure(j, good - 1, bad), 1.0) * links[arm, j] for j in range(1, len(rates)))
            found += good * max(further)
        return found

    return (
        max((failure(0, race.n_arms - 1 - bad, bad) for bad in range(1, race.n_arms)), default=0)
        if errors
        else 0.0
    )


def large_bound(race: CertifiedElasticBatchRacing, low: float, high: float, parts: int) -> float:
    """`bound` for as many subjects as a trial has: the pair's law on the lattice, by Fourier transforms."""

    def given(rate: float, other: float) -> FloatArray:
        law = binom.pmf(np.arange(race.looks[-1] + 1), race.looks[-1], rate)
        return np.divide(_erring(race, True, rate, other), law, out=np.zeros(len(law)), where=law > 0)

    def dropped(rate: float, other: float) -> float:
        return float(_erring(race, False, rate, other).sum())

    return _through_chains(race, low, high, parts, dropped, given)


def _erring(race: CertifiedElasticBatchRacing, bad: bool, rate: float, other_rate: float) -> FloatArray:
    """P(the other arm errs, and the first ends at x)."""
    open_, erred, before = np.ones((1, 1)), np.zeros(1), 0
    for look, count in enumerate(race.looks):
        step = np.arange(count - before + 1)
        mine, theirs = binom.pmf(step, step[-1], rate), binom.pmf(step, step[-1], other_rate)
        open_ = np.maximum(fftconvolve(open_, np.outer(mine, theirs)), 0)
        erred, before = np.convolve(erred, mine), count
        if look < len(race.looks) - 1:
            wrong = says(race, look, 0.0) | says(race, look, race.epsilon * bad)
            erred = erred + (open_ * wrong).sum(axis=1)
            open_ = open_ * ~(wrong | says(race, look, 0.0).T)
        elif bad:
            x, y = np.indices(open_.shape)
            erred = erred + (open_ * (np.sign(y - x) / 2 + 0.5)).sum(axis=1)
    return np.asarray(erred)
