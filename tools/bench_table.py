"""The benchmark's table: its columns, the targets, and what a part of the benchmark hands back."""

import operator
import sys
from collections.abc import Callable
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes

RATE, PLAIN, COMPILED = "pulls/s", "× plain loop", "× compiled loop"
BARE, COLD, EXPONENT, PEAK = "time / bare draws", "cold", "growth exponent", "peak MiB"
NUMPY = "time / import numpy"
CASE = ["algorithm", "problem", "runs"]
FORMATS: dict[str, Callable[[float], str]] = {
    "runs": "{:.0f}".format,
    RATE: "{:.2e}".format,
    PLAIN: "{:.2f}".format,
    COMPILED: "{:.2f}".format,
    BARE: "{:.2f}".format,
    COLD: "{:.1f}".format,
    EXPONENT: "{:.2f}".format,
    PEAK: "{:.0f}".format,
    NUMPY: "{:.2f}".format,
}
COLUMNS = [*CASE[:2], *FORMATS]
COMPARE = {"≥": operator.ge, "≤": operator.le, "<": operator.lt}


class Target(NamedTuple):
    """What is to hold of a number that was measured."""

    what: str
    sign: str
    limit: float
    measured: float


class Part(NamedTuple):
    """What a part of the benchmark found: rows of the table, its targets, and how to draw it."""

    rows: pd.DataFrame
    targets: list[Target]
    pictures: tuple[Callable[[Axes], None], ...] = ()


def verdicts(targets: list[Target]) -> pd.DataFrame:
    """Each target, what was measured, and whether it is met."""
    table = [
        (
            what,
            f"{sign} {limit}",
            f"{value:.2f}",
            "met" if COMPARE[sign](value, limit) else "MISSED",
        )
        for what, sign, limit, value in targets
    ]
    return pd.DataFrame(table, columns=["what", "target", "measured", "verdict"])


def progress(text: str) -> None:
    """Say what is going on, beside the table."""
    print(text, file=sys.stderr, flush=True)
