"""Each configuration has splits of its own, in place of splits that all share."""

import numpy as np
from compendium.tuning import paired_splits
from scipy.stats import binomtest

BANK = np.random.default_rng(1).standard_normal((50, 4))


def test_every_configuration_has_splits_of_its_own():
    found = paired_splits.own_splits(BANK, 40, 60, seed=3)
    assert found.shape == (40, 60, 4)
    places = np.stack([np.argmax(BANK[:, arm] == found[..., arm, None], axis=-1) for arm in range(4)])
    assert (BANK[places, np.arange(4)[:, None, None]] == np.moveaxis(found, -1, 0)).all()
    assert all(set(place.ravel()) == set(range(50)) for place in places)
    # Six exact tests at 1e-6/6. Two configurations have the same split with probability 1/50.
    for one in range(4):
        for other in range(one):
            shared = int((places[one] == places[other]).sum())
            assert binomtest(shared, 2400, 1 / 50).pvalue > 1e-6 / 6


def test_the_same_splits_tell_configurations_apart_with_fewer_errors():
    # All noise comes from the split, so on shared splits the best configuration always wins.
    scores = BANK[:, :1] + np.array([0.0, 0.1, 0.2, 0.3])
    wrong = [True, True, True, False]
    table = paired_splits.compare(scores, wrong, [5], 400, seed=1).set_index("method")
    assert table.loc[paired_splits.SAME, "errors"] == 0
    assert table.loc[paired_splits.OWN, "errors"] > 0.2
