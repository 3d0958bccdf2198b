"""Notebook 15: bounds with a wrong constant, sign or union, and races that do not follow their plan."""

import math
import pickle
from functools import cache, partial
from unittest import mock

import numpy as np
from compendium.budget_and_deadline import budget_bounds, budgets, elimination_plans, plan_prices
from compendium.budget_and_deadline.budgeted import BudgetedElimination
from scipy.stats import norm

from ebr.algorithms.game import advance


def remembered(function):
    """The same function, with its answers cached by the bytes of its arguments."""
    known = {}

    def answer(*arguments):
        key = pickle.dumps(arguments)
        if key not in known:
            known[key] = function(*arguments)
        return known[key]

    return answer


# Errors that bounds are compared with. No planted error changes them, so they are cached.
YARDSTICKS = {
    name: remembered(getattr(elimination_plans, name))
    for name in ("exact_error", "ranking_bound", "ranking_tails", "failure")
}
measured = mock.patch.multiple(elimination_plans, **YARDSTICKS)


@cache
@measured
def parts():
    """The tables of the check without an error."""
    return {
        "exact": elimination_plans.exact_table(),
        "rare": elimination_plans.rare_table(100, 1),
        "races": elimination_plans.simulated_table(20, 500, 1),
        "floors": elimination_plans.floor_table(),
        "price": elimination_plans.price_table(),
        "closed": elimination_plans.closed_forms(),
        "differ": elimination_plans.unlike(tables=20),
    }


def guarantee(**changed):
    return elimination_plans.guarantee(**parts() | {name: make() for name, make in changed.items()})


@measured
def with_bound(bound):
    return guarantee(rare=lambda: elimination_plans.rare_table(100, 1, bound=bound))


@measured
def with_exact(bound):
    return guarantee(exact=lambda: elimination_plans.exact_table(bound=bound))


def with_rules(make):
    return guarantee(
        races=lambda: elimination_plans.simulated_table(20, 500, 1, make=make),
        differ=lambda: elimination_plans.unlike(make, tables=20),
    )


def one_mean_alone(gaps, plan, sigma):
    """Chernoff's bound for one mean, though a difference of two is compared: 2σ² in place of 4σ²."""
    return budget_bounds.error_bound(gaps, plan, sigma / math.sqrt(2))


def last_round_alone(gaps, plan, sigma):
    """The last round's bound alone, not the sum over all rounds."""
    return float(np.exp(budget_bounds.round_bounds(gaps, plan, sigma)[-1]))


def no_noise_of_the_others(gaps, plan, sigma):
    """j/(j+1) is left out, as if the mean of the m rivals were known."""
    terms = zip(plan.kept, plan.counts, strict=True)
    return sum(
        math.exp(-count * min(gaps) ** 2 / (2 * sigma**2)) * math.comb(len(gaps), m) for m, count in terms
    )


def lost_alone(plan, hardness, sigma):
    """The floor where arm 1 alone is unlucky: it falls below the middle of the gap, rivals stay."""
    kept = plan.kept[0]
    gap = math.sqrt((kept + 1) / hardness)
    return float(norm.sf(gap / 2 * math.sqrt(plan.counts[0]) / sigma))


def of_all_rounds(budget, n_arms, deadline, hardness):
    """The closed form with the price of T + 2 rounds."""
    least = plan_prices.least_price(n_arms, deadline + 2)
    return n_arms * deadline * math.exp(-budget / (hardness * least))


def nothing_rounded(budget, n_arms, deadline, hardness):
    """The closed form with B in place of B − Σ m_t, as if counts were not rounded."""
    spent = n_arms + sum(budgets.balanced_sizes(n_arms, deadline)[:-1])
    return budget_bounds.closed_form_bound(budget + spent, n_arms, deadline, hardness)


def wide(budget, n_arms, deadline, hardness):
    """The closed form with σ = 1 in place of ½: true, but far from the bound."""
    return budget_bounds.closed_form_bound(budget, n_arms, deadline, hardness, 1.0)


class Backwards(BudgetedElimination):
    """Keeps the arms with the lowest means."""

    def play(self, n_arms, replicates=1, *, rewards=None, generator=None):
        game = super().play(n_arms, replicates, rewards=rewards, generator=generator)
        turn = advance(game)
        while turn.pulls is not None:
            sums = yield turn.pulls
            turn = advance(game, -sums)
        return turn.arms


class Overspent(BudgetedElimination):
    """Adds one pull to every count, so that the budget is exceeded."""

    def plan(self, n_arms):
        plan = super().plan(n_arms)
        return plan._replace(counts=tuple(count + 1 for count in plan.counts))


class Late(BudgetedElimination):
    """Plays one round more than the deadline allows."""

    def plan(self, n_arms):
        make = budgets.balanced_plan if self.sizes == "balanced" else budgets.geometric_plan
        return make(self.budget, n_arms, self.deadline + 1)


class Forgetful(BudgetedElimination):
    """Halving that counts rewards of earlier rounds, which it should forget."""

    def plan(self, n_arms):
        return super().plan(n_arms)._replace(fresh=False)


PLANTED = {
    "X10": (
        guarantee,
        partial(with_bound, one_mean_alone),
        partial(with_bound, last_round_alone),
        partial(with_exact, one_mean_alone),
        partial(with_exact, no_noise_of_the_others),
        lambda: guarantee(floors=lambda: elimination_plans.floor_table(floor=lost_alone)),
        lambda: guarantee(price=lambda: elimination_plans.price_table(least=plan_prices.floor_price)),
        lambda: guarantee(closed=lambda: elimination_plans.closed_forms(closed=of_all_rounds)),
        lambda: guarantee(closed=lambda: elimination_plans.closed_forms(closed=nothing_rounded)),
        lambda: guarantee(closed=lambda: elimination_plans.closed_forms(closed=wide)),
        partial(with_rules, Backwards),
        partial(with_rules, Overspent),
        partial(with_rules, Late),
        partial(with_rules, Forgetful),
    )
}
