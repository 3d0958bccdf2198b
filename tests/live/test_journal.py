"""The journal against crashes at every byte and step, changed bytes, a second writer and a full disk."""

import json
import os
import re
import signal
import subprocess
import sys
import warnings

import pytest
from rewriting import rewrite

from ebr.live import journal
from ebr.live.journal import Journal, JournalError

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
    """The lines as they were passed in: without their times and checksums."""
    return [{key: line[key] for key in line if key not in ("time", "checksum")} for line in book.lines]


def reopened(path, readonly=False):
    """What a later process reads, whether a torn line was warned of, and the journal let go again."""
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


def test_only_bytes_at_the_end_are_ever_added(path):
    first = filled(path)
    book = Journal(path)
    book.append({"event": "more"})
    assert path.read_bytes().startswith(first)
    assert path.read_bytes().count(b"\n") == 4


def test_a_line_is_written_in_one_go_and_flushed_before_append_returns(path, monkeypatch):
    calls = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda to, content: calls.append((to, content)) or write(to, content))
    monkeypatch.setattr(os, "fsync", lambda to: calls.append((to, "flush")) or fsync(to))
    book = Journal(path)
    assert "flush" in [what for _, what in calls]  # the folder, which holds the new name
    calls.clear()
    book.append({"event": "ask"})
    (descriptor, line), (flushed, what) = calls
    assert line == path.read_bytes()
    assert (flushed, what) == (descriptor, "flush")


def test_what_is_read_is_flushed_before_it_counts(path, monkeypatch):
    """The writer may have been killed between writing and flushing."""
    filled(path)
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda to: flushed.append(os.fstat(to).st_ino))
    Journal(path).close()
    assert path.stat().st_ino in flushed
    assert path.parent.stat().st_ino in flushed


def test_cut_at_every_byte_it_keeps_the_whole_lines_and_sets_the_rest_aside(path, unflushed):
    content = filled(path)
    aside = path.with_name("trial.jsonl.torn")
    for length in range(len(content) + 1):
        rewrite(path, content[:length])
        aside.unlink(missing_ok=True)
        whole, torn = content[:length].count(b"\n"), content[:length].rpartition(b"\n")[2]
        assert reopened(path, readonly=True) == (LINES[:whole], bool(torn))
        assert path.read_bytes() == content[:length]  # whoever only reads, repairs nothing
        assert not aside.exists()
        assert reopened(path) == (LINES[:whole], bool(torn))
        assert path.read_bytes() + torn == content[:length]
        assert aside.exists() == bool(torn)
        if torn:
            assert aside.read_bytes() == torn + b"\n"
        filled(path, LINES[whole:])
        assert reopened(path) == (LINES, False)


class Killed(BaseException):
    """Stands for a kill: nothing catches it for good."""


@pytest.fixture
def killed_after(monkeypatch, unflushed):
    """Let a process die after so many steps, each a byte written, a flush, or a cut."""
    left = [0]

    def step():
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
    monkeypatch.setattr(os, "fsync", lambda descriptor: step())

    def start(steps):
        left[0] = steps

    return start


def test_killed_at_every_step_of_a_repair_it_loses_nothing(path, killed_after):
    aside = path.with_name("trial.jsonl.torn")
    killed_after(10**6)
    before = filled(path, LINES[:2])
    line = filled(path, LINES[2:])[len(before) :]
    repairs = 0
    for length in (*range(1, 40, 13), len(line) - 1):  # how much of the line came to the disk
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
            assert aside.read_bytes().endswith(line[:length] + b"\n")  # twice, perhaps; never not at all
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


@pytest.mark.parametrize("change", [0x01, 0x20, 0x80])
def test_every_changed_byte_is_found_and_its_line_named(path, change, unflushed):
    content = filled(path)
    for place in range(len(content) - 1):
        changed = bytearray(content)
        changed[place] ^= change
        number = content[:place].count(b"\n") + 1
        message = refused(path, bytes(changed))
        assert f"line {number} of" in message
        advice = f"cut it back to its first {number - 1} lines" if number > 1 else "name another one"
        assert f"restore the file from a copy, or {advice}" in message


def test_a_changed_last_newline_is_a_torn_line(path, unflushed):
    path.write_bytes(filled(path)[:-1] + b"x")
    assert reopened(path) == (LINES[:2], True)


def test_bytes_turned_into_line_ends_are_found(path, unflushed):
    content = filled(path)
    for place in range(len(content) - 1):
        if content[place : place + 1] != b"\n":
            refused(path, content[:place] + b"\n" + content[place + 1 :])


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


