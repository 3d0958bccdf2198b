"""Theorem 3 in expectation, the facts it uses, and what section 4 says about it; all exact."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from compendium.lower_bounds import counter_example, near_optimal
from compendium.lower_bounds.counter_example import LowerBound
from compendium.lower_bounds.near_optimal import EPSILON, SIGMA
from compendium.shared import cost_bounds, figures
from compendium.shared.cost_bounds import told_apart
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding
from compendium.shared.problem_sets import nonempty_partitions
from ebr.algorithms.baselines import iterated_log
from ebr.arrays import FloatArray
from ebr.theory.divergence import relative_entropy

Errors = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
Design = Callable[..., near_optimal.LookTest]
# Gaps of the second and third arm, in units of ε.
GAPS = [(x, y) for x in (0, 0.5, 0.999, 1, 1.5) for y in (1, 1.5)]
# By δ; found in the same way as DESIGNS.
THREE = {0.15: (2.278259, 4.143813, 1.298150), 0.1: (3.182401, 5.592040, 1.561065)}


def policies(
    proved: LowerBound = cost_bounds.partition_lower_bound, design: Design = near_optimal.design
) -> pd.DataFrame:
    """Policies that nearly reach Theorem 3, one per row: cost (the worst over P_γ), and the bounds.

    Two arms in the last bin and below it, and three arms in the last bin. Columns: policy, n_arms, deadline,
    delta, last (whether γ_i = T), pac, cost, lower (as `proved`), printed, and second (the printed second
    inequality).
    """
    rows = []
    fixed = [(delta, 1, 0.0) for delta in sorted({key[0] for key in near_optimal.DESIGNS})]
    for delta, deadline, gap in sorted([*fixed, *near_optimal.DESIGNS]):
        test = design(delta, deadline, gap)
        index = deadline if gap == 0 else round(deadline * (1 - math.log(gap) / -math.log(EPSILON)))
        place = [index] * 2, EPSILON, deadline, delta
        facts = (test.looks.wrong(1.0) <= delta, test.cost(gap and EPSILON ** (index / deadline - 1)))
        rows.append(_beside(f"T = {deadline}, γ = ({index}, {index}), δ = {delta:g}", place, facts, proved))
    for delta, looks in THREE.items():
        race = near_optimal.RaceOfThree(*looks)
        played = {(x, y): race.play((0, -x, -y)) for x, y in [(0, 0), *GAPS]}
        wrong = max(played[x, y][0][2] + (x >= 1) * played[x, y][0][1] for x, y in GAPS)
        cost = max(pulls for _, pulls in played.values()) * (SIGMA / EPSILON) ** 2
        place = [2] * 3, EPSILON, 2, delta
        rows.append(_beside(f"T = 2, γ = (2, 2, 2), δ = {delta:g}", place, (wrong <= delta, cost), proved))
    return figures.rounded(pd.DataFrame(rows))


def _beside(
    name: str, place: tuple[list[int], float, int, float], facts: tuple[bool, float], proved: LowerBound
) -> dict[str, float | str | bool]:
    gamma, epsilon, deadline, delta = place
    powers = sum(epsilon ** (-2 * k / deadline) for k in gamma)
    return {
        "policy": name,
        "n_arms": len(gamma),
        "deadline": deadline,
        "delta": delta,
        "last": gamma[0] == deadline,
        "pac": facts[0],
        "cost": facts[1],
        "lower": proved(*place, SIGMA),
        "printed": cost_bounds.partition_lower_bound(*place, SIGMA, printed=True),
        "second": SIGMA**2 / 2 * math.log(1 / (2.4 * delta)) * powers,
    }


def least_pulls(gamma: Sequence[int], epsilon: float, deadline: int, delta: float, sigma: float) -> float:
    """The least Σ E[Ñ_i] that satisfies the changes of measure of the corrected Theorem 3, given room.

    A linear program. All gaps are ε^{γ_i/T}; those of γ_i = T are 0. Each of the m arms with γ_i = T is
    raised by (m−1)/m ε while the others of them are lowered by ε/m. Every other arm is raised to ε above the
    best, except for the two closest arms if m = 0, which pass one another.
    """
    gaps = np.array([0.0 if index == deadline else epsilon ** (index / deadline) for index in gamma])
    last, log_term = np.flatnonzero(gaps == 0), math.log(1 / (2.4 * delta))
    moves, told = [], []
    for arm in last:
        share = 1 / len(last)
        moves.append(np.where(gaps == 0, share * epsilon, 0.0))
        moves[-1][arm] = (1 - share) * epsilon
        told.append(share * math.log(share / (1 - delta)) + (1 - share) * math.log((1 - share) / delta))
    closest = [] if len(last) else np.argsort(gaps, kind="stable")[:2].tolist()
    if closest:
        moves.append(np.zeros(len(gaps)))
        moves[-1][closest] = (gaps[closest[0]] + epsilon) / 2
        told.append(log_term)
    for arm in set(np.flatnonzero(gaps)) - set(closest):
        moves.append(np.zeros(len(gaps)))
        moves[-1][arm] = gaps[arm] + epsilon
        told.append(log_term)
    program = linprog(np.ones(len(gaps)), -(np.square(moves) / epsilon**2), -np.array(told))
    return 2 * (sigma / epsilon) ** 2 * float(program.fun or 0.0)


def theorem_3(table: pd.DataFrame, proved: LowerBound = cost_bounds.partition_lower_bound) -> Finding:
    """Check C12, Theorem 3: both bounds, printed and corrected, against `policies` and one without room.

    The corrected bound must also equal `least_pulls`.
    """
    places = [
        (g, 0.05, t, d, 0.5)
        for n, t in ((2, 4), (3, 3), (4, 2))
        for g in nonempty_partitions(n, t)
        for d in (0.15, 0.01)
    ]
    off = max(abs(proved(*place) / least_pulls(*place) - 1) for place in places)
    roomless = counter_example.without_room(*counter_example.PLACES[0], proved)
    rows: list[dict[Any, Any]] = [*table.to_dict("records"), roomless]
    sound = all(row["pac"] for row in rows)
    below = {kind: sum(row["cost"] < row[kind] for row in rows) for kind in ("printed", "second", "lower")}
    of = f"of {len(rows)} policies"
    evidence = [
        Evidence("policies that are not (ε, δ)-PAC", sum(not row["pac"] for row in rows), of, allowed="0"),
        Evidence("costs below the printed bound", below["printed"], of, allowed="0"),
        Evidence("costs below the printed second inequality", below["second"], of, allowed="0"),
        Evidence("costs below the corrected bound", below["lower"], of, allowed="0"),
        Evidence(
            "corrected bound over a linear program, off 1 by",
            round(off, 6),
            f"{len(places)} γ, δ",
            allowed="0",
        ),
        Evidence("cost, any rewards, at most", roomless["cost"], roomless["policy"]),
        Evidence("cost, Gaussian rewards", roomless["gaussian"], "the same"),
        Evidence("its cost over the printed bound", roomless["cost"] / roomless["printed"], allowed="≥ 1"),
        Evidence("its cost over the second inequality", roomless["cost"] / roomless["second"], allowed="≥ 1"),
    ]
    two = table[table["last"] & (table["n_arms"] == 2)]
    for row in two[(two["cost"] < two["printed"])].to_dict("records")[:7]:
        over = row["cost"] / row["printed"]
        evidence.append(Evidence("cost over the printed bound", over, row["policy"], allowed="≥ 1"))
    for _, part in table.groupby(["n_arms", "last", "deadline"], sort=False):
        ratio = part["cost"] / part["lower"]
        name = part["policy"].iloc[int(ratio.argmin())]
        evidence.append(Evidence("cost over the corrected bound, at least", ratio.min(), name, allowed="≥ 1"))
    holds = sound and below["printed"] == below["second"] == 0
    repaired = sound and below["lower"] == 0 and off < 1e-6
    return Finding("C12", holds, tuple(evidence), "proved", repaired)


def last_bin(deltas: Iterable[float], arms: Sequence[int]) -> pd.DataFrame:
    """K over the printed log(1/2.4δ): what is proved of the last bin over what is printed, by δ and m."""
    rows = [[d, *(told_apart(m, d) / math.log(1 / (2.4 * d)) for m in arms)] for d in deltas]
    return pd.DataFrame(rows, columns=["delta", *(f"m = {m}" for m in arms)])


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
    # d(δ, 1−δ) = (1 − 2δ) log((1−δ)/δ); and what the other two are, exactly.
    half = x[(x > 1e-3) & (x < 0.5)]
    holds &= np.allclose(relative_entropy(half, 1 - half), (1 - 2 * half) * np.log((1 - half) / half))
    holds &= math.isclose(second.min(), math.log(32 / 27) / 3, rel_tol=1e-6)
    holds &= math.isclose(third, 3 / 32 * math.log(3) + 29 / 32 * math.log(29 / 31))
    return Finding("C14", holds, evidence, "proved")


def tsybakov(errors: Errors = lambda tests, p, q: tests @ p + tests @ q) -> Finding:
    """Check C17: P(φ = 1) + Q(φ = 1) ≥ ½ e^{−KL} as printed, Q(φ = 0) as meant; every φ on four points.

    `errors` gives the printed left side for all tests φ (rows of 0 and 1).
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
    return Finding("C17", as_printed >= 0, evidence, "proved", as_meant >= 0 and normal >= 0)


