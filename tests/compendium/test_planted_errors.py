"""No check is a formality: under a planted error each gives another verdict than the ledger's.

Every claim that is decided has one or more planted errors here: a constant scaled, a sign flipped, an
elimination rule loosened, a number of the figure changed. The unspoilt check, beside it, gives the ledger's
verdict. How likely chance alone is to change a verdict, the ledger says (`false_alarm`).
"""

import math
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from compendium import (
    change_of_measure,
    confidence,
    failure_probability,
    ledger,
    lemmas,
    lineup,
    lower_bounds,
    partition,
    problem_sets,
    race_tables,
    scheduling,
    setting,
    sharp_racing,
    simulations,
    two_rounds,
    upper_bounds,
)

import ebr
from ebr.algorithms.game import advance
from ebr.theory import policies
from ebr.theory.confidence import sequential_deviation

LEDGER = {claim.id: claim for claim in ledger.ledger()}
DATA = Path(__file__).parents[2] / "figures" / "data"
SHAPES = [(2, 3), (3, 3)]


class TooNarrow(ebr.ElasticBatchRacing):
    def deviation(self, pulls, n_arms):
        return 0.2 * super().deviation(pulls, n_arms)


class TooFewPulls(ebr.ElasticBatchRacing):
    def pulls_by_round(self, n_arms):
        return np.ceil(super().pulls_by_round(n_arms) / 1000).astype(int)


class SharpTooFewPulls(ebr.SharpElasticBatchRacing):
    def pulls_by_round(self, n_arms, rewards=None):
        return super().pulls_by_round(n_arms, rewards) // 2 + 1


class SharpWithoutUnion(ebr.SharpElasticBatchRacing):
    def log_terms(self, n_arms, rewards=None):
        return super().log_terms(2, rewards)


class SharpEager(ebr.SharpElasticBatchRacing):
    def certified(self, leader, runner_up, *place):
        return super().certified(leader, runner_up - 2 * self.epsilon, *place)


class SharpNarrow(ebr.SharpElasticBatchRacing):
    def reach(self, *place):
        return super().reach(*place) / 2


class SharpRoundedCarelessly(ebr.SharpElasticBatchRacing):
    def reach(self, leader, *place):
        # Where nobody is to be dropped, leader − leader may be just above 0: arms without a success go.
        return np.minimum(super().reach(leader, *place), leader)


class SharpWide(ebr.SharpElasticBatchRacing):
    def reach(self, *place):
        return super().reach(*place) * 2


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

    def play(self, n_arms, replicates=1, **known):
        game, more = super().play(n_arms, replicates, **known), 0
        turn = advance(game)
        while turn.pulls is not None:
            pulls = turn.pulls + more * (turn.pulls > 0)
            sums = yield pulls
            more = sums > 0.7 * pulls.max()
            turn = advance(game, sums)
        return turn.arms


class Backwards(ebr.ElasticBatchRacing):
    """Spends the last round's pulls at once on easy problems, whose leader is clear, and few on hard ones."""

    def play(self, n_arms, replicates=1, **_):
        sums = yield np.full((replicates, n_arms), self.pulls_by_round(n_arms)[0])
        spread = np.ptp(sums, axis=1, keepdims=True) / self.pulls_by_round(n_arms)[0]
        yield np.repeat((spread * 1e6).astype(int) + 1, n_arms, axis=1)
        return sums.argmax(axis=1)


cases = cache(lemmas.inside)
witnesses = cache(upper_bounds.printed_races)


@cache
def races(make=ebr.ElasticBatchRacing):
    settings = [*problem_sets.hardest_problems(SHAPES), *problem_sets.random_problems(40, seed=1)]
    return race_tables.measure(settings, runs=300, seed=1, make=make)


@cache
def misses(make=ebr.ElasticBatchRacing):
    problems = {"Bernoulli": ebr.Bernoulli([0.5, 0.4]), "Gaussian": ebr.Gaussian([0.5, 0.5], 1.0)}
    exact = confidence.exact_misses(problems, [1, 3], [0.1, 0.5], 0.2, make)
    return exact, confidence.measured_misses(problems, 2, 0.5, 0.3, 5000, 1, make)


