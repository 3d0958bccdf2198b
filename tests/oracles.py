"""Plain loops over rounds, arms and single pulls: the oracles of the vectorised algorithms."""

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ebr.algorithms.game import Defaults, advance, drive


def elastic_batch_racing(pull, n_arms, deadline, epsilon, delta, sigma=0.5, again=False):
    """Follow the printed pseudo-code; `pull(arm)` draws one reward. Return pulls per arm, arm, rounds."""
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


class Rewards:
    """A fixed table of rewards, replicates × arms × pulls, repeated for ever.

    The k-th pull of an arm pays the same whoever asks, and however many are asked for at once.
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
    """Arms that pay another value in every round, each pull alike: only fresh samples can tell the best."""

    def __init__(self, values):
        self.values = values
        self.shape = (1, values.shape[1])
        self.round = 0

    def pay(self, pulls):
        self.round += 1
        return pulls * self.values[self.round - 1]


def play(algorithm, rewards, /, **context):
    """Drive the coroutine on a table; return the list of what it asked for and the recommended arms."""
    replicates, n_arms = rewards.shape
    asked = []

    def respond(pulls):
        asked.append(pulls)
        return rewards.pay(pulls)

    return asked, drive(algorithm.play(n_arms, replicates, **context), respond)


def overheard(game, hear):
    """The same game; each round's pulls and sums are told to `hear` as well."""
    turn = advance(game)
    while turn.pulls is not None:
        sums = yield turn.pulls
        hear(turn.pulls, sums)
        turn = advance(game, sums)
    return turn.arms


class Bare(Defaults):
    """What an algorithm of a test's own has beside its game."""

    epsilon, delta, sigma, deadline = 0.1, None, math.inf, None


def sequential_race(rewards, epsilon, delta, sigma, end):
    """One sweep over the survivors after another, one pull after another; return pulls per arm and arm."""
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
    """The recursion, with `values[0]` paid by each pull of this round; return [(arms, pulls), …] and arm."""
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


def delta_elimination(values, lot, rounds, epsilon, delta, released=False):
    """Algorithms 2 and 3 for k = 1; `values[r − 1]` is paid by each pull of round r, `lot(m)` draws from m.

    Return one {arm: pulls} a round, and the arm.
    """
    n, Q = len(values[0]), 57 / epsilon**2
    if released:
        ratio = ilog(rounds, n) / math.log(1 / delta)
        beta = 1 if ratio < 1 else 1 + ratio
    else:
        beta = 1 + ilog(rounds, n, base=1 / delta)
    remaining, aside, history, r = list(range(n)), [], [], 1
    delta_r = delta / 4
    while r < rounds and remaining:
        samples = math.ceil(beta * Q * math.log(1 / delta_r))
        history.append(dict.fromkeys(remaining, samples))
        ranked = sorted(remaining, key=lambda arm: -values[len(history) - 1][arm])
        share = max(delta_r**beta, 1e-300) * len(remaining)  # never zero: ⌈share⌉ is one at least
        drawn = ranked[lot(math.ceil(share / 2))]
        aside.append(drawn)
        top = [arm for arm in ranked[: math.ceil(2 * share)] if arm != drawn]
        if top:
            beta = beta * len(remaining) / (2 * len(top))
        elif released and len(aside) == 1:
            return history, drawn
        delta_r = delta / ((8 if released else 2) * 2**r)
        remaining = top
        r += 1
    last = {}
    for arm in remaining:
        last[arm] = math.ceil(beta * Q * math.log((8 if released else 2) * 2**rounds / delta))
    for arm in aside:
        last[arm] = math.ceil(Q * math.log((2 if released else 4) * len(aside) / delta))
    history.append(last)
    return history, max(last, key=lambda arm: values[len(history) - 1][arm])


class Lots:
    """One of so many, by lot; and the most there were."""

    def __init__(self, seed):
        self.generator = np.random.default_rng(seed)
        self.most = 0

    def draw(self, size):
        self.most = max(self.most, size)
        return int(self.generator.integers(size, size=(1, 1))[0, 0])


