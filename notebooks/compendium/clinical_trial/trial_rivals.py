"""Our designs and the trialists': what each promises, on what grounds; trials of all of them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import joblib
import pandas as pd

from compendium.clinical_trial import trial_designs
from compendium.clinical_trial.vaccine_trial import HARD, compare, one_better
from ebr.algorithms.baselines import Passive
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.simulation.sweep import workers
from ebr.theory.problems import Bernoulli

CERTIFIED, FIXED = "certified EBR", "fixed, exact"
OBRIEN_FLEMING, WANG_TSIATIS, POCOCK = 1e-9, 0.25, 0.5  # Δ: nearly 0, ¼ and ½
# What is promised. Where all others are worse by ε or more, "within ε" is the same as "the best".
WITHIN, BEST = "within ε, in T rounds", "the best, if all others are ε worse"
LATE = "the same, without a deadline"
LIMIT = "in the normal limit"


class Entrant(NamedTuple):
    """A design in the comparison.

    Attributes
    ----------
    algorithm
        The design.
    promise, proof
        What it promises, and what that rests on.
    ours
        Whether it is a race of this project or of the paper.
    slow
        Whether its trials take long to simulate, so that there are fewer of them.
    """

    algorithm: Algorithm
    promise: str
    proof: str
    ours: bool = False
    slow: bool = False

    @property
    def rival(self) -> bool:
        """Whether it is somebody else's and keeps the deadline."""
        return not self.ours and self.promise != LATE


def entrants(certified: Algorithm, deadline: int, epsilon: float, delta: float) -> dict[str, Entrant]:
    """All designs, by name, in the order in which they are shown."""
    goal = (deadline, epsilon, delta)
    stages, growing = trial_designs.StagedIntervals, trial_designs.GeometricIntervals
    limits = {
        "Pocock, equal looks": stages(*goal, POCOCK),
        "Pocock, growing looks": growing(*goal, POCOCK),
        "Wang–Tsiatis, growing looks": growing(*goal, WANG_TSIATIS),
        "O'Brien–Fleming, equal looks": stages(*goal, OBRIEN_FLEMING),
        "O'Brien–Fleming, growing looks": growing(*goal, OBRIEN_FLEMING),
    }
    return {
        CERTIFIED: Entrant(certified, WITHIN, "proved for 0/1, law computed", ours=True),
        "pausing EBR": Entrant(
            PausingElasticBatchRacing(*goal), WITHIN, "proved for 0/1, exact tests", ours=True
        ),
        "staked EBR": Entrant(
            StakedElasticBatchRacing(*goal), WITHIN, "proved for 0/1, exact bets", ours=True, slow=True
        ),
        "sharp EBR": Entrant(SharpElasticBatchRacing(*goal), WITHIN, "proved for [0, 1]", ours=True),
        "Algorithm 1": Entrant(ElasticBatchRacing(*goal), WITHIN, "proved, sub-Gaussian", ours=True),
        "fixed, the paper's": Entrant(Passive(epsilon, delta), WITHIN, "proved, sub-Gaussian", ours=True),
        FIXED: Entrant(trial_designs.ExactFixedDesign(epsilon, delta), WITHIN, "proved for 0/1, exact sums"),
        **{name: Entrant(design, WITHIN, LIMIT) for name, design in limits.items()},
        "drop the losers": Entrant(trial_designs.DropTheLosers(epsilon, delta), BEST, LIMIT),
        "Levin–Robbins–Leu": Entrant(
            trial_designs.SequentialElimination(epsilon, delta), LATE, "proved for 0/1", slow=True
        ),
    }


def most_errors(
    field: Mapping[str, Entrant], rates: Sequence[float], epsilon: float, trials: int, seed: int
) -> pd.DataFrame:
    """Where each design errs most, of truths with all others ε worse: a row a design.

    Columns: design, best_rate, errors with lower and upper (an exact 99.9 % interval), trials.
    """
    grid = {(HARD, rate): one_better(rate, epsilon * (1 + 1e-6)) for rate in rates}
    tables = {name: compare(grid, field[name].algorithm, epsilon, trials, seed) for name in field}
    rows = [table.loc[[table["errors"].idxmax()]].assign(design=name) for name, table in tables.items()]
    return pd.concat(rows)[["design", "best_rate", "errors", "lower", "upper", "trials"]]


def over_truths(
    grid: Mapping[tuple[str, float], Bernoulli],
    field: Mapping[str, Entrant],
    epsilon: float,
    trials: int,
    slow_trials: int,
    seed: int,
) -> pd.DataFrame:
    """The tables of `compare`, one design below the other (its name is a column)."""
    # A task a design: what it must compute before it can start is computed once. The longest come first.
    order = sorted(field, key=lambda name: not field[name].slow)
    tasks = [
        joblib.delayed(compare)(
            grid, field[name].algorithm, epsilon, slow_trials if field[name].slow else trials, seed
        )
        for name in order
    ]
    with workers():
        found = dict(zip(order, joblib.Parallel(batch_size=1)(tasks), strict=True))
    tables: list[pd.DataFrame] = [found[name].assign(design=name) for name in field]
    return pd.concat(tables, ignore_index=True)
