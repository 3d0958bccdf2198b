"""How a design fares before its first pull, whatever the truth may be: operating characteristics.

A design is simulated on a grid of truths, which are what the arms' means might be.
"""

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ebr.algorithms.game import Algorithm, check_places
from ebr.arrays import FloatArray
from ebr.live.journal import is_journal
from ebr.live.plan import Plan
from ebr.live.plots import draw_characteristics
from ebr.live.terms import UNIT, Scale
from ebr.live.truths import FAR, MOST_OF, Means, Truth, named_truths, problem_of, row_of
from ebr.models import IN_UNIT, REWARDS
from ebr.simulation.simulate import progress
from ebr.theory.intervals import exact_interval
from ebr.validation import one_of, whole

if TYPE_CHECKING:  # matplotlib is slow to import, and a table in a terminal needs no picture
    from matplotlib.figure import Figure

CONFIDENCE = 0.99  # of the interval for the probability of a right choice
LEVELS = (0.1, 0.5, 0.9)  # of the best arm, where it matters: near 0 and 1 coins are easier to tell apart
DOUBLINGS = 40  # of ε/2 at most, on the way there
MOST_GAPS = 8  # that are kept of them


@dataclass(frozen=True)
class OperatingCharacteristics:
    """What `operating_characteristics` returns; printing it shows the table and the hardest truths.

    Attributes
    ----------
    algorithm, n_arms, runs
        What was simulated, on how many arms, and how often on each truth.
    table
        A row a truth: its name (`truth`) and largest mean (`best`); how often the choice was `right`, that
        is ε-optimal, with the ends of an exact 99 % interval (`right_lower`, `right_upper`); the mean `pulls`
        of all arms and its standard `error`; `pulls_90`, which 90 % of the races did not exceed; the mean
        `rounds` and `rounds_90`; and `runs`.
    worst_case
        The most pulls that there can be if no reward is missing, proved; None for an algorithm of which that
        is not known here.
    hardest
        Two rows of the table: the truth with the most expected pulls, and the one with the least
        probability of a right choice. Of this grid: there may be harder ones beside it.
    """

    algorithm: Algorithm
    n_arms: int
    runs: int
    table: pd.DataFrame = field(repr=False)
    worst_case: int | None = None

    @property
    def hardest(self) -> pd.DataFrame:
        """The truth of the most pulls, and the one that is hardest to get right."""
        rows = [self.table["pulls"].idxmax(), self.table["right"].idxmin()]
        return self.table.loc[rows].set_index(pd.Index(["most pulls", "least often right"], name="hardest"))

    def __str__(self) -> str:
        """The table and what is hardest."""
        title = f"{self.n_arms} arms, {self.runs:,} simulated races on each truth\n{self.algorithm!r}"
        return "\n\n".join([title, _shown(self.table).to_string(index=False), "\n".join(self._extremes())])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self._extremes())
        return _shown(self.table).to_html(index=False) + lines

    def _extremes(self) -> list[str]:
        """Worst case and hardest, told apart."""
        known = self.worst_case is not None
        most, least = (row for _, row in self.hardest.iterrows())
        return [
            f"Worst case: at most {self.worst_case:,} pulls if no reward is missing, proved."
            if known
            else "Worst case: not known.",
            f"Hardest of this grid, most pulls: {most['truth']}, best {most['best']:g}:"
            f" {most['pulls']:,.0f} ± {most['error']:,.0f} on average.",
            f"Hardest of this grid, least often right: {least['truth']}, best {least['best']:g}:"
            f" {least['right']:.2%}, between {least['right_lower']:.2%} and {least['right_upper']:.2%}.",
        ]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table; raise ValueError if a journal is there."""
        if is_journal(path):
            raise ValueError(f"{path} is the journal of a race: name another file for the table")
        self.table.to_csv(path, index=False)

    def plot(self) -> "Figure":
        """Draw how often the choice is right, and what it costs, truth by truth."""
        return draw_characteristics(self.table, self.algorithm.delta, self.worst_case)


def operating_characteristics(
    design: Plan | Algorithm,
    truths: int | Mapping[str, Means] | Sequence[Means] | None = None,
    rewards: str | None = None,
    runs: int = 1000,
    seed: int = 0,
) -> OperatingCharacteristics:
    """Simulate a design on a grid of truths: how often its choice is right, and what it costs.

    Parameters
    ----------
    design
        A plan, or an algorithm.
    truths
        How many arms, for the usual grid of truths; or truths of one's own: lists of means, in a list or by
        their names, in the rewards' units. By default the usual grid for the plan's arms.
    rewards
        What is known of the rewards; by default what the algorithm assumes, else "bounded", as in `Race`.
        Those in [0, 1] are simulated by coins, the noisiest of them; others by normal ones with σ.
    runs, seed
        So many races on each truth; the result is a function of both.

    Notes
    -----
    *The usual grid:* all arms tie; all but the best are worse by ε/2, ε, 2ε, 4ε, … ½; one rival is worse by
    ε and all others by ½. For rewards in [0, 1] the best mean is 0.1, 0.5 and 0.9, and gaps are as large as
    fit. A choice is right if it is ε-optimal: within less than ε of the best (of the k-th best, k of them);
    or if it is a control than which no arm is better by the margin. Where gaps are below ε all are right.
    """
    algorithm, planned = (design.algorithm, design.n_arms) if isinstance(design, Plan) else (design, None)
    if not isinstance(algorithm, Algorithm):
        raise ValueError(f"design must be a plan or an algorithm, got {design!r}")
    scale = design.terms.scale if isinstance(design, Plan) else UNIT
    # A σ below ½ says more of rewards than that they are bounded: that no coin need be among them.
    told = "bounded" if algorithm.sigma >= 0.5 else "sub-Gaussian"
    known = algorithm.model(told) if rewards is None else one_of("rewards", rewards, REWARDS)
    algorithm = algorithm.assuming(known)  # no more than a race would be told
    truths = planned if truths is None else truths
    if truths is None:
        raise ValueError("truths must be a number of arms or lists of means, got None")
    if isinstance(truths, Mapping | Sequence | np.ndarray):
        grid = named_truths(truths, known, algorithm.sigma, planned, scale)
    else:
        grid = default_truths(algorithm, truths, known, scale)
    whole("runs", runs, 1)
    bar = progress(grid, len(grid), "truth")
    table = pd.DataFrame([row_of(algorithm, truth, runs, seed) for truth in bar])
    table = table.drop(columns="failures")
    lower, upper = exact_interval(table["right"].to_numpy(), np.full(len(table), runs), 1 - CONFIDENCE)
    table.insert(3, "right_lower", lower)
    table.insert(4, "right_upper", upper)
    n_arms = grid[0].problem.n_arms
    return OperatingCharacteristics(algorithm, n_arms, runs, table, algorithm.most_pulls(n_arms, known))


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table in words."""
    interval = [
        f"{low:.2%} to {high:.2%}"
        for low, high in zip(table["right_lower"], table["right_upper"], strict=True)
    ]
    return pd.DataFrame(
        {
            "truth": table["truth"],
            "best": table["best"].map("{:g}".format),
            "right": table["right"].map("{:.2%}".format),
            f"{CONFIDENCE:.0%} interval": interval,
            "pulls": table["pulls"].map("{:,.0f}".format),
            f"{MOST_OF:.0%} within": table["pulls_90"].map("{:,}".format),
            "rounds": table["rounds"].map("{:.1f}".format),
            f"{MOST_OF:.0%} in": table["rounds_90"],
        }
    )


