"""Planning an experiment before its first pull: which race, what it costs, what one more round buys."""

import html
import math
import os
import warnings
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from textwrap import wrap
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import chdtri

import ebr
from ebr.algorithms.game import check_places
from ebr.arrays import FloatArray
from ebr.live.race import Race
from ebr.live.report import MOST_ROUNDS_SAID, rounded_up
from ebr.live.terms import ALGORITHMS, USUAL, Scale, Support, Terms, checked_support
from ebr.models import IN_UNIT, RACES
from ebr.simulation.simulate import simulate
from ebr.theory.confidence import exact_interval
from ebr.theory.problems import Bernoulli, Gaussian
from ebr.theory.selection import bechhofer_count
from ebr.validation import check_fields, numbers, optional, positive, require, shown, true_or_false, whole

if TYPE_CHECKING:  # slow to import, and a plan in a terminal needs neither
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COMPARED = 20_000  # arms; with more of them only sharp EBR is simulated in seconds
MOST_DESIGNED = 6_000  # rewards of an arm × looks: a certified race is designed in about ten seconds
MOST_DESIGNED_ARMS = 100  # the same for arms
NORMAL = 300  # 0/1 rewards of an arm whose law takes as long as that of normal ones, however many
RUNS = 200  # simulated experiments behind a mean
WORK = 150_000  # arms × rounds × experiments at most, so that a plan takes seconds
LEVEL = 0.75  # of the best arm in the usual truths, as a fraction of the scale
FAR = 0.5  # the largest gap, as a fraction of the scale
PILOT = 0.95  # how surely a σ estimated from a pilot is large enough, if rewards are normal


