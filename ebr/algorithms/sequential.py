"""Sequential racing, T = ∞: section 5's oracle, which knows no deadline."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebr.algorithms.arms import Survivors
from ebr.algorithms.game import Algorithm, Game, Known, Lots, entered
from ebr.arrays import FloatArray, IntArray
from ebr.models import IN_UNIT
from ebr.theory.confidence import sequential_deviation
from ebr.validation import MOST_PULLS, MOST_TOTAL, check_fields

MOST_TURNS = 10**6  # times that a race may ask for pulls: a minute of simulation


@dataclass(frozen=True)
class SequentialRacing(Algorithm):
    """T = ∞: survivors are pulled in turn, one at a time, until one is known to be within ε of the best.

    EBR's elimination rule with η = ε/n (n∧∞) and the deviation of Jun et al. (AISTATS 2016), which holds
    for all counts at once; the rule is applied at the end of every sweep over the survivors. The race ends
    when one arm is left or, by default, when the leader's lower bound is at least every other survivor's
    upper bound less ε. Waiting for one arm alone (`end="lone survivor"`) ignores ε, and never ends if
    arms tie for ever.

    Notes
    -----
    *Asking ahead.* With rewards in [0, 1], the sweeps that are certain to decide nothing are asked for at
    once; the race is the one-pull-at-a-time race all the same. Let every survivor have s pulls and sum X_i,
    let X_(1) ≥ X_(2) be the two largest sums and X_min the smallest, and W(τ) = 2τD(τ), so that at sweep
    τ an arm is dropped if it is more than W(τ) − ητ behind, and the race ends if the second is at
    least W(τ) − ετ behind. After h more sweeps every sum has grown by between 0 and h. So, whatever the
    outcomes:

    - no arm is further behind than X_(1) − X_min + h, since nobody has more than X_(1) + h and nobody
      less than X_min; hence none is dropped while X_(1) − X_min + h ≤ W(s+h) − η(s+h);
    - the two largest sums are at most X_(1) − X_(2) + h apart: the leader then, j, has at most X_j + h, and
      somebody else at least the largest of the other X_i, which is X_(1) if j is not the leader now and
      X_(2) if it is; hence the race does not end while X_(1) − X_(2) + h < W(s+h) − ε(s+h).

    Now W(τ)² = 64σ² τ log(log₂(2τ)/ω), whose last factor increases: W(s+h) ≥ W(s) √(1 + h/s). With
    u² = 1 + h/s and G the gap, either condition follows from s(1+η)u² − W(s)u − (s − G) ≤ 0, that is from
    u ≤ (W + √(W² + 4s(1+η)(s − G))) / (2s(1+η)), and likewise for ε. As the quadratic is convex and not
    positive at u = 0, what holds for h holds for every smaller h ≥ 0: the sweeps s+1 … s+h decide
    nothing, and ⌊h⌋ + 1 sweeps may be asked for.
    """

    epsilon: float
    delta: float
    sigma: float = 0.5
    end: str = "certified"
    deadline = None
    one_pull_a_round: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, end=("certified", "lone survivor"))

    def deviation(self, pulls: IntArray | FloatArray | int, n_arms: int) -> FloatArray:
        """The half-width D of the confidence interval around the mean of so many rewards."""
        return sequential_deviation(pulls, n_arms, self.delta, self.sigma)

    def play(
        self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Lots = None
    ) -> Game:
        """Race one sweep at a time; with rewards in [0, 1], skip ahead over sweeps that decide nothing."""
        n_arms, replicates = entered(n_arms, replicates, rewards)
        self._check_end(n_arms)
        slack = self.epsilon / n_arms
        survivors = Survivors(n_arms, replicates)
        sweeps = np.zeros(replicates)
        ahead = np.ones(replicates, dtype=np.int64)
        for _ in range(MOST_TURNS):
            survivors.add((yield survivors.pulls(ahead)))
            sweeps += ahead * survivors.running
            width = 2 * sweeps * self.deviation(sweeps, n_arms)  # W
            reach = np.maximum(width - slack * sweeps, 0)
            lead = survivors.first - survivors.second()
            survivors.drop(reach)
            # A certified leader: L_1 ≥ U_i − ε. As ε > η, this is so too when all the others are dropped.
            ended = lead >= width - self.epsilon * sweeps if self.end == "certified" else lead > reach
            survivors.end(ended)
            if not survivors.running.any():
                return survivors.leader
            if rewards in IN_UNIT:
                undecided = _certain_sweeps(sweeps, width, survivors.first - survivors.last(), slack)
                if self.end == "certified":
                    until_end = _certain_sweeps(sweeps, width, np.minimum(lead, sweeps), self.epsilon)
                    undecided = np.minimum(undecided, until_end)
                ahead = 1 + np.maximum(undecided - ROUNDING, 0).astype(np.int64)
        raise ValueError(
            f"epsilon must be large enough for a race to end after {MOST_TURNS:,} turns, got {self.epsilon}:"
            f" {survivors.size().max()} arms are left with {sweeps.max():.1e} pulls each"
        )

    def _check_end(self, n_arms: int) -> None:
        """Raise ValueError if tied arms would need more pulls than can be counted."""
        most = min(MOST_PULLS, MOST_TOTAL // n_arms)
        width = 2 * float(self.deviation(most, n_arms))
        if self.end == "certified" and width > self.epsilon:
            raise ValueError(
                f"epsilon must be at least {width:.1e}, what {most:.1e} pulls of each arm resolve"
                f" at sigma = {self.sigma:g} and delta = {self.delta:g}, got {self.epsilon:g}"
            )


ROUNDING = 1e-6  # sweeps: far above the rounding error of the look-ahead, which asks for one fewer near it


def _certain_sweeps(sweeps: FloatArray, width: FloatArray, gap: FloatArray, slack: float) -> FloatArray:
    """How many more sweeps are certain to leave the gap below W(τ) − slack·τ (SequentialRacing's Notes)."""
    square = sweeps * (1 + slack)
    growth = (width + np.sqrt(width**2 + 4 * square * (sweeps - gap))) / (2 * square)
    certain: FloatArray = sweeps * (growth**2 - 1)
    return certain
