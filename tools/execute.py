"""Execute a notebook through papermill, for the Makefile.

    execute.py SOURCE TARGET [NAME=VALUE …]   write an executed copy, with other parameters if given
    execute.py --in-place NOTEBOOK            re-execute a committed notebook; write it only if it changed
    execute.py --check NAME=VALUE …           check that some notebook has each parameter

The target appears under its name only when every cell has run. A failure names notebook, cell and error.
"""

import argparse
import ast
import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import papermill
from nbclient.exceptions import DeadKernelError

NOTEBOOKS = Path("notebooks")


def main() -> None:
    """Read the command line and do as it says."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    if arguments.check:
        check(read_parameters(arguments.words))
    elif arguments.in_place:
        refresh(Path(arguments.words[0]))
    else:
        source, target, *settings = arguments.words
        build(Path(source), Path(target), read_parameters(settings))


def read_parameters(settings: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE settings; names are the notebooks' in small letters, values Python literals."""
    parameters = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        try:
            parameters[name.lower()] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            sys.exit(f"{name} must be a number, a text in quotes or a list of them, got {value!r}")
    return parameters


def check(parameters: dict[str, Any]) -> None:
    """Papermill only warns of a parameter that no notebook has, and runs with the default."""
    known = {name for path in NOTEBOOKS.glob("*.ipynb") for name in papermill.inspect_notebook(path)}
    for name in parameters:
        if name not in known:
            choices = ", ".join(sorted(known)).upper()
            sys.exit(f"{name.upper()} is not a parameter of any notebook; these are: {choices}")


def build(source: Path, target: Path, parameters: dict[str, Any]) -> None:
    """Execute a copy; list the files that it wrote beside it, so that make sees when one is lost."""
    own = papermill.inspect_notebook(source)
    written = target.with_suffix(".written")
    written.unlink(missing_ok=True)
    os.environ["EBR_MANIFEST"] = str(written.resolve())
    unfinished = execute(source, target, {name: value for name, value in parameters.items() if name in own})
    written.touch()
    unfinished.replace(target)


def refresh(path: Path) -> None:
    """Re-execute in place, without what differs from run to run: timings, progress bars, tool metadata."""
    unfinished = execute(path, Path("build") / path.name, {})
    notebook = nbformat.read(unfinished, as_version=4)
    unfinished.unlink()
    notebook.metadata = {
        "kernelspec": notebook.metadata.kernelspec,
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata = {"tags": tags} if tags else {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    text = nbformat.writes(notebook) + "\n"
    if text != path.read_text(encoding="utf-8"):
        replacement = path.with_name(f".{path.name}.new")
        replacement.write_text(text, encoding="utf-8")
        replacement.replace(path)


def execute(source: Path, target: Path, parameters: dict[str, Any]) -> Path:
    """Run every cell into an unfinished file beside the target and return its path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.stem}.unfinished.ipynb")
    try:
        papermill.execute_notebook(
            source,
            unfinished,
            parameters,
            cwd=NOTEBOOKS,
            kernel_name="python3",
            progress_bar={"desc": source.stem},
        )
    except papermill.PapermillExecutionError as error:
        failed = unfinished.replace(target.with_suffix(".failed.ipynb"))
        sys.exit(
            f"\n{source}, cell {error.exec_count}: {error.ename}: {error.evalue}\n"
            f"in: {error.source.strip().splitlines()[0]} …\nThe whole traceback is in {failed}."
        )
    except DeadKernelError:
        sys.exit(f"\n{source}: the kernel died; see the last executed cell in {unfinished}.")
    return unfinished


if __name__ == "__main__":
    main()
