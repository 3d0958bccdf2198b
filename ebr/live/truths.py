"""Truths that a design is tried on before its first pull: what the arms' means might be."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ebr.algorithms.game import Algorithm, check_places
from ebr.arrays import FloatArray
from ebr.live.arm_intervals import parameters_of
from ebr.models import IN_UNIT, REWARDS
from ebr.theory.problems import Bernoulli, Gaussian, Problem
from ebr.validation import one_of, whole

LEVELS = (0.1, 0.5, 0.9)  # of the best arm, where it matters: near 0 and 1 coins are easier to tell apart
FAR = 0.5  # the largest gap that is looked at
DOUBLINGS = 40  # of ε/2 at most, on the way there
MOST_GAPS = 8  # that are kept of them
Means = Problem | Sequence[float]


class Truth(NamedTuple):
    """What the arms' means might be: a name, the best mean, and the problem itself."""

    name: str
    best: float
    problem: Problem


def assumed_of(algorithm: Algorithm, rewards: str | None) -> str:
    """What is known of the rewards: what is said, else what the algorithm assumes, else "bounded"."""
    if rewards is not None:
        return one_of("rewards", rewards, REWARDS)
    assumed = parameters_of(algorithm).get("rewards")
    # A σ below ½ says more of rewards than that they are bounded: that no coin need be among them.
    return assumed or ("bounded" if algorithm.sigma >= 0.5 else "sub-Gaussian")


def default_truths(algorithm: Algorithm, n_arms: int, rewards: str) -> list[Truth]:
    """The usual grid for k of n arms: all tie; the others are worse by ε/2, ε, 2ε, … ½; one rival at ε.

    The best mean is 0.1, 0.5 and 0.9 for rewards in [0, 1], as far as there is room below it; for others 0.5,
    as only differences matter. The best come last: whoever breaks ties by the arms' order breaks them
    against the best. A control is never among them, unless all tie.
    """
    parameters, epsilon = parameters_of(algorithm), algorithm.epsilon
    k, control = parameters.get("k", 1), parameters.get("control")
    check_places(k, whole("n_arms", n_arms, 2))
    truths = []
    for best in LEVELS if rewards in IN_UNIT else (FAR,):
        for name, gaps in _shapes(epsilon, n_arms - k, min(best, FAR)).items():
            means = best - np.concatenate([gaps, np.zeros(k)])
            if control is not None and control >= n_arms - k:
                means[[control, n_arms - k - 1]] = means[[n_arms - k - 1, control]]
            truths.append(Truth(name, best, _problem(means, rewards, algorithm.sigma)))
    return truths


def _shapes(epsilon: float, others: int, far: float) -> dict[str, FloatArray]:
    """By their names the gaps of all arms but the best, none beyond `far`."""
    doubled = epsilon * 2.0 ** np.arange(-1, DOUBLINGS)
    near, *larger = doubled[doubled < far] if epsilon / 2 < far else [far]
    shapes = {"all tie": np.zeros(others)}
    if others > 1 and epsilon < far:
        shapes[f"one {epsilon:.3g} worse, rest far"] = np.append(np.full(others - 1, far), epsilon)
    for gap in [near, *larger[:1], *larger[1:][2 - MOST_GAPS :], far]:
        shapes[f"others {gap:.3g} worse"] = np.full(others, gap)
    return shapes


def named_truths(
    truths: Mapping[str, Means] | Sequence[Means], rewards: str, sigma: float, n_arms: int | None = None
) -> list[Truth]:
    """Check truths of one's own, by name or in a list: means, or problems; all of equally many arms."""
    if not isinstance(truths, Mapping):
        truths = {_spelled(each): each for each in truths}
    made = []
    for name, means in truths.items():
        try:
            problem = means if isinstance(means, Problem) else _problem(means, rewards, sigma)
        except (TypeError, ValueError) as error:
            raise ValueError(f"truth {name!r}: {error}") from None
        if n_arms not in (None, problem.n_arms):
            raise ValueError(
                f"truth {name!r} must have a mean for each of {n_arms} arms, got {problem.n_arms}"
            )
        n_arms = problem.n_arms
        made.append(Truth(str(name), float(problem.means.max()), problem))
    if not made:
        raise ValueError("truths must be one or more lists of means, got none")
    return made


def _problem(means: Sequence[float] | FloatArray, rewards: str, sigma: float) -> Problem:
    """Coins have the largest variance of all rewards in [0, 1] with their means; normal ones have σ."""
    values = np.asarray(means)
    return Bernoulli(values) if rewards in IN_UNIT else Gaussian(values, sigma)


def _spelled(means: Means) -> str:
    values = means.means.tolist() if isinstance(means, Problem) else np.ravel(means).tolist()
    return ", ".join(f"{value:g}" if isinstance(value, float | int) else repr(value) for value in values)
