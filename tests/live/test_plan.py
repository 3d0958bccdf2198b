"""Plans against plain arithmetic, an adversary and simulated runs; and whether people can read them."""

import math
import re
import statistics
import warnings
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import Bare, sharp_schedule
from scipy.stats import binom, binomtest, chi2

import ebr
from ebr.algorithms.game import drive
from ebr.live.plan import Truth, row_of
from ebr.models import IN_UNIT, REWARDS
from ebr.simulation import simulate

EXAMPLE = (3, 6, 0.05)  # the README's
CASES = [EXAMPLE, (2, 1, 0.3), (40, 3, 0.02, 0.2), (12, 5, 0.04, 0.05, 1.5)]
PROBLEMS = ["hard", "spread", "easy", "alike"]
every_model = pytest.mark.parametrize("model", REWARDS)
ALIKE = {"Bernoulli": "bounded"}  # of which sharp EBR makes no more
KINDS = {
    "sharp": ebr.SharpElasticBatchRacing,
    "pausing": ebr.PausingElasticBatchRacing,
    "staked": ebr.StakedElasticBatchRacing,
}
# What a plan adds: staked EBR takes in sums of squares, of rewards in [0, 1].
ADDED = {("staked", "bounded"): {"squares": True}}
SHARP = {"algorithm": "sharp"}
ARMS = ["A", "B", "C"]
SOUGHT = {"epsilon": None}  # by what a budget buys


def schedule(case, model):
    """A survivor's pulls and the widths, by an oracle."""
    n_arms, deadline, epsilon, delta, sigma = (*case, *(0.05, 0.5)[len(case) - 3 :])
    unit = 1 if model in IN_UNIT else 2 * sigma  # what is 1 to the algorithm
    rules = n_arms, deadline, epsilon / unit, delta, sigma / unit
    pulls, widths = sharp_schedule(*rules, model=ALIKE.get(model, model))
    return pulls, [unit * width for width in widths]


@pytest.fixture(autouse=True)
def compared(monkeypatch, request):
    """Three races, which are made in no time; tests of the certified one, which takes seconds, say so."""
    if "certified" not in request.node.name:
        monkeypatch.setattr("ebr.live.plan.COMPARED", tuple(KINDS))


@pytest.fixture(scope="module")
def example():
    return ebr.plan(*EXAMPLE)


@pytest.mark.usefixtures("few_experiments")
@every_model
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rounds_are_plain_arithmetic(case, model):
    n_arms, deadline, *_ = case
    pulls, widths = schedule(case, model)
    plan = ebr.plan(*case, rewards=model, **SHARP)
    assert plan.rounds.index.tolist() == list(range(1, deadline + 1))
    assert plan.rounds["pulls"].tolist() == np.diff(pulls, prepend=0).tolist()
    assert plan.rounds["so_far"].tolist() == pulls
    assert plan.rounds["worst_case"].tolist() == [n_arms * b for b in pulls]
    assert plan.rounds["gone"].tolist() == pytest.approx([2 * width for width in widths], rel=1e-9)
    assert plan.costs.loc["sharp", "at_most"] == n_arms * pulls[-1]


def problem(name, n_arms, epsilon, sigma, model):
    gaps = {"hard": [2 * epsilon] * (n_arms - 1), "easy": [0.5] * (n_arms - 1)}
    gaps |= {"spread": np.linspace(2 * epsilon, 0.5, n_arms - 1), "alike": [0] * (n_arms - 1)}
    means = [0.75, *(0.75 - np.array(gaps[name]))]
    return ebr.Bernoulli(means) if model in IN_UNIT else ebr.Gaussian(means, sigma)


@every_model
def test_simulated_runs_stay_below_at_most(model):
    n_arms, deadline, epsilon, delta, sigma = 5, 4, 0.1, 0.2, 0.5
    plan = ebr.plan(n_arms, deadline, epsilon, delta, sigma, model)
    assert set(plan.races.index) == {(kind, name) for kind in KINDS for name in PROBLEMS}
    for (kind, name), row in plan.races.iterrows():
        arms = problem(name, n_arms, epsilon, sigma, model)
        pulls = ebr.simulate(KINDS[kind](deadline, epsilon, delta, sigma, model), arms, 500, seed=5).pulls
        assert row["pulls"] / 2 < pulls.max() <= row["at_most"] == plan.costs.loc[kind, "at_most"]


