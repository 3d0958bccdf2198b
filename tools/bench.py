"""Measure the package's speed against yardsticks that are timed beside it, for the Makefile.

    bench.py [PART …]    of start, rounds, scale

The yardsticks are the bare draws that `simulate` asks numpy for and, for commands, a process that imports
numpy. A machine's clock wanders, so yardstick and subject take turns, in CPU seconds of one thread, and what
counts is the ratio of neighbours. A missed target is reported; it is no error.
"""

import functools
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import ebr
from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray, IntArray
from ebr.models import REWARDS
from ebr.simulation import simulate
from ebr.theory.problems import Problem

POINT = {"deadline": 15, "epsilon": 0.01, "delta": 0.01}
SETUPS: dict[str, Problem] = {"Setup 1": ebr.setup_1(), "Setup 2": ebr.setup_2()}
ROUND_BASED_RUNS, LARGE_RUNS = 1000, 3
BARE = "time / bare draws"
OVERHEAD = {"the paper's": 1.5, "ours": 3.0}  # of a race in rounds, × its bare draws, at most
LARGEST_EXPONENTS = {"n": 1.1, "T": 1.0}  # of a race's time
ARMS = (10_000, 100_000, 1_000_000)  # with fewer, calling numpy costs more than computing
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
# A command, the number of events in its journal, and the most time that it may take.
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
        numpy, *times = alternate(actions, 9, of_children)
    for (words, _, limit), seconds in zip(COMMANDS, times, strict=True):
        yield Row(
            f"python {' '.join(words[:3])}: time / import numpy", "≤", limit, np.median(seconds / numpy)
        )


def of_children() -> float:
    """The CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
            _, ratio = measured(algorithm, problem, ROUND_BASED_RUNS, 5)
            yield Row(f"{label}, {name}: {BARE}", "≤", limit, ratio)


def scale() -> Iterator[Row]:
    """Time races of up to a million arms on Setup 1: against the draws, growth in n and T, and memory."""
    for label, (kind, options, limit) in LARGE.items():
        large = {n: (kind(**POINT, **options), n) for n in ARMS}
        long = {t: (kind(t, 0.01, 0.01, **options), ARMS[1]) for t in DEADLINES}
        for over, cases in (("n", large), ("T", long)):
            found = [measured(race, ebr.setup_1(n), LARGE_RUNS, 3) for race, n in cases.values()]
            grown = exponent(cases, (seconds for seconds, _ in found))
            yield Row(f"{label}: exponent in {over}", "≤", LARGEST_EXPONENTS[over], grown)
            if over == "n":
                yield Row(f"{label}, n = {ARMS[-1]:,}: {BARE}", "≤", limit, found[-1][1])
        case = f"ebr.{large[ARMS[-1]][0]!r}, ebr.setup_1({ARMS[-1]}), {LARGE_RUNS}"
        yield Row(f"{label}, n = {ARMS[-1]:,}: peak MiB", "≤", MEMORY_LIMIT, peak_memory(case))


def measured(algorithm: Algorithm, problem: Problem, runs: int, least: int) -> tuple[float, float]:
    """The seconds of a simulation, and their ratio to its bare draws'."""
    draws: list[tuple[FloatArray, IntArray]] = []  # the arms' means, and how many pulls of them
    original, generator = simulate.draw_sums, np.random.default_rng(0)

    @functools.wraps(original)  # its attributes as well: simulate asks for the dispatch
    def spy(problem: Problem, means: FloatArray, pulls: IntArray, generator: np.random.Generator) -> Any:
        draws.append((means, pulls.copy(order="K")))  # in the memory order that it makes them
        return original(problem, means, pulls, generator)

    def bare_draws() -> None:
        for means, pulls in draws:
            original(problem, means, pulls, generator)

    race = functools.partial(ebr.simulate, algorithm, problem, runs)
    with mock.patch.object(simulate, "draw_sums", spy):
        race()
    seconds, bare = alternate([race, bare_draws], least)
    return float(np.median(seconds)), float(np.median(seconds / bare))


def alternate(
    actions: list[Callable[[], Any]], least: int, clock: Callable[[], float] = time.process_time
) -> FloatArray:
    """Call functions in turn, `least` times or for 1.5 s: the seconds of each call (functions × turns)."""
    turns: list[list[float]] = []
    started = clock()
    while len(turns) < least or (len(turns) < 100 and clock() - started < 1.5):
        turns.append([])
        for action in actions:
            before = clock()
            action()
            turns[-1].append(clock() - before)
    return np.transpose(turns)


def peak_memory(arguments: str) -> float:
    """The peak memory of a process that simulates this case, in MiB."""
    case = f"import ebr; ebr.simulate({arguments})"
    # A child's peak starts from its parent's memory, so a bare interpreter starts it.
    report = (
        "import resource, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    peak = int(subprocess.check_output([sys.executable, "-c", report, case]))
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, kilobytes elsewhere


def exponent(sizes: Iterable[float], seconds: Iterable[float]) -> float:
    """The power of the size with which time grows."""
    return float(np.polyfit(np.log(list(sizes)), np.log(list(seconds)), 1)[0])


PARTS: dict[str, Callable[[], Iterator[Row]]] = {part.__name__: part for part in (start, rounds, scale)}


def main(names: Sequence[str]) -> None:
    """Measure and print."""
    if unknown := set(names) - set(PARTS):
        sys.exit(f"parts must be among {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    for name in names or PARTS:
        for row in PARTS[name]():
            print(row, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
