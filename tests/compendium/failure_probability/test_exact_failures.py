"""Exact failure probabilities of two arms: closed forms, plain sums, simulated races, and estimates."""

import math

import numpy as np
import pytest
from compendium.failure_probability import exact_failures
from compendium.failure_probability.exact_failures import Case
from compendium.shared import walks
from scipy.stats import binom, norm

import ebr


@pytest.mark.parametrize(
    ("deadline", "epsilon", "published"),
    [(3, 0.1, 5.9e-24), (3, 0.01, 2.1e-18), (2, 0.001, 6.2e-17), (2, 0.0001, 2.5e-16)],
)
def test_ebrs_failures_depend_on_epsilon(deadline, epsilon, published):
    race = Case("Gaussian", "EBR", deadline, epsilon, 0.01, 0.5 + epsilon / 2).race()
    assert 10 ** exact_failures.log10_failure(*race) == pytest.approx(published, rel=0.02)


def test_as_epsilon_falls_the_first_of_two_rounds_has_a_limit():
    race = Case("Gaussian", "EBR", 2, 2e-7, 0.01, 0.5).race()
    limit = norm.sf(math.sqrt(2 * (4 + 2 * math.log(2)) * math.log(4 / 0.01)))
    assert limit == pytest.approx(4.7e-16, rel=0.01)
    assert 10 ** exact_failures.log10_failure(*race) == pytest.approx(limit, rel=0.05)


def test_more_nodes_change_nothing(monkeypatch):
    race = Case("Gaussian", "sharp", 4, 0.1, 0.3, 0.55).race()
    exact = exact_failures.log10_failure(*race)
    monkeypatch.setattr(walks, "PANELS", 6.0)
    assert exact_failures.log10_failure(*race) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(
    "case",
    [
        Case("Gaussian", "sharp, Gaussian", 4, 0.1, 0.3, 0.55),
        Case("Bernoulli", "sharp", 3, 0.1, 0.3, 0.55),
        Case("Bernoulli", "sharp, [0, 1]", 3, 0.1, 0.5, 0.15),
        Case("Gaussian", "pausing, Gaussian", 4, 0.01, 0.3, 0.505),
        Case("Bernoulli", "pausing, Bernoulli", 2, 0.3, 0.3, 0.65, 3),
        Case("Bernoulli", "pausing, Bernoulli", 3, 0.2, 0.3, 0.95),
        Case("Bernoulli", "pausing, [0, 1]", 3, 0.3, 0.5, 0.4),
    ],
    ids=str,
)
def test_where_failures_are_common_plain_races_fail_as_often(case):
    # Within five standard errors, with a fixed seed.
    check_plain_races(*case.race())


def check_plain_races(algorithm, problem, runs=50_000):
    exact = 10 ** exact_failures.log10_failure(algorithm, problem)
    failures = (~ebr.simulate(algorithm, problem, runs, seed=3).correct(algorithm.epsilon)).sum()
    assert failures > 100
    assert abs(failures - runs * exact) < 5 * math.sqrt(runs * exact)


@pytest.mark.parametrize("rewards", ["Gaussian", "Bernoulli"])
def test_ebr_with_narrow_intervals_fails_as_plain_races_do(rewards):
    class Hasty(ebr.ElasticBatchRacing):
        def deviation(self, pulls, n_arms):
            return 0.4 * super().deviation(pulls, n_arms)

        def pulls_by_round(self, n_arms):
            return super().pulls_by_round(n_arms) // 20

    means = [0.65, 0.349]
    problem = ebr.Bernoulli(means) if rewards == "Bernoulli" else ebr.Gaussian(means, 0.5)
    check_plain_races(Hasty(3, 0.3, 0.9), problem)


def test_one_round_of_bernoulli_arms_is_a_double_sum():
    algorithm, problem = Case("Bernoulli", "EBR", 1, 0.3, 0.01, 0.7).race()
    pulls = int(algorithm.pulls_by_round(2)[0])
    sums = np.arange(pulls + 1)
    worse, better = (binom.pmf(sums, pulls, mean) for mean in problem.means)
    wrong = sum(better[x] * worse[x:].sum() for x in range(pulls + 1))  # a tie goes to the first
    assert exact_failures.bernoulli(algorithm, problem) == pytest.approx(wrong, rel=1e-9)
    assert wrong < 1e-40


def early():
    return (case for case in exact_failures.cases() if case.epsilon == 0.001)


def test_estimates_are_off_as_their_standard_errors_say():
    table = exact_failures.compared(runs=200, seed=2, only=early())
    right, (squares, farthest, _) = exact_failures.estimates_right(table)
    assert right
    assert len(table) == 32
    assert 0.3 < squares.value < 2
    assert farthest.value == table["off"].abs().max() < 5
    assert squares.runs == farthest.runs == table["races"].sum()
