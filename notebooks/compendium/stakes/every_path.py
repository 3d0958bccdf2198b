"""How often a staked race of two arms fails, exactly: the race itself is played on all rewards 0 and 1."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from compendium.shared.problem_sets import twelve_digits
from compendium.stakes.supermartingale import BEYOND, table_of
from ebr.algorithms.game import advance
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.problems import Bernoulli

MOST = 2_000_000  # paths
# T, ε, δ and w_0: few pulls, so that there are few paths.
SIZES = (
    (2, 0.6, 0.9, 0.9),
    (2, 0.5, 0.5, 0.9),
    (2, 0.45, 0.05, 0.9),
    (3, 0.4, 0.9, 0.9),
    (3, 0.35, 0.6, 0.9),
    (3, 0.4, 0.3, 0.9),
)
SHARES = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)  # of 1 − ε: where the worse arm's mean is


class Paths:
    """A race of two arms on every path of their rewards; each path has its own random lots."""

    def __init__(self, race: StakedElasticBatchRacing, means: FloatArray, repeats: int, seed: int) -> None:
        problem = Bernoulli(means)
        lots = np.random.default_rng(np.random.SeedSequence([seed, race.deadline, len(means), repeats]))
        game = race.play(2, repeats, rewards="Bernoulli", generator=lots)
        advance(game)
        self.table, self.means = table_of(game), means
        self.bad = ~problem.is_good(np.arange(2), race.epsilon)
        self.weight: FloatArray = np.ones(repeats)
        self.repeat: IntArray = np.arange(repeats)
        self.failed, self.ended = np.zeros(repeats), np.zeros(repeats)
        self.end, self.table._end = self.table._end, self.note
        sums = self.grow()
        while advance(game, sums).pulls is not None:
            sums = self.grow()

    def grow(self) -> FloatArray:
        """Follow each race with all sums that the coming round may have, and return these."""
        table: Any = self.table
        pulls = table.asked
        ways = np.prod(pulls + 1, axis=1)
        if ways.sum() > MOST:
            raise ValueError(f"a race must have at most {MOST} paths, got {ways.sum()}")
        before = np.repeat(np.arange(len(ways)), ways)
        rank = np.arange(len(before)) - np.repeat(np.cumsum(ways) - ways, ways)
        sums = np.stack(np.divmod(rank, pulls[before, 1] + 1), axis=1)
        came_from = table.replicate[before]
        self.repeat = self.repeat[came_from]
        self.weight = self.weight[came_from] * np.prod(binom.pmf(sums, pulls[before], self.means), axis=1)
        for name in table.BY_RACE.split():
            setattr(table, name, getattr(table, name)[before])
        table.purses, table.said = table.purses[:, before], table.said[:, before]
        table.replicate, table.arms = np.arange(len(before)), np.full(len(before), -1)
        table.within = np.full(len(before), np.inf)
        return sums.astype(np.float64)

    def note(self, ended: BoolArray, arms: IntArray) -> None:
        """Add up the paths that end, and those that end with a bad arm; then let them end."""
        rows = self.table.replicate[ended]
        np.add.at(self.ended, self.repeat[rows], self.weight[rows])
        np.add.at(self.failed, self.repeat[rows], self.weight[rows] * self.bad[arms[ended]])
        self.end(ended, arms)


def failures(model: str, repeats: int, seed: int, sizes: Any = SIZES) -> pd.DataFrame:
    """P(the worse of two arms is recommended), worse by just ε: one row for each race, at the worst mean.

    Rewards in [0, 1] need no lots: the probability is exact. With 0/1 rewards it is the mean over `repeats`
    independent lots for every path. Columns: model, T, epsilon, delta, last (b_T), failure, error (standard),
    mean (of the better arm), repeats, and ended, the probability of all paths.
    """
    rows = []
    for deadline, epsilon, delta, start in sizes:
        race = StakedElasticBatchRacing(deadline, epsilon, delta, rewards=model, start=start)
        tried = []
        for share in SHARES:
            low = share * (1 - epsilon * BEYOND)
            means = twelve_digits(np.array([low, low + epsilon * BEYOND]))
            paths = Paths(race, means, repeats, seed)
            error = paths.failed.std(ddof=1) / np.sqrt(repeats) if repeats > 1 else 0.0
            tried.append((float(paths.failed.mean()), float(error), means[1], float(paths.ended.mean())))
        failure, error, mean, ended = max(tried)
        setting = {"model": model, "T": deadline, "epsilon": epsilon, "delta": delta}
        found = {"last": race.last_count(2, "Bernoulli"), "failure": failure, "error": error, "mean": mean}
        rows.append(setting | found | {"repeats": repeats, "ended": ended})
    return pd.DataFrame(rows)
