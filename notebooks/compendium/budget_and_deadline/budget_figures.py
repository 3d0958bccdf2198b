"""The pictures of notebook 15: errors against the budget, and what a deadline costs."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium.shared import figures
from compendium.shared.lineup import LOOKS, legend_below, ticks

# Balanced plans have one colour; the darker, the more rounds.
SHADES = {"T = 1": "#E3C79B", "T = 2": "#C19653", "T = 3": LOOKS["balanced plan"].color, "T = 7": "#4A2F0E"}
RIVALS = ("sequential halving", "successive rejects")
BOUNDS = {
    "sketch": ("sketch, $4Tn^{1/T}$", "--", "0.45"),
    "balanced": ("balanced, $2Λ$", "-", LOOKS["balanced plan"].color),
    "sharpest": ("cheapest", "-.", LOOKS["balanced plan"].color),
    "floor": ("no plan is below", ":", "black"),
}
PROBLEMS = ("o-", "^--", "D:")


def draw_errors(table: pd.DataFrame) -> Figure:
    """The share of wrong arms against the budget, one panel for each problem; bars are 99 % intervals."""
    figure, axes = plt.subplots(2, 2, figsize=(figures.PAGE, 4.6), sharey="row")
    for axis, (problem, part) in zip(axes.flat, table.groupby("problem", sort=False), strict=True):
        for name in (*SHADES, *RIVALS):
            curve = part[part["algorithm"] == name]
            reach = [curve["share"] - curve["low"], curve["high"] - curve["share"]]
            look = LOOKS[name if name in RIVALS else "balanced plan"].line(ms=4, capsize=1.5, label=name)
            look |= {"color": SHADES[name], "ms": 6} if name in SHADES else {}
            axis.errorbar(curve["budget"], curve["share"], reach, **look)
        axis.set(xscale="log", yscale="log", title=str(problem))
        budgets = sorted(part["budget"].unique())
        axis.set_xticks(budgets, [f"{budget / 1000:g}" for budget in budgets])
        axis.set_xticks([], minor=True)
    axes[0, 0].set_ylim(8e-3, 1.1)
    axes[1, 0].set_ylim(2e-3, 1.1)
    for axis in axes[:, 0]:
        axis.set_ylabel("share of wrong arms")
    for axis in axes[1]:
        axis.set_xlabel("budget B (thousands of pulls)")
    figures.letters(axes.flat)
    legend_below(figure, axes[0, 0])
    return figure


def draw_prices(price: pd.DataFrame, need: pd.DataFrame) -> Figure:
    """The price of a deadline: in the bounds, and of the budget that an error of 10 % needs."""
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 2.7), gridspec_kw={"wspace": 0.08})
    left, right = axes
    for column, (label, dash, color) in BOUNDS.items():
        left.plot(price["deadline"], price[column], dash, color=color, label=label)
    left.set(yscale="log", ylim=(4, 500), ylabel="pulls for a factor e, over 2σ²H₂")
    left.legend(loc="center right", bbox_to_anchor=(1.0, 0.38), labelspacing=0.3)
    for look, (name, part) in zip(PROBLEMS, need.groupby("problem", sort=False), strict=False):
        right.plot(part["deadline"], part["ratio"], look, color="0.25", ms=3.5)
        _beside(right, str(name), part["deadline"].iloc[-1], part["ratio"].iloc[-1])
    right.set(yscale="log", ylabel="budget over that of one round", xlim=(0.9, 24))
    right.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    right.set_yticks([], minor=True)
    for axis, table in ((left, price), (right, need)):
        axis.set(xscale="log", xlabel="rounds T")
        ticks(axis, {1, 2, 3, 5, 10, 20, 50, 99} & set(table["deadline"]))
    figures.letters(axes)
    return figure


def _beside(axis: Axes, words: str, x: float, y: float) -> None:
    """Write a curve's name to the right of its end."""
    axis.annotate(words, (x, y), (4, 0), textcoords="offset points", va="center", fontsize=7.5)
