"""A race in a few lines, fit for a protocol or a paper: as text, as Markdown, as HTML."""

import html
import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from textwrap import fill
from typing import Any, Protocol

import pandas as pd

from ebr.algorithms.elimination import AggressiveElimination
from ebr.algorithms.game import Algorithm
from ebr.live.arm_intervals import in_unit, parameters_of, said
from ebr.live.journal import Journal, Line
from ebr.live.rules import ALGORITHMS, named, word_for_left_out
from ebr.live.words import missing_in_words, rewards_in_words
from ebr.theory.intervals import Simultaneous

NAMES = {
    "AggressiveElimination": "aggressive elimination",
    "DeltaElimination": "δ-elimination with limited rounds",
    "ElasticBatchRacing": "elastic batch racing",
    "Passive": "a passive design",
    "PausingElasticBatchRacing": "pausing elastic batch racing",
    "SequentialRacing": "sequential racing",
    "SharpElasticBatchRacing": "sharp elastic batch racing",
}
MOST_NAMES = 6  # of arms that are spelled out in a sentence
WIDTH = 96  # of a line of text


class Standing(Protocol):
    """What is asked of a race, running or ended."""

    algorithm: Algorithm
    arms: tuple[str, ...]
    round: int
    finished: bool
    recommendation: str | tuple[str, ...] | None
    control: str | None

    @property
    def survivors(self) -> list[str]:
        """The arms of the coming round, or those that are recommended."""

    @property
    def intervals(self) -> pd.DataFrame:
        """A row an arm: pulls, mean, lower, upper, survives."""


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
    arms: pd.DataFrame = field(repr=False)
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


def report_of(
    race: Standing, journal: Journal, intervals: Simultaneous | None, width: float = 1.0, verdict: str = ""
) -> Report:
    """Report of a race as it stands.

    Parameters
    ----------
    race, journal
        The race, and the journal that it was read from.
    intervals
        Those of single arms, or None.
    width
        Of what is 1 to the algorithm, in the rewards' units, in which ε is said.
    verdict
        What else the race says at its end, in a sentence.
    """
    first, table = journal.lines[0], race.intervals.reset_index()
    left_out = "not recommended" if race.finished else word_for_left_out(race.algorithm)
    stays = "recommended" if race.finished else "in the race"
    table["standing"] = table.pop("survives").map({True: stays, False: left_out})
    if intervals is None:
        table = table.drop(columns=["lower", "upper"])
    rounds, most = race.round if race.finished else race.round - 1, race.algorithm.deadline
    so_far = "" if race.finished else " so far"
    facts = {
        "Design": f"{_called(race.algorithm)} on {len(race.arms)} arms: {race.algorithm!r}",
        "Rewards": rewards_in_words(first, race.algorithm, width),
        "Guarantee": _guarantee(race.algorithm, first, width, race.control),
        "Rounds": f"{rounds}{f' of at most {most}' if most else ''}{so_far}",
        "Pulls": f"{table['pulls'].sum():,}{so_far}",
        "Missing": missing_in_words(journal.lines),
        "Result": f"recommended: {named(race.recommendation)}" if race.finished else "none yet",
        "Software": f"ebr {_version()}",
        "Journal": _origin(journal),
    }
    facts = {name: value for name, value in facts.items() if value}
    sentences = f"{_sentences(race, facts, table)} {verdict}".strip()
    return Report(facts, table, sentences, _reading(intervals))


def _called(algorithm: Algorithm) -> str:
    name = type(algorithm).__name__
    return NAMES.get(name, name)


def _guarantee(algorithm: Algorithm, first: Line, width: float, control: str | None) -> str:
    """What holds of the recommendation, if the rewards are independent and what they are taken to be."""
    parameters = parameters_of(algorithm)
    if type(algorithm).__name__ not in ALGORITHMS:
        return "whatever is proved of this algorithm, which is not one of ebr's own"
    normal = parameters.get("rewards") == "Gaussian"
    if normal and in_unit(first["support"]):
        return "none: the algorithm is made for normal rewards"
    surely, epsilon = (
        f"with probability at least {1 - parameters['delta']:g}",
        f"{algorithm.epsilon * width:g}",
    )
    if control is not None:
        return (
            f"{surely} no arm is better than {control}, the control, by {parameters['margin'] * width:g} if"
            f" it is recommended, and another arm is within {epsilon} of the best if that is"
        )
    if isinstance(algorithm, AggressiveElimination):
        return f"if all others are worse by {epsilon} or more, the recommended arm is the best {surely}"
    if parameters.get("k", 1) > 1:
        k = parameters["k"]
        return f"the {k} recommended arms are within {epsilon} of the k-th best, k = {k}, {surely}"
    return f"the recommended arm is within {epsilon} of the best {surely}"


def _version() -> str:
    try:
        return version("ebr")
    except PackageNotFoundError:  # run from its sources
        return "(version unknown)"


def _origin(journal: Journal) -> str:
    """Which journal this is of: its name, how long and of when it is, and its digest."""
    lines = journal.lines
    times = f"{lines[0].get('time', '?')} to {lines[-1].get('time', '?')}"
    return f"{journal.path.name}, {len(lines)} lines, {times}, SHA-256 {lines[-1]['checksum']}"


def _sentences(race: Standing, facts: dict[str, str], table: pd.DataFrame) -> str:
    """What was done and what came of it."""
    arms = f"{len(race.arms)} arms"
    if len(race.arms) <= MOST_NAMES:
        arms += f" ({', '.join(race.arms)})"
    most = race.algorithm.deadline
    within = f" in at most {most} round{'s' if most > 1 else ''}" if most else ""
    were = "were" if race.finished else "are being"
    design = f"{arms} {were} compared by {_called(race.algorithm)}{within} (ebr {_version()})."
    rewards = facts["Rewards"].replace("; ", " and ")
    guarantee = f"Guarantee: {facts['Guarantee']}, if rewards are {rewards}."
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


def _reading(intervals: Simultaneous | None) -> str:
    if intervals is None:
        return "There are no intervals of single arms: the algorithm has no δ for them, or compares blocks."
    both = max(1 - 2 * intervals.delta, 0)
    return (
        f"Lower and upper are {said(intervals)}. They and the guarantee hold together with probability at"
        f" least {both:g}. The mean of a selected arm tends to be too high; its interval allows for that."
    )


def _shown(table: pd.DataFrame) -> pd.DataFrame:
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
