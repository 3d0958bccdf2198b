"""The command line, `python -m ebr`: plan, start, ask, tell and look at a race from a terminal.

First what commands do, then their options, then what they say and how it is written. What a command needs is
loaded by the command: help and refusals come at once.
"""

import argparse
import io
import math
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import ebr
from ebr.models import REWARDS

if TYPE_CHECKING:
    from ebr.algorithms.game import Algorithm
    from ebr.live.plan import Plan
    from ebr.live.race import Race

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
KINDS = (
    "sharp",
    "pausing",
    "staked",
    "certified",
)  # the algorithms that are told what is known of the rewards


class Parser(argparse.ArgumentParser):
    """Errors in one line, as all others here."""

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
    _replace_letters()
    options, parser = argparse.Namespace(), _parser()
    try:
        _, rest = parser.parse_known_args(arguments, options)
        _take_in(rest, options, parser)
        return _run(options)
    except SystemExit as end:  # argparse's own way out
        return int(end.code or 0) or _end(_written(""))
    except KeyboardInterrupt:
        _complain(f"interrupted{_look(options, ': see whether it was recorded with')}")
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
        warnings.showwarning = lambda message, *_, **__: _complain(f"warning: {message}")
        try:
            said: Said = options.run(options)
        except (ValueError, OSError) as error:
            _complain(f"error: {error}")
            return REFUSED
        # From here on it is done, whatever becomes of what there is to say.
        return _end(_written(said() + "\n"), _look(options, ": do not repeat it, look with"))


def _end(unwritten: str | None, advice: str = "") -> int:
    """The exit status of what was done and said, or could not be said."""
    if unwritten is None:
        return 0
    done = "recorded, but " if advice else ""
    _complain(f"warning: {done}the output could not be written ({unwritten}){advice}")
    return UNSAID


def _look(options: argparse.Namespace, words: str) -> str:
    """Where to look after a command that records something; no word of it after one that does not."""
    if getattr(options, "run", None) not in (start, ask, tell):
        return ""
    return f"{words} {_shell_line('status', options.journal)}"


def start(options: argparse.Namespace) -> Said:
    """Begin a race, or find that the same one has begun already."""
    from ebr.live.terms import width_of

    low, high = options.support
    ends = (high, low) if options.lower_is_better else (low, high)  # the worst reward and the best
    with ebr.Race(
        _algorithm(options, width_of((low, high), options.epsilon)),
        options.arms,
        options.journal,
        None if options.unbounded else (0.0, 1.0),
        rounding=options.rounding,
        scale=None if ends == (0.0, 1.0) else ends,
        blocks=options.blocks,
        control=options.control,
        margin=options.margin,
    ) as race:
        return lambda: standing(race, options.journal)


def _algorithm(options: argparse.Namespace, width: float) -> "Algorithm":
    """What is to be raced, by what --algorithm says; ε and σ are given in units of which `width` are 1."""
    widest = width / (math.sqrt(2) if options.blocks and not options.unbounded else 2)
    rules: dict[str, Any] = {
        "deadline": options.deadline,
        "epsilon": options.epsilon / width,
        "delta": options.delta,
        "sigma": (widest if options.sigma is None else options.sigma) / width,
    }
    single = {"pausing": ebr.PausingElasticBatchRacing, "staked": ebr.StakedElasticBatchRacing}
    if options.algorithm in (*single, "certified") and options.k != 1:
        raise ValueError(f"k must be 1 for --algorithm {options.algorithm}, got {options.k}")
    if options.algorithm in single:
        race: Algorithm = single[options.algorithm](**rules, rewards=options.rewards)
        return race
    if options.algorithm == "certified":
        rules["rewards"] = options.rewards or ("Gaussian" if options.unbounded else "Bernoulli")
        margin = (options.margin or 0) / width
        rules["shifts"] = (margin,) if margin > rules["epsilon"] else ()
        return ebr.certified_design(len(options.arms), **rules).race
    if options.algorithm == "sharp":
        # The joint law of Gaussian looks is that of independent arms.
        looks = "union" if options.blocks and options.rewards == "Gaussian" else "joint"
        return ebr.SharpElasticBatchRacing(**rules, k=options.k, rewards=options.rewards, looks=looks)
    if options.rewards:
        raise ValueError(f"--rewards is for --algorithm {', '.join(KINDS)} alone")
    return ebr.ElasticBatchRacing(**rules, k=options.k)


