"""The checks of sharp EBR's claims: the adversary stays inside the event, tables are plain counts."""

import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from compendium.shared import problem_sets
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.sharp_racing import sharp_adversary, sharp_event, sharp_guarantee
from compendium.sharp_racing.sharp_bounds import sharp_problem_bound
from oracles import kl, log_term, overheard, pair_ratio, sharp_design, sharp_schedule
from scipy.stats import binom

import ebr
from ebr.theory.pairs import Pairs

SHARP = SharpElasticBatchRacing
MEANS = [0.3, 0.62, 0.7, 0.55]


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_the_union_bound_adds_up_the_tails_of_differences(shift):
    n_arms, deadline, epsilon, delta, sigma = 5, 3, 0.1, 0.2, 0.7
    pulls, widths = sharp_schedule(n_arms, deadline, epsilon, delta, sigma, "sub-Gaussian")
    total = 0
    for b, width in zip(pulls, [*widths[:-1], epsilon], strict=True):
        spread = sigma * math.sqrt(2 / b)  # of the difference of two means
        total += math.exp(-((width / spread) ** 2) / 2)
    algorithm = SHARP(deadline, epsilon, delta, sigma, "sub-Gaussian")
    found = sharp_event.spent(algorithm, n_arms, shift=shift)  # ending errs as rarely as dropping
    assert found == pytest.approx((n_arms - 1) * total / delta, rel=1e-9)
    assert found < 1
    # Before the last round all of a share is spent.
    shares = [1 / w for w in (0.5 * 0.2 ** (t / 3) for t in (1, 2, 3))]
    assert found > sum(shares[:2]) / sum(shares)


def test_gaussian_noise_leaves_the_event_as_often_as_delta_says():
    # With two arms all of δ is spent; 5 standard errors of 20,000 runs are 0.011.
    share = sharp_event.crossed(SHARP(3, 0.1, 0.1, rewards="Gaussian"), 2, 20_000, 1) / 20_000
    assert abs(share - 0.1) < 0.011


@pytest.mark.parametrize(
    ("n_arms", "k", "mean", "shift"),
    [*((3, 1, mean, shift) for mean in (0.5, 0.9, 0.02) for shift in (0.0, 0.2)), (4, 2, 0.4, 0.0)],
)
def test_for_bounded_rewards_it_is_the_exact_chance_that_the_ratio_errs(n_arms, k, mean, shift):
    epsilon, delta, pairs = 0.2, 0.3, k * (n_arms - k)
    (first, last), _ = sharp_design(n_arms, 2, epsilon, delta, 0.5, "bounded", k=k)
    share = delta * math.sqrt(epsilon / 0.5) / (1 + math.sqrt(epsilon / 0.5))  # of round 1: δ_t ∝ 1/w_t
    L = log_term("bounded", share / pairs, last=False)
    p = (1 - shift) * mean
    chance, other = ([binom.pmf(k, first, q) for k in range(first + 1)] for q in (p, p + shift))
    wrong = sum(
        chance[worse] * other[better]
        for worse, better in product(range(first + 1), repeat=2)
        if worse >= better and pair_ratio(worse, first, better, first, shift) > L
    )
    at_last = math.exp(-last * epsilon**2)
    found = sharp_event.spent(SHARP(2, epsilon, delta, rewards="bounded", k=k), n_arms, mean, shift)
    assert found == pytest.approx(pairs * (wrong + at_last) / delta, rel=1e-6)
    assert wrong > 0


class Watched(SharpElasticBatchRacing):
    """Records its pulls and their sums."""

    seen = []  # noqa: RUF012

    def play(self, n_arms, replicates=1, **known):
        game, self.seen[:] = super().play(n_arms, replicates, **known), []
        return overheard(game, lambda *round_: self.seen.append(round_))


