"""The Makefile as a user meets it: real runs in a copy of the project with small notebooks."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]

PARAMETERS = "runs = 3  # replicates\nseed = 1  # of every draw"
FIGURE = """
import matplotlib.pyplot as plt, pandas as pd
from compendium import figures
figure, axis = plt.subplots()
save = figures.saver("01-first", runs=runs, seed=seed)
save(figure, "fig0", pd.DataFrame({"runs": [runs], "seed": [seed]}))
"""


class Project:
    """A copy of the Makefile, its tool and the module, with notebooks of the test's own."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "requirements.txt"):
            shutil.copy2(ROOT / name, folder / name)
        for name in ("tools", "ebr", "notebooks/compendium"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, name, *cells):
        notebook = new_notebook(cells=[new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})])
        notebook.cells += [new_code_cell(cell) for cell in cells]
        notebook.metadata = {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        }
        path = self.folder / "notebooks" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, path)

    def command(self, *words):
        # The environment that runs the tests serves the copy as well; nothing is installed.
        return ["make", f"BIN={sys.prefix}/bin", "READY=Makefile", *words]

    def environment(self, **more):
        # A make that runs these tests hands its own flags down; this one is a user's, in a fresh shell.
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "EBR_"))}
        path = f"{self.folder}{os.pathsep}{self.folder / 'notebooks'}"
        return inherited | {"PYTHONPATH": path} | more

    def make(self, *words, **environment):
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=300,
        )

    def start(self, *words):
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            # A shell's background jobs ignore Ctrl-C, and so would their children; a user's make does not.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def built(self):
        return sorted(path.name for path in (self.folder / "build").glob("[!.]*.ipynb"))

    def stamps(self):
        return {name: (self.folder / "build" / name).stat().st_mtime_ns for name in self.built()}


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_plain_make_lists_the_targets(project):
    listed = project.make().stdout
    for target in ("figures", "test", "quick", "notebooks", "lab", "env", "lock", "clean"):
        assert f"make {target} " in listed


def test_figures_are_built_once_and_again_only_when_something_changed(project):
    project.write("01-first", FIGURE)
    project.write("02-second", "print(seed)")
    first = project.make("-j2", "figures")
    assert first.returncode == 0, first.stderr
    assert project.built() == ["01-first.ipynb", "02-second.ipynb"]
    before = project.stamps()

    assert project.make("figures").returncode == 0
    assert project.stamps() == before

    (project.folder / "notebooks" / "02-second.ipynb").touch()
    assert project.make("figures").returncode == 0
    assert project.stamps()["01-first.ipynb"] == before["01-first.ipynb"]
    assert project.stamps()["02-second.ipynb"] > before["02-second.ipynb"]

    (project.folder / "figures" / "fig0.pdf").unlink()
    assert project.make("figures").returncode == 0
    assert (project.folder / "figures" / "fig0.pdf").exists()

    before = project.stamps()
    (project.folder / "ebr" / "algorithms" / "elastic.py").touch()
    assert project.make("figures").returncode == 0
    assert all(project.stamps()[name] > before[name] for name in before)


def test_a_changed_module_of_the_compendium_rebuilds_the_notebooks_that_use_it_and_no_others(project):
    project.write("01-first", "from compendium import findings")  # which uses figures
    project.write("02-second", "import compendium.figures")
    project.write("03-third", "print(seed)")
    assert project.make("-j2", "figures").returncode == 0
    for module, users in (("figures", {"01", "02"}), ("findings", {"01"}), ("tuning", set())):
        before = project.stamps()
        (project.folder / "notebooks" / "compendium" / f"{module}.py").touch()
        assert project.make("-j2", "figures").returncode == 0
        assert {name[:2] for name, stamp in project.stamps().items() if stamp > before[name]} == users


def test_parameters_pass_through_and_misspelt_ones_are_errors(project):
    project.write("01-first", FIGURE)
    data = project.folder / "figures" / "data" / "fig0.csv"
    assert project.make("figures", "RUNS=7").returncode == 0
    assert data.read_text() == "runs,seed\n7,1\n"
    assert project.make("figures", RUNS="8", SEED="2").returncode == 0
    assert data.read_text() == "runs,seed\n8,2\n"
    assert project.make("figures").returncode == 0
    assert data.read_text() == "runs,seed\n3,1\n"

    before = project.stamps()
    misspelt = project.make("figures", "RUN=7")
    assert misspelt.returncode != 0
    assert "RUN is not a parameter of any notebook; these are: RUNS, SEED" in misspelt.stderr
    wrong = project.make("figures", "RUNS=many")
    assert wrong.returncode != 0
    assert "RUNS must be a number" in wrong.stderr
    assert project.stamps() == before


def test_a_failing_notebook_names_cell_and_error_and_the_next_run_goes_on_from_there(project):
    project.write("01-first", "print(1)")
    project.write(
        "02-second", "print(2)", "from pathlib import Path\nassert Path('mended').exists(), 'not yet'"
    )
    failed = project.make("figures")
    assert failed.returncode != 0
    assert "notebooks/02-second.ipynb, cell 3: AssertionError: not yet" in failed.stderr
    assert project.built() == ["01-first.ipynb", "02-second.failed.ipynb"]

    before = project.stamps()["01-first.ipynb"]
    (project.folder / "notebooks" / "mended").touch()
    assert project.make("figures").returncode == 0
    assert "02-second.ipynb" in project.built()
    assert project.stamps()["01-first.ipynb"] == before


def test_a_dead_kernel_is_an_error(project):
    project.write("01-first", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    failed = project.make("figures")
    assert failed.returncode != 0
    assert "01-first.ipynb: the kernel died" in failed.stderr
    assert project.built() == []


WAIT = """
import os, time
from pathlib import Path
if not Path("go").exists():
    Path("kernel.tmp").write_text(str(os.getpid())); Path("kernel.tmp").rename("kernel")
    time.sleep(120)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing_that_looks_finished(project, how):
    project.write("01-first", WAIT)
    run = project.start("figures")
    marker = project.folder / "notebooks" / "kernel"
    wait_for(marker.exists)
    kernel = int(marker.read_text())
    try:
        os.killpg(run.pid, how)
        assert run.wait(60) != 0
        assert project.built() == []
        wait_for(lambda: not alive(kernel))
    finally:
        if alive(kernel):
            os.kill(kernel, signal.SIGKILL)

    (project.folder / "notebooks" / "go").touch()
    again = project.make("figures")
    assert again.returncode == 0, again.stderr
    assert project.built() == ["01-first.ipynb"]


def test_notebooks_are_executed_in_place_without_churn(project):
    project.write("01-first", "import sys\nprint(runs, file=sys.stderr)\nprint(seed)")
    path = project.folder / "notebooks" / "01-first.ipynb"
    assert project.make("notebooks").returncode == 0
    first, stamp = path.read_text(), path.stat().st_mtime_ns
    cells = json.loads(first)["cells"]
    assert [cell["execution_count"] for cell in cells] == [1, 2]
    assert cells[1]["outputs"][0]["text"] == ["1\n"]
    assert "papermill" not in first
    assert project.make("notebooks").returncode == 0
    assert (path.read_text(), path.stat().st_mtime_ns) == (first, stamp)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A zombie whose parent has not collected it yet does nothing any more.
    status = Path(f"/proc/{process}/stat")
    return not (status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z")
