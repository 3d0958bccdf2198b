"""Theorem 4 and the dilemma of section 2: the proof's numbers, and the best two-round policies."""

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

from compendium.shared import figures
from compendium.shared.distributions import bernoulli_kl
from compendium.shared.findings import Evidence, Finding
from compendium.shared.likelihood import gaussian_kl
from compendium.shared.lineup import LOOKS
from compendium.two_rounds import policies as family
from compendium.two_rounds.adaptive import Adaptive, Prior, floor
from compendium.two_rounds.adaptive_program import best_adaptive, best_prior
from compendium.two_rounds.policies import Policy, best_policy, complexity, pac_policy, worst_ratio
from ebr.theory.problems import Gaussian

CHANCE = 1 / 8  # Theorem 4's probability
CONSTANT = 1 / 100  # and its constant, times σ²/ε
DISTINCTION = 1 / 25  # what part 1 of its proof uses of d(3/32, 1/32)
Step = tuple[str, str, float, float]
Search = Callable[[float, float, float | None], tuple[Policy, float]]
Outcome = Callable[[float, float, float], dict[str, float]]
GAP = 0.02  # relative, that policy and lower bound may leave between them


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
    return with_margins(rows)


def with_margins(rows: list[Step]) -> pd.DataFrame:
    """The steps as a table, with the relative difference of what each has and needs."""
    table = pd.DataFrame(rows, columns=["step", "at", "value", "needed"])
    return table.assign(margin=((table["value"] - table["needed"]) / table["needed"]).round(9) + 0.0)


def problems(epsilon: float) -> tuple[Gaussian, ...]:
    """The proof's ν⁽¹⁾, ν⁽²⁾ and ν⁽³⁾, hard, middling and easy, and the one with the better arm raised."""
    means = (0.5 - epsilon, 0.5 - epsilon - math.sqrt(epsilon), 0.0, 0.5 + epsilon)
    return tuple(Gaussian(np.array([mean, 0.5]), 1.0) for mean in means)


def _steps_at(epsilon: float, first: float, second: float) -> list[Step]:
    """The steps that depend on ε, for a first round of so many pulls, and so many that follow."""
    hard, middling, easy, other = problems(epsilon)
    apart = DISTINCTION / float(gaussian_kl(hard, other)[0])
    seen = first * float(gaussian_kl(hard, middling)[0])
    at, bound = f"ε = {epsilon:g}", CONSTANT / epsilon
    return [
        ("part 1: pulls needed on ν⁽¹⁾ ≥ σ²/50ε²", at, apart, second),
        ("part 2: log 2 ≥ KL of the first round", at, math.log(2), seen),
        ("part 3: easy horn ≥ σ²/100ε", at, first / easy.complexity(epsilon), bound),
        ("part 3: middling horn ≥ σ²/100ε", at, second / middling.complexity(epsilon), bound),
    ]


def certified(
    epsilon: float,
    delta: float,
    ceiling: float,
    widest: float = 0.5,
    search: Callable[..., tuple[float, Adaptive]] = best_adaptive,
    prior: Callable[..., Prior] = best_prior,
    below: Callable[..., float] = floor,
) -> dict[str, float]:
    """The least worst ratio if n₂ may depend on the first round: between what a policy has and a lower bound.

    `ceiling` is a worst ratio that some policy reaches: the best n₁ then is at most that times H/2 on the
    widest gap. Times ε: outcome, the policy's worst ratio over all gaps, rounded up; least, the Bayes bound
    on every policy, rounded down. outcome_error is the policy's error at ε, outcome_first its n₁.
    """
    highest = ceiling * float(complexity(widest, epsilon)) / 2
    _, policy = search(0.75 * highest, highest, epsilon, delta, widest)
    certificate = prior(policy.first, epsilon, delta, widest)
    upper, lower = policy.worst_ratio(epsilon, widest), below(certificate, epsilon, delta, policy.first)
    return {
        "outcome": math.ceil(1000 * upper * epsilon) / 1000,
        "least": math.floor(1000 * lower * epsilon) / 1000,
        "outcome_error": policy.error(epsilon),
        "outcome_first": policy.first,
    }


def scaling(
    epsilons: Iterable[float], delta: float, search: Search = best_policy, outcome: Outcome = certified
) -> pd.DataFrame:
    """The least worst ratios of two-round policies at several ε, times ε; Algorithm 1's and sharp EBR's.

    Columns: epsilon; first and second, the counts of the best policy with one n₂; best (in expectation) and
    best_chance (reached with probability 1/8), of that family; error, which is δ; what `certified` says where
    n₂ depends on the first round; ebr, sharp and their chance versions.
    """
    rows = []
    for epsilon in epsilons:
        policy, ratio = search(epsilon, delta, None)
        _, ratio_chance = search(epsilon, delta, CHANCE)
        row = {
            "epsilon": epsilon,
            "first": policy.first,
            "second": policy.second,
            "best": ratio * epsilon,
            "best_chance": ratio_chance * epsilon,
            "error": policy.error(epsilon),
        }
        row |= outcome(epsilon, delta, ratio)
        for name, make in (("ebr", family.ebr_policy), ("sharp", family.sharp_policy)):
            row[name] = worst_ratio(make(epsilon, delta), epsilon) * epsilon
            row[f"{name}_chance"] = worst_ratio(make(epsilon, delta), epsilon, CHANCE) * epsilon
        rows.append(row)
    return pd.DataFrame(rows).map(_digits)


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
    gaps, weights = family.problem_grid(epsilon)

    def second_round(place: float, first: float) -> float:
        policy = make(first, float(expit(place)), epsilon, delta)
        return float((2 * policy.second * policy.continues(gaps) / weights).max())

    rows = []
    for first in firsts:
        best: Any = minimize_scalar(second_round, bounds=(-8, 6), args=(first,))
        rows.append((first, 2 * first / float(complexity(0.5, epsilon)), float(best.fun)))
    return pd.DataFrame(rows, columns=["first", "easy", "middling"]).map(_digits)


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
    figures.letters(axes)
    return figure


