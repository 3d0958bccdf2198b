"""Notebook 06."""

from functools import cache

import numpy as np
from compendium.scheduling import scheduling_lemma

from ebr.theory.schedules import printed_bound


@cache
def schedules(**errors):
    return scheduling_lemma.schedules([1, 2, 3], [4.0, 5.0, 100.0], 1, **errors)


def without_sums(rounds, ratio):
    """The root of ρ^T = N/R: as if only the largest batch counted."""
    return ratio ** (1 / rounds)


def geometric(rounds, ratio):
    """Batches, not their sums, in a geometric progression up to N."""
    return ratio ** (np.arange(1, rounds + 1) / rounds)


def short(rounds, ratio, seed):
    """A search among schedules that add up to one per cent less than N."""
    return scheduling_lemma.least_overpull(rounds, 0.99 * ratio, seed)


def far_too_short(rounds, ratio, seed):
    """A search among schedules that add up to 1.5 R only."""
    return scheduling_lemma.least_overpull(rounds, 1.5, seed)


def three_quarters(rounds, ratio):
    """¾ (N/R)^(1/T) for every T: at T = 1 the root is N/R itself."""
    return 0.75 * ratio ** (1 / rounds)


def unsquared(rounds, ratio):
    """N/R = 1/2ε in place of 1/4ε²."""
    return ratio ** (1 / (2 * rounds))


PLANTED = {
    "C19": (
        lambda: scheduling_lemma.scheduling_lemma(schedules()),
        lambda: scheduling_lemma.scheduling_lemma(schedules(), divisor=1),
        lambda: scheduling_lemma.scheduling_lemma(schedules(root=unsquared)),
        lambda: scheduling_lemma.scheduling_lemma(schedules(search=far_too_short)),
        # β = (N/R)^(1/T), without its quarter: what part 1 leaves then exceeds N.
        lambda: scheduling_lemma.scheduling_lemma(
            schedules(), growth=lambda beta, t: 4 * beta * (1 + 4 * beta) ** (t - 1)
        ),
    ),
    "C20": (scheduling_lemma.theorem_5, lambda: scheduling_lemma.theorem_5(root=unsquared)),
    "C21": (
        scheduling_lemma.corollary,
        lambda: scheduling_lemma.corollary(chance=1 / 9),
        lambda: scheduling_lemma.corollary(root=printed_bound),
    ),
    "X1": (
        lambda: scheduling_lemma.exact_lemma(schedules()),
        lambda: scheduling_lemma.exact_lemma(schedules(root=without_sums)),
        lambda: scheduling_lemma.exact_lemma(schedules(best=geometric)),
        lambda: scheduling_lemma.exact_lemma(schedules(search=short)),
        lambda: scheduling_lemma.exact_lemma(schedules(), share=7 / 8),
    ),
    "X2": (
        scheduling_lemma.repaired_constants,
        lambda: scheduling_lemma.repaired_constants(root=printed_bound),
        lambda: scheduling_lemma.repaired_constants(root=three_quarters),
        lambda: scheduling_lemma.repaired_constants(closed=lambda rounds: 1 / 4),
        lambda: scheduling_lemma.repaired_constants(closed=lambda rounds: 3 ** (-1 / rounds) / 3.5),
        lambda: scheduling_lemma.repaired_constants(chance=1 / 7),
    ),
}
