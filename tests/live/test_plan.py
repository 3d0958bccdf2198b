"""Plans against plain arithmetic and simulated runs; what they print; how they are started."""

import html
import math
import re
import statistics
import warnings
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from oracles import sharp_schedule
from scipy.stats import binom, binomtest, chi2

import ebr
from ebr.algorithms.game import drive
from ebr.models import IN_UNIT, REWARDS
from ebr.simulation import simulate
from ebr.simulation.simulate import Simulation
from ebr.theory.selection import bechhofer_count

EXAMPLE = (3, 6, 0.05)  # the README's
CASES = [EXAMPLE, (2, 1, 0.3), (40, 3, 0.02, 0.2), (12, 5, 0.04, 0.05, 1.5)]
PROBLEMS = ["hard", "spread", "easy", "alike"]
KINDS = {
    "sharp": ebr.SharpElasticBatchRacing,
    "pausing": ebr.PausingElasticBatchRacing,
    "staked": ebr.StakedElasticBatchRacing,
}
SHARP = {"algorithm": "sharp"}
ARMS = ["A", "B", "C"]
YES_NO = {"A": [1, 0, 1, 1, 0], "B": [0, 0, 1, 0], "C": [1, 1, 1]}  # pilots
SPREAD = {"A": [12.0, 15.5, 9.1, 13.3, 11.2], "B": [22.0, 30.5, 17.9, 26.4]}
TWO = {"n_arms": 2}
ROWS = [(arm, x) for arm, values in YES_NO.items() for x in values]
every_model = pytest.mark.parametrize("model", REWARDS)
every_kind = pytest.mark.parametrize("kind", KINDS)
few_experiments = pytest.mark.usefixtures("few_experiments")


@pytest.fixture(autouse=True)
def compared(monkeypatch, request):
    """Plans compare three races. Designing the certified one takes seconds, so only its tests do."""
    if "certified" not in request.node.name:
        monkeypatch.setattr("ebr.live.plan.MOST_DESIGNED", 0)


def problem(name, n_arms, epsilon, sigma, model):
    """A usual truth, by hand."""
    gaps = {"hard": [2 * epsilon] * (n_arms - 1), "easy": [0.5] * (n_arms - 1)}
    gaps |= {"spread": np.linspace(2 * epsilon, 0.5, n_arms - 1), "alike": [0] * (n_arms - 1)}
    means = [0.75, *(0.75 - np.array(gaps[name]))]
    return ebr.Bernoulli(means) if model in IN_UNIT else ebr.Gaussian(means, sigma)


