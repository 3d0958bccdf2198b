"""Sharp EBR's bounds on its pulls: arm by arm, and in H_k (notebook 09)."""

import numpy as np

from compendium.shared.cost_bounds import falls
from ebr.arrays import FloatArray, IntArray
from ebr.theory.problems import Problem


def elimination_rounds(problem: Problem, epsilon: float, widths: FloatArray, k: int = 1) -> IntArray:
    """τ_i: the round, from 0, by which sharp EBR on its event has decided an arm; at most T − 1.

    The first t with 2w_t ≤ Δ_i, or 2w_t ≤ min_j Δ_j + ε, when the race is over.
    """
    gaps = problem.top_gaps(k)
    reach = np.maximum(gaps, gaps.min() + epsilon)
    return np.minimum(falls(reach, 2 * widths), len(widths) - 1)


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

    L is the largest L_t of sharp EBR; with joint looks at Gaussian rewards, what its `longest` says.
    """
    overpull = float((max(start, epsilon) / epsilon) ** (2 / deadline))
    main = constant * problem.sigma**2 * overpull * log_term * problem.complexity(epsilon, k)
    return main + problem.n_arms
