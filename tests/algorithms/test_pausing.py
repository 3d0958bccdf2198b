"""Pausing EBR: races against a plain loop, exact failure probabilities, planted errors."""

import math
from functools import reduce
from itertools import product

import numpy as np
import pytest
from oracles import Rewards, TooCloseError, pausing_race, pausing_schedule, play
from scipy.stats import binom

from ebr.algorithms import pausing
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.models import REWARDS
from ebr.theory import pairs, selection

every_model = pytest.mark.parametrize("model", REWARDS)


def random_race(model, generator):
    """Random parameters of a race, and rewards of three replicates."""
    n_arms, unit = generator.integers(2, 9), model in ("Bernoulli", "bounded")
    parameters = (
        int(generator.choice([1, 2, 3, 4, 5, 6, 7, 8, 8, 8])),
        float(generator.choice([0.03, 0.05, 0.1, 0.1, 0.2, 0.3, 0.7])),
        float(generator.choice([0.01, 0.05, 0.2, 0.9])),
        0.5 if unit else float(generator.choice([0.2, 0.5, 1])),
        model,
        float(generator.choice([0.5, 1, 0.2])),
        float(generator.choice([1, 3, 3, 10])),
    )
    means = generator.choice([0.02, 0.3, 0.5, 0.9, 1]) + generator.choice(
        [0, 0.02, -0.05, -0.1, -0.3], n_arms
    )
    means, shape = np.clip(means, 0, 1)[:, None], (3, n_arms, 97)
    if model == "Bernoulli" or generator.random() < 0.5:  # many ties
        return parameters, (generator.random(shape) < means).astype(int)
    noise = generator.normal(means, 0.3 if unit else parameters[3], shape)
    return parameters, np.clip(noise, 0, 1) if unit else noise


def races(model, number, seed):
    """Check that random races are those of the plain loop; yield the number of rounds of each replicate."""
    generator = np.random.default_rng([seed, REWARDS.index(model)])
    for _ in range(number):
        parameters, table = random_race(model, generator)
        asked, arm = play(PausingElasticBatchRacing(*parameters), Rewards(table))
        for replicate, rewards in enumerate(table.tolist()):
            mine = [ask[replicate].tolist() for ask in asked if ask[replicate].any()]
            try:
                expected = pausing_race(rewards, *parameters)
            except TooCloseError:  # in one of some thousand rounds
                continue
            assert (mine, arm[replicate]) == expected, parameters
            yield len(mine)


@pytest.mark.parametrize(
    ("model", "number"), [("Bernoulli", 60), ("bounded", 150), ("Gaussian", 150), ("sub-Gaussian", 150)]
)
def test_every_replicate_is_the_plain_loop(model, number):
    assert sum(races(model, number, seed=1)) > 5 * number


@every_model
def test_the_schedule_is_the_plain_one(model):
    for n_arms, deadline, epsilon, delta in product((2, 3, 9), (1, 2, 3, 15), (0.1, 0.3), (0.01, 0.5)):
        race = PausingElasticBatchRacing(deadline, epsilon, delta, rewards=model)
        counts, levels, ahead = pausing_schedule(n_arms, deadline, epsilon, delta, 0.5, model, 0.5, 3.0)
        tests = pausing._Tests(race, n_arms, model)
        assert tests.counts.tolist() == counts, (race, n_arms)
        assert race.ahead == ahead
        for pair, level in levels.items():
            assert tests.miss[pair] == pytest.approx(level, rel=1e-12)
        assert sum(levels.values()) * (n_arms - 1) <= delta * (1 + 1e-12)


