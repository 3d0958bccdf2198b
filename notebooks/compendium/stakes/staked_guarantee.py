"""Staked EBR's own claim, X15: the final's share, all paths of small races, the supermartingale."""

import math

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.stats import binom, chi2

from compendium.shared.distributions import bernoulli_kl, norm
from compendium.shared.findings import FALSE_ALARM, Evidence, Finding, counted, measured, refutes
from compendium.stakes.suite import OURS
from compendium.stakes.supermartingale import UNKNOWN
from ebr.algorithms.staked import StakedElasticBatchRacing, stein_count
from ebr.models import REWARDS

ROUNDING = 1e-9
NEARLY_ALL = 0.95  # of its share is spent by the least b_T, for some of the finals
FAIR = 0.9  # of the money is kept, in the mean, by two arms' bets on claims that are only just false
# n, T, ε and δ of the finals whose sign is summed up.
FINALS = ((2, 2, 0.2, 0.1), (2, 1, 0.3, 0.5), (10, 4, 0.1, 0.1), (30, 15, 0.15, 0.01), (3, 9, 0.2, 0.9))
SHARES = np.linspace(0, 1, 41)  # of 1 − ε: where the worse arm's mean is


def finals() -> pd.DataFrame:
    """What the sign at b_T spends, over its share δ/√T of δ: the most by model."""
    rows = []
    for model in REWARDS:
        spent = []
        for n_arms, deadline, epsilon, delta in FINALS:
            race = StakedElasticBatchRacing(deadline, epsilon, delta, rewards=model)
            pulls = race.last_count(n_arms, model)
            share = delta / math.sqrt(deadline)
            spent.append(wrong_sign(model, n_arms, pulls, epsilon) / share)
        rows.append((model, max(spent)))
    stein = [
        wrong_sign_by_stein(*at, first) * math.sqrt(at[1]) / at[3]
        for at in FINALS
        if at[1] > 1
        for first in (2, 10)
    ]
    rows.append((UNKNOWN, max(stein)))
    return pd.DataFrame(rows, columns=["model", "spent"])


def wrong_sign_by_stein(
    n_arms: int, deadline: int, epsilon: float, delta: float, first: int, sigma: float = 0.5
) -> float:
    """The same, at most, with Stein's count after a first round of `first` rewards each: its mean over S²."""
    freedom, miss = n_arms * (first - 1), delta / math.sqrt(deadline) / (n_arms - 1)
    log = np.linspace(-16, 4, 20_001)
    ratio = np.exp(log)  # S²/σ²
    pulls = np.maximum(stein_count(sigma**2 * ratio, np.full(log.shape, freedom), epsilon, miss), first)
    wrong = norm.cdf(-epsilon * np.sqrt(pulls / 2) / sigma)
    return float(
        (n_arms - 1) * np.trapezoid(chi2.pdf(freedom * ratio, freedom) * freedom * ratio * wrong, log)
    )


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


def _told(signs: pd.DataFrame, paths: pd.DataFrame, means: pd.DataFrame) -> list[Evidence]:
    """Evidence from the tables: the worst case of each model."""
    what = "what the final's sign spends, over its share"
    told = [Evidence(what, spent, f"{model} rewards", allowed="≤ 1") for model, spent in signs.to_numpy()]
    what = "failure over δ, every path of two arms, at most"
    for model, part in paths.groupby("model", sort=False):
        worst = part.assign(over=part["failure"] / part["delta"]).sort_values("over").iloc[-1]
        where = f"{model}, T = {worst['T']}, ε = {worst['epsilon']:g}, δ = {worst['delta']:g}"
        if (error := worst["error"] / worst["delta"]) > 0:
            told.append(measured(what, worst["over"], error, int(worst["repeats"]), where, "≤ 1"))
        else:
            told.append(Evidence(what, worst["over"], where, allowed="≤ 1"))
    what = "mean of the supermartingale over (1 − c_T) δ, at most"
    for model, part in means.groupby("model", sort=False):
        worst = part.sort_values("over").iloc[-1]
        where = f"{model} rewards, {worst['kind']}, after the {worst['when']} round"
        told.append(measured(what, worst["over"], worst["error"], int(worst["runs"]), where, "≤ 1"))
    return told


def guarantee(
    signs: pd.DataFrame, paths: pd.DataFrame, watched: pd.DataFrame, races: pd.DataFrame
) -> Finding:
    """Check X15: staked EBR recommends an ε-optimal arm with 1 − δ in T rounds.

    The tables are those of `finals`, `every_path.failures`, `supermartingale.watched` and, with columns race,
    failures, runs, delta, rounds and T, of races played.
    """
    means, ours = pooled(watched), races[races["race"] == OURS]
    ends = watched.groupby(["model", "problem"], as_index=False)[
        ["runs", "reached", "strayed", "allowed"]
    ].max()
    runs, strayed = int(ends["runs"].sum()), int(ends["strayed"].sum())
    wrong, raced = int(ours["failures"].sum()), int(ours["runs"].sum())
    where = f"{len(ours)} points of the suite"
    evidence = (
        *_told(signs, paths, means),
        counted("races in which a step of the proof fails", strayed, runs, "hostile problems", "0"),
        counted("races that end with a wrong arm", wrong, raced, where, "≤ δ on each"),
    )
    spent = bool(signs["spent"].between(NEARLY_ALL, 1 + ROUNDING).all())
    exact = bool(((paths["failure"] - 5 * paths["error"]) <= paths["delta"] + ROUNDING).all())
    exact = exact and bool(((paths["ended"] - 1).abs() < ROUNDING).all() and (paths["failure"] > 0).all())
    grown = bool((means["nats"] > math.log(len(means) / FALSE_ALARM)).any())
    tight = means[
        means["model"].isin(("Bernoulli", "Gaussian", UNKNOWN)) & means["kind"].isin(("just bad", "alike"))
    ]
    fair = bool((tight["over"] > FAIR).all())
    reached = refutes(ends.rename(columns={"allowed": "delta"}), "reached")
    late = bool((ours["rounds"] > ours["T"]).any())
    holds = (
        spent
        and exact
        and fair
        and strayed == 0
        and not (grown or reached or late or refutes(ours, "failures"))
    )
    return Finding("X15", holds, evidence, "proved")
