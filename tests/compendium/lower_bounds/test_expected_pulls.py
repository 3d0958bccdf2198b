"""Costs on hard problems by hand; policies against simulation and closed forms."""

import math

import numpy as np
import pytest
from compendium.lower_bounds import counter_example, least_probability, near_optimal
from compendium.lower_bounds.partition_races import costs
from compendium.shared import cost_bounds
from oracles import Diary
from scipy.integrate import quad
from scipy.stats import norm

EPSILON, DELTA = 0.2, 0.1


def test_costs_tell_the_pulls_and_the_bounds_of_every_partition():
    table = costs([(2, 2)], EPSILON, DELTA, 20, 1, lambda *_: {"EBR": Diary(([30, 12],))})
    assert table["gamma"].tolist() == ["11", "22"]
    assert (table["pulls"] == 42).all()
    assert (table["error"] == 0).all()
    expected = [cost_bounds.partition_lower_bound((k, k), EPSILON, 2, DELTA) for k in (1, 2)]
    assert table["lower"].to_numpy() == pytest.approx(expected)
    printed = math.log(1 / (2.4 * DELTA)) * 0.5 * 2  # 2σ² log(1/2.4δ) Σ, σ = ½, two arms
    smallest = np.array([math.sqrt(EPSILON) + EPSILON, EPSILON])
    assert table["printed"].to_numpy() == pytest.approx(printed / smallest**2)


def test_errors_fall_with_the_gap_and_with_the_threshold_and_costs_with_the_gap():
    test = near_optimal.design(0.05, 4)
    for falling in (test.looks.wrong, test.cost):
        assert (np.diff([falling(gap) for gap in (0, 0.5, 1, 2, 4)]) < 0).all()
    wider = [test._replace(thresholds=tuple(k * a for a in test.thresholds)) for k in (0.5, 1, 2)]
    assert (np.diff([one.looks.wrong(1.0) for one in wider]) < 0).all()
    assert near_optimal.calibrated(wider[0], 0.05).thresholds == pytest.approx(test.thresholds)


def test_the_designs_are_near_the_best_of_their_kind():
    for key in ((0.15, 2, 0.0), (0.1, 3, 0.0)):
        looks, _ = near_optimal.DESIGNS[key]
        best = near_optimal.design(*key)
        for look in range(len(looks)):
            for factor in (0.97, 1.03):
                pulls = list(best.pulls)
                pulls[look] = round(factor * pulls[look])
                other = near_optimal.calibrated(best._replace(pulls=tuple(pulls)), key[0])
                assert other.cost(0) > best.cost(0)


def test_a_race_of_three_is_what_simulation_finds():
    race = near_optimal.RaceOfThree(1.0, 2.0, 0.7)
    means = np.array([1.0, 0.3, 0.0])
    returned, cost = race.play(tuple(means))
    assert returned.sum() == pytest.approx(1)
    generator = np.random.default_rng(3)
    first = generator.normal(size=(200_000, 3)) + means
    alive = first >= first.max(axis=1, keepdims=True) - 0.7
    last = np.where(alive, first + generator.normal(size=first.shape) + means, -np.inf)
    # Each of three shares of 200,000 is 0.006 off with probability below 1e-7. The mean has an sd of 1.
    assert np.bincount(last.argmax(axis=1)) / len(last) == pytest.approx(returned, abs=0.006)
    left = alive.sum(axis=1)
    assert 3 + np.where(left > 1, left, 0).mean() == pytest.approx(cost, abs=0.02)