def kl(x, y):
    terms = [(x, y), (1 - x, 1 - y)]
    return sum(0 if a == 0 else math.inf if b <= 0 else a * math.log(a / b) for a, b in terms)


@cache
def evidence(leader, other, shift):
    """What two means say against "the other is better than the leader by the shift": X4, by search."""
    search = minimize_scalar(
        lambda p: kl(leader, p) + kl(other, p + shift),
        bounds=(0, 1 - shift),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return search.fun


def log_term(model, miss, last):
    if model == "Gaussian":
        return max(NormalDist().inv_cdf(1 - miss), 0) ** 2 / 2
    if model == "bounded" and not last:
        return brentq(lambda x: (1 + x) * math.exp(-x) - miss, 0, 800, xtol=1e-13)
    return math.log(1 / miss)


def behind(model, sigma, pulls, L, leader, other, shift):
    """Whether the other arm cannot be better than the leader by the shift."""
    if model == "bounded":
        return pulls * evidence(leader, other, shift) > L
    return leader - other > 2 * sigma * math.sqrt(L / pulls) - shift


def sharp_race(rewards, deadline, epsilon, delta, sigma, model, start, split):
    """One race, arm by arm; return the pulls of each round and the arm."""
    n, period = len(rewards), len(rewards[0])
    rounds = range(1, deadline + 1)
    start = max(start, epsilon)
    widths = [start ** (1 - t / deadline) * epsilon ** (t / deadline) for t in rounds]
    weights = [1 / width if split == "late" else 1 for width in widths]
    log_terms = [
        log_term(model, delta * weight / sum(weights) / (n - 1), last=t == deadline)
        for t, weight in zip(rounds, weights, strict=True)
    ]
    targets = [math.floor(4 * sigma**2 * L / w**2) + 1 for L, w in zip(log_terms, widths, strict=True)]
    survivors, asked, pulled = list(range(n)), [], 0
    for target, L in zip(targets, log_terms, strict=True):
        target = min(target, targets[-1])
        if target <= pulled:
            continue
        asked.append([(target - pulled) * (i in survivors) for i in range(n)])
        pulled = target
        times, rest = divmod(pulled, period)
        mean = {i: (times * sum(rewards[i]) + sum(rewards[i][:rest])) / pulled for i in survivors}
        best = max(mean.values())
        leader = next(i for i in survivors if mean[i] == best)
        seen = (model, sigma, pulled, L, best)
        survivors = [i for i in survivors if i == leader or not behind(*seen, mean[i], 0)]
        if all(behind(*seen, mean[i], epsilon) for i in survivors if i != leader):
            break
    return asked, leader


def sharp_schedule(n_arms, deadline, epsilon, delta=0.05, sigma=0.5, model="sub-Gaussian"):
    """X3 and X4 in plain numbers: a survivor's pulls, all told, and the width of each round."""
    start, rounds = max(0.5, epsilon), range(1, deadline + 1)
    wished = [start * (epsilon / start) ** (t / deadline) for t in rounds]
    shares = [delta / width / sum(1 / w for w in wished) for width in wished]
    terms = [
        log_term(model, share / (n_arms - 1), t == deadline) for t, share in zip(rounds, shares, strict=True)
    ]
    needed = [math.floor(4 * sigma**2 * L / width**2) + 1 for L, width in zip(terms, wished, strict=True)]
    pulls = [min(max(needed[:t]), needed[-1]) for t in rounds]
    return pulls, [2 * sigma * math.sqrt(L / b) for L, b in zip(terms, pulls, strict=True)]


@dataclass
class Diary(Bare):  # pulls the same in every run, whatever comes back, and keeps what it is sent
    rounds: tuple

    def play(self, n_arms, replicates=1, **_):
        self.sent = np.zeros((replicates, n_arms))
        for pulls in self.rounds:
            self.sent += yield np.tile(pulls, (replicates, 1))
        return self.sent.argmax(axis=1)
