"""Tests of a pair of arms: whether rewards, at counts fixed in advance, refute that one of them is better.

One arm, the leader, has N rewards and the other M. Every test is of "the other's mean is at least the
leader's plus s" and refutes it, where it is true, with probability α at most, whatever the means are. Refuted
with s = 0, the other arm is no better than the leader; refuted with s = ε, it is not better by ε.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammainccinv, ndtri

from ebr.arrays import BoolArray, FloatArray, IntArray, Numbers
from ebr.theory.divergence import pair_divergence
from ebr.validation import checked, count, rare

OWN = 0.1  # the part of α for the two arms' own bounds, half each; the rest is for both together
PIECES = 64  # pieces of the leader's possible means; the two arms' weights are constant on each
HALVINGS = 11  # of a piece, before a pair is left unrefuted
TINY = 1e-300  # 0 log 0 = 0, and a logarithm of 0 that is finite
MARGIN = 1.1  # a bound is first sought this much farther out than the normal law says


@dataclass(frozen=True)
class Pairs:
    """The sums of rewards of many pairs of arms, and how many rewards they are: arrays of one shape."""

    leader: FloatArray
    leader_pulls: Numbers
    other: FloatArray
    other_pulls: Numbers

    def __getitem__(self, chosen: IntArray | BoolArray) -> Self:
        return type(self)(*(each[chosen] for each in vars(self).values()))

    @property
    def means(self) -> tuple[FloatArray, FloatArray]:
        """The leader's mean and the other's."""
        return self.leader / self.leader_pulls, self.other / self.other_pulls


def log_terms(miss: FloatArray, model: str) -> FloatArray:
    """L for tests of level α: by the normal law, for two rewards in [0, 1], or by Chernoff's bound."""
    if model in ("Gaussian", "Bernoulli"):
        return np.asarray(np.maximum(-ndtri(miss), 0) ** 2 / 2)
    if model == "bounded":
        return np.asarray(gammainccinv(2.0, miss))  # two Exp(1) variables exceed it together with α
    with np.errstate(divide="ignore"):  # at level 0 L is infinite
        return np.asarray(-np.log(miss))


def normal_refuted(pairs: Pairs, shift: float, log_term: FloatArray | float, sigma: float) -> BoolArray:
    """Whether μ̂_1̂ − μ̂_i + s > σ √(2L (1/N + 1/M)).

    The difference of the means, centred, is σ√(1/N + 1/M)-sub-Gaussian: with L = log(1/α) the level is α by
    Chernoff's bound, and for Gaussian rewards it is exactly α with L = z²/2, z the normal quantile.
    """
    leader, other = pairs.means
    return np.asarray(leader - other + shift > normal_width(pairs, log_term, sigma))


def normal_width(pairs: Pairs, log_term: FloatArray | float, sigma: float) -> FloatArray:
    """σ √(2L (1/N + 1/M))."""
    return np.asarray(sigma * np.sqrt(2 * log_term * (1 / pairs.leader_pulls + 1 / pairs.other_pulls)))


def bounded_refuted(pairs: Pairs, shift: float, log_term: FloatArray | float) -> BoolArray:
    """Whether min_p N kl(μ̂_1̂, p) + M kl(μ̂_i, p + s) > L and μ̂_1̂ > μ̂_i − s.

    For rewards in [0, 1]: at the leader's mean p each term is stochastically less than an Exp(1) variable, so
    the level is α with (1 + L) e^{−L} = α.
    """
    every = np.broadcast_arrays(*pairs.means, pairs.leader_pulls, pairs.other_pulls, log_term)
    refuted = np.asarray(every[0] > every[1] - shift)
    leader, other, leader_pulls, other_pulls, least = (each[refuted] for each in every)
    ratio = pair_divergence(leader, other, shift, (leader_pulls, other_pulls))
    refuted[refuted] = ratio > least
    return refuted


