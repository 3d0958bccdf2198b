"""The cache: a hit is the same as a fresh run, bit by bit; whatever changes a result changes its entry."""

import importlib.util
import os
import shutil
import struct
import sys
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
RESULT = {"pulls": 0.1 + 0.2, "rounds": 3}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for the entries. All work is done in this process, so that it can be counted."""
    monkeypatch.setenv("EBR_CACHE", str(tmp_path / "a" / "cache"))
    monkeypatch.setenv("EBR_WORKERS", "1")
    monkeypatch.delenv("DASK", raising=False)
    return tmp_path / "a" / "cache"


@pytest.fixture
def simulated(monkeypatch):
    """The calls of `simulate`."""
    calls, simulate = [], sweeping.simulate
    monkeypatch.setattr(sweeping, "simulate", lambda *given: calls.append(given) or simulate(*given))
    return calls


def bits(table):
    """A table's labels, column types, and numbers as bytes, so that NaN equals NaN."""
    numbers = [struct.pack("<d", value) for row in table.to_numpy() for value in row]
    return list(table.columns), list(table.dtypes), numbers


def fresh(points, runs, seed, monkeypatch):
    with monkeypatch.context() as patch:
        patch.delenv("EBR_CACHE")
        return bits(ebr.sweep(points, runs, seed))


@pytest.mark.parametrize("runs", [1, 50])
def test_a_hit_is_a_fresh_run_to_the_last_bit(folder, simulated, monkeypatch, runs):
    expected = fresh(POINTS, runs, 7, monkeypatch)
    assert not folder.exists()
    assert bits(ebr.sweep(POINTS, runs, 7)) == expected
    assert len(simulated) == 4
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(sweeping, "workers", None)  # no worker is needed
    assert bits(ebr.sweep(POINTS, runs, 7)) == expected
    relabelled = [ebr.Point({"n": 1}, *point[1:]) for point in POINTS]
    assert ebr.sweep(relabelled, runs, 7)["n"].tolist() == [1, 1]
    assert len(simulated) == 4


def wrong_hits(monkeypatch):
    """The changes of a sweep for which the cache returns another sweep's numbers."""
    (labels, algorithm, problem) = POINTS[0]
    changed = {
        "seed": (POINTS[0], 50, 8),
        "runs": (POINTS[0], 51, 7),
        "algorithm": (ebr.Point(labels, replace(algorithm, epsilon=0.21), problem), 50, 7),
        "problem": (ebr.Point(labels, algorithm, ebr.setup_2(5)), 50, 7),
        "kind": (ebr.Point(labels, algorithm, ebr.Gaussian(problem.means, problem.sigma)), 50, 7),
    }
    ebr.sweep(POINTS[:1], 50, 7)
    return {
        name
        for name, (point, runs, seed) in changed.items()
        if bits(ebr.sweep([point], runs, seed)) != fresh([point], runs, seed, monkeypatch)
    }


@pytest.mark.parametrize(
    ("forgotten", "wrong"),
    [(None, set()), (1, {"algorithm"}), (2, {"problem", "kind"}), (3, {"runs"}), (4, {"seed"})],
)
def test_whatever_changes_a_result_misses_and_a_planted_key_that_forgets_it_is_caught(
    folder, monkeypatch, forgotten, wrong
):
    key = store.key

    def planted(behind, *values):
        return key(behind, *(value for place, value in enumerate(values) if place != forgotten))

    monkeypatch.setattr(store, "key", planted)
    assert wrong_hits(monkeypatch) == wrong


def test_a_torn_or_altered_entry_is_not_used(folder):
    store.put("name", RESULT)
    path = folder / "name"
    whole = path.read_bytes()
    assert store.get("name") == RESULT
    torn = [whole[:length] for length in range(len(whole))]
    altered = [
        whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
        for place in range(len(whole))
        for bit in range(8)
    ]
    for content in (*torn, *altered, whole + b"\n"):
        path.write_bytes(content)
        assert store.get("name") is None
    path.with_name("other").write_bytes(whole)
    assert store.get("other") is None
    for body in (b"[1]", b'"x"', b"{", b"\xff", b"[" * 100_000):  # no result, but the right checksum
        path.write_bytes(store._check("name", body) + b"\n" + body)
        assert store.get("name") is None
    path.unlink()
    os.mkfifo(path)  # reading must not wait for it
    assert store.get("name") is None
    store.put("name", RESULT)
    assert store.get("name") == RESULT


def digest(monkeypatch, *values):
    """The digest of the sources as a process computes it that starts after all changes."""
    store._digest.cache_clear()
    monkeypatch.setattr(store, "STARTED", float("inf"))
    return store.sources(*values)


def counting(folder, monkeypatch, *values):
    """The files of a folder whose change changes the digest."""
    first, found = digest(monkeypatch, *values), set()
    for path in sorted(folder.rglob("*.*")):
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        if digest(monkeypatch, *values) not in (None, first):
            found.add(path.relative_to(folder).as_posix())
        path.write_bytes(before)
    return found


