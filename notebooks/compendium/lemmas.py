"""The appendix's lemmas "on the event E", put to an adversary who sets every mean within its interval.

Statements that break in a corner of E hold on the smaller event E′, which is as probable.
"""

from collections.abc import Iterable, Iterator, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium import figures
from compendium.adversary import Case, Played, tables, wrong_arms
from compendium.findings import Evidence, Finding, counted, measured, refutes
from compendium.lineup import MakeElastic
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import BoolArray
from ebr.simulation.simulate import simulate
from ebr.theory.bounds import RUNTIME_CONSTANT, recommended_gap, runtime
from ebr.theory.problems import Gaussian, Problem

__all__ = [
    "WithoutSlack",
    "algorithm_survival",
    "draw_witness",
    "empty_race",
    "guarantee",
    "intervals",
    "runtime_lemma",
    "savings",
    "slack_term",
    "survival",
]

RUNS = 100  # of the race that empties S_t
ARMS = (2, 3, 4, 5, 6, 7, 8, 10, 30, 100, 1000)  # n and T on which the repaired guarantee is looked at


def intervals(algorithm: ElasticBatchRacing, problem: Problem, played: Played) -> pd.DataFrame:
    """What the adversary's first table looks like: true and empirical means with intervals, by round."""
    rows = []
    for number, stage in enumerate(played.rounds, start=1):
        width = float(algorithm.deviation(stage.pulls, problem.n_arms))
        for arm in np.flatnonzero(stage.alive[0]):
            mean = stage.means[0, arm]
            rows.append((number, arm + 1, stage.pulls, problem.means[arm], mean, mean - width, mean + width))
    return pd.DataFrame(rows, columns=["round", "arm", "pulls", "true", "mean", "lower", "upper"])


def draw_witness(table: pd.DataFrame, eta: float) -> Figure:
    """A table of rewards from `intervals`, a panel a round, with the line below which arms are dropped."""
    rounds = table.groupby("round")
    figure, axes = plt.subplots(1, len(rounds), figsize=(figures.COLUMN, 2.5), sharey=True)
    arms = table["arm"].unique()
    for axis, (number, stage) in zip(axes, rounds, strict=True):
        for row in stage.to_dict("records"):
            arm, mean, color = row["arm"], row["mean"], f"C{row['arm'] - 1}"
            axis.errorbar(arm, mean, row["upper"] - mean, fmt="os^"[arm - 1], color=color, capsize=3, ms=4)
            axis.hlines(row["true"], arm - 0.3, arm + 0.3, color="0.3", lw=1)
        axis.axhline(stage["lower"].max() + eta, color="0.5", ls=":", lw=0.8)
        axis.set_title(f"round {number}, {stage['pulls'].max():,} pulls")
        axis.set(xlabel="arm", xticks=arms, xlim=(0.5, len(arms) + 0.5))
    axes[0].annotate("best lower\nbound + η", (0.55, 0.82), fontsize=6, color="0.4")
    axes[0].set_ylabel("mean reward")
    return figure


def empty_race(returned_from: str = "after it") -> int:
    """In how many of 100 runs the rule as printed drops every arm early, σ so small that 2D < η.

    With "last round" the rule keeps the leader.
    """
    algorithm = ElasticBatchRacing(3, 0.5, 0.1, 0.001, returned_from=returned_from)
    result = simulate(algorithm, Gaussian(np.array([0.2, 0.9, 0.5]), 0.001), RUNS)
    return int(((result.arm == -1) & (result.rounds < algorithm.deadline)).sum())


def _emptied(runs: int) -> Evidence:
    where = "as printed, n = T = 3, ε = 0.5, σ = 0.001"
    return counted("P(every arm is dropped early)", runs, RUNS, where, "0")


