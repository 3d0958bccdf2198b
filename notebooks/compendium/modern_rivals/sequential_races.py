"""The races of `sequential_rivals`, compiled: one pull depends on those before it.

Every race is the same loop: a leader, a challenger, whether the race ends, and who is pulled. Every operation
is in the order in which it is written (no fast mathematics), and what decides a pull is the result of
converged iterations or of exact arithmetic, so that no decision hangs on a processor's last bits. All that is
compiled is in this one file: the compiler's cache notices changes of a function's own file alone.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np

from ebr.arrays import FloatArray

Function = TypeVar("Function", bound=Callable[..., Any])
RENEWAL = 25  # w* is recomputed when t has grown by a twenty-fifth
WARRANTY = 50  # KL-LUCB's clock is rounded up: it stands until t has grown by a fiftieth
DIGITS = 1024.0  # w* and shares are rounded to ten binary digits: what tracking compares is then exact
HALVINGS = 17  # of a bracket of 2 nats for the level of w*, to one part in 65,536
NEAR = 1e-4  # nats: a step of Newton's method as short as this ends far nearer the root,
CLOSE = 1e-6  # not as far from it as this
EDGE = 1e-9  # how near 0 and 1 − ε the place of a bound may be
LUCB, TOP_TWO, TRACKING = 0, 1, 2  # how arms are chosen
MIXTURE, DEVIATION, CLOCK = 0, 1, 2  # what an arm is charged
# What is known of each arm, a row each of one table: N, its successes, their mean, log max_p P_p(X), c and U;
# the last x of Z(leader, arm), a bound, and what `settle` has of x. Several arrays would be counted in and
# out at every use, which takes longer than the arithmetic.
COUNT, SUM, MEAN, LIKELIHOOD, CHARGE, UPPER, PLACE, BOUND = range(8)
LOG, LOG_REST, SCALE, VALUE, SLOPE = range(8, 13)
ROWS = 13


class Rule(NamedTuple):
    """How arms are chosen.

    Attributes
    ----------
    sampling
        LUCB pulls leader and challenger, the arm with the largest upper bound; TOP_TWO one of leader and
        challenger; TRACKING follows w*.
    deficit
        TOP_TWO's challenger has the smallest Z(a, b) − c(b), else the smallest Z(a, b).
    half
        TOP_TWO pulls the leader every second time, else with the share of Z(a, b) that its rewards make.
    forced
        TRACKING explores by force, else pulls the arm with the smallest N_a / w_a.
    """

    sampling: int
    deficit: bool = False
    half: bool = False
    forced: bool = False


class Stopping(NamedTuple):
    """When a race ends with its leader a: if Z(a, b) > level + c(a) + c(b) for all b ≠ a.

    LUCB's ends if U_u − L_a ≤ ε, with bounds where N_a kl(μ̂_a, ·) = level + c(a).

    Attributes
    ----------
    level
        What the confidence costs.
    kind, first, second, norm
        MIXTURE: c is the regret of the Beta(first, second) mixture; norm is log B(first, second).
        DEVIATION: 3 log(1 + log N). CLOCK: first · log t.
    """

    level: float
    kind: int
    first: float = 0.5
    second: float = 0.5
    norm: float = 0.0


def compiled(function: Function) -> Function:
    """Compile with IEEE division and no fast mathematics; kept on disk beside this file."""
    return cast(Function, numba.njit(cache=True, error_model="numpy", forceinline=True)(function))


@compiled
def divergence(p: float, q: float) -> float:
    """kl(p, q) of Bernoulli laws."""
    value = 0.0
    if p > 0:
        value += p * math.log(p / q)
    if p < 1:
        value += (1 - p) * math.log((1 - p) / (1 - q))
    return value


@compiled
def upper_bound(p: float, level: float) -> float:
    """The q ≥ p with kl(p, q) = level: Newton's method from above, where the convex kl makes it monotone."""
    if p >= 1:
        return 1.0
    entropy = -(1 - p) * math.log(1 - p)
    if p > 0:
        entropy -= p * math.log(p)
    # Above q by Pinsker, and because kl(p, q) ≥ −(1 − p) log(1 − q) − entropy.
    q = min(p + math.sqrt(level / 2), 1 - math.exp(-(level + entropy) / (1 - p)))
    for _ in range(60):
        if not p < q < 1:
            break
        step = (divergence(p, q) - level) * q * (1 - q) / (q - p)
        if step <= 1e-15:
            break
        q -= step
    return q


