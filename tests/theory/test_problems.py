"""Problems: gaps and complexity by hand and against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ebr

MEANS = st.lists(st.floats(0, 1), min_size=2, max_size=8)


def test_gaps_by_hand_the_best_arm_takes_the_runner_ups():
    assert ebr.Bernoulli([0.3, 0.9, 0.7]).gaps == pytest.approx([0.6, 0.2, 0.2])
    assert ebr.Bernoulli([0.9, 0.5, 0.9]).gaps == pytest.approx([0.0, 0.4, 0.0])


def test_complexity_by_hand_jumps_where_the_gap_reaches_epsilon():
    # Gaps 1/2, 1/2, 3/4 and ε = 1/4: 2 (3/4)^-2 + 1.
    assert ebr.Bernoulli([0.75, 0.25, 0.0]).complexity(0.25) == pytest.approx(2 * 16 / 9 + 1)
    # A gap of exactly ε counts as (2ε)^-2, a gap just below it as ε^-2.
    assert ebr.Bernoulli([0.75, 0.5]).complexity(0.25) == pytest.approx(2 * 4)
    assert ebr.Bernoulli([0.75, 0.5 + 1e-12]).complexity(0.25) == pytest.approx(2 * 16)


def test_gaps_and_complexity_of_the_k_best_by_hand():
    problem = ebr.Bernoulli([0.5, 0.9, 0.2, 0.8])
    assert problem.top(2).tolist() == [1, 3]
    assert problem.top_gaps(2) == pytest.approx([0.3, 0.4, 0.6, 0.3])
    # ε = 0.35: two gaps below it, (0.4 + 0.35)^−2 and (0.6 + 0.35)^−2.
    assert problem.complexity(0.35, 2) == pytest.approx(2 / 0.35**2 + 0.75**-2 + 0.95**-2)
    tied = ebr.Bernoulli([0.5, 0.5, 0.5, 0.1])
    assert tied.top(2).tolist() == [0, 1]  # of tied arms the first
    assert tied.top_gaps(2) == pytest.approx([0, 0, 0, 0.4])


@given(MEANS, st.data())
def test_gaps_are_what_sorting_says_and_the_mirror_image_has_the_same(means, data):
    k = data.draw(st.integers(1, len(means) - 1))
    ranked = sorted(means, reverse=True)
    expected = sorted([m - ranked[k] for m in ranked[:k]] + [ranked[k - 1] - m for m in ranked[k:]])
    assert sorted(ebr.Bernoulli(means).top_gaps(k)) == pytest.approx(expected)
    mirror = ebr.Bernoulli([1 - m for m in means]).top_gaps(len(means) - k)
    assert sorted(mirror) == pytest.approx(expected, abs=1e-15)


def test_good_arms_are_strictly_within_epsilon_and_none_is_not():
    problem = ebr.Bernoulli([0.75, 0.5, 0.5625])
    assert problem.is_good([0, 1, 2, -1], 0.25).tolist() == [True, False, True, False]
    assert problem.is_good(2, 0.25)
    # For k arms, within epsilon of the k-th best.
    assert ebr.Bernoulli([0.75, 0.5, 0.25, 1.0]).is_good([0, 1, 2, 3], 0.25, k=2).tolist() == [1, 0, 0, 1]


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
        (lambda: ebr.Bernoulli([0.5, 1.5]), r"means .*\[0, 1\].*1\.5 for arm 1"),
        (lambda: ebr.Gaussian([-0.1, 0.5], 1.0), r"means .*\[0, 1\].*-0\.1 for arm 0"),
        (lambda: ebr.Bernoulli([0.5, np.nan]), r"means .*\[0, 1\].*nan"),
        (lambda: ebr.setup_1(3).is_good(0, 0.1, 4), r"k must lie in 1 … 3, the number of arms, got 4"),
        (lambda: ebr.setup_1(3).complexity(0.1, 0), r"k must be an integer of at least 1, got 0"),
        (lambda: ebr.setup_1(3).top(3), r"k must lie in 1 … 2, below the number of arms, got 3"),
    ],
)
def test_bad_input_is_named_with_its_range(make, names):
    with pytest.raises(ValueError, match=names):
        make()
