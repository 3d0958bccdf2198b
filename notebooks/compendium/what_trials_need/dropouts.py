"""A trial whose subjects drop out: what a race promises then, where that ends, and the check of X20."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from compendium.clinical_trial.vaccine_trial import errors, in_words
from compendium.shared.distributions import norm
from compendium.shared.findings import FALSE_ALARM, Evidence, Finding, counted, refutes
from ebr.algorithms.certified import CertifiedElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import simulate
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
# A race so small that wrong readings show, and losses that the last round makes good.
SMALL = CertifiedElasticBatchRacing(3, (6, 12, 20), (1.5, 1.3), 0.2, 0.3, pruning=0.9, floor=1.2)
SMALL_TRUTHS = ((0.5, 0.3, 0.3), (0.9, 0.85, 0.6), (0.5, 0.5, 0.5))
MADE_GOOD: dict[str, Stays] = {
    "three in ten": _alike(lambda t, deadline, best: 1.0 if t == deadline - 1 else 0.7),
    "half of the best's": _alike(lambda t, deadline, best: 0.5 if best and t < deadline - 1 else 1.0),
    "all of the first round": _alike(lambda t, deadline, best: float(t > 0)),
}


def _trials(
    algorithm: Algorithm, deadline: int, truth: Bernoulli, stays: Stays, number: int, seed: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Of each trial: subjects asked for, subjects seen to the end, the candidate, and what it is within."""
    generator = np.random.default_rng(seed)
    game = algorithm.play_lossy(truth.n_arms, number, rewards=truth.rewards, generator=generator)
    best = np.arange(truth.n_arms) == truth.best
    asked, seen = np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.int64)
    pulls, t = next(game).pulls, 0
    while True:
        shares = np.array([stays(t, deadline, bool(own)) for own in best])
        responders = generator.binomial(pulls, truth.means)
        kept = generator.binomial(responders, shares[:, 0])
        counts = kept + generator.binomial(pulls - responders, shares[:, 1])
        asked, seen, t = asked + pulls.sum(axis=1), seen + counts.sum(axis=1), t + 1
        try:
            pulls = game.send((counts, kept.astype(np.float64))).pulls
        except StopIteration as end:
            return asked, seen, end.value.arms, end.value.within


def compare(algorithm: Algorithm, deadline: int, truth: Bernoulli, number: int, seed: int) -> pd.DataFrame:
    """A row a kind of loss: subjects, what was said, and how often it was not so (an exact interval).

    Columns: lost, at_random, asked and seen (mean subjects), short (how many trials promise less than ε),
    promised (the ε′ that nine in ten of these keep to), failures and errors (a candidate farther from the
    best than was said, number and share), with lower and upper.
    """
    rows = []
    for name, stays in (AT_RANDOM | NOT_AT_RANDOM).items():
        asked, seen, arm, within = _trials(algorithm, deadline, truth, stays, number, seed)
        short = within > algorithm.epsilon
        wrong = truth.means.max() - truth.means[arm] > within
        row = {
            "lost": name,
            "at_random": name in AT_RANDOM,
            "asked": asked.mean(),
            "seen": seen.mean(),
            "short": short.mean(),
            "promised": np.quantile(within[short], 0.9, method="higher") if short.any() else np.nan,
            "failures": int(wrong.sum()),
        }
        rows.append(row | errors(wrong))
    return pd.DataFrame(rows).assign(trials=number)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """What `compare` found, in readable numbers."""
    words = {np.inf: "nothing"}
    columns = {
        "at random": table["at_random"].map({True: "yes", False: "no"}),
        "asked for": table["asked"].map("{:,.0f}".format),
        "seen": table["seen"].map("{:,.0f}".format),
        "promise less": table["short"].map("{:.0%}".format),
        "that is": [words.get(e, f"{e:.3f}") if e == e else "" for e in table["promised"]],
    }
    return pd.DataFrame(columns | in_words(table)).set_index(table["lost"])


def alike(number: int, seed: int) -> pd.DataFrame:
    """A row a truth and a kind of loss: how often a small race is right, with the losses and without.

    Columns: truth, lost, right and without (numbers of races), runs.
    """
    rows = []
    for means in SMALL_TRUTHS:
        truth = Bernoulli(np.array(means))
        without = int((simulate(SMALL, truth, number, seed).arm == 0).sum())
        for name, stays in MADE_GOOD.items():
            arm = _trials(SMALL, SMALL.deadline, truth, stays, number, seed + 1)[2]
            right = int((arm == 0).sum())
            rows.append({"truth": means, "lost": name, "right": right, "without": without})
    return pd.DataFrame(rows).assign(runs=number)


def guarantee(small: pd.DataFrame, lost: pd.DataFrame, delta: float) -> Finding:
    """Check X20: losses at random change neither what a certified race recommends nor its promise.

    The tables are those of `alike` and of `compare`.
    """
    shares = [(small[column] + 1) / (small["runs"] + 2) for column in ("right", "without")]
    spread = sum(share * (1 - share) / small["runs"] for share in shares) ** 0.5
    apart = ((shares[0] - shares[1]) / spread).abs()
    reach = float(norm.isf(FALSE_ALARM / (2 * len(small))))
    random = lost[lost["at_random"]].rename(columns={"trials": "runs"}).assign(delta=delta)
    worst = random.sort_values("failures").iloc[-1]
    where = f"{len(small)} truths and losses, {small['runs'].iloc[0]:,} races each"
    evidence = (
        Evidence(
            "standard errors between races with losses and without, at most",
            apart.max(),
            where,
            allowed=f"≤ {reach:.2g}",
        ),
        counted(
            "trials farther from the best than was said, the most",
            int(worst["failures"]),
            int(worst["runs"]),
            f"lost: {worst['lost']}",
            f"≤ {delta:g}",
        ),
    )
    holds = bool(apart.max() <= reach) and not refutes(random, "failures")
    return Finding("X20", holds, evidence, "proved")
