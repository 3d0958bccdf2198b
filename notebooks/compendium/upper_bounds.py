"""Theorems 1 and 2 and what the text says of EBR's pulls, checked on random races and on the adversary's."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import norm

from compendium.findings import FALSE_ALARM, Finding, refutes
from compendium.lemmas import Case
from compendium.lineup import MakeElastic
from compendium.problem_sets import Instance, problems_at_the_ends
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import drive
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory import bounds
from ebr.theory.bounds import iterated_log
from ebr.theory.problems import Bernoulli, Gaussian, Problem, hardest, nonempty_partitions

__all__ = ["c07", "c08", "c09", "c10", "c34", "c35", "c37", "c38", "c47", "printed_races"]

ARMS = (2, 3, 4, 5, 6, 7, 8, 10, 100, 1000)  # n and T on which a bound's worst case is looked for


def printed_races(make: MakeElastic = ElasticBatchRacing) -> pd.DataFrame:
    """Races that break printed bounds in every run: a lone survivor pulled on, or σ so small that ⌈·⌉ counts.

    Columns: what, pulls (the least of 100 runs) and the three bounds as printed.
    """
    rows = []
    for what, problem, epsilon, deadline, changes in (
        (
            "lone survivor pulled again",
            Bernoulli(np.array([1.0, 0.0])),
            0.01,
            2,
            {"lone_survivor": "pulled again"},
        ),
        ("schedule without σ²", Bernoulli(np.array([1.0, 0.0])), 0.01, 2, {"schedule": "printed"}),
        ("ceiling, σ = 0.03", Gaussian(np.array([0.75, 0.25]), 0.03), 0.25, 2, {}),
        ("ceiling, σ = 0.001", Gaussian(np.array([0.75, 0.25]), 0.001), 0.25, 2, {}),
    ):
        race = make(deadline, epsilon, 0.1, problem.sigma, **changes)
        least = simulate(race, problem, runs=100).pulls.min()
        place = (problem, epsilon, deadline, 0.1, True)
        rows.append(
            (
                what,
                least,
                bounds.partition_upper_bound(*place),
                bounds.hardest_upper_bound(*place),
                bounds.problem_upper_bound(*place),
            )
        )
    return pd.DataFrame(rows, columns=["what", "pulls", "theorem_1", "theorem_1b", "theorem_2"])


def _broken(witnesses: pd.DataFrame, bound: str) -> str:
    """The witnesses that break a bound as printed, in words."""
    broken = witnesses[witnesses["pulls"] > witnesses[bound]]
    words = [
        f"{row.what}: {row.pulls:g} pulls at least, bound {getattr(row, bound):.4g}"
        for row in broken.itertuples()
    ]
    return "; ".join(words) or "no witness"


def _random_races(table: pd.DataFrame, over: str, bound: str) -> str:
    """How many races are above a corrected bound, in words."""
    ratio = table[bound] / table["most"]
    return (
        f"corrected, {int(table[over].sum())} of {int(table['runs'].sum())} races on {len(table)} problems "
        f"are above it; bound over the dearest race: {ratio.min():.3g} to {ratio.max():.3g}"
    )


def c07(table: pd.DataFrame, witnesses: pd.DataFrame, on_narrow: list[Case]) -> Finding:
    """Check C07: Ñ_T ≤ 80σ² log(nT/δ) Σ ε^{−2γ_i/T}; corrected, with ceilings and arm by arm on E′."""
    above = 0
    for problem, algorithm, played in on_narrow:
        gamma = problem.partition(algorithm.epsilon, algorithm.deadline)
        allowed = np.ceil(bounds.schedule(problem, algorithm.epsilon, algorithm.deadline, algorithm.delta))
        above += int((played.arm_pulls > allowed[gamma - 1]).any(axis=1).sum())
    tables = sum(len(case.played.arm) for case in on_narrow)
    grid = product(ARMS, (1, *ARMS), (0.001, 0.1, 0.5, 0.999), (0.0, 1.0))
    needs = [[bounds.elimination_need(n, t, d, shrink, u) for shrink in (0.0, 1.0)] for n, t, d, u in grid]
    broken = bool((witnesses["pulls"] > witnesses["theorem_1"]).any())
    evidence = (
        f"as printed, every run: {_broken(witnesses, 'theorem_1')}; "
        f"{_random_races(table, 'over_1', 'theorem_1')}; on E′ an arm is above its term in {above} of "
        f"{tables} tables, elimination needs at most {np.max(needs, axis=0)[1]:.3f} of a gap"
    )
    repaired = above == 0 and bool(np.max(needs) < 1) and not refutes(table, "over_1")
    return Finding("C07", repaired and not broken, evidence, repaired)


def c08(table: pd.DataFrame, witnesses: pd.DataFrame, constant: float = 320) -> Finding:
    """Check C08: … ≤ 320σ² log(nT/δ) sup_{P_γ} H; corrected, + n for the ceilings."""
    bound = partial(bounds.hardest_upper_bound, constant=constant)
    return _above_theorem_1("C08", table, witnesses, bound, ("over_1b", "theorem_1b"))


def c09(table: pd.DataFrame, witnesses: pd.DataFrame, constant: float = 320) -> Finding:
    """Check C09, Theorem 2: Ñ_T ≤ 640σ² ε^{−2/T} log(nT/δ) H(ν); corrected, 320 and + n for the ceilings."""
    bound = partial(bounds.problem_upper_bound, constant=constant)
    return _above_theorem_1("C09", table, witnesses, bound, ("over_2", "theorem_2"))


def _above_theorem_1(
    claim: str,
    table: pd.DataFrame,
    witnesses: pd.DataFrame,
    bound: Callable[..., float],
    columns: tuple[str, str],
) -> Finding:
    """Check a bound that follows from Theorem 1's first, on races and against Σ⌈·⌉ at the bins' ends."""
    over, name = columns
    shares = [bounds.partition_upper_bound(*place) / bound(*place) for place in problems_at_the_ends()]
    broken = bool((witnesses["pulls"] > witnesses[name]).any())
    evidence = (
        f"as printed, every run: {_broken(witnesses, name)}; {_random_races(table, over, name)}; Σ⌈·⌉ is at "
        f"most {max(shares):.4f} of it on {len(shares)} problems at the bins' ends"
    )
    repaired = max(shares) <= 1 and not refutes(table, over)
    return Finding(claim, repaired and not broken, evidence, repaired)


def c35(settings: Iterable[Instance], seed: int, make: MakeElastic = ElasticBatchRacing) -> Finding:
    """Check C35: EBR is in the class Ã: N_{i,t} ∈ {0, Q_t}, with Q_t the schedule's."""
    asked = odd = 0
    for _, problem, epsilon, deadline, delta in settings:
        algorithm = make(deadline, epsilon, delta, problem.sigma)
        steps = np.diff(np.ceil(bounds.schedule(problem, epsilon, deadline, delta)), prepend=0)
        allowed = iter(steps[steps > 0])  # a round without a new pull is not asked for
        generator = np.random.default_rng(np.random.SeedSequence([seed, 35]))

        def respond(
            pulls: IntArray,
            problem: Problem = problem,
            allowed: Iterator[float] = allowed,
            generator: np.random.Generator = generator,
        ) -> FloatArray:
            nonlocal asked, odd
            asked += pulls.size
            odd += int(((pulls != 0) & (pulls != next(allowed, 0))).sum())
            noise = problem.sigma * np.sqrt(pulls) * generator.standard_normal(pulls.shape)
            return np.asarray(pulls * problem.means + noise)

        drive(algorithm.play(problem.n_arms, 50), respond)
    return Finding("C35", odd == 0, f"{odd} of {asked} requests are neither 0 nor the schedule's")


