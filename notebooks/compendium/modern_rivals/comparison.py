"""The comparison of notebook 16: pulls, rounds and failures of all entrants, and the check of X12."""

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar
from scipy.special import zeta

from compendium.modern_rivals import sequential_races, sequential_rivals
from compendium.modern_rivals.batched_rivals import NEARLY_EXACT
from compendium.modern_rivals.rival_entrants import (
    CLOSEST,
    ENTRANTS,
    IN_UNIT,
    MIXED,
    NORMAL,
    OURS,
    PAUSING,
    PROVED,
    PUBLISHED,
    WEAKER,
    Entrant,
    Runs,
    Setting,
)
from compendium.modern_rivals.sequential_races import Stopping
from compendium.shared.characteristic_time import characteristic_lower_bound
from compendium.shared.findings import Evidence, Finding, counted, exceeds, interval, measured
from compendium.shared.lineup import SETUPS
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.simulation.sweep import computed
from ebr.theory.problems import Bernoulli, Gaussian, Problem

SIGMA = 0.5  # of the Gaussian versions: what is known of rewards in [0, 1]
ALONG = (OURS, PAUSING, "KL-LUCB", CLOSEST, NORMAL, "Paulson", "Paulson, T looks")
ENUMERATED = 60  # rewards of an arm: all 2^60 rows of them
COSTLY = ("closest", "near", "mixed", "staked", "single", "staged", "batched")
MINE = (OURS, IN_UNIT, PAUSING)
RIVALS = (*PUBLISHED, *PROVED)  # one pull at a time, for an ε-good arm
# X12: whose pulls over those of ours, and on which side of 1.
SIDES = (
    (OURS, PUBLISHED, "> 1"),
    (OURS, WEAKER, "> 1"),
    (OURS, (CLOSEST,), "> 1"),
    (IN_UNIT, PUBLISHED, "> 1"),
    (PAUSING, (CLOSEST,), "< 1"),
)


class Point(NamedTuple):
    """Who races on which problem, for which T and ε; the labels are columns of the table."""

    labels: dict[str, Any]
    entrant: str
    problem: Problem
    deadline: int
    epsilon: float


def problems(n_arms: int) -> dict[str, dict[str, Problem]]:
    """Both setups with Bernoulli rewards, and with normal ones of the same means and σ = ½."""
    made = {name: setup(n_arms) for name, setup in SETUPS.items()}
    return {name: {"Bernoulli": it, "Gaussian": Gaussian(it.means, SIGMA)} for name, it in made.items()}


def everybody(names: Iterable[str], n_arms: int, deadline: int, epsilon: float) -> list[Point]:
    """The named entrants on both setups at one T and ε."""
    return [
        Point({"setup": setup, "algorithm": name}, name, kinds[ENTRANTS[name].rewards], deadline, epsilon)
        for name in names
        for setup, kinds in problems(n_arms).items()
    ]


def sweeps(
    deadlines: Sequence[int], epsilons: Sequence[float], n_arms: int, deadline: int, epsilon: float
) -> list[Point]:
    """Figure 2's axes: along T at one ε, those without a deadline at the ends alone, and along ε at one T."""
    ends = (min(deadlines), max(deadlines))
    grid = [("T", t, epsilon) for t in deadlines] + [("ε", deadline, e) for e in epsilons]
    return [
        point._replace(labels=point.labels | {"sweep": sweep, "deadline": t, "epsilon": e})
        for sweep, t, e in grid
        for point in everybody(ALONG, n_arms, t, e)
        if sweep == "ε" or t in ends or ENTRANTS[point.entrant].deadline == "T"
    ]


def played(
    points: Sequence[Point], delta: float, runs: Runs, seed: int, entrants: dict[str, Entrant] = ENTRANTS
) -> pd.DataFrame:
    """Race every point, the costliest first, each experiment once.

    Returns
    -------
    One row for each point: its labels, pulls (the mean) and error (one standard error), rounds (the mean),
    longest (the most), failures with the ends of their 99 % interval, runs, floor = T*(ν) kl(δ, 1−δ), over =
    pulls/floor and its standard error.
    """
    keys = [_key(point, entrants) for point in points]
    pace = {key: COSTLY.index(entrants[key[0]].pace) for key in keys}
    distinct = sorted(dict(zip(keys, points, strict=True)).items(), key=lambda pair: pace[pair[0]])
    calls = [(entrants[point.entrant], point, delta, runs, seed) for _, point in distinct]
    names = [f"{point.entrant}, {point.labels}" for _, point in distinct]
    results = computed(_summary, calls, names)
    found = {key: result for (key, _), result in zip(distinct, results, strict=True)}
    return pd.DataFrame([point.labels | found[key] for point, key in zip(points, keys, strict=True)])


def _key(point: Point, entrants: dict[str, Entrant]) -> tuple[str, bytes, int, float]:
    deadline = point.deadline if entrants[point.entrant].deadline == "T" else 0
    return point.entrant, point.problem.means.tobytes(), deadline, point.epsilon


