"""Notebook 09: pausing EBR with errors in its levels, counts, binomial test, final and rules.

Only the part of the check that an error breaks is computed again, for the models it breaks most.
Without an error the check holds for all models. What the union bound spends is computed, not simulated:
errors raise it from 0.999 δ to nearly 4 δ or more. None of the adversary's tables may end with a wrong arm,
and with an error several do.
"""

from functools import cache, partial
from unittest import mock

import numpy as np
import pandas as pd
from compendium.shared import problem_sets
from compendium.sharp_racing import pausing_adversary, pausing_costs, pausing_guarantee

from ebr.algorithms import pausing
from ebr.theory import pairs

PAUSING = pausing.PausingElasticBatchRacing
NORMAL = ("sub-Gaussian", "Gaussian")


@cache
def problems():
    every = [*problem_sets.hardest_problems([(2, 2), (3, 3)]), *problem_sets.random_problems(6, 1)]
    return pausing_guarantee.models(every, most=3000)


def steps(models=pausing_guarantee.MODELS, make=PAUSING):
    return pd.concat([pausing_guarantee.steps(problems()[name], 40, 1, name, make) for name in models])


@cache
def parts():
    """The tables of the check without an error."""
    played = [
        pausing_guarantee.races(problems()[name], 20, 1, name, PAUSING) for name in pausing_guarantee.MODELS
    ]
    return {"spending": pausing_guarantee.union(), "adversary": steps(), "table": pd.concat(played)}


def guarantee(**changed):
    return pausing_guarantee.guarantee(**parts() | changed)


def with_levels(make=PAUSING, models=NORMAL, sizes=pausing_guarantee.SCHEDULES):
    """The check with the levels and counts of `make` in the union bound, for some models and schedules."""
    with mock.patch.multiple(pausing_guarantee, MODELS=models, SCHEDULES=sizes):
        return guarantee(spending=pausing_guarantee.union(make))


class LagsForNothing(PAUSING):
    """Every lag is tested at the level of its stage: the union over lags is forgotten."""

    def shares(self):
        return super().shares().sum(axis=1)[:, None] * np.tri(self.deadline)


class WithoutUnion(PAUSING):
    """A pair's level is not divided among the arms, as if there were two."""

    def log_terms(self, miss, rewards=None):
        return super().log_terms(np.minimum(4 * np.asarray(miss), 0.5), rewards)


class TooFewAtLast(PAUSING):
    """The final decides at two thirds of the pulls that it needs."""

    def pulls_by_stage(self, n_arms, rewards=None):
        pulls = super().pulls_by_stage(n_arms, rewards)
        return np.minimum(pulls, pulls[-1] * 2 // 3 + 1)


def with_error(place, name, error, check=lambda: guarantee(adversary=steps(["Gaussian"]))):
    """The check with a rule of the race, or a part of the binomial test, in error."""
    parts()
    pausing_adversary.stages.cache_clear()  # cached limits are those without the error
    with mock.patch.object(place, name, error):
        finding = check()
    pausing_adversary.stages.cache_clear()
    return finding


def long_root(sums, pulls, p, right=pairs._root):
    """√(4N kl) in place of √(2N kl)."""
    return np.sqrt(2) * right(sums, pulls, p)


def many_binomial_tests():
    """Ten arms: each pair is tested at a small level, where the factor of the root matters most."""
    return with_levels(models=("Bernoulli",), sizes=((10, 4, 0.1, 0.1),))


def certified_once(self, stage, right=pausing.Paces.lead):
    """An arm that one leader has certified pauses under every leader."""
    right(self, stage)
    self.open &= self.certifier < 0


def eager(self, leaders, high, arms, chosen, shift, right=pausing._Tests.refuted):
    """Certifies for 2ε in place of ε."""
    return right(self, leaders, high, arms, chosen, 2 * shift)


def no_final(self, arms, final):
    """No arm is added to the final."""
    return np.zeros_like(final)


def reversed_leaders(self, stage, right=pausing.Paces.lead):
    """The arm with the fewest successes leads."""
    self.sums *= -1
    right(self, stage)
    self.sums *= -1
    self.best *= -1


def one_deviation(self, round_, stage):
    """The theorem's gap without the arm's own deviation d_s."""
    return RIGHT_PULLED(self, round_, stage) - self.near[stage]


RIGHT_PULLED = pausing_costs.Costs.pulled
PLANTED = {
    "X11": (
        guarantee,
        partial(with_levels, LagsForNothing),
        partial(with_levels, WithoutUnion),
        partial(with_levels, TooFewAtLast),
        partial(with_error, pairs, "_root", long_root, many_binomial_tests),
        partial(with_error, pausing.Paces, "lead", certified_once),
        partial(with_error, pausing._Tests, "refuted", eager),
        partial(with_error, pausing._Tests, "uncertified", no_final),
        partial(with_error, pausing.Paces, "lead", reversed_leaders),
        partial(with_error, pausing_costs.Costs, "pulled", one_deviation),
    )
}
