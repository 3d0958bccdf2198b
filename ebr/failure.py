"""How often algorithms fail: importance sampling, on problems found to be hard for them."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit, logsumexp
from scipy.stats import beta, norm

from ebr.baselines import AggressiveElimination, DeltaElimination, Passive, SequentialRacing
from ebr.divergence import log_likelihood_ratio
from ebr.findings import Finding, exceeds
from ebr.parameters import FloatArray
from ebr.problems import Bernoulli, Gaussian, Problem
from ebr.racing import Algorithm, ElasticBatchRacing
from ebr.section5 import Maker
from ebr.sharp import SharpElasticBatchRacing
from ebr.simulation import simulate

__all__ = ["ALGORITHMS", "Estimate", "Hard", "failure", "paid", "place", "search", "x6"]

CONFIDENCE = 0.99
JUST_ABOVE = 1 + 1e-6  # a gap of ε, seen as one by floating-point numbers


def _sharp(rewards: str) -> Maker:
    return lambda deadline, epsilon, delta: SharpElasticBatchRacing(deadline, epsilon, delta, rewards=rewards)


ALGORITHMS: dict[str, Maker] = {
    "EBR": ElasticBatchRacing,
    "kδER": DeltaElimination,
    "AE": AggressiveElimination,
    "AE, rounded down": lambda t, e, d: AggressiveElimination(t, e, d, rounding="down"),
    "sequential": lambda t, e, d: SequentialRacing(e, d),
    "passive": lambda t, e, d: Passive(e, d),
    "sharp": _sharp("sub-Gaussian"),
    "sharp, [0, 1]": _sharp("bounded"),
    "sharp, Gaussian": _sharp("Gaussian"),
}
WITHOUT_DEADLINE = ("sequential", "passive")


class Hard(NamedTuple):
    """A problem where failures might hide: the best arm, two groups of stepping stones, wrong arms at ε.

    Attributes
    ----------
    deadline, n_arms
        T and n.
    top
        The best arm's mean.
    first, first_gap, second, second_gap
        How many arms are so far (in units of ε) from the best; all others are at ε, just wrong.
    """

    deadline: int
    n_arms: int
    top: float
    first: int = 0
    first_gap: float = 0.5
    second: int = 0
    second_gap: float = 0.5

    def problem(self, epsilon: float, gaussian: bool = False) -> Problem:
        """The problem itself."""
        wrong = self.n_arms - 1 - self.first - self.second
        gaps = np.repeat(
            [0, self.first_gap, self.second_gap, JUST_ABOVE], [1, self.first, self.second, wrong]
        )
        means = self.top - gaps * epsilon
        return Gaussian(means, 0.5) if gaussian else Bernoulli(means)


class Estimate(NamedTuple):
    """A failure probability.

    Attributes
    ----------
    log10, relative_error
        Of the importance-sampling estimate; −∞ where no race on a tilted problem failed.
    failures, runs
        Failures in plain races, without importance sampling.
    upper
        The exact (Clopper–Pearson) 99 % upper bound from the plain races.
    """

    log10: float
    relative_error: float
    failures: int
    runs: int
    upper: float

    @property
    def interval(self) -> tuple[float, float]:
        """The two-sided 99 % interval of the importance-sampling estimate, by the normal approximation.

        (0, 1) where no race on a tilted problem failed.
        """
        if self.log10 == -math.inf:
            return 0.0, 1.0
        reach = float(norm.isf((1 - CONFIDENCE) / 2)) * self.relative_error
        return max(1 - reach, 0.0) * 10**self.log10, (1 + reach) * 10**self.log10


def failure(algorithm: Algorithm, problem: Problem, runs: int, seed: int, plain: int = 1) -> Estimate:
    """Estimate P(the arm is not ε-optimal), however small.

    Arms of equal mean are exchangeable, so P = Σ |group| P(its first arm is returned) over the groups of
    wrong arms; where arms can tie, ties go to the first, and P is over-estimated by a few per cent. For each
    there are `runs` races on each of some tilted problems, in which this arm leads all others by a margin;
    one that returns it counts with its likelihood ratio dν / Σ_k α_k dν_k (the mixture of all tilts, ν itself
    among them, so that no weight exceeds the number of tilts). A way to fail that no tilt makes likely would
    be missed, so there are `plain` races as well.
    """
    log_means, relative = [], []
    wrong = problem.means[~problem.is_good(np.arange(problem.n_arms), algorithm.epsilon)]
    for level, size in zip(*np.unique(wrong, return_counts=True), strict=True):
        arm = int(np.flatnonzero(problem.means == level)[0])
        weights = _log_weights(algorithm, problem, arm, runs, seed)
        largest = weights.max()
        scaled = np.exp(weights - largest) if np.isfinite(largest) else np.zeros(len(weights))
        log_means.append(math.log(size) + largest + math.log(max(scaled.mean(), 1e-300)))
        relative.append(scaled.std(ddof=1) / max(scaled.mean(), 1e-300) / math.sqrt(len(scaled)))
    total = float(logsumexp(log_means))
    parts = np.exp(np.array(log_means) - total) if math.isfinite(total) else np.zeros(len(log_means))
    lost = int((~simulate(algorithm, problem, plain, seed).correct(algorithm.epsilon)).sum())
    upper = 1.0 if lost == plain else float(beta.ppf(CONFIDENCE, lost + 1, plain - lost))
    return Estimate(
        total / math.log(10), float(np.linalg.norm(parts * np.array(relative))), lost, plain, upper
    )


MARGINS = (-0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # of the wrong arm's lead, in units of its gap


def _tilted(problem: Problem, arm: int, margin: float) -> Problem:
    """The problem with the arm ahead of all others by a margin.

    It is halfway to the best, in means for Gaussian rewards and in logits for Bernoulli ones, that two arms
    are likeliest to meet.
    """
    gaussian = isinstance(problem, Gaussian)
    place = problem.means if gaussian else logit(np.clip(problem.means, 1e-12, 1 - 1e-12))
    middle, gap = (place.max() + place[arm]) / 2, place.max() - place[arm]
    tilted = np.minimum(place, middle - margin * gap / 2)
    tilted[arm] = middle + margin * gap / 2
    if isinstance(problem, Gaussian):
        return Gaussian(np.clip(tilted, 0, 1), problem.sigma)
    return Bernoulli(expit(tilted))


def _log_weights(algorithm: Algorithm, problem: Problem, arm: int, runs: int, seed: int) -> FloatArray:
    """The log weight of each race on the tilted problems: −∞ if another arm is returned."""
    tilts = [problem, *(_tilted(problem, arm, margin) for margin in MARGINS)]
    weights = []
    for tilted in tilts:
        race = simulate(algorithm, tilted, runs, seed, per_arm=True)
        against = [-log_likelihood_ratio(problem, other, *race.by_arm()) for other in tilts]
        weight = math.log(len(tilts)) - logsumexp(against, axis=0)
        weights.append(np.where(race.arm == arm, weight, -np.inf))
    return np.concatenate(weights)


def search(
    name: str,
    trials: int,
    runs: int,
    seed: int,
    epsilon: float = 0.1,
    delta: float = 0.01,
    most_arms: int = 100,
    latest: int = 15,
) -> pd.DataFrame:
    """Look for a problem on which an algorithm fails often: one row a problem, the worst first.

    The first trials are fixed (all others at ε, few arms and many, one round and many), those up to half of
    them random, the rest random changes of the worst so far. The worst of many noisy estimates is too high by
    its nature: estimate it again.
    """
    generator = np.random.default_rng(np.random.SeedSequence([seed, 10]))
    latest = 1 if name in WITHOUT_DEADLINE else latest
    found: dict[Hard, Estimate] = {}
    fixed = [
        Hard(t, n, 0.5 + epsilon / 2)
        for n in sorted({min(n, most_arms) for n in (2, 3, 10, most_arms)})
        for t in sorted({1, min(2, latest), latest})
    ]
    for trial in range(trials):
        if trial < len(fixed):
            candidate = fixed[trial]
        elif trial < trials // 2:
            candidate = _anywhere(generator, epsilon, most_arms, latest)
        else:
            worst = max(found, key=lambda place: found[place].log10)
            candidate = _near(worst, generator, epsilon, most_arms, latest)
        algorithm = ALGORITHMS[name](candidate.deadline, epsilon, delta)
        problem = candidate.problem(epsilon, name.endswith("Gaussian"))
        found[candidate] = failure(algorithm, problem, runs, seed)
    frame = pd.DataFrame([{**place._asdict(), **estimate._asdict()} for place, estimate in found.items()])
    return frame.sort_values("log10", ascending=False, ignore_index=True)


def place(row: pd.Series) -> Hard:
    """The problem in a row of `search`."""
    return Hard(**{name: kind(row[name]) for name, kind in Hard.__annotations__.items()})


def _anywhere(generator: np.random.Generator, epsilon: float, most_arms: int, latest: int) -> Hard:
    """A random place: the number of arms log-uniform, the means anywhere, often close to 0 or 1."""
    n_arms = int(np.exp(generator.uniform(math.log(2), math.log(most_arms + 1))))
    first, second, _ = generator.multinomial(n_arms - 2, generator.dirichlet([0.5, 0.5, 0.5]))
    first_gap, second_gap = generator.random(2)
    # How far the worst arm is from 0, or the best from 1.
    edge = 10.0 ** generator.uniform(-4, math.log10((1 - epsilon) / 2))
    top = float(generator.choice([epsilon * JUST_ABOVE + edge, 1 - edge]))
    deadline = int(generator.integers(1, latest + 1))
    return _tidy(Hard(deadline, n_arms, top, int(first), first_gap, int(second), second_gap))


def _near(place: Hard, generator: np.random.Generator, epsilon: float, most_arms: int, latest: int) -> Hard:
    """A random change of a place: some of its numbers are another's."""
    other = _anywhere(generator, epsilon, most_arms, latest)._asdict()
    changed = place._replace(**{name: value for name, value in other.items() if generator.random() < 0.3})
    room = changed.n_arms - 2
    first = min(changed.first, room)
    return _tidy(changed._replace(first=first, second=min(changed.second, room - first)))


