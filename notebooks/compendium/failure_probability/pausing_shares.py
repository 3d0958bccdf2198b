"""The exact share of δ that pausing EBR uses on a few arms, over models, T, ε, δ and means."""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pandas as pd

from compendium.failure_probability import enumeration
from compendium.failure_probability.exact_failures import log10_failure
from compendium.shared.findings import Evidence
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.theory.problems import Bernoulli, Gaussian

ASKED = (0.9, 0.5, 0.1, 0.01)  # δ
FORMS = ("Bernoulli", "bounded", "sub-Gaussian", "Gaussian")
EDGE = 1e-3  # how close to 0 or 1 a mean comes
MOST = 60_000  # outcomes that are played before the last round
Place = tuple[str, int, int, float, float]  # the model, n, T, ε and δ
Make = Callable[..., PausingElasticBatchRacing]


def places(asked: tuple[float, ...] = ASKED) -> Iterator[Place]:
    """Where shares are computed: two arms and T up to 3, three and T up to 2; two Gaussian arms, T up to 4.

    ε is small for Gaussian arms, so that the race never looks ahead and both arms are at the same stage.
    """
    for model, (n_arms, deadline) in product(FORMS[:3], ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2))):
        for epsilon, delta in product((0.5, 0.3, 0.15), asked):
            yield model, n_arms, deadline, epsilon, delta
    for deadline, epsilon, delta in product((1, 2, 3, 4), (0.01, 1e-3), asked):
        yield "Gaussian", 2, deadline, epsilon, delta


def shares(make: Make = PausingElasticBatchRacing, only: Iterator[Place] | None = None) -> pd.DataFrame:
    """The failure probability over δ: a row for each place, with the worst of some means.

    Columns: model, n_arms, deadline, epsilon, delta, top (the best arm's mean), share. All others are worse
    by ε and come first, so that ties are lost. Races with too many outcomes are left out.
    """
    rows = []
    for model, n_arms, deadline, epsilon, delta in only or places():
        race = make(deadline, epsilon, delta, rewards=model)
        if model != "Gaussian" and _outcomes(race, n_arms) > MOST:
            continue
        tops = np.linspace(epsilon + EDGE, 1 - EDGE, 1 if model == "Gaussian" else 9)
        share, top = max((_failure(race, n_arms, float(top)) / delta, float(top)) for top in tops)
        place = {"model": model, "n_arms": n_arms, "deadline": deadline, "epsilon": epsilon, "delta": delta}
        rows.append({**place, "top": top, "share": share})
    return pd.DataFrame(rows)


def _outcomes(race: PausingElasticBatchRacing, n_arms: int) -> float:
    """How many outcomes the rounds before the last have, at most, if every arm goes on to the next stage."""
    return float(np.prod(np.diff(race.pulls_by_stage(n_arms)[:-1], prepend=0) + 1.0)) ** n_arms


def _failure(race: PausingElasticBatchRacing, n_arms: int, top: float) -> float:
    """P(a race returns another arm than the last, which is best)."""
    means = np.full(n_arms, top - race.epsilon * (1 + 1e-6))
    means[-1] = top
    if race.rewards == "Gaussian":
        return float(10 ** log10_failure(race, Gaussian(means, 0.5)))
    return enumeration.failure(race, Bernoulli(means))


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The largest shares over ε and the means: models, n and T against δ."""
    index = ["model", "n_arms", "deadline"]
    pivot = table.pivot_table(index=index, columns="delta", values="share", aggfunc="max", sort=False)
    return pivot.rename_axis(index=["model", "n", "T"], columns="δ").map("{:.3f}".format)


def evidence(table: pd.DataFrame) -> tuple[bool, tuple[Evidence, ...]]:
    """Whether no share exceeds 1, and the largest of each model."""
    rows = []
    for model, part in table.groupby("model", sort=False):
        row = part.sort_values("share").iloc[-1]
        where = f"n = {row['n_arms']}, T = {row['deadline']}, ε = {row['epsilon']:g}, δ = {row['delta']:g}"
        what = f"pausing EBR, {model}: exact failures over δ"
        rows.append(Evidence(what, row["share"], where, allowed="≤ 1"))
    return bool((table["share"] <= 1).all()), tuple(rows)
