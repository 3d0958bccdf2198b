"""How notebook 16 draws: everybody's pulls over the floor against rounds, and some along T and ε."""

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compendium.modern_rivals.rival_entrants import CLOSEST, ENTRANTS, IN_UNIT, OURS, PAUSING, WEAKER
from compendium.shared import figures, lineup
from compendium.shared.lineup import PANELS, Look

# What is asked: colour and marker tell the three apart.
KINDS = {
    "Bernoulli rewards, ε-good arm": Look("C0", "o", ""),
    "Bernoulli rewards, best arm": Look("C2", "^", ""),
    "Gaussian rewards, ε-good arm": Look("C1", "s", ""),
}
MADE_HERE = ("EBR", "Algorithm 1", "oracle")  # ours and the paper's: filled markers
# Where a label stands (points to the right and up), where the place to the right is taken.
PLACES = {
    "sharp EBR": (-6, 8),
    PAUSING: (-6, -1),
    OURS: (-6, -7),
    "EBR told gap/10": (-6, 9),
    "EBR told the gap": (-6, -4),
    "Kim–Nelson, looks": (8, 8),
    "Paulson, looks": (8, 1),
    "sharp EBR, N": (8, -6),
    "pausing EBR, N": (8, -13),
    "EBR, N, T = 1": (0, 9),
    "Bechhofer": (0, -9),
    "KL-LUCB": (-6, 4),
    "EB-TC": (6, -3),
    "Kim–Nelson": (-6, 2),
    "Paulson": (-6, -4),
    CLOSEST: (0, -9),
    "T&S": (6, 4),
    "paper's oracle": (-6, 0),
}
LOOKS = {
    OURS: lineup.LOOKS["staked"],
    PAUSING: lineup.LOOKS["pausing"],
    "Algorithm 1": Look("C2", "v", "-"),
    "KL-LUCB": Look("C3", "D", ":"),
    CLOSEST: Look("C4", "^", "--"),
    "pausing EBR, N": Look("C1", "s", "-"),
    "Paulson": Look("black", "X", ":"),
    "Paulson, looks": Look("0.5", "P", "--"),
}


def kind(name: str) -> str:
    """Which of `KINDS` an entrant is."""
    entrant = ENTRANTS[name]
    return list(KINDS)[2 if entrant.rewards == "Gaussian" else entrant.exact]


def draw_rivals(table: pd.DataFrame) -> Figure:
    """Pulls over the floor against rounds used, a panel a setup; each entrant has its name beside it.

    Of those with a threshold that is proved here the closest alone, and staked EBR with 0/1 rewards alone:
    the others are too near.
    """
    table = table[~table["algorithm"].isin((IN_UNIT, *WEAKER))]
    figure, axes = plt.subplots(2, 1, figsize=(figures.PAGE, 7.6), sharex=True)
    for axis, (setup, frame) in zip(axes, table.groupby("setup"), strict=True):
        for row in frame.to_dict("records"):
            _entrant(axis, row)
        axis.axhline(1, color="0.3", lw=0.8, zorder=0)
        axis.set(xscale="log", yscale="log", title=setup, xlim=(0.2, 3e7))
        axis.set_ylabel("pulls over T*(ν) kl(δ, 1−δ)")
    axes[1].set_xlabel("rounds used (mean)")
    marks = [Line2D([], [], color=look.color, marker=look.marker, ls="") for look in KINDS.values()]
    marks += [Line2D([], [], color="0.3", marker="o", ls="", mfc=face) for face in ("0.3", "white")]
    figure.legend(marks, [*KINDS, "ours and the paper's", "rivals"], loc="outside lower center", ncols=3)
    return figure


def _entrant(axis: Axes, row: dict[Any, Any]) -> None:
    name, look = row["algorithm"], KINDS[kind(row["algorithm"])]
    face = look.color if any(word in name for word in MADE_HERE) else "white"
    bars: dict[str, Any] = {"capsize": 2, "color": look.color, "marker": look.marker, "mfc": face}
    axis.errorbar(row["rounds"], row["over"], 2.58 * row["over_error"], **bars)
    right, up = PLACES.get(name, (6, 0))
    align = "left" if right > 0 else "right" if right < 0 else "center"
    words: dict[str, Any] = {"ha": align, "va": "center", "fontsize": 6.5, "color": look.color}
    words |= {"xytext": (right, up), "textcoords": "offset points"}
    axis.annotate(name.replace(", N", ""), (row["rounds"], row["over"]), **words)


def draw_axes(table: pd.DataFrame) -> Figure:
    """Pulls along T and along ε, on both setups; who has no deadline is a level line along T."""
    figure, axes = plt.subplots(2, 2, figsize=(figures.PAGE, 5.4), sharey="row")
    for axis, where in zip(axes.flat, PANELS, strict=True):
        lineup.panel(axis, table, "pulls", *where, LOOKS, marks=None)
    for axis in axes[:, 0]:
        axis.set_ylabel("pulls (mean)")
    lineup.legend_below(figure, axes[0, 0], 4)
    return figure