class Paths:
    """All paths of n arms' sums along the grid, one replicate each."""

    def __init__(self, counts, n_arms):
        self.counts, self.fresh = np.array(counts), np.diff(counts)
        steps = np.indices(self.fresh + 1).reshape(len(self.fresh), -1).T
        self.steps = steps
        sums = np.concatenate([np.zeros((len(steps), 1)), steps.cumsum(axis=1)], axis=1)
        chosen = np.indices((len(steps),) * n_arms).reshape(n_arms, -1).T
        self.sums, self.shape = sums[chosen], chosen.shape
        self.used = np.zeros(self.shape, dtype=np.int64)

    def pay(self, pulls):
        before, self.used = self.used, self.used + pulls
        stages = (np.searchsorted(self.counts, used)[:, :, None] for used in (self.used, before))
        after, known = (np.take_along_axis(self.sums, stage, axis=2)[:, :, 0] for stage in stages)
        return after - known

    def chances(self, means):
        """The probability of each path of one arm, one row per mean."""
        return binom.pmf(self.steps, self.fresh, means[:, None, None]).prod(axis=2)


def failures(paths, arm, gaps):
    """The exact probability that an arm with the gap ε, the largest one, wins, for many means.

    The best arm comes last, so ties go against it.
    """
    epsilon = max(gaps)
    bad = np.isin(arm, [i for i, gap in enumerate(gaps) if gap == epsilon]).astype(float)
    worst = np.array((0, 1e-6, 0.003, 0.02, 0.06, *np.linspace(0.1, 0.9, 33), 0.97, 0.995, 1))
    laws = [paths.chances(np.clip(worst * (1 - epsilon) + epsilon - gap, 0, 1)) for gap in gaps[::-1]]
    for chances in zip(*laws, strict=True):
        yield float(reduce(np.matmul, chances, bad))


GAPS = {2: [(1, 0)], 3: [(1, 1, 0), (1, 0.5, 0), (1, 0, 0)]}  # in units of ε


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_coins_that_share_their_sums_are_told_apart_as_if_each_were_alone(shift):
    generator = np.random.default_rng(2)
    tests = pausing._Tests(PausingElasticBatchRacing(4, 0.1, 0.3), 5, "Bernoulli")
    for high in range(1, tests.top + 1):
        arms = pausing.Paces(5, 200)
        arms.stage = generator.integers(1, high + 1, size=(200, 5))
        arms.sums = generator.integers(0, 8, size=(200, 5)) * tests.counts[arms.stage] / 8
        best, which = (
            generator.integers(0, 8, size=200) * tests.counts[high] / 8,
            arms.stage < generator.integers(5),
        )
        found = tests.refuted(best, high, arms, which, shift)
        for arm in range(5):
            stage, sums = arms.stage[:, arm], np.ceil(arms.sums[:, arm])
            every = pairs.Pairs(best, np.full(200, tests.counts[high]), sums, tests.counts[stage])
            alone = pairs.binomial_refuted(every, shift, tests.miss[high, stage])
            assert (found[:, arm] == (alone & which[:, arm])).all()


def largest_failure(model, n_arms, deadline, epsilon, delta, start):
    """The largest failure probability over many means; None if there are too many paths."""
    race = PausingElasticBatchRacing(deadline, epsilon, delta, rewards=model, start=start)
    counts = pausing._Tests(race, n_arms, model).counts
    if math.prod(np.diff(counts) + 1) ** n_arms > 150_000:
        return None
    paths = Paths(counts, n_arms)
    _, arm = play(race, paths)
    arm = arm.reshape((len(paths.steps),) * n_arms)
    return max(max(failures(paths, arm, [gap * epsilon for gap in gaps])) for gaps in GAPS[n_arms])


EXACT = [  # n, T, ε, δ, start
    *product((2,), (1,), (0.05, 0.1, 0.3, 0.5), (0.05, 0.3, 0.5, 0.9), (0.5,)),
    *product((2,), (2,), (0.3, 0.5), (0.05, 0.2, 0.5, 0.9), (0.5, 1)),
    *product((2,), (2,), (0.1,), (0.7, 0.9), (0.5, 1)),
    *product((2,), (3,), (0.3, 0.5), (0.3, 0.5, 0.9), (0.5, 1)),
    *product((3,), (1, 2), (0.3, 0.5, 0.7), (0.2, 0.5, 0.9), (0.5, 1)),
    *product((3,), (3,), (0.5, 0.7), (0.5, 0.9), (1,)),
]


