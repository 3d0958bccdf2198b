"""The mean of a bet on a false claim does not grow. Rewards are enumerated, lots and scores integrated."""

import inspect
import math
from functools import lru_cache
from itertools import pairwise, product
from unittest import mock

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, chi2, hypergeom, norm, t

from ebr.theory import bets
from ebr.theory.bets import Beliefs
from ebr.theory.pairs import Pairs

SIZES = [(1, 1), (1, 8), (8, 2), (3, 5), (6, 6)]
PURSES = [1e-6, 1e-3, 0.1, 0.5, 0.9]
BELIEVED = [(0.9, 0.1, 50), (0.5, 0.5, 50), (0.2, 0.6, 50), (0.999, 0.99, 3), (0.5, 0.5, 0)]
MEANS = np.array([0, 1e-3, 0.05, *np.linspace(0.1, 0.9, 9), 0.95, 0.999, 1])
BEYOND = (0.0, 0.02, 0.3)  # the rival's lead beyond what the claim denies; 0 is the boundary
LEAST = 1e-14  # for smaller lots the purse is taken to be 1
X, W = np.polynomial.legendre.leggauss(16)
PANELS = np.linspace(0, 1, 5)
NODES = np.concatenate([low + (high - low) * (X + 1) / 2 for low, high in pairwise(PANELS)])
WEIGHTS = np.tile(W / 8, 4)


def planted(function, right, wrong):
    """The same function with an error in it."""
    source, names = inspect.getsource(function), dict(vars(bets))
    assert right in source
    exec(source.replace(right, wrong), names)
    return names[function.__name__]


def paid(model, sizes, sums, shift, purse, believed, lots=0.5):
    """The purses after a round, not as logarithms; all arguments are broadcast."""
    leader, other, purse, lots = np.broadcast_arrays(*sums, purse, lots)
    full = [np.full(leader.size, float(value)) for value in believed]
    pair = [Beliefs(mean, mean * (1 - mean), full[2].astype(int)) for mean in full[:2]]
    m = [np.full(leader.size, size) for size in sizes]
    pairs = Pairs(leader.ravel() * 1.0, m[0], other.ravel() * 1.0, m[1])
    told = {"Bernoulli": [lots.ravel()], "bounded": []}.get(model, [np.full(leader.size, 0.5)])
    with np.errstate(all="ignore"):
        found = bets.paid(np.log(purse.ravel()), pairs, shift, pair, model, told)
    return np.exp(found).reshape(leader.shape)


def over_lots(*bet):
    """The mean over the lot u. f is 1 up to u*, then falls; nodes are even in log u or log(1 − u)."""
    low, high = np.full(bet[2][0].shape, math.log(LEAST)), np.zeros(bet[2][0].shape)
    for _ in range(40):
        middle = (low + high) / 2
        held = paid(*bet, lots=np.exp(middle)) >= 1
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    half = np.maximum(low, math.log(0.5))
    rest = np.log(np.maximum(-np.expm1(half), LEAST))
    below = np.exp(low[..., None] + (half - low)[..., None] * NODES)
    above = np.exp(rest[..., None] + (math.log(LEAST) - rest)[..., None] * NODES)
    spread = (*bet[:2], tuple(each[..., None] for each in bet[2]), bet[3], bet[4][..., None], bet[5])
    lower, upper = (
        (paid(*spread, lots=lots) * part) @ WEIGHTS for lots, part in ((below, below), (1 - above, above))
    )
    return np.exp(low) + lower * (half - low) + upper * (rest - math.log(LEAST))


class Rng:
    """A generator that returns given binomial lots and records their probabilities."""

    def __init__(self, drawn):
        self.drawn, self.chance = list(drawn), []

    def binomial(self, number, chance):
        self.chance.append(binom.pmf(self.drawn[0], number, chance))
        return self.drawn.pop(0)


def thinning(m, shift):
    """P(successes after thinning (columns) | successes before (rows)), for a claimant and for a rival."""
    if shift == 0:
        return np.eye(m + 1), np.eye(m + 1)
    ones, lot = np.indices((m + 1, m + 1)).reshape(2, -1)
    lots, tables = Rng([lot, lot]), np.zeros((2, m + 1, 2 * m + 2))
    with mock.patch.object(bets, "MOST_INVERTED", 0):
        both = bets.thinned(ones * 1.0, np.full(ones.shape, m), shift, lots)
    for table, after, chance in zip(tables, both, lots.chance, strict=True):
        np.add.at(table, (ones, after.astype(int)), chance)
    return tables[:, :, : m + 1]


