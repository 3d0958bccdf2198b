"""Policies whose second round depends on the first: against simulation, plain sums, and other bounds."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from compendium.two_rounds import adaptive, adaptive_program
from compendium.two_rounds.adaptive import Adaptive, Prior, bayes_value, floor
from compendium.two_rounds.adaptive_program import best_adaptive, best_prior, solve
from compendium.two_rounds.policies import best_policy, complexity, pac_policy, worst_ratio
from scipy.optimize import linprog, minimize_scalar
from scipy.stats import binomtest, norm

EPSILON, DELTA = 0.1, 0.05
THREE = Adaptive(  # 40 pulls if the lead is small, 10 or 0 by lot if larger, then 0
    12.0, np.array([0.0, 0.2, 0.6]), np.array([0.0, 10.0, 40.0]), np.array([[0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
)


@pytest.fixture(scope="module")
def family():
    return best_policy(EPSILON, DELTA)


@pytest.fixture(scope="module")
def best(family):
    highest = family[1] * float(complexity(0.5, EPSILON)) / 2
    return best_adaptive(0.75 * highest, highest, EPSILON, DELTA)


@pytest.mark.parametrize("gap", [0.1, 0.5])
def test_a_policy_costs_and_errs_as_when_it_is_played(gap):
    # Errors by an exact test, costs by six standard errors: correct sums fail with probability below 1e-6.
    draw, runs = np.random.default_rng(4), 200_000
    x = gap + math.sqrt(2 / THREE.first) * draw.standard_normal(runs)
    far = np.where(draw.random(runs) < 0.5, 0, 10)
    more = np.where(np.abs(x) < 0.2, 40, np.where(np.abs(x) < 0.6, far, 0))
    second = gap + np.sqrt(2 / np.maximum(more, 1)) * draw.standard_normal(runs)
    wrong = int((THREE.first * x + more * second < 0).sum())
    assert binomtest(wrong, runs, THREE.error(gap)).pvalue > 1e-7
    assert binomtest(wrong, runs, 1.1 * THREE.error(gap)).pvalue < 1e-6  # planted
    cost = 2 * THREE.first + 2 * more
    assert abs(cost.mean() - THREE.cost(gap)[0]) < 6 * cost.std() / math.sqrt(runs)


@pytest.mark.parametrize(("first", "most"), [(12.0, 40.0), (120.0, 2000.0)])
def test_the_worst_ratio_bounds_a_loop_over_gaps_closely(first, most):
    policy, gaps = THREE._replace(first=first, sizes=np.array([0.0, 10.0, most])), np.arange(2501) / 5000
    ratios = policy.cost(gaps) / complexity(gaps, EPSILON)
    assert (ratios.argmax() == 2500) == (first == 12)  # the worst gap is the widest, or one inside
    assert ratios.max() <= policy.worst_ratio(EPSILON) < 1.002 * ratios.max()


def test_errors_fall_as_the_gap_grows(best):
    for policy in (THREE, best[1]):
        assert (np.diff([policy.error(gap) for gap in np.linspace(0, 0.9, 40)]) < 0).all()


def test_with_one_size_the_program_is_the_best_threshold(family):
    policy, ratio = family
    program = solve([policy.first], EPSILON, DELTA, np.array([0.0, policy.second]), cells=300)
    assert 0.995 * ratio < program.ratio < 1.005 * ratio
    other = pac_policy(0.8 * policy.first, 0.5, EPSILON, DELTA)  # a threshold is one of the program's laws
    program = solve([other.first], EPSILON, DELTA, np.array([0.0, other.second]), cells=300)
    assert program.ratio < 1.005 * worst_ratio(other, EPSILON)


@pytest.mark.parametrize("firsts", [[90.0], [60.0, 150.0]])
def test_the_program_is_the_one_with_a_column_for_every_pair_of_cell_and_size(firsts):
    sizes, cells = np.array([0.0, 30.0, 60.0, 200.0, 900.0, 1000.0]), 7
    program = solve(firsts, EPSILON, DELTA, sizes, cells=cells, gaps=9)
    weights = complexity(program.prior.gaps, EPSILON)
    columns, alone = [], np.eye(cells * len(sizes)).reshape(-1, cells, len(sizes))  # a law for each pair
    for first in firsts:
        edges = np.linspace(0, adaptive.REACH * math.sqrt(2 / first), cells + 1)
        beyond = float(norm.cdf(-edges[-1], EPSILON, math.sqrt(2 / first)))
        for pair in (Adaptive(first, edges, sizes, law) for law in alone):
            costs = (pair.cost(program.prior.gaps) - 2 * first) / weights
            columns.append([*costs, pair.error(EPSILON) - beyond])
        columns.append([*(2 * first / weights), beyond])
    block = np.column_stack([np.kron(np.eye(cells), np.ones(len(sizes))), -np.ones(cells)])
    laws = np.pad(np.kron(np.eye(len(firsts)), block), ((0, 0), (0, 1)))  # Σ chances − share = 0 in each cell
    own = np.tile(np.arange(block.shape[1]) == block.shape[1] - 1, len(firsts))
    total = np.append(own, False).astype(float)
    limits = np.column_stack([np.transpose(columns), [*-np.ones(len(weights)), 0.0]])
    plain = linprog(
        np.append(np.zeros(len(columns)), 1),
        limits,
        np.append(np.zeros(len(weights)), DELTA * (1 - adaptive_program.SAFETY)),
        np.vstack([laws, total]),
        np.append(np.zeros(len(laws)), 1),
    )
    assert program.ratio == pytest.approx(plain.fun, rel=1e-7)
    assert program.shares == pytest.approx(plain.x[:-1][own], abs=1e-6)
    for policy in program.policies:
        assert policy.chances.sum(axis=1) == pytest.approx(np.ones(cells))


def test_the_best_policy_is_pac_attains_its_ratio_and_beats_every_single_size(family, best):
    ratio, policy = best
    assert policy.error(EPSILON) <= DELTA
    assert ratio * (1 - 1e-6) <= policy.worst_ratio(EPSILON) < 1.005 * ratio
    assert policy.worst_ratio(EPSILON) < 0.99 * family[1]


def test_the_bayes_value_is_a_plain_integral_over_the_best_sizes():
    prior, first = Prior(np.array([0.2, 0.5]), np.array([0.6, 0.4]), 800.0), 60.0
    spread, standard = math.sqrt(2 / first), NormalDist()

    def inside(x):
        densities = norm.pdf(x, prior.gaps, spread) + norm.pdf(-x, prior.gaps, spread)
        pull = 2 * (prior.chances / complexity(prior.gaps, EPSILON)) @ densities
        leads, trails = (NormalDist(EPSILON, spread).pdf(s * x) for s in (1, -1))

        def value(n):
            ahead, behind = (standard.cdf(-(EPSILON + s * x * first / n) * math.sqrt(n / 2)) for s in (1, -1))
            return n * pull + prior.price * (leads * ahead + trails * behind)

        stop = prior.price * trails
        tries = [minimize_scalar(value, bounds=(low, 4 * low)).fun for low in 4.0 ** np.arange(-1, 6)]
        return min(stop, *tries)

    x = np.linspace(0, 6 * spread, 241)
    integral = np.trapezoid([inside(place) for place in x], x)
    weight = sum(prior.chances / complexity(prior.gaps, EPSILON))
    expected = 2 * first * weight + integral - prior.price * DELTA
    assert bayes_value(prior, first, EPSILON, DELTA, step=1.001) == pytest.approx(expected, rel=2e-3)
    assert bayes_value(prior, first, EPSILON, DELTA, step=1.05) < expected  # coarser, but still a lower bound


def test_no_policy_is_below_the_floor_and_one_is_close(best):
    prior = best_prior(best[1].first, EPSILON, DELTA)
    least = floor(prior, EPSILON, DELTA, best[1].first)
    assert 0.98 * best[1].worst_ratio(EPSILON) < least < best[1].worst_ratio(EPSILON)
    for factor in (0.1, 0.5, 0.9, 1.1, 2.0):  # V(n₁) is nowhere below it
        assert bayes_value(prior, factor * best[1].first, EPSILON, DELTA) >= least
    for first, spent in ((40.0, 0.1), (90.0, 0.3), (250.0, 0.5)):  # nor is any PAC policy
        assert worst_ratio(pac_policy(first, spent, EPSILON, DELTA), EPSILON) > least
    assert floor(prior._replace(price=0.0), EPSILON, DELTA, 100.0) < 0.01 * least  # errors cost nothing


@pytest.mark.parametrize("number", [1, adaptive.RUN + 1, 100])
def test_runs_of_sizes_that_are_not_looked_into_have_no_smaller_sum(number):
    generator = np.random.default_rng(1)
    pull, sizes = generator.random(200), np.append(0.0, np.cumsum(generator.random(number)))
    blame = -np.sort(-generator.exponential(10, (200, number + 1)), axis=1)  # errors fall as sizes grow
    before = np.append(0.0, sizes[:-1])
    plain = (pull[:, None] * before + blame).min(axis=1).tolist()
    assert adaptive._least_sums(pull, sizes, lambda row, size: blame[row, size]).tolist() == plain
