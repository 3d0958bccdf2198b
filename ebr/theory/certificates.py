"""Certificates: an upper bound, computed for every truth, on how often a race with fixed looks fails.

At look t an arm with sum y *refutes* that an arm with sum x is better by a shift s if y − x + s b_t exceeds
c_t standard deviations of y − x. A leader drops the arms that it refutes with s = 0. It wins if it refutes
all others with s = ε, or has the largest sum at T; ties are broken by lot.

Let arm 1 be the best. The race fails only if some rival errs. A rival errs if it refutes arm 1 with s = 0
before T. A rival that is worse by ε or more also errs if it refutes arm 1 with s = ε before T, or is ahead of
it at T. Errors are less likely the larger the gap, so gaps of 0 and ε are the worst. Given arm 1's sums the
rivals are independent, and each is less likely to err the larger these sums are. Given the last one, the sums
are associated, because their increments are log-concave (Fortuin, Kasteleyn and Ginibre, Commun. Math. Phys.
22, 1971). So with e_i(x) the probability that rival i errs and arm 1 ends at x, or in a cell x,

    P(some rival errs) ≤ Σ_x P(x) [1 − Π_i (1 − e_i(x)/P(x))].

*0/1 rewards.* The law of two sums is computed on their lattice. By coupling the bound falls with arm 1's rate
and rises with a rival's. So for all rates of arm 1 in [p, p′] it is at most the bound with rate p for arm 1
and rates p′ and p′ − ε for the rivals. Such cells cover [0, 1].

*Gaussian rewards.* Errors depend on the noise of y − x alone, a random walk. Rounding its increments up to a
grid makes errors more likely, so the bound on the grid is one for the race. One cell covers all means.

Bounds are sums of positive terms. What rounding and the tails that are cut off may lose is added.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from ebr.arrays import FloatArray, IntArray

SMOOTHING, TAPER = 2.0, 0.4  # added to a pair's successes and failures; the power of 4p̄(1−p̄) in boundaries
# Relative errors: of a binomial probability 5b/2⁵³ at most, of a sum b/2⁵³, at 2T steps of b ≤ 5,000 rewards.
ROUNDING = 1e-8
NEGLIGIBLE = 1e-4  # share of δ that tails which are cut off may have
TRANSFORMED = 1e-10  # more than Fourier transforms lose of a law on a grid, for each rival
NARROWEST = 1 / 4096  # of ε: the least width of a cell; where it is not certified, nothing is
LOWEST, HIGHEST, GRID = -6.0, 7.0, 2**16  # of a Gaussian difference, in standard deviations at T; points
EDGES = np.array([-np.inf, *np.arange(-6.0, 6.01, 0.25), np.inf])  # of cells for arm 1's last sum


class Cell(NamedTuple):
    """An interval of the best arm's rate, and a bound on how often the race fails there."""

    low: float
    high: float
    bound: float


@dataclass(frozen=True)
class Certificate:
    """Cells that cover all rates of the best arm, each with a bound on the race's failures."""

    delta: float
    cells: tuple[Cell, ...]

    @property
    def worst(self) -> Cell:
        """The cell with the largest bound."""
        return max(self.cells, key=lambda cell: cell.bound)

    @property
    def holds(self) -> bool:
        """Whether the cells follow each other from 0 to 1, each with a bound of δ at most."""
        lows, highs = [cell.low for cell in self.cells], [cell.high for cell in self.cells]
        return [*lows, 1.0] == [0.0, *highs] and self.worst.bound <= self.delta

    def __str__(self) -> str:
        (low, high, bound), number = self.worst, f"{len(self.cells)} cells"
        said = f"certified: failures have probability {bound:.5f} at most, by {number} of the best arm's rate"
        return f"{'' if self.holds else 'not '}{said}, the worst from {low:.4g} to {high:.4g}"


@lru_cache(maxsize=1024)
def limits(count: int, critical: float, floor: float, shift: float) -> IntArray:
    """The largest sum x that each sum y = 0 … b refutes to be better by s; −1 where there is none.

    y − x + s b > c √(b (2p̄(1−p̄) − s²/2)): the root has the variance where the rates are p̄ ∓ s/2, with p̄ the
    smoothed mean of the two. The boundary c is c_t (4p̄(1−p̄))^0.4, but at least the floor or c_t, the smaller
    of the two. Where the limit would not rise with y it is lowered until it does.
    """
    own, low, high = np.arange(count + 1), np.full(count + 1, -1), np.full(count + 1, count + 1)
    while (high - low).max() > 1:  # low is refuted, high is not
        middle = (low + high) // 2
        rate = (own + middle + SMOOTHING) / (2 * count + 2 * SMOOTHING)
        rate = np.clip(rate, shift / 2, 1 - shift / 2)
        boundary = np.maximum(critical * (4 * rate * (1 - rate)) ** TAPER, min(floor, critical))
        deviation = np.sqrt(count * (2 * rate * (1 - rate) - shift * shift / 2))
        refuted = own - middle + shift * count > boundary * deviation
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.asarray(np.minimum.accumulate(low[::-1])[::-1])


