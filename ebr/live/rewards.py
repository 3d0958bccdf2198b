"""Rewards as people pass them in: checked against what was asked for, and written as lines of a journal.

They come as lists, as counts and sums, as tables of blocks × arms, as words, and as CSV files.
"""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, TextIO

import numpy as np

from ebr.arrays import FloatArray
from ebr.live.journal import Line
from ebr.live.terms import Scale, Terms, listed
from ebr.validation import one_of, shown

MISSING = ("at random",)  # the only reason for missing rewards that the proofs cover
LARGEST = 1e100  # reward without a support: sums over all rounds stay finite
LONGEST = 2**16  # longest line accepted in a table; guards against devices
COMPLETE = (
    "tell the round when it is complete, or say missing='at random' (--missing 'at random') if rewards are"
    " missing for reasons that have nothing to do with any reward"
)
BETWEEN = (
    "for other rewards in [0, 1] start a race of 'bounded' rewards; in an old race with rounding, tell 1 with"
    " probability y in place of a reward y, and otherwise 0"
)
Pulls = dict[str, int]
Sums = dict[str, tuple[int, float]]  # count and sum of rewards, by arm
Singles = dict[str, list[float]]  # rewards, by arm


def asked_line(number: int, pulls: Pulls) -> Line:
    """The line that asks for a round."""
    return {"event": "ask", "round": number, "pulls": pulls}


def told_line(
    terms: Terms,
    number: int,
    pulls: Pulls,
    rewards: Any,
    missing: str | None = None,
    late: Any = None,
    owed: Pulls | None = None,
) -> Line:
    """The line with the rewards of a round; raise ValueError unless they are what was asked for.

    `late` has rewards of earlier rounds, which replace some of this round's; `owed` is how many there may be.
    """
    if terms.blocks:
        rewards = _by_arm(rewards, tuple(pulls))
        late = None if late is None else _by_arm(late, tuple(pulls))
    line = _summed_line(terms, number, pulls, rewards, missing, late, owed or {})
    if terms.rewards == "Bernoulli":
        for arm, (_, total) in line.get("late", {}).items():
            _ones(arm, late[arm], total)
        ones = {arm: _ones(arm, rewards[arm], line["rewards"][arm][1]) for arm in pulls}
        line |= {"counted": ones} if terms.rounding else {}  # of a journal that was begun with rounding
    return line


def stop_line(number: int) -> Line:
    """The line that stops a race in a round, whether the round was asked for or not."""
    return {"event": "stop", "round": number}


def fits(terms: Terms, line: Line, number: int, pulls: Pulls, asked: bool, owed: Pulls) -> bool:
    """Whether a line can come now: the question of this round or, once it was asked, its answer.

    Raises ValueError, as `told_line` does, if it is an answer of rewards that cannot be.
    """
    said = {key: value for key, value in line.items() if key not in ("time", "checksum")}
    if not asked:
        return _same(said, asked_line(number, pulls))
    if (line["event"], line.get("round")) != ("tell", number):
        return False
    told = line.get("rewards")
    if not isinstance(told, dict) or not all(isinstance(pair, list) for pair in told.values()):
        raise ValueError("rewards must have count and sum of each arm")
    counts = {arm: pair[:1] for arm, pair in told.items()}
    whole = not {"missing", "late"} & line.keys()
    if whole and counts != {arm: [count] for arm, count in pulls.items()}:
        return False
    return _same(said, _told_again(terms, line, number, pulls, owed))


def _same(line: Line, other: Line) -> bool:
    """Whether two lines are written alike; Python takes 1, 1.0 and true for equal."""
    return json.dumps(line, sort_keys=True) == json.dumps(other, sort_keys=True)


def _told_again(terms: Terms, line: Line, number: int, pulls: Pulls, owed: Pulls) -> Line:
    """The line that would be written now for the same rewards; possible `counted` sums are believed."""
    rewards = {arm: tuple(pair) for arm, pair in line["rewards"].items()}
    missing = one_of("missing", line["missing"], MISSING) if "missing" in line else None
    late = line.get("late")
    if late is not None and not (isinstance(late, dict) and all(isinstance(v, list) for v in late.values())):
        raise ValueError("late must have count and sum of each arm")
    late = late and {arm: tuple(pair) for arm, pair in late.items()}
    if not terms.rounding:
        return told_line(terms, number, pulls, rewards, missing, late, owed)
    counted = line.get("counted")
    if not isinstance(counted, dict) or counted.keys() != pulls.keys():
        raise ValueError("counted must have the ones among the rewards of each arm")
    again = _summed_line(terms, number, pulls, rewards, missing, late, owed)
    for arm, ones in counted.items():
        count = again["rewards"][arm][0]
        if type(ones) is not int or not 0 <= ones <= count:
            raise ValueError(f"counted must lie in 0 … {count} for {arm!r}, got {ones!r:.50}")
    return again | {"counted": counted}


