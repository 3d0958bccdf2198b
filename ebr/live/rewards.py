"""Rewards as people pass them in: checked against what was asked for, and written as lines of a journal."""

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ebr.live.journal import Line
from ebr.live.terms import Terms, listed
from ebr.validation import MOST_PULLS, optional, require, shown, whole
from ebr.validation import number as real

MISSING = ("at random",)  # the only reason for missing rewards that the proofs cover
LARGEST = 1e100  # reward without a support: sums over all rounds stay finite
LONGEST = 2**16  # characters of a table's first line that are read; guards against devices
COMPLETE = (
    "tell the round when it is complete, or say missing='at random' (--missing 'at random') if rewards are"
    " missing for reasons that have nothing to do with any reward"
)
EARLIEST = "pass the first {} in the order in which they were observed: more than was asked for would bias it"
FORMS = ("(count, sum)", "(count, sum, squares)")  # the second where the race takes in squares
Pulls = dict[str, int]
Row = tuple[str, dict[str, str]]


def plain_line(terms: Terms, event: str, number: int, pulls: Pulls) -> Line:
    """The line that asks for a round, or stops a race in it; ValueError if the race cannot be stopped."""
    if event != "stop":
        return {"event": "ask", "round": number, "pulls": pulls}
    if objection := terms.algorithm.objection("stopping", terms.rewards):
        raise ValueError(objection)
    return {"event": "stop", "round": number}


def told_line(
    terms: Terms, number: int, pulls: Pulls, owed: Pulls, rewards: Any, missing: str | None, late: Any
) -> Line:
    """The line with the rewards of a round; raise ValueError unless they are what was asked for.

    `late` has rewards of earlier rounds, which replace some of this round's; `owed` is how many there may be.
    """
    optional(MISSING)("missing", missing)
    came_late = {} if late is None else _sums("late", late, terms, pulls)
    came_late = {arm: sums for arm, sums in came_late.items() if sums[0]}
    for arm, (count, *_) in came_late.items():
        most = min(owed[arm], pulls[arm])
        must = f"be at most {most}, as many as earlier rounds lacked and this one asks for"
        require(count <= most, f"late rewards of {arm!r}", must, count)
    asked = {arm: n - came_late.get(arm, [0])[0] for arm, n in pulls.items()}
    sums = _sums("rewards", rewards, terms, asked)
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
    return line


def check_line(terms: Terms, line: Line, number: int, pulls: Pulls, owed: Pulls, asked: bool) -> None:
    """Raise ValueError unless this race could write the line now: a question, its answer, or a stop."""
    right = plain_line(terms, line["event"], number, pulls)
    if asked and line["event"] != "stop":  # the same rewards are told again
        parts = (dict(line.get(part, {})) for part in ("rewards", "late"))
        rewards, late = ({arm: tuple(sums) for arm, sums in part.items()} for part in parts)
        drawn = terms.rounding and "counted" in line  # by an old ebr: so many ones for rewards in [0, 1]
        told = replace(terms, rewards="bounded", rounding=False) if drawn else terms
        right = told_line(told, number, pulls, owed, rewards, line.get("missing"), late)
        if drawn:
            ones, counts = dict(line["counted"]), right["rewards"].items()
            sums = _sums("counted", {arm: (n, ones.get(arm)) for arm, (n, _) in counts}, terms, pulls)
            right["counted"] = {arm: int(total) for arm, (_, total) in sums.items()}
    said = {key: value for key, value in line.items() if key not in ("time", "checksum")}
    # Python takes 1, 1.0 and true for equal; JSON does not.
    if json.dumps(said, sort_keys=True) != json.dumps(right, sort_keys=True):
        raise ValueError(f"it would be {shown(right)}")


def _sums(name: str, told: Any, terms: Terms, asked: Pulls) -> dict[str, list[Any]]:
    """What `Race.tell` is told of each arm, summed up, in the order in which arms were asked for."""
    if not isinstance(told, Mapping) and not hasattr(told, "columns"):
        table = np.asanyarray(told if terms.blocks else ())  # keeps masks, which are refused column by column
        must = f"be a dict by arm, or in blocks a table of blocks × {len(asked)} arms ({listed(asked)})"
        require(table.ndim == 2 and table.shape[1] == len(asked), name, must, told)
        told = dict(zip(asked, table.T, strict=True))
    if wrong := [arm for arm in told if arm not in asked]:
        known = f"the arms asked for are {listed(asked)}"
        raise ValueError(f"arm {wrong[0]!r} is unknown, or not pulled in this round: {known}")
    return {arm: _summed(arm, told[arm], terms) for arm in asked if arm in told}


