"""Staked EBR: exact failures of tiny races, a table's money and claims, planted errors, losses, blocks."""

import dataclasses
import inspect
import math
import textwrap
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from compendium.tuning.plus_minus import PlusMinus
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Rewards, play
from scipy.stats import binom, binomtest, chi2, kstest, norm, t

import ebr
from ebr.algorithms import staked
from ebr.algorithms.game import advance
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.models import REWARDS
from ebr.simulation.simulate import draw, draw_sums
from ebr.theory.problems import Problem

TABLE, PAID = staked._Table, staked.paid


def plant(monkeypatch, name, *changes):
    """Plant an error in a method of the table."""
    source, names = textwrap.dedent(inspect.getsource(getattr(TABLE, name))), dict(vars(staked))
    for right, wrong in changes:
        assert right in source
        source = source.replace(right, wrong)
    exec(source, names)
    monkeypatch.setattr(TABLE, name, names[name])


# Tiny races: each pair of 0/1 sequences of two arms is a replicate. The better arm comes second.


def failures(model, deadline, epsilon, delta, start=1.0, seeds=1):
    """The probability that the worse arm, by ε, is recommended: seeds × means."""
    model, _, squares = model.partition(" with ")
    race = StakedElasticBatchRacing(
        deadline, epsilon, delta, rewards=model, start=start, squares=bool(squares)
    )
    length = race.last_count(2)
    sequences = np.array(list(product((0, 1), repeat=length)))
    one, two = np.indices((len(sequences),) * 2).reshape(2, -1)
    ones, table = sequences.sum(axis=1), np.stack([sequences[one], sequences[two]], axis=1)
    worse = np.linspace(0, 1 - epsilon, 21)
    chances = [
        mean[:, None] ** ones * (1 - mean[:, None]) ** (length - ones) for mean in (worse, worse + epsilon)
    ]
    for seed in range(seeds):
        paid = Rewards(table)
        _, arm = play(race, paid, generator=np.random.default_rng(seed))
        assert paid.used.max() <= length
        yield np.einsum("ka,ab,kb->k", chances[0], (arm == 0).reshape(len(ones), -1) * 1.0, chances[1])


EXACT = {
    "Bernoulli": [(0.5, 0.3), (0.5, 0.6), (0.5, 0.9), (0.7, 0.3), (0.7, 0.9)],
    "bounded": [(0.5, 0.9), (0.7, 0.3), (0.7, 0.6), (0.7, 0.9)],
    "bounded with squares": [(0.5, 0.9), (0.7, 0.3), (0.7, 0.6), (0.7, 0.9)],
    "sub-Gaussian": [(0.5, 0.9), (0.7, 0.3), (0.7, 0.6), (0.7, 0.9)],
}


@pytest.mark.parametrize("model", EXACT)
def test_few_pulls_fail_with_at_most_delta_exactly_and_a_visible_part_of_it_is_paid(model):
    parts = []
    for deadline, (epsilon, delta), start in product((1, 2, 3, 4), EXACT[model], (0.5, 1.0)):
        found = np.array(
            list(failures(model, deadline, epsilon, delta, start, seeds=4 if model == "Bernoulli" else 1))
        )
        parts.append(found.mean(axis=0).max() / delta)  # one lot per sequence and seed: noise below 0.05
    assert max(parts) <= 1
    assert max(parts) > (0.4 if model == "Bernoulli" else 0.03)


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (StakedElasticBatchRacing, "last_count", lambda *_: 1),
        (staked, "paid", lambda purse, *_: np.minimum(purse + 6, 0)),
    ],
)
def test_with_a_gross_error_few_pulls_fail_more_often(monkeypatch, where, name, wrong):
    monkeypatch.setattr(where, name, wrong)
    assert max(next(failures("sub-Gaussian", 2, 0.7, 0.2))) > 0.2


# The theorem's assumptions on money, bets and decisions, checked in races with Gaussian rewards.


