"""What the paper leaves open (A1 to A7): the alternatives to the defaults, on Figure 2's points."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compendium.shared import figures, lineup
from compendium.simulations import section_5
from ebr.algorithms.baselines import AggressiveElimination, DeltaElimination, Passive, SequentialRacing
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.simulation.sweep import Point

KEYS = ["sweep", "setup", "algorithm", "deadline", "epsilon"]
# Each alternative, by the curves that it replaces (made from T, ε and δ).
ALTERNATIVES: dict[str, dict[str, lineup.Maker]] = {
    "A1a": {"EBR": lambda t, e, d: ElasticBatchRacing(t, e, d, schedule="printed")},
    "A1b": {
        "EBR": lambda t, e, d: ElasticBatchRacing(t, e, d, sigma=1.0),
        "passive": lambda t, e, d: Passive(e, d, sigma=1.0),
    },
    "A2": {"EBR": lambda t, e, d: ElasticBatchRacing(t, e, d, lone_survivor="pulled again")},
    "A3": {"EBR": lambda t, e, d: ElasticBatchRacing(t, e, d, returned_from="after it")},
    "A4": {"sequential": lambda t, e, d: SequentialRacing(e, d, end="lone survivor")},
    "A5": {"kδER": lambda t, e, d: DeltaElimination(t, e, d, constants="released")},
    "A6a": {"AE": lambda t, e, d: AggressiveElimination(t, e, d, rounding="down")},
}


class View(NamedTuple):
    """What a small multiple shows: an algorithm, the sweep, a curve to compare with, the choice in words."""

    algorithm: str
    sweep: str
    beside: str
    words: str


# Where each choice shows most.
VIEWS = {
    "A1a": View("EBR", "ε", "sequential", "EBR without σ²"),
    "A1b": View("EBR", "ε", "sequential", "EBR with σ = 1"),
    "A2": View("EBR", "T", "sequential", "EBR, lone arm pulled on"),
    "A3": View("EBR", "T", "AE", "EBR, from the last survivors"),
    "A4": View("sequential", "ε", "EBR", "sequential, until one is left"),
    "A5": View("kδER", "ε", "EBR", "kδER, released constants"),
    "A6a": View("AE", "T", "EBR", "AE, rounded down"),
    "A6b": View("AE", "T", "EBR", "AE, given the true gap"),
    "A7": View("EBR", "T", "AE", "EBR, half of the grid"),
}
PALE = {"Setup 1": 1.0, "Setup 2": 0.45}  # the setups are told apart by how strong a line is


def points(
    deadlines: Sequence[int], epsilons: Sequence[float], delta: float = 0.01, **settings: Any
) -> list[Point]:
    """Figure 2's points under each alternative, with the label "choice".

    A6b hands AE the true gap Δ_[1], which differs from setup to setup, so that ε plays no part. A4, a race
    that ignores ε but for the slack ε/n and is dear, is run at every sixth ε. Further settings are those of
    `lineup.points`.
    """
    made = []
    for choice, algorithms in ALTERNATIVES.items():
        some = sorted(epsilons)[::6] if choice == "A4" else epsilons
        for point in lineup.points(deadlines, some, delta=delta, algorithms=algorithms, **settings):
            made.append(point._replace(labels=point.labels | {"choice": choice}))
    usual: dict[str, lineup.Maker] = {"AE": AggressiveElimination}
    for point in lineup.points(deadlines, epsilons, delta=delta, algorithms=usual, **settings):
        told = AggressiveElimination(point.labels["deadline"], float(point.problem.gaps.min()), delta)
        made.append(Point(point.labels | {"choice": "A6b"}, told, point.problem))
    return sorted(made, key=lambda point: point.labels["choice"] != "A4")  # the costliest first


def replaced(default: pd.DataFrame, alternative: pd.DataFrame) -> pd.DataFrame:
    """The default table with an alternative's curves in place of its own, at the points that both have."""
    places = ["sweep", "setup", "deadline", "epsilon"]
    common = default.merge(alternative[places].drop_duplicates(), on=places)
    kept = common[~common["algorithm"].isin(alternative["algorithm"])]
    return pd.concat([kept, alternative[default.columns]], ignore_index=True)


def thinned(default: pd.DataFrame) -> pd.DataFrame:
    """A7: every second T and every second ε of the grids, from the first on."""
    kept = []
    for sweep, column in lineup.ALONG.items():
        swept = default[default["sweep"] == sweep]
        kept.append(swept[swept[column].isin(sorted(swept[column].unique())[::2])])
    return pd.concat(kept).sort_index().reset_index(drop=True)


def factor(default: pd.DataFrame, alternative: pd.DataFrame, algorithm: str) -> dict[str, float]:
    """The least and the largest factor on an algorithm's pulls, by setup."""
    both = default.merge(alternative, on=KEYS, suffixes=("", "_other"))
    both = both[both["algorithm"] == algorithm]
    factors = (both["pulls_other"] / both["pulls"]).groupby(both["setup"]).agg(["min", "max"])
    return {f"{setup} {end}": factors.loc[setup, end] for setup in factors.index for end in ("min", "max")}


def hanging(default: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The verdicts of notebook 07 that hang on a choice: a row each, with the first row of the evidence."""
    before = {finding.claim: finding for finding in section_5.findings(default)}
    rows = []
    for choice, alternative in sorted(tables.items()):
        for after in section_5.findings(alternative):
            if after.verdict != before[after.claim].verdict:
                first = after.evidence[0]
                changed = (choice, after.claim, before[after.claim].verdict, after.verdict)
                rows.append((*changed, first.what, first.where, first.value))
    columns = ["choice", "claim", "by default", "with the choice", "what", "where", "value"]
    return pd.DataFrame(rows, columns=columns)


def draw(default: pd.DataFrame, tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Small multiples of Figure 2: pulls under each choice (dashed) beside the default (solid)."""
    figure, axes = plt.subplots(3, 3, figsize=(figures.PAGE, 6.4))
    for axis, (choice, view) in zip(axes.flat, VIEWS.items(), strict=True):
        _multiple(axis, default, tables[choice], view)
        axis.set_title(view.words, fontsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel("pulls")
    lines = [Line2D([], [], color="black", alpha=alpha) for alpha in PALE.values()]
    lines += [Line2D([], [], color="black", ls=dash) for dash in ("-", "--")]
    words = ["Setup 1 (strong)", "Setup 2 (pale)", "default (solid)", "alternative (dashed)"]
    figures.letters(axes.flat)
    figure.legend(lines, words, loc="outside lower center", ncols=4)
    return figure


def _multiple(axis: Axes, default: pd.DataFrame, alternative: pd.DataFrame, view: View) -> None:
    along, own = lineup.ALONG[view.sweep], lineup.LOOKS[view.algorithm].color
    curves = (
        (default, view.beside, "0.7", "-"),
        (default, view.algorithm, own, "-"),
        (alternative, view.algorithm, own, "--"),
    )
    for setup, alpha in PALE.items():
        for table, name, colour, dash in curves:
            shown = lineup.part(table, setup, view.sweep).sort_values(along)
            curve = shown[shown["algorithm"] == name]
            axis.plot(curve[along], curve["pulls"], color=colour, ls=dash, lw=1.1, alpha=alpha)
    axis.set(xscale="log", yscale="log", xlabel=view.sweep)
    axis.set_xticks(lineup.TICKS[view.sweep], [f"{tick:g}" for tick in lineup.TICKS[view.sweep]])
    axis.set_xticks([], minor=True)
