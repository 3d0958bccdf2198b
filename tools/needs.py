"""Print which compendium modules each notebook uses, directly or through others, for the Makefile.

One word per pair, NOTEBOOK:ROOM/MODULE. Only the standard library is used: this runs before any install.
"""

import ast
import json
from functools import cache
from pathlib import Path

NOTEBOOKS = Path("notebooks")
ROOMS = NOTEBOOKS / "compendium"
MODULES = {f"{path.parent.name}/{path.stem}": path for path in sorted(ROOMS.glob("*/[!_]*.py"))}


@cache
def used(source: str) -> set[str]:
    """The compendium modules that a source imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.removeprefix("compendium.").replace(".", "/") for name in names} & set(MODULES)


def needs(source: str) -> set[str]:
    """The same, with what those import in turn."""
    found: set[str] = set()
    new = used(source)
    while new:
        found |= new
        new = set().union(*(used(MODULES[name].read_text(encoding="utf-8")) for name in new)) - found
    return found


def code(path: Path) -> str:
    """A notebook's code, without its magic lines."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in [*cell["source"], "\n"]]
    return "".join(line for line in lines if not line.startswith(("%", "!")))


if __name__ == "__main__":
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        for module in sorted(needs(code(notebook))):
            print(f"{notebook.stem}:{module}")
