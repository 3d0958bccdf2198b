"""A Sphinx extension that converts formulas to MathML when the site is built. Pages need no script for them.

It reads the part of TeX that the notebooks use. An unknown command stops the build; the message names the
formula. Spaces follow TeX's rules (The TeXbook, chapter 18): each symbol has a class, and each pair of
classes has a width. To add a symbol, add a pair to one of the tables.
"""

import re
import unicodedata
from html import escape
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

# Pairs of a TeX token, without its backslash, and the character to show.
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
LIMITS = {"sum", "prod", "min", "max", "sup", "inf", "lim", "limsup", "liminf"}  # take limits below and above
FUNCTIONS = {"log", "exp", "cosh", "sinh", "tanh", "sin", "cos", "ln", "det", "dim", "Pr", *LIMITS}
SYMBOLS = {name: (name, "operator") for name in FUNCTIONS} | SYMBOLS
ACCENTS = {"hat": "^", "tilde": "~", "bar": "¯", "overline": "¯", "dot": "˙"}
ALPHABETS = {"mathcal": "SCRIPT", "mathbf": "BOLD", "mathbb": "DOUBLE-STRUCK"}
SIZES = {"big": 1.2, "Big": 1.8, "bigg": 2.4, "Bigg": 3.0}
SIDES = {"cases": ("left", "left"), "aligned": ("right", "left"), "align": ("right", "left")}
THIN, MEDIUM, THICK = 3 / 18, 4 / 18, 5 / 18
SPACES = {",": THIN, ":": MEDIUM, ";": THICK, " ": 1 / 4, "!": 0.0, "quad": 1.0, "qquad": 2.0}
WORDS = re.compile(r"\\(text|mathrm|operatorname\*?)\s*\{([^{}]*)\}")
TOKEN = re.compile(rf"{WORDS.pattern}|\\(?:begin|end)\{{\w+\}}|\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\S", re.DOTALL)


class Symbol(NamedTuple):
    """MathML markup, the class of the symbol, and whether its scripts are limits below and above it."""

    markup: str
    kind: str = "ordinary"
    limits: bool = False


def operator(shown: str, stretchy: bool = False, size: str = "") -> str:
    """An operator without space around it. A stretchy one has the height of its row, or the given size."""
    return f'<mo lspace="0" rspace="0" stretchy="{str(stretchy).lower()}" {size}>{escape(shown)}</mo>'


def space(width: float) -> str:
    """A space of this width in em."""
    return f'<mspace width="{width:.4g}em"/>' if width else ""


def gap(left: str, right: str) -> float:
    """The width of the space between symbols of two classes, in em."""
    if left == "punctuation":
        return THIN
    if "relation" in (left, right):
        return 0.0 if left in ("open", right) or right in ("close", "punctuation") else THICK
    if "binary" in (left, right):
        return MEDIUM
    beside = ("ordinary", "close") if right == "operator" else ("ordinary",)
    return THIN if "operator" in (left, right) and {left, right} <= {"operator", *beside} else 0.0


def spaced(row: list[Symbol], script: bool = False) -> list[Symbol]:
    """The row with a space appended to each symbol. In scripts only operators have space around them."""
    places = [place for place, symbol in enumerate(row) if symbol.kind != "space"]
    made = list(row)
    before = "open"
    for place, following in zip(places, [*places[1:], None], strict=True):
        kind, after = row[place].kind, "close" if following is None else row[following].kind
        # A sign without two operands is not binary: −x.
        joins = before in ("ordinary", "close") and after in ("ordinary", "open", "operator")
        kind = "ordinary" if kind == "binary" and not joins else kind
        if after == "binary" and kind not in ("ordinary", "close"):
            after = "ordinary"
        none = following is None or (script and "operator" not in (kind, after))
        made[place] = Symbol(row[place].markup + space(0.0 if none else gap(kind, after)), kind)
        before = kind
    return made


def joined(row: list[Symbol], script: bool = False) -> str:
    """The row as one element."""
    return f"<mrow>{''.join(symbol.markup for symbol in spaced(row, script))}</mrow>"


def fenced(left: str, inside: str, right: str) -> str:
    """An element between two delimiters of its height."""
    return f"<mrow>{operator(left, True)}{inside}{operator(right, True)}</mrow>"


def words(font: str, inside: str) -> Symbol:
    """Text, an upright name, or a function's name."""
    if font == "text":
        return Symbol(f"<mtext>{escape(inside).replace(' ', '&#160;')}</mtext>")
    name = f'<mi mathvariant="normal">{escape(inside.replace(chr(92) + ",", " "))}</mi>'
    return Symbol(name, "ordinary" if font == "mathrm" else "operator", font.endswith("*"))


def known(name: str) -> Symbol:
    """The symbol that the tables have."""
    shown, kind = SYMBOLS[name]
    if kind == "ordinary":
        upright = ' mathvariant="normal"' if not shown.isalpha() or shown.isupper() else ""
        return Symbol(f"<mi{upright}>{escape(shown)}</mi>")
    if kind != "operator":
        return Symbol(operator(shown), kind)
    limits = name in LIMITS  # in a line of text they become scripts
    movable = f'movablelimits="{str(limits).lower()}"'
    return Symbol(f'<mo lspace="0" rspace="0" {movable}>{shown}</mo>', kind, limits)


def styled(alphabet: str, letter: str) -> str:
    """The letter in another alphabet; some of them lack a prefix in Unicode."""
    plain = unicodedata.name(letter).removeprefix("LATIN ").replace("LETTER ", "")
    name = f"{ALPHABETS[alphabet]} {plain}"
    try:
        return unicodedata.lookup(f"MATHEMATICAL {name}")
    except KeyError:
        return unicodedata.lookup(name)


