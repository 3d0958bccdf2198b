"""Saved figures: complete, the same bytes every time, and telling where they come from."""

import hashlib

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from compendium import figures
from PIL import Image

DATA = pd.DataFrame({"x": [1, 2, 3], "y": [0.1, 1 / 3, 1e-7]})


def draw(folder, monkeypatch):
    monkeypatch.setenv("EBR_FIGURES", str(folder))
    figures.style()
    figure, axis = plt.subplots()
    axis.plot(DATA["x"], DATA["y"])
    figures.save(figure, "fig0", DATA, "99-nothing", runs=3, seed=1)
    plt.close(figure)
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_a_rerun_writes_the_same_bytes_and_nothing_else(tmp_path, monkeypatch):
    first = draw(tmp_path / "a", monkeypatch)
    assert set(first) == {"fig0.png", "fig0.svg", "fig0.pdf", "data/fig0.csv"}
    assert draw(tmp_path / "b", monkeypatch) == first


def test_every_file_tells_notebook_parameters_and_the_datas_hash(tmp_path, monkeypatch):
    files = draw(tmp_path, monkeypatch)
    digest = hashlib.sha256(files["data/fig0.csv"]).hexdigest()
    expected = f"ebr notebook 99-nothing; runs=3, seed=1; data sha256 {digest}"
    assert Image.open(tmp_path / "fig0.png").text["Description"] == expected
    assert expected in files["fig0.svg"].decode()
    assert expected.encode() in files["fig0.pdf"]


def test_the_saved_numbers_are_the_plotted_ones(tmp_path, monkeypatch):
    draw(tmp_path, monkeypatch)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "data" / "fig0.csv"), DATA, rtol=1e-11)


def test_a_failed_save_leaves_the_old_file_and_no_half_of_a_new_one(tmp_path, monkeypatch):
    before = draw(tmp_path, monkeypatch)
    monkeypatch.setattr(plt.Figure, "savefig", lambda self, path, **_: path.write_bytes(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        draw(tmp_path, monkeypatch)
    assert {
        p.relative_to(tmp_path).as_posix(): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()
    } == before


def test_thinning_keeps_the_ends_of_every_arm():
    trace = pd.DataFrame({"round": [*range(1, 1001), *range(1, 78)], "arm": [0] * 1000 + [1] * 77})
    thin = figures.thin(trace, points=20)
    assert len(thin) < 45
    assert thin.groupby("arm")["round"].agg(["min", "max"]).to_numpy().tolist() == [[1, 1000], [1, 77]]
