"""No check is a formality: under a planted error each gives another verdict than the ledger's.

Every claim that is decided has one or more planted errors here: a constant scaled, a sign flipped, an
elimination rule loosened, a number of the figure changed. The unspoilt check, beside it, gives the ledger's
verdict. How likely chance alone is to change a verdict, the ledger says (`false_alarm`).
"""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ebr
from ebr import claims, coverage, inequalities, lemmas, measured, section5, setting, slack, upper_bounds
from ebr.confidence import sequential_deviation

LEDGER = {claim.id: claim for claim in claims.ledger()}
DATA = Path(__file__).parents[1] / "figures" / "data"
SHAPES = [(2, 3), (3, 3)]


class TooNarrow(ebr.ElasticBatchRacing):
    def deviation(self, pulls, n_arms):
        return 0.2 * super().deviation(pulls, n_arms)


class TooFewPulls(ebr.ElasticBatchRacing):
    def pulls_by_round(self, n_arms):
        return np.ceil(super().pulls_by_round(n_arms) / 1000).astype(int)


class TooManyPulls(ebr.ElasticBatchRacing):
    def pulls_by_round(self, n_arms):
        return super().pulls_by_round(n_arms) * 6 // 5


class LooseRule(ebr.ElasticBatchRacing):
    def slack(self, n_arms):
        return 3 * self.epsilon


class SignFlipped(ebr.ElasticBatchRacing):
    def slack(self, n_arms):
        return -super().slack(n_arms)


class Meddling(ebr.ElasticBatchRacing):
    """Asks for one pull more of an arm that did well."""

    def play(self, n_arms, replicates=1):
        game = super().play(n_arms, replicates)
        pulls = next(game)
        while True:
            sums = yield pulls
            try:
                pulls = game.send(sums)
            except StopIteration as end:
                return end.value
            pulls = pulls + ((pulls > 0) & (sums > 0.7 * pulls.max()))


class Backwards(ebr.ElasticBatchRacing):
    """Spends the last round's pulls at once on easy problems, whose leader is clear, and few on hard ones."""

    def play(self, n_arms, replicates=1):
        sums = yield np.full((replicates, n_arms), self.pulls_by_round(n_arms)[0])
        spread = np.ptp(sums, axis=1, keepdims=True) / self.pulls_by_round(n_arms)[0]
        yield np.repeat((spread * 1e6).astype(int) + 1, n_arms, axis=1)
        return sums.argmax(axis=1)


cases = cache(lemmas.inside)
witnesses = cache(upper_bounds.printed_races)


@cache
def races(make=ebr.ElasticBatchRacing):
    settings = [*measured.hardest_problems(SHAPES), *measured.random_problems(40, seed=1)]
    return measured.measure(settings, runs=300, seed=1, make=make)


@cache
def misses(make=ebr.ElasticBatchRacing):
    problems = {"Bernoulli": ebr.Bernoulli([0.5, 0.4]), "Gaussian": ebr.Gaussian([0.5, 0.5], 1.0)}
    exact = coverage.exact_misses(problems, [1, 3], [0.1, 0.5], 0.2, make)
    return exact, coverage.measured_misses(problems, 2, 0.5, 0.3, 5000, 1, make)


@cache
def savings(make=ebr.ElasticBatchRacing):
    return slack.savings({"Setup 2": ebr.setup_2()}, 15, 0.01, 0.01, 1000, 1, make)


@cache
def figure_2():
    return pd.read_csv(DATA / "fig2.csv")


def section_5(claim, table):
    (finding,) = (finding for finding in section5.findings(table) if finding.claim == claim)
    return finding


def scaled(factor, **where):
    """Figure 2 with the pulls scaled at some points."""
    table = figure_2()
    mask = np.logical_and.reduce([table[key] == value for key, value in where.items()])
    assert mask.any()
    return table.assign(pulls=table["pulls"] * np.where(mask, factor, 1))


def figure_2_with(name, pulls):
    table = figure_2()
    return table.assign(pulls=table["pulls"].where(table["algorithm"] != name, pulls))


