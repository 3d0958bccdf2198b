"""Theorems 1 and 2 and what the text says of EBR's pulls, checked on random races and on the adversary's."""

import math
from collections.abc import Callable, Iterable
from itertools import chain, product, repeat
from typing import Any

import numpy as np
import pandas as pd

from compendium.shared.adversary import Case, tables
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding, counted, refutes
from compendium.shared.lineup import MakeElastic
from compendium.shared.problem_sets import Instance, problems_at_the_ends
from compendium.upper_bounds.lemmas import ARMS
from compendium.upper_bounds.race_tables import upper_bounds
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import drive
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory import bounds
from ebr.theory.bounds import iterated_log
from ebr.theory.problems import Bernoulli, Gaussian, Problem

Bound = Callable[[Problem, float, int, float], float]
RUNS = 100  # of every race that breaks a printed bound
RACES = 50  # on each problem whose requests are looked at


FAR_APART, HALF_APART = Bernoulli(np.array([1.0, 0.0])), np.array([0.75, 0.25])
# Races with T = 2 and δ = 0.1 that break printed bounds in every run: the problem, ε, and what of the printed
# algorithm does it.
WITNESSES: dict[str, tuple[Problem, float, dict[str, Any]]] = {
    "lone survivor pulled again": (FAR_APART, 0.01, {"lone_survivor": "pulled again"}),
    "schedule without σ²": (FAR_APART, 0.01, {"schedule": "printed"}),
    "ceiling, σ = 0.03": (Gaussian(HALF_APART, 0.03), 0.25, {}),
    "ceiling, σ = 0.001": (Gaussian(HALF_APART, 0.001), 0.25, {}),
}


def printed_races(corrected: bool = False) -> pd.DataFrame:
    """Races that break printed bounds in every run: a lone survivor pulled on, or σ so small that ⌈·⌉ counts.

    Corrected, both the algorithm and the bounds are, and nothing breaks. Columns: what, pulls (the least of
    100 runs) and the three bounds.
    """
    rows = []
    for what, (problem, epsilon, as_printed) in WITNESSES.items():
        reading = {} if corrected else as_printed
        algorithm = ElasticBatchRacing(2, epsilon, 0.1, problem.sigma, **reading)
        least = simulate(algorithm, problem, RUNS).pulls.min()
        bound = upper_bounds(problem, epsilon, 2, 0.1, printed=not corrected)
        rows.append({"what": what, "pulls": least} | bound)
    return pd.DataFrame(rows)


def _bounded(witnesses: pd.DataFrame, races: pd.DataFrame, over: str, bound: str) -> list[Evidence]:
    """How far the witnesses break a bound as printed, and how many random races the corrected one."""
    rows = [
        Evidence("pulls over the printed bound, at least", ratio, what, runs=RUNS, allowed="≤ 1")
        for what, ratio in zip(witnesses["what"], witnesses["pulls"] / witnesses[bound], strict=True)
    ]
    above, runs = int(races[over].sum()), int(races["runs"].sum())
    where = f"random races, {len(races)} problems"
    spare = float((races[bound] / races["most"]).min())
    rows.append(counted("P(a race is above the corrected bound)", above, runs, where, "≤ δ"))
    rows.append(Evidence("corrected bound over the dearest race, at least", spare, where, runs=runs))
    return rows


def theorem_1(races: pd.DataFrame, witnesses: pd.DataFrame, on_narrow: list[Case]) -> Finding:
    """Check C07: Ñ_T ≤ 80σ² log(nT/δ) Σ ε^{−2γ_i/T}; corrected, with ceilings and arm by arm on E′."""
    above = 0
    for problem, algorithm, played in on_narrow:
        gamma = problem.partition(algorithm.epsilon, algorithm.deadline)
        allowed = np.ceil(bounds.schedule(problem, algorithm.epsilon, algorithm.deadline, algorithm.delta))
        above += int((played.arm_pulls > allowed[gamma - 1]).any(axis=1).sum())
    grid = product(ARMS, (1, *ARMS), (0.001, 0.1, 0.5, 0.999), (0.0, 1.0))
    needs = [[bounds.elimination_need(n, t, d, shrink, u) for shrink in (0.0, 1.0)] for n, t, d, u in grid]
    tiny, usual = np.max(needs, axis=0).tolist()  # where a ceiling makes D → 0, and where none matters
    what, where = "share of a gap that elimination needs, at most", "the bound on E′, n and T to 1,000"
    evidence = (
        *_bounded(witnesses, races, "over_1", "theorem_1"),
        Evidence("tables with an arm above its term", above, f"of {tables(on_narrow):,} on E′", allowed="0"),
        Evidence(what, usual, where, allowed="< 1"),
        Evidence(what, tiny, f"{where}; σ → 0", allowed="< 1"),
    )
    broken = bool((witnesses["pulls"] > witnesses["theorem_1"]).any())
    repaired = above == 0 and max(tiny, usual) < 1 and not refutes(races, "over_1")
    return Finding("C07", repaired and not broken, evidence, "proved", repaired)


