"""The simulated clinical trial: its numbers, its rounds after a kill, and its table of designs."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
from compendium import clinical_trial
from compendium.lineup import LOOKS
from scipy.stats import beta

import ebr

RATES = {
    "7.5 µg split, aluminium": (0.695, "Liang"),
    "MF59 adjuvant": (0.795, "Huijskens"),
    "30 µg split": (0.928, "Liang"),
    "30 µg split, another": (0.933, "Greenberg"),  # 112 of 120
    "15 µg split": (0.967, "Greenberg"),  # 116 of 120
}
BEST, BEST_RATE = "15 µg split", 0.967
ALGORITHM = ebr.SharpElasticBatchRacing(4, 0.03, 0.2)


def test_the_candidates_respond_as_often_as_was_published():
    assert list(clinical_trial.CANDIDATES) == list(RATES)
    for name, (rate, author) in RATES.items():
        assert clinical_trial.CANDIDATES[name][0] == rate
        assert clinical_trial.CANDIDATES[name][1].startswith(f"{author} et al.")
    assert clinical_trial.problem().means.tolist() == [rate for rate, _ in RATES.values()]


def test_patients_respond_or_do_not_as_often_as_their_candidate_says():
    asked = dict.fromkeys(RATES, 20000)
    seen = clinical_trial.patients(asked, np.random.default_rng(1))
    assert list(seen) == list(asked)
    for name, (rate, _) in RATES.items():
        assert len(seen[name]) == 20_000
        assert set(seen[name].tolist()) == {0, 1}
        assert abs(seen[name].mean() - rate) < 5 * math.sqrt(rate * (1 - rate) / 20_000)


def run(journal, seed=1):
    with ebr.Race(ALGORITHM, list(RATES), journal) as race:
        while not race.finished:
            clinical_trial.round_of(race, seed)
        return race.history, race.recommendation


def test_a_round_repeated_after_a_kill_brings_the_same(tmp_path):
    history, chosen = run(tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    tells = [number for number, line in enumerate(lines) if line.startswith(b'{"event": "tell"')]
    assert len(tells) == history["round"].max() >= 2
    for number in tells:  # asked for, the patients seen, and killed before or while they were written down
        for torn in (b"", lines[number][:30]):
            journal = tmp_path / f"killed-{number}-{len(torn)}.jsonl"
            journal.write_bytes(b"".join(lines[:number]) + torn)
            if torn:
                with pytest.warns(UserWarning, match="torn"):
                    ebr.Race.open(journal).close()
            again, also_chosen = run(journal)
            assert again.equals(history)
            assert also_chosen == chosen
    assert not run(tmp_path / "other.jsonl", seed=2)[0].equals(history)


def test_the_rounds_of_a_trial_are_different_patients(tmp_path):
    history, _ = run(tmp_path / "trial.jsonl")
    best = history[history["arm"] == BEST].set_index("round")
    with ebr.Race(ALGORITHM, list(RATES), tmp_path / "again.jsonl") as race:
        first = clinical_trial.patients(race.ask(), np.random.default_rng(np.random.SeedSequence([1, 1])))
    assert best["sum"][1] == first[BEST].sum()
    share = best["sum"] / best["pulls"]
    assert share[1] != share[2]


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5])
def test_in_the_hardest_case_all_but_the_best_candidate_are_wrong(epsilon):
    hard = clinical_trial.hardest(epsilon)
    assert hard.n_arms == 5
    assert hard.means.max() == BEST_RATE
    assert hard.is_good(range(5), epsilon).sum() == 1
    assert np.sort(hard.means)[:4] == pytest.approx(BEST_RATE - epsilon, rel=1e-5)
    assert hard.best == 4  # ties go to the others


@pytest.fixture(scope="module", params=["published", "hardest"])
def compared(request):
    candidates = clinical_trial.problem() if request.param == "published" else clinical_trial.hardest(0.1)
    return candidates, clinical_trial.compare(candidates, 3, 0.1, 0.3, 400, seed=1)


def test_the_table_of_designs_is_what_plain_counts_of_the_same_trials_say(compared):
    candidates, table = compared
    designs = {
        "fixed design, the paper's": ebr.Passive(0.1, 0.3),
        "fixed design, sharp": ebr.SharpElasticBatchRacing(1, 0.1, 0.3),
        "Algorithm 1": ebr.ElasticBatchRacing(3, 0.1, 0.3),
        "sharp EBR": ebr.SharpElasticBatchRacing(3, 0.1, 0.3),
        "sequential oracle": ebr.SequentialRacing(0.1, 0.3),
    }
    assert table.index.tolist() == list(designs)
    for name, algorithm in designs.items():
        row, result = table.loc[name], ebr.simulate(algorithm, candidates, 400, seed=1)
        arms, pulls = result.arm.tolist(), sorted(result.pulls.tolist())
        errors = sum(max(candidates.means) - candidates.means[arm] >= 0.1 for arm in arms)
        assert row["subjects"] == pytest.approx(sum(pulls) / 400)
        assert pulls[358] <= row["nine_in_ten"] <= pulls[360]
        assert row["months"] == pytest.approx(2 * sum(result.rounds.tolist()) / 400)
        assert row["best"] == arms.count(candidates.means.tolist().index(BEST_RATE)) / 400
        assert row["errors"] == errors
        assert row["upper"] == pytest.approx(beta.ppf(0.95, errors + 1, 400 - errors))


def test_fixed_designs_take_one_round_of_two_months_and_the_oracle_two_months_a_subject(compared):
    _, table = compared
    fixed = table.loc["fixed design, the paper's"]
    # 80 σ² log(n/δ) / ε² = 20 log(5/0.3) / 0.01 subjects of each; the sharp one, log(4/δ) / ε².
    assert fixed["subjects"] == fixed["nine_in_ten"] == 5 * math.ceil(2000 * math.log(5 / 0.3))
    assert table.loc["fixed design, sharp", "subjects"] == 5 * (math.floor(100 * math.log(4 / 0.3)) + 1)
    assert table["months"].iloc[:2].tolist() == [2, 2]
    assert table["months"].iloc[2:4].between(2, 6).all()
    oracle = table.loc["sequential oracle"]
    assert oracle["months"] == pytest.approx(2 * oracle["subjects"])


def test_the_comparison_sees_errors_where_there_are_some():
    table = clinical_trial.compare(clinical_trial.hardest(0.1), 3, 0.1, 0.9, 400, seed=1)
    assert table.loc["sharp EBR", "errors"] > 0
    assert table.loc["sharp EBR", "best"] == 1 - table.loc["sharp EBR", "errors"] / 400


def test_the_readable_table_has_every_number(compared):
    _, table = compared
    found = clinical_trial.shown(table)
    assert found.index.tolist() == table.index.tolist()
    for name, row in table.iterrows():
        words = found.loc[name].tolist()
        assert [word.replace(",", "") for word in words[:2]] == [
            f"{round(row['subjects'])}",
            f"{round(row['nine_in_ten'])}",
        ]
        assert float(words[2].replace(",", "")) == pytest.approx(row["months"], abs=0.05)
        assert float(words[3].rstrip("%")) == pytest.approx(100 * row["best"], abs=0.05)
        assert words[4] == row["errors"]
        assert float(words[5].rstrip("%")) == pytest.approx(100 * row["upper"], abs=0.005)


def test_the_figure_has_a_marker_and_a_name_for_every_design(compared):
    _, table = compared
    axis = clinical_trial.draw_designs(table).axes[0]
    plt.close(axis.figure)
    *markers, year = axis.lines
    places = [(line.get_xdata()[0], line.get_ydata()[0]) for line in markers]
    assert places == list(zip(table["months"], table["subjects"], strict=True))
    assert len({(line.get_color(), line.get_marker()) for line in markers}) == len(table)
    assert [text.get_text() for text in axis.texts] == [*table.index, "a year"]
    assert year.get_xdata() == [12, 12]
    assert markers[2].get_marker() == LOOKS["EBR"].marker
