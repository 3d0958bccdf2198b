"""How often algorithms fail: importance sampling, on problems found to be hard for them."""

from collections.abc import Iterable, Iterator, Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from compendium.failure_probability import pausing_shares
from compendium.failure_probability.exact_failures import FORMS, estimates_right
from compendium.failure_probability.hard_problems import Hard, Space
from compendium.failure_probability.importance import Estimate, failure
from compendium.shared import figures, lineup
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding, counted, exceeds, measured
from compendium.shared.lineup import WITHOUT_DEADLINE, Maker
from ebr.algorithms.baselines import AggressiveElimination

# The smallest ε of a search; below it races are too long, or limits of sums too many to compute.
LEAST = {"sequential": 0.1, "pausing, Bernoulli": 0.05}
LARGE_ERROR = 0.25  # beyond this relative standard error an estimate is only an order of magnitude


ALGORITHMS: dict[str, Maker] = {
    **lineup.ALGORITHMS,
    "AE, rounded down": lambda t, e, d: AggressiveElimination(t, e, d, rounding="down"),
    **FORMS,
}
SMALL_MEANS = ("sharp, [0, 1]", "pausing, [0, 1]", "pausing, Bernoulli")  # whose tests depend on the means
SLOW = (*SMALL_MEANS, "sequential")


def search(name: str, trials: int, runs: int, seed: int, delta: float, space: Space) -> pd.DataFrame:
    """Look for a problem on which an algorithm fails often: one row per problem, the worst first.

    The worst of many noisy estimates is too high by selection: estimate it again.
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
    """The fixed places, random ones for half of the other trials, then random changes of the worst so far.

    Each is estimated, and entered in `found`, before the next is made.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 10]))
    fixed = space.fixed()
    anywhere = (len(fixed) + trials) // 2
    for trial in range(trials):
        if trial < len(fixed):
            yield fixed[trial]
        elif trial < anywhere:
            yield space.anywhere(generator)
        else:
            yield space.near(max(found, key=lambda place: found[place].log10), generator)


def _gaussian(name: str) -> bool:
    """Whether the algorithm is for Gaussian rewards; the others race Bernoulli arms."""
    return name.endswith("Gaussian")


def place(row: pd.Series) -> Hard:
    """The problem in a row of `search`."""
    return Hard(**{name: kind(row[name]) for name, kind in Hard.__annotations__.items()})


def worst(name: str, searched: pd.DataFrame, runs: int, seed: int, delta: float, tried: int = 10) -> Hard:
    """The worst problem of a search: of the first few, estimated again with fresh runs, the worst.

    An estimate with a large standard error does not count; where all have one, the surest is taken.
    """
    places = [place(row) for _, row in searched.head(tried).iterrows()]
    again = pd.concat([paid({name: hard}, [delta], runs, 0, seed) for hard in places], ignore_index=True)
    known = again["relative_error"] <= LARGE_ERROR
    if not known.any():
        return places[int(again["relative_error"].where(again["log10"] > -np.inf, np.inf).argmin())]
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
            algorithm = algorithms[name](hard.deadline, hard.epsilon, delta)
            estimate = failure(algorithm, problem, runs, seed, plain)
            rows.append({"algorithm": name, "delta": delta, **hard._asdict(), **estimate._asdict()})
    return pd.DataFrame(rows)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """`paid` as a table to read: the place, the estimate, and the plain races."""
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


def promises_kept(table: pd.DataFrame, checked: pd.DataFrame, shares: pd.DataFrame) -> Finding:
    """Check X6 on `paid`, on `exact_failures.compared` and on `pausing_shares.shares`.

    Every algorithm keeps δ on its worst problem found, by plain races; the estimates' standard errors are
    right where the failure probability is known; and pausing EBR keeps δ where its failure probability is
    computed. Evidence: how many counts of plain races refute δ, which algorithm uses the largest share of δ,
    the estimates' distances from exact values, and the largest exact shares.
    """
    counts = zip(table["failures"], table["runs"], table["delta"], strict=True)
    refuted = sum(exceeds(*count, tests=len(table)) for count in counts)
    worst = table.assign(share=10 ** table["log10"] / table["delta"]).sort_values("share").iloc[-1]
    error, races = worst["share"] * worst["relative_error"], int(worst["races"])
    where = (
        f"{worst['algorithm']}, δ = {worst['delta']:g}, n = {worst['n_arms']}, T = {worst['deadline']},"
        f" ε = {worst['epsilon']:.2g}"
    )
    largest, fail = "failure probability over δ, the largest estimate", "plain races that fail there"
    right, errors = estimates_right(checked)
    kept, exact = pausing_shares.evidence(shares)
    evidence = (
        Evidence("failure counts that refute δ", refuted, f"of {len(table)}, plain races", allowed="0"),
        measured(largest, worst["share"], error, races, where, "≤ 1"),
        counted(fail, worst["failures"], worst["runs"], where, f"≤ {worst['delta']:g}"),
        *errors,
        *exact,
    )
    return Finding("X6", refuted == 0 and right and kept, evidence, "simulated")


def draw(table: pd.DataFrame) -> Figure:
    """What each algorithm pays of δ, from `paid`: sharp and pausing EBR as shares, the others far below.

    The vertical axis of the second panel is doubly logarithmic: log(−log₁₀ of the probability).
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(figures.PAGE, 3.3))
    near = [name for name in FORMS if name != "EBR"]
    for place, name in enumerate(near):
        curve = table[table["algorithm"] == name]
        asked = curve["delta"] * 1.08 ** (place - (len(near) - 1) / 2)  # side by side, so that bars are seen
        share = 10 ** curve["log10"] / curve["delta"]
        reach = norm.isf(0.005) * share * curve["relative_error"]
        bars = left.errorbar(asked, share, reach, **lineup.LOOKS[name].line(lw=0.5, ms=3, capsize=1))
        bars.lines[0].set_label(name)
    left.axhline(1, color="black", lw=0.8, zorder=0)
    left.set(xscale="log", yscale="log", xlabel="δ asked", ylabel="failure probability / δ", ylim=(0.06, 2.5))
    left.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
    left.set_yticks([], minor=True)
    _far_below(right, table)
    figures.letters((left, right))
    for axis in (left, right):
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return figure


def _far_below(axis: Axes, table: pd.DataFrame) -> None:
    for name in lineup.ALGORITHMS:
        curve = table[table["algorithm"] == name]
        axis.plot(curve["delta"], -curve["log10"], **lineup.LOOKS[name].line(ms=3, label=name))
    asked = np.sort(table["delta"].unique())
    axis.plot(asked, -np.log10(asked), color="black", lw=0.8, label="δ itself")
    axis.set(xscale="log", yscale="log", xlabel="δ asked", ylabel="failure probability", ylim=(600, 0.4))
    orders = (1, 3, 10, 30, 100, 300)
    axis.set_yticks(orders, [f"$10^{{-{order}}}$" for order in orders])
    axis.set_yticks([], minor=True)
