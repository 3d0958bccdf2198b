"""The price of a deadline against loops, grids of p, direct integrals and formulas by hand."""

import math
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from compendium.the_price_of_a_deadline import deadline_price
from compendium.the_price_of_a_deadline.deadline_price import many_arms, price, two_arms, unavoidable
from scipy.integrate import quad
from scipy.optimize import brentq, linprog

NORMAL = NormalDist()
EPSILON, DELTA = 0.01, 0.01


def power(p, x):
    return NORMAL.cdf(NORMAL.inv_cdf(p) - math.sqrt(x)) if 0 < p < 1 else max(min(p, 1), 0)


def average(p, x, n):
    return p * math.exp(-x / 2 - math.sqrt(2 * x * math.log(1 / p) / n)) if p > 0 else 0.0


def paid(family, thresholds, p, gap):
    """The bound on E_d[Ñ_T]/H, in a loop."""
    n = family.arms
    curve = power if family.seen == 1 / 4 else (lambda share, x: average(share, x, n))
    cost = thresholds[0] * p[0] if thresholds else 0.0
    rest = 1 - p[0] if thresholds else 1.0
    for t in range(1, len(thresholds)):
        cost += thresholds[t] * rest * curve(p[t] / rest, family.seen * gap**2 * thresholds[t - 1])
    before, x = 0.0, family.seen * gap**2 * thresholds[-1] if thresholds else 0.0
    for pulls, miss in zip(family.pulls, family.misses, strict=True):
        cost += (pulls - before) * rest * curve(max(1 - miss - sum(p), 0) / rest, x)
        before = pulls
    return cost * (gap + family.epsilon) ** 2 / n


@pytest.mark.parametrize("many", [0, 1, 2, 3, 5])
def test_the_lowest_point_above_some_tangents_is_the_linear_programs(many):
    generator = np.random.default_rng(many)
    bounds = np.vstack([np.append(0.0, np.ones(many)), -np.eye(many, many + 1, 1)])
    for scale in (0.1, 1.0, 30.0):
        slopes, heights = scale * generator.standard_normal((50, many)) + 1, 1 + generator.random(50)
        rows = np.vstack([bounds, np.column_stack([-np.ones(50), slopes])])
        limits = np.concatenate([[1.0], np.zeros(many), -heights])
        basis = deadline_price._lowest(slopes[0])
        for part in (20, len(rows)):  # the second program starts where the first one ended
            place, basis = deadline_price._descended(rows[:part], limits[:part], basis)
            plain = linprog(np.eye(many + 1)[0], rows[:part], limits[:part], bounds=(None, None))
            assert place == pytest.approx(plain.x, abs=1e-9)


FAMILIES = {"two": two_arms(EPSILON, DELTA), "five": many_arms(5, EPSILON, DELTA)}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize(("thresholds", "p"), [([700.0], [0.3]), ([80.0, 5000.0], [0.2, 0.25]), ([], [])])
def test_what_is_paid_is_the_sum_in_a_loop(family, thresholds, p):
    gaps = np.array([0.01, 0.1, 1.0])
    value, slope = deadline_price.ratios(family, np.array(thresholds), np.array(p), gaps)
    assert value == pytest.approx([paid(family, thresholds, p, gap) for gap in gaps], rel=1e-9)
    for place in range(len(p)):  # slopes against difference quotients
        near = [np.array(p) + side * 1e-6 * (np.arange(len(p)) == place) for side in (1, -1)]
        up, down = (deadline_price.ratios(family, np.array(thresholds), q, gaps)[0] for q in near)
        assert slope[:, place] == pytest.approx((up - down) / 2e-6, rel=1e-4)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("thresholds", [[700.0], [80.0, 5000.0]])
