"""Trials whose subjects drop out, and trials with a control."""

import matplotlib.pyplot as plt
import pytest
from compendium.clinical_trial import vaccine_trial
from compendium.what_trials_need import dropouts, futile_trials

import ebr

CERTIFIED = ebr.CertifiedElasticBatchRacing(5, (30, 60, 120), (2.9, 2.7), 0.2, 0.2, floor=2.8, shifts=(0.3,))


@pytest.mark.parametrize("race", [ebr.SharpElasticBatchRacing(3, 0.1, 0.2), CERTIFIED])
def test_losses_that_depend_on_rewards_break_the_guarantee_that_random_losses_keep(race):
    truth = vaccine_trial.one_better(0.75, race.epsilon * 1.001)
    table = dropouts.compare(race, 3, truth, 200, seed=1).set_index("lost")
    assert (table["lower"][table["at_random"]] <= 0.2).all()
    if race is not CERTIFIED:  # its epsilon is too large for that
        assert table["lower"]["three in ten of them"] > 0.2
    assert table["seen"]["nobody"] == table["asked"]["nobody"]
    assert dropouts.shown(table.reset_index())["errors"].tolist() == [f"{it:.1%}" for it in table["errors"]]


def test_recommending_the_control_is_no_error_where_no_arm_is_better_by_the_margin():
    table = futile_trials.compare(CERTIFIED, [0.3], [0.0, 0.15], 0.5, 4, 100, seed=1)
    without, _, alike, better = table["kept"]
    assert alike > max(0.4, better) > without + 0.1
    assert (table["errors"] <= 0.2).all()
    plt.close(figure := futile_trials.draw(table))
    assert [len(axis.lines) for axis in figure.axes][1] == 2
