"""Certificates: against every path of small races, and with an error planted in each step."""

from dataclasses import replace

import numpy as np
import pytest
from oracles import CertifiedPairs

from ebr.live import checker
from ebr.theory import certificates
from ebr.theory.certificates import Boundaries, Cell, Certificate, Law, certificate

RULES = [
    Boundaries((3, 5, 8), (1.0, 0.8), 0.3, 0.9),
    Boundaries((2, 4, 7), (0.7, 0.7), 0.2, 0.5),
    Boundaries((4, 6), (1.1,), 0.25, 1.0, (0.5,)),
    Boundaries((7,), (), 0.4),
]
ORACLES = [CertifiedPairs(*rule) for rule in RULES]
CELLS = [(0.0, 0.1), (0.2, 0.25), (0.45, 0.6), (0.5, 0.5), (0.7, 0.95), (0.97, 1.0)]


def truths(rule, best, high, n_arms):
    """Rivals (shift, rate) as bad as they may be: m of them near, the others far, or farther."""
    near = [(0.0, high)]
    far = [(shift, high - shift) for shift in (rule.epsilon, *rule.shifts) if shift <= high]
    return [near * m + [kind] * (n_arms - 1 - m) for kind in far or near for m in range(n_arms)]


def faults():
    """Where a bound is below what every path says, or above the sum over the rivals; nothing, if right."""
    for rule, oracle in zip(RULES, ORACLES, strict=True):
        for n_arms in (2, 3):
            law = Law(rule, n_arms, 0.2)
            for low, high in CELLS:
                bound = law.bound(low, high)
                inside = np.linspace(low, high, 3)
                exact = max(oracle.some(p, each) for p in inside for each in truths(rule, p, p, n_arms))
                corner = truths(rule, low, high, n_arms)
                least = max(oracle.some(low, each) for each in corner)
                most = max(sum(oracle.some(low, [one]) for one in each) for each in corner)
                slack = 1e-4 * 0.2 + 2e-8  # what is added for tails and rounding
                # With a third gap the bound takes the worse of two for each sum.
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
    "a boundary shifted": patched("limits", lambda f, count, c, s: f(count, 1.2 * c, s)),
    "tables of the wrong look": patched(
        "_errors", with_(1, lambda tables: [np.full_like(each, -1) for each in tables[:1]] + tables[1:])
    ),
    "the best arm's rate for the rival's": patched("_errors", lambda f, *a: f(*a[:4], a[3], a[5])),
    "tails cut and not counted": patched("_kept", lambda f, law, cut: f(law, 0.02)),
    "paths that erred go on": patched("_errors", lambda f, *a: f(*a) * 1.05),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_is_found(name, monkeypatch):
    certificates.limits.cache_clear()
    monkeypatch.setattr(certificates, *PLANTED[name])
    assert any(faults())


class Wrong(Law):
    """A law with an error in how rivals or rates are taken together."""

    error = ""

    def bound(self, low, high):
        if self.error == "a cell is not bounded":
            return max(super().bound(low, low), super().bound(high, high))
        if self.error == "one rival fewer":
            return certificates.Law(self.rule, self.n_arms - 1, self.delta).bound(low, high)
        return super().bound(low, high)

    @property
    def families(self):
        made = super().families
        never = (0.0, [np.full_like(table, -1) for table in made[0][1]], False)
        return {"near left out": [never, *made[1:]], "far left out": made[:1]}.get(self.error, made)


@pytest.mark.parametrize(
    "error", ["a cell is not bounded", "one rival fewer", "near left out", "far left out"]
)
def test_an_error_planted_in_the_law_is_found(error, monkeypatch):
    monkeypatch.setattr(f"{__name__}.Law", Wrong)
    monkeypatch.setattr(Wrong, "error", error)
    assert any(faults())


def test_rivals_together_are_averaged_the_right_way():
    # Given arm 1's whole path rivals are independent; to average first is to bound from above.
    oracle, rule = ORACLES[0], RULES[0]
    law = Law(rule, 4, 0.2)
    kinds = [(0.3, 0.3)] * 3
    sure, tied = oracle.given(*kinds[0])
    alone = oracle.masses(0.6) @ (sure + tied / 2)
    exact, bound = oracle.some(0.6, kinds), law.bound(0.6, 0.6)
    assert alone < exact < bound < 3 * alone + 1e-4
    assert bound < 1.1 * exact  # and hardly above


def test_cells_follow_each_other_and_a_certificate_says_whether_they_do():
    rule = Boundaries((10, 20, 40), (2.4, 2.2), 0.4, 0.95)
    found = certificate(rule, 3, 0.1)
    assert found.holds
    assert found.worst.bound <= 0.1
    assert str(found).startswith("certified: failures have probability 0.")
    assert not certificate(rule, 3, 0.02).holds
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
def test_limits_rise_and_are_those_of_the_checker(count, critical, shift):
    table = certificates.limits(count, critical, shift)
    assert table.tolist() == checker.largest_beaten(count, critical, shift)
    assert (np.diff(table) >= 0).all()


def test_the_checker_finds_the_same_bound_and_the_same_failures():
    rule = Boundaries((10, 20, 40), (2.4, 2.2), 0.4, 0.95, (0.6,))
    said = {**rule._asdict(), "delta": 0.1}
    assert checker.largest_failure(said, 3) <= 0.1
    assert checker.largest_failure({**said, "delta": 0.02}, 3) == np.inf
    tables = {shift: [table.tolist() for table in each] for shift, each, _ in Law(rule, 3, 0.1).families}
    for low, high in CELLS:
        ours = Law(rule, 3, 0.1).bound(low, high)
        assert checker.failure(rule.looks, 3, tables, low, high) == pytest.approx(ours, abs=2e-5)


def test_gaussian_looks_are_one_cell_and_with_one_look_bechhofers():
    rule = Boundaries((40, 80, 160), (2.5, 2.4), 0.3)
    (cell,) = certificate(rule, 4, 0.05, "Gaussian", 1.0).cells
    assert cell[:2] == (0.0, 1.0)
    generator = np.random.default_rng(1)  # of 200,000 races; six standard errors are 0.003
    steps = generator.standard_normal((200_000, 4, 3)) * np.sqrt(np.diff([0, *rule.looks]))
    walks = steps.cumsum(axis=2)
    noise = (walks[:, 1:] - walks[:, :1]) / np.sqrt(2 * np.array(rule.looks))
    last = rule.epsilon * np.sqrt(rule.looks[-1] / 2)
    crossed = (noise > [*rule.boundaries, last]).any(axis=(1, 2)).mean()
    assert crossed - 0.003 < cell.bound < 1.15 * crossed
    one = certificate(Boundaries((160,), (), 0.3), 4, 0.05, "Gaussian", 1.0).worst.bound
    assert one == pytest.approx((noise[:, :, 2] > last).any(axis=1).mean(), abs=0.003)
    assert certificate(rule._replace(pruning=0.9), 4, 0.05, "Gaussian", 1.0).worst.bound > cell.bound
    with pytest.raises(ValueError, match=r"^looks must be at least 1\.05 times the one before"):
        certificate(Boundaries((100, 102), (2.0,), 0.3), 4, 0.05, "Gaussian", 1.0)
