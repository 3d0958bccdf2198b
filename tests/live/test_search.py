"""RacingSearchCV against GridSearchCV and a race by hand, and its statements on gaps."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris, make_regression
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import ebr
from ebr.algorithms.game import drive
from ebr.live.search import _gaps

X, Y = load_iris(return_X_y=True)
DEPTHS = {"max_depth": [1, 2, 5]}
QUICK = {"epsilon": 0.05, "deadline": 2, "spread": 0.05, "random_state": 3}


@pytest.mark.slow
@parametrize_with_checks(
    [
        ebr.RacingSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, **rules)
        for rules in ({"spread": 0.01}, {"epsilon": 0.7, "deadline": 1, "delta": 0.5})
    ]
)
def test_the_search_keeps_scikit_learns_conventions(estimator, check):
    check(estimator)


def test_a_race_of_one_round_is_a_grid_search_on_the_same_splits():
    tree = DecisionTreeClassifier(random_state=0)
    drawn = ShuffleSplit(test_size=0.3)
    race = ebr.RacingSearchCV(tree, DEPTHS, **QUICK | {"deadline": 1}, cv=drawn).fit(X, Y)
    random = np.random.RandomState(3)
    random.randint(2**31, size=len(race.scores_))  # the models' seeds are drawn before the splits
    splits = ShuffleSplit(len(race.scores_), test_size=0.3, random_state=random)
    grid = GridSearchCV(tree, DEPTHS, cv=splits).fit(X, Y)
    assert len(race.scores_) > 5
    assert race.best_params_ == grid.best_params_
    assert race.cv_results_["params"] == grid.cv_results_["params"]
    assert race.cv_results_["param_max_depth"].tolist() == grid.cv_results_["param_max_depth"].tolist()
    for name in ("mean_test_score", "std_test_score"):
        assert race.cv_results_[name] == pytest.approx(grid.cv_results_[name]), name
    assert race.best_score_ == pytest.approx(grid.best_score_)
    assert (race.predict(X) == grid.predict(X)).all()
    assert race.score(X, Y) == grid.score(X, Y)
    assert race.cv_results_["pulls"].tolist() == [len(race.scores_)] * 3


class Noted(BaseEstimator):
    """Scores `level` plus noise that depends on split and seed; every score is recorded."""

    noted: ClassVar = []

    def __init__(self, level=0.5, random_state=None):
        self.level, self.random_state = level, random_state

    def fit(self, X, y=None):
        self.split_ = tuple(X[:, 0])
        return self

    def score(self, X, y=None):
        noise = np.random.default_rng([*map(int, X[:, 0]), self.random_state]).normal(scale=0.02)
        self.noted.append((self.level, self.split_, self.random_state, self.level + noise))
        return self.level + noise


def noted(levels, **parameters):
    """A search of `Noted` estimators, and what they recorded."""
    Noted.noted = []
    search = ebr.RacingSearchCV(Noted(), {"level": levels}, **QUICK | {"refit": False} | parameters)
    search.fit(np.arange(12.0)[:, None])
    return search, pd.DataFrame(Noted.noted, columns=["level", "split", "seed", "score"])


def test_survivors_share_splits_and_seeds_and_the_others_are_out():
    levels = [0.5, 0.1, 0.48, 0.3]
    search, notes = noted(levels, spread=0.1, deadline=4, epsilon=0.03)
    # By hand: in each round survivors have b_t scores, and those more than w_t behind the best are out.
    race = ebr.SharpElasticBatchRacing(4, 0.03, 0.05, sigma=0.1 / np.sqrt(2))
    assert search.race_ == race
    scores = {level: part["score"].to_numpy() for level, part in notes.groupby("level")}
    alive, taken = list(levels), dict.fromkeys(levels, 0)
    for count, term in zip(race.pulls_by_round(4), race.log_terms(4), strict=True):
        taken |= dict.fromkeys(alive, count)
        means = {level: sum(scores[level][:count]) / count for level in alive}
        best, *others = sorted(means.values(), reverse=True)
        width = 0.1 * np.sqrt(2 * term / count)
        alive = [level for level in alive if means[level] >= best - width]
        if not others or best - others[0] > width - 0.03:
            break
    assert {level: len(scores[level]) for level in levels} == taken
    assert search.cv_results_["pulls"].tolist() == list(taken.values())
    assert len(set(taken.values())) > 1
    assert search.best_params_ == {"level": max(means, key=means.get)}
    assert search.cv_results_["survives"].tolist() == [level in alive for level in levels]
    assert 0 <= search.cv_results_["within"][search.best_index_] <= 0.03
    assert search.cv_results_["rank_test_score"].tolist() == [1, 4, 2, 3]
    for level in levels:  # the same splits, with a seed for each
        place, part = levels.index(level), notes[notes["level"] == level]
        mine = notes[notes["level"] == search.best_params_["level"]][: len(part)]
        assert part[["split", "seed"]].to_numpy().tolist() == mine[["split", "seed"]].to_numpy().tolist()
        assert part["seed"].is_unique
        assert search.scores_[: len(part), place] == pytest.approx(part["score"].to_numpy())
        assert np.isnan(search.scores_[len(part) :, place]).all()


def test_without_a_spread_every_candidate_has_splits_of_its_own_and_as_many_as_the_race_asks_for():
    levels = [0.5, 0.2, 0.48, 0.3]
    search, notes = noted(levels, spread=None, deadline=6, epsilon=0.1)
    race = ebr.StakedElasticBatchRacing(6, 0.1, 0.05, rewards="bounded", squares=True)
    assert search.race_ == race
    assert notes["seed"].is_unique
    assert (np.isfinite(search.scores_).sum(axis=1) == 1).all()
    # The same race by hand, on the same scores.
    scores = {level: part["score"].to_numpy() for level, part in notes.groupby("level")}
    taken = dict.fromkeys(levels, 0)

    def respond(pulls):
        fresh = [
            scores[level][taken[level] : taken[level] + n] for level, n in zip(levels, pulls[0], strict=True)
        ]
        taken.update({level: taken[level] + int(n) for level, n in zip(levels, pulls[0], strict=True)})
        return np.array([[[part.sum() for part in fresh]], [[(part**2).sum() for part in fresh]]])

    (best,) = drive(race.play(4, rewards="bounded"), respond)
    assert search.best_index_ == best
    assert search.cv_results_["pulls"].tolist() == list(taken.values()) == [len(scores[k]) for k in levels]
    assert search.cv_results_["rank_test_score"][best] == 1
    assert "within" not in search.cv_results_


def test_a_seed_that_is_given_stays():
    search, notes = noted([0.5, 0.49])
    assert len(set(notes["seed"])) > 1
    kept = ebr.RacingSearchCV(Noted(random_state=7), {"level": [0.5, 0.49]}, refit=False, **QUICK)
    Noted.noted = []
    kept.fit(np.arange(12.0)[:, None])
    assert {seed for _, _, seed, _ in Noted.noted} == {7}
    assert not np.array_equal(kept.scores_, search.scores_)


def breaches(race, tables=400):
    """The number of tables of scores on which the guarantee's event holds, and of those with a wrong gap."""
    generator, held, wrong = np.random.default_rng(5), 0, 0
    plain = ebr.SharpElasticBatchRacing(race.deadline, race.epsilon, race.delta, race.sigma)
    counts, terms = plain.pulls_by_round(4), plain.log_terms(4)
    for _ in range(tables):
        means = generator.uniform(0.4, 0.6, 4)
        best, scores = means.argmax(), means + generator.normal(scale=race.sigma, size=(counts[-1], 4))
        so_far = [scores[:count].mean(axis=0) for count in counts]
        leads = [(now - now[best]) - (means - means[best]) for now in so_far]
        if all(
            lead.max() <= 2 * race.sigma * np.sqrt(term / count)
            for lead, term, count in zip(leads, terms, counts, strict=True)
        ):
            within, survives = _gaps(race, scores)
            held, wrong = held + 1, wrong + (not survives[best] or (within < means[best] - means).any())
    return held, wrong


