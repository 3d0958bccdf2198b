"""Notebook 14, the top k: what carries over (C43), sharp EBR for the k best (X9), and what it saves (X13)."""

import math
from collections.abc import Iterable, Sequence
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium.shared import figures
from compendium.shared.findings import Evidence, Finding, counted, measured, refutes
from compendium.shared.lineup import LOOKS, SETUPS, MakeSharp, curves, legend_below, part, ticks
from compendium.sharp_racing.sharp_event import fully_spent, spent
from compendium.top_k.joint_verification import Verification
from compendium.top_k.top_k_rivals import RACERS, TopMaker
from compendium.upper_bounds.fixed_counts import elimination_need, recommended_gap
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.simulation.sweep import Point
from ebr.theory.problems import Bernoulli

ROUNDING = 1e-9
HALF = 0.5  # C43's correction: a race needs less than half of what Theorem 3 with H_k says
LEAST_SAVINGS = {"EBR": 8.0, "sequential": 5.0, "kδER": 400.0}  # X13's: pulls over those of sharp EBR
# How each looks: as in every figure, and sharp EBR's single round beside it.
EVENTS = {
    "wrong": "races with an arm that is not within ε of the k-th",
    "late": "races with an arm above its term",
    "over": "races above the bound in H_k",
}


def phantoms(means: Iterable[float], k: int, epsilon: float) -> tuple[float, float]:
    """H_k of a problem with k − 1 arms of mean 1 added, and H + (k−1) N*, which must be equal."""
    problem = Bernoulli(np.array(list(means)))
    padded = Bernoulli(np.append(problem.means, np.ones(k - 1)))
    gap = 1 - float(np.sort(problem.means)[-2])
    each = (gap + epsilon if gap >= epsilon else epsilon) ** -2
    return padded.complexity(epsilon, k), problem.complexity(epsilon) + (k - 1) * each


def moved(k: int, epsilon: float) -> bool:
    """Whether Theorem 3's change of measure makes the old answer wrong, where the k best tie.

    The next arm rises ε above them.
    """
    means = np.append(np.full(k, 0.5), [0.5 + epsilon, 0.1])
    return not Bernoulli(means).is_good(np.arange(k), epsilon, k).all()


def carries_over(table: pd.DataFrame, verification: Verification) -> Finding:
    """Check C43: Algorithm 1 with accept and reject keeps Theorems 1 and 2, corrected, with H_k for H.

    From a table of `elastic_table`. Lower bounds carry over: k − 1 added arms of mean 1 turn a best-arm
    problem into a top-k problem, and add to H only their own terms. Theorem 3's change of measure does not
    carry over, and with H_k for H the theorem is false: the verification needs fewer pulls than it says.
    """
    nearly_one = 1 - 1e-12  # δ: the least log(nT/δ)
    sizes = [(2, 1), *((both, both) for both in range(2, 30))]
    lost = max(recommended_gap(n, t, nearly_one) for n, t in sizes)
    need = max(elimination_need(n, t, nearly_one, 1, u) for n, t in sizes for u in (0, 1))
    padded = [phantoms((0.9, 0.8, 0.5, 0.1), k, epsilon) for k in (2, 5, 20) for epsilon in (0.3, 0.15, 0.01)]
    padding = max(one / other for one, other in padded)
    evidence = [
        Evidence("what an arm may be behind the k-th on E′, over ε", lost, "n, T < 30", allowed="< 1"),
        Evidence("what deciding in round γ needs on E′, over the gap", need, "n, T < 30", allowed="< 1"),
        *_inside("E′", table),
        Evidence("H_k with k−1 arms of mean 1 over H + their terms", padding, "9 problems", allowed="1"),
    ]
    random, refuted = _races(table)
    epsilons = (0.3, 0.15, 0.01)
    one, several = (np.mean([moved(k, e) for k in ks for e in epsilons]) for ks in ((1,), (2, 5, 20)))
    share = verification.expected(verification.cheapest) / verification.supposed()
    where = f"n = {verification.n_arms:,}, k = {verification.k}, δ = {verification.delta:g}"
    what = "problems whose answer Theorem 3's change of measure makes wrong"
    evidence += [
        Evidence(what, float(one), "k = 1", allowed="1"),
        Evidence(what, float(several), "k = 2, 5, 20, the k best tie", allowed="1 to carry over"),
        Evidence("pulls of a race over Theorem 3's with H_k", share, where, allowed="≥ 1 to carry over"),
    ]
    exact = lost < 1 and need < 1 and abs(padding - 1) < ROUNDING and one == 1
    carried = bool(exact and _sound(table) and not refuted)
    whole = bool(several == 1 and share >= 1)
    repaired = carried and bool(several == 0 and share < HALF)
    return Finding("C43", carried and whole, (*evidence, *random), "proved", repaired)


