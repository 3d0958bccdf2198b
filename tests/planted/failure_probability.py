"""Notebook 10: sharp EBR with errors, and a sampler that misses a way to fail or belittles its errors."""

from unittest import mock

import pandas as pd
from compendium import exact_failures, failure_probability

from ebr.simulation import importance
from planted import algorithms


def early_drops():
    """Races that fail in their first rounds, by a long lead."""
    return (case for case in exact_failures.cases() if case.rewards == "Gaussian" and case.epsilon == 0.001)


def promises_kept(make):
    places = (
        (failure_probability.Hard(deadline=1, n_arms=2, epsilon=0.1, top=0.55), 100_000),
        (failure_probability.Hard(deadline=15, n_arms=16, epsilon=0.01, top=0.0123), 2_000),
    )
    tables = [
        failure_probability.paid({"sharp": place}, [0.01], 10, plain, 1, algorithms={"sharp": make})
        for place, plain in places
    ]
    checked = exact_failures.compared(runs=500, seed=1, only=early_drops())
    return failure_probability.promises_kept(pd.concat(tables), checked)


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
    ),
}
