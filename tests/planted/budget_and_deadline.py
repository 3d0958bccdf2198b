"""Notebook 15: bounds with a constant, a sign or a union wrong, and plans that are not kept."""

import math
import pickle
from functools import cache, partial
from unittest import mock

import numpy as np
from compendium.budget_and_deadline import budget_bounds, budgets, elimination_plans, plan_prices
from compendium.budget_and_deadline.budgeted import BudgetedElimination
from scipy.stats import norm


def remembered(function):
    """The same function, which keeps its answers."""
    known = {}

    def answer(*arguments):
        key = pickle.dumps(arguments)
        if key not in known:
            known[key] = function(*arguments)
        return known[key]

    return answer


# Bounds are compared with these; no error in a bound changes them.
YARDSTICKS = {
    name: remembered(getattr(elimination_plans, name))
    for name in ("exact_error", "ranking_bound", "ranking_tails", "failure")
}
measured = mock.patch.multiple(elimination_plans, **YARDSTICKS)


@cache
@measured
def parts():
    """The tables that no error below changes."""
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
    """Chernoff's bound for one mean where a difference of two is compared: 2σ² in place of 4σ²."""
    return budget_bounds.error_bound(gaps, plan, sigma / math.sqrt(2))


def last_round_alone(gaps, plan, sigma):
    """No sum over the rounds."""
    return float(np.exp(budget_bounds.round_bounds(gaps, plan, sigma)[-1]))


def no_noise_of_the_others(gaps, plan, sigma):
    """j/(j+1) is left out: the m rivals' own mean is taken to be known."""
    terms = zip(plan.kept, plan.counts, strict=True)
    return sum(
        math.exp(-count * min(gaps) ** 2 / (2 * sigma**2)) * math.comb(len(gaps), m) for m, count in terms
    )


def lost_alone(plan, hardness, sigma):
    """The floor with arm 1 below the middle of the gap, and the rivals where they are."""
    kept = plan.kept[0]
    gap = math.sqrt((kept + 1) / hardness)
    return float(norm.sf(gap / 2 * math.sqrt(plan.counts[0]) / sigma))


def of_all_rounds(budget, n_arms, deadline, hardness):
    """The closed form with the price of T + 2 rounds."""
    least = plan_prices.least_price(n_arms, deadline + 2)
    return n_arms * deadline * math.exp(-budget / (hardness * least))


def nothing_rounded(budget, n_arms, deadline, hardness):
    """The closed form with B for B − Σ m_t: as if counts were no whole numbers."""
    spent = n_arms + sum(budgets.balanced_sizes(n_arms, deadline)[:-1])
    return budget_bounds.closed_form_bound(budget + spent, n_arms, deadline, hardness)


def wide(budget, n_arms, deadline, hardness):
    """The closed form with σ = 1 for σ = ½: true, and far from the bound."""
    return budget_bounds.closed_form_bound(budget, n_arms, deadline, hardness, 1.0)


class Backwards(BudgetedElimination):
    """Keeps the worst."""

    def play(self, n_arms, replicates=1, *, rewards=None, generator=None):
        game = super().play(n_arms, replicates, rewards=rewards, generator=generator)
        pulls = next(game)
        while True:
            sums = yield pulls
            try:
                pulls = game.send(-sums)
            except StopIteration as end:
                return end.value


class Overspent(BudgetedElimination):
    """Rounds every count up after the budget has been divided."""

    def plan(self, n_arms):
        plan = super().plan(n_arms)
        return plan._replace(counts=tuple(count + 1 for count in plan.counts))


class Late(BudgetedElimination):
    """A round more than the deadline allows."""

    def plan(self, n_arms):
        make = budgets.balanced_plan if self.sizes == "balanced" else budgets.geometric_plan
        return make(self.budget, n_arms, self.deadline + 1)


class Forgetful(BudgetedElimination):
    """Halving that keeps what it should forget."""

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
