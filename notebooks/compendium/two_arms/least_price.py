"""X8: the least price of two arms and up to four rounds, and how far schedules and both EBRs are from it."""

import math
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from compendium.shared import figures
from compendium.shared.findings import Evidence, Finding
from compendium.shared.lineup import LOOKS, ROUNDS
from compendium.shared.walks import Looks
from compendium.the_price_of_a_deadline.deadline_price import price, two_arms
from compendium.two_arms.fixed_looks import elastic_looks, ratios, sharp_looks, worst_ratio
from compendium.two_arms.two_arms_grid import CELLS, STEP
from compendium.two_arms.two_arms_solutions import Solution, solution
from ebr.arrays import FloatArray
from ebr.simulation.simulate import Simulation

GAPS = {1: 0.0, 2: 0.007, 3: 0.015, 4: 0.014}  # relative, between policy and bound, by T
CHANGE = 1e-3  # relative, of the bound with half the cells of z
DIGITS = 6  # significant ones that the quadrature and the search have
Evaluate = Callable[[Solution], tuple[float, float]]


def evaluated(found: Solution) -> tuple[float, float]:
    """A policy's worst ratio over all gaps from 0 to 1, and its error at ε; at T = 1 in closed form."""
    if found.deadline == 1:
        return float(ratios(found.looks, np.array([1 / found.epsilon]))[0]), found.looks.wrong(1.0)
    law = found.profile()
    return law.worst_ratio(1 / found.epsilon), law.error


