"""Pictures of a race, of a plan and of operating characteristics, drawn from their tables."""

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # both are slow to import, and a race in a terminal needs no picture
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("ebr.mplstyle")
_NUMBER: dict[str, Any] = {  # of a round, left of its interval
    "xytext": (-2, 0),
    "textcoords": "offset points",
    "ha": "right",
    "va": "center_baseline",
    "fontsize": 4.5,
    "color": "0.3",
}
CURVES = ("v--", "o-", "s-", "^-", "d-")  # of a plan: the worst case, then the kinds of problem
MARKS = ("o", "s", "^", "D", "v", "P")  # of the levels of the best arm


def draw_race(
    history: "pd.DataFrame",
    survives: "pd.Series[bool]",
    finished: bool,
    axis: "Axes | None" = None,
    left_out: str = "out",
) -> "Figure":
    """Draw each arm's mean and interval, round below round, each with the number of its round.

    From `Race.history` and the column `survives` of `Race.intervals`; `left_out` is what arms that do not
    survive are called while the race goes on.
    """
    import matplotlib.pyplot as plt

    rounds = 1 if history.empty else int(history["round"].max())
    labels = {True: "recommended", False: "others"} if finished else {True: "in the race", False: left_out}
    last = labels[False]
    with plt.style.context(STYLE):
        height = min(0.9 + len(survives) * max(0.28, 0.085 * rounds), 9)  # inches: a page at most
        axis = _new_axis(figsize=(3.4, height)) if axis is None else axis
        for place, (arm, alive) in enumerate(survives.items()):
            rows = history[history["arm"] == arm]
            heights = place + 0.7 * ((rows["round"] - 0.5) / rounds - 0.5)
            axis.errorbar(
                rows["mean"],
                heights,
                xerr=(rows["mean"] - rows["lower"], rows["upper"] - rows["mean"]),
                label=labels.pop(bool(alive), None),
                **_look(alive),
            )
            left = rows["lower"].fillna(rows["mean"])
            for number, x, y in zip(rows["round"], left, heights, strict=True):
                axis.annotate(str(number), (x, y), **_NUMBER)
        axis.set_yticks(range(len(survives)), list(survives.index))
        axis.set_ylim(len(survives) - 0.5, -0.5)
        axis.set_xlabel("mean reward")
        # Survivors first, whoever is drawn first.
        drawn = sorted(
            zip(*axis.get_legend_handles_labels(), strict=True), key=lambda entry: entry[1] == last
        )
        handles, names = zip(*drawn, strict=True) if drawn else ((), ())
        title = "numbers: rounds" if rounds > 1 else None
        axis.legend(handles, names, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, title=title)
    return _figure_of(axis)


def draw_plan(
    deadlines: "pd.DataFrame", planned: int, axis: "Axes | None" = None, errors: "pd.DataFrame | None" = None
) -> "Figure":
    """Draw what one more round buys, pulls against rounds: `Plan.deadlines`, with `Plan.errors` as bars."""
    import matplotlib.pyplot as plt

    curves: dict[tuple[float, ...], list[str]] = {}  # those that coincide are drawn once
    for name, totals in deadlines.items():
        curves.setdefault(tuple(totals), []).append(str(name))
    with plt.style.context(STYLE):
        axis = _new_axis() if axis is None else axis
        for (curve, names), look in zip(curves.items(), cycle(CURVES), strict=False):
            bars = None if errors is None else errors[names[0]]
            axis.errorbar(deadlines.index, curve, bars, fmt=look, ms=2, lw=0.8, capsize=2.5)
        height, apart = 0.0, (max(map(max, curves)) / min(map(min, curves))) ** 0.06
        for curve in sorted(curves, key=lambda curve: curve[-1]):
            height = max(curve[-1], height * apart)  # lest labels lie on each other
            beside: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            axis.annotate(", ".join(curves[curve]), (deadlines.index[-1], height), fontsize="small", **beside)
        axis.axvline(planned, color="0.6", lw=0.8, ls=":")
        axis.text(planned, 1.01, "planned", transform=axis.get_xaxis_transform(), ha="center", color="0.4")
        axis.set(yscale="log", xlabel="rounds until the deadline", ylabel="pulls of all arms")
        axis.set_xticks(deadlines.index)
        axis.margins(x=0.05)
    return _figure_of(axis)


