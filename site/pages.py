"""Pages made from the README, the notebooks, the docstrings and the command line's own help."""

import base64
import contextlib
import importlib
import io
import json
import os
import pkgutil
import re
from pathlib import Path

import cells

import ebr
from ebr.live import cli

ROOT = Path(__file__).parents[1]
ROOMS = ("theory", "algorithms", "simulation", "live")
OWN = "Use it on your own experiment"  # this section of the README has its own page

MORE_FIGURES = """\
![{fig2}](figures/fig2.png)

*Figure 2 of the paper, from simulations of our own: pulls against the number of rounds and against ε, on both
setups ([notebook 07](notebooks/07-simulations.ipynb)).*

![{fig3}](figures/fig3.png)

*Figure 3, ours: the same with sharp, pausing and staked EBR
([notebook 09](notebooks/09-sharp-racing.ipynb)).*
"""

CONTENTS = """
```{toctree}
:hidden:

Your own experiment <own-experiment>
Gallery <gallery>
Notebooks <notebooks/index>
Ledger <ledger>
Reference <api/index>
Command line <command-line>
Contributing <contributing>
Changelog <changelog>
```
"""


def home() -> str:
    """The README without the section that has its own page, plus Figures 2 and 3 and the contents."""
    (start, *rest) = _sections()
    kept = "".join(section for section in rest if not section.startswith(f"## {OWN}\n"))
    return links(start + MORE_FIGURES.format(**cells.words()) + "\n" + kept) + CONTENTS


def own_experiment() -> str:
    """The README's section on your own experiment, as a page."""
    (section,) = (section for section in _sections() if section.startswith(f"## {OWN}\n"))
    return links(section.removeprefix("#"))


def _sections() -> list[str]:
    """The README, split before each second-level heading."""
    return re.split(r"^(?=## )", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)


def links(text: str) -> str:
    """Replace links to files of the repository by links to pages of the site."""
    text = re.sub(r"(?<!!)\[([^]]+)\]\(ebr/(\w+)/(\w+)\.py\)", r"{py:mod}`\1 <ebr.\2.\3>`", text)
    text = re.sub(r"(?<!!)\[([^]]+)\]\(notebooks/compendium/[\w/]+\.py\)", r"\1", text)  # has no page
    text = re.sub(r"\]\(ebr/(\w+)\)", r"](api/\1.rst)", text)
    text = re.sub(r"(?<!!)(\[[^]]+\])\(figures/([\w-]+)\.png\)", r"\1(#\2)", text)
    text = re.sub(r"\]\((CHANGELOG|CONTRIBUTING|README)\.md\)", lambda page: page[0].lower(), text)
    return text.replace("](claims.yaml)", "](ledger.md)").replace("](readme.md)", "](index.md)")


def gallery(folder: Path) -> str:
    """The gallery: one card per example, with its notebook's picture, which is written to the folder."""
    cards, names = [], []
    for path in sorted((ROOT / "notebooks" / "gallery").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))["cells"]
        shown = [output.get("data", {}) for cell in notebook for output in cell.get("outputs", [])]
        (picture,) = (data["image/png"] for data in shown if "image/png" in data)
        (folder / f"{path.stem}.png").write_bytes(base64.b64decode(picture))
        title = notebook[0]["source"][0].removeprefix("# ").strip()
        image = f"![{cells.words()[path.stem]}]({path.stem}.png)"
        cards.append(f"[{image}{title}](notebooks/gallery/{path.name})")
        names.append(f"notebooks/gallery/{path.stem}")
    tree = ["```{toctree}", ":hidden:", "", *names, "```"]
    head = ["# Gallery", "", "Short examples, to be copied and changed.", "", '<div class="gallery">', ""]
    return "\n".join([*head, "\n\n".join(cards), "", "</div>", "", *tree, ""])


def notebooks() -> str:
    """The list of notebooks, with the question that each one asks."""
    paths = sorted((ROOT / "notebooks").glob("*.ipynb"))  # the appendices last: digits sort before letters
    lines = ["# Notebooks", "", "One question each, shown as they were executed.", ""]
    for path in paths:
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        title = first.splitlines()[0].removeprefix("# ")
        question = first.partition("**Question.** ")[2].splitlines()[0]
        lines.append(f"* [{title}]({path.name}). {question}")
    tree = ["", "```{toctree}", ":hidden:", "", *(path.stem for path in paths), "```"]
    return "\n".join([*lines, *tree, ""])


def reference() -> dict[str, str]:
    """The pages of the reference, by name: an index of the public names, and one page per room."""
    names = []
    for name in ebr.__all__:
        what = getattr(ebr, name)
        first = (what.__doc__ or "").strip().splitlines()[0]
        names += [f":py:obj:`~{what.__module__}.{name}`", f"    {first}"]
    intro = "What can be imported from ``ebr`` itself:"
    more = "Everything else is in one of four rooms, each of which uses only those before it."
    tree = [".. toctree::", "   :maxdepth: 1", "", *(f"   {room}" for room in ROOMS)]
    index = [*_title("Reference", "="), intro, "", *names, "", more, "", *tree]
    return {"index": "\n".join(index), **{room: _room(room) for room in ROOMS}}


def _room(room: str) -> str:
    package = importlib.import_module(f"ebr.{room}")
    lines = [*_title(f"ebr.{room}", "="), package.__doc__ or "", ""]
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "cli":  # documented on the page of the command line
            name = f"ebr.{room}.{module.name}"
            lines += [*_title(module.name, "-"), f".. automodule:: {name}", "   :members:", ""]
    return "\n".join(lines)


def _title(title: str, line: str) -> list[str]:
    return [title, line * len(title), ""]


def command_line() -> str:
    """Every command with its options, as `--help` prints them."""
    top = _help()
    names = re.findall(r"^    (\w+)(?: |$)", top, flags=re.MULTILINE)  # a long name has a line of its own
    lines = ["# The command line", "", "```text", top, "```", ""]
    for name in names:
        lines += [f"## {name}", "", "```text", _help(name), "```", ""]
    return "\n".join(lines)


def _help(*command: str) -> str:
    os.environ["COLUMNS"] = "88"
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        cli.main([*command, "--help"])
    return printed.getvalue().strip()
