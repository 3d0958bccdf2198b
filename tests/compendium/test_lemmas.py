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


def witness():
    """The staircase's table on E in which the third arm wins."""
    problem, race = adversary.staircase(0.1, 2), ebr.ElasticBatchRacing(2, 0.1, 0.1)
    places = np.array([[[-1.0, 1, 1], [0, -1, 1]]]) * adversary.WITHIN
    return race, problem, adversary.play_inside(race, problem, places)


def test_e_alone_does_not_keep_the_guarantee():
    _, problem, played = witness()
    assert played.arm[0] == 2
    assert problem.means[0] - problem.means[2] >= 0.1


def test_every_true_mean_of_the_witness_lies_in_its_interval():
    race, problem, played = witness()
    table = lemmas.intervals(race, problem, played)
    assert table[["round", "arm"]].to_numpy().tolist() == [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3]]
    assert table["true"].tolist() == problem.means[table["arm"] - 1].tolist()
    assert ((table["lower"] < table["true"]) & (table["true"] < table["upper"])).all()
    assert (table["lower"] + table["upper"]).to_numpy() == pytest.approx(2 * table["mean"])
    # Arm 1 is dropped in round 1: it alone ends below the best lower bound + η.
    first = table[table["round"] == 1]
    dropped = first["upper"] < first["lower"].max() + race.slack(3)
    assert first["arm"][dropped].tolist() == [1]


def test_the_brink_is_one_pull_count_short_of_what_e_needs():
    # 86 σ² log(nT/δ)/Δ² pulls, where four deviations, that is 86.18, are needed.
    problem = adversary.brink(1e-6)
    log_term = math.log(4 / adversary.DELTA)
    pulls = ebr.ElasticBatchRacing(2, 1e-6, adversary.DELTA).pulls_by_round(2)[0]
    assert pulls == pytest.approx(86 * 0.25 * log_term / problem.gaps[0] ** 2, rel=1e-6)


def test_the_printed_rule_drops_every_arm_and_the_corrected_one_keeps_the_leader():
    assert lemmas.empty_race() == 100
    assert lemmas.empty_race(returned_from="last round") == 0


def test_the_term_saves_nothing_where_every_race_ends_in_the_first_round():
    far = {"far": ebr.Bernoulli([1.0, 0.0])}
    saved = lemmas.savings(far, 3, 0.1, 0.1, runs=10, seed=1)
    assert saved.to_dict("records") == [{"problem": "far", "runs": 10, "share": 0.0, "error": 0.0}]


def test_the_share_saved_is_that_of_the_mean_pulls():
    problem, place = ebr.Bernoulli([0.7, 0.6, 0.5]), (6, 0.05, 0.1)
    (row,) = lemmas.savings({"close": problem}, *place, runs=50, seed=1).to_dict("records")
    races = (ebr.ElasticBatchRacing(*place), lemmas.WithoutSlack(*place))
    with_it, without = (ebr.simulate(race, problem, 50, 1).pulls for race in races)
    ratio = sum(with_it) / sum(without)
    assert row["share"] == pytest.approx(1 - ratio)
    # The delta method: Var(X̄/Ȳ) ≈ (X̄/Ȳ)² (Var X/X̄² + Var Y/Ȳ²)/50.
    spread = np.var(with_it, ddof=1) / np.mean(with_it) ** 2 + np.var(without, ddof=1) / np.mean(without) ** 2
    assert row["error"] == pytest.approx(ratio * math.sqrt(spread / 50))
