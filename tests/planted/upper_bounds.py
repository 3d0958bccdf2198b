"""Notebook 03."""

import math
from functools import cache, partial
from unittest import mock

import numpy as np
from compendium.shared import adversary, problem_sets
from compendium.upper_bounds import complexity, cost_theorems, lemmas, partial_order, partition, race_tables

import ebr
from ebr.theory import bounds
from planted.algorithms import (
    Backwards,
    DropsNobody,
    LooseRule,
    Meddling,
    SignFlipped,
    TooFewPulls,
    TooManyPulls,
    TooWide,
)

SHAPES = [(2, 3), (3, 3)]

cases = cache(adversary.inside)
witnesses = cache(cost_theorems.printed_races)
SEQUENTIAL = complexity.raced([0.2])


@cache
def races(make=ebr.ElasticBatchRacing):
    settings = [*problem_sets.hardest_problems(SHAPES), *problem_sets.random_problems(40, seed=1)]
    return race_tables.measure(settings, runs=300, seed=1, make=make)


@cache
def savings(make=ebr.ElasticBatchRacing):
    return lemmas.savings({"Setup 2": ebr.setup_2()}, 15, 0.01, 0.01, 1000, 1, make)


def guarantee(narrow=ebr.ElasticBatchRacing, raced=ebr.ElasticBatchRacing):
    return lemmas.guarantee(cases(), cases(narrow=True, make=narrow), races(raced), lemmas.emptied_races())


def slack_term(make=ebr.ElasticBatchRacing):
    without = cases(make=lemmas.WithoutSlack)
    return lemmas.slack_term(cases(make=make), cases(narrow=True, make=make), without, savings(make))


def restricted_class(make=ebr.ElasticBatchRacing):
    return cost_theorems.restricted_class(problem_sets.random_problems(20, 1), 1, make)


def one_bin_on(problem, epsilon, deadline):
    return np.minimum(problem.partition(epsilon, deadline) + 1, deadline)


def upside_down(gamma, epsilon, deadline):
    """H with + 2 for − 2 in the exponent."""
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


class TightRule(ebr.ElasticBatchRacing):
    """η/2 in place of η."""

    def slack(self, n_arms):
        return super().slack(n_arms) / 2


class WideSequential(ebr.SequentialRacing):
    """20σ in place of 4σ."""

    def deviation(self, pulls, n_arms):
        return 5 * super().deviation(pulls, n_arms)


def mirrored_bound(problem, epsilon, deadline, delta):
    """Theorem 1's bound with T + 1 − γ_i for γ_i."""
    index = deadline - problem.partition(epsilon, deadline)
    return np.ceil(bounds.schedule(problem, epsilon, deadline, delta))[index].sum()


def easier(**planted):
    return partial_order.easier_is_cheaper(SHAPES, [0.2, 0.05], 200, 1, **planted)


def sequential(**planted):
    return complexity.sequential_complexity(SEQUENTIAL, 20, 1, **planted)


def without_tolerance(problem, epsilon):
    """H with Δ_i² in place of (Δ_i + ε)², but for ε⁴, lest it be infinite."""
    return float((1 / (problem.gaps**2 + epsilon**4)).sum())


def mean_arm(problem, epsilon):
    """H with the mean of the N_i* in place of their sum."""
    return problem.complexity(epsilon) / problem.n_arms


def with_sigma(n_arms, epsilon, delta, sigma, right=bounds.passive_pulls):
    """σ³ in place of σ²."""
    return sigma * right(n_arms, epsilon, delta, sigma)


def with_constant(bound, constant):
    """One of the paper's bounds with another constant, printed or not."""
    return partial(bound, constant=constant)


def no_price(change):
    """C51 with an algorithm that is not what it should be."""
    return complexity.no_price_on_one_problem(
        [1e-6], make=lambda epsilon, delta: change(complexity.tuned(epsilon, delta))
    )


def less(bound):
    """300 for 320."""
    return lambda *place: bound(*place, constant=300)


def doubled(*place):
    return 2 * complexity.characteristic_lower_bound(*place)


