"""Notebook 18: every request of a race is looked at."""

from compendium.around_the_theorems import remarks
from compendium.shared.problem_sets import Instance

import ebr


def test_every_request_is_counted():
    # Means so far apart that 50 races of two arms end after one round.
    instance = Instance("far", ebr.Gaussian([1.0, 0.0], 0.1), 0.1, 3, 0.1)
    (requests,) = remarks.restricted_class([instance], seed=1).evidence
    assert (requests.value, requests.where) == (0, "of 100")
