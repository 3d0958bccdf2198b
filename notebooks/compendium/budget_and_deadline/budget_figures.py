"""The pictures of budgets and deadlines."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compendium.shared import figures
from compendium.shared.lineup import Look, legend_below, ticks

LOOKS = {
    "T = 1": Look("C4", "v", "-"),
    "T = 2": Look("C5", "P", "-"),
    "T = 3": Look("C0", "o", "-"),
    "T = 7": Look("black", "X", "-"),
    "sequential halving": Look("C1", "s", "--"),
    "successive rejects": Look("C2", "^", ":"),
}
PRICES = {
    "sketch": ("the sketch, $4Tn^{1/T}$", Look("C1", "s", "--")),
    "balanced": ("balanced, $2Λ$", Look("C0", "o", "-")),
    "sharpest": ("cheapest with $ρ(m)$", Look("C2", "^", "-.")),
    "floor": ("floor, $T(n^{1/T}-1)+1$", Look("0.4", "", ":")),
}


def draw_errors(table: pd.DataFrame) -> Figure:
    """The share of wrong arms against the budget, a panel a problem; bars are 99 % intervals."""
    figure, axes = plt.subplots(2, 2, figsize=(figures.PAGE, 4.8), sharey=True)
    for axis, (problem, part) in zip(axes.flat, table.groupby("problem", sort=False), strict=True):
        for name, look in LOOKS.items():
            curve = part[part["algorithm"] == name]
            reach = [curve["share"] - curve["low"], curve["high"] - curve["share"]]
            looks = look.line(ms=3.5, capsize=1.5, label=name)
            axis.errorbar(curve["budget"], curve["share"], reach, **looks)
        axis.set(xscale="log", yscale="log", ylim=(1e-3, 1.2), title=str(problem))
        budgets = sorted(part["budget"].unique())
        axis.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
        axis.set_xticks([], minor=True)
    for axis in axes[:, 0]:
        axis.set_ylabel("share of wrong arms")
    for axis in axes[1]:
        axis.set_xlabel("budget B (pulls)")
    legend_below(figure, axes[0, 0])
    return figure


def draw_prices(price: pd.DataFrame, need: pd.DataFrame) -> Figure:
    """The price of a deadline: in the bounds, left, and of the budget that an error of 10 % needs, right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(figures.PAGE, 3.0))
    for column, (label, look) in PRICES.items():
        left.plot(price["deadline"], price[column], label=label, **look.line(ms=3.5))
    left.set(xscale="log", yscale="log", ylim=(4, 4000), xlabel="rounds T")
    left.set_ylabel("pulls for a factor e, over 2σ²H₂")
    marks = ("o", "^", "D")
    for place, (name, part) in enumerate(need.groupby("problem", sort=False)):
        looks = Look(f"C{place}", marks[place], ("-", "--", ":")[place])
        right.plot(part["deadline"], part["ratio"], label=name, **looks.line(ms=3.5))
    right.set(xscale="log", yscale="log", xlabel="rounds T", ylabel="budget, over that of T = 1")
    for axis, table in ((left, price), (right, need)):
        ticks(axis, {1, 2, 3, 5, 10, 20, 50, 99} & set(table["deadline"]))
    left.legend(loc="upper right")
    right.legend()
    right.set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    right.set_yticks([], minor=True)
    return figure
