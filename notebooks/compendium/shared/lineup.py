"""Who races in the figures: section 5's algorithms and ours, the points of its sweeps, and their looks."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium.shared import figures
from ebr.algorithms.baselines import AggressiveElimination, DeltaElimination, Passive, SequentialRacing
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.simulation.sweep import Point
from ebr.theory.problems import Problem, setup_1, setup_2
from ebr.validation import in_unit_interval, whole

SETUPS: dict[str, Callable[[int], Problem]] = {"Setup 1": setup_1, "Setup 2": setup_2}
Maker = Callable[[int, float, float], Algorithm]
MakeElastic = Callable[..., ElasticBatchRacing]
MakeSharp = Callable[..., SharpElasticBatchRacing]
# How each curve of the figure is made from T, ε and δ; the last two know no deadline.
ALGORITHMS: dict[str, Maker] = {
    "EBR": ElasticBatchRacing,
    "kδER": DeltaElimination,
    "AE": AggressiveElimination,
    "sequential": lambda deadline, epsilon, delta: SequentialRacing(epsilon, delta),
    "passive": lambda deadline, epsilon, delta: Passive(epsilon, delta),
}
WITHOUT_DEADLINE = ("sequential", "passive")
# Figure 2's panels: the setup, and what the sweep is over.
PANELS = (("Setup 1", "T"), ("Setup 2", "T"), ("Setup 1", "ε"), ("Setup 2", "ε"))
ALONG = {"T": "deadline", "ε": "epsilon"}
AXES = {"T": "rounds T", "ε": "tolerance ε"}
TICKS = {"T": (1, 2, 5, 15, 50), "ε": (0.001, 0.01, 0.1)}


def sharp(rewards: str) -> Maker:
    """How sharp EBR for such rewards is made from T, ε and δ."""
    return lambda deadline, epsilon, delta: SharpElasticBatchRacing(deadline, epsilon, delta, rewards=rewards)


Dash = str | tuple[int, tuple[int, ...]]


class Look(NamedTuple):
    """How an algorithm looks in every figure: told apart by marker and dash, too, not by colour alone."""

    color: str
    marker: str
    dash: Dash

    def line(self, **more: Any) -> dict[str, Any]:
        """As keyword arguments of matplotlib's plot and errorbar."""
        return {"color": self.color, "marker": self.marker, "ls": self.dash, "ms": 2.5} | more


LONG, DOUBLE = (0, (7, 2)), (0, (4, 1, 1, 1, 1, 1))
SHARP, PAUSING, RIVAL = "#55CBEA", "#7A1F5E", "0.45"
# One table for all figures. A colour is an algorithm's; its kinds for several rewards, and the rivals among
# themselves, differ by marker and dash. Readers who do not see red, green or blue can tell any two apart
# (tests/compendium/shared/test_lineup.py).
LOOKS: dict[str, Look] = {
    "EBR": Look("#0A55B0", "o", "-"),
    "kδER": Look("#D4380D", "s", "--"),
    "AE": Look("#158E65", "^", "-."),
    "sequential": Look("#A96BE8", "D", ":"),
    "passive": Look("#EDBE00", "v", LONG),
    "sharp": Look(SHARP, "P", "-"),
    "sharp, [0, 1]": Look(SHARP, "X", "--"),
    "sharp, Gaussian": Look(SHARP, "*", ":"),
    "sharp, T = 1": Look(SHARP, "1", "-."),
    "pausing": Look(PAUSING, "d", "-."),
    "pausing, [0, 1]": Look(PAUSING, "p", ":"),
    "pausing, Bernoulli": Look(PAUSING, "h", "-"),
    "pausing, Gaussian": Look(PAUSING, "8", "--"),
    "staked": Look("#0D3011", "<", "-"),
    "certified": Look("#EE6C92", ">", "-"),
    "balanced plan": Look("#9C6B30", ".", "-"),
    "sequential halving": Look(RIVAL, "4", (0, (2, 1))),
    "successive rejects": Look(RIVAL, "H", (0, (1, 1, 4, 1))),
    "KL-LUCB": Look(RIVAL, "x", ":"),
    "Top-Two": Look(RIVAL, "+", "--"),
    "Paulson": Look(RIVAL, "2", DOUBLE),
    "Paulson, looks": Look(RIVAL, "3", LONG),
}
# Numbers of rounds, where curves differ by T and not by algorithm: shades of grey, darker for more rounds.
ROUNDS = {
    1: Look("0.72", "o", "-"),
    2: Look("0.52", "s", "-"),
    3: Look("0.3", "^", "-"),
    4: Look("0", "D", "-"),
}


