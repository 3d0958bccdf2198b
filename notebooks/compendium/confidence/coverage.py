"""Lemmas "confidence" and "concentration": whether the intervals cover, and how wide they must be."""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from compendium.confidence.exact_tails import binomial_deviation, chernoff_deviation, miss_probability
from compendium.shared import figures
from compendium.shared.adversary import audit
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding, counted, exceeds, interval
from compendium.shared.lineup import MakeElastic
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import FloatArray, IntArray
from ebr.theory.confidence import SELF_NORMALISED, deviation, half_width, sequential_deviation
from ebr.theory.problems import Problem

FACTOR = SELF_NORMALISED / 2  # 2 + log 2, of Lemma "concentration"
FROM = 0.905  # smallest c for which the lemma holds with a constant A (C03 in the ledger)
ASSUMED_ON = list(product((1, 2, 100), (1, 2, 50), (0.001, 0.1, 0.999)))  # n, T, δ


def exact_misses(
    problems: dict[str, Problem],
    deadlines: Iterable[int],
    deltas: Iterable[float],
    epsilon: float,
    make: MakeElastic = ElasticBatchRacing,
) -> pd.DataFrame:
    """Probability that any of an arm's T intervals misses: the exact probabilities at each count, added up.

    The counts of the schedule are fixed in advance, and an arm that is dropped keeps its interval. So the sum
    bounds the probability of a miss in every round, however the race goes. Columns: problem, epsilon,
    deadline, delta, miss (of the worst arm) and allowed, δ/(nT).
    """
    rows = []
    for (name, problem), deadline, delta in product(problems.items(), deadlines, deltas):
        algorithm = make(deadline, epsilon, delta, problem.sigma)
        counts = np.unique(algorithm.pulls_by_round(problem.n_arms))
        width = algorithm.deviation(counts, problem.n_arms)
        miss = miss_probability(problem, counts, width).sum(axis=0).max()
        rows.append((name, epsilon, deadline, delta, miss, delta / (problem.n_arms * deadline)))
    return pd.DataFrame(rows, columns=["problem", "epsilon", "deadline", "delta", "miss", "allowed"])


def measured_misses(
    problems: dict[str, Problem],
    deadline: int,
    delta: float,
    epsilon: float,
    runs: int,
    seed: int,
    make: MakeElastic = ElasticBatchRacing,
) -> pd.DataFrame:
    """How often intervals miss in real races: one row per interval, and one for all of them ("joint").

    Columns: problem, interval, misses, runs, allowed, and the frequency with its exact 99 % interval (low,
    high).
    """
    rows: list[tuple[str, str, int, int, float]] = []
    for name, problem in problems.items():
        watched = audit(make(deadline, epsilon, delta, problem.sigma), problem, runs, seed)
        allowed = delta / (problem.n_arms * deadline)
        for (number, arm), misses in np.ndenumerate(watched.misses):
            rows.append((name, f"round {number + 1}, arm {arm + 1}", int(misses), runs, allowed))
        rows.append((name, "joint", int((~watched.covered).sum()), runs, delta))
    table = pd.DataFrame(rows, columns=["problem", "interval", "misses", "runs", "allowed"])
    ends = np.array([interval(misses, runs) for misses in table["misses"]])
    return table.assign(frequency=table["misses"] / runs, low=ends[:, 0], high=ends[:, 1])


def coverage(
    exact: pd.DataFrame,
    measured: pd.DataFrame,
    assumption: Callable[[int, int, float], bool] = lambda n, t, d: math.log(d / (n * t)) >= 2,
) -> Finding:
    """Check C02: each interval covers with probability at least 1 − δ/(nT), and all of them with 1 − δ.

    The printed lemma assumes log(δ/(nT)) ≥ 2 (E3).
    """
    assumed = sum(assumption(*place) for place in ASSUMED_ON)
    worst = float((exact["miss"] / exact["allowed"]).max())
    counts = measured[["misses", "runs", "allowed"]].itertuples(index=False, name=None)
    refuted = [exceeds(misses, runs, allowed, len(measured)) for misses, runs, allowed in counts]
    covers = worst <= 1 and not any(refuted)
    where = f"exact, at {len(exact)} settings"
    evidence = [
        Evidence("settings with log(δ/(nT)) ≥ 2", assumed, f"of {len(ASSUMED_ON)}: n, T, δ", allowed="> 0"),
        Evidence("P(an interval misses) over δ/(nT), at most", worst, where, allowed="≤ 1"),
    ]
    single = measured["interval"] != "joint"
    most = measured[single].nlargest(1, "misses").assign(what="P(an interval misses), at most")
    shown = pd.concat([most, measured[~single].assign(what="P(E fails)")])
    for row in shown.to_dict("records"):
        allowed = f"≤ {row['allowed']:g}"
        evidence.append(counted(row["what"], row["misses"], row["runs"], row["problem"], allowed))
    return Finding("C02", assumed > 0 and covers, tuple(evidence), "proved", covers)


