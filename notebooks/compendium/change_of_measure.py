"""The change-of-measure lemma and the likelihood-ratio identities under it, on races of every algorithm."""

import math

import numpy as np
import pandas as pd
from scipy.stats import norm

from compendium.findings import FALSE_ALARM, Finding
from ebr.algorithms.game import Algorithm
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory.divergence import gaussian_kl, log_likelihood_ratio, relative_entropy
from ebr.theory.problems import Gaussian

__all__ = ["c16", "close_pair", "identities"]


def close_pair(algorithm: Algorithm, n_arms: int, sigma: float, seed: int) -> tuple[Gaussian, Gaussian]:
    """Equal arms, and the same with the first arm raised so little that E[L] is about ½.

    The two are so close that importance weights from one to the other vary little, and yet what is
    recommended changes much.
    """
    equal = Gaussian(np.full(n_arms, 0.5), sigma)
    pulls, _ = simulate(algorithm, equal, 200, seed, per_arm=True).by_arm()
    raised = equal.means.copy()
    raised[0] += sigma / math.sqrt(pulls[:, 0].mean())
    return equal, Gaussian(raised, sigma)


def identities(
    algorithm: Algorithm, problem: Gaussian, other: Gaussian, runs: int, seed: int, sign: float = 1.0
) -> pd.DataFrame:
    """Both sides of each statement, with the standard error of their difference; one row a statement.

    Rows: E_ν[L] = Σ E_ν[Ñ_i] KL_i; E_ν′[g] = E_ν[g e^{−L}] for g = 1, for g = 1{Î = 1} and for g = Ñ_T; and
    Σ E_ν[Ñ_i] KL_i ≥ d(P_ν(Î = 1), P_ν′(Î = 1)).
    """
    here, there = (simulate(algorithm, nu, runs, seed, per_arm=True) for nu in (problem, other))
    pulls, sums = here.by_arm()
    ratio = sign * log_likelihood_ratio(problem, other, pulls, sums)
    information = pulls @ gaussian_kl(problem, other)
    weight = np.exp(-ratio)
    first, first_there = here.arm == 0, there.arm == 0
    rows = [("E[L] = Σ E[Ñ] KL", *_means(ratio - information, ratio, information), "equal")]
    for name, value, direct in (
        ("E′[1] = E[e^−L]", np.ones(runs), np.ones(runs)),
        ("P′(Î = 1) = E[1{Î = 1} e^−L]", first, first_there),
        ("E′[Ñ] = E[Ñ e^−L]", here.pulls, there.pulls),
    ):
        weighted, straight = _mean(value * weight), _mean(direct)
        rows.append((name, straight[0], weighted[0], math.hypot(straight[1], weighted[1]), "equal"))
    mean, error = _mean(information)
    p, q = float(first.mean()), float(first_there.mean())
    if not (0 < p < 1 and 0 < q < 1):
        raise ValueError(
            f"problem and other must each see arm 1 recommended at times, got shares {p} and {q}"
        )
    slope_p, slope_q = math.log(p * (1 - q) / (q * (1 - p))), (q - p) / (q * (1 - q))
    spread = math.hypot(slope_p * _mean(first)[1], slope_q * _mean(first_there)[1])
    rows.append(
        ("Σ E[Ñ] KL ≥ d(P, P′)", mean, float(relative_entropy(p, q)), math.hypot(error, spread), "at least")
    )
    return pd.DataFrame(rows, columns=["statement", "left", "right", "error", "relation"])


def _mean(values: FloatArray | BoolArray | IntArray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def _means(difference: FloatArray, left: FloatArray, right: FloatArray) -> tuple[float, float, float]:
    return float(left.mean()), float(right.mean()), _mean(difference)[1]


def c16(tables: dict[str, pd.DataFrame]) -> Finding:
    """Check C16 on the tables of `identities`: equalities and inequalities by normal tests of the means."""
    table = pd.concat(tables, names=["race"]).reset_index(level=0)
    limit = float(norm.isf(FALSE_ALARM / 2 / len(table)))
    distance = (table["left"] - table["right"]) / table["error"].clip(lower=1e-12)
    equal = table["relation"] == "equal"
    broken = ~np.where(equal, np.abs(distance) <= limit, distance >= -limit)
    bound = table[~equal]
    tightest = float((bound["right"] / bound["left"]).max())
    evidence = (
        f"{int(broken.sum())} of {len(table)} statements broken at {limit:.1f} s.e. in {len(tables)} "
        f"races; the farthest equality is {np.abs(distance[equal]).max():.1f} standard errors off; d(P, P′) "
        f"reaches {tightest:.2f} of Σ E[Ñ] KL"
    )
    return Finding("C16", not broken.any(), evidence)
