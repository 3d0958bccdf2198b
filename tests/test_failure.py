"""Failure probabilities: against exact values and plain runs, with planted errors; the search; X6.

Random estimates are compared within five of their standard errors, with fixed seeds.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import binom, binomtest, norm

import ebr
from ebr import failure
from ebr.failure import Hard

SHARP = ebr.SharpElasticBatchRacing
COMMON = SHARP(3, 0.2, 0.3, rewards="sub-Gaussian")  # fails often


def errors_off(estimate, exact_log10):
    """How many of its standard errors an estimate is off."""
    assert 0 < estimate.relative_error < 0.25
    return abs(10 ** (estimate.log10 - exact_log10) - 1) / estimate.relative_error


# ---------------------------------------------------------------------------------------------- exact values


def pulls_of(algorithm):
    """Of each of two arms, in the first round."""
    return int(next(algorithm.play(2)).max())


def gaussian_failure(algorithm, means):
    """log10 P(the worse of two arms leads after one round), σ = ½."""
    return norm.logsf(abs(means[0] - means[1]) * math.sqrt(2 * pulls_of(algorithm))) / math.log(10)


@pytest.mark.parametrize("means", [(0.6, 0.499), (0.4, 0.6)])
@pytest.mark.parametrize(
    ("name", "delta"),
    [
        ("sharp", 0.01),
        ("sharp", 0.3),
        ("sharp, Gaussian", 0.01),
        ("EBR", 0.2),
        ("kδER", 0.01),
        ("AE", 0.1),
        ("passive", 0.01),
    ],
)
def test_two_gaussian_arms_and_one_round_fail_as_the_normal_law_says(name, delta, means):
    algorithm = failure.ALGORITHMS[name](1, 0.1, delta)
    exact = gaussian_failure(algorithm, means)
    assert name != "passive" or exact < -48
    estimate = failure.failure(algorithm, ebr.Gaussian(means, 0.5), 2000, seed=1)
    assert errors_off(estimate, exact) < 5


def bernoulli_failure(algorithm, means):
    """log10 P(the worse of two arms is returned after one round): ties go to the first arm."""
    pulls = pulls_of(algorithm)
    sums = np.arange(pulls + 1)
    first, second = (binom.logpmf(sums, pulls, mean) for mean in means)
    worse = sums[:, None] >= sums if means[0] < means[1] else sums[:, None] < sums
    return logsumexp(first[:, None] + second, b=worse) / math.log(10)


@pytest.mark.parametrize(
    "means", [(0.7, 0.35), (0.35, 0.7), (0.5, 0.8), (0.4, 0.1), (0.99, 0.6), (0.3, 0.001)]
)
@pytest.mark.parametrize(("name", "delta"), [("sharp", 0.2), ("sharp, [0, 1]", 0.01), ("EBR", 0.3)])
def test_two_bernoulli_arms_and_one_round_fail_as_binomial_sums_say(name, delta, means):
    algorithm = failure.ALGORITHMS[name](1, 0.29, delta)
    estimate = failure.failure(algorithm, ebr.Bernoulli(means), 4000, seed=1)
    assert errors_off(estimate, bernoulli_failure(algorithm, means)) < 5


@dataclass(frozen=True)
class Stubborn:
    """Recommends one arm whatever happens; where it looks good, a second round asks for more pulls of it."""

    arm: int
    epsilon: float = 0.1

    def play(self, n_arms, replicates=1):
        sums = yield np.full((replicates, n_arms), 20)
        again = np.zeros((replicates, n_arms), dtype=int)
        again[:, self.arm] = np.where(sums[:, self.arm] > 10, 30, 0)
        yield again
        return np.full(replicates, self.arm)


@pytest.mark.parametrize("kind", [ebr.Bernoulli, lambda means: ebr.Gaussian(means, 0.5)])
def test_who_always_returns_a_wrong_arm_fails_with_probability_one_and_a_right_one_never(kind):
    problem = kind([0.5, 0.6, 0.3])
    assert errors_off(failure.failure(Stubborn(2), problem, 5000, seed=1, plain=30), 0.0) < 5
    never = failure.failure(Stubborn(1), problem, 100, seed=1, plain=30)
    assert never[:3] == (-math.inf, 0, 0)
    assert never.interval == (0, 1)


# ------------------------------------------------------------------------------------------------ plain runs


def plain_off(algorithm, problem, runs=2000, plain=20_000):
    """How many standard errors, of both together, an estimate is off the share of plain runs."""
    estimate = failure.failure(algorithm, problem, runs, seed=1)
    wrong = np.flatnonzero(problem.means <= problem.means.max() - algorithm.epsilon)
    share = np.isin(ebr.simulate(algorithm, problem, plain, seed=7).arm, wrong).mean()
    assert share > 0.005
    spread = math.hypot(10**estimate.log10 * estimate.relative_error, math.sqrt(share * (1 - share) / plain))
    return abs(10**estimate.log10 - share) / spread


@pytest.mark.parametrize("model", ["sub-Gaussian", "Gaussian", "bounded"])
@pytest.mark.parametrize(
    "hard",
    [
        Hard(3, 4, 0.6),
        Hard(3, 4, 0.6, 1, 0.9),
        Hard(3, 5, 0.6, 1, 0.8, 1, 0.95),
        Hard(3, 7, 0.6),  # six wrong arms, of which one stands for all
    ],
    ids=lambda hard: str(tuple(hard)),
)
def test_where_failures_are_common_plain_runs_find_as_many(hard, model):
    assert plain_off(SHARP(3, 0.2, 0.3, rewards=model), hard.problem(0.2, model == "Gaussian")) < 5


def test_wrong_arms_of_several_means_add_up():
    assert plain_off(SHARP(2, 0.1, 0.3), ebr.Gaussian([0.5, 0.6, 0.49, 0.5, 0.4], 0.5)) < 5


@pytest.mark.parametrize(
    ("algorithm", "plain"), [(COMMON, 1000), (Stubborn(1), 50), (Stubborn(0), 50)], ids=str
)
def test_the_plain_races_bound_is_clopper_and_pearsons(algorithm, plain):
    problem = Hard(3, 4, 0.6).problem(algorithm.epsilon)
    estimate = failure.failure(algorithm, problem, 10, seed=2, plain=plain)
    arms = ebr.simulate(algorithm, problem, plain, seed=2).arm
    assert (estimate.failures, estimate.runs) == ((arms > 0).sum(), plain)
    two_sided = binomtest(estimate.failures, plain).proportion_ci(0.98, method="exact")
    assert estimate.upper == pytest.approx(two_sided.high, rel=1e-9)


def test_the_interval_is_two_and_a_half_standard_errors():
    low, high = failure.Estimate(-3.0, 0.1, 0, 1, 1.0).interval
    assert (low, high) == pytest.approx((0.7424e-3, 1.2576e-3), rel=1e-4)
    assert failure.Estimate(-3.0, 0.9, 0, 1, 1.0).interval[0] == 0


# --------------------------------------------------------------------------------- weights and planted errors


@pytest.mark.parametrize("top", [0.21, 0.6, 0.99])
@pytest.mark.parametrize("name", ["sharp", "EBR", "kδER", "sequential"])
def test_no_weight_exceeds_the_number_of_tilts(name, top):
    problem = Hard(3, 5, top, 1, 0.3).problem(0.2)
    weights = failure._log_weights(failure.ALGORITHMS[name](3, 0.2, 0.3), problem, 4, 50, 1)
    assert np.isfinite(weights).any()
    assert weights.max() <= math.log(len(weights) / 50) + 1e-9  # 50 races on each tilt
    assert len(weights) / 50 <= 8


right_ratio = failure.log_likelihood_ratio


def without_first(rows, axis=None):
    return logsumexp(rows[1:] if axis == 0 else rows, axis=axis)


@pytest.mark.parametrize(
    ("name", "planted", "seen"),
    [
        ("log_likelihood_ratio", lambda *race: -right_ratio(*race), True),
        ("log_likelihood_ratio", lambda *race: right_ratio(*race) / 2, True),
        ("logsumexp", without_first, True),  # the problem itself is missing in the mixture
        ("MARGINS", (0.0, 0.1), False),  # other tilts are as good
    ],
)
def test_an_error_in_the_weights_would_be_seen(monkeypatch, name, planted, seen):
    monkeypatch.setattr(failure, name, planted)
    estimate = failure.failure(Stubborn(0), ebr.Gaussian([0.5, 0.6, 0.4], 0.5), 10_000, seed=1)
    off = errors_off(estimate._replace(relative_error=0.01), 0.0)
    assert (off > 5) == seen


# ------------------------------------------------------------------------------------------------- the search

SEARCH = {"trials": 40, "runs": 100, "seed": 3, "epsilon": 0.2, "delta": 0.1, "most_arms": 5, "latest": 4}


@pytest.fixture(scope="module")
def searched():
    return failure.search("sharp", **SEARCH)


def test_a_search_is_no_worse_than_the_fixed_problems_and_has_its_worst_first(searched):
    fixed = [Hard(t, n, 0.6) for n in (2, 3, 5) for t in (1, 2, 4)]
    made = {
        place: failure.failure(
            SHARP(place.deadline, 0.2, 0.1, rewards="sub-Gaussian"), place.problem(0.2), 100, 3
        )
        for place in fixed
    }
    assert searched["log10"].iloc[0] >= max(estimate.log10 for estimate in made.values())
    assert searched["log10"].is_monotonic_decreasing
    rows = {failure.place(row): row for _, row in searched.iterrows()}
    assert len(rows) == len(searched)
    assert {place: row["log10"] for place, row in rows.items() if place in made} == {
        place: e.log10 for place, e in made.items()
    }


def test_a_search_is_the_same_every_time_and_another_with_another_seed(searched):
    pd.testing.assert_frame_equal(failure.search("sharp", **SEARCH), searched)
    assert not failure.search("sharp", **SEARCH | {"seed": 4}).equals(searched)


@pytest.mark.parametrize(("name", "latest"), [("sharp", 4), ("sequential", 1), ("passive", 1)])
def test_a_search_stays_below_most_arms_and_latest(searched, name, latest):
    found = (
        searched
        if name == "sharp"
        else failure.search(name, **SEARCH | {"runs": 2, "trials": 20, "epsilon": 0.3})
    )
    assert found["n_arms"].between(2, 12).all()
    assert found["deadline"].between(1, latest).all()
    assert found["deadline"].max() == latest


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3])
def test_every_place_of_the_search_is_a_problem_with_a_wrong_arm(epsilon):
    generator = np.random.default_rng(1)
    place, seen = Hard(1, 2, 0.5 + epsilon / 2), []
    for _ in range(500):
        anywhere = failure._anywhere(generator, epsilon, 30, 5)
        place = failure._near(place, generator, epsilon, 30, 5)
        seen += [anywhere, place]
    for place in seen:
        problem = place.problem(epsilon)
        gaps = problem.means.max() - problem.means
        assert 2 <= place.n_arms == problem.n_arms <= 30
        assert 1 <= place.deadline <= 5
        assert problem.means.min() > 0
        assert problem.means.max() == place.top < 1
        wrong = place.n_arms - 1 - place.first - place.second
        assert (gaps >= epsilon).sum() == wrong >= 1
        assert gaps[~problem.is_good(range(place.n_arms), epsilon)] == pytest.approx(epsilon, rel=1e-5)
        assert min(place.first, place.second) >= 0
    assert {place.n_arms for place in seen} >= set(range(2, 10))
    assert {place.deadline for place in seen} == {1, 2, 3, 4, 5}
    assert {place.first > 0 for place in seen} == {place.second > 0 for place in seen} == {True, False}


# --------------------------------------------------------------------------------------------------------- X6


def test_what_is_paid_has_a_row_for_each_algorithm_and_delta():
    worst = {"sharp": Hard(2, 3, 0.6), "passive": Hard(1, 2, 0.6)}
    table = failure.paid(worst, [0.3, 0.1], runs=50, plain=70, seed=1, epsilon=0.2)
    assert table["algorithm"].tolist() == ["sharp", "sharp", "passive", "passive"]
    assert table["delta"].tolist() == [0.3, 0.1, 0.3, 0.1]
    assert table["n_arms"].tolist() == [3, 3, 2, 2]
    direct = failure.failure(
        SHARP(2, 0.2, 0.1, rewards="sub-Gaussian"), Hard(2, 3, 0.6).problem(0.2), 50, 1, 70
    )
    assert tuple(table.loc[1, list(direct._fields)]) == direct


def made_up(failures, log10=(-3.0, -3.0)):
    return pd.DataFrame(
        {
            "algorithm": ["EBR", "sharp"],
            "delta": [0.01, 0.1],
            "n_arms": [2, 7],
            "deadline": [1, 3],
            "log10": log10,
            "relative_error": [0.1, 0.02],
            "failures": failures,
            "runs": 10_000,
        }
    )


def test_x6_holds_until_the_plain_races_refute_it():
    limit = next(k for k in range(10_000) if binom.sf(k - 1, 10_000, 0.01) < 1e-6 / 2)  # two tests
    assert 140 < limit < 160
    assert failure.x6(made_up([limit - 1, 1000])).holds
    assert not failure.x6(made_up([limit, 1000])).holds
    assert not failure.x6(made_up([0, 1300])).holds
    assert "1 of 2 are refuted by 10000 plain races" in failure.x6(made_up([limit, 1000])).evidence


def test_x6_names_the_algorithm_that_pays_most_of_its_delta():
    said = failure.x6(made_up([0, 0])).evidence
    assert "0.10 ± 0.01 (1 s.e.), for EBR at δ = 0.01, n = 2, T = 1" in said
    said = failure.x6(made_up([0, 0], log10=(-3.0, math.log10(0.05)))).evidence
    assert "0.50 ± 0.01 (1 s.e.), for sharp at δ = 0.1, n = 7, T = 3" in said
