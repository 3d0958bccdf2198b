"""The command line, `python -m ebr`: plan, start, ask, tell and look at a race from a terminal."""

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import ebr
from ebr.live.options import journal, of_characteristics, of_plan, of_report, of_start, of_tell
from ebr.live.output import asking, complain, replace_letters, shell_line, standing, written

if TYPE_CHECKING:  # what a command needs is loaded by the command: help and refusals come at once
    from ebr.live.plan import Plan

EXAMPLE = """\
an experiment, from its start to its end:
  python -m ebr plan --arms 3 --deadline 6 --epsilon 0.05
  python -m ebr start trial.jsonl --arms A B C --deadline 6 --epsilon 0.05 --delta 0.05
  python -m ebr ask trial.jsonl                            how often to try each arm in this round
  python -m ebr tell --round=1 trial.jsonl A=67/120 B=...  successes (or the sum of rewards) / number
  python -m ebr status trial.jsonl                         where it stands; then ask again
  python -m ebr report trial.jsonl --format markdown       for a protocol or a paper

exit status: 0 done, 2 refused, 3 done but the output could not be written, 130 interrupted"""


REFUSED, UNSAID, INTERRUPTED = 2, 3, 130  # exit statuses
Said = Callable[[], str]  # what a command says once it is done


class Parser(argparse.ArgumentParser):
    """Errors in one line, as all others here."""

    def error(self, message: str) -> NoReturn:
        """Print the error and leave with status 2."""
        complain(f"error: {message} (see {self.prog} --help)")
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
        parser.exit(_end(written(f"ebr {number}\n")))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Returns 0; 2 if it was refused, with the reason on standard error; 3 if it was done, but what it says
    could not be written; 130 if it was interrupted.
    """
    replace_letters()
    options, parser = argparse.Namespace(), _parser()
    try:
        _, rest = parser.parse_known_args(arguments, options)
        _take_in(rest, options, parser)
        return _run(options)
    except SystemExit as end:  # argparse's own way out
        return int(end.code or 0) or _end(written(""))
    except KeyboardInterrupt:
        complain(f"interrupted{_look(options, ': see whether it was recorded with')}")
        return INTERRUPTED


def _take_in(rest: list[str], options: argparse.Namespace, parser: Parser) -> None:
    """Take in rewards behind an option, which argparse may leave over, and refuse all else."""
    place = rest.index("--") if "--" in rest else len(rest)
    if rest and (options.run is not tell or any(word.startswith("-") for word in rest[:place])):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.rewards = [*options.rewards, *rest[:place], *rest[place + 1 :]]


def _run(options: argparse.Namespace) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: complain(f"warning: {message}")
        try:
            said: Said = options.run(options)
        except (ValueError, OSError) as error:
            complain(f"error: {error}")
            return REFUSED
        # From here on it is done, whatever becomes of what there is to say.
        return _end(written(said() + "\n"), _look(options, ": do not repeat it, look with"))


def _end(unwritten: str | None, advice: str = "") -> int:
    """The exit status of what was done and said, or could not be said."""
    if unwritten is None:
        return 0
    done = "recorded, but " if advice else ""
    complain(f"warning: {done}the output could not be written ({unwritten}){advice}")
    return UNSAID


def _look(options: argparse.Namespace, words: str) -> str:
    """Where to look after a command that records something; no word of it after one that does not."""
    if getattr(options, "run", None) not in (start, ask, tell):
        return ""
    return f"{words} {shell_line('status', options.journal)}"


def start(options: argparse.Namespace) -> Said:
    """Begin a race, or find that the same one has begun already."""
    from ebr.live.starting import started

    with started(options) as race:
        return lambda: standing(race, options.journal)


def ask(options: argparse.Namespace) -> Said:
    """Say how often to pull each arm in this round."""
    with ebr.Race.open(options.journal) as race:
        pulls = race.ask()
        return lambda: asking(race, pulls, options.journal)


def tell(options: argparse.Namespace) -> Said:
    """Take in a round's rewards."""
    from ebr.live.blocks import blocks_from_file
    from ebr.live.rewards import from_file, from_words

    readers = {"rewards": from_words, "file": from_file, "blocks": blocks_from_file}
    given = [name for name in readers if getattr(options, name)]
    if len(given) != 1:
        raise ValueError("give either ARM=SUM/COUNT for each arm or --file or --blocks")
    rewards: Any = readers[given[0]](getattr(options, given[0]))
    with ebr.Race.open(options.journal) as race:
        race.tell(rewards, options.round, options.missing)
        return lambda: standing(race, options.journal)


def status(options: argparse.Namespace) -> Said:
    """Say where the race stands; this changes nothing, and works while another process has the journal."""
    with ebr.Race.open(options.journal, readonly=True) as race:
        return lambda: standing(race, options.journal)


def report(options: argparse.Namespace) -> Said:
    """Sum up a race for a protocol or a paper; this changes nothing."""
    with ebr.Race.open(options.journal, readonly=True) as race:
        made = race.report()
    return {"text": made.__str__, "markdown": made.markdown, "html": made.html}[options.format]


def characteristics(options: argparse.Namespace) -> Said:
    """Say how a race would fare, whatever the truth may be: operating characteristics, simulated."""
    made = ebr.operating_characteristics(
        _planned(options), options.truths, runs=options.runs, seed=options.seed
    )
    if options.csv:
        made.to_csv(options.csv)
    if options.picture:
        made.plot().savefig(options.picture, bbox_inches="tight")
    return lambda: str(made)


def _planned(options: argparse.Namespace) -> "Plan":
    names = ("n_arms", "deadline", "epsilon", "delta", "sigma", "rewards", "algorithm", "k", "budget")
    more = {"support": tuple(options.support), "control": options.control, "margin": options.margin}
    return ebr.plan(**{name: getattr(options, name) for name in names}, **more)


def plan(options: argparse.Namespace) -> Said:
    """Say what a race would cost, or what a budget buys."""
    made = _planned(options)
    if options.picture:
        made.plot().savefig(options.picture, bbox_inches="tight")
    return lambda: str(made)


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


# Every command, and what adds its options to its parser.
OPTIONS: dict[Callable[[argparse.Namespace], Said], Callable[[argparse.ArgumentParser], None]] = {
    start: of_start,
    ask: journal,
    tell: of_tell,
    status: journal,
    plan: of_plan,
    characteristics: of_characteristics,
    report: of_report,
}
