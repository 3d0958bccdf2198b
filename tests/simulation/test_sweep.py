"""Sweeps: the same numbers on local cores, on a Dask cluster, and on one that loses a worker half-way."""

import os
import re
import signal
import socket
import threading
import time

import pandas as pd
import pytest
from clusters import Cluster, wait_for_workers

import ebr

# Long enough that a worker can be killed while the sweep is under way.
POINTS = [
    ebr.Point({"problem": name, "epsilon": epsilon}, ebr.SequentialRacing(epsilon, 0.1), problem)
    for name, problem in (("Setup 1", ebr.setup_1(30)), ("Setup 2", ebr.setup_2(30)))
    for epsilon in (0.02, 0.03, 0.05, 0.1, 0.2, 0.3)
]


@pytest.fixture(scope="module")
def expected():
    """One simulation after the other, without a pool."""
    rows = []
    for labels, algorithm, problem in POINTS:
        result = ebr.simulate(algorithm, problem, 20, seed=5)
        rows.append(labels | {"pulls": result.pulls.mean(), "rounds": result.rounds.max(), "runs": 20})
    return pd.DataFrame(rows)


def same(table, expected):
    return table[expected.columns].equals(expected)


@pytest.mark.slow
def test_local_cores_give_the_same_numbers_as_a_plain_loop(expected, monkeypatch):
    monkeypatch.delenv("DASK", raising=False)
    table = ebr.sweep(POINTS, runs=20, seed=5)
    assert same(table, expected)
    assert (table["failures"] == 0).all()
    assert not same(ebr.sweep(POINTS[:1], runs=20, seed=6), expected[:1])


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits_even_if_it_loses_a_worker(expected, monkeypatch):
    with Cluster() as cluster:
        monkeypatch.setenv("DASK", cluster.address)
        wait_for_workers(cluster.address, 2)
        assert same(ebr.sweep(POINTS, runs=20, seed=5), expected)

        victim = cluster.workers[0]
        killer = threading.Thread(target=kill_when_busy, args=(cluster.address, victim))
        killer.start()
        table = ebr.sweep(POINTS, runs=20, seed=5)
        killer.join()
        assert victim.wait(10) == -signal.SIGKILL
        assert same(table, expected)


def kill_when_busy(address, victim):
    """Kill a worker process once the scheduler says that it is executing a task."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        while victim.poll() is None:
            busy = {key: names for key, names in client.processing().items() if names}
            if len(busy) == 2:
                os.kill(victim.pid, signal.SIGKILL)
                return
            time.sleep(0.02)


def test_an_address_that_does_not_answer_is_an_error_that_names_it(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setenv("DASK", address)
        monkeypatch.setattr("ebr.simulation.sweep.SECONDS_TO_ANSWER", 1)
        with pytest.raises(ConnectionError, match=re.escape(address)):
            ebr.sweep(POINTS[:1], runs=1)


def test_an_address_that_is_none_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setenv("DASK", "nonsense://")
    with pytest.raises(ConnectionError, match="DASK must name a scheduler that answers, got 'nonsense://'"):
        ebr.sweep(POINTS[:1], runs=1)


@pytest.mark.slow
def test_the_same_experiment_under_other_labels_is_simulated_once(monkeypatch):
    monkeypatch.delenv("DASK", raising=False)
    (_, algorithm, problem) = POINTS[-1]
    points = [ebr.Point({"T": t}, algorithm, problem) for t in (1, 2)]
    table = ebr.sweep(points, runs=5)
    assert table["T"].tolist() == [1, 2]
    assert table.drop(columns="T").iloc[0].equals(table.drop(columns="T").iloc[1])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"runs": 0}, r"runs .* at least 1, got 0"),
        ({"seed": -1}, r"seed .* got -1"),
        ({"points": [ebr.Point({}, POINTS[0].algorithm, "Setup 3")]}, r"problem must be .* got 'Setup 3'"),
    ],
)
def test_bad_input_is_an_error_before_anything_runs(arguments, names):
    with pytest.raises(ValueError, match=names):
        ebr.sweep(**{"points": POINTS[:1], "runs": 1} | arguments)
