"""Notebook 18: the complexity, the partition, and the remarks on the theorems."""

import math
from unittest import mock

import numpy as np
from compendium.around_the_theorems import complexity, partial_order, partition, remarks, sample_needs
from compendium.shared import cost_bounds, lineup, problem_sets

import ebr
from ebr.algorithms import baselines
from ebr.theory import divergence
from planted.algorithms import Backwards, DropsNobody, Meddling, TooManyPulls
from planted.lower_bounds import a_quarter_more
from planted.upper_bounds import at_few_ends

SHAPES = [(2, 3), (3, 3)]
SEQUENTIAL = complexity.raced([0.2])


def restricted_class(make=ebr.ElasticBatchRacing):
    return remarks.restricted_class(problem_sets.random_problems(20, 1), 1, make)


def one_bin_on(problem, epsilon, deadline):
    return np.minimum(cost_bounds.partition(problem, epsilon, deadline) + 1, deadline)


def upside_down(gamma, epsilon, deadline):
    """H with exponent + 2 in place of − 2."""
    return sum((epsilon ** (index / deadline) + epsilon) ** 2 for index in gamma)


def half_a_bin(gamma, epsilon, deadline):
    """sup H in the middle of each bin, not at its lower end."""
    return sum((epsilon ** ((index - 0.5) / deadline) + epsilon) ** -2 for index in gamma)


def without_jump(gamma, epsilon, deadline):
    """The least H if N_i* were max(Δ_i, ε)^{−2}, which does not jump at Δ_i = ε."""
    return sum(max(epsilon ** ((index - 1) / deadline), epsilon) ** -2 for index in gamma)


def wide_bins(gamma, epsilon, deadline):
    """The least H if every bin were a tenth of the scale wide, however large T is."""
    return sum((epsilon ** (index / deadline - 0.1) + epsilon) ** -2 for index in gamma)


class WideSequential(ebr.SequentialRacing):
    """20σ in place of 4σ."""

    def deviation(self, pulls, n_arms):
        return 5 * super().deviation(pulls, n_arms)


def mirrored_bound(problem, epsilon, deadline, delta):
    """Theorem 1's bound with T + 1 − γ_i in place of γ_i."""
    index = deadline - cost_bounds.partition(problem, epsilon, deadline)
    return np.ceil(cost_bounds.schedule(problem, epsilon, deadline, delta))[index].sum()


def easier(**planted):
    return partial_order.easier_is_cheaper(SHAPES, [0.2, 0.05], 200, 1, **planted)


def sequential(**planted):
    return complexity.sequential_complexity(SEQUENTIAL, 20, 1, **planted)


def without_tolerance(problem, epsilon):
    """H with Δ_i² + ε⁴ in place of (Δ_i + ε)²; the ε⁴ keeps it finite."""
    return float((1 / (problem.gaps**2 + epsilon**4)).sum())


def mean_arm(problem, epsilon):
    """H with the mean of the N_i* in place of their sum."""
    return problem.complexity(epsilon) / problem.n_arms


def with_sigma(n_arms, epsilon, delta, sigma, right=baselines.passive_pulls):
    """σ³ in place of σ²."""
    return sigma * right(n_arms, epsilon, delta, sigma)


def with_constant(constant):
    """Theorem 2 as printed, with another constant in place of 640."""
    return lambda *place, printed: constant / 640 * cost_bounds.problem_upper_bound(*place, printed=printed)


def no_price(change):
    """C51 with an error in the tuned algorithm."""
    return complexity.no_price_on_one_problem(
        [1e-6], make=lambda epsilon, delta: change(complexity.tuned(epsilon, delta))
    )


def doubled(*place):
    return 2 * complexity.characteristic_lower_bound(*place)


