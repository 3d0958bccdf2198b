"""Tables of races: EBR's pulls, failures and intervals beside the bounds."""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium.shared import cost_bounds, figures
from compendium.shared.adversary import audit
from compendium.shared.lineup import LOOKS, MakeElastic
from compendium.shared.problem_sets import Instance
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.theory.problems import Problem


def measure(
    settings: Iterable[Instance], runs: int, seed: int, make: MakeElastic = ElasticBatchRacing
) -> pd.DataFrame:
    """Race on each problem and compare the pulls with every bound.

    Columns: kind, n_arms, deadline, epsilon, delta, runs, pulls (mean) and most (maximum); the number of runs
    in which the returned arm is wrong (wrong), E fails (missed), an arm is pulled beyond round γ_i (late), or
    a corrected bound is exceeded (over_…); the bounds of Theorems 1 to 3; and complexity, H(ν).
    """
    rows = []
    for kind, problem, epsilon, deadline, delta in settings:
        race = audit(make(deadline, epsilon, delta, problem.sigma), problem, runs, seed)
        pulls = race.arm_pulls.sum(axis=1)
        gamma = cost_bounds.partition(problem, epsilon, deadline)
        upper = upper_bounds(problem, epsilon, deadline, delta)
        spared = race.arm_pulls > np.ceil(cost_bounds.schedule(problem, epsilon, deadline, delta))[gamma - 1]
        setting = {"kind": kind, "n_arms": problem.n_arms, "deadline": deadline, "epsilon": epsilon}
        found = {
            "pulls": pulls.mean(),
            "most": pulls.max(),
            "wrong": int((~problem.is_good(race.arm, epsilon)).sum()),
            "missed": int((~race.covered).sum()),
            "late": int(spared.any(axis=1).sum()),
        }
        over = {name.replace("theorem", "over"): int((pulls > bound).sum()) for name, bound in upper.items()}
        lower = cost_bounds.partition_lower_bound(gamma.tolist(), epsilon, deadline, delta, problem.sigma)
        more = {"theorem_3": lower, "complexity": problem.complexity(epsilon)}
        rows.append(setting | {"delta": delta, "runs": runs} | found | over | upper | more)
    return pd.DataFrame(rows)


def upper_bounds(
    problem: Problem, epsilon: float, deadline: int, delta: float, printed: bool = False
) -> dict[str, float]:
    """Theorem 1, its second form and Theorem 2 on one problem, as printed or corrected."""
    place = (problem, epsilon, deadline, delta, printed)
    return {
        "theorem_1": cost_bounds.partition_upper_bound(*place),
        "theorem_1b": cost_bounds.hardest_upper_bound(*place),
        "theorem_2": cost_bounds.problem_upper_bound(*place),
    }


def draw_bounds(table: pd.DataFrame, titles: Iterable[str]) -> Figure:
    """Mean pulls against the deadline, from `measure`, in the band of Theorems 3 and 1; a panel per kind."""
    kinds = table.groupby("kind", sort=False)
    figure, axes = plt.subplots(1, len(kinds), figsize=(figures.PAGE, 2.9), sharey=True)
    for axis, title, (_, part) in zip(axes, titles, kinds, strict=True):
        rounds, runs = part["deadline"], part["runs"].iloc[0]
        axis.fill_between(rounds, part["theorem_3"], part["theorem_1"], color="0.85", lw=0)
        axis.plot(rounds, part["theorem_2"], "--", color="C3", lw=1, label="Theorem 2, upper bound")
        axis.plot(rounds, part["theorem_1"], "-", color="0.3", lw=1, label="Theorem 1, upper bound")
        looks = LOOKS["EBR"].line(ls="", ms=3, label=f"EBR, mean of {runs} runs")
        axis.plot(rounds, part["pulls"], **looks)
        axis.plot(rounds, part["theorem_3"], "-.", color="C2", lw=1, label="Theorem 3, lower bound")
        axis.set(xscale="log", yscale="log", xlabel="rounds T", title=title)
        axis.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
        axis.set_xticks([], minor=True)
    axes[0].set_ylabel("pulls")
    figures.letters(axes)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
