r"""A Sphinx extension: formulas become MathML when the site is built, so that no page waits for a script.

The part of TeX that the notebooks use is read here. Rows are spaced by TeX's rules (The TeXbook, chapter 18):
every symbol has a class, and a pair of classes has its space. An unknown command stops the build; the message
names the formula. A new symbol is a word in one of the tables.
"""

import re
import unicodedata
from html import escape
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

TOKEN = re.compile(
    r"\\(?P<font>text|mathrm|operatorname\*?)\s*\{(?P<words>[^{}]*)\}|\\(?:begin|end)\{\w+\}|\\[a-zA-Z]+|\\."
    r"|\S",
    re.DOTALL,
)
# Pairs: a TeX token without its backslash, and the character shown.
TABLES = {
    "ordinary": """
        alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ
        mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ
        Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω ell ℓ infty ∞ dots … ldots … cdots ⋯ square □
        emptyset ∅ exists ∃ forall ∀ partial ∂ prime ′ . . / / | | ? ? % % # #""",
    "binary": "+ + - − * ∗ cdot ⋅ times × pm ± mp ∓ cap ∩ cup ∪ wedge ∧ vee ∨ setminus ∖ circ ∘",
    "relation": """
        = = < < > > : : le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ approx ≈ sim ∼ equiv ≡ propto ∝ in ∈ notin ∉ ni ∋
        subset ⊂ subseteq ⊆ to → mapsto ↦ Rightarrow ⇒ iff ⟺ mid ∣ ll ≪ gg ≫ perp ⊥""",
    "open": "( ( [ [ { { lceil ⌈ lfloor ⌊ lvert | langle ⟨",
    "close": ") ) ] ] } } rceil ⌉ rfloor ⌋ rvert | rangle ⟩ ! !",
    "punctuation": ", , ; ; colon :",
    "operator": "sum ∑ prod ∏ int ∫",
}
SYMBOLS = {
    token: (shown, kind)
    for kind, table in TABLES.items()
    for token, shown in zip(table.split()[::2], table.split()[1::2], strict=True)
}
FUNCTIONS = {"log", "exp", "cosh", "sinh", "tanh", "sin", "cos", "ln", "det", "dim", "Pr"}
LIMITS = {"sum", "prod", "min", "max", "sup", "inf", "lim", "limsup", "liminf"}  # with limits below and above
ACCENTS = {"hat": "^", "tilde": "~", "bar": "¯", "overline": "¯", "dot": "˙"}
ALPHABETS = {"mathcal": "SCRIPT", "mathbf": "BOLD", "mathbb": "DOUBLE-STRUCK"}
SIZES = {"big": 1.2, "Big": 1.8, "bigg": 2.4, "Bigg": 3.0}
THIN, MEDIUM, THICK = 3 / 18, 4 / 18, 5 / 18
SPACES = {r"\,": THIN, r"\:": MEDIUM, r"\;": THICK, r"\ ": 1 / 4, r"\!": 0.0, r"\quad": 1.0, r"\qquad": 2.0}
SCRIPTS = ("_", "^", "'")
SIDES = {"cases": ("left", "left"), "aligned": ("right", "left"), "align": ("right", "left")}


class Symbol(NamedTuple):
    """A piece of MathML; its class; whether limits stand below and above it."""

    markup: str
    kind: str = "ordinary"
    limits: bool = False


def operator(shown: str, stretchy: bool = False, size: str = "") -> str:
    """An operator without space of its own; if stretchy, as high as its row or as the size says."""
    return f'<mo lspace="0" rspace="0" stretchy="{str(stretchy).lower()}" {size}>{escape(shown)}</mo>'


def space(width: float) -> str:
    """A space, in units of the size of letters."""
    return f'<mspace width="{width:.4g}em"/>' if width else ""


def gap(left: str, right: str) -> float:
    """The space between symbols of two classes."""
    if left == "punctuation":
        return THIN
    if "relation" in (left, right):
        return 0.0 if left in ("open", right) or right in ("close", "punctuation") else THICK
    if "binary" in (left, right):
        return MEDIUM
    beside = ("ordinary", "close") if right == "operator" else ("ordinary",)
    return THIN if "operator" in (left, right) and {left, right} <= {"operator", *beside} else 0.0


def spaced(row: list[Symbol], script: bool = False) -> list[Symbol]:
    """A row whose symbols have the space after them; in a script, operators alone have space."""
    places = [place for place, symbol in enumerate(row) if symbol.kind != "space"]
    made = list(row)
    before = "open"
    for place, following in zip(places, [*places[1:], None], strict=True):
        kind, after = row[place].kind, "close" if following is None else row[following].kind
        # A sign that joins no two things is no binary one: −x.
        joins = before in ("ordinary", "close") and after in ("ordinary", "open", "operator")
        kind = "ordinary" if kind == "binary" and not joins else kind
        if after == "binary" and kind not in ("ordinary", "close"):
            after = "ordinary"
        width = gap(kind, after) if following is not None else 0.0
        width = 0.0 if script and "operator" not in (kind, after) else width
        made[place] = Symbol(row[place].markup + space(width), kind)
        before = kind
    return made


