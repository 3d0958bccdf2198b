"""Every algorithm follows the rules of the game and refuses parameters outside their range."""

from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Rewards, play

import ebr
from ebr.simulation.simulate import Simulation

SEEDED, IN_UNIT, COINS = ({"generator": 2}, {"rewards": "bounded"}, {"rewards": "Bernoulli"})
# By name: a function of T, ε, δ and σ that makes the algorithm, and further arguments of `play`.
FAMILY = {
    "elastic": (ebr.ElasticBatchRacing, {}),
    "as printed": (partial(ebr.ElasticBatchRacing, schedule="printed", lone_survivor="pulled again"), {}),
    "passive": (lambda T, *rest: ebr.Passive(*rest), {}),
    "aggressive": (lambda *rest: ebr.AggressiveElimination(*rest[:3]), {}),
    "rounding down": (lambda *rest: ebr.AggressiveElimination(*rest[:3], "down"), {}),
    "published": (lambda *rest: ebr.DeltaElimination(*rest[:3]), SEEDED),
    "released": (lambda *rest: ebr.DeltaElimination(*rest[:3], "released"), SEEDED),
    "ahead": (lambda T, *rest: ebr.SequentialRacing(*rest), IN_UNIT),
    "sweeping": (lambda T, *rest: ebr.SequentialRacing(*rest), {}),
    "until alone": (
        lambda T, *rest: ebr.SequentialRacing(*rest[:2], min(rest[2], 0.1), end="lone survivor"),
        IN_UNIT,
    ),
    "sharp": (ebr.SharpElasticBatchRacing, {}),
    "sharp, Gaussian": (partial(ebr.SharpElasticBatchRacing, rewards="Gaussian", split="equal"), {}),
    "sharp, bounded": (lambda *rest: ebr.SharpElasticBatchRacing(*rest[:3]), IN_UNIT),
    "pausing": (ebr.PausingElasticBatchRacing, {}),
    "pausing, Gaussian": (partial(ebr.PausingElasticBatchRacing, rewards="Gaussian", lead=10), {}),
    "pausing, bounded": (lambda *rest: ebr.PausingElasticBatchRacing(*rest[:3]), IN_UNIT),
    "pausing, Bernoulli": (lambda *rest: ebr.PausingElasticBatchRacing(*rest[:3]), COINS),
    "staked": (ebr.StakedElasticBatchRacing, {}),  # for rewards 0 and 1 it draws lots
    "staked, Gaussian": (partial(ebr.StakedElasticBatchRacing, rewards="Gaussian", start=1.0), {}),
    "staked, bounded": (lambda *rest: ebr.StakedElasticBatchRacing(*rest[:3]), IN_UNIT),
    "certified, Gaussian": (  # for rewards 0 and 1 it draws lots
        lambda T, *rest: ebr.CertifiedElasticBatchRacing(
            6, [3 * 2**t for t in range(T)], [2.5] * (T - 1), *rest, rewards="Gaussian", pruning=0.8
        ),
        {},
    ),
}
ROUNDS = {"passive": lambda T: 1, **dict.fromkeys(("ahead", "sweeping", "until alone"))}
PAUSING = ("pausing", "pausing, Gaussian", "pausing, bounded", "pausing, Bernoulli")
STAKED = ("staked", "staked, Gaussian", "staked, bounded")
NOT_RACING = ("passive", "aggressive", "rounding down", "published", "released")
any_game = given(
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.3, 0.95),
    delta=st.floats(0.02, 0.9),
    sigma=st.floats(0.02, 0.5),
    n_arms=st.integers(2, 6),
    replicates=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)


def play_any(name, table, parameters):
    make, told = FAMILY[name]
    seeded = {"generator": np.random.default_rng(told["generator"])} if "generator" in told else {}
    return play(make(*parameters), Rewards(table), **told | seeded)


def continuous_table(replicates, n_arms, seed):
    """Rewards in [0, 1] from arms with different means; no two sums are equal."""
    generator = np.random.default_rng(seed)
    spread = generator.random((replicates, n_arms, 1))
    return generator.random((replicates, n_arms, 61)) * (1 - spread) + generator.random(spread.shape) * spread