def ask(options: argparse.Namespace) -> Said:
    """Say how often to pull each arm in this round."""
    with ebr.Race.open(options.journal) as race:
        pulls = race.ask()
        return lambda: asking(race, pulls, options.journal)


def tell(options: argparse.Namespace) -> Said:
    """Take in a round's rewards."""
    from ebr.live.rewards import blocks_from_file, from_file, from_words

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


def certify(options: argparse.Namespace) -> Said:
    """Check a certified race of 0/1 rewards again, by plain loops (minutes); this changes nothing."""
    with ebr.Race.open(options.journal, readonly=True) as race:
        design, n_arms = race.terms.line()["parameters"], len(race.arms)
    if "boundaries" not in design or design["rewards"] != "Bernoulli":
        raise ValueError(f"{options.journal} must be of a certified race of 0/1 rewards, got {design!s:.60}")
    from ebr.live.checker import largest_failure

    bound, delta = largest_failure(design, n_arms), design["delta"]
    if bound > delta:
        raise ValueError(f"delta must be one that the looks and boundaries keep, got {delta}: not certified")
    return lambda: f"Certified: with every rate of the arms a failure has probability {bound:.5f} at most."


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


def _journal_option(command: argparse.ArgumentParser) -> None:
    command.add_argument("journal", help="the race's file, for instance trial.jsonl")


