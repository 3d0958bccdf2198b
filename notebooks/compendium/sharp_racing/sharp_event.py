"""What sharp EBR's event spends of δ (notebooks 09 and 14), from the race's own decisions."""

import math

import numpy as np
from scipy.stats import binom

from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import FloatArray
from ebr.theory.pairs import Pairs

ROUNDING = 1e-9


def spent(algorithm: SharpElasticBatchRacing, n_arms: int, mean: float = 0.5, shift: float = 0.0) -> float:
    """How much of δ the event's union bound spends, Σ_t k(n−k) P(one pair is wrong in round t) / δ.

    With s = 0: of two equal arms one is dropped or, for k > 1, the other accepted, which is as probable. With
    s = ε, for k = 1: an arm that is worse by ε is certified. Before the last round a pair's probability is
    Chernoff's bound for sub-Gaussian rewards. For bounded ones it is the exact probability of two Bernoulli
    arms: the leader has this mean (times 1 − s) and the other s more. In the last round an arm that is worse
    by ε must not lead: Chernoff's bound.
    """
    rounds = zip(algorithm.pulls_by_round(n_arms), algorithm.log_terms(n_arms), strict=True)
    total = 0.0
    for number, (pulled, log_term) in enumerate(rounds, start=1):
        if number == algorithm.deadline:
            total += math.exp(-pulled * algorithm.epsilon**2 / (4 * algorithm.sigma**2))
        elif algorithm.rewards == "bounded":
            sums, p = np.arange(pulled + 1.0), (1 - shift) * mean
            least = _refuting(algorithm, sums, int(pulled), log_term, shift)
            total += float(binom.pmf(sums, pulled, p) @ binom.cdf(sums - least, pulled, p + shift))
        else:
            lead = _lead(algorithm, int(pulled), log_term, shift) + shift
            total += math.exp(-pulled * lead**2 / (4 * algorithm.sigma**2))
    return algorithm.k * (n_arms - algorithm.k) * total / algorithm.delta


def fully_spent(share: float, epsilon: float) -> bool:
    """Whether one round with σ = ½ can spend this share of δ: b ≤ 4σ²L/ε² + 1, so e^{−ε²/4σ²} to 1.

    So can a race of more rounds, for sub-Gaussian rewards: those before the last spend their δ_t.
    """
    return math.exp(-(epsilon**2)) - ROUNDING <= share <= 1 + ROUNDING


def _lead(algorithm: SharpElasticBatchRacing, pulled: int, log_term: float, shift: float) -> float:
    """By how much a leader must be ahead for the race to drop an arm, or with s = ε to end."""
    (low, high), counts = (-2.0, 2.0), np.array([pulled])
    for _ in range(60):
        middle = (low + high) / 2
        pairs = Pairs(np.array([0.0]), counts, np.array([-middle * pulled]), counts)
        low, high = (low, middle) if algorithm.refuted(pairs, shift, log_term, None) else (middle, high)
    return high


def _refuting(
    algorithm: SharpElasticBatchRacing, leader: FloatArray, pulled: int, log_term: float, shift: float
) -> FloatArray:
    """By how many rewards in [0, 1] an arm must be behind for the race to drop it, or with s = ε to end."""
    low, high = np.full(leader.shape, -1.0), np.full(leader.shape, pulled + 1.0)
    counts = np.array(pulled)
    for _ in range(pulled.bit_length() + 1):
        middle = np.floor((low + high) / 2)
        pairs = Pairs(leader, counts, np.clip(leader - middle, 0, pulled), counts)
        ends = algorithm.refuted(pairs, shift, log_term, None) | (middle > leader)
        ends &= middle >= 0  # a runner-up is not ahead
        low, high = np.where(ends, low, middle), np.where(ends, middle, high)
    return np.asarray(high)


def crossed(algorithm: SharpElasticBatchRacing, n_arms: int, runs: int, seed: int) -> int:
    """The number of runs in which Gaussian noise leaves the event: some arm's lead exceeds w̄_t, or ε at T.

    For Gaussian rewards the widths are chosen by the joint law of the rounds and of the arms: no union.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 94]))
    pulls, log_terms = algorithm.pulls_by_round(n_arms), algorithm.log_terms(n_arms)
    sums, outside = np.zeros((runs, n_arms)), np.zeros(runs, dtype=bool)
    for number, (new, pulled) in enumerate(zip(np.diff(pulls, prepend=0), pulls, strict=True)):
        sums += algorithm.sigma * math.sqrt(new) * generator.standard_normal(sums.shape)
        lead = (sums[:, 1:].max(axis=1) - sums[:, 0]) / pulled
        last = number + 1 == algorithm.deadline
        width = algorithm.epsilon if last else float(algorithm.width(pulled, log_terms[number]))
        outside |= lead > width
    return int(outside.sum())
