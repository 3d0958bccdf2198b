"""The command line: a race from its start to its end, errors in one line, and output that fails."""

import contextlib
import io
import math
import shlex
import subprocess
import sys
import warnings
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest

import ebr
from ebr.live import cli
from ebr.live.cli import main
from ebr.live.race import Race

RULES = ["--deadline", "3", "--epsilon", "0.2", "--delta", "0.1"]
START = ["start", "trial.jsonl", "--arms", "A", "B", "the third", *RULES, "--algorithm", "ebr"]
NEW = ["start", "b.jsonl", "--arms", "A", "B", *RULES]
THREE = ["--arms", "A", "B", "C", "--deadline", "3"]
FIRST = 264  # pulls in the first round
pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def begun(folder, run):
    """The journal of a race whose first round has been asked for."""
    run(*START)
    run("ask", "trial.jsonl")
    return folder / "trial.jsonl"


def test_round_by_round_until_it_ends(run, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status, said = run(*START)
    assert status == 0
    assert "\nrecommended: ebr, elastic batch racing\n" in said
    assert said.endswith("\nNext: python -m ebr ask trial.jsonl\n")
    assert run(*START) == (0, said)  # the same race, nothing changes
    assert len((folder / "trial.jsonl").read_text().splitlines()) == 1
    means, rounds = {"A": 0.8, "B": 0.78, "the third": 0.1}, 0
    while "has ended" not in said:
        rounds += 1
        status, said = run("ask", "trial.jsonl")
        assert status == 0
        assert said.startswith(f"Round {rounds} of at most 3\n")
        sums = f"A={FIRST}:SUM B={FIRST}:SUM 'the third={FIRST}:SUM'\n"  # quoted for a shell
        assert rounds > 1 or f"\nNext: python -m ebr tell --round=1 trial.jsonl {sums}" in said
        answer = [f"{arm}={int(means[arm] * n)}/{n}" for arm, n in asked().items()]
        status, said = run("tell", "trial.jsonl", *answer)
        assert status == 0
    assert rounds == 3
    assert said.endswith("\n\nIt recommends A.\n")
    race = Race.open("trial.jsonl", readonly=True)
    assert race.algorithm == ebr.ElasticBatchRacing(3, 0.2, 0.1)
    (row,) = (line for line in said.splitlines() if line.lstrip().startswith("the third"))
    assert row.split()[2:4] == [str(FIRST), f"{race.intervals.loc['the third', 'mean']:.4f}"]
    assert row.endswith("out")


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("arm,reward\n", "%s,1\n" * FIRST),
        ("sum, arm, count\n", f"{FIRST},%s,{FIRST}\n\n"),
        ("site,arm,note,reward,note\n", "x,%s,,1,late\n" * FIRST),
    ],
    ids=["singles", "sums", "further columns"],
)
@pytest.mark.usefixtures("begun")
def test_rewards_come_from_a_table_too(run, folder, head, row):
    rows = [row.replace("%s", arm) for arm in ("A", "B", "the third")]
    (folder / "rewards.csv").write_text("".join([head, *rows]), encoding="utf-8-sig")
    status, said = run("tell", "trial.jsonl", "--file", "rewards.csv")
    assert status == 0
    assert said.startswith("Round 2")
    with Race.open("trial.jsonl") as race:
        assert race.intervals["mean"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("arm,value\nA,1\n", "must have the columns arm,reward or arm,count,sum in its first line, got"),
        ("arm,reward\nA,1\nB,one\n", "rewards.csv, line 3: 'one' is not a number"),
        ("arm,reward\nA\n", "line 2 must have 2 columns, got {'arm': 'A', 'reward': None}"),
        ("arm,count,sum\nA,1.5,1\n", "line 2: the count must be a whole number, got '1.5'"),
        ("arm,count,sum\nA,1,1\nA,1,1\n", "line 3: A must come once, got it again: add its rewards up"),
        ("arm,reward\n\0,1\n", "arm '\\x00' is unknown"),
        ("arm,count,count,sum,sum\n", "must have the columns arm,reward or arm,count,sum in its first"),
        ("x" * 70_000, "rewards.csv must have the columns arm,reward or"),
        (b"arm,reward\n\xff,1\n", "rewards.csv cannot be read as a table in UTF-8: 'utf-8' codec"),
        ("blocks,A\n1,2", "must have the columns block and one for each arm"),
        ("block,A,A\n1,2,3", "must have the columns block and one for each arm, all different"),
        ("arm,reward\nA,\n", "line 2: '' is not a number: leave out the row of a missing reward"),
        ("block,A,B\n1,2,3\n1,2,3", "rewards.csv must have each block once, got ['1']"),
        ('arm,reward\n"' + "x\n" * 70_000, "rewards.csv cannot be read as a table in UTF-8: field larger"),
    ],
)
def test_a_wrong_table_is_refused_and_nothing_written(run, begun, folder, content, says):
    before = begun.read_bytes()
    content = content if isinstance(content, bytes) else content.encode()
    (folder / "rewards.csv").write_bytes(content)
    option = "--blocks" if content.startswith(b"block") else "--file"
    status, said = run("tell", "trial.jsonl", option, "rewards.csv")
    assert status == 2
    assert says in said
    assert begun.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tell", "trial.jsonl"], "give either ARM=COUNT:SUM for each arm or --file"),
        (["tell", "trial.jsonl", "A=1/2", "--file", "x.csv"], "give either"),
        (["tell", "trial.jsonl", "--file", "x.csv"], "error: x.csv: No such file or directory"),
        (["tell", "trial.jsonl", "A=67"], "'A=67' must be of the form ARM=COUNT:SUM, for instance A=120:67"),
        (["tell", "trial.jsonl", "A=120:x"], "'A=120:x': 'x' is not a number"),
        (["tell", "trial.jsonl", "A=[1, x]"], "'A=[1, x]': ' x' is not a number"),
        (["tell", "trial.jsonl", "A=67/-1"], "the count must be a whole number, got '-1'"),
        (["tell", "trial.jsonl", "A=1/2", "A=1/2"], "A must come once, got it again"),
        (["tell", "trial.jsonl", "A=1/2"], "rewards of B, the third are missing"),
        (["start", "trial.jsonl", "--arms", "A", "B", *RULES], "journal of another race (algorithm is"),
        ([*NEW, "--epsilon", "x"], "invalid float value: 'x'"),
        (["tell", "trial.jsonl", "--file", "/dev/zero"], "/dev/zero must have the columns arm,reward or"),
        (["tell", "trial.jsonl", "A=1/2", "--round", "2"], "round must be 1, got 2, which has not come yet"),
        ([*START, "--rewards", "Gaussian"], "rewards must be left out for algorithm 'ebr', got 'Gaussian'"),
        (["dance"], "invalid choice: 'dance'"),
        ([], "required: command"),
        (["certify", "trial.jsonl"], "trial.jsonl must be the journal of a certified race, got 'Elastic"),
        ([*NEW, "--control", "B"], "unrecognized arguments: B"),
        ([*NEW[:2], *RULES], "n_arms must be an integer of at least 2, got None"),
        (["plot", "trial.jsonl", "--to", "trial.jsonl"], "trial.jsonl is the journal of a race: name"),
        (["plot", "trial.jsonl", "--to", "a.doc"], "Format 'doc' is not supported"),
        (["report", "trial.jsonl", "--word", " "], "word must be what pulls are called, for instance 'sub"),
    ],
)
def test_errors_are_one_line_and_write_nothing(run, begun, folder, words, says):
    before = begun.read_bytes()
    status, said = run(*words)
    assert status == 2
    assert says in said
    assert begun.read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["trial.jsonl"]


