"""A race of the reader's own: sliders in JupyterLab and on Binder, a still picture elsewhere."""

import math
import os
from io import BytesIO
from typing import Any

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from compendium.shared import figures
from compendium.shared.lineup import LOOKS
from compendium.shared.traces import trace
from ebr.algorithms.baselines import passive_pulls
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.theory.problems import Bernoulli

BEST, LEAST = 0.9, 0.05  # means: of the best arm, and below which no arm lies


def race(
    n_arms: int, deadline: int, epsilon: float, delta: float, gap: float, seed: int
) -> dict[str, pd.DataFrame]:
    """One race of EBR on 0/1 rewards whose means are `gap` apart.

    Two tables. "schedule": for each round, how often a survivor is pulled by its end, and whether the race
    got there. "arms": for each arm its pulls, its last round, its empirical mean and its fate (dropped, in
    the last round, or returned); and what all arms together would cost in a single round.
    """
    means = np.maximum(BEST - gap * np.arange(n_arms), LEAST)
    algorithm = ElasticBatchRacing(deadline, epsilon, delta)
    followed = trace(algorithm, Bernoulli(means), seed)
    arms = followed.groupby("arm").last().reset_index()[["arm", "pulls", "round", "mean"]]
    final = arms["round"].max()
    # A race that ends before round T has one arm left: all others were dropped.
    fate = np.where(arms["round"] < deadline, "dropped", "last round")
    fate[arms["mean"].where(arms["round"] == final).argmax()] = "returned"
    passive = n_arms * math.ceil(passive_pulls(n_arms, epsilon, delta))
    arms = arms.assign(arm=arms["arm"] + 1, fate=fate, passive=passive)
    schedule = pd.DataFrame({"round": np.arange(deadline) + 1, "pulls": algorithm.pulls_by_round(n_arms)})
    schedule["raced"] = schedule["round"] <= final
    return {"arms": figures.rounded(arms), "schedule": schedule}


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The schedule, and how often each arm is pulled before it falls."""
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 2.6), width_ratios=(2, 3))
    _schedule(axes[0], tables["schedule"])
    arms = tables["arms"]
    axes[1].barh(arms["arm"], arms["pulls"], color=LOOKS["EBR"].color, height=0.6)
    words = {"dropped": "dropped after round {}", "last round": "left in round {}", "returned": "returned"}
    for row in arms.to_dict("records"):
        note = f"{row['pulls']:,}, {words[row['fate']].format(row['round'])}"
        axes[1].annotate(note, (row["pulls"], row["arm"]), (3, 0), textcoords="offset points", va="center")
    axes[1].set(xscale="log", xlim=(arms["pulls"].min() / 3, arms["pulls"].max() * 60), ylabel="arm")
    axes[1].set(xlabel="pulls before it falls", ylim=(len(arms) + 0.6, 0.4), yticks=arms["arm"])
    axes[1].set_title(f"{arms['pulls'].sum():,} pulls; in one round {arms['passive'].iloc[0]:,}")
    axes[1].grid(visible=False, axis="y")
    figures.letters(axes)
    return figure


def _schedule(axis: Axes, table: pd.DataFrame) -> None:
    """The pulls of a survivor by round: filled as far as the race got."""
    axis.plot(table["round"], table["pulls"], **LOOKS["EBR"].line(mfc="white", ms=5))
    raced = table[table["raced"]]
    axis.plot(raced["round"], raced["pulls"], **LOOKS["EBR"].line(ls="", ms=5))
    axis.set(yscale="log", xlabel="round", ylabel="pulls of a survivor so far", title="the schedule")
    axis.set_xlim(0.5, len(table) + 0.5)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def panel(**start: Any) -> ipywidgets.VBox | None:
    """Sliders from these values of `race` on, with the picture; None where no front end would show them.

    A Jupyter server tells its kernels the notebook's name; what runs notebooks without a reader does not.
    """
    if "JPY_SESSION_NAME" not in os.environ:
        return None
    rest = {"continuous_update": False, "style": {"description_width": "4em"}}
    sliders = {
        "n_arms": ipywidgets.IntSlider(start["n_arms"], 2, 12, description="n", **rest),
        "deadline": ipywidgets.IntSlider(start["deadline"], 1, 15, description="T", **rest),
        "epsilon": ipywidgets.FloatLogSlider(start["epsilon"], min=-3, max=-0.3, description="ε", **rest),
        "delta": ipywidgets.FloatLogSlider(start["delta"], min=-6, max=-0.3, description="δ", **rest),
        "gap": ipywidgets.FloatSlider(start["gap"], min=0, max=0.4, step=0.01, description="gap", **rest),
    }
    picture = ipywidgets.Image(format="png")

    def redraw(_: object = None) -> None:
        chosen = {name: slider.value for name, slider in sliders.items()}
        figure, file = draw(race(**start | chosen)), BytesIO()
        figure.savefig(file, format="png", dpi=120)
        plt.close(figure)
        picture.value = file.getvalue()

    for slider in sliders.values():
        slider.observe(redraw, "value")
    redraw()
    return ipywidgets.VBox([*sliders.values(), picture])
