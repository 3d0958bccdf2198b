"""The passive design, T = 1: section 5's baseline that decides everything before the first reward."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebr.algorithms.game import Algorithm, Game, Known, Lots, entered
from ebr.arrays import IntArray
from ebr.theory.bounds import passive_pulls
from ebr.validation import check_fields, count


@dataclass(frozen=True)
class Passive(Algorithm):
    """T = 1: pull every arm ⌈80σ² log(n/δ)/ε²⌉ times, then recommend the best empirical mean."""

    epsilon: float
    delta: float
    sigma: float = 0.5
    deadline = 1
    fixed_counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Pull every arm equally often, once."""
        n_arms, replicates = entered(n_arms, replicates, rewards)
        pulls = count(passive_pulls(n_arms, self.epsilon, self.delta, self.sigma), n_arms)
        sums = yield np.full((replicates, n_arms), pulls)
        arm: IntArray = sums.argmax(axis=1)
        return arm
