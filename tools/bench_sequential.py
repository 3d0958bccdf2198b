"""The sequential oracle, which asks ahead, against loops of one pull at a time, at every ε of Figure 2."""

import ast
import functools
from typing import Any

import numpy as np
import pandas as pd
import papermill
from bench_cases import DELTA, SEQUENTIAL_RUNS, SETUPS
from bench_table import BARE, COMPILED, EXPONENT, PLAIN, RATE, Part, Target, progress
from bench_yardsticks import (
    alternate,
    bare_draws,
    compiled_loop,
    number_of_pulls,
    plain_loop,
    recorded_draws,
)
from matplotlib.axes import Axes

import ebr

NOTEBOOK = papermill.inspect_notebook("notebooks/07-simulations.ipynb")
GRID = sorted(ast.literal_eval(NOTEBOOK["epsilons"]["default"]), reverse=True)  # Figure 2's ε
SUMS = [  # of the sequential points: the label, the setups and the largest ε
    ("Setup 1, all ε", ["Setup 1"], 1.0),
    ("Setup 1, ε ≤ 0.1", ["Setup 1"], 0.1),
    ("Setup 2, all ε", ["Setup 2"], 1.0),
    ("Setup 2, ε ≤ 0.1", ["Setup 2"], 0.1),
    ("all points together", ["Setup 1", "Setup 2"], 1.0),
]
HARDEST_POINT, ALL_POINTS = 10, 5  # × the compiled loop, at least
LARGEST_EXPONENT = 0.6


def measure() -> Part:
    """Time every point, and sum up."""
    progress("compiling the loop")
    compiled_loop(SETUPS["Setup 1"], GRID[0], DELTA, 1)
    ebr.simulate(ebr.SequentialRacing(GRID[0], DELTA), SETUPS["Setup 1"], 10)  # loads what is loaded at first
    points = pd.DataFrame([point(name, epsilon) for name in SETUPS for epsilon in GRID])
    sums = pd.DataFrame([sum_of_points(points, *choice) for choice in SUMS])
    rows = pd.concat([yardsticks(sums), points, sums])
    return Part(rows, targets(points, sums), (functools.partial(draw, points=points, sums=sums),))


def point(name: str, epsilon: float) -> dict[str, Any]:
    """Time the sequential oracle at one ε, between compiled loops and beside the other yardsticks."""
    progress(f"sequential racing, {name}, ε = {epsilon}")
    problem, algorithm, runs = SETUPS[name], ebr.SequentialRacing(epsilon, DELTA), SEQUENTIAL_RUNS
    draws = recorded_draws(algorithm, problem, runs)
    pulls = number_of_pulls(draws)
    loops = min(max(1, round(2e7 * runs / pulls)), runs)  # a third of a second
    compiled = functools.partial(compiled_loop, problem, epsilon, DELTA, loops)
    plain = functools.partial(plain_loop, SETUPS["Setup 1"], GRID[0], DELTA, 10)  # slow: the easiest point
    simulate = functools.partial(ebr.simulate, algorithm, problem, runs)
    bare = functools.partial(bare_draws, problem, draws, np.random.default_rng(0))
    least = 2 if (name, epsilon) == ("Setup 2", 0.001) else 1  # that one has a target of its own
    times, results = alternate([compiled, simulate, compiled, plain, bare], least, 9, seconds=1.5)
    before, seconds, after, plain_seconds, bare_seconds = times
    return {
        "algorithm": "Sequential",
        "problem": f"{name}, ε = {epsilon}",
        "setup": name,
        "epsilon": epsilon,
        "runs": runs,
        "pulls": pulls,
        RATE: pulls / np.median(seconds),
        PLAIN: np.median(plain_seconds / seconds) * pulls / results[3],
        COMPILED: np.median((before + after) / seconds) * pulls / (2 * results[0]),
        BARE: np.median(seconds / bare_seconds),
    }


def sum_of_points(points: pd.DataFrame, label: str, setups: list[str], largest: float) -> dict[str, Any]:
    """All pulls over all the time, and the same for the time that each yardstick needs for these pulls."""
    chosen = points[points["setup"].isin(setups) & (points["epsilon"] <= largest)]
    pulls = chosen["pulls"]
    seconds = pulls / chosen[RATE]
    slope = np.polyfit(np.log(pulls), np.log(seconds), 1)[0]
    return {
        "algorithm": "Sequential",
        "problem": label,
        "runs": SEQUENTIAL_RUNS,
        RATE: pulls.sum() / seconds.sum(),
        PLAIN: (seconds * chosen[PLAIN]).sum() / seconds.sum(),
        COMPILED: (seconds * chosen[COMPILED]).sum() / seconds.sum(),
        BARE: seconds.sum() / (seconds / chosen[BARE]).sum(),
        EXPONENT: slope if len(setups) == 1 else np.nan,
    }


def yardsticks(sums: pd.DataFrame) -> pd.DataFrame:
    """The loops' own speed: the compiled one's for the pulls of all points together."""
    together = sums.set_index("problem").loc["all points together"]
    rows = [
        {
            "algorithm": "Plain loop",
            "problem": f"Setup 1, ε = {GRID[0]}",
            RATE: together[RATE] / together[PLAIN],
        },
        {"algorithm": "Compiled loop", "problem": together.name, RATE: together[RATE] / together[COMPILED]},
    ]
    return pd.DataFrame(rows)


def targets(points: pd.DataFrame, sums: pd.DataFrame) -> list[Target]:
    """How much faster than the compiled loop it is to be, and how its time may grow with the pulls."""
    speed = pd.concat([points, sums]).set_index("problem")[COMPILED]
    growth = sums.set_index("problem")[EXPONENT]
    hardest, together = "Setup 2, ε = 0.001", "all points together"
    return [
        Target(f"Sequential, {hardest}: {COMPILED}", "≥", HARDEST_POINT, speed[hardest]),
        Target(f"Sequential, {together}: {COMPILED}", "≥", ALL_POINTS, speed[together]),
        *(
            Target(
                f"Sequential, {setup}, ε ≤ 0.1: {EXPONENT}",
                "≤",
                LARGEST_EXPONENT,
                growth[f"{setup}, ε ≤ 0.1"],
            )
            for setup in SETUPS
        ),
    ]


def draw(axes: Axes, points: pd.DataFrame, sums: pd.DataFrame) -> None:
    """Draw time against pulls, with the fitted slope and what the compiled loop needs."""
    exponents = sums.set_index("problem")[EXPONENT]
    for number, (name, group) in enumerate(points.groupby("setup")):
        pulls, seconds = group["pulls"], group["pulls"] / group[RATE]
        exponent = exponents[f"{name}, ε ≤ 0.1"]
        fitted = group["epsilon"] <= 0.1
        level = np.log(seconds[fitted]).mean() - exponent * np.log(pulls[fitted]).mean()
        style = {"color": f"C{number}"}
        axes.loglog(pulls, seconds, "os"[number], label=name, **style)
        axes.loglog(
            pulls[fitted], np.exp(level) * pulls[fitted] ** exponent, label=f"slope {exponent:.2f}", **style
        )
        axes.loglog(pulls, seconds * group[COMPILED], ":", label="compiled loop", **style)
    axes.set(xlabel=f"pulls in {SEQUENTIAL_RUNS} runs", ylabel="CPU seconds", title="Sequential racing")
    axes.legend()
