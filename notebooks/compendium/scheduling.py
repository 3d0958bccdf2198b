"""The scheduling lemma, Theorem 5 and the corollary: as printed, and with the exact value of the lemma."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, differential_evolution

from compendium.findings import Finding
from ebr.arrays import FloatArray
from ebr.theory.bounds import hpcm
from ebr.theory.schedules import GOLDEN, minimax_overpull, minimax_schedule, overpull, printed_bound
from ebr.validation import positive, whole

__all__ = [
    "c19",
    "c20",
    "c21",
    "ebr_batches",
    "least_overpull",
    "needs",
    "schedules",
    "standings",
    "x1",
    "x2",
]

Root = Callable[[int, float], float]


def schedules(
    rounds: Iterable[int], bases: Iterable[float], seed: int, root: Root = minimax_overpull
) -> pd.DataFrame:
    """The lemma's bound, the exact value and what a global search finds, at N/R = base^T.

    Columns: rounds, base, printed, exact, attained (by the minimax schedule) and found (by the search).
    """
    rows = []
    for count in rounds:
        for base in bases:
            ratio = base**count
            attained = overpull(minimax_schedule(count, ratio).tolist(), 1.0, ratio)
            found = least_overpull(count, ratio, seed)
            rows.append((count, base, printed_bound(count, ratio), root(count, ratio), attained, found))
    return pd.DataFrame(rows, columns=["rounds", "base", "printed", "exact", "attained", "found"])


def least_overpull(rounds: int, ratio: float, seed: int) -> float:
    """The least over-pull that a global search over all schedules finds (differential evolution; T ≤ 6)."""
    if whole("rounds", rounds, 1) > 6:
        raise ValueError(f"rounds must be at most 6 for a search, got {rounds}")
    if not positive("ratio", ratio) > 1:
        raise ValueError(f"ratio must be above 1, got {ratio}")

    def worst(steps: FloatArray) -> FloatArray:
        """Over-pull of many schedules at once; `steps` are log Q⁽¹⁾ and the log ratios of neighbours."""
        sizes = np.exp(np.cumsum(steps, axis=0))
        sizes[-1] = np.maximum(sizes[-1], ratio - sizes[:-1].sum(axis=0))  # the last makes up the sum
        sums = np.zeros((1, sizes.shape[1]))
        for size in sizes:
            sums = np.concatenate([sums, sums + size])
        sums[0] = 1.0
        sums.sort(axis=0)
        return np.asarray(np.where(sums[:-1] < ratio, sums[1:] / sums[:-1], 0).max(axis=0))

    found: Any = differential_evolution(
        worst,  # type: ignore[arg-type]  # vectorized: arrays in, arrays out
        Bounds(np.zeros(rounds), np.full(rounds, math.log(ratio))),
        rng=np.random.default_rng(np.random.SeedSequence([seed, rounds])),
        vectorized=True,
        updating="deferred",
        popsize=40,
        maxiter=3000,
        tol=1e-10,
        polish=False,
    )
    return float(found.fun)


def x1(table: pd.DataFrame) -> Finding:
    """Check X1: the lemma's infimum is the root ρ, reached by the minimax schedule and beaten by no other."""
    attained = float((table["attained"] / table["exact"] - 1).abs().max())
    found = table["found"] / table["exact"] - 1
    inside = table[table["base"] >= 4]
    share = float((inside["exact"] / inside["base"]).min())
    evidence = (
        f"over-pull of the schedule over ρ: 1 to within {max(attained, 1e-9):.0e}; of the best schedule that "
        f"a search finds: to within {max(found.abs().max(), 1e-6):.0e}, at {len(table)} settings, T to "
        f"{table['rounds'].max()}; "
        f"ρ is at least {share:.3f} (N/R)^(1/T) where that is 4 or more"
    )
    holds = attained < 1e-9 and found.min() > -1e-9 and found.max() < 1e-3 and share >= 0.75
    return Finding("X1", bool(holds), evidence)


def c19(table: pd.DataFrame, divisor: float = 8) -> Finding:
    """Check C19: the infimum is at least ⅛ (N/R)^{1/T} where (N/R)^{1/T} > 4."""
    inside = table[table["base"] > 4]
    bound = inside["base"] / divisor
    empty = inside[bound <= 1]
    evidence = (
        f"exact value over the bound {(inside['exact'] / bound).min():.2f} to "
        f"{(inside['exact'] / bound).max():.2f}; the bound is at most 1 and says nothing at {len(empty)} of "
        f"{len(inside)} settings, where (N/R)^(1/T) ≤ 8"
    )
    return Finding(
        "C19", bool((inside["exact"] >= bound).all() and (inside["found"] >= bound).all()), evidence
    )


