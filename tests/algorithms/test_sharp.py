"""Sharp EBR: against a plain loop written from X3 and X4, with exact tails and failures, and what it costs.

Where an exact bound is checked, a planted error shows that it could have failed.
"""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Rewards, evidence, log_term, play, sharp_race
from scipy.stats import binom

import ebr
from ebr.models import REWARDS

SHARP = ebr.SharpElasticBatchRacing
bernoulli_models = pytest.mark.parametrize("model", ["sub-Gaussian", "bounded"])


@pytest.mark.parametrize("model", REWARDS)
@settings(max_examples=100, deadline=None)
@given(
    means=st.lists(st.sampled_from([0, 0.02, 0.3, 0.45, 0.5, 0.55, 0.95, 1]), min_size=2, max_size=8),
    data=st.data(),
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.1, 0.9),
    delta=st.floats(0.01, 0.9),
    sigma=st.floats(0.05, 1),
    start=st.sampled_from([0.5, 1, 0.2]),
    split=st.sampled_from(["late", "equal"]),
    seed=st.integers(0, 2**32),
)
def test_every_replicate_is_the_plain_loop(
    model, means, data, deadline, epsilon, delta, sigma, start, split, seed
):
    # 0/1 rewards tie often; three replicates end at three times.
    n_arms, in_unit = len(means), model in ("bounded", "Bernoulli")  # which sharp EBR treats alike
    k = data.draw(st.integers(1, n_arms - 1) | st.just(1))
    sigma = max(sigma, 0.5) if in_unit else sigma
    generator, shape = np.random.default_rng(seed), (3, n_arms, 97)
    if not in_unit and data.draw(st.booleans()):
        table = generator.normal(np.array(means)[:, None], sigma, shape)
    else:
        table = (generator.random(shape) < np.array(means)[:, None]).astype(int)
    algorithm = SHARP(deadline, epsilon, delta, sigma, model, start, split, k)
    parameters = (deadline, epsilon, delta, sigma, "bounded" if in_unit else model, start, split, k)
    asked, arms = play(algorithm, Rewards(table))
    for replicate, rewards in enumerate(table.tolist()):
        mine = [ask[replicate].tolist() for ask in asked if ask[replicate].any()]
        assert (mine, arms[replicate].tolist()) == sharp_race(rewards, *parameters)


def test_a_last_round_without_a_new_pull_is_not_played_and_the_leader_wins():
    # At T a smaller L is enough, and its pulls are reached a round before. Nobody is certified there.
    algorithm = SHARP(4, 0.2, 0.1, rewards="bounded")
    assert algorithm.pulls_by_round(2).tolist() == [39, 58, 85, 85]
    table = np.tile([0, 1], (1, 2, 50))
    table[0, 1, 0] = 1  # one reward more
    asked, arm = play(algorithm, Rewards(table))
    assert np.cumsum(asked, axis=0).tolist() == [[[39, 39]], [[58, 58]], [[85, 85]]]
    assert 85 * evidence(43 / 85, 42 / 85, 0.2) < 4 < log_term("bounded", algorithm.shares()[2], last=False)
    assert arm.tolist() == [1]


@pytest.mark.parametrize(
    ("model", "log_terms", "pulls", "with_sigma_1"),
    [
        # n = 3, T = 2, ε = 0.1, δ = 0.05, σ = ½. w = √(½ · 0.1), 0.1 = 0.223607, 0.1; 1/w = 4.47214, 10; so
        # δ_t = 0.05 · 4.47214/14.47214, 0.05 · 10/14.47214 = 0.0154508, 0.0345492. Halved, for n − 1 = 2:
        # log 129.443, log 57.8885; over w² = 0.05, 0.01 that is 97.265, 405.85.
        ("sub-Gaussian", [4.86324, 4.05852], [98, 406], [390, 1624]),
        # 7.93445 e^{−6.93445} = 0.00772542: 138.69.
        ("bounded", [6.93445, 4.05852], [139, 406], [555, 1624]),
        # The normal quantiles 2.42164 and 2.11360, squared and halved: 58.643, 223.37.
        ("Gaussian", [2.93216, 2.23366], [59, 224], [235, 894]),
    ],
)
def test_the_schedule_by_hand(model, log_terms, pulls, with_sigma_1):
    algorithm = SHARP(2, 0.1, 0.05, rewards=model)
    assert algorithm.widths() == pytest.approx([0.223607, 0.1], rel=1e-5)
    assert algorithm.shares() == pytest.approx([0.0154508, 0.0345492], rel=1e-5)
    assert algorithm.log_terms(3) == pytest.approx(log_terms, rel=1e-5)
    assert algorithm.pulls_by_round(3).tolist() == pulls
    assert SHARP(2, 0.1, 0.05, sigma=1, rewards=model).pulls_by_round(3).tolist() == with_sigma_1


def all_sums(pulls):
    """Every pair of sums (replicates × 2)."""
    return np.indices((pulls + 1, pulls + 1)).reshape(2, -1).T.astype(float)


