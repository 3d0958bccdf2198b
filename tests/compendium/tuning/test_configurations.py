"""Tuning a learner: pulls and the search by hand, and the same search on a cluster."""

from contextlib import nullcontext
from itertools import product

import numpy as np
import pandas as pd
import pytest
from compendium.tuning import configurations, search_methods
from distributed import LocalCluster
from sklearn.datasets import load_digits
from sklearn.model_selection import ShuffleSplit
from sklearn.tree import DecisionTreeClassifier

ARMS = configurations.configurations()
FEW = ["any depth, 64 pixels", "depth 6, 64 pixels", "depth 4, 2 pixels"]


def split(seed, number):
    """The split by hand: 100 images to train on, 50 other ones, and the tree's seed."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, number]))
    order = generator.permutation(configurations.archive().pool)
    return order[:100], order[100:150], int(generator.integers(2**31))


def pull(arm, seed, number, unseen=False):
    """The accuracy of an arm on one split of the bank."""
    return configurations._scores([arm], seed, number, unseen=unseen)[0][0]


def test_a_third_of_the_images_is_set_aside():
    archive = configurations.archive()
    assert len(archive.unseen) == 1797 // 3
    assert sorted([*archive.pool, *archive.unseen]) == list(range(1797))


def test_a_pull_is_the_score_of_the_tree_on_its_split():
    images, labels = load_digits(return_X_y=True)
    for name, place in product(FEW, ((1, 0), (2, 17))):
        train, test, seed = split(*place)
        tree = DecisionTreeClassifier(**ARMS[name], random_state=seed).fit(images[train], labels[train])
        assert pull(ARMS[name], *place) == tree.score(images[test], labels[test])


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_no_image_is_both_learnt_and_scored_and_no_pull_sees_what_is_set_aside(monkeypatch):
    # Every image has a label of its own, which only a tree trained on that image can know.
    whole = configurations.archive()
    images = np.arange(1797, dtype=np.float32)[:, None] * np.ones(64, dtype=np.float32)
    monkeypatch.setattr(
        configurations, "archive", lambda: whole._replace(images=images, labels=np.arange(1797))
    )
    arm = ARMS["any depth, 64 pixels"]
    assert {pull(arm, 1, number) for number in range(10)} == {0.0}
    assert {configurations._scores([arm], 1, n, unseen=True)[0] for n in range(10)} == {(0.0, 0.0)}
    # A pull does not depend on the third that is set aside.
    blank = np.where(np.isin(np.arange(1797), whole.unseen)[:, None], np.nan, whole.images)
    monkeypatch.setattr(configurations, "archive", lambda: whole._replace(images=blank))
    found = pull(arm, 3, 4)
    monkeypatch.setattr(configurations, "archive", lambda: whole)
    assert pull(arm, 3, 4) == found


def test_a_bank_has_every_configuration_on_the_splits_of_the_pulls(monkeypatch):
    monkeypatch.setattr(configurations, "workers", nullcontext)
    found = configurations.bank(3, seed=5)
    assert found.scores.shape == found.unseen.shape == (3, 12)
    expected = [[pull(arm, 5, number) for arm in ARMS.values()] for number in range(3)]
    assert found.scores.tolist() == expected
    images, labels, _, unseen = configurations.archive()
    train, _, seed = split(5, 2)
    tree = DecisionTreeClassifier(**ARMS[FEW[1]], random_state=seed).fit(images[train], labels[train])
    assert found.unseen[2, list(ARMS).index(FEW[1])] == tree.score(images[unseen], labels[unseen])


@pytest.fixture(scope="module")
def race():
    return configurations.search(deadline=3, epsilon=0.1, delta=0.3, spread=0.1, seed=1)


def test_the_search_is_on_images_that_are_not_set_aside_and_its_candidates_are_the_arms(race):
    assert race.cv_results_["params"] == [dict(arm) for arm in ARMS.values()]
    assert race.n_features_in_ == 64
    images, labels, pool, _ = configurations.archive()
    # The first split and its seed by hand. A round's seeds are drawn before its splits.
    random = np.random.RandomState(1)
    first = int(race.race_.pulls_by_round(12)[0])
    seed = int(random.randint(2**31, size=first)[0])
    cv = ShuffleSplit(first, train_size=100, test_size=50, random_state=random)
    (train, test), *_ = cv.split(pool)
    for place, name in enumerate(ARMS):
        tree = DecisionTreeClassifier(**ARMS[name], random_state=seed)
        tree.fit(images[pool[train]], labels[pool[train]])
        assert race.scores_[0, place] == tree.score(images[pool[test]], labels[pool[test]])


def test_the_race_of_the_comparison_is_that_of_the_search(race):
    assert search_methods.race_of(3, 0.1, 0.3, 0.1) == race.race_
    found = search_methods.raced(race.race_, np.nan_to_num(race.scores_)[None])
    assert found.arm.tolist() == [race.best_index_]
    assert found.fits.tolist() == [race.cv_results_["pulls"].sum()]
    assert np.isnan(race.scores_).any()


def test_configurations_are_ranked_by_how_far_below_the_best_they_may_be(race):
    ranked = configurations.ranked(race).set_index("arm")
    assert ranked["within"].is_monotonic_increasing
    for number, arm in enumerate(ARMS):  # a plain loop over the arm's splits
        scored = [row for row in race.scores_ if not np.isnan(row[number])]
        behind = sum(row[race.best_index_] - row[number] for row in scored) / len(scored)
        assert ranked.loc[arm, "behind"] == pytest.approx(behind)
        assert ranked.loc[arm, "splits"] == len(scored)


def test_a_search_on_a_cluster_is_the_same(monkeypatch, race):
    # The cluster is in this process; tests of sweeps have other processes.
    with LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        monkeypatch.setenv("DASK", cluster.scheduler_address)
        again = configurations.search(deadline=3, epsilon=0.1, delta=0.3, spread=0.1, seed=1)
    assert np.array_equal(again.scores_, race.scores_, equal_nan=True)
    assert again.best_params_ == race.best_params_


def test_the_sigma_needed_is_that_of_the_moment_generating_function():
    # For ±a with probability ½ each it is cosh(λa). The other law is 3b with probability ¼ and −b with ¾.
    a, b, grid = 0.1, 0.05, [-20, -1e-3, 5, 20]
    coins = pd.DataFrame({"fair": [0.7 + a, 0.7 - a] * 2, "skewed": [3 * b, -b, -b, -b]})
    fair = [np.sqrt(2 * np.log(np.cosh(x * a))) / abs(x) for x in grid]
    skewed = [np.sqrt(2 * np.log(np.exp(3 * x * b) / 4 + 3 * np.exp(-x * b) / 4)) / abs(x) for x in grid]
    found = configurations.sigma_needed(coins, grid)
    assert found.index.tolist() == grid
    assert found.tolist() == pytest.approx(np.maximum(fair, skewed))
    assert (np.array(skewed) > fair).tolist() == [False, False, False, True]  # each is larger once
