"""Section 5's claims: each check passes on a table where the claim holds and fails on a planted error."""

import math

import numpy as np
import pandas as pd
import pytest
from compendium.shared import lineup
from compendium.shared.traces import trace
from compendium.simulations import section_5

from ebr.theory.problems import setup_1


def plant(frame, column, value, **where):
    mask = np.logical_and.reduce([frame[key] == wanted for key, wanted in where.items()])
    assert mask.any()
    return frame.assign(**{column: frame[column].where(~mask, value)})


def test_a_table_that_fulfils_every_claim_passes(fulfilled):
    claims = {finding.claim for finding in section_5.findings(fulfilled) if finding.holds}
    assert claims == {f"C{k}" for k in [*range(22, 28), 31]}


@pytest.mark.parametrize(
    ("claims", "column", "value", "where"),
    [
        ({"C22"}, "failures", 1, {"setup": "Setup 2", "algorithm": "AE", "deadline": 50}),
        ({"C23", "C31"}, "pulls", 0.9, {"setup": "Setup 1", "algorithm": "AE", "epsilon": 0.3}),
        ({"C23", "C25", "C31"}, "pulls", 1.0, {"setup": "Setup 1", "algorithm": "passive", "epsilon": 0.3}),
        ({"C24"}, "pulls", 0.02, {"setup": "Setup 1", "algorithm": "EBR", "deadline": 50}),
        ({"C25", "C31"}, "pulls", 9.9, {"setup": "Setup 2", "algorithm": "passive", "epsilon": 0.1}),
        ({"C25", "C31"}, "pulls", 9.9, {"setup": "Setup 2", "algorithm": "kδER", "epsilon": 0.1}),
        ({"C25"}, "pulls", 0.09, {"setup": "Setup 2", "algorithm": "sequential", "epsilon": 0.1}),
        ({"C26"}, "pulls", 200.0, {"setup": "Setup 1", "algorithm": "AE", "deadline": 2}),
        ({"C27"}, "pulls", 50.0, {"setup": "Setup 1", "algorithm": "kδER", "deadline": 2}),
        ({"C31"}, "pulls", 90.0, {"setup": "Setup 2", "algorithm": "AE", "epsilon": 0.3}),
        ({"C31"}, "pulls", 1.1, {"setup": "Setup 2", "algorithm": "AE", "epsilon": 0.3}),
    ],
)
def test_a_planted_error_fails_its_claim_and_no_other(fulfilled, claims, column, value, where):
    found = section_5.findings(plant(fulfilled, column, value, **where))
    assert {finding.claim for finding in found if not finding.holds} == claims


def rows(finding):
    """The evidence as {(what, where): value}."""
    return {(row.what, row.where): row.value for row in finding.evidence}


def test_the_evidence_names_the_place_and_has_an_interval(fulfilled):
    place = {"setup": "Setup 1", "algorithm": "AE", "epsilon": 0.3}
    frame = plant(plant(fulfilled, "pulls", 0.9, **place), "error", 0.03, **place)
    finding = section_5.beats_baselines(frame)
    assert rows(finding) == {
        ("points where kδER needs no more pulls than EBR", "of 10"): 0,
        ("points where AE needs no more pulls than EBR", "of 10"): 1,
        ("AE's pulls over EBR's", "Setup 1, ε = 0.3"): 0.9,
        ("points where passive needs no more pulls than EBR", "of 10"): 0,
        ("the same of the rest, all rivals", "T ≥ 3 and ε ≤ 0.2"): 0,
    }
    lost = finding.evidence[2]
    assert (lost.low, lost.high) == pytest.approx((0.9 - 2.5758 * 0.03, 0.9 + 2.5758 * 0.03), abs=1e-5)
    assert (lost.runs, lost.allowed) == (100, "> 1")
    # At most three of the points that a rival wins are named.
    assert len(section_5.beats_baselines(plant(frame, "pulls", 1e-9, algorithm="AE")).evidence) == 3 + 3 + 1


def test_the_evidence_has_the_extremes_that_decide(fulfilled):
    values = {
        check: [row.value for row in check(fulfilled).evidence]
        for check in (section_5.more_rounds, section_5.aggressive_elimination, section_5.delta_elimination)
    }
    assert [*values.values()] == [pytest.approx([math.log10(300)] * 2), [13, *[0.5] * 4], [1.0, 1.0]]
    last = ("kδER's pulls over EBR's, at least", "Setup 2, ε = 0.1")
    assert rows(section_5.along_epsilon(fulfilled)).popitem() == (last, 600)
    assert [row.value for row in section_5.orders_of_magnitude(fulfilled).evidence] == [600, 300, 200] * 2
    *_, less, more = section_5.between_the_ends(fulfilled).evidence
    assert (less.value, more.value) == (0, 0)


