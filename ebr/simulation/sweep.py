"""Many simulations at once: on this machine's cores, or on a Dask cluster when one is given.

The environment variable DASK names a scheduler, for instance tcp://127.0.0.1:8786. A result depends on what
is simulated and on the seed, never on where.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor
from tqdm import tqdm

from ebr.algorithms.game import Algorithm
from ebr.simulation.simulate import check, identity, simulate
from ebr.theory.problems import Problem
from ebr.validation import whole

__all__ = ["Point", "sweep", "workers"]

SECONDS_TO_ANSWER = 10


class Point(NamedTuple):
    """One point of a sweep: what it is called in the table, and what is simulated."""

    labels: dict[str, Any]
    algorithm: Algorithm
    problem: Problem


def sweep(points: Sequence[Point], runs: int = 100, seed: int = 0) -> pd.DataFrame:
    """Simulate every point `runs` times, in parallel, with a progress bar.

    Returns
    -------
    A row a point: its labels, then pulls (the mean), error (one standard error of it), rounds (the most
    used), failures (runs whose arm was not ε-optimal) and runs. Everything is checked before anything runs;
    points that are the same experiment under other labels are simulated once.
    """
    whole("runs", runs, 1)
    for point in points:
        check(point.algorithm, point.problem, seed)
    keys = [identity(point.algorithm, point.problem) for point in points]
    distinct = dict(zip(keys, points, strict=True))
    tasks = [
        joblib.delayed(_summary)(point.algorithm, point.problem, runs, seed) for point in distinct.values()
    ]
    with workers():
        results = joblib.Parallel(return_as="generator", batch_size=1, pre_dispatch="all")(tasks)
        summaries = list(tqdm(results, total=len(tasks), unit="point"))
    found = dict(zip(distinct, summaries, strict=True))
    return pd.DataFrame([point.labels | found[key] for point, key in zip(points, keys, strict=True)])


def _summary(algorithm: Algorithm, problem: Problem, runs: int, seed: int) -> dict[str, float]:
    result = simulate(algorithm, problem, runs, seed)
    return {
        "pulls": float(result.pulls.mean()),
        "error": float(result.pulls.std(ddof=1) / np.sqrt(runs)) if runs > 1 else np.nan,
        "rounds": int(result.rounds.max()),
        "failures": int(np.count_nonzero(~result.correct(algorithm.epsilon))),
        "runs": runs,
    }


@contextmanager
def workers() -> Iterator[None]:
    """Send joblib's work to the cluster that DASK names, else to all local cores."""
    address = os.environ.get("DASK")
    if not address:
        try:
            with joblib.parallel_config(backend="loky", n_jobs=-1):
                yield
        finally:
            get_reusable_executor().shutdown(wait=True)  # else the workers linger, with their memory
        return
    from distributed import Client

    try:
        client = Client(address, timeout=SECONDS_TO_ANSWER, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise ConnectionError(f"DASK must name a scheduler that answers, got {address!r}: {error}") from error
    with client, joblib.parallel_config(backend="dask", client=client, n_jobs=-1):
        yield
