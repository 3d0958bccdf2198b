"""How the package starts: nothing is loaded before it is used, and every public name is there."""

import ast
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import ebr

SLOW = ["joblib", "matplotlib", "pandas", "scipy.optimize", "scipy.stats", "sklearn"]
ROOT, PACKAGE = Path(__file__).parents[1], Path(ebr.__file__)


def loaded(program, *arguments):
    """The modules that a new process has loaded when its program ends, also by an exit."""
    report = "import atexit, sys; atexit.register(lambda: print(*sys.modules, sep='\\n', file=sys.stderr))\n"
    command = [sys.executable, "-c", report + program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def command_line(*words):
    """The modules that a command line loads."""
    return loaded("import runpy; runpy.run_module('ebr', run_name='__main__', alter_sys=True)", *words)


def test_importing_the_package_loads_nothing_slow():
    modules = loaded("import ebr")
    assert "ebr" in modules
    assert not modules & {*SLOW, "numpy", "scipy"}


@pytest.mark.parametrize("command", ["", "start", "ask", "tell", "status", "plan", "plot", "report"])
def test_help_loads_not_even_numpy(command):
    modules = command_line(*command.split(), "--help")
    assert "ebr.live.cli" in modules
    assert not modules & {*SLOW, "numpy", "scipy"}


def test_a_race_on_the_command_line_loads_no_table(tmp_path):
    journal = str(tmp_path / "trial.jsonl")
    start = command_line("start", journal, "--arms", "A", "B", "--deadline", "2", "--epsilon", "0.3")
    assert "matplotlib" not in start  # `start` plans, so it needs pandas
    for words in (["ask", journal], ["status", journal]):
        modules = command_line(*words)
        assert "ebr.live.race" in modules
        assert not modules & {*SLOW}, words
    with ebr.Race.open(journal) as race:
        answer = [f"{arm}=1/{pulls}" for arm, pulls in race.asked.items()]
    assert not command_line("tell", journal, *answer) & {*SLOW}
    for form in ("text", "markdown"):  # the page alone has a picture
        assert "matplotlib" not in command_line("report", journal, "--format", form)


def test_the_script_is_the_command_line():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (script,) = metadata.EntryPoints(
        metadata.EntryPoint(name, target, "console_scripts") for name, target in project["scripts"].items()
    )
    assert script.name == "ebr"
    program = f"import sys; from {script.module} import {script.attr} as run; sys.exit(run())"
    assert "numpy" not in loaded(program, "--help")
    command = [sys.executable, "-c", program, "ask", "missing.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")


def test_every_public_name_is_there_and_in_the_listing_before_anything_is_used():
    program = "import sys, ebr; sys.exit(not set(ebr.__all__) <= set(dir(ebr)))"
    assert "numpy" not in loaded(program)
    assert {"numpy", "scipy.stats"} <= loaded("import ebr, scipy.stats; ebr.Race")
    for name in ebr.__all__:
        assert getattr(ebr, name).__name__ == name
    everything = {}
    exec("from ebr import *", everything)
    assert set(ebr.__all__) == everything.keys() - {"__builtins__"}
    assert all(everything[name] is getattr(ebr, name) for name in ebr.__all__)


def test_without_scikit_learn_all_but_the_search_is_there():
    program = "import sys; sys.modules['sklearn'] = None; from ebr import *; import ebr; Race"
    assert "ebr.live.race" in loaded(program + "; assert not {'RacingSearchCV'} & {*globals(), *dir(ebr)}")
    command = [sys.executable, "-c", program + "; ebr.RacingSearchCV"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "ModuleNotFoundError: RacingSearchCV needs scikit-learn: pip install" in done.stderr


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="'ebr' has no attribute 'ElasticBatchRacer'"):
        ebr.ElasticBatchRacer  # noqa: B018
    with pytest.raises(ImportError, match="ElasticBatchRacer"):
        exec("from ebr import ElasticBatchRacer")


def test_type_checkers_are_told_the_same_homes():
    tree = ast.parse(PACKAGE.read_text(encoding="utf-8"))
    (block,) = (
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    told = {alias.name: node.module for node in block.body for alias in node.names}
    assert told == ebr._HOME_OF
    assert sorted(told) == sorted(ebr.__all__)
    for name, module in told.items():
        assert getattr(ebr, name).__module__ == module
