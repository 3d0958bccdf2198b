"""Pausing EBR and its tests of pairs, once more: one race, arm by arm, one pair of arms at a time."""

import math
from functools import cache
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, xlog1py, xlogy
from scipy.stats import binom

NODES, WEIGHTS = np.polynomial.hermite.hermgauss(180)


@cache
def quantile(alpha):
    return -NormalDist().inv_cdf(alpha)


def kl(x, y):
    terms = [(x, y), (1 - x, 1 - y)]
    return sum(0 if a == 0 else math.inf if b <= 0 else a * math.log(a / b) for a, b in terms)


@cache
def log_term(model, alpha):
    if model in ("Gaussian", "Bernoulli"):
        return max(quantile(alpha), 0) ** 2 / 2
    if model == "bounded":
        return brentq(lambda x: (1 + x) * math.exp(-x) - alpha, 0, 800, xtol=1e-13)
    return math.log(1 / alpha)


def normal_refuted(a, N, c, M, shift, alpha, model, sigma):
    return a / N - c / M + shift > sigma * math.sqrt(2 * log_term(model, alpha) * (1 / N + 1 / M))


@cache
def pair_ratio(a, N, c, M, shift):
    """min_p N kl(a/N, p) + M kl(c/M, p + s), 0 if no p must be paid for."""
    leader, other = a / N, c / M
    low, high = max(other - shift, 0), min(leader, 1 - shift)
    if leader <= other - shift:
        return 0.0

    def slope(p):
        q = p + shift
        return N * (p - leader) * q * (1 - q) + M * (q - other) * p * (1 - p)

    inside = (low + 1e-13, high - 1e-13)
    places = [low, high]
    if inside[0] < inside[1] and slope(inside[0]) < 0 < slope(inside[1]):
        places.append(brentq(slope, *inside, xtol=1e-15))
    return min(N * kl(leader, p) + M * kl(other, min(p + shift, 1)) for p in places)


def bounded_refuted(a, N, c, M, shift, alpha):
    return pair_ratio(a, N, c, M, shift) > log_term("bounded", alpha)


def roots(k, N, p):
    """Zubkov and Serov's r(k) at each p."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x = k / N
        one = 0 if k == 0 else x * (math.log(x) - np.log(p))
        two = 0 if k == N else (1 - x) * (math.log1p(-x) - np.log1p(-p))
    return np.sign(x - p) * np.sqrt(2 * N * np.maximum(one + two, 0))


def margins(p, piece, a, N, c, M, shift, alpha):
    """By how much the clearest of the three conditions holds at each p, on which piece it is."""
    y, z = quantile(0.05 * alpha), quantile(0.9 * alpha)
    middle = (1 - shift) * np.sin(np.pi / 128 * (piece + 0.5)) ** 2
    variance, other = middle * (1 - middle) / N, (middle + shift) * (1 - middle - shift) / M
    slope = z / 6 / np.sqrt(variance + other)
    one = np.sqrt(variance) * np.clip(1 - slope * (1 - 2 * middle) / N, 0.5, 1.5)
    two = np.sqrt(other) * np.clip(1 + slope * (1 - 2 * middle - 2 * shift) / M, 0.5, 1.5)
    first, second = roots(a - 1, N, p), -roots(c + 1, M, np.minimum(p + shift, 1))
    with np.errstate(invalid="ignore"):  # ∞ − ∞, where one of them alone is enough
        both = (one * first + two * second) / np.hypot(one, two) - z
    return np.fmax(np.fmax(first - y, second - y), both)


def least_margin(a, N, c, M, shift, alpha, points=24):
    """The least of the margins on a grid of p; where they are small, on one 200 times as fine."""
    if a < 1 or c >= M or (a - 1) / N <= (c + 1) / M - shift:
        return -math.inf
    data = (a, N, c, M, shift, alpha)
    places = np.linspace(0, 64, 64 * points + 1)[:-1]  # in pieces, equal in angle
    parts = np.linspace(0, 1, 200)
    step = 64 / len(places)

    def at(place):
        p = (1 - shift) * np.sin(np.pi / 128 * place) ** 2
        return margins(np.clip(p, 1e-300, 1 - 2**-53), np.minimum(np.floor(place), 63), *data)

    coarse = at(places)
    least = coarse.min()
    reach = 2 * math.pi / 128 * step * (math.sqrt(N) + math.sqrt(M))  # a root moves 2√N for each radian
    if 0 < least < reach:
        close = places[np.minimum(coarse, np.append(coarse[1:], coarse[-1])) < reach]
        inner = close[:, None] + step * parts
        inner[:, -1] -= 1e-9  # still in the piece
        least = at(inner.ravel()).min()
    return least


class TooCloseError(Exception):
    """Every p is refuted, but by so little that twelve halvings of a piece may not show it."""


@cache
def margin(*pair):
    return least_margin(*pair)


def binomial_refuted(a, N, c, M, shift, alpha):
    return bool(margin(a, N, c, M, shift, alpha) > 0)


def clearly_refuted(a, N, c, M, shift, alpha):
    """So is it; refuse to say where a halved piece's range of roots is wider than the margin."""
    if 0 < margin(a, N, c, M, shift, alpha) < 2 * math.pi / 128 / 2**12 * (math.sqrt(N) + math.sqrt(M)):
        raise TooCloseError
    return binomial_refuted(a, N, c, M, shift, alpha)


