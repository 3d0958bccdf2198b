"""The scheduling lemma: how much a schedule of batch sizes, fixed ahead, must over-pull on some problem.

A problem needs some number x of pulls, R ≤ x ≤ N; an algorithm of the restricted class can only add up
batches Q⁽¹⁾ ≤ … ≤ Q⁽ᵀ⁾. The lemma bounds inf over Q of sup over x of (the least subset sum above x) / x.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from ebr.arrays import FloatArray

GOLDEN = (1 + math.sqrt(5)) / 2


def overpull(batches: Sequence[float], lowest: float, highest: float) -> float:
    """The lemma's sup_{x ∈ [R, N)} min_{φ(Q̄) > x} φ(Q̄)/x for one schedule Q, exactly: all 2^T subset sums.

    The supremum is taken at the subset sums themselves: between two of them the numerator is constant. The
    end x = N is left out: as printed, with φ > x, a schedule that sums to N would have to exceed N.

    Parameters
    ----------
    batches
        Q, in any order; each at least R, all together at least N.
    lowest, highest
        R and N, 0 < R < N.
    """
    sums = _subset_sums(batches, lowest)
    below = sums[:-1] < highest
    return float((sums[1:][below] / sums[:-1][below]).max())


def _subset_sums(batches: Sequence[float], lowest: float) -> FloatArray:
    sums = np.zeros(1)
    for size in sorted(batches):
        sums = np.concatenate([sums, sums + size])
    sums[0] = lowest  # φ(∅) = R
    sums.sort()
    return sums


def minimax_overpull(rounds: int, ratio: float) -> float:
    """The least over-pull of any schedule with N/R = `ratio`: the root ρ of ρ(1+ρ)^{T−1} = N/R.

    Where T ≥ 2 it is the infimum for N/R ≥ φ^{2T−1}, φ the golden ratio, which is where ρ ≥ φ; the lemma's
    own assumption, N/R > 4^T, lies well inside. Below, the root is no longer reached, and asking is an error.
    """
    least = GOLDEN ** (2 * rounds - 1) if rounds > 1 else 1.0
    if not least <= ratio:
        raise ValueError(f"ratio must be at least {least:.4g} for {rounds} rounds, got {ratio}")

    def excess(log_rho: float) -> float:
        return log_rho + (rounds - 1) * math.log1p(math.exp(log_rho)) - math.log(ratio)

    top = math.log(ratio) / rounds  # ρ ≤ (N/R)^{1/T}
    return math.exp(float(brentq(excess, -1.0, top + 1e-9, xtol=1e-15, rtol=1e-14)))


def minimax_schedule(rounds: int, ratio: float) -> FloatArray:
    """The schedule that reaches `minimax_overpull`, in units of R: Q⁽¹⁾ = ρ, Q⁽ᵗ⁾ = ρ Σ_{s<t} Q⁽ˢ⁾."""
    rho = minimax_overpull(rounds, ratio)
    totals = rho * (1 + rho) ** np.arange(rounds)  # Σ_{s≤t} Q⁽ˢ⁾
    return np.asarray(np.diff(totals, prepend=0.0))


def printed_bound(rounds: int, ratio: float) -> float:
    """The lemma as printed: ⅛ (N/R)^{1/T}."""
    return math.exp(math.log(ratio) / rounds) / 8
