"""Notebook 10: sharp and pausing EBR with errors, and a sampler with errors.

The sampler misses a way to fail, or its standard errors or weights are wrong.

Only the part of the check that an error breaks is computed again.
"""

import math
from functools import cache, partial
from unittest import mock

import pandas as pd
from compendium.failure_probability import exact_failures, importance, pausing_shares, rare_failures

from ebr.algorithms.pausing import PausingElasticBatchRacing
from planted import algorithms


def early_drops(*algorithms):
    """Cases that fail through a long lead in the first rounds; of the named algorithms, or of all."""
    cases = (case for case in exact_failures.cases() if case.algorithm in algorithms or not algorithms)
    return (case for case in cases if case.rewards == "Gaussian" and case.epsilon == 0.001)


def few(models=pausing_shares.FORMS):
    """Places with two arms and two rounds, or three arms and one round."""
    places = (place for place in pausing_shares.places((0.1, 0.01)) if place[0] in models)
    return (place for place in places if place[1:3] in ((2, 2), (3, 1)))


class WithoutUnion(PausingElasticBatchRacing):
    """δ in place of δ/(n−1)."""

    def pulls_by_stage(self, n_arms, rewards=None):
        return super().pulls_by_stage(2, rewards)


class EveryRound(PausingElasticBatchRacing):
    """Each of the T rounds spends all of δ."""

    def shares(self):
        return super().shares() * self.deadline


class HalfTheGap(PausingElasticBatchRacing):
    """b_T large enough only for a difference of 2ε."""

    def pulls_by_stage(self, n_arms, rewards=None):
        pulls = super().pulls_by_stage(n_arms, rewards)
        return (pulls + 3) // 4


PLACES = (
    (rare_failures.Hard(deadline=1, n_arms=2, epsilon=0.1, top=0.55), 100_000),
    (rare_failures.Hard(deadline=15, n_arms=16, epsilon=0.01, top=0.0123), 2_000),
)


def paid(make=rare_failures.ALGORITHMS["sharp"], places=PLACES):
    tables = [
        rare_failures.paid({"sharp": place}, [0.01], 10, plain, 1, algorithms={"sharp": make})
        for place, plain in places
    ]
    return pd.concat(tables)


def checked(*algorithms):
    return exact_failures.compared(runs=500, seed=1, only=early_drops(*algorithms))


@cache
def parts():
    """The tables of the check without an error."""
    return {"table": paid(), "checked": checked(), "shares": pausing_shares.shares(only=few())}


def promises_kept(**changed):
    return rare_failures.promises_kept(**parts() | changed)


def with_sharp(make, place):
    """The check with a wrong sharp EBR, where it fails in 1.7 % or 25 % of the races, with δ = 1 %."""
    return promises_kept(table=paid(make, [place]))


def with_pausing(make):
    """The check with a wrong pausing EBR, for the models with exact tests.

    With two arms these tests spend nearly all of δ.
    """
    return promises_kept(shares=pausing_shares.shares(make, few(("Bernoulli", "Gaussian"))))


def with_error(name, error, *algorithms):
    """The check with an error in one part of the sampler, on cases of the named algorithms, or of all."""
    parts()
    with mock.patch.object(importance, name, error):
        return promises_kept(checked=checked(*algorithms))


def pooled(log_weights, right=importance._mean):
    """Standard errors divided by the square root of the number of tilts."""
    log_mean, error = right(log_weights)
    return log_mean, error / len(log_weights) ** 0.5


def four_per_cent_low(log_weights, right=importance._mean):
    """All weights times 0.96. The errors' distribution shows it; their mean square and maximum do not."""
    log_mean, error = right(log_weights)
    return log_mean + math.log(0.96), error


def too_low():
    with mock.patch.object(importance, "_mean", four_per_cent_low):
        gaussian = (case for case in exact_failures.cases() if case.rewards == "Gaussian")
        return promises_kept(checked=exact_failures.compared(runs=420, seed=1, only=gaussian))


PLANTED = {
    "X6": (
        promises_kept,
        lambda: with_sharp(algorithms.SharpTooFewPulls, PLACES[0]),
        lambda: with_sharp(algorithms.SharpRoundedCarelessly, PLACES[1]),
        # No tilt for a long lead in an early round: estimates of EBR are six standard errors too low.
        lambda: with_error("_reaching", lambda *_: [], "EBR"),
        lambda: with_error("_mean", pooled),
        too_low,
        *(partial(with_pausing, error) for error in (WithoutUnion, EveryRound, HalfTheGap)),
    )
}
