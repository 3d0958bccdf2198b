"""The rules of a race as its journal's first line has them: who races, for what, with which algorithm."""

import dataclasses
import os
import reprlib
import secrets
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.elimination import AggressiveElimination, DeltaElimination
from ebr.algorithms.game import Algorithm, Game, advance
from ebr.algorithms.passive import Passive
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sequential import SequentialRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.blocks import check_blocks, void_in_blocks
from ebr.live.journal import JournalError, Line
from ebr.live.rewards import Support, listed
from ebr.live.scale import UNIT, Scale, checked_scale, support_on
from ebr.live.terms import (
    checked_arms,
    checked_parameters,
    checked_rounding,
    checked_support,
    known_of,
    void,
)
from ebr.models import REWARDS
from ebr.validation import one_of, whole

# 1 did not say what is known of the rewards, 2 knew neither Bernoulli ones nor rounding, 3 no scale, no
# blocks, no control, and no rewards that are missing.
FORMAT = 4
# What a first line says, and from which format on. Of format 1 some said a seed.
SAID = {"event", "format", "algorithm", "parameters", "arms", "support", "time", "checksum"}
SAID_SINCE = {"rewards": 2, "seed": 2, "rounding": 3, "scale": 4, "blocks": 4}
Pair = tuple[float, float] | None
# Whom a journal may name: nothing else is ever built from a file.
ALGORITHMS: dict[str, Any] = {
    algorithm.__name__: algorithm
    for algorithm in (
        AggressiveElimination,
        DeltaElimination,
        ElasticBatchRacing,
        Passive,
        PausingElasticBatchRacing,
        SequentialRacing,
        SharpElasticBatchRacing,
    )
}


