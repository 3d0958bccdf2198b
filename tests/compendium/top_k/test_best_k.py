"""Notebook 14's rivals, cases and checks, each against an oracle of its own."""

import math

import numpy as np
import pandas as pd
import pytest
from compendium.shared import problem_sets
from compendium.sharp_racing.sharp_adversary import inside
from compendium.top_k import best_k, joint_verification, top_k_cases, top_k_rivals
from oracles import Rewards, overheard, play
from scipy.stats import binom

import ebr
from ebr.theory.confidence import half_width


def sequential_top_k(rewards, k, epsilon, delta):
    """One race, sweep by sweep and decision by decision: pulls per arm and the accepted arms."""
    n, period = len(rewards), len(rewards[0])
    undecided, accepted, pulls, sweeps = set(range(n)), set(), [0] * n, 0
    while True:
        sweeps += 1
        for i in undecided:
            pulls[i] += 1
        times, rest = divmod(sweeps, period)
        mean = {i: (times * sum(rewards[i]) + sum(rewards[i][:rest])) / sweeps for i in undecided}
        width = 2 * math.sqrt(math.log(math.log2(2 * sweeps) / math.sqrt(delta / (6 * n))) / sweeps)
        ranked = sorted(undecided, key=lambda i: (-mean[i], i))
        chosen, others = ranked[: k - len(accepted)], ranked[k - len(accepted) :]
        last, following = mean[chosen[-1]], mean[others[0]]
        if last - following >= 2 * width - epsilon:
            return pulls, sorted(accepted | set(chosen))
        reach = max(2 * width - epsilon / n, 0)
        accepted |= {i for i in chosen if mean[i] - following > reach}
        undecided -= accepted | {i for i in others if last - mean[i] > reach}


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_oracle_without_patience_decides_sweep_by_sweep(k):
    generator = np.random.default_rng(k)
    table = (generator.random((3, 5, 997)) < np.array([[0.9], [0.7], [0.5], [0.3], [0.1]])).astype(int)
    algorithm = top_k_rivals.SequentialTopK(0.6, 0.2, k, patience=0)
    asked, arms = play(algorithm, Rewards(table), rewards="bounded")
    for replicate, rewards in enumerate(table.tolist()):
        pulls, expected = sequential_top_k(rewards, k, 0.6, 0.2)
        assert np.sum(asked, axis=0)[replicate].tolist() == pulls
        assert arms[replicate].ravel().tolist() == expected


def test_patience_costs_no_more_than_its_share():
    problem, runs = ebr.setup_1(20), 200
    hasty, patient = (
        ebr.simulate(top_k_rivals.SequentialTopK(0.1, 0.1, 5, patience=p), problem, runs, 1).pulls
        for p in (0.0, 0.005)
    )
    error = math.hypot(hasty.std(), patient.std()) / math.sqrt(runs)
    assert abs(patient.mean() / hasty.mean() - 1.0025) < 0.0025 + 6 * error / hasty.mean()  # chance: 10^−8


@pytest.mark.parametrize("rewards", ["sub-Gaussian", "bounded"])
def test_one_round_fails_exactly_as_often_as_the_worst_arm_gets_in(rewards):
    algorithm = ebr.SharpElasticBatchRacing(1, 0.375, 0.3, rewards=rewards, k=2)
    (pulls,) = algorithm.pulls_by_round(3)
    sums = np.arange(pulls + 1)
    bad, good = (binom.pmf(sums, pulls, mean) for mean in (0.3125, 0.6875))
    # Arm 0 is the bad one, and it wins ties, so it is accepted unless it is below both others.
    below = 1 - np.cumsum(good)
    exact = 1 - float(bad @ below**2)
    found = top_k_cases.exact_failure(algorithm, ebr.Bernoulli([0.3125, 0.6875, 0.6875]))
    assert found == pytest.approx(exact, rel=1e-9)


def test_two_rounds_fail_as_often_as_simulated():
    problem, runs = ebr.Bernoulli([0.3125, 0.6875, 0.6875]), 40_000
    algorithm = ebr.SharpElasticBatchRacing(2, 0.375, 0.3, rewards="sub-Gaussian", k=2)
    exact = top_k_cases.exact_failure(algorithm, problem)
    found = np.mean(~ebr.simulate(algorithm, problem, runs, seed=4).correct(0.375))
    assert abs(found - exact) < 6 * math.sqrt(exact / runs)  # chance: 10^−8