def rounds_inside(model, problem, case, tables=400):
    """Each round's number from 0, its count, and the means of the arms pulled in it (NaN for others)."""
    played = sharp_adversary.inside(Watched(*case, rewards=model), problem, tables, seed=1)
    pulled, sums = np.zeros((tables, problem.n_arms), dtype=int), np.zeros((tables, problem.n_arms))
    counts, _ = sharp_schedule(problem.n_arms, *case, model=model)
    for pulls, new in Watched.seen:
        pulled, sums = pulled + pulls, sums + new
        count = int(pulled.max())
        assert set(pulled[pulls > 0]) == {count}
        yield counts.index(count), count, np.where(pulls > 0, sums / count, np.nan)
    assert (played.arm_pulls == pulled).all()
    assert played.arms.shape == (tables, 1)


def test_the_adversarys_differences_stay_within_the_width_and_reach_it():
    model, case, problem = "sub-Gaussian", (4, 0.05, 0.1), ebr.Gaussian(MEANS, 0.5)
    _, widths = sharp_schedule(4, *case, model=model)
    gaps = np.delete(0.7 - np.array(MEANS), 2)
    seen = 0
    for number, _, means in rounds_inside(model, problem, case):
        lead = means - means[:, [2]]
        room = widths[number] - gaps - np.delete(lead, 2, axis=1)
        room = room[~np.isnan(room)]
        assert room.min() > -1e-9
        assert (room < 1e-9).mean() > 0.3
        assert (room > 0.1 * widths[number]).mean() > 0.1
        assert np.isnan(lead[:, 2]).sum() == np.isnan(means).all(axis=1).sum()  # the best is never dropped
        seen += 1
    assert seen == 4


def test_the_adversarys_bounded_means_stay_within_the_two_divergences_and_reach_them():
    case, problem = (3, 0.1, 0.1), ebr.Bernoulli(MEANS)
    counts, widths = sharp_schedule(4, *case, model="bounded")
    terms = [b * w**2 for b, w in zip(counts, widths, strict=True)]  # L = b w² at σ = ½
    seen = 0
    for number, count, means in rounds_inside("bounded", problem, case):
        alive = means[~np.isnan(means[:, 2])]
        if number < 2:
            unlucky = np.array([kl(min(x, 0.7), 0.7) for x in alive[:, 2]])
            for arm in (0, 1, 3):
                here = ~np.isnan(alive[:, arm])
                lucky = np.array([kl(max(x, MEANS[arm]), MEANS[arm]) for x in alive[here, arm]])
                spent = count * (unlucky[here] + lucky)
                assert spent.max() <= terms[number] * (1 + 1e-6)
                assert (spent > terms[number] * (1 - 1e-6)).mean() > 0.3
            assert len(set(unlucky.round(9))) > 3  # the best arm's share of the bad luck differs
        lead = np.delete(alive - alive[:, [2]], 2, axis=1)
        room = widths[number] - np.delete(0.7 - np.array(MEANS), 2) - lead
        assert room[~np.isnan(room)].min() > -1e-9  # Pinsker
        assert ((alive >= 0) & (alive <= 1) | np.isnan(alive)).all() or number == 2
        seen += 1
    assert seen >= 2


def test_one_round_spends_all_of_delta_but_for_its_last_pull():
    # b ≤ L/ε² + 1 with σ = ½, so at least e^{−ε²} of δ is spent.
    for share, spent in ((0.985, False), (0.995, True), (1.0, True), (1.01, False)):
        assert sharp_event.fully_spent(share, 0.1) == spent


def test_the_steps_count_tables_that_end_wrong_or_late():
    class Careless(SharpElasticBatchRacing):
        """Ends after the first round with any leader."""

        def refuted(self, pairs, shift, *place):
            return super().refuted(pairs, shift, *place) | (shift > 0)

    problems = [("one", ebr.Gaussian(MEANS, 0.5), 0.05, 4, 0.1)]
    table = sharp_guarantee.steps(problems, 200, 1, SHARP, "sub-Gaussian")
    assert table.to_numpy().tolist() == [["one", 200, 0, 0, 0]]
    careless = sharp_guarantee.steps(problems, 200, 1, Careless, "sub-Gaussian")
    played = sharp_adversary.inside(Careless(4, 0.05, 0.1, rewards="sub-Gaussian"), problems[0][1], 200, 1)
    wrong = int((np.array(MEANS)[played.arms] <= 0.65).sum())
    assert careless.to_numpy().tolist() == [["one", 200, wrong, 0, 0]]
    assert wrong > 50