def test_looking_is_possible_while_another_writes(run):
    with Race(ebr.SequentialRacing(0.3, 0.1), ["A", "B"], "trial.jsonl") as race:
        race.ask()
        assert "open for writing elsewhere" in run("ask", "trial.jsonl")[1]
        status, said = run("status", "trial.jsonl")
    assert status == 0
    assert said.startswith("Round 1\n")  # this race has no deadline
    assert ":SUM B=" in said


def test_a_torn_line_is_warned_of_in_one_line(capsys, folder):
    main(START)
    journal = folder / "trial.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"event": "ask", "rou')
    capsys.readouterr()
    for command in ("status", "ask", "status"):
        assert main([command, "trial.jsonl"]) == 0
    warned = capsys.readouterr().err.splitlines()
    assert len(warned) == 2
    assert warned[0].startswith("warning: the last line of trial.jsonl is torn")
    assert warned[0].endswith("is ignored")
    assert warned[1].endswith("trial.jsonl.torn")


def test_rules_reach_the_algorithm(run):
    assert run(*NEW, "--algorithm", "sharp", "--sigma", 2, "--rewards", "Gaussian")[0] == 0
    with Race.open("b.jsonl") as race:
        assert race.algorithm == ebr.SharpElasticBatchRacing(3, 0.05, 0.1, rewards="Gaussian")
        assert (race.terms.scale.width, race.terms.support) == (4, None)  # 2σ
        race.tell({arm: (pulls, -1e6) for arm, pulls in race.ask().items()})  # any finite reward is accepted
        assert race.history["sum"].tolist() == [-1e6, -1e6]
    assert run("start", "c.jsonl", *THREE, "--epsilon", "0.2", "--blocks")[0] == 0
    with Race.open("c.jsonl") as race:
        assert race.algorithm.delta == 0.05
        assert race.algorithm.sigma == pytest.approx(math.sqrt(0.5))  # differences may need it


