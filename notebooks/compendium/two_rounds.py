"""Theorem 4 and what is said around it: the proof's numbers, and the best of all two-round policies."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from scipy.special import ndtr

from compendium.findings import Finding
from ebr.theory.divergence import bernoulli_kl, gaussian_kl
from ebr.theory.policies import best_policy, best_region, ebr_policy, pac_policy, sharp_policy, worst_ratio
from ebr.theory.problems import Gaussian

__all__ = ["c18", "c30", "c42", "c45", "exponent", "proof_steps", "scaling"]

CHANCE = 1 / 8  # Theorem 4's probability


def proof_steps(
    epsilons: Iterable[float],
    divergence: Callable[[float, float], float] = bernoulli_kl,
    first_round: float = 2 * math.log(2),
    second_round: float = 1 / 50,
) -> pd.DataFrame:
    """Each step of the proof of Theorem 4 on its three problems: what it has beside what it needs (σ = 1).

    The proof's constants are 3/32, 1/25, 2 log 2 (the first round's pulls times ε) and 1/50 (the pulls that
    follow, times ε²). Columns: step, value, needed, and slack, their relative difference, which must not be
    negative.
    """
    rows: list[tuple[str, float, float]] = [
        ("part 1: 1/8 ≥ 3/32 + δ at δ = 1/32", 1 / 8, 3 / 32 + 1 / 32),
        ("part 1: d(3/32, 1/32) ≥ 1/25", divergence(3 / 32, 1 / 32), 1 / 25),
        ("part 2: ½ e^{−log 2} − 1/8 ≥ 1/8", 0.5 * math.exp(-math.log(2)) - 1 / 8, CHANCE),
    ]
    for epsilon in epsilons:
        hard, middling, easy, other = (
            Gaussian(np.array([mean, 0.5]), 1.0)
            for mean in (0.5 - epsilon, 0.5 - epsilon - math.sqrt(epsilon), 0.0, 0.5 + epsilon)
        )
        first, second = first_round / epsilon, second_round / epsilon**2
        apart = 1 / 25 / float(gaussian_kl(hard, other)[0])
        seen = first * float(gaussian_kl(hard, middling)[0])
        at = f" at ε = {epsilon:g}"
        rows += [
            ("part 1: pulls needed on ν⁽¹⁾ ≥ σ²/50ε²" + at, apart, second),
            ("part 2: log 2 ≥ KL of the first round" + at, math.log(2), seen),
            ("part 3: easy horn ≥ σ²/100ε" + at, first / easy.complexity(epsilon), 1 / (100 * epsilon)),
            (
                "part 3: middling horn ≥ σ²/100ε" + at,
                second / middling.complexity(epsilon),
                1 / (100 * epsilon),
            ),
        ]
    table = pd.DataFrame(rows, columns=["step", "value", "needed"])
    return table.assign(slack=((table["value"] - table["needed"]) / table["needed"]).round(9) + 0.0)


def scaling(epsilons: Iterable[float], delta: float) -> pd.DataFrame:
    """The least worst ratio of the policies at several ε, times ε, beside Algorithm 1's and the sharp race's.

    Columns: epsilon; first and second, the best policy's counts; best (in expectation) and best_chance
    (reached with probability 1/8); error, which is δ; region, the linear program's value at the best policy's
    counts; ebr, sharp and their chance versions.
    """
    rows = []
    for epsilon in epsilons:
        policy, least = best_policy(epsilon, delta)
        _, least_chance = best_policy(epsilon, delta, CHANCE)
        row = {
            "epsilon": epsilon,
            "first": policy.first,
            "second": policy.second,
            "best": least * epsilon,
            "best_chance": least_chance * epsilon,
            "region": best_region(policy.first, policy.second, epsilon, delta)[0] * epsilon,
            "error": policy.error(epsilon),
        }
        for name, make in (("ebr", ebr_policy), ("sharp", sharp_policy)):
            row[name] = worst_ratio(make(epsilon, delta), epsilon) * epsilon
            row[f"{name}_chance"] = worst_ratio(make(epsilon, delta), epsilon, CHANCE) * epsilon
        rows.append(row)
    return pd.DataFrame(rows)


def exponent(table: pd.DataFrame, column: str) -> float:
    """The slope of log ratio against log ε."""
    ratio = table[column] / table["epsilon"]
    return float(np.polyfit(np.log(table["epsilon"]), np.log(ratio), 1)[0])


def c18(steps: pd.DataFrame, table: pd.DataFrame) -> Finding:
    """Check C18, Theorem 4: every step of the proof, and the bound on the best policies (σ = 1)."""
    least, worst = float(table["best_chance"].min()), float(steps["slack"].min())
    evidence = (
        f"least slack of {len(steps)} proof steps {worst:.3f}; with probability 1/8 the best policy reaches "
        f"{least:.2f} σ²/ε at the least, {100 * least:.0f} times the bound σ²/(100 ε); exponent of ε "
        f"{exponent(table, 'best_chance'):.3f}"
    )
    return Finding("C18", worst >= -1e-12 and least >= 0.01, evidence)


def c30(dilemma: pd.DataFrame, epsilon: float, table: pd.DataFrame) -> Finding:
    """Check C30: whatever n₁, one of the two rounds over-pulls by the order of 1/ε."""
    least = float(dilemma[["easy", "middling"]].max(axis=1).min()) * epsilon
    slope = exponent(table, "best")
    crossed = bool(
        (dilemma["easy"] < dilemma["middling"]).iloc[0] and (dilemma["easy"] > dilemma["middling"]).iloc[-1]
    )
    evidence = (
        f"at ε = {epsilon:g} the worse round over-pulls {least:.2f}/ε at the least over {len(dilemma)} n₁; "
        f"the least worst ratio of all policies goes as ε^{slope:.3f}, and is "
        f"{table['best'].min():.2f} σ²/ε or more"
    )
    return Finding("C30", crossed and -1.1 < slope < -0.9 and least > 0.1, evidence)


def c42(epsilon: float = 0.01, delta: float = 0.01, idle: float = 0.5) -> Finding:
    """Check C42: Theorem 4 holds for every realisation of a randomised first round.

    Mix, with probability δ/2, a policy that recommends the first arm without a pull and, else, a (ε, δ/2)-PAC
    policy: the mixture is (ε, δ)-PAC, and in the first case Ñ_2 = 0 on every problem.
    """
    policy = pac_policy(2 / epsilon, 0.5, epsilon, delta / 2)
    chance = idle * delta
    error = chance + (1 - chance) * policy.error(epsilon)
    bound = 1 / (100 * epsilon)
    evidence = (
        f"a mixture with error {error:.5f} ≤ δ = {delta:g} makes no pull with probability {chance:g}: ratio "
        f"0, bound {bound:g}; its other part reaches {worst_ratio(policy, epsilon, CHANCE):.0f}"
    )
    return Finding("C42", not (chance > 0 and error <= delta), evidence)


def c45(gap_over_noise: float = 0.01) -> Finding:
    """Check C45: with T = 1 no number of pulls identifies the best of two arms on every problem."""
    errors = [float(ndtr(-gap_over_noise / math.sqrt(n) * math.sqrt(n / 2))) for n in (10.0, 1e4, 1e8, 1e16)]
    evidence = f"at Δ = {gap_over_noise:g} σ/√N the error is {min(errors):.4f} for N = 10 … 10^16"
    return Finding("C45", min(errors) > 0.45, evidence)
