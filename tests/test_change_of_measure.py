"""Divergences against densities, likelihood ratios against single rewards, the lemma with a wrong sign."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import ebr
from ebr.baselines import Passive
from ebr.change_of_measure import c16, close_pair, identities
from ebr.divergence import bernoulli_kl, binary_entropy, gaussian_kl, log_likelihood_ratio

EBR, PASSIVE = ebr.ElasticBatchRacing(2, 0.4, 0.2), Passive(0.4, 0.2)


@pytest.mark.parametrize(("x", "y"), [(0.5, 0.25), (0.1, 0.9), (2 / 3, 1e-9), (3 / 32, 1 / 32)])
def test_the_binary_entropy_by_hand(x, y):
    expected = x * math.log(x / y) + (1 - x) * math.log((1 - x) / (1 - y))
    assert bernoulli_kl(x, y) == pytest.approx(expected, rel=1e-12)
    assert binary_entropy([x, 0, 1], y) == pytest.approx([expected, -math.log1p(-y), -math.log(y)])


def test_the_binary_entropy_at_its_ends():
    assert binary_entropy([0, 1, 0.3, 0, 1, 0.5], [0, 1, 0.3, 1, 0, 0]).tolist() == [0] * 3 + [math.inf] * 3


def test_the_gaussian_divergence_is_the_integral_over_the_density():
    sigma, here, there = 0.3, [0.2, 0.5, 0.9], [0.6, 0.5, 0.7]
    found = gaussian_kl(ebr.Gaussian(here, sigma), ebr.Gaussian(there, sigma))
    for kl, mean, other in zip(found, here, there, strict=True):
        p, q = norm(mean, sigma), norm(other, sigma)
        expected, _ = quad(lambda x, p=p, q=q: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -3, 4)
        assert kl == pytest.approx(expected, abs=1e-9)


def test_the_likelihood_ratio_is_the_product_over_single_rewards():
    generator, sigma = np.random.default_rng(11), 0.7
    here, there = np.array([0.2, 0.5, 0.9]), np.array([0.6, 0.5, 0.8])
    pulls, sums, expected = generator.integers(0, 30, (20, 3)), np.zeros((20, 3)), np.zeros(20)
    for run, arm in np.ndindex(20, 3):
        rewards = generator.normal(here[arm], sigma, pulls[run, arm])
        sums[run, arm] = rewards.sum()
        logs = [norm.logpdf(rewards, means[arm], sigma).sum() for means in (here, there)]
        expected[run] += logs[0] - logs[1]
    pair = ebr.Gaussian(here, sigma), ebr.Gaussian(there, sigma)
    assert log_likelihood_ratio(*pair, pulls, sums) == pytest.approx(expected, abs=1e-10)


@dataclass
class Diary:  # pulls the same in every run, whatever comes back, and keeps what it is sent
    rounds: tuple
    epsilon: float = 0.1

    def play(self, n_arms, replicates=1):
        self.sent = np.zeros((replicates, n_arms))
        for pulls in self.rounds:
            self.sent += yield np.tile(pulls, (replicates, 1))
        return self.sent.argmax(axis=1)


@pytest.mark.parametrize("problem", [ebr.Gaussian([0.5, 0.3, 0.9], 2.0), ebr.Bernoulli([0.5, 0.3, 0.9])])
def test_a_simulation_keeps_every_arms_pulls_and_rewards(problem):
    diary = Diary(([3, 0, 4], [1, 2, 0]))
    result = ebr.simulate(diary, problem, runs=7, seed=12, per_arm=True)
    pulls, sums = result.by_arm()
    assert (pulls.tolist(), sums.tolist()) == ([[4, 2, 4]] * 7, diary.sent.tolist())
    assert (result.pulls.tolist(), result.arm.tolist()) == ([10] * 7, sums.argmax(axis=1).tolist())
    with pytest.raises(ValueError, match="per_arm=True"):
        ebr.simulate(diary, problem, runs=7, seed=12).by_arm()


def test_the_rewards_kept_are_those_of_the_trace():
    problem = ebr.Gaussian([0.9, 0.9, 0.1], 0.5)
    pulls, sums = ebr.simulate(EBR, problem, runs=1, seed=13, per_arm=True).by_arm()
    last = ebr.trace(EBR, problem, seed=13).groupby("arm").last()
    assert pulls[0].tolist() == last["pulls"].tolist()
    assert sums[0] == pytest.approx(last["pulls"] * last["mean"], rel=1e-12)
    assert pulls[0, 0] == pulls[0, 1] > pulls[0, 2] > 0


@pytest.mark.parametrize("race", [EBR, PASSIVE])
def test_the_close_pair_is_half_a_nat_apart(race):
    equal, raised = close_pair(race, 3, 0.5, seed=14)
    assert (equal.means.tolist(), raised.means[1:].tolist()) == ([0.5] * 3, [0.5] * 2)
    pulls, sums = ebr.simulate(race, equal, 20_000, seed=15, per_arm=True).by_arm()
    # L has mean ½ and variance 1. The mean of 20,000 is off by 0.04 with 2e-8; the pair's own 200 runs, whose
    # pulls vary by a tenth, move it by 0.04 with less than 1e-20.
    assert log_likelihood_ratio(equal, raised, pulls, sums).mean() == pytest.approx(0.5, abs=0.08)


def test_the_identities_hold_and_a_ratio_upside_down_is_refuted():
    pairs = {race: close_pair(race, 3, 0.5, seed=16) for race in (EBR, PASSIVE)}
    for sign in (1, -1):
        tables = {repr(race): identities(race, *pair, 4000, 17, sign) for race, pair in pairs.items()}
        assert c16(tables).holds == (sign == 1)  # a true lemma is refuted with probability at most 1e-6


def test_both_sides_of_the_identities_by_hand():
    # One pull of two arms, σ = ½, the first raised by 0.2: KL = 0.2²/(2/4) = 0.08, and L ~ N(0.08, 0.4²).
    pair = ebr.Gaussian([0.5, 0.5], 0.5), ebr.Gaussian([0.7, 0.5], 0.5)
    table = identities(Diary(([1, 1],)), *pair, 20_000, seed=18)
    raised = norm.cdf(0.2 / math.sqrt(0.5))
    left = [0.08, 1, raised, 2, 0.08]
    right = [*left[:4], 0.5 * math.log(0.25 / raised / (1 - raised))]  # d(½, P′)
    tolerance = 5.5 * table["error"].clip(lower=0.4 / math.sqrt(20_000))  # six random numbers: 2.3e-7 in all
    assert (abs(table["left"] - left) < tolerance).all()
    assert (abs(table["right"] - right) < tolerance).all()


def test_what_cannot_be_compared_is_an_error_and_never_counts_as_fulfilled():
    with pytest.raises(ValueError, match=r"other must have the problem's sigma, 0\.5, got 1\.0"):
        gaussian_kl(ebr.Gaussian([0.5, 0.5], 0.5), ebr.Gaussian([0.5, 0.5], 1.0))
    apart = ebr.Gaussian([0.9, 0.1], 0.5), ebr.Gaussian([0.9, 0.2], 0.5)
    with pytest.raises(ValueError, match=r"arm 1 recommended at times, got shares 1\.0"):
        identities(ebr.Passive(0.4, 0.2), *apart, 100, 1)
    unknown = pd.DataFrame([("?", 1.0, 1.0, float("nan"), "equal"), ("?", 1.0, 1.0, 0.1, "at least")])
    unknown.columns = ["statement", "left", "right", "error", "relation"]
    assert not c16({"race": unknown}).holds
