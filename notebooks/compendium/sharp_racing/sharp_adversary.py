"""An adversary inside the event of sharp EBR's proofs, for the best arm (notebook 09) and the k best (14)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ebr.algorithms.game import Algorithm, drive
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.divergence import bisected, relative_entropy
from ebr.theory.problems import Problem

SHARES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])  # shares of the level that the bad luck of the k best uses
ROUNDING = 1e-12


class Played(NamedTuple):
    """What a race did on an adversary's tables: the arms (tables × k), and each arm's pulls."""

    arms: IntArray
    arm_pulls: IntArray


def inside(algorithm: SharpElasticBatchRacing, problem: Problem, tables: int, seed: int) -> Played:
    """Race on tables of means inside the event: μ̂_j − μ̂_i ≤ w − (μ_i − μ_j), i of the k best, j not.

    The k best deviate at random; the others are at the limit that the unluckiest of these sets, or below.
    With the likelihood ratio, the two sides of a pair share what the event allows. Rounds need not be
    consistent with each other: the proofs do not use that they are.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 142]))
    told, n_arms = problem.rewards, problem.n_arms
    schedule, log_terms = algorithm.pulls_by_round(n_arms, told), algorithm.log_terms(n_arms, told)
    best = np.isin(np.arange(n_arms), problem.top(algorithm.k))
    bounded = algorithm.model(told) == "bounded"
    # At the limit itself rounding would decide.
    ends = _bounded_ends(problem.means, best, log_terms / schedule * (1 - 1e-9)) if bounded else None

    def means(pulled: int) -> FloatArray:
        now = int(np.searchsorted(schedule, pulled))  # the round, from 0: the first with this count
        width, last = (float(algorithm.width(pulled, log_terms[t])) - ROUNDING for t in (now, -1))
        if ends is not None and now < len(schedule) - 1:
            end = ends[now][generator.integers(len(SHARES), size=tables)]
            place = _places(generator, end.shape)
            table = np.where(best, end + place * (1 - end), end * (1 - place))
        else:
            table = _table(problem, best, width, generator, tables)
        if pulled == schedule[-1]:  # an earlier round may have b_T pulls: then round T's part holds here too
            least = np.where(best, table - problem.means, np.inf).min(axis=1, keepdims=True)
            table = np.where(best, table, np.minimum(table, problem.means + least + last))
        return np.asarray(table)

    return driven(algorithm, problem, tables, means)


def driven(algorithm: Algorithm, problem: Problem, tables: int, means: Callable[[int], FloatArray]) -> Played:
    """Play a race whose means, after b pulls of each arm, are `means(b)`."""
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
    shape, scale = (tables, problem.n_arms), abs(width)  # a width of 0 is less than that by rounding
    common = generator.normal(0, scale, (tables, 1))
    good = common + _places(generator, shape) * 2 * scale  # the luck of the k best, most at its least
    least = np.where(best, good, np.inf).min(axis=1, keepdims=True)
    others = least + width - 3 * scale * _places(generator, shape)
    return np.asarray(problem.means + np.where(best, good, others))


def _bounded_ends(means: FloatArray, best: BoolArray, levels: FloatArray) -> FloatArray:
    """How low the k best means and how high the other means may be (rounds × shares × arms).

    kl⁻(μ̂_i, μ_i) + kl⁺(μ̂_j, μ_j) ≤ level for every pair; the ends of {x : kl(x, μ) ≤ level}, from inside.
    """
    part = np.where(best, SHARES[:, None], 1 - SHARES[:, None])
    level = levels[:, None, None] * part
    inner, outer = np.broadcast_arrays(means + 0 * level, np.where(best, 0.0, 1.0))
    return bisected(inner, outer, lambda place: relative_entropy(place, means) > level)[0]


def _places(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Where in its range a mean lies: mostly at the end that misleads, or anywhere."""
    anywhere = generator.random(shape)
    return np.asarray(np.where(generator.random(shape) < 0.6, 0.0, anywhere))
