"""The rules of a race as its journal's first line has them: who races, for what, with which algorithm."""

import dataclasses
import math
import os
import secrets
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.elimination import AggressiveElimination, DeltaElimination
from ebr.algorithms.game import Algorithm
from ebr.algorithms.passive import Passive
from ebr.algorithms.sequential import SequentialRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.journal import Event, JournalError
from ebr.live.rewards import Support

__all__ = ["algorithm_of", "check_same", "start"]

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


def _within(support: Any, lowest: float, highest: float) -> bool:
    """Whether this is an interval of finite ends within another."""
    if len(support) != 2 or not all(isinstance(end, Real) and math.isfinite(end) for end in support):
        return False
    return bool(lowest <= support[0] < support[1] <= highest)