def _summed_line(
    terms: Terms, number: int, pulls: Pulls, rewards: Any, missing: str | None, late: Any, owed: Pulls
) -> Line:
    """The line with count and sum of each arm's rewards, with late ones, and why some are missing."""
    if missing is not None:
        one_of("missing", missing, MISSING)
    came_late = {} if late is None else _late(terms, pulls, late, owed)
    own = {arm: count - int(came_late.get(arm, [0])[0]) for arm, count in pulls.items()}
    sums = _summed(terms, own, rewards, missing is not None)
    if terms.blocks:
        for part in (sums, came_late):
            if len({part.get(arm, [0])[0] for arm in pulls}) > 1:
                raise ValueError(
                    "rewards must be of the same blocks for every arm: only whole blocks may be missing"
                )
    line: Line = {"event": "tell", "round": number, "rewards": sums}
    short = missing is not None and any(sums[arm][0] < count for arm, count in own.items())
    if (short or came_late) and (objection := terms.algorithm.objection("missing", terms.rewards)):
        again = "pull again in place of what was lost, and tell the round when it is complete"
        raise ValueError(f"{objection}: {again}")
    line |= {"late": came_late} if came_late else {}
    return line | ({"missing": missing} if short else {})


def _late(terms: Terms, asked: Pulls, late: Any, owed: Pulls) -> Singles:
    """Count and sum of each arm's late rewards: at most what was missing, and what this round asks for."""
    if not isinstance(late, Mapping) or not late:
        raise ValueError(f"late must be a dict by arm, got {shown(late)}")
    sums: Singles = {}
    for arm, rewards in late.items():
        if arm not in asked:
            raise ValueError(f"late must be of arms asked for in this round, {listed(asked)}, got {arm!r}")
        most = min(owed.get(arm, 0), asked[arm])
        sums[arm] = _count_and_sum(arm, rewards, most, terms, short=True, late=True)
        if not sums[arm][0]:
            raise ValueError(f"late rewards of {arm!r} must be one or more, got none")
    return sums


def _summed(terms: Terms, asked: Pulls, rewards: Any, short: bool) -> Singles:
    """Count and sum of each arm's rewards: exactly what was asked for, or at most that if `short`."""
    if not isinstance(rewards, Mapping):
        raise ValueError(f"rewards must be a dict by arm, got {shown(rewards)}")
    for arm in rewards:
        if arm not in asked:
            why = "is not pulled in this round" if arm in terms.arms else "is unknown"
            raise ValueError(f"arm {arm!r} {why}: the arms asked for are {listed(asked)}")
    if missing := [arm for arm in asked if arm not in rewards]:
        advice = "pass [] for an arm without any reward" if short else COMPLETE
        raise ValueError(f"rewards of {listed(missing)} are missing: {advice}")
    return {arm: _count_and_sum(arm, rewards[arm], n, terms, short) for arm, n in asked.items()}


def _square(arm: str, rewards: Any, count: int, total: float, scale: Scale) -> float:
    """The sum of squares of an arm's rewards on the scale; the largest that is possible if it is not told."""
    inside = min(max(scale.inside(total, count), 0.0), float(count))
    least, slack = inside**2 / max(count, 1), 1e-9 * (1 + count)  # what floating point loses
    if not isinstance(rewards, tuple):
        square = math.fsum(scale.inside(value) ** 2 for value in _values(arm, rewards).tolist())
        return max(min(square, inside), least)  # sums lose more where the support is far from 0
    if len(rewards) == 2:
        return inside
    square = float(rewards[2]) if isinstance(rewards[2], Real) else math.nan
    if not least - slack <= square <= inside + slack:
        must = f"lie in [{least:g}, {inside:g}], as of rewards in [0, 1]"
        raise ValueError(f"the sum of squares of {arm!r} must {must}, got {shown(rewards[2])}")
    return square


