"""The event E that every confidence interval covers its mean: how often it fails, and what E allows.

`audit` watches random races. `play_inside` lets an adversary choose every empirical mean within its interval,
so that a statement "on E, …" meets E's corners, which no random race would ever visit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.simulation.simulate import Rounds, blocks
from ebr.theory.problems import Problem

__all__ = ["Audit", "Played", "Round", "audit", "corners", "play_inside"]


@dataclass(frozen=True, eq=False)
class Audit:
    """What happened in each run, and to each interval.

    Attributes
    ----------
    arm_pulls, arm, covered
        Of each run: the pulls of each arm, the recommended arm, and whether E held.
    misses
        Of each round and arm: in how many runs the interval did not cover the mean.
    """

    arm_pulls: IntArray
    arm: IntArray
    covered: BoolArray
    misses: IntArray


def audit(algorithm: ElasticBatchRacing, problem: Problem, runs: int, seed: int = 0) -> Audit:
    """Race at random and look at every interval; an arm that is dropped keeps its last one."""
    schedule = algorithm.pulls_by_round(problem.n_arms)
    counted, played = np.unique(schedule, return_inverse=True)  # some rounds may bring no new pull
    misses = np.zeros((len(counted), problem.n_arms), dtype=np.int64)
    arm_pulls: list[IntArray] = []
    covered: list[BoolArray] = []
    arm: list[IntArray] = []
    for replicates, race in blocks(algorithm, problem, runs, seed):
        counts = np.zeros((replicates, problem.n_arms), dtype=np.int64)
        totals = np.zeros((replicates, problem.n_arms))
        held = np.ones(replicates, dtype=bool)
        for number, (asked, sums) in enumerate(_kept_result(race, arm)):
            counts += asked
            totals += sums
            miss = np.abs(totals / counts - problem.means) > algorithm.deviation(counts, problem.n_arms)
            misses[number] += miss.sum(axis=0)
            held &= ~miss.any(axis=1)
        misses[number + 1 :] += miss.sum(axis=0)  # rounds that nobody played
        arm_pulls.append(counts)
        covered.append(held)
    return Audit(np.concatenate(arm_pulls), np.concatenate(arm), np.concatenate(covered), misses[played])


def _kept_result(race: Rounds, results: list[IntArray]) -> Iterator[tuple[IntArray, FloatArray]]:
    """The same rounds; what the race returns after them is added to the list."""
    results.append((yield from race))


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
    return places.reshape(-1, rounds, n_arms) * (1 - 1e-9)  # inside, whatever the rounding


def play_inside(algorithm: ElasticBatchRacing, problem: Problem, places: FloatArray) -> Played:
    """Play with empirical means μ_i + place · D in every round: E holds where no place is beyond ±1.

    Parameters
    ----------
    algorithm, problem
        Any sums may be drawn from Gaussian arms, so every table is a possible one.
    places
        Replicates × rounds × arms; rounds in which the ceiling asks for no new pull are left out.
    """
    n_arms, replicates = problem.n_arms, len(places)
    game = algorithm.play(n_arms, replicates)
    asked = next(game)
    counts = np.zeros((replicates, n_arms), dtype=np.int64)
    totals = np.zeros((replicates, n_arms))
    seen: list[tuple[BoolArray, int, FloatArray]] = []
    while True:
        alive = asked > 0
        counts += asked
        pulled = int(counts.max())
        means = problem.means + places[:, len(seen)] * algorithm.deviation(pulled, n_arms)
        sums = np.where(alive, pulled * means - totals, 0.0)
        totals += sums
        seen.append((alive, pulled, means))
        try:
            asked = game.send(sums)
        except StopIteration as end:
            arm: IntArray = end.value
            break
    # A race that stops early has one arm left; after the last round nothing shows who would be.
    alone = np.arange(n_arms) == arm[:, None]
    last = seen[-1][0] if seen[-1][1] == algorithm.pulls_by_round(n_arms)[-1] else seen[-1][0] & alone
    after = [alive for alive, _, _ in seen[1:]] + [last]
    rounds = [
        Round(alive, np.where(kept.any(axis=1, keepdims=True), kept, alive & alone), pulled, means)
        for (alive, pulled, means), kept in zip(seen, after, strict=True)
    ]
    return Played(rounds, counts, arm)
