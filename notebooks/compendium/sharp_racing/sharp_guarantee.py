"""Sharp EBR's own claims, X3 to X5: its guarantee, its cost bounds, and what it saves on the setups."""

from collections.abc import Iterable
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from compendium.shared import figures, lineup
from compendium.shared.characteristic_time import characteristic_lower_bound
from compendium.shared.findings import Evidence, Finding, counted, exceeds, measured, refutes
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.shared.lineup import ALGORITHMS, SETUPS, Maker, MakeSharp, ratio
from compendium.shared.problem_sets import Instance
from compendium.sharp_racing import sharp_bounds
from compendium.sharp_racing.sharp_adversary import inside
from compendium.sharp_racing.sharp_event import crossed, fully_spent, spent
from ebr.algorithms import sharp
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.staked import StakedElasticBatchRacing
from ebr.arrays import BoolArray, FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory.pairs import Pairs
from ebr.theory.problems import Gaussian, Problem
from ebr.theory.selection import normal_slippage_error

ROUNDING = 1e-9
GAUSSIAN_RUNS = 100_000
LEAST_SAVINGS = {"Setup 1": 12, "Setup 2": 11}  # X5's, at ε = 0.01 and T = 15
COST = "36σ²(max(w₀, ε)/ε)^(2/T) L H + n"


class _Uncertified(SharpElasticBatchRacing):
    """Without the end certificate: the race goes on until one arm is left, or to the deadline."""

    def refuted(self, pairs: Pairs, shift: float, log_term: float, told: str | None) -> BoolArray:
        return super().refuted(pairs, 0.0, log_term, told)


SHARP: dict[str, Maker] = {
    "sharp": lineup.sharp("sub-Gaussian"),
    "sharp, [0, 1]": SharpElasticBatchRacing,  # takes the reward model from the problem
}
# Figure 3's curves beside Figure 2's.
OURS: dict[str, Maker] = {**SHARP, "pausing": PausingElasticBatchRacing, "staked": StakedElasticBatchRacing}
# More runs at X5's point; pausing and staked EBR also where only [0, 1] is known of the rewards.
OFTEN: dict[str, Maker] = {
    "EBR": ALGORITHMS["EBR"],
    "pausing": OURS["pausing"],
    "pausing, [0, 1]": lambda t, e, d: PausingElasticBatchRacing(t, e, d, rewards="bounded"),
    "staked": OURS["staked"],
    "staked, [0, 1]": lambda t, e, d: StakedElasticBatchRacing(t, e, d, rewards="bounded"),
}
LEAST_OFTEN = {"pausing": 50, "staked": 70, "staked, [0, 1]": 60}  # X5's, on both setups
# What each improvement saves.
VARIANTS: dict[str, Maker] = {
    "no certificate, w₀ = 1, δ split equally": lambda t, e, d: _Uncertified(
        t, e, d, rewards="sub-Gaussian", start=1, split="equal"
    ),
    "+ end certificate": lambda t, e, d: SharpElasticBatchRacing(
        t, e, d, rewards="sub-Gaussian", start=1, split="equal"
    ),
    "+ w₀ = ½": lambda t, e, d: SharpElasticBatchRacing(t, e, d, rewards="sub-Gaussian", split="equal"),
    "+ δ split by 1/w": SHARP["sharp"],
    "+ likelihood ratio": SHARP["sharp, [0, 1]"],
}


def wide() -> list[Instance]:
    """Problems with ε > w_0 = ½, where all widths are ε; gaps are nearly 1."""
    sizes = product((2, 5), (1, 2, 4), (0.6, 0.9), (1e-6, 0.1))
    return [Instance("ε > ½", Gaussian(_two_levels(n), 0.5), e, t, d) for n, t, e, d in sizes]


def joint() -> list[Instance]:
    """Gaussian problems with few looks, some of which end early: many rounds, a large ε or δ, small n."""
    sizes = product((2, 10), (2, 15, 100), (0.1, 0.25, 0.3, 0.7), (0.05, 0.3), (0.5, 2.0))
    return [Instance("joint looks", Gaussian(_two_levels(n), s), e, t, d) for n, t, e, d, s in sizes]


def _two_levels(n_arms: int) -> FloatArray:
    """One arm near 1, all others near 0."""
    return np.where(np.arange(n_arms) == n_arms - 1, 0.98, 0.02)


