"""Looks at a Brownian motion with a drift: when it is ended, and how often on the wrong side.

Two Gaussian arms with means Δ apart, both pulled b times: the difference of the sums over 2σ² is W ~ N(Δt, t)
at t = b/2σ², with independent steps, so that a race of two arms with looks planned in advance is a `Looks`,
and its drift is the gap. Everything is a normal integral, by quadrature; nothing is drawn.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from compendium.shared.looks import START, Walk
from ebr.arrays import FloatArray

ORDER = 16  # nodes on each panel
PANELS = 1.0  # in a standard deviation of the narrowest normal law that is integrated
LEAST = 1e-300  # of a mass: its logarithm is taken


@dataclass(frozen=True, eq=False)
class Looks:
    """Times t_1 < … < t_T of looks: at look k < T, W goes on while low_k ≤ W ≤ high_k (low ≤ 0 ≤ high).

    `low` is −high where it is not given. The arm by the sign of W in the end is recommended.
    """

    times: FloatArray
    high: FloatArray
    low: FloatArray | None = None

    @property
    def lowest(self) -> FloatArray:
        """Below these W is ended."""
        return -self.high if self.low is None else self.low

    @cached_property
    def laws(self) -> list[Walk]:
        """For each look, where the one before left W without a drift, on the paths that come so far."""
        laws, steps = [START], np.sqrt(np.diff(self.times, prepend=0.0))
        narrowest = np.minimum(steps[:-1], steps[1:])
        for time, low, high, unit in zip(self.times[:-1], self.lowest, self.high, narrowest, strict=True):
            panels = max(1, math.ceil((high - low) / unit * PANELS))
            laws.append(laws[-1].within(time, np.linspace(low, high, panels + 1), ORDER))
        return laws

    def reached(self, drift: FloatArray | float) -> FloatArray:
        """P(look k takes place): a row a drift, or one for a single drift."""
        drifts = np.asarray(drift, dtype=np.float64)[..., None]
        return np.stack([np.exp(log_ratio(law, drifts)) @ law.masses for law in self.laws], axis=-1)

    def mean_time(self, drift: FloatArray | float) -> FloatArray:
        """The expected time at the end."""
        return np.asarray(self.reached(drift) @ np.diff(self.times, prepend=0.0))

    def log_wrong(self, drift: float) -> float:
        """The log of P(W ends below 0), which is wrong where the drift is positive.

        Where it ends so the path is likely without a drift, too, and the likelihood ratio is kept as a
        logarithm: so small probabilities are as accurate as large ones.
        """
        ended = []
        for law, time, low in zip(self.laws, self.times, [*self.lowest, 0.0], strict=True):
            log_masses = np.log(np.maximum(law.masses, LEAST)) + log_ratio(law, drift)
            more = time - law.time
            missing = (low - law.nodes - drift * more) / math.sqrt(more)
            ended.append(np.logaddexp.reduce(log_masses + log_ndtr(missing)))
        return float(np.logaddexp.reduce(ended))

    def wrong(self, drift: float) -> float:
        """P(W ends below 0)."""
        return math.exp(self.log_wrong(drift))


def log_ratio(law: Walk, drift: FloatArray | float) -> FloatArray:
    """The log-likelihood ratio of a drift d against none, dW − d²t/2, at the nodes."""
    return np.asarray(drift * law.nodes - np.square(drift) * law.time / 2)