def test_no_p_of_a_grid_pays_less_and_the_nearest_pays_as_much(family, thresholds):
    found = unavoidable(family, thresholds)
    gaps = np.geomspace(EPSILON, 1, deadline_price.GAPS)
    grid = np.linspace(0.01, 0.97, 25)
    worst = [
        deadline_price.ratios(family, np.array(thresholds), np.array(p), gaps)[0].max()
        for p in product(grid, repeat=len(thresholds))
        if sum(p) < 0.99
    ]
    assert found.ratio <= min(worst) < 1.2 * found.ratio
    at, _ = deadline_price.ratios(family, found.thresholds, found.chances, gaps)
    assert at.max() == pytest.approx(found.ratio, rel=1e-5)
    for start in (0.05, 0.9 / len(thresholds)):  # the result does not depend on where the tangents begin
        again = unavoidable(family, thresholds, start=np.full(len(thresholds), start))
        assert again.ratio == pytest.approx(found.ratio, rel=1e-5)


def test_one_round_is_an_integral():
    def long(root):  # S_T ≥ M with M = 4u²/ε², dM = 8u/ε² du
        return (1 - 2 * NORMAL.cdf(root + NORMAL.inv_cdf(DELTA))) * 8 * root / EPSILON**2

    expected = quad(long, 0, -NORMAL.inv_cdf(DELTA))[0] * (1 + EPSILON) ** 2 / 2
    found = price(two_arms(EPSILON, DELTA), 1).ratio
    assert 0.99 * expected < found < expected  # a lower sum of the integral


@pytest.mark.parametrize("arms", [2, 5, 100])
@pytest.mark.parametrize("miss", [0.05, 0.5, 1.0])
def test_the_shortest_races_solve_their_equations(arms, miss):
    x = float(deadline_price.many_arms_stop(np.array(miss), EPSILON, DELTA, arms)) * EPSILON**2 / (arms - 1)
    exponent = x / 2 + math.sqrt(2 * x * math.log(arms / miss) / (arms - 1))
    assert miss * (arms - 1) / arms * math.exp(-exponent) == pytest.approx(DELTA)
    pulls = float(deadline_price.two_arms_stop(np.array(miss), EPSILON, DELTA))
    assert power(miss / 2, EPSILON**2 * pulls / 4) == pytest.approx(DELTA)


@pytest.mark.parametrize(("arms", "deadline"), [(2, 2), (10, 3), (100, 1), (100, 4)])
def test_the_formula_step_by_step(arms, deadline):
    ratio, gaps = deadline_price.closed_form(arms, 1e-4, DELTA, deadline)
    grid = [k / 10_000 for k in range(1, 30_000)]
    kappa = max(x * average(0.5 / deadline, x, arms) * 2 * deadline for x in grid)
    spread, least = 2 * math.log(2 * arms) / (arms - 1), math.log((arms - 1) / (2 * arms * DELTA))
    x_0 = brentq(lambda x: x / 2 + math.sqrt(x * spread) - least, 0, 100)
    rho = (x_0 * (arms - 1) / (kappa * arms)) ** (1 / deadline) * 1e-4 ** (-2 / deadline)
    assert ratio == pytest.approx(kappa / (2 * deadline) * rho, rel=1e-6)
    # Its thresholds rise from κnρ to x_0(n−1)/ε² by factors ρ. With all but the last the program is no lower.
    thresholds = [kappa * arms * rho**t for t in range(1, deadline + 1)]
    assert thresholds[-1] == pytest.approx(x_0 * (arms - 1) / 1e-8)
    assert unavoidable(many_arms(arms, 1e-4, DELTA), thresholds[:-1]).ratio > ratio
    for t, gap in enumerate(gaps[1:], start=1):  # every round costs the same at its gap
        share = average(0.5 / deadline, gap**2 * thresholds[t - 1] / arms, arms)
        assert thresholds[t] * share * gap**2 / arms == pytest.approx(ratio, rel=1e-6)


def test_without_a_deadline_by_hand():
    information = 0.98 * math.log(99)  # d(0.99, 0.01)
    assert deadline_price.sequential_price(2, 0.01) == pytest.approx(4 * information)
    assert deadline_price.sequential_price(10, 0.01) == pytest.approx(1.8 * information)
