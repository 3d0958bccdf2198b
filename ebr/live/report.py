"""A race in words, for a protocol or a paper: its verdict, its intervals, and a report of everything."""

import base64
import html
import io
import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from string import Template
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ebr.live.journal import Journal
from ebr.live.terms import ALGORITHMS, Terms
from ebr.theory.confidence import Simultaneous, half_width
from ebr.validation import require

if TYPE_CHECKING:  # slow to import, and a race is asked and told without tables
    from pandas import DataFrame

METHODS = {"exact": "exact (Clopper–Pearson)", "KL": "Chernoff (KL)"}
MOST_ROUNDS_SAID = 20  # of a schedule that is listed
UNKNOWN = "normal with a common standard deviation that is not assumed to be known"
WIDTH = 96  # of a line of text
DIGITS = 4  # of a mean, behind the point, where rewards are about 1 wide
# Parameters that other facts say.
SAID = {"n_arms", "deadline", "epsilon", "delta", "sigma", "rewards", "k", "control", "margin"}
SAID |= {"squares", "blocks"}
PAGE = Path(__file__).with_name("report.html")
escaped = partial(re.sub, r"([\\`*_\[\]<>|#~&$])", r"\\\1")  # text in which nothing is Markdown
Chosen = str | tuple[str, ...] | None  # a recommendation: an arm, k arms, or none


def named(recommendation: Chosen) -> str:
    """What a race recommends, in words."""
    names = (recommendation,) if isinstance(recommendation, str) else recommendation or ()
    return ", ".join(names) or "no arm"


def word_for_left_out(race: Any, at_end: str) -> str:
    """What to call an arm that is not in the coming round; one of the k > 1 best may have been accepted."""
    so_far = "paused or out" if race.algorithm.resumes else "decided" if race.algorithm.k > 1 else "out"
    return at_end if race.finished else so_far


def verdict(terms: Terms, recommendation: Chosen, within: float, stopped: bool = False) -> str:
    """The recommended arm in a sentence and, if it may not be `within` ε of the best, what is guaranteed."""
    chosen, aim = f"It recommends {named(recommendation)}", terms.algorithm.epsilon * terms.scale.width
    if doubt := _doubt(terms, within, stopped):
        return f"{chosen}, and guarantees nothing: {doubt}."
    if recommendation is not None and recommendation == terms.control:
        return f"{chosen}, the control: no arm beats it by {rounded_up(within)} or more."
    if aim < within < math.inf:
        why = "it was stopped" if stopped else "rewards are missing"
        return f"{chosen}: within {rounded_up(within)} of the best, not {aim:g}, as {why}."
    return f"{chosen}."


def guarantee(
    terms: Terms, within: float | None, losses: bool, stopped: bool = False, recommendation: Chosen = None
) -> str:
    """What holds of the recommendation; `within` is what the race says at its end, if it has come."""
    algorithm, k, control, width = terms.algorithm, terms.algorithm.k, terms.control, terms.scale.width
    if type(algorithm).__name__ not in ALGORITHMS or algorithm.delta is None:
        return "Whatever is proved of this algorithm, which is not one of ebr's own."
    if doubt := _doubt(terms, within, stopped):
        return f"None: {doubt}."
    epsilon, margin = algorithm.epsilon * width, (algorithm.margin or algorithm.epsilon) * width
    futile = recommendation is not None and recommendation == control
    said = f"The recommended arm is within {epsilon:g} of the best"
    if within is not None and (losses or stopped):
        aim = margin if futile else epsilon
        missed = f" (the aim was {aim:g})" if within > aim * (1 + 1e-9) else ""
        said = f"No arm is better than the recommended one by {rounded_up(within)}{missed}"
    elif futile:
        said = f"No arm beats {control}, the control, by {margin:g} or more,"
    elif control is not None and within is None:
        said = f"If {control}, the control, is recommended, no arm beats it by {margin:g} or more. If another"
        said += f" arm is, it is within {epsilon:g} of the best. Either holds"
    elif algorithm.needs_gap:
        said = f"If all others are worse by {epsilon:g} or more, the recommended arm is the best"
    elif k > 1:
        said = f"The {k} recommended arms are within {epsilon:g} of the k-th best, k = {k},"
    less = " Less is guaranteed if rewards are still missing at the end." if losses and within is None else ""
    return f"{said} with probability at least {1 - algorithm.delta:g}.{less}"


