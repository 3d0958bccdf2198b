"""The ledger: complete and current; its checks and notebooks exist and agree with it."""

import json
import re
from dataclasses import replace
from importlib import import_module

import pytest
from compendium.shared import ledger
from compendium.shared.findings import BASES

NOTEBOOKS = {path.stem for path in (ledger.ROOT / "notebooks").glob("*.ipynb")}
CLAIMS = ledger.claims()
BY_ID = {claim.id: claim for claim in CLAIMS}
ERRATA = ledger.errata()
DECIDED = [claim for claim in CLAIMS if claim.verdict in ledger.DECIDED]
FOUND = ledger.found()


def test_claims_of_the_paper_then_ours_and_errata_are_entered_in_order():
    papers = sum(claim.id.startswith("C") for claim in CLAIMS)
    assert [claim.id for claim in CLAIMS[:papers]] == [f"C{n:02}" for n in range(1, papers + 1)]
    ours = [int(claim.id.removeprefix("X")) for claim in CLAIMS[papers:]]
    assert ours == sorted(set(ours))  # a number may be reserved for a later claim
    assert [erratum.id for erratum in ERRATA] == [f"E{n}" for n in range(1, len(ERRATA) + 1)]


def test_claims_and_findings_agree():
    entries = ledger.join(CLAIMS, FOUND)
    assert [entry.claim for entry in entries] == CLAIMS
    for claim, finding in entries:
        assert (finding is None) == (claim.verdict not in ledger.DECIDED)
        said = (claim.id, claim.verdict, claim.basis)
        assert finding is None or (finding["claim"], finding["verdict"], finding["basis"]) == said


def test_a_claim_is_open_until_its_notebook_exists_and_no_longer():
    for claim in CLAIMS:
        if claim.verdict == "open":
            assert claim.notebook, claim.id
            assert claim.notebook not in NOTEBOOKS, f"{claim.id} is open though {claim.notebook} exists"
        elif claim.verdict in ledger.DECIDED:
            assert claim.notebook in NOTEBOOKS, f"{claim.id} points at no notebook"


