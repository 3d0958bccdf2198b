"""The trialists' designs: published constants, plain loops over single trials, and simulated errors."""

import math
from itertools import product

import numpy as np
import pytest
from compendium.clinical_trial.exact_selection import slippage_error
from compendium.clinical_trial.trial_designs import (
    DropTheLosers,
    ExactFixedDesign,
    GeometricIntervals,
    SequentialElimination,
    StagedIntervals,
    beside_rpact,
    critical_value,
    keeps_the_best,
)
from scipy.stats import binom, norm

import ebr
from ebr.algorithms.game import Algorithm, drive

NEARLY_ZERO = 1e-9


def test_the_designs_are_algorithms():
    staged = (StagedIntervals(3, 0.1, 0.1), GeometricIntervals(3, 0.1, 0.1))
    for design in (
        ExactFixedDesign(0.1, 0.1),
        *staged,
        DropTheLosers(0.1, 0.1),
        SequentialElimination(0.1, 0.1),
    ):
        assert isinstance(design, Algorithm)
        assert np.isnan(design.deviation(np.array([5]), 3)).all()
    with pytest.raises(ValueError, match="shape must be a finite number above 0"):
        StagedIntervals(3, 0.1, 0.1, 0)
    with pytest.raises(ValueError, match="ratio must be a finite number above 0"):
        GeometricIntervals(3, 0.1, 0.1, ratio=-1)


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
    # A fair coin: five standard deviations are exceeded once in a million tests.
    assert abs(np.mean(chosen == 0) - 0.5) < 5 * 0.5 / np.sqrt(4000)
    assert set(chosen.tolist()) == {0, 1}


def test_one_look_is_the_normal_quantile_or_bechhofers_constant():
    assert critical_value(2, (1.0,), 0.05, 0.5) == pytest.approx(norm.ppf(0.95), abs=1e-3)
    # Bechhofer's table for k = 5 and P* = 0.95 has √n ε/σ = 3.0552, which is √2 C.
    assert math.sqrt(2) * critical_value(5, (1.0,), 0.05, 0.5) == pytest.approx(3.0552, abs=2e-3)


def test_boundaries_of_two_arms_are_those_of_rpact():
    table = beside_rpact()
    assert len(table) == 6
    assert table["ours"].to_numpy() == pytest.approx(table["rpact"].to_numpy(), abs=1e-3)


@pytest.mark.parametrize("looks", [(1, 2, 3), (4, 6, 9)])
def test_the_probability_of_keeping_the_best_is_that_of_simulated_normal_trials(looks):
    critical, counts = np.array([2.8, 2.2, 1.9]), np.array(looks, dtype=float)
    steps = np.sqrt(np.diff(counts, prepend=0))[:, None]
    sums = (np.random.default_rng(1).standard_normal((40000, 3, 4)) * steps).cumsum(axis=1)
    leads = (sums[:, :, 1:] - sums[:, :, :1]) / np.sqrt(2 * counts)[:, None]
    kept = (leads <= critical[:, None]).all(axis=(1, 2)).mean()
    found = keeps_the_best(4, critical, counts / counts[-1])
    # Five standard deviations are exceeded once in a million tests.
    assert found == pytest.approx(kept, abs=5 * math.sqrt(kept * (1 - kept) / 40000))


def test_the_last_look_is_as_precise_as_epsilon():
    design = StagedIntervals(4, 0.1, 0.1, 0.5)
    critical, looks = design.critical(3), design.looks(3)
    assert len(set(np.diff(looks, prepend=0))) <= 2  # equal steps up to rounding
    assert critical[-1] * math.sqrt(2 * 0.25 / looks[-1]) <= 0.1
    assert critical[-1] * math.sqrt(2 * 0.25 / (looks[-1] - 1)) > 0.1
    assert np.ptp(critical) == pytest.approx(0)
    falling = StagedIntervals(4, 0.1, 0.1, NEARLY_ZERO).critical(3)
    assert falling / falling[-1] == pytest.approx(np.sqrt([4, 2, 4 / 3, 1]))


def test_growing_looks_grow_by_the_ratio_and_have_a_constant_of_their_own():
    design = GeometricIntervals(4, 0.1, 0.1, 0.5, ratio=2)
    critical, looks = design.critical(3), design.looks(3)
    assert looks == pytest.approx(looks[-1] * np.array([0.125, 0.25, 0.5, 1]), abs=1)
    assert keeps_the_best(3, critical, np.array([0.125, 0.25, 0.5, 1])) == pytest.approx(0.9, abs=1e-3)
    assert critical[-1] * math.sqrt(2 * 0.25 / looks[-1]) <= 0.1


def test_an_arm_leaves_when_it_is_r_responses_behind_and_the_least_r_is_taken():
    for n_arms, epsilon, delta in ((2, 0.1, 0.1), (5, 0.05, 0.05), (9, 0.3, 0.01)):
        ratio = (0.5 + epsilon / 2) * (0.5 + epsilon / 2) / (0.5 - epsilon / 2) ** 2
        bounds = [1 / (1 + (n_arms - 1) * ratio**-r) for r in range(200)]
        assert SequentialElimination(epsilon, delta).behind(n_arms) == next(
            r for r, bound in enumerate(bounds) if bound >= 1 - delta
        )


def test_of_two_arms_the_best_wins_as_the_gambler_does():
    design = SequentialElimination(0.2, 0.3)  # r = 2
    found = ebr.simulate(design, ebr.Bernoulli([0.3, 0.6]), 40000, seed=1)
    won = 1 / (1 + ((0.3 / 0.7) / (0.6 / 0.4)) ** design.behind(2))
    assert abs(np.mean(found.arm == 1) - won) < 5 * math.sqrt(won * (1 - won) / 40000)


def staged_by_hand(design, responses):
    """One trial of `StagedIntervals`: the arm, and the pulls of each."""
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


def eliminated_by_hand(design, responses):
    """One trial of `SequentialElimination`, one subject per survivor at a time."""
    n_arms, most = len(responses), design.behind(len(responses))
    alive, sums, pulls = list(range(n_arms)), [0] * n_arms, [0] * n_arms
    while len(alive) > 1:
        for arm in alive:
            sums[arm] += responses[arm][pulls[arm]]
            pulls[arm] += 1
        top = max(sums[arm] for arm in alive)
        alive = [arm for arm in alive if top - sums[arm] < most]
    return alive[0], pulls


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
        (GeometricIntervals(4, 0.15, 0.1, 0.5), staged_by_hand),
        (SequentialElimination(0.15, 0.1), eliminated_by_hand),
        (DropTheLosers(0.15, 0.1), losers_by_hand),
    ],
)
def test_a_trial_is_the_one_by_hand(design, by_hand):
    generator, trials = np.random.default_rng(3), 60
    responses = generator.binomial(1, [[0.4], [0.5], [0.5], [0.65]], (trials, 4, 600)).astype(float)
    scale = 1
    if isinstance(design, DropTheLosers):  # no ties, and rewards too large for lots to matter
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
