"""Bets on a round's rewards of two arms: how much one arm's claim against another is worth after the round.

The claimant has m rewards in the round, the rival m'. The claim: the rival is *not* better by s. A purse v in
[0, 1] is staked on it before the round. After the round it is f in [0, 1], a function of the round's rewards
with E f ≤ v wherever the claim is false, that is, wherever μ' ≥ μ + s. So purses on false claims do not grow
in the mean; purses on true claims do. Purses are kept as logarithms.

*Scores.* A score z is a function of the rewards that is stochastically no larger than N(0, 1) where the claim
is false: of a difference of means, of a t-test if σ is unknown, of Fisher's exact test of rewards 0 and 1.
For drifts θ_j ≥ 0 with weights w_j, LR(z) = Σ w_j exp(θ_j z − θ_j²/2) has E LR ≤ 1, so min(1, v LR) is such a
bet, but all above 1 is wasted. The *capped bet* min(1, LR(z)/LR(c)) wastes nothing: with c its mean is v for
z normal. As it increases in z, its mean is at most v for all smaller scores.

*Rewards in [0, 1].* v ∏ (1 + (g/m)(Y − p)) ∏ (1 − (g/m')(Y' − p − s)), with any p and any g ≥ 0 that leave no
factor negative and are decided by the past. By the inequality of arithmetic and geometric means its mean is
at most v (1 + g (μ − μ' + s)/(m + m'))^{m + m'} ≤ v. A factor's logarithm is concave in the reward: as if all
rewards were 0 or 1, with the same sums, the product is no larger.

*With sums of squares* the same product has a sharper bound from below. Let m rewards have mean a and variance
τ² = Q/m − a². None lies below l = max(0, a − τ√(m − 1)). Let h = a + τ²/(a − l), and let q be the quadratic
that equals f(Y) = log(1 + b(Y − p)), b ≥ 0, at l and touches it at h. f(Y) − q(Y) = f'''(ξ)/6 (Y − l)(Y − h)²
for some ξ, and f''' ≥ 0. So Σ f(Y) ≥ Σ q(Y), the sum of f over rewards that are all l or h, with the same
mean and variance. An upper bound Q' of Q may replace Q, since q is concave; Q' = A is always one. The rival's
rewards are reflected, 1 − Y', and bounded in the same way.

*Sources.* Bets on means in [0, 1]: Waudby-Smith and Ramdas (JRSS B, 2024); on two samples at once: Turner, Ly
and Grünwald (JSPI, 2024); a quadratic below the logarithm: Fan, Grama and Liu (EJP, 2015).
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr, ndtri, stdtr

from ebr.arrays import FloatArray, IntArray, Numbers
from ebr.theory.pairs import Pairs

NODES, WEIGHTS = (-1.3, 0.0, 1.3), (0.27, 0.46, 0.27)  # of the mixture: a normal law in three points
MOST_DRIFT = 8.0  # a larger drift only loses more where beliefs are wrong
LEAST_DRIFT = 0.02  # with a smaller drift a purse hardly changes, and its cap is out of reach
STEPS = 4  # steps of Newton's method for c
SLACK = 1e-6  # relative error of a score or a cap by floating point, allowed for
LEAST_LOG = -600.0  # logarithm of the smallest purse that is computed with
FARTHEST = 20.0  # a cap beyond this is never reached
MOST_TESTED = 2**20  # most rewards of an arm for which the hypergeometric law is summed
MOST_INVERTED = 2**12  # most arms × replicates whose lots are drawn by inversion
NEGLIGIBLE = 1e-13  # relative size of a term at which the sum of a tail ends
UNSURE = 0.002  # no mean is believed to be nearer to 0 or 1
ALMOST = 0.98  # part of the largest stake that leaves no factor negative
PRIOR, LENT = 1 / 16, 4  # variance before any reward is seen; weight of the common variance, in rewards
HALVINGS = 10  # bisections for the stake
LEAST_REACH = 1e-30  # least distance of l from the mean: no division by 0, and no factor below 0

Two = tuple[FloatArray, FloatArray]  # of claimants and of rivals


class Beliefs(NamedTuple):
    """Estimates before a round: an arm's mean, the variance of a reward, and the number of rewards so far."""

    mean: FloatArray
    variance: FloatArray
    counts: Numbers