@few_experiments
@pytest.mark.parametrize("model", [None, "Bernoulli", "bounded", "sub-Gaussian"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rounds_are_plain_arithmetic(case, model):
    n_arms, deadline, epsilon, delta, sigma = (*case, *(0.05, 0.5)[len(case) - 3 :])
    unit, same = (2 * sigma, model) if model == "sub-Gaussian" else (1, "bounded")  # the width of the scale
    pulls, _ = sharp_schedule(n_arms, deadline, epsilon / unit, delta, sigma / unit, model=same)
    plan = ebr.plan(*case, rewards=model, **SHARP)
    assert plan.algorithm.pulls_by_round(n_arms, plan.terms.rewards).tolist() == pulls
    assert plan.costs.loc["sharp", "at_most"] == n_arms * pulls[-1]


def test_the_deadlines_go_three_rounds_further_and_each_is_a_plan_of_its_own():
    plan = ebr.plan(4, 2, 0.1, **SHARP)
    assert plan.deadlines.index.tolist() == [1, 2, 3, 4, 5]
    assert plan.deadlines.columns.tolist() == ["worst case", *PROBLEMS]
    for deadline, row in plan.deadlines.iterrows():
        assert row["worst case"] == 4 * sharp_schedule(4, deadline, 0.1, model="bounded")[0][-1]
        races = ebr.plan(4, deadline, 0.1, **SHARP).races
        assert row.tolist()[1:] == races["pulls"].tolist()
        assert plan.errors.loc[deadline].tolist() == [0, *races["error"]]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"n_arms": 2000, "deadline": 1, "epsilon": 4e-8}, "most 2^63 - 1 pulls of n_arms = 2000 together"),
        ({"n_arms": None}, "n_arms must be an integer of at least 2, got None"),
        ({"control": "A"}, "control must be True or False, got 'A'"),
        ({"algorithm": "ae"}, "algorithm must be one of 'sharp', "),
        ({"truths": [0.5, 0.4]}, "truth 0.5 must be a list of at least 2 numbers, got 0.5"),
        ({"truths": []}, "truths must be one or more lists of means, got []"),
        ({"epsilon": None}, "epsilon must be a number above 0, in the rewards' units, or a budget"),
        ({"epsilon": None, "budget": 10**19}, "budget must be an integer of at most 9.22337203685478e+18"),
        ({"epsilon": None, "budget": 20, "delta": 0.001}, "at least 30 for epsilon = 0.999, got 20"),
        ({"epsilon": None, "budget": 90, "k": 2, "algorithm": "staked"}, "k must be 1 for algorithm"),
        ({"epsilon": 0.01, "budget": 3000}, "budget must be at least 42303 for delta = 0.999, got 3000"),
        ({"pilot": {"A": [1, 2]}}, "must be a dict of the rewards of 2 arms or more, got {'A'"),
        (TWO | {"pilot": {"A": (52, 33), "B": (52, 46)}}, "'A' must be a list of single rewards, got (52,"),
        (TWO | {"pilot": {"A": [1, 2], "B": [3]}}, "pilot of 'B' must be a list of at least 2 numbers"),
        ({"pilot": SPREAD}, "n_arms must be left out, or 2 as in the pilot, got 3"),
        (TWO | {"pilot": SPREAD, "support": (0, 20)}, "pilot of 'B' must be numbers in the support, [0, 20]"),
        (TWO | {"pilot": SPREAD, "rewards": "bounded"}, "'A' must be numbers in the support, [0, 1], got 12"),
        (TWO | {"pilot": {"A": [1, 2], "B": [3, math.nan]}}, "'B' must be finite numbers, got nan"),
        (
            TWO | {"pilot": {"A": [2, 2], "B": [3, 3]}},
            "sigma must be given, or a support: each arm's rewards",
        ),
    ],
)
def test_bad_arguments_are_named_with_value_and_range_before_anything_runs(changed, says, monkeypatch):
    monkeypatch.setattr("ebr.live.plan.simulate", None)  # simulating would fail
    with pytest.raises(ValueError, match=re.escape(says)):
        ebr.plan(**{"n_arms": 3, "deadline": 6, "epsilon": 0.05} | changed)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "--rewards Bernoulli --support 0 50 --epsilon 5",
            "support must lie in [0, 1] for Bernoulli rewards",
        ),
        ("--epsilon 40 --sigma 15 --rewards sub-Gaussian", "epsilon must lie in (0, 30), the width of the"),
        ("--epsilon 5 --sigma 15", "support, or twice their sigma (give one), got 5.0"),
        ("--epsilon 5 --rewards Gaussian", "epsilon must lie in (0, 1), the width of the"),
        ("--sigma 9 --rewards bounded --support 0 50", "sigma must be at least 25 for bounded rewards"),
        ("--deadline 0", "deadline must be an integer of at least 1, got 0"),
        ("--k 3", "k must lie in 1 … 2, below the number of arms, got 3"),
        ("--k 2 --algorithm staked", "k must be 1 for algorithm 'staked', got 2"),
        ("--k 2 --control", "k must be 1 where there is a control"),
        ("--blocks --algorithm pausing", "algorithm must permit rewards in blocks"),
        ("--missing --algorithm staked", "algorithm must be 'sharp' if rewards may be missing"),
        ("--margin 0.2", "margin must be left out where there is no control"),
        ("--control --margin 0.01", "margin must lie in [0.1, 1), from epsilon"),
        ("--control --margin 1 --epsilon 2 --support 0 50", "margin must lie in [2, 50), from epsilon"),
        ("--truth 0.5 0.4", "truth [0.5, 0.4] must have 3 means, got 2"),
        ("--truth 0.5 1.2 0", "truth [0.5, 1.2, 0.0] must be numbers in the support, [0, 1], got 1.2"),
        ("--truth 5 4 inf --rewards sub-Gaussian", "truth [5.0, 4.0, inf] must be finite numbers, got inf"),
        ("--budget 0", "budget must be an integer of at least 1, got 0"),
    ],
)
def test_plan_and_start_refuse_the_same_in_the_rewards_units(words, says, run, folder, monkeypatch):
    monkeypatch.setattr("ebr.live.plan.simulate", None)
    rules = ["--arms", "A", "B", "C", "--deadline", "3", "--epsilon", "0.1", *words.split()]
    refused = run("start", "trial.jsonl", *rules)
    assert refused[0] == 2
    assert says in refused[1]
    assert run("plan", *rules) == run("plan", *rules, "--start", "trial.jsonl") == refused
    assert not list(folder.iterdir())


@every_model
@every_kind
def test_pulls_are_means_of_200_experiments_with_their_standard_errors_and_failures(kind, model):
    plan = ebr.plan(4, 3, 0.1, 0.5, 0.5, model, kind)
    assert plan.recommended == kind
    for name in PROBLEMS:
        arms, row = problem(name, 4, 0.1, 0.5, model), plan.races.loc[(kind, name)]
        races = ebr.simulate(plan.algorithm, arms, 200)
        pulls = races.pulls
        assert row["pulls"] == pytest.approx(pulls.mean())
        assert row["error"] == pytest.approx(statistics.stdev(pulls.tolist()) / math.sqrt(200))
        good = [arm for arm in range(4) if arms.means[arm] > max(arms.means) - 0.1 + 1e-9]
        assert row["failures"] == sum(arm not in good for arm in races.arm.tolist())
        assert (pulls <= plan.costs.loc[kind, "at_most"]).all()


# For each race, a plan for which it is the cheapest by far more than chance.
AHEAD = {
    "sharp": {"n_arms": 3, "deadline": 3, "epsilon": 0.1, "truths": [[0.6, 0.5, 0.5], [0.5] * 3]},
    "pausing": {"n_arms": 3, "deadline": 2, "epsilon": 0.1, "rewards": "Bernoulli"},
    "staked": {"n_arms": 8, "deadline": 12, "epsilon": 0.1, "truths": [[0.5] + [0.3] * 7, [0.9] + [0.4] * 7]},
}


def independent(n_arms, deadline, epsilon, rewards="bounded", sigma=0.5, truths=None):
    """Each race's pulls over those of the cheapest, as a mean over the truths, with another seed."""
    usual = [problem(name, n_arms, epsilon, sigma, rewards) for name in PROBLEMS]
    problems = usual if truths is None else [ebr.Bernoulli(means) for means in truths]
    means = {}
    for kind, maker in KINDS.items():
        squares = {"squares": True} if (kind, rewards) == ("staked", "bounded") else {}  # as plan does
        race = maker(deadline, epsilon, 0.05, sigma, rewards, **squares)
        means[kind] = [ebr.simulate(race, each, 400, seed=77).pulls.mean() for each in problems]
    return (pd.DataFrame(means).T / np.min(list(means.values()), axis=0)).mean(axis=1).to_dict()