PLANTED = {
    "C01": (guarantee, lambda: guarantee(raced=TooFewPulls), lambda: guarantee(narrow=LooseRule)),
    "C04": (
        lambda: lemmas.survival(cases()),
        lambda: lemmas.survival(cases(make=LooseRule)),
        lambda: lemmas.survival(cases(make=TightRule)),
    ),
    "C05": (
        lambda: lemmas.algorithm_survival(cases(), lemmas.emptied_races()),
        lambda: lemmas.algorithm_survival(cases(make=LooseRule), lemmas.emptied_races()),
        # The leader kept where the printed rule drops it.
        lambda: lemmas.algorithm_survival(cases(), lemmas.emptied_races(returned_from="last round")),
    ),
    "C06": (
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races()),
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(), constant=85),
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(), printed=90),
        lambda: lemmas.runtime_lemma(cases(), cases(), races()),  # D for D′
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(TooManyPulls)),
    ),
    "C07": (
        lambda: cost_theorems.theorem_1(races(), witnesses(), cases(narrow=True)),
        lambda: cost_theorems.theorem_1(races(TooManyPulls), witnesses(), cases(narrow=True)),
        lambda: cost_theorems.theorem_1(races(), witnesses(), cases(narrow=True, make=TooManyPulls)),
        lambda: cost_theorems.theorem_1(races(), witnesses(corrected=True), cases(narrow=True)),
    ),
    "C08": (
        lambda: cost_theorems.theorem_1_second_form(races(), witnesses()),
        lambda: cost_theorems.theorem_1_second_form(races(), witnesses(), less(bounds.hardest_upper_bound)),
        lambda: cost_theorems.theorem_1_second_form(races(TooWide), witnesses()),
        lambda: cost_theorems.theorem_1_second_form(races(), witnesses(corrected=True)),
    ),
    "C09": (
        lambda: cost_theorems.theorem_2(races(), witnesses()),
        lambda: cost_theorems.theorem_2(races(), witnesses(), less(bounds.problem_upper_bound)),
        lambda: cost_theorems.theorem_2(races(TooWide), witnesses()),
        lambda: cost_theorems.theorem_2(races(), witnesses(corrected=True)),
    ),
    "C10": (cost_theorems.remark, lambda: cost_theorems.remark(rounds_needed=1.9)),
    "C11": (
        partition.definition_1,
        lambda: partition.definition_1(partition=one_bin_on),
        lambda: partition.definition_1(supremum=upside_down),
        lambda: partition.definition_1(supremum=half_a_bin),
    ),
    "C29": (slack_term, lambda: slack_term(make=SignFlipped), lambda: slack_term(make=LooseRule)),
    "C33": (
        partition.shrinks,
        lambda: partition.shrinks(infimum=without_jump),
        lambda: partition.shrinks(infimum=wide_bins),
    ),
    "C34": (
        cost_theorems.tightest,
        lambda: cost_theorems.tightest(with_constant(bounds.problem_upper_bound, 1300)),
        lambda: cost_theorems.tightest(with_constant(bounds.problem_upper_bound, 600)),
    ),
    "C35": (
        restricted_class,
        lambda: restricted_class(make=Meddling),
        lambda: restricted_class(make=TooManyPulls),
    ),
    "C37": (
        cost_theorems.passive_design,
        lambda: cost_theorems.passive_design(constant=0.5),
        lambda: mock.patch.object(bounds, "passive_pulls", with_sigma)(cost_theorems.passive_design)(),
        lambda: cost_theorems.passive_design(constant=3),  # the exact tail is still below δ, the bound is not
    ),
    "C38": (
        cost_theorems.passive_against_elimination,
        # Without a union over the arms, or with one over all pairs.
        lambda: cost_theorems.passive_against_elimination(passive=lambda n, d, t: math.log(1 / d)),
        lambda: cost_theorems.passive_against_elimination(
            passive=lambda n, d, t: 2 * math.log(n) - math.log(d)
        ),
        # log n in place of ilog^T(n).
        lambda: cost_theorems.passive_against_elimination(elimination=cost_theorems.passive_factor),
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
        lambda: complexity.matches_theorem_2(second=with_constant(bounds.problem_upper_bound, 1300)),
        lambda: complexity.matches_theorem_2(fourth=lambda e, t, d: 1 / (100 * e**2)),
        lambda: complexity.matches_theorem_2(
            fifth=lambda e, t, d: math.log(1 / (2 * d)) / 192 * e ** (-1 / t)
        ),
    ),
}
