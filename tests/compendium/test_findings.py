"""Findings: their words, and the exact test and interval against the binomial and beta distributions."""

import re

import pandas as pd
import pytest
from compendium.findings import FALSE_ALARM, VERDICTS, Finding, exceeds, proportion, refutes
from scipy.stats import beta, binom


@pytest.mark.parametrize(
    ("holds", "repaired", "word"),
    [
        (True, False, "holds"),
        (True, True, "holds"),
        (False, True, "holds corrected"),
        (False, False, "fails as stated"),
    ],
)
def test_a_verdict_is_the_ledgers_word(holds, repaired, word):
    finding = Finding("C00", holds, "numbers", repaired)
    assert finding.verdict == word
    assert word in VERDICTS


def test_a_claim_that_only_fails_needs_no_word_on_its_repair():
    assert Finding("C00", False, "numbers").verdict == "fails as stated"


def test_too_many_events_by_hand():
    # With probability 1/10 allowed, k of k events have probability 10^-k: 7 are the first below 1e-6.
    assert FALSE_ALARM == 1e-6
    assert [exceeds(k, k, 0.1 * (1 + 1e-9)) for k in (5, 6, 7)] == [False, False, True]
    assert [exceeds(k, k, 0.1 * (1 + 1e-9), tests=100) for k in (7, 8, 9)] == [False, False, True]
    assert not exceeds(0, 10**6, 1e-3)  # fewer than allowed speak for the claim


@pytest.mark.parametrize("tests", [1, 1000])
@pytest.mark.parametrize(("trials", "allowed"), [(50, 0.01), (1000, 0.1), (10**6, 1e-5)])
def test_the_first_count_that_exceeds_is_the_first_with_a_tail_below_the_false_alarm(trials, allowed, tests):
    first = next(k for k in range(trials) if binom.sf(k - 1, trials, allowed) < 1e-6 / tests)  # P(X ≥ k)
    assert exceeds(first, trials, allowed, tests)
    assert not exceeds(first - 1, trials, allowed, tests)


@pytest.mark.parametrize("confidence", [0.99, 0.9])
@pytest.mark.parametrize(("events", "trials"), [(0, 20), (3, 20), (20, 20), (12, 10**5)])
def test_a_proportion_has_the_clopper_pearson_interval(events, trials, confidence):
    tail = (1 - confidence) / 2
    low = beta.ppf(tail, events, trials - events + 1) if events else 0.0
    high = beta.ppf(1 - tail, events + 1, trials - events) if events < trials else 1.0
    words = proportion(events, trials, confidence)
    assert words == f"{events} of {trials} ({100 * confidence:.0f} % interval {low:.2g} to {high:.2g})"


def test_a_proportion_by_hand():
    # None of 20: (1 − high)^20 = 0.005.
    numbers = re.findall(r"[\d.]+", proportion(0, 20))
    assert numbers == ["0", "20", "99", "0", f"{1 - 0.005 ** (1 / 20):.2g}"]


def test_a_table_refutes_where_one_row_does_at_its_share_of_the_false_alarm():
    # P(Bin(10, 0.1) ≥ 8) = 3.7e-7, P(≥ 9) = 9.1e-9: 8 of 10 refutes alone, not among three rows.
    rows = {"runs": [10, 10, 10], "delta": [0.1, 0.1, 0.1]}
    assert not refutes(pd.DataFrame({"late": [8, 0, 0]} | rows), "late")
    assert refutes(pd.DataFrame({"late": [8, 0, 0]} | rows).head(1), "late")
    assert refutes(pd.DataFrame({"late": [0, 9, 0]} | rows), "late")
