"""Section 5's claims: each check passes on a table where the claim holds and fails on a planted error."""

import math

import numpy as np
import pandas as pd
import pytest
from compendium import choices, lineup, simulations

import ebr

GOOD = {"EBR": 1.0, "kδER": 600.0, "AE": 300.0, "sequential": 0.5, "passive": 200.0}
ALONG_T = {
    "EBR": {1: 1, 2: 0.1, 50: 1 / 300},
    "AE": {1: 1, 2: 2, 50: 3},
    "sequential": dict.fromkeys((1, 2, 50), 0.001),
}


def table():
    """Pulls that fulfil every claim: EBR falls 300-fold with T, AE rises, the others stay."""
    rows = []
    for setup in lineup.SETUPS:
        for sweep, deadline, epsilon in [("T", t, 0.01) for t in (1, 2, 50)] + [
            ("ε", 15, e) for e in (0.1, 0.3)
        ]:
            for name, pulls in GOOD.items():
                if sweep == "T":
                    pulls *= ALONG_T.get(name, {}).get(deadline, 1)
                rows.append((sweep, setup, name, deadline, epsilon, pulls, 0.0, 3, 0, 100))
    columns = [
        "sweep",
        "setup",
        "algorithm",
        "deadline",
        "epsilon",
        "pulls",
        "error",
        "rounds",
        "failures",
        "runs",
    ]
    return pd.DataFrame(rows, columns=columns)


def failing(frame):
    return {finding.claim for finding in simulations.findings(frame) if not finding.holds}


def plant(frame, column, value, **where):
    mask = np.logical_and.reduce([frame[key] == wanted for key, wanted in where.items()])
    assert mask.any()
    return frame.assign(**{column: frame[column].where(~mask, value)})


def test_a_table_that_fulfils_every_claim_passes():
    assert failing(table()) == set()
    assert {finding.claim for finding in simulations.findings(table())} == {
        f"C{k}" for k in [*range(22, 28), 31, 32]
    }


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
        ({"C32"}, "pulls", 1.1, {"setup": "Setup 2", "algorithm": "sequential", "epsilon": 0.3}),
    ],
)
def test_a_planted_error_fails_its_claim_and_no_other(claims, column, value, where):
    assert failing(plant(table(), column, value, **where)) == claims


def test_the_evidence_names_the_place():
    frame = plant(table(), "pulls", 0.9, setup="Setup 1", algorithm="AE", epsilon=0.3)
    (evidence,) = (finding.evidence for finding in simulations.findings(frame) if finding.claim == "C23")
    assert "AE costs no more than EBR: Setup 1 ε = 0.3 (0.9 ± 0)" in evidence
    assert evidence.endswith("(± 1 s.e. of 100 runs a point)")


def test_a_ratio_carries_its_standard_error():
    # 100 ± 3 over 50 ± 2: relative errors 0.03 and 0.04 make 0.05.
    frame = pd.DataFrame(
        {"algorithm": ["AE", "EBR"], "pulls": [100.0, 50.0], "error": [3.0, 2.0]}
        | {key: [1, 1] for key in ("sweep", "setup", "deadline", "epsilon")}
    )
    assert lineup.ratio(frame, "AE", "EBR")[["ratio", "error"]].to_numpy().tolist() == [
        pytest.approx([2.0, 0.1])
    ]


def test_repeated_points_of_what_knows_no_deadline_count_once_as_trials():
    (evidence,) = (finding.evidence for finding in simulations.findings(table()) if finding.claim == "C22")
    # By setup: 3 algorithms × 3 deadlines + 2 alone, and 5 algorithms × 2 tolerances.
    assert evidence.startswith(
        f"failures at {2 * (11 + 10)} points: 0 of {2 * (11 + 10) * 100} (99 % interval 0"
    )