# For each model, bounds on the largest failure probability over δ, for two Bernoulli arms with T = 1 and 2.
@pytest.mark.parametrize(
    ("model", "one", "two"), [("Bernoulli", 0.99, 0.5), ("bounded", 0.4, 0.1), ("sub-Gaussian", 0.4, 0.1)]
)
def test_few_pulls_fail_with_at_most_delta_exactly_and_a_visible_part_of_it_is_paid(model, one, two):
    paid = {}
    for case in EXACT:
        failure = largest_failure(model, *case)
        if failure is not None:
            assert failure <= case[3] * (1 + 1e-9), case
            paid[case[:2]] = max(paid.get(case[:2], 0), failure / case[3])
    assert set(paid) == {(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)}
    assert paid[2, 1] > one
    assert paid[2, 2] > two


SHARES = PausingElasticBatchRacing.shares
REFUTED, SIGN_COUNT, LEAD = pausing._Tests.refuted, pairs.sign_count, pausing.Paces.lead
BECHHOFER = selection.bechhofer_count


def no_share_for_each_arm(self):
    """δ in place of δ/(n − 1), for three arms."""
    return 2 * SHARES(self)


def sign_of_means(self, *seen):
    return np.ones_like(REFUTED(self, *seen))


def certificate_of_two_epsilon(self, *seen):
    return REFUTED(self, *seen[:-1], 2 * seen[-1])


@pytest.mark.parametrize(
    ("where", "name", "planted", "case"),
    [
        (selection, "sign_count", lambda epsilon, miss: SIGN_COUNT(2 * epsilon, miss), (2, 2, 0.3, 0.05, 1)),
        (selection, "sign_count", lambda epsilon, miss: SIGN_COUNT(epsilon, 4 * miss), (2, 2, 0.3, 0.2, 1)),
        (selection, "sign_count", lambda *design: SIGN_COUNT(*design) - 1, (2, 1, 0.1, 0.05, 0.5)),
        (pausing._Tests, "refuted", sign_of_means, (2, 2, 0.3, 0.05, 1)),
        (pausing._Tests, "refuted", certificate_of_two_epsilon, (2, 2, 0.3, 0.05, 0.5)),
    ],
)
def test_with_a_planted_error_it_fails_more_often_than_with_delta(monkeypatch, where, name, planted, case):
    assert largest_failure("Bernoulli", *case) <= case[3]
    monkeypatch.setattr(where, name, planted)
    assert largest_failure("Bernoulli", *case) > case[3]


def equal_lags(self):
    lags = np.tril(np.ones((self.deadline, self.deadline)))
    return lags / lags.sum(axis=1, keepdims=True) * SHARES(self).sum(axis=1, keepdims=True)


def any_certifier(self, stage):
    """An arm that one leader has certified counts as certified by every leader."""
    LEAD(self, stage)
    self.open &= self.certifier == -1


def dropped_when_certified(self, *seen):
    return REFUTED(self, *seen[:-1], self.race.epsilon)


def never_dropped(self, *seen):
    return REFUTED(self, *seen) & (seen[-1] > 0)


@pytest.mark.parametrize(
    ("where", "name", "planted"),
    [
        (PausingElasticBatchRacing, "shares", no_share_for_each_arm),
        (PausingElasticBatchRacing, "shares", equal_lags),
        (PausingElasticBatchRacing, "ahead", 0),
        (pausing._Tests, "refuted", dropped_when_certified),
        (pausing._Tests, "refuted", never_dropped),
        (pausing._Tests, "uncertified", lambda self, arms, final: np.zeros_like(final)),
        (pausing.Paces, "lead", any_certifier),
        (selection, "bechhofer_count", lambda n, *design: BECHHOFER(2, *design)),
        (selection, "sign_count", lambda epsilon, miss: SIGN_COUNT(epsilon, miss / 2)),
    ],
)
def test_with_a_planted_error_it_is_not_the_plain_loop(monkeypatch, where, name, planted):
    monkeypatch.setattr(where, name, planted)
    model = "Bernoulli" if name == "sign_count" else "Gaussian"
    with pytest.raises(AssertionError):
        sum(races(model, 250, seed=3))
