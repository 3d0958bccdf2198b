"""A trial with a control: what it saves to end where no candidate can be better by a margin."""

from collections.abc import Iterable
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium.clinical_trial.vaccine_trial import errors, subjects
from compendium.shared import figures
from compendium.shared.lineup import Look
from ebr.algorithms.certified import CertifiedElasticBatchRacing
from ebr.simulation.simulate import simulate
from ebr.theory.problems import Bernoulli

# No control is drawn last, on top, as an open marker: a margin of ε has nearly the same subjects.
LOOKS = (
    Look("0.15", "o", (0, (1, 2))),
    Look("#88CCEE", "s", "-"),
    Look("#AA4499", "^", "--"),
    Look("#117733", "D", "-."),
)


def truth(control: float, lead: float, n_arms: int) -> Bernoulli:
    """The control first; one candidate better by the lead and the others like it, or all worse by −lead."""
    others = np.full(n_arms - 1, control + min(lead, 0.0))
    others[-1] = control + lead
    return Bernoulli(np.append(control, others))


def compare(
    algorithm: CertifiedElasticBatchRacing,
    margins: Iterable[float],
    leads: Iterable[float],
    control: float,
    n_arms: int,
    number: int,
    seed: int,
) -> pd.DataFrame:
    """A row a lead of the best candidate and a margin, NaN for a race without a control.

    Columns: lead, margin, subjects (mean), standard_error, kept (how often the control is recommended),
    errors (it is though a candidate is better by the margin, or another is that is not within ε) with their
    exact interval, lower and upper.
    """
    plain = replace(algorithm, control=None, margin=None)
    ways = {np.nan: plain} | {m: replace(plain, control=0, margin=m) for m in margins}
    rows = []
    for margin, way in ways.items():
        for lead in leads:
            problem = truth(control, lead, n_arms)
            found = simulate(way, problem, number, seed)
            allowed = np.where((found.arm == 0) & (way.control == 0), margin, way.epsilon)
            wrong = problem.means.max() - problem.means[found.arm] >= allowed - 1e-9
            row = {"lead": lead, "margin": margin} | subjects(found.pulls)
            rows.append(row | {"kept": float((found.arm == 0).mean())} | errors(wrong))
    return pd.DataFrame(rows).assign(trials=number)


def draw(table: pd.DataFrame) -> Figure:
    """Draw subjects, and how often the control is recommended, along the lead of the best candidate."""
    figure, (cost, kept) = plt.subplots(1, 2, figsize=(figures.PAGE, 2.9))
    names = table["margin"].map(lambda margin: "no control" if np.isnan(margin) else f"margin {margin:g}")
    for name, look in zip(names.unique(), LOOKS, strict=False):
        rows = table[names == name]
        own = {"ms": 6.5, "mfc": "none", "zorder": 5} if name == "no control" else {"ms": 3.5}
        cost.errorbar(rows["lead"], rows["subjects"], rows["standard_error"], **look.line(label=name, **own))
        kept.plot(rows["lead"], rows["kept"], **look.line(**own))
    cost.set(ylabel="subjects (mean)", ylim=(0, None))
    kept.set(ylabel="the control is recommended")
    for axis in (cost, kept):
        axis.set(xlabel="lead of the best candidate over the control", xticks=(-0.1, 0, 0.1, 0.2, 0.3))
    figures.letters((cost, kept))
    figure.legend(*cost.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