def theorem_1_second_form(
    races: pd.DataFrame, witnesses: pd.DataFrame, bound: Bound = bounds.hardest_upper_bound
) -> Finding:
    """Check C08: … ≤ 320σ² log(nT/δ) sup_{P_γ} H; corrected, + n for the ceilings."""
    return _above_theorem_1("C08", races, witnesses, bound, "1b")


def theorem_2(
    races: pd.DataFrame, witnesses: pd.DataFrame, bound: Bound = bounds.problem_upper_bound
) -> Finding:
    """Check C09, Theorem 2: Ñ_T ≤ 640σ² ε^{−2/T} log(nT/δ) H(ν); corrected, 320 and + n for the ceilings."""
    return _above_theorem_1("C09", races, witnesses, bound, "2")


def _above_theorem_1(
    claim: str, races: pd.DataFrame, witnesses: pd.DataFrame, bound: Bound, form: str
) -> Finding:
    """Check a bound that follows from Theorem 1's first, on races and against Σ⌈·⌉ at the bins' ends."""
    over, name = f"over_{form}", f"theorem_{form}"
    shares = [bounds.partition_upper_bound(*place) / bound(*place) for place in problems_at_the_ends()]
    where = f"{len(shares):,} problems at the bins' ends"
    evidence = (
        *_bounded(witnesses, races, over, name),
        Evidence("Theorem 1's first bound over this one, at most", max(shares), where, allowed="≤ 1"),
    )
    broken = bool((witnesses["pulls"] > witnesses[name]).any())
    repaired = max(shares) <= 1 and not refutes(races, over)
    return Finding(claim, repaired and not broken, evidence, "proved", repaired)


def restricted_class(
    instances: Iterable[Instance], seed: int, make: MakeElastic = ElasticBatchRacing
) -> Finding:
    """Check C35: EBR is in the class Ã: N_{i,t} ∈ {0, Q_t}, with Q_t the schedule's."""
    asked = odd = races = 0
    for instance in instances:
        races += RACES
        steps = np.diff(np.ceil(bounds.schedule(*instance[1:])), prepend=0)
        planned = steps[steps > 0]  # a round without a new pull is not asked for
        for pulls, step in zip(_requests(instance, seed, make), chain(planned, repeat(0)), strict=False):
            asked += pulls.size
            odd += int(((pulls != 0) & (pulls != step)).sum())
    what, where = "requests neither 0 nor the schedule's", f"of {asked:,}"
    evidence = Evidence(what, odd, where, runs=races, allowed="0")
    return Finding("C35", odd == 0, (evidence,), "proved")


def _requests(instance: Instance, seed: int, make: MakeElastic) -> list[IntArray]:
    """What some races with normal rewards ask for, round by round."""
    _, problem, epsilon, deadline, delta = instance
    generator = np.random.default_rng(np.random.SeedSequence([seed, 35]))
    asked: list[IntArray] = []

    def respond(pulls: IntArray) -> FloatArray:
        asked.append(pulls)
        noise = problem.sigma * np.sqrt(pulls) * generator.standard_normal(pulls.shape)
        return np.asarray(pulls * problem.means + noise)

    drive(make(deadline, epsilon, delta, problem.sigma).play(problem.n_arms, RACES), respond)
    return asked


def passive_design(constant: float = 80) -> Finding:
    """Check C37: 80σ² log(n/δ)/ε² pulls of each arm suffice in one round.

    By Hoeffding and a union bound the failure probability is at most (n−1)(δ/n)^{80/4}; for Gaussian arms at
    Δ = ε each of the n − 1 comparisons is a normal tail, exactly.
    """
    grid = list(product((2, 3, 10, 100, 10**4), (0.999, 0.5, 0.15, 0.01, 1e-6), (0.5, 0.1, 0.001)))
    worst = proved = 0.0
    hoeffding = True
    for n_arms, delta, epsilon in grid:
        pulls = constant / 80 * bounds.passive_pulls(n_arms, epsilon, delta, sigma=0.5)
        # The best arm loses to one of n − 1 others at Δ = ε, Gaussian rewards: a union bound, exact at n = 2.
        failure = (n_arms - 1) * norm.sf(epsilon * math.sqrt(pulls / 2) / 0.5)
        worst = max(worst, float(failure / delta))
        proved = max(proved, (n_arms - 1) * (delta / n_arms) ** (constant / 4) / delta)
        # Hoeffding's exponent ε²b/4σ² is 20 log(n/δ), whatever σ is.
        more = constant / 80 * bounds.passive_pulls(n_arms, epsilon, delta, sigma=2.0)
        exponents = epsilon**2 * pulls / (4 * 0.5**2), epsilon**2 * more / (4 * 2.0**2)
        hoeffding &= all(math.isclose(one, constant / 4 * math.log(n_arms / delta)) for one in exponents)
    # Both are worst at n = 2, δ = 0.999: Φ(−√(40 log(2/δ)))/δ and (δ/2)^20/δ.
    known = math.erfc(math.sqrt(20 * math.log(2 / 0.999))) / 2 / 0.999, (0.999 / 2) ** 20 / 0.999
    reached = all(map(math.isclose, (worst, proved), known))
    where = f"{len(grid)} settings"
    evidence = (
        Evidence("(n − 1)(δ/n)^20 over δ, at most", proved, f"the bound, {where}", allowed="≤ 1"),
        Evidence("failure probability over δ, at most", worst, f"Gaussian, Δ = ε, {where}", allowed="≤ 1"),
    )
    return Finding("C37", worst <= 1 and proved <= 1 and reached and hoeffding, evidence, "proved")


