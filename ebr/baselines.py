"""The algorithms that the paper compares with (section 5 and its appendix)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebr.confidence import sequential_deviation
from ebr.parameters import FloatArray, IntArray, in_unit_interval, positive
from ebr.racing import Game

__all__ = ["SequentialRacing"]


@dataclass(frozen=True)
class SequentialRacing:
    """T = ∞: survivors are pulled in turn, once each, until one is known to be within ε of the best.

    EBR's elimination rule with η = ε/n (n∧∞) and the deviation of Jun et al. (AISTATS 2016), which holds
    for all counts at once. The race ends when one arm is left or when the leader's lower bound is at
    least every other survivor's upper bound less ε (A4: waiting for one arm alone ignores ε).
    """

    epsilon: float
    delta: float
    sigma: float = 0.5
    one_pull_a_round: ClassVar[bool] = True  # however many are asked for at once

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", in_unit_interval("epsilon", self.epsilon))
        object.__setattr__(self, "delta", in_unit_interval("delta", self.delta))
        object.__setattr__(self, "sigma", positive("sigma", self.sigma))

    def deviation(self, pulls: IntArray | int, n_arms: int) -> FloatArray:
        """The half-width D of the confidence interval around the mean of so many rewards."""
        return sequential_deviation(pulls, n_arms, self.delta, self.sigma)

    def play(self, n_arms: int, replicates: int = 1) -> Game:
        """Race one sweep over the survivors at a time."""
        slack = self.epsilon / n_arms
        survivors = np.ones((replicates, n_arms), dtype=bool)
        running = np.ones(replicates, dtype=bool)
        sums = np.zeros((replicates, n_arms))
        sweeps = 0
        while running.any():
            sums += yield (survivors & running[:, None]).astype(np.int64)
            sweeps += 1
            half_width = self.deviation(sweeps, n_arms)
            means = np.where(survivors, sums / sweeps, -np.inf)
            leader = means.max(axis=1, keepdims=True)
            dropped = (means + half_width < leader - half_width + slack) & (means < leader)
            survivors &= ~(dropped & running[:, None])

            rivals = survivors.copy()
            rivals[np.arange(replicates), means.argmax(axis=1)] = False
            runner_up = np.where(rivals, means, -np.inf).max(axis=1)  # −∞ when the leader is alone
            running &= leader[:, 0] - half_width < runner_up + half_width - self.epsilon
        arm: IntArray = np.where(survivors, sums, -np.inf).argmax(axis=1)
        return arm
