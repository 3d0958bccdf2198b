"""Deviation functions: how far an empirical mean of τ rewards may lie from its expectation."""

import math

import numpy as np

from ebr.parameters import FloatArray, IntArray

__all__ = ["deviation", "sequential_deviation"]

# Lemma "confidence": the self-normalised bound of de la Peña, Klass and Lai (2004), Corollary 2.2.
SELF_NORMALISED = 4 + 2 * math.log(2)


def deviation(
    pulls: IntArray | int, n_arms: int, deadline: int, delta: float, sigma: float = 0.5
) -> FloatArray:
    """Equation (2), the paper's deviation: D(τ, δ) = σ √((4 + 2 log 2) log(nT/δ) / τ)."""
    variance = sigma**2 * SELF_NORMALISED * math.log(n_arms * deadline / delta)
    return np.sqrt(variance / np.asarray(pulls, dtype=np.float64))


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
