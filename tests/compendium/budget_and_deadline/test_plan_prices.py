"""Prices of plans against all chains."""

from itertools import combinations

import numpy as np
import pytest
from compendium.budget_and_deadline import plan_prices

from ebr.theory import budgets


def chains(n_arms, rounds):
    for inner in combinations(range(2, n_arms), rounds - 1):
        yield (*reversed(inner), 1)


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


def test_no_chain_is_cheaper_than_the_formulas_and_one_round_costs_just_that():
    for n_arms in (2, 3, 7, 11):
        for rounds in range(1, n_arms):
            every = list(chains(n_arms, rounds))
            least = min(plan_prices.price(n_arms, kept) for kept in every)
            assert plan_prices.least_price(n_arms, rounds) <= least * (1 + 1e-12)
            assert least == pytest.approx(min(cost(n_arms, kept, lambda m: 1 / (m + 1)) for kept in every))
            floor = min(cost(n_arms, kept, lambda m: 1 / m) for kept in every)
            assert plan_prices.floor_price(n_arms, rounds) <= floor * (1 + 1e-12)
        assert plan_prices.least_price(n_arms, 1) == plan_prices.price(n_arms, (1,)) == n_arms / 2
        assert plan_prices.floor_price(n_arms, 1) == n_arms


def test_a_round_for_each_arm_has_the_price_of_successive_rejects():
    length = 0.5 + sum(1 / i for i in range(2, 101))
    assert plan_prices.price(100, budgets.balanced_sizes(100, 99)) == pytest.approx(length)