def chances(pulls, *means):
    """How likely each of them is for two Bernoulli arms."""
    return np.outer(*(binom.pmf(range(pulls + 1), pulls, mean) for mean in means)).ravel()


class Once:
    """These sums in the first round, and then nothing more."""

    def __init__(self, sums):
        self.sums, self.shape = sums, sums.shape

    def pay(self, pulls):
        paid, self.sums = self.sums, np.zeros(self.shape)
        return paid


def after_one_round(algorithm, sums):
    """Who is pulled again after a first round with these sums, and who wins if that pays nothing."""
    asked, arm = play(algorithm, Once(sums))
    return asked[1] > 0 if len(asked) == 2 else np.zeros(sums.shape, dtype=bool), arm


class Narrow(ebr.SharpElasticBatchRacing):
    """Planted: for the same pulls, widths of half the size."""

    def pulls_by_round(self, n_arms, rewards=None):
        return SHARP(*astuple(self)).pulls_by_round(n_arms, rewards)

    def log_terms(self, n_arms, rewards=None):
        return super().log_terms(n_arms, rewards) / 4


class Hasty(ebr.SharpElasticBatchRacing):
    """Planted: the certificate's ε is three times as large."""

    def certified(self, *seen):
        return SHARP(self.deadline, 3 * self.epsilon, self.delta, self.sigma, self.rewards).certified(*seen)


def exact_failures(algorithm, gaps):
    """The probability that the worse of two Bernoulli arms is recommended, for a grid of means.

    T = 2: if both arms go on after the first round, the second one's difference decides. The worse arm comes
    first, so that ties go to it.
    """
    first, last = algorithm.pulls_by_round(2)
    sums, fresh = all_sums(first), last - first
    again, arm = after_one_round(algorithm, sums)
    needed = np.clip(sums[:, 1] - sums[:, 0] + fresh, 0, 2 * fresh + 1).astype(int)
    for gap in gaps:
        for worse in np.linspace(0, 1 - gap, 12):
            better = min(worse + gap, 1)
            one, other = (binom.pmf(range(fresh + 1), fresh, mean) for mean in (worse, better))
            # P(X − Y ≥ d) at place d + fresh, for d from −fresh to fresh + 1.
            tail = np.append(np.convolve(one, other[::-1])[::-1].cumsum()[::-1], 0)
            yield (chances(first, worse, better) * np.where(again.all(axis=1), tail[needed], arm == 0)).sum()


@bernoulli_models
@pytest.mark.parametrize("split", ["late", "equal"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.4), (0.3, 0.1), (0.1, 0.05), (0.05, 0.01)])
def test_two_rounds_fail_with_at_most_delta_exactly(model, split, epsilon, delta):
    parameters = {"rewards": model, "start": 1, "split": split}
    gaps = (epsilon, 1.2 * epsilon, 2 * epsilon)
    assert max(exact_failures(SHARP(2, epsilon, delta, **parameters), gaps)) <= delta


@bernoulli_models
@pytest.mark.parametrize("planted", [Narrow, Hasty])
def test_two_rounds_with_a_planted_error_fail_more_often(model, planted):
    assert max(exact_failures(planted(2, 0.05, 0.01, rewards=model, start=1), [0.05])) > 0.01


BERNOULLI, GAUSSIAN = ebr.Bernoulli([0.2, 0.5, 0.9]), ebr.Gaussian([0.2, 0.5, 0.9], 0.5)


def first_round(algorithm, problem):
    return ebr.trace(algorithm, problem)["pulls"].iloc[0]


@pytest.mark.parametrize(
    ("problem", "asked", "used"),
    [
        (BERNOULLI, None, "bounded"),
        (GAUSSIAN, None, "Gaussian"),
        (BERNOULLI, "sub-Gaussian", "sub-Gaussian"),
        (GAUSSIAN, "sub-Gaussian", "sub-Gaussian"),
    ],
)
def test_the_rewards_are_what_the_caller_says_or_else_the_problem(problem, asked, used):
    by_hand = {"sub-Gaussian": 98, "Gaussian": 59, "bounded": 139}  # see the schedule by hand
    assert first_round(SHARP(2, 0.1, 0.05, rewards=asked), problem) == by_hand[used]


def test_rewards_of_which_nothing_is_said_are_sub_gaussian():
    assert next(SHARP(2, 0.1, 0.05).play(3)).tolist() == [[98, 98, 98]]


def test_bounded_rewards_are_refused_where_they_are_gaussian():
    with pytest.raises(ValueError, match=r"rewards must not be 'bounded' for Gaussian rewards"):
        ebr.simulate(SHARP(2, 0.1, 0.05, rewards="bounded"), GAUSSIAN, runs=1)


def test_gaussian_rewards_are_played_with_a_warning_where_they_are_bounded():
    with pytest.warns(UserWarning, match="not Gaussian: the algorithm's guarantee is void"):
        assert first_round(SHARP(2, 0.1, 0.05, rewards="Gaussian"), BERNOULLI) == 59
