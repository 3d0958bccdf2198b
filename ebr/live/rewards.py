"""Rewards as people pass them in: checked against what was asked for, and written as lines of a journal.

They come as lists, as counts and sums, as tables of blocks × arms, as words, and as CSV files.
"""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, TextIO

import numpy as np

from ebr.live.journal import Line
from ebr.live.terms import Scale, Terms, listed
from ebr.validation import number as real
from ebr.validation import one_of, shown

MISSING = ("at random",)  # the only reason for missing rewards that the proofs cover
LARGEST = 1e100  # reward without a support: sums over all rounds stay finite
LONGEST = 2**16  # longest line accepted in a table; guards against devices
COMPLETE = (
    "tell the round when it is complete, or say missing='at random' (--missing 'at random') if rewards are"
    " missing for reasons that have nothing to do with any reward"
)
EARLIEST = "pass the first {} in the order in which they were observed: more than was asked for would bias it"
Pulls = dict[str, int]


def asked_line(number: int, pulls: Pulls) -> Line:
    """The line that asks for a round."""
    return {"event": "ask", "round": number, "pulls": pulls}


def stop_line(terms: Terms, number: int) -> Line:
    """The line that stops a race in a round, asked for or not; ValueError if the race cannot be stopped."""
    if objection := terms.algorithm.objection("stopping", terms.rewards):
        raise ValueError(objection)
    return {"event": "stop", "round": number}


def told_line(
    terms: Terms,
    number: int,
    pulls: Pulls,
    owed: Pulls,
    rewards: Any,
    missing: str | None = None,
    late: Any = None,
    counted: Any = None,
) -> Line:
    """The line with the rewards of a round; raise ValueError unless they are what was asked for.

    `late` has rewards of earlier rounds, which replace some of this round's; `owed` is how many there may be.
    `counted` is how many ones an old journal made of rewards that it rounded.
    """
    if missing is not None:
        one_of("missing", missing, MISSING)
    coins = terms.rewards == "Bernoulli" and counted is None
    came_late = {} if late is None else _sums("late", late, terms, pulls, coins)
    for arm, (count, *_) in came_late.items():
        if count > (most := min(owed[arm], pulls[arm])):
            most_of = "no more than earlier rounds lacked, nor than this round asks for"
            raise ValueError(f"late rewards of {arm!r} must be at most {most}, got {count}: {most_of}")
    asked = {arm: n - came_late[arm][0] if arm in came_late else n for arm, n in pulls.items()}
    sums = _sums("rewards", rewards, terms, asked, coins)
    if absent := [arm for arm in asked if arm not in sums]:
        advice = COMPLETE if missing is None else "pass [] for an arm without any reward"
        raise ValueError(f"rewards of {listed(absent)} are missing: {advice}")
    for arm, n in asked.items():
        if (count := sums[arm][0]) > n or (count < n and missing is None):
            advice = COMPLETE if count < n else EARLIEST.format(n)
            raise ValueError(f"{n} rewards of {arm!r} were asked for, got {count}: {advice}")
    if terms.blocks and any(len({part.get(arm, [0])[0] for arm in pulls}) > 1 for part in (sums, came_late)):
        raise ValueError("rewards must be of the same blocks for every arm: only whole blocks may be missing")
    line: Line = {"event": "tell", "round": number, "rewards": sums}
    if came_late:
        line["late"] = came_late
    if any(sums[arm][0] < n for arm, n in asked.items()):
        if objection := terms.algorithm.objection("missing", terms.rewards):
            raise ValueError(f"{objection}: pull again in place of what was lost, and tell the whole round")
        line["missing"] = missing
    if terms.rounding:  # in a journal that was begun with it
        line["counted"] = counted or {arm: int(total) for arm, (_, total) in sums.items()}
    return line


def check_line(terms: Terms, line: Line, number: int, pulls: Pulls, owed: Pulls, asked: bool) -> None:
    """Raise ValueError unless this race could write the line now: a question, its answer, or a stop."""
    if line["event"] == "stop":
        right = stop_line(terms, number)
    elif asked:
        right = _told_again(terms, line, number, pulls, owed)
    else:
        right = asked_line(number, pulls)
    said = {key: value for key, value in line.items() if key not in ("time", "checksum")}
    # Python takes 1, 1.0 and true for equal; JSON does not.
    if json.dumps(said, sort_keys=True) != json.dumps(right, sort_keys=True):
        raise ValueError(f"it would be {shown(right)}")


