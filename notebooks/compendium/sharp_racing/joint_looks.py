"""What taking Gaussian rounds together by their joint law saves, against a union over them (notebook 09)."""

from collections.abc import Iterable
from functools import partial

import pandas as pd

from compendium.shared import lineup
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.simulation.sweep import sweep
from ebr.theory.problems import Gaussian

LOOKS = ("union", "joint")
SIGMA = 0.5  # of the rewards, whose means are the setups'


def compared(
    deadlines: Iterable[int], epsilon: float, delta: float, n_arms: int, runs: int, seed: int
) -> pd.DataFrame:
    """Pulls (means) of either way, their ratio ± one standard error, and failures: a row a setup and T.

    Rewards are Gaussian, with the setups' means.
    """
    ways: dict[str, lineup.Maker] = {looks: partial(_made, looks) for looks in LOOKS}
    points = lineup.points(deadlines, [], epsilon=epsilon, delta=delta, n_arms=n_arms, algorithms=ways)
    normal = [point._replace(problem=Gaussian(point.problem.means, SIGMA)) for point in points]
    table = sweep(normal, runs, seed)
    saved = lineup.ratio(table, *reversed(LOOKS)).set_index(["setup", "deadline"])
    pulls = table.pivot_table(index=["setup", "deadline"], columns="algorithm", values="pulls", sort=False)
    failures = table.groupby(["setup", "deadline"], sort=False)["failures"].sum()
    both = pulls[list(LOOKS)].assign(ratio=saved["ratio"], error=saved["error"], failures=failures)
    return both.rename_axis(columns=None)


def _made(looks: str, deadline: int, epsilon: float, delta: float) -> SharpElasticBatchRacing:
    return SharpElasticBatchRacing(deadline, epsilon, delta, SIGMA, "Gaussian", looks=looks)
