"""Numbers of samples that the text says are needed: of prior work (sections 1, 3, 4) and in two footnotes."""

import math
from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
from scipy.stats import binom

from compendium.lower_bounds import near_optimal
from compendium.lower_bounds.counter_example import LowerBound
from compendium.lower_bounds.near_optimal import EPSILON, SIGMA
from compendium.shared import cost_bounds
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding
from compendium.shared.lineup import ALGORITHMS, Maker
from compendium.shared.traces import trace
from ebr.theory.divergence import relative_entropy
from ebr.theory.problems import Bernoulli, Gaussian

UNIT = (SIGMA / EPSILON) ** 2  # σ²/ε² of the tests
WITHIN = 4.0  # largest factor by which logarithms and T may change a cost
ARMS = (10, 100, 1000)
TESTS = tuple(product((0.1, 0.01), (1, 2, 8)))  # δ and T


def worst_case(proved: LowerBound = cost_bounds.partition_lower_bound) -> Finding:
    """Check C57: every (ε, δ)-PAC algorithm, sequential ones too, needs Ω̃(n/ε²) samples on some problem.

    For n equal arms the corrected Theorem 3, all γ_i = T, is at least σ² log(1/2.4δ) n/ε². Tests of two arms
    come close to it, so it cannot be much too large.
    """
    grid = list(product((2, 3, 10, 100, 1000), (0.15, 0.05, 0.01, 1e-6)))
    shares = [proved([1] * n, 0.01, 1, d, 1.0) * 1e-4 / n / math.log(1 / (2.4 * d)) for n, d in grid]
    over = [near_optimal.design(d, t).cost(0) / proved([1, 1], EPSILON, 1, d, SIGMA) for d, t in TESTS]
    evidence = (
        Evidence("E[Ñ] over σ² log(1/2.4δ) n/ε², at least", min(shares), f"{len(grid)} n, δ", allowed="≥ 1"),
        Evidence("cost of a test over the bound, at least", min(over), "two arms, to 8 looks", allowed="≥ 1"),
    )
    return Finding("C57", min(shares) >= 1 and min(over) >= 1, evidence, "proved")


def prior_costs(algorithms: Mapping[str, Maker] = ALGORITHMS) -> Finding:
    """Check C58: kδER and AE (given ε for Δ_[1]) need Θ̃(n ε^{−2}) samples; their counts are not random.

    In units of n ε^{−2} log(n/δ) the costs are the same at every ε, within a constant factor at every n and
    T, and not below C57. AE gets up to log* n rounds, 3 here, as it may leave further ones idle. The evidence
    also says what it costs if it does not.
    """
    evidence, right = [], True
    floor = max(
        cost_bounds.partition_lower_bound([1] * n, 0.01, 1, 0.01) * 1e-4 / n / math.log(n / 0.01)
        for n in ARMS
    )
    for name, deadlines in (("kδER", (1, 2, 5, 15)), ("AE", (1, 2, 3))):
        costs = {place: _cost(algorithms[name], *place) for place in product(ARMS, deadlines, (0.1, 0.01))}
        ratios = [costs[n, t, 0.1] / costs[n, t, 0.01] for n, t, _ in costs]
        spread = max(*ratios, 1 / min(ratios))
        most, least = max(costs.values()), min(costs.values())
        where, allowed = f"{name}, n to 1000, T to {deadlines[-1]}", f"< {WITHIN:g} times the least"
        evidence += [
            Evidence("pulls in n ε^−2 log(n/δ), at most", most, where, allowed=allowed),
            Evidence("the same, at least", least, where, allowed=f"≥ {floor:.2g}, C57"),
            Evidence("the same at ε = 0.1 and 0.01, farthest apart", spread, where, allowed="< 1.01"),
        ]
        right = right and most < WITHIN * least and least >= floor and spread < 1.01
    idle = _cost(algorithms["AE"], 100, 15, 0.01)
    evidence.append(Evidence("AE's, if no round is left idle", idle, "a remark; n = 100, T = 15, ε = 0.01"))
    return Finding("C58", right, tuple(evidence), "computed")


def _cost(make: Maker, n_arms: int, deadline: int, epsilon: float) -> float:
    """All pulls of a race of equal arms, in n ε^{−2} log(n/δ)."""
    race = trace(make(deadline, epsilon, 0.01), Bernoulli(np.full(n_arms, 0.5)))
    return float(race["total"].iloc[-1] * epsilon**2 / n_arms / math.log(n_arms / 0.01))


def needs_the_gap(make: Maker = ALGORITHMS["AE"]) -> Finding:
    """Check C59: AE requires the smallest gap Δ_[1]. Told a gap ten times too wide it errs more than δ.

    Two Bernoulli arms and one round: the error is a sum of binomial probabilities; ties count as errors.
    """
    delta, gap = 0.01, 0.02
    problem = Bernoulli(np.array([0.5 - gap / 2, 0.5 + gap / 2]))
    errors = []
    for told in (gap, 10 * gap):
        pulls = int(trace(make(1, told, delta), problem)["pulls"].max())
        worse, better = (binom.pmf(np.arange(pulls + 1), pulls, mean) for mean in problem.means)
        errors.append(float(worse @ np.cumsum(better)))
    evidence = (
        Evidence("error of AE told Δ_[1]", errors[0], f"Δ_[1] = {gap:g}, T = 1", allowed="≤ δ = 0.01"),
        Evidence("error of AE told ten times Δ_[1]", errors[1], "the same", allowed="> δ, if it is required"),
    )
    return Finding("C59", errors[0] <= delta < errors[1], evidence, "computed")


