"""Staked EBR's own claim, X15: the final's share, all paths of small races, the supermartingale."""

import math

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.stats import binom

from compendium.shared.distributions import norm
from compendium.shared.findings import FALSE_ALARM, Evidence, Finding, counted, measured, refutes
from ebr.algorithms.staked import LAST, StakedElasticBatchRacing
from ebr.models import REWARDS
from ebr.theory.divergence import bernoulli_kl

ROUNDING = 1e-9
# n, T, ε and δ of the finals whose sign is summed up.
FINALS = ((2, 2, 0.2, 0.1), (2, 1, 0.3, 0.5), (10, 4, 0.1, 0.1), (30, 15, 0.15, 0.01), (3, 9, 0.2, 0.9))
SHARES = np.linspace(0, 1, 41)  # of 1 − ε: where the worse arm's mean is


def finals() -> pd.DataFrame:
    """What the sign at b_T spends, over its share c_T δ of δ (all of it for T = 1): the most by model."""
    rows = []
    for model in REWARDS:
        spent = []
        for n_arms, deadline, epsilon, delta in FINALS:
            race = StakedElasticBatchRacing(deadline, epsilon, delta, rewards=model)
            pulls = race.last_count(n_arms, model)
            share = delta * (LAST if deadline > 1 else 1.0)
            spent.append(wrong_sign(model, n_arms, pulls, epsilon) / share)
        rows.append((model, max(spent)))
    return pd.DataFrame(rows, columns=["model", "spent"])


def wrong_sign(model: str, n_arms: int, pulls: int, epsilon: float) -> float:
    """How likely some of n − 1 arms, worse by ε, is not behind after b rewards each, or a bound; σ = ½."""
    if model == "Gaussian":
        ahead = epsilon * math.sqrt(pulls) / 0.5
        return float(quad(lambda y: norm.pdf(y) * (1 - norm.cdf(y + ahead) ** (n_arms - 1)), -12, 12)[0])
    if model != "Bernoulli":
        return (n_arms - 1) * math.exp(-pulls * epsilon**2)
    sums = np.arange(pulls + 1)[:, None]
    low = SHARES * (1 - epsilon)
    at_most = binom.cdf(sums, pulls, low + epsilon)  # of the best
    return float((n_arms - 1) * np.max(np.sum(binom.pmf(sums, pulls, low) * at_most, axis=0)))


def pooled(watched: pd.DataFrame) -> pd.DataFrame:
    """The supermartingale's mean over all problems of a kind, after the first round and after the last.

    Columns: model, kind, when, runs; over, the mean of min(M, 1) over that of (1 − c_T) δ, and its standard
    error; nats: if min(M, 1) is a supermartingale, so large a mean has probability e^{−nats} at most
    (Hoeffding 1963, Theorem 1: independent variables in [0, 1]).
    """
    rows = []
    last = watched.groupby(["model", "problem"])["round"].transform("max")
    for when, chosen in (("first", watched["round"] == 1), ("last", watched["round"] == last)):
        for (model, kind), part in watched[chosen].groupby(["model", "kind"], sort=False):
            mean, allowed = part["wealth"].mean(), part["allowed"].mean()
            error = math.sqrt((part["error"] ** 2).sum()) / len(part)
            runs = int(part["runs"].sum())
            nats = runs * bernoulli_kl(min(mean, 1 - ROUNDING), allowed) if mean > allowed else 0.0
            rows.append((model, kind, when, runs, mean / allowed, error / allowed, nats))
    return pd.DataFrame(rows, columns=["model", "kind", "when", "runs", "over", "error", "nats"])


def guarantee(
    signs: pd.DataFrame, paths: pd.DataFrame, watched: pd.DataFrame, races: pd.DataFrame
) -> Finding:
    """Check X15: staked EBR recommends an ε-optimal arm with 1 − δ in T rounds.

    The tables are those of `finals`, `every_path.failures`, `supermartingale.watched` and, with columns race,
    failures, runs, delta, rounds and T, of races played.
    """
    evidence = [
        Evidence(
            "what the final's sign spends, over its share",
            row["spent"],
            f"{row['model']} rewards",
            allowed="≤ 1",
        )
        for row in signs.to_dict("records")
    ]
    for model, part in paths.groupby("model", sort=False):
        worst = part.assign(over=part["failure"] / part["delta"]).sort_values("over").iloc[-1]
        where = f"{model}, T = {worst['T']}, ε = {worst['epsilon']:g}, δ = {worst['delta']:g}"
        what, over = "failure over δ, every path of two arms, at most", worst["over"]
        if worst["error"]:
            error, runs = worst["error"] / worst["delta"], int(worst["repeats"])
            evidence.append(measured(what, over, error, runs, where, "≤ 1"))
        else:
            evidence.append(Evidence(what, over, where, allowed="≤ 1"))
    means = pooled(watched)
    for model, part in means.groupby("model", sort=False):
        worst = part.sort_values("over").iloc[-1]
        where = f"{model} rewards, {worst['kind']}, after the {worst['when']} round"
        what = "mean of the supermartingale over (1 − c_T) δ, at most"
        evidence.append(measured(what, worst["over"], worst["error"], int(worst["runs"]), where, "≤ 1"))
    ends = watched.groupby(["model", "kind", "delta", "problem"], as_index=False).agg(
        {"runs": "max", "reached": "max", "strayed": "max", "allowed": "max"}
    )
    runs = int(ends["runs"].sum())
    strayed = int(ends["strayed"].sum())
    evidence.append(
        counted("races in which a step of the proof fails", strayed, runs, "hostile problems", "0")
    )
    ours = races[races["race"] == "staked EBR"]
    wrong = int(ours["failures"].sum())
    where = f"{len(ours)} points of the suite"
    evidence.append(
        counted("races that end with a wrong arm", wrong, int(ours["runs"].sum()), where, "≤ δ on each")
    )
    exact = bool(((paths["failure"] - 5 * paths["error"]) <= paths["delta"] + ROUNDING).all())
    exact = exact and bool(((paths["ended"] - 1).abs() < ROUNDING).all() and (paths["failure"] > 0).all())
    spent = bool((signs["spent"] <= 1 + ROUNDING).all())
    beyond = bool((means["nats"] > math.log(len(means) / FALSE_ALARM)).any())
    ville = refutes(ends.drop(columns="delta").rename(columns={"allowed": "delta"}), "reached")
    late = bool((ours["rounds"] > ours["T"]).any())
    holds = spent and exact and strayed == 0 and not (beyond or ville or late or refutes(ours, "failures"))
    return Finding("X15", bool(holds), tuple(evidence), "proved")
