"""What is kept: a hit is a fresh run's result to the last bit, and whatever changes a result misses."""

import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import ebr
from ebr.simulation import store
from ebr.simulation import sweep as sweeping

ROOT = Path(__file__).parents[2]
POINTS = [
    ebr.Point({"T": 3}, ebr.ElasticBatchRacing(3, 0.2, 0.1), ebr.setup_1(5)),
    ebr.Point({"T": 0}, ebr.SequentialRacing(0.3, 0.1), ebr.Gaussian([0.1, 0.5, 0.7], 0.5)),
]
RESULT = {"pulls": 0.1 + 0.2, "error": float("nan"), "rounds": 3, "failures": 0, "runs": 1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for the entries; all work is done in this process, where it can be counted."""
    monkeypatch.setenv("EBR_CACHE", str(tmp_path / "a" / "cache"))
    monkeypatch.setenv("EBR_WORKERS", "1")
    monkeypatch.delenv("DASK", raising=False)
    return tmp_path / "a" / "cache"


@pytest.fixture
def simulated(monkeypatch):
    """What is really simulated."""
    calls, simulate = [], sweeping.simulate

    def counted(algorithm, *arguments):
        calls.append(algorithm)
        return simulate(algorithm, *arguments)

    monkeypatch.setattr(sweeping, "simulate", counted)
    return calls


def bits(table):
    """A table's labels, column types and numbers, to the last bit (NaN has its own)."""
    numbers = [struct.pack("<d", value) for row in table.to_numpy() for value in row]
    return list(table.columns), list(table.dtypes), numbers


def fresh(points, runs, seed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.delenv("EBR_CACHE")
        return bits(ebr.sweep(points, runs, seed))


@pytest.mark.parametrize("runs", [1, 2, 50])
def test_a_hit_is_a_fresh_run_to_the_last_bit(folder, simulated, monkeypatch, runs):
    expected = fresh(POINTS, runs, 7, monkeypatch)
    assert not folder.exists()
    assert bits(ebr.sweep(POINTS, runs, 7)) == expected
    assert len(simulated) == 4
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(sweeping, "workers", None)  # nobody is even asked to work
    assert bits(ebr.sweep(POINTS, runs, 7)) == expected
    relabelled = [ebr.Point({"n": 1}, *point[1:]) for point in POINTS]
    assert ebr.sweep(relabelled, runs, 7)["n"].tolist() == [1, 1]
    assert len(simulated) == 4


def wrong_hits(monkeypatch):
    """Which changes of a sweep are answered with another sweep's numbers."""
    (labels, algorithm, problem) = POINTS[0]
    others = {
        "seed": (POINTS[0], 50, 8),
        "runs": (POINTS[0], 51, 7),
        "algorithm": (ebr.Point(labels, replace(algorithm, epsilon=0.21), problem), 50, 7),
        "problem": (ebr.Point(labels, algorithm, ebr.setup_2(5)), 50, 7),
        "kind": (ebr.Point(labels, algorithm, ebr.Gaussian(problem.means, problem.sigma)), 50, 7),
    }
    ebr.sweep(POINTS[:1], 50, 7)
    found = {name: bits(ebr.sweep([point], runs, seed)) for name, (point, runs, seed) in others.items()}
    return {
        name for name, it in found.items() if it != fresh([others[name][0]], *others[name][1:], monkeypatch)
    }


def test_another_seed_number_of_runs_algorithm_or_problem_misses(folder, monkeypatch):
    assert wrong_hits(monkeypatch) == set()
    assert len(list(folder.iterdir())) == 6


@pytest.mark.parametrize(
    ("forgotten", "wrong"),
    [(2, {"runs"}), (3, {"seed"}), (1, {"algorithm", "problem", "kind"})],
    ids=["runs", "seed", "experiment"],
)
def test_a_planted_key_that_forgets_something_is_caught(folder, monkeypatch, forgotten, wrong):
    key = store.key

    def planted(behind, *values):
        return key(behind, *(value for place, value in enumerate(values) if place != forgotten))

    monkeypatch.setattr(store, "key", planted)
    assert wrong_hits(monkeypatch) == wrong


def test_an_entry_that_is_torn_or_altered_anywhere_is_none(folder):
    store.put("name", RESULT)
    path = folder / "name"
    whole = path.read_bytes()
    assert store.get("name").items() - {("error", None)} >= RESULT.items() - {("error", RESULT["error"])}
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert store.get("name") is None
    for place in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            assert store.get("name") is None
    path.write_bytes(whole + b"\n")
    assert store.get("name") is None
    path.with_name("other").write_bytes(whole)
    assert store.get("other") is None


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff" * 300, None])
def test_a_damaged_entry_is_computed_again_and_repaired(folder, simulated, damage):
    expected = bits(ebr.sweep(POINTS[:1], 20, 1))
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert bits(ebr.sweep(POINTS[:1], 20, 1)) == expected
    assert len(simulated) == 2
    assert entry.read_bytes() == whole


WRITER = """
import sys
from ebr.simulation import store
for number in range(300):
    store.put(f"entry {number % 5}", {"writer": sys.argv[1], "padding": sys.argv[1] * 20_000})
"""


@pytest.mark.slow
def test_two_processes_that_write_at_once_leave_whole_entries(folder):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, name]) for name in ("a", "b")]
    seen = {None: 0, "a": 0, "b": 0}
    while any(writer.poll() is None for writer in writers):
        for number in range(5):
            # A reader finds a whole entry or, before the first is written, none.
            there = (folder / f"entry {number}").exists()
            entry = store.get(f"entry {number}")
            assert entry is not None or not there
            seen[entry and entry["writer"]] += 1
        time.sleep(0.001)  # leave the writers a core
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen["a"] + seen["b"] > 0
    assert sorted(path.name for path in folder.iterdir()) == [f"entry {number}" for number in range(5)]


