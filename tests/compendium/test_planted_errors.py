"""Every check can fail: with an error planted in the mathematics it gives another verdict.

For every decided claim, tests/planted has the check, which gives the ledger's verdict, and the same check
with planted errors: a constant scaled, a sign flipped, an elimination rule loosened. Tables of results are
not edited. The ledger says how likely chance alone is to change a verdict (`false_alarm`).
"""

import pkgutil
from importlib import import_module

import planted
import pytest
from compendium.shared import ledger

pytestmark = pytest.mark.slow
LEDGER = {claim.id: claim for claim in ledger.claims()}
MODULES = [import_module(f"planted.{module.name}") for module in pkgutil.iter_modules(planted.__path__)]
PLANTED = {claim: checks for module in MODULES for claim, checks in vars(module).get("PLANTED", {}).items()}


def test_every_decided_claim_has_a_planted_error_and_no_other_has():
    decided = {name for name, claim in LEDGER.items() if claim.verdict in ledger.DECIDED}
    assert set(PLANTED) == decided


@pytest.mark.parametrize("claim", sorted(PLANTED))
def test_a_planted_error_changes_the_verdict(claim):
    check, *spoilt = PLANTED[claim]
    finding = check()
    assert (finding.claim, finding.verdict) == (claim, LEDGER[claim].verdict)
    assert spoilt
    for number, error in enumerate(spoilt, start=1):
        assert error().verdict != LEDGER[claim].verdict, f"planted error {number} goes unseen"