def steps(
    problems: Iterable[Instance], tables: int, seed: int, make: MakeSharp, rewards: str
) -> pd.DataFrame:
    """The proof's steps on the adversary's tables.

    Columns: kind, tables, wrong (the arm is not ε-optimal), late (some arm has more than b_{τ_i} pulls), over
    (all arms together have more than the bound in H).
    """
    rows = []
    for kind, problem, epsilon, deadline, delta in problems:
        algorithm = make(deadline, epsilon, delta, problem.sigma, rewards=rewards)
        played = inside(algorithm, problem, tables, seed)
        theory = SharpElasticBatchRacing(deadline, epsilon, delta, problem.sigma, rewards)
        wrong = int((~problem.is_good(played.arms[:, 0], epsilon)).sum())
        late = (played.arm_pulls > _allowed(problem, theory)).any(axis=1)
        over = played.arm_pulls.sum(axis=1) > _bound(problem, theory)
        rows.append((kind, tables, wrong, int(late.sum()), int(over.sum())))
    return pd.DataFrame(rows, columns=["kind", "tables", "wrong", "late", "over"])


def _allowed(problem: Problem, theory: SharpElasticBatchRacing) -> IntArray:
    """b_{τ_i}, the most pulls of each arm by the theorem's own w_t and b_t."""
    widths = theory.deciding_widths(problem.n_arms)
    last = sharp_bounds.elimination_rounds(problem, theory.epsilon, widths)
    return np.asarray(theory.pulls_by_round(problem.n_arms)[last])


def _bound(problem: Problem, theory: SharpElasticBatchRacing) -> float:
    """The bound in H, with the L of the race."""
    log_term = theory.longest(problem.n_arms)
    return sharp_bounds.sharp_problem_bound(problem, theory.epsilon, theory.deadline, log_term)


def races(settings: Iterable[Instance], runs: int, seed: int, make: MakeSharp, rewards: str) -> pd.DataFrame:
    """Random races of sharp EBR beside its bounds.

    Columns: kind, rewards, n_arms, deadline, epsilon, delta, runs, pulls (mean), most; wrong, late and over,
    the numbers of runs that are so, as in `steps`; bound, Σ b_{τ_i}, and problem_bound, with 36 H(ν).
    """
    rows = []
    for kind, problem, epsilon, deadline, delta in settings:
        algorithm = make(deadline, epsilon, delta, problem.sigma, rewards=rewards)
        theory = SharpElasticBatchRacing(deadline, epsilon, delta, problem.sigma, rewards)
        race = simulate(algorithm, problem, runs, seed, per_arm=True)
        allowed = _allowed(problem, theory)
        bound = _bound(problem, theory)
        setting = {"kind": kind, "rewards": rewards, "n_arms": problem.n_arms, "deadline": deadline}
        events = {
            "wrong": int((~race.correct(epsilon)).sum()),
            "late": int((race.arm_pulls > allowed).any(axis=1).sum()),
            "over": int((race.pulls > bound).sum()),
        }
        pulls = {"runs": runs, "pulls": race.pulls.mean(), "most": race.pulls.max()}
        both = {"bound": float(allowed.sum()), "problem_bound": bound}
        rows.append(setting | {"epsilon": epsilon, "delta": delta} | pulls | events | both)
    return pd.DataFrame(rows)


def nearest() -> float:
    """Σ b over the bound in H where they are nearest: two arms tie, 2,000 have gaps just below 2w_{T−1}."""
    theory = SharpElasticBatchRacing(200, 0.05, 0.1, 5.0, "sub-Gaussian", split="equal")
    gaps = np.append([0, 0], np.full(2000, 2 * theory.widths()[-2] * (1 - ROUNDING)))
    problem = Gaussian(0.9 - gaps, theory.sigma)
    return float(_allowed(problem, theory).sum() / _bound(problem, theory))


def guarantee(
    adversary: pd.DataFrame, table: pd.DataFrame, make: MakeSharp = SharpElasticBatchRacing
) -> Finding:
    """Check X3: sharp EBR is (ε, δ)-PAC in T rounds and pulls arm i at most b_{τ_i} times, with 1 − δ.

    The tables are those of `steps` and `races`, for sub-Gaussian rewards and for Gaussian joint looks.
    """
    sizes = list(product((2, 10, 100), (1, 2, 15), (0.3, 0.01)))
    shares = [
        (spent(make(t, epsilon, 0.01, rewards="sub-Gaussian"), n, shift=shift), epsilon)
        for n, t, epsilon in sizes
        for shift in (0.0, epsilon)
    ]
    race = make(4, 0.1, 0.1, rewards="Gaussian")
    gaussian = {n: crossed(race, n, GAUSSIAN_RUNS, 1) for n in (2, 10)}
    found = _guarantee("X3", max(shares)[0], "n ≤ 100, T ≤ 15, δ = 0.01", adversary, table)
    near = Evidence(f"Σ b over {COST}", share := nearest(), "where it is nearest", allowed="≤ 1")
    rows = [
        counted("Gaussian noise outside the event", events, GAUSSIAN_RUNS, f"n = {n}, T = 4", "≤ δ = 0.1")
        for n, events in gaussian.items()
    ]
    kept = all(_as_often(race, n, events, 2 * len(gaussian)) for n, events in gaussian.items())
    kept = kept and share <= 1 and all(fully_spent(*one) for one in shares)
    return found._replace(holds=found.holds and kept, evidence=(*found.evidence, near, *rows))


