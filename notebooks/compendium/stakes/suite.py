"""Twenty-seven problems on which races are compared, in two halves.

Constants of staked EBR were chosen on the first half, and on others. The second was fixed before any race was
run on it.
"""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium.shared import figures
from compendium.shared.characteristic_time import characteristic_lower_bound
from compendium.shared.lineup import LOOKS, legend_below
from compendium.shared.problem_sets import Instance, twelve_digits
from compendium.stakes.small_designs import designs
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.arrays import FloatArray
from ebr.models import IN_UNIT
from ebr.simulation.sweep import Point, sweep
from ebr.theory.problems import Bernoulli, Gaussian, setup_1, setup_2

OURS, CERTIFIED = "staked EBR", "certified"
RACES = {
    "Algorithm 1": ElasticBatchRacing,
    "sharp EBR": SharpElasticBatchRacing,
    "pausing EBR": PausingElasticBatchRacing,
    OURS: StakedElasticBatchRacing,
}
# Share of the runs: fewer where a race takes long, more on small problems, where several races are close.
SHARES = {"line 1000": 0.1, "beta 1000": 0.1, "one of 300": 0.1, "equal 100": 0.2, "geometric 60": 0.4}
SHARES |= dict.fromkeys(("two", "pair", "trial"), 10) | dict.fromkeys(("T = 3", "equal 5", "two good"), 5)
DRAWN = {
    OURS: LOOKS["staked"],
    "pausing EBR": LOOKS["pausing"],
    "sharp EBR": LOOKS["sharp"],
    CERTIFIED: LOOKS["certified"],
}
HALVES = ("chosen on", "kept for reporting")
REACH = 2.58  # standard errors: a 99 % interval
MARGIN = 1.05  # by which a race is to be the best somewhere


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


def instances(half: str, gaussian: bool = False) -> list[Instance]:
    """The problems of a half, with 0/1 rewards or with Gaussian ones, σ = ½."""
    chosen = CHOSEN_ON if half == HALVES[0] else REPORTED
    made = []
    for name, means, deadline, epsilon, delta in chosen:
        means = twelve_digits(means)
        problem = Gaussian(means, 0.5) if gaussian else Bernoulli(means)
        made.append(Instance(name, problem, epsilon, deadline, delta))
    return made


def points(model: str) -> list[Point]:
    """Every race on every problem, with rewards of a model; all but Algorithm 1 are told the model.

    The certified design takes part where there is one.
    """
    made = []
    for half in HALVES:
        for kind, problem, epsilon, deadline, delta in instances(half, model not in IN_UNIT):
            labels = {"rewards": model, "half": half, "problem": kind, "n": problem.n_arms, "T": deadline}
            labels |= {"epsilon": epsilon, "delta": delta}
            told = {"rewards": None if model == "Bernoulli" else model}
            races: dict[str, Algorithm] = {
                name: make(deadline, epsilon, delta, **({} if name == "Algorithm 1" else told))
                for name, make in RACES.items()
            }
            if (model, kind) in designs():
                races[CERTIFIED] = designs()[model, kind]
            made += [Point(labels | {"race": name}, race, problem) for name, race in races.items()]
    return made


