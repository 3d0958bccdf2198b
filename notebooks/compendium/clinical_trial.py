"""A clinical trial under a deadline: simulated patients of vaccine candidates, two months a round."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import binomtest

from compendium import figures
from compendium.lineup import LOOKS
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.passive import Passive
from ebr.algorithms.sequential import SequentialRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import IntArray
from ebr.live.race import Race
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Bernoulli

__all__ = [
    "CANDIDATES",
    "MONTHS_A_ROUND",
    "compare",
    "designs",
    "draw_designs",
    "hardest",
    "patients",
    "problem",
    "round_of",
    "shown",
]

MONTHS_A_ROUND = 2
# Whose looks each design has in the figure.
RACERS = {
    "fixed design, the paper's": "passive",
    "fixed design, sharp": "sharp",
    "Algorithm 1": "EBR",
    "sharp EBR": "sharp, [0, 1]",
    "sequential oracle": "sequential",
}
# Published seroprotection rates (haemagglutination-inhibition titre of 1:40 or more), three weeks after one
# dose of a vaccine against the 2009 pandemic influenza A(H1N1). They come from three trials with different
# people: realistic numbers for imagined candidates, not a comparison of these vaccines.
CANDIDATES: dict[str, tuple[float, str]] = {
    "7.5 µg split, aluminium": (0.695, "Liang et al., Lancet 2010, doi 10.1016/S0140-6736(09)62003-1"),
    "MF59 adjuvant": (0.795, "Huijskens et al., Clin. Vaccine Immunol. 2011, doi 10.1128/CVI.05046-11"),
    "30 µg split": (0.928, "Liang et al., Lancet 2010, doi 10.1016/S0140-6736(09)62003-1"),
    "30 µg split, another": (0.933, "Greenberg et al., N. Engl. J. Med. 2009, doi 10.1056/NEJMoa0907413"),
    "15 µg split": (0.967, "Greenberg et al., N. Engl. J. Med. 2009, doi 10.1056/NEJMoa0907413"),
}


def problem() -> Bernoulli:
    """The candidates as arms: a subject responds or does not."""
    return Bernoulli(np.array([rate for rate, _ in CANDIDATES.values()]))


def patients(asked: Mapping[str, int], generator: np.random.Generator) -> dict[str, IntArray]:
    """Simulate so many subjects of each candidate: 1 for a response, 0 for none."""
    return {name: generator.binomial(1, CANDIDATES[name][0], number) for name, number in asked.items()}


def round_of(race: Race, seed: int) -> None:
    """Run one round of a trial with simulated patients, the same however often the round is repeated."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, race.round]))
    race.tell(patients(race.ask(), generator))


def designs(deadline: int, epsilon: float, delta: float) -> dict[str, Algorithm]:
    """Ways to run the trial."""
    return {
        "fixed design, the paper's": Passive(epsilon, delta),
        "fixed design, sharp": SharpElasticBatchRacing(1, epsilon, delta),
        "Algorithm 1": ElasticBatchRacing(deadline, epsilon, delta),
        "sharp EBR": SharpElasticBatchRacing(deadline, epsilon, delta),
        "sequential oracle": SequentialRacing(epsilon, delta),
    }


def hardest(epsilon: float) -> Bernoulli:
    """As many candidates, the best as good as the real one, all others just ε worse."""
    best, others = problem().means.max(), len(CANDIDATES) - 1
    return Bernoulli(np.append(np.full(others, best - epsilon * (1 + 1e-6)), best))


def compare(
    candidates: Bernoulli, deadline: int, epsilon: float, delta: float, trials: int, seed: int
) -> pd.DataFrame:
    """Many simulated trials of each design.

    Columns: subjects (mean) and nine_in_ten (their 90 % quantile), months (mean), best (how often the very
    best candidate is chosen), errors (one not within ε), and upper, the errors' exact 95 % bound.
    """
    rows = {}
    for name, algorithm in designs(deadline, epsilon, delta).items():
        trial = simulate(algorithm, candidates, trials, seed)
        errors = int((~trial.correct(epsilon)).sum())
        interval = binomtest(errors, trials).proportion_ci(confidence_level=0.9, method="exact")
        rows[name] = {
            "subjects": trial.pulls.mean(),
            "nine_in_ten": np.quantile(trial.pulls, 0.9),
            "months": MONTHS_A_ROUND * trial.rounds.mean(),
            "best": float(np.mean(trial.arm == candidates.best)),
            "errors": errors,
            "upper": float(interval.high),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("design")


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `compare` in readable numbers."""
    return pd.DataFrame(
        {
            "subjects": table["subjects"].map("{:,.0f}".format),
            "nine in ten trials need at most": table["nine_in_ten"].map("{:,.0f}".format),
            "months": table["months"].map("{:,.1f}".format),
            "the very best chosen": table["best"].map("{:.1%}".format),
            "errors": table["errors"],
            "errors, 95 % bound": table["upper"].map("{:.2%}".format),
        }
    )


def draw_designs(table: pd.DataFrame) -> Figure:
    """Draw subjects against months, from the table of `compare`."""
    figure, axis = plt.subplots(figsize=(figures.COLUMN, 2.4))
    small: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7}
    paper: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    for name, row in table.iterrows():
        place, left = (row["months"], row["subjects"]), name == "sequential oracle"
        axis.plot(*place, **LOOKS[RACERS[str(name)]].line(ls="", ms=5))
        side = "right" if left else "left"
        axis.annotate(str(name), place, (-7 if left else 7, 0), ha=side, va="center", bbox=paper, **small)
    axis.axvline(12, color="0.6", lw=0.8, ls=":", zorder=0)
    axis.annotate("a year", (12, 1), (3, -8), xycoords=("data", "axes fraction"), color="0.4", **small)
    axis.set(xscale="log", yscale="log", xlabel="months", ylabel="subjects", xlim=(1, 2e5), ylim=(5e2, 4e5))
    return figure
