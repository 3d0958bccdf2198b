"""Twenty-seven problems on which races of 0/1 rewards are compared, in two halves.

Constants of staked EBR were chosen on the first half, and on others. The second was fixed before any race was
run on it.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium.shared import figures
from compendium.shared.characteristic_time import characteristic_lower_bound
from compendium.shared.lineup import LOOKS, legend_below
from compendium.shared.problem_sets import Instance
from ebr.algorithms.elastic import ElasticBatchRacing
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
# The part of the runs that races on problems with many arms, or many rounds, get.
FEWER = {"line 1000": 0.1, "beta 1000": 0.1, "one of 300": 0.1, "equal 100": 0.2, "geometric 60": 0.4}
DRAWN = {OURS: LOOKS["staked"], "pausing EBR": LOOKS["pausing"], "sharp EBR": LOOKS["sharp, [0, 1]"]}
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


def instances(half: str, gaussian: bool = False) -> list[Instance]:
    """The problems of a half, with 0/1 rewards or with Gaussian ones, σ = ½."""
    chosen = CHOSEN_ON if half == HALVES[0] else REPORTED
    made = []
    for name, means, deadline, epsilon, delta in chosen:
        means = twelve_digits(means)
        problem = Gaussian(means, 0.5) if gaussian else Bernoulli(means)
        made.append(Instance(name, problem, epsilon, deadline, delta))
    return made


def points(half: str, at: Iterable[Instance], rewards: str | None = None) -> list[Point]:
    """Every race on each of these problems; all but Algorithm 1 are told what the rewards are."""
    made = []
    for (kind, problem, epsilon, deadline, delta), (name, make) in product(at, RACES.items()):
        told = {} if name == "Algorithm 1" else {"rewards": rewards}
        labels = {"half": half, "problem": kind, "n": problem.n_arms, "T": deadline, "epsilon": epsilon}
        labels |= {"delta": delta, "race": name}
        made.append(Point(labels, make(deadline, epsilon, delta, **told), problem))
    return made


def played(made: Sequence[Point], runs: int, seed: int) -> pd.DataFrame:
    """All races, so many times each; on problems that take long fewer times. These come first."""
    groups: dict[float, list[Point]] = {}
    for point in made:
        groups.setdefault(FEWER.get(point.labels["problem"], 1.0), []).append(point)
    parts = [sweep(groups[part], math.ceil(part * runs), seed) for part in sorted(groups)]
    table = pd.concat(parts, ignore_index=True)
    names = [name for chosen in (CHOSEN_ON, REPORTED) for name, *_ in chosen]
    halves = list(dict.fromkeys(point.labels["half"] for point in made))
    places = table["half"].map(halves.index) * len(names) + table["problem"].map(names.index)
    return table.iloc[places.argsort(kind="stable")]


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Each race's pulls over those of the best of the other three on the problem: columns ratio and spread.

    spread is the ratio's standard error; who is best is decided by the means.
    """
    rows = []
    for _, group in table.groupby(["half", "problem"], sort=False):
        for row in group.to_dict("records"):
            others = group[group["race"] != row["race"]]
            best = others.sort_values("pulls").iloc[0]
            ratio = row["pulls"] / best["pulls"]
            spread = ratio * np.hypot(row["error"] / row["pulls"], best["error"] / best["pulls"])
            rows.append(row | {"ratio": ratio, "spread": spread, "against": best["race"]})
    return pd.DataFrame(rows)


def floors(table: pd.DataFrame) -> pd.DataFrame:
    """T*(ν) kl(δ, 1−δ) of both setups, and how many times more each race pulls."""
    rows = {}
    for at in instances(HALVES[0])[:2]:
        pulls = table[table["problem"] == at.kind].set_index("race")["pulls"]
        floor = characteristic_lower_bound(at.problem, at.epsilon, at.delta)
        rows[at.kind] = {"floor": f"{floor:,.0f}"} | {name: f"{pulls[name] / floor:.1f}" for name in RACES}
    return pd.DataFrame(rows).T


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `relative` for people: a row a problem, pulls of ours, each race's ratio, and our rounds."""
    ours = table[table["race"] == OURS].set_index(["half", "problem"])
    said = ours[["n", "T", "epsilon", "delta"]].rename(columns={"epsilon": "ε", "delta": "δ"})
    said["pulls"] = [f"{row.pulls:,.0f} ± {row.error:,.0f}" for row in ours.itertuples()]
    said["rounds"] = ours["rounds"]
    for name in reversed(RACES):
        part = table[table["race"] == name].set_index(["half", "problem"]).loc[ours.index]
        said[name] = [f"{row.ratio:.2f} ± {row.spread:.2f}" for row in part.itertuples()]
    return said


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """For each half and race: the geometric mean of its ratios, the worst, and on how many problems it leads.

    It leads clearly where its ratio is below 1 by 2.58 standard errors, is behind where it is above so.
    """
    rows = []
    for (half, race), part in table.groupby(["half", "race"], sort=False):
        reach = 2.58 * part["spread"]
        ahead, behind = part["ratio"] + reach < 1, part["ratio"] - reach > 1
        worst = part.sort_values("ratio").iloc[-1]
        mean = float(np.exp(np.log(part["ratio"]).mean()))
        worst_words = f"{worst['ratio']:.2f}, {worst['problem']}"
        rows.append((half, race, len(part), round(mean, 2), int(ahead.sum()), int(behind.sum()), worst_words))
    names = ["half", "race", "problems", "mean ratio", "clearly ahead", "clearly behind", "worst"]
    return pd.DataFrame(rows, columns=names).set_index(["half", "race"])


def draw(table: pd.DataFrame) -> Figure:
    """Ratios of `relative` but for Algorithm 1: a panel a half, a line a problem; bars are 99 % intervals."""
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 4.0), sharex=True)
    for axis, half in zip(axes, HALVES, strict=True):
        part = table[table["half"] == half]
        names = list(dict.fromkeys(part["problem"]))
        for step, (race, look) in enumerate(DRAWN.items()):
            of_race = part[part["race"] == race]
            places = np.array([names.index(name) for name in of_race["problem"]]) + 0.2 * (step - 1)
            style: dict[str, Any] = {
                "color": look.color,
                "marker": look.marker,
                "ls": "",
                "ms": 3.5,
                "lw": 0.8,
            }
            axis.errorbar(of_race["ratio"], places, xerr=2.58 * of_race["spread"], label=race, **style)
        axis.axvline(1, color="0.3", lw=0.8, zorder=0)
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.set(xscale="log", title=half, xlabel="pulls over those of the best other race")
        axis.set_xticks([0.5, 0.7, 1, 1.4, 2, 3, 4], ["0.5", "0.7", "1", "1.4", "2", "3", "4"])
        axis.minorticks_off()
        axis.grid(axis="y", lw=0.3, color="0.85")
    legend_below(figure, axes[0])
    return figure