def _summed(arm: str, rewards: Any, terms: Terms) -> list[Any]:
    """Count, sum and, if wanted, squares of an arm's rewards, a list or a tuple as `Race.tell` has them."""
    (low, high), coins = terms.support or (-LARGEST, LARGEST), terms.rewards == "Bernoulli"
    unknown, singly = terms.spread_unknown, not isinstance(rewards, tuple)
    must = "be 0 or 1" if coins else f"lie in [{low}, {high}]"
    told: Any = rewards
    if singly:
        values = np.asarray(rewards)
        right = values.ndim == 1 and values.dtype.kind in "biuf" and not np.ma.is_masked(rewards)
        require(right, f"rewards of {arm!r}", "be a list of numbers or a tuple (count, sum)", rewards)
        values = values.astype(np.float64)
        possible = np.isin(values, (0, 1)) if coins else (low <= values) & (values <= high)
        if not possible.all():
            raise ValueError(f"rewards of {arm!r} must {must}, got {values[~possible][0]}")
        # Rounded once, whatever the order: the sum stays in its range.
        told = len(values), math.fsum(values.tolist())
    fewest = 3 if unknown and not singly else 2
    forms = " or ".join(FORMS[fewest - 2 : 1 + terms.squares]) + ", or a list of rewards" * unknown
    require(fewest <= len(told) <= 2 + terms.squares, f"a tuple for {arm!r}", f"be {forms}", rewards)
    count, total = whole(f"the count of {arm!r}", told[0], 0, MOST_PULLS), real(told[1])
    if not count * low <= total <= count * high or (coins and not total.is_integer()):
        raise ValueError(f"rewards of {arm!r} must {must}, got {count} with the sum {shown(told[1])}")
    if not terms.squares:
        return [count, total]
    inside = terms.scale.inside(total, count)
    inside = inside if unknown else min(max(inside, 0.0), float(count))
    least, most = inside * inside / max(count, 1), LARGEST**2 * count if unknown else inside
    if singly:  # a sum loses digits where the support is far from 0
        square = math.fsum(terms.scale.inside(value) ** 2 for value in values.tolist())
        return [count, total, max(min(square, most), least)]
    square = most
    if len(told) == 3:
        square, slack = real(told[2]), 1e-9 * (1 + count + least)  # what floating point loses
        right, must = least - slack <= square <= most + slack, f"lie in [{least:g}, {most:g}]"
        require(right, f"the sum of squares of {arm!r}", must, told[2])
    return [count, total, square]


def from_words(words: Iterable[str]) -> dict[str, Any]:
    """Read ARM=COUNT:SUM for each arm, ARM=[REWARD, …], or the fraction ARM=SUM/COUNT."""
    told: dict[str, Any] = {}
    for word in words:
        arm, _, value = word.rpartition("=")
        count, colon, total = value.partition(":")
        if not colon:
            total, _, count = value.partition("/")
        if arm and value[:1] + value[-1:] == "[]":
            rewards: Any = [_number(each, repr(word)) for each in value[1:-1].split(",") if each.strip()]
        elif arm and total and count:
            rewards = _count_and_sum(count, total, repr(word))
        else:
            raise ValueError(f"{word!r} must be of the form ARM=COUNT:SUM, for instance A=120:67")
        _add(told, arm, rewards, repr(word))
    return told


def from_file(name: str) -> dict[str, Any]:
    """Read a table with columns arm, reward (one row per pull) or arm, count, sum (one row per arm)."""
    told, forms = dict[str, Any](), ({"arm", "reward"}, {"arm", "count", "sum"})
    for where, row in _table(name, forms[0] | forms[1], forms.__contains__, "arm,reward or arm,count,sum"):
        if "reward" in row:
            told.setdefault(row["arm"], []).append(_number(row["reward"], where))
        else:
            _add(told, row["arm"], _count_and_sum(row["count"], row["sum"], where), where)
    return told


def blocks_from_file(name: str, arms: Sequence[str]) -> dict[str, list[float]]:
    """Read a table with a column block and one for each arm, one row per block."""
    must = "block and one for each arm, all different"
    rows = _table(name, {"block", *arms}, lambda found: "block" in found and len(found) > 1, must)
    again = [block for block, times in Counter(row["block"] for _, row in rows).items() if times > 1]
    require(not again, name, "have each block once", again)
    raced = [arm for arm in arms if rows and arm in rows[0][1]]
    return {arm: [_number(row[arm], where) for where, row in rows] for arm in raced}


def _table(name: str, known: set[str], right: Callable[[set[str]], bool], must: str) -> list[Row]:
    """The rows of a CSV file, each with its place for messages; columns that are not known are ignored."""
    with open(name, newline="", encoding="utf-8-sig") as file:  # spreadsheets may write a byte order mark
        try:
            columns = next(csv.reader([file.readline(LONGEST)], skipinitialspace=True), [])
            found = [column for column in columns if column in known]
            one_each = len(found) == len({*found}) and right({*found})
            require(one_each, name, f"have the columns {must} in its first line", ",".join(columns))
            table = csv.DictReader(file, columns, skipinitialspace=True)
            rows = [(f"{name}, line {table.line_num + 1}", row) for row in table]
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{name} cannot be read as a table in UTF-8: {error}") from None
    for where, row in rows:
        require(None not in (*row, *row.values()), where, f"have {len(columns)} columns", row)
    return rows


def _add(told: dict[str, Any], arm: str, rewards: Any, where: str) -> None:
    if arm in told:
        raise ValueError(f"{where}: {arm} must come once, got it again: add its rewards up")
    told[arm] = rewards


def _count_and_sum(count: str, total: str, where: str) -> tuple[int, float]:
    require(count.strip().isdecimal(), f"{where}: the count", "be a whole number", count)
    return int(count), _number(total, where)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        advice = "" if text.strip() else ": leave out the row of a missing reward"
        raise ValueError(f"{where}: {text!r} is not a number{advice}") from None
