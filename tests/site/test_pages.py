"""The parts of the site: pictures with alternative text, the README's links, and the output folder."""

import cells
import pages
import publish
import pytest


def test_a_picture_is_known_by_the_name_under_which_its_cell_saves_it():
    assert cells.saved('%matplotlib inline\nsave(draw(part, "Setup 1", "T"), "fig2a", part)\nplt.show()') == [
        "fig2a"
    ]
    assert cells.saved('save(\n    a,\n    "one",\n    t,\n)\nsave(b, "two", t)') == ["one", "two"]
    assert cells.saved("plt.show()") == []


def test_every_text_is_of_a_picture_that_there_is():
    drawn = [*(pages.ROOT / "figures").glob("*.png"), *(pages.ROOT / "notebooks" / "gallery").glob("*.ipynb")]
    assert {path.stem for path in drawn} == set(cells.words())
    assert all(len(text) > 60 for text in cells.words().values())


def test_links_of_the_readme_lead_to_pages():
    text = "![a](figures/fig1.png) [3](figures/fig3.png) [sharp](ebr/algorithms/sharp.py) [live](ebr/live)"
    there = "![a](figures/fig1.png) [3](#fig3) {py:mod}`sharp <ebr.algorithms.sharp>` [live](api/live.rst)"
    assert pages.links(text) == there
    assert pages.links("[a](claims.yaml) [b](CHANGELOG.md)") == "[a](ledger.md) [b](changelog.md)"


@pytest.mark.parametrize("content", ["thesis.tex", ".buildinfo"])
def test_a_folder_that_holds_anything_but_a_site_of_ours_stays_as_it_is(tmp_path, monkeypatch, content):
    for step in ("lay_out", "add_font"):
        monkeypatch.setattr(publish, step, lambda folder: None)
    monkeypatch.setattr(publish, "run_sphinx", lambda _, output, __: (output / "index.html").touch())
    output, beside = tmp_path / "site", tmp_path / "site-work"
    for folder in (output, beside):
        folder.mkdir()
        (folder / content).write_text("precious")
    assert publish.build(output).startswith(
        f"{output} holds something else than a site made here, so it stays"
    )
    assert [path.read_text() for path in output.iterdir()] == ["precious"]
    # An empty folder may be filled several times. It then holds only the last site.
    (output / content).unlink()
    for _ in range(2):
        assert publish.build(output) is None
        assert {path.name for path in output.iterdir()} == {"index.html", publish.MARK}
        (output / "of the last time").mkdir()
    assert (beside / content).read_text() == "precious"
