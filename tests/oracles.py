"""Oracles of the algorithms: plain loops over rounds, arms and pulls that share no code with them."""

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from ebr.algorithms.game import Algorithm, advance, drive
from ebr.theory.selection import bechhofer_count  # which has tests of its own


class Rewards:
    """A fixed table of rewards, replicates × arms × pulls, repeated without end.

    The k-th pull of an arm always pays the same, however pulls are grouped.
    """

    def __init__(self, table):
        replicates, arms, self.period = table.shape
        self.shape = (replicates, arms)
        self.sums = np.concatenate([np.zeros((*self.shape, 1)), table.cumsum(axis=2)], axis=2)
        self.used = np.zeros(self.shape, dtype=np.int64)

    def up_to(self, pulls):
        times, rest = np.divmod(pulls, self.period)
        return times * self.sums[:, :, -1] + np.take_along_axis(self.sums, rest[:, :, None], axis=2)[:, :, 0]

    def pay(self, pulls):
        before = self.up_to(self.used)
        self.used = self.used + pulls
        return self.up_to(self.used) - before


class Seasons:
    """Arms whose pulls all pay the same value within a round, and another value in the next."""

    def __init__(self, values):
        self.values = values
        self.shape = (1, values.shape[1])
        self.round = 0

    def pay(self, pulls):
        self.round += 1
        return pulls * self.values[self.round - 1]


def play(algorithm, rewards, /, **context):
    """Play an algorithm on a table; return the pulls of each round and the recommended arms."""
    replicates, n_arms = rewards.shape
    asked = []

    def respond(pulls):
        asked.append(pulls)
        return rewards.pay(pulls)

    return asked, drive(algorithm.play(n_arms, replicates, **context), respond)


def overheard(game, hear):
    """The same game, which also passes each round's pulls and sums to `hear`."""
    turn = advance(game)
    while turn.pulls is not None:
        sums = yield turn.pulls
        hear(turn.pulls, sums)
        turn = advance(game, sums)
    return turn.arms


class Bare(Algorithm):
    """The attributes that an algorithm needs beside `play`, for algorithms that tests define."""

    epsilon, delta, sigma, deadline = 0.1, None, math.inf, None


@dataclass
class Diary(Bare):  # pulls the same in every run, and records the sums
    rounds: tuple

    def play(self, n_arms, replicates=1, **_):
        self.sent = np.zeros((replicates, n_arms))
        for pulls in self.rounds:
            self.sent += yield np.tile(pulls, (replicates, 1))
        return self.sent.argmax(axis=1)


def elastic_batch_racing(pull, n_arms, deadline, epsilon, delta, sigma=0.5, again=False):
    """Algorithm 1's pseudo-code; `pull(arm)` draws one reward. Return pulls per arm, the arm, and rounds."""
    log_term = math.log(n_arms * deadline / delta)
    survivors = set(range(n_arms))
    rewards = {arm: [] for arm in survivors}
    rounds = 0
    for t in range(1, deadline + 1):
        target = math.ceil(80 * sigma**2 * log_term * epsilon ** (-2 * t / deadline))
        before = sum(map(len, rewards.values()))
        for arm in survivors:
            while len(rewards[arm]) < target:
                rewards[arm].append(pull(arm))
        rounds += sum(map(len, rewards.values())) > before
        mean = {arm: sum(rewards[arm]) / len(rewards[arm]) for arm in survivors}
        width = sigma * math.sqrt((4 + 2 * math.log(2)) * log_term / target)
        best_lower = max(mean[arm] - width for arm in survivors)
        leader = max(mean.values())
        dropped = {
            arm
            for arm in survivors
            if mean[arm] + width < best_lower + epsilon / min(n_arms, deadline) and mean[arm] < leader
        }
        if again and len(survivors) == 1:
            break
        survivors -= dropped
        if not again and len(survivors) == 1:
            break
    winner = max(sorted(survivors), key=lambda arm: mean[arm])
    return [len(rewards[arm]) for arm in range(n_arms)], winner, rounds


