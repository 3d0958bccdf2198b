"""The terms of a race: who races, for what, by which algorithm, in which units; a journal's first line."""

import json
import math
import reprlib
import secrets
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Self, cast

import numpy as np

import ebr
from ebr.algorithms.game import Algorithm, Ending, Game, Known, LossyGame, Standing, advance
from ebr.live.journal import Line
from ebr.models import IN_UNIT, REWARDS
from ebr.validation import number, one_of, positive, require, shown, true_or_false, whole
from ebr.validation import scale as squarable

FORMAT = 4
# What first lines up to a format leave unsaid, and what is meant by that. Some of format 1 have a seed.
UNSAID: Any = {1: {"rewards": None, "seed": 0}, 2: {"rounding": False}, 3: {"scale": None, "blocks": False}}
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


@dataclass(frozen=True)
class Scale:
    """The worst and the best reward, which the algorithm sees as 0 and 1; worst > best if lower is better."""

    worst: float = 0.0
    best: float = 1.0

    @property
    def width(self) -> float:
        """Width of the scale; ε, σ and margin are passed to the algorithm as fractions of it."""
        return abs(self.best - self.worst)

    @property
    def ends(self) -> tuple[float, float]:
        """The smaller end, and the larger."""
        return min(self.worst, self.best), max(self.worst, self.best)

    def inside(self, total: float, count: int = 1) -> float:
        """A sum of `count` rewards, as the algorithm sees it."""
        return (total - count * self.worst) / (self.best - self.worst)

    def outside(self, mean: float) -> float:
        """A mean that the algorithm sees, in the rewards' units."""
        return self.worst + mean * (self.best - self.worst)


UNIT, FLIPPED = UNITS = Scale(), Scale(1.0, 0.0)  # rewards are what the algorithm sees, or 1 minus that


