"""Exact failure probabilities of races of two arms: the law of what was seen, round by round."""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.linalg import toeplitz
from scipy.stats import binom, chi2, kstest, kstwo, norm

from compendium.failure_probability import enumeration
from compendium.failure_probability.importance import failure
from compendium.shared import figures
from compendium.shared.findings import FALSE_ALARM, Evidence
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.shared.lineup import ROUNDS
from compendium.shared.walks import Looks
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray
from ebr.theory.pairs import Pairs
from ebr.theory.problems import Bernoulli, Gaussian

Racing = ElasticBatchRacing | SharpElasticBatchRacing | PausingElasticBatchRacing
DELTAS = (0.3, 0.01)  # δ of the comparison


def log10_failure(algorithm: Racing, problem: Bernoulli | Gaussian) -> float:
    """log₁₀ P(a wrong arm is returned) of a race between two arms, or a few for pausing EBR."""
    if isinstance(problem, Gaussian):
        return looks(algorithm, problem.sigma).log_wrong(float(np.ptp(problem.means))) / math.log(10)
    if isinstance(algorithm, PausingElasticBatchRacing):
        return math.log10(enumeration.failure(algorithm, problem))
    return math.log10(bernoulli(algorithm, problem))


def looks(algorithm: Racing, sigma: float) -> Looks:
    """When a race of two N(μ, σ²) arms ends: after b_t pulls each, if their means are more than c_t apart.

    EBR has c_t = 2D − ε/(2∧T), sharp and pausing EBR c_t = w_t − ε. After the last look it ends in any case.
    """
    if isinstance(algorithm, ElasticBatchRacing):
        pulls = algorithm.pulls_by_round(2)
        reach = 2 * algorithm.deviation(pulls, 2) - algorithm.slack(2)
    elif isinstance(algorithm, PausingElasticBatchRacing):
        pulls = algorithm.pulls_by_stage(2, "Gaussian")
        log_terms = algorithm.log_terms(algorithm.shares().diagonal(), "Gaussian")
        reach = 2 * algorithm.sigma * np.sqrt(log_terms / pulls) - algorithm.epsilon
    else:
        pulls = algorithm.pulls_by_round(2, "Gaussian")
        reach = algorithm.width(pulls, algorithm.log_terms(2, "Gaussian")) - algorithm.epsilon
    fresh = np.diff(pulls, prepend=0) > 0
    times = pulls[fresh] / (2 * sigma**2)
    return Looks(times, (times * np.maximum(reach[fresh], 0))[:-1])


def bernoulli(algorithm: ElasticBatchRacing | SharpElasticBatchRacing, problem: Bernoulli) -> float:
    """P(EBR or sharp EBR on two Bernoulli arms returns the worse): sums over all outcomes.

    mass[x, y] is the probability that the race goes on with x and y successes; a round multiplies it by the
    binomial laws of its new pulls. Nothing is subtracted, so small probabilities are accurate too. Ties go
    to the first arm.
    """
    pulls, mass, failed = 0, np.ones((1, 1)), 0.0
    if isinstance(algorithm, ElasticBatchRacing):
        counts = np.unique(algorithm.pulls_by_round(2))
    else:
        counts = np.unique(algorithm.pulls_by_round(2, "bounded"))
    for target in counts:
        first, second = (_growth(pulls, int(target), float(mean)) for mean in problem.means)
        mass, pulls = first @ mass @ second.T, int(target)
        ended = _ended(algorithm, pulls) | (pulls == counts[-1])
        successes = np.arange(pulls + 1)
        second_leads = successes[:, None] < successes
        failed += float(mass[ended & (second_leads == (problem.best == 0))].sum())
        mass = np.where(ended, 0.0, mass)
    return failed


def _growth(before: int, after: int, mean: float) -> FloatArray:
    """The law of the successes after some pulls (rows), given those before (columns)."""
    first = binom.pmf(np.arange(after + 1), after - before, mean)  # 0 beyond the number of new pulls
    return np.asarray(toeplitz(first, np.append(first[0], np.zeros(before))))


