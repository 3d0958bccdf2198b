"""Certified designs for the small problems of the suite: data, as the search for all takes ten minutes.

They are `ebr.certified_design`'s for the truths that it expects; none is told the problem's means.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from compendium.shared.problem_sets import Instance
from ebr.algorithms.certified import CertifiedElasticBatchRacing
from ebr.simulation.designs import certified_design
from ebr.theory.selection import bechhofer_count

FILE = files("compendium.stakes").joinpath("small_designs.json")
MOST_ARMS, MOST_REWARDS = 20, 2_100  # of a small problem; rewards of an arm if T were 1


def is_small(at: Instance) -> bool:
    """Whether a problem is small enough for a design to be sought; σ = ½."""
    most = bechhofer_count(at.problem.n_arms, at.epsilon, at.delta, 0.5)
    return at.problem.n_arms <= MOST_ARMS and most <= MOST_REWARDS


def searched(rewards: str, at: Instance) -> dict[str, Any]:
    """A row of the file, sought anew."""
    race = certified_design(at.problem.n_arms, at.deadline, at.epsilon, at.delta, rewards).race
    asked = {"rewards": rewards, "problem": at.kind, "n_arms": race.n_arms}
    asked |= {"epsilon": race.epsilon, "delta": race.delta}
    made = ("looks", "boundaries", "pruning", "floor")
    return asked | {name: getattr(race, name) for name in made}


@cache
def designs() -> dict[tuple[str, str], CertifiedElasticBatchRacing]:
    """The designs of the file, by rewards and problem."""
    rows = json.loads(FILE.read_text("utf-8"))
    return {
        (row["rewards"], row.pop("problem")): CertifiedElasticBatchRacing(
            **row | {name: tuple(row[name]) for name in ("looks", "boundaries")}
        )
        for row in rows
    }
