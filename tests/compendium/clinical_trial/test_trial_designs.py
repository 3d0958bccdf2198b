"""The trialists' designs: published constants, plain loops over single trials, and simulated errors."""

import math

import numpy as np
import pytest
from compendium.clinical_trial.trial_designs import (
    DropTheLosers,
    StagedIntervals,
    critical_value,
    keeps_the_best,
)
from scipy.stats import norm

import ebr
from ebr.algorithms.game import Algorithm, drive

NEARLY_ZERO = 1e-9


def test_the_designs_are_algorithms():
    for design in (StagedIntervals(3, 0.1, 0.1), DropTheLosers(0.1, 0.1)):
        assert isinstance(design, Algorithm)
        assert np.isnan(design.deviation(np.array([5]), 3)).all()
    with pytest.raises(ValueError, match="shape must be a finite number above 0"):
        StagedIntervals(3, 0.1, 0.1, 0)


def test_one_look_at_two_arms_is_the_normal_quantile():
    assert critical_value(2, 1, 0.05, 0.5) == pytest.approx(norm.ppf(0.95), abs=1e-3)


def test_one_look_at_several_arms_is_dunnetts_and_bechhofers_constant():
    # Bechhofer's table for k = 5 and P* = 0.95: 3.0552, of √n ε/σ, which is √2 C.
    assert math.sqrt(2) * critical_value(5, 1, 0.05, 0.5) == pytest.approx(3.0552, abs=2e-3)


@pytest.mark.parametrize(
    ("shape", "published"), [(NEARLY_ZERO, 2.040), (0.5, 2.413)]
)  # two-sided α = 0.05, K = 5: Jennison and Turnbull 1999, tables 2.3 and 2.1; one-sided at 0.025
def test_several_looks_at_two_arms_are_the_published_boundaries(shape, published):
    assert critical_value(2, 5, 0.025, shape) == pytest.approx(published, abs=5e-3)


def test_the_probability_of_keeping_the_best_is_that_of_simulated_normal_trials():
    critical = np.array([2.8, 2.2, 1.9])
    sums = np.random.default_rng(1).standard_normal((40000, 3, 4)).cumsum(axis=1)
    leads = (sums[:, :, 1:] - sums[:, :, :1]) / np.sqrt(2 * np.arange(1, 4))[:, None]
    kept = (leads <= critical[:, None]).all(axis=(1, 2)).mean()
    assert keeps_the_best(4, critical) == pytest.approx(kept, abs=5 * math.sqrt(kept * (1 - kept) / 40000))


def test_the_last_look_is_as_precise_as_epsilon():
    design = StagedIntervals(4, 0.1, 0.1, 0.5)
    critical, looks = design.critical(3), design.looks(3)
    assert len(set(np.diff(looks, prepend=0))) <= 2  # equally far apart, but for rounding
    assert critical[-1] * math.sqrt(2 * 0.25 / looks[-1]) <= 0.1
    assert critical[-1] * math.sqrt(2 * 0.25 / (looks[-1] - 1)) > 0.1
    assert np.ptp(critical) == pytest.approx(0)
    falling = StagedIntervals(4, 0.1, 0.1, NEARLY_ZERO).critical(3)
    assert falling / falling[-1] == pytest.approx(np.sqrt([4, 2, 4 / 3, 1]))


def staged_by_hand(design, responses):
    """One trial of `StagedIntervals`, subject by subject: the arm, and how often each was pulled."""
    n_arms = len(responses)
    alive, pulls = list(range(n_arms)), [0] * n_arms
    for critical, target in zip(design.critical(n_arms), design.looks(n_arms), strict=True):
        for arm in alive:
            pulls[arm] = int(target)
        sums = {arm: sum(responses[arm][:target]) for arm in alive}
        leader = max(alive, key=lambda arm: (sums[arm], -arm))
        variance = {a: (sums[a] + 1) * (target - sums[a] + 1) / (target + 2) ** 2 / target for a in alive}
        behind, reach = {}, {}
        for arm in alive:
            behind[arm] = (sums[leader] - sums[arm]) / target
            reach[arm] = critical * math.sqrt(variance[arm] + variance[leader])
        others = [arm for arm in alive if arm != leader]
        if all(behind[arm] >= reach[arm] - design.epsilon for arm in others):
            break
        alive = [leader] + [arm for arm in others if behind[arm] <= reach[arm]]
        alive.sort()
    return leader, pulls


def losers_by_hand(design, responses):
    """One trial of `DropTheLosers` without ties."""
    n_arms, each = len(responses), design.subjects(len(responses))
    alive, pulls = list(range(n_arms)), [0] * n_arms
    for _ in range(n_arms - 1):
        for arm in alive:
            pulls[arm] += each
        alive.remove(min(alive, key=lambda arm: sum(responses[arm][: pulls[arm]])))
    return alive[0], pulls


@pytest.mark.parametrize(
    ("design", "by_hand"),
    [
        (StagedIntervals(4, 0.15, 0.1, NEARLY_ZERO), staged_by_hand),
        (StagedIntervals(3, 0.15, 0.1, 0.5), staged_by_hand),
        (DropTheLosers(0.15, 0.1), losers_by_hand),
    ],
)
def test_a_trial_is_the_one_by_hand(design, by_hand):
    generator, trials = np.random.default_rng(3), 60
    responses = generator.binomial(1, [[0.4], [0.5], [0.5], [0.65]], (trials, 4, 600)).astype(float)
    scale = 1
    if isinstance(design, DropTheLosers):  # rewards that cannot tie, and too large for lots to matter
        responses, scale = responses + generator.random(responses.shape) * 1e-4, 1e6
    taken = np.zeros((trials, 4), dtype=int)

    def respond(asked):
        nonlocal taken
        before, taken = taken, taken + asked
        sums = [[responses[r, a, before[r, a] : taken[r, a]].sum() for a in range(4)] for r in range(trials)]
        return scale * np.array(sums)

    arms = drive(design.play(4, trials, generator=np.random.default_rng(1)), respond)
    expected = [by_hand(design, responses[r].tolist()) for r in range(trials)]
    assert arms.tolist() == [arm for arm, _ in expected]
    assert taken.tolist() == [pulls for _, pulls in expected]
    assert len({tuple(pulls) for _, pulls in expected}) > 5


@pytest.mark.parametrize(
    "design", [StagedIntervals(4, 0.1, 0.1, 0.5), StagedIntervals(4, 0.1, 0.1, 1e-9), DropTheLosers(0.1, 0.1)]
)
def test_the_errors_are_near_delta_where_all_others_are_epsilon_worse(design):
    for best in (0.55, 0.8):
        found = ebr.simulate(design, ebr.Bernoulli([best - 0.1001] * 3 + [best]), 20000, seed=2)
        error = np.mean(found.arm != 3)
        assert error < 0.1 + 5 * math.sqrt(0.09 / 20000)
        if best == 0.55:
            assert error > 0.05  # calibrated, not merely safe


def test_drop_the_losers_drops_one_arm_a_stage():
    found = ebr.simulate(DropTheLosers(0.1, 0.1), ebr.Bernoulli([0.3, 0.5, 0.6, 0.4]), 50, per_arm=True)
    each = DropTheLosers(0.1, 0.1).subjects(4)
    assert (np.sort(found.by_arm()[0], axis=1) == each * np.array([1, 2, 3, 3])).all()
    assert (found.rounds == 3).all()