@lru_cache(maxsize=4)
def _ended(algorithm: ElasticBatchRacing | SharpElasticBatchRacing, pulls: int) -> BoolArray:
    """Whether a race ends after so many pulls of each arm, for all numbers of successes of both.

    This does not depend on the arms' means.
    """
    sums, counts = np.arange(pulls + 1.0), np.array(pulls)
    if isinstance(algorithm, ElasticBatchRacing):
        means = sums / pulls
        reach = 2 * float(algorithm.deviation(pulls, 2)) - algorithm.slack(2)
        return np.asarray(np.abs(means[:, None] - means) > max(reach, 0.0))
    which = int(np.argmax(algorithm.pulls_by_round(2, "bounded") == pulls))
    log_term = float(algorithm.log_terms(2, "bounded")[which])
    pairs = Pairs(np.maximum(sums[:, None], sums), counts, np.minimum(sums[:, None], sums), counts)
    # A leader that drops an arm is certified as well: w_t − ε < w_t.
    return algorithm.refuted(pairs, algorithm.epsilon, log_term, "bounded")


class Case(NamedTuple):
    """A race whose failure probability is computed and estimated: σ = ½, all but the last arm worse by ε."""

    rewards: str  # "Gaussian" or "Bernoulli"
    algorithm: str
    deadline: int
    epsilon: float
    delta: float
    top: float
    n_arms: int = 2

    def race(self) -> tuple[Racing, Bernoulli | Gaussian]:
        """The algorithm and the problem."""
        algorithm = FORMS[self.algorithm](self.deadline, self.epsilon, self.delta)
        means = np.full(self.n_arms, self.top - self.epsilon * (1 + 1e-6))  # a gap of ε, not less by rounding
        means[-1] = self.top
        return algorithm, Gaussian(means, 0.5) if self.rewards == "Gaussian" else Bernoulli(means)


FORMS: dict[str, Callable[[int, float, float], Racing]] = {
    "EBR": ElasticBatchRacing,
    "sharp": partial(SharpElasticBatchRacing, rewards="sub-Gaussian"),
    "sharp, [0, 1]": partial(SharpElasticBatchRacing, rewards="bounded"),
    "sharp, Gaussian": partial(SharpElasticBatchRacing, rewards="Gaussian"),
    "pausing, [0, 1]": partial(PausingElasticBatchRacing, rewards="bounded"),
    "pausing, Bernoulli": partial(PausingElasticBatchRacing, rewards="Bernoulli"),
    "pausing, Gaussian": partial(PausingElasticBatchRacing, rewards="Gaussian"),
}


def cases() -> Iterator[Case]:
    """Where estimates are compared with exact values.

    Gaussian arms: T from 1 to 4, ε from 0.1 to 10⁻⁴ for EBR, 0.001 for the others. Bernoulli arms: T from 1
    to 3, where the sums over all outcomes are small; means around ½ and next to 0 and 1; two and three arms
    for pausing EBR, where all outcomes can be played.
    """
    for name in ("EBR", "sharp", "sharp, Gaussian", "pausing, Gaussian"):
        epsilons = (0.1, 0.01, 1e-3, 1e-4) if name == "EBR" else (1e-3,)
        for delta, deadline, epsilon in product(DELTAS, (1, 2, 3, 4), epsilons):
            yield Case("Gaussian", name, deadline, epsilon, delta, 0.5 + epsilon / 2)
    for name, delta, deadline in product(("EBR", "sharp", "sharp, [0, 1]"), DELTAS, (1, 2, 3)):
        yield from (Case("Bernoulli", name, deadline, 0.3, delta, top) for top in (0.65, 0.999, 0.301))
        if name != "EBR":
            yield Case("Bernoulli", name, deadline, 0.1, delta, 0.11)
    for name, delta, deadline in product(("pausing, [0, 1]", "pausing, Bernoulli"), DELTAS, (1, 2, 3)):
        if deadline < 3 or delta == DELTAS[0]:
            yield from (Case("Bernoulli", name, deadline, 0.3, delta, top) for top in (0.65, 0.999, 0.301))
        if deadline < 3 and (name, delta) != ("pausing, [0, 1]", DELTAS[1]):
            yield from (Case("Bernoulli", name, deadline, 0.3, delta, top, 3) for top in (0.65, 0.999))


