"""The terms of a race: who races, for what, by which algorithm, in which units; a journal's first line."""

import dataclasses
import json
import math
import os
import reprlib
import secrets
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from numbers import Real
from typing import Any, Self, TypeVar, cast

import numpy as np

import ebr
from ebr.algorithms.game import Algorithm, Game, Known, LossyGame, advance
from ebr.live.journal import JournalError, Line
from ebr.models import IN_UNIT, REWARDS
from ebr.validation import in_unit_interval, one_of, positive, rounds, shown, true_or_false, whole
from ebr.validation import scale as squarable

# Format 1 has no reward model; 2 no Bernoulli rewards and no rounding; 3 no scale, blocks, control or
# missing rewards. Format 4 still has the races of `LEFT`.
FORMAT = 5
# Races that have left ebr: of which algorithm and rewards, a parameter with its value, and their name.
LEFT = [
    ("SharpElasticBatchRacing", "Gaussian", ("looks", "joint"), "sharp EBR with the joint law of its looks"),
    ("PausingElasticBatchRacing", "Bernoulli", ("deadline", 1), "pausing EBR in one exact round"),
]
# The keys of a first line, and the format that introduced them. Some of format 1 have a seed.
SAID = {"event", "format", "algorithm", "parameters", "arms", "support", "time", "checksum"}
SAID_SINCE = {"rewards": 2, "seed": 2, "rounding": 3, "scale": 4, "blocks": 4}
# The algorithms that a journal may name (nothing else is ever built from a file), and their names in text.
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
MOST_LISTED = 8  # names in a message, so that the error is found among thousands of arms
Support = tuple[float, float] | None  # the closed interval of the rewards, or any finite number
USUAL: Any = "usual"  # default support: [0, 1], or None for rewards without bounds
Raced = TypeVar("Raced", bound=Algorithm)


@dataclasses.dataclass(frozen=True)
class Scale:
    """The worst and the best reward, which the algorithm sees as 0 and 1; worst > best if lower is better."""

    worst: float = 0.0
    best: float = 1.0

    @property
    def width(self) -> float:
        """Width of the scale; ε, σ and margin are passed to the algorithm as fractions of it."""
        return abs(self.best - self.worst)

    def inside(self, total: float, count: int = 1) -> float:
        """A sum of `count` rewards, as the algorithm sees it."""
        return (total - count * self.worst) / (self.best - self.worst)

    def outside(self, mean: float) -> float:
        """A mean that the algorithm sees, in the rewards' units."""
        return self.worst + mean * (self.best - self.worst)


UNIT, FLIPPED = Scale(), Scale(1.0, 0.0)  # of width 1: ε, σ and margin stay as they are


