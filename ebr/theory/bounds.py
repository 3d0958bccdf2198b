"""What the paper's races take from its bounds: Algorithm 1's constant, T = 1, the iterated logarithm."""

import math
from functools import partial

from ebr.validation import checked, positive, require, whole

SCHEDULE_CONSTANT = 80  # Algorithm 1 and Theorem 1


@checked()
def passive_pulls(n_arms: int, epsilon: float, delta: float, sigma: float = 0.5) -> float:
    """Section 5's N̄_ε(δ) = 80σ² log(n/δ) / ε²: pulls of each arm that suffice in a single round."""
    return SCHEDULE_CONSTANT * sigma**2 * math.log(n_arms / delta) / epsilon**2


@checked(times=partial(whole, at_least=0), value=positive, base=positive)
def iterated_log(times: int, value: float, base: float = math.e) -> float:
    """ilog^{(r)}(a): ilog^{(0)}(a) = a and ilog^{(r)}(a) = max(log ilog^{(r−1)}(a), 1)."""
    require(base > 1, "base", "be above 1", base)
    for _ in range(times):
        before, value = value, max(math.log(value) / math.log(base), 1.0)
        if value == before:
            break
    return value
