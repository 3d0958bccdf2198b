"""Section 5, the simulations of Figure 2: what is run, and what the text claims of it."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from compendium.findings import Finding, proportion
from compendium.lineup import ALGORITHMS, WITHOUT_DEADLINE, ratio
from ebr.simulation.simulate import trace
from ebr.theory.problems import setup_1

__all__ = ["c28", "crossing", "findings", "first_rounds"]

RIVALS = tuple(name for name in ALGORITHMS if name not in ("EBR", "sequential"))
ORDER_OF_MAGNITUDE = 10.0
SEVERAL_ORDERS = 2  # at the least


def findings(table: pd.DataFrame) -> list[Finding]:
    """Check C22 to C27, C31 and C32 on a table of `sweep`, whole or one panel.

    A claim without its points is left out.
    """
    checks = [_c22(table), _c23(table), _c32(table)]
    by_deadline, by_epsilon = table[table["sweep"] == "T"], table[table["sweep"] == "ε"]
    if len(by_deadline):
        checks += [_c24(by_deadline), _c26(by_deadline), _c27(by_deadline)]
    if len(by_epsilon):
        checks += [_c25(by_epsilon), _c31(by_epsilon)]
    runs = f" (± 1 s.e. of {table['runs'].max()} runs a point)"
    return sorted(c._replace(evidence=c.evidence + runs) if "±" in c.evidence else c for c in checks)


def first_rounds(epsilons: Iterable[float], deadline: int = 15, delta: float = 0.01) -> pd.DataFrame:
    """What the first of T rounds costs on Setup 1: pulls of an arm, and its share of the whole run's cost."""
    problem = setup_1()
    rows = []
    for name in ("EBR", "kδER", "AE"):
        for epsilon in sorted(epsilons):
            run = trace(ALGORITHMS[name](deadline, epsilon, delta), problem)
            opening = run[run["round"] == 1]
            share = opening["pulls"].sum() / run["total"].iloc[-1]
            rows.append((name, epsilon, opening["pulls"].max(), share))
    return pd.DataFrame(rows, columns=["algorithm", "epsilon", "pulls", "share"])


def c28(opening: pd.DataFrame) -> Finding:
    """Check C28 on `first_rounds`: kδER and AE pull each arm Õ(ε^{−2}) times at once."""
    scaled = opening.assign(scaled=opening["pulls"] * opening["epsilon"] ** 2)
    prior = scaled[scaled["algorithm"] != "EBR"].groupby("algorithm")["scaled"]
    constant = bool((prior.max() / prior.min() < 1.01).all())
    ranges = prior.agg(["min", "max"])
    words = [f"{name}: {low:.1f} to {high:.1f}" for name, low, high in ranges.itertuples()]
    return Finding("C28", constant, "pulls of an arm in round 1, times ε²: " + "; ".join(words))


def crossing(curve: pd.DataFrame, level: float) -> list[float]:
    """Where a ratio along ε passes a level, by straight lines between the points on log axes."""
    curve = curve.sort_values("epsilon")
    x, y = np.log(curve["epsilon"].to_numpy()), np.log(curve["ratio"].to_numpy() / level)
    change = np.flatnonzero(np.sign(y[:-1]) * np.sign(y[1:]) < 0)
    return [float(np.exp(x[k] - y[k] * (x[k + 1] - x[k]) / (y[k + 1] - y[k]))) for k in change]


def _where(places: pd.DataFrame) -> str:
    """Name the points, each with its ratio."""
    words = []
    for _, row in places.iterrows():
        place = f"T = {row['deadline']}" if row["sweep"] == "T" else f"ε = {row['epsilon']:g}"
        words.append(f"{row['setup']} {place} ({_value(row)})")
    return "; ".join(words) or "nowhere"


def _value(row: pd.Series) -> str:
    return f"{row['ratio']:.3g} ± {row['error']:.1g}"


def _range(curve: pd.DataFrame) -> str:
    """The least and the largest ratio."""
    ordered = curve.sort_values("ratio")
    return f"{_value(ordered.iloc[0])} to {_value(ordered.iloc[-1])}"


