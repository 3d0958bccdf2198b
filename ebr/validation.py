"""Checks of what callers pass in: every error names the argument, its value and the range it must lie in."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["count", "in_unit_interval", "one_of", "positive", "whole"]

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


def count(pulls: float) -> int:
    """Round a number of pulls up to an integer; raise ValueError where sums would not be exact."""
    if not pulls <= MOST_PULLS:
        raise ValueError(
            f"epsilon (or delta) must be large enough for at most 2^53 pulls of an arm, got {pulls:.1e}"
        )
    return math.ceil(pulls)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
