"""Certificates: a race with few looks at 0/1 rewards is right with 1 − δ, computed for every truth.

A race is given by looks b_1 < … < b_T and boundaries c_t. At look t an arm with sum y *refutes* that one with
sum x is better by a shift s if y − x + s b_t > c_t times the standard deviation of y − x. It drops an arm
against which this holds with s = 0, ends the race if it holds with s = ε against all others, and wins at T by
the sign of y − x, ties by lot.

Let arm 1 be the best. The race fails only if some rival i errs: by a refutation of arm 1 with s = 0 at a look
before T or, if its gap is ε or more, with s = ε, or by the sign at T. That is less likely the larger the gap:
those of 0 and ε are the worst. Given arm 1's sums the rivals are independent, and the probability that one
does not err rises with each of the sums. Given the last one, the sums of a binomial walk are associated
(their law is log-supermodular; Fortuin, Kasteleyn and Ginibre, Commun. Math. Phys. 22, 1971). So with e_i(x)
the probability that rival i errs and arm 1 ends at x,

    P(some rival errs) ≤ Σ_x P(x) [1 − Π_i (1 − e_i(x)/P(x))].

By coupling this falls with arm 1's rate and rises with a rival's: for all rates of arm 1 in [p, p′] it is at
most what it is where arm 1 has p and the rivals p′ and p′ − ε. Such cells cover [0, 1].

All sums are of positive terms. What floating point may lose of them is added, and so is what is cut off.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ebr.arrays import FloatArray, IntArray

SMOOTHING = 3.0  # successes and failures that a pooled rate is given, against boundaries too low near 0 and 1
# Relative errors: of a binomial probability 5b/2⁵³ at most, of a sum b/2⁵³, at 2T steps of b ≤ 5,000 rewards.
ROUNDING = 1e-8
NEGLIGIBLE = 1e-4  # of δ: what the tails that are cut off may have
BAR = "{desc}: {percentage:3.0f}% |{bar}| {elapsed}"
NARROWEST = 1 / 4096  # of ε: a cell's width; where even this is not certified, nothing is


class Boundaries(NamedTuple):
    """What a race of 0/1 rewards decides by.

    Attributes
    ----------
    looks, boundaries
        b_1 … b_T and c_1 … c_{T−1}.
    epsilon
        ε, the shift that ends a race.
    pruning
        What the boundaries are multiplied with where an arm is dropped, s = 0.
    shifts
        Larger shifts, at which the race may be asked to end: a control's margin.
    """

    looks: tuple[int, ...]
    boundaries: tuple[float, ...]
    epsilon: float
    pruning: float = 1.0
    shifts: tuple[float, ...] = ()

    def dropped(self, look: int) -> IntArray:
        """The largest sum that each leader's drops."""
        return limits(self.looks[look], self.pruning * self.boundaries[look], 0.0)

    def refuted(self, look: int, shift: float) -> IntArray:
        """The largest sum that each sum refutes, before T, to be better by s or, which is enough, by less."""
        count, critical, table = self.looks[look], self.boundaries[look], self.dropped(look)
        for known in (self.epsilon, *self.shifts):
            if known <= shift:
                table = np.maximum(table, limits(count, critical, known))
        return table


class Cell(NamedTuple):
    """Rates of the best arm, from low to high, and how often the race fails there at most."""

    low: float
    high: float
    bound: float


@dataclass(frozen=True)
class Certificate:
    """Cells that cover all rates of the best arm, and what the race's failure has there at most."""

    delta: float
    cells: tuple[Cell, ...]

    @property
    def worst(self) -> Cell:
        """The cell with the largest bound."""
        return max(self.cells, key=lambda cell: cell.bound)

    @property
    def holds(self) -> bool:
        """Whether the cells follow each other from 0 to 1, each with a bound of δ at most."""
        joined = [this.high == after.low for this, after in pairwise((*self.cells, Cell(1.0, 1.0, 0.0)))]
        return self.cells[0].low == 0 and all(joined) and self.worst.bound <= self.delta

    def __str__(self) -> str:
        (low, high, bound), number = self.worst, f"{len(self.cells)} cells"
        said = f"certified: failures have probability {bound:.5f} at most, by {number} of the best arm's rate"
        return f"{'' if self.holds else 'not '}{said}, the worst from {low:.4g} to {high:.4g}"


