"""Tuning a real learner under a deadline: arms are configurations, a pull is the accuracy on a split."""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.datasets import load_digits
from sklearn.model_selection import ShuffleSplit
from sklearn.tree import DecisionTreeClassifier

from compendium.shared import figures
from ebr.arrays import FloatArray, IntArray
from ebr.live.search import RacingSearchCV
from ebr.simulation.sweep import workers

TRAIN, TEST = 100, 50  # images that a pull trains on, and that it is scored on
Configuration = Mapping[str, Any]
Images = NDArray[np.float32]  # as a tree wants them
# A single decision tree: how deep it may grow, and how many pixels each of its nodes may choose from.
SPACE: dict[str, list[Any]] = {"max_depth": [4, 6, None], "max_features": [2, 8, 24, 64]}


class Archive(NamedTuple):
    """The images that come with scikit-learn: two thirds to choose by, and a third that no search sees."""

    images: Images
    labels: IntArray
    pool: IntArray
    unseen: IntArray


class Bank(NamedTuple):
    """Many splits, every configuration on each: its accuracy on the split, and on the images never seen."""

    scores: FloatArray
    unseen: FloatArray


def configurations() -> dict[str, Configuration]:
    """Twelve configurations of a decision tree, by name."""
    return {
        f"{'any depth' if depth is None else f'depth {depth}'}, {pixels} pixels": {
            "max_depth": depth,
            "max_features": pixels,
        }
        for depth, pixels in product(*SPACE.values())
    }


@cache
def archive() -> Archive:
    """The same division in each process, loaded once."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    third = len(labels) // 3
    return Archive(np.asarray(images, dtype=np.float32), np.asarray(labels), order[third:], order[:third])


def _scores(
    arms: Iterable[Configuration], seed: int, number: int, *, unseen: bool
) -> list[tuple[float, float]]:
    """The accuracy of each arm on one split and, if asked for, on the images never seen (else NaN)."""
    images, labels, pool, others = archive()
    generator = np.random.default_rng(np.random.SeedSequence([seed, number]))
    chosen = generator.permutation(pool)[: TRAIN + TEST]
    train, test = chosen[:TRAIN], np.append(chosen[TRAIN:], others[: None if unseen else 0])
    state = int(generator.integers(2**31))
    learnt, known, asked = images[train], labels[train], images[test]
    # What a tree checks of its input takes as long as the fit.
    with config_context(skip_parameter_validation=True):
        trees = (DecisionTreeClassifier(**arm, random_state=state) for arm in arms)
        fits = [tree.fit(learnt, known, check_input=False) for tree in trees]
        told = [tree.predict(asked, check_input=False) == labels[test] for tree in fits]
    return [(float(np.mean(it[:TEST])), float(np.mean(it[TEST:])) if unseen else np.nan) for it in told]


def accuracy(tree: DecisionTreeClassifier, images: Images, labels: IntArray) -> float:
    """The share of images that are told right; scikit-learn's own takes longer than the fit."""
    return float(np.mean(tree.predict(images) == labels))


def search(deadline: int, epsilon: float, delta: float, spread: float | None, seed: int) -> RacingSearchCV:
    """The race of all configurations on random splits, run: on local cores, or on the cluster of DASK."""
    images, labels, pool, _ = archive()
    race = RacingSearchCV(
        DecisionTreeClassifier(),
        SPACE,
        epsilon=epsilon,
        delta=delta,
        deadline=deadline,
        spread=spread,
        scoring=accuracy,
        cv=ShuffleSplit(train_size=TRAIN, test_size=TEST),
        random_state=seed,
    )
    with workers(), config_context(assume_finite=True, skip_parameter_validation=True):
        return race.fit(images[pool], labels[pool])


def ranked(race: RacingSearchCV) -> pd.DataFrame:
    """How far each configuration is below the chosen one on its own splits, and below the best at most.

    Columns: arm, splits, behind, within, survives; the nearest first.
    """
    scores, results = race.scores_, race.cv_results_
    behind = np.nanmean(scores[:, [race.best_index_]] - scores, axis=0)
    table = pd.DataFrame({"arm": list(configurations()), "splits": results["pulls"], "behind": behind})
    table = table.assign(within=results["within"], survives=results["survives"])
    return table.sort_values("within", ignore_index=True)


def draw(table: pd.DataFrame, epsilon: float) -> Figure:
    """Draw what `ranked` has: a bar up to the most that is possible, a marker at the mean seen."""
    figure, axis = plt.subplots(figsize=(figures.COLUMN, 2.8))
    places = np.arange(len(table))[::-1]
    axis.hlines(places, 0, table["within"], color="0.75", lw=3)
    for survives, face in ((True, "C0"), (False, "white")):
        part = (table["survives"] == survives).to_numpy()
        axis.plot(table["behind"][part], places[part], "o", mfc=face, mec="C0", ms=4)
    for splits, end, place in zip(table["splits"], table["within"].clip(lower=epsilon), places, strict=True):
        axis.annotate(f"{splits}", (end, place), (3, 0), textcoords="offset points", va="center")
    axis.axvline(epsilon, color="0.3", lw=0.8, ls=":")
    axis.set_yticks(places, table["arm"])
    axis.set(xlabel="accuracy below the best configuration's", xlim=(-0.02, 1.15 * table["within"].max()))
    return figure


def bank(splits: int, seed: int) -> Bank:
    """Every configuration on so many random splits, whatever the workers the same with this seed."""
    with workers():
        arms = list(configurations().values())
        split = joblib.delayed(partial(_scores, arms, seed, unseen=True))
        table = np.array(joblib.Parallel()(split(number) for number in range(splits)))
    return Bank(table[:, :, 0], table[:, :, 1])


def sigma_needed(rewards: pd.DataFrame, at: Iterable[float]) -> pd.Series:
    """The least σ for which rewards like these, a column an arm, are σ-sub-Gaussian at some λ.

    That is √(2 log E e^{λ(X − μ)}) / |λ| at each λ, the largest of all arms, with the means seen for E and μ.
    """
    deviations = rewards - rewards.mean()
    return pd.Series(
        {x: np.sqrt(2 * np.log(np.exp(x * deviations).mean()).max()) / abs(x) for x in at}, name="σ"
    ).rename_axis("λ")