def _count_and_sum(
    arm: str, rewards: Any, asked: int, terms: Terms, short: bool, late: bool = False
) -> list[float]:
    """Check the rewards of an arm, a list or a tuple (count, sum), against what was asked; sum them up.

    Where the algorithm wants squares their sum comes third, on the race's scale from 0 to 1.
    """
    support = terms.support
    low, high = support or (-LARGEST, LARGEST)
    must = f"lie in [{low}, {high}], the race's support," if support else f"be finite, at most {LARGEST:g},"
    total: Any
    if isinstance(rewards, tuple):
        forms = {2: "(count, sum)"} | ({3: "(count, sum, squares)"} if terms.squares else {})
        number, total = rewards[:2] if len(rewards) in forms else (None, None)
        if not isinstance(number, Integral) or isinstance(number, bool) or not isinstance(total, Real):
            form = " or ".join(forms.values())
            raise ValueError(f"a tuple for {arm!r} must be {form}, got {shown(rewards)}")
        count = int(number)
    else:
        values = _values(arm, rewards)
        outside = values[~((low <= values) & (values <= high))]
        if len(outside):
            raise ValueError(f"rewards of {arm!r} must {must} got {outside[0]}")
        # Rounded once, whatever the order: the sum stays in its range.
        count, total = len(values), math.fsum(values.tolist())
    if late and count > asked:
        what = f"late rewards of {arm!r} must be at most {asked}, got {count}"
        raise ValueError(f"{what}: no more than earlier rounds lacked, nor than this round asks for")
    _check_count(arm, count, asked, short)
    least, most = (count * low, count * high) if count else (0.0, 0.0)
    if not least <= total <= most:
        raise ValueError(f"rewards of {arm!r} must {must} got {count} with the sum {shown(total)}")
    squares = [_square(arm, rewards, count, total, terms.scale)] if terms.squares else []
    return [count, float(total), *squares]


def _check_count(arm: str, count: int, asked: int, short: bool) -> None:
    if count == asked or (short and 0 <= count < asked):
        return
    advice = COMPLETE
    if count > asked:
        advice = (
            f"pass the first {asked} in the order in which they were observed, as the guarantee is for"
            " numbers fixed before any reward is seen"
        )
    raise ValueError(f"{asked} rewards of {arm!r} were asked for, got {shown(count)}: {advice}")


def _ones(arm: str, rewards: Any, total: float) -> int:
    """Count the ones among an arm's rewards; raise ValueError unless all others are 0."""
    if isinstance(rewards, tuple):
        if not float(total).is_integer():
            must = f"the sum of the rewards of {arm!r} must be a whole number"
            raise ValueError(f"{must}, got {total}: each of them is 0 or 1")
        return int(total)
    values = _values(arm, rewards)
    neither = values[(values != 0) & (values != 1)]
    if len(neither):
        raise ValueError(f"Bernoulli rewards of {arm!r} must be 0 or 1, got {neither[0]}: {BETWEEN}")
    return int(np.count_nonzero(values))


def _values(arm: str, rewards: Any) -> FloatArray:
    """Turn a list or an array of numbers into an array; nothing that only looks like one."""
    values = np.asarray(rewards)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or np.ma.is_masked(rewards):
        what = "a list of numbers or a tuple (count, sum)"
        raise ValueError(f"rewards of {arm!r} must be {what}, got {shown(rewards)}")
    return values.astype(np.float64)


def _by_arm(rewards: Any, asked: Sequence[str]) -> Mapping[str, Any]:
    """Turn a table of blocks × arms into rewards by arm, in the order of the blocks; leave a dict unchanged.

    A DataFrame has its arms as columns; an array has a column for each arm asked for, in that order.
    """
    if isinstance(rewards, Mapping):
        return rewards
    if hasattr(rewards, "columns"):
        return {arm: rewards[arm].to_numpy() for arm in rewards.columns}
    table = np.asanyarray(rewards)  # keeps masks, which are refused column by column
    if table.ndim != 2 or table.shape[1] != len(asked):
        what = f"a table of blocks × {len(asked)} arms ({listed(asked)}), or a dict by arm"
        raise ValueError(f"rewards must be {what}, got {shown(rewards)}")
    return dict(zip(asked, table.T, strict=True))