@pytest.mark.parametrize("name", FAMILY)
@settings(max_examples=60, deadline=None)
@any_game
def test_every_game_keeps_the_rules(name, deadline, epsilon, delta, sigma, n_arms, replicates, seed):
    table = continuous_table(replicates, n_arms, seed)
    asked, arm = play_any(name, table, (deadline, epsilon, delta, sigma))
    most = ROUNDS.get(name, lambda T: T)
    assert most is None or 1 <= len(asked) <= most(deadline)
    for ask in asked:
        assert ask.shape == (replicates, n_arms)
        assert np.issubdtype(ask.dtype, np.integer)
        assert ask.min() >= 0
        assert ask.max() >= 1
    played = np.array([ask.any(axis=1) for ask in asked])
    assert played[0].all()
    assert (played[1:] <= played[:-1]).all()  # a finished replicate stays finished
    assert arm.shape == (replicates,)
    last = played.sum(axis=0) - 1
    for replicate in range(replicates):  # the winner is pulled to the end, or most often
        pulls = np.sum(asked, axis=0)[replicate]
        still = asked[last[replicate]][replicate, arm[replicate]] > 0
        assert still or name in STAKED or (name in PAUSING and pulls[arm[replicate]] == pulls.max())
    if name not in (*NOT_RACING, *PAUSING, *STAKED):  # a dropped arm stays dropped
        pulled = np.array(asked) > 0
        assert (pulled[1:] <= pulled[:-1]).all()


@pytest.mark.parametrize("name", FAMILY)
@settings(max_examples=40, deadline=None)
@any_game
def test_neither_the_order_of_the_arms_nor_the_other_replicates_matter(
    name, deadline, epsilon, delta, sigma, n_arms, replicates, seed
):
    # With at most six arms kδER's lots do not matter: they choose from one arm, as δ₁n/2 < 1.
    table = continuous_table(replicates, n_arms, seed)
    order = np.random.default_rng([seed, 1]).permutation(n_arms)
    asked, arm = play_any(name, table, (deadline, epsilon, delta, sigma))
    for replicate in range(replicates):
        alone, same = play_any(name, table[[replicate]][:, order], (deadline, epsilon, delta, sigma))
        together = [ask[[replicate]][:, order] for ask in asked if ask[replicate].any()]
        assert len(alone) == len(together)
        assert (np.array(alone) == together).all()
        assert order[same].tolist() == [arm[replicate]]


FINDS_K = (ebr.ElasticBatchRacing, ebr.SharpElasticBatchRacing, ebr.DeltaElimination)
RACES = (*FINDS_K, ebr.AggressiveElimination, ebr.PausingElasticBatchRacing, ebr.StakedElasticBatchRacing)
GOOD = {
    **{each: {"epsilon": 0.1, "delta": 0.1} for each in (ebr.Passive, ebr.SequentialRacing)},
    **{each: {"deadline": 3, "epsilon": 0.1, "delta": 0.1} for each in RACES},
    ebr.CertifiedElasticBatchRacing: {
        **{"n_arms": 3, "looks": (4, 9), "boundaries": (2.0,), "epsilon": 0.1, "delta": 0.1},
        "shifts": (0.2,),
    },
}
BAD = [
    ({"epsilon": 1}, r"^epsilon must lie in \(0, 1\), got 1$"),
    ({"delta": 1.5}, r"^delta must lie in \(0, 1\), got 1\.5$"),
    ({"sigma": 0}, r"^sigma must be a finite number above 0, got 0$"),
    ({"deadline": 0}, r"^deadline must be an integer of at least 1, got 0$"),
    *(({"k": k}, rf"^k must be an integer of at least 1, got {k!r}$") for k in (0, 1.0, True, "2")),
    ({"schedule": "fast"}, r"^schedule must be one of 'scaled', 'printed', got 'fast'$"),
    ({"lone_survivor": "x"}, r"^lone_survivor must be one of 'stops', 'pulled again', got 'x'$"),
    ({"returned_from": "x"}, r"^returned_from must be one of 'last round', 'after it', got 'x'$"),
    ({"end": "never"}, r"^end must be one of 'certified', 'lone survivor', got 'never'$"),
    ({"rounding": "even"}, r"^rounding must be one of 'up', 'down', got 'even'$"),
    ({"constants": "mine"}, r"^constants must be one of 'published', 'released', got 'mine'$"),
    ({"split": "early"}, r"^split must be one of 'late', 'equal', got 'early'$"),
    *(
        ({"looks": looks}, r"^looks must .*, got ")
        for looks in ((), (4, 4), (9, 4), (0, 4), (4.0, 9), 9, "49", (4, 5001))
    ),
    *(
        ({"boundaries": boundaries}, r"^boundaries must .*, got ")
        for boundaries in ((), (0.0,), (np.inf,), 2)
    ),
    ({"pruning": 0}, r"^pruning must be a finite number above 0, got 0$"),
    *(
        ({"shifts": shifts}, r"^shifts must rise, from above epsilon, 0\.1, got \(0\.")
        for shifts in ((0.1,), (0.3, 0.2), (0.2, 0.2))
    ),
    ({"shifts": (1.5,)}, r"^shifts must lie in \(0, 1\), got 1\.5$"),
    ({"shifts": (), "control": 1, "margin": 0.2}, r"^margin must be epsilon, 0\.1, or .* got 0\.2$"),
    ({"start": 0}, r"^start must be a finite number above 0, got 0$"),
    ({"lead": 0}, r"^lead must be a finite number above 0, got 0$"),
    ({"rate": 1.5}, r"^rate must .*, got 1\.5$"),
    *(({name: -1}, rf"^{name} must be .* got -1$") for name in ("reach", "hope", "spare")),
    ({"rewards": "good"}, r"^rewards must be one of 'Bernoulli', .*'Gaussian'.*, got 'good'$"),
    (
        {"rewards": "bounded", "sigma": 0.4},  # a certified race refuses bounded rewards
        r"^(sigma must be at least 0\.5 for bounded rewards, got 0\.4|rewards must be .*, got 'bounded')$",
    ),
    (
        {"rewards": "Bernoulli", "sigma": 0.4},
        r"^sigma must be at least 0\.5 for Bernoulli rewards, got 0\.4$",
    ),
]


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        (algorithm, arguments, message)
        for algorithm in GOOD
        for arguments, message in BAD
        if set(arguments) <= {field.name for field in fields(algorithm)}
    ],
)
def test_bad_parameters_are_named_with_their_value_and_range(algorithm, arguments, message):
    algorithm(**GOOD[algorithm])
    with pytest.raises(ValueError, match=message):
        algorithm(**GOOD[algorithm] | arguments)