def _tidy(place: Hard) -> Hard:
    """The same place, described in one way: a group without arms has a gap of ½."""
    first_gap = place.first_gap if place.first else 0.5
    return place._replace(first_gap=first_gap, second_gap=place.second_gap if place.second else 0.5)


def paid(
    worst: dict[str, Hard],
    deltas: Iterable[float],
    runs: int,
    plain: int,
    seed: int,
    epsilon: float = 0.1,
    algorithms: dict[str, Maker] = ALGORITHMS,
) -> pd.DataFrame:
    """δ asked against δ paid by each algorithm on its worst problem found.

    Columns: algorithm, delta, the place (`Hard`) and the `Estimate`.
    """
    rows = []
    for name, hard in worst.items():
        problem = hard.problem(epsilon, name.endswith("Gaussian"))
        for delta in deltas:
            estimate = failure(algorithms[name](hard.deadline, epsilon, delta), problem, runs, seed, plain)
            rows.append({"algorithm": name, "delta": delta, **hard._asdict(), **estimate._asdict()})
    return pd.DataFrame(rows)


def x6(table: pd.DataFrame) -> Finding:
    """Check X6 on `paid`: every algorithm keeps δ on its worst problem found."""
    counts = zip(table["failures"], table["runs"], table["delta"], strict=True)
    refuted = [count for count in counts if exceeds(*count, tests=len(table))]
    worst = table.assign(share=10 ** table["log10"] / table["delta"]).sort_values("share").iloc[-1]
    evidence = (
        f"{len(refuted)} of {len(table)} are refuted by {table['runs'].max()} plain races each; the largest "
        f"share of δ, {worst['share']:.2f} ± {worst['share'] * worst['relative_error']:.1g} (1 s.e.), for "
        f"{worst['algorithm']} at δ = {worst['delta']:g}, n = {worst['n_arms']}, T = {worst['deadline']}"
    )
    return Finding("X6", not refuted, evidence)