# The terms of a race, and all kinds of rewards.


def test_a_race_in_milliseconds_where_smaller_is_better(run):
    units = ["--epsilon", 30, "--support", 0, 300, "--algorithm", "sharp"]
    options = [*units, "--lower-is-better", "--control", "--margin", 60]
    assert run("start", "ms.jsonl", *THREE, *options)[0] == 0
    with Race.open("ms.jsonl") as race:
        assert race.algorithm == ebr.SharpElasticBatchRacing(3, 0.1, 0.05, control=2, margin=0.2)
    said = ""
    while "has ended" not in said:
        run("ask", "ms.jsonl")
        pulls = Race.open("ms.jsonl", readonly=True).asked
        said = run("tell", "ms.jsonl", *(f"{arm}={count * 100}/{count}" for arm, count in pulls.items()))[1]
        assert " 100.00 " in said
    assert "It recommends C, the control: no arm beats it by 60 or more." in said
    assert run("start", "ms.jsonl", *THREE, *options)[0] == 0  # the same race
    refused = run("start", "ms.jsonl", *THREE, *units)[1]
    assert "scale is [300.0, 0.0] there and [0.0, 300.0] here" in refused


def test_an_old_word_for_rewards_without_limits_warns_and_works(run, capsys):
    words = ["start", "t.jsonl", *map(str, THREE), "--epsilon", "0.1"]
    assert main([*words, "--unbounded"]) == 0
    assert capsys.readouterr().err.startswith("warning: --unbounded is old")
    assert Race.open("t.jsonl", readonly=True).terms.support is None
    assert run(*words, "--unbounded", "--support", 0, 1)[0] == 2


@pytest.mark.parametrize("low", ["-1e3", "-1.E+3", "-1000"])
def test_a_support_below_zero_is_written_as_any_number_is(run, low):
    assert run("start", "t.jsonl", *THREE, "--epsilon", 100, "--support", low, "1e3")[0] == 0
    assert Race.open("t.jsonl", readonly=True).terms.support == (-1000, 1000)


def test_missing_rewards_are_told_with_their_reason(run):
    run("start", "t.jsonl", *THREE, "--epsilon", 0.2)
    run("ask", "t.jsonl")
    told = ["tell", "t.jsonl", "A=5/10", "B=0/0", "C=4/9"]
    assert "say missing='at random' (--missing 'at random')" in run(*told)[1]
    assert run(*told, "--missing", "bad luck")[0] == 2
    status, said = run(*told, "--missing", "at random")
    assert status == 0
    assert "Round 2 of at most 3" in said


def test_blocks_are_told_as_a_table(run, folder):
    run("start", "b.jsonl", *THREE, "--epsilon", 0.2, "--blocks", "--sigma", 0.3, "--rewards", "sub-Gaussian")
    run("ask", "b.jsonl")
    count = Race.open("b.jsonl", readonly=True).asked["A"]
    rows = [f"rain,day {k},{k},{k + 1},,{k}" for k in range(count)]
    (folder / "days.csv").write_text("\n".join(["weather,block,A,B,note,C", *rows]))
    status, said = run("tell", "b.jsonl", "--blocks", "days.csv")
    assert status == 0
    assert "It recommends B." in said
    assert np.diff(Race.open("b.jsonl", readonly=True).intervals["mean"]) == pytest.approx([1, -1])


