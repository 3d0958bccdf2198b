"""The check of X10: bound, closed form, floor and price of elimination plans, and their rules."""

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np
import pandas as pd

from compendium.budget_and_deadline import budget_bounds, budgets, plan_prices
from compendium.budget_and_deadline.budget_errors import exact_error, ranking_bound, ranking_tails
from compendium.budget_and_deadline.budget_schedules import Fixed
from compendium.budget_and_deadline.budgeted import BudgetedElimination
from compendium.budget_and_deadline.budgets import Plan
from compendium.failure_probability.importance import failure
from compendium.shared.findings import Evidence, Finding, counted, exceeds, measured
from compendium.shared.problem_sets import twelve_digits
from ebr.algorithms.game import Algorithm, drive
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Bernoulli, Gaussian, Problem

ROUNDING = 1e-9
NEAR = 0.75  # e^{−1/4}, at H₂ = 4
MOST_ERRORS = 6  # standard ones, that an estimate may be off
Bound = Callable[..., float]
MakeBudgeted = Callable[..., BudgetedElimination]


def gaps_of(problem: Problem) -> FloatArray:
    """The gaps of all arms but the best."""
    return np.asarray(problem.means.max() - np.delete(problem.means, problem.best))


def few_arms() -> Iterator[tuple[Bernoulli, Plan]]:
    """Small problems with plans of every kind, for which exact errors are computed."""
    means = ([0.9, 0.5], [0.7, 0.6, 0.2], [0.95, 0.9, 0.9], [0.6, 0.1, 0.1], [0.8, 0.5, 0.5, 0.1])
    for problem in (Bernoulli(np.array(each)) for each in means):
        n_arms = problem.n_arms
        for budget in (8 * n_arms, 12 * n_arms):
            plans = [budgets.balanced_plan(budget, n_arms, t) for t in range(1, n_arms)]
            plans += [budgets.halving_plan(budget, n_arms), budgets.rejects_plan(budget, n_arms)]
            yield from ((problem, plan) for plan in plans)
    yield Bernoulli(np.array([0.9, 0.5, 0.5])), Plan(3, (2, 1), (12, 60))  # most errors are early
    yield Bernoulli(np.array([0.8, 0.5])), Plan(2, (1,), (60,))
    yield Bernoulli(np.array([0.9, 0.4, 0.4, 0.4])), Plan(4, (3, 1), (9, 16))


def exact_table(bound: Bound = budget_bounds.error_bound) -> pd.DataFrame:
    """Exact errors beside both bounds: columns n_arms, rounds, pulls, exact, ranking, bound."""
    rows = []
    for problem, plan in few_arms():
        errors = exact_error(problem, plan), ranking_bound(problem, plan)
        told = bound(gaps_of(problem), plan, problem.sigma)
        rows.append((plan.n_arms, len(plan.kept), plan.pulls, *errors, told))
    return pd.DataFrame(rows, columns=["n_arms", "rounds", "pulls", "exact", "ranking", "bound"])


def rare_table(runs: int, seed: int, bound: Bound = budget_bounds.error_bound) -> pd.DataFrame:
    """Rare errors on normal arms, all others alike, between two integrals, beside their bound.

    Columns: n_arms, rounds, pulls, least (the best arm is dropped in round 1), most (the ranking bound),
    sampled, spread, races (importance sampling, sound where T = 1) and bound.
    """
    rows = []
    for n_arms, rounds, each in product((2, 8, 32), (1, 2, 3), (20, 60, 150)):
        problem = Gaussian(np.append(0.75, np.full(n_arms - 1, 0.25)), 0.5)
        plan = budgets.balanced_plan(each * n_arms, n_arms, rounds)
        if len(plan.kept) < rounds:
            continue
        least = ranking_tails(problem, plan.counts[0], plan.kept[0])[-1]
        found = failure(Fixed(plan), problem, runs, seed)
        sampled = 10**found.log10
        spread = sampled * found.relative_error
        told = bound(gaps_of(problem), plan, problem.sigma)
        most = ranking_bound(problem, plan)
        rows.append((n_arms, rounds, plan.pulls, least, most, sampled, spread, found.races, told))
    names = ["n_arms", "rounds", "pulls", "least", "most", "sampled", "spread", "races", "bound"]
    return pd.DataFrame(rows, columns=names)


