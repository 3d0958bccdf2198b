"""Two arms: for some T, ε and δ a prior, and a policy within a few per cent of the prior's bound.

The search takes minutes, so priors and the prices that make policies of them are in a file. Their values are
computed from them (`two_arms_policies`); `renew` makes the file anew.
"""

import json
import math
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from compendium.shared.problem_sets import twelve_digits
from compendium.shared.walks import Looks
from compendium.two_arms.fixed_looks import best_looks, from_bars
from compendium.two_arms.two_arms_grid import CELLS, make_grid, weight
from compendium.two_arms.two_arms_policies import Plan, Profile, plan, profile
from compendium.two_arms.two_arms_prior import STEPS, bayes_bound
from compendium.two_arms.two_arms_search import TEMPERATURES, search
from compendium.two_rounds.adaptive import Prior
from ebr.arrays import FloatArray

FILE = "two_arms_solutions.json"
EPSILONS, DELTAS, DEADLINES = (0.1, 0.03, 0.01, 0.003, 0.001), (0.01, 0.001), (2, 3, 4)
SAFETY = 1e-5  # of δ: more than the quadrature's own error
RARE = 1e-9  # smaller chances in a prior are left out


class Solution(NamedTuple):
    """A prior with the price λ of its bound, the price that makes the policy PAC, and looks fixed in advance.

    Gaps are in units of ε. The looks are the best that a search has found.
    """

    deadline: int
    epsilon: float
    delta: float
    prior: Prior
    price: float
    looks: Looks

    def bound(self, step: float | None = None, cells: int = CELLS) -> float:
        """The prior's Bayes value: no T-round policy has a smaller worst ratio E[Ñ_T]/H; σ = 1."""
        if self.deadline == 1:
            return 2 * float(weight(self.prior.gaps)[-1]) * float(ndtri(self.delta)) ** 2
        step = step or STEPS[self.deadline]
        return bayes_bound(self.deadline, self.epsilon, self.delta, self.prior, step, cells)

    def plan(self) -> Plan:
        """The policy, on `make_grid(deadline, epsilon, delta)`."""
        grid = make_grid(self.deadline, self.epsilon, self.delta)
        prior = self.prior._replace(price=self.price)
        return plan(grid, self.deadline, prior, self.epsilon, TEMPERATURES[self.deadline])[0]

    def profile(self, inside: int = 2) -> Profile:
        """What the policy does, with so many nodes in each cell of z."""
        return profile(make_grid(self.deadline, self.epsilon, self.delta, inside=inside), self.plan())


@lru_cache
def solutions() -> dict[tuple[int, float, float], Solution]:
    """All of the file, by T, ε and δ."""
    rows = json.loads(files("compendium.two_arms").joinpath(FILE).read_text("utf-8"))
    return {(row["deadline"], row["epsilon"], row["delta"]): _solution(row) for row in rows}


def solution(deadline: int, epsilon: float, delta: float) -> Solution:
    """The solution for a (T, ε, δ) of the file; for T = 1 that of every ε and δ.

    T = 1: all lies in the widest gap, and λ is such that the Bayes value is least at τ = z_δ².
    """
    if deadline == 1:
        quantile, widest = -float(ndtri(delta)), 1 / epsilon
        density = math.exp(-(quantile**2) / 2) / math.sqrt(2 * math.pi)
        price = 4 * (1 + widest) ** 2 * quantile / density
        prior = Prior(np.array([widest]), np.ones(1), price)
        return Solution(1, epsilon, delta, prior, price, Looks(np.array([quantile**2]), np.array([])))
    return solutions()[deadline, epsilon, delta]


@lru_cache(8)
def strategy(deadline: int, epsilon: float, delta: float) -> tuple[FloatArray, Plan]:
    """The τ of the looks and the plan for any ε and δ that the file covers: those of the next smaller ones.

    In units of ε a policy depends on ε only through its widest gap. So a policy for a smaller ε is PAC for
    this one, too, and its worst ratio is over more gaps; and error ≤ δ′ is error ≤ δ if δ′ ≤ δ.
    """
    if deadline == 1:
        return np.array([float(ndtri(delta)) ** 2]), Plan(np.ones(1), ())
    smaller = max(one for one in EPSILONS if one <= epsilon), max(one for one in DELTAS if one <= delta)
    found = solution(deadline, *smaller)
    return make_grid(deadline, found.epsilon, found.delta).information, found.plan()


def settle(deadline: int, epsilon: float, delta: float, prior: Prior, looks: Looks) -> Solution:
    """Round a prior for the file, and find the price at which its policy's error is just below δ."""
    kept = prior.chances > RARE
    chances = np.array([float(f"{chance:.10f}") for chance in prior.chances[kept]])
    chances[-1] += 1 - chances.sum()
    rounded = Prior(twelve_digits(prior.gaps[kept]), twelve_digits(chances), float(f"{prior.price:.12g}"))
    draft = Solution(deadline, epsilon, delta, rounded, rounded.price, looks)

    def excess(log_price: float) -> float:
        return math.log(draft._replace(price=math.exp(log_price)).profile().error / (delta * (1 - SAFETY)))

    middle = math.log(rounded.price)
    price = math.exp(float(brentq(excess, middle - 0.3, middle + 0.3, xtol=1e-10)))
    return draft._replace(price=float(f"{price:.12g}"))


def renew(path: Path, epsilons: Iterable[float] = EPSILONS) -> None:
    """Search for all solutions anew and write the file; it takes most of an hour."""
    rows = []
    for deadline, delta, epsilon in product(DEADLINES, DELTAS, epsilons):
        prior, looks = search(deadline, epsilon, delta), best_looks(deadline, epsilon, delta)
        rows.append(_row(settle(deadline, epsilon, delta, prior, looks)))
    path.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def _row(found: Solution) -> dict[str, Any]:
    return {
        "deadline": found.deadline,
        "epsilon": found.epsilon,
        "delta": found.delta,
        "gaps": found.prior.gaps.tolist(),
        "chances": found.prior.chances.tolist(),
        "bound's price": found.prior.price,
        "policy's price": found.price,
        "looks": [float(f"{number:.9g}") for number in found.looks.times],
        "bars": [float(f"{number:.9g}") for number in found.looks.high / np.sqrt(found.looks.times[:-1])],
    }


def _solution(row: dict[str, Any]) -> Solution:
    prior = Prior(np.array(row["gaps"]), np.array(row["chances"]), row["bound's price"])
    looks = from_bars(np.array(row["looks"]), np.array(row["bars"]))
    return Solution(row["deadline"], row["epsilon"], row["delta"], prior, row["policy's price"], looks)