class Watched(TABLE):
    """A table that records the money given and won, and checks decisions.

    Attributes
    ----------
    granted
        The money that all claimants together have been given for one purse each, per replicate.
    grown
        The growth of Σ_k v^{s(k)}_{k,best} while bets were settled, per replicate. Arm 0 is best.
    first
        The sums of the first b_T rewards of each arm.
    """

    tables: ClassVar = []

    def __init__(self, *game, **said):
        super().__init__(*game, **said)
        self.granted, self.grown = np.zeros((2, len(self.arms)))
        self.first = np.zeros((len(self.arms), self.counts.shape[1]))
        self.tables.append(self)

    def _open(self):
        super()._open()
        self.granted += np.exp(self.purses.max()) * self.fresh.shape[1]

    def _seat(self, chance):
        super()._seat(chance)
        self.kept = np.exp(self.purses)

    def stake(self, now):
        super().stake(now)
        self.granted[self.replicate] += (np.exp(self.purses) - self.kept).max(axis=(0, 3)).sum(axis=1)

    def claims(self):
        """Σ_k v^{s(k)}_{k,best}, where all other arms are worse by ε."""
        return np.where(self.claimant > 0, np.exp(self.purses[0, :, :, 0]), 0).sum(axis=1)

    def _pay(self):
        before, out = self.claims(), self.out
        super()._pay()
        self.grown[self.replicate] += self.claims() - before
        held, counts = self.purses >= 0, self.counts + self.came
        assert not ((self.counts < self.last) & (counts > self.last)).any()
        self.first[self.replicate] += np.where(counts <= self.last, self.fresh, 0)
        self.seen = [self.replicate, self.claimant, held, out | held.all(axis=0).any(axis=1), self.final]

    def settle(self, came, sums, now):
        super().settle(came, sums, now)
        for replicate, claimant, held, out, final in zip(
            *self.seen[:2], np.moveaxis(self.seen[2], 1, 0), *self.seen[3:], strict=True
        ):
            row, arm = np.flatnonzero(self.replicate == replicate), self.arms[replicate]
            if len(row):  # it goes on: an arm is out if both claims of one claimant hold
                assert self.out[row[0]].tolist() == out.tolist()
                continue
            claims = {int(k): held[0, seat] | out for seat, k in enumerate(claimant)}
            won = [k for k, holds in claims.items() if not out[k] and np.delete(holds, k).all()]
            best = np.where(final, self.first[replicate], -np.inf).argmax() if final.any() else out.argmin()
            assert arm in won or (not won and arm == best)

    def enter_final(self, *which):
        rows, out, claimant, held = self.replicate, self.out, self.claimant, self.purses[0] >= 0
        super().enter_final(*which)
        for row, final in zip(self.replicate, self.final, strict=True):
            if not final.any():
                continue
            old = np.flatnonzero(rows == row)[0]
            holds = {int(k): held[old, seat] | out[old] for seat, k in enumerate(claimant[old])}
            for k in np.flatnonzero(final):
                assert not out[old, k]
                assert (holds.get(k, out[old]) | final).all()


def watch(monkeypatch, runs, deadline, n_arms=2, epsilon=0.3, delta=0.3, rows=True, **told):
    """Races with Gaussian rewards, arm 0 better by ε: money over δ, final's share, z score of the growth."""
    with monkeypatch.context() as patch:
        patch.setattr(staked, "_Table", Watched)
        for method in () if rows else ("settle", "enter_final"):
            patch.delattr(Watched, method)
        race = StakedElasticBatchRacing(deadline, epsilon, delta, rewards="Gaussian", start=1.0, **told)
        problem = ebr.Gaussian([epsilon, *[0.0] * (n_arms - 1)], 0.5)
        Watched.tables.clear()
        ebr.simulate(race, problem, runs, seed=3)
    granted = np.concatenate([table.granted for table in Watched.tables])
    grown = np.concatenate([table.grown for table in Watched.tables])
    last = norm.sf(epsilon * math.sqrt(race.last_count(n_arms) / 2) / 0.5)  # for two arms
    return granted.max() / delta, last / delta, grown.mean() / (grown.std() / math.sqrt(runs))


def check_decisions(n_arms):
    """Tables with random claims, of which some hold, decide and enter the final."""
    generator, race = np.random.default_rng(n_arms), StakedElasticBatchRacing(9, 0.3, 0.3, rewards="Gaussian")
    table = Watched(race, n_arms, 600, "Gaussian", generator, False)
    table.claimant = generator.permuted(np.tile(np.arange(n_arms), (600, 1)), axis=1)[:, :8]
    table.purses = np.where(generator.random(table.purses.shape) < generator.random((600, 1, 1)), 0.0, -1.0)
    table.sums, table.asked = generator.random(table.sums.shape), np.zeros_like(table.asked)
    table.settle(table.asked, np.zeros(table.sums.shape), 2)
    table.enter_final(np.ones(len(table.replicate), dtype=bool))


def check_table(monkeypatch):
    """Money and the final's share are at most δ, bets do not grow in 20,000 races, claims decide."""
    for deadline, n_arms in ((2, 2), (3, 2), (6, 4), (12, 5)):
        granted, last, _ = watch(monkeypatch, 1000, deadline, n_arms)
        assert granted <= 0.95 * (1 - deadline**-0.5) + 1e-9
        assert n_arms > 2 or granted + last <= 1
    for n_arms in (2, 3, 5, 10):
        check_decisions(n_arms)
    for deadline, n_arms in ((3, 2), (6, 3)):
        assert watch(monkeypatch, 20_000, deadline, n_arms, rows=False)[2] < 4  # false alarm: 1 in 30,000


