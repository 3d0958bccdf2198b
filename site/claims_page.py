"""The ledger: a table of all claims with filters, and one page per claim."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from html import escape

from compendium.shared import findings, ledger

PLANTED = ledger.ROOT / "tests" / "planted"

TABLE = """\
# Ledger

Every claim of the paper, and what became of it. {summary}. A verdict is *proved*, *computed* without
sampling, or *simulated*. A claim's page has its hypotheses, its correction, the evidence and the planted
errors that its check must catch. [Notebook 00](notebooks/00-ledger.ipynb) has the errata.

```{{raw}} html
<form class="ledger-filters" id="ledger-filters">
<label>words <input type="search" name="words"></label>
{filters}
<output id="ledger-count" aria-live="polite"></output>
</form>
<table class="ledger" id="ledger">
<thead><tr><th>Claim</th><th>What is said</th><th>Verdict</th><th>Notebook</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<script src="_static/ledger.js"></script>
```

```{{toctree}}
:hidden:

{claims}
```
"""

CLAIM = """\
# {claim.id} · {place}

{statement}

**Verdict: {claim.verdict}**{basis}.

{more}
"""

CHECK = """\
## Evidence

{evidence}

## Where it is checked

In <a href="../notebooks/{claim.notebook}.html#cell-{cell}">notebook {claim.number}, cell {cell}</a>, by
`{claim.check}`.

The tests run the check as it is, and with errors planted in the mathematics. Each error must change the
verdict. From tests/planted/{module}.py:

```python
{planted}
```
"""


def texts() -> dict[str, str]:
    """The pages by name: the ledger, and one for each claim."""
    entries = ledger.join(ledger.claims(), ledger.found())
    entries = sorted(entries, key=lambda entry: ledger.paper_order(entry.claim))
    return {"ledger": _table(entries)} | {f"claims/{entry.claim.id}": _claim(entry) for entry in entries}


@cache
def planted() -> dict[str, tuple[str, str]]:
    """For each claim: the test module that plants errors in its check, and the source of its entry there."""
    found = {}
    for path in sorted(PLANTED.glob("[!_]*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PLANTED":
                for key, value in zip(node.value.keys, node.value.values, strict=True):
                    entry = ast.get_source_segment(source, value, padded=True)
                    found[ast.literal_eval(key)] = (path.stem, entry)
    return found


def _table(entries: list[ledger.Entry]) -> str:
    claims = [entry.claim for entry in entries]
    filters = [
        _filter("verdict", (claim.verdict for claim in claims)),
        _filter("notebook", sorted(claim.notebook for claim in claims)),
    ]
    return TABLE.format(
        summary=ledger.summary(claims),
        filters="\n".join(filters),
        rows="\n".join(map(_row, claims)),
        claims="\n".join(f"claims/{claim.id}" for claim in claims),
    )


def _filter(name: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in dict.fromkeys(filter(None, values)))
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _row(claim: ledger.Claim) -> str:
    notebook = f'<a href="notebooks/{claim.notebook}.html">{claim.number}</a>' if claim.notebook else ""
    cells = (
        f'<td id="{claim.id}"><a href="claims/{claim.id}.html">{claim.id}</a><br>{escape(claim.place)}</td>',
        f"<td>{escape(claim.statement)}</td>",
        f'<td><span class="verdict">{escape(claim.verdict)}</span><br>{escape(claim.basis)}</td>',
        f"<td>{notebook}</td>",
    )
    return f'<tr data-verdict="{claim.verdict}" data-notebook="{claim.notebook}">{"".join(cells)}</tr>'


def _claim(entry: ledger.Entry) -> str:
    claim, finding = entry
    said = {
        "Taken to assume": claim.hypotheses,
        "What is so": claim.correction,
        "Probability that chance alone changes the verdict": claim.false_alarm,
    }
    more = "".join(f"*{words}:* {as_text(text)}\n\n" for words, text in said.items() if text)
    if finding:
        module, source = planted()[claim.id]
        evidence, cell = _evidence(finding), ledger.cell(claim)
        more += CHECK.format(claim=claim, evidence=evidence, cell=cell, module=module, planted=source)
    place, statement = as_text(claim.place), as_text(claim.statement)
    basis = f", {claim.basis}" if claim.basis else ""
    return CLAIM.format(claim=claim, place=place, statement=statement, basis=basis, more=more)


def _evidence(finding: dict) -> str:
    """The evidence as a table."""
    rows = [
        {name: as_text(value) if isinstance(value, str) else value for name, value in row.items()}
        for row in finding["evidence"]
    ]
    return findings.table({**finding, "evidence": rows}).partition("\n\n")[2]


def as_text(words: str) -> str:
    """Plain text, escaped for Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>$#])", r"\\\1", words)
