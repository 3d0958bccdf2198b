"""Notebook 14: races for the k best arms with errors in unions, widths, counts, certificates and ranks."""

from dataclasses import replace
from functools import cache, partial

import pandas as pd
from compendium.shared import problem_sets
from compendium.top_k import best_k, joint_verification, top_k_cases, top_k_rivals

import ebr
from planted import algorithms, sharp_racing

DELTA = 0.3


class UnionOverOneArm(ebr.SharpElasticBatchRacing):
    """A union over n − 1 pairs, as for one best arm, in place of k(n − k)."""

    def log_terms(self, n_arms, rewards=None):
        return (
            replace(self, k=1).log_terms(n_arms, rewards)
            if self.k > 1
            else super().log_terms(n_arms, rewards)
        )


class BoundaryTakenForKnown(ebr.SharpElasticBatchRacing):
    """Half the width, as if the k-th and the (k + 1)-th mean were known."""

    def refuted(self, pairs, shift, log_term, told):
        return super().refuted(pairs, shift, log_term / (4 if self.k > 1 else 1), told)


class SixthOfThePulls(ebr.SharpElasticBatchRacing):
    """A sixth of the pulls: three arms in one or two rounds then fail with more than δ. Half would not do."""

    def pulls_by_round(self, n_arms, rewards=None):
        return super().pulls_by_round(n_arms, rewards) // 6 + 1


class OnePlaceTooMany(ebr.ElasticBatchRacing):
    """Finds the k + 1 best arms if possible, and leaves out the first of them by number."""

    def play(self, n_arms, replicates=1, **known):
        more = replace(self, k=min(self.k + 1, n_arms - 1))
        arms = yield from ebr.ElasticBatchRacing.play(more, n_arms, replicates, **known)
        return arms.reshape(replicates, -1)[:, -self.k :]


@cache
def chosen():
    problems = [*problem_sets.hardest_problems([(2, 3), (3, 3)]), *problem_sets.random_problems(20, 1)]
    hard = [top_k_cases.slippage(6, k, 0.125, t, 0.1) for k in (2, 3, 5) for t in (1, 3)]
    return [*top_k_cases.cases(problems, 1, 1), *hard, top_k_cases.slippage(3, 1, 0.875, 1, 1e-6)]


def carries_over(make=ebr.ElasticBatchRacing, verification=joint_verification.Verification):
    table = top_k_cases.elastic_table(chosen(), 100, 50, 1, make)
    return best_k.carries_over(table, verification(10**6, 10, 0.1, 200, 20, 1e-100))


class OneByOne(joint_verification.Verification):
    """Each of the k best may look bad with δ/2, without a union over the k."""

    unlucky = property(lambda self: self.delta / 2)


def bounded(make=ebr.SharpElasticBatchRacing):
    bernoulli = top_k_cases.bernoulli(chosen()[::6])  # the likelihood ratio is slow
    return top_k_cases.sharp_table(bernoulli, 30, 50, 1, make, "bounded")


@cache
def parts():
    """The tables of the check without an error."""
    table = top_k_cases.sharp_table(chosen(), 100, 50, 1)
    return {"table": table, "ratio": bounded(), "exact": top_k_cases.exact_failures(DELTA)}


def guarantee(make=ebr.SharpElasticBatchRacing, **changed):
    """The check with `make` in its union bound, or with other tables."""
    return best_k.guarantee(**parts() | changed, delta=DELTA, make=make)


def raced(make):
    return guarantee(make, table=top_k_cases.sharp_table(chosen(), 100, 50, 1, make))


def savings(**makers):
    """Figure 14's points along k, with few runs; `makers` replace some algorithms."""
    racing = {name: top_k_rivals.RACERS[name] for name in ("EBR", "kδER", "sharp")} | makers
    rows = []
    for labels, algorithm, problem in best_k.points([1, 20], [], racers=racing):
        result = ebr.simulate(algorithm, problem, 50, seed=1)
        failures = int((~result.correct(algorithm.epsilon)).sum())
        pulls = {"pulls": result.pulls.mean(), "error": result.pulls.std(ddof=1) / 50**0.5}
        rows.append(labels | pulls | {"failures": failures, "runs": 50})
    table = pd.DataFrame(rows)
    sequential = table[table["algorithm"] == "EBR"].assign(algorithm="sequential")  # which is slow
    return best_k.savings(pd.concat([table, sequential]), [1, 20])


SHARP_ERRORS = (
    UnionOverOneArm,
    BoundaryTakenForKnown,
    algorithms.SharpTooFewPulls,
    algorithms.SharpEager,
    algorithms.SharpWide,
)
PLANTED = {
    "C43": (
        carries_over,
        partial(carries_over, make=algorithms.TooNarrow),
        partial(carries_over, make=algorithms.TooFewPulls),
        partial(carries_over, make=algorithms.LooseRule),
        partial(carries_over, make=algorithms.TooManyPulls),
        partial(carries_over, make=algorithms.DropsNobody),
        partial(carries_over, make=OnePlaceTooMany),
        partial(carries_over, verification=OneByOne),
    ),
    "X9": (
        guarantee,
        *(partial(raced, error) for error in SHARP_ERRORS),
        # The next errors are in one table each: the exact failures, and rewards in [0, 1].
        lambda: guarantee(exact=top_k_cases.exact_failures(DELTA, SixthOfThePulls)),
        lambda: guarantee(ratio=bounded(algorithms.SharpEager)),
        partial(sharp_racing.with_bound, partial(raced, ebr.SharpElasticBatchRacing)),
    ),
    "X13": (
        savings,
        lambda: savings(sharp=lambda t, e, d, k: algorithms.SharpWide(t, e, d, rewards="sub-Gaussian", k=k)),
        lambda: savings(EBR=lambda t, e, d, k: algorithms.TooFewPulls(t, e, d, k=k)),
        lambda: savings(EBR=lambda t, e, d, k: ebr.ElasticBatchRacing(t, 10 * e, d, k=k)),
    ),
}
