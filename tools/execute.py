"""Execute a notebook through papermill, for the Makefile.

    execute.py SOURCE TARGET          write an executed copy, with the parameters that make was given
    execute.py --in-place NOTEBOOK    re-execute a committed notebook; write it only if it changed

The target appears under its name only when every cell has run, and a line says how long that took and how
many files were written. A failure names notebook, cell and error. On a terminal the bottom line shows how
many cells of a notebook have run.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TextIO

import quick_nbformat  # noqa: F401, before nbformat

# isort: split
import nbformat
import papermill
import parameters
from nbclient.exceptions import DeadKernelError
from traitlets.config import Config

NOTEBOOKS = Path("notebooks")
# Kernels listen on the loopback; without keys each of them warns that other users could read along.
CONFIG = Config({"KernelManager": {"transport_encryption": "auto"}})
ERASE = "\r\033[K"  # clears a line of the terminal


def main() -> None:
    """Read the command line and do as it says."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("paths", nargs="+", type=Path)
    arguments = parser.parse_args()
    if arguments.in_place:
        refresh(*arguments.paths)
    else:
        build(*arguments.paths)


def build(source: Path, target: Path) -> None:
    """Execute a copy; list the files that it wrote beside it, so that make sees when one is lost."""
    own = parameters.known(source)
    written = target.with_suffix(".written")
    written.unlink(missing_ok=True)
    os.environ["EBR_MANIFEST"] = str(written.resolve())
    given = {name: value for name, value in parameters.given().items() if name in own}
    unfinished, seconds = execute(source, target, given)
    files = written.read_text(encoding="utf-8").splitlines() if written.exists() else []
    files = sorted({os.path.relpath(file) for file in files})  # so that they move with the checkout
    written.write_text("".join(f"{file}\n" for file in files), encoding="utf-8")
    unfinished.replace(target)
    tried = any(file.startswith("build/figures/") for file in files)  # parameters are not the committed ones
    report(source, seconds, f"{len(files)} files" + (" in build/figures" if tried else ""))


def refresh(path: Path) -> None:
    """Re-execute in place; leave out what differs from run to run: timings, progress bars, tool metadata."""
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor  # slow, and needed here alone

    os.environ.setdefault("EBR_FIGURES", str(Path("figures").resolve()))  # whatever the parameters are now
    unfinished, seconds = execute(path, Path("build") / path.name, {})
    notebook = nbformat.read(unfinished, as_version=4)
    unfinished.unlink()
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    for cell in notebook.cells:
        # Tags, and whether JupyterLab folds the cell.
        kept = {key: value for key, value in cell.metadata.items() if key in ("tags", "jupyter")}
        cell.metadata = {key: value for key, value in kept.items() if value}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    # What a cell prints may come in one piece or in two.
    notebook, _ = CoalesceStreamsPreprocessor(enabled=True)(notebook, {})
    text = nbformat.writes(notebook) + "\n"
    changed = text != path.read_text(encoding="utf-8")
    if changed:
        replacement = path.with_name(f".{path.name}.new")
        replacement.write_text(text, encoding="utf-8")
        replacement.replace(path)
    report(path, seconds, "changed" if changed else "as before")


def report(source: Path, seconds: float, outcome: str) -> None:
    """The notebook's line."""
    say(f"{source.stem:<28}{seconds:>7.1f} s   {outcome}\n")


def execute(source: Path, target: Path, given: dict[str, Any]) -> tuple[Path, float]:
    """Run every cell into an unfinished file beside the target; return its path and the seconds it took."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.stem}.unfinished.ipynb")
    try:
        notebook = papermill.execute_notebook(
            source,
            unfinished,
            given,
            cwd=NOTEBOOKS,
            kernel_name="python3",
            progress_bar=False,
            config=CONFIG,
            shutdown_kernel="immediate",  # else it is interrupted first, and reports that as an error
            on_cell_executed=progress(source),
        )
    except papermill.PapermillExecutionError as error:
        failed = unfinished.replace(target.with_suffix(".failed.ipynb"))
        fail(
            f"{source}, cell {error.exec_count}: {error.ename}: {error.evalue}\n"
            f"in: {error.source.strip().splitlines()[0]} …\nThe whole traceback is in {failed}."
        )
    except DeadKernelError:
        logging.disable()  # messages of its sockets after the end are of no interest
        fail(f"{source}: the kernel died; see the last executed cell in {unfinished}.")
    except KeyboardInterrupt:
        fail(f"{source}: interrupted")
    return unfinished, notebook.metadata.papermill.duration


def progress(source: Path) -> Callable[..., None]:
    """Say on the terminal, if there is one, how many cells have run; return what says so after each cell."""
    cells = nbformat.read(source, as_version=4).cells
    total, done = sum(cell.cell_type == "code" for cell in cells), -1

    def after(**_: Any) -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            say(f"{source.stem} {done}/{total}", sys.stderr)

    after()
    return after


def say(text: str, file: TextIO = sys.stdout) -> None:
    """Write a text in one piece, over the bottom line of the terminal."""
    if sys.stderr.isatty():
        print(end=ERASE, file=sys.stderr, flush=True)
    print(end=text, file=file, flush=True)


def fail(message: str) -> NoReturn:
    """End with a message."""
    say(f"{message}\n", sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
