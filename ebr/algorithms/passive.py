"""The passive design, T = 1: section 5's baseline that decides everything before the first reward."""

import math
from dataclasses import dataclass

import numpy as np

from ebr.algorithms.game import Game
from ebr.arrays import IntArray
from ebr.theory.bounds import SCHEDULE_CONSTANT
from ebr.validation import count, in_unit_interval, positive

__all__ = ["Passive"]


@dataclass(frozen=True)
class Passive:
    """T = 1: every arm ⌈80σ² log(n/δ)/ε²⌉ times at once, then the best empirical mean."""

    epsilon: float
    delta: float
    sigma: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", in_unit_interval("epsilon", self.epsilon))
        object.__setattr__(self, "delta", in_unit_interval("delta", self.delta))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))

    def play(self, n_arms: int, replicates: int = 1) -> Game:
        """Pull every arm equally often, once."""
        pulls = count(SCHEDULE_CONSTANT * self.sigma**2 * math.log(n_arms / self.delta) / self.epsilon**2)
        sums = yield np.full((replicates, n_arms), pulls)
        arm: IntArray = sums.argmax(axis=1)
        return arm
