"""The ledger: every claim of the paper, what became of it, and the paper's errata.

claims.yaml is written by hand alone: what is claimed, the verdict, and which check it rests on. The notebooks
write what their checks found to figures/data/findings/. Here the two are joined.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml

ROOT = Path(__file__).resolve().parents[3]
LEDGER = ROOT / "claims.yaml"
FINDINGS = ROOT / "figures" / "data" / "findings"
VERDICTS = ("holds", "holds corrected", "fails as stated", "not checkable here", "open")
DECIDED = VERDICTS[:3]  # those that a check can find
KINDS = ("slip", "gap", "error")

# The paper's sections, from its first page to its last, and how the places in them begin.
PAPER = {
    "abstract": ("abstract",),
    "section 1": ("section 1", "Figure 1"),
    "section 2": ("section 2", "Definition 1"),
    "section 3": (
        "Theorems 1", "Theorem 1", "Theorem 2", "Remark after Theorem 2", "section 3", "sections 3",
    ),
    "section 4": ("Theorem 3", "section 4", "Theorem 4", "Theorem 5", "Corollary"),
    "section 5": ("section 5",),
    "appendix A": (
        'Lemma "confidence"', 'Lemma "concentration"', 'Lemma "survival"', 'Lemma "alg survival"',
        "Remark in appendix A.2", 'Lemma "runtime"',
    ),
    "appendix B": (
        "appendix B", "Lemma HPCM", "Remark after Lemma HPCM", "scheduling lemma", "Lemma of Tsybakov",
        "Remark after Theorem 4", "change of measure",
    ),
    "ours": ("ours",),
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """One of the claims in claims.yaml, which says what the fields are."""

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

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict of {self.id} must be one of {VERDICTS}, got {self.verdict!r}")

    @property
    def number(self) -> str:
        """Its notebook's number, for instance "03", "03b" or "A1"."""
        return self.notebook.partition("-")[0]


@dataclass(frozen=True)
class Erratum:
    """One of the errata in claims.yaml, which says what the fields are."""

    id: str
    place: str
    printed: str
    meant: str
    kind: str
    claims: list[str]
    why: str = ""
    check: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind of {self.id} must be one of {KINDS}, got {self.kind!r}")


Item = TypeVar("Item", Claim, Erratum)


class Entry(NamedTuple):
    """A claim, and what its check found: the finding as its file has it, None if it is not decided."""

    claim: Claim
    finding: dict[str, Any] | None


def claims(path: Path = LEDGER) -> list[Claim]:
    """Read the claims; raise ValueError for an entry that is not one."""
    return _items(Claim, "claims", path)


def errata(path: Path = LEDGER) -> list[Erratum]:
    """Read the errata; raise ValueError for an entry that is not one."""
    return _items(Erratum, "errata", path)


def _items(kind: type[Item], key: str, path: Path) -> list[Item]:
    known = {field.name for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))[key]
    for entry in entries:
        if not needed <= set(entry) <= known:
            raise ValueError(f"each of {key} must have {sorted(needed)} and of {sorted(known)}, got {entry}")
    twice = [name for name, count in Counter(entry["id"] for entry in entries).items() if count > 1]
    if twice:
        raise ValueError(f"id must be unique in the ledger, got {', '.join(twice)} twice")
    return [kind(**entry) for entry in entries]


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
        for field, said in (("verdict", claim.verdict), ("basis", claim.basis)):
            if finding and finding[field] != said:
                raise ValueError(f"{claim.id}: claims.yaml says {said}, its check {finding[field]}")
        entries.append(Entry(claim, finding))
    return entries


def section(claim: Claim) -> str:
    """The section of the paper that has a claim, or "ours"."""
    return _place(claim)[0]


def paper_order(claim: Claim) -> int:
    """Where in the paper a claim stands; raise ValueError if its place is none of the paper's."""
    return [place for places in PAPER.values() for place in places].index(_place(claim)[1])


def _place(claim: Claim) -> tuple[str, str]:
    """The section that a claim is in, and the place of PAPER that fits it best."""
    every = [(name, place) for name, places in PAPER.items() for place in places]
    fitting = [one for one in every if claim.place.startswith(one[1])]
    if not fitting:
        raise ValueError(f"place of {claim.id} must begin as one of {PAPER} does, got {claim.place!r}")
    return max(fitting, key=lambda one: len(one[1]))


def cell(claim: Claim) -> int:
    """The number of the cell of its notebook that shows what the check of a claim found."""
    path = ROOT / "notebooks" / f"{claim.notebook}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = (one for one in cells if one["cell_type"] == "code")
    for number, one in enumerate(code, 1):
        shown = ["".join(output.get("data", {}).get("text/markdown", "")) for output in one["outputs"]]
        if f"**{claim.id} {claim.verdict}**" in "".join(shown):
            return number
    raise ValueError(f"{claim.notebook} must record that {claim.id} {claim.verdict}, and no cell does")


def summary(entered: list[Claim]) -> str:
    """How many claims have each verdict, the paper's and ours apart."""
    parts = []
    for words, letter in (("claims of the paper", "C"), ("of ours", "X")):
        verdicts = Counter(claim.verdict for claim in entered if claim.id.startswith(letter))
        counts = [f"{verdicts[one]} {agreeing(one, verdicts[one])}" for one in VERDICTS if verdicts[one]]
        parts.append(f"{verdicts.total()} {words}: {', '.join(counts)}")
    return "; ".join(parts)


def claims_table(entered: list[Claim]) -> str:
    """The claims in Markdown, in the paper's order: what is said, the verdict, the cell that checks it."""
    rows = []
    for claim in sorted(entered, key=paper_order):
        verdict = claim.verdict if claim.verdict in ("holds", "open") else f"**{claim.verdict}**"
        where = ""
        if claim.verdict in DECIDED:
            where = f"[{claim.number}]({claim.notebook}.ipynb), cell {cell(claim)}"
        rows.append((claim.place, claim.id, claim.statement, verdict, claim.basis, where))
    return as_table("the paper | claim | what is said | verdict | rests on | checked in", rows)


def corrections_table(entered: list[Claim]) -> str:
    """What is so, in Markdown: the corrections, in the paper's order."""
    corrected = [claim for claim in sorted(entered, key=paper_order) if claim.correction]
    return as_table("claim | what is so", [(claim.id, claim.correction) for claim in corrected])


def verdicts_table(notebook: str) -> str:
    """The claims of a notebook in Markdown: what is said, the verdict, and what the verdict rests on."""
    rows = [
        (claim.id, claim.place, claim.statement, f"**{claim.verdict}**", claim.basis)
        for claim in claims()
        if claim.notebook == notebook
    ]
    return as_table("claim | where | what is said | verdict | rests on", rows)


def errata_table(entered: list[Erratum]) -> str:
    """The errata in Markdown."""
    rows = []
    for one in entered:
        so = f"{one.meant}; {one.why}" if one.why else one.meant
        check = f"`{one.check}`" if one.check else ""
        rows.append((one.id, one.place, one.printed, so, one.kind, ", ".join(one.claims), check))
    return as_table(" | where | what is printed | what is so | kind | claims | shown by", rows)


def agreeing(verdict: str, many: int) -> str:
    """A verdict whose verb agrees with how many claims it is about."""
    return verdict if many == 1 else verdict.replace("holds", "hold").replace("fails", "fail")


def as_table(head: str, rows: Sequence[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