def sequential_race(rewards, epsilon, delta, sigma, end):
    """Sequential racing, sweep by sweep and pull by pull; return pulls per arm and the arm."""
    n, period = len(rewards), len(rewards[0])
    omega = math.sqrt(delta / (6 * n))
    survivors = list(range(n))
    sums, pulls, sweeps = [0] * n, [0] * n, 0
    while True:
        for arm in survivors:
            sums[arm] += rewards[arm][pulls[arm] % period]
            pulls[arm] += 1
        sweeps += 1
        width = 4 * sigma * math.sqrt(math.log(math.log2(2 * sweeps) / omega) / sweeps)
        mean = {arm: sums[arm] / sweeps for arm in survivors}
        best = max(mean.values())
        survivors = [
            arm for arm in survivors if mean[arm] + width >= best - width + epsilon / n or mean[arm] == best
        ]
        leader = next(arm for arm in survivors if mean[arm] == best)
        if len(survivors) == 1:
            return pulls, leader
        others = [mean[arm] + width for arm in survivors if arm != leader]
        if end == "certified" and all(best - width >= upper - epsilon for upper in others):
            return pulls, leader


def ilog(r, a, base=math.e):
    return a if r == 0 else max(math.log(ilog(r - 1, a, base)) / math.log(base), 1)


def aggressive_elimination(values, arms, r, delta, epsilon, rounded=math.ceil):
    """AE's recursion. Each pull of this round pays `values[0]`. Return [(arms, pulls), …] and the arm."""
    m = len(arms)
    tosses = math.ceil(2 / epsilon**2 * (ilog(r, m) + math.log(8 / delta)))
    ranked = sorted(arms, key=lambda arm: -values[0][arm])
    if r == 1:
        return [(set(arms), tosses)], ranked[0]
    kept = min(1 + rounded(m / ilog(r - 1, m)), m)
    later, arm = aggressive_elimination(
        values[1:], ranked[:kept], 1 if kept <= 2 else r - 1, delta / 2, epsilon, rounded
    )
    return [(set(arms), tosses), *later], arm


def delta_elimination(values, lots, rounds, epsilon, delta, released=False, k=1):
    """Algorithms 2 and 3 of Jin et al. with lists; `lots(pool, drawn)` draws places.

    Each pull of round r pays `values[r − 1]`. Return one {arm: pulls} per round, and the arms.
    """
    n, Q, later, again = len(values[0]), 57 / epsilon**2, *((8, 2) if released else (2, 4))
    if released:
        ratio = ilog(rounds, n) / math.log(k / delta)
        beta = 1 if ratio < 1 else 1 + ratio
    else:
        beta = 1 + ilog(rounds, n, base=k / delta)
    remaining, aside, history, delta_r = list(range(n)), [], [], delta / 4
    for r in range(1, rounds):
        history.append(dict.fromkeys(remaining, math.ceil(beta * Q * math.log(k / delta_r))))
        ranked = sorted(remaining, key=lambda arm: -values[len(history) - 1][arm])
        x = max((delta_r / k) ** beta, 1e-300) * len(remaining)  # above 0, so that ⌈x⌉ is at least 1
        places = min(k, len(remaining))
        drawn = [ranked[place] for place in lots(min(len(ranked), math.ceil(x / 2) + places - 1), places)]
        aside += drawn
        top = [arm for arm in ranked[: math.ceil(2 * x) + places - 1] if arm not in drawn]
        if not top and released and len(aside) <= k:
            return history, sorted(aside)
        beta *= len(remaining) / (2 * max(len(top), 1))
        remaining, delta_r = top, delta / (later * 2**r)
        if not top:
            break
    last = dict.fromkeys(remaining, math.ceil(beta * Q * math.log(later * k * 2**rounds / delta)))
    last |= dict.fromkeys(aside, math.ceil(Q * math.log(again * max(len(aside), 1) / delta)))
    history.append(last)
    return history, sorted(sorted(last, key=lambda arm: -values[len(history) - 1][arm])[:k])


class Rng:
    """Draws places of a pool by lot, and records the size of the largest pool."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.most = 0

    def draw(self, pool, drawn):
        self.most = max(self.most, pool)
        if drawn == 1:
            return self.generator.integers(pool, size=(1, 1))[0].tolist()
        return self.generator.random((1, pool)).argsort(axis=1)[0, :drawn].tolist()


@cache
def quantile(alpha):
    return -NormalDist().inv_cdf(alpha)


def kl(x, y):
    terms = [(x, y), (1 - x, 1 - y)]
    return sum(0 if a == 0 else math.inf if b <= 0 else a * math.log(a / b) for a, b in terms)


@cache
def log_term(model, miss, last=False):
    """L of a test at this level. In its last round a bounded race tests a sign."""
    if model in ("Gaussian", "Bernoulli"):
        return max(quantile(miss), 0) ** 2 / 2
    if model == "bounded" and not last:
        return brentq(lambda x: math.log1p(x) - x - math.log(miss), 0, 1000, xtol=1e-13)
    return -math.log(miss)


@cache
def pair_ratio(a, N, c, M, shift):
    """X4's evidence that the second mean is not s larger: min_p N kl(a/N, p) + M kl(c/M, p + s)."""
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


