"""Section 5, the simulations of Figure 2: what the text claims of them.

Every check reads a table of `ebr.sweep` on the points of `lineup.points`, whole or one panel of it.
"""

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd

from compendium.lower_bounds import near_optimal
from compendium.shared import cost_bounds
from compendium.shared.findings import Evidence, Finding, counted, measured
from compendium.shared.lineup import ALGORITHMS, WITHOUT_DEADLINE, Maker, ratio
from compendium.shared.traces import trace
from ebr.algorithms.baselines import AggressiveElimination
from ebr.theory.problems import setup_1

RIVALS = tuple(name for name in ALGORITHMS if name not in ("EBR", "sequential"))
ORDER_OF_MAGNITUDE = 10.0
SEVERAL_ORDERS = 2  # at the least
NEARLY_THE_SAME = 1.05  # kδER's dearest deadline over its cheapest, at the most
# The paper's grids are unknown (A7): C23 and C25 are looked at on the whole of ours, and on this part.
FEWEST_ROUNDS, LARGEST_EPSILON = 3, 0.2  # for C23
SMALL_EPSILON = 0.01  # for C25
LAST_FEW = 3  # of T rounds, for C26
LOOKS = (1, 2, 3, 4, 8)  # T of the tests for C32


def findings(table: pd.DataFrame) -> list[Finding]:
    """Check C22 to C27 and C31; those whose sweep is not in the table are left out."""
    checks = [no_failure, beats_baselines]
    if "T" in set(table["sweep"]):
        checks += [more_rounds, aggressive_elimination, delta_elimination]
    if "ε" in set(table["sweep"]):
        checks += [along_epsilon, orders_of_magnitude]
    return sorted((check(table) for check in checks), key=lambda finding: finding.claim)


