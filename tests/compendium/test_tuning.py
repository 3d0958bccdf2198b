"""Tuning a learner: pulls by hand; the same race by hand, on local cores, on a cluster, and interrupted."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from clusters import Cluster, wait_for_workers
from compendium import tuning
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import ebr
from ebr.algorithms.game import drive

ARMS = tuning.configurations()
ALGORITHM = ebr.SharpElasticBatchRacing(3, 0.15, 0.4, sigma=0.1)
FEW = ["k = 1, uniform", "k = 12, distance", "k = 100, uniform"]  # the last is dropped at once


def split(seed, arm, number):
    """200 images to train on and 200 others."""
    order = np.random.default_rng(np.random.SeedSequence([seed, arm, number])).permutation(1797)
    return order[:200], order[200:400]


def test_there_are_twelve_configurations():
    assert len(ARMS) == 12
    assert ARMS["k = 25, distance"] == {"n_neighbors": 25, "weights": "distance"}
    pairs = {tuple(arm.values()) for arm in ARMS.values()}
    assert len(pairs) == 12
    assert {k for k, _ in pairs} == {1, 3, 6, 12, 25, 50, 100}


@pytest.mark.parametrize("name", ["k = 1, uniform", "k = 6, distance", "k = 100, uniform"])
def test_a_pull_is_the_score_of_the_classifier_on_its_split(name):
    images, labels = load_digits(return_X_y=True)
    for place in ((1, 0, 0), (2, 5, 17)):
        train, test = split(*place)
        learner = KNeighborsClassifier(**ARMS[name], algorithm="brute").fit(images[train], labels[train])
        assert tuning.pull(ARMS[name], *place) == learner.score(images[test], labels[test])


def test_one_neighbour_is_the_nearest_image():
    images, labels = load_digits(return_X_y=True)
    train, test = split(1, 0, 0)
    distances = ((images[test][:, None] - images[train]) ** 2).sum(axis=2)
    right = labels[train][distances.argmin(axis=1)] == labels[test]
    assert tuning.pull(ARMS["k = 1, uniform"], 1, 0, 0) == right.mean() > 0.9


def test_a_pull_is_the_same_every_time_and_another_for_another_number_arm_or_seed():
    arm = ARMS["k = 12, uniform"]
    table = np.array([tuning.pull(arm, *place) for place in np.ndindex(3, 3, 3)]).reshape(3, 3, 3)
    assert [tuning.pull(arm, 2, 2, number) for number in range(3)] == table[2, 2].tolist()
    for axis in range(3):
        assert (np.ptp(table, axis=axis) > 0).mean() > 0.7  # two pulls may agree by chance


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_no_image_is_both_learnt_and_scored(monkeypatch):
    # Every image has a label of its own, which nobody can know who has not learnt that very image.
    images = np.arange(1797.0)[:, None]
    monkeypatch.setattr(tuning, "_digits", lambda: (images, np.arange(1797)))
    assert {tuning.pull(ARMS["k = 1, uniform"], 1, 0, number) for number in range(20)} == {0.0}
    monkeypatch.setattr(tuning, "_digits", lambda: (images, np.zeros(1797, dtype=int)))
    assert tuning.pull(ARMS["k = 1, uniform"], 1, 0, 0) == 1


def test_an_evaluation_is_its_single_pulls_after_those_that_were_taken():
    taken = {"k = 3, distance": 5}
    found = tuning.evaluate({"k = 3, distance": 3, "k = 1, uniform": 2}, taken, seed=4)
    assert found == {
        "k = 3, distance": [tuning.pull(ARMS["k = 3, distance"], 4, 7, number) for number in (5, 6, 7)],
        "k = 1, uniform": [tuning.pull(ARMS["k = 1, uniform"], 4, 0, number) for number in (0, 1)],
    }
    assert list(found) == ["k = 3, distance", "k = 1, uniform"]
    for number, reward in zip((5, 6, 7), found["k = 3, distance"], strict=True):
        assert tuning.evaluate({"k = 3, distance": 1}, {"k = 3, distance": number}, 4) == {
            "k = 3, distance": [reward]
        }


@pytest.mark.slow
def test_exhaustive_evaluation_pulls_everything_equally_often(monkeypatch):
    monkeypatch.setattr(tuning, "workers", nullcontext)
    found = tuning.exhaustive(2, seed=3)
    assert list(found) == list(ARMS)
    for place, (name, arm) in enumerate(ARMS.items()):
        assert found[name].tolist() == [tuning.pull(arm, 3, place, number) for number in (0, 1)]


def new_race(journal):
    with pytest.warns(UserWarning, match="guarantee is void unless"):
        return ebr.Race(ALGORITHM, FEW, journal)


@pytest.fixture(scope="module")
def expected():
    """The race by hand: each round's pulls, one after the other."""
    pulls = ALGORITHM.pulls_by_round(3)
    rewards = {
        name: [tuning.pull(ARMS[name], 1, list(ARMS).index(name), k) for k in range(pulls[-1])]
        for name in FEW
    }
    taken, rows = np.zeros(3, dtype=int), []

    def respond(asked):
        nonlocal taken
        sums = [sum(rewards[name][a : a + b]) for name, a, b in zip(FEW, taken, asked[0], strict=True)]
        taken += asked[0]
        rows.extend((name, a, b) for name, a, b in zip(FEW, asked[0].tolist(), sums, strict=True) if a)
        return np.array([sums])

    (arm,) = drive(ALGORITHM.play(3, rewards="bounded"), respond)
    return rows, FEW[arm]


