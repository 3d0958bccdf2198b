"""Algorithm 1: its schedule by hand, and the coroutine against a plain loop on the same rewards."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import elastic_batch_racing

import ebr
from ebr.algorithms.game import drive


class Table:
    """A fixed table of 0/1 rewards: the k-th pull of an arm pays the same whoever asks."""

    def __init__(self, means, seed):
        self.generator = [np.random.default_rng([seed, arm]) for arm in range(len(means))]
        self.means = means
        self.rewards = [np.empty(0, dtype=int) for _ in means]
        self.used = [0] * len(means)

    def pull(self, arm, count=1):
        needed = self.used[arm] + count
        if needed > len(self.rewards[arm]):
            fresh = self.generator[arm].random(2 * needed) < self.means[arm]
            self.rewards[arm] = np.append(self.rewards[arm], fresh)
        paid = self.rewards[arm][self.used[arm] : needed].sum()
        self.used[arm] = needed
        return int(paid)


def play_one(algorithm, table):
    """Drive the coroutine for one replicate on a table; return pulls per arm, arm, rounds."""
    n_arms = len(table.means)
    rounds = 0

    def respond(pulls):
        nonlocal rounds
        rounds += bool(pulls.any())
        return np.array([[table.pull(arm, count) for arm, count in enumerate(pulls[0])]], dtype=float)

    (arm,) = drive(algorithm.play(n_arms), respond)
    return table.used, int(arm), rounds


def test_the_schedule_by_hand():
    # n = 2, T = 2, δ = 4/e², so log(nT/δ) = 2; ε = 1/4, σ = ½: 20 · 2 · 4^t = 160, 640.
    delta = 4 / np.e**2
    assert ebr.ElasticBatchRacing(2, 0.25, delta).pulls_by_round(2).tolist() == [160, 640]
    assert ebr.ElasticBatchRacing(2, 0.25, delta, schedule="printed").pulls_by_round(2).tolist() == [
        640,
        2560,
    ]
    assert ebr.ElasticBatchRacing(2, 0.25, delta, sigma=1).pulls_by_round(2).tolist() == [640, 2560]


@settings(max_examples=300, deadline=None)
@given(
    means=st.lists(st.floats(0, 1), min_size=2, max_size=5),
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.2, 0.95),
    delta=st.floats(0.01, 0.9),
    sigma=st.floats(0.01, 0.6),
    again=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_the_coroutine_makes_the_plain_loops_decisions(means, deadline, epsilon, delta, sigma, again, seed):
    algorithm = ebr.ElasticBatchRacing(
        deadline, epsilon, delta, sigma, lone_survivor="pulled again" if again else "stops"
    )
    expected = elastic_batch_racing(
        Table(means, seed).pull, len(means), deadline, epsilon, delta, sigma, again
    )
    assert play_one(algorithm, Table(means, seed)) == expected


def test_at_one_round_the_printed_rule_drops_every_arm():
    problem = ebr.setup_1()
    kept = ebr.simulate(ebr.ElasticBatchRacing(1, 0.1, 0.01), problem, runs=20)
    emptied = ebr.simulate(ebr.ElasticBatchRacing(1, 0.1, 0.01, returned_from="after it"), problem, runs=20)
    assert kept.correct(0.1).all()
    assert (emptied.arm == -1).all()
    assert not emptied.correct(0.1).any()


def test_a_tiny_sigma_cannot_empty_the_race():
    # One pull decides when σ = 0.001, and 2D < ε/(n∧T): the printed rule would drop the leader too.
    result = ebr.simulate(
        ebr.ElasticBatchRacing(3, 0.5, 0.1, sigma=0.001), ebr.Gaussian([0.2, 0.9, 0.5], 0.001), runs=200
    )
    assert (result.arm == 1).all()
    assert (result.pulls == 3).all()


def test_a_printed_lone_survivor_is_pulled_for_one_more_round():
    algorithm = ebr.ElasticBatchRacing(4, 0.05, 0.01, lone_survivor="pulled again")
    schedule = algorithm.pulls_by_round(2)
    result = ebr.simulate(algorithm, ebr.Bernoulli([1.0, 0.0]), runs=10)
    assert (result.pulls == schedule[0] + schedule[1]).all()
    assert (result.rounds == 2).all()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"deadline": 0}, r"deadline .* at least 1, got 0"),
        ({"deadline": 2.5}, r"deadline must be an integer .* got 2\.5"),
        ({"deadline": True}, r"deadline must be an integer"),
        ({"epsilon": 1.5}, r"epsilon must lie in \(0, 1\), got 1\.5"),
        ({"epsilon": float("nan")}, r"epsilon must lie in \(0, 1\), got nan"),
        ({"epsilon": "0.1"}, r"epsilon must lie in \(0, 1\), got '0\.1'"),
        ({"delta": 0}, r"delta must lie in \(0, 1\), got 0"),
        ({"sigma": -1}, r"sigma .* above 0, got -1"),
        ({"schedule": "fast"}, r"schedule must be one of 'scaled', 'printed', got 'fast'"),
        ({"lone_survivor": "x"}, r"lone_survivor must be one of"),
        ({"returned_from": "x"}, r"returned_from must be one of"),
    ],
)
def test_bad_parameters_are_named_with_their_range(arguments, names):
    with pytest.raises(ValueError, match=names):
        ebr.ElasticBatchRacing(**{"deadline": 3, "epsilon": 0.1, "delta": 0.1} | arguments)


def test_more_pulls_than_can_be_summed_exactly_is_an_error_not_an_overflow():
    with pytest.raises(ValueError, match="must be large enough for at most 2"):
        ebr.simulate(ebr.ElasticBatchRacing(2, 1e-9, 0.1), ebr.setup_1(), runs=1)
