"""Races of a thousand arms: sequential racing, algorithms that race in rounds, and the rivals."""

import ast
import dataclasses
import functools
from typing import Any, NamedTuple

import bench_yardsticks as yardsticks
import numpy as np
import pandas as pd
import papermill
from bench_yardsticks import BARE, COLD, COMPILED, EXPONENT, PLAIN, RATE, Part, Target, progress
from compendium.modern_rivals.rival_entrants import ENTRANTS, Setting

import ebr
from ebr.algorithms.game import Algorithm
from ebr.models import REWARDS
from ebr.theory.problems import Problem

DEADLINE, EPSILON, DELTA = 15, 0.01, 0.01
SEQUENTIAL_RUNS, ROUND_BASED_RUNS = 100, 1000
SETUPS: dict[str, Problem] = {"Setup 1": ebr.setup_1(), "Setup 2": ebr.setup_2()}
NORMAL: dict[str, Problem] = {name: ebr.Gaussian(setup.means, 0.5) for name, setup in SETUPS.items()}

NOTEBOOK = papermill.inspect_notebook("notebooks/07-simulations.ipynb")
GRID = sorted(ast.literal_eval(NOTEBOOK["epsilons"]["default"]), reverse=True)  # Figure 2's ε
TOGETHER = "all points together"
PARTS = {"all ε": 1.0, "ε ≤ 0.1": 0.1}  # the largest ε
SUMS = {f"{setup}, {part}": ([setup], largest) for setup in SETUPS for part, largest in PARTS.items()}
SUMS[TOGETHER] = (list(SETUPS), 1.0)
FASTER = {"Setup 2, ε = 0.001": 10, TOGETHER: 5}  # than the compiled loop, at least
LARGEST_EXPONENT = 0.6
OVERHEAD = 1.5  # of a round-based algorithm's simulation, × its bare draws, at most


class Case(NamedTuple):
    """A round-based algorithm, what is known of its rewards, and whether there is a target for it."""

    algorithm: Algorithm
    rewards: str = "Bernoulli"
    has_target: bool = True
    remembers: bool = False  # so that its first race takes longer


def modelled(algorithm: Any, name: str, target: str = "", remembers: bool = False) -> dict[str, Case]:
    """An algorithm with each model of the rewards."""
    race = functools.partial(algorithm, DEADLINE, EPSILON, DELTA)
    return {
        f"{name}, {model}": Case(race(rewards=model), model, model == target, remembers) for model in REWARDS
    }


ROUND_BASED: dict[str, Case] = {
    **{f"EBR, T = {t}": Case(ebr.ElasticBatchRacing(t, EPSILON, DELTA)) for t in (1, 15, 50)},
    "kδER, T = 15": Case(ebr.DeltaElimination(DEADLINE, EPSILON, DELTA)),
    "AE, T = 15": Case(ebr.AggressiveElimination(DEADLINE, EPSILON, DELTA)),
    "Passive": Case(ebr.Passive(EPSILON, DELTA)),
    **modelled(ebr.PausingElasticBatchRacing, "pausing", target="Bernoulli", remembers=True),
    **modelled(ebr.SharpElasticBatchRacing, "sharp"),
}
# The rivals of notebook 16: all who take part there and are not ours.
OURS = ("EBR", "Algorithm 1", "paper's oracle")
RIVALS = {name: rival for name, rival in ENTRANTS.items() if not any(word in name for word in OURS)}
RIVAL_RUNS = {"batched": 1000, "staged": 20, "single": 1, "closest": 1}  # by their pace


def problem_of(rewards: str, setup: str) -> Problem:
    """A setup, with normal rewards if the model is Gaussian."""
    return (NORMAL if rewards == "Gaussian" else SETUPS)[setup]


def sequential() -> Part:
    """Time the sequential oracle, which asks ahead, at every ε of Figure 2, and sum up."""
    progress("compiling the loop")
    yardsticks.compiled_loop(SETUPS["Setup 1"], GRID[0], DELTA, 1)
    ebr.simulate(ebr.SequentialRacing(GRID[0], DELTA), SETUPS["Setup 1"], 10)  # loads what is loaded at first
    points = pd.DataFrame([point(name, epsilon) for name in SETUPS for epsilon in GRID])
    sums = pd.DataFrame([sum_of_points(points, label) for label in SUMS])
    rows = pd.concat([points, sums])
    found = rows.set_index("problem")
    targets = [
        *((label, COMPILED, "≥", least) for label, least in FASTER.items()),
        *((f"{setup}, ε ≤ 0.1", EXPONENT, "≤", LARGEST_EXPONENT) for setup in SETUPS),
    ]
    return Part(
        pd.concat([speed_of_loops(found.loc[TOGETHER]), rows]),
        [
            Target(f"Sequential, {label}: {column}", sign, limit, found.loc[label, column])
            for label, column, sign, limit in targets
        ],
    )