def from_words(words: Iterable[str]) -> dict[str, Any]:
    """Read ARM=COUNT:SUM for each arm, ARM=[REWARD, …], or the fraction ARM=SUM/COUNT."""
    told: dict[str, Any] = {}
    for word in words:
        arm, _, value = word.rpartition("=")
        count, colon, total = value.partition(":")
        if not colon:
            total, _, count = value.partition("/")
        if arm and value[:1] + value[-1:] == "[]":
            _check_new(told, arm, repr(word))
            told[arm] = [_number(each, repr(word)) for each in value[1:-1].split(",") if each.strip()]
        elif arm and total and count:
            _add(told, arm, count, total, repr(word))
        else:
            raise ValueError(f"{word!r} must be of the form ARM=COUNT:SUM, for instance A=120:67")
    return told


def from_file(name: str) -> Singles | Sums:
    """Read a table with columns arm, reward (one row per pull) or arm, count, sum (one row per arm).

    Other columns are ignored.
    """
    singles: Singles = {}
    sums: Sums = {}
    with _table(name) as (columns, rows):
        named = [column for column in columns if column in ("arm", "reward", "count", "sum")]
        if sorted(named) not in (["arm", "reward"], ["arm", "count", "sum"]):
            twice = [column for column in dict.fromkeys(named) if named.count(column) > 1]
            once = f", and {listed(map(repr, twice))} once only" if twice else ""
            must = f"{name} must have the columns arm,reward or arm,count,sum in its first line"
            raise ValueError(f"{must}{once}, got {shown(','.join(columns))}")
        for where, row in rows:
            if "reward" in columns:
                singles.setdefault(row["arm"], []).append(_number(row["reward"], where))
            else:
                _add(sums, row["arm"], row["count"], row["sum"], where)
    return singles or sums


def blocks_from_file(name: str, arms: Sequence[str]) -> Singles:
    """Read a table with a column block and one for each arm, one row per block; ignore other columns."""
    with _table(name) as (columns, rows):
        named = [column for column in columns if column in ("block", *arms)]
        if "block" not in named or len(named) < 2 or len(set(named)) < len(named):
            must = f"{name} must have the columns block and one for each arm, all different"
            raise ValueError(f"{must}, got {shown(','.join(columns))}")
        found: Singles = {arm: [] for arm in named if arm != "block"}
        seen: set[str] = set()
        for where, row in rows:
            if row["block"] in seen:
                raise ValueError(f"{where}: block must not be repeated, got {row['block']} again")
            seen.add(row["block"])
            for arm, rewards in found.items():
                rewards.append(_number(row[arm], where))
    return found


@contextmanager
def _table(name: str) -> Iterator[tuple[list[str], Iterator[tuple[str, dict[str, str]]]]]:
    """The columns of a table in a file, and its rows, each with its place for error messages."""
    with open(name, newline="", encoding="utf-8-sig") as file:  # spreadsheets may write a byte order mark
        try:
            rows = csv.DictReader(_lines(name, file), skipinitialspace=True)
            yield list(rows.fieldnames or ()), _whole_rows(name, rows)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{name} cannot be read as a table in UTF-8: {error}") from None


def _lines(name: str, file: TextIO) -> Iterator[str]:
    """The lines of a table; ValueError for a line that is too long, as a device without line ends has."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise ValueError(f"{name} is no table: a line has more than {LONGEST - 1} characters")
        yield line


def _whole_rows(name: str, rows: "csv.DictReader[str]") -> Iterator[tuple[str, dict[str, str]]]:
    for row in rows:
        where = f"{name}, line {rows.line_num}"
        if None in row or None in row.values():
            raise ValueError(f"{where}: there must be {len(rows.fieldnames or ())} columns")
        yield where, row


def _add(sums: dict[str, Any], arm: str, count: str, total: str, where: str) -> None:
    """Read the number of an arm's rewards and their sum; errors say `where` they stand."""
    _check_new(sums, arm, where)
    if not count.strip().isdecimal():
        raise ValueError(f"{where}: the count must be a whole number, got {count!r}")
    sums[arm] = int(count), _number(total, where)


def _check_new(told: Mapping[str, Any], arm: str, where: str) -> None:
    if arm in told:
        raise ValueError(f"{where}: {arm} must come once, got it again: add its rewards up")


def _number(text: str, where: str) -> float:
    """Read a number; the error says where it stands."""
    try:
        return float(text)
    except ValueError:
        advice = "" if text.strip() else ": leave out the row of a missing reward"
        raise ValueError(f"{where}: {text!r} is not a number{advice}") from None
