"""Theorem 4 and what is said around it: the proof's numbers, and the best of all two-round policies."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar
from scipy.special import expit, ndtr

from compendium import figures
from compendium.findings import Evidence, Finding
from compendium.lineup import LOOKS
from ebr.theory.divergence import bernoulli_kl, gaussian_kl
from ebr.theory.policies import (
    Policy,
    best_policy,
    best_region,
    complexity,
    ebr_policy,
    gap_grid,
    pac_policy,
    sharp_policy,
    worst_ratio,
)
from ebr.theory.problems import Gaussian

__all__ = [
    "dilemma",
    "draw",
    "exponent",
    "horns",
    "one_round",
    "proof_steps",
    "randomised_first_round",
    "scaling",
    "theorem_4",
]

CHANCE = 1 / 8  # Theorem 4's probability
CONSTANT = 1 / 100  # and its constant, times σ²/ε
DISTINCTION = 1 / 25  # what part 1 of its proof uses of d(3/32, 1/32)
Step = tuple[str, str, float, float]
Search = Callable[[float, float, float | None], tuple[Policy, float]]


def proof_steps(
    epsilons: Iterable[float],
    divergence: Callable[[float, float], float] = bernoulli_kl,
    first_round: float = 2 * math.log(2),
    second_round: float = 1 / 50,
) -> pd.DataFrame:
    """Each step of the proof of Theorem 4 on its three problems: what it has beside what it needs (σ = 1).

    The proof's constants are 3/32, 1/25, 2 log 2 (the first round's pulls times ε) and 1/50 (the pulls that
    follow, times ε²). Columns: step, at (which ε), value, needed, and margin, their relative difference,
    which must not be negative.
    """
    rows: list[Step] = [
        ("part 1: 1/8 ≥ 3/32 + δ", "δ = 1/32", 1 / 8, 3 / 32 + 1 / 32),
        ("part 1: d(3/32, 1/32) ≥ 1/25", "", divergence(3 / 32, 1 / 32), DISTINCTION),
        ("part 2: ½ e^{−log 2} − 1/8 ≥ 1/8", "", 0.5 * math.exp(-math.log(2)) - 1 / 8, CHANCE),
    ]
    for epsilon in epsilons:
        rows += _steps_at(epsilon, first_round / epsilon, second_round / epsilon**2)
    table = pd.DataFrame(rows, columns=["step", "at", "value", "needed"])
    return table.assign(margin=((table["value"] - table["needed"]) / table["needed"]).round(9) + 0.0)


def _steps_at(epsilon: float, first: float, second: float) -> list[Step]:
    """The steps that depend on ε, for a first round of so many pulls, and so many that follow."""
    hard, middling, easy, other = (
        Gaussian(np.array([mean, 0.5]), 1.0)
        for mean in (0.5 - epsilon, 0.5 - epsilon - math.sqrt(epsilon), 0.0, 0.5 + epsilon)
    )
    apart = DISTINCTION / float(gaussian_kl(hard, other)[0])
    seen = first * float(gaussian_kl(hard, middling)[0])
    at, bound = f"ε = {epsilon:g}", CONSTANT / epsilon
    return [
        ("part 1: pulls needed on ν⁽¹⁾ ≥ σ²/50ε²", at, apart, second),
        ("part 2: log 2 ≥ KL of the first round", at, math.log(2), seen),
        ("part 3: easy horn ≥ σ²/100ε", at, first / easy.complexity(epsilon), bound),
        ("part 3: middling horn ≥ σ²/100ε", at, second / middling.complexity(epsilon), bound),
    ]


def scaling(epsilons: Iterable[float], delta: float, search: Search = best_policy) -> pd.DataFrame:
    """The least worst ratio of the policies at several ε, times ε, beside Algorithm 1's and the sharp race's.

    Columns: epsilon; first and second, the best policy's counts; best (in expectation) and best_chance
    (reached with probability 1/8); error, which is δ; region, the linear program's value at the best policy's
    counts; ebr, sharp and their chance versions.
    """
    rows = []
    for epsilon in epsilons:
        policy, least = search(epsilon, delta, None)
        _, least_chance = search(epsilon, delta, CHANCE)
        row = {
            "epsilon": epsilon,
            "first": policy.first,
            "second": policy.second,
            "best": least * epsilon,
            "best_chance": least_chance * epsilon,
            "region": best_region(policy.first, policy.second, epsilon, delta) * epsilon,
            "error": policy.error(epsilon),
        }
        for name, make in (("ebr", ebr_policy), ("sharp", sharp_policy)):
            row[name] = worst_ratio(make(epsilon, delta), epsilon) * epsilon
            row[f"{name}_chance"] = worst_ratio(make(epsilon, delta), epsilon, CHANCE) * epsilon
        rows.append(row)
    return _settled(pd.DataFrame(rows))


def horns(
    firsts: Iterable[float],
    epsilon: float,
    delta: float,
    make: Callable[[float, float, float, float], Policy] = pac_policy,
) -> pd.DataFrame:
    """The dilemma, for each n₁ with its best threshold: what each round over-pulls.

    Columns: first, n₁; easy, the first round's pulls over H on the easiest problem, Δ = ½; middling, the
    second round's expected pulls over H on the worst problem for it.
    """
    gaps = gap_grid(epsilon)
    weights = complexity(gaps, epsilon)

    def second_round(place: float, first: float) -> float:
        policy = make(first, float(expit(place)), epsilon, delta)
        return float((2 * policy.second * policy.continues(gaps) / weights).max())

    rows = []
    for first in firsts:
        best: Any = minimize_scalar(second_round, bounds=(-8, 6), args=(first,))
        rows.append((first, 2 * first / float(complexity(0.5, epsilon)), float(best.fun)))
    return _settled(pd.DataFrame(rows, columns=["first", "easy", "middling"]))


def _settled(table: pd.DataFrame) -> pd.DataFrame:
    return table.map(_digits)


def _digits(value: float) -> float:
    """Five significant ones: what an optimiser settles beyond them is noise."""
    return float(f"{value:.5g}")


def exponent(table: pd.DataFrame, column: str) -> float:
    """The slope of log ratio against log ε."""
    ratio = table[column] / table["epsilon"]
    return float(np.polyfit(np.log(table["epsilon"]), np.log(ratio), 1)[0])


def draw(dilemma_table: pd.DataFrame, scaling_table: pd.DataFrame, epsilon: float, delta: float) -> Figure:
    """The dilemma at one ε (from `horns`), and the worst ratios against ε (from `scaling`)."""
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 3.0))
    _draw_dilemma(axes[0], dilemma_table, epsilon)
    axes[0].set_title(f"the dilemma, ε = {epsilon:g}, δ = {delta:g}")
    _draw_scaling(axes[1], scaling_table)
    axes[1].set_title("the price of two rounds")
    return figure


def _draw_dilemma(axis: Axes, table: pd.DataFrame, epsilon: float) -> None:
    axis.plot(table["first"], table["easy"], "-", color="0.1", label="first round, on the easy problem")
    axis.plot(
        table["first"], table["middling"], "--", color="0.5", label="second round, on the worst problem"
    )
    axis.axhline(CONSTANT / epsilon, color="0.3", lw=0.8, ls=":")
    axis.annotate("σ²/(100 ε)", (table["first"].min(), 1.2 * CONSTANT / epsilon), fontsize=7)
    axis.set(xscale="log", yscale="log", xlabel="first round, pulls of each arm / σ²", ylabel="pulls / H")
    axis.legend(loc=(0.22, 0.1))


def _draw_scaling(axis: Axes, table: pd.DataFrame) -> None:
    looks = {
        "ebr": LOOKS["EBR"].line(label="EBR"),
        "sharp": LOOKS["sharp"].line(label="sharp EBR"),
        "best": {"color": "0.1", "ls": "--", "label": "best policy"},
    }
    for column, look in looks.items():
        slope = f"{exponent(table, column):.2f}".replace("-", "−")
        label = f"{look.pop('label')}, slope {slope}"
        axis.plot(table["epsilon"], table[column] / table["epsilon"], label=label, **look)
    bound = "Theorem 4, σ²/(100 ε), slope −1"
    axis.plot(table["epsilon"], CONSTANT / table["epsilon"], ":", color="0.3", label=bound)
    axis.set(xscale="log", yscale="log", xlabel="tolerance ε", ylabel="worst E[pulls] / H", ylim=(1e-4, 4e6))
    axis.legend(loc="lower left")


def theorem_4(steps: pd.DataFrame, table: pd.DataFrame) -> Finding:
    """Check C18, Theorem 4: every step of the proof, and the bound on the best policies (σ = 1)."""
    least, worst = float(table["best_chance"].min()), float(steps["margin"].min())
    evidence = (
        Evidence(
            "relative margin of a step, at least", worst, f"{len(steps)} steps of the proof", allowed="≥ 0"
        ),
        Evidence("best policy's worst ratio with probability 1/8", least, "in σ²/ε", allowed="≥ 1/100"),
        Evidence("its exponent of ε", exponent(table, "best_chance"), allowed="about −1"),
    )
    return Finding("C18", worst >= -1e-12 and least >= CONSTANT, evidence, "exact")


def dilemma(table: pd.DataFrame, epsilon: float, policies: pd.DataFrame) -> Finding:
    """Check C30: whatever n₁, one of the two rounds over-pulls by the order of 1/ε.

    From the table of `horns` at this ε and that of `scaling`.
    """
    least = float(table[["easy", "middling"]].max(axis=1).min()) * epsilon
    slope = exponent(policies, "best")
    cheap = table["easy"] < table["middling"]
    crossed = bool(cheap.iloc[0] and not cheap.iloc[-1])
    where = f"ε = {epsilon:g}, {len(table)} n₁"
    evidence = (
        Evidence("over-pull of the worse round, times ε, at least", least, where, allowed="> 0.1"),
        Evidence("exponent of ε in the best policy's worst ratio", slope, allowed="−1.1 to −0.9"),
        Evidence("the best policy's worst ratio, at least", float(policies["best"].min()), "in σ²/ε"),
    )
    return Finding("C30", crossed and -1.1 < slope < -0.9 and least > 0.1, evidence, "exact")


def randomised_first_round(epsilon: float, delta: float, idle: float = 0.5) -> Finding:
    """Check C42: Theorem 4 holds for every realisation of a randomised first round.

    Mix, with probability δ/2 (`idle` times δ), a policy that recommends the first arm without a pull and,
    else, a (ε, δ/2)-PAC policy: the mixture is (ε, δ)-PAC, and in the first case Ñ_2 = 0 on every problem.
    """
    policy = pac_policy(2 / epsilon, 0.5, epsilon, delta / 2)
    chance = idle * delta
    error = chance + (1 - chance) * policy.error(epsilon)
    other = worst_ratio(policy, epsilon, CHANCE)
    bound = f"≥ {CONSTANT / epsilon:g}"
    evidence = (
        Evidence("error of the mixture", _digits(error), f"ε = {epsilon:g}", allowed=f"≤ {delta:g}"),
        Evidence("ratio Ñ_2/H of its first part", 0, f"with probability {chance:g}", allowed=bound),
        Evidence("ratio of its other part", _digits(other), "else", allowed=bound),
    )
    return Finding("C42", not (chance > 0 and error <= delta), evidence, "exact")


def _small(pulls: float) -> float:
    """A gap that so many pulls do not see: a hundredth of σ/√N."""
    return 0.01 / math.sqrt(pulls)


def one_round(gap: Callable[[float], float] = _small) -> Finding:
    """Check C45: with T = 1 no number of pulls identifies the best of two arms on every problem."""
    errors = {n: float(ndtr(-gap(n) * math.sqrt(n / 2))) for n in (10.0, 1e4, 1e8, 1e16)}
    where = "N = 10 to 10^16, Δ = 0.01 σ/√N"
    evidence = (
        Evidence("error after N pulls of each arm, at least", min(errors.values()), where, allowed="> 0.45"),
    )
    return Finding("C45", min(errors.values()) > 0.45, evidence, "exact")