def _c22(table: pd.DataFrame) -> Finding:
    deadline = table["deadline"].where(~table["algorithm"].isin(WITHOUT_DEADLINE), 0)
    distinct = table.assign(deadline=deadline).drop_duplicates(["setup", "algorithm", "deadline", "epsilon"])
    trials, failures = int(distinct["runs"].sum()), int(distinct["failures"].sum())
    evidence = f"failures at {len(distinct)} points: {proportion(failures, trials)}"
    return Finding("C22", failures == 0, evidence)


def _c23(table: pd.DataFrame) -> Finding:
    curves = {name: ratio(table, name, "EBR") for name in RIVALS}
    lost = {name: curve[curve["ratio"] <= 1] for name, curve in curves.items()}
    evidence = "; ".join(f"{name} costs no more than EBR: {_where(curve)}" for name, curve in lost.items())
    return Finding("C23", all(curve.empty for curve in lost.values()), evidence)


def _c24(table: pd.DataFrame) -> Finding:
    orders, words = [], []
    for setup, curve in table[table["algorithm"] == "EBR"].sort_values("deadline").groupby("setup"):
        first, least = curve.iloc[0], curve.sort_values("pulls").iloc[0]
        orders.append(math.log10(first["pulls"] / least["pulls"]))
        relative = np.hypot(first["error"] / first["pulls"], least["error"] / least["pulls"])
        words.append(f"{setup}: {orders[-1]:.2f} ± {relative / math.log(10):.1g} orders of magnitude")
    return Finding("C24", min(orders) >= SEVERAL_ORDERS, "; ".join(words))


def _c25(table: pd.DataFrame) -> Finding:
    over = ratio(table, "EBR", "sequential")
    evidence = [f"EBR over sequential: {_range(over)}"]
    holds = over["ratio"].max() <= ORDER_OF_MAGNITUDE
    for name in ("passive", "kδER"):
        saving = ratio(table, name, "EBR")
        short = saving[saving["ratio"] < ORDER_OF_MAGNITUDE]
        holds = holds and short.empty
        evidence.append(f"less than 10 times cheaper than {name}: {_where(short)}")
    return Finding("C25", bool(holds), "; ".join(evidence))


def _c26(table: pd.DataFrame) -> Finding:
    falls = []
    for setup, curve in table[table["algorithm"] == "AE"].groupby("setup"):
        curve = curve.sort_values("deadline")
        steps = zip(
            curve["deadline"][:-1], curve["deadline"][1:], curve["pulls"].pct_change()[1:], strict=True
        )
        falls += [f"{setup} from T = {a} to {b} ({100 * rise:.0f} %)" for a, b, rise in steps if rise <= 0]
    return Finding("C26", not falls, f"AE's pulls fall with T: {'; '.join(falls) or 'nowhere'}")


def _c27(table: pd.DataFrame) -> Finding:
    curves = table[table["algorithm"] == "kδER"].groupby("setup")["pulls"]
    spread = float((curves.max() / curves.min()).max())
    return Finding("C27", spread < 1.05, f"kδER's pulls differ by {100 * (spread - 1):.1f} % over all T")


def _c31(table: pd.DataFrame) -> Finding:
    curves = {name: ratio(table, name, "EBR") for name in RIVALS}
    epsilon = table["epsilon"].min()
    smallest = {name: curve[curve["epsilon"] == epsilon] for name, curve in curves.items()}
    everywhere = ", ".join(f"{name} {_range(curve)}" for name, curve in curves.items())
    there = ", ".join(f"{name} {_range(curve)}" for name, curve in smallest.items())
    evidence = f"pulls over EBR's: {everywhere}; at ε = {epsilon:g}: {there}"
    holds, repaired = (
        min(float(curve["ratio"].min()) for curve in some.values()) >= ORDER_OF_MAGNITUDE**SEVERAL_ORDERS
        for some in (curves, smallest)
    )
    return Finding("C31", holds, evidence, repaired)


def _c32(table: pd.DataFrame) -> Finding:
    below = ratio(table, "EBR", "sequential")
    above = ratio(table, "EBR", "passive")
    outside = below[below["ratio"] < 1], above[above["ratio"] > 1]
    evidence = f"EBR below sequential: {_where(outside[0])}; above passive: {_where(outside[1])}"
    return Finding("C32", all(part.empty for part in outside), evidence)
