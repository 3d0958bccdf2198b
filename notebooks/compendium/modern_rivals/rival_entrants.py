"""Who takes part: rivals of today and ours, each with its rewards, its promise and its rounds."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pandas as pd

from compendium.modern_rivals import batched_rivals, selection_rivals, sequential_rivals
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sequential import SequentialRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import twelve_digits
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Problem

KNOWN_GAP = {"EBR told the gap": 0.999, "EBR told gap/10": 0.0999}  # ε over the smallest gap
Race = Callable[[Problem, int, float, float, int, int], pd.DataFrame]  # problem, T, ε, δ, runs, seed
Rival = Callable[..., pd.DataFrame]


class Runs(NamedTuple):
    """How many runs of a race.

    Attributes
    ----------
    batched, staged, single
        Of those in rounds, side by side; of those one reward of each arm, or one pull, at a time.
    closest
        Of the closest rival, on each setup.
    """

    batched: int
    staged: int
    single: int
    closest: tuple[int, int]

    def of(self, pace: str, setup: str) -> int:
        """The runs of an entrant of this pace on "Setup 1" or "Setup 2"."""
        count = getattr(self, pace)
        return int(count[setup != "Setup 1"] if pace == "closest" else count)


class Entrant(NamedTuple):
    """Who takes part.

    Attributes
    ----------
    rewards
        "Bernoulli" or "Gaussian": the rewards that its guarantee is about.
    guarantee, deadline
        What it promises with probability 1 − δ, and the rounds that it keeps to.
    race
        Pulls, rounds and arm of each run.
    pace
        Which of `Runs` applies.
    exact
        Whether the best arm itself is wanted: then ε is no part of the problem.
    """

    rewards: str
    guarantee: str
    deadline: str
    race: Race
    pace: str = "batched"
    exact: bool = False


# A race is a partial function, not a closure: its results are found again by what it is made of.
def simulated(make: Callable[[int, float, float], Algorithm]) -> Race:
    """The race of an algorithm of this package, made from T, ε and δ."""
    return partial(_simulated, make)


def _simulated(
    make: Callable[[int, float, float], Algorithm],
    problem: Problem,
    deadline: int,
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
) -> pd.DataFrame:
    return simulate(make(deadline, epsilon, delta), problem, runs, seed).to_frame()


def _sequential(
    rival: Rival, problem: Problem, deadline: int, epsilon: float, delta: float, runs: int, seed: int
) -> pd.DataFrame:
    return rival(problem, epsilon, delta, runs, seed)


def _looking(
    rival: Rival, problem: Problem, deadline: int, epsilon: float, delta: float, runs: int, seed: int
) -> pd.DataFrame:
    return rival(problem, epsilon, delta, runs, seed, looks=deadline)


def _exact(
    rival: Rival, problem: Problem, deadline: int, epsilon: float, delta: float, runs: int, seed: int
) -> pd.DataFrame:
    return rival(problem, delta, runs, seed)


def _told(
    share: float, problem: Problem, deadline: int, epsilon: float, delta: float, runs: int, seed: int
) -> pd.DataFrame:
    """Ours for the best arm itself: it is told that the smallest gap is above `share` times what it is."""
    below = float(twelve_digits(share * problem.gaps).min())
    return simulate(PausingElasticBatchRacing(deadline, below, delta), problem, runs, seed).to_frame()


def _one_stage(
    problem: Problem, deadline: int, epsilon: float, delta: float, runs: int, seed: int
) -> pd.DataFrame:
    return simulate(PausingElasticBatchRacing(1, epsilon, delta), problem, runs, seed).to_frame()


def _oracle(deadline: int, epsilon: float, delta: float) -> SequentialRacing:
    return SequentialRacing(epsilon, delta)


GOOD, ZONE, BEST = "ε-good arm", "best arm if gaps ≥ ε", "best arm"
OURS, CLOSEST = "pausing EBR", "T&S, mixture"
ENTRANTS: dict[str, Entrant] = {
    OURS: Entrant("Bernoulli", GOOD, "T", simulated(PausingElasticBatchRacing)),
    "sharp EBR": Entrant("Bernoulli", GOOD, "T", simulated(SharpElasticBatchRacing)),
    "Algorithm 1": Entrant("Bernoulli", GOOD, "T", simulated(ElasticBatchRacing)),
    "paper's oracle": Entrant(
        "Bernoulli",
        GOOD,
        "none",
        simulated(_oracle),
        "single",
    ),
    "KL-LUCB": Entrant("Bernoulli", GOOD, "none", partial(_sequential, sequential_rivals.kl_lucb), "single"),
    "KL-LUCB, own counts": Entrant(
        "Bernoulli", GOOD, "none", partial(_sequential, sequential_rivals.kl_lucb_own_counts), "single"
    ),
    "T&S": Entrant(
        "Bernoulli", GOOD, "none", partial(_sequential, sequential_rivals.track_and_stop), "single"
    ),
    "T&S, proportional": Entrant(
        "Bernoulli",
        GOOD,
        "none",
        partial(_sequential, sequential_rivals.track_and_stop_proportional),
        "single",
    ),
    CLOSEST: Entrant(
        "Bernoulli", GOOD, "none", partial(_sequential, sequential_rivals.track_and_stop_mixture), "closest"
    ),
    "Tri-BBAI": Entrant(
        "Bernoulli", BEST + ", δ → 0", "3", partial(_exact, batched_rivals.tri_bbai), exact=True
    ),
    "Opt-BBAI": Entrant("Bernoulli", BEST, "none", partial(_exact, batched_rivals.opt_bbai), exact=True),
    **{
        name: Entrant("Bernoulli", BEST, "T", partial(_told, share), exact=True)
        for name, share in KNOWN_GAP.items()
    },
    "pausing EBR, N": Entrant("Gaussian", GOOD, "T", simulated(PausingElasticBatchRacing)),
    "sharp EBR, N": Entrant("Gaussian", GOOD, "T", simulated(SharpElasticBatchRacing)),
    "EBR, N, T = 1": Entrant("Gaussian", GOOD, "1", _one_stage),
    "Bechhofer": Entrant("Gaussian", GOOD, "1", partial(_sequential, selection_rivals.bechhofer)),
    "Paulson": Entrant("Gaussian", ZONE, "none", partial(_sequential, selection_rivals.paulson), "staged"),
    "Paulson, looks": Entrant("Gaussian", ZONE, "T", partial(_looking, selection_rivals.paulson)),
    "Kim–Nelson": Entrant(
        "Gaussian", ZONE, "none", partial(_sequential, selection_rivals.kim_nelson), "staged"
    ),
    "Kim–Nelson, looks": Entrant("Gaussian", ZONE, "T", partial(_looking, selection_rivals.kim_nelson)),
}
# Fully sequential, for an ε-good arm and Bernoulli rewards, with a threshold that is proved.
PROVED = ("paper's oracle", "KL-LUCB", "KL-LUCB, own counts", "T&S", "T&S, proportional", CLOSEST)
