"""Any value passed to a public name gives finite numbers, or a ValueError that names the argument."""

import math
import re
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from compendium.clinical_trial import exact_selection
from compendium.shared import cost_bounds
from compendium.shared.traces import trace
from hypothesis import given, settings
from hypothesis import strategies as st

import ebr
from ebr.algorithms import baselines
from ebr.algorithms.game import drive
from ebr.theory import confidence, pairs, selection
from ebr.validation import checked, whole

NASTY = [
    *(None, "three", "", b"3", True, np.bool_(True), 1j, object(), int, {}, [], (), [0.3], "0.1", "2"),
    *(math.nan, math.inf, -math.inf, np.float64("nan"), 0, -1, 0.0, -0.0, -0.5, 1, 1.0, 0.5, 1.5, 2, 3, 7),
    *(5e-324, 1e-308, 1e-200, 1e-155, 1e-100, 1e-17, 1 - 1e-16, 1e17, 1e155, 1e300, 1e308),
    *(2**31, 10**8, 10**10, 2**53 + 1, 2**63, 2**64, 10**30, 10**400, 10**5000, -(10**5000)),
    *(np.int8(3), np.uint8(2), np.int64(2), np.float16(0.25), np.float32(0.25), np.float64(0.25)),
    *(Fraction(1, 3), Fraction(10**400, 3), Decimal("0.3"), np.str_("x")),
    *(np.array(0.3), np.array(2), np.array([0.3, 0.2])),
]
MODELS = [*NASTY, "Bernoulli", "bounded", "Gaussian", "sub-Gaussian", "Normal"]
RACE = {"deadline": 2, "epsilon": 0.3, "delta": 0.1}
COINS, NORMAL = ebr.Bernoulli([0.9, 0.1]), ebr.Gaussian([0.9, 0.1, 0.5], 0.5)


def played(algorithm):
    """A function that makes an algorithm and plays it on arms that pay their means, from 0.9 down to 0.1."""

    def play(n_arms=2, replicates=1, rewards_known=None, **parameters):
        made = algorithm(**parameters)
        lots = np.random.default_rng(1)
        game = made.play(n_arms, replicates, rewards=rewards_known, generator=lots)
        return drive(game, lambda pulls: pulls * np.linspace(0.9, 0.1, pulls.shape[1]))

    return play


GAME = {"n_arms": 2, "replicates": 1, "rewards_known": None}
USUAL = {"n_arms": 3, "deadline": 2, "epsilon": 0.1, "delta": 0.1, "sigma": 0.5}


def usual(names, **more):
    """Arguments with their usual values, and further ones."""
    return {name: USUAL[name] for name in names.split()} | more


