"""Notebook 03: the remark, and the problems on which bounds are compared."""

import math

from compendium.problem_sets import problems_at_the_ends
from hypothesis import given
from hypothesis import strategies as st

from ebr.theory import bounds


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
