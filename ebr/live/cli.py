"""The command line, `python -m ebr`: plan, start, ask, tell and look at a race from a terminal."""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import ebr
from ebr.models import REWARDS

if TYPE_CHECKING:  # what a command needs is loaded by the command: help and refusals come at once
    import pandas as pd

    from ebr.algorithms.game import Algorithm
    from ebr.live.race import Race

EXAMPLE = """\
an experiment, from its start to its end:
  python -m ebr plan --arms 3 --deadline 6 --epsilon 0.05
  python -m ebr start trial.jsonl --arms A B C --deadline 6 --epsilon 0.05 --delta 0.05
  python -m ebr ask trial.jsonl                            how often to try each arm in this round
  python -m ebr tell trial.jsonl A=67/120 B=80/120 C=...   successes (or the sum of rewards) / number
  python -m ebr status trial.jsonl                         where it stands; then ask again"""


# The algorithms that are told what is known of the rewards.
KINDS = {"sharp": "SharpElasticBatchRacing", "pausing": "PausingElasticBatchRacing"}


class Parser(argparse.ArgumentParser):
    """Errors in one line, as all others here."""

    def error(self, message: str) -> NoReturn:
        """Print the error and leave with status 2."""
        self.exit(2, f"error: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 2 if it was refused, with the reason on standard error."""
    options = _parser().parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
        try:
            options.run(options)
        except (ValueError, OSError, csv.Error) as error:
            print("error:", " ".join(str(error).split()), file=sys.stderr)
            return 2
    return 0


def start(options: argparse.Namespace) -> None:
    """Begin a race, or find that the same one has begun already."""
    rules = {name: getattr(options, name) for name in ("deadline", "epsilon", "delta", "sigma")}
    if options.algorithm != "pausing":
        rules["k"] = options.k
    elif options.k != 1:
        raise ValueError(f"k must be 1 for --algorithm pausing, got {options.k}")
    if options.algorithm == "ebr":
        if options.rewards:
            raise ValueError("--rewards is for --algorithm sharp and pausing alone")
        algorithm: Algorithm = ebr.ElasticBatchRacing(**rules)
    else:
        algorithm = getattr(ebr, KINDS[options.algorithm])(**rules, rewards=options.rewards)
    support = None if options.unbounded else tuple(options.support)
    with ebr.Race(algorithm, options.arms, options.journal, support, rounding=options.rounding) as race:
        print(_standing(race, options.journal))


def ask(options: argparse.Namespace) -> None:
    """Say how often to pull each arm in this round."""
    import pandas as pd

    with ebr.Race.open(options.journal) as race:
        pulls = race.ask()
        table = pd.DataFrame({"arm": list(pulls), "pulls now": list(pulls.values())})
        table["pulls so far"] = race.intervals["pulls"][list(pulls)].to_numpy()
        print(f"{_heading(race)}\n\n{_text(table)}\n\n{_next(race, options.journal)}")


def tell(options: argparse.Namespace) -> None:
    """Take in a round's rewards."""
    from ebr.live.rewards import from_file, from_words

    if bool(options.rewards) == bool(options.file):
        raise ValueError("give either ARM=SUM/COUNT for each arm or --file")
    rewards = from_file(options.file) if options.file else from_words(options.rewards)
    with ebr.Race.open(options.journal) as race:
        race.tell(rewards)
        print(_standing(race, options.journal))


def status(options: argparse.Namespace) -> None:
    """Say where the race stands; this changes nothing, and works while another process has the journal."""
    with ebr.Race.open(options.journal, readonly=True) as race:
        print(_standing(race, options.journal))


def plan(options: argparse.Namespace) -> None:
    """Say what a race would cost, or what a budget buys."""
    names = ("n_arms", "deadline", "epsilon", "delta", "sigma", "rewards", "algorithm", "k", "budget")
    made = ebr.plan(**{name: getattr(options, name) for name in names})
    if options.picture:
        made.plot().savefig(options.picture, bbox_inches="tight")
    print(made)


def _standing(race: Race, journal: str) -> str:
    from ebr.live.rules import word_for_left_out

    table = race.intervals.reset_index()
    table["survives"] = table["survives"].map(
        {True: "in", False: "out" if race.finished else word_for_left_out(race.algorithm)}
    )
    return f"{_heading(race)}\n\n{_text(table.rename(columns={'survives': ''}))}\n\n{_next(race, journal)}"


def _heading(race: Race) -> str:
    if race.finished:
        return f"The race has ended after round {race.round}."
    left = race.rounds_left
    return f"Round {race.round}" + (f" of at most {race.round + left - 1}" if left else "")


def _next(race: Race, journal: str) -> str:
    """What to do now."""
    from ebr.live.rules import named

    if race.finished:
        return f"It recommends {named(race.recommendation)}."
    if race.asked is None:
        return f"Next: python -m ebr ask {shlex.quote(journal)}"
    words = (f"{arm}=SUM/{pulls}" for arm, pulls in race.asked.items())
    command = shlex.join(["python", "-m", "ebr", "tell", journal, *words])
    return f"Next: {command}\n(SUM: the arm's successes in this round, or the sum of its rewards)"


def _text(table: pd.DataFrame) -> str:
    return table.to_string(index=False, na_rep="-", float_format="{:.4f}".format)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m ebr",
        description="Best arm identification under a deadline.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
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
    command.add_argument("--arms", nargs="+", required=True, metavar="ARM", help="their names")
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
    command.add_argument("--file", metavar="CSV", help="columns arm,reward (a row a pull) or arm,count,sum")


def _of_plan(command: argparse.ArgumentParser) -> None:
    command.add_argument("--arms", dest="n_arms", type=int, required=True, metavar="N", help="how many")
    _guarantee(command, needed=False)
    buys = "pulls of all arms at most: find the epsilon that they buy, or with --epsilon alone the delta"
    command.add_argument("--budget", type=int, metavar="B", help=buys)
    _rules(command)
    command.add_argument("--algorithm", choices=tuple(KINDS), default="sharp", help="(sharp)")
    command.add_argument(
        "--picture", metavar="FILE", help="draw there what one more round buys (png, svg, pdf)"
    )


# Every command, and what adds its options to its parser.
OPTIONS: dict[Callable[[argparse.Namespace], None], Callable[[argparse.ArgumentParser], None]] = {
    start: _of_start,
    ask: _journal,
    tell: _of_tell,
    status: _journal,
    plan: _of_plan,
}
