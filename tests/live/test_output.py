"""Commands whose output fails: what is recorded is never taken for a refusal, and never counts twice."""

import contextlib
import io
import os
import shlex
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest

import ebr
from ebr.live import output
from ebr.live.cli import main
from ebr.live.race import Race

RULES = ["--deadline", "3", "--epsilon", "0.2"]
START = ["start", "trial.jsonl", "--arms", "A", "Ä", *RULES]
LOOK = "do not repeat it, look with python -m ebr status trial.jsonl\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def full(folder):
    return open("/dev/full", "w", encoding="utf-8")


def broken(folder):
    reading, writing = os.pipe()
    os.close(reading)
    return open(writing, "w", encoding="utf-8")


def shut(folder):
    with open(folder / "shut", "w", encoding="utf-8") as stream:
        return stream


FAILING = {
    "No space left on device": full,
    "Broken pipe": broken,
    "I/O operation on closed file.": shut,
    "standard output is closed": lambda folder: None,  # as Python has it after >&-
}


def asked():
    with Race.open("trial.jsonl") as race:
        return race.ask()


def journal():
    with open("trial.jsonl", encoding="ascii") as file:
        return [line.split('"')[3] for line in file]


@pytest.mark.parametrize("why", FAILING)
def test_success_with_failed_output_has_a_status_and_words_of_its_own(why, folder, monkeypatch, capsys):
    def run(*words):
        with monkeypatch.context() as patch:
            stream = FAILING[why](folder)
            patch.setattr(sys, "stdout", stream)
            status = main(words)
            if stream is not None:
                stream.close()  # what could not be written is not tried again
        return status, capsys.readouterr().err

    recorded = (3, f"warning: recorded, but the output could not be written ({why}): {LOOK}")
    assert run(*START) == recorded
    assert journal() == ["start"]
    assert run("ask", "trial.jsonl") == recorded
    assert journal() == ["start", "ask"]
    tell = ["tell", "trial.jsonl", "--round=1", *(f"{arm}=20/{pulls}" for arm, pulls in asked().items())]
    assert run(*tell) == recorded
    assert journal() == ["start", "ask", "tell"]
    asked()
    status, said = run(*tell)
    assert status == 2
    assert said == "error: round must be 2, got 1, which has been told already, and counts once\n"
    assert journal() == ["start", "ask", "tell", "ask"]
    unsaid = (3, f"warning: the output could not be written ({why})\n")  # of what records nothing
    assert run("status", "trial.jsonl") == unsaid
    assert run("plan", "--arms", "2", "--deadline", "1", "--epsilon", "0.5") == unsaid
    assert run("--version") == unsaid
    if FAILING[why] in (full, broken):  # without a standard output Python's own parser says it elsewhere
        assert run("--help") == unsaid


def test_a_refusal_stays_one_where_output_fails_and_where_errors_cannot_be_said(folder, monkeypatch):
    for stream in (full(folder), broken(folder), None):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        assert main(["ask", "none.jsonl"]) == 2
        assert main(["dance"]) == 2
        with contextlib.suppress(OSError):  # of what Python's own parser has left unwritten
            stream and stream.close()
    assert main(START) == 3
    assert journal() == ["start"]


def test_a_terminal_without_a_letter_gets_its_code(folder, monkeypatch):
    for number, words in enumerate([START, ["ask", "trial.jsonl"], ["status", "trial.jsonl"]]):
        with open(f"{number}", "w", encoding="ascii") as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            monkeypatch.setattr(sys, "stderr", terminal)
            assert main(words) == 0
        assert "\\xc4" in (folder / f"{number}").read_text(encoding="ascii")
    answer = [f"{arm}=20/{pulls}" for arm, pulls in asked().items()]
    with open("told", "w", encoding="ascii") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["tell", "trial.jsonl", *answer]) == 0
    assert journal() == ["start", "ask", "tell"]
    with open("refused", "w", encoding="ascii") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert main(["ask", "Ö.jsonl"]) == 2
    assert (folder / "refused").read_text() == "error: there is no journal \\xd6.jsonl: start a race\n"