@cache
def savings(make=ebr.ElasticBatchRacing):
    return lemmas.savings({"Setup 2": ebr.setup_2()}, 15, 0.01, 0.01, 1000, 1, make)


@cache
def figure_2():
    return pd.read_csv(DATA / "fig2.csv")


def section_5(claim, table):
    (finding,) = (finding for finding in simulations.findings(table) if finding.claim == claim)
    return finding


def figure_3():
    return pd.read_csv(DATA / "fig3.csv")


@cache
def sharp_problems():
    return [*problem_sets.hardest_problems(SHAPES), *problem_sets.random_problems(20, 1)]


def x3(make=ebr.SharpElasticBatchRacing):
    adversary = sharp_racing.steps(sharp_problems(), 100, 1, make, "sub-Gaussian")
    return sharp_racing.x3(adversary, sharp_racing.races(sharp_problems(), 50, 1, make, "sub-Gaussian"), make)


def x4(make=ebr.SharpElasticBatchRacing):
    problems = problem_sets.bernoulli(sharp_problems())
    adversary = sharp_racing.steps(problems, 100, 1, make, "bounded")
    return sharp_racing.x4(adversary, sharp_racing.races(problems, 50, 1, make, "bounded"), make)


def x6(make):
    """Sharp EBR on two arms in one round, and on many arms with small means in fifteen."""
    tables = [
        failure_probability.paid({"sharp": place}, [0.01], 10, plain, 1, epsilon, {"sharp": make})
        for place, epsilon, plain in (
            (failure_probability.Hard(deadline=1, n_arms=2, top=0.55), 0.1, 100_000),
            (failure_probability.Hard(deadline=15, n_arms=16, top=0.0123), 0.01, 2_000),
        )
    ]
    return failure_probability.x6(pd.concat(tables))


def scaled(factor, table=None, **where):
    """Figure 2, or another table, with the pulls scaled at some points."""
    table = figure_2() if table is None else table
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
    return simulations.first_rounds([0.01, 0.1])


def c29(make):
    without = cases(make=lemmas.WithoutSlack)
    return lemmas.c29(cases(make=make), cases(narrow=True, make=make), without, savings(make))


class OnePull(ebr.ElasticBatchRacing):
    def pulls_by_round(self, n_arms):
        return np.ones(self.deadline, dtype=int)


def idle(deadline, epsilon, delta, sigma):
    """Nothing like PAC."""
    return {"EBR": OnePull(deadline, epsilon, delta, sigma)}


@cache
def costs(family=lineup.algorithms, epsilon=0.3):
    return lower_bounds.costs([(2, 2), (3, 2)], epsilon, 0.1, 150, 1, family)


@cache
def identities(sign=1.0):
    tables = {}
    for algorithm in (ebr.ElasticBatchRacing(3, 0.4, 0.1), ebr.Passive(0.4, 0.1)):
        pair = change_of_measure.close_pair(algorithm, 2, 0.5, 1)
        tables[repr(algorithm)] = change_of_measure.identities(algorithm, *pair, 20_000, 1, sign)
    return tables


def with_tenth_of_kl():
    """The divergences of the change-of-measure lemma scaled."""
    return {
        name: table.assign(left=table["left"].where(table["relation"] == "equal", table["left"] / 10))
        for name, table in identities().items()
    }


@cache
def scaling():
    return two_rounds.scaling([0.03, 0.003], 0.01)


@cache
def horns():
    return policies.horns(np.geomspace(100, 1e5, 12), 0.01, 0.01)


def steps(*changes):
    return two_rounds.proof_steps([0.05, 0.001], *changes)


@cache
def schedules():
    return scheduling.schedules([1, 2, 3], [4.0, 5.0, 20.0], 1)


