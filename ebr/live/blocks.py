"""Rewards in blocks: every arm of a round is observed in each block, and arms are compared within blocks."""

import csv
import math
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ebr.algorithms.game import Algorithm
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.rewards import Singles, Support, listed, number_of, table_of
from ebr.models import IN_UNIT


def check_blocks(blocks: bool, algorithm: Algorithm, known: str) -> bool:
    """Return whether rewards come in blocks; raise ValueError where the race cannot take them so."""
    if not isinstance(blocks, bool):
        raise ValueError(f"blocks must be True or False, got {blocks!r}")
    if not blocks:
        return False
    if not isinstance(algorithm, SharpElasticBatchRacing):
        name = type(algorithm).__name__
        raise ValueError(f"algorithm must be SharpElasticBatchRacing for rewards in blocks, got {name}")
    model = algorithm.rewards or known
    if model in IN_UNIT:
        raise ValueError(
            "rewards must be 'sub-Gaussian' or 'Gaussian' in blocks, as the test for those in [0, 1] needs"
            f" independent arms, got {model!r}"
        )
    return True


def void_in_blocks(sigma: float, support: Support) -> Iterator[str]:
    """Say what makes a guarantee void: the differences of rewards in [0, 1] may need σ = 1/√2."""
    if support is not None and sigma < (support[1] - support[0]) / math.sqrt(2):
        low, high = support
        yield (
            f"sigma, {sigma:g}, is below {(high - low) / math.sqrt(2):.4g}, which differences of rewards"
            f" between {low:g} and {high:g} may need: the guarantee is void unless differences within a block"
            f" are known to be {sigma * math.sqrt(2):.4g}-sub-Gaussian"
        )


def by_arm(rewards: Any, asked: Sequence[str]) -> Mapping[str, Any]:
    """Turn a table block × arm into each arm's rewards, in the order of the blocks; others stay as they are.

    A DataFrame has its arms as columns; an array has a column for each arm asked for, in that order.
    """
    if isinstance(rewards, Mapping):
        return rewards
    if hasattr(rewards, "columns"):
        return {arm: rewards[arm].to_numpy() for arm in rewards.columns}
    table = np.asarray(rewards)
    if table.ndim != 2 or table.shape[1] != len(asked):
        what = f"a table of blocks × {len(asked)} arms ({listed(asked)}), or a dict by arm"
        raise ValueError(f"rewards must be {what}, got {reprlib.repr(rewards)}")
    return dict(zip(asked, table.T, strict=True))


def blocks_from_file(name: str) -> Singles:
    """Read a table whose first line is block, then the arms; a row a block."""

    def read(rows: "csv.DictReader[str]") -> Singles:
        columns = list(rows.fieldnames or ())
        if len(columns) < 2 or columns[0] != "block" or len(set(columns)) < len(columns):
            raise ValueError(f"{name} must have the columns block and then one for each arm, all different")
        found: Singles = {arm: [] for arm in columns[1:]}
        seen: set[str] = set()
        for row in rows:
            where = f"{name}, line {rows.line_num}"
            if None in row or None in row.values():
                raise ValueError(f"{where}: there must be {len(columns)} columns")
            if row["block"] in seen:
                raise ValueError(f"{where}: there is a block {row['block']} before")
            seen.add(row["block"])
            for arm in columns[1:]:
                found[arm].append(number_of(row[arm], where))
        return found

    return table_of(name, read)
