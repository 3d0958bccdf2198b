"""An adversary inside the events of the proofs about the k best (notebook 14)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm, drive
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.confidence import fixed_count_deviation
from ebr.theory.divergence import bisected, relative_entropy
from ebr.theory.problems import Problem

ROUNDING = 1e-12


class Played(NamedTuple):
    """What a race did on an adversary's tables: the arms (tables × k), and each arm's pulls."""

    arms: IntArray
    arm_pulls: IntArray


def covered(algorithm: ElasticBatchRacing, problem: Problem, tables: int, seed: int) -> Played:
    """Race on tables of means inside E′: every mean within Hoeffding's D′ of its expectation.

    In half of the tables the k best have bad luck and the others good luck; else each arm has its own. Rounds
    need not fit together: the proof does not use that they do.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 141]))
    n_arms, shape = problem.n_arms, (tables, problem.n_arms)
    against = np.where(np.isin(np.arange(n_arms), problem.top(algorithm.k)), -1.0, 1.0)
    miss = algorithm.delta / (n_arms * algorithm.deadline)

    def means(pulled: int) -> FloatArray:
        signs = np.where(generator.random((tables, 1)) < 0.5, against, generator.choice([-1.0, 1.0], shape))
        luck = signs * np.where(generator.random(shape) < 0.8, 1.0, generator.random(shape))
        half_width = float(fixed_count_deviation(pulled, miss, algorithm.sigma)) - ROUNDING
        return np.asarray(problem.means + luck * half_width)

    return _driven(algorithm, problem, tables, means)


def inside(algorithm: SharpElasticBatchRacing, problem: Problem, tables: int, seed: int) -> Played:
    """Race on tables of means inside sharp EBR's event: μ̂_j − μ̂_i ≤ w − (μ_i − μ_j), i of the k best, j not.

    The k best are off by some luck; the others are at the limit that the unluckiest of them sets, or below.
    With the likelihood ratio, the two sides share what the event allows a pair.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 142]))
    told, n_arms = problem.rewards, problem.n_arms
    schedule, log_terms = algorithm.pulls_by_round(n_arms, told), algorithm.log_terms(n_arms, told)
    best = np.isin(np.arange(n_arms), problem.top(algorithm.k))

    def means(pulled: int) -> FloatArray:
        now = int(np.searchsorted(schedule, pulled))  # the round, from 0: the first with this count
        width, last = (float(algorithm.width(pulled, log_terms[t])) - ROUNDING for t in (now, -1))
        if algorithm.model(told) == "bounded" and now < len(schedule) - 1:
            level = log_terms[now] / pulled * (1 - 1e-9)  # at the limit itself rounding would decide
            table = _bounded_table(problem, best, level, generator, tables)
        else:
            table = _table(problem, best, width, generator, tables)
        if pulled == schedule[-1]:  # an earlier round may have b_T pulls: then round T's part holds here too
            least = np.where(best, table - problem.means, np.inf).min(axis=1, keepdims=True)
            table = np.where(best, table, np.minimum(table, problem.means + least + last))
        return np.asarray(table)

    return _driven(algorithm, problem, tables, means)


def _driven(
    algorithm: Algorithm, problem: Problem, tables: int, means: Callable[[int], FloatArray]
) -> Played:
    """Play a race whose means, after so many pulls, are what `means` says."""
    arm_pulls, sums = np.zeros((tables, problem.n_arms), dtype=np.int64), np.zeros((tables, problem.n_arms))

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal arm_pulls, sums
        arm_pulls += pulls
        pulled = int(arm_pulls.max())
        new = np.where(pulls > 0, means(pulled) * pulled - sums, 0)
        sums += new
        return np.asarray(new)

    arms = drive(algorithm.play(problem.n_arms, tables, rewards=problem.rewards), respond)
    return Played(arms.reshape(tables, -1), arm_pulls)


def _table(
    problem: Problem, best: BoolArray, width: float, generator: np.random.Generator, tables: int
) -> FloatArray:
    shape = (tables, problem.n_arms)
    common = generator.normal(0, width, (tables, 1))
    good = common + _places(generator, shape) * 2 * width  # the luck of the k best, most at its least
    least = np.where(best, good, np.inf).min(axis=1, keepdims=True)
    others = least + width * (1 - 3 * _places(generator, shape))
    return np.asarray(problem.means + np.where(best, good, others))


def _bounded_table(
    problem: Problem, best: BoolArray, level: float, generator: np.random.Generator, tables: int
) -> FloatArray:
    """Means in [0, 1] with kl⁻(μ̂_i, μ_i) + kl⁺(μ̂_j, μ_j) ≤ level for every pair."""
    share = generator.choice([0.0, 0.25, 0.5, 0.75, 1.0], (tables, 1))
    lowest, highest = (
        _kl_end(problem.means, level * part, side) for part, side in ((share, 0.0), (1 - share, 1.0))
    )
    place = _places(generator, lowest.shape)
    return np.asarray(np.where(best, lowest + place * (1 - lowest), highest * (1 - place)))


def _places(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Where in its range a mean lies: mostly at the end that misleads, or anywhere."""
    anywhere = generator.random(shape)
    return np.asarray(np.where(generator.random(shape) < 0.6, 0.0, anywhere))


def _kl_end(mean: FloatArray, level: FloatArray, side: float) -> FloatArray:
    """The end of {x : kl(x, μ) ≤ level} towards 0 or 1, from inside."""
    inner, outer = np.broadcast_arrays(mean + 0 * level, side)
    return bisected(inner, outer, lambda place: relative_entropy(place, mean) > level)[0]
