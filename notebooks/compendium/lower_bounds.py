"""Theorem 3, Lemma HPCM and what section 4 says of them: on the costs of `partition_races`, and exactly."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, norm

from compendium.findings import FALSE_ALARM, Evidence, Finding, counted, measured
from ebr.arrays import FloatArray
from ebr.theory import bounds
from ebr.theory.bounds import hpcm_at, iterated_log
from ebr.theory.divergence import relative_entropy
from ebr.theory.problems import hardest, nonempty_partitions

__all__ = [
    "best_arm",
    "entropies",
    "iterated_logarithms",
    "larger_probability",
    "matches_theorem_1",
    "one_round",
    "other_arms",
    "theorem_3",
    "theorem_3_two_arms",
    "tsybakov",
]


def theorem_3(table: pd.DataFrame) -> Finding:
    """Check C12, Theorem 3: the expected cost of every algorithm on the hard problems of every P_γ."""
    limit = float(norm.isf(FALSE_ALARM / len(table)))
    below = int((table["pulls"] + limit * table["error"] < table["lower"]).sum())
    above = int(((table["algorithm"] == "EBR") & (table["pulls"] > table["upper"])).sum())
    gap = table["printed"] / table["lower"]
    widest = _shape(table.iloc[int(gap.argmax())])
    evidence = [
        Evidence("printed bound over what is proved, at most", gap.max(), widest, allowed="≤ 1"),
        Evidence("costs below the corrected bound", below, f"of {len(table)}", allowed="0"),
        Evidence("costs of EBR above Theorem 1", above, allowed="0"),
    ]
    for name, part in table.groupby("algorithm", sort=False):
        row = part.iloc[int((part["pulls"] / part["lower"]).argmin())]
        over, error = row["pulls"] / row["lower"], row["error"] / row["lower"]
        what, where = "cost over the corrected bound, at least", f"{name}, {_shape(row)}"
        evidence.append(measured(what, over, error, int(row["runs"]), where, "≥ 1"))
    return Finding("C12", below == 0 and bool(gap.max() <= 1), tuple(evidence), "simulation", below == 0)


def theorem_3_two_arms(table: pd.DataFrame, shift: float = 1 / 2) -> Finding:
    """Check C13: n = 2, Ñ_T ≥ (2σ²/3) log(1/2δ) sup H with probability 1/6.

    The paper's proof, which shifts one arm by Δ + ε, gives σ²/3. Shifting *both* by (Δ + ε)/2, past one
    another, gives (4σ²/3) log(1/2δ) H(ν), and in the last bin, with equal arms, 8σ² d(5/12, δ)/ε²: enough for
    the statement as printed. In units of Δ + ε, a pull tells `shift`²/2σ² of the difference.
    """
    two = table[table["n_arms"] == 2]
    # In the last bin: against (2σ²/3) log(1/2δ) · 2ε^{−2}.
    deltas = np.geomspace(1e-12, 0.15, 2000)
    last = 2 / shift**2 * relative_entropy(5 / 12, deltas) / (4 / 3 * np.log(1 / (2 * deltas)))
    factor = 1 / (3 * shift**2)
    unit, printed = "in σ² log(1/2δ) H", "≥ 2/3"
    evidence = (
        Evidence("what the paper's proof gives", 1 / 3, unit, allowed=printed),
        Evidence("what shifting both arms gives", factor, unit, allowed=printed),
        Evidence("proved over printed, at least", float(last.min()), "last bin, δ ≤ 0.15", allowed="≥ 1"),
        _least(two, "total", "races where Ñ_T reaches the larger count"),
    )
    holds = factor >= 2 / 3 and bool(last.min() >= 1) and not _rare(two, "total")
    return Finding("C13", holds, evidence, "simulation")


def other_arms(table: pd.DataFrame) -> Finding:
    """Check C15, Lemma HPCM: every arm but the best reaches its count with probability at least 1/6."""
    evidence = (_least(table, "others", "races where Ñ_i reaches HPCM's count, i not the best"),)
    return Finding("C15", not _rare(table, "others"), evidence, "simulation")


def best_arm(table: pd.DataFrame) -> Finding:
    """Check C41: and so does the best arm, where it alone is ε-optimal and μ_[2] ≥ ε."""
    evidence = (_least(table, "best", "races where Ñ_[1] reaches HPCM's count"),)
    return Finding("C41", not _rare(table, "best"), evidence, "simulation")


def _rare(table: pd.DataFrame, events: str) -> bool:
    """Whether some row refutes "with probability at least 1/6"."""
    counts = table[[events, "runs"]].itertuples(index=False, name=None)
    return any(
        binomtest(int(k), int(n), 1 / 6, alternative="less").pvalue < FALSE_ALARM / len(table)
        for k, n in counts
    )


def _least(table: pd.DataFrame, events: str, what: str) -> Evidence:
    row = table.iloc[int(table[events].argmin())]
    where = f"least often of {len(table)} kinds of races"
    return counted(what, int(row[events]), int(row["runs"]), where, "≥ 1/6")


def _shape(row: "pd.Series[Any]") -> str:
    return f"n = {row['n_arms']}, T = {row['deadline']}, γ = {row['gamma']}"


def matches_theorem_1(constant: float = 160) -> Finding:
    """Check C39: Theorem 1's bound over Theorem 3's is a constant times log(nT/δ)/log(1/2.4δ)."""
    worst, where = 0.0, ""
    for n_arms, deadline in ((2, 2), (2, 6), (3, 3), (4, 3)):
        for gamma, epsilon, delta in product(
            nonempty_partitions(n_arms, deadline), (0.2, 0.05, 0.001), (0.1, 0.01, 1e-6)
        ):
            problem = hardest(gamma, epsilon, deadline)
            upper = bounds.partition_upper_bound(problem, epsilon, deadline, delta, printed=True)
            lower = bounds.partition_lower_bound(gamma, epsilon, deadline, delta, problem.sigma)
            logs = math.log(n_arms * deadline / delta) / math.log(1 / (2.4 * delta))
            if upper / lower / logs > worst:
                worst, where = (
                    upper / lower / logs,
                    f"T = {deadline}, γ = {gamma}, ε = {epsilon:g}, δ = {delta:g}",
                )
    # Theorem 1 has 80 where Theorem 3 has 2, and (ε^{γ_i/T} + ε)^{−2} is at least ¼ ε^{−2γ_i/T}.
    row = Evidence(
        "upper over lower bound, in log(nT/δ)/log(1/2.4δ)", worst, where, allowed="≤ 4 · 80/2 = 160"
    )
    return Finding("C39", worst <= constant, (row,), "exact")


def entropies(base: float = 2.4, weight: float = 1 / 3, least: float = 1 / 25) -> Finding:
    """Check C14: d(δ,1−δ) ≥ log(1/2.4δ), d(2/3,x) ≥ ⅓ log(1/2x), d(3/32,1/32) ≥ 1/25; on fine grids."""
    x = np.concatenate([np.geomspace(1e-300, 1e-3, 2000), np.linspace(1e-3, 1 - 1e-9, 200001)])
    first = relative_entropy(x, 1 - x) - np.log(1 / (base * x))
    second = relative_entropy(2 / 3, x) - weight * np.log(1 / (2 * x))
    third = float(relative_entropy(3 / 32, 1 / 32))
    at = (f"δ = {x[first.argmin()]:.3f}", f"x = {x[second.argmin()]:.3f}; exactly ⅓ log(32/27)")
    evidence = (
        Evidence("d(δ, 1−δ) − log(1/2.4δ), at least", float(first.min()), at[0], allowed="≥ 0"),
        Evidence("d(2/3, x) − ⅓ log(1/2x), at least", float(second.min()), at[1], allowed="≥ 0"),
        Evidence("d(3/32, 1/32)", third, allowed="≥ 1/25"),
    )
    holds = bool(first.min() >= 0 and second.min() >= 0 and third >= least)
    return Finding("C14", holds, evidence, "exact")


def _both_errors(tests: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """P(φ = 1) + Q(φ = 1), as printed, for all tests φ (rows of 0 and 1)."""
    return np.asarray(tests @ p + tests @ q)


def tsybakov(errors: Callable[[FloatArray, FloatArray, FloatArray], FloatArray] = _both_errors) -> Finding:
    """Check C17: P(φ = 1) + Q(φ = 1) ≥ ½ e^{−KL} as printed, with Q(φ = 0) as meant; every φ on four points.

    `errors` gives the left side as printed.
    """
    generator = np.random.default_rng(17)
    tests = np.array(list(product((0.0, 1.0), repeat=4)))
    as_printed = as_meant = math.inf
    for concentration in np.geomspace(0.05, 50, 400):
        p, q = generator.dirichlet(np.full(4, concentration), 2) + 1e-12
        p, q = p / p.sum(), q / q.sum()
        bound = 0.5 * math.exp(-float((p * np.log(p / q)).sum()))
        as_printed = min(as_printed, float(errors(tests, p, q).min()) - bound)
        as_meant = min(as_meant, float((tests @ p + (1 - tests) @ q).min()) - bound)
    shift = np.linspace(0, 30, 3001)  # N(0,1) and N(s,1): the best test errs 2Φ(−s/2) in all
    normal = float((2 * norm.sf(shift / 2) - 0.5 * np.exp(-(shift**2) / 2)).min())
    pairs = "all 16 tests of 400 pairs on 4 points"
    evidence = (
        Evidence("left less right side as printed, at least", as_printed, f"{pairs} (φ ≡ 0)", allowed="≥ 0"),
        Evidence("with Q(φ = 0) as meant, at least", round(as_meant, 9), pairs, allowed="≥ 0"),
        Evidence("as meant, at least", round(normal, 9), "normal pairs, the best test", allowed="≥ 0"),
    )
    return Finding("C17", as_printed >= 0, evidence, "exact", as_meant >= 0 and normal >= 0)


def larger_probability(constant: Callable[[float, float], float] = hpcm_at, idle: float = 0.5) -> Finding:
    """Check C40: the probability 1/6 can be close to ½ with the logarithm, and close to 1 without it.

    An algorithm may give up before its first pull with a share `idle` of δ and else be (ε, δ/2)-PAC: if the
    two together err with δ at most it is (ε, δ)-PAC, and no probability above 1 − idle·δ can be had.
    """
    half = {d: constant(0.5, d) / math.log(1 / d) for d in (0.1, 0.01, 1e-4, 1e-8)}
    delta = 0.01
    error = idle * delta + (1 - idle * delta) * delta / 2
    ceiling = 1 - idle * delta if error <= delta else 1.0
    at = f"gives up with probability {idle * delta:g}, δ = {delta:g}"
    evidence = [
        Evidence("constant at probability ½, over log(1/δ)", value, f"δ = {d:g}", allowed="> 0")
        for d, value in half.items()
    ]
    evidence.append(Evidence("error of an algorithm that may do nothing", error, at, allowed=f"≤ {delta:g}"))
    evidence.append(Evidence("probability that it makes any pull", ceiling, at, allowed="1"))
    positive = min(half.values()) > 0
    return Finding("C40", positive and ceiling == 1, tuple(evidence), "exact", positive)


def iterated_logarithms(power: int = 4) -> Finding:
    """Check C44: Agarwal et al.'s bound exceeds n/Δ² only where ilog^T(n) > T⁴."""
    beyond = [t for t in range(1, 51) if iterated_log(t, 1e300) > t**power]
    as_printed = [t for t in range(1, 51) if iterated_log(1, t) > t**power]  # ilog(T) in place of ilog^T(n)
    evidence = (
        Evidence("T ≤ 50 with ilog^T(n) > T⁴", len(beyond), "n = 10^300", allowed="only T = 1"),
        Evidence("T ≤ 50 with ilog(T) > T⁴, as printed", len(as_printed), allowed="the same T"),
        Evidence("log n needed at T = 2", math.exp(16), "e^16"),
    )
    return Finding("C44", as_printed == beyond, evidence, "exact", beyond == [1])


def one_round(constant: float = 1.0) -> Finding:
    """Check C48: with T = 1 and two arms each must be pulled at least σ² log(1/4δ(1−δ))/ε² times.

    Exactly: with N_1 pulls of one arm and any number of the other, the better of them errs on gap ε with
    probability above Φ(−ε√N_1/σ).
    """
    deltas = np.geomspace(1e-12, 0.49, 2000)
    needed = constant * np.log(1 / (4 * deltas * (1 - deltas)))
    exact = norm.isf(deltas) ** 2
    what, where = "exact need z² over log(1/4δ(1−δ))", "δ from 10⁻¹² to 0.49"
    evidence = (
        Evidence(f"{what}, at least", float((exact / needed).min()), where, allowed="≥ 1"),
        Evidence(f"{what}, at most", float((exact / needed).max()), where),
    )
    return Finding("C48", bool((exact >= needed).all()), evidence, "exact")