def test_money_bets_and_decisions_are_as_the_theorem_has_them(monkeypatch):
    check_table(monkeypatch)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("stake", [("self.left = self.left - given", "pass")]),  # money is given twice
        ("_open", [("given / n_arms", "given")]),
        ("__init__", [("(1 - SAID) * (1 - race.last_part)", "1.0")]),  # though there is a final
        ("_open", [("(1 - SAID) * (1 - race.last_part)", "1.0")]),
        ("settle", [("self._pay()", "STALE(self)")]),  # bets on old rewards
        ("_pay", [("self.purses, self.shifts,", "self.purses, 1.5 * self.shifts,")]),
        ("_bet", [("(self.purses >= 0).all(axis=0)", "(self.purses[1] >= 0)")]),
        ("_bet", [("(self.purses >= 0).all(axis=0)", "(self.purses[0] >= 0)")]),
        (
            "settle",
            [
                (
                    "self.first_sums = np.where(self.counts <= self.last, self.sums, self.first_sums)",
                    "self.first_sums = self.sums",
                )
            ],
        ),
        ("settle", [("np.where(won, self.of_claimants(self.beliefs.mean), -np.inf).argmax", "won.argmin")]),
        ("finalists", [("chosen |= more", "break")]),
        ("finalists", [("smaller &= ~(chosen & (self.out | ~seated)).any(axis=1)", "pass")]),
    ],
)
def test_a_planted_error_in_the_table_is_seen(monkeypatch, name, changes):
    def stale(self):
        new = self.came, self.fresh
        self.came, self.fresh = np.where(self.came > 0, self.counts + self.came, 0), self.sums + self.fresh
        self._pay()
        self.came, self.fresh = new

    monkeypatch.setattr(staked, "STALE", stale, raising=False)
    plant(monkeypatch, name, *changes)
    with pytest.raises(AssertionError):
        check_table(monkeypatch)


# Races of every kind.


RUNS = 400
SIMULATED = [  # n means, ε, δ, T
    ([0.5] * 6, 0.2, 0.5, 4),
    ([0.6] + [0.5] * 29, 0.1, 0.3, 6),
    ([0.5, 0.3], 0.2, 0.5, 2),
    ([0.5, 0.3], 0.2, 0.1, 12),
    ([0.99] + [0.89] * 9, 0.1, 0.2, 5),
    ([0.11] + [0.01] * 9, 0.1, 0.2, 5),
    ([1.0, 0.7, 0.7], 0.3, 0.5, 3),
    ([0.3, 0.0, 0.0], 0.3, 0.5, 3),
    ([0.6, 0.6, 0.6, 0.4, 0.4, 0.4, 0.4], 0.2, 0.4, 7),
    ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0], 0.1, 0.3, 8),
    ([0.5, 0.401, *[0.4] * 10], 0.1, 0.5, 9),
    ([0.62, 0.5], 0.12, 0.02, 20),
]


@pytest.mark.parametrize("model", REWARDS)
def test_hostile_problems_fail_with_at_most_delta(model):
    for number, (means, epsilon, delta, deadline) in enumerate(SIMULATED):
        race = StakedElasticBatchRacing(deadline, epsilon, delta, rewards=model)
        normal = model in ("Gaussian", "sub-Gaussian")
        problem = ebr.Gaussian(means, 0.5) if normal else ebr.Bernoulli(means)
        wrong = (~ebr.simulate(race, problem, RUNS, seed=number).correct(epsilon * (1 - 1e-9))).sum()
        assert binom.sf(wrong - 1, RUNS, delta) > 1e-6 / 48, (means, wrong)


# Sums of squares.


def squared(deadline, epsilon, delta):
    return StakedElasticBatchRacing(deadline, epsilon, delta, rewards="bounded", squares=True)


NARROW = [
    (means, epsilon, delta, deadline) for means, epsilon, delta, deadline in SIMULATED if max(means) < 1
]


@pytest.mark.parametrize("sigma", [0.001, 0.05, None])
def test_with_squares_hostile_problems_fail_with_at_most_delta(sigma):
    for number, (means, epsilon, delta, deadline) in enumerate(NARROW):
        inside = 0.1 + 0.8 * np.array(means)
        problem = ebr.Bernoulli(means) if sigma is None else PlusMinus(inside, sigma)
        scale = 1 if sigma is None else 0.8
        race = squared(deadline, epsilon * scale, delta)
        wrong = (~ebr.simulate(race, problem, 500, seed=number).correct(scale * epsilon * (1 - 1e-9))).sum()
        assert binom.sf(wrong - 1, 500, delta) > 1e-4, (means, wrong)  # 33 problems: 1 in 300


@dataclasses.dataclass(frozen=True, eq=False)
class Rare(Problem):
    """Arms that pay ½, and rarely 1 or 0, so that their first rewards seem not to vary."""

    sigma: float = 0.5
    rewards: ClassVar[str] = "bounded"


