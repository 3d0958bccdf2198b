"""Notebook 02: the stopped Brownian motion against simulation and closed forms."""

import math

import numpy as np
import pytest
from compendium.confidence import coverage

import ebr


def test_a_stopped_brownian_motion_by_simulation():
    # 200,000 chains of 20 looks; 5 standard errors: a failure by chance has probability 5.7e-7.
    generator = np.random.default_rng(1)
    value, outside = generator.standard_normal(200_000), np.zeros(200_000, dtype=bool)
    for look in range(20):
        if look:
            value = 0.5 * value + math.sqrt(0.75) * generator.standard_normal(200_000)
        outside |= np.abs(value) > 2.0
    expected = coverage.stopped_probability(2.0, stages=20, growth=4.0)
    assert abs(outside.mean() - expected) < 5 * math.sqrt(expected * (1 - expected) / 200_000)


def test_one_look_is_a_normal_tail_and_distant_looks_are_independent():
    tail = math.erfc(2.5 / math.sqrt(2))
    assert coverage.stopped_probability(2.5, stages=1) == pytest.approx(tail, rel=1e-9)
    assert coverage.stopped_probability(2.5, 7, growth=1e12) == pytest.approx(1 - (1 - tail) ** 7, rel=1e-5)


def test_a_constant_a_is_enough_from_the_root_of_the_two_sides_on():
    # 2 exp(−(2 + log 2) c²/2) = exp(−c²/2) at c² = 2 log 2 / (1 + log 2).
    root = math.sqrt(2 * math.log(2) / (1 + math.log(2)))
    random, constant = coverage.concentration(1).evidence
    assert root < constant.value < root + 0.001
    one_look = coverage.stopped([1, 10])["stopped"][0]
    assert random.value == one_look == pytest.approx(math.erfc(math.sqrt(2 * (2 + math.log(2)))))


def test_coverage_shows_the_worst_interval_and_e_of_every_problem():
    problems = {"fair": ebr.Bernoulli([0.5, 0.5]), "rare": ebr.Bernoulli([0.1, 0.1])}
    exact = coverage.exact_misses(problems, [2], [0.5], 0.3)
    measured = coverage.measured_misses(problems, 2, 0.5, 0.3, 10_000, 1)
    finding = coverage.coverage(exact, measured)
    assert [row.where for row in finding.evidence[2:]] == ["fair", "fair", "rare"]
    assert finding.evidence[1].value == (exact["miss"] / exact["allowed"]).max()
    single = measured[measured["interval"] != "joint"]
    assert finding.evidence[2].value == single["frequency"].max()
    assert [row.value for row in finding.evidence[3:]] == measured["frequency"][[4, 9]].tolist()
    assert [row.allowed for row in finding.evidence[2:]] == ["≤ 0.125", "≤ 0.5", "≤ 0.5"]


def test_exact_misses_are_the_worst_arms_and_the_share_allowed_is_that_of_nt_intervals():
    problem = ebr.Bernoulli([0.5, 0.9, 0.6])
    for deadline, delta in ((1, 0.5), (3, 0.1)):
        (row,) = coverage.exact_misses({"": problem}, [deadline], [delta], 0.3).to_dict("records")
        race = ebr.ElasticBatchRacing(deadline, 0.3, delta)
        counts = [int(count) for count in race.pulls_by_round(3)]
        chances = []
        for mean in problem.means:  # outcome by outcome
            width = {count: float(race.deviation(count, 3)) for count in counts}
            outside = [
                math.comb(count, ones) * mean**ones * (1 - mean) ** (count - ones)
                for count in counts
                for ones in range(count + 1)
                if abs(ones / count - mean) > width[count] + 1e-12
            ]
            chances.append(sum(outside))
        assert row["miss"] == pytest.approx(max(chances), rel=1e-6)
        assert row["allowed"] == pytest.approx(delta / (3 * deadline))
