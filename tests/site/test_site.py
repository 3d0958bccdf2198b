"""The site, built from committed files and opened in a real browser, at the size of a desktop and a phone."""

import base64
import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

import publish
import pytest
import yaml
from chromium import PROGRAM, WHY_NOT, Chromium

import ebr
from ebr.live import cli

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
GALLERY = sorted(ROOT.glob("notebooks/gallery/*.ipynb"))
CLAIMS = yaml.safe_load((ROOT / "claims.yaml").read_text(encoding="utf-8"))["claims"]
DESK, PHONE = (1280, 900), (390, 844)
LOOK = Path(__file__).with_name("look.js").read_text("utf-8")  # lists the errors of the open page
DOT = bytes.fromhex(  # a picture of one white pixel
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b550000000a49444154789c63f80f00010101"
    "001bb6ee560000000049454e44ae426082"
)

in_a_browser = pytest.mark.skipif(PROGRAM is None, reason=WHY_NOT)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # from Sphinx, about its extensions
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "site"
    assert publish.build(folder) is None
    return folder


def running(**options):
    chromium = Chromium(**options)
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def browser():
    yield from running(drawn=False)


@pytest.fixture(scope="module")
def window():
    yield from running()


def text_of(site, page):
    return (site / page).read_text(encoding="utf-8")


