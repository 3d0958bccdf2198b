"""Journals of earlier formats, of every algorithm that a journal may name, are replayed.

They were written by earlier versions of ebr. A replay accepts a line only if the race would ask for the same,
so a changed algorithm is detected. ends.json has the state of each race of format 4 at its end.
"""

import json
import warnings
from pathlib import Path

import pytest
from live.races import forge

import ebr
from ebr.live.journal import Journal

HERE = Path(__file__).parent
FOLDER = HERE / "format-4"
ENDS = json.loads((FOLDER / "ends.json").read_text(encoding="utf-8"))
EARLIER = sorted(path for number in (1, 2, 3) for path in (HERE / f"format-{number}").glob("*.jsonl"))
NAMED = "{0.parent.name}/{0.stem}".format
ARMS = ["A", "B", "C"]


# Races that ebr no longer has.
GONE = [HERE / "format-3" / "sharp-gaussian.jsonl"]
GONE += [FOLDER / f"{name}.jsonl" for name in ("sharp-gaussian", "pausing-bernoulli-one-round")]


@pytest.mark.parametrize("name", sorted(ENDS.keys() - {"elastic-pair"} - {path.stem for path in GONE}))
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
    elastic = [f"{kind}ElasticBatchRacing" for kind in ("", "Sharp", "Pausing", "Staked", "Certified")]
    elastic.append("ElasticPair")
    others = ["AggressiveElimination", "DeltaElimination", "Passive", "SequentialRacing"]
    assert {line["algorithm"] for line in first} == {*elastic, *others}


def test_a_journal_of_an_algorithm_that_is_not_ebrs_own_says_how_it_opens():
    """ElasticPair is in the compendium, so its journals open as those of a user's algorithm."""
    with pytest.raises(ebr.JournalError, match=r"ElasticPair.*pass an algorithm of your own to Race"):
        ebr.Race.open(FOLDER / "elastic-pair.jsonl")


@pytest.mark.parametrize("old", GONE, ids=NAMED)
def test_a_journal_of_a_race_that_has_left_ebr_says_so_and_can_be_read(old):
    says = r"has left ebr: ebr\.live\.journal\.Journal\(path, readonly=True\)\.lines .* which writes format 4"
    with pytest.raises(ebr.JournalError, match=says):
        ebr.Race.open(old, readonly=True)
    assert {"start", "ask"} <= {line["event"] for line in Journal(old, readonly=True).lines}


@pytest.mark.parametrize("old", [path for path in EARLIER if path not in GONE], ids=NAMED)
def test_a_journal_of_an_earlier_format_goes_on_as_it_began(old, tmp_path):
    """The race asks for the same as when the journal was written, by an earlier version of ebr."""
    journal = tmp_path / old.name
    journal.write_bytes(old.read_bytes())
    first, *_, last = (json.loads(line) for line in old.read_text().splitlines())
    assert f"format-{first['format']}" == old.parent.name
    assert last["event"] == "ask"
    with ebr.Race.open(journal) as race:
        assert race.asked == race.ask() == last["pulls"]
        algorithm = race.algorithm
    known = {"support": None} if "unbounded" in old.stem else {}
    known = {"support": None, "rewards": "Gaussian"} if "gaussian" in old.stem else known
    with pytest.raises(ebr.JournalError, match="another race"):
        ebr.Race(algorithm, ["A", "B", "D"], journal, **known)
    if first["format"] == 2:  # format 1 does not record what is known of the rewards
        with pytest.raises(ebr.JournalError, match=r"rewards is .* and 'Bernoulli' here"):
            ebr.Race(algorithm, ARMS, journal, rewards="Bernoulli")
    with (
        ebr.Race.open(journal)
        if "rounded" in old.stem
        else ebr.Race(algorithm, ARMS, journal, **known) as race
    ):
        race.tell({arm: (pulls, pulls // 2) for arm, pulls in race.ask().items()}, last["round"])
        assert race.round == last["round"] + 1 or race.finished
    forge(journal, 1, blocks=False)
    with pytest.raises(ebr.JournalError, match=r"line 1 .* never written"):
        ebr.Race.open(journal)


def test_there_are_journals_of_every_earlier_format_and_kind():
    kinds = {1: "sharp sharp-bounded sequential sequential-unbounded elastic delta"}
    kinds[2] = "sharp sharp-gaussian sharp-unbounded elastic sequential"
    kinds[3] = "sharp sharp-two-best pausing-rounded sequential"
    found = {(path.parent.name, path.stem) for path in EARLIER}
    assert found >= {(f"format-{number}", kind) for number, names in kinds.items() for kind in names.split()}


def test_a_sharp_race_of_format_1_is_sub_gaussian_and_finds_one_arm():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sharp = ebr.Race.open(HERE / "format-1" / "sharp.jsonl", readonly=True)
    # Its counts are those of sub-Gaussian rewards.
    told = ebr.SharpElasticBatchRacing(6, 0.05, 0.05).pulls_by_round(3)
    assert sharp.history["pulls"].iloc[0] == told[0] == 58
    assert sharp.algorithm.k == 1


def test_an_old_race_with_a_support_beyond_0_and_1_goes_on_in_its_units(path):
    old = HERE / "unscaled.jsonl"
    path.write_bytes(old.read_bytes())
    recorded = [json.loads(line) for line in old.read_text().splitlines()]
    assert (recorded[0]["format"], recorded[0]["support"]) == (3, [0.0, 50.0])
    with ebr.Race.open(path) as race:
        assert race.ask() == recorded[-1]["pulls"]
        assert race.intervals["mean"].between(15, 30).all()
        told = {arm: (count - 1, 25.0 * (count - 1)) for arm, count in race.ask().items()}
        race.tell(told, missing="at random")
        assert race.algorithm.epsilon == 0.5