def test_bernoulli_keeps_means_and_all_else():
    normal = problem_sets.Instance("a", ebr.Gaussian([0.2, 0.9], 1.0), 0.1, 3, 0.2)
    ((kind, problem, *rest),) = problem_sets.bernoulli([normal])
    assert (kind, type(problem), rest) == ("a", ebr.Bernoulli, [0.1, 3, 0.2])
    assert problem.means.tolist() == [0.2, 0.9]


class Sluggish(SharpElasticBatchRacing):
    """Drops no arm before the deadline."""

    def refuted(self, *place):
        return np.zeros_like(super().refuted(*place))


@pytest.mark.parametrize("make", [SHARP, Sluggish])
@pytest.mark.parametrize("model", ["sub-Gaussian", "bounded"])
def test_races_are_plain_counts_beside_their_bounds(model, make):
    problem, epsilon, deadline, delta = ebr.Bernoulli(MEANS), 0.1, 3, 0.6
    hard = ebr.Bernoulli([0.6 - 0.1 * (1 + 1e-6)] * 3 + [0.6])
    problems = [("easy", problem, epsilon, deadline, delta), ("hard", hard, epsilon, 1, 0.9)]
    table = sharp_guarantee.races(problems, 300, 1, make, model)
    for (_, row), (_, arms, _, rounds, miss) in zip(table.iterrows(), problems, strict=True):
        result = ebr.simulate(make(rounds, epsilon, miss, rewards=model), arms, 300, seed=1, per_arm=True)
        counts, _ = sharp_schedule(4, rounds, epsilon, miss, model=model)
        widths = [0.5 * 0.2 ** (t / rounds) for t in range(1, rounds + 1)]
        gaps = arms.means.max() - arms.means
        second = sorted(gaps)[1]
        needs = [max(gap, second + epsilon) for gap in gaps]
        allowed = [counts[min(sum(2 * w > need for w in widths), rounds - 1)] for need in needs]
        race = SHARP(rounds, epsilon, miss, rewards=model)
        assert (row["n_arms"], row["deadline"], row["runs"]) == (4, rounds, 300)
        assert (row["pulls"], row["most"]) == (result.pulls.mean(), result.pulls.max())
        assert row["wrong"] == (gaps[result.arm] >= epsilon).sum()
        assert row["late"] == (result.arm_pulls > allowed).any(axis=1).sum()
        assert row["bound"] == sum(allowed)
        assert row["problem_bound"] == pytest.approx(in_h(arms, race, max(race.log_terms(4))))
        assert row["over"] == (result.pulls > row["problem_bound"]).sum()
    assert table["kind"].tolist() == ["easy", "hard"]
    assert table["wrong"][1] > 0
    assert (table["late"][0] == 300) == (make is Sluggish)


def in_h(problem, race, log_term):
    """36σ² (max(w₀, ε)/ε)^{2/T} L H + n."""
    gaps = problem.means.max() - problem.means
    gaps[problem.best] = np.sort(gaps)[1]
    complexity = sum((race.epsilon if gap < race.epsilon else gap + race.epsilon) ** -2 for gap in gaps)
    price = (max(race.start, race.epsilon) / race.epsilon) ** (2 / race.deadline)
    return 36 * race.sigma**2 * price * log_term * complexity + len(gaps)


