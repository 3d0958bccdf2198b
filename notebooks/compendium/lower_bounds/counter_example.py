"""A policy that refutes Theorem 3 where it has no room, and what is left of "matches Theorem 1"."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr

from compendium.shared import cost_bounds
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding
from compendium.shared.problem_sets import nonempty_partitions

SIGMA = 0.5
PLACES = ((1000, 200), (10**4, 2000), (10**5, 20000))  # n and −log₁₀ δ where ε = ½, T = 3, γ = (1, …, 1)
LowerBound = Callable[..., float]


class Confirmation(NamedTuple):
    """Find a leader and confirm that its mean is above 1 − ε: then no arm can be ε better. Else go passive.

    `first` pulls of every arm, `second` fresh pulls of the leader, `last` fresh pulls of every arm. `cost`
    bounds E[Ñ_3] for any gaps of at least g and any σ-sub-Gaussian rewards, by Hoeffding.
    """

    first: int
    second: int
    last: int
    cost: float
    gaussian_cost: float  # the same for Gaussian arms at the smallest gaps, by normal tails
    log_error: float  # log P(wrong), at most, for Gaussian arms by normal tails


def confirmation(n_arms: int, epsilon: float, gap: float, log_inverse: float) -> Confirmation:
    """The cheapest such policy that is (ε, δ)-PAC, given log(1/δ); g > 1 − ε.

    An arm with μ_i ≤ μ_[1] − ε ≤ 1 − ε has a fresh mean σ √(2 log(2/δ)/second) above 1 − ε with probability
    at most δ/2, and is returned in the end with probability at most δ/2.
    """
    half = log_inverse + math.log(2)
    last = math.ceil(4 * SIGMA**2 * (half + math.log(n_arms - 1)) / epsilon**2)
    first = np.arange(1, 60)[:, None]
    second = np.ceil(2 * half * (SIGMA / (gap - 1 + epsilon)) ** 2 * np.linspace(1.01, 3, 400))
    spare = gap - 1 + epsilon - SIGMA * np.sqrt(2 * half / second)
    wrong_leader = (n_arms - 1) * np.exp(-first * (gap / SIGMA) ** 2 / 4)
    doubt = np.minimum(wrong_leader + np.exp(-second * (spare / SIGMA) ** 2 / 2), 1)
    cost = n_arms * first + second + doubt * n_arms * last
    row, column = np.unravel_index(int(cost.argmin()), cost.shape)
    b, more = int(first[row, 0]), int(second[column])
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    leads = (log_ndtr(nodes + gap * math.sqrt(b) / SIGMA) * (n_arms - 1)).clip(-700)
    unsure = 1 - float(np.exp(leads) @ weights) / float(weights.sum())
    unsure += float(norm.sf(spare[column] * math.sqrt(more) / SIGMA))
    late = math.log(n_arms - 1) + float(log_ndtr(-epsilon * math.sqrt(last / 2) / SIGMA))
    error = float(np.logaddexp(log_ndtr(-math.sqrt(2 * half)), late))
    gaussian = n_arms * b + more + unsure * n_arms * last
    return Confirmation(b, more, last, float(cost[row, column]), gaussian, error)


def without_room(
    n_arms: int, digits: int, proved: LowerBound = cost_bounds.partition_lower_bound
) -> dict[str, Any]:
    """The policy and the bounds at ε = ½, T = 3, σ = ½, γ = (1, …, 1) and δ = 10^−digits.

    A row as in `expected_pulls.policies`. `matched` is Theorem 1 over the cost, in units of
    log(nT/δ)/log(1/2.4δ).
    """
    epsilon, deadline, log_inverse = 0.5, 3, digits * math.log(10)
    gap, n = epsilon ** (1 / deadline), n_arms
    policy = confirmation(n, epsilon, gap, log_inverse)
    # L = log(1/2.4δ) multiplies every bound, and δ may underflow: so evaluate at δ = e^{−1}/2.4, where L = 1.
    scale, place = log_inverse - math.log(2.4), ([1] * n, epsilon, deadline, math.exp(-1) / 2.4, SIGMA)
    return {
        "policy": f"confirms its leader; n = {n}, T = 3, ε = ½, γ = (1, …, 1), δ = 10^−{digits}",
        "pac": policy.log_error <= -log_inverse,
        "cost": policy.cost,
        "gaussian": policy.gaussian_cost,
        "lower": scale * proved(*place),
        "printed": scale * cost_bounds.partition_lower_bound(*place, printed=True),
        "second": scale * SIGMA**2 / 2 * n * gap**-2,
        "matched": 80 * SIGMA**2 * scale * n * gap**-2 / policy.cost,
    }


def has_room(gamma: tuple[int, ...], epsilon: float, deadline: int) -> bool:
    """ε^{γ_i/T} + ε ≤ 1 for every γ_i < T."""
    return all(epsilon ** (k / deadline) + epsilon <= 1 for k in gamma if k < deadline)


def matches_theorem_1(
    constant: float = 160, room: Callable[[tuple[int, ...], float, int], bool] = has_room
) -> Finding:
    """Check C39: Theorem 1's bound over Theorem 3's is a constant times log(nT/δ)/log(1/2.4δ), given room."""
    worst, where = 0.0, ""
    many = [((1,) * 100, 3), ((2,) * 100, 3), ((1,) * 98 + (3, 3), 3), ((5,) * 98 + (6, 6), 6)]
    few = [(g, t) for n, t in ((2, 2), (2, 6), (3, 3), (4, 3)) for g in nonempty_partitions(n, t)]
    for (gamma, deadline), epsilon, delta in product(
        [*few, *many], (0.5, 0.2, 0.05, 1e-3), (0.15, 0.01, 1e-6)
    ):
        if not room(gamma, epsilon, deadline):
            continue
        upper = 80 * SIGMA**2 * sum(epsilon ** (-2 * k / deadline) for k in gamma)
        lower = cost_bounds.partition_lower_bound(gamma, epsilon, deadline, delta, SIGMA)
        ratio = upper / lower * math.log(1 / (2.4 * delta))
        if ratio > worst:
            worst, where = ratio, f"n = {len(gamma)}, T = {deadline}, ε = {epsilon:g}, δ = {delta:g}"
    # Theorem 1 has 80 where Theorem 3 has 2, and (ε^{γ_i/T} + ε)^{−2} is at least ¼ ε^{−2γ_i/T}.
    what, unit = "Theorem 1 over a lower bound, at most", "in log(nT/δ)/log(1/2.4δ)"
    rows = [Evidence(what, worst, f"with room, {where}; {unit}", allowed="≤ 4 · 80/2 = 160")]
    rest = [without_room(*place) for place in PLACES]
    rows += [
        Evidence("Theorem 1 over a policy's cost", row["matched"], row["policy"], allowed="≤ 160")
        for row in rest
    ]
    matched = all(row["matched"] <= constant for row in rest if row["pac"])
    return Finding("C39", worst <= constant and matched, tuple(rows), "proved", worst <= constant)
