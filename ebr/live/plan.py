"""Planning an experiment before its first pull: which race, what it costs, what one more round buys.

The proved races that permit what is asked are simulated on truths, which are what the arms' means might be;
what a budget of pulls buys is searched for.
"""

import os
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from ebr.algorithms.game import Algorithm, Known, check_places
from ebr.live.plots import draw_plan
from ebr.live.terms import ALGORITHMS, USUAL, Brief, Support, Terms
from ebr.live.truths import FAR, Means, Truth, named_truths, row_of, usual_truths
from ebr.theory.bounds import sharp_upper_bound
from ebr.theory.problems import Problem
from ebr.theory.selection import bechhofer_count
from ebr.validation import one_of, several, shown, whole

if TYPE_CHECKING:  # slow to import, and a plan in a terminal needs neither
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ebr.live.race import Race

COMPARED = ("sharp", "pausing", "staked", "certified")  # the races that a plan chooses from
MOST_COMPARED = 20_000  # arms; on more of them sharp EBR alone is simulated in seconds
MOST_DESIGNED = 2_000  # rewards of an arm × rounds for which a certified race is designed in seconds
DELTA = 0.05  # where it is neither given nor sought
RUNS = 200  # simulated experiments behind a mean
WORK = 150_000  # arms × rounds × experiments at most, lest a plan take minutes
FEWEST = 2  # experiments all the same, or there is no standard error
MORE_ROUNDS = 3  # how far beyond the deadline to look
EVERY = 20  # deadlines up to which each is looked at; beyond, a few between this and the plan's own
LARGEST = 0.999  # ε or δ that a budget may buy
DECADES = 9  # of ε or δ below 1 among which is sought what a budget buys
MOST_BUDGET = 10**12  # all counts that a search comes to are exact
# The columns of the rounds' table as they are shown: where arms are dropped, and where they pause.
WORDS = {
    "pulls": "pulls of each survivor",
    "so_far": "each so far",
    "worst_case": "all arms so far, none dropped",
    "gone": "gap surely gone",
}
PAUSING_WORDS = {
    "pulls": "pulls of the leader",
    "so_far": "leader so far",
    "worst_case": "all arms so far, at most",
}
Maker = Callable[..., Algorithm]  # makes a race, with other rules if some are passed


