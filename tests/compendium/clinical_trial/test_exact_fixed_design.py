"""The exact fixed design against enumeration of every outcome, and what its certificate is worth."""

from itertools import product
from math import comb

import numpy as np
import pytest
from compendium.clinical_trial.exact_fixed_design import ExactFixedDesign
from scipy.stats import binom

import ebr
from ebr.algorithms.game import drive
from ebr.theory.selection import certified, slippage_error


def enumerated(subjects, rates):
    """How often the last arm is not chosen: every table of counts, ties by lot."""
    counts = range(subjects + 1)
    probability = [[comb(subjects, x) * p**x * (1 - p) ** (subjects - x) for x in counts] for p in rates]
    wins = 0.0
    for table in product(counts, repeat=len(rates)):
        if table[-1] == max(table):
            wins += np.prod([probability[i][x] for i, x in enumerate(table)]) / table.count(table[-1])
    return 1 - wins


@pytest.mark.parametrize(
    ("subjects", "n_arms", "best", "others"),
    [(1, 2, 0.6, 0.3), (4, 3, 0.7, 0.4), (3, 5, 1.0, 0.9), (5, 2, 0.5, 0.0), (6, 4, 0.2, 0.2)],
)
def test_the_error_is_that_of_every_outcome_enumerated(subjects, n_arms, best, others):
    found = slippage_error(subjects, np.array([best]), np.array([others]), n_arms)
    assert found[0] == pytest.approx(enumerated(subjects, [others] * (n_arms - 1) + [best]), abs=1e-12)


def test_all_others_just_epsilon_worse_is_the_worst_of_all_truths():
    # Where others are better or worse than p − ε, every error of theirs counted by hand.
    worst = enumerated(4, [0.4, 0.4, 0.6])
    for a, b in product((0.1, 0.3, 0.4, 0.45, 0.55, 0.6), repeat=2):
        rates, counts = [a, b, 0.6], range(5)
        error = 0.0
        for table in product(counts, repeat=3):
            chance = np.prod([binom.pmf(x, 4, p) for x, p in zip(table, rates, strict=True)])
            top = [i for i, x in enumerate(table) if x == max(table)]
            error += chance * sum(rates[i] <= 0.4 for i in top) / len(top)
        assert error <= worst + 1e-12


def test_a_certificate_holds_for_every_rate_and_one_subject_less_is_refuted():
    design = ExactFixedDesign(0.15, 0.1)
    subjects = design.subjects(4)
    rates = np.linspace(0.15, 1, 3001)
    assert certified(subjects, 4, 0.15, 0.1)
    assert slippage_error(subjects, rates, rates - 0.15, 4).max() <= 0.1
    assert not certified(subjects - 1, 4, 0.15, 0.1)
    assert slippage_error(subjects - 1, rates, rates - 0.15, 4).max() > 0.1


def test_five_candidates_need_933_subjects_each():
    assert ExactFixedDesign(0.05, 0.05).subjects(5) == 933  # Bechhofer's normal table: (3.0552 σ/ε)² = 933.4


def test_a_trial_chooses_the_most_responses_and_breaks_ties_by_lot():
    design = ExactFixedDesign(0.3, 0.2)
    asked = []

    def respond(pulls):
        asked.append(pulls)
        return np.tile([2.0, 2.0, 1.0], (4000, 1))

    chosen = drive(design.play(3, 4000, generator=np.random.default_rng(1)), respond)
    (pulls,) = asked
    assert pulls.shape == (4000, 3)
    assert (pulls == design.subjects(3)).all()
    # A fair coin; five standard deviations: wrong by chance once in a million.
    assert abs(np.mean(chosen == 0) - 0.5) < 5 * 0.5 / np.sqrt(4000)
    assert set(chosen.tolist()) == {0, 1}


def test_simulated_errors_are_the_exact_ones():
    design = ExactFixedDesign(0.1, 0.1)
    found = ebr.simulate(design, ebr.Bernoulli([0.45, 0.45, 0.45, 0.55]), 20000, seed=1)
    exact = slippage_error(design.subjects(4), np.array([0.55]), np.array([0.45]), 4)[0]
    assert abs(np.mean(found.arm != 3) - exact) < 5 * np.sqrt(exact * (1 - exact) / 20000)
    assert exact <= 0.1