def test_the_deadlines_go_three_rounds_further_and_each_is_a_plan_of_its_own():
    longer = ebr.plan(4, 2, 0.1, **SHARP).deadlines
    assert longer.index.tolist() == [1, 2, 3, 4, 5]
    assert longer.columns.tolist() == ["worst case", *PROBLEMS]
    for deadline, row in longer.iterrows():
        assert row["worst case"] == 4 * sharp_schedule(4, deadline, 0.1, model="bounded")[0][-1]
        assert ebr.plan(4, deadline, 0.1, **SHARP).races["pulls"].tolist() == row.tolist()[1:]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"epsilon": 1e-9}, "epsilon (or delta) must be large enough for at most 2^53 pulls"),
        ({"sigma": 0.1, "rewards": "bounded"}, "sigma must be at least 0.5 for bounded rewards, got 0.1"),
        ({"sigma": 9, "rewards": "bounded", "support": (0, 50)}, "sigma must be at least 25 for bounded rew"),
        ({"sigma": "x"}, "sigma must be a finite number above 0, got 'x'"),
        ({"rewards": "Bernoulli", "support": (0, 50)}, "support must be (0, 1) for Bernoulli rewards"),
        ({"rewards": "Bernoulli", "support": None}, "support must lie in [0, 1] for Bernoulli rewards"),
        ({"epsilon": 40, "sigma": 15, "support": None}, "epsilon must lie in (0, 30), twice sigma, got 40"),
        ({"lower_is_better": 1}, "lower_is_better must be True or False, got 1"),
        ({"truths": [[0.5, 0.4]]}, "truth '0.5, 0.4' must have a mean for each of 3 arms, got 2"),
        ({"truths": {"odd": [0.5, 1.2, 0]}}, "truth 'odd': means must lie in [0, 1], got 1.2 for arm 1"),
        (
            {"truths": {"lone": [0.5]}},
            "truth 'lone': means must be a list of at least 2 numbers, got shape (1,",
        ),
        ({"truths": [0.5, 0.4]}, "truth '0.5': means must be a list of at least 2 numbers, got shape ()"),
        ({"truths": []}, "truths must be one or more lists of means, got none"),
        ({"truths": [[5, 4, 60]], "epsilon": 1, "support": (0, 50)}, "must lie in [0, 50], got 60"),
        ({"blocks": True, "algorithm": "staked"}, "algorithm must permit rewards in blocks"),
        ({"missing": True, "algorithm": "pausing"}, "algorithm must permit missing rewards"),
        ({"algorithm": "ae"}, "algorithm must be one of 'sharp', 'pausing', 'staked', 'ebr', got 'ae'"),
        ({"k": 3}, "k must lie in 1 … 2, below the number of arms, got 3"),
        ({"k": 2, "algorithm": "pausing"}, "k must be 1 for algorithm 'pausing', got 2"),
        ({"epsilon": 60, "support": (0, 50)}, "epsilon must lie in (0, 50), the support, got 60"),
        ({"support": (1, 0)}, "support must be a pair"),
        ({"margin": 0.2}, "margin must be left out where there is no control"),
        ({"control": True, "margin": 0.01}, "margin must lie in [0.05, 1), from epsilon"),
        (
            {"control": True, "margin": 1, "epsilon": 2, "support": (0, 50)},
            "margin must lie in [2, 50), from epsilon to all of the support, got 1",
        ),
        ({"control": True, "algorithm": "pausing"}, "algorithm must permit a control"),
        ({"control": True, "k": 2}, "k must be 1 where there is a control"),
        (SOUGHT, "epsilon must be a number above 0, in the rewards' units, or a budget be given, got None"),
        (
            {"epsilon": 5, "sigma": 15},
            "epsilon must lie in (0, 1), the support, got 5: give the support, or rewards='Gaussian' and",
        ),
        ({"epsilon": 5, "rewards": "Gaussian"}, "(0, 1), twice sigma, got 5: give sigma"),
        ({"control": "A"}, "control must be True or False, got 'A'"),
        ({"blocks": "x"}, "blocks must be True or False, got 'x'"),
        ({"missing": "at random"}, "missing must be True or False, got 'at random'"),
        ({"truths": 5}, "truths must be one or more lists of means, got 5"),
        (SOUGHT | {"budget": 0}, "budget must be an integer of at least 1, got 0"),
        (SOUGHT | {"budget": 10**13}, "budget must be at most 1000000000000, got 10000000000000"),
        (SOUGHT | {"budget": 2, "deadline": 1}, "budget must be at least 3 for one round on 3 arms, got 2"),
        (SOUGHT | {"budget": 17}, "budget must be at least 18 for 6 rounds on 3 arms, got 17"),
        ({"budget": 17, "delta": 0.1}, "budget must be at least 18 for 6 rounds"),
        (SOUGHT | {"budget": 20, "delta": 0.001}, "budget must be at least 30 for epsilon = 0.999, got 20"),
        ({"budget": 3000, "epsilon": 0.01}, "budget must be at least 42303 for delta = 0.999, got 3000"),
    ],
)
def test_bad_arguments_are_named_with_value_and_range_before_anything_runs(changed, says, monkeypatch):
    monkeypatch.setattr("ebr.live.plan.simulate", None)  # whoever runs it fails otherwise
    with pytest.raises(ValueError, match=re.escape(says)):
        ebr.plan(**{"n_arms": 3, "deadline": 6, "epsilon": 0.05} | changed)


def played(algorithm, n_arms, model):
    """How often arms have been pulled after each round where all are alike to the last bit, and so stay."""
    after = [np.zeros(n_arms, dtype=int)]

    def pay(pulls):
        after.append(after[-1] + pulls[0])
        return np.floor(pulls * 0.5)

    drive(algorithm.play(n_arms, rewards=model), pay)
    return after[1:]


@pytest.mark.usefixtures("few_experiments")
@every_model
@pytest.mark.parametrize("case", [(3, 6, 0.05), (5, 4, 0.2), (4, 1, 0.3), (2, 2, 0.1), (3, 30, 0.2)], ids=str)
def test_no_arm_of_a_pausing_race_is_pulled_more_often_than_its_plan_says_and_the_leader_as_often(
    case, model
):
    n_arms, deadline, *_ = case
    plan = ebr.plan(*case, rewards=model, algorithm="pausing")
    assert isinstance(plan.algorithm, ebr.PausingElasticBatchRacing)
    assert list(plan.rounds) == ["pulls", "so_far", "worst_case"]  # no gap is proved to be gone
    so_far = plan.rounds["so_far"]
    assert plan.rounds["pulls"].tolist() == np.diff(so_far, prepend=0).tolist()
    assert plan.rounds["worst_case"].tolist() == (n_arms * so_far).tolist()
    assert (plan.races["at_most"] == n_arms * so_far.iloc[-1]).all()
    after = played(plan.algorithm, n_arms, model)
    assert [counts.max() for counts in after] == so_far[: len(after)].tolist()
    assert len(after) >= min(deadline, 2)
    for seed in range(30):
        arms = problem("hard", n_arms, case[2] / 2, 0.5, model)
        most = ebr.trace(plan.algorithm, arms, seed).groupby("round")["pulls"].max().cummax()
        assert (most == so_far[most.index]).all()


@every_model
@pytest.mark.parametrize("kind", KINDS)
def test_pulls_are_means_of_200_experiments_with_their_standard_errors_and_failures(kind, model):
    plan = ebr.plan(4, 3, 0.1, 0.5, 0.5, model, kind)
    assert plan.recommended == kind
    for name in PROBLEMS:
        arms, row = problem(name, 4, 0.1, 0.5, model), plan.races.loc[(kind, name)]
        races = ebr.simulate(plan.algorithm, arms, 200)
        pulls = races.pulls
        assert row["pulls"] == pytest.approx(pulls.mean())
        spread = sum((x - pulls.mean()) ** 2 for x in pulls.tolist()) / 199
        assert row["error"] == pytest.approx(math.sqrt(spread / 200))
        good = [arm for arm in range(4) if arms.means[arm] > max(arms.means) - 0.1 + 1e-9]
        assert row["failures"] == sum(arm not in good for arm in races.arm.tolist())
        assert (pulls <= row["at_most"]).all()
    if model == "Bernoulli":
        assert plan.deadlines.index.tolist() == plan.errors.index.tolist() == [1, 2, 3, 4, 5, 6]
        assert plan.deadlines.loc[3].tolist()[1:] == plan.races["pulls"].tolist()
        assert plan.errors.loc[3].tolist() == [0, *plan.races["error"]]


# Which race: three problems on which one is ahead of both others by far more than chance.
AHEAD = {
    "sharp": {"n_arms": 3, "deadline": 3, "epsilon": 0.1, "truths": [[0.6, 0.5, 0.5], [0.5] * 3]},
    "pausing": {"n_arms": 3, "deadline": 2, "epsilon": 0.1, "rewards": "Bernoulli"},
    "staked": {"n_arms": 8, "deadline": 12, "epsilon": 0.1, "truths": [[0.5] + [0.3] * 7, [0.9] + [0.4] * 7]},
}


