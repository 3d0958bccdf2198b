"""Definition 1's bins, and the hardest problems of each, by hand and against plain loops."""

from itertools import product

import numpy as np
import pytest
from compendium.shared.cost_bounds import hardest_complexity, partition
from compendium.shared.problem_sets import hardest, nonempty_partitions
from hypothesis import given
from hypothesis import strategies as st

import ebr

MEANS = st.lists(st.floats(0, 1), min_size=2, max_size=8)


@given(MEANS, st.floats(1e-3, 0.999), st.integers(1, 8))
def test_partition_is_the_bin_of_definition_1(means, epsilon, deadline):
    problem = ebr.Bernoulli(means)
    for gap, index in zip(problem.gaps, partition(problem, epsilon, deadline), strict=True):
        if deadline == 1:
            assert index == 1
        elif index == 1:
            assert gap >= epsilon ** (1 / deadline)
        elif index == deadline:
            assert gap < epsilon ** ((deadline - 1) / deadline)
        else:
            assert epsilon ** (index / deadline) <= gap < epsilon ** ((index - 1) / deadline)


EPSILON = 0.05
SHAPES = [(2, 1), (2, 2), (2, 4), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3)]  # n and T


@pytest.mark.parametrize(("n_arms", "deadline"), SHAPES)
def test_the_partitions_listed_are_those_that_some_problem_has(n_arms, deadline):
    # Gaps inside every bin and at its lower end, in all combinations, with the best arm at every place.
    edges = [EPSILON ** (k / deadline) * (1 + 1e-9) for k in range(deadline)]
    choices = [0.0, EPSILON / 2, *edges, *(0.8 * edge for edge in edges)]
    seen = set()
    for best, gaps in product(range(n_arms), product(choices, repeat=n_arms - 1)):
        means = np.clip(1 - np.insert(gaps, best, 0.0), 0, 1)
        seen.add(tuple(partition(ebr.Bernoulli(means), EPSILON, deadline).tolist()))
    listed = nonempty_partitions(n_arms, deadline)
    assert sorted(listed) == sorted(seen)
    assert len(listed) == len(set(listed)) <= deadline**n_arms
    for gamma in listed:
        for shrink in (1.0, 0.999):
            assert (
                tuple(partition(hardest(gamma, EPSILON, deadline, shrink=shrink), EPSILON, deadline)) == gamma
            )


def complexity_by_hand(means):
    best, second, *_ = sorted(means, reverse=True)
    gaps = [best - second] + [best - mean for mean in sorted(means)[:-1]]
    return sum(EPSILON**-2 if gap < EPSILON else (gap + EPSILON) ** -2 for gap in gaps)


@pytest.mark.parametrize(("n_arms", "deadline"), SHAPES)
def test_no_problem_of_a_partition_is_harder_than_its_supremum_and_some_are_as_hard(n_arms, deadline):
    generator = np.random.default_rng(5)
    edges = EPSILON ** (np.arange(deadline + 1) / deadline)
    for gamma in nonempty_partitions(n_arms, deadline):
        supremum, found = hardest_complexity(gamma, EPSILON, deadline), []
        low = np.where(np.array(gamma) == deadline, 0.0, edges[list(gamma)])
        high = edges[np.array(gamma) - 1]
        for share in [*generator.random((50, n_arms)) ** 4, np.zeros(n_arms)]:  # many near the low ends
            means = 1 - (low + np.maximum(share, 1e-9) * (high - low))  # rounding changes no bin
            means[gamma.index(max(gamma))] = 1.0
            assert tuple(partition(ebr.Bernoulli(means), EPSILON, deadline)) == gamma
            found.append(complexity_by_hand(means))
        assert max(found) <= supremum * (1 + 1e-12)
        assert max(found) == pytest.approx(supremum)
        assert hardest(gamma, EPSILON, deadline, shrink=0.999).complexity(EPSILON) == pytest.approx(supremum)
        # If gaps are exactly ε, every arm of the last bin counts only a quarter.
        short = 0.75 * gamma.count(deadline) * EPSILON**-2
        assert hardest(gamma, EPSILON, deadline).complexity(EPSILON) == pytest.approx(supremum - short)


def test_the_hardest_problem_by_hand():
    # ε^{1/2} = 0.2. The first of the hardest arms is the best one, with mean 1 − ε.
    problem = hardest((1, 2, 2), 0.04, 2, sigma=0.3, shrink=0.5)
    assert problem.means == pytest.approx([0.96 - 0.2, 0.96, 0.96 - 0.02])
    assert problem.sigma == 0.3
    assert hardest_complexity((1, 2, 2), 0.04, 2) == pytest.approx(0.24**-2 + 2 * 625)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: hardest_complexity((1, 1, 2), 0.1, 2), r"gamma .* twice or P_γ is empty, got \(1, 1, 2\)"),
        (lambda: hardest_complexity((0, 2, 2), 0.1, 2), r"gamma must be an integer of at least 1, got 0"),
        (lambda: hardest_complexity((1, 3, 3), 0.1, 2), r"gamma must lie in 1 … 2, .*got \(1, 3, 3\)"),
        (lambda: hardest((1, 2, 2), 0.5, 2), r"epsilon must leave room for a gap of 0\.707 .*got 0\.5"),
        (lambda: hardest_complexity((1, 2), 0.1, 2), r"gamma .* twice or P_γ is empty, got \(1, 2\)"),
    ],
)
def test_bad_input_is_named_with_its_range(make, names):
    with pytest.raises(ValueError, match=names):
        make()
