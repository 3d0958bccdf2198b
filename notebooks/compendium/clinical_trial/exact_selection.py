"""The exact fixed design for 0/1 rewards: all arms at once, as few of each as any means allow.

Every arm has the same number of rewards, and the one with the largest sum is chosen, ties by lot. Errors are
most likely where all others are worse by just ε, as in `ebr.theory.selection` (Sobel and Huyett, Bell Syst.
Tech. J. 36, 1957).
"""

import math
from functools import lru_cache, partial

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.validation import checked, whole

MOST_CELLS = 20_000  # cells of the range of success probabilities, before a certificate is given up
NEGLIGIBLE = 1e-8  # the part of δ for rounding, and for counts too rare to be summed
LEAST = 1e-300  # hardly more than nothing
SERIES = 0.05  # below it a series of four terms is exact to all digits
MOST_SUBJECTS = 10**6  # rewards of an arm up to which counts are enumerated


def slippage_error(
    subjects: int, best: FloatArray, others: FloatArray, n_arms: int, least: float = 1e-16
) -> FloatArray:
    """How often the largest of n binomial counts is not the best arm's, others alike; ties at random.

    With f and F of the others' binomial count X, the best arm wins at its own count x with probability
    E[1/(1+ties)] = (F(x)ⁿ − F(x−1)ⁿ) / (n f(x)). What it loses is summed over x: a small error is as accurate
    as a large one. Counts that are rarer than `least` are taken to be losses.
    """
    best, others = np.atleast_1d(best), np.atleast_1d(others)
    counts = _plausible(subjects, best, others, -math.log(least))
    here = _binomial(subjects, others, counts)
    at_most = np.maximum(here.cumsum(axis=1), LEAST)
    at_least = here[:, ::-1].cumsum(axis=1)[:, ::-1]
    more = np.column_stack([at_least[:, 1:], np.zeros(len(best))]) + least
    ratio = np.minimum(here / at_most, 1 - 2**-53)
    # Fⁿ⁻¹ (1 − (1−r)ⁿ)/(nr), r = f/F, is e^{−y}: y = −(n−1) log F + h(d) − h(nd), d = −log(1−r).
    distance = -np.log1p(-ratio)
    under = np.where(more < 0.5, -np.log1p(-np.minimum(more, 0.5)), -np.log(at_most))
    loss = -np.expm1(-(n_arms - 1) * under - _log_mean(distance) + _log_mean(n_arms * distance))
    return np.asarray((_binomial(subjects, best, counts) * loss).sum(axis=1) + 2 * least)


def _log_mean(y: FloatArray) -> FloatArray:
    """h(y) = log((1 − e^{−y})/y), the logarithm of the mean of e^{−u}, 0 < u < y; near 0 its series."""
    small = -y / 2 + y**2 / 24 - y**4 / 2880 + y**6 / 181_440
    far = np.maximum(y, SERIES)
    return np.where(y < SERIES, small, np.log(-np.expm1(-far) / far))


def _plausible(subjects: int, best: FloatArray, others: FloatArray, sure: float) -> IntArray:
    """A range of counts for each pair of means (pairs × counts), all of one length.

    By Bernstein's inequality a count is t or more off its mean with e^{−s} at most, t = c + √(c² + 2sv),
    c = s/3, v its variance.
    """
    low, high = (
        subjects * mean
        + side * (sure / 3 + np.sqrt((sure / 3) ** 2 + 2 * sure * subjects * mean * (1 - mean)))
        for mean, side in ((np.minimum(best, others), -1), (np.maximum(best, others), 1))
    )
    length = min(int(np.ceil((high - low).max())) + 1, subjects + 1)
    first = np.clip(np.floor(low), 0, subjects + 1 - length).astype(np.int64)
    return np.asarray(first[:, None] + np.arange(length))


def _binomial(subjects: int, means: FloatArray, counts: IntArray) -> FloatArray:
    """The probabilities of these counts (means × counts); many times faster than scipy's."""
    from scipy.special import gammaln

    x = np.arange(subjects + 1)
    ways = gammaln(subjects + 1) - gammaln(x + 1) - gammaln(subjects - x + 1)
    success, failure = (np.log(np.maximum(p, LEAST))[:, None] for p in (means, 1 - means))
    return np.asarray(np.exp(ways[counts] + counts * success + (subjects - counts) * failure))


@checked(subjects=partial(whole, at_least=1, at_most=MOST_SUBJECTS))
def certified(subjects: int, n_arms: int, epsilon: float, delta: float) -> bool:
    """Whether so many 0/1 rewards of each arm err with at most δ whatever the arms' means are.

    Errors rise as the best mean p falls and as the others' rise. So the others are ε worse, and for all p in
    [a, b] the error is at most that of (a, b − ε): cells where this exceeds δ are halved until none is left,
    or until one has an error above δ in its middle. What is too near to δ to tell is not certified.
    """
    error = partial(slippage_error, subjects, n_arms=n_arms, least=NEGLIGIBLE * delta / n_arms)
    edges = np.linspace(epsilon, 1, 65)
    low, high = edges[:-1], edges[1:]
    while len(low) < MOST_CELLS:
        middle = (low + high) / 2
        if (error(middle, middle - epsilon) > delta).any():
            return False
        open_cells = error(low, high - epsilon) > delta * (1 - NEGLIGIBLE)
        if not open_cells.any():
            return True
        low, middle, high = (part[open_cells] for part in (low, middle, high))
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return False


@checked()
@lru_cache(maxsize=256)
def binomial_count(n_arms: int, epsilon: float, delta: float) -> int:
    """A number of 0/1 rewards of each arm that is certified: errors have probability δ at most.

    It is the first that is certified from where halving ends, hardly more than the least that there is.
    """
    enough = math.log((n_arms - 1) / delta) / epsilon**2  # Hoeffding's
    if enough > MOST_SUBJECTS:
        raise ValueError(f"epsilon must be large enough for {MOST_SUBJECTS:,} rewards, got {epsilon}")
    rates = np.linspace(epsilon, 1, 65)

    def refuted(subjects: int) -> bool:
        least = NEGLIGIBLE * delta / n_arms
        return bool((slippage_error(subjects, rates, rates - epsilon, n_arms, least) > delta).any())

    low, high = 0, math.ceil(enough)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    while not certified(high, n_arms, epsilon, delta):
        high += 1
    return high
