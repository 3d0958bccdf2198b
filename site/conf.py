"""Sphinx settings for the site, whose pages publish.py writes."""

import importlib.metadata
import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

project = "ebr"
author = "the ebr developers"
copyright = author  # shown at the foot of each page
release = importlib.metadata.version("ebr")

extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc", "cells", "formulas"]
html_math_renderer = "mathml"

# Notebooks are shown as they are committed.
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # otherwise pages load it from the network
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_dmath_double_inline = True  # allows $$ inside a paragraph
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # code with "..." in it

default_role = "code"
add_module_names = False  # the heading above names the module
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False  # autodoc lists them

html_theme = "pydata_sphinx_theme"
html_title = "ebr"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_domain_indices = False
html_context = {"default_mode": "auto"}  # light or dark, like the reader's system
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without a sidebar.
WIDE = "index own-experiment gallery notebooks/gallery/* ledger claims/* command-line contributing changelog"
html_sidebars: dict[str, list[str]] = {name: [] for name in WIDE.split()}

# Plain text in docstrings that reStructuredText would read as markup: |x|, *.jsonl, n_.
MARKUP = re.compile(r"\||(?<!\S)\*(?=[.\s])|(?<=\w)_(?!\w)")
ARRAY = re.compile(
    r"(?:~?numpy\.)?ndarray\[tuple\[\S+, \.\.\.\], (?:~?numpy\.)?dtype\[(?:~?numpy\.)?(\w+)\]\]"
)
ARRAYS = {"float64": "FloatArray", "int64": "IntArray", "bool": "BoolArray"}


def escape(app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Escape these marks in a docstring, except in code."""
    for index, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("`")
            parts[::2] = [MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
            lines[index] = "`".join(parts)


def short(app: Sphinx, what: str, name: str, item: object, options: object, *texts: str) -> tuple:
    """Show array types in signatures by the names that the sources use."""
    return tuple(text and ARRAY.sub(lambda kind: ARRAYS[kind[1]], text) for text in texts)


def skip(app: Sphinx, what: str, name: str, item: object, skipped: bool, options: object) -> bool | None:
    """Skip fields of named tuples, which repeat the signature, and a method that scikit-learn adds."""
    field = (getattr(item, "__doc__", None) or "").startswith("Alias for field number")
    return True if field or name == "set_fit_request" else None


def setup(app: Sphinx) -> None:
    """Connect the functions above to Sphinx."""
    app.connect("autodoc-process-docstring", escape, priority=100)  # before numpydoc
    app.connect("autodoc-process-signature", short)
    app.connect("autodoc-skip-member", skip)
