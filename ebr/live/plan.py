"""Planning an experiment before its first pull: what each round costs and decides, what one more buys."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.plots import draw_plan
from ebr.simulation.simulate import simulate
from ebr.theory import bounds
from ebr.theory.problems import Bernoulli, Gaussian, Problem
from ebr.validation import whole

if TYPE_CHECKING:  # matplotlib is slow to import, and a plan in a terminal needs no picture
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Plan", "plan"]

MORE_ROUNDS = 3  # how far beyond the deadline to look
KNOWN = "bounded"  # of rewards of which nothing is said, as where they are raced
RUNS = 200  # simulated experiments behind a typical total
# The tables' columns as they are shown.
WORDS = {
    "pulls": "pulls of each survivor",
    "so_far": "each so far",
    "worst_case": "all arms so far, none dropped",
    "gone": "gap surely gone",
    "at_most": "at most",
}


@dataclass(frozen=True)
class Plan:
    """What `plan` returns; printing it shows all three tables.

    Attributes
    ----------
    algorithm, n_arms
        Sharp EBR with these parameters; `Race(plan.algorithm, arms, journal)` runs it.
    rounds
        One row a round: the pulls of each survivor in it (`pulls`) and all told (`so_far`), of all arms all
        told if none is dropped (`worst_case`), and the gap from which on arms are gone after it (`gone`).
    totals
        One row a kind of problem: all pulls together at most, with probability 1 − δ (`at_most`), and on
        average in simulated experiments (`typical`).
    deadlines
        The typical totals (and the worst case) if there were 1, 2, … rounds.
    errors
        The standard errors of the totals in `deadlines`, as means of simulated experiments.
    """

    algorithm: SharpElasticBatchRacing
    n_arms: int
    rounds: pd.DataFrame = field(repr=False)
    totals: pd.DataFrame = field(repr=False)
    deadlines: pd.DataFrame = field(repr=False)
    errors: pd.DataFrame = field(repr=False)

    def __str__(self) -> str:
        a = self.algorithm
        within = f"{a.epsilon:g} of the best with probability {1 - a.delta:g}"
        parts = [f"{self.n_arms} arms, at most {a.deadline} rounds, an arm within {within}"]
        for title, table in self._tables().items():
            parts.append(f"{title}\n{table.reset_index().to_string(index=False)}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return "".join(table.to_html() for table in self._tables().values())

    def _tables(self) -> dict[str, pd.DataFrame]:
        """The three tables in words, by their titles."""
        tables = {
            "Round by round": self.rounds,
            "All pulls together": self.totals,
            "What one more round buys: all pulls, typically": self.deadlines,
        }
        return {title: table.map(_number).rename(columns=WORDS) for title, table in tables.items()}

    def plot(self, axis: "Axes | None" = None) -> "Figure":
        """What does one more round buy? Typical totals ± one standard error along the number of rounds."""
        return draw_plan(self.deadlines, self.algorithm.deadline, axis, self.errors)


def plan(
    n_arms: int,
    deadline: int,
    epsilon: float,
    delta: float = 0.05,
    sigma: float = 0.5,
    rewards: str | None = None,
) -> Plan:
    """Plan an experiment with sharp EBR.

    Parameters
    ----------
    n_arms, deadline
        How many arms, and rounds at most.
    epsilon, delta
        The recommended arm is within ε of the best with probability at least 1 − δ.
    sigma, rewards
        As in `SharpElasticBatchRacing`. By default rewards lie in [0, 1] (successes, scores), as in `Race`.

    Notes
    -----
    "Surely" and "at most" hold together with probability 1 − δ, by sharp EBR's theorem. Typical totals are
    means of 200 simulated experiments on three kinds of problem: all others worse by ½ ("easy"), by 2ε but no
    more than ½ ("hard"), or spread evenly from the one to the other. In the worst case all arms tie, and
    nobody is dropped.
    """
    whole("n_arms", n_arms, 2)
    algorithm = SharpElasticBatchRacing(deadline, epsilon, delta, sigma, rewards)
    pulls = algorithm.pulls_by_round(n_arms, KNOWN)
    widths = algorithm.width(pulls, algorithm.log_terms(n_arms, KNOWN))
    rounds = pd.DataFrame(
        {
            "pulls": np.diff(pulls, prepend=0),
            "so_far": pulls,
            "worst_case": n_arms * pulls,
            "gone": 2 * widths,
        },
        index=pd.RangeIndex(1, deadline + 1, name="round"),
    )
    problems = _problems(n_arms, algorithm)
    most = [bounds.sharp_upper_bound(problem, epsilon, widths, pulls) for problem in problems.values()]
    longer, errors = _typical(n_arms, algorithm, range(1, deadline + MORE_ROUNDS + 1))
    totals = pd.DataFrame(
        {"at_most": [n_arms * pulls[-1], *most], "typical": longer.loc[deadline].to_numpy()},
        index=pd.Index(["worst case", *problems], name="problem"),
    )
    return Plan(algorithm, n_arms, rounds, totals, longer, errors)


def _problems(n_arms: int, algorithm: SharpElasticBatchRacing) -> dict[str, Problem]:
    """The kinds of problem that a plan looks at."""
    hard, easy = min(2 * algorithm.epsilon, 0.5), 0.5
    gaps = {
        "hard": np.full(n_arms - 1, hard),
        "spread": np.linspace(hard, easy, n_arms - 1),
        "easy": np.full(n_arms - 1, easy),
    }
    bounded = algorithm.model(KNOWN) == "bounded"
    means = {name: 0.75 - np.append(0, gap) for name, gap in gaps.items()}
    return {name: Bernoulli(m) if bounded else Gaussian(m, algorithm.sigma) for name, m in means.items()}


def _typical(
    n_arms: int, algorithm: SharpElasticBatchRacing, deadlines: Iterable[int]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The worst case, and mean totals of simulated experiments, for several deadlines; standard errors."""
    rows, errors = {}, {}
    for deadline in deadlines:
        one = replace(algorithm, deadline=deadline, rewards=algorithm.model(KNOWN))
        pulls = {name: simulate(one, each, RUNS).pulls for name, each in _problems(n_arms, one).items()}
        most = float(n_arms * one.pulls_by_round(n_arms).max())
        rows[deadline] = {"worst case": most} | {name: each.mean() for name, each in pulls.items()}
        errors[deadline] = {"worst case": 0.0} | {
            name: each.std(ddof=1) / np.sqrt(RUNS) for name, each in pulls.items()
        }
    means, standard = (pd.DataFrame.from_dict(table, orient="index") for table in (rows, errors))
    return means.rename_axis("rounds"), standard.rename_axis("rounds")


def _number(value: float) -> str:
    """A count with thousands, a gap with three digits."""
    return f"{value:,.0f}" if value >= 10 or float(value).is_integer() else f"{value:.3g}"
