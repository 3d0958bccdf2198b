"""Policies close to the lower bounds, evaluated exactly: T-look tests for two arms, a race of three."""

import json
import math
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from compendium.shared.distributions import norm
from compendium.shared.looks import quadrature
from compendium.shared.walks import Looks
from ebr.arrays import BoolArray, FloatArray

EPSILON, SIGMA = 0.01, 0.5  # of the designs, which have whole numbers of pulls
FEW = 24  # nodes in each of two dimensions
NORMAL, CHANCES = np.polynomial.hermite_e.hermegauss(FEW)
CHANCES = CHANCES / CHANCES.sum()

# Found by Nelder–Mead search: δ, T and the gap (in ε) whose cost is minimised; looks I_t, thresholds a_t.
ROWS = json.loads(files("compendium.lower_bounds").joinpath("look_tests.json").read_text("utf-8"))
DESIGNS: dict[tuple[float, int, float], tuple[list[float], list[float]]] = {
    (delta, deadline, gap): (looks, thresholds) for delta, deadline, gap, looks, thresholds in ROWS
}


class LookTest(NamedTuple):
    """Two Gaussian arms, each pulled b_t times by round t: stop when W is beyond ± a_t, return the leader.

    Attributes
    ----------
    pulls
        b_1 < … < b_T, of each of the two arms; with `partner`, of the arm that is pulled less.
    thresholds
        a_1 … a_{T−1} for W = (ε/2σ²) Σ (X_1 − X_2), whose drift is 1 per unit of I = ε²b/2σ² where Δ = ε.
    epsilon, sigma
        ε and σ.
    partner
        Pulls of the other arm for each pull of this one; then I = ε²b/σ² · partner/(1 + partner).
    """

    pulls: tuple[int, ...]
    thresholds: tuple[float, ...]
    epsilon: float
    sigma: float
    partner: float = 1.0

    @property
    def information(self) -> FloatArray:
        """I_1 … I_T."""
        share = self.partner / (1 + self.partner)
        return share * (self.epsilon / self.sigma) ** 2 * np.asarray(self.pulls, dtype=float)

    @property
    def looks(self) -> Looks:
        """The looks at W, whose drift is the gap in units of ε.

        P(wrong) falls with the gap: its derivative is E[(W − drift·I) 1{W < 0}] < 0 at the end. So the test
        is (ε, δ)-PAC if P(wrong) ≤ δ at gap ε. And P(look t takes place) falls with the gap (Anderson).
        """
        return Looks(self.information, np.asarray(self.thresholds))

    def cost(self, gap: float) -> float:
        """E[Ñ_T], of both arms together."""
        return (1 + self.partner) * float(self.looks.reached(gap) @ np.diff(self.pulls, prepend=0))


def calibrated(test: LookTest, delta: float) -> LookTest:
    """The test with all thresholds scaled so that it errs with δ at gap ε: the smallest that are PAC.

    P(wrong) falls with every threshold. A path that goes through W = a and ends at W < 0 is wrong; its mirror
    image, which goes through W = −a, is right and e^{−2W} > 1 times as likely.
    """
    if not test.thresholds:
        return test

    def scaled(factor: float) -> LookTest:
        return test._replace(thresholds=tuple(factor * a for a in test.thresholds))

    factor = brentq(lambda k: scaled(k).looks.wrong(1.0) - delta, 0.2, 5.0, xtol=1e-13)
    return scaled(float(factor) * (1 + 1e-9))


def design(delta: float, deadline: int, gap: float = 0.0) -> LookTest:
    """The test of DESIGNS in whole pulls, calibrated; for T = 1 the fixed number that errs with δ."""
    fixed: tuple[list[float], list[float]] = ([float(norm.isf(delta)) ** 2], [])
    looks, thresholds = fixed if deadline == 1 else DESIGNS[delta, deadline, gap]
    unit = 2 * (SIGMA / EPSILON) ** 2
    pulls = tuple(math.ceil(look * unit) for look in looks)
    return calibrated(LookTest(pulls, tuple(thresholds), EPSILON, SIGMA), delta)


class RaceOfThree(NamedTuple):
    """Three Gaussian arms, two rounds: drop arms more than a behind the leader, then return the leader.

    Sums x_i of b pulls are in units of σ²/ε; their mean is μ_i J/ε and their variance J = ε²b/σ². `first` and
    `last` are J after each round, `threshold` is a.
    """

    first: float
    last: float
    threshold: float

    def play(self, means: tuple[float, float, float]) -> tuple[FloatArray, float]:
        """P(arm j is returned) and E[J_1 + J_2 + J_3], for means in units of ε.

        For each leader of round 1 and its leads s, t over the two others: quadrature over the four boxes
        where each lead is below or above a. Inside a box everything is smooth.
        """
        returned, cost = np.zeros(3), 3 * self.first
        for leader in range(3):
            order = [leader, (leader + 1) % 3, (leader + 2) % 3]
            mu = np.asarray(means, dtype=float)[order]
            for below in ((True, True), (True, False), (False, True), (False, False)):
                lead, mass = self._box(mu, below)
                alive = np.array([True, *below])
                shares = self._second(mu, lead, alive)
                returned[order] += (mass * shares).sum(axis=1)
                if any(below):
                    cost += alive.sum() * (self.last - self.first) * float(mass.sum())
        return returned, float(cost)

    def _box(self, mu: FloatArray, below: tuple[bool, bool]) -> tuple[FloatArray, FloatArray]:
        """Quadrature points (2 × points) in a box of leads, and the probability at each."""
        far = self.threshold + 8 * math.sqrt(2 * self.first) + 2 * float(np.ptp(mu)) * self.first
        ends = [(0.0, self.threshold) if low else (self.threshold, far) for low in below]
        axes = [quadrature(end, FEW) for end in ends]
        lead = np.array([grid.ravel() for grid in np.meshgrid(axes[0][0], axes[1][0], indexing="ij")])
        s, t = lead - (mu[0] - mu[1:])[:, None] * self.first
        density = np.exp(-(s * s - s * t + t * t) / (3 * self.first)) / (
            2 * math.pi * math.sqrt(3) * self.first
        )
        return lead, density * np.outer(axes[0][1], axes[1][1]).ravel()

    def _second(self, mu: FloatArray, lead: FloatArray, alive: BoolArray) -> FloatArray:
        """P(each arm leads after round 2 | leads of round 1), 3 × points; dropped arms never lead."""
        more = self.last - self.first
        start = np.vstack([np.zeros(lead.shape[1]), -lead]) + mu[:, None] * more
        start[~alive] = -np.inf
        shares = np.zeros_like(start)
        for arm in np.flatnonzero(alive):
            end = start[arm][:, None] + math.sqrt(more) * NORMAL
            others = [start[other][:, None] for other in range(3) if other != arm]
            ahead = [ndtr((end - other) / math.sqrt(more)) for other in others]
            shares[arm] = (ahead[0] * ahead[1]) @ CHANCES
        return shares