def function(path):
    """The function of the compendium with this path: room.module.name."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(f"compendium.{module}"), name)


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_a_decided_claim_names_its_check_which_speaks_of_it(claim):
    check = function(claim.check)
    assert claim.id in check.__doc__
    assert check.__annotations__["return"].__name__ == "Finding"


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_a_decided_claim_says_what_it_rests_on_and_corrects_what_does_not_hold(claim):
    assert claim.basis in BASES
    assert claim.hypotheses
    assert claim.false_alarm
    assert (claim.verdict == "holds") == (not claim.correction)


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_a_decided_claim_is_recorded_in_a_cell_of_its_notebook(claim):
    path = ledger.ROOT / "notebooks" / f"{claim.notebook}.ipynb"
    cells = [one for one in json.loads(path.read_text("utf-8"))["cells"] if one["cell_type"] == "code"]
    assert "record(" in "".join(cells[ledger.cell(claim) - 1]["source"])


def test_a_claim_that_no_cell_records_is_named():
    with pytest.raises(ValueError, match="05-two-rounds must record that C01 holds corrected, and no cell"):
        ledger.cell(replace(BY_ID["C01"], notebook="05-two-rounds"))


def test_the_table_has_every_claim_once_and_in_the_papers_order():
    rows = [line.split(" | ") for line in ledger.claims_table(CLAIMS).splitlines()[2:]]
    order = [row[1] for row in rows]
    assert sorted(order) == sorted(BY_ID)
    for first, second in (("C46", "C30"), ("C07", "C12"), ("C12", "C18"), ("C18", "C22"), ("C22", "C02")):
        assert order.index(first) < order.index(second)
    assert [ledger.section(BY_ID[one]) for one in ("C46", "C07", "C53", "X1")] == [
        "section 1", "section 3", "appendix B", "ours",
    ]  # fmt: skip
    corrected = [
        line.split(" | ")[0].strip("| ") for line in ledger.corrections_table(CLAIMS).splitlines()[2:]
    ]
    assert corrected == [claim for claim in order if BY_ID[claim].correction]
    with pytest.raises(ValueError, match="place of C01 must begin as one of"):
        ledger.paper_order(replace(CLAIMS[0], place="somewhere"))


@pytest.mark.parametrize("erratum", ERRATA, ids=lambda erratum: erratum.id)
def test_an_erratum_touches_claims_and_an_error_none_that_holds_as_printed(erratum):
    touched = [BY_ID[claim].verdict for claim in erratum.claims]
    assert touched
    assert erratum.kind != "error" or "holds" not in touched
    assert not erratum.check or callable(function(erratum.check))
    assert erratum.check or erratum.kind == "slip"


def cited():
    """Every text that may cite an erratum: code, notebooks' cells, claims."""
    for folder in ("ebr", "notebooks", "tests", "tools", "site"):
        for path in sorted((ledger.ROOT / folder).rglob("*.py")):
            yield path.read_text(encoding="utf-8")
    for name in NOTEBOOKS:
        cells = json.loads((ledger.ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
        yield from ("".join(cell["source"]) for cell in cells)
    yield from map(str, CLAIMS)


def test_an_erratum_that_is_cited_exists():
    citations = {number for text in cited() for number in re.findall(r"\bE\d\d?\b", text)}
    assert {"E1", "E3", "E13"} <= citations <= {erratum.id for erratum in ERRATA}


def test_the_table_of_errata_has_each_with_its_claims():
    rows = [line.strip("| ").split(" | ") for line in ledger.errata_table(ERRATA).splitlines()[2:]]
    assert {row[0]: row[5] for row in rows} == {one.id: ", ".join(one.claims) for one in ERRATA}


@pytest.mark.parametrize("claim", DECIDED, ids=lambda claim: claim.id)
def test_evidence_is_a_short_table(claim):
    finding = FOUND[claim.notebook][claim.id]
    assert 1 <= len(finding["evidence"]) <= 24
    for row in finding["evidence"]:
        assert len(row["what"]) <= 70, row["what"]
        assert "low" not in row or "runs" in row, f"{row['what']}: an interval must have a replicate count"
    random = any("runs" in row for row in finding["evidence"])
    assert finding["basis"] == "proved" or random == (finding["basis"] == "simulated")


@pytest.mark.parametrize(
    ("field", "said", "found"),
    [
        ("verdict", "holds", "holds corrected"),
        ("verdict", "fails as stated", "holds corrected"),
        ("basis", "simulated", "proved"),
    ],
)
def test_another_verdict_or_basis_than_the_checks_is_an_error(field, said, found):
    changed = [replace(claim, **{field: said}) if claim.id == "C07" else claim for claim in CLAIMS]
    with pytest.raises(ValueError, match=f"C07: claims.yaml says {said}, its check {found}"):
        ledger.join(changed, FOUND)


def test_a_claim_without_a_finding_and_a_finding_without_a_claim_are_errors():
    lost = {name: {k: v for k, v in by.items() if k != "C07"} for name, by in FOUND.items()}
    with pytest.raises(ValueError, match="C07 of notebook 03-upper-bounds: no such finding"):
        ledger.join(CLAIMS, lost)
    with pytest.raises(ValueError, match=r"C07 of notebook 03-upper-bounds: claims\.yaml has no such entry"):
        ledger.join([claim for claim in CLAIMS if claim.id != "C07"], FOUND)


def test_the_papers_claims_and_ours_are_counted_apart():
    verdicts = {"C1": "holds", "C2": "holds", "C3": "fails as stated", "X1": "holds corrected", "X2": "open"}
    few = [replace(CLAIMS[0], id=name, verdict=verdict) for name, verdict in verdicts.items()]
    assert ledger.summary(few) == (
        "3 claims of the paper: 2 hold, 1 fails as stated; 2 of ours: 1 holds corrected, 1 open"
    )
    papers = sum(claim.id.startswith("C") for claim in CLAIMS)
    assert ledger.summary(CLAIMS).startswith(f"{papers} claims of the paper: ")
    assert f"; {len(CLAIMS) - papers} of ours: " in ledger.summary(CLAIMS)


CLAIM = "id: C01, place: p, statement: s"
ERRATUM = "id: E1, place: p, printed: a, meant: b, claims: [C01]"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"claims: [{{{CLAIM}}}]", "each of claims must have .*'verdict'"),
        (f"claims: [{{{CLAIM}, verdict: holds, note: x}}]", "each of claims must have"),
        (f"claims: [{{{CLAIM}, verdict: maybe}}]", "verdict of C01 must be one of .*'maybe'"),
        (f"claims: [&c {{{CLAIM}, verdict: open}}, *c]", "id must be unique .* C01 twice"),
        (f"errata: [{{{ERRATUM}, kind: joke}}]", "kind of E1 must be one of .*'joke'"),
        (f"errata: [{{{ERRATUM}}}]", "each of errata must have .*'kind'"),
    ],
)
def test_an_invalid_entry_is_an_error(tmp_path, text, names):
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=names):
        (ledger.errata if "errata" in text else ledger.claims)(path)
