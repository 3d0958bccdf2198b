"""Certificates: against every path of small races, and with an error planted in each step."""

import math
from dataclasses import asdict, replace

import numpy as np
import pytest
from oracles import CertifiedPairs
from scipy.stats import norm

from ebr.theory import certificates, checker
from ebr.theory.certificates import Boundaries, Cell, Certificate

RULES = [
    Boundaries(4, (3, 5, 8), (1.0, 0.8), 0.3, 0.2, pruning=0.9),
    Boundaries(4, (2, 4, 7), (0.9, 0.7), 0.2, 0.2, pruning=0.5, floor=0.6),
    Boundaries(4, (2, 4, 7), (3.0, 2.7), 0.2, 0.2, pruning=0.4),
    Boundaries(4, (4, 6), (1.1,), 0.25, 0.2, floor=0.9, shifts=(0.5,)),
    Boundaries(4, (7,), (), 0.4, 0.2),
]
ORACLES = [CertifiedPairs(r.looks, r.boundaries, r.epsilon, r.pruning, r.floor, r.shifts) for r in RULES]
CELLS = [(0.0, 0.1), (0.2, 0.25), (0.45, 0.6), (0.5, 0.5), (0.7, 0.95), (0.97, 1.0)]
PARTS = 3


def faults():
    """Where a bound is not the one by every path and all chains; nothing, if right."""
    for rule, oracle in zip(RULES, ORACLES, strict=True):
        for n_arms in (2, 3, 4):
            for low, high in CELLS:
                cell = np.array([low]), np.array([high])
                bound = replace(rule, n_arms=n_arms).failures(*cell, PARTS)[0]
                plain = oracle.failure(n_arms, low, high, PARTS)
                if not -1e-12 <= bound - plain <= 3e-5:  # what is added for tails and rounding
                    yield rule, n_arms, low, high, bound, plain


def test_a_bound_is_the_one_by_every_path_and_all_chains():
    assert list(faults()) == []


def patched(name, planted):
    original = getattr(certificates, name)
    return name, lambda *args: planted(original, *args)


def scaled(pair, look, factor):
    """A pair's law with the errors of one look changed."""
    pair.laws[look] = pair.laws[look] * factor
    return pair


def scaled_columns(table, best, others):
    """What happens to the best arm, and to good ones, with other probabilities."""
    return table * np.array([best, *[others] * (table.shape[1] - 1)])


