"""Two arms, T rounds: a lower bound on every policy's worst ratio, whatever real counts it looks at.

τ, X, z, r and w are as in `two_arms_policies`. By a prior π over gaps and a price λ of errors every
(ε, δ)-PAC policy has sup_r 2wE_r[τ_T] ≥ Σ π 2wE_r[τ_T] + λ (error − δ). The least of these is found by
dynamic programming, in a game that is kinder than the policy's own. A look at a τ between two of the grid
shows X at the *later* one, and a policy that stops there is charged for the *earlier* one. The last look is
not on the grid: its τ is any number, and charged as it is. So the value is a lower bound for all counts, on
every grid, and finer grids have larger ones. What is not bounded is the quadrature over z.
"""

import numpy as np

from compendium.two_arms.two_arms_grid import CELLS, Grid, make_grid, wrong
from compendium.two_arms.two_arms_policies import pace, rate
from compendium.two_rounds.adaptive import Prior
from ebr.arrays import BoolArray, FloatArray
from ebr.theory.divergence import bisected

BELOW, FIRST = 0.02, 60.0  # times ε^{2−2/T}: the lowest τ of the grid, and the last for a first look
STEPS = {2: 1.002, 3: 1.008, 4: 1.012}  # from one τ to the next, by T: what takes seconds
LEAST = 1e-300  # of a cost whose logarithm is taken


def bayes_bound(
    deadline: int, epsilon: float, delta: float, prior: Prior, step: float, cells: int = CELLS
) -> float:
    """The least Σ π E[Ñ_T]/H + λ (error − δ) of all T-round policies, T > 1, from below; gaps in ε, σ = 1.

    What lies outside the grid counts in the policies' favour: there is no error, and no more to pay, at
    z > REACH and beyond the last τ; a first look below the grid is free; one beyond FIRST costs what that τ
    does, and nothing else.
    """
    grid = make_grid(deadline, epsilon, delta, step, cells, 1, BELOW)
    size, first = len(grid.information), grid.first_looks(FIRST)
    charges, paces = charged(grid), pace(grid, prior.gaps, prior.chances)
    later = last_look(grid, charges, paces, prior.price, first if deadline == 2 else size)
    for number in range(deadline - 2, 0, -1):
        later = _one_more(grid, charges, paces, later, first if number == 1 else size)
    values = rate(prior) * charges[:first] + later @ grid.start()
    beyond = rate(prior) * float(grid.information[first - 1])
    return min(float(values.min()), beyond) - prior.price * delta


def charged(grid: Grid) -> FloatArray:
    """The charge for stopping at each τ of the grid: the τ before, 0 for the first."""
    return np.append(0.0, grid.information[:-1])


def last_look(grid: Grid, charges: FloatArray, paces: FloatArray, price: float, rows: int) -> FloatArray:
    """With one look left, the least cost from each τ and z on, as a density against r = 0: rows × z.

    To stop is to err with `risks`. The error after another look h later falls in h with the slope
    g = ½ e^{−τ/2} exp(−h/2 − x²/2h)/√(2πh), x = √τ z, which rises up to h = (√(1 + 4x²) − 1)/2 and falls from
    there: the best h is 0, or where λg has fallen to what a unit of τ costs.
    """
    information, paces = grid.information[:rows, None], paces[:rows]
    lead = np.sqrt(information) * grid.nodes
    level = np.log(np.maximum(paces, LEAST) / price)

    def slow(more: FloatArray) -> BoolArray:
        slope = -(information + more + lead**2 / more + np.log(8 * np.pi * more)) / 2
        return np.asarray(slope <= level)

    steepest = (np.sqrt(1 + 4 * lead**2) - 1) / 2
    more, _ = bisected(steepest, steepest + 1 + np.maximum(-2 * level, 0), slow)
    paid = (information + more - charges[:rows, None]) * paces
    on = paid + price * wrong(information, grid.nodes, information + more)
    return np.minimum(price * grid.risks()[:rows], on)


def _one_more(grid: Grid, charges: FloatArray, paces: FloatArray, later: FloatArray, rows: int) -> FloatArray:
    """The same with one look more, at any τ of the grid; `later` is what it costs from each on."""
    best, later, worth = later[:rows].copy(), later.copy(), np.arange(rows)
    later[-1] = 0
    for lag in range(1, len(later)):
        worth = worth[worth < len(later) - lag]
        paid = (charges[worth + lag] - charges[worth])[:, None] * paces[worth]
        # What is paid grows with the lag: where it is as much as the best, all larger lags are too dear.
        cheap = (paid < best[worth]).any(axis=1)
        worth, paid = worth[cheap], paid[cheap]
        if not len(worth):
            break
        best[worth] = np.minimum(best[worth], paid + later[worth + lag] @ grid.move(lag).T)
    return best
