"""Make this checkout's environment from the lock, or remove it, for the Makefile.

    environment.py make FOLDER      install requirements.txt, and this checkout itself, into FOLDER
    environment.py remove FOLDER

A folder that this program has not made is never touched. An environment is made beside the one that is there,
in FOLDER.new, and takes its place when it is complete; the old one is FOLDER.old for that moment. So a failed
install leaves the old one working, and whoever is killed can go on: FOLDER and FOLDER.old are always whole,
FOLDER.new never counts, and what is removed is renamed to that first. One that was copied or moved with its
checkout is turned to where it lies now, without the network. One process at a time does any of this.

Only the standard library is used: it runs before anything is installed.
"""

from __future__ import annotations  # an older Python is to get as far as the message for it

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path.cwd()
LOCK, PROJECT = Path("requirements.txt"), Path("pyproject.toml")
MARK = "ready"  # a file with the checkout's path (which the Makefile reads), its own, the lock's digest

# How a script says which Python runs it: by a path, which may have no spaces, or through a shell. Ours is
# found beside the script, wherever both lie.
SHEBANG = re.compile(rb"\A#!(?:.*/python[0-9.]*|/bin/sh\n'''exec' .*\n' ''')\n")
BESIDE = b"""#!/bin/sh\n'''exec' "$(dirname -- "$(realpath -- "$0")")/python" "$0" "$@"\n' '''\n"""


