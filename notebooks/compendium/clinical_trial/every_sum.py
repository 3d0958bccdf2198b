"""What a certificate bounds, by going through all sums of small races: X14's oracle, in plain steps.

Nothing here is used by the certificates: the rules are read off the notebook, and probabilities are sums over
all paths of increments.
"""

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import binom

from ebr.algorithms.certified import CertifiedElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.certificates import SMOOTHING, TAPER

NODES, WEIGHTS = (array / 2 for array in np.polynomial.legendre.leggauss(6))  # for lots: exact on polynomials
NODES = NODES + 0.5


def says(race: CertifiedElasticBatchRacing, look: int, shift: float) -> BoolArray:
    """Whether sum y (columns) refutes at a look that sum x (rows) is better by s, made monotone in both."""
    count, critical = race.looks[look], race.boundaries[look] * (race.pruning if shift == 0 else 1.0)
    x, y = np.indices((count + 1, count + 1))
    floor = min(race.floor * (race.pruning if shift == 0 else 1.0), critical)
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


def errs(race: CertifiedElasticBatchRacing, best: IntArray, rival: IntArray, kind: float) -> FloatArray:
    """Whether a rival errs on two paths, ½ where it is left to the lot; of kind 0 or ε."""
    wrong = np.zeros((len(best), len(rival)), dtype=bool)
    for look in range(len(race.looks) - 1):
        for shift in {0.0, kind}:
            wrong |= says(race, look, shift)[best[:, look][:, None], rival[:, look]]
    ends = np.sign(rival[:, -1] - best[:, -1][:, None]) / 2 + 0.5 if kind else np.zeros(wrong.shape)
    return np.where(wrong, 1.0, ends)


@cache
def bound(race: CertifiedElasticBatchRacing, low: float, high: float) -> float:
    """B(p, p′) of the theorem."""
    own = paths(race.looks)
    mine, last = chances(own, race.looks, low), own[:, -1]
    erring = []
    for kind in kinds_up_to(race, high):
        joint = mine * (errs(race, own, own, kind) @ chances(own, race.looks, high - kind))
        erring.append(np.bincount(last, joint, minlength=race.looks[-1] + 1).astype(np.float64))
    return _together(erring, binom.pmf(np.arange(race.looks[-1] + 1), race.looks[-1], low), race.n_arms)


def kinds_up_to(race: CertifiedElasticBatchRacing, high: float) -> list[float]:
    """The kinds that rivals may be of if the best arm's rate is at most this."""
    return [kind for kind in (0.0, race.epsilon) if kind <= high]


def _together(erring: Sequence[FloatArray], law: FloatArray, n_arms: int) -> float:
    """P(some rival errs), as if independent given the best arm's last sum: the worst mix of kinds."""
    right = [1 - np.minimum(np.divide(e, law, out=np.zeros(len(law)), where=law > 0), 1) for e in erring]
    mixes = combinations_with_replacement(right, n_arms - 1)
    return max(math.fsum(law * (1 - np.prod(mix, axis=0))) for mix in mixes)


@cache
def some_rival_errs(race: CertifiedElasticBatchRacing, kinds: tuple[float, ...], best_rate: float) -> float:
    """P(some rival errs), exactly, of rivals of such kinds and with gaps as large as these.

    Given the best arm's sums and its lot u the rivals are independent; one that ties loses with u.
    """
    own = paths(race.looks)
    right = np.ones((len(own), len(NODES)))
    for kind in kinds:
        wrong, chance = errs(race, own, own, kind), chances(own, race.looks, best_rate - kind)
        right *= ((wrong == 0) @ chance)[:, None] + ((wrong == 0.5) @ chance)[:, None] * NODES
    return 1 - math.fsum(chances(own, race.looks, best_rate) * (right @ WEIGHTS))


def large_bound(race: CertifiedElasticBatchRacing, low: float, high: float) -> float:
    """`bound` for as many subjects as a trial has: the pair's law on the lattice, by Fourier transforms."""
    erring = [_erring(race, kind, low, high - kind) for kind in kinds_up_to(race, high)]
    return _together(erring, binom.pmf(np.arange(race.looks[-1] + 1), race.looks[-1], low), race.n_arms)


def _erring(race: CertifiedElasticBatchRacing, kind: float, best_rate: float, rate: float) -> FloatArray:
    """P(a rival of this kind and rate errs, and the best arm ends at x)."""
    open_, erred, before = np.ones((1, 1)), np.zeros(1), 0
    for look, count in enumerate(race.looks):
        step = np.arange(count - before + 1)
        mine, theirs = binom.pmf(step, step[-1], best_rate), binom.pmf(step, step[-1], rate)
        open_ = np.maximum(fftconvolve(open_, np.outer(mine, theirs)), 0)
        erred, before = np.convolve(erred, mine), count
        if look < len(race.looks) - 1:
            wrong = says(race, look, 0.0) | says(race, look, kind)
            erred = erred + (open_ * wrong).sum(axis=1)
            open_ = open_ * ~wrong
        elif kind:
            x, y = np.indices(open_.shape)
            erred = erred + (open_ * (np.sign(y - x) / 2 + 0.5)).sum(axis=1)
    return np.asarray(erred)