def c37(constant: float = 80) -> Finding:
    """Check C37: 80σ² log(n/δ)/ε² pulls of each arm suffice in one round; exact for arms at Δ = ε."""
    worst = 0.0
    for n_arms, delta, epsilon in product((2, 3, 10, 100, 10**4), (0.5, 0.15, 0.01, 1e-6), (0.5, 0.1, 0.001)):
        pulls = constant / 80 * bounds.passive_pulls(n_arms, epsilon, delta, sigma=0.5)
        # The best arm loses to one of n − 1 others at Δ = ε, Gaussian rewards: a union bound, exact at n = 2.
        failure = (n_arms - 1) * norm.sf(epsilon * math.sqrt(pulls / 2) / 0.5)
        worst = max(worst, failure / delta)
    return Finding("C37", bool(worst <= 1), f"failure probability at most {worst:.2g} δ at 60 settings")


def c47(
    shapes: Iterable[tuple[int, int]], runs: int, seed: int, make: MakeElastic = ElasticBatchRacing
) -> Finding:
    """Check C47: EBR needs fewer pulls on problems that are easier in the partial order of the P_γ.

    On the hardest problem of every non-empty P_γ; a pair is out of order where a normal test of its two means
    says so at FALSE_ALARM over all pairs.
    """
    pairs = []
    for n_arms, deadline in shapes:
        full = nonempty_partitions(n_arms, deadline)
        races = [
            simulate(
                make(deadline, 0.05, 0.1), hardest(gamma, 0.05, deadline, shrink=0.999), runs, seed
            ).pulls
            for gamma in full
        ]
        cost = {g: (p.mean(), p.std(ddof=1) / math.sqrt(runs)) for g, p in zip(full, races, strict=True)}
        ordered = ((a, b) for a, b in product(full, full) if a != b and (np.array(a) <= np.array(b)).all())
        pairs += [(cost[a][0] - cost[b][0], math.hypot(cost[a][1], cost[b][1])) for a, b in ordered]
    limit = norm.isf(FALSE_ALARM / len(pairs))
    wrong = sum(excess > limit * error for excess, error in pairs)
    return Finding(
        "C47", bool(wrong == 0), f"{wrong} of {len(pairs)} ordered pairs out of order, {runs} runs each"
    )


