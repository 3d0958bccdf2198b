"""Staged tests against policies of notebook 05 and plain simulation; the limit by another formula."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from compendium.failure_probability.exact_failures import looks
from compendium.shared.walks import Looks
from compendium.the_price_of_a_deadline import (
    any_algorithm,
    deadline_tables,
    raised_probability,
    staged_tests,
)
from compendium.the_price_of_a_deadline.deadline_tables import worst_cost
from compendium.two_rounds.policies import Policy, pac_policy
from scipy.stats import binomtest, invgauss, norm

import ebr

SHARP = ebr.SharpElasticBatchRacing(3, 0.1, 0.05, 1.0, "Gaussian")
POLICY = pac_policy(80.0, 0.5, 0.1, 0.05)


def one(policy):
    return ((1.0, policy),)


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("policy", [POLICY, Policy(12, 40, 0.3), Policy(50, 5, 1.5)])
def test_two_stages_are_the_policy(policy, gap):
    looks = staged_tests.from_policy(policy)
    assert looks.reached(gap)[1] == pytest.approx(float(policy.continues(gap)), abs=1e-12)
    assert looks.wrong(gap) == pytest.approx(policy.error(gap), abs=1e-10)
    assert staged_tests.cost(one(looks), gap) == pytest.approx(float(policy.cost(gap)), rel=1e-10)


def test_events_are_those_of_draws_one_by_one():
    # Six exact tests at 1e-6/6: correct integrals fail with probability at most 1e-6.
    lopsided = Looks(np.array([7.5, 22.5, 50.0]), np.array([3.0, 15.0]), np.array([-2.0, -4.5]))
    other = Looks(np.array([30.0]), np.zeros(0))
    mixture, gap, runs = ((0.7, lopsided), (0.3, other)), 0.2, 20_000
    thresholds = np.array([125.0, 95.0, 150.0])
    generator, counts, wrong, longer = np.random.default_rng(3), np.zeros(4, dtype=int), 0, 0
    for _ in range(runs):
        looks = lopsided if generator.random() < 0.7 else other
        before, y, path = 0.0, 0.0, []
        for t, time in enumerate(looks.times):
            y += generator.normal((time - before) * gap, math.sqrt(time - before))
            before = time
            path.append(4 * time)
            if t < len(looks.high) and not looks.lowest[t] <= y <= looks.high[t]:
                break
        path += [path[-1]] * (3 - len(path))
        counts[next((t for t in range(3) if path[t] >= thresholds[t]), 3)] += 1
        wrong += y < 0
        longer += path[-1] >= 150
    chances = staged_tests.crossings(mixture, thresholds, gap)
    errs = sum(weight * looks.wrong(gap) for weight, looks in mixture)
    long = float(staged_tests.long(mixture, np.array([150.0]), gap)[0])
    for seen, chance in zip([*counts[:3], wrong, longer], [*chances, errs, long], strict=True):
        assert binomtest(int(seen), runs, float(chance)).pvalue > 1e-6 / 6
        if chance > 0:
            assert binomtest(int(seen), runs, float(1.2 * chance)).pvalue < 1e-6  # planted
    assert staged_tests.error(mixture, gap) >= errs


def test_steps_are_equalities_where_they_should_be():
    table = any_algorithm.steps(any_algorithm.pair_policies(0.05, 0.02), 0.05)
    margin = table.set_index(["policy", "step"])["margin"]
    assert margin.min() == 0
    assert margin["one round", "PAC: q ≥ P_0(S_T ≤ M)"] == 0
    assert margin["stops on one side", "Neyman, Pearson: P_d(A_t)"] == 0
    assert margin["two rounds, one n₂", "Neyman, Pearson: P_d(A_t)"] > 0


@pytest.mark.parametrize("algorithm", [SHARP, ebr.ElasticBatchRacing(3, 0.1, 0.05, 1.0)])
def test_the_worst_cost_is_close_above_the_exact_one(algorithm):
    policy = one(looks(algorithm, 1.0))
    gaps = np.geomspace(0.1, 1, 60)
    exact = max(staged_tests.cost(policy, gap) * (gap + 0.1) ** 2 / 2 for gap in gaps)
    assert 0.999 * exact < worst_cost(algorithm) < 1.05 * exact


def test_the_worst_cost_of_two_rounds_is_that_of_the_policy(monkeypatch):
    policy = pac_policy(8.0, 0.5, 0.1, 0.05)  # so few pulls in round 1 that middling gaps cost most
    monkeypatch.setattr(deadline_tables, "looks", lambda *_: staged_tests.from_policy(policy))
    gaps = np.linspace(0.1, 1, 2000)
    costs = policy.cost(gaps) * (gaps + 0.1) ** 2 / 2
    assert 0 < costs.argmax() < len(gaps) - 1
    assert worst_cost(SimpleNamespace(epsilon=0.1)) == pytest.approx(costs.max(), rel=1e-4)


def test_one_round_of_two_arms_costs_its_pulls_at_the_largest_gap():
    (row,) = deadline_tables.two_arms_table(0.1, [0.05], [1]).to_dict("records")
    sharp, ebr_pulls = 2 * (norm.isf(0.05) / 0.1) ** 2, 80 * math.log(2 / 0.05) / 0.1**2
    assert row["sharp"] == pytest.approx(math.ceil(sharp) * 1.1**2, rel=1e-4)
    assert row["ebr"] == pytest.approx(math.ceil(ebr_pulls) * 1.1**2, rel=1e-4)
    assert row["sequential"] == pytest.approx(4 * 0.9 * math.log(19), rel=1e-4)  # 4 d(0.95, 0.05)


@pytest.mark.parametrize(("arms", "x"), [(3, 1.0), (40, 2.0), (500, 0.5)])
def test_the_limit_is_an_inverse_gaussian_law(arms, x):
    for row in raised_probability.limit([arms], [x]).itertuples():
        level = arms * (x / 2 + row.extra)  # first passage: mean 2·level, shape level²
        expected = invgauss.cdf(arms * x, 2 / level, scale=level**2)
        assert row.equal == pytest.approx(expected, rel=1e-6)
        assert row.raised == pytest.approx(expected * math.exp(-x / 2 - row.extra), rel=1e-6)
        assert row.ratio >= 1 >= row.stop


def test_races_are_those_of_simulate():
    algorithm = ebr.SharpElasticBatchRacing(3, 0.3, 0.1, rewards="Gaussian")
    races = raised_probability.played(algorithm, 4, 0.4, 4000, 5)
    other = ebr.simulate(algorithm, ebr.Gaussian([0.9, 0.5, 0.5, 0.5], 0.5), 4000, 6)
    spread = math.hypot(races.totals[:, -1].std(), other.pulls.std()) / math.sqrt(4000)
    # Two normal tests at 1e-6/2.
    limit = norm.isf(1e-6 / 4)
    assert abs(races.totals[:, -1].mean() - other.pulls.mean()) < limit * spread
    right, expected = (races.arm == races.raised).mean(), (other.arm == 0).mean()
    assert abs(right - expected) < limit * math.sqrt(2 * 0.25 / 4000)
    assert (np.diff(races.totals, axis=1) >= 0).all()
    assert np.bincount(races.raised).tolist() == [1000] * 4


def test_a_race_goes_on_if_it_is_short_first_and_long_then():
    totals = np.array([[4, 9], [6, 9], [4, 7]])
    races = raised_probability.Races(totals, np.zeros(3, dtype=int), np.zeros(3, dtype=int))
    assert raised_probability._goes_on(races, 5, 8).tolist() == [True, False, False]
    # Two of ten: with one more success and one more failure the share is a quarter.
    assert raised_probability._mean(np.arange(10) < 2) == pytest.approx((0.2, math.sqrt(3 / 160)))


def test_the_gap_of_an_event_is_what_so_many_pulls_tell_of():
    sharp = ebr.SharpElasticBatchRacing(3, 0.3, 0.1, rewards="Gaussian")
    table = raised_probability.events({"sharp": sharp}, 4, 50, 1)
    told = table[table["event"] == "goes on"]
    each = sharp.pulls_by_round(4, "Gaussian")[0] + 1 / 4  # M_1/n, one pull more than the first round in all
    told_by = (told["gap"].to_numpy() / 0.5) ** 2 * each
    assert told_by == pytest.approx(told["seen"].to_numpy(), rel=1e-9)


def test_the_cost_of_a_race_is_that_of_its_pulls():
    sharp = ebr.SharpElasticBatchRacing(2, 0.2, 0.1, rewards="Gaussian")
    (row,) = raised_probability.costs({"sharp": sharp}, 7.0, 4, (0.5,), 300, 1).to_dict("records")
    pulls = raised_probability.played(sharp, 4, 0.5, 300, 1).totals[:, -1]
    assert row["ratio"] == pytest.approx(pulls.mean() / (4 / 0.7**2) / 0.5**2)
    assert row["error"] == pytest.approx(pulls.std(ddof=1) / math.sqrt(300) * row["ratio"] / pulls.mean())
    assert row["excess"] == pytest.approx(row["ratio"] / 7)
