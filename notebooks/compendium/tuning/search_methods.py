"""Ways to choose a configuration, repeated many times: how often each errs, and what it costs."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import ndtr
from sklearn import config_context
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from compendium.shared import figures
from compendium.shared.distributions import frequency_interval
from compendium.shared.lineup import LOOKS, Look
from compendium.tuning.configurations import SPACE, TEST, TRAIN, accuracy, archive, configurations
from ebr.algorithms.game import drive
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.sweep import workers

FOLDS = 5
RACE, ASSUMED, GRID, HALVING = "race", "race, s assumed", "grid search", "successive halving"
SKLEARN, PRUNER = "HalvingGridSearchCV", "Wilcoxon pruner"
MOST_EXACT = 13  # splits up to which SciPy, and so the pruner, has the exact law of signed ranks with ties
METHOD_LOOKS = {
    RACE: LOOKS["staked"],
    ASSUMED: LOOKS["sharp"],
    GRID: LOOKS["passive"],
    HALVING: Look("C2", "^", "-."),
    PRUNER: Look("0.35", "s", "--"),
    SKLEARN: Look("C3", "D", ""),
}


class Chosen(NamedTuple):
    """Of each repetition: the arm that was chosen, the models fitted, and the images they were trained on."""

    arm: IntArray
    fits: FloatArray
    images: FloatArray


def repeated(scores: FloatArray, repetitions: int, splits: int, seed: int) -> FloatArray:
    """Draw the splits of many repetitions from a bank (repetitions × splits × arms), with replacement.

    So they are independent, as the guarantee wants them, and the bank's means are the true ones.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, splits]))
    return np.asarray(scores[generator.integers(len(scores), size=(repetitions, splits))])


def race_of(deadline: int, epsilon: float, delta: float, spread: float) -> SharpElasticBatchRacing:
    """`RacingSearchCV`'s with a spread s: differences are as of independent arms with σ = s/√2."""
    return SharpElasticBatchRacing(deadline, epsilon, delta, spread / math.sqrt(2))


def raced(algorithm: SharpElasticBatchRacing, scores: FloatArray) -> Chosen:
    """Race: pull k of an arm is its score on the repetition's split k, which all survivors share."""
    repetitions, _, n_arms = scores.shape
    so_far = np.concatenate([np.zeros((repetitions, 1, n_arms)), scores.cumsum(axis=1)], axis=1)
    taken = np.zeros((repetitions, 1, n_arms), dtype=np.int64)

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal taken
        before, taken = taken, taken + pulls[:, None]
        sums = np.take_along_axis(so_far, taken, 1) - np.take_along_axis(so_far, before, 1)
        return np.asarray(sums[:, 0])

    arm = drive(algorithm.play(n_arms, repetitions, rewards="sub-Gaussian"), respond)
    fits = taken.sum(axis=(1, 2))
    return Chosen(arm, fits, fits * TRAIN)


def raced_alone(algorithm: StakedElasticBatchRacing, bank: FloatArray, repetitions: int, seed: int) -> Chosen:
    """Race as `RacingSearchCV` does without a spread: every score is that on a split of its own."""
    generator, n_arms = np.random.default_rng(np.random.SeedSequence([seed, 2])), bank.shape[1]
    fits = np.zeros(repetitions)

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal fits
        fits = fits + pulls.sum(axis=1)
        cells = np.repeat(np.arange(pulls.size), pulls.ravel())
        scores = bank[generator.integers(len(bank), size=len(cells)), cells % n_arms]
        sums, squares = (
            np.bincount(cells, scores**power, pulls.size).reshape(pulls.shape) for power in (1, 2)
        )
        return np.stack([sums, squares]) if algorithm.squares else np.asarray(sums)

    arm = drive(algorithm.play(n_arms, repetitions, rewards="bounded"), respond)
    return Chosen(arm, fits, fits * TRAIN)


def searched(scores: FloatArray, splits: int) -> Chosen:
    """Cross-validated grid search: all arms on so many splits, the best mean; ties go to the first arm."""
    repetitions, _, n_arms = scores.shape
    fits = np.full(repetitions, n_arms * splits)
    return Chosen(scores[:, :splits].sum(axis=1).argmax(axis=1), fits, fits * TRAIN)