def joined(row: list[Symbol], script: bool = False) -> str:
    """A row as one element."""
    return f"<mrow>{''.join(symbol.markup for symbol in spaced(row, script))}</mrow>"


class Reader:
    """Reads a formula from its first token to its last."""

    def __init__(self, tex: str) -> None:
        self.tokens = list(TOKEN.finditer(tex))[::-1]

    def next(self, many: int = 1) -> str:
        """The tokens that come next, or nothing at the end."""
        return "".join(token[0] for token in self.tokens[: -many - 1 : -1])

    def take(self) -> re.Match[str]:
        """Take the next token."""
        if not self.tokens:
            raise ValueError("the formula ends too early")
        return self.tokens.pop()

    def row(self, *ends: str) -> list[Symbol]:
        """The symbols before the first of these ends; the end stays."""
        made: list[Symbol] = []
        while self.next() not in (*ends, ""):
            if self.next() in SCRIPTS:
                made.append(self.scripts(made.pop() if made else Symbol("<mrow></mrow>")))
            else:
                made.append(self.number() or self.symbol())
        return made

    def number(self) -> Symbol | None:
        """The number that comes next, or nothing; after a command 12 is two arguments."""
        digits = ""
        while self.next().isdigit() or (digits and re.fullmatch(r"\.\d", self.next(2))):
            digits += self.take()[0]
        return Symbol(f"<mn>{digits}</mn>") if digits else None

    def argument(self, script: bool = False) -> str:
        """The group in braces that comes next, or the symbol, as one element."""
        if self.next() != "{":
            return self.symbol().markup
        self.take()
        row = self.row("}")
        self.take()
        return joined(row, script)

    def scripts(self, base: Symbol) -> Symbol:
        """A symbol with what stands below and above it."""
        below, above = "", ""
        while self.next() in SCRIPTS:
            match self.take()[0]:
                case "_":
                    below += self.argument(script=True)
                case "^":
                    above += self.argument(script=True)
                case _:
                    above += "<mo>′</mo>"
        names = ("munder", "mover", "munderover") if base.limits else ("msub", "msup", "msubsup")
        name = names[2 if below and above else 1 if above else 0]
        parts = [f"<mrow>{part}</mrow>" for part in (below, above) if part]
        # The empty element lets a high delimiter keep its size under an exponent.
        body = f"<mrow>{base.markup}<mi></mi></mrow>" if base.kind == "close" else base.markup
        return Symbol(f"<{name}>{body}{''.join(parts)}</{name}>", base.kind)

    def symbol(self) -> Symbol:
        """The symbol that comes next, without its scripts."""
        if self.next() == "{":
            return Symbol(self.argument())
        match = self.take()
        token, name = match[0], match[0].removeprefix("\\")
        if match["font"]:
            return words(match["font"], match["words"])
        if token.isdigit():
            return Symbol(f"<mn>{token}</mn>")
        if token.isalpha():
            return Symbol(f"<mi>{token}</mi>")
        if name == token and (token not in SYMBOLS or token in "{}"):
            raise ValueError(f"{token} is unexpected")
        return known(token) or self.command(token)

    def command(self, token: str) -> Symbol:
        """What a command makes of its arguments."""
        name = token.removeprefix("\\")
        if name in ("frac", "tfrac"):
            return Symbol(f"<mfrac>{self.argument()}{self.argument()}</mfrac>")
        if name == "binom":
            inside = f'<mfrac linethickness="0">{self.argument()}{self.argument()}</mfrac>'
            return Symbol(fenced("(", inside, ")"))
        if name == "sqrt":
            return Symbol(f"<msqrt>{self.argument()}</msqrt>")
        if name in ACCENTS:
            accent = operator(ACCENTS[name], name == "overline")
            return Symbol(f'<mover accent="true">{self.argument()}{accent}</mover>')
        if name in ALPHABETS:
            return Symbol(re.sub(r"(?<=>)\w(?=<)", lambda found: styled(name, found[0]), self.argument()))
        if name in ("textstyle", "displaystyle"):
            shown = str(name == "displaystyle").lower()
            return Symbol(f'<mstyle displaystyle="{shown}">{joined(self.row("}"))}</mstyle>')
        if name.rstrip("lrm") in SIZES:
            size = SIZES[name.rstrip("lrm")]
            kind = {"l": "open", "r": "close", "m": "relation"}.get(name[-1], "ordinary")
            return Symbol(operator(self.delimiter(), True, f'minsize="{size}em" maxsize="{size}em"'), kind)
        if name == "left":
            left, inside, _ = self.delimiter(), joined(self.row(r"\right")), self.take()
            return Symbol(fenced(left, inside, self.delimiter()))
        if name.startswith("begin{"):
            return Symbol(self.table(name[6:-1]))
        raise ValueError(f"site/formulas.py does not know {token}")

    def delimiter(self) -> str:
        """The character of the delimiter that comes next; a point stands for none."""
        token = self.take()[0].removeprefix("\\")
        return "" if token == "." else SYMBOLS[token][0]

    def table(self, name: str) -> str:
        """The rows and columns of an environment."""
        stops = ("&", r"\\", rf"\end{{{name}}}")
        rows: list[list[str]] = [[]]
        stop = ""
        while stop != stops[2]:
            side = SIDES[name][len(rows[-1]) % 2]
            rows[-1].append(f'<mtd style="text-align: {side}">{joined(self.row(*stops))}</mtd>')
            stop = self.take()[0]
            if stop == stops[1]:
                rows.append([])
        table = "".join(f"<mtr>{''.join(row)}</mtr>" for row in rows)
        if name == "cases":
            return fenced("{", f"<mtable>{table}</mtable>", "")
        return f'<mtable displaystyle="true">{table}</mtable>'


