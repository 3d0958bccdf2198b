"""Every bound of the paper as a function that names its theorem, as printed and as corrected.

All are for the problem's own σ, a deadline of T rounds, ε and δ. Some hold for races for the k best arms,
too: k = 1 is the paper's case.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.theory.confidence import SELF_NORMALISED, fixed_count_ratio
from ebr.theory.divergence import bernoulli_kl, relative_entropy
from ebr.theory.problems import Problem, falls, hardest_complexity
from ebr.validation import checked, positive, probability, scale, several, whole

SCHEDULE_CONSTANT = 80  # Algorithm 1 and Theorem 1
RUNTIME_CONSTANT = 16 * SELF_NORMALISED  # 86.2, what Lemma "runtime" needs on the event E in place of 80 (E1)


def _log_term(problem: Problem, deadline: int, delta: float) -> float:
    """L = log(nT/δ)."""
    return math.log(problem.n_arms * deadline / delta)


@checked()
def schedule(problem: Problem, epsilon: float, deadline: int, delta: float) -> FloatArray:
    """80σ² log(nT/δ) ε^{−2t/T} for t = 1 … T: Algorithm 1's pulls of a survivor, before the ceiling."""
    number = np.arange(1, deadline + 1)
    first = SCHEDULE_CONSTANT * problem.sigma**2 * _log_term(problem, deadline, delta)
    return np.asarray(first * epsilon ** (-2 * number / deadline))


@checked()
def runtime(
    gap: FloatArray, problem: Problem, deadline: int, delta: float, constant: float = RUNTIME_CONSTANT
) -> FloatArray:
    """Lemma "runtime": on E an arm with this gap to a survivor is gone after c σ² log(nT/δ) / Δ² pulls.

    The paper prints c = 80; four deviations must fit into the gap, which takes c = 16 (4 + 2 log 2) (E1).
    """
    return np.asarray(constant * problem.sigma**2 * _log_term(problem, deadline, delta) / np.square(gap))


@checked()
def partition_upper_bound(
    problem: Problem, epsilon: float, deadline: int, delta: float, printed: bool = False, k: int = 1
) -> float:
    """Theorem 1: Ñ_T ≤ Σ_i ⌈80σ² log(nT/δ) ε^{−2γ_i/T}⌉; printed without the ceilings (E2)."""
    pulls = schedule(problem, epsilon, deadline, delta)[problem.partition(epsilon, deadline, k) - 1]
    return float((pulls if printed else np.ceil(pulls)).sum())


@checked()
def hardest_upper_bound(
    problem: Problem,
    epsilon: float,
    deadline: int,
    delta: float,
    printed: bool = False,
    constant: float = 320,
) -> float:
    """Theorem 1, second form: Ñ_T ≤ 320σ² log(nT/δ) sup_{P_γ} H + n; printed without n (E2)."""
    gamma = problem.partition(epsilon, deadline)
    worst = hardest_complexity(gamma.tolist(), epsilon, deadline)
    main = constant * problem.sigma**2 * _log_term(problem, deadline, delta) * worst
    return main + (0 if printed else problem.n_arms)


@checked()
def problem_upper_bound(
    problem: Problem,
    epsilon: float,
    deadline: int,
    delta: float,
    printed: bool = False,
    constant: float = 0,
    k: int = 1,
) -> float:
    """Theorem 2: Ñ_T ≤ 320σ² ε^{−2/T} log(nT/δ) H_k(ν) + n; printed with 640 and without n (E2)."""
    constant = constant or (640 if printed else 320)
    overpull = float(epsilon ** (-2 / deadline))
    main = constant * problem.sigma**2 * overpull * _log_term(problem, deadline, delta)
    return main * problem.complexity(epsilon, k) + (0 if printed else problem.n_arms)


@checked()
def elimination_rounds(problem: Problem, epsilon: float, widths: FloatArray, k: int = 1) -> IntArray:
    """τ_i: the round, from 0, by which sharp EBR on its event has decided an arm; at most T − 1.

    The first t with 2w_t ≤ Δ_i, or 2w_t ≤ min_j Δ_j + ε, when the race is over.
    """
    gaps = problem.top_gaps(k)
    reach = np.maximum(gaps, gaps.min() + epsilon)
    return np.minimum(falls(reach, 2 * widths), len(widths) - 1)


def sharp_upper_bound(
    problem: Problem, epsilon: float, widths: FloatArray, pulls: IntArray, k: int = 1
) -> float:
    """Sharp EBR's Theorem 1: Ñ_T ≤ Σ_i b_{τ_i}, from sharp EBR's widths w_t and pulls b_t."""
    return float(pulls[elimination_rounds(problem, epsilon, widths, k)].sum())


@checked(start=scale)
def sharp_problem_bound(
    problem: Problem,
    epsilon: float,
    deadline: int,
    log_term: float,
    start: float = 0.5,
    constant: float = 36,
    k: int = 1,
) -> float:
    """Sharp EBR's Theorem 2: Ñ_T ≤ 36σ² (max(w_0, ε)/ε)^{2/T} L H_k(ν) + n, for w_0 ≥ ½ and gaps up to 1.

    L is the largest L_t of `SharpElasticBatchRacing`.
    """
    if not start >= 0.5:
        raise ValueError(f"start must be at least 0.5, half the largest gap, got {start}")
    overpull = float((max(start, epsilon) / epsilon) ** (2 / deadline))
    main = constant * problem.sigma**2 * overpull * log_term * problem.complexity(epsilon, k)
    return main + problem.n_arms