def outcome(race):
    rows = race.history[["arm", "pulls", "sum"]].itertuples(index=False, name=None)
    return [(arm, pulls, pytest.approx(total)) for arm, pulls, total in rows], race.recommendation


def test_the_race_has_several_rounds_and_drops_somebody(expected):
    rows, _ = expected
    assert 5 <= sum(pulls for _, pulls, _ in rows) <= 30
    assert len({sum(name == arm for name, _, _ in rows) for arm in FEW}) > 1
    assert len(rows) > 4


@pytest.mark.slow
def test_a_race_on_local_cores_is_the_race_by_hand(tmp_path, monkeypatch, expected):
    monkeypatch.delenv("DASK", raising=False)
    with new_race(tmp_path / "local.jsonl") as race:
        tuning.run(race, seed=1)
        assert outcome(race) == expected
        with pytest.raises(ValueError, match="the race has ended"):
            race.ask()
        tuning.run(race, seed=1)  # nothing left to do
        assert outcome(race) == expected


@pytest.mark.slow
def test_a_race_on_a_cluster_is_the_same_even_if_it_is_interrupted(tmp_path, monkeypatch, expected):
    evaluate, rounds = tuning.evaluate, []

    def interrupt(*arguments):
        rounds.append(evaluate(*arguments))
        if len(rounds) == 2:  # the pulls are done, and lost
            raise KeyboardInterrupt
        return rounds[-1]

    with Cluster() as cluster:
        monkeypatch.setenv("DASK", cluster.address)
        wait_for_workers(cluster.address, 2)
        with new_race(tmp_path / "whole.jsonl") as race:
            tuning.run(race, seed=1)
        assert outcome(race) == expected
        monkeypatch.setattr(tuning, "evaluate", interrupt)
        with new_race(tmp_path / "cut.jsonl") as race, pytest.raises(KeyboardInterrupt):
            tuning.run(race, seed=1)
        assert not race.finished
        with ebr.Race.open(tmp_path / "cut.jsonl") as race:
            tuning.run(race, seed=1)
        assert outcome(race) == expected
    assert rounds[1] == rounds[2]


def test_another_seed_is_another_race(tmp_path, monkeypatch, expected):
    monkeypatch.setattr(tuning, "workers", nullcontext)
    with new_race(tmp_path / "other.jsonl") as race:
        tuning.run(race, seed=2)
    assert outcome(race)[0] != expected[0]


@pytest.mark.slow
def test_halving_fits_five_models_a_candidate_and_chooses_a_configuration():
    # 200 images to train on are four fifths of 250: 12 candidates on 250 images, then 4 on 750; 2250 there
    # are not.
    found = tuning.halving(1)
    assert found.chosen in ARMS
    assert found[1:] == (2, 5 * (12 + 4), 4 * (12 * 250 + 4 * 750))


def test_the_comparison_counts_fits_and_measures_choices_by_the_exhaustive_means(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "workers", nullcontext)
    everything = pd.DataFrame({FEW[0]: [0.9, 1.0, 0.95], FEW[1]: [0.8, 0.9, 0.91], FEW[2]: [0.1, 0.2, 0.3]})
    with new_race(tmp_path / "race.jsonl") as race:
        tuning.run(race, seed=1)
        found = tuning.comparison(race, everything, tuning.Halving(FEW[1], 2, 80, 24_000))
        fits = int(race.history["pulls"].sum())
        assert found.loc["race"].tolist()[:4] == [FEW[0], race.round, fits, 200 * fits]
    assert found.index.tolist() == ["race", "exhaustive", "HalvingRandomSearchCV"]
    assert found.loc["exhaustive"].tolist()[:4] == [FEW[0], 1, 9, 1800]
    assert found.loc["HalvingRandomSearchCV"].tolist()[:4] == [FEW[1], 2, 80, 24_000]
    assert found["below the best"].tolist() == [0, 0, 0.08]
    # The standard error of 0.9, 1 and 0.95 is 0.05 / √3.
    assert found.loc["race", "mean accuracy"] == "0.9500 ± 0.0289"


def test_the_sigma_needed_is_that_of_the_moment_generating_function():
    # Of ±a, each with probability ½, it is cosh(λa); of 3b with probability ¼ and −b with ¾, by hand.
    a, b, grid = 0.1, 0.05, [-20, -1e-3, 5, 20]
    coins = pd.DataFrame({"fair": [a, -a, a, -a], "shifted": [0.7 + a, 0.7 - a] * 2})
    fair = [np.sqrt(2 * np.log(np.cosh(x * a))) / abs(x) for x in grid]
    assert tuning.sigma_needed(coins, grid).tolist() == pytest.approx(fair)
    assert tuning.sigma_needed(coins, [1e-3]).item() == pytest.approx(a, rel=1e-6)  # the standard deviation
    skewed = [np.sqrt(2 * np.log(np.exp(3 * x * b) / 4 + 3 * np.exp(-x * b) / 4)) / abs(x) for x in grid]
    coins["skewed"] = [3 * b, -b, -b, -b]
    found = tuning.sigma_needed(coins, grid)
    assert found.index.tolist() == grid
    assert found.tolist() == pytest.approx(np.maximum(fair, skewed))
    assert (np.array(skewed) > fair).tolist() == [False, False, False, True]  # each has its turn
