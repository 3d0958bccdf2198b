"""Symbols of formulas in MathML, and the space between them.

Rows are spaced by TeX's rules (The TeXbook, chapter 18): every symbol has a class, and a pair of classes has
its space. A new symbol is a word in one of the tables.
"""

import unicodedata
from html import escape
from typing import NamedTuple

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
THIN, MEDIUM, THICK = 3 / 18, 4 / 18, 5 / 18
SPACES = {r"\,": THIN, r"\:": MEDIUM, r"\;": THICK, r"\ ": 1 / 4, r"\!": 0.0, r"\quad": 1.0, r"\qquad": 2.0}


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
