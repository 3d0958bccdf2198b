"""What an algorithm is: a coroutine asks for pulls, is sent sums of rewards, and returns arms."""

import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from ebr.arrays import FloatArray, IntArray
from ebr.models import IN_UNIT, REWARDS
from ebr.theory.confidence import half_width
from ebr.validation import MOST_ROUNDS, Rule, check_fields, in_unit_interval, require, scale, several, whole

# Features that a race may permit, with their names in messages.
FEATURES = {
    "missing": "missing rewards",
    "control": "a control",
    "blocks": "rewards in blocks",
    "stopping": "stopping early",
}
MOST_CELLS = 2**25  # most replicates × arms played side by side: 256 MB a table
# Parameters that were added later, with the values that a repr leaves out.
UNSAID = {"k": 1, "control": None, "margin": None, "squares": None, "blocks": False}
Known = str | None  # the rewards' model, one of REWARDS; None, where nothing is said, is the last
Rng = np.random.Generator | None

# A game yields how often to pull each arm in the coming round (replicates × arms; zeros where a replicate has
# ended), is sent the sums of the rewards, and returns the arm that it recommends for each replicate, or the
# k > 1 best in the order of their numbers (replicates × k). If it wants squares it is sent sums and sums of
# squares (2 × replicates × arms); of an arm whose squares are unknown, its sum twice.
Game = Generator[IntArray, FloatArray, IntArray]


class Standing(NamedTuple):
    """Where races stand: how they would end if they were stopped now, and the pulls of the coming round.

    `arms` are the recommended ones, −1 where no reward came in. `within` is how far from the best they may
    be: ε; the margin, if no arm is better than the control by it; more than ε if rewards were still missing
    at T; ∞ if so many are that nothing is guaranteed. At the end there are no pulls.
    """

    arms: IntArray
    within: FloatArray
    pulls: IntArray = np.zeros((0, 0), dtype=np.int64)


# With rewards missing it is sent how many rewards came in and their sums, and returns how the races end.
LossyGame = Generator[Standing, tuple[IntArray, FloatArray], Standing]