@dataclass(frozen=True)
class Plan:
    """What `plan` returns: print it; `start` runs it. Its tables are simulated when they are asked for."""

    found: dict[str, Terms] = field(repr=False)  # of the races that permit what is asked, by name
    asked: "_Brief" = field(repr=False)
    runs: int  # simulated experiments behind each mean
    budget: int | None
    bought: str | None  # "epsilon" or "delta", if it was sought for the budget

    @cached_property
    def races(self) -> pd.DataFrame:
        """A row for each race and truth, from simulated experiments.

        The mean `pulls` of all arms and its standard `error`; `pulls_90`, which 90 % of experiments did not
        exceed; the mean `rounds`; how many were `failures`, and an exact 99 % interval for the probability of
        one (`failing_lower`, `failing_upper`).
        """
        tables = {kind: self.asked.simulated(terms, self.runs) for kind, terms in self.found.items()}
        return pd.concat(tables, names=["race"])

    @cached_property
    def costs(self) -> pd.DataFrame:
        """A row a race, the recommended one first.

        `at_most`, the most pulls if no reward is missing, proved, ∞ if unknown; `cost`, its pulls relative to
        those of the cheapest race, the mean over the truths; `failures`; and what is bought.
        """
        pulls = self.races["pulls"]
        costs = pd.DataFrame({"at_most": {kind: terms.most_pulls for kind, terms in self.found.items()}})
        costs["cost"] = (pulls / pulls.groupby("truth").transform("min")).groupby("race").mean()
        costs["failures"] = self.races["failures"].groupby("race").sum()
        costs["over"], by = costs["at_most"] > (self.budget or math.inf), ["over", "cost"]
        if self.bought is not None:
            by = [self.bought, "cost"]
            unit = self.asked.scale.width if self.bought == "epsilon" else 1.0
            costs[self.bought] = [unit * getattr(each.algorithm, self.bought) for each in self.found.values()]
        return costs.sort_values(by).drop(columns="over").rename_axis("race")

    @property
    def recommended(self) -> str:
        """The race that costs least, by name; nothing is simulated where there is one alone."""
        return str(next(iter(self.found)) if len(self.found) == 1 else self.costs.index[0])

    @property
    def terms(self) -> Terms:
        """What the recommended race would be begun with; a control is the last arm."""
        return self.found[self.recommended]

    @property
    def algorithm(self) -> Any:
        """The recommended race; its ε, σ and margin are fractions of the scale."""
        return self.terms.algorithm

    @cached_property
    def _by_deadline(self) -> list[pd.DataFrame]:
        """The tables of `deadlines` and of `errors`."""
        terms, race, planned, tables = self.terms, self.algorithm, self.algorithm.deadline, {}
        if self.recommended == "certified":  # each design takes seconds
            fewer = [planned >> halved for halved in range(planned.bit_length() - 1, 0, -1)]
            races = {each: self.asked.made("certified", each) for each in fewer} | {planned: terms}
        else:
            far = np.geomspace(20, planned, 15).astype(int).tolist()
            fewer = sorted({each for each in (*range(1 + terms.spread_unknown, 21), *far) if each < planned})
            rounds = (*fewer, *range(planned, min(planned + 3, race.most_rounds) + 1))
            races = {each: replace(terms, algorithm=replace(race, deadline=each)) for each in rounds}
        for deadline, each in races.items():
            worst = pd.DataFrame({"pulls": each.most_pulls, "error": 0.0}, ["worst case"])
            table = pd.concat([worst, self.asked.simulated(each, self.runs)])
            tables[deadline] = table[table["pulls"] < math.inf]
        columns = ({deadline: table[name] for deadline, table in tables.items()} for name in worst)
        return [pd.DataFrame(each).T.rename_axis("rounds") for each in columns]

    @property
    def deadlines(self) -> pd.DataFrame:
        """Mean pulls by truth, and the most, in 1, 2, … rounds (few beyond 20; certified: T, T/2, T/4, …)."""
        return self._by_deadline[0]

    @property
    def errors(self) -> pd.DataFrame:
        """The standard errors of `deadlines`."""
        return self._by_deadline[1]

    def plot(self, axis: "Axes | None" = None) -> "Figure":
        """Draw what one more round buys, on an axis or a new figure: pulls ± one standard error by rounds."""
        from ebr.live.plots import draw_plan

        return draw_plan(self.deadlines, self.algorithm.deadline, axis, self.errors)

    def start(self, journal: str | os.PathLike[str], arms: Sequence[str] | None = None) -> Race:
        """Begin the race that was planned, or go on with it; arms left out are the pilot's, or "arm 1", …."""
        return Race.begin(self.terms.renamed(self.terms.arms if arms is None else arms), journal)

    def __str__(self) -> str:
        means = self.races["pulls"].map("{:,.0f}".format) + " ± " + self.races["error"].map("{:,.0f}".format)
        words = self.costs.map(_number).assign(cost=self.costs["cost"].map("{:.2f}".format))
        words = words.rename(columns={"cost": "relative cost", "at_most": "at most"})
        compared = pd.DataFrame({race: pd.concat([means[race], words.loc[race]]) for race in words.index})
        tables = {"Pulls of all arms on average, by race and truth": compared.rename_axis("truth")}
        if len(self.found) == 1:
            title = "Truth by truth: 90% of experiments within pulls_90; failing: 99% interval for P(failure)"
            tables[title] = self.races.droplevel("race").drop(columns=["pulls", "error"]).map(_number)
        parts = [f"{title}\n{table.reset_index().to_string(index=False)}" for title, table in tables.items()]
        return "\n\n".join([self._notes(), *parts, self._explained()])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _notes(self) -> str:
        a, scale = self.algorithm, self.terms.scale
        found, best = ("an arm", "the best") if a.k == 1 else (f"{a.k} arms", "the k-th best")
        within = f"{scale.width * a.epsilon:g} of {best} with probability {1 - a.delta:.12g}"
        allowed = max(each.algorithm.deadline or 0 for each in self.found.values())
        notes = [f"{len(self.terms.arms)} arms, at most {allowed} rounds, {found} within {within}"]
        if self.budget is not None:
            first = self.costs.iloc[0]
            enough = "are enough" if first["at_most"] <= self.budget else "may not be enough"
            says = enough if self.bought is None else f"buy {self.bought} = {first[self.bought]:g}"
            notes.append(f"{self.budget:,} pulls {says}: at most {_number(first['at_most'])}")
        model, (low, high) = a.model(self.terms.rewards), self.terms.support or (0.0, 0.0)
        known = {"Bernoulli": "0 or 1", "bounded": f"between {low:g} and {high:g}"}
        guess = "" if self.asked.sigma_known else "an unknown sigma; the guess is "
        rewards = known.get(model, f"{model} with {guess}sigma = {scale.width * a.sigma:g}")
        less = ", the smaller the better" if scale.worst > scale.best else ""
        notes += [f"rewards are {rewards}{less}", *wrap(self.asked.assumed, 96)]
        if a.margin is not None:
            notes.append(f"ends early if no arm can be better than the control by {scale.width * a.margin:g}")
        fewer = f", in {a.deadline} rounds at most" if a.deadline < allowed else ""
        notes.append(f"recommended: {self.recommended}, {ALGORITHMS[type(a).__name__]}{fewer}")
        schedule = a.pulls_by_round(len(self.terms.arms), self.terms.rewards)
        if schedule is not None and len(schedule) <= MOST_ROUNDS_SAID:
            notes.append(f"pulls of an arm after each round, at most: {', '.join(map(_number, schedule))}")
        return "\n".join(notes)

    def _explained(self) -> str:
        means = [
            f"Means ± standard errors of {self.runs:,} simulated experiments on each truth; their failures.",
            "At most: on any truth, if no reward is missing; proved, not simulated.",
            "Relative cost: pulls over those of the cheapest race, the mean over the truths.",
        ]
        if self.terms.support and any(each.squares for each in self.found.values()):
            ends = "{:g} or {:g}".format(*self.terms.support)
            means.append(f"Simulated rewards are {ends}. In between fewer pulls may do: tell single rewards.")
        if "certified" in self.found and self.terms.rewards == "Bernoulli":  # which refutes but a few shifts
            means.append("Stopped early, certified may guarantee nothing; sharp says how far from the best.")
        if "spread" in self.races.index.unique("truth"):
            hard, far = (gap * self.terms.scale.width for gap in (min(2 * self.algorithm.epsilon, FAR), FAR))
            means.append(f"hard: the others are {hard:.3g} worse; easy: {far:.3g}; spread: in between.")
        return "\n".join(means)


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
    pilot: Mapping[str, ArrayLike] | None = None,
    runs: int | None = None,
    sigma_known: bool = True,
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
    sigma_known
        If False, σ is a guess, on which no guarantee rests; rewards are normal with one σ for all arms.
    algorithm
        One race, "sharp" or "ebr" (Algorithm 1) for instance, to be shown truth by truth. By default those
        are compared that are made and simulated in seconds; "certified" is designed for the truths.
    budget
        Pulls of all arms together. If ε is left out, the plan is of the smallest ε of three digits that they
        buy; if δ alone is, of the smallest δ; if neither, it says whether they are enough.
    control, margin
        Whether the last arm is a control: the race ends early when no arm can beat it by the margin, or by ε.
    lower_is_better, blocks, missing
        Whether the smallest mean is the best, arms share the same blocks, rewards may be missing at random.
    truths
        What the arms' means might be: lists of n means, in a list or by name. By default the k best tie, and
        the others are worse by 2ε ("hard"), by half the support or σ ("easy"), spread evenly in between, or
        not at all ("alike"). Rewards in a support are simulated by coins, the noisiest.
    pilot
        Rewards of earlier trials by arm, whose means are one more truth. If nothing else is said of the
        rewards, and all are 0 or 1, they are "Bernoulli"; otherwise σ is *estimated*: it is an assumption.
    runs
        How many experiments are simulated on each truth: 200, or fewer if there are many arms and rounds.
    """
    brief = _Brief(**locals())
    found, refused = dict[str, Terms](), list[ValueError]()
    for kind, most in brief.compared().items():
        if kind == "certified" and refused and not found:  # nothing is designed in vain
            break
        try:
            found[kind] = brief.made(kind, most)
        except ValueError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    few = max(2, min(RUNS, WORK // (len(brief.arms) * brief.deadline)))
    return Plan(found, brief, few if runs is None else runs, budget, brief.bought)


class _Brief(SimpleNamespace):
    """What is asked: the parameters of `plan` by name, checked and filled in, and what follows from them."""

    n_arms: int
    delta: float
    rewards: str | None
    support: Support
    arms: list[str]
    scale: Scale  # without a support 2σ wide, so that a plan does not depend on the units
    tried: dict[str, float]  # a pilot's means by arm
    assumed: str  # from the pilot, in words
    bought: str | None  # "epsilon" or "delta", if it is sought for the budget

    def __init__(self, **asked: Any) -> None:
        super().__init__(**asked, tried={}, assumed="", bought=None)
        if self.pilot is not None:
            self._learn()
        if self.epsilon is None or (self.delta is None and self.budget is not None):
            self.bought = "epsilon" if self.epsilon is None else "delta"
        self.delta = 0.05 if self.delta is None else self.delta
        rules = dict.fromkeys(("epsilon", "sigma", "margin"), optional(positive))
        rules |= dict.fromkeys(("control", "sigma_known"), true_or_false)
        check_fields(self, **rules, algorithm=optional(RACES), runs=optional(partial(whole, at_least=2)))
        must = "be a number above 0, in the rewards' units, or a budget be given"
        require(self.budget or self.epsilon, "epsilon", must, self.epsilon)
        check_places(self.k, self.n_arms)
        alone = self.margin is not None and not self.control
        require(not alone, "margin", "be left out where there is no control", self.margin)
        several = isinstance(self.truths, Mapping | Sequence | np.ndarray) and len(self.truths)
        require(self.truths is None or several, "truths", "be one or more lists of means", self.truths)
        self.support = checked_support(self.support, self.rewards)
        low, high = self.support or (0.0, 1.0 if self.sigma is None else 2 * self.sigma)
        self.arms = list(self.tried) or [f"arm {number + 1}" for number in range(self.n_arms)]
        self.scale = Scale(high, low) if self.lower_is_better else Scale(low, high)
        width = self.scale.width
        must = f"lie in (0, {width:g}), the width of the rewards' support, or twice their sigma (give one)"
        require((self.epsilon or 0) < width, "epsilon", must, self.epsilon)
        guessed = self.rewards == "Gaussian" and self.sigma is not None
        must = "be True unless rewards are 'Gaussian' and sigma, or a pilot, is given as a guess"
        require(self.sigma_known or guessed, "sigma_known", must, self.sigma_known)
        if self.rewards in IN_UNIT and self.sigma is not None:
            least = f"be at least {width / 2:g} for {self.rewards} rewards"
            require(self.sigma >= width / 2, "sigma", least, self.sigma)
        self.expected(0.0)  # raises ValueError if truths are wrong

    def _learn(self) -> None:
        """Take the arms' means from the pilot and, unless it is said, the rewards' kind or σ."""
        pilot = self.pilot
        several_arms = isinstance(pilot, Mapping) and len(pilot) > 1
        require(several_arms, "pilot", "be a dict of the rewards of 2 arms or more", pilot)
        must = f"be left out, or {len(pilot)} as in the pilot"
        require(self.n_arms in (None, len(pilot)), "n_arms", must, self.n_arms)
        unsaid = self.rewards is None and isinstance(self.support, str)
        limits = None if unsaid else checked_support(self.support, self.rewards)
        for arm, values in pilot.items():  # no counts and sums
            require(not isinstance(values, tuple), f"pilot of {arm!r}", "be a list of single rewards", values)
        pilot = {str(arm): _in_support(f"pilot of {arm!r}", each, limits) for arm, each in pilot.items()}
        self.n_arms, self.tried = len(pilot), {arm: float(each.mean()) for arm, each in pilot.items()}
        if unsaid and all(np.isin(values, (0, 1)).all() for values in pilot.values()):
            self.rewards, self.assumed = "Bernoulli", "that they are 0 or 1 is taken from the pilot"
        elif limits is None:
            self.rewards = self.rewards or "sub-Gaussian"
            if self.sigma is None:
                self._estimate(pilot)

    def _estimate(self, pilot: Mapping[str, FloatArray]) -> None:
        """Take the largest upper limit for σ of an arm."""
        ends = {arm: (len(each) - 1) / chdtri(len(each) - 1, PILOT) for arm, each in pilot.items()}
        limits = {arm: each.std(ddof=1) * math.sqrt(ends[arm]) for arm, each in pilot.items()}
        arm, largest = max(limits.items(), key=lambda each: each[1])
        require(largest, "sigma", "be given, or a support: each arm's rewards in the pilot are equal", None)
        self.sigma = float(rounded_up(largest))
        said = f"sigma = {self.sigma:g} is estimated from the pilot: {PILOT:.0%} upper limit for {arm}"
        void = "an assumption: if sigma is larger, nothing is guaranteed"
        rests = void if self.sigma_known else "a guess, on which no guarantee rests"
        self.assumed = f"{said}, if normal. It is {rests}."

    def compared(self) -> dict[str, int]:
        """The races that are made and simulated in seconds, and their rounds at most."""
        if self.algorithm is not None or not self.sigma_known:
            return {self.algorithm or "staked": self.deadline}
        sharp, *others, certified, _ = RACES
        compared = dict.fromkeys([sharp] if self.n_arms > MOST_COMPARED else [sharp, *others], self.deadline)
        coins, plain = self.rewards == "Bernoulli", self.k == 1 and not (self.blocks or self.bought)
        if plain and (coins or self.rewards == "Gaussian") and self.n_arms <= MOST_DESIGNED_ARMS:
            risk = self.epsilon / self.scale.width, self.delta, 0.5
            last = bechhofer_count(self.n_arms, *risk) if coins else NORMAL
            looks = min(self.deadline, MOST_DESIGNED // last)
            compared |= {certified: looks} if looks >= min(self.deadline, 3) else {}
        return compared

    def made(self, kind: str, deadline: int) -> Terms:
        """Make a race, with what a budget buys; ValueError if it does not permit what is asked."""
        rules: dict[str, Any] = {"deadline": deadline}
        if self.bought is not None:
            must = f"be given for algorithm {kind!r}, which takes seconds to make"
            require(kind != "certified", self.bought, must, None)
            bare = self.terms(kind, False, **rules)  # without the margin, which ε may exceed in the search
            must = f"be left out for {kind!r}, whose most pulls are unknown"
            require(bare.most_pulls < math.inf, "budget", must, self.budget)
            rules[self.bought] = _affordable(bare, self.bought, self.budget)
        return self.terms(kind, self.control, **rules)

    def terms(self, kind: str, control: bool, **changes: Any) -> Terms:
        """Make a race, with changed rules."""
        require(self.k == 1 or kind in ("sharp", "ebr"), "k", f"be 1 for algorithm {kind!r}", self.k)
        width, margin = self.scale.width, self.margin if control else None
        half = width / (math.sqrt(2) if self.blocks and self.support else 2)  # blocks need more
        rules: dict[str, Any] = {"epsilon": (self.epsilon or width / 2) / width, "delta": self.delta}
        rules |= {"sigma": (self.sigma or half) / width, **changes}
        require(self.sigma_known or kind == "staked", "algorithm", "be 'staked' if sigma is a guess", kind)
        rules |= {} if self.sigma_known else {"squares": True}
        race: Any
        if kind == "certified":
            rewards = self.rewards or ("Bernoulli" if self.support else "Gaussian")
            shifts = (margin / width,) if margin and margin / width > rules["epsilon"] else ()
            truths = [each.tolist() for each in self.expected(rules["epsilon"]).values()]
            rules |= {"rewards": rewards, "truths": truths, "shifts": shifts}
            race = ebr.certified_design(self.n_arms, **rules).race
        elif kind == "ebr":
            require(self.rewards is None, "rewards", "be left out for algorithm 'ebr'", self.rewards)
            race = ebr.ElasticBatchRacing(**rules)
        else:
            race = getattr(ebr, f"{kind.capitalize()}ElasticBatchRacing")(**rules, rewards=self.rewards)
        race = replace(race, k=self.k) if self.k > 1 else race
        # A last round that lacks rewards decides nothing, and of a race that resumes it must.
        lossy = race.objection("missing", self.rewards) is None and not race.resumes
        require(lossy or not self.missing, "algorithm", "be 'sharp' if rewards may be missing", kind)
        units = self.support, None, self.scale, self.blocks
        with warnings.catch_warnings(action="ignore"):  # the warning comes when the race is started
            return Terms.agreed(race, self.arms, *units, self.arms[-1] if control else None, margin)

    def expected(self, epsilon: float) -> dict[str, FloatArray]:
        """The truths by name: means as the race sees them, whose ε this is; gaps are cut at the scale, 2σ."""
        scale, inside, truths = self.scale, {}, self.truths
        if truths is None:
            hard, best, rest = min(2 * epsilon, FAR), np.zeros(self.k), len(self.arms) - self.k
            gaps = {"hard": (hard, hard), "spread": (hard, FAR), "easy": (FAR, FAR), "alike": (0.0, 0.0)}
            inside = {name: LEVEL - np.append(best, np.linspace(*ends, rest)) for name, ends in gaps.items()}
            truths = {"pilot": list(self.tried.values())} if self.tried else {}
        given = truths.items() if isinstance(truths, Mapping) else ((None, means) for means in truths)
        for name, means in given:
            values = _in_support(f"truth {shown(means)}", means, self.support)
            must = f"have {len(self.arms)} means"
            require(len(values) == len(self.arms), f"truth {shown(means)}", must, len(values))
            said = ", ".join(f"{value:.15g}" for value in values) if name is None else str(name)
            values = (values - scale.worst) / (scale.best - scale.worst)
            outside = values.min() < 0 or values.max() > 1
            inside[said] = np.maximum(values - values.max() + 1, 0) if outside else values
        return inside

    def simulated(self, terms: Terms, runs: int) -> pd.DataFrame:
        """Simulate a race on the truths: a row a truth, with the columns of `Plan.races`."""
        race, rows = terms.algorithm, {}
        model = race.model(terms.rewards)
        for name, means in self.expected(race.epsilon).items():  # coins in [0, 1], else normal rewards
            problem = Bernoulli(means) if model in IN_UNIT else Gaussian(means, race.sigma)
            result = simulate(race.assuming(model), problem, runs, seed=0)
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


def _affordable(terms: Terms, bought: str, budget: int) -> float:
    """The smallest ε (or δ) of three digits, 10⁻⁹ or more, that fits; the next smaller one does not."""

    def most(value: float) -> float:
        with suppress(ValueError):  # more pulls than can be counted
            return replace(terms, algorithm=replace(cast(Any, terms.algorithm), **{bought: value})).most_pulls
        return math.inf

    values = [float(f"{digits}e-{decade}") for decade in range(11, 2, -1) for digits in range(100, 1000)]
    place = bisect_left(values, True, key=lambda value: most(value) <= budget)
    require(place < len(values), "budget", f"be at least {most(0.999)} for {bought} = 0.999", budget)
    return values[place]


def _in_support(name: str, values: ArrayLike, support: Support) -> FloatArray:
    """Return two or more finite numbers, in the support if there is one; raise ValueError for others."""
    array, (low, high) = numbers(name, values, 2), support or (-math.inf, math.inf)
    outside = array[~(np.isfinite(array) & (low <= array) & (array <= high))].tolist()
    within = f"numbers in the support, [{low:g}, {high:g}]" if support else "finite numbers"
    require(not outside, name, f"be {within}", next(iter(outside), None))
    return array


def _number(value: float) -> str:
    """A count with thousands, a gap with three digits."""
    if math.isinf(value):
        return "unknown"
    return f"{value:,.0f}" if value >= 10 or float(value).is_integer() else f"{value:.3g}"
