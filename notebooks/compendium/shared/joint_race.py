"""Sharp EBR whose rounds of Gaussian rewards are combined by their joint law (notebook A1)."""

from dataclasses import dataclass

import numpy as np

from compendium.shared.looks import planned_looks
from ebr.algorithms import sharp
from ebr.algorithms.game import Known
from ebr.arrays import FloatArray, IntArray
from ebr.theory.selection import bechhofer_distance
from ebr.validation import count, one_of


@dataclass(frozen=True)
class SharpElasticBatchRacing(sharp.SharpElasticBatchRacing):
    """Sharp EBR; for Gaussian rewards L_t = z_t²/2 with boundaries z_t from the joint law of rounds and arms.

    The race is right if no arm i is ever too far ahead of the best arm, 1, for its gap:
    μ̂_i − μ̂_1 + Δ_i ≤ w̄_t at every look, w̄_t = σ z_t √(2/b_t) the width. The left side is noise, whatever
    Δ_i is, so one boundary serves all: arm 1 is dropped only if the leader is ahead of it by more than w̄_t,
    though Δ ≥ 0; an arm with Δ_i ≥ ε is certified only if it is ahead by more than w̄_t − ε; and at the last
    look, where w̄ ≤ ε, it leads only if the noise exceeds ε. Over the looks the noise is a Brownian motion:
    what must be paid from δ_t is that some arm's *first* exceeds w̄_t at look t. b_t is the least count at
    which δ_t pays for the width w_t, or hardly more; with T = 1 it is Bechhofer's.

    Parameters
    ----------
    looks
        How the rounds of Gaussian rewards are combined: by their "joint" law, or by a "union" over rounds and
        pairs, as in `ebr`.
    """

    looks: str = "joint"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("looks", self.looks, ("joint", "union"))

    def __repr__(self) -> str:
        """Without what goes without saying: simulations are seeded by it."""
        return super().__repr__().replace(", looks='joint'", "")

    def log_terms(self, n_arms: int, rewards: Known = None) -> FloatArray:
        """L_t; with joint looks some difference first exceeds its expectation by w_t in round t with δ_t."""
        if not self._jointly(rewards):
            return super().log_terms(n_arms, rewards)
        return np.asarray(self._planned(n_arms)[1] ** 2 / 2)

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """b_t; with joint looks z_t depends on b_t, the least count with width w_t, or hardly more."""
        if not self._jointly(rewards):
            return super().pulls_by_round(n_arms, rewards)
        return self._planned(n_arms)[0].copy()

    def _jointly(self, rewards: Known) -> bool:
        return self.model(rewards) == "Gaussian" and self.looks == "joint"

    def _planned(self, n_arms: int) -> tuple[IntArray, FloatArray]:
        """b_t and z_t for Gaussian rewards; of k(n−k) pairs those that share an arm are taken together."""
        few, many = sorted((self.k, n_arms - self.k))
        shares = self.shares() / few
        count((bechhofer_distance(many + 1, float(shares[-1])) * self.sigma / self.epsilon) ** 2, n_arms)
        return planned_looks(tuple(self.widths().tolist()), tuple(shares.tolist()), many + 1, self.sigma)

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """Joint looks are for independent arms whose counts are as planned."""
        if feature in ("missing", "blocks") and self._jointly(rewards):
            return f"looks must be 'union' for {feature} rewards that are Gaussian, got 'joint'"
        return super().objection(feature, rewards)

    def deciding_widths(self, n_arms: int) -> FloatArray:
        """The width that the cost bound compares an arm's gap with after each round: w_t.

        For joint looks at Gaussian rewards w̄ = σ z √(2/b), the least of the looks made so far.
        """
        if not self._jointly(None):
            return self.widths()
        return np.minimum.accumulate(self.width(self.pulls_by_round(n_arms), self.log_terms(n_arms)))

    def longest(self, n_arms: int) -> float:
        """L of the cost bound Ñ_T ≤ 36σ² (max(w_0, ε)/ε)^{2/T} L H_k(ν) + n: the largest L_t.

        For joint looks at Gaussian rewards that would be too small: looks are left out, and end early with
        the width ε. L is the least with b ≤ 4σ² L/w² + 1 at every look, w the width planned for the round
        after the look before, w_1 for the first. The bound holds for w_0 ≥ ½ and means in [0, 1].
        """
        if not self._jointly(None):
            return float(self.log_terms(n_arms).max())
        pulls = self.pulls_by_round(n_arms)
        made = np.flatnonzero(np.diff(pulls, prepend=0))
        planned = self.widths()[np.append(0, made[:-1] + 1)]
        return float(((pulls[made] - 1) * planned**2).max() / (4 * self.sigma**2))
