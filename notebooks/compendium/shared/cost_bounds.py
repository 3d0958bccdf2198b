"""The paper's bounds on cost: functions that name their theorem, as printed and as corrected."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ebr.algorithms.elastic import SCHEDULE_CONSTANT
from ebr.arrays import FloatArray, IntArray
from ebr.theory.divergence import relative_entropy
from ebr.theory.problems import Problem
from ebr.validation import checked, require, several, whole


@checked()
def partition(problem: Problem, epsilon: float, deadline: int, k: int = 1) -> IntArray:
    """γ(ν) of Definition 1: γ_i = j where Δ_i ∈ [ε^{j/T}, ε^{(j−1)/T}), from 1 (easy) to T (hard).

    Bin 1 has all Δ ≥ ε^{1/T}, bin T all Δ < ε^{(T−1)/T}; at T = 1, where the printed bins overlap, bin 1
    has every gap. For k > 1, Δ_i is that of `Problem.top_gaps`.
    """
    return 1 + falls(problem.top_gaps(k), epsilon ** (np.arange(1, deadline) / deadline))


def falls(values: FloatArray, edges: FloatArray) -> IntArray:
    """How many of the edges each value lies below."""
    return np.asarray(len(edges) - np.searchsorted(np.sort(edges), values, side="right"))


@checked(deadline=partial(whole, at_least=1, at_most=10**9))  # a formula makes no schedule
def hardest_complexity(gamma: Sequence[int], epsilon: float, deadline: int) -> float:
    """The supremum of H over P_γ: Σ_i (ε^{γ_i/T} + ε)^{−2}, ε^{−2} for γ_i = T, where gaps go below ε."""
    listed = isinstance(gamma, Sequence) or np.ndim(gamma) == 1
    require(listed and len(gamma) > 1, "gamma", "have an index for each of at least 2 arms", gamma)
    index = np.asarray([whole("gamma", k, 1) for k in gamma])
    hardest = index.max()
    require(hardest <= deadline, "gamma", f"lie in 1 … {deadline}, the deadline", tuple(gamma))
    twice = np.count_nonzero(index == hardest) > 1
    require(twice, "gamma", "have its largest index twice or P_γ is empty", tuple(gamma))
    smallest = epsilon ** (index / deadline)
    return float((np.where(index == deadline, epsilon, smallest + epsilon) ** -2.0).sum())


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
def partition_upper_bound(
    problem: Problem, epsilon: float, deadline: int, delta: float, printed: bool = False, k: int = 1
) -> float:
    """Theorem 1: Ñ_T ≤ Σ_i ⌈80σ² log(nT/δ) ε^{−2γ_i/T}⌉; printed without the ceilings (E2)."""
    pulls = schedule(problem, epsilon, deadline, delta)[partition(problem, epsilon, deadline, k) - 1]
    return float((pulls if printed else np.ceil(pulls)).sum())


@checked()
def hardest_upper_bound(
    problem: Problem, epsilon: float, deadline: int, delta: float, printed: bool = False
) -> float:
    """Theorem 1, second form: Ñ_T ≤ 320σ² log(nT/δ) sup_{P_γ} H + n; printed without n (E2)."""
    worst = hardest_complexity(partition(problem, epsilon, deadline).tolist(), epsilon, deadline)
    main = 320 * problem.sigma**2 * _log_term(problem, deadline, delta) * worst
    return main + (0 if printed else problem.n_arms)


@checked()
def problem_upper_bound(
    problem: Problem, epsilon: float, deadline: int, delta: float, printed: bool = False, k: int = 1
) -> float:
    """Theorem 2: Ñ_T ≤ 320σ² ε^{−2/T} log(nT/δ) H_k(ν) + n; printed with 640 and without n (E2)."""
    overpull = float(epsilon ** (-2 / deadline))
    main = (640 if printed else 320) * problem.sigma**2 * overpull * _log_term(problem, deadline, delta)
    return main * problem.complexity(epsilon, k) + (0 if printed else problem.n_arms)


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
    8σ² L (ε^{γ/T} + ε)^{−2}. Every other arm costs 2σ² L (ε^{γ_i/T} + ε)^{−2}, but nothing unless there is
    *room* for all of them to rise ε above the best: ε^{γ_i/T} + ε ≤ 1 for all γ_i < T.
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

    On average each is recommended with probability 1/m. But if one is raised by aε and the others are lowered
    by (1−a)ε, it must be recommended with 1 − δ. So K = d(1/m, 1−δ) / (a² + (m−1)(1−a)²). The best a is
    (m−1)/m, where K = d(1/m, 1−δ) m/(m−1); `raised` is a smaller a, for less room.
    """
    if not 1 / arms < 1 - delta:
        return 0.0
    share = 1 - 1 / arms if raised is None else raised
    return float(relative_entropy(1 - 1 / arms, delta)) / (share**2 + (arms - 1) * (1 - share) ** 2)


@checked()
def hpcm(delta: float) -> float:
    """Lemma HPCM's constant c = ⅔ log(1/2δ): P(Ñ_i ≥ c σ²/(Δ_i + ε)²) ≥ 1/6."""
    return 2 / 3 * math.log(1 / (2 * delta))
