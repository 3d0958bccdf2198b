"""Two-round policies against plain loops, random perturbations and Algorithm 1 itself."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from compendium.two_rounds import policies
from compendium.two_rounds.policies import Policy, best_policy, complexity, pac_policy, worst_ratio
from scipy.stats import binomtest, norm

import ebr

EPSILON, DELTA, cdf = 0.1, 0.05, NormalDist().cdf
PAIRS = [(40.0, 0.1), (90.0, 0.3), (90.0, 0.9), (250.0, 0.5)]  # n₁ and the share of δ spent on early stops


def cost_and_chance(policy, gap):
    n1, n2, a = policy
    chance = cdf((a - gap) / math.sqrt(2 / n1)) - cdf((-a - gap) / math.sqrt(2 / n1))
    return 2 * n1 + 2 * n2 * chance, chance


@pytest.mark.parametrize(("first", "spent"), PAIRS)
def test_a_pac_policy_errs_with_delta_at_epsilon_and_less_beyond(first, spent):
    policy = pac_policy(first, spent, EPSILON, DELTA)
    assert policy.error(EPSILON) == pytest.approx(DELTA, abs=1e-9)
    assert norm.cdf(-policy.threshold, EPSILON, math.sqrt(2 / first)) == pytest.approx(spent * DELTA)
    assert (np.diff([policy.error(gap) for gap in np.linspace(EPSILON, 0.9, 100)]) < 0).all()
    assert policy._replace(second=0.99 * policy.second).error(EPSILON) > DELTA  # n₂ is the least


def test_where_the_first_round_is_enough_there_is_no_second():
    enough = 2 * (norm.isf(DELTA) / EPSILON) ** 2  # Φ(−ε√(n/2)) = δ
    assert pac_policy(1.01 * enough, 0.5, EPSILON, DELTA).second < 1e-6
    assert enough < sum(pac_policy(0.99 * enough, 0.5, EPSILON, DELTA)[:2]) < 1.01 * enough
    assert pac_policy(1.0, 0.5, EPSILON, 0.6).second < 1e-6  # any guess is good enough


@pytest.mark.parametrize("short", [1e-9, 1e-6, 1e-3, 0.9])
@pytest.mark.parametrize("spent", [1e-9, 0.5, 1 - 1e-6])
def test_a_pac_policy_is_found_however_little_is_missing_or_left(short, spent):
    enough = 2 * (norm.isf(DELTA) / EPSILON) ** 2
    policy = pac_policy((1 - short) * enough, spent, EPSILON, DELTA)
    assert policy.error(EPSILON) == pytest.approx(DELTA, abs=1e-9)


def test_the_complexity_of_two_arms_by_hand():
    assert complexity(np.array([0.0, 0.2499, 0.25, 0.75]), 0.25) == pytest.approx([32, 32, 8, 2])


@pytest.mark.parametrize(("first", "spent"), PAIRS)
def test_the_worst_ratio_is_the_largest_in_a_loop_over_gaps(first, spent):
    policy = pac_policy(first, spent, EPSILON, DELTA)
    gaps = [k / 20_000 for k in range(10_001)]
    needed = complexity(gaps, EPSILON)
    expected = max(cost_and_chance(policy, gap)[0] / need for gap, need in zip(gaps, needed, strict=True))
    assert worst_ratio(policy, EPSILON) == pytest.approx(expected, rel=1e-3)
    for chance in (0.05, 0.5, 0.9):
        seconds = (2 * policy.second * (cost_and_chance(policy, gap)[1] >= chance) for gap in gaps)
        expected = max((2 * first + more) / need for more, need in zip(seconds, needed, strict=True))
        assert worst_ratio(policy, EPSILON, chance) == pytest.approx(expected, rel=4e-3)


def test_no_policy_near_the_best_is_better():
    (policy, ratio), generator = best_policy(EPSILON, DELTA), np.random.default_rng(9)  # a fixed seed
    assert (worst_ratio(policy, EPSILON), policy.error(EPSILON)) == pytest.approx((ratio, DELTA), rel=1e-9)
    spent = cdf((-policy.threshold - EPSILON) * math.sqrt(policy.first / 2)) / DELTA
    for size in (0.03, 0.3, 2.0):
        for first, odds in np.exp(size * generator.standard_normal((100, 2))):
            share = 1 / (1 + odds * (1 / spent - 1))
            other = pac_policy(first * policy.first, share, EPSILON, DELTA)
            assert worst_ratio(other, EPSILON) > 0.999 * ratio


@pytest.mark.parametrize("deadline", [1, 2, 3, 7])
def test_algorithm_1_stops_two_deviations_less_its_slack_apart(deadline):
    race = ebr.ElasticBatchRacing(deadline, 0.1, 0.05, sigma=1.0)
    pulls, apart = policies.elastic_reach(deadline, 0.1, 0.05)
    assert np.ceil(pulls).tolist() == race.pulls_by_round(2).tolist()
    assert apart.tolist() == pytest.approx((2 * race.deviation(pulls, 2) - race.slack(2)).tolist(), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.1), (0.1, 0.02)])
def test_algorithm_1_is_the_policy_up_to_ceilings(epsilon, delta):
    race, policy = ebr.ElasticBatchRacing(2, epsilon, delta, sigma=1.0), policies.ebr_policy(epsilon, delta)
    b1, b2 = race.pulls_by_round(2)
    assert [b1, b2] == np.ceil(np.cumsum(policy[:2])).tolist()
    stop = 2 * float(race.deviation(policy.first, 2)) - race.slack(2)
    assert policy.threshold == pytest.approx(stop, rel=1e-12)
    assert policy.error(epsilon) < policies.sharp_policy(epsilon, delta).error(epsilon) < delta
    exact = Policy(b1, b2 - b1, 2 * float(race.deviation(b1, 2)) - race.slack(2))
    for gap in (0.8 * stop, stop, 1.1 * stop):
        pulls = ebr.simulate(race, ebr.Gaussian([0.5, 0.5 - gap], 1.0), 20_000, seed=10).pulls
        # Pulls take two values, so their mean is a proportion. Three exact tests for two (ε, δ), at 1e-6/6.
        assert set(pulls) == {2 * b1, 2 * b2}
        more, chance = int((pulls == 2 * b2).sum()), (exact.cost(gap) / 2 - b1) / (b2 - b1)
        assert binomtest(more, 20_000, chance).pvalue > 1e-6 / 6
        assert binomtest(more, 20_000, 0.9 * chance).pvalue < 1e-6  # planted
        assert exact.cost(gap) == pytest.approx(float(policy.cost(gap)), rel=1e-3)
