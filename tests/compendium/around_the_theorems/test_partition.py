"""Definition 1: the least complexity of an index, and every pair of indices."""

from itertools import product

import numpy as np
import pytest
from compendium.around_the_theorems import partition
from compendium.shared import cost_bounds

import ebr


def test_the_infimum_is_the_complexity_of_gaps_just_below_the_bins_upper_ends():
    epsilon, deadline, gamma = 0.05, 4, (3, 2, 3)  # the best arm has the runner-up's index
    gaps = epsilon ** ((np.array(gamma) - 1) / deadline) * (1 - 1e-9)
    problem = ebr.Gaussian(1 - np.append(0, gaps[1:]), 1.0)
    assert tuple(cost_bounds.partition(problem, epsilon, deadline)) == gamma
    infimum = partition.easiest_complexity(gamma, epsilon, deadline)
    assert problem.complexity(epsilon) == pytest.approx(infimum, rel=1e-8)


def test_every_ordered_pair_of_indices_is_looked_at():
    pairs = {True: 0, False: 0}  # P_γ′ is empty if its largest index occurs only once
    for n_arms, deadline in product((2, 3, 4), (2, 3)):
        for lower, upper in product(product(range(1, deadline + 1), repeat=n_arms), repeat=2):
            if lower.count(max(lower)) > 1 and all(a <= b for a, b in zip(lower, upper, strict=True)):
                pairs[upper.count(max(upper)) == 1] += 1
    evidence = {row.where: row.value for row in partition.definition_1().evidence if "γ ≤ γ′" in row.what}
    assert evidence == {"P_γ′ is empty": pairs[True], f"both non-empty, {pairs[False]} pairs": 0}