@lru_cache(maxsize=1024)
def limits(count: int, critical: float, shift: float) -> IntArray:
    """The largest sum x that each sum y = 0 … b refutes to be better by s; −1 where there is none.

    y − x + s b > c √(b (2p(1−p) − s²/2)), the variance where the two rates are p ∓ s/2, their mean p from the
    data, smoothed. Where that would not rise with y it is made to.
    """
    own, low, high = np.arange(count + 1), np.full(count + 1, -1), np.full(count + 1, count + 1)
    while (high - low).max() > 1:  # low is refuted, high is not
        middle = (low + high) // 2
        rate = (own + middle + SMOOTHING) / (2 * count + 2 * SMOOTHING)
        rate = np.clip(rate, shift / 2, 1 - shift / 2)
        deviation = np.sqrt(count * (2 * rate * (1 - rate) - shift * shift / 2))
        refuted = own - middle + shift * count > critical * deviation
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.asarray(np.minimum.accumulate(low[::-1])[::-1])


@lru_cache(maxsize=256)
def binomial(count: int, rate: float) -> FloatArray:
    """The law of the sum of so many 0/1 rewards, from ratios of neighbours and from the mode on."""
    if rate <= 0 or rate >= 1:
        return np.asarray((np.arange(count + 1) == (count if rate >= 1 else 0)) * 1.0)
    mode, k = min(int((count + 1) * rate), count), np.arange(1, count + 1)
    ratios = (count - k + 1) / k * (rate / (1 - rate))
    below, above = np.cumprod(1 / ratios[:mode][::-1])[::-1], np.cumprod(ratios[mode:])
    law = np.concatenate([below, [1.0], above])
    return np.asarray(law / law.sum())


def _kept(law: FloatArray, cut: float) -> slice:
    """All of a law but its tails, each of which has at most what may be cut off."""
    first = min(int(np.searchsorted(law.cumsum(), cut, side="right")), len(law) - 1)
    last = len(law) - int(np.searchsorted(law[::-1].cumsum(), cut, side="right"))
    return slice(first, max(last, first + 1))


def _shifted(law: FloatArray, rows: int) -> FloatArray:
    """The matrix with a law in each of so many rows, each a place further to the right."""
    table = np.zeros((rows, rows + len(law)))
    table[:, : len(law)] = law
    return np.asarray(table.ravel()[:-rows].reshape(rows, -1))


def _errors(
    looks: tuple[int, ...], tables: list[IntArray], sign: bool, best: float, rival: float, cut: float
) -> FloatArray:
    """e(x) of a rival that errs by a refutation with one of the tables, before T, or by the sign there.

    `open_` is the law of the two sums on the paths without an error, from the sums (first, other) on. Paths
    of probability 8T cut at most are left out.
    """
    open_, first, other, erred, before = np.ones((1, 1)), 0, 0, np.zeros(1), 0
    for look, count in enumerate(looks):
        ours, theirs = binomial(count - before, best), binomial(count - before, rival)
        kept, their_kept = _kept(ours, cut), _kept(theirs, cut)
        moves, their_moves = _shifted(ours[kept], len(open_)), theirs[their_kept]
        erred, before = np.convolve(erred, ours), count
        first, other = first + kept.start, other + their_kept.start
        if look + 1 == len(looks):
            if sign:
                x = first + np.arange(moves.shape[1])
                above = _ahead(their_moves, x - (other + np.arange(open_.shape[1]))[:, None])
                erred[first : first + len(x)] += ((open_ @ above) * moves).sum(axis=0)
            break
        open_ = moves.T @ (open_ @ _shifted(their_moves, open_.shape[1]))
        x, y = (start + np.arange(size) for start, size in zip((first, other), open_.shape, strict=True))
        refuted = x[:, None] <= tables[look][y]
        erred[x] += (open_ * refuted).sum(axis=1)
        open_[refuted] = 0
        rows, columns = _kept(open_.sum(axis=1), cut), _kept(open_.sum(axis=0), cut)
        open_, first, other = open_[rows, columns], first + rows.start, other + columns.start
    return erred