def refuted(model, sigma, a, N, c, M, shift, alpha):
    if alpha == 0:
        return False
    if model == "Bernoulli":
        return clearly_refuted(a, N, c, M, shift, alpha)
    if model == "bounded":
        return bounded_refuted(a, N, c, M, shift, alpha)
    return normal_refuted(a, N, c, M, shift, alpha, model, sigma)


@cache
def sign_count(epsilon, alpha):
    """The first count of all, from ⌈1/ε⌉, but no more than Hoeffding's bound takes."""
    enough = math.ceil(-math.log(alpha) / epsilon**2) + 1
    b = np.arange(min(math.ceil(1 / epsilon), enough), enough)
    few = b[binom.sf(b - 1, 2 * b, (1 - epsilon) / 2) <= alpha]
    return int(few[0]) if len(few) else enough


@cache
def bechhofer_count(n, epsilon, miss, sigma):
    """The least b with which n − 1 normal arms, all worse by ε, exceed the best with `miss` at most."""

    def error(h):
        return -WEIGHTS @ np.expm1((n - 1) * log_ndtr(math.sqrt(2) * NODES + h)) / math.sqrt(math.pi)

    if error(0) <= miss:
        return 1
    return math.ceil((brentq(lambda h: error(h) - miss, 0, 30, xtol=1e-12) * sigma / epsilon) ** 2)


@cache
def lots_count(n, epsilon, delta):
    """The least b with which the best of n Bernoulli arms, others worse by ε, fails with δ; ties by lot."""
    best = np.linspace(epsilon, 1, 301)[:, None]

    def chances(b, p):
        x = np.arange(b + 1)
        ways = np.concatenate([[0], np.log((b + 1 - x[1:]) / x[1:]).cumsum()])
        return np.exp(ways + xlogy(x, p) + xlog1py(b - x, -p))

    def error(b):
        f = chances(b, np.maximum(best - epsilon, 0))
        below = f.cumsum(axis=1) - f
        wins = sum(math.comb(n - 1, j) * f**j * below ** (n - 1 - j) / (j + 1) for j in range(n))
        return (1 - (chances(b, best) * wins).sum(axis=1)).max()

    near, step = bechhofer_count(n, epsilon, delta, 0.5), 2  # what normal rewards take is not far off
    low, high = max(near - step, 0), near
    while low and error(low) <= delta:
        low, high, step = max(low - step, 0), low, 2 * step
    while error(high) > delta:
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if error(middle) > delta else (low, middle)
    return high


def last_count(n, deadline, epsilon, delta, sigma, model, share):
    """b_T, where the largest sum wins: `share` of δ is spent on it."""
    if model == "Gaussian":
        return bechhofer_count(n, epsilon, share, sigma)
    if model == "Bernoulli":
        if deadline == 1 and bechhofer_count(n, epsilon, delta, 0.5) <= 1500:
            return lots_count(n, epsilon, delta)
        return sign_count(epsilon, share / (n - 1))
    return math.floor(4 * sigma**2 * math.log((n - 1) / share) / epsilon**2) + 1


