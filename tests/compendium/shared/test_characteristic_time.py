"""The characteristic time: closed forms for n = 2, brute force for n = 3, and its lower bound."""

import math

import numpy as np
import pytest
from compendium.shared.characteristic_time import characteristic, characteristic_lower_bound
from oracles import kl
from scipy.optimize import minimize_scalar

import ebr


def ruled_out(weights, means, arm, other, epsilon):
    """inf over x of w_a KL(μ_a, x) + w_b KL(μ_b, x + ε) for Bernoulli arms, by a search."""

    def cost(x):
        return weights[arm] * kl(means[arm], x) + weights[other] * kl(means[other], x + epsilon)

    ends = (max(means[other] - epsilon, 1e-12), min(means[arm], 1 - epsilon - 1e-12))
    return minimize_scalar(cost, bounds=ends, method="bounded", options={"xatol": 1e-12}).fun


def brute_force(problem, epsilon, points=120):
    """The best of all answers and a grid of proportions; for each rival x is found by ternary search."""
    kind, means, best = type(problem).__name__, problem.means, 0.0
    grid = [(i, j, points - i - j) for i in range(1, points) for j in range(1, points - i)]
    weights = np.array(grid).T / points

    def divergence(x, y):
        if kind == "Gaussian":
            return (x - y) ** 2 / (2 * problem.sigma**2)
        return x * np.log(x / y) + (1 - x) * np.log((1 - x) / (1 - y))

    for arm in np.flatnonzero(problem.is_good(range(3), epsilon)):
        levels = []
        for rival in {0, 1, 2} - {int(arm)}:

            def cost(x, a=arm, b=rival):
                return weights[a] * divergence(means[a], x) + weights[b] * divergence(means[b], x + epsilon)

            low, high = means[rival] - epsilon, means[arm]
            if kind == "Bernoulli":
                low, high = max(low, 1e-12), min(high, 1 - epsilon - 1e-12)
            low, high = np.full(len(grid), low), np.full(len(grid), high)
            for _ in range(60):
                left, right = (2 * low + high) / 3, (low + 2 * high) / 3
                lower = cost(left) < cost(right)
                low, high = np.where(lower, low, left), np.where(lower, right, high)
            levels.append(cost(low))
        best = max(best, np.min(levels, axis=0).max())
    return 1 / best


@pytest.mark.parametrize(("gap", "epsilon", "sigma"), [(0.0, 0.1, 0.5), (0.05, 0.1, 2.0), (0.9, 0.05, 0.5)])
def test_two_gaussian_arms_share_the_pulls_and_need_eight_variances_over_the_gap_squared(gap, epsilon, sigma):
    found = characteristic(ebr.Gaussian([0.95 - gap, 0.95], sigma), epsilon)
    assert found.time == pytest.approx(8 * sigma**2 / (gap + epsilon) ** 2, rel=1e-9)
    assert found.proportions == pytest.approx([0.5, 0.5], abs=1e-4)


@pytest.mark.parametrize(("means", "epsilon"), [((0.3, 0.02), 0.1), ((0.9, 0.88), 0.05)])
def test_two_bernoulli_arms_are_a_search_over_one_proportion(means, epsilon):
    def loss(share, arm):
        weights = (share, 1 - share) if arm == 0 else (1 - share, share)
        return -ruled_out(weights, means, arm, 1 - arm, epsilon)

    good = [arm for arm in (0, 1) if means[arm] > max(means) - epsilon]
    least = [minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), args=(a,), method="bounded").fun for a in good]
    assert characteristic(ebr.Bernoulli(means), epsilon).time == pytest.approx(-1 / min(least), rel=1e-6)


@pytest.mark.parametrize(
    ("problem", "epsilon"),
    [
        (ebr.Gaussian([0.5, 0.5, 0.45], 1.0), 0.1),
        (ebr.Bernoulli([0.7, 0.6, 0.3]), 0.05),
        (ebr.Bernoulli([0.05, 0.03, 0.01]), 0.03),
    ],
)
def test_three_arms_are_a_grid_of_proportions(problem, epsilon):
    found = characteristic(problem, epsilon)
    coarse = brute_force(problem, epsilon)
    assert found.time <= coarse * (1 + 1e-9)
    assert found.time == pytest.approx(coarse, rel=1e-2)  # the grid has steps of 1/120
    # Planted: a wrong ε would be seen.
    assert characteristic(problem, epsilon * 0.9).time > 1.01 * coarse


def test_at_the_optimum_every_rival_that_is_pulled_is_ruled_out_equally_well():
    problem, epsilon = ebr.setup_1(20), 0.02
    found = characteristic(problem, epsilon)
    levels = [
        ruled_out(found.proportions, problem.means, problem.best, b, epsilon)
        for b in set(range(20)) - {problem.best}
    ]
    assert levels == pytest.approx([1 / found.time] * 19, rel=1e-6)
    assert found.proportions.sum() == pytest.approx(1)


def test_the_setups_floor():
    # READING's numbers, which another program computed.
    times = [characteristic(setup, 0.01).time for setup in (ebr.setup_1(), ebr.setup_2())]
    assert times == pytest.approx([3498, 10557], abs=1)
    floor = characteristic_lower_bound(ebr.setup_1(), 0.01, 0.01)
    assert floor == pytest.approx(times[0] * (0.98 * math.log(99)), rel=1e-9)


@pytest.mark.parametrize("means", [(0.0, 0.0), (1.0, 1.0), (0.005, 0.0), (1.0, 0.995, 0.0)])
def test_means_at_the_ends_have_a_finite_time(means):
    found = characteristic(ebr.Bernoulli(means), 0.01)
    assert 0 < found.time < 1e6
    assert np.isfinite(found.proportions).all()
    inside = characteristic(ebr.Bernoulli(np.clip(means, 1e-5, 1 - 1e-5)), 0.01)
    assert found.time == pytest.approx(inside.time, rel=2e-2)


def test_a_complexity_times_the_noise_is_no_lower_bound_on_each_problem():
    """2σ² log(1/2.4δ) H(ν) is 373 pulls here, but sharp EBR, which is PAC, needs fewer."""
    problem, epsilon, delta = ebr.Gaussian([0.6, 0.501], 0.5), 0.1, 0.01
    pulls = ebr.simulate(ebr.SharpElasticBatchRacing(50, epsilon, delta), problem, runs=2000, seed=1).pulls
    above = pulls.mean() + 5 * pulls.std() / math.sqrt(2000)
    supposed = 2 * 0.25 * math.log(1 / (2.4 * delta)) * problem.complexity(epsilon)
    assert supposed == pytest.approx(373, abs=1)
    assert above < supposed
    assert characteristic_lower_bound(problem, epsilon, delta) < pulls.mean()
