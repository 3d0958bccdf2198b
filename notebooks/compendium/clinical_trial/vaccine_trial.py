"""A clinical trial under a deadline: simulated patients of vaccine candidates, two months a round."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from compendium.shared.distributions import frequency_interval
from ebr.algorithms.game import Algorithm
from ebr.arrays import BoolArray, IntArray
from ebr.live.race import Race
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Bernoulli

MONTHS_A_ROUND = 2
CONFIDENCE = 0.999  # of each interval around a design's errors: there are about a hundred
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


def published() -> pd.DataFrame:
    """The candidates' response rates and where they were published."""
    rows = {name: (rate, *source.split(", doi ")) for name, (rate, source) in CANDIDATES.items()}
    return pd.DataFrame(rows, index=["response rate", "source", "doi"]).T


def problem() -> Bernoulli:
    """The candidates as arms: a subject responds or does not."""
    return Bernoulli(np.array([rate for rate, _ in CANDIDATES.values()]))


def round_of(race: Race, seed: int) -> None:
    """Run one round of a trial with simulated patients, the same however often the round is repeated."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, race.round]))
    asked = race.ask().items()
    race.tell({name: generator.binomial(1, CANDIDATES[name][0], number) for name, number in asked})


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

    Columns: truth, best_rate, subjects (mean), standard_error, rounds (mean), failures (trials that choose
    one not within ε), errors (their share) with lower and upper, an exact 99.9 % interval, and trials.
    """
    rows = []
    for (truth, rate), candidates in grid.items():
        trial = simulate(algorithm, candidates, trials, seed)
        row = {"truth": truth, "best_rate": rate} | subjects(trial.pulls)
        wrong = ~trial.correct(epsilon)
        row |= {"rounds": trial.rounds.mean(), "failures": int(wrong.sum())}
        rows.append(row | errors(wrong))
    return pd.DataFrame(rows).assign(trials=trials)
