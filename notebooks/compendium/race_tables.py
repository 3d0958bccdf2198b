"""Tables of races: EBR's pulls, failures and intervals beside the bounds."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from compendium.adversary import audit
from compendium.lineup import MakeElastic
from compendium.problem_sets import Instance
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.theory import bounds

__all__ = ["measure"]


def measure(
    settings: Iterable[Instance], runs: int, seed: int, make: MakeElastic = ElasticBatchRacing
) -> pd.DataFrame:
    """Race on each problem and set its pulls beside every bound.

    Columns: kind, n_arms, deadline, epsilon, delta, runs, pulls (mean) and most; failures of the
    recommendation (wrong), of the event E (missed), of elimination by the end of round γ_i (late), of
    Theorems 1 and 2, corrected (over_…); the bounds of Theorems 1 to 3; complexity, H(ν).
    """
    rows = []
    for kind, problem, epsilon, deadline, delta in settings:
        race = audit(make(deadline, epsilon, delta, problem.sigma), problem, runs, seed)
        place = (problem, epsilon, deadline, delta)
        pulls = race.arm_pulls.sum(axis=1)
        bound = bounds.partition_upper_bound(*place)
        gamma = problem.partition(epsilon, deadline)
        second, third = bounds.hardest_upper_bound(*place), bounds.problem_upper_bound(*place)
        rows.append(
            {
                "kind": kind,
                "n_arms": problem.n_arms,
                "deadline": deadline,
                "epsilon": epsilon,
                "delta": delta,
                "runs": runs,
                "pulls": pulls.mean(),
                "most": pulls.max(),
                "wrong": int((~problem.is_good(race.arm, epsilon)).sum()),
                "missed": int((~race.covered).sum()),
                "late": int((race.arm_pulls > np.ceil(bounds.schedule(*place))[gamma - 1]).any(axis=1).sum()),
                "over_1": int((pulls > bound).sum()),
                "over_1b": int((pulls > second).sum()),
                "over_2": int((pulls > third).sum()),
                "theorem_1": bound,
                "theorem_1b": second,
                "theorem_2": third,
                "theorem_3": bounds.partition_lower_bound(
                    gamma.tolist(), epsilon, deadline, delta, problem.sigma
                ),
                "complexity": problem.complexity(epsilon),
            }
        )
    return pd.DataFrame(rows)
