"""The search for the priors and policies of `two_arms_policies`, as a smooth concave problem.

The dual of a policy's linear program, made smooth by a credit for randomness (`plan`), is maximised over the
prior π and the price λ. Its slope is what the policy itself has, the ratio at each gap and error − δ; so
where it vanishes, prior and policy meet but for the temperature.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize

from compendium.two_arms.two_arms_grid import CELLS, STEP, Grid, gap_grid, make_grid, weight
from compendium.two_arms.two_arms_policies import plan, profile
from compendium.two_rounds.adaptive import Prior
from ebr.arrays import FloatArray

TEMPERATURES = {2: 0.002, 3: 0.004, 4: 0.006}  # of the policies that are kept, by T
# Temperature, step and cells of each run of the search, and its iterations at most: coarse ones first.
COARSE = ((0.1, 1.16, 40, 80), (0.03, 1.16, 40, 80), (0.03, 1.16, 40, 80), (0.01, 1.16, 40, 150))
FINE = ((0.01, 80), (None, 60), (None, 60))  # temperature (None: the last) and iterations, on the usual grid


def search(deadline: int, epsilon: float, delta: float) -> Prior:
    """A prior, on `gap_grid`, with a large Bayes value and a policy near it."""
    gaps, unit = gap_grid(epsilon), 8 * epsilon ** (-2 / deadline)
    place = np.append(np.full(len(gaps), 1 / len(gaps)), 0.3)
    fine = tuple((temperature or TEMPERATURES[deadline], STEP, CELLS, most) for temperature, most in FINE)
    for temperature, step, cells, most in COARSE + fine:
        grid = make_grid(deadline, epsilon, delta, step, cells)
        place, unit = ascend(grid, deadline, epsilon, delta, temperature, place, unit, most)
    return Prior(gaps, place[:-1], unit / delta * place[-1])


def ascend(
    grid: Grid,
    deadline: int,
    epsilon: float,
    delta: float,
    temperature: float,
    place: FloatArray,
    unit: float,
    most: int,
) -> tuple[FloatArray, float]:
    """Maximise D(π, λ) − u (Σπ)²/2, u the `unit`, over π, λ ≥ 0; return (π, λδ/D) with Σπ = 1, and D.

    But for the smoothing D would be homogeneous, so Σπ = 1 is reached where u is D.
    """
    gaps = gap_grid(epsilon)
    tilts, doubled = grid.tilts(gaps), 2 * weight(gaps)

    def descent(place: FloatArray) -> tuple[float, FloatArray]:
        prior = Prior(gaps, place[:-1], unit / delta * place[-1])
        policy, value = plan(grid, deadline, prior, epsilon, temperature)
        law, total = profile(grid, policy), place[:-1].sum()
        ratios = doubled * (law.start + np.tensordot(tilts, law.growth, 2))
        slope = np.append(total - ratios / unit, 1 - law.error / delta)
        return total**2 / 2 - (value - prior.price * delta) / unit, slope

    options = {"maxiter": most, "maxcor": 40, "maxls": 40, "ftol": 1e-13, "gtol": 2e-4}
    bounds = [(0, None)] * len(place)
    found: Any = minimize(  # type: ignore[call-overload]
        descent, place, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    total = float(found.x[:-1].sum())
    value = unit * (total**2 / 2 - found.fun) / total
    return np.append(found.x[:-1] / total, found.x[-1] / total * unit / value), value
