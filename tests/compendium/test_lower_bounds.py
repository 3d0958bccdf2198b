"""The costs on hard problems against races counted by hand; the exact checks against closed forms."""

import math

import numpy as np
import pytest
from compendium import lower_bounds, partition_races
from oracles import Diary
from scipy.stats import norm

from ebr.theory import bounds

EPSILON, DELTA = 0.2, 0.1


def fixed(*pulls):
    """A family of one algorithm, which pulls so often in its only round."""
    return lambda *_: {"EBR": Diary((list(pulls),))}


def test_costs_tell_the_pulls_and_the_bounds_of_every_partition():
    table = partition_races.costs([(2, 2)], EPSILON, DELTA, 20, 1, fixed(30, 12))
    assert table["gamma"].tolist() == ["11", "22"]
    assert (table["pulls"] == 42).all()
    assert (table["error"] == 0).all()
    expected = [bounds.partition_lower_bound((k, k), EPSILON, 2, DELTA) for k in (1, 2)]
    assert table["lower"].to_numpy() == pytest.approx(expected)
    printed = math.log(1 / (2.4 * DELTA)) * 0.5 * 2  # 2σ² log(1/2.4δ) Σ, σ = ½, two arms
    smallest = np.array([math.sqrt(EPSILON) + EPSILON, EPSILON])
    assert table["printed"].to_numpy() == pytest.approx(printed / smallest**2)


def test_counts_are_of_races_where_each_arm_reaches_the_lemmas_count():
    # ⅔ log(1/2δ)/4 /(Δ + ε)² is 0.64 for Δ = √ε and 1.68 for Δ = ε; arm 1 is the best.
    needed = [math.log(5) / 6 / (gap + EPSILON) ** 2 for gap in (math.sqrt(EPSILON), EPSILON)]
    assert needed == pytest.approx([0.6405, 1.6765], rel=1e-3)
    (easy, hard) = partition_races.costs([(2, 2)], EPSILON, DELTA, 20, 1, fixed(30, 1)).to_dict("records")
    assert [(row["others"], row["best"], row["total"]) for row in (easy, hard)] == [(20, 20, 20), (0, 20, 20)]
    idle = partition_races.costs([(2, 2)], EPSILON, DELTA, 100, 1, fixed(1, 1))
    assert idle["best"].tolist() == [100, 0]
    assert idle["total"].tolist() == [0, 0]
    assert not lower_bounds.best_arm(idle).holds  # at ⅙, none of 100 has probability 1.2e-8


def test_a_cost_below_the_bound_refutes_theorem_3():
    below = lower_bounds.theorem_3(partition_races.costs([(2, 2)], EPSILON, DELTA, 20, 1, fixed(1, 1)))
    assert below.verdict == "fails as stated"
    values = {row.what: row.value for row in below.evidence}
    assert values["costs below the corrected bound"] == 2
    enough = lower_bounds.theorem_3(partition_races.costs([(2, 2)], EPSILON, DELTA, 20, 1, fixed(60, 60)))
    assert enough.verdict == "holds corrected"  # the printed bound is more than is proved for γ = (2, 2)


def test_the_proofs_of_theorem_3_for_two_arms_give_a_third_and_four_thirds():
    table = partition_races.costs([(2, 2)], EPSILON, DELTA, 20, 1, fixed(60, 60))
    paper, shifted, last, reached = lower_bounds.theorem_3_two_arms(table).evidence
    assert (paper.value, shifted.value, reached.value) == pytest.approx((1 / 3, 4 / 3, 1))
    assert last.value > 1


def test_the_exact_checks_find_their_closed_forms():
    _, second, third = lower_bounds.entropies().evidence
    assert second.value == pytest.approx(math.log(32 / 27) / 3, rel=1e-6)
    assert third.value == pytest.approx(3 / 32 * math.log(3) + 29 / 32 * math.log(29 / 31))
    least, _ = lower_bounds.one_round().evidence
    # z²/log(1/4δ(1−δ)) tends to π/2 as δ tends to ½.
    assert least.value == pytest.approx(math.pi / 2, abs=1e-3)
    at = norm.isf(0.49) ** 2 / math.log(1 / (4 * 0.49 * 0.51))
    assert least.value == pytest.approx(at)