def played(made: Sequence[Point], staked: int, others: int, seed: int) -> pd.DataFrame:
    """All races, so many times each, or the problem's share of it. Those that take long come first."""
    groups: dict[int, list[Point]] = {}
    for point in made:
        runs = staked if point.labels["race"] == OURS else others
        groups.setdefault(math.ceil(SHARES.get(point.labels["problem"], 1) * runs), []).append(point)
    table = pd.concat([sweep(groups[runs], runs, seed) for runs in sorted(groups)], ignore_index=True)
    order = ["rewards", "half", "problem", "race"]
    places = {tuple(point.labels[name] for name in order): place for place, point in enumerate(made)}
    keys = table[order].itertuples(index=False, name=None)
    return table.iloc[np.argsort([places[key] for key in keys], kind="stable")]


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Each race's pulls over those of the best other race on the problem: columns ratio and spread.

    spread is the ratio's standard error; who is best is decided by the means.
    """
    rows = []
    for _, group in table.groupby(["rewards", "half", "problem"], sort=False):
        for row in group.to_dict("records"):
            others = group[group["race"] != row["race"]]
            best = others.sort_values("pulls").iloc[0]
            ratio = row["pulls"] / best["pulls"]
            spread = ratio * np.hypot(row["error"] / row["pulls"], best["error"] / best["pulls"])
            rows.append(row | {"ratio": ratio, "spread": spread, "against": best["race"]})
    return pd.DataFrame(rows)


def which(table: pd.DataFrame) -> pd.DataFrame:
    """The best race on each problem (rows) with each kind of rewards (columns), and its ratio."""
    best = table[table["ratio"] <= 1]
    words = [f"{row.race} {row.ratio:.2f} ± {row.spread:.2f}" for row in best.itertuples()]
    keys = ["half", "problem", "n", "T", "epsilon"]
    return best.assign(best=words).pivot_table("best", keys, "rewards", aggfunc="first", sort=False)


def leads(table: pd.DataFrame) -> pd.DataFrame:
    """Where each race needs at most 1/1.05 of the pulls of the best other race, by kind of rewards.

    Problems on which the 99 % interval of the ratio reaches above 1/1.05 have a question mark.
    """
    ahead = table[table["ratio"] <= 1 / MARGIN]
    sure = ahead["ratio"] + REACH * ahead["spread"] <= 1 / MARGIN
    words = ahead["problem"] + np.where(sure, "", " (?)")
    by = ahead.assign(words=words).groupby(["race", "rewards"], sort=False)["words"].agg(", ".join)
    races = dict.fromkeys(table["race"])
    models = dict.fromkeys(table["rewards"])
    return pd.DataFrame(
        {model: {race: by.get((race, model), "nowhere") for race in races} for model in models}
    )


def floors(table: pd.DataFrame) -> pd.DataFrame:
    """T*(ν) kl(δ, 1−δ) of both setups, and how many times more each race pulls."""
    rows = {}
    for at in instances(HALVES[0])[:2]:
        pulls = table[table["problem"] == at.kind].set_index("race")["pulls"]
        floor = characteristic_lower_bound(at.problem, at.epsilon, at.delta)
        rows[at.kind] = {"floor": f"{floor:,.0f}"} | {name: f"{pulls[name] / floor:.1f}" for name in RACES}
    return pd.DataFrame(rows).T


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `relative` for people: one row for each problem, with our pulls, rounds and all ratios."""
    ours = table[table["race"] == OURS].set_index(["half", "problem"])
    said = ours[["n", "T", "epsilon", "delta"]].rename(columns={"epsilon": "ε", "delta": "δ"})
    said["pulls"] = [f"{row.pulls:,.0f} ± {row.error:,.0f}" for row in ours.itertuples()]
    said["rounds"] = ours["rounds"]
    for name in (CERTIFIED, *reversed(RACES)):
        part = table[table["race"] == name].set_index(["half", "problem"])
        words = {row.Index: f"{row.ratio:.2f} ± {row.spread:.2f}" for row in part.itertuples()}
        said[name] = [words.get(index, "") for index in said.index]
    return said


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """For each half and race: the geometric mean of its ratios, the worst, and on how many problems it leads.

    It leads clearly where the 99 % interval of its ratio is below 1, and is behind where it is above.
    """
    rows = []
    for (half, race), part in table.groupby(["half", "race"], sort=False):
        reach = REACH * part["spread"]
        ahead, behind = part["ratio"] + reach < 1, part["ratio"] - reach > 1
        worst = part.sort_values("ratio").iloc[-1]
        mean = float(np.exp(np.log(part["ratio"]).mean()))
        worst_words = f"{worst['ratio']:.2f}, {worst['problem']}"
        rows.append((half, race, len(part), round(mean, 2), int(ahead.sum()), int(behind.sum()), worst_words))
    names = ["half", "race", "problems", "mean ratio", "clearly ahead", "clearly behind", "worst"]
    return pd.DataFrame(rows, columns=names).set_index(["half", "race"])


def draw(table: pd.DataFrame) -> Figure:
    """Ratios of `relative` but for Algorithm 1, one panel for each half; bars are 99 % intervals."""
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 4.4), sharex=True)
    for axis, half in zip(axes, HALVES, strict=True):
        part = table[table["half"] == half]
        names = list(dict.fromkeys(part["problem"]))
        for step, (race, look) in enumerate(DRAWN.items()):
            of_race = part[part["race"] == race]
            places = np.array([names.index(name) for name in of_race["problem"]]) + 0.18 * (step - 1.5)
            style = look.line(ls="", ms=3.5, lw=0.8, label=race)
            axis.errorbar(of_race["ratio"], places, xerr=REACH * of_race["spread"], **style)
        axis.axvline(1, color="0.3", lw=0.8, zorder=0)
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.set(xscale="log", title=half, xlabel="pulls over those of the best other race")
        axis.set_xticks([0.5, 0.7, 1, 1.4, 2, 3, 4], ["0.5", "0.7", "1", "1.4", "2", "3", "4"])
        axis.minorticks_off()
        axis.grid(axis="y", lw=0.3, color="0.85")
    figures.letters(axes)
    legend_below(figure, axes[0])
    return figure
