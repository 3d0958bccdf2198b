"""The Makefile as a user runs it, in a copy of the project with small notebooks.

Make's decisions are tested with a stand-in for the environment's Python that starts no kernel. Notebooks are
executed in few tests only, as a kernel takes seconds to start.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image
from PIL.PngImagePlugin import PngInfo

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]

PARAMETERS = "runs = 3  # replicates\nseed = 1  # of every draw\nlabel = 'none'  # any text"

# It executes nothing: it writes the target, a file listed as written, and a log line of what it was given.
# A script's first line cannot name a Python whose path has a space, so /bin/sh starts Python on this file.
STAND_IN = f"""#!/bin/sh
'''''exec' {shlex.quote(sys.executable)} "$0" "$@"
' '''
import json, os, pathlib, sys
if sys.argv[1] != "tools/execute.py":
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
*_, source, target = map(pathlib.Path, sys.argv)
target.touch()
target.with_suffix(".written").write_text(f"build/{{target.stem}}.pdf\\n")
target.with_suffix(".pdf").touch()
with open("build/log", "a") as file:
    file.write(json.dumps([target.stem, dict(os.environ)]) + "\\n")
"""


class Project:
    """A copy of the Makefile, its tools and the module, with notebooks of the test's own."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        for name in ("Makefile", "pyproject.toml", "requirements.txt"):
            shutil.copy2(ROOT / name, folder / name)
        for name in ("tools", "ebr", "notebooks/compendium"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        # The copy uses the environment that runs the tests; nothing is installed.
        self.bin = Path(sys.prefix) / "bin"

    def without_kernels(self):
        self.bin = self.folder / "stand in"
        self.bin.mkdir()
        (self.bin / "python").write_text(STAND_IN)
        (self.bin / "python").chmod(0o755)
        return self

    def write(self, name, *cells):
        notebook = new_notebook(cells=[new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})])
        notebook.cells += [new_code_cell(cell) for cell in cells]
        notebook.metadata = {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        }
        path = self.folder / "notebooks" / f"{name}.ipynb"
        nbformat.write(notebook, path)

    def options(self, *words, **more):
        """The options of a process that runs make in a user's fresh shell.

        The flags of a make that runs these tests are left out.
        """
        strange = ("MAKE", "MFLAGS", "EBR_", "PYTHONPATH", "OMP_")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(strange)} | more
        command = ["make", f"BIN={self.bin}", "READY=Makefile", *words]
        return {"args": command, "cwd": self.folder, "env": environment}

    def make(self, *words, **more):
        return subprocess.run(**self.options(*words, **more), capture_output=True, text=True, timeout=300)

    def executed(self, *words, **more):
        """The notebooks that the stand-in was called for, in order, each with its environment variables."""
        log = self.folder / "build" / "log"
        log.unlink(missing_ok=True)
        result = self.make(*words, **more)
        assert result.returncode == 0, result.stderr
        return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []

    def rebuilt(self, *words, **more):
        return {name for name, _ in self.executed("figures", *words, **more)}

    def built(self):
        return sorted(path.name for path in (self.folder / "build").glob("[!.]*.ipynb"))

    def stamps(self):
        return {name: (self.folder / "build" / name).stat().st_mtime_ns for name in self.built()}


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "a folder")


@pytest.fixture
def dry(project):
    return project.without_kernels()


def test_plain_make_lists_the_targets(dry):
    listed = dry.make().stdout
    for target in ("figures", "test", "quick", "notebooks", "times", "lab", "env", "lock", "clean"):
        assert f"make {target} " in listed


def test_figures_are_built_once_and_again_only_when_something_changed(dry):
    dry.write("01-first", "from compendium.shared import findings")  # findings uses figures
    dry.write("02-second", "import compendium.shared.figures")
    dry.write("03-third", "print(seed)")
    everything = {"01-first", "02-second", "03-third"}
    modules = dry.folder / "notebooks" / "compendium"
    assert dry.rebuilt() == everything
    assert dry.rebuilt() == set()
    (dry.folder / "notebooks" / "02-second.ipynb").touch()
    (dry.folder / "build" / "03-third.pdf").unlink()
    assert dry.rebuilt() == {"02-second", "03-third"}
    (modules / "shared" / "figures.py").touch()
    assert dry.rebuilt() == {"01-first", "02-second"}
    (modules / "shared" / "findings.py").touch()
    (modules / "tuning" / "configurations.py").touch()
    assert dry.rebuilt() == {"01-first"}
    (dry.folder / "ebr" / "algorithms" / "elastic.py").touch()
    assert dry.rebuilt() == everything
    assert dry.rebuilt("RUNS=7") == everything
    assert dry.rebuilt("RUNS=7") == set()
    assert dry.rebuilt(RUNS="7") == set()
    assert dry.rebuilt("RUNS=7", SEED="2") == everything


