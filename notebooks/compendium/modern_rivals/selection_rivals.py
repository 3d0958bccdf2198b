"""Ranking and selection with known variance: Bechhofer's, Paulson's, and Kim and Nelson's procedures.

Rewards are N(μ_i, σ²) with σ known. All promise a *correct selection*: the best arm, with probability 1 − δ,
where every other is at least ε worse (the indifference zone). S_i(r) is the sum of arm i's first r rewards;
every remaining arm has equally many. The two sequential ones keep an arm while it is behind the leader by
less than a falling line, a − λr, and so end when the line reaches zero, after ⌈a/λ⌉ rewards of an arm:

- Paulson (Ann. Math. Stat. 1964): a = σ² log((n−1)/δ) / (ε−λ) for some λ in (0, ε).
  *Proof.* S_j − S_[1] + λr is a random walk of drift −(ε−λ) or less and variance 2σ²; it ever reaches a with
  probability at most e^{−a(ε−λ)/σ²} = δ/(n−1), by the exponential martingale. Sum over j.
- Kim and Nelson (ACM TOMACS 2001; their c = 1 where σ is known; Fabian, Ann. Stat. 1974): λ = ε/2 and
  a = (2σ²/ε) log((n−1)/2δ), half the error of Paulson's line. That is their h² = 2 log((n−1)/2δ) and
  W(r) = (ε/2r)(2σ²h²/ε² − r)⁺.
  *Proof.* Arm j does away with [1] only if D = S_[1] − S_j leaves the triangle |D| < a − λr below before it
  does above (else j would be gone), most often where D's drift is least, ε = 2λ. First let D be a Brownian
  motion with that drift and variance 2σ². It ever meets the line −a + λr with probability e^{−aλ/σ²}, and
  given that it does, it has drift 0 until then; with drift 0 the triangle is left below as often as above.
  So it is left below with probability exactly ½e^{−aλ/σ²} = δ/(n−1). Now let D be seen at some times only,
  the last not before a/λ. Let D leave at U = a − λr, above or below; the chances are as 1 to e^{−εU/σ²}.
  Let p be the chance that what is seen of D, now at −U, leaves above after all, and q that from +U it leaves
  below. By symmetry q is p with drift −ε, and the likelihood ratio of the two drifts on a path from −U to 0
  or above is at most e^{−εU/σ²}. So q ≤ e^{−εU/σ²} p: no more is spoilt than is put right, and the error of
  what is seen is at most δ/(n−1) (Jennison, Johnstone and Turnbull 1982). Sum over j.

Both proofs hold for looks at any times fixed in advance, if the last is not before a/λ; hence `looks`.

*Where gaps are smaller than ε* a correct selection is not promised, and on both of the paper's setups the
second arm is within ε. Bechhofer's design still returns an ε-good arm: a bad one would have to be ahead of
[1] at the only look, and the chance of that is largest where all n − 1 others are bad by just ε (Fabian, Ann.
Math. Stat. 1962). For the two sequential procedures no proof is known to us: once a good arm has done away
with the best, nothing bounds how often a bad one does away with it (Eckman and Henderson, "Fixed-confidence,
fixed-tolerance guarantees for ranking-and-selection procedures", ACM TOMACS 2021, is on this question). Their
failures are simulated. Of these papers only Paulson's abstract could be read: hence the proofs in full.
"""

import math
from typing import NamedTuple

import numba
import numpy as np
import pandas as pd

from compendium.modern_rivals.batched_rivals import generator_of
from ebr.arrays import FloatArray, IntArray
from ebr.theory.problems import Gaussian
from ebr.theory.selection import bechhofer_count
from ebr.validation import in_unit_interval, whole

DRAWS = 2**12  # normal numbers at a time: at least as many as there are arms


class Triangle(NamedTuple):
    """The line a − λr: an arm that is so far behind the leader, in sums of r rewards, is gone.

    Attributes
    ----------
    intercept, slope
        a and λ.
    """

    intercept: float
    slope: float

    @property
    def last(self) -> int:
        """⌈a/λ⌉: where the line has reached zero, and only the leader is left."""
        return math.ceil(self.intercept / self.slope)


def paulson_triangle(
    n_arms: int, sigma: float, epsilon: float, delta: float, share: float = 0.25
) -> Triangle:
    """Paulson's a = σ² log((n−1)/δ) / (ε−λ), λ = `share` ε.

    ⌈a/λ⌉ is least at λ = ε/2; smaller λ drop bad arms earlier.
    """
    slope = in_unit_interval("share", share) * epsilon
    return Triangle(sigma**2 * math.log((n_arms - 1) / delta) / (epsilon - slope), slope)


def kim_nelson_triangle(n_arms: int, sigma: float, epsilon: float, delta: float) -> Triangle:
    """Kim and Nelson's a = (2σ²/ε) log((n−1)/2δ), λ = ε/2."""
    return Triangle(2 * sigma**2 / epsilon * math.log((n_arms - 1) / (2 * delta)), epsilon / 2)


def planned_looks(triangle: Triangle, looks: int) -> IntArray:
    """Rewards of an arm at each of T looks: N ρ^{1−t/T}, N = ⌈a/λ⌉ and ρ = λ/(1+λ), rounded up.

    An arm that is Δ worse meets the line at about a/(Δ+λ) rewards, for Δ ≤ 1 not before Nρ. The schedule is
    ours; any that ends with N keeps the level.
    """
    ratio = triangle.slope / (1 + triangle.slope)
    shares = ratio ** (1 - np.arange(1, whole("looks", looks, 1) + 1) / looks)
    shares[-1] = 1.0
    return np.unique(np.ceil(triangle.last * shares)).astype(np.int64)