def points(
    deadlines: Iterable[int],
    epsilons: Iterable[float],
    deadline: int = 15,
    epsilon: float = 0.01,
    delta: float = 0.01,
    n_arms: int = 100,
    algorithms: dict[str, Maker] | None = None,
) -> list[Point]:
    """Figure 2's points: a sweep over T at one ε and a sweep over ε at one T, on both setups.

    Labels: sweep ("T" or "ε"), setup, algorithm, deadline, epsilon. The costliest, the sequential ones, come
    first, so that no worker is left alone with them.
    """
    grid = [("ε", whole("deadline", deadline, 1), in_unit_interval("epsilon", e)) for e in sorted(epsilons)]
    grid += [("T", whole("deadline", t, 1), in_unit_interval("epsilon", epsilon)) for t in sorted(deadlines)]
    made = [
        Point(
            {"sweep": sweep, "setup": setup, "algorithm": name, "deadline": t, "epsilon": e},
            make(t, e, delta),
            problem(n_arms),
        )
        for name, make in (ALGORITHMS if algorithms is None else algorithms).items()
        for setup, problem in SETUPS.items()
        for sweep, t, e in grid
    ]
    return sorted(made, key=lambda point: point.labels["algorithm"] != "sequential")


def ratio(table: pd.DataFrame, over: str, under: str) -> pd.DataFrame:
    """One algorithm's pulls over another's, with the standard error, at each point of the table."""
    keys = ["sweep", "setup", "deadline", "epsilon"]
    left, right = (table[table["algorithm"] == name] for name in (over, under))
    both = left.merge(right, on=keys, suffixes=("", "_under"))
    quotient = both["pulls"] / both["pulls_under"]
    relative = np.hypot(both["error"] / both["pulls"], both["error_under"] / both["pulls_under"])
    return both[keys].assign(ratio=quotient, error=quotient * relative)


def part(table: pd.DataFrame, setup: str, sweep: str) -> pd.DataFrame:
    """What one panel shows of a table of `sweep`."""
    return table[(table["setup"] == setup) & (table["sweep"] == sweep)]


def panel(
    axis: Axes,
    table: pd.DataFrame,
    value: str,
    setup: str,
    sweep: str,
    looks: dict[str, Look] = LOOKS,
    marks: Mapping[str, Iterable[float]] | None = TICKS,
) -> None:
    """Draw one value ± one standard error of every algorithm in a table, along T or along ε.

    Marked are these T and ε; without `marks` those of the table.
    """
    shown = part(table, setup, sweep)
    curves(axis, shown, value, ALONG[sweep], looks)
    fixed = f"ε = {shown['epsilon'].iloc[0]:g}" if sweep == "T" else f"T = {shown['deadline'].iloc[0]}"
    axis.set(xscale="log", yscale="log", title=f"{setup}, {fixed}", xlabel=AXES[sweep])
    ticks(axis, shown[ALONG[sweep]] if marks is None else marks[sweep])


def curves(axis: Axes, table: pd.DataFrame, value: str, along: str, looks: dict[str, Look]) -> None:
    """Draw one value ± one standard error of every algorithm that has a look, along a column."""
    for name in (name for name in looks if name in set(table["algorithm"])):
        curve = table[table["algorithm"] == name].sort_values(along)
        bars = axis.errorbar(curve[along], curve[value], curve["error"], **looks[name].line(capsize=1.5))
        bars.lines[0].set_label(name)  # the legend shows no bar: most are smaller than the markers


def ticks(axis: Axes, places: Iterable[float]) -> None:
    """Mark these places of a horizontal axis, and no others."""
    places = sorted(set(places))
    axis.set_xticks(places, [f"{place:g}" for place in places], minor=False)
    axis.set_xticks([], minor=True)


def legend_below(figure: Figure, axis: Axes, columns: int | None = None) -> None:
    """One legend below all panels, from the curves of one of them: in one row, which has room for eight."""
    handles, labels = axis.get_legend_handles_labels()
    rows = -(-len(labels) // 8)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns or -(-len(labels) // rows))


def four_panels(table: pd.DataFrame) -> Figure:
    """Figure 2 from a table of `sweep`, whoever races in it: pulls along T above, along ε below."""
    figure, axes = plt.subplots(2, 2, figsize=(figures.PAGE, 5.2), sharey="row")
    for axis, where in zip(axes.flat, PANELS, strict=True):
        panel(axis, table, "pulls", *where)
    for axis in axes[:, 0]:
        axis.set_ylabel("pulls (mean of all runs)")
    figures.letters(axes.flat)
    legend_below(figure, axes[0, 0])
    return figure


def algorithms(deadline: int, epsilon: float, delta: float, sigma: float) -> dict[str, Algorithm]:
    """Every algorithm at hand, for Gaussian rewards of this σ (kδER and AE are made for σ = ½)."""
    return {
        "EBR": ElasticBatchRacing(deadline, epsilon, delta, sigma),
        "kδER": DeltaElimination(deadline, epsilon, delta),
        "AE": AggressiveElimination(deadline, epsilon, delta),
        "sequential": SequentialRacing(epsilon, delta, sigma),
        "passive": Passive(epsilon, delta, sigma),
    }
