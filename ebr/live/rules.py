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
from ebr.algorithms.game import IN_UNIT, REWARDS, Algorithm, Game, advance
from ebr.algorithms.pair import ElasticPair
from ebr.algorithms.passive import Passive
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sequential import SequentialRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.journal import JournalError, Line
from ebr.live.rewards import Support
from ebr.validation import one_of

__all__ = ["algorithm_of", "check_same", "first_line", "game_of", "named", "word_for_left_out"]

FORMAT = 3  # 1 did not say what is known of the rewards, and 2 knew neither Bernoulli ones nor rounding
# Whom a journal may name: nothing else is ever built from a file.
ALGORITHMS: dict[str, Any] = {
    algorithm.__name__: algorithm
    for algorithm in (
        AggressiveElimination,
        DeltaElimination,
        ElasticBatchRacing,
        ElasticPair,
        Passive,
        PausingElasticBatchRacing,
        SequentialRacing,
        SharpElasticBatchRacing,
    )
}


def first_line(
    algorithm: Algorithm, arms: Sequence[str], support: Support, rewards: str | None, rounding: bool = False
) -> Line:
    """Describe a race as its journal's first line does; raise ValueError for what cannot be raced."""
    if not isinstance(algorithm, Algorithm) or not dataclasses.is_dataclass(algorithm):
        raise ValueError(
            f"algorithm must be a dataclass and have all of ebr.algorithms.game.Algorithm, got {algorithm!r}"
        )
    parameters = dataclasses.asdict(algorithm)
    if rewards is None and parameters.get("rewards") == "Bernoulli":
        rewards = "Bernoulli"  # as the algorithm takes them to be: whatever else is told is refused
    line: Line = {
        "event": "start",
        "format": FORMAT,
        "algorithm": type(algorithm).__name__,
        "parameters": parameters,
        "arms": _checked_arms(arms),
        "support": _checked_support(support, algorithm.sigma),
        "rewards": (known := _known(support, rewards)),
        "rounding": _checked_rounding(rounding, known),
        "seed": secrets.randbits(64),  # so that a replay draws the same lots, if any
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the race itself will warn
        advance(game_of(algorithm, line))  # raises what the algorithm has against it
    return line


def game_of(algorithm: Algorithm, first: Line) -> Game:
    """Start the game that a journal's first line describes."""
    known = _known_in_format_1(first) if first["format"] == 1 else first["rewards"]
    if first["format"] < FORMAT and isinstance(algorithm, SharpElasticBatchRacing):
        algorithm = dataclasses.replace(algorithm, looks="union")  # it knew no other way then
    generator = np.random.default_rng(first.get("seed"))
    return algorithm.play(len(first["arms"]), rewards=known, generator=generator)


def _known(support: Support, rewards: str | None) -> str:
    """What is known of the rewards: what the caller says, else what their support says."""
    inside = support is not None and _within(support, 0, 1)
    if rewards is None:
        return "bounded" if inside else "sub-Gaussian"
    if one_of("rewards", rewards, REWARDS) in IN_UNIT and not inside:
        raise ValueError(f"support must lie in [0, 1] for {rewards} rewards, got {support!r}")
    return rewards


def _checked_rounding(rounding: bool, known: str) -> bool:
    if not isinstance(rounding, bool):
        raise ValueError(f"rounding must be True or False, got {rounding!r}")
    if rounding and known != "Bernoulli":
        raise ValueError(f"rewards must be 'Bernoulli' for rounding=True, which makes them so, got {known!r}")
    return rounding


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
    """What makes a race the same one: who races, within which support, rounded or not, by which rules."""
    known = dataclasses.fields(ALGORITHMS[first["algorithm"]]) if first.get("algorithm") in ALGORITHMS else ()
    # What a journal of before does not say of an algorithm that has learned more since, and of rounding.
    unsaid = {field.name: field.default for field in known if field.default is not dataclasses.MISSING}
    said: dict[str, Any] = {key: first.get(key) for key in ("algorithm", "arms", "support")}
    parameters: dict[str, Any] = first.get("parameters", {})
    return said | {"rounding": first.get("rounding", False)} | unsaid | parameters


def algorithm_of(path: os.PathLike[str], first: Line) -> Algorithm:
    """Build the algorithm that a journal's first line describes."""
    name, version = first.get("algorithm"), first.get("format")
    if first["event"] != "start" or version not in range(1, FORMAT + 1) or name not in ALGORITHMS:
        raise JournalError(
            f"{path} is of a kind unknown here (format {version}, algorithm {name}): an algorithm of your own"
            " is passed to Race itself; a newer format needs a newer ebr"
        )
    try:
        built: Algorithm = ALGORITHMS[name](**first["parameters"])
    except (TypeError, ValueError) as error:
        raise JournalError(f"{path} was written by another version of ebr ({error}): use that one") from None
    return built


def named(recommendation: str | tuple[str, ...] | None) -> str:
    """What a race recommends, in words."""
    names = (recommendation,) if isinstance(recommendation, str) else recommendation or ()
    return ", ".join(names) or "no arm"


def word_for_left_out(algorithm: Algorithm) -> str:
    """What to call an arm that the coming round leaves out: only if arms pause may it come back.

    Where the k > 1 best are looked for it may have been accepted as well as dropped.
    """
    if isinstance(algorithm, ElasticBatchRacing | SharpElasticBatchRacing) and algorithm.k > 1:
        return "decided"
    return "paused or out" if isinstance(algorithm, PausingElasticBatchRacing) else "out"


def _within(support: Any, lowest: float, highest: float) -> bool:
    """Whether this is an interval of finite ends within another."""
    if np.shape(support) != (2,) or not all(isinstance(end, Real) and math.isfinite(end) for end in support):
        return False
    return bool(lowest <= support[0] < support[1] <= highest)
