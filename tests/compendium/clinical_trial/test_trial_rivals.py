"""The compared trial designs: which they are, their tables and their figure."""

from contextlib import nullcontext

import matplotlib.pyplot as plt
import numpy as np
import pytest
from compendium.clinical_trial import trial_figures, trial_rivals, trial_standing, vaccine_trial

import ebr

EPSILON, DELTA, RATES = 0.1, 0.3, (0.5, 0.525, 0.7)
CERTIFIED = trial_rivals.CERTIFIED


@pytest.fixture(scope="module")
def field():
    # Here any race may take the place of the certified one.
    return trial_rivals.entrants(ebr.SharpElasticBatchRacing(3, EPSILON, DELTA), 3, EPSILON, DELTA)


@pytest.fixture(scope="module")
def table(field):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_rivals, "workers", nullcontext)
        grid = vaccine_trial.truths(EPSILON, RATES)
        return trial_rivals.over_truths(grid, field, EPSILON, 300, 20, seed=1)


def test_rivals_are_those_of_others_that_keep_the_deadline(field):
    rivals = [name for name, entrant in field.items() if entrant.rival]
    assert len(rivals) == 7
    for name in rivals:
        deadline = field[name].algorithm.deadline
        assert (deadline or 4) <= 4  # dropping the losers takes n − 1 = 4 stages
    assert not field["Levin–Robbins–Leu"].rival
    assert all(entrant.algorithm.delta == DELTA for entrant in field.values())


def test_every_design_is_tried_on_every_truth(field, table):
    assert table["design"].unique().tolist() == list(field)
    assert (table.groupby("design").size() == 10).all()
    trials = table.groupby("design")["trials"].first()
    assert {name for name in trials.index if trials[name] == 20} == {"staked EBR", "Levin–Robbins–Leu"}
    own = table[table["design"] == "pausing EBR"].reset_index(drop=True)
    alone = vaccine_trial.compare(
        vaccine_trial.truths(EPSILON, RATES), field["pausing EBR"].algorithm, EPSILON, 300, seed=1
    )
    assert own.drop(columns="design").equals(alone)


def test_the_table_has_the_four_truths_and_the_most_errors(field, table):
    found = trial_standing.standing(table, field)
    for name in field:
        own = table[table["design"] == name]
        for column, ((truth, rate), _) in zip(found.columns, trial_standing.AIMS.items(), strict=False):
            (row,) = own[(own["truth"] == truth) & (own["best_rate"] == rate)].to_dict("records")
            words = found.loc[name, column].replace(",", "").split(" ± ")
            assert int(words[0]) == round(row["subjects"])
            assert len(words) == 1 or int(words[1]) == round(2.5758 * row["standard_error"])
        assert found.loc[name, "most errors"].startswith(f"{own['errors'].max():.1%} (")


def test_the_best_rival_is_the_one_with_the_fewest_subjects(field, table):
    ratios = trial_standing.against(table, field)
    assert len(ratios) == 10
    for row in ratios.to_dict("records"):
        here = table[(table["truth"] == row["truth"]) & (table["best_rate"] == row["best_rate"])]
        means = dict(zip(here["design"], here["subjects"], strict=True))
        others = {name: mean for name, mean in means.items() if field[name].rival}
        ours = {name: mean for name, mean in means.items() if field[name].ours and name != CERTIFIED}
        assert row["rival"] == min(others, key=others.get)
        assert row["ratio"] == pytest.approx(means[CERTIFIED] / min(others.values()))
        assert row["other_ratio"] == pytest.approx(means[CERTIFIED] / min(ours.values()))
        assert row["fixed_ratio"] == pytest.approx(means[CERTIFIED] / means["fixed, exact"])
    assert trial_standing.in_words(ratios).shape == (10, 5)


def test_every_design_with_a_deadline_is_compared_on_all_truths(field, table):
    found = trial_standing.each_rival(table, field)
    assert list(found.index) == [name for name in field if name not in (CERTIFIED, "Levin–Robbins–Leu")]
    means = {name: part["subjects"].to_numpy() for name, part in table.groupby("design")}
    errors = {name: part["standard_error"].to_numpy() for name, part in table.groupby("design")}
    for name, row in found.iterrows():
        ratio = means[CERTIFIED] / means[name]
        reach = 2.5758 * ratio * np.hypot(errors[CERTIFIED] / means[CERTIFIED], errors[name] / means[name])
        assert [row["least"], row["most"]] == pytest.approx([ratio.min(), ratio.max()])
        assert row["mean"] == pytest.approx(np.prod(ratio) ** 0.1)
        assert [row["fewer"], row["more"]] == [(ratio + reach < 1).sum(), (ratio - reach > 1).sum()]
    assert trial_standing.each_in_words(found, 10).shape == (len(found), 5)


def test_the_figure_has_a_curve_for_every_design_on_its_scale(field, table):
    ratios = trial_standing.against(table, field)
    figure = trial_figures.draw_designs(table, ratios)
    plt.close(figure)
    above, below = figure.axes[:3], figure.axes[3:]
    assert [axis.get_title() for axis in above] == [vaccine_trial.HARD, "all others 0.3 worse", "all alike"]
    for high, low in zip(above, below, strict=True):
        for drawn, name in zip(high.containers, trial_figures.DESIGN_LOOKS, strict=True):
            rows = table[(table["truth"] == high.get_title()) & (table["design"] == name)]
            assert drawn.lines[0].get_ydata().tolist() == rows["subjects"].tolist()
        rows = ratios[ratios["truth"] == high.get_title()]
        assert np.array_equal(low.containers[0].lines[0].get_ydata(), rows["ratio"])
    assert set(field) - set(trial_figures.DESIGN_LOOKS) == {"Algorithm 1", "fixed, the paper's"}