@draw_sums.register
def _(problem: Rare, means, pulls, generator):
    odd, value = generator.binomial(pulls, 2 * abs(means - 0.5) + 0 * pulls), 1.0 * (means > 0.5)
    return np.stack([(pulls - odd) * 0.5**power + odd * value**power for power in (1, 2)])


@pytest.mark.parametrize("means", [[0.55, 0.5], [0.5, 0.45], [0.55] + [0.5] * 9, [0.525] + [0.475] * 3])
def test_rewards_that_seem_constant_at_first_are_not_trusted(means):
    for deadline in (2, 4, 9):
        result = ebr.simulate(squared(deadline, 0.05, 0.2), Rare(means), 500, seed=deadline)
        wrong = (~result.correct(0.05 * (1 - 1e-9))).sum()
        assert binom.sf(wrong - 1, 500, 0.2) > 1e-4  # 12 problems: 1 in 800


def test_rewards_of_small_spread_need_a_tenth_of_the_pulls_and_wide_ones_no_more_than_a_quarter_more():
    narrow = PlusMinus(np.linspace(0.6, 0.4, 12), 0.05)
    wide = ebr.Bernoulli(np.linspace(0.9, 0.1, 12))
    without = dataclasses.replace(squared(8, 0.03, 0.05), squares=None)
    pulls = {
        race: [ebr.simulate(race, problem, 200, seed=1).pulls.mean() for problem in (narrow, wide)]
        for race in (without, squared(8, 0.03, 0.05))
    }
    before, after = pulls.values()
    assert after[0] < before[0] / 10
    assert after[1] < before[1] * 1.25


def test_sums_told_alone_stand_for_squares_as_large_as_they_can_be():
    class Both(Rewards):
        def pay(self, pulls):
            return np.stack([super().pay(pulls)] * 2)

    table = unit_table(20, 4, 3)
    (alone, arm), (both, same) = (play(squared(5, 0.2, 0.2), told(table)) for told in (Rewards, Both))
    assert np.array_equal(np.array(alone), np.array(both))
    assert arm.tolist() == same.tolist()


def test_a_purse_that_is_no_number_never_holds():
    purses = np.array([[[[math.nan, -5.0, 0.0]]]])
    with np.errstate(invalid="ignore"):
        after = staked._given(purses, np.array([[math.log(0.01)]]))
    assert (after >= 0).tolist() == [[[[False, False, True]]]]


def test_a_race_leaves_it_open_whether_squares_come():
    race = StakedElasticBatchRacing(5, 0.1, 0.1)
    assert not race.wants_squares("bounded")
    assert race.suited("bounded", blocks=False).wants_squares("bounded")
    for other in ("Bernoulli", "Gaussian", "sub-Gaussian"):
        assert race.suited(other, blocks=False) == race
    refused = dataclasses.replace(race, squares=False)
    assert refused.suited("bounded", blocks=False) == refused
    assert "squares" not in repr(race)
    assert "squares=True" in repr(race.suited("bounded", blocks=False))
    assert race.suited("sub-Gaussian", blocks=True) == dataclasses.replace(race, blocks=True)
    with pytest.raises(ValueError, match="squares must be True, False or None, got 'no'"):
        dataclasses.replace(race, squares="no")


def unit_table(replicates, n_arms, seed):
    generator = np.random.default_rng(seed)
    means = generator.choice([0.0, 0.02, 0.3, 0.5, 0.7, 1.0], (replicates, n_arms, 1))
    return (generator.random((replicates, n_arms, 97)) < means).astype(float)


# Gaussian rewards, σ unknown: `sigma` is a guess.


def guessing(deadline, epsilon, delta, sigma=0.5, **options):
    return StakedElasticBatchRacing(
        deadline, epsilon, delta, sigma=sigma, rewards="Gaussian", squares=True, **options
    )


