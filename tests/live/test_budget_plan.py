"""What a budget buys: against a scan of races that are played out, and whether people can read it."""

import math
import re

import numpy as np
import pytest
from oracles import sharp_schedule

import ebr
from ebr.algorithms.game import drive
from ebr.live.cli import main
from ebr.models import REWARDS
from ebr.theory import budgets

KINDS = {"sharp": ebr.SharpElasticBatchRacing, "pausing": ebr.PausingElasticBatchRacing}
pytestmark = pytest.mark.usefixtures("few_experiments")
every_kind = pytest.mark.parametrize("kind", KINDS)
every_model = pytest.mark.parametrize("model", REWARDS)


@pytest.fixture
def run(capsys):
    """Run a command in this process: its status, and what it says."""

    def run(*words):
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr()
        return status, said.out or said.err

    return run


def played(algorithm, n_arms, model="bounded"):
    """What a race costs in which all arms are alike to the last bit, and how often an arm was pulled."""
    counts = np.zeros(n_arms, dtype=int)

    def pay(pulls):
        counts[:] += pulls[0]
        return np.floor(pulls * 0.5)

    drive(algorithm.play(n_arms, rewards=model), pay)
    return counts.sum(), counts.max()


def three_digits(decade):
    """Every number of three digits from 10^−d to 10^(1−d), without the last."""
    return [round(digits * 10.0 ** -(decade + 2), decade + 2) for digits in range(100, 1000)]


@pytest.mark.parametrize(
    ("n_arms", "deadline", "budget"), [(3, 6, 3000), (2, 1, 40), (20, 3, 90_000), (5, 4, 500)]
)
def test_no_smaller_tolerance_fits_of_those_that_are_played(n_arms, deadline, budget):
    least = next(
        epsilon
        for epsilon in (three_digits(2) + three_digits(1))[::15]  # from below; all: by arithmetic, below
        if played(ebr.SharpElasticBatchRacing(deadline, epsilon, 0.05), n_arms)[0] <= budget
    )
    found = ebr.plan(n_arms, deadline, budget=budget).algorithm.epsilon
    assert found <= least
    assert math.isclose(found, least, rel_tol=0.13)
    assert played(ebr.SharpElasticBatchRacing(deadline, found, 0.05), n_arms)[0] <= budget
    step = 10.0 ** (math.floor(math.log10(found)) - 2)
    assert played(ebr.SharpElasticBatchRacing(deadline, found - step, 0.05), n_arms)[0] > budget


def test_the_whole_scan_by_plain_arithmetic():
    for budget in (100, 1000, 5673, 20_000):
        fit = [e for d in (2, 1) for e in three_digits(d) if 3 * sharp_schedule(3, 6, e)[0][-1] <= budget]
        assert ebr.plan(3, 6, budget=budget).algorithm.epsilon == min(fit)
    for budget in (3000, 5673, 12_000):
        deltas = [d for decade in (5, 4, 3, 2, 1) for d in three_digits(decade)]
        fit = [d for d in deltas if 3 * sharp_schedule(3, 6, 0.05, d)[0][-1] <= budget]
        assert ebr.plan(3, 6, 0.05, budget=budget).algorithm.delta == min(fit)


@every_model
@every_kind
@pytest.mark.parametrize("rest", [{"delta": 0.1}, {"epsilon": 0.1}], ids=str)
@pytest.mark.parametrize("deadline", [1, 4])
def test_what_is_bought_fits_and_the_next_smaller_one_does_not(kind, model, rest, deadline):
    budget, n_arms = 1500, 4
    plan = ebr.plan(n_arms, deadline, **rest, rewards=model, algorithm=kind, budget=budget)
    (held,) = rest
    sought = "epsilon" if held == "delta" else "delta"
    value = getattr(plan.algorithm, sought)
    assert (plan.budget, plan.bought) == (budget, sought)
    assert float(f"{value:.2e}") == value
    smaller = value - 10.0 ** (math.floor(math.log10(value)) - 2)

    def race(value):
        return KINDS[kind](deadline, **rest, **{sought: value}, rewards=model)

    assert plan.algorithm == race(value)
    cost, of_one = played(race(value), n_arms, model)
    assert cost <= n_arms * of_one <= budget < n_arms * played(race(smaller), n_arms, model)[1]


@pytest.mark.parametrize("k", [1, 2])
def test_it_is_the_ordinary_plan_of_what_is_bought_and_rounds_up_what_a_finer_search_finds(k):
    plan = ebr.plan(5, 3, budget=4000, k=k)
    epsilon = plan.algorithm.epsilon
    same = ebr.plan(5, 3, epsilon, k=k)
    assert plan.algorithm == same.algorithm
    for table in ("rounds", "totals", "deadlines", "errors"):
        assert getattr(plan, table).equals(getattr(same, table))
    first, verdict, rest = str(plan).split("\n", 2)
    assert f"{first}\n{rest}" == str(same)
    most = plan.rounds["worst_case"].iloc[-1]
    assert verdict == f"4,000 pulls buy epsilon = {epsilon} at delta = 0.05: never more than {most:,}"
    assert plan._repr_html_() == f"<p>{verdict}</p>{same._repr_html_()}"

    def cost(epsilon):
        return 5 * ebr.SharpElasticBatchRacing(3, epsilon, 0.05, k=k).pulls_by_round(5, "bounded")[-1]

    fine = budgets.affordable(cost, 4000)
    assert fine <= epsilon < fine + 10.0 ** (math.floor(math.log10(fine)) - 2)


