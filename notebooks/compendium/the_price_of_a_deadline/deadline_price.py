"""The price of a deadline: what every algorithm with T rounds pays on some problem, for any n and T.

An (ε, δ)-PAC algorithm, randomised or not, pulls S_t times in rounds 1 … t; S_t is chosen before round t is
seen. For thresholds 0 = M_0 < M_1 < … < M_{T−1}, A_t is the event that t is the first round with S_t ≥ M_t.
It is decided by fewer than M_{t−1} pulls and the algorithm's own random numbers, so it cannot be much rarer
on an easy problem than where all arms are equal. There S_T is long, or the algorithm would not be PAC. A
`Family` of problems says how much rarer and how long; `unavoidable` adds up what the algorithm pays, whatever
p_t = P_0(A_t).
Gaussian rewards, means in [0, 1]; σ = 1, as all costs scale with σ².
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import ndtr, ndtri

from compendium.shared.distributions import bernoulli_kl
from ebr.arrays import FloatArray, IntArray
from ebr.validation import whole

Curve = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
LEVELS = 300  # of S_T at which its law is bounded
GAPS = 40  # gaps at which the ratio is evaluated
TINY = 1e-9  # every q, and every p_t where a tangent is taken, is this far from 0 and 1
CUTS = 60  # at most; each adds a tangent for every gap
EXCHANGES = 100  # of rows at most, in one program
ROUNDING = 1e-13  # of a row whose largest entry is 1
MOST_SEARCHED = 100  # rounds: each has a threshold to search for
START = 0.1  # of the longest S_T: where the search for the thresholds begins


class Family(NamedTuple):
    """Problems with one gap d each, from ε to 1, that become one problem as d falls to 0.

    Attributes
    ----------
    arms, epsilon
        n and ε: H = n (d + ε)^{−2} on every problem.
    seen
        x = `seen` d² M: the information about the gap in fewer than M pulls.
    curve
        The least P_d(A) of events A decided by so many pulls, and its slope, from p = P_0(A) and x.
        Convex in p, and 0 at 0.
    pulls, misses
        P_0(S_T < M) ≤ q for each M of `pulls`, which rise, and its q of `misses`.
    """

    arms: int
    epsilon: float
    seen: float
    curve: Curve
    pulls: FloatArray
    misses: FloatArray


class Price(NamedTuple):
    """A lower bound on sup_ν E[Ñ_T]/H(ν), its M_1 … M_{T−1}, and the p_t that come nearest to it."""

    ratio: float
    thresholds: FloatArray
    chances: FloatArray


def least_power(chance: FloatArray, seen: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Neyman and Pearson: Φ(Φ⁻¹(p) − √x) for two arms, x = d²M/4σ², and its slope in p."""
    place, shift = ndtri(chance), np.sqrt(seen)
    return ndtr(place - shift), np.exp(shift * place - seen / 2)


def least_average(chance: FloatArray, seen: FloatArray, arms: int) -> tuple[FloatArray, FloatArray]:
    """Donsker and Varadhan: the mean over j of P_j(A) is at least p exp(−x/2 − √(2x log(1/p)/n)); its slope.

    All n arms are equal under P_0, arm j is raised by d under P_j; x = d²M/nσ².
    """
    spread = np.sqrt(2 * seen / arms)
    root = np.sqrt(np.maximum(-np.log(chance), 1e-300))
    share = np.exp(-seen / 2 - spread * root)
    return chance * share, share * (1 + spread / (2 * root))


def two_arms_stop(miss: FloatArray, epsilon: float, delta: float) -> FloatArray:
    """M with P_0(S_T < M) ≤ q for two arms: 4 (Φ⁻¹(q/2) − Φ⁻¹(δ))² / ε², for q ≥ 2δ."""
    return np.asarray(4 * np.maximum(ndtri(miss / 2) - ndtri(delta), 0.0) ** 2 / epsilon**2)


def many_arms_stop(miss: FloatArray, epsilon: float, delta: float, arms: int) -> FloatArray:
    """M with P_0(S_T < M) ≤ q for n arms: x(n−1)/ε², x/2 + √(2x log(n/q)/(n−1)) = log(q(n−1)/nδ)."""
    excess = np.maximum(np.log(miss * (arms - 1) / (arms * delta)), 0.0)
    half = np.log(arms / miss) / (arms - 1)
    root = np.sqrt(2 * half + 2 * excess) - np.sqrt(2 * half)  # √x, of a quadratic equation
    return np.asarray(root**2 * (arms - 1) / epsilon**2)


def two_arms(epsilon: float, delta: float) -> Family:
    """Two arms with means ½ ± d/2, either one the better."""
    misses = _misses(2 * delta)
    return Family(2, epsilon, 1 / 4, least_power, two_arms_stop(misses, epsilon, delta), misses)