def _rules(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--deadline", type=int, required=True, help="rounds at most")
    add("--sigma", type=float, help="rewards are sigma-sub-Gaussian (half the support's width, or 0.5)")
    add("--rewards", choices=REWARDS, help="what is known of them (bounded, if support says so)")
    add("--k", type=int, default=1, help="how many arms to find, the k best (1)")


def _guarantee(command: argparse.ArgumentParser, needed: bool) -> None:
    """ε and δ; where they are not needed a budget may buy one of them."""
    add = command.add_argument
    add("--epsilon", type=float, required=needed, help="how far from the best is good enough")
    default = 0.05 if needed else None
    add("--delta", type=float, default=default, help="how likely a failure may be (0.05)")


def _start_options(command: argparse.ArgumentParser) -> None:
    # The journal first: behind the arms it would be taken for one of them.
    command.usage = "%(prog)s journal --arms ARM ARM ... --deadline T --epsilon EPSILON [option ...]"
    _journal_option(command)
    names = "their names; --arms=-A --arms=B if they begin so"
    command.add_argument("--arms", nargs="+", action="extend", required=True, metavar="ARM", help=names)
    _guarantee(command, needed=True)
    _rules(command)
    command.add_argument("--algorithm", choices=(*KINDS, "ebr"), default="sharp", help="(sharp)")
    rounds = "take rewards in [0, 1] as Bernoulli ones: each becomes 0 or 1, by lot"
    command.add_argument("--rounding", action="store_true", help=rounds)
    command.add_argument("--blocks", action="store_true", help="all arms of a round share the same blocks")
    command.add_argument("--control", metavar="ARM", help="end early if no arm can be better than this one")
    _margin(command)
    within = command.add_mutually_exclusive_group()
    _support(within)
    within.add_argument("--unbounded", action="store_true", help="any finite reward is possible")
    lower = "the smallest reward is the best, as of a latency"
    command.add_argument("--lower-is-better", action="store_true", help=lower)


def _margin(command: argparse.ArgumentParser) -> None:
    command.add_argument("--margin", type=float, help="by so much, in the rewards' units (epsilon)")


def _support(command: "argparse.ArgumentParser | argparse._MutuallyExclusiveGroup") -> None:
    of = "of the rewards (0 1), in units of your own: epsilon, sigma and margin are in them, too"
    default, ends = (0.0, 1.0), ("LOW", "HIGH")
    command.add_argument("--support", nargs=2, type=float, default=default, metavar=ends, help=of)


def _tell_options(command: argparse.ArgumentParser) -> None:
    _journal_option(command)
    command.add_argument("rewards", nargs="*", metavar="ARM=SUM/COUNT", help="for instance A=67/120")
    command.add_argument("--round", type=int, metavar="N", help="whose they are: refused if it is another's")
    command.add_argument("--file", metavar="CSV", help="columns arm,reward (a row a pull) or arm,count,sum")
    command.add_argument("--blocks", metavar="CSV", help="columns block and then the arms: a row a block")
    fewer = "'at random': some are missing for reasons that have nothing to do with any reward"
    command.add_argument("--missing", metavar="WHY", help=fewer)


def _design(command: argparse.ArgumentParser) -> None:
    command.add_argument("--arms", dest="n_arms", type=int, required=True, metavar="N", help="how many")
    _guarantee(command, needed=False)
    buys = "pulls of all arms at most: find the epsilon that they buy, or with --epsilon alone the delta"
    command.add_argument("--budget", type=int, metavar="B", help=buys)
    _rules(command)
    command.add_argument("--algorithm", choices=KINDS[:2], default="sharp", help="(sharp)")
    command.add_argument(
        "--control", action="store_true", help="one arm is a control: end early if none is better"
    )
    _margin(command)
    _support(command)


def _plan_options(command: argparse.ArgumentParser) -> None:
    _design(command)
    drawn = "draw there what one more round buys (png, svg, pdf)"
    command.add_argument("--picture", metavar="FILE", help=drawn)


def _characteristics_options(command: argparse.ArgumentParser) -> None:
    _design(command)
    add = command.add_argument
    own = "means that the arms may have, one each, as parts of the support; may be repeated (a grid of them)"
    add("--truth", dest="truths", nargs="+", type=float, action="append", metavar="MEAN", help=own)
    add("--runs", type=int, default=1000, help="races simulated on each truth (1000)")
    add("--seed", type=int, default=0, help="of the simulation (0)")
    add("--csv", metavar="FILE", help="write the table there")
    add("--picture", metavar="FILE", help="draw it there (png, svg, pdf)")


def _report_options(command: argparse.ArgumentParser) -> None:
    _journal_option(command)
    command.add_argument("--format", choices=("text", "markdown", "html"), default="text", help="(text)")


# Every command, and what adds its options to its parser.
OPTIONS: dict[Callable[[argparse.Namespace], Said], Callable[[argparse.ArgumentParser], None]] = {
    start: _start_options,
    ask: _journal_option,
    tell: _tell_options,
    status: _journal_option,
    plan: _plan_options,
    characteristics: _characteristics_options,
    report: _report_options,
    certify: _journal_option,
}


def _replace_letters() -> None:
    """Write what an encoding lacks as its code, so that no name of an arm ends a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # one that takes nothing: said when something is written
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
    """Write a line to standard error, if there is one that takes it: the exit status says it, too."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(" ".join(text.split()) + "\n")
            sys.stderr.flush()


def _discard() -> None:
    """Let go of what could not be written: Python would try it once more at its end, and complain."""
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
    from ebr.live.report import word_for_left_out

    pulls, *numbers = race.known
    left_out, within = "out" if race.finished else word_for_left_out(race.algorithm), set(race.survivors)
    table = {"arm": list(race.arms), " pulls": [str(number) for number in pulls]}
    for name, column in zip((" mean", " lower", " upper"), numbers, strict=True):
        table[name] = ["-" if number != number else f"{number:.4f}" for number in column]
    table[""] = ["in" if arm in within else left_out for arm in race.arms]
    return f"{_heading(race)}\n\n{_text(table)}\n\n{_next(race, journal)}"


def _heading(race: "Race") -> str:
    if race.finished:
        return f"The race has ended after round {race.round}."
    left = race.rounds_left
    return f"Round {race.round}" + (f" of at most {race.round + left - 1}" if left else "")


def _next(race: "Race", journal: str) -> str:
    """What to do now."""
    if race.finished:
        return race.verdict
    if race.asked is None:
        return f"Next: {_shell_line('ask', journal)}"
    words = [f"{arm}=SUM/{pulls}" for arm, pulls in race.asked.items()]
    ends = ["--"] if any(word.startswith("-") for word in words) else []
    line = _shell_line("tell", journal, [f"--round={race.round}"], ends + words)
    return f"Next: {line}\n(SUM: the arm's successes in this round, or the sum of its rewards)"


def _shell_line(name: str, journal: str, options: Sequence[str] = (), words: Sequence[str] = ()) -> str:
    """A command to be pasted into a shell."""
    file = f"./{journal}" if journal.startswith("-") else journal  # or it is taken for an option
    return shlex.join(["python", "-m", "ebr", name, *options, file, *words])


def _text(table: Mapping[str, Sequence[str]]) -> str:
    """Columns with their headings, as pandas prints them: it takes as long to load as all else together."""
    columns = []
    for heading, cells in table.items():
        texts = [heading, *cells]
        width = max(map(len, texts))
        columns.append([text.rjust(width) for text in texts])
    return "\n".join(" ".join(row) for row in zip(*columns, strict=True))
