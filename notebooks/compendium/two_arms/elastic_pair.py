"""Two Gaussian arms and at most four rounds: a policy that nearly pays the least on its worst problem."""

from dataclasses import dataclass

import numpy as np

from compendium.two_arms.two_arms_grid import REACH
from compendium.two_arms.two_arms_solutions import strategy
from ebr.algorithms.game import Algorithm, Game, Known, Rng
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.validation import check_fields, count


@dataclass(frozen=True)
class ElasticPair(Algorithm):
    """Two arms, T ≤ 4: the size of the next round is drawn from a law that depends on what was seen.

    Both arms are pulled equally often. After n pulls of each, D is the difference of the sums, τ = nε²/2σ²
    and z = |D|/√(2nσ²). The law of the next τ given the round, τ and z is that of `two_arms_policies`. At the
    (T, ε, δ) of `two_arms_solutions` its worst E[Ñ_T]/H over all gaps is computed to be within 3 % of the
    least of all policies, whole numbers of pulls aside. At other ε ≥ 0.001 and δ ≥ 0.001 the policy for the
    next smaller ones is played, which is (ε, δ)-PAC as well.

    Parameters
    ----------
    deadline
        T, the number of rounds at most, from 1 to 4.
    epsilon, delta
        The recommended arm is within ε of the best with probability at least 1 − δ.
    sigma
        The rewards are N(μ, σ²). For others, σ-sub-Gaussian ones too, there is no guarantee.

    Notes
    -----
    The policy's counts are real numbers. So n is rounded up, at least one pull a round, and D *at* the real
    count is drawn from its law given the known D, a Brownian bridge: a policy may ignore some of its pulls.
    The sign of D with all pulls decides, and errs no more often than with fewer.
    """

    deadline: int
    epsilon: float
    delta: float
    sigma: float = 0.5

    def __post_init__(self) -> None:
        check_fields(self)

    def model(self, told: Known) -> str:
        """Gaussian, whatever it is told."""
        return "Gaussian"

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Pull both arms equally often, in rounds whose sizes depend on what was seen."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        lots = generator or np.random.default_rng()
        information, plan = strategy(self.deadline, self.epsilon, self.delta)
        counts = 2 * (self.sigma / self.epsilon) ** 2 * information
        count(counts.max(), n_arms)
        walk = _Paths(replicates, self.sigma)
        place = lots.choice(len(counts), size=replicates, p=plan.first)
        running = np.ones(replicates, dtype=bool)
        for number in range(self.deadline):
            pulls = walk.pulls(counts[place], running)
            sums = yield np.column_stack([pulls, pulls])
            walk.add(pulls, sums[:, 0] - sums[:, 1])
            if number == self.deadline - 1:
                break
            lead = walk.reveal(counts[place], running, lots)
            lag = _next(plan.rounds[number], place, lead, running, lots.random(replicates))
            place, running = place + lag, running & (lag > 0)
            if not running.any():
                break
        return np.asarray(walk.difference < 0, dtype=np.int64)


def _next(
    chances: FloatArray, place: IntArray, lead: FloatArray, running: BoolArray, lots: FloatArray
) -> IntArray:
    """How many steps of the grid to go on, drawn for each replicate; 0 stops, and so does z beyond REACH."""
    going = np.flatnonzero(running & (lead < REACH))
    lag = np.zeros(len(place), dtype=np.int64)
    cell = (lead[going] / REACH * chances.shape[2]).astype(np.int64)
    for start in range(0, len(going), 4096):  # one law per replicate: too much memory for all at once
        part = slice(start, start + 4096)
        laws = chances[place[going[part]], :, cell[part]].cumsum(axis=1)
        lag[going[part]] = (laws < lots[going[part], None] * laws[:, -1:]).sum(axis=1)
    return lag


class _Paths:
    """The difference of the sums in each replicate: as it is, and at the policy's real counts."""

    def __init__(self, replicates: int, sigma: float) -> None:
        self.variance = 2 * sigma**2  # of the difference, a pull of each
        self.pulled, self.difference = np.zeros(replicates, dtype=np.int64), np.zeros(replicates)
        self.earlier, self.before = self.pulled, self.difference  # a round ago
        self.time, self.value = np.zeros(replicates), np.zeros(replicates)  # at the last real count

    def pulls(self, counts: FloatArray, running: BoolArray) -> IntArray:
        """Up to the real counts, and at least one."""
        return np.asarray(np.maximum(np.ceil(counts).astype(np.int64) - self.pulled, 1) * running)

    def add(self, pulls: IntArray, difference: FloatArray) -> None:
        """Take in a round."""
        self.earlier, self.before = self.pulled, self.difference
        self.pulled, self.difference = self.pulled + pulls, self.difference + difference

    def reveal(self, counts: FloatArray, running: BoolArray, lots: np.random.Generator) -> FloatArray:
        """Draw D at the real counts, given D before and after it; return z there."""
        late = counts >= self.earlier  # else it lies before the pulls known a round ago
        left, low = np.where(late, self.earlier, self.time), np.where(late, self.before, self.value)
        right, high = np.where(late, self.pulled, self.earlier), np.where(late, self.difference, self.before)
        share = (counts - left) / np.where(right > left, right - left, 1)
        noise = np.sqrt(np.maximum(self.variance * share * (right - counts), 0)) * lots.standard_normal(
            len(counts)
        )
        self.time, self.value = counts, low + share * (high - low) + noise
        return np.asarray(np.abs(self.value) / np.sqrt(self.variance * counts))
