"""The command line, `python -m ebr`: plan, start, ask, tell and look at a race from a terminal."""

import argparse
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import ebr
from ebr.live.output import asking, complain, replace_letters, shell_line, standing, written
from ebr.models import REWARDS

if TYPE_CHECKING:  # what a command needs is loaded by the command: help and refusals come at once
    from ebr.algorithms.game import Algorithm

EXAMPLE = """\
an experiment, from its start to its end:
  python -m ebr plan --arms 3 --deadline 6 --epsilon 0.05
  python -m ebr start trial.jsonl --arms A B C --deadline 6 --epsilon 0.05 --delta 0.05
  python -m ebr ask trial.jsonl                            how often to try each arm in this round
  python -m ebr tell --round=1 trial.jsonl A=67/120 B=...  successes (or the sum of rewards) / number
  python -m ebr status trial.jsonl                         where it stands; then ask again

exit status: 0 done, 2 refused, 3 done but the output could not be written, 130 interrupted"""


KINDS = ("sharp", "pausing")  # the algorithms that are told what is known of the rewards
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
    support = None if options.unbounded else tuple(options.support)
    with ebr.Race(
        _algorithm(options), options.arms, options.journal, support, rounding=options.rounding
    ) as race:
        return lambda: standing(race, options.journal)


def _algorithm(options: argparse.Namespace) -> "Algorithm":
    """What is to be raced, by what --algorithm says."""
    rules = {name: getattr(options, name) for name in ("deadline", "epsilon", "delta", "sigma")}
    if options.algorithm == "pausing":
        if options.k != 1:
            raise ValueError(f"k must be 1 for --algorithm pausing, got {options.k}")
        return ebr.PausingElasticBatchRacing(**rules, rewards=options.rewards)
    if options.algorithm == "sharp":
        return ebr.SharpElasticBatchRacing(**rules, k=options.k, rewards=options.rewards)
    if options.rewards:
        raise ValueError("--rewards is for --algorithm sharp and pausing alone")
    return ebr.ElasticBatchRacing(**rules, k=options.k)


def ask(options: argparse.Namespace) -> Said:
    """Say how often to pull each arm in this round."""
    with ebr.Race.open(options.journal) as race:
        pulls = race.ask()
        return lambda: asking(race, pulls, options.journal)


def tell(options: argparse.Namespace) -> Said:
    """Take in a round's rewards."""
    from ebr.live.rewards import from_file, from_words

    if bool(options.rewards) == bool(options.file):
        raise ValueError("give either ARM=SUM/COUNT for each arm or --file")
    rewards = from_file(options.file) if options.file else from_words(options.rewards)
    with ebr.Race.open(options.journal) as race:
        race.tell(rewards, options.round)
        return lambda: standing(race, options.journal)


def status(options: argparse.Namespace) -> Said:
    """Say where the race stands; this changes nothing, and works while another process has the journal."""
    with ebr.Race.open(options.journal, readonly=True) as race:
        return lambda: standing(race, options.journal)


def plan(options: argparse.Namespace) -> Said:
    """Say what a race would cost, or what a budget buys."""
    names = ("n_arms", "deadline", "epsilon", "delta", "sigma", "rewards", "algorithm", "k", "budget")
    made = ebr.plan(**{name: getattr(options, name) for name in names})
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


def _journal(command: argparse.ArgumentParser) -> None:
    command.add_argument("journal", help="the race's file, for instance trial.jsonl")


def _rules(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--deadline", type=int, required=True, help="rounds at most")
    add("--sigma", type=float, default=0.5, help="rewards are sigma-sub-Gaussian (0.5)")
    add("--rewards", choices=REWARDS, help="what is known of them (bounded, if support says so)")
    add("--k", type=int, default=1, help="how many arms to find, the k best (1)")


def _guarantee(command: argparse.ArgumentParser, needed: bool) -> None:
    """ε and δ; where they are not needed a budget may buy one of them."""
    add = command.add_argument
    add("--epsilon", type=float, required=needed, help="how far from the best is good enough")
    default = 0.05 if needed else None
    add("--delta", type=float, default=default, help="how likely a failure may be (0.05)")


def _of_start(command: argparse.ArgumentParser) -> None:
    # The journal first: behind the arms it would be taken for one of them.
    command.usage = "%(prog)s journal --arms ARM ARM ... --deadline T --epsilon EPSILON [option ...]"
    _journal(command)
    names = "their names; --arms=-A --arms=B if they begin so"
    command.add_argument("--arms", nargs="+", action="extend", required=True, metavar="ARM", help=names)
    _guarantee(command, needed=True)
    _rules(command)
    command.add_argument("--algorithm", choices=(*KINDS, "ebr"), default="sharp", help="(sharp)")
    rounds = "take rewards in [0, 1] as Bernoulli ones: each becomes 0 or 1, by lot"
    command.add_argument("--rounding", action="store_true", help=rounds)
    within = command.add_mutually_exclusive_group()
    ends = ("LOW", "HIGH")
    within.add_argument(
        "--support", nargs=2, type=float, default=(0.0, 1.0), metavar=ends, help="of the rewards (0 1)"
    )
    within.add_argument("--unbounded", action="store_true", help="any finite reward is possible")


def _of_tell(command: argparse.ArgumentParser) -> None:
    _journal(command)
    command.add_argument("rewards", nargs="*", metavar="ARM=SUM/COUNT", help="for instance A=67/120")
    command.add_argument("--round", type=int, metavar="N", help="whose they are: refused if it is another's")
    command.add_argument("--file", metavar="CSV", help="columns arm,reward (a row a pull) or arm,count,sum")


def _of_plan(command: argparse.ArgumentParser) -> None:
    command.add_argument("--arms", dest="n_arms", type=int, required=True, metavar="N", help="how many")
    _guarantee(command, needed=False)
    buys = "pulls of all arms at most: find the epsilon that they buy, or with --epsilon alone the delta"
    command.add_argument("--budget", type=int, metavar="B", help=buys)
    _rules(command)
    command.add_argument("--algorithm", choices=KINDS, default="sharp", help="(sharp)")
    command.add_argument(
        "--picture", metavar="FILE", help="draw there what one more round buys (png, svg, pdf)"
    )


# Every command, and what adds its options to its parser.
OPTIONS: dict[Callable[[argparse.Namespace], Said], Callable[[argparse.ArgumentParser], None]] = {
    start: _of_start,
    ask: _journal,
    tell: _of_tell,
    status: _journal,
    plan: _of_plan,
}