def guarantee(on_e: list[Case], on_narrow: list[Case], races: pd.DataFrame, emptied: int) -> Finding:
    """Check C01: an ε-optimal arm with probability at least 1 − δ, in at most T rounds.

    Random `races` (how many wrong arms in so many runs, and δ, by problem) and `emptied` of `empty_race`
    complete the adversary's tables.
    """
    wrong, narrow_wrong = wrong_arms(on_e), wrong_arms(on_narrow)
    worst = max(recommended_gap(n, t, d) for n in ARMS for t in (1, *ARMS) for d in (0.001, 0.1, 0.5, 0.999))
    late = sum(len(case.played.rounds) > case.algorithm.deadline for case in on_e)
    what = "tables in which the arm is not ε-optimal"
    failures, runs = int(races["wrong"].sum()), int(races["runs"].sum())
    evidence = (
        _emptied(emptied),
        Evidence(what, wrong, f"of {tables(on_e):,} on E", allowed="0"),
        Evidence(what, narrow_wrong, f"of {tables(on_narrow):,} on E′", allowed="0"),
        Evidence("Δ of the arm over ε, at most", worst, "the bound on E′, n and T to 1,000", allowed="< 1"),
        Evidence("problems with more than T rounds", late, f"of {len(on_e)} on E", allowed="0"),
        counted("P(the arm is not ε-optimal)", failures, runs, f"random races, {len(races)} problems", "≤ δ"),
    )
    repaired = narrow_wrong == 0 and worst < 1 and not refutes(races, "wrong") and not late
    return Finding("C01", repaired and emptied == 0 and wrong == 0, evidence, "simulation", repaired)


def survival(cases: list[Case]) -> Finding:
    """Check C04, Lemma "survival": on E, arm i dropped for the leader j means μ_i − μ_j ≤ η = ε/(n∧T)."""
    largest, dropped = -np.inf, 0
    for problem, algorithm, played in cases:
        eta = algorithm.epsilon / min(problem.n_arms, algorithm.deadline)
        for stage in played.rounds:
            leader = np.where(stage.alive, stage.means, -np.inf).argmax(axis=1)
            lost = problem.means - problem.means[leader][:, None]  # μ_i − μ_j
            gone = stage.alive & ~stage.kept
            dropped += int(gone.sum())
            largest = max(largest, float((lost[gone] / eta).max(initial=-np.inf)))
    where = f"{dropped:,} eliminations in {tables(cases):,} tables on E"
    evidence = Evidence("(μ_i − μ_j)/η, at most", largest, where, allowed="≤ 1")
    return Finding("C04", largest <= 1, (evidence,), "exact")


def algorithm_survival(cases: list[Case], emptied: int) -> Finding:
    """Check C05, Lemma "alg survival": on E, S_T contains an ε-optimal arm."""
    lost = 0
    for problem, algorithm, played in cases:
        good = problem.is_good(np.arange(problem.n_arms), algorithm.epsilon)
        for stage in played.rounds:
            playing = stage.alive.any(axis=1)
            lost += int((playing & ~(stage.alive & good).any(axis=1)).sum())
    where = f"leader kept, {tables(cases):,} tables on E"
    evidence = (_emptied(emptied), Evidence("S_t without an ε-optimal arm", lost, where, allowed="0"))
    return Finding("C05", lost == 0 and emptied == 0, evidence, "simulation", lost == 0)


def _spared_arms(cases: Iterable[Case], constant: float, to_survivors: bool = False) -> int:
    """How many arms Lemma "runtime" with this constant says are dropped but the rule spares.

    Gaps are to the best arm, as printed, or to the best survivor.
    """
    return sum(int(spared.sum()) for case in cases for spared in _spared(case, constant, to_survivors))


def _spared(case: Case, constant: float, to_survivors: bool) -> Iterator[BoolArray]:
    """Those arms, round by round."""
    problem, algorithm, played = case
    n_arms, deadline, epsilon = problem.n_arms, algorithm.deadline, algorithm.epsilon
    eta = epsilon / min(n_arms, deadline)
    for stage in played.rounds:
        half_width = algorithm.deviation(stage.pulls, n_arms)
        best_lower = np.where(stage.alive, stage.means, -np.inf).max(axis=1, keepdims=True) - half_width
        spared = stage.alive & (stage.means + half_width >= best_lower + eta)
        best = np.where(stage.alive, problem.means, 0).max(axis=1, keepdims=True)
        gap = (best if to_survivors else problem.means.max()) - problem.means
        needed = runtime(np.maximum(gap, 1e-9), problem, deadline, algorithm.delta, constant)
        bad = problem.means <= problem.means.max() - epsilon
        yield spared & bad & (stage.pulls >= needed)