def _doubt(terms: Terms, within: float | None, stopped: bool) -> str | None:
    """Why nothing is guaranteed, if so."""
    lost = within == math.inf and not terms.algorithm.needs_gap
    why = "it was stopped too early" if stopped else "too many rewards are missing"
    return terms.void or (why if lost else None)


def rounded_up(value: float) -> str:
    """Three digits, rounded up, so that they promise no more than the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit - 1e-9) * unit:.3g}"


def digits(terms: Terms) -> Callable[[Any], str]:
    """How to write what tables hold: means and ends of intervals with digits by the width of the scale."""
    width = terms.support[1] - terms.support[0] if terms.support else 2 * _model(terms)[1]
    places = DIGITS - math.floor(math.log10(width)) if math.isfinite(width) else DIGITS
    form = f".{max(places, 0)}f" if places <= 12 else f".{DIGITS + 1}g"

    def spelled(value: Any) -> str:
        if isinstance(value, float):
            return "-" if math.isnan(value) else format(value, form)
        return value if isinstance(value, str) else f"{value:,}"

    return spelled


def intervals_of(terms: Terms, losses: bool = False) -> Simultaneous | None:
    """Choose the intervals of single arms; None without δ or σ, and in blocks, where σ is of differences."""
    algorithm = terms.algorithm
    if algorithm.delta is None or terms.blocks or terms.spread_unknown:
        return None
    fixed = algorithm.fixed_given_losses if losses else algorithm.fixed_counts
    looks, (method, sigma) = algorithm.deadline if fixed else None, _model(terms)
    return Simultaneous(method, algorithm.delta, len(terms.arms), looks, terms.support, sigma)


def _model(terms: Terms) -> tuple[str, float]:
    """The method of intervals by the reward model in the journal, which is enforced; σ in rewards' units."""
    normal = "Gaussian" in (terms.rewards, terms.algorithm.model(None))
    sigma = terms.algorithm.sigma * terms.scale.width
    if terms.rewards == "Bernoulli":
        return "exact", sigma
    if terms.support is None:
        return "normal" if normal else "Hoeffding", sigma
    low, high = terms.support  # used if it is narrower than σ says, and where rewards cannot be normal
    return "KL" if normal or sigma >= (high - low) / 2 else "Hoeffding", sigma