def test_no_race_costs_more_whatever_the_arms_are():
    for kind in KINDS:
        plan = ebr.plan(4, 5, budget=2000, algorithm=kind, rewards="bounded")
        for means in ([0.5] * 4, [0.6, 0.6, 0.6, 0.1], [0.5, 0.49, 0.4, 0.3], [1, 0, 0, 0]):
            assert ebr.simulate(plan.algorithm, ebr.Bernoulli(means), 500).pulls.max() <= 2000


def test_a_large_budget_buys_no_failure_less_likely_than_a_billionth():
    plan = ebr.plan(3, 6, 0.3, budget=10**12)
    assert max(map(len, str(plan).splitlines())) <= 100
    assert plan.algorithm.delta == 1e-9
    assert str(plan).startswith(
        "3 arms, at most 6 rounds, an arm within 0.3 of the best with probability 1 - 1e-09\n"
    )


def test_with_both_given_it_says_whether_the_budget_is_enough():
    most = 3 * sharp_schedule(3, 6, 0.05)[0][-1]
    for budget, says in (
        (most, f"{most:,} pulls are enough: never more than {most:,}"),
        (most - 1, f"{most - 1:,} pulls may not be enough: at most {most:,}"),
    ):
        plan = ebr.plan(3, 6, 0.05, 0.05, budget=budget)
        assert plan.bought is None
        assert str(plan).splitlines()[1] == says


def test_a_terminal_prints_the_same(run):
    words = ["plan", "--arms", "3", "--deadline", "6"]
    assert run(*words, "--budget", "3000") == (0, f"{ebr.plan(3, 6, budget=3000)}\n")
    assert run(*words, "--budget", "3000", "--delta", "0.2") == (
        0,
        f"{ebr.plan(3, 6, delta=0.2, budget=3000)}\n",
    )
    assert run(*words, "--budget", "9000", "--epsilon", "0.05") == (
        0,
        f"{ebr.plan(3, 6, 0.05, budget=9000)}\n",
    )
    assert run(*words, "--epsilon", "0.05") == (0, f"{ebr.plan(3, 6, 0.05, 0.05)}\n")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"budget": None}, "epsilon must lie in (0, 1), or a budget be given, got None"),
        ({"budget": 0}, "budget must be an integer of at least 1, got 0"),
        ({"budget": 2.5}, "budget must be an integer of at least 1, got 2.5"),
        ({"budget": True}, "budget must be an integer of at least 1, got True"),
        ({"budget": "many"}, "budget must be an integer of at least 1, got 'many'"),
        ({"budget": 10**13}, "budget must be at most 1000000000000, got 10000000000000"),
        ({"budget": 2, "deadline": 1}, "budget must be at least 3 for one round on 3 arms, got 2"),
        ({"budget": 17}, "budget must be at least 18 for 6 rounds on 3 arms, got 17"),
        ({"budget": 17, "epsilon": 0.1, "delta": 0.1}, "budget must be at least 18 for 6 rounds"),
        ({"budget": 20, "delta": 0.001}, "budget must be at least 30 for epsilon = 0.999, got 20"),
        ({"epsilon": 0.01}, "budget must be at least 42303 for delta = 0.999, got 3000"),
        ({"epsilon": 1.5}, "epsilon must lie in (0, 1), got 1.5"),
        ({"delta": 0}, "delta must lie in (0, 1), got 0"),
        ({"deadline": 0}, "deadline must be an integer of at least 1, got 0"),
        ({"algorithm": "pausing", "k": 2}, "k must be 1 for algorithm 'pausing', got 2"),
    ],
)
def test_bad_arguments_are_named_with_value_and_range_before_anything_runs(changed, says, monkeypatch):
    monkeypatch.setattr("ebr.live.typical.simulate", None)  # whoever runs it fails otherwise
    with pytest.raises(ValueError, match="^" + re.escape(says)):
        ebr.plan(**{"n_arms": 3, "deadline": 6, "budget": 3000} | changed)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "epsilon must lie in (0, 1), or a budget be given, got None"),
        (["--budget", "17"], "budget must be at least 18 for 6 rounds on 3 arms, got 17"),
        (["--budget", "1e4"], "invalid int value: '1e4'"),
    ],
)
def test_a_terminal_refuses_in_one_line(run, words, says):
    status, said = run("plan", "--arms", "3", "--deadline", "6", *words)
    assert status == 2
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert says in said


def test_starting_a_race_takes_no_budget_and_needs_its_tolerance(run, tmp_path):
    words = ["start", str(tmp_path / "trial.jsonl"), "--arms", "A", "B", "--deadline", "3"]
    assert "required: --epsilon" in run(*words)[1]
    assert "unrecognized arguments: --budget" in run(*words, "--epsilon", "0.1", "--budget", "9")[1]
    assert run(*words, "--epsilon", "0.1")[0] == 0
    with ebr.Race.open(tmp_path / "trial.jsonl") as race:
        assert race.algorithm.delta == 0.05