def test_notebooks_start_the_longest_first_and_the_ledger_when_all_others_are_there(dry):
    names = ["00-ledger", "01-setting", "09-sharp-racing", "16-modern-rivals"]
    for name in names:
        dry.write(name)
    for goal in ("figures", "build/00-ledger.ipynb"):
        shutil.rmtree(dry.folder / "build", ignore_errors=True)
        assert [name for name, _ in dry.executed("-j1", goal)] == [*names[2:], *names[1::-1]]


def test_cores_are_shared_by_notebooks_side_by_side_and_all_are_for_one_alone(dry):
    dry.write("01-first")
    alone = str(len(os.sched_getaffinity(0)))
    ways = {("figures",): "1", ("figures", "-j2"): "1", ("figures", "-j1"): alone}
    for words, share in (ways | {("build/01-first.ipynb",): alone}).items():
        shutil.rmtree(dry.folder / "build", ignore_errors=True)
        ((_, environment),) = dry.executed(*words)
        assert (environment["EBR_WORKERS"], environment["OMP_NUM_THREADS"]) == (share, share)
        assert environment["EBR_CACHE"] == str(dry.folder / "build" / "cache")
        # By default make runs as many jobs as there are cores.
        assert words != ("figures",) or f"-j{alone}" in environment["MAKEFLAGS"]
    # `clean` does not run beside `figures`.
    assert dry.make("clean", "figures").returncode == 0
    assert dry.built() == ["01-first.ipynb"]


NASTY = [
    "'; touch canary; echo '",
    "$(shell touch canary)",
    "`touch canary`",
    '"; touch canary; "',
    "$$HOME #",
]


def test_no_shell_reads_a_parameter_and_a_misspelt_one_is_an_error_before_anything_runs(dry):
    dry.write("01-first")
    misspelt = dry.make("figures", "RUN=7")
    assert misspelt.returncode != 0
    assert "RUN is not a parameter of any notebook; these are: LABEL, RUNS, SEED" in misspelt.stderr
    assert dry.built() == []
    for value in NASTY:
        ((_, environment),) = dry.executed("figures", f"LABEL={value!r}")
        assert environment["EBR_PARAMETER_LABEL"] == repr(value)
        refused = dry.make("figures", f"SEED=1{value}", RUNS=f"1{value}")
        assert refused.returncode != 0
        assert "RUNS must be a number" in refused.stderr
    assert list(dry.folder.rglob("canary")) == []


def test_no_shell_reads_where_the_environment_is(dry):
    for value in [*NASTY, ";touch${IFS}canary;", "x>canary", "a b", "a\\"]:
        refused = dry.make(f"VENV={value}", "clean")
        assert refused.returncode != 0
        assert (
            f'VENV must be a path without spaces and signs that shells read, got "{value}"' in refused.stderr
        )
    assert list(dry.folder.rglob("canary*")) == []


FIGURE = """
from pathlib import Path
import compendium, ebr, matplotlib.pyplot as plt, pandas as pd
from compendium.shared import figures
assert Path(ebr.__file__).parents[1] == Path(compendium.__file__).parents[2] == Path.cwd().parent
figure, axis = plt.subplots(figsize=(figures.COLUMN, 2))
save = figures.saver("01-first")
save(figure, "fig0", pd.DataFrame({"runs": [runs], "seed": [seed], "label": [label]}))
"""


