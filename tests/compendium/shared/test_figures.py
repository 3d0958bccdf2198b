"""Saved figures: complete, the same bytes every time, with their origin, legible in print."""

import hashlib
import os
import re
from io import BytesIO

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from compendium.shared import figures, findings
from PIL import Image, PngImagePlugin

find_parameters = figures.parameters
DATA = figures.rounded(pd.DataFrame({"x": [1, 2, 3], "y": [0.1, 1 / 3, 1e-7], "name": ["a", "b", "c"]}))


@pytest.fixture(autouse=True)
def given(monkeypatch):
    """The parameters of a notebook that does not exist."""
    parameters = {"runs": 3, "seed": 1}
    monkeypatch.setattr(figures, "parameters", lambda notebook: parameters)
    return parameters


def draw(folder, monkeypatch, data=DATA):
    """Save a figure in a folder; later figures of the test are saved there too."""
    monkeypatch.setenv("EBR_FIGURES", str(folder))
    figures.style()
    figure, axis = plt.subplots()
    axis.plot(DATA["x"], DATA["y"])
    try:
        figures.saver("99-nothing")(figure, "fig0", data)
    finally:
        plt.close(figure)
    return files(folder)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The files of one saved figure, shared by the tests that only read them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "parameters", lambda notebook: {"runs": 3, "seed": 1})
        return draw(tmp_path_factory.mktemp("saved"), patch)


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_rerun_writes_the_same_bytes_and_nothing_else(saved, tmp_path, monkeypatch):
    assert set(saved) == {"fig0.png", "fig0.svg", "fig0.pdf", "data/fig0.csv"}
    assert draw(tmp_path, monkeypatch) == saved


def test_every_file_tells_notebook_parameters_and_the_datas_hash_and_has_every_digit(saved):
    digest = hashlib.sha256(saved["data/fig0.csv"]).hexdigest()
    expected = f"ebr notebook 99-nothing; runs=3, seed=1; data sha256 {digest}"
    assert Image.open(BytesIO(saved["fig0.png"])).text["Description"] == expected
    assert expected in saved["fig0.svg"].decode()
    assert expected.encode() in saved["fig0.pdf"]
    pd.testing.assert_frame_equal(pd.read_csv(BytesIO(saved["data/fig0.csv"])), DATA, check_exact=True)


def test_parameters_have_names_from_the_notebook_and_values_from_the_kernel(tmp_path, monkeypatch):
    made = nbformat.v4
    tagged = made.new_code_cell("runs = 3  # races\nfirst = [1]", metadata={"tags": ["parameters"]})
    (tmp_path / "notebooks").mkdir()
    path = tmp_path / "notebooks" / "99-nothing.ipynb"
    nbformat.write(made.new_notebook(cells=[made.new_code_cell("other = 2"), tagged]), path)
    monkeypatch.setattr(figures, "PROJECT", tmp_path)
    for name, value in {"runs": 7, "first": [2], "other": 2}.items():  # as papermill may have set them
        monkeypatch.setattr("__main__." + name, value, raising=False)
    assert list(find_parameters("99-nothing").items()) == [("first", [2]), ("runs", 7)]


@pytest.mark.parametrize("told", [False, True])
def test_other_parameters_than_the_committed_figures_have_never_touch_them(
    tmp_path, monkeypatch, capsys, given, told
):
    committed, tried, named = tmp_path / "figures", tmp_path / "build", tmp_path / "named"
    before = draw(committed, monkeypatch)
    monkeypatch.setattr(figures, "COMMITTED", committed)
    monkeypatch.setattr(figures, "TRIED", tried)
    monkeypatch.setenv("EBR_FIGURES", str(named) if told else "")

    def save(runs):
        given["runs"] = runs
        figure, _ = plt.subplots()
        figures.saver("99-nothing")(figure, "fig0", DATA.assign(x=[4, 5, 6]))
        findings.Recorder("99-nothing")(findings.Finding("C01", True, (), "computed"))
        plt.close(figure)
        return capsys.readouterr().err

    said = f"The committed figures have other parameters: what is saved goes to {tried}.\n"
    assert save(runs=4) == ("" if told else said)
    assert files(committed) == before
    assert set(files(named if told else tried)) == {*before, "data/findings/99-nothing.json"}
    assert save(runs=3) == ""  # the committed parameters are saved in their own folder
    assert (files(committed) == before) == told
    monkeypatch.setattr(figures, "trying", False)