def draw_characteristics(table: "pd.DataFrame", delta: float | None, worst_case: int | None) -> "Figure":
    """Draw how often the choice is right, and the pulls that it takes, a line a truth.

    Rows of `OperatingCharacteristics.table` of one name share a line, told apart by the best arm's level.
    """
    import matplotlib.pyplot as plt
    import numpy as np

    names = list(dict.fromkeys(table["truth"]))
    levels = list(dict.fromkeys(table["best"])) if table["truth"].duplicated().any() else [None]
    with plt.style.context(STYLE):
        height = min(1.3 + 0.12 * len(names) * max(len(levels), 2), 9)  # inches: a page at most
        figure, (right, pulls) = plt.subplots(1, 2, sharey=True, figsize=(3.4, height))
        plt.close(figure)
        # By their names: "C0" would be looked up when it is drawn.
        colours = plt.rcParams["axes.prop_cycle"].by_key()["color"]
        for number, level in enumerate(levels):
            rows = table if level is None else table[table["best"] == level]
            heights = rows["truth"].map(names.index) + 0.6 * ((number + 0.5) / len(levels) - 0.5)
            look = {"fmt": MARKS[number % len(MARKS)], "ms": 3, "color": colours[number % len(colours)]}
            share = (rows["right"] - rows["right_lower"], rows["right_upper"] - rows["right"])
            label = None if level is None else f"{level:g}"
            right.errorbar(rows["right"], heights, xerr=share, label=label, elinewidth=0.8, **look)
            beyond = (rows["pulls_90"] - rows["pulls"]).clip(lower=0)
            pulls.errorbar(rows["pulls"], heights, xerr=(0 * beyond, beyond), elinewidth=0.8, **look)
        right.set_yticks(range(len(names)), [name.replace(", ", ",\n") for name in names])
        right.set_ylim(len(names) - 0.5, -0.5)
        right.set_xlabel("P(right choice)")
        most = max(table["pulls_90"].max(), worst_case or 0)
        low, high = np.floor(np.log10([table["pulls"].min(), most]))  # whole decades: fewer labels
        pulls.set(xscale="log", xlabel="pulls of all arms", xlim=(10**low, 10 ** (high + 1)))
        _mark(right, None if delta is None else 1 - delta, "1 − δ")
        _mark(pulls, worst_case, "worst case")
        figure.align_xlabels()
        if levels != [None]:
            figure.legend(loc="outside upper center", ncols=len(levels), title="mean of the best arm")
    return figure


def _mark(axis: "Axes", place: float | None, name: str) -> None:
    """Mark a place along the axis, if there is one."""
    if place is not None:
        axis.axvline(place, color="0.4", lw=0.8, ls="--", zorder=1)
        above: dict[str, Any] = {"transform": axis.get_xaxis_transform(), "fontsize": "small"}
        axis.text(place, 1.01, name, ha="center", color="0.3", **above)


def _look(alive: bool) -> dict[str, Any]:
    """How an arm's means look: survivors stand out."""
    if alive:
        return {"fmt": "o", "markersize": 4, "color": "C0", "elinewidth": 1.4}
    return {"fmt": "s", "markersize": 3, "markerfacecolor": "white", "color": "0.45", "elinewidth": 0.7}


def _new_axis(**options: Any) -> "Axes":
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(**options)
    plt.close(figure)  # so that Jupyter shows it once, as the value of its cell
    return cast("Axes", axis)


def _figure_of(axis: "Axes") -> "Figure":
    return cast("Figure", axis.get_figure(root=True))
