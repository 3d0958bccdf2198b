"""A race in words, for a protocol or a paper: its verdict, its intervals, and a report of everything.

The intervals of single arms (exact, KL, normal or Hoeffding's) are chosen here by the reward model.
"""

import base64
import html
import io
import math
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any, Protocol

from ebr.algorithms.game import Algorithm
from ebr.live.journal import Journal
from ebr.live.plots import draw_race
from ebr.live.terms import ALGORITHMS, Terms
from ebr.theory.intervals import Simultaneous

if TYPE_CHECKING:  # slow to import, and a race is asked and told without tables
    import pandas as pd
    from matplotlib.figure import Figure

INTERVALS = {
    "exact": "exact (Clopper–Pearson) intervals",
    "KL": "Chernoff (KL) intervals",
    "normal": "normal intervals",
    "Hoeffding": "Hoeffding intervals",
}
MOST_ROUNDS_SAID = 20  # of a schedule that is listed
MOST_NAMES = 6  # of arms listed in a sentence
WIDTH = 96  # of a line of text
TOO_FEW = "too many rewards are missing"
DIGITS = 4  # of a mean, behind the point, where rewards are about 1 wide
SAID = (
    "n_arms",
    "deadline",
    "epsilon",
    "delta",
    "sigma",
    "rewards",
    "k",
    "control",
    "margin",
    "squares",
)  # by other facts
STYLE = """\
body { font: 16px/1.45 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 1.6em }
table { border-collapse: collapse; margin: .6em 0 } td, th { padding: .2em .8em; text-align: right }
th { border-bottom: 1px solid #888 } td { border-bottom: 1px solid #ddd }
table.facts td, table.facts th, td:first-child, th:first-child { text-align: left; vertical-align: top }
table.facts th { border-bottom: 1px solid #ddd; white-space: nowrap } td { overflow-wrap: anywhere }
img { max-width: 100%; width: 34em } @media print { body { margin: 0; font-size: 11pt } }"""
Chosen = str | tuple[str, ...] | None  # a recommendation: an arm, k arms, or none


class Standing(Protocol):
    """What a report needs of a race, running or ended."""

    terms: Terms
    round: int
    finished: bool
    recommendation: Chosen
    stopped: bool

    @property
    def within(self) -> float | None:
        """How far from the best what is recommended may be; None before the end."""

    @property
    def intervals(self) -> "pd.DataFrame":
        """A row an arm: pulls, mean, lower, upper, survives."""

    @property
    def history(self) -> "pd.DataFrame":
        """A row a round and arm: round, arm, pulls, sum, total, mean, lower, upper."""


def named(recommendation: Chosen) -> str:
    """What a race recommends, in words."""
    names = (recommendation,) if isinstance(recommendation, str) else recommendation or ()
    return ", ".join(names) or "no arm"


def word_for_left_out(algorithm: Algorithm) -> str:
    """What to call an arm that is not in the coming round.

    If the k > 1 best arms are sought, it may have been accepted or dropped.
    """
    if algorithm.resumes:
        return "paused or out"
    return "decided" if algorithm.k > 1 else "out"


def verdict(terms: Terms, recommendation: Chosen, within: float, stopped: bool = False) -> str:
    """The result of a race in a sentence: the recommended arm and, if not within ε, what is guaranteed.

    `within` is how far from the best the arm may be, in the rewards' units.
    """
    chosen, asked = f"It recommends {named(recommendation)}", terms.algorithm.epsilon * terms.scale.width
    if terms.algorithm.needs_gap:
        return f"{chosen}."
    if math.isinf(within):
        why = "it was stopped too early" if stopped else TOO_FEW
        return f"{chosen}, and guarantees nothing: {terms.void or why}."
    if terms.control is not None and recommendation == terms.control:
        return f"{chosen}, the control: no arm beats it by {rounded_up(within)} or more."
    if within > asked:
        why = "it was stopped" if stopped else "rewards are missing"
        return f"{chosen}: within {rounded_up(within)} of the best, not {asked:g}, as {why}."
    return f"{chosen}."


