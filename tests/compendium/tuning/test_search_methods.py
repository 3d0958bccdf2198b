"""Ways to choose a configuration, each against a plain loop; scikit-learn's by its number of fits."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from compendium.tuning import configurations, search_methods
from oracles import overheard
from scipy.stats import beta, wilcoxon

import ebr
from ebr.algorithms.game import drive

GENERATOR = np.random.default_rng(1)
MEANS = np.array([0.5, 0.55, 0.3, 0.6, 0.58])
BANK = MEANS + 0.1 * GENERATOR.standard_normal((50, 5))
SCORES = search_methods.repeated(BANK, 40, 60, seed=3)


def test_repetitions_draw_whole_splits_of_the_bank():
    rows = {tuple(row) for row in BANK}
    assert SCORES.shape == (40, 60, 5)
    assert all(tuple(row) in rows for row in SCORES.reshape(-1, 5))
    assert len({tuple(row) for row in SCORES[0]}) < 50  # with replacement


def test_a_paired_race_has_the_sigma_of_its_differences():
    race = search_methods.race_of(5, 0.03, 0.05, 0.12)
    assert race.sigma * np.sqrt(2) == pytest.approx(0.12)
    assert (race.deadline, race.epsilon, race.delta) == (5, 0.03, 0.05)


def test_a_race_is_the_one_of_its_repetition_alone():
    algorithm = ebr.SharpElasticBatchRacing(3, 0.05, 0.3, 0.05)
    assert algorithm.pulls_by_round(5)[-1] <= 60
    found = search_methods.raced(algorithm, SCORES)
    for number, scores in enumerate(SCORES):
        taken, fits = np.zeros(5, dtype=int), 0

        def respond(asked, scores=scores):
            nonlocal taken, fits
            sums = [scores[taken[arm] : taken[arm] + asked[0, arm], arm].sum() for arm in range(5)]
            taken, fits = taken + asked[0], fits + asked.sum()
            return np.array([sums])

        (arm,) = drive(algorithm.play(5, rewards="sub-Gaussian"), respond)
        assert (found.arm[number], found.fits[number]) == (arm, fits)
        assert found.images[number] == 100 * fits
    assert len(set(found.fits)) > 1


def test_a_race_that_assumes_nothing_scores_on_splits_of_the_bank_and_is_told_their_squares():
    bank, told = np.clip(BANK, 0, 1), []

    class Noted(ebr.StakedElasticBatchRacing):
        def play(self, *entered, **known):
            return overheard(super().play(*entered, **known), lambda *round_: told.append(round_))

    race = Noted(6, 0.1, 0.2, rewards="bounded", squares=True)
    found = search_methods.raced_alone(race, bank, 30, seed=1)
    assert found.fits.tolist() == sum(pulls for pulls, _ in told).sum(axis=1).tolist()
    assert (bank.mean(axis=0)[found.arm] > bank.mean(axis=0).max() - 0.1).all()
    pulls, (sums, squares) = told[0]  # sums of scores in the bank
    means, spreads = sums / pulls, squares / pulls - (sums / pulls) ** 2
    error = bank.std(axis=0) / np.sqrt(pulls * 30)
    assert (abs(means.mean(axis=0) - bank.mean(axis=0)) < 5.5 * error).all()  # chance: one in a million
    assert spreads.mean(axis=0) == pytest.approx(bank.var(axis=0) * (1 - 1 / pulls[0]), rel=0.3)
    alone = search_methods.raced_alone(search_methods.open_race(6, 0.1, 0.2, squares=False), bank, 30, seed=1)
    assert alone.fits.mean() > 3 * found.fits.mean()


def test_a_grid_search_takes_the_best_mean_of_its_splits():
    found = search_methods.searched(SCORES, 7)
    for number, scores in enumerate(SCORES):
        means = [sum(scores[:7, arm]) for arm in range(5)]
        assert found.arm[number] == means.index(max(means))
    assert set(zip(found.fits, found.images, strict=True)) == {(35, 3500)}


def test_successive_halving_keeps_the_better_half_in_every_round():
    found = search_methods.halved(SCORES, 60)
    # Three rounds of 20 fits: 4 splits of 5 arms, 6 of 3, 10 of 2.
    assert (found.fits == 20 + 18 + 20).all()
    for number, scores in enumerate(SCORES):
        alive, used = list(range(5)), 0
        for each, keep in ((4, 3), (6, 2), (10, 1)):
            used += each
            alive = sorted(alive, key=lambda arm: -scores[:used, arm].sum())[:keep]
        assert found.arm[number] == alive[0]


def by_scipy(differences):
    return wilcoxon(differences, alternative="less", zero_method="zsplit").pvalue


@pytest.mark.parametrize("number", [2, 3, 5, 14, 30])
def test_signed_ranks_have_scipys_p_values(number):
    scores = GENERATOR.integers(-8, 6, size=(6, number)) / 50  # with ties and zeros, as scores of 50 images
    found = search_methods.signed_rank(scores)
    assert found == pytest.approx([by_scipy(row) for row in scores])


def test_a_pruner_gives_up_configurations_that_are_surely_behind():
    scores = np.round(np.clip(SCORES[:10, :6], 0, 1) * 25) / 25
    found = search_methods.pruned(scores, 6, seed=4)
    orders = np.random.default_rng(4).permuted(np.tile(np.arange(5), (10, 1)), axis=1)
    for number, (table, order) in enumerate(zip(scores, orders, strict=True)):
        best, fits = order[0], 6
        for arm in order[1:]:
            for tried in range(1, 7):
                fits += 1
                mine, leader = table[:tried, arm], table[:, best]
                apart = np.round(mine - leader[:tried], 9)
                if tried > 1 and mine.mean() < leader.mean() and by_scipy(apart) < 0.1:
                    break
            else:
                best = arm if mine.mean() > leader.mean() else best
        assert (found.arm[number], found.fits[number]) == (best, fits)
    assert len(set(found.fits)) > 1


@pytest.mark.slow
def test_scikit_learns_halving_fits_five_models_a_candidate(monkeypatch):
    # 12 candidates on 125 images, 4 on 375, 2 on 1125 of 1198. Trees are trained on four fifths of them.
    arm, fits, images = search_methods.halving_search(1)
    assert list(configurations.configurations())[arm]
    assert (fits, images) == (5 * (12 + 4 + 2), 5 * (12 * 100 + 4 * 300 + 2 * 900))
    monkeypatch.setattr(search_methods, "workers", nullcontext)
    found = search_methods.sklearn_halving(2, seed=1)
    assert found.arm[0] == arm
    assert found.fits.tolist() == [fits, fits]
    monkeypatch.setattr(search_methods, "accuracy", None)  # scikit-learn's own
    assert search_methods.halving_search(1)[0] == arm


def test_a_row_counts_wrong_choices():
    wrong = MEANS <= 0.57
    races = [search_methods.open_race(4, 0.3, 0.3)]
    assumed = [search_methods.race_of(3, 0.05, 0.3, s) for s in (0.1, 0.05)]
    bank = np.clip(BANK, 0, 1)
    rows = search_methods.compare(bank, wrong, races, assumed, (2, 5), (30, 60), 50, seed=2, pruners=(4,))
    table = pd.DataFrame(rows)
    assumed, halving = ["race, s assumed"] * 2, ["successive halving"] * 2
    assert table["method"].tolist() == ["race", *assumed, *["grid search"] * 2, "Wilcoxon pruner", *halving]
    assert table["setting"].tolist() == [
        "T = 4, δ = 0.3",
        "s = 0.1",
        "s = 0.05",
        "2 splits",
        "5 splits",
        "4 splits",
        "30 fits",
        "60 fits",
    ]
    chosen = search_methods.searched(search_methods.repeated(BANK, 50, 2, 2), 2)
    mistakes = sum(MEANS[arm] <= 0.57 for arm in chosen.arm)
    row = table.iloc[3]
    assert mistakes > 0
    assert row[["fits", "images", "errors", "repetitions"]].tolist() == [10, 1000, mistakes / 50, 50]
    assert row["lower"] == pytest.approx(beta.ppf(0.025, mistakes, 51 - mistakes))
    assert row["upper"] == pytest.approx(beta.ppf(0.975, mistakes + 1, 50 - mistakes))
