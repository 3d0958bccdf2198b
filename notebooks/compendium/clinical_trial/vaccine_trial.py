"""A clinical trial under a deadline: simulated patients of vaccine candidates, two months a round."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd

from compendium.clinical_trial.trial_designs import DropTheLosers, ExactFixedDesign, StagedIntervals
from compendium.shared.distributions import frequency_interval
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.passive import Passive
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.arrays import BoolArray, IntArray
from ebr.live.race import Race
from ebr.simulation.simulate import simulate
from ebr.simulation.sweep import workers
from ebr.theory.problems import Bernoulli

MONTHS_A_ROUND = 2
CONFIDENCE = 0.999  # of each interval around a design's errors: there are about a hundred
OBRIEN_FLEMING, POCOCK = 1e-9, 0.5  # Δ, nearly and exactly
# What stands behind the errors of each design, in the order in which they are shown.
GUARANTEES = {
    "Algorithm 1": "proved, sub-Gaussian rewards",
    "fixed, the paper's": "proved, sub-Gaussian rewards",
    "fixed, exact": "proved for responses, by exact binomial sums",
    "sharp EBR": "proved, any rewards in [0, 1]",
    "sharp EBR, loosened": "none: loosened until its errors here were δ",
    "stages, O'Brien–Fleming": "in the normal limit",
    "stages, Pocock": "in the normal limit",
    "drop the losers": "in the normal limit, all others ε worse",
}
HARD, EASY, ALIKE, PUBLISHED = "all others ε worse", "all others 0.3 worse", "all alike", "as published"
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


def round_of(race: Race, seed: int) -> None:
    """Run one round of a trial with simulated patients, the same however often the round is repeated."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, race.round]))
    asked = race.ask().items()
    race.tell({name: generator.binomial(1, CANDIDATES[name][0], number) for name, number in asked})


def designs(deadline: int, epsilon: float, delta: float, loosened: float) -> dict[str, Algorithm]:
    """Ways to run the trial; `loosened` is the δ with which sharp EBR really errs with δ."""
    found: dict[str, Algorithm] = {
        "Algorithm 1": ElasticBatchRacing(deadline, epsilon, delta),
        "fixed, the paper's": Passive(epsilon, delta),
        "fixed, exact": ExactFixedDesign(epsilon, delta),
        "sharp EBR": SharpElasticBatchRacing(deadline, epsilon, delta),
        "sharp EBR, loosened": SharpElasticBatchRacing(deadline, epsilon, loosened),
        "stages, O'Brien–Fleming": StagedIntervals(deadline, epsilon, delta, OBRIEN_FLEMING),
        "stages, Pocock": StagedIntervals(deadline, epsilon, delta, POCOCK),
        "drop the losers": DropTheLosers(epsilon, delta),
    }
    assert list(found) == list(GUARANTEES)
    return found


def one_better(best: float, gap: float) -> Bernoulli:
    """As many candidates as there are, the last one of this rate, all others worse by the gap."""
    return Bernoulli(np.append(np.full(len(CANDIDATES) - 1, max(best - gap, 0)), best))


def truths(epsilon: float, rates: Iterable[float]) -> dict[tuple[str, float], Bernoulli]:
    """Response rates that could be true, by their kind and the best rate.

    Where all others are "ε worse" they are so by a millionth more: none of them is a right answer.
    """
    gaps = {HARD: epsilon * (1 + 1e-6), EASY: 0.3, ALIKE: 0.0}
    grid = {(kind, rate): one_better(rate, gap) for kind, gap in gaps.items() for rate in rates}
    published = problem()
    return grid | {(PUBLISHED, float(published.means.max())): published}


def subjects(pulls: IntArray) -> dict[str, float]:
    """Subjects of a trial, the mean, and its standard error."""
    return {"subjects": pulls.mean(), "standard_error": pulls.std(ddof=1) / np.sqrt(len(pulls))}


def errors(wrong: BoolArray) -> dict[str, float]:
    """How often trials err, with an exact 99.9 % interval."""
    lower, upper = frequency_interval(int(wrong.sum()), len(wrong), CONFIDENCE)
    return {"errors": int(wrong.sum()) / len(wrong), "lower": lower, "upper": upper}


def in_words(table: pd.DataFrame) -> dict[str, list[str]]:
    """A table's errors and their intervals, in readable numbers."""
    interval = zip(table["lower"], table["upper"], strict=True)
    return {
        "errors": [f"{share:.1%}" for share in table["errors"]],
        "99.9 % interval": [f"{low:.1%} to {high:.1%}" for low, high in interval],
    }


