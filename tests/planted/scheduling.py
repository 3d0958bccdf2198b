"""Notebook 06: Theorem 5 and the scheduling lemma."""

from functools import cache

import numpy as np
from compendium.scheduling import theorem_5
from compendium.scheduling.batch_schedules import minimax_overpull, printed_bound

SEARCH = cache(theorem_5.least_overpull)


@cache
def schedules(search=SEARCH, **errors):
    return theorem_5.schedules([1, 2, 3], [4.0, 5.0, 100.0], 1, search=search, **errors)


def without_sums(rounds, ratio):
    """The root of ρ^T = N/R: as if only the largest batch counted."""
    return ratio ** (1 / rounds)


def geometric(rounds, ratio):
    """Batches, not their sums, in a geometric progression up to N."""
    return ratio ** (np.arange(1, rounds + 1) / rounds)


def short(rounds, ratio, seed):
    """A search among schedules that add up to one per cent less than N."""
    return theorem_5.least_overpull(rounds, 0.99 * ratio, seed)


def far_too_short(rounds, ratio, seed):
    """A search among schedules that add up to only 1.5 R."""
    return theorem_5.least_overpull(rounds, 1.5, seed)


def three_quarters(rounds, ratio):
    """¾ (N/R)^(1/T) for every T: at T = 1 the root is N/R itself."""
    return 0.75 * ratio ** (1 / rounds)


def unsquared(rounds, ratio):
    """N/R = 1/2ε in place of 1/4ε²."""
    return ratio ** (1 / (2 * rounds))


PLANTED = {
    "C19": (
        lambda: theorem_5.scheduling_lemma(schedules()),
        lambda: theorem_5.scheduling_lemma(schedules(), divisor=1),
        lambda: theorem_5.scheduling_lemma(schedules(root=unsquared)),
        lambda: theorem_5.scheduling_lemma(schedules(search=far_too_short)),
        # β = (N/R)^(1/T) without its factor ¼: the batches of part 1 then exceed N.
        lambda: theorem_5.scheduling_lemma(
            schedules(), growth=lambda beta, t: 4 * beta * (1 + 4 * beta) ** (t - 1)
        ),
    ),
    "C20": (
        theorem_5.theorem_5,
        lambda: theorem_5.theorem_5(root=unsquared),
        lambda: theorem_5.theorem_5(root=lambda t, ratio: 2 * minimax_overpull(t, ratio)),
    ),
    "C21": (
        theorem_5.corollary,
        lambda: theorem_5.corollary(chance=1 / 9),
        lambda: theorem_5.corollary(chance=1 / 4),
        lambda: theorem_5.corollary(root=printed_bound),
    ),
    "X1": (
        lambda: theorem_5.exact_lemma(schedules()),
        lambda: theorem_5.exact_lemma(schedules(root=without_sums)),
        lambda: theorem_5.exact_lemma(schedules(best=geometric)),
        lambda: theorem_5.exact_lemma(schedules(search=short)),
        lambda: theorem_5.exact_lemma(schedules(), share=7 / 8),
        # φ^{2T} and φ^{2T−2} in place of φ^{2T−1}.
        lambda: theorem_5.exact_lemma(schedules(), least=lambda t, golden: golden ** (2 * t)),
        lambda: theorem_5.exact_lemma(schedules(), least=lambda t, golden: golden ** (2 * t - 2)),
    ),
    "X2": (
        theorem_5.repaired_constants,
        lambda: theorem_5.repaired_constants(root=printed_bound),
        lambda: theorem_5.repaired_constants(root=three_quarters),
        lambda: theorem_5.repaired_constants(closed=lambda rounds: 1 / 4),
        lambda: theorem_5.repaired_constants(closed=lambda rounds: 3 ** (-1 / rounds) / 3.5),
        lambda: theorem_5.repaired_constants(closed=lambda rounds: 3 ** (-rounds) / 4),
        lambda: theorem_5.repaired_constants(chance=1 / 7),
        lambda: theorem_5.repaired_constants(chance=1 / 5),  # more than is proved
    ),
}
