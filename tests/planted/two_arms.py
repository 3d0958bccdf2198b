"""Notebook 19: X8 with an error in a policy's cost or in a prior's bound, at one T only."""

from functools import cache, partial
from unittest import mock

import numpy as np
from compendium.two_arms import least_price, two_arms_prior
from compendium.two_arms.two_arms_solutions import solution
from compendium.two_rounds.adaptive import floor
from compendium.two_rounds.adaptive_program import best_adaptive, best_prior

EPSILON, DELTA = 0.1, 0.01


def bound(found, *grid, rounds=0, price=1.0, refund=1.0, chances=None):
    """The prior's bound with a wrong T, price of errors, refund of errors, or chances."""
    prior = found.prior._replace(price=price * found.prior.price)
    if chances is not None:
        prior = prior._replace(chances=chances(prior))
    wrong = found._replace(deadline=found.deadline + rounds, prior=prior).bound(*grid)
    return wrong + (price - refund) * found.prior.price * found.delta


def charged(times):
    """The bound with pulls charged at `times` τ of the grid, so that looks between are ignored."""

    def at_the_look(found, *grid):
        with mock.patch.object(two_arms_prior, "charged", lambda places: times * places.information):
            return found.bound(*grid)

    return at_the_look


def priced(found, factor):
    """A policy designed for another price of errors."""
    return least_price.evaluated(found._replace(price=factor * found.price))


def forgetful(found):
    """H = 2Δ^{−2}: the ε in it is forgotten."""
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
def right(what, deadline, *grid):
    found = solution(deadline, EPSILON, DELTA)
    return found.bound(*grid) if what == "bound" else least_price.evaluated(found)


def computed(at=2, **wrong):
    """The check with an error at one T; the other T have none."""

    def part(what):
        other = wrong.get(what)
        return lambda found, *grid: (
            other(found, *grid) if other and found.deadline == at else right(what, found.deadline, *grid)
        )

    table = least_price.certified((1, 2, 3), (EPSILON,), (DELTA,), part("evaluate"), part("bound"))
    return least_price.computed(table, oracle(), EPSILON, DELTA)


PLANTED = {
    "X8": (
        computed,
        lambda: computed(evaluate=lambda found: priced(found, 0.7)),  # no longer PAC
        lambda: computed(evaluate=lambda found: priced(found, 1.5)),  # PAC, but costly
        lambda: computed(evaluate=forgetful),
        lambda: computed(bound=charged(1.0)),
        lambda: computed(bound=charged(1.04)),
        lambda: computed(bound=partial(bound, rounds=1)),
        lambda: computed(bound=partial(bound, rounds=-1), at=3),
        lambda: computed(bound=partial(bound, refund=0.0)),  # λδ is not refunded
        lambda: computed(bound=partial(bound, price=2.0)),  # errors at +ε and at −ε both count in full
        lambda: computed(bound=partial(bound, chances=every_gap_alike), at=3),
        lambda: computed(bound=partial(bound, chances=widest_alone)),
    )
}
