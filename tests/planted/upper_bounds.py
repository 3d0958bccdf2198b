"""Notebook 03: Algorithm 1's guarantee and its cost theorems."""

from functools import cache, partial
from unittest import mock

from compendium.shared import adversary, cost_bounds, problem_sets
from compendium.upper_bounds import cost_theorems, lemmas, race_tables

import ebr
from planted.algorithms import DropsNobody, LooseRule, SignFlipped, TooFewPulls, TooManyPulls

SHAPES = [(2, 3), (3, 3)]
cases, witnesses = cache(adversary.inside), cache(cost_theorems.printed_races)


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


class TightRule(ebr.ElasticBatchRacing):
    """η/2 in place of η."""

    def slack(self, n_arms):
        return super().slack(n_arms) / 2


def at_few_ends(room, check, *errors):
    """A check of inequalities between bounds, at every fifth of the problems at the ends of bins."""

    def checked():
        few = [*problem_sets.problems_at_the_ends()][::5]
        with mock.patch.object(room, "problems_at_the_ends", return_value=few):
            return check(*errors)

    return checked


def second_form(raced=races, seen=witnesses, **error):
    return at_few_ends(cost_theorems, lambda: cost_theorems.theorem_1_second_form(raced(), seen(), **error))()


def theorem_2(raced=races, seen=witnesses, **error):
    return at_few_ends(cost_theorems, lambda: cost_theorems.theorem_2(raced(), seen(), **error))()


def less(bound):
    """A constant of 300 in place of 320."""
    return lambda problem, *place: (bound(problem, *place) - problem.n_arms) * 300 / 320 + problem.n_arms


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
        # The leader is kept where the printed rule drops it.
        lambda: lemmas.algorithm_survival(cases(), lemmas.emptied_races(returned_from="last round")),
    ),
    "C06": (
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races()),
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(), constant=85),
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(), printed=90),
        lambda: lemmas.runtime_lemma(cases(), cases(), races()),  # E in place of E′
        lambda: lemmas.runtime_lemma(cases(), cases(narrow=True), races(TooManyPulls)),
    ),
    "C07": (
        lambda: cost_theorems.theorem_1(races(), witnesses(), cases(narrow=True)),
        lambda: cost_theorems.theorem_1(races(TooManyPulls), witnesses(), cases(narrow=True)),
        lambda: cost_theorems.theorem_1(races(), witnesses(), cases(narrow=True, make=TooManyPulls)),
        lambda: cost_theorems.theorem_1(races(), witnesses(corrected=True), cases(narrow=True)),
    ),
    "C08": (
        second_form,
        lambda: second_form(bound=less(cost_bounds.hardest_upper_bound)),
        lambda: second_form(partial(races, DropsNobody)),
        lambda: second_form(seen=partial(witnesses, corrected=True)),
    ),
    "C09": (
        theorem_2,
        lambda: theorem_2(bound=less(cost_bounds.problem_upper_bound)),
        lambda: theorem_2(partial(races, DropsNobody)),
        lambda: theorem_2(seen=partial(witnesses, corrected=True)),
    ),
    "C29": (slack_term, lambda: slack_term(make=SignFlipped), lambda: slack_term(make=LooseRule)),
}