@dataclass(frozen=True)
class Plan:
    """What `plan` returns: print it; `start` runs it.

    Attributes
    ----------
    terms
        What the recommended race would be begun with; its arms have no names yet, and a control is the last.
    recommended
        The recommended race: "sharp", "pausing", "staked" or "certified".
    races
        A row for each race and truth: the mean `pulls` of all arms in simulated experiments and its standard
        `error`; `at_most`, the most pulls that there can be if no reward is missing, proved (of sharp EBR on
        this truth, with probability 1 − δ); and how many experiments were `failures`.
    costs
        A row a race: `cost`, its pulls relative to those of the cheapest race, the mean over the truths;
        `at_most` on any truth; `failures`. The recommended race comes first.
    rounds
        A row a round of the recommended race: the pulls of each survivor in it (`pulls`) and all told
        (`so_far`), of all arms all told if none is dropped (`worst_case`), and the gap from which on arms are
        gone after it (`gone`), of sharp EBR. Where arms pause: the leader's pulls, which no arm exceeds. None
        if the race decides from round to round how often to pull.
    truths, make
        The truths; and how to make the recommended race with other rules.
    deadlines, errors
        The recommended race's mean pulls on each truth (and the worst case) if there were 1, 2, … rounds, of
        more than 20 a few; and the standard errors. Simulated when they are asked for.
    runs
        How many simulated experiments the means are of: 200, fewer on many arms or in many rounds.
    budget, bought
        The budget, if one was given, and which of "epsilon" and "delta" was sought for it, if any.
    """

    terms: Terms = field(repr=False)
    recommended: str
    races: pd.DataFrame = field(repr=False)
    costs: pd.DataFrame = field(repr=False)
    rounds: pd.DataFrame | None = field(repr=False)
    truths: list[Truth] = field(repr=False)
    make: Maker = field(repr=False)
    runs: int = RUNS
    budget: int | None = None
    bought: str | None = None

    @property
    def algorithm(self) -> Any:
        """The recommended race; its ε, σ and margin are parts of the scale."""
        return self.terms.algorithm

    @property
    def n_arms(self) -> int:
        """How many arms."""
        return len(self.terms.arms)

    def start(
        self, journal: str | os.PathLike[str], arms: Sequence[str], control: str | None = None
    ) -> "Race":
        """Begin the race that was planned, or go on with it; a control is the last arm, or the one named."""
        from ebr.live.race import Race

        return Race.begin(self.terms.renamed(arms, control), journal)

    @cached_property
    def _by_deadline(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """`deadlines` and `errors`; there is a progress bar on a terminal if it takes long."""
        rows, errors, n_arms = {}, {}, self.n_arms
        for deadline in _bar(_deadlines(self.algorithm), "deadline"):
            race = self.make(deadline=deadline, epsilon=self.algorithm.epsilon, delta=self.algorithm.delta)
            raced = race.assuming(race.model(self.terms.rewards))
            found = {truth.name: row_of(raced, truth, self.runs) for truth in self.truths}
            rows[deadline] = {"worst case": float(_most(race, n_arms, self.terms.rewards))}
            rows[deadline] |= {name: row["pulls"] for name, row in found.items()}
            errors[deadline] = {"worst case": 0.0} | {name: row["error"] for name, row in found.items()}
        means, standard = (pd.DataFrame.from_dict(table, orient="index") for table in (rows, errors))
        return means.rename_axis("rounds"), standard.rename_axis("rounds")

    @property
    def deadlines(self) -> pd.DataFrame:
        """What one more round buys."""
        return self._by_deadline[0]

    @property
    def errors(self) -> pd.DataFrame:
        """The standard errors of `deadlines`."""
        return self._by_deadline[1]

    def plot(self, axis: "Axes | None" = None) -> "Figure":
        """What does one more round buy? Mean pulls ± one standard error along the number of rounds."""
        return draw_plan(self.deadlines, self.algorithm.deadline, axis, self.errors)

    def __str__(self) -> str:
        tables = (f"{title}\n{table.to_string(index=False)}" for title, table in self._tables().items())
        return "\n\n".join(["\n".join(self._notes()), *tables, "\n".join(self._explained())])

    def _repr_html_(self) -> str:
        notes, explained = ("".join(f"<p>{line}</p>" for line in f()) for f in (self._notes, self._explained))
        return notes + "".join(table.to_html(index=False) for table in self._tables().values()) + explained

    def _notes(self) -> list[str]:
        """What is planned and recommended."""
        a, width = self.algorithm, self.terms.scale.width
        found, best = ("an arm", "the best") if a.k == 1 else (f"{a.k} arms", "the k-th best")
        surely = f"1 - {a.delta:g}" if self.bought == "delta" else f"{1 - a.delta:g}"
        within = f"{width * a.epsilon:g} of {best} with probability {surely}"
        notes = [f"{self.n_arms} arms, at most {a.deadline} rounds, {found} within {within}"]
        notes += [] if self.budget is None else [self._verdict()]
        low, high = self.terms.support or (0.0, 0.0)
        rewards = {
            "Bernoulli": "0 or 1",
            "bounded": f"between {low:g} and {high:g}",
            "Gaussian": f"normal with sigma = {width * a.sigma:g}",
            "sub-Gaussian": f"{width * a.sigma:g}-sub-Gaussian",
        }[a.model(self.terms.rewards)]
        less = ", the smaller the better" if self.terms.scale.worst > self.terms.scale.best else ""
        notes.append(f"rewards are {rewards}{less}")
        if a.margin is not None:
            notes.append(f"ends early if no arm can be better than the control by {width * a.margin:g}")
        return [*notes, f"recommended: {self.recommended}, {ALGORITHMS[type(a).__name__]}"]

    def _verdict(self) -> str:
        """What the budget buys, or whether it is enough."""
        most, given = int(self.costs["at_most"].iloc[0]), f"{self.budget:,} pulls"
        levels = {"epsilon": self.terms.scale.width * self.algorithm.epsilon, "delta": self.algorithm.delta}
        if self.bought is not None:
            value, (held,) = levels.pop(self.bought), levels
            return f"{given} buy {self.bought} = {value:g} at {held} = {levels[held]:g}: at most {most:,}"
        enough = self.budget is not None and most <= self.budget
        are = "are enough, if no reward is missing" if enough else "may not be enough"
        return f"{given} {are}: at most {most:,}"

    def _tables(self) -> dict[str, pd.DataFrame]:
        """The tables in words, by their titles."""
        columns = {"truth": [*self.races.index.unique("truth"), *self.costs]}
        for race, summary in self.costs.iterrows():
            rows = self.races.loc[[str(race)]]
            cells = [f"{mean:,.0f} ± {error:,.0f}" for mean, error in rows[["pulls", "error"]].to_numpy()]
            cost = {"cost": f"{summary['cost']:.2f}"}
            columns[str(race)] = [*cells, *(summary.map(_number).to_dict() | cost).values()]
        words = {"cost": "relative cost", "at_most": "at most"}
        compared = pd.DataFrame(columns).replace({"truth": words})
        tables = {"Pulls of all arms on average, by race and truth": compared}
        if self.rounds is not None:
            shown = self.rounds.map(_number).rename(
                columns=PAUSING_WORDS if self.algorithm.resumes else WORDS
            )
            tables[f"Round by round: {self.recommended}"] = shown.reset_index()
        return tables

    def _explained(self) -> list[str]:
        """What the numbers are."""
        width, hard = self.terms.scale.width, min(2 * self.algorithm.epsilon, FAR)
        usual = f"hard: the others are {hard * width:.3g} worse; easy: {FAR * width:.3g}; spread: in between."
        means = [
            f"Means ± standard errors of {self.runs} simulated experiments on each truth; their failures.",
            "At most: on any truth, if no reward is missing; proved, not simulated.",
            "Relative cost: pulls over those of the cheapest race, the mean over the truths.",
        ]
        return [*means, usual] if "spread" in self.races.index.unique("truth") else means


def plan(
    n_arms: int,
    deadline: int,
    epsilon: float | None = None,
    delta: float | None = None,
    sigma: float | None = None,
    rewards: str | None = None,
    algorithm: str | None = None,
    k: int = 1,
    budget: int | None = None,
    support: Support = USUAL,
    control: bool = False,
    margin: float | None = None,
    lower_is_better: bool = False,
    blocks: bool = False,
    missing: bool = False,
    truths: Mapping[str, Means] | Sequence[Means] | None = None,
) -> Plan:
    """Plan an experiment: compare the proved races that permit what is asked, and recommend one.

    Parameters
    ----------
    n_arms, deadline
        How many arms, and rounds at most.
    epsilon, delta
        The recommended arm is within ε of the best with probability at least 1 − δ. Without a budget ε is
        needed, and δ is 0.05 if left out.
    sigma, rewards, support
        What is known of the rewards. That each is 0 or 1: `rewards="Bernoulli"`. A range: `support=(0, 50)`;
        by default it is [0, 1]. A spread: `rewards="Gaussian"` (normal with standard deviation σ) or
        "sub-Gaussian", with σ; such rewards have no support, None. ε, σ and margin are in the rewards'
        units. σ is half the support's width if left out, and 0.5 without a support.
    algorithm
        "sharp", "pausing", "staked" or "certified", if it is to be this one; otherwise those that are made
        and simulated in seconds are compared: on more than 20,000 arms "sharp" alone, and "certified" where
        an arm needs few rewards.
    k
        How many arms to find, fewer than there are.
    budget
        How many pulls of all arms together there may be. If ε is left out, the plan is of the ε that so many
        buy (with δ = 0.05 if that is left out too); if δ alone is left out, of the δ. If both are given, it
        says whether the budget is enough.
    control, margin
        Whether one of the arms, the last, is a control: the race ends early when no arm can be better than
        it by the margin (ε if left out).
    lower_is_better
        Whether the smallest mean is the best.
    blocks, missing
        Whether the arms of a round share the same blocks; whether rewards may be missing, at random.
    truths
        What the arms' means might be, in the rewards' units: lists of n means, in a list or by their names.
        By default all others are worse than the k best, which tie, by 2ε but no more than half the scale
        ("hard"), by half the scale ("easy"), spread evenly from the one to the other, or not at all
        ("alike"). The scale is the support, or 2σ.

    Notes
    -----
    *Recommended* is the race with the least mean relative cost: on each truth its mean pulls over those of
    the cheapest race there, and the mean of that over the truths. Where a budget is given, races that keep
    to it come first; where ε or δ is sought, the race which buys the smallest. Means are of 200 simulated
    experiments, or of fewer if there are many arms and rounds: look at their standard errors. Rewards in the
    support are simulated by coins, the noisiest of them, others by normal ones with σ.

    Of sharp EBR "surely" and "at most" on a truth hold together with probability 1 − δ, by its theorem; all
    other bounds with probability 1. Rewards that are missing are asked for again; that is not counted.

    *A budget B.* What is bought is an ε (or δ) of three digits with which the most pulls that there can be
    keep to B, while with the next smaller one they do not; at the least it is 10⁻⁹.
    """
    n_arms = several("n_arms", n_arms)
    check_places(k, n_arms)
    if budget is None and epsilon is None:
        raise ValueError("epsilon must lie in (0, 1), or a budget be given, got None")
    bought = None if budget is None else "epsilon" if epsilon is None else "delta" if delta is None else None
    known, place = (sigma, rewards, support, lower_is_better), n_arms - 1 if control else None
    level = DELTA if delta is None else delta
    brief = Brief(deadline, epsilon, level, *known, k, blocks, missing, place, margin)
    kinds = _compared(brief, n_arms, bought)
    if algorithm is not None:
        kinds = [one_of("algorithm", algorithm, COMPARED)]
    found, refused = {}, []
    for kind in kinds:
        try:
            found[kind] = _candidate(brief, kind, n_arms, budget, bought, truths)
        except ValueError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    runs = _runs_for(n_arms, brief.deadline)
    races = _simulated(found, runs)
    costs = _summary(found, races, bought)
    first = _order(costs, budget, bought)
    terms, make, listed = found[first[0]]
    tables = races.loc[first], costs.loc[first], _rounds(terms)
    return Plan(terms, first[0], *tables, listed, make, runs, budget, bought)


def _compared(brief: Brief, n_arms: int, bought: str | None) -> Sequence[str]:
    """The races that can be compared in seconds."""
    if n_arms > MOST_COMPARED:
        return COMPARED[:1]
    other = brief.rewards not in ("Bernoulli", "Gaussian") or bought is not None
    other |= brief.k > 1 or brief.blocks  # which a certified race does not permit
    if brief.rewards == "Bernoulli" and brief.epsilon is not None and not other:
        last = bechhofer_count(n_arms, brief.epsilon / brief.scale.width, brief.delta, 0.5)
        other = last * brief.deadline > MOST_DESIGNED
    return [kind for kind in COMPARED if kind != "certified" or not other]


class Candidate(NamedTuple):
    """A race that permits what is asked: its terms, how to make it with other rules, and its truths."""

    terms: Terms
    make: Maker
    truths: list[Truth]


def _candidate(
    brief: Brief, kind: str, n_arms: int, budget: int | None, bought: str | None, truths: Any
) -> Candidate:
    """Make a race, with what a budget buys; raise ValueError if it does not permit what is asked."""
    if kind == "certified" and bought is not None:
        raise ValueError(f"{bought} must be given for algorithm 'certified', which takes seconds to make")
    make, rules = brief.maker(kind, n_arms), {}
    if budget is not None:
        _check_budget(budget, n_arms, brief.deadline)
    if budget is not None and bought is not None:
        # Whatever the margin, which ε may exceed before it is found.
        bare = replace(brief, control=None, margin=None).maker(kind, n_arms)
        rules = {bought: _affordable(bare, bought, n_arms, budget, brief.told)}
    race = make(**rules)
    _most(race, n_arms, brief.told)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever starts the race is warned
        terms = brief.agreed(race, [f"arm {number}" for number in range(1, n_arms + 1)])
    known = race.model(terms.rewards)
    if truths is None:
        return Candidate(terms, make, usual_truths(n_arms, race, known))
    return Candidate(terms, make, named_truths(truths, known, race.sigma, n_arms, terms.scale))


def _simulated(found: dict[str, Candidate], runs: int) -> pd.DataFrame:
    """The rows of `Plan.races`."""
    rows = {}
    cells = [(kind, truth) for kind, each in found.items() for truth in each.truths]
    for kind, truth in _bar(cells, "simulation"):
        race = found[kind].terms.algorithm
        known = race.model(found[kind].terms.rewards)
        at_most = {"at_most": _at_most(race, truth.problem, known)}
        rows[kind, truth.name] = row_of(race.assuming(known), truth, runs) | at_most
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["race", "truth"])
    return frame[["pulls", "error", "at_most", "failures"]]


