"""Sweeps: the same numbers on local cores, on a Dask cluster, and on a cluster that loses a worker."""

import io
import os
import re
import shutil
import signal
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from clusters import Cluster, wait_for_workers

import ebr

ROOT = Path(__file__).parents[2]
# Long enough that a worker can be killed while the sweep is under way.
POINTS = [
    ebr.Point({"problem": name, "epsilon": epsilon}, ebr.SequentialRacing(epsilon, 0.1), problem)
    for name, problem in (("Setup 1", ebr.setup_1(30)), ("Setup 2", ebr.setup_2(30)))
    for epsilon in (0.02, 0.03, 0.05, 0.1, 0.2, 0.3)
]


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Work is done in this process, unless a test changes that."""
    monkeypatch.delenv("DASK", raising=False)
    monkeypatch.setenv("EBR_WORKERS", "1")


@pytest.fixture(scope="module")
def expected():
    """The expected table, from one simulation after the other."""
    rows = []
    for labels, algorithm, problem in POINTS:
        result = ebr.simulate(algorithm, problem, 20, seed=5)
        rows.append(labels | {"pulls": result.pulls.mean(), "rounds": result.rounds.max(), "runs": 20})
    return pd.DataFrame(rows)


def same(table, expected):
    return table[expected.columns].equals(expected)


@pytest.mark.slow
def test_local_cores_give_the_same_numbers_as_a_plain_loop(expected, monkeypatch):
    monkeypatch.delenv("EBR_WORKERS")
    table = ebr.sweep(POINTS, runs=20, seed=5)
    assert same(table, expected)
    assert (table["failures"] == 0).all()
    assert not same(ebr.sweep(POINTS[-1:], runs=20, seed=6), expected[-1:].reset_index(drop=True))


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits_even_if_it_loses_a_worker(expected, monkeypatch):
    with Cluster() as cluster:
        monkeypatch.setenv("DASK", cluster.address)
        wait_for_workers(cluster.address, 2)
        assert same(ebr.sweep(POINTS[:6][::-1], runs=20, seed=5), expected[:6][::-1].reset_index(drop=True))

        victim = cluster.workers[0]
        with killed_when_busy(cluster.address, victim):
            table = ebr.sweep(POINTS, runs=20, seed=5)
        assert victim.wait(10) == -signal.SIGKILL
        assert same(table, expected)


def executed(address):
    """The number of tasks that each worker has done, by address."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return client.run(lambda dask_worker: dask_worker.state.executed_count)


@pytest.mark.slow
def test_one_worker_of_one_thread_does_the_work_and_one_with_other_sources_is_an_error_that_names_it(
    expected, monkeypatch, tmp_path
):
    simulated = shutil.copytree(ROOT / "ebr", tmp_path / "ebr") / "simulation" / "simulate.py"
    text = simulated.read_text("utf-8")
    simulated.write_text(text.replace("binomial(pulls, means)", "binomial(pulls, 0.9 * means)"), "utf-8")
    with Cluster(workers=1) as cluster:
        monkeypatch.setenv("DASK", cluster.address)
        wait_for_workers(cluster.address, 1)
        assert same(ebr.sweep(POINTS[-2:], runs=20, seed=5), expected[-2:].reset_index(drop=True))
        ((first, tasks),) = executed(cluster.address).items()
        assert tasks == 2

        cluster.add_worker(cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)})
        wait_for_workers(cluster.address, 2)
        (other,) = set(executed(cluster.address)) - {first}
        with pytest.raises(RuntimeError, match=f"worker {other} must run the sources that this process has"):
            ebr.sweep(POINTS[-2:], runs=20, seed=5)
        # A worker that joins later is checked with every task.
        cluster.workers[0].kill()
        monkeypatch.setattr("distributed.Client.run", lambda *_, **__: {})
        with pytest.raises(RuntimeError, match=f"worker {other} must run the sources that this process has"):
            ebr.sweep(POINTS[-2:], runs=20, seed=5)


@contextmanager
def killed_when_busy(address, *victims):
    """Kill processes as soon as both workers have tasks; fail if the sweep ends before."""
    from distributed import Client

    def kill():
        with Client(address, set_as_default=False) as client:
            while sum(map(bool, client.processing().values())) < 2:
                time.sleep(0.02)
            for victim in victims:
                victim.kill()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    yield
    killer.join(30)
    assert not killer.is_alive()


