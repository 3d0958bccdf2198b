"""The ledger: complete, current, and pointing at checks and notebooks that exist and agree with it."""

from dataclasses import replace
from importlib import import_module

import pytest
from compendium.shared import ledger
from compendium.shared.findings import BASES

NOTEBOOKS = {path.stem for path in (ledger.ROOT / "notebooks").glob("*.ipynb")}
CLAIMS = ledger.claims()
DECIDED = [claim for claim in CLAIMS if claim.verdict in ledger.DECIDED]
FOUND = ledger.found()


def test_every_claim_of_the_reading_is_entered_in_order():
    numbers = [int(claim.id[1:]) for claim in CLAIMS if claim.id.startswith("C")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 30


def test_claims_and_findings_agree():
    entries = ledger.join(CLAIMS, FOUND)
    assert [entry.claim for entry in entries] == CLAIMS
    for claim, finding in entries:
        assert (finding is None) == (claim.verdict not in ledger.DECIDED)
        assert finding is None or (finding["claim"], finding["verdict"]) == (claim.id, claim.verdict)


def test_a_claim_is_open_until_its_notebook_exists_and_no_longer():
    for claim in CLAIMS:
        if claim.verdict == "open":
            assert claim.notebook, claim.id
            assert claim.notebook not in NOTEBOOKS, f"{claim.id} is open though {claim.notebook} exists"
        elif claim.verdict in ledger.DECIDED:
            assert claim.notebook in NOTEBOOKS, f"{claim.id} points at no notebook"


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_a_decided_claim_names_its_check_which_speaks_of_it(claim):
    module, _, name = claim.check.rpartition(".")
    check = getattr(import_module(f"compendium.{module}"), name)
    assert claim.id in check.__doc__
    assert check.__annotations__["return"].__name__ == "Finding"


def test_a_claim_that_does_not_hold_says_what_is_so_and_a_random_check_how_it_may_err():
    for claim in DECIDED:
        assert (claim.verdict == "holds") == (not claim.correction), claim.id
        assert claim.false_alarm, claim.id


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_a_decided_claim_says_what_it_rests_on(claim):
    assert claim.basis in BASES
    assert claim.hypotheses
    found = FOUND[claim.notebook][claim.id]["basis"]
    assert claim.basis == "proof" or claim.basis == found, f"the check rests on {found}"


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_a_decided_claim_is_checked_in_a_cell_under_a_heading(claim):
    number, heading = ledger.cell(claim)
    assert number > 1
    assert heading


def test_the_map_of_the_paper_has_every_claim_once_and_in_the_papers_order():
    rows = [line.split(" | ") for line in ledger.paper_map(CLAIMS).splitlines()[2:]]
    assert sorted(row[1] for row in rows) == sorted(claim.id for claim in CLAIMS)
    order = [row[1] for row in rows]
    for first, second in (("C46", "C30"), ("C07", "C12"), ("C12", "C18"), ("C18", "C22"), ("C22", "C02")):
        assert order.index(first) < order.index(second)
    with pytest.raises(ValueError, match="place of C01 must begin with one of"):
        ledger.paper_order(replace(CLAIMS[0], place="somewhere"))


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_evidence_is_a_short_table(claim):
    finding = FOUND[claim.notebook][claim.id]
    assert finding["basis"] in ("exact", "simulation")
    assert 1 <= len(finding["evidence"]) <= 24
    for row in finding["evidence"]:
        assert len(row["what"]) <= 70, row["what"]
        assert "low" not in row or "runs" in row, f"{row['what']}: an interval has a replicate count"
    assert (finding["basis"] == "simulation") == any("runs" in row for row in finding["evidence"])


@pytest.mark.parametrize("verdict", ["holds", "fails as stated"])
def test_another_verdict_than_the_checks_is_an_error(verdict):
    changed = [replace(claim, verdict=verdict) if claim.id == "C07" else claim for claim in CLAIMS]
    with pytest.raises(ValueError, match=f"C07: claims.yaml says {verdict}, its check holds corrected"):
        ledger.join(changed, FOUND)


def test_a_claim_without_a_finding_and_a_finding_without_a_claim_are_errors():
    lost = {name: {k: v for k, v in by.items() if k != "C07"} for name, by in FOUND.items()}
    with pytest.raises(ValueError, match="C07 of notebook 03-upper-bounds: no such finding"):
        ledger.join(CLAIMS, lost)
    with pytest.raises(ValueError, match=r"C07 of notebook 03-upper-bounds: claims\.yaml has no such entry"):
        ledger.join([claim for claim in CLAIMS if claim.id != "C07"], FOUND)


def test_the_tally_counts_every_claim_once():
    assert sum(ledger.tally(CLAIMS).values()) == len(CLAIMS)
    assert ledger.tally(CLAIMS)["fails as stated"] == sum(c.verdict == "fails as stated" for c in CLAIMS) > 0


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
        ledger.claims(path)
