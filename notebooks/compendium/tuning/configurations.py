"""Tuning a real learner under a deadline: arms are configurations, a pull is the accuracy on a split."""

from collections.abc import Iterable, Mapping
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.tree._criterion import Gini
from sklearn.tree._splitter import BestSplitter
from sklearn.tree._tree import DepthFirstTreeBuilder, Tree

from ebr.arrays import FloatArray, IntArray
from ebr.live.race import Race
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


class PlainTree(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """scikit-learn's DecisionTreeClassifier, put together of the same parts as there.

    What the class checks takes longer than the fit.
    """

    def __init__(self, max_depth: int | None = None, max_features: int = 64, random_state: int = 0) -> None:
        self.max_depth, self.max_features, self.random_state = max_depth, max_features, random_state

    def fit(self, images: Images, labels: IntArray) -> Self:
        """Grow the tree."""
        self.classes_, codes = np.unique(labels, return_inverse=True)
        sizes, random = np.array([len(self.classes_)]), np.random.RandomState(self.random_state)
        splitter = BestSplitter(Gini(1, sizes), self.max_features, 1, 0.0, random, None)
        deepest = np.iinfo(np.int32).max if self.max_depth is None else self.max_depth
        self.tree_ = Tree(images.shape[1], sizes, 1)
        builder = DepthFirstTreeBuilder(splitter, 2, 1, 0.0, deepest, 0.0)
        builder.build(self.tree_, np.asarray(images, dtype=np.float32), codes[:, None].astype(np.float64))
        return self

    def predict(self, images: Images) -> IntArray:
        """The most frequent label of each image's leaf, the first of them."""
        shares = self.tree_.predict(np.asarray(images, dtype=np.float32))
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def score(self, images: Images, labels: IntArray) -> float:
        """The share of images that are told right."""
        return float(np.mean(self.predict(images) == labels))


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
    fits = (PlainTree(**arm, random_state=state).fit(learnt, known) for arm in arms)
    told = (tree.predict(asked) == labels[test] for tree in fits)
    return [(float(np.mean(it[:TEST])), float(np.mean(it[TEST:])) if unseen else np.nan) for it in told]


def pull(configuration: Configuration, seed: int, number: int) -> float:
    """The accuracy on held-out images of a random split, the same split for every arm's pull `number`."""
    return _scores([configuration], seed, number, unseen=False)[0][0]


def evaluate(asked: Mapping[str, int], taken: Mapping[str, int], seed: int) -> dict[str, list[float]]:
    """Pull each arm so many more times, in parallel; which pulls it has taken decides what they bring."""
    arms = configurations()
    places = [(name, taken.get(name, 0) + k) for name, number in asked.items() for k in range(number)]
    tasks = (joblib.delayed(pull)(dict(arms[name]), seed, number) for name, number in places)
    rewards: dict[str, list[float]] = {name: [] for name in asked}
    for (name, _), reward in zip(places, joblib.Parallel()(tasks), strict=True):
        rewards[name].append(reward)
    return rewards


def run(race: Race, seed: int) -> None:
    """Race to the end, from where its journal stands: on local cores, or on the cluster that DASK names."""
    with workers():
        while not race.finished:
            asked = race.ask()
            taken = dict(zip(race.arms, race.intervals["pulls"].tolist(), strict=True))
            race.tell(evaluate(asked, taken, seed))


def bank(splits: int, seed: int) -> Bank:
    """Every configuration on so many splits, those of pulls 0, 1, … with this seed."""
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