def fenced(left: str, inside: str, right: str) -> str:
    """Something between two delimiters that are as high as it is."""
    return f"<mrow>{operator(left, True)}{inside}{operator(right, True)}</mrow>"


def words(font: str, inside: str) -> Symbol:
    """A text, an upright name, or the name of a function."""
    if font == "text" and "$" in inside:
        raise ValueError(f"a formula inside text is not known here: {inside}")
    if font == "text":
        return Symbol(f"<mtext>{escape(inside).replace(' ', '&#160;')}</mtext>")
    name = f'<mi mathvariant="normal">{escape(inside.replace(chr(92) + ",", " "))}</mi>'
    return Symbol(name, "ordinary" if font == "mathrm" else "operator", font.endswith("*"))


def known(token: str) -> Symbol | None:
    """The symbol of that name in the tables, or nothing."""
    if token in SPACES:
        return Symbol(space(SPACES[token]), "space")
    name = token.removeprefix("\\")
    if name not in SYMBOLS and name not in FUNCTIONS | LIMITS:
        return None
    shown, kind = SYMBOLS.get(name, (name, "operator"))
    if kind == "ordinary":
        upright = ' mathvariant="normal"' if not shown.isalpha() or shown.isupper() else ""
        return Symbol(f"<mi{upright}>{escape(shown)}</mi>")
    if kind == "operator":
        limits = str(name in LIMITS).lower()  # movable: in a line of text they stand beside
        return Symbol(
            f'<mo lspace="0" rspace="0" movablelimits="{limits}">{shown}</mo>', kind, name in LIMITS
        )
    return Symbol(operator(shown), kind)


def styled(alphabet: str, letter: str) -> str:
    """A letter of another alphabet."""
    name = unicodedata.name(letter).removeprefix("LATIN ").replace("LETTER ", "")
    name = f"{ALPHABETS[alphabet]} {name}"
    for prefix in ("MATHEMATICAL ", ""):  # a few stand apart in Unicode
        try:
            return unicodedata.lookup(prefix + name)
        except KeyError:
            continue
    raise ValueError(f"there is no {letter} in {alphabet}")


def lines(row: list[Symbol], display: bool) -> list[str]:
    """The pieces between which a line may end: at wide spaces if displayed, else after relations."""
    pieces, depth = [""], 0
    for symbol in spaced(row):
        depth += {"open": 1, "close": -1}.get(symbol.kind, 0)
        wide = display and symbol.kind == "space" and symbol.markup in map(space, (1.0, 2.0))
        pieces[-1] += "" if wide else symbol.markup
        if wide or (not display and depth == 0 and symbol.kind in ("relation", "punctuation")):
            pieces.append("")
    return [piece for piece in pieces if piece]


def formula(tex: str, display: bool = False) -> str:
    """A formula in HTML."""
    tag = re.search(r"\\tag\{([^}]*)\}", tex)
    reader = Reader(tex.replace(tag[0], "") if tag else tex)
    row = reader.row()
    if reader.next():
        raise ValueError(f"{reader.next()} is unexpected")
    block = ' display="block"' if display else ""
    made = "".join(f"<math{block}><mrow>{piece}</mrow></math>" for piece in lines(row, display))
    number = f'<span class="tag">({tag[1]})</span>' if tag else ""
    return f'<div class="math">{made}{number}</div>' if display else f'<span class="math">{made}</span>'


def visit(page: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula; what cannot be read is a warning, which stops the build."""
    tex = node.astext()
    try:
        page.body.append(formula(tex, isinstance(node, nodes.math_block)))
    except (ValueError, KeyError) as error:
        logging.getLogger(__name__).warning("%s: %s", tex, error, location=node)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx."""
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
