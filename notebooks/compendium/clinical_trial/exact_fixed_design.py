"""The exact fixed design: how few subjects, all at once, for a chance of error that binomial sums prove.

An error is the same as in a race: a choice that is worse than the best by ε or more.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from compendium.clinical_trial.trial_designs import SIGMA, ties_by_lot
from ebr.algorithms.game import Defaults, Game, Known, Lots
from ebr.theory.selection import binomial_count
from ebr.validation import check_fields


@dataclass(frozen=True)
class ExactFixedDesign(Defaults):
    """Bechhofer's indifference-zone selection for response rates: all at once, as few as δ allows.

    Every arm gets so many subjects that the exact binomial probability of an error is at most δ for all
    response rates; the arm with the most responses is chosen, ties by lot. (Bechhofer, Ann. Math.
    Stat. 1954; Sobel and Huyett, Bell Syst. Tech. J. 1957.)
    """

    epsilon: float
    delta: float
    sigma: ClassVar[float] = SIGMA
    deadline: ClassVar[int] = 1

    def __post_init__(self) -> None:
        check_fields(self)

    def subjects(self, n_arms: int) -> int:
        """How many each arm gets."""
        return binomial_count(n_arms, self.epsilon, self.delta)

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Pull every arm equally often, once."""
        sums = yield np.full((replicates, n_arms), self.subjects(n_arms))
        return np.asarray(ties_by_lot(sums, generator).argmax(axis=1))
