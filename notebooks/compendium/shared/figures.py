"""One style for every figure, and one way to save it, with the plotted numbers beside it."""

import ast
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.core.getipython import get_ipython
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib_inline.backend_inline import set_matplotlib_formats
from PIL import Image

from ebr.live.plots import STYLE

PROJECT = Path(__file__).resolve().parents[3]
COMMITTED, TRIED = PROJECT / "figures", PROJECT / "build" / "figures"
trying = False  # whether the notebook's parameters are other ones than those of its committed figures
COLUMN, PAGE = 3.4, 7.0  # inches: a journal's column and its full page
SMALLEST = 7.0  # points: the smallest text of a figure
INVISIBLE = 8  # of 255: a difference of brightness or colour
# What an SVG says in numbers: where things are, in points of a 72nd inch, and names that hash where they are.
PLACES, NAMES = re.compile(rb"-?\d+\.\d+"), re.compile(rb"\b[a-z][0-9a-f]{10}\b")
NEAR = 1e-4
Tables = pd.DataFrame | Mapping[str, pd.DataFrame]
SECONDS_TO_WRITE = 60  # at most: what is older and unfinished will not be finished
DIGITS = 9  # significant ones: what a processor or an order of summation decides comes after them


def style() -> None:
    """Use the project's style for the figures drawn from here on."""
    plt.style.use(STYLE)
    if get_ipython() is not None:
        # Pictures are shown as they are laid out: to crop each, Jupyter would draw it twice and measure it.
        set_matplotlib_formats("png", bbox_inches=None)


def folder() -> Path:
    """Where figures go: to the folder that EBR_FIGURES names, else to `figures` in the project.

    Those of other parameters than the committed figures have go to build/figures.
    """
    return Path(os.environ.get("EBR_FIGURES") or (TRIED if trying else COMMITTED))


def _provenance(picture: Path) -> tuple[str, str]:
    with Image.open(picture) as opened:
        return opened.info.get("Source", ""), opened.info.get("Description", "")


def significant(number: float) -> float:
    """The number with the digits that are saved."""
    return float(f"{number:.{DIGITS}g}")


def rounded(table: pd.DataFrame) -> pd.DataFrame:
    """The table as it is saved, which is what a figure is to be drawn from."""
    floats = [name for name, kind in table.dtypes.items() if kind == np.float64]
    return table.assign(**{str(name): table[name].map(significant) for name in floats})


def thin(trace: pd.DataFrame, points: int) -> pd.DataFrame:
    """Keep some `points` rounds of a long trace, evenly spaced on a log axis, and every arm's last."""
    rounds = np.geomspace(1, trace["round"].max(), points).astype(int)
    last = trace.groupby("arm")["round"].transform("max")
    return trace[trace["round"].isin(rounds) | (trace["round"] == last)].reset_index(drop=True)


def parameters(notebook: str) -> dict[str, Any]:
    """The running notebook's parameters: names from its cell of that tag, values from the kernel."""
    path = PROJECT / "notebooks" / f"{notebook}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    tagged = (cell for cell in cells if "parameters" in cell["metadata"].get("tags", []))
    body = [statement for cell in tagged for statement in ast.parse("".join(cell["source"])).body]
    names = [ast.unparse(statement.targets[0]) for statement in body if isinstance(statement, ast.Assign)]
    kernel = vars(sys.modules["__main__"])
    return {name: kernel[name] for name in sorted(names)}


def provenance(notebook: str) -> str:
    """Where a notebook's files come from: its name and *all* its parameters.

    From here on everything goes to build/figures if the committed figures have other parameters.
    """
    global trying
    source = f"ebr notebook {notebook}"
    told = f"{source}; {', '.join(f'{key}={value}' for key, value in parameters(notebook).items())}; "
    said = dict(map(_provenance, COMMITTED.glob("*.png"))).get(source)
    before, trying = trying, said is not None and not said.startswith(told)
    if trying and not before and folder() == TRIED:
        print(f"The committed figures have other parameters: what is saved goes to {TRIED}.", file=sys.stderr)
    return told


