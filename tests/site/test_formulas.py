"""Formulas as MathML: the same symbols as latex2mathml's, and the spaces of The TeXbook."""

import re
import unicodedata
from html import unescape

import formulas
import nbformat
import pages
import pytest
from latex2mathml.converter import convert

MATH = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$", re.DOTALL)
ALIKE = str.maketrans("ϵ◻∣―*·∼", "ε□|¯∗⋅~")  # the two converters use different characters


@pytest.fixture(scope="module")
def written():
    """Every formula of the notebooks' Markdown cells."""
    prose = [
        re.sub("`[^`]*`", "", cell.source)
        for path in (pages.ROOT / "notebooks").glob("*.ipynb")
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
    ]
    return sorted({displayed or inline for text in prose for displayed, inline in MATH.findall(text)})


def read(markup):
    """The visible characters, without font variants, and the numbers of fractions, roots and scripts."""
    text = unicodedata.normalize("NFKD", unescape(re.sub("<[^>]+>", "", markup)))
    kinds = ("mfrac", "msqrt", "msub|munder|msubsup|munderover", "msup|mover|msubsup|munderover")
    parts = [len(re.findall(f"<(?:{kind})[ >]", markup)) for kind in kinds]
    return re.sub(r"\s|\u0304|\u0305|¯", "", text.translate(ALIKE)), parts


def different(written):
    """Formulas that the two convert differently, except those that latex2mathml leaves partly in TeX."""
    both = ((tex, formulas.formula(tex, display=True), convert(tex)) for tex in written)
    return [tex for tex, ours, theirs in both if "\\" not in theirs and read(ours) != read(theirs)]


def test_another_reader_of_tex_finds_the_same_symbols_and_parts(written):
    assert len(written) > 1000
    assert different(written) == []


@pytest.mark.parametrize(("token", "shown"), [("le", "≥"), ("mu", "v"), ("sum", "∏")])
def test_a_planted_wrong_symbol_is_seen(written, monkeypatch, token, shown):
    written = [tex for tex in written if f"\\{token}" in tex][:10]
    assert different(written) == []
    monkeypatch.setitem(formulas.SYMBOLS, token, (shown, formulas.SYMBOLS[token][1]))
    assert different(written)


# The TeXbook, page 170: thin (3/18 em), medium (4/18) and thick (5/18) spaces.
@pytest.mark.parametrize(
    ("tex", "spaces"),
    [
        ("a+b", ["4", "4"]),
        ("-a", []),
        ("a=-b", ["5", "5"]),
        ("(-a)", []),
        ("a,b", ["3"]),
        (r"2\log x", ["3", "3"]),
        (r"\log(x)", []),
        (r"\log\log x", ["3", "3"]),
        (r")\log x", ["3", "3"]),
        (r"a\le b", ["5", "5"]),
        (r"x_{a+b=c}", []),
        (r"x_{2\log a}", ["3", "3"]),
        (r"a\;b", ["5"]),
        (r"1{,}000", []),
    ],
)
def test_symbols_have_the_space_of_tex(tex, spaces):
    widths = re.findall(r'mspace width="([\d.]+)em"', formulas.formula(tex))
    assert [f"{18 * float(width):.0f}" for width in widths] == spaces


@pytest.mark.parametrize(
    "tex", [r"\foo x", "{a", "a}", r"\frac1", r"\begin{gather}a\end{gather}", r"\Bigl\foo"]
)
def test_what_cannot_be_set_is_an_error(tex):
    with pytest.raises((ValueError, KeyError)):
        formulas.formula(tex)


def test_a_long_formula_is_cut_where_a_line_may_end():
    assert formulas.formula(r"a=b\le(c=d)").count("<math>") == 3, "cut after a relation, not in parentheses"
    assert formulas.formula(r"a=b,\qquad c=d", display=True).count("<math ") == 2, "cut at a wide space"
    assert '<span class="tag">(1)</span>' in formulas.formula(r"a=b\tag{1}", display=True)