def certified(
    deadlines: Iterable[int],
    epsilons: Iterable[float],
    deltas: Iterable[float],
    evaluate: Evaluate = evaluated,
    bound: Callable[..., float] = Solution.bound,
) -> pd.DataFrame:
    """The least worst E[Ñ_T]/H of two arms (σ = 1), from both sides: a row for each T, ε and δ.

    upper, error: what a policy pays, and its error over δ; lower: what every policy pays, by a prior;
    gap: upper/lower − 1. The same bound on other grids: grid on steps of 8 %, coarse of twice as much, rough
    of 8 % with half the cells. Then the best looks fixed in advance that a search found, sharp EBR for
    Gaussian rewards and EBR, each with its error over δ.
    """
    rows = []
    for deadline, delta, epsilon in product(deadlines, deltas, epsilons):
        found = solution(deadline, epsilon, delta)
        upper, error = evaluate(found)
        row = {"deadline": deadline, "epsilon": epsilon, "delta": delta, "upper": upper}
        row |= {"lower": bound(found), "grid": bound(found, STEP), "coarse": bound(found, STEP**2)}
        row |= {"rough": bound(found, STEP, CELLS // 2), "error": error / delta}
        rows.append(row | _others(found))
    table = pd.DataFrame(rows).assign(gap=lambda frame: frame["upper"] / frame["lower"] - 1)
    floats = [name for name in table if name not in ("deadline", "epsilon", "delta")]
    return table.assign(**{str(name): table[name].map(_digits) for name in floats})


def _digits(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def _others(found: Solution) -> dict[str, float]:
    """The worst ratio and the error over δ of the rules whose looks are fixed in advance."""
    rules: dict[str, Looks] = {
        "fixed": found.looks,
        "sharp": sharp_looks(found.deadline, found.epsilon, found.delta),
        "ebr": elastic_looks(found.deadline, found.epsilon, found.delta),
    }
    worst = {name: worst_ratio(looks, found.epsilon) for name, looks in rules.items()}
    return worst | {f"{name}_error": looks.wrong(1.0) / found.delta for name, looks in rules.items()}


def printed(deadline: int, delta: float) -> dict[str, float]:
    """The paper's constants, in σ²ε^{−2/T}: Theorem 2's 640 log(nT/δ), and the corollary's lower bounds."""
    bounds = {
        "Theorem 2": 640 * math.log(2 * deadline / delta),
        "Corollary 1 (ii)": math.log(1 / (2 * delta)) / 144,
    }
    return bounds | ({"Corollary 1 (i)": 1 / 800} if deadline == 2 else {})


def prices(table: pd.DataFrame, epsilon: float, delta: float) -> pd.DataFrame:
    """What is drawn against T at one ε and δ: worst ratios and bounds in σ²ε^{−2/T}, one row each."""
    place = table[(table["epsilon"] == epsilon) & (table["delta"] == delta)]
    names = {"ebr": "EBR", "sharp": "sharp EBR", "fixed": "best fixed schedule", "upper": "best policy found"}
    rows = []
    for row in place.to_dict("records"):
        deadline, unit = int(row["deadline"]), epsilon ** (-2 / row["deadline"])
        values = {label: row[name] / unit for name, label in names.items()}
        values["bound of notebook 13"] = _digits(price(two_arms(epsilon, delta), deadline).ratio / unit)
        rows += [(deadline, name, value) for name, value in (values | printed(deadline, delta)).items()]
    return pd.DataFrame(rows, columns=["deadline", "rule", "price"])


def computed(table: pd.DataFrame, oracle: tuple[float, float], epsilon: float, delta: float) -> Finding:
    """Check X8: a policy is near what the prior bounds, and nothing is below that.

    The bound must rise as the grid is refined; it would not if looks between two τ were not covered.
    `oracle` encloses the same number for T = 2 at this ε and δ, by the linear program of `adaptive_program`.
    """
    many = f"{len(table)} (T, ε, δ)"
    place = table[(table["epsilon"] == epsilon) & (table["delta"] == delta)].set_index("deadline")
    two = place.loc[2]
    upper, lower = float(str(two["upper"])), float(str(two["lower"]))
    paid = table[["upper", "fixed", "sharp", "ebr"]].min(axis=1)
    finer = np.maximum(table["coarse"] / table["grid"], table["grid"] / table["lower"])
    where = f"ε = {epsilon:g}, δ = {delta:g}"
    limits = {
        ("bound over that on a finer grid, at most", many): (finer.max(), 1.0),
        ("half the cells of z change the bound by, at most", many): (
            (table["rough"] / table["grid"] - 1).abs().max(),
            CHANGE,
        ),
        ("error over δ, at most", many): (table[["error", "fixed_error"]].max(axis=1).max(), 1.0),
        ("bound over the policy or any fixed schedule, at most", many): ((table["lower"] / paid).max(), 1.0),
        ("distance to the linear program's enclosure, T = 2", where): (
            max(oracle[0] - upper, lower - oracle[1]) / lower,
            0.0,
        ),
    }
    for number, part in table.groupby("deadline"):
        cell = "policy over bound, less 1, at most", f"T = {number}, {len(part)} (ε, δ)"
        limits[cell] = part["gap"].max(), GAPS[int(str(number))]
    rows = [
        Evidence(what, float(value), at, allowed=f"≤ {most:g}")
        for (what, at), (value, most) in limits.items()
        if not at.startswith("T = 1,")  # where all are equal
    ]
    for deadline, row in place.iterrows():
        at, unit = f"T = {deadline}, {where}", epsilon ** (-2 / float(str(deadline)))
        rows.append(Evidence("what a policy pays, in σ²ε^(−2/T)", _digits(row["upper"] / unit), at))
        if deadline == 1:
            continue
        rows.append(Evidence("what all pay at least", _digits(row["lower"] / unit), at))
        for name, words in {"fixed": "best fixed schedule found", "sharp": "sharp EBR", "ebr": "EBR"}.items():
            rows.append(Evidence(f"{words} over the policy", _digits(row[name] / row["upper"]), at))
    holds = all(value <= most for value, most in limits.values())
    return Finding("X8", holds, tuple(rows), "computed")


def simulated(simulation: Simulation, computed: FloatArray) -> str:
    """A line on a simulation of the policy: failures and mean pulls, beside the computed E[Ñ_T]."""
    pulls, error = simulation.pulls.mean(), simulation.pulls.std(ddof=1) / math.sqrt(len(simulation.pulls))
    wrong = int((simulation.arm != simulation.problem.means.argmax()).sum())
    return (
        f"{wrong} failures in {len(simulation.pulls):,} runs; mean pulls {pulls:,.1f} ± {error:.1f},"
        f" computed, for real counts, {float(computed[0]):,.1f}"
    )


def draw(curves: pd.DataFrame, table: pd.DataFrame, epsilon: float, delta: float) -> Figure:
    """Left: prices against T, with rules and bounds. Right: the least price against ε, for each T and δ."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(figures.PAGE, 3.4))
    _rules(left, curves)
    left.set_title(f"ε = {epsilon:g}, δ = {delta:g}")
    for (deadline, level), curve in table.groupby(["deadline", "delta"]):
        look, unit = ROUNDS[int(str(deadline))], curve["epsilon"] ** (-2 / curve["deadline"])
        line = look.line(label=f"T = {deadline}") if level == delta else look.line(ls="--")
        right.plot(curve["epsilon"], curve["upper"] / unit, **line)
    right.set(xscale="log", xlabel="tolerance ε", ylabel="least price, in σ²ε$^{-2/T}$", ylim=(0, None))
    right.set_title("the best policy found")
    right.legend(loc="lower right", ncols=2)
    figures.letters((left, right))
    return figure


def _rules(axis: Axes, curves: pd.DataFrame) -> None:
    looks: dict[str, dict[str, Any]] = {
        "Theorem 2": {"color": "0.6", "ls": ":", "marker": "v"},
        "EBR": LOOKS["EBR"].line(),
        "sharp EBR": LOOKS["sharp, Gaussian"].line(),
        "best fixed schedule": {"color": "0.45", "ls": "--", "marker": "s"},
        "best policy found": {"color": "black", "ls": "-", "marker": "D"},
        "bound of notebook 13": {"color": "0.3", "ls": "-.", "marker": "^"},
        "Corollary 1 (ii)": {"color": "0.6", "ls": "--", "marker": "<"},
        "Corollary 1 (i)": {"color": "black", "ls": "", "marker": "x"},
    }
    for rule, look in looks.items():
        curve = curves[curves["rule"] == rule]
        axis.plot(curve["deadline"], curve["price"], **(look | {"label": rule, "ms": 4}))
    axis.set(yscale="log", xlabel="rounds T", ylabel="worst E[pulls] / H, in σ²ε$^{-2/T}$")
    axis.set_xticks(sorted(set(curves["deadline"])))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.figure.legend(loc="outside lower center", ncols=4)
