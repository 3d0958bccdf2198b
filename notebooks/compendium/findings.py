"""What a check finds: whether a claim holds as printed or as corrected, and the numbers that say so."""

from typing import NamedTuple

import pandas as pd
from scipy.stats import binomtest

__all__ = ["FALSE_ALARM", "VERDICTS", "Finding", "exceeds", "proportion", "record", "refutes"]

VERDICTS = ("holds", "holds corrected", "fails as stated", "not checkable here", "open")
# A random check speaks against a true claim with at most this probability.
FALSE_ALARM = 1e-6


class Finding(NamedTuple):
    """What a check found of a claim.

    Attributes
    ----------
    claim
        Its id in the ledger, for instance "C07".
    holds
        Whether it holds as printed.
    evidence
        Numbers, with an interval and a replicate count where they are random.
    repaired
        Whether the ledger's corrected statement holds.
    """

    claim: str
    holds: bool
    evidence: str
    repaired: bool = False

    @property
    def verdict(self) -> str:
        """The ledger's word for it."""
        return VERDICTS[0 if self.holds else 1 if self.repaired else 2]


def exceeds(events: int, trials: int, allowed: float, tests: int = 1) -> bool:
    """Whether so many events refute "with probability at most `allowed`", by the exact binomial test.

    Among so many `tests` of a check, one or more speak against a true claim with FALSE_ALARM at most.
    """
    test = binomtest(events, trials, allowed, alternative="greater")
    return bool(test.pvalue < FALSE_ALARM / tests)


def refutes(races: pd.DataFrame, events: str) -> bool:
    """Whether a table's rows (events, runs, delta) refute "with probability at most δ"."""
    counts = races[[events, "runs", "delta"]].itertuples(index=False, name=None)
    return any(exceeds(event, runs, delta, len(races)) for event, runs, delta in counts)


def proportion(events: int, trials: int, confidence: float = 0.99) -> str:
    """A frequency with its exact (Clopper–Pearson) confidence interval, in words."""
    low, high = binomtest(events, trials).proportion_ci(confidence, method="exact")
    return f"{events} of {trials} ({100 * confidence:g} % interval {low:.2g} to {high:.2g})"


def record(*findings: Finding) -> None:
    """Record findings in a notebook: print each on a line that `recorded` reads back."""
    for finding in findings:
        print(f"{finding.claim} {finding.verdict}: {finding.evidence}")
