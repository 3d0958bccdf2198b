"""How often algorithms fail: importance sampling, on problems found to be hard for them."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from compendium.findings import Finding, exceeds
from compendium.lineup import Maker
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.elimination import AggressiveElimination, DeltaElimination
from ebr.algorithms.passive import Passive
from ebr.algorithms.sequential import SequentialRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.simulation.importance import Estimate, failure
from ebr.theory.problems import Bernoulli, Gaussian, Problem

__all__ = ["ALGORITHMS", "Hard", "paid", "place", "search", "x6"]

JUST_ABOVE = 1 + 1e-6  # a gap of ε, seen as one by floating-point numbers


def _sharp(rewards: str) -> Maker:
    return lambda deadline, epsilon, delta: SharpElasticBatchRacing(deadline, epsilon, delta, rewards=rewards)


ALGORITHMS: dict[str, Maker] = {
    "EBR": ElasticBatchRacing,
    "kδER": DeltaElimination,
    "AE": AggressiveElimination,
    "AE, rounded down": lambda t, e, d: AggressiveElimination(t, e, d, rounding="down"),
    "sequential": lambda t, e, d: SequentialRacing(e, d),
    "passive": lambda t, e, d: Passive(e, d),
    "sharp": _sharp("sub-Gaussian"),
    "sharp, [0, 1]": _sharp("bounded"),
    "sharp, Gaussian": _sharp("Gaussian"),
}
WITHOUT_DEADLINE = ("sequential", "passive")


class Hard(NamedTuple):
    """A problem where failures might hide: the best arm, two groups of stepping stones, wrong arms at ε.

    Attributes
    ----------
    deadline, n_arms
        T and n.
    top
        The best arm's mean.
    first, first_gap, second, second_gap
        How many arms are so far (in units of ε) from the best; all others are at ε, just wrong.
    """

    deadline: int
    n_arms: int
    top: float
    first: int = 0
    first_gap: float = 0.5
    second: int = 0
    second_gap: float = 0.5

    def problem(self, epsilon: float, gaussian: bool = False) -> Problem:
        """The problem itself."""
        wrong = self.n_arms - 1 - self.first - self.second
        gaps = np.repeat(
            [0, self.first_gap, self.second_gap, JUST_ABOVE], [1, self.first, self.second, wrong]
        )
        means = self.top - gaps * epsilon
        return Gaussian(means, 0.5) if gaussian else Bernoulli(means)


def search(
    name: str,
    trials: int,
    runs: int,
    seed: int,
    epsilon: float = 0.1,
    delta: float = 0.01,
    most_arms: int = 100,
    latest: int = 15,
) -> pd.DataFrame:
    """Look for a problem on which an algorithm fails often: one row a problem, the worst first.

    The first trials are fixed (all others at ε, few arms and many, one round and many), those up to half of
    them random, the rest random changes of the worst so far. The worst of many noisy estimates is too high by
    its nature: estimate it again.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 10]))
    latest = 1 if name in WITHOUT_DEADLINE else latest
    found: dict[Hard, Estimate] = {}
    fixed = [
        Hard(t, n, 0.5 + epsilon / 2)
        for n in sorted({min(n, most_arms) for n in (2, 3, 10, most_arms)})
        for t in sorted({1, min(2, latest), latest})
    ]
    for trial in range(trials):
        if trial < len(fixed):
            candidate = fixed[trial]
        elif trial < trials // 2:
            candidate = _anywhere(generator, epsilon, most_arms, latest)
        else:
            worst = max(found, key=lambda place: found[place].log10)
            candidate = _near(worst, generator, epsilon, most_arms, latest)
        algorithm = ALGORITHMS[name](candidate.deadline, epsilon, delta)
        problem = candidate.problem(epsilon, name.endswith("Gaussian"))
        found[candidate] = failure(algorithm, problem, runs, seed)
    frame = pd.DataFrame([{**place._asdict(), **estimate._asdict()} for place, estimate in found.items()])
    return frame.sort_values("log10", ascending=False, ignore_index=True)


def place(row: pd.Series) -> Hard:
    """The problem in a row of `search`."""
    return Hard(**{name: kind(row[name]) for name, kind in Hard.__annotations__.items()})


def _anywhere(generator: np.random.Generator, epsilon: float, most_arms: int, latest: int) -> Hard:
    """A random place: the number of arms log-uniform, the means anywhere, often close to 0 or 1."""
    n_arms = int(np.exp(generator.uniform(math.log(2), math.log(most_arms + 1))))
    first, second, _ = generator.multinomial(n_arms - 2, generator.dirichlet([0.5, 0.5, 0.5]))
    first_gap, second_gap = generator.random(2)
    # How far the worst arm is from 0, or the best from 1.
    edge = 10.0 ** generator.uniform(-4, math.log10((1 - epsilon) / 2))
    top = float(generator.choice([epsilon * JUST_ABOVE + edge, 1 - edge]))
    deadline = int(generator.integers(1, latest + 1))
    return _tidy(Hard(deadline, n_arms, top, int(first), first_gap, int(second), second_gap))


def _near(place: Hard, generator: np.random.Generator, epsilon: float, most_arms: int, latest: int) -> Hard:
    """A random change of a place: some of its numbers are another's."""
    other = _anywhere(generator, epsilon, most_arms, latest)._asdict()
    changed = place._replace(**{name: value for name, value in other.items() if generator.random() < 0.3})
    room = changed.n_arms - 2
    first = min(changed.first, room)
    return _tidy(changed._replace(first=first, second=min(changed.second, room - first)))


def _tidy(place: Hard) -> Hard:
    """The same place, described in one way: a group without arms has a gap of ½."""
    first_gap = place.first_gap if place.first else 0.5
    return place._replace(first_gap=first_gap, second_gap=place.second_gap if place.second else 0.5)


def paid(
    worst: dict[str, Hard],
    deltas: Iterable[float],
    runs: int,
    plain: int,
    seed: int,
    epsilon: float = 0.1,
    algorithms: dict[str, Maker] = ALGORITHMS,
) -> pd.DataFrame:
    """δ asked against δ paid by each algorithm on its worst problem found.

    Columns: algorithm, delta, the place (`Hard`) and the `Estimate`.
    """
    rows = []
    for name, hard in worst.items():
        problem = hard.problem(epsilon, name.endswith("Gaussian"))
        for delta in deltas:
            estimate = failure(algorithms[name](hard.deadline, epsilon, delta), problem, runs, seed, plain)
            rows.append({"algorithm": name, "delta": delta, **hard._asdict(), **estimate._asdict()})
    return pd.DataFrame(rows)


def x6(table: pd.DataFrame) -> Finding:
    """Check X6 on `paid`: every algorithm keeps δ on its worst problem found."""
    counts = zip(table["failures"], table["runs"], table["delta"], strict=True)
    refuted = [count for count in counts if exceeds(*count, tests=len(table))]
    worst = table.assign(share=10 ** table["log10"] / table["delta"]).sort_values("share").iloc[-1]
    evidence = (
        f"{len(refuted)} of {len(table)} are refuted by {table['runs'].max()} plain races each; the largest "
        f"share of δ, {worst['share']:.2f} ± {worst['share'] * worst['relative_error']:.1g} (1 s.e.), for "
        f"{worst['algorithm']} at δ = {worst['delta']:g}, n = {worst['n_arms']}, T = {worst['deadline']}"
    )
    return Finding("X6", not refuted, evidence)
