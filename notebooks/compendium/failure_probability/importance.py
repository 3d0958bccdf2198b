"""Failure probabilities of races, however small: importance sampling."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, expit, logit

from compendium.shared.likelihood import log_ratios
from compendium.shared.problem_sets import twelve_digits
from ebr.algorithms.game import Algorithm, Game, drive
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import blocks, draw, simulate
from ebr.theory.problems import Bernoulli, Gaussian, Problem

CONFIDENCE = 0.99
MARGINS = (-0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # leads of the wrong arm, in units of its gap
PROBES = 200  # leads that are tried to find each round's reach, on a log scale
SMALLEST_LEAD = 0.05  # of them, in units of the gap
# The arms of races, and what they saw: pulls and rewards' sums (arms × races) up to some rounds.
Seen = tuple[IntArray, dict[int, tuple[IntArray, FloatArray]]]
LARGEST_LEAD = {Gaussian: 1.0, Bernoulli: 16.0}  # in means, and in logits
MOST_REACHES = 16  # for each group of arms
FEW_REACHES = 6  # the same where every pull is a round: there are thousands


class Estimate(NamedTuple):
    """A failure probability.

    Attributes
    ----------
    log10, relative_error, races
        The importance-sampling estimate, −∞ where no race on a tilted problem failed; its error; its races.
    failures, runs
        Failures in plain races, without importance sampling, and the number of plain races.
    upper
        The exact (Clopper–Pearson) 99 % upper bound from the plain races; 1 without any.
    """

    log10: float
    relative_error: float
    races: int
    failures: int
    runs: int
    upper: float


class Tilt(NamedTuple):
    """A change of the problem under which some way to fail is likely: one of several equal arms leads.

    Attributes
    ----------
    base, lead
        The arms' means with the best arm's lowered, and the leader's mean.
    group
        The arms of equal mean that might lead; the first does, and stands for all.
    until
        The last round of the change; later rewards are the problem's own. 0: the change has no end.
    """

    base: FloatArray
    lead: float
    group: IntArray
    until: int

    def means(self) -> FloatArray:
        """What is simulated."""
        means = self.base.copy()
        means[self.group[0]] = self.lead
        return means


def failure(algorithm: Algorithm, problem: Problem, runs: int, seed: int, plain: int = 0) -> Estimate:
    """Estimate P(the arm is not ε-optimal), however small.

    There are `runs` races on ν itself and on each of some tilted problems; one that fails counts with its
    likelihood ratio dν / Σ_k α_k dν_k of what it saw. ν is part of the mixture, so no weight exceeds the
    number of its parts. The tilts:

    - a wrong arm leads all others by a margin, to the end of the race;
    - an arm leads the best one until round t, by so much that a race without noise drops the best arm
      there, for every round in which one can: a long lead in an early round, and then ν again. The arm need
      not be wrong, as a wrong one may win once the best is gone.

    Arms of equal mean are exchangeable: the mixture has each of them as a leader, and one is simulated.
    A way to fail that no tilt makes likely would be missed, so there may be `plain` races as well.
    """
    weights = _log_weights(algorithm, problem, _tilts(algorithm, problem), runs, seed)
    log_mean, relative_error = _mean(weights)
    lost = 0
    if plain:
        lost = int((~simulate(algorithm, problem, plain, seed).correct(algorithm.epsilon)).sum())
    upper = 1.0 if lost == plain else float(betaincinv(lost + 1, plain - lost, CONFIDENCE))
    return Estimate(log_mean / math.log(10), relative_error, weights.size, lost, plain, upper)


def _mean(log_weights: FloatArray) -> tuple[float, float]:
    """The logarithm of the weights' mean (tilts × runs), and its relative standard error; −∞ and 0 for none.

    Every tilt has the same number of races, so differences between tilts are no error.
    """
    largest = float(log_weights.max())
    if not math.isfinite(largest):
        return -math.inf, 0.0
    scaled = np.exp(log_weights - largest)
    mean, (tilts, runs) = float(scaled.mean()), scaled.shape
    error = math.sqrt(scaled.var(axis=1, ddof=1).sum() / runs) / tilts
    return largest + math.log(mean), error / mean


def _log_weights(
    algorithm: Algorithm, problem: Problem, tilts: list[Tilt], runs: int, seed: int
) -> FloatArray:
    """The log weight of each race, −∞ unless it fails: on ν itself (first row) and on each tilted problem."""
    parts, mixture = [], 1 + len(tilts)
    for arm, seen in _races(algorithm, problem, tilts, runs, seed):
        failed = np.flatnonzero(~problem.is_good(arm, algorithm.epsilon))
        by_round = {end: (pulls[:, failed], sums[:, failed]) for end, (pulls, sums) in seen.items()}
        ratios = [_log_ratio(tilt, problem, *by_round[tilt.until]) for tilt in tilts]
        weights = np.full(len(arm), -np.inf)
        weights[failed] = math.log(mixture) - _log_sum([np.zeros(len(failed)), *ratios])
        parts.append(weights.reshape(mixture, -1))
    return np.concatenate(parts, axis=1)


def _log_ratio(tilt: Tilt, problem: Problem, pulls: IntArray, sums: FloatArray) -> FloatArray:
    """The logarithm of dν_k/dν of what was seen (arms × races): the best is lowered, a group leads."""
    moved = np.flatnonzero(tilt.base != problem.means)
    lowered = log_ratios(
        problem, tilt.base[moved, None], problem.means[moved, None], pulls[moved], sums[moved]
    ).sum(axis=0)
    level = problem.means[tilt.group[0]]
    raised = _log_sum(log_ratios(problem, tilt.lead, level, pulls[tilt.group], sums[tilt.group]))
    return np.asarray(lowered + raised - math.log(len(tilt.group)))


def _log_sum(logs: FloatArray | list[FloatArray]) -> FloatArray:
    """The logarithm of a sum along the first axis, from its terms' logarithms."""
    return np.asarray(np.logaddexp.reduce(logs, axis=0))


