"""Figure 1: what a deadline does to an easy arm."""

from collections.abc import Iterator, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium.shared import figures
from compendium.shared.findings import Evidence, Finding, measured
from compendium.shared.traces import trace
from ebr.algorithms.game import Algorithm
from ebr.simulation.simulate import Simulation
from ebr.theory.problems import Problem

SEQUENTIAL = "T = ∞"


def traces(algorithms: Mapping[str, Algorithm], problem: Problem, seed: int) -> pd.DataFrame:
    """One race of each algorithm, followed round by round; arms are counted from 1.

    One pull at a time makes thousands of rounds: 60 of them are kept, evenly spaced on a log axis.
    """
    followed = {label: trace(algorithm, problem, seed) for label, algorithm in algorithms.items()}
    thinned = figures.thin(followed[SEQUENTIAL], points=60)
    followed[SEQUENTIAL] = thinned.assign(round=thinned["total"])  # one pull a round
    table = pd.concat(followed, names=["deadline"]).reset_index(level=0)
    return figures.rounded(table.assign(arm=table["arm"] + 1).reset_index(drop=True))


def draw(table: pd.DataFrame, rounds: int) -> Figure:
    """Figure 1 from `traces`: pulls so far above, means with intervals below, one column per deadline."""
    figure, axes = plt.subplots(2, 3, figsize=(figures.PAGE, 3.9), sharey="row", sharex="col")
    for column, (label, frame) in enumerate(table.groupby("deadline", sort=False)):
        batches = label != SEQUENTIAL
        _pulls(axes[0, column], frame, batches)
        _means(axes[1, column], frame, batches)
        total = frame.groupby("arm")["pulls"].max().sum()
        axes[0, column].set_title(f"{label}: {total:,} pulls in all")
    axes[0, 0].set(yscale="log", ylabel="pulls of each arm so far", ylim=(8, 3e5))
    axes[1, 0].set(ylabel="mean reward,\nconfidence interval", ylim=(0, 1))
    axes[1, 1].set(xscale="log", xlabel="round (one pull each)", xlim=(100, None))
    for column, last in ((0, 1), (2, rounds)):
        axes[1, column].set(xlabel="round", xlim=(0.5, last + 0.5), xticks=range(1, last + 1))
    axes[0, 0].legend(loc="lower left")
    figures.letters(axes.flat)
    return figure


def _arms(frame: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame, dict[str, Any]]]:
    """Each arm's part of a trace, with its look."""
    for place, (arm, run) in enumerate(frame.groupby("arm")):
        yield place, run, {"color": f"C{place}", "marker": "os^"[place], "label": f"arm {arm}"}


def _pulls(axis: Axes, frame: pd.DataFrame, batches: bool) -> None:
    """Pulls of each arm so far, with a note on the last arm."""
    for place, run, looks in _arms(frame):
        dodge = 0.12 * (place - 1) if batches else 0.0
        if batches:
            axis.plot(run["round"] + dodge, run["pulls"], ls="--", lw=0.7, **looks)
        else:
            axis.plot(run["round"], run["pulls"], ls=["-", (0, (2, 2)), "-"][place], markevery=[-1], **looks)
    dropped = "dropped after\n" if run["round"].max() < frame["round"].max() else ""
    note = f"{looks['label']}: {dropped}{run['pulls'].max():,} pulls"
    corner = (run["round"].max() + dodge, run["pulls"].max())
    side: dict[str, Any] = {"textcoords": "offset points", "va": "top", "ha": "left" if dropped else "center"}
    axis.annotate(note, corner, (0, -6), color="C2", fontsize=7, **side)


def _means(axis: Axes, frame: pd.DataFrame, batches: bool) -> None:
    """Empirical means with bars: after each batch, or at some rounds where there is one pull in each."""
    shown = np.geomspace(200, frame["round"].max(), 6)
    for place, run, looks in _arms(frame):
        if not batches:
            early = np.searchsorted(run["round"], shown[shown < 0.7 * run["round"].max()])
            run = run.iloc[[*early, -1]]
        x = run["round"] + 0.12 * (place - 1) if batches else run["round"] * 1.06 ** (place - 1)
        axis.errorbar(x, run["mean"], run["upper"] - run["mean"], ls="", ms=3, capsize=1.5, lw=0.9, **looks)


def easy_arm(
    passive: Simulation, sequential: Simulation, deadline: Simulation, arm: int, rounds: int
) -> Finding:
    """Check C46: the easy arm is pulled most with T = 1, least with T = ∞, and by the deadline in between.

    The three are simulations with pulls per arm; means must differ by five standard errors (a false alarm
    has probability below 10⁻⁶).
    """
    means, errors, evidence = [], [], []
    for label, result in (("T = 1", passive), (f"T = {rounds}", deadline), (SEQUENTIAL, sequential)):
        pulls = result.arm_pulls[:, arm]
        means.append(float(pulls.mean()))
        errors.append(float(pulls.std(ddof=1) / np.sqrt(len(pulls))))
        evidence.append(measured(f"pulls of arm {arm + 1}", means[-1], errors[-1], len(pulls), label))
    steps = -np.diff(means) > 5 * np.hypot(errors[1:], errors[:-1])
    alike = np.allclose(passive.pulls, means[0] * passive.arm_pulls.shape[1])  # one round spares nobody
    most, least = int(deadline.rounds.max()), int(sequential.rounds.min())
    evidence.append(Evidence("rounds, at most", most, f"T = {rounds}", allowed=f"≤ {rounds}"))
    evidence.append(Evidence("rounds, at least", least, SEQUENTIAL))
    return Finding("C46", bool(steps.all() and alike and most <= rounds), tuple(evidence), "simulated")