def means_of(worth, laws, shift, means=MEANS):
    """E f for means at which the claim is false: beyond × purses × means; NaN if there is no such mean."""
    found = []
    assert np.isfinite(worth).all()
    for beyond in BEYOND:
        p, q = means * (1 - shift), means * (1 - shift) + shift + beyond
        chances = laws[0](p), laws[1](np.minimum(q, 1))
        mean = np.einsum("pac,ka,kc->pk", worth, *chances)
        found.append(np.where(q <= 1 + 1e-12, mean, np.nan))
    return np.array(found)


def coins(m, thinned):
    return lambda p: binom.pmf(np.arange(m + 1), m, p[:, None]) @ thinned


def halves(m):
    """The law of the sum of m rewards 0, ½ and 1, where up to a third of the rewards are ½."""

    def law(p):
        rows = []
        for mean in p:
            half, row = min(mean, 1 - mean) / 1.5, np.ones(1)
            for _ in range(m):
                row = np.convolve(row, [1 - mean - half / 2, half, mean - half / 2])
            rows.append(row)
        return np.array(rows)

    return law


def bernoulli_means(shifts, sizes, purses=PURSES):
    """E f / v on the boundary and beyond, with the beliefs. Ties are broken by lot, and rewards thinned."""
    purse = np.array(purses)[:, None, None]
    for shift, (m, other_m), believed in product(shifts, sizes, BELIEVED):
        a, c = np.indices((len(purses), m + 1, other_m + 1))[1:]
        worth = over_lots("Bernoulli", (m, other_m), (a, c), shift, purse + 0 * a, believed)
        laws = coins(m, thinning(m, shift)[0]), coins(other_m, thinning(other_m, shift)[1])
        yield believed, means_of(worth, laws, shift) / purse[:, 0]


def check_bernoulli(shifts=(0, 0.3), sizes=((3, 5),)):
    """The mean is at most v. If the claim is believed, it is v on the boundary, so lots waste nothing."""
    for believed, found in bernoulli_means(shifts, sizes):
        assert np.nanmax(found) <= 1 + 1e-6
        if believed[2] == 0 or believed[0] - believed[1] > 0.5:
            assert np.nanmin(found[0]) > 1 - 1e-3
            assert not np.nanmin(found[2]) > 0.999


def check_score(tables, tolerance):
    """Scores agree with scipy's hypergeometric law, and they grow with A if A + C is fixed."""
    for a, m, c, other_m in tables:
        law = hypergeom(m + other_m, a + c, m)
        for lot in (0.0, 0.3, 1.0):
            chance = law.sf(a) + lot * law.pmf(a)
            pairs = Pairs(*(np.array([float(each)]) for each in (a, m, c, other_m)))
            found = norm.sf(bets.fisher_score(pairs, np.array([lot])))
            if 1e-290 < chance < 0.9:
                assert found == pytest.approx(chance, rel=tolerance), (a, m, c, other_m)
        low, high = max(0, a + c - other_m), min(m, a + c)
        along = np.unique(np.linspace(low, high, 50).astype(int))
        pulls = np.full(len(along), m), np.full(len(along), other_m)
        pairs = Pairs(along * 1.0, pulls[0], (a + c - along) * 1.0, pulls[1])
        assert (np.diff(bets.fisher_score(pairs, np.full(len(along), 0.4))) >= 0).all()


def test_scores_are_those_of_fishers_exact_test():
    generator = np.random.default_rng(1)
    sizes = generator.integers(1, [[60, 60]] * 150)
    check_score(((generator.integers(m + 1), m, generator.integers(k + 1), k) for m, k in sizes), 1e-9)
    large = ((50_000, 10**5, 49_500, 10**5), (700, 10**5, 300, 5 * 10**4), (3, 10**5, 99_990, 10**5))
    check_score(large, 1e-8)  # scipy's log-factorials lose as many digits as ours


def bounded_means(laws, shift, sizes, steps, believed, means=MEANS):
    a, c = np.indices([steps * m + 1 for m in sizes]) / steps
    worth = paid("bounded", sizes, (a[None], c[None]), shift, np.array(PURSES)[:, None, None], believed)
    return means_of(worth, laws, shift, means) / np.array(PURSES)[:, None]


