"""Looks at a Brownian motion against normal integrals, published constants, and drawn paths."""

import math

import numpy as np
import pytest
from compendium.shared.looks import _Plan, planned_looks
from scipy.stats import binomtest, multivariate_normal, norm

import ebr


def crossing_probabilities(counts, quantiles):
    """P(Z_s ≤ z_s for s < t, Z_t > z_t) for each t, which is what looks at two arms spend."""
    plan, found = _Plan(2, 0.5), []
    for count, quantile in zip(counts, quantiles, strict=True):
        found.append(plan.spent(count, quantile))
        plan.look(count, quantile)
    return np.array(found)


def spending_boundaries(counts, shares):
    """The z_t that spend these shares."""
    plan, found = _Plan(2, 0.5), []
    for count, share in zip(counts, shares, strict=True):
        found.append(plan.quantile(count, math.inf, share))
        plan.look(count, found[-1])
    return np.array(found)


def below(counts, quantiles):
    """P(no look finds Z above its boundary), by scipy's normal integral."""
    if len(counts) == 1:
        return norm.cdf(quantiles[0])
    covariance = np.sqrt(np.minimum.outer(counts, counts) / np.maximum.outer(counts, counts))
    return multivariate_normal.cdf(quantiles, cov=covariance, abseps=1e-8, releps=1e-8)


@pytest.mark.parametrize(
    ("counts", "quantiles"),
    [
        ([1.0, 2.0], [1.0, 0.5]),
        ([3.0, 10.0, 11.0], [2.5, 2.2, 2.0]),
        ([1.0, 1.05, 40.0], [0.0, 3.0, -1.0]),
        ([5.0, 9.0, 20.0], [1.0, 0.5, 0.8]),
    ],
)
def test_first_crossings_are_differences_of_normal_integrals(counts, quantiles):
    stay = [1.0, *(below(counts[:t], quantiles[:t]) for t in range(1, len(counts) + 1))]
    assert crossing_probabilities(counts, quantiles) == pytest.approx(-np.diff(stay), abs=1e-7)


@pytest.mark.parametrize("ratio", [1.05, 1.5, 4.0])
@pytest.mark.parametrize("height", [2.0, 4.0, 6.0])
def test_small_crossings_of_two_looks_are_accurate_to_nine_digits(ratio, height):
    # P(Z_1 ≤ z, Z_2 > z) = ∫_{−∞}^z φ(x) Φ̄(…) dx, by Gauss–Legendre on many short pieces.
    kept, edges = math.sqrt(1 / ratio), np.linspace(-12, height, 400)
    points, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    x = edges[:-1, None] + half * (1 + points)
    tail = norm.sf((height - kept * x) / math.sqrt(1 - 1 / ratio))
    expected = float((half * weights * norm.pdf(x) * tail).sum())
    found = crossing_probabilities([1.0, ratio], [height, height])
    assert found == pytest.approx([norm.sf(height), expected], rel=1e-9)


# The tables are two-sided at 0.05. One-sided at 0.025 differs by some 1e-5: paths that cross on both sides.
@pytest.mark.parametrize(
    ("looks", "pocock", "obrien"), [(2, 2.178, 1.977), (3, 2.289, 2.004), (5, 2.413, 2.040)]
)
def test_the_constants_of_jennison_and_turnbulls_tables(looks, pocock, obrien):
    # Group Sequential Methods with Applications to Clinical Trials (2000), Tables 2.1 and 2.3.
    counts = np.arange(1, looks + 1)
    for critical in (np.full(looks, pocock), obrien * np.sqrt(looks / counts)):
        assert crossing_probabilities(counts, critical).sum() == pytest.approx(0.025, abs=5e-5)
        assert crossing_probabilities(counts, critical - 0.01).sum() > 0.0253  # planted


@pytest.mark.parametrize("ratio", [1.051, 1.3, 3.0])
@pytest.mark.parametrize("level", [1e-8, 1e-3, 0.2])
def test_what_is_spent_is_what_was_given_and_never_above_the_unions_quantile(ratio, level):
    counts, shares = 10_000 * ratio ** np.arange(12), level * np.linspace(1, 2, 12) / 18
    found = spending_boundaries(counts, shares)
    assert crossing_probabilities(counts, found) == pytest.approx(shares, rel=1e-9)
    assert found[0] == pytest.approx(norm.isf(shares[0]), rel=1e-12)
    assert (found[1:] < norm.isf(shares[1:])).all()


