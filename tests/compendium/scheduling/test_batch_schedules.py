"""The scheduling lemma against its definition on a grid of x, random schedules, and cases worked by hand."""

import math
from itertools import combinations

import numpy as np
import pytest
from compendium.scheduling.batch_schedules import minimax_overpull, minimax_schedule, overpull, printed_bound
from hypothesis import assume, given, settings
from hypothesis import strategies as st

GOLDEN = (1 + math.sqrt(5)) / 2


def least_ratio(rounds):
    return GOLDEN ** (2 * rounds - 1)


def by_definition(batches, grid):
    """The maximum over a grid of x of the least subset sum above x, divided by x; and all sums."""
    sums = [sum(subset) for k in range(1, len(batches) + 1) for subset in combinations(batches, k)]
    return max(min(s for s in sums if s > x) / x for x in grid), sums


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 4), min_size=1, max_size=5), st.floats(0.01, 100), st.floats(0.05, 1))
def test_the_overpull_is_that_of_the_definition(logs, lowest, share):
    batches = [lowest * math.exp(log) for log in logs]
    highest = lowest * (sum(batches) / lowest) ** share
    assume(highest > lowest * 1.01)
    grid = np.geomspace(lowest, highest, 2001)[:-1]
    seen, sums = by_definition(batches, grid.tolist())
    assume(not any(grid[-1] < s < highest for s in sums))  # the grid ends before it
    step = grid[1] / grid[0]
    assert seen * (1 - 1e-12) <= overpull(batches, lowest, highest) <= seen * step * (1 + 1e-12)


@pytest.mark.parametrize(
    ("batches", "lowest", "highest", "expected"),
    [
        ([7.0], 2.0, 7.0, 3.5),
        ([2, 8], 1, 10, 4.0),  # the sums are 1, 2, 8, 10
        ([8, 2], 1, 2, 2.0),  # x = 2 is left out
        ([2, 100], 1, 3, 50.0),
        ([2, 4], 1, 6, 2.0),  # ρ(1+ρ) = 6
        ([2, 4, 12], 1, 18, 2.0),  # ρ(1+ρ)² = 18
        ([2, 4, 13], 1, 18, 13 / 6),
    ],
)
def test_overpulls_by_hand(batches, lowest, highest, expected):
    assert overpull(batches, lowest, highest) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_below_its_range_a_ratio_has_no_root(rounds):
    least = least_ratio(rounds) if rounds > 1 else 1.0
    assert minimax_overpull(rounds, least) == pytest.approx(GOLDEN if rounds > 1 else 1.0)
    with pytest.raises(ValueError, match="ratio must be at least"):
        minimax_overpull(rounds, 0.999 * least)


@st.composite
def places(draw):
    """A schedule of the class, in any order, near the best one or anywhere, and N/R."""
    rounds = draw(st.integers(1, 6))
    ratio = least_ratio(rounds) * math.exp(draw(st.floats(0, 8)))
    share = st.floats(0, 1).map(lambda u: u * math.log(ratio))
    near = draw(st.booleans())
    logs = draw(st.lists(st.floats(-0.3, 0.3) if near else share, min_size=rounds, max_size=rounds))
    batches = np.maximum(np.exp(logs) * (minimax_schedule(rounds, ratio) if near else 1), 1)
    batches *= max(1, ratio / batches.sum() * (1 + 1e-12))
    return draw(st.permutations(batches.tolist())), ratio


@settings(max_examples=600, deadline=None)
@given(places(), st.floats(1e-3, 1e3))
def test_no_schedule_of_the_class_overpulls_less_and_the_unit_does_not_matter(place, unit):
    batches, ratio = place
    found = overpull(batches, 1, ratio)
    assert found >= minimax_overpull(len(batches), ratio) * (1 - 1e-11)
    assert overpull([unit * q for q in batches], unit, unit * ratio) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("rounds", [*range(1, 17), 20])
@pytest.mark.parametrize("factor", [GOLDEN**2, 4.0, 10.0])
def test_the_best_schedule_attains_the_root(rounds, factor):
    ratio = max(factor**rounds, least_ratio(rounds) * (1 + 1e-12))
    rho, schedule = minimax_overpull(rounds, ratio), minimax_schedule(rounds, ratio)
    assert rho * (1 + rho) ** (rounds - 1) == pytest.approx(ratio, rel=1e-11)
    assert schedule.sum() == pytest.approx(ratio, rel=1e-11)
    assert (np.diff(schedule) >= 0).all()
    found = overpull(schedule, 1, schedule.sum())
    assert found == pytest.approx(rho, rel=1e-9)
    assert found < 1.02 * rho  # planted: a lower bound 2 % too large would be refuted
    assert found >= printed_bound(rounds, ratio) == pytest.approx(ratio ** (1 / rounds) / 8)
    if factor >= 4:
        assert rho >= 0.75 * ratio ** (1 / rounds) * (1 - 1e-12)


def test_huge_ratios_have_a_root_too():
    rho = minimax_overpull(16, 1e100)
    assert math.log(rho) + 15 * math.log1p(rho) == pytest.approx(100 * math.log(10), rel=1e-12)