@dataclasses.dataclass(frozen=True)
class Terms:
    """The terms of a race, fixed at its start: `agreed` from arguments, `read` from a journal's first line.

    Attributes
    ----------
    algorithm
        As it was when the race began.
    arms, support, scale
        The names of the arms, the closed interval of their rewards, and what is 0 and 1 to the algorithm.
    rewards
        What is known of them; None where a journal of format 1 did not say.
    rounding
        Whether a journal says that rewards were made 0 or 1 at random; no new race does.
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
            true_or_false(name, vars(self)[name])
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
        units: Scale,
        blocks: bool,
        control: str | None = None,
        margin: float | None = None,
    ) -> Self:
        """Take a race's arguments; raise ValueError for what cannot be raced, warn of what voids it."""
        _parameters(algorithm)
        names = _checked_arms(arms)
        algorithm = with_control(algorithm, place_of(control, names), margin, units.width)
        limits = _support_on(units, checked_support(support, rewards or algorithm.rewards))
        if algorithm.sigma < math.inf:
            squarable("sigma, in the rewards' units,", algorithm.sigma * units.width)
        if rewards is None:  # an algorithm for 0/1 rewards refuses others
            assumed = "Bernoulli" if algorithm.rewards == "Bernoulli" else None
            rewards = _known(limits, units, assumed, blocks is True)
        seed = secrets.randbits(64)  # so that a replay draws the same lots, if any
        terms = cls(algorithm, tuple(names), limits, units, rewards, blocks=blocks, seed=seed)
        if blocks and (why := terms.void):
            raise ValueError(f"blocks must be False here, as nothing is proved: {why}")
        terms.warn()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the race itself will warn
            advance(terms.game())  # raises the objections of the algorithm
        return terms

    @classmethod
    def read(cls, path: os.PathLike[str], first: Line, own: Algorithm | None = None) -> Self:
        """Read a journal's first line; `own` is the algorithm if it is not one of ebr's."""
        name, version = first.get("algorithm"), first.get("format")
        known = own is not None or (isinstance(name, str) and name in ALGORITHMS)
        if first["event"] != "start" or type(version) is not int or not 1 <= version <= FORMAT or not known:
            raise JournalError(
                f"line 1 of {path} has an unknown format or algorithm (format {reprlib.repr(version)},"
                f" algorithm {name!s:.50}): pass an algorithm of your own to Race itself; a newer format"
                " needs a newer ebr"
            )
        try:
            parameters = _still_known(first)
            kind: Any = getattr(ebr, str(name), None)
            algorithm: Algorithm = kind(**parameters) if own is None or type(own) is kind else own
            _check_left(path, first, algorithm)
            return cls(algorithm, *_said(first, version))
        except JournalError:
            raise
        except (TypeError, ValueError) as error:
            raise another_version(path, error) from None

    def renamed(self, arms: Sequence[str], control: str | None) -> Self:
        """The same terms for as many other arms; a planned control is the last arm, or the one named."""
        names = _checked_arms(arms)
        if len(names) != len(self.arms):
            raise ValueError(f"arms must be the {len(self.arms)} that were planned for, got {len(names)}")
        if control is not None and self.algorithm.control is None:
            raise ValueError(f"control must have been planned for, with control=True, got {control!r}")
        algorithm, place = self.algorithm, place_of(control, names)
        if place is not None:
            algorithm = changed(algorithm, control=place)
        seed = secrets.randbits(64)
        made = dataclasses.replace(self, algorithm=algorithm, arms=tuple(names), seed=seed)
        made.warn()
        return made

    @property
    def control(self) -> str | None:
        """The control's name, if there is a control."""
        place = self.algorithm.control
        return None if place is None else self.arms[place]

    @property
    def void(self) -> str | None:
        """Why nothing is proved of this race; None if its guarantee holds."""
        return self.algorithm.void(self.rewards, self.support is not None, self.blocks)

    @property
    def squares(self) -> bool:
        """Whether sums of squares are taken in."""
        return self.algorithm.wants_squares(self.rewards)

    def squared(self) -> Self:
        """The same terms, with squares where the rewards are in [0, 1] and the algorithm leaves that open."""
        raced = self.algorithm.squared()
        return dataclasses.replace(self, algorithm=raced) if raced.wants_squares(self.rewards) else self

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

    def lossy_game(self) -> LossyGame:
        """Start a game that can be stopped and in which rewards may be missing."""
        generator = np.random.default_rng(self.seed)
        return self.algorithm.play_lossy(len(self.arms), rewards=self.rewards, generator=generator)

    def check_same(self, path: os.PathLike[str], there: Line) -> None:
        """Raise JournalError if a journal's first line is of another race; name all differences."""
        here = self.line()
        theirs, ours = _compared(there), _compared(here)
        if "rewards" in there:  # format 1 did not say
            words = "what is known of the rewards"
            theirs[words], ours[words] = there["rewards"], here["rewards"]
        if ours.get("squares") and theirs.get("squares") is None:  # it was begun without: it goes on without
            theirs["squares"] = True
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

    def warn(self) -> None:
        """Warn of what makes the guarantee void."""
        for doubt in self._doubts():
            warnings.warn(doubt, stacklevel=4)

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
        if self.rewards not in IN_UNIT and (why := self.void):  # for rewards in [0, 1] the algorithm warns
            yield f"the guarantee is void: {why}; rewards lie between {low:g} and {high:g}"


