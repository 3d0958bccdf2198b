"""Paulson's, Kim and Nelson's and Bechhofer's procedures: plain loops, published constants, exact errors.

A test with simulated errors fails by chance at most once in a million times.
"""

import math

import numpy as np
import pytest
from compendium.modern_rivals import selection_rivals as rivals
from compendium.modern_rivals.selection_rivals import kim_nelson_triangle, paulson_triangle
from scipy.stats import binomtest

import ebr

SIGMA = 0.5
CERTAIN = 1 - 1e-6


def staged_by_hand(problem, triangle, seed, block):
    """One run, reward by reward. Noise is drawn in blocks; a rest too short for a stage is discarded."""
    generator, draws = np.random.default_rng(seed), []
    totals = dict.fromkeys(range(problem.n_arms), 0.0)
    pulls = stage = 0
    while len(totals) > 1:
        if len(draws) < len(totals):
            draws = list(generator.standard_normal(block))
        stage += 1
        for arm in totals:
            totals[arm] += problem.means[arm] + problem.sigma * draws.pop(0)
            pulls += 1
        best = max(totals.values())
        line = triangle.intercept - triangle.slope * stage
        totals = {arm: total for arm, total in totals.items() if total == best or best - total < line}
    return pulls, stage, next(iter(totals))


@pytest.mark.parametrize("block", [5, 23, 2**12])
@pytest.mark.parametrize("line", [kim_nelson_triangle, paulson_triangle])
def test_stages_are_those_of_a_plain_loop(block, line, monkeypatch):
    monkeypatch.setattr(rivals, "DRAWS", block)
    problem = ebr.Gaussian([0.5, 0.62, 0.4, 0.6, 0.1], SIGMA)
    triangle = line(5, SIGMA, 0.2, 0.1)
    for seed in range(60):
        played = rivals.staged(problem, triangle, np.random.default_rng(seed))
        assert played == staged_by_hand(problem, triangle, seed, block)


def looked_by_hand(problem, triangle, counts, noise):
    """One run at given looks; `noise` has a list of standard normal numbers per look."""
    alive, totals = list(range(problem.n_arms)), [0.0] * problem.n_arms
    pulls = rounds = before = 0
    for count, errors in zip(counts, noise, strict=True):
        if len(alive) == 1:
            break
        step, before = int(count) - before, int(count)
        for arm in alive:
            totals[arm] += step * problem.means[arm] + problem.sigma * math.sqrt(step) * errors[arm]
        pulls, rounds = pulls + step * len(alive), rounds + 1
        best = max(totals[arm] for arm in alive)
        line = triangle.intercept - triangle.slope * int(count)
        alive = [arm for arm in alive if totals[arm] == best or best - totals[arm] < line]
    return pulls, rounds, alive[0]


@pytest.mark.parametrize("looks", [1, 2, 5])
@pytest.mark.parametrize("line", [kim_nelson_triangle, paulson_triangle])
def test_looks_are_those_of_a_plain_loop(looks, line):
    problem, runs = ebr.Gaussian([0.5, 0.62, 0.4, 0.6, 0.1], SIGMA), 100
    triangle = line(5, SIGMA, 0.1, 0.1)
    counts = rivals.planned_looks(triangle, looks)
    played = rivals.looked(problem, triangle, counts, runs, np.random.default_rng(7))
    generator = np.random.default_rng(7)
    noise = np.array([generator.standard_normal((runs, 5)) for _ in counts])
    by_hand = [looked_by_hand(problem, triangle, counts, noise[:, run]) for run in range(runs)]
    assert [tuple(row) for row in played.to_numpy()] == by_hand


def test_kim_and_nelsons_line_is_the_limit_of_their_constants():
    # η = ½((2α/(k−1))^{−2/(n₀−1)} − 1), h² = 2η(n₀−1), r W(r) = (ε/2)(h² S²/ε² − r) with S² = 2σ² (c = 1).
    n_arms, epsilon, delta, first_stage = 100, 0.01, 0.01, 10**7
    eta = 0.5 * ((2 * delta / (n_arms - 1)) ** (-2 / (first_stage - 1)) - 1)
    h_squared = 2 * eta * (first_stage - 1)
    triangle = kim_nelson_triangle(n_arms, SIGMA, epsilon, delta)
    assert triangle.intercept == pytest.approx(h_squared * 2 * SIGMA**2 / (2 * epsilon), rel=1e-5)
    assert triangle.last == math.ceil(h_squared * 2 * SIGMA**2 / epsilon**2) == 85072


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_paulsons_line_solves_the_exponential_bound(share):
    triangle = paulson_triangle(100, SIGMA, 0.01, 0.01, share)
    # A random walk of drift −d and variance v reaches a with probability at most e^{−2da/v}.
    crossing = math.exp(-2 * (0.01 - triangle.slope) * triangle.intercept / (2 * SIGMA**2))
    assert 99 * crossing == pytest.approx(0.01)


def test_the_fixed_design_errs_as_often_as_it_may():
    frame = rivals.bechhofer(ebr.Gaussian([0.6] + [0.5] * 4, SIGMA), 0.1, 0.05, 20000, 3)
    assert set(frame["pulls"]) == {5 * math.ceil((3.0552 * SIGMA / 0.1) ** 2)}  # his table I
    wrong = binomtest(int((frame["arm"] != 0).sum()), 20000).proportion_ci(CERTAIN)
    assert wrong.low <= 0.05
    assert wrong.high >= 0.045  # 5 % up to rounding to 234 rewards


def test_the_last_look_is_where_the_line_ends_and_none_is_later():
    for triangle in (kim_nelson_triangle(100, SIGMA, 0.01, 0.01), paulson_triangle(100, SIGMA, 0.01, 0.01)):
        assert triangle.intercept - triangle.slope * triangle.last <= 0
        assert triangle.intercept - triangle.slope * (triangle.last - 1) > 0
        for looks in (1, 2, 15):
            counts = rivals.planned_looks(triangle, looks)
            assert len(counts) == looks
            assert counts[-1] == triangle.last
    ratios = counts[1:] / counts[:-1]
    assert ratios == pytest.approx((1 / triangle.slope + 1) ** (1 / 15), rel=2e-3)


@pytest.mark.parametrize("looks", [None, 1, 3])
@pytest.mark.parametrize("play", [rivals.kim_nelson, rivals.paulson])
def test_no_more_than_delta_of_the_selections_are_wrong(looks, play):
    problem = ebr.Gaussian([0.6] + [0.5] * 5, SIGMA)  # all others are ε worse
    wrong = play(problem, 0.1, 0.1, 4000, 9, looks=looks)["arm"] != 0
    assert binomtest(int(wrong.sum()), 4000).proportion_ci(CERTAIN).low <= 0.1