def many_arms(arms: int, epsilon: float, delta: float) -> Family:
    """One arm of mean d, any of them, and n − 1 arms of mean 0."""
    share = (arms - 1) / arms
    misses = _misses(delta / share)

    def curve(chance: FloatArray, seen: FloatArray) -> tuple[FloatArray, FloatArray]:
        return least_average(chance, seen, arms)

    return Family(arms, epsilon, 1 / arms, curve, many_arms_stop(misses, epsilon, delta, arms), misses)


def _misses(lowest: float) -> FloatArray:
    """Values of q from where M is 0 to 1, evenly spaced as normal quantiles; 1 − q must not round to 1."""
    return np.asarray(2 * ndtr(np.linspace(float(ndtri(max(lowest, TINY) / 2)), 0.0, LEVELS + 1)[1:]))


def ratios(
    family: Family, thresholds: FloatArray, chances: FloatArray, gaps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What an algorithm with P_0(A_t) = p_t pays at least, E_d[Ñ_T]/H for each gap, and its slopes in p.

    With r_t = p_t/(1 − p_1), as A_1 does not depend on rewards, E_d[Ñ_T] is at least
    M_1 p_1 + (1 − p_1) [Σ_{1<t<T} M_t g(r_t, x_t) + Σ_k (m_k − m_{k−1}) g((1 − q_k − Σp)⁺/(1 − p_1), x_T)],
    g the family's curve, x_t = `seen` d² M_{t−1}, m_k and q_k its `pulls` and `misses`. Convex in p.
    """
    weight = (gaps + family.epsilon) ** 2 / family.arms
    steps = np.diff(family.pulls, prepend=0.0)
    if not len(thresholds):
        return weight * float(steps @ (1 - family.misses)), np.zeros((len(gaps), 0))
    rest = 1 - chances[0]
    cost = np.full(len(gaps), thresholds[0] * chances[0])
    slope = np.zeros((len(gaps), len(chances)))
    slope[:, 0] = thresholds[0]
    informed = family.seen * gaps**2 * thresholds[:, None]  # by M_1, …, M_{T−1}
    for t in range(1, len(chances)):
        share = chances[t] / rest
        value, rise = family.curve(np.full(len(gaps), share), informed[t - 1])
        cost += thresholds[t] * rest * value
        slope[:, t] += thresholds[t] * rise
        slope[:, 0] += thresholds[t] * (share * rise - value)
    long = 1 - family.misses - chances.sum()
    on = long > 0
    value, rise = family.curve(long[on] / rest, informed[-1][:, None])
    cost += rest * (value @ steps[on])
    slope -= (rise @ steps[on])[:, None]
    slope[:, 0] += (long[on] / rest * rise - value) @ steps[on]
    return weight * cost, weight[:, None] * slope


def unavoidable(
    family: Family,
    thresholds: Sequence[float] | FloatArray,
    tolerance: float = 1e-7,
    start: FloatArray | None = None,
) -> Price:
    """The least over all p of the largest of the `ratios`, from below, for these thresholds.

    Each ratio is convex in p, so its tangents are below it everywhere. The least maximum of some tangents, a
    linear program, is a lower bound whichever they are. Tangents are added where the last program was least;
    the first are at `start`.
    """
    levels = np.asarray(thresholds, dtype=np.float64)
    gaps = np.geomspace(family.epsilon, 1.0, GAPS)
    many = len(levels)
    chances, least = np.full(many, 0.5 / (many + 1)) if start is None else start, math.inf
    rows = np.vstack([np.append(0.0, np.ones(many)), -np.eye(many, many + 1, 1)])  # Σp ≤ 1, −p ≤ 0
    limits, basis, unit = np.append(1.0, np.zeros(many)), None, 1.0
    for _ in range(CUTS):
        value, slope = ratios(family, levels, chances, gaps)
        least = min(least, float(value.max()))
        if basis is None:
            basis, unit = _lowest(slope[0]), least  # so that the unknown ratio is near 1
        steep = np.maximum(np.abs(slope / unit).max(axis=1, initial=1.0), 1.0)  # no entry is above 1
        tangents = np.column_stack([np.full(len(gaps), -unit), slope]) / (unit * steep[:, None])
        rows = np.vstack([rows, tangents])
        limits = np.append(limits, (slope @ chances - value) / (unit * steep))
        place, basis = _descended(rows, limits, basis)
        chances = _inside(place[1:])
        if not least - unit * place[0] > tolerance * least:
            break
    return Price(float(unit * place[0]), levels, chances)


def _lowest(slope: FloatArray) -> IntArray:
    """The rows that meet where the first tangent alone is lowest: in a corner of the simplex."""
    many = len(slope)
    corner = 0 if slope.min(initial=0.0) >= 0 else 1 + int(slope.argmin())
    return np.array([many + 1, *(row for row in range(many + 1) if row != corner)])


def _descended(rows: FloatArray, limits: FloatArray, basis: IntArray) -> tuple[FloatArray, IntArray]:
    """The least first unknown x_0 with rows @ x ≤ limits, by the dual simplex method: x, and the rows met.

    At the start, and after each exchange, x_0 is the least subject to the rows of `basis` alone: a lower
    bound, wherever the method ends. A program has few unknowns, so a few exchanges solve it, in a tenth of
    the time that a call of `linprog` takes.
    """
    for _ in range(EXCHANGES):
        inverse = np.linalg.inv(rows[basis])
        place = inverse @ limits[basis]
        excess = rows @ place - limits
        new = int(excess.argmax())
        if excess[new] <= ROUNDING:
            break
        shares = rows[new] @ inverse
        rising = shares > ROUNDING
        steps = np.divide(-inverse[0], shares, out=np.full(len(shares), math.inf), where=rising)
        basis = basis.copy()
        basis[steps.argmin()] = new
    return np.asarray(place), basis


def _inside(chances: FloatArray) -> FloatArray:
    """The nearest p inside the simplex, where the slopes exist."""
    raised = np.maximum(chances, TINY)
    return np.asarray(raised * min(1.0, (1 - TINY) / raised.sum())) if len(raised) else raised


def price(family: Family, deadline: int) -> Price:
    """The price of a deadline of T rounds: `unavoidable` with the best thresholds that a search finds.

    The thresholds are rounded to three digits; any thresholds give a bound. Where ε^{−2/T} is small
    `sequential_price` is larger.
    """
    rounds = np.arange(1, whole("deadline", deadline, 1, MOST_SEARCHED))
    if not len(rounds):
        return unavoidable(family, [])

    nearest: FloatArray | None = None  # the p_t of the last thresholds are nearly those of the next

    def loss(logs: FloatArray) -> float:
        nonlocal nearest
        if logs.min() < 0.01:
            return math.inf
        found = unavoidable(family, np.exp(np.cumsum(logs)), 1e-6, nearest)
        nearest = found.chances
        return -math.log(found.ratio)

    top = math.log(START * float(family.pulls[-1]))
    start = np.full(len(rounds), top / deadline)
    options = {"xatol": 3e-3, "fatol": 1e-5, "maxfev": 200}
    found: Any = minimize(loss, start, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
    best = [float(f"{threshold:.3g}") for threshold in np.exp(np.cumsum(found.x))]
    return unavoidable(family, best)


def sequential_price(arms: int, delta: float) -> float:
    """The price at the gap ε without a deadline: 4σ² d(1−δ, δ), or 2σ² (n−1)/n d(1−δ, δ) for n > 2.

    Two arms at ½ ± ε/2 change places: a pull has divergence ε²/2σ². Of n arms, n − 1 at 0 and one at ε,
    another is raised to 2ε (which must be at most 1): a pull of that arm has divergence 2ε²/σ².
    """
    share = 4.0 if arms == 2 else 2 * (arms - 1) / arms
    return share * bernoulli_kl(1 - delta, delta)


def closed_form(arms: int, epsilon: float, delta: float, deadline: int) -> tuple[float, FloatArray]:
    """The price for n arms in a formula, for q = ½, M_t = κ n σ² ρᵗ and some p_t ≥ 1/2T; and its d_1 … d_T.

    It is σ² (κ/2T) ρ, ρ = (x_0 (n−1)/nκ)^{1/T} ε^{−2/T}. κ = max_x x exp(−x/2 − √(2x log(2T)/n)), at x*;
    x_0/2 + √(2x_0 log(2n)/(n−1)) = log((n−1)/2nδ).
    The gaps used, d_1 = 1 and d_t = √(x*/κρ^{t−1}), must lie in [ε, 1]: ρ ≥ x*/κ and ρ ≥ x_0(n−1)/nx*.
    """
    last = float(many_arms_stop(np.array(0.5), epsilon, delta, arms))
    half_chance = np.array(0.5 / deadline)

    def gained(seen: float) -> float:
        return seen * float(least_average(half_chance, np.array(seen), arms)[0] / half_chance)

    best: Any = minimize_scalar(
        lambda x: -gained(x), bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-9}
    )
    kappa, rho = -best.fun, (last / (-best.fun * arms)) ** (1 / deadline)
    gaps = np.sqrt(best.x / kappa * rho ** -np.arange(deadline))
    gaps[0] = 1.0
    return kappa * rho / (2 * deadline), gaps
