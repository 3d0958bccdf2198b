"""What a race writes down, checked: who races under which rules, and what a round brought."""

import dataclasses
import math
import os
import reprlib
import secrets
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ebr.baselines import AggressiveElimination, DeltaElimination, Passive, SequentialRacing
from ebr.journal import Event, JournalError
from ebr.parameters import FloatArray
from ebr.racing import Algorithm, ElasticBatchRacing
from ebr.sharp import SharpElasticBatchRacing

__all__ = ["Support", "algorithm_of", "check_same", "checked_round", "start"]

Support = tuple[float, float] | None  # the closed interval of the rewards, or any finite number

FORMAT = 1
# Whom a journal may name: nothing else is ever built from a file.
ALGORITHMS: dict[str, Any] = {
    algorithm.__name__: algorithm
    for algorithm in (
        AggressiveElimination,
        DeltaElimination,
        ElasticBatchRacing,
        Passive,
        SequentialRacing,
        SharpElasticBatchRacing,
    )
}


def start(algorithm: Algorithm, arms: Sequence[str], support: Support) -> Event:
    """Describe a race in a journal's first line; raise ValueError for what cannot be raced."""
    if not hasattr(algorithm, "play") or not dataclasses.is_dataclass(algorithm):
        raise ValueError(f"algorithm must be a dataclass with a method play, got {algorithm!r}")
    event: Event = {
        "event": "start",
        "format": FORMAT,
        "algorithm": type(algorithm).__name__,
        "parameters": {field.name: getattr(algorithm, field.name) for field in dataclasses.fields(algorithm)},
        "arms": _checked_arms(arms),
        "support": _checked_support(support, algorithm),
    }
    if "generator" in getattr(algorithm, "needs", ()):
        event["seed"] = secrets.randbits(64)  # so that a replay draws the same lots
    return event


def _checked_arms(arms: Sequence[str]) -> list[str]:
    names = list(arms)
    # Printable: they are to be read in tables, and to be typed.
    fit = not isinstance(arms, str) and all(
        isinstance(name, str) and name.strip() and name.isprintable() for name in names
    )
    if not fit or len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"arms must be a list of two or more distinct, printable names, got {arms!r}")
    return names


def _checked_support(support: Support, algorithm: Algorithm) -> list[float] | None:
    if getattr(algorithm, "rewards", None) == "bounded" and (support is None or not _within(support, 0, 1)):
        raise ValueError(f"support must lie in [0, 1] for an algorithm of bounded rewards, got {support!r}")
    if support is None:
        return None
    if not _within(support, -math.inf, math.inf):
        raise ValueError(f"support must be a pair of finite numbers (low, high), or None, got {support!r}")
    low, high = map(float, support)
    # Those without a sigma are stated for rewards in [0, 1], that is for ½.
    sigma = getattr(algorithm, "sigma", 0.5)
    if sigma < (high - low) / 2:
        warnings.warn(
            f"the algorithm's sigma, {sigma}, is below {(high - low) / 2}, which rewards between {low} and"
            f" {high} may need: its guarantee is void unless they are known to be {sigma}-sub-Gaussian",
            stacklevel=4,
        )
    return [low, high]


def check_same(path: os.PathLike[str], there: Event, here: Event) -> None:
    """Raise JournalError if a journal belongs to another race, naming all that differs."""
    differing = {key: ("none", value) for key, value in _rules(here).items()}
    for key, value in _rules(there).items():
        differing[key] = (value, differing.get(key, ("", "none"))[1])
    said = [f"{key} is {a!r} there and {b!r} here" for key, (a, b) in differing.items() if a != b]
    if said:
        raise JournalError(
            f"{path} is the journal of another race ({'; '.join(said)}): give this race a journal of its own,"
            " or continue that one with Race.open"
        )


def _rules(event: Event) -> dict[str, Any]:
    parameters: dict[str, Any] = event.get("parameters", {})
    return {key: event.get(key) for key in ("format", "algorithm", "arms", "support")} | parameters


