"""Sharp EBR: races against plain loops, schedules by hand, and exact failure probabilities.

Rewards may be missing, and there may be a control. Where an exact bound is checked, a planted error shows
that the check can fail.
"""

import math
from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pytest
from compendium.shared.traces import trace
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Rewards, log_term, lossy_race, pair_ratio, play, sharp_race
from planted.algorithms import SharpEager, SharpTooFewPulls
from scipy.stats import binom, binomtest

import ebr
from ebr.algorithms.game import advance
from ebr.models import REWARDS

SHARP = ebr.SharpElasticBatchRacing
MODELS = ("sub-Gaussian", "bounded", "Gaussian")
bernoulli_models = pytest.mark.parametrize("model", ["sub-Gaussian", "bounded"])
any_means = st.lists(st.sampled_from([0, 0.02, 0.3, 0.45, 0.5, 0.55, 0.95, 1]), min_size=2, max_size=8)


@pytest.mark.parametrize("model", REWARDS)
@settings(max_examples=100, deadline=None)
@given(
    means=any_means,
    data=st.data(),
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.1, 0.9),
    delta=st.floats(0.01, 0.9),
    sigma=st.floats(0.05, 1),
    start=st.sampled_from([0.5, 1, 0.2]),
    split=st.sampled_from(["late", "equal"]),
    seed=st.integers(0, 2**32),
)
def test_every_replicate_is_the_plain_loop(
    model, means, data, deadline, epsilon, delta, sigma, start, split, seed
):
    # 0/1 rewards tie often, and the three replicates end at different times.
    n_arms, in_unit = len(means), model in ("bounded", "Bernoulli")  # sharp EBR treats these alike
    k = data.draw(st.integers(1, n_arms - 1) | st.just(1))
    sigma = max(sigma, 0.5) if in_unit else sigma
    generator, shape = np.random.default_rng(seed), (3, n_arms, 97)
    if not in_unit and data.draw(st.booleans()):
        table = generator.normal(np.array(means)[:, None], sigma, shape)
    else:
        table = (generator.random(shape) < np.array(means)[:, None]).astype(int)
    algorithm = SHARP(deadline, epsilon, delta, sigma, model, start, split, k)
    parameters = (deadline, epsilon, delta, sigma, "bounded" if in_unit else model, start, split, k)
    asked, arms = play(algorithm, Rewards(table))
    for replicate, rewards in enumerate(table.tolist()):
        mine = [ask[replicate].tolist() for ask in asked if ask[replicate].any()]
        assert (mine, arms[replicate].tolist()) == sharp_race(rewards, *parameters)


def test_a_last_round_without_a_new_pull_is_not_played_and_the_leader_wins():
    # At T a smaller L is enough, and its pulls are reached one round earlier, where no arm is certified.
    algorithm = SHARP(4, 0.2, 0.1, rewards="bounded")
    assert algorithm.pulls_by_round(2).tolist() == [39, 58, 85, 85]
    table = np.tile([0, 1], (1, 2, 50))
    table[0, 1, 0] = 1  # one more success
    asked, arm = play(algorithm, Rewards(table))
    assert np.cumsum(asked, axis=0).tolist() == [[[39, 39]], [[58, 58]], [[85, 85]]]
    assert pair_ratio(43, 85, 42, 85, 0.2) < 4 < log_term("bounded", algorithm.shares()[2], last=False)
    assert arm.tolist() == [1]


