"""The gallery: each example is short, uses only public names, and was executed as it is."""

import re
from pathlib import Path

import nbformat
import pytest

import ebr

GALLERY = sorted((Path(__file__).parents[1] / "notebooks" / "gallery").glob("*.ipynb"))
MOST_WORDS, MOST_CELLS, LONGEST_CELL = 200, 5, 20


def faults(notebook):
    """The faults of an example, by name."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    source = "\n".join(cell.source for cell in code)
    words = sum(len(cell.source.split()) for cell in notebook.cells if cell.cell_type == "markdown")
    outputs = [output for cell in code for output in cell.outputs]
    names = set(re.findall(r"\bebr\.(\w+)", source))
    found = {
        "too many words": words > MOST_WORDS,
        "too many cells": len(code) > MOST_CELLS,
        "a long cell": any(len(cell.source.splitlines()) > LONGEST_CELL for cell in code),
        "not executed in order": [cell.execution_count for cell in code] != list(range(1, len(code) + 1)),
        "no public name": not names <= set(ebr.__all__) or re.search(r"(?m)^from (ebr|compendium)", source),
        "not one picture": sum("image/png" in output.get("data", {}) for output in outputs) != 1,
        "an error": any(
            output.output_type == "error" or output.get("name") == "stderr" for output in outputs
        ),
        "what one run left": set(notebook.metadata) != {"kernelspec", "language_info"}
        or any(cell.metadata for cell in notebook.cells),
        "no title": not notebook.cells[0].source.startswith("# "),
    }
    return [fault for fault, is_so in found.items() if is_so]


def test_there_are_five_examples():
    assert [path.stem[0] for path in GALLERY] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_fits_a_screen_and_was_executed(path):
    assert faults(nbformat.read(path, as_version=4)) == []


PLANTED = {
    "too many words": lambda cells: cells[0].update(source="# " + "word " * 201),
    "too many cells": lambda cells: cells.extend([cells[1]] * 5),
    "a long cell": lambda cells: cells[1].update(source="x = 1\n" * 21),
    "not executed in order": lambda cells: cells[1].update(execution_count=None),
    "no public name": lambda cells: cells[1].update(source="ebr.live.race"),
    "not one picture": lambda cells: [cell.update(outputs=[]) for cell in cells if "outputs" in cell],
    "an error": lambda cells: cells[1].outputs.append(nbformat.v4.new_output("stream", name="stderr")),
    "what one run left": lambda cells: cells[1].update(metadata={"papermill": {}}),
    "no title": lambda cells: cells.pop(0),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault):
    notebook = nbformat.read(GALLERY[0], as_version=4)
    PLANTED[fault](notebook.cells)
    assert fault in faults(notebook)