def pages_of(site):
    """The site's pages, without the theme's templates."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]


LINK = re.compile(r'<(a|img|script|link|iframe)\b[^>]*?\b(?:href|src)="([^"]*)"')
ELSEWHERE = re.compile(r"""(?:url\(|@import)\s*['"]?(?:https?:)?//[^'")\s]*""")


def dead(site):
    """Dead links, and whatever a browser would load from another host, in pages and style sheets."""
    texts = {path: path.read_text(encoding="utf-8") for path in [*pages_of(site), *site.rglob("*.css")]}
    anchors = {path: {"", *re.findall(r'\b(?:id|name)="([^"]+)"', text)} for path, text in texts.items()}
    found = [word for text in texts.values() for word in ELSEWHERE.findall(text)]
    for path, text in texts.items():
        for tag, target in LINK.findall(text):
            address = urlsplit(unescape(target))
            to = (path.parent / unquote(address.path)).resolve() if address.path else path
            if address.scheme or address.netloc:
                wrong = tag != "a" and address.scheme != "data"
            else:
                wrong = not to.is_file() or unquote(address.fragment) not in anchors.get(to, address.fragment)
            found += [target] if wrong else []
    return found


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_another_host(site):
    assert dead(site.resolve()) == []


def test_a_planted_dead_link_and_another_host_are_seen(tmp_path):
    (tmp_path / "page two.html").write_text('<p id="end"><a href="https://example.org">a link to follow</a>')
    page, other = tmp_path / "page.html", "https://example.org/a"
    page.write_text('<p id="here"><a href="#here">a</a><a href="page%20two.html#end">b</a>')
    assert dead(tmp_path) == []
    for target in ("lost.html", "page%20two.html#middle", "#nowhere"):
        page.write_text(f'<a href="{target}">gone</a>')
        assert dead(tmp_path) == [target]
    for planted in ('<script src="%s"></script>', '<link href="%s">', '<img src="%s">', "@import '%s'"):
        page.write_text(planted % other)
        assert len(dead(tmp_path)) == 1


def test_every_notebook_is_a_page_with_all_its_pictures(site):
    for path in NOTEBOOKS + GALLERY:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        pictures = sum("image/png" in output.get("data", {}) for output in outputs)
        page = text_of(site, path.relative_to(ROOT).with_suffix(".html"))
        assert page.count("<img ") == pictures, path.name
        code = sum(cell["cell_type"] == "code" for cell in cells)
        assert len(re.findall(r'id="cell-\d+"', page)) == code, path.name


def test_the_lists_have_every_notebook_example_and_public_name(site):
    """Whether their links are alive is tested above."""
    home, gallery, reference = (text_of(site, f"{page}.html") for page in ("index", "gallery", "api/index"))
    assert re.findall(r'src="_images/(fig\d)\.png"', home) == ["fig1", "fig2", "fig3"]
    assert all(f'href="notebooks/{path.stem}.html"' in home for path in NOTEBOOKS)
    listed = text_of(site, "notebooks/index.html").split("<article")[1].split("</article>")[0]
    names = re.findall(r'<li>.*?href="([\w-]+)\.html"', listed, re.DOTALL)
    assert names == sorted(path.stem for path in NOTEBOOKS)  # A1 after the numbers
    for path in GALLERY:
        cards = re.findall(rf'href="notebooks/gallery/{path.stem}.html">(.*?)</a>', gallery)
        assert any(f'src="_images/{path.stem}.png"' in card for card in cards)
    assert all(f'#{getattr(ebr, name).__module__}.{name}"' in reference for name in ebr.__all__)


def test_every_command_is_on_its_page_as_the_terminal_has_it(site, capsys):
    cli.main(["no such command"])
    choices = capsys.readouterr().err.partition("choose from ")[2].partition(")")[0]
    commands = re.findall(r"\w+", choices)
    assert {"plan", "start", "ask", "tell", "status", "plot", "report"} <= set(commands)
    page = re.sub(r"<[^>]+>", "", text_of(site, "command-line.html"))
    for option in ("--epsilon EPSILON", "--file CSV", "--budget B", "ARM=COUNT:SUM"):
        assert option in page
    for command in commands:
        assert f"usage: python -m ebr {command} " in page


def test_every_claim_has_a_row_and_a_page_that_links_to_its_cell_and_has_its_planted_errors(site):
    ledger = text_of(site, "ledger.html")
    for claim in CLAIMS:
        row = ledger.split(f'<td id="{claim["id"]}">')[1].split("</tr>")[0]
        own = text_of(site, f"claims/{claim['id']}.html").split("<article")[1].split("</article>")[0]
        assert f'href="claims/{claim["id"]}.html"' in row
        assert claim["verdict"] in row
        words = " ".join(unescape(re.sub(r"<[^>]+>", "", own)).split())
        for field in ("statement", "hypotheses", "verdict", "basis", "correction"):
            said = re.sub(r"\W", "", claim.get(field, ""))  # compare letters and digits only: quotes change
            assert said in re.sub(r"\W", "", words), (claim["id"], field)
        if "check" not in claim:
            continue
        page, cell = re.search(r'href="\.\./(notebooks/[\w-]+\.html)#(cell-\d+)"', own).groups()
        assert page == f"notebooks/{claim['notebook']}.html"
        shown = text_of(site, page).split(f'id="{cell}"')[1].split('id="cell-')[0]
        assert f"<strong>{claim['id']} {claim['verdict']}</strong>" in shown
        (module,) = re.findall(r"From tests/planted/(\w+)\.py", own)
        assert f'"{claim["id"]}": ' in (ROOT / "tests" / "planted" / f"{module}.py").read_text("utf-8")


def test_pictures_without_words_dead_links_and_formulas_that_cannot_be_set_stop_the_build(tmp_path, capsys):
    data = {"image/png": base64.b64encode(DOT).decode()}
    picture = {"output_type": "display_data", "metadata": {}, "data": data}
    code = {"cell_type": "code", "metadata": {}, "execution_count": 1, "outputs": [picture]}
    text = "# Title\n\n$a$, $\\foo b$, [here](lost.md), [there](#nowhere)"
    title = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": text}
    kept = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    names = ("fig2", "fig-unheard-of")
    cells = [title, *(code | {"id": name, "source": f'save(figure, "{name}", table)'} for name in names)]
    notebook = {"cells": cells, "metadata": kept, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "index.ipynb").write_text(json.dumps(notebook))
    assert publish.run_sphinx(tmp_path, tmp_path / "out", tmp_path / "read")
    told = capsys.readouterr().err
    assert told.count("WARNING") == 4, told
    assert "fig-unheard-of has no alternative text: say in site/pictures.yaml what it shows" in told
    assert r"\foo b: site/formulas.py does not know \foo" in told
    assert told.count("xref_missing") == 2


def wrong_with(browser, address):
    """The errors of a page on a desktop with light colours, and on a phone with dark ones."""
    browser.open("about:blank")  # otherwise the previous page is laid out again
    browser.look(*DESK, "light")
    browser.open(address)
    found = [f"desk: {said}" for said in browser.evaluate(LOOK)]
    browser.look(*PHONE, "dark")
    return [*browser.complaints(), *found, *(f"phone: {said}" for said in browser.evaluate(LOOK))]


FONTS = "[...document.fonts].filter((font) => font.status === 'loaded').map((font) => font.family)"
ARTICLE = re.compile(r"<article.*?</article>", re.DOTALL)


def together(folder):
    """One page with the articles of all pages of a folder. These pages are alike, and one loads faster."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.html"))]
    articles = [article for text in texts for article in ARTICLE.findall(text)]
    assert len(articles) == len(texts) > 10
    page = folder.with_name(f"{folder.name}-together") / "index.html"
    page.parent.mkdir()
    page.write_text(ARTICLE.sub(lambda _: "".join(articles), texts[0]), encoding="utf-8")
    return page


@in_a_browser
def test_every_page_is_whole_and_readable(site, browser):
    paths = [path for path in pages_of(site) if path.parent != site / "claims"]
    assert len(paths) >= len(NOTEBOOKS) + 10
    wrong, formulas, fonts = {}, 0, set()
    for path in [*paths, together(site / "claims")]:
        if said := wrong_with(browser, path.as_uri()):
            wrong[str(path.relative_to(site))] = said[:5]
        formulas += browser.evaluate("document.querySelectorAll('.math math').length")
        fonts |= set(browser.evaluate(FONTS))
    assert not wrong
    assert formulas > 1000
    assert "Formulas" in fonts, "formulas are set in their own font"


@in_a_browser
@pytest.mark.parametrize("shape", [DESK, PHONE], ids=["desk", "phone"])
def test_the_ledger_is_filtered_and_a_claim_leads_to_its_cell(site, window, shape):
    window.look(*shape)  # a window is needed for the theme to react to scrolling
    window.open((site / "ledger.html").as_uri())
    shown = "[...document.querySelectorAll('#ledger td[id]')].filter((c) => c.offsetParent).map((c) => c.id)"
    assert sorted(window.evaluate(shown)) == sorted(claim["id"] for claim in CLAIMS)
    ask = """((name, value) => {
        const box = document.querySelector(`[name=${name}]`);
        box.value = value;
        box.dispatchEvent(new Event("input", {bubbles: true}));
        return box.value;
    })(%s, %s)"""
    fitting = CLAIMS
    for name, value in (("verdict", "holds"), ("notebook", "07-simulations"), ("words", "SECTION 5")):
        assert window.evaluate(ask % (json.dumps(name), json.dumps(value))) == value
        field = "place" if name == "words" else name
        before = len(fitting)
        fitting = [
            claim for claim in fitting if value.lower() in (claim[field].lower(), claim[field][:9].lower())
        ]
        assert 0 < len(fitting) < before
        assert sorted(window.evaluate(shown)) == sorted(claim["id"] for claim in fitting)
    count = window.evaluate("document.getElementById('ledger-count').textContent")
    assert count.startswith(f"{len(fitting)} of {len(CLAIMS)} ")
    assert window.complaints() == []
    for link in ("#C24 a", "article a[href*='#cell-']"):
        window.heard.clear()
        window.evaluate(f'document.querySelector("{link}").click()')
        window.settle()
    place = window.evaluate("location.pathname + location.hash")
    assert re.fullmatch(r".*/notebooks/07-simulations\.html#cell-\d+", place)
    cell = "document.querySelector(':target').getBoundingClientRect()"
    top = window.evaluate(f"new Promise((r) => setTimeout(() => r({cell}.top), 300))")
    assert 0 <= top < shape[1] / 2, "the cell is on the screen, below the header"
    assert window.complaints() == []


WIDE = '<article><table><tr><td style="min-width: %spx">wide</td></tr></table></article>'
PLANTED = {
    "a console error": ('<script>console.error("planted")</script>', "planted"),
    "an exception": ('<script>throw new Error("planted")</script>', "planted"),
    "a script of another host": ('<script src="https://example.org/a.js"></script>', "a request failed"),
    "a lost picture": ('<img src="lost.png" alt="lost">', "no picture"),
    "a picture without words": ('<img src="dot.png">', "no words for a picture"),
    "a button without a name": ("<button></button>", "no name"),
    "grey on white": ('<p style="color: #999; background: #fff">hard to read</p>', "contrast 2.85"),
    "raw LaTeX": (r"<p>the sum \sum_i x_i</p>", "LaTeX: the sum"),
    "a formula that was not set": ('<span class="math">x</span>', "no formula"),
    "a table too wide for a desk": (WIDE % 2000, "desk: sticks out"),
    "a table too wide for a phone": (WIDE % 700, "phone: sticks out"),
    "a word too long for a phone": (f"<article><h1>{'word' * 10}</h1></article>", "phone: sticks out"),
}
WIDTH = '<meta name="viewport" content="width=device-width, initial-scale=1">'


@in_a_browser
@pytest.mark.parametrize("error", [None, "no width for phones", *PLANTED])
def test_a_planted_error_is_seen(browser, tmp_path, error):
    planted, said = PLANTED.get(error, ("", error))
    (tmp_path / "dot.png").write_bytes(DOT)
    good = '<img src="dot.png" alt="a dot"><p style="width: 100px; overflow-x: auto">good</p>'
    page = tmp_path / "page.html"
    head = "<title>A page</title>" + (WIDTH if error != "no width for phones" else "")
    page.write_text(f'<html lang="en"><head>{head}</head><body>{good}{planted}</body></html>')
    wrong = wrong_with(browser, page.as_uri())
    assert any(said in one for one in wrong) if said else wrong == []
