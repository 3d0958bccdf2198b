"""Notebook 03: sequential racing's bound by a plain loop, the tuned algorithm by simulation, T* against H."""

import math

import numpy as np
import pytest
from compendium.shared.characteristic_time import characteristic
from compendium.upper_bounds import complexity
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_the_tuned_algorithm_is_pac_for_every_epsilon():
    for epsilon in (0.3, 0.01, 1e-6):
        assert complexity.tuned(epsilon, 0.01).error() <= 0.01


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.floats(0.01, 0.4), st.integers(0, 2**32))
def test_the_characteristic_time_is_the_complexity_but_for_constants(n_arms, epsilon, seed):
    gaps = np.random.default_rng(seed).uniform(0, 3 * epsilon, n_arms)
    gaps[0] = 0
    problem = ebr.Gaussian(1 - np.minimum(gaps, 1), 0.5)
    shifted = 0.25 * ((problem.gaps + epsilon) ** -2).sum()
    time = characteristic(problem, epsilon).time
    assert 2 * shifted * (1 - 1e-6) <= time <= 4 * shifted * (1 + 1e-6)
    assert 0.25 * problem.complexity(epsilon) / 2 <= time * (1 + 1e-6)
    assert time <= 4 * 0.25 * problem.complexity(epsilon) * (1 + 1e-6)


def test_two_arms_have_the_closed_form():
    problem = ebr.Gaussian([0.7, 0.3], 0.5)
    assert characteristic(problem, 0.1).time == pytest.approx(4 * 0.25 * problem.complexity(0.1))