@dataclasses.dataclass(frozen=True)
class Brief:
    """What is asked of a race, in the rewards' units: `ebr.plan` explains it; `plan` and `start` take it.

    Without a support the scale is 2σ wide, so that a plan does not depend on the units.
    """

    deadline: int
    epsilon: float | None  # None if it is to be found
    delta: float
    sigma: float | None = None
    rewards: Known = None
    support: Support = USUAL
    lower_is_better: bool = False
    k: int = 1
    blocks: bool = False
    missing: bool = False
    control: int | None = None
    margin: float | None = None

    def __post_init__(self) -> None:
        if self.rewards is not None:
            one_of("rewards", self.rewards, REWARDS)
        for name in ("lower_is_better", "blocks", "missing"):
            true_or_false(name, vars(self)[name])
        limits, left_out = checked_support(self.support, self.rewards), isinstance(self.support, str)
        vars(self).update(support=limits, deadline=rounds("deadline", self.deadline))
        in_unit_interval("delta", self.delta)
        if self.sigma is not None:
            positive("sigma", self.sigma)
        width, of = self.scale.width, "the support" if limits else "twice sigma"
        if self.epsilon is not None and not positive("epsilon", self.epsilon) < width:
            known = "sigma" if limits is None else "the support, or rewards='Gaussian' and their sigma"
            hint = f": give {known}" if left_out and (limits or self.sigma is None) else ""
            raise ValueError(f"epsilon must lie in (0, {width:g}), {of}, got {shown(self.epsilon)}{hint}")
        if self.rewards in IN_UNIT and self.sigma is not None and self.sigma < width / 2:
            least = f"at least {width / 2:g} for {self.rewards} rewards"
            raise ValueError(f"sigma must be {least}, got {self.sigma}")

    @property
    def scale(self) -> Scale:
        """The rewards that the algorithm sees as 0 and 1."""
        low, high = self.support or (0.0, 1.0 if self.sigma is None else 2 * self.sigma)
        return Scale(high, low) if self.lower_is_better else Scale(low, high)

    @property
    def told(self) -> str:
        """The reward model of the race."""
        said = "Bernoulli" if self.rewards == "Bernoulli" else None
        return _known(self.support, self.scale, said, self.blocks)

    def maker(self, kind: str, n_arms: int) -> Callable[..., Any]:
        """A function that makes the race, with changed rules if passed, or raises ValueError."""
        width = self.scale.width
        half = width / (math.sqrt(2) if self.blocks and self.support else 2)  # blocks need more
        rules: dict[str, Any] = {"deadline": self.deadline, "epsilon": (self.epsilon or width / 2) / width}
        rules |= {"delta": self.delta, "sigma": (self.sigma or half) / width, "rewards": self.rewards}
        if kind == "certified":
            rules["rewards"] = self.rewards or ("Bernoulli" if self.support else "Gaussian")
            rules["margin"] = 0.0 if self.margin is None else positive("margin", self.margin) / width

        def make(**changes: Any) -> Algorithm:
            if self.k > 1 and kind not in ("sharp", "ebr"):
                raise ValueError(f"k must be 1 for algorithm {kind!r}, got {self.k}")
            race = RACES[kind](n_arms, **rules | changes)
            race = changed(race, k=self.k) if "k" in vars(race) else race
            squared = race.squared()  # so that rewards of small spread do not pay for the whole support
            race = squared if squared.wants_squares(self.told) else race
            for feature in ("missing", "blocks"):
                if getattr(self, feature) and (objection := race.objection(feature, self.rewards)):
                    raise ValueError(objection)
            if self.missing and race.resumes:  # a final round that lacks rewards decides nothing
                raise ValueError(f"algorithm must be 'sharp' if rewards may be missing, got {kind!r}")
            return with_control(race, self.control, self.margin, width)

        return make

    def agreed(self, race: Algorithm, arms: Sequence[str]) -> Terms:
        """The terms of such a race."""
        return Terms.agreed(race, arms, self.support, None, self.scale, self.blocks)


def _elastic(n_arms: int, rewards: Known, **rules: Any) -> Algorithm:
    if rewards:
        raise ValueError(f"rewards must be left out for algorithm 'ebr', got {rewards!r}")
    return ebr.ElasticBatchRacing(**rules)


@lru_cache(maxsize=100)  # each takes seconds
def _certified(n_arms: int, margin: float, **rules: Any) -> Algorithm:
    shifts = (margin,) if margin > rules["epsilon"] else ()  # which the design is to be certified for
    return ebr.certified_design(n_arms, shifts=shifts, **rules).race


