"""A race as the command line starts it, in the units of its rewards."""

import argparse
import math
from typing import Any

from ebr.algorithms.elastic import ElasticBatchRacing
from ebr.algorithms.game import Algorithm
from ebr.algorithms.pausing import PausingElasticBatchRacing
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.race import Race
from ebr.live.scale import UNIT, Scale
from ebr.live.terms import checked_support


def started(options: argparse.Namespace) -> Race:
    """Begin a race, or find that the same one has begun already."""
    scale = _scale(options)
    return Race(
        _algorithm(options, scale),
        options.arms,
        options.journal,
        None if options.unbounded else (0.0, 1.0),
        rounding=options.rounding,
        scale=None if scale == UNIT else (scale.worst, scale.best),
        blocks=options.blocks,
        control=options.control,
        margin=options.margin,
    )


def _scale(options: argparse.Namespace) -> Scale:
    """What is 0 and 1 inside: the ends of the support, the better one last."""
    low, high = checked_support(options.support) or (0.0, 1.0)
    return Scale(high, low) if options.lower_is_better else Scale(low, high)


def _algorithm(options: argparse.Namespace, scale: Scale) -> Algorithm:
    """What is to be raced, by what --algorithm says; ε and σ are given in the rewards' units."""
    widest = scale.width / (math.sqrt(2) if options.blocks and not options.unbounded else 2)
    sigma = widest if options.sigma is None else options.sigma
    rules: dict[str, Any] = {
        "deadline": options.deadline,
        "epsilon": options.epsilon / scale.width,
        "delta": options.delta,
        "sigma": sigma / scale.width,
    }
    if scale.width != 1 and not 0 < rules["epsilon"] < 1:
        raise ValueError(f"epsilon must lie in (0, {scale.width:g}), in the support, got {options.epsilon}")
    if options.algorithm == "pausing":
        if options.k != 1:
            raise ValueError(f"k must be 1 for --algorithm pausing, got {options.k}")
        return PausingElasticBatchRacing(**rules, rewards=options.rewards)
    if options.algorithm == "sharp":
        return SharpElasticBatchRacing(**rules, k=options.k, rewards=options.rewards)
    if options.rewards:
        raise ValueError("--rewards is for --algorithm sharp and pausing alone")
    return ElasticBatchRacing(**rules, k=options.k)