def warranted_once(bound: Callable[..., float] = cost_bounds.problem_upper_bound) -> Finding:
    """Check C60: n ε^{−2} is warranted only for T = 1.

    At T = 1 every problem costs that much (C48). From T = 2 on an easy one costs Õ(n ε^{−2/T}), by Theorem 2.
    """
    delta, problem = 0.01, Gaussian(1 - np.array([0] + [0.5] * 9), SIGMA)
    single = problem.sigma**2 * math.log(1 / (4 * delta * (1 - delta)))
    evidence = [Evidence("pulls of an arm in ε^−2, at least", single, "T = 1, every problem", allowed="> 0")]
    right = single > 0
    for deadline in (2, 3, 15):
        shares = [bound(problem, e, deadline, delta) * e**2 / problem.n_arms for e in (1e-4, 1e-6)]
        slope = math.log(shares[0] / shares[1]) / math.log(100)
        where, expected = f"T = {deadline}, gaps ½, from ε = 10⁻⁴ to 10⁻⁶", 2 - 2 / deadline
        what = "power of ε by which Theorem 2 is below n ε^−2"
        evidence.append(Evidence(what, slope, where, allowed=f"2 − 2/T = {expected:.3g}"))
        right = right and abs(slope - expected) < 0.01
    return Finding("C60", right, tuple(evidence), "proved")


def two_means(
    enough: Callable[[float], float] = lambda delta: 8 * math.log(1 / delta),
    needed: Callable[[float], float] = lambda delta: 2 * float(relative_entropy(1 - delta, delta)),
) -> Finding:
    """Check C61: Θ̃(Δ^{−2}) samples are enough and necessary to tell two means Δ apart (σ = 1).

    `enough` and `needed` count the samples of both, in units of Δ^{−2}: by Chernoff's bound, and by the
    change of measure that swaps the two means, Δ²/2 per sample. Tests with looks lie in between.
    """
    errors = [
        float(norm.sf(gap * math.sqrt(math.ceil(enough(d) / gap**2 / 2) / 2))) / d
        for gap, d in product((0.5, 0.1, 0.001), (0.3, 0.1, 0.01, 1e-6))
    ]
    costs = [(near_optimal.design(d, t).cost(1.0) / UNIT, d) for d, t in TESTS]
    over, under = min(cost / needed(d) for cost, d in costs), max(cost / enough(d) for cost, d in costs)
    ratio, looks = enough(1e-6) / needed(1e-6), "two arms, gap ε, to 8 looks"
    evidence = (
        Evidence("error with 8 log(1/δ)/Δ² samples, over δ, most", max(errors), "Gaussian", allowed="≤ 1"),
        Evidence("E[Ñ] of a test over 2 d(1−δ, δ)/Δ², least", over, looks, allowed="≥ 1"),
        Evidence("E[Ñ] of a test over 8 log(1/δ)/Δ², most", under, looks, allowed="≤ 1"),
        Evidence("enough over needed", ratio, "every Δ, δ = 10⁻⁶"),
    )
    return Finding("C61", max(errors) <= 1 <= over and under <= 1, evidence, "proved")


def one_mean(
    enough: Callable[[float], float] = lambda delta: 8 * math.log(1 / delta),
    needed: Callable[[float], float] = lambda delta: 2 * float(relative_entropy(1 - delta, delta)),
    reach: Callable[[float, float], float] = lambda gap, epsilon: gap + epsilon,
) -> Finding:
    """Check C62: with μ_1 = ½ known, Θ̃((Δ + ε)^{−2}) samples of arm 2 tell that arm 1 is ε-optimal.

    Arm 1 is ε-optimal if μ_2 < ½ + ε, which is Δ + ε away from μ_2 = ½ − Δ. `enough` and `needed` are in
    units of σ²(Δ + ε)^{−2}. The test returns arm 1 if the mean lies below the middle of the two. A fixed
    count needs exactly 4z²σ²(Δ + ε)^{−2} samples.
    """
    places = list(product((0.0, 0.001, 0.1, 0.4), (0.1, 0.01), (0.3, 0.1, 0.01, 1e-6)))
    errors, exact = [], []
    for gap, epsilon, delta in places:
        samples = enough(delta) * (SIGMA / reach(gap, epsilon)) ** 2
        errors.append(float(norm.sf((gap + epsilon) * math.sqrt(samples) / (2 * SIGMA))) / delta)
        need = 4 * float(norm.isf(delta)) ** 2 * (SIGMA / (gap + epsilon)) ** 2
        exact.append(need / (needed(delta) * (SIGMA / reach(gap, epsilon)) ** 2))
    tie, where = enough(0.01) * (SIGMA / reach(0.0, 0.01)) ** 2, f"{len(places)} Δ, ε, δ"
    evidence = (
        Evidence("error of the test over δ, at most", max(errors), where, allowed="≤ 1"),
        Evidence("exact need over 2σ² d(1−δ, δ)/(Δ+ε)², least", min(exact), where, allowed="≥ 1"),
        Evidence("samples where Δ = 0, where σ²Δ^−2 is infinite", tie, "ε = δ = 0.01"),
    )
    right = max(errors) <= 1 <= min(exact)
    return Finding("C62", right, evidence, "proved")
