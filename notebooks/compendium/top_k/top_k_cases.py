"""Races for the k best on many problems, inside the proofs' events, at random, and outcome by outcome."""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import binom

from compendium.shared import cost_bounds
from compendium.shared.lineup import MakeElastic, MakeSharp
from compendium.shared.problem_sets import Instance
from compendium.sharp_racing import sharp_bounds
from compendium.sharp_racing.sharp_adversary import ROUNDING, Played, driven, inside
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import drive
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory.confidence import half_width
from ebr.theory.problems import Bernoulli, Problem


class Case(NamedTuple):
    """A problem, and how many of its arms are looked for."""

    instance: Instance
    k: int


def cases(instances: Iterable[Instance], seed: int, most: int = 2) -> list[Case]:
    """Each problem with some k, drawn at random; a problem with two arms has k = 1 only."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 14]))
    made = []
    for instance in instances:
        n_arms = instance.problem.n_arms
        ks = 1 + generator.permutation(n_arms - 1)[:most]
        made += [Case(instance, int(k)) for k in np.sort(ks)]
    return made


def slippage(n_arms: int, k: int, epsilon: float, deadline: int, delta: float) -> Case:
    """A hard problem: k arms at ½ + ε/2, all others at ½ − ε/2, just wrong (ε a sum of 2^{−j})."""
    means = np.where(np.arange(n_arms) < n_arms - k, 0.5 - epsilon / 2, 0.5 + epsilon / 2)
    return Case(Instance("slippage", Bernoulli(means), epsilon, deadline, delta), k)


def bernoulli(chosen: Iterable[Case]) -> list[Case]:
    """The same means with Bernoulli rewards."""
    return [Case(one._replace(problem=Bernoulli(one.problem.means)), k) for one, k in chosen]


def covered(algorithm: ElasticBatchRacing, problem: Problem, tables: int, seed: int) -> Played:
    """Race on tables of means inside E′: every mean within Hoeffding's D′ of its expectation.

    In half of the tables the k best have bad luck and the others good luck; in the rest each arm has its own.
    Rounds need not be consistent with each other: the proof does not use that they are.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 141]))
    n_arms, shape = problem.n_arms, (tables, problem.n_arms)
    against = np.where(np.isin(np.arange(n_arms), problem.top(algorithm.k)), -1.0, 1.0)
    miss = algorithm.delta / (n_arms * algorithm.deadline)

    def means(pulled: int) -> FloatArray:
        signs = np.where(generator.random((tables, 1)) < 0.5, against, generator.choice([-1.0, 1.0], shape))
        luck = signs * np.where(generator.random(shape) < 0.8, 1.0, generator.random(shape))
        width = float(half_width("Hoeffding", pulled, miss, algorithm.sigma)) - ROUNDING
        return np.asarray(problem.means + luck * width)

    return driven(algorithm, problem, tables, means)


def elastic_table(
    chosen: Iterable[Case], tables: int, runs: int, seed: int, make: MakeElastic = ElasticBatchRacing
) -> pd.DataFrame:
    """Algorithm 1 for the k best, inside E′ and in random races, beside its bounds; columns of `_row`."""
    rows = []
    for case in chosen:
        (_, problem, epsilon, deadline, delta), k = case
        algorithm = make(deadline, epsilon, delta, problem.sigma, k=k)
        edges = epsilon ** (np.arange(1, deadline) / deadline)
        bins = np.count_nonzero(problem.top_gaps(k)[:, None] < edges, axis=1)
        allowed = ElasticBatchRacing(deadline, epsilon, delta, problem.sigma).pulls_by_round(problem.n_arms)
        bounds = (
            cost_bounds.partition_upper_bound(problem, epsilon, deadline, delta, k=k),
            cost_bounds.problem_upper_bound(problem, epsilon, deadline, delta, k=k),
        )
        played = covered(algorithm, problem, tables, seed)
        rows.append(_row(case, algorithm, played, allowed[bins], bounds, runs, seed))
    return pd.DataFrame(rows)


