"""tests/survivors.csv lists the mutants of formulas that a check does not see, each with a reason.

tools/mutate.py finds them. Here some of the quickest checks are run on a few mutants again.
"""

import csv
import importlib
from pathlib import Path

import pytest

from tools import mutate

pytestmark = pytest.mark.slow
TABLE = Path(__file__).parents[1] / "survivors.csv"
ROWS = list(csv.DictReader(TABLE.read_text("utf-8").splitlines()))
QUICK = ("C13", "C14", "C37", "C48", "X2")


def test_every_survivor_is_a_mutant_of_a_formula_and_has_a_reason():
    checks, names = mutate.planted(), {row["function"] for row in ROWS}
    modules = {".".join(name.split(".")[:3]) for name in names}
    files = [Path(importlib.import_module(module).__file__) for module in modules]
    nodes = {name: node for file in files for name, node in mutate.functions(file)}
    for name in names:
        known = {(mutant.before, mutant.after) for mutant in mutate.mutants(name, nodes[name])}
        listed = {(row["before"], row["after"]) for row in ROWS if row["function"] == name}
        assert listed <= known, f"{name} has no such mutants any more: {listed - known}"
    assert all(row["why"] and row["claim"] in checks for row in ROWS)


@pytest.mark.parametrize("claim", QUICK)
def test_what_a_check_does_not_see_is_in_the_table(claim):
    known = {(row["claim"], row["function"], row["before"], row["after"]) for row in ROWS}
    found = mutate.survivors(claim, mutate.planted()[claim], mutate.rooms()[claim], most=1, seconds=60)
    unseen = {row[:4] for row in found} - known
    assert not unseen, f"tools/mutate.py {claim}: {unseen}"