def c10(rounds_needed: float = 2.0) -> Finding:
    """Check C10, the Remark: T ≥ 2 log(1/ε) ⇒ ε^{−2/T} ≤ e, at the smallest such T, where it is largest."""
    epsilons = np.geomspace(1e-12, 0.999, 20001)
    deadlines = np.maximum(np.ceil(rounds_needed * np.log(1 / epsilons)), 1)
    factors = epsilons ** (-2 / deadlines)
    evidence = f"ε^(−2/T) at most {factors.max():.6f} at T = ⌈2 log(1/ε)⌉ for {len(epsilons)} values of ε"
    return Finding("C10", bool(factors.max() <= math.e * (1 + 1e-12)), evidence)


def c34(constant: float = 640) -> Finding:
    """Check C34: Theorem 1's bound is tighter than Theorem 2's."""
    first, second = [], []
    for place in problems_at_the_ends():
        printed = bounds.problem_upper_bound(*place, printed=True, constant=constant)
        first.append(bounds.partition_upper_bound(*place, printed=True) / printed)
        second.append(bounds.hardest_upper_bound(*place, printed=True) / printed)
    evidence = (
        f"Theorem 1 over Theorem 2 on {len(first)} problems at the bins' ends: first form at most "
        f"{max(first):.3f}, second form at most {max(second):.3f}"
    )
    return Finding("C34", max(second) <= 1, evidence, max(first) <= 0.5)


def _passive_factor(n_arms: float, delta: float) -> float:
    return math.log(n_arms / delta)


def c38(
    deadline: int = 15, delta: float = 0.01, passive: Callable[[float, float], float] = _passive_factor
) -> Finding:
    """Check C38: passive's factor log(n/δ) is kδER's, log(1/δ) + ilog^T(n), but for a lower-order term."""
    ratios = {}
    for exponent in (2, 10, 100, 300):
        n_arms = 10.0**exponent
        other = math.log(1 / delta) + iterated_log(deadline, n_arms)
        ratios[exponent] = passive(n_arms, delta) / other
    words = ", ".join(f"n = 10^{exponent}: {ratio:.1f}" for exponent, ratio in ratios.items())
    evidence = f"passive's factor over kδER's at T = {deadline}, δ = {delta:g}: {words}"
    return Finding("C38", max(ratios.values()) < 2, evidence)
