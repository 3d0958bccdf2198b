"""How long a command takes to start, in processes of their own, against one that imports numpy."""

import functools
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from bench_table import NUMPY, Part, Target, progress
from bench_yardsticks import alternate

import ebr

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


def measure() -> Part:
    """Time every command, in turn with the yardstick."""
    progress(f"starting {len(COMMANDS)} commands, {TURNS} times")
    with tempfile.TemporaryDirectory() as folder:
        lines = journal(Path(folder))
        actions = [
            functools.partial(run, folder, words, lines[:events]) for words, events, _ in COMMANDS.values()
        ]
        yardstick = functools.partial(run, folder, YARDSTICK, [])
        (numpy, *times), _ = alternate([yardstick, *actions], TURNS, TURNS, 0.0, clock=of_children)
    ratios = [float(np.median(seconds / numpy)) for seconds in times]
    rows = [
        {"algorithm": "start", "problem": name, NUMPY: ratio}
        for name, ratio in zip(COMMANDS, ratios, strict=True)
    ]
    targets = [
        Target(f"{name}: {NUMPY}", "≤", limit, ratio)
        for (name, (_, _, limit)), ratio in zip(COMMANDS.items(), ratios, strict=True)
    ]
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
