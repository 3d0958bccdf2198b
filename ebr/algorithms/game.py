"""The protocol of an algorithm: a coroutine asks for pulls, is sent sums of rewards, and returns arms."""

import warnings
from collections.abc import Callable, Generator
from dataclasses import fields, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self, cast, runtime_checkable

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.models import IN_UNIT, REWARDS
from ebr.validation import MOST_ROUNDS, in_unit_interval, one_of, several, shown, whole

# Features that a race may permit, with their names in messages.
FEATURES = {
    "missing": "missing rewards",
    "control": "a control",
    "blocks": "rewards in blocks",
    "stopping": "stopping early",
}
MOST_CELLS = 2**25  # most replicates × arms played side by side: 256 MB a table
# Parameters that were added later, with the values that a repr leaves out.
UNSAID = {"k": 1, "control": None, "margin": None, "squares": None}
Known = str | None  # the rewards' model, one of REWARDS; None, where nothing is said, is the last
Lots = np.random.Generator | None

# What an algorithm plays: it yields how often to pull each arm in the coming round (replicates × arms, a
# row of zeros for a replicate that has ended), is sent the sums of the rewards, and returns the arm that
# it recommends for each replicate; or, if it looks for the k > 1 best, k different arms (replicates × k), in
# the order of their numbers. A game that wants squares is sent the sums and the sums of squares
# (2 × replicates × arms); of an arm whose squares are unknown, its sum twice.
Game = Generator[IntArray, FloatArray, IntArray]


class Ending(NamedTuple):
    """How races end: the recommended arms, −1 where no reward came in, and what is guaranteed of them.

    `within` is how far from the best they may be: ε; the margin, if no arm is better than the control by it;
    more than ε if rewards were still missing at T; ∞ if so many are that nothing is guaranteed.
    """

    arms: IntArray
    within: FloatArray


class Standing(NamedTuple):
    """Where races stand: the pulls of the coming round, and how they would end if they were stopped now."""

    pulls: IntArray
    arms: IntArray
    within: FloatArray


# With rewards missing it is sent how many rewards came in and their sums, and returns how the races end.
LossyGame = Generator[Standing, tuple[IntArray, FloatArray], Ending]