def believed(counts: IntArray, sums: FloatArray, squares: FloatArray) -> Beliefs:
    """Estimates for rewards in [0, 1] with squares, replicates × arms; arms share a common variance."""
    about, freedom = _about(counts, sums, squares)
    common = (about.sum(axis=1, keepdims=True) + PRIOR) / (freedom.sum(axis=1, keepdims=True) + 1)
    weight = 4 * common  # of a success and a failure that nobody saw
    mean = (sums + weight / 2) / (counts + weight)
    return Beliefs(mean, (about + LENT * common) / (freedom + LENT), counts)


def pooled(counts: IntArray, sums: FloatArray, squares: FloatArray) -> tuple[FloatArray, IntArray]:
    """S² and ν, replicates × 1; S² is larger by what floating point may lose.

    All claims of a round may share S, since only the mean of each purse matters, not their joint law. ν is 0
    where rewards do not vary: such rewards are not normal, and tell nothing of σ.
    """
    about, freedom = (each.sum(axis=1, keepdims=True) for each in _about(counts, sums, squares))
    lost = NEGLIGIBLE * squares.sum(axis=1, keepdims=True)
    return (about + lost) / np.maximum(freedom, 1), np.where(about > lost, freedom, 0)


def _about(counts: IntArray, sums: FloatArray, squares: FloatArray) -> tuple[FloatArray, IntArray]:
    """Each arm's sum of squares about its mean, and its degrees of freedom."""
    return np.maximum(squares - sums**2 / np.maximum(counts, 1), 0), np.maximum(counts - 1, 0)


def paid(
    log_purse: FloatArray, fresh: Pairs, shift: float, pair: list[Beliefs], model: str, told: list[FloatArray]
) -> FloatArray:
    """Logarithms of the purses after a round.

    Parameters
    ----------
    log_purse, fresh, shift
        log v; the claimants' and rivals' rewards of the round, thinned if they are 0 and 1; s.
    pair
        Estimates from earlier rounds. A bet is a mixture of three, for differences around the estimated one.
    model, told
        The rewards' model, and what else there is: lots, uniform on [0, 1], that break ties of rewards 0 and
        1; of rewards in [0, 1] the claimants' and the rivals' sums of squares, or more, if they are known; of
        others σ, or S and ν.
    """
    claimant, rival = pair
    errors = [belief.variance / np.maximum(belief.counts, 1) for belief in pair]
    steps = np.multiply.outer(NODES, np.sqrt(errors[0] + errors[1]))
    if model == "bounded":
        part = errors[0] / (errors[0] + errors[1])
        beliefs = [(claimant.mean + step * part, rival.mean - step * (1 - part)) for step in steps]
        if told:
            variances = claimant.variance, rival.variance
            gains = [square_bet(fresh, told, shift, means, variances) for means in beliefs]
        else:
            gains = [unit_bet(fresh, shift, means) for means in beliefs]
        return np.minimum(log_purse + _log_mixture(np.array(gains)), 0.0)
    one, two, variance = fresh.leader_pulls, fresh.other_pulls, claimant.variance
    if model == "Bernoulli":  # where both arms are alike
        mean = (one * claimant.mean + two * rival.mean) / (one + two)
        variance = mean * (1 - mean)
    differences = claimant.mean - rival.mean + shift + steps
    drifts = np.clip(differences / np.sqrt(variance * (1 / one + 1 / two)), 0, MOST_DRIFT)
    unknown = claimant.counts == 0
    if unknown.any():  # as a test would
        quantile = -ndtri(np.exp(np.maximum(log_purse, LEAST_LOG)))
        drifts = np.where(unknown, np.maximum(quantile, 0.0), drifts)
    score = fisher_score(fresh, *told) if model == "Bernoulli" else normal_score(fresh, shift, *told)
    if model == "sub-Gaussian":
        after = np.minimum(log_purse + log_ratio(score, drifts), 0.0)
    else:
        after = capped_bet(log_purse, score, drifts)
    return np.where(drifts[-1] > LEAST_DRIFT, after, log_purse)  # a claim believed to be false: no bet


