"""Rewards as people pass them in, checked against what was asked for."""

import csv
import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, TextIO, TypeVar

import numpy as np

from ebr.arrays import FloatArray

MOST_LISTED = 8  # names in a message: whoever has thousands of arms is to find the error in it
LONGEST = 2**16  # characters of a line in a table: what has more is none, and may have no end
COMPLETE = (
    "tell the round when it is complete, or say missing='at random' if what is missing has nothing to do with"
    " the rewards"
)
Support = tuple[float, float] | None  # the closed interval of the rewards, or any finite number
Sums = dict[str, tuple[int, float]]  # of each arm the number of its rewards and their sum
Singles = dict[str, list[float]]  # of each arm its rewards
Read = TypeVar("Read")


def checked_round(
    rewards: Mapping[str, Any],
    asked: Mapping[str, int],
    arms: Sequence[str],
    support: Support,
    short: bool = False,
) -> dict[str, list[float]]:
    """Return count and sum of each arm's rewards; raise ValueError unless they are exactly what was asked.

    Or, if they may be `short`, no more than that.
    """
    if not isinstance(rewards, Mapping):
        raise ValueError(f"rewards must be a dict by arm, got {reprlib.repr(rewards)}")
    for arm in rewards:
        if arm not in asked:
            why = "is not pulled in this round" if arm in arms else "is unknown"
            raise ValueError(f"arm {arm!r} {why}: the arms asked for are {listed(asked)}")
    if missing := [arm for arm in asked if arm not in rewards]:
        advice = "say [] for an arm of which all are" if short else COMPLETE
        raise ValueError(f"rewards of {listed(missing)} are missing: {advice}")
    return {arm: _count_and_sum(arm, rewards[arm], number, support, short) for arm, number in asked.items()}


def listed(names: Iterable[str]) -> str:
    """Names in a message; of many the first ones, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - MOST_LISTED} more" if len(known) > MOST_LISTED else ""
    return ", ".join(known[:MOST_LISTED]) + more


def _count_and_sum(arm: str, rewards: Any, asked: int, support: Support, short: bool) -> list[float]:
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
    _check_count(arm, count, asked, short)
    try:
        total = math.fsum(summands)  # rounded once, whatever the order: it stays in its range
    except OverflowError:
        total = math.inf
    least, most = (count * low, count * high) if count else (0.0, 0.0)
    if not (math.isfinite(total) and least <= total <= most):
        raise ValueError(f"rewards of {arm!r} must {must} got {count} with the sum {total}")
    return [count, total]


def counted_ones(
    rewards: Mapping[str, Any],
    told: Mapping[str, list[float]],
    lots: Mapping[str, np.random.Generator] | None,
) -> dict[str, int]:
    """Return how many rewards of each arm count as 1, all others as 0; raise ValueError if one is neither.

    Parameters
    ----------
    rewards, told
        What `checked_round` was passed, and what it returned.
    lots
        Of each arm, for *randomised rounding*: a reward y counts as 1 with probability y, so that its
        expectation stays what it is. None: every reward must be 0 or 1.
    """
    return {
        arm: _ones(arm, rewards[arm], total, lots[arm] if lots else None) for arm, (_, total) in told.items()
    }


def lots_of_round(seed: int, number: int, arms: Sequence[str]) -> dict[str, np.random.Generator]:
    """Of each arm the lots that round its rewards in the round of this number, always the same."""
    return {arm: np.random.default_rng([seed, number, place]) for place, arm in enumerate(arms)}


def _ones(arm: str, rewards: Any, total: float, lots: np.random.Generator | None) -> int:
    """Count or draw the ones among an arm's rewards."""
    if isinstance(rewards, tuple):
        if not float(total).is_integer():
            advice = "pass the single rewards to have them rounded" if lots else "each of them is 0 or 1"
            raise ValueError(
                f"the sum of the rewards of {arm!r} must be a whole number, got {total}: {advice}"
            )
        return int(total)
    values = _values(arm, rewards)
    if lots is not None:
        return int(np.count_nonzero(lots.random(len(values)) < values))
    neither = values[(values != 0) & (values != 1)]
    if len(neither):
        advice = "start the race with rounding=True for others in [0, 1]"
        raise ValueError(f"Bernoulli rewards of {arm!r} must be 0 or 1, got {neither[0]}: {advice}")
    return int(np.count_nonzero(values))


