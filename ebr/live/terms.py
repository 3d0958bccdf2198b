"""The terms of a race: who races, for what, by which algorithm, in which units; a journal's first line."""

import dataclasses
import json
import math
import os
import reprlib
import secrets
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import Any, Self, TypeVar, cast

import numpy as np

import ebr
from ebr.algorithms.game import Algorithm, Game, Known, advance
from ebr.live.journal import JournalError, Line
from ebr.models import IN_UNIT, REWARDS
from ebr.validation import one_of, positive, whole

# 1 did not say what is known of the rewards, 2 knew neither Bernoulli ones nor rounding, 3 no scale, no
# blocks, no control, and no rewards that are missing.
FORMAT = 4
FORMATS_OF_UNION = (1, 2)  # sharp EBR knew no other looks then
# What a first line says, and from which format on. Of format 1 some said a seed.
SAID = {"event", "format", "algorithm", "parameters", "arms", "support", "time", "checksum"}
SAID_SINCE = {"rewards": 2, "seed": 2, "rounding": 3, "scale": 4, "blocks": 4}
# Whom a journal may name, nothing else is ever built from a file; and what they are called in a sentence.
ALGORITHMS = {
    "AggressiveElimination": "aggressive elimination",
    "CertifiedElasticBatchRacing": "certified elastic batch racing",
    "DeltaElimination": "δ-elimination with limited rounds",
    "ElasticBatchRacing": "elastic batch racing",
    "Passive": "a passive design",
    "PausingElasticBatchRacing": "pausing elastic batch racing",
    "SequentialRacing": "sequential racing",
    "SharpElasticBatchRacing": "sharp elastic batch racing",
    "StakedElasticBatchRacing": "staked elastic batch racing",
}
MOST_LISTED = 8  # names in a message: whoever has thousands of arms is to find the error in it
Support = tuple[float, float] | None  # the closed interval of the rewards, or any finite number
Raced = TypeVar("Raced", bound=Algorithm)


@dataclasses.dataclass(frozen=True)
class Scale:
    """The worst reward and the best, 0 and 1 to the algorithm; worst > best where less is better."""

    worst: float = 0.0
    best: float = 1.0

    @property
    def width(self) -> float:
        """Of the scale in the rewards' units; ε, σ and margin are passed to the algorithm as parts of it."""
        return abs(self.best - self.worst)

    def inside(self, total: float, count: int = 1) -> float:
        """The sum of so many rewards, as the algorithm is told it."""
        return (total - count * self.worst) / (self.best - self.worst)


UNIT = Scale()


