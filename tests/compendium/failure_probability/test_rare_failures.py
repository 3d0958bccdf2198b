"""Notebook 10: the search for hard problems, and the share of δ that is spent there."""

import math

import numpy as np
import pandas as pd
import pytest
from compendium.failure_probability import importance, pausing_shares, rare_failures
from compendium.failure_probability.rare_failures import Hard, Space
from scipy.stats import binom

import ebr

SHARP = ebr.SharpElasticBatchRacing
SEARCH = {"trials": 40, "runs": 100, "seed": 3, "delta": 0.1, "space": Space(0.1, 0.3, most_arms=5, latest=4)}


@pytest.fixture(scope="module")
def searched():
    return rare_failures.search("sharp", **SEARCH)


def test_a_search_is_no_worse_than_the_fixed_problems_and_has_its_worst_first(searched):
    fixed = [Hard(t, n, e, 0.5).centred() for n in (2, 3, 5) for t in (1, 2, 4) for e in (0.1, 0.3)]
    made = {
        place: importance.failure(
            SHARP(place.deadline, place.epsilon, 0.1, rewards="sub-Gaussian"), place.problem(), 100, 3
        )
        for place in fixed
    }
    assert searched["log10"].iloc[0] >= max(estimate.log10 for estimate in made.values())
    assert searched["log10"].is_monotonic_decreasing
    rows = {rare_failures.place(row): row for _, row in searched.iterrows()}
    assert len(rows) == len(searched)
    assert {place: row["log10"] for place, row in rows.items() if place in made} == {
        place: e.log10 for place, e in made.items()
    }


@pytest.mark.parametrize(("name", "latest"), [("sharp", 4), ("sequential", 1), ("passive", 1)])
def test_a_search_stays_below_most_arms_and_latest(searched, name, latest):
    fewer = SEARCH | {"runs": 2, "trials": 20, "space": Space(0.3, 0.3, 5, 4)}
    found = searched if name == "sharp" else rare_failures.search(name, **fewer)
    assert found["n_arms"].between(2, 5).all()
    assert found["deadline"].between(1, latest).all()
    assert found["deadline"].max() == latest


@pytest.mark.parametrize(("least", "largest"), [(0.01, 0.01), (0.001, 0.3), (0.3, 0.3)])
def test_every_place_of_the_search_is_a_problem_with_a_wrong_arm(least, largest):
    generator, space = np.random.default_rng(1), Space(least, largest, most_arms=30, latest=5)
    place, seen = Hard(1, 2, largest, 0.5).centred(), []
    for _ in range(500):
        anywhere = space.anywhere(generator)
        place = space.near(place, generator)
        seen += [anywhere, place]
    for place in seen:
        problem, epsilon = place.problem(), place.epsilon
        assert least * (1 - 1e-9) <= epsilon <= largest * (1 + 1e-9)
        gaps = problem.means.max() - problem.means
        assert 2 <= place.n_arms == problem.n_arms <= 30
        assert 1 <= place.deadline <= 5
        assert problem.means.min() > 0
        assert problem.means.max() == place.top < 1
        wrong = place.n_arms - 1 - place.first - place.second
        assert (gaps >= epsilon).sum() == wrong >= 1
        assert gaps[~problem.is_good(range(place.n_arms), epsilon)] == pytest.approx(epsilon, rel=1e-5)
        assert min(place.first, place.second) >= 0
        # Numbers have nine digits, so that a processor with other last bits finds the same problem.
        assert all(value == float(f"{value:.9g}") for value in place)
    assert {place.n_arms for place in seen} >= set(range(2, 10))
    assert {place.deadline for place in seen} == {1, 2, 3, 4, 5}
    logs = np.log10([place.epsilon for place in seen])
    assert logs.min() == pytest.approx(np.log10(least), abs=0.05)
    assert logs.max() == pytest.approx(np.log10(largest), abs=0.05)
    assert {place.first > 0 for place in seen} == {place.second > 0 for place in seen} == {True, False}


