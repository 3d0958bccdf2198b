"""What the benchmark times: algorithms, rivals, problems."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd
from compendium import batched_rivals, selection_rivals, sequential_rivals

import ebr
from ebr.algorithms.game import Algorithm
from ebr.theory.problems import Problem

__all__ = [
    "DELTA",
    "EPSILON",
    "MEMORY",
    "RIVALS",
    "ROUND_BASED",
    "ROUND_BASED_RUNS",
    "SEQUENTIAL_RUNS",
    "SETUPS",
]

EPSILON = DELTA = 0.01
SEQUENTIAL_RUNS, ROUND_BASED_RUNS = 100, 1000
SETUPS: dict[str, Problem] = {"Setup 1": ebr.setup_1(), "Setup 2": ebr.setup_2()}
NORMAL: dict[str, Problem] = {name: ebr.Gaussian(setup.means, 0.5) for name, setup in SETUPS.items()}


class Case(NamedTuple):
    """A round-based algorithm, the problems that it is timed on, and whether there is a target for it."""

    algorithm: Algorithm
    problems: dict[str, Problem] = SETUPS
    has_target: bool = True
    remembers: bool = False  # so that its first race takes longer


def modelled(algorithm: type, name: str, **options: bool) -> dict[str, Case]:
    """An algorithm that is told what is known of the rewards, in each model that it knows."""
    race = functools.partial(algorithm, 15, EPSILON, DELTA)
    return {
        f"{name}, bounded": Case(race(rewards="bounded"), has_target=False, **options),
        f"{name}, Gaussian": Case(race(rewards="Gaussian"), NORMAL, has_target=False, **options),
        f"{name}, sub-Gaussian": Case(race(rewards="sub-Gaussian"), has_target=False, **options),
    }


ROUND_BASED: dict[str, Case] = {
    "EBR, T = 1": Case(ebr.ElasticBatchRacing(1, EPSILON, DELTA)),
    "EBR, T = 15": Case(ebr.ElasticBatchRacing(15, EPSILON, DELTA)),
    "EBR, T = 50": Case(ebr.ElasticBatchRacing(50, EPSILON, DELTA)),
    "kδER, T = 15": Case(ebr.DeltaElimination(15, EPSILON, DELTA)),
    "AE, T = 15": Case(ebr.AggressiveElimination(15, EPSILON, DELTA)),
    "Passive": Case(ebr.Passive(EPSILON, DELTA)),
    "pausing, Bernoulli": Case(
        ebr.PausingElasticBatchRacing(15, EPSILON, DELTA, rewards="Bernoulli"), remembers=True
    ),
    **modelled(ebr.PausingElasticBatchRacing, "pausing", remembers=True),
    **modelled(ebr.SharpElasticBatchRacing, "sharp"),
}
Rival = Callable[[Any, int], pd.DataFrame]  # of a problem and a number of runs: a table with the pulls
RIVALS: dict[str, tuple[dict[str, Problem], int, Rival]] = {
    "KL-LUCB": (SETUPS, 2, lambda problem, runs: sequential_rivals.kl_lucb(problem, EPSILON, DELTA, runs, 0)),
    "Track-and-Stop": (
        SETUPS,
        1,
        lambda problem, runs: sequential_rivals.track_and_stop(problem, EPSILON, DELTA, runs, 0),
    ),
    "Tri-BBAI": (SETUPS, 1000, lambda problem, runs: batched_rivals.tri_bbai(problem, DELTA, runs, 0)),
    "Opt-BBAI": (SETUPS, 1000, lambda problem, runs: batched_rivals.opt_bbai(problem, DELTA, runs, 0)),
    "Paulson": (NORMAL, 20, lambda problem, runs: selection_rivals.paulson(problem, EPSILON, DELTA, runs, 0)),
    "Paulson, 15 looks": (
        NORMAL,
        1000,
        lambda problem, runs: selection_rivals.paulson(problem, EPSILON, DELTA, runs, 0, looks=15),
    ),
    "Kim and Nelson": (
        NORMAL,
        20,
        lambda problem, runs: selection_rivals.kim_nelson(problem, EPSILON, DELTA, runs, 0),
    ),
    "Bechhofer": (
        NORMAL,
        1000,
        lambda problem, runs: selection_rivals.bechhofer(problem, EPSILON, DELTA, runs, 0),
    ),
}
MEMORY = [
    ("Sequential", "Setup 2, ε = 0.001", "ebr.SequentialRacing(0.001, 0.01), ebr.setup_2(), 100"),
    ("EBR, T = 15", "Setup 1, ε = 0.01", "ebr.ElasticBatchRacing(15, 0.01, 0.01), ebr.setup_1(), 1000"),
    (
        "EBR, T = 15",
        "Setup 1, ε = 0.01, n = 100,000",
        "ebr.ElasticBatchRacing(15, 0.01, 0.01), ebr.setup_1(100_000), 100",
    ),
]
