"""Four layers, mathematics, algorithms, experiments, presentation: imports point one way."""

import ast
from pathlib import Path

import pytest

MODULES = sorted((Path(__file__).parents[1] / "ebr").glob("*.py"))
LAYERS = {
    "mathematics": "parameters findings problems divergence confidence tails bounds scheduling two_rounds",
    "algorithms": "survivors racing sharp baselines",
    "experiments": "simulation sweeps event setting coverage lemmas slack measured inequalities upper_bounds"
    " section5 choices change_of_measure facts lower_bounds dilemma restricted_class sharp_event sharpness"
    " failure journal records race planning trial tuning",
    "presentation": "figures claims __init__ __main__",
}
LAYER = {module: number for number, names in enumerate(LAYERS.values()) for module in names.split()}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_point_one_way(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "ebr":
            inner = node.module.partition(".")[2]
            for name in [inner] if inner else [alias.name for alias in node.names]:
                assert LAYER[name] <= LAYER[path.stem], f"{path.stem} imports {name}"