def remark(rounds_needed: float = 2.0) -> Finding:
    """Check C10, the Remark: T ≥ 2 log(1/ε) ⇒ ε^{−2/T} ≤ e, at the smallest such T, where it is largest."""
    epsilons = np.geomspace(1e-12, 0.999, 20001)
    deadlines = np.maximum(np.ceil(rounds_needed * np.log(1 / epsilons)), 1)
    largest = float((epsilons ** (-2 / deadlines)).max())
    where = f"T = ⌈2 log(1/ε)⌉, {len(epsilons):,} values of ε"
    evidence = Evidence("ε^(−2/T), at most", largest, where, allowed="≤ e = 2.71828")
    return Finding("C10", largest <= math.e * (1 + 1e-12), (evidence,), "proved")


def tightest(bound: Callable[..., float] = bounds.problem_upper_bound) -> Finding:
    """Check C34: Theorem 1's bound is tighter than Theorem 2's."""
    first, second = [], []
    for place in problems_at_the_ends():
        printed = bound(*place, printed=True)
        first.append(bounds.partition_upper_bound(*place, printed=True) / printed)
        second.append(bounds.hardest_upper_bound(*place, printed=True) / printed)
    where = f"{len(first):,} problems at the bins' ends"
    evidence = (
        Evidence("Theorem 1's first form over Theorem 2, at most", max(first), where, allowed="≤ 1"),
        Evidence("Theorem 1's second form over Theorem 2, at most", max(second), where, allowed="≤ 1"),
    )
    return Finding("C34", max(second) <= 1, evidence, "proved", max(first) <= 0.5)


def passive_factor(n_arms: float, delta: float, deadline: int) -> float:
    """What n ε^{−2} is multiplied by in the passive design's cost: log(n/δ) = log(1/δ) + log n."""
    return math.log(n_arms / delta)


def elimination_factor(n_arms: float, delta: float, deadline: int) -> float:
    """And in kδER's bound (Jin et al., 2019): log(1/δ) + ilog^T_{1/δ}(n)."""
    return math.log(1 / delta) + iterated_log(deadline, n_arms, base=1 / delta)


def passive_against_elimination(
    passive: Callable[[float, float, int], float] = passive_factor,
    elimination: Callable[[float, float, int], float] = elimination_factor,
) -> Finding:
    """Check C38: the passive design attains kδER's bound but for the term ilog^T(n), of lower order.

    Both are log(1/δ) and a term in n, log n or ilog^T(n): the whole improvement is there. It is of lower
    order, and the bounds the same up to a factor 2, where n ≤ 1/δ; for a fixed δ it is not.
    """
    grid = list(product((2, 1e2, 1e10, 1e50, 1e100), (0.1, 0.01, 1e-6, 1e-50, 1e-100), (1, 2, 3, 15)))
    others = sum(not math.isclose(passive(n, d, t), math.log(1 / d) + math.log(n)) for n, d, t in grid)
    few = [passive(n, d, t) / elimination(n, d, t) for n, d, t in grid if n * d <= 1]
    ours = (100, 0.01, 15)
    where, what = f"n ≤ 1/δ, {len(few)} settings", "passive's factor over kδER's"
    evidence = [
        Evidence("passive's factors that are not log(1/δ) + log n", others, f"of {len(grid)}", allowed="0"),
        Evidence(f"{what}, at most", max(few), where, allowed="≤ 2"),
        Evidence(what, passive(*ours) / elimination(*ours), "section 5's n, T, δ"),
    ]
    many = {k: passive(10.0**k, 0.01, 15) / elimination(10.0**k, 0.01, 15) for k in (10, 100, 300)}
    for exponent, ratio in many.items():
        evidence.append(Evidence(what, ratio, f"n = 10^{exponent}, T = 15, δ = 0.01", allowed="≤ 2"))
    # To the base 1/δ, ilog of δ^−k is k, and ilog² is 1.
    known = all(
        math.isclose(elimination(d**-k, d, t), math.log(1 / d) + {1: k, 2: 1}[t])
        for d, k, t in product((0.1, 0.01), (2, 3), (1, 2))
    )
    repaired = others == 0 and max(few) <= 2 and known
    return Finding("C38", repaired and max(many.values()) <= 2, tuple(evidence), "proved", repaired)
