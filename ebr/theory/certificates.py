"""Certificates: an upper bound, computed for every truth, on how often a race with fixed looks fails.

At look t an arm with sum y *refutes* that an arm with sum x is better by a shift s if y − x + s b_t exceeds
c_t standard deviations of y − x. A leader drops the arms that it refutes with s = 0. It wins if it refutes
all others with s = ε, or has the largest sum at T; ties are broken by lot.

*Theorem.* Let arm 1 be the best. Other arms are *good* if their gap is below ε, else *bad*. A bad arm *errs*
against another if before T it refutes that one with s = 0, with s = ε, or with a further shift not above its
gap, or if it is ahead of it at T; but not once the other has refuted it with s = 0. With m bad arms and r
other good ones P(the race fails) ≤ W_r(1), where W_0(a) = Σ_x P(x) [1 − (1 − e(x))^m], with e(x) the
probability that a bad arm errs given that arm a ends at the sum x, or in a cell x of sums, and W_i(a) =
W_0(a) + i max_b P(b drops a) min(W_{i−1}(b), 1), with b of any mean that a good arm may have.

*Proof, in short.* If a bad arm wins, good arms have dropped one another, the first of them arm 1, and a bad
arm errs against the last. By Harris' inequality (Proc. Camb. Phil. Soc. 56, 1960) this has at most the
product of the probabilities. Given its last sum an arm's sums are associated (Fortuin, Kasteleyn and Ginibre,
Commun. Math. Phys. 22, 1971), so bad arms count in W_0 as if they were independent.

*0/1 rewards.* By coupling errors are more likely the lower the dropped arm's rate and the higher the other's.
So for all rates in cells the ends of the cells are the worst. Such cells cover [0, 1].

*Gaussian rewards.* Events depend on gaps and on the noise of y − x alone, a random walk. Rounding its
increments up to a grid makes errors more likely. Good arms' gaps lie in cells; one cell covers all means.

Bounds are sums of positive terms. What rounding and the tails that are cut off may lose is added.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, xlogy
from threadpoolctl import threadpool_limits

from ebr.arrays import FloatArray, IntArray

SMOOTHING, TAPER = 2.0, 0.4  # added to a pair's successes and failures; the power of 4p̄(1−p̄) in boundaries
# Relative errors: of a binomial probability 5b/2⁵³ at most, of a sum b/2⁵³, at 2T steps of b ≤ 5,000 rewards.
ROUNDING = 1e-8
NEGLIGIBLE = 1e-4  # share of δ that tails which are cut off may have
TRANSFORMED = 1e-10  # more than Fourier transforms lose of a law on a grid, for each rival
CELLS = 512  # of the best arm's rate in a length of ε
# Of a Gaussian difference, in standard deviations at T; points of the grid, and for an estimate.
LOWEST, HIGHEST, GRID, ROUGH = -6.0, 7.0, 2**15, 2**11
EDGES = np.array([-np.inf, *np.arange(-6.0, 6.01, 0.25), np.inf])  # of cells for arm 1's last sum
RAREST = 1e-140  # where sums are so rare at known rates that weights exceed 1/RAREST, nothing is certified
Range = tuple[float, float]


class Cell(NamedTuple):
    """An interval of the best arm's rate, and a bound on how often the race fails there."""

    low: float
    high: float
    bound: float


@dataclass(frozen=True)
class Certificate:
    """Cells that cover all rates of the best arm, each with a bound on the race's failures."""

    delta: float
    cells: tuple[Cell, ...] = field(repr=False)

    @property
    def worst(self) -> Cell:
        """The cell with the largest bound."""
        return max(self.cells, key=lambda cell: cell.bound)

    @property
    def holds(self) -> bool:
        """Whether the cells follow each other from 0 to 1, each with a bound of δ at most."""
        lows, highs = [cell.low for cell in self.cells], [cell.high for cell in self.cells]
        return [*lows, 1.0] == [0.0, *highs] and self.worst.bound <= self.delta


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