def independent(n_arms, deadline, epsilon, rewards="bounded", sigma=0.5, truths=None):
    """Each race's pulls relative to the cheapest, the mean over the truths: other seeds, by plain sums."""
    usual = [problem(name, n_arms, epsilon, sigma, rewards) for name in PROBLEMS]
    problems = usual if truths is None else [ebr.Bernoulli(means) for means in truths]
    means = {}
    for kind, maker in KINDS.items():
        race = maker(deadline, epsilon, 0.05, sigma, rewards, **ADDED.get((kind, rewards), {}))
        pulls = [ebr.simulate(race, each, 400, seed=77).pulls.tolist() for each in problems]
        means[kind] = [sum(each) / 400 for each in pulls]
    least = [min(column) for column in zip(*means.values(), strict=True)]
    return {
        kind: sum(m / b for m, b in zip(row, least, strict=True)) / len(row) for kind, row in means.items()
    }


@pytest.mark.parametrize("best", AHEAD)
def test_the_race_is_recommended_that_an_independent_simulation_finds_cheapest(best):
    plan, costs = ebr.plan(**AHEAD[best]), independent(**AHEAD[best])
    order = sorted(costs, key=costs.get)
    assert order[0] == best
    assert costs[order[1]] > 1.04 * costs[best]  # some five standard errors
    assert plan.recommended == best
    assert plan.costs.index[0] == best
    assert isinstance(plan.algorithm, KINDS[best])
    assert plan.costs["cost"].is_monotonic_increasing
    for kind, cost in costs.items():
        assert plan.costs.loc[kind, "cost"] == pytest.approx(cost, rel=0.15)


def test_planted_a_plan_that_recommends_by_the_most_pulls_recommends_others(monkeypatch):
    def by_most(races):
        return races["at_most"].groupby("race").max()

    monkeypatch.setattr("ebr.live.plan.relative_cost", by_most)
    assert [ebr.plan(**AHEAD[best]).recommended for best in AHEAD] != list(AHEAD)
    assert ebr.plan(**AHEAD["staked"]).recommended != "staked"


def test_a_certified_race_is_one_more_where_an_arm_needs_few_rewards(path):
    asked = {"n_arms": 3, "deadline": 3, "epsilon": 0.2, "rewards": "Bernoulli"}
    plan = ebr.plan(**asked)
    assert set(plan.costs.index) == {*KINDS, "certified"}
    design = ebr.certified_design(3, 3, 0.2, 0.05)
    costs = plan.races.loc["certified"]
    for name in PROBLEMS:
        pulls = ebr.simulate(design.race, problem(name, 3, 0.2, 0.5, "Bernoulli"), 400, seed=3).pulls
        assert costs.loc[name, "pulls"] == pytest.approx(pulls.mean(), rel=0.2)
    assert plan.costs.loc["certified", "at_most"] == 3 * design.race.looks[-1]
    assert plan.costs["cost"].is_monotonic_increasing
    planned = ebr.plan(**asked, algorithm="certified", control=True, margin=0.4)
    with planned.start(path, ["A", "B", "C"]) as race:
        assert (race.algorithm.shifts, race.control) == ((0.4,), "C")
        race.ask()
    with ebr.Race.open(path) as race:
        assert race.algorithm == planned.algorithm
    assert "Stopped early, certified may guarantee nothing" in str(plan)
    assert "certified" not in ebr.plan(3, 3, 0.2).costs.index  # rewards in [0, 1] need not be 0 or 1
    assert "certified" in ebr.plan(3, 3, 0.2, rewards="Bernoulli", missing=True).costs.index
    assert "certified" not in ebr.plan(3, 3, 0.02, rewards="Bernoulli").costs.index
    with pytest.raises(ValueError, match="delta must be given for algorithm 'certified'"):
        ebr.plan(3, 3, 0.2, budget=900, rewards="Bernoulli", algorithm="certified")


@pytest.mark.usefixtures("few_experiments")
def test_races_that_do_not_permit_what_is_asked_are_left_out():
    for asked in ({"k": 2}, {"control": True}, {"blocks": True}, {"missing": True}):
        plan, alone = ebr.plan(4, 3, 0.1, **asked), asked.keys() & {"k", "blocks", "missing"}
        assert set(plan.costs.index) == ({"sharp"} if alone else {"sharp", "staked"})
    normal = ebr.plan(4, 3, 0.1, rewards="Gaussian", sigma=1, missing=True)
    assert set(normal.costs.index) == {"sharp"}
    assert set(ebr.plan(4, 1001, 0.1).costs.index) == {"sharp", "staked"}  # pausing has at most 1,000 rounds
    assert ebr.plan(20_001, 2, 0.3).costs.index.tolist() == ["sharp"]


def test_a_printed_plan_of_a_pausing_race_says_no_more_than_is_proved():
    said = str(ebr.plan(*EXAMPLE, rewards="Bernoulli", algorithm="pausing"))
    assert max(map(len, said.splitlines())) <= 100
    assert "surely" not in said
    assert "dropped" not in said
    for words in ("pulls of the leader", "leader so far", "all arms so far, at most"):
        assert words in said


def numbers(table):
    """Every number that a reader must find: counts with thousands, gaps with three digits."""
    return [f"{x:,.0f}" if x >= 10 else f"{x:.3g}" for x in table.to_numpy().ravel()]


@pytest.mark.usefixtures("few_experiments")
@pytest.mark.parametrize("case", [*CASES, (1000, 4, 0.001, 1e-9)], ids=str)
def test_a_printed_plan_fits_a_terminal_and_has_every_number_as_has_its_page(case):
    for options in ({}, SHARP):
        plan = ebr.plan(*case, **options)
        lines = str(plan).splitlines()
        assert max(map(len, lines)) <= 100
        confidence = 1 - (case[3] if len(case) > 3 else 0.05)
        n_arms, deadline, epsilon, *_ = case
        wanted = f"{n_arms} arms, at most {deadline} rounds, an arm within {epsilon:g} of the best"
        assert lines[0] == f"{wanted} with probability {confidence:g}"
        assert f"recommended: {plan.recommended}, {plan.recommended} elastic batch racing" in lines
        page = plan._repr_html_()
        by_truth = len(plan.found) == 1
        assert page.count("<table") == page.count("</table>") == 1 + (plan.rounds is not None) + by_truth
        words, cells = str(plan).split(), " ".join(re.findall(r"<t[dh]>([^<]*)</t[dh]>", page)).split()
        costs = plan.costs.drop(columns="cost")
        assert {f"{cost:.2f}" for cost in plan.costs["cost"]} <= set(words) & set(cells)
        rounds = [] if plan.rounds is None else [plan.rounds]
        tables = [plan.races[["pulls", "error"]].round(), costs, *rounds]
        for table in tables:
            assert set(numbers(table)) <= set(words) & set(cells)
        assert "np." not in repr(plan)
        assert len(repr(plan)) < 250  # the tables are for print


