"""One style for every figure, and one way to save it, with the plotted numbers beside it."""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ebr.live.plots import STYLE

__all__ = ["COLUMN", "PAGE", "folder", "save", "style", "thin"]

COLUMN, PAGE = 3.4, 7.0  # inches: a journal's column and its full page


def style() -> None:
    """Use the project's style for the figures drawn from here on."""
    plt.style.use(STYLE)


def folder() -> Path:
    """Where figures go: the folder named by EBR_FIGURES, else `figures` beside the module."""
    return Path(os.environ.get("EBR_FIGURES") or Path(__file__).resolve().parents[2] / "figures")


def thin(trace: pd.DataFrame, points: int) -> pd.DataFrame:
    """Keep some `points` rounds of a long trace, evenly spaced on a log axis, and every arm's last."""
    rounds = np.geomspace(1, trace["round"].max(), points).astype(int)
    last = trace.groupby("arm")["round"].transform("max")
    return trace[trace["round"].isin(rounds) | (trace["round"] == last)].reset_index(drop=True)


def save(figure: Figure, name: str, data: pd.DataFrame, notebook: str, **parameters: Any) -> None:
    """Write `name`.png, .svg and .pdf, and the plotted numbers to data/`name`.csv.

    The files say where they come from (notebook, parameters, hash of the data) and nothing of when, so a
    rerun writes the same bytes. Each appears under its name only when it is complete.

    Parameters
    ----------
    figure
        The figure, drawn in the project's style.
    name
        The files' name, for instance "fig1".
    data
        What is plotted, one row a point.
    notebook
        The notebook that draws it.
    parameters
        Its parameters, the seed among them.
    """
    table = data.to_csv(index=False, lineterminator="\n", float_format="%.12g").encode()
    source = f"ebr notebook {notebook}"
    settings = ", ".join(f"{key}={value}" for key, value in sorted(parameters.items()))
    description = f"{source}; {settings}; data sha256 {hashlib.sha256(table).hexdigest()}"
    metadata: dict[str, dict[str, str | None]] = {
        "png": {"Title": name, "Source": source, "Description": description, "Software": "ebr"},
        "svg": {"Title": name, "Source": source, "Description": description, "Date": None},
        "pdf": {"Title": name, "Subject": description, "Keywords": source, "CreationDate": None},
    }
    _write(folder() / "data" / f"{name}.csv", lambda path: path.write_bytes(table))
    for kind, facts in metadata.items():
        _write(folder() / f"{name}.{kind}", partial(figure.savefig, format=kind, metadata=facts))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside the target, then rename: an interrupted run leaves no file that looks finished."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(unfinished)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    if manifest := os.environ.get("EBR_MANIFEST"):
        with open(manifest, "a", encoding="utf-8") as file:
            file.write(f"{path}\n")
