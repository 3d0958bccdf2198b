"""The committed notebooks are fit to be compared and to be read."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from compendium.shared import ledger
from compendium.shared.findings import VERDICTS, said

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
LONGEST_CELL, WIDEST_LINE = 20, 110
UNWRITTEN = re.compile(r"\b(PLACEHOLDER|TODO|FIXME|XXX|TBD|lorem ipsum)\b", re.IGNORECASE)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def parameters(notebook):
    (cell,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    return cell


def printed(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 13


def test_every_cell_is_executed_in_order(notebook):
    # nbval compares nothing of a cell that was never executed.
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))


def test_one_cell_of_parameters_holds_commented_literals_alone(notebook):
    cell = parameters(notebook)
    for statement in ast.parse(cell.source).body:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)
    assert all("#" in line for line in cell.source.splitlines() if " = " in line)


def test_figures_are_saved_with_every_parameter(path, notebook):
    names = {target.id for node in ast.parse(parameters(notebook).source).body for target in node.targets}
    source = "\n".join(cell.source for cell in code(notebook)).replace("%matplotlib inline", "")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    savers = [call for call in calls if ast.unparse(call.func) == "figures.saver"]
    assert len(savers) == ("save(" in source)
    for call in savers:
        assert ast.literal_eval(call.args[0]) == path.stem
        assert {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords} == {n: n for n in names}


def test_nothing_of_one_run_or_one_machine_is_stored(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)  # progress bars
    text = nbformat.writes(notebook)
    assert "/home/" not in text
    assert str(Path(__file__).parents[1]) not in text


def test_a_cell_fits_half_a_screen_and_a_line_a_page(notebook):
    for cell in code(notebook):
        assert len(cell.source.splitlines()) <= LONGEST_CELL, cell.source
        assert max(map(len, printed(cell).splitlines()), default=0) <= WIDEST_LINE, printed(cell)


def unwritten(notebook):
    """The markdown cells that are empty, and all that hold a word which stands for what is still to come."""
    cells = [(cell.source, cell.cell_type == "markdown") for cell in notebook.cells]
    return [text for text, prose in cells if UNWRITTEN.search(text) or (prose and not text.strip())]


def test_nothing_is_left_to_be_written(notebook):
    assert unwritten(notebook) == []


def test_a_planted_placeholder_and_an_empty_cell_are_found():
    made = nbformat.v4
    cells = [made.new_markdown_cell(text) for text in ("PLACEHOLDER", " \n", "Todo: prose", "prose")]
    assert len(unwritten(made.new_notebook(cells=[*cells, made.new_code_cell("x  # FIXME")]))) == 4


def test_a_notebook_ends_in_its_verdict(path, notebook):
    last = printed(code(notebook)[-1])
    assert last.count("verdict: ") == 1
    found = ledger.found().get(path.stem, {})
    for verdict in VERDICTS:
        claims = sorted(claim for claim, finding in found.items() if finding["verdict"] == verdict)
        assert not claims or said(claims, verdict) in last


SWEEP = """import sys
import ebr
seen, write = [], sys.stderr.write
sys.stderr.write = lambda text: seen.append(text) or write(text)
table = ebr.sweep([ebr.Point({}, ebr.ElasticBatchRacing(2, 0.4, 0.2), ebr.setup_1(3))], runs=1)
print("1/1" in "".join(seen))"""


@pytest.mark.slow
def test_a_progress_bar_shows_in_a_notebook_and_nbval_does_not_see_it(tmp_path, monkeypatch):
    monkeypatch.setenv("EBR_WORKERS", "1")
    printed = nbformat.v4.new_output("stream", name="stdout", text="True\n")
    cell = nbformat.v4.new_code_cell(SWEEP, execution_count=1, outputs=[printed])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "sweep.ipynb")
    shutil.copy(NOTEBOOKS[0].with_name("conftest.py"), tmp_path)
    nbval = ["--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *nbval], cwd=tmp_path, capture_output=True, text=True
    )
    assert "1 passed" in run.stdout, run.stdout
