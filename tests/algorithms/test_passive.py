"""The passive design: one round, by hand."""

import numpy as np
from oracles import Rewards, Seasons, play

import ebr


def test_passive_sampling_by_hand():
    # 80/4 · log(100/0.01) / 0.1² = 2000 · 9.21034 = 18420.7; with σ = 1, 73682.7.
    for sigma, pulls in ((0.5, 18421), (1.0, 73683)):
        values = np.random.default_rng(1).random((1, 100))
        asked, arm = play(ebr.Passive(0.1, 0.01, sigma), Seasons(values))
        assert [ask.tolist() for ask in asked] == [[[pulls] * 100]]
        assert arm.tolist() == [values.argmax()]


def test_passive_sampling_is_elastic_batch_racing_with_one_round():
    for seed in range(300):
        generator = np.random.default_rng(seed)
        epsilon, delta = generator.uniform(0.01, 0.9, size=2)
        sigma = generator.uniform(0.05, 2)
        table = generator.random((3, int(generator.integers(2, 9)), 50))
        (passive,), arm = play(ebr.Passive(epsilon, delta, sigma), Rewards(table))
        (racing,), same = play(ebr.ElasticBatchRacing(1, epsilon, delta, sigma), Rewards(table))
        assert (passive == racing).all()
        assert (arm == same).all()
