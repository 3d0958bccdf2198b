"""Many simulations at once: on this machine's cores, or on a Dask cluster when one is given (`workers`).

A result depends on what is simulated and on the seed, never on where. With EBR_CACHE set, what was simulated
before is looked up (`store`).
"""

import os
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np
from tqdm import tqdm

from ebr.algorithms.game import Algorithm
from ebr.simulation import store
from ebr.simulation.simulate import check, identity, simulate
from ebr.simulation.workers import workers
from ebr.theory.problems import Problem
from ebr.validation import whole

if TYPE_CHECKING:  # slow to import, and a worker makes no table
    import pandas as pd

COLUMNS = ("pulls", "error", "rounds", "failures", "runs")


class Point(NamedTuple):
    """One point of a sweep: what it is called in the table, and what is simulated."""

    labels: dict[str, Any]
    algorithm: Algorithm
    problem: Problem


class Experiment(NamedTuple):
    """What is simulated, and the identity that seeds it."""

    identity: bytes
    algorithm: Algorithm
    problem: Problem


def sweep(points: Iterable[Point], runs: int = 100, seed: int = 0) -> "pd.DataFrame":
    """Simulate every point `runs` times, in parallel, with a progress bar on a terminal.

    Returns
    -------
    A row a point: its labels, then pulls (the mean), error (one standard error of it), rounds (the most
    used), failures (runs whose arm was not ε-optimal) and runs. Everything is checked before anything runs;
    points that are the same experiment under other labels are simulated once.
    """
    import pandas as pd

    points = list(points)
    whole("runs", runs, 1)
    _check(points, seed)
    experiments = [Experiment(identity(a, problem), a, problem) for _, a, problem in points]
    keys = [(type(one.algorithm), one.identity) for one in experiments]
    distinct = dict(zip(keys, zip(experiments, points, strict=True), strict=True))
    calls = [(experiment, runs, seed) for experiment, _ in distinct.values()]
    names = [f"the point {point.labels}, {point.algorithm!r}" for _, point in distinct.values()]
    found = dict(zip(distinct, computed(_summary, calls, names), strict=True))
    return pd.DataFrame([point.labels | found[key] for point, key in zip(points, keys, strict=True)])


def _check(points: Sequence[Point], seed: int) -> None:
    """Raise ValueError for points that cannot be simulated, or whose labels a result would overwrite."""
    if not points:
        raise ValueError("points must be one Point at least, got none")
    for point in points:
        if not isinstance(point, Point):
            raise ValueError(f"points must be of class Point, got {point!r}")
        if taken := set(COLUMNS) & set(point.labels):
            raise ValueError(f"labels must not be named {', '.join(COLUMNS)}, got {', '.join(sorted(taken))}")
        check(point.algorithm, point.problem, seed)


def _summary(experiment: Experiment, runs: int, seed: int) -> store.Result:
    _, algorithm, problem = experiment
    result = simulate(algorithm, problem, runs, seed)
    error = float(result.pulls.std(ddof=1) / np.sqrt(runs)) if runs > 1 else np.nan
    failures = int(np.count_nonzero(~result.correct(algorithm.epsilon)))
    summary = (float(result.pulls.mean()), error, int(result.rounds.max()), failures, runs)
    return dict(zip(COLUMNS, summary, strict=True))


def computed(
    function: Callable[..., store.Result], calls: Sequence[tuple[Any, ...]], names: Sequence[str]
) -> list[store.Result]:
    """Call a function with each tuple of arguments; what is kept is looked up, the others are shared out.

    Results are kept as they come in, by this process. An error says the call's name.
    """
    keeping = store.folder() is not None
    behind = [store.sources(function, *call) if keeping else None for call in calls]
    keys = [store.key(it, function, *call) if it else None for it, call in zip(behind, calls, strict=True)]
    kept = ((place, store.get(key)) for place, key in enumerate(keys) if key)
    found = {place: result for place, result in kept if result is not None}
    missing = [place for place in range(len(calls)) if place not in found]
    if keeping and os.environ.get("EBR_WORKERS") == "1":
        random.SystemRandom().shuffle(missing)  # a process beside this one begins with another call
    tasks = [
        joblib.delayed(_task)(place, function, calls[place], names[place], keys[place]) for place in missing
    ]
    if tasks:
        with workers():
            parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="all")
            for place, result, sources in tqdm(parallel(tasks), total=len(tasks), unit="point", disable=None):
                found[place] = result
                # A worker may run other sources than this process has: then it is not this key's result.
                if (key := keys[place]) and sources == behind[place]:
                    store.put(key, result)
    return [found[place] for place in range(len(calls))]


def _task(
    place: int, function: Callable[..., store.Result], call: tuple[Any, ...], name: str, key: str | None
) -> tuple[int, store.Result, str | None]:
    """The result of a call, with its place and the sources behind it; None if another process was faster."""
    if key and (kept := store.get(key)) is not None:
        return place, kept, None
    try:
        return place, function(*call), store.sources(function, *call) if key else None
    except Exception as error:
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        raise kind(f"{name}: {type(error).__name__}: {error}") from error