def binomial_refuted(pairs: Pairs, shift: float, miss: FloatArray) -> BoolArray:
    """Whether two binomial sums refute that the other's probability is at least the leader's plus s.

    Let r(k) = sign(k/N − p) √(2N kl(k/N, p)). If the leader's probability is p and the other's p + s, then
    r_1 = r(A−1) and r_2 = −r(C+1), each with its own counts, are stochastically no larger than independent
    normal variables (Zubkov and Serov, Theory Probab. Appl. 57, 2013). So w_1 r_1 + w_2 r_2 > z, r_1 > y or
    r_2 > y has probability at most Φ̄(z) + 2Φ̄(y) = α if w_1² + w_2² = 1; the weights may depend on p. The
    pair is refuted if, *for every p*, one of the three holds.

    One p, the pooled estimate, is tried first. A range of p is then dealt with at once, as r_1 falls with p
    and r_2 rises; ranges that are not refuted at once are halved.
    """
    shrunk = Pairs(pairs.leader - 1, pairs.leader_pulls, pairs.other + 1, pairs.other_pulls)
    leader, other = shrunk.means
    refuted = (leader >= 0) & (other <= 1) & (leader > other - shift) & (miss > 0)
    tried, level = shrunk[refuted], miss[refuted]
    both = tried.leader + tried.other - shift * tried.other_pulls
    pooled = np.clip(both / (tried.leader_pulls + tried.other_pulls), 0, 1 - shift)
    test = _Binomials(tried, shift, -ndtri(OWN / 2 * level), -ndtri((1 - OWN) * level))
    spoken = test.refutes(*test.roots(pooled, pooled), *test.weights(_piece(pooled, shift)))
    spoken[spoken] = test[spoken].refuted()
    refuted[refuted] = spoken
    return np.asarray(refuted)