@pytest.mark.parametrize("best", AHEAD)
def test_the_race_is_recommended_that_an_independent_simulation_finds_cheapest(best):
    plan, costs = ebr.plan(**AHEAD[best]), independent(**AHEAD[best])
    order = sorted(costs, key=costs.get)
    assert order[0] == best
    assert costs[order[1]] > 1.04 * costs[best]  # about five standard errors
    assert plan.recommended == plan.costs.index[0] == best
    assert plan.costs["cost"].is_monotonic_increasing
    for kind, cost in costs.items():
        assert plan.costs.loc[kind, "cost"] == pytest.approx(cost, rel=0.15)
    # Planted error: compared by most pulls, another race than staked would be the cheapest.
    assert best != "staked" or plan.costs["at_most"].idxmin() != best


YES_OR_NO = {"n_arms": 3, "epsilon": 0.2, "rewards": "Bernoulli"}  # about 40 pulls per arm


def test_a_certified_race_is_one_more_designed_for_the_truths_of_the_plan(path):
    plan = ebr.plan(**YES_OR_NO, deadline=3)
    assert set(plan.costs.index) == {*KINDS, "certified"}
    usual = [problem(name, 3, 0.2, 0.5, "Bernoulli").means.tolist() for name in PROBLEMS]
    # The numbers are sums of powers of 2, so that 1 − p is exact and seeds the same simulations.
    for truths, given in ((usual, None), ([[0.9375, 0.0625, 0.0625]], [[0.0625, 0.9375, 0.9375]])):
        asked = {"deadline": 3, "lower_is_better": given is not None, "truths": given}
        race = ebr.plan(**YES_OR_NO, **asked, algorithm="certified").algorithm
        assert race == ebr.certified_design(3, 3, 0.2, 0.05, truths=truths).race
    planned = ebr.plan(**YES_OR_NO, deadline=3, algorithm="certified", control=True, margin=0.4)
    with planned.start(path, ["A", "B", "C"]) as race:
        assert (race.algorithm.shifts, race.terms.control) == ((0.4,), "C")
        race.ask()
    with ebr.Race.open(path) as race:
        assert race.algorithm == planned.algorithm
    assert "Stopped early, certified may guarantee nothing" in str(plan)
    with pytest.raises(ValueError, match="delta must be given for algorithm 'certified'"):
        ebr.plan(**YES_OR_NO, deadline=3, budget=900, algorithm="certified")


def test_certified_races_are_compared_where_they_are_designed_in_seconds(monkeypatch):
    assert "certified" not in ebr.plan(3, 3, 0.2).found  # rewards may be fractions
    assert "certified" not in ebr.plan(3, 3, 0.02, rewards="Bernoulli").found
    assert "certified" not in ebr.plan(101, 3, 0.3, rewards="Bernoulli").found
    assert "certified" in ebr.plan(**YES_OR_NO, deadline=3, missing=True).found
    last = bechhofer_count(3, 0.2, 0.05, 0.5)
    for most, deadline, looks in ((4, 3, 3), (4, 9, 4), (2, 2, 2), (2, 3, None)):
        monkeypatch.setattr("ebr.live.plan.MOST_DESIGNED", most * last)
        found = ebr.plan(**YES_OR_NO, deadline=deadline).found
        assert looks == (len(found["certified"].algorithm.looks) if "certified" in found else None)
    monkeypatch.setattr("ebr.live.plan.MOST_DESIGNED", 3 * last)
    lines = str(ebr.plan(**YES_OR_NO, deadline=5, truths=[[0.5, 0.5, 0.5]])).splitlines()
    assert lines[0].startswith("3 arms, at most 5 rounds")
    assert lines[2] == "recommended: certified, certified elastic batch racing, in 3 rounds at most"


def test_a_certified_race_is_recommended_for_five_arms_and_six_rounds(monkeypatch):
    looks, boundaries = (61, 120, 229, 414, 697, 1017), (3.73, 3.44, 3.18, 2.96, 2.78)  # the design's
    race = ebr.CertifiedElasticBatchRacing(5, looks, boundaries, 0.05, 0.05, pruning=0.93, floor=2.93)
    with monkeypatch.context() as patch:
        made = {6: SimpleNamespace(race=race)}
        patch.setattr(ebr, "certified_design", lambda *_, deadline, **__: made[deadline])
        plan = ebr.plan(5, 6, 0.05, rewards="Bernoulli")
        assert plan.recommended == "certified"
    assert plan.costs.loc["certified", "at_most"] == 5085
    assert (
        plan.races.loc[("certified", "alike"), "pulls"] < 0.8 * plan.races.loc[("pausing", "alike"), "pulls"]
    )


@few_experiments
def test_certified_races_of_few_deadlines_are_designed():
    plan = ebr.plan(2, 5, 0.3, rewards="Bernoulli", algorithm="certified")
    assert plan.deadlines.index.tolist() == [1, 2, 5]
    shorter = ebr.plan(2, 2, 0.3, rewards="Bernoulli", algorithm="certified")
    assert plan.deadlines.loc[2].tolist() == [shorter.costs["at_most"].iloc[0], *shorter.races["pulls"]]
    assert plan.deadlines.loc[5].tolist()[1:] == plan.races["pulls"].tolist()


