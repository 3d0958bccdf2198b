"""Checks of what callers pass in: every error names the argument, its value and the range it must lie in."""

import math
from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["check_fields", "count", "in_unit_interval", "one_of", "positive", "whole"]

MOST_PULLS = 2**53  # of one arm in one round: beyond it a sum of rewards is no longer exact


def in_unit_interval(name: str, value: Any) -> float:
    """Return `value` if it is a number in the open interval (0, 1); raise ValueError otherwise."""
    number = _number(value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie in (0, 1), got {value!r}")
    return number


def positive(name: str, value: Any) -> float:
    """Return `value` if it is a finite number above zero; raise ValueError otherwise."""
    number = _number(value)
    if not 0 < number < np.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    return number


def whole(name: str, value: Any, at_least: int) -> int:
    """Return `value` if it is an integer of at least `at_least`; raise ValueError otherwise."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < at_least:
        raise ValueError(f"{name} must be an integer of at least {at_least}, got {value!r}")
    return int(value)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is among `choices`; raise ValueError otherwise."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return str(value)


# What the parameters of that name must be, whose ever they are.
COMMON: dict[str, Callable[[str, Any], Any]] = {
    "deadline": partial(whole, at_least=1),
    "epsilon": in_unit_interval,
    "delta": in_unit_interval,
    "sigma": positive,
}


def check_fields(parameters: object, **checks: Callable[[str, Any], Any] | tuple[str, ...]) -> None:
    """Check the fields of a frozen dataclass and keep what the checks return.

    Those of a common name are checked by its rule, others by the given check, a function or the choices that
    there are. Numbers become plain ones, so that equal parameters print alike and are seeded alike.
    """
    fields = vars(parameters)
    for name, check in {**COMMON, **checks}.items():
        if name in fields:
            rule = partial(one_of, choices=check) if isinstance(check, tuple) else check
            fields[name] = rule(name, fields[name])


def count(pulls: float) -> int:
    """Round a number of pulls up to an integer; raise ValueError where sums would not be exact."""
    if not pulls <= MOST_PULLS:
        raise ValueError(
            f"epsilon (or delta) must be large enough for at most 2^53 pulls of an arm, got {pulls:.1e}"
        )
    return math.ceil(pulls)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
