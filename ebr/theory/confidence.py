"""Deviation functions: how far an empirical mean of τ rewards may lie from its expectation."""

import math
from functools import partial

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.validation import MOST_ARMS, checked, in_unit_interval, whole

# Lemma "confidence": the self-normalised bound of de la Peña, Klass and Lai (2004), Corollary 2.2.
SELF_NORMALISED = 4 + 2 * math.log(2)

# Limits for formulas, which may be wider than for races that are played.
_arms = partial(whole, at_least=1, at_most=MOST_ARMS)
_rounds = partial(whole, at_least=1, at_most=10**300)
_miss = partial(in_unit_interval, least=1e-300)


@checked(n_arms=_arms, deadline=_rounds)
def deviation(
    pulls: IntArray | int, n_arms: int, deadline: int, delta: float, sigma: float = 0.5
) -> FloatArray:
    """Equation (2), the paper's deviation: D(τ, δ) = σ √((4 + 2 log 2) log(nT/δ) / τ)."""
    variance = sigma**2 * SELF_NORMALISED * math.log(n_arms * deadline / delta)
    return np.sqrt(variance / np.asarray(pulls, dtype=np.float64))


@checked(n_arms=_arms)
def sequential_deviation(
    pulls: IntArray | FloatArray | int, n_arms: int, delta: float, sigma: float = 0.5
) -> FloatArray:
    """D(τ, ω) = 4σ √(log(log₂(2τ)/ω) / τ) with ω = √(δ/(6n)), valid for all τ at once.

    The bound of Jun, Jamieson, Nowak and Zhu, *Top Arm Identification in Multi-Armed Bandits with Batch
    Arm Pulls* (AISTATS 2016), which the paper uses for T = ∞; theirs is for rewards in [0, 1], σ = ½.
    """
    tau = np.asarray(pulls, dtype=np.float64)
    omega = math.sqrt(delta / (6 * n_arms))
    return np.sqrt(16 * sigma**2 * np.log(np.log2(2 * tau) / omega) / tau)


@checked(miss=_miss)
def fixed_count_deviation(pulls: IntArray | int, miss: float, sigma: float = 0.5) -> FloatArray:
    """Hoeffding's σ √(2 log(2/p) / τ): the mean of a *fixed* number τ of rewards is off by more with p."""
    return np.sqrt(2 * sigma**2 * math.log(2 / miss) / np.asarray(pulls, dtype=np.float64))
