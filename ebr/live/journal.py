"""An append-only file of JSON lines that outlives a crash at any byte."""

import errno
import hashlib
import json
import os
import stat
import warnings
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows lacks these locks; the error comes when a journal is opened
    fcntl = None  # type: ignore[assignment]

Line = dict[str, Any]  # the content of a line; "event" is its kind
OPENING = b'{"event": '  # how every line begins on the disk
CHECKSUM = b', "checksum": "%s"}\n'  # and ends


class JournalError(ValueError):
    """A journal that cannot be written or trusted; the message says what to do."""


class Journal:
    """A file of lines that only ever grows, one process writing at a time.

    `create` starts an empty journal where there is no file; `readonly` reads what is there now, even while
    another process writes. `lines` is what the lines say so far, each with its time (UTC) and checksum;
    `close` lets go of the file and its lock (flock), which ends with the process, however that ends.

    Notes
    -----
    *A line counts once its newline is there*, and `append` returns once it is on the disk. What a crash
    leaves behind the last newline is a torn line: the next opening moves it to `path`.torn, with a warning.

    *Checksums* are chained: each covers its line and the checksum before, so a line that was changed, removed
    or moved is found and named; lines cut off at the very end leave no trace. If all checksums are computed
    anew, `Race` still believes no line that it would not write.
    """

    def __init__(self, path: str | os.PathLike[str], create: bool = True, readonly: bool = False) -> None:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path) or not str(path).isprintable():
            raise JournalError(f"journal must be the printable name of a file, got {path!r:.80}")
        self.path, self._file = Path(path), Path(os.path.realpath(path))  # whatever becomes of the directory
        self.lines: list[Line] = []
        self._checksum, self._readonly = b"", readonly
        self._stamp: tuple[int, ...] = ()
        if fcntl is None and not readonly:
            raise JournalError(f"{self.path} cannot be locked on this system: open it with readonly=True")
        new = create and not readonly
        flags = os.O_RDONLY if readonly else os.O_RDWR | os.O_APPEND | (os.O_CREAT if new else 0)
        try:
            self._descriptor = _opened(self._file, flags)
            # Idempotent, and also done when the journal is dropped without being closed, or the process ends.
            # Never LOCK_UN: in a forked copy it would free the lock of the original.
            self.close = weakref.finalize(self, os.close, self._descriptor)
            with self.closed_on_error():
                self._load()
        except FileNotFoundError:
            folder = f"folder {self._file.parent}: make it first"
            missing = folder if new else f"journal {self.path}: start a race"
            raise JournalError(f"there is no {missing}") from None
        except OSError as error:
            raise JournalError(f"{self.path} cannot be opened: {error.strerror}") from error
        if readonly:
            self.close()

    def append(self, line: Line) -> None:
        """Write a line, whose kind is under "event"; return once it is on the disk."""
        self.check_writable()
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        body = json.dumps({"event": line["event"], **line, "time": moment}, allow_nan=False)[:-1].encode()
        sealed = _sealed(body, self._checksum)
        try:
            with self.closed_on_error():
                if _stamp(os.stat(self._file)) != self._stamp:
                    why = f"{self.path} was moved, changed or replaced while it was open"
                    raise JournalError(f"{why}: let one process alone write it, and open it again")
                _write(self._descriptor, sealed)
                self._stamp = _stamp(os.fstat(self._descriptor))
                self._accept(sealed)
        except OSError as error:
            where = f"line {len(self.lines) + 1} could not be written to {self.path} ({error.strerror})"
            raise JournalError(f"{where}: put that right, and open the journal again") from error

    def check_writable(self) -> None:
        """Raise JournalError if the journal was opened for reading only, or is closed."""
        if self._readonly:
            raise JournalError(f"{self.path} was opened for reading only: open it without readonly")
        if not self.close.alive:
            raise JournalError(f"{self.path} is closed: open it again")

    @contextmanager
    def closed_on_error(self) -> Generator[None, None, None]:
        """Close the journal on any error, interrupts included: afterwards only the file is right."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _load(self) -> None:
        """Lock the file, verify every line, and only then repair what a crash left behind."""
        if not self._readonly:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                why = f"{self.path} is open for writing elsewhere, in another process or in this one"
                raise JournalError(f"{why}: close it there, or read it with readonly=True") from None
        if torn := self._verify():
            does = "is ignored" if self._readonly else f"was moved to {self._set_aside(torn)}"
            never = f"the last line of {self.path} is torn: it was never finished, does not count"
            warnings.warn(f"{never}, and {does}", stacklevel=4)
        if not self._readonly:
            # What is read here counts: the writer may have been killed before it came to the disk.
            os.fsync(self._descriptor)
            _flush_folder(self._file)
            self._stamp = _stamp(os.fstat(self._descriptor))

    def _verify(self) -> bytes:
        """Read the lines and check their checksums; return what follows the last newline."""
        with open(self._descriptor, "rb", closefd=False) as file:
            *whole, torn = file.read().split(b"\n")
        for number, line in enumerate(whole, start=1):
            try:
                if line + b"\n" != _sealed(line.rpartition(b", ")[0], self._checksum):
                    raise ValueError("it was changed, or lines before it are missing")
                self._accept(line + b"\n")
            except (ValueError, RecursionError) as error:
                kept = f"cut it back to its first {number - 1} lines and tell what followed again"
                advice = kept if number > 1 else "name another one if it is no journal"
                why = f"line {number} of {self.path} is not a line of a journal ({error})"
                raise JournalError(f"{why}: restore the file from a copy, or {advice}") from None
        if torn and not whole and torn[: len(OPENING)] != OPENING[: len(torn)]:
            raise JournalError(f"{self.path} is no journal: name another file")
        return torn

    def _set_aside(self, torn: bytes) -> str:
        """Move a torn last line to a file of its own: first copied and flushed, only then cut off."""
        name = f"{self._file}.torn"
        try:
            aside = _opened(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
        except OSError as error:
            where = f"{name}, where the torn last line of {self.path} belongs,"
            raise JournalError(f"{where} cannot be opened ({error.strerror}): move it away") from error
        with open(aside, "wb", buffering=0):
            _write(aside, torn + b"\n")
        _flush_folder(self._file)
        os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - len(torn))
        return name

    def _accept(self, sealed: bytes) -> None:
        """Accept a line with the right checksum; raise ValueError if it was not written by `append`."""
        line: Line = json.loads(sealed)
        if json.dumps(line, allow_nan=False).encode() + b"\n" != sealed:  # a key may be there twice
            raise ValueError("it would be written otherwise")
        if not all(isinstance(line.get(key), str) for key in ("event", "time")):
            raise ValueError("it has no event, or no time")
        datetime.fromisoformat(line["time"])
        self._checksum = line["checksum"].encode()
        self.lines.append(line)


def is_journal(path: str | os.PathLike[str]) -> bool:
    """Whether a file exists and begins as journals do."""
    return Path(path).is_file() and Path(path).read_bytes().startswith(OPENING)


def _opened(file: str | os.PathLike[str], flags: int) -> int:
    """Open a regular file only: a pipe would block, and a device may have no end."""
    descriptor = os.open(file, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is a folder, a pipe or a device, not a file")
    return descriptor


def _sealed(body: bytes, previous: bytes) -> bytes:
    """Complete a line with the checksum of its bytes and of the previous line's checksum."""
    return body + CHECKSUM % hashlib.sha256(previous + body).hexdigest().encode()


def _write(descriptor: int, content: bytes) -> None:
    """Write everything at once and flush it to the disk, or raise OSError."""
    written = os.write(descriptor, content)
    if written < len(content):
        raise OSError(errno.ENOSPC, f"only {written} of {len(content)} bytes were")
    os.fsync(descriptor)


def _flush_folder(file: Path) -> None:
    """Flush the folder, which holds the name of a new file."""
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    """What stays the same as long as only this process writes to the file."""
    return os.getpid(), status.st_dev, status.st_ino, status.st_size
