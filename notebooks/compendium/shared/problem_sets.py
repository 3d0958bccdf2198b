"""Sets of problems that checks run on: the setups, the hardest of each P_γ, random ones, the ends of bins."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from ebr.arrays import FloatArray
from ebr.theory.problems import Bernoulli, Gaussian, Problem, setup_1, setup_2

EPSILON, DELTA = 0.05, 0.1  # of the hardest problems


def twelve_digits(numbers: Iterable[float]) -> FloatArray:
    """Round to twelve significant digits.

    Powers and exponentials differ in their last bits from processor to processor. A simulation is seeded by
    what is simulated, to the last bit, so a problem made with them is rounded first.
    """
    return np.array([float(f"{number:.12g}") for number in numbers])


def nonempty_partitions(n_arms: int, deadline: int) -> list[tuple[int, ...]]:
    """Every γ ∈ [T]^n whose P_γ holds a problem: the largest index occurs at least twice.

    The best arm takes the runner-up's gap, so the two share the smallest gap and the hardest bin (E5).
    """
    indices = range(1, deadline + 1)
    return [gamma for gamma in product(indices, repeat=n_arms) if gamma.count(max(gamma)) > 1]


class Instance(NamedTuple):
    """A problem ν of some kind, with the ε, T and δ that it is raced for."""

    kind: str
    problem: Problem
    epsilon: float
    deadline: int
    delta: float


def setups(deadlines: Iterable[int], epsilon: float = 0.01, delta: float = 0.01) -> list[Instance]:
    """Both setups of section 5 at several deadlines."""
    both = {"Setup 1": setup_1(), "Setup 2": setup_2()}
    return [Instance(name, problem, epsilon, t, delta) for name, problem in both.items() for t in deadlines]


def hardest(
    gamma: Sequence[int], epsilon: float, deadline: int, sigma: float = 0.5, shrink: float = 1.0
) -> Gaussian:
    """The proofs' hardest problem of P_γ: Gaussian arms with Δ_i = ε^{γ_i/T}, the best mean at 1 − ε.

    There the gaps of γ_i = T are ε, where H is a quarter of what it is just below; `shrink` < 1 multiplies
    them and so attains the supremum. Every gap is one part in 10⁹ larger, lest rounding move it to a harder
    bin.
    """
    index = np.asarray(gamma)
    smallest = twelve_digits(epsilon ** (index / deadline) * (1 + 1e-9))
    gaps = smallest * np.where(index == deadline, shrink, 1)
    gaps[index.argmax()] = 0.0  # the best arm: the first of those that share the hardest bin
    if 1 - epsilon - gaps.max() < 0:
        raise ValueError(f"epsilon must leave room for a gap of {gaps.max():.3g} below 1 − ε, got {epsilon}")
    return Gaussian(1 - epsilon - gaps, sigma)


def hardest_problems(shapes: Iterable[tuple[int, int]]) -> list[Instance]:
    """The hardest problem of every non-empty P_γ for such n and T; gaps of γ_i = T at ε and just below."""
    return [
        Instance("hardest of P_γ", hardest(gamma, EPSILON, deadline, shrink=shrink), EPSILON, deadline, DELTA)
        for n_arms, deadline in shapes
        for gamma in nonempty_partitions(n_arms, deadline)
        for shrink in (1.0, 0.999)
    ]


def inside_partition(
    gamma: Sequence[int], epsilon: float, deadline: int, generator: np.random.Generator
) -> Gaussian:
    """A random problem of P_γ: every gap log-uniform in its bin, those of γ_i = T from ε² up."""
    index = np.asarray(gamma)
    low = np.where(index == deadline, epsilon**2, epsilon ** (index / deadline))
    high = epsilon ** ((index - 1) / deadline)
    share = generator.uniform(0.001, 0.999, len(index))
    gaps = twelve_digits(low ** (1 - share) * high**share)
    gaps[index.argmax()] = 0.0  # the best arm: the first of those that share the hardest bin
    return Gaussian(1 - gaps, 0.5)


def random_problems(count: int, seed: int) -> list[Instance]:
    """Random n, T, ε, δ, rewards and gaps; the gaps log-uniform, from well below ε up."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 3]))
    instances: list[Instance] = []
    for index in range(count):
        n_arms, deadline = int(generator.integers(2, 41)), int(generator.integers(1, 21))
        epsilon, delta = np.exp(generator.uniform([-3.9, -4.6], -1.2)).round(6)
        gaps = np.exp(generator.uniform(math.log(epsilon / 3), math.log(0.9), n_arms - 1))
        means = twelve_digits(generator.uniform(gaps.max(), 1) - np.append(0, gaps))
        problem = Bernoulli(means) if index % 2 else Gaussian(means, (0.1, 0.5, 1.0)[index % 3])
        instances.append(Instance("random", problem, float(epsilon), deadline, float(delta)))
    return instances


def problems_at_the_ends() -> Iterator[tuple[Problem, float, int, float]]:
    """Many problems for the inequalities between bounds: two gaps, at and beside the ends of every bin."""
    for epsilon, deadline, delta in product((0.3, 0.05, 0.01), (1, 2, 3, 7, 20, 100), (0.3, 0.01)):
        edges = epsilon ** (np.arange(1, deadline + 1) / deadline)
        for gap in np.concatenate([edges * (1 - 1e-6), edges * (1 + 1e-6), [0.0, 0.9]]):
            for sigma in (0.5, 0.02):
                yield Gaussian(1 - np.array([0, gap, max(gap, 0.5)]), sigma), epsilon, deadline, delta


def bernoulli(instances: Iterable[Instance]) -> list[Instance]:
    """The same means with Bernoulli rewards."""
    return [one._replace(problem=Bernoulli(one.problem.means)) for one in instances]
