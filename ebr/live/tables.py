"""The tables of a race: what came of each round, and what is known of each arm."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.theory.intervals import Simultaneous

if TYPE_CHECKING:  # slow to import, and a race is asked and told without tables
    import pandas as pd

# Of a round and an arm: both, its pulls and their sum as reported and as counted; all pulls so far, and mean.
Row = tuple[int, str, int, float, float, int, float]


def history_table(rows: list[Row], rounded: bool) -> "pd.DataFrame":
    """A row a round and arm; what was reported has a column of its own where rewards are rounded."""
    import pandas as pd

    kinds = {"pulls": int, "reported": float, "sum": float, "total": int, "mean": float}
    frame = pd.DataFrame(rows, columns=["round", "arm", *kinds])
    frame = frame.astype({"round": int, **kinds})  # kinds of their own, also where there are no rows
    return frame if rounded else frame.drop(columns="reported")


class Known(NamedTuple):
    """What is known of each arm, an entry an arm: pulls so far, their mean if there are any, its bounds."""

    pulls: IntArray
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray


def known(so_far: Mapping[str, tuple[int, float]], intervals: Simultaneous | None) -> Known:
    """From each arm's pulls so far and their sum."""
    counts, sums = zip(*so_far.values(), strict=True)
    pulls, mean = np.array(counts, dtype=np.int64), np.full(len(counts), np.nan)
    np.divide(np.array(sums, dtype=np.float64), pulls, out=mean, where=pulls > 0)
    return Known(pulls, mean, *_bounds(mean, pulls, intervals))


def bounded(frame: "pd.DataFrame", pulls: str, intervals: Simultaneous | None) -> "pd.DataFrame":
    """Add the confidence bounds of means of so many pulls; NaN where there are none."""
    lower, upper = _bounds(frame["mean"].to_numpy(), frame[pulls].to_numpy(), intervals)
    return frame.assign(lower=lower, upper=upper)


def _bounds(
    mean: FloatArray, pulls: IntArray, intervals: Simultaneous | None
) -> tuple[FloatArray, FloatArray]:
    if intervals is None:
        return np.full(len(mean), np.nan), np.full(len(mean), np.nan)
    return intervals.around(mean, pulls)