@compiled
def log_likelihood(success: float, count: float) -> float:
    """The logarithm of max_p P_p(X) of an arm's rewards."""
    failure = count - success
    value = 0.0
    if success > 0:
        value += success * math.log(success / count)
    if failure > 0:
        value += failure * math.log(failure / count)
    return value


@compiled
def charge(success: float, count: float, stopping: Stopping, clock: int) -> float:
    """What an arm is charged, c: see `Stopping`. A mixture's regret is log max_p P_p − log ∫ P_p dBeta(p)."""
    if stopping.kind == CLOCK:
        return stopping.first * math.log(clock)
    if stopping.kind == DEVIATION:
        return 3 * math.log(1 + math.log(count))
    mixed = math.lgamma(success + stopping.first) + math.lgamma(count - success + stopping.second)
    mixed -= math.lgamma(count + stopping.first + stopping.second) + stopping.norm
    return log_likelihood(success, count) - mixed


@compiled
def nearest(p: float, pulls: float, q: float, rival_pulls: float, epsilon: float) -> float:
    """The x at which N_a kl(p, x) + N_b kl(q, x + ε) is least, for q < p + ε.

    The derivative's numerator N_a (x − p) y (1 − y) + N_b (y − q) x (1 − x), y = x + ε, has one root between
    max(q − ε, 0) and min(p, 1 − ε); Newton's method, and halving where that leaves the bracket.
    """
    low, high = max(q - epsilon, 0.0), min(p, 1 - epsilon)
    if low >= high:
        return high
    x = (pulls * high + rival_pulls * low) / (pulls + rival_pulls)
    for _ in range(100):
        y = x + epsilon
        value = pulls * (x - p) * y * (1 - y) + rival_pulls * (y - q) * x * (1 - x)
        slope = pulls * (y * (1 - y) + (x - p) * (1 - 2 * y)) + rival_pulls * (
            x * (1 - x) + (y - q) * (1 - 2 * x)
        )
        if value > 0:
            high = x
        else:
            low = x
        following = x - value / slope
        if not low < following < high and abs(following - x) > 1e-15:
            following = (low + high) / 2
        if abs(following - x) <= 1e-15:  # also by a step that rounding takes across the end of the bracket
            break
        x = following
    return x


@compiled
def evidence(arms: FloatArray, leader: int, rival: int, epsilon: float) -> float:
    """Z(a, b) = inf_x N_a kl(p, x) + N_b kl(q, x + ε): how badly a and b fit a b that is better by ε."""
    p, q = arms[MEAN, leader], arms[MEAN, rival]
    if q >= p + epsilon:
        return 0.0
    x = nearest(p, arms[COUNT, leader], q, arms[COUNT, rival], epsilon)
    arms[PLACE, rival] = min(max(x, EDGE), 1 - epsilon - EDGE)
    settle(arms, rival, epsilon)
    return float(arms[COUNT, leader] * divergence(p, x) + arms[COUNT, rival] * divergence(q, x + epsilon))


@compiled
def settle(arms: FloatArray, rival: int, epsilon: float) -> None:
    """Prepare `bounded` for a rival: the leader's coefficients in h and h′ at x, and the rival's own part."""
    x, count, success = arms[PLACE, rival], arms[COUNT, rival], arms[SUM, rival]
    y = x + epsilon
    arms[LOG, rival], arms[LOG_REST, rival] = math.log(x), math.log(1 - x)
    arms[SCALE, rival] = 1 / (x * (1 - x))
    arms[VALUE, rival] = success * math.log(y) + (count - success) * math.log(1 - y)
    arms[SLOPE, rival] = (success - count * y) / (y * (1 - y))


@compiled
def bounded(arms: FloatArray, leader: int, deficit: bool) -> None:
    """Set bounds to at least −Z(a, b), or c(b) − Z(a, b), for all b: from any x, without a logarithm.

    Z is log max P(X_a) + log max P(X_b) less the maximum of h(x) = log P_x(X_a) + log P_{x+ε}(X_b). As
    −h″ ≥ N_a + N_b everywhere, that is at most h(x) + h′(x)² / 2(N_a + N_b).
    """
    count, success, own = arms[COUNT, leader], arms[SUM, leader], arms[LIKELIHOOD, leader]
    share = 1.0 if deficit else 0.0
    for arm in range(arms.shape[1]):
        value = success * arms[LOG, arm] + (count - success) * arms[LOG_REST, arm] + arms[VALUE, arm]
        slope = (success - count * arms[PLACE, arm]) * arms[SCALE, arm] + arms[SLOPE, arm]
        most = value + slope * slope / (2 * (count + arms[COUNT, arm]))
        arms[BOUND, arm] = most - own - arms[LIKELIHOOD, arm] + share * arms[CHARGE, arm]


