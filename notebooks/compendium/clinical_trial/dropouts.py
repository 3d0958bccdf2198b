"""A trial whose subjects drop out: what sharp EBR promises then, and where the promise ends."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from compendium.clinical_trial.vaccine_trial import errors, in_words
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import FloatArray, IntArray
from ebr.theory.problems import Bernoulli

# What stays of a candidate's responders, and of others: by round, from 0, T, and whether it is the best.
Stays = Callable[[int, int, bool], tuple[float, float]]


def _alike(share: Callable[[int, int, bool], float]) -> Stays:
    """Losses at random: responders and others stay alike."""
    return lambda t, deadline, best: (share(t, deadline, best), share(t, deadline, best))


AT_RANDOM: dict[str, Stays] = {
    "nobody": _alike(lambda t, deadline, best: 1.0),
    "one in ten": _alike(lambda t, deadline, best: 0.9),
    "half of the best candidate's": _alike(lambda t, deadline, best: 0.5 if best else 1.0),
    "half of all others'": _alike(lambda t, deadline, best: 1.0 if best else 0.5),
    "all of the best's, but in the last round": _alike(lambda t, T, best: float(t == T - 1 or not best)),
    "the best's and the others' in turn": _alike(lambda t, deadline, best: float((t % 2 == 0) == best)),
    "all of the last round": _alike(lambda t, deadline, best: float(t < deadline - 1)),
}
NOT_AT_RANDOM: dict[str, Stays] = {
    "one in ten of the best candidate's responders": lambda t, deadline, best: (0.9 if best else 1.0, 1.0),
    "three in ten of them": lambda t, deadline, best: (0.7 if best else 1.0, 1.0),
}


def _trials(
    algorithm: SharpElasticBatchRacing, truth: Bernoulli, stays: Stays, number: int, seed: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Of each trial: subjects asked for, subjects seen to the end, the candidate, and what it is within."""
    generator = np.random.default_rng(seed)
    game = algorithm.play_lossy(truth.n_arms, number, rewards=truth.rewards)
    best = np.arange(truth.n_arms) == truth.best
    asked, seen = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.int64)
    pulls, t = next(game).pulls, 0
    while True:
        shares = np.array([stays(t, algorithm.deadline, bool(own)) for own in best])
        responders = generator.binomial(pulls, truth.means)
        kept = generator.binomial(responders, shares[:, 0])
        counts = kept + generator.binomial(pulls - responders, shares[:, 1])
        asked, seen, t = asked + pulls.sum(axis=1), seen + counts.sum(axis=1), t + 1
        try:
            pulls = game.send((counts, kept.astype(np.float64))).pulls
        except StopIteration as end:
            return asked, seen, end.value.arms, end.value.within


def compare(algorithm: SharpElasticBatchRacing, truth: Bernoulli, number: int, seed: int) -> pd.DataFrame:
    """A row a kind of loss: subjects, what was said, and how often it was not so (an exact interval).

    Columns: lost, at_random, asked and seen (mean subjects), short (how many trials promise less than ε),
    promised (the ε′ that nine in ten of these keep to), errors (a candidate farther from the best than was
    said), with lower and upper.
    """
    rows = []
    for name, stays in (AT_RANDOM | NOT_AT_RANDOM).items():
        asked, seen, arm, within = _trials(algorithm, truth, stays, number, seed)
        short = within > algorithm.epsilon
        row = {
            "lost": name,
            "at_random": name in AT_RANDOM,
            "asked": asked.mean(),
            "seen": seen.mean(),
            "short": short.mean(),
            "promised": np.quantile(within[short], 0.9) if short.any() else np.nan,
        }
        rows.append(row | errors(truth.means.max() - truth.means[arm] > within))
    return pd.DataFrame(rows).assign(trials=number)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """What `compare` found, in readable numbers."""
    columns = {
        "at random": table["at_random"].map({True: "yes", False: "no"}),
        "asked for": table["asked"].map("{:,.0f}".format),
        "seen": table["seen"].map("{:,.0f}".format),
        "promise less": table["short"].map("{:.0%}".format),
        "that is": [f"{value:.3f}" if value == value else "" for value in table["promised"]],
    }
    return pd.DataFrame(columns | in_words(table)).set_index(table["lost"])
