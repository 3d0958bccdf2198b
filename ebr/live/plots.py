"""Pictures of a race and of a plan, drawn from their tables. Others load this when they draw: it is slow."""

from itertools import cycle
from pathlib import Path
from typing import Any, cast

from matplotlib import style, ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pandas import DataFrame, Series

STYLE = Path(__file__).with_name("ebr.mplstyle")
CURVES = ("v--", "o-", "s-", "^-", "d-")  # of a plan: the worst case, then the truths
ALIVE: Any = {"fmt": "o", "markersize": 4, "color": "C0", "elinewidth": 1.4}  # survivors stand out
OUT: Any = {"fmt": "s", "markersize": 3, "markerfacecolor": "white", "color": "0.45", "elinewidth": 0.7}
COLUMN, PAGE, HIGHEST = 3.4, 7.0, 9.0  # inches: the widths of a journal's figures, and the height of a page
LINE, LETTER = 0.115, 0.065  # inches from one round of an arm to the next, and that a letter of a name takes


def draw_race(
    history: DataFrame, survives: "Series[bool]", labels: tuple[str, str], axis: Axes | None = None
) -> Figure:
    """Draw each arm's means and intervals, round below round; the labels are of survivors and others."""
    arms, rounds = list(survives.index), 1 if history.empty else int(history["round"].max())
    height = 0.9 + len(arms) * max(0.28, rounds * LINE / 0.7)  # of 1, an arm has 0.7 for its rounds
    width = COLUMN if max(map(len, arms)) * LETTER < COLUMN / 2 else PAGE
    places = history["arm"].map(arms.index).astype(float) + 0.7 * ((history["round"] - 0.5) / rounds - 0.5)
    rows = history.assign(place=places, alive=history["arm"].map(survives))
    with style.context(STYLE):
        axis = Figure((width, min(height, HIGHEST))).subplots() if axis is None else axis
        for alive, look, label in zip((True, False), (ALIVE, OUT), labels, strict=True):
            if alive in survives.to_numpy():
                of = rows[rows["alive"] == alive]
                ends = of["mean"] - of["lower"], of["upper"] - of["mean"]
                axis.errorbar(of["mean"], of["place"], xerr=ends, label=label, **look)
        numbered = rows.groupby("arm").tail(1) if height > HIGHEST else rows  # the last alone if crowded
        left = numbered["lower"].fillna(numbered["mean"])
        for number, x, y in zip(numbered["round"], left, numbered["place"], strict=True):
            beside: Any = {"xytext": (-2, 0), "textcoords": "offset points", "ha": "right"}
            axis.annotate(str(number), (x, y), va="center_baseline", fontsize=7, color="0.3", **beside)
        axis.set(ylim=(len(arms) - 0.5, -0.5), xlabel="mean reward")
        axis.set_yticks(range(len(arms)), arms)
        axis.ticklabel_format(axis="x", style="plain", useOffset=False)
        title = "numbers: rounds" if rounds > 1 else None
        axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, title=title)
    return cast(Figure, axis.get_figure(root=True))


def draw_plan(deadlines: DataFrame, planned: int, axis: Axes | None, errors: DataFrame) -> Figure:
    """Draw what one more round buys, pulls against rounds: `Plan.deadlines`, with `Plan.errors` as bars."""
    curves: dict[tuple[float, ...], list[str]] = {}  # equal curves are drawn once
    for name, totals in deadlines.items():
        curves.setdefault(tuple(totals), []).append(str(name))
    longest = max(len(", ".join(names)) for names in curves.values())
    width = COLUMN if longest * LETTER < COLUMN / 3 else PAGE
    with style.context(STYLE):
        axis = Figure((width, 2.5)).subplots() if axis is None else axis
        for (curve, names), look in zip(curves.items(), cycle(CURVES), strict=False):
            axis.errorbar(deadlines.index, curve, errors[names[0]], fmt=look, ms=2, lw=0.8, capsize=2.5)
        height, apart = 0.0, (max(map(max, curves)) / min(map(min, curves))) ** 0.06
        for curve in sorted(curves, key=lambda curve: curve[-1]):
            height = max(curve[-1], height * apart)  # so that labels do not overlap
            beside: Any = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            axis.annotate(", ".join(curves[curve]), (deadlines.index[-1], height), fontsize="small", **beside)
        axis.axvline(planned, color="0.6", lw=0.8, ls=":")
        axis.text(planned, 1.01, "planned", transform=axis.get_xaxis_transform(), ha="center", color="0.4")
        axis.set(yscale="log", xlabel="rounds until the deadline", ylabel="pulls of all arms")
        axis.set(xmargin=0.05, xticks=deadlines.index[:: len(deadlines) // 12 + 1])
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set(major_formatter="{x:,.0f}", minor_formatter=ticker.NullFormatter())
    return cast(Figure, axis.get_figure(root=True))
