"""A cache of results on the disk, in the folder that the environment variable EBR_CACHE names, if it does.

The name of an entry is a digest of what the result depends on: the values, the sources of `ebr` and of every
package that the values come from, the Python and the installed packages. So no entry is ever out of date.
"""

import ast
import importlib.util
import json
import os
import pickle
import pickletools
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import joblib

Result = dict[str, Any]  # of plain numbers and texts: what JSON has
OURS = __name__.partition(".")[0]
STARTED = time.time()  # a source that changes later may not be the one that runs


def get(name: str | None) -> Result | None:
    """Read an entry; None if there is none, or not a whole one."""
    path = _path(name)
    with suppress(OSError, ValueError, RecursionError):
        if path is not None and path.is_file():  # a pipe would be waited for
            check, body = path.read_bytes().split(b"\n", 1)
            if check == _check(path.name, body) and isinstance(result := json.loads(body), dict):
                return result
    return None


def put(name: str | None, result: Result) -> None:
    """Write an entry; where that fails half-way, `get` finds none."""
    path = _path(name)
    if path is None:
        return
    body = json.dumps(result).encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # a pipe, for instance
        path.write_bytes(_check(path.name, body) + b"\n" + body)
    except OSError as error:  # the result itself is fine
        warnings.warn(f"EBR_CACHE must name a folder to write in, nothing is kept: {error}", stacklevel=2)


def _path(name: str | None) -> Path | None:
    """Where an entry is; None if it is not kept."""
    folder = os.environ.get("EBR_CACHE")
    return Path(folder, name) if folder and name else None


def _check(name: str, body: bytes) -> bytes:
    """The first line of an entry: a digest of its name and body."""
    return str(joblib.hash((name, body))).encode()


def key(behind: str | None, *values: Any) -> str | None:
    """The name of the entry for these values, the `sources` behind them, and this environment."""
    return behind and joblib.hash((behind, _environment(), values))


def sources(*values: Any) -> str | None:
    """A digest of all that is behind some values: `ebr`, and the packages of their classes and functions.

    None if there is no such digest: for a class or function that is defined in a cell, a script or another
    function, and if a source has changed since this process began.
    """
    with suppress(Exception):  # whatever cannot be pickled, found or read
        steps = pickletools.genops(pickle.dumps(values, protocol=3))
        packages = {str(word).split(".")[0].split()[0] for step, word, _ in steps if step.name == "GLOBAL"}
        digest, files = _digest(frozenset(packages))
        if all(file.stat().st_mtime <= STARTED for file in files):
            return digest
    return None


@cache
def _digest(packages: frozenset[str]) -> tuple[str, list[Path]]:
    """The digest of `ebr`, these packages and all that they import; and the files of all these."""
    files, seen, waiting = _files(OURS), {OURS}, set(packages)
    while waiting := waiting - seen:
        name = waiting.pop()
        seen.add(name)
        files += (found := _files(name))
        waiting.update(*map(_imports, found))
    contents = sorted((f"{file.parent.name}/{file.name}", file.read_bytes()) for file in files)
    return joblib.hash(contents), files


def _files(package: str) -> list[Path]:
    """The files of a package, data included, or of a module; none if it is installed."""
    if package in sys.stdlib_module_names:
        return []
    spec = None if package == "__main__" else importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"{package} has no file of its own")
    origin = Path(spec.origin).resolve()
    if package != OURS and {"site-packages", "dist-packages"} & set(origin.parts):
        return []  # its version counts instead
    every = origin.parent.rglob("*") if spec.submodule_search_locations else [origin]
    return [file for file in every if file.is_file() and file.parent.name != "__pycache__"]


def _imports(file: Path) -> Iterator[str]:
    """The packages that a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(file.read_bytes())) if file.suffix == ".py" else ():
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@cache
def _environment() -> str:
    """The version of Python, the kind of processor, and the installed packages with their versions."""
    installed = {path.name for place in sys.path for path in Path(place).glob("*.dist-info")}
    return " ".join([platform.python_version(), platform.machine(), *sorted(installed)])
