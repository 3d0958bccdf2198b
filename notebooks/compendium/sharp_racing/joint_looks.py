"""What taking Gaussian rounds together by their joint law saves, against a union over them (notebook 09)."""

from collections.abc import Iterable

import pandas as pd

from compendium.shared.lineup import SETUPS, ratio
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.simulation.sweep import Point, sweep
from ebr.theory.problems import Gaussian

LOOKS = ("union", "joint")
SIGMA = 0.5  # of the rewards, whose means are the setups'


def points(deadlines: Iterable[int], epsilon: float, delta: float, n_arms: int) -> list[Point]:
    """Sharp EBR with either way of looking, on both setups' means with Gaussian rewards, along T."""
    return [
        Point(
            {"sweep": "T", "setup": setup, "algorithm": looks, "deadline": deadline, "epsilon": epsilon},
            SharpElasticBatchRacing(deadline, epsilon, delta, SIGMA, "Gaussian", looks=looks),
            Gaussian(problem(n_arms).means, SIGMA),
        )
        for setup, problem in SETUPS.items()
        for deadline in deadlines
        for looks in LOOKS
    ]


def compared(
    deadlines: Iterable[int], epsilon: float, delta: float, n_arms: int, runs: int, seed: int
) -> pd.DataFrame:
    """Pulls (means) of either way, their ratio ± one standard error, and failures: a row a setup and T."""
    table = sweep(points(deadlines, epsilon, delta, n_arms), runs, seed)
    saved = ratio(table, *reversed(LOOKS)).set_index(["setup", "deadline"])
    pulls = table.pivot_table(index=["setup", "deadline"], columns="algorithm", values="pulls", sort=False)
    failures = table.groupby(["setup", "deadline"], sort=False)["failures"].sum()
    both = pulls[list(LOOKS)].assign(ratio=saved["ratio"], error=saved["error"], failures=failures)
    return both.rename_axis(columns=None)