@checked()
def partition_lower_bound(
    gamma: Sequence[int],
    epsilon: float,
    deadline: int,
    delta: float,
    sigma: float = 0.5,
    printed: bool = False,
) -> float:
    """Theorem 3: on some ν ∈ P_γ an (ε, δ)-PAC algorithm has at least this E[Ñ_T]; for Gaussian rewards.

    Printed as 2σ² L sup_{P_γ} H with L = log(1/2.4δ): false (E17, E18). True is the sum of two terms. The
    m arms of γ_i = T cost 2σ² m ε^{−2} K, K of `told_apart`; or, if m = 0, the two closest arms cost
    8σ² L (ε^{γ/T} + ε)^{−2}. Every other arm costs 2σ² L (ε^{γ_i/T} + ε)^{−2} if there is *room* for it to
    rise ε above the best: if ε^{γ_i/T} + ε ≤ 1 for all γ_i < T. Without room this second term is not there.
    """
    index = np.asarray(gamma)
    supremum = hardest_complexity(gamma, epsilon, deadline)  # checks γ, ε and T
    log_term = max(math.log(1 / (2.4 * delta)), 0.0)
    unit = 2 * sigma**2
    if printed:
        return unit * log_term * supremum
    smallest, last = epsilon ** (index / deadline), int((index == deadline).sum())
    easy = np.sort(smallest[index < deadline])
    room = 1 - easy.max() if len(easy) else 1.0
    if last:
        hard = last * epsilon**-2 * told_apart(last, delta, min(room / epsilon, 1 - 1 / last))
    else:
        hard = log_term * 4 * (easy[0] + epsilon) ** -2
        easy = easy[2:]
    rest = log_term * float(((easy + epsilon) ** -2).sum()) if room >= epsilon else 0.0
    return float(unit * (hard + rest))


@checked(arms=several)
def told_apart(arms: int, delta: float, raised: float | None = None) -> float:
    """K of Theorem 3, corrected: m equally good arms cost 2σ² m ε^{−2} K together.

    On average they are recommended with 1/m each, yet each must be with 1 − δ once it is raised by aε and
    the others are lowered by (1−a)ε: K = d(1/m, 1−δ) / (a² + (m−1)(1−a)²). The best a is (m−1)/m, which
    makes it d(1/m, 1−δ) m/(m−1); `raised` is a where there is less room.
    """
    if not 1 / arms < 1 - delta:
        return 0.0
    share = 1 - 1 / arms if raised is None else raised
    return float(bernoulli_kl(1 - 1 / arms, delta)) / (share**2 + (arms - 1) * (1 - share) ** 2)


def least_reach(root: FloatArray | float, delta: FloatArray | float) -> FloatArray:
    """Lemma HPCM by Neyman and Pearson: P(Ñ_i ≥ c σ²/(Δ_i + ε)²) ≥ 1 − δ − Φ(Φ⁻¹(δ) + √c), from √c.

    No event that is decided by so few pulls of arm i has more than Φ(Φ⁻¹(δ) + √c) under ν if it has at most δ
    once arm i has moved by Δ_i + ε; and a wrong recommendation has at most δ. Two arms that move by half of
    it each, past one another, say the same of all pulls: P(Ñ_T ≥ N) with √c = (Δ + ε)√N/2σ.
    """
    from scipy.special import ndtr, ndtri

    return np.asarray(1 - delta - ndtr(ndtri(delta) + root))


@checked()
def passive_pulls(n_arms: int, epsilon: float, delta: float, sigma: float = 0.5) -> float:
    """Section 5's N̄_ε(δ) = 80σ² log(n/δ) / ε²: pulls of each arm that suffice in a single round."""
    return SCHEDULE_CONSTANT * sigma**2 * math.log(n_arms / delta) / epsilon**2


@checked(shrink=probability)
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


@checked(shrink=probability, tolerance=probability)
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


@checked()
def hpcm(delta: float) -> float:
    """Lemma HPCM's constant c = ⅔ log(1/2δ): P(Ñ_i ≥ c σ²/(Δ_i + ε)²) ≥ 1/6."""
    return 2 / 3 * math.log(1 / (2 * delta))


@checked(probability=probability)
def hpcm_at(probability: float, delta: float) -> float:
    """The same proof with p in place of 1/6: c = 2 d(1 − p − δ, δ), for 1 − p − δ > δ."""
    return 2 * float(relative_entropy(1 - probability - delta, delta)) if 1 - probability > 2 * delta else 0.0


@checked(times=partial(whole, at_least=0), value=positive, base=positive)
def iterated_log(times: int, value: float, base: float = math.e) -> float:
    """ilog^{(r)}(a): ilog^{(0)}(a) = a and ilog^{(r)}(a) = max(log ilog^{(r−1)}(a), 1)."""
    if not base > 1:
        raise ValueError(f"base must be above 1, got {base}")
    for _ in range(times):
        before, value = value, max(math.log(value) / math.log(base), 1.0)
        if value == before:  # and so for ever
            break
    return value
