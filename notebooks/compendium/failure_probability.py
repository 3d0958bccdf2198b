"""How often algorithms fail: importance sampling, on problems found to be hard for them."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium import figures, lineup
from compendium.exact_failures import estimates_right
from compendium.findings import Evidence, Finding, counted, exceeds, measured
from compendium.lineup import WITHOUT_DEADLINE, Maker
from ebr.algorithms.elimination import AggressiveElimination
from ebr.simulation.importance import Estimate, failure
from ebr.theory.problems import Bernoulli, Gaussian, Problem

__all__ = [
    "ALGORITHMS",
    "Hard",
    "Space",
    "draw",
    "paid",
    "place",
    "promises_kept",
    "search",
    "shown",
    "worst",
]

JUST_ABOVE = 1 + 1e-6  # a gap of ε, seen as one by floating-point numbers
LEAST = {"sequential": 0.1}  # the smallest ε of a search, where races are too long below
LARGE_ERROR = 0.25  # a relative standard error beyond which an estimate is an order of magnitude at best
EDGE = 1e-4  # how close to 0 or 1 a mean may be
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
    deadline, n_arms, epsilon
        T, n and ε.
    top
        The best arm's mean.
    first, first_gap, second, second_gap
        How many arms are so far (in units of ε) from the best; all others are at ε, just wrong.
    """

    deadline: int
    n_arms: int
    epsilon: float
    top: float
    first: int = 0
    first_gap: float = 0.5
    second: int = 0
    second_gap: float = 0.5

    def problem(self, gaussian: bool = False) -> Problem:
        """The problem itself."""
        wrong = self.n_arms - 1 - self.first - self.second
        gaps = np.repeat(
            [0, self.first_gap, self.second_gap, JUST_ABOVE], [1, self.first, self.second, wrong]
        )
        means = self.top - gaps * self.epsilon
        return Gaussian(means, 0.5) if gaussian else Bernoulli(means)

    def centred(self) -> "Hard":
        """The same gaps around ½: with Gaussian rewards only differences of means count."""
        return self._replace(top=0.5 + self.epsilon / 2).tidy()

    def tidy(self) -> "Hard":
        """The same place, described in one way: a group without arms has a gap of ½, all means lie in (0, 1).

        Its numbers have the digits that every processor agrees on, since the races are seeded by the problem.
        """
        epsilon = figures.significant(self.epsilon)
        return self._replace(
            epsilon=epsilon,
            top=figures.significant(max(self.top, epsilon * JUST_ABOVE + EDGE)),
            first_gap=figures.significant(self.first_gap) if self.first else 0.5,
            second_gap=figures.significant(self.second_gap) if self.second else 0.5,
        )


class Space(NamedTuple):
    """Where a search looks: ε in a range, n from 2 to `most_arms` and T from 1 to `latest`."""

    least: float
    largest: float
    most_arms: int = 100
    latest: int = 15

    def fixed(self) -> list[Hard]:
        """Plain places: all others at ε, few arms and many, one round and many, ε large and small."""
        return [
            Hard(deadline, n_arms, epsilon, 0.5).centred()
            for n_arms in sorted({min(n, self.most_arms) for n in (2, 3, self.most_arms)})
            for deadline in sorted({1, min(2, self.latest), self.latest})
            for epsilon in sorted({self.least, self.largest})
        ]

    def anywhere(self, generator: np.random.Generator) -> Hard:
        """A random place: n and ε log-uniform, the means anywhere, often close to 0 or 1."""
        n_arms = int(np.exp(generator.uniform(math.log(2), math.log(self.most_arms + 1))))
        first, second, _ = generator.multinomial(n_arms - 2, generator.dirichlet([0.5, 0.5, 0.5]))
        first_gap, second_gap = generator.random(2)
        epsilon = math.exp(generator.uniform(math.log(self.least), math.log(self.largest)))
        # How far the worst arm is from 0, or the best from 1.
        edge = 10.0 ** generator.uniform(math.log10(EDGE), math.log10((1 - epsilon) / 2))
        top = float(generator.choice([epsilon * JUST_ABOVE + edge, 1 - edge]))
        deadline = int(generator.integers(1, self.latest + 1))
        return Hard(deadline, n_arms, epsilon, top, int(first), first_gap, int(second), second_gap).tidy()

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
    space = space._replace(least=min(max(space.least, LEAST.get(name, 0.0)), space.largest))
    found: dict[Hard, Estimate] = {}
    for candidate in _candidates(space, trials, seed, found):
        algorithm = ALGORITHMS[name](candidate.deadline, candidate.epsilon, delta)
        place = candidate.centred() if _gaussian(name) else candidate
        found[place] = failure(algorithm, place.problem(_gaussian(name)), runs, seed)
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


def _gaussian(name: str) -> bool:
    """Whether the algorithm is for Gaussian rewards; the others race Bernoulli arms."""
    return name == "sharp, Gaussian"


def place(row: pd.Series) -> Hard:
    """The problem in a row of `search`."""
    return Hard(**{name: kind(row[name]) for name, kind in Hard.__annotations__.items()})


