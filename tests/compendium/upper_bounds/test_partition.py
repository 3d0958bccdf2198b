"""Definition 1: harder indices mean larger complexities."""

from itertools import product

import numpy as np
import pytest
from compendium.upper_bounds import partition
from hypothesis import given, settings
from hypothesis import strategies as st

import ebr
from ebr.theory.problems import hardest_complexity

EPSILON = st.floats(0.001, 0.9)


@st.composite
def ordered_pairs(draw, strictly):
    """Two problems, the second harder: each of its gaps is smaller, or even in a harder bin."""
    epsilon, deadline = draw(EPSILON), draw(st.integers(2, 8))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    lowest = epsilon ** (1 - 1 / deadline) if strictly else 0
    easy = generator.uniform(lowest, 1, draw(st.integers(1, 5)))
    edges = epsilon ** (np.arange(1, deadline) / deadline)
    below = [edges[edges <= gap].max() for gap in easy] if strictly else easy  # the lower end of its bin
    hard = below * generator.random(len(easy))
    return tuple(ebr.Gaussian(1 - np.append(0, gaps), 1.0) for gaps in (easy, hard)), epsilon, deadline


@settings(max_examples=1000)
@given(ordered_pairs(strictly=True))
def test_a_strictly_harder_index_means_a_larger_complexity(drawn):
    (easy, hard), epsilon, deadline = drawn
    assert (easy.partition(epsilon, deadline) < hard.partition(epsilon, deadline)).all()
    assert easy.complexity(epsilon) < hard.complexity(epsilon)


@settings(max_examples=1000)
@given(ordered_pairs(strictly=False))
def test_a_harder_index_means_a_larger_supremum(drawn):
    (easy, hard), epsilon, deadline = drawn
    low, high = (problem.partition(epsilon, deadline) for problem in (easy, hard))
    assert (low <= high).all()
    suprema = [hardest_complexity(gamma.tolist(), epsilon, deadline) for gamma in (low, high)]
    assert suprema[0] <= suprema[1] * (1 + 1e-12)
    # A supremum it is (up to the rounding of gaps at a bin's end).
    assert easy.complexity(epsilon) <= suprema[0] * (1 + 1e-9)


def test_the_infimum_is_the_complexity_of_gaps_just_below_the_bins_upper_ends():
    epsilon, deadline, gamma = 0.05, 4, (3, 2, 3)  # the best arm has the runner-up's index
    gaps = epsilon ** ((np.array(gamma) - 1) / deadline) * (1 - 1e-9)
    problem = ebr.Gaussian(1 - np.append(0, gaps[1:]), 1.0)
    assert tuple(problem.partition(epsilon, deadline)) == gamma
    infimum = partition.easiest_complexity(gamma, epsilon, deadline)
    assert problem.complexity(epsilon) == pytest.approx(infimum, rel=1e-8)


def test_every_ordered_pair_of_indices_is_looked_at():
    pairs = {True: 0, False: 0}  # by whether P_γ′ is empty: its largest index occurs only once
    for n_arms, deadline in product((2, 3, 4), (2, 3)):
        for lower, upper in product(product(range(1, deadline + 1), repeat=n_arms), repeat=2):
            if lower.count(max(lower)) > 1 and all(a <= b for a, b in zip(lower, upper, strict=True)):
                pairs[upper.count(max(upper)) == 1] += 1
    evidence = {row.where: row.value for row in partition.definition_1().evidence if "γ ≤ γ′" in row.what}
    assert evidence == {"P_γ′ is empty": pairs[True], f"both non-empty, {pairs[False]} pairs": 0}