def paulson(
    problem: Gaussian, epsilon: float, delta: float, runs: int, seed: int, looks: int | None = None
) -> pd.DataFrame:
    """Paulson's procedure: one reward of each remaining arm a stage, or T looks.

    `rounds` are the stages, or the looks, until one arm is left. Guarantee and proof: the module's text.
    """
    triangle = paulson_triangle(problem.n_arms, problem.sigma, epsilon, delta)
    return _selected(f"Paulson {looks} {triangle}", problem, triangle, runs, seed, looks)


def kim_nelson(
    problem: Gaussian, epsilon: float, delta: float, runs: int, seed: int, looks: int | None = None
) -> pd.DataFrame:
    """Kim and Nelson's procedure with known variance: as `paulson`, with the smaller triangle."""
    triangle = kim_nelson_triangle(problem.n_arms, problem.sigma, epsilon, delta)
    return _selected(f"Kim and Nelson {looks} {triangle}", problem, triangle, runs, seed, looks)


def bechhofer(problem: Gaussian, epsilon: float, delta: float, runs: int, seed: int) -> pd.DataFrame:
    """Bechhofer's fixed design: ⌈(hσ/ε)²⌉ rewards of each arm at once, and the largest mean.

    *Guarantee.* Correct selection, exactly 1 − δ where all others are ε worse (but for rounding up), and an
    ε-good arm whatever the means. One round.
    """
    each = bechhofer_count(problem.n_arms, epsilon, delta, problem.sigma)
    generator = generator_of(f"Bechhofer {each}", problem, seed)
    noise = generator.standard_normal((whole("runs", runs, 1), problem.n_arms))
    arms = (problem.means + problem.sigma / math.sqrt(each) * noise).argmax(axis=1)
    return pd.DataFrame({"pulls": each * problem.n_arms, "rounds": 1, "arm": arms})


def _selected(
    name: str, problem: Gaussian, triangle: Triangle, runs: int, seed: int, looks: int | None
) -> pd.DataFrame:
    if looks is not None:
        counts = planned_looks(triangle, looks)
        return looked(problem, triangle, counts, runs, generator_of(name, problem, seed))
    rows = [staged(problem, triangle, generator_of(name, problem, seed, run)) for run in range(runs)]
    return pd.DataFrame(rows, columns=["pulls", "rounds", "arm"])


def looked(
    problem: Gaussian, triangle: Triangle, counts: IntArray, runs: int, generator: np.random.Generator
) -> pd.DataFrame:
    """All runs side by side, with looks at the given counts; drawn are the sums between looks."""
    sums, alive = np.zeros((runs, problem.n_arms)), np.ones((runs, problem.n_arms), dtype=bool)
    pulls, rounds = np.zeros(runs, dtype=np.int64), np.zeros(runs, dtype=np.int64)
    for count, step in zip(counts, np.diff(counts, prepend=0), strict=True):
        left = alive.sum(axis=1)
        pulls += np.where(left > 1, step * left, 0)
        rounds += left > 1
        sums += step * problem.means + problem.sigma * math.sqrt(step) * generator.standard_normal(sums.shape)
        seen = np.where(alive, sums, -np.inf)
        leader = seen.argmax(axis=1)[:, None]
        behind = np.take_along_axis(seen, leader, axis=1) - seen
        still = (behind < triangle.intercept - triangle.slope * count) | (np.arange(problem.n_arms) == leader)
        alive &= still | (left == 1)[:, None]
    return pd.DataFrame({"pulls": pulls, "rounds": rounds, "arm": alive.argmax(axis=1)})


def staged(problem: Gaussian, triangle: Triangle, generator: np.random.Generator) -> tuple[int, int, int]:
    """One run, a reward of each remaining arm a stage: pulls, stages, the arm."""
    sums, arms = np.zeros(problem.n_arms), np.arange(problem.n_arms)
    stage = pulls = 0
    while len(arms) > 1:
        draws = generator.standard_normal(max(DRAWS, problem.n_arms))
        stage, more, left = advance(
            sums, arms, stage, draws, problem.means, problem.sigma, triangle.intercept, triangle.slope
        )
        arms, pulls = arms[:left], pulls + more
    return pulls, stage, int(arms[0])


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def advance(
    sums: FloatArray,
    arms: IntArray,
    stage: int,
    draws: FloatArray,
    means: FloatArray,
    sigma: float,
    intercept: float,
    slope: float,
) -> tuple[int, int, int]:
    """Go on stage by stage while the draws suffice; keep the remaining arms in front of `arms`.

    Returns the stage, how many draws were used and how many arms are left.
    """
    left, used = len(arms), 0
    while left > 1 and used + left <= len(draws):
        stage += 1
        leader = arms[0]
        for place in range(left):
            arm = arms[place]
            sums[arm] += means[arm] + sigma * draws[used]
            used += 1
            if sums[arm] > sums[leader]:
                leader = arm
        bound, kept = sums[leader] - (intercept - slope * stage), 0
        for place in range(left):
            if arms[place] == leader or sums[arms[place]] > bound:
                arms[kept] = arms[place]
                kept += 1
        left = kept
    return stage, used, left