def _play(
    game: Game,
    problem: Problem,
    draw: Callable[[int, IntArray], FloatArray],
    rounds: set[int],
    replicates: int,
) -> Seen:
    """Play a game; keep what was seen to the end (0) and up to some rounds."""
    pulls_so_far = np.zeros((problem.n_arms, replicates), dtype=np.int64)
    sums_so_far = np.zeros((problem.n_arms, replicates))
    by_round: dict[int, tuple[IntArray, FloatArray]] = {}
    number = 0

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal number, pulls_so_far, sums_so_far
        number += 1
        sums = draw(number, pulls)
        pulls_so_far += pulls.T
        sums_so_far += sums.T
        if number in rounds:
            by_round[number] = pulls_so_far.copy(), sums_so_far.copy()
        return sums

    arm = drive(game, respond)
    # Where all races end before a round, what was seen up to it is all that was seen.
    return arm, {end: by_round.get(end, (pulls_so_far, sums_so_far)) for end in {*rounds, 0}}


def _races(algorithm: Algorithm, problem: Problem, tilts: list[Tilt], runs: int, seed: int) -> Iterator[Seen]:
    """Play races on ν and on each of the tilted problems, all side by side, block by block."""
    means = np.array([problem.means, *(tilt.means() for tilt in tilts)])
    until = np.array([0, *(tilt.until for tilt in tilts)])
    for replicates, generator in blocks(algorithm, problem, runs, seed, beside=len(means)):
        many = replicates * len(means)
        game = algorithm.play(problem.n_arms, many, rewards=problem.rewards, generator=generator)
        tilted = means.repeat(replicates, axis=0), until.repeat(replicates)
        yield _play(game, problem, _drawing(problem, *tilted, generator), set(until.tolist()), many)


def _drawing(
    problem: Problem, means: FloatArray, until: IntArray, generator: np.random.Generator
) -> Callable[[int, IntArray], FloatArray]:
    """How a round is drawn: with each race's means (races × arms); after its last tilted round, with ν's."""
    own, tilted = problem.means[:, None], np.ascontiguousarray(means.T)  # arms × races, as draws are

    def drawn(number: int, pulls: IntArray) -> FloatArray:
        over = (until > 0) & (until < number)
        now = np.where(over, own, tilted) if over.any() else tilted
        return draw(problem, now, pulls.T, generator).T

    return drawn


