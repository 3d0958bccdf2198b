"""The deviation functions against numbers worked from the printed formulas."""

import math

import numpy as np
import pytest

from ebr.confidence import deviation, sequential_deviation


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


def test_both_shrink_and_accept_arrays():
    counts = np.arange(1, 2000)
    assert (np.diff(deviation(counts, 10, 5, 0.1)) < 0).all()
    assert (np.diff(sequential_deviation(counts, 10, 0.1)) < 0).all()