# Every kind of race that can be asked for by name: how it is made for n arms, by rules between 0 and 1.
RACES: dict[str, Callable[..., Algorithm]] = {
    "sharp": lambda n_arms, **rules: ebr.SharpElasticBatchRacing(**rules),
    "pausing": lambda n_arms, **rules: ebr.PausingElasticBatchRacing(**rules),
    "staked": lambda n_arms, **rules: ebr.StakedElasticBatchRacing(**rules),
    "certified": _certified,
    "ebr": _elastic,
}


def another_version(path: os.PathLike[str], error: Exception) -> JournalError:
    """The error for a first line that cannot be raced here."""
    return JournalError(
        f"line 1 of {path} was changed, or written by another version of ebr ({error}): restore the file from"
        " a copy, or use that version"
    )


def changed(algorithm: Raced, **parameters: Any) -> Raced:
    """A copy of the algorithm, a dataclass, with other parameters."""
    made: Raced = dataclasses.replace(cast(Any, algorithm), **parameters)
    return made


def with_control(algorithm: Raced, control: int | None, margin: float | None, width: float) -> Raced:
    """The algorithm with a control (its number) and a margin in the rewards' units, `width` to a scale."""
    if control is None and margin is None:
        return algorithm
    if objection := algorithm.objection("control"):
        raise ValueError(objection)
    if margin is None or control is None:
        return changed(algorithm, control=control, margin=margin)
    inside = positive("margin", margin) / width
    if not algorithm.epsilon <= inside < 1:
        ends = f"[{algorithm.epsilon * width:g}, {width:g}), from epsilon to all of the support"
        raise ValueError(f"margin must lie in {ends}, got {margin!r}")
    return changed(algorithm, control=control, margin=inside)


