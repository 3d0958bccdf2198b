"""Two arms, T rounds: policies and priors against closed forms, plain loops and a linear program."""

import math
from itertools import product

import numpy as np
import pytest
from compendium.two_arms import (
    fixed_looks,
    two_arms_grid,
    two_arms_policies,
    two_arms_prior,
    two_arms_solutions,
)
from compendium.two_arms.two_arms_grid import REACH, gap_grid, make_grid, weight
from compendium.two_arms.two_arms_policies import Plan, plan, profile
from compendium.two_arms.two_arms_search import ascend
from compendium.two_arms.two_arms_solutions import solution, solutions, strategy
from compendium.two_rounds.policies import Policy, complexity, ebr_policy
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import norm


def test_the_weight_is_the_complexity():
    gaps = np.array([0.0, 0.5, 1.0, 3.0, 100.0])
    assert 2 / (0.01**2 * weight(gaps)) == pytest.approx(complexity(gaps * 0.01, 0.01))


def test_the_likelihood_ratio_is_that_of_two_normal_laws():
    tau, z, r = 0.7, 1.3, 2.5
    law = norm(scale=math.sqrt(tau))
    x = math.sqrt(tau) * z
    both = (law.pdf(x - r * tau) + law.pdf(x + r * tau)) / 2 / law.pdf(x)
    assert two_arms_grid.likelihood(np.array([r]), tau, np.array([z]))[0] == pytest.approx(both)


@pytest.mark.parametrize("reach", [0.0, 1.7])
def test_the_error_after_another_look_is_an_integral(reach):
    here, there, z = 0.6, 1.5, 0.8
    x, more = math.sqrt(here) * z, there - here
    bar = reach * math.sqrt(there)

    def density(later, sign):  # density of a wrong sign at drift ±1, relative to drift 0 at x
        return math.exp(sign * later - there / 2) * norm.pdf(later, x, math.sqrt(more)) / 2

    right = quad(density, bar, 20, args=(-1,))[0] + quad(density, -20, -bar, args=(1,))[0]
    assert two_arms_grid.wrong(here, np.array([z]), there, reach)[0] == pytest.approx(right, rel=1e-9)


def one_threshold(grid, first, lag, cells):
    """Look at one τ, stop beyond some cells, otherwise look again `lag` steps later."""
    chances = np.zeros((first + 1, len(grid.information), 80))
    chances[first, lag, :cells] = 1
    chances[first, 0, cells:] = 1
    start = np.zeros(len(grid.information))
    start[first] = 1
    return Plan(start, (chances,))


def test_a_policy_of_one_threshold_is_the_known_one():
    epsilon, delta = 0.05, 0.01
    grid = make_grid(2, epsilon, delta, inside=3)
    law = profile(grid, one_threshold(grid, 20, 40, 50))
    first, both = grid.information[[20, 60]] * 2 / epsilon**2
    same = Policy(first, both - first, REACH * 50 / 80 / math.sqrt(first / 2))
    assert law.error == pytest.approx(same.error(epsilon), rel=1e-6)
    gaps = np.array([0.0, 1.0, 2.5, 8.0])
    assert law.ratios(gaps) == pytest.approx(
        same.cost(gaps * epsilon) / complexity(gaps * epsilon, epsilon), rel=1e-6
    )
    looks = fixed_looks.from_bars(grid.information[[20, 60]], np.array([REACH * 50 / 80]))
    assert looks.wrong(1.0) == pytest.approx(law.error, rel=1e-6)
    assert fixed_looks.ratios(looks, gaps) == pytest.approx(law.ratios(gaps), rel=1e-6)


def test_the_worst_ratio_bounds_every_gap():
    law = solution(3, 0.1, 0.01).profile()
    gaps = np.concatenate([np.linspace(0, 1, 777, endpoint=False), np.geomspace(1, 10, 3001)])
    worst = law.worst_ratio(10.0)
    assert law.ratios(gaps).max() <= worst <= 1.002 * law.ratios(gaps).max()


def test_the_slope_of_the_soft_value_is_what_the_policy_does():
    epsilon, delta = 0.1, 0.01
    grid, gaps = make_grid(3, epsilon, delta, 1.16, 40), gap_grid(epsilon)
    prior = solution(3, epsilon, delta).prior._replace(
        gaps=gaps, chances=np.full(len(gaps), 1 / len(gaps)), price=2000.0
    )
    policy, value = plan(grid, 3, prior, epsilon, 0.05)
    law = profile(grid, policy)
    assert plan(grid, 3, prior._replace(price=2000.1), epsilon, 0.05)[1] - value == pytest.approx(
        0.1 * law.error, rel=1e-3
    )
    more = prior.chances + 1e-5 * np.eye(len(gaps))[5]
    step = plan(grid, 3, prior._replace(chances=more), epsilon, 0.05)[1] - value
    assert step == pytest.approx(1e-5 * law.ratios(gaps)[5], rel=1e-3)


def test_no_policy_beats_a_prior():
    """Weak duality: any policy's Bayes value is at least the prior's bound on the finest grid."""
    epsilon, delta = 0.1, 0.01
    found = solution(3, epsilon, delta)
    law = profile(make_grid(3, epsilon, delta), found.plan())
    mine = law.ratios(found.prior.gaps) @ found.prior.chances + found.prior.price * (law.error - delta)
    assert found.bound(1.02) <= mine