def _told_again(terms: Terms, line: Line, number: int, pulls: Pulls, owed: Pulls) -> Line:
    """The line that would be written now for the same rewards; possible `counted` sums are believed."""
    parts = [line.get("rewards"), line.get("late", {})]
    for part in parts:
        if not isinstance(part, dict) or not all(isinstance(sums, list) for sums in part.values()):
            raise ValueError("rewards and late ones must have count and sum of each arm")
    rewards, late = ({arm: tuple(sums) for arm, sums in part.items()} for part in parts)
    counted = line.get("counted", {}) if terms.rounding else None
    again = told_line(terms, number, pulls, owed, rewards, line.get("missing"), late, counted)
    if counted is not None:
        most = {arm: again["rewards"][arm][0] for arm in pulls}
        if not isinstance(counted, dict) or counted.keys() != most.keys():
            raise ValueError("counted must have the ones among the rewards of each arm")
        if not all(type(ones) is int and 0 <= ones <= most[arm] for arm, ones in counted.items()):
            raise ValueError(f"counted must be at most the rewards of each arm, got {shown(counted)}")
    return again


def _sums(name: str, told: Any, terms: Terms, asked: Pulls, coins: bool) -> dict[str, list[Any]]:
    """Count and sum of each arm's rewards, of arms asked for, in their order."""
    by_arm = _by_arm(name, told, terms, list(asked))
    for arm in by_arm:
        if arm not in asked:
            why = "is not pulled in this round" if arm in terms.arms else "is unknown"
            raise ValueError(f"arm {arm!r} {why}: the arms asked for are {listed(asked)}")
    found = {arm: _summed(arm, by_arm[arm], terms, coins) for arm in asked if arm in by_arm}
    return {arm: sums for arm, sums in found.items() if sums[0] or name == "rewards"}


def _by_arm(name: str, told: Any, terms: Terms, asked: Sequence[str]) -> Mapping[str, Any]:
    """Rewards by arm; those of blocks may be a table, in the order of the blocks.

    A DataFrame has its arms as columns; an array has a column for each arm asked for, in that order.
    """
    if isinstance(told, Mapping):
        return told
    if not terms.blocks:
        raise ValueError(f"{name} must be a dict by arm, got {shown(told)}")
    if hasattr(told, "columns"):
        return {arm: told[arm].to_numpy() for arm in told.columns}
    table = np.asanyarray(told)  # keeps masks, which are refused column by column
    if table.ndim != 2 or table.shape[1] != len(asked):
        what = f"a table of blocks × {len(asked)} arms ({listed(asked)}), or a dict by arm"
        raise ValueError(f"{name} must be {what}, got {shown(told)}")
    return dict(zip(asked, table.T, strict=True))


def _summed(arm: str, rewards: Any, terms: Terms, coins: bool) -> list[Any]:
    """Check an arm's rewards, a list or a tuple (count, sum); return count, sum and, if wanted, squares.

    Squares are on the race's scale from 0 to 1: as large as they can be if they are not told.
    """
    low, high = terms.support or (-LARGEST, LARGEST)
    must = f"lie in [{low}, {high}], the race's support" if terms.support else f"be finite, at most {high:g}"
    told: Any = rewards if isinstance(rewards, tuple) else _added_up(arm, rewards, terms, must, coins)
    forms = {2: "(count, sum)"} | ({3: "(count, sum, squares)"} if terms.squares else {})
    number, total, *squares = told if len(told) in forms else (None, math.nan)
    if not isinstance(number, Integral) or isinstance(number, bool) or math.isnan(real(total)):
        raise ValueError(f"a tuple for {arm!r} must be {' or '.join(forms.values())}, got {shown(rewards)}")
    count = int(number)
    least, most = (count * low, count * high) if count else (0.0, 0.0)
    if not least <= total <= most:
        raise ValueError(f"rewards of {arm!r} must {must}, got {count} with the sum {shown(total)}")
    if coins and not float(total).is_integer():
        whole = f"the sum of the rewards of {arm!r} must be a whole number"
        raise ValueError(f"{whole}, got {total}: each of them is 0 or 1")
    if not terms.squares:
        return [count, float(total)]
    least, most = _squares(count, float(total), terms.scale)
    square, slack = real(squares[0]) if squares else most, 1e-9 * (1 + count)  # what floating point loses
    if not least - slack <= square <= most + slack:
        between = f"lie in [{least:g}, {most:g}], as of rewards in [0, 1]"
        raise ValueError(f"the sum of squares of {arm!r} must {between}, got {shown(squares[0])}")
    return [count, float(total), square]


def _added_up(arm: str, rewards: Any, terms: Terms, must: str, coins: bool) -> tuple[float, ...]:
    """Check single rewards and add them up."""
    values = np.asarray(rewards)
    if values.ndim != 1 or values.dtype.kind not in "biuf" or np.ma.is_masked(rewards):
        what = "a list of numbers or a tuple (count, sum)"
        raise ValueError(f"rewards of {arm!r} must be {what}, got {shown(rewards)}")
    values = values.astype(np.float64)
    low, high = terms.support or (-LARGEST, LARGEST)
    if len(wrong := values[~((low <= values) & (values <= high))]):
        raise ValueError(f"rewards of {arm!r} must {must}, got {wrong[0]}")
    if coins and len(wrong := values[(values != 0) & (values != 1)]):
        other = "for other rewards in [0, 1] start a race of 'bounded' rewards"
        raise ValueError(f"Bernoulli rewards of {arm!r} must be 0 or 1, got {wrong[0]}: {other}")
    # Rounded once, whatever the order: the sum stays in its range.
    count, total = len(values), math.fsum(values.tolist())
    if not terms.squares:
        return count, total
    least, most = _squares(count, total, terms.scale)  # sums lose digits where the support is far from 0
    square = math.fsum(terms.scale.inside(value) ** 2 for value in values.tolist())
    return count, total, max(min(square, most), least)