def between():
    """Pulls of EBR half-way between sequential and passive on a log axis."""
    table = figure_2()
    places = ["sweep", "setup", "deadline", "epsilon"]
    ends = table[table["algorithm"].isin(["sequential", "passive"])]
    middle = np.exp(np.log(ends.set_index(places)["pulls"]).groupby(level=places).mean())
    return middle.reindex(table.set_index(places).index).to_numpy()


@cache
def figure_1():
    problem = ebr.Bernoulli([0.7, 0.66, 0.3])
    algorithms = (
        ebr.ElasticBatchRacing(1, 0.05, 0.01),
        ebr.SequentialRacing(0.05, 0.01),
        ebr.ElasticBatchRacing(3, 0.05, 0.01),
    )
    return [ebr.simulate(algorithm, problem, 20, 1, per_arm=True) for algorithm in algorithms]


@cache
def opening():
    return section5.first_rounds([0.01, 0.1])


def c29(make):
    without = cases(make=slack.WithoutSlack)
    return slack.c29(cases(make=make), cases(narrow=True, make=make), without, savings(make))


def shifted(problem, epsilon, deadline):
    return np.minimum(problem.partition(epsilon, deadline) + 1, deadline)


# For each claim: the check as it is, and the same with planted errors.
PLANTED = {
    "C01": (
        lambda: lemmas.c01(cases(), cases(narrow=True), races(), lemmas.empty_race()),
        lambda: lemmas.c01(cases(), cases(narrow=True), races(TooFewPulls), lemmas.empty_race()),
        lambda: lemmas.c01(cases(), cases(narrow=True, make=LooseRule), races(), lemmas.empty_race()),
    ),
    "C02": (
        lambda: coverage.c02(*misses()),
        lambda: coverage.c02(misses(TooNarrow)[0], misses()[1]),
        lambda: coverage.c02(misses()[0], misses(TooNarrow)[1]),
        lambda: coverage.c02(*misses(), assumption=lambda n, t, d: math.log(n * t / d) >= 2),
    ),
    "C03": (
        lambda: coverage.c03(1000),
        lambda: coverage.c03(1000, factor=4 * (2 + math.log(2))),
        lambda: coverage.c03(1000, factor=(2 + math.log(2)) / 4),
    ),
    "C04": (lambda: lemmas.c04(cases()), lambda: lemmas.c04(cases(make=LooseRule))),
    "C05": (
        lambda: lemmas.c05(cases(), lemmas.empty_race()),
        lambda: lemmas.c05(cases(make=LooseRule), lemmas.empty_race()),
        lambda: lemmas.c05(cases(), emptied=0),
    ),
    "C06": (
        lambda: lemmas.c06(cases(), cases(narrow=True), races()),
        lambda: lemmas.c06(cases(), cases(narrow=True), races(), constant=85),
        lambda: lemmas.c06(cases(), cases(narrow=True), races(), printed=90),
        lambda: lemmas.c06(cases(), cases(), races()),
        lambda: lemmas.c06(cases(), cases(narrow=True), races(TooManyPulls)),
    ),
    "C07": (
        lambda: upper_bounds.c07(races(), witnesses(), cases(narrow=True)),
        lambda: upper_bounds.c07(races(TooManyPulls), witnesses(), cases(narrow=True)),
        lambda: upper_bounds.c07(races(), witnesses(), cases(narrow=True, make=TooManyPulls)),
        lambda: upper_bounds.c07(races(), witnesses().assign(pulls=0), cases(narrow=True)),
    ),
    "C08": (
        lambda: upper_bounds.c08(races(), witnesses()),
        lambda: upper_bounds.c08(races(), witnesses(), constant=300),
        lambda: upper_bounds.c08(races().assign(over_1b=300), witnesses()),
        lambda: upper_bounds.c08(races(), witnesses().assign(pulls=0)),
    ),
    "C09": (
        lambda: upper_bounds.c09(races(), witnesses()),
        lambda: upper_bounds.c09(races(), witnesses(), constant=300),
        lambda: upper_bounds.c09(races().assign(over_2=300), witnesses()),
        lambda: upper_bounds.c09(races(), witnesses().assign(pulls=0)),
    ),
    "C10": (inequalities.c10, lambda: inequalities.c10(rounds_needed=1.9)),
    "C11": (inequalities.c11, lambda: inequalities.c11(partition=shifted)),
    "C22": (
        lambda: section_5("C22", figure_2()),
        lambda: section_5("C22", figure_2().assign(failures=lambda t: 1 * (t.index == 7))),
    ),
    "C23": (
        lambda: section_5("C23", figure_2()),
        lambda: section_5("C23", scaled(0.05, algorithm="EBR")),
    ),
    "C24": (
        lambda: section_5("C24", figure_2()),
        lambda: section_5("C24", scaled(0.001, algorithm="EBR", deadline=50)),
    ),
    "C25": (
        lambda: section_5("C25", figure_2()),
        lambda: section_5(
            "C25", figure_2().assign(pulls=lambda t: t["pulls"] * t["algorithm"].map(FAR_DEARER).fillna(1))
        ),
    ),
    "C26": (
        lambda: section_5("C26", figure_2()),
        lambda: section_5("C26", figure_2_with("AE", figure_2()["deadline"])),
    ),
    "C27": (
        lambda: section_5("C27", figure_2()),
        lambda: section_5("C27", scaled(1.1, algorithm="kδER", deadline=2)),
    ),
    "C28": (
        lambda: section5.c28(opening()),
        lambda: section5.c28(opening().assign(pulls=opening()["pulls"] * opening()["epsilon"])),
    ),
    "C29": (lambda: c29(ebr.ElasticBatchRacing), lambda: c29(SignFlipped), lambda: c29(LooseRule)),
    "C31": (
        lambda: section_5("C31", figure_2()),
        lambda: section_5("C31", scaled(0.1, algorithm="AE", epsilon=0.001)),
        lambda: section_5("C31", scaled(0.001, algorithm="EBR")),
    ),
    "C32": (
        lambda: section_5("C32", figure_2()),
        lambda: section_5("C32", figure_2_with("EBR", between())),
    ),
    "C33": (inequalities.c33, lambda: inequalities.c33(deadlines=(10, 20))),
    "C34": (
        inequalities.c34,
        lambda: inequalities.c34(constant=1300),
        lambda: inequalities.c34(constant=600),
    ),
    "C35": (
        lambda: upper_bounds.c35(measured.random_problems(20, 1), 1),
        lambda: upper_bounds.c35(measured.random_problems(20, 1), 1, make=Meddling),
        lambda: upper_bounds.c35(measured.random_problems(20, 1), 1, make=TooManyPulls),
    ),
    "C36": (
        lambda: coverage.c36(100, 15, 0.01),
        lambda: coverage.c36(100, 15, 0.01, lambda *x: 0.8 * sequential_deviation(*x)),
        lambda: coverage.c36(100, 15, 0.01, lambda tau, *x: sequential_deviation(tau, *x) / tau**0.1),
    ),
    "C37": (upper_bounds.c37, lambda: upper_bounds.c37(constant=0.5)),
    "C38": (inequalities.c38, lambda: inequalities.c38(passive=lambda n, d: math.log(1 / d))),
    "C46": (
        lambda: setting.c46(*figure_1(), arm=2, rounds=3),
        lambda: setting.c46(*figure_1()[::-1], arm=2, rounds=3),
        lambda: setting.c46(*figure_1(), arm=2, rounds=1),
    ),
    "C47": (
        lambda: upper_bounds.c47(SHAPES, 200, 1),
        lambda: upper_bounds.c47(SHAPES, 200, 1, make=Backwards),
    ),
}
FAR_DEARER = {"passive": 100.0, "kδER": 100.0}


def test_every_decided_claim_has_a_planted_error_and_no_other_has():
    decided = {name for name, claim in LEDGER.items() if claim.verdict in claims.DECIDED}
    assert set(PLANTED) == decided


@pytest.mark.parametrize("claim", PLANTED)
def test_a_planted_error_changes_the_verdict(claim):
    check, *spoilt = PLANTED[claim]
    assert check().claim == claim
    assert check().verdict == LEDGER[claim].verdict
    assert spoilt
    for number, planted in enumerate(spoilt, start=1):
        assert planted().verdict != LEDGER[claim].verdict, f"planted error {number} goes unseen"


def test_a_planted_error_in_the_ledger_is_seen():
    # The same comparison, spoilt from the other side.
    claim = replace(LEDGER["C10"], verdict="fails as stated")
    assert inequalities.c10().verdict != claim.verdict