def _summary(entrant: Entrant, point: Point, delta: float, runs: Runs, seed: int) -> dict[str, float]:
    count = getattr(runs, entrant.pace)
    table = entrant.race(Setting(point.problem, point.deadline, point.epsilon, delta, count, seed))
    judged = NEARLY_EXACT if entrant.exact else point.epsilon
    failures = int((~point.problem.is_good(table["arm"].to_numpy(), judged)).sum())
    low, high = interval(failures, count)
    sigma = point.problem.sigma if isinstance(point.problem, Gaussian) else None
    floor = _floor(tuple(point.problem.means.tolist()), sigma, judged, delta)
    pulls, error = float(table["pulls"].mean()), float(table["pulls"].std(ddof=1) / math.sqrt(count))
    return {
        "pulls": pulls,
        "error": error,
        "rounds": float(table["rounds"].mean()),
        "longest": int(table["rounds"].max()),
        "failures": failures,
        "low": low,
        "high": high,
        "runs": count,
        "floor": floor,
        "over": pulls / floor,
        "over_error": error / floor,
    }


@cache
def _floor(means: tuple[float, ...], sigma: float | None, epsilon: float, delta: float) -> float:
    """T*(ν) kl(δ, 1−δ), for Gaussian rewards with this σ, else for Bernoulli ones; once for all who race.

    To seven digits: T* is found by a search.
    """
    problem = Bernoulli(np.array(means)) if sigma is None else Gaussian(np.array(means), sigma)
    return float(f"{characteristic_lower_bound(problem, epsilon, delta):.7g}")


def compared(table: pd.DataFrame, pairs: Iterable[tuple[str, str]], by: Sequence[str] = ()) -> pd.DataFrame:
    """A rival's pulls over ours, with the standard error, on each setup (and at each value of `by`).

    Both are means of independent runs.
    """
    keys = ["setup", *by]
    tables = []
    for rival, ours in pairs:
        over, under = (table[table["algorithm"] == name] for name in (rival, ours))
        both = over.merge(under, on=keys, suffixes=("", "_ours"))
        quotient = both["pulls"] / both["pulls_ours"]
        relative = np.hypot(both["error"] / both["pulls"], both["error_ours"] / both["pulls_ours"])
        found = both[keys].assign(rival=rival, ours=ours, ratio=quotient, error=quotient * relative)
        tables.append(found.assign(runs=both[["runs", "runs_ours"]].min(axis=1)))
    return pd.concat(tables, ignore_index=True)


def spent(n_arms: int, deadline: int, epsilon: float, delta: float) -> dict[str, float]:
    """What each stopping threshold spends of δ, by the union bound of its own proof.

    Pausing EBR's: Σ δ_{u,s} (for staked EBR see X15). KL-LUCB's: n Σ_s e^{−β(s)}. Kaufmann and Koolen's:
    (n−1) e^{−x}, where the threshold is 2 C(x/2). A mixture's: (n−1) e^{−level} times the mean of two
    mixtures over the truth; LUCB's, n and one.
    """
    clock = sequential_rivals.clock_stopping(n_arms, delta)
    deviation = sequential_rivals.deviation_stopping(n_arms, delta).level
    confidence = 2 * brentq(lambda x: _threshold(x) - deviation / 2, 1e-6, 1e3, xtol=1e-12)
    pairs = {
        f"pairs, Beta({first:g}, {second:g})": sequential_rivals.mixture_stopping(
            n_arms, delta, (first, second)
        )
        for first, second in sorted({sequential_rivals.JEFFREYS, *MIXED.values()})
    }
    single = sequential_rivals.mixture_stopping(n_arms + 1, delta, MIXED["LUCB"])
    return {
        PAUSING: float(PausingElasticBatchRacing(deadline, epsilon, delta).shares().sum()),
        "KL-LUCB": n_arms * float(zeta(clock.first)) * math.exp(-clock.level),
        "T&S and EB-TC": (n_arms - 1) * math.exp(-confidence),
        "LUCB, mixture": n_arms * math.exp(-single.level) * mixture_mean(single, ENUMERATED),
        **{
            name: (n_arms - 1) * math.exp(-pair.level) * mixture_mean(pair, ENUMERATED) ** 2
            for name, pair in pairs.items()
        },
    }


def mixture_mean(stopping: Stopping, count: int) -> float:
    """The mean of a mixture over the true likelihood after so many rewards of an arm, whatever is true.

    That is what the mixture gives to all 2^N rows of rewards: Σ_s C(N, s) exp(log max_p P_p − R). It must not
    exceed 1.
    """
    rows = (
        (math.comb(count, s), sequential_races.log_likelihood(float(s), float(count)), s)
        for s in range(count + 1)
    )
    return math.fsum(
        many * math.exp(best - sequential_races.charge(float(s), float(count), stopping, 1))
        for many, best, s in rows
    )


