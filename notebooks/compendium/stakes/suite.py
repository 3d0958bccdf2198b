"""Twenty-seven problems on which races of 0/1 rewards are compared, in two halves.

Constants of staked EBR were chosen on the first half. The second was fixed before any race was run on it.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from compendium.shared.characteristic_time import characteristic_lower_bound
from compendium.shared.problem_sets import Instance
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.arrays import FloatArray, twelve_digits
from ebr.simulation.sweep import Point, sweep
from ebr.theory.problems import Bernoulli, Gaussian, setup_1, setup_2

OURS = "staked EBR"
RACES = {
    "Algorithm 1": ElasticBatchRacing,
    "sharp EBR": SharpElasticBatchRacing,
    "pausing EBR": PausingElasticBatchRacing,
    OURS: StakedElasticBatchRacing,
}
HALVES = ("chosen on", "kept for reporting")


def _one(best: float, others: float, n_arms: int) -> FloatArray:
    return np.append(best, np.full(n_arms - 1, others))


def _several(*parts: float | FloatArray) -> FloatArray:
    return np.concatenate([np.atleast_1d(part) for part in parts])


def _dirichlet(n_arms: int) -> FloatArray:
    drawn = np.random.default_rng(17).dirichlet(np.ones(n_arms))
    return np.asarray(0.9 * drawn / drawn.max())


def _beta(n_arms: int) -> FloatArray:
    return np.random.default_rng(17).beta(2, 5, n_arms)


# Name, means, T, ε and δ.
CHOSEN_ON = (
    ("Setup 1", setup_1().means, 15, 0.01, 0.01),
    ("Setup 2", setup_2().means, 15, 0.01, 0.01),
    ("equal 20", np.full(20, 0.5), 15, 0.05, 0.05),
    ("one of 50", _one(0.55, 0.45, 50), 10, 0.05, 0.05),
    ("geometric 30", 0.8 - _several(0.0, np.geomspace(0.01, 0.6, 29)), 15, 0.02, 0.05),
    ("near 0", np.linspace(0.1, 0.01, 20), 15, 0.005, 0.05),
    ("slippage 10", _one(0.525, 0.475, 10), 6, 0.05, 0.05),
    ("two", np.array([0.6, 0.5]), 5, 0.05, 0.05),
    ("line 1000", np.linspace(0.9, 0.1, 1000), 15, 0.03, 0.05),
    ("T = 3", np.linspace(0.8, 0.2, 20), 3, 0.05, 0.05),
    ("T = 50", np.linspace(0.9, 0.4, 50), 50, 0.01, 0.05),
    ("two good", _several(0.7, 0.69, np.full(18, 0.5)), 8, 0.05, 0.05),
    ("trial", np.array([0.68, 0.66, 0.5, 0.45, 0.2]), 6, 0.05, 0.05),
)
REPORTED = (
    ("near 1", np.linspace(0.99, 0.9, 20), 15, 0.005, 0.05),
    ("rare", _several(0.03, np.linspace(0.02, 0.002, 29)), 10, 0.003, 0.1),
    ("equal 5", np.full(5, 0.8), 6, 0.1, 0.1),
    ("equal 100", np.full(100, 0.3), 20, 0.05, 0.05),
    ("one of 20", _one(0.7, 0.6, 20), 8, 0.05, 0.01),
    ("one of 300", _one(0.4, 0.3, 300), 12, 0.05, 0.05),
    ("three good", _several(0.85, 0.84, 0.84, np.linspace(0.7, 0.3, 27)), 15, 0.02, 0.01),
    ("slippage 30", _one(0.6, 0.58, 30), 10, 0.02, 0.05),
    ("geometric 60", 0.7 - _several(0.0, np.geomspace(0.005, 0.5, 59)), 50, 0.01, 0.05),
    ("pair", np.array([0.9, 0.85]), 3, 0.03, 0.05),
    ("T = 2", np.linspace(0.9, 0.3, 10), 2, 0.1, 0.05),
    ("Dirichlet 40", _dirichlet(40), 12, 0.03, 0.05),
    ("beta 1000", _beta(1000), 15, 0.05, 0.05),
    ("wide", np.linspace(0.95, 0.05, 12), 4, 0.3, 0.1),
)
