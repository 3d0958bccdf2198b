"""Truths, which are what the arms' means might be: named, checked, and raced on by simulated experiments."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ebr.algorithms.game import Algorithm
from ebr.arrays import BoolArray, FloatArray
from ebr.live.terms import UNIT, Scale
from ebr.models import IN_UNIT
from ebr.simulation.simulate import Simulation, simulate
from ebr.theory.problems import Bernoulli, Gaussian, Problem
from ebr.validation import numbers

MOST_OF = 0.9  # of the races, that are over within so many pulls and rounds
LEVEL = 0.75  # of the best arm in a plan's usual truths, as a part of the scale
FAR = 0.5  # the largest gap that is looked at, as a part of it
Means = Problem | Sequence[float] | FloatArray


class Truth(NamedTuple):
    """What the arms' means might be: a name, the best mean in the rewards' units, and the problem inside."""

    name: str
    best: float
    problem: Problem


def usual_truths(n_arms: int, race: Algorithm, known: str) -> list[Truth]:
    """The truths that a plan looks at if none are given."""
    hard, others = min(2 * race.epsilon, FAR), n_arms - race.k
    gaps = {"hard": np.full(others, hard), "spread": np.linspace(hard, FAR, others)}
    gaps |= {"easy": np.full(others, FAR), "alike": np.zeros(others)}
    means = {name: LEVEL - np.append(np.zeros(race.k), gap) for name, gap in gaps.items()}
    return named_truths(means, known, race.sigma)


def named_truths(
    truths: Mapping[str, Means] | Sequence[Means],
    rewards: str,
    sigma: float,
    n_arms: int | None = None,
    scale: Scale = UNIT,
) -> list[Truth]:
    """Check truths, by name or in a list: means in the rewards' units, or problems; of equally many arms."""
    if isinstance(truths, Mapping):
        named = list(truths.items())
    else:
        named = [(_spelled(each), each) for each in truths]
        if len(dict(named)) < len(named):  # some print alike
            named = [(_spelled(each, exactly=True), each) for each in truths]
    made = []
    for name, means in named:
        try:
            problem = means if isinstance(means, Problem) else problem_of(means, rewards, sigma, scale)
        except (TypeError, ValueError) as error:
            raise ValueError(f"truth {name!r}: {error}") from None
        if n_arms not in (None, problem.n_arms):
            raise ValueError(
                f"truth {name!r} must have a mean for each of {n_arms} arms, got {problem.n_arms}"
            )
        n_arms = problem.n_arms
        made.append(Truth(str(name), scale.outside(float(problem.means.max())), problem))
    if not made:
        raise ValueError("truths must be one or more lists of means, got none")
    return made


def problem_of(
    means: Sequence[float] | FloatArray, rewards: str, sigma: float, scale: Scale = UNIT
) -> Problem:
    """Coins have the largest variance of all rewards in the support with their means; normal ones have σ.

    Of rewards without a support only differences matter: gaps are kept, but for those beyond the scale, 2σ.
    """
    values = (numbers("means", means, 2) - scale.worst) / (scale.best - scale.worst)
    if rewards in IN_UNIT:
        if scale != UNIT and (out := (values < 0) | (values > 1)).any():
            ends = f"[{min(scale.worst, scale.best):g}, {max(scale.worst, scale.best):g}]"
            raise ValueError(f"means must lie in {ends}, got {np.asarray(means)[out][0]:g}")
        return Bernoulli(values)
    within = values.min() >= 0 and values.max() <= 1
    return Gaussian(values if within else np.maximum(values - values.max() + 1, 0), sigma)


def _spelled(means: Means, exactly: bool = False) -> str:
    values = means.means.tolist() if isinstance(means, Problem) else np.ravel(means).tolist()
    short = not exactly
    return ", ".join(f"{it:g}" if short and isinstance(it, float | int) else repr(it) for it in values)


def row_of(race: Algorithm, truth: Truth, runs: int, seed: int = 0) -> dict[str, Any]:
    """What comes of simulated experiments on a truth."""
    result = simulate(race, truth.problem, runs, seed)
    pulls, right = result.pulls, is_right(race, result)
    return {
        "truth": truth.name,
        "best": truth.best,
        "right": float(right.mean()),
        "pulls": float(pulls.mean()),
        "error": float(pulls.std(ddof=1) / np.sqrt(runs)) if runs > 1 else np.nan,
        "pulls_90": int(np.quantile(pulls, MOST_OF, method="inverted_cdf")),
        "rounds": float(result.rounds.mean()),
        "rounds_90": int(np.quantile(result.rounds, MOST_OF, method="inverted_cdf")),
        "runs": runs,
        "failures": int((~right).sum()),
    }


def is_right(algorithm: Algorithm, result: Simulation) -> BoolArray:
    """Which choices are right: ε-optimal ones, and a control that no arm is better than by the margin."""
    # Means are typed: an arm that is worse by ε, 0.6 − 0.4 say, is wrong however the difference is rounded.
    right = result.correct(algorithm.epsilon * (1 - 1e-9))
    if algorithm.control is not None and algorithm.margin is not None:
        enough = result.problem.is_good(result.arm, algorithm.margin * (1 - 1e-9))
        right |= (result.arm == algorithm.control) & enough
    return right