class Pair:
    """The law of two arms' sums, for all rates of the arms in two ranges: on how many paths the second errs.

    It errs at the first look before T where it refutes the first with the shift or with 0 and, if there is a
    shift, where it is ahead at T, unless the first has dropped it. The number of paths depends on no rate. So
    the law is computed at one rate of each arm, and at others each pair of sums has the ratio of its
    probabilities as weight.
    """

    def __init__(self, race: "Boundaries", shift: float, rates: Range, others: Range, cut: float) -> None:
        self.looks = race.looks
        self.rates = [min(max(sum(each) / 2, 1e-9), 1 - 1e-9) for each in (rates, others)]
        self.laws: list[FloatArray] = []  # of the sums where the second arm first errs, by look
        self.sums: list[list[IntArray]] = []  # those that are likely, of each arm
        open_, before, places = np.ones((1, 1)), 0, [np.zeros(1, dtype=np.int64)] * 2
        for look, count in enumerate(race.looks):
            kept = [_likely(count, *each, cut) for each in (rates, others)]
            first, second = (
                _moved(binomial(count - before, rate), old, new)
                for rate, old, new in zip(self.rates, places, kept, strict=True)
            )
            open_, places, before = first.T @ (open_ @ second), kept, count
            x, y = places[0][:, None], places[1]
            self.sums.append(places)
            if look == len(race.boundaries):
                self.laws.append(open_ * (shift > 0) * ((x < y) + (x == y) / 2))
                break
            wrong = x <= race.refuted(look, shift)[y]
            self.laws.append(open_ * wrong)
            open_ = open_ * ~(wrong | (y <= race.refuted(look, 0.0)[x]))

    def weights(self, look: int, arm: int, rates: FloatArray) -> FloatArray:
        """The ratios of the probabilities of an arm's sums: a row a sum, a column a rate."""
        sums, known = self.sums[look][arm][:, None], self.rates[arm]
        failures = self.looks[look] - sums
        ratios = xlogy(sums, rates / known) + xlogy(failures, (1 - rates) / (1 - known))
        return np.exp(np.where(ratios < -math.log(RAREST), ratios, np.nan))

    def errs(self, rates: FloatArray, others: FloatArray) -> FloatArray:
        """P(the second arm errs): a row a rate of the first arm, a column one of the second."""
        found = np.zeros((len(rates), len(others)))
        for look, law in enumerate(self.laws):
            found += self.weights(look, 0, rates).T @ (law @ self.weights(look, 1, others))
        return found

    def given(self, others: FloatArray) -> FloatArray:
        """The same given the first arm's last sum, whatever its rate: a row a sum, a column a rate."""
        last, rate = self.sums[-1][0], self.rates[0]
        found = np.zeros((len(last), len(others)))
        for look, law in enumerate(self.laws):
            rest = binomial(self.looks[-1] - self.looks[look], rate)
            found += _moved(rest, self.sums[look][0], last).T @ (law @ self.weights(look, 1, others))
        return np.minimum(found / np.maximum(binomial(self.looks[-1], rate), 1e-300)[last, None], 1)

    def last(self, rates: FloatArray) -> FloatArray:
        """The law of the first arm's last sum: a row a sum, a column a rate."""
        law = binomial(self.looks[-1], self.rates[0])[self.sums[-1][0], None]
        return law * self.weights(len(self.looks) - 1, 0, rates)


def _likely(count: int, low: float, high: float, cut: float) -> IntArray:
    """All sums but those that are too small, or too large, with probability `cut` at most."""
    first = int(binomial(count, low).cumsum().searchsorted(cut, "right"))
    last = count - int(binomial(count, high)[::-1].cumsum().searchsorted(cut, "right"))
    return np.arange(min(first, count), max(last, first) + 1)


def _moved(law: FloatArray, old: IntArray, new: IntArray) -> FloatArray:
    """The probabilities of going from old sums to new ones, where the law is that of the step."""
    step = new - old[:, None]
    return np.where((step >= 0) & (step < len(law)), law[np.clip(step, 0, len(law) - 1)], 0.0)


@lru_cache(maxsize=128)
def _transformed(spread: float, points: int, up: float) -> Any:
    """The Fourier transform of the law of an increment of W, rounded to the grid."""
    step = (HIGHEST - LOWEST) / points
    offsets = (np.arange(-points - 1, points + 1) + 1 - up) * step / spread
    moves = np.abs(np.diff(ndtr(-np.abs(offsets))))  # small numbers' differences: no digits are lost
    moves[points] = 1 - moves[:points].sum() - moves[points + 1 :].sum()
    return np.fft.rfft(moves, 4 * points)


