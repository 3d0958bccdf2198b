"""Notebook 05: the price of two rounds.

For C30 an error is planted at the smaller ε only. That is enough, as at each ε the policy must be PAC and
meet its bound up to 2 %. Everything is computed, not simulated. With an error the policy's cost is an eighth
or more above or below the bound, or it errs with ten times δ.
"""

import math
from functools import cache, partial

import numpy as np
import pandas as pd
from compendium.shared.distributions import bernoulli_kl
from compendium.two_rounds import randomised_rounds, two_round_price
from compendium.two_rounds.adaptive import floor
from compendium.two_rounds.adaptive_program import best_adaptive, best_prior
from compendium.two_rounds.policies import Policy, best_policy, pac_policy, worst_ratio
from scipy.stats import norm


def hasty(epsilon, delta, chance):
    """Far from PAC: both rounds together have a hundredth of 1/ε pulls."""
    policy = Policy(0.005 / epsilon, 0.005 / epsilon, 1.0)
    return policy, worst_ratio(policy, epsilon, chance)


def forgetful(first, spent, epsilon, delta):
    """Its second round has a thousandth of the pulls that would make it PAC."""
    policy = pac_policy(first, spent, epsilon, delta)
    return policy._replace(second=policy.second / 1000)


def all_at_once(lowest, highest, epsilon, delta, widest):
    """PAC with one round, which makes all pulls; the second round is never used."""
    enough = 2.02 * (norm.isf(delta) / epsilon) ** 2
    return best_adaptive(enough, 1.01 * enough, epsilon, delta, widest, step=3.0)


def careless(lowest, highest, epsilon, delta, widest):
    """Errs with δ at 2ε in place of ε, for any n₁, so a short search for n₁ is enough."""
    return best_adaptive(0.49 * highest, highest / 2, 2 * epsilon, delta, widest)


def one_size(lowest, highest, epsilon, delta, widest):
    """Hardly any choice of n₂, as each size is 6 times the last. The best n₁ is then the largest."""
    return best_adaptive(0.99 * highest, highest, epsilon, delta, widest, step=6.0)


def free_first_round(prior, epsilon, delta, start):
    """Forgets what the first round costs on the widest gap."""
    chances = prior.chances * (prior.gaps < prior.gaps.max())
    return floor(prior._replace(chances=chances), epsilon, delta, start)


def cheap_errors(prior, epsilon, delta, start):
    """Charges half of the price for errors, but refunds all of it."""
    refund = prior.price * delta / 2
    return floor(prior._replace(price=prior.price / 2), epsilon, delta, start) - refund


def twice_the_errors(prior, epsilon, delta, start):
    """Counts errors at +ε and at −ε in full, though each has probability ½: the price is twice the refund."""
    return floor(prior._replace(price=2 * prior.price), epsilon, delta, start) + prior.price * delta


def always_wide(prior, epsilon, delta, start):
    """All probability on the widest gap, which does not bound policies with few pulls."""
    return floor(prior._replace(chances=1.0 * (prior.gaps == prior.gaps.max())), epsilon, delta, start)


FAMILY, SEARCH, PRIOR = cache(best_policy), cache(best_adaptive), cache(best_prior)


@cache
def scaling(epsilon, search=SEARCH, below=floor):
    outcome = partial(two_round_price.certified, search=search, prior=PRIOR, below=below)
    return two_round_price.scaling([epsilon], 0.01, search=FAMILY, outcome=outcome)


def both(**errors):
    return pd.concat([scaling(0.03), scaling(0.003, **errors)], ignore_index=True)


def unknown(epsilon, delta, ceiling):
    """A placeholder for policies by outcome, for checks that do not read them."""
    return {"outcome": ceiling * epsilon, "least": ceiling * epsilon, "outcome_error": delta}


@cache
def quick(search=FAMILY):
    return two_round_price.scaling([0.03, 0.003], 0.01, search=search, outcome=unknown)


@cache
def horns(make=pac_policy):
    return two_round_price.horns(np.geomspace(100, 1e5, 12), 0.01, 0.01, make=make)


def theorem_4(search=FAMILY, **errors):
    return two_round_price.theorem_4(two_round_price.proof_steps([0.05, 0.001], **errors), quick(search))


def dilemma(make=pac_policy, **errors):
    return two_round_price.dilemma(horns(make), 0.01, both(**errors), 0.01)


def corollary(idle=0.5, **errors):
    steps = randomised_rounds.randomised_steps([0.05, 0.001], **errors)
    return randomised_rounds.corollary_by_expectation(steps, both(), 0.01, 0.01, idle=idle)


PLANTED = {
    "C18": (
        theorem_4,
        lambda: theorem_4(divergence=lambda x, y: 0.9 * bernoulli_kl(x, y)),
        lambda: theorem_4(first_round=1.1 * 2 * math.log(2)),
        lambda: theorem_4(second_round=1 / 49),
        lambda: theorem_4(second_round=1 / 80),
        lambda: theorem_4(first_round=0.9 * 2 * math.log(2)),  # less than the proof may take
        lambda: theorem_4(second_round=1 / 51),
        lambda: theorem_4(search=hasty),
    ),
    "C30": (
        dilemma,
        lambda: dilemma(forgetful),
        lambda: dilemma(search=all_at_once),
        lambda: dilemma(search=careless),
        lambda: dilemma(search=one_size),
        lambda: dilemma(below=free_first_round),
        lambda: dilemma(below=cheap_errors),
        lambda: dilemma(below=twice_the_errors),
        lambda: dilemma(below=always_wide),
    ),
    "C42": (
        lambda: randomised_rounds.every_realisation(0.01, 0.01),
        lambda: randomised_rounds.every_realisation(0.01, 0.01, idle=0.0),  # without a cheap realisation
        lambda: randomised_rounds.every_realisation(0.01, 0.01, idle=1.5),  # no longer PAC
    ),
    # A gap that does not shrink as pulls grow is detected in the end.
    "C45": (two_round_price.one_round, lambda: two_round_price.one_round(gap=lambda pulls: 0.01)),
    "C53": (
        corollary,
        lambda: corollary(cut=math.log(2), first_round=2 * math.log(2)),  # the printed cut
        lambda: corollary(first_round=2 * math.log(2)),  # the printed first round
        lambda: corollary(rare=1 / 4),
        lambda: corollary(rare=1 / 10),
        lambda: corollary(doubt=3 / 16),
        lambda: corollary(idle=0.0),
    ),
}
