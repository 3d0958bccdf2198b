"""The comparison of budgets: known cases, closed forms, and which plan needs less."""

import math

import numpy as np
import pytest
from compendium.budget_and_deadline import budget_bounds, budget_schedules, budgets, elimination_plans
from compendium.budget_and_deadline.budget_errors import ranking_bound
from scipy.stats import norm

import ebr


def test_every_hard_problem_has_one_best_arm_and_the_roots_one_hardness():
    for problem in budget_schedules.hard_problems(100).values():
        assert (problem.means == problem.means.max()).sum() == 1
    gaps = elimination_plans.gaps_of(budget_schedules.hard_problems(100)["gaps 0.05 √i"])
    assert np.arange(2, 101) / np.sort(gaps) ** 2 == pytest.approx(np.full(99, 400))


@pytest.mark.parametrize(("root", "deadline"), [(2, 1), (3, 2), (2, 5)])
def test_the_sketch_is_above_the_bound_of_its_own_plan_where_rounds_are_whole(root, deadline):
    # With n = k^T, sizes are powers of k, and B/(T m_t) is whole if B is a multiple of T n.
    n_arms = root**deadline
    for each in (1, 10, 100):
        plan = budgets.geometric_plan(each * deadline * n_arms, n_arms, deadline)
        assert plan.pulls == each * deadline * n_arms
        bound = budget_bounds.error_bound(budget_bounds.hardest_gaps(n_arms, 40.0), plan)
        sketch = budget_schedules.sketch(plan.pulls, n_arms, deadline, 40.0)
        cost = deadline * root  # T n^{1/T}; σ = ½
        assert sketch == pytest.approx(2 * cost * math.exp(-plan.pulls / (2 * cost * 40)))
        assert bound <= min(1, sketch) * (1 + 1e-12)


def test_a_budget_is_found_from_above_and_from_below():
    for guess in (10, 1000, 10**6):
        found = budget_schedules.budget_for(lambda budget: 100 / budget, 0.01, guess)
        assert 10_000 <= found <= 10_000 * 1.002 + 1


def test_two_arms_need_the_budget_of_the_normal_quantile():
    table = budget_schedules.needed({"pair": ebr.Gaussian([0.6, 0.5], 0.5)}, [1], 0.1, runs=500, seed=1)
    pulls = 2 * 2 * (norm.isf(0.1) * 0.5 / 0.1) ** 2  # 2c with Φ(−Δ√(c/2)/σ) = 0.1
    assert table["budget"][0] == pytest.approx(pulls, rel=0.02)


def test_a_rate_is_within_three_halves_of_the_floor():
    for kept in range(1, 100):
        assert 1 <= kept / budget_schedules.rate(kept) <= 1.5
        assert budget_schedules.rate(kept) >= (kept + 1) / 2


def test_a_tuned_plan_keeps_the_budget_and_has_a_smaller_ranking_bound():
    problem = ebr.Gaussian(np.append(0.6, np.full(19, 0.5)), 0.5)
    for deadline in (2, 3):
        plan = budget_schedules.tuned_plan(problem, 4000, deadline)
        assert 0.95 * 4000 < plan.pulls <= 4000
        assert len(plan.kept) <= deadline
        balanced = budgets.balanced_plan(4000, 20, deadline)
        assert ranking_bound(problem, plan) < ranking_bound(problem, balanced)


def test_the_best_budget_for_one_round_is_that_of_uniform_allocation():
    table = budget_schedules.promised(10, [1, 2], 0.05, 1e4)
    assert table["best"][0] == pytest.approx(table["balanced"][0], rel=0.003)
    assert (table["best"] <= table["balanced"] * 1.003).all()
    assert (table["balanced"] <= table["geometric"] * 1.003).all()
    assert (table["geometric fresh"] < table["sketch"]).all()
