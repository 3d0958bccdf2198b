"""A table of means on the event E that makes EBR err by a visible margin."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium.shared import figures
from compendium.shared.adversary import SIGMA, WITHIN, Played, play_inside
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.theory.problems import Gaussian, Problem

GAPS = (0, 0.054, 0.108, 0.2)  # the last arm is ε = 0.2 below the best; η = ε/3 = 0.0667
LOW, TOP = -WITHIN, WITHIN
# Place of each empirical mean in its interval, by round and arm.
PLACES = ((LOW, TOP, TOP, TOP), (0.0, LOW, TOP, TOP), (0.0, 0.0, LOW, TOP))


def on_e() -> tuple[ElasticBatchRacing, Gaussian, Played]:
    """Four arms, three rounds: rounds 1 and 2 each drop the best survivor, and the last argmax errs."""
    algorithm = ElasticBatchRacing(3, 0.2, 0.1, SIGMA)
    problem = Gaussian(0.8 - np.array(GAPS), SIGMA)
    return algorithm, problem, play_inside(algorithm, problem, np.array([PLACES]))


def intervals(algorithm: ElasticBatchRacing, problem: Problem, played: Played) -> pd.DataFrame:
    """True and empirical means with intervals in the adversary's first table, by round.

    An arm is dropped if the upper end of its interval lies below `threshold`.
    """
    rows = []
    for number, stage in enumerate(played.rounds, start=1):
        width = float(algorithm.deviation(stage.pulls, problem.n_arms))
        arms = np.flatnonzero(stage.alive[0])
        threshold = stage.means[0, arms].max() - width + algorithm.slack(problem.n_arms)
        for arm in arms:
            mean = stage.means[0, arm]
            ends = (mean, mean - width, mean + width, threshold)
            rows.append((number, arm + 1, stage.pulls, problem.means[arm], *ends))
    columns = ["round", "arm", "pulls", "true", "mean", "lower", "upper", "threshold"]
    return pd.DataFrame(rows, columns=columns)


def margins(table: pd.DataFrame) -> list[float]:
    """Margin of each decision: how far the best survivor falls short; at the end, the wrong arm's lead."""
    *early, final = (stage for _, stage in table.groupby("round"))
    falls = [float(stage["threshold"].iloc[0] - stage["upper"].iloc[0]) for stage in early]
    return [*falls, float(final["mean"].iloc[-1] - final["mean"].iloc[0])]


def draw(table: pd.DataFrame) -> Figure:
    """The table of means, one panel per round, with the line below which arms are dropped."""
    rounds = table.groupby("round")
    figure, axes = plt.subplots(1, len(rounds), figsize=(figures.PAGE, 3.2), sharex=True, sharey=True)
    for axis, (number, stage) in zip(axes, rounds, strict=True):
        _panel(axis, stage)
        axis.set_title(f"round {number}, {stage['pulls'].max():,} pulls each")
        axis.set(xlabel="arm", xticks=table["arm"].unique(), xlim=(0.4, table["arm"].max() + 0.6))
        if number < table["round"].max():
            line = stage["threshold"].iloc[0]
            axis.axhline(line, color="0.3", ls=":", lw=1, label="largest lower end + η")
            note = f"arm {stage['arm'].iloc[0]} is dropped: its interval\nends below the dotted line"
        else:
            note = f"arm {stage['arm'].iloc[-1]} has the higher\nmean and is returned"
        axis.annotate(note, (0.04, 0.03), xycoords="axes fraction", fontsize=7)
    axes[0].set(ylabel="reward", ylim=(0.38, 1.08))
    figures.letters(axes)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _panel(axis: Axes, stage: pd.DataFrame) -> None:
    """Intervals as bars, true means as ticks."""
    axis.hlines(stage["true"], stage["arm"] - 0.3, stage["arm"] + 0.3, color="0.1", lw=1.2, label="true mean")
    for row in stage.to_dict("records"):
        arm, mean = row["arm"], row["mean"]
        looks: dict[str, Any] = {"fmt": "os^D"[arm - 1], "color": f"C{arm - 1}", "capsize": 3, "lw": 1}
        label = "empirical mean and its interval" if arm == 2 else None
        axis.errorbar(arm, mean, row["upper"] - mean, label=label, **looks)
