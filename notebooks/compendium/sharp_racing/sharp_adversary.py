"""An adversary inside the event of sharp EBR's proofs (notebook 09)."""

from typing import NamedTuple

import numpy as np

from ebr.algorithms.game import drive
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import FloatArray, IntArray
from ebr.theory.divergence import bisected, relative_entropy
from ebr.theory.problems import Problem

SHARES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])  # of the level, that the best arm's bad luck takes


class Played(NamedTuple):
    """What a race did on tables of means that lie inside the event: the arms, and each arm's pulls."""

    arm: IntArray
    arm_pulls: IntArray


def inside(algorithm: SharpElasticBatchRacing, problem: Problem, tables: int, seed: int) -> Played:
    """Race on an adversary's tables of means, each inside the event of notebook 09.

    The event bounds how far an arm's mean may lead over the best arm's: in a table the best arm's mean is its
    expectation or somewhat off, and each other's is at its limit or anywhere below. Rounds need not fit
    together: the proofs do not use that they do.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 93]))
    told, n_arms = problem.rewards, problem.n_arms
    schedule, log_terms = algorithm.pulls_by_round(n_arms, told), algorithm.log_terms(n_arms, told)
    bounded = algorithm.model(told) == "bounded"
    ends = _bounded_ends(problem, log_terms / schedule) if bounded else None
    arm_pulls, sums = np.zeros((tables, n_arms), dtype=np.int64), np.zeros((tables, n_arms))

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal arm_pulls, sums
        arm_pulls += pulls
        pulled = int(arm_pulls.max())
        now = int(np.searchsorted(schedule, pulled))  # the round, from 0: the first with this count
        if ends is not None and now < len(schedule) - 1:
            means = _bounded_table(problem, ends[now], generator, tables)
        else:
            means = _table(problem, float(algorithm.width(pulled, log_terms[now])), generator, tables)
        if pulled == schedule[-1]:  # an earlier round may have b_T pulls: then round T's part holds here too
            limits = _limits(problem, float(algorithm.width(pulled, log_terms[-1])))
            means = np.minimum(means, means[:, [problem.best]] + limits)
        new = np.where(pulls > 0, means * pulled - sums, 0)
        sums += new
        return np.asarray(new)

    return Played(drive(algorithm.play(n_arms, tables, rewards=told), respond), arm_pulls)


def _limits(problem: Problem, width: float) -> FloatArray:
    """How far each arm's mean may lead over the best arm's, w − Δ_i, less what rounding might add."""
    limits: FloatArray = width - (problem.means.max() - problem.means) - 1e-12
    limits[problem.best] = 0
    return limits


def _table(problem: Problem, width: float, generator: np.random.Generator, tables: int) -> FloatArray:
    """Means with μ̂_i − μ̂_1 ≤ w − Δ_i."""
    limits = _limits(problem, width)
    lead = limits - _places(generator, (tables, problem.n_arms)) * (3 * width - limits)
    lead[:, problem.best] = 0
    return np.asarray(problem.means.max() + generator.normal(0, width, (tables, 1)) + lead)


def _bounded_ends(problem: Problem, levels: FloatArray) -> FloatArray:
    """How low the best arm's mean and how high the others' may be, for every round and share of its level."""
    level = levels[:, None, None]
    highest = _kl_end(problem.means, level * (1 - SHARES[:, None]), 1.0)
    highest[..., [problem.best]] = _kl_end(problem.means.max(), level * SHARES[:, None], 0.0)
    return highest


def _bounded_table(
    problem: Problem, ends: FloatArray, generator: np.random.Generator, tables: int
) -> FloatArray:
    """Means in [0, 1] with kl⁻(μ̂_1, μ_1) + kl⁺(μ̂_i, μ_i) ≤ level for every i."""
    share = generator.integers(len(SHARES), size=tables)
    below = _places(generator, (tables, problem.n_arms))
    below[:, problem.best] = 0
    return np.asarray(ends[share] * (1 - below))


def _places(generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Where in its range a mean lies: mostly at the upper end, or anywhere."""
    anywhere = generator.random(shape)
    return np.asarray(np.where(generator.random(shape) < 0.6, 0.0, anywhere))


def _kl_end(mean: FloatArray | float, level: FloatArray, side: float) -> FloatArray:
    """The end of {x : kl(x, μ) ≤ level} towards 0 or 1, from inside."""
    inner, outer = np.broadcast_arrays(np.asarray(mean, dtype=np.float64) + 0 * level, side)
    return bisected(inner, outer, lambda place: relative_entropy(place, mean) > level)[0]
