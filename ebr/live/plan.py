"""Planning an experiment before its first pull: what each round costs and decides, what one more buys.

Typical totals are means of simulated experiments; what a budget of pulls buys is searched for.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd
from tqdm import tqdm

from ebr.algorithms.game import Algorithm, Known, check_places
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import IntArray
from ebr.live.plots import draw_plan
from ebr.live.terms import changed, width_of, with_control
from ebr.models import IN_UNIT
from ebr.simulation.simulate import simulate
from ebr.theory.bounds import sharp_upper_bound
from ebr.theory.problems import Bernoulli, Gaussian, Problem
from ebr.validation import one_of, several, shown, whole

if TYPE_CHECKING:  # matplotlib is slow to import, and a plan in a terminal needs no picture
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELTA = 0.05  # where it is neither given nor sought
KNOWN = "bounded"  # default reward model, as in `Race`
RUNS = 200  # simulated experiments behind a typical total
CELLS = 2 * 10**6  # experiments × arms at most, lest a plan for a million arms take hours
FEWEST = 2  # experiments all the same, or there is no standard error
MORE_ROUNDS = 3  # how far beyond the deadline to look
EVERY = 20  # deadlines up to which each is looked at; beyond, a few between this and the plan's own
LARGEST = 0.999  # ε or δ that a budget may buy
DECADES = 9  # of ε or δ below 1 among which is sought what a budget buys
MOST_BUDGET = 10**12  # all counts that a search comes to are exact
# The tables' columns as they are shown.
WORDS = {
    "pulls": "pulls of each survivor",
    "so_far": "each so far",
    "worst_case": "all arms so far, none dropped",
    "gone": "gap surely gone",
    "at_most": "at most",
}
PAUSING_WORDS = {
    "pulls": "pulls of the leader",
    "so_far": "leader so far",
    "worst_case": "all arms so far, at most",
    "at_most": "at most",
}


class Planned(Algorithm, Protocol):
    """An algorithm that can be planned: it has a deadline, a δ and a schedule."""

    @property
    def deadline(self) -> int:
        """T."""

    @property
    def delta(self) -> float:
        """δ."""

    def pulls_by_round(self, n_arms: int, rewards: Known = None) -> IntArray:
        """How often an arm may have been pulled after each round, at most."""


KINDS: dict[str, Callable[..., Planned]] = {
    "sharp": SharpElasticBatchRacing,
    "pausing": PausingElasticBatchRacing,
}


@dataclass(frozen=True)
class Plan:
    """What `plan` returns; printing it shows all three tables.

    Attributes
    ----------
    algorithm, n_arms
        The algorithm with its parameters; `Race(plan.algorithm, arms, journal)` runs it, with the scale that
        was planned for, if any. A control is the last arm.
    rounds
        One row a round: the pulls of each survivor in it (`pulls`) and all told (`so_far`), of all arms all
        told if none is dropped (`worst_case`), and the gap from which on arms are gone after it (`gone`).
        Where arms pause: the leader's pulls, which no arm exceeds, and no gap.
    totals
        One row a kind of problem: all pulls together at most (`at_most`), with probability 1 − δ (with 1
        where arms pause) if no reward is missing, and on average in simulated experiments (`typical`).
    deadlines
        The typical totals (and the worst case) if there were 1, 2, … rounds; of more than 20, a few.
    errors
        The standard errors of the totals in `deadlines`, as means of simulated experiments.
    runs
        How many simulated experiments the typical totals are means of: 200, fewer on many arms.
    budget, bought
        The budget, if one was given, and which of "epsilon" and "delta" was sought for it, if any.
    width
        Of the rewards' support: what is 1 to the algorithm.
    """

    algorithm: Planned
    n_arms: int
    rounds: pd.DataFrame = field(repr=False)
    totals: pd.DataFrame = field(repr=False)
    deadlines: pd.DataFrame = field(repr=False)
    errors: pd.DataFrame = field(repr=False)
    runs: int = RUNS
    budget: int | None = None
    bought: str | None = None
    width: float = 1.0

    def __str__(self) -> str:
        a = self.algorithm
        found, best = ("an arm", "the best") if a.k == 1 else (f"{a.k} arms", "the k-th best")
        surely = f"1 - {a.delta:g}" if self.bought == "delta" else f"{1 - a.delta:g}"
        within = f"{self.width * a.epsilon:g} of {best} with probability {surely}"
        parts = [f"{self.n_arms} arms, at most {a.deadline} rounds, {found} within {within}"]
        parts[0] = "\n".join([parts[0], *self._notes()])
        for title, table in self._tables().items():
            parts.append(f"{title}\n{table.reset_index().to_string(index=False)}")
        return "\n\n".join([*parts, "\n".join(self._explained())])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{note}</p>" for note in self._notes())
        explained = "".join(f"<p>{line}</p>" for line in self._explained())
        return notes + "".join(table.to_html() for table in self._tables().values()) + explained

    def _notes(self) -> list[str]:
        """What is to be said before the tables."""
        notes = [] if self.budget is None else [self._verdict()]
        if (margin := self.algorithm.margin) is not None:
            notes.append(f"ends early if no arm can be better than the control by {self.width * margin:g}")
        return notes

    def _explained(self) -> list[str]:
        """Worst case, typical and hardest, told apart."""
        hard, easy = min(2 * self.algorithm.epsilon, 0.5) * self.width, 0.5 * self.width
        others = f"the others are {hard:.3g} worse (hard), {easy:.3g} (easy), or"
        return [
            "Worst case: the most pulls that there can be if no reward is missing; proved, not simulated.",
            f"Typical: the mean of {self.runs} simulated experiments; {others}",
            "spread in between. The hardest of a grid of truths: operating characteristics.",
        ]

    def _verdict(self) -> str:
        """What the budget buys, or whether it is enough."""
        most, given = int(self.rounds["worst_case"].iloc[-1]), f"{self.budget:,} pulls"
        if self.bought is not None:
            levels = {"epsilon": self.width * self.algorithm.epsilon, "delta": self.algorithm.delta}
            value = levels.pop(self.bought)
            ((held, fixed),) = levels.items()
            return f"{given} buy {self.bought} = {value:g} at {held} = {fixed:g}: at most {most:,}"
        if self.budget is not None and most <= self.budget:
            return f"{given} are enough, if no reward is missing: at most {most:,}"
        return f"{given} may not be enough: at most {most:,}"

    def _tables(self) -> dict[str, pd.DataFrame]:
        """The three tables in words, by their titles."""
        tables = {
            "Round by round": self.rounds,
            "All pulls together": self.totals,
            "What one more round buys: all pulls, typically": self.deadlines,
        }
        words = WORDS if "gone" in self.rounds else PAUSING_WORDS
        return {title: table.map(_number).rename(columns=words) for title, table in tables.items()}

    def plot(self, axis: "Axes | None" = None) -> "Figure":
        """What does one more round buy? Typical totals ± one standard error along the number of rounds."""
        return draw_plan(self.deadlines, self.algorithm.deadline, axis, self.errors)


def plan(
    n_arms: int,
    deadline: int,
    epsilon: float | None = None,
    delta: float | None = None,
    sigma: float | None = None,
    rewards: str | None = None,
    algorithm: str = "sharp",
    k: int = 1,
    budget: int | None = None,
    support: tuple[float, float] = (0.0, 1.0),
    control: bool = False,
    margin: float | None = None,
) -> Plan:
    """Plan an experiment with sharp EBR, or with the pausing race; or find what a budget buys.

    Parameters
    ----------
    n_arms, deadline
        How many arms, and rounds at most.
    epsilon, delta
        The recommended arm is within ε of the best with probability at least 1 − δ. Without a budget ε is
        needed, and δ is 0.05 if left out.
    sigma, rewards
        As in the algorithm; σ is half the support's width if left out.
    algorithm
        "sharp", `SharpElasticBatchRacing`; or "pausing", `PausingElasticBatchRacing`.
    k
        How many arms to find, fewer than there are; more than one by sharp EBR alone. The others are then
        worse than all of the k best, which tie, by as much as is said below.
    budget
        How many pulls of all arms together there may be. If ε is left out, the plan is of the ε that so many
        buy (with δ = 0.05 if that is left out too); if δ alone is left out, of the δ. If both are given, it
        says whether the budget is enough.
    support
        Of the rewards, by default [0, 1] (successes, scores). In units of your own ε, σ and margin are in
        them, too, and so are the gaps of the plan: it is for `Race(…, scale=support)`.
    control, margin
        Whether one of the arms, the last, is a control: the race ends early when no arm can be better than
        it by the margin (ε if left out). A kind of problem more shows what that saves: "none better", where
        all arms tie with it.

    Notes
    -----
    Of sharp EBR "surely" and "at most" hold together with probability 1 − δ, by its theorem. Of the pausing
    race they say less, with probability 1: no arm is pulled more often than the leader may be. Rewards that
    are missing are asked for again, and that is not counted. Typical totals are means of 200 simulated
    experiments (of fewer on more than 10,000 arms) on three kinds of problem: all others worse by ½ ("easy"),
    by 2ε but no more than ½ ("hard"), or spread evenly from the one to the other. The worst case is the most
    that there can be, not simulated: sharp EBR comes to it where all arms tie and nobody is dropped.

    *A budget B.* No arm has more than b_T rewards, so a race with n b_T ≤ B costs B at most if none is
    missing. What is bought is an ε (or δ) of three digits which keeps to this, while the next smaller one
    does not; at the least it is 10⁻⁹.
    """
    n_arms = several("n_arms", n_arms)
    check_places(k, n_arms)
    if budget is None and epsilon is None:
        raise ValueError("epsilon must lie in (0, 1), or a budget be given, got None")
    width = width_of(support, epsilon)
    bought = None if budget is None else "epsilon" if epsilon is None else "delta" if delta is None else None
    race = KINDS[one_of("algorithm", algorithm, tuple(KINDS))](
        deadline,
        LARGEST if epsilon is None else epsilon / width if width != 1 else epsilon,
        LARGEST if bought == "delta" else DELTA if delta is None else delta,
        0.5 if sigma is None else sigma / width if width != 1 else sigma,
        rewards,
    )
    if k > 1 and algorithm != "sharp":
        raise ValueError(f"k must be 1 for algorithm {algorithm!r}, got {k}")
    race = changed(race, k=k) if k > 1 else race
    if budget is not None:
        _check_budget(budget, n_arms, race.deadline)
    if budget is not None and bought is not None:
        race = _affordable(race, bought, n_arms, budget)
    race = with_control(race, n_arms - 1 if control else None, margin, width)
    return replace(_made(race, n_arms, width), budget=budget, bought=bought, width=width)


def _made(race: Planned, n_arms: int, width: float) -> Plan:
    """The plan of a race, with its tables."""
    so_far = race.pulls_by_round(n_arms, KNOWN)
    rounds = pd.DataFrame(
        {"pulls": np.diff(so_far, prepend=0), "so_far": so_far, "worst_case": n_arms * so_far},
        index=pd.RangeIndex(1, race.deadline + 1, name="round"),
    )
    kinds = _problems(n_arms, race)
    most: list[float] = [n_arms * float(so_far[-1])] * len(kinds)
    if (gone := race.gone(n_arms, KNOWN)) is not None:
        rounds["gone"] = gone * width
        widths, epsilon, k = gone / 2, race.epsilon, race.k
        most = [sharp_upper_bound(problem, epsilon, widths, so_far, k) for problem in kinds.values()]
    longer, errors = _typical(n_arms, race)
    totals = pd.DataFrame(
        {"at_most": [n_arms * so_far[-1], *most], "typical": longer.loc[race.deadline].to_numpy()},
        index=pd.Index(["worst case", *kinds], name="problem"),
    )
    return Plan(race, n_arms, rounds, totals, longer, errors, _runs_for(n_arms))


def _check_budget(budget: int, n_arms: int, deadline: int) -> None:
    """Raise ValueError unless the budget is a number of pulls that can feed every arm in every round."""
    if not whole("budget", budget, 1) <= MOST_BUDGET:
        raise ValueError(f"budget must be at most {MOST_BUDGET}, got {shown(budget)}")
    if budget < n_arms * deadline:
        rounds = f"{deadline} rounds" if deadline > 1 else "one round"
        raise ValueError(
            f"budget must be at least {n_arms * deadline} for {rounds} on {n_arms} arms, got {budget}"
        )


def _affordable(race: Planned, bought: str, n_arms: int, budget: int) -> Planned:
    """The race with the smallest ε (or δ) of three digits that costs no more than the budget.

    What is returned was seen to fit, and the next smaller value not to, be the cost monotone or not.
    """

    def most(value: float) -> int:
        return n_arms * int(changed(race, **{bought: value}).pulls_by_round(n_arms, KNOWN)[-1])

    def fits(value: float) -> bool:
        return most(value) <= budget

    if (least := most(LARGEST)) > budget:
        raise ValueError(f"budget must be at least {least} for {bought} = {LARGEST}, got {budget}")
    decade = 1
    while decade < DECADES and fits(float(f"1e-{decade}")):
        decade += 1
    # The last is the decade before's first, which fits; or 1, for which LARGEST before it fits.
    values = [float(f"{digits}e-{decade + 2}") for digits in range(100, 1001)]
    return changed(race, **{bought: values[bisect_left(values, True, key=fits)]})


def _typical(n_arms: int, algorithm: Planned) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The worst case, and mean totals of simulated experiments, for several deadlines; standard errors.

    There is a progress bar on a terminal if it takes longer than a second.
    """
    rows, errors = {}, {}
    runs = _runs_for(n_arms)
    for deadline in tqdm(
        _deadlines(algorithm), "simulating", unit="deadline", disable=None, delay=1, leave=False
    ):
        one = changed(algorithm, deadline=deadline, rewards=algorithm.model(KNOWN))
        pulls = {name: simulate(one, each, runs).pulls for name, each in _problems(n_arms, one).items()}
        most = float(n_arms * one.pulls_by_round(n_arms, KNOWN)[-1])
        rows[deadline] = {"worst case": most} | {name: each.mean() for name, each in pulls.items()}
        errors[deadline] = {"worst case": 0.0} | {
            name: each.std(ddof=1) / np.sqrt(runs) for name, each in pulls.items()
        }
    means, standard = (pd.DataFrame.from_dict(table, orient="index") for table in (rows, errors))
    return means.rename_axis("rounds"), standard.rename_axis("rounds")