def compare(
    grid: Mapping[tuple[str, float], Bernoulli], algorithm: Algorithm, epsilon: float, trials: int, seed: int
) -> pd.DataFrame:
    """Many simulated trials of a design, a row a truth.

    Columns: truth, best_rate, subjects (mean), its standard error, and nine_in_ten (their 90 % quantile),
    months (mean), best (how often the very best candidate is chosen), errors (how often one not within ε)
    with lower and upper, an exact 99.9 % interval.
    """
    rows = []
    for (truth, rate), candidates in grid.items():
        trial = simulate(algorithm, candidates, trials, seed)
        row = {"truth": truth, "best_rate": rate} | subjects(trial.pulls)
        row |= {
            "nine_in_ten": np.quantile(trial.pulls, 0.9),
            "months": MONTHS_A_ROUND * trial.rounds.mean(),
            "best": float(np.mean(trial.arm == candidates.best)),
        }
        rows.append(row | errors(~trial.correct(epsilon)))
    return pd.DataFrame(rows)


def over_truths(
    grid: Mapping[tuple[str, float], Bernoulli],
    ways: Mapping[str, Algorithm],
    epsilon: float,
    trials: int,
    seed: int,
) -> pd.DataFrame:
    """The tables of `compare`, one design below the other (its name is a column)."""
    # A task a design: what it must compute before it can start is computed once.
    tasks = [joblib.delayed(compare)(grid, way, epsilon, trials, seed) for way in ways.values()]
    with workers():
        tables = joblib.Parallel(batch_size=1)(tasks)
    named: list[pd.DataFrame] = [
        table.assign(design=name, trials=trials) for name, table in zip(ways, tables, strict=True)
    ]
    return pd.concat(named, ignore_index=True)


def shown(table: pd.DataFrame, truth: str, best_rate: float) -> pd.DataFrame:
    """What `over_truths` says of one truth, in readable numbers."""
    rows = table[(table["truth"] == truth) & (table["best_rate"] == best_rate)].set_index("design")
    columns = {
        "subjects": rows["subjects"].map("{:,.0f}".format),
        "nine in ten need at most": rows["nine_in_ten"].map("{:,.0f}".format),
        "months": rows["months"].map("{:.1f}".format),
        "the very best": rows["best"].map("{:.1%}".format),
    }
    return pd.DataFrame(columns | in_words(rows) | {"guarantee": rows.index.map(GUARANTEES)})


def cheapest(table: pd.DataFrame) -> pd.DataFrame:
    """Who needs the fewest subjects on average, truth by truth: among all, and among those with a proof."""
    rows = {}
    for (truth, rate), part in table.groupby(["truth", "best_rate"], sort=False):
        by_name = part.set_index("design")["subjects"]
        proved = by_name[[name for name in by_name.index if GUARANTEES[name].startswith("proved")]]
        promised = by_name.drop("sharp EBR, loosened")
        rows[truth, f"{rate:g}"] = {
            "fewest subjects": f"{promised.idxmin()}: {promised.min():,.0f}",
            "fewest with a proof": f"{proved.idxmin()}: {proved.min():,.0f}",
            "sharp EBR": f"{by_name['sharp EBR']:,.0f}",
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["truth", "best rate"])


def with_a_second(algorithm: Algorithm, best: float, epsilon: float, trials: int, seed: int) -> pd.DataFrame:
    """How often a design errs if one candidate lies between the best and the others, which are ε worse."""
    columns = {}
    for share in (0, 0.25, 0.5, 0.75, 1):
        means = one_better(best, epsilon * (1 + 1e-6)).means.copy()
        means[0] = best - share * epsilon * (1 + 1e-6)
        found = compare({(HARD, best): Bernoulli(means)}, algorithm, epsilon, trials, seed).iloc[0]
        columns[f"{share:g} ε"] = f"{found['errors']:.1%} ({found['lower']:.1%} to {found['upper']:.1%})"
    return pd.DataFrame(columns, index=["errors"])


def endings(
    algorithm: SharpElasticBatchRacing, candidates: Bernoulli, deadlines: Iterable[int], trials: int
) -> pd.DataFrame:
    """For several deadlines: mean subjects, and of each round its subjects an arm and the trials it ends."""
    rows = {}
    for deadline in deadlines:
        one = replace(algorithm, deadline=deadline)
        trial = simulate(one, candidates, trials)
        ended = np.bincount(trial.rounds, minlength=deadline + 1)[1:] / trials
        looks = one.pulls_by_round(candidates.n_arms, candidates.rewards)
        rows[deadline] = {"subjects": "{:,.0f} ± {:,.0f}".format(*subjects(trial.pulls).values())} | {
            f"round {t}": f"{share:.0%} at {look:,}"
            for t, (share, look) in enumerate(zip(ended, looks, strict=True), 1)
        }
    return pd.DataFrame.from_dict(rows, orient="index").fillna("").rename_axis("rounds")
