"""The pictures of notebook 16: everybody's pulls over the floor, and some races along T and ε."""

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compendium.modern_rivals.rival_entrants import (
    CLOSEST,
    ENTRANTS,
    IN_UNIT,
    KNOWN_GAP,
    NORMAL,
    OURS,
    PAUSING,
)
from compendium.shared import figures, lineup
from compendium.shared.lineup import LOOKS, PANELS

# Whose look in the shared table an entrant has; all others are rivals without one of their own.
KNOWN = {
    OURS: "staked",
    IN_UNIT: "staked",
    PAUSING: "pausing",
    NORMAL: "pausing, Gaussian",
    "EBR, normal, T = 1": "pausing, Gaussian",
    **dict.fromkeys(KNOWN_GAP, "pausing"),
    "sharp EBR": "sharp",
    "sharp EBR, normal": "sharp, Gaussian",
    "Algorithm 1": "EBR",
    "paper's oracle": "sequential",
    "KL-LUCB": "KL-LUCB",
    CLOSEST: "Top-Two",
    "Paulson": "Paulson",
    "Paulson, T looks": "Paulson, looks",
}
MADE_HERE = ("EBR", "Algorithm 1", "oracle")  # ours and the paper's: filled markers
KINDS = ("0/1 rewards, ε-good arm", "normal rewards, ε-good arm", "0/1 rewards, best arm")
GROUP = 1.6  # rows that a group's title takes


def kind(name: str) -> str:
    """Which of `KINDS` an entrant is."""
    entrant = ENTRANTS[name]
    return KINDS[1 if entrant.rewards == "Gaussian" else 2 * entrant.exact]


def draw_rivals(table: pd.DataFrame) -> Figure:
    """Pulls over the floor, one row for each entrant, one panel for each setup; the rounds beside them."""
    first = table[table["setup"] == table["setup"].iloc[0]].set_index("algorithm")["over"]
    rows: dict[str, float] = {}
    titles: dict[str, float] = {}
    place = 0.0
    for group in KINDS:
        titles[group] = place + GROUP / 2 - 0.5
        place += GROUP
        for name in first[[kind(name) == group for name in first.index]].sort_values().index:
            rows[str(name)] = place
            place += 1
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 0.155 * place + 0.9), sharey=True)
    for axis, (setup, frame) in zip(axes, table.groupby("setup"), strict=True):
        _column(axis, frame, rows, titles)
        axis.set_title(str(setup))
    axes[0].set_yticks(list(rows.values()), list(rows))
    axes[0].set_ylim(place - 0.3, -0.3)
    marks = [Line2D([], [], color="0.3", marker="o", ls="", mfc=face, ms=4) for face in ("0.3", "white")]
    figure.legend(marks, ["ours and the paper's", "rivals"], loc="outside lower center", ncols=2)
    figures.letters(axes)
    return figure


def _column(axis: Axes, frame: pd.DataFrame, rows: dict[str, float], titles: dict[str, float]) -> None:
    """One panel: markers with 99 % intervals, and at the right edge the mean number of rounds."""
    words: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "va": "center", "fontsize": 7}
    for row in frame.to_dict("records"):
        name = row["algorithm"]
        color = LOOKS[KNOWN[name]].color if name in KNOWN else lineup.RIVAL
        face = color if any(word in name for word in MADE_HERE) else "white"
        look: dict[str, Any] = {"color": color, "marker": "o", "mfc": face, "ms": 4, "capsize": 2}
        axis.errorbar(row["over"], rows[name], xerr=2.58 * row["over_error"], **look)
        axis.text(0.995, rows[name], f"{row['rounds']:,.0f}", ha="right", **words)
    for title, height in titles.items():
        axis.text(0.01, height, title, style="italic", **words)
    axis.text(0.995, titles[KINDS[0]], "rounds", ha="right", style="italic", **words)
    axis.axvline(1, color="0.3", lw=0.8, zorder=0)
    axis.set(xscale="log", xlim=(2e-3, 3e4), xlabel="pulls over the floor")
    axis.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    axis.minorticks_off()
    axis.tick_params(axis="y", length=0)


def draw_axes(table: pd.DataFrame) -> Figure:
    """Pulls along T and along ε, on both setups; who has no deadline is a level line along T."""
    looks = {name: LOOKS[look] for name, look in KNOWN.items()}
    figure, axes = plt.subplots(2, 2, figsize=(figures.PAGE, 5.2), sharey="row")
    for axis, where in zip(axes.flat, PANELS, strict=True):
        lineup.panel(axis, table, "pulls", *where, looks, marks=None)
    for axis in axes[:, 0]:
        axis.set_ylabel("pulls (mean)")
    figures.letters(axes.flat)
    lineup.legend_below(figure, axes[0, 0], 4)
    return figure
