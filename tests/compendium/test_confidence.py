"""Notebook 02: the stopped Brownian motion against simulation and closed forms."""

import math

import numpy as np
import pytest
from compendium import confidence


def test_a_stopped_brownian_motion_by_simulation():
    # 200,000 chains of 20 looks; 5 standard errors: a failure by chance has probability 5.7e-7.
    generator = np.random.default_rng(1)
    value, outside = generator.standard_normal(200_000), np.zeros(200_000, dtype=bool)
    for look in range(20):
        if look:
            value = 0.5 * value + math.sqrt(0.75) * generator.standard_normal(200_000)
        outside |= np.abs(value) > 2.0
    expected = confidence.stopped_probability(2.0, stages=20, growth=4.0)
    assert abs(outside.mean() - expected) < 5 * math.sqrt(expected * (1 - expected) / 200_000)


def test_one_look_is_a_normal_tail_and_distant_looks_are_independent():
    tail = math.erfc(2.5 / math.sqrt(2))
    assert confidence.stopped_probability(2.5, stages=1) == pytest.approx(tail, rel=1e-9)
    assert confidence.stopped_probability(2.5, 7, growth=1e12) == pytest.approx(1 - (1 - tail) ** 7, rel=1e-5)
