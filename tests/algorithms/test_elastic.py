"""Algorithm 1 and passive sampling: schedules by hand, races against plain loops."""

import math
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Rewards, accept_and_reject, elastic_batch_racing, play

import ebr

any_race = given(
    means=st.lists(st.floats(0, 1) | st.sampled_from([0.02, 0.45, 0.5, 0.55, 0.95]), min_size=2, max_size=8),
    data=st.data(),
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.2, 0.95),
    delta=st.floats(0.01, 0.9),
    sigma=st.floats(0.01, 0.6),
    seed=st.integers(0, 2**32),
)


def coins(means, replicates, seed):
    return (np.random.default_rng(seed).random((replicates, len(means), 97)) < np.array(means)[:, None]) * 1


def test_the_schedule_by_hand():
    # n = 2, T = 2, δ = 4/e², so log(nT/δ) = 2; ε = 1/4, σ = ½: 20 · 2 · 4^t = 160, 640.
    delta = 4 / np.e**2
    for changed, factor in (({}, 1), ({"schedule": "printed"}, 4), ({"sigma": 1}, 4)):
        found = ebr.ElasticBatchRacing(2, 0.25, delta, **changed).pulls_by_round(2)
        assert found.tolist() == [160 * factor, 640 * factor]


@settings(max_examples=200, deadline=None)
@any_race
def test_the_coroutine_makes_the_plain_loops_decisions(means, data, deadline, epsilon, delta, sigma, seed):
    again, table = data.draw(st.booleans()), coins(means, 1, seed)
    algorithm = ebr.ElasticBatchRacing(
        deadline, epsilon, delta, sigma, lone_survivor="pulled again" if again else "stops"
    )
    rewards = [cycle(row) for row in table[0].tolist()]
    expected = elastic_batch_racing(
        lambda arm: next(rewards[arm]), len(means), deadline, epsilon, delta, sigma, again
    )
    asked, arm = play(algorithm, Rewards(table))
    assert (sum(asked)[0].tolist(), arm[0], len(asked)) == expected


def elastic_top_k(rewards, k, deadline, epsilon, delta, sigma):
    n = len(rewards)
    L = math.log(n * deadline / delta)
    targets = [math.ceil(80 * sigma**2 * L * epsilon ** (-2 * t / deadline)) for t in range(1, deadline + 1)]

    def told(_, ahead, behind):
        pulled = ahead[0]
        width = sigma * math.sqrt((4 + 2 * math.log(2)) * L / pulled)
        return (ahead[1] - behind[1]) / pulled > max(2 * width - epsilon / min(n, deadline), 0)

    return accept_and_reject(rewards, k, targets, told, told)


@settings(max_examples=150, deadline=None)
@any_race
def test_a_race_for_the_k_best_is_the_plain_loop(means, data, deadline, epsilon, delta, sigma, seed):
    k, table = data.draw(st.integers(1, len(means) - 1)), coins(means, 3, seed)
    if data.draw(st.booleans()):
        table = np.random.default_rng(seed).normal(np.array(means)[:, None], sigma, table.shape)
    asked, arms = play(ebr.ElasticBatchRacing(deadline, epsilon, delta, sigma, k=k), Rewards(table))
    for replicate, rewards in enumerate(table.tolist()):
        mine = [ask[replicate].tolist() for ask in asked if ask[replicate].any()]
        expected = elastic_top_k(rewards, k, deadline, epsilon, delta, sigma)
        assert (mine, arms[replicate].ravel().tolist()) == expected


@pytest.mark.parametrize("reading", [{"lone_survivor": "pulled again"}, {"returned_from": "after it"}])
def test_readings_of_the_pseudo_code_are_for_one_arm(reading):
    ((name, value),) = reading.items()
    with pytest.raises(ValueError, match=rf"^{name} must be '.*' for k > 1, got '{value}'$"):
        ebr.ElasticBatchRacing(2, 0.3, 0.1, k=2, **reading)


def test_at_one_round_the_printed_rule_drops_every_arm():
    problem = ebr.setup_1()
    kept = ebr.simulate(ebr.ElasticBatchRacing(1, 0.1, 0.01), problem, runs=20)
    emptied = ebr.simulate(ebr.ElasticBatchRacing(1, 0.1, 0.01, returned_from="after it"), problem, runs=20)
    assert kept.correct(0.1).all()
    assert (emptied.arm == -1).all()
    assert not emptied.correct(0.1).any()


def test_passive_sampling_is_algorithm_1_with_one_round():
    for seed in range(100):
        generator = np.random.default_rng(seed)
        epsilon, delta = generator.uniform(0.01, 0.9, size=2)
        sigma = generator.uniform(0.05, 2)
        table = generator.random((3, int(generator.integers(2, 9)), 50))
        (passive,), arm = play(ebr.Passive(epsilon, delta, sigma), Rewards(table))
        (racing,), same = play(ebr.ElasticBatchRacing(1, epsilon, delta, sigma), Rewards(table))
        assert (passive == racing).all()
        assert (arm == same).all()
