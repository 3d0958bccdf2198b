"""The terms of a race: who races, for what, by which algorithm, in which units; a journal's first line."""

import json
import math
import secrets
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Self, cast

import numpy as np

import ebr
from ebr.algorithms.game import Algorithm, Known, LossyGame, Standing, advance
from ebr.live.journal import Line
from ebr.models import IN_UNIT, REWARDS
from ebr.validation import check_fields, number, one_of, positive, require, shown, true_or_false, whole
from ebr.validation import scale as squarable

FORMAT = 5
# What first lines up to a format leave unsaid, and what is meant by that. Some of format 1 have a seed.
UNSAID: Any = {1: {"rewards": None, "seed": 0}, 2: {"rounding": False}, 3: {"scale": None, "blocks": False}}
# Races of journals up to format 4 that have left ebr: algorithm, rewards, a parameter with its value, name.
LEFT = {
    ("SharpElasticBatchRacing", "Gaussian", "looks", "joint"): "sharp EBR with the joint law of its looks",
    ("PausingElasticBatchRacing", "Bernoulli", "deadline", 1): "pausing EBR in one exact round",
}
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

    def inside(self, total: float, count: int = 1) -> float:
        """A sum of `count` rewards, as the algorithm sees it."""
        return (total - count * self.worst) / (self.best - self.worst)


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
        check_fields(self, arms=_names, seed=partial(whole, at_least=0), rounding=true_or_false)
        support, scale, rewards = self.support, self.scale, self.rewards
        ends = min(scale.worst, scale.best), max(scale.worst, scale.best)
        require(scale in UNITS or support in (None, ends), "support", f"be {ends}, as the scale", support)
        if rewards in IN_UNIT:
            unit = _in_unit(support, scale) and (scale in UNITS or rewards != "Bernoulli")
            require(unit, "support", f"lie in [0, 1] for {rewards} rewards", support)
        require(not self.rounding or rewards == "Bernoulli", "rewards", "be 'Bernoulli' if rounded", rewards)
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
        limits = checked_support(support, rewards or algorithm.rewards)
        if algorithm.sigma < math.inf:
            squarable("sigma, in the rewards' units,", algorithm.sigma * units.width)
        if rewards is None:
            rewards = _model(algorithm.rewards, limits, units, blocks is True)
        names = _names("arms", arms)
        algorithm = algorithm.suited(rewards, blocks is True)
        alone = control is None and margin is not None
        require(not alone, "margin", "be left out where there is no control", margin)
        if control is not None:
            require(control in names, "control", f"be one of the arms, {listed(names)}", control)
            if objection := algorithm.objection("control"):
                raise ValueError(objection)
            if margin is not None:
                least = algorithm.epsilon * units.width
                must = f"lie in [{least:g}, {units.width:g}), from epsilon to all of the support"
                require(least <= positive("margin", margin) < units.width, "margin", must, margin)
                margin /= units.width
            algorithm = replace(cast(Any, algorithm), control=names.index(control), margin=margin)
        made = cls(algorithm, names, limits, units, rewards, blocks=blocks, seed=secrets.randbits(64))
        require(not blocks or not made.void, "blocks", f"be False, or nothing is proved: {made.void}", blocks)
        made.warn()
        with warnings.catch_warnings(action="ignore"):  # the race itself will warn
            advance(algorithm.play(len(names), rewards=rewards))  # raises the algorithm's objections
        return made

    @classmethod
    def read(cls, first: Line, own: Algorithm | None = None) -> Self:
        """Read a journal's first line; raise TypeError or ValueError unless these terms would be written so.

        `own` is the algorithm if it is not one of ebr's.
        """
        name, version = first.get("algorithm"), cast(Any, first.get("format"))
        known = first["event"] == "start" and type(version) is int and version in range(1, FORMAT + 1)
        require(known, "format", f"lie in 1 … {FORMAT}", version)
        kind: Any = getattr(ebr, name) if isinstance(name, str) and name in ALGORITHMS else None
        is_own = own is not None and type(own) is not kind and type(own).__name__ == name
        if kind is None and not is_own:
            raise ValueError(f"algorithm {name!s:.50} is unknown: pass an algorithm of your own to Race")
        parameters: Any = dict(first.get("parameters", {}))
        if name == "SharpElasticBatchRacing":
            parameters.pop("looks", None)  # it had looks once
        algorithm: Any = own if is_own else kind(**parameters)
        for (left, rewards, parameter, value), words in LEFT.items():
            told = name, algorithm.model(first.get("rewards")), first["parameters"].get(parameter)
            if version < FORMAT and told == (left, rewards, value):
                shows = f"{words} has left ebr: ebr.live.journal.Journal(path, readonly=True).lines shows"
                raise ValueError(f"{shows} what was told; an ebr which writes format 4 goes on with it")
        unsaid = {key: value for last in range(version, 4) for key, value in UNSAID[last].items()}
        said = unsaid | {key: value for key, value in first.items() if key not in ("time", "checksum")}
        terms: dict[str, Any] = {each.name: said.get(each.name) for each in fields(cls)[1:]}
        terms["support"] = checked_support(said.get("support"))
        terms["scale"] = UNIT if said.get("scale") is None else Scale(*_pair("scale", said["scale"]))
        if version > 1:
            one_of("rewards", said.get("rewards"), REWARDS)
        elif name == "SequentialRacing":  # which alone used what the support implies
            terms["rewards"] = said["rewards"] = _model(None, terms["support"], UNIT, blocks=False)
        made = cls(algorithm, **terms)
        again = made.line() | {key: said.get(key) for key in ("format", "parameters")}
        wrong = [key for key in again | said if again.get(key, ...) != said.get(key, ...)]
        if wrong or (unsaid.keys() & first.keys()) - {"seed"}:
            raise ValueError(f"what is never written: {listed(wrong or unsaid)}")
        return made

    def renamed(self, arms: Sequence[str]) -> Self:
        """The same terms for as many other arms."""
        made = replace(self, arms=cast(Any, arms), seed=secrets.randbits(64))
        n_arms = len(self.arms)
        require(len(made.arms) == n_arms, "arms", f"be the {n_arms} that were planned for", len(made.arms))
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

    @property
    def spread_unknown(self) -> bool:
        """Whether the race estimates σ: it takes in squares of rewards that need not lie in [0, 1]."""
        return self.squares and self.rewards not in IN_UNIT

    @property
    def most_pulls(self) -> float:
        """The most pulls of all arms if no reward is missing; ∞ if unknown."""
        most = self.algorithm.most_pulls(len(self.arms), self.rewards)
        return math.inf if most is None else most

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
        """Play the race's game, in which rewards may be missing if the algorithm permits that."""
        algorithm, n_arms, generator = self.algorithm, len(self.arms), np.random.default_rng(self.seed)
        if not algorithm.objection("stopping", self.rewards):
            return (yield from algorithm.play_lossy(n_arms, rewards=self.rewards, generator=generator))
        turn = advance(game := algorithm.play(n_arms, rewards=self.rewards, generator=generator))
        while turn.pulls is not None:
            _, sums = yield Standing(np.array([-1]), np.array([math.inf]), turn.pulls)
            turn = advance(game, sums)
        return Standing(turn.arms, np.array([algorithm.epsilon]))

    def differences(self, there: Self, first: Line) -> str:
        """How the race of a journal's first line, and of the terms that it says, differs from this one."""
        ours, theirs = self.line(), there.line()
        if there.algorithm is self.algorithm:  # of one's own: it was not made from the journal
            theirs["parameters"] = first["parameters"]
        for line in (ours, theirs):
            line |= {f"its {key}": value for key, value in line.pop("parameters").items()}
        # What a journal left open, it goes on with as it began.
        left_open = {"seed": True, "rewards": first["format"] < 2}
        left_open["its squares"] = theirs.get("its squares") is None
        return "; ".join(
            f"{key} is {shown(theirs.get(key))} there and {shown(ours.get(key))} here"
            for key in ours | theirs
            if theirs.get(key, ...) != ours.get(key, ...) and not left_open.get(key)
        )

    def warn(self) -> None:
        """Warn of what makes the guarantee void; differences in blocks may need σ = 1/√2 of the width."""
        if self.support is None:
            return
        low, high = self.support
        void = f"the guarantee is void for rewards between {low:g} and {high:g}"
        sigma = self.algorithm.sigma * self.scale.width
        if sigma < (need := (high - low) / (math.sqrt(2) if self.blocks else 2)):
            known = f"unless sigma, {sigma:g}, is known to be enough: they may need {need:.4g}"
            warnings.warn(f"{void} {known}", stacklevel=4)
        if self.rewards not in IN_UNIT and (why := self.void):  # for rewards in [0, 1] the algorithm warns
            warnings.warn(f"{void}: {why}", stacklevel=4)