def _ahead(law: FloatArray, behind: IntArray) -> FloatArray:
    """P(X > k) + ½ P(X = k): ties are by lot."""
    more = np.append(law[::-1].cumsum()[::-1], 0.0)
    half = (more[:-1] + more[1:]) / 2
    return np.where(behind < 0, more[0], np.append(half, 0.0)[np.clip(behind, 0, len(law))])


class Law:
    """The law of a rule's race of n arms with 0/1 rewards: what bounds its failures."""

    def __init__(self, rule: Boundaries, n_arms: int, delta: float) -> None:
        self.rule, self.n_arms, self.delta = rule, n_arms, delta
        # Eight tails a look and rival: of both steps and both sums.
        self.cut = NEGLIGIBLE * delta / (8 * n_arms * len(rule.looks))

    @cached_property
    def families(self) -> list[tuple[float, list[IntArray], bool]]:
        """The worst gaps of rivals, what they refute at each look before T, and whether the sign is wrong."""
        shifts, looks = (0.0, self.rule.epsilon, *self.rule.shifts), range(len(self.rule.boundaries))
        return [(shift, [self.rule.refuted(look, shift) for look in looks], shift > 0) for shift in shifts]

    def bound(self, low: float, high: float) -> float:
        """P(the race fails) at most, for every rate of the best arm from low to high.

        However many rivals are near, with gaps below ε, and how many are not.
        """
        law, unerring = binomial(self.rule.looks[-1], low), []
        for gap, tables, sign in self.families:
            if high >= gap:
                rate = min(math.nextafter(high - gap, 1.0), 1.0) if gap else high
                erred = _errors(self.rule.looks, tables, sign, low, rate, self.cut)
                one = np.divide(erred, law, out=np.zeros(len(law)), where=law > 0)
                unerring.append(np.log1p(-np.minimum(one, 1 - 2**-53)))
        rivals, near, far = self.n_arms - 1, unerring[0], np.min(unerring[1:] or unerring, axis=0)
        mixed = (law @ -np.expm1(many * near + (rivals - many) * far) for many in range(self.n_arms))
        return float(max(mixed) * (1 + ROUNDING) + NEGLIGIBLE * self.delta)

    def cells(self) -> Iterator[Cell]:
        """Cells from 0 on, as wide as their bounds allow, up to 1 or to where nothing is certified."""
        epsilon = self.rule.epsilon
        low, width, slope = 0.0, epsilon / 8, 6 / epsilon
        while low < 1:
            high = min(low + width, 1.0)
            bound = self.bound(low, high)
            failed = bound > self.delta
            if not failed or high - low < NARROWEST * epsilon:
                yield Cell(low, high, bound)
                if failed:
                    return
            # The bound grows about as e^{slope · width}: nearly as wide as that allows.
            width = high - low + 0.9 * math.log(self.delta / max(bound, 1e-300)) / slope
            width = min(max(width, (high - low) / 3), (0.8 if failed else 4) * (high - low))
            low = low if failed else high


def certificate(
    rule: Boundaries, n_arms: int, delta: float, rewards: str = "Bernoulli", sigma: float = 0.5
) -> Certificate:
    """Bound how often a race of n arms fails, for every truth.

    Of Gaussian rewards the rivals' means do not matter, but for their order (`ebr.theory.looks`): there is
    one cell. All rivals together are less likely to err than if each could by a refutation at π c_t, if π is
    below 1, and by the sign.
    """
    from tqdm import tqdm

    if rewards == "Gaussian":
        from ebr.theory.looks import crossed  # which takes as long to load as all else together

        lowest = [min(rule.pruning, 1.0) * critical for critical in rule.boundaries]
        sign = rule.epsilon * math.sqrt(rule.looks[-1] / 2) / sigma
        bound = crossed(rule.looks, [*lowest, sign], n_arms)
        return Certificate(delta, (Cell(0.0, 1.0, bound),))
    law, cells = Law(rule, n_arms, delta), []
    with tqdm(total=1.0, desc="certifying", leave=False, disable=None, bar_format=BAR) as bar:
        for cell in law.cells():
            cells.append(cell)
            bar.update(cell.high - cell.low)
    return Certificate(delta, tuple(cells))
