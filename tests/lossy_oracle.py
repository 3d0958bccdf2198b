"""Sharp EBR with missing rewards and futility: one race in plain loops, which shares no code with ebr."""

import math
from statistics import NormalDist

from scipy.optimize import brentq, minimize_scalar


def kl(x, y):
    def part(a, b):
        return 0 if a == 0 else math.inf if b <= 0 else a * math.log(a / b)

    return part(x, y) + part(1 - x, 1 - y)


def schedule(n, deadline, epsilon, delta, sigma, model):
    """δ_t/(n−1) of each round, and b_t."""
    start, rounds = max(0.5, epsilon), range(1, deadline + 1)
    widths = [start ** (1 - t / deadline) * epsilon ** (t / deadline) for t in rounds]
    levels = [delta / w / sum(1 / v for v in widths) / (n - 1) for w in widths]
    L = [term(model, level, t == deadline) for t, level in zip(rounds, levels, strict=True)]
    wished = [math.floor(4 * sigma**2 * x / w**2) + 1 for x, w in zip(L, widths, strict=True)]
    return levels, [min(max(wished[:t]), wished[-1]) for t in rounds]


def term(model, level, last):
    if model == "Gaussian":
        return max(-NormalDist().inv_cdf(level), 0) ** 2 / 2
    if model == "bounded" and not last:
        return brentq(lambda x: math.log1p(x) - x - math.log(level), 0, 1000, xtol=1e-13)
    return -math.log(level)


def refuted(model, level, last, sigma, leader, other, shift):
    """Whether (N, sum) of a leader refute that the other's mean is larger by the shift."""
    (N, A), (M, C) = leader, other
    x, y, L = A / N, C / M, term(model, level, last)
    if model != "bounded" or last:
        return x - y + shift > sigma * math.sqrt(2 * L / N + 2 * L / M)
    if x <= y - shift:
        return False
    low, high = max(y - shift, 0), min(x, 1 - shift)

    def ratio(p):
        return N * kl(x, p) + M * kl(y, min(p + shift, 1))

    inside = minimize_scalar(ratio, bounds=(low, high), method="bounded", options={"xatol": 1e-13}).fun
    return min(ratio(low), ratio(high), inside) > L


def lossy_race(pay, keep, n, deadline, epsilon, delta, sigma, model, control=None, margin=None):
    """One race: `pay(arm)` is the next reward that is not lost, `keep(round, arm, asked)` how many are not.

    Return what was asked round by round, the arm (−1: none) and what it is within.
    """
    levels, targets = schedule(n, deadline, epsilon, delta, sigma, model)
    counts, sums, alive, asked = [0] * n, [0.0] * n, list(range(n)), []
    for t in range(deadline):
        owed = [max(targets[t] - counts[i], 0) if i in alive else 0 for i in range(n)]
        if not any(owed):
            continue
        asked.append(owed)
        for i in alive:
            for _ in range(keep(len(asked) - 1, i, owed[i])):
                counts[i] += 1
                sums[i] += pay(i)
        last = t == deadline - 1

        def beats(i, j, shift, level=levels[t], last=last):
            if not counts[i] or not counts[j]:
                return False
            return refuted(model, level, last, sigma, (counts[i], sums[i]), (counts[j], sums[j]), shift)

        def useless(j, beats=beats):
            complete = counts[control] == counts[j] == targets[-1]
            return beats(control, j, margin) or (complete and beats(control, j, margin, levels[-1], True))

        if control in alive and all(useless(j) for j in alive if j != control):
            return asked, control, margin
        alive = [i for i in alive if not any(beats(j, i, 0) for j in alive if j != i)]
        good = [i for i in alive if all(beats(i, j, epsilon) for j in alive if j != i)]
        if good:
            return asked, max(good, key=lambda i: sums[i] / counts[i]), epsilon
    return asked, *at_the_end(counts, sums, alive, sigma, term(model, levels[-1], True), epsilon)


def at_the_end(counts, sums, alive, sigma, L, epsilon):
    heard = [i for i in alive if counts[i]]
    if not heard:
        return -1, math.inf

    def least(i):
        ahead = [
            sums[j] / counts[j]
            - sums[i] / counts[i]
            + sigma * math.sqrt(2 * L / counts[i] + 2 * L / counts[j])
            for j in heard
            if j != i
        ]
        return max(ahead, default=-math.inf)

    best = min(heard, key=least)
    return best, max(least(best), epsilon) if heard == alive else math.inf