def test_a_plan_says_what_its_numbers_are(example):
    for shown in (str(example), example._repr_html_()):
        said = " ".join(re.sub("<[^>]+>", " ", shown).split())
        assert "Means ± standard errors of 200 simulated experiments on each truth" in said
        assert "At most: on any truth, if no reward is missing; proved, not simulated." in said
        assert "Relative cost: pulls over those of the cheapest race, the mean over the truths." in said
        assert "hard: the others are 0.1 worse; easy: 0.5; spread: in between." in said
        assert (
            "Simulated rewards are 0 or 1. If yours lie in between, staked may need far fewer pulls" in said
        )
        assert "Stopped early" not in said
    assert "Simulated" not in str(ebr.plan(2, 1, 0.3, rewards="Bernoulli"))
    assert "hard: the others are 0.5 worse" in str(ebr.plan(2, 1, 0.3))
    assert "hard: the others are 20 worse; easy: 25" in str(ebr.plan(2, 1, 10, support=(20, 70)))
    assert "hard" not in str(ebr.plan(2, 1, 0.3, truths={"mine": [0.5, 0.4]}))


def test_a_total_beyond_all_integers_is_refused():
    with pytest.raises(ValueError, match=r"^epsilon .* at most 2\^63 - 1 pulls of n_arms = 2000 together"):
        ebr.plan(2000, 1, 4e-8)
    assert (ebr.plan(2000, 1, 5e-6, **SHARP).rounds["worst_case"] > 0).all()


@pytest.fixture
def simulations(monkeypatch):
    """The simulations that a plan asks for, counted and not made."""
    asked = []

    def simulate(algorithm, problem, runs, seed):
        asked.append((algorithm.deadline, problem.n_arms, runs))
        right = np.ones(runs, dtype=bool)
        return SimpleNamespace(pulls=np.arange(runs), rounds=right, correct=lambda epsilon: right)

    monkeypatch.setattr("ebr.live.plan.simulate", simulate)
    return asked


@pytest.mark.parametrize("algorithm", KINDS)
def test_a_plan_looks_at_every_deadline_near_and_at_few_far_away(algorithm, simulations):
    for deadline in (1, 6, 17, 20, 21):
        table = ebr.plan(3, deadline, 0.05, algorithm=algorithm).deadlines
        assert table.index.tolist() == list(range(1, deadline + 4))
    longest = 1000  # which the pausing race cannot exceed
    plan = ebr.plan(3, longest, 0.05, algorithm=algorithm)
    simulations.clear()
    index = plan.deadlines.index.tolist()
    assert index[:22] == [*range(1, 21), 28, 40]
    assert index[-4:] == ([453, 640, 905, 1000] if algorithm == "pausing" else [1000, 1001, 1002, 1003])
    assert max(b / a for a, b in pairwise(index[20:])) < 1.5
    assert [t for t, _, _ in simulations] == [t for t in index for _ in PROBLEMS]
    assert len(index) < 40


def test_on_many_arms_fewer_experiments_are_simulated_and_the_plan_says_how_many(simulations):
    for n_arms, deadline, runs in ((100, 15, 100), (375, 2, 200), (3000, 5, 10), (10**6, 2, 2)):
        simulations.clear()
        plan = ebr.plan(n_arms, deadline, 0.05)
        assert plan.runs == runs
        assert f"of {runs} simulated experiments" in str(plan)
        assert {asked[1:] for asked in simulations} == {(n_arms, runs)}
        row = plan.races.loc[("sharp", "hard")]
        assert row["pulls"] == (runs - 1) / 2  # the mean of 0 … runs − 1
        spread = math.sqrt(sum((x - (runs - 1) / 2) ** 2 for x in range(runs)) / (runs - 1))
        assert row["error"] == pytest.approx(spread / math.sqrt(runs))


# Other terms: a place for more than one, a scale, a control; and what a race then asks.


def test_a_plan_for_the_k_best():
    planned = ebr.plan(6, 3, 0.1, k=2)
    assert planned.algorithm == ebr.SharpElasticBatchRacing(3, 0.1, 0.05, k=2)
    says = "6 arms, at most 3 rounds, 2 arms within 0.1 of the k-th best with probability 0.95"
    assert says in str(planned)
    assert planned.rounds["so_far"].tolist() == planned.algorithm.pulls_by_round(6, "bounded").tolist()


def test_a_plan_in_units_is_the_plan_between_0_and_1():
    unit = ebr.plan(3, 3, 0.1, control=True, margin=0.2, truths={"mine": [0.5, 0.4, 0.1]})
    for lower, truth in ((False, [35, 30, 15]), (True, [35, 40, 55])):
        asked = {"support": (10, 60), "control": True, "margin": 10, "lower_is_better": lower}
        grams = ebr.plan(3, 3, 5, **asked, truths={"mine": truth})
        assert grams.algorithm == ebr.SharpElasticBatchRacing(3, 0.1, 0.05, control=2, margin=0.2)
        assert grams.rounds["gone"].to_numpy() == pytest.approx(50 * unit.rounds["gone"].to_numpy())
        assert grams.races["pulls"].tolist() == pytest.approx(unit.races["pulls"].tolist(), rel=0.1)
        assert "an arm within 5 of the best" in str(grams)
        assert "no arm can be better than the control by 10" in str(grams)
        assert ("rewards are between 10 and 60, the smaller the better" in str(grams)) == lower
    budget = ebr.plan(3, 3, budget=600, support=(0, 50), **SHARP)
    assert f"buy epsilon = {50 * budget.algorithm.epsilon:g} at delta" in str(budget)


def test_a_spread_is_all_that_need_be_known_and_units_do_not_matter():
    truths = np.array([[140.0, 130.0, 100.0], [120.0, 120.0, 119.0]])
    mmhg = ebr.plan(3, 6, 5, sigma=15, support=None, truths=truths.tolist())
    other = ebr.plan(3, 6, 0.005, sigma=0.015, rewards="sub-Gaussian", truths=(truths / 1000).tolist())
    assert "rewards are 15-sub-Gaussian" in str(mmhg)
    assert mmhg.algorithm.epsilon == pytest.approx(other.algorithm.epsilon)
    kinds = list(KINDS)
    assert mmhg.costs.loc[kinds, "at_most"].tolist() == other.costs.loc[kinds, "at_most"].tolist()
    pulls = [plan.races.loc[kinds, "pulls"].tolist() for plan in (mmhg, other)]
    assert pulls[0] == pytest.approx(pulls[1], rel=0.2)
    # Gaps are what matters; those beyond 2σ are cut.
    raced = mmhg.algorithm.assuming("sub-Gaussian")
    inside = ebr.simulate(raced, ebr.Gaussian([1.0, 2 / 3, 0.0], 0.5), 200)
    assert mmhg.races["pulls"].iloc[0] == pytest.approx(inside.pulls.mean(), rel=0.2)


