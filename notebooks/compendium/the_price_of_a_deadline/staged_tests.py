"""Two Gaussian arms tested in stages, evaluated exactly: when each stage is reached, and how often it errs.

Means ½ ± d/2, σ = 1: up to a sign every pull of either arm is one draw of N(d/2, 1), so a policy follows the
sum Y of these draws. Everything is a normal integral, by quadrature; nothing is drawn.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from compendium.failure_probability.exact_failures import Looks
from compendium.two_rounds.policies import Policy
from ebr.arrays import FloatArray

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)  # on each panel
FAR = 9.0  # standard deviations of Y: beyond them nothing is integrated


class Stages(NamedTuple):
    """All pulls after each stage; it goes on to the next while low ≤ Y ≤ high (low ≤ 0 ≤ high).

    It recommends the first arm if Y > 0 in the end.
    """

    totals: FloatArray
    low: FloatArray
    high: FloatArray

    def played(self, gap: float) -> tuple[FloatArray, float]:
        """P(stage t is reached), for each t; P(the worse arm is recommended). Gaps below 0 swap the arms."""
        reached, wrong = [1.0], 0.0
        nodes, mass = np.zeros(1), np.ones(1)
        side = math.copysign(1.0, gap)
        steps = np.diff(self.totals, prepend=0.0)
        for t, step in enumerate(steps):
            centre, spread = nodes + step * gap / 2, math.sqrt(step)
            last = t == len(steps) - 1
            edge = 0.0 if last else float(self.low[t] if gap > 0 else self.high[t])
            wrong += float(mass @ ndtr(side * (edge - centre) / spread))
            if last:
                break
            inside, widths = _quadrature(self, t, gap, min(spread, math.sqrt(steps[t + 1])))
            scaled = (inside[:, None] - centre) / spread
            density = np.exp(-(scaled**2) / 2) @ mass / (spread * math.sqrt(2 * math.pi))
            nodes, mass = inside, density * widths
            reached.append(float(mass.sum()))
        return np.array(reached), wrong


Mixture = tuple[tuple[float, Stages], ...]  # lots drawn before the first pull: probability, policy


def _quadrature(stages: Stages, t: int, gap: float, narrowest: float) -> tuple[FloatArray, FloatArray]:
    total = float(stages.totals[t])
    middle, reach = total * gap / 2, FAR * math.sqrt(total)
    low, high = max(float(stages.low[t]), middle - reach), min(float(stages.high[t]), middle + reach)
    if low >= high:  # hardly ever goes on: just inside the bound that is nearer
        low, high = (high - narrowest, high) if middle > high else (low, low + narrowest)
    edges = np.linspace(low, high, 1 + math.ceil((high - low) / narrowest))
    half = (edges[1] - edges[0]) / 2
    return (edges[:-1, None] + half * (1 + NODES)).ravel(), np.tile(half * WEIGHTS, len(edges) - 1)


def from_policy(policy: Policy) -> Stages:
    """A two-round policy with one n₂: after n₁ pulls each, Y is n₁ times the difference of the means."""
    bound = np.array([policy.first * policy.threshold])
    totals = 2 * np.array([policy.first, policy.first + policy.second])
    return Stages(totals, -bound, bound)


def from_looks(looks: Looks) -> Stages:
    """EBR or sharp EBR on two arms, from their looks."""
    bound = looks.pulls[:-1] * looks.reach[:-1]
    return Stages(np.asarray(2.0 * looks.pulls, dtype=np.float64), -bound, bound)


def _ends(mixture: Mixture, gap: float) -> list[tuple[FloatArray, FloatArray]]:
    """For each policy: the totals, and the probability of ending with each of them."""
    found = []
    for weight, stages in mixture:
        reached, _ = stages.played(gap)
        found.append((stages.totals, weight * (reached - np.append(reached[1:], 0.0))))
    return found


def crossings(mixture: Mixture, thresholds: FloatArray, gap: float) -> FloatArray:
    """P_d(A_t): t is the first round with S_t ≥ M_t; a policy that has ended pulls no more."""
    chances = np.zeros(len(thresholds))
    for totals, ends in _ends(mixture, gap):
        for stage, chance in enumerate(ends):
            path = totals[np.minimum(np.arange(len(thresholds)), stage)]
            crossed = path >= thresholds
            if crossed.any():
                chances[crossed.argmax()] += chance
    return chances


def long(mixture: Mixture, pulls: FloatArray, gap: float) -> FloatArray:
    """P_d(S_T ≥ M) for each M."""
    return np.asarray(
        sum((totals >= pulls[:, None]) @ ends for totals, ends in _ends(mixture, gap)), dtype=np.float64
    )


def cost(mixture: Mixture, gap: float) -> float:
    """E_d[Ñ_T]."""
    return float(sum(totals @ ends for totals, ends in _ends(mixture, gap)))


def error(mixture: Mixture, gap: float) -> float:
    """P(the worse arm is recommended), the larger of the two arms' where the policy is not symmetric."""
    return max(sum(weight * stages.played(side * gap)[1] for weight, stages in mixture) for side in (1, -1))
