"""The races of `sequential_rivals`, compiled: one pull depends on those before it.

Every operation is in the order in which it is written (no fast mathematics), and what decides a pull is the
result of converged iterations or of exact arithmetic, so that no decision hangs on a processor's last bits.
All that is compiled is in this one file: the compiler's cache notices changes of a function's own file alone.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from ebr.arrays import FloatArray, IntArray

Function = TypeVar("Function", bound=Callable[..., Any])
LOOK = 32  # pulls of Track-and-Stop from one look at the rewards to the next
RENEWAL = 25  # w* is recomputed when t has grown by a twenty-fifth
WARRANTY = 50  # ceilings of upper bounds are good until t has grown by a fiftieth
DIGITS = 1024.0  # w* is rounded to ten binary digits: what tracking compares is then exact
HALVINGS = 17  # of a bracket of 2 nats for the level of w*, to one part in 65,536
NEAR = 1e-4  # nats: a step of Newton's method as short as this ends far nearer the root,
CLOSE = 1e-6  # not as far from it as this


def compiled(function: Function) -> Function:
    """Compile with IEEE division and no fast mathematics; kept on disk beside this file."""
    return cast(Function, numba.njit(cache=True, error_model="numpy")(function))


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
def exploration(count: float, rate: tuple[float, float], clock: int) -> float:
    """β / N_a = (log(k₁ n / δ) + α log(clock)) / N_a; at clock 0 the arm's own count is the clock."""
    return (rate[0] + rate[1] * math.log(clock if clock > 0 else count)) / count


@compiled
def index(success: float, count: float, rate: tuple[float, float], clock: int) -> float:
    """U_a."""
    return upper_bound(success / count, exploration(count, rate, clock))


@compiled
def below(q: float, success: float, count: float, rate: tuple[float, float], clock: int) -> bool:
    """Whether q ≤ L_a: found without L_a."""
    p = success / count
    return q <= 0 or (q < p and divergence(p, q) >= exploration(count, rate, clock))


@compiled
def leading(means: FloatArray) -> int:
    """The first arm with the largest mean."""
    best = 0
    for arm in range(len(means)):
        if means[arm] > means[best]:
            best = arm
    return best


@compiled
def challenging(
    ceilings: FloatArray,
    sums: FloatArray,
    counts: FloatArray,
    leader: int,
    rate: tuple[float, float],
    clock: int,
) -> tuple[int, float]:
    """The arm u ≠ ℓ with the largest U (the first of them), and U_u; only high ceilings get a look."""
    start = 1 if leader == 0 else 0
    for arm in range(len(sums)):
        if arm != leader and ceilings[arm] > ceilings[start]:
            start = arm
    rival, highest = start, index(sums[start], counts[start], rate, clock)
    for arm in range(len(sums)):
        if arm != leader and arm != start and ceilings[arm] >= highest:
            bound = index(sums[arm], counts[arm], rate, clock)
            if bound > highest or (bound == highest and arm < rival):
                rival, highest = arm, bound
    return rival, highest


@compiled
def lucb_race(
    means: FloatArray,
    epsilon: float,
    rate: tuple[float, float],
    own_counts: bool,
    generator: np.random.Generator,
) -> tuple[int, int, int]:
    """One race of KL-LUCB: its pulls, rounds and arm.

    U rises with t while an arm is not pulled: `ceilings` are its values at a later round, the horizon.
    """
    n = len(means)
    counts, sums, estimates, ceilings = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for arm in range(n):
        counts[arm], sums[arm] = 1.0, generator.random() < means[arm]
        estimates[arm] = sums[arm]
    rounds, horizon = 1, 0
    while True:
        if rounds > horizon:
            horizon = rounds + rounds // WARRANTY
            for arm in range(n):
                ceilings[arm] = index(sums[arm], counts[arm], rate, 0 if own_counts else horizon) + 1e-12
        clock = 0 if own_counts else rounds
        leader = leading(estimates)
        rival, highest = challenging(ceilings, sums, counts, leader, rate, clock)
        if below(highest - epsilon, sums[leader], counts[leader], rate, clock):
            return n + 2 * (rounds - 1), rounds, leader
        for arm in (leader, rival):
            counts[arm] += 1
            sums[arm] += generator.random() < means[arm]
            estimates[arm] = sums[arm] / counts[arm]
        ceilings[leader] = 1.0
        ceilings[rival] = index(sums[rival], counts[rival], rate, 0 if own_counts else horizon) + 1e-12
        rounds += 1


@compiled
def evidence(p: float, pulls: float, q: float, rival_pulls: float, epsilon: float) -> float:
    """inf_x N_a kl(p, x) + N_b kl(q, x + ε): how badly the rewards of a and b fit a b that is better by ε.

    The derivative's numerator N_a (x − p) y (1 − y) + N_b (y − q) x (1 − x), y = x + ε, has one root between
    max(q − ε, 0) and min(p, 1 − ε); Newton's method, and halving where that leaves the bracket.
    """
    if q >= p + epsilon:
        return 0.0
    low, high = max(q - epsilon, 0.0), min(p, 1 - epsilon)
    if low >= high:
        return pulls * divergence(p, high) + rival_pulls * divergence(q, high + epsilon)
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
    return pulls * divergence(p, x) + rival_pulls * divergence(q, x + epsilon)


