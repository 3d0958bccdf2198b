"""Findings: their words and their file; the exact test and the interval by hand."""

import json

import pandas as pd
import pytest
from compendium.shared.findings import (
    FALSE_ALARM,
    Evidence,
    Finding,
    Recorder,
    counted,
    exceeds,
    measured,
    number,
    refutes,
    table,
)
from compendium.shared.ledger import VERDICTS

ROW = Evidence("pulls", 1 / 3, "T = 3", allowed="≤ 1")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("EBR_FIGURES", str(tmp_path))
    monkeypatch.setattr("compendium.shared.figures.parameters", lambda notebook: {})
    return tmp_path / "data" / "findings"


@pytest.mark.parametrize(
    ("holds", "repaired", "word"),
    [
        (True, False, "holds"),
        (True, True, "holds"),
        (False, True, "holds corrected"),
        (False, False, "fails as stated"),
    ],
)
def test_a_verdict_is_the_ledgers_word(holds, repaired, word):
    finding = Finding("C00", holds, (ROW,), "computed", repaired)
    assert finding.verdict == word
    assert word in VERDICTS


def test_too_many_events_by_hand():
    # If 1/10 is allowed, k of k events have probability 10^-k, which is below 1e-6 from k = 7 on.
    assert FALSE_ALARM == 1e-6
    assert [exceeds(k, k, 0.1 * (1 + 1e-9)) for k in (5, 6, 7)] == [False, False, True]
    assert [exceeds(k, k, 0.1 * (1 + 1e-9), tests=100) for k in (7, 8, 9)] == [False, False, True]
    assert not exceeds(0, 10**6, 1e-3)  # fewer than allowed support the claim


def test_an_interval_by_hand():
    # None of 20: (1 − high)^20 = 0.005. Of a normal law 99 % lies within 2.576 standard errors.
    assert counted("failures", 0, 20).high == pytest.approx(1 - 0.005 ** (1 / 20))
    row = measured("pulls", 10.0, 2.0, 50, where="T = 1")
    assert (row.low, row.high) == pytest.approx((10 - 5.152, 10 + 5.152), abs=1e-3)
    assert (row.value, row.runs, row.where) == (10.0, 50, "T = 1")


def test_a_table_refutes_where_one_row_does_at_its_share_of_the_false_alarm():
    # P(Bin(10, 0.1) ≥ 8) = 3.7e-7, P(≥ 9) = 9.1e-9: 8 of 10 refutes alone, but not as one of three rows.
    rows = {"runs": [10, 10, 10], "delta": [0.1, 0.1, 0.1]}
    assert not refutes(pd.DataFrame({"late": [8, 0, 0]} | rows), "late")
    assert refutes(pd.DataFrame({"late": [8, 0, 0]} | rows).head(1), "late")
    assert refutes(pd.DataFrame({"late": [0, 9, 0]} | rows), "late")


def test_what_is_recorded_is_in_the_file_with_nine_digits_and_without_empty_cells(folder):
    record = Recorder("99-nothing")
    record(Finding("C02", False, (ROW, counted("errors", 0, 7)), "simulated", True))
    record(Finding("C01", True, (ROW,), "computed"))
    first, second = json.loads((folder / "99-nothing.json").read_text("utf-8"))
    row = {"what": "pulls", "value": 0.333333333, "where": "T = 3", "allowed": "≤ 1"}
    assert first == {"claim": "C01", "verdict": "holds", "basis": "computed", "evidence": [row]}
    assert (second["verdict"], second["basis"]) == ("holds corrected", "simulated")
    assert second["evidence"][1] == {
        "what": "errors", "value": 0, "low": 0, "high": float(f"{1 - 0.005 ** (1 / 7):.9g}"), "runs": 7,
    }  # fmt: skip
    record(Finding("C03", False, (ROW,), "computed"), Finding("C04", False, (ROW,), "computed"))
    assert record.verdict().splitlines() == [
        "verdict: C01 holds;",
        "         C02 holds corrected;",
        "         C03, C04 fail as stated",
    ]


def test_recording_again_leaves_nothing_of_the_run_before(folder):
    Recorder("99-nothing")(Finding("C01", True, (ROW,), "computed"))
    Recorder("99-nothing")(Finding("C02", True, (ROW,), "computed"))
    assert [entry["claim"] for entry in json.loads((folder / "99-nothing.json").read_text("utf-8"))] == [
        "C02"
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_evidence_without_a_number_is_refused(folder, value):
    with pytest.raises(ValueError, match="evidence must be finite numbers"):
        Recorder("99-nothing")(Finding("C01", True, (Evidence("pulls", value),), "computed"))
    assert not folder.exists()


def test_a_finding_is_shown_as_a_table():
    rows = (ROW, counted("errors |x|", 1, 2, "n = 2"), Evidence("slope", -0.98123))
    shown = table(Finding("C07", False, rows, "simulated").as_data()).splitlines()
    assert shown[0] == "**C07 fails as stated** (simulated)"
    assert shown[4:] == [
        "| pulls | T = 3 | 0.3333 |  | ≤ 1 |",
        "| errors \\|x\\| | n = 2 | 0.5 | 0.002503 to 0.9975 (2 runs) |  |",
        "| slope |  | −0.9812 |  |  |",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (355023, "355,023"), (0.125, "0.125"), (4.3e-24, "4.3e−24"), (-1.5, "−1.5"), (1e9, "1e+09")],
)
def test_numbers_are_for_people(value, words):
    assert number(value) == words