@compiled
def largest(arms: FloatArray, row: int, without: int) -> int:
    """The first of the arms with the largest value in a row, one arm left out."""
    best = 1 if without == 0 else 0
    for arm in range(arms.shape[1]):
        if arm != without and arms[row, arm] > arms[row, best]:
            best = arm
    return best


@compiled
def leading(arms: FloatArray, leader: int, pulled: int) -> int:
    """The first of the arms with the largest mean, which was `leader` before an arm was pulled."""
    if pulled == leader:
        return largest(arms, MEAN, -1)
    own, most = arms[MEAN, pulled], arms[MEAN, leader]
    return pulled if own > most or (own == most and pulled < leader) else leader


@compiled
def challenging(arms: FloatArray, leader: int, epsilon: float, deficit: bool) -> tuple[int, float]:
    """The first b ≠ a with the smallest Z(a, b), or Z(a, b) − c(b), and that; high bounds are skipped."""
    bounded(arms, leader, deficit)
    start = largest(arms, BOUND, leader)
    rival, least = start, evidence(arms, leader, start, epsilon) - (arms[CHARGE, start] if deficit else 0.0)
    for arm in range(arms.shape[1]):
        if arm != leader and arm != start and -arms[BOUND, arm] <= least + 1e-9:
            score = evidence(arms, leader, arm, epsilon) - (arms[CHARGE, arm] if deficit else 0.0)
            if score < least or (score == least and arm < rival):
                rival, least = arm, score
    return rival, least


@compiled
def ended(
    arms: FloatArray, leader: int, rival: int, shown: float, epsilon: float, stopping: Stopping
) -> tuple[bool, int]:
    """Whether the race ends with this leader, and who stands in its way; `shown` is Z(a, rival)."""
    needed = stopping.level + arms[CHARGE, leader]
    if shown - arms[CHARGE, rival] <= needed:
        return False, rival
    rival, least = challenging(arms, leader, epsilon, True)
    return least > needed, rival


@compiled
def largest_level(p: float, q: float, epsilon: float) -> float:
    """The value of `balance` a millionth of the way above max(q − ε, 0)."""
    low, high = max(q - epsilon, 0.0), min(p, 1 - epsilon)
    x = low + 1e-6 * (high - low)
    y = x + epsilon
    weight = (p - x) * y * (1 - y) / ((y - q) * x * (1 - x))
    return divergence(p, x) + weight * divergence(q, y)


@compiled
def balance(
    p: float, q: float, epsilon: float, level: float, start: float
) -> tuple[float, float, float, float]:
    """Where kl(p, x) + v kl(q, x + ε) is `level`, y, at the v whose minimiser is x: x, v, and a ratio.

    The value falls as x grows from max(q − ε, 0) to min(p, 1 − ε), with slope v′(x) kl(q, x + ε). The ratio
    is kl(p, x)/kl(q, x + ε); last comes its derivative with respect to log y.
    """
    low, high = max(q - epsilon, 0.0), min(p, 1 - epsilon)
    if p > high and level <= divergence(p, high):
        return high, 0.0, 0.0, 0.0
    x = start if low < start < high else (low + high) / 2
    y = weight = own = other = slope = 0.0
    for _ in range(200):
        y = x + epsilon
        weight = (p - x) * y * (1 - y) / ((y - q) * x * (1 - x))
        own, other = divergence(p, x), divergence(q, y)
        excess = own + weight * other - level
        if excess > 0:
            low = x
        else:
            high = x
        turn = (1 - 2 * y) / (y * (1 - y)) - (1 - 2 * x) / (x * (1 - x)) - 1 / (p - x) - 1 / (y - q)
        slope = weight * turn * other
        following = x - excess / slope
        if not low < following < high and abs(following - x) > 1e-11:
            following = (low + high) / 2
        if abs(following - x) <= 1e-11:  # also by a step that rounding takes across the end of the bracket
            break
        x = following
    change = (x - p) / (x * (1 - x)) - own / other * (y - q) / (y * (1 - y))
    return x, weight, own / other, change / other * level / slope


