"""The term + ε/(n∧T) in the elimination rule: what it saves, and what it costs the proof."""

from collections.abc import Callable

import numpy as np

from ebr.findings import Finding
from ebr.lemmas import Case, tables, wrong_arms
from ebr.problems import Problem
from ebr.racing import ElasticBatchRacing
from ebr.simulation import simulate

__all__ = ["WithoutSlack", "c29", "savings"]

Race = Callable[..., ElasticBatchRacing]


class WithoutSlack(ElasticBatchRacing):
    """Algorithm 1 without the term + ε/(n∧T) in its elimination rule."""

    def slack(self, n_arms: int) -> float:
        """None."""
        return 0.0


def savings(
    problems: dict[str, Problem],
    deadline: int,
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
    make: Race = ElasticBatchRacing,
) -> dict[str, tuple[float, float]]:
    """The share of pulls that the slack saves on each problem, and its standard error."""
    shares = {}
    for name, problem in problems.items():
        races = (make(deadline, epsilon, delta), WithoutSlack(deadline, epsilon, delta))
        pulls = [simulate(race, problem, runs, seed).pulls for race in races]
        ratio = pulls[0].mean() / pulls[1].mean()
        relative = [p.std(ddof=1) / p.mean() / np.sqrt(runs) for p in pulls]
        shares[name] = (1 - ratio, ratio * float(np.hypot(*relative)))
    return shares


def c29(
    on_e: list[Case], on_narrow: list[Case], without: list[Case], savings: dict[str, tuple[float, float]]
) -> Finding:
    """Check C29: the term + ε/(n∧T) leaves correctness alone and only saves pulls.

    `without` has E's corners for a race that lacks the term; `savings` the share of pulls that it saves in
    random races, with a standard error, by problem.
    """
    pairs = zip(on_e, without, strict=True)
    dearer = sum(
        int((a.played.arm_pulls.sum(axis=1) > b.played.arm_pulls.sum(axis=1)).sum()) for a, b in pairs
    )
    wrong, wrong_without, wrong_narrow = wrong_arms(on_e), wrong_arms(without), wrong_arms(on_narrow)
    saves = all(saving > 5 * error for saving, error in savings.values())
    words = [f"{name} {100 * saving:.2f} ± {100 * error:.2f} %" for name, (saving, error) in savings.items()]
    evidence = (
        f"on E {wrong} of {tables(on_e)} tables go wrong with it and {wrong_without} without, on E′ "
        f"{wrong_narrow} with it; it costs more pulls in {dearer} tables; saved on average (± 1 s.e.): "
        + ", ".join(words)
    )
    return Finding(
        "C29",
        saves and wrong == 0 and dearer == 0,
        evidence,
        saves and wrong_narrow == 0 and wrong_without == 0,
    )
