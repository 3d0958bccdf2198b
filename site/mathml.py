"""Symbols of formulas as MathML, and the space between them.

Spaces follow TeX's rules (The TeXbook, chapter 18): each symbol has a class, and each pair of classes has a
width. To add a symbol, add a pair to one of the tables.
"""

import unicodedata
from html import escape
from typing import NamedTuple

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
FUNCTIONS = {"log", "exp", "cosh", "sinh", "tanh", "sin", "cos", "ln", "det", "dim", "Pr"}
LIMITS = {"sum", "prod", "min", "max", "sup", "inf", "lim", "limsup", "liminf"}  # take limits below and above
ACCENTS = {"hat": "^", "tilde": "~", "bar": "¯", "overline": "¯", "dot": "˙"}
ALPHABETS = {"mathcal": "SCRIPT", "mathbf": "BOLD", "mathbb": "DOUBLE-STRUCK"}
THIN, MEDIUM, THICK = 3 / 18, 4 / 18, 5 / 18
SPACES = {r"\,": THIN, r"\:": MEDIUM, r"\;": THICK, r"\ ": 1 / 4, r"\!": 0.0, r"\quad": 1.0, r"\qquad": 2.0}


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
        width = gap(kind, after) if following is not None else 0.0
        width = 0.0 if script and "operator" not in (kind, after) else width
        made[place] = Symbol(row[place].markup + space(width), kind)
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
    if font == "text" and "$" in inside:
        raise ValueError(f"a formula inside text is not known here: {inside}")
    if font == "text":
        return Symbol(f"<mtext>{escape(inside).replace(' ', '&#160;')}</mtext>")
    name = f'<mi mathvariant="normal">{escape(inside.replace(chr(92) + ",", " "))}</mi>'
    return Symbol(name, "ordinary" if font == "mathrm" else "operator", font.endswith("*"))


def known(token: str) -> Symbol | None:
    """The symbol that the tables have for a token, or None."""
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
        limits = str(name in LIMITS).lower()  # in a line of text limits become scripts
        return Symbol(
            f'<mo lspace="0" rspace="0" movablelimits="{limits}">{shown}</mo>', kind, name in LIMITS
        )
    return Symbol(operator(shown), kind)


def styled(alphabet: str, letter: str) -> str:
    """The letter in another alphabet."""
    name = unicodedata.name(letter).removeprefix("LATIN ").replace("LETTER ", "")
    name = f"{ALPHABETS[alphabet]} {name}"
    for prefix in ("MATHEMATICAL ", ""):  # some letters lack the prefix in Unicode
        try:
            return unicodedata.lookup(prefix + name)
        except KeyError:
            continue
    raise ValueError(f"there is no {letter} in {alphabet}")
