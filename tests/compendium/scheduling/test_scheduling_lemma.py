"""The search for the best schedule, Algorithm 1's own schedule, and the tables that the checks read."""

import math

import numpy as np
import pytest
from compendium.scheduling import scheduling_lemma
from compendium.scheduling.scheduling_lemma import least_overpull

import ebr
from ebr.theory.schedules import GOLDEN, minimax_overpull, overpull


def least_ratio(rounds):
    return GOLDEN ** (2 * rounds - 1)


@pytest.mark.parametrize(("rounds", "ratio"), [(2, least_ratio(2)), (2, 400), (3, least_ratio(3)), (3, 5e3)])
def test_a_search_reaches_the_least_overpull_and_does_not_beat_it(rounds, ratio):
    rho = minimax_overpull(rounds, ratio)
    assert rho * (1 - 1e-11) <= least_overpull(rounds, ratio, seed=5) <= rho * 1.001
    generator, best = np.random.default_rng(6), math.inf
    for _ in range(4000):  # the seed is fixed: nothing is left to chance
        batches = ratio ** generator.random(rounds)
        best = min(best, overpull(batches * max(1, ratio / batches.sum() * (1 + 1e-12)), 1, ratio))
    assert rho * (1 - 1e-11) <= best <= rho * 1.5


@pytest.mark.parametrize(
    ("rounds", "ratio", "names"),
    [(7, 100, "rounds must be at most 6 .*7"), (2, 0.5, r"ratio must be above 1, got 0\.5")],
)
def test_the_search_names_bad_input(rounds, ratio, names):
    with pytest.raises(ValueError, match=names):
        least_overpull(rounds, ratio, 1)


def test_the_table_of_schedules_has_the_case_worked_by_hand():
    # N/R = 16 in two rounds: ρ(1 + ρ) = 16; the lemma as printed has ⅛ · 4.
    (row,) = scheduling_lemma.schedules([2], [4.0], 1).to_dict("records")
    rho = (math.sqrt(65) - 1) / 2
    assert [row[key] for key in ("exact", "attained", "printed")] == pytest.approx([rho, rho, 0.5])
    assert row["found"] == pytest.approx(rho, rel=1e-3)


def test_algorithm_1_adds_up_to_its_own_batches():
    race = ebr.ElasticBatchRacing(4, 0.05, 0.01, sigma=1.0)
    unit = 80 * math.log(3 * 4 / 0.01)
    expected = np.diff(race.pulls_by_round(3), prepend=0)
    assert unit * scheduling_lemma.ebr_batches(4, 0.05) == pytest.approx(expected, abs=1)


def test_algorithm_1_overpulls_by_at_most_the_ratio_of_its_totals_and_no_schedule_by_less_than_the_least():
    epsilon = 0.01
    table = scheduling_lemma.standings(range(1, 16), epsilon).set_index("rounds")
    assert (table["ebr"] <= epsilon ** (-2 / table.index) * (1 + 1e-12)).all()
    known = table["least"].dropna()
    assert known.index.tolist() == [t for t in range(1, 16) if t == 1 or least_ratio(t) <= epsilon**-2]
    assert (table["ebr"] >= table["least"] * (1 - 1e-12))[known.index].all()
    assert (known >= table["printed"][known.index]).all()
    assert table.loc[2, "ebr"] == pytest.approx(overpull([100, 9900], 1, 1e4))


def test_the_teeth_reach_the_least_overpull_once_a_round():
    saw = scheduling_lemma.teeth(3, 1000.0)
    rho = minimax_overpull(3, 1000.0)
    assert saw["ratio"].max() == pytest.approx(rho)
    assert (saw["ratio"] > rho * (1 - 1e-9)).sum() == 3


def test_what_is_proved_of_theorem_5_is_a_twelfth_and_an_eighth_from_two_rounds_on():
    # At T = 1 the root is N/R = 1/4ε², so that ρ ε²/3 = 1/12. At T = 2, ε = 1/8: ρ(1+ρ) = 16, over 3 · 8.
    assert scheduling_lemma.theorem_5().evidence[0].value == pytest.approx(1 / 12)
    least, later, over, expected = (row.value for row in scheduling_lemma.repaired_constants().evidence)
    assert [least, over, expected] == pytest.approx([1 / 12, 1, 1 / 72])
    assert later == pytest.approx((math.sqrt(65) - 1) / 2 / 24)


def test_part_2_of_the_lemmas_proof_does_not_follow_from_part_1():
    batches, printed = scheduling_lemma.part_two()
    first, second, third = batches
    assert first < 2 * 1
    assert second < 2 * first
    assert third < 2 * (first + second)
    assert printed == pytest.approx(first + 2 * second)
    assert third > printed
    # What part 2 is to prove is so all the same: Q⁽³⁾ < β²(β + 1) R.
    assert third < 2**2 * (2 + 1)
    with pytest.raises(ValueError, match="must obey part 1"):
        scheduling_lemma.part_two(("1.9", "3.7", "11.3"))