def first_line(
    algorithm: Algorithm,
    arms: Sequence[str],
    support: Support,
    rewards: str | None,
    rounding: bool = False,
    scale: Pair = None,
    blocks: bool = False,
) -> Line:
    """Describe a race as its journal's first line does; raise ValueError for what cannot be raced."""
    parameters = checked_parameters(algorithm)
    if rewards is None and parameters.get("rewards") == "Bernoulli":
        rewards = "Bernoulli"  # as the algorithm takes them to be: whatever else is told is refused
    units = checked_scale(scale)
    limits = support_on(units, checked_support(support))
    known = _known(limits, rewards, units, blocks)
    line: Line = {
        "event": "start",
        "format": FORMAT,
        "algorithm": type(algorithm).__name__,
        "parameters": parameters,
        "arms": checked_arms(arms),
        "support": limits and list(limits),
        "scale": None if units == UNIT else [units.worst, units.best],
        "rewards": known,
        "rounding": checked_rounding(rounding, known),
        "blocks": check_blocks(blocks, algorithm, known),
        "seed": secrets.randbits(64),  # so that a replay draws the same lots, if any
    }
    sigma = algorithm.sigma * units.width
    for warning in void_in_blocks(sigma, limits) if blocks else void(sigma, limits, known, units != UNIT):
        warnings.warn(warning, stacklevel=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the race itself will warn
        advance(game_of(algorithm, line))  # raises what the algorithm has against it
    return line


def _known(support: Support, rewards: str | None, units: Scale, blocks: bool) -> str:
    """What is known of the rewards, inside the scale; in blocks their support says nothing of arms alone."""
    if rewards is None and blocks is True:
        return "sub-Gaussian"
    if rewards == "Bernoulli" and units != UNIT:
        raise ValueError(f"scale must be left out for Bernoulli rewards, which are 0 and 1, got {units}")
    return known_of((0.0, 1.0) if support and units != UNIT else support, rewards)


def as_begun(algorithm: Algorithm, first: Line) -> tuple[Algorithm, str | None]:
    """The algorithm as it was when the race began, and what it was told of the rewards."""
    if first["format"] < 3 and isinstance(algorithm, SharpElasticBatchRacing):
        algorithm = dataclasses.replace(algorithm, looks="union")  # it knew no other way then
    return algorithm, _known_in_format_1(first) if first["format"] == 1 else first["rewards"]


def game_of(algorithm: Algorithm, first: Line) -> Game:
    """Start the game that a journal's first line describes."""
    algorithm, known = as_begun(algorithm, first)
    generator = np.random.default_rng(first.get("seed", 0))  # without a seed no lots are drawn
    return algorithm.play(len(first["arms"]), rewards=known, generator=generator)


def _known_in_format_1(first: Line) -> str | None:
    """What a race of format 1 was told: sequential racing of the support, all others nothing."""
    sequential = first["algorithm"] == SequentialRacing.__name__
    return known_of(first["support"], None) if sequential else None


def check_same(path: os.PathLike[str], there: Line, here: Line) -> None:
    """Raise JournalError if a journal belongs to another race, naming all that differs."""
    theirs, ours = _compared(there), _compared(here)
    if "rewards" in there:  # format 1 did not say
        words = "what is known of the rewards"
        theirs[words], ours[words] = there["rewards"], here["rewards"]
    said = [
        f"{key} is {' there and '.join(_apart(theirs.get(key, 'none'), ours.get(key, 'none')))} here"
        for key in ours | theirs
        if theirs.get(key, "none") != ours.get(key, "none")
    ]
    if said:
        raise JournalError(
            f"{path} is the journal of another race ({'; '.join(said)}): give this race a journal of its own,"
            " or continue that one with Race.open"
        )


def _apart(there: Any, here: Any) -> tuple[str, str]:
    """Two values that differ, in short; of two long lists what follows the part that they share."""
    if isinstance(there, list) and isinstance(here, list) and len(there) + len(here) > 12:
        same = next((n for n, (a, b) in enumerate(zip(there, here, strict=False)) if a != b), None)
        same = min(len(there), len(here)) if same is None else same
        return f"(from place {same + 1} on) {reprlib.repr(there[same:])}", reprlib.repr(here[same:])
    return reprlib.repr(there), reprlib.repr(here)


def _compared(first: Line) -> dict[str, Any]:
    """What makes a race the same one: who races, within which support, rounded or not, by which rules."""
    name = first.get("algorithm")
    known = dataclasses.fields(ALGORITHMS[name]) if isinstance(name, str) and name in ALGORITHMS else ()
    # What a journal of before does not say of an algorithm that has learned more since, and of rounding.
    unsaid = {field.name: field.default for field in known if field.default is not dataclasses.MISSING}
    said: dict[str, Any] = {key: first.get(key) for key in ("algorithm", "arms", "support")}
    parameters = first.get("parameters", {})
    parameters = parameters if isinstance(parameters, dict) else {"parameters": parameters}
    unsaid |= {"rounding": False, "scale": None, "blocks": False}
    also = {key: first[key] for key in ("rounding", "scale", "blocks") if key in first}
    return said | unsaid | also | parameters


def algorithm_of(path: os.PathLike[str], first: Line, own: Algorithm | None = None) -> Algorithm:
    """Check a journal's first line; build the algorithm that it describes, if there is none of one's own."""
    name, version = first.get("algorithm"), first.get("format")
    known = own is not None or (isinstance(name, str) and name in ALGORITHMS)
    if first["event"] != "start" or type(version) is not int or not 1 <= version <= FORMAT or not known:
        raise JournalError(
            f"line 1 of {path} is of a kind unknown here (format {reprlib.repr(version)}, algorithm"
            f" {name!s:.50}): an algorithm of your own is passed to Race itself; a newer format needs a"
            " newer ebr"
        )
    try:
        built: Algorithm = own if own is not None else ALGORITHMS[str(name)](**first.get("parameters", {}))
        _check_first(first, version)
        check_blocks(first.get("blocks", False), built, first.get("rewards", ""))
    except (TypeError, ValueError) as error:
        raise another_version(path, error) from None
    return built


def another_version(path: os.PathLike[str], error: Exception) -> JournalError:
    """The error that a first line says what cannot be raced here."""
    return JournalError(
        f"line 1 of {path} was changed, or written by another version of ebr ({error}): restore the file from"
        " a copy, or use that version"
    )


def _check_first(first: Line, version: int) -> None:
    """Raise ValueError unless a first line says all that it must and nothing else, each as it must."""
    must = SAID | {key for key, since in SAID_SINCE.items() if since <= version}
    if wrong := (first.keys() ^ must) - ({"seed"} if version == 1 else set()):
        words = [f"{key} is {'unknown' if key in first else 'missing'}" for key in sorted(wrong)]
        raise ValueError(listed(words))
    if not isinstance(first["arms"], list) or not isinstance(first["support"], list | None):
        raise ValueError("arms and support must be lists")
    if not isinstance(first["parameters"], dict):
        raise ValueError("parameters must be by name")
    checked_arms(first["arms"])
    units, limits = checked_scale(first.get("scale")), checked_support(first["support"])
    if units != UNIT and support_on(units, limits) != limits:
        raise ValueError("support must be that of the scale, or none")
    if version > 1:
        one_of("rewards", first["rewards"], REWARDS)
    known = _known(limits, first.get("rewards"), units, first.get("blocks", False))
    checked_rounding(first.get("rounding", False), known)
    whole("seed", first.get("seed", 0), 0)


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