def _normal_errors(
    times: FloatArray, highest: FloatArray, lowest: FloatArray, points: int, up: float
) -> FloatArray:
    """The law of W at T, on a grid, where it exceeded a level at some look, and was not too low before.

    W is the noise of the difference, a Brownian motion at times b_t/b_T. Each increment is rounded up to the
    grid, and what falls below the grid is raised to its lowest point.
    """
    # What lies above the grid, less than 10⁻¹¹, is kept at its highest point.
    step = (HIGHEST - LOWEST) / points
    places = LOWEST + step * np.arange(points + 1)
    laws = np.zeros((2, points + 1))  # of paths without an error, and with one
    laws[0, math.ceil(-LOWEST / step)] = 1.0
    for spread, high, low in zip(np.sqrt(np.diff(times, prepend=0.0)), highest, lowest, strict=True):
        moved = np.fft.irfft(np.fft.rfft(laws, 4 * points) * _transformed(float(spread), points, up))
        moved = np.maximum(moved, 0)  # beyond 3 points it is 0 but for rounding
        laws = moved[:, points : 2 * points + 1]
        laws[:, 0] += moved[:, :points].sum(axis=1)
        laws[:, -1] += moved[:, 2 * points + 1 :].sum(axis=1)
        laws[1] += laws[0] * (places > high)
        laws[0, (places > high) | (places < low)] = 0
    return np.asarray(laws[1])


def _by_last_sum(law: FloatArray, looks: int, up: float) -> FloatArray:
    """The mass of a law of W at T by cells of the first arm's last sum.

    This arm's noise at T, in standard deviations, is N(−W/√2, ½) given W; W itself may be smaller than on the
    grid by T + 1 steps.
    """
    step = (HIGHEST - LOWEST) / (len(law) - 1)
    early, centre = (looks + 1) * (2 * up - 1) * step / math.sqrt(2), (LOWEST + step * np.arange(len(law)))
    above, below = (ndtr(math.sqrt(2) * (EDGES[:, None] - e) + centre) for e in (0.0, early))
    return np.asarray((above[1:] - below[:-1]) @ law)


def _some(errors: FloatArray, many: int) -> FloatArray:
    """1 − (1 − e)^m for m = 1 … n − 1, along a new first axis: one of m independent rivals errs."""
    right = np.log1p(-np.minimum(errors, 1 - 2**-53))
    return np.stack([-np.expm1(m * right) for m in range(1, many + 1)])