def test_a_plan_shows_what_a_control_saves_where_nobody_is_better():
    plan = ebr.plan(3, 6, 0.05, control=True, margin=0.15)
    # All arms tie: hardly a race would end early without a control.
    assert plan.races.loc[("sharp", "alike"), "pulls"] < plan.costs.loc["sharp", "at_most"] / 2


# From the plan to the race.


@pytest.mark.usefixtures("few_experiments")
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


@pytest.mark.usefixtures("few_experiments")
def test_a_race_of_blood_pressures_is_planned_and_run_in_mmhg(path):
    plan = ebr.plan(3, 6, 5, sigma=15, rewards="Gaussian", lower_is_better=True, **SHARP)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        race = plan.start(path, arms=["A", "B", "C"])
    with race:
        first = race.ask()
        assert first == dict.fromkeys("ABC", plan.rounds["pulls"].iloc[0])
        race.tell({arm: [150 - 40 * (arm == "B")] * count for arm, count in first.items()})
        assert (race.recommendation, race.within) == ("B", pytest.approx(5))
        assert "is normal with σ = 15" in str(race.report())
        assert "within 5 of the best" in str(race.report())


@pytest.mark.usefixtures("few_experiments")
def test_a_planned_control_is_the_last_arm_or_the_one_that_is_named(path):
    plan = ebr.plan(3, 3, 5, support=(0, 50), control=True, margin=10)
    assert plan.start(path, ["A", "B", "placebo"]).control == "placebo"
    assert plan.start(path.with_name("b"), ["placebo", "A", "B"], control="placebo").control == "placebo"
    with pytest.raises(ValueError, match="control must be one of the arms, A, B, C, got 'D'"):
        plan.start(path.with_name("c"), ["A", "B", "C"], control="D")
    with pytest.raises(ValueError, match="control must have been planned for, with control=True, got 'C'"):
        ebr.plan(3, 3, 0.1).start(path.with_name("d"), ["A", "B", "C"], control="C")


@pytest.mark.usefixtures("few_experiments")
@pytest.mark.parametrize(
    "words",
    [
        ["--rewards", "Bernoulli", "--support", "0", "50", "--epsilon", "5"],
        ["--rewards", "bounded", "--unbounded"],
        ["--epsilon", "60", "--support", "0", "50"],
        ["--sigma", "-1"],
        ["--sigma", "9", "--rewards", "bounded", "--support", "0", "50", "--epsilon", "5"],
        ["--support", "1", "0"],
        ["--k", "3"],
        ["--k", "2", "--algorithm", "staked"],
        ["--blocks", "--rewards", "bounded"],
        ["--blocks", "--algorithm", "pausing"],
        ["--control", "C", "--margin", "0.01"],
        ["--control", "C", "--margin", "1", "--epsilon", "2", "--support", "0", "50"],
        ["--deadline", "0"],
        ["--delta", "1"],
    ],
    ids=" ".join,
)
def test_plan_refuses_what_start_refuses(words, run, folder):
    rules = ["--arms", "A", "B", "C", "--deadline", "3", "--epsilon", "0.1", *words]
    refused = run("start", "trial.jsonl", *rules)
    assert refused[0] == 2
    assert run("plan", *rules) == run("plan", *rules, "--start", "trial.jsonl") == refused
    assert not list(folder.iterdir())


def test_a_plan_is_started_from_a_terminal(run, folder):
    rules = [
        "--deadline",
        "6",
        "--epsilon",
        "5",
        "--sigma",
        "15",
        "--rewards",
        "Gaussian",
        "--lower-is-better",
    ]
    truth = ["--truth", "140", "130", "120"]
    status, said = run("plan", "--arms", "A", "B", "C", *rules, *truth, "--start", "trial.jsonl")
    plan = ebr.plan(3, 6, 5, sigma=15, rewards="Gaussian", lower_is_better=True, truths=[[140, 130, 120]])
    assert status == 0
    assert said.startswith(f"{plan}\n\nRound 1 of at most 6\n")
    assert said.endswith("Next: python -m ebr ask trial.jsonl\n")
    with ebr.Race.open("trial.jsonl") as race:
        assert race.algorithm == plan.algorithm
        assert race.terms.scale == plan.terms.scale
    assert run("plan", "--arms", "3", *rules, "--start", "b.jsonl")[0] == 2
    assert (
        run("plan", "--arms", "A", "B", "C", "--control", "--deadline", 3, "--epsilon", 0.1, "--start", "c")[
            0
        ]
        == 0
    )
    with ebr.Race.open("c") as race:
        assert race.control == "C"


TRUTH = [0.2, 0.55, 0.6]
MAKERS = {
    "elastic": ebr.ElasticBatchRacing,
    "sharp": ebr.SharpElasticBatchRacing,
    "two best": lambda *rules: ebr.SharpElasticBatchRacing(*rules, k=2),
    "pausing": ebr.PausingElasticBatchRacing,
    "aggressive": ebr.AggressiveElimination,
    "passive": lambda deadline, epsilon, delta: ebr.Passive(epsilon, delta),
    "sequential": lambda deadline, epsilon, delta: ebr.SequentialRacing(epsilon, delta),
}


def simulated(algorithm, problem):
    """One simulated race: of each round the pulls and the sums, and the arms that it recommends."""
    rounds = []
    (block,) = simulate.blocks(algorithm, problem, runs=1, seed=1)
    arms = simulate.race(algorithm, problem, *block, lambda pulls, sums: rounds.append((pulls[0], sums[0])))
    return rounds, np.atleast_1d(arms[0])


