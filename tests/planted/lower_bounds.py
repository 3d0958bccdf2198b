"""Notebook 04: Theorem 3 and the lemmas of its proof."""

import math
from functools import cache, partial
from unittest import mock

import numpy as np
from compendium.lower_bounds import (
    change_of_measure,
    counter_example,
    expected_pulls,
    least_probability,
    near_optimal,
)
from compendium.shared import cost_bounds

import ebr
from ebr.theory import divergence

HPCM_AT, LEAST_REACH = least_probability.hpcm_at, least_probability.least_reach


DESIGN, PLAY = cache(near_optimal.design), cache(near_optimal.RaceOfThree.play)


def theorem_3(proved=cost_bounds.partition_lower_bound, design=DESIGN):
    with mock.patch.object(near_optimal.RaceOfThree, "play", PLAY):
        return expected_pulls.theorem_3(expected_pulls.policies(proved, design), proved)


def last_bin_as_printed(gamma, epsilon, deadline, *rest):
    """Theorem 3 as if arms of the last bin could be told apart like all others."""
    return cost_bounds.partition_lower_bound(gamma, epsilon, deadline, *rest, printed=max(gamma) == deadline)


def room_for_all(gamma, epsilon, deadline, *rest):
    """Theorem 3 as if every arm could rise above 1."""
    return cost_bounds.partition_lower_bound(gamma, epsilon, deadline, *rest, printed=max(gamma) < deadline)


def easy_arms_half(gamma, epsilon, deadline, *rest):
    """Theorem 3 with σ² in place of 2σ² for all bins but the last: true, but not what is proved."""
    return (0.5 if max(gamma) < deadline else 1) * cost_bounds.partition_lower_bound(
        gamma, epsilon, deadline, *rest
    )


def a_quarter_more(*place):
    """KL(N(0, σ²), N(x, σ²)) = x²/2.5σ²."""
    return 1.25 * cost_bounds.partition_lower_bound(*place)


def eager(test):
    """Thresholds a fifth too low: the test errs with more than δ."""
    return test._replace(thresholds=tuple(0.8 * a for a in test.thresholds))


def too_eager(test, delta):
    return eager(near_optimal.calibrated(test, delta))


def nine_tenths(root, delta):
    """Neyman and Pearson's bound, a tenth too low: true, but not tight."""
    return 0.9 * LEAST_REACH(root, delta)


def with_reach(check, reach=nine_tenths):
    with mock.patch.object(least_probability, "least_reach", reach):
        return check()


def with_entropy(x, y):
    """d(x, y) with an extra term where x is large: the three inequalities still hold."""
    return divergence.relative_entropy(x, y) + np.maximum(np.asarray(x) - 0.4, 0)


def three_times_hpcm(delta):
    """d(2/3, δ) three times too large, as if it were log(1/2δ)."""
    return 3 * cost_bounds.hpcm(delta)


def larger_hpcm(delta):
    """0.72 in place of ⅔: true, but more than the lemma says and its proof gives."""
    return 0.72 * math.log(1 / (2 * delta))


def each_its_own(problem, epsilon, deadline):
    """A wrong Definition 1 in which every γ has problems: indices are drawn by the gap's digits."""
    lots = int(problem.gaps[0] * 1e6)
    return 1 + lots % deadline, 1 + lots // deadline % deadline


def changed_measure(**errors):
    tables = {}
    for name, algorithm in (("EBR", ebr.ElasticBatchRacing(3, 0.4, 0.1)), ("passive", ebr.Passive(0.4, 0.1))):
        pair = change_of_measure.close_pair(algorithm, 2, 0.5, 1)
        tables[name, 2] = change_of_measure.identities(algorithm, *pair, 20_000, 1, **errors)
    return change_of_measure.change_of_measure(change_of_measure.joined(tables))


def wide_errors():
    """√n in place of 1/√n in every standard error, so that nothing is ever refuted."""
    with mock.patch.object(
        change_of_measure, "_mean", lambda v: (float(v.mean()), float(v.std() * len(v) ** 0.5))
    ):
        return changed_measure()


def both_sides(tests, p, q):
    """P(φ = 1) + Q(φ = 0): both probabilities of being right, not of an error."""
    return tests @ p + (1 - tests) @ q


