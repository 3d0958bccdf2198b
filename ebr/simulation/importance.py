"""Failure probabilities of races, however small: importance sampling."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, logsumexp
from scipy.stats import beta

from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray, twelve_digits
from ebr.simulation.simulate import simulate
from ebr.theory.divergence import log_likelihood_ratio
from ebr.theory.problems import Bernoulli, Gaussian, Problem

__all__ = ["Estimate", "failure"]

CONFIDENCE = 0.99
MARGINS = (-0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the wrong arm's lead, in units of its gap


class Estimate(NamedTuple):
    """A failure probability.

    Attributes
    ----------
    log10, relative_error, races
        Of the importance-sampling estimate, −∞ where no race on a tilted problem failed; and from how many.
    failures, runs
        Failures in plain races, without importance sampling.
    upper
        The exact (Clopper–Pearson) 99 % upper bound from the plain races.
    """

    log10: float
    relative_error: float
    races: int
    failures: int
    runs: int
    upper: float


def failure(algorithm: Algorithm, problem: Problem, runs: int, seed: int, plain: int = 1) -> Estimate:
    """Estimate P(the arm is not ε-optimal), however small.

    Arms of equal mean are exchangeable, so P = Σ |group| P(its first arm is returned) over the groups of
    wrong arms; where arms can tie, ties go to the first, and P is over-estimated by a few per cent. For each
    there are `runs` races on each of some tilted problems, in which this arm leads all others by a margin;
    one that returns it counts with its likelihood ratio dν / Σ_k α_k dν_k (the mixture of all tilts, ν itself
    among them, so that no weight exceeds the number of tilts). A way to fail that no tilt makes likely would
    be missed, so there are `plain` races as well.
    """
    log_means, relative, races = [], [], 0
    wrong = problem.means[~problem.is_good(np.arange(problem.n_arms), algorithm.epsilon)]
    for level, size in zip(*np.unique(wrong, return_counts=True), strict=True):
        arm = int(np.flatnonzero(problem.means == level)[0])
        weights = _log_weights(algorithm, problem, arm, runs, seed)
        log_mean, error = _mean(weights)
        log_means.append(math.log(size) + log_mean)
        relative.append(error)
        races += len(weights)
    total = float(logsumexp(log_means))
    parts = np.exp(np.array(log_means) - total) if math.isfinite(total) else np.zeros(len(log_means))
    relative_error = float(np.linalg.norm(parts * np.array(relative)))
    lost = int((~simulate(algorithm, problem, plain, seed).correct(algorithm.epsilon)).sum())
    upper = 1.0 if lost == plain else float(beta.ppf(CONFIDENCE, lost + 1, plain - lost))
    return Estimate(total / math.log(10), relative_error, races, lost, plain, upper)


def _mean(log_weights: FloatArray) -> tuple[float, float]:
    """The logarithm of the weights' mean, and its relative standard error; −∞ and 0 where all are zero."""
    largest = float(log_weights.max())
    if not math.isfinite(largest):
        return -math.inf, 0.0
    scaled = np.exp(log_weights - largest)
    mean = float(scaled.mean())
    return largest + math.log(mean), float(scaled.std(ddof=1) / mean / math.sqrt(len(scaled)))


def _tilted(problem: Problem, arm: int, margin: float) -> Problem:
    """The problem with the arm ahead of all others by a margin.

    It is halfway to the best, in means for Gaussian rewards and in logits for Bernoulli ones, that two arms
    are likeliest to meet.
    """
    gaussian = isinstance(problem, Gaussian)
    place = problem.means if gaussian else logit(np.clip(problem.means, 1e-12, 1 - 1e-12))
    middle, gap = (place.max() + place[arm]) / 2, place.max() - place[arm]
    tilted = np.minimum(place, middle - margin * gap / 2)
    tilted[arm] = middle + margin * gap / 2
    if isinstance(problem, Gaussian):
        return Gaussian(np.clip(tilted, 0, 1), problem.sigma)
    return Bernoulli(twelve_digits(expit(tilted)))


def _log_weights(algorithm: Algorithm, problem: Problem, arm: int, runs: int, seed: int) -> FloatArray:
    """The log weight of each race on the tilted problems: −∞ if another arm is returned."""
    tilts = [problem, *(_tilted(problem, arm, margin) for margin in MARGINS)]
    weights = []
    for tilted in tilts:
        race = simulate(algorithm, tilted, runs, seed, per_arm=True)
        against = [-log_likelihood_ratio(problem, other, *race.by_arm()) for other in tilts]
        weight = math.log(len(tilts)) - logsumexp(against, axis=0)
        weights.append(np.where(race.arm == arm, weight, -np.inf))
    return np.concatenate(weights)