def refuted(model, sigma, L, leader, other, shift):
    """Whether the leader's (N, sum) and the other's refute that the other's mean is larger by the shift."""
    (N, a), (M, c) = leader, other
    if model == "bounded":
        return pair_ratio(a, N, c, M, shift) > L
    return a / N - c / M + shift > sigma * math.sqrt(2 * L * (1 / N + 1 / M))


def accept_and_reject(rewards, k, targets, drops, ends):
    """A race for the k best arms, arm by arm; return the pulls of each round and the arms.

    `drops(t, ahead, behind)` says whether an arm (pulls, sum) is proved better than another after round t;
    `ends(t, last, following)` says whether the race is over.
    """
    n, period = len(rewards), len(rewards[0])
    undecided, accepted, asked, pulled = set(range(n)), set(), [], 0
    for t, target in enumerate(targets):
        if target > pulled:
            asked.append([(target - pulled) * (i in undecided) for i in range(n)])
            pulled = target
        times, rest = divmod(pulled, period)
        seen = {i: (pulled, times * sum(rewards[i]) + sum(rewards[i][:rest])) for i in undecided}
        ranked = sorted(undecided, key=lambda i: (-seen[i][1], i))
        places = k - len(accepted)
        chosen, others = ranked[:places], ranked[places:]
        last, following = seen[chosen[-1]], seen[others[0]]
        if ends(t, last, following):
            break
        accepted |= {i for i in chosen if drops(t, seen[i], following)}
        undecided -= accepted | {i for i in others if drops(t, last, seen[i])}
    return asked, sorted(accepted | set(chosen))


def sharp_design(n, deadline, epsilon, delta, sigma, model, start=0.5, split="late", k=1):
    """X3 and X4 in plain numbers: a survivor's total pulls and L, for each round."""
    start, rounds = max(start, epsilon), range(1, deadline + 1)
    widths = [start ** (1 - t / deadline) * epsilon ** (t / deadline) for t in rounds]
    weights = [1 / width if split == "late" else 1 for width in widths]
    misses = [delta * weight / sum(weights) / (k * (n - k)) for weight in weights]
    terms = [log_term(model, miss, t == deadline) for t, miss in zip(rounds, misses, strict=True)]
    wished = [math.floor(4 * sigma**2 * L / w**2) + 1 for L, w in zip(terms, widths, strict=True)]
    return [min(max(wished[:t]), wished[-1]) for t in rounds], terms


def sharp_schedule(n_arms, deadline, epsilon, delta=0.05, sigma=0.5, model="sub-Gaussian"):
    """A survivor's total pulls and the width, for each round."""
    pulls, terms = sharp_design(n_arms, deadline, epsilon, delta, sigma, model)
    return pulls, [2 * sigma * math.sqrt(L / b) for L, b in zip(terms, pulls, strict=True)]


def sharp_race(rewards, deadline, epsilon, delta, sigma, model, start, split, k=1):
    """Sharp EBR, arm by arm; return the pulls of each round and the arm, or the k arms."""
    pulls, terms = sharp_design(len(rewards), deadline, epsilon, delta, sigma, model, start, split, k)
    new = [t for t in range(deadline) if t == 0 or pulls[t] > pulls[t - 1]]

    def told(shift):
        return lambda t, ahead, other: refuted(model, sigma, terms[new[t]], ahead, other, shift)

    asked, arms = accept_and_reject(rewards, k, [pulls[t] for t in new], told(0), told(epsilon))
    return asked, arms if k > 1 else arms[0]


