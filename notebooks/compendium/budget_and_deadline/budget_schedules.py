"""Schedules for a budget and a deadline: algorithms compared, their costs, what a tuned plan gains."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from compendium.budget_and_deadline import budget_bounds, budgets, plan_prices
from compendium.budget_and_deadline.budget_errors import ranking_bound, ranking_tails
from compendium.budget_and_deadline.budgeted import (
    BudgetedElimination,
    Planned,
    SequentialHalving,
    SuccessiveRejects,
)
from compendium.budget_and_deadline.budgets import Plan
from compendium.shared.findings import interval
from compendium.shared.problem_sets import twelve_digits
from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray
from ebr.simulation.simulate import simulate
from ebr.simulation.sweep import Point
from ebr.theory.problems import Bernoulli, Gaussian, Problem, setup_1, setup_2


@dataclass(frozen=True)
class Fixed(Planned):
    """Elimination on a plan of one's own."""

    fixed: Plan
    deadline = None

    def plan(self, n_arms: int) -> Plan:
        """The plan, whatever the number of arms."""
        return self.fixed


def hard_problems(n_arms: int = 100) -> dict[str, Bernoulli]:
    """Both setups, one arm ahead of equal ones, and Δ_(i) = 0.05 √i, where every i has the same i/Δ_(i)²."""
    roots = np.append(0, 0.05 * np.sqrt(np.arange(2, n_arms + 1)))
    return {
        "Setup 1": setup_1(n_arms),
        "Setup 2": setup_2(n_arms),
        "all others alike": Bernoulli(np.append(0.6, np.full(n_arms - 1, 0.5))),
        "gaps 0.05 √i": Bernoulli(twelve_digits(0.9 - roots)),
    }


def algorithms(budget: int, deadlines: Iterable[int]) -> dict[str, Algorithm]:
    """The algorithms that are compared at equal budget."""
    ours: dict[str, Algorithm] = {f"T = {t}": BudgetedElimination(budget, t) for t in deadlines}
    return ours | {
        "sequential halving": SequentialHalving(budget),
        "successive rejects": SuccessiveRejects(budget),
    }


