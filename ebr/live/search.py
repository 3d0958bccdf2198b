"""Hyper-parameters raced, in scikit-learn's terms: candidates are arms, their scores on splits rewards."""

import copy
import math
from typing import Any, Self

import numpy as np

from ebr.algorithms.game import drive
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.live.terms import checked_support
from ebr.validation import positive, shown, true_or_false

try:
    from sklearn import model_selection
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
    from sklearn.metrics import check_scoring
    from sklearn.utils import Tags, check_random_state, get_tags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.parallel import Parallel, delayed
    from sklearn.utils.validation import check_is_fitted, indexable
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("RacingSearchCV needs scikit-learn: pip install scikit-learn") from error


def _delegated(name: str) -> Any:
    """A method of the best estimator, there if the estimator has it."""

    def has(search: "RacingSearchCV") -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    def method(self: "RacingSearchCV", X: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, name)(X)

    method.__name__, method.__doc__ = name, f"Call `{name}` of the best estimator."
    return available_if(has)(method)


class RacingSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Search a grid by a race: with probability 1 − δ the choice is within ε of the best candidate.

    ::

        search = ebr.RacingSearchCV(SVC(), {"C": [0.1, 1, 10]}, epsilon=0.02, delta=0.05, deadline=4)
        search.fit(X, y).best_params_

    In each of at most T rounds candidates are fitted and scored on random splits of the data, each on its
    own. `StakedElasticBatchRacing` says how many splits each candidate needs, from the mean and the variance
    of its scores. Nothing is assumed of the scores but their support.

    Parameters
    ----------
    estimator, param_grid, scoring, n_jobs, refit
        As in scikit-learn's `GridSearchCV`, but with one scoring alone, and refit True or False.
    epsilon, delta, deadline
        ε, in the scores' units, δ, and T, the rounds at most.
    support
        The closed interval in which every score lies; a score outside is an error.
    spread
        s, an assumption: on a random split the difference of two candidates' scores is s-sub-Gaussian about
        its mean. With it all surviving candidates are scored on the same splits, and
        `SharpElasticBatchRacing` drops those that are too far behind the leader. Fits grow as (s/ε)², and the
        guarantee rests on s. None assumes nothing.
    cv
        Draws the splits: `ShuffleSplit`, `StratifiedShuffleSplit`, `GroupShuffleSplit` or another
        `BaseShuffleSplit`, whose n_splits and random_state the race sets. By default a fifth is held out,
        stratified for classifiers. Folds are refused, as they depend on each other.
    random_state
        Of the splits, and of an estimator whose own `random_state` is None: it then has one for each split,
        the same for all candidates. Results do not depend on n_jobs.

    Attributes
    ----------
    best_index_, best_params_, best_score_, best_estimator_
        The choice, its mean score (too high as a rule, as that of any best of several), the refitted model.
    cv_results_
        As in `GridSearchCV`: params, param_*, mean_test_score, std_test_score, rank_test_score (those who
        came further rank before others). Of the race: pulls, the splits that a candidate was scored on. With
        a spread also survives, whether it may be the best; within, how far at most its mean is below the best
        candidate's. All of survives and within hold at once with probability 1 − δ.
    scores_, n_rounds_, race_, scorer_
        The scores, splits × candidates (NaN where one was not scored), the rounds used, the algorithm, the
        scorer.

    Notes
    -----
    *What is guaranteed.* A candidate's mean is that over random splits of this data set (and over seeds, see
    above). Given the data, splits are independent draws, and the race needs no more. But they share the data:
    nothing is said of new data, nor of a model trained on more of them, as the refitted one is.

    *Within.* With a spread: with 1 − δ the best candidate survives, and no mean X̄ is ahead of its own by more
    than expected and w̄_t, in any round. So a candidate is below the best by at most w̄_t + M − X̄, unless it
    is the best itself; M is the largest mean of the others in the round. The least of all rounds is shown.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 0.05,
        delta: float = 0.05,
        deadline: int = 8,
        support: tuple[float, float] = (0.0, 1.0),
        spread: float | None = None,
        scoring: Any = None,
        cv: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        random_state: Any = None,
    ) -> None:
        self.estimator, self.param_grid = estimator, param_grid
        self.epsilon, self.delta, self.deadline = epsilon, delta, deadline
        self.support, self.spread = support, spread
        self.scoring, self.cv, self.n_jobs, self.refit = scoring, cv, n_jobs, refit
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Self:
        """Race the candidates; `groups` are for the splits, `params` for the estimator's fit."""
        limits = checked_support(self.support)
        if limits is None:
            raise ValueError("support must be a pair of finite numbers (low, high), got None")
        width = limits[1] - limits[0]
        if not positive("epsilon", self.epsilon) < width:
            raise ValueError(f"epsilon must lie in (0, {width:g}), in the support, got {self.epsilon!r}")
        true_or_false("refit", self.refit)
        low, paired = limits[0], self.spread is not None
        self.race_ = self._race(width)
        candidates = list(model_selection.ParameterGrid(self.param_grid))
        if len(candidates) < 2:
            raise ValueError(f"param_grid must have two candidates or more, got {candidates}")
        if y is None and get_tags(self).target_tags.required:
            raise ValueError("the estimator requires y to be passed, but the target y is None")
        models = [clone(self.estimator).set_params(**clone(it, safe=False)) for it in candidates]
        self.scorer_, (X, y, groups) = check_scoring(self.estimator, self.scoring), indexable(X, y, groups)
        splitter = self._splitter(y)
        random = splitter.random_state = check_random_state(self.random_state)
        rounds: list[FloatArray] = []
        entrants = list(zip(candidates, models, strict=True))

        def respond(pulls: IntArray) -> FloatArray:
            rounds.append(self._scored(pulls[0], entrants, splitter, (X, y, groups), params))
            inside = (rounds[-1] - low) / width
            sums = np.nansum([inside, inside**2], axis=1)[:, None]
            return np.asarray(sums[0] if paired else sums)

        known = "sub-Gaussian" if paired else "bounded"
        self.best_index_ = int(drive(self.race_.play(len(models), rewards=known), respond)[0])
        self.n_rounds_, self.scores_ = len(rounds), np.concatenate(rounds)
        self.cv_results_ = _columns(candidates, self.scores_, self.best_index_)
        if paired:
            within, survives = _gaps(self.race_, (self.scores_ - low) / width)
            self.cv_results_ |= {"survives": survives, "within": width * within}
        self.best_params_ = candidates[self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        if self.refit:
            best = _seeded(models[self.best_index_], random.randint(2**31))
            self.best_estimator_ = best.fit(X, y, **params)
        return self

    def _race(self, width: float) -> Any:
        """The race, of scores as parts of the support."""
        epsilon = self.epsilon / width
        if self.spread is None:
            return StakedElasticBatchRacing(
                self.deadline, epsilon, self.delta, rewards="bounded", squares=True
            )
        sigma = positive("spread", self.spread) / width / math.sqrt(2)
        return SharpElasticBatchRacing(self.deadline, epsilon, self.delta, sigma)

    def _scored(
        self, pulls: IntArray, entrants: list[tuple[Any, Any]], splitter: Any, data: Any, params: Any
    ) -> FloatArray:
        """Score candidates so often: splits × candidates, NaN where one was not scored on a split.

        Entrants are candidates with their models; data are X, y and groups.
        """
        arms, random = np.flatnonzero(pulls), splitter.random_state
        own = np.repeat(arms, pulls[arms])[:, None]  # a split has one candidate or, with a spread, all
        on = own if self.spread is None else np.tile(arms, (int(pulls.max()), 1))
        splitter.n_splits, seeds = len(on), random.randint(2**31, size=len(on))
        tasks = (
            delayed(_score)(_seeded(entrants[arm][1], seed), *data[:2], self.scorer_, split, params)
            for chosen, split, seed in zip(on, splitter.split(*data), seeds, strict=True)
            for arm in chosen
        )
        scores = np.full((len(on), len(entrants)), np.nan)
        found = np.reshape(Parallel(n_jobs=self.n_jobs)(tasks), on.shape)
        np.put_along_axis(scores, on, found, axis=1)
        low, high = self.support
        for place in zip(*np.nonzero(~((low <= found) & (found <= high))), strict=True):
            must = f"scores must lie in [{low:g}, {high:g}], the support"  # of others nothing is proved
            raise ValueError(f"{must}, got {found[place]} of {entrants[on[place]][0]}")
        return scores

    def _splitter(self, y: Any) -> Any:
        """A copy of the splitter, to be set by the race."""
        stratified = is_classifier(self.estimator) and type_of_target(y) in ("binary", "multiclass")
        usual = model_selection.StratifiedShuffleSplit if stratified else model_selection.ShuffleSplit
        splitter = usual(test_size=0.2) if self.cv is None else copy.copy(self.cv)
        if not isinstance(splitter, model_selection.BaseShuffleSplit):
            raise ValueError(f"cv must draw independent splits, as ShuffleSplit does, got {shown(self.cv)}")
        return splitter

    predict, predict_proba = _delegated("predict"), _delegated("predict_proba")
    predict_log_proba, decision_function = _delegated("predict_log_proba"), _delegated("decision_function")
    transform, inverse_transform = _delegated("transform"), _delegated("inverse_transform")
    score_samples = _delegated("score_samples")
    classes_ = property(lambda self: self.best_estimator_.classes_)
    n_features_in_ = property(lambda self: self.best_estimator_.n_features_in_)

    def score(self, X: Any, y: Any = None) -> float:
        """The score of the best estimator on other data, by the search's own scoring."""
        check_is_fitted(self, "best_estimator_")
        return float(self.scorer_(self.best_estimator_, X, *([] if y is None else [y])))

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags", "input_tags"):
            setattr(tags, name, copy.deepcopy(getattr(inner, name)))
        return tags


def _seeded(model: Any, seed: int) -> Any:
    """A copy of the estimator, with this seed wherever a `random_state` is None."""
    states = {k: v for k, v in model.get_params().items() if k.split("__")[-1] == "random_state"}
    return clone(model).set_params(**{name: int(seed) for name, state in states.items() if state is None})


def _score(model: Any, X: Any, y: Any, scorer: Any, split: Any, params: dict[str, Any]) -> float:
    """The model's score on one split."""
    found = model_selection.cross_val_score(
        model, X, y, scoring=scorer, cv=[split], params=params, error_score="raise"
    )
    return float(found[0])


def _columns(candidates: list[dict[str, Any]], scores: FloatArray, best: int) -> dict[str, Any]:
    """The columns of `cv_results_` that `GridSearchCV` has too, and pulls."""
    columns: dict[str, Any] = {"params": candidates}
    for place, candidate in enumerate(candidates):
        for name, value in candidate.items():
            empty = np.ma.MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
            columns.setdefault(f"param_{name}", empty)[place] = value
    pulls, mean = np.isfinite(scores).sum(axis=0), np.nanmean(scores, axis=0)
    rank = np.lexsort((-mean, -pulls, np.arange(len(mean)) != best)).argsort() + 1
    moments = {"mean_test_score": mean, "std_test_score": np.nanstd(scores, axis=0)}
    return columns | moments | {"rank_test_score": rank, "pulls": pulls}


def _gaps(race: SharpElasticBatchRacing, scores: FloatArray) -> tuple[FloatArray, BoolArray]:
    """How far each candidate is from the best at most, and who may be the best; scores are in [0, 1]."""
    n_arms = scores.shape[1]
    within, survives = np.full(n_arms, np.inf), np.ones(n_arms, dtype=bool)
    counts, first = np.unique(race.pulls_by_round(n_arms), return_index=True)
    for count, log_term in zip(counts, race.log_terms(n_arms)[first], strict=True):
        if count <= len(scores):
            means, width = scores[:count].mean(axis=0), race.width(int(count), log_term)
            rivals = np.array([np.nanmax(np.delete(means, arm)) for arm in range(n_arms)])
            within = np.fmin(within, np.maximum(width + rivals - means, 0))
            survives = means >= np.nanmax(means) - width  # not so if NaN
    return within, survives
