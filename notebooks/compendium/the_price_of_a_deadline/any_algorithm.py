"""X7: what a deadline costs any algorithm. Each step of the proofs on policies and races, and the bounds."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from scipy.special import ndtri

from compendium.failure_probability.exact_failures import looks
from compendium.shared.distributions import norm
from compendium.shared.findings import FALSE_ALARM, Evidence, Finding, measured
from compendium.shared.joint_race import SharpElasticBatchRacing
from compendium.shared.walks import Looks
from compendium.the_price_of_a_deadline import staged_tests
from compendium.the_price_of_a_deadline.deadline_price import Family, ratios, two_arms
from compendium.the_price_of_a_deadline.staged_tests import Mixture
from compendium.two_rounds.policies import pac_policy
from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.arrays import FloatArray
from ebr.theory.problems import Gaussian

Make = Callable[[float, float], Family]
JUST = 1 + 1e-9  # just above a count
NEVER = 3.0  # nine standard deviations at a tenth of the time: so low W is not found
EXACT = 1e-7  # rounding error allowed
SMALL = 1e-6  # steps that need less than this are skipped: quadrature is too rough there
ALIKE = 1e-3  # relative difference allowed between two searches
NEAR = 0.9  # the bounds for n arms over what is attained, at the largest n: at least this
# What the ledger says of two arms at δ = 0.01, in σ² ε^{−2/T}: for each ε, from T = 1 on.
STATED = {1e-2: (5.4, 1.05, 0.36), 1e-4: (5.3, 0.96, 0.29, 0.155)}


def pair_policies(epsilon: float, delta: float) -> dict[str, Mixture]:
    """Policies of one, two and three stages; the proof must hold for each, for some with equality."""
    once = Looks(np.array([float(ndtri(delta)) ** 2 / epsilon**2]), np.zeros(0))
    second = staged_tests.from_policy(pac_policy(8 / epsilon, 0.5, epsilon, delta))
    sharp = looks(SharpElasticBatchRacing(3, epsilon, delta, 1.0, "Gaussian"), 1.0)
    elastic = looks(ElasticBatchRacing(3, epsilon, delta, 1.0), 1.0)
    root = np.sqrt(once.times)
    one_sided = Looks(once.times[0] * np.array([0.1, 1.0]), 0.2 * root, -NEVER * root)
    return {
        "one round": ((1.0, once),),
        "two rounds, one n₂": ((1.0, second),),
        "stops on one side": ((1.0, one_sided),),
        "sharp EBR, T = 3": ((1.0, sharp),),
        "EBR, T = 3": ((1.0, elastic),),
        "lots: one round or sharp": ((0.5, once), (0.5, sharp)),
    }


def steps(policies: Mapping[str, Mixture], epsilon: float, make: Make = two_arms) -> pd.DataFrame:
    """Each inequality of the proof for two arms at a policy's own S_t and error; the worst place of each.

    Columns: policy, step, value, needed, margin (relative; must not be negative).
    """
    gaps = np.geomspace(epsilon, 1, 13)
    rows = []
    for name, policy in policies.items():
        family = make(epsilon, staged_tests.error(policy, epsilon))
        short = 1 - staged_tests.long(policy, JUST * family.pulls, 0.0)  # P_0(S_T ≤ M)
        worst = int((family.misses / np.maximum(short, SMALL)).argmin())
        rows.append((name, "PAC: q ≥ P_0(S_T ≤ M)", family.misses[worst], short[worst]))
        for ladder in _ladders(policy):
            rows += [(name, *row) for row in _ladder_steps(policy, family, ladder, gaps)]
    table = pd.DataFrame(rows, columns=["policy", "step", "value", "needed"])
    table = table[table["needed"] > SMALL].reset_index(drop=True)
    table["margin"] = (table["value"] / table["needed"] - 1).round(6) + 0.0  # beyond is quadrature's
    chosen = table.loc[table.groupby(["policy", "step"], sort=False)["margin"].idxmin()]
    return chosen.reset_index(drop=True)


def _ladders(policy: Mixture) -> list[FloatArray]:
    """Thresholds at a policy's own counts: below round k just above them, so that A_k is the first."""
    totals = max((staged_tests.totals(looks) for _, looks in policy), key=len)
    rounds = np.arange(len(totals))
    return [np.where(rounds < k, JUST * totals, totals) for k in rounds]


def _ladder_steps(
    policy: Mixture, family: Family, ladder: FloatArray, gaps: FloatArray
) -> list[tuple[str, float, float]]:
    """The events are disjoint and exhaust S_T ≥ M_T; Neyman and Pearson; the cost."""
    equal = staged_tests.crossings(policy, ladder, 0.0)
    reached = float(staged_tests.long(policy, ladder[-1:], 0.0)[0])
    rows = [("events: Σ P_0(A_t) ≥ P_0(S_T ≥ M_T)", float(equal.sum()), reached)]
    rows.append(("events: 1 ≥ Σ P_0(A_t)", 1.0, float(equal.sum())))
    rest, chances = max(1 - equal[0], 1e-12), np.clip(equal, 1e-12, 1 - 1e-9)
    for gap in gaps:
        there = staged_tests.crossings(policy, ladder, gap)
        for t in range(1, len(ladder)):
            if equal[t] == 0:
                continue
            seen = np.array(family.seen * gap**2 * ladder[t - 1])
            share = np.array(min(chances[t] / rest, 1 - 1e-9))
            least = rest * float(family.curve(share, seen)[0])
            rows.append(("Neyman, Pearson: P_d(A_t)", float(there[t]), least))
        if len(ladder) == 1 or equal[0] < 1 - EXACT:
            hard = Gaussian(np.array([0.5 + gap / 2, 0.5 - gap / 2]), 1.0).complexity(family.epsilon)
            bound = float(ratios(family, ladder[:-1], chances[:-1], np.array([gap]))[0][0])
            rows.append(("cost: E_d[Ñ_T]/H", staged_tests.cost(policy, gap) / hard, bound))
    return rows