def sharp_table(
    chosen: Iterable[Case],
    tables: int,
    runs: int,
    seed: int,
    make: MakeSharp = SharpElasticBatchRacing,
    rewards: str = "sub-Gaussian",
) -> pd.DataFrame:
    """Sharp EBR for the k best, inside its event and in random races, beside its bounds; as above."""
    rows = []
    for case in chosen:
        (_, problem, epsilon, deadline, delta), k = case
        algorithm = make(deadline, epsilon, delta, problem.sigma, rewards=rewards, k=k)
        proved = SharpElasticBatchRacing(deadline, epsilon, delta, problem.sigma, rewards, k=k)
        schedule, widths = proved.pulls_by_round(problem.n_arms), proved.widths()
        longest = float(proved.log_terms(problem.n_arms).max())
        allowed = schedule[sharp_bounds.elimination_rounds(problem, epsilon, widths, k)]
        bounds = (
            float(allowed.sum()),
            sharp_bounds.sharp_problem_bound(problem, epsilon, deadline, longest, k=k),
        )
        rows.append(
            _row(case, algorithm, inside(algorithm, problem, tables, seed), allowed, bounds, runs, seed)
        )
    return pd.DataFrame(rows)


def _row(
    case: Case,
    algorithm: ElasticBatchRacing | SharpElasticBatchRacing,
    played: Played,
    allowed: IntArray,
    bounds: tuple[float, float],
    runs: int,
    seed: int,
) -> dict[str, object]:
    """One case: of `tables` inside the event, how many end wrong or have an arm above its term (late).

    The same of `runs` random races, and how many are above the bound in H_k (over); mean and most pulls.
    """
    (kind, problem, epsilon, deadline, delta), k = case
    race = simulate(algorithm, problem, runs, seed, per_arm=True)
    inside_wrong = ~problem.is_good(played.arms, epsilon, k).all(axis=1)
    where = {"kind": kind, "n_arms": problem.n_arms, "k": k, "deadline": deadline, "epsilon": epsilon}
    return where | {
        "delta": delta,
        "tables": len(played.arms),
        "wrong_inside": int(inside_wrong.sum()),
        "late_inside": int((played.arm_pulls > allowed).any(axis=1).sum()),
        "runs": runs,
        "pulls": float(race.pulls.mean()),
        "most": int(race.pulls.max()),
        "wrong": int((~race.correct(epsilon)).sum()),
        "late": int((race.arm_pulls > allowed).any(axis=1).sum()),
        "over": int((race.pulls > bounds[1]).sum()),
        "bound": bounds[0],
        "problem_bound": bounds[1],
    }


def exact_failure(algorithm: ElasticBatchRacing | SharpElasticBatchRacing, problem: Problem) -> float:
    """P(an arm is wrong) for Bernoulli arms and at most two rounds of pulls, by playing every outcome."""
    counts = np.unique(algorithm.pulls_by_round(problem.n_arms))
    new = np.diff(counts, prepend=0)
    places = [np.arange(pulls + 1) for pulls in new for _ in range(problem.n_arms)]
    outcomes = np.stack(np.meshgrid(*places, indexing="ij"), axis=-1).reshape(-1, len(new), problem.n_arms)
    # All outcomes of an arm that is not pulled lead to the same end; their probabilities add up to 1.
    chances = np.prod(binom.pmf(outcomes, new[:, None], problem.means), axis=(1, 2))
    number = iter(range(len(new)))

    def respond(pulls: IntArray) -> FloatArray:
        return np.asarray(np.where(pulls > 0, outcomes[:, next(number)], 0), dtype=np.float64)

    arms = drive(algorithm.play(problem.n_arms, len(outcomes), rewards=problem.rewards), respond)
    good = problem.is_good(arms.reshape(len(outcomes), -1), algorithm.epsilon, algorithm.k).all(axis=1)
    return float(chances[~good].sum())


def exact_failures(delta: float, make: MakeSharp = SharpElasticBatchRacing) -> pd.DataFrame:
    """Exact failure probabilities of sharp EBR: three Bernoulli arms, k = 1 and 2, one and two rounds.

    Columns: k, rounds, rewards, failure (the largest, over slippage problems around several centres).
    """
    epsilon, rows = 0.375, []  # a sum of powers of 2: gaps of exactly ε
    for k, deadline, rewards in product((1, 2), (1, 2), ("sub-Gaussian", "bounded")):
        algorithm = make(deadline, epsilon, delta, rewards=rewards, k=k)
        worst = 0.0
        for centre in (0.1875, 0.5, 0.8125):
            means = np.where(np.arange(3) < 3 - k, centre - epsilon / 2, centre + epsilon / 2)
            worst = max(worst, exact_failure(algorithm, Bernoulli(means)))
        rows.append((k, deadline, rewards, worst))
    return pd.DataFrame(rows, columns=["k", "rounds", "rewards", "failure"])
