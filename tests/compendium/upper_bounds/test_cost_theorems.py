"""Notebook 03: the problems on which bounds are compared."""

import numpy as np
from compendium.shared import cost_bounds
from compendium.shared.problem_sets import problems_at_the_ends


def test_the_problems_at_the_ends_reach_both_sides_of_every_bin():
    seen = {
        (epsilon, deadline, *cost_bounds.partition(problem, epsilon, deadline)[:2])
        for problem, epsilon, deadline, _ in problems_at_the_ends()
    }
    assert {(0.05, 7, k, k) for k in range(1, 8)} <= seen
    gaps = [problem.gaps[1] for problem, *place in problems_at_the_ends() if place[:2] == [0.05, 7]]
    for k in range(1, 8):  # just below and just above each end
        apart = np.array(gaps) / 0.05 ** (k / 7) - 1
        assert {-1, 1} <= set(np.sign(apart[np.abs(apart) < 2e-6]))
