"""Two arms, T looks at counts fixed in advance: stop at a look where the arms are far enough apart.

The class of Algorithm 1 and of sharp racing on two Gaussian arms, evaluated, not sampled; τ, X, z and r are
as in `two_arms_policies`. σ = 1; counts are real numbers.
"""

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtri

from compendium.shared.walks import Looks
from compendium.two_arms.two_arms_grid import weight
from compendium.two_rounds.policies import elastic_reach
from ebr.arrays import FloatArray


def from_bars(information: FloatArray, bars: FloatArray) -> Looks:
    """Looks at X: at look t < T, z = |X|/√τ_t > bar_t stops."""
    return Looks(information, bars * np.sqrt(information[:-1]))


def ratios(looks: Looks, gaps: FloatArray) -> FloatArray:
    """E[Ñ_T]/H for gaps in units of ε."""
    return np.asarray(2 * weight(gaps) * looks.mean_time(gaps))


def worst_ratio(looks: Looks, epsilon: float) -> float:
    """The largest E[Ñ_T]/H on a grid of gaps from 0 to 1."""
    gaps = np.concatenate([[0.0, 0.5, 1 - 1e-9], np.geomspace(1, 1 / epsilon, 400)])
    return float(ratios(looks, gaps).max())


def elastic_looks(deadline: int, epsilon: float, delta: float) -> Looks:
    """Algorithm 1 on two arms, without ceilings."""
    pulls, apart = elastic_reach(deadline, epsilon, delta)
    return from_bars(pulls * epsilon**2 / 2, (apart * np.sqrt(pulls / 2))[:-1])


def sharp_looks(deadline: int, epsilon: float, delta: float) -> Looks:
    """Sharp racing on two Gaussian arms, without ceilings: stop where they are more than w_t − ε apart.

    w_0 = ½, w_t = w_0 (ε/w_0)^{t/T}, δ_t ∝ 1/w_t, b_t = 2z²/w_t² with the normal quantile z at δ_t.
    """
    widths = 0.5 * (epsilon / 0.5) ** (np.arange(1, deadline + 1) / deadline)
    quantiles = -ndtri(delta / widths / (1 / widths).sum())
    pulls = 2 * quantiles**2 / widths**2
    return from_bars(pulls * epsilon**2 / 2, ((widths - epsilon) * np.sqrt(pulls / 2))[:-1])


def best_looks(deadline: int, epsilon: float, delta: float) -> Looks:
    """The PAC looks with the least worst ratio that a local search finds, from a sensible design.

    Unknown are log τ_1, the logarithms of τ_{t+1}/τ_t, the bars and the logarithm v of the ratio: v is least
    subject to log ratio ≤ v at each of many gaps and log error ≤ log δ.
    """
    if deadline == 1:
        return Looks(np.array([float(ndtri(delta)) ** 2]), np.array([]))
    gaps = np.append(0.0, np.geomspace(1, 1 / epsilon, 150))

    def looks(place: FloatArray) -> Looks:
        return from_bars(np.exp(np.cumsum(place[:deadline])), place[deadline:-1])

    def room(place: FloatArray) -> FloatArray:
        found = looks(place)
        return np.append(
            place[-1] - np.log(ratios(found, gaps)), 10 * (math.log(delta) - found.log_wrong(1.0))
        )

    growth = -2 * math.log(epsilon) / deadline
    first, value = math.log(4.0) - growth * (deadline - 1), math.log(12.0) + growth
    start = np.array([first, *[growth] * (deadline - 1), *np.linspace(2.8, 2.3, deadline - 1), value])
    bounds = [(None, None), *[(0.05, None)] * (deadline - 1), *[(0.5, 6)] * (deadline - 1), (None, None)]
    found: Any = minimize(  # type: ignore[call-overload]
        lambda place: place[-1],
        start,
        jac=lambda place: np.eye(1, len(place), len(place) - 1)[0],
        method="SLSQP",
        bounds=bounds,
        constraints={"type": "ineq", "fun": room},
        options={"maxiter": 300, "ftol": 1e-9},
    )
    safe = np.append(found.x[0] + 1e-7, found.x[1:])  # somewhat more information, by the same bars
    return looks(safe)