def any_algorithm(
    proof: pd.DataFrame,
    races: pd.DataFrame,
    near: pd.DataFrame,
    costs: pd.DataFrame,
    pairs: pd.DataFrame,
    many: pd.DataFrame,
    unlimited: pd.DataFrame,
    scans: pd.DataFrame,
) -> Finding:
    """Check X7: the steps for two arms, exactly; those for n arms, on races and at the limit; the bounds.

    Tables of `steps`, `raised_probability.events`, `.limit` and `.costs`, and `deadline_tables`' four.
    """
    margin = float(proof["margin"].min())
    limit = float(norm.isf(FALSE_ALARM / (len(races) + len(costs))))
    distance = (races["raised"] - races["needed"]) / races["error"]
    farthest = "farthest below its bound, in standard errors"
    tight = races.iloc[int((races["raised"] / races["needed"].clip(lower=1e-12)).argmin())]
    sharpest = near[near["arms"] == near["arms"].max()]
    most = float(np.maximum(1 / near["ratio"], near["stop"]).max())
    least = float(np.minimum(1 / sharpest["ratio"], sharpest["stop"]).min())
    paid = costs.groupby("algorithm")["excess"].max()
    stated, told = _stated(pairs)
    ordered = float((many["price"] / many["formula"]).min())
    formula = float((many["formula"] / many["searched"] - 1).abs().max())
    floors = unlimited["price"] / unlimited["floor"]
    widest = float(floors[unlimited["arms"].isin([2, unlimited["arms"].max()])].min())
    below = float((pairs[["sharp", "ebr"]].min(axis=1) / pairs[["price", "sequential"]].max(axis=1)).min())
    scanned = float((scans["price"] / scans["scanned"] - 1).abs().max())
    few = f"{len(unlimited)} n"
    where, cheapest = f"{len(proof)} steps, two arms", str(paid.idxmin())
    evidence = (
        Evidence("relative margin of a step, at least", margin, where, allowed="≥ 0"),
        measured(
            f"P(event), an arm raised, over the bound, least: {tight['event']}",
            float(tight["raised"] / tight["needed"]),
            float(tight["error"] / tight["needed"]),
            int(tight["runs"]),
            str(tight["algorithm"]),
            "≥ 1",
        ),
        Evidence(farthest, float(-distance.min()), f"{len(races)} events", allowed=f"≤ {limit:.1f}"),
        Evidence("bound over what a policy attains, most", most, f"{len(near)} cases, n arms", allowed="≤ 1"),
        Evidence("the same at the most arms, least", least, f"n = {near['arms'].max()}", allowed=f"≥ {NEAR}"),
        Evidence("worst ratio of a race over the bound, least", float(paid.min()), cheapest, allowed="≥ 1"),
        Evidence("worst ratio of EBR, sharp EBR over the bound, least", below, "two arms", allowed="≥ 1"),
        *told,
        Evidence("bound for n arms over its formula, least", ordered, f"{len(many)} cases", allowed="≥ 1"),
        Evidence(
            "the formula over its own search, less 1", formula, f"{len(many)} cases", allowed=f"≤ {ALIKE}"
        ),
        Evidence("bound by tangents over a scan of p_1, less 1", scanned, "T = 2", allowed=f"≤ {ALIKE}"),
        Evidence("no deadline: bound over T* d(1−δ, δ)/H, most", float(floors.max()), few, allowed="≤ 1"),
        Evidence("the same for two and for the most arms, least", widest, few, allowed=f"≥ {NEAR}"),
    )
    exact = margin >= 0 and most <= 1 + EXACT and least >= NEAR and stated and ordered >= 1 and below >= 1
    # Equal for two arms; n − 1 for (1 + √(n−1))² where n > 2.
    others = unlimited["arms"] - 1
    by_hand = np.where(others == 1, 1.0, others / (1 + np.sqrt(others)) ** 2)
    alike = float(np.abs(floors / by_hand - 1).max())
    exact &= formula <= ALIKE and floors.max() <= 1 + EXACT and widest >= NEAR and alike <= EXACT
    exact &= scanned <= ALIKE
    holds = exact and bool((distance >= -limit).all()) and float(paid.min()) >= 1
    return Finding("X7", holds, evidence, "proved")


def _stated(pairs: pd.DataFrame) -> tuple[bool, list[Evidence]]:
    """Whether the bounds for two arms are at least what the ledger says, and the numbers."""
    reached, rows = True, []
    for epsilon, constants in STATED.items():
        part = pairs[(pairs["epsilon"] == epsilon) & (pairs["delta"] == 0.01)].set_index("deadline")
        for deadline, constant in enumerate(constants, start=1):
            if deadline not in part.index:
                continue
            value = float(part["price"][deadline]) * epsilon ** (2 / deadline)
            reached &= value >= constant
            where = f"T = {deadline}, ε = {epsilon:g}, δ = 0.01"
            rows.append(Evidence("price in σ² ε^(−2/T)", value, where, allowed=f"≥ {constant:g}"))
    return reached, rows