@dataclass(frozen=True)
class _Binomials:
    """Pairs of binomial sums, already one less or more, and the limits y and z of their test."""

    pairs: Pairs
    shift: float
    own: FloatArray
    together: FloatArray

    def __getitem__(self, chosen: IntArray | BoolArray) -> Self:
        return type(self)(self.pairs[chosen], self.shift, self.own[chosen], self.together[chosen])

    def roots(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least r_1 and r_2 for p between left and right."""
        first = _root(self.pairs.leader, self.pairs.leader_pulls, right)
        return first, -_root(self.pairs.other, self.pairs.other_pulls, left + self.shift)

    def refutes(self, first: FloatArray, second: FloatArray, one: FloatArray, two: FloatArray) -> BoolArray:
        """Whether one of the three conditions holds for all p of a range; from r_1, r_2, w_1, w_2."""
        together = one * first + two * second > self.together
        return np.asarray(together | (first > self.own) | (second > self.own))

    def weights(self, piece: IntArray) -> tuple[FloatArray, FloatArray]:
        """w_1 and w_2 on a piece: any give level α; with these w_1 r_1 + w_2 r_2 hardly depends on p."""
        p = _edge(np.asarray(piece + 0.5, dtype=np.float64), self.shift)
        q, pulls, other_pulls = p + self.shift, self.pairs.leader_pulls, self.pairs.other_pulls
        variance, other_variance = p * (1 - p) / pulls, q * (1 - q) / other_pulls
        # Where a pair at the limit has its roots, to the order that skews them.
        spread = self.together / np.sqrt(variance + other_variance) / 6
        one, two = np.sqrt(variance), np.sqrt(other_variance)
        one = one * np.clip(1 - spread * (1 - 2 * p) / pulls, 0.5, 1.5)
        two = two * np.clip(1 + spread * (1 - 2 * q) / other_pulls, 0.5, 1.5)
        length = np.hypot(one, two)
        return one / length, two / length

    def plausible(self) -> tuple[FloatArray, FloatArray]:
        """A range outside which r_1 > y or r_2 > y."""
        (leader, other), top = self.pairs.means, 1 - self.shift
        below = _reach(leader, self.pairs.leader_pulls, self.own)
        above = _reach(other, self.pairs.other_pulls, self.own)
        low, high = np.clip(leader - below, 0, top), np.clip(other - self.shift + above, 0, top)
        found_low, found_high = self.roots(low, low)[0] > self.own, self.roots(high, high)[1] > self.own
        return np.where(found_low, low, 0.0), np.where(found_high, high, top)

    def refuted(self) -> BoolArray:
        """Whether the three conditions leave no p, for pairs that they refute at the pooled estimate."""
        low, high = self.plausible()
        lowest, highest = _piece(low, self.shift), _piece(high, self.shift)
        pieces = np.where(high > low, highest - lowest + 1, 0)
        which = np.repeat(np.arange(len(low)), pieces)
        piece = lowest[which] + np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        left = np.maximum(low[which], _edge(piece, self.shift))
        right = np.minimum(high[which], _edge(piece + 1, self.shift))
        test, refuted = self[which], np.ones(len(low), dtype=bool)
        ranges = np.array([left, right, *test.roots(left, right), *test.weights(piece)])
        for halvings in range(HALVINGS + 1):
            open_ = refuted[which] & ~self[which].refutes(*ranges[2:])
            ranges, which = ranges[:, open_], which[open_]
            if halvings == HALVINGS or not len(which):
                break
            (left, right, first, second, *weights), test = ranges, self[which]
            middle = (left + right) / 2
            there = test.roots(middle, middle)
            refuted[which[~test.refutes(*there, *weights)]] = False
            # A half ends in the middle: its least roots are known.
            lower = left, middle, there[0], second, *weights
            upper = middle, right, first, there[1], *weights
            ranges, which = np.hstack([lower, upper]), np.tile(which, 2)
        refuted[which] = False
        return refuted


def _root(sums: FloatArray, pulls: Numbers, p: FloatArray) -> FloatArray:
    """r, the signed root of a binomial likelihood ratio; logarithms by hand, several times faster."""
    mean, inside = sums / pulls, np.minimum(np.maximum(p, TINY), 1 - 2**-53)
    missed = 1 - mean
    divergence = mean * np.log(np.maximum(mean, TINY) / inside)
    divergence += missed * np.log(np.maximum(missed, TINY) / (1 - inside))
    return np.asarray(np.copysign(np.sqrt(2 * pulls * np.maximum(divergence, 0)), mean - p))


def _reach(mean: FloatArray, pulls: Numbers, quantile: FloatArray) -> FloatArray:
    """About how far from a mean of so many rewards its expectation may lie."""
    variance = np.maximum(mean * (1 - mean), 1 / pulls)
    return np.asarray(MARGIN * quantile * np.sqrt(variance / pulls) + quantile**2 / (2 * pulls))


def _edge(piece: Numbers, shift: float) -> FloatArray:
    """Where a piece of the leader's possible probabilities, 0 to 1 − s, begins."""
    return np.asarray(np.sin(np.pi / (2 * PIECES) * piece) ** 2 * (1 - shift))


def _piece(p: FloatArray, shift: float) -> IntArray:
    """Which piece a probability is in, or one of its neighbours where it is an edge but for rounding."""
    angle = np.arcsin(np.sqrt(np.clip(p / (1 - shift), 0, 1)))
    return np.asarray(np.minimum((2 * PIECES / np.pi * angle).astype(np.int64), PIECES - 1))


@checked(miss=rare)
def sign_count(epsilon: float, miss: float) -> int:
    """The least b ≥ 1/ε with P(A ≥ C) ≤ α for binomial sums A, C of b rewards, C's probability larger by ε.

    A + (b − C) is a sum of 2b independent Bernoulli variables of mean (1−ε)/2 on average, so that
    P(A ≥ C) ≤ P(Bin(2b, (1−ε)/2) ≥ b) if bε ≥ 1 (Hoeffding, Ann. Math. Stat. 27, 1956), with equality where
    the two probabilities are (1 ∓ ε)/2; that falls with b. If e^{−bε²} ≤ α a smaller b is enough.
    """
    from scipy.stats import binom

    high = count(-np.log(miss) / epsilon**2) + 1
    low = min(math.ceil(1 / epsilon), high)
    mean = (1 - epsilon) / 2
    return low + bisect_left(range(low, high), True, key=lambda b: binom.sf(b - 1, 2 * b, mean) <= miss)
