"""Planning an experiment before its first pull: which race, what it costs, what one more round buys."""

import html
import math
import os
import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import chdtri

from ebr.algorithms.game import Algorithm, Known, check_places
from ebr.arrays import FloatArray
from ebr.live.plots import draw_plan
from ebr.live.report import rounded_up
from ebr.live.terms import ALGORITHMS, USUAL, Brief, Support, Terms, checked_support
from ebr.models import IN_UNIT, RACES
from ebr.simulation.simulate import simulate
from ebr.theory.confidence import exact_interval
from ebr.theory.problems import Bernoulli, Gaussian, Problem
from ebr.theory.selection import bechhofer_count
from ebr.validation import MOST_TOTAL, numbers, one_of, require, rounds, several, shown, true_or_false, whole

if TYPE_CHECKING:  # slow to import, and a plan in a terminal needs neither
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ebr.live.race import Race

MOST_COMPARED = 20_000  # arms; with more of them only sharp EBR is simulated in seconds
MOST_DESIGNED = 6_000  # rewards of an arm × looks: a certified race is designed in about ten seconds
MOST_DESIGNED_ARMS = 100  # the same for arms
NORMAL = 300  # 0/1 rewards of an arm whose law takes as long as that of normal ones, however many
RUNS = 200  # simulated experiments behind a mean
WORK = 150_000  # arms × rounds × experiments at most, so that a plan takes seconds
LEVEL = 0.75  # of the best arm in the usual truths, as a fraction of the scale
FAR = 0.5  # the largest gap, as a fraction of the scale
PILOT = 0.95  # how surely a σ estimated from a pilot is large enough, if rewards are normal
Maker = Callable[..., Any]  # of a race, with other rules if some are passed
Expected = Callable[[float], dict[str, FloatArray]]  # the truths for an ε, by name


class Candidate(NamedTuple):
    """A race that permits what is asked: its terms, its maker, and its truths."""

    terms: Terms
    make: Maker
    truths: dict[str, Problem]