def needs(epsilon: float, delta: float, sigma: float = 1.0) -> tuple[float, float]:
    """R and N of Theorem 5, repaired: pulls that Lemma HPCM asks for at Δ + ε = 1 and at Δ = ε.

    R = ⅔σ² log(1/2δ) and N = R/(4ε²). The gap is at most 1 − ε, since HPCM needs μ_[1] ≤ 1 − ε (E13).
    """
    lowest = hpcm(delta) * sigma**2
    return lowest, lowest / (4 * epsilon**2)


def _theorem_5(rounds: int, epsilon: float, root: Root) -> float:
    """What X1 proves of Ñ_T/H over σ² log(1/2δ) ε^{−2/T}: ρ/3, for P_i = (σ²/3) log(1/2δ) H."""
    return float(root(rounds, 1 / (4 * epsilon**2)) / 3 * epsilon ** (2 / rounds))


def _constants(root: Root) -> FloatArray:
    """Theorem 5's constant at many T and ε ≤ 2^{−T−1}."""
    return np.array(
        [_theorem_5(t, 2.0 ** -(t + 1) / k, root) for t in range(1, 31) for k in (1, 1.5, 3, 10, 100, 1e4)]
    )


def c20(root: Root = minimax_overpull, constant: float = 1 / 192) -> Finding:
    """Check C20, Theorem 5: Ñ_T/H ≥ (σ²/192) log(1/2δ) ε^{−2/T} with probability 1/6, ε ≤ 2^{−T−1}."""
    proved = _constants(root)
    lowest = needs(0.01, 1 / 6)[0] / 2 / 1.01**2  # as printed, at σ = 1
    evidence = (
        f"with the exact lemma and HPCM's full constant it is {proved.min():.4f} = 1/{1 / proved.min():.1f} "
        f"or more at {len(proved)} settings, T to 30; printed 1/192; the printed R at δ = 1/6, σ = 1 is "
        f"{lowest:.2f}, below the lemma's assumption R ≥ 1, which its scale-free form does not need"
    )
    return Finding("C20", bool(proved.min() >= constant), evidence)


def x2(root: Root = minimax_overpull) -> Finding:
    """Check X2: Theorem 5 with σ²/16 and the corollary's (ii) with σ²/96."""
    proved = _constants(root)
    least = float(proved.min())
    evidence = f"Theorem 5's constant is at least {least:.4f} ≥ 1/16, in expectation {least / 6:.5f} ≥ 1/96"
    return Finding("X2", bool(proved.min() >= 1 / 16), evidence)


def c21(root: Root = minimax_overpull, chance: float = 1 / 8, printed: float = 1 / 144) -> Finding:
    """Check C21: (i) σ²/800 · ε^{−1}, (ii) (σ²/144) log(1/2δ) ε^{−2/T}, in expectation."""
    first, second = chance / 100, float(_constants(root).min()) / 6
    evidence = (
        f"(i) {chance:g} · 1/100 = 1/{1 / first:.0f}; (ii) the paper's (1/6)(1/192) = 1/1152 is less than "
        f"the printed 1/144, the repaired theorem gives 1/{1 / second:.1f}"
    )
    return Finding("C21", first >= 1 / 800 and second >= printed, evidence)


def ebr_batches(rounds: int, epsilon: float) -> FloatArray:
    """Algorithm 1's batches of an arm, in units of 80σ² log(nT/δ): the steps of ε^{−2t/T}, from 0."""
    totals = epsilon ** (-2 * np.arange(1, rounds + 1) / rounds)
    return np.asarray(np.diff(totals, prepend=0.0))


def standings(rounds: Iterable[int], epsilon: float) -> pd.DataFrame:
    """Algorithm 1's over-pull beside the least possible and the lemma's bound, on [R, N] = [1, ε^{−2}].

    Columns: rounds, ebr, least (nan where X1 does not reach) and printed.
    """
    rows = []
    for count in rounds:
        ratio = epsilon**-2
        known = count == 1 or ratio >= GOLDEN ** (2 * count - 1)
        least = minimax_overpull(count, ratio) if known else math.nan
        own = overpull(ebr_batches(count, epsilon).tolist(), 1.0, ratio)
        rows.append((count, own, least, printed_bound(count, ratio)))
    return pd.DataFrame(rows, columns=["rounds", "ebr", "least", "printed"])