def iterated_logarithms(power: int = 4) -> Finding:
    """Check C44: Agarwal et al.'s bound exceeds n/Δ² only where ilog^T(n) > T⁴."""

    def exceeding(logarithms: Iterable[float]) -> list[int]:
        """The T for which the value exceeds T⁴."""
        return [t for t, value in enumerate(logarithms, start=1) if value > t**power]

    rounds = range(1, 51)
    beyond = exceeding(iterated_log(t, 1e300) for t in rounds)
    as_printed = exceeding(iterated_log(1, t) for t in rounds)  # ilog(T) in place of ilog^T(n)
    # T = 2 joins where log n passes e^16, no sooner: ilog^T(n) = ilog^{T−1}(log n).
    near, past = (exceeding(iterated_log(t - 1, x * math.exp(16)) for t in rounds) for x in (0.99, 1.01))
    evidence = (
        Evidence("T ≤ 50 with ilog^T(n) > T⁴", len(beyond), "n = 10^300", allowed="only T = 1"),
        Evidence("T ≤ 50 with ilog(T) > T⁴, as printed", len(as_printed), allowed="the same T"),
        Evidence("log n needed at T = 2", math.exp(16), "e^16"),
    )
    return Finding("C44", as_printed == beyond, evidence, "proved", beyond == near == [1] and past == [1, 2])


def one_round(constant: float = 1.0) -> Finding:
    """Check C48: with T = 1 and two arms each must be pulled at least σ² log(1/4δ(1−δ))/ε² times.

    Exactly: with N_1 pulls of one arm and any number of the other, the better of the two means errs on gap ε
    with probability above Φ(−ε√N_1/σ). The ratio of exact need to bound tends to π/2 as δ → ½, to 2 as δ → 0.
    """
    deltas = np.geomspace(1e-12, 0.49, 2000)
    needed = constant * np.log(1 / (4 * deltas * (1 - deltas)))
    exact = norm.isf(deltas) ** 2
    what, where = "exact need z² over log(1/4δ(1−δ))", "δ from 10⁻¹² to 0.49"
    evidence = (
        Evidence(f"{what}, at least", float((exact / needed).min()), where, allowed="≥ 1"),
        Evidence(f"{what}, at most", float((exact / needed).max()), where),
    )
    ratio = exact / needed
    holds = ratio.min() >= 1 and abs(ratio[-1] - np.pi / 2) < 1e-3 and ratio.max() < 2
    return Finding("C48", bool(holds), evidence, "proved")