@few_experiments
def test_races_that_do_not_permit_what_is_asked_are_left_out():
    for asked in ({"k": 2}, {"control": True}, {"blocks": True}, {"missing": True}):
        plan = ebr.plan(4, 3, 0.1, **asked)
        both = "control" in asked or "blocks" in asked
        assert set(plan.costs.index) == ({"sharp", "staked"} if both else {"sharp"})
    assert ebr.plan(20_001, 2, 0.3).costs.index.tolist() == ["sharp"]


def numbers(table):
    """A table's numbers as printed: counts with thousands separators, gaps with three digits."""
    return [f"{x:,.0f}" if x >= 10 else f"{x:.3g}" for x in table.to_numpy().ravel()]


@few_experiments
@pytest.mark.parametrize("case", [*CASES, (1000, 4, 0.001, 1e-9)], ids=str)
def test_a_printed_plan_fits_a_terminal_and_has_every_number_as_has_its_page(case):
    n_arms, deadline, epsilon, delta, *_ = (*case, 0.05)
    wanted = f"{n_arms} arms, at most {deadline} rounds, an arm within {epsilon:g} of the best"
    for options in ({}, SHARP):
        plan = ebr.plan(*case, **options)
        lines, words = str(plan).splitlines(), str(plan).split()
        assert max(map(len, lines)) <= 100
        assert lines[0] == f"{wanted} with probability {1 - delta:.9g}"
        assert f"recommended: {plan.recommended}, {plan.recommended} elastic batch racing" in lines
        assert {f"{cost:.2f}" for cost in plan.costs["cost"]} <= set(words)
        tables = [plan.races[["pulls", "error"]].round(), plan.costs.drop(columns="cost")]
        tables += [plan.races.drop(columns=["pulls", "error", "rounds"])] if options else []
        for table in tables:
            assert set(numbers(table)) <= set(words)
        assert html.unescape(plan._repr_html_()) == f"<pre>{plan}</pre>"
        assert len(repr(plan)) < 250  # repr is without the tables


def test_a_plan_says_what_its_numbers_are():
    said, inside = str(ebr.plan(*EXAMPLE)), "Simulated rewards are 0 or 1. In between fewer pulls may do"
    for words in (
        "Means ± standard errors of 200 simulated experiments on each truth",
        "At most: on any truth, if no reward is missing; proved, not simulated.",
        "Relative cost: pulls over those of the cheapest race, the mean over the truths.",
        "hard: the others are 0.1 worse; easy: 0.5; spread: in between.",
        inside,
    ):
        assert words in said
    assert inside not in str(ebr.plan(2, 1, 0.3, rewards="Bernoulli"))
    assert "hard: the others are 20 worse; easy: 25" in str(ebr.plan(2, 1, 10, support=(20, 70)))
    own = ebr.plan(2, 1, 0.3, truths={"<b>bold</b>": [0.9, 0.1]}, runs=2, **SHARP)
    assert "hard" not in str(own)
    assert own._repr_html_().count("&lt;b&gt;bold&lt;/b&gt;") == 2  # in both tables
    # Truths that print alike are told apart.
    alike = ebr.plan(2, 1, 0.3, truths=[[0.5, 0.4], [0.5, 0.4 + 1e-9]], runs=2, **SHARP)
    assert alike.races.index.unique("truth").tolist() == ["0.5, 0.4", "0.5, 0.400000001"]


def faked(monkeypatch, arm):
    """Simulations are recorded but not run; each recommends this arm."""
    asked = []

    def simulate(algorithm, problem, runs, seed):
        asked.append((algorithm.deadline, problem.n_arms, runs))
        return Simulation(
            problem, np.arange(runs), np.arange(runs), np.full(runs, arm), *np.zeros((2, runs, 0))
        )

    monkeypatch.setattr("ebr.live.plan.simulate", simulate)
    return asked


def test_a_plan_looks_at_every_deadline_near_and_at_few_far_away(monkeypatch):
    asked = faked(monkeypatch, 0)
    for deadline in (1, 6, 20, 21):
        table = ebr.plan(3, deadline, 0.05, **SHARP).deadlines
        assert table.index.tolist() == list(range(1, deadline + 4))
    asked.clear()
    index = ebr.plan(3, 1000, 0.05, **SHARP).deadlines.index.tolist()
    assert [index[:20], index[-4:]] == [list(range(1, 21)), list(range(1000, 1004))]
    assert max(b / a for a, b in pairwise(index[19:])) < 1.5
    assert [t for t, _, _ in asked] == [t for t in index for _ in PROBLEMS]
    assert len(index) < 40


def test_on_many_arms_fewer_experiments_are_simulated_and_the_plan_says_how_many(monkeypatch):
    asked = faked(monkeypatch, 0)
    for n_arms, deadline, runs in ((100, 15, 100), (375, 2, 200), (3000, 5, 10), (10**6, 2, 2)):
        asked.clear()
        assert f"of {runs} simulated experiments" in str(ebr.plan(n_arms, deadline, 0.05))
        assert {each[1:] for each in asked} == {(n_arms, runs)}


def test_a_control_fails_only_where_an_arm_is_better_by_the_margin(monkeypatch):
    faked(monkeypatch, 2)
    truths = {"tie": [0.5, 0.5, 0.5], "near": [0.7, 0.1, 0.5], "far": [0.8, 0.1, 0.5]}
    plan = ebr.plan(3, 2, 0.1, control=True, margin=0.3, truths=truths, runs=3, **SHARP)
    assert plan.races["failures"].tolist() == [0, 0, 3]  # worse by 0, by 0.2 (more than ε), and by 0.3