def check_bounded():
    """At most v for rewards 0 and 1, and with halves. On the boundary one bet's mean touches v."""
    for shift, sizes, believed in product((0, 0.05, 0.3, 0.7), SIZES, BELIEVED[:4]):
        ones = tuple(coins(m, np.eye(m + 1)) for m in sizes)
        found = bounded_means(ones, shift, sizes, 1, believed)
        assert np.nanmax(found) <= 1 + 1e-9
        mixed = bounded_means(tuple(map(halves, sizes)), shift, sizes, 2, believed)
        assert np.nanmax(mixed) <= 1 + 1e-9
        a, c = (each.ravel() * 1.0 for each in np.indices([m + 1 for m in sizes]))
        full = [np.full(a.size, value) for value in (*sizes, *believed[:2])]
        with np.errstate(all="ignore"):
            gain = np.exp(bets.unit_bet(Pairs(a, full[0], c, full[1]), shift, (full[2], full[3])))
        touched = means_of(gain.reshape(1, sizes[0] + 1, -1), ones, shift, np.linspace(0, 1, 2001))[0]
        assert touched.max() == pytest.approx(1, abs=1e-4)


# Sums of squares: every multiset of a few values, under wide, narrow and intermediate laws.

VALUES = np.array([0, 0.35, 0.5, 0.65, 1])
LAWS = [(0, 4), (1, 3), (0, 2), (2, 4), (1, 2), (2, 3)]  # the two values of a law
SQUARED = [(0.6, 0.4, 0.01), (0.55, 0.5, 0.02), (0.9, 0.3, 0.1), (0.5, 0.5, 0.003), (0.4, 0.6, 0.05)]
SMALL = [(1, 1), (1, 4), (4, 2), (3, 3)]


@lru_cache
def multisets(m):
    """The number of times that each value occurs among m rewards: multisets × values."""
    return np.array([each for each in product(range(m + 1), repeat=len(VALUES)) if sum(each) == m])


@lru_cache
def chances(m, values, first, last):
    """The probability of each multiset if rewards have these two values; NaN for means outside them."""
    means = np.linspace(first, last, 41)
    low, high = VALUES[list(values)]
    part = (means - low) / (high - low)
    part = np.where((part < -1e-12) | (part > 1 + 1e-12), np.nan, np.clip(part, 0, 1))
    sets = multisets(m)
    alone = sets[:, list(values)].sum(axis=1) == m
    return np.where(alone, binom.pmf(sets[:, values[1]], m, part[:, None]), 0 * part[:, None])


def squared_means(bet):
    """E f / v for every pair of laws, on the boundary and beyond it."""
    for shift, sizes, (mean, other, variance) in product((0, 0.05, 0.3), SMALL, SQUARED):
        sets = [multisets(m) for m in sizes]
        one, two = np.indices([len(each) for each in sets]).reshape(2, -1)
        sums, squares = ([each @ VALUES**power for each in sets] for power in (1, 2))
        full = [np.full(one.size, float(value)) for value in (*sizes, mean, other, variance)]
        pairs = Pairs(sums[0][one], full[0], sums[1][two], full[1])
        told = squares[0][one], squares[1][two]
        with np.errstate(invalid="ignore"):
            gain = np.exp(bet(pairs, told, shift, (full[2], full[3]), (full[4], full[4])))
        assert np.isfinite(gain).all()
        gain = gain.reshape(len(sets[0]), -1)
        for beyond, laws in product((0, 0.1), product(LAWS, repeat=2)):
            ends = (0, 1 - shift - beyond), (shift + beyond, 1)
            law = [chances(m, values, *at) for m, values, at in zip(sizes, laws, ends, strict=True)]
            found = ((law[0] @ gain) * law[1]).sum(axis=1)
            if not np.isnan(found).all():
                yield float(np.nanmax(found))


