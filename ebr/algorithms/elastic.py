"""Algorithm 1, Elastic Batch Racing: survivors are pulled up to a geometric schedule of T rounds."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ebr.algorithms.arms import Survivors
from ebr.algorithms.game import Algorithm, Game, Known, Rng, spelled
from ebr.arrays import FloatArray, IntArray
from ebr.theory.confidence import deviation
from ebr.validation import check_fields, count, require

SCHEDULE_CONSTANT = 80  # Algorithm 1 and Theorem 1


@dataclass(frozen=True)
class ElasticBatchRacing(Algorithm):
    """Elastic Batch Racing (EBR), Algorithm 1.

    In round t every surviving arm is pulled up to ⌈80σ² log(nT/δ) ε^{−2t/T}⌉ times in all; the arms whose
    upper bound lies below the best lower bound + ε/(n∧T) are dropped.

    Parameters
    ----------
    deadline, epsilon, delta
        In T rounds at most, the recommended arm is within ε of the best with probability at least 1 − δ.
    sigma
        The rewards are σ-sub-Gaussian; ½ for rewards in [0, 1].
    schedule
        Pull counts are "scaled" with σ², as in every theorem; "printed" ones are not, as in the pseudo-code.
    lone_survivor
        The last arm "stops" the race, as the theorems need, or is "pulled again", as in the pseudo-code.
    returned_from
        "last round": the best empirical mean among the arms pulled last, S_T, as printed; "after it": among
        those that survive the last elimination, S_{T+1}, which is empty at T = 1: the arm is then −1, none.
    k
        How many arms to find, fewer than there are: the paper's is 1. With k > 1 all that are recommended are
        within ε of the k-th best. Only the default `lone_survivor` and `returned_from` are defined then.

    Notes
    -----
    Where 2D < ε/(n∧T) the printed rule drops *every* arm, the leader with them: always at T = 1, and with the
    printed schedule in some rounds if n∧T ≤ 3. The leader is therefore kept ("last round"); it is the arm
    that the argmax over S_T returns, so no recommendation changes.

    *The k best*, to which the paper says its ideas carry over. With k′ places open, an arm is dropped if its
    upper bound lies below the k′-th best lower bound of the undecided arms + ε/(n∧T), and accepted if its
    lower bound lies above the (k′+1)-th best upper bound − ε/(n∧T). Pulls and intervals do not depend on k.
    """

    deadline: int
    epsilon: float
    delta: float
    sigma: float = 0.5
    schedule: str = "scaled"
    lone_survivor: str = "stops"
    returned_from: str = "last round"
    k: int = 1
    fixed_counts: ClassVar[bool] = True
    __repr__ = spelled

    def __post_init__(self) -> None:
        check_fields(
            self,
            schedule=("scaled", "printed"),
            lone_survivor=("stops", "pulled again"),
            returned_from=("last round", "after it"),
        )
        for name, default in {"lone_survivor": "stops", "returned_from": "last round"}.items():
            chosen = vars(self)[name]
            require(self.k == 1 or chosen == default, name, f"be {default!r} for k > 1", chosen)

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """⌈80σ² log(nT/δ) ε^{−2t/T}⌉ for t = 1 … T: a survivor's total pulls after each round."""
        rounds = np.arange(1, self.deadline + 1)
        variance = self.sigma**2 if self.schedule == "scaled" else 1.0
        first = SCHEDULE_CONSTANT * variance * math.log(n_arms * self.deadline / self.delta)
        pulls: FloatArray = np.ceil(first * self.epsilon ** (-2 * rounds / self.deadline))
        count(pulls[-1], n_arms)  # the largest
        return pulls.astype(np.int64)

    def deviation(self, pulls: IntArray | int, n_arms: int) -> FloatArray:
        """The half-width D of the confidence interval around a mean of `pulls` rewards."""
        return deviation(pulls, n_arms, self.deadline, self.delta, self.sigma)

    def slack(self, n_arms: int) -> float:
        """η = ε/(n∧T): how far above the best lower bound an upper bound must reach to survive."""
        return self.epsilon / min(n_arms, self.deadline)

    def void(self, rewards: Known, bounded: bool, blocks: bool) -> str | None:
        """The theorems are about pull counts with σ² and an argmax over S_T."""
        if self.returned_from == "after it":
            return "the theorems are about the arms pulled last, returned_from='last round'"
        if self.schedule == "printed" and self.sigma > 1:
            return "the printed schedule has no σ², and the algorithm's σ is above 1"
        return None

    def play(self, n_arms: int, replicates: int = 1, *, rewards: Known = None, generator: Rng = None) -> Game:
        """Race."""
        n_arms, replicates = self.entered(n_arms, replicates, rewards)
        slack = self.slack(n_arms)
        survivors = Survivors(n_arms, replicates, self.k)  # S_1, which the paper calls S_0
        pulled = 0
        for target in self.pulls_by_round(n_arms):
            if target > pulled:  # the ceiling may leave a round without a new pull: nothing to ask for
                survivors.add((yield survivors.pulls(target - pulled)))
                pulled = int(target)
            before = survivors.size() if self.lone_survivor == "pulled again" else None
            # R_t: U_i < max L_j + ε/(n∧T), that is, more than 2D − ε/(n∧T) behind the leader.
            reach = pulled * (2 * self.deviation(pulled, n_arms) - slack)
            reach = np.maximum(reach, 0) if self.returned_from == "last round" else reach
            survivors.drop(reach)
            if self.k > 1:  # A_t: L_i > U_j − ε/(n∧T) for the (k′+1)-th j; the last that are left go together
                survivors.accept(reach)
            survivors.end((survivors.size() if before is None else before) <= 1)
            if not survivors.running.any():
                break
        survivors.end(survivors.running)
        return survivors.leader
