"""What an algorithm is: a coroutine that asks for pulls, is sent sums of rewards, and returns arms."""

import warnings
from collections.abc import Callable, Generator
from dataclasses import fields
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.models import IN_UNIT, REWARDS
from ebr.validation import one_of, several, shown, whole

MOST_CELLS = 2**25  # replicates × arms that are played side by side: 256 MB a table
# Parameters that algorithms did not have from the first.
UNSAID = {"k": 1, "looks": "joint", "control": None, "margin": None}
Known = str | None  # of the rewards, one of REWARDS; None, where nothing is said, is the last
Lots = np.random.Generator | None

# What an algorithm plays: it yields how often to pull each arm in the coming round (replicates × arms, a
# row of zeros for a replicate that has ended), is sent the sums of the rewards, and returns the arm that
# it recommends for each replicate; or, if it looks for the k > 1 best, k different arms (replicates × k), in
# the order of their numbers.
Game = Generator[IntArray, FloatArray, IntArray]


@runtime_checkable
class Algorithm(Protocol):
    """All that is ever asked of an algorithm. By custom it is a frozen dataclass of its parameters."""

    @property
    def epsilon(self) -> float:
        """How far from the best the recommended arm may be."""

    @property
    def sigma(self) -> float:
        """The guarantee is for σ-sub-Gaussian rewards; ½ for rewards in [0, 1]."""

    @property
    def deadline(self) -> int | None:
        """The rounds at most; None if it knows no deadline."""

    @property
    def one_pull_a_round(self) -> bool:
        """Whether each pull is a round of its own, however many are asked for at once."""

    def deviation(self, pulls: IntArray, n_arms: int) -> FloatArray:
        """The half-width of its interval around the mean of so many rewards; NaN if it has none."""

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Start a game.

        Parameters
        ----------
        n_arms, replicates
            On so many arms, for so many independent replicates.
        rewards
            What is known of the rewards, one of `REWARDS`; None is "sub-Gaussian".
        generator
            For lots of its own, if it draws any.
        """


class Turn(NamedTuple):
    """Where a game stands: the pulls that it asks for or, at its end, the arms that it recommends."""

    pulls: IntArray | None
    arms: IntArray | None


def advance(game: Game, sums: FloatArray | None = None) -> Turn:
    """Start a game or, with the sums of the rewards that it asked for, let it go on."""
    try:
        return Turn(next(game) if sums is None else game.send(sums), None)
    except StopIteration as end:
        return Turn(None, end.value)


def drive(game: Game, respond: Callable[[IntArray], FloatArray]) -> IntArray:
    """Play a game to its end: answer each round's pulls with the sums of their rewards; return the arms."""
    turn = advance(game)
    while turn.pulls is not None:
        turn = advance(game, respond(turn.pulls))
    assert turn.arms is not None
    return turn.arms


def no_interval(pulls: IntArray) -> FloatArray:
    """The deviation of an algorithm that compares means and has no confidence intervals."""
    return np.full(np.shape(pulls), np.nan)


def entered(n_arms: int, replicates: int, rewards: Known) -> tuple[int, int]:
    """Return a game's arms and replicates as plain numbers; raise ValueError if it cannot be played."""
    if rewards is not None:
        one_of("rewards", rewards, REWARDS)
    n_arms = several("n_arms", n_arms)
    return n_arms, whole("replicates", replicates, 1, MOST_CELLS // n_arms)


def check_known(assumed: Known, told: Known) -> None:
    """Raise ValueError if rewards are not what an algorithm is told to assume; warn where that voids it."""
    if assumed in IN_UNIT and told not in (*IN_UNIT, None):
        raise ValueError(f"rewards must not be {assumed!r} for {told} rewards, which have no bounds")
    if assumed == "Bernoulli" and told == "bounded":
        raise ValueError("rewards must not be 'Bernoulli' for bounded rewards, which need not be 0 and 1")
    if assumed == "Gaussian" and told in IN_UNIT:
        warnings.warn("the rewards are not Gaussian: the algorithm's guarantee is void", stacklevel=3)


def check_places(k: int, n_arms: int) -> None:
    """Raise ValueError unless k of n arms can be told from the others: 1 ≤ k < n."""
    if not whole("k", k, 1) < n_arms:
        raise ValueError(f"k must lie in 1 … {n_arms - 1}, below the number of arms, got {shown(k)}")


def spelled(algorithm: Any) -> str:
    """The repr of a dataclass that has learned more since, as to find the k best; defaults go without saying.

    Simulations are seeded by it: what was raced before there was a k is still the same race.
    """
    values = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    said = (f"{name}={value!r}" for name, value in values.items() if (name, value) not in UNSAID.items())
    return f"{type(algorithm).__qualname__}({', '.join(said)})"
