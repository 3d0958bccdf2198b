"""Simulated experiments: many replicates of a race at once, one draw a round for each arm's sum."""

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.random import Generator

from ebr.algorithms.game import Algorithm, drive
from ebr.arrays import BoolArray, FloatArray, IntArray, Numbers
from ebr.theory.problems import Bernoulli, Gaussian, Problem
from ebr.validation import MOST_TOTAL, require, shown, true_or_false, whole

# Replicates come in blocks, each with a generator of its own. A block's size depends on the number of arms
# alone, so memory is bounded, and neither the number of blocks nor who plays them can change a result.
CELLS_PER_BLOCK = 2**17  # replicates × arms: about 15 MB of arrays
MOST_RUNS = 10**8  # the results of so many runs take gigabytes
Watch = Callable[[IntArray, FloatArray], None]


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """Results of the runs: arrays with one entry for each run."""

    problem: Problem
    pulls: IntArray  # of all arms
    rounds: IntArray  # used
    arm: IntArray  # the recommended one; if k > 1 are sought, k arms (runs × k)
    arm_pulls: IntArray  # of each arm (runs × arms), if they were asked for, else of none
    arm_sums: FloatArray  # of its rewards

    def __repr__(self) -> str:
        """A summary in three lines, the mean with its normal interval."""
        pulls, rounds, kind = self.pulls, self.rounds, type(self.problem).__name__
        reach = 1.96 * pulls.std(ddof=1) / math.sqrt(len(pulls)) if len(pulls) > 1 else math.inf
        interval = f"95 % interval {pulls.mean() - reach:,.0f} to {pulls.mean() + reach:,.0f}"
        return (
            f"Simulation of {len(pulls):,} runs on {self.problem.n_arms} {kind} arms\n"
            f"pulls: {pulls.mean():,.0f} on average ({interval}), {pulls.min():,} to {pulls.max():,}\n"
            f"rounds: {rounds.mean():.1f} on average, {rounds.min():,} to {rounds.max():,}"
        )

    def correct(self, epsilon: float) -> BoolArray:
        """Whether each run's recommendation is ε-optimal: k different arms, all within ε of the k-th best."""
        arms = self.arm.reshape(len(self.pulls), -1)
        different = (np.diff(np.sort(arms, axis=1), axis=1) > 0).all(axis=1)
        return np.asarray(different & self.problem.is_good(arms, epsilon, k=arms.shape[1]).all(axis=1))


