"""Notebook 09: sharp EBR with errors in its counts, its union bound, its widths and its certificate."""

from functools import cache, partial

import numpy as np
import pandas as pd
from compendium.shared import lineup, problem_sets
from compendium.sharp_racing import sharp_guarantee

import ebr
from planted import algorithms


@cache
def problems():
    return [*problem_sets.hardest_problems([(2, 3), (3, 3)]), *problem_sets.random_problems(20, 1)]


def guarantee(make=ebr.SharpElasticBatchRacing):
    adversary = sharp_guarantee.steps(problems(), 100, 1, make, "sub-Gaussian")
    table = sharp_guarantee.races(problems(), 50, 1, make, "sub-Gaussian")
    return sharp_guarantee.guarantee(adversary, table, make=make)


@cache
def bernoulli():
    return problem_sets.bernoulli(problems()[::2])  # the likelihood ratio takes its time


@cache
def attacked(make=ebr.SharpElasticBatchRacing):
    return sharp_guarantee.steps(bernoulli(), 100, 1, make, "bounded")


@cache
def bounded_races():
    return sharp_guarantee.races(bernoulli(), 50, 1, ebr.SharpElasticBatchRacing, "bounded")


def bounded_guarantee(make=ebr.SharpElasticBatchRacing, adversary=attacked):
    """The check with another race in its union bound: errors spend 98 δ and more, where 1 is allowed."""
    return sharp_guarantee.bounded_guarantee(adversary(), bounded_races(), make=make)


def savings(many_runs=4000, **makers):
    """Figure 3's points at ε = 0.01 with T = 1 and 15; some algorithms made otherwise."""
    names = ("EBR", "AE", *sharp_guarantee.SHARP, sharp_guarantee.PAUSING)
    racing = {name: sharp_guarantee.CURVES[name] for name in names} | makers
    few = [raced(name, make, (1, 15), 100) for name, make in racing.items()]
    many = [raced(name, racing[name], (15,), many_runs) for name in ("EBR", sharp_guarantee.PAUSING)]
    return sharp_guarantee.savings(pd.concat(few), pd.concat(many))


@cache
def raced(name, make, deadlines, runs):
    rows = []
    for labels, algorithm, problem in lineup.points(deadlines, [], algorithms={name: make}):
        pulls = ebr.simulate(algorithm, problem, runs, seed=1).pulls
        error = pulls.std(ddof=1) / np.sqrt(len(pulls))
        rows.append(labels | {"pulls": pulls.mean(), "error": error, "runs": len(pulls)})
    return pd.DataFrame(rows)


def wide(deadline, epsilon, delta):
    return algorithms.SharpWide(deadline, epsilon, delta, rewards="sub-Gaussian")


def carefully_pausing(deadline, epsilon, delta):
    """Pausing that takes Bernoulli rewards for any in [0, 1]."""
    return ebr.PausingElasticBatchRacing(deadline, epsilon, delta, rewards="bounded")


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
    "X4": (
        bounded_guarantee,
        *(partial(bounded_guarantee, make=error) for error in ERRORS[:-1]),
        # Who drops too late spends less: 7 tables have an arm above its term, and none may.
        lambda: bounded_guarantee(adversary=partial(attacked, algorithms.SharpWide)),
    ),
    "X5": (
        savings,
        lambda: savings(sharp=wide),
        lambda: savings(**{"sharp, [0, 1]": sharp_guarantee.SHARP["sharp"]}),  # without the likelihood ratio
        lambda: savings(100, AE=hopeful),
        lambda: savings(100, pausing=carefully_pausing),
        lambda: savings(100, pausing=ebr.ElasticBatchRacing),  # no more than the likelihood ratio: not so
    ),
}
