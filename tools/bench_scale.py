"""Races of up to a million arms: against their bare draws, how time grows with n and T, and memory."""

import functools
from typing import Any

import numpy as np
import pandas as pd
from bench_cases import DEADLINE, LARGE, MEMORY
from bench_table import BARE, EXPONENT, PEAK, RATE, Part, Target, progress
from bench_yardsticks import alternate, bare_draws, number_of_pulls, peak_memory, recorded_draws
from matplotlib.axes import Axes

import ebr

RUNS = 3
ARMS = (1_000, 10_000, 100_000, 1_000_000)
DEADLINES = (2, 5, 15, 50, 150)
ARMS_OF_DEADLINES = 100_000
# With a thousand arms calls cost more than numbers do; the slope is of the sizes where numbers count.
FITTED_FROM = 10_000
LARGEST_EXPONENT = 1.1  # in n: linear, but for noise
LARGEST_EXPONENT_IN_T = 1.0  # at most linear
MEMORY_LIMIT = 1024  # MiB
Point = dict[str, Any]


def measure() -> Part:
    """Time all large races on Setup 1; one row each for the million arms, and one for growth in T."""
    points = pd.DataFrame([point(label, n, t) for label in LARGE for n, t in grid()])
    rows = pd.DataFrame([found for label in LARGE for found in rows_of(label, points)])
    pictures = (
        functools.partial(draw, points=points, over="n"),
        functools.partial(draw, points=points, over="T"),
    )
    return Part(rows, targets(rows), pictures)


def grid() -> list[tuple[int, int]]:
    """The pairs of n and T."""
    return sorted({*((n, DEADLINE) for n in ARMS), *((ARMS_OF_DEADLINES, t) for t in DEADLINES)})


def point(label: str, n: int, deadline: int) -> Point:
    """Time a race, in turn with its bare draws."""
    progress(f"{label}, Setup 1, n = {n:,}, T = {deadline}")
    algorithm, problem = LARGE[label][0](deadline), ebr.setup_1(n)
    draws = recorded_draws(algorithm, problem, RUNS)
    simulate = functools.partial(ebr.simulate, algorithm, problem, RUNS)
    bare = functools.partial(bare_draws, problem, draws, np.random.default_rng(0))
    (seconds, bare_seconds), _ = alternate([simulate, bare], 3, 51, seconds=1.5)
    return {
        "algorithm": label,
        "n": n,
        "T": deadline,
        "pulls": number_of_pulls(draws),
        "seconds": np.median(seconds),
        BARE: np.median(seconds / bare_seconds),
    }


def rows_of(label: str, points: pd.DataFrame) -> list[Point]:
    """The race on a million arms with its growth in n and its memory, and the growth in T."""
    progress(f"memory of {label}, Setup 1, n = {ARMS[-1]:,}")
    ours = points[points["algorithm"] == label]
    largest = ours[ours["n"] == ARMS[-1]].iloc[0]
    arguments = f"ebr.{LARGE[label][0](DEADLINE)!r}, ebr.setup_1({ARMS[-1]}), {RUNS}"
    by_n = ours[(ours["T"] == DEADLINE) & (ours["n"] >= FITTED_FROM)]
    by_deadline = ours[ours["n"] == ARMS_OF_DEADLINES]
    case = {"algorithm": f"{label}, T = {DEADLINE}", "runs": RUNS}
    return [
        case
        | {
            "problem": f"Setup 1, n = {ARMS[-1]:,}",
            "label": label,
            RATE: largest["pulls"] / largest["seconds"],
            BARE: largest[BARE],
            EXPONENT: slope(by_n, "n"),
            PEAK: peak_memory(arguments),
        },
        case
        | {
            "algorithm": f"{label}, T = {DEADLINES[0]} … {DEADLINES[-1]}",
            "problem": f"Setup 1, n = {ARMS_OF_DEADLINES:,}, growth in T",
            EXPONENT: slope(by_deadline, "T"),
        },
    ]


def slope(points: pd.DataFrame, over: str) -> float:
    """The exponent with which time grows."""
    return float(np.polyfit(np.log(points[over]), np.log(points["seconds"]), 1)[0])


def targets(rows: pd.DataFrame) -> list[Target]:
    """Time over bare draws, both exponents, and memory."""
    found = []
    for row in rows.to_dict("records"):
        what = f"{row['algorithm']}, {row['problem']}"
        if np.isnan(row[BARE]):
            found.append(Target(f"{what}: {EXPONENT}", "≤", LARGEST_EXPONENT_IN_T, row[EXPONENT]))
            continue
        found.append(Target(f"{what}: {BARE}", "≤", LARGE[row["label"]][1], row[BARE]))
        found.append(Target(f"{what}: {EXPONENT} in n", "≤", LARGEST_EXPONENT, row[EXPONENT]))
        found.append(Target(f"{what}: {PEAK}", "<", MEMORY_LIMIT, row[PEAK]))
    return found


def measure_memory() -> Part:
    """The most memory that other cases need."""
    rows = []
    for label, problem, arguments in MEMORY:
        progress(f"memory of {label}, {problem}")
        runs = int(arguments.rpartition(",")[2])
        rows.append({"algorithm": label, "problem": problem, "runs": runs, PEAK: peak_memory(arguments)})
    limits = [
        Target(f"{row['algorithm']}, {row['problem']}: {PEAK}", "<", MEMORY_LIMIT, row[PEAK]) for row in rows
    ]
    return Part(pd.DataFrame(rows), limits)


def draw(axes: Axes, points: pd.DataFrame, over: str) -> None:
    """Draw time against n or T."""
    fixed, value = ("T", DEADLINE) if over == "n" else ("n", ARMS_OF_DEADLINES)
    for number, (label, group) in enumerate(points[points[fixed] == value].groupby("algorithm", sort=False)):
        fitted = group[group["n"] >= FITTED_FROM]
        name = f"{label}: {slope(fitted, over):.2f}"
        axes.loglog(group[over], group["seconds"], marker="osv^D"[number], label=name)
    title = f"Setup 1, {RUNS} runs, {fixed} = {value:,}: exponents"
    axes.set(xlabel=over, ylabel="CPU seconds", title=title)
    axes.legend()
