"""Notebook 09: sharp EBR with errors in its counts, union bound, widths, certificate and cost bounds."""

from functools import cache, partial
from unittest import mock

import numpy as np
import pandas as pd
from compendium.shared import lineup, problem_sets
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.sharp_racing import sharp_bounds, sharp_guarantee

import ebr
from planted import algorithms


@cache
def problems():
    hardest, random = problem_sets.hardest_problems([(2, 3), (3, 3)]), problem_sets.random_problems(20, 1)
    return [*hardest, *random, *sharp_guarantee.wide()[2::4]]


def guarantee(make=SharpElasticBatchRacing):
    places = (problems()[::2], "sub-Gaussian"), (sharp_guarantee.joint()[::5], "Gaussian")
    adversary = [sharp_guarantee.steps(where, 50, 1, make, rewards) for where, rewards in places]
    table = [sharp_guarantee.races(where, 20, 1, make, rewards) for where, rewards in places]
    return sharp_guarantee.guarantee(pd.concat(adversary), pd.concat(table), make=make)


def with_largest_term():
    """L is the largest L_t, even where looks are planned jointly."""

    def longest(self, n_arms):
        return self.log_terms(n_arms).max()

    with mock.patch.object(SharpElasticBatchRacing, "longest", longest):
        return guarantee()


def without_maximum(problem, epsilon, deadline, log_term, k=1):
    """The bound in H with w_0/ε in place of max(w_0, ε)/ε."""
    main = 36 * problem.sigma**2 * (0.5 / epsilon) ** (2 / deadline) * log_term
    return main * problem.complexity(epsilon, k) + problem.n_arms


def with_bound(check, bound=without_maximum):
    """A check with a wrong bound in H."""
    with mock.patch.object(sharp_bounds, "sharp_problem_bound", bound):
        return check()


@cache
def bernoulli():
    few = problems()[::2] + sharp_guarantee.wide()[2:3]  # the likelihood ratio is slow
    return problem_sets.bernoulli(few)


@cache
def attacked(make=SharpElasticBatchRacing):
    return sharp_guarantee.steps(bernoulli(), 100, 1, make, "bounded")


def raced_bounded():
    return sharp_guarantee.races(bernoulli(), 50, 1, SharpElasticBatchRacing, "bounded")


bounded_races = cache(raced_bounded)


def bounded_guarantee(make=SharpElasticBatchRacing, adversary=attacked, table=bounded_races):
    """The check with `make` in its union bound: with an error it spends 98 δ or more, where δ is allowed."""
    return sharp_guarantee.bounded_guarantee(adversary(), table(), make=make)


# How many runs show that an interval is above the least: more where pulls vary more or the margin is small.
OFTEN = {"EBR": (4000, 300), "pausing": (4000, 100), "staked": (400, 150), "staked, [0, 1]": (80, 400)}


def savings(**makers):
    """Figure 3's points at ε = 0.01 with T = 1 and 15; `makers` replace some algorithms."""
    racing = lineup.ALGORITHMS | sharp_guarantee.OURS | sharp_guarantee.OFTEN | makers
    shown = ("EBR", "AE", *sharp_guarantee.SHARP, "pausing", "staked")
    few = [raced(name, racing[name], (1, 15), (40, 40)) for name in shown]
    many = [raced(name, racing[name], (15,), runs) for name, runs in OFTEN.items()]
    return sharp_guarantee.savings(pd.concat(few), pd.concat(many))


@cache
def raced(name, make, deadlines, runs):
    """Mean pulls on Setup 1 and Setup 2; `runs` has the number of runs on each."""
    rows = []
    for labels, algorithm, problem in lineup.points(deadlines, [], algorithms={name: make}):
        pulls = ebr.simulate(algorithm, problem, runs[labels["setup"] == "Setup 2"], seed=1).pulls
        error = pulls.std(ddof=1) / np.sqrt(len(pulls))
        rows.append(labels | {"pulls": pulls.mean(), "error": error, "runs": len(pulls)})
    return pd.DataFrame(rows)


wide = partial(algorithms.SharpWide, rewards="sub-Gaussian")
# Pausing and staked EBR that do not use that rewards are Bernoulli, only that they lie in [0, 1].
carefully_pausing = partial(ebr.PausingElasticBatchRacing, rewards="bounded")
carefully_staking = partial(ebr.StakedElasticBatchRacing, rewards="bounded")


def hopeful(deadline, epsilon, delta):
    """AE run with 2ε in place of ε."""
    return ebr.AggressiveElimination(deadline, 2 * epsilon, delta)


ERRORS = (
    algorithms.SharpTooFewPulls,
    algorithms.SharpWithoutUnion,
    algorithms.SharpEager,
    algorithms.SharpNarrow,
    algorithms.SharpWide,
)
PLANTED = {
    "X3": (
        guarantee,
        *(partial(guarantee, make=error) for error in ERRORS),
        with_largest_term,
        partial(with_bound, guarantee),
        partial(with_bound, guarantee, partial(sharp_bounds.sharp_problem_bound, constant=35)),
    ),
    "X4": (
        bounded_guarantee,
        *(partial(bounded_guarantee, make=error) for error in ERRORS[:-1]),
        # Late drops spend less of δ, but in 7 tables an arm is pulled more often than its term allows.
        lambda: bounded_guarantee(adversary=partial(attacked, algorithms.SharpWide)),
        partial(with_bound, partial(bounded_guarantee, table=raced_bounded)),
    ),
    "X5": (
        savings,
        lambda: savings(sharp=wide),
        lambda: savings(**{"sharp, [0, 1]": sharp_guarantee.SHARP["sharp"]}),  # without the likelihood ratio
        lambda: savings(AE=hopeful),
        lambda: savings(pausing=carefully_pausing),
        lambda: savings(pausing=ebr.ElasticBatchRacing),  # Algorithm 1 in place of pausing EBR
        lambda: savings(staked=carefully_staking),
        lambda: savings(**{"staked, [0, 1]": carefully_pausing}),  # pausing EBR in place of staked EBR
    ),
}
