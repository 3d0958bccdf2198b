"""Two Gaussian arms tested in stages, evaluated exactly: pulls, events and errors; σ = 1."""

import numpy as np

from compendium.shared.walks import Looks
from compendium.two_rounds.policies import Policy
from ebr.arrays import FloatArray

Mixture = tuple[tuple[float, Looks], ...]  # one policy is drawn before the first pull: probability, policy


def totals(looks: Looks) -> FloatArray:
    """All pulls by each look: t = b/2 after b pulls of either arm."""
    return 4 * looks.times


def from_policy(policy: Policy) -> Looks:
    """A two-round policy with one n₂: after n₁ pulls each, W is n₁/2 times the difference of the means."""
    times = np.array([policy.first, policy.first + policy.second]) / 2
    return Looks(times, times[:1] * policy.threshold)


def _ends(mixture: Mixture, gap: float) -> list[tuple[FloatArray, FloatArray]]:
    """For each policy: the totals, and the probability of ending with each of them."""
    found = []
    for weight, looks in mixture:
        reached = looks.reached(gap)
        found.append((totals(looks), weight * (reached - np.append(reached[1:], 0.0))))
    return found


def crossings(mixture: Mixture, thresholds: FloatArray, gap: float) -> FloatArray:
    """P_d(A_t): t is the first round with S_t ≥ M_t; a policy that has ended pulls no more."""
    chances = np.zeros(len(thresholds))
    for pulls, ends in _ends(mixture, gap):
        for stage, chance in enumerate(ends):
            path = pulls[np.minimum(np.arange(len(thresholds)), stage)]
            crossed = path >= thresholds
            if crossed.any():
                chances[crossed.argmax()] += chance
    return chances


def long(mixture: Mixture, thresholds: FloatArray, gap: float) -> FloatArray:
    """P_d(S_T ≥ M) for each M."""
    return np.asarray(
        sum((pulls >= thresholds[:, None]) @ ends for pulls, ends in _ends(mixture, gap)), dtype=np.float64
    )


def cost(mixture: Mixture, gap: float) -> float:
    """E_d[Ñ_T]."""
    return float(sum(weight * 4 * looks.mean_time(gap) for weight, looks in mixture))


def error(mixture: Mixture, gap: float) -> float:
    """P(the worse arm is recommended), the larger of the two arms' where the policy is not symmetric."""
    mirrored = [(weight, Looks(looks.times, -looks.lowest, -looks.high)) for weight, looks in mixture]
    return max(sum(weight * looks.wrong(gap) for weight, looks in side) for side in (mixture, mirrored))