def simulated_table(
    count: int, runs: int, seed: int, make: MakeBudgeted = BudgetedElimination
) -> pd.DataFrame:
    """Races on random problems: n_arms, deadline, budget, wrong, runs, bound, pulls and rounds (the most)."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 15]))
    rows = []
    for index in range(count):
        n_arms, deadline = int(generator.integers(2, 31)), int(generator.integers(1, 9))
        gaps = twelve_digits(np.exp(generator.uniform(math.log(0.1), math.log(0.9), n_arms - 1)))
        means = np.append(gaps.max(), gaps.max() - gaps)
        problem = Bernoulli(means) if index % 2 else Gaussian(means, (0.1, 0.5, 1.0)[index % 3])
        # With these budgets the bound is neither trivial nor too small to be tested.
        scale = problem.sigma**2 * budget_bounds.hardness(gaps)
        budget = int(scale * generator.uniform(20, 80)) + 10 * n_arms
        algorithm = make(budget, deadline)
        race = simulate(algorithm, problem, runs, seed)
        told = budget_bounds.error_bound(gaps, budgets.balanced_plan(budget, n_arms, deadline), problem.sigma)
        wrong = int((~race.correct(algorithm.epsilon)).sum())
        most = int(race.pulls.max()), int(race.rounds.max())
        rows.append((n_arms, deadline, budget, wrong, runs, told, *most))
    names = ["n_arms", "deadline", "budget", "wrong", "runs", "bound", "pulls", "rounds"]
    return pd.DataFrame(rows, columns=names)


def floor_table(floor: Bound = budget_bounds.error_floor) -> pd.DataFrame:
    """The floor of one round beside what m rivals do to the best arm: columns kept, count, exact, floor.

    Only m + 1 arms are near, the best and m rivals at √((m+1)/H₂): the best is dropped if it is the last.
    """
    hardness, rows = 64.0, []
    for kept, count in product((1, 2, 5, 20), (4, 20, 100)):
        means = np.append(0.99, np.full(kept, 0.99 - math.sqrt((kept + 1) / hardness)))
        exact = ranking_tails(Gaussian(means, 0.5), count)[-1]
        plan = Plan(kept + 1, (kept,), (count,))
        rows.append((kept, count, exact, floor(plan, hardness, 0.5)))
    return pd.DataFrame(rows, columns=["kept", "count", "exact", "floor"])


def chains(n_arms: int, rounds: int) -> Iterator[tuple[int, ...]]:
    """Every m_2 > … > m_{T+1} = 1."""
    for inner in combinations(range(2, n_arms), rounds - 1):
        yield (*reversed(inner), 1)


def price_table(least: Bound = plan_prices.least_price) -> pd.DataFrame:
    """All chains of few arms beside the prices: columns n_arms, rounds, least, found, price, floor, every.

    least is the formula, found what the shortest path finds, price the least of all chains; floor and every
    the same for Σ_t (m_t − m_{t+1})/m_{t+1}.
    """
    rows = []
    for n_arms in (2, 3, 5, 8, 12):
        for rounds in range(1, n_arms):
            every = list(chains(n_arms, rounds))
            found = plan_prices.best_sizes(1 / np.arange(2, n_arms + 1), rounds)
            prices = [plan_prices.price(n_arms, kept) for kept in every]
            steps = [zip((n_arms, *kept[:-1]), kept, strict=True) for kept in every]
            floors = [1 + sum(before / after - 1 for before, after in step) for step in steps]
            values = least(n_arms, rounds), plan_prices.price(n_arms, found), min(prices)
            rows.append((n_arms, rounds, *values, plan_prices.floor_price(n_arms, rounds), min(floors)))
    names = ["n_arms", "rounds", "least", "found", "price", "floor", "every"]
    return pd.DataFrame(rows, columns=names)


def closed_forms(closed: Bound = budget_bounds.closed_form_bound) -> pd.DataFrame:
    """The closed form beside the bound on the hardest gaps: n_arms, deadline, budget, closed, bound.

    A pull less than the next multiple of n is where whole counts cost most: all of Σ m_t, but for one.
    """
    sizes, rows = product((2, 5, 30, 100), (1, 2, 4, 7), (5, 50, 500), (4.0, 100.0)), []
    for n_arms, deadline, size, hardness in sizes:
        budget = (size + 1) * n_arms - 1
        plan = budgets.balanced_plan(budget, n_arms, deadline)
        bound = budget_bounds.error_bound(budget_bounds.hardest_gaps(n_arms, hardness), plan)
        rows.append((n_arms, deadline, budget, closed(budget, n_arms, deadline, hardness), bound))
    return pd.DataFrame(rows, columns=["n_arms", "deadline", "budget", "closed", "bound"])


def unlike(make: MakeBudgeted = BudgetedElimination, tables: int = 100) -> tuple[int, int]:
    """On how many tables of rewards T = 1 is not uniform allocation, and n = 2^T not sequential halving.

    Both are played by hand, as their sources have them.
    """
    generator = np.random.default_rng(np.random.SeedSequence([1, 16]))
    differ = [0, 0]
    for rounds in (1, 2, 3, 4):
        n_arms, budget = 2**rounds, 40 * 2**rounds * rounds
        rewards = generator.random((tables, n_arms, budget))
        uniform = rewards[:, :, : budget // n_arms].sum(axis=2).argmax(axis=1)
        differ[0] += int((_played(make(budget, 1), rewards) != uniform).sum())
        halving = _played(make(budget, rounds, "geometric", "round"), rewards)
        differ[1] += sum(halving[run] != _halved(rewards[run], budget, rounds) for run in range(tables))
    return differ[0], int(differ[1])


def _halved(rewards: FloatArray, budget: int, rounds: int) -> int:
    """Sequential halving on one table (arms × pulls), for a power of two arms."""
    arms, used = list(range(len(rewards))), 0
    for _ in range(rounds):
        pulls = budget // (len(arms) * rounds)
        mean = {arm: rewards[arm, used : used + pulls].mean() for arm in arms}
        arms = sorted(arms, key=lambda arm, mean=mean: -mean[arm])[: len(arms) // 2]  # type: ignore[misc]
        used += pulls
    return arms[0]


def _played(algorithm: Algorithm, rewards: FloatArray) -> IntArray:
    """The arms that an algorithm recommends on tables of rewards (tables × arms × pulls)."""
    so_far = np.concatenate([np.zeros((*rewards.shape[:2], 1)), rewards.cumsum(axis=2)], axis=2)
    used = np.zeros(rewards.shape[:2], dtype=np.int64)

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal used
        before, used = used, used + pulls
        ends = [np.take_along_axis(so_far, count[:, :, None], axis=2)[:, :, 0] for count in (before, used)]
        return np.asarray(ends[1] - ends[0])

    return drive(algorithm.play(rewards.shape[1], len(rewards)), respond)


def guarantee(
    exact: pd.DataFrame,
    rare: pd.DataFrame,
    races: pd.DataFrame,
    floors: pd.DataFrame,
    price: pd.DataFrame,
    closed: pd.DataFrame,
    differ: tuple[int, int],
) -> Finding:
    """Check X10 on the tables of this module: the bound, its closed form, the floor, the price, the rules."""
    ratios = _ratios(exact, rare, floors, price, closed)
    random = f"on {len(races)} problems"
    # Two arms in one round: nothing but the rounding of counts is lost. The shortest path is the best chain.
    pair = closed[(closed["n_arms"] == 2) & (closed["deadline"] == 1)]
    near = float((pair["bound"] / pair["closed"]).min())
    best = float((price["found"] / price["price"]).min())
    ratios |= {
        ("pulls over budget, at most", random): (races["pulls"] / races["budget"]).max(),
        ("rounds over deadline, at most", random): (races["rounds"] / races["deadline"]).max(),
    }
    evidence = [Evidence(what, float(value), where, allowed="≤ 1") for (what, where), value in ratios.items()]
    one = rare[rare["rounds"] == 1]
    off = ((one["sampled"] - one["least"]) / one["spread"]).abs()
    row = one.iloc[int(np.argmax(off))]
    where, runs = f"T = 1, error {row['least']:.1e}, the farthest off", int(row["races"])
    sampled, spread = float(row["sampled"] / row["least"]), float(row["spread"] / row["least"])
    evidence += [
        measured("importance-sampled error over the integral", sampled, spread, runs, where, "1"),
        counted("wrong arms", int(races["wrong"].sum()), int(races["runs"].sum()), random, "≤ bound on each"),
        Evidence("bound over its closed form, at least", near, "n = 2, T = 1", allowed=f"≥ {NEAR}"),
        Evidence("tables on which T = 1 is not uniform allocation", differ[0], "n = 2 … 16", allowed="0"),
        Evidence("tables where n = 2^T is not sequential halving", differ[1], "n = 2 … 16", allowed="0"),
    ]
    counts = races[["wrong", "runs", "bound"]].itertuples(index=False, name=None)
    above = any(exceeds(wrong, runs, bound, len(races)) for wrong, runs, bound in counts if bound < 1)
    within = all(value <= 1 + ROUNDING for value in ratios.values())
    within = within and near >= NEAR and best >= 1 - ROUNDING
    holds = within and bool((off < MOST_ERRORS).all()) and not above and differ == (0, 0)
    return Finding("X10", holds, tuple(evidence), "proved")


def _ratios(
    exact: pd.DataFrame, rare: pd.DataFrame, floors: pd.DataFrame, price: pd.DataFrame, closed: pd.DataFrame
) -> dict[tuple[str, str], float]:
    """Ratios that must not exceed 1, by what they are and where."""
    one_round = exact[exact["rounds"] == 1]
    few, chains = f"{len(exact)} plans on 2 to 4 arms", f"{len(price)} n and T, n ≤ 12"
    alike = f"{len(rare)} plans, down to {rare['least'].min():.0e}"
    parts = {
        ("exact error over its bound, at most", few): exact["exact"] / exact["bound"],
        ("exact error over the ranking bound, at most", few): exact["exact"] / exact["ranking"],
        ("ranking bound over exact error where T = 1, at most", few): one_round["ranking"]
        / one_round["exact"],
        ("rare error, at least, over its bound, at most", alike): rare["least"] / rare["bound"],
        ("bound over its closed form, at most", f"{len(closed)} n, T, B, H₂"): closed["bound"]
        / closed["closed"],
        ("floor over exact error, at most", f"{len(floors)} m and c"): floors["floor"] / floors["exact"],
        ("least Λ by formula over that of all chains, at most", chains): price["least"] / price["price"],
        ("Λ of the shortest path over that of all chains, at most", chains): price["found"] / price["price"],
        ("floor's price by formula over that of all chains, at most", chains): price["floor"]
        / price["every"],
    }
    return {key: float(part.max()) for key, part in parts.items()}