@pytest.mark.parametrize("model", ["Bernoulli", "Gaussian"])  # what problems say of themselves
@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deadline=st.integers(1, 6), epsilon=st.floats(0.1, 0.6), delta=st.floats(0.02, 0.5))
def test_a_race_asks_what_a_simulation_asks(
    name, model, deadline, epsilon, delta, tmp_path_factory, unflushed
):
    algorithm = MAKERS[name](deadline, epsilon, delta)
    problem = ebr.Bernoulli(TRUTH) if model == "Bernoulli" else ebr.Gaussian(TRUTH, 0.5)
    rounds, arms = simulated(algorithm, problem)
    support, journal = ((0, 1) if model in IN_UNIT else None), tmp_path_factory.mktemp("race") / "trial.jsonl"
    few = rounds[:1] if len(rounds) >= 300 else rounds  # a sequential race may take thousands
    with ebr.Race(algorithm, ARMS, journal, support, model) as race:
        for pulls, sums in few:
            assert [race.ask().get(arm, 0) for arm in ARMS] == pulls.tolist()
            told = zip(ARMS, pulls.tolist(), sums.tolist(), strict=True)
            race.tell({arm: (count, total) for arm, count, total in told if count})
    with ebr.Race.open(journal, readonly=True) as race:
        assert race.algorithm == algorithm
        assert race.intervals["pulls"].tolist() == sum(pulls for pulls, _ in few).tolist()
        assert race.history["sum"].sum() == pytest.approx(sum(sums.sum() for _, sums in few))
        assert race.finished == (few is rounds)
        if race.finished and model == "Gaussian":  # no two means are equal, so that no lot decides
            assert race.survivors == [ARMS[arm] for arm in sorted(arms)]


@pytest.mark.usefixtures("unflushed", "few_experiments")
@pytest.mark.parametrize("known", [None, *REWARDS])
@pytest.mark.parametrize("kind", ["sharp", "pausing"])
def test_a_race_the_command_line_and_a_simulation_ask_what_was_planned(kind, known, tmp_path, run):
    planned = ebr.plan(3, 4, 0.13, 0.07, rewards=known, algorithm=kind)
    first = planned.rounds["pulls"].iloc[0]
    support = [] if known in (None, *IN_UNIT) else ["--unbounded"]  # as it would be
    words = ["--deadline", 4, "--epsilon", 0.13, "--delta", 0.07, "--algorithm", kind]
    words += ["--rewards", known] if known else []
    assert run("start", tmp_path / "line.jsonl", "--arms", *ARMS, *words, *support)[0] == 0
    with ebr.Race.open(tmp_path / "line.jsonl") as race:
        assert race.ask() == dict.fromkeys(ARMS, first)
    with ebr.Race(planned.algorithm, ARMS, tmp_path / "race.jsonl", None if support else (0, 1)) as race:
        assert race.ask() == dict.fromkeys(ARMS, first)
    # Of a Bernoulli problem the pausing race knows more than of rewards of which nothing is said.
    if known == "Bernoulli" or (known is None and kind == "sharp"):
        rounds, _ = simulated(planned.algorithm, ebr.Bernoulli(TRUTH))
        assert rounds[0][0].tolist() == [first] * 3


def test_the_pulls_that_differed():
    """78 under `simulate` where `Race` and `plan` asked 58: they did not say that rewards lie in [0, 1]."""
    algorithm = ebr.SharpElasticBatchRacing(6, 0.05, 0.05)
    assert simulated(algorithm, ebr.Bernoulli(TRUTH))[0][0][0].tolist() == [78] * 3
    assert ebr.plan(3, 6, 0.05, **SHARP).rounds["pulls"].iloc[0] == 78


WORDS = ["plan", "--arms", "3", "--deadline", "6"]


def test_a_terminal_prints_and_draws_the_same(example, run, tmp_path):
    drawn = tmp_path / "plan.svg"
    assert run(*WORDS, "--epsilon", "0.05", "--picture", drawn) == (0, f"{example}\n")
    for label in ("worst case", "spread", "planned", "rounds until the deadline", "pulls of all arms"):
        assert label in drawn.read_text()  # matplotlib names in a comment what it draws as outlines
    pausing = ["--epsilon", "0.05", "--algorithm", "pausing", "--rewards", "Bernoulli"]
    wanted = ebr.plan(*EXAMPLE, rewards="Bernoulli", algorithm="pausing")
    assert run(*WORDS, *pausing) == (0, f"{wanted}\n")


@pytest.mark.usefixtures("few_experiments")
def test_a_terminal_prints_what_a_budget_buys(run):
    for options, asked in (
        (["--budget", "3000"], {"budget": 3000}),
        (["--budget", "3000", "--delta", "0.2"], {"budget": 3000, "delta": 0.2}),
        (["--budget", "9000", "--epsilon", "0.05"], {"budget": 9000, "epsilon": 0.05}),
        (["--epsilon", "0.2", "--k", "2"], {"epsilon": 0.2, "k": 2}),
    ):
        assert run(*WORDS, *options) == (0, f"{ebr.plan(3, 6, **asked)}\n")
    assert "budget must be at least 18 for 6 rounds on 3 arms, got 17" in run(*WORDS, "--budget", "17")[1]


# What a budget buys: against a scan of races that are played out.


def three_digits(decade):
    """Every number of three digits from 10^−d to 10^(1−d), without the last."""
    return [round(digits * 10.0 ** -(decade + 2), decade + 2) for digits in range(100, 1000)]


@pytest.mark.usefixtures("few_experiments")
def test_the_whole_scan_by_plain_arithmetic():
    for budget in (100, 1000, 5673, 20_000):
        fit = [e for d in (2, 1) for e in three_digits(d) if 3 * sharp_schedule(3, 6, e)[0][-1] <= budget]
        assert ebr.plan(3, 6, budget=budget, **SHARP).algorithm.epsilon == min(fit)
    for budget in (3000, 5673, 12_000):
        deltas = [d for decade in (5, 4, 3, 2, 1) for d in three_digits(decade)]
        fit = [d for d in deltas if 3 * sharp_schedule(3, 6, 0.05, d)[0][-1] <= budget]
        assert ebr.plan(3, 6, 0.05, budget=budget, **SHARP).algorithm.delta == min(fit)


@pytest.mark.usefixtures("few_experiments")
@every_model
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rest", [{"delta": 0.1}, {"epsilon": 0.1}], ids=str)
@pytest.mark.parametrize(("deadline", "budget"), [(1, 500), (4, 2000)])
def test_what_is_bought_fits_and_the_next_smaller_one_does_not(kind, model, rest, deadline, budget):
    n_arms = 4
    plan = ebr.plan(n_arms, deadline, **rest, rewards=model, algorithm=kind, budget=budget)
    (held,) = rest
    sought = "epsilon" if held == "delta" else "delta"
    value = getattr(plan.algorithm, sought)
    assert (plan.budget, plan.bought) == (budget, sought)
    assert float(f"{value:.2e}") == value
    smaller = value - 10.0 ** (math.floor(math.log10(value)) - 2)

    def race(value):
        added = ADDED.get((kind, model), {})
        return KINDS[kind](deadline, **rest, **{sought: value}, rewards=model, **added)

    assert plan.algorithm == race(value)
    if kind == "staked":
        most = [
            math.floor((n_arms + 2 * (deadline > 1)) * race(v).last_count(n_arms, model))
            for v in (value, smaller)
        ]
        assert most[0] <= budget < most[1]
        return
    last = played(race(value), n_arms, model)[-1]
    assert last.sum() <= n_arms * last.max() <= budget
    assert n_arms * played(race(smaller), n_arms, model)[-1].max() > budget


