"""Checks of what callers pass in: every error names the argument, its value and the range it must lie in."""

import inspect
import math
from collections.abc import Callable
from functools import partial, wraps
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ebr.arrays import FloatArray
from ebr.models import REWARDS

MOST_PULLS = 2**53  # pulls of an arm in a round: beyond it a sum of rewards is not exact
MOST_TOTAL = 2**63 - 1  # pulls of all arms in a race: the largest count that an array holds
MOST_ROUNDS = 10_000  # rounds of a race: a race of this many is simulated in seconds
MOST_ARMS = 10**6  # a race on this many arms fills a hundred megabytes
LEAST = 1e-100  # the least ε and δ: their squares do not underflow
LONGEST = 80  # characters of a value in a message

Rule = Callable[[str, Any], Any]
Check = Rule | tuple[str, ...]  # a rule, or possible choices
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def require(holds: object, name: str, must: str, got: Any) -> None:
    """Raise ValueError, with the argument's name, its range and its value, unless a condition holds."""
    if not holds:
        raise ValueError(f"{name} must {must}, got {shown(got)}")


def shown(value: Any) -> str:
    """A value as error messages show it: at most a line."""
    try:
        text = " ".join(repr(value).splitlines())
    except Exception as error:  # an integer may have too many digits, and any repr may fail
        return f"a {type(value).__name__} ({type(error).__name__} when it is shown)"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def number(value: Any) -> float:
    """Return a real number as a float, infinite where it is too large; NaN for anything else."""
    if type(value) is float:
        return value
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _real(name: str, value: Any, is_right: Callable[[float], bool], must: str) -> float:
    require(is_right(found := number(value)), name, must, value)
    return found


positive = partial(_real, is_right=lambda x: 0 < x < math.inf, must="be a finite number above 0")
probability = partial(_real, is_right=lambda x: 0 <= x <= 1, must="lie in [0, 1]")


def in_unit_interval(name: str, value: Any, least: float = LEAST) -> float:
    """Return `value` if it is a number in the open interval (0, 1); raise ValueError otherwise."""
    _real(name, value, lambda x: 0 < x < 1, "lie in (0, 1)")
    return _real(name, value, lambda x: x >= least, f"be at least {least:g}, or its square is no number")


rare: Rule = partial(in_unit_interval, least=1e-300)  # where a formula takes its logarithm alone


def scale(name: str, value: Any) -> float:
    """Return `value` if it is a positive number that can be squared; raise ValueError otherwise."""
    positive(name, value)
    return _real(name, value, lambda x: 1e-50 <= x <= 1e50, "lie in [1e-50, 1e+50]")


def true_or_false(name: str, value: Any) -> bool:
    """Return `value` if it is True or False; raise ValueError otherwise."""
    require(isinstance(value, bool), name, "be True or False", value)
    return bool(value)


def whole(name: str, value: Any, at_least: int, at_most: float = math.inf) -> int:
    """Return `value` if it is an integer from `at_least` to `at_most`; raise ValueError otherwise."""
    # The test for a plain integer is fast; isinstance with Integral takes microseconds, in every round.
    is_whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    require(is_whole and value >= at_least, name, f"be an integer of at least {at_least}", value)
    require(int(value) <= at_most, name, f"be an integer of at most {at_most:,.15g}", value)
    return int(value)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is among `choices`; raise ValueError otherwise."""
    possible = isinstance(value, str) and value in choices
    require(possible, name, f"be one of {', '.join(map(repr, choices))}", value)
    return str(value)


def numbers(name: str, values: ArrayLike, at_least: int = 1) -> FloatArray:
    """Return `values` as an array if they are a list of numbers; raise ValueError otherwise."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0)
    right = array.ndim == 1 and len(array) >= at_least
    require(right, name, f"be a list of at least {at_least} numbers", values)
    return array


def optional(rule: Check) -> Rule:
    """The same rule, or one of these choices, for what may also be None."""
    checked = partial(one_of, choices=rule) if isinstance(rule, tuple) else rule
    return lambda name, value: None if value is None else checked(name, value)


rounds: Rule = partial(whole, at_least=1, at_most=MOST_ROUNDS)
several: Rule = partial(whole, at_least=2, at_most=MOST_ARMS)
# Rules for parameter names shared across the package.
COMMON: dict[str, Rule] = {
    "deadline": rounds,
    "n_arms": several,
    "k": partial(whole, at_least=1, at_most=MOST_ARMS),
    "epsilon": in_unit_interval,
    "delta": in_unit_interval,
    "sigma": scale,
    "rewards": optional(REWARDS),
    "budget": optional(partial(whole, at_least=1, at_most=MOST_TOTAL)),
    **dict.fromkeys(("lower_is_better", "blocks", "missing"), true_or_false),
}


def check_fields(parameters: object, **checks: Check) -> None:
    """Check a dict or an object's fields by the common rules and those given, or by possible choices.

    Numbers become plain Python numbers, so that equal parameters print alike and are seeded alike.
    """
    fields = parameters if isinstance(parameters, dict) else vars(parameters)
    for name, check in {**COMMON, **checks}.items():
        if name in fields:
            rule = partial(one_of, choices=check) if isinstance(check, tuple) else check
            fields[name] = rule(name, fields[name])


def checked(**checks: Check) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Check a function's arguments."""

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            given = signature.bind(*args, **kwargs)
            check_fields(given.arguments, **checks)
            return function(*given.args, **given.kwargs)

        return call

    return decorate


def count(pulls: float, n_arms: int = 1) -> int:
    """Round a number of pulls of each arm up; raise ValueError where sums or totals would not be exact."""
    enough = "epsilon (or delta) must be large enough, or sigma small enough, for at most"
    if not pulls <= MOST_PULLS:
        raise ValueError(f"{enough} 2^53 pulls of an arm, got {pulls:.1e}")
    if math.ceil(pulls) * n_arms > MOST_TOTAL:
        raise ValueError(f"{enough} 2^63 - 1 pulls of n_arms = {n_arms} together, got {pulls * n_arms:.1e}")
    return math.ceil(pulls)
