"""Notebook 10: sharp and pausing EBR with errors, and a sampler that misses a way to fail or its errors."""

from functools import partial
from unittest import mock

import pandas as pd
from compendium import exact_failures, failure_probability, pausing_shares

from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.simulation import importance
from planted import algorithms


def early_drops():
    """Races that fail in their first rounds, by a long lead."""
    return (case for case in exact_failures.cases() if case.rewards == "Gaussian" and case.epsilon == 0.001)


def few():
    """Two arms with two rounds, three with one."""
    return (place for place in pausing_shares.places((0.1, 0.01)) if place[1:3] in ((2, 2), (3, 1)))


class WithoutUnion(PausingElasticBatchRacing):
    """δ in place of δ/(n−1)."""

    def pulls_by_stage(self, n_arms, rewards=None):
        return super().pulls_by_stage(2, rewards)


class EveryRound(PausingElasticBatchRacing):
    """All of δ in each of the T rounds."""

    def shares(self):
        return super().shares() * self.deadline


class HalfTheGap(PausingElasticBatchRacing):
    """b_T as if a difference of 2ε were to be seen."""

    def pulls_by_stage(self, n_arms, rewards=None):
        pulls = super().pulls_by_stage(n_arms, rewards)
        return (pulls + 3) // 4


def promises_kept(make, pausing=PausingElasticBatchRacing):
    places = (
        (failure_probability.Hard(deadline=1, n_arms=2, epsilon=0.1, top=0.55), 100_000),
        (failure_probability.Hard(deadline=15, n_arms=16, epsilon=0.01, top=0.0123), 2_000),
    )
    tables = [
        failure_probability.paid({"sharp": place}, [0.01], 10, plain, 1, algorithms={"sharp": make})
        for place, plain in places
    ]
    checked = exact_failures.compared(runs=500, seed=1, only=early_drops())
    return failure_probability.promises_kept(
        pd.concat(tables), checked, pausing_shares.shares(pausing, few())
    )


def with_error(name, error):
    """The check with another part of the sampler."""
    with mock.patch.object(importance, name, error):
        return promises_kept(failure_probability.ALGORITHMS["sharp"])


def pooled(log_weights, right=importance._mean):
    """Errors of one tilt's races, as if all the tilts together had not more."""
    log_mean, error = right(log_weights)
    return log_mean, error / len(log_weights) ** 0.5


PLANTED = {
    "X6": (
        lambda: promises_kept(failure_probability.ALGORITHMS["sharp"]),
        lambda: promises_kept(algorithms.SharpTooFewPulls),
        lambda: promises_kept(algorithms.SharpRoundedCarelessly),
        lambda: with_error("_reaching", lambda *_: []),  # no tilt for a long lead in an early round
        lambda: with_error("_mean", pooled),
        *(
            partial(promises_kept, failure_probability.ALGORITHMS["sharp"], error)
            for error in (WithoutUnion, EveryRound, HalfTheGap)
        ),
    ),
}