def half_root(rounds, ratio):
    return scheduling.minimax_overpull(rounds, ratio) / 2


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
        lambda: confidence.c02(*misses()),
        lambda: confidence.c02(misses(TooNarrow)[0], misses()[1]),
        lambda: confidence.c02(misses()[0], misses(TooNarrow)[1]),
        lambda: confidence.c02(*misses(), assumption=lambda n, t, d: math.log(n * t / d) >= 2),
    ),
    "C03": (
        lambda: confidence.c03(1000),
        lambda: confidence.c03(1000, factor=4 * (2 + math.log(2))),
        lambda: confidence.c03(1000, factor=(2 + math.log(2)) / 4),
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
    "C10": (upper_bounds.c10, lambda: upper_bounds.c10(rounds_needed=1.9)),
    "C11": (partition.c11, lambda: partition.c11(partition=shifted)),
    "C12": (
        lambda: lower_bounds.c12(costs()),
        lambda: lower_bounds.c12(costs(idle, 0.1)),
        lambda: lower_bounds.c12(costs().assign(printed=lambda t: t["lower"])),
    ),
    "C13": (
        lambda: lower_bounds.c13(costs()),
        lambda: lower_bounds.c13(costs(idle, 0.1)),
        lambda: lower_bounds.c13(costs(), factor=1 / 3),
    ),
    "C14": (
        lower_bounds.c14,
        lambda: lower_bounds.c14(base=2.3),
        lambda: lower_bounds.c14(weight=0.7),
        lambda: lower_bounds.c14(least=1 / 23),
    ),
    "C15": (lambda: lower_bounds.c15(costs()), lambda: lower_bounds.c15(costs(idle, 0.1))),
    "C16": (
        lambda: change_of_measure.c16(identities()),
        lambda: change_of_measure.c16(identities(-1.0)),
        lambda: change_of_measure.c16(with_tenth_of_kl()),
    ),
    "C17": (
        lower_bounds.c17,
        lambda: lower_bounds.c17(errors=lambda tests, p, q: tests @ p + (1 - tests) @ q),
    ),
    "C18": (
        lambda: two_rounds.c18(steps(), scaling()),
        lambda: two_rounds.c18(steps(lambda x, y: 0.9 * two_rounds.bernoulli_kl(x, y)), scaling()),
        lambda: two_rounds.c18(steps(two_rounds.bernoulli_kl, 1.1 * 2 * math.log(2)), scaling()),
        lambda: two_rounds.c18(steps(two_rounds.bernoulli_kl, 2 * math.log(2), 1 / 49), scaling()),
        lambda: two_rounds.c18(steps(two_rounds.bernoulli_kl, 2 * math.log(2), 1 / 80), scaling()),
        lambda: two_rounds.c18(steps(), scaling().assign(best_chance=0.005)),
    ),
    "C19": (
        lambda: scheduling.c19(schedules()),
        lambda: scheduling.c19(schedules(), divisor=1),
        lambda: scheduling.c19(schedules().assign(found=0.5)),
    ),
    "C20": (
        scheduling.c20,
        lambda: scheduling.c20(root=lambda rounds, ratio: scheduling.printed_bound(rounds, ratio) / 8),
    ),
    "C21": (
        scheduling.c21,
        lambda: scheduling.c21(chance=1 / 9),
        lambda: scheduling.c21(root=lambda rounds, ratio: half_root(rounds, ratio) / 2),
    ),
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
        lambda: simulations.c28(opening()),
        lambda: simulations.c28(opening().assign(pulls=opening()["pulls"] * opening()["epsilon"])),
    ),
    "C29": (lambda: c29(ebr.ElasticBatchRacing), lambda: c29(SignFlipped), lambda: c29(LooseRule)),
    "C30": (
        lambda: two_rounds.c30(horns(), 0.01, scaling()),
        lambda: two_rounds.c30(horns().assign(middling=0.0), 0.01, scaling()),
        lambda: two_rounds.c30(horns(), 0.01, scaling().assign(best=lambda t: t["best"] * t["epsilon"])),
    ),
    "C31": (
        lambda: section_5("C31", figure_2()),
        lambda: section_5("C31", scaled(0.1, algorithm="AE", epsilon=0.001)),
        lambda: section_5("C31", scaled(0.001, algorithm="EBR")),
    ),
    "C32": (
        lambda: section_5("C32", figure_2()),
        lambda: section_5("C32", figure_2_with("EBR", between())),
    ),
    "C33": (partition.c33, lambda: partition.c33(deadlines=(10, 20))),
    "C34": (
        upper_bounds.c34,
        lambda: upper_bounds.c34(constant=1300),
        lambda: upper_bounds.c34(constant=600),
    ),
    "C35": (
        lambda: upper_bounds.c35(problem_sets.random_problems(20, 1), 1),
        lambda: upper_bounds.c35(problem_sets.random_problems(20, 1), 1, make=Meddling),
        lambda: upper_bounds.c35(problem_sets.random_problems(20, 1), 1, make=TooManyPulls),
    ),
    "C36": (
        lambda: confidence.c36(100, 15, 0.01),
        lambda: confidence.c36(100, 15, 0.01, lambda *x: 0.8 * sequential_deviation(*x)),
        lambda: confidence.c36(100, 15, 0.01, lambda tau, *x: sequential_deviation(tau, *x) / tau**0.1),
    ),
    "C37": (upper_bounds.c37, lambda: upper_bounds.c37(constant=0.5)),
    "C38": (upper_bounds.c38, lambda: upper_bounds.c38(passive=lambda n, d: math.log(1 / d))),
    "C39": (lower_bounds.c39, lambda: lower_bounds.c39(constant=100)),
    "C40": (
        lower_bounds.c40,
        lambda: lower_bounds.c40(share=-1.0),
        lambda: lower_bounds.c40(idle=0.0),
    ),
    "C41": (lambda: lower_bounds.c41(costs()), lambda: lower_bounds.c41(costs(idle, 0.1))),
    "C42": (two_rounds.c42, lambda: two_rounds.c42(idle=0.0), lambda: two_rounds.c42(idle=1.5)),
    "C44": (lower_bounds.c44, lambda: lower_bounds.c44(power=1)),
    "C45": (two_rounds.c45, lambda: two_rounds.c45(gap_over_noise=1.0)),
    "C46": (
        lambda: setting.c46(*figure_1(), arm=2, rounds=3),
        lambda: setting.c46(*figure_1()[::-1], arm=2, rounds=3),
        lambda: setting.c46(*figure_1(), arm=2, rounds=1),
    ),
    "C48": (lower_bounds.c48, lambda: lower_bounds.c48(constant=1.6)),
    "X1": (
        lambda: scheduling.x1(schedules()),
        lambda: scheduling.x1(schedules().assign(exact=lambda t: t["exact"] * 1.002)),
        lambda: scheduling.x1(schedules().assign(found=lambda t: t["found"] * 0.999)),
        lambda: scheduling.x1(schedules().assign(base=lambda t: t["base"] * 1.2)),
    ),
    "X2": (scheduling.x2, lambda: scheduling.x2(root=half_root)),
    "C47": (
        lambda: upper_bounds.c47(SHAPES, 200, 1),
        lambda: upper_bounds.c47(SHAPES, 200, 1, make=Backwards),
    ),
}
SHARP_ERRORS = (SharpTooFewPulls, SharpWithoutUnion, SharpEager, SharpNarrow, SharpWide)
PLANTED["X3"] = (lambda: x3(), *(partial(x3, error) for error in SHARP_ERRORS))
PLANTED["X4"] = (lambda: x4(), *(partial(x4, error) for error in SHARP_ERRORS))
PLANTED["X5"] = (
    lambda: sharp_racing.x5(figure_3()),
    lambda: sharp_racing.x5(scaled(1.3, figure_3(), algorithm="sharp", setup="Setup 1")),
    lambda: sharp_racing.x5(scaled(1.2, figure_3(), algorithm="sharp", setup="Setup 2")),
    lambda: sharp_racing.x5(scaled(3, figure_3(), algorithm="sharp, [0, 1]", setup="Setup 2", deadline=15)),
    lambda: sharp_racing.x5(scaled(3, figure_3(), algorithm="sharp", deadline=1)),
)
PLANTED["X6"] = (
    lambda: x6(failure_probability.ALGORITHMS["sharp"]),
    lambda: x6(SharpTooFewPulls),
    lambda: x6(SharpRoundedCarelessly),
)
FAR_DEARER = {"passive": 100.0, "kδER": 100.0}


def test_every_decided_claim_has_a_planted_error_and_no_other_has():
    decided = {name for name, claim in LEDGER.items() if claim.verdict in ledger.DECIDED}
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
    assert upper_bounds.c10().verdict != claim.verdict
