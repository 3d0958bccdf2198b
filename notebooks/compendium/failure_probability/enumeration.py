"""How often a race of a few Bernoulli arms fails, exactly: the race itself is played on every outcome.

Only the last round is summed in closed form: the arm with the most successes wins; a tie goes to the first
arm or, with T = 1, to a random one. So races of three rounds are within reach where counts are small, and the
rounds before the last are played by the race's own code.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import gammaln

from ebr.algorithms.game import advance
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.problems import Bernoulli

MOST = 1_000_000  # outcomes of the rounds before the last
LEAST = 1e-300  # in place of a probability of 0, which has no logarithm


class Outcomes(NamedTuple):
    """All outcomes before the last round; what an outcome leads to does not depend on the arms' means.

    Attributes
    ----------
    log_ways
        The logarithm of the number of reward sequences with this outcome.
    pulls, successes
        So far, outcomes × arms.
    arm
        The arm that the race returns if it is over by then; −1 if it goes on.
    plans
        Of the races that go on: each arm's pulls so far and in the last round, and which outcomes have them.
    """

    log_ways: FloatArray
    pulls: IntArray
    successes: IntArray
    arm: IntArray
    plans: list[tuple[IntArray, IntArray]]


@lru_cache(maxsize=4)
def outcomes(race: PausingElasticBatchRacing, n_arms: int) -> Outcomes:
    """Play a race on all outcomes of its rounds before the last."""
    pulls: list[IntArray] = []
    successes: list[IntArray] = []
    asked = _asked(race, n_arms, successes, 1)[0]
    for _ in range(race.deadline - 1):
        came_from, new = _product(asked)
        pulls = [earlier[came_from] for earlier in [*pulls, asked]]
        successes = [*(earlier[came_from] for earlier in successes), new]
        asked, arm = _asked(race, n_arms, successes, len(new))
    if race.deadline == 1:
        arm = np.zeros(1, dtype=np.int64)
    log_ways = np.zeros(len(asked)) + sum(map(_log_ways, pulls, successes))
    so_far, found = (sum(parts, np.zeros_like(asked)) for parts in (pulls, successes))
    arm = np.where(asked.any(axis=1), -1, arm)
    return _merged(np.hstack([so_far, asked, found, arm[:, None]]), log_ways)


def _merged(seen: IntArray, log_ways: FloatArray) -> Outcomes:
    """Merge outcomes that agree in pulls so far and to come, successes and arm: the columns."""
    lowest, highest = seen.min(axis=0), seen.max(axis=0)
    numbers = np.ravel_multi_index(tuple((seen - lowest).T), tuple(highest - lowest + 1))
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    ways = np.full(len(first), -np.inf)
    np.logaddexp.at(ways, which, log_ways)
    pulls, last, successes = np.split(seen[first, :-1], 3, axis=1)
    arm, plans = seen[first, -1], np.stack([pulls, last], axis=1)
    different = np.unique(plans[arm < 0], axis=0)
    here = [np.flatnonzero((arm < 0) & (plans == plan).all(axis=(1, 2))) for plan in different]
    return Outcomes(ways, pulls, successes, arm, list(zip(different, here, strict=True)))


def _asked(
    race: PausingElasticBatchRacing, n_arms: int, successes: list[IntArray], size: int
) -> tuple[IntArray, IntArray]:
    """The pulls that a race asks for after some rounds, and the arms it returns without another success."""
    turn = advance(game := race.play(n_arms, size, rewards="Bernoulli"))
    for sums in successes:
        if turn.pulls is None:
            break
        turn = advance(game, sums.astype(np.float64))
    asked = np.zeros((size, n_arms), dtype=np.int64) if turn.pulls is None else turn.pulls.copy()
    while turn.pulls is not None:
        turn = advance(game, np.zeros((size, n_arms)))
    return asked, turn.arms


def _product(pulls: IntArray) -> tuple[IntArray, IntArray]:
    """All numbers of successes of these pulls (outcomes × arms): the outcome that each follows, and they."""
    ways = np.prod(pulls + 1, axis=1)
    if ways.sum() > MOST:
        raise ValueError(f"a race must have at most {MOST} outcomes before its last round, got {ways.sum()}")
    came_from = np.repeat(np.arange(len(pulls)), ways)
    rank = np.arange(len(came_from)) - np.repeat(np.cumsum(ways) - ways, ways)
    successes = np.zeros((len(came_from), pulls.shape[1]), dtype=np.int64)
    for arm in range(pulls.shape[1]):
        rank, successes[:, arm] = np.divmod(rank, pulls[came_from, arm] + 1)
    return came_from, successes


def _log_ways(pulls: IntArray, successes: IntArray) -> FloatArray:
    """The logarithm of the number of orders of a round's rewards: a product of binomial coefficients."""
    logs = gammaln(np.arange(int(pulls.max()) + 1) + 1.0)  # of the factorials
    return np.asarray((logs[pulls] - logs[successes] - logs[pulls - successes]).sum(axis=1))


def _log_chance(pulls: IntArray, successes: IntArray, means: FloatArray) -> FloatArray:
    """The logarithm of the probability of each order of so many successes."""
    success, miss = (np.log(np.maximum(chance, LEAST)) for chance in (means, 1 - means))
    return np.asarray(successes @ success + (pulls - successes) @ miss)


def failure(race: PausingElasticBatchRacing, problem: Bernoulli) -> float:
    """P(a race returns an arm that is not ε-optimal). Nothing is subtracted, so small values are accurate."""
    seen = outcomes(race, problem.n_arms)
    chance = np.exp(seen.log_ways + _log_chance(seen.pulls, seen.successes, problem.means))
    wrong = ~problem.is_good(np.arange(problem.n_arms), race.epsilon)
    failed = float(chance[(seen.arm >= 0) & wrong[seen.arm]].sum())
    for plan, here in seen.plans:
        failed += float(chance[here] @ _last_round(plan, seen.successes[here], problem.means, wrong))
    return failed


def _law(pulls: int, mean: float) -> FloatArray:
    """The binomial law; many times faster than scipy's."""
    successes = np.arange(pulls + 1)[:, None]
    each = np.full_like(successes, pulls)
    return np.exp(_log_ways(each, successes) + _log_chance(each, successes, np.array([mean])))


def _last_round(plan: IntArray, successes: IntArray, means: FloatArray, wrong: BoolArray) -> FloatArray:
    """P(a wrong arm wins), given the successes so far; the plan is the pulls so far and those to come."""
    pulled, last = plan
    most = int((pulled + last).max())
    finalists = np.flatnonzero(pulled + last == most)  # the others cannot win
    exactly, less = {}, {}
    for arm in finalists:
        # One row for each outcome, one column for each number of successes in the end.
        around = np.zeros(pulled[arm])
        law = np.concatenate([around, _law(int(last[arm]), float(means[arm])), around])
        below = np.append(0.0, law.cumsum()[:-1])
        starts = pulled[arm] - successes[:, arm]
        exactly[arm], less[arm] = (sliding_window_view(each, most + 1)[starts] for each in (law, below))
    lost = np.zeros(len(successes))
    for winner in finalists[wrong[finalists]]:
        others = [arm for arm in finalists if arm != winner]
        behind = [less[arm] + (arm > winner) * exactly[arm] for arm in others]  # of equals the first wins
        lost += (exactly[winner] * np.prod(behind, axis=0)).sum(axis=1)
    return lost
