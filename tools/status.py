"""One line at the foot of a terminal, shared by the notebooks that are executed side by side.

Each keeps a file in build/running that says how far it is; whoever has news draws the line anew. Where there
is no terminal there is no such line, and only what `say` is told appears.
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

FOLDER = Path("build/running").resolve()  # notebooks run in another folder
OWN = FOLDER / str(os.getpid())
ERASE = "\r\033[K"


def progress(name: str, done: int, total: int) -> None:
    """Say on the terminal, if there is one, how many cells of a notebook have run."""
    if sys.stderr.isatty():
        with alone():
            OWN.write_text(f"{name} {done}/{total}", encoding="utf-8")


def say(text: str, file: TextIO = sys.stdout) -> None:
    """Print lines, whole, and end the notebook's part of the terminal's."""
    if not sys.stderr.isatty():
        write(f"{text}\n", file)
        return
    with alone():
        OWN.unlink(missing_ok=True)
        write(ERASE)
        write(f"{text}\n", file)


@contextmanager
def alone() -> Iterator[None]:
    """Do something and draw the line again, under a lock."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
        running = [path for path in sorted(FOLDER.glob("[0-9]*")) if alive(path)]
        text = "   ".join(sorted(path.read_text(encoding="utf-8") for path in running))
        write(ERASE + text[: shutil.get_terminal_size().columns - 1])


def write(text: str, file: TextIO = sys.stderr) -> None:
    """Write in one piece, unbuffered."""
    file.write(text)
    file.flush()


def alive(path: Path) -> bool:
    """Whether the process that keeps this file still runs; the file of one that was killed is removed."""
    try:
        os.kill(int(path.name), 0)
    except ProcessLookupError:
        path.unlink(missing_ok=True)
        return False
    except PermissionError:
        pass
    return True