def test_what_a_killed_process_left_is_removed_and_what_another_writes_now_is_not(tmp_path, monkeypatch):
    for name in (".fig0.pdf.1", ".fig0.pdf.2"):
        (tmp_path / name).touch()
    os.utime(tmp_path / ".fig0.pdf.1", (0, 0))
    monkeypatch.setenv("EBR_FIGURES", str(tmp_path))
    figures.write("fig0.pdf", lambda path: path.write_text("picture"))
    assert files(tmp_path) == {"fig0.pdf": b"picture", ".fig0.pdf.2": b""}


def test_each_table_has_a_file_of_its_own(tmp_path, monkeypatch):
    other = pd.DataFrame({"z": [1.5]})
    written = draw(tmp_path, monkeypatch, {"curve": DATA, "marks": other})
    assert {name for name in written if "data" in name} == {"data/fig0-curve.csv", "data/fig0-marks.csv"}
    assert written["data/fig0-marks.csv"] == b"z\n1.5\n"


def test_numbers_with_more_digits_than_are_saved_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"data of fig0 must be rounded before it is drawn"):
        draw(tmp_path, monkeypatch, DATA.assign(y=1 / 3))
    assert files(tmp_path) == {}


@pytest.mark.parametrize("number", [1 / 3, -2e-300 / 3, 123456789.4321, 0.0, 5e8, np.inf])
def test_rounding_moves_a_number_by_less_than_a_unit_of_its_ninth_digit_and_then_no_more(number):
    (once,) = figures.rounded(pd.DataFrame({"x": [number]}))["x"]
    assert once == pytest.approx(number, rel=1e-8, abs=0)
    assert once == figures.significant(once) == float(f"{number:.9g}")


def test_rounding_keeps_gaps_words_and_whole_numbers_and_drops_the_last_bits_of_another_processor():
    table = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", None], "c": [2**60 + 1, 3]})
    assert figures.rounded(table).equals(table)
    there = DATA.assign(y=[0.1 * (1 + 3e-16), 1 / 3 * (1 - 2e-16), 1e-7 * (1 + 2e-16)])
    assert figures.rounded(there).equals(DATA)


