"""A race in words, for a protocol or a paper: its intervals, its verdict, and a report of all of it.

Which intervals a report may give of single arms (exact, KL, normal, Hoeffding's) is chosen here, by what is
known of the rewards; also the sentence that a race says at its end, where there is a control and without.
"""

import html
import math
import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import pairwise
from textwrap import fill
from typing import TYPE_CHECKING, Any, Protocol

from ebr.algorithms.game import Algorithm
from ebr.live.journal import Journal, Line
from ebr.live.terms import ALGORITHMS, Terms
from ebr.theory.intervals import Simultaneous

if TYPE_CHECKING:  # slow to import, and a race is asked and told without tables
    import pandas as pd

INTERVALS = {
    "exact": "exact (Clopper–Pearson) intervals",
    "KL": "Chernoff (KL) intervals",
    "normal": "normal intervals",
    "Hoeffding": "Hoeffding intervals",
}
MOST_NAMES = 6  # of arms that are spelled out in a sentence
WIDTH = 96  # of a line of text
NOTHING_CAME = "of some arm no reward has come in"
Chosen = str | tuple[str, ...] | None  # what a race recommends: an arm, k of them, or none


class Standing(Protocol):
    """What is asked of a race, running or ended."""

    terms: Terms
    round: int
    finished: bool
    recommendation: Chosen
    stopped: bool

    @property
    def within(self) -> float | None:
        """How far from the best what is recommended may be; None before the end."""

    @property
    def verdict(self) -> str:
        """What it says at its end."""

    @property
    def intervals(self) -> "pd.DataFrame":
        """A row an arm: pulls, mean, lower, upper, survives."""


def named(recommendation: Chosen) -> str:
    """What a race recommends, in words."""
    names = (recommendation,) if isinstance(recommendation, str) else recommendation or ()
    return ", ".join(names) or "no arm"


def word_for_left_out(algorithm: Algorithm) -> str:
    """What to call an arm that the coming round leaves out.

    Where the k > 1 best are looked for it may have been accepted as well as dropped.
    """
    if algorithm.resumes:
        return "paused or out"
    return "decided" if algorithm.k > 1 else "out"


def verdict(terms: Terms, recommendation: Chosen, within: float, stopped: bool = False) -> str:
    """What a race says at its end: whom it recommends and, where that is not within ε, what is guaranteed.

    `within` is how far from the best that may be, in the units of the rewards.
    """
    chosen, asked = f"It recommends {named(recommendation)}", terms.algorithm.epsilon * terms.scale.width
    if terms.algorithm.needs_gap:
        return f"{chosen}."
    if math.isinf(within):
        why = "it was stopped too early" if stopped else NOTHING_CAME
        return f"{chosen}, and guarantees nothing: {terms.void or why}."
    if terms.control is not None and recommendation == terms.control:
        return f"{chosen}, the control: no arm is better than it by {rounded_up(within)}."
    if within > asked:
        why = "it was stopped" if stopped else "rewards are missing"
        return f"{chosen}: within {rounded_up(within)} of the best, not {asked:g}, as {why}."
    return f"{chosen}."


