"""Pausing EBR's claim, X11: what its union bound spends, an adversary inside its event, random races."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import binom

from compendium.shared.distributions import norm
from compendium.shared.findings import Evidence, Finding, counted, refutes
from compendium.shared.problem_sets import Instance, bernoulli
from compendium.sharp_racing.pausing_adversary import Grid, attack, binomial_limits, play, stages
from compendium.sharp_racing.pausing_costs import Costs, Follower, left_open
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray
from ebr.simulation.simulate import blocks, race
from ebr.theory.pairs import Pairs, bounded_refuted, log_terms
from ebr.theory.problems import Gaussian
from ebr.theory.selection import normal_slippage_error

ROUNDING = 1e-9
MODELS = ("sub-Gaussian", "Gaussian", "bounded", "Bernoulli")
MakePausing = Callable[..., PausingElasticBatchRacing]
# n, T, ε and δ of the schedules whose pairs are summed up: exactly for 0/1 rewards, so none has many pulls.
SCHEDULES = ((2, 1, 0.2, 0.1), (2, 3, 0.2, 0.3), (10, 4, 0.1, 0.1), (30, 5, 0.15, 0.01), (3, 9, 0.2, 0.05))
MEANS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.995)


def spent(grid: Grid, n_arms: int, shift: float, means: Sequence[float] = MEANS) -> float:
    """How much of δ is spent on pairs whose other arm is better by s: Σ (n−1) P(refuted) / δ.

    For rewards 0 and 1 binomial probabilities are summed; the leader's mean is a share of 1 − s, the worst of
    several. Otherwise by Chernoff's bound or the normal law. With s = ε the sign at (m, m) is included.
    """
    total = sum((_wrong(grid, u, s, shift, means) for u, s in grid.pairs), np.zeros(len(means)))
    if shift:
        total = total + _wrong_sign(grid, n_arms, means) / (n_arms - 1)
    return float((n_arms - 1) * np.max(total) / grid.race.delta)


def _wrong(grid: Grid, high: int, low: int, shift: float, means: Sequence[float]) -> FloatArray:
    """P(a pair at (u, s) is refuted) for each mean."""
    if grid.model not in ("bounded", "Bernoulli"):
        log_term = grid.race.log_terms(grid.miss[high, low], grid.model)
        return np.full(len(means), _tail(grid, float(np.sqrt(2 * log_term))))
    leader, other = _binomials(grid, high, means, 0, shift), _binomials(grid, low, means, shift, shift)
    if grid.model == "Bernoulli":
        at_most = np.concatenate([np.zeros((1, len(means))), other.cumsum(axis=0)])
        limits = binomial_limits(grid, high, low, shift).astype(np.int64)
        return np.asarray((leader * at_most[limits + 1]).sum(axis=0))
    return np.asarray(((_bounded(grid, high, low, shift) @ other) * leader).sum(axis=0))


def _bounded(grid: Grid, high: int, low: int, shift: float) -> BoolArray:
    """Which sums of the leader (rows) refute which of the other arm."""
    leader, other = (
        np.indices((grid.counts[high] + 1, grid.counts[low] + 1)).reshape(2, -1).astype(np.float64)
    )
    counts = (np.full(leader.shape, grid.counts[at]) for at in (high, low))
    pairs = Pairs(leader, next(counts), other, next(counts))
    refuted = bounded_refuted(pairs, shift, log_terms(grid.miss[high, low], "bounded"))
    return refuted.reshape(grid.counts[high] + 1, -1)


def _wrong_sign(grid: Grid, n_arms: int, means: Sequence[float]) -> FloatArray:
    """P(some arm that is worse by ε is not behind at b_T pulls each), or its union bound."""
    epsilon = grid.race.epsilon
    distance = epsilon * np.sqrt(grid.counts[-1]) / grid.race.sigma
    if grid.model == "Gaussian":
        return np.full(len(means), normal_slippage_error(distance, n_arms))
    if grid.model == "sub-Gaussian":
        return np.full(len(means), (n_arms - 1) * _tail(grid, distance / np.sqrt(2)))
    leader, other = (_binomials(grid, grid.top, means, more, epsilon) for more in (0, epsilon))
    return np.asarray((n_arms - 1) * (leader * other.cumsum(axis=0)).sum(axis=0))


def _tail(grid: Grid, standard: float) -> float:
    return float(norm.sf(standard) if grid.model == "Gaussian" else np.exp(-(standard**2) / 2))


def _binomials(grid: Grid, stage: int, means: Sequence[float], more: float, shift: float) -> FloatArray:
    """The probabilities of all sums at a stage (rows) for each mean, scaled to [0, 1 − s], plus `more`."""
    sums = np.arange(grid.counts[stage] + 1)[:, None]
    return np.asarray(binom.pmf(sums, grid.counts[stage], (1 - shift) * np.asarray(means) + more))


def union(make: MakePausing = PausingElasticBatchRacing) -> pd.DataFrame:
    """The most that the union bound spends, over δ: a row for each model, for differences 0 and ε."""
    rows = []
    for model in MODELS:
        # All pairs of sums are tried for "bounded": small schedules only.
        sizes = [size for size in SCHEDULES if model != "bounded" or size[0] <= 3]
        grids = [(n, e, stages(make(t, e, d, rewards=model), n, None, own=True)) for n, t, e, d in sizes]
        drop = max(spent(grid, n, 0.0) for n, _, grid in grids)
        rows.append((model, drop, max(spent(grid, n, e) for n, e, grid in grids)))
    return pd.DataFrame(rows, columns=["model", "drop", "certificate"])


def models(problems: Iterable[Instance], most: int = 10_000) -> dict[str, list[Instance]]:
    """For each model of rewards the problems that it is checked on, with such rewards.

    For 0/1 rewards all limits of all pairs of stages are computed: about `most` of them at most.
    """
    every = list(problems)
    one = [PausingElasticBatchRacing(at.deadline, at.epsilon, at.delta, rewards="Bernoulli") for at in every]
    last = [race.pulls_by_stage(at.problem.n_arms)[-1] for race, at in zip(one, every, strict=True)]
    small = [at for at, pulls in zip(every, last, strict=True) if pulls * at.deadline**2 <= most]
    normal = [at._replace(problem=Gaussian(at.problem.means, 0.5)) for at in every]
    few = [at for at in small if at.deadline <= 3]  # the likelihood ratio is slow
    return dict(zip(MODELS, (normal, normal, bernoulli(few), bernoulli(small)), strict=True))


def steps(
    problems: Iterable[Instance], tables: int, seed: int, rewards: str, make: MakePausing
) -> pd.DataFrame:
    """The proof's steps on the adversary's tables, half of them inside 𝒢 alone and half inside 𝒢 ∩ 𝒞.

    Columns: kind, model, tables (inside), near (of them inside 𝒞), wrong (the arm is not ε-optimal), late
    (more than T rounds), broken (of the tables inside 𝒞: an arm led or was pulled against the cost theorem),
    and open, the `left_open` stages.
    """
    rows = []
    for kind, problem, epsilon, deadline, delta in problems:
        algorithm = make(deadline, epsilon, delta, problem.sigma, rewards=rewards)
        grid = stages(algorithm, problem.n_arms, rewards)
        costs = Costs(grid, problem.n_arms)
        row = dict.fromkeys(("tables", "near", "wrong", "late", "broken"), 0)
        for close in (None, costs.near):
            table = attack(grid, problem, tables // 2, seed, close)
            follower = Follower(costs, problem, len(table.sums))
            good = problem.is_good(play(algorithm, grid, table.sums, follower.watch), epsilon)
            row["tables"] += int(table.inside.sum())
            row["near"] += 0 if close is None else int(table.inside.sum())
            row["wrong"] += int((table.inside & ~good).sum())
            row["late"] += int((table.inside & (follower.rounds > deadline)).sum())
            row["broken"] += 0 if close is None else int((table.inside & follower.broken).sum())
        rows.append({"kind": kind, "model": rewards, "open": left_open(costs)} | row)
    return pd.DataFrame(rows)


def races(
    problems: Iterable[Instance], runs: int, seed: int, rewards: str, make: MakePausing
) -> pd.DataFrame:
    """Random races: one row per problem, with runs, mean pulls, and wrong, late and broken as in `steps`."""
    rows = []
    for kind, problem, epsilon, deadline, delta in problems:
        algorithm = make(deadline, epsilon, delta, problem.sigma, rewards=rewards)
        costs = Costs(stages(algorithm, problem.n_arms, rewards), problem.n_arms)
        setting = {"kind": kind, "model": rewards, "n_arms": problem.n_arms, "deadline": deadline}
        events = {"wrong": 0, "late": 0, "broken": 0, "pulls": 0.0}
        for replicates, generator in blocks(algorithm, problem, runs, seed):
            follower = Follower(costs, problem, replicates)
            arms = race(algorithm, problem, replicates, generator, follower.watch)
            events["wrong"] += int((~problem.is_good(arms, epsilon)).sum())
            events["late"] += int((follower.rounds > deadline).sum())
            events["broken"] += int(follower.broken.sum())
            events["pulls"] += follower.pulls.sum() / runs
        rows.append(setting | {"epsilon": epsilon, "delta": delta, "runs": runs} | events)
    return pd.DataFrame(rows)


def guarantee(spending: pd.DataFrame, adversary: pd.DataFrame, table: pd.DataFrame) -> Finding:
    """Check X11: pausing EBR is (ε, δ)-PAC in T rounds, and leaders and pulls obey the cost theorem.

    The tables are those of `union`, `steps` and `races`.
    """
    evidence = []
    for model, (_, row) in product(("drop", "certificate"), spending.iterrows()):
        words = {"drop": "drops, over δ, at most", "certificate": "certificates and signs, over δ, at most"}
        what = f"what the union bound spends on {words[model]}"
        evidence.append(Evidence(what, row[model], f"{row['model']} rewards", allowed="≤ 1"))
    words = {"wrong": "end with a wrong arm", "late": "take more than T rounds"}
    words["broken"] = "have a leader or a pull that the cost theorem excludes"
    for event, says in words.items():
        inside = int(adversary["near" if event == "broken" else "tables"].sum())
        where = f"of {inside:,}, inside the event" + (" and 𝒞" if event == "broken" else "")
        evidence.append(Evidence(f"tables that {says}", int(adversary[event].sum()), where, allowed="0"))
    left = int(adversary["open"].sum())
    what = "stages at which an arm that the cost theorem excludes is open"
    evidence.append(Evidence(what, left, "at the ends of 𝒞, normal tests", allowed="0"))
    runs, where = int(table["runs"].sum()), f"on {len(table)} problems, all models"
    for event, says in words.items():
        allowed = {"wrong": "≤ δ on each", "late": "0", "broken": "≤ 2δ on each"}[event]
        evidence.append(counted(f"races that {says}", int(table[event].sum()), runs, where, allowed))
    proved = bool((spending[["drop", "certificate"]] <= 1 + ROUNDING).all(axis=None))
    # Normal tests spend their levels to the last: on drops all of δ but the share of the sign.
    sign = min(PausingElasticBatchRacing(t, e, d).shares()[-1, -1] / d for _, t, e, d in SCHEDULES)
    normal = spending.loc[spending["model"].isin(("sub-Gaussian", "Gaussian")), "drop"]
    proved = proved and bool(((normal - (1 - sign)).abs() < ROUNDING).all())
    stands = adversary[["wrong", "late", "broken", "open"]].to_numpy().sum() == 0
    stands = stands and table["late"].sum() == 0
    twice = table.assign(delta=np.minimum(2 * table["delta"], 1))
    refuted = refutes(table, "wrong") or refutes(twice, "broken")
    return Finding("X11", bool(proved and stands and not refuted), tuple(evidence), "proved")
