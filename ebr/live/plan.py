"""Planning an experiment before its first pull: which race, what it costs, what one more round buys.

The races that are proved and permit what is asked are simulated on truths: what the arms' means might be.
"""

import html
import math
import os
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from ebr.algorithms.game import Algorithm, Known, check_places
from ebr.arrays import BoolArray, FloatArray
from ebr.live.plots import draw_plan
from ebr.live.report import rounded_up
from ebr.live.terms import ALGORITHMS, UNIT, USUAL, Brief, Scale, Support, Terms
from ebr.models import IN_UNIT
from ebr.simulation.simulate import Simulation, simulate
from ebr.theory.intervals import exact_interval
from ebr.theory.problems import Bernoulli, Gaussian, Problem
from ebr.theory.selection import bechhofer_count
from ebr.validation import numbers, one_of, rounds, several, shown, true_or_false, whole

if TYPE_CHECKING:  # slow to import, and a plan in a terminal needs neither
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ebr.live.race import Race

COMPARED = ("sharp", "pausing", "staked", "certified")  # the races that a plan chooses from
MOST_COMPARED = 20_000  # arms; with more of them only sharp EBR is simulated in seconds
MOST_DESIGNED = 2_000  # rewards of an arm × rounds: a certified race is designed in seconds
DELTA = 0.05  # default, if it is neither given nor sought
RUNS = 200  # simulated experiments behind a mean
WORK = 150_000  # arms × rounds × experiments at most, so that a plan takes seconds
FEWEST = 2  # experiments, enough for a standard error
WIDTH = 96  # of a line of text
MOST_OF = 0.9  # quantile of the pulls
CONFIDENCE = 0.99  # of the interval for the probability of a failure
LEVEL = 0.75  # of the best arm in the usual truths, as a fraction of the scale
FAR = 0.5  # the largest gap, as a fraction of the scale
PILOT = 0.95  # how surely a σ estimated from a pilot is large enough, if rewards are normal
MORE_ROUNDS = 3  # how far beyond the deadline to look
EVERY = 20  # each deadline up to here is looked at, and a few beyond
LARGEST = 0.999  # ε or δ that a budget may buy
DECADES = 9  # of ε or δ below 1 that are searched
MOST_BUDGET = 10**12  # so that all counts in the search are exact
# Headings of the rounds' table: for races that drop arms, and for races in which arms pause.
WORDS = {
    "pulls": "pulls of each survivor",
    "so_far": "each so far",
    "worst_case": "all arms so far, none dropped",
    "gone": "dropped if this much worse",
}
PAUSING_WORDS = {
    "pulls": "pulls of the leader",
    "so_far": "leader so far",
    "worst_case": "all arms so far, at most",
}
Maker = Callable[..., Algorithm]  # makes a race, with other rules if some are passed
Means = Problem | Sequence[float] | FloatArray


class Truth(NamedTuple):
    """What the arms' means might be: name, best mean in the rewards' units, and problem as simulated."""

    name: str
    best: float
    problem: Problem


class Candidate(NamedTuple):
    """A race that permits what is asked: its terms, how to make it with other rules, and its truths."""

    terms: Terms
    make: Maker
    truths: list[Truth]


