"""The simulated clinical trial: its numbers, its rounds after a kill, and its table of designs."""

import math
from contextlib import nullcontext

import matplotlib.pyplot as plt
import pytest
from compendium.clinical_trial import trial_figures, vaccine_trial
from compendium.clinical_trial.trial_designs import DropTheLosers
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
    for number in tells:  # asked for, the patients seen, and killed before they were written down
        journal = tmp_path / f"killed-{number}.jsonl"
        journal.write_bytes(b"".join(lines[:number]))
        again, also_chosen = run(journal)
        assert again.equals(history)
        assert also_chosen == chosen
    assert not run(tmp_path / "other.jsonl", seed=2)[0].equals(history)


HARD = vaccine_trial.HARD
RATES_OF_THE_BEST = (0.5, 0.9)
EPSILON, DELTA = 0.1, 0.3


@pytest.fixture(scope="module")
def grid():
    return vaccine_trial.truths(EPSILON, RATES_OF_THE_BEST)


@pytest.fixture(scope="module")
def table(grid):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vaccine_trial, "workers", nullcontext)
        ways = vaccine_trial.designs(3, EPSILON, DELTA, 0.9)
        return vaccine_trial.over_truths(grid, ways, EPSILON, 300, seed=1)


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


def test_the_table_of_designs_is_what_plain_counts_of_the_same_trials_say(grid, table):
    ways = vaccine_trial.designs(3, EPSILON, DELTA, 0.9)
    assert table["design"].unique().tolist() == list(ways)
    assert len(table) == len(ways) * len(grid)
    for (kind, rate), candidates in list(grid.items())[::3]:
        for name, algorithm in ways.items():
            found = table[(table["truth"] == kind) & (table["best_rate"] == rate) & (table["design"] == name)]
            (row,) = found.to_dict("records")
            result = ebr.simulate(algorithm, candidates, 300, seed=1)
            arms, pulls = result.arm.tolist(), sorted(result.pulls.tolist())
            errors = sum(max(candidates.means) - candidates.means[arm] >= 0.1 for arm in arms)
            assert row["subjects"] == pytest.approx(sum(pulls) / 300)
            spread = sum((x - row["subjects"]) ** 2 for x in pulls) / 299
            assert row["standard_error"] == pytest.approx(math.sqrt(spread / 300))
            assert pulls[268] <= row["nine_in_ten"] <= pulls[270]
            assert row["months"] == pytest.approx(2 * sum(result.rounds.tolist()) / 300)
            assert row["best"] == arms.count(candidates.means.tolist().index(rate)) / 300
            assert row["errors"] == errors / 300
            assert row["upper"] == pytest.approx(beta.ppf(0.9995, errors + 1, 300 - errors))
            assert row["trials"] == 300


def test_the_readable_table_has_every_number(table):
    found = vaccine_trial.shown(table, HARD, 0.9)
    rows = table[(table["truth"] == HARD) & (table["best_rate"] == 0.9)].set_index("design")
    assert found.index.tolist() == rows.index.tolist()
    for name, row in rows.iterrows():
        words = found.loc[name].tolist()
        numbers = [float(word.replace(",", "").rstrip("%")) for word in words[:5]]
        assert numbers[:2] == [round(row["subjects"]), round(row["nine_in_ten"])]
        told = [row["months"], 100 * row["best"], 100 * row["errors"]]
        assert numbers[2:] == pytest.approx(told, abs=0.051)
        assert words[5:] == [f"{row['lower']:.1%} to {row['upper']:.1%}", vaccine_trial.GUARANTEES[name]]


def test_the_cheapest_are_found_with_and_without_a_proof(table):
    found = vaccine_trial.cheapest(table)
    assert len(found) == 7
    part = table[(table["truth"] == HARD) & (table["best_rate"] == 0.5)].set_index("design")["subjects"]
    proved = part[["Algorithm 1", "fixed, the paper's", "fixed, exact", "sharp EBR"]]
    for column, rows in (("subjects", part.drop("sharp EBR, loosened")), ("with a proof", proved)):
        assert found.loc[(HARD, "0.5"), f"fewest {column}"] == f"{rows.idxmin()}: {rows.min():,.0f}"


def test_a_single_round_is_where_all_trials_end():
    found = vaccine_trial.endings(
        ebr.SharpElasticBatchRacing(3, 0.1, 0.1), vaccine_trial.one_better(0.5, 0), (1, 2), 200
    )
    looks = ebr.SharpElasticBatchRacing(1, 0.1, 0.1).pulls_by_round(5, "bounded")
    assert found.loc[1].tolist() == [f"{5 * looks[0]:,} ± 0", f"100% at {looks[0]:,}", ""]


def test_a_second_candidate_is_between_the_best_and_the_others():
    found = vaccine_trial.with_a_second(DropTheLosers(0.2, 0.2), 0.6, 0.2, 2000, seed=1)
    shares = [float(text.split("%")[0]) for text in found.loc["errors"]]
    assert found.columns.tolist() == ["0 ε", "0.25 ε", "0.5 ε", "0.75 ε", "1 ε"]
    assert shares[0] < shares[-1]
    assert shares[-1] == pytest.approx(20, abs=6)


def test_the_figure_has_a_curve_for_every_design_and_a_panel_for_every_kind(table):
    figure = trial_figures.draw_designs(table)
    plt.close(figure)
    assert [axis.get_title() for axis in figure.axes] == [HARD, "all others 0.3 worse", "all alike"]
    for axis in figure.axes:
        for drawn, name in zip(axis.containers, vaccine_trial.GUARANTEES, strict=True):
            rows = table[(table["truth"] == axis.get_title()) & (table["design"] == name)]
            assert drawn.lines[0].get_ydata().tolist() == rows["subjects"].tolist()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(vaccine_trial.GUARANTEES)