def _as_often(race: sharp.SharpElasticBatchRacing, n_arms: int, events: int, tests: int) -> bool:
    """Whether Gaussian noise is outside the event not more often than δ, nor less often than at T alone."""
    distance = race.epsilon * np.sqrt(race.pulls_by_round(n_arms)[-1]) / race.sigma
    inside = 1 - normal_slippage_error(float(distance), n_arms)
    rare = exceeds(GAUSSIAN_RUNS - events, GAUSSIAN_RUNS, inside, tests)
    return not rare and not exceeds(events, GAUSSIAN_RUNS, race.delta, tests)


def bounded_guarantee(
    adversary: pd.DataFrame, table: pd.DataFrame, make: MakeSharp = SharpElasticBatchRacing
) -> Finding:
    """Check X4: the same for the likelihood ratio of rewards in [0, 1]."""
    sizes = product((2, 100), (1, 2, 6), (0.99, 0.5, 0.2, 0.02), (0.0, 0.1))
    most = max(spent(make(t, 0.1, 0.01, rewards="bounded"), n, mean, shift) for n, t, mean, shift in sizes)
    found = _guarantee("X4", most, "n ≤ 100, T ≤ 6, δ = 0.01", adversary, table)
    return found._replace(holds=found.holds and fully_spent(most, 0.1))


def _guarantee(claim: str, most: float, sizes: str, adversary: pd.DataFrame, table: pd.DataFrame) -> Finding:
    wrong, late, over = (int(adversary[event].sum()) for event in ("wrong", "late", "over"))
    shares = (table["bound"] / table["problem_bound"]).groupby(table["rewards"], sort=False)
    tables, runs = int(adversary["tables"].sum()), int(table["runs"].sum())
    within, random = f"of {tables:,}, inside the event", f"on {len(table)} problems"
    evidence = [
        Evidence("spent on drops, on certificates, over δ, at most", most, sizes, allowed="≤ 1"),
        Evidence("tables that end with a wrong arm", wrong, within, allowed="0"),
        Evidence("tables with an arm above its term", late, within, allowed="0"),
        Evidence(f"tables above {COST}", over, within, allowed="0"),
    ]
    for model, share in shares:
        where = f"on {len(share)} problems, {model} rewards"
        evidence.append(Evidence(f"Σ b over {COST}, at most", float(share.max()), where, allowed="≤ 1"))
    events = {
        "wrong": "races that end with a wrong arm",
        "late": "races with an arm above its term",
        "over": f"races above {COST}",
    }
    for event, what in events.items():
        evidence.append(counted(what, int(table[event].sum()), runs, random, "≤ δ on each"))
    refuted = any(refutes(table, event) for event in events)
    proved = wrong == late == over == 0 and bool((shares.max() <= 1).all())
    return Finding(claim, proved and not refuted, tuple(evidence), "proved")


def compared(table: pd.DataFrame, delta: float, n_arms: int) -> pd.DataFrame:
    """Pulls over Algorithm 1's, the sequential oracle's and T*(ν) kl(δ, 1−δ), with standard errors."""
    parts = []
    places = set(zip(table["setup"], table["epsilon"], strict=True))
    floors = {at: characteristic_lower_bound(SETUPS[at[0]](n_arms), at[1], delta) for at in places}
    for name in table["algorithm"].unique():
        for against in ("EBR", "sequential"):
            parts.append(ratio(table, name, against).assign(algorithm=name, against=against))
        alone = table[table["algorithm"] == name]
        least = [floors[at] for at in zip(alone["setup"], alone["epsilon"], strict=True)]
        kept = alone[["sweep", "setup", "deadline", "epsilon", "algorithm"]]
        parts.append(kept.assign(ratio=alone["pulls"] / least, error=alone["error"] / least, against="floor"))
    return pd.concat(parts, ignore_index=True)