def heard(algorithm, adversary, problem):
    """A race on the adversary's tables, round by round: pulls so far, means, and which arms were pulled."""
    rounds, counts, sums = [], np.zeros((50, problem.n_arms)), np.zeros((50, problem.n_arms))

    def hear(pulls, new):
        counts[:], sums[:] = counts + pulls, sums + new
        rounds.append((int(counts.max()), sums / counts, pulls > 0))

    class Overheard(type(algorithm)):
        def play(self, n_arms, replicates=1, **known):
            return overheard(super().play(n_arms, replicates, **known), hear)

    adversary(Overheard(**vars(algorithm)), problem, 50, 1)
    return rounds


PROBLEM = ebr.Bernoulli([0.9, 0.3, 0.6, 0.55, 0.5])


def test_the_adversary_stays_inside_the_event_of_algorithm_1():
    algorithm = ebr.ElasticBatchRacing(3, 0.1, 0.1, k=2)
    for pulled, means, played in heard(algorithm, top_k_cases.covered, PROBLEM):
        noise = means - PROBLEM.means
        assert np.abs(noise)[played].max() <= half_width("Hoeffding", pulled, 0.1 / 15, 0.5)
        misled = np.where([True, False, True, False, False], noise < 0, noise > 0) | ~played
        assert misled.all(axis=1).mean() > 1 / 6  # half are meant to; so few of 50 with 10^−7


def test_an_arm_at_a_bins_edge_is_allowed_the_pulls_of_the_easier_bin():
    class Late(ebr.ElasticBatchRacing):
        """Pulls all arms b_T times at once."""

        def pulls_by_round(self, n_arms, rewards=None):
            return np.full(self.deadline, super().pulls_by_round(n_arms, rewards)[-1])

    problem = ebr.Bernoulli([0.25, 0.75])  # a gap of ½ = ε^{1/2}: at most b_1 pulls
    case = top_k_cases.Case(problem_sets.Instance("edge", problem, 0.25, 2, 0.1), 1)
    table = top_k_cases.elastic_table([case], 10, 5, 1, Late)
    assert table[["late_inside", "late"]].to_numpy().tolist() == [[10, 5]]


@pytest.mark.parametrize("rewards", ["sub-Gaussian", "bounded"])
def test_the_adversary_stays_inside_the_event_of_sharp_ebr(rewards):
    algorithm = ebr.SharpElasticBatchRacing(3, 0.1, 0.1, rewards=rewards, k=2)
    for (pulled, means, played), L in zip(
        heard(algorithm, inside, PROBLEM), algorithm.log_terms(5), strict=False
    ):
        noise = means - PROBLEM.means
        least = np.where(played, noise, np.inf)[:, [0, 2]].min(axis=1)  # the two best arms
        most = np.where(played, noise, -np.inf)[:, [1, 3, 4]].max(axis=1)
        assert (most - least).max() <= math.sqrt(L / pulled)  # 2σ √(L/b)


def test_cases_have_a_k_below_the_number_of_arms_and_slippage_its_gap():
    chosen = top_k_cases.cases(problem_sets.random_problems(20, 1), 1)
    assert all(1 <= k < case.problem.n_arms for case, k in chosen)
    (kind, problem, epsilon, *_), k = top_k_cases.slippage(6, 2, 0.125, 3, 0.1)
    assert (kind, epsilon, k) == ("slippage", 0.125, 2)
    assert problem.is_good(range(6), epsilon, k).tolist() == [False] * 4 + [True] * 2


def verified(race, pulls, means, generator):
    """The arms that a verification returns, and whether it has a third round; means are drawn."""
    first = generator.normal(means, race.sigma / math.sqrt(pulls))
    held = np.sort(np.argpartition(-first, race.k)[: race.k])
    fresh = generator.normal(means[held], race.sigma / math.sqrt(race.verified))
    others = np.delete(first, held)
    if np.ptp(fresh) <= race.epsilon / 2 and (others <= fresh.min() - race.below(pulls)).all():
        return held, False
    last = generator.normal(means, race.sigma / math.sqrt(race.at_last))
    return np.sort(np.argsort(-last)[: race.k]), True


