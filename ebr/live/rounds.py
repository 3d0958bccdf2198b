"""The rounds of a race as its journal's lines have them, checked alike where they are written and read."""

import json
from collections.abc import Mapping
from typing import Any

from ebr.live.journal import Line
from ebr.live.rewards import Support, checked_round, counted_ones, lots_of_round

__all__ = ["Rounds"]

Pulls = dict[str, int]


class Rounds:
    """What lines may say of the rounds of a race: how often to pull each arm, and what came of it.

    Parameters
    ----------
    first
        The first line of the race's journal.

    Attributes
    ----------
    arms, support
        The names of the arms, and the closed interval of their rewards.
    zeros_and_ones
        Whether every reward that is counted is 0 or 1.
    seed
        Of the lots by which rewards are rounded to 0 or 1; None where they are not.
    """

    def __init__(self, first: Line) -> None:
        self.arms: tuple[str, ...] = tuple(first["arms"])
        self.support: Support = first["support"] and tuple(first["support"])
        self.zeros_and_ones = first.get("rewards") == "Bernoulli"
        self.seed: int | None = first["seed"] if first.get("rounding") else None

    def asked(self, number: int, pulls: Pulls) -> Line:
        """The line that asks for a round."""
        return {"event": "ask", "round": number, "pulls": pulls}

    def told(self, number: int, pulls: Pulls, rewards: Mapping[str, Any]) -> Line:
        """The line that has a round's rewards; raise ValueError unless they are what was asked for."""
        sums = checked_round(rewards, pulls, self.arms, self.support)
        line: Line = {"event": "tell", "round": number, "rewards": sums}
        if self.zeros_and_ones:
            lots = None if self.seed is None else lots_of_round(self.seed, number, self.arms)
            counted = counted_ones(rewards, sums, lots)
            line |= {"counted": counted} if lots else {}
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
        if {arm: pair[:1] for arm, pair in told.items()} != {arm: [count] for arm, count in pulls.items()}:
            return False
        return _same(said, self._told_again(line, number, pulls))

    def _told_again(self, line: Line, number: int, pulls: Pulls) -> Line:
        """The line that would be written of a line's rewards; its lots are believed, if they can be."""
        rewards = {arm: tuple(pair) for arm, pair in line["rewards"].items()}
        if self.seed is None:
            return self.told(number, pulls, rewards)
        counted = line.get("counted")
        if not isinstance(counted, dict) or counted.keys() != pulls.keys():
            raise ValueError("counted must have the ones among the rewards of each arm")
        for arm, ones in counted.items():
            if type(ones) is not int or not 0 <= ones <= pulls[arm]:
                raise ValueError(f"counted must lie in 0 … {pulls[arm]} for {arm!r}, got {ones!r:.50}")
        sums = checked_round(rewards, pulls, self.arms, self.support)
        return {"event": "tell", "round": number, "rewards": sums, "counted": counted}


def _same(line: Line, other: Line) -> bool:
    """Whether two lines are written alike; to Python 1, 1.0 and true are equal."""
    return json.dumps(line, sort_keys=True) == json.dumps(other, sort_keys=True)
