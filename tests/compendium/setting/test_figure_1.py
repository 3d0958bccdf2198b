"""Figure 1's check."""

import pytest
from compendium.setting import figure_1

import ebr


def test_figure_1_needs_pulls_per_arm():
    one = ebr.simulate(ebr.ElasticBatchRacing(1, 0.3, 0.1), ebr.Bernoulli([0.9, 0.1]), runs=2)
    with pytest.raises(ValueError, match="per_arm=True"):
        figure_1.easy_arm(one, one, one, arm=1, rounds=1)