def met(table: pd.DataFrame) -> pd.DataFrame:
    """Whether each claim is met on these points: a column a claim; in part is as the ledger corrects it."""
    words = {"holds": "met", "holds corrected": "in part", "fails as stated": "not met"}
    return pd.DataFrame({found.claim: words[found.verdict] for found in findings(table)}, index=["here"])


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

    As printed on the whole of our grid; corrected, for T ≥ 3 and ε ≤ 0.2. Evidence: how many points each
    rival wins or ties, the three that it wins by most, and how many of the rest.
    """
    points = lost = inside = 0
    evidence = []
    for name in RIVALS:
        curve = ratio(table, name, "EBR")
        won = curve[curve["ratio"] <= 1]
        rest = won[(won["deadline"] >= FEWEST_ROUNDS) & (won["epsilon"] <= LARGEST_EPSILON)]
        points, lost, inside = len(curve), lost + len(won), inside + len(rest)
        what = f"points where {name} needs no more pulls than EBR"
        evidence.append(Evidence(what, len(won), f"of {points}", allowed="0"))
        least = won.nsmallest(3, "ratio")
        evidence += [_row(f"{name}'s pulls over EBR's", place, table, "> 1") for _, place in least.iterrows()]
    where = f"T ≥ {FEWEST_ROUNDS} and ε ≤ {LARGEST_EPSILON:g}"
    evidence.append(Evidence("the same of the rest, all rivals", inside, where, allowed="0, corrected"))
    return Finding("C23", lost == 0, tuple(evidence), "simulated", inside == 0)


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
    """Check C25: along ε, EBR stays within 10 times sequential, and 10 times below passive and kδER.

    As printed at every ε of our grid; corrected, for ε ≤ 0.01.
    """
    by_epsilon = table[table["sweep"] == "ε"]
    small = by_epsilon[by_epsilon["epsilon"] <= SMALL_EPSILON]
    outcomes, evidence = [], []
    for places, corrected in ((by_epsilon, ""), (small, ", corrected")):
        over = ratio(places, "EBR", "sequential").nlargest(1, "ratio")
        least = [ratio(places, name, "EBR").sort_values("ratio") for name in ("passive", "kδER")]
        outcomes.append(
            bool((over["ratio"] <= ORDER_OF_MAGNITUDE).all())
            and all((saving["ratio"] >= ORDER_OF_MAGNITUDE).all() for saving in least)
        )
        what = "EBR's pulls over sequential's, at most"
        evidence += [_row(what, place, table, f"≤ 10{corrected}") for _, place in over.iterrows()]
        for name, saving in zip(("passive", "kδER"), least, strict=True):
            what, allowed = f"{name}'s pulls over EBR's, at least", f"≥ 10{corrected}"
            worst = saving.groupby("setup").head(1).sort_values("setup")
            evidence += [_row(what, place, table, allowed) for _, place in worst.iterrows()]
    holds, repaired = outcomes
    return Finding("C25", holds, tuple(evidence), "simulated", repaired and not small.empty)


def aggressive_elimination(table: pd.DataFrame, make: Maker = AggressiveElimination) -> Finding:
    """Check C26: AE keeps all arms until its last few rounds, and more rounds cost it more pulls.

    Its pull counts are not random. Corrected, more rounds cost more from T = 2 on.
    """
    race = trace(make(15, 0.01, 0.01), setup_1())
    full = int((race.groupby("round").size() == race["arm"].nunique()).sum())
    kept = "rounds in which AE pulls every arm"
    evidence = [Evidence(kept, full, "T = 15, ε = 0.01, n = 100", allowed=f"≥ {15 - LAST_FEW}")]
    rising = dict.fromkeys((1, 2), full >= 15 - LAST_FEW)  # from this T on
    for setup, curve in table[(table["sweep"] == "T") & (table["algorithm"] == "AE")].groupby("setup"):
        for first, allowed in ((1, "> 0"), (2, "> 0, corrected")):
            part = curve[curve["deadline"] >= first].sort_values("deadline")
            rise = part["pulls"].pct_change()
            rising[first] = rising[first] and not (rise <= 0).any()
            least = int(rise.argmin())
            ends = f"{setup}, from T = {part['deadline'].iloc[least - 1]} to {part['deadline'].iloc[least]}"
            what = "relative rise of AE's pulls with T, at least"
            evidence.append(Evidence(what, rise.iloc[least], ends, allowed=allowed))
    return Finding("C26", rising[1], tuple(evidence), "computed", rising[2])


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


def between_the_ends(
    table: pd.DataFrame, design: Callable[[float, int], near_optimal.LookTest] = near_optimal.design
) -> Finding:
    """Check C32: the number of samples that are required with T rounds lies between those of T = 1 and ∞.

    It is an infimum over algorithms, and one with T rounds is one with T + 1 whose last round is idle. Two
    arms, exactly: the worst E[Ñ] of the best tests found with T looks falls with T, from the only design of
    one round down to a bound without a deadline. EBR is one algorithm, not the best one: its own curve, by
    the table, is a remark.
    """
    place, unit = ([1, 1], near_optimal.EPSILON, 1), (near_optimal.SIGMA / near_optimal.EPSILON) ** 2
    right, evidence = True, []
    for delta in (0.1, 0.01):
        tests = {rounds: design(delta, rounds) for rounds in LOOKS}
        costs = [test.cost(0) / unit for test in tests.values()]
        least = cost_bounds.partition_lower_bound(*place, delta, near_optimal.SIGMA) / unit
        pac = all(test.looks.wrong(1.0) <= delta for test in tests.values())
        known = -4 * math.log(4 * delta * (1 - delta))  # 8 d(½, δ): the bound is neither more nor less
        right = right and pac and bool((np.diff([*costs, least]) <= 0).all()) and math.isclose(least, known)
        what = "worst E[Ñ] of the best test found, in σ²/ε²"
        for rounds, cost in zip(LOOKS, costs, strict=True):
            evidence.append(Evidence(what, cost, f"T = {rounds}, δ = {delta:g}", allowed="≥ the next"))
        evidence.append(Evidence("a lower bound without a deadline, in σ²/ε²", least, f"δ = {delta:g}"))
    less, more = ratio(table, "EBR", "sequential")["ratio"] < 1, ratio(table, "EBR", "passive")["ratio"] > 1
    of = f"a remark; of {len(more)}"
    evidence.append(Evidence("points where EBR itself needs less than sequential", int(less.sum()), of))
    evidence.append(Evidence("points where EBR itself needs more than passive", int(more.sum()), of))
    return Finding("C32", right, tuple(evidence), "proved")


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