def lossy_race(pay, keep, n, deadline, epsilon, delta, sigma, model, control=None, margin=None):
    """Sharp EBR with losses: `keep(round, arm, asked)` rewards come in, and `pay(arm)` is the next.

    Return the pulls of each round, the arm (−1: none) and how far below the best it may be.
    """
    targets, terms = sharp_design(n, deadline, epsilon, delta, sigma, model)
    counts, sums, alive, asked = [0] * n, [0.0] * n, list(range(n)), []
    for t, target in enumerate(targets):
        owed = [max(target - counts[i], 0) if i in alive else 0 for i in range(n)]
        if not any(owed):
            continue
        asked.append(owed)
        for i in alive:
            for _ in range(keep(len(asked) - 1, i, owed[i])):
                counts[i] += 1
                sums[i] += pay(i)

        def beats(i, j, shift, t=t):
            if not counts[i] or not counts[j]:
                return False
            sign = model == "bounded" and t == deadline - 1
            leader, other = (counts[i], sums[i]), (counts[j], sums[j])
            return refuted("sub-Gaussian" if sign else model, sigma, terms[t], leader, other, shift)

        def useless(j, beats=beats):
            complete = counts[control] == counts[j] == targets[-1]
            return beats(control, j, margin) or (complete and beats(control, j, margin, deadline - 1))

        if control in alive and all(useless(j) for j in alive if j != control):
            return asked, control, margin
        alive = [i for i in alive if not any(beats(j, i, 0) for j in alive if j != i)]
        good = [i for i in alive if all(beats(i, j, epsilon) for j in alive if j != i)]
        if good:
            return asked, max(good, key=lambda i: sums[i] / counts[i]), epsilon
    return asked, *at_the_end(counts, sums, alive, sigma, terms[-1], epsilon)


def at_the_end(counts, sums, alive, sigma, L, epsilon):
    heard = [i for i in alive if counts[i]]
    if not heard:
        return -1, math.inf

    def ahead(i, j):
        width = sigma * math.sqrt(2 * L / counts[i] + 2 * L / counts[j])
        return sums[j] / counts[j] - sums[i] / counts[i] + width

    def least(i):
        return max((ahead(i, j) for j in heard if j != i), default=-math.inf)

    best = min(heard, key=least)
    return best, max(least(best), epsilon) if heard == alive else math.inf


def roots(k, N, p):
    """Zubkov and Serov's r(k) at each p."""
    with np.errstate(divide="ignore", invalid="ignore"):
        x = k / N
        one = 0 if k == 0 else x * (math.log(x) - np.log(p))
        two = 0 if k == N else (1 - x) * (math.log1p(-x) - np.log1p(-p))
    return np.sign(x - p) * np.sqrt(2 * N * np.maximum(one + two, 0))


def margins(p, piece, a, N, c, M, shift, alpha):
    """The largest margin of the three conditions at each p, which lies in the piece of number `piece`."""
    y, z = quantile(0.05 * alpha), quantile(0.9 * alpha)
    middle = (1 - shift) * np.sin(np.pi / 128 * (piece + 0.5)) ** 2
    variance, other = middle * (1 - middle) / N, (middle + shift) * (1 - middle - shift) / M
    slope = z / 6 / np.sqrt(variance + other)
    one = np.sqrt(variance) * np.clip(1 - slope * (1 - 2 * middle) / N, 0.5, 1.5)
    two = np.sqrt(other) * np.clip(1 + slope * (1 - 2 * middle - 2 * shift) / M, 0.5, 1.5)
    first, second = roots(a - 1, N, p), -roots(c + 1, M, np.minimum(p + shift, 1))
    with np.errstate(invalid="ignore"):  # ∞ − ∞, where one term alone is enough
        both = (one * first + two * second) / np.hypot(one, two) - z
    return np.fmax(np.fmax(first - y, second - y), both)


@cache
def least_margin(a, N, c, M, shift, alpha, points=24):
    """The least margin on a grid of p; where margins are small, on a grid 200 times as fine."""
    if a < 1 or c >= M or (a - 1) / N <= (c + 1) / M - shift:
        return -math.inf
    data = (a, N, c, M, shift, alpha)
    places = np.linspace(0, 64, 64 * points + 1)[:-1]  # 64 pieces of equal angle
    parts = np.linspace(0, 1, 200)
    step = 64 / len(places)

    def at(place):
        p = (1 - shift) * np.sin(np.pi / 128 * place) ** 2
        return margins(np.clip(p, 1e-300, 1 - 2**-53), np.minimum(np.floor(place), 63), *data)

    coarse = at(places)
    least = coarse.min()
    reach = 2 * math.pi / 128 * step * (math.sqrt(N) + math.sqrt(M))  # roots change by 2√N per radian
    if 0 < least < reach:
        close = places[np.minimum(coarse, np.append(coarse[1:], coarse[-1])) < reach]
        inner = close[:, None] + step * parts
        inner[:, -1] -= 1e-9  # still in the same piece
        least = at(inner.ravel()).min()
    return least


