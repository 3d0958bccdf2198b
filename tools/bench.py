"""Measure the package's speed against yardsticks that are timed beside it, for the Makefile.

    bench.py [PART …]    of start, sequential, rounds, scale

The yardsticks: sequential racing as a compiled loop, one pull at a time; the bare draws that `simulate` asks
numpy for, without anything around them; and, for commands, a process that imports numpy. A machine's clock
wanders, so absolute times say little: yardstick and subject take turns, and what counts is the ratio of
neighbours. All is done by one thread and timed in CPU seconds. A missed target is reported, it is no error.
"""

import ast
import functools
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bench_yardsticks as yardsticks
import numpy as np
import papermill

import ebr
from ebr.algorithms.game import Algorithm
from ebr.models import REWARDS
from ebr.theory.problems import Problem

POINT = {"deadline": 15, "epsilon": 0.01, "delta": 0.01}
SETUPS: dict[str, Problem] = {"Setup 1": ebr.setup_1(), "Setup 2": ebr.setup_2()}
SEQUENTIAL_RUNS, ROUND_BASED_RUNS, LARGE_RUNS = 100, 1000, 3
BARE = "time / bare draws"
OVERHEAD = {"the paper's": 1.5, "ours": 3.0}  # of a race in rounds, × its bare draws, at most
# The largest power of a race's time: of a sequential one in its pulls, of others in n and in T.
LARGEST_EXPONENTS = {"pulls": 0.6, "n": 1.1, "T": 1.0}
ARMS = (10_000, 100_000, 1_000_000)  # with fewer, the calls cost more than the numbers
DEADLINES = (2, 5, 15, 50, 150)
MEMORY_LIMIT = 1024  # MiB
# Raced on a million arms: the algorithm, its k, and the most time that it may take, × the bare draws.
LARGE: dict[str, tuple[Any, dict[str, int], float]] = {
    "EBR": (ebr.ElasticBatchRacing, {}, 2.0),
    "EBR, k = 5": (ebr.ElasticBatchRacing, {"k": 5}, 2.0),
    "sharp": (ebr.SharpElasticBatchRacing, {}, 2.0),
    "sharp, k = 5": (ebr.SharpElasticBatchRacing, {"k": 5}, 2.5),
    "pausing": (ebr.PausingElasticBatchRacing, {}, 2.5),
}
ROUND = {"A": (78, 51), "B": (78, 70), "C": (78, 66)}  # the first round of a journal: count and sum
TELL = ("tell", "trial.jsonl", *(f"{arm}={ones}/{count}" for arm, (count, ones) in ROUND.items()))
# What is typed, how many events are in the journal before, and the most time that it may take.
COMMANDS: list[tuple[tuple[str, ...], int, float]] = [
    (("-c", "import ebr"), 0, 1.2),
    (("-m", "ebr", "--help"), 0, 0.5),
    (("-m", "ebr", "ask", "trial.jsonl"), 3, 2.5),
    (("-m", "ebr", *TELL), 2, 2.5),
    (("-m", "ebr", "status", "trial.jsonl"), 3, 2.5),
]


class Row(NamedTuple):
    """A target: what is measured, the sign, the limit, and the number found."""

    what: str
    sign: str
    limit: float
    measured: float

    def __str__(self) -> str:
        met = self.measured <= self.limit if self.sign == "≤" else self.measured >= self.limit
        target = f"{self.sign} {self.limit:g}"
        return f"{self.what:<64}{self.measured:>10.2f}{target:>10}  {'met' if met else 'MISSED'}"


def start() -> Iterator[Row]:
    """Time how every command starts, in a process of its own, in turn with one that imports numpy."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder, "trial.jsonl")
        with ebr.Race(ebr.SharpElasticBatchRacing(6, 0.05, 0.05), list(ROUND), journal) as race:
            race.ask()
            race.tell(ROUND)
        lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)

        def run(words: tuple[str, ...], events: int) -> None:
            journal.write_text("".join(lines[:events]), encoding="utf-8")
            subprocess.run([sys.executable, *words], cwd=folder, check=True, capture_output=True)

        commands = [(("-c", "import numpy"), 0), *((words, events) for words, events, _ in COMMANDS)]
        actions = [functools.partial(run, *command) for command in commands]
        (numpy, *times), _ = yardsticks.alternate(actions, 9, of_children)
    for (words, _, limit), seconds in zip(COMMANDS, times, strict=True):
        yield Row(
            f"python {' '.join(words[:3])}: time / import numpy", "≤", limit, np.median(seconds / numpy)
        )


def of_children() -> float:
    """The CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def sequential() -> Iterator[Row]:
    """Time the sequential oracle, which asks ahead, at every ε of Figure 2, beside the compiled loop."""
    notebook = papermill.inspect_notebook("notebooks/07-simulations.ipynb")
    grid = sorted(ast.literal_eval(notebook["epsilons"]["default"]), reverse=True)
    yardsticks.compiled_loop(SETUPS["Setup 1"], grid[0], 0.01, 1)  # compiles
    spent, compiled = 0.0, 0.0
    for name, problem in SETUPS.items():
        small: dict[int, float] = {}  # seconds by pulls, for ε ≤ 0.1
        for epsilon in grid:
            pulls, seconds, ratio = point(problem, epsilon)
            spent, compiled = spent + seconds, compiled + ratio * seconds
            if epsilon <= 0.1:
                small[pulls] = seconds
            if (name, epsilon) == ("Setup 2", 0.001):
                yield Row(f"Sequential, {name}, ε = {epsilon}: compiled loop / time", "≥", 10, ratio)
        yield Row(
            f"Sequential, {name}, ε ≤ 0.1: exponent",
            "≤",
            LARGEST_EXPONENTS["pulls"],
            exponent(small, small.values()),
        )
    yield Row("Sequential, all points together: compiled loop / time", "≥", 5, compiled / spent)


