"""Measure the simulator's speed against yardsticks that are timed beside it, for the Makefile.

The yardsticks: sequential racing as a plain Python loop, one pull at a time; the same loop compiled; and the
bare draws that `simulate` asks numpy for, without anything around them. A machine's clock wanders, so
absolute times say little: yardstick and subject take turns, and what counts is the ratio of neighbours. All
is done by one thread and timed in CPU seconds, which leave out what the machine does besides.

An algorithm that keeps what it has computed for its next race is timed *warm*, and once *cold*.

Prints a table and whether each target is met (a missed one is reported, it is no error), and writes
build/bench/bench.csv, bench.png and bench.svg.
"""

import ast
import dataclasses
import functools
import operator
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import papermill
from bench_cases import (
    DELTA,
    EPSILON,
    MEMORY,
    RIVALS,
    ROUND_BASED,
    ROUND_BASED_RUNS,
    SEQUENTIAL_RUNS,
    SETUPS,
)
from bench_yardsticks import (
    alternate,
    bare_draws,
    compiled_loop,
    number_of_pulls,
    peak_memory,
    plain_loop,
    recorded_draws,
    timed,
)
from compendium import figures
from matplotlib.axes import Axes

import ebr
from ebr.theory.problems import Problem

FOLDER = Path("build/bench")
NOTEBOOK = papermill.inspect_notebook("notebooks/07-simulations.ipynb")
GRID = sorted(ast.literal_eval(NOTEBOOK["epsilons"]["default"]), reverse=True)  # Figure 2's ε
SUMS = [  # of the sequential points: the label, the setups and the largest ε
    ("Setup 1, all ε", ["Setup 1"], 1.0),
    ("Setup 1, ε ≤ 0.1", ["Setup 1"], 0.1),
    ("Setup 2, all ε", ["Setup 2"], 1.0),
    ("Setup 2, ε ≤ 0.1", ["Setup 2"], 0.1),
    ("all points together", ["Setup 1", "Setup 2"], 1.0),
]

RATE, PLAIN, COMPILED = "pulls/s", "× plain loop", "× compiled loop"
BARE, COLD, EXPONENT, PEAK = "time / bare draws", "cold", "growth exponent", "peak MiB"
CASE = ["algorithm", "problem", "runs"]
COLUMNS = [*CASE, RATE, PLAIN, COMPILED, BARE, COLD, EXPONENT, PEAK]
FORMATS: dict[str, Callable[[float], str]] = {
    "runs": "{:.0f}".format,
    RATE: "{:.2e}".format,
    PLAIN: "{:.2f}".format,
    COMPILED: "{:.2f}".format,
    BARE: "{:.2f}".format,
    COLD: "{:.1f}".format,
    EXPONENT: "{:.2f}".format,
    PEAK: "{:.0f}".format,
}

# The targets.
HARDEST_POINT, ALL_POINTS = 10, 5  # × the compiled loop, at least
LARGEST_EXPONENT = 0.6
OVERHEAD = 1.5  # of a round-based algorithm's simulation, × its bare draws, at most
MEMORY_LIMIT = 1024  # MiB


