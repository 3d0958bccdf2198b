"""ElasticPair: its guarantee, its cost against the exact evaluation, and its journals."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from compendium.two_arms.elastic_pair import ElasticPair, _Paths
from compendium.two_arms.two_arms_solutions import solution
from compendium.two_rounds.policies import complexity
from scipy.stats import binom

import ebr


def arms(gap, sigma):
    return ebr.Gaussian(np.array([0.5 + gap / 2, 0.5 - gap / 2]), sigma)


@pytest.mark.parametrize("deadline", [1, 2, 3, 4])
def test_it_errs_with_at_most_delta_at_the_hardest_gap(deadline):
    for epsilon, delta in ((0.1, 0.01), (0.05, 0.04)):
        algorithm = ElasticPair(deadline, epsilon, delta, sigma=1.0)
        result = ebr.simulate(algorithm, arms(epsilon * 1.0000001, 1.0), runs=30_000, seed=deadline)
        failures = int((result.arm == 1).sum())
        # More failures have a probability of one in a million if the failure probability is δ.
        assert failures <= binom.isf(1e-6, 30_000, delta)
        assert result.rounds.max() <= deadline


@pytest.mark.parametrize("deadline", [2, 3, 4])
def test_it_costs_and_errs_as_the_exact_evaluation_says(deadline):
    epsilon, delta = 0.01, 0.01  # small, so that rounding of pulls changes little
    law = solution(deadline, epsilon, delta).profile()
    for ratio in (1.0, 6.0):
        gap = ratio * epsilon * 1.0000001
        result = ebr.simulate(ElasticPair(deadline, epsilon, delta, 1.0), arms(gap, 1.0), runs=20_000, seed=5)
        exact = float(law.ratios(np.array([ratio]))[0] * complexity(gap, epsilon))
        error = result.pulls.std() / math.sqrt(20_000)
        # Six standard errors (a false alarm in 10⁸ tests), and what rounding up adds.
        assert -6 * error < result.pulls.mean() - exact < 6 * error + 4 * deadline
        if ratio == 1.0:
            failures = int((result.arm == 1).sum())
            assert abs(failures - 20_000 * law.error) < 6 * math.sqrt(20_000 * law.error)


def test_either_arm_may_be_the_better_one():
    result = ebr.simulate(ElasticPair(3, 0.1, 0.01), ebr.Gaussian(np.array([0.2, 0.7]), 0.5), runs=300)
    assert (result.arm == 1).all()


def test_the_bridge_has_the_law_of_the_walk():
    """D at counts that are no whole numbers has the covariances of Brownian motion."""
    generator, runs, sigma = np.random.default_rng(1), 50_000, 0.7
    walk, running = _Paths(runs, sigma), np.ones(runs, dtype=bool)
    values = []
    for count in (0.3, 0.6, 1.9, 4.2):
        counts = np.full(runs, count)
        pulls = walk.pulls(counts, running)
        assert pulls.min() >= 1
        walk.add(pulls, generator.standard_normal(runs) * np.sqrt(2 * sigma**2 * pulls))
        walk.reveal(counts, running, generator)
        values.append(walk.value)
    times = np.array([0.3, 0.6, 1.9, 4.2])
    expected = 2 * sigma**2 * np.minimum.outer(times, times)
    # Six standard errors; one is below 1.5 times the larger variance / √runs.
    assert np.abs(np.cov(values) - expected).max() < 6 * 1.5 * expected.max() / math.sqrt(runs)


def test_a_pair_is_raced_reopened_and_replayed(tmp_path):
    algorithm, journal = ElasticPair(3, 0.1, 0.05), tmp_path / "pair.jsonl"
    means, draws, asked = {"A": 0.6, "B": 0.4}, np.random.default_rng(1), []
    while True:
        with ebr.Race(algorithm, list(means), journal, support=None, rewards="Gaussian") as race:
            if race.finished:
                break
            asked.append(race.ask())
            (n,) = set(asked[-1].values())  # both arms equally often
            race.tell({arm: (n, n * means[arm] + n**0.5 / 2 * draws.standard_normal()) for arm in asked[-1]})
    assert 1 <= len(asked) <= 3
    assert race.history["pulls"].sum() == sum(n for pulls in asked for n in pulls.values())


def test_an_old_journal_of_a_pair_opens_with_its_algorithm():
    """The journal was written when ElasticPair was part of ebr."""
    journal = Path(__file__).parents[2] / "live" / "format-4" / "elastic-pair.jsonl"
    first = json.loads(journal.read_text().splitlines()[0])
    lines = journal.read_bytes()
    pair = ElasticPair(**first["parameters"])
    with ebr.Race(pair, first["arms"], journal, support=None, rewards="Gaussian") as race:
        assert (race.finished, race.recommendation, race.within) == (True, "B", 0.1)
    assert journal.read_bytes() == lines
