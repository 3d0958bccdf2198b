"""The scheduling lemma, Theorem 5 and the corollary: as printed, and with the exact value of the lemma."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import Bounds, differential_evolution

from compendium.scheduling.batch_schedules import (
    GOLDEN,
    minimax_overpull,
    minimax_schedule,
    overpull,
    printed_bound,
)
from compendium.shared import figures
from compendium.shared.cost_bounds import hpcm
from compendium.shared.findings import Evidence, Finding
from compendium.shared.lineup import LOOKS
from ebr.arrays import FloatArray

Root = Callable[[int, float], float]


def least_overpull(rounds: int, ratio: float, seed: int) -> float:
    """The least over-pull that a global search over all schedules finds (differential evolution).

    The search knows all 2^T sums of batches, so that T is small.
    """

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


def schedules(
    rounds: Iterable[int],
    bases: Iterable[float],
    seed: int,
    root: Root = minimax_overpull,
    best: Callable[[int, float], FloatArray] = minimax_schedule,
    search: Callable[[int, float, int], float] = least_overpull,
) -> pd.DataFrame:
    """The lemma's bound, the exact value and what a global search finds, at N/R = base^T.

    Columns: rounds, base, printed, exact (the root), attained (by the best schedule), found (by the search).
    """
    rows = []
    for count, base in product(rounds, bases):
        ratio = base**count
        attained = overpull(best(count, ratio).tolist(), 1.0, ratio)
        found = search(count, ratio, seed)
        rows.append((count, base, printed_bound(count, ratio), root(count, ratio), attained, found))
    return pd.DataFrame(rows, columns=["rounds", "base", "printed", "exact", "attained", "found"])


def edge(least: Root) -> tuple[float, float, int]:
    """Where X1 begins, N/R = φ^{2T−1} or `least(T, φ)`, for T from 2 to 12.

    There the root is φ, as φ(1 + φ)^{T−1} = φ^{2T−1}: how far the two are apart, relatively. A little below
    the schedule that the root makes over-pulls by more than the root: by how much, at least. And how many of
    these T `minimax_overpull` begins at another place.
    """
    golden, off, excess, elsewhere = (1 + math.sqrt(5)) / 2, 0.0, math.inf, 0
    for rounds in range(2, 13):
        start, rho = least(rounds, golden), 0.999 * golden
        off = max(off, abs(golden * (1 + golden) ** (rounds - 1) / start - 1))
        totals = rho * (1 + rho) ** np.arange(rounds)
        sizes = np.diff(totals, prepend=0.0).tolist()
        excess = min(excess, overpull(sizes, 1.0, float(totals[-1])) / rho - 1)
        elsewhere += _begins(rounds, start * (1 - 1e-6)) or not _begins(rounds, start * (1 + 1e-6))
    return off, excess, elsewhere


def _begins(rounds: int, ratio: float) -> bool:
    """Whether `minimax_overpull` has an answer."""
    try:
        return minimax_overpull(rounds, ratio) > 0
    except ValueError:
        return False


def exact_lemma(
    table: pd.DataFrame, share: float = 3 / 4, least: Root = lambda rounds, golden: golden ** (2 * rounds - 1)
) -> Finding:
    """Check X1: the lemma's infimum is the root ρ, reached by the minimax schedule and beaten by no other."""
    attained = float((table["attained"] / table["exact"] - 1).abs().max())
    found = table["found"] / table["exact"] - 1
    inside = table[table["base"] >= 4]
    lowest = float((inside["exact"] / inside["base"]).min())
    root = table["exact"] * (1 + table["exact"]) ** (table["rounds"] - 1) / table["base"] ** table["rounds"]
    equation = float((root - 1).abs().max())
    off, excess, elsewhere = edge(least)
    where = f"{len(table)} settings, T to {table['rounds'].max()}"
    # What comes after these digits is the search's and the processor's.
    evidence = (
        Evidence("the schedule's over-pull over ρ, off 1 by", round(attained, 9), where, allowed="< 10⁻⁹"),
        Evidence("what a search finds over ρ, less 1, at least", round(found.min(), 5), where, allowed="≥ 0"),
        Evidence("the same, at most", round(found.max(), 5), where, allowed="< 0.001"),
        Evidence("ρ over (N/R)^(1/T), at least", lowest, "where that is 4 or more", allowed="≥ 3/4"),
        Evidence("ρ(1+ρ)^(T−1) over N/R, off 1 by", round(equation, 9), where, allowed="< 10⁻⁹"),
        Evidence(
            "φ^(2T−1) from where the root is φ, relatively", round(off, 9), "T from 2 to 12", allowed="0"
        ),
        Evidence("over-pull over ρ, less 1, just below that", excess, "ρ = 0.999 φ", allowed="> 0"),
        Evidence("T where `minimax_overpull` begins elsewhere", elsewhere, "of 11", allowed="0"),
    )
    holds = attained < 1e-9 and found.min() > -1e-9 and found.max() < 1e-3 and lowest >= share
    holds = holds and max(equation, off) < 1e-9 and excess > 0 and elsewhere == 0
    return Finding("X1", bool(holds), evidence, "proved")


