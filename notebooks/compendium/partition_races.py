"""Every algorithm on the hard problems of every non-empty P_γ, beside the bounds of Theorems 1 and 3."""

import math
from collections.abc import Callable, Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium import figures
from compendium.lineup import LOOKS, algorithms
from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray
from ebr.simulation.simulate import simulate
from ebr.theory import bounds
from ebr.theory.bounds import hpcm
from ebr.theory.problems import Problem, hardest, nonempty_partitions

__all__ = ["costs", "draw"]

SIGMA = 0.5  # of the races: kδER and AE are made for it
Family = Callable[[int, float, float, float], dict[str, Algorithm]]
LowerBound = Callable[[tuple[int, ...], float, int, float, float], float]


def costs(
    shapes: Iterable[tuple[int, int]],
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
    family: Family = algorithms,
    proved: LowerBound = bounds.partition_lower_bound,
) -> pd.DataFrame:
    """Every algorithm on the hard problems of every non-empty P_γ: Gaussian arms, σ = ½.

    Columns: n_arms, deadline, gamma, algorithm, runs; pulls (mean, with its error) on the dearer of two
    problems, with the gaps of γ_i = T at ε and at 0; the bounds lower (Theorem 3, corrected: as `proved`),
    printed, and upper (Theorem 1). On the first problem: in how many runs Lemma HPCM's count is reached by
    the least pulled of the others (others), by the best arm (best), and four times the count by all pulls
    (total).
    """
    rows = []
    for n_arms, deadline in shapes:
        for gamma in nonempty_partitions(n_arms, deadline):
            place = gamma, epsilon, deadline, delta, SIGMA
            apart, equal = (hardest(gamma, epsilon, deadline, SIGMA, shrink) for shrink in (1.0, 0.0))
            described = {"n_arms": n_arms, "deadline": deadline, "gamma": "".join(map(str, gamma))}
            limits = {
                "lower": proved(*place),
                "printed": bounds.partition_lower_bound(*place, printed=True),
                "upper": bounds.partition_upper_bound(apart, epsilon, deadline, delta),
            }
            needed = hpcm(delta) * SIGMA**2 / (apart.gaps + epsilon) ** 2
            for name, algorithm in family(deadline, epsilon, delta, SIGMA).items():
                raced = _raced(algorithm, apart, equal, needed, runs, seed)
                rows.append(described | {"algorithm": name, "runs": runs} | raced | limits)
    return figures.rounded(pd.DataFrame(rows))


def _raced(
    algorithm: Algorithm, apart: Problem, equal: Problem, needed: FloatArray, runs: int, seed: int
) -> dict[str, float]:
    """What `costs` measures of one algorithm on the two problems of one P_γ."""
    runs_apart = simulate(algorithm, apart, runs, seed, per_arm=True)
    each = runs_apart.by_arm()[0] >= needed
    both = [result.pulls for result in (runs_apart, simulate(algorithm, equal, runs, seed))]
    dearer = max(both, key=lambda pulls: float(pulls.mean()))
    return {
        "pulls": float(dearer.mean()),
        "error": float(dearer.std(ddof=1) / math.sqrt(runs)),
        "others": int(np.delete(each, apart.best, axis=1).sum(axis=0).min()),
        "best": int(each[:, apart.best].sum()),
        "total": int((runs_apart.pulls >= 4 * needed[0]).sum()),
    }


def draw(table: pd.DataFrame, n_arms: int, deadline: int) -> Figure:
    """The costs on every P_γ of one shape, side by side, over the band from Theorem 3 to Theorem 1."""
    part = table[(table["n_arms"] == n_arms) & (table["deadline"] == deadline)]
    figure, axis = plt.subplots(figsize=(figures.PAGE, 2.9))
    limits = part.drop_duplicates("gamma")
    place = np.arange(len(limits))
    names = part["algorithm"].unique()
    for number, name in enumerate(names):
        pulls = part.loc[part["algorithm"] == name, "pulls"]
        dodge = 0.18 * (number - (len(names) - 1) / 2)
        axis.plot(place + dodge, pulls, label=name, **LOOKS[name].line(ls="", ms=4))
    height, band = limits["upper"] - limits["lower"], "from Theorem 3, corrected, to Theorem 1"
    axis.bar(place, height, 1.0, limits["lower"], color="0.9", label=band, zorder=0)
    axis.plot(place, limits["printed"], "_", color="0.2", ms=14, label="Theorem 3 as printed")
    axis.set_xticks(place, limits["gamma"])
    axis.set(yscale="log", xlabel=f"γ (n = {n_arms}, T = {deadline})", ylabel="pulls", ylim=(2, None))
    axis.grid(visible=False, axis="x")
    figure.legend(loc="outside lower center", ncols=4)
    return figure
