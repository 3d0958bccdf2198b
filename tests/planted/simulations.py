"""Notebook 07: a small Figure 2, simulated with algorithms that have an error."""

from functools import cache, partial

import numpy as np
import pandas as pd
from compendium.lower_bounds import near_optimal
from compendium.shared import lineup
from compendium.simulations import section_5

import ebr
from planted import algorithms
from planted.lower_bounds import eager


@cache
def figure_2(name=None, make=None):
    """Three T and two ε, with `make` in place of one algorithm. Sequential racing is run at ε = 0.3 only."""
    racing = lineup.ALGORITHMS | ({name: make} if name else {})
    rows = []
    for labels, algorithm, problem in lineup.points([1, 2, 15], [0.001, 0.3], algorithms=racing):
        if labels["algorithm"] == "sequential" and labels["epsilon"] < 0.3:
            continue
        race = ebr.simulate(algorithm, problem, 20, seed=1)
        failures = int((~race.correct(algorithm.epsilon)).sum())
        error = race.pulls.std(ddof=1) / np.sqrt(20)
        rows.append(labels | {"pulls": race.pulls.mean(), "error": error, "failures": failures, "runs": 20})
    return pd.DataFrame(rows)


def planted(check, *errors):
    return (lambda: check(figure_2()), *(partial(lambda error: check(figure_2(*error)), e) for e in errors))


def fewer_with_rounds(deadline, epsilon, delta):
    """AE run with Tε in place of ε."""
    return ebr.AggressiveElimination(deadline, min(deadline * epsilon, 0.9), delta)


def idle_rounds_cost(delta, deadline):
    """The fixed design with T times its pulls, as if unused rounds cost as much as the first."""
    test = near_optimal.design(delta, 1)
    return test._replace(pulls=tuple(deadline * pulls for pulls in test.pulls))


def hopeful(deadline, epsilon, delta):
    """AE run with 10ε in place of ε."""
    return ebr.AggressiveElimination(deadline, min(10 * epsilon, 0.9), delta)


def released(deadline, epsilon, delta):
    """kδER with the constants of the released code, not of the paper."""
    return ebr.DeltaElimination(deadline, epsilon, delta, constants="released")


def opening(**makers):
    return section_5.first_rounds([0.01, 0.1], 15, 0.01, lineup.ALGORITHMS | makers)


PLANTED = {
    "C22": planted(section_5.no_failure, ("EBR", algorithms.TooFewPulls)),
    "C23": planted(
        section_5.beats_baselines, ("EBR", algorithms.ShortSchedule), ("EBR", algorithms.DropsNobody)
    ),
    "C24": planted(section_5.more_rounds, ("EBR", algorithms.RoundsForNothing)),
    "C25": planted(
        section_5.along_epsilon, ("EBR", algorithms.ShortSchedule), ("EBR", algorithms.DropsNobody)
    ),
    "C26": (
        *planted(section_5.aggressive_elimination, ("AE", algorithms.KeepsAll), ("AE", fewer_with_rounds)),
        lambda: section_5.aggressive_elimination(figure_2(), make=ebr.DeltaElimination),  # drops arms at once
    ),
    "C27": planted(section_5.delta_elimination, ("kδER", algorithms.NaturalLogs), ("kδER", released)),
    "C28": (
        lambda: section_5.first_round(opening()),
        lambda: section_5.first_round(opening(AE=ebr.ElasticBatchRacing)),
        lambda: section_5.first_round(opening(kδER=lambda t, e, d: ebr.DeltaElimination(t, e**1.1, d))),
    ),
    "C31": planted(section_5.orders_of_magnitude, ("AE", hopeful), ("EBR", algorithms.TooFewPulls)),
    "C32": (
        lambda: section_5.between_the_ends(figure_2()),
        lambda: section_5.between_the_ends(  # not PAC from T = 2 on
            figure_2(), design=lambda *place: eager(near_optimal.design(*place))
        ),
        lambda: section_5.between_the_ends(figure_2(), design=idle_rounds_cost),
    ),
}
