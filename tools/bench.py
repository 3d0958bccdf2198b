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

import operator
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import bench_races
import bench_scale
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from bench_yardsticks import CASE, COLD, COLUMNS, PEAK, RATE, Part, Target, progress
from compendium.shared import figures

FOLDER = Path("build/bench")
PARTS: dict[str, Callable[[], Part]] = {
    "start": bench_scale.start,
    "memory": bench_scale.memory,
    "sequential": bench_races.sequential,
    "rounds": bench_races.rounds,
    "rivals": bench_races.rivals,
    "scale": bench_scale.scale,
}
DIGITS = dict.fromkeys(COLUMNS[2:], ".2f") | {"runs": ".0f", RATE: ".2e", COLD: ".1f", PEAK: ".0f"}
COMPARE = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}


def main(names: Sequence[str]) -> None:
    """Measure, print, draw."""
    if unknown := set(names) - set(PARTS):
        sys.exit(f"parts must be among {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    started = time.perf_counter()
    parts = [PARTS[name]() for name in names or PARTS]
    table = pd.concat([part.rows for part in parts]).reindex(columns=COLUMNS)
    table = table.groupby(CASE, sort=False, dropna=False, as_index=False).first()[COLUMNS]
    formats = {name: f"{{:{digits}}}".format for name, digits in DIGITS.items()}
    print(table.dropna(axis="columns", how="all").to_string(index=False, formatters=formats, na_rep=""))
    FOLDER.mkdir(parents=True, exist_ok=True)
    table.to_csv(FOLDER / "bench.csv", index=False, float_format="%.6g")
    if targets := [target for part in parts for target in part.targets]:
        found = verdicts(targets)
        missed = (found["verdict"] == "MISSED").sum()
        print(f"\n{found.to_string(index=False)}\n\n{missed} of {len(found)} targets missed.")
        draw(targets)
    progress(f"Written: {FOLDER}/bench.csv, .png and .svg, in {time.perf_counter() - started:.0f} s.")


def verdicts(targets: list[Target]) -> pd.DataFrame:
    """Each target, what was measured, and whether it is met."""
    table = [
        (what, f"{sign} {limit}", f"{value:.2f}", "met" if COMPARE[sign](value, limit) else "MISSED")
        for what, sign, limit, value in targets
    ]
    return pd.DataFrame(table, columns=["what", "target", "measured", "verdict"])


def draw(targets: list[Target]) -> None:
    """Draw how far each number is from its limit; targets to the right of the line are missed."""
    figures.style()
    shares = [
        target.limit / target.measured if target.sign == "≥" else target.measured / target.limit
        for target in targets
    ]
    figure, axes = plt.subplots(figsize=(figures.PAGE, 1 + 0.17 * len(targets)))
    axes.plot(shares, np.arange(len(shares)), "o")
    axes.axvline(1, color="black", linewidth=0.8, linestyle="--")
    axes.set_yticks(range(len(shares)), [target.what for target in targets])
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="measured / limit (for ≥: limit / measured)")
    figure.savefig(FOLDER / "bench.png")
    figure.savefig(FOLDER / "bench.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1:])
