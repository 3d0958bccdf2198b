"""Typical totals of a planned race: means over simulated experiments, under its deadline and others."""

from dataclasses import replace

import numpy as np
import pandas as pd
from tqdm import tqdm

from ebr.algorithms.pausing import MOST_STAGES, PausingElasticBatchRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import IntArray
from ebr.models import IN_UNIT
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Bernoulli, Gaussian, Problem
from ebr.validation import MOST_ROUNDS

KNOWN = "bounded"  # of rewards of which nothing is said, as where they are raced
RUNS = 200  # simulated experiments behind a typical total
CELLS = 2 * 10**6  # experiments × arms at most, lest a plan for a million arms take hours
FEWEST = 2  # experiments all the same, or there is no standard error
MORE_ROUNDS = 3  # how far beyond the deadline to look
EVERY = 20  # deadlines up to which each is looked at; beyond, a few between this and the plan's own
Planned = SharpElasticBatchRacing | PausingElasticBatchRacing


def typical(n_arms: int, algorithm: Planned) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The worst case, and mean totals of simulated experiments, for several deadlines; standard errors.

    There is a progress bar on a terminal if it takes longer than a second.
    """
    rows, errors = {}, {}
    runs = runs_for(n_arms)
    for deadline in tqdm(
        _deadlines(algorithm), "simulating", unit="deadline", disable=None, delay=1, leave=False
    ):
        one = replace(algorithm, deadline=deadline, rewards=algorithm.model(KNOWN))
        pulls = {name: simulate(one, each, runs).pulls for name, each in problems(n_arms, one).items()}
        most = float(n_arms * pulls_so_far(one, n_arms)[-1])
        rows[deadline] = {"worst case": most} | {name: each.mean() for name, each in pulls.items()}
        errors[deadline] = {"worst case": 0.0} | {
            name: each.std(ddof=1) / np.sqrt(runs) for name, each in pulls.items()
        }
    means, standard = (pd.DataFrame.from_dict(table, orient="index") for table in (rows, errors))
    return means.rename_axis("rounds"), standard.rename_axis("rounds")


def runs_for(n_arms: int) -> int:
    """How many experiments are simulated: fewer on many arms, whose totals vary less."""
    return max(FEWEST, min(RUNS, CELLS // n_arms))


def _deadlines(algorithm: Planned) -> list[int]:
    """1, 2, …, 20, then √2 times as many each time, then the deadline itself and the next three."""
    deadline = algorithm.deadline
    most = MOST_STAGES if isinstance(algorithm, PausingElasticBatchRacing) else MOST_ROUNDS
    between = (round(EVERY * 2 ** (step / 2)) for step in range(1, 20))
    fewer = [t for t in (*range(1, EVERY + 1), *between) if t < deadline]
    return [*fewer, *range(deadline, min(deadline + MORE_ROUNDS, most) + 1)]


def problems(n_arms: int, algorithm: Planned) -> dict[str, Problem]:
    """The kinds of problem that a plan looks at."""
    hard, easy = min(2 * algorithm.epsilon, 0.5), 0.5
    k = places(algorithm)
    gaps = {
        "hard": np.full(n_arms - k, hard),
        "spread": np.linspace(hard, easy, n_arms - k),
        "easy": np.full(n_arms - k, easy),
    }
    if isinstance(algorithm, SharpElasticBatchRacing) and algorithm.control is not None:
        gaps["none better"] = np.zeros(n_arms - k)
    bounded = algorithm.model(KNOWN) in IN_UNIT
    means = {name: 0.75 - np.append(np.zeros(k), gap) for name, gap in gaps.items()}
    return {name: Bernoulli(m) if bounded else Gaussian(m, algorithm.sigma) for name, m in means.items()}


def pulls_so_far(algorithm: Planned, n_arms: int) -> IntArray:
    """How often an arm may have been pulled after each round: a survivor, or the leader where arms pause."""
    if isinstance(algorithm, SharpElasticBatchRacing):
        return algorithm.pulls_by_round(n_arms, KNOWN)
    grid = np.unique(algorithm.pulls_by_stage(n_arms, KNOWN))
    stages = np.arange(1, algorithm.deadline + 1) + algorithm.ahead
    stages[0], stages[-1] = 1, len(grid)  # of a single round, the last
    return np.asarray(grid[np.minimum(stages, len(grid)) - 1])


def places(algorithm: Planned) -> int:
    """How many arms are looked for, k."""
    return algorithm.k if isinstance(algorithm, SharpElasticBatchRacing) else 1