def _values(arm: str, rewards: Any) -> FloatArray:
    """Turn a list or an array of numbers into an array; nothing that only looks like one."""
    values = np.asarray(rewards)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or np.ma.is_masked(rewards):
        what = "a list of numbers or a tuple (count, sum)"
        raise ValueError(f"rewards of {arm!r} must be {what}, got {reprlib.repr(rewards)}")
    return values.astype(np.float64)


def _check_count(arm: str, count: int, asked: int, short: bool) -> None:
    if count == asked or (short and 0 <= count < asked):
        return
    advice = COMPLETE
    if count > asked:
        advice = (
            f"pass the first {asked} in the order in which they were observed, as the guarantee is for"
            " numbers fixed before any reward is seen"
        )
    raise ValueError(f"{asked} rewards of {arm!r} were asked for, got {count}: {advice}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def from_words(words: Iterable[str]) -> Sums:
    """Read ARM=SUM/COUNT for each arm."""
    sums: Sums = {}
    for word in words:
        arm, _, fraction = word.rpartition("=")
        total, _, count = fraction.partition("/")
        if not arm or not total or not count:
            raise ValueError(f"{word!r} must be of the form ARM=SUM/COUNT, for instance A=67/120")
        _add(sums, arm, count, total, repr(word))
    return sums


def from_file(name: str) -> Singles | Sums:
    """Read a table with columns arm and reward, a row a pull, or arm, count and sum, a row an arm."""
    return table_of(name, lambda rows: _from_rows(name, rows))


def table_of(name: str, read: Callable[["csv.DictReader[str]"], Read]) -> Read:
    """Read a table from a file."""
    with open(name, newline="", encoding="utf-8-sig") as file:  # spreadsheets like to begin with a mark
        try:
            return read(csv.DictReader(_lines(name, file), skipinitialspace=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{name} cannot be read as a table in UTF-8: {error}") from None


def _lines(name: str, file: TextIO) -> Iterator[str]:
    """The lines of a table: of what has no line ends, as a device may, not more than the first part."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise ValueError(f"{name} is no table: a line has more than {LONGEST - 1} characters")
        yield line


def _from_rows(name: str, rows: "csv.DictReader[str]") -> Singles | Sums:
    singles: Singles = {}
    sums: Sums = {}
    columns = rows.fieldnames or ()
    if sorted(columns) not in (["arm", "reward"], ["arm", "count", "sum"]):
        twice = [column for column in dict.fromkeys(columns) if columns.count(column) > 1]
        got = f", and {listed(map(repr, twice))} once only" if twice else ""
        raise ValueError(f"{name} must have the columns arm,reward or arm,count,sum in its first line{got}")
    for row in rows:
        where = f"{name}, line {rows.line_num}"
        if None in row or None in row.values():
            raise ValueError(f"{where}: there must be {len(columns)} columns")
        if "reward" in columns:
            singles.setdefault(row["arm"], []).append(number_of(row["reward"], where))
        else:
            _add(sums, row["arm"], row["count"], row["sum"], where)
    return singles or sums


def _add(sums: Sums, arm: str, count: str, total: str, where: str) -> None:
    """Read the number of an arm's rewards and their sum; errors say `where` they stand."""
    if arm in sums:
        raise ValueError(f"{where}: there are rewards of {arm} before; add them up")
    if not count.strip().isdecimal():
        raise ValueError(f"{where}: the count must be a whole number, got {count!r}")
    sums[arm] = int(count), number_of(total, where)


def number_of(text: str, where: str) -> float:
    """Read a number; the error says where it stands."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{where}: {text!r} is not a number") from None
