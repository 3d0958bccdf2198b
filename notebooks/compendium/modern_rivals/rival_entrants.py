"""The entrants of notebook 16: rivals and our races, with their rewards, guarantees and deadlines."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pandas as pd

from compendium.modern_rivals.batched_rivals import opt_bbai, tri_bbai
from compendium.modern_rivals.selection_rivals import bechhofer, kim_nelson, paulson
from compendium.modern_rivals.sequential_rivals import JEFFREYS, sequential
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.shared.lineup import Maker
from compendium.shared.problem_sets import twelve_digits
from ebr.algorithms.baselines import SequentialRacing
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Problem

KNOWN_GAP = {"EBR told the gap": 0.999, "EBR told gap/10": 0.0999}  # ε over the smallest gap
Rival = Callable[..., pd.DataFrame]


class Runs(NamedTuple):
    """Numbers of runs.

    Attributes
    ----------
    batched, staged, single
        Of races in rounds; of races with one reward of each arm, or with one pull, at a time.
    closest, near, mixed
        Of the closest rival; of the next three, and of the others with a threshold that is proved here.
    staked
        Of staked EBR.
    """

    batched: int
    staged: int
    single: int
    closest: int
    near: int
    mixed: int
    staked: int


class Setting(NamedTuple):
    """The inputs of a race."""

    problem: Problem
    deadline: int
    epsilon: float
    delta: float
    runs: int
    seed: int


Race = Callable[[Setting], pd.DataFrame]


class Entrant(NamedTuple):
    """An algorithm that takes part.

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


# A race is a partial function, not a closure, so that kept results are found again by its parts.
def _simulated(make: Maker, at: Setting) -> pd.DataFrame:
    found = simulate(make(at.deadline, at.epsilon, at.delta), at.problem, at.runs, at.seed)
    return pd.DataFrame({"pulls": found.pulls, "rounds": found.rounds, "arm": found.arm})


def _sequential(rival: Rival, at: Setting, **more: object) -> pd.DataFrame:
    return rival(at.problem, at.epsilon, at.delta, at.runs, at.seed, **more)


def _looking(rival: Rival, at: Setting) -> pd.DataFrame:
    return _sequential(rival, at, looks=at.deadline)


def _exact(rival: Rival, at: Setting) -> pd.DataFrame:
    return rival(at.problem, at.delta, at.runs, at.seed)


def _told(share: float, at: Setting) -> pd.DataFrame:
    """Ours for the best arm itself: it is told that the smallest gap is above `share` times what it is."""
    below = float(twelve_digits(share * at.problem.gaps).min())
    return _simulated(PausingElasticBatchRacing, at._replace(epsilon=below))


def _one_stage(at: Setting) -> pd.DataFrame:
    return _simulated(PausingElasticBatchRacing, at._replace(deadline=1))


def _oracle(deadline: int, epsilon: float, delta: float) -> SequentialRacing:
    return SequentialRacing(epsilon, delta)


def ours(make: Maker, rewards: str = "Bernoulli", pace: str = "batched") -> Entrant:
    """An algorithm of `ebr`, made from T, ε and δ, for an ε-good arm in T rounds."""
    return Entrant(rewards, GOOD, "T", partial(_simulated, make), pace)


def _single(rule: str, prior: tuple[float, float] | None = None, pace: str = "mixed") -> Entrant:
    rival = partial(sequential, rule=rule, prior=prior)
    return Entrant("Bernoulli", GOOD, "none", partial(_sequential, rival), pace if prior else "single")


def raced(
    name: str, problem: Problem, epsilon: float, delta: float, runs: int, seed: int, deadline: int = 15
) -> pd.DataFrame:
    """Race an entrant by its name: pulls, rounds and arm of each run, and whether that arm is an error."""
    table = ENTRANTS[name].race(Setting(problem, deadline, epsilon, delta, runs, seed))
    return table.assign(error=~problem.is_good(table["arm"].to_numpy(), epsilon))


GOOD, ZONE, BEST = "ε-good arm", "best arm if gaps ≥ ε", "best arm"
OURS, IN_UNIT, PAUSING = "staked EBR", "staked EBR, [0, 1]", "pausing EBR"
NORMAL = "pausing EBR, normal"
CLOSEST = "Top-Two, mixture"
# The Beta prior of each rule's mixture, chosen in notebook 16; KT is Beta(½, ½).
MIXED = dict.fromkeys(("T&S", "EB-TC", "EB-TC, half"), (5.0, 1.0)) | dict.fromkeys(
    ("LUCB", "Top-Two"), (20.0, 3.0)
)
ENTRANTS: dict[str, Entrant] = {
    OURS: ours(StakedElasticBatchRacing, pace="staked"),
    IN_UNIT: ours(partial(StakedElasticBatchRacing, rewards="bounded"), pace="staked"),
    PAUSING: ours(PausingElasticBatchRacing),
    "sharp EBR": ours(SharpElasticBatchRacing),
    "Algorithm 1": ours(ElasticBatchRacing),
    "paper's oracle": Entrant("Bernoulli", GOOD, "none", partial(_simulated, _oracle), "single"),
    "KL-LUCB": _single("LUCB"),
    "T&S": _single("T&S, forced"),
    "EB-TC": _single("EB-TC"),
    "Top-Two, KT": _single("Top-Two", JEFFREYS, "near"),
    "Top-Two, Beta(5, 1)": _single("Top-Two", (5.0, 1.0), "near"),
    "LUCB, mixture": _single("LUCB", MIXED["LUCB"]),
    "T&S, mixture": _single("T&S", MIXED["T&S"]),
    "EB-TC, mixture": _single("EB-TC", MIXED["EB-TC"], "near"),
    "EB-TC ½, mixture": _single("EB-TC, half", MIXED["EB-TC, half"]),
    CLOSEST: _single("Top-Two", MIXED["Top-Two"], "closest"),
    "Tri-BBAI": Entrant("Bernoulli", BEST + ", δ → 0", "3", partial(_exact, tri_bbai), exact=True),
    "Opt-BBAI": Entrant("Bernoulli", BEST, "none", partial(_exact, opt_bbai), exact=True),
    **{
        name: Entrant("Bernoulli", BEST, "T", partial(_told, share), exact=True)
        for name, share in KNOWN_GAP.items()
    },
    NORMAL: ours(PausingElasticBatchRacing, "Gaussian"),
    "sharp EBR, normal": ours(SharpElasticBatchRacing, "Gaussian"),
    "EBR, normal, T = 1": Entrant("Gaussian", GOOD, "1", _one_stage),
    "Bechhofer": Entrant("Gaussian", GOOD, "1", partial(_sequential, bechhofer)),
    "Paulson": Entrant("Gaussian", ZONE, "none", partial(_sequential, paulson), "staged"),
    "Paulson, T looks": Entrant("Gaussian", ZONE, "T", partial(_looking, paulson)),
    "Kim–Nelson": Entrant("Gaussian", ZONE, "none", partial(_sequential, kim_nelson), "staged"),
    "Kim–Nelson, T looks": Entrant("Gaussian", ZONE, "T", partial(_looking, kim_nelson)),
}
# Fully sequential, for an ε-good arm and Bernoulli rewards, with thresholds published or proved here.
PUBLISHED = ("paper's oracle", "KL-LUCB", "T&S", "EB-TC")
WEAKER = (
    "Top-Two, KT",
    "Top-Two, Beta(5, 1)",
    "LUCB, mixture",
    "T&S, mixture",
    "EB-TC, mixture",
    "EB-TC ½, mixture",
)
PROVED = (*WEAKER, CLOSEST)