@dataclass(frozen=True)
class Terms:
    """The terms of a race, fixed at its start: `agreed` from arguments, `read` from a journal's first line.

    `rewards` is None where a journal of format 1 did not say; `rounding` says that an old journal's rewards
    were made 0 or 1 at random; `seed` is of all lots. `Race` explains the others.
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
        vars(self).update(arms=_checked_arms(self.arms), seed=whole("seed", self.seed, 0))
        for name in ("rounding", "blocks"):
            true_or_false(name, vars(self)[name])
        support, rewards = self.support, self.rewards
        if self.scale not in UNITS and support not in (None, self.scale.ends):
            raise ValueError(f"support must be left out, or None, where there is a scale, got {support!r}")
        if rewards is not None:
            one_of("rewards", rewards, REWARDS)
        if rewards == "Bernoulli" and self.scale not in UNITS:
            must = "support must be (0, 1) for Bernoulli rewards, which are 0 and 1"
            raise ValueError(f"{must}, got {support!r}")
        if rewards in IN_UNIT and not _in_unit(support, self.scale):
            raise ValueError(f"support must lie in [0, 1] for {rewards} rewards, got {support!r}")
        if self.rounding and rewards != "Bernoulli":
            raise ValueError(f"rewards must be 'Bernoulli' where they were made so, got {rewards!r}")
        if self.blocks and (objection := self.algorithm.objection("blocks", rewards)):
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
        limits = checked_support(support, rewards or algorithm.rewards, units)
        if algorithm.sigma < math.inf:
            squarable("sigma, in the rewards' units,", algorithm.sigma * units.width)
        if rewards is None:
            rewards = _model(algorithm.rewards, limits, units, blocks is True)
        algorithm, seed = squaring(algorithm, rewards), secrets.randbits(64)
        made = cls(algorithm, cast(Any, arms), limits, units, rewards, blocks=blocks, seed=seed)
        algorithm = with_control(algorithm, place_of(control, made.arms), margin, units.width)
        made = replace(made, algorithm=algorithm)
        if blocks and (why := made.void):
            raise ValueError(f"blocks must be False here, as nothing is proved: {why}")
        made.warn()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the race itself will warn
            advance(algorithm.play(len(made.arms), rewards=rewards))  # raises the algorithm's objections
        return made

    @classmethod
    def read(cls, first: Line, own: Algorithm | None = None) -> Self:
        """Read a journal's first line; raise TypeError or ValueError unless these terms would be written so.

        `own` is the algorithm if it is not one of ebr's.
        """
        name, version = first.get("algorithm"), first.get("format")
        if first["event"] != "start" or type(version) is not int or not 1 <= version <= FORMAT:
            raise ValueError(f"format must lie in 1 … {FORMAT}, got {reprlib.repr(version)}")
        kind: Any = getattr(ebr, name) if isinstance(name, str) and name in ALGORITHMS else None
        is_own = own is not None and type(own) is not kind and type(own).__name__ == name
        if kind is None and not is_own:
            raise ValueError(f"algorithm {name!s:.50} is unknown: pass an algorithm of your own to Race")
        algorithm: Any = own if is_own else kind(**first.get("parameters", {}))
        if version < 3 and name == "SharpElasticBatchRacing":  # which had no other looks then
            algorithm = replace(algorithm, looks="union")
        unsaid: dict[str, Any] = {}
        for last in range(version, FORMAT):
            unsaid |= UNSAID[last]
        said = unsaid | {key: value for key, value in first.items() if key not in ("time", "checksum")}
        support, scale = checked_support(said.get("support")), checked_scale(said.get("scale"))
        if version > 1:
            one_of("rewards", said.get("rewards"), REWARDS)
        elif name == "SequentialRacing":  # which alone used what the support implies
            said["rewards"] = _model(None, support, scale, blocks=False)
        marks: Any = (said.get(key) for key in ("rewards", "rounding", "blocks", "seed"))
        made = cls(algorithm, cast(Any, said.get("arms")), support, scale, *marks)
        again = made.line() | {key: said.get(key) for key in ("format", "parameters")}
        wrong = [key for key in again | said if again.get(key, ...) != said.get(key, ...)]
        if wrong or (unsaid.keys() & first.keys()) - {"seed"}:
            raise ValueError(f"what is never written: {listed(wrong or unsaid)}")
        return made

    def renamed(self, arms: Sequence[str], control: str | None) -> Self:
        """The same terms for as many other arms; a planned control is the last arm, or the one named."""
        made = replace(self, arms=cast(Any, arms), seed=secrets.randbits(64))
        if len(made.arms) != len(self.arms):
            raise ValueError(f"arms must be the {len(self.arms)} that were planned for, got {len(made.arms)}")
        if control is not None and self.algorithm.control is None:
            raise ValueError(f"control must have been planned for, with control=True, got {control!r}")
        if control is not None:
            algorithm: Any = self.algorithm
            algorithm = replace(algorithm, control=place_of(control, made.arms))
            made = replace(made, algorithm=algorithm)
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

    def game(self) -> LossyGame:
        """Start the race's game, in which rewards may be missing if the algorithm permits that."""
        algorithm, generator = self.algorithm, np.random.default_rng(self.seed)
        if algorithm.objection("stopping", self.rewards):
            game = algorithm.play(len(self.arms), rewards=self.rewards, generator=generator)
            return _whole(game, algorithm.epsilon)
        return algorithm.play_lossy(len(self.arms), rewards=self.rewards, generator=generator)

    def differences(self, there: Self, first: Line) -> str:
        """How the race of a journal's first line, and of the terms that it says, differs from this one."""
        ours, theirs = self.line(), there.line()
        if there.algorithm is self.algorithm:  # of one's own: it was not made from the journal
            theirs["parameters"] = first["parameters"]
        for line in (ours, theirs):
            line |= {f"its {key}": value for key, value in line.pop("parameters").items()}
        # What a journal left open, it goes on with as it began.
        left_open = {"seed": True, "rewards": first["format"] < 2, "its looks": first["format"] < 3}
        left_open["its squares"] = theirs.get("its squares") is None
        return "; ".join(
            f"{key} is {reprlib.repr(theirs.get(key))} there and {reprlib.repr(ours.get(key))} here"
            for key in ours | theirs
            if theirs.get(key, ...) != ours.get(key, ...) and not left_open.get(key)
        )

    def warn(self) -> None:
        """Warn of what makes the guarantee void; differences in blocks may need σ = 1/√2 of the width."""
        if self.support is None:
            return
        low, high = self.support
        sigma, between = self.algorithm.sigma * self.scale.width, f"rewards between {low:g} and {high:g}"
        need, noise = (high - low) / 2, between
        if self.blocks:
            need, noise = (high - low) / math.sqrt(2), f"differences of {between}"
        if sigma < need:
            known = f"the algorithm's sigma, {sigma:g}, is below {need:.4g}, which {noise} may need"
            warnings.warn(f"{known}: its guarantee is void unless it is known to be enough", stacklevel=4)
        if self.rewards not in IN_UNIT and (why := self.void):  # for rewards in [0, 1] the algorithm warns
            warnings.warn(f"the guarantee is void for {between}: {why}", stacklevel=4)


