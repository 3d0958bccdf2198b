"""The command line, `python -m ebr`: plan, start, ask, tell and look at a race from a terminal.

What a command needs is loaded by the command: help and refusals come at once.
"""

import argparse
import io
import math
import os
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, NoReturn

import ebr
from ebr.models import IN_UNIT, RACES, REWARDS

EXAMPLE = """\
an experiment, from its start to its end:
  python -m ebr plan --arms A B C --deadline 6 --epsilon 0.05 --start trial.jsonl
  python -m ebr ask trial.jsonl                            how often to try each arm in this round
  python -m ebr tell --round=1 trial.jsonl A=120:67 B=...  number : successes; or --file=rewards.csv
  python -m ebr status trial.jsonl                         where it stands; then ask again
  python -m ebr report trial.jsonl --format markdown       for a protocol or a paper

exit status: 0 done, 2 refused, 3 done but the output could not be written, 130 interrupted"""
SINGLE_REWARDS = "(rewards.csv: columns arm and reward, one row per pull)"
SUMS = """
(ARM=COUNT:SUM is accepted too, but does not show how little rewards vary: unless each of them is 0 or 1, the
race may then need many more pulls)"""
REFUSED, UNSAID = 2, 3  # exit statuses
BELOW_ZERO = r"-[.\d]+e[+-]?\d+"  # written so, argparse may take it for an option
Options = argparse.Namespace


