"""Pictures of a race and of a plan, drawn from their tables."""

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # slow to import, and rarely needed in a terminal
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("ebr.mplstyle")
_NUMBER: dict[str, Any] = {  # the number of a round, left of its interval
    "xytext": (-2, 0),
    "textcoords": "offset points",
    "ha": "right",
    "va": "center_baseline",
    "fontsize": 7,
    "color": "0.3",
}
CURVES = ("v--", "o-", "s-", "^-", "d-")  # of a plan: the worst case, then the truths
COLUMN, PAGE, HIGHEST = 3.4, 7.0, 9.0  # inches: the widths of a journal's figures, and the height of a page
LINE = 0.115  # inches from one round of an arm to the next, so that numbers do not overlap
MOST_TICKS = 12  # along the rounds of a plan
LETTERS = 0.065  # inches that a letter of a name takes


def draw_race(
    history: "pd.DataFrame",
    survives: "pd.Series[bool]",
    finished: bool,
    axis: "Axes | None" = None,
    left_out: str = "out",
) -> "Figure":
    """Draw each arm's mean and interval, round below round, each with the number of its round.

    The data are `Race.history` and the column `survives` of `Race.intervals`; `left_out` is the label of
    other arms while the race goes on.
    """
    import matplotlib.pyplot as plt

    rounds = 1 if history.empty else int(history["round"].max())
    labels = {True: "recommended", False: "others"} if finished else {True: "in the race", False: left_out}
    last = labels[False]
    with plt.style.context(STYLE):
        height = 0.9 + len(survives) * max(0.28, rounds * LINE / 0.7)  # of 1, an arm has 0.7 for its rounds
        crowded, longest = height > HIGHEST, max(map(len, survives.index))
        width = COLUMN if longest * LETTERS < COLUMN / 2 else PAGE
        axis = _new_axis(figsize=(width, min(height, HIGHEST))) if axis is None else axis
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
            if crowded:  # the last round's number alone
                rows, heights = rows.tail(1), heights.tail(1)
            left = rows["lower"].fillna(rows["mean"])
            for number, x, y in zip(rows["round"], left, heights, strict=True):
                axis.annotate(str(number), (x, y), **_NUMBER)
        axis.set_yticks(range(len(survives)), list(survives.index))
        axis.set_ylim(len(survives) - 0.5, -0.5)
        axis.set_xlabel("mean reward")
        axis.ticklabel_format(axis="x", style="plain", useOffset=False)
        # Survivors come first in the legend.
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
    from matplotlib.ticker import LogLocator, NullFormatter

    curves: dict[tuple[float, ...], list[str]] = {}  # equal curves are drawn once
    for name, totals in deadlines.items():
        curves.setdefault(tuple(totals), []).append(str(name))
    with plt.style.context(STYLE):
        longest = max(len(", ".join(names)) for names in curves.values())
        width = COLUMN if longest * LETTERS < COLUMN / 3 else PAGE
        axis = _new_axis(figsize=(width, 2.5)) if axis is None else axis
        for (curve, names), look in zip(curves.items(), cycle(CURVES), strict=False):
            bars = None if errors is None else errors[names[0]]
            axis.errorbar(deadlines.index, curve, bars, fmt=look, ms=2, lw=0.8, capsize=2.5)
        height, apart = 0.0, (max(map(max, curves)) / min(map(min, curves))) ** 0.06
        for curve in sorted(curves, key=lambda curve: curve[-1]):
            height = max(curve[-1], height * apart)  # so that labels do not overlap
            beside: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            axis.annotate(", ".join(curves[curve]), (deadlines.index[-1], height), fontsize="small", **beside)
        axis.axvline(planned, color="0.6", lw=0.8, ls=":")
        axis.text(planned, 1.01, "planned", transform=axis.get_xaxis_transform(), ha="center", color="0.4")
        axis.set(yscale="log", xlabel="rounds until the deadline", ylabel="pulls of all arms")
        few = max(1, len(deadlines) // MOST_TICKS + 1)
        axis.set_xticks(deadlines.index[::few])
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:,.0f}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.margins(x=0.05)
    return _figure_of(axis)


def _look(alive: bool) -> dict[str, Any]:
    """How an arm's means look: survivors stand out."""
    if alive:
        return {"fmt": "o", "markersize": 4, "color": "C0", "elinewidth": 1.4}
    return {"fmt": "s", "markersize": 3, "markerfacecolor": "white", "color": "0.45", "elinewidth": 0.7}


def _new_axis(**options: Any) -> "Axes":
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(**options)
    plt.close(figure)  # so that Jupyter shows the figure once
    return cast("Axes", axis)


def _figure_of(axis: "Axes") -> "Figure":
    return cast("Figure", axis.get_figure(root=True))
