"""Notebook 04."""

from functools import cache, partial

from compendium import change_of_measure, lineup, lower_bounds, partition_races

import ebr
from ebr.theory import bounds, divergence
from planted.algorithms import OnePull


def idle(deadline, epsilon, delta, sigma):
    """Nothing like PAC."""
    return {"EBR": OnePull(deadline, epsilon, delta, sigma)}


@cache
def costs(family=lineup.algorithms, epsilon=0.3, **errors):
    return partition_races.costs([(2, 2), (3, 2)], epsilon, 0.1, 150, 1, family, **errors)


@cache
def lazy_costs():
    return costs(idle, epsilon=0.1)


def last_bin_as_printed(*place):
    """Theorem 3 as if the last bin's arms could be told apart like the others."""
    return bounds.partition_lower_bound(*place, printed=True)


def changed_measure(**errors):
    tables = {}
    for name, algorithm in (("EBR", ebr.ElasticBatchRacing(3, 0.4, 0.1)), ("passive", ebr.Passive(0.4, 0.1))):
        pair = change_of_measure.close_pair(algorithm, 2, 0.5, 1)
        tables[name, 2] = change_of_measure.identities(algorithm, *pair, 20_000, 1, **errors)
    return change_of_measure.change_of_measure(change_of_measure.joined(tables))


def both_sides(tests, p, q):
    """P(φ = 1) + Q(φ = 0)."""
    return tests @ p + (1 - tests) @ q


PLANTED = {
    "C12": (
        lambda: lower_bounds.theorem_3(costs()),
        lambda: lower_bounds.theorem_3(lazy_costs()),
        lambda: lower_bounds.theorem_3(costs(proved=last_bin_as_printed)),
    ),
    "C13": (
        lambda: lower_bounds.theorem_3_two_arms(costs()),
        lambda: lower_bounds.theorem_3_two_arms(lazy_costs()),
        lambda: lower_bounds.theorem_3_two_arms(costs(), shift=1.0),  # of one arm, as in the paper's proof
    ),
    "C14": (
        lower_bounds.entropies,
        lambda: lower_bounds.entropies(base=2.3),
        lambda: lower_bounds.entropies(weight=0.7),
        lambda: lower_bounds.entropies(least=1 / 23),
    ),
    "C15": (lambda: lower_bounds.other_arms(costs()), lambda: lower_bounds.other_arms(lazy_costs())),
    "C16": (
        changed_measure,
        partial(changed_measure, sign=-1.0),
        partial(changed_measure, entropy=lambda p, q: 10 * divergence.bernoulli_kl(p, q)),
    ),
    "C17": (lower_bounds.tsybakov, lambda: lower_bounds.tsybakov(errors=both_sides)),
    "C39": (lower_bounds.matches_theorem_1, lambda: lower_bounds.matches_theorem_1(constant=100)),
    "C40": (
        lower_bounds.larger_probability,
        # The event's probability taken twice: then nothing is left to tell the two problems apart.
        lambda: lower_bounds.larger_probability(constant=lambda p, delta: bounds.hpcm_at(2 * p, delta)),
        lambda: lower_bounds.larger_probability(idle=1.5),  # no longer PAC
        lambda: lower_bounds.larger_probability(idle=0.0),  # never gives up
    ),
    "C41": (lambda: lower_bounds.best_arm(costs()), lambda: lower_bounds.best_arm(lazy_costs())),
    "C44": (lower_bounds.iterated_logarithms, lambda: lower_bounds.iterated_logarithms(power=1)),
    "C48": (lower_bounds.one_round, lambda: lower_bounds.one_round(constant=1.6)),
}