def test_a_plan_in_units_is_the_plan_between_0_and_1():
    unit = ebr.plan(3, 3, 0.1, control=True, margin=0.2, truths={"mine": [0.5, 0.4, 0.1]})
    for lower, truth in ((False, [35, 30, 15]), (True, [35, 40, 55])):
        asked = {"support": (10, 60), "control": True, "margin": 10, "lower_is_better": lower}
        grams = ebr.plan(3, 3, 5, **asked, truths={"mine": truth})
        assert grams.algorithm == ebr.SharpElasticBatchRacing(3, 0.1, 0.05, control=2, margin=0.2)
        assert grams.races["pulls"].tolist() == pytest.approx(unit.races["pulls"].tolist(), rel=0.1)
        assert "an arm within 5 of the best" in str(grams)
        assert "no arm can be better than the control by 10" in str(grams)
        assert ("rewards are between 10 and 60, the smaller the better" in str(grams)) == lower
    free, bound = (ebr.plan(3, 3, budget=600, **SHARP, **more) for more in ({}, asked | {"margin": 20}))
    assert f"buy epsilon = {50 * bound.algorithm.epsilon:g}:" in str(bound)
    assert bound.algorithm.epsilon == free.algorithm.epsilon < 0.4 == bound.algorithm.margin


def test_a_spread_is_all_that_need_be_known_and_units_do_not_matter():
    truths = np.array([[140.0, 130.0, 100.0], [120.0, 120.0, 119.0]])
    mmhg = ebr.plan(3, 6, 5, sigma=15, support=None, truths=truths)
    other = ebr.plan(3, 6, 0.005, sigma=0.015, rewards="sub-Gaussian", truths=(truths / 1000).tolist())
    assert "rewards are sub-Gaussian with sigma = 15" in str(mmhg)
    assert mmhg.races.index.unique("truth").tolist() == ["140, 130, 100", "120, 120, 119"]
    assert mmhg.algorithm.epsilon == pytest.approx(other.algorithm.epsilon)
    kinds = list(KINDS)
    assert mmhg.costs.loc[kinds, "at_most"].tolist() == other.costs.loc[kinds, "at_most"].tolist()
    pulls = [plan.races.loc[kinds, "pulls"].tolist() for plan in (mmhg, other)]
    assert pulls[0] == pytest.approx(pulls[1], rel=0.2)
    # Only gaps matter, and gaps above 2σ are cut.
    raced = mmhg.algorithm.assuming("sub-Gaussian")
    inside = ebr.simulate(raced, ebr.Gaussian([1.0, 2 / 3, 0.0], 0.5), 200)
    assert mmhg.races["pulls"].iloc[0] == pytest.approx(inside.pulls.mean(), rel=0.2)


@few_experiments
@pytest.mark.parametrize("best", AHEAD)
def test_what_was_planned_is_started_in_one_line(best, path):
    plan, arms = ebr.plan(**AHEAD[best], algorithm=best), [f"arm {i}" for i in range(AHEAD[best]["n_arms"])]
    with plan.start(path, arms=arms) as race:
        assert race.algorithm == plan.algorithm
        first = race.algorithm.play(len(arms), rewards=plan.terms.rewards)
        assert list(race.ask().values()) == next(first)[0].tolist()
    with plan.start(path, arms=arms) as again:
        assert again.asked
    with pytest.raises(ValueError, match=f"arms must be the {len(arms)} that were planned for, got 2"):
        plan.start(path, arms=["A", "B"])


@few_experiments
def test_a_race_of_blood_pressures_is_planned_and_run_in_mmhg(path):
    plan = ebr.plan(3, 6, 5, sigma=15, rewards="Gaussian", lower_is_better=True, **SHARP)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        race = plan.start(path, arms=["A", "B", "C"])
    with race:
        first = race.ask()
        assert first == dict.fromkeys("ABC", plan.algorithm.pulls_by_round(3, "Gaussian")[0])
        race.tell({arm: [150 - 40 * (arm == "B")] * count for arm, count in first.items()})
        assert (race.recommendation, race.within) == ("B", pytest.approx(5))
        assert "is normal with σ = 15" in str(race.report())
        assert "within 5 of the best" in str(race.report())


def test_a_plan_is_started_from_a_terminal(run, folder):
    rules = ["--deadline", 6, "--epsilon", 5, "--sigma", 15, "--rewards", "Gaussian", "--lower-is-better"]
    named = ["plan", "--arms", *ARMS]
    status, said = run(*named, *rules, "--truth", "140", "130", "120", "--start", "trial.jsonl")
    plan = ebr.plan(3, 6, 5, sigma=15, rewards="Gaussian", lower_is_better=True, truths=[[140, 130, 120]])
    assert status == 0
    assert said.startswith(f"{plan}\n\nRound 1 of at most 6\n")
    assert said.endswith("Next: python -m ebr ask trial.jsonl\n")
    with ebr.Race.open("trial.jsonl") as race:
        assert race.algorithm == plan.algorithm
        assert race.terms.scale == plan.terms.scale
    assert run("plan", "--arms", "3", *rules, "--start", "b.jsonl")[0] == 2
    assert run(*named, "--control", "--deadline", 3, "--epsilon", 0.1, "--start", "c")[0] == 0
    with ebr.Race.open("c") as race:
        assert race.terms.control == "C"