def algorithm_of(path: os.PathLike[str], first: Event) -> Algorithm:
    """Build the algorithm that a journal's first line describes."""
    name, version = first.get("algorithm"), first.get("format")
    if first["event"] != "start" or version != FORMAT or name not in ALGORITHMS:
        raise JournalError(
            f"{path} is of a kind unknown here (format {version}, algorithm {name}): an algorithm of your own"
            " is passed to Race itself; a newer format needs a newer ebr"
        )
    try:
        built: Algorithm = ALGORITHMS[name](**first["parameters"])
    except (TypeError, ValueError) as error:
        raise JournalError(f"{path} was written by another version of ebr ({error}): use that one") from None
    return built


def checked_round(
    rewards: Mapping[str, Any], asked: Mapping[str, int], arms: Sequence[str], support: Support
) -> dict[str, list[float]]:
    """Return count and sum of each arm's rewards; raise ValueError unless they are exactly what was asked."""
    if not isinstance(rewards, Mapping):
        raise ValueError(f"rewards must be a dict by arm, got {reprlib.repr(rewards)}")
    for arm in rewards:
        if arm not in asked:
            why = "is not pulled in this round" if arm in arms else "is unknown"
            raise ValueError(f"arm {arm!r} {why}: the arms asked for are {', '.join(asked)}")
    if missing := [arm for arm in asked if arm not in rewards]:
        raise ValueError(f"rewards of {', '.join(missing)} are missing: tell the round when it is complete")
    return {arm: _count_and_sum(arm, rewards[arm], number, support) for arm, number in asked.items()}


def _count_and_sum(arm: str, rewards: Any, asked: int, support: Support) -> list[float]:
    """Check the rewards of an arm, a list or a tuple (count, sum), against what was asked; sum them up."""
    low, high = support or (-math.inf, math.inf)
    must = f"lie in [{low}, {high}], the race's support," if support else "be finite"
    if isinstance(rewards, tuple):
        if len(rewards) != 2 or not _is_whole(rewards[0]) or not isinstance(rewards[1], Real):
            raise ValueError(f"a tuple for {arm!r} must be (count, sum), got {reprlib.repr(rewards)}")
        count, summands = int(rewards[0]), [rewards[1]]
    else:
        values = _values(arm, rewards)
        outside = values[~(np.isfinite(values) & (low <= values) & (values <= high))]
        if len(outside):
            raise ValueError(f"rewards of {arm!r} must {must} got {outside[0]}")
        count, summands = len(values), values.tolist()
    _check_count(arm, count, asked)
    try:
        total = math.fsum(summands)  # rounded once, whatever the order: it stays in its range
    except OverflowError:
        total = math.inf
    if not (math.isfinite(total) and count * low <= total <= count * high):
        raise ValueError(f"rewards of {arm!r} must {must} got {count} with the sum {total}")
    return [count, total]


def _values(arm: str, rewards: Any) -> FloatArray:
    """Turn a list or an array of numbers into an array; nothing that only looks like one."""
    values = np.asarray(rewards)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or np.ma.is_masked(rewards):
        what = "a list of numbers or a tuple (count, sum)"
        raise ValueError(f"rewards of {arm!r} must be {what}, got {reprlib.repr(rewards)}")
    return values.astype(np.float64)


def _check_count(arm: str, count: int, asked: int) -> None:
    if count == asked:
        return
    advice = "tell the round when it is complete"
    if count > asked:
        advice = (
            f"pass the first {asked} in the order in which they were observed, as the guarantee is for"
            " numbers fixed before any reward is seen"
        )
    raise ValueError(f"{asked} rewards of {arm!r} were asked for, got {count}: {advice}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _within(support: Any, lowest: float, highest: float) -> bool:
    """Whether this is an interval of finite ends within another."""
    if len(support) != 2 or not all(isinstance(end, Real) and math.isfinite(end) for end in support):
        return False
    return bool(lowest <= support[0] < support[1] <= highest)
