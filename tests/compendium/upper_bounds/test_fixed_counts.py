"""Theorem 1 on E′: the inequalities of its proof, by hand and against an adversary."""

import math

import numpy as np
import pytest
from compendium.shared.adversary import corners, fixed_count_ratio, play_inside
from compendium.upper_bounds.fixed_counts import elimination_need, recommended_gap
from hypothesis import given, settings
from hypothesis import strategies as st

import ebr
from ebr.theory.confidence import deviation, half_width

SHARE = st.floats(0, 1)
C = 4 + 2 * math.log(2)  # the constant of the paper's deviation


@given(st.integers(2, 10**4), st.integers(1, 10**4), st.floats(1e-9, 1 - 1e-9))
def test_hoeffdings_deviation_is_the_papers_times_a_ratio_below_one(n_arms, deadline, delta):
    ratio = fixed_count_ratio(n_arms, deadline, delta)
    hoeffding = half_width("Hoeffding", 7, delta / (n_arms * deadline), sigma=0.3)
    assert ratio == pytest.approx(hoeffding / deviation(7, n_arms, deadline, delta, sigma=0.3))
    assert ratio < 1
    if math.log(n_arms * deadline / delta) >= 2:
        assert ratio <= math.sqrt(0.5) * (1 + 1e-12)


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 10**4), st.integers(1, 10**4), st.floats(1e-9, 1 - 1e-9), SHARE, SHARE)
def test_on_the_narrow_event_both_needs_stay_below_one(n_arms, deadline, delta, shrink, tolerance):
    assert recommended_gap(n_arms, deadline, delta, shrink) < 1
    assert elimination_need(n_arms, deadline, delta, shrink, tolerance) < 1


@pytest.mark.parametrize("shrink", [1.0, 0.6])
@pytest.mark.parametrize(("n_arms", "deadline", "delta"), [(3, 2, 0.81), (2, 1, 0.9), (9, 7, 0.1)])
def test_both_needs_are_what_the_deviations_of_a_round_come_to(n_arms, deadline, delta, shrink):
    sigma, epsilon, gap, k = 0.3, 0.1, 0.4, min(n_arms, deadline)
    log_term = math.log(n_arms * deadline / delta)

    def both(length):
        """D and D′ after 80 σ² log(nT/δ) / length² pulls, or more if they shrink."""
        tau = 80 * sigma**2 * log_term / length**2 / shrink**2
        return sigma * math.sqrt(C * log_term / tau), sigma * math.sqrt(2 * (log_term + math.log(2)) / tau)

    wide, narrow = both(epsilon)
    lost = (k - 1) * max(epsilon / k - 2 * (wide - narrow), 0) + 2 * narrow
    assert epsilon * recommended_gap(n_arms, deadline, delta, shrink) == pytest.approx(lost)
    wide, narrow = both(gap)
    need = 2 * (wide + narrow) + (k - 1) * max(epsilon / k - 2 * (wide - narrow), 0) - epsilon / k
    found = gap * elimination_need(n_arms, deadline, delta, shrink, tolerance=epsilon / gap)
    assert found == pytest.approx(need)


def test_the_adversary_on_the_narrow_event_comes_near_the_bound_and_not_above_it():
    epsilon, delta, top = 0.38, 0.1, 0.9
    algorithm = ebr.ElasticBatchRacing(2, epsilon, delta, sigma=5.0)  # so large that ceilings do not matter
    y, ratio = math.sqrt(C / 80), math.sqrt(2 * math.log(12 / delta) / (C * math.log(6 / delta)))  # D′/D

    def worst(second, third, places):
        problem = ebr.Gaussian(top - epsilon * np.array([0, second, third]), 5.0)
        return (top - problem.means[play_inside(algorithm, problem, places).arm]).max() / epsilon

    first = y / math.sqrt(epsilon)  # D in units of ε in round 1, and y in round 2; η = 1/2
    lost, last = 0.5 - 2 * (1 - ratio) * first, min(2 * ratio * y, 2 * first - 0.5)
    bound, wide = recommended_gap(3, 2, delta), corners(3, 2)
    assert 0.8 * bound < worst(0.999 * lost, 0.999 * (lost + last), ratio * wide) <= bound
    assert worst(0.499, 0.8, wide) > bound  # not a bound on E