class Parser(argparse.ArgumentParser):
    """Errors in one line, and a version that is looked up only if it is asked for."""

    @property
    def version(self) -> str:
        """What `--version` prints."""
        from ebr.live.report import version

        return f"ebr {version()}"

    def error(self, message: str) -> NoReturn:
        """Print the error and leave with status 2."""
        _complain(f"error: {message} (see {self.prog} --help)")
        self.exit(REFUSED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return 0, or 2 if it was refused, or 3 if what it says could not be written."""
    try:
        options = _parsed(arguments)
    except SystemExit as end:  # argparse's own way out
        return int(end.code or 0) or _say("")
    looks = options.run in (status, plot, report, certify)
    with warnings.catch_warnings(action="always", category=UserWarning):
        warnings.showwarning = lambda message, *_, **__: _complain(f"warning: {message}")
        try:
            if options.run in (start, plan):
                said = options.run(options)
            else:
                with ebr.Race.open(options.journal, readonly=looks) as race:
                    said = options.run(race, options) or standing(race, options.journal)
        except (ValueError, OSError) as error:
            file, why = getattr(error, "filename", None), getattr(error, "strerror", None)
            _complain(f"error: {file}: {why}" if file and why else f"error: {error}")
            return REFUSED
        # The command is done, even if its output cannot be written.
        return _say(f"{said}\n", None if looks else options.journal)


def start(options: Options) -> str:
    """Begin the race that plan recommends, or that of --algorithm; or go on with the same race."""
    return plan(options)


def plan(options: Options) -> str:
    """Recommend a race and say what it costs, or what a budget buys; with --start, start it."""
    from ebr.live.rewards import from_file

    arms, given = options.arms or [], {"run", "journal", "picture", "arms", "pilot"}
    if vars(options).get("support", ()) is None:
        warnings.warn("--unbounded is old: say --rewards sub-Gaussian, or Gaussian", stacklevel=1)
    made = ebr.plan(
        int(arms[0]) if len(arms) == 1 and arms[0].isdecimal() else len(arms) or None,
        pilot=from_file(options.pilot) if options.pilot else None,
        **{name: value for name, value in vars(options).items() if name not in given},
    )
    if options.picture:
        _save(made.plot(), options.picture)
    said = str(made)
    if not options.journal:
        return said
    with made.start(options.journal, options.arms) as race:
        return f"{said}\n\n{standing(race, options.journal)}"


def ask(race: "ebr.Race", options: Options) -> None:
    """Say how often to pull each arm in this round."""
    race.ask()


def tell(race: "ebr.Race", options: Options) -> None:
    """Take in a round's rewards."""
    from ebr.live.rewards import blocks_from_file, from_file, from_words

    given = [part for part in (options.rewards, options.file, options.blocks) if part]
    if len(given) != 1:
        raise ValueError("give either ARM=COUNT:SUM for each arm or --file or --blocks")
    if options.rewards:
        rewards: Any = from_words(options.rewards)
    else:
        rewards = from_file(options.file) if options.file else blocks_from_file(options.blocks, race.arms)
    race.tell(rewards, options.round, options.missing, from_words(options.late) if options.late else None)


def stop(race: "ebr.Race", options: Options) -> None:
    """End the race now, with what can be said now; rewards asked for and not told do not count."""
    race.stop()


def status(race: "ebr.Race", options: Options) -> None:
    """Say where the race stands; this changes nothing, and works while another process writes."""


def plot(race: "ebr.Race", options: Options) -> str:
    """Draw the race as it stands: means and intervals, round by round; this changes nothing."""
    return f"drawn in {_save(race.plot(), options.to or os.path.splitext(options.journal)[0])}"


def report(race: "ebr.Race", options: Options) -> str:
    """Sum up a race for a protocol or a paper; this changes nothing."""
    made = race.report(options.word)
    return {"text": made.__str__, "markdown": made.markdown, "html": made.html}[options.format]()


def certify(race: "ebr.Race", options: Options) -> str:
    """Check a certified race again, by a computation of its own (seconds); this changes nothing."""
    from ebr.theory.checker import largest_failure
    from ebr.validation import require

    design, kind = race.terms.line()["parameters"], type(race.algorithm).__name__
    require("boundaries" in design, options.journal, "be the journal of a certified race", kind)
    bound, delta = largest_failure(design, len(race.arms)), design["delta"]
    require(bound <= delta, "delta", "be one that the looks and boundaries keep (not certified)", delta)
    return f"Certified: whatever the arms' means are, a failure has probability {bound:.5f} at most."


def _save(figure: Any, to: str) -> str:
    """Save a picture, as png if its name does not say; return its name. A journal is never overwritten."""
    from ebr.live.journal import is_journal

    name = to if os.path.splitext(to)[1] else f"{to}.png"
    if is_journal(name):
        raise ValueError(f"{name} is the journal of a race: name another file for the picture")
    figure.savefig(name, bbox_inches="tight")
    return name


def _parsed(arguments: Sequence[str] | None) -> Options:
    """The options of a command line."""
    raw = argparse.RawDescriptionHelpFormatter
    what = "Best arm identification under a deadline."
    parser = Parser(prog="python -m ebr", description=what, epilog=EXAMPLE, formatter_class=raw)
    parser.add_argument("--version", action="version", help="print it")
    commands = parser.add_subparsers(required=True, metavar="command")
    for run in (start, ask, tell, stop, status, plan, plot, report, certify):
        command = commands.add_parser(run.__name__, help=run.__doc__, description=run.__doc__)
        command.set_defaults(run=run)
        if run is plan:
            command.add_argument("--start", dest="journal", help="begin the recommended race there")
        else:
            command.add_argument("journal", help="the race's file, for instance trial.jsonl")
        if run is start:  # the journal comes first: after the arms it would be taken for one of them
            command.usage = "%(prog)s journal --arms ARM ARM ... --deadline T --epsilon EPSILON [option ...]"
        _add_options(run.__name__, command)
    words = sys.argv[1:] if arguments is None else arguments
    plain = [format(Decimal(word), "f") if re.fullmatch(BELOW_ZERO, word, re.I) else word for word in words]
    options, rest = parser.parse_known_args(plain)
    # Rewards that follow an option argparse may leave over.
    place = rest.index("--") if "--" in rest else len(rest)
    if rest and (options.run is not tell or any(word.startswith("-") for word in rest[:place])):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if rest:
        options.rewards = [*options.rewards, *rest[:place], *rest[place + 1 :]]
    return options


def _add_options(name: str, command: argparse.ArgumentParser) -> None:
    """Add a command's own options; start and plan share theirs."""
    add = command.add_argument
    if name in ("start", "plan"):
        add("--arms", nargs="+", action="extend", metavar="ARM", help="their names; in a plan also how many")
        add("--deadline", type=int, required=True, help="rounds at most")
        add("--epsilon", type=float, help="how far from the best is good enough, in the rewards' units")
        add("--delta", type=float, help="how likely a failure may be (0.05)")
        add("--budget", type=int, metavar="B", help="pulls at most; finds the epsilon or delta left out")
        add("--rewards", choices=REWARDS, help="each is 0 or 1, or in the support, or normal, or no wider")
        limits, pair = "limits of the rewards (0 1, or none if Gaussian or sub-Gaussian)", ("LOW", "HIGH")
        unsaid: Any = {"dest": "support", "default": argparse.SUPPRESS}
        either = command.add_mutually_exclusive_group().add_argument
        either("--support", nargs=2, type=float, metavar=pair, help=limits, **unsaid)
        either("--unbounded", action="store_const", const=None, help=argparse.SUPPRESS, **unsaid)  # of 0.1.0
        add("--sigma", type=float, help="their standard deviation (half the support's width, or 0.5)")
        guess = "sigma is a guess: the race learns it (Gaussian rewards)"
        add("--sigma-unknown", dest="sigma_known", action="store_false", help=guess)
        add("--lower-is-better", action="store_true", help="the smallest mean is the best, as of a latency")
        add("--k", type=int, default=1, help="how many arms to find, the k best (1)")
        add("--control", action="store_true", help="the last arm is a control")
        add("--margin", type=float, help="by how much; the race ends early if no arm can (epsilon)")
        add("--blocks", action="store_true", help="all arms of a round share the same blocks")
        add("--missing", action="store_true", help="rewards may be missing, at random")
        add("--algorithm", choices=RACES, help="use this race (by default several are compared)")
        means = "what the arms' means may be; may be repeated"
        add("--truth", dest="truths", nargs="+", type=float, action="append", metavar="MEAN", help=means)
        add("--pilot", metavar="CSV", help="rewards of an earlier trial to plan from (columns arm, reward)")
        add("--runs", type=int, metavar="N", help="experiments simulated on each truth (200 or fewer)")
        add("--picture", metavar="FILE", help="draw there what one more round buys (png, svg, pdf)")
    if name == "tell":
        add("rewards", nargs="*", metavar="ARM=COUNT:SUM", help="as A=120:67, or all of them, 'A=[1, 0, 1]'")
        add("--round", type=int, metavar="N", help="their round; refused if another one is due")
        add("--file", metavar="CSV", help="columns arm, reward (one row per pull) or arm, count, sum")
        add("--blocks", metavar="CSV", help="columns block and the arms: one row per block")
        fewer = "'at random', as missing='at random' in Python: for reasons unrelated to any reward"
        add("--missing", metavar="WHY", help=fewer)
        late = "rewards that earlier rounds lacked, in place of as many new ones; may be repeated"
        add("--late", action="append", metavar="ARM=COUNT:SUM", help=late)
    if name == "plot":
        add("--to", metavar="FILE", help="png, svg or pdf by the end of its name (the journal's with .png)")
    if name == "report":
        add("--format", choices=("text", "markdown", "html"), default="text", help="(text)")
        add("--word", default="pulls", help="your word for pulls, for instance subjects (pulls)")


def _say(text: str, journal: str | None = None) -> int:
    """Write to standard output at once; return 0, or 3 if that fails, and say what was recorded."""
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # so that no arm's name stops a command
        sys.stdout.write(text)
        sys.stdout.flush()
    except (AttributeError, OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or (error if sys.stdout else "standard output is closed")
        why = f"the output could not be written ({cause})"
        if journal is not None:
            why = f"recorded, but {why}: do not repeat it, look with {_shell_line('status', journal)}"
        _complain(f"warning: {why}")
        with suppress(AttributeError, OSError, ValueError):  # or Python tries again at exit, and complains
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNSAID
    return 0


def _complain(text: str) -> None:
    """Write a line to standard error if possible; the exit status says the same."""
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(" ".join(text.split()) + "\n")
        sys.stderr.flush()


def standing(race: "ebr.Race", journal: str) -> str:
    """Where the race stands, in a table as of pandas, which takes long to load, and what to do now."""
    from ebr.live.report import digits, word_for_left_out

    pulls, *numbers = race.known
    asked, spelled, survivors = race.asked, digits(race.terms), set(race.survivors)
    names = (" mean", " lower", " upper")
    columns = [["arm", *race.arms], [" pulls", *map(str, pulls)]]
    if asked is not None:
        columns.insert(1, [" pulls now", *(str(asked.get(arm, 0)) for arm in race.arms)])
    columns += [[name, *map(spelled, column)] for name, column in zip(names, numbers, strict=True)]
    left_out = word_for_left_out(race, "out")
    columns.append(["", *("in" if arm in survivors else left_out for arm in race.arms)])
    columns = [[text.rjust(max(map(len, column))) for text in column] for column in columns]
    rows = "\n".join(" ".join(row) for row in zip(*columns, strict=True))
    if race.finished:
        how = f"was stopped in round {race.round}" if race.stopped else f"has ended after round {race.round}"
        return f"The race {how}.\n\n{rows}\n\n{race.verdict}"
    most = f" of at most {race.algorithm.deadline}" if race.algorithm.deadline else ""
    return f"Round {race.round}{most}\n\n{rows}\n\n{_said_now(race)}Next: {_next(race, journal)}"


def _next(race: "ebr.Race", journal: str) -> str:
    """The next command, to be pasted into a shell."""
    if race.asked is None:
        return _shell_line("ask", journal)
    options = [f"--round={race.round}"]
    if race.terms.squares:
        sums = SUMS if race.terms.rewards in IN_UNIT else ""
        return f"{_shell_line('tell', journal, [*options, '--file=rewards.csv'])}\n{SINGLE_REWARDS}{sums}"
    words = [f"{arm}={pulls}:SUM" for arm, pulls in race.asked.items()]
    ends = ["--"] if any(word.startswith("-") for word in words) else []
    line = _shell_line("tell", journal, options, ends + words)
    return f"{line}\n(SUM: the arm's successes in this round, or the sum of its rewards)"


def _said_now(race: "ebr.Race") -> str:
    """What could be said if the race were stopped now, as a line; empty before the first reward."""
    from ebr.live.report import rounded_up

    arm, within = race.now or (None, math.inf)
    if arm is None or race.algorithm.delta is None:
        return ""
    probably = f"of the best with probability {1 - race.algorithm.delta:.4g}"
    sure = not math.isinf(within) and f"{arm} is within {rounded_up(within)} {probably}"
    return f"If the race were stopped now: {sure or 'nothing is guaranteed'}.\n"


def _shell_line(name: str, journal: str, options: Sequence[str] = (), words: Sequence[str] = ()) -> str:
    """A command to be pasted into a shell."""
    file = f"./{journal}" if journal.startswith("-") else journal  # or it is taken for an option
    return shlex.join(["python", "-m", "ebr", name, *options, file, *words])
