"""How rarely a PAC algorithm can make many pulls: Lemma HPCM, Theorem 3 for two arms, and their 1/6."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

from compendium.lower_bounds.near_optimal import LookTest, calibrated
from compendium.shared import figures
from compendium.shared.cost_bounds import hpcm, partition
from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding
from ebr.arrays import FloatArray, IntArray
from ebr.theory.divergence import relative_entropy
from ebr.theory.problems import Gaussian, Problem

EPSILON, SIGMA = 0.001, 0.5  # ε so small that rounding to whole pulls does not matter
BEYOND = 60.0  # information between the two looks; the second look errs with less than 10⁻¹³
DELTAS = (1 / 6, 0.1, 0.01)
NEAR = 1e-3  # relative tolerance: pulls are whole, and the partner has finitely many
EVERY = "P({} reaches the count), any algorithm, at least"
Calibrate = Callable[[LookTest, float], LookTest]
Partition = Callable[[Problem, float, int], IntArray]


def least_reach(root: FloatArray | float, delta: FloatArray | float) -> FloatArray:
    """Lemma HPCM by Neyman and Pearson: P(Ñ_i ≥ c σ²/(Δ_i + ε)²) ≥ 1 − δ − Φ(Φ⁻¹(δ) + √c), from √c.

    No event that is decided by so few pulls of arm i has more than Φ(Φ⁻¹(δ) + √c) under ν if it has at most δ
    once arm i has moved by Δ_i + ε; and a wrong recommendation has at most δ. Two arms that move by half of
    it each, past one another, say the same of all pulls: P(Ñ_T ≥ N) with √c = (Δ + ε)√N/2σ.
    """
    return np.asarray(1 - delta - ndtr(ndtri(delta) + root))


def hpcm_at(probability: float, delta: float) -> float:
    """The same proof with p in place of 1/6: c = 2 d(1 − p − δ, δ), for 1 − p − δ > δ."""
    return 2 * float(relative_entropy(1 - probability - delta, delta)) if 1 - probability > 2 * delta else 0.0


def stingy(most: float, delta: float, partner: float = 1.0, calibrate: Calibrate = calibrated) -> LookTest:
    """The two-look test that makes fewer than `most` pulls of an arm as often as possible, else very many.

    By Neyman and Pearson the best use of so few pulls is to ask whether W lies beyond a threshold. The
    threshold is the lowest one at which the test errs with δ in all.
    """
    first = math.ceil(most) - 1
    unit = (1 + partner) / partner * (SIGMA / EPSILON) ** 2
    # A start for the search: the threshold if the second look never erred.
    start = math.sqrt(first / unit) * float(norm.isf(delta)) - first / unit
    test = LookTest((first, first + math.ceil(BEYOND * unit)), (start,), EPSILON, SIGMA, partner)
    return calibrate(test, delta)


def empty_indices(partition: Partition = partition, deadline: int = 4) -> Evidence:
    """Number of γ ∈ [T]² without a problem: two arms have the same gap, so γ_1 = γ_2."""
    gaps = np.geomspace(1e-4, 1, 1000)
    seen = {tuple(partition(Gaussian(1 - np.array([0, gap]), SIGMA), 0.05, deadline)) for gap in gaps}
    what, where = "γ ∈ [T]² whose P_γ has no problem", f"T = {deadline}, of {deadline**2}; {len(gaps):,} gaps"
    return Evidence(what, deadline**2 - len(seen), where, allowed="0")


def theorem_3_two_arms(
    shift: float = 1 / 2,
    constant: float = 2 / 3,
    calibrate: Calibrate = calibrated,
    partition: Partition = partition,
) -> Finding:
    """Check C13: n = 2, Ñ_T ≥ (2σ²/3) log(1/2δ) sup H with probability 1/6, δ ≤ 0.15.

    Printed for all γ; corrected to those whose P_γ is not empty.
    The paper's proof, which shifts one arm by Δ + ε, gives σ²/3. Shifting *both* by (Δ + ε)/2, past one
    another, gives (4σ²/3) log(1/2δ) H(ν), and in the last bin, with equal arms, 8σ² d(5/12, δ)/ε². That is
    enough for the printed statement. In units of Δ + ε, a pull has the information `shift`²/2σ².
    """
    deltas = np.geomspace(1e-12, 0.15, 2000)
    logs = np.log(1 / (2 * deltas))
    # In the last bin: against constant · σ² log(1/2δ) · 2ε^{−2}. At equal arms P ≥ 1 − 2Φ(Φ⁻¹(δ) + ε√N/2σ).
    entropy = relative_entropy(5 / 12, deltas)
    last = 2 / shift**2 * entropy / (2 * constant * logs)
    factor = 1 / (3 * shift**2)
    roots = np.sqrt(constant * logs / 2)
    below, equal = least_reach(roots, deltas), 2 * least_reach(roots, deltas) + 2 * deltas - 1
    # The counts of the two proofs must be reached with 1/6 by Neyman and Pearson's bound, too.
    proofs = np.minimum(
        least_reach(np.sqrt(factor * logs / 2), deltas),
        2 * least_reach(np.sqrt(entropy / (2 * shift**2)), deltas) + 2 * deltas - 1,
    )
    unit, printed = "in σ² log(1/2δ) H", f"≥ {constant:.3g}"
    evidence = [
        empty_indices(partition),
        Evidence("what the paper's proof gives", 1 / 3, unit, allowed=printed),
        Evidence("what shifting both arms gives", factor, unit, allowed=printed),
        Evidence("proved over printed, at least", float(last.min()), "last bin, δ ≤ 0.15", allowed="≥ 1"),
        Evidence(EVERY.format("Ñ_T"), float(below.min()), "γ_i < T", allowed="≥ 1/6"),
        Evidence(EVERY.format("Ñ_T"), float(equal.min()), "γ_i = T", allowed="≥ 1/6"),
    ]
    least = min(last.min(), 6 * below.min(), 6 * equal.min(), 6 * proofs.min())
    holds = factor >= constant and bool(least >= 1)
    # Below the last bin N/2 = constant · σ² log(1/2δ)/(Δ + ε)², in it Δ = 0 on the problem that counts.
    counts = []
    for delta, gap in ((0.15, 0), (0.15, 1), (0.15, 3), (0.01, 0)):
        count = constant * math.log(1 / (2 * delta)) * (SIGMA / EPSILON / (gap + 1)) ** 2
        share = float(least_reach(math.sqrt(constant * math.log(1 / (2 * delta)) / 2), delta))
        counts.append((count, delta, gap, share if gap else 2 * share + 2 * delta - 1))
    rows, right = _reached("Ñ_T", counts, calibrate)
    repaired = holds and right
    return Finding("C13", repaired and not evidence[0].value, (*evidence, *rows), "proved", repaired)


def _reached(
    what: str, counts: Iterable[tuple[float, float, float, float]], calibrate: Calibrate, partner: float = 1.0
) -> tuple[list[Evidence], bool]:
    """P(a count is reached) by `stingy` tests, at δ and a gap; whether all are PAC and reach it with 1/6.

    The last number of each row is a lower bound for every algorithm. At Δ ≤ ε the test must attain it.
    """
    rows, right = [], True
    for count, delta, gap, least in counts:
        test = stingy(count, delta, partner, calibrate)
        reached, wrong = float(test.looks.reached(gap)[1]), test.looks.wrong(1.0)
        where = f"δ = {delta:.3g}, Δ = {gap:g}ε; errs with {wrong:.4g} at Δ = ε"
        rows.append(Evidence(f"P({what} reaches the count), two looks", reached, where, allowed="≥ 1/6"))
        right = right and reached >= 1 / 6 and wrong <= delta
        right = right and least <= reached and (gap > 1 or reached <= least * (1 + NEAR))
    return rows, right


def other_arms(
    count: Callable[[float], float] = hpcm,
    deltas: Sequence[float] = DELTAS,
    calibrate: Calibrate = calibrated,
) -> Finding:
    """Check C15, Lemma HPCM: every arm but the best reaches its count with probability at least 1/6."""
    unpulled = "P(Ñ_2 ≥ 1) where μ_[1] = 1, not ≤ 1 − ε", "arm 1 is confirmed above 1 − ε"
    return _lemma("C15", "Ñ_i", unpulled, count, deltas, calibrate)


def best_arm(
    count: Callable[[float], float] = hpcm,
    deltas: Sequence[float] = DELTAS,
    calibrate: Calibrate = calibrated,
) -> Finding:
    """Check C41: so does the best arm, where it alone is ε-optimal and μ_[2] ≥ ε.

    The mirror image of `other_arms`: here the better of the two arms is pulled little.
    """
    unpulled = "P(Ñ_[1] ≥ 1) where μ_[2] = 0, not ≥ ε", "arm 2 is confirmed below ε"
    return _lemma("C41", "Ñ_[1]", unpulled, count, deltas, calibrate)


def _lemma(
    claim: str,
    what: str,
    unpulled: tuple[str, str],
    count: Callable[[float], float],
    deltas: Sequence[float],
    calibrate: Calibrate,
) -> Finding:
    """Check the lemma for an arm that is pulled little while its rival is pulled ten thousand times as often.

    The arm is pulled fewer than c σ²/(Δ + ε)² times, c = ⅔ log(1/2δ).

    The last row is P(both arms are pulled) on means 1 and 0, for a PAC algorithm that first looks at one arm
    alone. If that arm is confirmed above 1 − ε (or below ε) at level δ/2, it (or the other arm) is ε-optimal
    whatever the other's mean. The standard error of its mean is a sixteenth of ε.
    """
    fine = np.geomspace(1e-12, max(deltas), 2000)
    asked = np.array([count(delta) for delta in fine])
    least = least_reach(np.sqrt(asked), fine)
    at = f"at δ = {fine[least.argmin()]:.3g}"
    off = float(np.abs(asked / np.log(1 / (2 * fine)) - 2 / 3).max())
    counts = [
        (count(d) * (SIGMA / EPSILON / (gap + 1)) ** 2, d, gap, float(least_reach(math.sqrt(count(d)), d)))
        for d, gap in product(deltas, (1, 3))
    ]
    rows, right = _reached(what, counts, calibrate, 1e4)
    chance, (event, where) = float(norm.sf(16 - norm.isf(0.1 / 2))), unpulled
    evidence = (
        Evidence("c over log(1/2δ), farthest from ⅔ by", round(off, 12), "δ down to 10⁻¹²", allowed="0"),
        Evidence(EVERY.format(what), float(least.min()), at, allowed="≥ 1/6"),
        *rows,
        Evidence(event, chance, f"means 1 and 0, δ = 0.1; {where}"),
    )
    return Finding(claim, right and off < 1e-12 and bool(least.min() >= 1 / 6), evidence, "proved")


def any_number_of_arms(
    count: Callable[[float], float] = hpcm, share: float = 1 / 12, chance: float = 1 / 11
) -> Finding:
    """Check C56: "an HPCM result for general n appears difficult".

    Lemma HPCM already holds for any n, arm by arm. The tests: n − 1 arms at Δ = ε, each compared with the
    best, which is pulled ten thousand times as often, by a two-look test of error δ/(n − 1). A bound on all
    pulls follows: of events with probability 1/6 each, a weight `share` of all happens at once with
    probability at least `chance`. A linear program over the number of events finds the minimum.
    """
    rows, right, least = [], True, 1.0
    for n_arms, delta in product((2, 5, 50), (1 / 6, 0.01)):
        test = stingy(count(delta) * (SIGMA / EPSILON / 2) ** 2, delta / (n_arms - 1), 1e4)
        reached = float(test.looks.reached(1.0)[1])
        where = f"n = {n_arms}, δ = {delta:.3g}, Δ = ε"
        rows.append(Evidence("P(Ñ_i reaches the count), two looks", reached, where, allowed="≥ 1/6"))
        right = right and reached >= 1 / 6
        least = min(least, together(n_arms - 1, share))
    what = f"P(arms of 1/{1 / share:g} of the weight reach theirs), at least"
    evidence = (*rows, Evidence(what, least, "linear program, n to 50", allowed="≥ 1/11"))
    easy = right and least >= chance - 1e-9
    return Finding("C56", not easy, evidence, "proved")


def together(events: int, share: float, each: float = 1 / 6) -> float:
    """The least P(at least `share` of the events happen), where each event has probability `each`.

    The events have equal weight and any dependence: minimise over laws of their number with this mean.
    """
    number = np.arange(events + 1)
    enough = (number >= share * events).astype(float)
    law = linprog(enough, A_eq=np.vstack([np.ones(events + 1), number]), b_eq=[1, events * each])
    return float(law.fun or 0.0)


def second_inequality(
    constant: float = 1 / 6, calibrate: Calibrate = calibrated, partition: Partition = partition
) -> Finding:
    """Check C49: n = 2, Ñ_T ≥ (σ²/6) log(1/2δ) ε^{−2γ_i/T} with probability 1/6, for both i.

    Printed for all γ; corrected to those whose P_γ is not empty (γ_1 = γ_2).
    """
    deltas = np.geomspace(1e-12, 0.15, 500)
    # At Δ = ε^{γ/T} = gε: ⅔ H = ⅔ · 2(Δ + ε)^{−2} over constant · Δ^{−2} is least as g falls to 1.
    gaps = np.geomspace(1, 1e6, 500)
    chain = 4 / 3 * (1 + 1 / gaps) ** -2 / constant
    roots = np.sqrt(constant * np.log(1 / (2 * deltas)))  # (Δ + ε)√N/2σ at Δ = ε; less where Δ > ε
    least = least_reach(roots, deltas)
    evidence = [
        empty_indices(partition),
        Evidence("first over second right side, at least", float(chain.min()), "γ_i < T", allowed="≥ 1"),
        Evidence("first over second right side, at least", 4 / 3 / constant, "γ_i = T", allowed="≥ 1"),
        Evidence(EVERY.format("Ñ_T"), float(least.min()), "δ ≤ 0.15", allowed="≥ 1/6"),
    ]
    holds = bool(min(chain.min(), 4 / 3 / constant, 6 * least.min()) >= 1)
    # At Δ = ε the first right side is exactly twice the printed second one.
    holds = holds and math.isclose(chain.min(), 2)
    counts = []
    for delta, gap in ((0.15, 1), (0.15, 3), (0.01, 1)):
        need = constant * math.log(1 / (2 * delta))
        share = float(least_reach(math.sqrt(need) * (1 + 1 / gap) / 2, delta))
        counts.append((need * (SIGMA / EPSILON / gap) ** 2 / 2, delta, gap, share))
    rows, right = _reached("Ñ_T", counts, calibrate)
    repaired = holds and right
    return Finding("C49", repaired and not evidence[0].value, (*evidence, *rows), "proved", repaired)


def larger_probability(
    constant: Callable[[float, float], float] = hpcm_at, says_first: float = 0.5, excess: float = 1.0
) -> Finding:
    """Check C40: the probability 1/6 can be close to ½ with the logarithm, and close to 1 without it.

    An algorithm may guess before its first pull (arm 1 with probability `says_first`) as often as δ allows,
    times `excess`, and otherwise make a long test. A linear program shows that none can guess more often.
    """
    evidence = []
    for delta in (0.15, 0.1, 0.01, 1e-4):
        half = constant(0.5, delta) / math.log(1 / delta)
        what, at = "constant at probability ½, over log(1/δ)", f"δ = {delta:g}"
        evidence.append(Evidence(what, half, at, allowed="> 0"))
    positive = min(row.value for row in evidence) > 0
    places = list(product((1 / 6, 0.5, 0.6), (0.15, 0.01, 1e-4)))
    by_hand = [2 * _entropy(1 - p - delta, delta) for p, delta in places]
    off = max(abs(constant(*place) / c - 1) for place, c in zip(places, by_hand, strict=True))
    evidence.append(Evidence("constant over 2 d(1 − p − δ, δ), off 1 by", round(off, 9), allowed="< 10⁻⁹"))
    reached, exact = 1.0, True
    for delta in (0.15, 0.01):
        long = float(norm.sf(7))  # error of the long test
        worse = max(says_first, 1 - says_first)
        idle = excess * (delta - long) / (worse - long)
        error = idle * worse + (1 - idle) * long
        pulls = 1 - idle if error <= delta * (1 + 1e-12) else 1.0
        most, at = most_idle(delta), f"δ = {delta:g}"
        near = constant(1 - 2 * delta - 1e-6, delta) > 0
        reached, exact = min(reached, pulls), exact and near and abs(pulls - 1 + most) < 1e-9
        evidence += [
            Evidence("error of one that may guess at once", error, at, allowed=f"≤ {delta:g}"),
            Evidence("probability that it makes any pull", pulls, at, allowed="close to 1"),
            Evidence("pulls of every PAC algorithm: with probability", 1 - most, f"{at}, linear program"),
        ]
    positive = positive and off < 1e-9
    return Finding("C40", positive and reached == 1, tuple(evidence), "proved", positive and exact)


def _entropy(x: float, y: float) -> float:
    """d(x, y), as the paper prints it."""
    return x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))


def most_idle(delta: float, n_arms: int = 2) -> float:
    """The largest P(no pull) of any PAC algorithm for n arms: nδ/(n−1).

    Without a pull it returns arm j with q_j on every problem; where i alone is ε-optimal, Σ_{j≠i} q_j ≤ δ.
    """
    wrong = np.ones((n_arms, n_arms)) - np.eye(n_arms)
    program = linprog(-np.ones(n_arms), A_ub=wrong, b_ub=np.full(n_arms, delta))
    return -float(program.fun or 0.0)


def frontier(delta: float, counts: FloatArray) -> pd.DataFrame:
    """P(Ñ_i ≥ c σ²/(Δ_i + ε)²) at Δ_i = ε: least of any PAC algorithm, of `stingy` tests, and by the proof.

    Columns: count (c over log(1/2δ)), least, stingy and proof (the p with c = 2 d(1 − p − δ, δ)).
    """
    scale, grid = math.log(1 / (2 * delta)), np.linspace(1e-6, 1 - 2 * delta, 4000)
    by_proof = np.array([hpcm_at(p, delta) for p in grid])[::-1]
    rows = []
    for count in counts:
        c = float(count) * scale
        test = stingy(c * (SIGMA / EPSILON / 2) ** 2, delta, 1e4)
        proof = float(np.interp(c, by_proof, grid[::-1], right=0.0))
        least = float(least_reach(math.sqrt(c), delta))
        rows.append((float(count), least, float(test.looks.reached(1.0)[1]), proof))
    return figures.rounded(pd.DataFrame(rows, columns=["count", "least", "stingy", "proof"]))


def draw(policies: pd.DataFrame, reach: pd.DataFrame) -> Figure:
    """Left: costs from `expected_pulls.policies` over the bound; right: the `frontier` of probabilities."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(figures.PAGE, 2.8))
    _costs(left, policies)
    right.plot(reach["count"], reach["least"], color="0.3", label="least of any PAC algorithm")
    right.plot(reach["count"], reach["stingy"], "o", ms=4, mfc="white", color="C0", label="a two-look test")
    right.plot(reach["count"], reach["proof"], "--", color="C3", label="what the lemma's proof gives")
    right.plot([2 / 3], [1 / 6], "s", color="C3", label="what Lemma HPCM says")
    reached = r"$P(\tilde N_i \geq c\,\sigma^2/(\Delta_i+\epsilon)^2)$"
    right.set(xlabel="c / log(1/2δ)", ylabel=reached, ylim=(0, 1))
    right.legend()
    figures.letters((left, right))
    return figure


