"""Divergences of a pair (X4's likelihood ratio) against a search and by hand, and of single means."""

import math

import numpy as np
import pytest
from oracles import kl
from scipy.optimize import minimize_scalar

from ebr.theory.divergence import bisected, pair_divergence, relative_entropy

GRID = np.array([0, 1e-9, 0.003, 0.1, 0.25, 0.5, 0.62, 0.9, 0.999, 1])
SHIFTS = [0.0, 1e-6, 0.01, 0.1, 0.4, 0.5, 0.8, 0.999]
every_shift = pytest.mark.parametrize("shift", SHIFTS)


def pairs():
    """Every pair (leader, other) of the grid in which the other is not better."""
    return np.array([(leader, other) for leader in GRID for other in GRID if other <= leader]).T


@every_shift
def test_the_pairs_divergence_is_the_smallest_sum_of_two(shift):
    found = pair_divergence(*pairs(), shift)
    for leader, other, divergence in zip(*pairs(), found, strict=True):

        def total(p, leader=leader, other=other):
            return kl(leader, p) + kl(other, p + shift)

        search = minimize_scalar(total, bounds=(0, 1 - shift), method="bounded", options={"xatol": 1e-13})
        ends = [total(0), total(1 - shift)]
        assert divergence == pytest.approx(min(search.fun, *ends), rel=1e-7, abs=1e-9)


@every_shift
def test_the_pairs_divergence_grows_with_the_distance_and_is_at_least_its_square(shift):
    many = np.sort(np.append(GRID, np.linspace(0, 1, 201)))
    table = pair_divergence(many[:, None], many, shift)  # leader × other
    behind = many[:, None] >= many
    assert np.isfinite(table[behind]).all()
    squares = (many[:, None] - many + shift) ** 2  # Pinsker: 2x² + 2y² ≥ (x + y)²
    assert (table >= squares - 1e-12)[behind].all()
    assert (np.diff(table, axis=1) <= 1e-12)[behind[:, 1:]].all()
    assert (np.diff(table, axis=0) >= -1e-12)[behind[:-1]].all()
    assert (pair_divergence(many[:, None], many, shift + 0.0005) >= table - 1e-12)[behind].all()


@pytest.mark.parametrize("shift", [0.0288, 0.0646, 0.08, 0.3])
def test_means_that_rounding_keeps_just_off_an_end_have_a_finite_divergence(shift):
    # p + s must not round to 1, nor p to 0. The divergence would be infinite and certify anything.
    off = np.arange(60) * 2.0**-53
    ends = -math.log1p(-shift)  # kl(1, 1 − s) and kl(0, s)
    assert pair_divergence(1 - off, 1 - off, shift) == pytest.approx(ends, rel=1e-9)
    assert pair_divergence(off, off, shift) == pytest.approx(ends, rel=1e-9)


@pytest.mark.parametrize(("x", "y"), [(0.5, 0.25), (0.1, 0.9), (2 / 3, 1e-9), (3 / 32, 1 / 32)])
def test_the_relative_entropy_by_hand(x, y):
    expected = x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))
    assert float(relative_entropy(x, y)) == pytest.approx(expected, rel=1e-12)
    assert relative_entropy([x, 0, 1], y) == pytest.approx([expected, -math.log1p(-y), -math.log(y)])


def test_the_relative_entropy_at_its_ends():
    assert relative_entropy([0, 1, 0.3, 0, 1, 0.5], [0, 1, 0.3, 1, 0, 0]).tolist() == [0] * 3 + [math.inf] * 3


def test_bisection_ends_at_the_two_numbers_around_the_place():
    low, high = bisected(np.array([1.0, 0.0]), np.array([2.0, 2.0]), lambda x: x * x > 2)
    assert (low**2 <= 2).all() and (high**2 > 2).all() and (high - low).max() < 1e-9  # noqa: PT018
