"""The scheduling lemma: how much a schedule of batch sizes, fixed ahead, must over-pull on some problem.

A problem needs some number x of pulls, R ≤ x ≤ N; an algorithm of the restricted class can only add up
batches Q⁽¹⁾ ≤ … ≤ Q⁽ᵀ⁾. The lemma bounds inf over Q of sup over x of (the least subset sum above x) / x.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from ebr.arrays import FloatArray
from ebr.validation import checked, numbers, positive, rounds, scale

GOLDEN = (1 + math.sqrt(5)) / 2
MOST_ROUNDS = 24  # 2^24 subset sums are 128 MB
MOST_POWER = 1475  # of the golden ratio that is a number


@checked(lowest=scale, highest=scale)
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
    sums = _subset_sums(_checked(batches, lowest, highest), lowest)
    below = sums[:-1] < highest
    return float((sums[1:][below] / sums[:-1][below]).max())


def _subset_sums(sizes: FloatArray, lowest: float) -> FloatArray:
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums, sums + size])
    sums[0] = lowest  # φ(∅) = R
    sums.sort()
    return sums


@checked(rounds=rounds, ratio=positive)
def minimax_overpull(rounds: int, ratio: float) -> float:
    """The least over-pull of any schedule with N/R = `ratio`: the root ρ of ρ(1+ρ)^{T−1} = N/R.

    Where T ≥ 2 it is the infimum for N/R ≥ φ^{2T−1}, φ the golden ratio, which is where ρ ≥ φ; the lemma's
    own assumption, N/R > 4^T, lies well inside. Below, the root is no longer reached, and asking is an error.
    """
    power = 2 * rounds - 1 if rounds > 1 else 0
    least = GOLDEN**power if power < MOST_POWER else math.inf
    if not least <= ratio:
        words = f"{least:.4g}" if power < MOST_POWER else f"{GOLDEN:.4g}^{power}"
        raise ValueError(f"ratio must be at least {words} for {rounds} rounds, got {ratio}")

    def excess(log_rho: float) -> float:
        return log_rho + (rounds - 1) * math.log1p(math.exp(log_rho)) - math.log(ratio)

    top = math.log(ratio) / rounds  # ρ ≤ (N/R)^{1/T}
    return math.exp(float(brentq(excess, -1.0, top + 1e-9, xtol=1e-15, rtol=1e-14)))


@checked(rounds=rounds, ratio=positive)
def minimax_schedule(rounds: int, ratio: float) -> FloatArray:
    """The schedule that reaches `minimax_overpull`, in units of R: Q⁽¹⁾ = ρ, Q⁽ᵗ⁾ = ρ Σ_{s<t} Q⁽ˢ⁾."""
    rho = minimax_overpull(rounds, ratio)
    totals = rho * (1 + rho) ** np.arange(rounds)  # Σ_{s≤t} Q⁽ˢ⁾
    return np.asarray(np.diff(totals, prepend=0.0))


@checked(rounds=rounds, ratio=positive)
def printed_bound(rounds: int, ratio: float) -> float:
    """The lemma as printed: ⅛ (N/R)^{1/T}."""
    return math.exp(math.log(ratio) / rounds) / 8


def _checked(batches: Sequence[float], lowest: float, highest: float) -> FloatArray:
    sizes = np.sort(numbers("batches", batches))
    if not lowest < highest:
        raise ValueError(f"highest must be above lowest, {lowest}, got {highest}")
    if not len(sizes) <= MOST_ROUNDS:
        raise ValueError(f"batches must be a list of 1 to {MOST_ROUNDS} numbers, got shape {sizes.shape}")
    if not sizes[0] >= lowest:
        raise ValueError(f"batches must each be at least lowest, {lowest}, got {sizes[0]}")
    if not (np.isfinite(sizes).all() and sizes.sum() >= highest * (1 - 1e-12)):
        raise ValueError(f"batches must add up to at least highest, {highest}, got {sizes.sum()}")
    scale("batches", float(sizes[-1]))
    return sizes
