"""Notebook 09: sharp EBR with errors in its counts, its union bound, its widths and its certificate."""

from functools import cache, partial

import numpy as np
import pandas as pd
from compendium import lineup, problem_sets, sharp_racing

import ebr
from planted import algorithms


@cache
def problems():
    return [*problem_sets.hardest_problems([(2, 3), (3, 3)]), *problem_sets.random_problems(20, 1)]


def guarantee(make=ebr.SharpElasticBatchRacing):
    adversary = sharp_racing.steps(problems(), 100, 1, make, "sub-Gaussian")
    table = sharp_racing.races(problems(), 50, 1, make, "sub-Gaussian")
    return sharp_racing.guarantee(adversary, table, make=make)


def bounded_guarantee(make=ebr.SharpElasticBatchRacing):
    bernoulli = problem_sets.bernoulli(problems()[::2])  # the likelihood ratio takes its time
    adversary = sharp_racing.steps(bernoulli, 100, 1, make, "bounded")
    table = sharp_racing.races(bernoulli, 50, 1, make, "bounded")
    return sharp_racing.bounded_guarantee(adversary, table, make=make)


def savings(**makers):
    """Figure 3's points at ε = 0.01 with T = 1 and 15; some algorithms made otherwise."""
    racing = {name: sharp_racing.CURVES[name] for name in ("EBR", "AE", *sharp_racing.SHARP)}
    rows = []
    for labels, algorithm, problem in lineup.points([1, 15], [], algorithms=racing | makers):
        pulls = ebr.simulate(algorithm, problem, 100, seed=1).pulls
        error = pulls.std(ddof=1) / np.sqrt(len(pulls))
        rows.append(labels | {"pulls": pulls.mean(), "error": error, "runs": len(pulls)})
    return sharp_racing.savings(pd.DataFrame(rows))


def wide(deadline, epsilon, delta):
    return algorithms.SharpWide(deadline, epsilon, delta, rewards="sub-Gaussian")


def hopeful(deadline, epsilon, delta):
    """AE that believes in a gap twice as wide."""
    return ebr.AggressiveElimination(deadline, 2 * epsilon, delta)


ERRORS = (
    algorithms.SharpTooFewPulls,
    algorithms.SharpWithoutUnion,
    algorithms.SharpEager,
    algorithms.SharpNarrow,
    algorithms.SharpWide,
)
PLANTED = {
    "X3": (guarantee, *(partial(guarantee, make=error) for error in ERRORS)),
    "X4": (bounded_guarantee, *(partial(bounded_guarantee, make=error) for error in ERRORS)),
    "X5": (
        savings,
        lambda: savings(sharp=wide),
        lambda: savings(**{"sharp, [0, 1]": sharp_racing.SHARP["sharp"]}),  # without the likelihood ratio
        lambda: savings(AE=hopeful),
    ),
}