def check_squared():
    """The mean is at most v, and nearly v for some law, so an error of few per cent would be seen.

    The bound on the sum of logarithms is never larger than the sum. It is equal for rewards 0 and 1, and if
    one reward lies below the others, which are equal.
    """
    found = list(squared_means(bets.square_bet))
    assert max(found) <= 1 + 1e-9
    assert max(found) > 1 - 1e-3
    for m, p, share in product((1, 2, 3, 4), (0.1, 0.5, 0.9), (0.1, 0.5, 0.98)):
        sets, up = multisets(m), share / p
        true = sets @ np.log1p(up * (VALUES - p))
        full = [np.full(len(sets), value) for value in (m, up, p)]
        found = bets._least_log(sets @ VALUES, sets @ VALUES**2, *full)
        assert (found <= true + 1e-9).all()
        coins = sets[:, [0, -1]].sum(axis=1) == m
        outlier = ((sets[:, :3] == 1).sum(axis=1) == 1) & (sets[:, 3] == m - 1)
        assert found[coins | outlier] == pytest.approx(true[coins | outlier], abs=1e-4)
        told_less = bets._least_log(sets @ VALUES, sets @ VALUES, *full)  # the largest possible squares
        assert (told_less <= found + 1e-9).all()


@pytest.mark.parametrize("shift", [0.9999, 1 - 1e-6, 1 - 1e-9])
def test_a_bet_on_a_shift_of_nearly_all_there_is_has_a_number(shift):
    for m, other_m, mine, others in product((1, 10, 1000), (1, 10, 1000), (0, 1), (0, 1)):
        told = np.array([float(m * mine)]), np.array([float(other_m * others)])
        pairs = Pairs(told[0], np.array([m]), told[1], np.array([other_m]))
        believed = (np.array([1.0]), np.array([0.0])), (np.array([1e-6]),) * 2
        (gain,) = bets.square_bet(pairs, told, shift, *believed)
        assert np.isfinite(gain)
        assert mine or not others or gain <= 0  # the claim is false, and the rewards are certain


SCORES = np.linspace(-12, 42, 54_001)


def normal_means(model, shift, purse, believed, sizes=(4, 9)):
    """E f / v for Gaussian rewards, by the trapezoidal rule, on the boundary and beyond it."""
    width = 0.5 * math.sqrt(1 / sizes[0] + 1 / sizes[1])
    worth = paid(model, sizes, (SCORES * width * sizes[0], sizes[1] * shift), shift, purse, believed)
    return [float(np.trapezoid(worth * norm.pdf(SCORES + off), SCORES) / purse) for off in (0, 0.1, 2)]


def check_normal(purses=(1e-300, 1e-30, 1e-6, 0.1, 0.9)):
    for shift, purse, believed in product((0, 0.3), purses, BELIEVED[::2]):
        capped = normal_means("Gaussian", shift, purse, believed)
        assert max(capped) <= 1 + 1e-6
        if purse >= 1e-6 and (believed[2] == 0 or believed[0] > believed[1]):  # the cap can be reached
            assert capped[0] > 1 - 1e-4
        assert max(normal_means("sub-Gaussian", shift, purse, believed)) <= 1 + 1e-6


@pytest.mark.parametrize("slack", [-0.05, 0.05])
def test_a_cap_too_low_or_too_high_is_seen(monkeypatch, slack):
    monkeypatch.setattr(bets, "SLACK", slack)
    with pytest.raises(AssertionError):
        check_normal([1e-3, 0.1])


# σ unknown: E f over the round's means and its S, which are independent.

PLACES, LOGS = np.linspace(-11, 11, 2201), np.linspace(-14, 4, 151)  # score with σ; log S²/σ²


def student_means(purse, believed, freedom, sigma=3.0, told=None, sizes=(3, 4), shift=0.3):
    """E f / v by the trapezoidal rule, on the boundary and beyond it; σ is far from the beliefs."""
    width = sigma * math.sqrt(1 / sizes[0] + 1 / sizes[1])
    score, log = (each.ravel() for each in np.meshgrid(PLACES, LOGS, indexing="ij"))
    full = [np.full(score.size, float(value)) for value in (*sizes, *believed)]
    pair = [Beliefs(mean, 0 * mean + 0.2, full[4].astype(int)) for mean in full[2:4]]
    pairs = Pairs(score * width * sizes[0], full[0], full[1] * shift, full[1])
    spread = [sigma * np.exp(log / 2), np.full(score.size, float(freedom))]
    known = spread if told is None else told(*spread)
    found = bets.paid(np.full(score.size, math.log(purse)), pairs, shift, pair, "Gaussian", known)
    squares = chi2.pdf(freedom * np.exp(LOGS), freedom) * freedom * np.exp(LOGS)
    worth = np.trapezoid(np.exp(found).reshape(len(PLACES), -1) * squares, LOGS, axis=1)
    return [float(np.trapezoid(worth * norm.pdf(PLACES + off), PLACES) / purse) for off in (0, 0.1, 2)]


