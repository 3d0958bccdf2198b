"""Estimated failure probabilities, against exact values and plain simulation.

Random estimates are compared within five of their standard errors, with fixed seeds.
"""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from compendium.failure_probability import importance, rare_failures
from compendium.failure_probability.rare_failures import Hard
from oracles import Bare
from scipy.stats import binomtest, norm

import ebr

SHARP = ebr.SharpElasticBatchRacing
COMMON = SHARP(3, 0.2, 0.3, rewards="sub-Gaussian")  # a race that fails often


def errors_off(estimate, exact_log10):
    """The distance of an estimate from the exact value, in its standard errors."""
    assert 0 < estimate.relative_error < 0.25
    return abs(10 ** (estimate.log10 - exact_log10) - 1) / estimate.relative_error


@pytest.mark.parametrize("means", [(0.6, 0.499), (0.4, 0.6)])
@pytest.mark.parametrize(
    ("name", "delta"),
    [("sharp", 0.3), ("sharp, Gaussian", 0.01), ("EBR", 0.2), ("AE", 0.1), ("passive", 0.01)],
)
def test_two_gaussian_arms_and_one_round_fail_as_the_normal_law_says(name, delta, means):
    algorithm = rare_failures.ALGORITHMS[name](1, 0.1, delta)
    pulls = int(next(algorithm.play(2)).max())
    exact = norm.logsf(abs(means[0] - means[1]) * math.sqrt(2 * pulls)) / math.log(10)  # with σ = ½
    assert name != "passive" or exact < -48
    estimate = importance.failure(algorithm, ebr.Gaussian(means, 0.5), 2000, seed=1)
    assert errors_off(estimate, exact) < 5


@dataclass(frozen=True)
class Stubborn(Bare):
    """Always recommends one arm; a second round pulls that arm again if it did well."""

    arm: int
    epsilon: float = 0.1

    def play(self, n_arms, replicates=1, **_):
        sums = yield np.full((replicates, n_arms), 20)
        again = np.zeros((replicates, n_arms), dtype=int)
        again[:, self.arm] = np.where(sums[:, self.arm] > 10, 30, 0)
        yield again
        return np.full(replicates, self.arm)


@pytest.mark.parametrize("kind", [ebr.Bernoulli, lambda means: ebr.Gaussian(means, 0.5)])
def test_always_returning_a_wrong_arm_fails_with_probability_one_and_a_right_one_never(kind):
    problem = kind([0.5, 0.6, 0.3])
    assert errors_off(importance.failure(Stubborn(2), problem, 5000, seed=1, plain=30), 0.0) < 5
    never = importance.failure(Stubborn(1), problem, 100, seed=1, plain=30)
    tilts = 1 + len(importance._tilts(Stubborn(1), problem))  # ν itself counts as one
    assert tilts > 2 * len(importance.MARGINS)  # there are two wrong arms
    assert never[:4] == (-math.inf, 0, tilts * 100, 0)


def plain_off(algorithm, problem, runs=2000, plain=20_000):
    """The distance of an estimate from the share of plain runs, in standard errors of the difference."""
    estimate = importance.failure(algorithm, problem, runs, seed=1)
    wrong = np.flatnonzero(problem.means <= problem.means.max() - algorithm.epsilon)
    share = np.isin(ebr.simulate(algorithm, problem, plain, seed=7).arm, wrong).mean()
    assert share > 0.005
    spread = math.hypot(10**estimate.log10 * estimate.relative_error, math.sqrt(share * (1 - share) / plain))
    return abs(10**estimate.log10 - share) / spread


@pytest.mark.parametrize("model", ["sub-Gaussian", "Gaussian", "bounded"])
@pytest.mark.parametrize(
    "hard",
    [
        Hard(3, 4, 0.2, 0.6),
        Hard(3, 4, 0.2, 0.6, 1, 0.9),
        Hard(3, 5, 0.2, 0.6, 1, 0.8, 1, 0.95),
        Hard(3, 7, 0.2, 0.6),  # six equal wrong arms share one tilt
    ],
    ids=lambda hard: str(tuple(hard)),
)
def test_where_failures_are_common_plain_runs_find_as_many(hard, model):
    assert plain_off(SHARP(3, 0.2, 0.3, rewards=model), hard.problem(model == "Gaussian")) < 5


def test_wrong_arms_of_several_means_add_up():
    assert plain_off(SHARP(2, 0.1, 0.3), ebr.Gaussian([0.5, 0.6, 0.49, 0.5, 0.4], 0.5)) < 5


@pytest.mark.parametrize(
    ("algorithm", "plain"), [(COMMON, 1000), (Stubborn(1), 50), (Stubborn(3), 50)], ids=str
)
def test_the_plain_races_bound_is_clopper_and_pearsons(algorithm, plain):
    problem = Hard(3, 4, algorithm.epsilon, 0.6).problem()
    estimate = importance.failure(algorithm, problem, 10, seed=2, plain=plain)
    arms = ebr.simulate(algorithm, problem, plain, seed=2).arm
    assert (estimate.failures, estimate.runs) == ((arms != 3).sum(), plain)  # the best arm is the last
    two_sided = binomtest(estimate.failures, plain).proportion_ci(0.98, method="exact")
    assert estimate.upper == pytest.approx(two_sided.high, rel=1e-9)