def test_a_failed_save_leaves_the_old_file_and_no_half_of_a_new_one(tmp_path, monkeypatch):
    before = draw(tmp_path, monkeypatch)
    monkeypatch.setattr(plt.Figure, "savefig", lambda self, path, **_: path.write_bytes(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        draw(tmp_path, monkeypatch)
    assert files(tmp_path) == before


def put(path, there, new):
    """Write a file over another one; return whether the other one stays."""
    path.write_bytes(there)
    figures.write(path.name, lambda unfinished: unfinished.write_bytes(new))
    assert path.read_bytes() in (there, new)
    return path.read_bytes() == there


def test_a_picture_stays_where_no_eye_could_tell_the_new_one_from_it(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("EBR_FIGURES", str(tmp_path))
    right, path = saved["fig0.png"], tmp_path / "fig0.png"
    with Image.open(BytesIO(right)) as picture:
        before, facts = np.asarray(picture).astype(int), picture.info
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Description", facts["Description"])
    for change, kept in ((4, True), (30, False)):  # within what a marker's edge may change, and beyond it
        pixels = before.copy()
        pixels[100:110, 100:110, :3] = np.abs(pixels[100:110, 100:110, :3] - change)
        Image.fromarray(pixels.astype(np.uint8)).save(path, pnginfo=notes)
        assert put(path, path.read_bytes(), right) == kept


def moved(drawing, by):
    """A drawing whose frame begins elsewhere, and whose names, which are hashes of it, differ."""
    (name,) = set(re.findall(rb'clipPath id="(\w+)"', drawing))
    frame = re.search(rb"M (\d+\.\d+)", drawing)
    place = f"{float(frame[1]) + by:.6f}".encode()
    return drawing.replace(frame[1], place).replace(name, b"p0123456789")


def test_a_drawing_stays_where_only_last_bits_and_the_names_made_of_them_differ(saved, tmp_path, monkeypatch):
    monkeypatch.setenv("EBR_FIGURES", str(tmp_path))
    right, path = saved["fig0.svg"], tmp_path / "fig0.svg"
    assert put(path, moved(right, 2e-6), right)
    for other in (
        moved(right, 2e-3),
        right.replace(b"stroke: #", b"stroke: #0", 1),
        right.replace(b"data sha256 ", b"data sha256 0"),
        right[: len(right) // 2],
    ):
        assert other != right
        assert not put(path, other, right)


def test_a_picture_of_other_numbers_is_written_however_alike_it_looks(saved, tmp_path, monkeypatch):
    (tmp_path / "fig0.png").write_bytes(saved["fig0.png"])
    assert draw(tmp_path, monkeypatch, DATA.assign(x=[1, 2, 4]))["fig0.png"] != saved["fig0.png"]


def test_a_figure_is_laid_out_as_matplotlib_would_to_save_it(tmp_path, monkeypatch):
    def drawn():
        figure, axes = plt.subplots(2, 2, figsize=(figures.COLUMN, 3), sharey="row")
        axes[0, 0].plot(DATA["x"], DATA["y"], label="a curve of some length")
        axes[1, 0].set(yscale="log", ylim=(1e-3, 1e5), ylabel="pulls", title="a title")
        figure.legend(loc="outside lower center")
        return figure

    monkeypatch.setenv("EBR_FIGURES", str(tmp_path))
    figures.style()
    ours, plain = drawn(), drawn()
    figures.saver("99-nothing")(ours, "ours", DATA)
    plain.savefig(tmp_path / "plain.png")
    assert ours.dpi == plain.dpi
    pictures = [np.asarray(Image.open(tmp_path / f"{name}.png")) for name in ("ours", "plain")]
    np.testing.assert_array_equal(*pictures)
    plt.close("all")


def test_thinning_keeps_the_ends_of_every_arm():
    trace = pd.DataFrame({"round": [*range(1, 1001), *range(1, 78)], "arm": [0] * 1000 + [1] * 77})
    thin = figures.thin(trace, points=20)
    assert len(thin) < 45
    assert thin.groupby("arm")["round"].agg(["min", "max"]).to_numpy().tolist() == [[1, 1000], [1, 77]]


@pytest.fixture
def drawn():
    figures.style()
    figure, axes = plt.subplots(1, 2, figsize=(figures.PAGE, 2))
    figures.letters(axes)
    yield figure
    plt.close(figure)


def test_panels_have_letters(drawn):
    assert [axis.get_title(loc="left") for axis in drawn.axes] == ["a", "b"]


SMALL = {
    "a note": lambda figure: figure.axes[1].annotate("a note", (0, 0), fontsize=6.9),
    "a tick": lambda figure: figure.axes[0].set_xticks([0.5], ["a tick"], fontsize=5),
    "a curve": lambda figure: figure.axes[0].plot([1], label="a curve") and figure.legend(fontsize="small"),
}


@pytest.mark.parametrize("words", SMALL)
def test_text_that_nobody_could_read_in_print_is_refused(drawn, words):
    figures.check_print(drawn, "fig0")
    SMALL[words](drawn)
    with pytest.raises(ValueError, match=rf"text of fig0 must have 7 points or more, got .*'{words}'"):
        figures.check_print(drawn, "fig0")


def test_a_figure_that_fits_neither_column_nor_page_is_refused(drawn):
    drawn.set_figwidth(8)
    with pytest.raises(ValueError, match=r"width of fig0 must be 3.4 or 7.0 inches, got 8"):
        figures.check_print(drawn, "fig0")
