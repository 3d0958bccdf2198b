"""The tables of a race: what came of each round, and what is known of each arm."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ebr.algorithms.game import Algorithm
from ebr.live.rewards import Support

if TYPE_CHECKING:  # slow to import, and a race is asked and told without tables
    import pandas as pd

__all__ = ["Row", "bounded", "history_table", "intervals_table"]

# Of a round and an arm: both, its pulls and their sum as reported and as counted; all pulls so far, and mean.
Row = tuple[int, str, int, float, float, int, float]


def history_table(rows: list[Row], rounded: bool) -> "pd.DataFrame":
    """A row a round and arm; what was reported has a column of its own where rewards are rounded."""
    import pandas as pd

    kinds = {"pulls": int, "reported": float, "sum": float, "total": int, "mean": float}
    frame = pd.DataFrame(rows, columns=["round", "arm", *kinds])
    frame = frame.astype({"round": int, **kinds})  # kinds of their own, also where there are no rows
    return frame if rounded else frame.drop(columns="reported")


def intervals_table(so_far: Mapping[str, tuple[int, float]]) -> "pd.DataFrame":
    """A row an arm: its pulls so far, and their mean if there are any."""
    import pandas as pd

    pulls, sums = zip(*so_far.values(), strict=True)
    frame = pd.DataFrame({"pulls": pulls}, index=pd.Index(list(so_far), name="arm"))
    frame["mean"] = np.array(sums) / frame["pulls"].where(frame["pulls"] > 0)
    return frame


def bounded(
    frame: "pd.DataFrame", pulls: str, algorithm: Algorithm, arms: Collection[str], support: Support
) -> "pd.DataFrame":
    """Add the confidence bounds of means of so many pulls, within the rewards' support."""
    counts = np.maximum(frame[pulls].to_numpy(), 1)  # an arm without any has no mean, either
    half_width = algorithm.deviation(counts, len(arms))
    low, high = support or (None, None)
    lower, upper = frame["mean"] - half_width, frame["mean"] + half_width
    return frame.assign(lower=lower.clip(lower=low), upper=upper.clip(upper=high))
