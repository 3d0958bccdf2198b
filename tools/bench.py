"""Measure the simulator's speed against yardsticks that are timed beside it, for the Makefile.

The yardsticks: sequential racing as a plain Python loop, one pull at a time; the same loop compiled; and the
bare binomial draws that `simulate` asks numpy for, without anything around them. A machine's clock wanders,
so absolute times say little: yardstick and subject take turns, and what counts is the ratio of neighbours.
All is done by one thread and timed in CPU seconds, which leave out what the machine does besides.

Prints a table and whether each target is met (a missed one is reported, it is no error), and writes
build/bench/bench.csv, bench.png and bench.svg.
"""

import ast
import functools
import math
import operator
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib.pyplot as plt
import numba
import numpy as np
import pandas as pd
import papermill
from compendium import figures
from matplotlib.axes import Axes

import ebr
from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray, IntArray
from ebr.simulation import simulate
from ebr.theory.problems import Problem

FOLDER = Path("build/bench")
EPSILON = DELTA = 0.01
NOTEBOOK = papermill.inspect_notebook("notebooks/07-simulations.ipynb")
GRID = sorted(ast.literal_eval(NOTEBOOK["epsilons"]["default"]), reverse=True)  # Figure 2's ε
SEQUENTIAL_RUNS, ROUND_BASED_RUNS = 100, 1000
SETUPS: dict[str, Problem] = {"Setup 1": ebr.setup_1(), "Setup 2": ebr.setup_2()}
ROUND_BASED: dict[str, Algorithm] = {
    "EBR, T = 1": ebr.ElasticBatchRacing(1, EPSILON, DELTA),
    "EBR, T = 15": ebr.ElasticBatchRacing(15, EPSILON, DELTA),
    "EBR, T = 50": ebr.ElasticBatchRacing(50, EPSILON, DELTA),
    "kδER, T = 15": ebr.DeltaElimination(15, EPSILON, DELTA),
    "AE, T = 15": ebr.AggressiveElimination(15, EPSILON, DELTA),
    "Passive": ebr.Passive(EPSILON, DELTA),
}
MEMORY = [
    ("Sequential", "Setup 2, ε = 0.001", "ebr.SequentialRacing(0.001, 0.01), ebr.setup_2(), 100"),
    ("EBR, T = 15", "Setup 1, ε = 0.01", "ebr.ElasticBatchRacing(15, 0.01, 0.01), ebr.setup_1(), 1000"),
    (
        "EBR, T = 15",
        "Setup 1, ε = 0.01, n = 100,000",
        "ebr.ElasticBatchRacing(15, 0.01, 0.01), ebr.setup_1(100_000), 100",
    ),
]
SUMS = [  # of the sequential points: the label, the setups and the largest ε
    ("Setup 1, all ε", ["Setup 1"], 1.0),
    ("Setup 1, ε ≤ 0.1", ["Setup 1"], 0.1),
    ("Setup 2, all ε", ["Setup 2"], 1.0),
    ("Setup 2, ε ≤ 0.1", ["Setup 2"], 0.1),
    ("all points together", ["Setup 1", "Setup 2"], 1.0),
]

