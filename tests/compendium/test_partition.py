"""Definition 1: harder indices mean larger complexities."""

import numpy as np
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
