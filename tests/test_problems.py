"""Problems: gaps, complexity and partition against definitions worked by hand or by a plain loop."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ebr

MEANS = st.lists(st.floats(0, 1), min_size=2, max_size=8)
UNIT = st.floats(1e-3, 0.999)


def test_gaps_by_hand_the_best_arm_takes_the_runner_ups():
    assert ebr.Bernoulli([0.3, 0.9, 0.7]).gaps == pytest.approx([0.6, 0.2, 0.2])
    assert ebr.Bernoulli([0.9, 0.5, 0.9]).gaps == pytest.approx([0.0, 0.4, 0.0])


def test_complexity_by_hand_jumps_where_the_gap_reaches_epsilon():
    # Gaps 1/2, 1/2, 3/4 and ε = 1/4: 2 (3/4)^-2 + 1.
    assert ebr.Bernoulli([0.75, 0.25, 0.0]).complexity(0.25) == pytest.approx(2 * 16 / 9 + 1)
    # Gap exactly ε counts as (2ε)^-2, just below it as ε^-2.
    assert ebr.Bernoulli([0.75, 0.5]).complexity(0.25) == pytest.approx(2 * 4)
    assert ebr.Bernoulli([0.75, 0.5 + 1e-12]).complexity(0.25) == pytest.approx(2 * 16)


@given(MEANS, UNIT, st.integers(1, 8))
def test_partition_is_the_bin_of_definition_1(means, epsilon, deadline):
    problem = ebr.Bernoulli(means)
    for gap, index in zip(problem.gaps, problem.partition(epsilon, deadline), strict=True):
        if deadline == 1:
            assert index == 1
        elif index == 1:
            assert gap >= epsilon ** (1 / deadline)
        elif index == deadline:
            assert gap < epsilon ** ((deadline - 1) / deadline)
        else:
            assert epsilon ** (index / deadline) <= gap < epsilon ** ((index - 1) / deadline)


def test_good_arms_are_strictly_within_epsilon_and_none_is_not():
    problem = ebr.Bernoulli([0.75, 0.5, 0.5625])
    assert problem.is_good([0, 1, 2, -1], 0.25).tolist() == [True, False, True, False]
    assert problem.is_good(2, 0.25)


def test_the_setups_are_section_5s():
    for problem, lowest in ((ebr.setup_1(), 0.1), (ebr.setup_2(), 0.65)):
        assert (problem.n_arms, problem.sigma, problem.best) == (100, 0.5, 0)
        assert (problem.means.max(), problem.means.min()) == pytest.approx((0.9, lowest))
        assert np.diff(problem.means) == pytest.approx(np.full(99, (lowest - 0.9) / 99))


def test_a_problem_cannot_be_changed_through_the_callers_array():
    means = np.array([0.2, 0.8])
    problem = ebr.Bernoulli(means)
    means[0] = 1.0
    assert problem.means[0] == 0.2
    with pytest.raises(ValueError, match="read-only"):
        problem.means[0] = 1.0


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: ebr.Bernoulli([0.5]), r"means .* at least 2"),
        (lambda: ebr.Bernoulli([[0.5, 0.2]]), r"means .* at least 2"),
        (lambda: ebr.Bernoulli([0.5, 1.5]), r"means .*\[0, 1\].*1\.5 for arm 1"),
        (lambda: ebr.Gaussian([-0.1, 0.5], 1.0), r"means .*\[0, 1\].*-0\.1 for arm 0"),
        (lambda: ebr.Bernoulli([0.5, np.nan]), r"means .*\[0, 1\].*nan"),
        (lambda: ebr.Gaussian([0.5, 0.2], np.inf), r"sigma .*inf"),
        (lambda: ebr.Gaussian([0.5, 0.2], 0), r"sigma .* above 0, got 0"),
        (lambda: ebr.setup_1(1), r"n_arms .* at least 2, got 1"),
        (lambda: ebr.setup_1().complexity(0), r"epsilon .*\(0, 1\), got 0"),
        (lambda: ebr.setup_1().partition(0.1, 0), r"deadline .* at least 1, got 0"),
        (lambda: ebr.setup_1().is_good(0, 1.0), r"epsilon .*\(0, 1\), got 1\.0"),
    ],
)
def test_bad_input_is_named_with_its_range(make, names):
    with pytest.raises(ValueError, match=names):
        make()
