"""The committed notebooks can be compared by nbval, and have the form that readers know."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from compendium.shared import ledger
from compendium.shared.findings import said
from PIL import Image

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
LONGEST_CELL, WIDEST_LINE = 20, 110
MOST_WORDS_IN_A_CELL, MOST_WORDS = 400, 2500
WORDS_A_MINUTE = 200  # and a minute for each figure
FOLDED = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}  # in JupyterLab, and on the site
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


def test_every_cell_is_executed_in_order(notebook):
    # nbval does not compare a cell that was never executed.
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))


def test_one_cell_of_parameters_holds_commented_literals_alone(notebook):
    cell = parameters(notebook)
    for statement in ast.parse(cell.source).body:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)
    assert all("#" in line for line in cell.source.splitlines() if " = " in line)


def test_imports_and_set_up_are_one_folded_cell_that_names_the_notebook(path, notebook):
    if path.stem == "00-ledger":
        return  # saves and records nothing
    folded = [cell for cell in code(notebook) if cell.metadata == FOLDED]
    assert len(folded) == 1
    assert folded[0] is code(notebook)[1], "it must follow the parameters"
    setup, rest = folded[0].source, "\n".join(cell.source for cell in code(notebook)[2:])
    assert ("save(" in rest) == (f'save = figures.saver("{path.stem}")' in setup)
    assert ("record(" in rest) == (f'record = findings.Recorder("{path.stem}")' in setup)
    imports = (ast.Import, ast.ImportFrom)
    assert not any(isinstance(node, imports) for node in ast.walk(ast.parse(rest)))


def test_committed_figures_tell_every_parameter(path, notebook):
    pictures = (path.parents[1] / "figures").glob("*.png")
    said = {
        told["Source"]: told["Description"] for told in (Image.open(picture).info for picture in pictures)
    }
    literals = ast.parse(parameters(notebook).source).body
    values = {node.targets[0].id: ast.literal_eval(node.value) for node in literals}
    source = f"ebr notebook {path.stem}"
    told = ", ".join(f"{name}={values[name]}" for name in sorted(values))
    assert source not in said or said[source].startswith(f"{source}; {told}; data sha256 ")
    assert (source in said) == any("save(" in cell.source for cell in code(notebook))


def words(cell):
    """The number of words in a Markdown cell; 0 for code."""
    return len(cell.source.split()) if cell.cell_type == "markdown" else 0


def minutes(notebook):
    """The reading time in minutes: one for every 200 words, and one for each figure."""
    shown = [output.get("data", {}) for cell in code(notebook) for output in cell.outputs]
    return max(
        1, round(sum(map(words, notebook.cells)) / WORDS_A_MINUTE + sum("image/png" in s for s in shown))
    )


def faults(notebook, claims):
    """The faults of form of a notebook that checks these claims, in words."""
    opening, found = notebook.cells[0].source, []
    parts = re.match(r"# .+\n\n\*\*Question\.\*\* .+\n\n\*\*Answer\.\*\* .+", opening)
    if notebook.cells[0].cell_type != "markdown" or not parts:
        found.append("it must open with its title, **Question.** and **Answer.**")
    about = f"about {minutes(notebook)} minute" + "s" * (minutes(notebook) > 1)
    if f"*Reading time: {about}.*" not in opening:
        found.append(f"its reading time must be {about}")
    for cell in notebook.cells:
        if words(cell) > MOST_WORDS_IN_A_CELL:
            found.append(f"a cell has {words(cell)} words: {cell.source[:60]}")
    if sum(map(words, notebook.cells)) > MOST_WORDS:
        found.append(f"it has {sum(map(words, notebook.cells))} words")
    sources = [cell.source for cell in notebook.cells]
    shown = next((place for place, source in enumerate(sources) if "record.claims()" in source), len(sources))
    proof = next(
        (place for place, source in enumerate(sources) if "*Proof" in source or "$\\square$" in source), None
    )
    if claims and (shown == len(sources) or (proof is not None and proof < shown)):
        found.append("its claims must be shown before the first proof")
    tables = [json.dumps(output.get("data", {})) for cell in code(notebook) for output in cell.outputs]
    recorded = {claim for claim in claims for table in tables if f"**{claim} " in table}
    found += [f"{claim} must be recorded" for claim in sorted(claims - recorded)]
    if claims and any("| claim |" in cell.source for cell in notebook.cells if words(cell)):
        found.append("its claims must come from the ledger")
    if any(not cell.source.strip() or UNWRITTEN.search(cell.source) for cell in notebook.cells):
        found.append("something is still to be written")
    return found


def test_a_notebook_has_the_form_that_readers_know(path, notebook):
    claims = {claim.id for claim in ledger.claims() if claim.notebook == path.stem}
    assert faults(notebook, claims) == []


def sound():
    """A small notebook of the right form that checks claim C01."""
    made = nbformat.v4
    opening = "# 99 · T\n\n**Question.** Why?\n\n**Answer.** So. Thus.\n\n*Reading time: about 1 minute.*"
    finding = made.new_output("display_data", {"text/markdown": "**C01 holds** (proved)"})
    return made.new_notebook(
        cells=[
            made.new_markdown_cell(opening),
            made.new_code_cell("record.claims()"),
            made.new_markdown_cell("*Proof.* By hand. $\\square$"),
            made.new_code_cell("record(module.check())", outputs=[finding]),
        ]
    )


PLANTED = {
    "it must open": lambda cells: cells.pop(0),
    "its reading time": lambda cells: cells[0].update(source=cells[0].source.replace("about 1", "about 2")),
    "a cell has 401 words": lambda cells: cells[2].update(source="word " * 401),
    "it has 28": lambda cells: cells.extend([nbformat.v4.new_markdown_cell("word " * 400)] * 7),
    "its claims must be shown": lambda cells: cells.insert(3, cells.pop(1)),
    "C01 must be recorded": lambda cells: cells.pop(3),
    "its claims must come": lambda cells: cells[2].update(source="| claim | in short |"),
    "something": lambda cells: cells[2].update(source="Todo: prose"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_of_form_is_found(fault):
    notebook = sound()
    assert faults(notebook, {"C01"}) == []
    PLANTED[fault](notebook.cells)
    assert any(one.startswith(fault) for one in faults(notebook, {"C01"}))


def test_nothing_of_one_run_or_one_machine_is_stored(notebook):
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(set(cell.metadata) <= {"tags", "jupyter"} for cell in notebook.cells)
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)  # progress bars
    assert not any("widget" in kind for output in outputs for kind in output.get("data", {}))
    text = nbformat.writes(notebook)
    assert "/home/" not in text
    assert str(Path(__file__).parents[1]) not in text


def test_a_cell_fits_half_a_screen_and_a_line_a_page(path, notebook):
    for cell in code(notebook):
        assert len(cell.source.splitlines()) <= LONGEST_CELL, cell.source
        assert max(map(len, printed(cell).splitlines()), default=0) <= WIDEST_LINE, printed(cell)


def test_a_notebook_ends_in_its_verdict(path, notebook):
    last = printed(code(notebook)[-1])
    assert last.count("verdict: ") == 1
    found = ledger.found().get(path.stem, {})
    for verdict in ledger.VERDICTS:
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
