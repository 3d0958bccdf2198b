"""Fully sequential rivals for an ε-optimal Bernoulli arm: LUCB, Top-Two and Track-and-Stop.

Each is (ε, δ)-PAC: it returns an arm with μ_i > μ_[1] − ε with probability at least 1 − δ, on every Bernoulli
problem. None has a deadline. A race ends with the arm a that has the largest mean when, for each b ≠ a,

    Z(a, b) = inf_x N_a kl(μ̂_a, x) + N_b kl(μ̂_b, x + ε)

exceeds a threshold (Garivier and Kaufmann, Sequential Analysis 2021, for overlapping hypotheses). The
thresholds below hold for every way of sampling:

- *T&S*, Track-and-Stop (Garivier and Kaufmann, COLT 2016). Pulls follow w* of the estimated problem, its
  means (S_a + ½)/(N_a + 1), recomputed when t has grown by a twenty-fifth; the best arm is the best answer
  (`compendium.shared.characteristic_time`), so where it is unique no stickiness is needed (Degenne and
  Koolen, NeurIPS 2019). The arm with the smallest N_a / w_a is pulled, and nothing is explored further: with
  ε > 0 every w*_b is positive, unless the leader's estimate is above 1 − ε, where no b matters. *T&S, forced*
  is D-tracking as printed. It explores about n√t pulls more, which with 100 arms is more than all else.
- *EB-TC*: EB-TC_ε (Jourdan, Degenne and Kaufmann, NeurIPS 2023). The challenger b has the smallest Z(a, b).
  With the IDS share β = N_a kl(μ̂_a, x) / Z, x where Z is reached, b is pulled if its pulls in turns of this
  pair are Σ(1 − β) over these turns or fewer, else the leader. *EB-TC, half* has β = ½. In the authors'
  poster and slides, all that could be read, arms are Gaussian: there Z = (μ̂_a − μ̂_b + ε)² / 2(1/N_a + 1/N_b)
  and β = N_b/(N_a + N_b), the same rule.
- *Top-Two*: the same, but the challenger has the largest deficit, the smallest Z(a, b) − c(b), where the
  threshold is level + c(a) + c(b). Not published.
- *LUCB* (Kaufmann and Kalyanakrishnan, COLT 2013, m = 1) has no Z. In each round leader and challenger are
  pulled, which has the largest upper bound U of the others; it ends when U_b − L_a ≤ ε.
"""

import math

import numpy as np
import pandas as pd
from scipy.special import betaln, lambertw, zeta

from compendium.modern_rivals.sequential_races import (
    CLOCK,
    DEVIATION,
    LUCB,
    MIXTURE,
    TOP_TWO,
    TRACKING,
    Rule,
    Stopping,
    race,
)
from ebr.theory.problems import Problem
from ebr.validation import in_unit_interval, whole

EXPONENT = 1.1  # α of KL-LUCB; near the best for 10⁴ to 10⁶ rounds
BASE = 1.5  # z of Kaufmann and Koolen's h̃
JEFFREYS = (0.5, 0.5)  # the mixture of Krichevsky and Trofimov
RULES = {
    "LUCB": Rule(LUCB),
    "T&S": Rule(TRACKING),
    "T&S, forced": Rule(TRACKING, forced=True),
    "EB-TC": Rule(TOP_TWO),
    "EB-TC, half": Rule(TOP_TWO, half=True),
    "Top-Two": Rule(TOP_TWO, deficit=True),
}


def sequential(
    problem: Problem,
    epsilon: float,
    delta: float,
    runs: int,
    seed: int,
    rule: str = "Top-Two",
    prior: tuple[float, float] | None = JEFFREYS,
) -> pd.DataFrame:
    """Race one of `RULES`, ended by the mixture with this prior, or without one by a published threshold.

    Published are `clock_stopping` for LUCB and `deviation_stopping` for the others.

    Returns
    -------
    One row a run: pulls, rounds (the first of n pulls, the others of two for LUCB and of one else) and the
    arm. Rewards are a function of seed, rule, means and the run's number.
    """
    in_unit_interval("epsilon", epsilon)
    chosen = RULES[rule]
    bounds = chosen.sampling == LUCB
    if prior is not None:
        stopping = mixture_stopping(problem.n_arms + bounds, delta, prior)
    else:
        stopping = (clock_stopping if bounds else deviation_stopping)(problem.n_arms, delta)
    key = [seed, *rule.encode(), *problem.means.view(np.uint32).tolist()]
    seeds = (np.random.SeedSequence(key, spawn_key=(run,)) for run in range(whole("runs", runs, 1)))
    rows = [race(problem.means, epsilon, chosen, stopping, np.random.default_rng(each)) for each in seeds]
    return pd.DataFrame(rows, columns=["pulls", "rounds", "arm"])


