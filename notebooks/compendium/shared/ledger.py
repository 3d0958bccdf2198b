"""The ledger: every claim of the paper, and what became of it.

claims.yaml is written by hand alone: what is claimed, the verdict, and which check it rests on. The notebooks
write what their checks found to figures/data/findings/. Here the two are joined.
"""

import json
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from compendium.shared.findings import VERDICTS

ROOT = Path(__file__).resolve().parents[3]
LEDGER = ROOT / "claims.yaml"
FINDINGS = ROOT / "figures" / "data" / "findings"
DECIDED = VERDICTS[:3]  # those that a check can find


@dataclass(frozen=True)
class Claim:
    """One entry of claims.yaml.

    Attributes
    ----------
    id, place, statement
        Its number, where the paper has it, and what it says.
    hypotheses
        What it assumes, where that matters.
    verdict, correction
        What became of it; the corrected statement, or the counter-example where it fails as stated.
    basis
        What the verdict rests on: proof, exact, simulation.
    notebook, check
        The notebook that checks it, and the compendium's function that does: room, module, name.
    false_alarm
        The probability that chance alone makes the check give another verdict than the true one.
    """

    id: str
    place: str
    statement: str
    verdict: str
    hypotheses: str = ""
    correction: str = ""
    basis: str = ""
    notebook: str = ""
    check: str = ""
    false_alarm: str = ""


class Entry(NamedTuple):
    """A claim, and what its check found: the finding as its file has it, None if it is not decided."""

    claim: Claim
    finding: dict[str, Any] | None


def claims(path: Path = LEDGER) -> list[Claim]:
    """Read claims.yaml; raise ValueError for an entry that is not one."""
    known = {field.name for field in fields(Claim)}
    read = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        if not {"id", "place", "statement", "verdict"} <= set(entry) <= known:
            raise ValueError(f"an entry must have id, place, statement, verdict and of {known}, got {entry}")
        claim = Claim(**entry)
        if claim.verdict not in VERDICTS:
            raise ValueError(f"verdict of {claim.id} must be one of {VERDICTS}, got {claim.verdict!r}")
        read.append(claim)
    twice = [name for name, count in Counter(claim.id for claim in read).items() if count > 1]
    if twice:
        raise ValueError(f"id must be unique in the ledger, got {', '.join(twice)} twice")
    return read


def found(folder: Path = FINDINGS) -> dict[str, dict[str, dict[str, Any]]]:
    """What each notebook's checks found: by notebook, then by claim."""
    files = sorted(folder.glob("*.json"))
    return {
        path.stem: {f["claim"]: f for f in json.loads(path.read_text(encoding="utf-8"))} for path in files
    }


def join(entered: list[Claim], findings: dict[str, dict[str, dict[str, Any]]]) -> list[Entry]:
    """Set each claim beside its finding; raise ValueError where the two differ, or one has no other."""
    recorded = {(notebook, claim) for notebook, by_claim in findings.items() for claim in by_claim}
    decided = {(claim.notebook, claim.id) for claim in entered if claim.verdict in DECIDED}
    for notebook, claim_id in sorted(recorded ^ decided):
        where = "claims.yaml has no such entry" if (notebook, claim_id) in recorded else "no such finding"
        raise ValueError(f"{claim_id} of notebook {notebook}: {where}")
    entries = []
    for claim in entered:
        finding = findings[claim.notebook][claim.id] if claim.verdict in DECIDED else None
        if finding and finding["verdict"] != claim.verdict:
            raise ValueError(f"{claim.id}: claims.yaml says {claim.verdict}, its check {finding['verdict']}")
        entries.append(Entry(claim, finding))
    return entries


# The paper from its first page to its last: how the place of a claim begins.
PAPER = (
    "abstract", "section 1", "Figure 1", "section 2", "Definition 1", "Theorems 1", "Theorem 1", "Theorem 2",
    "Remark after Theorem 2", "section 3", "sections 3", "Theorem 3", "section 4", "Theorem 4", "Theorem 5",
    "Corollary", "section 5", 'Lemma "confidence"', 'Lemma "concentration"', 'Lemma "survival"',
    'Lemma "alg survival"', "Remark in appendix A.2", 'Lemma "runtime"', "appendix B", "Lemma HPCM",
    "Remark after Lemma HPCM", "scheduling lemma", "Lemma of Tsybakov", "Remark after Theorem 4",
    "change of measure", "ours",
)  # fmt: skip


def paper_order(claim: Claim) -> int:
    """Where in the paper a claim stands; raise ValueError if its place is none of the paper's."""
    fitting = [place for place in PAPER if claim.place.startswith(place)]
    if not fitting:
        raise ValueError(f"place of {claim.id} must begin with one of {PAPER}, got {claim.place!r}")
    return PAPER.index(max(fitting, key=len))


def cell(claim: Claim) -> tuple[int, str]:
    """The cell of its notebook that checks a claim: its number, and the heading under which it stands.

    The first that names the check or, where a check is applied with others, the first that records.
    """
    path = ROOT / "notebooks" / f"{claim.notebook}.ipynb"
    called = claim.check.partition(".")[2]  # by module and name; its room is where the module is from
    heading, number, named, recording = "", 0, None, None
    for one in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(one["source"])
        if one["cell_type"] == "markdown":
            headings = [line.lstrip("# ") for line in source.splitlines() if line.startswith("#")]
            heading = headings[-1] if headings else heading
            continue
        number += 1
        if f"{called}(" in source:
            named = named or (number, heading)
        elif "record(" in source:
            recording = recording or (number, heading)
    found_in = named or recording
    if found_in is None:
        raise ValueError(f"{claim.notebook} must record {claim.id}, and no cell does")
    return found_in


def paper_map(entered: list[Claim]) -> str:
    """The paper, from its first page to its last: claims, verdicts, and the cells that check them."""
    lines = ["| the paper | claim | verdict | rests on | checked in |", "|---|---|---|---|---|"]
    for claim in sorted(entered, key=paper_order):
        where = ""
        if claim.verdict in DECIDED:
            number, heading = cell(claim)
            where = f"[{claim.notebook[:2]}]({claim.notebook}.ipynb), cell {number}: {heading}"
        lines.append(f"| {claim.place} | {claim.id} | {claim.verdict} | {claim.basis} | {where} |")
    return "\n".join(lines)


def tally(entered: list[Claim]) -> dict[str, int]:
    """How many claims have each verdict."""
    return {verdict: sum(claim.verdict == verdict for claim in entered) for verdict in VERDICTS}


def markdown(entered: list[Claim], notebooks: str = "") -> str:
    """Claims as a table for people; `notebooks` is the way to that folder from where it is read."""
    lines = [
        "| claim | where | what the paper says | verdict | what is so | notebook |",
        "|---|---|---|---|---|---|",
    ]
    for claim in entered:
        link = f"[{claim.notebook[:2]}]({notebooks}{claim.notebook}.ipynb)" if claim.notebook else ""
        verdict = claim.verdict if claim.verdict in ("holds", "open") else f"**{claim.verdict}**"
        assumed = f" *Taken to assume:* {claim.hypotheses}" if claim.hypotheses else ""
        row = (claim.id, claim.place, claim.statement + assumed, verdict, claim.correction, link)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines)