# Batches (R = 1, β = 2) that obey part 1 of the lemma's proof, Q⁽¹⁾ < βR and Q⁽ᵗ⁾ < β Σ_{s<t} Q⁽ˢ⁾, but not
# what part 2 makes of it, Q⁽ˢ⁺¹⁾ < Q⁽ˢ⁻¹⁾ + β Q⁽ˢ⁾.
BATCHES = (1.9, 3.7, 11.1)


def scheduling_lemma(
    table: pd.DataFrame,
    divisor: float = 8,
    growth: Callable[[float, int], float] = lambda beta, rounds: beta * (1 + beta) ** (rounds - 1),
) -> Finding:
    """Check C19: the infimum is at least ⅛ (N/R)^{1/T} where (N/R)^{1/T} > 4.

    Part 2 of the printed proof does not follow from part 1 (`BATCHES`); mended, it is `growth`: the
    most that part 1 allows, Q⁽¹⁾ = βR and Q⁽ᵗ⁾ = β Σ_{s<t} Q⁽ˢ⁾, adds up to that times R. It must stay below
    N/R = (4β)^T.
    """
    inside = table[table["base"] > 4]
    bound = inside["base"] / divisor
    off = float((8 * inside["printed"] / inside["base"] - 1).abs().max())
    over, found = inside["exact"] / bound, inside["found"] / bound
    sums = [growth(beta, t) / (4 * beta) ** t for t in range(1, 21) for beta in (1.0, 1.25, 2.0, 10.0, 1e4)]
    empty, in_print = int((bound <= 1).sum()), f"< {BATCHES[0] + 2 * BATCHES[1]:g} in print"
    evidence = (
        Evidence("exact value over the bound, at least", round(over.min(), 5), allowed="≥ 1"),
        Evidence("the same, at most", round(over.max(), 5)),
        Evidence("what a search finds over the bound, at least", round(found.min(), 5), allowed="≥ 1"),
        Evidence("`printed_bound` over ⅛ (N/R)^(1/T), off 1 by", round(off, 9), allowed="< 10⁻⁹"),
        Evidence("settings where the bound is at most 1, and empty", empty, f"of {len(inside)}"),
        Evidence("part 2, Q⁽³⁾ of a schedule that obeys part 1", BATCHES[2], "β = 2", allowed=in_print),
        Evidence("part 2 mended: ΣQ over N, at most", max(sums), "T ≤ 20, β from 1 to 10⁴", allowed="< 1"),
    )
    holds = bool((over >= 1).all() and (found >= 1).all() and max(sums) < 1 and off < 1e-9)
    return Finding("C19", holds, evidence, "proved")


