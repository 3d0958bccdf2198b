"""Races for the k best: against plain loops, their mirror images, and what k = 1 was before there was a k."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Rewards, Seasons, behind, ilog, log_term, play

import ebr
from ebr.algorithms.game import drive
from ebr.simulation.simulate import Simulation

MODELS = ("sub-Gaussian", "Gaussian", "bounded")


def top_k_race(rewards, k, targets, drops, ends):
    """Accept and reject, one arm after another; return the pulls of each round and the set of arms.

    `drops(pulled, t, ahead, behind)` says whether the one is told from the other, `ends` if it is over.
    """
    n, period = len(rewards), len(rewards[0])
    undecided, accepted, asked, pulled = set(range(n)), set(), [], 0
    for t, target in enumerate(targets):
        if target > pulled:
            asked.append([(target - pulled) * (i in undecided) for i in range(n)])
            pulled = target
        times, rest = divmod(pulled, period)
        mean = {i: (times * sum(rewards[i]) + sum(rewards[i][:rest])) / pulled for i in undecided}
        ranked = sorted(undecided, key=lambda i: (-mean[i], i))
        places = k - len(accepted)
        chosen, others = ranked[:places], ranked[places:]
        last, following = mean[chosen[-1]], mean[others[0]]
        if ends(pulled, t, last, following):
            break
        accepted |= {i for i in chosen if drops(pulled, t, mean[i], following)}
        undecided -= accepted | {i for i in others if drops(pulled, t, last, mean[i])}
    return asked, sorted(accepted | set(chosen))


def elastic_top_k(rewards, k, deadline, epsilon, delta, sigma):
    n = len(rewards)
    L = math.log(n * deadline / delta)
    targets = [math.ceil(80 * sigma**2 * L * epsilon ** (-2 * t / deadline)) for t in range(1, deadline + 1)]

    def told(pulled, _, ahead, behind):
        width = sigma * math.sqrt((4 + 2 * math.log(2)) * L / pulled)
        return ahead - behind > max(2 * width - epsilon / min(n, deadline), 0)

    return top_k_race(rewards, k, targets, told, told)


def sharp_schedule(n, k, deadline, epsilon, delta, sigma, model):
    start = max(0.5, epsilon)
    widths = [start * (epsilon / start) ** (t / deadline) for t in range(1, deadline + 1)]
    shares = [delta / width / sum(1 / w for w in widths) for width in widths]
    terms = [
        log_term(model, share / (k * (n - k)), last=t == deadline) for t, share in enumerate(shares, start=1)
    ]
    pulls = [math.floor(4 * sigma**2 * L / w**2) + 1 for L, w in zip(terms, widths, strict=True)]
    return [min(max(pulls[:t]), pulls[-1]) for t in range(1, deadline + 1)], terms


def sharp_top_k(rewards, k, epsilon, sigma, model, schedule):
    targets, terms = schedule
    new = [t for t in range(len(targets)) if t == 0 or targets[t] > targets[t - 1]]

    def told(shift):
        return lambda pulled, t, ahead, other: behind(
            model, sigma, pulled, terms[new[t]], ahead, other, shift
        )

    return top_k_race(rewards, k, [targets[t] for t in new], told(0), told(epsilon))


any_problem = given(
    means=st.lists(st.sampled_from([0, 0.02, 0.3, 0.45, 0.5, 0.55, 0.95, 1]), min_size=2, max_size=8),
    data=st.data(),
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.1, 0.9),
    delta=st.floats(0.01, 0.9),
    sigma=st.floats(0.05, 1),
    seed=st.integers(0, 2**32),
)


def drawn(means, seed, normal, sigma):
    generator, shape = np.random.default_rng(seed), (3, len(means), 97)
    if normal:
        return generator.normal(np.array(means)[:, None], sigma, shape)
    return (generator.random(shape) < np.array(means)[:, None]).astype(int)


def compare(algorithm, table, loop, **told):
    asked, arms = play(algorithm, Rewards(table), **told)
    arms = arms[:, None] if arms.ndim == 1 else arms
    for replicate, rewards in enumerate(table.tolist()):
        mine = [ask[replicate].tolist() for ask in asked if ask[replicate].any()]
        assert (mine, arms[replicate].tolist()) == loop(rewards)


@settings(max_examples=150, deadline=None)
@any_problem
def test_algorithm_1_for_the_k_best_is_the_plain_loop(means, data, deadline, epsilon, delta, sigma, seed):
    k = data.draw(st.integers(1, len(means) - 1))
    table = drawn(means, seed, data.draw(st.booleans()), sigma)
    algorithm = ebr.ElasticBatchRacing(deadline, epsilon, delta, sigma, k=k)
    compare(algorithm, table, lambda r: elastic_top_k(r, k, deadline, epsilon, delta, sigma))


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=150, deadline=None)
@any_problem
def test_sharp_ebr_for_the_k_best_is_the_plain_loop(
    model, means, data, deadline, epsilon, delta, sigma, seed
):
    k = data.draw(st.integers(1, len(means) - 1))
    sigma = max(sigma, 0.5) if model == "bounded" else sigma
    table = drawn(means, seed, model != "bounded" and data.draw(st.booleans()), sigma)
    algorithm = ebr.SharpElasticBatchRacing(deadline, epsilon, delta, sigma, model, k=k)
    if model == "Gaussian":  # whose boundaries have tests of their own
        schedule = algorithm.pulls_by_round(len(means)).tolist(), algorithm.log_terms(len(means)).tolist()
    else:
        schedule = sharp_schedule(len(means), k, deadline, epsilon, delta, sigma, model)
    compare(algorithm, table, lambda r: sharp_top_k(r, k, epsilon, sigma, model, schedule))


def mirrored(algorithm, table, k):
    """A race for the k best of some rewards, and one for the n − k best of 1 − rewards."""
    n_arms = table.shape[1]
    one = play(replace(algorithm, k=k), Rewards(table))
    other = play(replace(algorithm, k=n_arms - k), Rewards(1 - table))
    sets = [set(arms.reshape(len(table), -1)[0].tolist()) for _, arms in (one, other)]
    return [np.array(asked).tolist() for asked, _ in (one, other)], sets


@pytest.mark.parametrize("model", ["elastic", *MODELS])
def test_the_k_best_are_found_with_the_pulls_that_find_the_others_by_their_failures(model):
    # Continuous rewards, so that nothing ties. Ten races for each k of six arms.
    algorithm = (
        ebr.ElasticBatchRacing(4, 0.3, 0.2)
        if model == "elastic"
        else ebr.SharpElasticBatchRacing(4, 0.1, 0.2, rewards=model)
    )
    means = np.array([0.9, 0.2, 0.5, 0.6, 0.55, 0.1])
    for k, seed in product(range(1, 6), range(10)):
        generator = np.random.default_rng([seed, k])
        table = generator.uniform(means - 0.1, means + 0.1, (1, 53, 6)).transpose(0, 2, 1)
        asked, (best, rest) = mirrored(algorithm, table, k)
        assert asked[0] == asked[1]
        assert sorted(best | rest) == list(range(6))
        assert len(best) == k


def test_with_k_1_nothing_has_changed():
    # The digests of reprs seed simulations; these are the races of version 1.
    assert repr(ebr.ElasticBatchRacing(2, 0.1, 0.2)) == (
        "ElasticBatchRacing(deadline=2, epsilon=0.1, delta=0.2, sigma=0.5, schedule='scaled',"
        " lone_survivor='stops', returned_from='last round')"
    )
    assert repr(ebr.SharpElasticBatchRacing(2, 0.1, 0.2, k=1)) == (
        "SharpElasticBatchRacing(deadline=2, epsilon=0.1, delta=0.2, sigma=0.5, rewards=None, start=0.5,"
        " split='late')"
    )
    assert repr(ebr.DeltaElimination(2, 0.1, 0.2)) == (
        "DeltaElimination(deadline=2, epsilon=0.1, delta=0.2, constants='published')"
    )
    # Figure 2 and 3, Setup 1, ε = δ = 0.01, T = 15, means of 100 runs from before there was a k.
    pulls = {
        ebr.ElasticBatchRacing(15, 0.01, 0.01): 3338365.04,
        ebr.SharpElasticBatchRacing(15, 0.01, 0.01, rewards="sub-Gaussian"): 232646.3,
        ebr.DeltaElimination(15, 0.01, 0.01): 686442135,
    }
    for algorithm, mean in pulls.items():
        assert ebr.simulate(algorithm, ebr.setup_1(), 100, seed=1).pulls.mean() == pytest.approx(
            mean, rel=1e-9
        )


@pytest.mark.parametrize(
    "algorithm", [ebr.ElasticBatchRacing, ebr.SharpElasticBatchRacing, ebr.DeltaElimination]
)
def test_another_k_is_another_race(algorithm):
    assert repr(algorithm(2, 0.3, 0.1, k=2)) == repr(algorithm(2, 0.3, 0.1))[:-1] + ", k=2)"
    assert algorithm(2, 0.3, 0.1, k=2) != algorithm(2, 0.3, 0.1)


@pytest.mark.parametrize(
    "algorithm", [ebr.ElasticBatchRacing, ebr.SharpElasticBatchRacing, ebr.DeltaElimination]
)
@pytest.mark.parametrize("k", [0, -1, 1.0, True, "2"])
def test_a_k_that_is_no_number_of_arms_is_named(algorithm, k):
    with pytest.raises(ValueError, match=f"^k must be an integer of at least 1, got {k!r}$"):
        algorithm(2, 0.3, 0.1, k=k)


@pytest.mark.parametrize(
    "algorithm", [ebr.ElasticBatchRacing, ebr.SharpElasticBatchRacing, ebr.DeltaElimination]
)
@pytest.mark.parametrize("k", [4, 5, 100])
def test_as_many_places_as_arms_are_refused_before_the_first_pull(algorithm, k):
    def nobody_pulls(pulls):
        raise AssertionError

    with pytest.raises(ValueError, match=rf"^k must lie in 1 … 3, below the number of arms, got {k}$"):
        drive(algorithm(2, 0.3, 0.1, k=k).play(4), nobody_pulls)


@pytest.mark.parametrize("reading", [{"lone_survivor": "pulled again"}, {"returned_from": "after it"}])
def test_readings_of_the_pseudo_code_are_for_one_arm(reading):
    ((name, value),) = reading.items()
    with pytest.raises(ValueError, match=rf"^{name} must be '.*' for k > 1, got '{value}'$"):
        ebr.ElasticBatchRacing(2, 0.3, 0.1, k=2, **reading)


def test_accepted_and_dropped_arms_are_pulled_no_more():
    # Two clear winners, two clear losers and two in the middle, that fight for the third place.
    problem = ebr.Gaussian([0.95, 0.95, 0.5, 0.5, 0.05, 0.05], 0.1)
    algorithm = ebr.SharpElasticBatchRacing(6, 0.01, 0.01, 0.1, k=3)
    result = ebr.simulate(algorithm, problem, runs=50, seed=3, per_arm=True)
    pulls, _ = result.by_arm()
    assert (pulls[:, [2, 3]] > 100 * pulls[:, [0, 1, 4, 5]].max()).all()
    assert (result.arm[:, :2] == [0, 1]).all()  # in the order of their numbers
    assert set(result.arm[:, 2]) == {2, 3}
    assert result.correct(0.01).all()


def kder(values, lots, k, rounds, epsilon, delta, released):
    """Algorithms 2 and 3 of Jin et al. with lists; `lots(pool, drawn)` has the places drawn.

    `values[r − 1]` is paid by each pull of round r. Return one {arm: pulls} a round, and the arms.
    """
    n, Q = len(values[0]), 57 / epsilon**2
    if released:
        ratio = ilog(rounds, n) / math.log(k / delta)
        beta = 1 if ratio < 1 else 1 + ratio
    else:
        beta = 1 + ilog(rounds, n, base=k / delta)
    remaining, aside, history, delta_r = list(range(n)), [], [], delta / 4
    for r in range(1, rounds):
        history.append(dict.fromkeys(remaining, math.ceil(beta * Q * math.log(k / delta_r))))
        ranked = sorted(remaining, key=lambda arm: -values[len(history) - 1][arm])
        x, places = (delta_r / k) ** beta * len(remaining), min(k, len(remaining))
        drawn = [ranked[place] for place in lots(min(len(ranked), math.ceil(x / 2) + places - 1), places)]
        aside += drawn
        top = [arm for arm in ranked[: math.ceil(2 * x) + places - 1] if arm not in drawn]
        if not top:
            if released and len(aside) <= k:
                return history, sorted(aside)
            remaining = top
            break
        beta *= len(remaining) / (2 * len(top))
        remaining, delta_r = top, delta / ((8 if released else 2) * 2**r)
    last = dict.fromkeys(
        remaining, math.ceil(beta * Q * math.log((8 if released else 2) * k * 2**rounds / delta))
    )
    last |= dict.fromkeys(aside, math.ceil(Q * math.log((2 if released else 4) * max(len(aside), 1) / delta)))
    history.append(last)
    now = values[len(history) - 1]
    kept = sorted(remaining, key=lambda arm: -now[arm])[:k] + aside
    return history, sorted(sorted(kept, key=lambda arm: -now[arm])[:k])


@pytest.mark.parametrize("released", [False, True])
def test_kder_for_the_k_best_is_its_pseudo_code(released):
    # A large δ and many arms, so that lots have something to draw from and rounds follow.
    for k, rounds, delta, seed in product((1, 2, 3, 7), (1, 2, 3), (0.9, 0.3, 0.01), range(4)):
        values = np.random.default_rng([seed, k]).random((rounds, 40))
        algorithm = ebr.DeltaElimination(rounds, 0.3, delta, "released" if released else "published", k)
        season, generator = Seasons(values), np.random.default_rng(seed)
        asked, arms = play(algorithm, season, generator=np.random.default_rng(seed))

        def lots(pool, drawn, generator=generator):
            if drawn == 1:
                return generator.integers(pool, size=(1, 1))[0].tolist()
            return generator.random((1, pool)).argsort(axis=1)[0, :drawn].tolist()

        history, expected = kder(values, lots, k, rounds, 0.3, delta, released)
        assert [{arm: int(n) for arm, n in enumerate(pulls[0]) if n} for pulls in asked] == history
        assert arms.ravel().tolist() == expected


def test_sets_are_right_if_all_their_arms_are_different_and_good():
    problem = ebr.Bernoulli([0.75, 0.5, 0.25, 1.0])
    arms = np.array([[0, 3], [0, 0], [1, 3], [3, 2], [3, 0]])
    result = Simulation(problem, np.zeros(5, int), np.zeros(5, int), arms)
    assert result.correct(0.25).tolist() == [True, False, False, False, True]
    assert list(result.to_frame().columns) == ["pulls", "rounds", "arm_1", "arm_2"]