@dataclass(frozen=True, repr=False)
class Report:
    """What `Race.report` returns: print it, or take `markdown()` or `html()`, a page with a picture."""

    facts: dict[str, str]  # in words, by name
    tables: dict[str, "DataFrame"]  # by title
    reading: str  # how intervals and means are to be read
    _shown: dict[str, "DataFrame"]  # the tables in words
    _drawn: tuple[Any, Any, Any]

    def __str__(self) -> str:
        margin = 2 + max(map(len, self.facts))
        indented = partial(fill, width=WIDTH, subsequent_indent=" " * margin)
        facts = [indented(value, initial_indent=name.ljust(margin)) for name, value in self.facts.items()]
        tables = [f"{title}\n{table.to_string(index=False)}" for title, table in self._shown.items()]
        return "\n\n".join(["\n".join(facts), *tables, fill(self.reading, WIDTH)])

    def markdown(self) -> str:
        """The report as Markdown: tables and a paragraph."""
        parts = [_markdown_table([("", ""), *self.facts.items()])]
        for title, table in self._shown.items():
            parts += [f"**{title}**", _markdown_table([table.columns, *table.to_numpy()])]
        return "\n\n".join([*parts, escaped(self.reading)])

    def html(self) -> str:
        """The report as a page of its own, which needs no other file."""
        from matplotlib import rc_context

        from ebr.live.plots import draw_race

        drawn = io.BytesIO()
        with rc_context({"svg.hashsalt": "ebr"}):  # so that the same race is the same page
            draw_race(*self._drawn).savefig(drawn, format="svg", metadata={"Date": None}, bbox_inches="tight")
        picture = base64.b64encode(drawn.getvalue()).decode()
        title = html.escape(f"Report ({self.facts['Result']})")
        page = Template(PAGE.read_text(encoding="utf-8").rstrip())
        return page.substitute(title=title, tables=self._repr_html_(), picture=picture)

    def _repr_html_(self) -> str:
        import pandas as pd

        with pd.option_context("display.max_colwidth", None):  # to_html cuts long cells, and escapes all
            facts = pd.DataFrame(self.facts.values(), index=pd.Index(self.facts))
            parts = [facts.to_html(header=False, border=0, classes="facts")]
            for title, table in self._shown.items():
                parts.append(f"<h2>{title}</h2>\n{table.to_html(index=False, border=0)}")
        return "\n".join([*parts, f"<p>{html.escape(self.reading)}</p>"])