def runtime_lemma(
    on_e: list[Case],
    on_narrow: list[Case],
    races: pd.DataFrame,
    printed: float = 80,
    constant: float = RUNTIME_CONSTANT,
) -> Finding:
    """Check C06, Lemma "runtime": a bad arm is gone after 80σ² log(nT/δ)/Δ_i² pulls of every survivor.

    Random `races` tell how often an arm is pulled beyond round γ_i (late).
    """
    pairs = [case for case in on_e if case.problem.n_arms == 2]  # E1 alone: the best arm cannot be lost first
    as_printed, two_arms = _spared_arms(on_e, printed), _spared_arms(pairs, printed)
    corrected = _spared_arms(on_e, constant, to_survivors=True)
    narrow = _spared_arms(on_narrow, printed)
    late, runs = int(races["late"].sum()), int(races["runs"].sum())
    what, everywhere = "arms spared after {:.3g}σ² log(nT/δ)/Δ² pulls", f"{tables(on_e):,} tables on E"
    to_best_survivor = f"Δ to the best survivor, {everywhere}"
    elsewhere = f"{tables(on_narrow):,} tables on E′"
    evidence = (
        Evidence(what.format(printed), as_printed, everywhere, allowed="0"),
        Evidence(what.format(printed), two_arms, f"n = 2, {tables(pairs):,} tables on E", allowed="0"),
        Evidence(what.format(constant), corrected, to_best_survivor, allowed="0"),
        Evidence(what.format(printed), narrow, elsewhere, allowed="0"),
        counted("P(an arm outlives round γ_i)", late, runs, f"random races, {len(races)} problems", "≤ δ"),
    )
    repaired = corrected == 0 and narrow == 0 and not refutes(races, "late")
    return Finding("C06", as_printed == 0, evidence, "simulation", repaired)


class WithoutSlack(ElasticBatchRacing):
    """Algorithm 1 without the term + ε/(n∧T) in its elimination rule."""

    def slack(self, n_arms: int) -> float:
        """None."""
        return 0.0


def savings(
    problems: Mapping[str, Problem],
    deadline: int,
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
    make: MakeElastic = ElasticBatchRacing,
) -> pd.DataFrame:
    """The share of pulls that the term saves on each problem, with its standard error."""
    rows = []
    for name, problem in problems.items():
        races = (make(deadline, epsilon, delta), WithoutSlack(deadline, epsilon, delta))
        pulls = [simulate(race, problem, runs, seed).pulls for race in races]
        ratio = pulls[0].mean() / pulls[1].mean()
        relative = [p.std(ddof=1) / p.mean() / np.sqrt(runs) for p in pulls]
        rows.append((name, runs, 1 - ratio, ratio * float(np.hypot(*relative))))
    return pd.DataFrame(rows, columns=["problem", "runs", "share", "error"])


def slack_term(on_e: list[Case], on_narrow: list[Case], without: list[Case], saved: pd.DataFrame) -> Finding:
    """Check C29: the term + ε/(n∧T) leaves correctness alone and only saves pulls.

    `without` has E's corners for a race that lacks the term; `saved`, of `savings`, the share of pulls that
    it saves in random races.
    """
    costs = ([case.played.arm_pulls.sum(axis=1) for case in cases] for cases in (on_e, without))
    dearer = sum(int((a > b).sum()) for a, b in zip(*costs, strict=True))
    wrong, wrong_without, wrong_narrow = wrong_arms(on_e), wrong_arms(without), wrong_arms(on_narrow)
    saves = bool((saved["share"] > 5 * saved["error"]).all())
    what, where = "tables in which the arm is not ε-optimal", f"{tables(on_e):,} tables on E"
    evidence = [
        Evidence(what, wrong, f"with the term, {where}", allowed="0"),
        Evidence(what, wrong_without, f"without it, {where}", allowed="0"),
        Evidence(what, wrong_narrow, f"with the term, {tables(on_narrow):,} tables on E′", allowed="0"),
        Evidence("tables in which the term costs pulls", dearer, where, allowed="0"),
    ]
    for row in saved.to_dict("records"):
        where = f"{row['problem']}, on average"
        evidence.append(
            measured("share of pulls saved", row["share"], row["error"], row["runs"], where, "> 0")
        )
    holds = saves and wrong == 0 and dearer == 0
    repaired = saves and wrong_narrow == 0 and wrong_without == 0
    return Finding("C29", holds, tuple(evidence), "simulation", repaired)
