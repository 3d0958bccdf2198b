"""Pictures of a race and of a plan, drawn from their tables."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # both are slow to import, and a race in a terminal needs no picture
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STYLE", "draw_plan", "draw_race"]

STYLE = Path(__file__).with_name("ebr.mplstyle")
_NUMBER: dict[str, Any] = {  # of a round, left of its interval
    "xytext": (-2, 0),
    "textcoords": "offset points",
    "ha": "right",
    "va": "center_baseline",
    "fontsize": 4.5,
    "color": "0.3",
}
CURVES = ("v--", "o-", "s-", "^-")  # of a plan: the worst case, then the kinds of problem


def draw_race(
    history: "pd.DataFrame",
    survives: "pd.Series[bool]",
    finished: bool,
    axis: "Axes | None" = None,
    left_out: str = "out",
) -> "Figure":
    """Draw each arm's mean and interval, round below round, each with the number of its round.

    Parameters
    ----------
    history
        As `Race.history`: a row a round and arm.
    survives
        Whether each arm survives, by its name, in the order in which they are drawn: a column of
        `Race.intervals`.
    finished
        Whether the race has ended, so that whoever survives is recommended.
    axis
        Where to draw; by default on a new figure.
    left_out
        What to call those that do not survive while the race goes on.
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
    """Draw what one more round buys: pulls against rounds.

    Parameters
    ----------
    deadlines
        As `Plan.deadlines`: a row a deadline, a column a kind of problem.
    planned
        The deadline that is planned with.
    axis
        Where to draw; by default on a new figure.
    errors
        As `Plan.errors`: the standard errors of the totals, drawn as bars.
    """
    import matplotlib.pyplot as plt

    curves: dict[tuple[float, ...], list[str]] = {}  # those that coincide are drawn once
    for name, totals in deadlines.items():
        curves.setdefault(tuple(totals), []).append(str(name))
    with plt.style.context(STYLE):
        axis = _new_axis() if axis is None else axis
        for (curve, names), look in zip(curves.items(), CURVES, strict=False):
            bars = None if errors is None else errors[names[0]]
            axis.errorbar(deadlines.index, curve, bars, fmt=look, ms=2, lw=0.8, capsize=2.5)
            end = (deadlines.index[-1], curve[-1])
            beside: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "va": "center"}
            axis.annotate(", ".join(names), end, fontsize="small", **beside)
        axis.axvline(planned, color="0.6", lw=0.8, ls=":")
        axis.text(planned, 1.01, "planned", transform=axis.get_xaxis_transform(), ha="center", color="0.4")
        axis.set(yscale="log", xlabel="rounds until the deadline", ylabel="pulls of all arms")
        axis.set_xticks(deadlines.index)
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
    plt.close(figure)  # so that Jupyter shows it once, as the value of its cell
    return cast("Axes", axis)


def _figure_of(axis: "Axes") -> "Figure":
    return cast("Figure", axis.get_figure(root=True))
