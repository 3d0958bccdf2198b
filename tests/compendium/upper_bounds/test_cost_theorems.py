"""Notebook 03: problems on which bounds are compared, and races that break printed ones."""

import math

import numpy as np
import pytest
from compendium.shared.problem_sets import problems_at_the_ends
from compendium.upper_bounds import cost_theorems

BOUNDS = ["theorem_1", "theorem_1b", "theorem_2"]


def test_the_problems_at_the_ends_reach_both_sides_of_every_bin():
    seen = {
        (epsilon, deadline, *problem.partition(epsilon, deadline)[:2])
        for problem, epsilon, deadline, _ in problems_at_the_ends()
    }
    assert {(0.05, 7, k, k) for k in range(1, 8)} <= seen
    gaps = [problem.gaps[1] for problem, *place in problems_at_the_ends() if place[:2] == [0.05, 7]]
    for k in range(1, 8):  # just below and just above each end
        apart = np.array(gaps) / 0.05 ** (k / 7) - 1
        assert {-1, 1} <= set(np.sign(apart[np.abs(apart) < 2e-6]))


def test_every_printed_bound_is_broken_in_every_run_of_some_race_and_no_corrected_one_is():
    races = cost_theorems.printed_races()
    assert (races[BOUNDS].lt(races["pulls"], axis=0)).sum().tolist() == [4, 4, 2]
    # nT/δ = 40: each of two arms is pulled 80 log(40)/ε times in round 1, four times as often as with σ².
    first = 80 * math.log(40) / 0.01
    assert races["pulls"][1] == 2 * math.ceil(first)
    assert races["theorem_1"][1] == pytest.approx(2 * first / 4)
    corrected = cost_theorems.printed_races(corrected=True)
    assert (corrected[BOUNDS].ge(corrected["pulls"], axis=0)).all(axis=None)
