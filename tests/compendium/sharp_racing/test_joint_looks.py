import math

import pytest
from compendium.sharp_racing import joint_looks

import ebr


def test_a_row_is_what_two_simulations_say():
    (row,) = joint_looks.compared([2], 0.3, 0.1, 5, runs=50, seed=3).loc[["Setup 1"]].itertuples()
    pulls = {}
    for looks in ("union", "joint"):
        race = ebr.SharpElasticBatchRacing(2, 0.3, 0.1, rewards="Gaussian", looks=looks)
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
