"""What a check finds: whether a claim holds as printed or as corrected, and a table of evidence."""

import json
import math
from typing import Any, NamedTuple

import pandas as pd
from IPython.display import Markdown, display

from compendium.shared import figures
from compendium.shared.distributions import frequency_interval, norm, tail_of_count
from compendium.shared.ledger import VERDICTS, agreeing, as_table, verdicts_table

BASES = ("proved", "computed", "simulated")

# A random check speaks against a true claim with at most this probability.
FALSE_ALARM = 1e-6
CONFIDENCE = 0.99  # of every interval


class Evidence(NamedTuple):
    """A row of evidence.

    Attributes
    ----------
    what, value
        What it is, in a few words, and the number.
    where
        On which problem, algorithm or setting.
    low, high, runs
        If it is random: the ends of its 99 % interval, and from how many runs.
    allowed
        What the claim allows it to be, for instance "≤ 1".
    """

    what: str
    value: float
    where: str = ""
    low: float | None = None
    high: float | None = None
    runs: int | None = None
    allowed: str = ""


def counted(what: str, events: int, trials: int, where: str = "", allowed: str = "") -> Evidence:
    """A frequency, with its exact (Clopper–Pearson) interval."""
    return Evidence(what, events / trials, where, *interval(events, trials), trials, allowed)


def measured(what: str, mean: float, error: float, runs: int, where: str = "", allowed: str = "") -> Evidence:
    """A mean with its standard error, and the interval that the normal approximation makes of it."""
    reach = float(norm.isf((1 - CONFIDENCE) / 2)) * error
    return Evidence(what, mean, where, mean - reach, mean + reach, runs, allowed)


def interval(events: int, trials: int) -> tuple[float, float]:
    """The exact (Clopper–Pearson) interval of a frequency."""
    return frequency_interval(events, trials, CONFIDENCE)


class Finding(NamedTuple):
    """What a check found of a claim.

    Attributes
    ----------
    claim
        Its id in the ledger, for instance "C07".
    holds
        Whether it holds as printed.
    evidence
        The numbers that say so.
    basis
        What the verdict rests on, as in the ledger: "proved" in the notebook, so that the evidence only
        illustrates the proof; "computed", without sampling; or "simulated".
    repaired
        Whether the ledger's corrected statement holds.
    """

    claim: str
    holds: bool
    evidence: tuple[Evidence, ...]
    basis: str
    repaired: bool = False

    @property
    def verdict(self) -> str:
        """The ledger's word for it."""
        return VERDICTS[0 if self.holds else 1 if self.repaired else 2]

    def as_data(self) -> dict[str, Any]:
        """The finding as the file has it; numbers with the digits that are saved."""
        rows = [
            {key: _saved(value) for key, value in row._asdict().items() if value not in ("", None)}
            for row in self.evidence
        ]
        return {"claim": self.claim, "verdict": self.verdict, "basis": self.basis, "evidence": rows}


class Recorder:
    """How a notebook records its findings: it shows each as a small table, and writes them all to a file.

    The file, data/findings/NN-topic.json beside the figures, is what the ledger reads.
    """

    def __init__(self, notebook: str) -> None:
        figures.provenance(notebook)  # which decides where the file goes
        self.notebook = notebook
        self.findings: dict[str, Finding] = {}

    def __call__(self, *found: Finding) -> None:
        """Record findings."""
        self.findings |= {finding.claim: finding for finding in found}
        ordered = [self.findings[claim].as_data() for claim in sorted(self.findings)]
        text = json.dumps(ordered, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        figures.write(f"data/findings/{self.notebook}.json", lambda path: path.write_text(text, "utf-8"))
        display(Markdown("\n\n".join(table(finding.as_data()) for finding in found)))

    def claims(self) -> None:
        """Show the claims that this notebook checks, with the ledger's verdicts."""
        display(Markdown(verdicts_table(self.notebook)))

    def verdict(self) -> str:
        """The verdicts of this notebook, a line each."""
        by_verdict: dict[str, list[str]] = {}
        for claim in sorted(self.findings):
            by_verdict.setdefault(self.findings[claim].verdict, []).append(claim)
        return "verdict: " + ";\n         ".join(
            said(by_verdict[verdict], verdict) for verdict in VERDICTS if verdict in by_verdict
        )


def said(claims: list[str], verdict: str) -> str:
    """A verdict on one claim or on several, as a sentence has it."""
    return f"{', '.join(claims)} {agreeing(verdict, len(claims))}"


def table(finding: dict[str, Any]) -> str:
    """A finding, as the file has it, in Markdown."""
    rows = []
    for row in finding["evidence"]:
        random = f"{number(row['low'])} to {number(row['high'])} " if "low" in row else ""
        runs = f"({row['runs']:,} runs)" if "runs" in row else ""
        value, allowed = number(row["value"]), row.get("allowed", "")
        rows.append((row["what"], row.get("where", ""), value, random + runs, allowed))
    title = f"**{finding['claim']} {finding['verdict']}** ({finding['basis']})"
    return f"{title}\n\n{as_table('what | where | value | 99 % interval | allowed', rows)}"


def number(value: float) -> str:
    """A number for people: counts whole, others with four digits; a true minus."""
    if float(value).is_integer() and abs(value) < 1e7:
        words = f"{value:,.0f}"
    else:
        words = f"{value:,.4g}" if 1e-3 <= abs(value) < 1e7 else f"{value:.3g}"
    return words.replace("-", "−")


def exceeds(events: int, trials: int, allowed: float, tests: int = 1) -> bool:
    """Whether so many events refute "with probability at most `allowed`", by the exact binomial test.

    Among so many `tests` of a check, one or more speak against a true claim with FALSE_ALARM at most.
    """
    return tail_of_count(events, trials, allowed) < FALSE_ALARM / tests


def refutes(races: pd.DataFrame, events: str) -> bool:
    """Whether a table's rows (events, runs, delta) refute "with probability at most δ"."""
    counts = races[[events, "runs", "delta"]].itertuples(index=False, name=None)
    return any(exceeds(event, runs, delta, len(races)) for event, runs, delta in counts)


def _saved(value: Any) -> Any:
    """A value as it is saved; integers stay whole, and what has no number is said in words."""
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        raise ValueError(f"evidence must be finite numbers, got {value}")
    rounded = value if isinstance(value, int) else figures.significant(value)
    return int(rounded) if float(rounded).is_integer() and abs(rounded) < 2**53 else rounded
