"""Error of an elimination plan on a given problem: exact for few arms, and the ranking bound."""

from functools import cache
from itertools import combinations, permutations

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr
from scipy.stats import binom, norm

from compendium.budget_and_deadline.budgets import Plan
from ebr.arrays import FloatArray
from ebr.theory.problems import Bernoulli, Gaussian, Problem

REACH, STEP = 12.0, 0.1  # of the integral over the best arm's mean, in standard deviations
NEGLIGIBLE = 1e-40  # a probability of the best arm's sum that no tail can feel
LOTS = 8  # nodes of the integral over the best arm's lot


def ranking_bound(problem: Problem, plan: Plan) -> float:
    """Σ_t P(the best arm is not among the m_{t+1} best of all n, at c_t rewards each); exact where T = 1.

    A best arm that is dropped in round t is behind m_{t+1} survivors, hence behind m_{t+1} of all arms.
    """
    rounds = zip(plan.pulled, plan.kept, plan.ranked_by, strict=True)
    tails = [ranking_tails(problem, count, kept)[-1] for pulled, kept, count in rounds if kept < pulled]
    return float(min(1.0, sum(tails)))


def ranking_tails(problem: Problem, count: int, most: int | None = None) -> FloatArray:
    """P(m or more arms are ahead of the best one after so many rewards of each), m = 1 … most (or n − 1).

    Given the best arm's sum (and its lot, by which ties are broken) the others are ahead independently of
    each other. Bernoulli or Gaussian arms, of which one is the best.
    """
    others = np.delete(problem.means, problem.best)
    if isinstance(problem, Gaussian):
        noise = np.arange(-REACH, REACH + STEP / 2, STEP)
        weight = STEP * norm.pdf(noise)
        sum_of_best = problem.means.max() + problem.sigma * noise / np.sqrt(count)
        ahead = ndtr(-(sum_of_best - others[:, None]) * np.sqrt(count) / problem.sigma)
    else:
        nodes, lots = leggauss(LOTS)
        total = np.arange(count + 1)
        total = total[binom.pmf(total, count, problem.means.max()) > NEGLIGIBLE]
        weight = np.outer(binom.pmf(total, count, problem.means.max()), lots / 2).ravel()
        tied = np.asarray(binom.pmf(total, count, others[:, None]))[:, :, None] * (nodes + 1) / 2
        better = np.asarray(binom.sf(total, count, others[:, None]))[:, :, None]
        ahead = (better + tied).reshape(len(others), -1)
    return np.asarray((_at_least(ahead, most or len(others)) * weight).sum(axis=1))


def _at_least(probabilities: FloatArray, most: int) -> FloatArray:
    """P(m or more of independent events happen), m = 1 … most (rows); one column for each case."""
    tails = np.vstack([np.ones(probabilities.shape[1]), np.zeros((most, probabilities.shape[1]))])
    for number, probability in enumerate(probabilities, start=1):
        last = min(number, most)
        tails[1 : last + 1] += probability * (tails[:last] - tails[1 : last + 1])
    return tails[1:]


def exact_error(problem: Bernoulli, plan: Plan) -> float:
    """P(the arm returned is not the best) for a few Bernoulli arms, by enumeration of all sums.

    Ties are broken by an order of the arms drawn at random once for each game.
    """
    orders = list(permutations(range(problem.n_arms)))
    start = np.ones((1,) * problem.n_arms)
    return float(np.mean([_error(problem, plan, order, start, 0) for order in orders]))


def _error(problem: Bernoulli, plan: Plan, arms: tuple[int, ...], before: FloatArray, number: int) -> float:
    """P(these arms survive so many rounds and an error follows); before: their sums' law, not normalised."""
    if number == len(plan.kept):
        return 0.0
    likely = before
    for axis, arm in enumerate(arms):
        likely = _more_pulls(likely, axis, plan.new[number], problem.means[arm])
    kept, error = plan.kept[number], 0.0
    ranks = _ranks(likely.shape)
    for chosen in combinations(range(len(arms)), kept):
        inside = np.all([ranks[axis] < kept for axis in chosen], axis=0)
        left = tuple(axis for axis in range(len(arms)) if axis not in chosen)
        share = np.where(inside, likely, 0.0).sum(axis=left)
        if problem.best not in [arms[axis] for axis in chosen]:
            error += float(share.sum())
            continue
        share = share.sum().reshape((1,) * kept) if plan.fresh else share
        error += _error(problem, plan, tuple(arms[axis] for axis in chosen), share, number + 1)
    return error


def _more_pulls(likely: FloatArray, axis: int, pulls: int, mean: float) -> FloatArray:
    """The distribution after so many more rewards of one arm: a convolution along its axis."""
    before = np.moveaxis(likely, axis, 0)
    after = np.zeros((len(before) + pulls, *before.shape[1:]))
    for more, probability in enumerate(_probabilities(pulls, mean)):
        after[more : more + len(before)] += probability * before
    return np.moveaxis(after, 0, axis)


@cache
def _probabilities(pulls: int, mean: float) -> FloatArray:
    """Probabilities of all sums of so many rewards; kept, as every order of the arms needs them."""
    return np.asarray(binom.pmf(np.arange(pulls + 1), pulls, mean))


@cache
def _ranks(shape: tuple[int, ...]) -> list[FloatArray]:
    """How many arms are ahead of each arm, for all combinations of sums; of equal sums the first is ahead."""
    sums = np.indices(shape)
    return [
        np.sum(
            [(other >= own) if place < axis else (other > own) for place, other in enumerate(sums)], axis=0
        )
        for axis, own in enumerate(sums)
    ]
