"""What an algorithm is: a coroutine that asks for pulls, is sent sums of rewards, and returns arms."""

from collections.abc import Callable, Generator
from typing import Protocol

from ebr.arrays import FloatArray, IntArray

__all__ = ["Algorithm", "Game"]

# What an algorithm plays: it yields how often to pull each arm in the coming round (replicates × arms, a
# row of zeros for a replicate that has ended), is sent the sums of the rewards, and returns the arm that
# it recommends for each replicate.
Game = Generator[IntArray, FloatArray, IntArray]


class Algorithm(Protocol):
    """Anything with an ε and a `play(n_arms, replicates=1)` that starts a game.

    An algorithm may name in `needs` what else `play` wants to be told: "bounded", whether rewards lie in
    [0, 1]; "rewards", their model ("bounded", "Gaussian"); "generator", for lots of its own.
    """

    @property
    def epsilon(self) -> float:
        """How far from the best the recommended arm may be."""

    @property
    def play(self) -> Callable[..., Game]:
        """Start a game on so many arms for so many independent replicates."""