@pytest.mark.parametrize("algorithm", [*RACES, ebr.Passive])
def test_more_pulls_than_can_be_summed_exactly_are_refused(algorithm):
    with pytest.raises(ValueError, match=r"epsilon .* at most 2\^53 pulls of an arm, got \d"):
        ebr.simulate(algorithm(**GOOD[algorithm] | {"epsilon": 1e-9}), ebr.setup_1(), runs=1)


@pytest.mark.parametrize("algorithm", RACES)
def test_more_rounds_than_a_schedule_can_have_are_refused(algorithm):
    for rounds in (10**5, 10**8, 10**10):
        with pytest.raises(ValueError, match=rf"^deadline must be .* of at most [\d,]+, got {rounds}$"):
            algorithm(**GOOD[algorithm] | {"deadline": rounds})


@pytest.mark.parametrize("algorithm", GOOD)
def test_more_arms_or_replicates_than_fit_are_refused(algorithm):
    made = algorithm(**GOOD[algorithm])
    with pytest.raises(ValueError, match=r"^n_arms must be an integer of at most 1,000,000, got 1\d*$"):
        next(made.play(10**10))
    with pytest.raises(ValueError, match=r"^replicates must be an integer of at most 16,777,216, got"):
        next(made.play(2, 10**9))


@pytest.mark.parametrize("algorithm", FINDS_K)
def test_as_many_places_as_arms_are_refused_before_the_first_pull(algorithm):
    for k in (4, 100):
        with pytest.raises(ValueError, match=rf"^k must lie in 1 … 3, below the number of arms, got {k}$"):
            next(algorithm(2, 0.3, 0.1, k=k).play(4))


@pytest.mark.parametrize(
    ("algorithm", "pulls"),
    [
        (ebr.ElasticBatchRacing(15, 0.01, 0.01), 3338365.04),
        (ebr.SharpElasticBatchRacing(15, 0.01, 0.01, rewards="sub-Gaussian"), 232646.3),
        (ebr.DeltaElimination(15, 0.01, 0.01), 686442135),
    ],
)
def test_with_k_1_an_algorithm_costs_as_before_there_was_a_k(algorithm, pulls):
    # Means of 100 runs of version 1 on Setup 1.
    found = ebr.simulate(algorithm, ebr.setup_1(), 100, seed=1)
    assert found.pulls.mean() == pytest.approx(pulls, rel=1e-9)


def test_sets_are_right_if_all_their_arms_are_different_and_good():
    problem = ebr.Bernoulli([0.75, 0.5, 0.25, 1.0])
    arms = np.array([[0, 3], [0, 0], [1, 3], [3, 2], [3, 0]])
    result = Simulation(problem, np.zeros(5, int), np.zeros(5, int), arms, *np.zeros((2, 5, 0)))
    assert result.correct(0.25).tolist() == [True, False, False, False, True]
