"""The command line, `python -m ebr`: plan, start, ask, tell and look at a race from a terminal.

First what commands do, then their options, then what they say and how it is written. What a command needs is
loaded by the command: help and refusals come at once.
"""

import argparse
import io
import math
import os
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import ebr
from ebr.models import REWARDS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ebr.live.plan import Plan
    from ebr.live.race import Race

EXAMPLE = """\
an experiment, from its start to its end:
  python -m ebr plan --arms 3 --deadline 6 --epsilon 0.05  which race, and what it costs
  python -m ebr plan --arms A B C --deadline 6 --epsilon 0.05 --start trial.jsonl
  python -m ebr ask trial.jsonl                            how often to try each arm in this round
  python -m ebr tell --round=1 trial.jsonl A=120:67 B=...  number : successes (or the sum of rewards)
  python -m ebr tell --round=1 --file=rewards.csv trial.jsonl  or a row for each reward
  python -m ebr status trial.jsonl                         where it stands; then ask again
  python -m ebr plot trial.jsonl                           a picture of it, trial.png
  python -m ebr stop trial.jsonl                           end it early, with what can be said
  python -m ebr report trial.jsonl --format markdown       for a protocol or a paper

exit status: 0 done, 2 refused, 3 done but the output could not be written, 130 interrupted"""
SINGLE_REWARDS = """\
(rewards.csv: columns arm and reward, one row per pull. ARM=COUNT:SUM is accepted too, but does not show how
little rewards vary: unless each of them is 0 or 1, the race may then need many more pulls)"""
REFUSED, UNSAID, INTERRUPTED = 2, 3, 130  # exit statuses
Said = Callable[[], str]  # what a command says once it is done
KINDS = ("sharp", "pausing", "staked", "certified", "ebr")  # the races that can be asked for