def test_every_file_of_ebr_counts(tmp_path, monkeypatch):
    here, find = tmp_path / "ebr", importlib.util.find_spec
    shutil.copytree(ROOT / "ebr", here, ignore=shutil.ignore_patterns("__pycache__"))
    copy = importlib.util.spec_from_file_location(
        "ebr", here / "__init__.py", submodule_search_locations=[str(here)]
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: copy if name == "ebr" else find(name))
    (here / "theory" / "new.py").touch()
    every = {path.relative_to(here).as_posix() for path in here.rglob("*.*")}
    assert {"algorithms/elastic.py", "live/ebr.mplstyle", "validation.py"} < every
    assert counting(here, monkeypatch, POINTS) == every
    store._digest.cache_clear()


RACES = """
import dataclasses
import ebr

@dataclasses.dataclass(frozen=True, repr=False)
class Own(ebr.ElasticBatchRacing):
    def play(self, *arguments, **more):
        import own_helper
        return super().play(*arguments, **more)
"""
OWN_FILES = {
    "own_races/__init__.py": "",
    "own_races/races.py": RACES,
    "own_races/sizes.py": "SIZES = 1",
    "own_races/data.csv": "1,2",
    "own_helper.py": "import own_leaf\n",
    "own_leaf.py": "LEAF = 1\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A user's package with data, which imports a module beside it."""
    (tmp_path / "own_races").mkdir()
    for name, text in {**OWN_FILES, "unrelated.py": ""}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    store._digest.cache_clear()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("own_")]:
        del sys.modules[name]


def test_the_sources_of_an_algorithm_from_elsewhere_count_with_all_that_they_import(package, monkeypatch):
    from own_races.races import Own

    own = Own(3, 0.2, 0.1)
    first = digest(monkeypatch, own)
    assert first not in (None, digest(monkeypatch, POINTS[0].algorithm))
    assert digest(monkeypatch, [{"held": (1, own)}]) == first
    assert counting(package, monkeypatch, own) == set(OWN_FILES)
    (package / "own_races" / "new.py").write_text("import a module that cannot be read")
    assert digest(monkeypatch, own) is None


def test_another_environment_misses(tmp_path, monkeypatch):
    def key():
        store._environment.cache_clear()
        return store.key("the same sources", POINTS)

    here = key()
    for name in ("python_version", "machine"):
        with monkeypatch.context() as patch:
            patch.setattr(store.platform, name, lambda: "another")
            assert key() != here
    assert key() == here
    (tmp_path / "abacus-2.0.dist-info").mkdir()  # another package is installed
    monkeypatch.syspath_prepend(tmp_path)
    assert key() != here
    store._environment.cache_clear()


@dataclass(frozen=True)
class Cell(ebr.ElasticBatchRacing):
    """An algorithm that is defined in a notebook's cell."""


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


def test_nothing_is_kept_once_a_source_has_changed_under_the_process(folder, simulated, package):
    from own_races.races import Own

    points = [ebr.Point({}, Own(3, 0.2, 0.1), ebr.setup_1(5))]
    for path in package.rglob("*"):
        os.utime(path, (store.STARTED - 3600,) * 2)
    for _ in range(2):
        ebr.sweep(points, 5)
    assert (len(list(folder.iterdir())), len(simulated)) == (1, 1)
    os.utime(package / "own_leaf.py", (store.STARTED + 3600,) * 2)
    ebr.sweep(points, 6)
    ebr.sweep(points, 5)
    assert (len(list(folder.iterdir())), len(simulated)) == (1, 3)


def test_a_worker_that_runs_other_sources_is_an_error_and_other_packages_keep_nothing(folder, monkeypatch):
    named = pytest.raises(RuntimeError, match=f"worker process {os.getpid()} must run the sources")
    # None: the sources changed after the worker had read them.
    for worker, outcome in (("the worker's", named), (None, nullcontext())):
        said = iter(["the caller's", worker])
        monkeypatch.setattr(store, "sources", lambda *_, said=said: next(said))
        with outcome:
            ebr.sweep(POINTS[:1], 5, 1)
    monkeypatch.setattr(store, "sources", lambda *_: "the same")
    there = iter(["the caller's", "the worker's"])
    monkeypatch.setattr(store, "_environment", lambda: next(there))
    ebr.sweep(POINTS[:1], 5, 1)
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


def test_a_folder_that_cannot_be_written_or_is_full_costs_a_warning_and_no_result(folder, monkeypatch):
    def full(path, content):
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError("no space left on device")

    expected = fresh(POINTS[:1], 5, 1, monkeypatch)
    folder.parent.write_text("not a folder")
    with pytest.warns(UserWarning, match="EBR_CACHE must name a folder to write in"):
        assert bits(ebr.sweep(POINTS[:1], 5, 1)) == expected
    folder.parent.unlink()
    store.put("name", RESULT)
    assert store.get("name") == RESULT
    monkeypatch.setattr(Path, "write_bytes", full)
    for name in ("name", "another"):
        with pytest.warns(UserWarning, match="no space left"):
            store.put(name, RESULT)
        assert store.get(name) is None
