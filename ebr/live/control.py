"""A control by its name, and what a race says at its end."""

import dataclasses
import math
from collections.abc import Sequence

from ebr.algorithms.game import Algorithm
from ebr.algorithms.sharp import SharpElasticBatchRacing
from ebr.live.rewards import listed
from ebr.live.rules import named
from ebr.live.scale import Scale
from ebr.validation import positive


def with_control(
    algorithm: Algorithm, arms: Sequence[str], control: str | None, margin: float | None, scale: Scale
) -> Algorithm:
    """The algorithm with a control among the arms, and a margin in the units of the rewards."""
    if control is None and margin is None:
        return algorithm
    if not isinstance(algorithm, SharpElasticBatchRacing):
        name = type(algorithm).__name__
        raise ValueError(f"algorithm must be SharpElasticBatchRacing where there is a control, got {name}")
    names = list(arms)
    if control is not None and control not in names:
        raise ValueError(f"control must be one of the arms, {listed(map(str, names))}, got {control!r}")
    place = None if control is None else names.index(control)
    inside = None if margin is None else positive("margin", margin) / scale.width
    return dataclasses.replace(algorithm, control=place, margin=inside)


def control_of(algorithm: Algorithm, arms: Sequence[str]) -> str | None:
    """The control's name, if there is a control."""
    place = algorithm.control if isinstance(algorithm, SharpElasticBatchRacing) else None
    return None if place is None else arms[place]


def verdict(
    recommendation: str | tuple[str, ...] | None, control: str | None, within: float, asked: float
) -> str:
    """What a race says at its end: whom it recommends and, where that is not within ε, what is guaranteed.

    Parameters
    ----------
    recommendation, control
        By name.
    within, asked
        How far from the best it may be, and ε, in the units of the rewards.
    """
    chosen = f"It recommends {named(recommendation)}"
    if math.isinf(within):
        return f"{chosen}, and guarantees nothing: of some arm no reward has come in."
    if control is not None and recommendation == control:
        return f"{chosen}, the control: no arm is better than it by {_rounded_up(within)}."
    if within > asked:
        return f"{chosen}: within {_rounded_up(within)} of the best, not {asked:g}, as rewards are missing."
    return f"{chosen}."


def _rounded_up(value: float) -> str:
    """Three digits that promise no more than the value does."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit - 1e-9) * unit:.3g}"
