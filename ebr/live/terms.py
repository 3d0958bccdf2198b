"""The terms of a race as people pass them in: arms, their rewards' support, and what is known of them."""

import dataclasses
import json
import math
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import Any

import numpy as np

from ebr.algorithms.game import Algorithm
from ebr.live.rewards import Support, listed
from ebr.models import IN_UNIT, REWARDS
from ebr.validation import one_of


def checked_parameters(algorithm: Algorithm) -> dict[str, Any]:
    """The parameters of an algorithm, as JSON has them."""
    must = "algorithm must be a dataclass and have all of ebr.algorithms.game.Algorithm"
    if isinstance(algorithm, type):
        name = algorithm.__name__
        raise ValueError(f"{must}, got the class {name} itself: make one, {name}(...)")
    if not isinstance(algorithm, Algorithm) or not dataclasses.is_dataclass(algorithm):
        raise ValueError(f"{must}, got {reprlib.repr(algorithm)}")
    try:
        made: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(algorithm), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{must}, its parameters numbers and words, got {algorithm!r} ({error})") from None
    return made


def checked_arms(arms: Sequence[str]) -> list[str]:
    """Return the names of the arms; raise ValueError, in short however many they are, if they are none."""
    must = "arms must be a list of two or more distinct, printable names"
    if isinstance(arms, set | frozenset):
        raise ValueError(f"{must}, got a set, whose order is another one each time")
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise ValueError(f"{must}, got {reprlib.repr(arms)}")
    names = list(arms)
    # Printable: they are to be read in tables, and to be typed.
    for name in names:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ValueError(f"{must}, got {reprlib.repr(name)} among them")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise ValueError(f"{must}, got more than once: {listed(twice)}")
    if len(names) < 2:
        raise ValueError(f"{must}, got {names}")
    return names


def checked_support(support: Any) -> Support:
    """Return the interval of the rewards, or None; raise ValueError if it is neither."""
    if support is None:
        return None
    if not _within(support, -math.inf, math.inf):
        must = "support must be a pair of finite numbers (low, high), or None"
        raise ValueError(f"{must}, got {reprlib.repr(support)}")
    low, high = map(float, support)
    return low, high


def known_of(support: Any, rewards: str | None) -> str:
    """What is known of the rewards: what the caller says, else what their support says."""
    inside = support is not None and _within(support, 0, 1)
    if rewards is None:
        return "bounded" if inside else "sub-Gaussian"
    if one_of("rewards", rewards, REWARDS) in IN_UNIT and not inside:
        raise ValueError(f"support must lie in [0, 1] for {rewards} rewards, got {support!r}")
    return rewards


def checked_rounding(rounding: bool, known: str) -> bool:
    """Return whether rewards are rounded; raise ValueError if they are not such as can be."""
    if not isinstance(rounding, bool):
        raise ValueError(f"rounding must be True or False, got {rounding!r}")
    if rounding and known != "Bernoulli":
        raise ValueError(f"rewards must be 'Bernoulli' for rounding=True, which makes them so, got {known!r}")
    return rounding


def void(sigma: float, support: Support, known: str, scaled: bool = False) -> Iterator[str]:
    """Say what makes a guarantee void; a support that is that of a scale lies in [0, 1] inside."""
    if support is None:
        return
    low, high = support
    if sigma < (high - low) / 2:
        yield (
            f"the algorithm's sigma, {sigma}, is below {(high - low) / 2}, which rewards between {low} and"
            f" {high} may need: its guarantee is void unless they are known to be {sigma}-sub-Gaussian"
        )
    if known == "Gaussian" and (scaled or _within(support, 0, 1)):
        yield (
            f"rewards between {low} and {high} are not Gaussian: the guarantee of an algorithm that takes"
            " them to be so is void"
        )


def _within(support: Any, lowest: float, highest: float) -> bool:
    """Whether this is an interval of finite ends within another."""
    ends = support.tolist() if isinstance(support, np.ndarray) else support
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        return False
    try:
        low, high = (float(end) if isinstance(end, Real) else math.nan for end in ends)
    except OverflowError:  # an integer beyond all floating-point numbers
        return False
    return bool(-math.inf < low < high < math.inf and lowest <= low and high <= highest)