def guarantee(
    table: pd.DataFrame,
    ratio: pd.DataFrame,
    exact: pd.DataFrame,
    delta: float,
    make: MakeSharp = SharpElasticBatchRacing,
) -> Finding:
    """Check X9: sharp EBR for the k best, from `sharp_table`, for [0, 1] as well, and `exact_failures`."""
    sizes = list(product(((2, 1), (10, 3), (10, 9), (100, 20)), (1, 2, 6)))
    plain = [spent(make(t, 0.01, 0.01, rewards="sub-Gaussian", k=k), n) for (n, k), t in sizes]
    in_unit = [(make(t, 0.1, 0.01, rewards="bounded", k=k), n) for (n, k), t in sizes]
    unit = max(spent(*race, mean) for race in in_unit for mean in (0.5, 0.05, 0.95))
    failure, three = float(exact["failure"].max()), "failure, three Bernoulli arms, k = 1, 2, T = 1, 2"
    evidence = [
        Evidence("what the union bound spends, over δ", max(plain), "n ≤ 100, k ≤ 20, T ≤ 6", allowed="≤ 1"),
        Evidence("the same for rewards in [0, 1]", unit, "n ≤ 100, k ≤ 20, T ≤ 6", allowed="≤ 1"),
        *_inside("the event", table),
        *_inside("the event of [0, 1]", ratio),
        Evidence(three, failure, "exact", allowed=f"≤ {delta:g}"),
    ]
    both = pd.concat([table, ratio], ignore_index=True)
    random, refuted = _races(both)
    proved = fully_spent(unit, 0.1) and all(fully_spent(share, 0.01) for share in plain)
    kept = exact["failure"].between(0, delta, inclusive="right").all()  # every outcome may come about
    holds = proved and _sound(both) and kept and not refuted
    return Finding("X9", bool(holds), (*evidence, *random), "proved")


def _inside(event: str, table: pd.DataFrame) -> list[Evidence]:
    """What happened inside an event, where nothing may go wrong, and how the bounds compare."""
    where = f"of {table['tables'].sum():,}, inside {event}"
    share = float((table["bound"] / table["problem_bound"]).max())
    return [
        Evidence("tables that end with a wrong arm", int(table["wrong_inside"].sum()), where, allowed="0"),
        Evidence("tables with an arm above its term", int(table["late_inside"].sum()), where, allowed="0"),
        Evidence("Σ of the terms over the bound in H_k", share, f"on {len(table)} problems", allowed="≤ 1"),
    ]


def _sound(table: pd.DataFrame) -> bool:
    """Whether nothing went wrong inside the event, and the bound in H_k is above the sum of the terms."""
    clean = not table[["wrong_inside", "late_inside"]].to_numpy().any()
    return clean and bool((table["bound"] <= table["problem_bound"]).all())


def _races(table: pd.DataFrame) -> tuple[list[Evidence], bool]:
    """How often random races went wrong; and whether that refutes "with probability at most δ"."""
    runs, where = int(table["runs"].sum()), f"on {len(table)} problems"
    counts = {what: int(table[event].sum()) for event, what in EVENTS.items()}
    rows = [counted(what, count, runs, where, "≤ δ on each") for what, count in counts.items()]
    return rows, any(refutes(table, event) for event in EVENTS)