GAMMA = usual("epsilon deadline", gamma=(1, 2, 2))
CERTIFIED = usual("epsilon delta sigma", looks=(4, 9), boundaries=(2.0,), rewards="Bernoulli", pruning=0.9)
CERTIFIED |= {"floor": 2.5, "shifts": (0.2,), "control": 1, "margin": 0.2}
DESIGNED = usual("delta sigma", n_arms=2, deadline=2, epsilon=0.5, rewards="Bernoulli", runs=20)
DESIGNED |= {"truths": [[0.5, 0.5]], "objective": "mean", "shifts": (), "seed": 0}
COIN = {"rewards": "Bernoulli", "start": 0.5}
STAKED = usual("sigma", rewards=None, start=0.5, rate=0.35, reach=0.3, hope=1.0, spare=3)
SHARP, PAUSING, STAKES = (
    ebr.SharpElasticBatchRacing,
    ebr.PausingElasticBatchRacing,
    ebr.StakedElasticBatchRacing,
)
PLAYED = {
    "elastic": (ebr.ElasticBatchRacing, RACE | usual("sigma", schedule="scaled", lone_survivor="stops", k=1)),
    "sharp": (SHARP, RACE | usual("sigma", rewards=None, start=0.5, split="late", k=1)),
    "Gaussian looks": (SHARP, RACE | usual("sigma", start=0.5, rewards="Gaussian")),
    "pausing": (PAUSING, RACE | usual("sigma", rewards=None, start=0.5, lead=3.0)),
    "pausing coins": (PAUSING, RACE | COIN | {"lead": 3.0}),
    "staked": (STAKES, RACE | STAKED),
    "staked coins": (STAKES, RACE | COIN | {"rate": 0.35}),
    "certified": (partial(ebr.CertifiedElasticBatchRacing, 8), CERTIFIED),
    "Passive": (ebr.Passive, usual("delta sigma", epsilon=0.3)),
    "sequential": (ebr.SequentialRacing, usual("delta sigma", epsilon=0.3, end="certified")),
    "AE": (ebr.AggressiveElimination, RACE | {"rounding": "up"}),
    "kδER": (ebr.DeltaElimination, RACE | {"constants": "published", "k": 1}),
}
# By name: a function and good arguments. Each argument is replaced by every nasty value.
CALLS = {name: (played(algorithm), GAME | arguments) for name, (algorithm, arguments) in PLAYED.items()} | {
    "certified_design": (lambda **rest: ebr.certified_design(**rest).subjects, DESIGNED),
    "plan": (ebr.plan, RACE | usual("n_arms sigma", rewards=None, algorithm="sharp", k=1)),
    "plan of a budget": (ebr.plan, usual("n_arms deadline", budget=500)),
    "simulate": (
        ebr.simulate,
        {"algorithm": ebr.Passive(0.3, 0.1), "problem": COINS, "runs": 2, "seed": 0, "per_arm": True},
    ),
    "trace": (trace, {"algorithm": ebr.ElasticBatchRacing(**RACE), "problem": COINS, "seed": 0}),
    "Bernoulli": (ebr.Bernoulli, {"means": [0.9, 0.1]}),
    "Gaussian": (ebr.Gaussian, usual("sigma", means=[0.9, 0.1])),
    "setup_1": (ebr.setup_1, usual("n_arms")),
    "setup_2": (ebr.setup_2, usual("n_arms")),
    "complexity": (NORMAL.complexity, usual("epsilon", k=2)),
    "partition": (partial(cost_bounds.partition, NORMAL), usual("epsilon", deadline=3, k=2)),
    "hardest_complexity": (cost_bounds.hardest_complexity, GAMMA),
    "deviation": (confidence.deviation, usual("n_arms deadline delta sigma", pulls=5)),
    "sequential_deviation": (confidence.sequential_deviation, usual("n_arms delta sigma", pulls=5)),
    "told_apart": (cost_bounds.told_apart, usual("delta", arms=3)),
    "passive_pulls": (baselines.passive_pulls, usual("n_arms epsilon delta sigma")),
    "hpcm": (cost_bounds.hpcm, usual("delta")),
    "iterated_log": (baselines.iterated_log, {"times": 2, "value": 100.0, "base": 2.0}),
    "partition_lower_bound": (cost_bounds.partition_lower_bound, GAMMA | usual("delta sigma")),
    "schedule": (partial(cost_bounds.schedule, COINS), RACE),
    "partition_upper_bound": (partial(cost_bounds.partition_upper_bound, NORMAL), RACE | {"k": 2}),
    "hardest_upper_bound": (partial(cost_bounds.hardest_upper_bound, COINS), RACE),
    "problem_upper_bound": (partial(cost_bounds.problem_upper_bound, NORMAL), RACE | {"k": 2}),
    "bechhofer_distance": (selection.bechhofer_distance, usual("n_arms delta")),
    "bechhofer_count": (selection.bechhofer_count, usual("n_arms epsilon delta sigma")),
    "binomial_count": (exact_selection.binomial_count, usual("n_arms delta", epsilon=0.3)),
    "sign_count": (pairs.sign_count, {"epsilon": 0.3, "miss": 0.1}),
}
# Arguments that messages name differently, and arguments that are arrays, which are not tested here.
SAID = {"rewards_known": "rewards"}
LEFT_OUT = {("deviation", "pulls"), ("sequential_deviation", "pulls")}
SLOW = {"certified_design", "plan", "plan of a budget", "sequential"}