def check_student(told=None):
    for purse, believed, freedom in product((1e-3, 0.1, 0.4), BELIEVED[::4], (2, 5, 30)):
        found = student_means(purse, believed, freedom, told=told)
        assert found[0] == pytest.approx(1, abs=2e-3)
        assert 1 + 2e-3 > found[1] > found[2]


def check_every_bernoulli():
    check_bernoulli((0, 0.05, 0.3, 0.7), SIZES)


@pytest.mark.parametrize(
    "check",
    [
        *(check_bernoulli, check_bounded, check_squared, check_normal, check_student),
        pytest.param(check_every_bernoulli, marks=pytest.mark.slow),
    ],
)
def test_a_bet_on_a_false_claim_does_not_grow_in_the_mean(check):
    check()


@pytest.mark.parametrize(
    ("check", "name", "right", "wrong"),
    [
        *(
            (check_bernoulli, "fisher_score", "np.where(ahead, lots, 1 - lots)", wrong)
            for wrong in ("np.where(ahead, 0, 1)", "np.where(ahead, 1, 0)", "lots")  # P(X > A), P(X ≥ A)
        ),
        (check_bernoulli, "thinned", "shift / (1 + shift)", "shift / 2"),
        (check_bernoulli, "thinned", "shift / (1 + shift)", "shift"),
        (check_bernoulli, "capped_bet", "* (1 - SLACK)", "* 1.05"),
        (check_bernoulli, "_cap", "ndtr(-cap) + mean_below", "mean_below"),
        (check_bounded, "unit_bet", "ALMOST *", "1.6 *"),  # a factor may be negative
        (check_bounded, "unit_bet", "down * (p + shift)", "down * p"),
        (check_bounded, "unit_bet", "-down * missed", "-down * (1 - p)"),
        (check_bounded, "unit_bet", "stake / other_m", "stake / m"),
        (check_bounded, "unit_bet", "-up * p", "-up * p / 2"),
        (check_squared, "square_bet", "ALMOST *", "1.6 *"),  # a factor may be negative
        (check_squared, "square_bet", "fresh.leader, squares[0]", "fresh.leader, squares[1]"),
        (check_squared, "square_bet", "other_m - 2 * fresh.other + squares[1]", "squares[1]"),
        (check_squared, "square_bet", "for belief in beliefs", "for belief in fresh.means"),  # the same round
        (check_squared, "square_bet", "stake / other_m, other_p", "stake / m, other_p"),
        (check_squared, "_least_log", "square / count - mean**2, 0", "square / count - 1.02 * mean**2, 0"),
        (check_squared, "_two_points", "np.maximum(count - 1, 1)", "np.maximum(count - 2, 1)"),
        (check_squared, "_two_points", "mean + variance / reach", "mean + variance"),
    ],
)
def test_a_planted_error_in_a_bet_is_seen(monkeypatch, check, name, right, wrong):
    monkeypatch.setattr(bets, name, planted(getattr(bets, name), right, wrong))
    with pytest.raises(AssertionError):
        check()


@pytest.mark.parametrize(
    "told",
    [
        lambda spread, freedom: [spread],  # as if S were σ
        lambda spread, freedom: [spread, freedom + 1],
        lambda spread, freedom: [spread, freedom + 7],  # number of rewards for degrees of freedom
        lambda spread, freedom: [np.full_like(spread, 0.75)],  # a guess, a quarter of σ
        lambda spread, freedom: [spread * np.sqrt(freedom / (freedom + 1)), freedom],  # not divided by ν
    ],
)
def test_a_planted_error_in_a_t_test_is_seen(told):
    with pytest.raises(AssertionError):
        check_student(told)


def test_a_score_is_as_unlikely_as_students_t():
    one, two, freedom = np.meshgrid([-40.0, -1, 0, 0.5, 9], [0.01, 1, 20], [1, 2, 7, 400, 10**7])
    pairs = Pairs(one.ravel() * 2, np.full(one.size, 2), 0 * one.ravel(), np.full(one.size, 5))
    ratio = (one + 0.3).ravel() / (two.ravel() * math.sqrt(0.7))
    found = bets.normal_score(pairs, 0.3, two.ravel(), freedom.ravel())
    sure = (tail := t.sf(abs(ratio), freedom.ravel())) > 1e-290
    assert found[sure] == pytest.approx(np.where(ratio > 0, norm.isf(tail), norm.ppf(tail))[sure], rel=1e-9)
    assert (np.sign(found) == np.sign(ratio)).all()


