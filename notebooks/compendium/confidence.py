"""Lemmas "confidence" and "concentration": whether the intervals cover, and how much wider they are."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from scipy.stats import binomtest, norm

from compendium.adversary import audit
from compendium.findings import Finding, exceeds, proportion
from compendium.lineup import MakeElastic
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import FloatArray, IntArray
from ebr.theory.confidence import (
    SELF_NORMALISED,
    binomial_deviation,
    chernoff_deviation,
    deviation,
    fixed_count_deviation,
    miss_probability,
    sequential_deviation,
)
from ebr.theory.problems import Problem

__all__ = ["c02", "c03", "c36", "exact_misses", "measured_misses", "stopped_probability", "widths"]

Deviation = Callable[..., FloatArray]


def exact_misses(
    problems: dict[str, Problem],
    deadlines: Iterable[int],
    deltas: Iterable[float],
    epsilon: float,
    make: MakeElastic = ElasticBatchRacing,
) -> pd.DataFrame:
    """An arm's chance to be missed in any of its T intervals: the exact ones at each count, added up.

    The counts of the schedule are fixed in advance and an arm that is dropped keeps its interval, so the
    sum bounds the chance for the interval of every round, however the race goes. Columns: problem, deadline,
    delta, miss (the worst arm's) and allowed, δ/(nT).
    """
    rows = []
    for name, problem in problems.items():
        for deadline in deadlines:
            for delta in deltas:
                algorithm = make(deadline, epsilon, delta, problem.sigma)
                counts = np.unique(algorithm.pulls_by_round(problem.n_arms))
                width = algorithm.deviation(counts, problem.n_arms)
                miss = miss_probability(problem, counts, width).sum(axis=0).max()
                rows.append((name, deadline, delta, miss, delta / (problem.n_arms * deadline)))
    return pd.DataFrame(rows, columns=["problem", "deadline", "delta", "miss", "allowed"])


def measured_misses(
    problems: dict[str, Problem],
    deadline: int,
    delta: float,
    epsilon: float,
    runs: int,
    seed: int,
    make: MakeElastic = ElasticBatchRacing,
) -> pd.DataFrame:
    """How often real races miss: a row for each interval, and one for any of them ("joint").

    Columns: problem, interval, misses, runs, allowed, and the frequency with its exact 99 % interval, low and
    high.
    """
    rows: list[tuple[str, str, int, int, float]] = []
    for name, problem in problems.items():
        watched = audit(make(deadline, epsilon, delta, problem.sigma), problem, runs, seed)
        allowed = delta / (problem.n_arms * deadline)
        for (number, arm), misses in np.ndenumerate(watched.misses):
            rows.append((name, f"round {number + 1}, arm {arm + 1}", int(misses), runs, allowed))
        rows.append((name, "joint", int((~watched.covered).sum()), runs, delta))
    table = pd.DataFrame(rows, columns=["problem", "interval", "misses", "runs", "allowed"])
    ends = np.array(
        [binomtest(misses, runs).proportion_ci(0.99, method="exact") for misses in table["misses"]]
    )
    return table.assign(frequency=table["misses"] / runs, low=ends[:, 0], high=ends[:, 1])


def assumption_as_printed(n_arms: int, deadline: int, delta: float) -> bool:
    """Lemma "confidence" as printed assumes log(δ/(nT)) ≥ 2 (E3)."""
    return math.log(delta / (n_arms * deadline)) >= 2


def c02(
    exact: pd.DataFrame,
    measured: pd.DataFrame,
    assumption: Callable[[int, int, float], bool] = assumption_as_printed,
) -> Finding:
    """Check C02: every interval covers with probability at least 1 − δ/(nT), all of them with 1 − δ."""
    assumed = any(assumption(n, t, d) for n in (1, 2, 100) for t in (1, 2, 50) for d in (0.001, 0.1, 0.999))
    worst = float((exact["miss"] / exact["allowed"]).max())
    counts = measured[["misses", "runs", "allowed"]].itertuples(index=False, name=None)
    refuted = [exceeds(misses, runs, allowed, len(measured)) for misses, runs, allowed in counts]
    covers = worst <= 1 and not any(refuted)
    joint = measured.loc[measured["interval"] == "joint", ["problem", "misses", "runs", "allowed"]]
    words = [
        f"the printed assumption log(δ/(nT)) ≥ 2 holds for {'some' if assumed else 'no'} n, T, δ",
        f"exact miss probability of an interval at most {worst:.2g} of δ/(nT) at {len(exact)} settings",
    ]
    words += [
        f"{name}: E fails in {proportion(misses, runs)}, allowed {allowed:g}"
        for name, misses, runs, allowed in joint.itertuples(index=False, name=None)
    ]
    return Finding("C02", assumed and covers, "; ".join(words), covers)


def stopped_probability(level: float, stages: int, growth: float = 4.0) -> float:
    """P(|W_t| > level √t for some t = 1, g, g², … g^{K−1}): W stopped there is a pair B = W_τ, A = √τ.

    W is a Brownian motion, so W_t/√t is a chain with one-step correlation g^{−1/2}. Its density inside
    ±level is carried from stage to stage by Gauss–Legendre quadrature, which is exact to rounding.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    nodes, weights = level * nodes, level * weights
    correlation = growth**-0.5
    spread = math.sqrt(1 - correlation**2)
    step = norm.pdf((nodes[:, None] - correlation * nodes) / spread) / spread * weights
    inside = np.linalg.matrix_power(step, stages - 1) @ norm.pdf(nodes)
    return float(1 - weights @ inside)


def c03(stages: int, factor: float = SELF_NORMALISED / 2) -> Finding:
    """Check C03: P(|B| > cA √(2 + log 2)) ≤ e^{−c²/2} for c ≥ 2, for a random A and for a constant one."""
    allowed = math.exp(-2)  # c = 2
    stopped = stopped_probability(2 * math.sqrt(factor), stages)
    # For a constant A, B is A-sub-Gaussian: P(|B| > xA) ≤ 2 e^{−x²/2}.
    grid = np.linspace(2, 12, 1001)
    constant = bool((2 * np.exp(-factor * grid**2 / 2) <= np.exp(-(grid**2) / 2)).all())
    evidence = (
        f"A = √τ with a stopping time τ of {stages} stages: probability {stopped:.3f} at c = 2, "
        f"allowed e^−2 = {allowed:.3f}; for a constant A, 2e^(−(2 + log 2)c²/2) ≤ e^(−c²/2) from "
        f"c = {math.sqrt(2 * math.log(2) / (factor - 1)) if factor > 1 else math.inf:.3f} on"
    )
    return Finding("C03", stopped <= allowed and constant, evidence, constant)


def widths(
    counts: IntArray, means: Iterable[float], n_arms: int, deadline: int, delta: float
) -> pd.DataFrame:
    """Half-widths that miss with probability δ/(nT) at most, by bound, count and mean of the rewards."""
    miss = delta / (n_arms * deadline)
    rows: list[tuple[float, int, float, float, float, float]] = []
    for mean in means:
        for pulls in counts.tolist():
            paper = float(deviation(pulls, n_arms, deadline, delta))
            hoeffding = float(fixed_count_deviation(pulls, miss))
            kl, exact = chernoff_deviation(pulls, mean, miss), binomial_deviation(pulls, mean, miss)
            rows.append((mean, pulls, paper, hoeffding, kl, exact))
    return pd.DataFrame(rows, columns=["mean", "pulls", "paper", "Hoeffding", "KL", "exact"])


def c36(n_arms: int, deadline: int, delta: float, sequential: Deviation = sequential_deviation) -> Finding:
    """Check C36: Jun et al.'s deviation is at first wider than the paper's, which T = ∞ makes infinite."""
    counts = np.unique(np.geomspace(1, 1e9, 500).astype(np.int64))
    ratio = sequential(counts, n_arms, delta) / deviation(counts, n_arms, deadline, delta)
    unbounded = deviation(1, n_arms, 10**300, delta) > 7 * deviation(1, n_arms, 1, delta)
    crossing = math.exp(16 * math.log(math.sqrt(6 * n_arms / delta)) / SELF_NORMALISED) * delta / n_arms
    evidence = (
        f"at n = {n_arms}, T = {deadline}, δ = {delta:g} it is {ratio[0]:.2f} times as wide at τ = 1 and "
        f"{ratio[-1]:.2f} times at τ = 1e9; the paper's is the wider at τ = 1 only from T = {crossing:.0f} on"
    )
    at_first = bool(ratio[0] > 1 and unbounded)
    return Finding("C36", at_first and bool(ratio[-1] < 1), evidence, at_first and bool((ratio > 1).all()))