PLACES = [(t, 2.0 ** -(t + 1) / k) for t in range(1, 31) for k in (1, 1.5, 3, 10, 100, 1e4)]


def _constants(root: Root) -> FloatArray:
    """Theorem 5's constant, what X1 proves of Ñ_T/H over σ² log(1/2δ) ε^{−2/T}, at many T and ε ≤ 2^{−T−1}.

    Lemma HPCM asks for P_i = ⅔σ² log(1/2δ)/(Δ+ε)² = (σ²/3) log(1/2δ) H pulls, so it is ρ ε^{2/T}/3. From
    Δ + ε = 1 to Δ = ε they grow by N/R = 1/4ε²: the gap is at most 1 − ε, as HPCM needs μ_[1] ≤ 1 − ε (E13).
    """
    return np.array([root(t, 1 / (4 * epsilon**2)) / 3 * epsilon ** (2 / t) for t, epsilon in PLACES])


def theorem_5(root: Root = minimax_overpull) -> Finding:
    """Check C20, Theorem 5: Ñ_T/H ≥ (σ²/192) log(1/2δ) ε^{−2/T} with probability 1/6, ε ≤ 2^{−T−1}."""
    proved = _constants(root)
    lowest = hpcm(1 / 6) / 2 / 1.01**2  # as printed: half of HPCM's constant, over (1 + ε)²
    evidence = (
        Evidence("constant proved, at least", proved.min(), f"{len(proved)} T ≤ 30 and ε", allowed="≥ 1/192"),
        Evidence("printed R", lowest, "δ = 1/6, σ = 1, ε = 0.01", allowed="≥ 1 in print; any will do"),
    )
    holds = proved.min() >= 1 / 192 and math.isclose(12 * proved.min(), 1)  # at T = 1
    return Finding("C20", bool(holds), evidence, "proved")


def repaired_constants(
    root: Root = minimax_overpull,
    closed: Callable[[int], float] = lambda rounds: 3 ** (-1 / rounds) / 4,
    chance: float = 1 / 6,
) -> Finding:
    """Check X2: Theorem 5 with σ²/12 and the corollary's (ii) with σ²/72; for each T with ¼ 3^{−1/T}."""
    proved = _constants(root)
    rounds = np.array([t for t, _ in PLACES])
    over = proved / np.array([closed(t) for t in rounds.tolist()])
    least, later = float(proved.min()), float(proved[rounds > 1].min())
    where = f"{len(proved)} T ≤ 30 and ε"
    evidence = (
        Evidence("Theorem 5's constant, at least", least, where, allowed="≥ 1/12"),
        Evidence("the same from T = 2 on, at least", later, where, allowed="≥ 1/8"),
        Evidence("constant over ¼ 3^(−1/T), at least", round(over.min(), 9), where, allowed="≥ 1"),
        Evidence("in expectation, at least", chance * least, where, allowed="≥ 1/72"),
    )
    reached = min(12 * least, 8 * later, float(over.min()), 72 * chance * least)
    # At T = 1 all but the second are reached exactly; ¼ 3^(−1/T) nearly so at every T.
    tight = max(12 * least, float(over.min()), 72 * chance * least)
    near = max(float(over[rounds == t].min()) for t in range(1, 31))
    holds = reached >= 1 - 1e-9 and tight <= 1 + 1e-9 and near <= 1.03
    return Finding("X2", bool(holds), evidence, "proved")


def corollary(root: Root = minimax_overpull, chance: float = 1 / 8) -> Finding:
    """Check C21: (i) σ²/800 · ε^{−1}, (ii) (σ²/144) log(1/2δ) ε^{−2/T}, in expectation."""
    first, second = chance / 100, float(_constants(root).min()) / 6
    evidence = (
        Evidence("(i) from Theorem 4", first, "1/8 · 1/100", allowed="≥ 1/800"),
        Evidence("(ii) from Theorem 5 as printed", 1 / 6 / 192, "1/6 · 1/192", allowed="≥ 1/144"),
        Evidence("(ii) from Theorem 5 repaired, at least", second, allowed="≥ 1/144"),
    )
    # What is printed of (i) is what is proved, and (ii) is twice as much at T = 1.
    holds = math.isclose(800 * first, 1) and math.isclose(72 * second, 1)
    return Finding("C21", holds, evidence, "proved")