@pytest.mark.parametrize("listening", [False, True])
def test_an_address_that_does_not_answer_is_an_error_that_names_it(monkeypatch, listening):
    """Also if something accepts the connection and never answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        if listening:
            free.listen()
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setattr("ebr.simulation.sweep.SECONDS_TO_ANSWER", 1)
        for given in (address, "nonsense", "nonsense://", "tcp://", "tcp://127.0.0.1", "inproc://x"):
            monkeypatch.setenv("DASK", given)
            said = f"DASK must name a scheduler that answers, got {given!r}: "
            with pytest.raises(ConnectionError, match=re.escape(said)):
                ebr.sweep(POINTS[:1], runs=1)


@pytest.mark.slow
@pytest.mark.parametrize("dies", ["workers", "scheduler"])
def test_a_cluster_that_dies_is_an_error_and_what_it_did_is_kept(monkeypatch, tmp_path, dies):
    monkeypatch.setattr("ebr.simulation.sweep.SECONDS_WITHOUT_WORKERS", 1)
    monkeypatch.setenv("EBR_CACHE", str(tmp_path))
    with Cluster() as cluster:
        monkeypatch.setenv("DASK", cluster.address)
        wait_for_workers(cluster.address, 2)
        table = ebr.sweep(POINTS[-2:], runs=20, seed=5)
        assert len(list(tmp_path.iterdir())) == 2

        victims = cluster.workers if dies == "workers" else [cluster.scheduler]
        gone = pytest.raises(ConnectionError, match=f"{cluster.address} has gone, or has no workers left")
        with killed_when_busy(cluster.address, *victims), gone:
            ebr.sweep(POINTS[:2], runs=2000, seed=5)
    # The cluster is gone, but results are in the cache.
    pd.testing.assert_frame_equal(ebr.sweep(POINTS[-2:], runs=20, seed=5), table, check_exact=True)


def test_one_worker_is_this_very_process_and_simulates_the_same_experiment_once(monkeypatch):
    workers, simulate = [], ebr.simulate

    def watched(*arguments):
        workers.append((os.getpid(), threading.current_thread()))
        return simulate(*arguments)

    monkeypatch.setattr("ebr.simulation.sweep.simulate", watched)
    monkeypatch.setattr("ebr.simulation.sweep.get_reusable_executor", None)
    monkeypatch.setattr("subprocess.Popen.__init__", None)
    monkeypatch.setattr("os.fork", None)
    relabelled = POINTS[-1]._replace(labels={"problem": "the same", "epsilon": "too"})
    table = ebr.sweep((point for point in [*POINTS[-2:], relabelled]), runs=2)  # points may be any iterable
    assert workers == [(os.getpid(), threading.current_thread())] * 2
    assert table["epsilon"].tolist() == [0.2, 0.3, "too"]
    assert table.iloc[2, 2:].equals(table.iloc[1, 2:])


@pytest.mark.parametrize("kind", ["terminal", "file"])
def test_there_is_a_progress_bar_on_a_terminal_alone(monkeypatch, kind):
    """There is one in a notebook, too: see tests/test_notebooks.py."""
    screen = type("Stream", (io.StringIO,), {"isatty": lambda _: kind == "terminal"})()
    monkeypatch.setattr("sys.stderr", screen)
    ebr.sweep(POINTS[-2:], runs=2)
    assert ("2/2" in screen.getvalue()) if kind != "file" else screen.getvalue() == ""


class Breaks(ebr.SequentialRacing):
    """An algorithm whose games raise an error."""

    error = ZeroDivisionError

    def play(self, *_, **__):
        raise self.error("out of arms")


class Refuses(Breaks):
    error = ValueError


@pytest.mark.parametrize(
    ("told", "broken", "kind"),
    [
        ("1", Breaks, RuntimeError),
        ("1", Refuses, ValueError),
        pytest.param("2", Breaks, RuntimeError, marks=pytest.mark.slow),
    ],
)
def test_an_error_in_a_worker_names_its_point(monkeypatch, told, broken, kind):
    monkeypatch.setenv("EBR_WORKERS", told)
    bad = ebr.Point({"where": "here", "epsilon": 0.25}, broken(0.25, 0.1), ebr.setup_1(3))
    words = f"the point {bad.labels}, {bad.algorithm!r}: {broken.error.__name__}: out of arms"
    with pytest.raises(kind, match=re.escape(words)):
        ebr.sweep([POINTS[-1], bad, POINTS[-2]], runs=2)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"runs": 0}, r"runs .* at least 1, got 0"),
        ({"seed": -1}, r"seed .* got -1"),
        ({"points": [ebr.Point({}, POINTS[0].algorithm, "Setup 3")]}, r"problem must be .* got 'Setup 3'"),
        ({"points": []}, r"points must be a list of at least one Point, got \[\]"),
        ({"points": None}, "points must be a list of at least one Point, got None"),
        ({"points": [POINTS[0]._replace(labels=None)]}, "labels must be a dict, got None"),
        ({"points": [POINTS[0], tuple(POINTS[1])]}, r"points must be of class Point, got \({'problem'"),
        *(
            (
                {"points": [POINTS[0]._replace(labels={"T": 1, name: 2})]},
                f"labels must not be .* got .*'{name}': 2}}$",
            )
            for name in ("pulls", "error", "rounds", "failures", "runs")
        ),
    ],
)
def test_bad_input_is_an_error_before_anything_runs(arguments, names):
    with pytest.raises(ValueError, match=names):
        ebr.sweep(**{"points": POINTS[:1], "runs": 1} | arguments)


@pytest.mark.parametrize("told", ["0", "two"])
def test_an_invalid_number_of_workers_is_an_error_that_names_it(monkeypatch, told):
    monkeypatch.setenv("EBR_WORKERS", told)
    with pytest.raises(ValueError, match=f"EBR_WORKERS must be an integer of at least 1, got '{told}'"):
        ebr.sweep(POINTS[:1], runs=1)
