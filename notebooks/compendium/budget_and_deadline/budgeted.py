"""Elimination with a budget of pulls: plans for a deadline, sequential halving, successive rejects."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from compendium.budget_and_deadline.budgets import (
    Plan,
    balanced_plan,
    geometric_plan,
    halving_plan,
    rejects_plan,
)
from ebr.algorithms.game import Algorithm, Game, Known, Rng
from ebr.arrays import FloatArray, IntArray
from ebr.validation import MOST_PULLS, check_fields, whole

_budget: Callable[[str, Any], int] = partial(whole, at_least=1, at_most=MOST_PULLS)


class Planned(Algorithm):
    """Base class of the algorithms that follow a plan.

    They look for the best arm itself with a given number of pulls. They have no δ and need no σ.
    In round t every survivor is pulled c_t − c_{t−1} times, and the m_{t+1} of largest sum are kept.
    Ties are broken by an order of the arms drawn at random once for each game.
    """

    epsilon = 1e-9  # any arm but the best is wrong
    delta = None  # the error depends on the budget
    sigma = np.inf  # any rewards are allowed

    def plan(self, n_arms: int) -> Plan:
        """How the budget is spent on so many arms."""
        raise NotImplementedError

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Eliminate; how many arms are kept does not depend on the rewards, only which ones."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        plan = self.plan(n_arms)
        generator = generator or np.random.default_rng()
        survivors = generator.permuted(np.tile(np.arange(n_arms), (replicates, 1)), axis=1)
        totals = np.zeros((replicates, n_arms))
        for kept, new in zip(plan.kept, plan.new, strict=True):
            if new:
                pulls = np.zeros((replicates, n_arms), dtype=np.int64)
                np.put_along_axis(pulls, survivors, new, axis=1)
                sums = yield pulls
                totals = sums if plan.fresh else totals + sums
            values = np.take_along_axis(totals, survivors, axis=1)
            survivors = np.take_along_axis(survivors, _first(values, kept), axis=1)
        arm: IntArray = survivors[:, 0]
        return arm


def _first(values: FloatArray, kept: int) -> IntArray:
    """Positions of the `kept` largest values of each row, in order; of equal values the first ones."""
    places = np.arange(kept)
    if kept + 1 == values.shape[1]:  # only the last of the smallest values is left out
        out = kept - values[:, ::-1].argmin(axis=1)
        return np.asarray(places + (places >= out[:, None]))
    return np.sort(np.argsort(-values, axis=1, kind="stable")[:, :kept], axis=1)


@dataclass(frozen=True)
class BudgetedElimination(Planned):
    """The best arm with B pulls in T rounds: eliminate on a plan made in advance.

    Parameters
    ----------
    budget
        B, the number of pulls at most.
    deadline
        T, the number of rounds at most; n − 1 of them are enough.
    sizes
        "balanced": m_{t+1} + 1 = 2((n+1)/2)^{1−t/T} arms are kept, and c_t ∝ 1/(m_{t+1} + 1), which makes
        the bound on the error the same in every round. "geometric": ⌈n^{1−t/T}⌉ arms, B/T pulls a round.
    memory
        "all": arms are ranked by all their rewards so far; "round": by those of the round.

    Notes
    -----
    T = 1 is uniform allocation; balanced with T = n − 1 is successive rejects but for rounding; geometric
    with memory "round" and n = 2^T is sequential halving.
    """

    budget: int
    deadline: int
    sizes: str = "balanced"
    memory: str = "all"

    def __post_init__(self) -> None:
        check_fields(self, budget=_budget, sizes=("balanced", "geometric"), memory=("all", "round"))

    def plan(self, n_arms: int) -> Plan:
        """How many arms are kept after each round, and how often a survivor has been pulled by then."""
        make = balanced_plan if self.sizes == "balanced" else geometric_plan
        return make(self.budget, n_arms, self.deadline)._replace(fresh=self.memory == "round")


@dataclass(frozen=True)
class SequentialHalving(Planned):
    """Sequential halving (Karnin, Koren and Somekh, ICML 2013): ⌈log₂ n⌉ rounds of equal cost.

    Every survivor is pulled ⌊B/(m ⌈log₂ n⌉)⌋ times, afresh, and the better half of the m arms is kept.
    """

    budget: int
    deadline = None

    def __post_init__(self) -> None:
        check_fields(self, budget=_budget)

    def plan(self, n_arms: int) -> Plan:
        """⌈m/2⌉ are kept each time."""
        return halving_plan(self.budget, n_arms)


@dataclass(frozen=True)
class SuccessiveRejects(Planned):
    """Successive rejects (Audibert, Bubeck and Munos, COLT 2010): n − 1 rounds, each drops one arm."""

    budget: int
    deadline = None

    def __post_init__(self) -> None:
        check_fields(self, budget=_budget)

    def plan(self, n_arms: int) -> Plan:
        """⌈(B − n) / (l (n + 1 − k))⌉ pulls of each survivor by round k, l = ½ + Σ_{i=2}^n 1/i."""
        return rejects_plan(self.budget, n_arms)