@pytest.mark.usefixtures("few_experiments")
@pytest.mark.parametrize("k", [1, 2])
def test_it_is_the_ordinary_plan_of_what_is_bought(k):
    plan = ebr.plan(5, 3, budget=4000, k=k, **SHARP)
    epsilon = plan.algorithm.epsilon
    same = ebr.plan(5, 3, epsilon, k=k, **SHARP)
    assert plan.algorithm == same.algorithm
    for table in ("rounds", "races"):
        assert getattr(plan, table).equals(getattr(same, table))
    most = plan.rounds["worst_case"].iloc[-1]
    verdict = f"4,000 pulls buy epsilon = {epsilon} at delta = 0.05: at most {most:,}"
    assert str(plan).splitlines()[1] == verdict
    assert f"<p>{verdict}</p>" in plan._repr_html_()


@pytest.mark.usefixtures("few_experiments")
@pytest.mark.parametrize("given", [{"budget": 6000}, {"budget": 6000, "epsilon": 0.05}], ids=str)
def test_the_race_that_buys_most_is_recommended(given):
    plan = ebr.plan(3, 6, **given)
    alone = {kind: ebr.plan(3, 6, **given, algorithm=kind) for kind in KINDS}
    values = {kind: getattr(each.algorithm, plan.bought) for kind, each in alone.items()}
    assert plan.costs[plan.bought].to_dict() == values
    assert values[plan.recommended] == min(values.values())
    assert (plan.costs["at_most"] <= 6000).all()


@pytest.mark.usefixtures("few_experiments")
def test_a_race_that_keeps_to_the_budget_goes_before_one_that_may_not():
    assert ebr.plan(3, 6, 0.05, 0.05, budget=6000).costs.index[0] == "sharp"  # the others may cost more
    assert ebr.plan(3, 6, 0.05, 0.05, budget=6000).costs["at_most"].iloc[1:].min() > 6000


@pytest.mark.usefixtures("few_experiments")
def test_a_large_budget_buys_no_failure_less_likely_than_a_billionth():
    plan = ebr.plan(3, 6, 0.3, budget=10**12, **SHARP)
    assert max(map(len, str(plan).splitlines())) <= 100
    assert plan.algorithm.delta == 1e-9
    assert str(plan).startswith(
        "3 arms, at most 6 rounds, an arm within 0.3 of the best with probability 1 - 1e-09\n"
    )


@pytest.mark.usefixtures("few_experiments")
def test_with_both_given_it_says_whether_the_budget_is_enough():
    most = 3 * sharp_schedule(3, 6, 0.05)[0][-1]
    for budget, says in (
        (most, f"{most:,} pulls are enough, if no reward is missing: at most {most:,}"),
        (most - 1, f"{most - 1:,} pulls may not be enough: at most {most:,}"),
    ):
        plan = ebr.plan(3, 6, 0.05, 0.05, budget=budget, **SHARP)
        assert plan.bought is None
        assert str(plan).splitlines()[1] == says


# One race truth by truth: how often it fails, and what it costs.


def test_with_one_round_and_two_arms_failures_are_as_many_as_enumeration_says():
    """Each assertion fails by chance with probability 1e-7."""
    runs, means = 40_000, (0.4, 0.6)
    row = ebr.plan(2, 1, 0.2, 0.3, truths={"apart": means}, runs=runs, **SHARP).races.iloc[0]
    b = math.floor(math.log(1 / 0.3) / 0.2**2) + 1
    worse, better = (binom.pmf(np.arange(b + 1), b, p) for p in means)
    joint = np.outer(worse, better)
    wrong = 1 - np.triu(joint, 1).sum()  # the first arm wins ties: here the worse one
    failures = int(row["failures"])
    assert binomtest(failures, runs, wrong).pvalue > 1e-7
    assert binomtest(failures, runs, 1 - np.triu(joint).sum()).pvalue < 1e-7  # planted: ties count as right
    assert (row["pulls"], row["error"], row["pulls_90"], row["rounds"]) == (2 * b, 0, 2 * b, 1)
    assert binom.sf(failures - 1, runs, row["failing_lower"]) == pytest.approx(0.005, rel=1e-6)
    assert binom.cdf(failures, runs, row["failing_upper"]) == pytest.approx(0.005, rel=1e-6)


def test_one_race_is_shown_truth_by_truth_and_simulated_only_when_it_is_looked_at(monkeypatch, path):
    with monkeypatch.context() as patch:
        patch.setattr("ebr.live.plan.simulate", None)  # whoever runs it fails
        plan = ebr.plan(3, 4, 0.1, algorithm="pausing", truths=[[0.5, 0.45, 0.4], [0.9, 0.1, 0.1]], runs=157)
        plan.start(path).close()
    races = ebr.simulate(plan.algorithm.assuming("bounded"), ebr.Bernoulli([0.5, 0.45, 0.4]), 157)
    row, pulls = plan.races.iloc[0], sorted(races.pulls.tolist())
    assert row["pulls_90"] == pulls[141]  # the least number that 90 % of the races do not exceed, 142 of 157
    assert row["rounds"] == pytest.approx(sum(races.rounds.tolist()) / 157)
    for said in (str(plan), plan._repr_html_()):
        assert f"{row['failing_lower']:.2%} to {row['failing_upper']:.2%}" in said
        assert f"{row['pulls_90']:,.0f}" in said
        assert "157 simulated experiments" in said
    with pytest.raises(ValueError, match="runs must be an integer of at least 2, got 1"):
        ebr.plan(3, 4, 0.1, runs=1)


@dataclass(frozen=True)
class Conservative(Bare):
    """An algorithm of one's own that pulls each arm once and recommends the control."""

    control: int
    margin: float

    def play(self, n_arms, replicates=1, **_):
        yield np.ones((replicates, n_arms), dtype=int)
        return np.full(replicates, self.control)


def test_a_control_fails_only_where_an_arm_is_better_by_the_margin():
    race = Conservative(control=2, margin=0.3)
    truths = {"tie": [0.5, 0.5, 0.5], "near": [0.7, 0.1, 0.5], "far": [0.8, 0.1, 0.5]}
    found = [row_of(race, Truth(name, 0.5, ebr.Bernoulli(means)), 3) for name, means in truths.items()]
    assert [row["failures"] for row in found] == [0, 0, 3]  # worse by 0.2, more than ε, and by 0.3


