"""What a command says of a race, and how it is written: in the letters that the terminal has."""

import io
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # slow to import, and a word of help needs none of it
    from ebr.live.race import Race


def replace_letters() -> None:
    """Write what an encoding lacks as its code, so that no name of an arm ends a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # one that takes nothing: said when something is written
                stream.reconfigure(errors="backslashreplace")


def written(text: str) -> str | None:
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


def complain(text: str) -> None:
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
    from ebr.live.rules import word_for_left_out

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
        return f"Next: {shell_line('ask', journal)}"
    words = [f"{arm}=SUM/{pulls}" for arm, pulls in race.asked.items()]
    ends = ["--"] if any(word.startswith("-") for word in words) else []
    line = shell_line("tell", journal, [f"--round={race.round}"], ends + words)
    return f"Next: {line}\n(SUM: the arm's successes in this round, or the sum of its rewards)"


def shell_line(name: str, journal: str, options: Sequence[str] = (), words: Sequence[str] = ()) -> str:
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
