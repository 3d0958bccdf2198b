"""Sharp EBR by the joint law of its looks: against the union, normal integrals, and drawn races."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from compendium.shared.joint_race import SharpElasticBatchRacing
from scipy.stats import multivariate_normal

SHARP = SharpElasticBatchRacing


@pytest.mark.parametrize("split", ["late", "equal"])
@pytest.mark.parametrize("deadline", [1, 2, 15])
@pytest.mark.parametrize("n_arms", [2, 5, 100])
def test_gaussian_counts_and_widths_are_never_above_the_unions(n_arms, deadline, split):
    for epsilon, delta in product((0.01, 0.1, 0.4), (1e-9, 0.01, 0.3)):
        parameters = (deadline, epsilon, delta, 0.5, "Gaussian", 0.5, split)
        joint = SHARP(*parameters)
        union = replace(joint, looks="union")
        pulls, others = joint.pulls_by_round(n_arms), union.pulls_by_round(n_arms)
        assert ((pulls <= others) | (pulls == pulls[-1])).all()
        assert pulls[-1] <= others[-1]
        if delta >= 0.01 and others[-1] >= 100:  # otherwise the gain may be less than one pull
            assert (pulls[-1] < others[-1]) == (n_arms > 2 or deadline > 1)
        fresh = (np.diff(pulls, prepend=0) > 0) & (pulls == others)
        assert (joint.log_terms(n_arms) <= union.log_terms(n_arms) * (1 + 1e-8))[fresh].all()
        widths = joint.width(pulls, joint.log_terms(n_arms))
        assert widths[-1] <= epsilon * (1 + 1e-9)
        assert (widths <= joint.widths() * (1 + 1e-9))[np.diff(pulls, prepend=0) > 0].all()


def test_a_gap_is_held_against_the_least_width_of_the_looks_made_so_far():
    race = SHARP(30, 0.1, 0.1, 0.2, "Gaussian")
    made = race.width(race.pulls_by_round(2), race.log_terms(2))
    assert (np.diff(made) > 1e-3).any()  # a look may be wider than the one before
    assert race.deciding_widths(2).tolist() == [made[: t + 1].min() for t in range(30)]


def test_the_gaussian_schedule_by_normal_integrals():
    # n = 3, T = 2, ε = 0.1, δ = 0.05, σ = ½ as in test_sharp's schedule by hand. At one look the two
    # differences have correlation ½. The first look spends δ_1 exactly, both looks together nearly δ. The
    # integrals have two and four dimensions.
    algorithm = SHARP(2, 0.1, 0.05, rewards="Gaussian")
    pulls, z = algorithm.pulls_by_round(3), np.sqrt(2 * algorithm.log_terms(3))
    arms = np.array([[1, 0.5], [0.5, 1]])
    first = 1 - multivariate_normal.cdf([z[0]] * 2, cov=arms)
    assert first == pytest.approx(algorithm.shares()[0], rel=1e-6)
    assert pulls[0] == 58 == math.floor(z[0] ** 2 / 2 / 0.05) + 1
    kept = math.sqrt(pulls[0] / pulls[1])
    both = np.kron([[1, kept], [kept, 1]], arms)
    stay = multivariate_normal.cdf(np.repeat(z, 2), cov=both, abseps=1e-8, maxpts=10**6)
    assert 0.0485 < 1 - stay <= 0.05 + 1e-6
    assert z[1] <= 0.1 * math.sqrt(2 * pulls[1]) < z[1] + 0.01  # w̄ just below ε
    noisy = SHARP(2, 0.1, 0.05, sigma=1, rewards="Gaussian").pulls_by_round(3)
    assert noisy / 4 == pytest.approx(pulls, abs=1.3)  # 4σ² times as many, up to rounding