def test_steins_count_is_the_least_that_a_t_test_allows():
    for variance, freedom, epsilon, miss in product(
        (0.03, 1.0), (1, 2, 9, 400), (0.1, 0.7), (0.02, 0.3, 0.6)
    ):
        least = 1
        while miss < 0.5 and t.sf(epsilon * math.sqrt(least / 2 / variance), freedom) > miss:
            least += max(1, least // 10**5)
        found = staked.stein_count(np.array([variance]), np.array([freedom]), epsilon, miss)[0]
        assert max(found, 1) == pytest.approx(least, rel=1e-4)
    assert staked.stein_count(np.array([1.0]), np.array([0]), 0.1, 0.1).tolist() == [math.inf]


def final_failure(count, epsilon, miss, freedom, first, sigma):
    """P(the arm worse by ε leads after b rewards), as a mean over S², divided by α."""
    log = np.linspace(-18, 4, 20_001)
    density = chi2.pdf(freedom * np.exp(log), freedom) * freedom * np.exp(log)
    pulls = np.maximum(count(sigma**2 * np.exp(log), np.full(log.shape, freedom), epsilon, miss), first)
    return np.trapezoid(density * norm.sf(epsilon * np.sqrt(pulls / 2) / sigma), log) / miss


def test_steins_count_spends_its_share_and_no_more():
    for freedom, miss, sigma in product((2, 6, 50), (0.001, 0.1), (0.1, 3.0)):
        assert 0.9 < final_failure(staked.stein_count, 0.02, miss, freedom, 2, sigma) <= 1 + 1e-6
        for wrong in (
            lambda variance, freedom, *rest: staked.stein_count(variance, 2 * freedom, *rest),
            lambda variance, freedom, *rest: staked.stein_count(variance / 2, freedom, *rest),
            lambda variance, freedom, *rest: staked.stein_count(0 * variance + 0.01**2, freedom, *rest),
        ):
            assert final_failure(wrong, 0.02, miss, freedom, 2, sigma) > 1.005


def check_guessed(monkeypatch):
    """With few degrees of freedom purses on false claims keep their mean, and b_T is Stein's."""
    for sigma, deadline in ((0.03, 3), (0.125, 4), (2.0, 3)):
        told = {"squares": True, "sigma": sigma, "rows": False, "delta": 0.6}
        assert abs(watch(monkeypatch, 20_000, deadline, **told)[2]) < 4.5  # false alarm: 1 in 50,000
    race, generator = guessing(5, 0.3, 0.2, 0.05), np.random.default_rng(1)
    game = race.play(3, 4, rewards="Gaussian", generator=generator)
    pulls = next(game)
    rewards = generator.standard_normal((4, 3, pulls[0, 0]))
    game.send(np.stack([rewards.sum(axis=2), (rewards**2).sum(axis=2)]))
    table = inspect.getgeneratorlocals(game)["table"]
    for replicate, last in zip(table.replicate, table.last[:, 0], strict=True):
        variance = rewards[replicate].var(axis=1, ddof=1).mean()
        freedom = 3 * (pulls[0, 0] - 1)
        quantile = t.isf(0.2 / math.sqrt(5) / 2, freedom)
        assert last == max(math.ceil(2 * variance * quantile**2 / 0.3**2), pulls[0, 0])


def test_with_a_guess_money_and_bets_are_as_the_theorem_has_them(monkeypatch):
    for deadline, n_arms in ((3, 2), (6, 4)):
        granted, _, grown = watch(monkeypatch, 1000, deadline, n_arms, squares=True, sigma=0.1)
        assert granted <= 0.95 * (1 - deadline**-0.5) + 1e-9
        assert grown < 4.5
    check_guessed(monkeypatch)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("_told", [("[np.sqrt(variance), freedom]", "[self.race.sigma]")]),
        ("_told", [(", freedom]", ", freedom + self.came.sum(axis=1, keepdims=True)]")]),
        (
            "_told",  # deviations from the means of earlier rounds
            [
                (
                    "pooled(self.came, self.fresh, self.fresh_squares)",
                    "pooled(self.came, 0 * self.fresh, self.fresh_squares"
                    " - 2 * self.beliefs.mean * self.fresh + self.came * self.beliefs.mean**2)",
                )
            ],
        ),
        ("_open", [("race.delta * race.last_part / (n_arms - 1)", "race.delta / (n_arms - 1)")]),
        ("_open", [("race.delta * race.last_part / (n_arms - 1)", "race.delta * race.last_part")]),
        ("_open", [("np.maximum(least, self.came.max(axis=1, keepdims=True))", "0 * least + self.planned")]),
    ],
)
def test_a_planted_error_with_a_guess_is_seen(monkeypatch, name, changes):
    plant(monkeypatch, name, *changes)
    with pytest.raises(AssertionError):
        check_guessed(monkeypatch)


@pytest.mark.parametrize("guess", [0.125, 0.5, 2.0])
def test_with_a_guess_hostile_problems_fail_with_at_most_delta(guess):
    for number, (means, epsilon, delta, deadline) in enumerate(SIMULATED):
        race = guessing(deadline, epsilon, delta, guess)
        result = ebr.simulate(race, ebr.Gaussian(means, 0.5), RUNS, seed=number)
        wrong = (~result.correct(epsilon * (1 - 1e-9))).sum()
        assert binom.sf(wrong - 1, RUNS, delta) > 1e-6 / 36, (means, wrong)
        assert result.rounds.max() <= deadline


def test_a_guess_that_is_right_costs_little_and_a_wrong_one_no_more_than_half():
    problem = ebr.Gaussian(np.linspace(0.9, 0.1, 30), 0.5)
    known = StakedElasticBatchRacing(10, 0.03, 0.05)
    pulls = [
        ebr.simulate(race, problem, 200, seed=1).pulls.mean()
        for race in (known, *(guessing(10, 0.03, 0.05, guess) for guess in (0.5, 0.25, 1.0)))
    ]
    assert pulls[1] < 1.1 * pulls[0]
    assert max(pulls) < 1.5 * pulls[0]


