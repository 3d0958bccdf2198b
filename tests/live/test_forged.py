"""Journals changed by somebody who computes all checksums anew: a race that could have been, or an error."""

import copy
import hashlib
import json
import math
import re
import warnings
from pathlib import Path

import pytest
from rewriting import rewrite

import ebr
from ebr.live.journal import Journal, JournalError
from ebr.live.race import Race

OLD = Path(__file__).parent
MEANS = {"A": 0.8, "B": 0.78, "C": 0.1}
ARMS = list(MEANS)
# What may stand in the place of anything: other kinds, other numbers, more and less.
WRONG = [
    None,
    True,
    -1,
    0,
    1,
    1.0,
    3,
    0.25,
    10**30,
    -1e300,
    "",
    "x",
    "Bernoulli",
    "ask",
    [],
    {},
    [1],
    [[0], 1],
]
WRONG += [[0, 1], [1, "x"], {"A": 1}, {"A": [1, 1.0]}, {"A": {}}]


def sealed(lines):
    """The bytes of a journal that says this, every checksum right; computed here, not by the journal."""
    content, previous = b"", b""
    for line in lines:
        body = json.dumps({key: line[key] for key in line if key != "checksum"})[:-1].encode()
        previous = hashlib.sha256(previous + body).hexdigest().encode()
        content += body + b', "checksum": "' + previous + b'"}\n'
    return content


def places(value, so_far=()):
    """Every place within a line, from the outside in, by the keys that lead there."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        if key != "checksum":
            yield (*so_far, key)
            yield from places(value[key], (*so_far, key))


def edits(line):
    """A line with each of its places left out, changed to each wrong value, or with something more in it."""
    for *before, last in places(line):
        for value in (*WRONG, "left out"):
            edited = copy.deepcopy(line)
            inner = edited
            for key in before:
                inner = inner[key]
            if value == "left out":
                del inner[last]
            else:
                inner[last] = value
            if json.dumps(edited) != json.dumps(line):
                yield edited
    for more in ("more", "counted", "rewards", "pulls", "seed", "rounding"):
        if more not in line:
            yield from (line | {more: value} for value in (1, {}, {"A": 1}, True))


def could_have_been(race, lines):
    """The oracle: whether every line says what `tell` would have taken in."""
    asked = {}
    low, high = lines[0]["support"] or (-math.inf, math.inf)
    for line in lines[1:]:
        if line["event"] == "ask":
            asked = line["pulls"]
            continue
        assert set(line["rewards"]) == set(asked)
        for arm, (count, total) in line["rewards"].items():
            assert type(count) is int
            assert type(total) is float
            assert count == asked[arm]
            assert count * low <= total <= count * high
            assert math.isfinite(total)
            if lines[0].get("rewards") == "Bernoulli":
                ones = line["counted"][arm] if lines[0].get("rounding") else total
                assert 0 <= ones <= count
                assert ones == int(ones)
    assert race.history["pulls"].sum() == race.intervals["pulls"].sum()
    assert race.finished or race.survivors
    return True


SHARP = ebr.SharpElasticBatchRacing(3, 0.2, 0.1)
BERNOULLI = ebr.PausingElasticBatchRacing(3, 0.2, 0.1, rewards="Bernoulli")
RACES = {
    "sharp": (SHARP, {}),
    "rounded": (BERNOULLI, {"rounding": True}),
    "zeros and ones": (BERNOULLI, {}),
    "the two best": (ebr.SharpElasticBatchRacing(3, 0.2, 0.1, k=2), {}),
    "elastic": (ebr.ElasticBatchRacing(3, 0.2, 0.1), {}),
    "sequential": (ebr.SequentialRacing(0.4, 0.4), {}),
    "passive": (ebr.Passive(0.5, 0.3), {}),
    "unbounded": (
        ebr.SharpElasticBatchRacing(3, 0.2, 0.1, rewards="Gaussian"),
        {"support": None, "rewards": "Gaussian"},
    ),
}
QUICK = ("sharp", "rounded")


def played(algorithm, path, **terms):
    """Race two rounds, if it takes so long, and ask for the next."""
    with Race(algorithm, ARMS, path, **terms) as race:
        for _ in range(2):
            if not race.finished:
                race.tell({arm: (n, float(int(n * MEANS[arm]))) for arm, n in race.ask().items()})
        if not race.finished:
            race.ask()
    return path


def outcome(path, opened):
    """Open a journal: the number of the line that is to blame, or infinity if it could have been."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of guarantees that are void
        try:
            with opened() as race:
                assert could_have_been(race, [json.loads(line) for line in path.read_text().splitlines()])
                return math.inf
        except JournalError as error:
            (number,) = re.findall(r"line (\d+) of|$", str(error))[:1]
            return int(number or 0)


