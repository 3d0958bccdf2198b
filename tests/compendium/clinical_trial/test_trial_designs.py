"""The trialists' designs: published constants, plain loops over single trials, and simulated errors."""

import math
from itertools import product

import numpy as np
import pytest
from compendium.clinical_trial.trial_designs import (
    DropTheLosers,
    ExactFixedDesign,
    StagedIntervals,
    critical_value,
    keeps_the_best,
)
from scipy.stats import binom, norm

import ebr
from ebr.algorithms.game import Algorithm, drive
from ebr.theory.selection import slippage_error

NEARLY_ZERO = 1e-9


def test_the_designs_are_algorithms():
    for design in (ExactFixedDesign(0.1, 0.1), StagedIntervals(3, 0.1, 0.1), DropTheLosers(0.1, 0.1)):
        assert isinstance(design, Algorithm)
        assert np.isnan(design.deviation(np.array([5]), 3)).all()
    with pytest.raises(ValueError, match="shape must be a finite number above 0"):
        StagedIntervals(3, 0.1, 0.1, 0)


def test_all_others_just_epsilon_worse_is_the_worst_of_all_truths():
    (worst,) = slippage_error(4, np.array([0.6]), np.array([0.4]), 3)
    for others in product((0.1, 0.4, 0.45, 0.6), repeat=2):
        rates, error = [*others, 0.6], 0.0
        chances = [binom.pmf(range(5), 4, rate) for rate in rates]
        for table in product(range(5), repeat=3):
            top = [i for i, x in enumerate(table) if x == max(table)]
            chance = math.prod(chances[i][x] for i, x in enumerate(table))
            error += chance * sum(rates[i] <= 0.4 for i in top) / len(top)
        assert error <= worst + 1e-12


def test_the_fixed_design_breaks_ties_by_lot_and_errs_as_often_as_is_proved():
    design = ExactFixedDesign(0.1, 0.1)
    found = ebr.simulate(design, ebr.Bernoulli([0.45, 0.45, 0.45, 0.55]), 20000, seed=1)
    (exact,) = slippage_error(design.subjects(4), np.array([0.55]), np.array([0.45]), 4)
    assert abs(np.mean(found.arm != 3) - exact) < 5 * np.sqrt(exact * (1 - exact) / 20000)
    assert exact <= 0.1
    chosen = drive(
        design.play(3, 4000, generator=np.random.default_rng(1)),
        lambda pulls: np.tile([2.0, 2.0, 1.0], (4000, 1)),
    )
    # A fair coin; five standard deviations: wrong by chance once in a million.
    assert abs(np.mean(chosen == 0) - 0.5) < 5 * 0.5 / np.sqrt(4000)
    assert set(chosen.tolist()) == {0, 1}


def test_one_look_is_the_normal_quantile_or_bechhofers_constant():
    assert critical_value(2, 1, 0.05, 0.5) == pytest.approx(norm.ppf(0.95), abs=1e-3)
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


@pytest.mark.parametrize("design", [StagedIntervals(4, 0.1, 0.1, 0.5), DropTheLosers(0.1, 0.1)])
def test_the_errors_are_near_delta_where_all_others_are_epsilon_worse(design):
    for best in (0.55, 0.8):
        found = ebr.simulate(design, ebr.Bernoulli([best - 0.1001] * 3 + [best]), 20000, seed=2)
        error = np.mean(found.arm != 3)
        assert error < 0.1 + 5 * math.sqrt(0.09 / 20000)
        if best == 0.55:
            assert error > 0.05  # calibrated, not merely safe