def test_a_guessed_sigma_is_not_used_as_a_known_one():
    race = guessing(5, 0.1, 0.1, 1e-6)
    assert race.wants_squares("Gaussian")
    assert race.first_count(3) == 2
    assert race.most_pulls(3) is None
    assert np.isnan(race.deviation(np.array([3, 4]), 3)).all()
    with pytest.raises(ValueError, match="deadline must be at least 2 where sigma is only a guess, got 1"):
        guessing(1, 0.1, 0.1)
    known = StakedElasticBatchRacing(5, 0.1, 0.1, rewards="Gaussian")
    assert known.suited("bounded", blocks=False) == known
    assert not known.wants_squares("Gaussian")
    assert known.most_pulls(3) > 0
    told_later = StakedElasticBatchRacing(5, 0.1, 0.1, squares=True)
    assert not told_later.wants_squares("Gaussian")
    game = race.play(3)
    with pytest.raises(ValueError, match="sums must come with sums of squares"):
        game.send(next(game) * 0.5)


def test_without_degrees_of_freedom_nothing_is_guaranteed():
    for came, deadline in product((1, 4), (2, 3)):  # one reward per arm, or equal rewards
        game = guessing(deadline, 0.2, 0.3, 0.02).play_lossy(3)
        standing = next(game)
        counts, sums = np.full((1, 3), came), came * np.array([[0.1, 0.9, 0.3]])
        for _ in range(deadline):
            assert 0 < standing.pulls.max() < 10**6
            turn = advance(game, (counts, np.stack([sums, sums**2 / came])))
            standing = turn.pulls or turn.arms
            assert np.isinf(standing.within).all()
        assert turn.pulls is None


def test_sums_of_squares_are_drawn_as_those_of_normal_rewards():
    problem, generator = ebr.Gaussian([0.9, 0.2], 0.3), np.random.default_rng(1)
    pulls = np.tile([[1], [7]], 20_000)
    sums, squares = draw(problem, problem.means[:, None], pulls, generator, squares=True)
    assert squares[0] == pytest.approx(sums[0] ** 2)
    about = (squares[1] - sums[1] ** 2 / 7) / 0.3**2
    assert kstest(about, chi2(6).cdf).pvalue > 1e-6
    assert abs(np.corrcoef(about, sums[1])[0, 1]) < 0.035  # five standard errors
    alone = draw(problem, problem.means[:, None], pulls, np.random.default_rng(1))
    assert np.array_equal(alone, sums)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(REWARDS),
    st.integers(1, 9),
    st.sampled_from([0.03, 0.1, 0.3, 0.9]),
    st.sampled_from([1e-6, 0.05, 0.5, 0.95]),
    st.integers(2, 12),
    st.integers(0, 2**32),
)
def test_pulls_and_rounds_are_bounded_and_no_finite_purse_below_one_is_missed(
    model, deadline, epsilon, delta, n_arms, seed
):
    race = StakedElasticBatchRacing(deadline, epsilon, delta, rewards=model, start=1.0)

    def watched(purse, fresh, *rest):
        after = PAID(purse, fresh, *rest)
        assert np.isfinite(purse).all()
        assert (purse < 0).all()
        assert np.isfinite(after).all()
        assert (after <= 0).all()
        return after

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staked, "paid", watched)
        asked, arm = play(race, Rewards(unit_table(4, n_arms, seed)), generator=np.random.default_rng(seed))
    assert len(asked) <= deadline
    assert np.min(asked) >= 0
    assert np.sum(asked, axis=(0, 2)).max() <= (n_arms + math.sqrt(n_arms)) * race.last_count(n_arms)
    goes_on = np.array(asked).any(axis=2)
    assert (goes_on[1:] <= goes_on[:-1]).all()  # no empty round before the end
    assert ((arm >= 0) & (arm < n_arms)).all()