def numbers(result):
    """All numbers in a result of any type."""
    if isinstance(result, pd.DataFrame | np.ndarray | int | float | np.number):
        return np.asarray(result, dtype=float).ravel()
    if is_dataclass(result):
        result = [getattr(result, field.name) for field in fields(result)]
    parts = result if isinstance(result, tuple | list) else []
    return np.concatenate([np.empty(0), *map(numbers, parts)])


def fault(name, values):
    """A line that says how a call mishandles these values, or None."""
    call, good = CALLS[name]
    shown = f"{name}({', '.join(f'{argument}={printed(value)}' for argument, value in values.items())})"
    try:
        result = call(**good | values)
    except ValueError as error:
        names = "|".join(SAID.get(argument, argument) for argument in values)
        named = re.search(rf"\b({names})\b", str(error))
        return None if named and len(str(error)) < 400 else f"{shown}: ValueError {str(error)[:120]}"
    except Exception as error:
        return f"{shown}: {type(error).__name__} {str(error)[:120]}"
    return None if np.isfinite(numbers(result)).all() else f"{shown}: {result}"


def printed(value):
    return "a huge integer" if isinstance(value, int) and abs(value) > 10**1000 else str(value)[:40]


@pytest.mark.parametrize("name", CALLS)
def test_good_arguments_are_answered_with_numbers(name):
    call, good = CALLS[name]
    found = numbers(call(**good))
    assert len(found)
    assert np.isfinite(found).all()


void = pytest.mark.filterwarnings("ignore:the rewards are not Gaussian", "ignore:the guarantee is void")


def nasty(name, argument):
    """The values that replace an argument."""
    if (name, argument) in LEFT_OUT:
        return []
    return MODELS if argument in ("rewards", "rewards_known") else NASTY


@void
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CALLS]
)
def test_a_nasty_value_is_answered_with_numbers_or_refused_by_the_arguments_name(name):
    faults = [fault(name, {each: value}) for each in CALLS[name][1] for value in nasty(name, each)]
    assert [line for line in faults if line] == []


@st.composite
def calls(draw):
    """A call with some of its arguments replaced, from none to all."""
    name = draw(st.sampled_from([name for name in CALLS if name != "simulate"]))  # its runs may be 10⁸
    choices = {each: st.sampled_from(values) for each in CALLS[name][1] if (values := nasty(name, each))}
    return name, {each: draw(choices[each]) for each in draw(st.sets(st.sampled_from(sorted(choices))))}


@void
@settings(max_examples=500, deadline=None)
@given(calls())
def test_several_nasty_values_together_are_answered_or_refused_too(call):
    assert fault(*call) is None


def test_checked_arguments_are_plain_numbers_however_they_are_passed():
    @checked(size=lambda name, value: whole(name, value, 1, 9))
    def function(array, epsilon, n_arms=5, *, size=1):
        return array, epsilon, n_arms, size

    found = function([0], np.float16(0.25), np.int8(100), size=np.int8(9))
    assert found == ([0], 0.25, 100, 9)
    assert [type(each) for each in found[1:]] == [float, int, int]
    assert function(None, epsilon=0.5) == (None, 0.5, 5, 1)
    for bad, message in (
        ({"epsilon": 1}, r"^epsilon must lie in \(0, 1\), got 1$"),
        ({"epsilon": 0.5, "n_arms": 1}, r"^n_arms must be an integer of at least 2, got 1$"),
        ({"epsilon": 0.5, "size": 10}, r"^size must be an integer of at most 9, got 10$"),
        (
            {"epsilon": 0.5, "n_arms": 10**7},
            r"^n_arms must be an integer of at most 1,000,000, got 10000000$",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            function([0], **bad)


def test_a_long_value_is_not_shown_whole():
    with pytest.raises(ValueError, match=r"^means must be .{1,200}$"):
        ebr.Bernoulli(["x" * 10**5, "y"])