PLANTED = {
    "half of the sign is left out": patched("Pair", lambda f, *args: scaled(f(*args), -1, 0.5)),
    "the first look is left out": patched("Pair", lambda f, *args: scaled(f(*args), 0, 0)),
    "the sign where arms are dropped": patched(
        "Pair", lambda f, race, shift, *rest: f(race, max(shift, 1e-9), *rest)
    ),
    "tails cut and not counted": patched("Pair", lambda f, *args: f(*args[:-1], 0.02)),
    "strictly below the limit": patched("limits", lambda f, *a: f(*a) - 1),
    "one beyond the limit": patched("limits", lambda f, *a: np.minimum(f(*a) + 1, a[0])),
    "no floor": patched("limits", lambda f, count, c, floor, s: f(count, c, 0.01, s)),
    "a boundary shifted": patched("limits", lambda f, count, c, *a: f(count, 1.2 * c, *a)),
    "one bad arm fewer": patched(
        "_some", lambda f, errors, many: np.append(0 * f(errors, 1), f(errors, many)[:-1], 0)
    ),
    "no arm is dropped": patched(
        "_chains", lambda f, failing, drops: f(failing, scaled_columns(drops, 0, 1))
    ),
    "chains have two good arms at most": patched(
        "_chains", lambda f, failing, drops: f(failing, scaled_columns(drops, 1, 0))
    ),
    "a bad arm errs only against the best": patched(
        "_chains", lambda f, failing, drops: f(scaled_columns(failing, 1, 0), drops)
    ),
    "chains are counted once": patched(
        "_chains", lambda f, failing, drops: f(failing, scaled_columns(drops, 0.5, 1))
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_found(name, monkeypatch):
    certificates.limits.cache_clear()
    monkeypatch.setattr(certificates, *PLANTED[name])
    assert any(faults())


@pytest.mark.parametrize("wrong", ["the first rate", "the second rate", "the law of the last sum"])
def test_a_wrong_weight_is_found(wrong, monkeypatch):
    right = certificates.Pair.weights
    place = {"the first rate": 0, "the second rate": 1}.get(wrong)

    def weights(self, look, arm, rates):
        off = arm == place if place is not None else look + 1 == len(self.looks)
        return right(self, look, arm, rates) * (1 + 0.01 * off)

    monkeypatch.setattr(certificates.Pair, "weights", weights)
    assert any(faults())


def test_cells_follow_each_other_and_a_certificate_says_whether_they_do():
    rule = Boundaries(3, (10, 20, 40), (2.4, 2.2), 0.4, 0.1, pruning=0.95)
    found = rule.certificate()
    assert found.holds
    assert found.worst.bound <= 0.1
    assert not replace(rule, delta=0.02).certificate().holds
    assert found.cells[0] == (0.0, 0.4, 0.0)  # there no arm can be worse by ε
    first, second, *rest = found.cells
    for broken in (
        [second, *rest],
        [first, *rest],
        found.cells[:-1],
        [first._replace(bound=0.2), second, *rest],
        [first._replace(low=0.001), second, *rest],
    ):
        assert not replace(found, cells=tuple(broken)).holds
    assert Certificate(0.1, (Cell(0.0, 1.0, 0.1),)).holds


@pytest.mark.parametrize(("count", "critical"), [(12, 1.5), (40, 3.0), (85, 3.7558), (200, 6.0), (9, 0.3)])
@pytest.mark.parametrize("shift", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("floor", [0.2, 2.5, 10.0])
def test_limits_rise_and_are_those_of_the_checker(count, critical, floor, shift):
    table = certificates.limits(count, critical, floor, shift)
    assert table.tolist() == checker.largest_beaten(count, critical, floor, shift)
    assert (np.diff(table) >= 0).all()


def test_the_checker_finds_the_same_bound_and_the_same_failures():
    rule = Boundaries(3, (10, 20, 40), (2.4, 2.2), 0.4, 0.1, pruning=0.95, floor=2.3, shifts=(0.6,))
    assert checker.largest_failure(asdict(rule), 3) <= 0.1
    assert checker.largest_failure(asdict(replace(rule, delta=0.02)), 3) == np.inf
    tables = {shift: [rule.refuted(look, shift).tolist() for look in (0, 1)] for shift in (0.0, 0.4, 0.6)}
    for low, high in ((0.4, 0.5), (0.6, 0.9), (0.97, 1.0)):
        edges = np.linspace(low, high, math.ceil((high - low) / 0.4 * checker.BEST) + 1)
        ours = max(rule.failures(edges[:-1], edges[1:], checker.GOOD))
        assert checker.failure(rule.looks, 3, tables, low, high) == pytest.approx(ours, abs=2e-5)


def test_with_far_too_many_rewards_for_epsilon_nothing_is_certified():
    # At the middle rates some sums have probabilities below the least number above 0.
    rule = Boundaries(2, (10, 2500), (0.3,), 0.6, 0.05, floor=0.3)
    assert rule.failures(np.array([0.6, 0.8]), np.array([0.8, 1.0]), 1) == [1.0, 1.0]
    assert checker.largest_failure(asdict(rule), 2) == np.inf


def test_looks_that_are_too_near_for_simpsons_rule_are_not_certified():
    for last, certified in ((10**6 + 1, False), (10**6 + 100, True)):
        rule = Boundaries(2, (10**6, last), (3.17,), 1.7 * math.sqrt(2 / last), 0.1, 1.0, "Gaussian")
        found = checker.largest_failure(asdict(rule), 2)
        assert found >= norm.sf(1.7)  # the sign of the difference at the last look
        assert (found < 0.046) == certified
        assert norm.sf(1.7) <= rule.normal_bound() < 0.046


GAUSSIAN = [
    Boundaries(4, (40, 80, 160), (2.5, 2.4), 0.3, 0.05, 1.0, "Gaussian"),
    Boundaries(4, (40, 80, 160), (2.5, 2.4), 0.3, 0.05, 1.0, "Gaussian", 0.9),
    Boundaries(2, (40, 42, 160), (2.5, 2.4), 0.3, 0.05, 1.0, "Gaussian", 0.8),
    Boundaries(8, (30, 50, 90, 110), (2.9, 2.6, 2.2), 0.15, 0.05, 0.5, "Gaussian", 1.1),
    Boundaries(4, (160,), (), 0.3, 0.05, 1.0, "Gaussian"),
]


def simulated(rule, kinds, runs=200_000):
    """How often some rival errs, of Gaussian rewards: rivals with a gap of 0 or ε."""
    looks, generator, sigma = np.array(rule.looks), np.random.default_rng(1), rule.sigma
    steps = generator.standard_normal((runs, rule.n_arms, len(looks))) * sigma * np.sqrt(np.diff([0, *looks]))
    walks = steps.cumsum(axis=2)
    ahead = walks[:, 1:] - walks[:, :1] - np.array(kinds)[:, None] * looks
    reach = np.append(rule.boundaries, np.inf) * sigma * np.sqrt(2 * looks)
    wrong = (ahead > rule.pruning * reach) | (
        (ahead + rule.epsilon * looks > reach) & (np.array(kinds) > 0)[:, None]
    )
    wrong[:, :, -1] = (ahead[:, :, -1] > 0) & (np.array(kinds) > 0)
    return wrong.any(axis=(1, 2)).mean()


@pytest.mark.parametrize("rule", GAUSSIAN)
def test_a_gaussian_bound_lies_above_the_truth_and_the_checkers_own_hardly_below_it(rule):
    (cell,) = rule.certificate().cells
    assert cell[:2] == (0.0, 1.0)
    checked = checker.largest_failure(asdict(rule), rule.n_arms)
    assert 0.98 * cell.bound < checked < cell.bound  # increments rounded up cost less than a fiftieth
    worst = simulated(rule, [rule.epsilon] * (rule.n_arms - 1))
    assert worst - 0.003 < checked < 1.15 * worst + 0.003  # six standard errors are 0.003 and less


@pytest.mark.parametrize("rule", GAUSSIAN[:4])
def test_rounding_up_and_down_enclose_the_law_of_the_checker(rule):
    times = np.array(rule.looks) / rule.looks[-1]
    high = np.append(rule.pruning * np.array(rule.boundaries) * np.sqrt(times[:-1]), 0.4)
    low = np.append(-0.8 * high[:-1], -np.inf)
    down, up = (certificates._normal_errors(times, high, low, 2**13, up).sum() for up in (0.0, 1.0))
    checked = checker.normal_errors(times, high, low, 400)[1].sum()
    assert down < checked < up < 1.02 * down


@pytest.mark.parametrize("part", ["highest", "lowest", "times"])
def test_an_error_planted_in_the_gaussian_law_is_found_by_the_checker(part, monkeypatch):
    right = certificates._normal_errors

    def wrong(times, highest, lowest, points, up):
        if part == "times":
            times = times**1.1
        return right(
            times, highest + 0.01 * (part == "highest"), lowest + 0.2 * (part == "lowest"), points, up
        )

    monkeypatch.setattr(certificates, "_normal_errors", wrong)
    rule = replace(GAUSSIAN[0], pruning=0.3)
    bound, checked = rule.normal_bound(), checker.largest_failure(asdict(rule), 4)
    assert not 0.99 * bound < checked < bound
