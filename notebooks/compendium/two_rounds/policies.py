"""Two arms, two rounds, one length of the second: policies evaluated exactly, not sampled.

A policy pulls each of two Gaussian arms n₁ times, looks at the difference x of the means, stops where |x| > a
and else pulls each n₂ times more; it recommends the arm with the larger pooled mean. Errors and costs are
normal integrals, and n₂ is chosen so that the policy is (ε, δ)-PAC. Counts are real numbers; σ = 1, as all
costs scale with σ². Where n₂ depends on x: see `adaptive`.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, ndtr, ndtri

from compendium.shared.looks import START
from compendium.shared.walks import log_ratio
from ebr.algorithms.elastic import SCHEDULE_CONSTANT
from ebr.arrays import FloatArray
from ebr.theory.confidence import SELF_NORMALISED

ORDER = 120  # nodes below 0 and above: where n₂ is small the integrand is a step near 0
NONE = 1e-9  # n₂ where the first round is enough
FARTHEST = 20.0  # of the log odds of the share that early stops have
ROOM = 1e-6  # of the pulls in all: more than the quadrature moves them


class Policy(NamedTuple):
    """n₁ and n₂ pulls of each arm, and the threshold a on the difference of means after the first round."""

    first: float
    second: float
    threshold: float

    def continues(self, gap: FloatArray | float) -> FloatArray:
        """P(|x| ≤ a): the probability of a second round, for x ~ N(Δ, 2/n₁)."""
        scale = math.sqrt(self.first / 2)
        gap = np.asarray(gap)
        return np.asarray(ndtr((self.threshold - gap) * scale) - ndtr((-self.threshold - gap) * scale))

    def cost(self, gap: FloatArray | float) -> FloatArray:
        """E[Ñ_2] = 2n₁ + 2n₂ P(|x| ≤ a)."""
        return 2 * self.first + 2 * self.second * self.continues(gap)

    def error(self, gap: float) -> float:
        """P(the worse arm is recommended): x < −a, or |x| ≤ a and the pooled difference is below 0."""
        return _errors(self.first, self.threshold, gap)(self.second)


def _errors(first: float, threshold: float, gap: float) -> Callable[[float], float]:
    """The error by n₂; the law of W = x n₁/2 is taken on |x| ≤ a or as much of it as has any mass."""
    time, root = first / 2, math.sqrt(first / 2)
    edge = time * min(threshold, abs(gap) + 9 / root)
    law = START.within(time, (-edge, 0.0, edge), ORDER)
    masses, early = law.masses * np.exp(log_ratio(law, gap)), float(ndtr((-threshold - gap) * root))

    def error(second: float) -> float:
        below = ndtr(-(law.nodes + gap * second / 2) / math.sqrt(second / 2))
        return early + float(masses @ below)

    return error


def complexity(gap: FloatArray | float, epsilon: float) -> FloatArray:
    """H(ν) of two arms: 2ε^{−2} where Δ < ε, 2(Δ+ε)^{−2} elsewhere."""
    gap = np.asarray(gap)
    return np.asarray(2 * np.where(gap < epsilon, epsilon, gap + epsilon) ** -2.0)


def pac_policy(first: float, spent: float, epsilon: float, delta: float) -> Policy:
    """The policy with this n₁ whose early stops err with a share `spent` of δ on Δ = ε, and the least n₂.

    The error falls as the gap grows, so Δ = ε is the worst problem that has a wrong answer.
    """
    scale = math.sqrt(first / 2)
    threshold = max(-float(ndtri(spent * delta)) / scale - epsilon, 1e-12)
    quantiles = (min(float(ndtri(miss)), 0.0) for miss in (delta, (1 - spent) * delta))
    needed, enough = (2 * (quantile / epsilon) ** 2 for quantile in quantiles)
    if first >= needed:
        return Policy(first, NONE, threshold)
    error = _errors(first, threshold, epsilon)

    def excess(log_second: float) -> float:
        return error(math.exp(log_second)) - delta

    # Who never stops errs less with as many pulls; who does errs with `spent` and what those miss, at most.
    least, most = max((1 - ROOM) * needed - first, NONE), (1 + ROOM) * enough - first
    second = math.exp(float(brentq(excess, math.log(least), math.log(most), xtol=1e-10)))
    return Policy(first, second, threshold)


def worst_ratio(policy: Policy, epsilon: float, chance: float | None = None) -> float:
    """The supremum over Δ ∈ [0, ½] of E[Ñ_2]/H; given a chance, of what Ñ_2/H reaches with it."""
    gaps, weights = problem_grid(epsilon)
    if chance is None:
        return float((policy.cost(gaps) / weights).max())
    reached = 2 * policy.first + 2 * policy.second * (policy.continues(gaps) >= chance)
    return float((reached / weights).max())


@lru_cache(maxsize=16)
def problem_grid(epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Gaps from 0 to ½, dense on a log scale from ε up, and both sides of the jump of H at ε; and H there."""
    gaps = np.concatenate([[0.0, epsilon * (1 - 1e-9), epsilon], np.geomspace(epsilon, 0.5, 2000)])
    return gaps, complexity(gaps, epsilon)


def best_policy(epsilon: float, delta: float, chance: float | None = None) -> tuple[Policy, float]:
    """The PAC policy of the family with the least worst ratio, and that ratio."""

    def policy(place: FloatArray) -> Policy:
        # Where the share changes nothing the search goes astray.
        share = float(np.clip(place[1], -FARTHEST, FARTHEST))
        return pac_policy(math.exp(place[0]), float(expit(share)), epsilon, delta)

    def objective(place: FloatArray) -> float:
        return math.log(worst_ratio(policy(place), epsilon, chance))

    starts = [(math.log(factor / epsilon), share) for factor in (0.3, 2, 10) for share in (-2.0, 1.0)]
    options = {"xatol": 1e-5, "fatol": 1e-8, "maxiter": 400}
    found: list[Any] = [
        minimize(objective, np.array(start), method="Nelder-Mead", options=options)  # type: ignore[call-overload]
        for start in starts
    ]
    best = min(found, key=lambda result: float(result.fun))
    return policy(best.x), math.exp(best.fun)


def elastic_reach(deadline: int, epsilon: float, delta: float) -> tuple[FloatArray, FloatArray]:
    """Algorithm 1 on two arms, without ceilings: b_t, and the 2D_t − ε/(2∧T) apart at which it stops."""
    log_term = math.log(2 * deadline / delta)
    pulls = SCHEDULE_CONSTANT * log_term * epsilon ** (-2 * np.arange(1, deadline + 1) / deadline)
    return pulls, 2 * np.sqrt(SELF_NORMALISED * log_term / pulls) - epsilon / min(2, deadline)


def ebr_policy(epsilon: float, delta: float) -> Policy:
    """Algorithm 1 at n = T = 2."""
    (first, both), (threshold, _) = (part.tolist() for part in elastic_reach(2, epsilon, delta))
    return Policy(first, both - first, threshold)


def sharp_policy(epsilon: float, delta: float) -> Policy:
    """Sharp racing, w_0 = 1 and δ_t = δ/2: b_t = 4 log(2/δ)/w_t², unrounded; stops where |x| > w_1 − ε."""
    widths = math.sqrt(epsilon), epsilon
    first, both = (4 * math.log(2 / delta) / width**2 for width in widths)
    return Policy(first, both - first, widths[0] - epsilon)
