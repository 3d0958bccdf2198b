"""A Sphinx extension that converts formulas to MathML when the site is built. Pages need no script for them.

It reads the part of TeX that the notebooks use. An unknown command stops the build; the message names the
formula.
"""

import re

from docutils import nodes
from mathml import (
    ACCENTS,
    ALPHABETS,
    SYMBOLS,
    Symbol,
    fenced,
    joined,
    known,
    operator,
    space,
    spaced,
    styled,
    words,
)
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

TOKEN = re.compile(
    r"\\(?P<font>text|mathrm|operatorname\*?)\s*\{(?P<words>[^{}]*)\}|\\(?:begin|end)\{\w+\}|\\[a-zA-Z]+|\\."
    r"|\S",
    re.DOTALL,
)
SCRIPTS = ("_", "^", "'")
SIDES = {"cases": ("left", "left"), "aligned": ("right", "left"), "align": ("right", "left")}
SIZES = {"big": 1.2, "Big": 1.8, "bigg": 2.4, "Bigg": 3.0}


class Reader:
    """Reads a formula token by token."""

    def __init__(self, tex: str) -> None:
        self.tokens = list(TOKEN.finditer(tex))[::-1]

    def next(self, many: int = 1) -> str:
        """The next tokens, without taking them; an empty string at the end."""
        return "".join(token[0] for token in self.tokens[: -many - 1 : -1])

    def take(self) -> re.Match[str]:
        """Take the next token and return it."""
        if not self.tokens:
            raise ValueError("the formula ends too early")
        return self.tokens.pop()

    def row(self, *ends: str) -> list[Symbol]:
        """The symbols up to the first of these tokens, which is not taken."""
        made: list[Symbol] = []
        while self.next() not in (*ends, ""):
            if self.next() in SCRIPTS:
                made.append(self.scripts(made.pop() if made else Symbol("<mrow></mrow>")))
            else:
                made.append(self.number() or self.symbol())
        return made

    def number(self) -> Symbol | None:
        r"""The next number, or None. Arguments are read without it: in \frac12 each digit is one."""
        digits = ""
        while self.next().isdigit() or (digits and re.fullmatch(r"\.\d", self.next(2))):
            digits += self.take()[0]
        return Symbol(f"<mn>{digits}</mn>") if digits else None

    def argument(self, script: bool = False) -> str:
        """The next group in braces, or the next symbol, as one element."""
        if self.next() != "{":
            return self.symbol().markup
        self.take()
        row = self.row("}")
        self.take()
        return joined(row, script)

    def scripts(self, base: Symbol) -> Symbol:
        """A symbol with its subscript and superscript."""
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
        # Without the empty element a browser shrinks a large delimiter that has an exponent.
        body = f"<mrow>{base.markup}<mi></mi></mrow>" if base.kind == "close" else base.markup
        return Symbol(f"<{name}>{body}{''.join(parts)}</{name}>", base.kind)

    def symbol(self) -> Symbol:
        """The next symbol, without its scripts."""
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
        """A command with its arguments."""
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
        """The character of the next delimiter; a point means none."""
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
