"""The characteristic time T*(ν): what the best allocation of pulls needs to be sure of an ε-optimal arm.

An algorithm that answers a must rule out every λ in which some b is better than a by ε or more:

    T*(ν)⁻¹ = max_a sup_w min_{b ≠ a} inf_{x} w_a KL(μ_a, x) + w_b KL(μ_b, x + ε),

a over the ε-optimal arms, w over the proportions of pulls (Garivier and Kaufmann, COLT 2016, for ε = 0;
Degenne and Koolen, NeurIPS 2019, for problems with several right answers).
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from compendium.shared.distributions import bernoulli_kl
from ebr.arrays import FloatArray
from ebr.theory.divergence import bisected, relative_entropy
from ebr.theory.problems import Gaussian, Problem

EDGE = 1e-9  # how near 0 and 1 a Bernoulli mean may be
FARTHEST = 1 - 1e-6  # of the way to the farthest λ: beyond it weights are useless
DEPTH = 60.0  # nats below the largest level, in which the best one lies


class Characteristic(NamedTuple):
    """T*(ν), in pulls a nat, and w*, the share of the pulls that each arm gets at the optimum."""

    time: float
    proportions: FloatArray


def characteristic_lower_bound(problem: Problem, epsilon: float, delta: float) -> float:
    """T*(ν) kl(δ, 1−δ): no (ε, δ)-PAC algorithm has a smaller E[Ñ] on ν if one arm alone is ε-optimal.

    Where several are, the chance of each answer is not bounded, only that of all, and the bound is
    asymptotic: E[Ñ] is at least (1 − o(1)) T*(ν) log(1/δ) as δ → 0.
    """
    return characteristic(problem, epsilon).time * bernoulli_kl(1 - delta, delta)


def characteristic(problem: Problem, epsilon: float) -> Characteristic:
    """T*(ν) and its optimal proportions for ε-best-arm identification, Gaussian or Bernoulli rewards.

    Notes
    -----
    *The best arm is the best answer.* For a good arm a and any w, exchange the weights of a and [1] and
    answer [1]. Divergences KL(μ, x) grow as μ moves away from x. Let x be where the nearest λ has the new
    answer's mean, against a rival b. If x ≤ μ_a, KL(μ_[1], x) ≥ KL(μ_a, x); if x > μ_a, the rival's term
    alone is at least w_b KL(μ_b, μ_a + ε), which is what the old answer had at μ_a. Either way b is ruled
    out no worse. Against a itself: for x in [μ_[1] − ε, μ_a] both terms are no smaller than the old ones
    against [1]; for x > μ_a the rival's KL(μ_a, x + ε) is at least KL(μ_[1], μ_a + ε), for x < μ_[1] − ε the
    answer's KL(μ_[1], x) at least KL(μ_a, μ_[1] − ε), and the old answer had these at the two ends.

    *How it is found.* With w_a = 1, arm b needs the weight v_b(y) at which ruling it out reaches y; the best
    y minimises (1 + Σ v_b(y)) / y. Both are found through the place x of the nearest λ: the weight at which
    x is the minimiser is the ratio of the two slopes, and weight and value rise as x moves away from μ_a.
    """
    gaussian = isinstance(problem, Gaussian)
    means = problem.means if gaussian else np.clip(problem.means, EDGE, 1 - EDGE)
    leader, others = means[problem.best], np.delete(means, problem.best)
    # Bernoulli means stay in [0, 1]: x ≥ 0 and x + ε ≤ 1.
    nearest = leader if gaussian else min(leader, 1 - epsilon)
    reach = nearest - (others - epsilon if gaussian else np.maximum(others - epsilon, 0.0))
    farthest = reach**2 / (2 * problem.sigma**2)  # for Gaussian rewards: the divergence at the end of the way

    def weight_and_value(share: FloatArray) -> tuple[FloatArray, FloatArray]:
        if gaussian:
            return share / (1 - share), share * farthest
        x = nearest - share * reach
        y = np.minimum(x + epsilon, 1 - 1e-15)  # where x + ε is 1 the divergence is infinite
        weight = (leader - x) * y * (1 - y) / ((y - others) * x * (1 - x))
        return weight, relative_entropy(leader, x) + weight * relative_entropy(others, y)

    def weights(level: float) -> FloatArray:
        if gaussian:
            return weight_and_value(level / farthest)[0]
        nothing, all_the_way = np.zeros_like(others), np.ones_like(others)
        share, _ = bisected(nothing, all_the_way, lambda share: weight_and_value(share)[1] >= level)
        return weight_and_value(share)[0]

    most = np.log(weight_and_value(np.full_like(others, FARTHEST))[1].min())
    best = minimize_scalar(
        lambda log_level: (1 + weights(np.exp(log_level)).sum()) / np.exp(log_level),
        bounds=(most - DEPTH, most),
        method="bounded",
        options={"xatol": 1e-12},
    )
    parts = np.insert(weights(float(np.exp(best.x))), problem.best, 1.0)
    return Characteristic(float(best.fun), parts / parts.sum())
