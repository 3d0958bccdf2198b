"""Equal arms, and one of them raised: how much rarer an event can become, on races and at the limit."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import log_ndtr

from compendium.shared.problem_sets import twelve_digits
from compendium.the_price_of_a_deadline.deadline_price import least_average, many_arms_stop
from ebr.algorithms.game import Algorithm, drive
from ebr.arrays import BoolArray, FloatArray, IntArray

Least = Callable[[FloatArray, FloatArray, int], tuple[FloatArray, FloatArray]]
Stop = Callable[[FloatArray, float, float, int], FloatArray]
PILOT = 200  # races that choose the thresholds of the events, with a seed of their own
SEEN = (0.5, 2.0, 6.0)  # x of the events


class Races(NamedTuple):
    """S_t after each round (races × rounds), the recommended arm, and the raised one."""

    totals: IntArray
    arm: IntArray
    raised: IntArray


def played(algorithm: Algorithm, arms: int, gap: float, runs: int, seed: int) -> Races:
    """Races of Gaussian arms of mean 0, one of them raised by d: each as often as any other."""
    generator = np.random.default_rng([seed, arms, runs])
    raised = np.arange(runs) % arms
    means = gap * (np.arange(arms) == raised[:, None])
    totals = [np.zeros(runs, dtype=np.int64)]

    def respond(pulls: IntArray) -> FloatArray:
        totals.append(totals[-1] + pulls.sum(axis=1))
        noise = generator.standard_normal(pulls.shape)
        return np.asarray(pulls * means + algorithm.sigma * np.sqrt(pulls) * noise)

    arm = drive(algorithm.play(arms, runs, rewards="Gaussian", generator=generator), respond)
    return Races(np.stack(totals[1:], axis=1), arm, raised)


def _goes_on(races: Races, first: float, second: float) -> BoolArray:
    """A_2: S_1 < M_1, and S_2 ≥ M_2."""
    after = races.totals[:, min(1, races.totals.shape[1] - 1)]
    return np.asarray((races.totals[:, 0] < first) & (after >= second))


def events(
    algorithms: Mapping[str, Algorithm], arms: int, runs: int, seed: int, least: Least = least_average
) -> pd.DataFrame:
    """Two events of races: their probability, averaged over the raised arms, and its lower bound.

    "goes on": A_2 with M_1 just above the first round and M_2 the median of S_2 on equal arms. "errs": the
    race ends with fewer than M pulls and does not recommend the raised arm, M just above the median of S_T;
    that has at least (n−1)/n p exp(−x/2 − √(2x log(n/p)/(n−1))), p = P_0(S_T < M). Columns: algorithm, event,
    gap, seen (x), equal (p), raised, needed, error (of raised less needed), runs.
    """
    rows = []
    for name, algorithm in algorithms.items():
        pilot = played(algorithm, arms, 0.0, PILOT, seed + 1)
        first, last = pilot.totals[:, 0].max() + 1, float(np.median(pilot.totals[:, -1])) + 1
        second = float(np.median(pilot.totals[:, min(1, pilot.totals.shape[1] - 1)]))
        equal = played(algorithm, arms, 0.0, runs, seed)
        for seen in SEEN:
            gap = float(twelve_digits([algorithm.sigma * math.sqrt(seen * arms / first)])[0])
            chance = _mean(_goes_on(equal, first, second))
            value = _mean(_goes_on(played(algorithm, arms, gap, runs, seed), first, second))
            rows.append((name, "goes on", gap, seen, *_row(chance, value, seen, arms, least)))
            gap = float(twelve_digits([algorithm.sigma * math.sqrt(seen * (arms - 1) / last)])[0])
            there = played(algorithm, arms, gap, runs, seed)
            value = _mean((there.totals[:, -1] < last) & (there.arm != there.raised))
            chance = _mean(equal.totals[:, -1] < last)
            rows.append((name, "errs", gap, seen, *_row(chance, value, seen, arms, least, errs=True)))
    columns = ["algorithm", "event", "gap", "seen", "equal", "raised", "needed", "error"]
    return pd.DataFrame(rows, columns=columns).assign(runs=runs)


def _mean(values: BoolArray) -> tuple[float, float]:
    """The mean and its standard error, which is never 0: one more race might have differed."""
    share = (values.sum() + 1) / (len(values) + 2)
    return float(values.mean()), math.sqrt(share * (1 - share) / len(values))


def _row(
    chance: tuple[float, float],
    value: tuple[float, float],
    seen: float,
    arms: int,
    least: Least,
    errs: bool = False,
) -> tuple[float, float, float, float]:
    """p, what is measured, what is needed, and the standard error of their difference.

    For the event "errs" log(n/p) is log(1/(p/n)), with n − 1 arms under the root.
    """
    if chance[0] == 0:
        return 0.0, value[0], 0.0, value[1]
    split, others, share = (arms, arms - 1, arms - 1.0) if errs else (1, arms, 1.0)
    needed, slope = least(np.array(min(chance[0] / split, 1 - 1e-12)), np.array(seen), others)
    spread = math.hypot(value[1], share * min(float(slope), 1.0) * (chance[1] / split))
    return chance[0], value[0], share * float(needed), spread


def limit(
    arms: Iterable[int], seens: Iterable[float], least: Least = least_average, stop: Stop = many_arms_stop
) -> pd.DataFrame:
    """A policy that looks after every pull and comes arbitrarily near to both bounds, for many arms.

    One arm after another is pulled until its likelihood ratio has fallen to e^{−a}; A: all have, within nx in
    all. In the limit of small d the sum of the log-ratios is a Brownian motion with drift −½ that is na below
    0 by time nx: p = Φ((x/2 − a)√(n/x)) + e^{na} Φ(−(a + x/2)√(n/x)), and the mean of P_j(A) is e^{−a} p,
    exactly. A policy that then recommends any arm errs with (n−1)/n of it. Columns: arms, seen (x), extra
    (a − x/2), equal (p), raised, needed, ratio (raised over needed), stop (M for q = p and this error, over
    the pulls: at most 1).
    """
    rows = []
    for n, x, extra in product(arms, seens, (0.0, 0.25)):  # with a = x/2, p is about ½; beyond, A is rare
        level, scale = x / 2 + extra, math.sqrt(n / x)
        log_p = np.logaddexp(log_ndtr(-extra * scale), n * level + log_ndtr(-(level + x / 2) * scale))
        chance, raised = np.exp(log_p), float(np.exp(log_p - level))
        needed = float(least(chance, np.array(x), n)[0])
        reach = float(stop(chance, 1.0, raised * (n - 1) / n, n)) / (n * x)
        rows.append((n, x, extra, float(chance), raised, needed, raised / needed, reach))
    columns = ["arms", "seen", "extra", "equal", "raised", "needed", "ratio", "stop"]
    return pd.DataFrame(rows, columns=columns)


def costs(
    algorithms: Mapping[str, Algorithm], bound: float, arms: int, gaps: Sequence[float], runs: int, seed: int
) -> pd.DataFrame:
    """E[Ñ_T]/H over σ² with one arm raised by each gap, and how far that is above what any algorithm pays.

    Columns: algorithm, gap, ratio, error, excess (ratio over bound), runs.
    """
    rows = []
    for name, algorithm in algorithms.items():
        for gap in gaps:
            pulls = played(algorithm, arms, gap, runs, seed).totals[:, -1]
            unit = (gap + algorithm.epsilon) ** 2 / (arms * algorithm.sigma**2)
            rows.append((name, gap, pulls.mean() * unit, pulls.std(ddof=1) / math.sqrt(runs) * unit))
    table = pd.DataFrame(rows, columns=["algorithm", "gap", "ratio", "error"])
    return table.assign(excess=table["ratio"] / bound, runs=runs)