def _costs(axis: Axes, policies: pd.DataFrame) -> None:
    """Costs of T-look tests, each curve with its T at its right end."""
    two = policies[policies["last"] & (policies["n_arms"] == 2)]
    for place, (rounds, part) in enumerate(two.groupby("deadline")):
        part = part.sort_values("delta")
        over = part["cost"] / part["lower"]
        looks: dict[str, Any] = {"marker": "os^Dv"[place], "color": f"C{place}"}
        axis.plot(part["delta"], over, ms=4, lw=0.7, **looks)
        end = (part["delta"].max(), over.iloc[-1])
        axis.annotate(f"T = {rounds}", end, (6, -2.5), textcoords="offset points", fontsize=7)
    paper = two.drop_duplicates("delta").sort_values("delta")
    axis.plot(
        paper["delta"], paper["printed"] / paper["lower"], "--", color="0.3", label="Theorem 3 in the paper"
    )
    axis.axhline(1, color="0.3", lw=1, label="Theorem 3, corrected")
    axis.set(xscale="log", xlabel="δ", ylabel="expected pulls over the corrected bound", ylim=(0.95, 1.9))
    axis.set(xlim=(0.008, 0.24))
    axis.set_xticks([0.01, 0.02, 0.05, 0.1, 0.15], ["0.01", "0.02", "0.05", "0.1", "0.15"])
    axis.set_xticks([], minor=True)
    axis.legend(loc="upper center")