def test_first_rounds_by_hand_and_c28_with_a_planted_growth():
    opening = simulations.first_rounds([0.1, 0.2], deadline=15, delta=0.01)
    by_hand = {
        "EBR": lambda e: 20 * math.log(100 * 15 / 0.01) * e ** (-2 / 15),
        "kδER": lambda e: 2 * 57 / e**2 * math.log(400),
        "AE": lambda e: 2 / e**2 * (1 + math.log(800)),
    }
    for row in opening.itertuples():
        assert row.pulls == math.ceil(by_hand[row.algorithm](row.epsilon))
    assert simulations.c28(opening.assign(pulls=opening["pulls"] + 0)).holds
    planted = opening.assign(pulls=opening["pulls"] * opening["epsilon"] ** 0.1)
    assert not simulations.c28(planted).holds


def test_crossings_are_found_on_the_log_axes():
    curve = pd.DataFrame({"epsilon": [0.01, 0.1, 1.0], "ratio": [100.0, 10.0, 1.0]})
    assert simulations.crossing(curve, math.sqrt(1000)) == pytest.approx([0.01 * math.sqrt(10)])
    assert simulations.crossing(curve, 1000) == []


def test_the_points_are_figure_2s():
    points = lineup.points([1, 50], [0.001, 0.3])
    assert len(points) == 2 * 5 * 4
    assert {point.problem.n_arms for point in points} == {100}
    assert {(p.labels["sweep"], p.labels["deadline"], p.labels["epsilon"]) for p in points} == {
        ("T", 1, 0.01), ("T", 50, 0.01), ("ε", 15, 0.001), ("ε", 15, 0.3),
    }  # fmt: skip
    for point in points:
        assert point.algorithm.epsilon == point.labels["epsilon"]
        if point.labels["algorithm"] not in lineup.WITHOUT_DEADLINE:
            assert point.algorithm.deadline == point.labels["deadline"]


@pytest.mark.parametrize(
    ("deadlines", "epsilons", "names"),
    [
        ([1, 2.5], [0.1], r"deadline must be an integer of at least 1, got 2\.5"),
        ([0], [0.1], r"deadline .* got 0"),
        ([1], [0.1, 1.5], r"epsilon must lie in \(0, 1\), got 1\.5"),
    ],
)
def test_a_grid_out_of_range_is_an_error_before_anything_runs(deadlines, epsilons, names):
    with pytest.raises(ValueError, match=names):
        lineup.points(deadlines, epsilons)


def test_an_alternative_takes_the_place_of_its_own_curve_alone():
    other = table()
    other = other[(other["algorithm"] == "EBR") & (other["sweep"] == "T")].assign(pulls=7.0, choice="A2")
    mixed = choices.replaced(table(), other)
    assert (mixed.loc[mixed["algorithm"] == "EBR", "pulls"] == 7.0).all()
    assert set(mixed["sweep"]) == {"T"}
    assert len(mixed) == 2 * 3 * 5
    assert choices.factor(table(), mixed, "AE") == dict.fromkeys(
        ["Setup 1 min", "Setup 1 max", "Setup 2 min", "Setup 2 max"], 1.0
    )


def test_every_alternative_differs_from_the_default_that_it_replaces():
    default = {tuple(p.labels.values()): p.algorithm for p in lineup.points([2], [0.1])}
    for point in choices.points([2], [0.1]):
        labels = {key: value for key, value in point.labels.items() if key != "choice"}
        assert point.algorithm != default[tuple(labels.values())], point.labels
    assert {p.labels["choice"] for p in choices.points([2], [0.1])} == {*choices.ALTERNATIVES, "A6b"}


def test_thinning_keeps_every_second_value():
    assert set(choices.thinned(table()).query("sweep == 'T'")["deadline"]) == {1, 50}
    assert set(choices.thinned(table()).query("sweep == 'ε'")["epsilon"]) == {0.1}


def test_ae_with_the_gap_is_told_each_setups_own():
    told = {
        p.labels["setup"]: p.algorithm.epsilon
        for p in choices.points([2], [0.1])
        if p.labels["choice"] == "A6b"
    }
    assert told == pytest.approx({"Setup 1": 0.8 / 99, "Setup 2": 0.25 / 99})
    assert isinstance(choices.points([2], [0.1])[-1].algorithm, ebr.AggressiveElimination)