def test_the_same_process_cannot_open_it_twice(path):
    book = Journal(path)
    with pytest.raises(JournalError, match=r"open for writing elsewhere.*close it there"):
        Journal(path)
    book.append(LINES[0])
    assert payload(Journal(path, readonly=True)) == LINES[:1]
    with pytest.raises(JournalError, match="elsewhere"):  # closing the reader freed nothing
        Journal(path)
    book.close()
    Journal(path).close()


def test_a_journal_that_is_dropped_lets_go(path):
    book = Journal(path)
    book.append(LINES[0])
    del book
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


def test_whoever_reads_only_cannot_write(path):
    filled(path)
    with pytest.raises(JournalError, match="reading only: open it without readonly"):
        Journal(path, readonly=True).append({"event": "more"})
    assert reopened(path) == (LINES, False)


def test_a_forked_copy_cannot_write(path, monkeypatch):
    book = Journal(path)
    book.append(LINES[0])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(JournalError, match="one process alone"):
        book.append(LINES[1])


def grow(path):
    with path.open("ab") as file:
        file.write(b"# a remark\n")


def replace(path):
    path.rename(path.with_name("elsewhere.jsonl"))
    path.write_bytes(path.with_name("elsewhere.jsonl").read_bytes())


@pytest.mark.parametrize("change", [grow, replace, os.unlink])
def test_a_file_changed_behind_its_back_is_refused(path, change):
    book = Journal(path)
    book.append(LINES[0])
    change(path)
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


@pytest.mark.parametrize("step", ["write", "fsync"])
@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_whatever_goes_wrong_in_writing_it_is_not_used_again(path, step, problem, monkeypatch):
    def fail(*_):
        raise problem

    book = Journal(path)
    book.append(LINES[0])
    monkeypatch.setattr(os, step, fail)
    error = JournalError if isinstance(problem, OSError) else KeyboardInterrupt
    with pytest.raises(error, match=str(problem.args[-1]) if problem.args else "^$"):
        book.append(LINES[1])
    monkeypatch.undo()
    with pytest.raises(JournalError, match="closed"):
        book.append(LINES[1])
    # The file knows whether the line is there: it was written if only the flush failed.
    assert reopened(path) == (LINES[: 2 if step == "fsync" else 1], False)


def test_what_cannot_be_opened_is_named(path, tmp_path, monkeypatch):
    with pytest.raises(JournalError, match=r"no journal .*trial\.jsonl: start a race"):
        Journal(path, create=False)
    assert not path.exists()
    with pytest.raises(JournalError, match=r"there is no folder .*none: make it first"):
        Journal(tmp_path / "none" / "trial.jsonl")
    with pytest.raises(JournalError, match="cannot be opened: Is a directory"):
        Journal(tmp_path)
    filled(path)
    monkeypatch.setattr(journal, "fcntl", None)  # Windows
    with pytest.raises(JournalError, match="cannot be locked on this system"):
        Journal(path)
    assert payload(Journal(path, readonly=True)) == LINES


@pytest.fixture
def no_waiting():
    """A guard, not a measurement: whoever waits for a pipe for ever is woken up."""

    def wake(*_):
        raise AssertionError("it waits")  # no OSError, which would be taken for the pipe's

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("readonly", [False, True])
def test_a_pipe_is_refused_at_once(path, readonly, no_waiting):
    os.mkfifo(path)
    with pytest.raises(JournalError, match=r"trial\.jsonl cannot be opened: it is a pipe or a device"):
        Journal(path, readonly=readonly)


@pytest.mark.parametrize("readonly", [False, True])
def test_devices_folders_and_circles_of_links_are_refused(path, readonly):
    path.symlink_to("/dev/null")  # as /dev/zero is, which is not read to its end
    with pytest.raises(JournalError, match="cannot be opened: it is a pipe or a device, not a file"):
        Journal(path, readonly=readonly)
    with pytest.raises(JournalError, match="cannot be opened: it is a pipe or a device, not a file"):
        Journal("/dev/zero", readonly=readonly)
    with pytest.raises(JournalError, match="cannot be opened: Is a directory"):
        Journal(path.parent, readonly=readonly)
    path.unlink()
    path.symlink_to(path.with_name("other.jsonl"))
    path.with_name("other.jsonl").symlink_to(path)
    with pytest.raises(JournalError, match="cannot be opened: Too many levels of symbolic links"):
        Journal(path, readonly=readonly)


def test_a_pipe_where_torn_lines_go_is_not_waited_for(path, no_waiting):
    content = filled(path)
    path.write_bytes(content[:-5])
    os.mkfifo(path.with_name("trial.jsonl.torn"))
    with pytest.raises(JournalError, match="cannot be opened"):
        Journal(path)
    assert path.read_bytes() == content[:-5]


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
