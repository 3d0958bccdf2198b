"""The k best arms: how hard they are to find, H_k, and what races for them cost. k = 1 is the paper's case.

All bounds are for the problem's own σ, a deadline of T rounds, ε and δ.
"""

import math

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.theory.bounds import SCHEDULE_CONSTANT, schedule
from ebr.theory.problems import Problem, bin_edges, falls
from ebr.validation import checked, scale, whole


def top(problem: Problem, k: int) -> IntArray:
    """The k best arms, in the order of their numbers (the first of them where several tie for a place)."""
    if not whole("k", k, 1) < problem.n_arms:
        raise ValueError(f"k must lie in 1 … {problem.n_arms - 1}, below the number of arms, got {k}")
    return np.sort(np.argsort(-problem.means, kind="stable")[:k])


def top_gaps(problem: Problem, k: int) -> FloatArray:
    """Each arm's gap to the other side: μ_i − μ_[k+1] for the k best, μ_[k] − μ_i for the others.

    The k-th and the (k+1)-th share the smallest. For k = 1 these are the paper's Δ_i.
    """
    best = top(problem, k)
    inside = np.isin(np.arange(problem.n_arms), best)
    last, next_one = problem.means[inside].min(), problem.means[~inside].max()
    return np.asarray(np.where(inside, problem.means - next_one, last - problem.means))


@checked()
def top_complexity(problem: Problem, epsilon: float, k: int) -> float:
    """H_k(ν) = Σ_i N_i*, with N_i* = ε^{−2} where Δ_i < ε and (Δ_i + ε)^{−2} elsewhere; H_1 is H."""
    gaps = top_gaps(problem, k)
    return float((np.where(gaps < epsilon, epsilon, gaps + epsilon) ** -2).sum())


@checked()
def decision_rounds(problem: Problem, epsilon: float, widths: FloatArray, k: int) -> IntArray:
    """τ_i: by when sharp EBR, on its event, has decided an arm, counted from 0; T − 1 at the latest.

    The first t with 2w_t ≤ Δ_i, or 2w_t ≤ Δ_[k] + ε, when the race is over.
    """
    gaps = top_gaps(problem, k)
    reach = np.maximum(gaps, gaps.min() + epsilon)
    return np.minimum(falls(reach, 2 * widths), len(widths) - 1)


def sharp_upper_bound(problem: Problem, epsilon: float, widths: FloatArray, pulls: IntArray, k: int) -> float:
    """Sharp EBR for the k best: Ñ_T ≤ Σ_i b_{τ_i}, from its widths w_t and pulls b_t."""
    return float(pulls[decision_rounds(problem, epsilon, widths, k)].sum())


@checked(start=scale)
def sharp_problem_bound(
    problem: Problem,
    epsilon: float,
    deadline: int,
    log_term: float,
    k: int,
    start: float = 0.5,
    constant: float = 36,
) -> float:
    """Sharp EBR for the k best: Ñ_T ≤ 36σ² (w_0/ε)^{2/T} L H_k(ν) + n, L the largest L_t and w_0 ≥ ½."""
    if not start >= 0.5:
        raise ValueError(f"start must be at least 0.5, half the largest gap, got {start}")
    overpull = (max(start, epsilon) / epsilon) ** (2 / deadline)
    main = constant * problem.sigma**2 * overpull * log_term * top_complexity(problem, epsilon, k)
    return float(main + problem.n_arms)


@checked()
def elastic_partition_bound(problem: Problem, epsilon: float, deadline: int, delta: float, k: int) -> float:
    """Algorithm 1 for the k best: Ñ_T ≤ Σ_i ⌈80σ² log(nT/δ) ε^{−2γ_i/T}⌉, γ_i the bin of Δ_i."""
    bins = falls(top_gaps(problem, k), bin_edges(epsilon, deadline))
    return float(np.ceil(schedule(problem, epsilon, deadline, delta)[bins]).sum())


@checked()
def elastic_problem_bound(
    problem: Problem,
    epsilon: float,
    deadline: int,
    delta: float,
    k: int,
    constant: float = 4 * SCHEDULE_CONSTANT,
) -> float:
    """Algorithm 1 for the k best: Ñ_T ≤ 320σ² ε^{−2/T} log(nT/δ) H_k(ν) + n."""
    overpull = epsilon ** (-2 / deadline)
    log_term = math.log(problem.n_arms * deadline / delta)
    main = constant * problem.sigma**2 * overpull * log_term * top_complexity(problem, epsilon, k)
    return float(main + problem.n_arms)
