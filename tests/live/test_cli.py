"""A race from a terminal: from its start to its end, and errors in one line."""

import runpy
import subprocess
import sys
import warnings

import pytest

import ebr
from ebr.live.cli import main
from ebr.live.race import Race

RULES = ["--deadline", "3", "--epsilon", "0.2", "--delta", "0.1"]
START = ["start", "trial.jsonl", "--arms", "A", "B", "the third", *RULES, "--algorithm", "ebr"]
FIRST = 264  # pulls in the first round


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    """Run a command in this process: its status, and what it says."""

    def run(*words):
        try:
            status = main(words)
        except SystemExit as end:  # argparse's own way out
            status = end.code
        said = capsys.readouterr()
        assert (status == 2) == said.err.startswith("error: ")
        if status == 2:
            assert said.out == ""
            assert said.err.count("\n") == 1
        return status, said.out or said.err

    return run


@pytest.mark.slow
def test_a_race_from_start_to_end_each_command_a_process_of_its_own(folder):
    def command(*words):
        result = subprocess.run(
            [sys.executable, "-m", "ebr", *words], cwd=folder, capture_output=True, text=True
        )
        assert "Traceback" not in result.stderr
        return result.returncode, result.stdout, result.stderr

    status, said, _ = command("start", "trial.jsonl", "--arms", "A", "B", *RULES)
    assert status == 0
    assert said.startswith("Round 1 of at most 3\n")
    assert said.endswith("Next: python -m ebr ask trial.jsonl\n")
    status, said, _ = command("ask", "trial.jsonl")
    pulls = ebr.SharpElasticBatchRacing(3, 0.2, 0.1).pulls_by_round(2, "bounded")[0]
    assert status == 0
    assert f"\n  A {pulls:>10} {0:>13}\n" in said
    assert f"python -m ebr tell --round=1 trial.jsonl A=SUM/{pulls} B=SUM/{pulls}\n" in said
    status, said, _ = command("tell", "trial.jsonl", f"A={pulls}/{pulls}", f"B=0/{pulls}")
    assert status == 0
    assert said.startswith("The race has ended after round 1.\n")
    assert command("status", "trial.jsonl") == (0, said, "")
    assert said.endswith("It recommends A.\n")


@pytest.mark.slow
def test_a_command_does_not_wait_for_matplotlib():
    program = (
        "import sys\n"
        "from ebr.live.cli import main\n"
        f"assert main({START!r}) == 0\n"
        "assert main(['ask', 'trial.jsonl']) == 0\n"
        "assert main(['plan', '--arms', '2', '--deadline', '1', '--epsilon', '0.3']) == 0\n"
        "sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_a_refusal_is_the_exit_status(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ebr", "ask", "trial.jsonl"])
    monkeypatch.delitem(sys.modules, "ebr.__main__", raising=False)  # as a new process would find it
    with pytest.raises(SystemExit) as end:
        runpy.run_module("ebr", run_name="__main__")
    assert end.value.code == 2
    assert capsys.readouterr().err == "error: there is no journal trial.jsonl: start a race\n"


