"""X15's supermartingale and the steps of its proof, watched in races of simulated rewards."""

from collections.abc import Iterable
from inspect import getgeneratorlocals
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from compendium.shared.problem_sets import Instance, twelve_digits
from ebr.algorithms.game import Game, advance
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.models import IN_UNIT, REWARDS
from ebr.simulation.simulate import blocks, draw
from ebr.theory.problems import Bernoulli, Gaussian, Problem

UNKNOWN = "Gaussian, σ unknown"  # told with squares, and with a quarter of σ as a guess
MODELS = (*REWARDS, UNKNOWN)
BEYOND = 1 + 1e-6  # times ε: a gap that is ε, whatever rounding does
ROUNDING = 1e-12
# T, ε and δ: few pulls and much money, so that wrong claims are often paid.
SIZES = ((2, 0.4, 0.9), (6, 0.2, 0.7), (15, 0.1, 0.5))


def hostile(model: str) -> list[Instance]:
    """Problems on which bets on false claims are as good as they can be, with rewards for a model.

    All others worse by just ε, around ½ and next to 0 and 1; all alike; a good arm between the best and bad
    ones; two, three and ten arms.
    """
    made = []
    for (deadline, epsilon, delta), (kind, places) in product(SIZES, _places().items()):
        for top in (0.5 + epsilon / 2, 0.995, 0.005 + epsilon * BEYOND):
            means = twelve_digits(top - epsilon * BEYOND * np.array(places))
            problem = Bernoulli(means) if model in IN_UNIT else Gaussian(means, 0.5)
            made.append(Instance(kind, problem, epsilon, deadline, delta))
            if model not in IN_UNIT:  # nothing depends on where the means are
                break
    return made


def _places() -> dict[str, list[float]]:
    """Gaps, in ε."""
    ten = [0.0] + 9 * [1.0]
    return {"just bad": [1.0, 0.0], "alike": [0.0, 0.0], "between": [1.0, 0.9, 0.0], "nine just bad": ten}


def made(model: str, deadline: int, epsilon: float, delta: float) -> StakedElasticBatchRacing:
    """A race that assumes this model."""
    if model == UNKNOWN:
        return StakedElasticBatchRacing(deadline, epsilon, delta, 0.125, "Gaussian", squares=True)
    return StakedElasticBatchRacing(deadline, epsilon, delta, rewards=model)


def table_of(game: Game) -> Any:
    """The table of a race that goes on: `play` itself is watched, not a copy of it."""
    return getgeneratorlocals(game)["table"]


class Watch:
    """The quantities of the proof, race by race; arm 1 is the best.

    Attributes
    ----------
    given
        What has been put into the purses v^{s(k)}_{k,1}, k ≠ 1, so far.
    wealth
        M: these purses, and what of 0.95 (1 − c_T) δ was not put into them, after the last round played.
    reached
        Whether one of these purses has ever reached 1. The other races are *inside* the event.
    strayed
        Whether more was given than there is or, inside, arm 1 was out or a bad arm won other than by a final.
    """

    def __init__(self, table: Any, problem: Problem) -> None:
        self.table, self.problem, self.end, self.stake = table, problem, table._end, table.stake
        self.bad = ~problem.is_good(np.arange(problem.n_arms), table.race.epsilon)
        size = len(table.arms)
        self.given: FloatArray = np.zeros(size)
        self.wealth: FloatArray = np.full(size, self.staked())
        self.reached: BoolArray = np.zeros(size, dtype=bool)
        self.strayed: BoolArray = np.zeros(size, dtype=bool)
        self.opened = False
        table._end, table.stake = self.look, self.see_stake

    def staked(self) -> float:
        """0.95 (1 − c_T) δ: what the race stakes; the rest is for what is said if it is stopped."""
        race = self.table.race
        return float(0.95 * (1 - race.deadline**-0.5) * race.delta)

    def see_stake(self, now: int) -> None:
        """Let the race give money to claimants, and note what does not go to arm 1."""
        before = self.table.left
        self.stake(now)
        others = np.where(self.table.claimant == self.problem.best, 0.0, self.table.share).sum(axis=1)
        self.given[self.table.replicate] += self.table.race.delta * (before - self.table.left) * others

    def look(self, ended: BoolArray, arms: IntArray) -> None:
        """Look at all races of the table, then let some end with these arms. Every round comes here."""
        table, best, rows = self.table, self.problem.best, self.table.replicate
        if (
            not self.opened
        ):  # all arms were given the same before the first round, whoever has a seat after it
            others = (self.problem.n_arms - 1) / self.problem.n_arms
            self.given += (self.staked() - table.race.delta * table.left) * others
            self.opened = True
        by_epsilon, by_nothing = table.purses[..., best]
        purses = np.exp(np.where(self.bad[table.claimant], by_epsilon, by_nothing))
        purses = np.where(table.claimant == best, 0.0, purses)
        self.wealth[rows] = purses.sum(axis=1) + self.staked() - self.given[rows]
        self.reached[rows] |= (purses >= 1).any(axis=1)
        ahead = table.first_sums[np.arange(len(arms)), arms] >= table.first_sums[:, best]
        by_final = table.final[:, best] & ahead
        strayed = table.out[:, best] | (ended & self.bad[arms] & ~by_final)
        self.strayed[rows] |= (strayed & ~self.reached[rows]) | (table.left < -ROUNDING)
        self.end(ended, arms)


def watched(problems: Iterable[Instance], model: str, runs: int, seed: int) -> pd.DataFrame:
    """Races on problems, told the model of the rewards: one row for each problem and round.

    Columns: model, problem (its number), kind, round, runs, delta; wealth, the mean of min(M, 1) after the
    round, and its standard error; allowed, 0.95 (1 − c_T) δ; and in the last round's row reached and strayed,
    races of each.
    """
    rows = []
    for place, (kind, problem, epsilon, deadline, delta) in enumerate(problems):
        race = made(model, deadline, epsilon, delta)
        parts = [_block(race, problem, *block) for block in blocks(race, problem, runs, seed)]
        wealth = np.minimum(np.concatenate([wealth for wealth, _ in parts], axis=1), 1)
        reached, strayed = (sum(int(getattr(watch, name).sum()) for _, watch in parts) for name in EVENTS)
        setting = {"model": model, "problem": place, "kind": kind, "runs": runs, "delta": delta}
        setting["allowed"] = 0.95 * (1 - deadline**-0.5) * delta
        for number, each in enumerate(wealth, start=1):
            last = number == deadline
            row = {"round": number, "wealth": each.mean(), "error": each.std(ddof=1) / np.sqrt(runs)}
            rows.append(setting | row | {"reached": reached * last, "strayed": strayed * last})
    return pd.DataFrame(rows)


EVENTS = ("reached", "strayed")


def _block(
    race: StakedElasticBatchRacing, problem: Problem, replicates: int, generator: np.random.Generator
) -> tuple[FloatArray, Watch]:
    """M after each round (rounds × races)."""
    game = race.play(problem.n_arms, replicates, rewards=problem.rewards, generator=generator)
    turn, wealth = advance(game), []
    watch = Watch(table_of(game), problem)
    while turn.pulls is not None:
        squares = race.wants_squares(problem.rewards)
        sums = draw(problem, problem.means[:, None], turn.pulls.T, generator, squares)
        turn = advance(game, sums.swapaxes(-1, -2))
        wealth.append(watch.wealth.copy())
    wealth += [watch.wealth] * (race.deadline - len(wealth))
    return np.array(wealth), watch
