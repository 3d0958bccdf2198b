"""Statements about H(ν): sequential algorithms need Õ(H), and no single ν shows a deadline's price.

Also how close Theorems 4 and 5 come to Theorem 2, which bounds Ñ_T/H.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from compendium.shared import cost_bounds
from compendium.shared.characteristic_time import characteristic, characteristic_lower_bound
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding, counted, exceeds
from compendium.shared.problem_sets import Instance
from ebr.algorithms.baselines import SequentialRacing
from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory.confidence import sequential_deviation
from ebr.theory.divergence import relative_entropy
from ebr.theory.problems import Bernoulli, Gaussian, Problem

Complexity = Callable[[Problem, float], float]
DELTA = 0.01
GAP, SIGMA = 0.5, 0.5  # gap and σ of the problem to which `tuned` is tuned


def compared() -> Iterator[tuple[Gaussian, float]]:
    """Gaussian problems for comparing complexities: gaps of 0, near ε, far above ε, and mixtures of these."""
    for n_arms, epsilon in product((2, 3, 10), (0.2, 0.01)):
        for share in (0, 0.5, 1 - 1e-9, 1 + 1e-9, 1.5, 3, 0.7 / epsilon):
            for last in (share * epsilon, 0.9):
                gaps = np.full(n_arms, share * epsilon)
                gaps[0], gaps[2:] = 0, last
                yield Gaussian(1 - gaps, SIGMA), epsilon


def raced(epsilons: Iterable[float]) -> list[Instance]:
    """Bernoulli problems for the sequential race: all other arms far off, at ε, tied, or spread out."""
    instances = []
    for n_arms, epsilon in product((2, 10, 50), epsilons):
        least = {"far off": 0.6, "at ε": 1.001 * epsilon, "tied": 0.0, "spread": 0.01}
        for kind, gap in least.items():
            gaps = np.linspace(gap, 0.8 if kind == "spread" else gap, n_arms - 1)
            problem = Bernoulli(0.9 - np.append(0, gaps))
            instances.append(Instance(f"{kind}, n = {n_arms}", problem, epsilon, 1, DELTA))  # T is not used
    return instances


def enough_sweeps(problem: Problem, epsilon: float, delta: float) -> IntArray:
    """τ_i, the least count with 8D(τ) ≤ (N_i*)^{−1/2}: sequential racing pulls arm i at most τ_i times.

    D is the deviation of Jun et al., so τ_i ≤ 1 + 1024σ² log(log₂(2τ_i)/ω) N_i*.
    """
    gaps = problem.gaps
    reach = np.where(gaps < epsilon, epsilon, gaps + epsilon) / 8
    low, high = np.ones(len(gaps), dtype=np.int64), np.full(len(gaps), 2**60)
    while (low < high).any():
        middle = (low + high) // 2
        enough = sequential_deviation(middle, problem.n_arms, delta, problem.sigma) <= reach
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return np.asarray(low)


def sequential_complexity(
    instances: Iterable[Instance],
    runs: int,
    seed: int,
    make: Callable[[float, float], Algorithm] = SequentialRacing,
    complexity: Complexity = Problem.complexity,
) -> Finding:
    """Check C50: at T = ∞ the sample complexity is Õ(H), and other expressions of H differ by constants.

    The expressions and the characteristic time T*(ν), which E[Ñ] follows as δ → 0, are computed exactly. The
    upper bound Ñ ≤ Σ τ_i of sequential racing is tested by races.
    """
    rows = _expressions(complexity)
    instances = list(instances)
    above, dearest = [], 0.0
    for _, problem, epsilon, _, delta in instances:
        pulls = simulate(make(epsilon, delta), problem, runs, seed).pulls
        most = enough_sweeps(problem, epsilon, delta).sum()
        above.append(int((pulls > most).sum()))
        dearest = max(dearest, float(pulls.max() / most))
    where = f"sequential racing, {len(instances)} problems"
    total = runs * len(instances)
    evidence = (
        *(row for row, _ in rows),
        counted("P(a race is above Σ τ_i)", sum(above), total, where, f"≤ δ = {DELTA}"),
        Evidence("the costliest race over Σ τ_i", dearest, where, runs=total),
    )
    kept = not any(exceeds(events, runs, DELTA, len(above)) for events in above)
    return Finding("C50", kept and all(right for _, right in rows), evidence, "proved")


@cache
def _characteristic_times() -> FloatArray:
    """T*(ν) of the problems of `compared`."""
    return np.array([characteristic(*place).time for place in compared()])


def _expressions(complexity: Complexity) -> list[tuple[Evidence, bool]]:
    """Ratios of other complexities to H, and whether each lies where it is proved to lie."""
    places = list(compared())
    scale = np.array([complexity(*place) for place in places])
    gaps = [(problem.gaps, epsilon) for problem, epsilon in places]
    alone = np.array([gap.min() >= epsilon for gap, epsilon in gaps])
    # Kaufmann et al.'s sum of inverse divergences for Gaussian rewards, divided by 2σ².
    kaufmann = np.array([((gap + epsilon) ** -2).sum() for gap, epsilon in gaps]) / scale
    # The complexity of LUCB (Kalyanakrishnan et al., ICML 2012).
    lucb = np.array([(np.maximum(gap, epsilon / 2) ** -2).sum() for gap, epsilon in gaps]) / scale
    time = _characteristic_times() / scale / SIGMA**2
    one, all_of_them = f"one ε-optimal arm, {alone.sum()} problems", f"{len(places)} problems"
    table = (
        ("Σ(Δ_i + ε)^−2 over H, farthest from 1", 1 + np.abs(kaufmann[alone] - 1).max(), one, 1, 1),
        ("Σ(Δ_i + ε)^−2 over H, at least", kaufmann.min(), all_of_them, 0.25, 1),
        ("Σ max(Δ_i, ε/2)^−2 over H, at most", lucb.max(), all_of_them, 1, 4),
        ("T*(ν) over σ²H, at least", time.min(), all_of_them, 0.5, 4),
        ("T*(ν) over σ²H, at most", time.max(), all_of_them, 0.5, 4),
    )
    return [
        (
            Evidence(what, float(value), where, allowed=f"{low:g} to {high:g}" if low < high else f"{low:g}"),
            bool(low - 1e-6 <= value <= high + 1e-6),  # rounding
        )
        for what, value, where, low, high in table
    ]


class Tuned(NamedTuple):
    """An algorithm for two Gaussian arms and two rounds: tuned to one ν, and (ε, δ)-PAC everywhere.

    Round 1 pulls each arm `first` times and returns arm 1 if μ̂_1 − μ̂_2 + ε > z σ√(2/first), that is, if arm 1
    is certified ε-optimal. Otherwise round 2 pulls each arm `second` times afresh and returns the better one.
    """

    epsilon: float
    first: float
    second: float
    quantile: float

    def certified(self, lead: FloatArray | float) -> FloatArray:
        """Probability that round 1 ends the race, by the lead μ_1 − μ_2."""
        spread = SIGMA * math.sqrt(2 / self.first)
        return np.asarray(norm.cdf((np.asarray(lead) + self.epsilon) / spread - self.quantile))

    def ratio(self, lead: FloatArray | float) -> FloatArray:
        """E[Ñ_2]/(σ²H) at this lead ≥ ε."""
        complexity = 2 * (np.asarray(lead) + self.epsilon) ** -2.0
        pulls = 2 * self.first + 2 * self.second * (1 - self.certified(lead))
        return np.asarray(pulls / (SIGMA**2 * complexity))

    def error(self) -> float:
        """Largest probability of an arm that is not ε-optimal: at lead −ε, or at ε."""
        passive = float(norm.sf(self.epsilon * math.sqrt(self.second / 2) / SIGMA))
        wrong = float(self.certified(-self.epsilon))
        return max(wrong + (1 - wrong) * passive, float(1 - self.certified(self.epsilon)) * passive)


def tuned(epsilon: float, delta: float = DELTA) -> Tuned:
    """The algorithm tuned to arms GAP apart: its first round minimises E[Ñ_2] there."""
    quantile = float(norm.isf(delta / 2))
    second = math.ceil(2 * (quantile * SIGMA / epsilon) ** 2)

    def cost(log_first: float) -> float:
        return float(Tuned(epsilon, math.exp(log_first), second, quantile).ratio(GAP))

    found = minimize_scalar(cost, bounds=(0, math.log(second)), method="bounded", options={"xatol": 1e-9})
    return Tuned(epsilon, math.ceil(math.exp(found.x)), second, quantile)


def no_price_on_one_problem(
    epsilons: Iterable[float],
    make: Callable[[float, float], Tuned] = tuned,
    lower: Callable[[Problem, float, float], float] = characteristic_lower_bound,
) -> Finding:
    """Check C51: there are no problem-dependent hardness results that show the deadline's price.

    The algorithm tuned to ν is (ε, δ)-PAC. On ν it pays less than Theorem 4's σ²H/(100ε), which it must pay
    elsewhere. The bound without a deadline, E[Ñ] ≥ T*(ν) kl(δ, 1−δ), holds with a deadline as well: for two
    Gaussian arms it is 4σ²H d(1−δ, δ), as each pull yields (Δ+ε)²/8σ² if both arms move past one another.
    """
    errors, below, evidence = [], [], []
    problem = Gaussian(np.array([0.75, 0.75 - GAP]), SIGMA)
    for epsilon in epsilons:
        algorithm, price = make(epsilon, DELTA), 1 / (100 * epsilon)
        here = float(algorithm.ratio(GAP))
        elsewhere = float(algorithm.ratio(np.geomspace(epsilon, 1, 2001)).max())
        errors.append(algorithm.error())
        below.append(here < price < elsewhere)
        where = f"T = 2, ε = {epsilon:g}".replace("-", "−")
        evidence.append(
            Evidence("E[Ñ]/(σ²H) on the ν it is tuned to", here, where, allowed=f"< {price:,.0f}")
        )
        evidence.append(Evidence("E[Ñ]/(σ²H) on its worst ν", elsewhere, where, allowed=f"≥ {price:,.0f}"))
    floor = lower(problem, epsilon, DELTA) / SIGMA**2 / problem.complexity(epsilon)
    by_hand = 4 * float(relative_entropy(1 - DELTA, DELTA))
    evidence += [
        Evidence("the tuned algorithm's error over δ, at most", max(errors) / DELTA, allowed="≤ 1"),
        Evidence(
            "T*(ν) kl(δ, 1−δ)/(σ²H), a lower bound at every T", floor, where, allowed="0, if none is possible"
        ),
        Evidence("the same by hand, 4 d(1−δ, δ)", by_hand, "two Gaussian arms", allowed="the same"),
    ]
    spent = min(errors) >= 0.99 * DELTA and max(errors) <= DELTA  # δ/2 per round: δ − δ²/4 in all
    repaired = all(below) and spent and math.isclose(floor, by_hand, rel_tol=1e-6)
    return Finding("C51", repaired and floor == 0, tuple(evidence), "proved", repaired)


def theorem_4(epsilon: float, deadline: int, delta: float) -> float:
    """Ñ_2/(σ²H) ≥ 1/(100ε), n = T = 2."""
    return 1 / (100 * epsilon)


def theorem_5(epsilon: float, deadline: int, delta: float) -> float:
    """Ñ_T/(σ²H) ≥ (1/192) log(1/2δ) ε^{−2/T}, n = 2."""
    return float(math.log(1 / (2 * delta)) / 192 * epsilon ** (-2 / deadline))


def matches_theorem_2(
    fourth: Callable[[float, int, float], float] = theorem_4,
    fifth: Callable[[float, int, float], float] = theorem_5,
    second: Callable[..., float] = cost_bounds.problem_upper_bound,
) -> Finding:
    """Check C52: Theorems 4 and 5 match Theorem 2 up to constants and logarithms where they apply, n = 2."""
    problem = Gaussian(np.array([0.75, 0.25]), 1.0)

    def over(lower: Callable[[float, int, float], float], *place: float) -> float:
        epsilon, deadline, delta = place[0], int(place[1]), place[2]
        upper = second(problem, epsilon, deadline, delta, printed=True)
        return upper / problem.complexity(epsilon) / lower(epsilon, deadline, delta)

    small = (1 / 33, 1e-3, 1e-6, 1e-12)
    two = [(e, 2, d) for e in np.geomspace(1e-12, 0.099, 50) for d in small]
    many = [
        (e, t, d)
        for e in np.geomspace(1e-12, 0.25, 50)
        for t in range(1, int(math.log2(1 / e) + 1e-9))  # ε ≤ 2^{−T−1}
        for d in (1 / 6, *small)
    ]
    fours = [over(fourth, *place) / math.log(4 / place[2]) for place in two]
    logs = [math.log(2 * t / d) / math.log(1 / (2 * d)) for _, t, d in many]
    fives = [over(fifth, *place) / log for place, log in zip(many, logs, strict=True)]
    table = (
        ("Theorem 2 over Theorem 4, over log(4/δ)", fours, f"T = 2, {len(two)} pairs of ε, δ", 64_000),
        ("Theorem 2 over 5, over log(2T/δ)/log(1/2δ)", fives, f"{len(many):,} triples of ε, T, δ", 122_880),
    )
    evidence = [
        Evidence(f"{what}, {end}", extreme(ratios), where, allowed=f"{expected:,}")
        for what, ratios, where, expected in table
        for end, extreme in (("at least", min), ("at most", max))
    ]
    evidence.append(Evidence("log(2T/δ)/log(1/2δ), at most", max(logs), table[1][2]))
    matched = all(np.allclose(ratios, expected, rtol=1e-9) for _, ratios, _, expected in table)
    return Finding("C52", matched, tuple(evidence), "proved")