@pytest.mark.parametrize("rewards", ["sub-Gaussian", "Gaussian", "bounded"])
def test_inside_the_event_no_race_costs_more_than_the_bound_in_h_says(rewards):
    generator, closest = np.random.default_rng(25), 0.0
    for number in range(40 if rewards == "Gaussian" else 100):
        n_arms, deadline = int(generator.integers(2, 12)), int(generator.integers(1, 60))
        epsilon, delta, sigma = np.exp(generator.uniform(np.log([0.03, 1e-6, 0.02]), np.log([0.95, 0.9, 3])))
        start, split = (0.5, 1)[number % 2], ("late", "equal")[number % 3 > 0]
        sigma = 0.5 if rewards == "bounded" else sigma
        race = SHARP(deadline, epsilon, delta, sigma, rewards, start, split)
        means = generator.random(n_arms) if number % 5 else np.arange(n_arms) == 0
        problem = ebr.Bernoulli(means) if rewards == "bounded" else ebr.Gaussian(means, sigma)
        pulls = sharp_adversary.inside(race, problem, 20, seed=1).arm_pulls.sum(axis=1)
        bound = in_h(problem, race, race.longest(n_arms))
        found = sharp_problem_bound(problem, epsilon, deadline, race.longest(n_arms), start)
        assert found == pytest.approx(bound)
        share = pulls.max() / bound
        assert share <= 1 + 1e-12, (race, problem)
        closest = max(closest, share)
    assert closest > 0.5


def test_without_the_maximum_the_bound_for_a_large_epsilon_would_be_false():
    # n = 2, T = 1, ε = 0.9, δ = 10⁻⁶: L = log 10⁶ = 13.8155, b = ⌊L/0.81⌋ + 1 = 18, H = 2/1.9².
    race, problem = SHARP(1, 0.9, 1e-6, rewards="sub-Gaussian"), ebr.Bernoulli([0, 1])
    assert ebr.simulate(race, problem, runs=5).pulls.tolist() == [36] * 5
    without = 9 * (0.5 / 0.9) ** 2 * 13.8155 * 2 / 1.9**2 + 2
    assert without == pytest.approx(23.3, abs=0.05)
    assert in_h(problem, race, 13.8155) == pytest.approx(9 * 13.8155 * 2 / 1.9**2 + 2)
    assert in_h(problem, race, 13.8155) > 36


def test_pulls_are_compared_as_ratios_with_their_errors():
    pulls = {"EBR": 1200.0, "sequential": 200.0, "sharp": 100.0}
    rows = [{"algorithm": name, "pulls": number, "error": number / 100} for name, number in pulls.items()]
    table = pd.DataFrame(rows).assign(sweep="ε", setup="Setup 1", deadline=15, epsilon=0.25, runs=100)
    ratios = sharp_guarantee.compared(table, delta=0.01, n_arms=2).set_index(["algorithm", "against"])
    # Means symmetric about ½ get half of the pulls each, λ = ½ ± ε/2; kl(0.01, 0.99) = 0.98 log 99.
    nearest = 0.9 * math.log(0.9 / 0.375) + 0.1 * math.log(0.1 / 0.625)
    floor = 0.98 * math.log(99) / nearest
    yardsticks = {"EBR": 1200, "sequential": 200, "floor": floor}
    for (name, number), (against, under) in product(pulls.items(), yardsticks.items()):
        assert ratios.loc[(name, against), "ratio"] == pytest.approx(number / under)
        assert ratios.loc[(name, "floor"), "error"] == pytest.approx(number / floor / 100)
    assert ratios.loc[("sharp", "EBR"), "error"] == pytest.approx(100 / 1200 * math.sqrt(2) / 100)
    assert len(ratios) == 9


def test_without_the_certificate_a_race_goes_on_until_one_arm_is_left():
    without, with_it, *_ = (make(4, 0.1, 0.1) for make in sharp_guarantee.VARIANTS.values())
    pulled, term = int(with_it.pulls_by_round(2)[1]), with_it.log_terms(2)[1]
    lead = with_it.width(pulled, term) - 0.05  # more than w₂ − ε, less than w₂
    short, long = (Pairs(np.array([by * pulled]), pulled, np.zeros(1), pulled) for by in (lead, lead + 0.06))
    assert with_it.refuted(short, 0.1, term, None).all()
    assert not without.refuted(short, 0.1, term, None).any()
    assert without.refuted(long, 0.1, term, None).all()
