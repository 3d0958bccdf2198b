"""Rewards of small spread: sums and sums of squares are drawn together."""

import numpy as np
import pytest
from compendium.tuning.plus_minus import PlusMinus

from ebr.simulation.simulate import draw_sums


def test_sums_and_squares_are_those_of_the_same_two_rewards():
    problem, pulls = PlusMinus([0.5, 0.7], 0.1), np.array([[3, 0, 200], [50, 1, 7]])
    sums, squares = draw_sums(problem, problem.means[:, None], pulls, np.random.default_rng(1))
    for row, mean in enumerate(problem.means):
        for column, count in enumerate(pulls[row]):
            ups = round((sums[row, column] - count * (mean - 0.1)) / 0.2)
            assert 0 <= ups <= count
            rewards = [mean + 0.1] * ups + [mean - 0.1] * (count - ups)
            assert sums[row, column] == pytest.approx(sum(rewards))
            assert squares[row, column] == pytest.approx(sum(reward**2 for reward in rewards))
