import math

import pytest
from compendium.gaussian_looks import joint_looks
from compendium.shared.joint_race import SharpElasticBatchRacing

import ebr


def test_a_row_is_what_two_simulations_say():
    (row,) = joint_looks.compared([2], 0.3, 0.1, 5, runs=50, seed=3).loc[["Setup 1"]].itertuples()
    pulls = {}
    for looks in ("union", "joint"):
        race = SharpElasticBatchRacing(2, 0.3, 0.1, rewards="Gaussian", looks=looks)
        pulls[looks] = ebr.simulate(race, ebr.Gaussian(ebr.setup_1(5).means, 0.5), 50, 3).pulls
    union, joint = pulls["union"], pulls["joint"]
    assert (row.union, row.joint) == (union.mean(), joint.mean())
    assert row.ratio == pytest.approx(joint.mean() / union.mean())
    relative = math.hypot(*(p.std(ddof=1) / p.mean() / math.sqrt(50) for p in (union, joint)))
    assert row.error == pytest.approx(row.ratio * relative)


def test_with_one_round_the_joint_law_is_bechhofers_design_and_needs_fewer_pulls():
    table = joint_looks.compared([1], 0.01, 0.01, 100, runs=1, seed=1)
    assert table["joint"].tolist() == [6_432_000, 6_432_000]  # 64,320 of each arm
    assert (table["union"] > table["joint"]).all()


@pytest.mark.parametrize(
    ("deadline", "epsilon", "delta", "pulls"),
    [(15, 0.1, 0.3, 28), (15, 0.3, 0.05, 32), (100, 0.25, 0.05, 44)],
)
def test_with_the_largest_term_for_l_the_bound_for_joint_looks_would_be_false(
    deadline, epsilon, delta, pulls
):
    table = joint_looks.cost_bounds([(deadline, epsilon, delta)], runs=50, seed=1).iloc[0]
    assert (table["least"], table["most"]) == (pulls, pulls)
    for name in ("max L_t", "L"):  # n = 2, σ = ½, w₀ = ½: 36σ² = 9 and H = 2/(1 + ε)²
        by_hand = 9 * (0.5 / epsilon) ** (2 / deadline) * table[name] * 2 / (1 + epsilon) ** 2 + 2
        assert table[f"bound with {name}"] == pytest.approx(by_hand)
    assert table["bound with max L_t"] < pulls < table["bound with L"]


@pytest.mark.parametrize("place", [(15, 0.1, 0.3, 0.5), (40, 0.05, 0.1, 0.3)])
def test_l_of_joint_looks_is_the_least_with_which_all_counts_fit(place):
    (deadline, epsilon, _, sigma), race = place, SharpElasticBatchRacing(*place, "Gaussian")
    found, planned, before = 0.0, None, 0
    widths = [0.5 * (2 * epsilon) ** (t / deadline) for t in range(1, deadline + 1)]
    for count, width in zip(race.pulls_by_round(3).tolist(), widths, strict=True):
        planned = planned or width  # the width of the first round after the last look
        if count > before:
            found, planned, before = max(found, (count - 1) * planned**2 / (4 * sigma**2)), None, count
    assert race.longest(3) == pytest.approx(found)
