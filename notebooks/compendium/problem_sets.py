"""Sets of problems that checks run on: the setups, the hardest of each P_γ, random ones, the ends of bins."""

import math
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np

from ebr.theory.problems import Bernoulli, Gaussian, Problem, hardest, nonempty_partitions, setup_1, setup_2

__all__ = ["Setting", "bernoulli", "hardest_problems", "problems_at_the_ends", "random_problems", "setups"]

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


def problems_at_the_ends() -> Iterator[tuple[Problem, float, int, float]]:
    """Many problems for the inequalities between bounds: two gaps, at and beside the ends of every bin."""
    for epsilon, deadline, delta in product((0.3, 0.05, 0.01), (1, 2, 3, 7, 20, 100), (0.3, 0.01)):
        edges = epsilon ** (np.arange(1, deadline + 1) / deadline)
        for gap in np.concatenate([edges * (1 - 1e-6), edges * (1 + 1e-6), [0.0, 0.9]]):
            for sigma in (0.5, 0.02):
                yield Gaussian(1 - np.array([0, gap, max(gap, 0.5)]), sigma), epsilon, deadline, delta


def bernoulli(settings: Iterable[Setting]) -> list[Setting]:
    """The same means with Bernoulli rewards."""
    return [(kind, Bernoulli(problem.means), e, t, d) for kind, problem, e, t, d in settings]
