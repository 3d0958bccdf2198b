"""Notebook 16, X12: on a small copy of Setup 2, where the closest rival is a fifth behind."""

import math
import os
from functools import cache
from unittest.mock import patch

import pandas as pd
from compendium.modern_rivals import comparison, rival_entrants, sequential_rivals

import ebr
from ebr.algorithms.pausing import PausingElasticBatchRacing

N_ARMS, DEADLINE, EPSILON, DELTA = 20, 15, 0.01, 0.01
RUNS = rival_entrants.Runs(batched=400, staged=2, single=12, closest=(200, 200))
SEQUENTIAL = ("KL-LUCB", "KL-LUCB, own counts", "T&S", "T&S, proportional", rival_entrants.CLOSEST)


def table(names, make=None):
    entrants = dict(rival_entrants.ENTRANTS)
    if make is not None:
        entrants[rival_entrants.OURS] = rival_entrants.ours(make)
    points = comparison.everybody(names, N_ARMS, DEADLINE, EPSILON)
    points = [point for point in points if point.labels["setup"] == "Setup 2"]
    with patch.dict(os.environ, {"EBR_WORKERS": "1", "DASK": ""}):  # in this process, where it can be altered
        return comparison.played(points, DELTA, RUNS, 1, entrants)


@cache
def rivals():
    return table(SEQUENTIAL)


def check(make=None, others=None):
    both = pd.concat([table((rival_entrants.OURS,), make), rivals() if others is None else others])
    paid = comparison.spent(N_ARMS, DEADLINE, EPSILON, DELTA)
    return comparison.fewer_pulls(both, paid, DEADLINE, DELTA)


def four_logarithms(deadline, epsilon, delta):
    """log(1/δ) four times: what intervals of single means, as in Algorithm 1, need for the same width."""
    return PausingElasticBatchRacing(deadline, epsilon, delta**4)


def late(deadline, epsilon, delta):
    """Forty rounds where fifteen are promised."""
    return PausingElasticBatchRacing(40, epsilon, delta)


def every_lag(self):
    """δ_u in full for each lag: the union over lags is forgotten."""
    by_lag = _SHARES(self)
    return by_lag.sum(axis=1, keepdims=True) * (by_lag > 0)


_SHARES = PausingElasticBatchRacing.shares


def with_error(name, wrong, names):
    """The check with one threshold of `sequential_rivals` in error, and the rivals that use it raced anew."""
    with patch.object(sequential_rivals, name, wrong):
        kept = rivals()[~rivals()["algorithm"].isin(names)]
        return check(others=pd.concat([kept, table(names)]))


def with_every_lag():
    with patch.object(PausingElasticBatchRacing, "shares", every_lag):
        return check(
            make=lambda *setting: PausingElasticBatchRacing(*setting, lead=3.001)
        )  # not from a cache


def one_arm(n_arms, delta, exponent=1.1):
    """KL-LUCB's rate for one arm: no union over arms."""
    return _RATE(1, delta, exponent)


def one_time(n_arms, delta, exponent=1.1):
    """k₁ = 1: the sum over times is forgotten."""
    return math.log(n_arms / delta), exponent


def one_answer(n_arms, delta):
    """The mixture's threshold for one wrong answer of n − 1."""
    return sequential_rivals.Stopping(math.log(1 / delta), mixture=True)


def one_of_two(n_arms, delta):
    """C(x) for two arms at once, where 2 C(x/2) is proved."""
    level = sequential_rivals.exponential_threshold(math.log((n_arms - 1) / delta))
    return sequential_rivals.Stopping(level, mixture=False)


_RATE = sequential_rivals.exploration_rate
LUCB, TRACKING = SEQUENTIAL[:2], SEQUENTIAL[2:4]

PLANTED = {
    "X12": (
        check,
        lambda: check(ebr.ElasticBatchRacing),  # Algorithm 1 in place of ours
        lambda: check(four_logarithms),
        lambda: check(late),
        with_every_lag,
        lambda: with_error("exploration_rate", one_arm, LUCB),
        lambda: with_error("exploration_rate", one_time, LUCB),
        lambda: with_error("mixture_stopping", one_answer, (rival_entrants.CLOSEST,)),
        lambda: with_error("deviation_stopping", one_of_two, TRACKING),
    )
}