@pytest.mark.parametrize(
    ("model", "log_terms", "pulls", "with_sigma_1"),
    [
        # n = 3, T = 2, ε = 0.1, δ = 0.05, σ = ½. w = √(½ · 0.1), 0.1 = 0.223607, 0.1; 1/w = 4.47214, 10; so
        # δ_t = 0.05 · 4.47214/14.47214, 0.05 · 10/14.47214 = 0.0154508, 0.0345492. Halved, as n − 1 = 2, L is
        # log 129.443, log 57.8885; divided by w² = 0.05, 0.01 that is 97.265, 405.85.
        ("sub-Gaussian", [4.86324, 4.05852], [98, 406], [390, 1624]),
        # 7.93445 e^{−6.93445} = 0.00772542, and 6.93445/0.05 = 138.69.
        ("bounded", [6.93445, 4.05852], [139, 406], [555, 1624]),
        # The normal quantiles 2.42164 and 2.11360, squared and halved, give 58.643 and 223.37.
        ("Gaussian", [2.93216, 2.23366], [59, 224], [235, 894]),
    ],
)
def test_the_schedule_by_hand(model, log_terms, pulls, with_sigma_1):
    algorithm = SHARP(2, 0.1, 0.05, rewards=model)
    assert algorithm.widths() == pytest.approx([0.223607, 0.1], rel=1e-5)
    assert algorithm.shares() == pytest.approx([0.0154508, 0.0345492], rel=1e-5)
    assert algorithm.log_terms(3) == pytest.approx(log_terms, rel=1e-5)
    assert algorithm.pulls_by_round(3).tolist() == pulls
    assert SHARP(2, 0.1, 0.05, sigma=1, rewards=model).pulls_by_round(3).tolist() == with_sigma_1


def all_sums(pulls):
    """All pairs of sums (replicates × 2)."""
    return np.indices((pulls + 1, pulls + 1)).reshape(2, -1).T.astype(float)


def chances(pulls, *means):
    """The probability of each pair in `all_sums` for two Bernoulli arms."""
    return np.outer(*(binom.pmf(range(pulls + 1), pulls, mean) for mean in means)).ravel()


class Once:
    """Pays these sums in the first round, and 0 afterwards."""

    def __init__(self, sums):
        self.sums, self.shape = sums, sums.shape

    def pay(self, pulls):
        paid, self.sums = self.sums, np.zeros(self.shape)
        return paid


def after_one_round(algorithm, sums):
    """Which arms are pulled again after a first round with these sums, and the winner if that pays 0."""
    asked, arm = play(algorithm, Once(sums))
    return asked[1] > 0 if len(asked) == 2 else np.zeros(sums.shape, dtype=bool), arm


def exact_failures(algorithm, gaps):
    """The probability that the worse of two Bernoulli arms is recommended, for a grid of means.

    T = 2, and if both arms survive the first round, the difference of their sums decides. The worse arm comes
    first, so that it wins ties.
    """
    first, last = algorithm.pulls_by_round(2)
    sums, fresh = all_sums(first), last - first
    again, arm = after_one_round(algorithm, sums)
    needed = np.clip(sums[:, 1] - sums[:, 0] + fresh, 0, 2 * fresh + 1).astype(int)
    for gap in gaps:
        for worse in np.linspace(0, 1 - gap, 12):
            better = min(worse + gap, 1)
            one, other = (binom.pmf(range(fresh + 1), fresh, mean) for mean in (worse, better))
            # P(X − Y ≥ d) is at index d + fresh, for d from −fresh to fresh + 1.
            tail = np.append(np.convolve(one, other[::-1])[::-1].cumsum()[::-1], 0)
            yield (chances(first, worse, better) * np.where(again.all(axis=1), tail[needed], arm == 0)).sum()


@bernoulli_models
@pytest.mark.parametrize("split", ["late", "equal"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.4), (0.3, 0.1), (0.1, 0.05), (0.05, 0.01)])
def test_two_rounds_fail_with_at_most_delta_exactly(model, split, epsilon, delta):
    parameters = {"rewards": model, "start": 1, "split": split}
    gaps = (epsilon, 1.2 * epsilon, 2 * epsilon)
    assert max(exact_failures(SHARP(2, epsilon, delta, **parameters), gaps)) <= delta


