"""Definition 1's order and the Remark, on arbitrary problems."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ebr
from ebr import bounds
from ebr.inequalities import problems_at_the_ends
from ebr.problems import hardest_complexity

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


@given(st.floats(1e-9, 0.999), st.integers(0, 100))
def test_the_remark(epsilon, more):
    deadline = max(math.ceil(2 * math.log(1 / epsilon)), 1) + more
    assert epsilon ** (-2 / deadline) <= math.e * (1 + 1e-12)


def test_the_problems_at_the_ends_reach_both_sides_of_every_bin():
    seen = {
        (epsilon, deadline, *problem.partition(epsilon, deadline)[:2])
        for problem, epsilon, deadline, _ in problems_at_the_ends()
    }
    assert {(0.05, 7, k, k) for k in range(1, 8)} <= seen


def test_theorem_2_with_320_is_tight_to_a_few_per_cent_at_the_ends():
    ratios = [
        bounds.partition_upper_bound(*place) / bounds.problem_upper_bound(*place)
        for place in problems_at_the_ends()
    ]
    assert 0.95 < max(ratios) <= 1