@compiled
def charge(success: float, count: float, mixture: bool) -> float:
    """An arm's part of the threshold: the regret of the Krichevsky–Trofimov mixture, or 3 log(1 + log N)."""
    if not mixture:
        return 3 * math.log(1 + math.log(count))
    failure = count - success
    likelihood = 0.0
    if success > 0:
        likelihood += success * math.log(success / count)
    if failure > 0:
        likelihood += failure * math.log(failure / count)
    mixed = (
        math.lgamma(success + 0.5) + math.lgamma(failure + 0.5) - math.lgamma(count + 1) - math.log(math.pi)
    )
    return likelihood - mixed


@compiled
def answer(
    sums: FloatArray, counts: FloatArray, epsilon: float, level: float, mixture: bool, toughest: IntArray
) -> int:
    """The first arm whose Z(a, b) exceeds the threshold for all b, or −1.

    `toughest` has, for each a, the b that stood in its way last: it is asked first.
    """
    n = len(sums)
    largest = 0.0
    for arm in range(n):
        largest = max(largest, sums[arm] / counts[arm])
    for arm in range(n):
        if sums[arm] / counts[arm] <= largest - epsilon:
            continue  # Z(a, leader) = 0
        stands, offset = True, 0
        while stands and offset < n:
            rival = (toughest[arm] + offset) % n
            if rival != arm:
                shown = evidence(
                    sums[arm] / counts[arm], counts[arm], sums[rival] / counts[rival], counts[rival], epsilon
                )
                paid = charge(sums[arm], counts[arm], mixture) + charge(sums[rival], counts[rival], mixture)
                stands = shown > level + paid
                if not stands:
                    toughest[arm] = rival
            offset += 1
        if stands:
            return arm
    return -1


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
    leader = leading(means)
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
def forced_next(weights: FloatArray, counts: FloatArray, pulls: int) -> int:
    """The next arm of D-tracking as it is printed (the first of them).

    The largest t w_a − N_a, or the least pulled arm if √t − n/2 is above its count.
    """
    least, behind = 0, 0
    for arm in range(len(counts)):
        if counts[arm] < counts[least]:
            least = arm
        if pulls * weights[arm] - counts[arm] > pulls * weights[behind] - counts[behind]:
            behind = arm
    return least if counts[least] < math.sqrt(pulls) - len(counts) / 2 else behind


@compiled
def sink(heap: IntArray, place: int, weights: FloatArray, counts: FloatArray) -> None:
    """Let the arm at this place of a heap sink: above, N_a / w_a is smaller, or as small and a the first."""
    while 2 * place + 1 < len(heap):
        above, below = place, place
        for child in range(2 * place + 1, min(2 * place + 3, len(heap))):
            arm, other = heap[child], heap[below]
            less = counts[arm] * weights[other] - counts[other] * weights[arm]
            if less < 0 or (less == 0 and arm < other):
                below = child
        if below == above:
            break
        heap[above], heap[below] = heap[below], heap[above]
        place = below


@compiled
def tracking_race(
    means: FloatArray,
    epsilon: float,
    stopping: tuple[float, bool],
    forced: bool,
    generator: np.random.Generator,
) -> tuple[int, int, int]:
    """One race of Track-and-Stop: its pulls, looks at the rewards, and arm.

    The next arm is the one with the smallest N_a / w_a (the first of them), which a heap has on top, or if
    `forced` that of D-tracking.
    """
    n = len(means)
    counts, sums, estimates, places, weights = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    heap, toughest = np.empty(n, np.int64), np.empty(n, np.int64)
    for arm in range(n):
        counts[arm], sums[arm], places[arm] = 1.0, generator.random() < means[arm], -1.0
        heap[arm], toughest[arm] = arm, 0
    pulls, looks, renewal, level = n, 1, 0, math.inf
    while True:
        chosen = answer(sums, counts, epsilon, stopping[0], stopping[1], toughest)
        if chosen >= 0:
            return pulls, looks, chosen
        if pulls >= renewal:
            for arm in range(n):
                estimates[arm] = (sums[arm] + 0.5) / (counts[arm] + 1)
            level = proportions(estimates, epsilon, level, places, weights)
            renewal = pulls + pulls // RENEWAL
            for place in range(n // 2, -1, -1):
                sink(heap, place, weights, counts)
        for _ in range(LOOK):
            arm = forced_next(weights, counts, pulls) if forced else heap[0]
            counts[arm] += 1
            sums[arm] += generator.random() < means[arm]
            pulls += 1
            if not forced:
                sink(heap, 0, weights, counts)
        looks += 1
