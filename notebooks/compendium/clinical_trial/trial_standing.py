"""How many subjects each trial design needs: tables of who is best where, and the check of X16."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from compendium.clinical_trial.trial_rivals import CERTIFIED, FIXED, LATE, Entrant
from compendium.clinical_trial.vaccine_trial import ALIKE, EASY, HARD, PUBLISHED
from compendium.shared.distributions import norm
from compendium.shared.findings import CONFIDENCE, FALSE_ALARM, Evidence, Finding, counted, measured, refutes

REACH = float(norm.isf((1 - CONFIDENCE) / 2))  # of a 99 % interval, in standard errors
# Of each truth of the table: the most subjects that were aimed at.
AIMS = {(HARD, 0.525): 3700, (PUBLISHED, 0.967): 1050, (EASY, 0.7): 700, (ALIKE, 0.5): 5000}
LEVEL = 1.0  # times a rival's subjects, in the geometric mean of all truths
BEHIND = 1.05  # times the subjects of the best rival of a truth, at most

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


def each_rival(table: pd.DataFrame, field: Mapping[str, Entrant]) -> pd.DataFrame:
    """A row a design with a deadline, by name: the certified design's subjects over its own, on all truths.

    Columns: fewer and more (on how many truths by the 99 % intervals of the ratios), least, mean (geometric)
    and most.
    """
    rows: dict[str, dict[str, float]] = {}
    for name, entrant in field.items():
        if name == CERTIFIED or entrant.promise == LATE:
            continue
        ratios, reaches = [], []
        for designs in _by_truth(table).values():
            own, other = designs[CERTIFIED], designs[name]
            ratios.append(own["subjects"] / other["subjects"])
            relative = (row["standard_error"] / row["subjects"] for row in (own, other))
            reaches.append(REACH * ratios[-1] * math.hypot(*relative))
        pairs = list(zip(ratios, reaches, strict=True))
        rows[name] = {
            "fewer": sum(ratio + reach < 1 for ratio, reach in pairs),
            "more": sum(ratio - reach > 1 for ratio, reach in pairs),
            "least": min(ratios),
            "mean": math.exp(math.fsum(map(math.log, ratios)) / len(ratios)),
            "most": max(ratios),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("design")


def each_in_words(rivals: pd.DataFrame, truths: int) -> pd.DataFrame:
    """What `each_rival` says, in readable numbers."""
    columns = {
        f"fewer subjects, of {truths} truths": rivals["fewer"].map("{:.0f}".format),
        "more subjects": rivals["more"].map("{:.0f}".format),
        "certified over it: least": rivals["least"].map("{:.2f}".format),
        "geometric mean": rivals["mean"].map("{:.2f}".format),
        "most": rivals["most"].map("{:.2f}".format),
    }
    return pd.DataFrame(columns)


def comparison(table: pd.DataFrame, field: Mapping[str, Entrant], delta: float) -> Finding:
    """Check X16: on this trial the certified design needs as few subjects as the claim says.

    On the four truths at most `AIMS`; on every truth fewer than the exact fixed design, and no more than
    `BEHIND` times those of the best rival beyond chance; fewer than each rival on some truths, and in the
    geometric mean of all at most `LEVEL` times; and it errs on no truth more often than δ.
    """
    truths, ratios, rivals = _by_truth(table), against(table, field), each_rival(table, field)
    rivals = rivals.loc[[name for name in rivals.index if field[str(name)].rival]]
    aimed = [
        _measured("subjects", truths[truth][CERTIFIED], 1, f"≤ {most:,}") for truth, most in AIMS.items()
    ]
    fixed = truths[next(iter(truths))][FIXED]["subjects"]  # the same whatever is true
    own = [designs[CERTIFIED] for designs in truths.values()]
    most = max(own, key=lambda row: float(row["subjects"]))
    # That it needs fewer everywhere is refuted where it needs more beyond chance.
    more = most["subjects"] - float(norm.isf(FALSE_ALARM)) * most["standard_error"] >= fixed
    worst = max(own, key=lambda row: float(row["errors"]))
    evidence = (
        *aimed,
        _measured("subjects over the exact fixed design's, at most", most, fixed, "< 1"),
        *_beside(ratios, rivals),
        counted("trials that err", worst["failures"], worst["trials"], _where(worst), f"≤ {delta:g}"),
    )
    few = all(row.value <= limit for row, limit in zip(aimed, AIMS.values(), strict=True))
    level = rivals["fewer"].min() > 0 and rivals["mean"].max() <= LEVEL
    level &= bool((ratios["ratio"] - float(norm.isf(FALSE_ALARM)) * ratios["error"] <= BEHIND).all())
    tested = table[table["design"] == CERTIFIED].rename(columns={"trials": "runs"}).assign(delta=delta)
    holds = few and level and not more and not refutes(tested, "failures")
    return Finding("X16", bool(holds), evidence, "simulated")


def _where(row: Row) -> str:
    return where(row["truth"], row["best_rate"])


def _measured(what: str, row: Row, over: float, allowed: str) -> Evidence:
    """A design's mean subjects over a number."""
    mean, error = row["subjects"] / over, row["standard_error"] / over
    return measured(what, mean, error, row["trials"], _where(row), allowed)


def _beside(ratios: pd.DataFrame, rivals: pd.DataFrame) -> list[Evidence]:
    """How it stands to each rival, and to the best of each truth."""
    few, near = str(rivals["fewer"].idxmin()), str(rivals["mean"].idxmax())
    reached, last = int((ratios["ratio"] <= BEHIND).sum()), ratios.loc[[ratios["ratio"].idxmax()]].iloc[0]
    what = "subjects over a rival's, geometric mean of all truths, at most"
    return [
        Evidence(
            "truths with fewer subjects than a rival, at least", rivals["fewer"].min(), few, allowed="> 0"
        ),
        Evidence(what, rivals["mean"].max(), near, allowed=f"≤ {LEVEL:g}"),
        Evidence(f"truths with at most {BEHIND} times the best rival's", reached, f"of {len(ratios)}"),
        Evidence(
            "subjects over the best rival's of the same truth, at most",
            last["ratio"],
            where(last["truth"], last["best_rate"]),
            allowed=f"≤ {BEHIND}, but for chance",
        ),
    ]