def every_edit(path):
    """Edit every place of every line; count the edits that were found, and those that could have been."""
    lines = [json.loads(line) for line in path.read_text().splitlines()][:5]
    found = could = 0
    for number, line in enumerate(lines, start=1):
        for edited in edits(line):
            rewrite(path, sealed([*lines[: number - 1], edited, *lines[number:]]))
            blamed = outcome(path, lambda: Race.open(path, readonly=True))
            assert blamed >= number, f"{edited} is blamed on line {blamed}"
            found, could = found + (blamed < math.inf), could + (blamed == math.inf)
    return found, could


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in RACES]
)
def test_every_edit_leaves_a_race_that_could_have_been_or_is_blamed_on_a_line(name, path, unflushed):
    algorithm, terms = RACES[name]
    found, could = every_edit(played(algorithm, path, **terms))
    assert found > 500
    assert could > 5  # another seed, other rewards within the support: nobody can tell


@pytest.mark.slow
@pytest.mark.parametrize(
    "old", ["format-1/sharp", "format-1/sequential-unbounded", "format-2/sharp-gaussian", "format-2/elastic"]
)
def test_every_edit_of_an_old_journal_is_found_too(old, path):
    path.write_bytes((OLD / f"{old}.jsonl").read_bytes())
    found, could = every_edit(path)
    assert found > 500
    assert could > 5


def test_who_names_the_race_is_told_of_an_edited_first_line_as_well(path, unflushed):
    played(SHARP, path)
    first, *others = (json.loads(line) for line in path.read_text().splitlines())
    for edited in edits(first):
        rewrite(path, sealed([edited, *others]))
        assert outcome(path, lambda: Race(SHARP, ARMS, path)) in (0, 1, math.inf)  # 0: it is another race's


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("A", [48, 48.5], r"rewards of 'A' must lie in \[0\.0, 1\.0\], .* got 48 with the sum 48\.5"),
        ("A", [48, -1.0], r"with the sum -1\.0"),
        ("A", [48, "9"], r"a tuple for 'A' must be \(count, sum\)"),
        ("A", [48, 1e999], "with the sum inf"),
        ("A", 48, "rewards must have count and sum of each arm"),
        ("A", [47, 9.0], "is not what the algorithm does here"),
        ("Z", [48, 9.0], "is not what the algorithm does here"),
    ],
)
def test_a_forged_reward_is_refused_with_its_line(place, value, says, path):
    played(SHARP, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[2]["rewards"]["A"] == [48, 38.0]
    lines[2]["rewards"][place] = value
    path.write_bytes(resealed(sealed(lines).replace(b"Infinity", b"1e999")))  # JSON has no infinity but this
    before = path.read_bytes()
    with pytest.raises(JournalError, match=f"line 3 of .*{says}"):
        Race.open(path)
    assert path.read_bytes() == before


def resealed(content):
    """Bytes that are lines already, every checksum made right."""
    made, previous = b"", b""
    for line in content.splitlines():
        body = line.rpartition(b', "checksum"')[0]
        previous = hashlib.sha256(previous + body).hexdigest().encode()
        made += body + b', "checksum": "' + previous + b'"}\n'
    return made


TIME = b', "time": "2026-01-01T00:00:00+00:00"'


@pytest.mark.parametrize(
    "body",
    [
        b'{"event": "ask"',
        b'{"event": "ask", "time": "yesterday"',
        b'{"event": "ask", "time": 5',
        b'{"event": 5' + TIME,
        b'{"event": ["ask"]' + TIME,
        b'{"event": "ask", "event": "tell"' + TIME,
        b'{"event": "ask", "round": NaN' + TIME,
        b'{"event": "ask", "round": -Infinity' + TIME,
        b'{"event": "ask", "round": ' + b"9" * 5000 + TIME,
        b'{"event": "ask", "round": ' + b"[" * 100_000 + TIME,
        b'{"event": "\xff"' + TIME,
        b'{"event": "ask" "round": 1' + TIME,
        b"",
        b"[1",
    ],
    ids=lambda body: body[:40].decode(errors="replace"),
)
def test_a_line_that_is_none_is_refused_though_its_checksum_is_right(body, path):
    content = Journal(path)
    content.append({"event": "start"})
    content.close()
    path.write_bytes(resealed(path.read_bytes() + body + b', "checksum": ""}\n'))
    with pytest.raises(JournalError, match=r"line 2 of .* is none that a journal has .*: restore the file"):
        Journal(path)


def test_an_edit_that_only_python_takes_for_the_same_is_found(path):
    played(SHARP, path)
    content = path.read_text()
    for right, wrong in (
        ('"round": 1', '"round": true'),
        ('"round": 1', '"round": 1.0'),
        (", 38.0]", ", 38]"),
    ):
        assert right in content
        path.write_bytes(resealed(content.replace(right, wrong).encode()))
        with pytest.raises(JournalError, match=r"line [23] of"):
            Race.open(path)
