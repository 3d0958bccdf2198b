"""Pulls of each arm: how many a claimant's claims need, and at what pace. No guarantee rests on them."""

import math

import numpy as np

from ebr.arrays import BoolArray, FloatArray, IntArray

HALVINGS = 8  # bisections for the claimant's count, on a logarithmic scale
MOST = 60.0  # the claimant's largest count, in multiples of the least possible one
FARTHEST = 8.0  # a purse counts as at most so many nats below δ
NEAREST = 1.0  # a purse counts as at least so many nats below 1
SLOWEST = 1.35  # least growth of the total in a round, until the claims are within reach
LINEAR = 1 / 6  # of a difference, added to the variance of rewards that may hide rare large ones
LEAST_GAP = 0.5  # least Δ + s, in multiples of s: no rival is believed to be better by more than s/2


def cheapest(width: FloatArray, variance: FloatArray, own: FloatArray, claimant: IntArray) -> FloatArray:
    """The counts of least total with v_k/m_k + v_b/m_b ≤ h_b² for all b; k is the claimant, v_k its `own`.

    `width` is h_b, ∞ for an arm that need not be pulled. These are the proportions of the characteristic time
    T*(ν). The total is convex in m_k.
    """
    limit = width**2
    least = own / limit.min(axis=1)
    low, high = np.full(len(own), 1.02), np.full(len(own), MOST)
    for _ in range(HALVINGS):
        factor = np.sqrt((low - 1) * (high - 1)) + 1
        room = limit - (own / (least * factor))[:, None]
        rising = (variance / room**2).sum(axis=1) * own < (least * factor) ** 2
        low, high = np.where(rising, low, factor), np.where(rising, factor, high)
    counts = variance / (limit - (own / (least * high))[:, None])
    np.put_along_axis(counts, claimant[:, None], (least * high)[:, None], axis=1)
    return np.asarray(counts)


def paced(have: FloatArray, cost: FloatArray, rounds_left: int) -> FloatArray:
    """The part of what is needed that is asked for in the coming round.

    The total grows geometrically, so as to have room for three times what is needed in time, and by 35 % at
    least. What is within reach is asked for with a quarter more, or as a twentieth of all pulls so far.
    """
    faster = np.maximum((1 + 3 * cost / have) ** (1 / rounds_left), SLOWEST)
    return np.minimum((faster - 1) * have / cost, np.maximum(1.25, have / cost / 20))


def within(asked: FloatArray, counts: IntArray, last: IntArray, out: BoolArray) -> IntArray:
    """Cut what is asked for: b_T is not passed over, and all above b_T is at most √n b_T and what is saved.

    Saved is what arms that are out lack of b_T. So the total stays below (n + √n) b_T.
    """
    below = counts < last
    asked = np.where(below, np.minimum(asked, last - counts), asked)
    above = np.where(below, 0, asked)
    saved = np.where(out, np.maximum(last - counts, 0), 0).sum(axis=1)
    spared = math.sqrt(counts.shape[1]) * last[:, 0] + saved
    room = np.maximum(spared - np.maximum(counts - last, 0).sum(axis=1), 0)
    cut = 1 - np.minimum(room / np.maximum(above.sum(axis=1), 1), 1)
    return np.asarray(np.floor(asked - above * cut[:, None]), dtype=np.int64)
