"""Elimination with a budget: plans by hand, races against plain loops, and ties."""

import math

import numpy as np
import pytest
from compendium.budget_and_deadline.budgeted import (
    BudgetedElimination,
    SequentialHalving,
    SuccessiveRejects,
    _first,
)
from compendium.budget_and_deadline.budgets import Plan
from oracles import Rewards, Seasons, play

import ebr

MAKERS = [
    lambda budget: BudgetedElimination(budget, 1),
    lambda budget: BudgetedElimination(budget, 2),
    lambda budget: BudgetedElimination(budget, 3, memory="round"),
    lambda budget: BudgetedElimination(budget, 3, "geometric"),
    lambda budget: BudgetedElimination(budget, 2, "geometric", "round"),
    SequentialHalving,
    SuccessiveRejects,
]


def by_hand(rewards, kept, counts, fresh):
    """The arm that one race on a table (arms × pulls) returns; kept and counts as in a plan."""
    arms, before = list(range(len(rewards))), 0
    for keep, count in zip(kept, counts, strict=True):
        start = before if fresh else 0
        total = {arm: sum(rewards[arm][start:count]) for arm in arms}
        arms = sorted(sorted(arms, key=lambda arm: -total[arm])[:keep])
        before = count
    return arms[0]


@pytest.mark.parametrize("make", MAKERS)
def test_races_are_what_a_plain_loop_plays(make):
    generator = np.random.default_rng(1)
    for n_arms, budget in ((2, 20), (5, 77), (9, 200), (16, 900)):
        table = generator.random((20, n_arms, budget))
        algorithm = make(budget)
        plan = algorithm.plan(n_arms)
        asked, arm = play(algorithm, Rewards(table))
        expected = [by_hand(rewards, plan.kept, plan.counts, plan.fresh) for rewards in table]
        assert arm.tolist() == expected
        assert all(sum(ask.sum(axis=1) for ask in asked) == plan.pulls)
        assert plan.pulls <= budget
        assert [int((ask[0] > 0).sum()) for ask in asked] == list(plan.pulled)


@pytest.mark.parametrize("rounds", [1, 2, 3, 6])
@pytest.mark.parametrize("budget", [1000, 1023, 4096])
def test_halving_is_the_geometric_plan_where_the_arms_are_a_power_of_two(rounds, budget):
    ours = BudgetedElimination(budget, rounds, "geometric", "round")
    assert ours.plan(2**rounds) == SequentialHalving(budget).plan(2**rounds)


def test_sequential_halving_by_hand():
    # ⌈log₂ 5⌉ = 3 rounds of 5, 3 and 2 arms: ⌊100/15⌋ = 6, ⌊100/9⌋ = 11 and ⌊100/6⌋ = 16 pulls.
    plan = SequentialHalving(100).plan(5)
    assert (plan.kept, plan.new, plan.fresh) == ((3, 2, 1), (6, 11, 16), True)


def test_successive_rejects_by_hand():
    # l = ½ + ½ + ⅓ + ¼ = 19/12; n_k = ⌈96/(l (5 − k))⌉ = ⌈15.16⌉, ⌈20.2⌉, ⌈30.3⌉.
    plan = SuccessiveRejects(100).plan(4)
    assert (plan.kept, plan.counts, plan.fresh) == ((3, 2, 1), (16, 21, 31), False)


def test_only_fresh_rewards_count_where_memory_is_of_the_round():
    seasons = np.array([[0.9, 0.8, 0.1, 0.0], [0.3, 0.32, 0.0, 0.0]])  # arm 0 leads, then arm 1
    for memory, arm in (("round", 1), ("all", 0)):
        assert play(BudgetedElimination(40, 2, "geometric", memory), Seasons(seasons))[1].tolist() == [arm]


def test_rounds_without_a_pull_are_passed_over():
    # ⌈(B − n)/…⌉ = 1 in all rounds but the last few.
    algorithm = SuccessiveRejects(30)
    asked, _ = play(algorithm, Rewards(np.random.default_rng(3).random((4, 20, 30))))
    assert len(asked) == len(set(algorithm.plan(20).counts)) < 19
    assert all((ask > 0).any() for ask in asked)


def test_ties_are_broken_by_lot():
    # Four arms that all pay 1 are equally likely. A share is five standard errors off once in 10⁶ tests.
    runs = 4000
    arms = ebr.simulate(BudgetedElimination(40, 2), ebr.Bernoulli([1, 1, 1, 1]), runs, seed=1).arm
    shares = np.bincount(arms, minlength=4) / runs
    assert np.abs(shares - 0.25).max() < 5 * math.sqrt(0.25 * 0.75 / runs)


def test_a_game_without_a_generator_draws_fresh_lots():
    # In 100 races where all arms tie, two games agree with probability 4⁻¹⁰⁰.
    ties = Rewards(np.ones((100, 4, 8)))
    assert (play(SequentialHalving(8), ties)[1] != play(SequentialHalving(8), ties)[1]).any()


def test_one_round_is_uniform_and_more_rounds_than_can_drop_an_arm_are_not_used():
    for sizes in ("balanced", "geometric"):
        assert BudgetedElimination(75, 1, sizes).plan(7)[:3] == Plan(7, (1,), (10,))[:3]
    assert BudgetedElimination(1000, 50).plan(4) == BudgetedElimination(1000, 3).plan(4)


@pytest.mark.parametrize("kept", [1, 3, 4])
def test_the_kept_arms_are_the_first_of_a_sorted_row(kept):
    values = np.random.default_rng(2).integers(0, 3, (200, 5)).astype(float)  # with many ties
    order = [sorted(range(5), key=lambda place, row=row: (-row[place], place)) for row in values]
    assert _first(values, kept).tolist() == [sorted(places[:kept]) for places in order]
