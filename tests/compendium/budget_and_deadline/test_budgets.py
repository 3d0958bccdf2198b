"""Plans for a budget: their sizes against the cheapest ones, and their pulls."""

import numpy as np
import pytest
from compendium.budget_and_deadline import budgets, plan_prices


@pytest.mark.parametrize("deadline", [1, 2, 3, 5, 7, 20, 99, 500])
def test_balanced_sizes_fall_to_one_and_cost_within_a_hundredth_of_the_cheapest(deadline):
    kept = budgets.balanced_sizes(100, deadline)
    assert len(kept) == min(deadline, 99)
    assert kept[-1] == 1
    assert (np.diff([100, *kept]) < 0).all()
    cheapest = plan_prices.best_sizes(1 / np.arange(2, 101), deadline)
    assert plan_prices.price(100, kept) <= 1.01 * plan_prices.price(100, cheapest)


def test_geometric_sizes_halve_a_power_of_two():
    for rounds in range(1, 30):
        halves = tuple(2 ** (rounds - t) for t in range(1, rounds + 1))
        assert budgets.geometric_sizes(2**rounds, rounds) == halves
    assert budgets.geometric_sizes(100, 3) == (22, 5, 1)  # 21.54 and 4.64


@pytest.mark.parametrize(("n_arms", "deadline"), [(2, 1), (5, 3), (30, 4), (100, 7), (100, 99)])
def test_a_balanced_plan_spends_the_budget_and_no_more(n_arms, deadline):
    kept = budgets.balanced_sizes(n_arms, deadline)
    least = n_arms + sum(kept[:-1])
    price = plan_prices.price(n_arms, kept)
    for budget in (least, least + 1, 3 * least + 7, 10_000 + least):
        plan = budgets.balanced_plan(budget, n_arms, deadline)
        assert plan.pulls <= budget
        assert plan.pulls == sum(m * new for m, new in zip(plan.pulled, plan.new, strict=True))
        assert min(plan.new) >= 1
        # A step of the theorem's proof: c_t (m_{t+1} + 1) ≥ C ≥ (B − Σ m)/Λ.
        level = min(c * (m + 1) for c, m in zip(plan.counts, plan.kept, strict=True))
        assert level >= (budget - least) / price * (1 - 1e-12)
