"""The exact fixed design: how few subjects, all at once, for a chance of error that binomial sums prove.

An error is the same as in a race: a choice that is worse than the best by ε or more.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from compendium.trial_designs import SIGMA, ties_by_lot
from ebr.algorithms.game import Game, Known, Lots, no_interval
from ebr.arrays import FloatArray, IntArray
from ebr.validation import check_fields

__all__ = ["ExactFixedDesign", "certified", "slippage_error"]

MOST_CELLS = 20_000  # of the response rates' range, before a certificate is given up


def slippage_error(subjects: int, best: FloatArray, others: FloatArray, n_arms: int) -> FloatArray:
    """How often the best of `subjects` responses each is not the best arm's, all others alike; ties by lot.

    With f and F of the others' binomial count X, the best arm wins at its own count x with probability
    E[1/(1+ties)] = (F(x)ⁿ − F(x−1)ⁿ) / (n f(x)), summed over x: exact but for rounding.
    """
    best, others = np.atleast_1d(best), np.atleast_1d(others)
    at_most = _binomial(subjects, others).cumsum(axis=1)
    below = np.concatenate([np.zeros((len(at_most), 1)), at_most[:, :-1]], axis=1)
    wins, power = np.ones_like(at_most), np.ones_like(below)
    for _ in range(n_arms - 1):  # (Fⁿ − Gⁿ)/(F − G) = Σ F^i G^{n−1−i}, by Horner's rule: nothing cancels
        power = power * below
        wins = wins * at_most + power
    return np.asarray(1 - (_binomial(subjects, best) * wins).sum(axis=1) / n_arms)


def _binomial(subjects: int, rates: FloatArray) -> FloatArray:
    """The probabilities of 0, 1, … responses (rates × counts); several times faster than scipy's."""
    x = np.arange(subjects + 1)
    ways = gammaln(subjects + 1) - gammaln(x + 1) - gammaln(subjects - x + 1)
    p = np.asarray(rates)[:, None]
    return np.asarray(np.exp(ways + xlogy(x, p) + xlog1py(subjects - x, -p)))


def certified(subjects: int, n_arms: int, epsilon: float, delta: float) -> bool:
    """Whether the fixed design errs with at most δ whatever the response rates are.

    Errors rise as the best rate p falls and as the others' rise. So the others are ε worse, and for all p in
    [a, b] the error is at most that of (a, b − ε): cells where this exceeds δ are halved until none is left,
    or until one has an error above δ in its middle.
    """
    edges = np.linspace(epsilon, 1, 65)
    low, high = edges[:-1], edges[1:]
    while len(low) < MOST_CELLS:
        middle = (low + high) / 2
        if (slippage_error(subjects, middle, middle - epsilon, n_arms) > delta).any():
            return False
        open_cells = slippage_error(subjects, low, high - epsilon, n_arms) > delta
        if not open_cells.any():
            return True
        low, middle, high = (part[open_cells] for part in (low, middle, high))
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    raise ArithmeticError(f"the largest error is too near to delta = {delta} to tell")


@cache
def _fixed_subjects(n_arms: int, epsilon: float, delta: float) -> int:
    """The number of subjects of each arm that is certified while one less is refuted."""
    rates = np.linspace(epsilon, 1, 65)

    def refuted(subjects: int) -> bool:
        return bool((slippage_error(subjects, rates, rates - epsilon, n_arms) > delta).any())

    low, high = 0, math.ceil(math.log((n_arms - 1) / delta) / epsilon**2)  # Hoeffding's is enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    while not certified(high, n_arms, epsilon, delta):
        high += 1
    return high


@dataclass(frozen=True)
class ExactFixedDesign:
    """Bechhofer's indifference-zone selection for response rates: all at once, as few as δ allows.

    Every arm gets so many subjects that the exact binomial probability of an error is at most δ for all
    response rates; the arm with the most responses is chosen, ties by lot. (Bechhofer, Ann. Math.
    Stat. 1954; Sobel and Huyett, Bell Syst. Tech. J. 1957.)
    """

    epsilon: float
    delta: float
    sigma: ClassVar[float] = SIGMA
    deadline: ClassVar[int] = 1
    one_pull_a_round: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)

    def deviation(self, pulls: IntArray, n_arms: int) -> FloatArray:
        """None: the counts are compared without intervals."""
        return no_interval(pulls)

    def subjects(self, n_arms: int) -> int:
        """How many each arm gets."""
        return _fixed_subjects(n_arms, self.epsilon, self.delta)

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Pull every arm equally often, once."""
        sums = yield np.full((replicates, n_arms), self.subjects(n_arms))
        return np.asarray(ties_by_lot(sums, generator).argmax(axis=1))