RATE, PLAIN, COMPILED = "pulls/s", "× plain loop", "× compiled loop"
BARE, EXPONENT, PEAK = "time / bare draws", "growth exponent", "peak MiB"
CASE = ["algorithm", "problem", "runs"]
COLUMNS = [*CASE, RATE, PLAIN, COMPILED, BARE, EXPONENT, PEAK]
FORMATS: dict[str, Callable[[float], str]] = {
    "runs": "{:.0f}".format,
    RATE: "{:.2e}".format,
    PLAIN: "{:.2f}".format,
    COMPILED: "{:.2f}".format,
    BARE: "{:.2f}".format,
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
    memory = [peak_memory(*case) for case in MEMORY]
    warm_up()
    round_based = pd.DataFrame([round_based_row(label, name) for label in ROUND_BASED for name in SETUPS])
    points = pd.DataFrame([sequential_point(name, epsilon) for name in SETUPS for epsilon in GRID])
    sums = pd.DataFrame([sum_of_points(points, *choice) for choice in SUMS])
    table = pd.concat([yardsticks(sums), points, sums, round_based, pd.DataFrame(memory)])
    table = table.groupby(CASE, sort=False, dropna=False, as_index=False).first()[COLUMNS]
    print(table.to_string(index=False, formatters=FORMATS, na_rep=""))
    targets = verdicts(points, sums, round_based, memory)
    missed = (targets["verdict"] == "MISSED").sum()
    print(f"\n{targets.to_string(index=False)}\n\n{missed} of {len(targets)} targets missed.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    table.to_csv(FOLDER / "bench.csv", index=False, float_format="%.6g")
    draw(points, sums, round_based)
    progress(f"Written: {FOLDER}/bench.csv, .png and .svg, in {time.perf_counter() - started:.0f} s.")


def race(means: Any, sums: Any, epsilon: float, delta: float, seed: int) -> int:
    """Race sequentially, one pull at a time, and count the pulls: `SequentialRacing` as one would write it.

    Plain with lists, compiled with arrays: the first k entries are the survivors'. `sums` starts at zero;
    both are overwritten. As `math` is cheaper than numpy for single numbers, the deviation is spelt out.
    """
    random.seed(seed)
    n = k = len(means)
    omega = math.sqrt(delta / (6 * n))
    pulls = sweep = 0
    while True:
        sweep += 1
        pulls += k
        first = second = -1.0
        for i in range(k):
            if random.random() < means[i]:
                sums[i] += 1.0
            if sums[i] > first:
                second = first
                first = sums[i]
            elif sums[i] > second:
                second = sums[i]
        width = 4 * math.sqrt(sweep * math.log(math.log2(2 * sweep) / omega))  # 2τD(τ) with σ = ½
        least = first - max(width - epsilon / n * sweep, 0.0)
        kept = 0
        for i in range(k):
            if sums[i] >= least:
                means[kept] = means[i]
                sums[kept] = sums[i]
                kept += 1
        k = kept
        if k == 1 or first - second >= width - epsilon * sweep:
            return pulls


compiled_race = numba.njit(race)


def plain_loop() -> int:
    """Pulls of the plain loop, which is slow: a few runs of the easiest point of the grid."""
    means = SETUPS["Setup 1"].means.tolist()
    return sum(race(means.copy(), [0.0] * len(means), GRID[0], DELTA, seed) for seed in range(10))


def compiled_loop(problem: Problem, epsilon: float, runs: int) -> int:
    """Pulls of the compiled loop."""
    zeros = np.zeros(problem.n_arms)
    loops = (compiled_race(problem.means.copy(), zeros.copy(), epsilon, DELTA, seed) for seed in range(runs))
    return sum(loops)


Draws = list[tuple[IntArray, FloatArray]]


def recorded_draws(algorithm: Algorithm, problem: Problem, runs: int) -> Draws:
    """The pulls and means of every draw that one `simulate` makes, in the memory order that it makes them."""
    draws: Draws = []
    original = simulate.draw_sums

    @functools.wraps(original)  # its attributes as well: simulate asks for the dispatch
    def spy(problem: Problem, arms: Any, pulls: IntArray, generator: np.random.Generator) -> Any:
        draws.append((pulls.copy(order="K"), problem.means[arms, None]))
        return original(problem, arms, pulls, generator)

    with mock.patch.object(simulate, "draw_sums", spy):
        ebr.simulate(algorithm, problem, runs)
    return draws


def number_of_pulls(draws: Draws) -> int:
    """All pulls that were asked for."""
    return sum(int(pulls.sum()) for pulls, _ in draws)


def bare_draws(draws: Draws, generator: np.random.Generator) -> None:
    """Nothing but the draws."""
    for pulls, means in draws:
        generator.binomial(pulls, means)


def alternate(
    actions: list[Callable[[], Any]], least: int, most: int, seconds: float
) -> tuple[FloatArray, list[Any]]:
    """Do things in turn, over and over: the seconds that each takes in each turn, and the last results."""
    turns: list[tuple[float, ...]] = []
    started = time.process_time()
    while len(turns) < least or (len(turns) < most and time.process_time() - started < seconds):
        times, results = zip(*(timed(action) for action in actions), strict=True)
        turns.append(times)
    return np.transpose(turns), list(results)


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """How many seconds something takes, and what it returns."""
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def warm_up() -> None:
    """Compile the loop, and let numpy load what it loads at first use."""
    progress("compiling the loop")
    compiled_loop(SETUPS["Setup 1"], GRID[0], 1)
    ebr.simulate(ebr.SequentialRacing(GRID[0], DELTA), SETUPS["Setup 1"], 10)


def sequential_point(name: str, epsilon: float) -> dict[str, Any]:
    """Time the sequential oracle at one ε, between compiled loops and beside the other yardsticks."""
    progress(f"sequential racing, {name}, ε = {epsilon}")
    problem, algorithm, runs = SETUPS[name], ebr.SequentialRacing(epsilon, DELTA), SEQUENTIAL_RUNS
    draws = recorded_draws(algorithm, problem, runs)
    pulls = number_of_pulls(draws)
    loops = min(max(1, round(2e7 * runs / pulls)), runs)  # a third of a second
    compiled = functools.partial(compiled_loop, problem, epsilon, loops)
    simulate = functools.partial(ebr.simulate, algorithm, problem, runs)
    bare = functools.partial(bare_draws, draws, np.random.default_rng(0))
    least = 2 if (name, epsilon) == ("Setup 2", 0.001) else 1  # that one has a target of its own
    times, results = alternate([compiled, simulate, compiled, plain_loop, bare], least, 9, seconds=1.5)
    before, seconds, after, plain, bare_seconds = times
    return {
        "algorithm": "Sequential",
        "problem": f"{name}, ε = {epsilon}",
        "setup": name,
        "epsilon": epsilon,
        "runs": runs,
        "pulls": pulls,
        RATE: pulls / np.median(seconds),
        PLAIN: np.median(plain / seconds) * pulls / results[3],
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
    algorithm, problem = ROUND_BASED[label], SETUPS[name]
    draws = recorded_draws(algorithm, problem, ROUND_BASED_RUNS)
    simulate = functools.partial(ebr.simulate, algorithm, problem, ROUND_BASED_RUNS)
    bare = functools.partial(bare_draws, draws, np.random.default_rng(0))
    (seconds, bare_seconds), _ = alternate([simulate, bare], 5, 101, seconds=1.5)
    return {
        "algorithm": label,
        "problem": f"{name}, ε = {EPSILON}",
        "setup": name,
        "runs": ROUND_BASED_RUNS,
        RATE: number_of_pulls(draws) / np.median(seconds),
        BARE: np.median(seconds / bare_seconds),
    }


def peak_memory(label: str, problem: str, arguments: str) -> dict[str, Any]:
    """The most memory that a process which simulates this case has held, in MiB."""
    progress(f"memory of {label}, {problem}")
    case = f"import ebr; ebr.simulate({arguments})"
    # A child starts with its parent's peak on its account, so a bare interpreter stands in between.
    report = (
        "import resource, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", report, case]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, kilobytes elsewhere
    runs = int(arguments.rpartition(",")[2])
    return {"algorithm": label, "problem": problem, "runs": runs, PEAK: peak / unit}


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
    for row in round_based.to_dict("records"):
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
    """Bars of simulation time over bare draws, against the target."""
    table = round_based.pivot_table(index="algorithm", columns="setup", values=BARE).loc[list(ROUND_BASED)]
    height = 0.38
    for number, name in enumerate(table):
        places = np.arange(len(table)) + (number - 0.5) * height
        axes.barh(places, table[name], height, label=name)
    axes.axvline(OVERHEAD, color="black", linewidth=0.8, linestyle="--", label="target")
    axes.set_yticks(range(len(table)), table.index)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlabel="time / time of the bare draws", title=f"Round-based, {ROUND_BASED_RUNS:,} runs")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)  # clear of the bars


def progress(text: str) -> None:
    """Say what is going on, beside the table."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
