"""The ledger, claims.yaml: every claim of the paper and what became of it.

A notebook records what its checks found; `make ledger` copies the evidence from the executed notebooks into
the ledger and writes the README's table. The verdicts are written by hand: where a
notebook's differs, that is an error.
"""

import json
import re
import sys
from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import yaml

from compendium.findings import VERDICTS

__all__ = ["Claim", "dump", "ledger", "markdown", "recorded", "tally", "updated"]

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "claims.yaml"
HEADER = """\
# The ledger: what the paper claims, and what became of it. `make ledger` renews the evidence from the
# notebooks, the README's table and this layout; all else is written by hand. `correction` is the corrected
# statement, or the counter-example where a claim fails as stated; `false_alarm` the probability that chance
# alone makes the check give another verdict than the true one.
"""
MARKS = ("<!-- ledger, written by `make ledger` -->", "<!-- end of ledger -->")
DECIDED = VERDICTS[:3]  # those that a notebook can find
LINE = re.compile(rf"^([CX]\d\d?) ({'|'.join(sorted(DECIDED, key=len, reverse=True))}): (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Claim:
    """One entry of the ledger."""

    id: str
    place: str
    statement: str
    verdict: str
    correction: str = ""
    notebook: str = ""
    test: str = ""
    false_alarm: str = ""
    evidence: str = ""


def ledger(path: Path = LEDGER) -> list[Claim]:
    """Read the ledger; raise ValueError for an entry that is not one."""
    known = {field.name for field in fields(Claim)}
    claims = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        if not {"id", "place", "statement", "verdict"} <= set(entry) <= known:
            raise ValueError(f"an entry must have id, place, statement, verdict and of {known}, got {entry}")
        claim = Claim(**entry)
        if claim.verdict not in VERDICTS:
            raise ValueError(f"verdict of {claim.id} must be one of {VERDICTS}, got {claim.verdict!r}")
        claims.append(claim)
    twice = [name for name, count in Counter(claim.id for claim in claims).items() if count > 1]
    if twice:
        raise ValueError(f"id must be unique in the ledger, got {', '.join(twice)} twice")
    return claims


def recorded(notebook: Path) -> dict[str, tuple[str, str]]:
    """The verdict and the evidence of each claim that an executed notebook has recorded."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    printed = ["".join(output.get("text", ())) for cell in cells for output in cell.get("outputs", ())]
    return {claim: (verdict, evidence) for claim, verdict, evidence in LINE.findall("\n".join(printed))}


def tally(claims: list[Claim]) -> dict[str, int]:
    """How many claims have each verdict."""
    return {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS}


def markdown(claims: list[Claim]) -> str:
    """The ledger as a table for people."""
    lines = [
        "| claim | where | what the paper says | verdict | what is so | notebook |",
        "|---|---|---|---|---|---|",
    ]
    for claim in claims:
        exists = (ROOT / "notebooks" / f"{claim.notebook}.ipynb").exists()
        link = f"[{claim.notebook[:2]}](notebooks/{claim.notebook}.ipynb)" if exists else claim.notebook[:2]
        verdict = claim.verdict if claim.verdict in ("holds", "open") else f"**{claim.verdict}**"
        row = (claim.id, claim.place, claim.statement, verdict, claim.correction, link)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines)


class _Dumper(yaml.SafeDumper):
    """Long texts folded, short ones on their line."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=">" if len(value) > 80 else None)


_Dumper.add_representer(str, _text)


def dump(claims: list[Claim]) -> str:
    """The ledger's own text: entries in order, empty fields left out."""
    entries = [
        yaml.dump(
            [{key: value for key, value in asdict(claim).items() if value}],
            Dumper=_Dumper,
            allow_unicode=True,
            sort_keys=False,
            width=108,
        )
        for claim in claims
    ]
    return HEADER + "\n" + "\n".join(entries)


def updated(claims: list[Claim], notebooks: Path = ROOT / "notebooks") -> list[Claim]:
    """The claims with the evidence of the notebooks that exist; ValueError where a verdict differs."""
    renewed = []
    for claim in claims:
        path = notebooks / f"{claim.notebook}.ipynb"
        if claim.verdict in DECIDED and path.exists():
            verdict, evidence = recorded(path).get(claim.id, ("no verdict", ""))
            if verdict != claim.verdict:
                raise ValueError(f"{claim.id}: the ledger says {claim.verdict}, {path.name} {verdict}")
            claim = Claim(**asdict(claim) | {"evidence": evidence})
        renewed.append(claim)
    return renewed


def readme(text: str, claims: list[Claim]) -> str:
    """The README with its table between the marks renewed."""
    counts = ", ".join(f"{count} {verdict}" for verdict, count in tally(claims).items() if count)
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    return f"{before}{MARKS[0]}\n{len(claims)} claims: {counts}.\n\n{markdown(claims)}\n{MARKS[1]}{after}"


def main() -> None:
    """Renew claims.yaml and the README's table."""
    try:
        claims = updated(ledger())
    except ValueError as error:
        sys.exit(str(error))
    LEDGER.write_text(dump(claims), encoding="utf-8")
    page = ROOT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8"), claims), encoding="utf-8")
    print(", ".join(f"{count} {verdict}" for verdict, count in tally(claims).items()))


if __name__ == "__main__":
    main()
