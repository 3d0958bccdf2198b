"""Notebook 18: sequential racing's bound against a plain loop, the tuned algorithm against simulation."""

import math

import numpy as np
import pytest
from compendium.around_the_theorems import complexity

import ebr
from ebr.theory.confidence import sequential_deviation


def test_enough_sweeps_are_found_by_a_plain_loop_and_are_of_the_order_of_n_star():
    problem, epsilon, delta = ebr.Bernoulli([0.9, 0.6, 0.2]), 0.25, 0.1
    for gap, found in zip(problem.gaps, complexity.enough_sweeps(problem, epsilon, delta), strict=True):
        scale = epsilon**-2 if gap < epsilon else (gap + epsilon) ** -2
        count = 1
        while 8 * sequential_deviation(count, 3, delta) > scale**-0.5:
            count += 1
        assert found == count
        log_term = math.log(math.log2(2 * count) / math.sqrt(delta / 18))
        assert count <= 1 + 1024 * 0.25 * log_term * scale


def test_every_sequential_race_is_counted_and_the_costliest_shown():
    places = complexity.raced([0.2])[:2]
    *_, above, dearest = complexity.sequential_complexity(places, runs=3, seed=1).evidence
    shares = [
        ebr.simulate(ebr.SequentialRacing(0.2, 0.01), problem, 3, 1).pulls.max()
        / sum(complexity.enough_sweeps(problem, 0.2, 0.01))
        for _, problem, *_ in places
    ]
    assert (above.value, above.runs, dearest.runs) == (0, 6, 6)
    assert dearest.value == pytest.approx(sorted(shares)[-1])


def test_the_tuned_algorithm_errs_and_costs_what_is_computed():
    # 400,000 races; 5 standard errors: a failure by chance has probability 5.7e-7 for each of four numbers.
    generator, runs = np.random.default_rng(1), 400_000
    tuned = complexity.Tuned(0.2, 20, 35, 1.2)
    for lead in (-0.2, 0.5):
        first = lead + 0.5 * math.sqrt(2 / 20) * generator.standard_normal(runs)
        second = lead + 0.5 * math.sqrt(2 / 35) * generator.standard_normal(runs)
        certified = first + 0.2 > 1.2 * 0.5 * math.sqrt(2 / 20)
        expected = float(tuned.certified(lead))
        assert abs(certified.mean() - expected) < 5 * math.sqrt(expected * (1 - expected) / runs)
        if lead < 0:
            wrong = (certified | (second > 0)).mean()
            assert abs(wrong - tuned.error()) < 5 * math.sqrt(wrong * (1 - wrong) / runs)
        else:
            pulls = 2 * 20 + 2 * 35 * ~certified
            ratio = pulls / (0.25 * 2 / 0.7**2)
            assert abs(ratio.mean() - tuned.ratio(lead)) < 5 * ratio.std() / math.sqrt(runs)