PLANTED = {
    "C12": (
        theorem_3,
        partial(theorem_3, proved=last_bin_as_printed),
        partial(theorem_3, proved=room_for_all),
        partial(theorem_3, proved=a_quarter_more),
        partial(theorem_3, proved=easy_arms_half),
        lambda: theorem_3(design=lambda *place: eager(DESIGN(*place))),  # not PAC
    ),
    "C13": (
        least_probability.theorem_3_two_arms,
        lambda: least_probability.theorem_3_two_arms(shift=1.0),  # one arm alone, as in the paper
        lambda: least_probability.theorem_3_two_arms(shift=1 / 4),  # too little for another answer
        lambda: least_probability.theorem_3_two_arms(constant=4 / 3),
        lambda: least_probability.theorem_3_two_arms(calibrate=too_eager),
        lambda: least_probability.theorem_3_two_arms(partition=each_its_own),
        lambda: with_reach(least_probability.theorem_3_two_arms),
    ),
    "C14": (
        expected_pulls.entropies,
        lambda: expected_pulls.entropies(base=2.3),
        lambda: expected_pulls.entropies(weight=0.7),
        lambda: expected_pulls.entropies(least=1 / 23),
        lambda: mock.patch.object(expected_pulls, "relative_entropy", with_entropy)(
            expected_pulls.entropies
        )(),
    ),
    "C15": (
        least_probability.other_arms,
        lambda: least_probability.other_arms(count=three_times_hpcm),
        lambda: least_probability.other_arms(count=larger_hpcm),
        lambda: least_probability.other_arms(deltas=(1 / 3, 0.1)),  # without the condition δ ≤ 1/6
        lambda: least_probability.other_arms(calibrate=too_eager),
        lambda: with_reach(least_probability.other_arms),
    ),
    "C16": (
        changed_measure,
        partial(changed_measure, sign=-1.0),
        partial(changed_measure, entropy=lambda p, q: 10 * float(divergence.relative_entropy(p, q))),
        wide_errors,
    ),
    "C17": (expected_pulls.tsybakov, lambda: expected_pulls.tsybakov(errors=both_sides)),
    "C39": (
        counter_example.matches_theorem_1,
        lambda: counter_example.matches_theorem_1(
            constant=100
        ),  # as if (ε^{γ/T} + ε)² were at most 2.5 ε^{2γ/T}
        lambda: counter_example.matches_theorem_1(room=lambda *_: True),  # without the condition
    ),
    "C40": (
        least_probability.larger_probability,
        # The event's probability is doubled, so that nothing is left to tell the two problems apart.
        lambda: least_probability.larger_probability(constant=lambda p, d: HPCM_AT(min(2 * p, 1), d)),
        lambda: least_probability.larger_probability(constant=lambda p, d: 1.5 * HPCM_AT(p, d)),
        lambda: least_probability.larger_probability(says_first=1.0),  # one error counted for two problems
        lambda: least_probability.larger_probability(excess=1.5),  # no longer PAC
        lambda: least_probability.larger_probability(excess=0.0),  # always pulls
    ),
    "C41": (
        least_probability.best_arm,
        lambda: least_probability.best_arm(count=three_times_hpcm),
        lambda: least_probability.best_arm(count=larger_hpcm),
        lambda: least_probability.best_arm(deltas=(1 / 3, 0.1)),
        lambda: least_probability.best_arm(calibrate=too_eager),
        lambda: with_reach(least_probability.best_arm),
    ),
    "C44": (expected_pulls.iterated_logarithms, lambda: expected_pulls.iterated_logarithms(power=1)),
    "C48": (
        expected_pulls.one_round,
        lambda: expected_pulls.one_round(constant=1.6),
        lambda: expected_pulls.one_round(constant=0.9),
    ),
    "C49": (
        least_probability.second_inequality,
        lambda: least_probability.second_inequality(constant=1 / 2),  # more than the first inequality gives
        lambda: least_probability.second_inequality(constant=2),
        lambda: least_probability.second_inequality(constant=1 / 12),  # true, but not what is printed
        lambda: least_probability.second_inequality(calibrate=too_eager),
        lambda: least_probability.second_inequality(partition=each_its_own),
        lambda: with_reach(least_probability.second_inequality),
    ),
    "C56": (
        least_probability.any_number_of_arms,
        lambda: least_probability.any_number_of_arms(count=three_times_hpcm),
        lambda: least_probability.any_number_of_arms(share=1 / 6),  # all that is expected, not half of it
        lambda: least_probability.any_number_of_arms(chance=1 / 6),
    ),
}
