"""Theorems 1 and 2: EBR's pulls beside their bounds, on the setups, on random and on hardest problems."""

import math
from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import norm

from ebr import bounds
from ebr.event import audit
from ebr.findings import Finding, exceeds
from ebr.inequalities import problems_at_the_ends
from ebr.lemmas import Case
from ebr.problems import (
    Bernoulli,
    Gaussian,
    Problem,
    hardest,
    nonempty_partitions,
    setup_1,
    setup_2,
)
from ebr.racing import ElasticBatchRacing
from ebr.simulation import simulate

__all__ = [
    "c07",
    "c08",
    "c09",
    "c35",
    "c37",
    "hardest_problems",
    "measure",
    "printed_races",
    "random_problems",
    "setups",
]

Race = Callable[..., ElasticBatchRacing]
ARMS = (2, 3, 4, 5, 6, 7, 8, 10, 100, 1000)  # n and T on which a bound's worst case is looked for
Setting = tuple[str, Problem, float, int, float]  # kind, ν, ε, T, δ


def setups(deadlines: Iterable[int], epsilon: float = 0.01, delta: float = 0.01) -> list[Setting]:
    """Both setups of section 5 at several deadlines."""
    both = {"Setup 1": setup_1(), "Setup 2": setup_2()}
    return [(name, problem, epsilon, t, delta) for name, problem in both.items() for t in deadlines]


def hardest_problems(
    shapes: Iterable[tuple[int, int]], epsilon: float = 0.05, delta: float = 0.1
) -> list[Setting]:
    """The hardest problem of every non-empty P_γ for such n and T; gaps of γ_i = T at ε and just below."""
    return [
        ("hardest of P_γ", hardest(gamma, epsilon, deadline, shrink=shrink), epsilon, deadline, delta)
        for n_arms, deadline in shapes
        for gamma in nonempty_partitions(n_arms, deadline)
        for shrink in (1.0, 0.999)
    ]


