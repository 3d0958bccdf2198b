"""Who works: this machine's cores, or a Dask cluster when one is given.

The environment variable DASK names a scheduler, for instance tcp://127.0.0.1:8786. Without it EBR_WORKERS is
the number of local processes, all cores if it is not set; with 1 the work is done in this very process.
"""

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import joblib
from joblib.externals.loky import get_reusable_executor

SECONDS_TO_ANSWER = 3
SECONDS_WITHOUT_WORKERS = 5  # a worker that died may be started again
SECONDS_BETWEEN_LOOKS = 0.5


@contextmanager
def workers() -> Iterator[None]:
    """Send joblib's work to the cluster that DASK names, else to EBR_WORKERS local processes."""
    address = os.environ.get("DASK")
    if address:
        with _cluster(address):
            yield
        return
    number = _processes()
    try:
        with joblib.parallel_config(backend="loky", n_jobs=number):
            yield
    finally:
        if number > 1:
            get_reusable_executor().shutdown(wait=True)  # else the workers linger, with their memory


def _processes() -> int:
    told = os.environ.get("EBR_WORKERS") or str(joblib.cpu_count())
    if not told.isdecimal() or int(told) < 1:
        raise ValueError(f"EBR_WORKERS must be an integer of at least 1, got {told!r}")
    return int(told)


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
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(client, done), daemon=True)
    watch.start()
    try:
        with client, joblib.parallel_config(backend="dask", client=client, n_jobs=-1):
            yield
    except CancelledError as error:
        raise ConnectionError(f"DASK's scheduler at {address} has gone, or has no workers left") from error
    finally:
        done.set()
        watch.join()


async def _reach(address: str) -> None:
    """Raise an error unless a scheduler answers soon; its client would wait for a silent one for ever."""
    from distributed.comm.core import connect

    async def greet() -> None:
        comm = await connect(address, timeout=SECONDS_TO_ANSWER)
        comm.abort()

    await asyncio.wait_for(greet(), SECONDS_TO_ANSWER)


def _watch(client: Any, done: threading.Event) -> None:
    """Close the client, which cancels its tasks, once there has been no worker for some seconds."""
    without = 0.0
    while without < SECONDS_WITHOUT_WORKERS:
        if done.wait(SECONDS_BETWEEN_LOOKS):
            return
        try:
            alive = bool(client.ncores())
        except Exception:  # the scheduler itself has gone: then the tasks are cancelled already
            return
        without = 0.0 if alive else without + SECONDS_BETWEEN_LOOKS
    client.close()