class TooCloseError(Exception):
    """Every p is refuted, but the margin is so small that twelve bisections of a piece may not show it."""


def clearly_refuted(a, N, c, M, shift, alpha):
    """Whether every p is refuted; raise an error if the margin is too small for bisected pieces."""
    margin = least_margin(a, N, c, M, shift, alpha)
    if 0 < margin < 2 * math.pi / 128 / 2**12 * (math.sqrt(N) + math.sqrt(M)):
        raise TooCloseError
    return margin > 0


@cache
def sign_count(epsilon, alpha):
    """The least count from ⌈1/ε⌉ on whose error is at most α; Hoeffding's count if that is less."""
    enough = math.ceil(-math.log(alpha) / epsilon**2) + 1
    b = np.arange(min(math.ceil(1 / epsilon), enough), enough)
    few = b[binom.sf(b - 1, 2 * b, (1 - epsilon) / 2) <= alpha]
    return int(few[0]) if len(few) else enough


def last_count(n, epsilon, sigma, model, share):
    """b_T, where the largest sum wins with error probability `share`."""
    if model == "Gaussian":
        return bechhofer_count(n, epsilon, share, sigma)
    if model == "Bernoulli":
        return sign_count(epsilon, share / (n - 1))
    return math.floor(4 * sigma**2 * math.log((n - 1) / share) / epsilon**2) + 1


@cache
def pausing_schedule(n, deadline, epsilon, delta, sigma, model, start, lead):
    """The grid's counts from b_0 = 0, each pair's level, and how many stages arms may be ahead."""
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
    wished[-1] = last_count(n, epsilon, sigma, model, share)
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
    """Pausing EBR, arm by arm; return the pulls of each round and the arm."""
    n, period = len(rewards), len(rewards[0])
    b, alpha, ahead = pausing_schedule(n, deadline, epsilon, delta, sigma, model, start, lead)
    top, highest = len(b) - 1, 1
    stage, aim, rested, certifier = [0] * n, [1] * n, [False] * n, [None] * n
    alive, asked = list(range(n)), []

    def total(i):
        times, rest = divmod(b[stage[i]], period)
        return times * sum(rewards[i]) + sum(rewards[i][:rest])

    def speaks(k, i, shift):
        """Whether the rewards of k and i refute that i is better than k by the shift."""
        u, s = stage[k], stage[i]
        if alpha[u, s] == 0:
            return False
        if model == "Bernoulli":
            return clearly_refuted(total(k), b[u], total(i), b[s], shift, alpha[u, s])
        L = log_term(model, alpha[u, s])
        return refuted(model, sigma, L, (b[u], total(k)), (b[s], total(i)), shift)

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


@cache
def certified_beats(y, x, count, critical, floor, shift):
    """Whether, in a certified race, the sum y refutes that the arm with the sum x is better by the shift."""
    if y < count and not certified_beats(y + 1, x, count, critical, floor, shift):  # limits rise
        return False
    for other in range(x + 1):  # smaller sums must be refuted, too
        rate = min(max((other + y + 2) / (2 * count + 4), shift / 2), 1 - shift / 2)
        boundary = max(critical * (4 * rate * (1 - rate)) ** 0.4, min(floor, critical))
        reach = boundary * math.sqrt(count * (2 * rate * (1 - rate) - shift**2 / 2))
        if not y - other + shift * count > reach:
            return False
    return True


def all_paths(pulls):
    """Every sequence of 0/1 rewards, one per row, and the number of ones in each."""
    rows = np.array([[row >> place & 1 for place in range(pulls)] for row in range(2**pulls)])
    return rows, rows.sum(axis=1)