@pytest.mark.parametrize("kind", [ebr.Bernoulli, lambda means: ebr.Gaussian(means, 0.5)])
def test_a_tilts_ratio_is_the_mean_over_its_leaders_of_the_rewards_likelihoods(kind):
    problem, rng = kind([0.5, 0.6, 0.5, 0.4]), np.random.default_rng(1)
    tilt = importance.Tilt(np.array([0.5, 0.52, 0.5, 0.4]), 0.58, np.array([0, 2]), 0)
    pulls = rng.integers(1, 20, (4, 5))
    sums = rng.binomial(pulls, 0.5).astype(float)
    found = importance._log_ratio(tilt, problem, pulls, sums)
    for race in range(5):
        ratios = []
        for leader in tilt.group:
            means = tilt.base.copy()
            means[leader] = tilt.lead
            ratios.append(
                math.prod(
                    likelihood(problem, means[arm], pulls[arm, race], sums[arm, race])
                    / likelihood(problem, problem.means[arm], pulls[arm, race], sums[arm, race])
                    for arm in range(4)
                )
            )
        assert math.exp(found[race]) == pytest.approx(sum(ratios) / 2, rel=1e-9)


def likelihood(problem, mean, pulls, total):
    """The likelihood of one arm's rewards, up to a factor that does not depend on the mean."""
    if isinstance(problem, ebr.Bernoulli):
        return mean**total * (1 - mean) ** (pulls - total)
    return norm.pdf(total, pulls * mean, problem.sigma * math.sqrt(pulls))


@pytest.mark.parametrize("top", [0.21, 0.6, 0.99])
@pytest.mark.parametrize("name", ["sharp", "EBR", "kδER", "sequential"])
def test_no_weight_exceeds_the_number_of_tilts(name, top):
    problem = Hard(3, 5, 0.2, top, 1, 0.3).problem()
    algorithm = rare_failures.ALGORITHMS[name](3, 0.2, 0.3)
    tilts = importance._tilts(algorithm, problem)
    weights = importance._log_weights(algorithm, problem, tilts, 50, 1)
    assert weights.shape == (1 + len(tilts), 50)
    assert np.isfinite(weights).any()
    assert np.max(weights) <= math.log(1 + len(tilts)) + 1e-9
    assert len(tilts) <= len(importance.MARGINS) + 2 * importance.MOST_REACHES


@pytest.mark.parametrize("name", ["EBR", "sharp", "sharp, Gaussian"])
@pytest.mark.parametrize("n_arms", [2, 5])
def test_each_round_has_a_tilt_whose_lead_just_reaches_its_width(name, n_arms):
    algorithm = rare_failures.ALGORITHMS[name](4, 0.001, 0.01)
    problem = Hard(4, n_arms, 0.001, 0.5).centred().problem(gaussian=True)
    tilts = importance._reaching(algorithm, problem, np.arange(n_arms - 1))  # the best arm is the last
    assert [tilt.until for tilt in tilts] == [1, 2, 3, 4]
    pulls = algorithm.pulls_by_round(n_arms, *(["Gaussian"] if name != "EBR" else []))
    for tilt, count, t in zip(tilts[:3], pulls, range(3), strict=False):
        if name == "EBR":
            reach = 2 * algorithm.deviation(count, n_arms) - algorithm.slack(n_arms)
        else:  # two arms: the race ends as the leader is certified
            reach = algorithm.width(count, algorithm.log_terms(n_arms, "Gaussian")[t])
            reach -= algorithm.epsilon if n_arms == 2 else 0
        lead = tilt.lead - tilt.base[-1]
        assert reach < lead < 1.05 * reach + 2e-4
        # The other means stay where they were, equal to the leader's before it was raised.
        assert tilt.base[:-1].tolist() == problem.means[:-1].tolist()


@pytest.mark.parametrize("top", [0.05, 0.5, 0.9999])
def test_gaussian_tilts_keep_their_lead_at_the_edge(top):
    problem = ebr.Gaussian([top, top - 0.04], 0.5)
    margins = np.array([-0.5, 1.0, 10.0, 25.0])
    base, lead = importance._leading(problem, np.array([1]), margins)
    assert lead - base[:, 0] == pytest.approx(margins * 0.04, rel=1e-9)


def test_after_a_tilts_last_round_rewards_are_the_problems_own():
    algorithm, problem = COMMON, ebr.Gaussian([0.5, 0.3], 0.5)
    (early, *_) = importance._reaching(algorithm, problem, np.array([1]))
    assert early.until == 1
    tilted = early.means()
    drawn = importance._drawing(
        problem, np.array([tilted, tilted]), np.array([1, 0]), np.random.default_rng(1)
    )
    first, second = (drawn(number, np.full((2, 2), 10**10)) / 10**10 for number in (1, 2))
    assert first == pytest.approx(np.array([tilted, tilted]), abs=1e-4)
    assert second == pytest.approx(np.array([problem.means, tilted]), abs=1e-4)  # 0: tilted in all rounds


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("hard", [Hard(2, 3, 0.01, 0.505), Hard(2, 4, 0.01, 0.505, 2, 0.9)], ids=str)
def test_early_drops_of_the_best_arm_are_counted_as_failures(hard, gaussian):
    # EBR with intervals so narrow that it often fails, and always in its first round.
    class Hasty(ebr.ElasticBatchRacing):
        def deviation(self, pulls, n_arms):
            return 0.25 * super().deviation(pulls, n_arms)

    algorithm = Hasty(2, 0.01, 0.3)
    assert plain_off(algorithm, hard.problem(gaussian), runs=2000, plain=100_000) < 5
