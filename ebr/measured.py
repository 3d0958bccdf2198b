"""EBR's pulls beside their bounds: on section 5's setups, on the hardest of each P_γ, on random problems."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from ebr import bounds
from ebr.event import audit
from ebr.problems import Bernoulli, Gaussian, Problem, hardest, nonempty_partitions, setup_1, setup_2
from ebr.racing import ElasticBatchRacing

__all__ = ["Setting", "hardest_problems", "measure", "random_problems", "setups"]

Race = Callable[..., ElasticBatchRacing]
Setting = tuple[str, Problem, float, int, float]  # kind, ν, ε, T, δ


def setups(deadlines: Iterable[int], epsilon: float = 0.01, delta: float = 0.01) -> list[Setting]:
    """Both setups of section 5 at several deadlines."""
    both = {"Setup 1": setup_1(), "Setup 2": setup_2()}
    return [(name, problem, epsilon, t, delta) for name, problem in both.items() for t in deadlines]


def hardest_problems(
    shapes: Iterable[tuple[int, int]], epsilon: float = 0.05, delta: float = 0.1
) -> list[Setting]:
    """The hardest problem of every non-empty P_γ for such n and T; gaps of γ_i = T at ε and just below."""
    return [
        ("hardest of P_γ", hardest(gamma, epsilon, deadline, shrink=shrink), epsilon, deadline, delta)
        for n_arms, deadline in shapes
        for gamma in nonempty_partitions(n_arms, deadline)
        for shrink in (1.0, 0.999)
    ]


def random_problems(count: int, seed: int) -> list[Setting]:
    """Random n, T, ε, δ, rewards and gaps; the gaps log-uniform, from well below ε up."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 3]))
    settings: list[Setting] = []
    for index in range(count):
        n_arms, deadline = int(generator.integers(2, 41)), int(generator.integers(1, 21))
        epsilon, delta = math.exp(generator.uniform(-3.9, -1.2)), math.exp(generator.uniform(-4.6, -1.2))
        gaps = np.exp(generator.uniform(math.log(epsilon / 3), math.log(0.9), n_arms - 1))
        means = generator.uniform(gaps.max(), 1) - np.append(0, gaps)
        problem = Bernoulli(means) if index % 2 else Gaussian(means, (0.1, 0.5, 1.0)[index % 3])
        settings.append(("random", problem, epsilon, deadline, delta))
    return settings


def measure(
    settings: Iterable[Setting], runs: int, seed: int, make: Race = ElasticBatchRacing
) -> pd.DataFrame:
    """Race on each problem and set its pulls beside every bound.

    Columns: kind, n_arms, deadline, epsilon, delta, runs, pulls (mean) and most; failures of the
    recommendation (wrong), of the event E (missed), of elimination by the end of round γ_i (late), of
    Theorems 1 and 2, corrected (over_…); the bounds of Theorems 1 to 3; complexity, H(ν).
    """
    rows = []
    for kind, problem, epsilon, deadline, delta in settings:
        race = audit(make(deadline, epsilon, delta, problem.sigma), problem, runs, seed)
        place = (problem, epsilon, deadline, delta)
        pulls = race.arm_pulls.sum(axis=1)
        bound = bounds.partition_upper_bound(*place)
        gamma = problem.partition(epsilon, deadline)
        second, third = bounds.hardest_upper_bound(*place), bounds.problem_upper_bound(*place)
        rows.append(
            {
                "kind": kind,
                "n_arms": problem.n_arms,
                "deadline": deadline,
                "epsilon": epsilon,
                "delta": delta,
                "runs": runs,
                "pulls": pulls.mean(),
                "most": pulls.max(),
                "wrong": int((~problem.is_good(race.arm, epsilon)).sum()),
                "missed": int((~race.covered).sum()),
                "late": int((race.arm_pulls > np.ceil(bounds.schedule(*place))[gamma - 1]).any(axis=1).sum()),
                "over_1": int((pulls > bound).sum()),
                "over_1b": int((pulls > second).sum()),
                "over_2": int((pulls > third).sum()),
                "theorem_1": bound,
                "theorem_1b": second,
                "theorem_2": third,
                "theorem_3": bounds.partition_lower_bound(
                    gamma.tolist(), epsilon, deadline, delta, problem.sigma
                ),
                "complexity": problem.complexity(epsilon),
            }
        )
    return pd.DataFrame(rows)
