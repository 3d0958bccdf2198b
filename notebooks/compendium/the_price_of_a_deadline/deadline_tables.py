"""Tables and pictures of the price of a deadline: bounds for two arms and for n, and what algorithms pay."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import ndtr, ndtri

from compendium.failure_probability.exact_failures import looks
from compendium.shared import figures
from compendium.shared.characteristic_time import characteristic
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.shared.lineup import LOOKS, ROUNDS, ticks
from compendium.the_price_of_a_deadline import deadline_price
from compendium.the_price_of_a_deadline.deadline_price import (
    Family,
    closed_form,
    least_average,
    price,
    sequential_price,
    two_arms,
)
from compendium.two_rounds.policies import complexity
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import FloatArray
from ebr.theory.problems import Gaussian

Make = Callable[[float, float], Family]
Least = Callable[[FloatArray, FloatArray, int], tuple[FloatArray, FloatArray]]
Closed = Callable[[int, float, float, int], tuple[float, FloatArray]]
PAPER = 1 / 800  # Corollary 1 (i), times σ²/ε, for T = 2
GAPS = 40


def single_event_price(epsilon: float, delta: float, deadline: int) -> float:
    """A simpler and weaker bound for two arms: one q, one M_T, and one event A_t at each gap (σ = 1).

    Σ_t p_t ≥ 1 − q for P_0(S_T < M_T) ≤ q, and M_t Φ(Φ⁻¹(p_t) − d√M_{t−1}/2σ) (d + ε)²/2 ≤ r for all d and t
    if r is the worst ratio: the least r that allows it, for the best q and M_t.
    """
    gaps = np.geomspace(epsilon, 1.0, GAPS)
    shift = gaps / 2

    def room(ratio: float, levels: FloatArray) -> float:
        """The largest Σ_t p_t."""
        power = np.minimum(2 * ratio / (levels[:, None] * (gaps + epsilon) ** 2), 1.0)
        before = np.sqrt(np.append(0.0, levels[:-1]))[:, None]
        return float(ndtr(ndtri(power) + shift * before).min(axis=1).sum())

    def loss(place: FloatArray) -> float:
        miss = 2 * delta + (1 - 2 * delta) / (1 + math.exp(-place[0]))
        last = float(deadline_price.two_arms_stop(np.array(miss), epsilon, delta))
        levels = np.append(np.exp(np.cumsum(place[1:])), last)
        if place[1:].min(initial=1.0) < 0.01 or (np.diff(levels) <= 0).any():
            return 0.0
        return -float(brentq(lambda ratio: room(ratio, levels) - (1 - miss), 0.0, last))

    step = math.log(float(deadline_price.two_arms_stop(np.array(0.5), epsilon, delta))) / deadline
    start = np.append(0.0, np.full(deadline - 1, step))
    options = {"xatol": 1e-4, "fatol": 1e-6, "maxfev": 3000, "adaptive": True}
    found: Any = minimize(loss, start, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
    return -float(found.fun)


def worst_cost(algorithm: ElasticBatchRacing | SharpElasticBatchRacing) -> float:
    """At most what a race of two Gaussian arms costs, E[Ñ_T]/H on a grid of gaps to 1, σ = 1.

    A race goes on past round t only if the means then differ by no more than c_t. Only this condition is
    counted, at each t by itself, so the result is an upper bound, and a close one.
    """
    seen = looks(algorithm, 1.0)
    gaps = np.append(0.0, np.geomspace(algorithm.epsilon, 1, 400))
    times, high = seen.times[:-1, None], seen.high[:, None]
    on = ndtr((high - gaps * times) / np.sqrt(times)) - ndtr((-high - gaps * times) / np.sqrt(times))
    reached = np.vstack([np.ones(len(gaps)), np.minimum.accumulate(on, axis=0)])
    pulls = 4 * np.diff(seen.times, prepend=0.0) @ reached
    return float((pulls / complexity(gaps, algorithm.epsilon)).max())


def two_arms_table(
    epsilon: float, deltas: Iterable[float], rounds: Iterable[int], make: Make = two_arms
) -> pd.DataFrame:
    """Bounds and costs for two arms, E[Ñ_T]/H in σ².

    Columns: epsilon, delta, deadline; price; single (one event at a time); sequential (without a deadline);
    sharp and ebr, what these pay at most on their worst problem.
    """
    rows = []
    for delta, deadline in product(deltas, rounds):
        row = {"epsilon": epsilon, "delta": delta, "deadline": deadline}
        row["price"] = price(make(epsilon, delta), deadline).ratio
        row["single"] = single_event_price(epsilon, delta, deadline)
        row["sequential"] = sequential_price(2, delta)
        row["sharp"] = worst_cost(SharpElasticBatchRacing(deadline, epsilon, delta, 1.0, "Gaussian"))
        row["ebr"] = worst_cost(ElasticBatchRacing(deadline, epsilon, delta, 1.0))
        rows.append(row)
    return _settled(pd.DataFrame(rows), ["price", "single"])


def many_arms_table(
    arms: Iterable[int], epsilon: float, delta: float, rounds: Iterable[int], closed: Closed = closed_form
) -> pd.DataFrame:
    """Bounds for n arms, in σ².

    Columns: arms, deadline; price; formula (`closed_form`); searched (the same by search); sequential.
    """
    rows = []
    for deadline, n in product(rounds, arms):
        found = price(deadline_price.many_arms(n, epsilon, delta), deadline).ratio
        formula, _ = closed(n, epsilon, delta, deadline)
        other = searched(n, epsilon, delta, deadline), sequential_price(n, delta)
        rows.append((n, deadline, found, formula, *other))
    table = pd.DataFrame(rows, columns=["arms", "deadline", "price", "formula", "searched", "sequential"])
    return _settled(table, ["price"])


def searched(arms: int, epsilon: float, delta: float, deadline: int) -> float:
    """The formula (5) by search: M_t = M_T ρ^{t−T} for the best ρ, P_0(A_t) = 1/2T, the best gap for each t.

    One of the A_t is at least so likely, and only its cost counts: M_t P_d(A_t) d²/n, by (3).
    """
    last = float(deadline_price.many_arms_stop(np.array(0.5), epsilon, delta, arms))
    squares, chance = np.geomspace(epsilon, 1, 4000) ** 2 / arms, np.array(0.5 / deadline)

    def unpaid(log_ratio: float) -> float:
        levels = last * np.exp(log_ratio * np.arange(1 - deadline, 1))
        paid = [levels[0] * chance / arms]
        for before, now in pairwise(levels):
            paid.append((now * least_average(chance, squares * before, arms)[0] * squares).max())
        return -float(min(paid))

    bounds = (0.0, math.log(last))
    found: Any = minimize_scalar(unpaid, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return -float(found.fun)


def scan_table(
    epsilon: float, delta: float, make: Make = two_arms, least: Least = least_average
) -> pd.DataFrame:
    """For two rounds what no p_1 = P_0(A_1) avoids, by tangents and by a search for p_1 without slopes.

    Columns: arms, price, scanned.
    """
    many, rows = deadline_price.many_arms(5, epsilon, delta), []
    gaps = np.geomspace(epsilon, 1, deadline_price.GAPS)
    for family in (make(epsilon, delta), many._replace(curve=lambda p, x: least(p, x, 5))):
        found = price(family, 2)

        def paid(share: float, family: Family = family, levels: FloatArray = found.thresholds) -> float:
            return float(deadline_price.ratios(family, levels, np.array([share]), gaps)[0].max())

        least_paid: Any = minimize_scalar(paid, bounds=(0, 1), method="bounded", options={"xatol": 1e-9})
        rows.append((family.arms, found.ratio, float(least_paid.fun)))
    return pd.DataFrame(rows, columns=["arms", "price", "scanned"])


def unlimited_table(
    arms: Iterable[int], epsilon: float, delta: float, price: Callable[[int, float], float] = sequential_price
) -> pd.DataFrame:
    """The bound without a deadline beside T*(ν) d(1−δ, δ)/H(ν), the best that a change of measure gives.

    d(1−δ, δ) = (1 − 2δ) log((1−δ)/δ).

    ν has one arm ε above the others. For two arms they are equal; for n the bound has n − 1 where T* has
    (1 + √(n−1))². Columns: arms, price, floor.
    """
    rows, divergence = [], (1 - 2 * delta) * math.log((1 - delta) / delta)
    for n in arms:
        problem = Gaussian(np.append(0.5 + epsilon, np.full(n - 1, 0.5)), 1.0)
        floor = characteristic(problem, epsilon).time * divergence / problem.complexity(epsilon)
        rows.append((n, price(n, delta), floor))
    return pd.DataFrame(rows, columns=["arms", "price", "floor"])


def _settled(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Round what a search found down to three digits: still a bound, and no search is more precise."""
    return figures.rounded(table.assign(**{name: table[name].map(_down) for name in columns}))