def test_within_and_survives_hold_wherever_the_guarantee_does():
    race = ebr.SharpElasticBatchRacing(3, 0.1, 0.3, sigma=0.2)
    held, wrong = breaches(race)
    assert held > 100
    assert wrong == 0


def test_a_planted_width_is_found():
    class Narrow(ebr.SharpElasticBatchRacing):
        def width(self, pulls, log_term):
            return 0.7 * super().width(pulls, log_term)

    held, wrong = breaches(Narrow(3, 0.1, 0.3, sigma=0.2))
    assert held > 100
    assert wrong > 0


def test_other_units_are_the_same_race():
    data, target = make_regression(60, 3, noise=20, random_state=1)
    grid, cv = {"alpha": [1e-3, 10, 1000]}, ShuffleSplit(test_size=0.3)
    common = {"scoring": "neg_mean_absolute_error", "cv": cv, "deadline": 3, "random_state": 2}
    big = ebr.RacingSearchCV(Ridge(), grid, epsilon=60, spread=120, support=(-1000, 0), **common)
    small = ebr.RacingSearchCV(Ridge(), grid, epsilon=0.6, spread=1.2, support=(-10, 0), **common)
    big.fit(data, target)
    small.fit(data, target / 100)
    assert big.best_params_ == small.best_params_
    assert big.cv_results_["pulls"].tolist() == small.cv_results_["pulls"].tolist()
    for name in ("mean_test_score", "std_test_score", "within"):
        assert big.cv_results_[name] == pytest.approx(100 * small.cv_results_[name], rel=1e-3)
    assert big.race_ == small.race_