def test_what_is_paid_has_a_row_for_each_algorithm_and_delta():
    worst = {"sharp": Hard(2, 3, 0.2, 0.6), "passive": Hard(1, 2, 0.3, 0.6)}
    table = rare_failures.paid(worst, [0.3, 0.1], runs=50, plain=70, seed=1)
    assert table["algorithm"].tolist() == ["sharp", "sharp", "passive", "passive"]
    assert table["delta"].tolist() == [0.3, 0.1, 0.3, 0.1]
    assert table["epsilon"].tolist() == [0.2, 0.2, 0.3, 0.3]
    algorithm = SHARP(2, 0.2, 0.1, rewards="sub-Gaussian")
    direct = importance.failure(algorithm, worst["sharp"].problem(), 50, 1, 70)
    assert tuple(table.loc[1, list(direct._fields)]) == direct


def made_up(failures, log10=(-3.0, -3.0)):
    return pd.DataFrame(
        {
            "algorithm": ["EBR", "sharp"],
            "delta": [0.01, 0.1],
            "n_arms": [2, 7],
            "deadline": [1, 3],
            "epsilon": [0.1, 0.01],
            "log10": log10,
            "relative_error": [0.1, 0.02],
            "races": 160,
            "failures": failures,
            "runs": 10_000,
        }
    )


RIGHT = pd.DataFrame({"off": np.linspace(-1.7, 1.7, 50), "races": 100})  # spread like standard normal errors
SHARES = pausing_shares.shares(only=iter([("Bernoulli", 2, 1, 0.3, 0.1), ("Gaussian", 2, 2, 0.01, 0.1)]))


def promises_kept(table):
    return rare_failures.promises_kept(table, RIGHT, SHARES)


def test_no_promise_is_kept_by_wrong_standard_errors_or_by_an_exact_share_above_one():
    assert promises_kept(made_up([0, 0])).holds
    for factor in (0.1, 3.0):
        wrong = RIGHT.assign(off=factor * RIGHT["off"])
        assert not rare_failures.promises_kept(made_up([0, 0]), wrong, SHARES).holds
    broken = SHARES.assign(share=[0.9, 1.0001])
    assert not rare_failures.promises_kept(made_up([0, 0]), RIGHT, broken).holds


def test_the_best_arm_comes_last_as_ties_go_to_the_first():
    means = Hard(1, 5, 0.2, 0.6, 2, 0.3, 1, 0.5).problem().means
    assert means == pytest.approx([0.54, 0.54, 0.5, 0.4, 0.6], abs=1e-6)


def test_the_worst_of_a_search_is_estimated_again_and_large_errors_do_not_count():
    searched = rare_failures.search("EBR", 18, 20, 1, 0.01, Space(0.01, 0.1, 3, 2))
    hard = rare_failures.worst("EBR", searched, 400, 2, 0.01)
    assert (hard.deadline, hard.n_arms, hard.epsilon) == (2, 2, 0.01)


def test_gaussian_arms_are_centred_as_only_differences_count():
    found = rare_failures.search("sharp, Gaussian", 25, 5, 1, 0.1, Space(0.01, 0.3, 4, 3))
    assert found["top"].tolist() == pytest.approx((0.5 + found["epsilon"] / 2).tolist(), rel=1e-8)


def test_promises_are_kept_until_the_plain_races_refute_it():
    limit = next(k for k in range(10_000) if binom.sf(k - 1, 10_000, 0.01) < 1e-6 / 2)  # one of two tests
    assert 140 < limit < 160
    assert promises_kept(made_up([limit - 1, 1000])).holds
    assert not promises_kept(made_up([limit, 1000])).holds
    assert not promises_kept(made_up([0, 1300])).holds


def test_the_evidence_names_the_algorithm_that_pays_most_of_its_delta():
    table = made_up([0, 0], log10=(-3.0, math.log10(0.05)))
    _, share, *_ = promises_kept(table).evidence
    assert (share.where, share.value) == ("sharp, δ = 0.1, n = 7, T = 3, ε = 0.01", pytest.approx(0.5))
