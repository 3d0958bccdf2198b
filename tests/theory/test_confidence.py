"""The deviation functions against the printed formulas by hand and against sums over all outcomes."""

import math

import numpy as np
import pytest

from ebr.theory.confidence import deviation, fixed_count_deviation, sequential_deviation


def test_the_papers_deviation_by_hand():
    # σ = 1, nT/δ = e: D(τ) = √((4 + 2 log 2)/τ); 4 + 2 log 2 = 5.386294.
    assert deviation(4, n_arms=1, deadline=1, delta=math.exp(-1), sigma=1) == pytest.approx(
        math.sqrt(5.386294361 / 4)
    )
    # Linear in σ.
    assert deviation(7, 3, 2, 0.1, sigma=0.3) == pytest.approx(0.3 * deviation(7, 3, 2, 0.1, sigma=1))


def test_jun_et_als_deviation_by_hand():
    # n = 6, δ = 0.36: ω = 0.1; τ = 8: log₂ 16 = 4, so D = 4σ √(log 40 / 8).
    assert sequential_deviation(8, n_arms=6, delta=0.36, sigma=0.5) == pytest.approx(
        2 * math.sqrt(math.log(40) / 8)
    )


def test_hoeffdings_deviation_by_hand():
    # log(2/p) = 2: σ √(4/τ).
    assert fixed_count_deviation(np.array([16, 100]), 2 * math.exp(-2)) == pytest.approx([0.25, 0.1])
    assert fixed_count_deviation(16, 2 * math.exp(-2), sigma=3) == pytest.approx(1.5)