def test_workers_and_the_global_seed_change_nothing():
    searches = []
    for n_jobs, seed in ((1, 3), (2, 3), (1, 4)):
        np.random.seed(n_jobs)  # noqa: NPY002, which trees without a seed would draw from
        tree = DecisionTreeClassifier(max_features=1)
        search = ebr.RacingSearchCV(tree, DEPTHS, **QUICK | {"random_state": seed}, n_jobs=n_jobs)
        with parallel_config("threading"):  # processes take seconds to start
            searches.append(search.fit(X, Y))
    one, two, other = searches
    assert np.array_equal(one.scores_, two.scores_, equal_nan=True)
    assert (one.predict_proba(X) == two.predict_proba(X)).all()
    assert not np.array_equal(one.scores_[:5], other.scores_[:5])


def test_pipelines_frames_and_groups_go_through():
    frame, groups = pd.DataFrame(X, columns=list("abcd")), np.arange(150) % 10
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    grid = [{"decisiontreeclassifier__max_depth": [1, 3]}, {"decisiontreeclassifier__min_samples_leaf": [40]}]
    search = ebr.RacingSearchCV(model, grid, cv=GroupShuffleSplit(test_size=0.2), **QUICK)
    search.fit(frame, Y, groups=groups, decisiontreeclassifier__sample_weight=np.ones(150))
    assert search.classes_.tolist() == [0, 1, 2]
    assert search.predict(frame).shape == (150,)
    depths = search.cv_results_["param_decisiontreeclassifier__max_depth"]
    assert depths.mask.tolist() == [False, False, True]


def test_only_what_the_estimator_can_do_is_there():
    search = ebr.RacingSearchCV(PCA(), {"n_components": [1, 2]}, epsilon=1, support=(-100, 100), spread=1)
    assert hasattr(search, "transform")
    assert not hasattr(search, "predict")
    assert search.fit(X).transform(X).shape == (150, search.best_params_["n_components"])
    bare = ebr.RacingSearchCV(DecisionTreeClassifier(), DEPTHS, refit=False, **QUICK).fit(X, Y)
    assert not hasattr(bare, "best_estimator_")
    assert not hasattr(bare, "predict")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cv": KFold(5)}, "cv must draw independent splits, as ShuffleSplit does, got KFold"),
        ({"cv": 5}, "cv must draw independent splits, as ShuffleSplit does, got 5"),
        ({"param_grid": {"max_depth": [1]}}, "param_grid must have two candidates or more, got"),
        ({"support": (0.99, 1)}, r"epsilon must lie in \(0, 0.01\), in the support, got 0.05"),
        ({"support": (0.5, 0.999)}, r"scores of Decision.* must lie in \[0.5, 0.999\], the support, got"),
        ({"support": None}, "support must be a list of at least 2 numbers, got "),
        ({"support": (0, 1, 2)}, r"support must be two finite numbers \(low, high\), got \(0, 1, 2\)"),
        ({"support": (1, 0)}, r"support must be two finite numbers \(low, high\), got \(1, 0\)"),
        ({"epsilon": "x"}, "epsilon must be a finite number above 0, got 'x'"),
        ({"epsilon": 1}, r"epsilon must lie in \(0, 1\), in the support, got 1"),
        ({"delta": 0}, r"delta must lie in \(0, 1\), got 0"),
        ({"deadline": 0}, "deadline must be an integer of at least 1, got 0"),
        ({"refit": "accuracy"}, "refit must be True or False, got 'accuracy'"),
        ({"spread": -1}, "spread must be a finite number above 0, got -1"),
        ({"scoring": lambda *_: np.nan}, r"must lie in \[0, 1\], the support, got \[nan"),
    ],
)
def test_what_cannot_be_raced_is_refused_by_name(wrong, message):
    search = ebr.RacingSearchCV(DecisionTreeClassifier(), DEPTHS, **QUICK).set_params(**wrong)
    with pytest.raises(ValueError, match=message):
        search.fit(X, Y)