class Algorithm:
    """Everything that the package asks of an algorithm, and what is so if an algorithm says nothing else.

    Your own algorithm is a frozen dataclass of its parameters that inherits this class. It needs epsilon,
    delta, sigma, deadline and `play`.
    """

    epsilon: float  # ε: the recommended arm's distance from the best, at most
    delta: float | None  # δ: the probability of failure, at most; None if nothing is promised
    sigma: float  # the guarantee is for σ-sub-Gaussian rewards; ½ for rewards in [0, 1]
    deadline: int | None  # T: the number of rounds, at most; None without a deadline
    k: int = 1  # how many arms are to be found
    rewards: Known = None  # the rewards' model that the algorithm assumes; None for the caller's
    control: int | None = None  # the number of the arm that others must beat, if there is one
    margin: float | None = None  # by how much they must
    most_rounds: ClassVar[int] = MOST_ROUNDS  # the longest deadline allowed
    one_pull_a_round: ClassVar[bool] = False  # each pull is a round, however many are asked for at once
    fixed_counts: ClassVar[bool] = False  # an arm's count after a round is one of T fixed numbers
    fixed_given_losses: ClassVar[bool] = False  # the same, given which rewards are missing
    resumes: ClassVar[bool] = False  # an arm that a round leaves out may be pulled again
    needs_gap: ClassVar[bool] = False  # the guarantee holds only if all others are worse than the best by ε

    def set_control(self) -> None:
        """Check the parameters control and margin; a margin that is left out is ε."""
        if self.control is None:
            require(self.margin is None, "margin", "be left out where there is no control", self.margin)
            return
        require(self.k == 1, "k", "be 1 where there is a control", self.k)
        margin = self.epsilon if self.margin is None else in_unit_interval("margin", self.margin)
        require(margin >= self.epsilon, "margin", f"be at least epsilon, {self.epsilon}", margin)
        vars(self).update(control=whole("control", self.control, 0), margin=margin)

    def check_control(self, n_arms: int) -> None:
        """Raise ValueError if the control is none of n arms."""
        place = self.control or 0
        require(place < n_arms, "control", f"lie in 0 … {n_arms - 1}, the arms' numbers", place)

    def entered(self, n_arms: int, replicates: int, told: Known) -> tuple[int, int]:
        """A game's arms and replicates as plain numbers, checked; warn if the rewards void the guarantee."""
        assumed = self.rewards
        check_fields({"rewards": told})
        n_arms = several("n_arms", n_arms)
        replicates = whole("replicates", replicates, 1, MOST_CELLS // n_arms)
        weaker = assumed in IN_UNIT and told is not None and REWARDS.index(told) > REWARDS.index(assumed)
        why = "which need not be 0 and 1" if told in IN_UNIT else "which have no bounds"
        require(not weaker, "rewards", f"not be {assumed!r} for {told} rewards, {why}", assumed)
        if assumed == "Gaussian" and told in IN_UNIT:
            warnings.warn("the rewards are not Gaussian: the algorithm's guarantee is void", stacklevel=3)
        check_places(self.k, n_arms)
        self.check_control(n_arms)
        return n_arms, replicates

    def model(self, told: Known) -> str:
        """The rewards' model that is used, one of `REWARDS`: its own, else the caller's, else the weakest."""
        return self.rewards or told or "sub-Gaussian"

    def assuming(self, rewards: str) -> Self:
        """The race with this model of the rewards, if it has such a parameter and leaves it open."""
        left_open = vars(self).get("rewards", rewards) is None
        return replace(cast(Any, self), rewards=rewards) if left_open else self

    def suited(self, rewards: str, blocks: bool) -> Self:
        """The race for this model of the rewards, in blocks or not, if that is another one."""
        return self

    def wants_squares(self, rewards: Known = None) -> bool:
        """Whether games are sent sums of squares as well as sums, given the rewards' model."""
        return False

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray | None:
        """The most pulls of an arm after each round; None if they are not fixed in advance."""
        return None

    def most_pulls(self, n_arms: int, rewards: Known = None) -> int | None:
        """The most pulls of all arms together, if no reward is missing; None if unknown."""
        schedule = self.pulls_by_round(n_arms, rewards)
        return None if schedule is None else n_arms * int(schedule[-1])

    def objection(self, feature: str, rewards: Known = None) -> str | None:
        """Why this race does not permit one of `FEATURES`, given the rewards' model; None if it does."""
        return f"algorithm must permit {FEATURES[feature]}, as SharpElasticBatchRacing does, got {self!r:.60}"

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """Why nothing is proved of this race with such rewards; None if its guarantee holds."""
        return None

    def deviation(self, pulls: IntArray, n_arms: int) -> FloatArray:
        """The half-width of its interval around the mean of so many rewards; NaN if it has none."""
        return np.full(np.shape(pulls), np.nan)

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Start a game on so many arms, for so many independent replicates.

        `rewards` is what is known of them, `generator` for lots of the game's own; None is a fresh one.
        """
        raise NotImplementedError

    def play_lossy(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None
    ) -> LossyGame:
        """Start a game that may be stopped, and in which rewards may be missing, if both are permitted."""
        raise ValueError(self.objection("stopping", rewards))


class Tested(Algorithm):
    """A race that is decided by tests of differences, for rewards that may be taken for normal."""

    deadline: int
    delta: float

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """Tests for normal rewards prove nothing for others, and bounded rewards are not normal."""
        normal = bounded and self.model(rewards) == "Gaussian"
        return "the algorithm is made for normal rewards, which have no bounds" if normal else None

    def deviation(self, pulls: IntArray | int, n_arms: int) -> FloatArray:
        """Hoeffding's half-width for one mean, so that all n of all T rounds are covered with 1 − δ."""
        return half_width("Hoeffding", pulls, self.delta / (n_arms * self.deadline), self.sigma)


@dataclass(frozen=True)
class Differences(Tested):
    """A race whose rounds resolve differences from w_0 down to ε; `start` is w_0."""

    deadline: int
    epsilon: float
    delta: float
    sigma: float = 0.5
    rewards: str | None = None
    start: float = 0.5
    fixed_counts: ClassVar[bool] = True

    def _check(self, **checks: Rule | tuple[str, ...]) -> None:
        """Check the common fields, and those of one race by the checks given."""
        check_fields(self, start=scale, **checks)
        wide = self.rewards not in IN_UNIT or self.sigma >= 0.5
        require(wide, "sigma", f"be at least 0.5 for {self.rewards} rewards", self.sigma)

    def independent(self, rewards: Known) -> str | None:
        """The objection to blocks where tests need independent arms, as those of rewards in [0, 1] do."""
        if (model := self.rewards or rewards) not in IN_UNIT:
            return None
        why = "as the test for those in [0, 1] needs independent arms"
        return f"rewards must be 'sub-Gaussian' or 'Gaussian' in blocks, {why}, got {model!r}"

    def widths(self) -> FloatArray:
        """w_t = w_0 (ε/w_0)^{t/T}, from nearly w_0 down to ε; ε throughout where w_0 is no larger."""
        start = max(self.start, self.epsilon)
        return np.asarray(start * (self.epsilon / start) ** (np.arange(1, self.deadline + 1) / self.deadline))

    def model(self, told: Known) -> str:
        """As in `Algorithm`, but a σ below ½ is a stronger statement than that rewards lie in [0, 1]."""
        known = super().model(told)
        return "sub-Gaussian" if known in IN_UNIT and self.sigma < 0.5 else known


class Turn(NamedTuple):
    """Where a game stands: the pulls that it asks for or, at its end, the arms that it recommends."""

    pulls: IntArray | None
    arms: IntArray = np.zeros(0, dtype=np.int64)


def advance(game: Game, sums: FloatArray | None = None) -> Turn:
    """Start a game or, with the sums of the rewards that it asked for, let it go on."""
    try:
        return Turn(next(game) if sums is None else game.send(sums))
    except StopIteration as end:
        return Turn(None, end.value)


def drive(game: Game, respond: Callable[[IntArray], FloatArray]) -> IntArray:
    """Play a game to its end: answer each round's pulls with the sums of their rewards; return the arms."""
    turn = advance(game)
    while turn.pulls is not None:
        turn = advance(game, respond(turn.pulls))
    return turn.arms


def check_places(k: int, n_arms: int) -> None:
    """Raise ValueError unless k of n arms can be told from the others: 1 ≤ k < n."""
    require(whole("k", k, 1) < n_arms, "k", f"lie in 1 … {n_arms - 1}, below the number of arms", k)


def spelled(algorithm: Any) -> str:
    """The repr without `UNSAID` values: simulations are seeded by it, and older ones stay the same."""
    values = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
    said = (f"{name}={value!r}" for name, value in values.items() if (name, value) not in UNSAID.items())
    return f"{type(algorithm).__qualname__}({', '.join(said)})"