def relative_cost(races: pd.DataFrame) -> "pd.Series[float]":
    """Of each race: its pulls over those of the cheapest race on each truth, the mean over the truths."""
    relative = races["pulls"] / races["pulls"].groupby("truth").transform("min")
    return relative.groupby("race").mean()


def _summary(found: dict[str, Candidate], races: pd.DataFrame, bought: str | None) -> pd.DataFrame:
    """The rows of `Plan.costs`, with what is bought, in the rewards' units."""
    terms = [each.terms for each in found.values()]
    most = {"at_most": [_most(each.algorithm, len(each.arms), each.rewards) for each in terms]}
    costs = pd.DataFrame(most, index=pd.Index(list(found), name="race"))
    costs = costs.assign(cost=relative_cost(races), failures=races["failures"].groupby("race").sum())
    if bought is not None:
        unit = terms[0].scale.width if bought == "epsilon" else 1.0
        costs[bought] = [unit * getattr(each.algorithm, bought) for each in terms]
    return costs


def _order(costs: pd.DataFrame, budget: int | None, bought: str | None) -> list[str]:
    """The races, the recommended one first: those that keep to the budget, that buy more, that cost less."""
    over = costs["at_most"] > (np.inf if budget is None else budget)
    keys = costs.assign(over=over).sort_values(["over", *([bought] if bought else []), "cost"], kind="stable")
    return [str(race) for race in keys.index]


