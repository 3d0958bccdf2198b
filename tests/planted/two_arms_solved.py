"""Notebook 13, X8."""

from functools import cache

import numpy as np
from compendium.the_price_of_a_deadline import least_price
from compendium.the_price_of_a_deadline.two_arms import Bound, bayes_bound
from compendium.the_price_of_a_deadline.two_arms_solutions import solution
from compendium.two_rounds.adaptive import floor
from compendium.two_rounds.adaptive_program import best_adaptive, best_prior

EPSILON, DELTA = 0.1, 0.01


def bound(found, rounds=0, price=1.0, refund=1.0, chances=None):
    """The prior's Bayes value with an error: other rounds, price or refund of errors, or chances."""
    if found.deadline == 1:
        return found.bound()
    prior = found.prior._replace(price=price * found.prior.price)
    if chances is not None:
        prior = prior._replace(chances=chances(prior))
    wrong = bayes_bound(found.deadline + rounds, found.epsilon, found.delta, prior)
    return Bound(wrong.value + (price - refund) * found.prior.price * found.delta, wrong.margin)


def priced(found, factor):
    """The policy that is made for another price of errors."""
    return least_price.evaluated(found._replace(price=factor * found.price))


def forgetful(found):
    """H = 2Δ^{−2}: the ε in it is forgotten."""
    if found.deadline == 1:
        return least_price.evaluated(found)
    law, gaps = found.profile(), np.geomspace(1, 1 / found.epsilon, 300)
    return float((law.ratios(gaps) * (gaps / (1 + gaps)) ** 2).max()), law.error


def every_gap_alike(prior):
    return np.full(len(prior.gaps), 1 / len(prior.gaps))


def widest_alone(prior):
    return 1.0 * (prior.gaps == prior.gaps.max())


@cache
def oracle():
    _, policy = best_adaptive(10, 200, EPSILON, DELTA, widest=1.0)
    below = floor(best_prior(policy.first, EPSILON, DELTA, widest=1.0), EPSILON, DELTA, policy.first)
    return below, policy.worst_ratio(EPSILON, widest=1.0)


@cache
def right(deadline):
    found = solution(deadline, EPSILON, DELTA)
    return least_price.evaluated(found), found.bound()


def solved(evaluate=lambda found: right(found.deadline)[0], bound=lambda found: right(found.deadline)[1]):
    table = least_price.certified((1, 2, 3), (EPSILON,), (DELTA,), evaluate, bound)
    return least_price.solved(table, oracle(), EPSILON, DELTA)


PLANTED = {
    "X8": (
        solved,
        lambda: solved(evaluate=lambda found: priced(found, 0.7)),  # no longer PAC
        lambda: solved(evaluate=lambda found: priced(found, 1.5)),  # PAC, and dear
        lambda: solved(evaluate=forgetful),
        lambda: solved(
            bound=lambda found: bound(found, rounds=1 if found.deadline == 3 else 0)
        ),  # a round more
        lambda: solved(
            bound=lambda found: bound(found, rounds=-1 if found.deadline == 3 else 0)
        ),  # a round less
        lambda: solved(bound=lambda found: bound(found, refund=0.0)),  # λδ is not paid back
        lambda: solved(bound=lambda found: bound(found, price=2.0, refund=1.0)),  # an error at +ε and at −ε
        lambda: solved(bound=lambda found: bound(found, chances=every_gap_alike)),
        lambda: solved(bound=lambda found: bound(found, chances=widest_alone)),
    )
}
