"""The options of each command of the command line."""

import argparse

from ebr.models import REWARDS

KINDS = ("sharp", "pausing")  # the algorithms that are told what is known of the rewards


def journal(command: argparse.ArgumentParser) -> None:
    """Of a command that needs no more than the journal."""
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


def of_start(command: argparse.ArgumentParser) -> None:
    """Of a race's start."""
    # The journal first: behind the arms it would be taken for one of them.
    command.usage = "%(prog)s journal --arms ARM ARM ... --deadline T --epsilon EPSILON [option ...]"
    journal(command)
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


def of_tell(command: argparse.ArgumentParser) -> None:
    """Of a round's rewards."""
    journal(command)
    command.add_argument("rewards", nargs="*", metavar="ARM=SUM/COUNT", help="for instance A=67/120")
    command.add_argument("--round", type=int, metavar="N", help="whose they are: refused if it is another's")
    command.add_argument("--file", metavar="CSV", help="columns arm,reward (a row a pull) or arm,count,sum")
    command.add_argument("--blocks", metavar="CSV", help="columns block and then the arms: a row a block")
    fewer = "'at random': some are missing for reasons that have nothing to do with any reward"
    command.add_argument("--missing", metavar="WHY", help=fewer)


def _design(command: argparse.ArgumentParser) -> None:
    """What is planned."""
    command.add_argument("--arms", dest="n_arms", type=int, required=True, metavar="N", help="how many")
    _guarantee(command, needed=False)
    buys = "pulls of all arms at most: find the epsilon that they buy, or with --epsilon alone the delta"
    command.add_argument("--budget", type=int, metavar="B", help=buys)
    _rules(command)
    command.add_argument("--algorithm", choices=KINDS, default="sharp", help="(sharp)")
    command.add_argument(
        "--control", action="store_true", help="one arm is a control: end early if none is better"
    )
    _margin(command)
    _support(command)


def of_plan(command: argparse.ArgumentParser) -> None:
    """Of a plan."""
    _design(command)
    drawn = "draw there what one more round buys (png, svg, pdf)"
    command.add_argument("--picture", metavar="FILE", help=drawn)


def of_characteristics(command: argparse.ArgumentParser) -> None:
    """Of operating characteristics: a plan's, and how it is tried."""
    _design(command)
    add = command.add_argument
    own = "means that the arms may have, one each, as parts of the support; may be repeated (a grid of them)"
    add("--truth", dest="truths", nargs="+", type=float, action="append", metavar="MEAN", help=own)
    add("--runs", type=int, default=1000, help="races simulated on each truth (1000)")
    add("--seed", type=int, default=0, help="of the simulation (0)")
    add("--csv", metavar="FILE", help="write the table there")
    add("--picture", metavar="FILE", help="draw it there (png, svg, pdf)")


def of_report(command: argparse.ArgumentParser) -> None:
    """Of a race's report."""
    journal(command)
    command.add_argument("--format", choices=("text", "markdown", "html"), default="text", help="(text)")
