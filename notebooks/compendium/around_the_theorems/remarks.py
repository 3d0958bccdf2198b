"""Remarks beside Theorems 1 and 2: the bounds compared, EBR's requests, the passive design."""

import math
from collections.abc import Callable, Iterable
from itertools import chain, product, repeat

import numpy as np

from compendium.shared import cost_bounds
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding
from compendium.shared.lineup import MakeElastic
from compendium.shared.problem_sets import Instance, problems_at_the_ends
from ebr.algorithms import baselines
from ebr.algorithms.baselines import iterated_log
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import drive
from ebr.arrays import FloatArray, IntArray

RACES = 50  # races on each problem whose requests are checked


def restricted_class(
    instances: Iterable[Instance], seed: int, make: MakeElastic = ElasticBatchRacing
) -> Finding:
    """Check C35: EBR is in the class Ã: N_{i,t} ∈ {0, Q_t}, with Q_t the schedule's."""
    asked = odd = races = 0
    for instance in instances:
        races += RACES
        steps = np.diff(np.ceil(cost_bounds.schedule(*instance[1:])), prepend=0)
        planned = steps[steps > 0]  # rounds without a new pull are skipped
        for pulls, step in zip(_requests(instance, seed, make), chain(planned, repeat(0)), strict=False):
            asked += pulls.size
            odd += int(((pulls != 0) & (pulls != step)).sum())
    what, where = "requests neither 0 nor the schedule's", f"of {asked:,}"
    evidence = Evidence(what, odd, where, runs=races, allowed="0")
    return Finding("C35", odd == 0, (evidence,), "proved")


def _requests(instance: Instance, seed: int, make: MakeElastic) -> list[IntArray]:
    """The pulls that some races with normal rewards ask for, round by round."""
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

    By Hoeffding and a union bound the failure probability is at most (n−1)(δ/n)^{80/4}. For Gaussian arms at
    Δ = ε each of the n − 1 comparisons is exactly a normal tail.
    """
    grid = list(product((2, 3, 10, 100, 10**4), (0.999, 0.5, 0.15, 0.01, 1e-6), (0.5, 0.1, 0.001)))
    worst = proved = 0.0
    hoeffding = True
    for n_arms, delta, epsilon in grid:
        pulls = constant / 80 * baselines.passive_pulls(n_arms, epsilon, delta, sigma=0.5)
        # The best arm loses to one of n − 1 others at Δ = ε, Gaussian rewards: a union bound, exact at n = 2.
        failure = (n_arms - 1) * norm.sf(epsilon * math.sqrt(pulls / 2) / 0.5)
        worst = max(worst, float(failure / delta))
        proved = max(proved, (n_arms - 1) * (delta / n_arms) ** (constant / 4) / delta)
        # Hoeffding's exponent ε²b/4σ² is 20 log(n/δ) for every σ.
        more = constant / 80 * baselines.passive_pulls(n_arms, epsilon, delta, sigma=2.0)
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


def tightest(bound: Callable[..., float] = cost_bounds.problem_upper_bound) -> Finding:
    """Check C34: Theorem 1's bound is tighter than Theorem 2's."""
    first, second = [], []
    for place in problems_at_the_ends():
        printed = bound(*place, printed=True)
        first.append(cost_bounds.partition_upper_bound(*place, printed=True) / printed)
        second.append(cost_bounds.hardest_upper_bound(*place, printed=True) / printed)
    where = f"{len(first):,} problems at the bins' ends"
    evidence = (
        Evidence("Theorem 1's first form over Theorem 2, at most", max(first), where, allowed="≤ 1"),
        Evidence("Theorem 1's second form over Theorem 2, at most", max(second), where, allowed="≤ 1"),
    )
    return Finding("C34", max(second) <= 1, evidence, "proved", max(first) <= 0.5)


def passive_factor(n_arms: float, delta: float, deadline: int) -> float:
    """Factor of n ε^{−2} in the cost of the passive design: log(n/δ) = log(1/δ) + log n."""
    return math.log(n_arms / delta)


def elimination_factor(n_arms: float, delta: float, deadline: int) -> float:
    """Factor of n ε^{−2} in kδER's bound (Jin et al., 2019): log(1/δ) + ilog^T_{1/δ}(n)."""
    return math.log(1 / delta) + iterated_log(deadline, n_arms, base=1 / delta)


def passive_against_elimination(
    passive: Callable[[float, float, int], float] = passive_factor,
    elimination: Callable[[float, float, int], float] = elimination_factor,
) -> Finding:
    """Check C38: the passive design attains kδER's bound up to the lower-order term ilog^T(n).

    Each factor is log(1/δ) plus a term in n, log n or ilog^T(n); the whole improvement is in that term. Where
    n ≤ 1/δ it is of lower order, and the bounds differ by a factor of at most 2. For a fixed δ it is not.
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