def _log_mixture(gains: FloatArray) -> FloatArray:
    """The logarithm of Σ w_j e^{g_j}; mixture's parts × pairs."""
    most = gains.max(axis=0)
    return np.asarray(most + np.log(np.asarray(WEIGHTS) @ np.exp(gains - most)))


def log_ratio(score: FloatArray, drifts: FloatArray) -> FloatArray:
    """The logarithm of LR(z) = Σ w_j exp(θ_j z − θ_j²/2); drifts are mixture's parts × pairs."""
    return _log_mixture(drifts * score - drifts**2 / 2)


def capped_bet(log_purse: FloatArray, score: FloatArray, drifts: FloatArray) -> FloatArray:
    """The logarithm of f(z) = min(1, LR(z)/LR(c)), E f = v for z normal; of v LR(z) where c is out of reach.

    Where v LR(z) ≥ 1, z is above c: E min(1, v LR) ≤ v. Only elsewhere c is sought.
    """
    drifts = np.maximum(drifts, LEAST_DRIFT)
    gained = log_ratio(score, drifts)
    after = np.minimum(log_purse + gained, 0.0)
    rest = np.flatnonzero((after < 0) & (log_purse > LEAST_LOG))
    # `take` leaves rows as they are, for speed.
    cap, at_cap = _cap(np.exp(log_purse[rest]) * (1 - SLACK), drifts.take(rest, axis=1))
    capped = np.where(score[rest] >= cap, 0.0, np.minimum(gained[rest] - at_cap, -NEGLIGIBLE))
    after[rest] = np.where(cap < FARTHEST, capped, after[rest])
    return after


def _cap(purse: FloatArray, drifts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The cap c and log LR(c), with g(c) = Φ̄(c) + Σ w_j Φ(c − θ_j)/LR(c) ≤ v; ∞ where none is found.

    g falls: g' = −(log LR)' Σ w_j Φ(c − θ_j)/LR(c). Newton's method on log g, from the normal quantile of v,
    which is not above c; the first step goes beyond it, the others come back.
    """
    weights, halves, target = np.asarray(WEIGHTS), drifts**2 / 2, purse * (1 - SLACK)
    cap = np.maximum(-ndtri(purse), -1.0)
    for step in range(STEPS + 1):
        parts = weights[:, None] * np.exp(drifts * cap - halves)
        ratio = parts.sum(axis=0)
        mean_below = weights @ ndtr(cap - drifts) / ratio
        mean = ndtr(-cap) + mean_below
        if step < STEPS:
            slope = (parts * drifts).sum(axis=0) / ratio
            cap = np.minimum(cap + np.log(mean / target) * mean / (slope * mean_below), FARTHEST)
    return np.where(mean <= purse, cap, np.inf), np.log(ratio)


def normal_score(
    fresh: Pairs, shift: float, sigma: FloatArray, freedom: FloatArray | None = None
) -> FloatArray:
    """The score (Y̅ − Y̅' + s) / (σ √(1/m + 1/m')), N(0, 1) where μ' = μ + s; with S for σ that of a t-test."""
    claimant, rival = fresh.means
    width = sigma * np.sqrt(1 / fresh.leader_pulls + 1 / fresh.other_pulls)
    score = np.asarray((claimant - rival + shift) / width)
    if freedom is None:
        return score
    tail = np.maximum(stdtr(freedom, -np.abs(score)), 1e-300)
    return np.asarray(np.copysign(ndtri(tail), score))


