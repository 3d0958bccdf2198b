"""Every algorithm on the hard problems of every non-empty P_γ, beside the bounds of Theorems 1 and 3."""

import math
from collections.abc import Callable, Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium.shared import cost_bounds, figures
from compendium.shared.lineup import LOOKS, algorithms
from compendium.shared.problem_sets import hardest, nonempty_partitions
from ebr.algorithms.game import Algorithm
from ebr.simulation.simulate import simulate

SIGMA = 0.5  # the σ for which kδER and AE are made
Family = Callable[[int, float, float, float], dict[str, Algorithm]]


def costs(
    shapes: Iterable[tuple[int, int]],
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
    family: Family = algorithms,
) -> pd.DataFrame:
    """Every algorithm on the hard problems of every non-empty P_γ: Gaussian arms, σ = ½.

    Columns: n_arms, deadline, gamma, algorithm, runs; pulls (mean, with its error) on the costlier of two
    problems, where the gaps of γ_i = T are ε or 0; and the bounds: lower (Theorem 3, corrected), printed (as
    in the paper) and upper (Theorem 1).
    """
    rows = []
    for n_arms, deadline in shapes:
        for gamma in nonempty_partitions(n_arms, deadline):
            place = gamma, epsilon, deadline, delta, SIGMA
            apart, equal = (hardest(gamma, epsilon, deadline, SIGMA, shrink) for shrink in (1.0, 0.0))
            described = {"n_arms": n_arms, "deadline": deadline, "gamma": "".join(map(str, gamma))}
            limits = {
                "lower": cost_bounds.partition_lower_bound(*place),
                "printed": cost_bounds.partition_lower_bound(*place, printed=True),
                "upper": cost_bounds.partition_upper_bound(apart, epsilon, deadline, delta),
            }
            for name, algorithm in family(deadline, epsilon, delta, SIGMA).items():
                # Without a γ_i = T the two problems are the same.
                problems = (apart, equal) if deadline in gamma else (apart,)
                both = [simulate(algorithm, problem, runs, seed).pulls for problem in problems]
                dearer = max(both, key=lambda pulls: float(pulls.mean()))
                raced = {"pulls": float(dearer.mean()), "error": float(dearer.std(ddof=1) / math.sqrt(runs))}
                rows.append(described | {"algorithm": name, "runs": runs} | raced | limits)
    return figures.rounded(pd.DataFrame(rows))


def draw(table: pd.DataFrame, epsilon: float, n_arms: int, deadline: int) -> Figure:
    """Costs on every P_γ of one shape, arms in order of their gaps, on the band between the two bounds."""
    part = table[(table["n_arms"] == n_arms) & (table["deadline"] == deadline)]
    part = part[part["gamma"].map(lambda gamma: list(gamma) == sorted(gamma))]
    limits = part.drop_duplicates("gamma")
    figure, axis = plt.subplots(figsize=(figures.PAGE, 2.9))
    place = np.arange(len(limits))
    names = part["algorithm"].unique()
    for number, name in enumerate(names):
        pulls = part.loc[part["algorithm"] == name, "pulls"]
        dodge = 0.15 * (number - (len(names) - 1) / 2)
        axis.plot(place + dodge, pulls, label=name, **LOOKS[name].line(ls="", ms=4))
    height, band = limits["upper"] - limits["lower"], "between Theorem 3, corrected, and Theorem 1"
    axis.bar(place, height, 0.9, limits["lower"], color="0.9", label=band, zorder=0)
    axis.hlines(limits["printed"], place - 0.25, place + 0.25, color="0.2", label="Theorem 3 in the paper")
    axis.set_xticks(place, [_gaps(gamma, epsilon, deadline) for gamma in limits["gamma"]])
    axis.set(yscale="log", ylabel="pulls", ylim=(2, 1e5))
    axis.set_xlabel("gaps of the other two arms to the best")
    axis.grid(visible=False, axis="x")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def _gaps(gamma: str, epsilon: float, deadline: int) -> str:
    """Label of P_γ: the gaps of its hardest problems, without the best arm's, which is the runner-up's."""
    gaps = [f"{epsilon ** (int(index) / deadline):.2g}" for index in reversed(gamma[:-1])]
    return ", ".join(
        "≤ " * (index == str(deadline)) + gap for index, gap in zip(gamma[-2::-1], gaps, strict=True)
    )