def _threshold(x: float) -> float:
    """C(x) of Kaufmann and Koolen by its definition: a root and a minimum, both searched for."""
    root = brentq(lambda u: u - math.log(u) - 1 - x, 1, 10 + 4 * x, xtol=1e-13)
    inner = (root + math.log(math.pi**2 / 3)) / 2
    least = minimize_scalar(
        lambda z: z * (inner - math.log(math.log(z))),
        bounds=(1 + 1e-9, 1.5),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return 2 * min(float(least.fun), 1.5 * (inner - math.log(math.log(1.5))))


def standing(table: pd.DataFrame, confidence: dict[str, float], deadline: int, delta: float) -> Finding:
    """Check X12: staked EBR needs fewer pulls than every sequential rival, pausing EBR more than the closest.

    A rival over ours: the 99 % interval must lie on the side of 1 that `SIDES` has; of several rivals the one
    is shown whose interval reaches lowest. That the closest is ahead of pausing EBR shows that it is no
    weaker than it can be. Thresholds must spend δ (`spent`), no more and no less, ours must keep its
    deadline, and all failures together must not refute 1 − δ.
    """
    there, evidence, holds = set(table["algorithm"]), [], True
    for ours, rivals, allowed in SIDES:
        ratios = compared(table, [(rival, ours) for rival in rivals if rival in there])
        for setup in ratios["setup"].unique():
            rows = ratios[ratios["setup"] == setup].to_dict("records")
            found = min((_side(row, allowed) for row in rows), key=lambda side: side.low or 0)
            evidence.append(found)
            holds &= (found.low or 0) > 1 if allowed == "> 1" else (found.high or 1) < 1
    for name, share in confidence.items():
        evidence.append(Evidence("what the threshold spends, over δ", share / delta, name, allowed="≤ 1"))
        holds &= math.isclose(share, delta)  # who spends less is handicapped
    longest = int(table.loc[table["algorithm"].isin(MINE), "longest"].max())
    evidence.append(Evidence("rounds, at most", longest, "all of ours", allowed=f"≤ {deadline}"))
    shown = table[table["algorithm"].isin((*MINE, *RIVALS))]
    failures, runs = int(shown["failures"].sum()), int(shown["runs"].sum())
    evidence.append(counted("failures, all of them together", failures, runs, allowed=f"≤ {delta:g}"))
    holds &= not exceeds(failures, runs, delta) and longest <= deadline
    return Finding("X12", holds, tuple(evidence), "simulated")


def _side(row: dict[Any, Any], allowed: str) -> Evidence:
    what = f"{row['rival']}'s pulls over {row['ours']}'s"
    return measured(what, row["ratio"], row["error"], row["runs"], row["setup"], allowed)


def pilot(
    rules: Iterable[str],
    priors: Sequence[tuple[float, float]],
    n_arms: int,
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
) -> pd.DataFrame:
    """Geometric mean over small copies of both setups of a rule's mean pulls, by the mixture's prior.

    In units of the rule's best prior.
    """
    names = [f"Beta({first:g}, {second:g})" for first, second in priors]
    table = pd.DataFrame(1.0, index=pd.Index(rules, name="rule"), columns=names)
    for rule in table.index:
        for name, prior in zip(names, priors, strict=True):
            for made in SETUPS.values():
                raced = sequential_rivals.sequential(made(n_arms), epsilon, delta, runs, seed, rule, prior)
                table.loc[rule, name] *= math.sqrt(raced["pulls"].mean())
    return table.div(table.min(axis=1), axis=0)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table for readers: guarantee, deadline, rounds used, pulls and failures of everybody."""
    rows = table.to_dict("records")
    entrants = [ENTRANTS[row["algorithm"]] for row in rows]
    return pd.DataFrame(
        {
            "setup": table["setup"],
            "algorithm": table["algorithm"],
            "rewards": [entrant.rewards for entrant in entrants],
            "guarantee": [entrant.guarantee for entrant in entrants],
            "deadline": [entrant.deadline for entrant in entrants],
            "rounds": [f"{row['rounds']:,.{1 if row['rounds'] < 100 else 0}f}" for row in rows],
            "pulls ± s.e.": [f"{row['pulls']:,.0f} ± {row['error']:,.0f}" for row in rows],
            "over floor": [f"{row['over']:.3g}" for row in rows],
            "failures": [
                f"{row['failures']} of {row['runs']} ({row['low']:.1%} – {row['high']:.1%})" for row in rows
            ],
        }
    ).set_index(["setup", "algorithm"])


def worded(ratios: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """Ratios ± one standard error, one row for each pair, one column for each setup (and value of `by`)."""
    words = ratios.assign(words=[f"{row.ratio:.2f} ± {row.error:.2f}" for row in ratios.itertuples()])
    columns = ["setup"] if by is None else ["setup", by]
    rows = [name for name in ("rival", "ours") if name != by]
    return words.pivot_table("words", rows, columns, aggfunc="first", sort=False)


def price(axes: pd.DataFrame, table: pd.DataFrame, ours: str, rival: str) -> pd.DataFrame:
    """Our pulls along T over a sequential rival's, whose mean is that of the longer `table`."""
    along = axes[(axes["sweep"] == "T") & (axes["algorithm"] == ours)]
    theirs = table[table["algorithm"] == rival].set_index("setup")["pulls"]
    ratios = along.assign(ratio=along["pulls"] / along["setup"].map(theirs))
    return ratios.pivot_table("ratio", "setup", "deadline")
