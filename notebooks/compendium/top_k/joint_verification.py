"""Verifying k arms at once (notebook 14): a race that is cheaper than Theorem 3 with H_k for H says."""

import math
from typing import NamedTuple

from compendium.shared.distributions import norm


class Verification(NamedTuple):
    """Three rounds for Gaussian rewards N(μ, σ²), meant for P_γ with γ = (j, …, j): all gaps in one bin.

    1. Pull all n arms N times; H are the k with the largest means. 2. Pull those M times afresh. If all their
    fresh means are within ε/2 of each other, and all other arms' means of round 1 at least s below the least
    of them, return H. 3. Else pull all arms F times afresh, and return the k with the largest means.
    """

    n_arms: int
    k: int
    epsilon: float
    deadline: int
    bin_number: int  # j
    delta: float
    sigma: float = 0.5

    @property
    def bin(self) -> tuple[float, float]:
        """ε^{j/T} and ε^{(j−1)/T}, between which all gaps are."""
        least, most = (self.epsilon ** (j / self.deadline) for j in (self.bin_number, self.bin_number - 1))
        return least, most

    @property
    def unlucky(self) -> float:
        """The probability p = (δ/2)^{1/k} that one of the k best looks bad: H errs only if all do."""
        return float((self.delta / 2) ** (1 / self.k))

    @property
    def verified(self) -> int:
        """M: all k fresh means are within ε/8 of their expectations with 1 − δ/4."""
        return math.ceil((8 * self.sigma * norm.isf(self.delta / (8 * self.k)) / self.epsilon) ** 2)

    @property
    def at_last(self) -> int:
        """F: by Chernoff some of k(n−k) pairs of arms, ε apart or more, change places with δ/4 at most."""
        log_term = math.log(4 * self.k * (self.n_arms - self.k) / self.delta)
        return math.floor(4 * self.sigma**2 * log_term / self.epsilon**2) + 1

    def below(self, pulls: int) -> float:
        """s: an arm whose mean is 7ε/8 above the least fresh one is s below it with p."""
        return float(self.sigma * norm.isf(self.unlucky) / math.sqrt(pulls) - 7 * self.epsilon / 8)

    def third_round(self, pulls: int) -> float:
        """The probability of round 3 on any ν of P_γ, at most."""
        (gap, _), root, others = self.bin, math.sqrt(pulls) / self.sigma, self.n_arms - self.k
        mixed = self.k * others * norm.sf(gap * root / math.sqrt(2))
        doubted = others * norm.sf((gap - self.epsilon / 8 - self.below(pulls)) * root)
        return min(float(self.delta / 4 + mixed + doubted), 1.0)

    def expected(self, pulls: int) -> float:
        """E[Ñ_T] on any ν of P_γ, at most, if round 1 has so many pulls of each arm."""
        again = self.third_round(pulls) * self.n_arms * self.at_last
        return self.n_arms * pulls + self.k * self.verified + again

    @property
    def cheapest(self) -> int:
        """N: of the counts that could cost less than `supposed`, the one with the least bound."""
        return min(range(1, 2 + int(self.supposed() / self.n_arms)), key=self.expected)

    def supposed(self) -> float:
        """Theorem 3 with H_k: 2σ² log(1/2.4δ) sup H_k, H_k = n (ε^{j/T} + ε)^{−2} at the bin's end."""
        hardest = self.n_arms / (self.bin[0] + self.epsilon) ** 2
        return 2 * self.sigma**2 * math.log(1 / (2.4 * self.delta)) * hardest
