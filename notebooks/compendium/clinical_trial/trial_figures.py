"""The picture of notebook 11: what each design costs, whatever is true."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from compendium.clinical_trial.vaccine_trial import GUARANTEES, PUBLISHED
from compendium.shared import figures
from compendium.shared.lineup import LOOKS, Look

# Racers look as everywhere; the trialists' designs have looks of their own.
DESIGN_LOOKS = {
    "Algorithm 1": LOOKS["EBR"],
    "fixed, the paper's": LOOKS["passive"],
    "fixed, exact": Look("C1", "d", "-"),
    "sharp EBR": LOOKS["sharp, [0, 1]"],
    "sharp EBR, loosened": Look("0.5", "x", ":"),
    "stages, O'Brien–Fleming": Look("C2", "<", "-"),
    "stages, Pocock": Look("C3", ">", "--"),
    "drop the losers": Look("C5", "*", "-."),
}


def draw_designs(table: pd.DataFrame) -> Figure:
    """Draw mean subjects along the best response rate, a panel a kind of truth; of `over_truths`."""
    kinds = [kind for kind in table["truth"].unique() if kind != PUBLISHED]
    figure, axes = plt.subplots(1, len(kinds), figsize=(figures.PAGE, 3.4), sharey=True)
    for axis, kind in zip(axes, kinds, strict=True):
        for name in GUARANTEES:
            rows = table[(table["truth"] == kind) & (table["design"] == name)]
            looks = DESIGN_LOOKS[name].line(ms=3.5, label=name, capsize=1.5)
            axis.errorbar(rows["best_rate"], rows["subjects"], rows["standard_error"], **looks)
        axis.set(yscale="log", title=kind, xlabel="best response rate")
    axes[0].set_ylabel("subjects (mean)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
