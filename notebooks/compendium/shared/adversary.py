"""The event E that every confidence interval covers its mean: how often it fails, and what E allows.

`audit` watches random races. `play_inside` lets an adversary choose every empirical mean within its interval,
so that a statement "on E, …" meets E's corners, which no random race would ever visit. `inside` plays all the
corners of E, or of the smaller event E′ that Hoeffding's narrower intervals μ̂ ± D′ cover at every count of
the schedule; it, too, has probability at least 1 − δ, since those counts are fixed in advance.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from compendium.shared.lineup import MakeElastic
from compendium.shared.problem_sets import hardest, nonempty_partitions
from ebr.algorithms.elastic import SCHEDULE_CONSTANT, ElasticBatchRacing
from ebr.algorithms.game import drive
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.simulation.simulate import blocks, race
from ebr.theory.confidence import SELF_NORMALISED
from ebr.theory.problems import Gaussian, Problem

SHAPES = ((2, 2), (2, 3), (2, 4), (3, 2), (3, 3))  # n and T; the last, with 3⁹ corners, for the first ε only
DELTA, SIGMA = 0.1, 0.5
EPSILONS = (0.1, 0.004, 1e-6)  # the small ones have gaps so much larger than η that E1 shows
WITHIN = 1 - 1e-9  # of an interval's half-width: inside, whatever the rounding


@dataclass(frozen=True, eq=False)
class Audit:
    """Of each run the pulls of each arm, the recommended arm, and whether E held (covered).

    Of each round and arm the `misses`: in how many runs the interval did not cover the mean.
    """

    arm_pulls: IntArray
    arm: IntArray
    covered: BoolArray
    misses: IntArray


def audit(algorithm: ElasticBatchRacing, problem: Problem, runs: int, seed: int = 0) -> Audit:
    """Race at random and look at every interval; an arm that is dropped keeps its last one."""
    schedule = algorithm.pulls_by_round(problem.n_arms)
    _, number = np.unique(schedule, return_inverse=True)  # some rounds may bring no new pull
    watched = [_watched(algorithm, problem, *block) for block in blocks(algorithm, problem, runs, seed)]
    arm_pulls, arm, covered, misses = zip(*watched, strict=True)
    # In rounds that nobody played an arm keeps its last interval.
    total = np.sum([seen[np.minimum(number, len(seen) - 1)] for seen in misses], axis=0)
    return Audit(np.concatenate(arm_pulls), np.concatenate(arm), np.concatenate(covered), total)


def _watched(
    algorithm: ElasticBatchRacing, problem: Problem, replicates: int, generator: np.random.Generator
) -> tuple[IntArray, IntArray, BoolArray, IntArray]:
    """What `Audit` has, of one block of races; the misses of the rounds that were played."""
    counts = np.zeros((replicates, problem.n_arms), dtype=np.int64)
    totals, held = np.zeros(counts.shape), np.ones(replicates, dtype=bool)
    misses: list[IntArray] = []

    def watch(asked: IntArray, sums: FloatArray) -> None:
        np.add(counts, asked, out=counts)
        np.add(totals, sums, out=totals)
        miss = np.abs(totals / counts - problem.means) > algorithm.deviation(counts, problem.n_arms)
        misses.append(miss.sum(axis=0))
        held[miss.any(axis=1)] = False

    arm = race(algorithm, problem, replicates, generator, watch)
    return counts, arm, held, np.array(misses)


class Round(NamedTuple):
    """One round of many races: S_t, and the arms kept after it (all of them after the last round)."""

    alive: BoolArray
    kept: BoolArray
    pulls: int
    means: FloatArray


@dataclass(frozen=True, eq=False)
class Played:
    """What the adversary made of an algorithm: the rounds, and each replicate's pulls of each arm and arm."""

    rounds: list[Round]
    arm_pulls: IntArray
    arm: IntArray


def corners(n_arms: int, rounds: int) -> FloatArray:
    """Every table of places −1, 0 or 1 (low end, middle, top of an interval), by round and arm."""
    places = np.array(list(product((-1.0, 0.0, 1.0), repeat=n_arms * rounds)))
    return places.reshape(-1, rounds, n_arms) * WITHIN