def main() -> None:
    """Measure, print, draw."""
    started = time.perf_counter()
    memory = [memory_row(*case) for case in MEMORY]
    warm_up()
    round_based = pd.DataFrame([round_based_row(label, name) for label in ROUND_BASED for name in SETUPS])
    rivals = pd.DataFrame([rival_row(label, name) for label in RIVALS for name in SETUPS])
    points = pd.DataFrame([sequential_point(name, epsilon) for name in SETUPS for epsilon in GRID])
    sums = pd.DataFrame([sum_of_points(points, *choice) for choice in SUMS])
    table = pd.concat([yardsticks(sums), points, sums, round_based, rivals, pd.DataFrame(memory)])
    table = table.groupby(CASE, sort=False, dropna=False, as_index=False).first()[COLUMNS]
    print(table.to_string(index=False, formatters=FORMATS, na_rep=""))
    targets = verdicts(points, sums, round_based, memory)
    missed = (targets["verdict"] == "MISSED").sum()
    print(f"\n{targets.to_string(index=False)}\n\n{missed} of {len(targets)} targets missed.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    table.to_csv(FOLDER / "bench.csv", index=False, float_format="%.6g")
    draw(points, sums, round_based)
    progress(f"Written: {FOLDER}/bench.csv, .png and .svg, in {time.perf_counter() - started:.0f} s.")


def warm_up() -> None:
    """Compile the loop, and let numpy load what it loads at first use."""
    progress("compiling the loop")
    compiled_loop(SETUPS["Setup 1"], GRID[0], DELTA, 1)
    ebr.simulate(ebr.SequentialRacing(GRID[0], DELTA), SETUPS["Setup 1"], 10)


def sequential_point(name: str, epsilon: float) -> dict[str, Any]:
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


def round_based_row(label: str, name: str) -> dict[str, Any]:
    """Time a round-based algorithm, in turn with its bare draws."""
    progress(f"{label}, {name}")
    case, problem = ROUND_BASED[label], ROUND_BASED[label].problems[name]
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


def rival_row(label: str, name: str) -> dict[str, Any]:
    """Time a rival, in turn with the compiled loop on the Bernoulli problem of the same means."""
    progress(f"{label}, {name}")
    problems, runs, rival = RIVALS[label]
    race = functools.partial(rival, problems[name], runs)
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


def memory_row(label: str, problem: str, arguments: str) -> dict[str, Any]:
    """The most memory that a case needs."""
    progress(f"memory of {label}, {problem}")
    runs = int(arguments.rpartition(",")[2])
    return {"algorithm": label, "problem": problem, "runs": runs, PEAK: peak_memory(arguments)}


def verdicts(
    points: pd.DataFrame, sums: pd.DataFrame, round_based: pd.DataFrame, memory: list[dict[str, Any]]
) -> pd.DataFrame:
    """Each target, what was measured, and whether it is met."""
    speed = pd.concat([points, sums]).set_index("problem")[COMPILED]
    growth = sums.set_index("problem")[EXPONENT]
    rows: list[tuple[str, str, float, float]] = [
        (f"Sequential, {problem}: {COMPILED}", "≥", least, speed[problem])
        for problem, least in (("Setup 2, ε = 0.001", HARDEST_POINT), ("all points together", ALL_POINTS))
    ]
    for problem in ("Setup 1, ε ≤ 0.1", "Setup 2, ε ≤ 0.1"):
        rows.append((f"Sequential, {problem}: {EXPONENT}", "≤", LARGEST_EXPONENT, growth[problem]))
    with_target = [label for label, case in ROUND_BASED.items() if case.has_target]
    for row in round_based[round_based["algorithm"].isin(with_target)].to_dict("records"):
        rows.append((f"{row['algorithm']}, {row['setup']}: {BARE}", "≤", OVERHEAD, row[BARE]))
    for case in memory:
        rows.append((f"{case['algorithm']}, {case['problem']}: {PEAK}", "<", MEMORY_LIMIT, case[PEAK]))
    compare = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}
    table = [
        (what, f"{sign} {limit}", f"{value:.2f}", "met" if compare[sign](value, limit) else "MISSED")
        for what, sign, limit, value in rows
    ]
    return pd.DataFrame(table, columns=["what", "target", "measured", "verdict"])


def draw(points: pd.DataFrame, sums: pd.DataFrame, round_based: pd.DataFrame) -> None:
    """Draw time against pulls, and each round-based algorithm's time in units of its bare draws."""
    figures.style()
    figure, (left, right) = plt.subplots(1, 2, figsize=(figures.PAGE, 3.0))
    draw_growth(left, points, sums.set_index("problem")[EXPONENT])
    draw_overhead(right, round_based)
    figure.savefig(FOLDER / "bench.png")
    figure.savefig(FOLDER / "bench.svg", metadata={"Date": None})


def draw_growth(axes: Axes, points: pd.DataFrame, exponents: "pd.Series[float]") -> None:
    """Time against pulls, with the fitted slope and what the compiled loop needs."""
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


def draw_overhead(axes: Axes, round_based: pd.DataFrame) -> None:
    """Simulation time over bare draws, against the target."""
    table = round_based.pivot_table(index="algorithm", columns="setup", values=BARE).loc[list(ROUND_BASED)]
    for number, name in enumerate(table):
        axes.plot(table[name], np.arange(len(table)), "os"[number], label=name)
    axes.axvline(OVERHEAD, color="black", linewidth=0.8, linestyle="--", label="target")
    axes.set_yticks(range(len(table)), table.index)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xticks([1, 1.5, 3, 10, 30], ["1", "1.5", "3", "10", "30"], minor=False)
    axes.minorticks_off()
    axes.set(xlabel="time / time of the bare draws", title=f"Round-based, {ROUND_BASED_RUNS:,} runs")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)  # clear of the marks


def progress(text: str) -> None:
    """Say what is going on, beside the table."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