def test_the_common_variance_is_that_of_the_rewards_about_their_arms_means():
    generator = np.random.default_rng(1)
    for scale, many in ((1.0, [3, 1, 0, 5]), (1e-3, [2, 2]), (1e6, [4, 9, 1])):
        arms = [50 + scale * generator.standard_normal(m) for m in many]
        total = sum(((arm - arm.mean()) ** 2).sum() for arm in arms if len(arm))
        told = (np.array([[fold(arm) for arm in arms]]) for fold in (len, np.sum, lambda arm: (arm**2).sum()))
        ((variance,),), ((freedom,),) = bets.pooled(*told)
        assert freedom == sum(max(m - 1, 0) for m in many)
        assert variance == pytest.approx(total / freedom, rel=3e-3)
        assert scale < 1 or variance == pytest.approx(total / freedom, rel=1e-6)
    for value in (0.0, 0.1, 7.3):
        (_,), ((freedom,),) = bets.pooled(
            np.array([[3, 4]]), value * np.array([[3, 4]]), value**2 * np.array([[3, 4]])
        )
        assert freedom == 0


def test_sub_gaussian_bets_are_fair_for_zeros_and_ones():
    for shift, sizes, believed in product((0, 0.3), SIZES, BELIEVED):
        a, c = np.indices([m + 1 for m in sizes])[:, None]
        purse = np.array(PURSES)[:, None, None]
        worth = paid("sub-Gaussian", sizes, (a, c), shift, purse, believed)
        laws = tuple(coins(m, np.eye(m + 1)) for m in sizes)
        assert np.nanmax(means_of(worth, laws, shift) / purse[:, 0]) <= 1 + 1e-9


def capped_at(purse, drifts):
    """The score at which a capped bet reaches 1, by root finding on the bet's mean."""

    def excess(cap):
        ratio = sum(w * math.exp(t * cap - t * t / 2) for w, t in zip(bets.WEIGHTS, drifts, strict=True))
        below = sum(w * norm.cdf(cap - t) for w, t in zip(bets.WEIGHTS, drifts, strict=True)) / ratio
        return math.log((norm.sf(cap) + below) / purse)

    return brentq(excess, -8, 19) if excess(19) < 0 else None


def test_a_capped_bet_is_paid_in_full_where_it_may_be_and_nowhere_else():
    generator, full = np.random.default_rng(2), []
    for _ in range(400):
        purse = 10 ** -generator.uniform(0.05, 15)
        drifts = np.clip(generator.uniform(0.1, 6) + generator.uniform(0, 2) * np.array(bets.NODES), 0.02, 8)
        cap = capped_at(purse, drifts)
        if cap is not None:
            scores = np.array([cap - 1e-3, cap + 1e-3])
            low, high = bets.capped_bet(np.full(2, math.log(purse)), scores, np.tile(drifts[:, None], 2))
            assert low < 0
            full.append(high == 0)
    assert len(full) > 200
    assert np.mean(full) > 0.9  # for the others Newton's method fails: no cap


@pytest.mark.parametrize("purse", [1e-300, 1e-280, 1e-100, 1e-12, 1e-3, 0.5])
def test_neither_a_tiny_purse_nor_a_tiny_or_a_huge_drift_is_a_certificate(purse):
    drifts = np.array(np.meshgrid(*[[0, 1e-9, 0.02, 8, 40]] * 3)).reshape(3, -1)
    for score in (-30.0, -1.0, 0.0, norm.isf(purse) - 0.01):
        size = drifts.shape[1]
        with np.errstate(all="ignore"):  # no race has a drift of 40 for such purses
            found = bets.capped_bet(np.full(size, math.log(purse)), np.full(size, score), drifts)
        assert np.isfinite(found).all()
        assert (found < 0).all()


def test_lots_of_a_race_are_quantiles_of_the_binomial_law():
    trials = np.random.default_rng(1).integers(0, 3000, (40, 50)) * (np.arange(50) % 3)
    for part in (1e-4, 0.01, 0.3):
        found = bets.drawn(np.random.default_rng(2), trials, part)
        uniform = np.random.default_rng(2).random(trials.shape)
        assert found.tolist() == np.where(trials > 0, binom.ppf(uniform, trials, part), 0).tolist()
