"""Tri-BBAI and Opt-BBAI (Jin, Yang, Tang, Xiao and Xu, NeurIPS 2024): the best arm itself, in batches.

Both look for the unique best arm of a Bernoulli problem: there is no ε to forgive. Sums are drawn, not
pulls. Stages I to III are common:

    I    pull each arm L₁ = √log(1/δ) times;
    II   from b = the means, the leader's lowered and all others raised by 1/log log(1/δ), pull arm i
         min(α w*_i(b) T*(b) log(1/δ), L₂) times, with L₂ = log(1/δ) log log(1/δ);
    III  stop if min_j Z_j(τ) ≥ β(τ, δ/2), with β(t, δ) = log(log(1/δ) t^α / δ) and Z_j the likelihood
         ratio of leader and j.

*What could be read.* Of the paper only the abstract (arXiv 2310.14129) and the authors' released experiments
(panxulab/Optimal-Batched-Best-Arm-Identification). From the latter are L₃ = log²(1/δ), ε_r = 2^{−r}/4,
δ_r = δ/(40π²nr²), α = 1.001 and the rule of the check in stage IV; its L₁, L₂ and pulls a phase carry
factors for the experiments, which no theorem has. L₁, L₂, β and the shift of b are the theorems' as
quoted at second hand. Where readings differ, the one with fewer pulls and rounds is taken:

- Stage II is one batch, as in the first version (three batches at most). The later one repeats it, twice in
  the released code: a round and at most L₂ pulls an arm more for each repetition.
- A phase of stage IV takes the fewest pulls with which Hoeffding's inequality keeps the best arm; `share` has
  the others.
- The check for an eliminated best arm bounds what a wrong elimination costs, not how probable it is, and is
  passed over.
"""

import hashlib
import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import rel_entr

from compendium.shared.characteristic_time import characteristic
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.theory.problems import Bernoulli, Problem
from ebr.validation import whole

ALPHA = 1.001  # α ∈ (1, e/2]: the released code's, next to the smallest
NEARLY_EXACT = 1e-9  # ε of `characteristic`, for the best arm itself: T* is the limit's to seven digits


def generator_of(name: str, problem: Problem, seed: int, run: int = 0) -> np.random.Generator:
    """Draws that depend on what is simulated, and on nothing else."""
    what = f"{name} on {type(problem).__name__} with sigma={problem.sigma!r} and means "
    words = np.frombuffer(hashlib.sha256(what.encode() + problem.means.tobytes()).digest(), dtype="<u4")
    key = [whole("seed", seed, 0), *words.tolist()]
    return np.random.default_rng(np.random.SeedSequence(key, spawn_key=(run,)))


def batch_sizes(delta: float) -> tuple[int, int, int]:
    """L₁ = √log(1/δ), L₂ = log(1/δ) log log(1/δ) and L₃ = log²(1/δ), rounded up."""
    nats = -math.log(delta)
    return math.ceil(math.sqrt(nats)), math.ceil(nats * math.log(nats)), math.ceil(nats**2)


def stopping_threshold(pulls: IntArray, delta: float) -> FloatArray:
    """β(t, δ) = log(log(1/δ) t^α / δ)."""
    return np.asarray(np.log(-np.log(delta) / delta) + ALPHA * np.log(pulls))


def tri_bbai(
    problem: Bernoulli, delta: float, runs: int, seed: int, shift: float | None = None
) -> pd.DataFrame:
    """Tri-BBAI: stages I to III, and if they do not stop, L₃ pulls of each arm and the largest mean.

    *Guarantee.* Of the best arm with probability 1 − δ for all δ below one that depends on the problem, not
    at a given δ: L₁, L₂ and L₃ do not know the gaps. Three batches at most.

    Parameters
    ----------
    shift
        By how much b is moved away from the means; 1/log log(1/δ) if nothing else is said.
    """
    generator = generator_of(f"Tri-BBAI {delta!r} {shift!r}", problem, seed)
    pulls, sums, stopped = _first_stages(problem, delta, runs, shift, generator)
    missing = np.where(stopped[:, None], 0, np.maximum(batch_sizes(delta)[2] - pulls, 0))
    pulls, sums = pulls + missing, sums + generator.binomial(missing, problem.means)
    rounds = 2 + missing.any(axis=1)
    arms = _leader(sums / pulls, generator)
    return pd.DataFrame({"pulls": pulls.sum(axis=1), "rounds": rounds, "arm": arms})


def phase_pulls(phase: int, n_arms: int, delta: float, share: float = 0.5) -> int:
    """d_r of phase r: by Hoeffding an arm's mean is within s ε_r of its own with probability 1 − δ_r.

    d_r = log(2/δ_r) / (2 (s ε_r)²), ε_r = 2^{−r}/4 and δ_r = δ/(40π²nr²).

    Where all means are so, no arm looks better than the best by more than 2sε_r: at s = ½, and for no
    larger s, it is kept. The chance that some mean is not is Σ_r n δ_r = δ/240 at most. The paper's d_r is
    32 log(2/δ_r)/ε_r², s = ⅛, as quoted at second hand.
    """
    level = delta / (40 * math.pi**2 * n_arms * phase**2)
    return math.ceil(math.log(2 / level) / (2 * (share * _resolution(phase)) ** 2))


