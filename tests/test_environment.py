"""The environment: its files agree, the lock is installed, and it belongs to this checkout only."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())


def locked():
    """Every entry of the lock: its requirement, its hashes, and whether the project itself asks for it."""
    entries = {}
    for entry in re.split(r"\n(?=[a-z0-9])", (ROOT / "requirements.txt").read_text()):
        if entry.startswith("#"):
            continue
        line, _, rest = entry.partition("\n")
        requirement = Requirement(line.rstrip(" \\"))
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)
        entries[canonicalize_name(requirement.name)] = (requirement, hashes, "via" in rest and "ebr" in rest)
    return entries


def test_the_lock_has_what_the_project_asks_for_pinned_with_hashes_and_is_what_is_installed():
    extras = PROJECT["optional-dependencies"].values()
    requirements = map(Requirement, [*PROJECT["dependencies"], *(name for extra in extras for name in extra)])
    asked = {canonicalize_name(requirement.name): requirement for requirement in requirements}
    assert {name for name, (_, _, direct) in locked().items() if direct} == set(asked)
    for name, (requirement, hashes, _) in locked().items():
        (pin,) = requirement.specifier
        assert pin.operator == "=="
        assert hashes, f"{name} has no hash"
        assert name not in asked or pin.version in asked[name].specifier
        if requirement.marker is None or requirement.marker.evaluate():
            assert version(name) in requirement.specifier


def test_conda_takes_python_and_make_and_the_same_lock():
    *packages, pip = CONDA["dependencies"]
    assert pip == {"pip": ["--requirement requirements.txt"]}
    assert {re.match(r"[a-z]+", package).group() for package in packages} == {"python", "make", "pip"}
    # Binder reads only this form. The version is tested by the hosted workflow.
    (python,) = (number[1] for package in packages if (number := re.fullmatch(r"python=(\d+\.\d+)", package)))
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert python in workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert python in SpecifierSet(PROJECT["requires-python"])


def test_the_hosted_workflow_may_read_alone_runs_actions_by_their_commit_and_hands_no_text_to_a_shell():
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert len(actions) == text.count("uses: ") > 0
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in actions)
    assert not any("${{" in step.get("run", "") for step in steps)


def test_no_file_of_the_environment_names_an_index():
    for name in ("pyproject.toml", "requirements.txt", "environment.yml", "Makefile"):
        assert not re.search(r"index-url|find-links|https?://", (ROOT / name).read_text()), name


# A package that is built and installed without the network, by the hooks that pip calls.
BACKEND = """
import zipfile
def build_editable(folder, settings=None, metadata=None):
    name, info = "ebr-1-py3-none-any.whl", "ebr-1.dist-info/"
    files = {"ebr.pth": __import__("os").getcwd(),
             info + "METADATA": "Metadata-Version: 2.1\\nName: ebr\\nVersion: 1",
             info + "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any",
             info + "entry_points.txt": "[console_scripts]\\nwhere = ebr:where", info + "RECORD": ""}
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
"""
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "ebr"
version = "1"
"""


def small(folder):
    """A small checkout with a folder that must not be lost."""
    shutil.copytree(ROOT / "tools", folder / "tools")
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "ebr").mkdir()
    (folder / "ebr" / "__init__.py").write_text("def where():\n    print(__file__)\n")
    (folder / "backend.py").write_text(BACKEND)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "requirements.txt").touch()
    (folder / "precious").mkdir()
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A small checkout with its environment, in a folder with a space and an umlaut in its name."""
    folder = small(tmp_path_factory.mktemp("some földer") / "first")
    (folder / "precious" / "thesis.tex").touch()
    made = make(folder, "env", VENV="precious")
    assert made.returncode == 0, made.stderr
    assert [path.name for path in (folder / "precious").iterdir()] == ["thesis.tex"]
    assert sources(folder) == folder
    return folder


def outside(*strange):
    """The environment variables of a user's shell, without those of a make that runs these tests."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHONPATH", *strange))}


def make(folder, *words, **more):
    environment = outside("MAKE", "MFLAGS", "EBR_") | {"PIP_NO_INDEX": "1"} | more
    return subprocess.run(["make", *words], cwd=folder, env=environment, capture_output=True, text=True)


def sources(folder):
    """The checkout whose `ebr` the environment's script runs when it is started from another folder."""
    script, environment = [folder / ".venv" / "bin" / "where"], outside() | {"LC_ALL": "C"}
    found = subprocess.check_output(script, cwd="/", env=environment, encoding="utf-8")
    return Path(found.strip()).parents[1]