def clock_stopping(n_arms: int, delta: float) -> Stopping:
    """KL-LUCB's own: U_u − L_a ≤ ε, bounds where N_a kl(μ̂_a, ·) = β(t, δ) = log(k₁ n t^α / δ), t the rounds.

    α = 1.1 and k₁ = ζ(α), fixed in advance (the paper asks for k₁ > 1 + 1/(α − 1), which ζ(α) makes a little
    smaller). t is rounded up, by a fiftieth at most.

    *Why it is (ε, δ)-PAC.* An arm is pulled at most once a round, so N_a(t) ≤ t and β(t) ≥ β(N_a(t)). By
    Chernoff, P(s kl(μ̂_{a,s}, μ_a) ≥ β(s) and μ̂_{a,s} below μ_a) ≤ exp(−β(s)), and the same above. So
    U_[1] > μ_[1] and L_a < μ_a for all other a, at all times, but for n Σ_s exp(−β(s)) = δ ζ(α)/k₁ ≤ δ. Then
    μ_[1] < U_[1] ≤ U_u ≤ L_a + ε < μ_a + ε when it ends with an a ≠ [1].
    """
    level = math.log(float(zeta(EXPONENT)) * n_arms / in_unit_interval("delta", delta))
    return Stopping(level, CLOCK, EXPONENT)


def deviation_stopping(n_arms: int, delta: float) -> Stopping:
    """Z(a, b) > 3 log(1 + log N_a) + 3 log(1 + log N_b) + 2 C(log((n−1)/δ) / 2), of rank 2.

    Kaufmann and Koolen (JMLR 2021), Theorem 7: for any set S of arms of a one-parameter exponential family
    Σ_{a ∈ S} [N_a KL(μ̂_a, μ_a) − 3 log(1 + log N_a)] ever exceeds |S| C(x/|S|) with probability at most
    e^{−x} (quoted, not proved here; the constants as two public implementations have them). A wrong answer
    a has μ_[1] ≥ μ_a + ε, so Z(a, [1]) is at most the sum over {a, [1]}, and at most n − 1 answers are wrong.
    """
    confidence = math.log((n_arms - 1) / in_unit_interval("delta", delta))
    return Stopping(2 * exponential_threshold(confidence / 2), DEVIATION)


def mixture_stopping(n_arms: int, delta: float, prior: tuple[float, float] = JEFFREYS) -> Stopping:
    """Z(a, b) > log((n−1)/δ) + R(a) + R(b), R(a) the regret of the Beta(u, v) mixture on arm a's rewards.

    R = log max_p P_p(X) − log ∫ P_p(X) dBeta(p; u, v). With u = v = ½, Krichevsky and Trofimov's mixture, at
    most ½ log N + log 2: no larger than the threshold log(2t(n−1)/δ) of Garivier and Kaufmann (2016,
    Theorem 10, ε = 0), by their proof.

    *Why it is (ε, δ)-PAC*, for every u, v > 0 fixed in advance. The mixtures of a and [1] over their true
    likelihoods multiply to a martingale of mean 1, whatever is pulled. If a is wrong, the truth is among the
    λ with λ_[1] ≥ λ_a + ε, so its logarithm is at least Z(a, [1]) − R(a) − R([1]); it ever exceeds
    log((n−1)/δ) with probability δ/(n−1) at most (Ville), for each of n − 1 wrong answers.

    *LUCB* has n for n − 1, and bounds where N_a kl(μ̂_a, ·) = log(n/δ) + R(a): by Ville for each arm alone all
    of them hold at all times with probability 1 − δ, and then it ends rightly, as in `clock_stopping`.
    """
    level = math.log((n_arms - 1) / in_unit_interval("delta", delta))
    return Stopping(level, MIXTURE, float(prior[0]), float(prior[1]), float(betaln(*prior)))


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