def listed(names: Iterable[str]) -> str:
    """Names in a message; the first few of many, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    return ", ".join(known[:MOST_LISTED]) + more


def checked_support(support: Any, rewards: Known = None) -> Support:
    """Return the support, an interval or None; raise ValueError for anything else."""
    if isinstance(support, str) and support == USUAL:
        support = (0.0, 1.0) if rewards in (None, *IN_UNIT) else None
    if support is None:
        return None
    low, high = _pair("support", support)
    require(low < high, "support", "be (low, high) with low < high, or None", support)
    return low, high


def _pair(name: str, ends: Any) -> tuple[float, float]:
    """Return two different finite numbers; raise ValueError for anything else."""
    pair = isinstance(ends, tuple | list | np.ndarray) and len(ends) == 2
    first, second = map(number, ends) if pair else (math.nan, math.nan)
    finite = math.isfinite(first) and math.isfinite(second)
    require(finite and first != second, name, "be a pair of two finite numbers", ends)
    return first, second


def _parameters(algorithm: Any) -> dict[str, Any]:
    """The parameters of an algorithm as JSON; ValueError if it is no algorithm, or they are no JSON."""
    if isinstance(algorithm, Algorithm):
        with suppress(TypeError, ValueError):
            return dict(json.loads(json.dumps(asdict(cast(Any, algorithm)), allow_nan=False)))
    must = "be a dataclass of numbers and words, with all of ebr.algorithms.game.Algorithm"
    raise ValueError(f"algorithm must {must}, got {shown(algorithm)}")


def _names(name: str, arms: Any) -> tuple[str, ...]:
    """Return the names of the arms; raise ValueError, with a short message, for wrong names."""
    must = "be a list of two or more distinct, printable names"
    ordered = isinstance(arms, Iterable) and not isinstance(arms, str | bytes | set | frozenset)
    require(ordered, name, must, arms)
    names = tuple(arms)
    # Printable, because people read them in tables and type them.
    wrong = [each for each in names if not (isinstance(each, str) and each.strip() and each.isprintable())]
    require(len(names) > 1 and not wrong, name, must, wrong or names)
    twice = [each for each, times in Counter(names).items() if times > 1]
    require(not twice, name, must, twice)
    return names


def _in_unit(support: Support, units: Scale) -> bool:
    """Whether rewards lie in [0, 1] as the algorithm sees them."""
    return support is not None and all(0 <= units.inside(end) <= 1 for end in support)


def _model(assumed: Known, support: Support, units: Scale, blocks: bool) -> str:
    """The reward model that the support implies; an algorithm that assumes 0/1 rewards refuses others."""
    if assumed == "Bernoulli":
        return assumed
    return "bounded" if _in_unit(support, units) and not blocks else "sub-Gaussian"
