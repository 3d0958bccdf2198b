"""Many simulations at once: on this machine's cores, or on a Dask cluster when one is given.

A result depends on what is simulated and on the seed, never on where. With EBR_CACHE set, what was simulated
before is looked up (`store`).

The environment variable DASK names a scheduler, for instance tcp://127.0.0.1:8786. Its workers must have the
sources of `ebr` that this process has. Else EBR_WORKERS processes do the work (all cores; with 1 this one).
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
from joblib.externals.loky import get_reusable_executor
from tqdm import tqdm

from ebr.algorithms.game import Algorithm
from ebr.simulation import store
from ebr.simulation.simulate import check, identity, simulate
from ebr.theory.problems import Problem
from ebr.validation import require, whole

if TYPE_CHECKING:  # slow to import, and a worker makes no table
    import pandas as pd

COLUMNS = ("pulls", "error", "rounds", "failures", "runs")
SECONDS_TO_ANSWER = 3
SECONDS_WITHOUT_WORKERS = 5  # a worker that died may be started again
SAME_SOURCES = "must run the sources that this process has, unchanged since both began: start both anew"


class Point(NamedTuple):
    """One point of a sweep: what it is called in the table, and what is simulated."""

    labels: dict[str, Any]
    algorithm: Algorithm
    problem: Problem


def sweep(points: Iterable[Point], runs: int = 100, seed: int = 0) -> "pd.DataFrame":
    """Simulate every point `runs` times, in parallel, with a progress bar on a terminal or in Jupyter.

    A row for each point: its labels, then pulls (the mean), error (one standard error of it), rounds (the
    most used), failures (runs whose arm was not ε-optimal) and runs. Everything is checked before anything
    runs. Points that are the same experiment under other labels are simulated once.
    """
    import pandas as pd

    made = list(points) if isinstance(points, Iterable) else []
    require(made, "points", "be a list of at least one Point", points)
    for point in made:
        require(isinstance(point, Point), "points", "be of class Point", point)
        require(isinstance(point.labels, dict), "labels", "be a dict", point.labels)
        free = set(COLUMNS).isdisjoint(point.labels)  # or a result would overwrite a label
        require(free, "labels", f"not be named {', '.join(COLUMNS)}", point.labels)
        check(point.algorithm, point.problem, seed)
    whole("runs", runs, 1)
    keys = [(type(algorithm), identity(algorithm, problem)) for _, algorithm, problem in made]
    distinct = dict(zip(keys, made, strict=True))
    calls = [(point.algorithm, point.problem, runs, seed) for point in distinct.values()]
    names = [f"the point {point.labels}, {point.algorithm!r}" for point in distinct.values()]
    found = dict(zip(distinct, computed(_summary, calls, names), strict=True))
    return pd.DataFrame([point.labels | found[key] for point, key in zip(made, keys, strict=True)])


def _summary(algorithm: Algorithm, problem: Problem, runs: int, seed: int) -> store.Result:
    result = simulate(algorithm, problem, runs, seed)
    error = float(result.pulls.std(ddof=1) / np.sqrt(runs)) if runs > 1 else np.nan
    failures = int(np.count_nonzero(~result.correct(algorithm.epsilon)))
    summary = float(result.pulls.mean()), error, int(result.rounds.max()), failures, runs
    return dict(zip(COLUMNS, summary, strict=True))


def computed(
    function: Callable[..., store.Result], calls: Sequence[tuple[Any, ...]], names: Sequence[str]
) -> list[store.Result]:
    """Call a function with each tuple of arguments: look up kept results, compute the others and keep them.

    An error names its call.
    """
    behind = [store.sources(function, *call) for call in calls]
    keys = [store.key(known, function, *call) for known, call in zip(behind, calls, strict=True)]
    found: list[Any] = [store.get(key) for key in keys]
    missing = [place for place, kept in enumerate(found) if kept is None]
    tasks = [joblib.delayed(_task)(function, calls[place], names[place], behind[place]) for place in missing]
    if tasks:
        jupyter = type(sys.stderr).__module__.startswith("ipykernel")
        hidden = False if jupyter else None  # None: unless standard error is a terminal
        with workers():
            done = joblib.Parallel(return_as="generator", batch_size=1, pre_dispatch="all")(tasks)
            bar = tqdm(done, total=len(tasks), unit="point", disable=hidden)
            for place, (result, key) in zip(missing, bar, strict=True):
                found[place] = result
                if key == keys[place]:  # else the worker has other packages
                    store.put(key, result)
    return found


def _task(
    function: Callable[..., store.Result], call: tuple[Any, ...], name: str, behind: str | None
) -> tuple[store.Result, str | None]:
    """The result of a call, and its key here; an error if other sources are `behind` it than in the caller.

    A process whose sources changed since it began has no digest, which is an error only on a cluster.
    """
    here, worker = store.sources(function, *call), None
    with suppress(KeyError, ValueError):  # this is no Dask worker
        worker = sys.modules["distributed"].get_worker().address
    if here != behind and (worker or (here and behind)):
        raise RuntimeError(f"worker {worker or f'process {os.getpid()}'} {SAME_SOURCES}")
    key = store.key(here, function, *call)
    if (kept := store.get(key)) is not None:  # another process was faster
        return kept, key
    try:
        return function(*call), key
    except Exception as error:
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        raise kind(f"{name}: {type(error).__name__}: {error}") from error


@contextmanager
def workers() -> Iterator[None]:
    """Send joblib's work to the cluster that DASK names, else to EBR_WORKERS local processes."""
    if address := os.environ.get("DASK"):
        with _cluster(address):
            yield
        return
    told = os.environ.get("EBR_WORKERS") or str(joblib.cpu_count())
    require(told.isdecimal() and int(told), "EBR_WORKERS", "be an integer of at least 1", told)
    try:
        with joblib.parallel_config(backend="loky", n_jobs=int(told)):
            yield
    finally:
        if int(told) > 1:
            get_reusable_executor().shutdown(wait=True)  # else the workers linger, with their memory


@contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Send joblib's work to a Dask scheduler; raise ConnectionError where it, or every worker, is gone."""
    from distributed import Client

    try:
        with ThreadPoolExecutor(1) as other:  # this thread may have an event loop already
            other.submit(asyncio.run, _reach(address)).result()
        client = Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)
    except Exception as error:  # whatever an address leads to
        why = str(error) or type(error).__name__
        raise ConnectionError(f"DASK must name a scheduler that answers, got {address!r}: {why}") from error
    threading.Thread(target=_watch, args=(client,), daemon=True).start()
    try:
        with client, joblib.parallel_config(backend="dask", client=client, n_jobs=-1) as settings:
            ours = store.sources()
            for worker, sources in client.run(store.sources, on_error="ignore").items():
                if ours is None or sources != ours:
                    raise RuntimeError(f"worker {worker} {SAME_SOURCES}")
            # With one thread in the cluster, joblib would do the work in this process.
            settings["backend"].effective_n_jobs = lambda jobs: max(2, sum(client.ncores().values()))
            yield
    except CancelledError as error:
        raise ConnectionError(f"DASK's scheduler at {address} has gone, or has no workers left") from error


async def _reach(address: str) -> None:
    """Raise an error unless a scheduler answers soon; its client would wait for a silent one for ever."""
    from distributed.comm.core import connect

    comm = await asyncio.wait_for(connect(address, timeout=SECONDS_TO_ANSWER), SECONDS_TO_ANSWER)
    comm.abort()


def _watch(client: Any) -> None:
    """Close the client, which cancels its tasks, once there has been no worker for some seconds."""
    with suppress(Exception):  # the scheduler has gone, or the client is closed: the tasks have ended already
        while client.status == "running":
            try:
                client.wait_for_workers(1, timeout=SECONDS_WITHOUT_WORKERS)
            except TimeoutError:
                client.close()
            time.sleep(0.5)
