"""Notebook 10: the search for hard problems, and what is paid there."""

import math

import numpy as np
import pandas as pd
import pytest
from compendium import failure_probability
from compendium.failure_probability import Hard
from scipy.stats import binom

import ebr
from ebr.simulation import importance

SHARP = ebr.SharpElasticBatchRacing
SEARCH = {"trials": 40, "runs": 100, "seed": 3, "epsilon": 0.2, "delta": 0.1, "most_arms": 5, "latest": 4}


@pytest.fixture(scope="module")
def searched():
    return failure_probability.search("sharp", **SEARCH)


def test_a_search_is_no_worse_than_the_fixed_problems_and_has_its_worst_first(searched):
    fixed = [Hard(t, n, 0.6) for n in (2, 3, 5) for t in (1, 2, 4)]
    made = {
        place: importance.failure(
            SHARP(place.deadline, 0.2, 0.1, rewards="sub-Gaussian"), place.problem(0.2), 100, 3
        )
        for place in fixed
    }
    assert searched["log10"].iloc[0] >= max(estimate.log10 for estimate in made.values())
    assert searched["log10"].is_monotonic_decreasing
    rows = {failure_probability.place(row): row for _, row in searched.iterrows()}
    assert len(rows) == len(searched)
    assert {place: row["log10"] for place, row in rows.items() if place in made} == {
        place: e.log10 for place, e in made.items()
    }


def test_a_search_is_the_same_every_time_and_another_with_another_seed(searched):
    pd.testing.assert_frame_equal(failure_probability.search("sharp", **SEARCH), searched)
    assert not failure_probability.search("sharp", **SEARCH | {"seed": 4}).equals(searched)


@pytest.mark.parametrize(("name", "latest"), [("sharp", 4), ("sequential", 1), ("passive", 1)])
def test_a_search_stays_below_most_arms_and_latest(searched, name, latest):
    found = (
        searched
        if name == "sharp"
        else failure_probability.search(name, **SEARCH | {"runs": 2, "trials": 20, "epsilon": 0.3})
    )
    assert found["n_arms"].between(2, 12).all()
    assert found["deadline"].between(1, latest).all()
    assert found["deadline"].max() == latest


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3])
def test_every_place_of_the_search_is_a_problem_with_a_wrong_arm(epsilon):
    generator = np.random.default_rng(1)
    place, seen = Hard(1, 2, 0.5 + epsilon / 2), []
    for _ in range(500):
        anywhere = failure_probability._anywhere(generator, epsilon, 30, 5)
        place = failure_probability._near(place, generator, epsilon, 30, 5)
        seen += [anywhere, place]
    for place in seen:
        problem = place.problem(epsilon)
        gaps = problem.means.max() - problem.means
        assert 2 <= place.n_arms == problem.n_arms <= 30
        assert 1 <= place.deadline <= 5
        assert problem.means.min() > 0
        assert problem.means.max() == place.top < 1
        wrong = place.n_arms - 1 - place.first - place.second
        assert (gaps >= epsilon).sum() == wrong >= 1
        assert gaps[~problem.is_good(range(place.n_arms), epsilon)] == pytest.approx(epsilon, rel=1e-5)
        assert min(place.first, place.second) >= 0
    assert {place.n_arms for place in seen} >= set(range(2, 10))
    assert {place.deadline for place in seen} == {1, 2, 3, 4, 5}
    assert {place.first > 0 for place in seen} == {place.second > 0 for place in seen} == {True, False}


def test_what_is_paid_has_a_row_for_each_algorithm_and_delta():
    worst = {"sharp": Hard(2, 3, 0.6), "passive": Hard(1, 2, 0.6)}
    table = failure_probability.paid(worst, [0.3, 0.1], runs=50, plain=70, seed=1, epsilon=0.2)
    assert table["algorithm"].tolist() == ["sharp", "sharp", "passive", "passive"]
    assert table["delta"].tolist() == [0.3, 0.1, 0.3, 0.1]
    assert table["n_arms"].tolist() == [3, 3, 2, 2]
    direct = importance.failure(
        SHARP(2, 0.2, 0.1, rewards="sub-Gaussian"), Hard(2, 3, 0.6).problem(0.2), 50, 1, 70
    )
    assert tuple(table.loc[1, list(direct._fields)]) == direct


def made_up(failures, log10=(-3.0, -3.0)):
    return pd.DataFrame(
        {
            "algorithm": ["EBR", "sharp"],
            "delta": [0.01, 0.1],
            "n_arms": [2, 7],
            "deadline": [1, 3],
            "log10": log10,
            "relative_error": [0.1, 0.02],
            "failures": failures,
            "runs": 10_000,
        }
    )


def test_x6_holds_until_the_plain_races_refute_it():
    limit = next(k for k in range(10_000) if binom.sf(k - 1, 10_000, 0.01) < 1e-6 / 2)  # two tests
    assert 140 < limit < 160
    assert failure_probability.x6(made_up([limit - 1, 1000])).holds
    assert not failure_probability.x6(made_up([limit, 1000])).holds
    assert not failure_probability.x6(made_up([0, 1300])).holds
    assert (
        "1 of 2 are refuted by 10000 plain races" in failure_probability.x6(made_up([limit, 1000])).evidence
    )


def test_x6_names_the_algorithm_that_pays_most_of_its_delta():
    said = failure_probability.x6(made_up([0, 0])).evidence
    assert "0.10 ± 0.01 (1 s.e.), for EBR at δ = 0.01, n = 2, T = 1" in said
    said = failure_probability.x6(made_up([0, 0], log10=(-3.0, math.log10(0.05)))).evidence
    assert "0.50 ± 0.01 (1 s.e.), for sharp at δ = 0.1, n = 7, T = 3" in said
