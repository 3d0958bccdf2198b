"""The appendix's lemmas "on the event E", tested by an adversary that sets every mean within its interval.

Some statements break in a corner of E. They hold on the smaller event E′, and P(E′) ≥ 1 − δ as well.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd

from compendium.shared.adversary import Case, tables, wrong_arms
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding, counted, measured, refutes
from compendium.shared.lineup import MakeElastic
from compendium.upper_bounds.fixed_counts import recommended_gap
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory.confidence import SELF_NORMALISED
from ebr.theory.problems import Bernoulli, Gaussian, Problem

RUNS = 200  # runs of each race that drops every arm
ARMS = (2, 3, 4, 5, 6, 7, 8, 10, 30, 100, 1000)  # n and T at which the repaired guarantee is evaluated
RUNTIME_CONSTANT = 16 * SELF_NORMALISED  # 86.2, what Lemma "runtime" needs on the event E in place of 80 (E1)
MOST_LOST = 0.76  # largest Δ/ε on E′ where the ceilings do not matter (C01 in the ledger)


def emptied_races(returned_from: str = "after it", schedule: str = "printed") -> list[Evidence]:
    """Two races in which 2D < η, so that the rule drops every arm before round T, the leader too.

    The first is Algorithm 1 as printed. The second has σ² in the schedule, but σ is so small that one pull
    decides. The evidence: how often no arm was left, and 2D/η in round T − 1. With `returned_from="last
    round"` the rule keeps the leader.
    """
    printed = ElasticBatchRacing(
        2, 0.3, 0.1, 0.5, schedule=schedule, lone_survivor="pulled again", returned_from=returned_from
    )
    scaled = ElasticBatchRacing(3, 0.5, 0.1, 0.001, returned_from=returned_from)
    races: tuple[tuple[str, ElasticBatchRacing, Problem], ...] = (
        ("as printed, n = T = 2, ε = 0.3, Bernoulli", printed, Bernoulli(np.array([0.8, 0.3]))),
        ("σ² in the schedule, n = T = 3, σ = 0.001", scaled, Gaussian(np.array([0.2, 0.9, 0.5]), 0.001)),
    )
    rows = []
    for where, algorithm, problem in races:
        width = algorithm.deviation(algorithm.pulls_by_round(problem.n_arms)[-2], problem.n_arms)
        result = simulate(algorithm, problem, RUNS)
        none = (result.arm == -1) & (result.rounds < algorithm.deadline)
        share = float(2 * width / algorithm.slack(problem.n_arms))
        rows.append(counted("P(no arm is left before round T)", int(none.sum()), RUNS, where, "0"))
        rows.append(Evidence("2D/η in round T − 1", share, where, allowed="≥ 1"))
    return rows


def printed_error(schedule: str = "printed") -> float:
    """Exact P(the wrong arm) without σ² in the schedule: two Gaussian arms ε apart, T = 1.

    σ = 20, δ = 0.1, ε = 0.3. The arm with the better empirical mean is returned.
    """
    pulls = ElasticBatchRacing(1, 0.3, 0.1, sigma=20, schedule=schedule).pulls_by_round(2)[0]
    return float(norm.sf(0.3 * np.sqrt(pulls / 2) / 20))


def guarantee(
    on_e: list[Case], on_narrow: list[Case], races: pd.DataFrame, emptied: list[Evidence]
) -> Finding:
    """Check C01: an ε-optimal arm with probability at least 1 − δ, in at most T rounds.

    The adversary's tables on E and on E′, random `races` from `race_tables.measure`, and `emptied_races`.
    """
    wrong, narrow_wrong = wrong_arms(on_e), wrong_arms(on_narrow)
    worst = max(recommended_gap(n, t, d) for n in ARMS for t in (1, *ARMS) for d in (0.001, 0.1, 0.5, 0.999))
    late = sum(len(case.played.rounds) > case.algorithm.deadline for case in on_e)
    what = "tables in which the arm is not ε-optimal"
    failures, runs = int(races["wrong"].sum()), int(races["runs"].sum())
    unscaled, corrected = printed_error(), printed_error(schedule="scaled")
    where = "n = 2, T = 1, Gaussian, σ = 20, Δ = ε"
    evidence = (
        *emptied,
        Evidence("P(the wrong arm), no σ² in the schedule", unscaled, where, allowed="≤ δ = 0.1"),
        Evidence("P(the wrong arm), σ² in the schedule", corrected, where, allowed="≤ δ = 0.1"),
        Evidence(what, wrong, f"of {tables(on_e):,} on E", allowed="0"),
        Evidence(what, narrow_wrong, f"of {tables(on_narrow):,} on E′", allowed="0"),
        Evidence(
            "Δ of the arm over ε, at most",
            worst,
            "the bound on E′, n and T to 1,000",
            allowed=f"< {MOST_LOST}",
        ),
        Evidence("problems with more than T rounds", late, f"of {len(on_e)} on E", allowed="0"),
        counted("P(the arm is not ε-optimal)", failures, runs, f"random races, {len(races)} problems", "≤ δ"),
    )
    repaired = (
        narrow_wrong == 0
        and worst < MOST_LOST
        and corrected <= 0.1
        and not refutes(races, "wrong")
        and not late
    )
    as_printed = unscaled <= 0.1 and not any(row.value for row in emptied[::2]) and wrong == 0
    return Finding("C01", repaired and as_printed, evidence, "proved", repaired)


def survival(cases: list[Case]) -> Finding:
    """Check C04, Lemma "survival": on E, arm i dropped for the leader j means μ_i − μ_j ≤ η = ε/(n∧T).

    The adversary gets arbitrarily close to η. So a smaller η would make the lemma false, and the check also
    fails for a larger one, which is not what is printed.
    """
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
    return Finding("C04", 0.999 <= largest <= 1, (evidence,), "proved")


def algorithm_survival(cases: list[Case], emptied: list[Evidence]) -> Finding:
    """Check C05, Lemma "alg survival": on E, S_T contains an ε-optimal arm."""
    lost = 0
    for problem, algorithm, played in cases:
        good = problem.is_good(np.arange(problem.n_arms), algorithm.epsilon)
        for stage in played.rounds:
            playing = stage.alive.any(axis=1)
            lost += int((playing & ~(stage.alive & good).any(axis=1)).sum())
    where = f"leader kept, {tables(cases):,} tables on E"
    evidence = (*emptied, Evidence("S_t without an ε-optimal arm", lost, where, allowed="0"))
    holds = lost == 0 and not any(row.value for row in emptied[::2])
    return Finding("C05", holds, evidence, "proved", lost == 0)


def _spared_arms(cases: Iterable[Case], constant: float, to_survivors: bool = False) -> int:
    """Number of arms that should be dropped by Lemma "runtime" with this constant, but are kept.

    Gaps are measured to the best arm, as printed, or to the best survivor.
    """
    return sum(int(spared.sum()) for case in cases for spared in _spared(case, constant, to_survivors))


def _spared(case: Case, constant: float, to_survivors: bool) -> Iterator[BoolArray]:
    """The arms that `_spared_arms` counts, round by round."""
    problem, algorithm, played = case
    n_arms, deadline, epsilon = problem.n_arms, algorithm.deadline, algorithm.epsilon
    eta = epsilon / min(n_arms, deadline)
    for stage in played.rounds:
        half_width = algorithm.deviation(stage.pulls, n_arms)
        leading = np.where(stage.alive, stage.means, -np.inf).max(axis=1, keepdims=True)
        # The leader is kept where 2D < η.
        spared = stage.alive & (stage.means >= leading - max(2 * half_width - eta, 0))
        best = np.where(stage.alive, problem.means, 0).max(axis=1, keepdims=True)
        gap = (best if to_survivors else problem.means.max()) - problem.means
        needed = runtime(np.maximum(gap, 1e-9), problem, deadline, algorithm.delta, constant)
        bad = problem.means <= problem.means.max() - epsilon
        yield spared & bad & (stage.pulls >= needed)


def runtime(
    gap: FloatArray, problem: Problem, deadline: int, delta: float, constant: float = RUNTIME_CONSTANT
) -> FloatArray:
    """Lemma "runtime": on E an arm with this gap to a survivor is gone after c σ² log(nT/δ) / Δ² pulls.

    The paper prints c = 80; four deviations must fit into the gap, which takes c = 16 (4 + 2 log 2) (E1).
    """
    log_term = math.log(problem.n_arms * deadline / delta)
    return np.asarray(constant * problem.sigma**2 * log_term / np.square(gap))


def runtime_lemma(
    on_e: list[Case],
    on_narrow: list[Case],
    races: pd.DataFrame,
    printed: float = 80,
    constant: float = RUNTIME_CONSTANT,
) -> Finding:
    """Check C06, Lemma "runtime": a bad arm is gone after 80σ² log(nT/δ)/Δ_i² pulls of every survivor.

    The column `late` of the random `races` counts the runs in which an arm is pulled beyond round γ_i.
    """
    # With two arms only E1 is at work: the best arm cannot be lost first.
    pairs = [case for case in on_e if case.problem.n_arms == 2]
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
    return Finding("C06", as_printed == 0, evidence, "proved", repaired)


class WithoutSlack(ElasticBatchRacing):
    """Algorithm 1 without the term + ε/(n∧T) in its elimination rule."""

    def slack(self, n_arms: int) -> float:
        """No slack."""
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
    """Share of pulls that the term saves on each problem, with its standard error."""
    rows = []
    races = (make(deadline, epsilon, delta), WithoutSlack(deadline, epsilon, delta))
    for name, problem in problems.items():
        ratio, error = pulls_ratio(*(simulate(race, problem, runs, seed).pulls for race in races))
        rows.append((name, runs, 1 - ratio, error))
    return pd.DataFrame(rows, columns=["problem", "runs", "share", "error"])


def pulls_ratio(over: IntArray, under: IntArray) -> tuple[float, float]:
    """Ratio of two mean numbers of pulls, with its standard error by the delta method."""
    ratio = float(over.mean() / under.mean())
    relative = (pulls.std(ddof=1) / pulls.mean() / math.sqrt(len(pulls)) for pulls in (over, under))
    return ratio, ratio * math.hypot(*relative)


def slack_term(on_e: list[Case], on_narrow: list[Case], without: list[Case], saved: pd.DataFrame) -> Finding:
    """Check C29: the term + ε/(n∧T) does not affect correctness and only saves pulls.

    `without` has the corners of E for a race without the term. `saved`, from `savings`, has the share of
    pulls that the term saves in random races.
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
    return Finding("C29", holds, tuple(evidence), "simulated", repaired)
