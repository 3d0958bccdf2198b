"""Races of up to a million arms: time, its growth with n and T, and memory; and how commands start."""

import functools
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import bench_yardsticks as yardsticks
import numpy as np
import pandas as pd
from bench_races import DEADLINE, DELTA, EPSILON
from bench_yardsticks import BARE, EXPONENT, NUMPY, PEAK, RATE, Part, Target, progress

import ebr
from ebr.algorithms.game import Algorithm

RUNS = 3
ARMS = (1_000, 10_000, 100_000, 1_000_000)
DEADLINES = (2, 5, 15, 50, 150)
ARMS_OF_DEADLINES = 100_000
# With a thousand arms the calls cost more than the numbers; the slope is taken over larger sizes.
FITTED_FROM = 10_000
LARGEST_EXPONENT = 1.1  # in n: linear, but for noise
LARGEST_EXPONENT_IN_T = 1.0  # at most linear
MEMORY_LIMIT = 1024  # MiB
# Raced on a million arms: the algorithm, its k, and the most time that it may take, × the bare draws.
LARGE: dict[str, tuple[Any, dict[str, int], float]] = {
    "EBR": (ebr.ElasticBatchRacing, {}, 2.0),
    "EBR, k = 5": (ebr.ElasticBatchRacing, {"k": 5}, 2.0),
    "sharp": (ebr.SharpElasticBatchRacing, {}, 2.0),
    "sharp, k = 5": (ebr.SharpElasticBatchRacing, {"k": 5}, 2.5),
    "pausing": (ebr.PausingElasticBatchRacing, {}, 2.5),
}
ELASTIC = "ebr.ElasticBatchRacing(15, 0.01, 0.01), ebr.setup_1"
MEMORY = [
    ("Sequential", "Setup 2, ε = 0.001", "ebr.SequentialRacing(0.001, 0.01), ebr.setup_2()", 100),
    ("EBR, T = 15", "Setup 1, ε = 0.01", f"{ELASTIC}()", 1000),
    ("EBR, T = 15", "Setup 1, ε = 0.01, n = 100,000", f"{ELASTIC}(100_000)", 100),
]

YARDSTICK = ("-c", "import numpy")
ROUND = {"A": (78, 51), "B": (78, 70), "C": (78, 66)}  # of the first round: count and sum
TELL = ("tell", "trial.jsonl", *(f"{arm}={ones}/{count}" for arm, (count, ones) in ROUND.items()))
# What is typed, how many events are in the journal before, and the most time that it may take.
COMMANDS: dict[str, tuple[tuple[str, ...], int, float]] = {
    'python -c "import ebr"': (("-c", "import ebr"), 0, 1.2),
    "python -m ebr --help": (("-m", "ebr", "--help"), 0, 0.5),
    "python -m ebr ask": (("-m", "ebr", "ask", "trial.jsonl"), 3, 2.5),
    "python -m ebr tell": (("-m", "ebr", *TELL), 2, 2.5),
    "python -m ebr status": (("-m", "ebr", "status", "trial.jsonl"), 3, 2.5),
}
TURNS = 9


def scale() -> Part:
    """Time all large races on Setup 1; one row each for the million arms, and one for growth in T."""
    pairs = sorted({*((n, DEADLINE) for n in ARMS), *((ARMS_OF_DEADLINES, t) for t in DEADLINES)})
    points = pd.DataFrame([point(label, n, t) for label in LARGE for n, t in pairs])
    rows, targets = [], []
    for label in LARGE:
        largest, growth = rows_of(label, points[points["algorithm"] == label])
        of_million = ", ".join((largest["algorithm"], largest["problem"]))
        of_growth = ", ".join((growth["algorithm"], growth["problem"]))
        rows += [largest, growth]
        targets += [
            Target(f"{of_million}: {BARE}", "≤", LARGE[label][2], largest[BARE]),
            Target(f"{of_million}: {EXPONENT} in n", "≤", LARGEST_EXPONENT, largest[EXPONENT]),
            Target(f"{of_million}: {PEAK}", "<", MEMORY_LIMIT, largest[PEAK]),
            Target(f"{of_growth}: {EXPONENT}", "≤", LARGEST_EXPONENT_IN_T, growth[EXPONENT]),
        ]
    return Part(pd.DataFrame(rows), targets)


