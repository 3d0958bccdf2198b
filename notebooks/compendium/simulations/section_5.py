"""Section 5, the simulations of Figure 2: what the text claims of them.

Every check reads a table of `ebr.sweep` on the points of `lineup.points`, whole or one panel of it.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from compendium.shared.findings import Evidence, Finding, counted, measured
from compendium.shared.lineup import ALGORITHMS, WITHOUT_DEADLINE, Maker, ratio
from ebr.simulation.simulate import trace
from ebr.theory.problems import setup_1

RIVALS = tuple(name for name in ALGORITHMS if name not in ("EBR", "sequential"))
ORDER_OF_MAGNITUDE = 10.0
SEVERAL_ORDERS = 2  # at the least
NEARLY_THE_SAME = 1.05  # kδER's dearest deadline over its cheapest, at the most


def findings(table: pd.DataFrame) -> list[Finding]:
    """Check C22 to C27, C31 and C32; those whose sweep is not in the table are left out."""
    checks = [no_failure, beats_baselines, between_the_ends]
    if "T" in set(table["sweep"]):
        checks += [more_rounds, aggressive_elimination, delta_elimination]
    if "ε" in set(table["sweep"]):
        checks += [along_epsilon, orders_of_magnitude]
    return sorted((check(table) for check in checks), key=lambda finding: finding.claim)


def met(table: pd.DataFrame) -> pd.DataFrame:
    """Whether each claim is met on these points, as printed: a column a claim."""
    words = {finding.claim: "met" if finding.holds else "not met" for finding in findings(table)}
    return pd.DataFrame(words, index=["here"])


def no_failure(table: pd.DataFrame) -> Finding:
    """Check C22: every trial of every algorithm returns an ε-optimal arm."""
    # What knows no deadline is simulated once, whatever the T that it is drawn at.
    deadline = table["deadline"].where(~table["algorithm"].isin(WITHOUT_DEADLINE), 0)
    distinct = table.assign(deadline=deadline).drop_duplicates(["setup", "algorithm", "deadline", "epsilon"])
    trials, failures = int(distinct["runs"].sum()), int(distinct["failures"].sum())
    evidence = counted("runs that return a wrong arm", failures, trials, f"{len(distinct)} points", "0")
    return Finding("C22", failures == 0, (evidence,), "simulated")


def beats_baselines(table: pd.DataFrame) -> Finding:
    """Check C23: EBR needs fewer pulls than every baseline but the sequential oracle at every point.

    Evidence: how many points each rival wins or ties, and the three that it wins by most.
    """
    holds, evidence = True, []
    for name in RIVALS:
        curve = ratio(table, name, "EBR")
        lost = curve[curve["ratio"] <= 1]
        holds = holds and lost.empty
        what = f"points where {name} needs no more pulls than EBR"
        evidence.append(Evidence(what, len(lost), f"of {len(curve)}", allowed="0"))
        least = lost.nsmallest(3, "ratio")
        evidence += [_row(f"{name}'s pulls over EBR's", place, table, "> 1") for _, place in least.iterrows()]
    return Finding("C23", holds, tuple(evidence), "simulated")


def more_rounds(table: pd.DataFrame) -> Finding:
    """Check C24: along T, EBR's pulls fall by several orders of magnitude (two at the least)."""
    orders, evidence = [], []
    ordered = table[(table["sweep"] == "T") & (table["algorithm"] == "EBR")].sort_values("deadline")
    for setup, curve in ordered.groupby("setup"):
        first, least = curve.iloc[0], curve.sort_values("pulls").iloc[0]
        orders.append(math.log10(first["pulls"] / least["pulls"]))
        relative = math.hypot(first["error"] / first["pulls"], least["error"] / least["pulls"])
        where = f"{setup}, from T = {first['deadline']} to {least['deadline']}"
        what, allowed = "orders of magnitude saved by EBR", f"≥ {SEVERAL_ORDERS}"
        error, runs = relative / math.log(10), int(curve["runs"].max())
        evidence.append(measured(what, orders[-1], error, runs, where, allowed))
    return Finding("C24", min(orders) >= SEVERAL_ORDERS, tuple(evidence), "simulated")


def along_epsilon(table: pd.DataFrame) -> Finding:
    """Check C25: along ε, EBR stays within 10 times sequential, and 10 times below passive and kδER."""
    by_epsilon = table[table["sweep"] == "ε"]
    over = ratio(by_epsilon, "EBR", "sequential").sort_values("ratio")
    holds = over["ratio"].max() <= ORDER_OF_MAGNITUDE
    evidence = [_row("EBR's pulls over sequential's, at most", over.iloc[-1], table, "≤ 10")]
    for name in ("passive", "kδER"):
        saving = ratio(by_epsilon, name, "EBR").sort_values("ratio")
        holds = holds and saving["ratio"].min() >= ORDER_OF_MAGNITUDE
        for _, curve in saving.groupby("setup"):
            evidence.append(_row(f"{name}'s pulls over EBR's, at least", curve.iloc[0], table, "≥ 10"))
    return Finding("C25", bool(holds), tuple(evidence), "simulated")


def aggressive_elimination(table: pd.DataFrame) -> Finding:
    """Check C26: more rounds cost AE more pulls. Its pull counts are not random."""
    falls, evidence = 0, []
    for setup, curve in table[(table["sweep"] == "T") & (table["algorithm"] == "AE")].groupby("setup"):
        curve = curve.sort_values("deadline")
        rise = curve["pulls"].pct_change()
        falls += int((rise <= 0).sum())
        least = int(rise.argmin())
        before, after = curve["deadline"].iloc[least - 1], curve["deadline"].iloc[least]
        what, where = "relative rise of AE's pulls with T, at least", f"{setup}, from T = {before} to {after}"
        evidence.append(Evidence(what, rise.iloc[least], where, allowed="> 0"))
    return Finding("C26", falls == 0, tuple(evidence), "computed")