def _squares(count: int, total: float, scale: Scale) -> tuple[float, float]:
    """The least and the largest sum of squares of rewards with this sum, on the scale from 0 to 1."""
    inside = min(max(scale.inside(total, count), 0.0), float(count))
    return inside**2 / max(count, 1), inside


def from_words(words: Iterable[str]) -> dict[str, Any]:
    """Read ARM=COUNT:SUM for each arm, ARM=[REWARD, …], or the fraction ARM=SUM/COUNT."""
    told: dict[str, Any] = {}
    for word in words:
        arm, _, value = word.rpartition("=")
        count, colon, total = value.partition(":")
        if not colon:
            total, _, count = value.partition("/")
        if arm in told:
            raise ValueError(f"{word!r}: {arm} must come once, got it again: add its rewards up")
        if arm and value[:1] + value[-1:] == "[]":
            told[arm] = [_number(each, repr(word)) for each in value[1:-1].split(",") if each.strip()]
        elif arm and total and count:
            told[arm] = _count_and_sum(count, total, repr(word))
        else:
            raise ValueError(f"{word!r} must be of the form ARM=COUNT:SUM, for instance A=120:67")
    return told


def from_file(name: str) -> dict[str, Any]:
    """Read a table with columns arm, reward (one row per pull) or arm, count, sum (one row per arm).

    Other columns are ignored.
    """
    columns, rows = _table(name)
    named = [column for column in columns if column in ("arm", "reward", "count", "sum")]
    if sorted(named) not in (["arm", "reward"], ["arm", "count", "sum"]):
        twice = [column for column in dict.fromkeys(named) if named.count(column) > 1]
        once = f", and {listed(map(repr, twice))} once only" if twice else ""
        must = f"{name} must have the columns arm,reward or arm,count,sum in its first line"
        raise ValueError(f"{must}{once}, got {shown(','.join(columns))}")
    told: dict[str, Any] = {}
    for where, row in rows:
        if "reward" in named:
            told.setdefault(row["arm"], []).append(_number(row["reward"], where))
        elif row["arm"] in told:
            raise ValueError(f"{where}: {row['arm']} must come once, got it again: add its rewards up")
        else:
            told[row["arm"]] = _count_and_sum(row["count"], row["sum"], where)
    return told


def blocks_from_file(name: str, arms: Sequence[str]) -> dict[str, list[float]]:
    """Read a table with a column block and one for each arm, one row per block; ignore other columns."""
    columns, rows = _table(name)
    named = [column for column in columns if column in ("block", *arms)]
    if "block" not in named or len(named) < 2 or len(set(named)) < len(named):
        must = f"{name} must have the columns block and one for each arm, all different"
        raise ValueError(f"{must}, got {shown(','.join(columns))}")
    seen: set[str] = set()
    for where, row in rows:
        if row["block"] in seen:
            raise ValueError(f"{where}: block must not be repeated, got {row['block']} again")
        seen.add(row["block"])
    return {arm: [_number(row[arm], where) for where, row in rows] for arm in named if arm != "block"}


def _table(name: str) -> tuple[list[str], list[tuple[str, dict[str, str]]]]:
    """The columns of a table in a file, and its rows, each with its place for error messages."""
    rows = []
    with open(name, newline="", encoding="utf-8-sig") as file:  # spreadsheets may write a byte order mark
        table = csv.DictReader(_lines(name, file), skipinitialspace=True)
        try:
            for row in table:
                rows.append((f"{name}, line {table.line_num}", row))
                if None in row or None in row.values():
                    raise ValueError(f"{rows[-1][0]}: there must be {len(table.fieldnames or ())} columns")
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{name} cannot be read as a table in UTF-8: {error}") from None
        return list(table.fieldnames or ()), rows


def _lines(name: str, file: TextIO) -> Iterator[str]:
    """The lines of a table; ValueError for a line that is too long, as a device without line ends has."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise ValueError(f"{name} is no table: a line has more than {LONGEST - 1} characters")
        yield line


def _count_and_sum(count: str, total: str, where: str) -> tuple[int, float]:
    if not count.strip().isdecimal():
        raise ValueError(f"{where}: the count must be a whole number, got {count!r}")
    return int(count), _number(total, where)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        advice = "" if text.strip() else ": leave out the row of a missing reward"
        raise ValueError(f"{where}: {text!r} is not a number{advice}") from None
