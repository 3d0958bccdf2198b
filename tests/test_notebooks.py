"""The committed notebooks are fit to be compared: executed in order, on the right kernel, without errors."""

import ast
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_every_cell_is_executed_in_order(notebook):
    # nbval compares nothing of a cell that was never executed.
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))


def test_the_kernel_is_python3(notebook):
    assert notebook.metadata.kernelspec.name == "python3"


def test_one_cell_of_parameters_holds_commented_literals_alone(notebook):
    (parameters,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    for statement in ast.parse(parameters.source).body:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)
    assert all("#" in line for line in parameters.source.splitlines() if " = " in line)


def test_no_stored_output_is_an_error_or_a_progress_bar(notebook):
    for cell in code(notebook):
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"


def test_nothing_of_one_run_or_one_machine_is_stored(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}
    text = nbformat.writes(notebook)
    assert "/home/" not in text
    assert str(Path(__file__).parents[1]) not in text


def test_a_notebook_ends_in_a_verdict(notebook):
    printed = "".join(output.get("text", "") for output in code(notebook)[-1].outputs)
    assert "verdict: " in printed
    assert "FAILS" not in printed.replace("FAILS AS STATED", "")
