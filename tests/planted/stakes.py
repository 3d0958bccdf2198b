"""Notebook 17: staked EBR with errors in its money, its rewards, its rules, its bets and its final.

Only the part of the check that an error breaks is computed again, with the model that it breaks most. A
correct race shows such a rise of the supermartingale's mean with probability e^{−17} at most; errors give 50
nats or more. Small rises, of 6 % and more, need many races on the kind of problem where they show.
"""

import math
from dataclasses import replace
from functools import cache, partial
from unittest import mock

import numpy as np
import pandas as pd
from compendium.stakes import every_path, staked_guarantee, suite, supermartingale

from ebr.algorithms import staked
from ebr.simulation.simulate import simulate
from ebr.theory import bets

TABLE, UNKNOWN = staked._Table, supermartingale.UNKNOWN
RUNS = 200
MANY = 3000


def watched(model, runs=RUNS, kind=""):
    """Watched races on the problems of one kind, or on all."""
    problems = [problem for problem in supermartingale.hostile(model) if kind in problem.kind]
    return supermartingale.watched(problems, model, runs, 1)


def paths():
    return pd.concat([every_path.failures("bounded", 1, 1), every_path.failures("Bernoulli", 4, 1)])


def races():
    """Three quick problems of the suite."""
    rows = []
    for point in suite.points("Bernoulli"):
        if point.labels["race"] == suite.OURS and point.labels["problem"] in ("equal 5", "pair", "wide"):
            found = simulate(point.algorithm, point.problem, RUNS, 1)
            wrong = int((~found.correct(point.algorithm.epsilon)).sum())
            rows.append(point.labels | {"failures": wrong, "runs": RUNS, "rounds": int(found.rounds.max())})
    return pd.DataFrame(rows)


@cache
def parts():
    """The tables of the check without an error."""
    every = pd.concat(map(watched, supermartingale.MODELS), ignore_index=True)
    return {"signs": staked_guarantee.finals(), "paths": paths(), "watched": every, "races": races()}


def guarantee(**changed):
    return staked_guarantee.guarantee(**parts() | changed)


def with_error(place, name, error, model="Gaussian", *size):
    """The check with a rule of the race, or a part of a bet, in error."""
    parts()
    with mock.patch.object(place, name, error):
        return guarantee(watched=watched(model, *size))


def money_given_twice(self, now, right=TABLE.stake):
    """What is staked is not taken from what is left."""
    left = self.left
    right(self, now)
    self.left = left


def seats_share_the_first_money(self, right=TABLE._open):
    """The first round's money goes only to claimants with a seat, though seats are chosen by its rewards."""
    right(self)
    self.purses += math.log(self.fresh.shape[1] / 2)


def stale_rewards(self, right=TABLE._pay):
    """Bets are settled with all rewards so far, not only with new ones."""
    new, some = (self.came, self.fresh), self.came > 0
    self.came, self.fresh = (np.where(some, all_, 0) for all_ in (new[0] + self.counts, new[1] + self.sums))
    right(self)
    self.came, self.fresh = new


def told_before(self, right=TABLE._pay):
    """Bets are made after the round's rewards are known."""
    counts, sums = self.counts, self.sums
    self.counts, self.sums = counts + self.came, sums + self.fresh
    right(self)
    self.counts, self.sums = counts, sums


def out_by_one(self, right=TABLE._pay):
    """One claim by ε drops an arm: a good arm then drops the best, and a bad arm the good one."""
    right(self)
    self.out = self.out | (self.purses[0] >= 0).any(axis=1)


def no_lot(fresh, lots, right=bets.fisher_score):
    """The claimant wins ties, without a lot."""
    return right(fresh, np.zeros_like(lots))


def thinned_twice(sums, pulls, shift, lots, right=bets.thinned):
    """λ = 2s/(1 + s) in place of s/(1 + s)."""
    return right(sums, pulls, 2 * shift / (1 - shift), lots)


def not_divided(log_purse, score, drifts, right=bets.log_ratio):
    """The likelihood ratio without its −θ²/2, capped at 1."""
    return np.minimum(log_purse + right(score, drifts) + drifts[1] ** 2 / 2, 0.0)


def doubled_shift(fresh, shift, beliefs, right=bets.unit_bet):
    """Bets' factors are those of a claim by 2s in place of s."""
    return right(fresh, 2 * shift, beliefs)


def s_is_sigma(*given, right=bets.normal_score):
    """Student's law is replaced by the normal law."""
    return right(*given[:3])


def with_the_guess(counts, sums, squares, right=staked.pooled):
    """The guessed σ in place of the estimate S."""
    variance, freedom = right(counts, sums, squares)
    return 0 * variance + 0.125**2, freedom


def steins_share():
    """Stein's b_T as if the final could spend all of δ."""
    right = staked.stein_count
    parts()
    with mock.patch.object(staked_guarantee, "stein_count", lambda *given: right(*given[:3], 2 * given[3])):
        return guarantee(signs=staked_guarantee.finals())


def without_its_share():
    """b_T as if the final could spend all of δ."""
    right = staked.StakedElasticBatchRacing.last_count
    parts()

    def last_count(race, n_arms, rewards=None):
        return right(replace(race, delta=min(race.delta / race.last_part, 0.999)), n_arms, rewards)

    with mock.patch.object(staked.StakedElasticBatchRacing, "last_count", last_count):
        return guarantee(signs=staked_guarantee.finals())


def all_is_staked(self, *given, right=TABLE.__init__, **said):
    """All of δ is staked, and the final's share is spent in addition."""
    right(self, *given, **said)
    self.left = np.full_like(self.left, 1.0)


PLANTED = {
    "X15": (
        guarantee,
        partial(with_error, TABLE, "stake", money_given_twice, "Gaussian", MANY, "alike"),
        partial(with_error, TABLE, "_open", seats_share_the_first_money),
        partial(with_error, TABLE, "_pay", stale_rewards, "Gaussian", 1000, "nine"),
        partial(with_error, TABLE, "_pay", told_before, "Gaussian", MANY, "alike"),
        partial(with_error, TABLE, "_pay", out_by_one, "Bernoulli", RUNS, "alike"),
        partial(with_error, bets, "fisher_score", no_lot, "Bernoulli", RUNS, "alike"),
        partial(with_error, staked, "thinned", thinned_twice, "Bernoulli", RUNS, "nine"),
        partial(with_error, bets, "capped_bet", not_divided),
        partial(with_error, bets, "unit_bet", doubled_shift, "bounded", RUNS, "nine"),
        partial(with_error, TABLE, "__init__", all_is_staked),
        partial(with_error, bets, "normal_score", s_is_sigma, UNKNOWN, MANY, "just bad"),
        partial(with_error, staked, "pooled", with_the_guess, UNKNOWN, RUNS, "just bad"),
        without_its_share,
        steins_share,
    )
}