@dataclass(frozen=True)
class Plan:
    """What `plan` returns: print it; `start` runs it.

    Attributes
    ----------
    found
        The races that permit what is asked, by name.
    recommended, terms
        The recommended race, "sharp" for instance, and its terms; a control is the last arm.
    races
        A row for each race and truth: the mean `pulls` of all arms in simulated experiments and its standard
        `error`; `pulls_90`, which 90 % of them did not exceed; the mean `rounds`; how many experiments were
        `failures`, with an exact 99 % interval for the probability of one (`failing_lower`,
        `failing_upper`); and `at_most`, the most pulls that there can be if no reward is missing, proved.
        Simulated when it is asked for.
    costs
        A row a race: `cost`, its pulls relative to those of the cheapest race, the mean over the truths;
        `at_most` on any truth; `failures`. The recommended race comes first.
    rounds
        A row a round of the recommended race: the pulls of each survivor in it (`pulls`) and all told
        (`so_far`), of all arms all told if none is dropped (`worst_case`), and the gap from which on arms are
        gone after it (`gone`), of sharp EBR. Where arms pause: the leader's pulls, which no arm exceeds. None
        if the race decides from round to round how often to pull.
    deadlines, errors
        The recommended race's mean pulls on each truth (and the worst case) if there were 1, 2, … rounds, of
        more than 20 a few; and the standard errors. Simulated when they are asked for.
    runs
        How many simulated experiments the means are of: 200, fewer on many arms or in many rounds.
    budget, bought
        The budget, if one was given, and which of "epsilon" and "delta" was sought for it, if any.
    assumed
        What is taken from a pilot, in a sentence.
    """

    found: dict[str, Candidate] = field(repr=False)
    runs: int = RUNS
    budget: int | None = None
    bought: str | None = None
    assumed: str = ""

    @cached_property
    def races(self) -> pd.DataFrame:
        """Simulate every race on every truth; there is a progress bar on a terminal if it takes long."""
        return _simulated(self.found, self.runs)

    @cached_property
    def costs(self) -> pd.DataFrame:
        """The races compared, the recommended one first."""
        costs = _summary(self.found, self.races, self.bought)
        return costs.loc[_order(costs, self.budget, self.bought)]

    @property
    def recommended(self) -> str:
        """The race that costs least; nothing is simulated where there is one alone."""
        return str(next(iter(self.found)) if len(self.found) == 1 else self.costs.index[0])

    @property
    def why(self) -> str:
        """Which race is recommended, and why, in a line."""
        name = f"{self.recommended} ({ALGORITHMS[type(self.algorithm).__name__]})"
        if len(self.found) == 1:
            return f"Race: {name}, the only race that was asked for or that permits what was asked."
        compared = ", ".join(f"{race} {cost:.2f}" for race, cost in self.costs["cost"].items())
        return (
            f"Race: {name}, recommended by plan. Simulated pulls relative to the cheapest race: {compared}."
        )

    @property
    def terms(self) -> Terms:
        """What the recommended race would be begun with."""
        return self.found[self.recommended].terms

    @property
    def truths(self) -> list[Truth]:
        """What the arms' means might be."""
        return self.found[self.recommended].truths

    @property
    def rounds(self) -> pd.DataFrame | None:
        """The recommended race's pulls round by round."""
        return _rounds(self.terms)

    @property
    def algorithm(self) -> Any:
        """The recommended race; its ε, σ and margin are fractions of the scale."""
        return self.terms.algorithm

    @property
    def n_arms(self) -> int:
        """How many arms."""
        return len(self.terms.arms)

    def start(
        self, journal: str | os.PathLike[str], arms: Sequence[str] | None = None, control: str | None = None
    ) -> "Race":
        """Begin the race that was planned, or go on with it.

        The arms are those of the pilot, or "arm 1", …, if left out; a control is the last, or the one named.
        """
        from ebr.live.race import Race

        terms = self.terms
        return Race.begin(terms.renamed(terms.arms if arms is None else arms, control), journal)

    @cached_property
    def _by_deadline(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """`deadlines` and `errors`; there is a progress bar on a terminal if it takes long."""
        rows, errors, n_arms = {}, {}, self.n_arms
        for deadline in _bar(_deadlines(self.algorithm), "deadline"):
            make = self.found[self.recommended].make
            race = make(deadline=deadline, epsilon=self.algorithm.epsilon, delta=self.algorithm.delta)
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
        notes, explained = (
            "".join(f"<p>{html.escape(line)}</p>" for line in f()) for f in (self._notes, self._explained)
        )
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
        notes += wrap(self.assumed, WIDTH)
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
        if len(self.found) == 1:
            tables["Truth by truth"] = _by_truth(self.races.droplevel("race"))
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
            f"Means ± standard errors of {self.runs:,} simulated experiments on each truth; their failures.",
            "At most: on any truth, if no reward is missing; proved, not simulated.",
            "Relative cost: pulls over those of the cheapest race, the mean over the truths.",
        ]
        squared = [race for race, each in self.found.items() if each.terms.squares]
        if squared and self.terms.support:
            ends = "{:g} or {:g}".format(*self.terms.support)
            means += [
                f"Simulated rewards are {ends}. If yours lie in between, {squared[0]} may need far",
                "fewer pulls: tell it single rewards, not counts and sums.",
            ]
        if "certified" in self.found and self.terms.rewards == "Bernoulli":  # which refutes but a few shifts
            means += [
                "Stopped early, certified may guarantee nothing; sharp says then how far from the best."
            ]
        return [*means, usual] if "spread" in self.races.index.unique("truth") else means