def thinned(sums: FloatArray, pulls: IntArray, shift: float, lots: np.random.Generator) -> Two:
    """Successes of arms as claimants, raised by lot, and as rivals, lowered by lot, with λ = s/(1 + s)."""
    if shift == 0:
        return sums, sums
    ones = sums.astype(np.int64)
    part = shift / (1 + shift)  # so that (1 − λ)μ + λ ≤ (1 − λ)μ' just where μ' ≥ μ + s
    return sums + drawn(lots, pulls - ones, part), sums - drawn(lots, ones, part)


def drawn(lots: np.random.Generator, trials: IntArray, part: float) -> FloatArray:
    """Binomial lots; few of them, as in a race of real rewards, are drawn by inversion.

    A journal's race must draw the same lots with every version of numpy, whose own method may change.
    """
    if trials.size > MOST_INVERTED:
        return np.asarray(lots.binomial(trials, part), dtype=np.float64)
    from scipy.stats import binom

    return np.asarray(binom.ppf(np.maximum(lots.random(trials.shape), 1e-16), trials, part))


def fisher_score(fresh: Pairs, lots: FloatArray) -> FloatArray:
    """The normal score of Fisher's exact test, ties by lots that are uniform on [0, 1].

    z = Φ̄⁻¹(P(X > A) + u P(X = A)), X hypergeometric: the law of A, of m, given A + C, of m + m',
    where μ' = μ. Where μ' is larger, A is stochastically less.
    """
    a, c = fresh.leader, fresh.other
    b, d, table = fresh.leader_pulls - a, fresh.other_pulls - c, _log_factorials()
    sides = (a + b, c + d, a + c, b + d), (a, b, c, d, a + b + c + d)
    above, below = (sum(table[each.astype(np.int64)] for each in side) for side in sides)
    ahead = a * fresh.other_pulls >= c * fresh.leader_pulls  # the upper tail is the smaller one
    beyond = _tail(np.array([np.where(ahead, *pair) for pair in ((a, c), (b, d), (c, a), (d, b))]))
    tail = np.exp(above - below) * (beyond + np.where(ahead, lots, 1 - lots))
    score = -ndtri(np.clip(tail, 1e-300, 1 - 1e-16))
    return np.where(ahead, score, -score)


@lru_cache(maxsize=1)
def _log_factorials() -> FloatArray:
    return np.asarray(gammaln(np.arange(1, 2 * MOST_TESTED + 2, dtype=np.float64)))


def _tail(table: FloatArray) -> FloatArray:
    """Σ_{i ≥ 1} P(X = a + i)/P(X = a) of a hypergeometric X, for tables [a b; c d] that many at once.

    Each probability is (c − i + 1)(b − i + 1) / ((a + i)(d + i)) times the one before. Tables whose sum has
    ended are removed every few steps.
    """
    total = np.zeros(table.shape[1])
    places, rest = np.arange(len(total)), np.concatenate([table, np.ones((1, len(total))), total[None]])
    while len(places):
        a, b, c, d, term, found = rest
        for _ in range(8):
            a += 1
            d += 1
            term *= b * c / (a * d)
            b -= 1
            c -= 1
            found += term
        ended = (term <= NEGLIGIBLE * found) | (np.minimum(b, c) <= 0)
        total[places[ended]] = found[ended]
        places, rest = places[~ended], rest.compress(~ended, axis=1)
    return total


