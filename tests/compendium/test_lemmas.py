"""The repaired theorem on arbitrary tables inside E′, and the numbers that the checks rest on."""

import math

import numpy as np
import pytest
from compendium import adversary, lemmas
from hypothesis import given, settings
from hypothesis import strategies as st

import ebr
from ebr.theory import bounds
from ebr.theory.confidence import fixed_count_ratio
from ebr.theory.problems import Gaussian


@st.composite
def tables_inside(draw):
    """A problem, an algorithm and 200 tables of places in [−1, 1]; σ at times so small that ceilings bite."""
    n_arms, deadline = draw(st.integers(2, 6)), draw(st.integers(1, 8))
    epsilon, delta = draw(st.floats(0.01, 0.6)), draw(st.floats(0.01, 0.95))
    sigma = draw(st.sampled_from([0.5, 1.0, 0.05, 0.01, 0.002]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    # Gaps in units of ε, many of them where a loss of η or of ε matters.
    critical = [0, 0.999 / min(n_arms, deadline), 0.5, 1.0, 1.0001]
    anywhere = generator.uniform(0, 1 / epsilon, n_arms - 1)
    gaps = np.where(generator.random(n_arms - 1) < 0.7, generator.choice(critical, n_arms - 1), anywhere)
    problem = Gaussian(1 - np.minimum(epsilon * np.append(0, gaps), 1), sigma)
    places = generator.uniform(-1.5, 1.5, (200, deadline, n_arms)).clip(-1, 1) * (1 - 1e-9)
    return problem, ebr.ElasticBatchRacing(deadline, epsilon, delta, sigma), places


@settings(max_examples=400, deadline=None)
@given(tables_inside())
def test_on_the_narrow_event_the_guarantee_and_theorem_1_hold_arm_by_arm(drawn):
    problem, algorithm, places = drawn
    ratio = fixed_count_ratio(problem.n_arms, algorithm.deadline, algorithm.delta)
    played = adversary.play_inside(algorithm, problem, places * ratio)
    assert problem.is_good(played.arm, algorithm.epsilon).all()
    allowed = np.ceil(bounds.schedule(problem, algorithm.epsilon, algorithm.deadline, algorithm.delta))
    gamma = problem.partition(algorithm.epsilon, algorithm.deadline)
    assert (played.arm_pulls <= allowed[gamma - 1]).all()


@settings(max_examples=200, deadline=None)
@given(tables_inside())
def test_on_e_the_best_arm_is_never_dropped_without_the_slack(drawn):
    problem, algorithm, places = drawn
    without = lemmas.WithoutSlack(algorithm.deadline, algorithm.epsilon, algorithm.delta, algorithm.sigma)
    played = adversary.play_inside(without, problem, places)
    best = problem.means == problem.means.max()
    for stage in played.rounds:
        playing = stage.alive.any(axis=1)
        assert (stage.kept & best).any(axis=1)[playing].all()
    assert problem.is_good(played.arm, algorithm.epsilon).all()


def test_e_alone_does_not_keep_the_guarantee():
    problem = lemmas.staircase(0.1, 2)
    played = adversary.play_inside(
        ebr.ElasticBatchRacing(2, 0.1, 0.1), problem, np.array([[[-1.0, 1, 1], [0, -1, 1]]]) * (1 - 1e-9)
    )
    assert played.arm[0] == 2
    assert problem.means[0] - problem.means[2] >= 0.1


def test_the_brink_is_one_pull_count_short_of_what_e_needs():
    # 86 σ² log(nT/δ)/Δ² pulls, where four deviations, that is 86.18, are needed.
    problem = lemmas.brink(1e-6)
    log_term = math.log(4 / lemmas.DELTA)
    pulls = ebr.ElasticBatchRacing(2, 1e-6, lemmas.DELTA).pulls_by_round(2)[0]
    assert pulls == pytest.approx(86 * 0.25 * log_term / problem.gaps[0] ** 2, rel=1e-6)


def test_the_share_saved_and_its_standard_error_by_hand():
    # Two arms far apart: every race, with slack or without, ends after the first round.
    far = {"far": ebr.Bernoulli([1.0, 0.0])}
    assert lemmas.savings(far, 3, 0.1, 0.1, runs=10, seed=1) == {"far": (0.0, 0.0)}
