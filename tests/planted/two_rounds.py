"""Notebook 05."""

import math
from functools import cache

import numpy as np
from compendium import two_rounds
from scipy.stats import norm

from ebr.theory.divergence import bernoulli_kl
from ebr.theory.policies import Policy, best_policy, pac_policy, worst_ratio


def hasty(epsilon, delta, chance):
    """Far from PAC: both rounds together have a hundredth of 1/ε pulls."""
    policy = Policy(0.005 / epsilon, 0.005 / epsilon, 1.0)
    return policy, worst_ratio(policy, epsilon, chance)


def all_at_once(epsilon, delta, chance):
    """PAC, and no two-round policy: all of it in the first."""
    policy = pac_policy(2.02 * (norm.isf(delta) / epsilon) ** 2, 0.5, epsilon, delta)
    return policy, worst_ratio(policy, epsilon, chance)


def forgetful(first, spent, epsilon, delta):
    """Goes on for a thousandth of the pulls that would make it PAC."""
    policy = pac_policy(first, spent, epsilon, delta)
    return policy._replace(second=policy.second / 1000)


@cache
def scaling(search=best_policy):
    return two_rounds.scaling([0.03, 0.003], 0.01, search=search)


@cache
def horns(make=pac_policy):
    return two_rounds.horns(np.geomspace(100, 1e5, 12), 0.01, 0.01, make=make)


def theorem_4(search=best_policy, **errors):
    return two_rounds.theorem_4(two_rounds.proof_steps([0.05, 0.001], **errors), scaling(search))


PLANTED = {
    "C18": (
        theorem_4,
        lambda: theorem_4(divergence=lambda x, y: 0.9 * bernoulli_kl(x, y)),
        lambda: theorem_4(first_round=1.1 * 2 * math.log(2)),
        lambda: theorem_4(second_round=1 / 49),
        lambda: theorem_4(second_round=1 / 80),
        lambda: theorem_4(search=hasty),
    ),
    "C30": (
        lambda: two_rounds.dilemma(horns(), 0.01, scaling()),
        lambda: two_rounds.dilemma(horns(forgetful), 0.01, scaling()),
        lambda: two_rounds.dilemma(horns(), 0.01, scaling(all_at_once)),
    ),
    "C42": (
        lambda: two_rounds.randomised_first_round(0.01, 0.01),
        lambda: two_rounds.randomised_first_round(0.01, 0.01, idle=0.0),  # no cheap realisation
        lambda: two_rounds.randomised_first_round(0.01, 0.01, idle=1.5),  # no longer PAC
    ),
    # A gap that does not shrink with the pulls is seen in the end.
    "C45": (two_rounds.one_round, lambda: two_rounds.one_round(gap=lambda pulls: 0.01)),
}