def _draw_dilemma(axis: Axes, table: pd.DataFrame, epsilon: float) -> None:
    axis.plot(table["first"], table["easy"], "-", color="0.1", label="first round, on the easy problem")
    worst = "second round, on the worst problem"
    axis.plot(table["first"], table["middling"], "--", color="0.5", label=worst)
    axis.axhline(CONSTANT / epsilon, color="0.3", lw=0.8, ls=":")
    axis.annotate("σ²/(100 ε)", (table["first"].min(), 1.2 * CONSTANT / epsilon), fontsize=7)
    axis.set(xscale="log", yscale="log", xlabel="first round, pulls of each arm / σ²", ylabel="pulls / H")
    axis.legend(loc=(0.22, 0.1))


def _draw_scaling(axis: Axes, table: pd.DataFrame) -> None:
    looks = {
        "ebr": LOOKS["EBR"].line(label="EBR"),
        "sharp": LOOKS["sharp"].line(label="sharp EBR"),
        "best": {"color": "0.5", "ls": "-.", "label": "best with one second round"},
        "outcome": {"color": "0.1", "ls": "--", "label": "second round by outcome"},
        "least": {"color": "0.1", "ls": "-", "lw": 0.7, "label": "lower bound, every policy"},
    }
    for column, look in looks.items():
        axis.plot(table["epsilon"], table[column], **look)
    axis.axhline(CONSTANT, ls=":", color="0.3", label="Theorem 4")
    axis.set(xscale="log", yscale="log", xlabel="tolerance ε", ylim=(0.005, 400))
    axis.set_ylabel("worst E[pulls] / H, in σ²/ε")
    axis.legend(loc=(0.03, 0.12))


def theorem_4(steps: pd.DataFrame, table: pd.DataFrame) -> Finding:
    """Check C18, Theorem 4: every step of the proof, and the bound on the best policies (σ = 1)."""
    least, worst = float(table["best_chance"].min()), float(steps["margin"].min())
    where = f"{len(steps)} steps of the proof"
    evidence = (
        Evidence("relative margin of a step, at least", worst, where, allowed="≥ 0"),
        Evidence("worst ratio with probability 1/8, best of one n₂", least, "in σ²/ε", allowed="≥ 1/100"),
        Evidence("its exponent of ε", exponent(table, "best_chance"), allowed="about −1"),
    )
    inequality = steps["step"].str.contains(r"d\(3/32|part 3")  # of all other steps both sides are equal
    equal = float(steps.loc[~inequality, "margin"].max()) <= 1e-12
    found = bool((table["best_chance"] <= table["sharp_chance"]).all())  # sharp EBR is one of them
    return Finding("C18", worst >= -1e-12 and equal and found and least >= CONSTANT, evidence, "proved")


def dilemma(table: pd.DataFrame, epsilon: float, policies: pd.DataFrame, delta: float) -> Finding:
    """Check C30: whatever n₁, one of the two rounds over-pulls by the order of 1/ε.

    From the table of `horns` at this ε and that of `scaling`, whose lower bounds are for every n₁ and every
    policy: they must be met by a PAC policy, up to 2 %.
    """
    worse = float(table[["easy", "middling"]].max(axis=1).min()) * epsilon
    least = float(policies["least"].min())
    slope = exponent(policies, "least") if least > 0 else 0.0
    gap = policies["outcome"] / policies["least"] - 1
    error = float((policies["outcome_error"] / delta).max())
    cheap = table["easy"] < table["middling"]
    crossed = bool(cheap.iloc[0] and not cheap.iloc[-1])
    where, many = f"ε = {epsilon:g}, {len(table)} n₁", f"{len(policies)} ε"
    evidence = (
        Evidence("over-pull of the worse round, times ε, at least", worse, where, allowed="> 0.1"),
        Evidence("worst ratio of every policy, at least", least, f"{many}, in σ²/ε", allowed="> 0.1"),
        Evidence(
            "what a policy attains over that bound, less 1, at most", gap.max(), many, allowed="0 to 0.02"
        ),
        Evidence("error of that policy over δ, at most", _digits(error), many, allowed="≤ 1"),
        Evidence("exponent of ε in the bound", slope, many, allowed="−1.1 to −0.9"),
    )
    met = bool((gap >= 0).all() and (gap <= GAP).all()) and error <= 1
    steep = crossed and -1.1 < slope < -0.9 and min(worse, least) > 0.1
    # One n₂ is a policy, and the best of those is no worse than sharp EBR, which is one.
    ordered = bool((policies[["least", "best", "sharp"]].diff(axis=1).iloc[:, 1:] >= 0).all(axis=None))
    return Finding("C30", steep and met and ordered, evidence, "proved")


def one_round(gap: Callable[[float], float] = lambda pulls: 0.01 / math.sqrt(pulls)) -> Finding:
    """Check C45: with T = 1 no number of pulls identifies the best of two arms on every problem.

    N pulls do not see the `gap`, a hundredth of σ/√N.
    """
    least = min(float(ndtr(-gap(n) * math.sqrt(n / 2))) for n in (10.0, 1e4, 1e8, 1e16))
    what, where = "error after N pulls of each arm, at least", "N = 10 to 10^16, Δ = 0.01 σ/√N"
    return Finding("C45", least > 0.45, (Evidence(what, least, where, allowed="> 0.45"),), "proved")
