"""Make this checkout's environment from the lock, or remove it, for the Makefile.

    environment.py make FOLDER      install requirements.txt, and this checkout itself, into FOLDER
    environment.py remove FOLDER

A folder that this program has not made, or that another checkout uses, is never touched. While an environment
is made, the old one is FOLDER.old; it comes back if the install fails, or was killed and fails the next time.
One that was copied or moved with its checkout is made anew. One process at a time does any of this.

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
LOCK = Path("requirements.txt")
# A file of three lines. When the environment is complete: the checkout's path, which the Makefile reads, the
# environment's own, and a digest of what is installed. Before: an empty line, its own path, the checkout's.
MARK = "ready"


def main() -> None:
    """Do as the command line says."""
    if sys.version_info < (3, 11):  # noqa: UP036
        sys.exit("Python 3.11 or newer is needed, this is " + sys.version)
    action, name = sys.argv[1:]
    folder = Path(name).resolve()
    old = folder.with_name(f"{folder.name}.old")
    if action == "make":
        folder.parent.mkdir(parents=True, exist_ok=True)
    elif not folder.parent.exists():
        return
    # Wait until no other process makes or removes an environment there. Child processes hold the lock too:
    # if this process is killed, its install may still run.
    held = os.open(folder.parent, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    os.set_inheritable(held, True)
    for one in (folder, old):
        check(one, folder)
    if action == "remove":
        discard(folder)
        discard(old)
        return
    ready = marks(folder) == complete(folder) and (folder / "bin" / "python").exists()
    if not ready:
        print(f"Installing {LOCK} into {name} …", flush=True)
        if marks(folder)[0]:
            discard(old)
            folder.rename(old)
        discard(folder)
    started = time.monotonic()
    try:
        if not ready:
            install(folder)
            print(f"Installed in {time.monotonic() - started:.0f} s.")
        link(folder)
    except (subprocess.CalledProcessError, KeyboardInterrupt) as error:
        if not ready:
            discard(folder)
            if marks(old)[0]:
                old.rename(folder)
        rest = f" What was in {name} before is still there." if folder.exists() else ""
        sys.exit(f"The environment could not be made: {error or 'interrupted'}{rest}")
    discard(old)


def check(folder: Path, place: Path) -> None:
    """Refuse a folder that is neither new nor an environment of this checkout, made for this place."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    first, made_for, last = marks(folder)
    checkout = first or last
    if checkout != str(HERE) and not (checkout and (folder / "pyvenv.cfg").is_file()):
        sys.exit(
            f"{folder} is not an environment that `make env` made, so it stays as it is.\n"
            "Remove it yourself if you can do without it, or name another folder: make VENV=…"
        )
    if checkout != str(HERE) and made_for == str(place) and Path(checkout).is_dir():
        sys.exit(
            f"{folder} is the environment of {checkout}, so it stays as it is; make VENV=… names another."
        )


def marks(folder: Path) -> list[str]:
    """The three lines of an environment's mark; empty texts if there is none."""
    mark = folder / MARK
    lines = os.fsdecode(mark.read_bytes()).splitlines() if mark.is_file() else []
    return lines if len(lines) == 3 else ["", "", ""]


def complete(folder: Path) -> list[str]:
    """The mark that the environment there is to have."""
    return [str(HERE), str(folder), hashlib.sha256(LOCK.read_bytes()).hexdigest()]


def write(folder: Path, lines: list[str]) -> None:
    """Write an environment's mark beside the environment and move it in, so that nobody sees half of one."""
    beside = folder.with_name(f"{folder.name}.mark")
    beside.write_bytes(os.fsencode("".join(f"{line}\n" for line in lines)))
    beside.replace(folder / MARK)


def discard(folder: Path) -> None:
    """Remove an environment, its mark last: whoever is killed here can go on."""
    if folder.exists():
        write(folder, ["", str(folder), str(HERE)])
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != MARK:
                path.unlink()
        shutil.rmtree(folder)


def install(folder: Path) -> None:
    """Install the lock: its uv does so in seconds; where uv cannot reach an index that pip can, pip does."""
    folder.mkdir()
    write(folder, ["", str(folder), str(HERE)])
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


def link(folder: Path) -> None:
    """Install this checkout itself, which needs no network, and write the mark."""
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--editable", ".")
    # Name the checkout by a relative path: Python reads these files in ASCII where the locale is C.
    for paths in folder.glob("lib/python*/site-packages/*.pth"):
        lines = paths.read_bytes().replace(
            os.fsencode(HERE), os.fsencode(os.path.relpath(HERE, paths.parent))
        )
        paths.write_bytes(lines)
    write(folder, complete(folder))


def run(*command: str | Path) -> None:
    """Run a command; a failure is an error."""
    subprocess.run(command, check=True, close_fds=False)


if __name__ == "__main__":
    main()