def default_truths(algorithm: Algorithm, n_arms: int, rewards: str, scale: Scale = UNIT) -> list[Truth]:
    """The usual grid for k of n arms: all tie; the others are worse by ε/2, ε, 2ε, … ½; one rival at ε.

    The best mean is 0.1, 0.5 and 0.9 for rewards in [0, 1], as far as there is room below it; for others 0.5,
    as only differences matter. The best come last: whoever breaks ties by the arms' order breaks them
    against the best. A control is never among them, unless all tie.
    """
    epsilon, k, control = algorithm.epsilon, algorithm.k, algorithm.control
    check_places(k, whole("n_arms", n_arms, 2))
    truths = []
    for best in LEVELS if rewards in IN_UNIT else (FAR,):
        for name, gaps in _shapes(epsilon, n_arms - k, min(best, FAR), scale.width).items():
            means = best - np.concatenate([gaps, np.zeros(k)])
            if control is not None and control >= n_arms - k:
                means[[control, n_arms - k - 1]] = means[[n_arms - k - 1, control]]
            problem = problem_of(means, rewards, algorithm.sigma)
            truths.append(Truth(name, scale.outside(best), problem))
    return truths


def _shapes(epsilon: float, others: int, far: float, width: float) -> dict[str, FloatArray]:
    """By their names the gaps of all arms but the best, none beyond `far`; `width` is that of the scale."""
    doubled = epsilon * 2.0 ** np.arange(-1, DOUBLINGS)
    near, *larger = doubled[doubled < far] if epsilon / 2 < far else [far]
    shapes = {"all tie": np.zeros(others)}
    if others > 1 and epsilon < far:
        shapes[f"one {epsilon * width:.3g} worse, rest far"] = np.append(np.full(others - 1, far), epsilon)
    for gap in [near, *larger[:1], *larger[1:][2 - MOST_GAPS :], far]:
        shapes[f"others {gap * width:.3g} worse"] = np.full(others, gap)
    return shapes
