"""Designs of certified races: cheap on the truths that are expected, certified for all truths."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from ebr.algorithms.certified import MOST_EXACT, OTHERS, CertifiedElasticBatchRacing
from ebr.simulation.simulate import simulate
from ebr.theory.certificates import Certificate
from ebr.theory.problems import Bernoulli, Gaussian
from ebr.theory.selection import bechhofer_count
from ebr.validation import checked, numbers, require, whole

MOST_RUNS = 10**6  # simulated races of each truth
FIRST = 8  # rewards of an arm at the first look, at least
APART = 1.06  # least ratio of two looks
SPARE = 0.015  # share of δ that is left over for what cells add to a bound
AGAIN = 0.997  # the rest, times this, if that was not enough
BETTER = 0.997  # a better design costs this many times as much at most: less is chance
# For each number of a shape: the factor of a step, the least and the most.
STEPS = {
    "span": (1.3, 2.0, 1000.0),
    "bend": (1.15, 1.0, 3.0),
    "exponent": (1.2, 0.05, 0.6),
    "height": (1.04, 0.9, 2.0),
    "pruning": (1.06, 0.2, 1.0),
    "floor": (1.04, 0.5, 2.0),
}


@dataclass(frozen=True)
class Design:
    """A race, its certificate, and its mean subjects on each of the truths for which it was made."""

    race: CertifiedElasticBatchRacing
    certificate: Certificate
    truths: tuple[tuple[float, ...], ...]
    subjects: tuple[float, ...]


class _Shape(NamedTuple):
    """b_t = b_T R^{−((T−t)/(T−1))^q}, c_t = h (b_t/b_T)^{Δ−½} ε √(b_T/2) / σ; π c_t drops an arm.

    With q = 1 looks grow geometrically, with a larger q they are denser late. Δ = ½ is Pocock's boundary, 0
    that of O'Brien and Fleming. The floor is a multiple of the boundary at b_T.
    """

    span: float = 11.0
    bend: float = 1.2
    exponent: float = 0.05
    height: float = 1.1
    pruning: float = 0.38
    floor: float = 1.06

    def neighbours(self, floored: bool) -> "Iterator[_Shape]":
        """Shapes with one number changed by a step; Gaussian rewards have no floor."""
        for name, (step, least, most) in STEPS.items():
            for way in (1, -1):
                value = round(getattr(self, name) * step**way, 6)
                if least <= value <= most and (floored or name != "floor"):
                    yield self._replace(**{name: value})

    def race(self, like: CertifiedElasticBatchRacing, rounds: int, last: int) -> CertifiedElasticBatchRacing:
        """The race with this shape and b_T, and else like another."""
        left = np.arange(rounds - 1, 0, -1) / max(rounds - 1, 1)
        early = np.ceil(last * max(min(self.span, last / FIRST), 1.0) ** -(left**self.bend))
        looks = [last]
        for each in early[::-1].astype(int).tolist():
            if APART * each <= looks[0]:
                looks.insert(0, each)
        sigma = 0.5 if like.rewards == "Bernoulli" else like.sigma  # of 0/1 rewards, the largest
        scale = self.height * like.epsilon * math.sqrt(last / 2) / sigma
        boundaries = tuple(scale * (each / last) ** (self.exponent - 0.5) for each in looks[:-1])
        made = replace(like, looks=tuple(looks), boundaries=boundaries)
        return replace(made, pruning=self.pruning, floor=self.floor * scale)

    def calibrated(
        self, like: CertifiedElasticBatchRacing, rounds: int, near: int, rates: Sequence[float] = ()
    ) -> CertifiedElasticBatchRacing | None:
        """The race with the least b_T that is enough at some rates, the worst among them as a rule.

        None, if that is more than twice as many as in a single round, or too many.
        """
        epsilon, allowed = like.epsilon, (1 - SPARE) * AGAIN ** len(rates) * like.delta
        low_rates, high_rates = (1.2 * epsilon, 1.5 * epsilon), (1 - epsilon / 4, 1 - epsilon / 2)
        tried = (1 + epsilon) / 2, *low_rates, *high_rates, (3 + epsilon) / 4, *rates

        def enough(last: int) -> bool:
            race = self.race(like, rounds, last)
            if like.rewards == "Gaussian":
                return race.normal_bound(sure=False) <= allowed
            return all(race.bound(rate, rate) <= allowed for rate in tried)

        low, high, limit = near // 2, near, 2 * near + FIRST
        if like.rewards == "Bernoulli":
            limit = min(limit, MOST_EXACT)
        while not enough(high):
            if high == limit:
                return None
            low, high = high, min(math.ceil(1.1 * high) + 1, limit)
        while high - low > max(1, near // 250):
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return self.race(like, rounds, high)


STARTS = (_Shape(), _Shape(exponent=0.35, pruning=0.6), _Shape(exponent=0.35, pruning=0.75))


def _cheapest(price: Callable[[_Shape], float], floored: bool) -> _Shape:
    """Go from shape to shape as long as the price falls."""
    known = cache(price)
    shape = min(STARTS, key=known)
    while True:
        near = [shape, *shape.neighbours(floored)]
        best = min(tqdm(near, "designing", unit=" designs", leave=False, disable=None), key=known)
        if known(best) >= BETTER * known(shape):
            return shape
        shape = best


def expected_truths(n_arms: int, epsilon: float) -> tuple[tuple[float, ...], ...]:
    """All others ε worse, means spread evenly, all alike, and all others 6ε worse."""
    wide = min(6 * epsilon, 0.9)
    spread = tuple((0.9 - np.linspace(0, min(8 * epsilon, 0.8), n_arms)).round(9).tolist())
    hard, easy = ((0.5 + gap / 2, *[0.5 - gap / 2] * (n_arms - 1)) for gap in (epsilon, wide))
    return hard, spread, (0.5,) * n_arms, easy


def _checked_truths(truths: Any, n_arms: int) -> tuple[tuple[float, ...], ...]:
    """Return the truths; raise ValueError unless each is a list of n means."""
    require(isinstance(truths, list | tuple) and truths, "truths", "be a list of lists of means", truths)
    made = tuple(tuple(numbers("truths", truth, 2).tolist()) for truth in truths)
    for truth in made:
        require(len(truth) == n_arms, "truths", f"have n_arms = {n_arms} means each", truth)
    return made


@checked(objective=("mean", "worst", "most"), runs=partial(whole, at_least=1, at_most=MOST_RUNS))
def certified_design(
    n_arms: int,
    deadline: int,
    epsilon: float,
    delta: float,
    rewards: str = "Bernoulli",
    sigma: float = 0.5,
    *,
    truths: Sequence[Sequence[float]] | None = None,
    objective: str = "mean",
    shifts: tuple[float, ...] = (),
    runs: int = 2000,
    seed: int = 0,
) -> Design:
    """Find looks and boundaries that are cheap on the expected truths, and certify them for all.

    The certificate does not depend on how looks and boundaries were chosen, if before the first reward.

    Parameters
    ----------
    n_arms, deadline, epsilon, delta, rewards, sigma, shifts
        As in `CertifiedElasticBatchRacing`; looks at most.
    truths
        Means of the arms, a list for each truth. Left out: those of `expected_truths`.
    objective
        What is to be least: the "mean" of the truths' mean subjects, that of the "worst" truth, or the
        "most" subjects that there can be.
    runs, seed
        Of the simulation of each truth.
    """
    like = CertifiedElasticBatchRacing(n_arms, (1,), (), epsilon, delta, sigma, rewards, shifts=shifts)
    expected = expected_truths(n_arms, epsilon) if truths is None else _checked_truths(truths, n_arms)
    spread = 0.5 if rewards == "Bernoulli" else sigma
    near = bechhofer_count(n_arms, epsilon, delta, spread)
    must = f"be large enough for at most {MOST_EXACT:,} 0/1 rewards of an arm (else use {OTHERS})"
    require(near <= MOST_EXACT or rewards != "Bernoulli", "epsilon (or delta)", must, near)
    means = map(np.array, expected)
    problems = [Gaussian(each, sigma) if rewards == "Gaussian" else Bernoulli(each) for each in means]

    def costs(race: CertifiedElasticBatchRacing) -> list[float]:
        return [float(simulate(race, problem, runs, seed).pulls.mean()) for problem in problems]

    def price(shape: _Shape) -> float:
        race = shape.calibrated(like, deadline, near)
        if race is None:
            return math.inf
        if objective == "most":
            return race.looks[-1]
        return float(np.mean(costs(race)) if objective == "mean" else np.max(costs(race)))

    with threadpool_limits(limits=1):  # as in `certificate`
        shape, rates = _cheapest(price, rewards == "Bernoulli"), list[float]()
        while race := shape.calibrated(like, deadline, near, rates):
            if (found := race.certificate()).holds:
                return Design(race, found, expected, tuple(costs(race)))
            rates.append(found.worst.low)
    raise ValueError(f"epsilon (or delta) must {must}, got {near:,} in a single round")
