"""Notebook 01: the race of Figure 1."""

from functools import cache

from compendium.setting import figure_1

import ebr


@cache
def races(deadline):
    problem = ebr.Bernoulli([0.7, 0.66, 0.3])
    algorithms = (ebr.ElasticBatchRacing(1, 0.05, 0.01), ebr.SequentialRacing(0.05, 0.01), deadline)
    return [ebr.simulate(algorithm, problem, 20, 1, per_arm=True) for algorithm in algorithms]


PLANTED = {
    "C46": (
        lambda: figure_1.easy_arm(*races(ebr.ElasticBatchRacing(3, 0.05, 0.01)), arm=2, rounds=3),
        lambda: figure_1.easy_arm(*races(ebr.ElasticBatchRacing(4, 0.05, 0.01)), arm=2, rounds=3),  # late
        lambda: figure_1.easy_arm(*races(ebr.Passive(0.05, 0.01)), arm=2, rounds=3),  # drops no arm
    )
}
