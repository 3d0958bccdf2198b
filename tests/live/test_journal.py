"""The journal against crashes at every byte and step, a second writer, a full disk, and forgery."""

import copy
import json
import math
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from live.races import body_of, forge, rewrite, sealed

import ebr
from ebr.live import journal
from ebr.live.journal import Journal, JournalError
from ebr.live.race import Race

LINES = [
    {"event": "start", "arms": ["Ä", "B\n"]},
    {"event": "ask", "n": 3},
    {"event": "tell", "sum": 0.1 + 0.2},
]


def filled(path, lines=LINES):
    book = Journal(path)
    for line in lines:
        book.append(line)
    book.close()
    return path.read_bytes()


def payload(book):
    """The lines as they were passed in, without times and checksums."""
    return [{key: line[key] for key in line if key not in ("time", "checksum")} for line in book.lines]


def reopened(path, readonly=False):
    """What a later process reads, and whether it warns of a torn line; the journal is closed again."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        book = Journal(path, readonly=readonly)
    book.close()
    assert all("torn" in str(warning.message) for warning in warned)
    return payload(book), bool(warned)


def test_lines_come_back_as_they_were_in_json(path):
    content = filled(path)
    book = Journal(path)
    assert payload(book) == LINES
    lines = content.decode().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["start", "ask", "tell"]
    assert all(json.loads(line)["time"].endswith("+00:00") for line in lines)
    assert content.isascii()
    book.append({"event": "more"})
    assert path.read_bytes().startswith(content)  # bytes are only added at the end


def test_a_line_is_written_in_one_go_and_flushed_before_append_returns(path, monkeypatch):
    calls = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda to, content: calls.append((to, content)) or write(to, content))
    monkeypatch.setattr(os, "fsync", lambda to: calls.append((to, os.fstat(to).st_ino)) or fsync(to))
    book = Journal(path)
    assert path.parent.stat().st_ino in [what for _, what in calls]  # the folder, which holds the name
    calls.clear()
    book.append({"event": "ask"})
    (descriptor, line), (flushed, _) = calls
    assert line == path.read_bytes()
    assert flushed == descriptor
    book.close()
    calls.clear()
    Journal(path).close()  # opening flushes: a killed writer may not have done so
    assert {path.stat().st_ino, path.parent.stat().st_ino} <= {what for _, what in calls}


def test_cut_at_every_byte_it_keeps_the_whole_lines_and_sets_the_rest_aside(path, unflushed):
    content = filled(path)
    aside = path.with_name("trial.jsonl.torn")
    for length in range(len(content) + 1):
        rewrite(path, content[:length])
        aside.unlink(missing_ok=True)
        whole, torn = content[:length].count(b"\n"), content[:length].rpartition(b"\n")[2]
        assert reopened(path, readonly=True) == (LINES[:whole], bool(torn))
        assert path.read_bytes() == content[:length]  # a reader repairs nothing
        assert not aside.exists()
        assert reopened(path) == (LINES[:whole], bool(torn))
        assert path.read_bytes() + torn == content[:length]
        assert aside.exists() == bool(torn)
        if torn:
            assert aside.read_bytes() == torn + b"\n"
        filled(path, LINES[whole:])
        assert reopened(path) == (LINES, False)
    rewrite(path, content[:-1] + b"x")  # a changed last newline is a torn line
    assert reopened(path) == (LINES[:2], True)


class Killed(BaseException):
    """Simulates a kill; no code catches it for good."""


@pytest.fixture
def killed_after(monkeypatch, unflushed):
    """Let a process die after a number of steps; a step is a byte written, a flush, or a cut."""
    left = [0]

    def step(*_):
        left[0] -= 1
        if left[0] < 0:
            raise Killed

    def write(descriptor, content, write=os.write):
        for byte in content:
            step()
            write(descriptor, bytes([byte]))
        return len(content)

    def cut(descriptor, length, cut=os.ftruncate):
        step()
        cut(descriptor, length)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "ftruncate", cut)
    monkeypatch.setattr(os, "fsync", step)
    return lambda steps: left.__setitem__(0, steps)


def test_killed_at_every_step_of_a_repair_it_loses_nothing(path, killed_after):
    aside = path.with_name("trial.jsonl.torn")
    killed_after(10**6)
    before = filled(path, LINES[:2])
    line = filled(path, LINES[2:])[len(before) :]
    repairs = 0
    for length in (*range(1, 40, 13), len(line) - 1):  # bytes of the line that reached the disk
        for steps in range(2 * len(line)):
            rewrite(path, before + line[:length])
            aside.unlink(missing_ok=True)
            killed_after(steps)
            try:
                reopened(path)
                finished = True
            except Killed:
                finished, repairs = False, repairs + 1
            killed_after(10**6)
            assert reopened(path)[0] == LINES[:2]
            assert path.read_bytes() == before
            assert aside.read_bytes().endswith(line[:length] + b"\n")  # perhaps twice, but at least once
            if finished:
                break
        assert finished
    assert repairs > 100


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(JournalError) as error:
        Journal(path)
    assert path.read_bytes() == content
    assert not path.with_name("trial.jsonl.torn").exists()
    return str(error.value)


@pytest.mark.parametrize("change", [0x01, 0x20, 0x80, None], ids=str)  # bits to flip; None makes a line end
def test_every_changed_byte_is_found_and_its_line_named(path, change, unflushed):
    content = filled(path)
    for place in range(len(content) - 1):
        changed = bytearray(content)
        changed[place] = changed[place] ^ change if change else ord("\n")
        if changed == content:
            continue
        number = content[:place].count(b"\n") + 1
        message = refused(path, bytes(changed))
        assert f"line {number} of" in message
        advice = f"cut it back to its first {number - 1} lines" if number > 1 else "name another one"
        assert f"restore the file from a copy, or {advice}" in message


def test_missing_moved_and_doubled_lines_are_found_and_named(path):
    one, two, three = filled(path).splitlines(keepends=True)
    for lines, number in (
        ([two, three], 1),
        ([one, three], 2),
        ([one, three, two], 2),
        ([one, two, two, three], 3),
        ([one, two, b"\n", three], 3),
    ):
        assert f"line {number} of" in refused(path, b"".join(lines))


@pytest.mark.parametrize(
    "content", [b"arm,reward\nA,1\n", b'{"arms": 3}', b"PK\x03\x04 a spreadsheet", b"\0" * 50]
)
def test_a_file_that_is_no_journal_is_left_alone(path, content):
    assert re.search("name another (one if it is no journal|file)$", refused(path, content))


def test_the_same_process_cannot_open_it_twice_until_it_is_dropped(path):
    book = Journal(path)
    with pytest.raises(JournalError, match=r"open for writing elsewhere.*close it there"):
        Journal(path)
    book.append(LINES[0])
    reader = Journal(path, readonly=True)
    assert payload(reader) == LINES[:1]
    with pytest.raises(JournalError, match="reading only: open it without readonly"):
        reader.append(LINES[1])
    with pytest.raises(JournalError, match="elsewhere"):  # closing the reader does not release the lock
        Journal(path)
    del book  # releases the lock, as close does
    assert payload(Journal(path)) == LINES[:1]


def test_a_process_that_is_killed_leaves_no_lock(path):
    filled(path)
    program = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('locked', flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(JournalError, match="elsewhere, in another process"):
            Journal(path)
        assert reopened(path, readonly=True) == (LINES, False)
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert reopened(path) == (LINES, False)


def fork(path, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)


def grow(path, _):
    with path.open("ab") as file:
        file.write(b"# a remark\n")


def replace(path, _):
    path.rename(path.with_name("elsewhere.jsonl"))
    path.write_bytes(path.with_name("elsewhere.jsonl").read_bytes())


@pytest.mark.parametrize("change", [fork, grow, replace, lambda path, _: path.unlink()])
def test_a_forked_copy_or_a_file_changed_behind_its_back_is_refused(path, change, monkeypatch):
    book = Journal(path)
    book.append(LINES[0])
    change(path, monkeypatch)
    with pytest.raises(JournalError, match=r"was moved, changed or replaced|No such file"):
        book.append(LINES[1])
    with pytest.raises(JournalError, match="closed: open it again"):
        book.append(LINES[1])


def test_a_change_of_directory_does_not_lead_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = Journal("trial.jsonl")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    book.append(LINES[0])
    assert payload(Journal(tmp_path / "trial.jsonl", readonly=True)) == LINES[:1]


@pytest.mark.parametrize("room", [0, 1, 100])
def test_a_full_disk_ends_it_and_the_next_opening_repairs_it(path, room, monkeypatch):
    write = os.write
    book = Journal(path)
    book.append(LINES[0])
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:room]))
    with pytest.raises(JournalError, match=r"line 2 could not be written.*open the journal again"):
        book.append(LINES[1])
    with pytest.raises(JournalError, match="closed"):
        book.append(LINES[1])
    if room:
        with pytest.raises(JournalError, match="cannot be opened"):  # no room to set the torn line aside
            Journal(path)
    monkeypatch.undo()
    assert reopened(path) == (LINES[:1], room > 0)
    assert payload(Journal(path)) == LINES[:1]


def test_what_cannot_be_opened_is_named(path, tmp_path, monkeypatch):
    with pytest.raises(JournalError, match=r"no journal .*trial\.jsonl: start a race"):
        Journal(path, create=False)
    assert not path.exists()
    with pytest.raises(JournalError, match=r"there is no folder .*none: make it first"):
        Journal(tmp_path / "none" / "trial.jsonl")
    filled(path)
    monkeypatch.setattr(journal, "fcntl", None)  # Windows
    with pytest.raises(JournalError, match="cannot be locked on this system"):
        Journal(path)
    assert payload(Journal(path, readonly=True)) == LINES


@pytest.fixture
def no_waiting():
    """A guard that ends a test which waits for a pipe."""

    def wake(*_):
        raise AssertionError("it waits for a pipe")  # an OSError would look like the pipe's

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("readonly", [False, True])
def test_pipes_devices_folders_and_circles_of_links_are_refused_at_once(path, readonly, no_waiting):
    pipe, null, circle = (path.with_name(name) for name in ("pipe", "null", "circle"))
    os.mkfifo(pipe)
    null.symlink_to("/dev/null")
    circle.symlink_to(circle)
    for file, says in (
        (pipe, "it is a folder, a pipe or a device"),
        (null, "it is a folder, a pipe or a device"),
        ("/dev/zero", "it is a folder, a pipe or a device"),  # must not be read to its end
        (path.parent, "Is a directory|it is a folder"),
        (circle, "Too many levels of symbolic links"),
    ):
        with pytest.raises(JournalError, match=f"cannot be opened: ({says})"):
            Journal(file, readonly=readonly)


@pytest.mark.parametrize("kind", ["a pipe", "a link"])
def test_a_pipe_where_torn_lines_go_is_not_waited_for_and_a_link_not_followed(path, no_waiting, kind):
    content = filled(path)
    path.write_bytes(content[:-5])
    aside, precious = path.with_name("trial.jsonl.torn"), path.with_name("precious")
    precious.touch()
    os.mkfifo(aside) if kind == "a pipe" else aside.symlink_to(precious)
    with pytest.raises(JournalError, match=r"trial.jsonl.torn, where .* cannot be opened .*: move it away"):
        Journal(path)
    assert path.read_bytes() == content[:-5]
    assert precious.read_bytes() == b""


@pytest.mark.parametrize(
    "name", [None, 3, b"trial.jsonl", "", "trial\n# Result: A.jsonl", "trial\x1b[2J.jsonl"]
)
def test_an_unprintable_name_is_refused(folder, name):
    for readonly in (False, True):
        with pytest.raises(
            JournalError, match="journal must be the printable name of a file, got "
        ) as refused:
            Journal(name, readonly=readonly)
        assert str(refused.value).isprintable()
    assert list(folder.iterdir()) == []


def test_a_torn_line_behind_a_link_is_where_the_message_says(path, monkeypatch):
    real = path.with_name("archive") / "2026.jsonl"
    real.parent.mkdir()
    content = filled(real)
    real.write_bytes(content[:-5])
    path.symlink_to(real)
    monkeypatch.chdir(path.parent)
    with pytest.warns(UserWarning, match="is torn") as warned:
        Journal(path.name).close()
    named = str(warned[0].message).rpartition("was moved to ")[2]
    assert os.path.samefile(named, real.with_name("2026.jsonl.torn"))


def test_numbers_that_json_does_not_have_are_refused_before_they_are_written(path):
    book = Journal(path)
    with pytest.raises(ValueError, match="JSON compliant"):
        book.append({"event": "tell", "sum": float("nan")})
    assert path.read_bytes() == b""
    book.append(LINES[0])
    assert payload(Journal(path, readonly=True)) == LINES[:1]


# Journals that are changed with all checksums computed anew: either a possible race, or an error.

MEANS = {"A": 0.8, "B": 0.78, "C": 0.1}
ARMS = list(MEANS)
# Values that replace each entry of a line: other types, other numbers, longer and shorter lists.
WRONG = [None, True, -1, 0, 1, 1.0, 3, 0.25, 10**30, -1e300, "", "x", "Bernoulli", "ask", [], {}, [1]]
WRONG += [[[0], 1], [0, 1], [1, "x"], {"A": 1}, {"A": [1, 1.0]}, {"A": {}}]


def places(value, so_far=()):
    """Every place within a line, as the keys that lead there, outer places first."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        if key != "checksum":
            yield (*so_far, key)
            yield from places(value[key], (*so_far, key))


