"""The rooms of the house: every import points one way, between rooms and inside each of them."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Each room may use those before it. "" is the package itself: what every room may use.
ROOMS = ["", "theory", "algorithms", "simulation", "live"]
COMPENDIUM = ROOT / "notebooks" / "compendium"


def modules(folder, package):
    """The modules below a folder by their dotted names, packages' own files and entry points aside."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        if not path.stem.startswith("__"):
            found[".".join([package, *path.relative_to(folder).with_suffix("").parts])] = path
    return found


EBR = modules(ROOT / "ebr", "ebr")
EVERY = EBR | modules(COMPENDIUM, "compendium")


def imported(path):
    """The modules of the project that a file imports, wherever in the file it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name for name in names if name.partition(".")[0] in ("ebr", "compendium"))


def room(module):
    package, *inner = module.split(".")
    return package if package == "compendium" else "".join(inner[:-1])


def test_the_rooms_are_the_folders():
    folders = {path.name for path in (ROOT / "ebr").iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders == set(ROOMS) - {""}
    assert all(len(module.split(".")) <= 3 for module in EBR), "a room has no rooms"


@pytest.mark.parametrize("module", EVERY)
def test_imports_point_one_way(module):
    order = [*ROOMS, "compendium"]
    for name in imported(EVERY[module]):
        if name in EVERY:
            assert order.index(room(name)) <= order.index(room(module)), f"{module} imports {name}"
        else:  # a package itself, or a name out of a module
            assert name.rpartition(".")[0] in EVERY or name in {m.rpartition(".")[0] for m in EVERY}, (
                f"{module} imports {name}: name the module that it is from"
            )


def test_no_module_imports_itself_through_others():
    graph = {module: {name for name in imported(path) if name in EVERY} for module, path in EVERY.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(EVERY)


def test_a_planted_import_is_found(tmp_path):
    path = tmp_path / "module.py"
    lines = ["def f():", "    from ebr.live.race import Race", "    import compendium.figures"]
    path.write_text("\n".join([*lines, "    from ebr import theory"]))
    assert {"ebr.live.race", "compendium.figures", "ebr.theory"} <= set(imported(path))


def test_what_is_installed_says_nothing_of_the_compendium():
    for path in EBR.values():
        text = path.read_text(encoding="utf-8").lower()
        for word in ("notebook", "readme", "claims.yaml", "ledger", "compendium"):
            assert word not in text.replace("in a notebook", ""), f"{path.name} speaks of {word}"


def test_test_files_import_no_other_test_file():
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").rpartition(".")[2].startswith("test_"), path.name
