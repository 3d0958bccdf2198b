"""Notebook 16: X12 on a small copy of Setup 2, where the races have the same order."""

import math
import os
from functools import cache
from unittest.mock import patch

import pandas as pd
from compendium.modern_rivals import comparison, rival_entrants, sequential_races, sequential_rivals
from compendium.modern_rivals.rival_entrants import CLOSEST, IN_UNIT, OURS, PAUSING, PUBLISHED, WEAKER

import ebr
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing

N_ARMS, DEADLINE, EPSILON, DELTA = 10, 15, 0.005, 0.01
RUNS = rival_entrants.Runs(batched=250, staged=2, single=5, closest=250, near=50, mixed=60, staked=600)


def table(names, **others):
    """The table of races of the named algorithms; `others` replace some entrants."""
    entrants = rival_entrants.ENTRANTS | others
    points = comparison.everybody(names, N_ARMS, DEADLINE, EPSILON)
    points = [point for point in points if point.labels["setup"] == "Setup 2"]
    with patch.dict(os.environ, {"EBR_WORKERS": "1", "DASK": ""}):  # in this process, where patches apply
        return comparison.played(points, DELTA, RUNS, 1, entrants)


@cache
def rivals():
    return table((*PUBLISHED[1:], *WEAKER[:2], CLOSEST))


@cache
def ours():
    return {name: table((name,)) for name in (OURS, IN_UNIT, PAUSING)}


def check(make=None, others=None, name=OURS):
    """The check with `make` in place of one of our races, or with other rivals."""
    mine = ours() if make is None else ours() | {name: table((name,), **{name: rival_entrants.ours(make)})}
    both = pd.concat([*mine.values(), rivals() if others is None else others])
    paid = comparison.spent(N_ARMS, DEADLINE, EPSILON, DELTA)
    return comparison.standing(both, paid, DEADLINE, DELTA)


def four_logarithms(deadline, epsilon, delta):
    """4 log(1/δ): what intervals for single means, as in Algorithm 1, need for the same width."""
    return StakedElasticBatchRacing(deadline, epsilon, delta**4)


def late(deadline, epsilon, delta):
    """Forty rounds, though fifteen are allowed; the first ones are small."""
    return StakedElasticBatchRacing(40, epsilon, delta, start=1.0)


def every_lag(self):
    """Each lag spends all of δ_u: the union over lags is forgotten."""
    by_lag = _SHARES(self)
    return by_lag.sum(axis=1, keepdims=True) * (by_lag > 0)


_SHARES = PausingElasticBatchRacing.shares


def with_error(name, wrong):
    """The check with one threshold of `sequential_rivals` in error."""
    rivals()  # cached with the correct threshold
    with patch.object(sequential_rivals, name, wrong):
        return check()


def with_half_the_regret():
    """A mixture that charges each arm half of its regret."""
    rivals()
    right = sequential_races.charge
    with patch.object(sequential_races, "charge", lambda *given: right(*given) / 2):
        return check()


def without_a_mixture():
    """The closest rival with its published threshold, and as few runs as the others with published ones."""
    late = table((CLOSEST,), **{CLOSEST: rival_entrants._single("Top-Two")})
    return check(others=pd.concat([rivals()[rivals()["algorithm"] != CLOSEST], late]))


def with_every_lag():
    ours()  # cached with the correct shares
    with patch.object(PausingElasticBatchRacing, "shares", every_lag):
        return check()


def one_arm(n_arms, delta):
    """KL-LUCB's rate for a single arm: the union over arms is forgotten."""
    return _CLOCK(1, delta)


def one_time(n_arms, delta):
    """k₁ = 1: the sum over times is forgotten."""
    return _CLOCK(n_arms, delta)._replace(level=math.log(n_arms / delta))


def one_answer(n_arms, delta, prior):
    """The mixture's threshold for one wrong answer in place of n − 1."""
    return _MIXTURE(2, delta, prior)


def half_of_delta(n_arms, delta, prior):
    """The mixture's threshold for δ/2, which handicaps the rivals."""
    return _MIXTURE(n_arms, delta / 2, prior)


def one_of_two(n_arms, delta):
    """C(x) for two arms together; what is proved is 2 C(x/2)."""
    level = sequential_rivals.exponential_threshold(math.log((n_arms - 1) / delta))
    return _DEVIATION(n_arms, delta)._replace(level=level)


_CLOCK, _MIXTURE = sequential_rivals.clock_stopping, sequential_rivals.mixture_stopping
_DEVIATION = sequential_rivals.deviation_stopping

PLANTED = {
    "X12": (
        check,
        lambda: check(PausingElasticBatchRacing),  # pausing EBR in place of staked EBR
        lambda: check(ebr.ElasticBatchRacing, name=IN_UNIT),  # Algorithm 1
        lambda: check(StakedElasticBatchRacing, name=PAUSING),  # the closest rival then beats none of ours
        lambda: check(four_logarithms),
        lambda: check(late),
        with_every_lag,
        without_a_mixture,
        with_half_the_regret,
        lambda: with_error("clock_stopping", one_arm),
        lambda: with_error("clock_stopping", one_time),
        lambda: with_error("mixture_stopping", one_answer),
        lambda: with_error("mixture_stopping", half_of_delta),
        lambda: with_error("deviation_stopping", one_of_two),
    )
}
