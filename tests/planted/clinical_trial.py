"""Notebook 11: certified races with errors in limits, laws, cells and rules, and worse designs.

The certificate is that of a smaller trial: three arms, three looks. The comparison is that of the notebook's
design with some of the rivals, on the four truths of its table.
"""

from dataclasses import replace
from functools import cache, partial
from unittest import mock

import numpy as np
import pandas as pd
from compendium.clinical_trial import certified_guarantee, trial_rivals, trial_standing, vaccine_trial
from compendium.clinical_trial.trial_designs import ExactFixedDesign

from ebr.algorithms.certified import CertifiedElasticBatchRacing
from ebr.theory import certificates

RACE = CertifiedElasticBatchRacing(3, (30, 55, 100), (2.1, 1.9), 0.2, 0.1, floor=2.0)
TRUTHS, RUNS = 60, 500
DESIGN = CertifiedElasticBatchRacing(
    5, (90, 160, 270, 460, 650, 1022), (8.3, 6.1, 5.1, 3.4, 2.9), 0.05, 0.05, pruning=0.38, floor=2.65
)
FIELD = ("pausing EBR", "fixed, exact", "Wang–Tsiatis, growing looks", "drop the losers")
TRIALS = 3000


def bounds():
    return {"small": certified_guarantee.bounds(), "chained": certified_guarantee.linked()}


def played():
    return {"raced": certified_guarantee.played()}


def normal(races=certified_guarantee.NORMAL):
    return {"gaussian": certified_guarantee.normal(races)}


def certified():
    certificate = RACE.certificate()
    return {"certificate": certificate, "cells": certified_guarantee.again(RACE, certificate, 4)}


def tried():
    truths = certified_guarantee.hostile(3, RACE.epsilon, TRUTHS, 1)
    return {"tried": certified_guarantee.trials(RACE, truths, RUNS, 1)}


eight_arms = partial(normal, certified_guarantee.NORMAL[2:])


@cache
def parts():
    """The tables of the check without an error."""
    return bounds() | played() | normal() | certified() | tried()


def guarantee(**changed):
    return certified_guarantee.guarantee(**parts() | changed, deadline=RACE.deadline)


def with_error(part, place, name, error):
    """The check with the error planted; only the part that it breaks is computed again."""
    parts()
    certificates.limits.cache_clear()
    try:
        with mock.patch.object(place, name, error):
            return guarantee(**part())
    finally:
        certificates.limits.cache_clear()


def half_a_shift(count, critical, floor, shift, right=certificates.limits.__wrapped__):
    """Limits of the test for the shift s/2 in place of s."""
    return right(count, critical, floor, shift / 2)


def no_floor(count, critical, floor, shift, right=certificates.limits.__wrapped__):
    """Boundaries without their floor: they fall to 0 near rates 0 and 1."""
    return right(count, critical, 1e-9, shift)


def high_levels(times, highest, lowest, points, up, right=certificates._normal_errors):
    """A Gaussian difference must be a hundredth of a standard deviation larger to be an error."""
    return right(times, highest + 0.01, lowest, points, up)


def one_bad_arm_less(errors, many, right=certificates._some):
    """A bound for one bad arm fewer."""
    return np.append(0 * right(errors, 1), right(errors, many)[:-1], 0)


def never_dropped(failing, drops, right=certificates._chains):
    """A bound as if the best arm was never dropped by a good one."""
    return right(failing, drops * (np.arange(drops.shape[1]) > 0))


def short_chains(failing, drops, right=certificates._chains):
    """A bound for at most one good arm that drops another."""
    return right(failing, drops * (np.arange(drops.shape[1]) == 0))


def one_chain(failing, drops, right=certificates._chains):
    """A bound for one chain instead of all."""
    others = max(len(failing) - 1, 1)
    return right(failing, drops / np.where(np.arange(drops.shape[1]) > 0, 1, others))