def saver(notebook: str) -> Callable[[Figure, str, Tables], None]:
    """How a notebook saves its figures: `save(figure, name, tables)`.

    Writes `name`.png, .svg and .pdf, and the plotted numbers, one row a point. One table goes to
    data/`name`.csv, several to data/`name`-KEY.csv each. They must be `rounded`: a figure is drawn from what
    is saved. The files say where they come from (`provenance`, and a hash of the data) and nothing of when,
    so a rerun writes the same bytes. Each appears under its name only when it is complete.

    A figure must be as wide as a column or a page, and its text no smaller than 7 points.
    """
    told = provenance(notebook)

    def save(figure: Figure, name: str, data: Tables) -> None:
        if isinstance(data, pd.DataFrame):
            tables = {name: data}
        else:
            tables = {f"{name}-{key}": table for key, table in data.items()}
        contents = {key: _csv(key, table) for key, table in tables.items()}
        for key, content in contents.items():
            write(f"data/{key}.csv", partial(Path.write_bytes, data=content))
        check_print(figure, name)
        digest = hashlib.sha256(b"".join(contents.values())).hexdigest()
        source, description = told.partition(";")[0], f"{told}data sha256 {digest}"
        metadata: dict[str, dict[str, str | None]] = {
            "png": {"Title": name, "Source": source, "Description": description, "Software": "ebr"},
            "svg": {"Title": name, "Source": source, "Description": description, "Date": None},
            "pdf": {"Title": name, "Subject": description, "Keywords": source, "CreationDate": None},
        }
        _lay_out(figure)
        for kind, facts in metadata.items():
            write(f"{name}.{kind}", partial(figure.savefig, format=kind, metadata=facts))
            _keep_places(figure)  # matplotlib puts back what the style says

    return save


def check_print(figure: Figure, name: str) -> None:
    """Raise ValueError if a figure fits neither column nor page, or has text below 7 points.

    The small letters inside a formula (exponents, indices) are not looked at.
    """
    width = figure.get_figwidth()
    if width not in (COLUMN, PAGE):
        raise ValueError(f"width of {name} must be {COLUMN} or {PAGE} inches, got {width:g}")
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        words, size = text.get_text().strip(), float(text.get_fontsize())
        if words and text.get_visible() and size < SMALLEST:
            raise ValueError(f"text of {name} must have {SMALLEST:g} points or more, got {size:g}: {words!r}")


def letters(axes: Iterable[Axes]) -> None:
    """Give each panel its letter, above its left corner."""
    for letter, axis in zip(ascii_lowercase, axes, strict=False):
        axis.set_title(letter, loc="left", fontweight="bold")


def _lay_out(figure: Figure) -> None:
    """Put all axes where the first picture would have them, without the draw that matplotlib adds."""
    if (engine := figure.get_layout_engine()) is not None:
        shown = figure.dpi
        figure.set_dpi(plt.rcParams["savefig.dpi"])  # the width of a word is a matter of pixels
        engine.execute(figure)
        figure.set_dpi(shown)
    _keep_places(figure)


def _keep_places(figure: Figure) -> None:
    """Leave all axes where they are: to lay a figure out takes longer than to draw it."""
    with plt.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)


def write(name: str, put: Callable[[Path], object]) -> None:
    """Write a file in the figures' folder: beside the target, then rename.

    An interrupted run leaves no file that looks finished.
    """
    path = folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{path.name}.*"):  # by a process that was killed
        if left.stat().st_mtime < time.time() - SECONDS_TO_WRITE:
            left.unlink(missing_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        put(unfinished)
        if not _looks_the_same(path, unfinished):
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    if manifest := os.environ.get("EBR_MANIFEST"):
        with open(manifest, "a", encoding="utf-8") as file:
            file.write(f"{path}\n")


def _looks_the_same(there: Path, new: Path) -> bool:
    """Whether a picture of the same numbers is there already that no eye could tell from the new one.

    The last bits of another processor's logarithm may move a marker by a 256th of a pixel.
    """
    if there.suffix not in LOOKS or not there.exists():
        return False
    # The same bytes, as nearly always, tell it without a look at the picture.
    return there.read_bytes() == new.read_bytes() or LOOKS[there.suffix](there, new)


def _same_pixels(there: Path, new: Path) -> bool:
    with Image.open(there) as old, Image.open(new, formats=["PNG"]) as fresh:
        told = [picture.info.get("Description") for picture in (old, fresh)]
        if told[0] != told[1] or old.size != fresh.size:
            return False
        pixels = (np.asarray(picture.convert("RGBA"), dtype=np.int16) for picture in (old, fresh))
        return bool(np.abs(np.subtract(*pixels)).max() <= INVISIBLE)


def _same_places(there: Path, new: Path) -> bool:
    drawings = [NAMES.sub(b"name", path.read_bytes()) for path in (there, new)]
    texts = [PLACES.sub(b"place", drawing) for drawing in drawings]
    if texts[0] != texts[1]:
        return False
    places = [np.array(PLACES.findall(drawing), dtype=float) for drawing in drawings]
    return bool(np.abs(np.subtract(*places)).max(initial=0) <= NEAR)


LOOKS = {".png": _same_pixels, ".svg": _same_places}


def _csv(name: str, table: pd.DataFrame) -> bytes:
    if not rounded(table).equals(table):
        raise ValueError(f"data of {name} must be rounded before it is drawn: use figures.rounded")
    return table.to_csv(index=False, lineterminator="\n", float_format=f"%.{DIGITS}g").encode()