def test_a_certified_race_is_designed_once_and_checked_from_its_journal(run, folder):
    options = ["--deadline", 3, "--epsilon", 0.4, "--delta", 0.1, "--algorithm", "certified"]
    status, said = run("start", "a.jsonl", "--arms", "A", "B", *options, "--control", "--margin", 0.6)
    assert status == 0, said
    with Race.open("a.jsonl", readonly=True) as race:
        design = ebr.certified_design(2, 3, 0.4, 0.1, shifts=(0.6,)).race
        assert race.algorithm == replace(design, control=1, margin=0.6)
    assert run("certify", "a.jsonl")[1].startswith("Certified: whatever the arms' means are, a failure has")
    for rewards in ("Bernoulli", "Gaussian"):
        loose = ebr.CertifiedElasticBatchRacing(2, (2, 4), (0.5,), 0.4, 0.1, rewards=rewards)
        support = None if rewards == "Gaussian" else (0, 1)
        Race(loose, ["A", "B"], folder / f"{rewards}.jsonl", support=support).close()
        status, said = run("certify", f"{rewards}.jsonl")
        assert (status, "that the looks and boundaries keep (not certified), got 0.1" in said) == (2, True)


@pytest.mark.parametrize(
    ("options", "word"), [(["--algorithm", "pausing"], "paused or out"), (["--k", "2"], "decided")]
)
def test_an_arm_that_is_left_out_is_not_out_where_it_may_come_back_or_be_accepted(options, word, run):
    words = ["start", "t.jsonl", *THREE, "--arms", "D", "--epsilon", "0.05", *options]
    assert run(*words, "--rewards", "Bernoulli")[0] == 0
    with Race.open("t.jsonl") as race:
        means = dict(zip("ABCD", (0, 0, 0.9, 0.9) if word != "decided" else (0, 1, 0.5, 0.5), strict=True))
        race.tell({arm: (n, round(means[arm] * n)) for arm, n in race.ask().items()})
        assert race.survivors == ["C", "D"]
    rows = [line.split(maxsplit=5) for line in run("status", "t.jsonl")[1].splitlines()]
    standing = {row[0]: row[-1] for row in rows if row and row[0] in "ABCD"}
    assert standing == {"A": word, "B": word, "C": "in", "D": "in"}


# Output that fails: a recorded round must not look like a refusal, and never counts twice.

UMLAUT = ["start", "trial.jsonl", "--arms", "A", "Ä", "--deadline", "3", "--epsilon", "0.2"]
LOOK = "do not repeat it, look with python -m ebr status trial.jsonl\n"


def full():
    return open("/dev/full", "w", encoding="utf-8")


FAILING = {
    "No space left on device": full,
    "standard output is closed": lambda: None,  # as in Python after >&-
}


def asked():
    with Race.open("trial.jsonl") as race:
        return race.ask()


def journal():
    with open("trial.jsonl", encoding="ascii") as file:
        return [line.split('"')[3] for line in file]


@pytest.mark.parametrize("why", FAILING)
def test_success_with_failed_output_has_its_own_status_and_warning(why, monkeypatch, capsys):
    def run(*words):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", FAILING[why]())
            status = main(words)
            if sys.stdout:
                sys.stdout.close()  # what could not be written is not tried again
        return status, capsys.readouterr().err

    recorded = (3, f"warning: recorded, but the output could not be written ({why}): {LOOK}")
    assert run(*UMLAUT) == recorded
    assert run("ask", "trial.jsonl") == recorded
    assert journal() == ["start", "ask"]
    tell = ["tell", "trial.jsonl", "--round=1", *(f"{arm}=8/{pulls}" for arm, pulls in asked().items())]
    assert run(*tell) == recorded
    assert journal() == ["start", "ask", "tell"]
    asked()
    told = "error: round must be 2, got 1, which has been told already, and counts once\n"
    assert run(*tell) == (2, told)
    unsaid = (3, f"warning: the output could not be written ({why})\n")  # for commands that record nothing
    for words in ("status trial.jsonl", "plan --arms 2 --deadline 1 --epsilon 0.5"):
        assert run(*words.split()) == unsaid
    assert run("stop", "trial.jsonl") == recorded
    assert journal() == ["start", "ask", "tell", "ask", "stop"]
    if FAILING[why] is full:  # without stdout Python's parser writes elsewhere
        assert run("--help") == run("--version") == unsaid


def test_a_refusal_has_its_status_even_if_no_output_is_possible(monkeypatch):
    for stream in (full(), None):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        assert main(["ask", "none.jsonl"]) == 2
        assert main(["dance"]) == 2
        with contextlib.suppress(OSError):  # from text that Python's parser has not written
            stream and stream.close()
    assert main(UMLAUT) == 3
    assert journal() == ["start"]


