"""The rounds of a race as its journal's lines have them, checked alike where they are written and read."""

import json
from collections.abc import Mapping
from typing import Any

from ebr.algorithms.game import Algorithm
from ebr.live.blocks import by_arm
from ebr.live.journal import Line
from ebr.live.rewards import Support, checked_round, counted_ones, lots_of_round
from ebr.live.rules import as_begun
from ebr.live.scale import Scale, checked_scale
from ebr.validation import one_of

Pulls = dict[str, int]
MISSING = ("at random",)  # why rewards may be missing: nothing else is known to do no harm


class Rounds:
    """What lines may say of the rounds of a race: how often to pull each arm, and what came of it.

    Parameters
    ----------
    first, algorithm
        The first line of the race's journal, and the algorithm that it names.

    Attributes
    ----------
    arms, support, scale
        The names of the arms, the closed interval of their rewards, and what is 0 and 1 to the algorithm.
    rewards
        What is known of them.
    blocks
        Whether the arms of a round are observed in the same blocks.
    zeros_and_ones
        Whether every reward that is counted is 0 or 1.
    seed
        Of the lots by which rewards are rounded to 0 or 1; None where they are not.
    """

    def __init__(self, first: Line, algorithm: Algorithm) -> None:
        self._algorithm, self._known = as_begun(algorithm, first)
        self.scale: Scale = checked_scale(first.get("scale"))
        self.blocks: bool = first.get("blocks", False)
        self.arms: tuple[str, ...] = tuple(first["arms"])
        self.support: Support = first["support"] and tuple(first["support"])
        self.rewards: str | None = first.get("rewards")  # format 1 did not say
        self.zeros_and_ones = first.get("rewards") == "Bernoulli"
        self.seed: int | None = first["seed"] if first.get("rounding") else None

    def asked(self, number: int, pulls: Pulls) -> Line:
        """The line that asks for a round."""
        return {"event": "ask", "round": number, "pulls": pulls}

    def told(self, number: int, pulls: Pulls, rewards: Any, missing: str | None = None) -> Line:
        """The line that has a round's rewards; raise ValueError unless they are what was asked for."""
        rewards = by_arm(rewards, tuple(pulls)) if self.blocks else rewards
        line = self._summed(number, pulls, rewards, missing)
        if self.zeros_and_ones:
            lots = None if self.seed is None else lots_of_round(self.seed, number, self.arms)
            counted = counted_ones(rewards, line["rewards"], lots)
            line |= {"counted": counted} if lots else {}
        return line

    def _summed(self, number: int, pulls: Pulls, rewards: Mapping[str, Any], missing: str | None) -> Line:
        """The line with count and sum of each arm's rewards; it says why some are missing, if some are."""
        if missing is not None:
            one_of("missing", missing, MISSING)
        sums = checked_round(rewards, pulls, self.arms, self.support, missing is not None)
        if self.blocks and len({count for count, _ in sums.values()}) > 1:
            raise ValueError("of rewards in blocks whole blocks may be missing, the same ones of every arm")
        line: Line = {"event": "tell", "round": number, "rewards": sums}
        if missing is not None and any(sums[arm][0] < asked for arm, asked in pulls.items()):
            if objection := self._algorithm.objection("missing", self._known):
                again = "pull again in place of what was lost, and tell the round when it is complete"
                raise ValueError(f"{objection}: {again}")
            line["missing"] = missing
        return line

    def fits(self, line: Line, number: int, pulls: Pulls, asked: bool) -> bool:
        """Whether a line can come now: the question of this round or, once it was asked, its answer.

        Raises ValueError, as `told` does, if it is an answer of rewards that cannot be.
        """
        said = {key: value for key, value in line.items() if key not in ("time", "checksum")}
        if not asked:
            return _same(said, self.asked(number, pulls))
        if (line["event"], line.get("round")) != ("tell", number):
            return False
        told = line.get("rewards")
        if not isinstance(told, dict) or not all(isinstance(pair, list) for pair in told.values()):
            raise ValueError("rewards must have count and sum of each arm")
        counts = {arm: pair[:1] for arm, pair in told.items()}
        if "missing" not in line and counts != {arm: [count] for arm, count in pulls.items()}:
            return False
        return _same(said, self._told_again(line, number, pulls))

    def _told_again(self, line: Line, number: int, pulls: Pulls) -> Line:
        """The line that would be written of a line's rewards; its lots are believed, if they can be."""
        rewards = {arm: tuple(pair) for arm, pair in line["rewards"].items()}
        missing = one_of("missing", line["missing"], MISSING) if "missing" in line else None
        if self.seed is None:
            return self.told(number, pulls, rewards, missing)
        counted = line.get("counted")
        if not isinstance(counted, dict) or counted.keys() != pulls.keys():
            raise ValueError("counted must have the ones among the rewards of each arm")
        again = self._summed(number, pulls, rewards, missing)
        for arm, ones in counted.items():
            count = again["rewards"][arm][0]
            if type(ones) is not int or not 0 <= ones <= count:
                raise ValueError(f"counted must lie in 0 … {count} for {arm!r}, got {ones!r:.50}")
        return again | {"counted": counted}


def _same(line: Line, other: Line) -> bool:
    """Whether two lines are written alike; to Python 1, 1.0 and true are equal."""
    return json.dumps(line, sort_keys=True) == json.dumps(other, sort_keys=True)
