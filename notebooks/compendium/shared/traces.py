"""One simulated race, round by round."""

import numpy as np
import pandas as pd

from ebr.algorithms.game import Algorithm
from ebr.arrays import Numbers
from ebr.simulation.simulate import blocks, race
from ebr.theory.problems import Problem


def trace(algorithm: Algorithm, problem: Problem, seed: int = 0) -> pd.DataFrame:
    """Follow one run round by round: a row for each round and arm pulled in it.

    Columns: round, total (pulls of all arms so far), arm, its pulls so far and their mean, and the
    confidence bounds lower and upper, NaN for an algorithm without intervals.
    """
    rounds: list[list[Numbers]] = []
    ((_, generator),) = blocks(algorithm, problem, 1, seed)
    race(algorithm, problem, 1, generator, lambda *seen: rounds.append([each[0].copy() for each in seen]))
    asked, drawn = map(np.array, zip(*rounds, strict=True))  # rounds × arms
    number, arm = np.nonzero(asked)
    pulls, sums = asked.cumsum(axis=0), drawn.cumsum(axis=0)
    frame = pd.DataFrame({"round": number + 1, "total": pulls.sum(axis=1)[number], "arm": arm})
    frame = frame.assign(pulls=pulls[number, arm], mean=sums[number, arm] / pulls[number, arm])
    half_width = algorithm.deviation(frame["pulls"].to_numpy(), problem.n_arms)
    return frame.assign(lower=frame["mean"] - half_width, upper=frame["mean"] + half_width)
