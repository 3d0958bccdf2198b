"""Measure the package's speed against yardsticks that are timed beside it, for the Makefile.

The yardsticks: sequential racing as a plain Python loop, one pull at a time; the same loop compiled; the bare
draws that `simulate` asks numpy for, without anything around them; and, for commands, a process that imports
numpy. A machine's clock wanders, so absolute times say little: yardstick and subject take turns, and what
counts is the ratio of neighbours. All is done by one thread and timed in CPU seconds, which leave out what
the machine does besides.

An algorithm that keeps what it has computed for its next race is timed *warm*, and once *cold*.

Prints a table and whether each target is met (a missed one is reported, it is no error), and writes
build/bench/bench.csv, bench.png and bench.svg. Parts may be named, to run no others: start,
memory, sequential, rounds, rivals, scale.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import bench_rounds
import bench_scale
import bench_sequential
import bench_start
import matplotlib.pyplot as plt
import pandas as pd
from bench_table import CASE, COLUMNS, FORMATS, Part, progress, verdicts
from compendium.shared import figures

FOLDER = Path("build/bench")
PARTS: dict[str, Callable[[], Part]] = {
    "start": bench_start.measure,
    "memory": bench_scale.measure_memory,
    "sequential": bench_sequential.measure,
    "rounds": bench_rounds.measure,
    "rivals": bench_rounds.measure_rivals,
    "scale": bench_scale.measure,
}


def main(names: Sequence[str]) -> None:
    """Measure, print, draw."""
    if unknown := set(names) - set(PARTS):
        sys.exit(f"parts must be among {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    started = time.perf_counter()
    parts = [PARTS[name]() for name in names or PARTS]
    table = pd.concat([part.rows for part in parts]).reindex(columns=COLUMNS)
    table = table.groupby(CASE, sort=False, dropna=False, as_index=False).first()[COLUMNS]
    print(table.dropna(axis="columns", how="all").to_string(index=False, formatters=FORMATS, na_rep=""))
    if targets := [target for part in parts for target in part.targets]:
        found = verdicts(targets)
        missed = (found["verdict"] == "MISSED").sum()
        print(f"\n{found.to_string(index=False)}\n\n{missed} of {len(found)} targets missed.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    table.to_csv(FOLDER / "bench.csv", index=False, float_format="%.6g")
    draw([picture for part in parts for picture in part.pictures])
    progress(f"Written: {FOLDER}/bench.csv, .png and .svg, in {time.perf_counter() - started:.0f} s.")


def draw(pictures: list[Callable[[plt.Axes], None]]) -> None:
    """Draw what the parts draw, two in a row."""
    if not pictures:
        return
    figures.style()
    rows = (len(pictures) + 1) // 2
    figure, axes = plt.subplots(rows, 2, figsize=(figures.PAGE, 3.3 * rows), squeeze=False)
    for picture, axis in zip(pictures, axes.flat, strict=False):
        picture(axis)
    for axis in axes.flat[len(pictures) :]:
        axis.set_axis_off()
    figure.savefig(FOLDER / "bench.png")
    figure.savefig(FOLDER / "bench.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1:])
