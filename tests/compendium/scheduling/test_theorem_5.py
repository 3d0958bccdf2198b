"""The search for the best schedule, Algorithm 1's own schedule, and the tables that the checks read."""

import math
from fractions import Fraction

import numpy as np
import pytest
from compendium.scheduling import theorem_5
from compendium.scheduling.batch_schedules import GOLDEN, minimax_overpull, overpull

import ebr


def test_algorithm_1_overpulls_by_at_most_the_ratio_of_its_totals_and_no_schedule_by_less_than_the_least():
    epsilon = 0.01
    table = theorem_5.standings(range(1, 16), epsilon).set_index("rounds")
    assert (table["ebr"] <= epsilon ** (-2 / table.index) * (1 + 1e-12)).all()
    known = table["least"].dropna()
    assert known.index.tolist() == [t for t in range(1, 16) if t == 1 or GOLDEN ** (2 * t - 1) <= 1e4]
    assert (table["ebr"] >= table["least"] * (1 - 1e-12))[known.index].all()
    assert (known >= table["printed"][known.index]).all()
    assert table.loc[2, "ebr"] == pytest.approx(overpull([100, 9900], 1, 1e4))
    # Algorithm 1's own batches, up to the ceiling.
    batches = np.diff(ebr.ElasticBatchRacing(4, epsilon, 0.01, sigma=1.0).pulls_by_round(3), prepend=0)
    unit = 80 * math.log(3 * 4 / 0.01)
    assert table.loc[4, "ebr"] == pytest.approx(overpull(batches, unit, unit * 1e4), rel=1e-2)


def test_the_teeth_reach_the_least_overpull_once_a_round():
    saw = theorem_5.teeth(3, 1000.0)
    rho = minimax_overpull(3, 1000.0)
    assert saw["ratio"].max() == pytest.approx(rho)
    assert (saw["ratio"] > rho * (1 - 1e-9)).sum() == 3


def test_part_2_of_the_lemmas_proof_does_not_follow_from_part_1():
    first, second, third = (Fraction(str(batch)) for batch in theorem_5.BATCHES)
    assert (first < 2, second < 2 * first, third < 2 * (first + second)) == (True,) * 3
    # But what part 2 is to prove is true: Q⁽³⁾ < β²(β + 1) R.
    assert first + 2 * second < third < 2**2 * (2 + 1)


def test_the_sawtooth_ends_below_n_and_its_top_is_the_overpull():
    for batches, highest in (([2, 8], 2), ([2, 8], 10), ([2, 4, 13], 18)):
        x, ratio = theorem_5.sawtooth(batches, highest)
        assert x.min() == 1
        assert x.max() < highest
        assert ratio.max() == pytest.approx(overpull(batches, 1, highest), rel=1e-14)
    assert theorem_5.sawtooth([3.0], 3, points=3)[1].tolist() == pytest.approx([3, math.sqrt(3)])
