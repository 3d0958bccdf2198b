"""The certified race's own claim, X14: bounds by another way, all paths of small races, hostile truths."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import combinations_with_replacement, permutations, product
from typing import Any, cast

import numpy as np
import pandas as pd

from compendium.clinical_trial import every_sum
from compendium.shared.findings import Evidence, Finding, counted, refutes
from ebr.algorithms.certified import CertifiedElasticBatchRacing
from ebr.algorithms.game import Algorithm, drive
from ebr.arrays import FloatArray, IntArray
from ebr.simulation.simulate import simulate
from ebr.theory import checker
from ebr.theory.certificates import Certificate
from ebr.theory.problems import Bernoulli

ROUNDING = 1e-9
ADDED = 1e-6  # to a bound, for rounding and for tails that are cut off, where δ is `SMALL_DELTA`
SMALL_DELTA = 0.005
NEARLY = 0.95  # of the bound, at least, is the failure of some small race: the bound is hardly too large
PARTS = 3  # cells of good arms' rates in a length of ε, where bounds are computed by another way
# Races with so few rewards that all paths can be gone through; nothing is promised of their δ.
SMALL = (
    CertifiedElasticBatchRacing(2, (3, 6, 10), (1.6, 1.3), 0.3, 0.5, pruning=0.9, floor=1.2),
    CertifiedElasticBatchRacing(2, (4, 9), (1.2,), 0.2, 0.5),
    CertifiedElasticBatchRacing(2, (12, 16), (2.2,), 0.2, 0.5),
    CertifiedElasticBatchRacing(3, (4, 8), (1.8,), 0.1, 0.5, pruning=0.9, floor=1.5),
    CertifiedElasticBatchRacing(3, (2, 4, 7), (1.7, 1.2), 0.3, 0.5),
    CertifiedElasticBatchRacing(3, (3, 7), (1.5,), 0.2, 0.5, pruning=0.4),
    CertifiedElasticBatchRacing(4, (3, 5), (1.2,), 0.2, 0.5, pruning=0.3),
)
# Races with Gaussian rewards, the first with the looks of the trial.
NORMAL = (
    CertifiedElasticBatchRacing(5, (100, 300, 750), (3.2, 2.9), 0.05, 0.05, rewards="Gaussian", pruning=0.93),
    CertifiedElasticBatchRacing(2, (40, 42, 160), (2.5, 2.4), 0.3, 0.05, 1.0, "Gaussian", pruning=0.8),
    CertifiedElasticBatchRacing(8, (30, 50, 90), (2.9, 2.5), 0.2, 0.05, rewards="Gaussian"),
)
RATES = (0.0, 0.02, 0.15, 0.3, 0.42, 0.5, 0.7, 0.85, 0.97, 1.0)  # of the best arm
WIDTHS = (0.0, 0.03)  # of a cell
SHARES = (0.0, 0.5, 0.999999, 1.0, 1.5)  # of ε: gaps of the truths on which small races are played


class _Order:
    """Rng that rank the arms as told."""

    def __init__(self, order: Sequence[int]) -> None:
        self.lots = np.array(order) / len(order)

    def random(self, size: tuple[int, int]) -> FloatArray:
        return np.broadcast_to(self.lots, size)


def bounds() -> pd.DataFrame:
    """A row a small race and a cell: its bound, and the same by all paths.

    Columns: n, looks, low, high, bound (the package's), formula (B of the theorem).
    """
    rows = []
    for race, low, width in product(SMALL, RATES, WIDTHS):
        high = min(low + width, 1.0)
        cell = np.array([low]), np.array([high])
        found = {"bound": replace(race, delta=SMALL_DELTA).failures(*cell, PARTS)[0]}
        found |= {"formula": every_sum.bound(race, low, high, PARTS)}
        rows.append({"n": race.n_arms, "looks": race.looks, "low": low, "high": high} | found)
    return pd.DataFrame(rows)


def linked() -> pd.DataFrame:
    """A row a small race, a best rate and a good arm's: P(it drops the best, and a bad one errs against it).

    Columns: n, looks, best, good, both (by all paths), product (of the two events' probabilities).
    """
    rows = []
    for race, best, share in product(SMALL, RATES, SHARES[:3]):
        good, bad = best - share * race.epsilon, best - race.epsilon
        if bad < 0:
            continue
        own = every_sum.paths(race.looks)
        of_best, of_good, of_bad = (every_sum.chances(own, race.looks, rate) for rate in (best, good, bad))
        drops = of_best @ every_sum.errs(race, own, own, bad=False)  # by the good arm's path
        errs = every_sum.errs(race, own, own, bad=True) @ of_bad
        both, alone = of_good @ (drops * errs), (of_good @ drops) * (of_good @ errs)
        rows.append({"n": race.n_arms, "looks": race.looks, "best": best, "good": good})
        rows[-1] |= {"both": both, "product": alone}
    return pd.DataFrame(rows)


def normal(races: Sequence[CertifiedElasticBatchRacing] = NORMAL) -> pd.DataFrame:
    """A row a Gaussian race: its bound, and the one by Simpson's rule, which shares no code with it."""
    return pd.DataFrame(
        {
            "n": race.n_arms,
            "looks": race.looks,
            "bound": race.certificate().worst.bound,
            "simpson": checker.normal_failure(asdict(race), race.n_arms, 400),
        }
        for race in races
    )


def recommended(race: CertifiedElasticBatchRacing, order: Sequence[int]) -> IntArray:
    """What a race recommends on every combination of paths, one arm's changing fastest last."""
    own, n_arms = every_sum.paths(race.looks), race.n_arms
    which = np.stack(np.meshgrid(*[np.arange(len(own))] * n_arms, indexing="ij"), axis=-1).reshape(-1, n_arms)
    steps = np.diff(own, axis=1, prepend=0)[which]  # of each replicate and arm, at each look
    look = iter(range(race.deadline))
    game = race.play(n_arms, len(which), rewards="Bernoulli", generator=cast(Any, _Order(order)))
    return drive(game, lambda pulls: np.where(pulls > 0, steps[:, :, next(look)], 0).astype(np.float64))


def played() -> pd.DataFrame:
    """A row a small race: how often it fails, over its bound, the largest over many truths.

    The race itself is played on all paths of all arms, with all orders of the lots. Columns: n, looks, over,
    failure (its largest probability), ended (the probability of all paths).
    """
    rows = []
    for race in SMALL:
        own, rivals = every_sum.paths(race.looks), race.n_arms - 1
        orders = [recommended(race, order) for order in permutations(range(race.n_arms))]
        over, most, ended = 0.0, 0.0, []
        for best in RATES:
            bound = race.bound(best, best)
            for gaps in combinations_with_replacement(SHARES, rivals):
                # The best comes last: before T the first of those that tie leads.
                means = np.array([*(best - share * race.epsilon for share in gaps), best])
                if means.min() < 0:
                    continue
                chance = [every_sum.chances(own, race.looks, mean) for mean in means]
                bad = best - means >= race.epsilon * (1 - 1e-9)
                joint = chance[0]
                for more in chance[1:]:
                    joint = np.outer(joint, more).ravel()
                failure = float(np.mean([joint @ bad[arms] for arms in orders]))
                over = max(over, failure / bound if bound else float(failure > ROUNDING))
                most = max(most, failure)
                ended.append(float(joint.sum()))
        rows.append(
            {"n": race.n_arms, "looks": race.looks, "over": over, "failure": most, "ended": min(ended)}
        )
    return pd.DataFrame(rows)


def hostile(n_arms: int, epsilon: float, number: int, seed: int) -> list[FloatArray]:
    """Truths meant to hurt: best rates near 0, ½ and 1, ties, rivals just within ε and just not."""
    generator = np.random.default_rng(seed)
    truths = []
    for kind in range(number):
        best = (generator.beta(0.3, 0.3), generator.uniform(), 0.5 + epsilon / 2)[kind % 3]
        shares = generator.choice([0.0, 0.5, 0.999, 1.001, 1.001, 1.001, 2.0], n_arms - 1)
        if kind % 2:
            shares[:] = shares[0]
        truths.append(np.append(np.clip(best - shares * epsilon, 0, 1), best))
    return truths


def trials(algorithm: Algorithm, truths: Sequence[FloatArray], number: int, seed: int) -> pd.DataFrame:
    """A row a truth: failures, runs, delta, and the most rounds."""
    rows = []
    for means in truths:
        found = simulate(algorithm, Bernoulli(means), number, seed)
        wrong = int((~found.correct(algorithm.epsilon)).sum())
        rows.append(
            {"best": means.max(), "failures": wrong, "runs": number, "rounds": int(found.rounds.max())}
        )
    return pd.DataFrame(rows).assign(delta=algorithm.delta)


def again(race: CertifiedElasticBatchRacing, certificate: Certificate, number: int) -> pd.DataFrame:
    """Bounds of some cells of a certificate, the worst among them, and the same by Fourier transforms.

    Both are computed with a single cell for a length of ε of good arms' rates.
    """
    ranked = sorted(certificate.cells, key=lambda cell: cell.bound)
    chosen = {ranked[-1], *certificate.cells[1 :: max(len(ranked) // number, 1)]}
    return pd.DataFrame(
        {"low": low, "high": high, "bound": race.failures(np.array([low]), np.array([high]), 1)[0]}
        | {"again": every_sum.large_bound(race, low, high, 1)}
        for low, high, _ in sorted(chosen)
    )


def guarantee(
    small: pd.DataFrame,
    chained: pd.DataFrame,
    raced: pd.DataFrame,
    gaussian: pd.DataFrame,
    certificate: Certificate,
    cells: pd.DataFrame,
    tried: pd.DataFrame,
    deadline: int,
) -> Finding:
    """Check X14: a certified race recommends an ε-optimal arm with 1 − δ in T rounds.

    The tables are those of `bounds`, `linked`, `played`, `normal`, `again` and `trials`, the last two of the
    race that the certificate is of.
    """
    delta, added = certificate.delta, small["bound"] - small["formula"]
    up = gaussian["bound"] / gaussian["simpson"]
    more = (cells["bound"] - cells["again"]) / delta
    joint = (chained["both"] / chained["product"])[chained["product"] > 0]
    over = raced["over"]
    worst, failed = certificate.worst, tried.loc[[tried["failures"].idxmax()]].iloc[0]
    where = f"{len(small)} cells of {len(raced)} small races"
    of_best = f"best rate from {worst.low:.4g} to {worst.high:.4g}, {len(certificate.cells)} cells"
    evidence = (
        Evidence("bound less the one by all paths, at most", added.max(), where, allowed=f"0 to {ADDED:g}"),
        Evidence(
            "P(two links of a chain), by all paths, over their product, at most",
            joint.max(),
            f"{len(joint)} cases",
            allowed="≤ 1",
        ),
        Evidence("failures by all paths, over the bound, at most", over.max(), where, allowed="≤ 1"),
        Evidence("largest bound of the certificate", worst.bound, of_best, allowed=f"≤ {delta:g}"),
        Evidence(
            "bound less the one by Fourier transforms, over δ, at most",
            more.max(),
            f"{len(cells)} cells",
            allowed="0 to 0.001",
        ),
        Evidence("Gaussian bound over Simpson's rule, at least", up.min(), f"{len(up)} races", allowed="≥ 1"),
        Evidence("the same, at most", up.max(), f"{len(up)} races", allowed="≤ 1.02"),
        counted(
            "trials that err, the most of the hostile truths",
            int(failed["failures"]),
            int(failed["runs"]),
            f"{len(tried)} truths, best rate {failed['best']:.3g}",
            f"≤ {delta:g}",
        ),
    )
    same = added.between(-ROUNDING, ADDED).all() and more.between(-ROUNDING, 1e-3).all()
    same &= up.between(1, 1.02).all() and joint.max() <= 1 + ROUNDING
    below = NEARLY < over.max() <= 1 + ROUNDING
    whole = bool(((raced["ended"] - 1).abs() < ROUNDING).all()) and certificate.holds
    late = bool((tried["rounds"] > deadline).any())
    return Finding(
        "X14", bool(same and below and whole) and not (late or refutes(tried, "failures")), evidence, "proved"
    )
