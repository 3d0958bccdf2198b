"""Figure 1: what is drawn of each race, and what its check needs."""

import matplotlib.pyplot as plt
import pytest
from compendium.setting import figure_1

import ebr

COINS = ebr.Bernoulli([0.9, 0.8, 0.1])


def test_each_column_tells_how_often_the_easy_arm_is_pulled():
    races = {"T = 1": ebr.ElasticBatchRacing(1, 0.2, 0.1), "T = ∞": ebr.SequentialRacing(0.2, 0.1)}
    races |= {"T = 3": ebr.ElasticBatchRacing(3, 0.2, 0.1)}
    table = figure_1.traces(races, COINS, seed=1)
    figure = figure_1.draw(table, rounds=3)
    for axis, (label, frame) in zip(figure.axes, table.groupby("deadline", sort=False), strict=False):
        last = frame[frame["arm"] == 3].iloc[-1]
        dropped = "dropped after\n" if last["round"] < frame["round"].max() else ""
        assert axis.get_title() == f"{label}: {frame['total'].max():,} pulls in all"
        assert axis.texts[0].get_text() == f"arm 3: {dropped}{last['pulls']:,} pulls"
    plt.close(figure)


def test_figure_1_needs_pulls_per_arm():
    one = ebr.simulate(ebr.ElasticBatchRacing(1, 0.3, 0.1), COINS, runs=2)
    with pytest.raises(ValueError, match="per_arm=True"):
        figure_1.easy_arm(one, one, one, arm=1, rounds=1)
