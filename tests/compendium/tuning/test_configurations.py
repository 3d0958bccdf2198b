"""Tuning a learner: pulls by hand; the same race by hand, on local cores, on a cluster, and interrupted."""

from contextlib import nullcontext
from itertools import product

import numpy as np
import pandas as pd
import pytest
from clusters import Cluster, wait_for_workers
from compendium.tuning import configurations
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import ebr
from ebr.algorithms.game import drive

ARMS = configurations.configurations()
ALGORITHM = ebr.SharpElasticBatchRacing(3, 0.15, 0.4, sigma=0.1)
FEW = ["any depth, 64 pixels", "depth 6, 64 pixels", "depth 4, 2 pixels"]  # the last is dropped early


def split(seed, number):
    """100 images of the archive to train on, 50 others, and the tree's seed."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, number]))
    order = generator.permutation(configurations.archive().pool)
    return order[:100], order[100:150], int(generator.integers(2**31))


def test_a_third_of_the_images_is_set_aside():
    archive = configurations.archive()
    assert len(archive.unseen) == 1797 // 3
    assert sorted([*archive.pool, *archive.unseen]) == list(range(1797))


def test_a_pull_is_the_score_of_the_tree_on_its_split():
    images, labels = load_digits(return_X_y=True)
    for name, place in product(FEW, ((1, 0), (2, 17))):
        train, test, seed = split(*place)
        tree = DecisionTreeClassifier(**ARMS[name], random_state=seed).fit(images[train], labels[train])
        assert configurations.pull(ARMS[name], *place) == tree.score(images[test], labels[test])


@pytest.mark.parametrize("name", ARMS)
def test_a_plain_tree_is_scikit_learns_split_for_split(name):
    images, labels = load_digits(return_X_y=True)
    for place, size in (((3, 1), 100), ((3, 2), 600)):
        seed = split(*place)[2]
        order = np.random.default_rng(seed).permutation(len(labels))
        train, test = order[:size], order[size:]
        learnt = labels[train] + (labels[train] > 4)  # labels need not be 0, 1, 2, …
        theirs = DecisionTreeClassifier(**ARMS[name], random_state=seed).fit(images[train], learnt)
        ours = configurations.PlainTree(**ARMS[name], random_state=seed).fit(images[train], learnt)
        for part in ("feature", "threshold", "value"):
            assert np.array_equal(getattr(ours.tree_, part), getattr(theirs.tree_, part))
        assert np.array_equal(ours.predict(images[test]), theirs.predict(images[test]))
        assert ours.score(images[test], labels[test]) == theirs.score(images[test], labels[test])


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_no_image_is_both_learnt_and_scored_and_no_pull_sees_what_is_set_aside(monkeypatch):
    # Every image has a label of its own, which nobody can know who has not learnt that very image.
    whole = configurations.archive()
    images = np.arange(1797.0)[:, None] * np.ones(64)
    monkeypatch.setattr(
        configurations, "archive", lambda: whole._replace(images=images, labels=np.arange(1797))
    )
    arm = ARMS["any depth, 64 pixels"]
    assert {configurations.pull(arm, 1, number) for number in range(10)} == {0.0}
    assert {configurations._scores([arm], 1, n, unseen=True)[0] for n in range(10)} == {(0.0, 0.0)}
    # Without the archive's third a pull is the same: it does not even look at it.
    blank = np.where(np.isin(np.arange(1797), whole.unseen)[:, None], np.nan, whole.images)
    monkeypatch.setattr(configurations, "archive", lambda: whole._replace(images=blank))
    found = configurations.pull(arm, 3, 4)
    monkeypatch.setattr(configurations, "archive", lambda: whole)
    assert configurations.pull(arm, 3, 4) == found


def test_an_evaluation_is_its_single_pulls_after_those_that_were_taken():
    one, other = FEW[1], FEW[0]
    found = configurations.evaluate({one: 3, other: 2}, {one: 5}, seed=4)
    assert found == {
        one: [configurations.pull(ARMS[one], 4, number) for number in (5, 6, 7)],
        other: [configurations.pull(ARMS[other], 4, number) for number in (0, 1)],
    }


def test_a_bank_has_every_configuration_on_the_splits_of_the_pulls(monkeypatch):
    monkeypatch.setattr(configurations, "workers", nullcontext)
    found = configurations.bank(3, seed=5)
    assert found.scores.shape == found.unseen.shape == (3, 12)
    expected = [[configurations.pull(arm, 5, number) for arm in ARMS.values()] for number in range(3)]
    assert found.scores.tolist() == expected
    images, labels, _, unseen = configurations.archive()
    train, _, seed = split(5, 2)
    tree = DecisionTreeClassifier(**ARMS[FEW[1]], random_state=seed).fit(images[train], labels[train])
    assert found.unseen[2, list(ARMS).index(FEW[1])] == tree.score(images[unseen], labels[unseen])


def new_race(journal):
    with pytest.warns(UserWarning, match="guarantee is void unless"):
        return ebr.Race(ALGORITHM, FEW, journal)


@pytest.fixture(scope="module")
def expected():
    """The race by hand: each round's pulls, one after the other."""
    pulls = ALGORITHM.pulls_by_round(3)
    rewards = {name: [configurations.pull(ARMS[name], 1, k) for k in range(pulls[-1])] for name in FEW}
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


@pytest.mark.slow
def test_a_race_on_local_cores_is_the_race_by_hand(tmp_path, monkeypatch, expected):
    monkeypatch.delenv("DASK", raising=False)
    with new_race(tmp_path / "local.jsonl") as race:
        for _ in range(2):  # nothing is left to do the second time
            configurations.run(race, seed=1)
            assert outcome(race) == expected


@pytest.mark.slow
def test_a_race_on_a_cluster_is_the_same_even_if_it_is_interrupted(tmp_path, monkeypatch, expected):
    evaluate, rounds = configurations.evaluate, []

    def interrupt(*arguments):
        rounds.append(evaluate(*arguments))
        if len(rounds) == 2:  # the pulls are done, and lost
            raise KeyboardInterrupt
        return rounds[-1]

    with Cluster() as cluster:
        monkeypatch.setenv("DASK", cluster.address)
        wait_for_workers(cluster.address, 2)
        monkeypatch.setattr(configurations, "evaluate", interrupt)
        with new_race(tmp_path / "cut.jsonl") as race, pytest.raises(KeyboardInterrupt):
            configurations.run(race, seed=1)
        assert not race.finished
        with ebr.Race.open(tmp_path / "cut.jsonl") as race:
            configurations.run(race, seed=1)
        assert outcome(race) == expected
    assert rounds[1] == rounds[2]


def test_the_sigma_needed_is_that_of_the_moment_generating_function():
    # Of ±a, each with probability ½, it is cosh(λa); of 3b with probability ¼ and −b with ¾, by hand.
    a, b, grid = 0.1, 0.05, [-20, -1e-3, 5, 20]
    coins = pd.DataFrame({"fair": [0.7 + a, 0.7 - a] * 2, "skewed": [3 * b, -b, -b, -b]})
    fair = [np.sqrt(2 * np.log(np.cosh(x * a))) / abs(x) for x in grid]
    skewed = [np.sqrt(2 * np.log(np.exp(3 * x * b) / 4 + 3 * np.exp(-x * b) / 4)) / abs(x) for x in grid]
    found = configurations.sigma_needed(coins, grid)
    assert found.index.tolist() == grid
    assert found.tolist() == pytest.approx(np.maximum(fair, skewed))
    assert (np.array(skewed) > fair).tolist() == [False, False, False, True]  # each has its turn