def edits(line):
    """A line with one place left out or set to a wrong value, or with an additional entry."""
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
    """The oracle: check that every line is one that `tell` would have accepted."""
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
                ones = line["counted"][arm] if "counted" in line else total
                assert 0 <= ones <= count
                assert ones == int(ones)
    assert race.history["pulls"].sum() == race.intervals["pulls"].sum()
    assert race.finished or race.survivors
    return True


SHARP = ebr.SharpElasticBatchRacing(3, 0.2, 0.1)
BERNOULLI = ebr.PausingElasticBatchRacing(3, 0.2, 0.1, rewards="Bernoulli")
NORMAL = ebr.SharpElasticBatchRacing(3, 0.2, 0.1, rewards="Gaussian")


def played(algorithm, path, **terms):
    """Play two rounds, or fewer if the race ends, and ask for the next."""
    with Race(algorithm, ARMS, path, **terms) as race:
        for _ in range(2):
            if not race.finished:
                race.tell({arm: (n, float(int(n * MEANS[arm]))) for arm, n in race.ask().items()})
        if not race.finished:
            race.ask()
    return path


def outcome(path, opened):
    """Open a journal: the number of the line that is blamed, or infinity if the race is possible."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of void guarantees
        try:
            with opened() as race:
                assert could_have_been(race, [json.loads(line) for line in path.read_text().splitlines()])
                return math.inf
        except JournalError as error:
            (number,) = re.findall(r"line (\d+) of|$", str(error))[:1]
            return int(number or 0)


def every_edit(path):
    """Edit every place of every line; count the edits that are found, and those that give a possible race."""
    lines = [json.loads(line) for line in path.read_text().splitlines()][:5]
    found = could = 0
    for number, line in enumerate(lines, start=1):
        for edited in edits(line):
            rewrite(path, sealed(map(body_of, [*lines[: number - 1], edited, *lines[number:]])))
            blamed = outcome(path, lambda: Race.open(path, readonly=True))
            assert blamed >= number, f"{edited} is blamed on line {blamed}"
            found, could = found + (blamed < math.inf), could + (blamed == math.inf)
    return found, could


OLD = ["format-1/sequential-unbounded", "format-2/sharp-gaussian", "format-3/pausing-rounded"]
SLOW = {"marks": pytest.mark.slow}


@pytest.mark.parametrize(
    ("race", "terms"),
    [
        pytest.param(SHARP, {}, id="sharp"),
        pytest.param(BERNOULLI, {}, id="zeros and ones"),
        pytest.param(ebr.SequentialRacing(0.4, 0.4), {}, id="sequential", **SLOW),
        pytest.param(NORMAL, {"support": None, "rewards": "Gaussian"}, id="any", **SLOW),
        *(pytest.param(old, None, id=old, **SLOW) for old in OLD),
    ],
)
def test_every_edit_leaves_a_race_that_could_have_been_or_is_blamed_on_a_line(race, terms, path, unflushed):
    if race in OLD:
        path.write_bytes((Path(__file__).parent / f"{race}.jsonl").read_bytes())
    else:
        played(race, path, **terms)
    found, could = every_edit(path)
    assert found > 500
    assert could > 5  # another seed or other rewards cannot be detected


def test_an_edited_first_line_is_found_or_another_race_when_the_race_is_named(path, unflushed):
    played(SHARP, path)
    first, *others = (json.loads(line) for line in path.read_text().splitlines())
    for edited in edits(first):
        rewrite(path, sealed(map(body_of, [edited, *others])))
        assert outcome(path, lambda: Race(SHARP, ARMS, path)) in (0, 1, math.inf)  # 0: another race's journal


TIME = b', "time": "2026-01-01T00:00:00+00:00"'


@pytest.mark.parametrize(
    "body",
    [
        b'{"event": "ask"',
        b'{"event": "ask", "time": "yesterday"',
        b'{"event": 5' + TIME,
        b'{"event": "ask", "event": "tell"' + TIME,
        b'{"event": "ask", "round": NaN' + TIME,
        b'{"event": "ask", "round": ' + b"9" * 5000 + TIME,
        b'{"event": "ask", "round": ' + b"[" * 100_000 + TIME,
        b'{"event": "\xff"' + TIME,
        b'{"event": "ask" "round": 1' + TIME,
        b"",
    ],
    ids=lambda body: body[:40].decode(errors="replace"),
)
def test_an_invalid_line_is_refused_though_its_checksum_is_right(body, path):
    content = Journal(path)
    content.append({"event": "start"})
    content.close()
    path.write_bytes(sealed([body_of(content.lines[0]), body]))
    with pytest.raises(JournalError, match=r"line 2 of .* is not a line of a journal .*: restore the file"):
        Journal(path)


@pytest.mark.parametrize(
    ("number", "changes"),
    [(2, {"round": True}), (3, {"round": 1.0}), (3, {"rewards": {arm: [48, 38] for arm in ARMS}})],
)
def test_an_edit_that_python_considers_equal_is_found(number, changes, path):
    played(SHARP, path)
    forge(path, number, **changes)
    with pytest.raises(JournalError, match=f"line {number} of"):
        Race.open(path)
