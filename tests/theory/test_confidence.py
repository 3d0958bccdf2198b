"""Deviations against the printed formulas by hand; intervals cover as often as they say, by enumeration."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from compendium.shared.traces import trace
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

import ebr
from ebr.theory.confidence import (
    Simultaneous,
    deviation,
    exact_interval,
    half_width,
    kl_interval,
    sequential_deviation,
)
from ebr.theory.divergence import relative_entropy

# Many values near 0 and 1.
GRID = np.unique(
    np.concatenate([np.linspace(0, 1, 401), np.geomspace(1e-8, 0.1, 60), 1 - np.geomspace(1e-8, 0.1, 60)])
)


def test_the_papers_deviation_by_hand():
    # σ = 1, nT/δ = e: D(τ) = √((4 + 2 log 2)/τ); 4 + 2 log 2 = 5.386294.
    assert deviation(4, n_arms=1, deadline=1, delta=math.exp(-1), sigma=1) == pytest.approx(
        math.sqrt(5.386294361 / 4)
    )
    # Linear in σ.
    assert deviation(7, 3, 2, 0.1, sigma=0.3) == pytest.approx(0.3 * deviation(7, 3, 2, 0.1, sigma=1))


def test_jun_et_als_deviation_by_hand():
    # n = 6, δ = 0.36: ω = 0.1; τ = 8: log₂ 16 = 4, so D = 4σ √(log 40 / 8).
    assert sequential_deviation(8, n_arms=6, delta=0.36, sigma=0.5) == pytest.approx(
        2 * math.sqrt(math.log(40) / 8)
    )


def test_hoeffdings_deviation_by_hand():
    # log(2/p) = 2: σ √(4/τ).
    assert half_width("Hoeffding", np.array([16, 100]), 2 * math.exp(-2), 0.5) == pytest.approx([0.25, 0.1])
    assert half_width("Hoeffding", 16, 2 * math.exp(-2), sigma=3) == pytest.approx(1.5)


def missed(interval, count, miss, probabilities):
    """P(the interval of `count` coins does not contain p) for every p, summed over all outcomes."""
    ones = np.arange(count + 1)
    lower, upper = interval(ones / count, np.full(count + 1, count), miss)
    p = probabilities[:, None]
    outside = (p < lower) | (p > upper)
    return (binom.pmf(ones, count, p) * outside).sum(axis=1)


@pytest.mark.parametrize("interval", [exact_interval, kl_interval])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 60])
@pytest.mark.parametrize("miss", [0.5, 0.1, 0.01, 1e-4])
def test_coins_are_missed_no_more_often_than_allowed(interval, count, miss):
    ends = np.concatenate(interval(np.arange(count + 1) / count, np.full(count + 1, count), miss))
    grid = np.unique(np.clip(np.concatenate([GRID, ends, ends - 1e-9, ends + 1e-9]), 0, 1))
    assert missed(interval, count, miss, grid).max() <= miss * (1 + 1e-9)


@pytest.mark.parametrize("count", [20, 60])
def test_the_exact_interval_pays_most_of_what_it_is_allowed(count):
    """Each side may miss with δ/2 and nearly does for some p, so no narrower interval would hold."""
    lower, _ = exact_interval(np.arange(count + 1) / count, np.full(count + 1, count), 0.1)
    just_below = lower[lower > 0] - 1e-12
    assert missed(exact_interval, count, 0.1, just_below).max() > 0.049


@pytest.mark.parametrize("values", [(0, 0.5, 1), (0, 0.9, 1), (0.2, 0.3, 0.8)])
def test_chernoffs_interval_holds_for_other_rewards_in_0_1(values):
    """All outcomes of nine rewards with three values, for a grid of laws on these values."""
    b, miss = 9, 0.2
    numbers = [(i, j, b - i - j) for i in range(b + 1) for j in range(b + 1 - i)]
    ways = np.array([math.factorial(b) / math.prod(map(math.factorial, n)) for n in numbers])
    means = np.array([np.dot(n, values) / b for n in numbers])
    lower, upper = kl_interval(means, np.full(len(means), b), miss)
    worst = 0.0
    for u in np.linspace(0, 1, 21):
        for v in np.linspace(0, 1 - u, 21):
            law = np.array([u, v, max(1 - u - v, 0)])
            chance = ways * np.prod(law ** np.array(numbers), axis=1)
            truth = law @ np.array(values)
            outside = (truth < lower - 1e-12) | (truth > upper + 1e-12)
            worst = max(worst, chance[outside].sum())
    assert worst <= miss


@given(
    st.integers(1, 10**6).flatmap(lambda b: st.tuples(st.just(b), st.integers(0, b))), st.floats(-12, -0.31)
)
def test_the_exact_interval_lies_within_chernoffs_and_that_within_hoeffdings(ones, log_miss):
    b, s = ones
    mean, count, miss = np.array([s / b]), np.array([b]), 10.0**log_miss
    intervals = [
        exact_interval(mean, count, miss),
        kl_interval(mean, count, miss),
        Simultaneous("Hoeffding", 2 * miss, 2, 1, None).around(mean, count),
    ]
    for (low, high), (wider_low, wider_high) in pairwise(intervals):
        assert wider_low - 1e-12 <= low <= mean + 1e-12
        assert mean - 1e-12 <= high <= wider_high + 1e-12
    # At Chernoff's ends the divergence passes log(2/p)/b, or they are 0 or 1.
    for end in (float(intervals[1][0][0]), float(intervals[1][1][0])):
        before = np.nextafter(end, s / b)
        spent = b * relative_entropy(s / b, np.clip([before, end], 1e-300, 1))
        goal = math.log(2 / miss)
        assert end in (0, 1) or spent[0] * (1 - 1e-4) - 1e-4 <= goal <= spent[1] * (1 + 1e-4) + 1e-4


def test_the_exact_interval_has_published_ends():
    """Clopper and Pearson (1934): 3 ones among 10 give 0.067 to 0.652 at 95 %; 0 among 10, 0 to 0.308."""
    low, high = exact_interval(np.array([0.3, 0.0, 1.0]), np.full(3, 10), 0.05)
    assert low.round(3).tolist() == [0.067, 0, 0.692]
    assert high.round(3).tolist() == [0.652, 0.308, 1]


def test_normal_rewards_are_missed_just_as_often_as_allowed():
    normal, hoeffding = (Simultaneous(method, 0.02, 2, 1, None, 3.0) for method in ("normal", "Hoeffding"))
    low, high = normal.around(np.array([0.0]), np.array([25]))
    deviation = 3 / math.sqrt(25)
    assert norm.cdf(low / deviation) + norm.sf(high / deviation) == pytest.approx(0.01)
    wide_low, wide_high = hoeffding.around(np.array([0.0]), np.array([25]))
    assert wide_high == pytest.approx(3 * math.sqrt(2 * math.log(200) / 25))
    assert wide_low < low < high < wide_high


def path_coverage(level, p=0.5, counts=(5, 12, 25), delta=0.3, n_arms=3):
    """The exact P(any arm's interval misses after any round), from all paths of one arm's sum.

    The arms are independent with the same law, so it is 1 − P(an arm is never missed)ⁿ.
    """
    intervals = [exact_interval(np.arange(b + 1) / b, np.full(b + 1, b), level(delta)) for b in counts]
    alive = {0: 1.0}
    before = 0
    for b, (lower, upper) in zip(counts, intervals, strict=True):
        after = {}
        for s, chance in alive.items():
            for more in range(b - before + 1):
                if lower[s + more] <= p <= upper[s + more]:
                    step = chance * float(binom.pmf(more, b - before, p))
                    after[s + more] = after.get(s + more, 0.0) + step
        alive, before = after, b
    return 1 - sum(alive.values()) ** n_arms


def test_all_arms_and_rounds_hold_together():
    grid = np.concatenate([np.linspace(0.02, 0.98, 49), [0.001, 0.999]])
    simultaneous = Simultaneous("exact", 0.3, 3, looks=3)
    assert simultaneous.miss(7) == pytest.approx(0.3 / 9)
    assert max(path_coverage(lambda delta: delta / 9, p) for p in grid) <= 0.3
    # Planted: if each interval has δ, or δ is shared among arms only, misses are more frequent than δ.
    assert max(path_coverage(lambda delta: delta, p) for p in grid) > 0.3
    assert max(path_coverage(lambda delta: delta / 3, p) for p in grid) > 0.3


def test_the_levels_of_all_counts_add_up_to_delta():
    every = Simultaneous("KL", 0.2, 5, looks=None)
    assert every.miss(np.arange(1, 10**6)).sum() == pytest.approx(0.2 / 5, rel=1e-5)
    assert every.miss(np.arange(1, 10**6)).sum() < 0.2 / 5


def test_a_count_chosen_by_the_rewards_breaks_fixed_looks_and_not_those_of_all_counts():
    """An adversary stops an arm, a fair coin, when its interval misses, if it does within 400 pulls.

    An arm's interval may miss with 0.15. With fixed looks it misses in about 0.72 of the walks, so this test
    fails by chance with a probability far below 1e-6.
    """
    generator, runs, most = np.random.default_rng(5), 500, 400
    pulls = np.arange(1, most + 1)
    means = generator.binomial(1, 0.5, (runs, most)).cumsum(axis=1) / pulls
    shares = {}
    for looks in (1, None):
        lower, upper = Simultaneous("exact", 0.3, 2, looks).around(means, np.broadcast_to(pulls, means.shape))
        shares[looks] = ((lower > 0.5) | (upper < 0.5)).any(axis=1).mean()
    assert shares[1] > 0.4
    assert shares[None] <= 0.15


def test_another_support_is_scaled_and_kept_to():
    unit = Simultaneous("KL", 0.1, 2, 4)
    grams = replace(unit, support=(20.0, 70.0))
    means, pulls = np.array([0.0, 0.3, 1.0]), np.array([9, 9, 9])
    low, high = unit.around(means, pulls)
    for ends, scaled in zip((low, high), grams.around(20 + 50 * means, pulls), strict=True):
        assert scaled == pytest.approx(20 + 50 * ends)
    low, high = Simultaneous("Hoeffding", 0.1, 2, 4, (0.0, 1.0), sigma=0.4).around(means, pulls)
    assert (low[0], high[2]) == (0, 1)


@pytest.mark.parametrize("method", ["exact", "KL", "normal", "Hoeffding"])
def test_an_arm_without_a_pull_has_no_interval(method):
    low, high = Simultaneous(method, 0.1, 2, 4).around(np.array([np.nan, 0.5]), np.array([0, 10]))
    assert np.isnan([low[0], high[0]]).all()
    assert 0 <= low[1] < 0.5 < high[1] <= 1


def test_of_a_race_every_shown_interval_is_one_of_those_fixed_in_advance():
    """Counts after each round are among T numbers, whatever the rewards. The union is over these."""
    for race in (
        ebr.ElasticBatchRacing(4, 0.2, 0.1),
        ebr.SharpElasticBatchRacing(4, 0.1, 0.1, rewards="bounded"),
        ebr.PausingElasticBatchRacing(4, 0.1, 0.1, rewards="Bernoulli"),
        ebr.AggressiveElimination(4, 0.2, 0.1),
    ):
        seen = set()
        for seed in range(20):
            for means in ([0.5, 0.5, 0.5, 0.45], [0.9, 0.85, 0.3, 0.1], [0.3, 0.2, 0.2, 0.2]):
                seen |= set(trace(race, ebr.Bernoulli(means), seed)["pulls"])
        assert 1 < len(seen) <= 4


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"method": "Wald"}, "method must be one of 'exact', 'KL', 'normal', 'Hoeffding', got 'Wald'"),
        ({"method": "KL", "support": None}, "support must be an interval for method 'KL', got None"),
    ],
)
def test_bad_arguments_are_named(changed, says):
    good = {"method": "exact", "delta": 0.1, "n_arms": 2, "looks": 3}
    with pytest.raises(ValueError, match=says):
        Simultaneous(**good | changed)


def test_intervals_are_those_of_their_method_from_the_first_reward_on():
    means, pulls = np.array([0.4, 0.4]), np.array([1, 30])
    low, high = Simultaneous("KL", 0.3, 2, 3).around(means, pulls)
    assert np.array([low, high]) == pytest.approx(np.array(kl_interval(means, pulls, 0.05)))
    assert high[1] < 0.8
    low, high = Simultaneous("normal", 0.3, 2, 3, None, 2.0).around(means, pulls)  # no support: not cut
    assert (high - low) / 2 == pytest.approx(norm.isf(0.025) * 2 / np.sqrt(pulls))
    assert low[0] < 0