def halved(scores: FloatArray, budget: int) -> Chosen:
    """Successive halving with splits as the resource: ⌈log₂ n⌉ rounds of equal budgets, half the arms stay.

    (Karnin, Koren and Somekh, ICML 2013; means of all splits so far.)
    """
    repetitions, _, n_arms = scores.shape
    rounds = int(np.ceil(np.log2(n_arms)))
    alive, used, fits = np.ones((repetitions, n_arms), dtype=bool), 0, 0
    for _ in range(rounds):
        size = int(alive[0].sum())
        each = max(1, budget // (size * rounds))
        used, fits = used + each, fits + each * size
        totals = np.where(alive, scores[:, :used].sum(axis=1), -np.inf)
        keep = totals.argsort(axis=1, kind="stable")[:, ::-1][:, : -(-size // 2)]
        alive = np.zeros_like(alive)
        np.put_along_axis(alive, keep, True, axis=1)
    spent = np.full(repetitions, fits)
    return Chosen(alive.argmax(axis=1), spent, spent * TRAIN)


def signed_rank(differences: FloatArray) -> FloatArray:
    """Wilcoxon's signed-rank test of each row (Biometrics Bulletin 1, 1945): its p-value against 0 or more.

    As SciPy has them where there are ties, which scores of 50 images always have: ties share their ranks,
    zeros count half ("zsplit"); the law is exact for 13 differences or fewer, and then normal.
    """
    sizes, number = np.abs(differences), differences.shape[1]
    ties = (sizes[:, :, None] == sizes[:, None]).sum(axis=2)
    ranks = (sizes[:, :, None] > sizes[:, None]).sum(axis=2) + (ties + 1) / 2
    positive = (ranks * (differences > 0)).sum(axis=1)
    if number <= MOST_EXACT:
        signs = np.arange(2**number)[:, None] >> np.arange(number) & 1
        sums = (ranks * (differences != 0)) @ signs.T
        return np.asarray((sums <= positive[:, None] + 1e-9).mean(axis=1))
    positive += (ranks * (differences == 0)).sum(axis=1) / 2
    variance = (number * (number + 1) * (2 * number + 1) - (ties**2 - 1).sum(axis=1) / 2) / 24
    return np.asarray(ndtr((positive - number * (number + 1) / 4) / np.sqrt(variance)))


def pruned(scores: FloatArray, splits: int, seed: int) -> Chosen:
    """Optuna's WilcoxonPruner: one arm after the other, in random order, on up to so many splits each.

    After each split, from the second on, an arm is given up if its mean is below the best arm's so far and
    the signed-rank test on the splits of both says so with p < 0.1, Optuna's own values. (Akiba et al., KDD
    2019; the rule is that of Optuna 3.6 and later.)
    """
    repetitions, _, n_arms = scores.shape
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(n_arms), (repetitions, 1)), axis=1)
    rows, best, fits = np.arange(repetitions), order[:, 0], np.full(repetitions, splits)
    for arm in order.T[1:]:
        leader, mine = scores[rows, :splits, best], scores[rows, :splits, arm]
        differences, target = np.round(mine - leader, 9), leader.mean(axis=1)
        going = np.ones(repetitions, dtype=bool)
        for number in range(1, splits + 1):
            fits[going] += 1
            behind = np.flatnonzero(going)
            behind = behind[mine[behind, :number].mean(axis=1) < target[behind]]
            if number > 1 and len(behind):
                going[behind] = signed_rank(differences[behind, :number]) >= 0.1
        better = going & (mine.mean(axis=1) > target)
        best = np.where(better, arm, best)
    return Chosen(best, fits, fits * TRAIN)


def halving_search(seed: int) -> tuple[int, int, int]:
    """scikit-learn's own: ever more images for ever fewer configurations; the arm, its fits and images."""
    images, labels, pool, _ = archive()
    search = HalvingGridSearchCV(
        DecisionTreeClassifier(random_state=seed),
        SPACE,
        min_resources=TRAIN * FOLDS // (FOLDS - 1),  # trains on as many images as a pull, at first
        cv=StratifiedKFold(FOLDS, shuffle=True, random_state=seed),
        random_state=seed,
        scoring=accuracy,
        refit=False,
        return_train_score=False,
    )
    with config_context(assume_finite=True, skip_parameter_validation=True):
        search.fit(images[pool], labels[pool])
    arm = list(map(dict, configurations().values())).index(search.best_params_)
    fits = FOLDS * np.array(search.n_candidates_)
    trained = fits * np.array(search.n_resources_) * (FOLDS - 1) // FOLDS
    return arm, int(fits.sum()), int(trained.sum())


def sklearn_halving(repetitions: int, seed: int) -> Chosen:
    """`halving_search` with the seeds that follow, in parallel."""
    with workers():
        found = joblib.Parallel()(
            joblib.delayed(halving_search)(seed + number) for number in range(repetitions)
        )
    return Chosen(*(np.array(column) for column in zip(*found, strict=True)))


def open_race(deadline: int, epsilon: float, delta: float, squares: bool = True) -> StakedElasticBatchRacing:
    """`RacingSearchCV`'s without a spread; or the same without squares."""
    return StakedElasticBatchRacing(deadline, epsilon, delta, rewards="bounded", squares=squares)


def row(method: str, setting: str, chosen: Chosen, wrong: Iterable[bool]) -> dict[str, object]:
    """What a method with one setting did: mean fits and images, its errors with an exact 95 % interval.

    The fits' mean has a standard error.
    """
    mistakes, runs = int(np.asarray(list(wrong))[chosen.arm].sum()), len(chosen.arm)
    lower, upper = frequency_interval(mistakes, runs, 0.95)
    return {
        "method": method,
        "setting": setting,
        "fits": float(chosen.fits.mean()),
        "fits_error": float(chosen.fits.std(ddof=1) / math.sqrt(runs)),
        "images": float(chosen.images.mean()),
        "errors": mistakes / runs,
        "lower": lower,
        "upper": upper,
        "repetitions": runs,
    }


def compare(
    scores: FloatArray,
    wrong: Iterable[bool],
    races: Iterable[StakedElasticBatchRacing],
    assumed: Iterable[SharpElasticBatchRacing],
    per_arm: Iterable[int],
    budgets: Iterable[int],
    repetitions: int,
    seed: int,
    pruners: Iterable[int] = (),
) -> list[dict[str, object]]:
    """Rows of `row`: races, grid searches and pruners of so many splits, halving with so many fits."""
    wrong, n_arms = list(wrong), scores.shape[1]
    rows = []
    for race in races:
        chosen = raced_alone(race, scores, repetitions, seed)
        setting = f"T = {race.deadline}, δ = {race.delta:g}{'' if race.squares else ', sums alone'}"
        rows.append(row(RACE, setting, chosen, wrong))
    for algorithm in assumed:
        most = int(algorithm.pulls_by_round(n_arms)[-1])
        chosen = raced(algorithm, repeated(scores, repetitions, most, seed))
        rows.append(row(ASSUMED, f"s = {algorithm.sigma * math.sqrt(2):.2g}", chosen, wrong))
    for splits in per_arm:
        chosen = searched(repeated(scores, repetitions, splits, seed), splits)
        rows.append(row(GRID, f"{splits} splits", chosen, wrong))
    for splits in pruners:
        chosen = pruned(repeated(scores, repetitions, splits, seed), splits, seed)
        rows.append(row(PRUNER, f"{splits} splits", chosen, wrong))
    for budget in budgets:
        chosen = halved(repeated(scores, repetitions, budget, seed), budget)
        rows.append(row(HALVING, f"{budget} fits", chosen, wrong))
    return rows


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of `row` in readable numbers; fits have one standard error where they vary."""
    interval = zip(table["lower"], table["upper"], strict=True)
    return pd.DataFrame(
        {
            "fits": [
                f"{fits:,.0f}" + (f" ± {error:,.0f}" if error >= 0.5 else "")
                for fits, error in zip(table["fits"], table["fits_error"], strict=True)
            ],
            "images trained on": table["images"].map("{:,.0f}".format),
            "wrong": table["errors"].map("{:.1%}".format),
            "95 % interval": [f"{low:.1%} to {high:.1%}" for low, high in interval],
            "repetitions": table["repetitions"],
        }
    ).set_index(pd.MultiIndex.from_frame(table[["method", "setting"]]))


def equal(table: pd.DataFrame, delta: float) -> pd.DataFrame:
    """The methods at the cost of the first race, and each as cheap as it can be with no more than δ wrong."""
    cost = float(table.loc[table["method"] == RACE, "fits"].iloc[0])
    parts: dict[str, list[pd.DataFrame]] = {"equal cost": [], "equal error": []}
    for _, rows in table.groupby("method", sort=False):
        parts["equal cost"].append(rows.loc[[(rows["fits"] - cost).abs().idxmin()]])
        good = rows[rows["errors"] <= delta]
        parts["equal error"].append(good.nsmallest(1, "fits"))
    return pd.concat({name: shown(pd.concat(part)) for name, part in parts.items()})


def draw_errors(table: pd.DataFrame, delta: float, promised: float) -> Figure:
    """Draw errors against fits, a curve a method, from rows of `row`; `promised` are the fits of the race."""
    figure, axis = plt.subplots(figsize=(figures.COLUMN, 3.0))
    for name, look in METHOD_LOOKS.items():
        rows = table[table["method"] == name].sort_values("fits")
        reach = (rows["errors"] - rows["lower"], rows["upper"] - rows["errors"])
        axis.errorbar(rows["fits"], rows["errors"], reach, **look.line(ms=3.5, capsize=1.5, label=name))
    axis.axhline(delta, color="0.6", lw=0.8, ls=":")
    axis.annotate("δ", (1, delta), (2, 0), xycoords=("axes fraction", "data"), textcoords="offset points")
    axis.axvline(promised, color="0.6", lw=0.8, ls=":")
    axis.text(promised, 1.01, "promised", transform=axis.get_xaxis_transform(), ha="center", color="0.4")
    axis.set(xscale="log", xlabel=f"fits (of {TRAIN} images, scored on {TEST})", ylabel="wrong choices")
    figure.legend(loc="outside lower center", ncols=2)
    return figure