@lru_cache(maxsize=256)
def binomial(count: int, rate: float) -> FloatArray:
    """The law of the sum of so many 0/1 rewards, by ratios of neighbours, from the mode outwards."""
    if rate <= 0 or rate >= 1:
        return np.asarray((np.arange(count + 1) == (count if rate >= 1 else 0)) * 1.0)
    mode, k = min(int((count + 1) * rate), count), np.arange(1, count + 1)
    ratios = (count - k + 1) / k * (rate / (1 - rate))
    below, above = np.cumprod(1 / ratios[:mode][::-1])[::-1], np.cumprod(ratios[mode:])
    law = np.concatenate([below, [1.0], above])
    return np.asarray(law / law.sum())


def _kept(law: FloatArray, cut: float) -> slice:
    """All of a law but its two tails, each with a mass of `cut` at most."""
    first = min(int(law.cumsum().searchsorted(cut, "right")), len(law) - 1)
    last = len(law) - int(law[::-1].cumsum().searchsorted(cut, "right"))
    return slice(first, max(last, first + 1))


def _shifted(law: FloatArray, rows: int) -> FloatArray:
    """A matrix with the law in each row, one place further to the right from row to row."""
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
        wrong = open_ * (x[:, None] <= tables[look][y])
        erred[x] += wrong.sum(axis=1)
        open_ -= wrong
        rows, columns = _kept(open_.sum(axis=1), cut), _kept(open_.sum(axis=0), cut)
        open_, first, other = open_[rows, columns], first + rows.start, other + columns.start
    return erred


def _ahead(law: FloatArray, behind: IntArray) -> FloatArray:
    """P(X > k) + ½ P(X = k): ties are by lot."""
    more = np.append(law[::-1].cumsum()[::-1], 0.0)
    half = (more[:-1] + more[1:]) / 2
    return np.where(behind < 0, more[0], np.append(half, 0.0)[np.clip(behind, 0, len(law))])


def _normal_errors(times: FloatArray, highest: Sequence[float], points: int, up: float) -> FloatArray:
    """Errors e by cells of arm 1's last sum, of a rival that errs where W exceeds a level at some look.

    W is the noise of the difference, a Brownian motion at times b_t/b_T. Each increment is rounded up to the
    grid, and what falls below the grid is raised to its lowest point. Arm 1's noise at T, in standard
    deviations, is N(−W/√2, ½) given W; W itself may be smaller than on the grid by T + 1 steps.
    """
    from scipy.fft import irfft, next_fast_len, rfft

    # What lies above the grid, less than 10⁻¹¹, is kept at its highest point.
    step, size = (HIGHEST - LOWEST) / points, next_fast_len(3 * points + 1, real=True)
    places = LOWEST + step * np.arange(points + 1)
    laws = np.zeros((2, points + 1))  # of paths without an error, and with one
    laws[0, math.ceil(-LOWEST / step)] = 1.0
    for spread, level in zip(np.sqrt(np.diff(times, prepend=0.0)), highest, strict=True):
        offsets = (np.arange(-points - 1, points + 1) + 1 - up) * step / spread
        moves = np.abs(np.diff(ndtr(-np.abs(offsets))))  # small numbers' differences: no digits are lost
        moves[points] = 1 - moves[:points].sum() - moves[points + 1 :].sum()
        moved = np.maximum(irfft(rfft(laws, size) * rfft(moves, size), size)[:, : 3 * points + 1], 0)
        laws = moved[:, points : 2 * points + 1]
        laws[:, 0] += moved[:, :points].sum(axis=1)
        laws[:, -1] += moved[:, 2 * points + 1 :].sum(axis=1)
        wrong = places > level
        laws[1] += laws[0] * wrong
        laws[0, wrong] = 0
    early, some = (len(times) + 1) * (2 * up - 1) * step / math.sqrt(2), laws[1] > 0
    centre, law = places[some] / math.sqrt(2), laws[1, some]
    above = ndtr(math.sqrt(2) * (EDGES[:, None] + centre))
    below = ndtr(math.sqrt(2) * (EDGES[:, None] - early + centre)) if early else above
    return np.asarray((above[1:] - below[:-1]) @ law)