def test_a_terminal_that_lacks_a_letter_gets_its_code(folder, monkeypatch):
    def run(*words):
        with open("terminal", "w", encoding="ascii") as out, open(out.fileno(), "w", closefd=False) as err:
            err.reconfigure(encoding="ascii", errors="backslashreplace")  # as Python does
            monkeypatch.setattr(sys, "stdout", out)
            monkeypatch.setattr(sys, "stderr", err)
            status = main(words)
        return status, (folder / "terminal").read_text(encoding="ascii")

    for words in (UMLAUT, ["ask", "trial.jsonl"], ["status", "trial.jsonl"]):
        status, said = run(*words)
        assert status == 0
        assert "\\xc4" in said
    assert run("tell", "trial.jsonl", *(f"{arm}=8/{pulls}" for arm, pulls in asked().items()))[0] == 0
    assert journal() == ["start", "ask", "tell"]
    assert run("ask", "Ö.jsonl") == (2, "error: there is no journal \\xd6.jsonl: start a race\n")


def test_stdout_may_be_any_stream(folder, monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    assert main(UMLAUT) == 0
    assert "Ä" in said.getvalue()


def test_single_rewards_are_asked_for_where_they_save_pulls(run, folder):
    """Single rewards are always 0.5 or 0.45. From their sums alone they could be zeros and ones."""
    run("start", "trial.jsonl", *NEW[2:], "--algorithm", "staked")
    _, said = run("ask", "trial.jsonl")
    assert "\nNext: python -m ebr tell --round=1 --file=rewards.csv trial.jsonl\n(rewards.csv: " in said
    pulls, means = asked(), {"A": 0.5, "B": 0.45}
    rows = [f"{arm},{means[arm]}\n" * count for arm, count in pulls.items()]
    (folder / "rewards.csv").write_text("arm,reward\n" + "".join(rows))
    (folder / "sums.jsonl").write_bytes((folder / "trial.jsonl").read_bytes())
    assert run("tell", "--round=1", "--file=rewards.csv", "trial.jsonl")[0] == 0
    sums = [f"{arm}={count}:{count * means[arm]}" for arm, count in pulls.items()]
    assert run("tell", "--round=1", "sums.jsonl", *sums)[0] == 0
    single, summed = (Race.open(name, readonly=True) for name in ("trial.jsonl", "sums.jsonl"))
    assert (single.finished, summed.finished) == (True, False)


def test_a_stopped_race_says_so_and_what_a_stop_would_guarantee(run):
    run("start", "trial.jsonl", *NEW[2:], "--rewards", "Bernoulli", "--algorithm", "certified")
    assert "If the race were stopped now" not in run("ask", "trial.jsonl")[1]
    pulls = asked()["A"]
    _, said = run("tell", "trial.jsonl", *(f"{arm}={pulls // 2}/{pulls}" for arm in "AB"))
    assert "\nIf the race were stopped now: nothing is guaranteed.\n" in said
    assert run("stop", "trial.jsonl")[1].startswith("The race was stopped in round 2.\n")


def test_a_name_with_braces_is_said_as_it_is_where_a_race_could_be_stopped(run):
    run("start", "trial.jsonl", "--arms", "{A}", "{}", *RULES, "--algorithm", "sharp")
    run("ask", "trial.jsonl")
    _, said = run("tell", "trial.jsonl", *(f"{arm}={pulls // 2}/{pulls}" for arm, pulls in asked().items()))
    assert "\nIf the race were stopped now: {A} is within 0." in said


def test_a_picture_without_an_ending_is_a_png_and_no_journal(run, folder, begun):
    assert run("plot", "trial.jsonl", "--to", "race") == (0, "drawn in race.png\n")
    assert (folder / "race.png").exists()
    begun.rename("race.png")
    error = "error: race.png is the journal of a race: name another file for the picture\n"
    assert run("plot", "race.png", "--to", "race") == (2, error)


STRANGE = ["-A", "--b", "-1", "--", "the third", "a=b", "it's", '"$HOME"', "Ä", "*", "a/b", "--round=9"]


@pytest.mark.parametrize("name", ["trial.jsonl", "-trial.jsonl", "a trial's.jsonl"])
def test_the_next_command_can_be_pasted_into_a_shell(name, capsys):
    """With any names of arms and journals, as a real shell and the command line read them."""
    algorithm = ebr.ElasticBatchRacing(3, 0.4, 0.4)
    Race(algorithm, STRANGE, name).close()

    def pasted(said):
        (line,) = (line for line in said.splitlines() if line.startswith("Next: "))
        script = f"set -- {line.removeprefix('Next: ')}; printf '%s\\0' \"$@\""
        words = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
        python, module, package, *words = words.split("\0")[:-1]
        assert (python, module, package) == ("python", "-m", "ebr")
        return words

    assert main(["status", "--", name]) == 0
    assert main(pasted(capsys.readouterr().out)) == 0
    words = pasted(capsys.readouterr().out)
    assert "--round=1" in words
    assert main([word.replace(":SUM", ":1") for word in words]) == 0
    capsys.readouterr()
    with Race.open(name) as race:
        assert race.round == 2
        assert race.intervals["pulls"].tolist() == [algorithm.pulls_by_round(len(STRANGE))[0]] * len(STRANGE)
        race.ask()
    assert main([word.replace(":SUM", ":1") for word in words]) == 2
    assert "has been told already" in capsys.readouterr().err


@pytest.mark.parametrize("place", [1, 2, 3])
def test_the_round_may_be_named_anywhere(place, capsys):
    main(["start", "trial.jsonl", "--arms=-A", "--arms=B", *RULES])
    pulls = asked()
    words = ["tell", "trial.jsonl", f"B=1/{pulls['B']}", "--", f"-A=2/{pulls['-A']}"]
    words[place:place] = ["--round", "1"]
    assert main(words) == 0
    assert Race.open("trial.jsonl", readonly=True).history["sum"].tolist() == [2, 1]


def test_words_left_over_are_refused(capsys):
    main(UMLAUT)
    capsys.readouterr()
    for words in (["ask", "trial.jsonl", "A=1/2"], ["tell", "trial.jsonl", "--round", "1", "-A=1/2"]):
        assert main(words) == 2
        assert capsys.readouterr().err.startswith(f"error: unrecognized arguments: {words[-1]} (see")
    assert main(["ask", "a\nb", "c\nd"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# Runs a command and interrupts it when it loads a module. Started with `&` it would ignore interrupts.
INTERRUPTED = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Finder:
    def find_spec(name, *_):
        if name == loaded:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
_, loaded, *sys.argv[1:] = sys.argv
runpy.run_module("ebr", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("loaded", ["ebr.live.cli", "numpy", "ebr.live.rewards"])
def test_an_interrupt_is_one_line_and_no_traceback_while_modules_are_loaded_too(folder, loaded):
    main(UMLAUT)
    asked()
    command = [sys.executable, "-c", INTERRUPTED, loaded, "tell", "trial.jsonl", "A=1:1"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr == "interrupted: python -m ebr status JOURNAL says what was recorded\n"
    assert journal() == ["start", "ask"]


@pytest.mark.slow
@pytest.mark.parametrize("to", [">/dev/full", ">&-", "| true"])
def test_a_process_whose_output_fails_ends_with_3_and_one_line(to, folder):
    main(UMLAUT)
    ask = f"{shlex.quote(sys.executable)} -m ebr ask trial.jsonl; echo $? >&2"
    shell = ["sh", "-c", f"{{ {ask}; }} {to}"]
    result = subprocess.run(shell, capture_output=True, text=True)
    said, status = result.stderr.splitlines()
    assert said.startswith("warning: recorded, but the output could not be written (")
    assert status == "3"


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ebr {version('ebr')}\n"


def printed_by_pandas(race):
    table = race.intervals.reset_index()
    if race.asked:
        table.insert(1, "pulls now", [race.asked.get(arm, 0) for arm in race.arms])
    table["survives"] = table["survives"].map({True: "in", False: "out"})
    shown = table.rename(columns={"survives": ""})
    return shown.to_string(index=False, na_rep="-", float_format="{:.4f}".format)


@pytest.mark.parametrize("arms", [["A", "B", "C"], ["a name that is long", "Ä", "-C"]])
def test_a_table_is_printed_as_pandas_prints_it(arms, path):
    with ebr.Race(ebr.SharpElasticBatchRacing(4, 0.05, 0.05), arms, path) as race:
        while not race.finished:
            assert printed_by_pandas(race) in cli.standing(race, "trial.jsonl")  # also without rewards
            pulls = race.ask()
            assert printed_by_pandas(race) in cli.standing(race, "trial.jsonl")
            race.tell({arm: (n, 0.9 / (1 + arms.index(arm)) * n) for arm, n in pulls.items()})
        assert printed_by_pandas(race) in cli.standing(race, "trial.jsonl")
        assert not race.intervals["survives"].all()
