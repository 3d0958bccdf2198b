"""What it saves to try all configurations on the same splits."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from compendium.tuning.search_methods import raced, repeated, row, searched
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import FloatArray

SAME, OWN = "the same splits", "splits of their own"


def own_splits(scores: FloatArray, repetitions: int, splits: int, seed: int) -> FloatArray:
    """As `repeated`, but every configuration has splits of its own (repetitions × splits × arms)."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, splits, 1]))
    n_arms = scores.shape[1]
    places = generator.integers(len(scores), size=(repetitions, splits, n_arms))
    return np.asarray(scores[places, np.arange(n_arms)])


def compare(
    scores: FloatArray, wrong: Iterable[bool], per_arm: Iterable[int], repetitions: int, seed: int
) -> pd.DataFrame:
    """Grid searches of so many splits, on the same ones and on others: rows of `search_methods.row`."""
    far = list(wrong)
    rows = [
        row(method, f"{splits} splits", searched(draw(scores, repetitions, splits, seed), splits), far)
        for splits in per_arm
        for method, draw in ((SAME, repeated), (OWN, own_splits))
    ]
    return pd.DataFrame(rows)


def needed_fits(
    scores: FloatArray, algorithm: SharpElasticBatchRacing, same: bool, repetitions: int, seed: int
) -> tuple[float, float]:
    """The mean fits of a race, and their standard error."""
    most = int(algorithm.pulls_by_round(scores.shape[1])[-1])
    draw = repeated if same else own_splits
    fits = raced(algorithm, draw(scores, repetitions, most, seed)).fits
    return float(fits.mean()), float(fits.std(ddof=1) / np.sqrt(repetitions))
