"""Checks of pages without a browser: each planted error is found and named."""

import cells
import links
import pages
import publish
import pytest

GOOD = """<html><head><link rel="stylesheet" href="a.css"><link rel="canonical" href="https://example.org"></head>
<body id="there"><a href="https://example.org/read">a link to follow</a><a href="#there">here</a>
<a href="page%20two.html#end">two</a><img src="a.png" alt="a picture">
<img src="data:image/png;base64,AA" alt="one">
</body></html>"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "page one.html").write_text(GOOD)
    (tmp_path / "page two.html").write_text('<p id="end"><a href="page one.html#there">one</a></p>')
    (tmp_path / "a.css").write_text(
        "@font-face { src: url(a.png) } p { background: url(data:image/png;base64,AA) }"
    )
    (tmp_path / "a.png").write_bytes(b"")
    return tmp_path


def test_sound_pages_have_no_problem(site):
    assert links.problems(site) == []


ELSEWHERE = "https://example.org/a"


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ('<a href="page%20three.html">gone</a>', "page%20three.html leads nowhere"),
        ('<a href="page%20two.html#middle">gone</a>', "page%20two.html#middle has no such anchor"),
        ('<a href="#nowhere">gone</a>', "#nowhere has no such anchor"),
        ('<img src="b.png" alt="gone">', "b.png leads nowhere"),
        ('<img src="a.png">', "a.png has no alternative text"),
        ('<img src="a.png" alt=" ">', "a.png has no alternative text"),
        ('<script src="//example.org/a.js"></script>', "//example.org/a.js is loaded from another host"),
        *(
            (planted % ELSEWHERE, f"{ELSEWHERE} is loaded from another host")
            for planted in (
                '<script src="%s"></script>',
                '<link rel="stylesheet" href="%s">',
                '<link rel="preconnect" href="%s">',
                '<img src="%s" alt="b">',
                "<style>@import '%s';</style>",
                '<p style="background: url(%s)">',
            )
        ),
    ],
)
def test_a_planted_error_is_found_and_named(site, planted, said):
    (site / "planted.html").write_text(f"<html><body>{planted}</body></html>")
    assert links.problems(site) == [f"planted.html: {said}"]


def test_a_style_sheet_that_loads_a_font_from_another_host_is_found(site):
    (site / "b.css").write_text("@font-face { src: url('https://example.org/font.woff2') }")
    assert links.problems(site) == ["b.css: https://example.org/font.woff2 is loaded from another host"]


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
    (wrong,) = publish.build(output)
    assert wrong.startswith(f"{output} holds something else than a site made here, so it stays as it is")
    assert [path.read_text() for path in output.iterdir()] == ["precious"]
    # An empty folder may be filled, more than once; it then holds the last site only.
    (output / content).unlink()
    for _ in range(2):
        assert publish.build(output) == []
        assert {path.name for path in output.iterdir()} == {"index.html", publish.MARK}
        (output / "of the last time").mkdir()
    assert (beside / content).read_text() == "precious"
