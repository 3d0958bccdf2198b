"""Theorem 1 on E′, the event that Hoeffding's intervals ± D′ cover at every count of the schedule."""

import math

from compendium.shared.adversary import fixed_count_ratio
from ebr.algorithms.elastic import SCHEDULE_CONSTANT
from ebr.theory.confidence import SELF_NORMALISED


def recommended_gap(n_arms: int, deadline: int, delta: float, shrink: float = 1.0) -> float:
    """How far from the best Algorithm 1's arm can be on E′, in units of ε.

    E′ is the event that Hoeffding's intervals ± D′ cover at every count of the schedule; P(E′) ≥ 1 − δ.
    (k−1)(1/k − 2(1−r)y)⁺ + 2ry with k = n∧T, r = `fixed_count_ratio` and y = √((4 + 2 log 2)/80). At most
    k − 1 rounds can lose the best survivor, each to an arm at most η − 2(D−D′) below it, and the argmax of
    the last round adds 2D′; D = yε there, and more in earlier rounds. A ceiling can only make D smaller, to
    `shrink` times as much. The bound is convex in `shrink` and below 1 at both its ends, 0 and 1: that
    proves Theorem 1's guarantee, which the paper's own event E does not.
    """
    k = min(n_arms, deadline)
    r = fixed_count_ratio(n_arms, deadline, delta)
    y = shrink * math.sqrt(SELF_NORMALISED / SCHEDULE_CONSTANT)
    return (k - 1) * max(1 / k - 2 * (1 - r) * y, 0) + 2 * r * y


def elimination_need(
    n_arms: int, deadline: int, delta: float, shrink: float = 1.0, tolerance: float = 1.0
) -> float:
    """The gap needed on E′ to drop an arm with Δ_i ≥ g = ε^{γ_i/T} in round γ_i, in units of g.

    2(1+r)y + (k−1)(u/k − 2(1−r)y)⁺ − u/k with the letters of `recommended_gap` and u = ε/g, the `tolerance`:
    twice D + D′ must fit into the gap to the best survivor, which is Δ_i less what k − 1 rounds can lose, and
    η. Convex in `shrink` and in u, and below 1 at their ends: so Theorem 1 needs no more than 80 pulls.
    """
    k = min(n_arms, deadline)
    r = fixed_count_ratio(n_arms, deadline, delta)
    y = shrink * math.sqrt(SELF_NORMALISED / SCHEDULE_CONSTANT)
    return 2 * (1 + r) * y + (k - 1) * max(tolerance / k - 2 * (1 - r) * y, 0) - tolerance / k
