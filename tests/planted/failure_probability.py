"""Notebook 10: sharp EBR with errors, on two arms in one round, and on many with small means in fifteen."""

import pandas as pd
from compendium import failure_probability

from planted import algorithms


def promises_kept(make):
    places = (
        (failure_probability.Hard(deadline=1, n_arms=2, top=0.55), 0.1, 100_000),
        (failure_probability.Hard(deadline=15, n_arms=16, top=0.0123), 0.01, 2_000),
    )
    tables = [
        failure_probability.paid({"sharp": place}, [0.01], 10, plain, 1, epsilon, algorithms={"sharp": make})
        for place, epsilon, plain in places
    ]
    return failure_probability.promises_kept(pd.concat(tables))


PLANTED = {
    "X6": (
        lambda: promises_kept(failure_probability.ALGORITHMS["sharp"]),
        lambda: promises_kept(algorithms.SharpTooFewPulls),
        lambda: promises_kept(algorithms.SharpRoundedCarelessly),
    ),
}