def listed(names: Iterable[str]) -> str:
    """Names in a message; the first few of many, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    return ", ".join(known[:MOST_LISTED]) + more


def checked_support(support: Any, rewards: Known = None) -> Support:
    """Return the support, an interval or None; raise ValueError for anything else."""
    if isinstance(support, str) and support == USUAL:
        return (0.0, 1.0) if rewards in (None, *IN_UNIT) else None
    if support is None:
        return None
    if not _is_interval(support):
        must = "support must be a pair of finite numbers (low, high), or None"
        raise ValueError(f"{must}, got {reprlib.repr(support)}")
    low, high = map(float, support)
    return low, high


def checked_scale(scale: Any, lower_is_better: Any = False) -> Scale:
    """Return the scale of a pair (worst, best), or of width 1 for None; raise ValueError otherwise."""
    if scale is None:
        return FLIPPED if true_or_false("lower_is_better", lower_is_better) else UNIT
    pair = isinstance(scale, tuple | list)
    if not pair or not any(map(_is_interval, (scale, scale[::-1]))):
        must = "scale must be a pair of two finite numbers (worst, best)"
        raise ValueError(f"{must}, got {reprlib.repr(scale)}")
    return Scale(*map(float, scale))


def _parameters(algorithm: Algorithm) -> dict[str, Any]:
    """The parameters of an algorithm as JSON; ValueError if it is no algorithm, or they are no JSON."""
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
    """Return the names of the arms; raise ValueError, with a short message, for wrong names."""
    must = "arms must be a list of two or more distinct, printable names"
    if isinstance(arms, set | frozenset):
        raise ValueError(f"{must}, got a set, which has no order")
    if isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
        raise ValueError(f"{must}, got {reprlib.repr(arms)}")
    names = list(arms)
    # Printable, because people read them in tables and type them.
    for name in names:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ValueError(f"{must}, got {reprlib.repr(name)} among them")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise ValueError(f"{must}, got more than once: {listed(twice)}")
    if len(names) < 2:
        raise ValueError(f"{must}, got {names}")
    return names


def place_of(control: str | None, names: list[str]) -> int | None:
    """The number of the control among the arms, if there is one."""
    if control is not None and control not in names:
        raise ValueError(f"control must be one of the arms, {listed(names)}, got {control!r}")
    return None if control is None else names.index(control)


def _is_interval(support: Any) -> bool:
    """Whether this is a pair of finite numbers, the smaller first."""
    ends = support.tolist() if isinstance(support, np.ndarray) else support
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        return False
    try:
        low, high = (float(end) if isinstance(end, Real) else math.nan for end in ends)
    except OverflowError:  # an integer too large for a float
        return False
    return bool(-math.inf < low < high < math.inf)


def _in_unit(support: Support, units: Scale) -> bool:
    """Whether rewards lie in [0, 1] as the algorithm sees them."""
    return support is not None and all(0 <= units.inside(end) <= 1 for end in support)


def _support_on(units: Scale, support: Support) -> Support:
    """The support: with a scale, rewards are rescaled to [0, 1], so it is the whole scale or None."""
    whole = min(units.worst, units.best), max(units.worst, units.best)
    if units in (UNIT, FLIPPED) or support is None:
        return support
    if tuple(support) not in ((0.0, 1.0), whole):
        raise ValueError(f"support must be left out, or None, where there is a scale, got {support!r}")
    return whole


def _known(support: Support, units: Scale, rewards: Known = None, blocks: bool = False) -> str:
    """The reward model: the one given, or the one that the support implies."""
    if rewards is None:
        return "bounded" if _in_unit(support, units) and not blocks else "sub-Gaussian"
    if one_of("rewards", rewards, REWARDS) == "Bernoulli" and units not in (UNIT, FLIPPED):
        raise ValueError(f"support must be (0, 1) for Bernoulli rewards, which are 0 and 1, got {support!r}")
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
    if _support_on(units, limits) != limits:
        raise ValueError("support must be that of the scale, or none")
    # In format 1 sequential racing used the model that the support implies; other algorithms had none.
    rewards = _known(limits, units) if first["algorithm"] == "SequentialRacing" else None
    if version > 1:
        rewards = one_of("rewards", first["rewards"], REWARDS)
    seed = whole("seed", first.get("seed", 0), 0)  # without a seed nothing is drawn at random
    marks = first.get("rounding", False), first.get("blocks", False)
    return tuple(_checked_arms(first["arms"])), limits, units, rewards, *marks, seed


def _still_known(first: Line) -> Any:
    """The parameters of a first line; sharp EBR had one more once, its looks."""
    said = first.get("parameters", {})
    if first.get("algorithm") != "SharpElasticBatchRacing" or not isinstance(said, dict):
        return said
    return {name: value for name, value in said.items() if name != "looks"}


def _check_left(path: os.PathLike[str], first: Line, algorithm: Algorithm) -> None:
    """Raise JournalError if the race of an old first line has left ebr, so that it cannot be replayed."""
    told = first["algorithm"], algorithm.model(first.get("rewards"))
    for name, rewards, (parameter, value), words in LEFT if first["format"] < FORMAT else []:
        if told == (name, rewards) and first["parameters"].get(parameter) == value:
            raise JournalError(
                f"line 1 of {path} begins a race that has left ebr, {words} for {rewards} rewards:"
                " ebr.live.journal.Journal(path, readonly=True).lines shows what was told, and an ebr of"
                " before (version 0.1.0, format 4) goes on with it"
            )


def _compared(first: Line) -> dict[str, Any]:
    """What identifies a race: arms, support, rounding, algorithm and its parameters."""
    name = first.get("algorithm")
    ours = isinstance(name, str) and name in ALGORITHMS
    known = dataclasses.fields(getattr(ebr, str(name))) if ours else ()
    # Older journals lack parameters that algorithms gained later; these have their defaults.
    unsaid = {field.name: field.default for field in known if field.default is not dataclasses.MISSING}
    said: dict[str, Any] = {key: first.get(key) for key in ("algorithm", "arms", "support")}
    parameters = _still_known(first)
    parameters = parameters if isinstance(parameters, dict) else {"parameters": parameters}
    unsaid |= {"rounding": False, "scale": None, "blocks": False}
    also = {key: first[key] for key in ("rounding", "scale", "blocks") if key in first}
    return said | unsaid | also | parameters


def _apart(there: Any, here: Any) -> tuple[str, str]:
    """Two different values, shortened; of two long lists the parts after their common beginning."""
    if isinstance(there, list) and isinstance(here, list) and len(there) + len(here) > 12:
        same = next((n for n, (a, b) in enumerate(zip(there, here, strict=False)) if a != b), None)
        same = min(len(there), len(here)) if same is None else same
        return f"(from place {same + 1} on) {reprlib.repr(there[same:])}", reprlib.repr(here[same:])
    return reprlib.repr(there), reprlib.repr(here)
