"""The numbers under the lower bounds: inequalities between entropies, and what a constant can be."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.stats import norm

from ebr.baselines import iterated_log
from ebr.divergence import binary_entropy
from ebr.findings import Finding
from ebr.parameters import FloatArray

__all__ = ["c14", "c17", "c40", "c44", "c48", "hpcm", "hpcm_at"]


def c14(base: float = 2.4, weight: float = 1 / 3, least: float = 1 / 25) -> Finding:
    """Check C14: d(δ,1−δ) ≥ log(1/2.4δ), d(2/3,x) ≥ ⅓ log(1/2x), d(3/32,1/32) ≥ 1/25; on fine grids."""
    x = np.concatenate([np.geomspace(1e-300, 1e-3, 2000), np.linspace(1e-3, 1 - 1e-9, 200001)])
    first = binary_entropy(x, 1 - x) - np.log(1 / (base * x))
    second = binary_entropy(2 / 3, x) - weight * np.log(1 / (2 * x))
    third = float(binary_entropy(3 / 32, 1 / 32))
    evidence = (
        f"least difference of the first {first.min():.4f} at δ = {x[first.argmin()]:.3f}, of the second "
        f"{second.min():.4f} at x = {x[second.argmin()]:.3f} (exactly ⅓ log(32/27) = "
        f"{math.log(32 / 27) / 3:.4f}); d(3/32, 1/32) = {third:.5f}"
    )
    return Finding("C14", bool(first.min() >= 0 and second.min() >= 0 and third >= least), evidence)


def c17(errors: Callable[[FloatArray, FloatArray, FloatArray], FloatArray] | None = None) -> Finding:
    """Check C17: P(φ = 1) + Q(φ = 1) ≥ ½ e^{−KL} as printed, with Q(φ = 0) as meant; every φ on four points.

    `errors` gives the left side as printed for all tests φ (rows of 0 and 1).
    """
    printed = errors or (lambda tests, p, q: tests @ p + tests @ q)
    generator = np.random.default_rng(17)
    tests = np.array(list(product((0.0, 1.0), repeat=4)))
    as_printed = as_meant = math.inf
    for concentration in np.geomspace(0.05, 50, 400):
        p, q = generator.dirichlet(np.full(4, concentration), 2) + 1e-12
        p, q = p / p.sum(), q / q.sum()
        bound = 0.5 * math.exp(-float((p * np.log(p / q)).sum()))
        as_printed = min(as_printed, float(printed(tests, p, q).min()) - bound)
        as_meant = min(as_meant, float((tests @ p + (1 - tests) @ q).min()) - bound)
    shift = np.linspace(0, 30, 3001)  # N(0,1) and N(s,1): the best test errs 2Φ(−s/2) in all
    normal = float((2 * norm.sf(shift / 2) - 0.5 * np.exp(-(shift**2) / 2)).min())
    evidence = (
        f"least difference over all 16 tests of 400 pairs on 4 points: {as_printed:.3f} as printed (φ ≡ 0), "
        f"{as_meant:.3f} as meant; over normal pairs, with the best test, {normal:.3f}"
    )
    return Finding("C17", as_printed >= 0, evidence, as_meant >= 0 and normal >= 0)


def hpcm(delta: float) -> float:
    """Lemma HPCM's constant c = ⅔ log(1/2δ): P(Ñ_i ≥ c σ²/(Δ_i + ε)²) ≥ 1/6."""
    return 2 / 3 * math.log(1 / (2 * delta))


def hpcm_at(probability: float, delta: float) -> float:
    """The same proof with p in place of 1/6: c = 2 d(1 − p − δ, δ), for 1 − p − δ > δ."""
    return 2 * float(binary_entropy(1 - probability - delta, delta)) if 1 - probability > 2 * delta else 0.0


def c40(share: float = 1.0, idle: float = 0.5) -> Finding:
    """Check C40: the probability 1/6 can be close to ½ with the logarithm, and close to 1 without it."""
    half = {d: share * hpcm_at(0.5, d) / math.log(1 / d) for d in (0.1, 0.01, 1e-4, 1e-8)}
    # An algorithm may give up before its first pull with a share of δ (`idle`) and still be (ε, δ)-PAC.
    ceiling = 1 - idle * 0.01
    words = ", ".join(f"{value:.3f} (δ = {delta:g})" for delta, value in half.items())
    evidence = (
        f"constant over log(1/δ) at probability ½: {words}; at δ = 0.01 no probability above {ceiling:g} can "
        f"be had, as a PAC algorithm may do nothing with probability δ/2"
    )
    return Finding("C40", min(half.values()) > 0 and ceiling == 1, evidence, min(half.values()) > 0)


def c44(power: int = 4) -> Finding:
    """Check C44: Agarwal et al.'s bound exceeds n/Δ² only where ilog^T(n) > T⁴."""
    beyond = [t for t in range(1, 51) if iterated_log(t, 1e300) > t**power]
    as_printed = [t for t in range(1, 51) if iterated_log(1, t) > t**power]  # ilog(T) in place of ilog^T(n)
    evidence = (
        f"at n = 10^300, ilog^T(n) > T^4 for T in {beyond} and ilog(T) > T^4 for T in {as_printed}; "
        f"at T = 2 it takes log n > e^16 = {math.exp(16):.2g}"
    )
    return Finding("C44", as_printed == beyond, evidence, beyond == [1])


def c48(constant: float = 1.0) -> Finding:
    """Check C48: with T = 1 and two arms each must be pulled at least σ² log(1/4δ(1−δ))/ε² times.

    Exactly: with N_1 pulls of one arm and any number of the other, the better of them errs on gap ε with
    probability above Φ(−ε√N_1/σ).
    """
    deltas = np.geomspace(1e-12, 0.49, 2000)
    needed = constant * np.log(1 / (4 * deltas * (1 - deltas)))
    exact = norm.isf(deltas) ** 2
    evidence = (
        f"exact need z² over log(1/4δ(1−δ)) for δ from 1e-12 to 0.49: {(exact / needed).min():.3f} to "
        f"{(exact / needed).max():.3f}"
    )
    return Finding("C48", bool((exact >= needed).all()), evidence)