def unit_bet(fresh: Pairs, shift: float, beliefs: Two) -> FloatArray:
    """The logarithm of the factors' product for rewards in [0, 1], with p and g that suit the believed means.

    p is the claimant's mean in the pair (p, p + s) nearest to the believed one, (q, q'), and g is that of the
    likelihood ratio of rewards 0 and 1, m (q − p)/(p (1 − p)); 0, no bet, where the claim is believed false.
    """
    m, other_m = fresh.leader_pulls, fresh.other_pulls
    mean, other = (np.clip(belief, UNSURE, 1 - UNSURE) for belief in beliefs)
    low = np.maximum(other - shift, 0) + 1e-6
    high = np.maximum(np.minimum(mean, 1 - shift) - 1e-6, low)
    p = np.clip((m * mean + other_m * (other - shift)) / (m + other_m), low, high)
    for _ in range(3):
        one, two = m / (p * (1 - p)), other_m / ((p + shift) * (1 - p - shift))
        p = np.clip((one * mean + two * (other - shift)) / (one + two), low, high)
    most = ALMOST * np.minimum(m / p, other_m / np.maximum(1 - p - shift, 1e-9))
    stake = np.where(mean + shift > other, np.clip(m * (mean - p) / (p * (1 - p)), 0, most), 0.0)
    up, down, missed = stake / m, stake / other_m, 1 - p - shift
    gained = fresh.leader * np.log1p(up * (1 - p)) + (m - fresh.leader) * np.log1p(-up * p)
    lost = fresh.other * np.log1p(-down * missed) + (other_m - fresh.other) * np.log1p(down * (p + shift))
    return np.asarray(gained + lost)


def square_bet(
    fresh: Pairs, squares: list[FloatArray], shift: float, beliefs: Two, variances: Two
) -> FloatArray:
    """The same product from sums and sums of squares, with p and g for the believed means and variances.

    With log(1 + x) = x − x²/2 the best p is q − D m/(m + m'), D = q + s − q'. The best g is where the bound's
    slope in g, at what is believed, is 0: it falls in g. There is no bet where D ≤ 0.
    """
    m, other_m = fresh.leader_pulls, fresh.other_pulls
    mean, other = (np.clip(belief, UNSURE, 1 - UNSURE) for belief in beliefs)
    ahead = mean + shift - other
    p = np.clip(mean - ahead * m / (m + other_m), 1e-3 * (1 - shift), (1 - 1e-3) * (1 - shift))
    other_p = 1 - p - shift
    claimant = m, p, _two_points(mean, variances[0], m)
    rival = other_m, other_p, _two_points(1 - other, variances[1], other_m)
    stake, step = np.zeros_like(p), ALMOST * np.minimum(m / p, other_m / other_p)
    for _ in range(HALVINGS):
        step = step / 2
        slope = np.zeros_like(p)
        for count, null, (part, *points) in (claimant, rival):
            for weight, point in zip((part, 1 - part), points, strict=True):
                slope += weight * (point - null) / (1 + (stake + step) / count * (point - null))
        stake = np.where(slope > 0, stake + step, stake)
    stake = np.where(ahead > 0, stake, 0.0)
    gained = _least_log(fresh.leader, squares[0], m, stake / m, p)
    turned = other_m - fresh.other, other_m - 2 * fresh.other + squares[1]
    return gained + _least_log(*turned, other_m, stake / other_m, other_p)


def _least_log(
    total: FloatArray, square: FloatArray, count: Numbers, up: FloatArray, p: FloatArray
) -> FloatArray:
    """A bound from below of Σ log(1 + b(Y − p)), of rewards in [0, 1] with these sums."""
    mean = np.maximum(total / count, 0)
    variance = np.maximum(square / count - mean**2, 0) + NEGLIGIBLE  # what floating point may lose
    part, low, high = _two_points(mean, variance, count)
    return np.asarray(count * (part * np.log1p(up * (low - p)) + (1 - part) * np.log1p(up * (high - p))))


def _two_points(mean: FloatArray, variance: FloatArray, count: Numbers) -> list[FloatArray]:
    """The law on l and h with this mean and variance: how likely l is, l, and h."""
    reach = np.maximum(np.minimum(np.sqrt(variance * np.maximum(count - 1, 1)), mean), LEAST_REACH)
    return [variance / (variance + reach**2), mean - reach, mean + variance / reach]