def main() -> None:
    """Do as the command line says."""
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("Python 3.11 or newer is needed, this is " + sys.version)
    action, name = sys.argv[1:]
    folder = Path(name).resolve()
    if action == "make":
        folder.parent.mkdir(parents=True, exist_ok=True)
    elif not folder.parent.exists():
        return
    # Wait for any other process that is at an environment there. The lock ends with this process and with
    # those that it runs: to kill this one does not end an install.
    held = os.open(folder.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    os.set_inheritable(held, True)
    check(folder, folder)
    try:
        if action == "make":
            make(folder, name)
        else:
            tidy(folder)
            if folder.exists():
                discard(folder, beside(folder, "new"))
    except (subprocess.CalledProcessError, KeyboardInterrupt) as error:
        rest = f" What was in {name} before is still there." if folder.exists() else ""
        sys.exit(f"The environment could not be made: {error or 'interrupted'}{rest}")


def check(folder: Path, place: Path) -> None:
    """Refuse a folder that is neither new nor an environment of this checkout, whose place is `place`."""
    mark = folder / MARK
    if not folder.exists() or (folder.is_dir() and not any(map(holds, folder.iterdir()))):
        return
    checkout, lay, _ = marks(folder)
    # An environment that is being made or removed has a mark alone, which says whose it is.
    if not mark.is_file() or not ((folder / "pyvenv.cfg").is_file() or checkout == str(HERE)):
        sys.exit(
            f"{folder} is not an environment that `make env` made, so it stays as it is.\n"
            "Remove it yourself if you can do without it, or name another folder: make VENV=…"
        )
    if checkout != str(HERE) and lay == str(place) and Path(checkout).is_dir():
        sys.exit(
            f"{folder} is the environment of {checkout}, so it stays as it is; make VENV=… names another."
        )


def holds(path: Path) -> bool:
    """Whether a file in a folder is anything but an empty mark."""
    return path.name != MARK or not path.is_file() or path.stat().st_size > 0


def marks(folder: Path) -> list[str]:
    """The three lines of an environment's mark; empty texts if there is none."""
    mark = folder / MARK
    lines = os.fsdecode(mark.read_bytes()).splitlines() if mark.exists() else []
    return lines if len(lines) == 3 else ["", "", ""]


def make(folder: Path, name: str) -> None:
    """Make the environment; one that is there and has the lock's packages is turned to this checkout."""
    _, lay, digest = marks(folder)
    if digest != lock_digest() or not (folder / "bin" / "python").exists():  # a link to a Python that is gone
        started = time.monotonic()
        print(f"Installing {LOCK} into {name} …", flush=True)
        renew(folder)
        print(f"Installed in {time.monotonic() - started:.0f} s.")
        return
    # What was built with it need not be built again.
    newest = max(path.stat().st_mtime_ns for path in (folder / MARK, LOCK, PROJECT))
    turn(folder, Path(lay), folder)
    os.utime(folder / MARK, ns=(newest, newest))


def lock_digest() -> str:
    """What is to be installed."""
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()


def renew(folder: Path) -> None:
    """Make an environment beside the folder, then let it take the folder's place."""
    tidy(folder)  # after a run that was killed
    new = beside(folder, "new")
    try:
        new.mkdir()
        (new / MARK).write_bytes(words(folder, ""))
        install(new)
        turn(new, new, folder)
        if folder.exists():
            folder.rename(beside(folder, "old"))
        new.rename(folder)
    finally:
        tidy(folder)


def beside(folder: Path, what: str) -> Path:
    """Where the "new" environment is made and taken apart, or the "old" one is until it is replaced."""
    return folder.with_name(f"{folder.name}.{what}")


def tidy(folder: Path) -> None:
    """Put the old environment back if nothing has taken its place, and remove what is left over."""
    new, old = beside(folder, "new"), beside(folder, "old")
    for leftover in (new, old):
        check(leftover, folder)
    if new.exists():
        discard(new, new)
    if old.exists() and folder.exists():
        discard(old, new)
    elif old.exists():
        old.rename(folder)


def discard(folder: Path, new: Path) -> None:
    """Remove an environment: first its name, last its mark."""
    folder.rename(new)
    for path in new.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != MARK:
            path.unlink()
    shutil.rmtree(new)


def install(folder: Path) -> None:
    """Install the lock: its uv does so in seconds; where uv cannot reach an index that pip can, pip does."""
    run(sys.executable, "-m", "venv", "--prompt", "ebr", folder)
    python = folder / "bin" / "python"
    locked = ["install", "--require-hashes", "-r", LOCK]
    uv = re.search(r"^uv==(.*\\\n)*.*\n", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    (folder / "uv.txt").write_text(uv.group() if uv else "", encoding="utf-8")
    try:
        run(python, "-m", "pip", "install", "--quiet", "-r", folder / "uv.txt")
        run(python, "-m", "uv", "pip", *locked, "--quiet", "--python", python)
    except subprocess.CalledProcessError:
        run(python, "-m", "pip", *locked)


def turn(folder: Path, lay: Path, will_lie: Path) -> None:
    """Turn an environment to this checkout, and to the path where it will lie: its scripts name both."""
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ".")
    path = re.compile(rb"(?<![\w./-])" + re.escape(os.fsencode(lay)) + rb"(?![\w.-])")
    for script in [folder / "pyvenv.cfg", *(folder / "bin").iterdir()]:
        if not script.is_symlink():
            moved = path.sub(lambda _: os.fsencode(will_lie), script.read_bytes())
            replace(script, SHEBANG.sub(lambda _: BESIDE, moved))
    # Its checkout is named by the way from there: Python reads such a file in ASCII where the locale is C.
    for paths in folder.glob("lib/python*/site-packages/*.pth"):
        lines = os.fsdecode(paths.read_bytes()).splitlines()
        named = [
            os.path.relpath(line, paths.parent) if line.startswith(str(HERE)) else line for line in lines
        ]
        replace(paths, os.fsencode("\n".join(named)))
    replace(folder / MARK, words(will_lie, lock_digest()))


def words(will_lie: Path, digest: str) -> bytes:
    """The text of a mark: the checkout, the environment's place, and the lock's digest."""
    return os.fsencode(f"{HERE}\n{will_lie}\n{digest}\n")


def replace(file: Path, content: bytes) -> None:
    """Put another file in a file's place: a copy made of links would share the old one with the original."""
    if file.read_bytes() != content:
        other = file.with_name(f"{file.name}.new")
        other.write_bytes(content)
        other.chmod(file.stat().st_mode)
        other.replace(file)


def run(*command: str | Path) -> None:
    """Run a command; a failure is an error."""
    subprocess.run(command, check=True, close_fds=False)


if __name__ == "__main__":
    main()