def _whole(game: Game, epsilon: float) -> LossyGame:
    """A game in which no reward may be missing, played as one of those in which they may."""
    turn = advance(game)
    while turn.pulls is not None:
        _, sums = yield Standing(turn.pulls, np.array([-1]), np.array([math.inf]))
        turn = advance(game, sums)
    assert turn.arms is not None
    return Ending(turn.arms, np.array([epsilon]))


@dataclass(frozen=True)
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
        vars(self).update(support=limits)
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
        return _model(self.rewards, self.support, self.scale, self.blocks)

    def made(self, kind: str, n_arms: int, truths: Any = None, **changes: Any) -> Any:
        """Make a race, with changed rules if passed; a certified one for truths, tuples of means inside."""
        require(self.k == 1 or kind in ("sharp", "ebr"), "k", f"be 1 for algorithm {kind!r}", self.k)
        width = self.scale.width
        half = width / (math.sqrt(2) if self.blocks and self.support else 2)  # blocks need more
        rules: dict[str, Any] = {"deadline": self.deadline, "epsilon": (self.epsilon or width / 2) / width}
        rules |= {"delta": self.delta, "sigma": (self.sigma or half) / width, **changes}
        race: Any
        if kind == "certified":
            rewards = self.rewards or ("Bernoulli" if self.support else "Gaussian")
            margin = 0.0 if self.margin is None else positive("margin", self.margin) / width
            race = _certified(n_arms, margin, rewards=rewards, truths=truths, **rules)
        elif kind == "ebr":
            require(self.rewards is None, "rewards", "be left out for algorithm 'ebr'", self.rewards)
            race = ebr.ElasticBatchRacing(**rules)
        else:
            race = getattr(ebr, f"{kind.capitalize()}ElasticBatchRacing")(**rules, rewards=self.rewards)
        race = squaring(replace(race, k=self.k) if self.k > 1 else race, self.told)
        if kind == "sharp" and self.rewards == "Gaussian" and (self.blocks or self.missing):
            # The joint law of looks holds for independent arms only.
            race = replace(race, looks="union")
        for feature in ("missing", "blocks"):
            if getattr(self, feature) and (objection := race.objection(feature, self.rewards)):
                raise ValueError(objection)
        decides = not (self.missing and race.resumes)  # a final round that lacks rewards decides nothing
        require(decides, "algorithm", "be 'sharp' if rewards may be missing", kind)
        return with_control(race, self.control, self.margin, width)

    def agreed(self, race: Algorithm, arms: Sequence[str]) -> Terms:
        """The terms of such a race."""
        return Terms.agreed(race, arms, self.support, None, self.scale, self.blocks)


@lru_cache(maxsize=100)
def _certified(n_arms: int, margin: float, **rules: Any) -> Algorithm:
    """A certified race, which takes seconds to design; a margin is one of the shifts it is certified for."""
    shifts = (margin,) if margin > rules["epsilon"] else ()
    return ebr.certified_design(n_arms, shifts=shifts, **rules).race


def squaring(algorithm: Algorithm, rewards: Known) -> Algorithm:
    """The algorithm with squares if it leaves that open, so that small spreads do not pay for the support."""
    squared = algorithm.squared()
    return squared if squared.wants_squares(rewards) else algorithm