@runtime_checkable
class Algorithm(Protocol):
    """Everything that the package asks of an algorithm. By custom it is a frozen dataclass of its parameters.

    Your own algorithm needs epsilon, delta, sigma, deadline and `play`. It inherits the rest from
    `Defaults`.
    """

    @property
    def epsilon(self) -> float:
        """ε: the recommended arm's distance from the best, at most."""

    @property
    def delta(self) -> float | None:
        """δ: the probability of failure, at most; None if nothing is promised."""

    @property
    def sigma(self) -> float:
        """The guarantee is for σ-sub-Gaussian rewards; ½ for rewards in [0, 1]."""

    @property
    def deadline(self) -> int | None:
        """T: the number of rounds, at most; None without a deadline."""

    @property
    def k(self) -> int:
        """The number of arms to be found."""

    @property
    def rewards(self) -> Known:
        """The rewards' model that the algorithm assumes; None to use the caller's."""

    @property
    def control(self) -> int | None:
        """The number of the control, the arm that others must beat; None without one."""

    @property
    def margin(self) -> float | None:
        """The margin by which others must beat the control."""

    @property
    def most_rounds(self) -> int:
        """The longest deadline allowed."""

    @property
    def one_pull_a_round(self) -> bool:
        """Whether each pull is a round of its own, however many are asked for at once."""

    @property
    def fixed_counts(self) -> bool:
        """Whether an arm's count after a round is one of T numbers that are fixed before the first reward."""

    @property
    def fixed_given_losses(self) -> bool:
        """Whether counts are fixed, too, given which rewards are missing."""

    @property
    def resumes(self) -> bool:
        """Whether an arm that a round leaves out may be pulled again."""

    @property
    def needs_gap(self) -> bool:
        """Whether the guarantee holds only where all other arms are worse than the best by ε or more."""

    def model(self, told: Known) -> str:
        """The rewards' model that is used, one of `REWARDS`, given the caller's."""

    def assuming(self, rewards: str) -> Self:
        """The race with this model of the rewards, if it has such a parameter and leaves it open."""

    def wants_squares(self, rewards: Known = None) -> bool:
        """Whether games are sent sums of squares as well as sums, given the rewards' model."""

    def squared(self) -> Self:
        """The race that wants squares, if it has such a parameter and leaves it open."""

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray | None:
        """The most pulls of an arm after each round; None if they are not fixed in advance."""

    def most_pulls(self, n_arms: int, rewards: Known = None) -> int | None:
        """The most pulls of all arms together, if no reward is missing; None if unknown."""

    def gone(self, n_arms: int, rewards: Known = None) -> FloatArray | None:
        """By the end of each round, arms so much worse than the best are dropped, with 1 − δ; or None."""

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """Why this race does not permit one of `FEATURES`, given the rewards' model; None if it does."""

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """Why nothing is proved of this race with such rewards; None if its guarantee holds."""

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
            For lots of its own, if it draws any; None is a fresh one.
        """

    def play_lossy(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> "LossyGame":
        """Start a game that may be stopped, and in which rewards may be missing, if both are permitted."""


class Defaults:
    """Defaults of the protocol, to be inherited by algorithms."""

    k: int = 1
    rewards: Known = None
    control: int | None = None
    margin: float | None = None
    most_rounds: ClassVar[int] = MOST_ROUNDS
    one_pull_a_round: ClassVar[bool] = False
    fixed_counts: ClassVar[bool] = False
    fixed_given_losses: ClassVar[bool] = False
    resumes: ClassVar[bool] = False
    needs_gap: ClassVar[bool] = False

    def model(self, told: Known) -> str:
        """What it is told, and "sub-Gaussian" if it is told nothing."""
        return told or "sub-Gaussian"

    def assuming(self, rewards: str) -> Self:
        """A copy with the parameter `rewards`, of a dataclass that has it and leaves it open; else itself."""
        left_open = "rewards" in vars(self) and self.rewards is None
        return replace(cast(Any, self), rewards=rewards) if left_open else self

    def wants_squares(self, rewards: Known = None) -> bool:
        """No: sums are all that is sent."""
        return False

    def squared(self) -> Self:
        """A copy with the parameter `squares`, of a dataclass that has it and leaves it open; else itself."""
        left_open = "squares" in vars(self) and vars(self)["squares"] is None
        return replace(cast(Any, self), squares=True) if left_open else self

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray | None:
        """None: how often an arm is pulled is not fixed in advance."""
        return None

    def most_pulls(self, n_arms: int, rewards: Known = None) -> int | None:
        """As many of each arm as the schedule says, where there is one."""
        schedule = self.pulls_by_round(n_arms, rewards)
        return None if schedule is None else n_arms * int(schedule[-1])

    def gone(self, n_arms: int, rewards: Known = None) -> FloatArray | None:
        """None: nothing is said of who is dropped when."""
        return None

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """No feature is permitted."""
        return f"algorithm must permit {FEATURES[feature]}, as SharpElasticBatchRacing does, got {self!r:.60}"

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """None: what is promised is for σ-sub-Gaussian rewards, whatever else is known of them."""
        return None

    def deviation(self, pulls: IntArray, n_arms: int) -> FloatArray:
        """None: means are compared without confidence intervals."""
        return np.full(np.shape(pulls), np.nan)

    def play_lossy(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> "LossyGame":
        """Refuse: see `objection`."""
        raise ValueError(self.objection("stopping", rewards))


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


def checked_control(
    control: int | None, margin: float | None, epsilon: float, k: int
) -> tuple[int | None, float | None]:
    """Return the control's number and the margin, ε if left out; raise ValueError if they cannot be."""
    if control is None:
        if margin is not None:
            raise ValueError(f"margin must be left out where there is no control, got {margin!r}")
        return None, None
    if k > 1:
        raise ValueError(f"k must be 1 where there is a control, got {k}")
    margin = epsilon if margin is None else in_unit_interval("margin", margin)
    if margin < epsilon:
        raise ValueError(f"margin must be at least epsilon, {epsilon}, got {margin}")
    return whole("control", control, 0), margin


def spelled(algorithm: Any) -> str:
    """The repr of a dataclass that has learned more since, as to find the k best; defaults go without saying.

    Simulations are seeded by it: what was raced before there was a k is still the same race.
    """
    values = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    said = (f"{name}={value!r}" for name, value in values.items() if (name, value) not in UNSAID.items())
    return f"{type(algorithm).__qualname__}({', '.join(said)})"
