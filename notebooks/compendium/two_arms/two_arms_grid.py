"""The grid of τ and z on which `two_arms_policies` looks at two arms, and what a step on it does.

τ, X, z and r are as explained there: X ~ N(rτ, τ), z = |X|/√τ. All is weighed against r = 0, where z is
half-normal.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from compendium.shared.looks import quadrature
from ebr.arrays import FloatArray

REACH = 4.8  # of z: beyond, policies stop
CELLS = 80  # of z below it
STEP = 1.08  # from one τ of the grid to the next
HIGHEST = 3.0  # of the grid of τ, times z_δ²
# The lowest τ by T, times ε^{2−2/T}; at T = 2, where a prior has few gaps, early looks may tell them apart.
LOWEST = {2: 0.02, 3: 0.3, 4: 0.3}


@dataclass(frozen=True, eq=False)
class Grid:
    """Where looks may be: each τ, nodes and weights of z in its cells, and what a step does."""

    step: float
    unit: float
    information: FloatArray
    cells: int
    inside: int

    @property
    def nodes(self) -> FloatArray:
        """The places of z."""
        return _nodes(self.cells, self.inside)[0]

    @property
    def weights(self) -> FloatArray:
        """The widths that they stand for."""
        return _nodes(self.cells, self.inside)[1]

    def move(self, lag: int) -> FloatArray:
        """[z, z′]: the density of z′ given z, `lag` steps on, times the weight of z′."""
        return _move(self.cells, self.inside, self.step, lag)

    def errors(self, place: int, reach: float = 0.0) -> FloatArray:
        """[lag − 1, z]: `wrong` for a look at the τ of this place and another `lag` steps later."""
        if (place, reach) not in self._errors:
            here, later = float(self.information[place]), self.information[place + 1 :, None]
            self._errors[place, reach] = wrong(here, self.nodes, later, reach)
        return self._errors[place, reach]

    @cached_property
    def _errors(self) -> dict[tuple[int, float], FloatArray]:
        """Kept once computed: a bound needs few of them, a search all of them many times."""
        return {}

    def start(self) -> FloatArray:
        """The law of z at r = 0, on the nodes."""
        return np.asarray(2 * np.exp(-(self.nodes**2) / 2) / math.sqrt(2 * math.pi) * self.weights)

    def risks(self) -> FloatArray:
        """½ e^{−τ/2−√τ z}, the error on stopping, for each τ and z, as a density against r = 0."""
        lead = np.sqrt(self.information)[:, None] * self.nodes
        return np.asarray(0.5 * np.exp(-self.information[:, None] / 2 - lead))

    def tilts(self, gaps: FloatArray) -> FloatArray:
        """The likelihood ratios at all τ and z, gaps × τ × z."""
        return likelihood(gaps[:, None, None], self.information[:, None], self.nodes)

    def first_looks(self, times: float) -> int:
        """How many τ are at most so many times the unit, ε^{2−2/T}."""
        return int(np.count_nonzero(self.information <= times * self.unit))


def weight(gaps: FloatArray) -> FloatArray:
    """w(r) = 2/(ε² H): 1 where r < 1, else (1 + r)²."""
    return np.asarray(np.where(gaps < 1, 1.0, (1 + gaps) ** 2))


def likelihood(gaps: FloatArray, information: FloatArray | float, nodes: FloatArray) -> FloatArray:
    """e^{−r²τ/2} cosh(r√τ z), the likelihood ratio of ±r, either with ½, against 0."""
    quiet, lead = -(gaps**2) * information / 2, gaps * np.sqrt(information) * nodes
    return np.asarray((np.exp(quiet + lead) + np.exp(quiet - lead)) / 2)


def wrong(
    here: FloatArray | float, nodes: FloatArray, there: FloatArray | float, reach: float = 0.0
) -> FloatArray:
    """P(the worse arm leads at τ′, and z′ > reach) after a look at τ and z, as a density against r = 0.

    ½e^{−τ/2} (e^{−x} Φ(−(b − x + h)/√h) + e^{x} Φ(−(b + x + h)/√h)), x = √τ z, h = τ′ − τ, b = reach √τ′.
    """
    lead, more = np.sqrt(here) * nodes, there - here
    bar, spread = reach * np.sqrt(there) + more, np.sqrt(more)
    both = np.exp(-lead) * ndtr((lead - bar) / spread) + np.exp(lead) * ndtr(-(lead + bar) / spread)
    return np.asarray(0.5 * np.exp(-here / 2) * both)


def gap_grid(epsilon: float) -> FloatArray:
    """0, and gaps from ε to 1 in units of ε, in equal steps of their logarithms."""
    return np.append(0.0, np.geomspace(1, 1 / epsilon, math.ceil(-math.log(epsilon) / 0.08) + 1))


@lru_cache(2)
def make_grid(
    deadline: int,
    epsilon: float,
    delta: float,
    step: float = STEP,
    cells: int = CELLS,
    inside: int = 1,
    lowest: float | None = None,
) -> Grid:
    """A grid of τ from below a good first look to beyond the longest race; `inside` nodes in each cell."""
    lowest = lowest or LOWEST[deadline]
    unit, highest = epsilon ** (2 - 2 / deadline), HIGHEST * float(ndtri(delta)) ** 2
    size = math.ceil(math.log(highest / (lowest * unit)) / math.log(step)) + 1
    return Grid(step, unit, highest * step ** -np.arange(size, dtype=float)[::-1], cells, inside)


@lru_cache(4)
def _nodes(cells: int, inside: int) -> tuple[FloatArray, FloatArray]:
    return quadrature(np.linspace(0, REACH, cells + 1), inside)


@lru_cache(2048)
def _move(cells: int, inside: int, step: float, lag: int) -> FloatArray:
    """z′ = |√ρ z + √(1−ρ) Z| with ρ = τ/τ′ and Z normal: it depends on the number of steps alone."""
    nodes, weights = _nodes(cells, inside)
    kept, spread = step ** (-lag / 2), math.sqrt(1 - step**-lag)
    ahead, behind = (
        np.exp(-(((nodes + sign * kept * nodes[:, None]) / spread) ** 2) / 2) for sign in (-1, 1)
    )
    return np.asarray((ahead + behind) * weights / (spread * math.sqrt(2 * math.pi)))