TRUTH = [0.2, 0.55, 0.6]
RACES = [
    ebr.ElasticBatchRacing(4, 0.3, 0.1),
    ebr.SharpElasticBatchRacing(6, 0.12, 0.05),
    ebr.SharpElasticBatchRacing(4, 0.2, 0.1, k=2),
    ebr.PausingElasticBatchRacing(5, 0.12, 0.05),
    ebr.AggressiveElimination(4, 0.3, 0.1),
    ebr.Passive(0.2, 0.1),
    ebr.SequentialRacing(0.5, 0.3),
]


@pytest.mark.usefixtures("unflushed")
@pytest.mark.parametrize("arms", [ebr.Bernoulli(TRUTH), ebr.Gaussian(TRUTH, 0.5)], ids=["coins", "normal"])
@pytest.mark.parametrize("algorithm", RACES, ids=repr)
def test_a_race_asks_what_a_simulation_asks(algorithm, arms, path):
    rounds = []
    (block,) = simulate.blocks(algorithm, arms, runs=1, seed=1)
    best = simulate.race(algorithm, arms, *block, lambda pulls, sums: rounds.append((pulls[0], sums[0])))
    support = (0, 1) if arms.rewards in IN_UNIT else None
    with ebr.Race(algorithm, ARMS, path, support, arms.rewards) as race:
        for pulls, sums in rounds:
            assert [race.ask().get(arm, 0) for arm in ARMS] == pulls.tolist()
            told = zip(ARMS, pulls.tolist(), sums.tolist(), strict=True)
            race.tell({arm: (count, total) for arm, count, total in told if count})
    with ebr.Race.open(path, readonly=True) as race:
        assert race.finished
        assert race.algorithm == algorithm
        assert race.intervals["pulls"].tolist() == sum(pulls for pulls, _ in rounds).tolist()
        assert race.history["sum"].sum() == pytest.approx(sum(sums.sum() for _, sums in rounds))
        if arms.rewards == "Gaussian":  # no ties, so no lot decides
            assert race.survivors == [ARMS[arm] for arm in sorted(np.atleast_1d(best[0]))]


def test_a_terminal_prints_and_draws_the_same(run, tmp_path):
    drawn, words = tmp_path / "plan.svg", ["plan", "--arms", 3, "--deadline", 6]
    for asked in ({"budget": 3000, "delta": 0.2}, {"budget": 9000, "epsilon": 0.05, "runs": 5}):
        options = [word for name, value in asked.items() for word in (f"--{name}", value)]
        assert run(*words, *options) == (0, f"{ebr.plan(3, 6, **asked)}\n")
    assert run(*words, "--epsilon", 0.05, "--picture", drawn) == (0, f"{ebr.plan(*EXAMPLE)}\n")
    for label in ("worst case", "spread", "planned", "rounds until the deadline", "pulls of all arms"):
        assert label in drawn.read_text()  # outlined text is also in a comment


def played(algorithm, n_arms, model):
    """The pulls of each arm in a race where all arms always tie."""
    total = np.zeros(n_arms, dtype=int)

    def pay(pulls):
        total[:] += pulls[0]
        return np.floor(pulls * 0.5)

    drive(algorithm.play(n_arms, rewards=model), pay)
    return total


@few_experiments
@every_model
@every_kind
@pytest.mark.parametrize("rest", [{"delta": 0.1}, {"epsilon": 0.1}], ids=str)
@pytest.mark.parametrize(("deadline", "budget"), [(1, 500), (4, 2000)])
def test_what_is_bought_fits_and_the_next_smaller_one_does_not(kind, model, rest, deadline, budget):
    n_arms, sought = 4, "epsilon" if "delta" in rest else "delta"
    plan = ebr.plan(n_arms, deadline, **rest, rewards=model, algorithm=kind, budget=budget)
    value, (held,) = getattr(plan.algorithm, sought), rest
    assert (plan.budget, plan.bought, getattr(plan.algorithm, held)) == (budget, sought, rest[held])
    assert float(f"{value:.2e}") == value
    smaller = replace(plan.algorithm, **{sought: value - 10.0 ** (math.floor(math.log10(value)) - 2)})
    if kind == "staked":
        counts = [race.last_count(n_arms, model) for race in (plan.algorithm, smaller)]
        most = [math.floor((n_arms + 2 * (deadline > 1)) * count) for count in counts]
        assert most[0] <= budget < most[1]
        return
    last = played(plan.algorithm, n_arms, model)
    assert last.sum() <= n_arms * last.max() <= budget
    assert n_arms * played(smaller, n_arms, model).max() > budget


@few_experiments
def test_it_is_the_ordinary_plan_of_what_is_bought():
    plan = ebr.plan(5, 3, budget=4000, k=2)
    epsilon = plan.algorithm.epsilon
    same = ebr.plan(5, 3, epsilon, k=2)
    assert plan.algorithm == same.algorithm == ebr.SharpElasticBatchRacing(3, epsilon, 0.05, k=2)
    for table in ("races", "deadlines"):
        assert getattr(plan, table).equals(getattr(same, table))
    wanted, bought, *_ = str(plan).splitlines()
    assert wanted.endswith(f"2 arms within {epsilon:g} of the k-th best with probability 0.95")
    assert bought == f"4,000 pulls buy epsilon = {epsilon}: at most {same.costs['at_most'].iloc[0]:,}"


