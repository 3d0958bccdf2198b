"""Certificates against every path of small races, and with an error planted in each step."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from oracles import CertifiedPairs

from ebr.theory import certificates, checker
from ebr.theory.certificates import Boundaries, Cell, Certificate

RULES = [
    Boundaries(3, (3, 5, 8), (1.0, 0.8), 0.3, 0.2, pruning=0.9),
    Boundaries(3, (2, 4, 7), (0.9, 0.7), 0.2, 0.2, pruning=0.5, floor=0.6),
    Boundaries(3, (4, 6), (1.1,), 0.25, 0.2, floor=0.9, shifts=(0.5,)),
    Boundaries(3, (7,), (), 0.4, 0.2),
]
ORACLES = [CertifiedPairs(r.looks, r.boundaries, r.epsilon, r.pruning, r.floor, r.shifts) for r in RULES]
CELLS = [(0.0, 0.1), (0.2, 0.25), (0.45, 0.6), (0.5, 0.5), (0.7, 0.95), (0.97, 1.0)]


def truths(rule, best, high, n_arms):
    """The worst rivals (shift, rate): m of them near, the others far, or farther."""
    near = [(0.0, high)]
    far = [(shift, high - shift) for shift in (rule.epsilon, *rule.shifts) if shift <= high]
    return [near * m + [kind] * (n_arms - 1 - m) for kind in far or near for m in range(n_arms)]


def faults():
    """Cells whose bound is below the exact failure or above the sum over the rivals; none if all is right."""
    for rule, oracle in zip(RULES, ORACLES, strict=True):
        for n_arms in (2, 3):
            for low, high in CELLS:
                bound = replace(rule, n_arms=n_arms).bound(low, high)
                inside = np.linspace(low, high, 3)
                exact = max(oracle.some(p, each) for p in inside for each in truths(rule, p, p, n_arms))
                corner = truths(rule, low, high, n_arms)
                least = max(oracle.some(low, each) for each in corner)
                most = max(sum(oracle.some(low, [one]) for one in each) for each in corner)
                slack = 1e-4 * 0.2 + 2e-8  # added for tails and rounding
                # With a third gap the bound takes the larger of two for each sum.
                loose = 1.3 if rule.shifts else 1.0
                if not max(exact, least) <= bound <= most * loose + slack:
                    yield rule, n_arms, low, high, bound, exact, least, most


def test_a_bound_lies_between_the_failure_on_every_path_and_the_sum_over_the_rivals():
    assert list(faults()) == []


def patched(name, planted):
    original = getattr(certificates, name)
    return name, lambda *args, **kwargs: planted(original, *args, **kwargs)


def with_(position, change):
    """The same function, with one argument changed."""

    def planted(original, *args):
        args = list(args)
        args[position] = change(args[position])
        return original(*args)

    return planted


PLANTED = {
    "a tie is hardly an error": patched("_ahead", lambda f, law, k: (f(law, k) + f(law, k + 1)) / 2),
    "a tie is an error": patched("_ahead", lambda f, law, behind: f(law, behind - 1)),
    "the sign is left out": patched("_errors", with_(2, lambda sign: False)),
    "the drop at the sign": patched("_errors", with_(2, lambda sign: True)),
    "strictly below the limit": patched("limits", lambda f, *a: f(*a) - 1),
    "one beyond the limit": patched("limits", lambda f, *a: np.minimum(f(*a) + 1, a[0])),
    "no floor": patched("limits", lambda f, count, c, floor, s: f(count, c, 0.01, s)),
    "a boundary shifted": patched("limits", lambda f, count, c, *a: f(count, 1.2 * c, *a)),
    "tables of the wrong look": patched(
        "_errors", with_(1, lambda tables: [np.full_like(each, -1) for each in tables[:1]] + tables[1:])
    ),
    "the best arm's rate for the rival's": patched("_errors", lambda f, *a: f(*a[:4], a[3], a[5])),
    "tails cut and not counted": patched("_kept", lambda f, law, cut: f(law, 0.02)),
    "paths that erred go on": patched("_errors", lambda f, *a: f(*a) * 1.05),
    "one rival fewer": patched("_together", lambda f, law, errors, n, delta: f(law, errors, n - 1, delta)),
    "near left out": patched("_errors", lambda f, *a: f(*a) * a[2]),
    "far left out": patched("_together", lambda f, law, errors, *rest: f(law, errors[:1], *rest)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_found(name, monkeypatch):
    certificates.limits.cache_clear()
    monkeypatch.setattr(certificates, *PLANTED[name])
    assert any(faults())


def test_rivals_together_are_averaged_the_right_way():
    # Given arm 1's whole path rivals are independent. Averaging first gives an upper bound.
    oracle, rule = ORACLES[0], RULES[0]
    kinds = [(0.3, 0.3)] * 3
    sure, tied = oracle.given(*kinds[0])
    alone = oracle.masses(0.6) @ (sure + tied / 2)
    exact, bound = oracle.some(0.6, kinds), replace(rule, n_arms=4).bound(0.6, 0.6)
    assert alone < exact < bound < 3 * alone + 1e-4
    assert bound < 1.1 * exact  # and not much above


def test_cells_follow_each_other_and_a_certificate_says_whether_they_do():
    rule = Boundaries(3, (10, 20, 40), (2.4, 2.2), 0.4, 0.1, pruning=0.95)
    found = rule.certificate()
    assert found.holds
    assert found.worst.bound <= 0.1
    assert str(found).startswith("certified: failures have probability 0.")
    assert not replace(rule, delta=0.02).certificate().holds
    first, second, *rest = found.cells
    for broken in (
        [second, *rest],
        [first, *rest],
        found.cells[:-1],
        [first._replace(bound=0.2), second, *rest],
        [first._replace(low=0.001), second, *rest],
    ):
        assert not replace(found, cells=tuple(broken)).holds
        assert str(replace(found, cells=tuple(broken))).startswith("not certified")
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
    for low, high in CELLS:
        ours = rule.bound(low, high)
        assert checker.failure(rule.looks, 3, tables, low, high) == pytest.approx(ours, abs=2e-5)


GAUSSIAN = [
    Boundaries(4, (40, 80, 160), (2.5, 2.4), 0.3, 0.05, 1.0, "Gaussian"),
    Boundaries(4, (40, 80, 160), (2.5, 2.4), 0.3, 0.05, 1.0, "Gaussian", 0.9),
    Boundaries(2, (40, 42, 160), (2.5, 2.4), 0.3, 0.05, 1.0, "Gaussian", 0.8),
    Boundaries(8, (30, 50, 90, 110), (2.9, 2.6, 2.2), 0.15, 0.05, 0.5, "Gaussian", 1.1),
    Boundaries(4, (160,), (), 0.3, 0.05, 1.0, "Gaussian"),
]


def simulated(rule, kinds, runs=200_000):
    """The share of simulated races with Gaussian rewards in which any rival errs; gaps are 0 or ε."""
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
    assert 0.99 * cell.bound < checked < cell.bound  # increments rounded up cost less than a hundredth
    mixed = [[0.0] * m + [rule.epsilon] * (rule.n_arms - 1 - m) for m in range(rule.n_arms)]
    worst = max(simulated(rule, kinds) for kinds in mixed)
    assert worst - 0.003 < checked < 1.15 * worst + 0.003  # six standard errors are at most 0.003


def planted_normal(change):
    """The function for the errors of Gaussian rivals, with changed arguments."""
    right = certificates._normal_errors
    return lambda times, highest, points, up: right(*change(times, highest, points, up))


@pytest.mark.parametrize(
    "change",
    [
        lambda times, highest, points, up: (times, highest, points, 0.0),  # rounded down
        lambda times, highest, points, up: (times, [*highest[:-1], np.inf], points, up),  # no sign
        lambda times, highest, points, up: (times, [1.02 * each for each in highest], points, up),
        lambda times, highest, points, up: (times**1.1, highest, points, up),
    ],
)
def test_an_error_planted_in_the_gaussian_law_is_found_by_the_checker(change, monkeypatch):
    monkeypatch.setattr(certificates, "_normal_errors", planted_normal(change))
    bound, checked = GAUSSIAN[0].normal_bound(), checker.largest_failure(asdict(GAUSSIAN[0]), 4)
    assert not 0.99 * bound < checked < bound
