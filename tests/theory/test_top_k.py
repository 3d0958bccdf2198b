"""H_k and the cost bounds for the k best: by hand, by plain loops, and for k = 1 the paper's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ebr
from ebr.theory import bounds, top_k

some_means = st.lists(st.integers(0, 20).map(lambda x: x / 20), min_size=2, max_size=8)


def test_gaps_and_complexity_by_hand():
    problem = ebr.Bernoulli([0.5, 0.9, 0.2, 0.8])
    assert top_k.top(problem, 2).tolist() == [1, 3]
    assert top_k.top_gaps(problem, 2) == pytest.approx([0.3, 0.4, 0.6, 0.3])
    # ε = 0.35: two gaps below it, (0.4 + 0.35)^−2 and (0.6 + 0.35)^−2.
    assert top_k.top_complexity(problem, 0.35, 2) == pytest.approx(2 / 0.35**2 + 0.75**-2 + 0.95**-2)
    assert top_k.top_gaps(problem, 3) == pytest.approx([0.3, 0.7, 0.3, 0.6])


def test_where_arms_tie_for_the_last_place_the_first_of_them_has_it():
    problem = ebr.Bernoulli([0.5, 0.5, 0.5, 0.1])
    assert top_k.top(problem, 2).tolist() == [0, 1]
    assert top_k.top_gaps(problem, 2) == pytest.approx([0, 0, 0, 0.4])


@given(some_means, st.data())
def test_gaps_are_what_sorting_says_and_the_mirror_image_has_the_same(means, data):
    k = data.draw(st.integers(1, len(means) - 1))
    ranked = sorted(means, reverse=True)
    expected = sorted([m - ranked[k] for m in ranked[:k]] + [ranked[k - 1] - m for m in ranked[k:]])
    gaps = top_k.top_gaps(ebr.Bernoulli(means), k)
    assert sorted(gaps) == pytest.approx(expected)
    other = top_k.top_gaps(ebr.Bernoulli([1 - m for m in means]), len(means) - k)
    assert sorted(gaps) == pytest.approx(sorted(other))


@given(some_means, st.sampled_from([0.01, 0.1, 0.3]), st.integers(1, 6), st.sampled_from([0.01, 0.3]))
def test_with_k_1_the_bounds_are_those_for_the_best_arm(means, epsilon, deadline, delta):
    problem = ebr.Bernoulli(means)
    race = ebr.SharpElasticBatchRacing(deadline, epsilon, delta, rewards="sub-Gaussian")
    widths, pulls, n_arms = race.widths(), race.pulls_by_round(len(means)), len(means)
    longest = race.log_terms(n_arms).max()
    assert top_k.top_gaps(problem, 1).tolist() == problem.gaps.tolist()
    assert top_k.top_complexity(problem, epsilon, 1) == problem.complexity(epsilon)
    assert (
        top_k.decision_rounds(problem, epsilon, widths, 1).tolist()
        == bounds.elimination_rounds(problem, epsilon, widths).tolist()
    )
    pairs = [
        (
            top_k.sharp_upper_bound(problem, epsilon, widths, pulls, 1),
            bounds.sharp_upper_bound(problem, epsilon, widths, pulls),
        ),
        (
            top_k.sharp_problem_bound(problem, epsilon, deadline, longest, 1),
            bounds.sharp_problem_bound(problem, epsilon, deadline, longest),
        ),
        (
            top_k.elastic_partition_bound(problem, epsilon, deadline, delta, 1),
            bounds.partition_upper_bound(problem, epsilon, deadline, delta),
        ),
        (
            top_k.elastic_problem_bound(problem, epsilon, deadline, delta, 1),
            bounds.problem_upper_bound(problem, epsilon, deadline, delta),
        ),
    ]
    for mine, before in pairs:
        assert mine == pytest.approx(before, rel=1e-12)


@given(some_means, st.data(), st.sampled_from([0.01, 0.1, 0.3]), st.integers(1, 6))
def test_the_sums_of_terms_are_below_the_bounds_in_h_k(means, data, epsilon, deadline):
    problem, delta = ebr.Bernoulli(means), 0.05
    k = data.draw(st.integers(1, len(means) - 1))
    race = ebr.SharpElasticBatchRacing(deadline, epsilon, delta, rewards="sub-Gaussian", k=k)
    pulls, longest = race.pulls_by_round(len(means)), race.log_terms(len(means)).max()
    total = top_k.sharp_upper_bound(problem, epsilon, race.widths(), pulls, k)
    assert total <= top_k.sharp_problem_bound(problem, epsilon, deadline, longest, k)
    assert top_k.elastic_partition_bound(problem, epsilon, deadline, delta, k) <= top_k.elastic_problem_bound(
        problem, epsilon, deadline, delta, k
    )


def test_decision_rounds_by_a_plain_loop():
    problem, epsilon = ebr.Bernoulli([0.5, 0.9, 0.2, 0.8, 0.78]), 0.05
    widths = ebr.SharpElasticBatchRacing(5, epsilon, 0.1).widths()
    gaps = [0.28, 0.12, 0.58, 0.02, 0.02]
    expected = [
        next((t for t, w in enumerate(widths) if 2 * w <= gap or 2 * w <= 0.02 + epsilon), 4) for gap in gaps
    ]
    assert top_k.decision_rounds(problem, epsilon, widths, 2).tolist() == expected


def test_an_arm_is_good_within_epsilon_of_the_k_th_strictly():
    problem = ebr.Bernoulli([0.75, 0.5, 0.25, 1.0])
    assert problem.is_good([0, 1, 2, 3, -1], 0.25, k=2).tolist() == [True, False, False, True, False]
    assert problem.is_good([0, 1, 2, 3], 0.25, k=3).tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("k", "names"), [(0, "at least 1, got 0"), (3, "1 … 2, below .*, got 3"), (1.5, "1.5")]
)
def test_bad_k_is_named(k, names):
    with pytest.raises(ValueError, match=f"^k must .*{names}"):
        top_k.top_complexity(ebr.Bernoulli([0.1, 0.2, 0.3]), 0.1, k)
    if k != 3:
        with pytest.raises(ValueError, match=f"^k must .*{names}"):
            ebr.Bernoulli([0.1, 0.2, 0.3]).is_good(0, 0.1, k)


def test_start_below_a_half_has_no_bound():
    with pytest.raises(ValueError, match=r"^start must be at least 0\.5"):
        top_k.sharp_problem_bound(ebr.setup_1(5), 0.1, 2, math.log(10), 2, start=0.4)