@compiled
def balances(
    means: FloatArray, leader: int, epsilon: float, log_level: float, places: FloatArray, weights: FloatArray
) -> tuple[float, float]:
    """Take x_b and v_b of all arms to a level; return the sum of their ratios, and its derivative."""
    total = rise = 0.0
    for arm in range(len(means)):
        if arm != leader:
            places[arm], weights[arm], ratio, change = balance(
                means[leader], means[arm], epsilon, math.exp(log_level), places[arm]
            )
            total += ratio
            rise += change
    return total, rise


@compiled
def balanced(
    means: FloatArray,
    leader: int,
    epsilon: float,
    bracket: tuple[float, float],
    places: FloatArray,
    weights: FloatArray,
) -> float:
    """The log y at which the ratios' sum is 1: Newton's method for its logarithm, from inside a bracket.

    The start is the bracket's lower end; the root may be below.
    """
    root, right = bracket
    left = -math.inf
    for _ in range(60):
        total, rise = balances(means, leader, epsilon, root, places, weights)
        left, right = (left, root) if total > 1 else (root, right)
        following = root - math.log(total) * total / rise if total > 0 and rise > 0 else right
        if not left < following < right:
            following = (left + right) / 2 if left > -math.inf else root - 2
        near, root = abs(following - root), following
        if near <= NEAR:
            break
    return root


@compiled
def proportions(
    means: FloatArray, epsilon: float, start: float, places: FloatArray, weights: FloatArray
) -> float:
    """Set weights to w* of a Bernoulli problem with means inside (0, 1), to ten binary digits.

    With w_a = 1 for the best arm a, every b gets the v_b at which its term is the same level y; the best y
    has Σ_b kl(μ_a, x_b)/kl(μ_b, x_b + ε) = 1 (Garivier and Kaufmann 2016, Theorem 5, for ε = 0): the
    derivative of (1 + Σ v_b)/y vanishes there, as dv_b/dy = 1/kl(μ_b, x_b + ε).

    The level is that of so many halvings of a bracket. Where they go is known from the root of the sum's
    logarithm, which Newton's method finds sooner; only next to it a sum decides. `start` and `places`, log y
    and the x_b of a problem like this one, shorten the search alone; log y is returned, places are moved.
    """
    leader = int(means.argmax())
    most = math.inf  # the least of the largest levels, short of where a weight is useless
    for arm in range(len(means)):
        if arm != leader:
            most = min(most, largest_level(means[leader], means[arm], epsilon))
    high = math.log(most)
    root = balanced(means, leader, epsilon, (min(start, high - 1), high), places, weights)
    low = high - 2
    while low > root:
        low, high = low - 2, low
    tried = root
    for _ in range(HALVINGS):
        tried = (low + high) / 2
        above = tried > root
        if abs(tried - root) <= CLOSE:
            above = balances(means, leader, epsilon, tried, places, weights)[0] > 1
        low, high = (low, tried) if above else (tried, high)
    weights[leader] = 1.0
    balances(means, leader, epsilon, tried, places, weights)
    total = 0.0
    for weight in weights:
        total += weight
    for arm in range(len(means)):
        digits, power = math.frexp(weights[arm] / total)
        weights[arm] = math.ldexp(np.rint(digits * DIGITS) / DIGITS, power)
    return root


@compiled
def separated(arms: FloatArray, leader: int, rival: int, epsilon: float, stopping: Stopping) -> bool:
    """Whether U_u − L_a ≤ ε: found without L_a."""
    q, p = arms[UPPER, rival] - epsilon, arms[MEAN, leader]
    shown = arms[COUNT, leader] * divergence(p, q) if 0 < q < p else 0.0
    return bool(q <= 0 or shown >= stopping.level + arms[CHARGE, leader])


