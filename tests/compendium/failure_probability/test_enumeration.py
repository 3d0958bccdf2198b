"""Every outcome of a race of few arms, against plain loops over sums."""

import numpy as np
import pytest
from compendium.failure_probability import enumeration
from oracles import least_margin
from scipy.stats import binom

import ebr
from ebr.algorithms.pausing import PausingElasticBatchRacing


def test_two_rounds_of_two_arms_are_a_loop_over_their_sums():
    race, (worse, better) = PausingElasticBatchRacing(2, 0.3, 0.3, rewards="Bernoulli"), (0.3, 0.6001)
    first, last = race.pulls_by_stage(2).tolist()
    level = float(race.shares()[0, 0])
    failed = 0.0
    for x in range(first + 1):
        for y in range(first + 1):
            chance = binom.pmf(x, first, worse) * binom.pmf(y, first, better)
            if least_margin(max(x, y), first, min(x, y), first, 0.3, level) > 0:
                failed += chance * (x >= y)
                continue
            more = np.arange(last - first + 1)
            ties_and_leads = binom.cdf(x + more - y, last - first, better)  # the second arm ends with no more
            failed += chance * (binom.pmf(more, last - first, worse) @ ties_and_leads)
    assert 0.02 < failed < 0.3
    assert enumeration.failure(race, ebr.Bernoulli([worse, better])) == pytest.approx(failed, rel=1e-10)


def test_ties_of_one_round_go_to_the_first_arm():
    race = PausingElasticBatchRacing(1, 0.3, 0.3, rewards="Bernoulli")
    pulls = int(race.pulls_by_stage(2)[0])
    difference = np.convolve(binom.pmf(range(pulls + 1), pulls, 0.3), binom.pmf(range(pulls + 1), pulls, 0.3))
    # The worse arm is returned if A + (b − C) ≥ b where it is first, and if > b where it is second.
    for means, least in (([0.3, 0.7], pulls), ([0.7, 0.3], pulls + 1)):
        expected = difference[least:].sum()
        assert enumeration.failure(race, ebr.Bernoulli(means)) == pytest.approx(expected, rel=1e-10)


def test_outcomes_that_are_alike_are_one_with_all_their_ways():
    found = enumeration.outcomes(PausingElasticBatchRacing(3, 0.5, 0.45, rewards="Bernoulli"), 2)
    # All sequences of rewards are counted, whether their race ended or goes on.
    assert (np.exp(found.log_ways) * 2.0 ** -found.pulls.sum(axis=1)).sum() == pytest.approx(1, rel=1e-10)
    last = np.zeros_like(found.pulls)
    for (_, coming), here in found.plans:
        last[here] = coming
    states = np.hstack([found.pulls, last, found.successes, found.arm[:, None]])
    assert len(np.unique(states, axis=0)) == len(states)
