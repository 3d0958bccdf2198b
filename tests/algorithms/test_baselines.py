"""The passive design and the iterated logarithm, by numbers worked by hand."""

import math

import pytest

from ebr.algorithms import baselines


def test_the_passive_pulls_by_hand():
    assert baselines.passive_pulls(2, 0.25, 2 * math.exp(-2), sigma=1) == pytest.approx(80 * 2 * 16)


def test_the_iterated_logarithm_by_hand():
    # log 100 = 4.60517, log 4.60517 = 1.52718, log 1.52718 < 1.
    found = [baselines.iterated_log(times, 100) for times in (0, 1, 2, 3, 15)]
    assert found == pytest.approx([100, 4.605170186, 1.527179626, 1, 1])
    in_bits = [baselines.iterated_log(times, 65536, base=2) for times in range(6)]
    assert in_bits == pytest.approx([65536, 16, 4, 2, 1, 1])
    assert baselines.iterated_log(1, 2) == 1


def test_the_iterated_logarithm_stops_where_it_no_longer_changes(monkeypatch):
    taken = 0

    def log(x, plain=math.log):
        nonlocal taken
        taken += 1
        return plain(x)

    monkeypatch.setattr("ebr.algorithms.baselines.math.log", log)
    assert baselines.iterated_log(10**7, 1e300) == 1.0
    # With base √2 it rises from 3 to 4, the larger solution of x = 2 log₂ x.
    assert baselines.iterated_log(10**12, 3.0, base=math.sqrt(2)) == pytest.approx(4, rel=1e-12)
    assert taken < 1000
