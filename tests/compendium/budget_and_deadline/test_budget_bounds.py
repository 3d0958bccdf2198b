"""Errors of a plan: bounds against plain sums, exact errors against enumeration."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from compendium.budget_and_deadline import budget_bounds, budgets
from compendium.budget_and_deadline.budget_errors import exact_error, ranking_bound, ranking_tails
from compendium.budget_and_deadline.budgets import Plan
from scipy.stats import norm

import ebr


@pytest.mark.parametrize(
    ("gaps", "counts"), [([0.1, 0.15, 0.3, 0.4, 0.4], (30, 80, 300)), ([0.4] * 5, (60, 200, 900))]
)
def test_the_bound_is_the_least_of_its_terms_by_a_plain_loop(gaps, counts):
    plan, sigma = Plan(6, (4, 2, 1), counts), 0.7
    for t, (m, c) in enumerate(zip(plan.kept, plan.counts, strict=True)):
        terms = {(0, 0): 1.0}
        for k in range(1, m + 1):
            tails = sum(math.exp(-c * gap**2 / (4 * sigma**2)) for gap in gaps[k - 1 :])
            terms[k, 0] = tails / (m - k + 1)
            for j in range(1, m - k + 2):
                ways = math.comb(6 - k, j) / math.comb(m - k + 1, j)
                terms[k, j] = ways * math.exp(-c * gaps[k - 1] ** 2 * j / (j + 1) / (2 * sigma**2))
        found = budget_bounds.round_bounds(gaps, plan, sigma)[t]
        assert found == pytest.approx(math.log(min(terms.values())), abs=1e-12)
        if gaps[0] == gaps[-1] and m > 1:  # equal arms: the least term is for a set of several arms
            assert min(terms, key=terms.get)[1] > 1


def test_fresh_rounds_count_their_own_survivors_and_pulls_alone():
    gaps = [0.3] * 9
    plan = Plan(10, (4, 1), (50, 150), fresh=True)
    # Round 2: 100 fresh pulls, k = 1, three rivals at most.
    found = budget_bounds.round_bounds(gaps, plan, 0.5)[1]
    assert found == pytest.approx(math.log(3 * math.exp(-100 * 0.09)))
    remembered = budget_bounds.round_bounds(gaps, plan._replace(fresh=False), 0.5)[1]
    assert remembered == pytest.approx(math.log(9 * math.exp(-150 * 0.09)))


def test_hardness_and_the_hardest_gaps():
    assert budget_bounds.hardness([0.5, 0.1, 0.2]) == pytest.approx(max(2 / 0.01, 3 / 0.04, 4 / 0.25))
    assert budget_bounds.hardness(budget_bounds.hardest_gaps(20, 37.0)) == pytest.approx(37)


def enumerated(problem, plan):
    """The error, summed over every table of single Bernoulli rewards and every order of lots."""
    n_arms, most = problem.n_arms, plan.counts[-1]
    error = 0.0
    for order in permutations(range(n_arms)):
        for rewards in product((0, 1), repeat=n_arms * most):
            table = np.reshape(rewards, (n_arms, most))
            chance = np.prod(np.where(table == 1, problem.means[:, None], 1 - problem.means[:, None]))
            arms, before = list(order), 0
            for kept, count in zip(plan.kept, plan.counts, strict=True):
                start = before if plan.fresh else 0
                ranked = sorted(arms, key=lambda arm, s=start, c=count, x=table: -x[arm, s:c].sum())
                arms, before = [arm for arm in arms if arm in ranked[:kept]], count
            error += chance * (arms[0] != problem.best) / math.factorial(n_arms)
    return error


@pytest.mark.parametrize(
    "plan",
    [Plan(3, (1,), (3,)), Plan(3, (2, 1), (1, 3)), Plan(3, (2, 1), (1, 3), fresh=True), Plan(2, (1,), (4,))],
)
def test_exact_errors_are_those_of_all_tables(plan):
    problem = ebr.Bernoulli([0.3, 0.8, 0.6][: plan.n_arms])
    assert exact_error(problem, plan) == pytest.approx(enumerated(problem, plan), rel=1e-12)


def test_the_ranking_bound_is_the_error_of_one_round_and_above_it_for_more():
    problem = ebr.Bernoulli([0.5, 0.4, 0.8, 0.6])
    one = Plan(4, (1,), (9,))
    assert ranking_bound(problem, one) == pytest.approx(exact_error(problem, one), rel=1e-12)
    for plan in (
        Plan(4, (2, 1), (6, 12)),
        Plan(4, (3, 2, 1), (4, 6, 9)),
        Plan(4, (2, 1), (5, 14), fresh=True),
    ):
        assert exact_error(problem, plan) < ranking_bound(problem, plan) < 2 * exact_error(problem, plan)


def test_ranking_tails_of_two_normal_arms_and_of_equal_ones():
    tail = ranking_tails(ebr.Gaussian([0.3, 0.7], 0.5), 20)
    assert tail == pytest.approx([norm.sf(0.4 * math.sqrt(20 / 2) / 0.5)], rel=1e-9)
    alike = ranking_tails(ebr.Gaussian([0.5, 0.5, 0.5, 0.5], 0.5), 7)  # all ranks are equally likely
    assert alike == pytest.approx([3 / 4, 2 / 4, 1 / 4], rel=1e-9)
    tied = ranking_tails(ebr.Bernoulli([0.5, 0.5, 0.5]), 3)
    assert tied == pytest.approx([2 / 3, 1 / 3], rel=1e-9)


def test_the_floor_is_below_what_a_last_round_of_two_does():
    # m = 1: the rival's gap is √(2/H₂), so it is ahead with probability Φ(−√(c/H₂)/σ).
    for count in (1, 10, 100):
        floor = budget_bounds.error_floor(Plan(2, (1,), (count,)), hardness=50.0, sigma=0.5)
        exact = norm.sf(math.sqrt(2 / 50) * math.sqrt(count / 2) / 0.5)
        halves = norm.sf(math.sqrt(2 / 50) / 2 * math.sqrt(count) / 0.5) ** 2
        assert floor == pytest.approx(halves)
        assert floor < exact


@pytest.mark.parametrize("deadline", [1, 2, 4, 7])
def test_floor_bound_and_closed_form_are_in_order(deadline):
    for budget, hardness in product((2000, 20_000, 200_000), (20.0, 400.0)):
        plan = budgets.balanced_plan(budget, 100, deadline)
        bound = budget_bounds.error_bound(budget_bounds.hardest_gaps(100, hardness), plan)
        assert budget_bounds.error_floor(plan, hardness) <= bound
        assert bound <= budget_bounds.closed_form_bound(budget, 100, deadline, hardness)
