"""How often algorithms fail: importance sampling, on problems found to be hard for them."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium import figures, lineup
from compendium.findings import Evidence, Finding, counted, exceeds, measured
from compendium.lineup import WITHOUT_DEADLINE, Maker
from ebr.algorithms.elimination import AggressiveElimination
from ebr.simulation.importance import Estimate, failure
from ebr.theory.problems import Bernoulli, Gaussian, Problem

__all__ = ["ALGORITHMS", "Hard", "Space", "draw", "paid", "place", "promises_kept", "search", "shown"]

JUST_ABOVE = 1 + 1e-6  # a gap of ε, seen as one by floating-point numbers
ALGORITHMS: dict[str, Maker] = {
    **lineup.ALGORITHMS,
    "AE, rounded down": lambda t, e, d: AggressiveElimination(t, e, d, rounding="down"),
    "sharp": lineup.sharp("sub-Gaussian"),
    "sharp, [0, 1]": lineup.sharp("bounded"),
    "sharp, Gaussian": lineup.sharp("Gaussian"),
}


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

    def tidy(self) -> "Hard":
        """The same place, described in one way: a group without arms has a gap of ½.

        Its numbers have the digits that every processor agrees on, since the races are seeded by the problem.
        """
        return self._replace(
            top=figures.significant(self.top),
            first_gap=figures.significant(self.first_gap) if self.first else 0.5,
            second_gap=figures.significant(self.second_gap) if self.second else 0.5,
        )


class Space(NamedTuple):
    """Where a search looks: problems for this ε, with n from 2 to `most_arms` and T from 1 to `latest`."""

    epsilon: float
    most_arms: int = 100
    latest: int = 15

    def fixed(self) -> list[Hard]:
        """Plain places: all others at ε, few arms and many, one round and many."""
        return [
            Hard(deadline, n_arms, 0.5 + self.epsilon / 2)
            for n_arms in sorted({min(n, self.most_arms) for n in (2, 3, 10, self.most_arms)})
            for deadline in sorted({1, min(2, self.latest), self.latest})
        ]

    def anywhere(self, generator: np.random.Generator) -> Hard:
        """A random place: the number of arms log-uniform, the means anywhere, often close to 0 or 1."""
        n_arms = int(np.exp(generator.uniform(math.log(2), math.log(self.most_arms + 1))))
        first, second, _ = generator.multinomial(n_arms - 2, generator.dirichlet([0.5, 0.5, 0.5]))
        first_gap, second_gap = generator.random(2)
        # How far the worst arm is from 0, or the best from 1.
        edge = 10.0 ** generator.uniform(-4, math.log10((1 - self.epsilon) / 2))
        top = float(generator.choice([self.epsilon * JUST_ABOVE + edge, 1 - edge]))
        deadline = int(generator.integers(1, self.latest + 1))
        return Hard(deadline, n_arms, top, int(first), first_gap, int(second), second_gap).tidy()

    def near(self, place: Hard, generator: np.random.Generator) -> Hard:
        """A random change of a place: some of its numbers are another's."""
        other = self.anywhere(generator)._asdict()
        changed = place._replace(**{name: value for name, value in other.items() if generator.random() < 0.3})
        room = changed.n_arms - 2
        first = min(changed.first, room)
        return changed._replace(first=first, second=min(changed.second, room - first)).tidy()


def search(name: str, trials: int, runs: int, seed: int, delta: float, space: Space) -> pd.DataFrame:
    """Look for a problem on which an algorithm fails often: one row a problem, the worst first.

    The worst of many noisy estimates is too high by its nature: estimate it again.
    """
    if name in WITHOUT_DEADLINE:
        space = space._replace(latest=1)
    found: dict[Hard, Estimate] = {}
    for candidate in _candidates(space, trials, seed, found):
        algorithm = ALGORITHMS[name](candidate.deadline, space.epsilon, delta)
        found[candidate] = failure(algorithm, _problem(name, candidate, space.epsilon), runs, seed)
    frame = pd.DataFrame([{**place._asdict(), **estimate._asdict()} for place, estimate in found.items()])
    return frame.sort_values("log10", ascending=False, ignore_index=True)


