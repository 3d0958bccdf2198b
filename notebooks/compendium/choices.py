"""What the paper leaves open (A1 to A7): the alternatives to the defaults, on Figure 2's points."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from compendium import lineup
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.elimination import AggressiveElimination, DeltaElimination
from ebr.algorithms.passive import Passive
from ebr.algorithms.sequential import SequentialRacing
from ebr.simulation.sweep import Point

__all__ = ["ALTERNATIVES", "factor", "points", "replaced", "thinned"]

KEYS = ["sweep", "setup", "algorithm", "deadline", "epsilon"]
# Each alternative, by the curves that it replaces (made from T, ε and δ).
ALTERNATIVES: dict[str, dict[str, lineup.Maker]] = {
    "A1a": {"EBR": lambda t, e, d: ElasticBatchRacing(t, e, d, schedule="printed")},
    "A1b": {
        "EBR": lambda t, e, d: ElasticBatchRacing(t, e, d, sigma=1.0),
        "passive": lambda t, e, d: Passive(e, d, sigma=1.0),
    },
    "A2": {"EBR": lambda t, e, d: ElasticBatchRacing(t, e, d, lone_survivor="pulled again")},
    "A3": {"EBR": lambda t, e, d: ElasticBatchRacing(t, e, d, returned_from="after it")},
    "A4": {"sequential": lambda t, e, d: SequentialRacing(e, d, end="lone survivor")},
    "A5": {"kδER": lambda t, e, d: DeltaElimination(t, e, d, constants="released")},
    "A6a": {"AE": lambda t, e, d: AggressiveElimination(t, e, d, rounding="down")},
}


def points(
    deadlines: Sequence[int], epsilons: Sequence[float], delta: float = 0.01, **settings: Any
) -> list[Point]:
    """Figure 2's points under each alternative, with the label "choice".

    A6b hands AE the true gap Δ_[1], which differs from setup to setup, so that ε plays no part. A4, a race
    that ignores ε but for the slack ε/n and is dear, is run at every sixth ε. Further settings are those of
    `lineup.points`.
    """
    made = []
    for choice, algorithms in ALTERNATIVES.items():
        some = sorted(epsilons)[::6] if choice == "A4" else epsilons
        for point in lineup.points(deadlines, some, delta=delta, algorithms=algorithms, **settings):
            made.append(point._replace(labels=point.labels | {"choice": choice}))
    told_apart = lineup.points(
        deadlines, epsilons, delta=delta, algorithms={"AE": AggressiveElimination}, **settings
    )
    for point in told_apart:
        told = AggressiveElimination(point.labels["deadline"], float(point.problem.gaps.min()), delta)
        made.append(Point(point.labels | {"choice": "A6b"}, told, point.problem))
    return sorted(made, key=lambda point: point.labels["choice"] != "A4")  # the costliest first


def replaced(default: pd.DataFrame, alternative: pd.DataFrame) -> pd.DataFrame:
    """The default table with an alternative's curves in place of its own, at the points that both have."""
    places = ["sweep", "setup", "deadline", "epsilon"]
    common = default.merge(alternative[places].drop_duplicates(), on=places)
    kept = common[~common["algorithm"].isin(alternative["algorithm"])]
    return pd.concat([kept, alternative[default.columns]], ignore_index=True)


def thinned(default: pd.DataFrame) -> pd.DataFrame:
    """A7: every second T and every second ε of the grids, from the first on."""
    by_deadline = (default["sweep"] == "T") & default["deadline"].isin(
        _every_second(default, "T", "deadline")
    )
    by_epsilon = (default["sweep"] == "ε") & default["epsilon"].isin(_every_second(default, "ε", "epsilon"))
    return default[by_deadline | by_epsilon].reset_index(drop=True)


def _every_second(table: pd.DataFrame, sweep: str, column: str) -> list[float]:
    return sorted(table.loc[table["sweep"] == sweep, column].unique())[::2]


def factor(default: pd.DataFrame, alternative: pd.DataFrame, algorithm: str) -> dict[str, float]:
    """The least and the largest factor on an algorithm's pulls, by setup."""
    both = default.merge(alternative, on=KEYS, suffixes=("", "_other"))
    both = both[both["algorithm"] == algorithm]
    factors = (both["pulls_other"] / both["pulls"]).groupby(both["setup"]).agg(["min", "max"])
    return {f"{setup} {end}": factors.loc[setup, end] for setup in factors.index for end in ("min", "max")}