@bernoulli_models
@pytest.mark.parametrize("planted", [SharpTooFewPulls, SharpEager])
def test_two_rounds_with_a_planted_error_fail_more_often(model, planted):
    assert max(exact_failures(planted(2, 0.05, 0.01, rewards=model, start=1), [0.05])) > 0.01


BERNOULLI, GAUSSIAN = ebr.Bernoulli([0.2, 0.5, 0.9]), ebr.Gaussian([0.2, 0.5, 0.9], 0.5)


def first_round(algorithm, problem):
    return trace(algorithm, problem)["pulls"].iloc[0]


@pytest.mark.parametrize(
    ("problem", "asked", "used"),
    [
        (BERNOULLI, None, "bounded"),
        (GAUSSIAN, None, "Gaussian"),
        (BERNOULLI, "sub-Gaussian", "sub-Gaussian"),
        (GAUSSIAN, "sub-Gaussian", "sub-Gaussian"),
    ],
)
def test_the_rewards_are_what_the_caller_says_or_else_the_problem(problem, asked, used):
    by_hand = {"sub-Gaussian": 98, "Gaussian": 59, "bounded": 139}  # see test_the_schedule_by_hand
    assert first_round(SHARP(2, 0.1, 0.05, rewards=asked), problem) == by_hand[used]


def test_rewards_are_sub_gaussian_by_default():
    assert next(SHARP(2, 0.1, 0.05).play(3)).tolist() == [[98, 98, 98]]


def test_bounded_rewards_are_refused_where_they_are_gaussian():
    with pytest.raises(ValueError, match=r"rewards must not be 'bounded' for Gaussian rewards"):
        ebr.simulate(SHARP(2, 0.1, 0.05, rewards="bounded"), GAUSSIAN, runs=1)


def test_gaussian_rewards_are_played_with_a_warning_where_they_are_bounded():
    with pytest.warns(UserWarning, match="not Gaussian: the algorithm's guarantee is void"):
        assert first_round(SHARP(2, 0.1, 0.05, rewards="Gaussian"), BERNOULLI) == 59


def drive(algorithm, n_arms, replicates, respond):
    """Play a lossy game to its end; `respond(round, pulls)` gives counts and sums."""
    game = algorithm.play_lossy(n_arms, replicates)
    asked, turn = [], advance(game)
    while turn.pulls is not None:
        asked.append(turn.pulls.pulls)
        turn = advance(game, respond(len(asked) - 1, asked[-1]))
    return asked, turn.arms


