"""Our designs and the trialists': what each promises, on what grounds, and how many subjects it needs."""

from collections.abc import Mapping
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd

from compendium.clinical_trial import trial_designs
from compendium.clinical_trial.vaccine_trial import ALIKE, EASY, HARD, PUBLISHED, compare
from compendium.shared.distributions import norm
from compendium.shared.findings import CONFIDENCE, Evidence, Finding, counted, measured, refutes
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.passive import Passive
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.simulation.sweep import workers
from ebr.theory.problems import Bernoulli

CERTIFIED, FIXED = "certified EBR", "fixed, exact"
OBRIEN_FLEMING, WANG_TSIATIS, POCOCK = 1e-9, 0.25, 0.5  # Δ: nearly 0, ¼ and ½
# What is promised. Where all others are worse by ε or more, "within ε" is the same as "the best".
WITHIN, BEST = "within ε, in T rounds", "the best, if all others are ε worse"
LATE = "the same, without a deadline"
LIMIT = "in the normal limit"
REACH = float(norm.isf((1 - CONFIDENCE) / 2))  # of a 99 % interval, in standard errors
# Of each truth of the table: the most subjects that were aimed at.
AIMS = {(HARD, 0.525): 3700, (PUBLISHED, 0.967): 1050, (EASY, 0.7): 700, (ALIKE, 0.5): 5000}
BEHIND = 1.05  # at most so many times the subjects of the best rival


class Entrant(NamedTuple):
    """A design in the comparison.

    Attributes
    ----------
    algorithm
        The design.
    promise, proof
        What it promises, and what that rests on.
    ours
        Whether it is a race of this project or of the paper.
    slow
        Whether its trials take long to simulate, so that there are fewer of them.
    """

    algorithm: Algorithm
    promise: str
    proof: str
    ours: bool = False
    slow: bool = False

    @property
    def rival(self) -> bool:
        """Whether it is somebody else's and keeps the deadline."""
        return not self.ours and self.promise != LATE


def entrants(certified: Algorithm, deadline: int, epsilon: float, delta: float) -> dict[str, Entrant]:
    """All designs, by name, in the order in which they are shown."""
    goal = (deadline, epsilon, delta)
    stages, growing = trial_designs.StagedIntervals, trial_designs.GeometricIntervals
    limits = {
        "Pocock, equal looks": stages(*goal, POCOCK),
        "Pocock, growing looks": growing(*goal, POCOCK),
        "Wang–Tsiatis, growing looks": growing(*goal, WANG_TSIATIS),
        "O'Brien–Fleming, equal looks": stages(*goal, OBRIEN_FLEMING),
        "O'Brien–Fleming, growing looks": growing(*goal, OBRIEN_FLEMING),
    }
    exact = "proved for 0/1, by exact laws"
    return {
        CERTIFIED: Entrant(certified, WITHIN, exact, ours=True),
        "pausing EBR": Entrant(PausingElasticBatchRacing(*goal), WITHIN, exact, ours=True),
        "staked EBR": Entrant(StakedElasticBatchRacing(*goal), WITHIN, exact, ours=True, slow=True),
        "sharp EBR": Entrant(SharpElasticBatchRacing(*goal), WITHIN, "proved for [0, 1]", ours=True),
        "Algorithm 1": Entrant(ElasticBatchRacing(*goal), WITHIN, "proved, sub-Gaussian", ours=True),
        "fixed, the paper's": Entrant(Passive(epsilon, delta), WITHIN, "proved, sub-Gaussian", ours=True),
        FIXED: Entrant(trial_designs.ExactFixedDesign(epsilon, delta), WITHIN, exact),
        **{name: Entrant(design, WITHIN, LIMIT) for name, design in limits.items()},
        "drop the losers": Entrant(trial_designs.DropTheLosers(epsilon, delta), BEST, LIMIT),
        "Levin–Robbins–Leu": Entrant(
            trial_designs.SequentialElimination(epsilon, delta), LATE, "proved for 0/1", slow=True
        ),
    }


def over_truths(
    grid: Mapping[tuple[str, float], Bernoulli],
    field: Mapping[str, Entrant],
    epsilon: float,
    trials: int,
    slow_trials: int,
    seed: int,
) -> pd.DataFrame:
    """The tables of `compare`, one design below the other (its name is a column)."""
    # A task a design: what it must compute before it can start is computed once. The longest come first.
    order = sorted(field, key=lambda name: not field[name].slow)
    tasks = [
        joblib.delayed(compare)(
            grid, field[name].algorithm, epsilon, slow_trials if field[name].slow else trials, seed
        )
        for name in order
    ]
    with workers():
        found = dict(zip(order, joblib.Parallel(batch_size=1)(tasks), strict=True))
    tables: list[pd.DataFrame] = [found[name].assign(design=name) for name in field]
    return pd.concat(tables, ignore_index=True)


