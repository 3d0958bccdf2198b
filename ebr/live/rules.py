"""The rules of a race as its journal's first line has them: who races, for what, with which algorithm."""

import dataclasses
import math
import os
import secrets
import warnings
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.elimination import AggressiveElimination, DeltaElimination
from ebr.algorithms.game import REWARDS, Algorithm, Game, advance
from ebr.algorithms.passive import Passive
from ebr.algorithms.sequential import SequentialRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.journal import JournalError, Line
from ebr.live.rewards import Support
from ebr.validation import one_of

__all__ = ["algorithm_of", "check_same", "first_line", "game_of"]

FORMAT = 2  # 1 did not say what is known of the rewards
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


def first_line(algorithm: Algorithm, arms: Sequence[str], support: Support, rewards: str | None) -> Line:
    """Describe a race as its journal's first line does; raise ValueError for what cannot be raced."""
    if not isinstance(algorithm, Algorithm) or not dataclasses.is_dataclass(algorithm):
        raise ValueError(
            f"algorithm must be a dataclass and have all of ebr.algorithms.game.Algorithm, got {algorithm!r}"
        )
    line: Line = {
        "event": "start",
        "format": FORMAT,
        "algorithm": type(algorithm).__name__,
        "parameters": dataclasses.asdict(algorithm),
        "arms": _checked_arms(arms),
        "support": _checked_support(support, algorithm.sigma),
        "rewards": _known(support, rewards),
        "seed": secrets.randbits(64),  # so that a replay draws the same lots, if any
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the race itself will warn
        advance(game_of(algorithm, line))  # raises what the algorithm has against it
    return line


def game_of(algorithm: Algorithm, first: Line) -> Game:
    """Start the game that a journal's first line describes."""
    known = first["rewards"] if first["format"] == FORMAT else _known_in_format_1(first)
    generator = np.random.default_rng(first.get("seed"))
    return algorithm.play(len(first["arms"]), rewards=known, generator=generator)


def _known(support: Support, rewards: str | None) -> str:
    """What is known of the rewards: what the caller says, else what their support says."""
    inside = support is not None and _within(support, 0, 1)
    if rewards is None:
        return "bounded" if inside else "sub-Gaussian"
    if one_of("rewards", rewards, REWARDS) == "bounded" and not inside:
        raise ValueError(f"support must lie in [0, 1] for bounded rewards, got {support!r}")
    return rewards


def _known_in_format_1(first: Line) -> str | None:
    """What a race of format 1 was told: sequential racing of the support, all others nothing."""
    sequential = first["algorithm"] == SequentialRacing.__name__
    return _known(first["support"], None) if sequential else None


def _checked_arms(arms: Sequence[str]) -> list[str]:
    names = list(arms)
    # Printable: they are to be read in tables, and to be typed.
    fit = not isinstance(arms, str) and all(
        isinstance(name, str) and name.strip() and name.isprintable() for name in names
    )
    if not fit or len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"arms must be a list of two or more distinct, printable names, got {arms!r}")
    return names


def _checked_support(support: Support, sigma: float) -> list[float] | None:
    if support is None:
        return None
    if not _within(support, -math.inf, math.inf):
        raise ValueError(f"support must be a pair of finite numbers (low, high), or None, got {support!r}")
    low, high = map(float, support)
    if sigma < (high - low) / 2:
        warnings.warn(
            f"the algorithm's sigma, {sigma}, is below {(high - low) / 2}, which rewards between {low} and"
            f" {high} may need: its guarantee is void unless they are known to be {sigma}-sub-Gaussian",
            stacklevel=4,
        )
    return [low, high]


def check_same(path: os.PathLike[str], there: Line, here: Line) -> None:
    """Raise JournalError if a journal belongs to another race, naming all that differs."""
    theirs, ours = _compared(there), _compared(here)
    if "rewards" in there:  # format 1 did not say
        words = "what is known of the rewards"
        theirs[words], ours[words] = there["rewards"], here["rewards"]
    said = [
        f"{key} is {theirs.get(key, 'none')!r} there and {ours.get(key, 'none')!r} here"
        for key in ours | theirs
        if theirs.get(key, "none") != ours.get(key, "none")
    ]
    if said:
        raise JournalError(
            f"{path} is the journal of another race ({'; '.join(said)}): give this race a journal of its own,"
            " or continue that one with Race.open"
        )


def _compared(first: Line) -> dict[str, Any]:
    """What makes a race the same one: who races, within which support, by which rules."""
    parameters: dict[str, Any] = first.get("parameters", {})
    return {key: first.get(key) for key in ("algorithm", "arms", "support")} | parameters


def algorithm_of(path: os.PathLike[str], first: Line) -> Algorithm:
    """Build the algorithm that a journal's first line describes."""
    name, version = first.get("algorithm"), first.get("format")
    if first["event"] != "start" or version not in (1, FORMAT) or name not in ALGORITHMS:
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
    if np.shape(support) != (2,) or not all(isinstance(end, Real) and math.isfinite(end) for end in support):
        return False
    return bool(lowest <= support[0] < support[1] <= highest)
