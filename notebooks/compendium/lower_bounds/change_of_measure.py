"""The change-of-measure lemma and its likelihood-ratio identities, on races of every algorithm."""

import math
from collections.abc import Callable, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium.shared import figures
from compendium.shared.distributions import bernoulli_kl, norm
from compendium.shared.findings import FALSE_ALARM, Evidence, Finding, measured
from compendium.shared.likelihood import gaussian_kl, log_likelihood_ratio
from compendium.shared.lineup import LOOKS
from ebr.algorithms.game import Algorithm
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Gaussian

Values = FloatArray | BoolArray | IntArray
Statement = tuple[str, float, float, float, str]  # name, both sides, error of their difference, relation
WEIGHTS = "E′[1] = E[e^−L]"
RECOMMENDED = "P′(Î = 1) = E[1{Î = 1} e^−L]"


def close_pair(algorithm: Algorithm, n_arms: int, sigma: float, seed: int) -> tuple[Gaussian, Gaussian]:
    """Equal arms, and the same with the first arm raised so little that E[L] is about ½.

    The two problems are so close that the importance weights vary little, and yet the recommendation changes
    much.
    """
    equal = Gaussian(np.full(n_arms, 0.5), sigma)
    pulls = simulate(algorithm, equal, 200, seed, per_arm=True).arm_pulls
    raised = equal.means.copy()
    raised[0] += sigma / math.sqrt(pulls[:, 0].mean())
    return equal, Gaussian(raised, sigma)


def identities(
    algorithm: Algorithm,
    problem: Gaussian,
    other: Gaussian,
    runs: int,
    seed: int,
    sign: float = 1.0,
    entropy: Callable[[float, float], float] = bernoulli_kl,
) -> pd.DataFrame:
    """Both sides of each statement, with the standard error of their difference; one row per statement.

    Rows: E_ν[L] = Σ E_ν[Ñ_i] KL_i; E_ν′[g] = E_ν[g e^{−L}] for g = 1, for g = 1{Î = 1} and for g = Ñ_T; and
    Σ E_ν[Ñ_i] KL_i ≥ d(P_ν(Î = 1), P_ν′(Î = 1)).
    """
    here, there = (simulate(algorithm, nu, runs, seed, per_arm=True) for nu in (problem, other))
    pulls, sums = here.arm_pulls, here.arm_sums
    ratio = sign * log_likelihood_ratio(problem, other, pulls, sums)
    information = pulls @ gaussian_kl(problem, other)
    weight, ones = np.exp(-ratio), np.ones(runs)
    first, first_there = here.arm == 0, there.arm == 0
    error = _mean(ratio - information)[1]
    rows = [
        ("E[L] = Σ E[Ñ] KL", float(ratio.mean()), float(information.mean()), error, "equal"),
        _reweighted(WEIGHTS, ones, ones, weight),
        _reweighted(RECOMMENDED, first_there, first, weight),
        _reweighted("E′[Ñ] = E[Ñ e^−L]", there.pulls, here.pulls, weight),
        _information_bound(information, first, first_there, entropy),
    ]
    columns = ["statement", "left", "right", "error", "relation"]
    return pd.DataFrame(rows, columns=columns).assign(runs=runs)


def _reweighted(statement: str, direct: Values, value: Values, weight: FloatArray) -> Statement:
    """E_ν′[g] from races on ν′, and E_ν[g e^{−L}] from those on ν."""
    (left, one), (right, two) = _mean(direct), _mean(value * weight)
    return statement, left, right, math.hypot(one, two), "equal"


def _information_bound(
    information: FloatArray,
    first: BoolArray,
    first_there: BoolArray,
    entropy: Callable[[float, float], float],
) -> Statement:
    """The lemma for the event Î = 1; the error of d(P, P′) by its slopes in P and P′."""
    (mean, error), (p, p_error), (q, q_error) = _mean(information), _mean(first), _mean(first_there)
    slope_p, slope_q = math.log(p * (1 - q) / (q * (1 - p))), (q - p) / (q * (1 - q))
    spread = math.hypot(slope_p * p_error, slope_q * q_error)
    return "Σ E[Ñ] KL ≥ d(P, P′)", mean, entropy(p, q), math.hypot(error, spread), "at least"


def _mean(values: Values) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def joined(tables: Mapping[tuple[str, int], pd.DataFrame]) -> pd.DataFrame:
    """Join the tables of `identities` by algorithm and number of arms, rounded as they are saved."""
    table = pd.concat(tables, names=["algorithm", "n_arms"])
    return figures.rounded(table.reset_index(level=[0, 1]).reset_index(drop=True))


def change_of_measure(table: pd.DataFrame) -> Finding:
    """Check C16 on the `joined` identities: equalities and inequalities by normal tests of the means."""
    limit = float(norm.isf(FALSE_ALARM / 2 / len(table)))
    distance = (table["left"] - table["right"]) / table["error"].clip(lower=1e-12)
    equal = table["relation"] == "equal"
    # An unknown error counts as broken, since comparisons with nan are false.
    broken = ~np.where(equal, np.abs(distance) <= limit, distance >= -limit)
    inequalities = table[~equal]
    tight = inequalities.iloc[int((inequalities["right"] / inequalities["left"]).argmax())]
    evidence = (
        Evidence("statements broken", int(broken.sum()), f"of {len(table)}", allowed="0"),
        Evidence(
            "farthest equality, in standard errors",
            float(np.abs(distance[equal]).max()),
            f"of {int(equal.sum())}",
            allowed=f"≤ {limit:.1f}",
        ),
        measured(
            "d(P, P′) over Σ E[Ñ] KL, at most",
            float(tight["right"] / tight["left"]),
            float(tight["error"] / tight["left"]),
            int(tight["runs"]),
            f"{tight['algorithm']}, n = {tight['n_arms']}",
            "≤ 1",
        ),
    )
    # For problems this close e^−L varies little; larger errors would hide broken statements.
    weights = table[table["statement"] == WEIGHTS]
    sharp = bool((weights["error"] * np.sqrt(weights["runs"]) < 10).all())
    return Finding("C16", sharp and not broken.any(), evidence, "proved")


def draw(table: pd.DataFrame) -> Figure:
    """How far the reweighted P′(arm 1) is from direct simulation, by algorithm and number of arms."""
    chosen = table[table["statement"] == RECOMMENDED]
    figure, axes = plt.subplots(1, 2, figsize=(figures.COLUMN, 2.2), sharex=True, sharey=True)
    for axis, (n_arms, part) in zip(axes, chosen.groupby("n_arms"), strict=True):
        axis.axvline(0, color="0.3", lw=0.8)
        for height, row in enumerate(part.iloc[::-1].to_dict("records")):
            looks = LOOKS[row["algorithm"]].line(ls="", ms=4, capsize=2)
            axis.errorbar(row["right"] - row["left"], height, xerr=2 * row["error"], **looks)
            axis.annotate(f"{row['left']:.2f}", (0.078, height), fontsize=7, va="center", ha="right")
        axis.set(title=f"{n_arms} arms", xlim=(-0.045, 0.08), xticks=(-0.04, 0, 0.04))
        axis.set_yticks(range(len(part)), part["algorithm"].iloc[::-1])
        axis.set_ylim(-0.6, len(part) - 0.4)
        axis.grid(visible=False, axis="y")
    figure.supxlabel("reweighted less simulated P′(arm 1)", fontsize=8)
    figures.letters(axes)
    return figure
