"""X15's supermartingale and the steps of its proof, watched in races of simulated rewards."""

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from compendium.shared.problem_sets import Instance
from ebr.algorithms.game import Game, advance
from ebr.algorithms.staked import LAST, StakedElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray, twelve_digits
from ebr.models import IN_UNIT, REWARDS
from ebr.simulation.simulate import blocks, draw
from ebr.theory.problems import Bernoulli, Gaussian, Problem

BEYOND = 1 + 1e-6  # times ε: a gap that is ε, whatever rounding does
# T, ε and δ: few pulls and much money, so that wrong claims are often paid.
SIZES = ((2, 0.4, 0.9), (3, 0.3, 0.5), (4, 0.25, 0.3), (6, 0.2, 0.7))


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


def table_of(game: Game) -> Any:
    """The table of a race that goes on: `play` itself is watched, not a copy of it."""
    return game.gi_frame.f_locals["table"]


class Watch:
    """What the proof speaks of, race by race.

    Attributes
    ----------
    wealth
        Σ_{k ≠ 1} v^{s(k)}_{k,1} and what is left of δ, after the last round played; 1 is the best arm.
    reached
        Whether one of these purses has ever reached 1. The others are *inside* the event.
    strayed
        Inside: whether the best arm was out, or the race ended with a bad arm that no final has chosen.
    """

    def __init__(self, table: Any, problem: Problem) -> None:
        self.table, self.problem, self.end = table, problem, table._end
        self.bad = ~problem.is_good(np.arange(problem.n_arms), table.race.epsilon)
        size = len(table.arms)
        self.wealth: FloatArray = np.full(size, (1 - LAST) * table.race.delta)
        self.reached: BoolArray = np.zeros(size, dtype=bool)
        self.strayed: BoolArray = np.zeros(size, dtype=bool)
        table._end = self.look  # every round calls it before a race leaves the table

    def look(self, ended: BoolArray, arms: IntArray) -> None:
        """Look at all races of the table, then let some end with these arms."""
        table, best = self.table, self.problem.best
        rows, claimant = table.replicate, table.claimant
        by_epsilon, by_nothing = table.purses[..., best]
        purses = np.exp(np.where(self.bad[claimant], by_epsilon, by_nothing))
        purses = np.where(claimant == best, 0.0, purses)
        self.wealth[rows] = purses.sum(axis=1) + table.race.delta * table.left
        self.reached[rows] |= (purses >= 1).any(axis=1)
        chosen = table.first_sums[np.arange(len(arms)), arms] >= table.first_sums[:, best]
        by_sign = table.final[:, best] & chosen
        strayed = table.out[:, best] | (ended & self.bad[arms] & ~by_sign)
        self.strayed[rows] |= strayed & ~self.reached[rows]
        self.end(ended, arms)


def watched(problems: Iterable[Instance], model: str, runs: int, seed: int) -> pd.DataFrame:
    """Races on problems, told that rewards are of a model: a row a problem and round.

    Columns: model, kind, round, runs, delta; wealth, the mean of min(M, 1) after the round, and its standard
    error; allowed, (1 − c_T) δ; and in the last round's row reached and strayed, races of each.
    """
    rows = []
    for kind, problem, epsilon, deadline, delta in problems:
        race = StakedElasticBatchRacing(deadline, epsilon, delta, rewards=model)
        parts = [_block(race, problem, *block) for block in blocks(race, problem, runs, seed)]
        wealth = np.minimum(np.concatenate([wealth for wealth, _ in parts], axis=1), 1)
        reached, strayed = (sum(int(getattr(watch, name).sum()) for _, watch in parts) for name in EVENTS)
        setting = {"model": model, "kind": kind, "runs": runs, "delta": delta, "allowed": (1 - LAST) * delta}
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
        sums = draw(problem, problem.means[:, None], turn.pulls.T, generator).T
        turn = advance(game, sums)
        wealth.append(watch.wealth.copy())
    wealth += [watch.wealth] * (race.deadline - len(wealth))
    return np.array(wealth), watch


MODELS = REWARDS