def _rounds(terms: Terms) -> pd.DataFrame | None:
    """The rows of `Plan.rounds`."""
    race, n_arms = terms.algorithm, len(terms.arms)
    so_far = race.pulls_by_round(n_arms, terms.rewards)
    if so_far is None:
        return None
    columns = {"pulls": np.diff(so_far, prepend=0), "so_far": so_far, "worst_case": n_arms * so_far}
    rounds = pd.DataFrame(columns, index=pd.RangeIndex(1, len(so_far) + 1, name="round"))
    gone = race.gone(n_arms, terms.rewards)
    return rounds if gone is None else rounds.assign(gone=gone * terms.scale.width)


def _most(race: Algorithm, n_arms: int, told: Known) -> int:
    """The most pulls that there can be if no reward is missing."""
    most = race.most_pulls(n_arms, told)
    assert most is not None  # of every race that a plan chooses from
    return most


def _at_most(race: Algorithm, problem: Problem, known: str) -> int:
    """The most pulls on this truth: of sharp EBR by its theorem, else as on any other."""
    so_far, gone = race.pulls_by_round(problem.n_arms, known), race.gone(problem.n_arms, known)
    if so_far is None or gone is None:
        return _most(race, problem.n_arms, known)
    return int(sharp_upper_bound(problem, race.epsilon, gone / 2, so_far, race.k))


