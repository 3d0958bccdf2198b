"""Tuning a real learner under a deadline: arms are configurations, a pull is a held-out accuracy."""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd

from ebr.arrays import FloatArray, IntArray
from ebr.live.race import Race
from ebr.simulation.sweep import workers

__all__ = [
    "Halving",
    "comparison",
    "configurations",
    "evaluate",
    "exhaustive",
    "halving",
    "pull",
    "run",
    "sigma_needed",
]

TRAIN, TEST = 200, 200  # images of the 1797 that a pull trains on and is scored on
Configuration = Mapping[str, Any]
# Nearest neighbours: how many vote, all alike or the nearer the more; one neighbour votes alike either way.
SPACE: list[dict[str, list[Any]]] = [
    {"n_neighbors": [1, 3, 6, 12, 25, 50, 100], "weights": ["uniform"]},
    {"n_neighbors": [3, 6, 12, 25, 50], "weights": ["distance"]},
]


def configurations() -> dict[str, Configuration]:
    """Twelve configurations of nearest neighbours, by name."""
    return {
        f"k = {k}, {weights}": {"n_neighbors": k, "weights": weights}
        for part in SPACE
        for k, weights in product(part["n_neighbors"], part["weights"])
    }


@cache
def _digits() -> tuple[FloatArray, IntArray]:
    """The images that come with scikit-learn, loaded once in each process."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return np.asarray(images), np.asarray(labels)


def pull(configuration: Configuration, seed: int, arm: int, number: int) -> float:
    """The accuracy on held-out images after training on others, a fresh random split for each `number`."""
    from sklearn.neighbors import KNeighborsClassifier

    images, labels = _digits()
    generator = np.random.default_rng(np.random.SeedSequence([seed, arm, number]))
    chosen = generator.permutation(len(labels))[: TRAIN + TEST]
    train, test = chosen[:TRAIN], chosen[TRAIN:]
    learner = KNeighborsClassifier(**configuration, algorithm="brute").fit(images[train], labels[train])
    return float(np.mean(learner.predict(images[test]) == labels[test]))


def evaluate(asked: Mapping[str, int], taken: Mapping[str, int], seed: int) -> dict[str, list[float]]:
    """Pull each arm so many more times, in parallel; which pulls it has taken decides what they bring."""
    arms = configurations()
    places = [
        (name, list(arms).index(name), taken.get(name, 0) + k)
        for name, number in asked.items()
        for k in range(number)
    ]
    tasks = (joblib.delayed(pull)(dict(arms[name]), seed, arm, number) for name, arm, number in places)
    rewards: dict[str, list[float]] = {name: [] for name in asked}
    for (name, *_), reward in zip(places, joblib.Parallel()(tasks), strict=True):
        rewards[name].append(reward)
    return rewards


def run(race: Race, seed: int) -> None:
    """Race to the end, from where its journal stands: on local cores, or on the cluster that DASK names."""
    with workers():
        while not race.finished:
            asked = race.ask()
            taken = dict(zip(race.arms, race.intervals["pulls"].tolist(), strict=True))
            race.tell(evaluate(asked, taken, seed))


def exhaustive(each: int, seed: int) -> pd.DataFrame:
    """Pull every configuration equally often, at once: a column each."""
    with workers():
        return pd.DataFrame(evaluate(dict.fromkeys(configurations(), each), {}, seed))


class Halving(NamedTuple):
    """What scikit-learn's halving search chose, its rounds, the models fitted and the images they saw."""

    chosen: str
    rounds: int
    fits: int
    images: int


def halving(seed: int) -> Halving:
    """HalvingRandomSearchCV over the same configurations: ever more images for ever fewer of them."""
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingRandomSearchCV
    from sklearn.neighbors import KNeighborsClassifier

    arms, folds = configurations(), 5
    search = HalvingRandomSearchCV(
        KNeighborsClassifier(algorithm="brute"),
        SPACE,
        n_candidates=len(arms),
        min_resources=math.ceil(TRAIN * folds / (folds - 1)),  # trains on as many images as a pull, at first
        cv=folds,
        random_state=seed,
        refit=False,
    ).fit(*_digits())
    best = next(name for name, arm in arms.items() if dict(arm) == search.best_params_)
    rounds = pd.DataFrame({"candidates": search.n_candidates_, "images": search.n_resources_})
    fits = folds * int(rounds["candidates"].sum())
    seen = int((rounds["candidates"] * rounds["images"]).sum()) * (folds - 1)
    return Halving(best, len(rounds), fits, seen)


def comparison(race: Race, everything: pd.DataFrame, halved: Halving) -> pd.DataFrame:
    """What the race, exhaustive evaluation and halving chose, what it cost, and how good it is.

    The yardstick is `everything`, as `exhaustive` returns it: the most precise means that there are.
    """
    means, fits = everything.mean(), int(race.intervals["pulls"].sum())
    rows = {
        "race": (race.recommendation, race.round, fits, fits * TRAIN),
        "exhaustive": (means.idxmax(), 1, everything.size, everything.size * TRAIN),
        "HalvingRandomSearchCV": halved,
    }
    columns = ["chosen", "rounds", "fits", "images trained on"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    errors = everything.sem()
    table["mean accuracy"] = [f"{means[name]:.4f} ± {errors[name]:.4f}" for name in table["chosen"]]
    table["below the best"] = (means.max() - means[table["chosen"]].to_numpy()).round(4)
    return table


def sigma_needed(rewards: pd.DataFrame, at: Iterable[float]) -> pd.Series:
    """The least σ for which rewards like these, a column an arm, are σ-sub-Gaussian at some λ.

    That is √(2 log E e^{λ(X − μ)}) / |λ| at each λ, the largest of all arms, with the means seen for E and μ.
    """
    deviations = rewards - rewards.mean()
    return pd.Series(
        {x: np.sqrt(2 * np.log(np.exp(x * deviations).mean()).max()) / abs(x) for x in at}, name="σ"
    ).rename_axis("λ")
