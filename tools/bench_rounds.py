"""Algorithms that race in rounds, against the bare draws of their rewards; and the rivals' speed."""

import dataclasses
import functools
from typing import Any

import numpy as np
import pandas as pd
from bench_cases import (
    DEADLINE,
    DELTA,
    EPSILON,
    RIVAL_RUNS,
    RIVALS,
    ROUND_BASED,
    ROUND_BASED_RUNS,
    SETUPS,
    problems_of,
)
from bench_table import BARE, COLD, COMPILED, RATE, Part, Target, progress
from bench_yardsticks import (
    alternate,
    bare_draws,
    compiled_loop,
    number_of_pulls,
    recorded_draws,
    timed,
)
from matplotlib.axes import Axes

import ebr
from ebr.theory.problems import Problem

OVERHEAD = 1.5  # of a round-based algorithm's simulation, × its bare draws, at most


def measure() -> Part:
    """Time every round-based algorithm on both setups."""
    rows = [row(label, name) for label in ROUND_BASED for name in SETUPS]
    targets = [
        Target(f"{row['algorithm']}, {row['setup']}: {BARE}", "≤", OVERHEAD, row[BARE])
        for row in rows
        if ROUND_BASED[row["algorithm"]].has_target
    ]
    table = pd.DataFrame(rows)
    return Part(table, targets, (functools.partial(draw, table=table),))


def row(label: str, name: str) -> dict[str, Any]:
    """Time a round-based algorithm, in turn with its bare draws."""
    progress(f"{label}, {name}")
    case, problem = ROUND_BASED[label], problems_of(ROUND_BASED[label].rewards)[name]
    draws = recorded_draws(case.algorithm, problem, ROUND_BASED_RUNS)
    simulate = functools.partial(ebr.simulate, case.algorithm, problem, ROUND_BASED_RUNS)
    bare = functools.partial(bare_draws, problem, draws, np.random.default_rng(0))
    (seconds, bare_seconds), _ = alternate([simulate, bare], 5, 101, seconds=1.5)
    return {
        "algorithm": label,
        "problem": f"{name}, ε = {EPSILON}",
        "setup": name,
        "runs": ROUND_BASED_RUNS,
        RATE: number_of_pulls(draws) / np.median(seconds),
        BARE: np.median(seconds / bare_seconds),
        COLD: cold_seconds(case.algorithm, problem) / np.median(bare_seconds) if case.remembers else np.nan,
    }


def cold_seconds(algorithm: Any, problem: Problem) -> float:
    """The time of a first race, of an algorithm like this one that has not raced yet: δ is a hair smaller."""
    alike = (dataclasses.replace(algorithm, delta=DELTA * (1 - 1e-9 * number)) for number in (1, 2, 3))
    races = (functools.partial(ebr.simulate, one, problem, ROUND_BASED_RUNS) for one in alike)
    return float(np.median([timed(race)[0] for race in races]))


def measure_rivals() -> Part:
    """Time every rival on both setups; there is no target for them."""
    return Part(pd.DataFrame([rival_row(label, name) for label in RIVALS for name in SETUPS]), [])


def rival_row(label: str, name: str) -> dict[str, Any]:
    """Time a rival, in turn with the compiled loop on the Bernoulli problem of the same means."""
    progress(f"{label}, {name}")
    rival = RIVALS[label]
    problem, runs = problems_of(rival.rewards)[name], RIVAL_RUNS[rival.pace]
    race = functools.partial(rival.race, problem, DEADLINE, EPSILON, DELTA, runs, 0)
    race()  # compiles what it compiles
    compiled = functools.partial(compiled_loop, SETUPS[name], EPSILON, DELTA, 1)
    (before, seconds), (loop_pulls, table) = alternate([compiled, race], 2, 25, seconds=1.0)
    pulls = table["pulls"].sum()
    return {
        "algorithm": label,
        "problem": name,
        "runs": runs,
        RATE: pulls / np.median(seconds),
        COMPILED: np.median(before / seconds) * pulls / loop_pulls,
    }


def draw(axes: Axes, table: pd.DataFrame) -> None:
    """Draw each algorithm's time in units of its bare draws, against the target."""
    ratios = table.pivot_table(index="algorithm", columns="setup", values=BARE).loc[list(ROUND_BASED)]
    for number, name in enumerate(ratios):
        axes.plot(ratios[name], np.arange(len(ratios)), "os"[number], label=name)
    axes.axvline(OVERHEAD, color="black", linewidth=0.8, linestyle="--", label="target")
    axes.set_yticks(range(len(ratios)), ratios.index)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xticks([1, 1.5, 3, 10, 30], ["1", "1.5", "3", "10", "30"], minor=False)
    axes.minorticks_off()
    axes.set(xlabel="time / time of the bare draws", title=f"Round-based, {ROUND_BASED_RUNS:,} runs")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)  # clear of the marks