class CertifiedPairs:
    """Every pair of paths of an arm (rows) and another: who drops it or errs, and whose last sums tie."""

    def __init__(self, looks, boundaries, epsilon, pruning=1.0, floor=10.0, shifts=()):
        paths, self.ones = all_paths(looks[-1])
        self.pulls, sums = looks[-1], paths.cumsum(axis=1)
        near, far, widest, gone = np.zeros((4, len(paths), len(paths)), dtype=bool)
        for best, one in enumerate(sums):
            for rival, other in enumerate(sums):
                at = best, rival
                for count, critical in zip(looks, boundaries, strict=False):
                    x, y = one[count - 1], other[count - 1]
                    drop = count, pruning * critical, pruning * floor, 0.0
                    if not gone[at]:
                        near[at] |= certified_beats(y, x, *drop)
                        far[at] |= certified_beats(y, x, count, critical, floor, epsilon)
                        widest[at] |= any(certified_beats(y, x, count, critical, floor, s) for s in shifts)
                    gone[at] |= certified_beats(x, y, *drop)
        difference = self.ones[None, :] - self.ones[:, None]
        self.sure = {0.0: near, epsilon: near | far | ((difference > 0) & ~gone)}
        self.tied = {0.0: np.zeros_like(near), epsilon: (difference == 0) & ~(near | far | gone)}
        for shift in shifts:
            self.sure[shift] = self.sure[epsilon] | widest
            self.tied[shift] = self.tied[epsilon] & ~widest

    def masses(self, rate):
        return rate**self.ones * (1 - rate) ** (self.pulls - self.ones)

    def given(self, shift, rate):
        """For each path of the first arm: how often a bad one errs for sure, and how often their sums tie."""
        return self.sure[shift] @ self.masses(rate), self.tied[shift] @ self.masses(rate)

    def dropped(self, rate, other):
        """P(an arm of the other rate drops one of this rate)."""
        return self.masses(rate) @ self.sure[0.0] @ self.masses(other)

    def some(self, rate, bad, kinds):
        """P(one of so many bad arms errs), as if independent given the last sum; of the worst kind."""
        total = 0.0
        for ones in range(self.pulls + 1):
            paths = self.ones == ones
            errs = [
                sure[paths].mean() + tied[paths].mean() / 2 for sure, tied in (self.given(*k) for k in kinds)
            ]
            total += self.masses(rate)[paths].sum() * (1 - (1 - max(errs)) ** bad)
        return total

    def failure(self, n_arms, low, high, parts):
        """The bound on a race's failures by all chains, for a cell of the best rate; `parts` cells in ε."""
        kinds = [(shift, high - shift) for shift in self.sure if 0 < shift <= high]
        epsilon = min(shift for shift in self.sure if shift > 0)
        start, size = max(low - epsilon, 0.0), epsilon / parts
        cells = [start + size * k for k in range(math.ceil((high - start) / size))]
        some, dropped = cache(lambda rate, bad: self.some(rate, bad, kinds)), cache(self.dropped)

        def chain(rate, good, bad):
            through = (
                dropped(rate, min(own + size, high)) * min(1, chain(own, good - 1, bad)) for own in cells
            )
            return some(rate, bad) + (good * max(through) if good else 0)

        return max(chain(low, n_arms - 1 - bad, bad) for bad in range(1, n_arms)) if kinds else 0.0


def certified_race(rewards, race, lots):
    """A certified race on arms × pulls of 0/1 rewards. Final ties go to the largest lot."""
    alive = list(range(len(rewards)))
    for look, count in enumerate(race.looks):
        sums = [int(sum(row[:count])) for row in rewards]
        if look + 1 == len(race.looks):
            return max(alive, key=lambda arm: (sums[arm], lots[arm]))
        critical, leader = race.boundaries[look], max(alive, key=lambda arm: sums[arm])

        def beaten(arm, other, shift, factor=1.0, count=count, critical=critical, sums=sums):
            tested = sums[arm], sums[other], count, factor * critical, factor * race.floor, shift
            return certified_beats(*tested) or (shift > 0 and beaten(arm, other, 0.0, race.pruning))

        def best(arm, shift, alive=alive, beaten=beaten):
            return all(beaten(arm, other, shift) for other in alive if other != arm)

        if race.control in alive and best(race.control, race.margin):
            return race.control
        if best(leader, race.epsilon):
            return leader
        alive = [arm for arm in alive if not beaten(leader, arm, 0.0, race.pruning)]
        if len(alive) == 1:
            return alive[0]
    raise AssertionError