def _candidates(space: Space, trials: int, seed: int, found: Mapping[Hard, Estimate]) -> Iterator[Hard]:
    """The fixed places, random ones up to half of the trials, then random changes of the worst so far.

    Each is looked at, and stands in `found`, before the next is made.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 10]))
    fixed = space.fixed()
    for trial in range(trials):
        if trial < len(fixed):
            yield fixed[trial]
        elif trial < trials // 2:
            yield space.anywhere(generator)
        else:
            yield space.near(max(found, key=lambda place: found[place].log10), generator)


def _problem(name: str, hard: Hard, epsilon: float) -> Problem:
    """The problem, with the rewards that the algorithm is for."""
    return hard.problem(epsilon, gaussian=name.endswith("Gaussian"))


def place(row: pd.Series) -> Hard:
    """The problem in a row of `search`."""
    return Hard(**{name: kind(row[name]) for name, kind in Hard.__annotations__.items()})


def paid(
    worst: Mapping[str, Hard],
    deltas: Iterable[float],
    runs: int,
    plain: int,
    seed: int,
    epsilon: float,
    algorithms: Mapping[str, Maker] = ALGORITHMS,
) -> pd.DataFrame:
    """δ asked against δ paid by each algorithm on its worst problem found.

    Columns: algorithm, delta, the place (`Hard`) and the `Estimate`.
    """
    rows = []
    for name, hard in worst.items():
        problem = _problem(name, hard, epsilon)
        for delta in deltas:
            estimate = failure(algorithms[name](hard.deadline, epsilon, delta), problem, runs, seed, plain)
            rows.append({"algorithm": name, "delta": delta, **hard._asdict(), **estimate._asdict()})
    return pd.DataFrame(rows)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """`paid` for people: the place, the estimate, and what the plain races say."""
    estimates = [f"{10**log10:.2g}" if log10 > -300 else f"10^{log10:.0f}" for log10 in table["log10"]]
    columns = {
        "algorithm": table["algorithm"],
        "δ": table["delta"],
        "n": table["n_arms"],
        "T": table["deadline"],
        "best mean": table["top"].map("{:.4g}".format),
        "stepping stones": table["first"] + table["second"],
        "estimate": estimates,
        "relative s.e.": table["relative_error"].map("{:.0%}".format),
        "failures": table["failures"],
        "99 % upper bound": table["upper"].map("{:.2g}".format),
    }
    return pd.DataFrame(columns).set_index("algorithm")


def promises_kept(table: pd.DataFrame) -> Finding:
    """Check X6 on `paid`: every algorithm keeps δ on its worst problem found.

    Evidence: how many of the plain races' counts refute δ, and who pays the largest share of its δ.
    """
    counts = zip(table["failures"], table["runs"], table["delta"], strict=True)
    refuted = sum(exceeds(*count, tests=len(table)) for count in counts)
    worst = table.assign(share=10 ** table["log10"] / table["delta"]).sort_values("share").iloc[-1]
    error, races = worst["share"] * worst["relative_error"], int(worst["races"])
    where = f"{worst['algorithm']}, δ = {worst['delta']:g}, n = {worst['n_arms']}, T = {worst['deadline']}"
    largest = "failure probability over δ, the largest estimate"
    evidence = (
        Evidence("failure counts that refute δ", refuted, f"of {len(table)}, plain races", allowed="0"),
        measured(largest, worst["share"], error, races, where, "≤ 1"),
        counted(
            "plain races that fail there", worst["failures"], worst["runs"], where, f"≤ {worst['delta']:g}"
        ),
    )
    return Finding("X6", refuted == 0, evidence, "simulation")


def draw(table: pd.DataFrame) -> Figure:
    """δ asked against δ paid, from `paid`; the vertical axis is compressed below 10⁻¹⁰."""
    figure, axis = plt.subplots(figsize=(figures.COLUMN, 3.6))
    for name in (name for name in lineup.LOOKS if name in set(table["algorithm"])):
        curve = table[table["algorithm"] == name]
        axis.plot(curve["delta"], curve["log10"], **lineup.LOOKS[name].line(ms=3, label=name))
    ends = np.array([table["delta"].min(), table["delta"].max()])
    axis.fill_between(ends, np.log10(ends), 1, color="0.9", zorder=0)
    axis.annotate("more than δ", (0.002, -1.3), fontsize=7, color="0.3")
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=10, linscale=1.2)
    ticks = [0, -2, -4, -6, -8, -10, -30, -100, -300]
    axis.set_yticks(ticks, [f"$10^{{{tick}}}$" if tick else "1" for tick in ticks], minor=False)
    axis.set(xlabel="δ asked", ylabel="δ paid on the worst problem found", ylim=(-1000, 0.2))
    figure.legend(loc="outside lower center", ncols=3)
    return figure