def made(label: str, deadline: int) -> Algorithm:
    """A large race's algorithm."""
    algorithm, options, _ = LARGE[label]
    return algorithm(deadline, EPSILON, DELTA, **options)


def point(label: str, n: int, deadline: int) -> dict[str, Any]:
    """Time a race, in turn with its bare draws."""
    progress(f"{label}, Setup 1, n = {n:,}, T = {deadline}")
    found = yardsticks.measured(made(label, deadline), ebr.setup_1(n), RUNS, 3, 51)
    return {"algorithm": label, "n": n, "T": deadline, **found}


def rows_of(label: str, points: pd.DataFrame) -> list[dict[str, Any]]:
    """The race on a million arms with its growth in n and its memory, and the growth in T."""
    progress(f"memory of {label}, Setup 1, n = {ARMS[-1]:,}")
    largest = points[points["n"] == ARMS[-1]].iloc[0]
    by_n = points[(points["T"] == DEADLINE) & (points["n"] >= FITTED_FROM)]
    return [
        {
            "algorithm": f"{label}, T = {DEADLINE}",
            "problem": f"Setup 1, n = {ARMS[-1]:,}",
            "runs": RUNS,
            **largest[[RATE, BARE]],
            EXPONENT: slope(by_n, "n"),
            PEAK: yardsticks.peak_memory(f"ebr.{made(label, DEADLINE)!r}, ebr.setup_1({ARMS[-1]}), {RUNS}"),
        },
        {
            "algorithm": f"{label}, T = {DEADLINES[0]} … {DEADLINES[-1]}",
            "problem": f"Setup 1, n = {ARMS_OF_DEADLINES:,}, growth in T",
            "runs": RUNS,
            EXPONENT: slope(points[points["n"] == ARMS_OF_DEADLINES], "T"),
        },
    ]


def slope(points: pd.DataFrame, over: str) -> float:
    """The exponent with which time grows."""
    return float(np.polyfit(np.log(points[over]), np.log(points["seconds"]), 1)[0])


def memory() -> Part:
    """The peak memory of the other cases."""
    rows, targets = [], []
    for label, problem, arguments, runs in MEMORY:
        progress(f"memory of {label}, {problem}")
        peak = yardsticks.peak_memory(f"{arguments}, {runs}")
        rows.append({"algorithm": label, "problem": problem, "runs": runs, PEAK: peak})
        targets.append(Target(f"{label}, {problem}: {PEAK}", "<", MEMORY_LIMIT, peak))
    return Part(pd.DataFrame(rows), targets)


def start() -> Part:
    """Time how every command starts, in a process of its own, in turn with one that imports numpy."""
    progress(f"starting {len(COMMANDS)} commands, {TURNS} times")
    with tempfile.TemporaryDirectory() as folder:
        lines = journal(Path(folder))
        commands = [(YARDSTICK, 0, 1.0), *COMMANDS.values()]
        actions = [functools.partial(run, folder, words, lines[:events]) for words, events, _ in commands]
        (numpy, *times), _ = yardsticks.alternate(actions, TURNS, TURNS, 0.0, clock=of_children)
    rows, targets = [], []
    for (name, (_, _, limit)), seconds in zip(COMMANDS.items(), times, strict=True):
        ratio = float(np.median(seconds / numpy))
        rows.append({"algorithm": "start", "problem": name, NUMPY: ratio})
        targets.append(Target(f"{name}: {NUMPY}", "≤", limit, ratio))
    return Part(pd.DataFrame(rows), targets)


def journal(folder: Path) -> list[str]:
    """The lines of a small race: its start, its first round asked for, and told."""
    path = folder / "trial.jsonl"
    algorithm = ebr.SharpElasticBatchRacing(deadline=6, epsilon=0.05, delta=0.05)
    with ebr.Race(algorithm, list(ROUND), path) as race:
        race.ask()
        race.tell(ROUND)
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def run(folder: str, words: tuple[str, ...], lines: list[str]) -> None:
    """Run a command beside a journal of these lines."""
    Path(folder, "trial.jsonl").write_text("".join(lines), encoding="utf-8")
    subprocess.run([sys.executable, *words], cwd=folder, check=True, capture_output=True)


def of_children() -> float:
    """The CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