def test_a_verification_errs_with_at_most_delta_and_seldom_has_a_third_round_on_its_partition():
    race, runs, generator = (
        joint_verification.Verification(6, 2, 0.25, 50, 13, 0.2),
        5000,
        np.random.default_rng(7),
    )
    tied = np.array([0.75, 0.75, 0.05, 0.05, 0.05, 0.05])  # all gaps in the bin, 0.697 to 0.717
    assert race.bin[0] <= 0.7 < race.bin[1]
    pulls = 6
    third = np.mean([verified(race, pulls, tied, generator)[1] for _ in range(runs)])
    allowed = race.third_round(pulls)
    assert third < allowed + 5 * math.sqrt(allowed / runs)  # chance: 3 · 10^−7
    # By hand: gaps are 0.25^{13/50} or more; fresh means are within ε/8 = 1/32 with 0.95.
    gap, root = 0.25**0.26, math.sqrt(pulls) / 0.5
    standard = gap * root / math.sqrt(2), (gap - 1 / 32 - race.below(pulls)) * root
    mixed, doubted = (math.erfc(x / math.sqrt(2)) / 2 for x in standard)
    assert 0.9 > allowed == pytest.approx(0.05 + 8 * mixed + 4 * doubted)
    better = np.array([0.75, 0.75, 1.0, 1.0, 0.05, 0.05])  # the two arms with 0.75 are ε worse
    wrong = sum((better[verified(race, pulls, better, generator)[0]] < 1).any() for _ in range(runs)) / runs
    assert wrong <= 0.2 + 5 * math.sqrt(0.2 / runs)
    # By hand: p = √0.1, z = 0.4783; s = 0.4783 · 0.5/√6 − 0.21875; M = ⌈(16 z(0.2/16))²⌉, z = 2.2414.
    assert race.below(6) == pytest.approx(0.4783 * 0.5 / math.sqrt(6) - 0.21875, abs=1e-4)
    assert (race.verified, race.at_last) == (
        math.ceil((16 * 2.24140) ** 2),
        math.floor(16 * math.log(160)) + 1,
    )


def test_a_million_arms_are_verified_for_less_than_theorem_3_with_h_k_says():
    race, generator = (
        joint_verification.Verification(10**6, 10, 0.1, 200, 20, 1e-100),
        np.random.default_rng(8),
    )
    pulls = race.cheapest
    for _ in range(5):
        top = generator.uniform(0.82, 0.829, 10)  # gaps in the bin, 0.7943 to 0.8035
        means = np.append(top, np.full(10**6 - 10, 0.0256))
        gaps = np.append(top - 0.0256, top.min() - 0.0256)
        assert ((gaps >= race.bin[0]) & (gaps < race.bin[1])).all()
        arms, third = verified(race, pulls, means, generator)
        assert (arms.tolist(), third) == (list(range(10)), False)  # another outcome has probability 2 · 10^−4
    assert 10**6 * pulls + 10 * race.verified < race.expected(pulls) < 0.45 * race.supposed()
    # Each arm's term is (0.7943 + 0.1)^−2; log(1/2.4δ) = 229.383.
    assert race.supposed() == pytest.approx(0.5 * 229.383 * 10**6 / 0.894328**2, rel=1e-5)


def test_an_arm_that_rises_makes_the_old_answer_wrong_only_for_one_place():
    assert [best_k.moved(k, 0.15) for k in (1, 2, 3)] == [True, False, False]


def test_phantom_arms_add_their_own_terms():
    mine, expected = best_k.phantoms((0.9, 0.8, 0.5), 3, 0.15)
    by_hand = 2 / 0.15**2 + 0.55**-2 + 2 * 0.35**-2
    assert (mine, expected) == pytest.approx((by_hand, by_hand))


def test_a_ratio_has_the_error_of_a_quotient_of_independent_means():
    # 200 ± 6 over 100 ± 4: (3 %)² + (4 %)² = (5 %)².
    rows = [("k", "Setup 1", "EBR", 2, 200.0, 6.0, 50), ("k", "Setup 1", "sharp", 2, 100.0, 4.0, 50)]
    rows.append(("T", "Setup 1", "EBR", 2, 900.0, 6.0, 50))  # a row of another sweep
    names = ["sweep", "setup", "algorithm", "k", "pulls", "error", "runs"]
    (found,) = best_k.ratios(pd.DataFrame(rows, columns=names), "sharp").to_dict("records")
    assert (found["algorithm"], found["ratio"]) == ("EBR", 2.0)
    assert found["error"] == pytest.approx(0.05 * 2)
