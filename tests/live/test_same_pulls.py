"""One problem, one race: simulate, Race, plan and the command line ask the same pulls, round by round."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ebr
from ebr.live.cli import main
from ebr.models import IN_UNIT, REWARDS
from ebr.simulation import simulate

OLD = sorted((Path(__file__).parent / "format-1").glob("*.jsonl"))
FORMAT_2 = sorted((Path(__file__).parent / "format-2").glob("*.jsonl"))
FORMAT_3 = sorted((Path(__file__).parent / "format-3").glob("*.jsonl"))
MEANS = [0.2, 0.55, 0.6]
ARMS = ["A", "B", "C"]
SUPPORTS = {"Bernoulli": (0.0, 1.0), "bounded": (0.0, 1.0), "Gaussian": None, "sub-Gaussian": None}
MAKERS = {
    "elastic": ebr.ElasticBatchRacing,
    "sharp": ebr.SharpElasticBatchRacing,
    "pausing": ebr.PausingElasticBatchRacing,
    "aggressive": ebr.AggressiveElimination,
    "passive": lambda deadline, epsilon, delta: ebr.Passive(epsilon, delta),
    "sequential": lambda deadline, epsilon, delta: ebr.SequentialRacing(epsilon, delta),
}


def simulated(algorithm, problem):
    """The rounds of one simulated race: what was asked for, and the sums."""
    rounds = []
    (block,) = simulate.blocks(algorithm, problem, runs=1, seed=1)
    simulate.race(algorithm, problem, *block, lambda pulls, sums: rounds.append((pulls[0], sums[0])))
    return rounds


def raced(algorithm, journal, rounds, **known):
    """What a `Race` asks for that is told the same sums."""
    asked = []
    with ebr.Race(algorithm, ARMS, journal, **known) as race:
        for pulls, sums in rounds:
            asked.append([race.ask().get(arm, 0) for arm in ARMS])
            told = zip(ARMS, pulls.tolist(), sums.tolist(), strict=True)
            race.tell({arm: (count, total) for arm, count, total in told if count})
        assert race.finished
    return asked


@pytest.mark.parametrize("model", ["Bernoulli", "Gaussian"])  # what problems say of themselves
@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deadline=st.integers(1, 6), epsilon=st.floats(0.1, 0.6), delta=st.floats(0.02, 0.5))
def test_a_race_asks_what_a_simulation_asks(
    name, model, deadline, epsilon, delta, tmp_path_factory, unflushed
):
    algorithm = MAKERS[name](deadline, epsilon, delta)
    problem = ebr.Bernoulli(MEANS) if model == "Bernoulli" else ebr.Gaussian(MEANS, 0.5)
    rounds = simulated(algorithm, problem)[:300]
    known = {"support": SUPPORTS[model], "rewards": model}
    journal = tmp_path_factory.mktemp("race") / "trial.jsonl"
    if len(rounds) == 300:  # a sequential race may take thousands of rounds: its first ones
        with ebr.Race(algorithm, ARMS, journal, **known) as race:
            assert list(race.ask().values()) == rounds[0][0].tolist()
        return
    assert raced(algorithm, journal, rounds, **known) == [pulls.tolist() for pulls, _ in rounds]


@pytest.mark.parametrize("kind", ["sharp", "pausing"])
@pytest.mark.parametrize("rewards", [None, *REWARDS])
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deadline=st.integers(1, 6), epsilon=st.floats(0.05, 0.6), delta=st.floats(0.02, 0.5))
def test_a_plan_and_the_command_line_ask_the_same(
    kind, rewards, deadline, epsilon, delta, tmp_path_factory, capsys, unflushed, few_experiments
):
    planned = ebr.plan(3, deadline, epsilon, delta, rewards=rewards, algorithm=kind)
    first = planned.rounds["pulls"].iloc[0]
    folder = tmp_path_factory.mktemp("race")
    support = [] if rewards in (None, *IN_UNIT) else ["--unbounded"]
    words = ["--deadline", deadline, "--epsilon", epsilon, "--delta", delta, "--algorithm", kind]
    words += ["--rewards", rewards] if rewards else []
    journal = folder / "line.jsonl"
    assert main(["start", str(journal), "--arms", *ARMS, *map(str, words), *support]) == 0
    with ebr.Race.open(journal) as race:
        assert race.ask() == dict.fromkeys(ARMS, first)
    capsys.readouterr()
    with ebr.Race(planned.algorithm, ARMS, folder / "race.jsonl", None if support else (0, 1)) as race:
        assert race.ask() == dict.fromkeys(ARMS, first)
    # Of a Bernoulli problem the pausing race knows more than of rewards of which nothing is said.
    if rewards == "Bernoulli" or (rewards is None and kind == "sharp"):
        (pulls, _), *_ = simulated(planned.algorithm, ebr.Bernoulli(MEANS))
        assert pulls.tolist() == [first] * 3


def test_the_pulls_that_differed():
    """78 under `simulate` where `Race` and `plan` asked 58: they did not say that rewards lie in [0, 1]."""
    algorithm = ebr.SharpElasticBatchRacing(6, 0.05, 0.05)
    assert simulated(algorithm, ebr.Bernoulli(MEANS))[0][0].tolist() == [78] * 3
    assert ebr.plan(3, 6, 0.05).rounds["pulls"].iloc[0] == 78


def test_a_race_of_gaussian_rewards_within_bounds_is_warned_of_as_a_simulation_is(tmp_path):
    algorithm = ebr.SharpElasticBatchRacing(3, 0.2, 0.1, rewards="Gaussian")
    with pytest.warns(UserWarning, match="not Gaussian: the algorithm's guarantee is void"):
        ebr.simulate(algorithm, ebr.Bernoulli(MEANS))
    with pytest.warns(UserWarning, match="not Gaussian: the algorithm's guarantee is void") as told:
        ebr.Race(algorithm, ARMS, tmp_path / "trial.jsonl").close()
    assert len(told) == 1


@pytest.mark.parametrize("old", FORMAT_2, ids=lambda path: path.stem)
def test_a_journal_of_format_2_goes_on_as_it_began(old, tmp_path):
    journal = tmp_path / old.name
    journal.write_bytes(old.read_bytes())
    with ebr.Race.open(journal) as race:
        asked, algorithm = race.asked, race.algorithm
        assert asked == race.ask()
        assert "reported" not in race.history
    known = {"support": None} if "unbounded" in old.stem else {}
    known = {"support": None, "rewards": "Gaussian"} if "gaussian" in old.stem else known
    with pytest.raises(ebr.JournalError, match=r"what is known of the rewards is .* and 'Bernoulli' here"):
        ebr.Race(algorithm, ARMS, journal, rewards="Bernoulli")
    with ebr.Race(algorithm, ARMS, journal, **known) as race:
        assert race.ask() == asked
        race.tell({arm: (pulls, pulls / 3) for arm, pulls in asked.items()})


def test_there_are_journals_of_format_2():
    assert {path.stem for path in FORMAT_2} >= {
        "sharp",
        "sharp-gaussian",
        "sharp-unbounded",
        "elastic",
        "sequential",
    }
    assert all('"format": 2' in path.read_text().splitlines()[0] for path in FORMAT_2)


@pytest.mark.parametrize("old", FORMAT_3, ids=lambda path: path.stem)
def test_a_journal_of_format_3_goes_on_as_it_began(old, tmp_path):
    """What is asked now was asked when the journal was written, by the ebr of then."""
    journal = tmp_path / old.name
    journal.write_bytes(old.read_bytes())
    last = json.loads(old.read_text().splitlines()[-1])
    assert (last["event"], last["round"]) == ("ask", 2)
    with ebr.Race.open(journal) as race:
        assert race.ask() == last["pulls"]
        algorithm = race.algorithm
    known = {"support": None, "rewards": "Gaussian"} if "gaussian" in old.stem else {}
    with ebr.Race(algorithm, ARMS, journal, **known, rounding="rounded" in old.stem) as race:
        race.tell({arm: (pulls, pulls // 2) for arm, pulls in race.ask().items()}, round=2)
        assert race.round == 3 or race.finished


def test_there_are_journals_of_format_3():
    assert {path.stem for path in FORMAT_3} >= {"sharp", "sharp-two-best", "pausing-rounded", "sequential"}
    assert all('"format": 3' in path.read_text().splitlines()[0] for path in FORMAT_3)


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
def test_a_journal_of_format_1_goes_on_as_it_began(old, tmp_path):
    journal = tmp_path / old.name
    journal.write_bytes(old.read_bytes())
    with ebr.Race.open(journal) as race:
        asked, algorithm = race.asked, race.algorithm
        assert asked == race.ask()
    support = None if "unbounded" in old.stem else (0, 1)
    with ebr.Race(algorithm, ARMS, journal, support) as race:  # the same race, by its parameters
        assert race.ask() == asked
        race.tell({arm: (pulls, pulls // 2) for arm, pulls in asked.items()})
    with pytest.raises(ebr.JournalError, match="another race"):
        ebr.Race(algorithm, ["A", "B"], journal, support)


def test_there_are_journals_of_format_1_of_every_kind_that_was_told_something():
    assert {path.stem for path in OLD} >= {"sharp", "sharp-bounded", "sequential", "sequential-unbounded"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sharp = ebr.Race.open(OLD[-1], readonly=True)
    # Told nothing of its rewards, so that its counts are those of sub-Gaussian ones.
    told = np.diff(ebr.SharpElasticBatchRacing(6, 0.05, 0.05).pulls_by_round(3), prepend=0)
    assert sharp.asked is not None
    assert sharp.history["pulls"].iloc[0] == told[0] == 58
