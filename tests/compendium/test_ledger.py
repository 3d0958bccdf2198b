"""The ledger: complete, current, and pointing at notebooks and tests that exist and agree with it."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from compendium import findings, ledger
from compendium.findings import Finding

ROOT = Path(__file__).parents[2]
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
LEDGER = ledger.ledger()
DECIDED = [claim for claim in LEDGER if claim.verdict in ledger.DECIDED]


def test_every_claim_of_the_reading_is_entered_in_order():
    numbers = [int(claim.id[1:]) for claim in LEDGER if claim.id.startswith("C")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 30


def test_the_ledger_and_the_readmes_table_are_what_make_ledger_writes():
    hint = "run `make ledger`"
    assert ledger.updated(LEDGER) == LEDGER, hint
    assert ledger.dump(LEDGER) == ledger.LEDGER.read_text(encoding="utf-8"), hint
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert ledger.readme(page, LEDGER) == page, hint


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_a_notebook_records_is_what_the_ledger_says(name):
    entered = {claim.id: (claim.verdict, claim.evidence) for claim in DECIDED if claim.notebook == name}
    assert ledger.recorded(NOTEBOOKS[name]) == entered


def test_a_claim_is_open_until_its_notebook_exists_and_no_longer():
    for claim in LEDGER:
        if claim.verdict == "open":
            assert claim.notebook, claim.id
            assert claim.notebook not in NOTEBOOKS, f"{claim.id} is open though {claim.notebook} exists"
        elif claim.verdict in ledger.DECIDED:
            assert claim.notebook in NOTEBOOKS, f"{claim.id} points at no notebook"


def test_every_decided_claim_points_at_a_test_that_exists():
    files = sorted({claim.test.partition("::")[0] for claim in DECIDED})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert [claim.id for claim in DECIDED if claim.test not in collected] == []


def test_a_decided_claim_has_evidence_in_numbers_and_a_claim_that_fails_says_what_is_so():
    for claim in DECIDED:
        assert any(character.isdigit() for character in claim.evidence), claim.id
        assert claim.false_alarm, claim.id
        assert (claim.verdict == "holds") == (not claim.correction), claim.id


def test_a_finding_is_read_back_as_it_was_recorded(tmp_path, capsys):
    found = [
        Finding("C01", True, "0 of 7"),
        Finding("C02", False, "a: b; c"),
        Finding("X3", False, "1", True),
    ]
    findings.record(*found)
    notebook = tmp_path / "n.ipynb"
    text = capsys.readouterr().out.splitlines(keepends=True)
    cells = [{"cell_type": "markdown"}, {"outputs": [{"text": text}, {"data": {}}]}]
    notebook.write_text(ledger.json.dumps({"cells": cells}))
    assert ledger.recorded(notebook) == {
        "C01": ("holds", "0 of 7"),
        "C02": ("fails as stated", "a: b; c"),
        "X3": ("holds corrected", "1"),
    }


@pytest.mark.parametrize("verdict", ["holds", "fails as stated"])
def test_another_verdict_than_the_notebooks_is_an_error(verdict):
    changed = replace(next(claim for claim in DECIDED if claim.id == "C07"), verdict=verdict)
    with pytest.raises(
        ValueError, match=f"C07: the ledger says {verdict}, 03-upper-bounds.ipynb holds correc"
    ):
        ledger.updated([changed])


def test_a_claim_that_its_notebook_does_not_record_is_an_error():
    lost = replace(DECIDED[0], notebook="08-choices")
    with pytest.raises(
        ValueError, match=r"C01: the ledger says holds corrected, 08-choices\.ipynb no verdict"
    ):
        ledger.updated([lost])


def test_stale_evidence_is_renewed_from_the_notebook():
    assert ledger.updated([replace(DECIDED[0], evidence="old")]) == [DECIDED[0]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("- {id: C01, place: p, statement: s}", "must have id, place, statement, verdict"),
        ("- {id: C01, place: p, statement: s, verdict: holds, note: x}", "must have id"),
        ("- {id: C01, place: p, statement: s, verdict: maybe}", "verdict of C01 must be one of .*'maybe'"),
        ("- &c {id: C01, place: p, statement: s, verdict: open}\n- *c", "id must be unique .* C01 twice"),
    ],
)
def test_an_entry_that_is_none_is_an_error(tmp_path, text, names):
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=names):
        ledger.ledger(path)