class Parser(argparse.ArgumentParser):
    """Errors in one line; -1e3 is a number, also where argparse does not know it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._negative_number_matcher = re.compile(r"-[.\d]+(e[+-]?\d+)?$", re.IGNORECASE)

    def error(self, message: str) -> NoReturn:
        """Print the error and leave with status 2."""
        _complain(f"error: {message} (see {self.prog} --help)")
        self.exit(REFUSED)


class Version(argparse.Action):
    """Print the version and leave."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Look it up only now: no other command needs it."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("ebr")
        except PackageNotFoundError:
            number = "of a folder that is not installed"
        parser.exit(_end(_written(f"ebr {number}\n")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns 0; 2 if it was refused, with the reason on standard error; 3 if it was done, but what it says
    could not be written; 130 if it was interrupted.
    """
    options = argparse.Namespace()

    def leave(*_: object) -> NoReturn:
        """End at once: numpy makes another error of an interrupt while it is loaded."""
        _complain_of_interrupt(options)
        os._exit(INTERRUPTED)

    if arguments is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)
    try:
        _replace_letters()
        parser = _parser()
        _, rest = parser.parse_known_args(arguments, options)
        _take_in(rest, options, parser)
        return _run(options)
    except SystemExit as end:  # argparse's own way out
        return int(end.code or 0) or _end(_written(""))
    except KeyboardInterrupt:
        _complain_of_interrupt(options)
        return INTERRUPTED


def _complain_of_interrupt(options: argparse.Namespace) -> None:
    _complain(f"interrupted{_look(options, ': see whether it was recorded with')}")


def _take_in(rest: list[str], options: argparse.Namespace, parser: Parser) -> None:
    """Accept rewards that follow an option, which argparse may leave over; refuse all else."""
    place = rest.index("--") if "--" in rest else len(rest)
    if rest and (options.run is not tell or any(word.startswith("-") for word in rest[:place])):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.rewards = [*options.rewards, *rest[:place], *rest[place + 1 :]]


def _run(options: argparse.Namespace) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: _complain(f"warning: {message}")
        try:
            said: Said = options.run(options)
        except (ValueError, OSError) as error:
            file, why = getattr(error, "filename", None), getattr(error, "strerror", None)
            _complain(f"error: {file}: {why}" if file and why else f"error: {error}")
            return REFUSED
        # The command is done, even if its output cannot be written.
        return _end(_written(said() + "\n"), _look(options, ": do not repeat it, look with"))


def _end(unwritten: str | None, advice: str = "") -> int:
    """The exit status after a command whose output was written, or could not be."""
    if unwritten is None:
        return 0
    done = "recorded, but " if advice else ""
    _complain(f"warning: {done}the output could not be written ({unwritten}){advice}")
    return UNSAID


def _look(options: argparse.Namespace, words: str) -> str:
    """Where to look after a command that records something; empty for other commands."""
    journal = getattr(options, "start" if getattr(options, "run", None) is plan else "journal", None)
    if journal is None or options.run not in (start, ask, tell, stop, plan):
        return ""
    return f"{words} {_shell_line('status', journal)}"


def start(options: argparse.Namespace) -> Said:
    """Begin the race that plan recommends, or that of --algorithm; or go on with the same race."""
    made = _planned(options)
    with made.start(options.journal, options.arms, options.control or None) as race:
        return lambda: f"{made.why}\n{standing(race, options.journal)}"


def _limits(options: argparse.Namespace) -> Any:
    """The support that was given; "usual" if none was."""
    said = "usual" if options.support is None else tuple(options.support)
    return None if options.unbounded else said


def ask(options: argparse.Namespace) -> Said:
    """Say how often to pull each arm in this round."""
    with ebr.Race.open(options.journal) as race:
        pulls = race.ask()
        return lambda: asking(race, pulls, options.journal)


def tell(options: argparse.Namespace) -> Said:
    """Take in a round's rewards."""
    from ebr.live.rewards import blocks_from_file, from_file, from_words

    def from_blocks(name: str) -> Any:
        return blocks_from_file(name, ebr.Race.open(options.journal, readonly=True).arms)

    readers = {"rewards": from_words, "file": from_file, "blocks": from_blocks}
    given = [name for name in readers if getattr(options, name)]
    if len(given) != 1:
        raise ValueError("give either ARM=COUNT:SUM for each arm or --file or --blocks")
    rewards: Any = readers[given[0]](getattr(options, given[0]))
    with ebr.Race.open(options.journal) as race:
        late = from_words(options.late) if options.late else None
        race.tell(rewards, options.round, options.missing, late)
        return lambda: standing(race, options.journal)


def stop(options: argparse.Namespace) -> Said:
    """End the race now, with what can be said now; rewards asked for and not told do not count."""
    with ebr.Race.open(options.journal) as race:
        race.stop()
        return lambda: standing(race, options.journal)


def status(options: argparse.Namespace) -> Said:
    """Say where the race stands; this changes nothing, and works while another process writes."""
    with ebr.Race.open(options.journal, readonly=True) as race:
        return lambda: standing(race, options.journal)


def report(options: argparse.Namespace) -> Said:
    """Sum up a race for a protocol or a paper; this changes nothing."""
    with ebr.Race.open(options.journal, readonly=True) as race:
        made = race.report(options.word)
    return {"text": made.__str__, "markdown": made.markdown, "html": made.html}[options.format]


def certify(options: argparse.Namespace) -> Said:
    """Check a certified race again, by a computation of its own (seconds); this changes nothing."""
    with ebr.Race.open(options.journal, readonly=True) as race:
        design, n_arms = race.terms.line()["parameters"], len(race.arms)
        kind = type(race.algorithm).__name__
    if "boundaries" not in design:
        raise ValueError(f"{options.journal} must be of a certified race, got {kind}")
    from ebr.live.checker import largest_failure

    bound, delta = largest_failure(design, n_arms), design["delta"]
    if bound > delta:
        raise ValueError(f"delta must be one that the looks and boundaries keep, got {delta}: not certified")
    return lambda: f"Certified: whatever the arms' means are, a failure has probability {bound:.5f} at most."


def _planned(options: argparse.Namespace) -> "Plan":
    names = "deadline epsilon delta sigma rewards algorithm k budget margin lower_is_better blocks missing"
    more: dict[str, Any] = {name: getattr(options, name) for name in (*names.split(), "truths", "runs")}
    more |= {"support": _limits(options), "control": options.control is not None}
    if options.pilot is not None:
        from ebr.live.rewards import from_file

        more["pilot"] = from_file(options.pilot)
    arms: list[str] | None = options.arms
    if arms is None and options.pilot is None:
        raise ValueError("arms must be how many, or their names, if there is no pilot, got none")
    n_arms = None if arms is None else len(arms)
    if arms is not None and n_arms == 1 and arms[0].isdecimal():
        n_arms = int(arms[0])
    made = ebr.plan(n_arms=n_arms, **more)
    if options.control:
        from ebr.live.terms import place_of

        named = arms is not None and n_arms == len(arms)
        known = arms if arms and named else list(next(iter(made.found.values())).terms.arms)
        place = place_of(options.control, known)
        if (options.truths or options.pilot) and place != len(known) - 1:
            must = "control must be the last arm where there are truths or a pilot"
            raise ValueError(f"{must}, {known[-1]}, got {options.control!r}")
    return made


def plan(options: argparse.Namespace) -> Said:
    """Recommend a race and say what it costs, or what a budget buys; with --start, start it."""
    made = _planned(options)
    if options.picture:
        _save(made.plot(), options.picture)
    if not options.start:
        return lambda: str(made)
    with made.start(options.start, options.arms, options.control or None) as race:
        return lambda: f"{made}\n\n{standing(race, options.start)}"


def plot(options: argparse.Namespace) -> Said:
    """Draw the race as it stands: means and intervals, round by round; this changes nothing."""
    from pathlib import Path

    to = options.to or str(Path(options.journal).with_suffix(".png"))
    with ebr.Race.open(options.journal, readonly=True) as race:
        drawn = _save(race.plot(), to)
    return lambda: f"drawn in {drawn}"


def _save(figure: "Figure", to: str) -> str:
    """Save a picture, as png if its name does not say; return its name. A journal is never overwritten."""
    from ebr.live.journal import is_journal

    name = to if os.path.splitext(to)[1] else f"{to}.png"
    if is_journal(name):
        raise ValueError(f"{name} is the journal of a race: name another file for the picture")
    figure.savefig(name, bbox_inches="tight")
    return name


def _parser() -> Parser:
    parser = Parser(
        prog="python -m ebr",
        description="Best arm identification under a deadline.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print the version and leave")
    commands = parser.add_subparsers(required=True, metavar="command")
    for run, add_options in OPTIONS.items():
        command = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        add_options(command)
    return parser


def _journal_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("journal", help="the race's file, for instance trial.jsonl")


def _rules(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--deadline", type=int, required=True, help="rounds at most")
    add("--sigma", type=float, help="standard deviation of the rewards (half the support's width, or 0.5)")
    add(
        "--rewards",
        choices=REWARDS,
        help="each is 0 or 1, or in the support, or normal, or no wider (bounded)",
    )
    add("--k", type=int, default=1, help="how many arms to find, the k best (1)")
    add("--blocks", action="store_true", help="all arms of a round share the same blocks")
    add(
        "--margin",
        type=float,
        help="by how much an arm must beat the control, in the rewards' units (epsilon)",
    )
    of = "limits of the rewards (0 1); epsilon, sigma and margin are in the same units"
    within = command.add_mutually_exclusive_group()
    within.add_argument("--support", nargs=2, type=float, metavar=("LOW", "HIGH"), help=of)
    none = "any finite reward is possible (the default for Gaussian and sub-Gaussian)"
    within.add_argument("--unbounded", action="store_true", help=none)
    add("--lower-is-better", action="store_true", help="the smallest mean is the best, as of a latency")


def _start_options(command: argparse.ArgumentParser) -> None:
    # The journal comes first: after the arms it would be taken for one of them.
    command.usage = "%(prog)s journal --arms ARM ARM ... --deadline T --epsilon EPSILON [option ...]"
    _journal_option(command)
    _design(command)


def _tell_options(command: argparse.ArgumentParser) -> None:
    _journal_option(command)
    each = "for instance A=120:67, or the rewards themselves, 'A=[1, 0, 1]'"
    command.add_argument("rewards", nargs="*", metavar="ARM=COUNT:SUM", help=each)
    command.add_argument(
        "--round", type=int, metavar="N", help="the round of these rewards; refused if another one is due"
    )
    command.add_argument(
        "--file", metavar="CSV", help="columns arm, reward (one row per pull) or arm, count, sum"
    )
    command.add_argument("--blocks", metavar="CSV", help="columns block and the arms: one row per block")
    fewer = (
        "'at random', as missing='at random' in Python: for reasons that have nothing to do with any reward"
    )
    command.add_argument("--missing", metavar="WHY", help=fewer)
    late = "rewards that earlier rounds lacked, in place of as many of this round; may be repeated"
    command.add_argument("--late", action="append", metavar="ARM=COUNT:SUM", help=late)


def _design(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    many = "names of the arms (--arms=-A --arms=B for such names); in a plan also their number"
    add("--arms", nargs="+", action="extend", metavar="ARM", help=many)
    add("--epsilon", type=float, help="how far from the best is good enough")
    add("--delta", type=float, help="how likely a failure may be (0.05)")
    buys = "pulls of all arms at most: find the epsilon that they buy, or with --epsilon alone the delta"
    add("--budget", type=int, metavar="B", help=buys)
    _rules(command)
    add("--algorithm", choices=KINDS, help="use this race (by default several are compared)")
    guard = "the last arm, or this one, is a control: end early if no arm can beat it"
    add("--control", nargs="?", const="", metavar="ARM", help=guard)
    add("--missing", action="store_true", help="rewards may be missing, at random")
    own = "means that the arms may have, one each, in the rewards' units; may be repeated"
    add("--truth", dest="truths", nargs="+", type=float, action="append", metavar="MEAN", help=own)
    tried = "rewards of an earlier trial to plan from (columns arm, reward)"
    add("--pilot", metavar="CSV", help=tried)
    add("--runs", type=int, metavar="N", help="experiments simulated on each truth (200 or fewer)")


def _plan_options(command: argparse.ArgumentParser) -> None:
    _design(command)
    command.add_argument("--start", metavar="JOURNAL", help="begin the recommended race there")
    drawn = "draw there what one more round buys (png, svg, pdf)"
    command.add_argument("--picture", metavar="FILE", help=drawn)


def _report_options(command: argparse.ArgumentParser) -> None:
    _journal_option(command)
    command.add_argument("--format", choices=("text", "markdown", "html"), default="text", help="(text)")
    word = "your word for pulls, for instance subjects (pulls)"
    command.add_argument("--word", default="pulls", help=word)


def _plot_options(command: argparse.ArgumentParser) -> None:
    _journal_option(command)
    kinds = "the picture, png, svg or pdf by the end of its name (the journal's name with .png)"
    command.add_argument("--to", metavar="FILE", help=kinds)


# Every command, and what adds its options to its parser.
OPTIONS: dict[Callable[[argparse.Namespace], Said], Callable[[argparse.ArgumentParser], None]] = {
    start: _start_options,
    ask: _journal_option,
    tell: _tell_options,
    stop: _journal_option,
    status: _journal_option,
    plan: _plan_options,
    plot: _plot_options,
    report: _report_options,
    certify: _journal_option,
}


def _replace_letters() -> None:
    """Write characters that an encoding lacks as escapes, so that no arm's name stops a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # a closed stream: the error comes when something is written
                stream.reconfigure(errors="backslashreplace")


def _written(text: str) -> str | None:
    """Write to standard output at once; return None, or why it could not be done."""
    if sys.stdout is None:  # closed before the process began
        return "standard output is closed"
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        _discard()
        return getattr(error, "strerror", None) or str(error)
    return None


def _complain(text: str) -> None:
    """Write a line to standard error if possible; the exit status says the same."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(" ".join(text.split()) + "\n")
            sys.stderr.flush()


def _discard() -> None:
    """Discard what could not be written: Python would try again at exit, and complain."""
    with suppress(OSError, ValueError):  # not a file of the system's
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def asking(race: "Race", pulls: dict[str, int], journal: str) -> str:
    """How often to pull each arm in this round."""
    so_far = dict(zip(race.arms, race.known.pulls, strict=True))
    table = {
        "arm": list(pulls),
        " pulls now": [str(number) for number in pulls.values()],
        " pulls so far": [str(so_far[arm]) for arm in pulls],
    }
    return f"{_heading(race)}\n\n{_text(table)}\n\n{_next(race, journal)}"


def standing(race: "Race", journal: str) -> str:
    """Where the race stands."""
    from ebr.live.report import digits, word_for_left_out

    pulls, *numbers = race.known
    left_out, within = "out" if race.finished else word_for_left_out(race.algorithm), set(race.survivors)
    table = {"arm": list(race.arms), " pulls": [str(number) for number in pulls]}
    for name, column in zip((" mean", " lower", " upper"), numbers, strict=True):
        table[name] = list(map(digits(race.terms), column))
    table[""] = ["in" if arm in within else left_out for arm in race.arms]
    return f"{_heading(race)}\n\n{_text(table)}\n\n{_next(race, journal)}"


def _heading(race: "Race") -> str:
    if race.finished:
        how = f"was stopped in round {race.round}" if race.stopped else f"has ended after round {race.round}"
        return f"The race {how}."
    left = race.rounds_left
    return f"Round {race.round}" + (f" of at most {race.round + left - 1}" if left else "")


def _next(race: "Race", journal: str) -> str:
    """What to do now."""
    if race.finished:
        return race.verdict
    said = _said_now(race)
    if race.asked is None:
        return f"{said}Next: {_shell_line('ask', journal)}"
    options = [f"--round={race.round}"]
    if race.terms.squares:
        line = _shell_line("tell", journal, [*options, "--file=rewards.csv"])
        return f"{said}Next: {line}\n{SINGLE_REWARDS}"
    words = [f"{arm}={pulls}:SUM" for arm, pulls in race.asked.items()]
    ends = ["--"] if any(word.startswith("-") for word in words) else []
    line = _shell_line("tell", journal, options, ends + words)
    return f"{said}Next: {line}\n(SUM: the arm's successes in this round, or the sum of its rewards)"


def _said_now(race: "Race") -> str:
    """What could be said if the race were stopped now, as a line; empty before the first reward."""
    from ebr.live.report import rounded_up

    arm, within = race.now or (None, math.inf)
    if arm is None or race.algorithm.delta is None:
        return ""
    if math.isinf(within):
        return "If the race were stopped now, nothing would be guaranteed.\n"
    surely = 1 - race.algorithm.delta
    said = f"{arm} is within {rounded_up(within)} of the best with probability {surely:.4g}"
    return f"If the race were stopped now: {said}.\n"


def _shell_line(name: str, journal: str, options: Sequence[str] = (), words: Sequence[str] = ()) -> str:
    """A command to be pasted into a shell."""
    file = f"./{journal}" if journal.startswith("-") else journal  # or it is taken for an option
    return shlex.join(["python", "-m", "ebr", name, *options, file, *words])


def _text(table: Mapping[str, Sequence[str]]) -> str:
    """A table as pandas prints it; loading pandas would take as long as everything else together."""
    columns = []
    for heading, cells in table.items():
        texts = [heading, *cells]
        width = max(map(len, texts))
        columns.append([text.rjust(width) for text in texts])
    return "\n".join(" ".join(row) for row in zip(*columns, strict=True))
