"""Rewards in [0, 1] of small spread, as of a latency or a fold, simulated with their squares."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import draw_sums
from ebr.theory.problems import Problem


@dataclass(frozen=True, eq=False)
class PlusMinus(Problem):
    """Arms that pay μ_i − σ or μ_i + σ, each with probability ½; both must lie in [0, 1]."""

    rewards: ClassVar[str] = "bounded"


@draw_sums.register
def _(problem: PlusMinus, means: FloatArray, pulls: IntArray, generator: np.random.Generator) -> FloatArray:
    ups = generator.binomial(pulls, 0.5)
    low, high = means - problem.sigma, means + problem.sigma
    return np.stack([(pulls - ups) * low**power + ups * high**power for power in (1, 2)])