@dataclasses.dataclass(frozen=True)
class Terms:
    """What a race is begun with, made once: `agreed` from arguments, `read` from a journal's first line.

    Attributes
    ----------
    algorithm
        As it was when the race began.
    arms, support, scale
        The names of the arms, the closed interval of their rewards, and what is 0 and 1 to the algorithm.
    rewards
        What is known of them; None where a journal of format 1 did not say.
    rounding
        Whether rewards are made 0 or 1 by lots.
    blocks
        Whether the arms of a round are observed in the same blocks.
    seed
        Of all lots.
    """

    algorithm: Algorithm
    arms: tuple[str, ...]
    support: Support = (0.0, 1.0)
    scale: Scale = UNIT
    rewards: Known = None
    rounding: bool = False
    blocks: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounding", "blocks"):
            if not isinstance(vars(self)[name], bool):
                raise ValueError(f"{name} must be True or False, got {vars(self)[name]!r}")
        if self.rewards is not None:
            _known(self.support, self.scale, self.rewards)
        if self.rounding and self.rewards != "Bernoulli":
            made = "rewards must be 'Bernoulli' for rounding=True, which makes them so"
            raise ValueError(f"{made}, got {self.rewards!r}")
        if self.blocks and (objection := self.algorithm.objection("blocks", self.rewards)):
            raise ValueError(objection)

    @classmethod
    def agreed(
        cls,
        algorithm: Algorithm,
        arms: Sequence[str],
        support: Support,
        rewards: str | None,
        rounding: bool,
        scale: tuple[float, float] | None,
        blocks: bool,
        control: str | None,
        margin: float | None,
    ) -> Self:
        """Take a race's arguments; raise ValueError for what cannot be raced, warn of what voids it."""
        _parameters(algorithm)
        names, units = _checked_arms(arms), checked_scale(scale)
        if control is not None and control not in names:
            raise ValueError(f"control must be one of the arms, {listed(names)}, got {control!r}")
        place = None if control is None else names.index(control)
        algorithm = with_control(algorithm, place, margin, units.width)
        limits = _support_on(units, checked_support(support))
        if rewards is None:  # a race that takes them for 0 and 1 refuses whatever else is told
            assumed = "Bernoulli" if algorithm.rewards == "Bernoulli" else None
            rewards = _known(limits, units, assumed, blocks is True)
        seed = secrets.randbits(64)  # so that a replay draws the same lots, if any
        terms = cls(algorithm, tuple(names), limits, units, rewards, rounding, blocks, seed)
        if blocks and (why := terms.void):
            raise ValueError(f"blocks must not be True where nothing is proved of them: {why}")
        for warning in terms._doubts():
            warnings.warn(warning, stacklevel=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the race itself will warn
            advance(terms.game())  # raises what the algorithm has against it
        return terms

    @classmethod
    def read(cls, path: os.PathLike[str], first: Line, own: Algorithm | None = None) -> Self:
        """Take a journal's first line, of an algorithm of one's own if there is one."""
        name, version = first.get("algorithm"), first.get("format")
        known = own is not None or (isinstance(name, str) and name in ALGORITHMS)
        if first["event"] != "start" or type(version) is not int or not 1 <= version <= FORMAT or not known:
            raise JournalError(
                f"line 1 of {path} is of a kind unknown here (format {reprlib.repr(version)}, algorithm"
                f" {name!s:.50}): an algorithm of your own is passed to Race itself; a newer format needs a"
                " newer ebr"
            )
        try:
            parameters = first.get("parameters", {})
            algorithm: Algorithm = getattr(ebr, str(name))(**parameters) if own is None else own
            if version in FORMATS_OF_UNION and name == "SharpElasticBatchRacing":
                algorithm = changed(algorithm, looks="union")
            return cls(algorithm, *_said(first, version))
        except (TypeError, ValueError) as error:
            raise another_version(path, error) from None

    @property
    def control(self) -> str | None:
        """The control's name, if there is a control."""
        place = self.algorithm.control
        return None if place is None else self.arms[place]

    @property
    def void(self) -> str | None:
        """Why nothing is proved of this race; None if its guarantee holds."""
        return self.algorithm.void(self.rewards, self.support is not None, self.blocks)

    def line(self) -> Line:
        """A journal's first line."""
        return {
            "event": "start",
            "format": FORMAT,
            "algorithm": type(self.algorithm).__name__,
            "parameters": _parameters(self.algorithm),
            "arms": list(self.arms),
            "support": self.support and list(self.support),
            "scale": None if self.scale == UNIT else [self.scale.worst, self.scale.best],
            "rewards": self.rewards,
            "rounding": self.rounding,
            "blocks": self.blocks,
            "seed": self.seed,
        }

    def game(self) -> Game:
        """Start the race's game."""
        generator = np.random.default_rng(self.seed)
        return self.algorithm.play(len(self.arms), rewards=self.rewards, generator=generator)

    def check_same(self, path: os.PathLike[str], there: Line) -> None:
        """Raise JournalError if a journal's first line is of another race, naming all that differs."""
        here = self.line()
        theirs, ours = _compared(there), _compared(here)
        if "rewards" in there:  # format 1 did not say
            words = "what is known of the rewards"
            theirs[words], ours[words] = there["rewards"], here["rewards"]
        if there.get("format") in FORMATS_OF_UNION:  # whether that is said now or not
            theirs["looks"] = ours.get("looks", "none")
        said = [
            f"{key} is {' there and '.join(_apart(theirs.get(key, 'none'), ours.get(key, 'none')))} here"
            for key in ours | theirs
            if theirs.get(key, "none") != ours.get(key, "none")
        ]
        if said:
            raise JournalError(
                f"{path} is the journal of another race ({'; '.join(said)}): give this race a journal of its"
                " own, or continue that one with Race.open"
            )

    def _doubts(self) -> Iterator[str]:
        """Say what makes the guarantee void; differences within a block may need σ = 1/√2 of the width."""
        if self.support is None:
            return
        low, high = self.support
        sigma, root = self.algorithm.sigma * self.scale.width, math.sqrt(2)
        if self.blocks and sigma < (high - low) / root:
            yield (
                f"sigma, {sigma:g}, is below {(high - low) / root:.4g}, which differences of rewards between"
                f" {low:g} and {high:g} may need: the guarantee is void unless differences within a block are"
                f" known to be {sigma * root:.4g}-sub-Gaussian"
            )
        if not self.blocks and sigma < (high - low) / 2:
            yield (
                f"the algorithm's sigma, {sigma}, is below {(high - low) / 2}, which rewards between {low}"
                f" and {high} may need: its guarantee is void unless they are known to be"
                f" {sigma}-sub-Gaussian"
            )
        if self.rewards not in IN_UNIT and (why := self.void):  # of those in [0, 1] the algorithm warns
            yield f"the guarantee is void: {why}; rewards lie between {low:g} and {high:g}"


def another_version(path: os.PathLike[str], error: Exception) -> JournalError:
    """The error that a first line says what cannot be raced here."""
    return JournalError(
        f"line 1 of {path} was changed, or written by another version of ebr ({error}): restore the file from"
        " a copy, or use that version"
    )


def changed(algorithm: Raced, **parameters: Any) -> Raced:
    """The algorithm, which is a dataclass, with other parameters."""
    made: Raced = dataclasses.replace(cast(Any, algorithm), **parameters)
    return made


def with_control(algorithm: Raced, control: int | None, margin: float | None, width: float) -> Raced:
    """The algorithm with a control, by its number, and a margin in units of which `width` are 1 to it."""
    if control is None and margin is None:
        return algorithm
    if objection := algorithm.objection("control"):
        raise ValueError(objection)
    inside = None if margin is None else positive("margin", margin) / width
    return changed(algorithm, control=control, margin=inside)


def listed(names: Iterable[str]) -> str:
    """Names in a message; of many the first ones, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    return ", ".join(known[:MOST_LISTED]) + more


def checked_support(support: Any) -> Support:
    """Return the interval of the rewards, or None; raise ValueError if it is neither."""
    if support is None:
        return None
    if not _within(support, -math.inf, math.inf):
        must = "support must be a pair of finite numbers (low, high), or None"
        raise ValueError(f"{must}, got {reprlib.repr(support)}")
    low, high = map(float, support)
    return low, high


def checked_scale(scale: Any) -> Scale:
    """Return the scale of a pair (worst, best), or that from 0 to 1; raise ValueError if it is neither."""
    if scale is None:
        return UNIT
    pair = isinstance(scale, tuple | list)
    if not pair or not any(_within(ends, -math.inf, math.inf) for ends in (scale, scale[::-1])):
        must = "scale must be a pair of two finite numbers (worst, best)"
        raise ValueError(f"{must}, got {reprlib.repr(scale)}")
    return Scale(*map(float, scale))


def width_of(support: tuple[float, float], epsilon: float | None) -> float:
    """Of the support; raise ValueError if it is none, or if ε is not in it."""
    limits = checked_support(support)
    if limits is None:
        raise ValueError("support must be a pair of finite numbers (low, high), got None")
    width = limits[1] - limits[0]
    if width != 1 and epsilon is not None and not 0 < positive("epsilon", epsilon) < width:
        raise ValueError(f"epsilon must lie in (0, {width:g}), in the support, got {epsilon!r}")
    return width


def _parameters(algorithm: Algorithm) -> dict[str, Any]:
    """The parameters of an algorithm, as JSON has them; ValueError if it is none, or has others."""
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


def _checked_arms(arms: Sequence[str]) -> list[str]:
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


def _in_unit(support: Support, units: Scale) -> bool:
    """Whether rewards lie in [0, 1] as the algorithm is told them."""
    return support is not None and (units != UNIT or _within(support, 0, 1))


def _support_on(scale: Scale, support: Support) -> Support:
    """The rewards' interval where there is a scale: all of it, or None; raise ValueError for another."""
    whole = min(scale.worst, scale.best), max(scale.worst, scale.best)
    if scale == UNIT or support is None:
        return support
    if tuple(support) not in ((0.0, 1.0), whole):
        raise ValueError(f"support must be left out, or None, where there is a scale, got {support!r}")
    return whole


def _known(support: Support, units: Scale, rewards: Known = None, blocks: bool = False) -> str:
    """What is known of the rewards: what is said, else what their support says of arms alone."""
    if rewards is None:
        return "bounded" if _in_unit(support, units) and not blocks else "sub-Gaussian"
    if one_of("rewards", rewards, REWARDS) == "Bernoulli" and units != UNIT:
        raise ValueError(f"scale must be left out for Bernoulli rewards, which are 0 and 1, got {units}")
    if rewards in IN_UNIT and not _in_unit(support, units):
        raise ValueError(f"support must lie in [0, 1] for {rewards} rewards, got {support!r}")
    return rewards


def _said(first: Line, version: int) -> tuple[Any, ...]:
    """What a first line says of arms, support, scale, rewards, rounding, blocks and seed.

    Raises ValueError unless it says all that it must and nothing else, each as it must.
    """
    must = SAID | {key for key, since in SAID_SINCE.items() if since <= version}
    if wrong := (first.keys() ^ must) - ({"seed"} if version == 1 else set()):
        words = [f"{key} is {'unknown' if key in first else 'missing'}" for key in sorted(wrong)]
        raise ValueError(listed(words))
    if not isinstance(first["arms"], list) or not isinstance(first["support"], list | None):
        raise ValueError("arms and support must be lists")
    if not isinstance(first["parameters"], dict):
        raise ValueError("parameters must be by name")
    units, limits = checked_scale(first.get("scale")), checked_support(first["support"])
    if units != UNIT and _support_on(units, limits) != limits:
        raise ValueError("support must be that of the scale, or none")
    # Of format 1 sequential racing was told what the support says, all others nothing.
    rewards = _known(limits, units) if first["algorithm"] == "SequentialRacing" else None
    if version > 1:
        rewards = one_of("rewards", first["rewards"], REWARDS)
    seed = whole("seed", first.get("seed", 0), 0)  # without one no lots are drawn
    marks = first.get("rounding", False), first.get("blocks", False)
    return tuple(_checked_arms(first["arms"])), limits, units, rewards, *marks, seed


def _compared(first: Line) -> dict[str, Any]:
    """What makes a race the same one: who races, within which support, rounded or not, by which rules."""
    name = first.get("algorithm")
    ours = isinstance(name, str) and name in ALGORITHMS
    known = dataclasses.fields(getattr(ebr, str(name))) if ours else ()
    # What a journal of before does not say of an algorithm that has learned more since, and of rounding.
    unsaid = {field.name: field.default for field in known if field.default is not dataclasses.MISSING}
    said: dict[str, Any] = {key: first.get(key) for key in ("algorithm", "arms", "support")}
    parameters = first.get("parameters", {})
    parameters = parameters if isinstance(parameters, dict) else {"parameters": parameters}
    unsaid |= {"rounding": False, "scale": None, "blocks": False}
    also = {key: first[key] for key in ("rounding", "scale", "blocks") if key in first}
    return said | unsaid | also | parameters


def _apart(there: Any, here: Any) -> tuple[str, str]:
    """Two values that differ, in short; of two long lists what follows the part that they share."""
    if isinstance(there, list) and isinstance(here, list) and len(there) + len(here) > 12:
        same = next((n for n, (a, b) in enumerate(zip(there, here, strict=False)) if a != b), None)
        same = min(len(there), len(here)) if same is None else same
        return f"(from place {same + 1} on) {reprlib.repr(there[same:])}", reprlib.repr(here[same:])
    return reprlib.repr(there), reprlib.repr(here)