@few_experiments
@pytest.mark.parametrize("given", [{"budget": 6000}, {"budget": 6000, "epsilon": 0.05}], ids=str)
def test_the_race_that_buys_most_is_recommended(given):
    plan = ebr.plan(3, 6, **given)
    alone = {kind: ebr.plan(3, 6, **given, algorithm=kind) for kind in KINDS}
    values = {kind: getattr(each.algorithm, plan.bought) for kind, each in alone.items()}
    assert plan.costs[plan.bought].to_dict() == values
    assert values[plan.recommended] == min(values.values())
    assert (plan.costs["at_most"] <= 6000).all()


@few_experiments
def test_with_both_given_it_says_whether_the_budget_is_enough_and_prefers_races_that_keep_to_it():
    plan = ebr.plan(3, 6, 0.05, 0.05, budget=6000)
    assert plan.costs.index[0] == "sharp"
    assert plan.costs["at_most"].iloc[1:].min() > 6000
    most = 3 * sharp_schedule(3, 6, 0.05)[0][-1]
    for budget, says in ((most, "are enough"), (most - 1, "may not be enough")):
        plan = ebr.plan(3, 6, 0.05, 0.05, budget=budget, **SHARP)
        assert plan.bought is None
        assert str(plan).splitlines()[1] == f"{budget:,} pulls {says}: at most {most:,}"


@few_experiments
def test_a_race_whose_most_pulls_are_unknown_is_over_any_budget(monkeypatch):
    monkeypatch.setattr(ebr.StakedElasticBatchRacing, "most_pulls", lambda *_: None)
    asked = AHEAD["staked"] | {"delta": 0.05}  # without a budget it is recommended
    plan = ebr.plan(**asked)
    assert plan.recommended == "staked"
    (row,) = (line for line in str(plan).splitlines() if line.lstrip().startswith("at most"))
    assert row.split()[2] == "unknown"
    assert "worst case" not in plan.deadlines
    budgeted = ebr.plan(**asked, budget=10**6)
    assert budgeted.costs.index[-1] == "staked"
    alone = ebr.plan(**asked, budget=10**6, algorithm="staked")
    assert str(alone).splitlines()[1] == "1,000,000 pulls may not be enough: at most unknown"
    with pytest.raises(
        ValueError, match="budget must be left out for 'staked', whose most pulls are unknown"
    ):
        ebr.plan(8, 12, budget=10**6, algorithm="staked")
    assert set(ebr.plan(8, 12, budget=10**6).found) == {"sharp", "pausing"}


@few_experiments
def test_a_race_with_a_guessed_sigma_is_planned_started_and_learns_sigma(folder, run):
    guess = {"rewards": "Gaussian", "sigma": 15.0}
    plan = ebr.plan(3, 6, 5.0, sigma_known=False, **guess)
    assert (list(plan.found), plan.terms.squares, plan.costs["at_most"].tolist()) == (
        ["staked"],
        True,
        [math.inf],
    )
    assert "Gaussian with an unknown sigma; the guess is sigma = 15" in str(plan)
    assert plan.deadlines.index[0] == 2  # one round teaches nothing of σ
    words = [*("--arms", *ARMS, "--deadline", 6, "--epsilon", 5, "--rewards", "Gaussian")]
    assert run("plan", *words, "--sigma", 15, "--sigma-unknown", "--start", "a.jsonl")[0] == 0
    with ebr.Race.open("a.jsonl") as race:  # against the game itself, with random rewards
        assert race.algorithm == plan.algorithm
        game = race.algorithm.play_lossy(
            3, rewards="Gaussian", generator=np.random.default_rng(race.terms.seed)
        )
        standing, drawn = next(game), np.random.default_rng(1)
        while not race.finished:
            asked = race.ask()
            assert [asked.get(arm, 0) for arm in ARMS] == standing.pulls[0].tolist()
            told = {arm: drawn.normal(120 + 8 * ARMS.index(arm), 45, pulls) for arm, pulls in asked.items()}
            race.tell(told)
            rows = [np.asarray(told.get(arm, [])) / 30 for arm in ARMS]  # the scale has width 2σ
            counts, sums, squares = np.array([[len(x), x.sum(), (x**2).sum()] for x in rows]).T[:, None]
            try:
                standing = game.send((counts.astype(int), np.array([sums, squares])))
            except StopIteration as end:
                best = end.value.arms[0]
        assert (race.round > 1, race.recommendation) == (True, ARMS[best])
    assert "a guess, on which no guarantee rests" in str(
        ebr.plan(deadline=3, epsilon=5, rewards="Gaussian", pilot=SPREAD, sigma_known=False)
    ).replace("\n", " ")
    for asked, says in (
        ({"rewards": "Bernoulli"}, "sigma_known must be True unless rewards are 'Gaussian' and sigma"),
        ({"rewards": "Gaussian"}, "sigma_known must be True unless"),
        (guess | {"algorithm": "sharp"}, "algorithm must be 'staked' if sigma is a guess"),
        (guess | {"deadline": 1}, "deadline must be at least 2 where sigma is only a guess"),
    ):
        with pytest.raises(ValueError, match=says):
            ebr.plan(**{"n_arms": 3, "deadline": 6, "epsilon": 0.2, "sigma_known": False} | asked)


@few_experiments
@every_kind
def test_a_large_budget_buys_no_failure_less_likely_than_a_billionth(kind):
    plan = ebr.plan(3, 6, 0.3, budget=10**12, algorithm=kind)
    assert plan.algorithm.delta == 1e-9
    assert str(plan).splitlines()[0].endswith("within 0.3 of the best with probability 0.999999999")
    assert ebr.plan(3, 6, budget=2**62, algorithm=kind).algorithm.epsilon < 1e-7


