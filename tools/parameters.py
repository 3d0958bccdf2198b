"""The notebooks' parameters, as make was given them.

    parameters.py FILE    check that some notebook has each, and list them in FILE if it lists others

The Makefile hands them on as environment variables, EBR_PARAMETER_RUNS for RUNS, and in no other way: neither
make nor a shell reads a value. Only the standard library is used, to start fast.
"""

import ast
import json
import os
import sys
from pathlib import Path
from typing import Any

NOTEBOOKS = Path("notebooks")
PREFIX = "EBR_PARAMETER_"


def given() -> dict[str, Any]:
    """The parameters given: names in small letters, as in the notebooks; values are Python literals."""
    parameters = {}
    for variable in sorted(os.environ):
        if variable.startswith(PREFIX):
            name, value = variable.removeprefix(PREFIX), os.environ[variable]
            try:
                parameters[name.lower()] = ast.literal_eval(value.strip())
            except (SyntaxError, ValueError):
                sys.exit(f"{name} must be a number, a text in quotes or a list of them, got {value!r}")
    return parameters


def known(notebook: Path) -> set[str]:
    """The names that a notebook's cell of parameters assigns."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    tagged = (cell for cell in cells if "parameters" in cell["metadata"].get("tags", []))
    statements = [statement for cell in tagged for statement in ast.parse("".join(cell["source"])).body]
    return {target.id for statement in statements for target in statement.targets}


def check(parameters: dict[str, Any]) -> None:
    """Papermill only warns of a parameter that no notebook has, and runs with the default."""
    names = set().union(*map(known, NOTEBOOKS.glob("*.ipynb"))) if parameters else set()
    for name in parameters:
        if name not in names:
            choices = ", ".join(sorted(names)).upper()
            sys.exit(f"{name.upper()} is not a parameter of any notebook; these are: {choices}")


def main() -> None:
    """Renew the list only if it changes, so that make sees when the parameters do."""
    parameters = given()
    check(parameters)
    file, text = Path(sys.argv[1]), "".join(f"{name} = {value!r}\n" for name, value in parameters.items())
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