def opt_bbai(
    problem: Bernoulli, delta: float, runs: int, seed: int, shift: float | None = None, share: float = 0.5
) -> pd.DataFrame:
    """Opt-BBAI: stages I to III, and if they do not stop, phases of elimination until one arm is left.

    In phase r each remaining arm is pulled d_r times afresh, and those more than ε_r behind the leader go.

    *Guarantee.* Stage IV errs with at most δ/240, whatever δ is (`phase_pulls`). Stage III's threshold has
    log(1/δ) in place of Garivier and Kaufmann's constant (COLT 2016, Theorem 10), which depends on n and α,
    and is theirs or more only for small δ: a run that stops there, `rounds` = 2, has no proved level at a
    given δ. No deadline: about log₂(1/4Δ) + 1 phases for the smallest gap Δ.

    Parameters
    ----------
    shift
        As in `tri_bbai`.
    share
        s of `phase_pulls`.
    """
    generator = generator_of(f"Opt-BBAI {delta!r} {shift!r} {share!r}", problem, seed)
    pulls, sums, stopped = _first_stages(problem, delta, runs, shift, generator)
    arms = _leader(sums / pulls, generator)
    total, rounds = pulls.sum(axis=1), np.full(runs, 2)
    going = np.flatnonzero(~stopped)
    for spent, alive in phases(problem, delta, len(going), share, generator):
        total[going] += spent
        rounds[going] += spent > 0
        arms[going] = alive.argmax(axis=1)
    return pd.DataFrame({"pulls": total, "rounds": rounds, "arm": arms})


def phases(
    problem: Bernoulli, delta: float, runs: int, share: float, generator: np.random.Generator
) -> Iterator[tuple[IntArray, BoolArray]]:
    """Stage IV of Opt-BBAI, phase by phase: pulls of each run, and who is left."""
    n_arms, phase = problem.n_arms, 0
    alive = np.ones((runs, n_arms), dtype=bool)
    while (alive.sum(axis=1) > 1).any():
        phase += 1
        going = alive & (alive.sum(axis=1, keepdims=True) > 1)
        each = phase_pulls(phase, n_arms, delta, share)
        means = generator.binomial(np.where(going, each, 0), problem.means) / each
        leader = np.where(going, means, -np.inf).max(axis=1, keepdims=True)
        alive &= ~(going & (means < leader - _resolution(phase)))
        yield each * going.sum(axis=1), alive


def _resolution(phase: int) -> float:
    """ε_r = 2^{−r}/4."""
    return float(0.25 * 0.5**phase)


def _first_stages(
    problem: Bernoulli, delta: float, runs: int, shift: float | None, generator: np.random.Generator
) -> tuple[IntArray, IntArray, BoolArray]:
    """Stages I and II, two batches: pulls and sums (runs × arms), and who may stop by stage III."""
    first, second, _ = batch_sizes(delta)
    pulls = np.full((whole("runs", runs, 1), problem.n_arms), first)
    sums = generator.binomial(pulls, problem.means)
    moved = 1 / math.log(-math.log(delta)) if shift is None else shift
    more = np.array([_second_batch(means, moved, delta, second) for means in sums / pulls])
    pulls, sums = pulls + more, sums + generator.binomial(more, problem.means)
    evidence = _evidence(pulls, sums)
    return pulls, sums, np.asarray(evidence >= stopping_threshold(pulls.sum(axis=1), delta / 2))


def _second_batch(means: FloatArray, shift: float, delta: float, most: int) -> IntArray:
    """Stage II of one run: min(⌈α w*_i(b) T*(b) log(1/δ)⌉, L₂).

    Where the leader does not lead in b, or b leaves (0, 1), nothing tells it from the others: T*(b) is
    infinite and every arm is pulled L₂ times.
    """
    leader = int(means.argmax())
    moved = means + shift
    moved[leader] = means[leader] - shift
    if moved.min() <= 0 or moved.max() >= 1 or np.delete(moved, leader).max() >= moved[leader]:
        return np.full(len(means), most)
    time, proportions = characteristic(Bernoulli(moved), NEARLY_EXACT)
    wanted = ALPHA * -math.log(delta) * time * proportions
    return np.minimum(np.ceil(wanted), most).astype(np.int64)


def _leader(means: FloatArray, generator: np.random.Generator) -> IntArray:
    """The arm with the largest mean of each run, ties at random: after a few pulls there are many."""
    tied = means == means.max(axis=1, keepdims=True)
    return np.asarray(np.where(tied, generator.random(means.shape), -1.0).argmax(axis=1))


def _evidence(pulls: IntArray, sums: IntArray) -> FloatArray:
    """min_j Z_j: N_a kl(μ̂_a, m) + N_j kl(μ̂_j, m) for leader a, m the mean of the two arms' rewards."""
    means = sums / pulls
    leader = means.argmax(axis=1)[:, None]
    count, total = (np.take_along_axis(of, leader, axis=1) for of in (pulls, sums))
    pooled = (sums + total) / (pulls + count)

    def divergence(mean: FloatArray) -> FloatArray:
        return np.asarray(rel_entr(mean, pooled) + rel_entr(1 - mean, 1 - pooled))

    ratios = pulls * divergence(means) + count * divergence(total / count)
    np.put_along_axis(ratios, leader, np.inf, axis=1)
    return np.asarray(ratios.min(axis=1))
