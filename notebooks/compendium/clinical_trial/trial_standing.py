"""How many subjects each trial design needs: tables of who is best where, and the check of X16."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from compendium.clinical_trial.trial_rivals import CERTIFIED, FIXED, Entrant
from compendium.clinical_trial.vaccine_trial import ALIKE, EASY, HARD, PUBLISHED
from compendium.shared.distributions import norm
from compendium.shared.findings import CONFIDENCE, Evidence, Finding, counted, measured, refutes

REACH = float(norm.isf((1 - CONFIDENCE) / 2))  # of a 99 % interval, in standard errors
# Of each truth of the table: the most subjects that were aimed at.
AIMS = {(HARD, 0.525): 3700, (PUBLISHED, 0.967): 1050, (EASY, 0.7): 700, (ALIKE, 0.5): 5000}
BEHIND = 1.05  # aimed at: so many times the subjects of the best rival, at most

Row = dict[str, Any]


def _by_truth(table: pd.DataFrame) -> dict[tuple[str, float], dict[str, Row]]:
    """The rows of a table of `over_truths`, by truth and then by design."""
    found: dict[tuple[str, float], dict[str, Row]] = {}
    for row in table.to_dict("records"):
        found.setdefault((row["truth"], row["best_rate"]), {})[row["design"]] = {
            str(k): v for k, v in row.items()
        }
    return found


def standing(table: pd.DataFrame, field: Mapping[str, Entrant]) -> pd.DataFrame:
    """A row a design: subjects on the four truths of `AIMS`, most errors of all truths, promise and proof."""
    rows, truths = {}, _by_truth(table)
    for name, entrant in field.items():
        row = {where(*truth): _with_reach(truths[truth][name]) for truth in AIMS}
        worst = max((designs[name] for designs in truths.values()), key=lambda one: float(one["errors"]))
        row["most errors"] = f"{worst['errors']:.1%} ({worst['lower']:.1%} to {worst['upper']:.1%})"
        rows[name] = row | {"promise": entrant.promise, "proof": entrant.proof}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("design")


def _with_reach(row: Row) -> str:
    reach = REACH * row["standard_error"]
    return f"{row['subjects']:,.0f} ± {reach:,.0f}" if reach > 0 else f"{row['subjects']:,.0f}"


def where(truth: str, rate: float) -> str:
    """A truth in words."""
    return f"{truth}, {rate:g}"


def against(table: pd.DataFrame, field: Mapping[str, Entrant]) -> pd.DataFrame:
    """A row a truth: the certified design's subjects over those of the best rival, and of others.

    Columns: truth, best_rate, certified, rival, rival_subjects and ratio with its error (the best of the
    rivals), other and other_ratio (the best of our other races), fixed_ratio (over the exact fixed design).
    """
    rows = []
    for (truth, rate), designs in _by_truth(table).items():
        means = {name: float(row["subjects"]) for name, row in designs.items()}
        rival = min((name for name in means if field[name].rival), key=lambda name: means[name])
        ours = (name for name in means if field[name].ours and name != CERTIFIED)
        other, own = min(ours, key=lambda name: means[name]), means[CERTIFIED]
        relative = (designs[name]["standard_error"] / means[name] for name in (CERTIFIED, rival))
        rows.append(
            {"truth": truth, "best_rate": rate, "certified": own}
            | {"rival": rival, "rival_subjects": means[rival], "ratio": own / means[rival]}
            | {"error": own / means[rival] * math.hypot(*relative)}
            | {"other": other, "other_ratio": own / means[other], "fixed_ratio": own / means[FIXED]}
        )
    return pd.DataFrame(rows)


def in_words(ratios: pd.DataFrame) -> pd.DataFrame:
    """What `against` says, in readable numbers."""
    reach = (REACH * ratios["error"]).map("{:.2f}".format)
    columns = {
        "certified": ratios["certified"].map("{:,.0f}".format),
        "best rival": ratios["rival"] + ": " + ratios["rival_subjects"].map("{:,.0f}".format),
        "over it": ratios["ratio"].map("{:.2f}".format) + " ± " + reach,
        "over the exact fixed design": ratios["fixed_ratio"].map("{:.2f}".format),
        "over the best of our other races": ratios["other_ratio"].map("{:.2f}".format)
        + ", "
        + ratios["other"],
    }
    truth = [ratios["truth"], ratios["best_rate"].map("{:g}".format)]
    return pd.DataFrame(columns).set_index(pd.MultiIndex.from_arrays(truth, names=["truth", "best rate"]))
