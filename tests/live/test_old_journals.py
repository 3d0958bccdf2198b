"""Journals of earlier formats, of every algorithm that a journal may name, replayed as they were written.

They were written by the ebr of then. A replay believes a line only if the race would ask just that, so an
algorithm that has changed what it asks is found; ends.json has how each race of format 4 stood at its end.
"""

import json
from pathlib import Path

import pytest

import ebr

FOLDER = Path(__file__).parent / "format-4"
ENDS = json.loads((FOLDER / "ends.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(ENDS.keys() - {"elastic-pair"}))
def test_a_journal_of_format_4_is_replayed_to_where_it_stood(name):
    with ebr.Race.open(FOLDER / f"{name}.jsonl", readonly=True) as race:
        recommended = race.recommendation
        found = {
            "recommendation": list(recommended) if isinstance(recommended, tuple) else recommended,
            "within": race.within,
            "survivors": race.survivors,
            "asked": race.asked,
        }
    assert found == ENDS[name]


def test_every_algorithm_that_a_journal_may_name_has_one_of_format_4():
    first = [json.loads(path.read_text().splitlines()[0]) for path in sorted(FOLDER.glob("*.jsonl"))]
    assert {line["format"] for line in first} == {4}
    assert len(first) == len(ENDS)
    assert {line["algorithm"] for line in first} == {
        "AggressiveElimination",
        "DeltaElimination",
        "ElasticBatchRacing",
        "ElasticPair",
        "Passive",
        "PausingElasticBatchRacing",
        "SequentialRacing",
        "SharpElasticBatchRacing",
    }


def test_a_journal_of_an_algorithm_that_is_not_ebrs_own_says_how_it_opens():
    """ElasticPair is played by notebook 13 alone; its journals open as those of an algorithm of one's own."""
    with pytest.raises(ebr.JournalError, match=r"ElasticPair.*an algorithm of your own is passed to Race"):
        ebr.Race.open(FOLDER / "elastic-pair.jsonl")