def _tilts(algorithm: Algorithm, problem: Problem) -> list[Tilt]:
    """The tilts for every group of arms with equal means below the best."""
    made = []
    wrong = ~problem.is_good(np.arange(problem.n_arms), algorithm.epsilon)
    for level in np.unique(problem.means[problem.means < problem.means.max()]):
        group = np.flatnonzero(problem.means == level)
        if wrong[group[0]]:
            leading = zip(*_leading(problem, group, np.array(MARGINS)), strict=True)
            made += [Tilt(base, float(lead), group, 0) for base, lead in leading]
        # Where every pull is a round, a lead lasts to the end, and a good arm's lead is no way to fail.
        if wrong[group[0]] or not algorithm.one_pull_a_round:
            made += _reaching(algorithm, problem, group)
    return made


def _leading(problem: Problem, group: IntArray, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lowered means (margins × arms) and the leader's mean, for each of some margins.

    An arm of the group is ahead of the best by a margin, in units of its gap. Two arms are likeliest to meet
    halfway, in means for Gaussian rewards and in logits for Bernoulli ones, and a lead is likeliest when both
    contribute alike. Other arms that are better than the leader are lowered with the best, but not below the
    leader's own mean.
    """
    place = _place(problem, problem.means)
    top, level = place.max(), place[group[0]]
    middle, half = (top + level) / 2, margins * (top - level) / 2
    if isinstance(problem, Gaussian):  # means stay in [0, 1]
        half = np.minimum(half, 0.5)
        middle = np.minimum(np.maximum(middle, abs(half)), 1 - abs(half))
    low = (middle - half)[:, None]
    lowered = np.where(place == top, low, np.minimum(place, np.maximum(low, level)))
    # An arm that is not moved keeps its mean to the last bit.
    base, moved = np.tile(problem.means, (len(margins), 1)), lowered != place
    base[moved] = _mean_at(problem, lowered[moved])
    return base, _mean_at(problem, middle + half)


def _reaching(algorithm: Algorithm, problem: Problem, group: IntArray) -> list[Tilt]:
    """For each round the tilt of least margin with which a race without noise drops the best arm there."""
    place = _place(problem, problem.means)
    gap = place.max() - place[group[0]]
    leads = np.geomspace(SMALLEST_LEAD * gap, LARGEST_LEAD[type(problem)], PROBES)
    base, lead = _leading(problem, group, twelve_digits(leads) / gap)
    means = base.copy()
    means[:, group[0]] = lead
    last = _rounds_of_the_best(algorithm, problem, means)
    # The least lead first: a larger one drops the best arm no later.
    rounds, first = np.unique(last, return_index=True)
    most = FEW_REACHES if algorithm.one_pull_a_round else MOST_REACHES
    chosen = np.unique(np.linspace(0, len(rounds) - 1, most).astype(int))
    until = np.zeros_like(rounds) if algorithm.one_pull_a_round else rounds
    return [Tilt(base[first[k]], float(lead[first[k]]), group, int(until[k])) for k in chosen]


def _rounds_of_the_best(algorithm: Algorithm, problem: Problem, means: FloatArray) -> IntArray:
    """The last round in which the best arm is pulled, if every reward is its mean (races × arms)."""
    number, last = 0, np.zeros(len(means), dtype=np.int64)

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal number, last
        number += 1
        last = np.where(pulls[:, problem.best] > 0, number, last)
        return np.asarray(pulls * means)

    generator = np.random.default_rng(0)  # for algorithms that draw random numbers
    drive(algorithm.play(problem.n_arms, len(means), rewards=problem.rewards, generator=generator), respond)
    return last


def _place(problem: Problem, means: FloatArray) -> FloatArray:
    """Where an arm stands on the line along which it is tilted: the mean, or its logit."""
    return means.copy() if isinstance(problem, Gaussian) else logit(np.clip(means, 1e-12, 1 - 1e-12))


def _mean_at(problem: Problem, place: FloatArray) -> FloatArray:
    """The mean of an arm that stands there."""
    return twelve_digits(np.clip(place, 0, 1) if isinstance(problem, Gaussian) else expit(place))