class NoSign(certificates.Pair):
    """A bad arm that is ahead at T does not err."""

    def __init__(self, *args):
        super().__init__(*args)
        self.laws[-1] *= 0


class TiesAreWon(certificates.Pair):
    """An arm that ties with another at T has not erred."""

    def __init__(self, *args):
        super().__init__(*args)
        x, y = self.sums[-1]
        self.laws[-1] *= x[:, None] != y


def near_corner(self, lows, highs, *rest, right=certificates.Boundaries.failures):
    """A cell's bound with all rates at its lower end."""
    return right(self, lows, lows, *rest)


def gaps(self, right=certificates.Boundaries.cells):
    """Every other cell is left out."""
    return list(right(self))[::2]


def early_end(self, look, leader, shift, right=CertifiedElasticBatchRacing.behind):
    """A race ends as if the shift were twice as large."""
    return right(self, look, leader, shift) + shift * self.looks[look]


def eager(self, look, leader, shift, right=CertifiedElasticBatchRacing.behind):
    """Arms are dropped at a quarter of the boundary."""
    return right(self if shift else replace(self, pruning=self.pruning / 4), look, leader, shift)


@cache
def others():
    """Trials of the other designs."""
    return trials(FIELD)


def field(race):
    return trial_rivals.entrants(race, 6, 0.05, 0.05)


def trials(names, race=DESIGN):
    grid = vaccine_trial.truths(0.05, [rate for _, rate in trial_standing.AIMS])
    four = {truth: grid[truth] for truth in trial_standing.AIMS}
    tables = [
        vaccine_trial.compare(four, field(race)[name].algorithm, 0.05, TRIALS, 1).assign(design=name)
        for name in names
    ]
    return pd.concat(tables, ignore_index=True)


def comparison(race=DESIGN, rivals=others):
    table = pd.concat([trials([trial_rivals.CERTIFIED], race), rivals()], ignore_index=True)
    entered = {name: field(race)[name] for name in table["design"].unique()}
    return trial_standing.comparison(table, entered, 0.05)


def fewer_in_one_round(right=ExactFixedDesign.subjects):
    """The exact fixed design with 40 subjects fewer than it needs."""
    with mock.patch.object(ExactFixedDesign, "subjects", lambda self, n_arms: right(self, n_arms) - 200):
        return comparison(rivals=partial(trials, FIELD))


PLANTED = {
    "X14": (
        guarantee,
        partial(with_error, bounds, certificates, "limits", half_a_shift),
        partial(with_error, bounds, certificates, "limits", no_floor),
        partial(with_error, eight_arms, certificates, "_normal_errors", high_levels),
        partial(with_error, eight_arms, certificates, "_some", one_bad_arm_less),
        partial(with_error, bounds, certificates, "_some", one_bad_arm_less),
        partial(with_error, bounds, certificates, "_chains", never_dropped),
        partial(with_error, bounds, certificates, "_chains", short_chains),
        partial(with_error, bounds, certificates, "_chains", one_chain),
        partial(with_error, bounds, certificates, "Pair", NoSign),
        partial(with_error, bounds, certificates, "Pair", TiesAreWon),
        partial(with_error, bounds, certificates.Boundaries, "failures", near_corner),
        partial(with_error, certified, certificates.Boundaries, "cells", gaps),
        partial(with_error, played, CertifiedElasticBatchRacing, "behind", early_end),
        partial(with_error, played, CertifiedElasticBatchRacing, "behind", eager),
    ),
    "X16": (
        comparison,
        partial(comparison, replace(DESIGN, boundaries=tuple(1.2 * each for each in DESIGN.boundaries))),
        partial(comparison, replace(DESIGN, boundaries=tuple(0.65 * each for each in DESIGN.boundaries))),
        partial(comparison, replace(DESIGN, pruning=4.0)),
        partial(comparison, replace(DESIGN, looks=tuple(each + 60 for each in DESIGN.looks))),
        fewer_in_one_round,
    ),
}