def standings(rounds: Iterable[int], epsilon: float) -> pd.DataFrame:
    """Algorithm 1's over-pull beside the least possible and the lemma's bound, on [R, N] = [1, ε^{−2}].

    Its batches of an arm are the steps of ε^{−2t/T}, from 0, in units of 80σ² log(nT/δ).
    Columns: rounds, ebr, least (nan where X1 does not reach) and printed.
    """
    rows = []
    for count in rounds:
        ratio = epsilon**-2
        known = count == 1 or ratio >= GOLDEN ** (2 * count - 1)
        least = minimax_overpull(count, ratio) if known else math.nan
        batches = np.diff(epsilon ** (-2 * np.arange(1, count + 1) / count), prepend=0.0)
        own = overpull(batches.tolist(), 1.0, ratio)
        rows.append((count, own, least, printed_bound(count, ratio)))
    return pd.DataFrame(rows, columns=["rounds", "ebr", "least", "printed"])


def sawtooth(batches: Sequence[float], highest: float, points: int = 1000) -> tuple[FloatArray, FloatArray]:
    """What problems need, x ∈ [R, N), R = 1, and how many times that they get; `overpull` is its top."""
    parts = (part for size in range(1, len(batches) + 1) for part in combinations(batches, size))
    sums = np.sort([1.0, *map(sum, parts)])
    x = np.union1d(np.geomspace(1.0, highest, points), sums)
    x = x[x < min(highest, sums[-1])]
    return x, sums[np.searchsorted(sums, x, side="right")] / x


def teeth(rounds: int, ratio: float) -> pd.DataFrame:
    """The minimax schedule's over-pull against what a problem needs; columns: x (over R) and ratio."""
    x, gets = sawtooth(minimax_schedule(rounds, ratio).tolist(), ratio)
    return pd.DataFrame({"x": x, "ratio": gets})


def draw(places: pd.DataFrame, saw: pd.DataFrame, epsilon: float, rounds: int) -> Figure:
    """The over-pulls of `standings` against T, and the `teeth` of the minimax schedule of so many rounds."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(figures.PAGE, 2.8))
    left.plot(places["rounds"], places["ebr"], label="EBR's schedule", **LOOKS["EBR"].line(ms=3))
    left.plot(
        places["rounds"], places["least"], "s--", ms=5, mfc="none", color="0.1", label="least possible, ρ"
    )
    left.plot(places["rounds"], places["printed"], "^:", ms=2.5, color="0.4", label="the lemma's bound")
    left.axhline(1, color="0.3", lw=0.8)
    left.set(xscale="log", yscale="log", xlabel="rounds T", ylabel="over-pull")
    left.set_title(f"N/R = ε⁻², ε = {epsilon:g}")
    ticks = [1, 2, 3, 5, 10, 15]
    left.set_xticks(ticks, [str(tick) for tick in ticks])
    left.set_xticks([], minor=True)
    left.legend()
    right.plot(saw["x"], saw["ratio"], "-", color="0.1", lw=0.9)
    right.axhline(saw["ratio"].max(), color="0.3", ls="--", lw=0.8)
    right.annotate("ρ", (1.1, 1.03 * saw["ratio"].max()), fontsize=8)
    right.set(xscale="log", ylabel="pulls it gets / x", ylim=(0.7, 8))
    right.set(xlabel="pulls that a problem needs, x/R", title=f"minimax schedule, T = {rounds}")
    figures.letters((left, right))
    return figure
