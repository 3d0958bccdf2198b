"""Notebook 03."""

import math
from functools import cache

import numpy as np
from compendium import adversary, lemmas, partition, problem_sets, race_tables, upper_bounds

import ebr
from planted.algorithms import (
    Backwards,
    LooseRule,
    Meddling,
    SignFlipped,
    TooFewPulls,
    TooManyPulls,
    TooWide,
)

SHAPES = [(2, 3), (3, 3)]

cases = cache(adversary.inside)
witnesses = cache(upper_bounds.printed_races)


@cache
def races(make=ebr.ElasticBatchRacing):
    settings = [*problem_sets.hardest_problems(SHAPES), *problem_sets.random_problems(40, seed=1)]
    return race_tables.measure(settings, runs=300, seed=1, make=make)


@cache
def savings(make=ebr.ElasticBatchRacing):
    return lemmas.savings({"Setup 2": ebr.setup_2()}, 15, 0.01, 0.01, 1000, 1, make)


def guarantee(narrow=ebr.ElasticBatchRacing, raced=ebr.ElasticBatchRacing):
    return lemmas.guarantee(cases(), cases(narrow=True, make=narrow), races(raced), lemmas.empty_race())


def slack_term(make=ebr.ElasticBatchRacing):
    without = cases(make=lemmas.WithoutSlack)
    return lemmas.slack_term(cases(make=make), cases(narrow=True, make=make), without, savings(make))


def restricted_class(make=ebr.ElasticBatchRacing):
    return upper_bounds.restricted_class(problem_sets.random_problems(20, 1), 1, make)


def one_bin_on(problem, epsilon, deadline):
    return np.minimum(problem.partition(epsilon, deadline) + 1, deadline)


def upside_down(gamma, epsilon, deadline):
    """H with + 2 for − 2 in the exponent."""
    return sum((epsilon ** (index / deadline) + epsilon) ** 2 for index in gamma)


def without_jump(gamma, epsilon, deadline):
    """The least H if N_i* were max(Δ_i, ε)^{−2}, which does not jump at Δ_i = ε."""
    return sum(max(epsilon ** ((index - 1) / deadline), epsilon) ** -2 for index in gamma)


def wide_bins(gamma, epsilon, deadline):
    """The least H if every bin were a tenth of the scale wide, however large T is."""
    return sum((epsilon ** (index / deadline - 0.1) + epsilon) ** -2 for index in gamma)


PLANTED = {
    "C01": (guarantee, lambda: guarantee(raced=TooFewPulls), lambda: guarantee(narrow=LooseRule)),
    "C04": (lambda: lemmas.survival(cases()), lambda: lemmas.survival(cases(make=LooseRule))),
    "C05": (
        lambda: lemmas.algorithm_survival(cases(), lemmas.empty_race()),
        lambda: lemmas.algorithm_survival(cases(make=LooseRule), lemmas.empty_race()),
        # The leader kept where the printed rule drops it.
        lambda: lemmas.algorithm_survival(cases(), lemmas.empty_race(returned_from="last round")),
    ),
    "C06": (
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races()),
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(), constant=85),
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(), printed=90),
        lambda: lemmas.runtime_lemma(cases(), cases(), races()),  # D for D′
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(TooManyPulls)),
    ),
    "C07": (
        lambda: upper_bounds.theorem_1(races(), witnesses(), cases(narrow=True)),
        lambda: upper_bounds.theorem_1(races(TooManyPulls), witnesses(), cases(narrow=True)),
        lambda: upper_bounds.theorem_1(races(), witnesses(), cases(narrow=True, make=TooManyPulls)),
        lambda: upper_bounds.theorem_1(races(), witnesses(corrected=True), cases(narrow=True)),
    ),
    "C08": (
        lambda: upper_bounds.theorem_1_second_form(races(), witnesses()),
        lambda: upper_bounds.theorem_1_second_form(races(), witnesses(), constant=300),
        lambda: upper_bounds.theorem_1_second_form(races(TooWide), witnesses()),
        lambda: upper_bounds.theorem_1_second_form(races(), witnesses(corrected=True)),
    ),
    "C09": (
        lambda: upper_bounds.theorem_2(races(), witnesses()),
        lambda: upper_bounds.theorem_2(races(), witnesses(), constant=300),
        lambda: upper_bounds.theorem_2(races(TooWide), witnesses()),
        lambda: upper_bounds.theorem_2(races(), witnesses(corrected=True)),
    ),
    "C10": (upper_bounds.remark, lambda: upper_bounds.remark(rounds_needed=1.9)),
    "C11": (
        partition.definition_1,
        lambda: partition.definition_1(partition=one_bin_on),
        lambda: partition.definition_1(supremum=upside_down),
    ),
    "C29": (slack_term, lambda: slack_term(make=SignFlipped), lambda: slack_term(make=LooseRule)),
    "C33": (
        partition.shrinks,
        lambda: partition.shrinks(infimum=without_jump),
        lambda: partition.shrinks(infimum=wide_bins),
    ),
    "C34": (
        upper_bounds.tightest,
        lambda: upper_bounds.tightest(constant=1300),
        lambda: upper_bounds.tightest(constant=600),
    ),
    "C35": (
        restricted_class,
        lambda: restricted_class(make=Meddling),
        lambda: restricted_class(make=TooManyPulls),
    ),
    "C37": (upper_bounds.passive_design, lambda: upper_bounds.passive_design(constant=0.5)),
    "C38": (
        upper_bounds.passive_against_elimination,
        lambda: upper_bounds.passive_against_elimination(passive=lambda n, d: math.log(1 / d)),
    ),
    "C47": (
        lambda: upper_bounds.easier_is_cheaper(SHAPES, 200, 1),
        lambda: upper_bounds.easier_is_cheaper(SHAPES, 200, 1, make=Backwards),
    ),
}