def points(
    ks: Iterable[int],
    deadlines: Iterable[int],
    k: int = 5,
    deadline: int = 15,
    epsilon: float = 0.01,
    delta: float = 0.01,
    n_arms: int = 100,
    racers: dict[str, TopMaker] = RACERS,
) -> list[Point]:
    """Figure 14's points: a sweep over k at one T and a sweep over T at one k, on both setups.

    Labels: sweep ("k" or "T"), setup, algorithm, k, deadline. The sequential oracle has no deadline.
    """
    grid = [("k", each, deadline) for each in ks] + [("T", k, t) for t in deadlines]
    return [
        Point(
            {"sweep": sweep, "setup": setup, "algorithm": name, "k": places, "deadline": t},
            make(t, epsilon, delta, places),
            problem(n_arms),
        )
        for name, make in racers.items()
        for setup, problem in SETUPS.items()
        for sweep, places, t in grid
    ]


def ratios(table: pd.DataFrame, under: str) -> pd.DataFrame:
    """Every algorithm's pulls over those of one, with standard errors, along k."""
    keys = ["setup", "k"]
    along = table[table["sweep"] == "k"]
    both = along.merge(along[along["algorithm"] == under], on=keys, suffixes=("", "_under"))
    ratio = both["pulls"] / both["pulls_under"]
    relative = np.hypot(both["error"] / both["pulls"], both["error_under"] / both["pulls_under"])
    kept = both[[*keys, "algorithm", "runs"]].assign(ratio=ratio, error=ratio * relative)
    return kept[kept["algorithm"] != under].reset_index(drop=True)


def savings(table: pd.DataFrame, ks: Iterable[int]) -> Finding:
    """Check X13: for the k best sharp EBR needs far fewer pulls than Algorithm 1, kδER and sequential racing.

    The least ratio over the setups and these k, for sub-Gaussian rewards; and no race of any algorithm fails.
    """
    here = table[table["k"].isin(list(ks))]
    compared, holds, evidence = ratios(here, "sharp"), True, []
    for name, least in LEAST_SAVINGS.items():
        row = compared[compared["algorithm"] == name].nsmallest(1, "ratio").iloc[0]
        most = ratios(here, name).query("algorithm == 'sharp'")["ratio"].max()  # the other way round
        holds = holds and row["ratio"] >= least and math.isclose(row["ratio"] * most, 1)
        where = f"{row['setup']}, k = {row['k']}, where it is least"
        what = f"pulls of {name} over those of sharp EBR"
        evidence.append(measured(what, row["ratio"], row["error"], int(row["runs"]), where, f"≥ {least:g}"))
    failures, runs = int(table["failures"].sum()), int(table["runs"].sum())
    evidence.append(counted("races that fail, of all algorithms", failures, runs, allowed="none"))
    return Finding("X13", bool(holds and failures == 0), tuple(evidence), "simulated")


def complexities(ks: Sequence[int], epsilon: float, n_arms: int) -> pd.DataFrame:
    """H_k of both setups, in units of ε^{−2}: how many arms at the boundary it is worth."""
    problems = {name: make(n_arms) for name, make in SETUPS.items()}
    columns = {name: {k: it.complexity(epsilon, k) * epsilon**2 for k in ks} for name, it in problems.items()}
    return pd.DataFrame(columns).rename_axis("k")


def draw(table: pd.DataFrame) -> Figure:
    """Figure 14: pulls along k above, along T below."""
    figure, axes = plt.subplots(2, 2, figsize=(figures.PAGE, 5.2), sharey=True)
    sweeps = (("k", "k", "arms to find k"), ("T", "deadline", "rounds T"))
    for row, (sweep, along, label) in zip(axes, sweeps, strict=True):
        for axis, setup in zip(row, SETUPS, strict=True):
            shown = part(table, setup, sweep)
            curves(axis, shown, "pulls", along, LOOKS)
            fixed = "T = {deadline}" if sweep == "k" else "k = {k}"
            first = table[table["sweep"] == sweep].iloc[0]
            axis.set(xscale="log", yscale="log", title=f"{setup}, {fixed.format(**first)}", xlabel=label)
            ticks(axis, shown[along])
        row[0].set_ylabel("pulls (mean of all runs)")
    figures.letters(axes.flat)
    legend_below(figure, axes[0, 0])
    return figure