def plan(
    n_arms: int | None = None,
    deadline: int | None = None,
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
    pilot: "Mapping[str, Sequence[float]] | pd.DataFrame | None" = None,
    runs: int | None = None,
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
        "sharp", "pausing", "staked", "certified" or "ebr" (Algorithm 1), if it is to be this one, which is
        then shown truth by truth, with failures and their intervals; otherwise those that are made
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
    pilot
        Rewards of earlier trials, by arm: a dict, a table with a column for each arm, or one with the columns
        arm and reward. It says how many arms there are, and their means are one more truth. If nothing is
        said of the rewards and all of them are 0 or 1, they are taken to be "Bernoulli". If neither these nor
        a support nor σ is known, σ is *estimated*: the largest of the arms' 95 % upper limits, for normal
        rewards, of the standard deviation. That is an assumption: no guarantee covers a σ that is larger. The
        pilot's rewards do not count in the race.
    runs
        How many experiments are simulated on each truth.

    Notes
    -----
    *Recommended* is the race with the least mean relative cost: on each truth its mean pulls over those of
    the cheapest race there, and the mean of that over the truths. Where a budget is given, races that keep
    to it come first; where ε or δ is sought, the race which buys the smallest. Means are of 200 simulated
    experiments, or of fewer if there are many arms and rounds: look at their standard errors. Rewards in the
    support are simulated by coins, the noisiest of them, others by normal ones with σ.

    Of sharp EBR what is dropped and "at most" on a truth hold together with probability 1 − δ, by its
    theorem; all other bounds with probability 1. Missing rewards that are asked for again are not counted.

    *A budget B.* What is bought is an ε (or δ) of three digits with which the most pulls that there can be
    keep to B, while with the next smaller one they do not; at the least it is 10⁻⁹.
    """
    tried, assumed = None if pilot is None else _piloted(pilot, n_arms), ""
    if tried is not None:
        rewards, sigma, assumed = _known_of(tried, rewards, sigma, support)
    names = tried or [f"arm {number}" for number in range(1, several("n_arms", n_arms) + 1)]
    n_arms = len(names)
    check_places(k, n_arms)
    if budget is None and epsilon is None:
        raise ValueError(
            "epsilon must be a number above 0, in the rewards' units, or a budget be given, got None"
        )
    bought = None if budget is None else "epsilon" if epsilon is None else "delta" if delta is None else None
    known, place = (sigma, rewards, support, lower_is_better), None
    if true_or_false("control", control):  # whose name comes when the race is started
        place = n_arms - 1
    level = DELTA if delta is None else delta
    brief = Brief(rounds("deadline", deadline), epsilon, level, *known, k, blocks, missing, place, margin)
    kinds = _compared(brief, n_arms, bought)
    if algorithm is not None:
        kinds = [one_of("algorithm", algorithm, (*COMPARED, "ebr"))]
    found, refused = {}, []
    for kind in kinds:
        try:
            found[kind] = _candidate(brief, kind, list(names), budget, bought, truths)
        except ValueError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    if tried is not None and truths is None:
        for candidate in found.values():
            means = {"pilot": [float(rewards.mean()) for rewards in tried.values()]}
            candidate.truths.extend(_truths_of(candidate.terms, means))
    many = _runs_for(n_arms, brief.deadline) if runs is None else whole("runs", runs, FEWEST)
    return Plan(found, many, budget, bought, assumed)


def _piloted(pilot: Any, n_arms: int | None) -> dict[str, FloatArray]:
    """The rewards of each arm of a pilot, two or more; raise ValueError if they are none."""
    if isinstance(pilot, pd.DataFrame) and {"arm", "reward"} <= set(pilot.columns):
        pilot = {arm: rows.to_numpy() for arm, rows in pilot.groupby("arm", sort=False)["reward"]}
    elif isinstance(pilot, pd.DataFrame):
        pilot = {arm: column.dropna().to_numpy() for arm, column in pilot.items()}
    if not isinstance(pilot, Mapping) or len(pilot) < 2:
        raise ValueError(f"pilot must be a table or dict of the rewards of 2 arms or more, got {pilot!r:.60}")
    if n_arms not in (None, len(pilot)):
        raise ValueError(f"n_arms must be left out, or {len(pilot)} as in the pilot, got {n_arms!r}")
    if sums := [arm for arm, rewards in pilot.items() if isinstance(rewards, tuple)]:
        raise ValueError(f"pilot of {sums[0]!r} must be a list of single rewards, got {pilot[sums[0]]!r:.40}")
    return {str(arm): numbers(f"pilot of {arm!r}", rewards, 2) for arm, rewards in pilot.items()}


def _known_of(
    tried: dict[str, FloatArray], rewards: Known, sigma: float | None, support: Support
) -> tuple[Known, float | None, str]:
    """What a pilot adds to what is known of the rewards: kind, σ, and a sentence that says so."""
    low, high = support if isinstance(support, tuple | list) else (-math.inf, math.inf)
    if rewards in IN_UNIT and support == USUAL:
        low, high = 0.0, 1.0
    for arm, values in tried.items():
        outside = values[~(np.isfinite(values) & (low <= values) & (values <= high))]
        if len(outside):
            within = "finite numbers" if math.isinf(high) else f"numbers in the support, [{low:g}, {high:g}]"
            raise ValueError(f"pilot of {arm!r} must be {within}, got {outside[0]:g}")
    open_ = rewards is None and (support == USUAL or (low, high) == (0, 1))
    if open_ and all(np.isin(values, (0, 1)).all() for values in tried.values()):
        return "Bernoulli", sigma, "that they are 0 or 1 is taken from the pilot"
    if rewards in IN_UNIT or not math.isinf(high):
        return rewards, sigma, ""
    if sigma is not None:
        return rewards or "sub-Gaussian", sigma, ""
    from scipy.special import chdtri

    limits = {
        arm: values.std(ddof=1) * math.sqrt((len(values) - 1) / chdtri(len(values) - 1, PILOT))
        for arm, values in tried.items()
    }
    arm = max(limits, key=lambda each: limits[each])
    if not limits[arm]:
        raise ValueError("sigma must be given, or a support: all rewards of each arm of the pilot are equal")
    sigma = float(rounded_up(limits[arm]))
    said = (
        f"sigma = {sigma:g} is estimated from the pilot: {PILOT:.0%} upper limit for {arm}, {len(tried[arm])}"
        " rewards, if normal. It is an assumption: if sigma is larger, nothing is guaranteed."
    )
    return rewards or "sub-Gaussian", sigma, said


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


def _candidate(
    brief: Brief, kind: str, names: Sequence[str], budget: int | None, bought: str | None, truths: Any
) -> Candidate:
    """Make a race, with what a budget buys; raise ValueError if it does not permit what is asked."""
    if kind == "certified" and bought is not None:
        raise ValueError(f"{bought} must be given for algorithm 'certified', which takes seconds to make")
    n_arms, rules = len(names), {}
    make = brief.maker(kind, n_arms)
    if budget is not None:
        _check_budget(budget, n_arms, brief.deadline)
    if budget is not None and bought is not None:
        # Without the margin, which ε may exceed during the search.
        bare = replace(brief, control=None, margin=None).maker(kind, n_arms)
        rules = {bought: _affordable(bare, bought, n_arms, budget, brief.told)}
    race = make(**rules)
    _most(race, n_arms, brief.told)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning comes when the race is started
        terms = brief.agreed(race, names)
    if truths is None:
        return Candidate(terms, make, usual_truths(n_arms, race, race.model(terms.rewards)))
    return Candidate(terms, make, _truths_of(terms, truths))


def _truths_of(terms: Terms, truths: Mapping[str, Means] | Sequence[Means]) -> list[Truth]:
    known = terms.algorithm.model(terms.rewards)
    return named_truths(truths, known, terms.algorithm.sigma, len(terms.arms), terms.scale)


def _simulated(found: dict[str, Candidate], runs: int) -> pd.DataFrame:
    """The rows of `Plan.races`."""
    rows = {}
    cells = [(kind, truth) for kind, each in found.items() for truth in each.truths]
    for kind, truth in _bar(cells, "simulation"):
        race = found[kind].terms.algorithm
        known = race.model(found[kind].terms.rewards)
        at_most = {"at_most": _most(race, truth.problem.n_arms, known)}
        rows[kind, truth.name] = row_of(race.assuming(known), truth, runs) | at_most
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["race", "truth"])
    lower, upper = exact_interval(
        frame["failures"].to_numpy() / runs, np.full(len(frame), runs), 1 - CONFIDENCE
    )
    frame = frame.assign(failing_lower=lower, failing_upper=upper)
    kept = ["pulls", "error", "pulls_90", "rounds", "failures", "failing_lower", "failing_upper", "at_most"]
    return frame[kept]


def _by_truth(rows: pd.DataFrame) -> pd.DataFrame:
    """One race on each truth, in words."""
    ends = zip(rows["failing_lower"], rows["failing_upper"], strict=True)
    return pd.DataFrame(
        {
            "truth": rows.index,
            f"{MOST_OF:.0%} of them within": rows["pulls_90"].map("{:,}".format).to_numpy(),
            "rounds": rows["rounds"].map("{:.1f}".format).to_numpy(),
            "failures": rows["failures"].to_numpy(),
            f"P(failure), {CONFIDENCE:.0%}": [f"{low:.2%} to {high:.2%}" for low, high in ends],
        }
    )


def relative_cost(races: pd.DataFrame) -> "pd.Series[float]":
    """Pulls of each race relative to the cheapest race on each truth, averaged over the truths."""
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
    """The races, best first: within the budget, then buying more, then costing less."""
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
    assert most is not None  # known for every race that a plan chooses from
    return most


def _check_budget(budget: int, n_arms: int, deadline: int) -> None:
    """Raise ValueError unless the budget allows a pull of every arm in every round."""
    if not whole("budget", budget, 1) <= MOST_BUDGET:
        raise ValueError(f"budget must be at most {MOST_BUDGET}, got {shown(budget)}")
    if budget < n_arms * deadline:
        rounds = f"{deadline} rounds" if deadline > 1 else "one round"
        raise ValueError(
            f"budget must be at least {n_arms * deadline} for {rounds} on {n_arms} arms, got {budget}"
        )


def _affordable(make: Maker, bought: str, n_arms: int, budget: int, told: str) -> float:
    """The smallest ε (or δ) of three digits with which the race costs no more than the budget.

    The value returned fits, and the next smaller one does not, even if the cost is not monotone.
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
    """How many experiments are simulated: fewer with many arms, as their totals vary less."""
    return max(FEWEST, min(RUNS, WORK // (n_arms * deadline)))


def _bar(work: Sequence[Any], unit: str) -> "tqdm[Any]":
    """A progress bar, shown only on a terminal and after a second."""
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


def usual_truths(n_arms: int, race: Algorithm, known: str) -> list[Truth]:
    """The default truths of a plan."""
    hard, others = min(2 * race.epsilon, FAR), n_arms - race.k
    gaps = {"hard": np.full(others, hard), "spread": np.linspace(hard, FAR, others)}
    gaps |= {"easy": np.full(others, FAR), "alike": np.zeros(others)}
    means = {name: LEVEL - np.append(np.zeros(race.k), gap) for name, gap in gaps.items()}
    return named_truths(means, known, race.sigma)


def named_truths(
    truths: Mapping[str, Means] | Sequence[Means],
    rewards: str,
    sigma: float,
    n_arms: int | None = None,
    scale: Scale = UNIT,
) -> list[Truth]:
    """Check truths, by name or in a list: means in the rewards' units, or problems, of equally many arms."""
    must = "truths must be one or more lists of means"
    if isinstance(truths, str) or not isinstance(truths, Iterable):
        raise ValueError(f"{must}, got {shown(truths)}")
    if isinstance(truths, Mapping):
        named = list(truths.items())
    else:
        named = [(_spelled(each), each) for each in truths]
        if len(dict(named)) < len(named):  # some print alike
            named = [(_spelled(each, exactly=True), each) for each in truths]
    made = []
    for name, means in named:
        try:
            problem = means if isinstance(means, Problem) else problem_of(means, rewards, sigma, scale)
        except (TypeError, ValueError) as error:
            raise ValueError(f"truth {name!r}: {error}") from None
        if n_arms not in (None, problem.n_arms):
            raise ValueError(
                f"truth {name!r} must have a mean for each of {n_arms} arms, got {problem.n_arms}"
            )
        n_arms = problem.n_arms
        made.append(Truth(str(name), scale.outside(float(problem.means.max())), problem))
    if not made:
        raise ValueError(f"{must}, got none")
    return made


def problem_of(
    means: Sequence[float] | FloatArray, rewards: str, sigma: float, scale: Scale = UNIT
) -> Problem:
    """Coins for rewards in a support, as these have the largest variance; else normal rewards with σ.

    Without a support only differences matter: gaps are kept, up to the scale, 2σ.
    """
    values = (numbers("means", means, 2) - scale.worst) / (scale.best - scale.worst)
    if rewards in IN_UNIT:
        if scale != UNIT and (out := (values < 0) | (values > 1)).any():
            ends = f"[{min(scale.worst, scale.best):g}, {max(scale.worst, scale.best):g}]"
            raise ValueError(f"means must lie in {ends}, got {np.asarray(means)[out][0]:g}")
        return Bernoulli(values)
    within = values.min() >= 0 and values.max() <= 1
    return Gaussian(values if within else np.maximum(values - values.max() + 1, 0), sigma)


def _spelled(means: Means, exactly: bool = False) -> str:
    values = means.means.tolist() if isinstance(means, Problem) else np.ravel(means).tolist()
    short = not exactly
    return ", ".join(f"{it:g}" if short and isinstance(it, float | int) else repr(it) for it in values)


def row_of(race: Algorithm, truth: Truth, runs: int) -> dict[str, Any]:
    """Results of simulated experiments on a truth."""
    result = simulate(race, truth.problem, runs, seed=0)
    pulls = result.pulls
    return {
        "pulls": float(pulls.mean()),
        "error": float(pulls.std(ddof=1) / np.sqrt(runs)),
        "pulls_90": int(np.quantile(pulls, MOST_OF, method="inverted_cdf")),
        "rounds": float(result.rounds.mean()),
        "failures": int((~is_right(race, result)).sum()),
    }


def is_right(algorithm: Algorithm, result: Simulation) -> BoolArray:
    """Which choices are right: ε-optimal arms, and a control that no arm beats by the margin."""
    # An arm that is worse by exactly ε is wrong, however a difference such as 0.6 − 0.4 is rounded.
    right = result.correct(algorithm.epsilon * (1 - 1e-9))
    if algorithm.control is not None and algorithm.margin is not None:
        enough = result.problem.is_good(result.arm, algorithm.margin * (1 - 1e-9))
        right |= (result.arm == algorithm.control) & enough
    return right
