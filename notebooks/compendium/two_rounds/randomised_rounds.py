"""The remark after Theorem 4: what theorem and corollary say of a first round drawn at random."""

import math
from collections.abc import Iterable

import pandas as pd

from compendium.shared.findings import Evidence, Finding
from compendium.two_rounds.policies import pac_policy, worst_ratio
from compendium.two_rounds.two_round_price import CHANCE, CONSTANT, problems, proof_steps, with_margins

EXPECTED = 1 / 800  # the corollary's constant, times σ²/ε


def randomised_steps(
    epsilons: Iterable[float],
    first_round: float = 2 * math.log(7 / 4),
    cut: float = math.log(7 / 4),
    rare: float = CHANCE,
    doubt: float = CHANCE,
) -> pd.DataFrame:
    """Each step of the proof of Theorem 4 for a first round drawn at random: what it has and needs (σ = 1).

    G = {N_11 ≤ `first_round` σ²/ε} depends on the draw alone; on it the first round's divergence is at most
    `cut`. Either Gᶜ has probability `rare` or more, and the easy problem pays, or the middling one does.
    `doubt` is part 1's P_ν⁽¹⁾(Ñ_12 < σ²/50ε²) ≤ 1/8, proved with or without a draw. Columns as in
    `proof_steps`.
    """
    seen = math.exp(-cut) / 2  # Tsybakov's lemma given U in G, where the divergence is at most `cut`
    rows = [
        ("easy: P(Gᶜ) ≥ 1/8", "", rare, CHANCE),
        ("middling: ½ e^{−KL} P(G) − P₁(Eᶜ) ≥ 1/8", "", seen * (1 - rare) - doubt, CHANCE),
    ]
    for epsilon in epsilons:
        hard, middling, easy, _ = problems(epsilon)
        at, bound = f"ε = {epsilon:g}", CONSTANT / epsilon
        first = first_round / epsilon
        apart = float(hard.means[0] - middling.means[0]) ** 2 / 2
        rows += [
            ("middling: cut ≥ KL of the first round on G", at, cut, first * apart),
            ("easy: N_11/H ≥ σ²/100ε on Gᶜ", at, first / easy.complexity(epsilon), bound),
            ("middling: Ñ_12/H ≥ σ²/100ε", at, 1 / (50 * epsilon**2) / middling.complexity(epsilon), bound),
        ]
    return with_margins(rows)


def _mixture(epsilon: float, delta: float, idle: float) -> tuple[float, float, float]:
    """A PAC mixture: its chance to make no pull, its error at ε, its other part's worst ratio (chance 1/8).

    With probability `idle` times δ it recommends the first arm without a pull, else it plays an (ε, δ/2)-PAC
    policy.
    """
    policy = pac_policy(2 / epsilon, 0.5, epsilon, delta / 2)
    chance = idle * delta
    error = chance + (1 - chance) * policy.error(epsilon)
    return chance, float(f"{error:.5g}"), float(f"{worst_ratio(policy, epsilon, CHANCE):.5g}")


def every_realisation(epsilon: float, delta: float, idle: float = 0.5) -> Finding:
    """Check C42: Theorem 4 holds for every realisation of a randomised first round.

    Mix, with probability δ/2 (`idle` times δ), a policy that recommends the first arm without a pull and,
    else, a (ε, δ/2)-PAC policy: the mixture is (ε, δ)-PAC, and in the first case Ñ_2 = 0 on every problem.
    """
    chance, error, other = _mixture(epsilon, delta, idle)
    bound = f"≥ {CONSTANT / epsilon:g}"
    evidence = (
        Evidence("error of the mixture", error, f"ε = {epsilon:g}", allowed=f"≤ {delta:g}"),
        Evidence("ratio Ñ_2/H of its first part", 0, f"with probability {chance:g}", allowed=bound),
        Evidence("ratio of its other part", other, "else", allowed=bound),
    )
    return Finding("C42", not (chance > 0 and error <= delta), evidence, "proved")


def corollary_by_expectation(
    steps: pd.DataFrame, policies: pd.DataFrame, epsilon: float, delta: float, idle: float = 0.5
) -> Finding:
    """Check C53: the corollary's expectation holds for a randomised first round "by an expectation over U".

    As printed it rests on C42, which a PAC mixture refutes; corrected it rests on the `randomised_steps`. The
    lower bounds of `scaling`, which are for randomised policies too, must be above the corollary's.
    """
    chance, error, _ = _mixture(epsilon, delta, idle)
    parts = pd.concat([steps, proof_steps([epsilon]).query("step.str.startswith('part 1')")])
    worst, least = float(parts["margin"].min()), float(policies["least"].min())
    constant, where = CHANCE * CONSTANT, f"ε = {epsilon:g}"
    evidence = (
        Evidence("error of a mixture with free realisations", error, where, allowed=f"≤ {delta:g}"),
        Evidence("relative margin of a step, at least", worst, f"{len(parts)} steps", allowed="≥ 0"),
        Evidence("constant proved, in σ²/ε", constant, "1/8 · 1/100", allowed="≥ 1/800"),
        Evidence("randomised policies' worst ratio, at least", least, "in σ²/ε", allowed="≥ 1/800"),
    )
    printed = not (chance > 0 and error <= delta)
    repaired = worst >= -1e-12 and constant >= EXPECTED and least >= EXPECTED
    return Finding("C53", printed, evidence, "proved", repaired=repaired)