def compared(runs: int, seed: int, only: Iterator[Case] | None = None) -> pd.DataFrame:
    """Estimates against exact values, one row per case.

    Columns: the case, exact and log10 (of the failure probability), relative_error, races, and off: how many
    of its standard errors the estimate is off.
    """
    rows = []
    for case in only or cases():
        algorithm, problem = case.race()
        exact, estimate = log10_failure(algorithm, problem), failure(algorithm, problem, runs, seed)
        relative = 10 ** (estimate.log10 - exact) - 1
        off = relative / estimate.relative_error if estimate.relative_error else math.copysign(1e9, relative)
        row = {"exact": exact, "log10": estimate.log10, "relative_error": estimate.relative_error}
        rows.append({**case._asdict(), **row, "races": estimate.races, "off": off})
    return pd.DataFrame(rows)


def estimates_right(table: pd.DataFrame) -> tuple[bool, tuple[Evidence, ...]]:
    """Whether the estimates of `compared` are off as their standard errors say, and the evidence for it.

    Were the distances standard normal, their squares' sum would have a χ² law, none would be beyond a limit,
    and their distribution function would be near the normal one (Kolmogorov and Smirnov): four tests. One or
    more of them reject right errors with probability FALSE_ALARM at most.
    """
    level, cases = FALSE_ALARM / 4, len(table)
    limit, farthest_law = float(norm.isf(level / (2 * cases))), float(kstwo.isf(level, cases))
    squares, farthest = float((table["off"] ** 2).mean()), float(table["off"].abs().max())
    law = float(kstest(table["off"], "norm").statistic)
    low, high = (float(chi2.ppf(share, cases)) / cases for share in (level, 1 - level))
    runs, where = int(table["races"].sum()), f"{cases} races of few arms, known exactly"
    squared = "mean square of the estimates' errors, in standard errors"
    evidence = (
        Evidence(squared, squares, where, runs=runs, allowed=f"{low:.2f} to {high:.2f}"),
        Evidence("the largest of these errors", farthest, where, runs=runs, allowed=f"≤ {limit:.2f}"),
        Evidence(
            "their law, from the normal, at most", law, where, runs=runs, allowed=f"≤ {farthest_law:.2f}"
        ),
    )
    return low <= squares <= high and farthest <= limit and law <= farthest_law, evidence


def curves(delta: float, epsilons: FloatArray, deadlines: tuple[int, ...] = (1, 2, 3, 4)) -> pd.DataFrame:
    """EBR's exact failure probability on two Gaussian arms along ε, for some T."""
    rows = []
    for deadline, epsilon in product(deadlines, epsilons):
        case = Case("Gaussian", "EBR", deadline, figures.significant(epsilon), delta, 0.5 + epsilon / 2)
        rows.append({"deadline": deadline, "epsilon": case.epsilon, "exact": log10_failure(*case.race())})
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, lines: pd.DataFrame, delta: float) -> Figure:
    """EBR's failure probability along ε, `curves` with estimates; and how far all estimates are off."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(figures.PAGE, 2.9))
    shown = table.query("algorithm == 'EBR' and rewards == 'Gaussian' and delta == @delta")
    for deadline, line in lines.groupby("deadline"):
        look = ROUNDS[int(str(deadline))]
        left.plot(line["epsilon"], 10 ** line["exact"], color=look.color)
        points = shown[shown["deadline"] == deadline]
        error = 10 ** points["log10"] * points["relative_error"] * norm.isf(0.005)
        bars = left.errorbar(points["epsilon"], 10 ** points["log10"], error, **look.line(ls="", ms=3.5))
        bars.lines[0].set_label(f"T = {deadline}")
    left.set(xscale="log", yscale="log", xlabel="tolerance ε", ylabel="failure probability")
    left.legend(loc="center left", bbox_to_anchor=(0, 0.35))
    _quantiles(right, table)
    figures.letters((left, right))
    return figure


def _quantiles(axis: Axes, table: pd.DataFrame) -> None:
    """The errors in standard errors, sorted, against the quantiles of the normal law."""
    expected = norm.ppf((np.arange(len(table)) + 0.5) / len(table))
    ordered = table.sort_values("off").assign(expected=expected)
    axis.plot([-3.5, 3.5], [-3.5, 3.5], color="0.6", lw=0.8, label="standard normal")
    for rewards, marker, fill in (("Gaussian", "o", "black"), ("Bernoulli", "s", "none")):
        part = ordered[ordered["rewards"] == rewards]
        label = f"{rewards} arms"
        axis.plot(part["expected"], part["off"], f"k{marker}", mfc=fill, mew=0.5, ms=3, label=label)
    axis.set(xlabel="quantile of the normal law", ylabel="estimate − exact, in standard errors")
    axis.legend()