PLANTED = {
    "C10": (remarks.remark, lambda: remarks.remark(rounds_needed=1.9)),
    "C11": (
        partition.definition_1,
        lambda: partition.definition_1(partition=one_bin_on),
        lambda: partition.definition_1(supremum=upside_down),
        lambda: partition.definition_1(supremum=half_a_bin),
    ),
    "C33": (
        partition.shrinks,
        lambda: partition.shrinks(infimum=without_jump),
        lambda: partition.shrinks(infimum=wide_bins),
    ),
    "C34": (
        at_few_ends(remarks, remarks.tightest),
        at_few_ends(remarks, remarks.tightest, with_constant(1300)),
        at_few_ends(remarks, remarks.tightest, with_constant(600)),
    ),
    "C35": (
        restricted_class,
        lambda: restricted_class(make=Meddling),
        lambda: restricted_class(make=TooManyPulls),
    ),
    "C37": (
        remarks.passive_design,
        lambda: remarks.passive_design(constant=0.5),
        lambda: mock.patch.object(baselines, "passive_pulls", with_sigma)(remarks.passive_design)(),
        lambda: remarks.passive_design(constant=3),  # the exact tail is still below δ, the bound is not
    ),
    "C38": (
        remarks.passive_against_elimination,
        # Without a union over the arms; with a union over all pairs.
        lambda: remarks.passive_against_elimination(passive=lambda n, d, t: math.log(1 / d)),
        lambda: remarks.passive_against_elimination(passive=lambda n, d, t: 2 * math.log(n) - math.log(d)),
        # log n in place of ilog^T(n).
        lambda: remarks.passive_against_elimination(elimination=remarks.passive_factor),
    ),
    "C47": (
        easier,
        lambda: easier(make=Backwards),
        lambda: easier(make=TooManyPulls),
        lambda: easier(make=DropsNobody),
        lambda: easier(bound=mirrored_bound),
    ),
    "C50": (
        sequential,
        lambda: sequential(make=WideSequential),
        lambda: sequential(complexity=without_tolerance),
        lambda: sequential(complexity=mean_arm),
    ),
    "C51": (
        lambda: complexity.no_price_on_one_problem([1e-5, 1e-6]),
        lambda: no_price(lambda tuned: tuned._replace(quantile=tuned.quantile / 2)),  # certified too soon
        lambda: no_price(
            lambda tuned: tuned._replace(second=tuned.second / 2)
        ),  # too few pulls to fall back on
        lambda: no_price(lambda tuned: tuned._replace(first=tuned.second)),  # not tuned to ν
        lambda: complexity.no_price_on_one_problem([1e-6], lower=doubled),
    ),
    "C52": (
        complexity.matches_theorem_2,
        lambda: complexity.matches_theorem_2(second=with_constant(1300)),
        lambda: complexity.matches_theorem_2(fourth=lambda e, t, d: 1 / (100 * e**2)),
        lambda: complexity.matches_theorem_2(
            fifth=lambda e, t, d: math.log(1 / (2 * d)) / 192 * e ** (-1 / t)
        ),
    ),
    "C57": (
        sample_needs.worst_case,
        lambda: sample_needs.worst_case(a_quarter_more),
        lambda: sample_needs.worst_case(
            lambda gamma, *place: len(gamma) ** -0.5 * cost_bounds.partition_lower_bound(gamma, *place)
        ),
    ),
    "C58": (
        sample_needs.prior_costs,
        lambda: sample_needs.prior_costs(
            lineup.ALGORITHMS | {"AE": lambda t, e, d: ebr.AggressiveElimination(t, e**0.5, d)}
        ),
        lambda: sample_needs.prior_costs(
            lineup.ALGORITHMS | {"kδER": lambda t, e, d: ebr.DeltaElimination(t, e**1.1, d)}
        ),
    ),
    "C59": (
        sample_needs.needs_the_gap,
        lambda: sample_needs.needs_the_gap(lambda t, e, d: ebr.AggressiveElimination(t, e / 7, d)),
        lambda: sample_needs.needs_the_gap(lambda t, e, d: ebr.AggressiveElimination(t, min(10 * e, 0.9), d)),
    ),
    "C60": (
        sample_needs.warranted_once,
        lambda: sample_needs.warranted_once(lambda p, e, t, d: cost_bounds.problem_upper_bound(p, e, 1, d)),
        lambda: sample_needs.warranted_once(
            lambda p, e, t, d: cost_bounds.problem_upper_bound(p, e, 2 * t, d)
        ),
    ),
    "C61": (
        sample_needs.two_means,
        lambda: sample_needs.two_means(enough=lambda d: 2 * math.log(1 / d)),
        lambda: sample_needs.two_means(needed=lambda d: 4 * float(divergence.relative_entropy(1 - d, d))),
    ),
    "C62": (
        sample_needs.one_mean,
        lambda: sample_needs.one_mean(enough=lambda d: 2 * math.log(1 / d)),
        lambda: sample_needs.one_mean(needed=lambda d: 4 * float(divergence.relative_entropy(1 - d, d))),
        lambda: sample_needs.one_mean(reach=lambda gap, epsilon: gap + 2 * epsilon),
    ),
}