def test_with_one_round_and_two_arms_failures_are_as_many_as_enumeration_says():
    """Each assertion fails by chance with probability 1e-7."""
    runs, means = 40_000, (0.4, 0.6)
    row = ebr.plan(2, 1, 0.2, 0.3, truths={"apart": means}, runs=runs, **SHARP).races.iloc[0]
    b = math.floor(math.log(1 / 0.3) / 0.2**2) + 1
    worse, better = (binom.pmf(np.arange(b + 1), b, p) for p in means)
    joint = np.outer(worse, better)
    wrong = 1 - np.triu(joint, 1).sum()  # the first arm, here the worse one, wins ties
    failures = int(row["failures"])
    assert binomtest(failures, runs, wrong).pvalue > 1e-7
    assert binomtest(failures, runs, 1 - np.triu(joint).sum()).pvalue < 1e-7  # planted: ties count as right
    assert (row["pulls"], row["error"], row["pulls_90"], row["rounds"]) == (2 * b, 0, 2 * b, 1)
    assert binom.sf(failures - 1, runs, row["failing_lower"]) == pytest.approx(0.005, rel=1e-6)
    assert binom.cdf(failures, runs, row["failing_upper"]) == pytest.approx(0.005, rel=1e-6)


def test_one_race_is_shown_truth_by_truth_and_simulated_only_when_it_is_looked_at(monkeypatch, path):
    with monkeypatch.context() as patch:
        patch.setattr("ebr.live.plan.simulate", None)  # simulating would fail
        plan = ebr.plan(3, 4, 0.1, algorithm="staked", truths=[[0.7, 0.5, 0.4], [0.9, 0.1, 0.1]], runs=157)
        plan.start(path).close()
    races = ebr.simulate(plan.algorithm.assuming("bounded"), ebr.Bernoulli([0.7, 0.5, 0.4]), 157)
    row, pulls = plan.races.iloc[0], sorted(races.pulls.tolist())
    assert row["pulls_90"] == pulls[141] > pulls[125]  # 90 % of 157 races, 142, do not exceed it
    assert row["rounds"] == pytest.approx(sum(races.rounds.tolist()) / 157)
    said = str(plan).split("Truth by truth")[1].splitlines()[2].split()
    assert said[-5:] == [f"{x:,.0f}" if x > 10 else f"{x:.3g}" for x in row.iloc[2:]]


@few_experiments
def test_a_pilot_of_zeros_and_ones_says_so_and_its_means_are_a_truth():
    plan = ebr.plan(deadline=3, epsilon=0.2, pilot=YES_NO)
    assert plan.terms.rewards == "Bernoulli"
    assert plan.terms.arms == ("A", "B", "C")
    assert plan.races.index.unique("truth").tolist() == [*PROBLEMS, "pilot"]
    assert plan.asked.expected(0.2)["pilot"].tolist() == [0.6, 0.25, 1.0]
    assert "that they are 0 or 1 is taken from the pilot" in str(plan)
    # With a wider support, rewards may be other numbers, too.
    plan = ebr.plan(deadline=3, epsilon=5, pilot=YES_NO, support=(0, 50))
    assert (plan.terms.rewards, plan.terms.support) == ("bounded", (0, 50))


@few_experiments
def test_a_spread_estimated_from_a_pilot_is_said_to_be_an_assumption():
    plan = ebr.plan(deadline=3, epsilon=5, pilot=SPREAD)
    largest = statistics.stdev(SPREAD["B"]) * math.sqrt(3 / chi2.ppf(0.05, 3))  # A's limit is smaller
    assert plan.algorithm.sigma * plan.terms.scale.width == pytest.approx(largest, rel=0.01)
    for unit in range(1, 20):  # an upper limit must be rounded up
        found = ebr.plan(deadline=3, epsilon=5, pilot={arm: np.array(x) * unit for arm, x in SPREAD.items()})
        assert found.algorithm.sigma * found.terms.scale.width >= largest * unit * (1 - 1e-8)
    assert plan.terms.rewards == "sub-Gaussian"
    said = " ".join(str(plan).split())
    assert "is estimated from the pilot: 95% upper limit for B, if normal. It is an assumption" in said
    assert max(map(len, str(plan).splitlines())) <= 100
    for known in ({"support": (0, 50)}, {"sigma": 4}):  # nothing is estimated
        assert "estimated" not in str(ebr.plan(deadline=3, epsilon=5, pilot=SPREAD, **known))


def test_a_terminal_plans_and_starts_from_a_pilot_and_says_what_is_recommended(folder, run):
    (folder / "pilot.csv").write_text("\n".join(["arm,reward", *(f"{arm},{x}" for arm, x in ROWS)]))
    words = ["--pilot", "pilot.csv", "--deadline", 2, "--epsilon", 0.3]
    plan = ebr.plan(deadline=2, epsilon=0.3, pilot=YES_NO)
    status, said = run("plan", *words, "--start", "a.jsonl")
    assert (status, f"{plan}\n" in said) == (0, True)
    for _ in range(2):  # the second time the race exists already
        assert run("start", "b.jsonl", *words) == (0, said.replace("a.jsonl", "b.jsonl"))
    for name in ("a.jsonl", "b.jsonl"):
        race = ebr.Race.open(name, readonly=True)
        assert (race.arms, race.algorithm) == (("A", "B", "C"), plan.algorithm)
