"""The ledger as a page: every claim with its verdict, in a table that can be filtered."""

from collections.abc import Iterable
from html import escape

from compendium.shared import ledger
from compendium.shared.findings import number

PAGE = """\
# Ledger

Every claim of the paper, and what became of it. {summary}. A verdict is *proved*, *computed* without sampling
or *simulated*; the link leads to the cell that checks it. [Notebook 00](notebooks/00-ledger.ipynb) has the
errata.

```{{raw}} html
<form class="ledger-filters" id="ledger-filters">
{filters}
<output id="ledger-count" aria-live="polite"></output>
</form>
<table class="ledger" id="ledger">
<thead><tr><th>Claim</th><th>What is said</th><th>Verdict</th><th>What is so</th><th>Checked</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<script src="_static/ledger.js"></script>
```
"""


def page() -> str:
    """The ledger's page, in Markdown around a table in HTML."""
    entries = sorted(
        ledger.join(ledger.claims(), ledger.found()), key=lambda entry: ledger.paper_order(entry.claim)
    )
    claims = [entry.claim for entry in entries]
    filters = [
        _filter("verdict", (claim.verdict for claim in claims)),
        _filter("section", map(ledger.section, claims)),
        _filter("basis", (claim.basis for claim in claims)),
    ]
    rows = "\n".join(map(_row, entries))
    return PAGE.format(summary=ledger.summary(claims), filters="\n".join(filters), rows=rows)


def _filter(name: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in dict.fromkeys(filter(None, values)))
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>'


def _row(entry: ledger.Entry) -> str:
    claim = entry.claim
    said = escape(claim.statement)
    if claim.hypotheses:
        said += f'<p class="ledger-aside">Taken to assume: {escape(claim.hypotheses)}</p>'
    checked = ""
    if entry.finding:
        count, _ = ledger.cell(claim)
        target = f"notebooks/{claim.notebook}.html#cell-{count}"
        checked = f'<a href="{target}">notebook {claim.number}, cell {count}</a>{_evidence(entry.finding)}'
    data = {"verdict": claim.verdict, "section": ledger.section(claim), "basis": claim.basis}
    attributes = " ".join(f'data-{name}="{escape(value)}"' for name, value in data.items())
    cells = (
        f'<td id="{claim.id}"><strong>{claim.id}</strong><br>{escape(claim.place)}</td>',
        f"<td>{said}</td>",
        f'<td><span class="verdict">{escape(claim.verdict)}</span><br>{escape(claim.basis)}</td>',
        f"<td>{escape(claim.correction)}</td>",
        f"<td>{checked}</td>",
    )
    return f"<tr {attributes}>{''.join(cells)}</tr>"


def _evidence(finding: dict) -> str:
    """What the check found, folded away."""
    items = []
    for row in finding["evidence"]:
        what = ", ".join(filter(None, [row["what"], row.get("where", "")]))
        ends = f" [{number(row['low'])}, {number(row['high'])}]" if "low" in row else ""
        allowed = f"; allowed: {row['allowed']}" if "allowed" in row else ""
        items.append(f"<li>{escape(what)}: {escape(number(row['value']) + ends + allowed)}</li>")
    return f"<details><summary>evidence</summary><ul>{''.join(items)}</ul></details>"