def test_in_a_page_names_of_truths_are_names():
    page = ebr.plan(2, 1, 0.3, truths={"<b>bold</b>": [0.9, 0.1]}, runs=2, **SHARP)._repr_html_()
    assert page.count("&lt;b&gt;bold&lt;/b&gt;") == 2  # in both tables
    assert "<b>" not in page


def test_truths_that_print_alike_are_told_apart():
    plan = ebr.plan(2, 1, 0.3, truths=[[0.5, 0.4], [0.5, 0.4 + 1e-9]], runs=2, **SHARP)
    assert plan.races.index.get_level_values("truth").tolist() == ["0.5, 0.4", f"0.5, {0.4 + 1e-9}"]


# A plan from a pilot, and the race that is started.

YES_NO = {"A": [1, 0, 1, 1, 0], "B": [0, 0, 1, 0], "C": [1, 1, 1]}
SPREAD = {"A": [12.0, 15.5, 9.1, 13.3, 11.2], "B": [22.0, 30.5, 17.9, 26.4]}


@pytest.mark.usefixtures("few_experiments")
def test_a_pilot_of_zeros_and_ones_says_so_and_its_means_are_a_truth():
    tables = [YES_NO, pd.DataFrame({arm: pd.Series(values) for arm, values in YES_NO.items()})]
    tables.append(
        pd.DataFrame([(arm, x) for arm, values in YES_NO.items() for x in values], columns=["arm", "reward"])
    )
    for pilot in tables:
        plan = ebr.plan(deadline=3, epsilon=0.2, pilot=pilot)
        assert plan.terms.rewards == "Bernoulli"
        assert plan.terms.arms == ("A", "B", "C")
        assert plan.truths[-1].name == "pilot"
        assert plan.truths[-1].problem.means.tolist() == [0.6, 0.25, 1.0]
        assert "that they are 0 or 1 is taken from the pilot" in str(plan)


@pytest.mark.usefixtures("few_experiments")
def test_zeros_and_ones_are_not_taken_for_all_there_is_where_a_support_says_otherwise():
    plan = ebr.plan(deadline=3, epsilon=5, pilot=YES_NO, support=(0, 50))
    assert plan.terms.rewards != "Bernoulli"
    assert plan.terms.support == (0, 50)


@pytest.mark.usefixtures("few_experiments")
def test_a_spread_estimated_from_a_pilot_is_said_to_be_an_assumption():
    plan = ebr.plan(deadline=3, epsilon=5, pilot=SPREAD)
    spreads = {
        arm: statistics.stdev(x) * math.sqrt((len(x) - 1) / chi2.ppf(0.05, len(x) - 1))
        for arm, x in SPREAD.items()
    }
    assert plan.algorithm.sigma * plan.terms.scale.width == pytest.approx(max(spreads.values()), rel=0.01)
    for unit in range(1, 20):  # rounded up: a limit that is rounded down is none
        found = ebr.plan(deadline=3, epsilon=5, pilot={arm: np.array(x) * unit for arm, x in SPREAD.items()})
        assert found.algorithm.sigma * found.terms.scale.width >= max(spreads.values()) * unit * (1 - 1e-8)
    assert plan.terms.rewards == "sub-Gaussian"
    said = " ".join(str(plan).split())
    assert (
        "is estimated from the pilot: 95% upper limit for B, 4 rewards, if normal. It is an assumption"
        in said
    )
    assert max(map(len, str(plan).splitlines())) <= 100
    for known in ({"support": (0, 50)}, {"sigma": 4}):  # nothing is estimated
        assert "estimated" not in str(ebr.plan(deadline=3, epsilon=5, pilot=SPREAD, **known))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"pilot": {"A": [1, 2]}},
            "pilot must be a table or dict of the rewards of 2 arms or more, got {'A'",
        ),
        ({"pilot": 3}, "pilot must be a table or dict"),
        (
            {"pilot": {"A": (52, 33), "B": (52, 46)}},
            "pilot of 'A' must be a list of single rewards, got (52,",
        ),
        ({"pilot": {"A": [1, 2], "B": [3]}}, "pilot of 'B' must be a list of at least 2 numbers"),
        ({"pilot": SPREAD, "n_arms": 3}, "n_arms must be left out, or 2 as in the pilot, got 3"),
        ({"pilot": SPREAD, "support": (0, 20)}, "pilot of 'B' must be numbers in the support, [0, 20]"),
        ({"pilot": {"A": [1, 2], "B": [3, math.nan]}}, "pilot of 'B' must be finite numbers, got nan"),
        ({"pilot": SPREAD, "rewards": "bounded"}, "pilot of 'A' must be numbers in the support, [0, 1]"),
        ({"pilot": {"A": [2, 2], "B": [3, 3]}}, "sigma must be given, or a support: all rewards of each"),
        ({"n_arms": 2, "deadline": None}, "deadline must be an integer of at least 1, got None"),
        ({}, "n_arms must be an integer of at least 2, got None"),
    ],
)
def test_a_wrong_pilot_is_named(given, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        ebr.plan(**{"deadline": 3, "epsilon": 0.3} | given)


def test_a_terminal_plans_and_starts_from_a_pilot(folder, run):
    rows = [f"{arm},{x}" for arm, values in YES_NO.items() for x in values]
    (folder / "pilot.csv").write_text("\n".join(["arm,reward", *rows]))
    words = ["--pilot", "pilot.csv", "--deadline", 2, "--epsilon", 0.3]
    status, said = run("plan", *words, "--start", "a.jsonl")
    assert (status, f"{ebr.plan(deadline=2, epsilon=0.3, pilot=YES_NO)}\n" in said) == (0, True)
    assert ebr.Race.open("a.jsonl", readonly=True).arms == ("A", "B", "C")
    assert run("start", "b.jsonl", *words)[0] == 0
    one, other = (ebr.Race.open(f"{name}.jsonl", readonly=True).algorithm for name in "ab")
    assert one == other


@pytest.mark.parametrize("rewards", ["Bernoulli", "bounded"])
def test_start_takes_the_race_that_plan_recommends_and_says_why_in_a_line(rewards, folder, run):
    words = ["--arms", "A", "B", "C", "--deadline", 3, "--epsilon", 0.15, "--rewards", rewards]
    status, said = run("start", "t.jsonl", *words)
    plan = ebr.plan(3, 3, 0.15, rewards=rewards)
    assert status == 0
    assert said.splitlines()[0] == plan.why
    assert plan.why.startswith(f"Race: {plan.recommended} (")
    assert all(f"{race} {cost:.2f}" in plan.why for race, cost in plan.costs["cost"].items())
    assert ebr.Race.open("t.jsonl", readonly=True).algorithm == plan.algorithm
    assert run("start", "t.jsonl", *words)[0] == 0  # it has begun already