def delta_elimination(table: pd.DataFrame) -> Finding:
    """Check C27: more rounds do not help kδER, whose pulls are its first round's; they are not random."""
    curves = table[(table["sweep"] == "T") & (table["algorithm"] == "kδER")].groupby("setup")["pulls"]
    spread = curves.max() / curves.min()
    allowed = f"< {NEARLY_THE_SAME}"
    evidence = [
        Evidence("kδER's pulls at its dearest T over its cheapest", value, str(setup), allowed=allowed)
        for setup, value in spread.items()
    ]
    return Finding("C27", bool(spread.max() < NEARLY_THE_SAME), tuple(evidence), "computed")


def orders_of_magnitude(table: pd.DataFrame) -> Finding:
    """Check C31: EBR outperforms every baseline by several orders of magnitude (two at the least) along ε.

    Corrected: at the smallest ε.
    """
    by_epsilon = table[table["sweep"] == "ε"]
    smallest = by_epsilon[by_epsilon["epsilon"] == by_epsilon["epsilon"].min()]
    outcomes, evidence = [], []
    for places, allowed in ((by_epsilon, "≥ 100"), (smallest, "≥ 100, corrected")):
        least = [ratio(places, name, "EBR").nsmallest(1, "ratio").iloc[0] for name in RIVALS]
        outcomes.append(min(place["ratio"] for place in least) >= ORDER_OF_MAGNITUDE**SEVERAL_ORDERS)
        for name, place in zip(RIVALS, least, strict=True):
            evidence.append(_row(f"{name}'s pulls over EBR's, at least", place, table, allowed))
    holds, repaired = map(bool, outcomes)
    return Finding("C31", holds, tuple(evidence), "simulated", repaired)


def between_the_ends(table: pd.DataFrame) -> Finding:
    """Check C32: EBR's pulls lie between those of the sequential oracle (T = ∞) and of passive (T = 1)."""
    over_least = ratio(table, "EBR", "sequential").sort_values("ratio")
    over_most = ratio(table, "EBR", "passive").sort_values("ratio")
    below, above = (over_least["ratio"] < 1).sum(), (over_most["ratio"] > 1).sum()
    points = f"of {len(over_least)}"
    evidence = (
        Evidence("points where EBR needs less than sequential", below, points, allowed="0"),
        _row("EBR's pulls over sequential's, at least", over_least.iloc[0], table, "≥ 1"),
        Evidence("points where EBR needs more than passive", above, points, allowed="0"),
        _row("EBR's pulls over passive's, at most", over_most.iloc[-1], table, "≤ 1"),
    )
    return Finding("C32", bool(below + above == 0), evidence, "simulated")


def first_rounds(
    epsilons: Iterable[float], deadline: int, delta: float, algorithms: Mapping[str, Maker] = ALGORITHMS
) -> pd.DataFrame:
    """What the first of T rounds costs on Setup 1: pulls of an arm, and its share of the whole run's cost."""
    problem = setup_1()
    rows = []
    for name in ("EBR", "kδER", "AE"):
        for epsilon in sorted(epsilons):
            run = trace(algorithms[name](deadline, epsilon, delta), problem)
            opening = run[run["round"] == 1]
            share = opening["pulls"].sum() / run["total"].iloc[-1]
            rows.append((name, epsilon, opening["pulls"].max(), share))
    return pd.DataFrame(rows, columns=["algorithm", "epsilon", "pulls", "share"])


def first_round(opening: pd.DataFrame) -> Finding:
    """Check C28 on `first_rounds`: kδER and AE pull each arm Õ(ε^{−2}) times at once."""
    holds, evidence = True, []
    for name, rounds in opening[opening["algorithm"] != "EBR"].groupby("algorithm"):
        scaled = rounds["pulls"] * rounds["epsilon"] ** 2
        spread = scaled.max() / scaled.min()
        holds = holds and spread < 1.01
        where = f"{name}, ε from {rounds['epsilon'].min():g} to {rounds['epsilon'].max():g}"
        evidence.append(Evidence("an arm's pulls in round 1, times ε², at most", scaled.max(), where))
        evidence.append(Evidence("the same, over the least", spread, where, allowed="< 1.01"))
    return Finding("C28", bool(holds), tuple(evidence), "computed")


def crossing(curve: pd.DataFrame, level: float) -> list[float]:
    """Where a ratio along ε passes a level, by straight lines between the points on log axes."""
    curve = curve.sort_values("epsilon")
    x, y = np.log(curve["epsilon"].to_numpy()), np.log(curve["ratio"].to_numpy() / level)
    change = np.flatnonzero(np.sign(y[:-1]) * np.sign(y[1:]) < 0)
    return [float(np.exp(x[k] - y[k] * (x[k + 1] - x[k]) / (y[k + 1] - y[k]))) for k in change]


def _row(what: str, place: pd.Series, table: pd.DataFrame, allowed: str) -> Evidence:
    """A ratio at a point, with its interval."""
    varied = f"T = {place['deadline']}" if place["sweep"] == "T" else f"ε = {place['epsilon']:g}"
    where = f"{place['setup']}, {varied}"
    return measured(what, place["ratio"], place["error"], int(table["runs"].max()), where, allowed)
