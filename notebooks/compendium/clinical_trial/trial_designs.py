"""What trialists would use: the exact fixed design, stages with repeated intervals, elimination.

Each is an algorithm as `ebr.simulate` plays it, for rewards that are 0 or 1; stages and dropping the losers
plan with the normal limit. An error is the same as in a race: a choice worse than the best by ε or more.
"""

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from compendium.clinical_trial.exact_selection import binomial_count
from compendium.shared.distributions import norm
from ebr.algorithms.game import Algorithm, Game, Known, Rng
from ebr.arrays import FloatArray, IntArray
from ebr.validation import check_fields, positive

SIGMA = 0.5  # of a response, at most: what the normal approximations plan with
POINTS = 20_000  # of the lattice by which Genz's method integrates the normal density: errors of about 1e-4
DRAW = 1  # the lattice's random shift


@dataclass(frozen=True)
class ExactFixedDesign(Algorithm):
    """Bechhofer's indifference-zone selection for response rates: all at once, as few as δ allows.

    Every arm gets so many subjects that the exact binomial probability of an error is at most δ for all
    response rates; the arm with the most responses is chosen, ties by lot. (Bechhofer, Ann. Math.
    Stat. 1954; Sobel and Huyett, Bell Syst. Tech. J. 1957.)
    """

    epsilon: float
    delta: float
    sigma = SIGMA
    deadline = 1

    def __post_init__(self) -> None:
        check_fields(self)

    def subjects(self, n_arms: int) -> int:
        """How many each arm gets."""
        return binomial_count(n_arms, self.epsilon, self.delta)

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Pull every arm equally often, once."""
        sums = yield np.full((replicates, n_arms), self.subjects(n_arms))
        return np.asarray(_ties_by_lot(sums, generator).argmax(axis=1))


def keeps_the_best(n_arms: int, critical: FloatArray, times: FloatArray) -> float:
    """P(no other arm's standardised lead over the best ever exceeds c_t), all arms alike.

    `times` are b_t / b_T. By Dunnett's argument leads over the same arm correlate by ½, and those of looks
    s < t by √(b_s/b_t): a normal probability in (n−1)T dimensions.
    """
    looks = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    arms = (np.ones((n_arms - 1, n_arms - 1)) + np.eye(n_arms - 1)) / 2
    return _normal_cdf(np.tile(critical, n_arms - 1), np.asarray(np.kron(arms, looks), dtype=np.float64))


def _normal_cdf(upper: FloatArray, covariance: FloatArray) -> float:
    """P(Z ≤ upper): Genz's lattice, always with the same shift."""
    if len(upper) == 1:
        return float(norm.cdf(upper[0]))
    from scipy.stats import multivariate_normal  # slow to import

    return float(multivariate_normal.cdf(upper, cov=covariance, maxpts=POINTS, abseps=1e-5, rng=DRAW))


@cache
def critical_value(n_arms: int, times: tuple[float, ...], delta: float, shape: float) -> float:
    """C such that with c_t = C (b_t/b_T)^{Δ−½} the best arm is kept with probability 1 − δ."""
    looks = np.array(times)
    powers = looks ** (shape - 0.5)
    return float(
        brentq(lambda c: keeps_the_best(n_arms, c * powers, looks) - (1 - delta), 0.1, 10, xtol=1e-4)
    )


def beside_rpact() -> pd.DataFrame:
    """Boundaries of two arms at six looks, error 0.05, and rpact's, from a run of rpact-boundaries.R."""
    table = pd.read_csv(Path(__file__).with_name("rpact-boundaries.csv"), comment="#")
    times = {"equal": np.arange(1, 7) / 6, "growing": 1.6 ** (np.arange(1, 7) - 6.0)}
    rows = []
    for row in table[table["t"] == 6].to_dict("records"):  # the constant is the last boundary
        shape, looks = float(row["shape"]), str(row["looks"])
        constant = critical_value(2, tuple(times[looks].tolist()), 0.05, max(shape, 1e-9))
        rows.append({"looks": looks, "shape": shape, "ours": constant, "rpact": row["critical"]})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class StagedIntervals(Algorithm):
    """A multi-arm multi-stage design: T looks, equally far apart, at repeated intervals for all differences.

    At look t a difference of two rates is known to within c_t standard errors, c_t = C (t/T)^{Δ−½}. An arm
    is dropped if it is more than that behind the leader; the trial ends when nobody can be better than the
    leader by ε, or at T, where 2σ²C²/ε² subjects of each arm make the interval as narrow as ε at σ = ½. C is
    such that in the normal limit, with probability 1 − δ, no other arm's lead over the best exceeds its
    expectation by c_t standard errors at any look. (Wang and Tsiatis, Biometrics 1987, for the shape;
    Jennison and Turnbull, J. R. Stat. Soc. B 1989, for repeated intervals; Magirr, Jaki and Whitehead,
    Biometrika 2012, for several arms and stages.)

    Parameters
    ----------
    shape
        Δ: nearly 0 for O'Brien and Fleming's boundary, ½ for Pocock's.
    """

    deadline: int
    epsilon: float
    delta: float
    shape: float = 0.25
    sigma = SIGMA

    def __post_init__(self) -> None:
        check_fields(self, shape=positive)

    def critical(self, n_arms: int) -> FloatArray:
        """c_t, in standard errors."""
        times = self.times()
        constant = critical_value(n_arms, tuple(times.tolist()), self.delta, self.shape)
        return np.asarray(constant * times ** (self.shape - 0.5))

    def looks(self, n_arms: int) -> IntArray:
        """Subjects of a surviving arm, all told, at each look."""
        most = 2 * (SIGMA * self.critical(n_arms)[-1] / self.epsilon) ** 2
        return np.asarray(np.ceil(most * self.times()), dtype=np.int64)

    def times(self) -> FloatArray:
        """b_t / b_T."""
        return np.arange(1, self.deadline + 1) / self.deadline

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Look T times at most."""
        sums, alive = np.zeros((replicates, n_arms)), np.ones((replicates, n_arms), dtype=bool)
        running, pulled = np.ones((replicates, 1), dtype=bool), 0
        for critical, target in zip(self.critical(n_arms), self.looks(n_arms), strict=True):
            sums += yield alive * running * (target - pulled)
            pulled = int(target)
            leader = np.where(alive, sums, -np.inf).argmax(axis=1)[:, None]
            behind = (np.take_along_axis(sums, leader, 1) - sums) / pulled
            reach = critical * _standard_errors(sums, leader, pulled)
            others = alive & (np.arange(n_arms) != leader)
            going_on = (others & (behind < reach - self.epsilon)).any(axis=1, keepdims=True)
            alive &= ~(running & others & (behind > reach))
            running &= going_on
            if not running.any():
                break
        return np.asarray(np.where(alive, sums, -np.inf).argmax(axis=1))


@dataclass(frozen=True)
class GeometricIntervals(StagedIntervals):
    """`StagedIntervals` whose looks grow by a ratio: the first comes earlier, as in a race.

    Parameters
    ----------
    ratio
        b_{t+1} / b_t.
    """

    ratio: float = 1.6

    def __post_init__(self) -> None:
        check_fields(self, shape=positive, ratio=positive)

    def times(self) -> FloatArray:
        """b_t / b_T."""
        return np.asarray(self.ratio ** (np.arange(1, self.deadline + 1) - float(self.deadline)))


@dataclass(frozen=True)
class SequentialElimination(Algorithm):
    """Levin and Robbins' elimination: one subject of each arm at a time, out who is r responses behind.

    With odds w_i = p_i / (1 − p_i) the best arm wins with probability w_1^r / Σ_i w_i^r at least. (Levin and
    Robbins, Proc. Natl. Acad. Sci. 1981, conjectured it; Leu and Levin, Stat. Sinica 1999, proved it.)
    The odds of two rates that differ by ε have the least ratio θ around ½. So with the least r for which
    1 / (1 + (n−1) θ^{−r}) is at least 1 − δ the best wins wherever all others are ε worse or more. There is
    no deadline: every subject is a look.
    """

    epsilon: float
    delta: float
    sigma = SIGMA
    deadline = None
    needs_gap: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def behind(self, n_arms: int) -> int:
        """r, by how many responses an arm is behind the leader when it leaves."""
        log_ratio = 2 * math.log((1 + self.epsilon) / (1 - self.epsilon))
        return max(math.ceil(math.log((n_arms - 1) * (1 - self.delta) / self.delta) / log_ratio), 1)

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Pull survivors until one is left.

        The last survivor is s behind: r − s subjects later, not sooner, an arm may leave. So many are asked
        for at once, and the trial is the one in which they come one by one.
        """
        sums, alive = np.zeros((replicates, n_arms)), np.ones((replicates, n_arms), dtype=bool)
        most = self.behind(n_arms)
        while (alive.sum(axis=1) > 1).any():
            behind = np.where(alive, sums.max(axis=1, keepdims=True) - sums, 0)
            wait = (most - behind.max(axis=1)) * (alive.sum(axis=1) > 1)
            sums += yield alive * wait.astype(np.int64)[:, None]
            alive &= sums > sums.max(axis=1, keepdims=True) - most
        return np.asarray(alive.argmax(axis=1))


@dataclass(frozen=True)
class DropTheLosers(Algorithm):
    """n − 1 stages of equally many subjects an arm; after each, the arm with the fewest responses leaves.

    The number is that at which, in the normal limit at σ = ½, the best arm wins with probability 1 − δ where
    all others are ε worse: (n−1)! times the probability of one order of leaving, a normal probability in
    n(n−1)/2 dimensions. (Thall, Simon and Ellenberg, Biometrika 1988, for two stages; Wason, Stallard, Bowden
    and Jennison, Stat. Methods Med. Res. 2017, for several. With other stages: Successive Rejects.)
    """

    epsilon: float
    delta: float
    sigma = SIGMA
    deadline = None  # its rounds are the number of arms less one

    def __post_init__(self) -> None:
        check_fields(self)

    def subjects(self, n_arms: int) -> int:
        """How many each remaining arm gets in a stage."""
        return _stage_subjects(n_arms, self.epsilon, self.delta)

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Drop an arm a stage."""
        sums, alive = np.zeros((replicates, n_arms)), np.ones((replicates, n_arms), dtype=bool)
        for _ in range(n_arms - 1):
            sums += yield alive * self.subjects(n_arms)
            last = np.where(alive, _ties_by_lot(sums, generator), np.inf).argmin(axis=1)
            alive[np.arange(replicates), last] = False
        return np.asarray(alive.argmax(axis=1))


@cache
def _stage_subjects(n_arms: int, epsilon: float, delta: float) -> int:
    """Of `DropTheLosers`."""
    contrasts, shifts = [], []
    for stage in range(1, n_arms):
        loser = n_arms - stage  # arm 0 is the best; the last arm leaves first
        for winner in range(loser):
            contrast = np.zeros((n_arms, n_arms - 1))
            contrast[winner, :stage], contrast[loser, :stage] = 1, -1
            contrasts.append(contrast.ravel() / math.sqrt(2 * stage))
            shifts.append(math.sqrt(stage / 2) * (winner == 0))
    covariance = np.array(contrasts) @ np.array(contrasts).T
    orders = math.factorial(n_arms - 1)
    effect = brentq(
        lambda x: orders * _normal_cdf(x * np.array(shifts), covariance) - (1 - delta), 0.01, 10, xtol=1e-4
    )
    return math.ceil((SIGMA * effect / epsilon) ** 2)


def _ties_by_lot(sums: FloatArray, generator: Rng) -> FloatArray:
    """Counts of responses, with less than one added to each at random."""
    return np.asarray(sums + (generator or np.random.default_rng()).random(sums.shape) / 2)


def _standard_errors(sums: FloatArray, leader: IntArray, pulled: int) -> FloatArray:
    """Of each arm's difference from the leader.

    One response and one failure more of each arm keep the errors of extreme rates above zero.
    """
    rate = (sums + 1) / (pulled + 2)
    variance = rate * (1 - rate) / pulled
    return np.asarray(np.sqrt(variance + np.take_along_axis(variance, leader, 1)))
