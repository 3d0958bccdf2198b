"""Notebook 20: certified races that misread the rewards which came in."""

from functools import cache, partial
from unittest import mock

import numpy as np
from compendium.clinical_trial import vaccine_trial
from compendium.what_trials_need import dropouts

from ebr.algorithms.certified import CertifiedElasticBatchRacing, _Reading

RACE = CertifiedElasticBatchRacing(5, (30, 55, 100), (2.6, 2.4), 0.2, 0.1, floor=2.5, shifts=(0.4,))
NUMBER, TRIALS = 150, 100  # enough for an error to show


@cache
def lost():
    truth = vaccine_trial.one_better(0.6, 0.2 * (1 + 1e-6))
    return dropouts.compare(RACE, RACE.deadline, truth, TRIALS, 1)


def guarantee():
    return dropouts.guarantee(dropouts.alike(NUMBER, 1), lost(), RACE.delta)


def with_error(place, name, error):
    """The check with an error planted in the small races."""
    lost()
    with mock.patch.object(place, name, error):
        return guarantee()


def in_proportion(self, wanted, count, total):
    """The first b_t rewards are given the mean of all that came."""
    return np.round(total * wanted / max(count, 1))


def the_best_first(self, wanted, count, total):
    """Successes are read before failures."""
    return min(total, wanted)


def all_that_came(self, wanted, count, total):
    """A look reads all rewards that came in, as if there were b_t of them."""
    return total


PLANTED = {
    "X20": (
        guarantee,
        partial(with_error, _Reading, "_first", in_proportion),
        partial(with_error, _Reading, "_first", the_best_first),
        partial(with_error, _Reading, "_first", all_that_came),
    )
}
