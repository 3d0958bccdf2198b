"""Likelihood ratios of a race's rewards, against products over single rewards."""

import math

import numpy as np
import pytest
from compendium.shared.likelihood import gaussian_kl, log_likelihood_ratio
from scipy.integrate import quad
from scipy.stats import bernoulli, norm

import ebr


def test_the_gaussian_divergence_is_the_integral_over_the_density():
    sigma, here, there = 0.3, [0.2, 0.5, 0.9], [0.6, 0.5, 0.7]
    found = gaussian_kl(ebr.Gaussian(here, sigma), ebr.Gaussian(there, sigma))
    for divergence, mean, other in zip(found, here, there, strict=True):
        p, q = norm(mean, sigma), norm(other, sigma)
        expected, _ = quad(lambda x, p=p, q=q: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -3, 4)
        assert divergence == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "law"),
    [(ebr.Bernoulli, bernoulli), (lambda means: ebr.Gaussian(means, 0.7), lambda mean: norm(mean, 0.7))],
)
def test_the_likelihood_ratio_is_the_product_over_single_rewards(make, law):
    generator = np.random.default_rng(11)
    here, there = np.array([0.2, 0.5, 1.0, 0.0]), np.array([0.6, 0.5, 0.8, 0.3])
    pulls, sums, expected = generator.integers(0, 30, (20, 4)), np.zeros((20, 4)), np.zeros(20)
    for run, arm in np.ndindex(20, 4):
        one, other = law(here[arm]), law(there[arm])
        rewards = one.rvs(pulls[run, arm], random_state=generator)
        sums[run, arm] = rewards.sum()
        log = "logpmf" if make is ebr.Bernoulli else "logpdf"
        expected[run] += (getattr(one, log)(rewards) - getattr(other, log)(rewards)).sum()
    found = log_likelihood_ratio(make(here), make(there), pulls, sums)
    assert found == pytest.approx(expected, abs=1e-10)


def test_a_reward_that_the_other_problem_rules_out_is_certain():
    found = log_likelihood_ratio(ebr.Bernoulli([0.5, 0.5]), ebr.Bernoulli([0, 0.5]), *np.ones((2, 1, 2)))
    assert found.tolist() == [math.inf]