def _down(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.floor(value / unit) * unit:.3g}")


def draw(pairs: pd.DataFrame, many: pd.DataFrame, epsilon: float, delta: float) -> Figure:
    """Two arms against T, and n arms against n: E[Ñ_T]/H in σ² ε^{−2/T}, at one δ."""
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 3.0))
    _draw_pairs(axes[0], pairs[pairs["delta"] == delta], epsilon)
    _draw_many(axes[1], many, epsilon)
    axes[0].set_ylabel("worst E[pulls] / H, in σ²$ε^{-2/T}$")
    for axis, title in zip(axes, ("two arms", "n arms"), strict=True):
        axis.set(title=title, yscale="log")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    figures.letters(axes)
    return figure


def _draw_pairs(axis: Axes, table: pd.DataFrame, epsilon: float) -> None:
    unit = epsilon ** (2 / table["deadline"])
    lines: dict[str, dict[str, Any]] = {
        "ebr": LOOKS["EBR"].line(label="EBR, at most"),
        "sharp": LOOKS["sharp, Gaussian"].line(label="sharp EBR, at most"),
        "price": {"color": "black", "marker": "o", "ms": 3, "label": "every algorithm, at least"},
        "sequential": {"color": "0.5", "lw": 0.8, "label": "the same, no deadline"},
    }
    for name, look in lines.items():
        axis.plot(table["deadline"], unit * table[name], **look)
    axis.plot([2], [PAPER], "kx", ms=5, label="Corollary 1 (i)")
    axis.set(xlabel="rounds T", ylim=(5e-4, 2e3))
    axis.set_xticks(sorted(table["deadline"].unique()))


def _draw_many(axis: Axes, table: pd.DataFrame, epsilon: float) -> None:
    for deadline, part in table.groupby("deadline"):
        unit, look = epsilon ** (2 / part["deadline"]), ROUNDS[int(str(deadline))]
        axis.plot(part["arms"], unit * part["price"], **look.line(label=f"T = {deadline}, by (2)"))
        dotted = look.line(label=f"T = {deadline}, by (5)", ls=":")
        axis.plot(part["arms"], unit * part["formula"], **dotted)
    axis.set(xscale="log", xlabel="arms n", ylim=(0.03, 2))
    ticks(axis, table["arms"])