def _together(law: FloatArray, errors: list[FloatArray], n_arms: int, delta: float) -> float:
    """All rivals' bound: the largest, however many of them are near (the first errors) and not far."""
    ones = [np.divide(erred, law, out=np.zeros(len(law)), where=law > 0) for erred in errors]
    unerring = [np.log1p(-np.minimum(one, 1 - 2**-53)) for one in ones]
    rivals, near, far = n_arms - 1, unerring[0], np.min(unerring[1:] or unerring, axis=0)
    mixed = (law @ -np.expm1(many * near + (rivals - many) * far) for many in range(n_arms))
    return float(max(mixed) * (1 + ROUNDING) + NEGLIGIBLE * delta + rivals * TRANSFORMED)


@dataclass(frozen=True)
class Boundaries:
    """Looks and boundaries by which a race decides; parameters as in `CertifiedElasticBatchRacing`."""

    n_arms: int
    looks: tuple[int, ...]
    boundaries: tuple[float, ...]
    epsilon: float
    delta: float
    sigma: float = 0.5
    rewards: str = "Bernoulli"
    pruning: float = 1.0
    floor: float = 10.0
    shifts: tuple[float, ...] = ()

    def refuted(self, look: int, shift: float) -> IntArray:
        """For each sum, the largest sum that it refutes to be better by s, or by a smaller shift."""
        count, critical = self.looks[look], self.boundaries[look]
        table = limits(count, self.pruning * critical, self.pruning * self.floor, 0.0)
        for known in (self.epsilon, *self.shifts):
            if known <= shift:
                table = np.maximum(table, limits(count, critical, self.floor, known))
        return table

    def bound(self, low: float, high: float) -> float:
        """P(the race fails) at most, for every rate of the best arm from low to high."""
        # Eight tails for each look and rival: those of both steps and both sums.
        errors, cut = [], NEGLIGIBLE * self.delta / (8 * self.n_arms * len(self.looks))
        for gap in (0.0, self.epsilon, *self.shifts):
            if high >= gap:
                rate = min(math.nextafter(high - gap, 1.0), 1.0) if gap else high
                tables = [self.refuted(look, gap) for look in range(len(self.boundaries))]
                errors.append(_errors(self.looks, tables, gap > 0, low, rate, cut))
        return _together(binomial(self.looks[-1], low), errors, self.n_arms, self.delta)

    def normal_bound(self, points: int = GRID, up: float = 1.0) -> float:
        """The same for Gaussian rewards, whatever the means are.

        A rival of gap 0 errs where W exceeds π c_t √(b_t/b_T). One of gap ε errs where it exceeds
        c_t √(b_t/b_T) or, in the other test, π c_t √(b_t/b_T) + ε b_t/(σ√(2b_T)); at T where it exceeds the
        last term alone. With `up` ½ increments are rounded to the nearest point, to estimate with few points.
        """
        counts = np.array(self.looks)
        times = counts / counts[-1]
        heights = np.array(self.boundaries) * np.sqrt(times[:-1])
        shifted = self.epsilon * counts / (self.sigma * math.sqrt(2 * counts[-1]))
        near = [*(self.pruning * heights), math.inf]
        far = [*np.minimum(heights, self.pruning * heights + shifted[:-1]), shifted[-1]]
        errors = [_normal_errors(times, highest, points, up) for highest in (near, far)]
        return _together(np.diff(ndtr(EDGES)), errors, self.n_arms, self.delta)

    def cells(self) -> Iterator[Cell]:
        """Cells from 0 on, as wide as their bounds allow, up to 1 or to where nothing is certified."""
        if self.rewards == "Gaussian":
            yield Cell(0.0, 1.0, self.normal_bound())
            return
        low, width, slope = 0.0, self.epsilon / 8, 6 / self.epsilon
        while low < 1:
            high = min(low + width, 1.0)
            bound = self.bound(low, high)
            failed = bound > self.delta
            if not failed or high - low < NARROWEST * self.epsilon:
                yield Cell(low, high, bound)
                if failed:
                    return
            # The bound grows about as e^{slope · width}: nearly as wide as that allows.
            width = high - low + 0.9 * math.log(self.delta / max(bound, 1e-300)) / slope
            width = min(max(width, (high - low) / 3), (0.8 if failed else 4) * (high - low))
            low = low if failed else high

    def certificate(self) -> Certificate:
        """Compute how often the race fails at most, whatever the truth; seconds for 0/1 rewards."""
        from tqdm import tqdm

        with threadpool_limits(limits=1):  # for matrices this small threads take longer
            cells = tqdm(self.cells(), "certifying", unit=" cells", leave=False, disable=None)
            return Certificate(self.delta, tuple(cells))