def _chains(failing: FloatArray, drops: FloatArray) -> float:
    """W_r(1), the largest over how many of the n − 1 other arms are bad; NaN if a probability is.

    P(some bad arm errs) is `failing`, by how many are bad, 1 … n − 1, and against whom: the best arm, or a
    good one by its cell. P(a good arm drops another) is `drops`, by its cell and, likewise, whom it drops.
    """
    chains, found = failing, [failing[-1, 0]]
    for good in range(1, len(failing)):
        chains = failing + good * (np.minimum(chains[:, 1:], 1)[:, :, None] * drops).max(axis=1)
        found.append(chains[-1 - good, 0])
    return float(np.max(found))


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

    def failures(self, lows: FloatArray, highs: FloatArray, parts: int = 0) -> list[float]:
        """P(the race fails) at most, for cells of the best arm's rate that follow each other.

        The good arms' rates are in cells, too: `parts` in a length of ε, or as many as are quick.
        """
        parts = parts or max(4, min(64, 640 // self.n_arms))  # with many arms the recursion takes long
        # Four tails at each look, a sum's two of either arm, are added to the probabilities of each pair.
        others, cut = self.n_arms - 1, NEGLIGIBLE * self.delta / (4 * self.n_arms**2 * len(self.looks))
        added = 4 * len(self.looks) * cut
        start, size = max(float(lows[0]) - self.epsilon, 0.0), self.epsilon / parts
        least = start + size * np.arange(math.ceil((highs[-1] - start) / size))
        most = np.minimum(least + size, highs[-1])
        reach = start, float(highs[-1])
        pair = Pair(self, 0.0, reach, reach, cut)
        drops, dropped = (pair.errs(rates, most).T * (1 + ROUNDING) + added for rates in (least, lows))
        errors = np.zeros(())
        for shift in (self.epsilon, *self.shifts):
            if (there := highs >= shift).any():
                rates = np.clip(np.nextafter(highs - shift, 1.0), 0.0, 1.0)
                pair = Pair(self, shift, reach, (float(rates[0]), float(rates[-1])), cut)
                errors = np.maximum(errors, pair.given(rates) * there)
        if not errors.ndim:  # no arm can be bad
            return [0.0] * len(lows)
        some = _some(errors, others)
        failing = (pair.last(least).T @ some) * (1 + ROUNDING) + others * added
        fails = (pair.last(lows) * some).sum(axis=1) * (1 + ROUNDING) + others * added
        found = []
        for i, (low, high) in enumerate(zip(lows, highs, strict=True)):
            near = np.flatnonzero((most > low - self.epsilon) & (least <= high))
            good = slice(near[0], near[-1] + 1)
            against = np.column_stack([fails[:, i], failing[:, good, i]])
            found.append(_chains(against, np.column_stack([dropped[good, i], drops[good, good]])))
        return [1.0 if math.isnan(bound) else bound for bound in found]  # NaN: sums are too rare

    def bound(self, low: float, high: float) -> float:
        """P(the race fails) at most, for every rate of the best arm from low to high."""
        return self.failures(np.array([low]), np.array([high]))[0]

    def normal_bound(self, sure: bool = True) -> float:
        """The same for Gaussian rewards, whatever the means are.

        Let l_t = b_t/(σ√(2b_T)) and d_t = π c_t √(b_t/b_T). An arm of gap g drops one of gap h where
        W > d_t − (h − g) l_t, and is dropped by it where W < −d_t − (h − g) l_t. A bad arm of gap ε drops it
        where W > d_t + (ε − h) l_t, wins where W > c_t √(b_t/b_T) − h l_t, at T where W > (ε − h) l_T, and is
        dropped where W < (ε − h) l_t − d_t. If not `sure` the gaps are the cells' middles, and increments are
        rounded to the nearest of few points, as an estimate.
        """
        counts = np.array(self.looks)
        times, lead = counts / counts[-1], self.epsilon * counts / (self.sigma * math.sqrt(2 * counts[-1]))
        heights = np.array(self.boundaries) * np.sqrt(times[:-1])
        drops = np.append(self.pruning * heights, math.inf)
        far = np.append(np.minimum(heights, drops[:-1] + lead[:-1]), lead[-1])
        points, up, parts = (GRID, 1.0, 16) if sure else (ROUGH, 0.5, 4)

        @cache
        def dropped(share: float) -> float:
            ends = drops - share * lead, -drops - share * lead
            return float(_normal_errors(times, *ends, points, up).sum())

        def errors(share: float) -> FloatArray:
            ends = far - share * lead, (1 - share) * lead - drops
            return _by_last_sum(_normal_errors(times, *ends, points, up), len(counts), up)

        # Gaps in units of ε, the best arm's first.
        least = (np.arange(parts) + (0 if sure else 0.5)) / parts
        most = np.append(0.0, least + (1 / parts if sure else 0))
        links = np.array([[dropped(other - own) for other in most] for own in least])
        law = np.diff(ndtr(EDGES))
        failing = np.transpose([_some(errors(other) / law, self.n_arms - 1) @ law for other in most])
        return _chains(*(each * (1 + ROUNDING) + self.n_arms * TRANSFORMED for each in (failing, links)))

    def cells(self) -> Iterator[Cell]:
        """Cells from 0 to 1."""
        if self.rewards == "Gaussian":
            yield Cell(0.0, 1.0, self.normal_bound())
            return
        yield Cell(0.0, self.epsilon, 0.0)  # no arm can be worse by ε
        edges = np.linspace(self.epsilon, 1.0, math.ceil((1 / self.epsilon - 1) * CELLS) + 1)
        block = max(8, min(CELLS, 10 * CELLS // self.n_arms))  # at once: tables have a page for each arm
        for first in range(0, len(edges) - 1, block):
            some = edges[first : first + block + 1]
            yield from map(Cell, some[:-1].tolist(), some[1:].tolist(), self.failures(some[:-1], some[1:]))

    def certificate(self) -> Certificate:
        """Compute how often the race fails at most, whatever the truth; seconds for 0/1 rewards."""
        from tqdm import tqdm

        with threadpool_limits(limits=1):  # for matrices this small threads take longer
            cells = tqdm(self.cells(), "certifying", unit=" cells", leave=False, disable=None)
            return Certificate(self.delta, tuple(cells))
