"""What the joint law of Gaussian rounds saves over a union, and the L of its cost bound (notebook A1)."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import pandas as pd

from compendium.shared import lineup
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.sharp_racing.sharp_bounds import sharp_problem_bound
from ebr.simulation.simulate import simulate
from ebr.simulation.sweep import sweep
from ebr.theory.problems import Gaussian

LOOKS = ("union", "joint")
SIGMA = 0.5  # of the rewards; their means are the setups'


def compared(
    deadlines: Iterable[int], epsilon: float, delta: float, n_arms: int, runs: int, seed: int
) -> pd.DataFrame:
    """Mean pulls with union and joint law, their ratio ± one standard error, and failures, by setup and T.

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


def cost_bounds(settings: Iterable[tuple[int, float, float]], runs: int, seed: int) -> pd.DataFrame:
    """Two arms of gap 1: least and most pulls, and the bound in H with max L_t and with the race's own L.

    A row for each T, ε and δ.
    """
    problem, rows = Gaussian(np.array([0.0, 1.0]), SIGMA), []
    for deadline, epsilon, delta in settings:
        race = _made("joint", deadline, epsilon, delta)
        terms = {"max L_t": float(race.log_terms(2).max()), "L": race.longest(2)}
        pulls = simulate(race, problem, runs, seed).pulls
        row = {"T": deadline, "ε": epsilon, "δ": delta, "least": pulls.min(), "most": pulls.max()} | terms
        for name, term in terms.items():
            row[f"bound with {name}"] = sharp_problem_bound(problem, epsilon, deadline, term)
        rows.append(row)
    return pd.DataFrame(rows).set_index(["T", "ε", "δ"])


def _made(looks: str, deadline: int, epsilon: float, delta: float) -> SharpElasticBatchRacing:
    return SharpElasticBatchRacing(deadline, epsilon, delta, SIGMA, "Gaussian", looks=looks)
