"""Rooms are the folders of modules. Imports point one way, between rooms and inside each of them."""

import ast
import json
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMPENDIUM = ROOT / "notebooks" / "compendium"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9A-Z]*.ipynb"))
# Each room may use those before it. "ebr" is the package itself, which every room may use. A notebook's room
# has the notebook's name without its number, and comes after the rooms of earlier notebooks.
EBR_ROOMS = ["ebr", "ebr.theory", "ebr.algorithms", "ebr.simulation", "ebr.live"]
ORDER = [
    *EBR_ROOMS,
    "compendium.shared",
    *("compendium." + path.stem.partition("-")[2].replace("-", "_") for path in NOTEBOOKS),
]


def modules(folder, package):
    """The modules below a folder by their dotted names, without __init__ and __main__."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        if not path.stem.startswith("__"):
            found[".".join([package, *path.relative_to(folder).with_suffix("").parts])] = path
    return found


EBR = modules(ROOT / "ebr", "ebr")
EVERY = EBR | modules(COMPENDIUM, "compendium")


def imported(path):
    """The modules of the project that a file imports anywhere, also in functions."""
    return imports(path.read_text(encoding="utf-8"))


def imported_by_notebook(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in [*cell["source"], "\n"]]
    return imports("".join(line for line in lines if not line.startswith("%")))


def imports(source):
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name for name in names if name.partition(".")[0] in ("ebr", "compendium"))


def room(module):
    return module.rpartition(".")[0]


def test_the_rooms_are_the_folders():
    folders = {path.parent.name for path in (ROOT / "ebr").glob("*/*.py")}
    assert {f"ebr.{folder}" for folder in folders} == set(EBR_ROOMS) - {"ebr"}
    assert {room(module) for module in EVERY} <= set(ORDER), "rooms are known, and none contains another"


@pytest.mark.parametrize("module", EVERY)
def test_imports_point_one_way(module):
    for name in imported(EVERY[module]):
        if name in EVERY:
            assert ORDER.index(room(name)) <= ORDER.index(room(module)), f"{module} imports {name}"
        else:  # a package itself, or a name from a module
            assert room(name) in EVERY or name in {room(other) for other in EVERY}, (
                f"{module} must import {name} from its own module"
            )


def test_what_is_shared_is_used_in_two_places():
    """A module that only one notebook uses is in that notebook's room."""
    users = {module: set() for module in EVERY if module.startswith("compendium.shared.")}
    programs = [*(ROOT / "tools").glob("*.py"), *(ROOT / "site").glob("*.py")]
    sources = [(room(module), imported(path)) for module, path in EVERY.items()]
    sources += [(path.stem, imported_by_notebook(path)) for path in NOTEBOOKS]
    for place, names in [*sources, *((path.stem, imported(path)) for path in programs)]:
        for name in set(names) & set(users):
            users[name].add(place)
    for module, places in users.items():
        assert len(places) > 1, f"{module} is used only by {places}"


def test_no_name_of_a_module_stands_in_two_places():
    bases = Counter(module.rpartition(".")[2] for module in EVERY)
    assert [base for base, count in bases.items() if count > 1] == []
    assert [base for base in bases if f"{base}s" in bases] == [], "two names differ only by a plural"


def test_no_module_imports_itself_through_others():
    graph = {module: {name for name in imported(path) if name in EVERY} for module, path in EVERY.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(EVERY)


def test_a_planted_import_is_found(tmp_path):
    path = tmp_path / "module.py"
    lines = ["def f():", "    from ebr.live.race import Race", "    import compendium.shared.figures"]
    path.write_text("\n".join([*lines, "    from ebr import theory"]))
    assert {"ebr.live.race", "compendium.shared.figures", "ebr.theory"} <= set(imported(path))


def test_what_is_installed_says_nothing_of_the_compendium():
    for path in EBR.values():
        text = path.read_text(encoding="utf-8").lower()
        for word in ("notebook", "readme", "claims.yaml", "ledger", "compendium"):
            assert word not in text.replace("in a notebook", ""), f"{path.name} mentions {word}"


def test_test_files_import_no_other_test_file():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").rpartition(".")[2].startswith("test_"), path.name