@pytest.mark.parametrize("content", ["thesis.tex", "pyvenv.cfg", "ready"])
def test_a_folder_that_is_no_environment_of_ours_is_never_touched(tmp_path, content):
    folder = small(tmp_path / "checkout")
    precious = folder / "precious" / content
    precious.write_text("precious")
    for target in ("env", "clean"):
        refused = make(folder, target, "VENV=precious")
        assert f"{precious.parent} is not an environment that `make env` made" in refused.stderr
    assert make(folder, "clean", VENV="precious").returncode == 0
    assert precious.read_text() == "precious"


@pytest.mark.slow
def test_a_copied_checkout_makes_its_own_environment_and_leaves_others_theirs(checkout):
    another = shutil.copytree(checkout, checkout.with_name("second"), symlinks=True)
    for target in ("env", "clean"):
        refused = make(another, target, "VENV=../first/.venv")
        assert refused.returncode != 0
        assert f"is the environment of {checkout}" in refused.stderr
    assert make(another, "env").returncode == 0
    assert sources(another) == another
    assert sources(checkout) == checkout
    stamp = (another / ".venv" / "bin" / "python").lstat().st_mtime_ns
    (another / "requirements.txt").touch()
    assert make(another, "env").returncode == 0
    assert (another / ".venv" / "bin" / "python").lstat().st_mtime_ns == stamp  # nothing new to install
    assert make(another, "env").stdout == "make: Nothing to be done for 'env'.\n"


STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}  # audit events of changes on the disk


def killed(step, folder, action, installs="new"):
    """Make or remove an environment in a process that dies before a step; 9 if it died, 2 if no install."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        os.chdir(folder)
        steps = iter(range(1, 10_000))
        sys.argv = ["environment.py", action, ".venv"]
        spec = importlib.util.spec_from_file_location("environment", ROOT / "tools" / "environment.py")
        environment = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(environment)

        def run(*command):
            if not installs:
                raise subprocess.CalledProcessError(1, "pip")
            for name in ("bin/python", "lib/one", "lib/two", "pyvenv.cfg"):
                (folder / ".venv" / name).parent.mkdir(exist_ok=True)
                (folder / ".venv" / name).write_text(installs)

        environment.run = run
        sys.addaudithook(lambda event, _: event in STEPS and next(steps) == step and os._exit(9))
        environment.main()
        status = 0
    except SystemExit as end:
        status = 2 if str(end.code).startswith("The environment could not be made") else 1
    finally:
        os._exit(status)


def whole(folder):
    """The install that all files of the environment are from; None if there is no environment."""
    files = sorted(path for path in (folder / ".venv").rglob("*") if path.is_file())
    if not files:
        return None
    names = {path.relative_to(folder / ".venv").as_posix() for path in files}
    assert names == {"bin/python", "lib/one", "lib/two", "pyvenv.cfg", "ready", "uv.txt"}
    mark = (folder / ".venv" / "ready").read_text().splitlines()
    assert mark[:2] == [str(folder), str(folder / ".venv")]
    (text,) = {path.read_text() for path in files if path.name not in ("ready", "uv.txt")}
    return text


def kill_at_every_step(folder, action):
    """Kill before each step in turn. Then make, fail to make, or remove an environment, and check it."""
    step, status = 0, 9
    while status == 9:
        step += 1
        after, installs = (("make", "newer"), ("make", ""), ("remove", ""))[step % 3]  # in turn
        folder.mkdir()
        (folder / "requirements.txt").touch()
        (folder / "pyproject.toml").touch()
        assert killed(0, folder, "make", "old") == 0
        (folder / "requirements.txt").write_text("changed")
        status = killed(step, folder, action)
        assert status in (0, 9)
        (folder / "requirements.txt").write_text("changed again")
        assert killed(0, folder, after, installs) == (0 if installs or after == "remove" else 2)
        left = whole(folder)
        expected = {"newer"} if installs else {None} if after == "remove" else {"old", "new", None}
        assert left in expected - ({None} if action == after == "make" else set()), step
        assert {path.name for path in folder.glob(".venv*")} == ({".venv"} if left else set())
        shutil.rmtree(folder)
    assert step > 10


@pytest.mark.slow
@pytest.mark.parametrize("action", ["make", "remove"])
def test_a_kill_at_any_step_leaves_no_half_environment_and_can_be_followed_by_any_command(tmp_path, action):
    # In a small process, as forking one with all tests loaded is slow.
    call = f"kill_at_every_step(Path({str(tmp_path / 'checkout')!r}), {action!r})"
    subprocess.run(
        [sys.executable, "-c", f"from {__name__} import *; {call}"], cwd=ROOT / "tests", check=True
    )