@compiled
def tracked(weights: FloatArray, counts: FloatArray, pulls: int, forced: bool) -> int:
    """The next arm (the first of them): the smallest N_a / w_a.

    If `forced` that of D-tracking as it is printed: the largest t w_a − N_a, or the least pulled arm if
    √t − n/2 is above its count.
    """
    least, behind = 0, 0
    for arm in range(len(counts)):
        if counts[arm] < counts[least]:
            least = arm
        if forced:
            further = pulls * weights[arm] - counts[arm] > pulls * weights[behind] - counts[behind]
        else:
            further = counts[arm] * weights[behind] < counts[behind] * weights[arm]
        if further:
            behind = arm
    return least if forced and counts[least] < math.sqrt(pulls) - len(counts) / 2 else behind


@compiled
def leaders_share(arms: FloatArray, leader: int, shown: float, rival: int) -> float:
    """β: the leader's part N_a kl(μ̂_a, x) of Z(a, b), `shown`, to ten binary digits."""
    own = arms[COUNT, leader] * divergence(arms[MEAN, leader], arms[PLACE, rival])
    return float(np.rint(min(own / shown, 1.0) * DIGITS) / DIGITS)


@compiled
def renew(arms: FloatArray, arm: int, epsilon: float, rule: Rule, stopping: Stopping, clock: int) -> None:
    """Update what depends on an arm's rewards and, for KL-LUCB, on the clock."""
    success, count = arms[SUM, arm], arms[COUNT, arm]
    arms[MEAN, arm] = success / count
    arms[CHARGE, arm] = charge(success, count, stopping, clock)
    if rule.sampling == LUCB:
        arms[UPPER, arm] = upper_bound(success / count, (stopping.level + arms[CHARGE, arm]) / count)
    else:
        arms[LIKELIHOOD, arm] = log_likelihood(success, count)
        settle(arms, arm, epsilon)


@compiled
def race(
    means: FloatArray, epsilon: float, rule: Rule, stopping: Stopping, generator: np.random.Generator
) -> tuple[int, int, int]:
    """One race: its pulls, rounds and arm. `owed` are the pulls of b that the pair (a, b) is behind with."""
    n = len(means)
    arms, owed, weights, places = np.zeros((ROWS, n)), np.zeros((n, n)), np.empty(n), np.full(n, -1.0)
    for arm in range(n):
        arms[COUNT, arm], arms[SUM, arm] = 1.0, generator.random() < means[arm]
        arms[PLACE, arm] = (1 - epsilon) / 2
        renew(arms, arm, epsilon, rule, stopping, 1)
    pulls, rounds, horizon, renewal, level, rival = n, 1, 1, 0, math.inf, 0
    leader = largest(arms, MEAN, -1)
    while True:
        if stopping.kind == CLOCK and rounds > horizon:
            horizon = rounds + rounds // WARRANTY
            for arm in range(n):
                renew(arms, arm, epsilon, rule, stopping, horizon)
        toughest, shown = 0, 0.0
        if rule.sampling == LUCB:
            rival = largest(arms, UPPER, leader)
            over = separated(arms, leader, rival, epsilon, stopping)
        else:
            if rule.sampling == TOP_TWO:
                rival, shown = challenging(arms, leader, epsilon, rule.deficit)
                shown += arms[CHARGE, rival] if rule.deficit else 0.0
            else:
                rival = rival if rival != leader else 1 - min(leader, 1)
                shown = evidence(arms, leader, rival, epsilon)
            over, toughest = ended(arms, leader, rival, shown, epsilon, stopping)
        if over:
            return pulls, rounds, leader
        if rule.sampling == TRACKING:
            rival = toughest
            if pulls >= renewal:
                for arm in range(n):
                    arms[BOUND, arm] = (arms[SUM, arm] + 0.5) / (arms[COUNT, arm] + 1)
                level = proportions(arms[BOUND], epsilon, level, places, weights)
                renewal = pulls + pulls // RENEWAL
            first = tracked(weights, arms[COUNT], pulls, rule.forced)
        elif rule.sampling == TOP_TWO:
            owed[leader, rival] += 0.5 if rule.half else 1 - leaders_share(arms, leader, shown, rival)
            first = rival if owed[leader, rival] >= 0 else leader
            owed[leader, rival] -= first == rival
        else:
            first = leader
        for turn in range(2 if rule.sampling == LUCB else 1):
            arm = first if turn == 0 else rival
            arms[COUNT, arm] += 1
            arms[SUM, arm] += generator.random() < means[arm]
            renew(arms, arm, epsilon, rule, stopping, horizon)
            leader = leading(arms, leader, arm)
            pulls += 1
        rounds += 1