SWEEPER = """
import json, os, sys
import ebr
from ebr.simulation import sweep as sweeping
calls, simulate = [], sweeping.simulate
def counted(*arguments):
    calls.append(arguments)
    return simulate(*arguments)
sweeping.simulate = counted
points = [ebr.Point({"t": t}, ebr.ElasticBatchRacing(t, 0.1, 0.1), ebr.setup_1(20)) for t in range(1, 11)]
table = ebr.sweep(points, runs=30, seed=3)
print(json.dumps([table["pulls"].tolist(), len(calls)]))
"""


def run(program, environment, cwd=None):
    """A Python process of its own, with these settings and none of ours."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("EBR_", "DASK"))}
    variables = inherited | {"EBR_WORKERS": "1", "PYTHONDONTWRITEBYTECODE": "1"} | environment
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, env=variables, cwd=cwd, stdout=subprocess.PIPE, text=True)


def output(process):
    text, _ = process.communicate()
    assert process.returncode == 0
    return text


@pytest.mark.slow
def test_two_sweeps_at_once_agree_and_the_third_simulates_nothing(tmp_path):
    settings = {"EBR_CACHE": str(tmp_path / "cache")}
    first, second = [output(it) for it in [run(SWEEPER, settings), run(SWEEPER, settings)]]
    (pulls, simulated), (again, beside) = (eval(text) for text in (first, second))
    assert pulls == again
    assert 10 <= simulated + beside <= 20
    assert eval(output(run(SWEEPER, settings))) == [pulls, 0]
    assert len(list((tmp_path / "cache").iterdir())) == 10


@pytest.mark.slow
def test_a_copy_of_ebr_with_another_source_simulates_again(tmp_path):
    copied(tmp_path)
    settings = {"EBR_CACHE": str(tmp_path / "cache")}
    pulls, simulated = eval(output(run(SWEEPER, settings, cwd=tmp_path)))
    assert simulated == 10
    with (tmp_path / "ebr" / "algorithms" / "elastic.py").open("a", encoding="utf-8") as file:
        file.write("\n\nElasticBatchRacing.deadlines = None\n")
    assert eval(output(run(SWEEPER, settings, cwd=tmp_path))) == [pulls, 10]
    assert len(list((tmp_path / "cache").iterdir())) == 20


def copied(folder):
    return shutil.copytree(ROOT / "ebr", folder / "ebr", ignore=shutil.ignore_patterns("__pycache__"))


def test_every_file_of_ebr_counts_but_for_those_that_no_simulation_uses(tmp_path, monkeypatch):
    here = copied(tmp_path)
    copy = importlib.util.spec_from_file_location(
        "ebr", here / "__init__.py", submodule_search_locations=[str(here)]
    )
    find = importlib.util.find_spec
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: copy if name == "ebr" else find(name))
        first = digest(patch, POINTS)
        counted = {}
        for path in sorted(here.rglob("*.*")):
            before = path.read_bytes()
            path.write_bytes(before + b"\n")
            counted[path.relative_to(here).as_posix()] = digest(patch, POINTS) != first
            path.write_bytes(before)
        (here / "theory" / "new.py").touch()
        assert digest(patch, POINTS) != first
    assert counted == {name: not name.startswith("live/") for name in counted}
    assert {"algorithms/elastic.py", "live/ebr.mplstyle", "validation.py", "live/cli.py"} < set(counted)
    store._digest.cache_clear()


@pytest.mark.slow
def test_without_the_setting_nothing_is_written_anywhere(tmp_path):
    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "MPLCONFIGDIR"), str(tmp_path))
    assert eval(output(run(SWEEPER, places, tmp_path)))[1] == 10
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("setting", [None, ""])
def test_no_setting_and_an_empty_one_keep_nothing(tmp_path, monkeypatch, simulated, setting):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EBR_WORKERS", "1")
    monkeypatch.delenv("EBR_CACHE", raising=False)
    if setting is not None:
        monkeypatch.setenv("EBR_CACHE", setting)
    for _ in range(2):
        ebr.sweep(POINTS[:1], 5)
    assert len(simulated) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of somebody's own, with data, that uses a module beside it."""
    (tmp_path / "own_races").mkdir()
    for name, text in {
        "own_races/__init__.py": "",
        "own_races/races.py": RACES,
        "own_races/sizes.py": "SIZES = 1",
        "own_races/data.csv": "1,2",
        "own_helper.py": "import own_leaf\n",
        "own_leaf.py": "LEAF = 1\n",
        "unrelated.py": "",
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    store._digest.cache_clear()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


RACES = """
import dataclasses
import ebr

@dataclasses.dataclass(frozen=True, repr=False)
class Own(ebr.ElasticBatchRacing):
    def play(self, *arguments, **more):
        import own_helper
        return super().play(*arguments, **more)
"""


def digest(monkeypatch, *values):
    """The sources' digest as another process would see it, begun after all changes."""
    store._digest.cache_clear()
    monkeypatch.setattr(store, "STARTED", float("inf"))
    return store.sources(*values)


def test_the_sources_of_an_algorithm_from_elsewhere_count_with_all_that_they_import(package, monkeypatch):
    from own_races.races import Own

    own = Own(3, 0.2, 0.1)
    first = digest(monkeypatch, own)
    assert first not in (None, digest(monkeypatch, POINTS[0].algorithm))
    assert digest(monkeypatch, [{"held": (1, own)}]) == first
    for name in ("races.py", "sizes.py", "data.csv", "../own_helper.py", "../own_leaf.py"):
        path = package / "own_races" / name
        before = path.read_text()
        path.write_text(before + "\n")
        assert digest(monkeypatch, own) not in (None, first), name
        path.write_text(before)
        assert digest(monkeypatch, own) == first
    (package / "unrelated.py").write_text("CHANGED = 1")
    assert digest(monkeypatch, own) == first
    (package / "own_races" / "new.py").write_text("")
    assert digest(monkeypatch, own) not in (None, first)
    (package / "own_races" / "new.py").write_text("import a module that cannot be read")
    assert digest(monkeypatch, own) is None


def test_another_environment_misses(monkeypatch):
    here = digest(monkeypatch, POINTS)
    for name, value in {"python_version": "3.99.0", "machine": "abacus"}.items():
        with monkeypatch.context() as patch:
            patch.setattr(store.platform, name, lambda value=value: value)
            assert digest(monkeypatch, POINTS) not in (None, here)
    assert digest(monkeypatch, POINTS) == here


def test_another_version_of_what_is_installed_misses(tmp_path, monkeypatch):
    here = digest(monkeypatch, POINTS)
    (tmp_path / "abacus-2.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert digest(monkeypatch, POINTS) not in (None, here)


@dataclass(frozen=True)
class Cell(ebr.ElasticBatchRacing):
    """Defined where a notebook's cells are."""


def test_what_is_defined_in_a_cell_or_a_function_is_never_kept(folder, simulated, monkeypatch):
    @dataclass(frozen=True)
    class Local(ebr.ElasticBatchRacing):
        pass

    monkeypatch.setattr(Cell, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "Cell", Cell, raising=False)
    for algorithm in (Local(3, 0.2, 0.1), Cell(3, 0.2, 0.1)):
        points = [ebr.Point({}, algorithm, ebr.setup_1(5))]
        assert bits(ebr.sweep(points, 5)) == bits(ebr.sweep(points, 5))
    assert len(simulated) == 4
    assert not folder.exists()


def test_two_classes_of_one_name_are_two_experiments(folder, simulated, package):
    from own_races.races import Own

    Own.__qualname__ = Own.__name__ = "ElasticBatchRacing"
    algorithms = Own(3, 0.2, 0.1), ebr.ElasticBatchRacing(3, 0.2, 0.1)
    assert repr(algorithms[0]) == repr(algorithms[1])
    ebr.sweep([ebr.Point({}, algorithm, ebr.setup_1(5)) for algorithm in algorithms], 5)
    assert {type(one) for one in simulated} == {type(one) for one in algorithms}


def test_nothing_is_kept_once_a_source_has_changed_under_the_process(folder, simulated, package):
    from own_races.races import Own

    points = [ebr.Point({}, Own(3, 0.2, 0.1), ebr.setup_1(5))]
    os.utime(package / "own_leaf.py", (store.STARTED + 3600,) * 2)
    ebr.sweep(points, 5)
    assert not folder.exists()
    for path in package.rglob("*"):
        os.utime(path, (store.STARTED - 3600,) * 2)
    ebr.sweep(points, 5)
    ebr.sweep(points, 5)
    assert len(list(folder.iterdir())) == 1
    assert len(simulated) == 2
    os.utime(package / "own_leaf.py", (store.STARTED + 3600,) * 2)
    ebr.sweep(points, 5)
    assert len(simulated) == 3


def test_a_worker_that_runs_other_sources_gives_its_result_and_nothing_is_kept(folder, monkeypatch):
    expected = fresh(POINTS[:1], 5, 1, monkeypatch)
    said = iter(["the caller's", "the worker's"])
    monkeypatch.setattr(store, "sources", lambda *_: next(said))
    assert bits(ebr.sweep(POINTS[:1], 5, 1)) == expected
    assert not folder.exists()


def test_what_another_process_has_kept_in_the_meantime_is_not_simulated_again(folder, simulated, monkeypatch):
    def beside():
        for path in hidden.iterdir():
            shutil.copy(path, folder)
        return nullcontext()

    expected = bits(ebr.sweep(POINTS, 5, 1))
    hidden = folder.rename(folder.with_name("hidden"))
    folder.mkdir()
    monkeypatch.setattr(sweeping, "workers", beside)
    assert bits(ebr.sweep(POINTS, 5, 1)) == expected
    assert len(simulated) == 2


def test_a_folder_that_cannot_be_written_costs_a_warning_and_no_result(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("EBR_WORKERS", "1")
    monkeypatch.setenv("EBR_CACHE", str(tmp_path / "file"))
    expected = fresh(POINTS[:1], 5, 1, monkeypatch)
    with pytest.warns(UserWarning, match="EBR_CACHE must name a folder to write in"):
        assert bits(ebr.sweep(POINTS[:1], 5, 1)) == expected


def test_a_full_disk_leaves_no_half_entry_behind(folder, monkeypatch):
    def full(path, content):
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(UserWarning, match="no space left"):
        store.put("name", RESULT)
    assert list(folder.iterdir()) == []