@pytest.mark.parametrize(("n_arms", "digits"), [(3, 5), (1000, 200)])
def test_the_policy_that_confirms_its_leader_costs_and_errs_as_by_hand(n_arms, digits):
    gap, half = 0.5 ** (1 / 3), digits * math.log(10) + math.log(2)  # σ = ε = ½
    policy = counter_example.confirmation(n_arms, 0.5, gap, digits * math.log(10))
    assert policy.last == math.ceil((half + math.log(n_arms - 1)) / 0.5**2)
    margin = gap - 0.5 - 0.5 * math.sqrt(2 * half / policy.second)
    wrong = (n_arms - 1) * math.exp(-policy.first * gap**2)
    doubt = wrong + math.exp(-2 * policy.second * margin**2)
    reach = 2 * gap * math.sqrt(policy.first)
    leads = quad(lambda z: norm.pdf(z) * norm.cdf(z + reach) ** (n_arms - 1), -9, 9)[0]
    unsure = 1 - leads + norm.sf(2 * margin * math.sqrt(policy.second))
    for cost, more in ((policy.cost, doubt), (policy.gaussian_cost, unsure)):
        by_hand = n_arms * policy.first + policy.second + more * n_arms * policy.last
        assert cost == pytest.approx(by_hand, rel=1e-6)
    late = math.log(n_arms - 1) + norm.logsf(math.sqrt(policy.last / 2))
    assert policy.log_error == pytest.approx(np.logaddexp(norm.logsf(math.sqrt(2 * half)), late))
    assert policy.log_error < -digits * math.log(10)


def test_without_room_a_thousand_arms_cost_a_fifth_of_the_printed_bound():
    gap, log_term = 0.5 ** (1 / 3), 200 * math.log(10) - math.log(2.4)
    row = counter_example.without_room(1000, 200)
    assert row["gaussian"] < row["cost"] < 27_432
    assert row["printed"] == pytest.approx(0.5 * 1000 * log_term / (gap + 0.5) ** 2)
    assert row["cost"] < row["printed"] / 5
    assert row["second"] == pytest.approx(1000 * log_term / (8 * gap**2))  # σ²/2 = 1/8
    assert row["matched"] == pytest.approx(20 * 1000 * log_term / gap**2 / row["cost"])  # 80σ² = 20


@pytest.mark.parametrize("partner", [1.0, 1e4])
def test_a_stingy_test_reaches_the_least_probability_of_any_pac_algorithm(partner):
    delta, count = 0.1, 0.8
    test = least_probability.stingy(count * (0.5 / 0.002) ** 2 * (1 if partner > 1 else 2), delta, partner)
    assert test.looks.wrong(1.0) <= delta
    least = float(least_probability.least_reach(math.sqrt(count), delta))
    assert least <= test.looks.reached(1.0)[1] == pytest.approx(least, abs=1e-4)


@pytest.mark.parametrize("check", [least_probability.other_arms, least_probability.best_arm])
def test_the_other_arm_is_pulled_where_a_mean_of_a_sixteenth_of_epsilon_is_not_confirmed(check):
    # In units of ε: the mean is 1 above the value to rule out, its standard error 1/16, and δ/2 = 0.05.
    expected = norm.cdf(norm.isf(0.05) / 16, 1, 1 / 16)
    assert check().evidence[-1].value == pytest.approx(expected, rel=1e-6, abs=0)


def test_idle_with_twice_delta_is_the_most_for_two_arms():
    assert least_probability.most_idle(0.1) == pytest.approx(0.2)
    assert least_probability.most_idle(0.1, n_arms=5) == pytest.approx(0.125)


def test_events_of_a_sixth_each_happen_together_with_the_probability_of_the_extreme_law():
    # At least two of 24 events: one always happens, all with (4 − 1)/(24 − 1). The limit for many is 1/11.
    assert least_probability.together(24, 1 / 12) == pytest.approx(3 / 23)
    assert least_probability.together(10_000, 1 / 12) == pytest.approx(1 / 11, rel=1e-3)


def test_the_least_probability_of_a_count_by_hand():
    # δ = Φ(−1): √c = 0 leaves 1 − 2δ, √c = 1 leaves ½ − δ.
    delta = 0.15865525393145707
    assert least_probability.least_reach(0.0, delta) == pytest.approx(1 - 2 * delta)
    assert least_probability.least_reach(1.0, delta) == pytest.approx(0.5 - delta)
