"""Bandit problems: arms with means in [0, 1], and how hard they are (the paper's section 2)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.validation import check_fields, checked, in_unit_interval, numbers, require, whole


@dataclass(frozen=True, eq=False)
class Problem:
    """A bandit model ν: n arms with means μ_i and σ-sub-Gaussian rewards; base of `Bernoulli`, `Gaussian`."""

    means: FloatArray
    sigma: float
    rewards: ClassVar[str] = "sub-Gaussian"  # what algorithms are told about the rewards

    def __post_init__(self) -> None:
        check_fields(self, means=_checked_means)

    @property
    def n_arms(self) -> int:
        """The number of arms, n."""
        return len(self.means)

    @property
    def best(self) -> int:
        """The best arm, [1] (the first of them where several tie)."""
        return int(self.means.argmax())

    def top(self, k: int) -> IntArray:
        """The k best arms, in the order of their numbers; of those that tie for a place the first."""
        below = whole("k", k, 1) < self.n_arms
        require(below, "k", f"lie in 1 … {self.n_arms - 1}, below the number of arms", k)
        return np.sort(np.argsort(-self.means, kind="stable")[:k])

    @property
    def gaps(self) -> FloatArray:
        """The gaps: Δ_i = μ_[1] − μ_i, and for the best arm itself Δ_[1] = μ_[1] − μ_[2]."""
        return self.top_gaps(1)

    def top_gaps(self, k: int) -> FloatArray:
        """Each arm's gap to the other side: μ_i − μ_[k+1] for the k best, μ_[k] − μ_i for the others."""
        inside = np.isin(np.arange(self.n_arms), self.top(k))
        last, next_one = self.means[inside].min(), self.means[~inside].max()
        return np.asarray(np.where(inside, self.means - next_one, last - self.means))

    @checked()
    def complexity(self, epsilon: float, k: int = 1) -> float:
        """H_k(ν) = Σ_i N_i*, with N_i* = ε^{−2} where Δ_i < ε and (Δ_i + ε)^{−2} elsewhere; H_1 is H."""
        gaps = self.top_gaps(k)
        return float((np.where(gaps < epsilon, epsilon, gaps + epsilon) ** -2).sum())

    def is_good(self, arm: ArrayLike, epsilon: float, k: int = 1) -> BoolArray:
        """Whether each arm is ε-optimal, μ_i > μ_[k] − ε. Arm −1 stands for "none" and is never good."""
        require(whole("k", k, 1) <= self.n_arms, "k", f"lie in 1 … {self.n_arms}, the number of arms", k)
        threshold = np.sort(self.means)[-k] - in_unit_interval("epsilon", epsilon)
        arm = np.asarray(arm)
        return np.asarray((arm >= 0) & (self.means[arm] > threshold))


@dataclass(frozen=True, eq=False)
class Bernoulli(Problem):
    """Arms that pay 1 with probability μ_i and else 0; rewards in [0, 1] are ½-sub-Gaussian."""

    sigma: float = field(default=0.5, init=False)
    rewards: ClassVar[str] = "Bernoulli"


@dataclass(frozen=True, eq=False)
class Gaussian(Problem):
    """Arms that pay N(μ_i, σ²)."""

    rewards: ClassVar[str] = "Gaussian"


@checked()
def setup_1(n_arms: int = 100) -> Bernoulli:
    """Section 5's Setup 1, evenly spaced arms: means from 0.9 down to 0.1."""
    return Bernoulli(np.linspace(0.9, 0.1, n_arms))


@checked()
def setup_2(n_arms: int = 100) -> Bernoulli:
    """Section 5's Setup 2, all arms close: means from 0.9 down to 0.65."""
    return Bernoulli(np.linspace(0.9, 0.65, n_arms))


def _checked_means(name: str, means: Any) -> FloatArray:
    array = numbers(name, means, at_least=2)
    outside = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if len(outside):
        raise ValueError(f"{name} must lie in [0, 1], got {array[outside[0]]} for arm {outside[0]}")
    array.flags.writeable = False
    return array