def with_control(algorithm: Any, control: int | None, margin: float | None, width: float) -> Any:
    """The algorithm with a control (its number) and a margin in the rewards' units, `width` to a scale."""
    if control is None and margin is None:
        return algorithm
    if objection := algorithm.objection("control"):
        raise ValueError(objection)
    if control is not None and margin is not None:
        inside = positive("margin", margin) / width
        if not algorithm.epsilon <= inside < 1:
            ends = f"[{algorithm.epsilon * width:g}, {width:g}), from epsilon to all of the support"
            raise ValueError(f"margin must lie in {ends}, got {margin!r}")
        margin = inside
    return replace(algorithm, control=control, margin=margin)


def listed(names: Iterable[str]) -> str:
    """Names in a message; the first few of many, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    return ", ".join(known[:MOST_LISTED]) + more


def place_of(control: str | None, names: Sequence[str]) -> int | None:
    """The number of the control among the arms, if there is one."""
    if control is not None and control not in names:
        raise ValueError(f"control must be one of the arms, {listed(names)}, got {control!r}")
    return None if control is None else names.index(control)


def checked_support(support: Any, rewards: Known = None, units: Scale = UNIT) -> Support:
    """Return the support, an interval or None; raise ValueError for anything else."""
    if isinstance(support, str) and support == USUAL:
        return units.ends if rewards in (None, *IN_UNIT) else None
    if support is None:
        return None
    low, high = _pair(support)
    if not -math.inf < low < high < math.inf:
        must = "support must be a pair of finite numbers (low, high), or None"
        raise ValueError(f"{must}, got {reprlib.repr(support)}")
    return low, high


def checked_scale(scale: Any, lower_is_better: Any = False) -> Scale:
    """Return the scale of a pair (worst, best), or of width 1 for None; raise ValueError otherwise."""
    if scale is None:
        return FLIPPED if true_or_false("lower_is_better", lower_is_better) else UNIT
    worst, best = _pair(scale)
    if not -math.inf < min(worst, best) < max(worst, best) < math.inf:
        must = "scale must be a pair of two finite numbers (worst, best)"
        raise ValueError(f"{must}, got {reprlib.repr(scale)}")
    return Scale(worst, best)


def _pair(ends: Any) -> list[float]:
    """Two numbers; NaN where they are none."""
    pair = isinstance(ends, tuple | list | np.ndarray) and len(ends) == 2
    return [number(end) for end in ends] if pair else [math.nan, math.nan]


def _parameters(algorithm: Any) -> dict[str, Any]:
    """The parameters of an algorithm as JSON; ValueError if it is no algorithm, or they are no JSON."""
    try:
        if not isinstance(algorithm, Algorithm):
            raise TypeError("it lacks some")
        made: dict[str, Any] = json.loads(json.dumps(asdict(cast(Any, algorithm)), allow_nan=False))
    except (TypeError, ValueError) as error:
        must = "algorithm must be a dataclass of numbers and words, with all of ebr.algorithms.game.Algorithm"
        raise ValueError(f"{must}, got {reprlib.repr(algorithm)} ({error})") from None
    return made


def _checked_arms(arms: Any) -> tuple[str, ...]:
    """Return the names of the arms; raise ValueError, with a short message, for wrong names."""
    must = "arms must be a list of two or more distinct, printable names"
    if isinstance(arms, str | bytes | set | frozenset) or not isinstance(arms, Iterable):  # sets: no order
        raise ValueError(f"{must}, got {reprlib.repr(arms)}")
    names = tuple(arms)
    # Printable, because people read them in tables and type them.
    wrong = [name for name in names if not (isinstance(name, str) and name.strip() and name.isprintable())]
    if wrong or len(names) < 2:
        raise ValueError(f"{must}, got {reprlib.repr(wrong[0] if wrong else names)}")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise ValueError(f"{must}, got more than once: {listed(twice)}")
    return names


def _in_unit(support: Support, units: Scale) -> bool:
    """Whether rewards lie in [0, 1] as the algorithm sees them."""
    return support is not None and all(0 <= units.inside(end) <= 1 for end in support)


def _model(assumed: Known, support: Support, units: Scale, blocks: bool) -> str:
    """The reward model that the support implies; an algorithm that assumes 0/1 rewards refuses others."""
    if assumed == "Bernoulli":
        return assumed
    return "bounded" if _in_unit(support, units) and not blocks else "sub-Gaussian"
