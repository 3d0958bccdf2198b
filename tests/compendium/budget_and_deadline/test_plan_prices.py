"""Prices of plans: the cheapest sizes against all chains of sizes."""

import numpy as np
import pytest
from compendium.budget_and_deadline import budgets, plan_prices
from compendium.budget_and_deadline.elimination_plans import chains


def cost(n_arms, kept, weight):
    before = (n_arms, *kept)
    last = len(kept) - 1
    return sum((before[t] - (kept[t] if t < last else 0)) * weight(kept[t]) for t in range(len(kept)))


@pytest.mark.parametrize("n_arms", [2, 3, 6, 10])
def test_the_shortest_path_is_the_cheapest_of_all_chains(n_arms):
    weights = np.random.default_rng(n_arms).uniform(0.1, 1, n_arms - 1)
    for table in (weights, 1 / np.arange(2, n_arms + 1)):
        for rounds in range(1, n_arms):
            found = plan_prices.best_sizes(table, rounds)
            costs = [cost(n_arms, kept, lambda m, w=table: w[m - 1]) for kept in chains(n_arms, rounds)]
            assert len(found) == rounds
            assert cost(n_arms, found, lambda m, w=table: w[m - 1]) == pytest.approx(min(costs))
            price = cost(n_arms, found, lambda m: 1 / (m + 1))
            assert plan_prices.price(n_arms, found) == pytest.approx(price)


def test_one_round_costs_just_what_the_formulas_say():
    for n_arms in (2, 3, 7, 11):
        assert plan_prices.least_price(n_arms, 1) == plan_prices.price(n_arms, (1,)) == n_arms / 2
        assert plan_prices.floor_price(n_arms, 1) == n_arms


def test_a_round_for_each_arm_has_the_price_of_successive_rejects():
    length = 0.5 + sum(1 / i for i in range(2, 101))
    assert plan_prices.price(100, budgets.balanced_sizes(100, 99)) == pytest.approx(length)