def random_problems(count: int, seed: int) -> list[Setting]:
    """Random n, T, ε, δ, rewards and gaps; the gaps log-uniform, from well below ε up."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 3]))
    settings: list[Setting] = []
    for index in range(count):
        n_arms, deadline = int(generator.integers(2, 41)), int(generator.integers(1, 21))
        epsilon, delta = math.exp(generator.uniform(-3.9, -1.2)), math.exp(generator.uniform(-4.6, -1.2))
        gaps = np.exp(generator.uniform(math.log(epsilon / 3), math.log(0.9), n_arms - 1))
        means = generator.uniform(gaps.max(), 1) - np.append(0, gaps)
        problem = Bernoulli(means) if index % 2 else Gaussian(means, (0.1, 0.5, 1.0)[index % 3])
        settings.append(("random", problem, epsilon, deadline, delta))
    return settings


def measure(
    settings: Iterable[Setting], runs: int, seed: int, make: Race = ElasticBatchRacing
) -> pd.DataFrame:
    """Race on each problem and set its pulls beside every bound.

    Columns: kind, n_arms, deadline, epsilon, delta, runs, pulls (mean) and most; failures of the
    recommendation, of the event E, of Theorem 1 and of Theorem 2 (corrected); the bounds; complexity, H(ν).
    """
    rows = []
    for kind, problem, epsilon, deadline, delta in settings:
        race = audit(make(deadline, epsilon, delta, problem.sigma), problem, runs, seed)
        place = (problem, epsilon, deadline, delta)
        bound = bounds.partition_upper_bound(*place)
        second, third = bounds.hardest_upper_bound(*place), bounds.problem_upper_bound(*place)
        rows.append(
            {
                "kind": kind,
                "n_arms": problem.n_arms,
                "deadline": deadline,
                "epsilon": epsilon,
                "delta": delta,
                "runs": runs,
                "pulls": race.pulls.mean(),
                "most": race.pulls.max(),
                "wrong": int((~problem.is_good(race.arm, epsilon)).sum()),
                "missed": int((~race.covered).sum()),
                "over_1": int((race.pulls > bound).sum()),
                "over_1b": int((race.pulls > second).sum()),
                "over_2": int((race.pulls > third).sum()),
                "theorem_1": bound,
                "theorem_1b": second,
                "theorem_2": third,
                "complexity": problem.complexity(epsilon),
            }
        )
    return pd.DataFrame(rows)


def printed_races(make: Race = ElasticBatchRacing) -> pd.DataFrame:
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


def _random_races(table: pd.DataFrame, over: str, bound: str) -> tuple[bool, str]:
    """Whether no problem refutes "with probability at most δ above the bound", and the figures."""
    refuted = any(exceeds(row[over], row["runs"], row["delta"], len(table)) for _, row in table.iterrows())
    ratio = table[bound] / table["most"]
    words = (
        f"corrected, {int(table[over].sum())} of {int(table['runs'].sum())} races on {len(table)} problems "
        f"are above it; bound over the dearest race: {ratio.min():.3g} to {ratio.max():.3g}"
    )
    return not refuted, words


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
    holds, words = _random_races(table, "over_1", "theorem_1")
    broken = bool((witnesses["pulls"] > witnesses["theorem_1"]).any())
    evidence = (
        f"as printed, every run: {_broken(witnesses, 'theorem_1')}; {words}; on E′ an arm is above its term "
        f"in {above} of {tables} tables, elimination needs at most {np.max(needs, axis=0)[1]:.3f} of a gap"
    )
    return Finding("C07", holds and not broken, evidence, holds and above == 0 and bool(np.max(needs) < 1))


def c08(table: pd.DataFrame, witnesses: pd.DataFrame, constant: float = 320) -> Finding:
    """Check C08: … ≤ 320σ² log(nT/δ) sup_{P_γ} H; corrected, + n for the ceilings."""
    gaps = [
        bounds.partition_upper_bound(*place) / bounds.hardest_upper_bound(*place, constant=constant)
        for place in problems_at_the_ends()
    ]
    holds, words = _random_races(table, "over_1b", "theorem_1b")
    broken = bool((witnesses["pulls"] > witnesses["theorem_1b"]).any())
    evidence = (
        f"as printed, every run: {_broken(witnesses, 'theorem_1b')}; {words}; Σ⌈·⌉ is at most "
        f"{max(gaps):.4f} of it on {len(gaps)} problems at the bins' ends"
    )
    return Finding("C08", holds and not broken, evidence, holds and max(gaps) <= 1)


def c09(table: pd.DataFrame, witnesses: pd.DataFrame, constant: float = 320) -> Finding:
    """Check C09, Theorem 2: Ñ_T ≤ 640σ² ε^{−2/T} log(nT/δ) H(ν); corrected, 320 and + n for the ceilings."""
    gaps = [
        bounds.partition_upper_bound(*place) / bounds.problem_upper_bound(*place, constant=constant)
        for place in problems_at_the_ends()
    ]
    holds, words = _random_races(table, "over_2", "theorem_2")
    broken = bool((witnesses["pulls"] > witnesses["theorem_2"]).any())
    evidence = (
        f"as printed, every run: {_broken(witnesses, 'theorem_2')}; {words} (with 320 + n); Σ⌈·⌉ is at most "
        f"{max(gaps):.4f} of that on {len(gaps)} problems at the bins' ends"
    )
    return Finding("C09", holds and not broken, evidence, holds and max(gaps) <= 1)


def c35(settings: Iterable[Setting], seed: int, make: Race = ElasticBatchRacing) -> Finding:
    """Check C35: EBR is in the class Ã: N_{i,t} ∈ {0, Q_t}, with Q_t the schedule's."""
    asked = odd = 0
    for _, problem, epsilon, deadline, delta in settings:
        algorithm = make(deadline, epsilon, delta, problem.sigma)
        allowed = np.diff(np.ceil(bounds.schedule(problem, epsilon, deadline, delta)), prepend=0)
        game = algorithm.play(problem.n_arms, 50)
        generator = np.random.default_rng(np.random.SeedSequence([seed, 35]))
        pulls = next(game)
        for amount in allowed[allowed > 0]:
            asked += pulls.size
            odd += int(((pulls != 0) & (pulls != amount)).sum())
            try:
                noise = problem.sigma * np.sqrt(pulls) * generator.standard_normal(pulls.shape)
                pulls = game.send(pulls * problem.means + noise)
            except StopIteration:
                break
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