def test_no_looks_between_those_of_the_grid_beat_a_prior():
    found = solution(2, 0.1, 0.01)
    least = math.inf
    for first, longer, bar in product(np.geomspace(0.05, 3, 25), np.geomspace(1.5, 60, 25), (1.4, 1.8, 2.2)):
        looks = fixed_looks.from_bars(np.array([first, longer * first]), np.array([bar]))
        mean = fixed_looks.ratios(looks, found.prior.gaps) @ found.prior.chances
        least = min(least, mean + found.prior.price * (looks.wrong(1.0) - 0.01))
    for step in (1.02, 1.3, 2.0):
        assert 0.7 * least / step**0.5 < found.bound(step) < least


def test_the_last_look_is_the_best_of_all():
    prior, grid = solution(2, 0.1, 0.01).prior, make_grid(2, 0.1, 0.01, 1.3, 12, 1, 0.02)
    charges, paces = two_arms_prior.charged(grid), two_arms_policies.pace(grid, prior.gaps, prior.chances)
    found = two_arms_prior.last_look(grid, charges, paces, prior.price, 20)
    more = np.geomspace(1e-7, 200, 20_000)[:, None]
    for j in range(20):
        here = grid.information[j]
        costs = (here + more - charges[j]) * paces[j]
        costs += prior.price * two_arms_grid.wrong(here, grid.nodes, here + more)
        least = np.minimum(costs.min(axis=0), prior.price * grid.risks()[j])
        assert found[j] == pytest.approx(least, rel=1e-4)
        assert (found[j] <= least * (1 + 1e-9)).all()


def test_more_rounds_never_cost_more():
    prior = solution(2, 0.1, 0.01).prior
    values = [two_arms_prior.bayes_bound(rounds, 0.1, 0.01, prior, 1.05) for rounds in (2, 3, 4)]
    assert values[0] >= values[1] >= values[2]


def test_one_round_in_closed_form():
    found = solution(1, 0.02, 0.003)
    quantile = float(ndtri(0.003))
    assert found.bound() == pytest.approx(2 * 51**2 * quantile**2)
    grid = make_grid(2, 0.02, 0.003, 1.01, 10, 1, 0.5)  # only its τ are used
    values = 2 * 51**2 * grid.information + found.prior.price * (ndtr(-np.sqrt(grid.information)) - 0.003)
    assert values.min() == pytest.approx(found.bound(), rel=1e-4)
    assert found.looks.wrong(1.0) == pytest.approx(0.003)


def test_the_laws_of_sharp_and_elastic_racing():
    known = ebr_policy(0.03, 0.02)
    looks = fixed_looks.elastic_looks(2, 0.03, 0.02)
    assert looks.times * 2 / 0.03**2 == pytest.approx([known.first, known.first + known.second])
    assert looks.high == pytest.approx(known.threshold * looks.times[:1] / 0.03)
    for deadline in (1, 2, 3, 4):
        assert fixed_looks.sharp_looks(deadline, 0.03, 0.02).wrong(1.0) <= 0.02 * (1 + 1e-9)


def test_looks_fixed_in_advance_are_made_better_by_the_search():
    found = fixed_looks.best_looks(3, 0.1, 0.01)
    assert found.wrong(1.0) == pytest.approx(0.01, rel=1e-5)
    assert found.wrong(1.0) <= 0.01
    sharp = fixed_looks.sharp_looks(3, 0.1, 0.01)
    assert fixed_looks.worst_ratio(found, 0.1) < fixed_looks.worst_ratio(sharp, 0.1)


def test_an_ascent_raises_the_bayes_value():
    grid, gaps = make_grid(2, 0.1, 0.01, 1.16, 40), gap_grid(0.1)
    place, unit = np.append(np.full(len(gaps), 1 / len(gaps)), 0.3), 80.0
    found, value = ascend(grid, 2, 0.1, 0.01, 0.05, place, unit, 40)
    assert found[:-1].sum() == pytest.approx(1)
    assert 80 < value < 105


def test_the_file_has_every_solution():
    assert set(solutions()) == set(product((2, 3, 4), two_arms_solutions.EPSILONS, two_arms_solutions.DELTAS))
    for found in solutions().values():
        assert found.prior.chances.sum() == pytest.approx(1, abs=1e-9)
        assert found.prior.chances.min() > 0
        assert found.prior.gaps.max() <= 1 / found.epsilon * (1 + 1e-9)


# Notebook 19 does the same, with fewer nodes, where ε is a power of ten. Here are the other ε.
PLACES = [place for place in sorted(solutions()) if place[1] in (0.03, 0.003)]


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_policy_and_prior_meet_and_the_policy_is_pac(place):
    found = solution(*place)
    law = found.profile(inside=3)
    assert law.error <= found.delta
    ratio, bound = law.worst_ratio(1 / found.epsilon), found.bound(1.03)
    assert bound <= ratio <= bound * 1.03


def test_between_solved_problems_the_next_smaller_one_is_played():
    between, solved = strategy(2, 0.05, 0.02)[1], strategy(2, 0.03, 0.01)[1]
    assert between.first.tolist() == solved.first.tolist()


@pytest.mark.slow
def test_the_file_can_be_made_anew(tmp_path, monkeypatch):
    monkeypatch.setattr("compendium.two_arms.two_arms_solutions.DEADLINES", (2,))
    monkeypatch.setattr("compendium.two_arms.two_arms_solutions.DELTAS", (0.01,))
    two_arms_solutions.renew(tmp_path / "solved.json", epsilons=(0.1,))
    assert '"deadline": 2' in (tmp_path / "solved.json").read_text()
