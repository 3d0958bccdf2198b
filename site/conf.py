"""Sphinx's settings for the site. `make site` runs it on the pages that publish.py lays out."""

import importlib.metadata
import re
import sys
from pathlib import Path

from jinja2 import PackageLoader
from numpydoc import docscrape_sphinx
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

project = "ebr"
author = "the ebr developers"
copyright = author  # Sphinx's name for the line at the foot of each page
release = importlib.metadata.version("ebr")

extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc", "cells", "formulas"]
html_math_renderer = "mathml"

# Notebooks are shown as they are committed.
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # else it comes from the network
myst_enable_extensions = ["amsmath", "dollarmath"]
myst_dmath_double_inline = True  # a displayed formula may stand in a paragraph
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # a rewards list with "..." in it

default_role = "code"
add_module_names = False  # the heading above has the module's
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False  # autodoc lists them
# numpydoc compiles its template again for every docstring, a tenth of the build: here once.
_environment = docscrape_sphinx.SandboxedEnvironment(loader=PackageLoader("numpydoc"))
docscrape_sphinx.SandboxedEnvironment = lambda loader: _environment

html_theme = "pydata_sphinx_theme"
html_title = "ebr"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False
html_domain_indices = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
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
WIDE = "index own-experiment gallery notebooks/gallery/* ledger claims/* tests/* command-line contributing"
html_sidebars: dict[str, list[str]] = {name: [] for name in [*WIDE.split(), "changelog"]}

# What docstrings mean as it stands and reStructuredText takes for markup: |x|, *.jsonl, n_.
MARKUP = re.compile(r"\||(?<!\S)\*(?=[.\s])|(?<=\w)_(?!\w)")


def escape(app: Sphinx, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Escape such marks in a docstring, but for code."""
    for index, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("`")
            parts[::2] = [MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
            lines[index] = "`".join(parts)


def short(
    app: Sphinx, what: str, name: str, item: object, options: object, given: str, returned: str
) -> tuple:
    """Name array types as the sources do."""
    long = re.compile(
        r"(?:~?numpy\.)?ndarray\[tuple\[\S+, \.\.\.\], (?:~?numpy\.)?dtype\[(?:~?numpy\.)?(\w+)\]\]"
    )
    names = {"float64": "FloatArray", "int64": "IntArray", "bool": "BoolArray"}
    return tuple(text and long.sub(lambda kind: names[kind[1]], text) for text in (given, returned))


def skip(app: Sphinx, what: str, name: str, item: object, skipped: bool, options: object) -> bool | None:
    """Leave out fields of named tuples, which say nothing beyond the signature, and scikit-learn's own."""
    field = (getattr(item, "__doc__", None) or "").startswith("Alias for field number")
    return True if field or name == "set_fit_request" else None


def setup(app: Sphinx) -> None:
    """Tell Sphinx."""
    app.connect("autodoc-process-docstring", escape, priority=100)  # before numpydoc
    app.connect("autodoc-process-signature", short)
    app.connect("autodoc-skip-member", skip)