def standing(table: pd.DataFrame, field: Mapping[str, Entrant]) -> pd.DataFrame:
    """A row a design: subjects on the four truths of `AIMS`, most errors of all truths, promise and proof."""
    rows = {}
    for name, entrant in field.items():
        own = table[table["design"] == name]
        by_truth = own.set_index(["truth", "best_rate"])
        row = {}
        for truth, rate in AIMS:
            found = by_truth.loc[(truth, rate)]
            row[f"{truth}, {rate:g}"] = _with_reach(found["subjects"], found["standard_error"])
        worst = own.loc[own["errors"].idxmax()]
        row["most errors"] = f"{worst['errors']:.1%} ({worst['lower']:.1%} to {worst['upper']:.1%})"
        rows[name] = row | {"promise": entrant.promise, "proof": entrant.proof}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("design")


def _with_reach(mean: float, error: float) -> str:
    return f"{mean:,.0f} ± {REACH * error:,.0f}" if error > 0 else f"{mean:,.0f}"


def against(table: pd.DataFrame, field: Mapping[str, Entrant]) -> pd.DataFrame:
    """A row a truth: the certified design's subjects over those of the best rival, and of others.

    Columns: truth, best_rate, certified, rival and ratio with its error (the best of the rivals), other and
    other_ratio (the best of our other races), fixed_ratio (over the exact fixed design).
    """
    rows = []
    for (truth, rate), part in table.groupby(["truth", "best_rate"], sort=False):
        means = part.set_index("design")["subjects"]
        relative = part.set_index("design")["standard_error"] / means
        rival = means[[name for name in field if field[name].rival]].idxmin()
        other = means[[name for name in field if field[name].ours and name != CERTIFIED]].idxmin()
        ratio = means[CERTIFIED] / means[rival]
        rows.append(
            {"truth": truth, "best_rate": rate, "certified": means[CERTIFIED], "rival": rival}
            | {"rival_subjects": means[rival], "ratio": ratio}
            | {"error": ratio * np.hypot(relative[CERTIFIED], relative[rival])}
            | {"other": other, "other_ratio": means[CERTIFIED] / means[other]}
            | {"fixed_ratio": means[CERTIFIED] / means[FIXED]}
        )
    return pd.DataFrame(rows)


def against_in_words(ratios: pd.DataFrame) -> pd.DataFrame:
    """What `against` says, in readable numbers."""
    reach = (REACH * ratios["error"]).map("{:.2f}".format)
    other = ratios["other_ratio"].map("{:.2f}".format) + ", " + ratios["other"]
    columns = {
        "certified": ratios["certified"].map("{:,.0f}".format),
        "best rival": ratios["rival"] + ": " + ratios["rival_subjects"].map("{:,.0f}".format),
        "over it": ratios["ratio"].map("{:.2f}".format) + " ± " + reach,
        "over the exact fixed design": ratios["fixed_ratio"].map("{:.2f}".format),
        "over the best of our other races": other,
    }
    index = pd.MultiIndex.from_arrays(
        [ratios["truth"], ratios["best_rate"].map("{:g}".format)], names=["truth", "best rate"]
    )
    return pd.DataFrame(columns).set_index(index)


def comparison(table: pd.DataFrame, field: Mapping[str, Entrant], delta: float) -> Finding:
    """Check X16: on this trial the certified design needs as few subjects as was aimed at.

    On the four truths at most `AIMS`; on every truth fewer than the exact fixed design, and at most `BEHIND`
    times those of the best rival; and it errs on none of them more often than δ.
    """
    ratios, own = against(table, field), table[table["design"] == CERTIFIED].assign(delta=delta)
    by_truth = own.set_index(["truth", "best_rate"])
    aimed = [
        measured(
            "subjects",
            row["subjects"],
            row["standard_error"],
            int(row["trials"]),
            _where(*key),
            f"≤ {most:,}",
        )
        for key, most in AIMS.items()
        for row in [by_truth.loc[key]]
    ]
    worst, fixed = ratios.loc[ratios["ratio"].idxmax()], ratios.loc[ratios["fixed_ratio"].idxmax()]
    failed, runs = own.loc[own["errors"].idxmax()], int(own["trials"].min())
    where = f"{_where(worst['truth'], worst['best_rate'])}, against {worst['rival']}"
    evidence = (
        *aimed,
        measured(
            "subjects over the best rival's", worst["ratio"], worst["error"], runs, where, f"≤ {BEHIND}"
        ),
        Evidence(
            "subjects over the exact fixed design's",
            fixed["fixed_ratio"],
            _where(fixed["truth"], fixed["best_rate"]),
            allowed="< 1",
        ),
        counted(
            "trials that err, the most of all truths",
            int(failed["failures"]),
            int(failed["trials"]),
            _where(failed["truth"], failed["best_rate"]),
            f"≤ {delta:g}",
        ),
    )
    few = all(row.value <= most for row, most in zip(aimed, AIMS.values(), strict=True))
    holds = few and worst["ratio"] <= BEHIND and fixed["fixed_ratio"] < 1
    return Finding(
        "X16",
        bool(holds) and not refutes(own.rename(columns={"trials": "runs"}), "failures"),
        evidence,
        "simulated",
    )


def _where(truth: str, rate: float) -> str:
    return f"{truth}, {rate:g}"
