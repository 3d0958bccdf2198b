"""What the benchmark times: algorithms, rivals, problems."""

import functools
from collections.abc import Callable
from typing import NamedTuple

from compendium.modern_rivals.rival_entrants import ENTRANTS, Entrant

import ebr
from ebr.algorithms.game import Algorithm
from ebr.models import REWARDS
from ebr.theory.problems import Problem

DEADLINE, EPSILON, DELTA = 15, 0.01, 0.01
SEQUENTIAL_RUNS, ROUND_BASED_RUNS = 100, 1000
SETUPS: dict[str, Problem] = {"Setup 1": ebr.setup_1(), "Setup 2": ebr.setup_2()}
NORMAL: dict[str, Problem] = {name: ebr.Gaussian(setup.means, 0.5) for name, setup in SETUPS.items()}


class Case(NamedTuple):
    """A round-based algorithm, what is known of its rewards, and whether there is a target for it."""

    algorithm: Algorithm
    rewards: str = "Bernoulli"
    has_target: bool = True
    remembers: bool = False  # so that its first race takes longer


def problems_of(rewards: str) -> dict[str, Problem]:
    """The two setups, with normal rewards where these are known to be."""
    return NORMAL if rewards == "Gaussian" else SETUPS


def modelled(algorithm: type, name: str, target: str = "", remembers: bool = False) -> dict[str, Case]:
    """An algorithm that is told what is known of the rewards, in each model that there is."""
    race = functools.partial(algorithm, DEADLINE, EPSILON, DELTA)
    return {
        f"{name}, {model}": Case(race(rewards=model), model, model == target, remembers) for model in REWARDS
    }


ROUND_BASED: dict[str, Case] = {
    **{f"EBR, T = {t}": Case(ebr.ElasticBatchRacing(t, EPSILON, DELTA)) for t in (1, 15, 50)},
    "kδER, T = 15": Case(ebr.DeltaElimination(DEADLINE, EPSILON, DELTA)),
    "AE, T = 15": Case(ebr.AggressiveElimination(DEADLINE, EPSILON, DELTA)),
    "Passive": Case(ebr.Passive(EPSILON, DELTA)),
    **modelled(ebr.PausingElasticBatchRacing, "pausing", target="Bernoulli", remembers=True),
    **modelled(ebr.SharpElasticBatchRacing, "sharp"),
}
# The rivals of notebook 16: all who take part there and are not ours.
OURS = ("EBR", "Algorithm 1", "paper's oracle")
RIVALS: dict[str, Entrant] = {
    name: entrant for name, entrant in ENTRANTS.items() if not any(word in name for word in OURS)
}
RIVAL_RUNS = {"batched": 1000, "staged": 20, "single": 1, "closest": 1}  # by their pace

# Raced on a million arms: what makes them, given T, and the most time that they may take, × the bare draws.
LARGE: dict[str, tuple[Callable[[int], Algorithm], float]] = {
    "EBR": (lambda deadline: ebr.ElasticBatchRacing(deadline, EPSILON, DELTA), 2.0),
    "EBR, k = 5": (lambda deadline: ebr.ElasticBatchRacing(deadline, EPSILON, DELTA, k=5), 2.0),
    "sharp": (lambda deadline: ebr.SharpElasticBatchRacing(deadline, EPSILON, DELTA), 2.0),
    "sharp, k = 5": (lambda deadline: ebr.SharpElasticBatchRacing(deadline, EPSILON, DELTA, k=5), 2.5),
    "pausing": (lambda deadline: ebr.PausingElasticBatchRacing(deadline, EPSILON, DELTA), 2.5),
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