@cache
def schedule(n, deadline, epsilon, delta, sigma, model, start, lead):
    """The grid's counts, from b_0 = 0, the level of each pair of stages, and how far ahead arms may be."""
    start = max(start, epsilon)
    widths = [start ** (1 - t / deadline) * epsilon ** (t / deadline) for t in range(1, deadline + 1)]
    total = sum(w**-0.5 for w in widths)
    alpha = {}
    for u, w in enumerate(widths, 1):
        lags = {s: 3.0 ** (s - u) for s in range(1, u + 1)} if deadline > 2 else {u: 1.0}
        for s, weight in lags.items():
            alpha[u, s] = delta * w**-0.5 / total * weight / sum(lags.values()) / (n - 1)
    wished = [
        math.floor(4 * sigma**2 * log_term(model, delta * w**-0.5 / total / (n - 1)) / w**2) + 1
        for w in widths
    ]
    share = alpha[deadline, deadline] * (n - 1)
    wished[-1] = last_count(n, deadline, epsilon, delta, sigma, model, share)
    kept, counts = [], [0]
    for t, b in enumerate(wished[:-1], 1):
        if counts[-1] < b < wished[-1]:
            kept.append(t)
            counts.append(b)
    kept.append(deadline)
    counts.append(wished[-1])
    levels = {
        (i, j): alpha.get((kept[i - 1], kept[j - 1]), 0)
        for i in range(1, len(counts))
        for j in range(1, i + 1)
    }
    ahead = 0
    if start > epsilon:  # b_t grows like (w_0/ε)^{2t/T}
        while ahead < deadline and (start / epsilon) ** (2 * (ahead + 1) / deadline) <= lead:
            ahead += 1
    return counts, levels, ahead


def pausing_race(rewards, deadline, epsilon, delta, sigma, model, start, lead):
    """One race, arm by arm; return the pulls of each round and the arm."""
    n, period = len(rewards), len(rewards[0])
    b, alpha, ahead = schedule(n, deadline, epsilon, delta, sigma, model, start, lead)
    top, highest = len(b) - 1, 1
    stage, aim, rested, certifier = [0] * n, [1] * n, [False] * n, [None] * n
    alive, asked = list(range(n)), []

    def total(i):
        times, rest = divmod(b[stage[i]], period)
        return times * sum(rewards[i]) + sum(rewards[i][:rest])

    def speaks(k, i, shift):
        """Whether the rewards of k and i refute that i is better than k by the shift."""
        u, s = stage[k], stage[i]
        return refuted(model, sigma, total(k), b[u], total(i), b[s], shift, alpha[u, s])

    def needed(k, i):
        x, y = total(k) / b[stage[k]], total(i) / b[stage[i]]
        variance = sigma**2
        if model in ("Bernoulli", "bounded"):
            variance = max((x + y) / 2 * (1 - (x + y) / 2), 1 / b[1])
        for s in range(1, highest + 1):
            width = math.sqrt(2 * variance * log_term(model, alpha[highest, s]) * (1 / b[highest] + 1 / b[s]))
            if x - y + epsilon >= width:
                return s
        return highest

    while True:
        t = len(asked) + 1
        asked.append([b[aim[i]] - b[stage[i]] if i in alive else 0 for i in range(n)])
        for i in alive:
            rested[i], stage[i] = stage[i] == aim[i], aim[i]
        first = [i for i in alive if stage[i] == highest]
        leader = max(first, key=lambda i: (total(i), -i))
        certifier[leader] = leader
        for i in list(alive):
            if certifier[i] == leader:
                continue
            if stage[i] == top:
                certifier[i] = leader
            elif speaks(leader, i, epsilon):
                certifier[i] = leader
                if speaks(leader, i, 0):
                    alive.remove(i)
        waiting = [i for i in alive if certifier[i] != leader]
        if not waiting or t == deadline:
            return asked, leader
        aim = list(stage)
        if t + 1 == deadline:
            final = {i for i in alive if i in waiting or i == leader or stage[i] == top}
            while more := {
                i
                for i in alive
                if i not in final and any(stage[k] < stage[i] or not speaks(k, i, epsilon) for k in final)
            }:
                final |= more
            highest = top
            for i in final:
                aim[i] = top
        else:
            highest = min(t + 1 + ahead, top)
            for i in waiting:
                least = max(stage[i] + 1, 0 if rested[i] else t + 1)
                aim[i] = min(max(needed(leader, i), least), highest)
            aim[leader] = highest