def rounded_up(value: float) -> str:
    """Three digits, rounded up, so that they promise no more than the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit - 1e-9) * unit:.3g}"


def intervals_of(terms: Terms, losses: bool = False) -> Simultaneous | None:
    """Choose the intervals of single arms; None if the algorithm has no δ, and for blocks.

    In blocks σ is about differences and says nothing of a single arm. `losses` says whether rewards were
    missing: some counts then depend on rewards, as of a race that looks when all survivors have enough.
    """
    algorithm, sigma = terms.algorithm, terms.algorithm.sigma * terms.scale.width
    if algorithm.delta is None or terms.blocks:
        return None
    fixed = algorithm.fixed_given_losses if losses else algorithm.fixed_counts
    looks = algorithm.deadline if fixed else None
    return Simultaneous(_method(terms), algorithm.delta, len(terms.arms), looks, terms.support, sigma)


def _method(terms: Terms) -> str:
    """The method, by the reward model in the journal, which is enforced."""
    if terms.rewards == "Bernoulli":
        return "exact"
    if _normal(terms):
        return "normal"
    return "KL" if _by_support(terms) else "Hoeffding"


def _said_normal(terms: Terms) -> bool:
    """Whether rewards are said to be normal, or the algorithm assumes it."""
    return "Gaussian" in (terms.rewards, terms.algorithm.model(None))


def _normal(terms: Terms) -> bool:
    """Whether rewards are taken to be normal; bounded rewards never are."""
    return terms.support is None and _said_normal(terms)


def _by_support(terms: Terms) -> bool:
    """Whether to use the support: it is narrower than σ says, or σ is of normal rewards."""
    if terms.support is None:
        return False
    low, high = terms.support
    return _said_normal(terms) or terms.algorithm.sigma * terms.scale.width >= (high - low) / 2


@dataclass(frozen=True)
class Report:
    """What `Race.report` returns: print it, or take `markdown()` or `html()`, a page with a picture.

    Attributes
    ----------
    facts
        Design, aim, rewards, guarantee, rounds, pulls, result, software and journal, each in words.
    arms
        A row an arm: pulls, missing, mean, the ends of its interval, its last round, and where it stands.
    rounds
        A row a round and arm: asked for, pulls, late and missing ones; the mean of the round, and so far,
        with the ends of its interval.
    differences
        A row an arm other than the control: its mean minus the control's after a round, with an interval;
        None without a control, or where no interval is proved.
    sentences
        A paragraph that says what was done and found.
    reading
        How intervals and means are to be read.
    """

    facts: dict[str, str]
    arms: "pd.DataFrame" = field(repr=False)
    rounds: "pd.DataFrame" = field(repr=False)
    differences: "pd.DataFrame | None" = field(repr=False)
    sentences: str
    reading: str
    word: str = field(repr=False)
    _spelled: Callable[[float], str] = field(repr=False)
    _draw: Callable[[], "Figure"] = field(repr=False)

    def __str__(self) -> str:
        margin = 2 + max(map(len, self.facts))
        facts = [
            fill(value, WIDTH, initial_indent=f"{name:<{margin}}", subsequent_indent=" " * margin)
            for name, value in self.facts.items()
        ]
        tables = [f"{title}\n{table.to_string(index=False)}" for title, table in self._tables().items()]
        paragraphs = [fill(text, WIDTH) for text in (self.sentences, self.reading)]
        return "\n\n".join(["\n".join(facts), *tables, *paragraphs])

    def markdown(self) -> str:
        """The report as Markdown: tables and two paragraphs."""
        parts = [_rows([["", ""], *([f"**{name}**", _escaped(value)] for name, value in self.facts.items())])]
        for title, table in self._tables().items():
            rows = [list(table.columns), *table.to_numpy().tolist()]
            parts += [
                f"**{_escaped(title)}**",
                _rows([[_escaped(str(cell)) for cell in row] for row in rows]),
            ]
        return "\n\n".join([*parts, _escaped(self.sentences), _escaped(self.reading)])

    def html(self) -> str:
        """The report as a page of its own, which needs no other file."""
        title = html.escape(f"Report ({self.facts['Result']})")
        head = f'<meta charset="utf-8"><title>{title}</title>\n<style>\n{STYLE}\n</style>'
        body = f"<h1>{title}</h1>\n{self._repr_html_()}\n{self._picture()}"
        return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>'

    def _repr_html_(self) -> str:
        facts = "\n".join(
            f"<tr><th scope='row'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.facts.items()
        )
        sentences, reading = (f"<p>{html.escape(text)}</p>" for text in (self.sentences, self.reading))
        tables = "\n".join(  # to_html escapes the arms' names
            f"<h2>{html.escape(title)}</h2>\n{table.to_html(index=False, border=0)}"
            for title, table in self._tables().items()
        )
        return f'{sentences}\n<table class="facts">\n{facts}\n</table>\n{tables}\n{reading}'

    def _picture(self) -> str:
        """The race as it stood when it was reported, inside the page."""
        from matplotlib import rc_context

        drawn = io.BytesIO()
        with rc_context({"svg.hashsalt": "ebr"}):  # so that the same race is the same page
            self._draw().savefig(drawn, format="svg", metadata={"Date": None}, bbox_inches="tight")
        data = base64.b64encode(drawn.getvalue()).decode()
        words = "Means and intervals of each arm, round below round; the tables have the numbers"
        return f'<img alt="{words}" src="data:image/svg+xml;base64,{data}">'

    def _tables(self) -> dict[str, "pd.DataFrame"]:
        """The tables in words, by their titles."""
        tables = {"Arms": self.arms, "Round by round": self.rounds}
        if self.differences is not None:
            tables["Differences from the control"] = self.differences
        return {title: self._shown(table) for title, table in tables.items() if len(table)}

    def _shown(self, table: "pd.DataFrame") -> "pd.DataFrame":
        """A table in words; late and missing rewards are not mentioned where there are none."""
        none = [name for name in ("late", "missing") if name in table and not table[name].any()]
        shown = table.drop(columns=none)
        for name in shown.columns:
            if name in ("mean", "so_far", "difference", "lower", "upper"):
                shown[name] = [self._spelled(value) for value in shown[name]]
            elif name in ("asked", "pulls", "late", "missing"):
                shown[name] = [f"{count:,}" for count in shown[name]]
        return shown.rename(columns={"pulls": self.word, "so_far": "mean so far", "last_round": "last round"})


def report_of(race: Standing, journal: Journal, intervals: Simultaneous | None, word: str) -> Report:
    """Report of a race as it stands, from its journal, with these intervals of single arms, if any."""
    if not isinstance(word, str) or not word.strip() or not word.isprintable():
        raise ValueError(f"word must be what pulls are called, for instance 'subjects', got {word!r:.40}")
    terms, history = race.terms, race.history
    rounds = _by_round(history, journal)
    arms = _by_arm(race, rounds)
    if intervals is None:
        arms, rounds = (table.drop(columns=["lower", "upper"]) for table in (arms, rounds))
    losses = any("missing" in line for line in journal.lines)
    differences, way = _differences(terms, history, intervals, losses)
    facts = _facts(race, journal, rounds, word)
    sentences = _sentences(race, facts, arms, word)
    reading = f"{_reading(intervals, terms, word)} {way}".strip()
    left_out = word_for_left_out(terms.algorithm)
    draw = partial(draw_race, history, race.intervals["survives"], race.finished, left_out=left_out)
    return Report(facts, arms, rounds, differences, sentences, reading, word, digits(terms), draw)


def digits(terms: Terms) -> Callable[[float], str]:
    """How to write means and ends of intervals: digits by the width of the scale, - for NaN."""
    sigma = terms.algorithm.sigma * terms.scale.width
    width = terms.support[1] - terms.support[0] if terms.support else 2 * sigma
    places = DIGITS - math.floor(math.log10(width)) if math.isfinite(width) else DIGITS
    form = f".{max(places, 0)}f" if places <= 12 else f".{DIGITS + 1}g"
    return lambda value: format(value, form) if value == value else "-"


def _by_round(history: "pd.DataFrame", journal: Journal) -> "pd.DataFrame":
    """The rows of `Report.rounds`."""
    pairs = [(ask, tell) for ask, tell in pairwise(journal.lines) if tell["event"] == "tell"]
    asked = [ask["pulls"][arm] for ask, tell in pairs for arm in tell["rewards"]]
    late = [tell.get("late", {}).get(arm, [0])[0] for _, tell in pairs for arm in tell["rewards"]]
    table = history.assign(asked=asked, late=late, so_far=history["mean"])
    table = table.assign(missing=table["asked"] - table["pulls"], mean=table["sum"] / table["pulls"])
    columns = ["round", "arm", "asked", "pulls", "late", "missing", "mean", "so_far", "lower", "upper"]
    return table[columns].astype({"asked": int, "late": int, "missing": int})


def _by_arm(race: Standing, rounds: "pd.DataFrame") -> "pd.DataFrame":
    """The rows of `Report.arms`."""
    by_arm, algorithm = rounds.groupby("arm"), race.terms.algorithm
    table = race.intervals.reset_index()
    survives = table.pop("survives")
    missing = by_arm["missing"].sum() - by_arm["late"].sum()
    table.insert(2, "missing", table["arm"].map(missing).fillna(0).astype(int))
    table["last_round"] = table["arm"].map(by_arm["round"].max()).fillna(0).astype(int)
    told = 0 if rounds.empty else int(rounds["round"].max())
    stays, goes = "in the race", word_for_left_out(algorithm)
    if race.finished:
        stays, goes = "recommended", "not recommended"
    drops = algorithm.k == 1 and not algorithm.resumes
    dropped = drops & ~survives & ((table["last_round"] < told) | (not race.finished))
    table["standing"] = survives.map({True: stays, False: goes})
    rounds_of = table.loc[dropped, "last_round"].astype(str)
    table.loc[dropped, "standing"] = "dropped after round " + rounds_of
    return table


def _differences(
    terms: Terms, history: "pd.DataFrame", intervals: Simultaneous | None, losses: bool
) -> tuple["pd.DataFrame | None", str]:
    """The rows of `Report.differences`, and what their intervals rest on.

    *Where arms leave for good* and counts are fixed, let N and N′ be the counts of an arm and of the control
    after a round that both are in. They are fixed before the first reward, or given which are lost, and the
    difference of the two means is σ√(1/N + 1/N′)-sub-Gaussian, in blocks as well, where N = N′. So it misses
    by σ√(2 log(2/p) (1/N + 1/N′)) with p at most; with p = δ/((n−1)T) none of all arms and rounds does, with
    1 − δ, whether the race looks there or not. σ is half the support's width for rewards in it, by
    Hoeffding's lemma. For normal rewards the quantile at p/2 takes the place of √(2 log(2/p)).

    *Elsewhere* the ends of the single intervals are subtracted, which costs nothing more.
    """
    import pandas as pd

    algorithm, control, n_arms = terms.algorithm, terms.control, len(terms.arms)
    fixed = algorithm.fixed_given_losses if losses else algorithm.fixed_counts
    direct = fixed and not algorithm.resumes
    if control is None or algorithm.delta is None or (intervals is None and not direct):
        return None, ""
    heard = history[history["total"] > 0]
    rows, at = [], {arm: own.set_index("round") for arm, own in heard.groupby("arm")}
    for arm in (arm for arm in terms.arms if arm != control and {arm, control} <= at.keys()):
        common = at[arm].index.intersection(at[control].index)
        if direct and common.empty:
            continue
        one = at[arm].loc[common.max() if direct else at[arm].index.max()]
        other = at[control].loc[common.max() if direct else at[control].index.max()]
        half = _reach(terms) * math.sqrt(1 / one["total"] + 1 / other["total"])
        gap = one["mean"] - other["mean"]
        ends = (
            (gap - half, gap + half)
            if direct
            else (one["lower"] - other["upper"], one["upper"] - other["lower"])
        )
        rows.append((arm, max(one.name, other.name), gap, *ends))
    table = pd.DataFrame(rows, columns=["arm", "after round", "difference", "lower", "upper"])
    better = "below" if terms.scale.worst > terms.scale.best else "above"
    what = f"Differences are an arm's mean minus that of {control}: {better} 0 is better than the control."
    if not direct:
        return table, f"{what} Their intervals follow from those of single arms, and hold whenever these do."
    by = "normal quantiles" if _normal(terms) else "Hoeffding's inequality"
    level = f"{n_arms - 1} arms × {algorithm.deadline} rounds, by {by}"
    return table, (
        f"{what} They are taken after the last round that both were in. Their intervals hold for all arms and"
        f" all rounds at once with probability at least {1 - algorithm.delta:g} ({level})."
    )


def _reach(terms: Terms) -> float:
    """By how much of √(1/N + 1/N′) a difference may miss, but for δ/((n−1)T): see `_differences`."""
    algorithm, sigma = terms.algorithm, terms.algorithm.sigma * terms.scale.width
    assert algorithm.delta is not None
    miss = algorithm.delta / ((len(terms.arms) - 1) * (algorithm.deadline or 1))
    if _normal(terms):
        from scipy.special import ndtri

        return float(-ndtri(miss / 2) * sigma)
    if terms.support and not terms.blocks and _method(terms) in ("exact", "KL"):
        sigma = (terms.support[1] - terms.support[0]) / 2
    return sigma * math.sqrt(2 * math.log(2 / miss))


def _facts(race: Standing, journal: Journal, rounds: "pd.DataFrame", word: str) -> dict[str, str]:
    """The report's facts in words."""
    terms, most = race.terms, race.terms.algorithm.deadline
    so_far = "" if race.finished else " so far"
    told = race.round if race.finished and not race.stopped else race.round - 1
    ended = f"; the race was stopped in round {race.round}" if race.stopped else ""
    missing, late = rounds["missing"], rounds["late"]
    in_rounds = rounds.loc[missing > 0, "round"].nunique()
    facts = {
        "Design": _design(terms, word),
        "Aim": _aim(terms),
        "Rewards": _rewards(terms),
        "Guarantee": guarantee(terms, race.within, bool(missing.any()), race.stopped, race.recommendation),
        "Rounds": f"{told}{f' of at most {most}' if most else ''}{so_far}{ended}",
        word[:1].upper() + word[1:]: f"{rounds['pulls'].sum():,}{so_far}",
        "Missing": f"{missing.sum():,} rewards in {in_rounds} round{'s'[: in_rounds > 1]}, at random",
        "Late": f"{late.sum():,} of the missing rewards came in a later round, and count there",
        "Result": f"recommended: {named(race.recommendation)}" if race.finished else "none yet",
        "Software": f"ebr {_version()}",
        "Journal": _origin(journal),
    }
    absent = {"Missing": not missing.any(), "Late": not late.any()}
    return {name: value for name, value in facts.items() if not absent.get(name)}


