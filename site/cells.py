"""A Sphinx extension that gives each code cell an anchor and each picture an anchor and an alternative text.

The anchor of a code cell is cell-N, where N counts code cells as the ledger does. The anchor of a picture is
the name under which the notebook saves it ("fig2"); its alternative text is in pictures.yaml. A notebook of
the gallery saves nothing and shows one picture, which has the notebook's name.
"""

import ast
from functools import cache
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

WORDS = Path(__file__).with_name("pictures.yaml")


@cache
def words() -> dict[str, str]:
    """The alternative text of each picture."""
    return {name: " ".join(text.split()) for name, text in yaml.safe_load(WORDS.read_text("utf-8")).items()}


def saved(source: str) -> list[str]:
    """The names under which a cell saves its figures: the second argument of each `save(…)`."""
    code = "\n".join(line for line in source.splitlines() if not line.startswith(("%", "!")))
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [
        call.args[1].value
        for call in sorted(calls, key=lambda call: call.lineno)
        if ast.unparse(call.func) == "save" and isinstance(call.args[1], ast.Constant)
    ]


def name_cells(app: Sphinx, doctree: nodes.document) -> None:
    """Add anchors to the cells of a page, and anchors and alternative texts to its pictures."""
    texts = words()
    cells = [node for node in doctree.findall(nodes.container) if node.get("nb_element") == "cell_code"]
    for number, cell in enumerate(cells, 1):
        cell["ids"].append(f"cell-{number}")
        pictures = list(cell.findall(nodes.image))
        names = []
        if pictures and "/gallery/" in app.env.docname:
            names = [Path(app.env.docname).name]
        elif pictures:
            names = saved(next(cell.findall(nodes.literal_block)).astext())
        if len(names) != len(pictures):
            message = f"cell {number} must save each picture shown: shows {len(pictures)}, saves {names}"
            logging.getLogger(__name__).warning(message, location=doctree)
        for picture, name in zip(pictures, names, strict=False):
            if name not in texts:
                message = f"{name} has no alternative text: say in site/pictures.yaml what it shows"
                logging.getLogger(__name__).warning(message, location=doctree)
            picture["alt"] = texts.get(name, "")
            picture["ids"].append(name)
            app.env.domains.standard_domain.note_hyperlink_target(name, app.env.docname, name, name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the function above to Sphinx."""
    app.connect("doctree-read", name_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
