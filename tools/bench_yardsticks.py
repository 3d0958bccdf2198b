"""The yardsticks of the benchmark: a loop of one pull at a time, bare draws, and clocks that take turns."""

import functools
import math
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numba
import numpy as np

import ebr
from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray, IntArray
from ebr.simulation import simulate
from ebr.theory.problems import Problem

Action = Callable[[], Any]
Clock = Callable[[], float]


def race(means: Any, sums: Any, epsilon: float, delta: float, seed: int) -> int:
    """Race sequentially, one pull at a time, and count the pulls: `SequentialRacing` as one would write it.

    The first k entries are the survivors'. `sums` starts at zero; both arrays are overwritten. As `math` is
    cheaper than numpy for single numbers, the deviation is spelt out.
    """
    random.seed(seed)
    n = k = len(means)
    omega = math.sqrt(delta / (6 * n))
    pulls = sweep = 0
    while True:
        sweep += 1
        pulls += k
        first = second = -1.0
        for i in range(k):
            if random.random() < means[i]:
                sums[i] += 1.0
            if sums[i] > first:
                second = first
                first = sums[i]
            elif sums[i] > second:
                second = sums[i]
        width = 4 * math.sqrt(sweep * math.log(math.log2(2 * sweep) / omega))  # 2τD(τ) with σ = ½
        least = first - max(width - epsilon / n * sweep, 0.0)
        kept = 0
        for i in range(k):
            if sums[i] >= least:
                means[kept] = means[i]
                sums[kept] = sums[i]
                kept += 1
        k = kept
        if k == 1 or first - second >= width - epsilon * sweep:
            return pulls


compiled_race = numba.njit(race)


def compiled_loop(problem: Problem, epsilon: float, delta: float, runs: int) -> int:
    """Pulls of the compiled loop."""
    seeds, zeros = range(runs), np.zeros(problem.n_arms)
    return sum(compiled_race(problem.means.copy(), zeros.copy(), epsilon, delta, seed) for seed in seeds)


def beside_draws(algorithm: Algorithm, problem: Problem, runs: int) -> tuple[int, Action, Action]:
    """The pulls of a simulation, the simulation as a function, and its draws alone as a function."""
    draws: list[tuple[FloatArray, IntArray]] = []  # the arms' means, and how many pulls of them
    original, generator = simulate.draw_sums, np.random.default_rng(0)

    @functools.wraps(original)  # its attributes as well: simulate asks for the dispatch
    def spy(problem: Problem, means: FloatArray, pulls: IntArray, generator: np.random.Generator) -> Any:
        draws.append((means, pulls.copy(order="K")))  # in the memory order that it makes them
        return original(problem, means, pulls, generator)

    def bare() -> None:
        for means, pulls in draws:
            original(problem, means, pulls, generator)

    race = functools.partial(ebr.simulate, algorithm, problem, runs)
    with mock.patch.object(simulate, "draw_sums", spy):
        race()
    return sum(int(pulls.sum()) for _, pulls in draws), race, bare


def measured(algorithm: Algorithm, problem: Problem, runs: int, least: int) -> tuple[float, float]:
    """The seconds of a simulation, and their ratio to its bare draws'."""
    _, *turns = beside_draws(algorithm, problem, runs)
    (seconds, bare), _ = alternate(turns, least)
    return float(np.median(seconds)), float(np.median(seconds / bare))


def alternate(
    actions: list[Action], least: int, clock: Clock = time.process_time
) -> tuple[FloatArray, list[Any]]:
    """Call functions in turn, `least` times or for 1.5 s: the seconds of each call, and the last results."""
    turns: list[list[float]] = []
    results: list[Any] = []
    started = clock()
    while len(turns) < least or (len(turns) < 100 and clock() - started < 1.5):
        turns.append([])
        results.clear()
        for action in actions:
            before = clock()
            results.append(action())
            turns[-1].append(clock() - before)
    return np.transpose(turns), results


def peak_memory(arguments: str) -> float:
    """The peak memory of a process that simulates this case, in MiB."""
    case = f"import ebr; ebr.simulate({arguments})"
    # A child starts with its parent's peak on its account, so a bare interpreter stands in between.
    report = (
        "import resource, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    peak = int(subprocess.check_output([sys.executable, "-c", report, case]))
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, kilobytes elsewhere