def point(name: str, epsilon: float) -> dict[str, Any]:
    """Time the sequential oracle at one ε, between compiled loops and beside the other yardsticks."""
    progress(f"sequential racing, {name}, ε = {epsilon}")
    problem, runs = SETUPS[name], SEQUENTIAL_RUNS
    pulls, simulate, bare = yardsticks.beside_draws(ebr.SequentialRacing(epsilon, DELTA), problem, runs)
    loops = min(max(1, round(2e7 * runs / pulls)), runs)  # a third of a second
    compiled = functools.partial(yardsticks.compiled_loop, problem, epsilon, DELTA, loops)
    plain = functools.partial(
        yardsticks.plain_loop, SETUPS["Setup 1"], GRID[0], DELTA, 10
    )  # slow: the easiest point
    least = 2 if (name, epsilon) == ("Setup 2", 0.001) else 1  # that one has a target of its own
    times, results = yardsticks.alternate([compiled, simulate, compiled, plain, bare], least, 9, seconds=1.5)
    before, seconds, after, plain_seconds, bare_seconds = times
    return {
        "algorithm": "Sequential",
        "problem": f"{name}, ε = {epsilon}",
        "setup": name,
        "epsilon": epsilon,
        "runs": runs,
        "pulls": pulls,
        RATE: pulls / np.median(seconds),
        PLAIN: np.median(plain_seconds / seconds) * pulls / results[3],
        COMPILED: np.median((before + after) / seconds) * pulls / (2 * results[0]),
        BARE: np.median(seconds / bare_seconds),
    }


def sum_of_points(points: pd.DataFrame, label: str) -> dict[str, Any]:
    """All pulls over all the time, and the same for the time that each yardstick needs for these pulls."""
    setups, largest = SUMS[label]
    chosen = points[points["setup"].isin(setups) & (points["epsilon"] <= largest)]
    pulls = chosen["pulls"]
    seconds = pulls / chosen[RATE]
    slope = np.polyfit(np.log(pulls), np.log(seconds), 1)[0]
    return {
        "algorithm": "Sequential",
        "problem": label,
        "runs": SEQUENTIAL_RUNS,
        RATE: pulls.sum() / seconds.sum(),
        PLAIN: (seconds * chosen[PLAIN]).sum() / seconds.sum(),
        COMPILED: (seconds * chosen[COMPILED]).sum() / seconds.sum(),
        BARE: seconds.sum() / (seconds / chosen[BARE]).sum(),
        EXPONENT: slope if len(setups) == 1 else np.nan,
    }


def speed_of_loops(together: pd.Series) -> pd.DataFrame:
    """The loops' own speed: the compiled one's for the pulls of all points together."""
    loops = [("Plain loop", f"Setup 1, ε = {GRID[0]}", PLAIN), ("Compiled loop", TOGETHER, COMPILED)]
    rows = [(label, problem, together[RATE] / together[column]) for label, problem, column in loops]
    return pd.DataFrame(rows, columns=["algorithm", "problem", RATE])


def rounds() -> Part:
    """Time every round-based algorithm on both setups, against the bare draws of its rewards."""
    rows = [row(label, name) for label in ROUND_BASED for name in SETUPS]
    targets = [
        Target(f"{row['algorithm']}, {row['setup']}: {BARE}", "≤", OVERHEAD, row[BARE])
        for row in rows
        if ROUND_BASED[row["algorithm"]].has_target
    ]
    return Part(pd.DataFrame(rows), targets)


def row(label: str, name: str) -> dict[str, Any]:
    """Time a round-based algorithm, in turn with its bare draws."""
    progress(f"{label}, {name}")
    case, problem = ROUND_BASED[label], problem_of(ROUND_BASED[label].rewards, name)
    found = yardsticks.measured(case.algorithm, problem, ROUND_BASED_RUNS, 5, 101)
    return {
        "algorithm": label,
        "problem": f"{name}, ε = {EPSILON}",
        "setup": name,
        **found,
        COLD: cold_seconds(case.algorithm, problem) / found["bare seconds"] if case.remembers else np.nan,
    }


def cold_seconds(algorithm: Any, problem: Problem) -> float:
    """The time of a first race: of an algorithm with a slightly smaller δ, which has no tests cached."""
    alike = (dataclasses.replace(algorithm, delta=DELTA * (1 - 1e-9 * number)) for number in (1, 2, 3))
    races = (functools.partial(ebr.simulate, one, problem, ROUND_BASED_RUNS) for one in alike)
    return float(np.median([yardsticks.timed(race)[0] for race in races]))


def rivals() -> Part:
    """Time every rival on both setups; there is no target for them."""
    return Part(pd.DataFrame([rival_row(label, name) for label in RIVALS for name in SETUPS]), [])


def rival_row(label: str, name: str) -> dict[str, Any]:
    """Time a rival, in turn with the compiled loop on the Bernoulli problem of the same means."""
    progress(f"{label}, {name}")
    rival, runs = RIVALS[label], RIVAL_RUNS[RIVALS[label].pace]
    problem = problem_of(rival.rewards, name)
    race = functools.partial(rival.race, Setting(problem, DEADLINE, EPSILON, DELTA, runs, 0))
    race()  # the first call compiles
    compiled = functools.partial(yardsticks.compiled_loop, SETUPS[name], EPSILON, DELTA, 1)
    (before, seconds), (loop_pulls, table) = yardsticks.alternate([compiled, race], 2, 25, seconds=1.0)
    pulls = table["pulls"].sum()
    return {
        "algorithm": label,
        "problem": name,
        "runs": runs,
        RATE: pulls / np.median(seconds),
        COMPILED: np.median(before / seconds) * pulls / loop_pulls,
    }
