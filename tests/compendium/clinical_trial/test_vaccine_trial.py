"""The simulated clinical trial: its tables, and a round that is repeated after a kill."""

import math

import pytest
from compendium.clinical_trial import vaccine_trial
from scipy.stats import beta

import ebr

RATES = {name: rate for name, (rate, _) in vaccine_trial.CANDIDATES.items()}
ALGORITHM = ebr.SharpElasticBatchRacing(4, 0.03, 0.2)


def run(journal, seed=1):
    with ebr.Race(ALGORITHM, list(RATES), journal) as race:
        while not race.finished:
            vaccine_trial.round_of(race, seed)
        return race.history, race.recommendation


def test_a_round_repeated_after_a_kill_brings_the_same(tmp_path):
    history, chosen = run(tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    tells = [number for number, line in enumerate(lines) if line.startswith(b'{"event": "tell"')]
    assert len(tells) == history["round"].max() >= 2
    for name, seen in history.groupby("arm")[["pulls", "sum"]].sum().iterrows():
        spread = math.sqrt(seen["pulls"] * RATES[name] * (1 - RATES[name]))
        assert abs(seen["sum"] - seen["pulls"] * RATES[name]) < 5 * spread
    for number in tells:  # killed after the patients were seen and before the results were written
        journal = tmp_path / f"killed-{number}.jsonl"
        journal.write_bytes(b"".join(lines[:number]))
        again, also_chosen = run(journal)
        assert again.equals(history)
        assert also_chosen == chosen
    assert not run(tmp_path / "other.jsonl", seed=2)[0].equals(history)


HARD = vaccine_trial.HARD
RATES_OF_THE_BEST = (0.5, 0.9)
EPSILON = 0.1


@pytest.fixture(scope="module")
def grid():
    return vaccine_trial.truths(EPSILON, RATES_OF_THE_BEST)


def test_the_truths_are_three_kinds_and_the_published_rates(grid):
    assert list(grid) == [
        *((kind, rate) for kind in (HARD, "all others 0.3 worse", "all alike") for rate in RATES_OF_THE_BEST),
        ("as published", 0.967),
    ]
    for (kind, rate), candidates in grid.items():
        assert candidates.n_arms == 5
        assert candidates.means.max() == rate
        right = candidates.is_good(range(5), EPSILON).sum()
        assert right == {HARD: 1, "all others 0.3 worse": 1, "all alike": 5, "as published": 3}[kind]
    assert grid[HARD, 0.9].means[:4] == pytest.approx([0.8] * 4, rel=1e-5)
    assert grid[HARD, 0.9].best == 4  # ties go to the others
    assert grid["all others 0.3 worse", 0.5].means[:4] == pytest.approx([0.2] * 4)


def test_a_design_is_compared_by_plain_counts_of_the_same_trials(grid):
    table = vaccine_trial.compare(grid, ALGORITHM, EPSILON, 300, seed=1)
    for (kind, rate), candidates in grid.items():
        (row,) = table[(table["truth"] == kind) & (table["best_rate"] == rate)].to_dict("records")
        result = ebr.simulate(ALGORITHM, candidates, 300, seed=1)
        pulls = result.pulls.tolist()
        errors = sum(max(candidates.means) - candidates.means[arm] >= 0.1 for arm in result.arm.tolist())
        assert row["subjects"] == pytest.approx(sum(pulls) / 300)
        spread = sum((x - row["subjects"]) ** 2 for x in pulls) / 299
        assert row["standard_error"] == pytest.approx(math.sqrt(spread / 300))
        assert row["rounds"] == pytest.approx(sum(result.rounds.tolist()) / 300)
        assert (row["failures"], row["errors"], row["trials"]) == (errors, errors / 300, 300)
        assert row["upper"] == pytest.approx(beta.ppf(0.9995, errors + 1, 300 - errors))
