"""Hyper-parameters raced, in scikit-learn's terms: candidates are arms, their scores on splits rewards."""

import copy
from typing import Any, Self

import numpy as np

from ebr.algorithms.game import drive
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.validation import numbers, positive, require, shown, true_or_false

try:
    from sklearn import model_selection
    from sklearn.base import clone, is_classifier
    from sklearn.metrics import check_scoring
    from sklearn.utils import Tags, check_random_state, get_tags
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.parallel import Parallel, delayed
    from sklearn.utils.validation import indexable
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("RacingSearchCV needs scikit-learn: pip install scikit-learn") from error


class RacingSearchCV(model_selection.GridSearchCV):  # type: ignore[misc]  # scikit-learn has no types
    """Search a grid by a race: with probability 1 − δ the choice is within ε of the best candidate.

    ::

        search = ebr.RacingSearchCV(SVC(), {"C": [0.1, 1, 10]}, epsilon=0.02, delta=0.05, deadline=4)
        search.fit(X, y).best_params_

    In each round a race says how often each candidate is to be scored, each time on a random split. Means
    are over random splits of this data set: nothing is said of new data, nor of a model that is trained on
    more, as the refitted one is.

    Parameters
    ----------
    estimator, param_grid, scoring, n_jobs, refit
        As in scikit-learn's `GridSearchCV`, but with one scoring alone, and refit True or False.
    epsilon, delta, deadline
        ε, in the scores' units, δ, and T, the rounds at most.
    support
        The closed interval in which every score lies; a score outside is an error.
    spread
        None: each score has a split of its own, and `StakedElasticBatchRacing` assumes nothing of the scores
        but their support. Or s, an assumption: on a random split the difference of two candidates' scores is
        s-sub-Gaussian about its mean. Survivors then share splits in a `SharpElasticBatchRacing`. Fits grow
        as (s/ε)².
    cv
        `ShuffleSplit` (by default of a fifth, stratified for classifiers) or another `BaseShuffleSplit`.
        Folds are refused, as they depend on each other.
    random_state
        Of the splits, and for each split of an estimator without a state of its own, the same for all
        candidates. Results do not depend on n_jobs.

    Attributes
    ----------
    best_index_, best_params_, best_score_, best_estimator_, scorer_, cv_results_
        As in `GridSearchCV`; who came further ranks first. `cv_results_` also has the number of splits,
        pulls, and with a spread survives, whether a candidate may be the best, and within, how far below the
        best it may be: all of these hold at once with probability 1 − δ.
    scores_, n_rounds_, race_
        The scores, splits × candidates (NaN where one was not scored), the rounds used, the algorithm.
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
        self.support, self.spread, self.random_state = support, spread, random_state
        self.scoring, self.cv, self.n_jobs, self.refit = scoring, cv, n_jobs, refit

    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Self:
        """Race the candidates; `groups` are for the splits, `params` for the estimator's fit."""
        true_or_false("refit", self.refit)
        low, width = self._scale()
        rules, paired = (self.deadline, self.epsilon / width, self.delta), self.spread is not None
        self.race_: Any = StakedElasticBatchRacing(*rules, rewards="bounded", squares=True)
        if paired:
            self.race_ = SharpElasticBatchRacing(*rules, positive("spread", self.spread) / width / 2**0.5)
        candidates = list(model_selection.ParameterGrid(self.param_grid))
        require(len(candidates) > 1, "param_grid", "have two candidates or more", candidates)
        if y is None and get_tags(self).target_tags.required:
            raise ValueError("the estimator requires y to be passed, but the target y is None")
        models = [clone(self.estimator).set_params(**clone(it, safe=False)) for it in candidates]
        self.scorer_, self.multimetric_ = check_scoring(self.estimator, self.scoring), False
        data, splitter, rounds = indexable(X, y, groups), self._splitter(y), list[FloatArray]()
        random = splitter.random_state = check_random_state(self.random_state)

        def respond(pulls: IntArray) -> FloatArray:
            rounds.append(self._scored(pulls[0], models, splitter, data, params))
            inside = (rounds[-1] - low) / width
            sums = np.nansum([inside, inside**2], axis=1)[:, None]
            return np.asarray(sums[0] if paired else sums)

        self.best_index_ = int(drive(self.race_.play(len(models)), respond)[0])
        self.n_rounds_, self.scores_ = len(rounds), np.concatenate(rounds)
        self.cv_results_ = _columns(candidates, self.scores_, self.best_index_)
        if paired:
            within, survives = _gaps(self.race_, (self.scores_ - low) / width)
            self.cv_results_ |= {"survives": survives, "within": width * within}
        self.best_params_ = candidates[self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        if self.refit:
            best = _seeded(models[self.best_index_], random.randint(2**31))
            self.best_estimator_ = best.fit(*data[:2], **params)
        return self

    def _scale(self) -> tuple[float, float]:
        """The lower end and the width of the support, below which ε must be."""
        low, high, *more = numbers("support", self.support, 2).tolist()
        width = high - low
        require(not more and 0 < width < np.inf, "support", "be two finite numbers (low, high)", self.support)
        inside = positive("epsilon", self.epsilon) < width
        require(inside, "epsilon", f"lie in (0, {width:g}), in the support", self.epsilon)
        return low, width

    def _splitter(self, y: Any) -> Any:
        """A copy of the splitter, to be set by the race."""
        stratified = is_classifier(self.estimator) and type_of_target(y) in ("binary", "multiclass")
        usual = model_selection.StratifiedShuffleSplit if stratified else model_selection.ShuffleSplit
        splitter = usual(test_size=0.2) if self.cv is None else copy.copy(self.cv)
        drawn = isinstance(splitter, model_selection.BaseShuffleSplit)
        require(drawn, "cv", "draw independent splits, as ShuffleSplit does", self.cv)
        return splitter

    def _scored(self, pulls: IntArray, models: list[Any], splitter: Any, data: Any, params: Any) -> Any:
        """Score each model so often: splits × models, NaN where one was not scored on a split."""
        arms = np.flatnonzero(pulls)  # a split has one of them or, with a spread, all
        on = np.repeat(arms, pulls[arms])[:, None] if self.spread is None else np.tile(arms, (pulls.max(), 1))
        seeds, splitter.n_splits = splitter.random_state.randint(2**31, size=len(on)), len(on)
        of = {"scoring": self.scorer_, "params": params, "error_score": "raise"}
        tasks = (
            delayed(model_selection.cross_val_score)(_seeded(models[arm], seed), *data[:2], cv=[split], **of)
            for chosen, split, seed in zip(on, splitter.split(*data), seeds, strict=True)
            for arm in chosen
        )
        scores, (low, high) = np.full((len(on), len(models)), np.nan), self.support
        found = np.reshape(Parallel(n_jobs=self.n_jobs)(tasks), on.shape)
        wrong = found[~((low <= found) & (found <= high))].tolist()  # there nothing is proved
        must = f"lie in [{low:g}, {high:g}], the support"
        require(not wrong, f"scores of {shown(self.estimator)}", must, wrong)
        np.put_along_axis(scores, on, found, axis=1)
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.target_tags, tags.input_tags = copy.deepcopy((inner.target_tags, inner.input_tags))
        return tags


def _seeded(model: Any, seed: int) -> Any:
    """A copy of the estimator, with this seed wherever a `random_state` is None."""
    states = {k: v for k, v in model.get_params().items() if k.split("__")[-1] == "random_state"}
    return clone(model).set_params(**{name: int(seed) for name, state in states.items() if state is None})


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
    """How far each candidate is from the best at most, and who may be the best; scores are in [0, 1].

    With 1 − δ the best one survives, and in no round a mean X̄ is ahead of its own by more than expected and
    w̄_t. So another candidate is below it by at most w̄_t + M − X̄, with M the largest mean of the others.
    """
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