def _design(terms: Terms, word: str) -> str:
    """The design in words: algorithm, arms, rounds, schedule, and parameters that are not the defaults."""
    algorithm, n_arms = terms.algorithm, len(terms.arms)
    most = algorithm.deadline
    rounds = f" in at most {most} round{'s'[: most > 1]}" if most else ""
    schedule = algorithm.pulls_by_round(n_arms, terms.rewards)
    text = f"{_called(algorithm)} on {n_arms} arms{rounds}"
    if schedule is not None and len(schedule) <= MOST_ROUNDS_SAID:
        text += (
            f"; {word} of an arm after each round, at most, if no reward is missing:"
            f" {', '.join(f'{n:,}' for n in schedule.tolist())}"
        )
    if terms.squares:
        text += "; uses how much rewards vary (sums of squares)"
    known: Any = fields(algorithm) if is_dataclass(algorithm) else ()
    others = [
        f"{each.name.replace('_', ' ')}: {_plain(value)}"
        for each in known
        if each.name not in SAID
        and (value := getattr(algorithm, each.name)) != each.default
        and not (schedule is not None and value == tuple(schedule.tolist()))
    ]
    return "; ".join([text, *others])


def _plain(value: Any) -> str:
    """A parameter as people write it."""
    if isinstance(value, tuple | list):
        return ", ".join(map(_plain, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _aim(terms: Terms) -> str:
    """What is looked for, in the rewards' units, and which direction is better."""
    algorithm, width = terms.algorithm, terms.scale.width
    what, means = ("the arm", "mean") if algorithm.k == 1 else (f"the {algorithm.k} arms", "means")
    direction = "smallest" if terms.scale.worst > terms.scale.best else "largest"
    little = f"differences below ε = {algorithm.epsilon * width:g} do not matter"
    aim = f"{what} with the {direction} {means}; {little}"
    if algorithm.margin is None:
        return aim
    return f"{aim}; control: {terms.control}, to be beaten by a margin of {algorithm.margin * width:g}"


def _called(algorithm: Algorithm) -> str:
    name = type(algorithm).__name__
    return ALGORITHMS.get(name, name)


def _rewards(terms: Terms) -> str:
    """The reward model in words."""
    support, sigma = terms.support, terms.algorithm.sigma * terms.scale.width
    if terms.blocks:
        root = 2**0.5 * sigma
        kind = f"normal with σ = {root:g}" if _normal(terms) else f"{root:g}-sub-Gaussian"
        return f"in independent blocks; differences of arms within a block are {kind}"
    within = f"lies between {support[0]:g} and {support[1]:g}" if support else ""
    if terms.rewards == "Bernoulli":
        each = "is 0 or 1"
    elif _by_support(terms):
        each = within
    else:
        kind = f"is normal with σ = {sigma:g}" if _normal(terms) else f"is {sigma:g}-sub-Gaussian"
        each = f"{kind} and {within}" if within else kind
    return f"independent; each {each}"


def guarantee(
    terms: Terms, within: float | None, losses: bool, stopped: bool = False, recommendation: Chosen = None
) -> str:
    """What holds of the recommendation, if the rewards are independent and what they are taken to be.

    `within` is what the race says at its end, if it has come; `losses` whether rewards were missing.
    """
    algorithm = terms.algorithm
    if type(algorithm).__name__ not in ALGORITHMS or algorithm.delta is None:
        return "Whatever is proved of this algorithm, which is not one of ebr's own."
    if terms.void:
        return f"None: {terms.void}."
    surely = f"with probability at least {1 - algorithm.delta:g}"
    if (losses or stopped) and within is not None:
        why = "it was stopped too early" if stopped else TOO_FEW
        if math.isinf(within):
            return f"None: {why}."
        futile = recommendation is not None and recommendation == terms.control
        aim = ((algorithm.margin if futile else None) or algorithm.epsilon) * terms.scale.width
        missed = f" (the aim was {aim:g})" if within > aim * (1 + 1e-9) else ""
        return f"No arm is better than the recommended one by {rounded_up(within)}{missed} {surely}."
    less = " Less is guaranteed if rewards are still missing at the end." if losses else ""
    return f"{_asked(terms, surely, None if within is None else recommendation)}{less}"


def _asked(terms: Terms, surely: str, recommendation: Chosen) -> str:
    """The guarantee if no reward is missing; after the end, the part that applies."""
    algorithm, width = terms.algorithm, terms.scale.width
    epsilon, control = f"{algorithm.epsilon * width:g}", terms.control
    if algorithm.margin is not None and recommendation in (None, control):
        margin = f"{algorithm.margin * width:g}"
        if recommendation is not None:
            return f"No arm beats {control}, the control, by {margin} or more, {surely}."
        return (
            f"If {control}, the control, is recommended, no arm beats it by {margin} or more. If another arm"
            f" is, it is within {epsilon} of the best. Either holds {surely}."
        )
    if algorithm.needs_gap:
        return f"If all others are worse by {epsilon} or more, the recommended arm is the best {surely}."
    if (k := algorithm.k) > 1:
        return f"The {k} recommended arms are within {epsilon} of the k-th best, k = {k}, {surely}."
    return f"The recommended arm is within {epsilon} of the best {surely}."


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow, and needed by a report alone

    try:
        return version("ebr")
    except PackageNotFoundError:  # run from its sources
        return "(version unknown)"


def _origin(journal: Journal) -> str:
    """The journal: its name, length, times and digest."""
    lines = journal.lines
    times = f"{lines[0].get('time', '?')} to {lines[-1].get('time', '?')}"
    return f"{journal.path.name}, {len(lines)} lines, {times}, SHA-256 {lines[-1]['checksum']}"


def _sentences(race: Standing, facts: dict[str, str], arms: "pd.DataFrame", word: str) -> str:
    """What was done and found."""
    names, algorithm, spelled = race.terms.arms, race.terms.algorithm, digits(race.terms)
    every = f"{len(names)} arms" + (f" ({', '.join(names)})" if len(names) <= MOST_NAMES else "")
    most = algorithm.deadline
    within = f" in at most {most} round{'s'[: most > 1]}" if most else ""
    were = "were" if race.finished else "are being"
    design = f"{every} {were} compared by {_called(algorithm)}{within} (ebr {_version()})."
    rewards = facts["Rewards"].replace("; ", " and ")
    if "Missing" in facts:
        rewards += ", and missing or late for reasons that have nothing to do with any of them"
    promised = not facts["Guarantee"].startswith("None")
    guarantee = f"Guarantee{f', if rewards are {rewards}' if promised else ''}: {facts['Guarantee']}"
    rounds, pulls = facts["Rounds"].split()[0], f"{arms['pulls'].sum():,} {word}"
    if not race.finished:
        after = f"after {rounds} round{'' if rounds == '1' else 's'} and {pulls}"
        return f"{design} {guarantee} So far, {after}, nothing is recommended."
    rows = arms[arms["standing"] == "recommended"].to_dict("records")
    means = ", ".join(_estimate(row, spelled) for row in rows) or "no arm"
    ended = "was stopped" if race.stopped else "ended"
    return f"{design} {guarantee} The race {ended} after round {rounds} and {pulls}; it recommends {means}."


def _estimate(row: dict[Hashable, Any], spelled: Callable[[float], str]) -> str:
    """An arm with its mean and interval."""
    interval = f", interval {spelled(row['lower'])} to {spelled(row['upper'])}" if "lower" in row else ""
    return f"{row['arm']} (mean {spelled(row['mean'])}{interval})"


def _reading(intervals: Simultaneous | None, terms: Terms, word: str) -> str:
    """How the intervals are to be read, in a few sentences."""
    if intervals is None:
        return "There are no intervals of single arms: the algorithm has no δ for them, or compares blocks."
    least = max(1 - 2 * intervals.delta, 0)
    both = f" They and the guarantee hold together with probability at least {least:g}."
    if intervals.looks is None:
        share = f"a union over all counts of {word} that there might be"
    else:
        each = intervals.delta / (intervals.n_arms * intervals.looks)
        share = f"{intervals.n_arms} arms × {intervals.looks} rounds, each at level 1 − {each:.2g}"
    biased = "low" if terms.scale.worst > terms.scale.best else "high"
    return (
        f"Lower and upper are {INTERVALS[intervals.method]} of the mean so far, which hold for all arms and"
        f" all rounds at once with probability at least {1 - intervals.delta:g} ({share}): also for the arm"
        f" that was selected, and whenever the race is looked at.{'' if terms.void else both} The mean of a"
        f" selected arm tends to be too {biased}; its interval allows for that."
    )


def _rows(rows: list[list[str]]) -> str:
    """A table of Markdown, its head first."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def _escaped(text: str) -> str:
    """Text in which nothing is Markdown."""
    return re.sub(r"([\\`*_\[\]<>|#~&$])", r"\\\1", text)