def point(problem: Problem, epsilon: float) -> tuple[int, float, float]:
    """The oracle's pulls and seconds at one ε, and how many times longer the loop takes for these pulls."""
    algorithm = ebr.SequentialRacing(epsilon, POINT["delta"])
    pulls, simulate, _ = yardsticks.beside_draws(algorithm, problem, SEQUENTIAL_RUNS)
    loops = min(max(1, round(2e7 * SEQUENTIAL_RUNS / pulls)), SEQUENTIAL_RUNS)  # a third of a second
    loop = functools.partial(yardsticks.compiled_loop, problem, epsilon, POINT["delta"], loops)
    (before, seconds, after), (looped, *_) = yardsticks.alternate([loop, simulate, loop], 2)
    ratio = np.median((before + after) / seconds) * pulls / (2 * looped)
    return pulls, float(np.median(seconds)), float(ratio)


def rounds() -> Iterator[Row]:
    """Time every round-based algorithm on both setups, against the bare draws of its rewards."""
    cases: dict[str, Algorithm] = {
        **{f"EBR, T = {t}": ebr.ElasticBatchRacing(t, 0.01, 0.01) for t in (1, 15, 50)},
        "kδER": ebr.DeltaElimination(**POINT),
        "AE": ebr.AggressiveElimination(**POINT),
        "Passive": ebr.Passive(0.01, 0.01),
        **{f"sharp, {model}": ebr.SharpElasticBatchRacing(**POINT, rewards=model) for model in REWARDS},
        **{f"pausing, {model}": ebr.PausingElasticBatchRacing(**POINT, rewards=model) for model in REWARDS},
        "staked, Bernoulli": ebr.StakedElasticBatchRacing(**POINT, rewards="Bernoulli"),
    }
    for label, algorithm in cases.items():
        limit = OVERHEAD["ours" if label.startswith(("sharp", "pausing", "staked")) else "the paper's"]
        for name, setup in SETUPS.items():
            problem = ebr.Gaussian(setup.means, 0.5) if "Gaussian" in label else setup
            _, ratio = yardsticks.measured(algorithm, problem, ROUND_BASED_RUNS, 5)
            yield Row(f"{label}, {name}: {BARE}", "≤", limit, ratio)


def scale() -> Iterator[Row]:
    """Time races of up to a million arms on Setup 1: against the draws, growth in n and T, and memory."""
    for label, (kind, options, limit) in LARGE.items():
        large = {n: (kind(**POINT, **options), n) for n in ARMS}
        long = {t: (kind(t, 0.01, 0.01, **options), ARMS[1]) for t in DEADLINES}
        for over, cases in (("n", large), ("T", long)):
            found = [yardsticks.measured(race, ebr.setup_1(n), LARGE_RUNS, 3) for race, n in cases.values()]
            grown = exponent(cases, (seconds for seconds, _ in found))
            yield Row(f"{label}: exponent in {over}", "≤", LARGEST_EXPONENTS[over], grown)
            if over == "n":
                yield Row(f"{label}, n = {ARMS[-1]:,}: {BARE}", "≤", limit, found[-1][1])
        case = f"ebr.{large[ARMS[-1]][0]!r}, ebr.setup_1({ARMS[-1]}), {LARGE_RUNS}"
        yield Row(f"{label}, n = {ARMS[-1]:,}: peak MiB", "≤", MEMORY_LIMIT, yardsticks.peak_memory(case))


def exponent(sizes: Iterable[float], seconds: Iterable[float]) -> float:
    """The power of the size with which time grows."""
    return float(np.polyfit(np.log(list(sizes)), np.log(list(seconds)), 1)[0])


PARTS: dict[str, Callable[[], Iterator[Row]]] = {
    part.__name__: part for part in (start, sequential, rounds, scale)
}


def main(names: Sequence[str]) -> None:
    """Measure and print."""
    if unknown := set(names) - set(PARTS):
        sys.exit(f"parts must be among {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    for name in names or PARTS:
        for row in PARTS[name]():
            print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
