"""Rewards in units of one's own (grams, milliseconds), raced between 0 and 1."""

import reprlib
from dataclasses import dataclass
from typing import Any

from ebr.live.rewards import Support
from ebr.live.terms import checked_support
from ebr.validation import positive


@dataclass(frozen=True)
class Scale:
    """The worst reward and the best, which are 0 and 1 inside; where less is better, worst > best."""

    worst: float = 0.0
    best: float = 1.0

    @property
    def width(self) -> float:
        """What is 1 inside: an ε, a σ or a margin inside is so many of these."""
        return abs(self.best - self.worst)

    def inside(self, total: float, count: int = 1) -> float:
        """The sum of so many rewards, inside."""
        return (total - count * self.worst) / (self.best - self.worst)


UNIT = Scale()


def checked_scale(scale: Any) -> Scale:
    """Return the scale of a pair (worst, best), or that from 0 to 1; raise ValueError if it is neither."""
    if scale is None:
        return UNIT
    ends = tuple(scale) if isinstance(scale, tuple | list) else ()
    if len(ends) == 2 and (rising := _pair(ends)) is not None:
        return rising
    if len(ends) == 2 and (falling := _pair(ends[::-1])) is not None:
        return Scale(falling.best, falling.worst)
    raise ValueError(f"scale must be a pair of two finite numbers (worst, best), got {reprlib.repr(scale)}")


def _pair(ends: tuple[Any, ...]) -> Scale | None:
    try:
        found = checked_support(ends)
    except ValueError:
        return None
    return found and Scale(*found)


def support_on(scale: Scale, support: Support) -> Support:
    """The rewards' interval where there is a scale: all of it, or None; raise ValueError for another."""
    whole = min(scale.worst, scale.best), max(scale.worst, scale.best)
    if scale == UNIT or support is None:
        return support
    if tuple(support) not in ((0.0, 1.0), whole):
        raise ValueError(f"support must be left out, or None, where there is a scale, got {support!r}")
    return whole


def width_of(support: tuple[float, float], epsilon: float | None) -> float:
    """Of the support; raise ValueError if it is none, or if ε is not in it."""
    limits = checked_support(support)
    if limits is None:
        raise ValueError("support must be a pair of finite numbers (low, high), got None")
    width = limits[1] - limits[0]
    if width != 1 and epsilon is not None and not 0 < positive("epsilon", epsilon) < width:
        raise ValueError(f"epsilon must lie in (0, {width:g}), in the support, got {epsilon!r}")
    return width