def algorithm_of(model, deadline, epsilon, delta, control=None, margin=None):
    return SHARP(deadline, epsilon, delta, rewards=model, control=control, margin=margin)


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=200, deadline=None)
@given(
    means=any_means,
    deadline=st.integers(1, 6),
    epsilon=st.floats(0.1, 0.9),
    delta=st.floats(0.01, 0.9),
    place=st.none() | st.integers(0, 5),
    wider=st.floats(1, 3),
    complete=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_every_replicate_is_the_plain_loop_whatever_is_lost(
    model, means, deadline, epsilon, delta, place, wider, complete, seed
):
    n, margin = len(means), min(epsilon * wider, 0.95)
    guard = () if place is None else (place % n, margin)
    algorithm = algorithm_of(model, deadline, epsilon, delta, *guard)
    generator = np.random.default_rng(seed)
    table = (generator.random((3, n, 97)) < np.array(means)[:, None]).astype(int)
    share = generator.choice([0, 0.3, 0.9, 1], size=(3, deadline, n), p=[0.1, 0.2, 0.2, 0.5])
    share = np.ones_like(share) if complete else share
    paid, rounds = Rewards(table), np.zeros(3, dtype=int)

    def respond(_, pulls):
        kept = np.floor(share[np.arange(3), rounds] * pulls).astype(int)
        rounds[pulls.any(axis=1)] += 1
        rounds[:] = np.minimum(rounds, deadline - 1)
        return kept, paid.pay(kept)

    asked, ending = drive(algorithm, n, 3, respond)
    for r in range(3):
        rewards = [cycle(row) for row in table[r].tolist()]
        expected = lossy_race(
            lambda arm, rewards=rewards: next(rewards[arm]),
            lambda number, i, owed, r=r: math.floor(share[r, number, i] * owed),
            *(n, deadline, epsilon, delta, 0.5, model, *guard),
        )
        assert [each[r].tolist() for each in asked if each[r].any()] == expected[0]
        assert ending.arms[r] == expected[1]
        assert ending.within[r] == pytest.approx(expected[2], rel=1e-9)
    if complete:  # without losses it is the ordinary race
        before, arms = play(algorithm, Rewards(table))
        assert [each.tolist() for each in asked] == [each.tolist() for each in before]
        assert ending.arms.tolist() == arms.tolist()


# Every pattern of losses in two rounds of two arms, as shares of rewards that are kept.
PATTERNS = list(product((0, 0.4, 1), repeat=4))
NEARLY_ALL = [(0.1, 0.1, 0.1, 0.1), (0.1, 0.2, 0.0, 0.1), (0.0, 0.0, 0.1, 0.1)]
TINY = {"deadline": 2, "epsilon": 0.35, "delta": 0.6}
STRICT = {"deadline": 2, "epsilon": 0.35, "delta": 0.05}


def honest(asked, kept, sums):
    return kept, sums


def as_zeros(asked, kept, sums):
    """Planted error: lost rewards count as zeros."""
    return asked, sums


def as_if_complete(asked, kept, sums):
    """Planted error: means are of rewards that came in, counts are those asked for."""
    came = np.broadcast_to(kept, sums.shape) > 0
    return asked * came, np.divide(sums, kept, out=np.zeros(sums.shape), where=came) * asked


def successes_of_the_second_lost(asked, kept, sums):
    """Losses that depend on the reward: all successes of the second arm are lost."""
    successes = sums * [0, 1]
    return (kept - successes).astype(int) * (asked > 0), sums - successes


def failure_probability(algorithm, means, pattern=(1, 1, 1, 1), told=honest, margin=None):
    """P(the arm is farther from the best than `within`), from all outcomes of two arms.

    If a margin is given, it takes the place of the control's `within`.
    """
    counts, kept = np.zeros(2, dtype=int), []
    for target, share in zip(algorithm.pulls_by_round(2), np.reshape(pattern, (2, 2)), strict=True):
        kept.append(np.floor(share * (target - counts)).astype(int))
        counts += kept[-1]
    places = np.meshgrid(*(np.arange(k + 1) for k in np.ravel(kept)), indexing="ij")
    sums = np.stack([place.ravel() for place in places], axis=1).reshape(-1, 2, 2)
    weights = binom.pmf(sums, np.array(kept), means).prod(axis=(1, 2))

    def respond(number, pulls):
        came = np.minimum(kept[number], pulls)
        return told(pulls, came, np.where(pulls > 0, sums[:, number], 0.0))

    _, ending = drive(algorithm, 2, len(sums), respond)
    gap = max(means) - np.array(means)[ending.arms]
    within = ending.within if margin is None else np.where(ending.arms == 0, margin, ending.within)
    return float(weights @ ((gap > within + 1e-12) & (ending.arms >= 0)))


def worst_failure(model, parameters, patterns, told=honest):
    algorithm = algorithm_of(model, **parameters)
    truths = [(0.0, 0.351), (0.649, 1.0), (0.32, 0.671), (0.2, 0.7), (0.05, 0.95)]
    return max(
        failure_probability(algorithm, means, pattern, told)
        for truth in truths
        for means in (truth, truth[::-1])
        for pattern in patterns
    )


@bernoulli_models
def test_whatever_is_lost_at_random_errors_have_probability_delta_at_most(model):
    assert 0 < worst_failure(model, TINY, PATTERNS) <= TINY["delta"]
    assert worst_failure(model, STRICT, NEARLY_ALL) <= STRICT["delta"]


@bernoulli_models
@pytest.mark.parametrize("planted", [as_zeros, as_if_complete])
def test_planted_errors_fail_more_often_than_delta(model, planted):
    assert worst_failure(model, STRICT, NEARLY_ALL, planted) > 1.2 * STRICT["delta"]


@bernoulli_models
def test_losses_that_depend_on_the_outcome_void_the_guarantee(model):
    algorithm, means = algorithm_of(model, **TINY), (0.2, 0.7)
    lost = failure_probability(algorithm, means, told=successes_of_the_second_lost)
    assert failure_probability(algorithm, means) < TINY["delta"] < lost


# Losses that are fixed in advance to do harm: shares kept in round t of an arm. The best arm is 0.
HURTING = {
    "none": lambda t, arm: 1.0,
    "all of the best arm, but in the last round": lambda t, arm: 1.0 if arm or t == 4 else 0.0,
    "nine in ten of the best arm": lambda t, arm: 1.0 if arm else 0.1,
    "nine in ten of the others": lambda t, arm: 0.1 if arm else 1.0,
    "alternating": lambda t, arm: float((t + arm) % 2),
    "all in the last round": lambda t, arm: float(t < 4),
    "half": lambda t, arm: 0.5,
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", HURTING)
def test_five_arms_err_no_more_often_than_delta_however_losses_are_placed(model, name):
    # 1,000 races each. A correct race fails any of the 21 cases with probability below 10⁻⁶.
    runs, means = 1000, np.array([0.62, 0.5, 0.5, 0.5, 0.2])
    algorithm, generator = algorithm_of(model, 5, 0.1, 0.3), np.random.default_rng(3)

    def respond(number, pulls):
        share = np.array([HURTING[name](number, arm) for arm in range(5)])
        kept = np.floor(share * pulls).astype(int)
        noise = generator.normal(kept * means, 0.5 * np.sqrt(kept))
        return kept, noise if model == "Gaussian" else generator.binomial(kept, means).astype(float)

    _, ending = drive(algorithm, 5, runs, respond)
    gap = means.max() - means[ending.arms]
    wrong = int((gap > ending.within + 1e-12).sum())
    assert binomtest(wrong, runs, 0.3, alternative="greater").pvalue > 1e-6 / 21
    short = ending.within > 0.1
    assert short.any() == (name not in ("none", "all of the best arm, but in the last round"))
    assert (ending.within[~short] == 0.1).all()


def test_missing_rewards_of_one_replicate_do_not_change_the_others():
    # Widths fall from 0.5 to 0.3 in 60 rounds, and in some of them only the first replicate has new rewards.
    algorithm, generator = SHARP(60, 0.3, 0.1, rewards="sub-Gaussian"), np.random.default_rng(1)
    means = np.array([0.5, 0.4, 0.1, 0])[:, None]
    table, kept = generator.normal(means, 0.5, (1000, 4, 97)), np.ones((1000, 60, 4))
    kept[0] = generator.choice([0.5, 1], (60, 4))

    def results(replicates):
        paid, rounds = Rewards(table[replicates]), np.zeros(len(replicates), dtype=int)

        def respond(_, pulls):
            counts = np.floor(kept[replicates, rounds] * pulls).astype(int)
            rounds[pulls.any(axis=1)] += 1
            return counts, paid.pay(counts)

        asked, ending = drive(algorithm, 4, len(replicates), respond)
        total = np.sum(asked, axis=0)
        return np.column_stack(
            [total, (np.array(asked) > 0).sum(axis=0), ending.arms, ending.within]
        ).tolist()

    assert results(range(1000)) == results([0]) + results(range(1, 1000))


def test_where_nothing_comes_in_no_arm_is_recommended():
    asked, ending = drive(
        algorithm_of("bounded", 3, 0.2, 0.1), 3, 2, lambda t, pulls: (0 * pulls, 0.0 * pulls)
    )
    targets = algorithm_of("bounded", 3, 0.2, 0.1).pulls_by_round(3)
    assert [each[0].tolist() for each in asked] == [[target] * 3 for target in targets]
    assert (ending.arms.tolist(), ending.within.tolist()) == ([-1, -1], [math.inf] * 2)


@pytest.mark.parametrize(
    ("algorithm", "rewards", "message"),
    [
        (ebr.PausingElasticBatchRacing(3, 0.1, 0.1), None, "got PausingElasticBatchRacing"),
        (SHARP(3, 0.1, 0.1, k=2), None, "got k = 2"),
    ],
)
def test_what_is_not_proved_is_refused(algorithm, rewards, message):
    with pytest.raises(ValueError, match=message):
        next(algorithm.play_lossy(3, rewards=rewards))


@pytest.mark.parametrize(("model", "delta"), [("sub-Gaussian", 0.2), ("bounded", 0.5)])
def test_errors_have_probability_delta_at_most_and_the_margin_counts(model, delta):
    algorithm = SHARP(2, 0.4, delta, rewards=model, control=0, margin=0.5)
    truths = [(low, low + gap) for low, gap in product((0.0, 0.1, 0.24, 0.35), (0.401, 0.501, 0.6))]
    assert 0 < max(failure_probability(algorithm, truth) for truth in truths) <= delta
    planted = replace(algorithm, margin=0.9)  # though 0.5 is promised
    assert max(failure_probability(planted, truth, margin=0.5) for truth in truths) > delta


def test_gaussian_looks_pay_for_futility_too():
    # The control is worse than the best by a little more than the margin, and three arms tie with it. A
    # correct race fails this test with probability below 10⁻⁶.
    algorithm = SHARP(4, 0.1, 0.2, rewards="Gaussian", control=0, margin=0.15)
    truth = ebr.Gaussian([0.5, 0.5, 0.5, 0.5, 0.651], 0.5)
    found = ebr.simulate(algorithm, truth, 20_000, seed=1)
    wrong = int((found.arm != 4).sum())
    assert binomtest(wrong, 20_000, 0.2, alternative="greater").pvalue > 1e-6
    assert (found.arm == 0).any()


@pytest.mark.parametrize("model", ["bounded", "Gaussian", "sub-Gaussian"])
def test_where_no_arm_is_better_the_race_ends_sooner_with_the_control(model):
    plain = SHARP(6, 0.05, 0.05, rewards=model)
    guarded = replace(plain, control=0, margin=0.15)
    truth = ebr.Gaussian([0.5] * 4, 0.5) if model == "Gaussian" else ebr.Bernoulli([0.5] * 4)
    without, with_control = (ebr.simulate(each, truth, 300, seed=1) for each in (plain, guarded))
    assert with_control.pulls.mean() < without.pulls.mean() / 2  # more than 20 standard errors
    assert (with_control.arm == 0).mean() > 0.95


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"margin": 0.2}, "margin must be left out where there is no control, got 0.2"),
        ({"control": 0, "margin": 0.05}, "margin must be at least epsilon, 0.1, got 0.05"),
        ({"control": 0, "margin": 1.5}, r"margin must lie in \(0, 1\), got 1.5"),
        ({"control": "placebo"}, "control must be an integer of at least 0, got 'placebo'"),
        ({"control": 0, "k": 2}, "k must be 1 where there is a control, got 2"),
    ],
)
def test_bad_controls_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SHARP(3, 0.1, 0.1, **parameters)


def test_a_control_is_one_of_the_arms_and_the_margin_is_epsilon_if_left_out():
    assert "split='late', control=1, margin=0.1)" in repr(SHARP(2, 0.1, 0.05, control=1))
    with pytest.raises(ValueError, match="control must lie in 0 … 2, the arms' numbers, got 3"):
        next(SHARP(3, 0.1, 0.1, control=3).play(3))