def test_a_stream_that_is_none_of_the_systems_will_do(folder, monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(sys, "stdout", said)
    assert main(START) == 0
    assert "Ä" in said.getvalue()


STRANGE = [
    "-A",
    "--b",
    "-1",
    "--",
    "the third",
    "a=b",
    "it's",
    '"$HOME"',
    "Ä",
    "*",
    "a/b",
    "--round=9",
    "a\\b",
]


@pytest.mark.parametrize("name", ["trial.jsonl", "-trial.jsonl", "a trial's.jsonl"])
def test_the_next_command_can_be_pasted_into_a_shell(name, capsys):
    """Whatever the arms and the journal are called; the shell and the command line are asked themselves."""
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
    assert main([word.replace("=SUM/", "=1/") for word in words]) == 0
    capsys.readouterr()
    with Race.open(name) as race:
        assert race.round == 2
        assert race.intervals["pulls"].tolist() == [algorithm.pulls_by_round(len(STRANGE))[0]] * len(STRANGE)
        race.ask()
    assert main([word.replace("=SUM/", "=1/") for word in words]) == 2
    assert "has been told already" in capsys.readouterr().err


@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_the_round_may_be_named_anywhere(place, capsys):
    main(["start", "trial.jsonl", "--arms=-A", "--arms=B", *RULES])
    pulls = asked()
    assert list(pulls) == ["-A", "B"]
    words = ["tell", "trial.jsonl", f"B=1/{pulls['B']}", "--", f"-A=2/{pulls['-A']}"]
    if place < 4:
        words[place:place] = ["--round", "1"]
    else:
        words = ["tell", "trial.jsonl", "--round", "1", "--", *words[2:3], *words[4:]]
    assert main(words) == 0
    assert Race.open("trial.jsonl", readonly=True).history["sum"].tolist() == [2, 1]


def test_words_left_over_are_refused(capsys):
    main(START)
    capsys.readouterr()
    for words in (["ask", "trial.jsonl", "A=1/2"], ["tell", "trial.jsonl", "--round", "1", "-A=1/2"]):
        assert main(words) == 2
        assert capsys.readouterr().err.startswith(f"error: unrecognized arguments: {words[-1]} (see")
    assert main(["ask", "a\nb", "c\nd"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.fixture
def interruptible():
    """An interrupt reaches this process and its children, even where a script with an `&` made them deaf."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_is_one_line_and_says_where_to_look(monkeypatch, capsys):
    main(START)
    answer = [f"{arm}=20/{pulls}" for arm, pulls in asked().items()]
    capsys.readouterr()

    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(output, "shell_line", interrupted)  # when it is recorded, and before it is said
        patch.setattr("ebr.live.cli.standing", lambda *_: interrupted())
        assert main(["tell", "trial.jsonl", *answer]) == 130
    says = "interrupted: see whether it was recorded with python -m ebr status trial.jsonl\n"
    assert capsys.readouterr() == ("", says)
    assert journal() == ["start", "ask", "tell"]
    with monkeypatch.context() as patch:
        patch.setattr(ebr, "plan", lambda **_: interrupted())
        assert main(["plan", "--arms", "2", "--deadline", "1", "--epsilon", "0.5"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_a_process_that_is_interrupted_leaves_one_line_and_writes_nothing(folder):
    main(START)
    asked()
    before = (folder / "trial.jsonl").read_bytes()
    os.mkfifo("rewards.csv")
    command = [sys.executable, "-m", "ebr", "tell", "trial.jsonl", "--file", "rewards.csv"]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(command, **piped) as process,
        open("rewards.csv", "w") as table,  # waits until it is open there, too
    ):
        table.write("arm,reward\nA,1\n")
        table.flush()
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate()
    assert process.returncode == 130
    assert said == ""
    assert complained == "interrupted: see whether it was recorded with python -m ebr status trial.jsonl\n"
    assert (folder / "trial.jsonl").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("to", [">/dev/full", ">&-", "| true"])
def test_a_process_whose_output_fails_ends_with_3_and_one_line(to, folder):
    main(START)
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
    table["survives"] = table["survives"].map({True: "in", False: "out"})
    shown = table.rename(columns={"survives": ""})
    return shown.to_string(index=False, na_rep="-", float_format="{:.4f}".format)


@pytest.mark.parametrize("arms", [["A", "B", "C"], ["a name that is long", "Ä", "-C"]])
def test_a_table_is_printed_as_pandas_prints_it(arms, path):
    with ebr.Race(ebr.SharpElasticBatchRacing(4, 0.05, 0.05), arms, path) as race:
        assert printed_by_pandas(race) in output.standing(race, "trial.jsonl")  # nothing is known of an arm
        while not race.finished:
            asked = race.ask()
            table = race.intervals.loc[list(asked), ["pulls"]].reset_index()
            table.insert(1, "pulls now", list(asked.values()))
            table = table.rename(columns={"pulls": "pulls so far"})
            assert table.to_string(index=False) in output.asking(race, asked, "trial.jsonl")
            race.tell({arm: (pulls, 0.9 / (1 + arms.index(arm)) * pulls) for arm, pulls in asked.items()})
            assert printed_by_pandas(race) in output.standing(race, "trial.jsonl")
        assert not race.intervals["survives"].all()