def test_lots_are_fresh_unless_a_generator_is_given():
    race = StakedElasticBatchRacing(4, 0.2, 0.2, rewards="Bernoulli")

    def outcome(**lots):
        asked, arm = play(race, Rewards(unit_table(50, 4, 1)), **lots)
        return [ask.tolist() for ask in asked], arm.tolist()

    one, two, other = (outcome(generator=np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == two != other
    assert outcome() != outcome()


def test_in_very_large_batches_zeros_and_ones_are_bet_on_as_bounded_rewards_and_not_thinned(monkeypatch):
    models = []

    def watched(*bet):
        models.append(bet[4])
        return PAID(*bet)

    monkeypatch.setattr(staked, "paid", watched)
    monkeypatch.setattr(staked, "thinned", None)
    monkeypatch.setattr(staked, "MOST_TESTED", 0)
    race = StakedElasticBatchRacing(4, 0.2, 0.2, rewards="Bernoulli")
    play(race, Rewards(unit_table(50, 4, 1)), generator=np.random.default_rng(1))
    assert set(models) == {"bounded"}


@pytest.mark.slow
def test_a_hundred_thousand_arms_are_raced():
    means = np.linspace(0, 0.9, 10**5)
    result = ebr.simulate(StakedElasticBatchRacing(8, 0.1, 0.05), ebr.Bernoulli(means), 1, seed=1)
    assert result.correct(0.1).all()


# Missing rewards, a control, and what could be said if a race were stopped.


def lossy(race, means, runs, loss, seed, model):
    """Play races with rewards lost at random: pulls, endings, and which races ever said something false."""
    means, generator = np.asarray(means), np.random.default_rng(seed)
    game = race.play_lossy(len(means), runs, rewards=model, generator=generator)
    standing, pulls, false = next(game), np.zeros(runs), np.zeros(runs, dtype=bool)
    while True:
        false |= (standing.arms >= 0) & (means.max() - means[standing.arms] >= standing.within)
        came = generator.binomial(standing.pulls, 1 - loss)
        pulls += standing.pulls.sum(axis=1)
        sums = generator.binomial(came, means).astype(float)
        if model in ("Gaussian", "sub-Gaussian"):
            sums = came * means + 0.5 * np.sqrt(came) * generator.standard_normal(came.shape)
        if race.wants_squares(model):
            about = 2 * generator.standard_gamma(np.maximum(came - 1, 0) / 2)
            sums = np.stack([sums, sums**2 / np.maximum(came, 1) + 0.25 * about])
        try:
            standing = game.send((came, sums))
        except StopIteration as end:
            gap = means.max() - means[end.value.arms]
            return pulls, end.value, false | (gap >= end.value.within)


HOSTILE = [([0.6, 0.4, 0.4], 0.2, 0.5, 4), ([0.55, 0.5, 0.45, 0.2], 0.1, 0.3, 6), ([0.9, 0.6], 0.3, 0.6, 3)]


@pytest.mark.parametrize("model", [*REWARDS, "a guess"])
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_all_statements_of_a_race_are_wrong_with_delta_at_most(model, loss):
    for place, (means, epsilon, delta, deadline) in enumerate(HOSTILE):
        race = StakedElasticBatchRacing(
            deadline, epsilon, delta, rewards=model.replace("a guess", "Gaussian")
        )
        if model == "a guess":
            race = dataclasses.replace(race, sigma=0.125, squares=True)
        _, ending, false = lossy(race, means, 250, loss, place, race.rewards)
        assert binomtest(int(false.sum()), 250, delta, "greater").pvalue > 1e-6 / 30
        assert (ending.within >= epsilon).all()
        if loss == 0:
            assert (ending.within == epsilon).all()


def test_a_planted_error_in_the_statements_is_seen(monkeypatch):
    plant(monkeypatch, "standing", ("self.coarser]", "self.coarser / 64]"))  # weaker claims than stated
    race = StakedElasticBatchRacing(6, 0.01, 0.2, rewards="Gaussian")
    *_, false = lossy(race, [0.5, 0.45, 0.45], 200, 0.0, 1, "Gaussian")
    assert binomtest(int(false.sum()), 200, 0.2, "greater").pvalue < 1e-4


def test_without_losses_the_race_is_the_same():
    race = StakedElasticBatchRacing(7, 0.1, 0.1, rewards="Bernoulli")
    means, seeds = np.array([0.6, 0.55, 0.3, 0.2]), range(20)
    for seed in seeds:
        plain = race.play(4, rewards="Bernoulli", generator=np.random.default_rng(seed))
        other = race.play_lossy(4, rewards="Bernoulli", generator=np.random.default_rng(seed))
        draws = np.random.default_rng(seed)
        pulls, standing = next(plain), next(other)
        while True:
            assert pulls.tolist() == standing.pulls.tolist()
            sums = draws.binomial(pulls, means).astype(float)
            turn, other_turn = advance(plain, sums), advance(other, (standing.pulls, sums))
            if turn.pulls is None:
                assert other_turn.arms.arms.tolist() == turn.arms.tolist()
                break
            pulls, standing = turn.pulls, other_turn.pulls


def test_a_control_is_recommended_where_none_is_better_by_the_margin():
    alike, margin = [0.5] * 5, 0.3
    without = StakedElasticBatchRacing(8, 0.1, 0.1, rewards="Bernoulli")
    race = dataclasses.replace(without, control=2, margin=margin)
    pulls, ending, _ = lossy(race, alike, 100, 0.0, 1, "Bernoulli")
    assert (ending.arms == 2).mean() > 0.8
    assert (ending.within[ending.arms == 2] == margin).mean() > 0.8
    assert pulls.mean() < 0.5 * lossy(without, alike, 100, 0.0, 1, "Bernoulli")[0].mean()
    better = [0.5, 0.5, 0.5, 0.5, 0.81]
    _, ending, _ = lossy(race, better, 400, 0.0, 2, "Bernoulli")
    assert binomtest(int((ending.arms != 4).sum()), 400, 0.1, "greater").pvalue > 1e-4


def test_a_race_without_any_reward_guarantees_nothing():
    race = StakedElasticBatchRacing(3, 0.2, 0.1, rewards="bounded")
    _, ending, _ = lossy(race, [0.5, 0.4], 4, 1.0, 1, "bounded")
    assert ending.arms.tolist() == [-1] * 4
    assert np.isinf(ending.within).all()


# Blocks: the noise that all arms of a block share is large, but cancels in differences.


def false_in_blocks(race, means, runs, loss=0.0):
    """Play races in blocks, of which some are lost; return how many end with a false statement."""
    generator, noise = np.random.default_rng(1), [0.5, 20.0]  # of rewards within a block, and of blocks
    game = race.play_lossy(len(means), runs, rewards="Gaussian", generator=generator)
    standing = next(game)
    while True:
        blocks = standing.pulls.max(axis=1, keepdims=True)
        lost = blocks - generator.binomial(blocks, 1 - loss)
        came = np.maximum(standing.pulls - lost, 0)
        order = came.argsort(axis=1)  # an arm has the first blocks of the round
        steps = np.diff(np.take_along_axis(came, order, axis=1), prepend=0, axis=1)
        shared = np.cumsum(np.sqrt(steps) * generator.standard_normal(steps.shape), axis=1)
        common = np.take_along_axis(shared, order.argsort(axis=1), axis=1)
        own = np.sqrt(came) * generator.standard_normal(came.shape)
        try:
            standing = game.send((came, came * means + noise[0] * own + noise[1] * common))
        except StopIteration as end:
            gap = max(means) - np.array(means)[end.value.arms]
            return int((gap >= end.value.within - 1e-9).sum())


IN_BLOCKS = StakedElasticBatchRacing(6, 0.1, 0.3, rewards="Gaussian", blocks=True)


@pytest.mark.parametrize("model", ["Gaussian", "sub-Gaussian"])
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_in_blocks_races_fail_with_at_most_delta_however_much_blocks_differ(model, loss):
    race = dataclasses.replace(IN_BLOCKS, rewards=model)
    for means in ([0.5, 0.4, 0.4], [0.6, 0.5, 0.5, 0.2, 0.1], [0.5, 0.4]):
        false = false_in_blocks(race, means, 400, loss)
        assert binomtest(false, 400, 0.3, "greater").pvalue > 1e-4


def test_a_race_that_does_not_know_of_blocks_fails_in_them(monkeypatch):
    means, plain = [0.6, 0.5, 0.5, 0.2, 0.1], dataclasses.replace(IN_BLOCKS, blocks=False)
    assert "must have blocks=True" in plain.objection("blocks", "Gaussian")
    assert false_in_blocks(plain, means, 200) > 80
    plant(monkeypatch, "plan", ("if race.blocks:", "if not race.blocks:"))  # arms have different counts
    assert false_in_blocks(IN_BLOCKS, means, 200) > 80


def test_in_blocks_the_final_is_by_a_union_over_arms():
    for n_arms, deadline in product((2, 5, 50), (1, 4)):
        race = dataclasses.replace(IN_BLOCKS, deadline=deadline)
        last, share = race.last_count(n_arms), 0.3 / math.sqrt(deadline)
        chances = [norm.sf(0.1 * math.sqrt(count / 2) / 0.5) * (n_arms - 1) for count in (last - 1, last)]
        assert chances[0] > share >= chances[1]
    assert IN_BLOCKS.objection("blocks", "Gaussian") is None
    for wrong in ({"rewards": "bounded"}, {"squares": True}):
        assert dataclasses.replace(IN_BLOCKS, **wrong).objection("blocks")


@pytest.mark.parametrize("model", ["Gaussian", "sub-Gaussian"])
def test_in_blocks_more_pulls_than_can_be_counted_are_refused(model):
    race = StakedElasticBatchRacing(1, 6e-8, 0.05, rewards=model, blocks=True)
    with pytest.raises(ValueError, match=r"2\^63 - 1 pulls of n_arms = 5000 together"):
        next(race.play(5000))  # their sum would be negative


def test_in_blocks_a_long_race_needs_less_than_sharp_racing():
    problem, rules = ebr.Gaussian(ebr.setup_1().means, 0.5), (15, 0.01, 0.01)
    staked = StakedElasticBatchRacing(*rules, rewards="Gaussian", blocks=True)
    pulls = ebr.simulate(staked, problem, 20).pulls
    sharp = ebr.simulate(ebr.SharpElasticBatchRacing(*rules, rewards="Gaussian"), problem, 20).pulls
    assert pulls.mean() < 0.85 * sharp.mean()