def _runs_for(n_arms: int) -> int:
    """How many experiments are simulated: fewer on many arms, whose totals vary less."""
    return max(FEWEST, min(RUNS, CELLS // n_arms))


def _deadlines(algorithm: Planned) -> list[int]:
    """1, 2, …, 20, then √2 times as many each time, then the deadline itself and the next three."""
    deadline = algorithm.deadline
    between = (round(EVERY * 2 ** (step / 2)) for step in range(1, 20))
    fewer = [t for t in (*range(1, EVERY + 1), *between) if t < deadline]
    return [*fewer, *range(deadline, min(deadline + MORE_ROUNDS, algorithm.most_rounds) + 1)]


def _problems(n_arms: int, algorithm: Planned) -> dict[str, Problem]:
    """The kinds of problem that a plan looks at."""
    hard, easy, k = min(2 * algorithm.epsilon, 0.5), 0.5, algorithm.k
    gaps = {
        "hard": np.full(n_arms - k, hard),
        "spread": np.linspace(hard, easy, n_arms - k),
        "easy": np.full(n_arms - k, easy),
    }
    if algorithm.control is not None:
        gaps["none better"] = np.zeros(n_arms - k)
    bounded = algorithm.model(KNOWN) in IN_UNIT
    means = {name: 0.75 - np.append(np.zeros(k), gap) for name, gap in gaps.items()}
    return {name: Bernoulli(m) if bounded else Gaussian(m, algorithm.sigma) for name, m in means.items()}


def _number(value: float) -> str:
    """A count with thousands, a gap with three digits."""
    return f"{value:,.0f}" if value >= 10 or float(value).is_integer() else f"{value:.3g}"
