"""Plans for a budget: prices against all chains, bounds against plain sums, errors against enumeration."""

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from compendium.budget_and_deadline import budget_bounds
from compendium.budget_and_deadline.budget_errors import exact_error, ranking_bound, ranking_tails
from scipy.stats import norm

import ebr
from ebr.theory import budgets
from ebr.theory.budgets import Plan


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


def test_the_bound_is_the_least_of_its_terms_by_a_plain_loop():
    gaps, plan, sigma = [0.1, 0.15, 0.3, 0.4, 0.4], Plan(6, (4, 2, 1), (30, 80, 300)), 0.7
    for t, (m, c) in enumerate(zip(plan.kept, plan.counts, strict=True)):
        terms = [1.0]
        for k in range(1, m + 1):
            terms.append(sum(math.exp(-c * gap**2 / (4 * sigma**2)) for gap in gaps[k - 1 :]) / (m - k + 1))
            for j in range(1, m - k + 2):
                ways = math.comb(6 - k, j) / math.comb(m - k + 1, j)
                terms.append(ways * math.exp(-c * gaps[k - 1] ** 2 * j / (j + 1) / (2 * sigma**2)))
        found = budget_bounds.round_bounds(gaps, plan, sigma)[t]
        assert found == pytest.approx(math.log(min(terms)), abs=1e-12)


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
    with pytest.raises(ValueError, match=r"^gaps must be a list of numbers above 0"):
        budget_bounds.hardness([0.1, 0.0])


def enumerated(problem, plan):
    """Every table of single Bernoulli rewards and every order of lots: a loop over all of them."""
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
    alike = ranking_tails(ebr.Gaussian([0.5, 0.5, 0.5, 0.5], 0.5), 7)  # any rank is as likely
    assert alike == pytest.approx([3 / 4, 2 / 4, 1 / 4], rel=1e-9)
    tied = ranking_tails(ebr.Bernoulli([0.5, 0.5, 0.5]), 3)
    assert tied == pytest.approx([2 / 3, 1 / 3], rel=1e-9)


def test_an_enumeration_of_many_arms_is_refused():
    plan = Plan(6, (1,), (3,))
    with pytest.raises(ValueError, match=r"^problem must have the plan's 6 arms, at most 5, got 6$"):
        exact_error(ebr.Bernoulli([0.9] + [0.5] * 5), plan)


def test_the_floor_is_below_what_a_last_round_of_two_does():
    # m = 1: the rival at √(2/H₂); it is ahead with Φ(−√(c/H₂)/σ).
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
