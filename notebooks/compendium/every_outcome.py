"""How often a race of a few Bernoulli arms fails, exactly: the race itself is played on every outcome.

The last round alone is summed in closed form: whoever has most successes there wins; of those who tie the
first, or with T = 1 any by lot. So races of three rounds are within reach where counts are small, and all
that happens before the last round is the code's own doing.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from ebr.algorithms.game import advance
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.problems import Bernoulli

__all__ = ["Outcomes", "by_lot", "failure", "outcomes"]

MOST = 1_000_000  # outcomes of the rounds before the last


class Outcomes(NamedTuple):
    """All that can be seen before the last round; what each leads to does not depend on the arms' means.

    Attributes
    ----------
    pulls, successes
        Of each round before the last, outcomes × arms.
    ended, arm
        Whether the race is over by then, and the arm that it returns.
    last
        The pulls of the last round, outcomes × arms, of the races that go on.
    """

    pulls: list[IntArray]
    successes: list[IntArray]
    ended: BoolArray
    arm: IntArray
    last: IntArray


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
    return Outcomes(pulls, successes, np.asarray(asked.sum(axis=1) == 0), arm, asked)


def _asked(
    race: PausingElasticBatchRacing, n_arms: int, successes: list[IntArray], size: int
) -> tuple[IntArray, IntArray]:
    """What a race asks for after some rounds, and the arms that it returns without another success."""
    turn = advance(game := race.play(n_arms, size, rewards="Bernoulli"))
    for sums in successes:
        if turn.pulls is None:
            break
        turn = advance(game, sums.astype(np.float64))
    asked = np.zeros((size, n_arms), dtype=np.int64) if turn.pulls is None else turn.pulls.copy()
    while turn.arms is None:
        turn = advance(game, np.zeros((size, n_arms)))
    return asked, turn.arms


def _product(pulls: IntArray) -> tuple[IntArray, IntArray]:
    """All numbers of successes of so many pulls (outcomes × arms): which outcome each follows, and they."""
    ways = np.prod(pulls + 1, axis=1)
    if ways.sum() > MOST:
        raise ValueError(f"a race must have at most {MOST} outcomes before its last round, got {ways.sum()}")
    came_from = np.repeat(np.arange(len(pulls)), ways)
    rank = np.arange(len(came_from)) - np.repeat(np.cumsum(ways) - ways, ways)
    successes = np.zeros((len(came_from), pulls.shape[1]), dtype=np.int64)
    for arm in range(pulls.shape[1]):
        rank, successes[:, arm] = np.divmod(rank, pulls[came_from, arm] + 1)
    return came_from, successes


def failure(race: PausingElasticBatchRacing, problem: Bernoulli) -> float:
    """P(a race returns an arm that is not ε-optimal). Nothing is subtracted: small ones are accurate too."""
    seen = outcomes(race, problem.n_arms)
    chance, totals = np.ones(len(seen.last)), np.zeros((2, *seen.last.shape), dtype=np.int64)
    for pulls, successes in zip(seen.pulls, seen.successes, strict=True):
        totals += np.array([pulls, successes])
        for arm, mean in enumerate(problem.means):
            chance *= _chances(pulls[:, arm], successes[:, arm], float(mean))
    wrong = ~problem.is_good(np.arange(problem.n_arms), race.epsilon)
    failed = float(chance[seen.ended & wrong[seen.arm]].sum())
    going = np.flatnonzero(~seen.ended)
    plans, which = np.unique(np.hstack([totals[0], seen.last])[going], axis=0, return_inverse=True)
    for number, plan in enumerate(plans):
        here = going[which.ravel() == number]
        lost = _last_round(plan.reshape(2, -1), totals[1][here], problem.means, wrong, by_lot(race))
        failed += float(chance[here] @ lost)
    return failed


def by_lot(race: PausingElasticBatchRacing) -> bool:
    """Whether ties are broken by lot: in the exact fixed design, one round of Bernoulli rewards."""
    return race.deadline == 1 and race.model("Bernoulli") == "Bernoulli"


def _chances(pulls: IntArray, successes: IntArray, mean: float) -> FloatArray:
    """Binomial probabilities, computed once for each number of pulls."""
    chances = np.zeros(len(pulls))
    for count in np.unique(pulls):
        here = pulls == count
        chances[here] = binom.pmf(np.arange(count + 1), count, mean)[successes[here]]
    return chances


def _last_round(
    plan: IntArray, successes: IntArray, means: FloatArray, wrong: BoolArray, by_lot: bool
) -> FloatArray:
    """P(a wrong arm wins), given the successes so far; the plan is the pulls so far and those to come."""
    pulled, last = plan
    most = int((pulled + last).max())
    finalists = np.flatnonzero(pulled + last == most)  # the others cannot win
    exactly, less = {}, {}
    for arm in finalists:
        # One row for each number of successes so far, one column for each in the end.
        more = np.arange(most + 1) - np.arange(pulled[arm] + 1)[:, None]
        exactly[arm] = binom.pmf(more, last[arm], means[arm])[successes[:, arm]]
        less[arm] = binom.cdf(more - 1, last[arm], means[arm])[successes[:, arm]]
    lost = np.zeros(len(successes))
    nodes, weights = np.polynomial.legendre.leggauss(len(finalists))
    for winner in finalists[wrong[finalists]]:
        others = [arm for arm in finalists if arm != winner]
        if by_lot:  # with a lot of u in (0, 1), of those who tie it beats each with probability u
            beaten = [[less[arm] + (1 + u) / 2 * exactly[arm] for arm in others] for u in nodes]
        else:
            beaten = [[less[arm] + (exactly[arm] if arm > winner else 0) for arm in others]] * len(nodes)
        won = sum(w / 2 * np.prod(behind, axis=0) for w, behind in zip(weights, beaten, strict=True))
        lost += (exactly[winner] * won).sum(axis=1)
    return lost