def _markdown_table(rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown, its head first."""
    head, *body = ([escaped(cell) for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body))


def drawn(race: Any) -> tuple[Any, Any, Any]:
    """What is drawn of a race as it stands; matplotlib, which is slow, is loaded when it is drawn."""
    labels = "recommended" if race.finished else "in the race", word_for_left_out(race, "others")
    return race.history, race.intervals["survives"], labels


def report_of(race: Any, journal: Journal, word: str) -> Report:
    """Report of a race (an `ebr.Race`) as it stands, from its journal."""
    said = isinstance(word, str) and word.strip() and word.isprintable()
    require(said, "word", "be what pulls are called, for instance 'subjects'", word)
    terms, history = race.terms, race.history
    losses = any("missing" in line for line in journal.lines)
    intervals, rounds = intervals_of(terms, losses), _by_round(history, journal)
    tables, reading = {"Arms": _by_arm(race, rounds), "Round by round": rounds}, _reading(intervals, terms)
    if terms.control is not None and terms.algorithm.delta is not None and not terms.spread_unknown:
        tables["Differences from the control"], way = _differences(terms, history, intervals)
        reading += f" {way}"
    spelled, shown = digits(terms), {}
    for title, table in tables.items():  # intervals, late and missing rewards only where there are some
        none = [name for name in ("late", "missing") if name in table and not table[name].any()]
        words = table.drop(columns=none).dropna(axis="columns", how="all").map(spelled)
        if len(table):
            shown[title] = words.rename(columns={"pulls": word})
    return Report(_facts(race, journal, rounds, losses, word), tables, reading, shown, drawn(race))


def _by_round(history: "DataFrame", journal: Journal) -> "DataFrame":
    """The rows of "Round by round"."""
    pairs = [(ask, tell) for ask, tell in pairwise(journal.lines) if tell["event"] == "tell"]
    asked = [ask["pulls"][arm] for ask, tell in pairs for arm in tell["rewards"]]
    late = [tell.get("late", {}).get(arm, [0])[0] for _, tell in pairs for arm in tell["rewards"]]
    table = history.rename(columns={"mean": "mean so far"}).assign(asked=asked, late=late)
    table = table.assign(missing=table["asked"] - table["pulls"], mean=table["sum"] / table["pulls"])
    columns = ["round", "arm", "asked", "pulls", "late", "missing", "mean", "mean so far", "lower", "upper"]
    return table[columns].astype({"asked": int, "late": int, "missing": int})


def _by_arm(race: Any, rounds: "DataFrame") -> "DataFrame":
    """The rows of "Arms"."""
    table: DataFrame = race.intervals.reset_index()
    survives = table.pop("survives")
    told = rounds.groupby("arm").agg({"missing": "sum", "late": "sum", "round": "max"})
    told = told.reindex(table["arm"], fill_value=0).reset_index()
    table.insert(2, "missing", told["missing"] - told["late"])
    alive = "recommended" if race.finished else "in the race"
    standing = survives.map({True: alive, False: word_for_left_out(race, "not recommended")})
    early = (told["round"] < told["round"].max()) | (not race.finished)
    dropped = ~survives & early & (race.algorithm.k == 1 and not race.algorithm.resumes)
    standing = standing.mask(dropped, "dropped after round " + told["round"].astype(str))
    return table.assign(**{"last round": told["round"], "standing": standing})


def _differences(terms: Terms, rows: "DataFrame", intervals: Simultaneous | None) -> tuple["DataFrame", str]:
    """The rows of "Differences from the control", and what their intervals rest on.

    Let N and N′ be the counts of an arm and the control after the last round of both. Where they are fixed,
    and in blocks, the difference of means is σ√(1/N + 1/N′)-sub-Gaussian, with σ at most half the support's
    width (Hoeffding's lemma). Each may miss with δ/((n−1)T), in blocks whose N = N′ depends on rewards with
    δ/((n−1)N(N+1)). Otherwise the ends of the single intervals are subtracted.
    """
    delta, rivals, most = terms.algorithm.delta or 0.0, len(terms.arms) - 1, terms.algorithm.deadline or 1
    rows = rows[rows["total"] > 0]
    both = rows.merge(rows[rows["arm"] == terms.control], on="round", suffixes=("", "_control"))
    both = both[both["arm"] != terms.control].groupby("arm", sort=False, as_index=False).last()
    gap = both["mean"] - both["mean_control"]
    if intervals is not None and intervals.looks is None:
        lower, upper = both["lower"] - both["upper_control"], both["upper"] - both["lower_control"]
        hold = "follow from those of single arms, and hold whenever these do"
    else:
        method, sigma = _model(terms)
        if terms.support and not terms.blocks and method != "Hoeffding":
            sigma = (terms.support[1] - terms.support[0]) / 2
        counts, fixed = 1 / (1 / both["total"] + 1 / both["total_control"]), terms.algorithm.fixed_counts
        looks = most if fixed else (both["total"] * (both["total"] + 1)).to_numpy()
        width = half_width(method, counts, delta / (rivals * looks), sigma)
        lower, upper = gap - width, gap + width
        over = f"{rivals} arms × {most} rounds" if fixed else f"{rivals} arms × all counts"
        hold = f"all hold at once with probability at least {1 - delta:g} ({over})"
    better = "below" if terms.scale.worst > terms.scale.best else "above"
    columns = {"after round": both["round"], "difference": gap, "lower": lower, "upper": upper}
    said = f"Differences are means minus the control's, after the last round of both; {better} 0 is better."
    return both[["arm"]].assign(**columns), f"{said} Their intervals {hold}."


def _facts(race: Any, journal: Journal, rounds: "DataFrame", losses: bool, word: str) -> dict[str, str]:
    """The report's facts in words."""
    terms, most, lines = race.terms, race.algorithm.deadline, journal.lines
    so_far, told = "" if race.finished else " so far", rounds["round"].nunique()
    ended = f"; the race was stopped in round {told + 1}" if race.stopped else ""
    when = " to ".join(line.get("time", "?") for line in (lines[0], lines[-1]))
    return {
        "Design": _design(terms, word),
        "Aim": _aim(terms),
        "Rewards": _rewards(terms, losses),
        "Guarantee": guarantee(terms, race.within, losses, race.stopped, race.recommendation),
        "Rounds": f"{told}{f' of at most {most}' if most else ''}{so_far}{ended}",
        word[:1].upper() + word[1:]: f"{rounds['pulls'].sum():,}{so_far}",
        "Result": f"recommended: {named(race.recommendation) if race.finished else 'nothing yet'}",
        "Software": f"ebr {version()}",
        "Journal": f"{journal.path.name}, {len(lines)} lines, {when}, SHA-256 {lines[-1]['checksum']}",
    }


def _design(terms: Terms, word: str) -> str:
    """The design in words: algorithm, arms, rounds, schedule, and parameters that are not the defaults."""
    algorithm: Any = terms.algorithm
    kind, most, n_arms = type(algorithm).__name__, algorithm.deadline, len(terms.arms)
    rounds = f" in at most {most} round{'s'[: most > 1]}" if most else ""
    parts = [f"{ALGORITHMS.get(kind, kind)} on {n_arms} arms{rounds}"]
    schedule = algorithm.pulls_by_round(n_arms, terms.rewards)
    counts = () if schedule is None else tuple(schedule.tolist())
    if 0 < len(counts) <= MOST_ROUNDS_SAID:
        listed = ", ".join(f"{count:,}" for count in counts)
        parts.append(f"{word} of an arm after each round, at most, if no reward is missing: {listed}")
    if terms.squares:
        parts.append("uses how much rewards vary (sums of squares)")
    for each in fields(algorithm):
        value = getattr(algorithm, each.name)
        if each.name not in SAID and value not in (each.default, counts):
            parts.append(f"{each.name.replace('_', ' ')}: {str(value).strip('(,)')}")
    return "; ".join(parts)


def _aim(terms: Terms) -> str:
    """What is looked for, in the rewards' units, and which direction is better."""
    algorithm, width = terms.algorithm, terms.scale.width
    what, means = ("the arm", "mean") if algorithm.k == 1 else (f"the {algorithm.k} arms", "means")
    direction = "smallest" if terms.scale.worst > terms.scale.best else "largest"
    margin = f"; control: {terms.control}, to be beaten by a margin of {(algorithm.margin or 0) * width:g}"
    little = f"differences below ε = {algorithm.epsilon * width:g} do not matter"
    return f"{what} with the {direction} {means}; {little}{margin if terms.control else ''}"


def _rewards(terms: Terms, losses: bool) -> str:
    """What rewards are taken to be."""
    method, sigma = _model(terms)
    sigma *= 2**0.5 if terms.blocks else 1
    kind = f"normal with σ = {sigma:g}" if method == "normal" else f"{sigma:g}-sub-Gaussian"
    kind = UNKNOWN if terms.spread_unknown else kind
    limits = "between {:g} and {:g}".format(*terms.support) if terms.support else ""
    each = {"exact": "0 or 1", "KL": limits}.get(method, f"{kind} and {limits}" if limits else kind)
    lost = "; missing or late for reasons that have nothing to do with any of them" if losses else ""
    if terms.blocks:
        return f"taken to be in independent blocks; differences of arms within a block are {kind}{lost}"
    return f"taken to be independent; each is {each}{lost}"


def version() -> str:
    """The version of the package that is installed."""
    from importlib import metadata  # slow, and seldom needed

    with suppress(metadata.PackageNotFoundError):
        return metadata.version("ebr")
    return "(version unknown)"  # run from its sources


def _reading(intervals: Simultaneous | None, terms: Terms) -> str:
    """How the intervals are to be read."""
    if intervals is None:
        why = "the algorithm has no δ for them, compares blocks, or does not know the rewards' spread"
        return f"There are no intervals of single arms: {why}."
    over = f"{intervals.n_arms} arms × {intervals.looks} rounds" if intervals.looks else "all counts"
    biased = "low" if terms.scale.worst > terms.scale.best else "high"
    return (
        f"Lower and upper are {METHODS.get(intervals.method, intervals.method)} intervals of the mean so far."
        f" They hold at once for all arms and rounds with probability at least {1 - intervals.delta:g} (union"
        f" over {over}), so also for a selected arm. The mean of a selected arm tends to be too {biased}."
    )
