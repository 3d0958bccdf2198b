"""Fully sequential rivals with proved thresholds: KL-LUCB and Track-and-Stop for an ε-optimal Bernoulli arm.

Each is called as name(problem, epsilon, delta, runs, seed) and is (ε, δ)-PAC: it returns an arm with
μ_i > μ_[1] − ε with probability at least 1 − δ, on every Bernoulli problem. None has a deadline. One pull
depends on those before it, so the races are compiled.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import lambertw, zeta

from compendium.modern_rivals.sequential_races import lucb_race, tracking_race
from ebr.theory.problems import Bernoulli
from ebr.validation import in_unit_interval, whole

EXPONENT = 1.1  # α of KL-LUCB; near the best for 10⁴ to 10⁶ rounds
BASE = 1.5  # z of Kaufmann and Koolen's h̃


class Stopping(NamedTuple):
    """When Track-and-Stop ends: if Z(a, b) > level + c(a) + c(b) for an arm a and all b ≠ a.

    Attributes
    ----------
    level
        What the confidence costs.
    mixture
        c is the regret of the Krichevsky–Trofimov mixture if true, 3 log(1 + log N) if not.
    """

    level: float
    mixture: bool


def kl_lucb(
    problem: Bernoulli, epsilon: float, delta: float, runs: int, seed: int, own_counts: bool = False
) -> pd.DataFrame:
    """KL-LUCB (Kaufmann and Kalyanakrishnan, COLT 2013) for m = 1, at its proved exploration rate.

    Every arm is pulled once, then in each round ℓ, which has the largest mean, and u, which has the largest
    upper bound U of the others; the race ends with ℓ when U_u − L_ℓ ≤ ε. Bounds are where N_a kl(μ̂_a, ·)
    reaches β(t, δ) = log(k₁ n t^α / δ), t the number of rounds, with α = 1.1 and k₁ = ζ(α), fixed in advance
    (the paper asks for k₁ > 1 + 1/(α − 1), which ζ(α) makes a little smaller).

    Parameters
    ----------
    own_counts
        β(N_a(t), δ) in place of β(t, δ): the proof needs no more. Not published.

    Returns
    -------
    One row a run: pulls, rounds (the first of n pulls, the others of two) and the arm.

    Notes
    -----
    *Why it is (ε, δ)-PAC.* An arm is pulled at most once a round, so N_a(t) ≤ t and β(t) ≥ β(N_a(t)). By
    Chernoff, P(s kl(μ̂_{a,s}, μ_a) ≥ β(s) and μ̂_{a,s} below μ_a) ≤ exp(−β(s)), and the same above. So
    U_[1] > μ_[1] and L_a < μ_a for all other a, at all times, but for n Σ_s exp(−β(s)) = δ ζ(α)/k₁ ≤ δ. Then
    μ_[1] < U_[1] ≤ U_u ≤ L_ℓ + ε < μ_ℓ + ε when it ends with an ℓ ≠ [1].
    """
    rate = exploration_rate(problem.n_arms, delta)

    def race(generator: np.random.Generator) -> tuple[int, int, int]:
        return lucb_race(problem.means, epsilon, rate, own_counts, generator)

    return _table("KL-LUCB", race, problem, epsilon, runs, seed)


def track_and_stop(
    problem: Bernoulli,
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
    forced: bool = True,
    mixture: bool = False,
) -> pd.DataFrame:
    """Track-and-Stop (Garivier and Kaufmann, COLT 2016) for ε-optimal arms, ended by `deviation_stopping`.

    D-tracking: the next pull is of the arm with the largest t w_a − N_a, or of the least pulled arm if that
    has less than √t − n/2 pulls. w is w* of the estimated problem, its means (S_a + ½)/(N_a + 1); the best
    arm is the best answer (`compendium.shared.characteristic_time`), so where it is unique no stickiness is
    needed (Degenne and Koolen, NeurIPS 2019). The race ends with a when, for each b ≠ a,

        Z(a, b) = inf_x N_a kl(μ̂_a, x) + N_b kl(μ̂_b, x + ε)

    exceeds its threshold (Garivier and Kaufmann, Sequential Analysis 2021, for overlapping hypotheses).

    Parameters
    ----------
    forced
        If false, the arm with the smallest N_a / w_a is pulled, and nothing is explored further. Forced
        exploration costs about n√t pulls, and what D-tracking is behind for it is shared evenly, most of it
        by arms that need little: with 100 arms that is more than all else. With ε > 0 it is not needed: w*_b
        is positive whatever the estimates in (0, 1), unless the leader's is above 1 − ε, where no b matters,
        so that no arm is left alone.
    mixture
        Whether `mixture_stopping` ends the race, sooner.

    Returns
    -------
    One row a run: pulls, rounds and the arm. A round is what happens from one look at the rewards to the
    next: the n first pulls, then 32 at a time, for the order in which arms are tracked needs no rewards.

    Notes
    -----
    The guarantee holds for every way of sampling. Looking every 32 pulls keeps it, for its event is about all
    times, and costs at most 31 pulls. w* costs as much as thousands of pulls: it is recomputed when t has
    grown by a twenty-fifth, to three digits.
    """
    stopping = (mixture_stopping if mixture else deviation_stopping)(problem.n_arms, delta)

    def race(generator: np.random.Generator) -> tuple[int, int, int]:
        return tracking_race(problem.means, epsilon, (stopping.level, stopping.mixture), forced, generator)

    return _table("Track-and-Stop", race, problem, epsilon, runs, seed)


def exploration_rate(n_arms: int, delta: float, exponent: float = EXPONENT) -> tuple[float, float]:
    """(log(k₁ n / δ), α) of β(t, δ) = log(k₁ n / δ) + α log t with k₁ = ζ(α) (see `kl_lucb`)."""
    return math.log(float(zeta(exponent)) * n_arms / in_unit_interval("delta", delta)), exponent


def deviation_stopping(n_arms: int, delta: float) -> Stopping:
    """Z(a, b) > 3 log(1 + log N_a) + 3 log(1 + log N_b) + 2 C(log((n−1)/δ) / 2), of rank 2.

    Kaufmann and Koolen (JMLR 2021), Theorem 7: for any set S of arms of a one-parameter exponential family
    Σ_{a ∈ S} [N_a KL(μ̂_a, μ_a) − 3 log(1 + log N_a)] ever exceeds |S| C(x/|S|) with probability at most
    e^{−x} (quoted, not proved here; the constants as two public implementations have them). A wrong answer
    a has μ_[1] ≥ μ_a + ε, so Z(a, [1]) is at most the sum over {a, [1]}, and at most n − 1 answers are wrong.
    """
    confidence = math.log((n_arms - 1) / in_unit_interval("delta", delta))
    return Stopping(2 * exponential_threshold(confidence / 2), mixture=False)


def mixture_stopping(n_arms: int, delta: float) -> Stopping:
    """Z(a, b) > log((n−1)/δ) + R(a) + R(b), R(a) the regret of the Krichevsky–Trofimov mixture on arm a.

    R = log max_p P_p(X) − log ∫ P_p(X) dp / π√(p(1−p)), at most ½ log N + log 2: no larger than the threshold
    log(2t(n−1)/δ) of Garivier and Kaufmann (2016, Theorem 10, ε = 0), by their proof. The mixtures of a and
    [1] over their true likelihoods multiply to a martingale of mean 1, whatever is pulled. If a is wrong, the
    truth is among the λ with λ_[1] ≥ λ_a + ε, so its logarithm is at least Z(a, [1]) − R(a) − R([1]); it
    ever exceeds log((n−1)/δ) with probability δ/(n−1) at most (Ville), for each of n − 1 wrong answers.
    """
    return Stopping(math.log((n_arms - 1) / in_unit_interval("delta", delta)), mixture=True)


def exponential_threshold(x: float) -> float:
    """C(x) = 2 h̃((h⁻¹(1 + x) + log 2ζ(2)) / 2) of Kaufmann and Koolen (2021), about x + 4 log(1 + x + √2x).

    h(u) = u − log u on u ≥ 1; h̃(x) is the least of z (x − log log z) over z in (1, 3/2]: e^{1/u} u with
    u = h⁻¹(x) if x ≥ h(1/log 3/2), else its value at 3/2.
    """
    inner = (_inverse(1 + x) + math.log(2 * float(zeta(2)))) / 2
    smallest = 1 / math.log(BASE)
    if inner < smallest - math.log(smallest):
        return 2 * BASE * (inner - math.log(math.log(BASE)))
    return 2 * math.exp(1 / _inverse(inner)) * _inverse(inner)


def _inverse(x: float) -> float:
    """Solve u − log u = x for u ≥ 1: the other branch of Lambert's W."""
    return float(-lambertw(-math.exp(-x), -1).real)


def _table(
    name: str,
    race: Callable[[np.random.Generator], tuple[int, int, int]],
    problem: Bernoulli,
    epsilon: float,
    runs: int,
    seed: int,
) -> pd.DataFrame:
    """A row for each run; its rewards are a function of seed, name, means and the run's number."""
    in_unit_interval("epsilon", epsilon)
    if not isinstance(problem, Bernoulli):
        raise ValueError(f"problem must have Bernoulli rewards, got {type(problem).__name__}")
    key = [seed, *name.encode(), *problem.means.view(np.uint32).tolist()]
    seeds = (np.random.SeedSequence(key, spawn_key=(run,)) for run in range(whole("runs", runs, 1)))
    rows = [race(np.random.default_rng(each)) for each in seeds]
    return pd.DataFrame(rows, columns=["pulls", "rounds", "arm"])