class Reader:
    """Reads a formula token by token."""

    def __init__(self, tex: str) -> None:
        self.tokens = [token[0] for token in TOKEN.finditer(tex)][::-1]

    def next(self) -> str:
        """The next token, without taking it; an empty string at the end."""
        return self.tokens[-1] if self.tokens else ""

    def take(self) -> str:
        """Take the next token and return it."""
        if not self.tokens:
            raise ValueError("the formula ends too early")
        return self.tokens.pop()

    def row(self, *ends: str) -> list[Symbol]:
        """The symbols up to the first of these tokens, which is not taken."""
        made: list[Symbol] = []
        while self.next() not in (*ends, ""):
            if self.next() in ("_", "^", "'"):
                made.append(self.scripts(made.pop() if made else Symbol("<mrow></mrow>")))
            else:
                made.append(self.symbol())
        return made

    def argument(self, script: bool = False) -> str:
        r"""The next group in braces, or the next symbol, as one element; in \frac12 each digit is one."""
        token = self.next()
        if token[:1].isdigit():
            self.tokens[-1:] = [token[1:], token[0]] if len(token) > 1 else [token]
        if token != "{":
            return self.symbol().markup
        self.take()
        row = self.row("}")
        self.take()
        return joined(row, script)

    def scripts(self, base: Symbol) -> Symbol:
        """A symbol with its subscript and superscript."""
        below, above = "", ""
        while self.next() in ("_", "^", "'"):
            match self.take():
                case "_":
                    below += self.argument(script=True)
                case "^":
                    above += self.argument(script=True)
                case _:
                    above += "<mo>′</mo>"
        names = ("munder", "mover", "munderover") if base.limits else ("msub", "msup", "msubsup")
        name = names[2 if below and above else 1 if above else 0]
        parts = [f"<mrow>{part}</mrow>" for part in (below, above) if part]
        # Without the empty element a browser shrinks a large delimiter that has an exponent.
        body = f"<mrow>{base.markup}<mi></mi></mrow>" if base.kind == "close" else base.markup
        return Symbol(f"<{name}>{body}{''.join(parts)}</{name}>", base.kind)

    def symbol(self) -> Symbol:
        """The next symbol, without its scripts."""
        if self.next() == "{":
            return Symbol(self.argument())
        token = self.take()
        name = token.removeprefix("\\")
        if found := WORDS.fullmatch(token):
            return words(*found.groups())
        if token[0].isalnum():
            return Symbol(f"<mn>{token}</mn>" if token[0].isdigit() else f"<mi>{token}</mi>")
        if name != token and name in SPACES:
            return Symbol(space(SPACES[name]), "space")
        if name in SYMBOLS and token not in "{}":
            return known(name)
        return self.command(token)

    def command(self, token: str) -> Symbol:
        """A command with its arguments."""
        name = token.removeprefix("\\")
        if name in ("frac", "tfrac"):
            return Symbol(f"<mfrac>{self.argument()}{self.argument()}</mfrac>")
        if name == "binom":
            pair = self.argument() + self.argument()
            return Symbol(fenced("(", f'<mfrac linethickness="0">{pair}</mfrac>', ")"))
        if name == "sqrt":
            return Symbol(f"<msqrt>{self.argument()}</msqrt>")
        if name in ACCENTS:
            accent = operator(ACCENTS[name], name == "overline")
            return Symbol(f'<mover accent="true">{self.argument()}{accent}</mover>')
        if name in ALPHABETS:
            return Symbol(re.sub(r"(?<=>)\w(?=<)", lambda found: styled(name, found[0]), self.argument()))
        if name == "textstyle":
            return Symbol(f'<mstyle displaystyle="false">{joined(self.row("}"))}</mstyle>')
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
        """The character of the next delimiter; a point means none."""
        token = self.take().removeprefix("\\")
        return "" if token == "." else SYMBOLS[token][0]

    def table(self, name: str) -> str:
        """The rows and columns of an environment."""
        stops = ("&", r"\\", rf"\end{{{name}}}")
        rows: list[list[str]] = [[]]
        stop = ""
        while stop != stops[2]:
            side = SIDES[name][len(rows[-1]) % 2]
            rows[-1].append(f'<mtd style="text-align: {side}">{joined(self.row(*stops))}</mtd>')
            stop = self.take()
            if stop == stops[1]:
                rows.append([])
        table = "".join(f"<mtr>{''.join(row)}</mtr>" for row in rows)
        if name == "cases":
            return fenced("{", f"<mtable>{table}</mtable>", "")
        return f'<mtable displaystyle="true">{table}</mtable>'


def lines(row: list[Symbol], display: bool) -> list[str]:
    """The formula cut where a line may break: at wide spaces if displayed, else after relations."""
    pieces, depth = [""], 0
    for symbol in spaced(row):
        depth += {"open": 1, "close": -1}.get(symbol.kind, 0)
        wide = display and symbol.kind == "space" and symbol.markup in map(space, (1.0, 2.0))
        pieces[-1] += "" if wide else symbol.markup
        if wide or (not display and depth == 0 and symbol.kind in ("relation", "punctuation")):
            pieces.append("")
    return [piece for piece in pieces if piece]


def formula(tex: str, display: bool = False) -> str:
    """A formula as HTML."""
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
    """Write a formula. One that cannot be read gives a warning, which stops the build."""
    tex = node.astext()
    try:
        page.body.append(formula(tex, isinstance(node, nodes.math_block)))
    except (ValueError, KeyError) as error:
        logging.getLogger(__name__).warning("%s: %s", tex, error, location=node)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
