"""What sharp and pausing EBR share: both decide by the difference of two means at counts fixed in advance."""

from typing import ClassVar

import numpy as np

from ebr.algorithms.game import Algorithm, Known
from ebr.arrays import FloatArray, IntArray
from ebr.models import IN_UNIT, REWARDS
from ebr.theory.confidence import fixed_count_deviation
from ebr.validation import Rule, check_fields, one_of, require, scale


class Differences(Algorithm):
    """A race whose rounds resolve differences from w_0 down to ε; `start` is w_0."""

    deadline: int
    epsilon: float
    delta: float
    sigma: float
    rewards: str | None
    start: float
    fixed_counts: ClassVar[bool] = True

    def _check(self, **checks: Rule | tuple[str, ...]) -> None:
        """Check the common fields, and those of one race by the checks given."""
        check_fields(self, start=scale, **checks)
        if self.rewards is not None:
            one_of("rewards", self.rewards, REWARDS)
        wide = self.rewards not in IN_UNIT or self.sigma >= 0.5
        require(wide, "sigma", f"be at least 0.5 for {self.rewards} rewards", self.sigma)

    def widths(self) -> FloatArray:
        """w_t = w_0 (ε/w_0)^{t/T}, from nearly w_0 down to ε; ε throughout where w_0 is no larger."""
        start = max(self.start, self.epsilon)
        return np.asarray(start * (self.epsilon / start) ** (np.arange(1, self.deadline + 1) / self.deadline))

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """Tests for normal rewards prove nothing for others, and bounded rewards are not normal."""
        normal = bounded and self.model(rewards) == "Gaussian"
        return "the algorithm is made for normal rewards, which have no bounds" if normal else None

    def deviation(self, pulls: IntArray | int, n_arms: int) -> FloatArray:
        """Hoeffding's half-width for one mean, so that all n of all T rounds are covered with 1 − δ.

        To show how well each arm is known; the race itself compares arms.
        """
        return fixed_count_deviation(pulls, self.delta / (n_arms * self.deadline), self.sigma)

    def model(self, told: Known) -> str:
        """The rewards' model: the parameter `rewards`, else what the race is told, else the weakest.

        A σ below ½ is a stronger statement than that rewards lie in [0, 1].
        """
        known = self.rewards or told or "sub-Gaussian"
        return "sub-Gaussian" if known in IN_UNIT and self.sigma < 0.5 else known