def savings(table: pd.DataFrame, many: pd.DataFrame, deadline: int = 15, epsilon: float = 0.01) -> Finding:
    """Check X5: at ε = 0.01, T = 15 at least 12 and 11 times fewer pulls than Algorithm 1 on Setups 1 and 2.

    More with the likelihood ratio, and never more than AE along T; means of the runs. Pausing, with Bernoulli
    rewards: at least 50 times fewer, and along T never more than the likelihood ratio. Staked: at least 70
    times fewer, 60 if only [0, 1] is known of the rewards. `many` has more runs of these.
    """
    holds, evidence, runs = True, [], table.groupby("algorithm")["runs"].min()
    here = table[(table["deadline"] == deadline) & np.isclose(table["epsilon"], epsilon)]
    for setup, least in LEAST_SAVINGS.items():
        one, bounded = (ratio(here[here["setup"] == setup], "EBR", name).iloc[0] for name in SHARP)
        holds = holds and one["ratio"] >= least and bounded["ratio"] > one["ratio"]
        limits = (f"≥ {least}", f"> {one['ratio']:.3g}")
        for name, saved, allowed in zip(SHARP, (one, bounded), limits, strict=True):
            what, where = f"EBR's pulls over those of {name}", f"{setup}, ε = {epsilon:g}, T = {deadline}"
            evidence.append(measured(what, saved["ratio"], saved["error"], int(runs[name]), where, allowed))
    along = [(name, "AE") for name in (*SHARP, "pausing", "staked")] + [("pausing", "sharp, [0, 1]")]
    for name, other in along:
        dearest = ratio(table[table["sweep"] == "T"], name, other).nlargest(1, "ratio").iloc[0]
        holds = holds and dearest["ratio"] <= 1
        where = f"{dearest['setup']}, T = {dearest['deadline']}"
        what = f"pulls of {name} over those of {other}, at most"
        evidence.append(measured(what, dearest["ratio"], dearest["error"], int(runs[name]), where, "≤ 1"))
    for name, least in LEAST_OFTEN.items():
        rows = _often(many, name, least)
        holds = holds and all(row.low is not None and row.low >= least for row in rows)
        evidence += rows
    return Finding("X5", bool(holds), tuple(evidence), "simulated")


def _often(many: pd.DataFrame, name: str, least: float) -> list[Evidence]:
    """How many times fewer pulls than Algorithm 1; the whole interval must be above the least."""
    what, runs = f"EBR's pulls over those of {name}", int(many.loc[many["algorithm"] == name, "runs"].min())
    rows = ratio(many, "EBR", name).to_dict("records")
    places = [f"{row['setup']}, ε = {row['epsilon']:g}, T = {row['deadline']}" for row in rows]
    return [
        measured(what, row["ratio"], row["error"], runs, where, f"≥ {least}")
        for row, where in zip(rows, places, strict=True)
    ]


def factors(many: pd.DataFrame, delta: float, n_arms: int) -> pd.DataFrame:
    """How many times fewer pulls than Algorithm 1, and how many times the floor, ± one standard error."""
    keys = ["setup", "algorithm"]
    names = [name for name in OFTEN if name != "EBR"]
    fewer = pd.concat([ratio(many, "EBR", name).assign(algorithm=name) for name in names]).set_index(keys)
    above = compared(many, delta, n_arms).query("against == 'floor'").set_index(keys).loc[fewer.index]
    columns = {"times fewer than Algorithm 1": (fewer, 1), "times the floor": (above, 2)}
    words = {
        title: [f"{row.ratio:.{digits}f} ± {row.error:.{digits}f}" for row in part.itertuples()]
        for title, (part, digits) in columns.items()
    }
    return pd.DataFrame(words, fewer.index).sort_index(level=0, sort_remaining=False)


def draw_ratios(table: pd.DataFrame) -> Figure:
    """Draw the pulls over the floor, from `compared`, on the panels of Figure 3."""
    figure, axes = plt.subplots(2, 2, figsize=(figures.PAGE, 5.2), sharey=True)
    for axis, where in zip(axes.flat, lineup.PANELS, strict=True):
        lineup.panel(axis, table[table["against"] == "floor"], "ratio", *where)
        axis.axhline(1, color="0.3", lw=0.8, zorder=0)
    for axis in axes[:, 0]:
        axis.set_ylabel("pulls over the floor, T* kl(δ, 1−δ)")
    figures.letters(axes.flat)
    lineup.legend_below(figure, axes[0, 0])
    return figure
