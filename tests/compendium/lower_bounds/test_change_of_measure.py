"""The change of measure: the identities by hand, the pair of problems, and the standard errors."""

import math

import numpy as np
import pandas as pd
import pytest
from compendium.lower_bounds.change_of_measure import (
    _information_bound,
    change_of_measure,
    close_pair,
    identities,
    joined,
)
from compendium.shared.distributions import bernoulli_kl
from compendium.shared.likelihood import log_likelihood_ratio
from oracles import Diary
from scipy.stats import norm

import ebr
from ebr.algorithms.baselines import Passive

EBR, PASSIVE = ebr.ElasticBatchRacing(2, 0.4, 0.2), Passive(0.4, 0.2)


@pytest.mark.parametrize("race", [EBR, PASSIVE])
def test_the_close_pair_is_half_a_nat_apart(race):
    equal, raised = close_pair(race, 3, 0.5, seed=14)
    assert (equal.means.tolist(), raised.means[1:].tolist()) == ([0.5] * 3, [0.5] * 2)
    found = ebr.simulate(race, equal, 20_000, seed=15, per_arm=True)
    # L has mean ½ and variance 1. A mean of 20,000 is 0.04 off with probability 2e-8. The pair is made from
    # 200 runs, whose pulls vary by a tenth; they move it by 0.04 with probability below 1e-20.
    assert log_likelihood_ratio(equal, raised, found.arm_pulls, found.arm_sums).mean() == pytest.approx(
        0.5, abs=0.08
    )


def test_both_sides_of_the_identities_by_hand():
    # One pull of two arms, σ = ½, the first raised by 0.2: KL = 0.2²/(2/4) = 0.08, and L ~ N(0.08, 0.4²).
    pair = ebr.Gaussian([0.5, 0.5], 0.5), ebr.Gaussian([0.7, 0.5], 0.5)
    table = identities(Diary(([1, 1],)), *pair, 20_000, seed=18)
    raised = norm.cdf(0.2 / math.sqrt(0.5))
    left = [0.08, 1, raised, 2, 0.08]
    right = [*left[:4], 0.5 * math.log(0.25 / raised / (1 - raised))]  # d(½, P′)
    tolerance = 5.5 * table["error"].clip(lower=0.4 / math.sqrt(20_000))  # six numbers fail with 2.3e-7
    assert (abs(table["left"] - left) < tolerance).all()
    assert (abs(table["right"] - right) < tolerance).all()


def test_the_error_of_the_divergence_is_that_of_both_probabilities():
    here, there = np.arange(1000) < 300, np.arange(1000) < 450
    *_, error, _ = _information_bound(np.full(1000, 0.1), here, there, bernoulli_kl)
    p, q, h = 0.3, 0.45, 1e-6
    slope_p = (bernoulli_kl(p + h, q) - bernoulli_kl(p - h, q)) / (2 * h)
    slope_q = (bernoulli_kl(p, q + h) - bernoulli_kl(p, q - h)) / (2 * h)
    variance = slope_p**2 * p * (1 - p) / 999 + slope_q**2 * q * (1 - q) / 999
    assert error == pytest.approx(math.sqrt(variance), rel=1e-6)


def test_an_error_that_is_no_number_never_counts_as_fulfilled():
    unknown = pd.DataFrame([("?", 1.0, 1.0, float("nan"), "equal"), ("?", 1.0, 1.0, 0.1, "at least")])
    unknown.columns = ["statement", "left", "right", "error", "relation"]
    finding = change_of_measure(joined({("race", 2): unknown.assign(runs=1)}))
    assert not finding.holds
    assert finding.evidence[0].value == 1