def with_intervals(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `sweep` with the share of wrong arms and its 99 % interval."""
    ends = [interval(wrong, runs) for wrong, runs in zip(table["failures"], table["runs"], strict=True)]
    low, high = np.array(ends).T
    return table.assign(share=table["failures"] / table["runs"], low=low, high=high)


def sketch(budget: float, n_arms: int, deadline: int, hardness: float) -> float:
    """2T n^{1/T} exp(−B / (8σ² T n^{1/T} H₂)) with σ = ½: proved where every B/(T m_t) is whole."""
    cost = deadline * float(n_arms ** (1 / deadline))
    return 2 * cost * math.exp(-budget / (2 * cost * hardness))


def budget_for(bound: Callable[[int], float], error: float, guess: int) -> int:
    """The smallest budget (but for two parts in a thousand) whose bound is no larger than `error`."""
    low = high = guess
    while bound(low) <= error:
        low //= 2
    while low == high or bound(high) > error:
        low, high = (low, 2 * high) if low == high else (high, 2 * high)
    while high - low > max(1, high // 500):
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= error else (middle, high)
    return high


def tuned_plan(problem: Gaussian, budget: int, deadline: int) -> Plan:
    """The plan of somebody who knows the problem: the fewest pulls with equal terms of the ranking bound.

    A survivor must be pulled c(m) times for the best arm to be outside the m best with probability η/T only;
    sizes are then a shortest path, and η is what the budget allows.
    """
    n_arms = problem.n_arms
    counts = np.unique(np.geomspace(max(1, budget // (20 * n_arms)), budget // 2, 40).astype(int))
    tails = np.array([ranking_tails(problem, int(count)) for count in counts])
    logs = np.minimum.accumulate(np.log(np.maximum(tails, 1e-300)), axis=0)

    def plan(log_share: float) -> tuple[tuple[int, ...], FloatArray, float]:
        wanted = [np.interp(-log_share, -logs[:, m], counts) for m in range(n_arms - 1)]
        weights = twelve_digits([float(f"{count:.4g}") for count in wanted])
        kept = plan_prices.best_sizes(weights, deadline)
        chosen = weights[np.array(kept) - 1]
        return kept, chosen, _spent(n_arms, kept, chosen)

    low, high = -200.0, 0.0
    for _ in range(25):
        middle = (low + high) / 2
        low, high = (low, middle) if plan(middle)[2] <= budget else (middle, high)
    kept, weights, _ = plan(high)
    return budgets.plan_for(budget, n_arms, kept, weights)


def schedules(problems: Mapping[str, tuple[Problem, int]], deadlines: Iterable[int]) -> list[Point]:
    """Four schedules at equal budget and deadline on normal arms: points for `sweep`."""
    points = []
    for (name, (problem, budget)), deadline in product(problems.items(), deadlines):
        normal = Gaussian(problem.means, 0.5)
        made: dict[str, Algorithm] = {
            "geometric, fresh": BudgetedElimination(budget, deadline, "geometric", "round"),
            "geometric": BudgetedElimination(budget, deadline, "geometric"),
            "balanced": BudgetedElimination(budget, deadline),
            "tuned to the problem": Fixed(tuned_plan(normal, budget, deadline)),
        }
        labels = {"problem": name, "budget": budget, "deadline": deadline}
        points += [Point(labels | {"schedule": who}, algorithm, normal) for who, algorithm in made.items()]
    return points


def prices(n_arms: int, deadlines: Iterable[int]) -> pd.DataFrame:
    """Pulls that a plan needs for each nat of log 1/error, in units of 2σ²H₂: bounds and the floor, over T.

    Columns: deadline, sketch, balanced (2Λ), sharpest (the least with ρ), floor.
    """
    weights = 1 / np.array([rate(kept) for kept in range(1, n_arms)])
    rows = []
    for t in deadlines:
        kept = plan_prices.best_sizes(weights, t)
        sharpest = _spent(n_arms, kept, weights[np.array(kept) - 1])
        balanced = 2 * plan_prices.price(n_arms, budgets.balanced_sizes(n_arms, t))
        rows.append((t, 4 * t * n_arms ** (1 / t), balanced, sharpest, plan_prices.floor_price(n_arms, t)))
    return pd.DataFrame(rows, columns=["deadline", "sketch", "balanced", "sharpest", "floor"])


def rate(kept: int) -> float:
    """ρ(m) = max_j (m + 2 − j) j/(j+1): the exponent of the bound where m are kept, times 2σ²H₂/c."""
    size = np.arange(1, kept + 1)
    return float(((kept + 2 - size) * size / (size + 1)).max())


def needed(
    problems: Mapping[str, Problem], deadlines: Iterable[int], error: float, runs: int, seed: int
) -> pd.DataFrame:
    """The budget with which the ranking bound is no larger than `error`, for normal arms and balanced plans.

    Columns: problem, deadline, budget, ratio (to T = 1); failures of so many runs, share and its interval.
    """
    rows = []
    for name, problem in problems.items():
        normal = Gaussian(problem.means, 0.5)
        budget = int(budget_bounds.hardness(np.sort(normal.gaps)[1:]))
        for t in deadlines:
            budget = budget_for(partial(_ranked, normal, t), error, guess=budget)
            wrong = ~simulate(BudgetedElimination(budget, t), normal, runs, seed).correct(Planned.epsilon)
            rows.append((name, t, budget, int(wrong.sum()), runs))
    table = pd.DataFrame(rows, columns=["problem", "deadline", "budget", "failures", "runs"])
    first = table.groupby("problem")["budget"].transform("first")
    return with_intervals(table.assign(ratio=table["budget"] / first))


def _ranked(problem: Problem, deadline: int, budget: int) -> float:
    return ranking_bound(problem, budgets.balanced_plan(budget, problem.n_arms, deadline))


def promised(n_arms: int, deadlines: Iterable[int], error: float, hardness: float) -> pd.DataFrame:
    """The budget, in units of σ²H₂, with which each bound promises such an error on every problem of that H₂.

    Columns: deadline, sketch (its own bound), geometric fresh, geometric and balanced (`error_bound`), best
    (sizes and counts chosen for that bound, each round with an equal share of the error).
    """
    gaps, unit = budget_bounds.hardest_gaps(n_arms, hardness), 0.25 * hardness
    bounds: dict[str, Callable[[int, int], float]] = {
        "sketch": lambda t, b: sketch(b, n_arms, t, hardness),
        "geometric fresh": lambda t, b: budget_bounds.error_bound(gaps, budgets.geometric_plan(b, n_arms, t)),
        "geometric": lambda t, b: budget_bounds.error_bound(
            gaps, budgets.geometric_plan(b, n_arms, t, fresh=False)
        ),
        "balanced": lambda t, b: budget_bounds.error_bound(gaps, budgets.balanced_plan(b, n_arms, t)),
    }
    rows = []
    for t in deadlines:
        found = {
            name: budget_for(partial(bound, t), error, int(200 * unit)) for name, bound in bounds.items()
        }
        promises = {name: budget / unit for name, budget in found.items()}
        rows.append({"deadline": t} | promises | {"best": best_budget(n_arms, t, error)})
    return pd.DataFrame(rows)


def best_budget(n_arms: int, deadline: int, error: float) -> float:
    """The least budget, in units of σ²H₂, of a plan each of whose rounds has a bound of error/T."""
    gaps = budget_bounds.hardest_gaps(n_arms, 1.0)
    counts = [_count_for(gaps, kept, math.log(error / deadline)) for kept in range(1, n_arms)]
    kept = plan_prices.best_sizes(counts, deadline)
    return 2 * _spent(n_arms, kept, np.array(counts)[np.array(kept) - 1])


def _count_for(gaps: FloatArray, kept: int, log_error: float) -> float:
    """c/2σ² with which the bound of a round that keeps so many is e^log_error."""
    low, high = 1e-3, 1e3
    for _ in range(30):
        middle = math.sqrt(low * high)
        enough = budget_bounds.log_round_bound(gaps, kept, middle) <= log_error
        low, high = (low, middle) if enough else (middle, high)
    return high


def _spent(n_arms: int, kept: tuple[int, ...], counts: FloatArray) -> float:
    """Σ_t (m_t − m_{t+1}) c_t, with all of m_T in round T."""
    return float((np.array([n_arms, *kept[:-1]]) - np.array([*kept[:-1], 0])) @ counts)