def worst(name: str, searched: pd.DataFrame, runs: int, seed: int, delta: float, tried: int = 5) -> Hard:
    """The worst problem of a search: of the first few, estimated again with fresh runs, the worst.

    An estimate whose standard error is large is no reason to choose a problem; the first of the search is
    taken where all are.
    """
    places = [place(row) for _, row in searched.head(tried).iterrows()]
    again = pd.concat([paid({name: hard}, [delta], runs, 1, seed) for hard in places], ignore_index=True)
    known = again["relative_error"] <= LARGE_ERROR
    return places[int(again["log10"].where(known, -np.inf).argmax())]


def paid(
    worst: Mapping[str, Hard],
    deltas: Iterable[float],
    runs: int,
    plain: int,
    seed: int,
    algorithms: Mapping[str, Maker] = ALGORITHMS,
) -> pd.DataFrame:
    """δ asked against δ paid by each algorithm on its worst problem found.

    Columns: algorithm, delta, the place (`Hard`) and the `Estimate`.
    """
    rows = []
    for name, hard in worst.items():
        problem = hard.problem(_gaussian(name))
        for delta in deltas:
            estimate = failure(
                algorithms[name](hard.deadline, hard.epsilon, delta), problem, runs, seed, plain
            )
            rows.append({"algorithm": name, "delta": delta, **hard._asdict(), **estimate._asdict()})
    return pd.DataFrame(rows)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """`paid` for people: the place, the estimate, and what the plain races say."""
    pairs = zip(table["log10"], table["relative_error"], strict=True)
    estimates = [
        f"{10**log10:.2g}" if log10 > -300 and e <= LARGE_ERROR else f"10^{log10:.0f}" for log10, e in pairs
    ]
    columns = {
        "algorithm": table["algorithm"],
        "δ": table["delta"],
        "n": table["n_arms"],
        "T": table["deadline"],
        "ε": table["epsilon"].map("{:.2g}".format),
        "best mean": table["top"].map("{:.4g}".format),
        "stepping stones": table["first"] + table["second"],
        "estimate": estimates,
        "relative s.e.": table["relative_error"].map("{:.0%}".format),
        "failures": table["failures"],
        "99 % upper bound": table["upper"].map("{:.2g}".format),
    }
    return pd.DataFrame(columns).set_index("algorithm")


def promises_kept(table: pd.DataFrame, checked: pd.DataFrame) -> Finding:
    """Check X6 on `paid` and on `exact_failures.compared`.

    Every algorithm keeps δ on its worst problem found, by plain races; and the estimates' standard errors
    are right where the failure probability is known. Evidence: how many of the plain races' counts refute
    δ, who pays the largest share of its δ, and the estimates' distances from exact values.
    """
    counts = zip(table["failures"], table["runs"], table["delta"], strict=True)
    refuted = sum(exceeds(*count, tests=len(table)) for count in counts)
    worst = table.assign(share=10 ** table["log10"] / table["delta"]).sort_values("share").iloc[-1]
    error, races = worst["share"] * worst["relative_error"], int(worst["races"])
    where = (
        f"{worst['algorithm']}, δ = {worst['delta']:g}, n = {worst['n_arms']}, T = {worst['deadline']},"
        f" ε = {worst['epsilon']:.2g}"
    )
    largest = "failure probability over δ, the largest estimate"
    right, evidence = estimates_right(checked)
    evidence = (
        Evidence("failure counts that refute δ", refuted, f"of {len(table)}, plain races", allowed="0"),
        measured(largest, worst["share"], error, races, where, "≤ 1"),
        counted(
            "plain races that fail there", worst["failures"], worst["runs"], where, f"≤ {worst['delta']:g}"
        ),
        *evidence,
    )
    return Finding("X6", refuted == 0 and right, evidence, "simulation")


def draw(table: pd.DataFrame) -> Figure:
    """δ asked against δ paid, from `paid`; the vertical axis is compressed below 10⁻¹⁰."""
    figure, axis = plt.subplots(figsize=(figures.COLUMN, 3.6))
    for name in (name for name in lineup.LOOKS if name in set(table["algorithm"])):
        curve = table[table["algorithm"] == name]
        axis.plot(curve["delta"], curve["log10"], **lineup.LOOKS[name].line(ms=3, label=name))
    asked = np.geomspace(table["delta"].min() / 1.5, 1, 50)
    axis.fill_between(asked, np.log10(asked), 1, color="0.9", zorder=0)
    axis.plot(asked, np.log10(asked), color="tab:red", lw=0.7, zorder=5, label="δ itself")
    axis.annotate("more than δ", (0.002, -1.3), fontsize=7, color="0.3")
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=10, linscale=1.2)
    ticks = [0, -2, -4, -6, -8, -10, -30, -100, -300]
    axis.set_yticks(ticks, [f"$10^{{{tick}}}$" if tick else "1" for tick in ticks], minor=False)
    ends = (table["delta"].min() / 1.5, min(1.0, 1.5 * table["delta"].max()))
    axis.set(xlabel="δ asked", ylabel="δ paid on the worst problem found", ylim=(-1000, 0.2), xlim=ends)
    figure.legend(loc="outside lower center", ncols=3)
    return figure
