"""The pictures of notebook 11: a trial as it went, and what each design costs, whatever is true."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from compendium.clinical_trial.trial_rivals import CERTIFIED
from compendium.clinical_trial.trial_standing import BEHIND, REACH
from compendium.clinical_trial.vaccine_trial import PUBLISHED
from compendium.shared import figures
from compendium.shared.lineup import LOOKS, Look

# Racers have their colours of everywhere. Full lines: proved for finitely many subjects; dashed: in the
# normal limit; dotted: without a deadline. Algorithm 1 and the paper's fixed design are far above.
DESIGN_LOOKS = {
    CERTIFIED: LOOKS["certified"],
    "pausing EBR": LOOKS["pausing"]._replace(dash="-"),
    "staked EBR": LOOKS["staked"],
    "sharp EBR": LOOKS["sharp, [0, 1]"]._replace(dash="-"),
    "fixed, exact": Look("0.5", "D", "-"),
    "Pocock, equal looks": Look("#9A5B13", ">", "--"),
    "Pocock, growing looks": Look("#9A5B13", "<", "--"),
    "Wang–Tsiatis, growing looks": Look("C4", "h", "--"),
    "O'Brien–Fleming, equal looks": Look("C0", "^", "--"),
    "O'Brien–Fleming, growing looks": Look("C0", "v", "--"),
    "drop the losers": Look("C5", "*", "--"),
    "Levin–Robbins–Leu": Look("0.5", "x", ":"),
}

SCALE, TICKS = (220, 13_000), (500, 1000, 2000, 5000, 10_000)  # of subjects; one design leaves it, alike


def draw_trial(history: pd.DataFrame) -> Figure:
    """Draw each candidate's response rate with its interval, round below round; markers are the rounds."""
    figure, axis = plt.subplots(figsize=(figures.COLUMN, 3.0))
    names, rounds = list(history["arm"].unique()), sorted(history["round"].unique())
    for number, (t, marker) in enumerate(zip(rounds, "os^Dvp", strict=False)):
        rows = history[history["round"] == t]
        places = [
            names.index(arm) + 0.6 * (number - (len(rounds) - 1) / 2) / len(rounds) for arm in rows["arm"]
        ]
        reach = [rows["mean"] - rows["lower"], rows["upper"] - rows["mean"]]
        shade = f"{0.65 * (1 - (number + 1) / len(rounds)):.2f}"
        style = Look(shade, marker, "none").line(ms=4, capsize=2)
        axis.errorbar(rows["mean"], places, xerr=reach, label=f"after round {t}", **style)
    axis.set(yticks=range(len(names)), yticklabels=names, xlabel="response rate")
    axis.invert_yaxis()
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def draw_designs(table: pd.DataFrame, ratios: pd.DataFrame) -> Figure:
    """Draw what designs cost along the best response rate, a column of panels a kind of truth.

    Above, mean subjects of `over_truths`; below, the certified design's over the best rival's, of `against`.
    """
    kinds = [kind for kind in table["truth"].unique() if kind != PUBLISHED]
    figure, axes = plt.subplots(
        2, len(kinds), figsize=(figures.PAGE, 5.2), sharex=True, sharey="row", height_ratios=(3, 1)
    )
    for (above, below), kind in zip(axes.T, kinds, strict=True):
        _costs(above, table[table["truth"] == kind])
        above.set(yscale="log", ylim=SCALE, title=kind)
        rows = ratios[ratios["truth"] == kind]
        look = DESIGN_LOOKS[CERTIFIED].line(ms=3.5, capsize=1.5)
        below.errorbar(rows["best_rate"], rows["ratio"], REACH * rows["error"], **look)
        below.axhline(BEHIND, color="0.3", lw=0.8, ls=(0, (4, 3)))
        below.set(xlabel="best response rate")
    axes[0, 0].set_ylabel("subjects (mean)")
    axes[0, 0].set_yticks(TICKS, [f"{tick:,}" for tick in TICKS])
    axes[0, 0].yaxis.set_minor_formatter(NullFormatter())
    axes[1, 0].set_ylabel("certified over\nthe best rival")
    figure.align_ylabels()
    figures.letters(axes.flat)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _costs(axis: Axes, table: pd.DataFrame) -> None:
    """Draw a curve a design; the certified one last and thickest."""
    for name, look in DESIGN_LOOKS.items():
        rows, own = table[table["design"] == name], name == CERTIFIED
        style = look.line(ms=4.5 if own else 3, lw=2.2 if own else 0.9, zorder=4 if own else 2, label=name)
        axis.errorbar(rows["best_rate"], rows["subjects"], REACH * rows["standard_error"], **style)