def test_a_run_builds_what_it_can_in_a_calm_line_each_and_names_cell_and_error_where_it_cannot(project):
    project.write("01-first", FIGURE)
    project.write(
        "02-second", "print(2)", "import pathlib\nassert pathlib.Path('mended').exists(), 'not yet'"
    )
    project.write("03-third", "import os\nif label == 'one $HOME': os.kill(os.getpid(), 9)")
    committed = project.folder / "figures" / "fig0.png"  # the first notebook's, with its parameters
    committed.parent.mkdir()
    told = PngInfo()
    told.add_text("Source", "ebr notebook 01-first")
    told.add_text("Description", "ebr notebook 01-first; label=none, runs=3, seed=1; data sha256 0")
    Image.new("L", (1, 1)).save(committed, pnginfo=told)
    before = committed.read_bytes()
    run = project.make("-k", "figures", "RUNS=7", "LABEL='one $HOME'", SEED="2")
    assert run.returncode != 0
    name, _, *files = run.stdout.split()
    assert (name, " ".join(files)) == ("01-first", "s 4 files in build/figures"), run.stdout + run.stderr
    assert [(path, path.read_bytes()) for path in committed.parent.rglob("*")] == [(committed, before)]
    # Cell 2 is added by papermill and has the given parameters.
    assert "notebooks/02-second.ipynb, cell 4: AssertionError: not yet" in run.stderr
    assert "notebooks/03-third.ipynb: the kernel died" in run.stderr
    assert project.built() == ["01-first.ipynb", "02-second.failed.ipynb"]
    data = project.folder / "build" / "figures" / "data" / "fig0.csv"
    assert data.read_text() == "runs,seed,label\n7,2,one $HOME\n"
    for noise in ("\r", "TCP", "KeyboardInterrupt", "Executing", "Traceback"):
        assert noise not in run.stderr + run.stdout

    # The next run builds only what is missing.
    before = project.stamps()
    (project.folder / "notebooks" / "mended").touch()
    project.write("03-third", "print(3)")
    again = project.make("figures", "RUNS=7", "LABEL='one $HOME'", "SEED=2")
    assert again.returncode == 0, again.stderr
    assert [line.split()[0] for line in sorted(again.stdout.splitlines())] == ["02-second", "03-third"]
    assert project.stamps()["01-first.ipynb"] == before["01-first.ipynb"]


WAIT = """
import os, time
from pathlib import Path
if not Path("go").exists():
    Path("kernel.tmp").write_text(str(os.getpid())); Path("kernel.tmp").rename("kernel")
    time.sleep(120)
"""


def test_an_interrupted_run_leaves_nothing_that_looks_finished_and_the_next_shows_how_far_it_is(project):
    project.write("01-first", WAIT)
    for how in (signal.SIGINT, signal.SIGKILL):
        interrupt(project, how)
    (project.folder / "notebooks" / "go").touch()
    options = project.options("figures", TERM="xterm")
    terminal = [sys.executable, "-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))", *options["args"]]
    options |= {"args": terminal, "stdin": subprocess.DEVNULL, "timeout": 300}
    typescript = subprocess.run(**options, capture_output=True, text=True).stdout
    assert "01-first 0/2" in typescript
    assert "01-first 1/2" in typescript
    assert typescript.rstrip("\r\n\x1b[K").endswith("0 files")
    assert project.built() == ["01-first.ipynb"]


def interrupt(project, how):
    """Build, send the signal while a cell runs, and check that no file and no kernel are left."""
    options = project.options("figures") | dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    # Background jobs of a shell and their children ignore Ctrl-C; a user's make does not.
    heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    run = subprocess.Popen(**options, start_new_session=True, preexec_fn=heeds)
    marker = project.folder / "notebooks" / "kernel"
    wait_for(marker.exists)
    kernel = int(marker.read_text())
    marker.unlink()
    try:
        os.killpg(run.pid, how)
        assert run.wait(60) != 0
        assert project.built() == []
        wait_for(lambda: not alive(kernel))
    finally:
        if alive(kernel):
            os.kill(kernel, signal.SIGKILL)


def test_notebooks_are_executed_in_place_without_churn(project):
    project.write("01-first", "import sys\nprint(runs, file=sys.stderr)\nprint(seed)")
    path = project.folder / "notebooks" / "01-first.ipynb"
    assert project.make("notebooks").stdout.split()[-1] == "changed"
    first, stamp = path.read_text(), path.stat().st_mtime_ns
    cells = json.loads(first)["cells"]
    assert [cell["execution_count"] for cell in cells] == [1, 2]
    assert [output["text"] for output in cells[1]["outputs"]] == [["1\n"]]  # stderr is not stored
    assert "papermill" not in first
    assert project.make("notebooks").stdout.split()[-2:] == ["as", "before"]
    assert (path.read_text(), path.stat().st_mtime_ns) == (first, stamp)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.1)


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A zombie no longer runs; its parent just has not collected it yet.
    status = Path(f"/proc/{process}/stat")
    return not (status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z")