@pytest.mark.parametrize(
    ("check", "algorithm", "end", "rest"),
    [
        (section_5.beats_baselines, "AE", {"deadline": 2}, {"deadline": 3}),
        (section_5.beats_baselines, "passive", {"epsilon": 0.3}, {"epsilon": 0.2}),
    ],
)
def test_a_claim_that_fails_only_at_the_ends_of_the_grid_is_corrected(fulfilled, check, algorithm, end, rest):
    table = fulfilled.replace({"deadline": {50: 3}, "epsilon": {0.1: 0.2}})  # beside the grid's ends
    verdicts = [
        check(plant(table, "pulls", 1e-6, algorithm=algorithm, **where)).verdict for where in (end, rest)
    ]
    assert verdicts == ["holds corrected", "fails as stated"]


def test_the_corrected_claim_asks_for_ten_times_cheaper_at_small_tolerances_only(fulfilled):
    small = fulfilled[fulfilled["sweep"] == "ε"].assign(epsilon=lambda table: table["epsilon"] / 10)
    both = pd.concat([fulfilled, small])
    for epsilon, verdict in ((0.3, "holds corrected"), (0.01, "fails as stated")):
        dear = plant(both, "pulls", 9.9, algorithm="passive", epsilon=epsilon, sweep="ε")
        assert section_5.along_epsilon(dear).verdict == verdict
    # Without a small tolerance there is nothing that could hold.
    dear = plant(fulfilled, "pulls", 9.9, algorithm="passive", epsilon=0.3)
    assert section_5.along_epsilon(dear).verdict == "fails as stated"


def test_what_is_required_falls_with_the_rounds_from_the_fixed_design_to_the_bound_without_a_deadline(
    fulfilled,
):
    values = [row.value for row in section_5.between_the_ends(fulfilled).evidence[:6]]
    z = 1.2815515655446004  # δ = 0.1: 4z²σ²/ε² is what one round needs
    assert values[0] == pytest.approx(4 * z**2, rel=1e-3)
    assert values[-1] == pytest.approx(4 * math.log(1 / (4 * 0.1 * 0.9)))  # 2σ² · 2ε⁻² · K of two equal arms
    assert values == sorted(values, reverse=True)


def test_orders_of_magnitude_carry_the_standard_error_of_their_logarithm(fulfilled):
    # 1 ± 0.03 pulls at T = 1, (1 ± 0.04)/300 at T = 50: the quotient's relative error is 0.05.
    frame = plant(fulfilled, "error", 0.03, algorithm="EBR", deadline=1)
    frame = plant(frame, "error", 0.04 / 300, algorithm="EBR", deadline=50)
    for row in section_5.more_rounds(frame).evidence:
        assert row.high - row.value == pytest.approx(2.5758 * 0.05 * math.log10(math.e), rel=1e-4)


def test_repeated_points_of_what_knows_no_deadline_count_once_as_trials(fulfilled):
    (row,) = section_5.no_failure(fulfilled).evidence
    # Per setup: 3 algorithms × 3 deadlines, 2 without a deadline, and 5 algorithms × 2 tolerances.
    assert (row.where, row.value, row.low) == (f"{2 * (11 + 10)} points", 0, 0)
    assert row.runs == 2 * (11 + 10) * 100
    assert row.high == pytest.approx(1 - 0.005 ** (1 / row.runs))


def test_first_rounds_are_those_of_the_formulas_and_grow_as_claimed():
    opening = section_5.first_rounds([0.1, 0.2], deadline=15, delta=0.01)
    by_hand = {
        "EBR": lambda e: 20 * math.log(100 * 15 / 0.01) * e ** (-2 / 15),
        "kδER": lambda e: 2 * 57 / e**2 * math.log(400),
        "AE": lambda e: 2 / e**2 * (1 + math.log(800)),
    }
    for row in opening.itertuples():
        assert row.pulls == math.ceil(by_hand[row.algorithm](row.epsilon))
        run = trace(lineup.ALGORITHMS[row.algorithm](15, row.epsilon, 0.01), setup_1())
        assert row.share == pytest.approx(100 * row.pulls / run.groupby("arm")["pulls"].max().sum())
    # A growth other than ε^{−2} is detected.
    planted = opening.assign(pulls=opening["pulls"] * opening["epsilon"] ** 0.1)
    assert [section_5.first_round(table).holds for table in (opening, planted)] == [True, False]


def test_crossings_are_found_on_the_log_axes():
    curve = pd.DataFrame({"epsilon": [0.01, 0.1, 1.0], "ratio": [100.0, 10.0, 1.0]})
    assert section_5.crossing(curve, math.sqrt(1000)) == pytest.approx([0.01 * math.sqrt(10)])
    assert section_5.crossing(curve, 1000) == []