def test_a_share_that_cannot_be_spent_leaves_the_boundary_at_zero():
    assert spending_boundaries([1.0, 2.0], [0.6, 0.3]).tolist() == [0.0, 0.0]


def drawn(counts, n_arms, runs, seed):
    """W_i of n − 1 arms at each look (runs × looks × arms), from sums of drawn rewards."""
    generator, steps = np.random.default_rng(seed), np.diff(counts, prepend=0)
    sums = (generator.standard_normal((runs, n_arms, len(counts))) * np.sqrt(steps)).cumsum(axis=2)
    return (sums[:, 1:] - sums[:, :1]) / np.sqrt(2 * np.asarray(counts))


@pytest.mark.parametrize("n_arms", [3, 20])
def test_a_look_at_many_arms_spends_at_least_what_drawn_arms_do_and_less_than_either_union(n_arms):
    counts, quantile, runs = [10.0, 15.0, 30.0], 1.6 if n_arms == 3 else 2.3, 100_000
    plan, over = _Plan(n_arms, 0.5), drawn(counts, n_arms, runs, 2) > quantile
    for look, count in enumerate(counts):
        pairs = (n_arms - 1) * plan.paths.above(count, quantile * math.sqrt(count))
        spent = plan.spent(count, quantile)
        arms = _Plan(n_arms, 0.5).spent(count, quantile)
        first = int((over[:, :, look] & ~over[:, :, :look].any(axis=2)).any(axis=1).sum())
        # Six one-sided exact tests at 1e-6/6 each. The bound is less than a tenth too large.
        assert binomtest(first, runs, spent, alternative="greater").pvalue > 1e-6 / 6
        assert 0.9 * spent < first / runs
        assert spent < pairs
        assert spent < arms or look == 0
        plan.look(count, quantile)


@pytest.mark.parametrize(("n_arms", "split"), [(2, "late"), (5, "late"), (5, "equal"), (40, "late")])
def test_planned_looks_are_crossed_with_nearly_delta_and_no_more(n_arms, split):
    race = ebr.SharpElasticBatchRacing(6, 0.05, 0.2, rewards="Gaussian", split=split)
    counts, quantiles = planned_looks(tuple(race.widths()), tuple(race.shares()), n_arms, 0.5)
    runs = 40_000
    wrong = int((drawn(counts, n_arms, runs, 3) > quantiles[:, None].T).any(axis=(1, 2)).sum())
    # Four exact tests at 1e-6/4 each. Less than δ is used, as other arms may have crossed before.
    assert binomtest(wrong, runs, 0.2, alternative="greater").pvalue > 1e-6 / 4
    assert wrong / runs > 0.14


def test_looks_too_near_are_left_out_and_an_end_within_reach_is_taken():
    near = tuple(0.5 * 0.97 ** np.arange(1, 31))
    counts, _ = planned_looks(near, (0.001,) * 30, 5, 0.5)
    fresh = counts[np.diff(counts, prepend=0) > 0]
    assert 2 < len(fresh) < 30
    assert (fresh[1:-1] >= 1.05 * fresh[:-2]).all()
    alike, _ = planned_looks((0.1, 0.1, 0.1), (0.01, 0.01, 0.01), 5, 0.5)
    assert len(set(alike)) == 1


def test_a_planned_count_is_the_least_or_one_more(monkeypatch):
    excess, right = [], _Plan.count

    def watched(self, width, share):
        found = right(self, width, share)
        fewer = range(max(self.least, found - 10), found)
        excess.append(found - next((one for one in fewer if self.enough(one, width, share)), found))
        return found

    monkeypatch.setattr(_Plan, "count", watched)
    for n_arms, deadline, epsilon in ((2, 6, 0.1), (3, 15, 0.05), (10, 15, 0.1), (5, 30, 0.02)):
        for delta in (0.011, 0.053, 0.21):
            race = ebr.SharpElasticBatchRacing(deadline, epsilon, delta, 0.5)
            planned_looks.__wrapped__(tuple(race.widths()), tuple(race.shares()), n_arms, 0.5)
    assert len(excess) > 100
    assert set(excess) == {0, 1}
