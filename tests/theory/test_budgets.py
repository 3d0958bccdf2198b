"""Plans for a budget: prices and sizes against all chains."""

import math
from itertools import combinations

import numpy as np
import pytest

import ebr
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
            found = budgets.best_sizes(table, rounds)
            costs = [cost(n_arms, kept, lambda m, w=table: w[m - 1]) for kept in chains(n_arms, rounds)]
            assert len(found) == rounds
            assert cost(n_arms, found, lambda m, w=table: w[m - 1]) == pytest.approx(min(costs))


def test_no_chain_is_cheaper_than_the_formulas_and_one_round_costs_just_that():
    for n_arms in (2, 3, 7, 11):
        for rounds in range(1, n_arms):
            every = list(chains(n_arms, rounds))
            least = min(budgets.price(n_arms, kept) for kept in every)
            assert budgets.least_price(n_arms, rounds) <= least * (1 + 1e-12)
            assert least == pytest.approx(min(cost(n_arms, kept, lambda m: 1 / (m + 1)) for kept in every))
            floor = min(cost(n_arms, kept, lambda m: 1 / m) for kept in every)
            assert budgets.floor_price(n_arms, rounds) <= floor * (1 + 1e-12)
        assert budgets.least_price(n_arms, 1) == budgets.price(n_arms, (1,)) == n_arms / 2
        assert budgets.floor_price(n_arms, 1) == n_arms


def test_a_round_for_each_arm_has_the_price_of_successive_rejects():
    length = 0.5 + sum(1 / i for i in range(2, 101))
    assert budgets.price(100, budgets.balanced_sizes(100, 99)) == pytest.approx(length)


@pytest.mark.parametrize("deadline", [1, 2, 3, 5, 7, 20, 99, 500])
def test_balanced_sizes_fall_to_one_and_cost_within_a_hundredth_of_the_cheapest(deadline):
    kept = budgets.balanced_sizes(100, deadline)
    assert len(kept) == min(deadline, 99)
    assert kept[-1] == 1
    assert (np.diff([100, *kept]) < 0).all()
    cheapest = budgets.best_sizes(1 / np.arange(2, 101), deadline)
    assert budgets.price(100, kept) <= 1.01 * budgets.price(100, cheapest)


def test_geometric_sizes_halve_a_power_of_two():
    for rounds in range(1, 30):
        halves = tuple(2 ** (rounds - t) for t in range(1, rounds + 1))
        assert budgets.geometric_sizes(2**rounds, rounds) == halves
    assert budgets.geometric_sizes(100, 3) == (22, 5, 1)  # 21.54 and 4.64


@pytest.mark.parametrize(("n_arms", "deadline"), [(2, 1), (5, 3), (30, 4), (100, 7), (100, 99)])
def test_a_balanced_plan_spends_the_budget_and_no_more(n_arms, deadline):
    kept = budgets.balanced_sizes(n_arms, deadline)
    least = n_arms + sum(kept[:-1])
    price = budgets.price(n_arms, kept)
    for budget in (least, least + 1, 3 * least + 7, 10_000 + least):
        plan = budgets.balanced_plan(budget, n_arms, deadline)
        assert plan.pulls <= budget
        assert plan.pulls == sum(m * new for m, new in zip(plan.pulled, plan.new, strict=True))
        assert min(plan.new) >= 1
        # c_t (m_{t+1} + 1) ≥ C ≥ (B − Σ m)/Λ, the theorem's step.
        level = min(c * (m + 1) for c, m in zip(plan.counts, plan.kept, strict=True))
        assert level >= (budget - least) / price * (1 - 1e-12)


def test_a_budget_buys_the_tolerance_whose_race_cannot_cost_more():
    def most(epsilon):
        race = ebr.SharpElasticBatchRacing(4, epsilon, 0.05, rewards="sub-Gaussian")
        return 20 * race.pulls_by_round(20)[-1]

    epsilon = budgets.affordable(most, 100_000)
    assert most(epsilon) <= 100_000 < most(epsilon * 0.999)
    # T = 1: ⌊4σ² log((n−1)/δ)/ε²⌋ + 1 pulls an arm.
    one = budgets.affordable(lambda epsilon: 2 * (math.floor(math.log(1 / 0.05) / epsilon**2) + 1), 2000)
    assert one == pytest.approx(math.sqrt(math.log(20) / 1000), rel=1e-8)
    with pytest.raises(ValueError, match=r"^budget must be at least 50, got 10$"):
        budgets.affordable(lambda epsilon: 50 / epsilon, 10)