def rounded_up(value: float) -> str:
    """Three digits that promise no more than the value does."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit - 1e-9) * unit:.3g}"


def intervals_of(terms: Terms, losses: bool = False) -> Simultaneous | None:
    """Choose the intervals of a race's arms; None if its algorithm has no δ to be shared among them.

    Nor are there any in blocks, where σ is of differences and says nothing of an arm alone. `losses` says
    whether rewards were missing. Counts are then fixed given which, but for arms that pause: how often one
    was pulled depends on where it paused.
    """
    algorithm, sigma = terms.algorithm, terms.algorithm.sigma * terms.scale.width
    if algorithm.delta is None or terms.blocks:
        return None
    fixed = algorithm.fixed_counts and not (losses and algorithm.resumes)
    looks = algorithm.deadline if fixed else None
    return Simultaneous(_method(terms), algorithm.delta, len(terms.arms), looks, terms.support, sigma)


def _method(terms: Terms) -> str:
    """By what is known: the journal has the last word, as what it says is enforced."""
    if terms.rewards == "Bernoulli":
        return "exact"
    if _normal(terms):
        return "normal"
    return "KL" if _by_support(terms) else "Hoeffding"


def _said_normal(terms: Terms) -> bool:
    """Whether rewards are said to be normal, or the algorithm takes them to be so whatever it is told."""
    return "Gaussian" in (terms.rewards, terms.algorithm.model(None))


def _normal(terms: Terms) -> bool:
    """Whether that may be so: what lies between two numbers is not normal."""
    return terms.support is None and _said_normal(terms)


def _by_support(terms: Terms) -> bool:
    """Whether the support says more of the rewards than σ does, or a σ of normal ones says nothing."""
    if terms.support is None:
        return False
    low, high = terms.support
    return _said_normal(terms) or terms.algorithm.sigma * terms.scale.width >= (high - low) / 2


@dataclass(frozen=True)
class Report:
    """What `Race.report` returns: print it, or take `markdown()` or `html()`.

    Attributes
    ----------
    facts
        Design, rewards, guarantee, rounds, pulls, result, software and journal, each in words.
    arms
        A row an arm: pulls, mean, the ends of its interval, and where it stands.
    sentences
        A paragraph that says what was done and found.
    reading
        How the intervals, and the means beside them, are to be read.
    """

    facts: dict[str, str]
    arms: "pd.DataFrame" = field(repr=False)
    sentences: str
    reading: str

    def __str__(self) -> str:
        margin = 2 + max(map(len, self.facts))
        facts = [
            fill(value, WIDTH, initial_indent=f"{name:<{margin}}", subsequent_indent=" " * margin)
            for name, value in self.facts.items()
        ]
        paragraphs = [fill(text, WIDTH) for text in (self.sentences, self.reading)]
        return "\n\n".join(["\n".join(facts), _shown(self.arms).to_string(index=False), *paragraphs])

    def markdown(self) -> str:
        """The report as Markdown: two tables and two paragraphs."""
        facts = [["", ""], *([f"**{name}**", _escaped(value)] for name, value in self.facts.items())]
        table = _shown(self.arms)
        arms = [list(table.columns), *([_escaped(cell) for cell in row] for row in table.to_numpy())]
        return "\n\n".join([_rows(facts), _rows(arms), _escaped(self.sentences), _escaped(self.reading)])

    def html(self) -> str:
        """The report as a page of its own."""
        title = html.escape(f"Report: {self.facts['Result']}")
        head = f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>'
        return f"{head}\n<body>\n{self._repr_html_()}\n</body>\n</html>"

    def _repr_html_(self) -> str:
        facts = "\n".join(
            f"<tr><th scope='row'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.facts.items()
        )
        paragraphs = "\n".join(f"<p>{html.escape(text)}</p>" for text in (self.sentences, self.reading))
        table = _shown(self.arms).to_html(index=False, border=0)  # which escapes the arms' names
        return f"<table>\n{facts}\n</table>\n{table}\n{paragraphs}"


def report_of(race: Standing, journal: Journal, intervals: Simultaneous | None) -> Report:
    """Report of a race as it stands, from its journal, with these intervals of single arms, if any."""
    terms, algorithm, table = race.terms, race.terms.algorithm, race.intervals.reset_index()
    left_out = "not recommended" if race.finished else word_for_left_out(algorithm)
    stays = "recommended" if race.finished else "in the race"
    table["standing"] = table.pop("survives").map({True: stays, False: left_out})
    if intervals is None:
        table = table.drop(columns=["lower", "upper"])
    missing = _missing(journal.lines)
    rounds, most = race.round if race.finished else race.round - 1, algorithm.deadline
    so_far = "" if race.finished else " so far"
    facts = {
        "Design": f"{_called(algorithm)} on {len(terms.arms)} arms: {algorithm!r}",
        "Rewards": _rewards(terms),
        "Guarantee": guarantee(terms, race.within, missing != "", race.stopped),
        "Rounds": f"{rounds}{f' of at most {most}' if most else ''}{so_far}",
        "Pulls": f"{table['pulls'].sum():,}{so_far}",
        "Missing": missing,
        "Result": f"recommended: {named(race.recommendation)}" if race.finished else "none yet",
        "Software": f"ebr {_version()}",
        "Journal": _origin(journal),
    }
    facts = {name: value for name, value in facts.items() if value}
    usual = f"It recommends {named(race.recommendation)}."
    more = "" if race.verdict == usual else race.verdict
    sentences = f"{_sentences(race, facts, table)} {more}".strip()
    return Report(facts, table, sentences, _reading(intervals, terms.void is None))


def _called(algorithm: Algorithm) -> str:
    name = type(algorithm).__name__
    return ALGORITHMS.get(name, name)


def _rewards(terms: Terms) -> str:
    """What rewards are known or taken to be."""
    support, sigma = terms.support, terms.algorithm.sigma * terms.scale.width
    if terms.blocks:
        root = 2**0.5 * sigma
        kind = f"normal with σ = {root:g}" if _normal(terms) else f"{root:g}-sub-Gaussian"
        return f"in independent blocks; differences of arms within a block are {kind}"
    within = f"lies between {support[0]:g} and {support[1]:g}" if support else ""
    if terms.rewards == "Bernoulli":
        each = f"{within} and is made 0 or 1 by lot" if terms.rounding else "is 0 or 1"
    elif _by_support(terms):
        each = within
    else:
        kind = f"is normal with σ = {sigma:g}" if _normal(terms) else f"is {sigma:g}-sub-Gaussian"
        each = f"{kind} and {within}" if within else kind
    return f"independent; each {each}"


def guarantee(terms: Terms, within: float | None, losses: bool, stopped: bool = False) -> str:
    """What holds of the recommendation, if the rewards are independent and what they are taken to be.

    `within` is what the race says at its end, if it has come; `losses` whether rewards were missing.
    """
    algorithm, width = terms.algorithm, terms.scale.width
    if type(algorithm).__name__ not in ALGORITHMS or algorithm.delta is None:
        return "whatever is proved of this algorithm, which is not one of ebr's own"
    if terms.void:
        return f"none: {terms.void}"
    surely, epsilon = f"with probability at least {1 - algorithm.delta:g}", f"{algorithm.epsilon * width:g}"
    if (losses or stopped) and within is not None:
        better = f"no arm is better than the recommended one by {{}} {surely}"
        why = "it was stopped too early" if stopped else NOTHING_CAME
        return f"none: {why}" if math.isinf(within) else better.format(rounded_up(within))
    if losses:
        return f"{_asked(terms, surely, epsilon)}; less is guaranteed if rewards are still missing at the end"
    return _asked(terms, surely, epsilon)


def _asked(terms: Terms, surely: str, epsilon: str) -> str:
    """What was asked for, and holds if no reward is missing."""
    algorithm, width = terms.algorithm, terms.scale.width
    if algorithm.margin is not None:
        return (
            f"{surely} no arm is better than {terms.control}, the control, by {algorithm.margin * width:g} if"
            f" it is recommended, and another arm is within {epsilon} of the best if that is"
        )
    if algorithm.needs_gap:
        return f"if all others are worse by {epsilon} or more, the recommended arm is the best {surely}"
    if (k := algorithm.k) > 1:
        return f"the {k} recommended arms are within {epsilon} of the k-th best, k = {k}, {surely}"
    return f"the recommended arm is within {epsilon} of the best {surely}"


def _missing(lines: list[Line]) -> str:
    """How many rewards were missing, and why; nothing if none were."""
    short = [
        sum(ask["pulls"].values()) - sum(count for count, *_ in tell["rewards"].values())
        for ask, tell in pairwise(lines)
        if "missing" in tell
    ]
    return f"{sum(short):,} rewards in {len(short)} round{'s'[: len(short) > 1]}, at random" if short else ""


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow, and needed by a report alone

    try:
        return version("ebr")
    except PackageNotFoundError:  # run from its sources
        return "(version unknown)"


def _origin(journal: Journal) -> str:
    """Which journal this is of: its name, how long and of when it is, and its digest."""
    lines = journal.lines
    times = f"{lines[0].get('time', '?')} to {lines[-1].get('time', '?')}"
    return f"{journal.path.name}, {len(lines)} lines, {times}, SHA-256 {lines[-1]['checksum']}"


def _sentences(race: Standing, facts: dict[str, str], table: "pd.DataFrame") -> str:
    """What was done and what came of it."""
    names, algorithm = race.terms.arms, race.terms.algorithm
    arms = f"{len(names)} arms" + (f" ({', '.join(names)})" if len(names) <= MOST_NAMES else "")
    most = algorithm.deadline
    within = f" in at most {most} round{'s' if most > 1 else ''}" if most else ""
    were = "were" if race.finished else "are being"
    design = f"{arms} {were} compared by {_called(algorithm)}{within} (ebr {_version()})."
    rewards = facts["Rewards"].replace("; ", " and ")
    if "Missing" in facts:
        rewards += ", and missing for reasons that have nothing to do with any of them"
    promised = not facts["Guarantee"].startswith("none")
    guarantee = f"Guarantee: {facts['Guarantee']}" + (f", if rewards are {rewards}." if promised else ".")
    rounds, pulls = facts["Rounds"].split()[0], f"{table['pulls'].sum():,} pulls"
    plural = "" if rounds == "1" else "s"
    if not race.finished:
        end = f"So far, after {rounds} round{plural} and {pulls}, nothing is recommended."
    else:
        rows = table[table["standing"] == "recommended"]
        means = ", ".join(map(_estimate, rows.to_dict("records")))
        end = f"The race ended after round {rounds} and {pulls}; it recommends {means or 'no arm'}."
    return f"{design} {guarantee} {end}"


def _estimate(row: dict[Hashable, Any]) -> str:
    """An arm with its mean and interval."""
    interval = f", interval {row['lower']:.4f} to {row['upper']:.4f}" if "lower" in row else ""
    return f"{row['arm']} (mean {row['mean']:.4f}{interval})"


def _reading(intervals: Simultaneous | None, promised: bool) -> str:
    """How the intervals are to be read, in a few sentences."""
    if intervals is None:
        return "There are no intervals of single arms: the algorithm has no δ for them, or compares blocks."
    least = max(1 - 2 * intervals.delta, 0)
    both = f" They and the guarantee hold together with probability at least {least:g}."
    if intervals.looks is None:
        share = "a union over all counts of pulls that there might be"
    else:
        each = intervals.delta / (intervals.n_arms * intervals.looks)
        share = f"{intervals.n_arms} arms × {intervals.looks} rounds, each at level 1 − {each:.2g}"
    return (
        f"Lower and upper are {INTERVALS[intervals.method]}, which hold for all arms and all rounds at once"
        f" with probability at least {1 - intervals.delta:g} ({share}): also for the arm that was selected,"
        f" and whenever the race is looked at.{both if promised else ''} The mean of a selected arm tends to"
        " be too high; its interval allows for that."
    )


def _shown(table: "pd.DataFrame") -> "pd.DataFrame":
    """The arms' table in words."""
    shown = table.copy()
    shown["pulls"] = shown["pulls"].map("{:,}".format)
    for name in ("mean", "lower", "upper"):
        if name in shown:
            shown[name] = [f"{value:.4f}" if value == value else "-" for value in shown[name]]
    return shown


def _rows(rows: list[list[str]]) -> str:
    """A table of Markdown, its head first."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def _escaped(text: str) -> str:
    """Text in which nothing is Markdown."""
    return re.sub(r"([\\`*_\[\]<>|#~&$])", r"\\\1", text)