def simulate(
    algorithm: Algorithm, problem: Problem, runs: int = 100, seed: int = 0, per_arm: bool = False
) -> Simulation:
    """Run an algorithm on a problem `runs` times.

    Parameters
    ----------
    algorithm
        Anything with `play`, for instance `ElasticBatchRacing(deadline=15, epsilon=0.01, delta=0.01)`.
    problem
        `Bernoulli(means)`, `Gaussian(means, sigma)` or one of the setups.
    runs, seed
        How many independent runs. The result depends on these two, algorithm and problem alone: it is the
        same on every machine.
    per_arm
        Keep every arm's number of pulls and sum of rewards: `arm_pulls` and `arm_sums` (runs × arms).
    """
    if true_or_false("per_arm", per_arm) and isinstance(problem, Problem):
        whole("runs", runs, 1, MOST_RUNS // problem.n_arms)
    parts = [_play(algorithm, problem, *block, per_arm) for block in blocks(algorithm, problem, runs, seed)]
    return Simulation(problem, *map(np.concatenate, zip(*parts, strict=True)))


@singledispatch
def draw_sums(problem: Problem, means: FloatArray, pulls: IntArray, generator: Generator) -> Numbers:
    """Draw the sums of so many rewards (arms × replicates), of the problem's kind and with such means.

    One draw each, however many the pulls. A problem of one's own may have the sums of squares as well
    (2 × arms × replicates); they are sent to algorithms that want them.
    """
    raise ValueError(f"problem must be Bernoulli or Gaussian, got {problem!r}")


@draw_sums.register
def _(problem: Bernoulli, means: FloatArray, pulls: IntArray, generator: Generator) -> IntArray:
    # Arm by arm: numpy keeps its set-up while count and probability stay the same from draw to draw.
    return np.asarray(generator.binomial(pulls, means))


@draw_sums.register
def _(problem: Gaussian, means: FloatArray, pulls: IntArray, generator: Generator) -> FloatArray:
    return pulls * means + problem.sigma * np.sqrt(pulls) * generator.standard_normal(pulls.shape)


def race(
    algorithm: Algorithm, problem: Problem, replicates: int, generator: Generator, watch: Watch
) -> IntArray:
    """Play replicates side by side; `watch` sees each round's pulls and sums. Return the recommended arms."""
    squares = algorithm.wants_squares(problem.rewards)
    most = 0  # pulls of all arms that a replicate may have had

    def respond(pulls: IntArray) -> FloatArray:
        nonlocal most
        most += problem.n_arms * int(pulls.max())
        if most > MOST_TOTAL:
            asked = f"got up to {most:.1e} of {shown(algorithm)}"
            raise ValueError(f"algorithm must ask for at most 2^63 - 1 pulls of all arms in a race, {asked}")
        drawn = draw(problem, problem.means[:, None], pulls.T, generator, squares).swapaxes(-1, -2)
        sums = drawn if drawn.ndim == 2 else drawn[0]
        watch(pulls, sums)
        return drawn if squares else sums

    game = algorithm.play(problem.n_arms, replicates, rewards=problem.rewards, generator=generator)
    return drive(game, respond)


def draw(
    problem: Problem, means: FloatArray, pulls: IntArray, generator: Generator, squares: bool = False
) -> FloatArray:
    """Draw what `draw_sums` does in a round, passing over the arms that nobody pulls.

    With `squares` Gaussian rewards have their sums of squares as well.
    """
    pulled = pulls.any(axis=1)
    arms = slice(None) if pulled.all() else np.flatnonzero(pulled)  # a slice makes no copy
    drawn: FloatArray = np.asarray(draw_sums(problem, means[arms], pulls[arms], generator))
    if squares and isinstance(problem, Gaussian):  # A²/m + σ² χ², with m − 1 degrees of freedom
        chi_square = 2 * generator.standard_gamma(np.maximum(pulls[arms] - 1, 0) / 2)
        drawn = np.stack([drawn, drawn**2 / np.maximum(pulls[arms], 1) + problem.sigma**2 * chi_square])
    sums = np.zeros((*drawn.shape[:-2], *pulls.shape))
    sums[..., arms, :] = drawn
    return sums


def blocks(
    algorithm: Algorithm, problem: Problem, runs: int, seed: int, beside: int = 1
) -> Iterator[tuple[int, Generator]]:
    """Blocks of runs: the size of each, and the generator of its draws. A run consists of `beside` races."""
    check(algorithm, problem, seed)
    size = max(1, CELLS_PER_BLOCK // (problem.n_arms * beside))
    # A block is seeded by what is simulated, never by when or where it is simulated.
    words = np.frombuffer(identity(algorithm, problem), dtype="<u4").tolist()
    for block, start in enumerate(range(0, whole("runs", runs, 1, MOST_RUNS), size)):
        seeds = np.random.SeedSequence([seed, *words], spawn_key=(block,))
        yield min(size, runs - start), np.random.default_rng(seeds)


def _play(
    algorithm: Algorithm, problem: Problem, replicates: int, generator: Generator, per_arm: bool
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]:
    """Pulls, rounds, arms, and pulls and sums per arm of one block."""
    total, rounds = np.zeros((2, replicates), dtype=np.int64)
    arm_pulls = np.zeros((replicates, problem.n_arms if per_arm else 0), dtype=np.int64)
    arm_sums = np.zeros(arm_pulls.shape)

    def watch(pulls: IntArray, sums: FloatArray) -> None:
        nonlocal total, rounds, arm_pulls, arm_sums
        in_round = pulls.sum(axis=1)
        total += in_round
        rounds += in_round if algorithm.one_pull_a_round else in_round > 0
        if per_arm:
            arm_pulls += pulls
            arm_sums += sums

    return total, rounds, race(algorithm, problem, replicates, generator, watch), arm_pulls, arm_sums


def identity(algorithm: Algorithm, problem: Problem) -> bytes:
    """A digest of what is simulated: equal for equal algorithms on equal problems."""
    name = f"{algorithm!r} on {type(problem).__name__} with sigma={problem.sigma!r} and means "
    return hashlib.sha256(name.encode() + problem.means.tobytes()).digest()


def check(algorithm: Algorithm, problem: Problem, seed: int) -> None:
    """Raise ValueError for what cannot be simulated; warn where the algorithm's guarantee is void."""
    made = isinstance(algorithm, Algorithm)
    require(made, "algorithm", "be an ebr.algorithms.game.Algorithm, made with its parameters", algorithm)
    drawn = draw_sums.dispatch(type(problem)) is not draw_sums.dispatch(object)
    require(drawn, "problem", "be Bernoulli or Gaussian", problem)
    whole("seed", seed, 0)
    guess = problem.rewards == "Gaussian" and algorithm.wants_squares("Gaussian")
    if algorithm.sigma < problem.sigma and not guess:
        below = f"the algorithm's sigma, {algorithm.sigma}, is below the problem's, {problem.sigma}"
        warnings.warn(f"{below}: its guarantee is void", stacklevel=3)