@dataclass(frozen=True)
class Plan:
    """What `plan` returns: print it; `start` runs it. Its tables are simulated when they are asked for."""

    found: dict[str, Candidate] = field(repr=False)  # the races that permit what is asked, by name
    runs: int = RUNS  # simulated experiments behind each mean
    budget: int | None = None
    bought: str | None = None  # "epsilon" or "delta", if it was sought for the budget
    assumed: str = ""  # what is taken from a pilot, in a sentence

    @cached_property
    def races(self) -> pd.DataFrame:
        """A row for each race and truth, from simulated experiments.

        The mean `pulls` of all arms and its standard `error`; `pulls_90`, which 90 % of experiments did not
        exceed; the mean `rounds`; how many were `failures`, and an exact 99 % interval for the probability of
        one (`failing_lower`, `failing_upper`).
        """
        found = self.found.items()
        tables = {kind: simulated(each, each.terms.algorithm, self.runs) for kind, each in found}
        return pd.concat(tables, names=["race"])

    @cached_property
    def costs(self) -> pd.DataFrame:
        """A row a race, the recommended one first.

        `at_most`, the most pulls that there can be if no reward is missing, proved; `cost`, its pulls
        relative to those of the cheapest race, the mean over the truths; `failures`; and what is bought.
        """
        pulls, terms = self.races["pulls"], [each.terms for each in self.found.values()]
        most = [each.algorithm.most_pulls(len(each.arms), each.rewards) for each in terms]
        costs = pd.DataFrame({"at_most": most}, index=pd.Index(list(self.found), name="race"))
        costs["cost"] = (pulls / pulls.groupby("truth").transform("min")).groupby("race").mean()
        costs["failures"] = self.races["failures"].groupby("race").sum()
        costs["over"], by = costs["at_most"] > (self.budget or math.inf), ["over", "cost"]
        if self.bought is not None:
            unit, by[1:] = terms[0].scale.width if self.bought == "epsilon" else 1.0, [self.bought, "cost"]
            costs[self.bought] = [unit * getattr(each.algorithm, self.bought) for each in terms]
        return costs.sort_values(by).drop(columns="over")

    @property
    def recommended(self) -> str:
        """The race that costs least, by name; nothing is simulated where there is one alone."""
        return str(next(iter(self.found)) if len(self.found) == 1 else self.costs.index[0])

    @property
    def terms(self) -> Terms:
        """What the recommended race would be begun with; a control is the last arm."""
        return self.found[self.recommended].terms

    @property
    def algorithm(self) -> Any:
        """The recommended race; its ε, σ and margin are fractions of the scale."""
        return self.terms.algorithm

    @property
    def why(self) -> str:
        """Which race is recommended, and why, in a line."""
        name = f"{self.recommended} ({ALGORITHMS[type(self.algorithm).__name__]})"
        if len(self.found) == 1:
            return f"Race: {name}, the only race that was asked for or that permits what was asked."
        compared = ", ".join(f"{race} {cost:.2f}" for race, cost in self.costs["cost"].items())
        return f"Race: {name}. Pulls relative to those of the cheapest race, simulated: {compared}."

    @property
    def rounds(self) -> pd.DataFrame | None:
        """A row a round of the recommended race; None if it decides from round to round how often to pull.

        At most: `pulls` of an arm in it and `so_far`, and of all arms so far (`worst_case`). After sharp
        EBR's rounds arms are `gone` that are so much worse than the best.
        """
        race, n_arms, told = self.algorithm, len(self.terms.arms), self.terms.rewards
        so_far, gone = race.pulls_by_round(n_arms, told), race.gone(n_arms, told)
        if so_far is None:
            return None
        columns = {"pulls": np.diff(so_far, prepend=0), "so_far": so_far, "worst_case": n_arms * so_far}
        columns |= {} if gone is None else {"gone": gone * self.terms.scale.width}
        return pd.DataFrame(columns, index=pd.RangeIndex(1, len(so_far) + 1, name="round"))

    @cached_property
    def _by_deadline(self) -> list[pd.DataFrame]:
        """The tables of `deadlines` and of `errors`."""
        planned, chosen, tables = self.algorithm.deadline, self.found[self.recommended], {}
        fewer = {*range(1, 21), *np.geomspace(20, planned, 15).astype(int).tolist()}
        last = min(planned + 3, self.algorithm.most_rounds)
        if self.recommended == "certified":  # each design takes seconds
            fewer, last = {planned >> halved for halved in range(planned.bit_length())}, planned
        for deadline in sorted({each for each in fewer if each < planned} | {*range(planned, last + 1)}):
            race = self.algorithm if deadline == planned else chosen.make(deadline=deadline)
            most = float(race.most_pulls(len(self.terms.arms), self.terms.rewards))
            table = simulated(chosen, race, self.runs)[["pulls", "error"]]
            tables[deadline] = pd.concat([pd.DataFrame({"pulls": most, "error": 0.0}, ["worst case"]), table])
        columns = ({deadline: table[name] for deadline, table in tables.items()} for name in table)
        return [pd.DataFrame(each).T.rename_axis("rounds") for each in columns]

    @property
    def deadlines(self) -> pd.DataFrame:
        """The recommended race's mean pulls on each truth, and the most, in 1, 2, … rounds; few beyond 20.

        Designs of certified races take seconds: of these, in T, T/2, T/4, … rounds alone.
        """
        return self._by_deadline[0]

    @property
    def errors(self) -> pd.DataFrame:
        """The standard errors of `deadlines`."""
        return self._by_deadline[1]

    def plot(self, axis: "Axes | None" = None) -> "Figure":
        """What does one more round buy? Mean pulls ± one standard error along the number of rounds."""
        return draw_plan(self.deadlines, self.algorithm.deadline, axis, self.errors)

    def start(
        self, journal: str | os.PathLike[str], arms: Sequence[str] | None = None, control: str | None = None
    ) -> "Race":
        """Begin the race that was planned, or go on with it.

        The arms are those of the pilot, or "arm 1", …, if left out; a control is the last, or the one named.
        """
        from ebr.live.race import Race

        return Race.begin(self.terms.renamed(self.terms.arms if arms is None else arms, control), journal)

    def __str__(self) -> str:
        tables = [f"{title}\n{table.to_string(index=False)}" for title, table in self._tables().items()]
        return "\n\n".join(["\n".join(self._notes()), *tables, "\n".join(self._explained())])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _notes(self) -> list[str]:
        """What is planned and recommended."""
        a, scale = self.algorithm, self.terms.scale
        found, best = ("an arm", "the best") if a.k == 1 else (f"{a.k} arms", "the k-th best")
        within = f"{scale.width * a.epsilon:g} of {best} with probability {1 - a.delta:.12g}"
        allowed = max(each.terms.algorithm.deadline or 0 for each in self.found.values())
        notes = [f"{len(self.terms.arms)} arms, at most {allowed} rounds, {found} within {within}"]
        if self.budget is not None:
            first = self.costs.iloc[0]
            enough = "are enough" if first["at_most"] <= self.budget else "may not be enough"
            says = enough if self.bought is None else f"buy {self.bought} = {first[self.bought]:g}"
            notes.append(f"{self.budget:,} pulls {says}: at most {first['at_most']:,.0f}")
        model, (low, high) = a.model(self.terms.rewards), self.terms.support or (0.0, 0.0)
        known = {"Bernoulli": "0 or 1", "bounded": f"between {low:g} and {high:g}"}
        rewards = known.get(model, f"{model} with sigma = {scale.width * a.sigma:g}")
        less = ", the smaller the better" if scale.worst > scale.best else ""
        notes += [f"rewards are {rewards}{less}", *wrap(self.assumed, 96)]
        if a.margin is not None:
            notes.append(f"ends early if no arm can be better than the control by {scale.width * a.margin:g}")
        fewer = f", in {a.deadline} rounds at most" if a.deadline < allowed else ""
        return [*notes, f"recommended: {self.recommended}, {ALGORITHMS[type(a).__name__]}{fewer}"]

    def _tables(self) -> dict[str, pd.DataFrame]:
        """The tables in words, by their titles."""
        races, costs = self.races, self.costs
        means = races["pulls"].map("{:,.0f}".format) + " ± " + races["error"].map("{:,.0f}".format)
        words = costs.map(_number).assign(cost=costs["cost"].map("{:.2f}".format))
        words = words.rename(columns={"cost": "relative cost", "at_most": "at most"})
        columns = {race: pd.concat([means[race], words.loc[race]]) for race in costs.index}
        compared = pd.DataFrame(columns).rename_axis("truth").reset_index()
        tables = {"Pulls of all arms on average, by race and truth": compared}
        if len(self.found) == 1:
            title = "Truth by truth: 90% of experiments within pulls_90; failing: 99% interval for P(failure)"
            alone = races.droplevel("race").drop(columns=["pulls", "error"])
            tables[title] = alone.map(_number).reset_index()
        if self.rounds is not None:
            gone = "; gone: arms so much worse" if "gone" in self.rounds else ""
            title = f"Round by round: {self.recommended}, pulls of an arm at most; worst_case: of all{gone}"
            tables[title] = self.rounds.map(_number).reset_index()
        return tables

    def _explained(self) -> list[str]:
        """What the numbers are."""
        means = [
            f"Means ± standard errors of {self.runs:,} simulated experiments on each truth; their failures.",
            "At most: on any truth, if no reward is missing; proved, not simulated.",
            "Relative cost: pulls over those of the cheapest race, the mean over the truths.",
        ]
        if self.terms.support and any(each.terms.squares for each in self.found.values()):
            ends = "{:g} or {:g}".format(*self.terms.support)
            means.append(f"Simulated rewards are {ends}. In between fewer pulls may do: tell single rewards.")
        if "certified" in self.found and self.terms.rewards == "Bernoulli":  # which refutes but a few shifts
            means.append("Stopped early, certified may guarantee nothing; sharp says how far from the best.")
        if "spread" in self.races.index.unique("truth"):
            hard, far = (gap * self.terms.scale.width for gap in (min(2 * self.algorithm.epsilon, FAR), FAR))
            means.append(f"hard: the others are {hard:.3g} worse; easy: {far:.3g}; spread: in between.")
        return means


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
    truths: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
    pilot: "Mapping[str, ArrayLike] | pd.DataFrame | None" = None,
    runs: int | None = None,
) -> Plan:
    """Plan an experiment: compare the proved races that permit what is asked, and recommend one.

    Recommended is the race with the fewest pulls relative to the cheapest race, averaged over the truths;
    with a budget, among those that keep to it, or the one that buys the smallest ε or δ.

    Parameters
    ----------
    n_arms, deadline, k
        How many arms, rounds at most, and arms to find, fewer than there are.
    epsilon, delta
        The recommended arm is within ε of the best with probability at least 1 − δ (δ is 0.05 if left out).
    sigma, rewards, support
        What is known of the rewards, in their units, as are ε and margin. Each is 0 or 1: `rewards` is
        "Bernoulli". A range: `support=(0, 50)`, [0, 1] if left out. A spread: σ, and `rewards` is "Gaussian"
        (normal) or "sub-Gaussian"; then the support is None. σ is half its width if left out, or 0.5.
    algorithm
        One race, "sharp" or "ebr" (Algorithm 1) for instance, to be shown truth by truth. By default those
        are compared that are made and simulated in seconds; "certified" is designed for the truths.
    budget
        Pulls of all arms together. If ε is left out, the plan is of the smallest ε of three digits that they
        buy; if δ alone is, of the smallest δ; if neither, it says whether they are enough.
    control, margin
        Whether the last arm is a control: the race ends early when no arm can beat it by the margin, or by ε.
    lower_is_better, blocks, missing
        Whether the smallest mean is the best; whether the arms of a round share the same blocks; whether
        rewards may be missing, at random.
    truths
        What the arms' means might be: lists of n means, in a list or by their names. By default all others
        are worse than the k best, which tie, by 2ε ("hard"), by half the scale ("easy"), spread evenly from
        the one to the other, or not at all ("alike"). The scale is the support, or 2σ. Rewards in a support
        are simulated by coins, the noisiest.
    pilot
        Rewards of earlier trials, by arm: a dict, or a table with a column for each arm, or with the columns
        arm and reward. Their means are one more truth. If nothing else is said of the rewards, and all are 0
        or 1, they are "Bernoulli"; otherwise σ is *estimated*: it is an assumption.
    runs
        How many experiments are simulated on each truth: 200, or fewer if there are many arms and rounds.
    """
    tried, assumed = dict[str, float](), ""
    if pilot is not None:
        tried, rewards, sigma, assumed = _piloted(pilot, n_arms, rewards, sigma, support)
    names = list(tried) or [f"arm {number}" for number in range(1, several("n_arms", n_arms) + 1)]
    check_places(k, len(names))
    truths = truths.tolist() if isinstance(truths, np.ndarray) else truths
    listed = truths is None or (isinstance(truths, Mapping | Sequence) and len(truths) > 0)
    require(listed, "truths", "be one or more lists of means", truths)
    bought = "epsilon" if epsilon is None else "delta" if delta is None and budget is not None else None
    if budget is not None:
        whole("budget", budget, 1, MOST_TOTAL)
    must = "be a number above 0, in the rewards' units, or a budget be given"
    require(budget is not None or epsilon is not None, "epsilon", must, epsilon)
    rules = rounds("deadline", deadline), epsilon, 0.05 if delta is None else delta
    place = len(names) - 1 if true_or_false("control", control) else None  # its name comes with the start
    brief = Brief(*rules, sigma, rewards, support, lower_is_better, k, blocks, missing, place, margin)
    few = max(2, min(RUNS, WORK // (len(names) * brief.deadline)))
    kinds = _compared(brief, len(names), bought)
    if algorithm is not None:
        kinds = {one_of("algorithm", algorithm, RACES): brief.deadline}
    expected = partial(_expected, brief, len(names), truths, list(tried.values()))
    found, refused = dict[str, Candidate](), list[ValueError]()
    for kind, most in kinds.items():
        if kind == "certified" and refused and not found:  # nothing is designed in vain
            break
        try:
            asked = replace(brief, deadline=most)
            found[kind] = _made(asked, kind, names, budget, bought, expected)
        except ValueError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return Plan(found, whole("runs", few if runs is None else runs, 2), budget, bought, assumed)


def _piloted(
    pilot: Any, n_arms: int | None, rewards: Known, sigma: float | None, support: Support
) -> tuple[dict[str, float], Known, float | None, str]:
    """The means of a pilot by arm, and what it adds: the rewards' kind, σ, and a sentence that says so."""
    if isinstance(pilot, pd.DataFrame):
        long = {"arm", "reward"} <= set(pilot.columns)
        parts = pilot.groupby("arm", sort=False)["reward"] if long else pilot.items()
        pilot = {arm: column.dropna() for arm, column in parts}
    several_arms = isinstance(pilot, Mapping) and len(pilot) > 1
    require(several_arms, "pilot", "be a table or dict of the rewards of 2 arms or more", pilot)
    must = f"be left out, or {len(pilot)} as in the pilot"
    require(n_arms in (None, len(pilot)), "n_arms", must, n_arms)
    unsaid = rewards is None and isinstance(support, str)
    limits, tried = None if unsaid else checked_support(support, rewards), {}
    for arm, values in pilot.items():
        single = not isinstance(values, tuple)  # a count and a sum
        require(single, f"pilot of {arm!r}", "be a list of single rewards", values)
        tried[str(arm)] = _in_support(f"pilot of {arm!r}", values, limits)
    means = {arm: float(values.mean()) for arm, values in tried.items()}
    if unsaid and all(np.isin(values, (0, 1)).all() for values in tried.values()):
        return means, "Bernoulli", sigma, "that they are 0 or 1 is taken from the pilot"
    if limits or rewards in IN_UNIT or sigma is not None:
        return means, "sub-Gaussian" if unsaid else rewards, sigma, ""
    largest, arm = max(
        (values.std(ddof=1) * math.sqrt((len(values) - 1) / chdtri(len(values) - 1, PILOT)), arm)
        for arm, values in tried.items()
    )
    require(largest, "sigma", "be given, or a support: each arm's rewards in the pilot are equal", sigma)
    sigma = float(rounded_up(largest))
    said = f"sigma = {sigma:g} is estimated from the pilot: {PILOT:.0%} upper limit for {arm}, if normal."
    said += " It is an assumption: if sigma is larger, nothing is guaranteed."
    return means, rewards or "sub-Gaussian", sigma, said


def _in_support(name: str, values: ArrayLike, support: Support) -> FloatArray:
    """Return two or more finite numbers, in the support if there is one; raise ValueError for others."""
    array, (low, high) = numbers(name, values, 2), support or (-math.inf, math.inf)
    outside = array[~(np.isfinite(array) & (low <= array) & (array <= high))].tolist()
    within = f"numbers in the support, [{low:g}, {high:g}]" if support else "finite numbers"
    require(not outside, name, f"be {within}", next(iter(outside), None))
    return array


def _compared(brief: Brief, n_arms: int, bought: str | None) -> dict[str, int]:
    """The races that are made and simulated in seconds, and their rounds at most."""
    sharp, *others, certified, _ = RACES
    kinds = [sharp] if n_arms > MOST_COMPARED else [sharp, *others]
    compared = dict.fromkeys(kinds, brief.deadline)
    known = brief.rewards in ("Bernoulli", "Gaussian") and brief.k == 1 and not (brief.blocks or bought)
    if known and brief.epsilon is not None and n_arms <= MOST_DESIGNED_ARMS:
        last = NORMAL
        if brief.rewards == "Bernoulli":
            last = bechhofer_count(n_arms, brief.epsilon / brief.scale.width, brief.delta, 0.5)
        looks = min(brief.deadline, MOST_DESIGNED // last)
        compared |= {certified: looks} if looks >= min(brief.deadline, 3) else {}
    return compared


def _made(
    brief: Brief, kind: str, names: Sequence[str], budget: int | None, bought: str | None, expected: Expected
) -> Candidate:
    """A race, with what a budget buys; ValueError if it does not permit what is asked."""
    n_arms, make = len(names), partial(brief.made, kind, len(names))
    if budget is not None and bought is not None:
        must = f"be given for algorithm {kind!r}, which takes seconds to make"
        require(kind != "certified", bought, must, None)
        # Without the margin, which ε may exceed during the search.
        bare = partial(replace(brief, control=None, margin=None).made, kind, n_arms)
        make = partial(make, **{bought: _affordable(bare, bought, n_arms, budget, brief.told)})
    elif kind == "certified" and brief.epsilon is not None:
        means = expected(brief.epsilon / brief.scale.width).values()
        make = partial(make, truths=tuple(tuple(each.tolist()) for each in means))
    race = make()
    race.most_pulls(n_arms, brief.told)  # raises ValueError if there are too many to be counted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning comes when the race is started
        terms = brief.agreed(race, names)
    # Coins for rewards in [0, 1], else normal rewards.
    problem = Bernoulli if race.model(terms.rewards) in IN_UNIT else partial(Gaussian, sigma=race.sigma)
    return Candidate(terms, make, {name: problem(means) for name, means in expected(race.epsilon).items()})


def _affordable(make: Maker, bought: str, n_arms: int, budget: int, told: str) -> float:
    """The smallest ε (or δ) of three digits, 10⁻⁹ or more, that fits; the next smaller one does not."""

    def most(value: float) -> int:
        return int(make(**{bought: value}).most_pulls(n_arms, told))

    def fits(value: float) -> bool:
        with suppress(ValueError):  # more pulls than can be counted
            return most(value) <= budget
        return False

    values = [float(f"{digits}e-{decade}") for decade in range(11, 2, -1) for digits in range(100, 1000)]
    place = bisect_left(values, True, key=fits)
    require(place < len(values), "budget", f"be at least {most(0.999)} for {bought} = 0.999", budget)
    return values[place]


def _expected(
    brief: Brief, n_arms: int, truths: Any, piloted: Sequence[float], epsilon: float
) -> dict[str, FloatArray]:
    """The truths by name: means as the race sees them, whose ε this is; gaps are cut at the scale, 2σ."""
    scale, inside = brief.scale, {}
    if truths is None:
        hard, others = min(2 * epsilon, FAR), n_arms - brief.k
        gaps = {"hard": np.full(others, hard), "spread": np.linspace(hard, FAR, others)}
        gaps |= {"easy": np.full(others, FAR), "alike": np.zeros(others)}
        inside = {name: LEVEL - np.append(np.zeros(brief.k), gap) for name, gap in gaps.items()}
        truths = {"pilot": piloted} if piloted else {}
    for name, means in truths.items() if isinstance(truths, Mapping) else ((None, each) for each in truths):
        values = _in_support(f"truth {shown(means)}", means, brief.support)
        require(len(values) == n_arms, f"truth {shown(means)}", f"have {n_arms} means", len(values))
        said = ", ".join(f"{value:.15g}" for value in values) if name is None else str(name)
        values = (values - scale.worst) / (scale.best - scale.worst)
        outside = values.min() < 0 or values.max() > 1
        inside[said] = np.maximum(values - values.max() + 1, 0) if outside else values
    return inside


def simulated(candidate: Candidate, race: Algorithm, runs: int) -> pd.DataFrame:
    """Simulate a race on a candidate's truths: a row a truth, with the columns of `Plan.races`."""
    rows, raced = {}, race.assuming(race.model(candidate.terms.rewards))
    for name, problem in candidate.truths.items():
        result = simulate(raced, problem, runs, seed=0)
        # An arm that is worse by exactly ε is wrong, however a difference such as 0.6 − 0.4 is rounded.
        right = result.correct(race.epsilon * (1 - 1e-9))
        if race.control is not None and race.margin is not None:  # no arm beats the control by the margin
            right |= (result.arm == race.control) & problem.is_good(result.arm, race.margin * (1 - 1e-9))
        rows[name] = {
            "pulls": float(result.pulls.mean()),
            "error": float(result.pulls.std(ddof=1) / np.sqrt(runs)),
            "pulls_90": int(np.quantile(result.pulls, 0.9, method="inverted_cdf")),
            "rounds": float(result.rounds.mean()),
            "failures": int((~right).sum()),
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("truth")
    lower, upper = exact_interval(table["failures"].to_numpy() / runs, np.full(len(table), runs), 0.01)
    return table.assign(failing_lower=lower, failing_upper=upper)


def _number(value: float) -> str:
    """A count with thousands, a gap with three digits."""
    return f"{value:,.0f}" if value >= 10 or float(value).is_integer() else f"{value:.3g}"