def test_round_by_round_until_it_ends(run, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status, said = run(*START)
    assert status == 0
    assert run(*START) == (0, said)  # the same race: nothing new
    assert len((folder / "trial.jsonl").read_text().splitlines()) == 1
    total, successes = FIRST, {"A": 0.8, "B": 0.78, "the third": 0.1}
    rounds = 0
    while "ended" not in said:
        rounds += 1
        status, said = run("ask", "trial.jsonl")
        assert status == 0
        assert said.startswith(f"Round {rounds} of at most 3\n")
        rows = said.split("\n\n")[1].splitlines()[1:]
        asked = {
            row.rsplit(maxsplit=2)[0].strip(): [int(cell) for cell in row.rsplit(maxsplit=2)[1:]]
            for row in rows
        }
        answers = [f"{arm}={int(successes[arm] * now)}/{now}" for arm, (now, _) in asked.items()]
        if rounds == 1:
            assert asked == {arm: [FIRST, 0] for arm in successes}
            assert f"'the third=SUM/{FIRST}'" in said  # quoted, to be typed into a shell
        else:
            assert {so_far for _, so_far in asked.values()} == {total}
            total += asked["A"][0]
        status, said = run("tell", "trial.jsonl", *answers)
        assert status == 0
    assert rounds == 3
    assert said.endswith("\n\nIt recommends A.\n")
    with Race.open("trial.jsonl") as race:
        assert race.recommendation == "A"
        assert race.history["pulls"].sum() == 2 * total + FIRST
        assert race.algorithm == ebr.ElasticBatchRacing(3, 0.2, 0.1)
        mean = race.intervals.loc["the third", "mean"]
    (row,) = (line for line in said.splitlines() if line.lstrip().startswith("the third"))
    assert row.split()[2:4] == [str(FIRST), f"{mean:.4f}"]
    assert row.endswith("out")


def write_singles(folder, arms, mean=1):
    rows = [f"{arm},{mean}" for _ in range(FIRST) for arm in arms]
    (folder / "rewards.csv").write_text("\n".join(["arm,reward", *rows]), encoding="utf-8-sig")


def write_sums(folder, arms):
    (folder / "rewards.csv").write_text(
        "".join(["sum, arm, count\n", *(f"{FIRST},{arm},{FIRST}\n\n" for arm in arms)])
    )


@pytest.mark.parametrize("write", [write_singles, write_sums])
def test_rewards_come_from_a_table_too(run, folder, write):
    run(*START)
    run("ask", "trial.jsonl")
    write(folder, ["A", "B", "the third"])
    status, said = run("tell", "trial.jsonl", "--file", "rewards.csv")
    assert status == 0
    assert said.startswith("Round 2")
    with Race.open("trial.jsonl") as race:
        assert race.intervals["mean"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("arm,value\nA,1\n", "must have the columns arm,reward or arm,count,sum in its first line"),
        ("", "must have the columns"),
        ("arm,reward\nA,1\nB,one\n", "rewards.csv, line 3: 'one' is not a number"),
        ("arm,reward\nA,1\nB,\n", "rewards.csv, line 3: '' is not a number"),
        ("arm,reward\nA\n", "line 2: there must be 2 columns"),
        ("arm,reward\nA,1,1\n", "line 2: there must be 2 columns"),
        ("arm,count,sum\nA,1.5,1\n", "line 2: the count must be a whole number, got '1.5'"),
        ("arm,count,sum\nA,1,1\nA,1,1\n", "line 3: there are rewards of A before; add them up"),
        ("arm,reward\nZ,1\n", "arm 'Z' is unknown"),
        ("arm,reward\n", "rewards of A, B, the third are missing"),
        ("arm,reward\n\0,1\n", "arm '\\x00' is unknown"),
        ("arm,reward,reward\nA,1,0\n", "arm,count,sum in its first line, and 'reward' once only"),
        ("arm,reward,arm\nA,1,B\n", "in its first line, and 'arm' once only"),
        ("arm,count,count,sum,sum\n", "in its first line, and 'count', 'sum' once only"),
        ("x" * 70_000, "rewards.csv is no table: a line has more than 65535 characters"),
        (b"arm,reward\n\xff,1\n", "rewards.csv cannot be read as a table in UTF-8: 'utf-8' codec"),
        ('arm,reward\n"' + "x\n" * 70_000, "rewards.csv cannot be read as a table in UTF-8: field larger"),
    ],
)
def test_a_wrong_table_is_refused_and_nothing_written(run, folder, content, says):
    run(*START)
    run("ask", "trial.jsonl")
    before = (folder / "trial.jsonl").read_bytes()
    (folder / "rewards.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    status, said = run("tell", "trial.jsonl", "--file", "rewards.csv")
    assert status == 2
    assert says in said
    assert (folder / "trial.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tell", "trial.jsonl"], "give either ARM=SUM/COUNT for each arm or --file"),
        (["tell", "trial.jsonl", "A=1/2", "--file", "x.csv"], "give either"),
        (["tell", "trial.jsonl", "--file", "x.csv"], "No such file or directory: 'x.csv'"),
        (["tell", "trial.jsonl", "A=67"], "'A=67' must be of the form ARM=SUM/COUNT, for instance A=67/120"),
        (["tell", "trial.jsonl", "67/120"], "must be of the form"),
        (["tell", "trial.jsonl", "A=x/120"], "'A=x/120': 'x' is not a number"),
        (["tell", "trial.jsonl", "A=67/-1"], "the count must be a whole number, got '-1'"),
        (["tell", "trial.jsonl", "A=1/2", "A=1/2"], "there are rewards of A before"),
        (["tell", "trial.jsonl", "A=1/2"], "rewards of B, the third are missing"),
        (
            ["tell", "trial.jsonl", "A=1/2", "B=1/2", "the third=1/2"],
            "264 rewards of 'A' were asked for, got 2",
        ),
        (["tell", "trial.jsonl", "A=nan/264", "B=1/264", "the third=1/264"], "with the sum nan"),
        (["ask", "other.jsonl"], "there is no journal other.jsonl: start a race"),
        (["status", "."], "cannot be opened: Is a directory"),
        (["start", "trial.jsonl", "--arms", "A", "B", *RULES], "journal of another race (algorithm is"),
        (["start", "b.jsonl", "--arms", "A", *RULES], "arms must be a list of two or more"),
        (
            ["start", "b.jsonl", "--arms", "A", "B", *RULES, "--epsilon", "2"],
            "epsilon must lie in (0, 1), got 2.0",
        ),
        (["start", "b.jsonl", "--arms", "A", "B", *RULES, "--epsilon", "x"], "invalid float value: 'x'"),
        (["start", "b.jsonl", "--arms", "A", "B", *RULES, "--support", "1", "0"], "support must be a pair"),
        (["start", "b.jsonl", "--arms", "A", "B", *RULES, "--rewards", "good"], "invalid choice: 'good'"),
        (["tell", "trial.jsonl", "--file", "/dev/zero"], "/dev/zero is no table: a line has more than"),
        (["tell", "trial.jsonl", "--file", "."], "Is a directory: '.'"),
        (["tell", "trial.jsonl", "A=1/2", "--round", "2"], "round must be 1, got 2, which has not come yet"),
        (["tell", "trial.jsonl", "A=1/2", "--round", "0"], "round must be an integer of at least 1, got 0"),
        (["tell", "trial.jsonl", "A=1/2", "--round", "one"], "invalid int value: 'one'"),
        (["ask", "/dev/zero"], "/dev/zero cannot be opened: it is a pipe or a device, not a file"),
        (["start", "/dev/zero", "--arms", "A", "B", *RULES], "it is a pipe or a device, not a file"),
        ([*START, "--rewards", "Gaussian"], "--rewards is for --algorithm sharp and pausing alone"),
        (["start", "--arms", "A", "B", *RULES], "the following arguments are required: journal"),
        (["plan", "--arms", "three", *RULES], "invalid int value: 'three'"),
        (["dance"], "invalid choice: 'dance'"),
        ([], "required: command"),
    ],
)
def test_errors_are_one_line_and_write_nothing(run, folder, words, says):
    run(*START)
    run("ask", "trial.jsonl")
    before = (folder / "trial.jsonl").read_bytes()
    status, said = run(*words)
    assert status == 2
    assert says in said
    assert (folder / "trial.jsonl").read_bytes() == before
    assert [file.name for file in folder.iterdir()] == ["trial.jsonl"]