def _check_budget(budget: int, n_arms: int, deadline: int) -> None:
    """Raise ValueError unless the budget is a number of pulls that can feed every arm in every round."""
    if not whole("budget", budget, 1) <= MOST_BUDGET:
        raise ValueError(f"budget must be at most {MOST_BUDGET}, got {shown(budget)}")
    if budget < n_arms * deadline:
        rounds = f"{deadline} rounds" if deadline > 1 else "one round"
        raise ValueError(
            f"budget must be at least {n_arms * deadline} for {rounds} on {n_arms} arms, got {budget}"
        )


def _affordable(make: Maker, bought: str, n_arms: int, budget: int, told: str) -> float:
    """The smallest ε (or δ) of three digits with which the race costs no more than the budget.

    What is returned was seen to fit, and the next smaller value not to, be the cost monotone or not.
    """

    def most(value: float) -> int:
        return _most(make(**{bought: value}), n_arms, told)

    def fits(value: float) -> bool:
        return most(value) <= budget

    if (least := most(LARGEST)) > budget:
        raise ValueError(f"budget must be at least {least} for {bought} = {LARGEST}, got {budget}")
    decade = 1
    while decade < DECADES and fits(float(f"1e-{decade}")):
        decade += 1
    # The last is the decade before's first, which fits; or 1, for which LARGEST before it fits.
    values = [float(f"{digits}e-{decade + 2}") for digits in range(100, 1001)]
    return values[bisect_left(values, True, key=fits)]


def _runs_for(n_arms: int, deadline: int) -> int:
    """How many experiments are simulated: fewer on many arms, whose totals vary less."""
    return max(FEWEST, min(RUNS, WORK // (n_arms * deadline)))


def _bar(work: Sequence[Any], unit: str) -> "tqdm[Any]":
    """A progress bar, on a terminal alone, if it takes longer than a second."""
    return tqdm(work, "simulating", unit=unit, disable=None, delay=1, leave=False)


def _deadlines(algorithm: Any) -> list[int]:
    """1, 2, …, 20, then √2 times as many each time, then the deadline itself and the next three."""
    deadline = algorithm.deadline
    between = (round(EVERY * 2 ** (step / 2)) for step in range(1, 20))
    fewer = [t for t in (*range(1, EVERY + 1), *between) if t < deadline]
    return [*fewer, *range(deadline, min(deadline + MORE_ROUNDS, algorithm.most_rounds) + 1)]


def _number(value: float) -> str:
    """A count with thousands, a gap with three digits."""
    return f"{value:,.0f}" if value >= 10 or float(value).is_integer() else f"{value:.3g}"