def play_inside(algorithm: ElasticBatchRacing, problem: Problem, places: FloatArray) -> Played:
    """Play with empirical means μ_i + place · D in every round: E holds where no place is beyond ±1.

    Any sums may be drawn from Gaussian arms, so every table is a possible one. The `places` are replicates ×
    rounds × arms; rounds in which the ceiling asks for no new pull are left out.
    """
    n_arms, replicates = problem.n_arms, len(places)
    counts = np.zeros((replicates, n_arms), dtype=np.int64)
    totals = np.zeros((replicates, n_arms))
    seen: list[tuple[BoolArray, int, FloatArray]] = []

    def respond(asked: IntArray) -> FloatArray:
        nonlocal counts, totals
        alive = asked > 0
        counts += asked
        pulled = int(counts.max())
        means = problem.means + places[:, len(seen)] * algorithm.deviation(pulled, n_arms)
        sums = np.where(alive, pulled * means - totals, 0.0)
        totals += sums
        seen.append((alive, pulled, means))
        return sums

    arm = drive(algorithm.play(n_arms, replicates), respond)
    # A race that stops early has one arm left; after the last round nothing shows who would be.
    alone = np.arange(n_arms) == arm[:, None]
    last = seen[-1][0] if seen[-1][1] == algorithm.pulls_by_round(n_arms)[-1] else seen[-1][0] & alone
    after = [alive for alive, _, _ in seen[1:]] + [last]
    rounds = [
        Round(alive, np.where(kept.any(axis=1, keepdims=True), kept, alive & alone), pulled, means)
        for (alive, pulled, means), kept in zip(seen, after, strict=True)
    ]
    return Played(rounds, counts, arm)


class Case(NamedTuple):
    """A problem, the algorithm, and what the adversary made of it in every corner."""

    problem: Gaussian
    algorithm: ElasticBatchRacing
    played: Played


def staircase(epsilon: float, deadline: int) -> Gaussian:
    """Three arms: the second just less than η = ε/T below the first, the third not ε-optimal (T = 2 or 3)."""
    return Gaussian(0.8 - epsilon * np.array([0, (1 - 1e-6) / deadline, 1 + 1e-9]), SIGMA)


def brink(epsilon: float) -> Gaussian:
    """Two arms that round 1 of T = 2 leaves with 86σ² log(nT/δ)/Δ² pulls, just short of what E needs."""
    return Gaussian(np.array([0.5, 0.5 - math.sqrt(epsilon * 86 / SCHEDULE_CONSTANT)]), SIGMA)


def fixed_count_ratio(n_arms: int, deadline: int, delta: float) -> float:
    """Hoeffding's deviation at p = δ/(nT) over the paper's: √((L + log 2) / ((2 + log 2) L)), L = log(nT/δ).

    At most 1/√2 where L ≥ 2, and below 1 for every n ≥ 2, T ≥ 1 and δ < 1.
    """
    log_term = math.log(n_arms * deadline / delta)
    return math.sqrt(2 * (log_term + math.log(2)) / (SELF_NORMALISED * log_term))


def inside(narrow: bool = False, make: MakeElastic = ElasticBatchRacing) -> list[Case]:
    """Every corner of E (or, narrow, of E′) on the hardest problem of each non-empty P_γ and others."""
    cases = []
    for epsilon in EPSILONS:
        for n_arms, deadline in SHAPES[: None if epsilon == EPSILONS[0] else -1]:
            problems = [hardest(g, epsilon, deadline, SIGMA) for g in nonempty_partitions(n_arms, deadline)]
            problems += [staircase(epsilon, deadline)] * (n_arms == 3)
            problems += [brink(epsilon)] * ((n_arms, deadline) == (2, 2))
            places = corners(n_arms, deadline)
            places *= fixed_count_ratio(n_arms, deadline, DELTA) if narrow else 1.0
            algorithm = make(deadline, epsilon, DELTA, SIGMA)
            cases += [
                Case(problem, algorithm, play_inside(algorithm, problem, places)) for problem in problems
            ]
    return cases


def tables(cases: list[Case]) -> int:
    """How many tables the adversary has played."""
    return sum(len(case.played.arm) for case in cases)


def wrong_arms(cases: list[Case]) -> int:
    """In how many tables an arm is recommended that is not ε-optimal."""
    return sum(int((~c.problem.is_good(c.played.arm, c.algorithm.epsilon)).sum()) for c in cases)