def stopped_probability(level: float, stages: int, growth: float = 4.0) -> float:
    """P(|W_t| > level √t for some t = 1, g, g², … g^{K−1}) for a Brownian motion W.

    Stopped there, W gives the pair B = W_τ, A = √τ. W_t/√t is a chain with one-step correlation g^{−1/2}.
    Gauss–Legendre quadrature carries its density inside ±level from stage to stage, exactly up to rounding.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    nodes, weights = level * nodes, level * weights
    correlation = growth**-0.5
    spread = math.sqrt(1 - correlation**2)
    step = norm.pdf((nodes[:, None] - correlation * nodes) / spread) / spread * weights
    inside = np.linalg.matrix_power(step, stages - 1) @ norm.pdf(nodes)
    return float(1 - weights @ inside)


def stopped(looks: Iterable[int]) -> pd.DataFrame:
    """The probability that Lemma "concentration" bounds at c = 2, for that pair, by the number of looks K."""
    rows = [(stages, stopped_probability(2 * math.sqrt(FACTOR), stages)) for stages in looks]
    return pd.DataFrame(rows, columns=["looks", "stopped"])


def concentration(stages: int, factor: float = FACTOR) -> Finding:
    """Check C03: P(|B| > cA √(2 + log 2)) ≤ e^{−c²/2} for c ≥ 2, for a random A and for a constant one."""
    allowed = math.exp(-2)  # c = 2
    chance = stopped_probability(2 * math.sqrt(factor), stages)
    # For a constant A, B is A-sub-Gaussian: P(|B| > xA) ≤ 2 e^{−x²/2}.
    grid = np.linspace(0, 12, 12_001)
    broken = 2 * np.exp(-factor * grid**2 / 2) > np.exp(-(grid**2) / 2)
    least = float(grid[broken].max() + grid[1])
    what, where = "P(|B| > cA√(2 + log 2)) at c = 2", f"A = √τ, τ one of {stages:,} looks"
    evidence = (
        Evidence(what, chance, where, allowed=f"≤ e⁻² = {allowed:.3f}"),
        Evidence("c from which on the bound holds", least, "constant A", allowed=f"≤ 2; {FROM:g}, corrected"),
    )
    return Finding("C03", chance <= allowed and least <= 2, evidence, "proved", abs(least - FROM) < 1e-3)


def widths(
    counts: IntArray, means: Iterable[float], n_arms: int, deadline: int, delta: float
) -> pd.DataFrame:
    """Half-widths that miss with probability at most δ/(nT), by bound, count and mean of the rewards."""
    miss = delta / (n_arms * deadline)
    rows: list[tuple[float, int, float, float, float, float]] = []
    for mean in means:
        for pulls in counts.tolist():
            paper = float(deviation(pulls, n_arms, deadline, delta))
            hoeffding = float(half_width("Hoeffding", pulls, miss, 0.5))
            chernoff, exact = chernoff_deviation(pulls, mean, miss), binomial_deviation(pulls, mean, miss)
            rows.append((mean, pulls, paper, hoeffding, chernoff, exact))
    return pd.DataFrame(rows, columns=["mean", "pulls", "paper", "Hoeffding", "Chernoff", "exact"])


def sequential_width(
    n_arms: int, deadline: int, delta: float, sequential: Callable[..., FloatArray] = sequential_deviation
) -> Finding:
    """Check C36: Jun et al.'s deviation starts out wider than the paper's, which is infinite at T = ∞."""
    counts = np.unique(np.geomspace(1, 1e9, 500).astype(np.int64))
    ratio = sequential(counts, n_arms, delta) / deviation(counts, n_arms, deadline, delta)
    growth = float(deviation(1, n_arms, 10**300, delta) / deviation(1, n_arms, 1, delta))
    crossing = math.exp(16 * math.log(math.sqrt(6 * n_arms / delta)) / SELF_NORMALISED) * delta / n_arms
    where = f"n = {n_arms}, T = {deadline}, δ = {delta:g}"
    evidence = (
        Evidence("Jun et al.'s width over the paper's", ratio[0], f"τ = 1, {where}", allowed="> 1"),
        Evidence("Jun et al.'s width over the paper's", ratio[-1], f"τ = 10⁹, {where}", allowed="< 1"),
        Evidence("T from which on the paper's is the wider", crossing, "τ = 1"),
        Evidence("the paper's width, T = 10³⁰⁰ over T = 1", growth, "τ = 1", allowed="> 7"),
    )
    last = sequential(counts, n_arms, delta)[0] / deviation(1, n_arms, round(crossing), delta)
    at_first = bool(ratio[0] > 1 and growth > 7 and abs(last - 1) < 1e-3)
    holds, wider = at_first and bool(ratio[-1] < 1), at_first and bool((ratio > 1).all())
    return Finding("C36", holds, evidence, "proved", wider)


def sequential_guarantee(sequential: Callable[..., FloatArray] = sequential_deviation) -> Finding:
    """Check C54: with Jun et al.'s deviation D sequential racing is (ε, δ)-PAC.

    With probability 1 − δ all means stay within D/√2 at all counts: from 2^k to 2^{k+1} pulls the maximal
    inequality gives 2 exp(−(τD)²/2 / 2^{k+2}σ²) at τ = 2^k. On that event the race loses less before it ends
    than its certificate has to spare.
    """
    counts, sigma, narrow = 2.0 ** np.arange(1000), 0.5, math.sqrt(0.5)
    misses = []
    for n_arms, delta in product((2, 3, 10, 100, 10_000), (0.999, 0.5, 0.1, 0.01, 1e-6)):
        reach = narrow * counts * sequential(counts, n_arms, delta, sigma)
        chances = 2 * np.exp(-((reach / counts) ** 2) * counts / (4 * sigma**2))
        rest = 1000 * chances[-1]  # Σ_{k > K} k^−2 < 1/K
        misses.append(n_arms * float(chances.sum() + rest) / delta)
    # In units of ε: n − 1 losses of η − 2(1 − r)D with D > ε/2, and 2(1 − r)D at the end, where D > ε/2√2.
    spared = (1 - narrow) * narrow
    lost = max((n - 1) * max(1 / n - (1 - narrow), 0.0) for n in range(3, 1001))
    evidence = (
        Evidence("P(a mean leaves ± D/√2) over δ, at most", max(misses), "25 n and δ", allowed="≤ 1"),
        Evidence("lost before the end over what the end spares", lost / spared, "n ≥ 3", allowed="< 1"),
    )
    return Finding("C54", max(misses) <= 1 and lost < spared, evidence, "proved")


def draw(tables: Mapping[str, pd.DataFrame], titles: tuple[str, str]) -> Figure:
    """The intervals are wider than they need to be: how rarely they miss, and which widths would do.

    The tables come from `exact_misses` and `measured_misses` (for the same T and ε) and from `widths`, under
    the names exact, measured and widths. The titles name the settings of the two panels.
    """
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 2.8))
    _draw_misses(axes[0], tables["exact"], tables["measured"])
    _draw_widths(axes[1], tables["widths"])
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title)
    figures.letters(axes)
    return figure


def _draw_misses(axis: Axes, exact: pd.DataFrame, measured: pd.DataFrame) -> None:
    """Exact bounds as lines, the interval that missed most often as marks; both for the same races.

    Rewards that were never seen to miss are left out: their line lies below the panel.
    """
    single = measured[(measured["interval"] != "joint") & (measured["misses"] > 0)].sort_values("misses")
    most = single.groupby("problem", sort=False).tail(1).iloc[::-1].to_dict("records")
    for place, worst in enumerate(most):
        total = exact[exact["problem"] == worst["problem"]].sort_values("allowed")
        dash, color = ("-", "--", "-.")[place], f"C{place}"
        axis.plot(total["allowed"], total["miss"], dash, lw=1, color=color, label=worst["problem"])
        bars = [[worst["frequency"] - worst["low"]], [worst["high"] - worst["frequency"]]]
        marks: dict[str, Any] = {"color": color, "mfc": "none", "ms": 7 - 2 * place, "capsize": 2}
        axis.errorbar(worst["allowed"], worst["frequency"], bars, fmt="osD"[place], **marks)
    edge = [2e-3, 0.4]
    axis.plot(edge, edge, color="0.3", ls=":", lw=1)
    axis.annotate("allowed", (2.5e-3, 1e-2), fontsize=7)
    axis.set(xscale="log", yscale="log", xlim=(2e-3, 0.5), ylim=(2e-8, 1), xlabel="allowed, δ/(nT)")
    axis.set(ylabel="P(an interval misses)", yticks=[1e-7, 1e-5, 1e-3, 1e-1])
    axis.legend(loc=(0.03, 0.42))


def _draw_widths(axis: Axes, table: pd.DataFrame) -> None:
    """Each bound over the paper's D: one colour per mean, one dash per bound."""
    dashes = {"Hoeffding": "-", "Chernoff": "--", "exact": ":"}
    for place, (mean, part) in enumerate(table.groupby("mean", sort=False)):
        for bound, dash in dashes.items():
            color = "0.3" if bound == "Hoeffding" else f"C{place}"
            axis.plot(part["pulls"], part[bound] / part["paper"], dash, color=color)
        height = (part["Chernoff"] / part["paper"]).iloc[-1] + 0.025
        axis.annotate(f"mean {mean:g}", (1e6, height), fontsize=7, ha="right", color=f"C{place}")
    axis.axhline(1, color="0.3", lw=0.8)
    axis.annotate("the paper's interval", (1e2, 0.93), fontsize=7)
    lines = [Line2D([], [], color="0.3", ls=dash) for dash in dashes.values()]
    axis.legend(lines, list(dashes), loc=(0.02, 0.7), ncols=3, handlelength=1.8, columnspacing=1)
    axis.set(xscale="log", ylim=(0, 1.05), xlabel="pulls τ", ylabel="half-width over the paper's D")
