"""A control arm: against plain loops, with exact failure probabilities, and what futility saves."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lossy_oracle import lossy_race
from oracles import Rewards, play
from scipy.stats import binom, binomtest

import ebr
from ebr.algorithms.futility import futile
from ebr.simulation.simulate import simulate

SHARP = ebr.SharpElasticBatchRacing


@pytest.mark.parametrize("model", ["sub-Gaussian", "bounded", "Gaussian"])
@settings(max_examples=150, deadline=None)
@given(
    means=st.lists(st.sampled_from([0, 0.02, 0.3, 0.45, 0.5, 0.55, 0.95, 1]), min_size=2, max_size=6),
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.1, 0.9),
    delta=st.floats(0.01, 0.9),
    wider=st.floats(1, 3),
    place=st.integers(0, 5),
    seed=st.integers(0, 2**32),
)
def test_every_replicate_is_the_plain_loop(model, means, deadline, epsilon, delta, wider, place, seed):
    n, margin = len(means), min(epsilon * wider, 0.95)
    control = place % n
    table = (np.random.default_rng(seed).random((3, n, 97)) < np.array(means)[:, None]).astype(int)
    looks = "union" if model == "Gaussian" else "joint"
    algorithm = SHARP(deadline, epsilon, delta, rewards=model, looks=looks, control=control, margin=margin)
    asked, arms = play(algorithm, Rewards(table))
    for r in range(3):
        used = [0] * n

        def pay(arm, r=r, used=used):
            used[arm] += 1
            return int(table[r, arm, (used[arm] - 1) % 97])

        keep_all = lambda number, arm, owed: owed  # noqa: E731
        parameters = (n, deadline, epsilon, delta, 0.5, model, control, margin)
        expected = lossy_race(pay, keep_all, *parameters)
        assert [each[r].tolist() for each in asked if each[r].any()] == expected[0]
        assert arms[r] == expected[1]


def failure_probability(algorithm, means, margin):
    """P(the control is recommended though an arm is better by the margin, or an arm that is not ε-best).

    Every outcome of two rounds is a replicate.
    """
    n = len(means)
    steps = np.diff(algorithm.pulls_by_round(n), prepend=0)
    steps = steps[steps > 0]
    cells = [np.arange(step + 1) for step in steps for _ in range(n)]
    sums = np.stack([place.ravel() for place in np.meshgrid(*cells, indexing="ij")], axis=1)
    sums = sums.reshape(-1, len(steps), n)
    weights = binom.pmf(sums, steps[:, None], means).prod(axis=(1, 2))
    rounds = iter(range(len(steps)))

    class Outcomes:
        shape = (len(sums), n)

        def pay(self, pulls):
            return np.where(pulls > 0, sums[:, next(rounds)], 0.0)

    _, arms = play(algorithm, Outcomes())
    gap = max(means) - np.array(means)[arms]
    allowed = np.where(arms == algorithm.control, margin, algorithm.epsilon)
    return float(weights @ (gap >= allowed - 1e-12))


@pytest.mark.parametrize(("model", "delta"), [("sub-Gaussian", 0.2), ("bounded", 0.5)])
def test_errors_have_probability_delta_at_most_and_the_margin_counts(model, delta):
    algorithm = SHARP(2, 0.4, delta, rewards=model, control=0, margin=0.5)
    truths = [
        (low, low + gap) for low, gap in product((0.0, 0.1, 0.24, 0.35), (0.41, 0.5, 0.6)) if low + gap <= 1
    ]
    found = [failure_probability(algorithm, truth, 0.5) for truth in truths]
    assert 0 < max(found) <= delta
    # Planted: a margin of 0.9 where 0.5 is promised.
    planted = replace(algorithm, margin=0.9)
    assert max(failure_probability(planted, truth, 0.5) for truth in truths) > delta


def test_gaussian_looks_taken_together_pay_for_futility_too():
    # The control is worse than the best by the margin and a little; three arms tie with it. δ = 0.2; a sound
    # race fails with less than 10⁻⁶.
    algorithm = SHARP(4, 0.1, 0.2, rewards="Gaussian", control=0, margin=0.15)
    truth = ebr.Gaussian([0.5, 0.5, 0.5, 0.5, 0.651], 0.5)
    found = simulate(algorithm, truth, 20_000, seed=1)
    wrong = int((found.arm != 4).sum())
    assert binomtest(wrong, 20_000, 0.2, alternative="greater").pvalue > 1e-6
    assert (found.arm == 0).any()


@pytest.mark.parametrize("model", ["bounded", "Gaussian", "sub-Gaussian"])
def test_where_nobody_is_better_the_race_ends_sooner_with_the_control(model):
    plain = SHARP(6, 0.05, 0.05, rewards=model)
    guarded = replace(plain, control=0, margin=0.15)
    truth = ebr.Gaussian([0.5] * 4, 0.5) if model == "Gaussian" else ebr.Bernoulli([0.5] * 4)
    without, with_control = (simulate(each, truth, 300, seed=1) for each in (plain, guarded))
    assert with_control.pulls.mean() < without.pulls.mean() / 2  # by more than 20 standard errors
    assert (with_control.arm == 0).mean() > 0.95


def test_where_the_control_is_dropped_nothing_changes():
    plain = SHARP(5, 0.05, 0.05, rewards="bounded")
    table = (np.random.default_rng(1).random((200, 4, 2000)) < np.array([0.1, 0.7, 0.75, 0.8])[:, None]) * 1
    asked, arms = play(plain, Rewards(table))
    again, others = play(replace(plain, control=0), Rewards(table))
    assert [each.tolist() for each in asked] == [each.tolist() for each in again]
    assert arms.tolist() == others.tolist()


def test_a_control_that_was_dropped_is_never_futile():
    gone, there = np.array([-np.inf]), np.array([0.5])
    for tests in ({"ratio": 0.0}, {"width": -9.0}, {"ratio": 0.0, "width": -9.0}):
        assert futile((there, there), 0.9, **tests).all()
        assert not futile((gone, there), 0.9, **tests).any()


def test_without_a_control_an_algorithm_is_spelled_as_before():
    assert repr(SHARP(2, 0.1, 0.05)) == (
        "SharpElasticBatchRacing(deadline=2, epsilon=0.1, delta=0.05, sigma=0.5, rewards=None, start=0.5,"
        " split='late')"
    )
    assert "control=1, margin=0.1)" in repr(SHARP(2, 0.1, 0.05, control=1))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"margin": 0.2}, "margin must be left out where there is no control, got 0.2"),
        ({"control": 0, "margin": 0.05}, "margin must be at least epsilon, 0.1, got 0.05"),
        ({"control": 0, "margin": 1.5}, r"margin must lie in \(0, 1\), got 1.5"),
        ({"control": -1}, "control must be an integer of at least 0, got -1"),
        ({"control": "placebo"}, "control must be an integer of at least 0, got 'placebo'"),
        ({"control": 0, "k": 2}, "k must be 1 where there is a control, got 2"),
    ],
)
def test_bad_controls_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SHARP(3, 0.1, 0.1, **parameters)


def test_a_control_is_one_of_the_arms():
    with pytest.raises(ValueError, match="control must lie in 0 … 2, the arms' numbers, got 3"):
        next(SHARP(3, 0.1, 0.1, control=3).play(3))