def test_circles_of_links_are_refused_in_one_line(run, folder):
    run(*START)
    (folder / "circle").symlink_to("circle")
    for words in (["ask", "circle"], ["status", "circle"], ["tell", "trial.jsonl", "--file", "circle"]):
        status, said = run(*words)
        assert status == 2
        assert "Too many levels of symbolic links" in said


def test_gaussian_rewards_within_0_and_1_are_warned_of_in_one_line(folder, capsys):
    assert main(["start", "b.jsonl", "--arms", "A", "B", *RULES, "--rewards", "Gaussian"]) == 0
    says = "warning: the rewards are not Gaussian: the algorithm's guarantee is void\n"
    assert capsys.readouterr().err == says


def test_telling_twice_is_refused(run):
    """Whoever does not know whether the command went through may repeat it."""
    run(*START)
    run("ask", "trial.jsonl")
    words = ["tell", "trial.jsonl", *(f"{arm}=9/{FIRST}" for arm in ("A", "B", "the third"))]
    assert run(*words)[0] == 0
    assert run(*words) == (2, "error: round 2 has not been asked for yet: ask first, then tell\n")


def test_looking_is_possible_while_another_writes(run):
    with Race(ebr.SequentialRacing(0.3, 0.1), ["A", "B"], "trial.jsonl") as race:
        race.ask()
        status, said = run("ask", "trial.jsonl")
        assert status == 2
        assert "open for writing elsewhere" in said
        status, said = run("status", "trial.jsonl")
    assert status == 0
    assert said.startswith("Round 1\n")  # no deadline is known
    assert "A=SUM/" in said


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
    assert warned[0].endswith("is passed over")
    assert warned[1].endswith("was moved to trial.jsonl.torn")


def test_rules_reach_the_algorithm(run):
    words = [
        "start",
        "b.jsonl",
        "--arms",
        "A",
        "B",
        *RULES,
        "--sigma",
        "2",
        "--rewards",
        "Gaussian",
        "--unbounded",
    ]
    assert run(*words)[0] == 0
    with Race.open("b.jsonl") as race:
        assert race.algorithm == ebr.SharpElasticBatchRacing(3, 0.2, 0.1, sigma=2, rewards="Gaussian")
        race.tell({arm: (pulls, -1e6) for arm, pulls in race.ask().items()})  # any finite reward will do
        assert race.history["sum"].tolist() == [-1e6, -1e6]
