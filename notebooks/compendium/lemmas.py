"""The appendix's lemmas "on the event E", put to an adversary who sets every mean within its interval.

E is the paper's event: every interval μ̂ ± D covers. E′ is the smaller event that Hoeffding's narrower
intervals μ̂ ± D′ cover at every count of the schedule; it, too, has probability at least 1 − δ, since those
counts are fixed in advance. Statements that break in a corner of E hold on E′.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from compendium.adversary import Played, corners, play_inside
from compendium.findings import Finding, refutes
from compendium.lineup import MakeElastic
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import BoolArray
from ebr.simulation.simulate import simulate
from ebr.theory.bounds import RUNTIME_CONSTANT, SCHEDULE_CONSTANT, recommended_gap, runtime
from ebr.theory.confidence import fixed_count_ratio
from ebr.theory.problems import Gaussian, Problem, hardest, nonempty_partitions

__all__ = [
    "Case",
    "WithoutSlack",
    "c01",
    "c04",
    "c05",
    "c06",
    "c29",
    "empty_race",
    "inside",
    "savings",
    "staircase",
    "tables",
    "wrong_arms",
]

SHAPES = ((2, 2), (2, 3), (2, 4), (3, 2), (3, 3))  # n and T; the last, with 3⁹ corners, for the first ε only
DELTA, SIGMA = 0.1, 0.5
EPSILONS = (0.1, 0.004, 1e-6)  # the small ones have gaps so much larger than η that E1 shows


class Case(NamedTuple):
    """A problem, the algorithm, and what the adversary made of it in every corner."""

    problem: Gaussian
    algorithm: ElasticBatchRacing
    played: Played


def staircase(epsilon: float, deadline: int) -> Gaussian:
    """Three arms: the second just less than η = ε/T below the first, the third not ε-optimal (T = 2 or 3)."""
    return Gaussian(0.8 - epsilon * np.array([0, (1 - 1e-6) / deadline, 1 + 1e-9]), SIGMA)


def brink(epsilon: float) -> Gaussian:
    """Two arms that round 1 of T = 2 leaves with 86σ² log(nT/δ)/Δ² pulls, just short of what E needs."""
    return Gaussian(np.array([0.5, 0.5 - math.sqrt(epsilon * 86 / SCHEDULE_CONSTANT)]), SIGMA)


def inside(narrow: bool = False, make: MakeElastic = ElasticBatchRacing) -> list[Case]:
    """Every corner of E (or, narrow, of E′) on the hardest problem of each non-empty P_γ and others."""
    cases = []
    for epsilon in EPSILONS:
        for n_arms, deadline in SHAPES[: None if epsilon == EPSILONS[0] else -1]:
            problems = [hardest(g, epsilon, deadline, SIGMA) for g in nonempty_partitions(n_arms, deadline)]
            problems += [staircase(epsilon, deadline)] * (n_arms == 3)
            problems += [brink(epsilon)] * ((n_arms, deadline) == (2, 2))
            places = corners(n_arms, deadline)
            places *= fixed_count_ratio(n_arms, deadline, DELTA) if narrow else 1.0
            algorithm = make(deadline, epsilon, DELTA, SIGMA)
            cases += [
                Case(problem, algorithm, play_inside(algorithm, problem, places)) for problem in problems
            ]
    return cases


def tables(cases: list[Case]) -> int:
    """How many tables the adversary has played."""
    return sum(len(case.played.arm) for case in cases)


def wrong_arms(cases: list[Case]) -> int:
    """In how many tables an arm is recommended that is not ε-optimal."""
    return sum(int((~c.problem.is_good(c.played.arm, c.algorithm.epsilon)).sum()) for c in cases)


def empty_race(make: MakeElastic = ElasticBatchRacing) -> int:
    """In how many of 100 runs the printed rule drops every arm early, σ so small that 2D < η."""
    algorithm = make(3, 0.5, 0.1, 0.001, returned_from="after it")
    result = simulate(algorithm, Gaussian(np.array([0.2, 0.9, 0.5]), 0.001), runs=100)
    return int(((result.arm == -1) & (result.rounds < algorithm.deadline)).sum())


def c01(on_e: list[Case], on_narrow: list[Case], races: pd.DataFrame, emptied: int) -> Finding:
    """Check C01: an ε-optimal arm with probability at least 1 − δ, in at most T rounds.

    Random `races` (how many wrong arms in so many runs, and δ, by problem) and `emptied` of `empty_race`
    complete the adversary's tables.
    """
    wrong, narrow_wrong = wrong_arms(on_e), wrong_arms(on_narrow)
    grid = [2, 3, 4, 5, 6, 7, 8, 10, 30, 100, 1000]
    worst = max(recommended_gap(n, t, d) for n in grid for t in [1, *grid] for d in (0.001, 0.1, 0.5, 0.999))
    late = any(len(case.played.rounds) > case.algorithm.deadline for case in on_e)
    evidence = (
        f"as printed no arm is left in {emptied} of 100 runs at σ = 0.001 (n = T = 3, ε = 0.5); "
        f"on E alone {wrong} of {tables(on_e)} tables recommend an arm that is not ε-optimal; "
        f"on E′ {narrow_wrong} of {tables(on_narrow)} do, and the bound on E′ is at most {worst:.3f} ε; "
        f"{races['wrong'].sum()} wrong arms in {races['runs'].sum()} random races on {len(races)} problems"
    )
    repaired = narrow_wrong == 0 and worst < 1 and not refutes(races, "wrong") and not late
    return Finding("C01", repaired and emptied == 0 and wrong == 0, evidence, repaired)


def c04(cases: list[Case]) -> Finding:
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
    evidence = f"{dropped} eliminations in {tables(cases)} tables on E: μ_i − μ_j at most {largest:.6f} η"
    return Finding("C04", largest <= 1, evidence)


def c05(cases: list[Case], emptied: int) -> Finding:
    """Check C05, Lemma "alg survival": on E, S_T contains an ε-optimal arm."""
    lost = 0
    for problem, algorithm, played in cases:
        good = problem.is_good(np.arange(problem.n_arms), algorithm.epsilon)
        for stage in played.rounds:
            playing = stage.alive.any(axis=1)
            lost += int((playing & ~(stage.alive & good).any(axis=1)).sum())
    evidence = (
        f"as printed S_T is empty in {emptied} of 100 runs at σ = 0.001; with the leader kept, "
        f"S_t without an ε-optimal arm in {lost} of {tables(cases)} tables on E"
    )
    return Finding("C05", lost == 0 and emptied == 0, evidence, lost == 0)


def _spared(cases: list[Case], constant: float, to_survivors: bool) -> Iterator[tuple[Case, BoolArray]]:
    """The arms that Lemma "runtime" with this constant says are dropped but that the rule spares, by round.

    Gaps are to the best arm, as printed, or to the best survivor.
    """
    for case in cases:
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
            yield case, spared & bad & (stage.pulls >= needed)


def c06(
    on_e: list[Case],
    on_narrow: list[Case],
    races: pd.DataFrame,
    printed: float = 80,
    constant: float = RUNTIME_CONSTANT,
) -> Finding:
    """Check C06, Lemma "runtime": a bad arm is gone after 80σ² log(nT/δ)/Δ_i² pulls of every survivor.

    Random `races` tell how often an arm is pulled beyond round γ_i (late).
    """
    lone = [case for case in on_e if case.problem.n_arms == 2]  # E1 alone: the best arm cannot be lost first
    two_arms = sum(int(spared.sum()) for _, spared in _spared(lone, printed, to_survivors=False))
    as_printed = sum(int(spared.sum()) for _, spared in _spared(on_e, printed, to_survivors=False))
    corrected = sum(int(spared.sum()) for _, spared in _spared(on_e, constant, to_survivors=True))
    narrow = sum(int(spared.sum()) for _, spared in _spared(on_narrow, printed, to_survivors=False))
    evidence = (
        f"with {printed:g} on E {as_printed} arms are spared in {tables(on_e)} tables, {two_arms} of them "
        f"with n = 2; with {constant:.2f} and gaps to the best survivor {corrected}; "
        f"with {printed:g} on E′ {narrow} in {tables(on_narrow)}; an arm outlives its round γ_i in "
        f"{races['late'].sum()} of {races['runs'].sum()} random races"
    )
    repaired = corrected == 0 and narrow == 0 and not refutes(races, "late")
    return Finding("C06", as_printed == 0, evidence, repaired)


class WithoutSlack(ElasticBatchRacing):
    """Algorithm 1 without the term + ε/(n∧T) in its elimination rule."""

    def slack(self, n_arms: int) -> float:
        """None."""
        return 0.0


def savings(
    problems: dict[str, Problem],
    deadline: int,
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
    make: MakeElastic = ElasticBatchRacing,
) -> dict[str, tuple[float, float]]:
    """The share of pulls that the slack saves on each problem, and its standard error."""
    shares = {}
    for name, problem in problems.items():
        races = (make(deadline, epsilon, delta), WithoutSlack(deadline, epsilon, delta))
        pulls = [simulate(race, problem, runs, seed).pulls for race in races]
        ratio = pulls[0].mean() / pulls[1].mean()
        relative = [p.std(ddof=1) / p.mean() / np.sqrt(runs) for p in pulls]
        shares[name] = (1 - ratio, ratio * float(np.hypot(*relative)))
    return shares


def c29(
    on_e: list[Case], on_narrow: list[Case], without: list[Case], savings: dict[str, tuple[float, float]]
) -> Finding:
    """Check C29: the term + ε/(n∧T) leaves correctness alone and only saves pulls.

    `without` has E's corners for a race that lacks the term; `savings` the share of pulls that it saves in
    random races, with a standard error, by problem.
    """
    pairs = zip(on_e, without, strict=True)
    dearer = sum(
        int((a.played.arm_pulls.sum(axis=1) > b.played.arm_pulls.sum(axis=1)).sum()) for a, b in pairs
    )
    wrong, wrong_without, wrong_narrow = wrong_arms(on_e), wrong_arms(without), wrong_arms(on_narrow)
    saves = all(saving > 5 * error for saving, error in savings.values())
    words = [f"{name} {100 * saving:.2f} ± {100 * error:.2f} %" for name, (saving, error) in savings.items()]
    evidence = (
        f"on E {wrong} of {tables(on_e)} tables go wrong with it and {wrong_without} without, on E′ "
        f"{wrong_narrow} with it; it costs more pulls in {dearer} tables; saved on average (± 1 s.e.): "
        + ", ".join(words)
    )
    return Finding(
        "C29",
        saves and wrong == 0 and dearer == 0,
        evidence,
        saves and wrong_narrow == 0 and wrong_without == 0,
    )
